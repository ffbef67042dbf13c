//! Pajé traces: a header that defines the kinds of events, then a line an event, sorted by time.
//!
//! Containers are the cluster, its machines and their slots; the state of a slot is what runs on it. Rows come in the order
//! of their ends or starts, events have to be sorted by both, so that rows are kept: some 50 bytes for each range of slots.
//! Machines and slots that never have anything to do are left out. Times are seconds. The format cannot say a double quote in
//! a name: an apostrophe stands for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use slackline_model::schedule::{FlowRow, MasterRow, NewRow, Origin, Outcome};
use slackline_model::{FlowId, Instance, JobId, PhaseId, SlotKind, SlotRange, Time};

use super::phase_words;
use crate::simulate::RowWriter;

/// The kinds of events: name, number and fields after the time, which those from [`TIMED`] on have.
const KINDS: [(&str, &[(&str, &str)]); 7] = [
    ("PajeDefineContainerType", &[("Alias", "string"), ("Type", "string"), ("Name", "string")]),
    ("PajeDefineStateType", &[("Alias", "string"), ("Type", "string"), ("Name", "string")]),
    (
        "PajeDefineEntityValue",
        &[("Alias", "string"), ("Type", "string"), ("Name", "string"), ("Color", "color")],
    ),
    (
        "PajeCreateContainer",
        &[("Alias", "string"), ("Type", "string"), ("Container", "string"), ("Name", "string")],
    ),
    ("PajeDestroyContainer", &[("Type", "string"), ("Name", "string")]),
    ("PajePushState", &[("Type", "string"), ("Container", "string"), ("Value", "string"), ("Task", "int")]),
    ("PajePopState", &[("Type", "string"), ("Container", "string")]),
];

/// The first kind of events that has a time.
const TIMED: usize = 3;

/// Numbers of kinds.
const CONTAINER_TYPE: usize = 0;
const STATE_TYPE: usize = 1;
const VALUE: usize = 2;
const CREATE: usize = 3;
const DESTROY: usize = 4;
const PUSH: usize = 5;
const POP: usize = 6;

/// Colours of flows, one after the other: red, green and blue from 0 to 1.
const COLOURS: [&str; 8] = [
    "0.30 0.47 0.66",
    "0.95 0.56 0.17",
    "0.88 0.34 0.35",
    "0.46 0.72 0.70",
    "0.35 0.63 0.31",
    "0.93 0.79 0.28",
    "0.69 0.48 0.63",
    "0.61 0.46 0.37",
];

/// The colour of attempts that came to nothing.
const LOST: &str = "0.60 0.60 0.60";

/// What a slot may be busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Busy {
    Phase(PhaseId, Counts),
    Master(JobId),
}

/// Whether an attempt counts.
type Counts = bool;

/// Tasks that started and ended together on consecutive slots.
#[derive(Clone, Copy, Debug)]
struct Bar {
    start: Time,
    end: Time,
    slot_kind: SlotKind,
    slots: SlotRange,
    /// The task on the first slot.
    first: u32,
    /// Its value among all.
    value: u32,
}

/// Collects rows and writes a trace of them in the end.
#[derive(Debug)]
pub struct Paje<W> {
    out: W,
    bars: Vec<Bar>,
    /// Names and colours of values.
    values: Vec<(String, &'static str)>,
    numbers: BTreeMap<Busy, u32>,
    /// Flows in the order in which they are first seen, for their colours.
    flows: BTreeMap<FlowId, usize>,
    machines: BTreeMap<u32, String>,
    slots: BTreeSet<(u32, u32, SlotKind, u32)>,
    last: Time,
}

impl<W: Write> Paje<W> {
    /// Writes to `out`, which is best buffered.
    pub fn new(out: W) -> Self {
        Self {
            out,
            bars: Vec::new(),
            values: Vec::new(),
            numbers: BTreeMap::new(),
            flows: BTreeMap::new(),
            machines: BTreeMap::new(),
            slots: BTreeSet::new(),
            last: Time::ZERO,
        }
    }

    /// The number of a value; `name` says what it is called when it is first seen.
    fn value(&mut self, busy: Busy, flow: FlowId, name: impl FnOnce() -> String) -> u32 {
        let next = self.values.len() as u32;
        let number = *self.numbers.entry(busy).or_insert(next);
        if number == next {
            let n_flows = self.flows.len();
            let place = *self.flows.entry(flow).or_insert(n_flows);
            let is_lost = matches!(busy, Busy::Phase(_, false));
            self.values.push((name(), if is_lost { LOST } else { COLOURS[place % COLOURS.len()] }));
        }
        number
    }

    fn bar(&mut self, live: &Instance, bar: Bar) {
        let cluster = live.cluster();
        for slot in bar.slots.first..bar.slots.end() {
            let (machine, number) = cluster.machine_of(bar.slot_kind, slot);
            if self.slots.insert((machine.0, number, bar.slot_kind, slot)) {
                self.machines.entry(machine.0).or_insert_with(|| cluster.machine_name(machine));
            }
        }
        self.last = self.last.max(bar.end);
        self.bars.push(bar);
    }
}

/// A text between double quotes; what would end it or the line is something else.
fn quoted(text: &str) -> String {
    let plain = |c: char| match c {
        '"' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    format!("\"{}\"", text.chars().map(plain).collect::<String>())
}

/// The alias of a slot's container.
fn alias(slot_kind: SlotKind, slot: u32) -> String {
    format!("{}{slot}", &slot_kind.name()[..1])
}

/// A time in seconds, to the microsecond.
fn seconds(at: Time) -> String {
    format!("{}.{:06}", at.0 / 1_000_000, at.0 % 1_000_000)
}

/// When and in which order a bar begins or ends: of what happens at once, first what ends, then what has no length,
/// then what begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: Time,
    class: u8,
    bar: u32,
}

impl<W: Write> Paje<W> {
    /// Writes the trace. O(rows · log rows).
    ///
    /// # Errors
    /// Those of the output.
    pub fn end(mut self) -> io::Result<()> {
        self.header()?;
        self.containers()?;
        let mut moments = Vec::with_capacity(2 * self.bars.len());
        for (bar, number) in self.bars.iter().zip(0u32..) {
            if bar.end <= bar.start {
                moments.push(Moment { at: bar.start, class: 1, bar: number });
            } else {
                moments.push(Moment { at: bar.start, class: 2, bar: number });
                moments.push(Moment { at: bar.end, class: 0, bar: number });
            }
        }
        moments.sort_unstable();
        for Moment { at, class, bar } in moments {
            let Bar { slot_kind, slots, first, value, .. } = self.bars[bar as usize];
            let at = seconds(at);
            for (slot, task) in (slots.first..slots.end()).zip(first..) {
                let alias = alias(slot_kind, slot);
                if class > 0 {
                    writeln!(self.out, "{PUSH} {at} S {alias} v{value} {task}")?;
                }
                if class < 2 {
                    writeln!(self.out, "{POP} {at} S {alias}")?;
                }
            }
        }
        let last = seconds(self.last);
        for (_, _, slot_kind, slot) in self.slots.iter().rev() {
            writeln!(self.out, "{DESTROY} {last} T {}", alias(*slot_kind, *slot))?;
        }
        for machine in self.machines.keys().rev() {
            writeln!(self.out, "{DESTROY} {last} M machine{machine}")?;
        }
        writeln!(self.out, "{DESTROY} {last} C cluster")?;
        self.out.flush()
    }

    /// What kinds of events there are, then types and values.
    fn header(&mut self) -> io::Result<()> {
        for (number, (name, fields)) in KINDS.iter().enumerate() {
            writeln!(self.out, "%EventDef {name} {number}")?;
            if number >= TIMED {
                writeln!(self.out, "% Time date")?;
            }
            for (field, kind) in *fields {
                writeln!(self.out, "% {field} {kind}")?;
            }
            writeln!(self.out, "%EndEventDef")?;
        }
        writeln!(self.out, "{CONTAINER_TYPE} C 0 \"cluster\"")?;
        writeln!(self.out, "{CONTAINER_TYPE} M C \"machine\"")?;
        writeln!(self.out, "{CONTAINER_TYPE} T M \"slot\"")?;
        writeln!(self.out, "{STATE_TYPE} S T \"task\"")?;
        for (number, (name, colour)) in self.values.iter().enumerate() {
            writeln!(self.out, "{VALUE} v{number} S {} \"{colour}\"", quoted(name))?;
        }
        Ok(())
    }

    fn containers(&mut self) -> io::Result<()> {
        let zero = seconds(Time::ZERO);
        writeln!(self.out, "{CREATE} {zero} cluster C 0 \"cluster\"")?;
        for (machine, name) in &self.machines {
            writeln!(self.out, "{CREATE} {zero} machine{machine} M cluster {}", quoted(name))?;
        }
        for (machine, number, slot_kind, slot) in &self.slots {
            let kind =
                if *slot_kind == SlotKind::Any { String::new() } else { format!(" ({})", slot_kind.name()) };
            let name = quoted(&format!("{} slot {number}{kind}", self.machines[machine]));
            writeln!(self.out, "{CREATE} {zero} {} T machine{machine} {name}", alias(*slot_kind, *slot))?;
        }
        Ok(())
    }
}

impl<W: Write> RowWriter for Paje<W> {
    fn begin(&mut self, _: &Instance, _: &Origin) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, live: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        let counts = row.outcome == Outcome::Done;
        let name = || {
            let words = phase_words(live, row);
            if counts { words } else { format!("{words} (in vain)") }
        };
        let value = self.value(Busy::Phase(row.phase, counts), live.flow_of(row.phase), name);
        let slot_kind = live.slot_kind_of(row.phase);
        let mut first = row.first;
        for &slots in places {
            self.bar(live, Bar { start: row.start, end: row.end, slot_kind, slots, first, value });
            first += slots.len;
        }
        Ok(())
    }

    fn master(&mut self, live: &Instance, row: &MasterRow) -> io::Result<()> {
        let Some(slot) = row.slot else { return Ok(()) };
        let job = live.job(row.job);
        let name = || format!("{}/{} master", live.flow(job.flow).id, job.id);
        let value = self.value(Busy::Master(row.job), job.flow, name);
        let slots = SlotRange { first: slot, len: 1 };
        self.bar(
            live,
            Bar { start: row.start, end: row.end, slot_kind: SlotKind::Any, slots, first: 0, value },
        );
        Ok(())
    }

    fn flow(&mut self, _: &Instance, _: &FlowRow) -> io::Result<()> {
        Ok(())
    }
}
