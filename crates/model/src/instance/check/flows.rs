//! Finds the problems of the flows of a draft.

use std::collections::BTreeSet;

use super::Problems;
use crate::cluster::Cluster;
use crate::cost::Metric;
use crate::draft::{CostDraft, Draft, FlowDraft, JobDraft, SplitDraft, TasksDraft};
use crate::error::Invalid;
use crate::id::PhaseKind;
use crate::instance::TASKS_MAX;
use crate::instance::order::topological;
use crate::job_positions::JobPositions;
use crate::time::{SECONDS_MAX, Span};

/// The limit on flows after recurrences are expanded.
const FLOWS_MAX: u64 = 10_000_000;
/// The limit on the name of a flow, bytes.
const NAME_MAX: usize = 1 << 16;
/// The limit on the work of an instance in slot-seconds: its microseconds fit `u64`.
const WORK_MAX: f64 = 100.0 * SECONDS_MAX;

/// Work of a phase in slot-seconds: as it is given, and with every task rounded to microseconds.
#[derive(Clone, Copy, Default)]
struct WorkSum {
    exact: f64,
    rounded: f64,
}

impl WorkSum {
    fn add(&mut self, tasks: u32, seconds: f64) {
        let tasks = f64::from(tasks);
        self.exact += tasks * seconds;
        self.rounded += tasks * Span::from_seconds_nearest(seconds).seconds();
    }

    /// Whether rounding changes the work by more than 0.1 %.
    fn is_changed(self) -> bool {
        (self.rounded - self.exact).abs() > 1e-3 * self.exact
    }
}

/// Checks all flows of a draft for this cluster.
pub(super) fn check(draft: &Draft, cluster: &Cluster, problems: &mut Problems) {
    Flows { draft, cluster, problems, work: 0.0 }.check();
}

/// Checks a flow that is read separately, except whether its name is unique. `head` has no flows, and `work`
/// is the work of all flows so far, in slot-seconds. Paths are within the flow.
pub(in crate::instance) fn check_one(
    head: &Draft,
    cluster: &Cluster,
    flow: &FlowDraft,
    work: &mut f64,
) -> Result<(), Invalid> {
    let mut problems = Problems::default();
    let mut flows = Flows { draft: head, cluster, problems: &mut problems, work: 0.0 };
    flows.check_flow("", flow);
    *work += flows.work * flow.repeat.map_or(1.0, |repeat| f64::from(repeat.times));
    // An error in a number is reported at the number, not again in sums of numbers.
    if problems.list.is_empty() && *work > WORK_MAX {
        problems.add("", format!("found more than {WORK_MAX:e} slot-seconds of work up to here"));
    }
    for problem in &mut problems.list {
        problem.path = problem.path.trim_start_matches('.').to_owned();
    }
    problems.none()
}

struct Flows<'a> {
    draft: &'a Draft,
    cluster: &'a Cluster,
    problems: &'a mut Problems,
    /// Slot-seconds so far, all flows.
    work: f64,
}

impl Flows<'_> {
    fn check(&mut self) {
        let flows = &self.draft.flows;
        let total: u64 = flows.iter().map(|f| f.repeat.map_or(1, |r| u64::from(r.times))).sum();
        if total > FLOWS_MAX {
            self.problems.add(
                "flows",
                format!("found {total} flows with their recurrences, expected at most {FLOWS_MAX}"),
            );
            return;
        }
        for (i, flow) in flows.iter().enumerate() {
            let path = format!("flows[{i}]");
            let found = self.problems.list.len();
            let before = std::mem::take(&mut self.work);
            self.check_flow(&path, flow);
            // Counted before anything is built, so that no sum of microseconds can overflow.
            if self.problems.list.len() > found {
                // An error in a number is reported at the number, not again in sums of numbers.
                self.work = before;
                continue;
            }
            self.work = before + self.work * flow.repeat.map_or(1.0, |r| f64::from(r.times));
            if self.work > WORK_MAX {
                self.problems
                    .add(path, format!("found more than {WORK_MAX:e} slot-seconds of work up to here"));
                return;
            }
        }
        self.duplicate_flows();
    }

    fn duplicate_flows(&mut self) {
        let mut names = BTreeSet::new();
        for (i, flow) in self.draft.flows.iter().enumerate() {
            for (name, _) in recurrences(flow) {
                if let Some(name) = names.replace(name) {
                    self.problems.add(format!("flows[{i}].id"), format!("found flow {name:?} a second time"));
                    break;
                }
            }
        }
    }

    fn check_flow(&mut self, path: &str, flow: &FlowDraft) {
        let draft = self.draft;
        let problems = &mut *self.problems;
        problems.name(|| format!("{path}.id"), &flow.id);
        if recurrences(flow).next_back().is_some_and(|(name, _)| name.len() > NAME_MAX) {
            problems.add(format!("{path}.id"), "found a name of more than 65,536 bytes");
        }
        problems.seconds(|| format!("{path}.release"), flow.release);
        problems.amount(|| format!("{path}.weight"), "", flow.weight);
        if let Some(deadline) = flow.deadline {
            problems.seconds(|| format!("{path}.deadline"), deadline);
        }
        if let Some(pool) = &flow.pool
            && !draft.pools.iter().any(|p| p.id == *pool)
        {
            let known: Vec<_> = draft.pools.iter().map(|p| p.id.as_str()).collect();
            problems
                .add(format!("{path}.pool"), format!("found {pool:?}, expected one of the pools {known:?}"));
        }
        if let Some(user) = &flow.user {
            problems.name(|| format!("{path}.user"), user);
        }
        if let Some(repeat) = flow.repeat {
            if repeat.times == 0 {
                problems.add(format!("{path}.repeat.times"), "found 0, expected at least 1");
            }
            if problems.seconds(|| format!("{path}.repeat.every"), repeat.every) {
                let last = repeat.every * f64::from(repeat.times);
                problems.seconds(|| format!("{path}.repeat"), last + flow.deadline.unwrap_or(flow.release));
            }
        }
        if let Some(cost) = &flow.cost {
            check_cost(&format!("{path}.cost"), cost, problems);
        }
        if flow.jobs.is_empty() {
            problems.add(format!("{path}.jobs"), "found no jobs, expected at least one");
        }
        self.check_jobs(path, &flow.jobs);
    }

    fn check_jobs(&mut self, path: &str, jobs: &[JobDraft]) {
        let found = self.problems.list.len();
        let mut positions = JobPositions::new(jobs);
        for (k, job) in jobs.iter().enumerate() {
            self.problems.name(|| format!("{path}.jobs[{k}].id"), &job.id);
            if !positions.are_unique() && positions.find(&job.id) != Some(k) {
                self.problems.add(
                    format!("{path}.jobs[{k}].id"),
                    format!("found job {:?} a second time in its flow", job.id),
                );
            }
        }
        let mut all_after = Vec::with_capacity(jobs.len());
        for (k, job) in jobs.iter().enumerate() {
            let path = format!("{path}.jobs[{k}]");
            let mut places = Vec::with_capacity(job.after.len());
            for (a, after) in job.after.iter().enumerate() {
                match positions.find(after) {
                    Some(place) => places.push(place),
                    None => self.problems.add(
                        format!("{path}.after[{a}]"),
                        format!("found {after:?}, expected the id of a job of the same flow"),
                    ),
                }
            }
            all_after.push(places);
            if job.map.is_none() && job.reduce.is_none() {
                let found = if job.run.is_some() {
                    "found a run section without a map or reduce phase, expected at least one phase (only `slackline run` derives the phases from the inputs)"
                } else {
                    "found neither a map nor a reduce phase, expected at least one"
                };
                self.problems.add(path.clone(), found);
            }
            if let Some(end) = job.recorded_end {
                self.problems.seconds(|| format!("{path}.recorded_end"), end);
            }
            for kind in PhaseKind::ALL {
                self.check_phase(&path, job, kind);
            }
        }
        if self.problems.list.len() > found {
            return;
        }
        if let Err(cycle) = topological(&all_after) {
            let names: Vec<_> = cycle.iter().rev().map(|&k| jobs[k].id.as_str()).collect();
            self.problems.add(
                format!("{path}.jobs[{}].after", cycle[0]),
                format!("found a dependency cycle: {}", names.join(" -> ")),
            );
        }
    }

    fn check_phase(&mut self, path: &str, job: &JobDraft, kind: PhaseKind) {
        let (min, max) = limits(job, kind);
        let phase = match kind {
            PhaseKind::Map => &job.map,
            PhaseKind::Reduce => &job.reduce,
        };
        let Some(phase) = phase else { return };
        let at = format!("{path}.{kind}");
        if max == Some(0) {
            self.problems.add(
                format!("{}.max_slots", where_limit(path, phase.max_slots, kind)),
                "found 0, expected at least 1 slot",
            );
        }
        if let (min, Some(max)) = (min, max)
            && min > max
        {
            self.problems.add(
                format!("{}.min_slots", where_limit(path, phase.min_slots, kind)),
                format!("found a minimum of {min} slots for the {kind} phase, above its maximum of {max}"),
            );
        }
        let slot_kind = self.cluster.slot_kind_of(kind);
        if self.cluster.slots(slot_kind) == 0 {
            self.problems.add(at.clone(), format!("found a {kind} phase, but no machine has {kind} slots"));
        }
        self.check_tasks(&at, &phase.tasks);
    }

    fn check_tasks(&mut self, at: &str, tasks: &TasksDraft) {
        let problems = &mut *self.problems;
        let before = problems.list.len();
        let mut many = |count: u64, field: &str| {
            if count == 0 {
                problems.add(
                    format!("{at}.{field}"),
                    "found no tasks, expected at least one (leave an empty phase out)",
                );
            } else if count >= TASKS_MAX {
                problems.add(
                    format!("{at}.{field}"),
                    format!("found {count} tasks, expected fewer than {TASKS_MAX}"),
                );
            }
        };
        let mut sum = WorkSum::default();
        match tasks {
            TasksDraft::Uniform { tasks, seconds } => {
                many(u64::from(*tasks), "tasks");
                problems.seconds(|| format!("{at}.seconds"), *seconds);
                sum.add(*tasks, *seconds);
            }
            TasksDraft::Each(list) => {
                many(list.len() as u64, "seconds");
                for (i, &seconds) in list.iter().enumerate() {
                    if !problems.seconds(|| format!("{at}.seconds[{i}]"), seconds) {
                        break;
                    }
                    sum.add(1, seconds);
                }
            }
            TasksDraft::Splits(list) => {
                many(list.iter().map(|s| u64::from(s.count)).sum(), "splits");
                for (i, split) in list.iter().enumerate() {
                    let at = format!("{at}.splits[{i}]");
                    check_split(&at, split, self.cluster, problems);
                    sum.add(split.count, split.seconds);
                }
            }
            TasksDraft::Work { work, tasks } => {
                if let Some(tasks) = tasks {
                    many(u64::from(*tasks), "tasks");
                }
                problems.seconds(|| format!("{at}.work"), *work);
                // Only the total work is rounded, not each task.
                sum.add(1, *work);
            }
        }
        if problems.list.len() == before && sum.is_changed() {
            let WorkSum { exact, rounded } = sum;
            problems.add(
                at,
                format!(
                    "found {exact} slot-seconds of work, but {rounded} after rounding each task to whole microseconds, expected longer tasks, so that rounding changes at most 0.1 %"
                ),
            );
        }
        self.work += sum.exact;
    }
}

/// The recurrences of a flow of a draft: the name of each, and its offset in seconds.
pub(in crate::instance) fn recurrences(flow: &FlowDraft) -> impl DoubleEndedIterator<Item = (String, f64)> {
    let times = flow.repeat.map_or(1, |repeat| repeat.times);
    (0..times).filter_map(move |k| flow.recurrence(k))
}

/// The place of a limit in the document: at the phase or at the job.
fn where_limit(path: &str, at_phase: Option<u32>, kind: PhaseKind) -> String {
    if at_phase.is_some() { format!("{path}.{kind}") } else { path.to_owned() }
}

/// Minimum and maximum of a phase: its own, else the job's.
pub(in crate::instance) fn limits(job: &JobDraft, kind: PhaseKind) -> (u32, Option<u32>) {
    let (phase, min, max) = match kind {
        PhaseKind::Map => (&job.map, job.min_slots.map, job.max_slots.map),
        PhaseKind::Reduce => (&job.reduce, job.min_slots.reduce, job.max_slots.reduce),
    };
    let own_min = phase.as_ref().and_then(|p| p.min_slots);
    let own_max = phase.as_ref().and_then(|p| p.max_slots);
    (own_min.or(min).unwrap_or(0), own_max.or(max))
}

fn check_split(at: &str, split: &SplitDraft, cluster: &Cluster, problems: &mut Problems) {
    if split.count == 0 {
        problems.add(format!("{at}.count"), "found 0, expected at least 1 task");
    }
    problems.seconds(|| format!("{at}.seconds"), split.seconds);
    for (h, host) in split.hosts.iter().enumerate() {
        if cluster.machine_named(host).is_none() {
            problems.add(
                format!("{at}.hosts[{h}]"),
                format!("found {host:?}, expected the name of a machine of the cluster"),
            );
        }
    }
}

fn check_cost(path: &str, cost: &CostDraft, problems: &mut Problems) {
    let (points, field) = match cost {
        CostDraft::Metric(Metric::Sla | Metric::Piecewise) => {
            problems.add(path, "found a metric that needs numbers, expected `steps` or `points` with them");
            return;
        }
        CostDraft::Metric(_) => return,
        CostDraft::Steps(steps) => (steps, "steps"),
        CostDraft::Piecewise { points, slope } => {
            if let Some(slope) = slope {
                problems.amount(|| format!("{path}.slope"), "", *slope);
            }
            (points, "points")
        }
    };
    if points.is_empty() {
        problems.add(format!("{path}.{field}"), format!("found no {field}, expected at least one"));
    }
    for (i, &(time, value)) in points.iter().enumerate() {
        problems.seconds(|| format!("{path}.{field}[{i}][0]"), time);
        problems.amount(|| format!("{path}.{field}[{i}][1]"), "a cost of ", value);
        if i > 0 && time < points[i - 1].0 {
            problems.add(
                format!("{path}.{field}[{i}][0]"),
                format!("found time {time} after {}, expected times that do not decrease", points[i - 1].0),
            );
        }
        if i > 0 && value < points[i - 1].1 {
            problems.add(
                format!("{path}.{field}[{i}][1]"),
                format!(
                    "found a cost of {value} after {}, expected costs that do not decrease",
                    points[i - 1].1
                ),
            );
        }
    }
}
