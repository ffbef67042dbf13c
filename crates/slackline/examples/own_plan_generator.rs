//! WOHA with your own plan generator.
//!
//! `cargo run -p slackline --example own_plan_generator`
//!
//! A plan generator sees one flow and the cluster and answers with a plan; the AM follows it like
//! any other. The paper's two lines of configuration are the last two arguments of `Woha::new`.
#![allow(clippy::print_stdout, reason = "an example shows something")]

use slackline::algo::woha::lag::Lags;
use slackline::algo::woha::{Plan, PlanGenerator, Request, Step, Woha};
use slackline::model::cluster::Slots;
use slackline::model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline::model::{Draft, Instance, Span, Time};
use slackline::{Options, PolicySpec};

/// Spreads the starts of the tasks evenly, the last one early enough, in the order of the document.
struct EvenPace;

impl PlanGenerator for EvenPace {
    fn plan(&self, request: &Request<'_>) -> Plan {
        let instance = request.instance;
        let jobs = || instance.flow(request.flow).jobs();
        let phases = || jobs().flat_map(|job| instance.job(job).phases());
        let tasks: u64 =
            phases().filter_map(|p| instance.phase(p).tasks()).map(|t| u64::from(t.count())).sum();
        let longest = phases().map(|phase| request.span(phase)).max().unwrap_or_default();
        let budget = request.budget().unwrap_or_default();
        let pace = budget.0.saturating_sub(longest.0) / tasks;
        let step = |k| Step { ttd: Span(budget.0 - pace * k), req: k + 1 };
        let order = (0..jobs().len() as u32).collect();
        let steps = if pace > 0 { (0..tasks).map(step).collect() } else { Vec::new() };
        Plan::new(0, Span::ZERO, order, steps).expect("times fall and tasks rise")
    }
}

fn main() {
    let job = |tasks| JobDraft {
        id: "sort".into(),
        map: Some(TasksDraft::Uniform { tasks, seconds: 10.0 }.into()),
        ..JobDraft::default()
    };
    let flow = |id: &str, tasks, deadline| FlowDraft {
        deadline: Some(deadline),
        ..FlowDraft::new(id, vec![job(tasks)])
    };
    let node =
        MachineDraft { name: "node".into(), count: 2, speed: 1.0, slots: Slots::Generic(2), rack: None };
    let flows = vec![flow("nightly", 40, 300.0), flow("hourly", 12, 80.0), flow("report", 20, 150.0)];
    let draft = Draft { machines: vec![node], flows, ..Draft::default() };
    let instance = Instance::new(&draft).expect("the example is valid");

    let policy = PolicySpec::new("even-pace", |_, _| {
        Box::new(Woha::new("even-pace", Box::new(EvenPace), Box::new(Lags::default())))
    });
    let run = slackline::simulate(&instance, &policy, &Options::exact(), None, None);
    for row in run.expect("WOHA's schedules are feasible").schedule.flows {
        let flow = instance.flow(row.flow);
        println!("{}: done at {:?}, due at {:?}", flow.id, row.completion, flow.deadline.map(Time::seconds));
    }
}
