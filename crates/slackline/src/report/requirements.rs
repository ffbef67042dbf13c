//! Progress requirements of flows, as tables and documents.

use serde_json::json;
use slackline_model::{Instance, Time};

use crate::plan::Requirements;
use crate::policy_spec::PolicySpec;
use crate::report::number::{Unit, column, counted, exact, instants};
use crate::report::table::{Align, Table, View};
use crate::woha::PlanFile;

/// The number of flows whose deadline cannot be met.
pub fn hopeless(plans: &[Requirements]) -> u64 {
    plans.iter().filter(|of| !of.admission.feasible).count() as u64
}

/// `woha-lpf: 3 deadlines can be met, each flow alone on the cluster`.
pub fn outcome(instance: &Instance, policy: &PolicySpec, plans: &[Requirements]) -> String {
    let deadlines = instance.flows().iter().filter(|flow| flow.deadline.is_some()).count() as u64;
    let verdict = match (deadlines, hopeless(plans)) {
        (0, _) => "no deadlines".to_owned(),
        (n, 0) => format!("{} can be met, each flow alone on the cluster", counted(n, "deadline")),
        (n, k) => format!("{k} of {} cannot be met", counted(n, "deadline")),
    };
    format!("{}: {verdict}\n", policy.spec())
}

/// The plan file for a scheduler.
pub fn plan_file(instance: &Instance, policy: &PolicySpec, plans: &[Requirements]) -> PlanFile {
    let plan = |of: &Requirements| (instance.flow(of.flow).id.clone(), of.plan.clone());
    PlanFile { policy: policy.spec().to_owned(), plans: plans.iter().map(plan).collect() }
}

/// One row per flow, and the requirements of the only flow, or of all.
pub fn table(instance: &Instance, plans: &[Requirements], all: bool, view: &View) -> String {
    flows(instance, plans, view) + &steps(instance, plans, all, view)
}

/// One row per flow.
fn flows(instance: &Instance, plans: &[Requirements], view: &View) -> String {
    let of = |get: &dyn Fn(&Requirements) -> Option<f64>, unit| {
        column(&plans.iter().map(get).collect::<Vec<_>>(), unit)
    };
    let at = |get: &dyn Fn(&Requirements) -> Option<Time>| {
        let times = plans.iter().map(|of| get(of).map(Time::seconds));
        instants(&times.collect::<Vec<_>>(), instance.start())
    };
    let columns = [
        at(&|of| Some(instance.flow(of.flow).release)),
        at(&|of| instance.flow(of.flow).deadline),
        at(&|of| Some(of.admission.earliest_completion)),
        of(&|of| Some(f64::from(of.plan.cap())), Unit::Count),
        of(&|of| Some(of.plan.length().seconds()), Unit::Seconds),
        of(&|of| Some(of.plan.tasks() as f64), Unit::Count),
        of(&|of| Some(of.plan.steps().len() as f64), Unit::Count),
        of(&|of| Some(of.plan.encode().len() as f64), Unit::Count),
    ];
    let names = ["release", "deadline", "earliest", "slots", "length", "tasks", "steps", "bytes"];
    let numbers = names.map(|name| (name, Align::Right));
    let mut table = Table::new(&[&[("flow", Align::Left)], &numbers[..], &[("", Align::Left)]].concat());
    for (k, plan) in plans.iter().enumerate() {
        let flow = instance.flow(plan.flow);
        let verdict = match (flow.deadline, plan.admission.feasible) {
            (None, _) => "",
            (Some(_), true) => "can be met",
            (Some(_), false) => "cannot be met",
        };
        let cells = columns.iter().map(|column| column[k].clone());
        table.row(std::iter::once(flow.id.clone()).chain(cells).chain(std::iter::once(verdict.to_owned())));
    }
    table.render(view)
}

/// The requirements of the only flow, or of all.
fn steps(instance: &Instance, plans: &[Requirements], all: bool, view: &View) -> String {
    if plans.len() > 1 && !all {
        return "\n--all shows the requirements of each flow\n".to_owned();
    }
    let mut text = String::new();
    for of in plans {
        let times =
            column(&of.plan.steps().iter().map(|s| Some(s.ttd.seconds())).collect::<Vec<_>>(), Unit::Seconds);
        let tasks =
            column(&of.plan.steps().iter().map(|s| Some(s.req as f64)).collect::<Vec<_>>(), Unit::Count);
        let mut table = Table::new(&[("time to\ndeadline", Align::Right), ("tasks\nstarted", Align::Right)]);
        for (time, tasks) in times.into_iter().zip(tasks) {
            table.row([time, tasks]);
        }
        let order = jobs(instance, of).join(", ");
        text.extend([
            "\n",
            &instance.flow(of.flow).id,
            ": jobs in the order ",
            &order,
            "\n",
            &table.render(view),
        ]);
    }
    text
}

/// The names of the jobs in the order of the plan.
fn jobs<'a>(instance: &'a Instance, of: &Requirements) -> Vec<&'a str> {
    let jobs: Vec<_> = instance.flow(of.flow).jobs().collect();
    of.plan.order().iter().map(|&job| instance.job(jobs[job as usize]).id.as_str()).collect()
}

/// One row per requirement.
pub fn csv(instance: &Instance, plans: &[Requirements]) -> String {
    let rows = plans.iter().flat_map(|of| {
        let id = &instance.flow(of.flow).id;
        of.plan
            .steps()
            .iter()
            .map(|step| vec![id.clone(), exact(Some(step.ttd.seconds())), step.req.to_string()])
    });
    crate::report::csv(&["flow", "time_to_deadline", "tasks"], rows)
}

/// The plans as JSON.
pub fn json(instance: &Instance, policy: &PolicySpec, plans: &[Requirements]) -> String {
    let plan = |of: &Requirements| {
        let flow = instance.flow(of.flow);
        let steps = of.plan.steps().iter();
        json!({
            "flow": flow.id,
            "release": flow.release.seconds(),
            "deadline": flow.deadline.map(Time::seconds),
            "feasible": of.admission.feasible,
            "earliest_completion": of.admission.earliest_completion.seconds(),
            "slots": of.plan.cap(),
            "length": of.plan.length().seconds(),
            "bytes": of.plan.encode().len(),
            "jobs": jobs(instance, of),
            "requirements": steps.map(|s| json!([s.ttd.seconds(), s.req])).collect::<Vec<_>>(),
        })
    };
    slackline_trace::to_json(
        &json!({ "policy": policy.spec(), "plans": plans.iter().map(plan).collect::<Vec<_>>() }),
    )
}
