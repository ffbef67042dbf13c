//! The metrics of the comparison document and the objective, computed directly from their definitions.
//!
//! Deliberately naive: every task attempt is written out, every sum is over everything. Nothing is taken from
//! the instance that the instance derived (critical path, time alone, cost functions).

use std::collections::BTreeMap;

use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, Draft, FlowDraft, Weights};
use slackline_model::schedule::{FlowResult, Outcome};
use slackline_model::{
    Combine, FlowId, Instance, JobId, Metric, Objective, PhaseId, PhaseKind, Schedule, SlotKind,
};

/// One attempt of one task.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    phase: PhaseId,
    start: f64,
    end: f64,
    done: bool,
}

fn attempts(schedule: &Schedule) -> Vec<Attempt> {
    let rows = schedule.tasks.rows().iter();
    rows.flat_map(|row| {
        (0..row.count).map(move |_| Attempt {
            phase: row.phase,
            start: row.start.seconds(),
            end: row.end.seconds(),
            done: row.outcome == Outcome::Done,
        })
    })
    .collect()
}

/// The completion of each flow: when the last of its phases was done, if all of them are.
pub fn completions(instance: &Instance, schedule: &Schedule) -> Vec<Option<f64>> {
    let done = phases_done(instance, schedule);
    let of_flow = |flow| {
        let ends = phases_of(instance, flow).into_iter().map(|phase| done.get(&phase).copied());
        ends.collect::<Option<Vec<f64>>>().map(|ends| ends.into_iter().fold(0.0, f64::max))
    };
    instance.flows().keys().map(of_flow).collect()
}

/// When each phase was done; phases that are not done are left out. A phase is done at the end of its last
/// task. A phase without length and attempts is done when its predecessors are, but not before its release.
fn phases_done(instance: &Instance, schedule: &Schedule) -> BTreeMap<PhaseId, f64> {
    let attempts = attempts(schedule);
    let mut done = BTreeMap::new();
    // As many rounds as phases suffice for any order of the document.
    for _ in instance.phases().iter() {
        let known = done.len();
        for (phase, info) in instance.phases().iter_enumerated() {
            let mine: Vec<&Attempt> = attempts.iter().filter(|a| a.phase == phase).collect();
            let ends: Vec<f64> = mine.iter().filter(|a| a.done).map(|a| a.end).collect();
            let end = if mine.is_empty() && seconds(instance, phase).iter().all(|&s| s == 0.0) {
                let job = instance.job(info.job);
                let maps = job.map.filter(|_| info.kind == PhaseKind::Reduce);
                let before = job.after.iter().flat_map(|&before| instance.job(before).phases()).chain(maps);
                let ends: Option<Vec<f64>> = before.map(|before| done.get(&before).copied()).collect();
                ends.map(|ends| ends.into_iter().fold(instance.flow(job.flow).release.seconds(), f64::max))
            } else {
                (ends.len() == seconds(instance, phase).len()).then(|| ends.into_iter().fold(0.0, f64::max))
            };
            if let Some(end) = end {
                done.insert(phase, end);
            }
        }
        if done.len() == known {
            break;
        }
    }
    done
}

fn phases_of(instance: &Instance, flow: FlowId) -> Vec<PhaseId> {
    instance.phases().keys().filter(|&phase| instance.flow_of(phase) == flow).collect()
}

/// Seconds of each task of a phase at speed 1.
fn seconds(instance: &Instance, phase: PhaseId) -> Vec<f64> {
    let Some(tasks) = instance.phase(phase).tasks() else { return Vec::new() };
    (0..tasks.count()).map(|task| tasks.run_at(task).0.seconds()).collect()
}

/// The speed of every slot that may run tasks of `kind`, fastest first.
fn speeds(instance: &Instance, kind: PhaseKind) -> Vec<f64> {
    let mut speeds = Vec::new();
    for group in instance.cluster().groups() {
        let slots = match (group.slots, kind) {
            (Slots::Generic(n), _)
            | (Slots::MapReduce { map: n, .. }, PhaseKind::Map)
            | (Slots::MapReduce { reduce: n, .. }, PhaseKind::Reduce) => n,
        };
        for _ in 0..slots * group.count {
            speeds.push(group.speed);
        }
    }
    speeds.sort_by(|a, b| b.total_cmp(a));
    speeds
}

/// Total work of a flow in slot-seconds.
fn work_of(instance: &Instance, flow: FlowId) -> f64 {
    phases_of(instance, flow).into_iter().flat_map(|phase| seconds(instance, phase)).sum()
}

/// The larger of the longest chain (phases at their caps on the fastest machines, and not shorter than their
/// longest tasks) and, for each kind of slot, work over capacity.
fn alone(instance: &Instance, flow: FlowId) -> f64 {
    let phase_alone = |phase: PhaseId| {
        let info = instance.phase(phase);
        let speeds = speeds(instance, info.kind);
        let fastest: f64 = speeds.iter().take(info.cap as usize).sum();
        let tasks = seconds(instance, phase);
        let longest = tasks.iter().fold(0.0, |longest: f64, task| longest.max(task / speeds[0]));
        longest.max(tasks.iter().sum::<f64>() / fastest)
    };
    let jobs: Vec<JobId> = instance.jobs().keys().filter(|&job| instance.job(job).flow == flow).collect();
    let mut end: BTreeMap<JobId, f64> = BTreeMap::new();
    // As many rounds as jobs suffice for any order of the document.
    for _ in &jobs {
        for &job in &jobs {
            let before = instance.job(job).after.iter().map(|a| end.get(a).copied().unwrap_or(0.0));
            let start = before.fold(0.0, f64::max);
            end.insert(job, start + instance.job(job).phases().map(phase_alone).sum::<f64>());
        }
    }
    let mut longest = end.into_values().fold(0.0, f64::max);
    for kinds in if instance.cluster().is_map_reduce() {
        vec![vec![PhaseKind::Map], vec![PhaseKind::Reduce]]
    } else {
        vec![vec![PhaseKind::Map, PhaseKind::Reduce]]
    } {
        let mine = |&phase: &PhaseId| kinds.contains(&instance.phase(phase).kind);
        let of_kind = phases_of(instance, flow).into_iter().filter(mine);
        let work: f64 = of_kind.flat_map(|phase| seconds(instance, phase)).sum();
        let capacity: f64 = speeds(instance, kinds[0]).iter().sum();
        if work > 0.0 {
            longest = longest.max(work / capacity);
        }
    }
    longest
}

/// Every metric of the comparison document that follows from the rows, by name. Flows that are not done count
/// only as missed. `utilisation` is left out if some attempt did not count: the definitions do not state how
/// long such an attempt was busy.
pub fn metrics(instance: &Instance, schedule: &Schedule) -> BTreeMap<&'static str, f64> {
    let failed =
        |flow: FlowId| schedule.flows.iter().any(|row| row.flow == flow && row.status == FlowResult::Failed);
    let ends = completions(instance, schedule);
    let done: Vec<(FlowId, f64)> = (instance.flows().keys())
        .filter(|&flow| !failed(flow))
        .filter_map(|flow| Some((flow, ends[flow.index()]?)))
        .collect();
    let each = |of: &dyn Fn(FlowId, f64) -> f64| done.iter().map(|&(f, c)| of(f, c)).collect::<Vec<_>>();
    let response = |flow: FlowId, end: f64| end - instance.flow(flow).release.seconds();
    let over = |value: f64, size: f64| if size > 0.0 { value / size } else { 0.0 };
    let stretch = |f: FlowId, c: f64| over(response(f, c), work_of(instance, f));
    let slowdown = |f: FlowId, c: f64| over(response(f, c), alone(instance, f));
    let bounded = |f: FlowId, c: f64| match alone(instance, f) {
        0.0 => 0.0,
        alone => (response(f, c) / alone.max(10.0)).max(1.0),
    };
    let wait = |f: FlowId, _: f64| {
        let mine = attempts(schedule).into_iter().filter(|a| instance.flow_of(a.phase) == f);
        mine.map(|a| a.start - instance.flow(f).release.seconds()).reduce(f64::min).unwrap_or(0.0)
    };
    let deadline = |flow: FlowId| instance.flow(flow).deadline.map(slackline_model::Time::seconds);
    let tardiness = |f: FlowId, c: f64| deadline(f).map_or(0.0, |d| (c - d).max(0.0));
    let late = |f: FlowId, c: f64| deadline(f).is_some_and(|d| c - d > 2e-6 + 1e-9 * d);
    let with_deadline: Vec<FlowId> = instance.flows().keys().filter(|&f| deadline(f).is_some()).collect();
    let in_time = done.iter().filter(|&&(f, c)| deadline(f).is_some() && !late(f, c)).count();

    let sum = |values: Vec<f64>| values.iter().sum::<f64>();
    let max = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
    let mean = |values: Vec<f64>| over(values.iter().sum::<f64>(), values.len() as f64);
    let percentile = |percent: usize, mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        // Nearest rank: the first value at or below which at least that share of all values lies.
        let at_least = |&k: &usize| 100 * k >= percent * n;
        (1..=n).find(at_least).map_or(0.0, |k| values[k - 1])
    };
    let makespan = max(each(&|_, c| c));
    let mut all = BTreeMap::from([
        ("makespan", makespan),
        ("total_completion", sum(each(&|_, c| c))),
        ("weighted_completion", sum(each(&|f, c| instance.flow(f).weight * c))),
        ("mean_response", mean(each(&response))),
        ("p50_response", percentile(50, each(&response))),
        ("p95_response", percentile(95, each(&response))),
        ("p99_response", percentile(99, each(&response))),
        ("mean_wait", mean(each(&wait))),
        ("p95_wait", percentile(95, each(&wait))),
        ("mean_stretch", mean(each(&stretch))),
        ("max_stretch", max(each(&stretch))),
        ("mean_slowdown", mean(each(&slowdown))),
        ("max_slowdown", max(each(&slowdown))),
        ("mean_bounded_slowdown", mean(each(&bounded))),
        ("max_bounded_slowdown", max(each(&bounded))),
        ("deadlines", with_deadline.len() as f64),
        ("missed", (with_deadline.len() - in_time) as f64),
        ("total_tardiness", sum(each(&tardiness))),
        ("max_tardiness", max(each(&tardiness))),
        ("tasks", attempts(schedule).iter().filter(|a| a.done).count() as f64),
    ]);
    if attempts(schedule).iter().all(|a| a.done) {
        all.insert("utilisation", over(busy(instance, schedule), n_slots(instance) * makespan));
    }
    all
}

fn n_slots(instance: &Instance) -> f64 {
    instance
        .cluster()
        .slot_kinds()
        .iter()
        .map(|&slot_kind: &SlotKind| f64::from(instance.cluster().slots(slot_kind)))
        .sum()
}

/// Busy slot-seconds if every attempt counts: a reduce is busy from the end of the last map of its job.
fn busy(instance: &Instance, schedule: &Schedule) -> f64 {
    let attempts = attempts(schedule);
    let mut busy = 0.0;
    for a in &attempts {
        let info = instance.phase(a.phase);
        let maps = attempts
            .iter()
            .filter(|m| info.kind == PhaseKind::Reduce && Some(m.phase) == instance.job(info.job).map);
        busy += a.end - maps.map(|m| m.end).fold(a.start, f64::max);
    }
    busy
}

/// The value of `objective` for the completions of the flows, from the metric table. The draft must not have
/// recurring flows (its flows are the instance's).
pub fn objective(draft: &Draft, instance: &Instance, objective: Objective, completions: &[f64]) -> f64 {
    assert_eq!(draft.flows.len(), completions.len(), "one completion a flow, no recurrences");
    let costs = draft.flows.iter().enumerate().map(|(k, flow)| {
        let weight = if draft.weights == Weights::Ignore { 1.0 } else { flow.weight };
        let completed = Completed { flow, id: FlowId::from(k), weight, at: completions[k] };
        cost(instance, &completed, objective.metric)
    });
    let costs: Vec<f64> = costs.collect();
    if objective.combine == Combine::Max || objective.metric == Metric::Makespan {
        costs.into_iter().reduce(f64::max).unwrap_or(0.0)
    } else {
        costs.into_iter().sum()
    }
}

/// A flow that completed.
struct Completed<'a> {
    flow: &'a FlowDraft,
    id: FlowId,
    /// Its weight, or 1 if weights do not count.
    weight: f64,
    /// Its completion, in seconds.
    at: f64,
}

fn cost(instance: &Instance, completed: &Completed<'_>, metric: Metric) -> f64 {
    let &Completed { flow, id, weight: w, at: c } = completed;
    let late = |d: f64| c - d > 2e-6 + 1e-9 * d;
    let metric = match &flow.cost {
        Some(CostDraft::Steps(steps)) => {
            return w * steps.iter().filter(|&&(d, _)| late(d)).map(|&(_, level)| level).fold(0.0, f64::max);
        }
        Some(CostDraft::Piecewise { points, slope }) => return w * piecewise(points, *slope, c),
        Some(CostDraft::Metric(own)) => *own,
        None => metric,
    };
    let response = c - flow.release;
    let by_deadline = |cost: &dyn Fn(f64) -> f64| flow.deadline.map_or(0.0, cost);
    let over = |size: f64| if size > 0.0 { w * response / size } else { 0.0 };
    match metric {
        Metric::Completion => w * c,
        Metric::Response => w * response,
        Metric::Makespan => c,
        Metric::Stretch => over(work_of(instance, id)),
        Metric::Slowdown => over(alone(instance, id)),
        Metric::Tardy => by_deadline(&|d| if late(d) { w } else { 0.0 }),
        Metric::Tardiness => by_deadline(&|d| w * (c - d).max(0.0)),
        Metric::Lateness => by_deadline(&|d| w * (c - d)),
        // Without costs of a flow's own these say nothing; a metric without a definition here must fail its
        // tests.
        _ => f64::NAN,
    }
}

/// Straight lines between the points, constant before the first; points at one time are a jump that
/// counts from just after it.
fn piecewise(points: &[(f64, f64)], slope: Option<f64>, at: f64) -> f64 {
    let passed = |t: f64| at - t > 2e-6 + 1e-9 * t;
    let (first, last) = (points[0], points[points.len() - 1]);
    if !passed(first.0) {
        return first.1;
    }
    if passed(last.0) {
        let before = if points.len() > 1 { points[points.len() - 2] } else { last };
        let rise = if last.0 > before.0 { (last.1 - before.1) / (last.0 - before.0) } else { 0.0 };
        return last.1 + slope.unwrap_or(rise) * (at - last.0);
    }
    let segment = points.windows(2).find(|pair| passed(pair[0].0) && !passed(pair[1].0));
    let [a, b] = segment.expect("invariant: between the first and the last point") else { return f64::NAN };
    a.1 + (b.1 - a.1) * ((at - a.0) / (b.0 - a.0)).min(1.0)
}
