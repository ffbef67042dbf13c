//! Tests the policy in the simulator: initial allocations, arrivals, early reduces, wrong estimates.

use std::collections::BTreeMap;

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{FlowId, History, PhaseId, PhaseKind, SlotKind, Span, Time};
use slackline_policy::engine::{Capabilities, Report, RowId, Start};
use slackline_policy::{Action, Ask, Config, Engine, Event, Grant, Learning, Policy, Style, View, run};
use slackline_sim::{Options, Sim};

use super::*;
use crate::baseline::{Fair, Fifo, ShareUnit};
use crate::flowflex::online::initial_allocation;

/// A policy that is looked over the shoulder.
struct Watched {
    inner: FlowFlex,
    /// Targets by the instant at which they were pushed.
    targets: Vec<(Time, PhaseId, f64)>,
    /// Instants of plans, and phases that had early reduces then.
    early: Vec<(Time, PhaseId)>,
}

impl Policy for Watched {
    fn name(&self) -> &'static str {
        "watched"
    }

    fn style(&self) -> Style {
        self.inner.style()
    }

    fn fills_early(&self) -> bool {
        self.inner.fills_early()
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        let before = out.len();
        self.inner.on_events(events, view, out);
        for action in &out[before..] {
            if let Action::Target { phase, slots } = *action {
                self.targets.push((view.now, phase, slots));
                if view.state.is_early(view.instance, phase) && slots > 0.0 {
                    let maps = view.instance.job(view.instance.phase(phase).job).map.unwrap();
                    assert_eq!(view.phase(maps).unstarted(), 0);
                    self.early.push((view.now, phase));
                }
            }
        }
    }
}

fn gridmix(settings: &[(&str, &str)], seed: u64, objective: Objective) -> Instance {
    let draft = generate::generator("flowflex-5.2").unwrap().generate(settings, Seed(seed)).unwrap();
    Instance::new(&draft).unwrap().with_objective(objective, Weights::Use).unwrap()
}

/// The cost of a simulated run that the judge has validated.
fn simulated(instance: &Instance, policy: &mut dyn Policy, (slowstart, learned): (f64, bool)) -> f64 {
    let mut config = Config { slowstart, ..Config::plain().audited() };
    if learned {
        config.learning = Some(Learning::new(instance.cluster(), &History::new()));
    }
    let mut engine = Sim::new(instance, Options::exact());
    let mut schedule =
        run(instance, policy, &mut engine, config).schedule(instance, "flowflex", Clock::Exact);
    schedule.slowstart = slowstart;
    check(instance, &schedule).unwrap().cost
}

const EPOCH: Span = Span(2_000_000);

#[test]
fn the_first_targets_are_the_initial_allocation_of_the_plan() {
    for seed in 0..5 {
        let objective = Objective::new(Metric::Completion, Combine::Sum);
        let instance = gridmix(&[("flows", "4")], seed, objective);
        let mut policy = Watched { inner: FlowFlex::new(EPOCH), targets: Vec::new(), early: Vec::new() };
        simulated(&instance, &mut policy, (1.0, false));
        let net = network::Network::whole(&instance, 1.0);
        let mut planned: Vec<(PhaseId, f64)> = initial_allocation(&net, 0.0)
            .into_iter()
            .map(|(node, slots)| (net.node(node).phase, f64::from(slots)))
            .filter(|&(_, slots)| slots > 0.0)
            .collect();
        planned.sort_by_key(|p| p.0);
        let now = policy.targets.iter().filter(|t| t.0 == Time::ZERO);
        let mut pushed: Vec<(PhaseId, f64)> = now.map(|&(_, phase, slots)| (phase, slots)).collect();
        pushed.sort_by_key(|p| p.0);
        assert_eq!(pushed, planned);
        // No more than the slots at any plan, and one plan an epoch.
        let mut times: Vec<Time> = policy.targets.iter().map(|t| t.0).collect();
        times.dedup();
        assert!(times.windows(2).all(|pair| pair[1].0 - pair[0].0 >= EPOCH.0));
    }
}

#[test]
fn early_reduces_get_what_is_left_once_their_maps_have_started() {
    let mut seen = 0;
    for seed in 0..5 {
        let instance = gridmix(&[("flows", "4")], seed, Objective::new(Metric::Completion, Combine::Sum));
        let mut policy = Watched { inner: FlowFlex::new(EPOCH), targets: Vec::new(), early: Vec::new() };
        simulated(&instance, &mut policy, (0.5, false));
        seen += policy.early.len();
        for (_, phase) in policy.early {
            assert_eq!(instance.phase(phase).kind, PhaseKind::Reduce);
        }
    }
    assert!(seen > 0, "some reduces take slots early");
}

#[test]
fn flows_that_arrive_over_time_are_served_better_than_by_fifo_and_fair() {
    for gap in ["0", "60"] {
        let (mut ours, mut fifo, mut fair, mut blind) = (0.0, 0.0, 0.0, 0.0);
        for seed in 0..5 {
            let settings = [("flows", "6"), ("gap", gap)];
            let instance = gridmix(&settings, seed, Objective::new(Metric::Response, Combine::Sum));
            let mut policy = FlowFlex::new(EPOCH);
            ours += simulated(&instance, &mut policy, (0.5, false));
            blind += simulated(&instance, &mut FlowFlex::new(EPOCH), (0.5, true));
            fifo += simulated(&instance, &mut Fifo::new(ShareUnit::Job), (0.5, false));
            fair += simulated(&instance, &mut Fair::new(ShareUnit::Job), (0.5, false));
        }
        println!("gap {gap}: fifo {:.3}, fair {:.3}, learning {:.3}", fifo / ours, fair / ours, blind / ours);
        assert!(ours < fifo && ours < fair && blind < fair.max(fifo));
    }
}

#[test]
fn every_metric_runs_online() {
    for metric in Metric::ALL {
        for combine in [Combine::Sum, Combine::Max] {
            if matches!(metric, Metric::Sla | Metric::Piecewise) {
                continue;
            }
            let settings = [("flows", "3"), ("gap", "30")];
            let mut draft =
                generate::generator("flowflex-5.2").unwrap().generate(&settings, Seed(7)).unwrap();
            for flow in &mut draft.flows {
                flow.deadline = Some(flow.release + 300.0);
            }
            let instance = Instance::new(&draft).unwrap();
            let instance = instance.with_objective(Objective::new(metric, combine), Weights::Use).unwrap();
            simulated(&instance, &mut FlowFlex::new(Span::ZERO), (0.05, false));
        }
    }
}

#[test]
fn makespan_is_no_longer_than_with_fifo_on_average() {
    let (mut ours, mut fifo) = (0.0, 0.0);
    for seed in 0..6 {
        let instance = gridmix(&[("flows", "6")], seed, Objective::new(Metric::Makespan, Combine::Max));
        ours += simulated(&instance, &mut FlowFlex::new(EPOCH), (0.05, false));
        fifo += simulated(&instance, &mut Fifo::new(ShareUnit::Job), (0.05, false));
    }
    println!("fifo {:.3}", fifo / ours);
    assert!(ours <= fifo, "{ours}, FIFO {fifo}");
}

/// Targets over a run of `instance` with epochs, and how many nodes were planned.
fn watched(instance: &Instance) -> (Vec<(Time, PhaseId, f64)>, u64) {
    let mut policy = Watched { inner: FlowFlex::new(EPOCH), targets: Vec::new(), early: Vec::new() };
    simulated(instance, &mut policy, (1.0, false));
    (policy.targets, policy.inner.nodes_planned)
}

fn on_slots(slots: u32, flows: Vec<FlowDraft>) -> Instance {
    let machine =
        MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(slots), rack: None };
    Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
}

/// Jobs of `tasks` maps of a second, one after the other.
fn chain(id: &str, jobs: usize, tasks: u32) -> FlowDraft {
    let job = |k: usize| JobDraft {
        id: format!("j{k}"),
        after: k.checked_sub(1).map(|before| format!("j{before}")).into_iter().collect(),
        map: Some(TasksDraft::Uniform { tasks, seconds: 1.0 }.into()),
        ..JobDraft::default()
    };
    FlowDraft::new(id, (0..jobs).map(job).collect())
}

#[test]
fn a_long_chain_is_not_planned_to_its_end_in_every_epoch() {
    for tasks in [1, 5] {
        let (targets, nodes) = watched(&on_slots(2, vec![chain("deep", 400, tasks)]));
        assert_eq!(nodes, 0, "what is ready fits: 400 phases of {tasks} tasks");
        let most = targets.iter().map(|&(_, _, slots)| slots).fold(0.0, f64::max);
        assert_eq!(most, f64::from(tasks.min(2)), "all it can use");
    }
    let (_, nodes) = watched(&on_slots(2, vec![chain("deep", 100, 1), chain("beside", 100, 1)]));
    assert_eq!(nodes, 0, "two chains fit on two slots");
    let (_, nodes) = watched(&on_slots(2, vec![chain("deep", 100, 2), chain("beside", 100, 2)]));
    assert!(nodes > 0, "who is served first is a matter of plans");
}

/// On four slots and with epochs of an hour: when the first job of a chain is over, its slot follows the
/// plan, whose first flow is the chain, and not targets that know nothing of its second job.
#[test]
fn between_plans_slots_follow_the_order_of_the_last() {
    let tasks = |id: &str, after: &[&str], tasks, seconds| JobDraft {
        id: id.into(),
        after: after.iter().map(|&before| before.into()).collect(),
        map: Some(TasksDraft::Uniform { tasks, seconds }.into()),
        ..JobDraft::default()
    };
    let urgent =
        FlowDraft::new("urgent", vec![tasks("first", &[], 1, 1.0), tasks("second", &["first"], 3, 4.0)]);
    let big = FlowDraft::new("big", vec![tasks("all", &[], 40, 4.0)]);
    let instance = on_slots(4, vec![big, urgent]);
    let hour = FlowFlex::new(Span::from_seconds_nearest(3600.0));
    let (letter, ordered) = (hour.clone(), hour.in_order());
    let response = |mut policy: FlowFlex| simulated(&instance, &mut policy, (1.0, false));
    // The chain is done at 8 s if its second job gets the slots that come free at 1 and 4 s.
    let (stale, followed) = (response(letter), response(ordered));
    assert!(followed < stale, "{followed} in order, {stale} by targets");
}

/// In the mean over workloads the order of the last plan serves no worse than its targets, nor on map and reduce slots
/// the kind that has most to do than the sum of both.
#[test]
fn orders_between_plans_and_binding_kinds_gain_in_the_mean() {
    for (gap, slots) in [
        ("0", Slots::Generic(32)),
        ("60", Slots::Generic(32)),
        ("60", Slots::MapReduce { map: 28, reduce: 4 }),
        ("60", Slots::MapReduce { map: 12, reduce: 20 }),
    ] {
        let (mut ordered, mut bound, n) = (0.0, 0.0, 5);
        for seed in 0..n {
            let settings = [("flows", "8"), ("gap", gap)];
            let mut draft =
                generate::generator("flowflex-5.2").unwrap().generate(&settings, Seed(seed)).unwrap();
            draft.machines = vec![MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None }];
            draft.objective = Objective::new(Metric::Response, Combine::Sum);
            let instance = Instance::new(&draft).unwrap();
            let response = |mut policy: FlowFlex| simulated(&instance, &mut policy, (1.0, false));
            let letter = response(FlowFlex::new(EPOCH));
            ordered += libm::log(response(FlowFlex::new(EPOCH).in_order()) / letter);
            bound += libm::log(response(FlowFlex::new(EPOCH).in_order().by_binding_kind()) / letter);
        }
        let (ordered, bound) = (libm::exp(ordered / n as f64), libm::exp(bound / n as f64));
        println!("gap {gap}, {slots:?}: in order {ordered:.4}, by the binding kind too {bound:.4}");
        assert!(ordered <= 1.0 + 1e-9 && bound <= ordered + 0.005);
    }
}

/// Reduces that wait for their maps take only slots that no other phase can use, once all maps have started.
#[test]
fn in_order_early_reduces_come_last() {
    struct Early(FlowFlex, u32);
    impl Policy for Early {
        fn name(&self) -> &'static str {
            "early"
        }
        fn style(&self) -> Style {
            self.0.style()
        }
        fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
            self.0.on_events(events, view, out);
        }
        fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
            let grant = self.0.next(ask, view)?;
            if view.state.is_early(view.instance, grant.phase) {
                self.1 += 1;
                let maps = view.instance.job(view.instance.phase(grant.phase).job).map.unwrap();
                assert_eq!(view.phase(maps).unstarted(), 0, "some maps have not started");
                let others = view
                    .state
                    .ready(ask.slot_kind)
                    .filter(|&other| view.runnable(other) > 0 && !ask.skip.contains(&other));
                assert!(
                    { others }.all(|other| view.state.is_early(view.instance, other)),
                    "another could work"
                );
            }
            Some(grant)
        }
    }
    let mut seen = 0;
    for seed in 0..5 {
        let instance = gridmix(&[("flows", "4")], seed, Objective::new(Metric::Completion, Combine::Sum));
        let mut policy = Early(FlowFlex::new(EPOCH).in_order(), 0);
        simulated(&instance, &mut policy, (0.5, false));
        seen += policy.1;
    }
    assert!(seen > 0, "some reduces take slots early");
}

/// On nine slots for maps and one for reduces, reduces are what everybody waits for: the flow with less of
/// them is first, though it has more work. All that a flow has to do.
struct All<'a>(&'a Instance);
impl network::Remaining for All<'_> {
    fn work(&self, phase: PhaseId) -> Option<f64> {
        Some(self.0.phase(phase).work().slot_seconds())
    }
    fn cap(&self, phase: PhaseId) -> u32 {
        self.0.phase(phase).cap
    }
}

#[test]
fn orders_look_at_the_kind_of_slots_that_has_most_to_do() {
    let flow = |id: &str, maps, reduces| {
        let job = JobDraft {
            id: "j".into(),
            map: Some(TasksDraft::Uniform { tasks: maps, seconds: 1.0 }.into()),
            reduce: Some(TasksDraft::Uniform { tasks: reduces, seconds: 1.0 }.into()),
            ..JobDraft::default()
        };
        FlowDraft::new(id, vec![job])
    };
    let slots = Slots::MapReduce { map: 9, reduce: 1 };
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
    let flows = vec![flow("reduces", 1, 12), flow("maps", 20, 4)];
    let draft = Draft { machines: vec![machine], flows, ..Draft::default() };
    let instance = Instance::new(&draft).unwrap();
    let net = |binding| {
        let supply = network::Supply { slots: [9, 1], speed: 1.0, binding };
        network::Network::of(&instance, instance.flows().keys(), supply, 0.0, &All(&instance))
    };
    let smith = |net: &network::Network| orders::Rule::Smith.order(net);
    let (sum, binding) = (net(false), net(true));
    assert_eq!((smith(&sum), sum.capacity()), (vec![0, 1], 10.0));
    assert_eq!((smith(&binding), binding.capacity(), binding.flows[1].work), (vec![1, 0], 1.0, 4.0));
}

/// The simulator, but every attempt at the first phase ends with an error.
struct Broken<'a> {
    sim: Sim<'a>,
    doomed: Vec<RowId>,
}

impl Engine for Broken<'_> {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let now = self.sim.poll(reports)?;
        for report in reports {
            if let Report::Finished { row, at } = *report
                && self.doomed.contains(&row)
            {
                *report = Report::Failed { row, at, is_final: false };
            }
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        if start.phase == PhaseId(0) {
            self.doomed.push(start.row);
        }
        self.sim.start(start, live);
    }

    fn order(&mut self, order: slackline_policy::engine::Order) {
        self.sim.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.sim.wake_at(at);
    }

    fn may_bring_flows(&mut self) -> bool {
        self.sim.may_bring_flows()
    }
}

/// Counts the slots that targets give to what is ready.
struct Counted {
    inner: FlowFlex,
    targets: BTreeMap<PhaseId, f64>,
    has_failed: bool,
    /// From when on a flow has failed: phases that are ready, and slots they are to hold.
    after: Vec<(usize, f64)>,
}

impl Policy for Counted {
    fn name(&self) -> &'static str {
        "counted"
    }

    fn style(&self) -> Style {
        Style::Targets
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        let before = out.len();
        self.inner.on_events(events, view, out);
        for action in &out[before..] {
            if let Action::Target { phase, slots } = *action {
                self.targets.insert(phase, slots);
            }
        }
        self.has_failed |= events.contains(&Event::FlowFailed(FlowId(0)));
        if self.has_failed {
            let ready: Vec<PhaseId> = view.state.ready(SlotKind::Any).collect();
            let slots = ready.iter().filter_map(|phase| self.targets.get(phase)).sum();
            self.after.push((ready.len(), slots));
        }
    }
}

#[test]
fn an_abandoned_flow_takes_no_slots_of_a_plan() {
    // The first flow is short and would come first. What it leaves is too little for all that the others can
    // use.
    let flows = vec![chain("failed", 2, 2), chain("lives", 12, 2), chain("beside", 12, 2)];
    let instance = on_slots(3, flows);
    let (targets, after) = (BTreeMap::new(), Vec::new());
    let mut policy = Counted { inner: FlowFlex::new(Span::ZERO), targets, has_failed: false, after };
    let mut engine = Broken { sim: Sim::new(&instance, Options::exact()), doomed: Vec::new() };
    run(&instance, &mut policy, &mut engine, Config::plain().audited());
    let contended: Vec<f64> = policy.after.iter().filter(|a| a.0 == 2).map(|a| a.1).collect();
    assert!(contended.len() > 5 && contended.iter().all(|&slots| slots == 3.0), "{contended:?}");
}
