//! What each rule is for: named workloads, each of several seeds, on which it beats the ones that are not for
//! them.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::params::Settings;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Combine, Draft, Instance, Metric, Objective, Seed};
use slackline_policy::{Config, Policy};
use slackline_sim::{Options, Sim};

use super::{ByRule, ENTRY};

/// A workload of flows that come at random, so that all slots are busy for `load` of the time.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) slots: Slots,
    pub(crate) load: f64,
    /// Most jobs of a flow, in a chain.
    pub(crate) jobs: u64,
    /// Deadlines are this multiple of the flow's time alone after its release.
    pub(crate) slack: (f64, f64),
}

pub(crate) const UNIVERSAL: Shape =
    Shape { slots: Slots::Generic(20), load: 0.9, jobs: 3, slack: (1.5, 5.0) };

fn phase(rng: &mut ChaCha8Rng, tasks: u64) -> (f64, PhaseDraft) {
    let tasks = random::integer(rng, 1, tasks) as u32;
    let seconds = random::lognormal(rng, 2.3, 0.8).clamp(1.0, 60.0).round();
    (f64::from(tasks) * seconds, TasksDraft::Uniform { tasks, seconds }.into())
}

/// A chain of jobs, and its work in slot-seconds.
fn chain(id: usize, rng: &mut ChaCha8Rng, shape: Shape) -> (f64, FlowDraft) {
    let mut work = 0.0;
    let size = random::integer(rng, 4, 60);
    let jobs = (0..random::integer(rng, 1, shape.jobs)).map(|job| {
        let (map, reduce) = (phase(rng, size), phase(rng, size / 3 + 1));
        work += map.0 + reduce.0;
        let after = if job > 0 { vec![format!("j{}", job - 1)] } else { Vec::new() };
        JobDraft {
            id: format!("j{job}"),
            after,
            map: Some(map.1),
            reduce: Some(reduce.1),
            ..JobDraft::default()
        }
    });
    let flow = FlowDraft::new(format!("f{id}"), jobs.collect());
    (work, FlowDraft { weight: random::integer(rng, 1, 5) as f64, ..flow })
}

pub(crate) fn workload(seed: u64, shape: Shape, metric: Metric, combine: Combine) -> Instance {
    let rng = &mut random::rng(Seed(seed), "named", 0);
    let slots = match shape.slots {
        Slots::Generic(n) => n,
        Slots::MapReduce { map, reduce } => map + reduce,
    };
    let mut release = 0.0;
    let flows = (0..60).map(|id| {
        let (work, flow) = chain(id, rng, shape);
        let flow = FlowDraft { release, ..flow };
        release += random::exponential(rng, work / f64::from(slots) / shape.load).round();
        flow
    });
    let mut flows: Vec<FlowDraft> = flows.collect();
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: shape.slots, rack: None };
    let objective = Objective::new(Metric::Response, Combine::Sum);
    let draft = |flows| Draft { machines: vec![machine.clone()], flows, objective, ..Draft::default() };
    let alone = Instance::new(&draft(flows.clone())).unwrap();
    for (flow, known) in flows.iter_mut().zip(alone.flows().iter()) {
        let slack = random::uniform(rng, shape.slack.0, shape.slack.1);
        flow.deadline = Some(flow.release + (slack * known.alone).ceil());
    }
    let objective = Objective::new(metric, combine);
    Instance::new(&Draft { objective, ..draft(flows) }).unwrap()
}

/// What a rule costs, as `rule:`'s settings name it.
pub(crate) fn cost(instance: &Instance, settings: &[(&str, &str)]) -> f64 {
    let settings = Settings::parse(ENTRY.params, settings.iter().copied()).unwrap();
    cost_of(instance, &mut ByRule::new(&settings))
}

/// What a policy costs in the simulator.
pub(crate) fn cost_of(instance: &Instance, policy: &mut dyn Policy) -> f64 {
    let run =
        slackline_policy::run(instance, policy, &mut Sim::new(instance, Options::exact()), Config::plain());
    let completions: Vec<f64> = run.completions.iter().map(|at| at.unwrap().seconds()).collect();
    instance.cost_of(&completions)
}

/// Asserts that over eight seeds the first rule costs at most `most` times what the second does: the
/// geometric mean, of costs and a hundredth of the second's mean, so that a cost of 0 counts.
fn check_beats(of: Shape, (metric, combine): (Metric, Combine), rules: [&[(&str, &str)]; 2], most: f64) {
    let costs: Vec<[f64; 2]> = (0..8)
        .map(|seed| {
            let instance = workload(seed, of, metric, combine);
            rules.map(|rule| cost(&instance, rule))
        })
        .collect();
    let little = costs.iter().map(|[_, b]| b).sum::<f64>() / costs.len() as f64 / 100.0;
    let logs = costs.iter().map(|[a, b]| ((a + little) / (b + little)).ln());
    let ratio = (logs.sum::<f64>() / costs.len() as f64).exp();
    println!("{metric} {}: {:?} over {:?}: {ratio:.3}", combine.name(), rules[0], rules[1]);
    assert!(ratio <= most, "{metric}: {:?} costs {ratio:.3} of {:?}", rules[0], rules[1]);
}

const SUM: Combine = Combine::Sum;
const MAX: Combine = Combine::Max;

fn order(name: &'static str) -> [(&'static str, &'static str); 1] {
    [("order", name)]
}

#[test]
fn area_is_for_response_and_slope_for_slowdown() {
    check_beats(UNIVERSAL, (Metric::Response, SUM), [&order("area"), &order("fifo")], 0.8);
    check_beats(UNIVERSAL, (Metric::Response, SUM), [&order("area"), &order("srpt")], 0.95);
    check_beats(UNIVERSAL, (Metric::Slowdown, SUM), [&order("slope"), &order("area")], 0.99);
    check_beats(UNIVERSAL, (Metric::Response, SUM), [&order("wspt"), &order("lrpt")], 0.7);
}

#[test]
fn atc_and_moore_are_for_deadlines_that_cannot_all_be_met() {
    let overloaded = Shape { load: 1.3, ..UNIVERSAL };
    check_beats(overloaded, (Metric::Tardiness, SUM), [&order("atc"), &order("edf")], 0.8);
    check_beats(overloaded, (Metric::Tardy, SUM), [&order("moore"), &order("edf")], 0.8);
    // Who looks further ahead minds slack less.
    let far = [("order", "atc"), ("k", "2")];
    check_beats(overloaded, (Metric::Tardiness, SUM), [&far, &order("fifo")], 0.8);
}

#[test]
fn least_slack_and_levels_are_for_maxima() {
    let unweighted = (Metric::Lateness, MAX);
    check_beats(UNIVERSAL, unweighted, [&order("lst"), &order("fifo")], 1.0);
    let level = [("order", "due"), ("x", "0.3")];
    check_beats(UNIVERSAL, (Metric::Response, MAX), [&level, &order("srpt")], 0.9);
    let without = [("order", "due"), ("x", "0.3"), ("tail", "no")];
    check_beats(UNIVERSAL, (Metric::Response, MAX), [&without, &order("srpt")], 1.0);
}

#[test]
fn johnson_and_the_critical_path_are_for_the_makespan() {
    let at_once = Shape { load: 1e6, jobs: 1, slots: Slots::MapReduce { map: 12, reduce: 6 }, ..UNIVERSAL };
    check_beats(at_once, (Metric::Makespan, MAX), [&order("johnson"), &order("srpt")], 1.0);
    let chains = Shape { load: 1e6, jobs: 12, ..UNIVERSAL };
    check_beats(chains, (Metric::Makespan, MAX), [&order("critical-path"), &order("area")], 0.99);
    check_beats(chains, (Metric::Makespan, MAX), [&order("critical-path"), &order("fifo")], 1.0);
}

/// Slots of each speed.
fn speeds(groups: &[(f64, u32)]) -> Vec<MachineDraft> {
    let group = |&(speed, slots): &(f64, u32)| {
        let slots = Slots::Generic(slots);
        MachineDraft { name: format!("speed {speed}"), count: 1, speed, slots, rack: None }
    };
    groups.iter().map(group).collect()
}

fn maps(id: &str, tasks: u32, seconds: f64) -> FlowDraft {
    let map = Some(TasksDraft::Uniform { tasks, seconds }.into());
    FlowDraft::new(id, vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }])
}

/// Asserts what `area` and `auto` cost on a workload whose flows come at once: the sum of responses.
fn check_sum(machines: &[(f64, u32)], flows: Vec<FlowDraft>, expected: f64) {
    let objective = Objective::new(Metric::Response, Combine::Sum);
    let draft = Draft { machines: speeds(machines), flows, objective, ..Draft::default() };
    let instance = Instance::new(&draft).unwrap();
    let settings = Settings::parse(crate::auto::ENTRY.params, []).unwrap();
    let mut auto = crate::auto::Auto::new(objective, &settings);
    assert_eq!([cost(&instance, &order("area")), cost_of(&instance, &mut auto)], [expected; 2]);
}

#[test]
fn slow_slots_are_left_free_where_fast_ones_are_sooner() {
    // Two slots take 2 s for a task, four take 8 s. Five tasks are done after 6 s on the fast ones, and after
    // 8 with the others; of ten, four are done on the slow ones, and all after 8.
    for (tasks, expected) in [(5, 6.0), (10, 8.0)] {
        check_sum(&[(1.0, 4), (4.0, 2)], vec![maps("f", tasks, 8.0)], expected);
    }
}

#[test]
fn a_later_flow_does_not_wait_for_fast_slots_that_others_wait_for() {
    // One slot takes 2 s for a task, two take 8 s. The first flow leaves these free and is done after 6 s;
    // the second, whose turn on the fast slot comes then, has two tasks on them and the third on the fast
    // one, all by 8 s. Were it to look at its own tasks alone, it would take one slow slot and be done by 10.
    // The third is done after 16 s either way.
    let flows = vec![maps("a", 3, 8.0), maps("b", 3, 8.0), maps("c", 4, 8.0)];
    check_sum(&[(1.0, 2), (4.0, 1)], flows, 30.0);
}
