//! Converts between the workload document and the model's draft; the model knows no file formats.

use std::collections::BTreeMap;
use std::ops::Bound;

use slackline_model::cluster::{Cluster, Group, Slots};
use slackline_model::draft::{
    AttemptDraft, CostDraft, Draft, FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, PoolDraft,
    Repeat, RunDraft, SplitDraft, TasksDraft,
};
use slackline_model::{Metric, Objective, Start};

use super::{run, wire};
use crate::reading::parse::VERSION;
use crate::reading::times::{Beginning, Duration, Moment};
use crate::reading::wire::{MetricName, Numbers, Pair, SchemaName, Seconds};

/// Path and fault.
type Fault = (String, String);

/// The draft of a document, or every table in it with contradicting keys. With `now` second 0 is then, and
/// the document's start only gives the time zone of its clock times.
pub(crate) fn to_draft(workload: wire::Workload, now: Option<&Start>) -> Result<Draft, Vec<Fault>> {
    let mut faults = Vec::new();
    let start = match (workload.start, now) {
        (Some(Beginning(start)), Some(now)) => Some(now.in_zone_of(&start)),
        (None, Some(now)) => Some(now.clone()),
        (start, None) => start.map(|Beginning(start)| start),
    };
    let machines = workload.cluster.map_or_else(Vec::new, |cluster| cluster.machines);
    let wire::Objective { metric, combine, weights } = workload.objective;
    let flows: Vec<FlowDraft> = (workload.flows.into_iter().enumerate())
        .map(|(i, flow)| to_flow(&format!("flows[{i}]"), flow, start.as_ref(), &mut faults))
        .collect();
    let draft = Draft {
        machines: machines.into_iter().map(machine).collect(),
        objective: Objective::new(metric.map_or_else(|| usual_metric(&flows), Metric::from), combine),
        weights,
        pools: workload
            .pools
            .into_iter()
            .map(|pool| PoolDraft { id: pool.id, min_slots: per_phase(pool.min_slots) })
            .collect(),
        flows,
        start,
    };
    if faults.is_empty() { Ok(draft) } else { Err(faults) }
}

/// The metric of a document that names none.
fn usual_metric(flows: &[FlowDraft]) -> Metric {
    let are_all_due = !flows.is_empty() && flows.iter().all(|flow| flow.deadline.is_some());
    if are_all_due { Metric::Tardiness } else { Metric::Response }
}

fn machine(machine: wire::Machine) -> MachineDraft {
    let slots = match machine.slots {
        Numbers::Both(n) => Slots::Generic(n),
        Numbers::Each(Pair { map, reduce }) => {
            Slots::MapReduce { map: map.unwrap_or(0), reduce: reduce.unwrap_or(0) }
        }
    };
    let wire::Machine { name, count, speed, rack, .. } = machine;
    MachineDraft { name, count, speed, slots, rack }
}

fn per_phase(numbers: Option<Numbers>) -> PerPhase {
    match numbers {
        None => PerPhase::default(),
        Some(Numbers::Both(n)) => PerPhase::both(n),
        Some(Numbers::Each(Pair { map, reduce })) => PerPhase { map, reduce },
    }
}

pub(crate) fn to_flow(
    path: &str,
    flow: wire::Flow,
    start: Option<&Start>,
    faults: &mut Vec<Fault>,
) -> FlowDraft {
    let mut clock = Clock { start, bound: Bound::Included(0.0), faults };
    let release = clock.seconds(|| format!("{path}.release"), &flow.release);
    clock.bound = Bound::Excluded(release);
    let deadline = flow.deadline.map(|moment| clock.seconds(|| format!("{path}.deadline"), &moment));
    let cost = flow.cost.and_then(|cost| to_cost(&format!("{path}.cost"), cost, &mut clock));
    if flow.repeat.is_some_and(|repeat| repeat.every.0 == 0.0 && repeat.times > 1) {
        let what = "found 0, expected the time from one release to the next, such as 1h";
        faults.push((format!("{path}.repeat.every"), what.to_owned()));
    }
    let jobs = flow.jobs.into_iter().enumerate();
    FlowDraft {
        id: flow.id,
        release,
        weight: flow.weight,
        deadline,
        cost,
        pool: flow.pool,
        user: flow.user,
        priority: flow.priority,
        quota: None,
        repeat: flow.repeat.map(|wire::Repeat { every, times }| Repeat { every: every.0, times }),
        jobs: jobs.map(|(k, job)| to_job(&format!("{path}.jobs[{k}]"), job, faults)).collect(),
    }
}

/// Makes seconds of the points in time of a flow.
struct Clock<'a> {
    start: Option<&'a Start>,
    /// From when on a time of day counts.
    bound: Bound<f64>,
    faults: &'a mut Vec<Fault>,
}

impl Clock<'_> {
    /// Seconds after the start; 0 with a fault.
    fn seconds(&mut self, path: impl FnOnce() -> String, moment: &Moment) -> f64 {
        moment.0.seconds(self.start, self.bound).unwrap_or_else(|what| {
            self.faults.push((path(), what));
            0.0
        })
    }

    /// The same of the first of each pair.
    fn pairs(&mut self, path: &str, pairs: &[(Moment, f64)]) -> Vec<(f64, f64)> {
        let pair = |(i, (moment, cost)): (usize, &(Moment, f64))| {
            (self.seconds(|| format!("{path}[{i}][0]"), moment), *cost)
        };
        pairs.iter().enumerate().map(pair).collect()
    }
}

fn to_cost(path: &str, cost: wire::Cost, clock: &mut Clock<'_>) -> Option<CostDraft> {
    let wire::Cost { kind, steps, points, slope } = cost;
    let fault = match (kind, steps, points, slope) {
        (MetricName::Sla | MetricName::Steps, Some(steps), None, None) => {
            return Some(CostDraft::Steps(clock.pairs(&format!("{path}.steps"), &steps)));
        }
        (MetricName::Sla | MetricName::Steps, ..) => {
            "found a cost of steps with other keys than `steps`, \
             expected { kind = \"steps\", steps = [[time, cost], …] }"
        }
        (MetricName::Piecewise, None, Some(points), slope) => {
            let points = clock.pairs(&format!("{path}.points"), &points);
            return Some(CostDraft::Piecewise { points, slope });
        }
        (MetricName::Piecewise, ..) => {
            "found a piecewise cost with other keys than `points` and `slope`, \
             expected { kind = \"piecewise\", points = [[time, cost], …] }"
        }
        (metric, None, None, None) => return Some(CostDraft::Metric(metric.into())),
        _ => "found numbers with a metric that takes none, expected `kind` alone",
    };
    clock.faults.push((path.to_owned(), fault.to_owned()));
    None
}

fn to_job(path: &str, job: wire::Job, faults: &mut Vec<Fault>) -> JobDraft {
    let mut phase = |name: &str, phase: Option<wire::Phase>| {
        phase.and_then(|phase| {
            to_phase(phase).map_err(|what| faults.push((format!("{path}.{name}"), what))).ok()
        })
    };
    let (map, reduce) = (phase("map", job.map), phase("reduce", job.reduce));
    let run = job.run.and_then(|run| {
        run::to_run(run).map_err(|(at, what)| faults.push((format!("{path}.run{at}"), what))).ok()
    });
    let mut after = job.after;
    for upstream in run.iter().flat_map(RunDraft::own_inputs) {
        if !after.iter().any(|known| known == upstream) {
            after.push(upstream.to_owned());
        }
    }
    JobDraft {
        map,
        reduce,
        run,
        id: job.id,
        after,
        min_slots: per_phase(job.min_slots),
        max_slots: per_phase(job.max_slots),
        recorded: job.recorded.into_iter().map(to_attempt).collect(),
        recorded_end: job.recorded_end,
    }
}

fn to_attempt(attempt: wire::Attempt) -> AttemptDraft {
    let wire::Attempt { phase, task, machine, start, end, outcome } = attempt;
    AttemptDraft { phase, task, machine, start, end, outcome }
}

fn from_attempt(attempt: &AttemptDraft) -> wire::Attempt {
    let AttemptDraft { phase, task, machine, start, end, outcome } = attempt.clone();
    wire::Attempt { phase, task, machine, start, end, outcome }
}

fn to_phase(phase: wire::Phase) -> Result<PhaseDraft, String> {
    let wire::Phase { tasks, seconds, work, splits, min_slots, max_slots, unknown } = phase;
    let given = [
        ("tasks", tasks.is_some()),
        ("seconds", seconds.is_some()),
        ("work", work.is_some()),
        ("splits", splits.is_some()),
    ];
    let tasks = match (tasks, seconds, work, splits) {
        (Some(tasks), Some(Seconds::All(Duration(seconds))), None, None) => {
            TasksDraft::Uniform { tasks, seconds }
        }
        (None, Some(Seconds::Each(list)), None, None) => {
            TasksDraft::Each(list.into_iter().map(|Duration(seconds)| seconds).collect())
        }
        (tasks, None, Some(Duration(work)), None) => TasksDraft::Work { work, tasks },
        (None, None, None, Some(splits)) => TasksDraft::Splits(splits.into_iter().map(split).collect()),
        (Some(_), Some(Seconds::Each(_)), None, None) => {
            return Err("found `tasks` with a list of `seconds`, expected the list alone".to_owned());
        }
        _ => {
            let given: Vec<_> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
            let given = if given.is_empty() { "no tasks".to_owned() } else { given.join(" with ") };
            return Err(format!(
                "found {given}, expected one of {{ tasks = n, seconds = s }}, {{ seconds = [s, …] }}, \
                 {{ work = w, tasks = n }}, {{ work = w }}, {{ splits = [{{ seconds = s, hosts = […] }}, …] }}"
            ));
        }
    };
    Ok(PhaseDraft { tasks, min_slots, max_slots, unknown })
}

fn split(split: wire::Split) -> SplitDraft {
    let wire::Split { seconds: Duration(seconds), count, hosts } = split;
    SplitDraft { count, seconds, hosts }
}

/// The document that describes a draft.
pub(super) fn from_draft(draft: &Draft) -> wire::Workload {
    wire::Workload { flows: draft.flows.iter().map(from_flow).collect(), ..from_head(draft) }
}

/// The same without flows.
pub(super) fn from_head(draft: &Draft) -> wire::Workload {
    let machines: Vec<_> = draft.machines.iter().map(from_machine).collect();
    wire::Workload {
        schema: SchemaName,
        slackline: VERSION,
        start: draft.start.clone().map(Beginning),
        parameters: BTreeMap::new(),
        cluster: (!machines.is_empty()).then_some(wire::Cluster { machines }),
        objective: wire::Objective {
            metric: Some(draft.objective.metric.into()),
            combine: draft.objective.combine,
            weights: draft.weights,
        },
        pools: draft
            .pools
            .iter()
            .map(|pool| wire::Pool { id: pool.id.clone(), min_slots: from_per_phase(pool.min_slots) })
            .collect(),
        flows: Vec::new(),
    }
}

fn from_machine(machine: &MachineDraft) -> wire::Machine {
    let MachineDraft { name, count, speed, slots, rack } = machine.clone();
    wire::Machine { name, count, speed, slots: from_slots(slots), rack }
}

fn from_slots(slots: Slots) -> Numbers {
    match slots {
        Slots::Generic(n) => Numbers::Both(n),
        Slots::MapReduce { map, reduce } => Numbers::Each(Pair { map: Some(map), reduce: Some(reduce) }),
    }
}

/// The machines of a cluster as a document has them.
pub(crate) fn from_cluster(cluster: &Cluster) -> wire::Cluster {
    let machines = cluster.groups().iter().cloned().map(|group| {
        let Group { name, count, speed, slots, rack, .. } = group;
        wire::Machine { name, count, speed, slots: from_slots(slots), rack }
    });
    wire::Cluster { machines: machines.collect() }
}

fn from_per_phase(numbers: PerPhase) -> Option<Numbers> {
    match (numbers.map, numbers.reduce) {
        (None, None) => None,
        (Some(map), Some(reduce)) if map == reduce => Some(Numbers::Both(map)),
        (map, reduce) => Some(Numbers::Each(Pair { map, reduce })),
    }
}

pub(super) fn from_flow(flow: &FlowDraft) -> wire::Flow {
    wire::Flow {
        id: flow.id.clone(),
        release: Moment::after_start(flow.release),
        weight: flow.weight,
        deadline: flow.deadline.map(Moment::after_start),
        cost: flow.cost.as_ref().map(from_cost),
        pool: flow.pool.clone(),
        user: flow.user.clone(),
        priority: flow.priority,
        repeat: flow.repeat.map(|Repeat { every, times }| wire::Repeat { every: Duration(every), times }),
        jobs: flow.jobs.iter().map(from_job).collect(),
    }
}

fn from_cost(cost: &CostDraft) -> wire::Cost {
    let none = wire::Cost { kind: MetricName::Steps, steps: None, points: None, slope: None };
    let pairs = |pairs: &[(f64, f64)]| {
        Some(pairs.iter().map(|&(time, cost)| (Moment::after_start(time), cost)).collect())
    };
    match cost {
        CostDraft::Metric(metric) => wire::Cost { kind: (*metric).into(), ..none },
        CostDraft::Steps(steps) => wire::Cost { steps: pairs(steps), ..none },
        CostDraft::Piecewise { points, slope } => {
            wire::Cost { kind: MetricName::Piecewise, points: pairs(points), slope: *slope, ..none }
        }
    }
}

fn from_job(job: &JobDraft) -> wire::Job {
    wire::Job {
        id: job.id.clone(),
        after: job.after.clone(),
        map: job.map.as_ref().map(from_phase),
        reduce: job.reduce.as_ref().map(from_phase),
        min_slots: from_per_phase(job.min_slots),
        max_slots: from_per_phase(job.max_slots),
        run: job.run.as_ref().map(run::from_run),
        recorded: job.recorded.iter().map(from_attempt).collect(),
        recorded_end: job.recorded_end,
    }
}

fn from_phase(phase: &PhaseDraft) -> wire::Phase {
    let PhaseDraft { ref tasks, min_slots, max_slots, unknown } = *phase;
    let none = wire::Phase { min_slots, max_slots, unknown, ..wire::Phase::default() };
    match tasks {
        TasksDraft::Uniform { tasks, seconds } => {
            wire::Phase { tasks: Some(*tasks), seconds: Some(Seconds::All(Duration(*seconds))), ..none }
        }
        TasksDraft::Each(list) => {
            let list = list.iter().copied().map(Duration).collect();
            wire::Phase { seconds: Some(Seconds::Each(list)), ..none }
        }
        TasksDraft::Work { work, tasks } => {
            wire::Phase { work: Some(Duration(*work)), tasks: *tasks, ..none }
        }
        TasksDraft::Splits(splits) => wire::Phase {
            splits: Some(
                splits
                    .iter()
                    .map(|s| wire::Split {
                        seconds: Duration(s.seconds),
                        count: s.count,
                        hosts: s.hosts.clone(),
                    })
                    .collect(),
            ),
            ..none
        },
    }
}
