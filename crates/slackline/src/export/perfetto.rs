//! Chrome's trace event format as a JSON object, which Perfetto and `chrome://tracing` read.
//!
//! | of a schedule | in the trace |
//! |---|---|
//! | a machine | a process |
//! | a slot | a thread of it, with an id that is unique in the trace |
//! | a task on a slot | a complete event (`X`), with its start-up as a slice in it |
//! | an ApplicationMaster that holds a slot | a complete event of category `am` |
//! | a flow | an async slice (`b`, `e`) of process `flows`, release to completion; its deadline (`n`) |
//!
//! Times are whole microseconds after second 0. Events are in the order of the rows; the format requires no
//! order. Machines and slots are named (`M`) at their first event, so that memory is one bit per slot, and a
//! number for each active flow.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use slackline_model::schedule::{AmRow, FlowResult, FlowRow, NewRow, Origin, Outcome};
use slackline_model::{FlowId, Instance, SlotKind, SlotRange, Span, Time};

use super::{SlotNumbers, phase_words};
use crate::simulate::RowWriter;

/// The id of the process of flows.
const FLOWS: u64 = 1;

/// Writes a trace row by row.
#[derive(Debug)]
pub struct Perfetto<W> {
    out: W,
    slots: SlotNumbers,
    /// The machines and slots that have been named.
    named: BTreeSet<u64>,
    /// Whether an event was written, so that the next one needs a comma before it.
    has_events: bool,
    /// By active flow: the end of its last row.
    ends: BTreeMap<FlowId, Time>,
}

/// A slice on the track of a slot.
struct Slice<'a> {
    name: &'a str,
    category: &'a str,
    start: Time,
    length: Span,
    track: Track,
}

/// The ids of the process and the thread of a slot.
#[derive(Clone, Copy)]
struct Track {
    pid: u64,
    tid: u64,
}

impl<W: Write> Perfetto<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        let (slots, named, ends) = (SlotNumbers::default(), BTreeSet::new(), BTreeMap::new());
        Self { out, slots, named, has_events: false, ends }
    }

    /// Finishes the trace.
    ///
    /// # Errors
    /// An error of the output.
    pub fn end(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }

    /// Starts an event: writes the separator after the previous one.
    fn event(&mut self) -> io::Result<()> {
        let between: &[u8] = if self.has_events { b",\n" } else { b"\n" };
        self.has_events = true;
        self.out.write_all(between)
    }

    /// Names a process or a thread, and sets its sort index.
    fn name(&mut self, kind: &str, Track { pid, tid }: Track, name: &str, place: u64) -> io::Result<()> {
        let name = json(name);
        self.event()?;
        write!(
            self.out,
            r#"{{"ph":"M","name":"{kind}_name","pid":{pid},"tid":{tid},"args":{{"name":{name}}}}}"#
        )?;
        self.event()?;
        write!(
            self.out,
            r#"{{"ph":"M","name":"{kind}_sort_index","pid":{pid},"tid":{tid},"args":{{"sort_index":{place}}}}}"#
        )
    }

    /// The track of a slot. Names it at its first use.
    fn track(&mut self, live: &Instance, slot_kind: SlotKind, slot: u32) -> io::Result<Track> {
        let cluster = live.cluster();
        let (machine, number) = cluster.machine_of(slot_kind, slot);
        let track = Track { pid: FLOWS + 1 + u64::from(machine.0), tid: self.slots.of(slot_kind, slot) };
        if self.named.insert(track.pid) {
            self.name("process", track, &cluster.machine_name(machine), track.pid)?;
        }
        if self.named.insert(track.tid) {
            let kind =
                if slot_kind == SlotKind::Any { String::new() } else { format!(" ({})", slot_kind.name()) };
            self.name("thread", track, &format!("slot {number}{kind}"), u64::from(number))?;
        }
        Ok(track)
    }

    /// A slice. `arguments` are the members of a JSON object.
    fn slice(&mut self, slice: &Slice<'_>, arguments: &str) -> io::Result<()> {
        let Slice { name, category, start, length, track: Track { pid, tid } } = *slice;
        self.event()?;
        write!(
            self.out,
            r#"{{"ph":"X","name":{name},"cat":"{category}","ts":{},"dur":{},"pid":{pid},"tid":{tid},"args":{{{arguments}}}}}"#,
            start.0, length.0
        )
    }

    /// An event of the async slice of a flow; `name` is in JSON.
    fn of_flow(&mut self, phase: char, name: &str, id: u32, at: u64, arguments: &str) -> io::Result<()> {
        self.event()?;
        write!(
            self.out,
            r#"{{"ph":"{phase}","name":{name},"cat":"flow","id":"{id:#x}","ts":{at},"pid":{FLOWS},"tid":{FLOWS},"args":{{{arguments}}}}}"#
        )
    }

    fn ends_at(&mut self, flow: FlowId, end: Time) {
        self.ends.entry(flow).and_modify(|at| *at = end.max(*at)).or_insert(end);
    }
}

/// A text as JSON.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The categories of an attempt: its phase, and its outcome if it did not succeed.
fn category(kind: &str, outcome: Outcome) -> String {
    if outcome == Outcome::Done { kind.to_owned() } else { format!("{kind},{}", outcome.name()) }
}

impl<W: Write> RowWriter for Perfetto<W> {
    fn begin(&mut self, instance: &Instance, origin: &Origin) -> io::Result<()> {
        let machines = u64::from(instance.cluster().n_machines());
        self.slots = SlotNumbers::new(instance, FLOWS + 1 + machines);
        let (policy, clock) = (json(&origin.policy), origin.clock.name());
        let start = instance.start().map_or_else(|| "null".to_owned(), |start| json(&start.to_string()));
        let version = env!("CARGO_PKG_VERSION");
        write!(
            self.out,
            r#"{{"displayTimeUnit":"ms","otherData":{{"program":"slackline","version":"{version}","policy":{policy},"clock":"{clock}","start":{start}}},"traceEvents":["#
        )?;
        self.name("process", Track { pid: FLOWS, tid: FLOWS }, "flows", 0)
    }

    fn row(&mut self, live: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        let phase = live.phase(row.phase);
        let slot_kind = live.slot_kind_of(row.phase);
        self.ends_at(phase.flow, row.end);
        let name = json(&phase_words(live, row));
        let category = category(phase.kind.name(), row.outcome);
        let (flow, job) = (json(&live.flow(phase.flow).id), json(&live.job(phase.job).id));
        let length = row.end.since(row.start);
        let slots = places.iter().flat_map(|range| range.first..range.end());
        for (task, slot) in (row.first..).zip(slots) {
            let track = self.track(live, slot_kind, slot)?;
            let arguments = format!(
                r#""flow":{flow},"job":{job},"task":{task},"attempt":{},"outcome":"{}""#,
                row.attempt,
                row.outcome.name()
            );
            let slice = Slice { name: &name, category: &category, start: row.start, length, track };
            self.slice(&slice, &arguments)?;
            if row.startup > Span::ZERO {
                let length = row.startup.min(length);
                self.slice(&Slice { name: r#""startup""#, category: "startup", length, ..slice }, "")?;
            }
        }
        Ok(())
    }

    fn am(&mut self, live: &Instance, row: &AmRow) -> io::Result<()> {
        let job = live.job(row.job);
        self.ends_at(job.flow, row.end);
        let Some(slot) = row.slot else { return Ok(()) };
        let track = self.track(live, SlotKind::Any, slot)?;
        let name = json(&format!("{}/{} AM", live.flow(job.flow).id, job.id));
        let arguments = format!(r#""flow":{},"job":{}"#, json(&live.flow(job.flow).id), json(&job.id));
        let category = category("am", row.outcome);
        let length = row.end.since(row.start);
        let slice = Slice { name: &name, category: &category, start: row.start, length, track };
        self.slice(&slice, &arguments)?;
        let Some(up) = row.up.filter(|&up| up > row.start) else { return Ok(()) };
        let length = up.since(row.start).min(length);
        self.slice(&Slice { name: r#""startup""#, category: "startup", length, ..slice }, "")
    }

    fn flow(&mut self, live: &Instance, row: &FlowRow) -> io::Result<()> {
        let flow = live.flow(row.flow);
        let (name, id) = (json(&flow.id), flow.place.0);
        let micros = |seconds: f64| Time::from_seconds_nearest(seconds).0;
        let release = micros(row.release);
        let last = self.ends.remove(&row.flow).map_or(release, |at| at.0);
        let end = row.completion.map_or(last, micros).max(release);
        let number = |value: Option<f64>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
        let deadline = flow.deadline.map(Time::seconds);
        let status = match row.status {
            FlowResult::Done => "done",
            FlowResult::Failed => "failed",
        };
        let arguments = format!(
            r#""status":"{status}","start":{},"completion":{},"deadline":{},"cost":{}"#,
            number(row.start),
            number(row.completion),
            number(deadline),
            number(row.cost)
        );
        self.of_flow('b', &name, id, release, &arguments)?;
        if let Some(deadline) = flow.deadline {
            self.of_flow('n', r#""deadline""#, id, deadline.0, "")?;
        }
        self.of_flow('e', &name, id, end, "")
    }
}
