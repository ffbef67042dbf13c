//! Writes schedules as JSON, row by row: a schedule may have millions of rows, so no tree is built of it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;
use slackline_model::schedule::{Allocation, AmRow, FlowRow, NewRow, Schedule, Segment};
use slackline_model::{Cluster, Instance, JobId, Objective, Profile, SlotKind, SlotRange, Time};

use super::wire::ProfileValues;
use super::{COUNTS, Meta, gap_absolute, wire};
use crate::documents::comparison::Figure;
use crate::reading::parse::VERSION;
use crate::reading::wire::{Name, NamedValues};

/// Writes a schedule of an instance as a document, one row a line. O(rows + machines named in them).
///
/// `out` is best buffered. Numbers are written so that they are read back to the last bit.
///
/// # Errors
/// Errors of `out`.
pub fn write_schedule(
    mut out: impl Write,
    instance: &Instance,
    schedule: &Schedule,
    meta: &Meta,
) -> io::Result<()> {
    let out = &mut out;
    head(out, instance, schedule, meta)?;
    list(out, "flows", &schedule.flows, |out, of| row(out, &flow(instance, of)))?;
    if !schedule.allocations.is_empty() || schedule.tasks.is_empty() {
        out.write_all(b",\n")?;
        list(out, "allocations", &schedule.allocations, |out, of| row(out, &allocation(instance, of)))?;
    }
    if !schedule.tasks.is_empty() {
        out.write_all(b",\n")?;
        let tasks = &schedule.tasks;
        list(out, "tasks", tasks.rows(), |out, of| row(out, &task(instance, &of.into(), tasks.places(of))))?;
    }
    if !schedule.ams.is_empty() {
        out.write_all(b",\n")?;
        list(out, "ams", &schedule.ams, |out, of| row(out, &am(instance, of)))?;
    }
    out.write_all(b"\n}\n")?;
    out.flush()
}

fn head(out: &mut impl Write, instance: &Instance, schedule: &Schedule, meta: &Meta) -> io::Result<()> {
    write!(out, "{{\n  \"slackline\": {VERSION}")?;
    entry(out, "version", &meta.version)?;
    write!(out, ",\n  \"workload\": {{\"sha256\": ")?;
    value(out, &meta.sha256)?;
    write!(out, ", \"options\": ")?;
    value(out, &meta.options)?;
    write!(out, "}}")?;
    if let Some(start) = instance.start() {
        entry(out, "start", &start.to_string())?;
    }
    entry(out, "seed", &meta.seed)?;
    entry(out, "policy", &schedule.policy)?;
    entry(out, "minima", &schedule.minima)?;
    entry(out, "clock", schedule.clock.name())?;
    if schedule.slowstart < 1.0 {
        entry(out, "slowstart", &schedule.slowstart)?;
    }
    if let Some(profile) = &schedule.profile {
        entry(out, "profile", &values(profile))?;
    }
    if !schedule.segments.is_empty() {
        out.write_all(b",\n")?;
        list(out, "segments", &schedule.segments, |out, one| value(out, &segment(instance.cluster(), one)))?;
    }
    let Objective { metric, combine } = schedule.objective;
    let combine = combine.name();
    write!(out, ",\n  \"objective\": {{\"metric\": \"{metric}\", \"combine\": \"{combine}\"}}")?;
    entry(out, "cost", &schedule.cost)?;
    entry(out, "lower_bound", &schedule.lower_bound)?;
    entry(out, "gap", &schedule.gap)?;
    if let Some(absolute) = gap_absolute(schedule) {
        entry(out, "gap_absolute", &absolute)?;
    }
    entry(out, "status", &meta.status)?;
    if !schedule.metrics.is_empty() {
        let metrics = schedule.metrics.iter().map(|(name, value)| (name.clone(), figure(name, *value)));
        entry(out, "metrics", &NamedValues(metrics.collect::<Vec<_>>()))?;
    }
    if !meta.jobs.is_empty() {
        out.write_all(b",\n")?;
        list(out, "jobs", &meta.jobs, |out, job| value(out, job))?;
    }
    if !meta.choices.is_empty() {
        out.write_all(b",\n")?;
        list(out, "choices", &meta.choices, |out, choice| value(out, choice))?;
    }
    if !meta.rules.is_empty() {
        out.write_all(b",\n")?;
        list(out, "rules", &meta.rules, |out, rule| value(out, rule))?;
    }
    if let Some(winner) = &meta.winner {
        entry(out, "winner", winner)?;
    }
    if !meta.not_modelled.is_empty() {
        out.write_all(b",\n")?;
        list(out, "not_modelled", &meta.not_modelled, |out, left_out| value(out, left_out))?;
    }
    out.write_all(b",\n")
}

/// A segment as documents write it.
fn segment(cluster: &Cluster, segment: &Segment) -> wire::Segment {
    let places = segment.slots.as_ref().map(|slots| {
        let kinds = cluster.slot_kinds().iter();
        let ranges =
            kinds.flat_map(|&slot_kind| machine_by_machine(cluster, slot_kind, &slots[slot_kind.index()]));
        ranges.collect()
    });
    let Segment { start, policy, slowstart, .. } = segment;
    wire::Segment { start: start.seconds(), policy: policy.clone(), slowstart: *slowstart, places }
}

/// A profile as documents write it: numbers as numbers, ranges as texts.
pub(super) fn values(profile: &Profile) -> ProfileValues {
    let value = |text: String| match serde_json::from_str(&text) {
        Ok(number @ serde_json::Value::Number(_)) => number,
        _ => text.into(),
    };
    let values = profile.pairs().map(|(name, text)| (name.to_owned(), value(text))).collect();
    ProfileValues { name: profile.name().to_owned(), values }
}

/// A metric as documents write it: counts are whole numbers.
fn figure(name: &str, value: f64) -> Figure {
    if COUNTS.contains(&name) { Figure::Count(value as u64) } else { Figure::Number(value) }
}

fn value<T: Serialize + ?Sized>(out: &mut impl Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(io::Error::from)
}

fn entry<T: Serialize + ?Sized>(out: &mut impl Write, key: &str, what: &T) -> io::Result<()> {
    write!(out, ",\n  \"{key}\": ")?;
    value(out, what)
}

fn list<W: Write, T>(
    out: &mut W,
    key: &str,
    rows: &[T],
    row: impl Fn(&mut W, &T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "  \"{key}\": [")?;
    for (i, item) in rows.iter().enumerate() {
        out.write_all(if i == 0 { b"\n    " } else { b",\n    " })?;
        row(out, item)?;
    }
    out.write_all(if rows.is_empty() { b"]" } else { b"\n  ]" })
}

/// A row in a line, with a space after each comma and each colon.
pub(super) fn row(out: &mut impl Write, row: &impl Serialize) -> io::Result<()> {
    row.serialize(&mut serde_json::Serializer::with_formatter(out, Spaced)).map_err(io::Error::from)
}

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        out.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(out, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

pub(super) fn flow<'a>(instance: &'a Instance, row: &FlowRow) -> wire::Flow<'a> {
    let FlowRow { flow, release, start, completion, cost, status } = *row;
    wire::Flow { flow: name(&instance.flow(flow).id), release, start, completion, cost, status }
}

/// The names of a job and of its flow.
fn names(instance: &Instance, job: JobId) -> (Name<'_>, Name<'_>) {
    let job = instance.job(job);
    (name(&instance.flow(job.flow).id), name(&job.id))
}

fn name(text: &str) -> Name<'_> {
    Name(text.into())
}

pub(super) fn am<'a>(instance: &'a Instance, row: &AmRow) -> wire::Am<'a> {
    let (flow, job) = names(instance, row.job);
    let place = row.slot.map(|slot| machine_and_slot(instance.cluster(), SlotKind::Any, slot));
    let (machine, slot) = place.unzip();
    wire::Am {
        flow,
        job,
        machine,
        slot,
        start: row.start.seconds(),
        up: row.up.map(Time::seconds),
        end: row.end.seconds(),
        outcome: row.outcome,
    }
}

fn allocation<'a>(instance: &'a Instance, row: &Allocation) -> wire::Allocation<'a> {
    let phase = instance.phase(row.phase);
    let (flow, job) = names(instance, phase.job);
    wire::Allocation { flow, job, phase: phase.kind, start: row.start, end: row.end, slots: row.slots }
}

pub(super) fn task<'a>(instance: &'a Instance, row: &NewRow, places: &[SlotRange]) -> wire::Task<'a> {
    let (phase, cluster) = (instance.phase(row.phase), instance.cluster());
    let (flow, job) = names(instance, phase.job);
    let slot_kind = instance.slot_kind_of(row.phase);
    let one = (row.count == 1).then(|| machine_and_slot(cluster, slot_kind, places[0].first));
    let several = (row.count != 1)
        .then(|| machine_by_machine(cluster, slot_kind, places).map(|place| Name(place.into())).collect());
    let (machine, slot) = one.unzip();
    wire::Task {
        flow,
        job,
        phase: phase.kind,
        task: row.first,
        count: row.count,
        machine,
        slot,
        places: several,
        start: row.start.seconds(),
        end: row.end.seconds(),
        startup: row.startup.seconds(),
        attempt: row.attempt,
        outcome: row.outcome,
    }
}

fn machine_and_slot<'a>(cluster: &Cluster, slot_kind: SlotKind, slot: u32) -> (Name<'a>, u32) {
    let (machine, slot) = cluster.machine_of(slot_kind, slot);
    (Name(cluster.machine_name(machine).into()), slot)
}

/// Ranges of slots of their kind as `machine/slot` or `machine/first-last`, split at the ends of machines.
fn machine_by_machine<'a>(
    cluster: &'a Cluster,
    slot_kind: SlotKind,
    places: &'a [SlotRange],
) -> impl Iterator<Item = String> + 'a {
    places.iter().flat_map(move |range| {
        let mut at = range.first;
        std::iter::from_fn(move || {
            (at < range.end()).then(|| {
                let (machine, slot) = cluster.machine_of(slot_kind, at);
                let slots =
                    cluster.machine_slots(slot_kind, machine).expect("invariant: its slot was just found");
                let len = slots.end().min(range.end()) - at;
                at += len;
                let name = cluster.machine_name(machine);
                match len {
                    1 => format!("{name}/{slot}"),
                    _ => format!("{name}/{slot}-{}", slot + len - 1),
                }
            })
        })
    })
}
