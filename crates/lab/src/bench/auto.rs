//! Rollouts: the number per second that the evaluator of `auto` makes, by the number of active flows.
//!
//! Flows are chains of up to six jobs on 100 generic slots, all active at once; orders are random. The
//! targets are 50 microseconds for 100 batches, and 10 milliseconds for a decision of `auto` at 100 flows.
//! Such a decision makes a rollout of each rule and 200 near the best. Many of these start at the first
//! change and end when they are clearly worse. At 1,000 flows the target is 50 milliseconds. Then flows
//! arrive one by one, and every decision is measured.

use slackline_algo::auto::{ENTRY, Evaluator, Sequence};
use slackline_algo::rule::{online, residual::Residual};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::params::Settings;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Draft, Instance, Seed};
use slackline_policy::{Action, Ask, Config, Event, Grant, Policy, View};
use slackline_sim::{Options, Sim};

use super::measure::{busy, fnv, hash};
use super::size::Size;

/// Prints a row for each number of flows.
pub fn run(size: Size) {
    let (sizes, rollouts): (&[usize], usize) = match size {
        Size::Small => (&[10], 3),
        Size::Large => (&[10, 30, 100, 300, 1000, 3000], 2000),
    };
    println!(
        "{:>6} {:>7} {:>8} {:>12} {:>16} {:>10} {:>12}  hash",
        "flows", "phases", "batches", "rollouts/s", "us/100 batches", "look us", "decision ms"
    );
    for &flows in sizes {
        let instance = instance(flows, 0);
        let mut probe = Probe { rollouts, is_done: false };
        let mut engine = Sim::new(&instance, Options::exact());
        slackline_policy::run(&instance, &mut probe, &mut engine, Config::plain());
    }
    decisions(size);
}

/// Prints a row for each number of active flows to which others are added.
fn decisions(size: Size) {
    let (sizes, come): (&[usize], usize) = match size {
        Size::Small => (&[10], 3),
        Size::Large => (&[100, 1_000, 10_000], 100),
    };
    println!(
        "\n{:>6} {:>7} {:>10} {:>8} {:>8} {:>8}  hash",
        "flows", "phases", "decisions", "p50 ms", "p99 ms", "most ms"
    );
    for &flows in sizes {
        let instance = instance(flows, come);
        let defaults = Settings::defaults(ENTRY.params);
        let auto = (ENTRY.make)(instance.cluster(), &instance.objective(), &defaults);
        let mut timed = Timed { auto, took: Vec::new(), wanted: come + 1, phases: 0 };
        let mut engine = Sim::new(&instance, Options::exact());
        let run = slackline_policy::run(&instance, &mut timed, &mut engine, Config::plain());
        // The first decision includes all flows that were active before the others arrived.
        let mut took = timed.took[1..].to_vec();
        took.sort_by(f64::total_cmp);
        let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize] * 1e3;
        println!(
            "{flows:>6} {:>7} {:>10} {:>8.1} {:>8.1} {:>8.1}  {:016x}",
            timed.phases,
            took.len(),
            at(0.5),
            at(0.99),
            at(1.0),
            hash(&run.tasks)
        );
    }
}

/// `flows` flows that are active at once, and `come` that arrive after them, one a second.
fn instance(flows: usize, come: usize) -> Instance {
    let rng = &mut random::rng(Seed(1), "rollouts", 0);
    let machine =
        MachineDraft { name: "m".into(), count: 10, speed: 1.0, slots: Slots::Generic(10), rack: None };
    let release = |id: usize| (id + 1).saturating_sub(flows) as f64;
    let flows = (0..flows + come).map(|id| FlowDraft { release: release(id), ..chain(id, rng) }).collect();
    Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() })
        .expect("the drafts are valid")
}

fn chain(id: usize, rng: &mut ChaCha8Rng) -> FlowDraft {
    let mut phase = |most: u64| {
        let (tasks, seconds) = (random::integer(rng, 1, most), random::integer(rng, 5, 60));
        Some(TasksDraft::Uniform { tasks: tasks as u32, seconds: seconds as f64 }.into())
    };
    let jobs = (0..=id % 6).map(|job| {
        let after = if job > 0 { vec![format!("j{}", job - 1)] } else { Vec::new() };
        JobDraft { id: format!("j{job}"), after, map: phase(40), reduce: phase(10), ..JobDraft::default() }
    });
    FlowDraft::new(format!("f{id}"), jobs.collect())
}

/// A policy that measures when the flows arrive, and then leaves all slots free.
struct Probe {
    rollouts: usize,
    is_done: bool,
}

impl Policy for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.is_done, true) {
            self.measure(events, view);
        }
    }
}

impl Probe {
    fn measure(&self, events: &[Event], view: &View<'_>) {
        let defaults = Settings::defaults(ENTRY.params);
        let mut auto = (ENTRY.make)(view.instance.cluster(), &view.instance.objective(), &defaults);
        let ((), decision) = busy(|| auto.on_events(events, view, &mut Vec::new()));
        let mut evaluator = Evaluator::default();
        let ((), look) = busy(|| {
            evaluator.look(view, online::by_tail(&Residual::of(view), view));
        });
        let mut order: Vec<u32> = (0..evaluator.flows().len() as u32).collect();
        let rng = &mut random::rng(Seed(1), "orders", 0);
        let last = order.len() as u64 - 1;
        let mut sums = Vec::with_capacity(self.rollouts);
        let mut roll = |order: &[u32]| {
            let (_, completions) = evaluator.roll(Sequence::Flows(order)).expect("all slots are up");
            sums.push(completions.iter().map(|at| at.0).sum::<u64>());
        };
        roll(&order);
        let ((), seconds) = busy(|| {
            for _ in 0..self.rollouts {
                order.swap(random::integer(rng, 0, last) as usize, random::integer(rng, 0, last) as usize);
                roll(&order);
            }
        });
        let rollouts = self.rollouts as f64;
        let batches = evaluator.batches() as f64 / (rollouts + 1.0);
        println!(
            "{:>6} {:>7} {batches:>8.0} {:>12.0} {:>16.1} {:>10.0} {:>12.1}  {:016x}",
            order.len(),
            view.instance.phases().len(),
            rollouts / seconds,
            seconds / rollouts / batches * 1e8,
            look * 1e6,
            decision * 1e3,
            fnv(sums)
        );
    }
}

/// `auto`, with the durations of its decisions. After the requested number of measurements it assigns no more
/// slots, and the run ends.
struct Timed {
    auto: Box<dyn Policy>,
    /// Seconds of each decision.
    took: Vec<f64>,
    /// The number of decisions to measure.
    wanted: usize,
    /// The total number of phases.
    phases: usize,
}

impl Policy for Timed {
    fn name(&self) -> &'static str {
        "timed"
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        let ((), seconds) = busy(|| self.auto.on_events(events, view, out));
        self.phases = view.instance.phases().len();
        if events.iter().any(|event| matches!(event, Event::FlowArrived(_))) {
            self.took.push(seconds);
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        (self.took.len() < self.wanted).then(|| self.auto.next(ask, view)).flatten()
    }
}
