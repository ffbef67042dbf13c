//! The policy through the simulator: initial allocations, arrivals, early reduces, wrong estimates.

use slackline_model::{History, PhaseId, PhaseKind, Span, Time};
use slackline_policy::{Action, Config, Event, Learning, Policy, Style, View, run};
use slackline_sim::{Options, Sim};

use super::*;
use crate::baseline::{By, Fair, Fifo};
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

/// The cost of a simulated run that the judge has looked at.
fn simulated(instance: &Instance, policy: &mut dyn Policy, (slowstart, learned): (f64, bool)) -> f64 {
    let mut config = Config { audit: true, slowstart, ..Config::plain(instance) };
    if learned {
        let (learning, estimates) = Learning::start(instance, &History::new());
        (config.learning, config.estimates) = (Some(learning), estimates);
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
            fifo += simulated(&instance, &mut Fifo::new(By::Job), (0.5, false));
            fair += simulated(&instance, &mut Fair::new(By::Job), (0.5, false));
        }
        println!("gap {gap}: fifo {:.3}, fair {:.3}, learning {:.3}", fifo / ours, fair / ours, blind / ours);
        assert!(ours < fifo && ours < fair && blind < fair.max(fifo));
    }
}

#[test]
fn every_metric_runs_online() {
    for &metric in Metric::ALL {
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
        fifo += simulated(&instance, &mut Fifo::new(By::Job), (0.05, false));
    }
    println!("fifo {:.3}", fifo / ours);
    assert!(ours <= fifo, "{ours}, FIFO {fifo}");
}
