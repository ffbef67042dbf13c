//! The limit on waiting of `auto`: once the response time of a flow reaches a multiple of its time alone, no
//! task of a flow with a later limit starts on a slot that a ready task of it could have had. So every flow
//! completes by the bound that docs/serve.md states, also at a load of 100 %.
//!
//! Times alone, limits and ready tasks are computed from the workload and the rows of the schedule, not taken
//! from the policy. `SLACKLINE_WAITING=N` tries N workloads (default 120), from seed `SLACKLINE_WAITING_FROM`
//! on (default 0).

use slackline::Registry;
use slackline::conformance::judged;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, TasksDraft};
use slackline_model::random::{self, test_seeds};
use slackline_model::schedule::TaskRow;
use slackline_model::{Combine, FlowId, Instance, Metric, Objective, PhaseId, Schedule, Seed, Time};
use slackline_testkit::harness::Setup;
use slackline_testkit::instances::machines;

use crate::rollouts::workload;

/// Limits are sums of rounded times: a start within this distance may be on either side of a limit.
/// Microseconds.
const NEAR: u64 = 1_000;

/// The time of a flow alone, seconds: its longest path, or the time that the slots of one kind are busy with
/// it if that is longer. All slots have one speed.
fn alone(instance: &Instance, flow: FlowId) -> f64 {
    let cluster = instance.cluster();
    let speed = cluster.uniform_speed().expect("one speed");
    let slots = |phase: PhaseId| cluster.slots(instance.slot_kind_of(phase));
    let takes = |phase: PhaseId| {
        let info = instance.phase(phase);
        let (work, count) = (info.work().slot_seconds(), info.tasks().expect("it was cut").count());
        if work > 0.0 { work / f64::from(info.cap.min(slots(phase)).min(count)) / speed } else { 0.0 }
    };
    let mut tails = vec![0.0_f64; instance.jobs().len()];
    for &job in instance.topological_of(flow).iter().rev() {
        let info = instance.job(job);
        let after = info.before.iter().map(|&next| tails[next.index()]).fold(0.0, f64::max);
        tails[job.index()] = after + info.phases().map(takes).sum::<f64>();
    }
    let busy = cluster.slot_kinds().iter().map(|&kind| {
        let phases = instance.flow(flow).phases().filter(|&phase| instance.slot_kind_of(phase) == kind);
        let work: f64 = phases.map(|phase| instance.phase(phase).work().slot_seconds()).sum();
        work / f64::from(cluster.slots(kind).max(1)) / speed
    });
    tails.into_iter().chain(busy).fold(0.0, f64::max)
}

/// A schedule whose rows are checked.
struct Seen<'a> {
    instance: &'a Instance,
    rows: &'a [TaskRow],
    limits: Vec<Time>,
}

impl<'a> Seen<'a> {
    fn new(instance: &'a Instance, schedule: &'a Schedule, times: f64) -> Self {
        let limit = |flow: FlowId| {
            Time::from_seconds_nearest(instance.flow(flow).release.seconds() + times * alone(instance, flow))
        };
        let limits = instance.flows().keys().map(limit).collect();
        Self { instance, rows: schedule.tasks.rows(), limits }
    }

    fn of(&self, phase: PhaseId) -> impl Iterator<Item = &TaskRow> {
        self.rows.iter().filter(move |row| row.phase == phase)
    }

    /// When a phase was done, and whether its last tasks had no length. If so, the rows do not show whether
    /// slots were given at that instant before or after the end of the phase.
    fn done(&self, phase: PhaseId) -> (Time, bool) {
        let ready = self.ready(phase);
        let ends = self.of(phase).map(|row| (row.end, row.start == row.end));
        ends.chain([ready]).max().unwrap_or(ready)
    }

    /// When all predecessors of a phase were done, with the flag of [`Seen::done`].
    fn ready(&self, phase: PhaseId) -> (Time, bool) {
        let info = self.instance.phase(phase);
        let job = self.instance.job(info.job);
        let jobs = job.after.iter().flat_map(|&before| self.instance.job(before).phases());
        let maps = job.map.filter(|&map| map != phase);
        let release = self.instance.flow(job.flow).release;
        jobs.chain(maps).map(|before| self.done(before)).chain([(release, false)]).max().unwrap_or_default()
    }

    /// Whether a task of a phase could have started but did not.
    fn could_have(&self, phase: PhaseId, now: Time) -> bool {
        let info = self.instance.phase(phase);
        let later: u32 = self.of(phase).filter(|row| row.start > now).map(|row| row.count).sum();
        if later == 0 {
            return false;
        }
        let (ready, is_vague) = self.ready(phase);
        // A task without length freed its slot, and its place below the cap, at once, but only after all
        // slots were given.
        let holds = |row: &&TaskRow| row.start <= now && (row.end > now || row.start == now);
        let held: u32 = self.of(phase).filter(holds).map(|row| row.count).sum();
        (ready < now || ready == now && !is_vague) && held < info.cap
    }

    /// Starts that should have been another flow's, and the number of compared starts.
    fn wrong(&self) -> (Vec<String>, usize) {
        let (mut wrong, mut compared) = (Vec::new(), 0);
        for row in self.rows {
            let (now, flow) = (row.start, self.instance.flow_of(row.phase));
            let mine = self.limits[flow.index()];
            let has_passed = |&other: &FlowId| {
                let limit = self.limits[other.index()];
                let waits = |row: &TaskRow| row.start > now && self.instance.flow_of(row.phase) == other;
                let comes_first = limit.0 + NEAR < now.0 && limit.0 + NEAR < mine.0;
                other != flow && comes_first && self.rows.iter().any(waits)
            };
            for other in self.instance.flows().keys().filter(has_passed) {
                compared += 1;
                let kind = self.instance.slot_kind_of(row.phase);
                let mut phases = self.instance.flow(other).phases();
                let waits = phases
                    .find(|&phase| self.instance.slot_kind_of(phase) == kind && self.could_have(phase, now));
                wrong.extend(waits.map(|phase| {
                    let name = |phase| self.instance.phase_name(phase);
                    format!("{} starts at {now}, {} has waited", name(row.phase), name(phase))
                }));
            }
        }
        (wrong, compared)
    }
}

/// Starts that should have been another flow's under `auto` with the limit `wait`, in the workload of a seed,
/// if the limit is `times` times the time alone; and the number of compared starts.
fn check(seed: u64, wait: f64, times: f64) -> (Vec<String>, usize) {
    let (instance, _) = workload(Seed(seed));
    if instance.cluster().uniform_speed().is_none() {
        // The first flow may leave a slow slot to others.
        return (Vec::new(), 0);
    }
    let auto = Registry::standard().parse(&format!("auto:effort=0.025:wait={wait}")).unwrap();
    let mut policy = auto.build(instance.cluster(), &instance.objective());
    let (schedule, _) = judged(&instance, policy.as_mut(), &Setup::plain()).unwrap();
    Seen::new(&instance, &schedule, times).wrong()
}

fn small(seed: u64) -> f64 {
    [1.0, 1.5, 3.0][seed as usize % 3]
}

#[test]
fn nothing_starts_before_a_flow_that_reached_its_waiting_limit() {
    let mut compared = 0;
    for seed in test_seeds(120) {
        let (wrong, of) = check(seed, small(seed), small(seed));
        assert!(wrong.is_empty(), "seed {seed}: {}", wrong.join("\n"));
        compared += of;
    }
    assert!(compared > 1_000, "{compared} starts were compared");
}

#[test]
fn a_wrong_limit_is_detected() {
    let found = (0..30).filter(|&seed| !check(seed, 1.2 * small(seed), small(seed)).0.is_empty()).count();
    assert!(found > 0, "no flow waits longer with a later limit");
}

/// Slots of the cluster at a load of 100 %.
const SLOTS: u32 = 4;

/// Five large flows at the start, then small flows for ten minutes: each arrives when all slots together have
/// had the time for the small flows before it.
fn full_load(seed: u64) -> Instance {
    let rng = &mut random::rng(Seed(seed), "full load", 0);
    let flow = |id: String, release: f64, tasks: u32, seconds: f64| {
        let map = Some(TasksDraft::Uniform { tasks, seconds }.into());
        let reduce = Some(TasksDraft::Uniform { tasks: 1, seconds: 0.1 }.into());
        let job = JobDraft { id: "j".into(), map, reduce, ..JobDraft::default() };
        FlowDraft { release, ..FlowDraft::new(id, vec![job]) }
    };
    let mut flows: Vec<FlowDraft> = (0..5).map(|k| flow(format!("large{k}"), 0.0, 3 * SLOTS, 1.0)).collect();
    let mut at = 0.0;
    while at < 600.0 {
        let seconds = random::uniform(rng, 0.7, 1.3);
        flows.push(flow(format!("small{}", flows.len()), at, SLOTS, seconds));
        at += seconds + 0.1 / f64::from(SLOTS);
    }
    let objective = Objective::new(Metric::Response, Combine::Sum);
    let machines = vec![machines("m", 1, 1.0, Slots::Generic(SLOTS))];
    Instance::new(&Draft { machines, flows, objective, ..Draft::default() }).unwrap()
}

/// The response times of the large flows in seconds, and the flows that completed after the bound of
/// docs/serve.md with the default limit.
fn at_full_load(seed: u64, policy: &str) -> (Vec<f64>, Vec<String>) {
    const TIMES: f64 = 100.0;
    let instance = full_load(seed);
    let policy = Registry::standard().parse(policy).unwrap();
    let mut policy = policy.build(instance.cluster(), &instance.objective());
    let (schedule, _) = judged(&instance, policy.as_mut(), &Setup::plain()).unwrap();
    let seen = Seen::new(&instance, &schedule, TIMES);
    let longest = seen.rows.iter().map(|row| row.end.since(row.start).seconds()).fold(0.0, f64::max);
    let (mut responses, mut late) = (Vec::new(), Vec::new());
    for (flow, info) in instance.flows().iter_enumerated() {
        let limit = seen.limits[flow.index()];
        let rows = || seen.rows.iter().filter(|row| instance.flow_of(row.phase) == flow);
        let completion = rows().map(|row| row.end).max().unwrap();
        let goes_first = |row: &&TaskRow| seen.limits[instance.flow_of(row.phase).index()] <= limit;
        let left =
            |row: &TaskRow| f64::from(row.count) * row.end.since(row.start.max(limit).min(row.end)).seconds();
        let work: f64 = seen.rows.iter().filter(goes_first).map(left).sum();
        let phases = info.phases().len() as f64;
        let bound = limit.seconds() + work / f64::from(SLOTS) + alone(&instance, flow) + phases * longest;
        if completion.seconds() > bound + 1e-3 {
            late.push(format!("{}: {completion}, bound {bound}", info.id));
        }
        if info.id.starts_with("large") {
            responses.push(completion.since(info.release).seconds());
        }
    }
    (responses, late)
}

#[test]
fn at_a_load_of_100_percent_every_flow_completes_by_the_documented_bound() {
    for seed in test_seeds(2) {
        let (responses, late) = at_full_load(seed, "auto");
        assert!(late.is_empty(), "seed {seed}: {late:?}");
        assert!(
            responses.iter().any(|&response| response > 300.0),
            "no flow reaches its limit: {responses:?}"
        );
        // The same order without a limit on waiting.
        let (responses, late) = at_full_load(seed, "rule:order=area");
        assert!(!late.is_empty(), "seed {seed}: no flow waits longer without a limit: {responses:?}");
    }
}
