//! `check`: validates a schedule and its claimed cost, from the two files alone.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use slackline::import::{Opened, ScheduleDocument, Verdict, check, check_streams};
use slackline::report::page::{Drawn, Page};
use slackline::report::{Figures, Row, comparison, verdict};
use slackline::tune::Method;
use slackline_trace::reading::format::ending;

use crate::args::output::Form;
use crate::args::report::about;
use crate::args::{OutputArgs, ReportArgs, Shape, value};
use crate::tables::Tables;
use crate::terminal::input::Source;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  slackline simulate examples/nightly.toml --policy edf --output edf.json
  slackline check examples/nightly.toml edf.json

The options that the schedule records (import, cluster, objective, deadlines, grain) are applied \
again and need not be repeated; options given here override them. The lower bound of the schedule is not computed again, but must \
not be above the cost (`slackline bound` computes one). If the schedule is not feasible, the \
exit code is 1 and the first violation is printed. JSON has `valid`, and metrics or the violation.")]
pub(crate) struct Check {
    /// Workload that the schedule was made for; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Schedule document, or schedule in lines (.jsonl); - for standard input
    #[arg(value_name = "SCHEDULE")]
    schedule: PathBuf,
    /// Longest task of phases that are given as work, in seconds
    #[arg(long, value_name = "DURATION", value_parser = value::seconds_above_zero)]
    grain: Option<f64>,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    report: ReportArgs,
}

pub(crate) fn run(args: &Check, tables: &Tables) -> anyhow::Result<Answer> {
    let output = &args.output;
    let decided = decide(args, tables)?;
    if let Verdict::Feasible { schedule, .. } = &decided {
        let of_segments = schedule.segments.iter().map(|segment| segment.policy.as_str());
        let policies: Vec<&str> =
            if schedule.segments.is_empty() { vec![&schedule.policy] } else { of_segments.collect() };
        for policy in policies.into_iter().filter(|policy| !is_known(policy, tables)) {
            out::warn(format_args!(
                "policy {policy:?} is unknown to this program; the check does not depend on it"
            ));
        }
    }
    let text = match output.form() {
        Form::Table => verdict::line(&decided),
        Form::Json => verdict::json(&decided),
        Form::Csv => verdict::csv(&decided),
    };
    out::text(output.file(), &text)?;
    Ok(if matches!(decided, Verdict::Feasible { .. }) { Answer::Yes } else { Answer::No })
}

/// Whether a schedule of this program can be by a policy of that name: one of the registry, or a method of
/// `tune`.
fn is_known(policy: &str, tables: &Tables) -> bool {
    tables.policies.parse(policy).is_ok() || Method::ALL.iter().any(|method| method.name() == policy)
}

fn decide(args: &Check, tables: &Tables) -> anyhow::Result<Verdict> {
    if [&args.workload, &args.schedule].iter().all(|path| path.as_os_str() == "-") {
        bail!("found - twice, expected only one of WORKLOAD and SCHEDULE from standard input");
    }
    // A page shows the schedule as a whole.
    if !args.report.is_asked()
        && let Some(verdict) = decide_by_stream(args, tables)?
    {
        return Ok(verdict);
    }
    let written = input::read(&args.schedule, args.output.file())?;
    let document = ScheduleDocument::open(&written, &tables.importers)?;
    let workload = input::read(&args.workload, args.output.file())?;
    if !document.names_workload() {
        out::warn(format_args!("{}: does not name its workload", written.name));
    }
    let verdict = check(&document, &workload, args.shape.options(&tables.importers)?, args.grain)?;
    if args.report.is_asked() {
        write_page(args, tables, &document, &workload, &verdict)?;
    }
    Ok(verdict)
}

/// Writes the page of `--report`: the schedule, or why it is invalid.
fn write_page(
    args: &Check,
    tables: &Tables,
    document: &ScheduleDocument<'_>,
    workload: &Source,
    verdict: &Verdict,
) -> anyhow::Result<()> {
    let loaded = document.load(workload, args.shape.options(&tables.importers)?, args.grain)?;
    let instance = &loaded.instance;
    let (seeds, options) = (vec![document.meta.seed], document.meta.options.clone());
    let (sha256, left_out) = (loaded.sha256.clone(), loaded.not_modelled());
    let about = about(workload.short_name(), "check", seeds, options, sha256, left_out);
    let page = Page::new(instance, about).with_note(verdict::line(verdict).trim());
    let page = match verdict {
        Verdict::Feasible { schedule, report, .. } => {
            // Of lines only the flows are kept.
            let is_whole = !schedule.tasks.is_empty() || !schedule.allocations.is_empty();
            let read = if is_whole { None } else { Some(document.read(instance)?) };
            let schedule = read.as_ref().unwrap_or(schedule);
            let groups = comparison::groups(instance, &report.flows);
            let figures = Figures { groups, ..Figures::of_schedule(schedule, &report.metrics) };
            let row = Row { policy: schedule.policy.clone(), result: Ok(figures) };
            page.with_policy(row, Some(Drawn::of_schedule(instance, schedule, false)))
        }
        _ => page,
    };
    args.report.write(&page)
}

/// The verdict on two documents in lines, if they are found feasible while they are read.
fn decide_by_stream(args: &Check, tables: &Tables) -> anyhow::Result<Option<Verdict>> {
    let paths = [&args.schedule, &args.workload];
    let is_in_lines = |path: &&PathBuf| ending(&path.to_string_lossy()).as_deref() == Some("jsonl");
    if !paths.iter().all(is_in_lines) || paths.iter().any(|path| !path.is_file()) {
        return Ok(None);
    }
    let [(schedule, lines), (workload, flows)] =
        [input::open(&args.schedule, args.output.file())?, input::open(&args.workload, args.output.file())?];
    let schedule = Opened { name: &schedule, source: lines };
    let workload = Opened { name: &workload, source: flows };
    // A fault is found again, and reported, when the whole document is checked.
    Ok(check_streams(schedule, workload, args.shape.options(&tables.importers)?, args.grain).ok().flatten())
}
