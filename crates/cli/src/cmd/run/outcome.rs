//! What came of a run: the table beside what was predicted, the two documents, and what was learned.

use std::collections::BTreeMap;

use anyhow::Context;
use slackline::report::number::{Unit, column, counted, number};
use slackline::report::{Align, Figures, Row, Table, comparison, flows};
use slackline::simulate::{Options, simulate};
use slackline_local::history::{Note, PastRun};
use slackline_local::{RunEnd, Session, happened};
use slackline_model::{Instance, Schedule};
use slackline_trace::{Format, Meta, schedule::status, sha256, write_workload};

use super::Run;
use crate::args::output::Form;
use crate::cmd::Answer;
use crate::{out, results};

/// A schedule with the instance it is of.
struct Judged {
    instance: Instance,
    schedule: Schedule,
    figures: Figures,
}

/// Writes the documents and says how the run went.
pub(super) fn write(args: &Run, session: &Session, name: &str, end: RunEnd) -> anyhow::Result<Answer> {
    if end == RunEnd::Interrupted {
        out::talk("stopped; the same command goes on from here");
        return Ok(Answer::No);
    }
    let mut real = real(args, session)?;
    let workload = write_workload(&happened::measured(session.draft(), session.attempts()), Format::Json);
    let layout = session.layout();
    out::text(Some(&layout.workload()), &workload)?;
    let meta = meta(&workload, &real.schedule);
    out::data(Some(&layout.schedule()), |out| {
        results::write_schedule(out, &real.instance, &mut real.schedule, (&real.figures, &meta))
    })?;
    match args.output.form() {
        Form::Table => {
            let head = results::headlines(name, &real.instance);
            let predicted = predicted(args, session)?;
            let text = table(args, predicted.as_ref(), &real);
            let files = format!(
                "\nschedule of what happened: {}\nits workload: {}\n",
                layout.schedule().display(),
                layout.workload().display()
            );
            out::text(args.output.file(), &format!("{head}\n{text}{files}"))?;
        }
        Form::Csv => out::text(args.output.file(), &flows::csv(&real.instance, &real.schedule))?,
        Form::Json => out::data(args.output.file(), |out| {
            results::write_schedule(out, &real.instance, &mut real.schedule, (&real.figures, &meta))
        })?,
    }
    let failed = results::failed(&real.schedule);
    if failed == 0 {
        return Ok(Answer::Yes);
    }
    out::warn(format_args!("{} failed; the reasons are above", counted(failed as u64, "flow")));
    Ok(Answer::No)
}

fn meta(workload: &str, schedule: &Schedule) -> Meta {
    Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sha256: sha256(workload.as_bytes()),
        options: BTreeMap::new(),
        seed: 0,
        status: status(schedule.cost, None),
    }
}

/// What happened, judged.
fn real(args: &Run, session: &Session) -> anyhow::Result<Judged> {
    let instance = Instance::new(&happened::measured(session.draft(), session.attempts()))?;
    let schedule = happened::schedule(&instance, session.attempts(), args.policy.spec(), args.slowstart);
    let report = slackline::judge::check(&instance, &schedule)
        .context("the schedule of what happened is not feasible: a part of this program is wrong")?;
    let figures = results::figures_of(&schedule, &report.metrics);
    Ok(Judged { instance, schedule, figures })
}

/// What the simulator expected before the run: the same policy on the durations that were believed, of the flows
/// that could be run; none if none could.
fn predicted(args: &Run, session: &Session) -> anyhow::Result<Option<Judged>> {
    let hindered = session.hindered();
    let mut draft = session.draft().clone();
    draft.flows.retain(|flow| !hindered.contains(flow.id.as_str()));
    if draft.flows.is_empty() {
        return Ok(None);
    }
    let instance = Instance::new(&draft)?;
    let options = Options { slowstart: args.slowstart, ..Options::exact() };
    let simulated = simulate(&instance, &args.policy, &options, None, None)
        .map_err(|violation| anyhow::anyhow!("the prediction is not feasible: {violation}"))?;
    let figures = results::figures(&simulated);
    Ok(Some(Judged { instance, schedule: simulated.schedule, figures }))
}

/// When each flow of a schedule is done, by name.
fn completions(judged: &Judged) -> BTreeMap<&str, f64> {
    let rows = judged.schedule.flows.iter();
    rows.filter_map(|row| Some((judged.instance.flow(row.flow).id.as_str(), row.completion?))).collect()
}

fn table(args: &Run, predicted: Option<&Judged>, real: &Judged) -> String {
    let row = |name: &str, judged: &Judged| Row {
        policy: format!("{} {name}", args.policy.spec()),
        result: Ok(judged.figures.clone()),
    };
    let rows: Vec<Row> =
        predicted.map(|judged| row("predicted", judged)).into_iter().chain([row("ran", real)]).collect();
    let compared = comparison::table(&rows);
    let predicted = predicted.map(completions).unwrap_or_default();
    let error = mean_absolute_error(&predicted, real).map_or_else(String::new, |(seconds, share)| {
        format!(
            "completion times differ from the prediction by {} s on average ({}){}\n",
            number(seconds, Unit::Measure),
            number(share, Unit::Percent),
            if args.history.is_none() {
                ";\nwithout --history it guesses from the size of the input"
            } else {
                ""
            }
        )
    });
    format!("{}{error}\n{compared}", flow_table(&predicted, real))
}

/// Flow by flow: predicted and actual completion against the deadline.
fn flow_table(predicted: &BTreeMap<&str, f64>, real: &Judged) -> String {
    let rows = &real.schedule.flows;
    let id = |k: usize| real.instance.flow(rows[k].flow).id.as_str();
    let deadline = |k: usize| real.instance.flow(rows[k].flow).deadline.map(slackline_model::Time::seconds);
    let all = || 0..rows.len();
    let measure = |values: Vec<Option<f64>>| column(&values, Unit::Measure);
    let columns = [
        measure(all().map(|k| Some(rows[k].release)).collect()),
        measure(all().map(deadline).collect()),
        measure(all().map(|k| predicted.get(id(k)).copied()).collect()),
        measure(all().map(|k| rows[k].completion).collect()),
    ];
    let mut table = Table::new(&[
        ("flow", Align::Left),
        ("release", Align::Right),
        ("deadline", Align::Right),
        ("predicted\ncompletion", Align::Right),
        ("completion", Align::Right),
        ("", Align::Left),
    ]);
    for (k, row) in rows.iter().enumerate() {
        let verdict = match (row.completion, deadline(k)) {
            (None, _) => "failed",
            (Some(c), Some(d)) if slackline_model::cost::is_late(c, d) => "late",
            (Some(_), Some(_)) => "on time",
            (Some(_), None) => "",
        };
        let name = std::iter::once(id(k).to_owned());
        let cells = columns.iter().map(|column| column[k].clone());
        table.row(name.chain(cells).chain(std::iter::once(verdict.to_owned())));
    }
    table.render()
}

/// Mean of |actual − predicted| over the flows that are done, and as a share of their mean response.
fn mean_absolute_error(predicted: &BTreeMap<&str, f64>, real: &Judged) -> Option<(f64, f64)> {
    let pairs: Vec<(f64, f64)> = (real.schedule.flows.iter())
        .filter_map(|row| {
            let completion = row.completion?;
            let expected = predicted.get(real.instance.flow(row.flow).id.as_str())?;
            Some(((completion - expected).abs(), completion - row.release))
        })
        .collect();
    let n = pairs.len() as f64;
    let (error, response) = pairs.iter().fold((0.0, 0.0), |(e, r), pair| (e + pair.0, r + pair.1));
    (response > 0.0).then(|| (error / n, error / response))
}

/// What the store of earlier runs is told of this one.
pub(super) fn past_run(session: &Session, workload: &str, policy: &str) -> PastRun {
    let note = Note { workload: workload.to_owned(), policy: policy.to_owned() };
    PastRun { started: session.started(), note, jobs: session.finished_jobs() }
}
