//! `check`: is this schedule feasible, and does it cost what it says? Decided from the two files alone.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use slackline::judge;
use slackline_report::headline;
use slackline_report::number::counted;
use slackline_trace::{TraceError, read_schedule, read_schedule_meta, sha256};

use super::Answer;
use crate::args::{Shape, value};
use crate::input::Source;
use crate::{out, recorded};

#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  slackline simulate examples/nightly.toml --policy edf --output edf.json
  slackline check examples/nightly.toml edf.json

The options that the schedule records (import, cluster, objective, deadlines, grain) are applied
again, so that none need be repeated; flags given here win. If the schedule is not feasible, the
exit code is 1 and the first violation is named.")]
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
}

pub(crate) fn run(args: Check) -> anyhow::Result<Answer> {
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
        return no(&format!(
            "{schedule}: made for a workload with SHA-256 {}, found {found} in {workload}",
            meta.sha256,
        ));
    }
    let recorded = Shape { seed: shape.seed.or(Some(meta.seed)), ..shape };
    let mut loaded = workload.load(&args.shape.or(recorded))?;
    if let Some(grain) = args.grain.or(grain) {
        loaded.cut(Some(grain));
    }
    let (schedule, _) = match read_schedule(&written.name, &written.bytes, &loaded.instance) {
        Ok(read) => read,
        Err(error @ TraceError::Mismatch(_)) => return no(&error.to_string()),
        Err(error) => return Err(error.into()),
    };
    match judge::check(&loaded.instance, &schedule) {
        Err(violation) => no(&violation.to_string()),
        Ok(report) => {
            let rows = counted(report.rows as u64, "row");
            let mut line = format!(
                "feasible: {} under {}, {} {}, {rows}",
                headline::objective(schedule.objective),
                schedule.policy,
                if report.failed > 0 { "cost of the flows that are done" } else { "cost" },
                // The sum of no costs is minus nothing.
                report.cost + 0.0,
            );
            if report.tasks > 0 {
                line.extend([", ", &counted(report.tasks, "task")]);
            }
            if report.failed > 0 {
                line.extend([", ", &counted(report.failed as u64, "flow"), " failed"]);
            }
            out::text(None, &(line + "\n"))?;
            Ok(Answer::Yes)
        }
    }
}

/// The answer is no, and why.
fn no(why: &str) -> anyhow::Result<Answer> {
    out::text(None, &format!("not feasible: {why}\n"))?;
    Ok(Answer::No)
}
