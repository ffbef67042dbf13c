//! Resolves names of flows, jobs, machines and slots to ids of an instance, and checks the claims of a
//! schedule.

use std::collections::BTreeMap;

use slackline_model::schedule::{Allocation, AmRow, FlowRow, NewRow, Schedule, Segment};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{
    Cluster, FlowId, Instance, JobId, MachineId, PhaseId, PhaseKind, Profile, SlotRange, Span, Time,
    tolerance,
};

use super::{gap_absolute, wire};
use crate::reading::error::{Fault, Faults, TraceError};
use crate::reading::format::Format;
use crate::reading::source::places;
use crate::reading::times::Beginning;
use crate::reading::wire::Name;

pub(super) struct ScheduleFault {
    path: String,
    what: String,
    /// Whether the document is sound and only disagrees with the workload.
    mismatch: bool,
}

impl ScheduleFault {
    pub(super) fn input(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into(), mismatch: false }
    }

    pub(super) fn mismatch(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into(), mismatch: true }
    }

    /// The same below `row`.
    pub(super) fn within(self, row: &str) -> Self {
        Self { path: format!("{row}.{}", self.path), ..self }
    }

    pub(super) fn into_error(self, file: &str, text: &str, format: Format) -> TraceError {
        let place = places(text, format, &[&self.path])[0];
        let list = vec![Fault { place, path: self.path, what: self.what }];
        let faults = Faults { file: file.to_owned(), list };
        if self.mismatch { TraceError::Mismatch(faults) } else { TraceError::Input(faults) }
    }
}

/// The start that a schedule names must be that of its workload.
pub(super) fn check_start(start: Option<&Beginning>, instance: &Instance) -> Result<(), ScheduleFault> {
    let Some(Beginning(start)) = start.filter(|start| instance.start() != Some(&start.0)) else {
        return Ok(());
    };
    let real = instance.start().map_or_else(|| "none".to_owned(), ToString::to_string);
    Err(ScheduleFault::mismatch("start", format!("found {start}, but the start of the workload is {real}")))
}

/// The profile that a schedule names, each parameter as a text or a number.
pub(super) fn profile(values: Option<&wire::ProfileValues>) -> Result<Option<Profile>, ScheduleFault> {
    let Some(wire::ProfileValues { name, values }) = values else { return Ok(None) };
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let texts: Vec<(&str, String)> =
        values.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    let profile = Profile::of(name, texts.iter().map(|(name, text)| (*name, text.as_str())));
    profile.map(Some).map_err(|problem| ScheduleFault::input("profile", problem.to_string()))
}

pub(super) fn fraction(path: &str, value: f64) -> Result<f64, ScheduleFault> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(ScheduleFault::input(path, format!("found {value}, expected a fraction from 0 to 1")))
}

/// Claims are finite numbers.
pub(super) fn check_finite(claims: &[(&str, Option<f64>)]) -> Result<(), ScheduleFault> {
    claims.iter().try_for_each(|&(path, claim)| finite(path, claim).map(drop))
}

/// The one claim that a schedule does not store must follow from the stored ones.
pub(super) fn check_gap_absolute(schedule: &Schedule, claim: Option<f64>) -> Result<(), ScheduleFault> {
    let (Some(claim), Some(real)) = (claim, gap_absolute(schedule)) else { return Ok(()) };
    if (claim - real).abs() <= tolerance::of_amount(real) {
        return Ok(());
    }
    let what = format!("found {claim}, but the cost is {real} above the bound");
    Err(ScheduleFault::mismatch("gap_absolute", what))
}

fn finite(path: &str, value: Option<f64>) -> Result<Option<f64>, ScheduleFault> {
    match value {
        Some(value) if !value.is_finite() => {
            Err(ScheduleFault::input(path, format!("found {value}, expected a finite number")))
        }
        value => Ok(value),
    }
}

/// A time of a row: finite and within the limits of an instance.
fn seconds(path: &str, value: f64) -> Result<f64, ScheduleFault> {
    if (0.0..=SECONDS_MAX).contains(&value) {
        return Ok(value);
    }
    let what = format!("found {value}, expected seconds from 0 to {SECONDS_MAX:e}");
    Err(ScheduleFault::input(path, what))
}

/// Names of flows and jobs with their ids in an instance, which may come and go.
#[derive(Clone, Debug, Default)]
pub struct Names {
    flows: BTreeMap<String, FlowNames>,
    /// Machines that were looked up before: groups are searched one by one, and rows are many.
    machines: BTreeMap<String, MachineId>,
}

#[derive(Clone, Debug)]
struct FlowNames {
    id: FlowId,
    jobs: BTreeMap<String, JobId>,
}

impl Names {
    /// Those of all flows that are there.
    pub fn new(instance: &Instance) -> Self {
        let mut names = Self::default();
        for flow in instance.flows().keys() {
            names.admit(instance, flow);
        }
        names
    }

    pub fn admit(&mut self, instance: &Instance, id: FlowId) {
        let flow = instance.flow(id);
        let jobs = flow.jobs().map(|job| (instance.job(job).id.clone(), job)).collect();
        self.flows.insert(flow.id.clone(), FlowNames { id, jobs });
    }

    pub fn forget(&mut self, flow: &str) {
        self.flows.remove(flow);
    }

    /// Whether a flow of that name is there.
    pub fn has_flow(&self, flow: &str) -> bool {
        self.flows.contains_key(flow)
    }

    fn flow(&self, name: &Name<'_>) -> Result<&FlowNames, ScheduleFault> {
        self.flows.get(&*name.0).ok_or_else(|| {
            ScheduleFault::mismatch(
                "flow",
                format!("found flow {:?}, which the workload does not have", name.0),
            )
        })
    }

    fn job(&self, flow: &Name<'_>, job: &Name<'_>) -> Result<JobId, ScheduleFault> {
        self.flow(flow)?.jobs.get(&*job.0).copied().ok_or_else(|| {
            let what = format!("found job {:?}, which flow {:?} does not have", job.0, flow.0);
            ScheduleFault::mismatch("job", what)
        })
    }

    fn phase(
        &self,
        instance: &Instance,
        flow: &Name<'_>,
        job: &Name<'_>,
        kind: PhaseKind,
    ) -> Result<PhaseId, ScheduleFault> {
        let id = self.job(flow, job)?;
        instance.job(id).phase(kind).ok_or_else(|| {
            let what =
                format!("found a {kind} phase, which job {:?} of flow {:?} does not have", job.0, flow.0);
            ScheduleFault::mismatch("phase", what)
        })
    }

    pub(super) fn flow_row(&self, row: &wire::Flow<'_>) -> Result<FlowRow, ScheduleFault> {
        Ok(FlowRow {
            flow: self.flow(&row.flow)?.id,
            release: seconds("release", row.release)?,
            start: row.start.map(|at| seconds("start", at)).transpose()?,
            completion: row.completion.map(|at| seconds("completion", at)).transpose()?,
            cost: finite("cost", row.cost)?,
            status: row.status,
        })
    }

    pub(super) fn allocation(
        &self,
        instance: &Instance,
        row: &wire::Allocation<'_>,
    ) -> Result<Allocation, ScheduleFault> {
        Ok(Allocation {
            phase: self.phase(instance, &row.flow, &row.job, row.phase)?,
            start: seconds("start", row.start)?,
            end: seconds("end", row.end)?,
            slots: row.slots,
        })
    }

    pub(super) fn am(&mut self, instance: &Instance, row: &wire::Am<'_>) -> Result<AmRow, ScheduleFault> {
        let job = self.job(&row.flow, &row.job)?;
        let slot = match (&row.machine, row.slot) {
            (Some(machine), Some(slot)) => {
                let found = self.slot(instance.cluster(), PhaseKind::Map, &machine.0, slot);
                Some(found.map_err(|what| ScheduleFault::mismatch("slot", what))?)
            }
            (None, None) => None,
            _ => {
                return Err(ScheduleFault::input(
                    "slot",
                    "found one of `machine` and `slot`, expected both or none",
                ));
            }
        };
        let time = |path, value| seconds(path, value).map(Time::from_seconds_nearest);
        Ok(AmRow {
            job,
            slot,
            start: time("start", row.start)?,
            up: row.up.map(|up| time("up", up)).transpose()?,
            end: time("end", row.end)?,
            outcome: row.outcome,
        })
    }

    /// A row of tasks and the slots they are on.
    pub(super) fn task(
        &mut self,
        instance: &Instance,
        row: &wire::Task<'_>,
    ) -> Result<(NewRow, Vec<SlotRange>), ScheduleFault> {
        let phase = self.phase(instance, &row.flow, &row.job, row.phase)?;
        let (kind, cluster) = (instance.phase(phase).kind, instance.cluster());
        if row.count == 0 || row.task.checked_add(row.count).is_none() {
            let what = format!(
                "found {} tasks that start at task {}, expected at least 1 task, numbered below {}",
                row.count,
                row.task,
                u32::MAX
            );
            return Err(ScheduleFault::input("count", what));
        }
        let places = match (&row.machine, row.slot, &row.places) {
            (Some(machine), Some(slot), None) if row.count == 1 => {
                let found = self.slot(cluster, kind, &machine.0, slot);
                vec![SlotRange {
                    first: found.map_err(|what| ScheduleFault::mismatch("slot", what))?,
                    len: 1,
                }]
            }
            (None, None, Some(places)) => self.places(cluster, kind, places, row.count)?,
            _ => {
                let what =
                    "found neither `machine` with `slot` (one task) nor `places` (several), expected one";
                return Err(ScheduleFault::input("task", what));
            }
        };
        let time = |path, value| seconds(path, value).map(Time::from_seconds_nearest);
        let row = NewRow {
            phase,
            first: row.task,
            count: row.count,
            start: time("start", row.start)?,
            end: time("end", row.end)?,
            startup: Span::from_seconds_nearest(seconds("startup", row.startup)?),
            attempt: row.attempt,
            outcome: row.outcome,
        };
        Ok((row, places))
    }

    pub(super) fn segment(
        &mut self,
        cluster: &Cluster,
        row: &wire::Segment,
    ) -> Result<Segment, ScheduleFault> {
        let slots = row.places.as_ref().map(|places| self.segment_slots(cluster, places)).transpose()?;
        Ok(Segment {
            start: Time::from_seconds_nearest(seconds("start", row.start)?),
            policy: row.policy.clone(),
            slowstart: fraction("slowstart", row.slowstart)?,
            slots,
        })
    }

    /// The slots that places name, of both kinds.
    fn segment_slots(
        &mut self,
        cluster: &Cluster,
        places: &[String],
    ) -> Result<[Vec<SlotRange>; 2], ScheduleFault> {
        let mut slots = [Vec::new(), Vec::new()];
        for (i, name) in places.iter().enumerate() {
            let path = || format!("places[{i}]");
            let Some((machine, first, last)) = parse_place(name) else {
                return Err(invalid_place(path(), name));
            };
            let id = self.machine(cluster, machine).map_err(|what| ScheduleFault::mismatch(path(), what))?;
            // Map slots come before reduce slots.
            let mut before = 0;
            for &slot_kind in cluster.slot_kinds() {
                let Some(all) = cluster.machine_slots(slot_kind, id) else { continue };
                let (from, to) = (first.max(before), (last + 1).min(before + all.len));
                if from < to {
                    let range = SlotRange { first: all.first + from - before, len: to - from };
                    push_range(&mut slots[slot_kind.index()], range);
                }
                before += all.len;
            }
            if last >= before {
                let what = format!("found slot {last} of machine {machine:?}, which has {before} slots");
                return Err(ScheduleFault::mismatch(path(), what));
            }
        }
        Ok(slots)
    }

    /// The ranges of slots of their kind that places name; neighbours become one range.
    fn places(
        &mut self,
        cluster: &Cluster,
        kind: PhaseKind,
        names: &[Name<'_>],
        count: u32,
    ) -> Result<Vec<SlotRange>, ScheduleFault> {
        let mut ranges: Vec<SlotRange> = Vec::new();
        let mut total = 0u64;
        for (i, name) in names.iter().enumerate() {
            let path = || format!("places[{i}]");
            let Some((machine, first, last)) = parse_place(&name.0) else {
                return Err(invalid_place(path(), &name.0));
            };
            let mut slot = |number| {
                self.slot(cluster, kind, machine, number)
                    .map_err(|what| ScheduleFault::mismatch(path(), what))
            };
            // Slots of a machine are consecutive in their slot kind, so the ends vouch for the middle.
            let range = SlotRange { first: slot(first)?, len: last - first + 1 };
            slot(last)?;
            total += u64::from(range.len);
            push_range(&mut ranges, range);
        }
        if total == u64::from(count) {
            return Ok(ranges);
        }
        Err(ScheduleFault::input(
            "places",
            format!("found {total} slots, expected as many as tasks: {count}"),
        ))
    }

    /// The slot of its kind that is `slot` of the machine of that name.
    fn slot(&mut self, cluster: &Cluster, kind: PhaseKind, machine: &str, slot: u32) -> Result<u32, String> {
        let id = self.machine(cluster, machine)?;
        cluster.slot_at(kind, id, slot).ok_or_else(|| {
            format!("found slot {slot} of machine {machine:?}, which is no slot of {kind} tasks")
        })
    }

    fn machine(&mut self, cluster: &Cluster, machine: &str) -> Result<MachineId, String> {
        let known = self.machines.get(machine).copied().or_else(|| cluster.machine_named(machine));
        let Some(id) = known else {
            return Err(format!("found machine {machine:?}, which the cluster does not have"));
        };
        if !self.machines.contains_key(machine) {
            self.machines.insert(machine.to_owned(), id);
        }
        Ok(id)
    }
}

fn invalid_place(path: String, found: &str) -> ScheduleFault {
    ScheduleFault::input(
        path,
        format!("found {found:?}, expected \"machine/slot\" or \"machine/first-last\""),
    )
}

/// Adds a range, which may continue the last one.
fn push_range(ranges: &mut Vec<SlotRange>, range: SlotRange) {
    match ranges.last_mut() {
        Some(last) if last.end() == range.first => last.len += range.len,
        _ => ranges.push(range),
    }
}

/// Machine, first and last slot of a place; the machine's name may itself hold a slash.
fn parse_place(place: &str) -> Option<(&str, u32, u32)> {
    let (machine, slots) = place.rsplit_once('/')?;
    let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    let (first, last) = (number(first)?, number(last)?);
    (first <= last && last < u32::MAX).then_some((machine, first, last))
}
