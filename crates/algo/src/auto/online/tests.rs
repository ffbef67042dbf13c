//! Tests the promises of the choice of an order.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, Repeat, TasksDraft};
use slackline_model::{Combine, Draft, History, Instance, Metric};
use slackline_policy::{ChosenBy, Config, Learning};
use slackline_sim::{Options, Sim};

use super::*;
use crate::auto::order_search::shift;
use crate::auto::work_budget::{FREE, PER_STEP};
use crate::rule::tests::{Shape, UNIVERSAL, cost, cost_of, workload};

fn auto(objective: Objective, rollouts: u64) -> Auto {
    Auto::new(objective, &Settings::parse(ENTRY.params, []).unwrap()).with_rollouts(rollouts)
}

/// A policy that decides when flows arrive and not when they end.
fn at_arrivals(objective: Objective, rollouts: u64) -> Auto {
    Auto::new(objective, &Settings::parse(ENTRY.params, [("ends", "no")]).unwrap()).with_rollouts(rollouts)
}

const METRICS: [(Metric, Combine); 4] = [
    (Metric::Response, Combine::Sum),
    (Metric::Slowdown, Combine::Max),
    (Metric::Tardiness, Combine::Sum),
    (Metric::Tardy, Combine::Sum),
];

#[test]
fn if_all_flows_have_arrived_a_longer_search_never_loses_and_mostly_gains() {
    let rules = portfolio().len();
    let at_once = Shape { load: 1e6, ..UNIVERSAL };
    let mut gained = 0;
    for (metric, combine) in METRICS {
        for seed in 0..3 {
            let instance = workload(seed, at_once, metric, combine);
            // Both try all rules.
            let [short, long] = [2 * rules, 2 * rules + 200].map(|rollouts| {
                let settings = Settings::parse(ENTRY.params, [("effort", "100"), ("ends", "no")]).unwrap();
                let mut auto = Auto::new(instance.objective(), &settings).with_rollouts(rollouts as u64);
                cost_of(&instance, &mut auto);
                auto.decided().expect("flows came").estimated
            });
            let worse = short.beats(long, 0.0);
            assert!(!worse, "{metric}, seed {seed}: {long:?} with a long search, {short:?} with a short one");
            gained += u32::from(long.expected < short.expected);
        }
    }
    assert!(gained >= 6, "{gained} of 12 workloads");
}

#[test]
fn if_all_flows_have_arrived_deciding_at_ends_never_loses_and_mostly_gains() {
    let at_once = Shape { load: 1e6, ..UNIVERSAL };
    let mut gained = 0;
    for seed in 0..6 {
        // A sum of linear costs: slack is worth nothing, and the estimates are exact.
        let instance = workload(seed, at_once, Metric::Response, Combine::Sum);
        let once = cost_of(&instance, &mut at_arrivals(instance.objective(), 30));
        let again = cost_of(&instance, &mut auto(instance.objective(), 30));
        assert!(again <= once, "seed {seed}: {again}, deciding once {once}");
        gained += u32::from(again < once);
    }
    assert!(gained >= 4, "{gained} of 6 workloads");
}

#[test]
fn flows_that_come_together_are_searched_longer() {
    // In the order of the document half of the flows are late, in the order of their deadlines none: more
    // than two orders must be tried.
    let due = |k: u32| Some(67.0 - 10.0 * f64::from(k));
    let flow = |k: u32| FlowDraft { deadline: due(k), ..serial(&format!("f{k}"), 0.0, (1, 10.0)) };
    let instance = on_slots(1, (0..6).map(flow).collect(), Metric::Tardy);
    let mut auto = at_arrivals(instance.objective(), 2);
    assert!(cost_of(&instance, &mut auto).abs() < 1e-9, "by {}", auto.decided().expect("flows came").rule);
}

#[test]
fn over_time_it_is_better_than_the_rule_for_the_metric() {
    for ((metric, combine), rule) in METRICS.into_iter().zip(["area", "due", "atc", "moore"]) {
        let costs = (0..6).map(|seed| {
            let instance = workload(seed, UNIVERSAL, metric, combine);
            (cost_of(&instance, &mut auto(instance.objective(), 200)), cost(&instance, &[("order", rule)]))
        });
        let (all, one) = costs.fold((0.0, 0.0), |(all, one), (a, b)| (all + a, one + b));
        println!("{metric}: {:.3} of {rule}", all / one);
        assert!(all <= one, "{metric}: {all}, by {rule} alone {one}");
    }
}

#[test]
fn without_later_arrivals_flows_complete_as_estimated() {
    for (slots, seed) in [(Slots::Generic(20), 3), (Slots::MapReduce { map: 12, reduce: 6 }, 4)] {
        let shape = Shape { slots, jobs: 6, ..UNIVERSAL };
        let instance = workload(seed, shape, Metric::Response, Combine::Sum);
        let mut policy = at_arrivals(instance.objective(), 10);
        let mut engine = Sim::new(&instance, Options::exact());
        let run = slackline_policy::run(&instance, &mut policy, &mut engine, Config::plain());
        let completions = policy.completions();
        assert!(completions.len() > 3, "some flows are there at the last arrival");
        for (flow, estimated) in completions {
            assert_eq!(run.completions[flow], Some(estimated), "flow {flow:?}");
        }
    }
}

/// How a policy found its orders on that workload.
fn chosen(instance: &Instance, mut auto: Auto) -> Vec<ChosenBy> {
    cost_of(instance, &mut auto);
    auto.choices().iter().map(|choice| choice.by).collect()
}

#[test]
fn choices_name_their_origin() {
    use ChosenBy::{Kept, Rule, Search};
    let instance = workload(3, UNIVERSAL, Metric::Tardiness, Combine::Sum);
    let objective = instance.objective();
    let all = chosen(&instance, auto(objective, 200));
    assert!([Kept, Rule, Search].iter().all(|by| all.contains(by)), "{all:?}");
    assert_ne!(all[0], Kept, "nothing was in force before");
    let found = chosen(&instance, auto(objective, 1));
    assert!(!found.contains(&Search), "one rollout is that of a rule: {found:?}");
    // With one rule by fixed dates, the order in force is that of the rule.
    let knobs = portfolio()[0].1;
    let edf = vec![(crate::rule::orders::Rule::named("edf").unwrap(), knobs)];
    let mut one = auto(objective, 1).with_rules(edf);
    cost_of(&instance, &mut one);
    let (first, others) = one.choices().split_first().expect("flows came");
    assert_eq!(first.by, Rule);
    assert!(others.iter().all(|choice| choice.by == Kept && &*choice.rule == "edf"), "{others:?}");
}

/// `auto` with a check: a flow that has reached its waiting limit is served before all others.
struct Watched {
    auto: Auto,
    /// The number of times at which a flow that had reached its waiting limit was served before another.
    first: u32,
    seen: Vec<FlowId>,
}

impl Policy for Watched {
    fn name(&self) -> &'static str {
        "watched"
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.auto.on_events(events, view, out);
        self.seen = view.instance.flows().keys().collect();
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let waited = |flow: FlowId| self.auto.serving.limits.passed(flow, view.now).is_some();
        let may_run = |flow: &FlowId| {
            let phases = view.instance.flow(*flow).phases();
            phases.into_iter().any(|phase| {
                view.instance.slot_kind_of(phase) == ask.slot_kind
                    && view.runnable(phase) > 0
                    && !ask.skip.contains(&phase)
            })
        };
        let due: Vec<FlowId> =
            self.seen.iter().copied().filter(|&flow| waited(flow) && may_run(&flow)).collect();
        let others = self.seen.iter().any(|flow| !due.contains(flow) && may_run(flow));
        let grant = self.auto.next(ask, view);
        if !due.is_empty() {
            let served = grant.map(|grant| view.instance.flow_of(grant.phase));
            assert!(
                served.is_some_and(|flow| due.contains(&flow)),
                "{served:?} is served, {due:?} have waited"
            );
            self.first += u32::from(others);
        }
        grant
    }
}

#[test]
fn a_flow_that_has_waited_a_multiple_of_its_time_alone_goes_first() {
    let overloaded = Shape { load: 1.4, ..UNIVERSAL };
    let mut first = 0;
    for (metric, combine) in METRICS {
        for seed in 0..4 {
            let instance = workload(seed, overloaded, metric, combine);
            let settings = [("effort", "0.025"), ("wait", "3")];
            let auto = Auto::new(instance.objective(), &Settings::parse(ENTRY.params, settings).unwrap());
            // Some slots are reserved from long tasks as well.
            let auto = auto.with_headroom(Span(20_000_000), 0.2);
            let mut watched = Watched { auto, first: 0, seen: Vec::new() };
            cost_of(&instance, &mut watched);
            first += watched.first;
        }
    }
    assert!(first > 100, "a flow that had waited went first {first} times");
}

/// A flow of one map phase on one slot.
fn serial(id: &str, release: f64, (tasks, seconds): (u32, f64)) -> FlowDraft {
    let map = Some(TasksDraft::Uniform { tasks, seconds }.into());
    FlowDraft { release, ..FlowDraft::new(id, vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }]) }
}

fn on_slots(slots: u32, flows: Vec<FlowDraft>, metric: Metric) -> Instance {
    let slots = Slots::Generic(slots);
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
    let objective = Objective::new(metric, Combine::Sum);
    Instance::new(&Draft { machines: vec![machine], flows, objective, ..Draft::default() }).unwrap()
}

#[test]
fn an_understated_flow_gains_nothing_beyond_its_estimate() {
    // The liar claims 40 seconds and takes 400. Another flow arrives when the liar has done 50, and takes 100
    // as claimed.
    let flows = vec![serial("liar", 0.0, (40, 10.0)), serial("honest", 45.0, (10, 10.0))];
    let instance = on_slots(1, flows, Metric::Response);
    let completions = |said: f64| {
        let believe = |instance: &Instance, phase: PhaseId| {
            let is_liar = instance.phase(phase).tasks().unwrap().count() == 40;
            Span::from_seconds_nearest(if is_liar { said } else { 10.0 })
        };
        let mut auto = auto(instance.objective(), 50);
        let mut engine = Sim::new(&instance, Options::exact());
        let run = slackline_policy::run(
            &instance,
            &mut auto,
            &mut engine,
            Config { believe: Box::new(believe), ..Config::plain() },
        );
        run.completions.raw.iter().map(|at| at.unwrap().seconds()).collect::<Vec<_>>()
    };
    assert_eq!(completions(1.0), completions(10.0));
    assert_eq!(completions(1.0), [500.0, 150.0]);
}

/// The cost of a policy with estimates that are off by a factor whose logarithm has deviation 1.
fn cost_with_noise(instance: &Instance, policy: &mut dyn Policy, seed: u64) -> f64 {
    let believe = |live: &Instance, phase| slackline_sim::noise::distorted(live, phase, 1.0, Seed(seed));
    let mut engine = Sim::new(instance, Options::exact());
    let run = slackline_policy::run(
        instance,
        policy,
        &mut engine,
        Config { believe: Box::new(believe), ..Config::plain() },
    );
    let completions: Vec<f64> = run.completions.iter().map(|at| at.unwrap().seconds()).collect();
    instance.cost_of(&completions)
}

#[test]
fn with_bad_estimates_it_costs_no_more_than_the_rule_for_the_metric() {
    let shape = Shape { load: 0.8, ..UNIVERSAL };
    for (metric, order) in [(Metric::Response, "slope"), (Metric::Tardiness, "atc"), (Metric::Tardy, "moore")]
    {
        let (mut auto_cost, mut rule_cost) = (0.0, 0.0);
        for seed in 0..8 {
            let instance = workload(seed, shape, metric, Combine::Sum);
            auto_cost += cost_with_noise(&instance, &mut auto(instance.objective(), 200), seed);
            let settings = Settings::parse(crate::rule::ENTRY.params, [("order", order)]).unwrap();
            let mut rule = (crate::rule::ENTRY.make)(instance.cluster(), &instance.objective(), &settings);
            rule_cost += cost_with_noise(&instance, &mut *rule, seed);
        }
        println!("{metric:?}: auto {auto_cost}, {order} {rule_cost}");
        assert!(rule_cost > 0.0 && auto_cost <= 1.05 * rule_cost, "{metric:?}: {auto_cost}, {rule_cost}");
    }
}

#[test]
fn with_bad_estimates_flows_go_by_the_rule_for_the_metric() {
    let all = portfolio();
    let names = |objective| -> Vec<&str> {
        usable(&all, objective).into_iter().map(|at: usize| all[at].0.name).collect()
    };
    let sum = |metric| names(Some(Objective::new(metric, Combine::Sum)));
    assert_eq!(names(None).len(), all.len());
    assert_eq!(sum(Metric::Response), ["slope"]);
    assert_eq!(sum(Metric::Tardiness), ["atc"]);
    assert_eq!(sum(Metric::Tardy), ["moore"]);
    assert_eq!(names(Some(Objective::new(Metric::Slowdown, Combine::Max))), ["due"; 5]);
    let by_length: Vec<_> = all.into_iter().filter(|(rule, _)| rule.name == "area").collect();
    let tardiness = Objective::new(Metric::Tardiness, Combine::Sum);
    assert_eq!(usable(&by_length, Some(tardiness)), [0], "without that rule, all are tried");
}

/// Nothing is known of any length at first. Waiting limits from lengths of a second would end the order by
/// deadlines soon after.
#[test]
fn with_unknown_lengths_it_costs_no_more_than_the_rule_for_the_metric() {
    let due = |k: u32| FlowDraft {
        deadline: Some(400.0 * f64::from(12 - k)),
        ..serial(&format!("f{k}"), 0.0, (20, 60.0 + f64::from(k)))
    };
    let instance = on_slots(4, (0..12).map(due).collect(), Metric::Tardiness);
    let cost = |policy: &mut dyn Policy| {
        let learning = Some(Learning::new(instance.cluster(), &History::default()));
        let mut engine = Sim::new(&instance, Options::exact());
        let run =
            slackline_policy::run(&instance, policy, &mut engine, Config { learning, ..Config::plain() });
        let completions: Vec<f64> = run.completions.iter().map(|at| at.unwrap().seconds()).collect();
        instance.cost_of(&completions)
    };
    let settings = Settings::parse(crate::rule::ENTRY.params, [("order", "atc")]).unwrap();
    let mut rule = (crate::rule::ENTRY.make)(instance.cluster(), &instance.objective(), &settings);
    let (ours, theirs) = (cost(&mut auto(instance.objective(), 200)), cost(&mut *rule));
    assert!(ours <= theirs, "auto {ours}, atc {theirs}");
}

/// Two jobs on map slots and reduce slots. By tails the long map phase goes first, and the reduce slots are
/// idle until it ends.
#[test]
fn a_short_map_phase_before_many_reduces_goes_first_on_typed_slots() {
    let job = |id: &str, map: f64, reduce: f64| JobDraft {
        map: Some(TasksDraft::Uniform { tasks: 4, seconds: map }.into()),
        reduce: Some(TasksDraft::Uniform { tasks: 4, seconds: reduce }.into()),
        ..JobDraft { id: id.to_owned(), ..JobDraft::default() }
    };
    let jobs = vec![job("long", 100.0, 20.0), job("short", 10.0, 90.0)];
    let slots = Slots::MapReduce { map: 4, reduce: 4 };
    let draft = Draft {
        flows: vec![FlowDraft::new("f", jobs)],
        machines: vec![MachineDraft { name: "m".to_owned(), count: 1, speed: 1.0, slots, rack: None }],
        objective: Objective::new(Metric::Response, Combine::Sum),
        ..Draft::default()
    };
    let instance = Instance::new(&draft).unwrap();
    // 10 s of maps, then reduces until 100 beside maps until 110, then 20 s; by tails 100 + 20 + 90.
    assert_eq!(cost_of(&instance, &mut auto(instance.objective(), 50)), 130.0);
}

#[test]
fn flows_that_were_announced_are_reckoned_with() {
    // At 60 there are tasks of 30 and of 70 seconds. At 100 an urgent flow arrives, as at 0. If those of 30
    // go first, all slots are busy from 90 to 160, if those of 70 go first only until 130.
    let urgent = |id: &str, release: f64| FlowDraft {
        weight: 100.0,
        deadline: Some(release + 10.0),
        ..serial(id, release, (10, 10.0))
    };
    let late = |id: &str, seconds: f64| FlowDraft {
        deadline: Some(60.0 + seconds),
        ..serial(id, 60.0, (10, seconds))
    };
    let others = [late("short", 30.0), late("long", 70.0)];
    let again = FlowDraft { repeat: Some(Repeat { every: 100.0, times: 2 }), ..urgent("urgent", 0.0) };
    let announced = on_slots(10, [vec![again], others.to_vec()].concat(), Metric::Tardiness);
    let unknown = [vec![urgent("urgent", 0.0), urgent("again", 100.0)], others.to_vec()].concat();
    let unknown = on_slots(10, unknown, Metric::Tardiness);
    let cost = |instance: &Instance| cost_of(instance, &mut auto(instance.objective(), 50));
    assert_eq!((cost(&announced), cost(&unknown)), (3000.0 + 80.0, 6000.0 + 30.0));
}

/// Moves flows at each arrival, and compares rollouts that start at the first change with whole ones.
struct Nearby {
    auto: Auto,
    /// The number of compared rollouts.
    compared: u32,
}

impl Policy for Nearby {
    fn name(&self) -> &'static str {
        "nearby"
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.auto.on_events(events, view, out);
        let Auto { evaluator, rng, .. } = &mut self.auto;
        let n = evaluator.flows().len();
        if n < 3 || !events.iter().any(|event| matches!(event, Event::FlowArrived(_))) {
            return;
        }
        let mut order: Vec<u32> = (0..n as u32).collect();
        evaluator.remember(&order);
        for _ in 0..6 {
            let [from, to] = [0; 2].map(|_| random::integer(rng, 0, n as u64 - 1) as usize);
            shift(&mut order, from, to);
            let moved = &order[from.min(to)..=from.max(to)];
            let near = evaluator.roll_near(&order, moved, |_| false).map(|(_, at)| at.to_vec());
            let whole = evaluator.roll(Sequence::Flows(&order)).map(|(_, at)| at.to_vec());
            assert_eq!(near, whole, "{from} to {to} of {n}");
            shift(&mut order, to, from);
            self.compared += 1;
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.auto.next(ask, view)
    }
}

#[test]
fn rollouts_that_begin_where_nothing_has_changed_yet_end_as_whole_ones() {
    for (slots, seed) in [(Slots::Generic(20), 3), (Slots::MapReduce { map: 12, reduce: 6 }, 4)] {
        let shape = Shape { slots, jobs: 6, load: 1.2, ..UNIVERSAL };
        let instance = workload(seed, shape, Metric::Response, Combine::Sum);
        let settings = Settings::parse(ENTRY.params, [("effort", "0.005"), ("wait", "3")]).unwrap();
        let auto = Auto::new(instance.objective(), &settings).with_headroom(Span(20_000_000), 0.2);
        let mut nearby = Nearby { auto, compared: 0 };
        cost_of(&instance, &mut nearby);
        assert!(nearby.compared > 100, "{} rollouts were compared", nearby.compared);
    }
}

#[test]
fn the_page_says_what_each_parameter_does() {
    for param in ENTRY.params.iter().filter(|param| param.name != "seed") {
        let says = |paragraph: &&str| paragraph.starts_with(&format!("{}=", param.name));
        assert!(ENTRY.page.iter().any(says), "{}", param.name);
    }
}

#[test]
fn decisions_do_at_most_a_multiple_of_the_work_of_execution() {
    let much = Shape { load: 1e6, jobs: 40, ..UNIVERSAL };
    let instance = workload(1, much, Metric::Slowdown, Combine::Max);
    let mut auto = auto(instance.objective(), 200);
    cost_of(&instance, &mut auto);
    let steps = (instance.flows().len() + instance.phases().len()) as u64 + instance.n_tasks();
    let (work, most) = (auto.evaluator.work(), FREE + PER_STEP * steps as f64);
    assert!(work as f64 <= most && work as f64 > FREE / 2.0, "{work} of at most {most}");
}
