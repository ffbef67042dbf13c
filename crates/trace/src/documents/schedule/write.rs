//! Writes schedules as JSON, row by row: a schedule may have millions of rows, so no tree is built of it.

use std::io::{self, Write};

use serde::Serialize;
use slackline_model::schedule::{
    Allocation, FlowResult, FlowRow, MasterRow, NewRow, Outcome, Schedule, Segment,
};
use slackline_model::{Cluster, Instance, JobId, Objective, PhaseId, Profile, SlotKind, SlotRange, Span};

use super::wire::ProfileValues;
use super::{COUNTS, Meta, gap_absolute, wire};
use crate::documents::comparison::Figure;
use crate::reading::parse::VERSION;
use crate::reading::wire::NamedValues;

/// Writes a schedule of an instance as a document, one row a line. O(rows + machines named in them).
///
/// `out` is best buffered. Numbers are written so that they are read back to the last bit.
///
/// # Errors
/// Those of `out`.
pub fn write_schedule(
    mut out: impl Write,
    instance: &Instance,
    schedule: &Schedule,
    meta: &Meta,
) -> io::Result<()> {
    let out = &mut out;
    head(out, instance, schedule, meta)?;
    list(out, "flows", &schedule.flows, |out, row| flow(out, instance, row))?;
    if !schedule.allocations.is_empty() || schedule.tasks.is_empty() {
        out.write_all(b",\n")?;
        list(out, "allocations", &schedule.allocations, |out, row| allocation(out, instance, row))?;
    }
    if !schedule.tasks.is_empty() {
        out.write_all(b",\n")?;
        let tasks = &schedule.tasks;
        list(out, "tasks", tasks.rows(), |out, row| task(out, instance, &row.into(), tasks.places(row)))?;
    }
    if !schedule.masters.is_empty() {
        out.write_all(b",\n")?;
        list(out, "masters", &schedule.masters, |out, row| master(out, instance, row))?;
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

pub(super) fn flow(out: &mut impl Write, instance: &Instance, row: &FlowRow) -> io::Result<()> {
    out.write_all(b"{\"flow\": ")?;
    value(out, &instance.flow(row.flow).id)?;
    for (key, number) in [
        ("release", Some(row.release)),
        ("start", row.start),
        ("completion", row.completion),
        ("cost", row.cost),
    ] {
        write!(out, ", \"{key}\": ")?;
        value(out, &number)?;
    }
    let status = match row.status {
        FlowResult::Done => "done",
        FlowResult::Failed => "failed",
    };
    write!(out, ", \"status\": \"{status}\"}}")
}

/// The beginning of a row: its phase.
fn phase(out: &mut impl Write, instance: &Instance, phase: PhaseId) -> io::Result<()> {
    job(out, instance, instance.phase(phase).job)?;
    write!(out, ", \"phase\": \"{}\"", instance.phase(phase).kind)
}

/// The beginning of a row: its job.
fn job(out: &mut impl Write, instance: &Instance, job: JobId) -> io::Result<()> {
    let job = instance.job(job);
    out.write_all(b"{\"flow\": ")?;
    value(out, &instance.flow(job.flow).id)?;
    out.write_all(b", \"job\": ")?;
    value(out, &job.id)
}

pub(super) fn master(out: &mut impl Write, instance: &Instance, row: &MasterRow) -> io::Result<()> {
    job(out, instance, row.job)?;
    if let Some(slot) = row.slot {
        let (machine, slot) = instance.cluster().machine_of(SlotKind::Any, slot);
        out.write_all(b", \"machine\": ")?;
        value(out, &instance.cluster().machine_name(machine))?;
        write!(out, ", \"slot\": {slot}")?;
    }
    out.write_all(b", \"start\": ")?;
    value(out, &row.start.seconds())?;
    out.write_all(b", \"up\": ")?;
    value(out, &row.up.map(slackline_model::Time::seconds))?;
    out.write_all(b", \"end\": ")?;
    value(out, &row.end.seconds())?;
    outcome(out, row.outcome)?;
    out.write_all(b"}")
}

fn outcome(out: &mut impl Write, outcome: Outcome) -> io::Result<()> {
    if outcome == Outcome::Done {
        return Ok(());
    }
    write!(out, ", \"outcome\": \"{}\"", outcome.name())
}

fn span(out: &mut impl Write, start: f64, end: f64) -> io::Result<()> {
    out.write_all(b", \"start\": ")?;
    value(out, &start)?;
    out.write_all(b", \"end\": ")?;
    value(out, &end)
}

fn allocation(out: &mut impl Write, instance: &Instance, row: &Allocation) -> io::Result<()> {
    phase(out, instance, row.phase)?;
    span(out, row.start, row.end)?;
    write!(out, ", \"slots\": {}}}", row.slots)
}

pub(super) fn task(
    out: &mut impl Write,
    instance: &Instance,
    row: &NewRow,
    places: &[SlotRange],
) -> io::Result<()> {
    phase(out, instance, row.phase)?;
    write!(out, ", \"task\": {}", row.first)?;
    let (cluster, slot_kind) = (instance.cluster(), instance.slot_kind_of(row.phase));
    if row.count == 1 {
        let (machine, slot) = cluster.machine_of(slot_kind, places[0].first);
        out.write_all(b", \"machine\": ")?;
        value(out, &cluster.machine_name(machine))?;
        write!(out, ", \"slot\": {slot}")?;
    } else {
        write!(out, ", \"count\": {}, \"places\": [", row.count)?;
        for (i, place) in machine_by_machine(cluster, slot_kind, places).enumerate() {
            out.write_all(if i == 0 { b"" } else { b", " })?;
            value(out, &place)?;
        }
        out.write_all(b"]")?;
    }
    span(out, row.start.seconds(), row.end.seconds())?;
    if row.startup > Span::ZERO {
        out.write_all(b", \"startup\": ")?;
        value(out, &row.startup.seconds())?;
    }
    write!(out, ", \"attempt\": {}", row.attempt)?;
    outcome(out, row.outcome)?;
    out.write_all(b"}")
}

/// Ranges of slots of their kind as `machine/slot` or `machine/first-last`, split where machines end.
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
