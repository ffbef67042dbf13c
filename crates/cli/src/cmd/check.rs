//! `check`: is this schedule feasible, and does it cost what it says? Decided from the two files alone.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use slackline::judge::{self, Report};
use slackline::report::headline;
use slackline::report::number::{counted, exact};
use slackline_model::Schedule;
use slackline_trace::{TraceError, read_schedule, read_schedule_meta, sha256};

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, Shape, value};
use crate::input::Source;
use crate::{out, recorded, results};

#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  slackline simulate examples/nightly.toml --policy edf --output edf.json
  slackline check examples/nightly.toml edf.json

The options that the schedule records (import, cluster, objective, deadlines, grain) are applied
again, so that none need be repeated; flags given here win. If the schedule is not feasible, the
exit code is 1 and the first violation is named. JSON has `valid`, and metrics or the violation.")]
pub(crate) struct Check {
    /// Workload document or trace that the schedule was made for; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Schedule document; - for standard input
    #[arg(value_name = "SCHEDULE")]
    schedule: PathBuf,
    /// A phase given only as work is cut into equal tasks of at most this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds_above_zero)]
    grain: Option<f64>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    output: OutputArgs,
}

/// What was decided.
enum Verdict {
    Feasible {
        schedule: Box<Schedule>,
        report: Box<Report>,
    },
    /// A word for programs and a sentence for people.
    Not {
        kind: &'static str,
        why: String,
    },
}

pub(crate) fn run(args: Check) -> anyhow::Result<Answer> {
    let output = args.output.clone();
    let verdict = decide(args)?;
    let text = match output.form() {
        Form::Table => line(&verdict),
        Form::Json => format!("{:#}\n", document(&verdict)),
        Form::Csv => csv(&verdict),
    };
    out::text(output.file(), &text)?;
    Ok(if matches!(verdict, Verdict::Feasible { .. }) { Answer::Yes } else { Answer::No })
}

fn decide(args: Check) -> anyhow::Result<Verdict> {
    if [&args.workload, &args.schedule].iter().all(|path| path.as_os_str() == "-") {
        bail!("found - twice, expected only one of WORKLOAD and SCHEDULE from standard input");
    }
    let written = Source::read(&args.schedule)?;
    let meta = read_schedule_meta(&written.name, &written.bytes)?;
    let (shape, grain) = recorded::read(&meta.options).context(written.name.clone())?;
    let workload = Source::read(&args.workload)?;
    let found = sha256(&workload.bytes);
    if meta.sha256.is_empty() {
        out::warn(format_args!("{}: does not say which workload it was made for", written.name));
    } else if meta.sha256 != found {
        let (schedule, workload) = (&written.name, &workload.name);
        let made_for = &meta.sha256;
        let why =
            format!("{schedule}: made for a workload with SHA-256 {made_for}, found {found} in {workload}");
        return Ok(Verdict::Not { kind: "workload", why });
    }
    let recorded = Shape { seed: shape.seed.or(Some(meta.seed)), ..shape };
    let mut loaded = workload.load(&args.shape.or(recorded))?;
    if let Some(grain) = args.grain.or(grain) {
        loaded.cut(Some(grain));
    }
    let (schedule, _) = match read_schedule(&written.name, &written.bytes, &loaded.instance) {
        Ok(read) => read,
        Err(error @ TraceError::Mismatch(_)) => {
            return Ok(Verdict::Not { kind: "mismatch", why: error.to_string() });
        }
        Err(error) => return Err(error.into()),
    };
    Ok(match judge::check(&loaded.instance, &schedule) {
        Err(violation) => Verdict::Not { kind: violation.kind(), why: violation.to_string() },
        Ok(report) => Verdict::Feasible { schedule: Box::new(schedule), report: Box::new(report) },
    })
}

/// The answer in a line.
fn line(verdict: &Verdict) -> String {
    let (schedule, report) = match verdict {
        Verdict::Not { why, .. } => return format!("not feasible: {why}\n"),
        Verdict::Feasible { schedule, report } => (schedule, report),
    };
    let mut line = format!(
        "feasible: {} under {}, {} {}, {}",
        headline::objective(schedule.objective),
        schedule.policy,
        if report.failed > 0 { "cost of the flows that are done" } else { "cost" },
        cost(report),
        counted(report.rows as u64, "row"),
    );
    if report.tasks > 0 {
        line.extend([", ", &counted(report.tasks, "task")]);
    }
    if report.failed > 0 {
        line.extend([", ", &counted(report.failed as u64, "flow"), " failed"]);
    }
    line + "\n"
}

/// The sum of no costs is minus nothing, which nobody wants to read.
fn cost(report: &Report) -> f64 {
    report.cost + 0.0
}

fn document(verdict: &Verdict) -> Value {
    let (schedule, report) = match verdict {
        Verdict::Not { kind, why } => {
            return json!({ "valid": false, "violation": { "kind": kind, "message": why } });
        }
        Verdict::Feasible { schedule, report } => (schedule, report),
    };
    let figures = results::figures_of(schedule, &report.metrics);
    json!({
        "valid": true,
        "policy": schedule.policy,
        "objective": {
            "metric": schedule.objective.metric.name(),
            "combine": schedule.objective.combine.name(),
        },
        "cost": cost(report),
        "rows": report.rows,
        "failed": report.failed,
        "metrics": figures.metrics.iter().map(|&(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>(),
    })
}

fn csv(verdict: &Verdict) -> String {
    let header = ["valid", "violation", "message", "cost", "rows", "tasks", "failed"];
    let row = match verdict {
        Verdict::Not { kind, why } => {
            let known = ["false".to_owned(), (*kind).to_owned(), why.clone()];
            known.into_iter().chain(std::iter::repeat_n(String::new(), 4)).collect::<Vec<_>>()
        }
        Verdict::Feasible { report, .. } => {
            let counts = [report.rows as u64, report.tasks, report.failed as u64].map(|n| n.to_string());
            let known = ["true".to_owned(), String::new(), String::new(), exact(Some(cost(report)))];
            known.into_iter().chain(counts).collect()
        }
    };
    slackline::report::csv(&header, [row])
}
