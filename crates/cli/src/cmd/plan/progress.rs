//! Progress requirements as they are printed, and as a scheduler takes them.

use serde_json::{Value, json};
use slackline::Chosen;
use slackline::plan::Requirements;
use slackline::report::number::{Unit, column, counted, exact};
use slackline::report::{Align, Table};
use slackline::woha::PlanFile;
use slackline_model::{Instance, Time};

use crate::args::OutputArgs;
use crate::args::output::Form;
use crate::cmd::Answer;
use crate::input::Loaded;
use crate::{out, results};

/// Writes the plans; the answer is no if a deadline cannot be met.
pub(super) fn write(
    output: &OutputArgs,
    all: bool,
    name: &str,
    loaded: &Loaded,
    (policy, plans): (&Chosen, &[Requirements]),
) -> anyhow::Result<Answer> {
    let (instance, file) = (&loaded.instance, output.file());
    let hopeless = plans.iter().filter(|of| !of.admission.feasible).count() as u64;
    let deadlines = instance.flows().iter().filter(|flow| flow.deadline.is_some()).count() as u64;
    let mut summary = results::headlines(name, instance);
    summary.extend([
        policy.spec(),
        ": ",
        &match (deadlines, hopeless) {
            (0, _) => "no deadlines".to_owned(),
            (n, 0) => format!("{} can be met, each flow by itself", counted(n, "deadline")),
            (n, k) => format!("{k} of {} cannot be met", counted(n, "deadline")),
        },
        "\n",
    ]);
    // A file without a form of its own is for a scheduler.
    let compact = file.is_some() && output.format.is_none() && output.form() == Form::Table;
    if compact || output.form() != Form::Table {
        out::talk(summary.trim_end());
    }
    if compact {
        let bytes = compact_form(instance, policy, plans).encode();
        out::talk(format_args!(
            "{} in {}",
            counted(plans.len() as u64, "plan"),
            counted(bytes.len() as u64, "byte")
        ));
        out::data(file, |out| out.write_all(&bytes))?;
    } else {
        let text = match output.form() {
            Form::Table => format!("{summary}\n{}{}", table(instance, plans), steps(instance, plans, all)),
            Form::Csv => csv(instance, plans),
            Form::Json => format!("{:#}\n", document(instance, policy, plans)),
        };
        out::text(file, &text)?;
    }
    Ok(if hopeless > 0 { Answer::No } else { Answer::Yes })
}

/// The file that a scheduler takes.
fn compact_form(instance: &Instance, policy: &Chosen, plans: &[Requirements]) -> PlanFile {
    let plan = |of: &Requirements| (instance.flow(of.flow).id.clone(), of.plan.clone());
    PlanFile { policy: policy.spec().to_owned(), plans: plans.iter().map(plan).collect() }
}

/// A row a flow.
fn table(instance: &Instance, plans: &[Requirements]) -> String {
    let of = |get: &dyn Fn(&Requirements) -> Option<f64>, unit| {
        column(&plans.iter().map(get).collect::<Vec<_>>(), unit)
    };
    let columns = [
        of(&|of| Some(instance.flow(of.flow).release.seconds()), Unit::Measure),
        of(&|of| instance.flow(of.flow).deadline.map(Time::seconds), Unit::Measure),
        of(&|of| Some(of.admission.earliest_completion.seconds()), Unit::Measure),
        of(&|of| Some(f64::from(of.plan.cap())), Unit::Count),
        of(&|of| Some(of.plan.length().seconds()), Unit::Measure),
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
    table.render()
}

/// The requirements of the only flow, or of all.
fn steps(instance: &Instance, plans: &[Requirements], all: bool) -> String {
    if plans.len() > 1 && !all {
        return "\n--all shows the requirements of each flow\n".to_owned();
    }
    let mut text = String::new();
    for of in plans {
        let times =
            column(&of.plan.steps().iter().map(|s| Some(s.ttd.seconds())).collect::<Vec<_>>(), Unit::Measure);
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
            &table.render(),
        ]);
    }
    text
}

/// Names of the jobs in the plan's order.
fn jobs<'a>(instance: &'a Instance, of: &Requirements) -> Vec<&'a str> {
    let jobs: Vec<_> = instance.flow(of.flow).jobs().collect();
    of.plan.order().iter().map(|&job| instance.job(jobs[job as usize]).id.as_str()).collect()
}

/// A row a requirement.
fn csv(instance: &Instance, plans: &[Requirements]) -> String {
    let rows = plans.iter().flat_map(|of| {
        let id = &instance.flow(of.flow).id;
        of.plan
            .steps()
            .iter()
            .map(|step| vec![id.clone(), exact(Some(step.ttd.seconds())), step.req.to_string()])
    });
    slackline::report::csv(&["flow", "time_to_deadline", "tasks"], rows)
}

fn document(instance: &Instance, policy: &Chosen, plans: &[Requirements]) -> Value {
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
    json!({ "policy": policy.spec(), "plans": plans.iter().map(plan).collect::<Vec<_>>() })
}
