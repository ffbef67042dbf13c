//! From draft to instance: every check, and what is derived once.

use std::collections::{BTreeMap, BTreeSet};

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::{Amount, Flow, Instance, Job, Phase, Pool};
use crate::cluster::{Cluster, Group, Slots};
use crate::cost::{CostFn, Metric, Objective};
use crate::draft::{
    CostDraft, Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, SplitDraft, TasksDraft, Weights,
};
use crate::error::{Invalid, Problem};
use crate::id::{FlowId, JobId, MachineId, PhaseId, PhaseKind, PoolId, TiVec};
use crate::tasks::{Run, Split, Tasks};
use crate::time::{SECONDS_MAX, Span, Time, Work};

/// Most slots a lane may have, so that slot numbers and their sums fit `u32`.
const SLOTS_MAX: u64 = 1 << 31;
/// Most tasks a phase may have.
const TASKS_MAX: u64 = 1 << 31;
/// Most flows after recurrences are written out.
const FLOWS_MAX: u64 = 10_000_000;
/// Most work of an instance in slot-seconds: its microseconds fit `u64`.
const WORK_MAX: f64 = 100.0 * SECONDS_MAX;

/// Collects problems with the path they belong to.
#[derive(Default)]
struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    fn add(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.list.push(Problem { path: path.into(), what: what.into() });
    }

    /// A time or amount in seconds: finite, not negative, not absurd.
    fn seconds(&mut self, path: impl FnOnce() -> String, value: f64) -> bool {
        let what = if !value.is_finite() {
            format!("found {value}, expected a finite number of seconds")
        } else if value < 0.0 {
            format!("found {value}, expected no negative number of seconds")
        } else if value > SECONDS_MAX {
            format!("found {value}, expected at most {SECONDS_MAX:e} seconds")
        } else {
            return true;
        };
        self.add(path(), what);
        false
    }

    /// A name: non-empty, printable, no space around it.
    fn name(&mut self, path: impl FnOnce() -> String, name: &str) {
        if name.is_empty() {
            self.add(path(), "found an empty name, expected a printable one");
        } else if name.trim() != name || !name.chars().all(printable) {
            self.add(path(), format!("found {name:?}, expected printable text without space around it"));
        }
    }
}

/// Whether a character shows as itself: none of the general categories C* (control, format, surrogate, private use,
/// unassigned), Zl and Zp.
fn printable(c: char) -> bool {
    let separates =
        |category| matches!(category, GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator);
    c.general_category_group() != GeneralCategoryGroup::Other && !separates(c.general_category())
}

pub(super) fn build(draft: &Draft) -> Result<Instance, Invalid> {
    let mut problems = Problems::default();
    let cluster = cluster(draft, &mut problems);
    let pools = pools(draft, &mut problems);
    let Some(cluster) = cluster else {
        return Err(Invalid { problems: problems.list });
    };
    let mut builder = Builder {
        instance: Instance {
            cluster,
            objective: Objective::new(draft.objective.metric, draft.objective.combine),
            weights: draft.weights,
            flows: TiVec::new(),
            jobs: TiVec::new(),
            phases: TiVec::new(),
            pools,
            topological: Vec::new(),
            n_cut: 0,
        },
        problems,
        work: 0.0,
    };
    builder.flows(draft);
    let Builder { mut instance, problems, .. } = builder;
    if !problems.list.is_empty() {
        return Err(Invalid { problems: problems.list });
    }
    resolve_costs(&mut instance)?;
    Ok(instance)
}

fn cluster(draft: &Draft, problems: &mut Problems) -> Option<Cluster> {
    let before = problems.list.len();
    if draft.machines.is_empty() {
        problems.add("cluster.machines", "found no machines, expected at least one");
        return None;
    }
    let typed = matches!(draft.machines[0].slots, Slots::Typed { .. });
    let mut totals = [0u64; 3];
    for (i, machine) in draft.machines.iter().enumerate() {
        let path = |field: &str| format!("cluster.machines[{i}].{field}");
        check_machine(machine, typed, &path, problems);
        let count = u64::from(machine.count);
        totals[2] += count;
        match machine.slots {
            Slots::Universal(n) => totals[0] += count * u64::from(n),
            Slots::Typed { map, reduce } => {
                totals[0] += count * u64::from(map);
                totals[1] += count * u64::from(reduce);
            }
        }
    }
    if totals.into_iter().any(|t| t >= SLOTS_MAX) {
        problems
            .add("cluster.machines", format!("found more than {SLOTS_MAX} machines or slots of one kind"));
    }
    if problems.list.len() > before {
        return None;
    }
    let groups = draft.machines.iter().map(|m| Group {
        name: m.name.clone(),
        count: m.count,
        speed: m.speed,
        slots: m.slots,
        rack: m.rack.clone(),
        first: MachineId(0),
    });
    let cluster = Cluster::new(groups.collect());
    duplicate_machines(&cluster, problems);
    (problems.list.len() == before).then_some(cluster)
}

fn check_machine(
    machine: &MachineDraft,
    typed: bool,
    path: &impl Fn(&str) -> String,
    problems: &mut Problems,
) {
    problems.name(|| path("name"), &machine.name);
    if machine.count == 0 {
        problems.add(path("count"), "found 0, expected at least 1 machine");
    }
    if !(machine.speed.is_finite() && machine.speed > 0.0 && (1e-6..=1e6).contains(&machine.speed)) {
        problems.add(path("speed"), format!("found {}, expected a number from 1e-6 to 1e6", machine.speed));
    }
    match machine.slots {
        Slots::Universal(0) => problems.add(path("slots"), "found 0 slots, expected at least 1"),
        Slots::Typed { map: 0, reduce: 0 } => {
            problems.add(path("slots"), "found neither map nor reduce slots, expected at least 1 slot");
        }
        Slots::Universal(_) if typed => {
            problems.add(path("slots"), "found universal slots where other machines have { map, reduce }; a cluster is all universal or all typed");
        }
        Slots::Typed { .. } if !typed => {
            problems.add(path("slots"), "found { map, reduce } where other machines have universal slots; a cluster is all universal or all typed");
        }
        _ => {}
    }
}

/// Two groups may collide by their names, or one's single machine with a numbered one of another.
fn duplicate_machines(cluster: &Cluster, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (i, group) in cluster.groups().raw.iter().enumerate() {
        let clash = !seen.insert((group.name.as_str(), group.count == 1))
            || (group.count == 1 && cluster.machine_named(&group.name) != Some(group.first))
            || (group.count == 1
                && cluster.groups().raw.iter().any(|other| other.count > 1 && numbered(group, other)));
        if clash {
            problems.add(
                format!("cluster.machines[{i}].name"),
                format!("found {:?}, which names a machine twice", group.name),
            );
        }
    }
}

/// Whether `single`'s name is that of a machine of `other`.
fn numbered(single: &Group, other: &Group) -> bool {
    single
        .name
        .strip_prefix(other.name.as_str())
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|digits| digits.parse::<u32>().ok().filter(|n| n.to_string() == digits))
        .is_some_and(|n| n < other.count)
}

fn pools(draft: &Draft, problems: &mut Problems) -> TiVec<PoolId, Pool> {
    let mut seen = BTreeSet::new();
    for (i, pool) in draft.pools.iter().enumerate() {
        problems.name(|| format!("pools[{i}].id"), &pool.id);
        if !seen.insert(pool.id.as_str()) {
            problems.add(format!("pools[{i}].id"), format!("found {:?} a second time", pool.id));
        }
    }
    let pools = draft.pools.iter().map(|pool| Pool {
        id: pool.id.clone(),
        min_map: pool.min_slots.map.unwrap_or(0),
        min_reduce: pool.min_slots.reduce.unwrap_or(0),
    });
    pools.collect()
}

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

struct Builder {
    instance: Instance,
    problems: Problems,
    /// Slot-seconds so far, all flows.
    work: f64,
}

impl Builder {
    fn flows(&mut self, draft: &Draft) {
        let total: u64 = draft.flows.iter().map(|f| f.repeat.map_or(1, |r| u64::from(r.times))).sum();
        if total > FLOWS_MAX {
            self.problems.add(
                "flows",
                format!("found {total} flows with their recurrences, expected at most {FLOWS_MAX}"),
            );
            return;
        }
        for (i, flow) in draft.flows.iter().enumerate() {
            let path = format!("flows[{i}]");
            let found = self.problems.list.len();
            let before = std::mem::take(&mut self.work);
            self.check_flow(&path, flow, draft);
            // Counted before anything is built, so that no sum of microseconds can overflow.
            if self.problems.list.len() > found {
                // What is wrong with a number is said at the number, not again where numbers are added up.
                self.work = before;
                continue;
            }
            self.work = before + self.work * flow.repeat.map_or(1.0, |r| f64::from(r.times));
            if self.work > WORK_MAX {
                self.problems
                    .add(path, format!("found more than {WORK_MAX:e} slot-seconds of work up to here"));
                return;
            }
            match flow.repeat {
                None => self.add_flow(i, flow, 0.0, flow.id.clone()),
                Some(repeat) => {
                    for k in 0..repeat.times {
                        let shift = repeat.every * f64::from(k);
                        self.add_flow(i, flow, shift, format!("{}#{k}", flow.id));
                    }
                }
            }
        }
        self.duplicate_flows(draft);
    }

    fn duplicate_flows(&mut self, draft: &Draft) {
        let mut names = BTreeSet::new();
        for (i, flow) in draft.flows.iter().enumerate() {
            let copies: Vec<String> = match flow.repeat {
                None => vec![flow.id.clone()],
                Some(repeat) => (0..repeat.times).map(|k| format!("{}#{k}", flow.id)).collect(),
            };
            for name in copies {
                if let Some(name) = names.replace(name) {
                    self.problems.add(format!("flows[{i}].id"), format!("found flow {name:?} a second time"));
                    break;
                }
            }
        }
    }

    fn check_flow(&mut self, path: &str, flow: &FlowDraft, draft: &Draft) {
        let problems = &mut self.problems;
        problems.name(|| format!("{path}.id"), &flow.id);
        problems.seconds(|| format!("{path}.release"), flow.release);
        if !(flow.weight.is_finite() && flow.weight >= 0.0) {
            problems.add(
                format!("{path}.weight"),
                format!("found {}, expected a finite number, 0 or more", flow.weight),
            );
        }
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
        let mut index = BTreeMap::new();
        for (k, job) in jobs.iter().enumerate() {
            self.problems.name(|| format!("{path}.jobs[{k}].id"), &job.id);
            if index.insert(job.id.as_str(), k).is_some() {
                self.problems.add(
                    format!("{path}.jobs[{k}].id"),
                    format!("found job {:?} a second time in its flow", job.id),
                );
            }
        }
        for (k, job) in jobs.iter().enumerate() {
            let path = format!("{path}.jobs[{k}]");
            for (a, after) in job.after.iter().enumerate() {
                if !index.contains_key(after.as_str()) {
                    self.problems.add(
                        format!("{path}.after[{a}]"),
                        format!("found {after:?}, expected the id of a job of the same flow"),
                    );
                }
            }
            if job.map.is_none() && job.reduce.is_none() {
                let found = if job.run.is_some() {
                    "found a run section without a map or reduce phase, expected at least one phase, or to be \
                     run for real, where the phases follow from the inputs"
                } else {
                    "found neither a map nor a reduce phase, expected at least one"
                };
                self.problems.add(path.clone(), found);
            }
            for kind in PhaseKind::ALL {
                self.check_phase(&path, job, kind);
            }
        }
        if self.problems.list.len() > found {
            return;
        }
        let after: Vec<Vec<usize>> = jobs
            .iter()
            .map(|j| j.after.iter().filter_map(|a| index.get(a.as_str()).copied()).collect())
            .collect();
        if let Err(cycle) = topological(&after) {
            let names: Vec<_> = cycle.iter().map(|&k| jobs[k].id.as_str()).collect();
            self.problems.add(
                format!("{path}.jobs[{}].after", cycle[0]),
                format!("found a cycle: {} comes after itself by way of {}", names[0], names.join(" after ")),
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
        let lane = self.instance.cluster.lane_of(kind);
        if self.instance.cluster.slots(lane) == 0 {
            self.problems.add(at.clone(), format!("found a {kind} phase, but no machine has {kind} slots"));
        }
        self.check_tasks(&at, &phase.tasks);
    }

    fn check_tasks(&mut self, at: &str, tasks: &TasksDraft) {
        let problems = &mut self.problems;
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
                    check_split(&at, split, &self.instance.cluster, problems);
                    sum.add(split.count, split.seconds);
                }
            }
            TasksDraft::Work { work, tasks } => {
                if let Some(tasks) = tasks {
                    many(u64::from(*tasks), "tasks");
                }
                problems.seconds(|| format!("{at}.work"), *work);
                // Work in all is rounded, not each task of it.
                sum.add(1, *work);
            }
        }
        if problems.list.len() == before && sum.is_changed() {
            let WorkSum { exact, rounded } = sum;
            problems.add(
                at,
                format!(
                    "found {exact} slot-seconds of work, which tasks of whole microseconds make {rounded}, \
                     expected tasks long enough that rounding changes at most 0.1 %"
                ),
            );
        }
        self.work += sum.exact;
    }

    fn add_flow(&mut self, given_as: usize, draft: &FlowDraft, shift: f64, name: String) {
        let Builder { instance, problems, .. } = self;
        let flow = FlowId::from(instance.flows.len());
        let base = instance.jobs.len();
        let index: BTreeMap<_, _> = draft.jobs.iter().enumerate().map(|(k, j)| (j.id.as_str(), k)).collect();
        let mut after: Vec<Vec<usize>> = Vec::with_capacity(draft.jobs.len());
        for job in &draft.jobs {
            let mut list: Vec<usize> = job.after.iter().map(|a| index[a.as_str()]).collect();
            list.sort_unstable();
            list.dedup();
            after.push(list);
        }
        for (k, job) in draft.jobs.iter().enumerate() {
            let id = JobId::from(base + k);
            let mut phase = |kind: PhaseKind, draft: &Option<PhaseDraft>| {
                let draft = draft.as_ref()?;
                let (min_slots, max_slots) = limits(job, kind);
                let amount = amount(&draft.tasks, &instance.cluster);
                let tasks = if let Amount::Tasks(tasks) = &amount { tasks.count() } else { u32::MAX };
                let cap = max_slots.unwrap_or(u32::MAX).min(tasks);
                instance.phases.push(Phase { job: id, kind, amount, min_slots, cap });
                Some(PhaseId::from(instance.phases.len() - 1))
            };
            let (map, reduce) = (phase(PhaseKind::Map, &job.map), phase(PhaseKind::Reduce, &job.reduce));
            let after = after[k].iter().map(|&a| JobId::from(base + a)).collect();
            instance.jobs.push(Job { id: job.id.clone(), flow, after, before: Vec::new(), map, reduce });
        }
        for (k, list) in after.iter().enumerate() {
            for &a in list {
                instance.jobs[JobId::from(base + a)].before.push(JobId::from(base + k));
            }
        }
        let Ok(order) = topological(&after) else { return };
        instance.topological.extend(order.into_iter().map(|k| JobId::from(base + k)));
        if name.len() > 1 << 16 {
            problems.add(format!("flows[{given_as}].id"), "found a name of more than 65,536 bytes");
        }
        instance.flows.push(Flow {
            id: name,
            release: Time::from_seconds_nearest(draft.release + shift),
            weight: draft.weight,
            deadline: draft.deadline.map(|d| Time::from_seconds_nearest(d + shift)),
            cost: CostFn::zero(),
            pool: draft.pool.as_ref().and_then(|name| instance.pools.position(|p| p.id == *name)),
            user: draft.user.clone(),
            work: Work::ZERO,
            critical_path: 0.0,
            alone: 0.0,
            jobs: base as u32..instance.jobs.len() as u32,
            given_as,
            given_weight: draft.weight,
            given_cost: draft.cost.as_ref().map(|cost| shifted(cost, shift)),
        });
        derive(instance, flow);
    }
}

/// Where a limit was written: at the phase or at the job.
fn where_limit(path: &str, at_phase: Option<u32>, kind: PhaseKind) -> String {
    if at_phase.is_some() { format!("{path}.{kind}") } else { path.to_owned() }
}

/// Minimum and maximum of a phase: its own, else the job's.
fn limits(job: &JobDraft, kind: PhaseKind) -> (u32, Option<u32>) {
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
            if let Some(slope) = slope
                && !(slope.is_finite() && *slope >= 0.0)
            {
                problems.add(
                    format!("{path}.slope"),
                    format!("found {slope}, expected a finite number, 0 or more"),
                );
            }
            (points, "points")
        }
    };
    if points.is_empty() {
        problems.add(format!("{path}.{field}"), format!("found no {field}, expected at least one"));
    }
    for (i, &(time, value)) in points.iter().enumerate() {
        problems.seconds(|| format!("{path}.{field}[{i}][0]"), time);
        if !(value.is_finite() && value >= 0.0) {
            problems.add(
                format!("{path}.{field}[{i}][1]"),
                format!("found a cost of {value}, expected a finite number, 0 or more"),
            );
        }
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

fn amount(tasks: &TasksDraft, cluster: &Cluster) -> Amount {
    let span = Span::from_seconds_nearest;
    match tasks {
        TasksDraft::Uniform { tasks, seconds } => Amount::Tasks(Tasks::uniform(*tasks, span(*seconds))),
        TasksDraft::Each(list) => {
            Amount::Tasks(Tasks::from_runs(list.iter().map(|&s| Run { count: 1, span: span(s) })))
        }
        TasksDraft::Splits(list) => {
            let mut first = 0;
            let mut splits = Vec::with_capacity(list.len());
            for split in list {
                let hosts = split.hosts.iter().filter_map(|h| cluster.machine_named(h)).collect();
                splits.push(Split { first, count: split.count, hosts });
                first += split.count;
            }
            let runs = list.iter().map(|s| Run { count: s.count, span: span(s.seconds) });
            // Splits without any host say nothing about places.
            let placed = splits.iter().any(|s: &Split| !s.hosts.is_empty());
            Amount::Tasks(Tasks::from_runs(runs).with_splits(if placed { splits } else { Vec::new() }))
        }
        TasksDraft::Work { work, tasks: None } => Amount::Malleable(Work::from_slot_seconds_nearest(*work)),
        TasksDraft::Work { work, tasks: Some(n) } => {
            Amount::Tasks(Tasks::share(Work::from_slot_seconds_nearest(*work), *n))
        }
    }
}

/// The same cost `shift` seconds later.
fn shifted(cost: &CostDraft, shift: f64) -> CostDraft {
    let move_all = |points: &[(f64, f64)]| points.iter().map(|&(t, c)| (t + shift, c)).collect();
    match cost {
        CostDraft::Metric(metric) => CostDraft::Metric(*metric),
        CostDraft::Steps(steps) => CostDraft::Steps(move_all(steps)),
        CostDraft::Piecewise { points, slope } => {
            CostDraft::Piecewise { points: move_all(points), slope: *slope }
        }
    }
}

pub(super) fn phase_alone(cluster: &Cluster, phase: &Phase) -> f64 {
    phase.work().slot_seconds() / cluster.fastest(cluster.lane_of(phase.kind), phase.cap)
}

/// Fills in what follows from a flow's jobs: work, critical path, time alone.
pub(super) fn derive(instance: &mut Instance, flow: FlowId) {
    let mut ends: BTreeMap<JobId, f64> = BTreeMap::new();
    let mut per_lane = [Work::ZERO; 2];
    let mut critical_path = 0f64;
    for &id in instance.topological_of(flow) {
        let job = &instance.jobs[id];
        let mut end = job.after.iter().map(|a| ends[a]).fold(0.0, f64::max);
        for phase in job.phases() {
            let phase = &instance.phases[phase];
            end += phase_alone(&instance.cluster, phase);
            per_lane[instance.cluster.lane_of(phase.kind).index()] += phase.work();
        }
        critical_path = critical_path.max(end);
        ends.insert(id, end);
    }
    let area = instance.cluster.lanes().iter().map(|&lane| match per_lane[lane.index()] {
        Work::ZERO => 0.0,
        work => work.slot_seconds() / instance.cluster.capacity(lane),
    });
    let alone = area.fold(critical_path, f64::max);
    let flow = &mut instance.flows[flow];
    flow.work = per_lane[0] + per_lane[1];
    flow.critical_path = critical_path;
    flow.alone = alone;
}

/// Sets every flow's weight and cost function from the objective.
pub(super) fn resolve_costs(instance: &mut Instance) -> Result<(), Invalid> {
    let mut problems = Problems::default();
    let Instance { flows, objective, weights, .. } = instance;
    for flow in flows.iter_mut() {
        flow.weight = if *weights == Weights::Ignore { 1.0 } else { flow.given_weight };
        let own = match (&flow.given_cost, objective.metric) {
            (Some(CostDraft::Metric(metric)), _) => by_metric(flow, *metric),
            (Some(CostDraft::Steps(steps)), _) => Some(CostFn::steps(steps.clone()).scaled(flow.weight)),
            (Some(CostDraft::Piecewise { points, slope }), _) => {
                let slope = slope.unwrap_or_else(|| last_slope(points));
                Some(CostFn::piecewise(points.clone(), slope).scaled(flow.weight))
            }
            (None, metric) => by_metric(flow, metric),
        };
        if let Some(cost) = own {
            flow.cost = cost;
        } else {
            let needs = if objective.metric == Metric::Sla { "steps" } else { "points" };
            problems.add(
                format!("flows[{}].cost", flow.given_as),
                format!(
                    "found no cost for flow {:?}; the metric {} needs `{needs}` on every flow",
                    flow.id, objective.metric
                ),
            );
        }
    }
    if problems.list.is_empty() { Ok(()) } else { Err(Invalid { problems: problems.list }) }
}

fn last_slope(points: &[(f64, f64)]) -> f64 {
    match points {
        [.., a, b] if b.0 > a.0 => (b.1 - a.1) / (b.0 - a.0),
        _ => 0.0,
    }
}

fn by_metric(flow: &Flow, metric: Metric) -> Option<CostFn> {
    let (w, r) = (flow.weight, flow.release.seconds());
    let deadline = flow.deadline.map(Time::seconds);
    let over = |size: f64| if size > 0.0 { CostFn::linear(w / size, r) } else { CostFn::zero() };
    Some(match metric {
        Metric::Completion => CostFn::linear(w, 0.0),
        Metric::Response => CostFn::linear(w, r),
        Metric::Makespan => CostFn::linear(1.0, 0.0),
        Metric::Stretch => over(flow.work.slot_seconds()),
        Metric::Slowdown => over(flow.alone),
        Metric::Tardy => deadline.map_or_else(CostFn::zero, |d| CostFn::steps(vec![(d, w)])),
        Metric::Tardiness => deadline.map_or_else(CostFn::zero, |d| CostFn::tardiness(w, d)),
        Metric::Lateness => deadline.map_or_else(CostFn::zero, |d| CostFn::linear(w, d)),
        Metric::Sla | Metric::Piecewise => return None,
    })
}

/// Topological order of `0..after.len()`, smallest index first among the ready ones, or a cycle.
fn topological(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let n = after.len();
    let mut waiting: Vec<usize> = vec![0; n];
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); n];
    for (k, list) in after.iter().enumerate() {
        waiting[k] = list.len();
        for &a in list {
            before[a].push(k);
        }
    }
    let mut ready: BTreeSet<usize> = (0..n).filter(|&k| waiting[k] == 0).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(k) = ready.pop_first() {
        order.push(k);
        for &b in &before[k] {
            waiting[b] -= 1;
            if waiting[b] == 0 {
                ready.insert(b);
            }
        }
    }
    if order.len() == n { Ok(order) } else { Err(cycle(after, &waiting)) }
}

/// A cycle among the jobs that never became ready: follow unfinished predecessors until one repeats.
fn cycle(after: &[Vec<usize>], waiting: &[usize]) -> Vec<usize> {
    let mut seen = vec![usize::MAX; after.len()];
    let mut path = Vec::new();
    let mut at = waiting.iter().position(|&w| w > 0).expect("invariant: a cycle leaves jobs waiting");
    while seen[at] == usize::MAX {
        seen[at] = path.len();
        path.push(at);
        at = *after[at]
            .iter()
            .find(|&&a| waiting[a] > 0)
            .expect("invariant: a waiting job waits for a waiting job");
    }
    let mut found = path.split_off(seen[at]);
    found.push(at);
    found
}
