//! Your own policy, compared with others.
//!
//! `cargo run -p slackline --example add_a_policy`
//!
//! A policy hears of events and answers when a slot is free. This one serves the flow with the least
//! work left; it knows nothing of the engine, so the same object could drive a real cluster.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use slackline::model::cluster::Slots;
use slackline::model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline::model::{Draft, FlowId, Instance, PhaseId};
use slackline::policy::{Action, Ask, Event, Grant, Policy, Style, View};
use slackline::simulate::QuickBound;
use slackline::{Options, PolicySpec, Registry, SideBySide, compare};

/// Shortest remaining work first, over flows.
struct ShortestFirst;

impl ShortestFirst {
    /// Slot-seconds a flow still has to do, as far as the estimates go.
    fn work_left(flow: FlowId, view: &View<'_>) -> f64 {
        let jobs = view.instance.flow(flow).jobs();
        jobs.flat_map(|job| view.instance.job(job).phases()).map(|phase| view.work_left(phase)).sum()
    }
}

impl Policy for ShortestFirst {
    fn name(&self) -> &'static str {
        "shortest-first"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let can_run = |phase: &PhaseId| view.runnable(*phase) > 0 && !ask.skip.contains(phase);
        let left = |phase: &PhaseId| Self::work_left(view.instance.flow_of(*phase), view);
        let ready = view.state.ready(ask.slot_kind).filter(can_run);
        let shortest = ready.min_by(|a, b| left(a).total_cmp(&left(b)).then(a.cmp(b)));
        shortest.map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let flow = |id: &str, tasks, release| FlowDraft {
        release,
        ..FlowDraft::new(
            id,
            vec![JobDraft {
                id: "job".to_owned(),
                map: Some(TasksDraft::Uniform { tasks, seconds: 10.0 }.into()),
                reduce: Some(TasksDraft::Uniform { tasks: 2, seconds: 5.0 }.into()),
                ..JobDraft::default()
            }],
        )
    };
    let node =
        MachineDraft { name: "node".into(), count: 2, speed: 1.0, slots: Slots::Generic(2), rack: None };
    let flows = vec![flow("nightly", 40, 0.0), flow("query", 3, 12.0), flow("report", 8, 15.0)];
    let instance = Instance::new(&Draft { machines: vec![node], flows, ..Draft::default() })?;

    let mut policies = vec![PolicySpec::new("shortest-first", |_, _| Box::new(ShortestFirst))];
    policies.extend(Registry::standard().policies());
    let bound = QuickBound::default();
    println!("no schedule has a total response below {:.1} s", bound.get(&instance).unwrap_or(0.0));
    for one in compare(&instance, &policies, &Options::exact(), Some(&bound), SideBySide::default()) {
        println!("{:15} {} s", one.policy.spec(), one.result?.schedule.cost.unwrap_or_default());
    }
    Ok(())
}
