//! `simulate --stream`: simulates a workload while it is read.

use std::io;

use anyhow::{Context, anyhow, bail};
use slackline::PolicySpec;
use slackline::import::{ImportError, StreamedWorkload};
use slackline::policy::Admission;
use slackline::report::number::counted;
use slackline::report::table::fitted;
use slackline::report::{Figures, View, flows, headline, stream_lines};
use slackline::simulate::{
    NoWriter, NotStreamed, NotWritten, Options, RowWriter, Streamed, needs_whole, simulate_stream,
};
use slackline_trace::reading::format::ending;
use slackline_trace::{Diagnostic, Meta};

use super::{Simulate, say};
use crate::args::history::HistoryFile;
use crate::args::output::{Form, SimulationForm};
use crate::tables::Tables;
use crate::terminal::input::report_diagnostics;
use crate::terminal::progress::Progress;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

/// The result of a streamed simulation.
struct Outcome {
    streamed: Streamed,
    /// Tasks made of work.
    cut: u64,
    diagnostics: Vec<Diagnostic>,
}

type StreamResult = Result<Outcome, NotStreamed<ImportError>>;

/// Simulates the workload as it is read, if that was asked for (`--stream`) or it is a document in lines
/// (`.jsonl`) and nothing else that was asked for needs it as a whole.
///
/// # Errors
/// Errors of reading and writing; a request that cannot be streamed.
pub(super) fn run(
    args: &Simulate,
    tables: &Tables,
    view: &View,
    past: &HistoryFile,
) -> anyhow::Result<Option<Answer>> {
    if !args.stream && !is_in_lines(args) {
        return Ok(None);
    }
    if let Some((what, expected)) = unfit(args) {
        return if args.stream { bail!("--stream: found {what}, expected {expected}") } else { Ok(None) };
    }
    let (name, source) = input::open(&args.workload, args.output.file())?;
    let shape = args.shape.options(&tables.importers)?;
    let workload = StreamedWorkload::open(&name, source, &shape, args.simulation.grain)?;
    let seed = args.shape.root_seed();
    let options = args.simulation.options().resolve(workload.empty(), seed, &past.history)?;
    if let Some(why) = needs_whole(workload.empty(), &options) {
        return if args.stream { bail!("--stream: {why}; omit --stream") } else { Ok(None) };
    }
    let answer = simulate(args, view, past, workload, &options)?;
    Ok(Some(answer))
}

/// Whether the workload is a document in lines, by what it is called.
fn is_in_lines(args: &Simulate) -> bool {
    let name = args.workload.to_string_lossy();
    match args.shape.import.from.as_deref() {
        Some(from) => from == "jsonl" && name != "-",
        None => ending(&name).as_deref() == Some("jsonl"),
    }
}

/// What was asked for that a stream does not give, and what it does.
fn unfit(args: &Simulate) -> Option<(&'static str, &'static str)> {
    if args.output.form() == SimulationForm::Of(Form::Json) {
        Some(("JSON, which has the schedule as a whole", "--format jsonl, csv or table"))
    } else if args.report.is_asked() {
        Some(("--report, which shows the workload as a whole", "none"))
    } else if args.seeds.seeds.is_some_and(|seeds| seeds > 1) {
        Some(("several --seeds, each of which reads the workload again", "--seeds 1"))
    } else if args.shape.load.is_some() {
        Some(("--load, which needs all flows in advance", "none"))
    } else if args.simulation.known_releases {
        Some(("--known-releases, which needs all flows in advance", "none"))
    } else if args.all {
        Some(("--all, but finished flows are not kept", "--format csv, which has them all"))
    } else if args.table.is_given() {
        Some(("--columns or --sort", "neither, because flows are not kept for a table"))
    } else {
        None
    }
}

fn simulate(
    args: &Simulate,
    view: &View,
    past: &HistoryFile,
    workload: StreamedWorkload,
    options: &Options,
) -> anyhow::Result<Answer> {
    let policy = args.timeout.of(args.policy.clone());
    let (name, empty) = (workload.name.clone(), workload.empty().clone());
    let mut recorded = workload.options.clone();
    let is_random = args.simulation.options().draws() || recorded.contains_key("seed");
    args.simulation.options().record(&mut recorded, past.sha256.as_deref());
    let mut meta = workload.meta(recorded, args.shape.root_seed());
    let progress = Progress::endless();
    let mut report_progress = |done| progress.at(0, done);
    let made = make(args, workload, &policy, options, &mut report_progress, &mut meta);
    drop(progress);
    let mut outcome = match made? {
        Ok(outcome) => outcome,
        Err(NotStreamed::Flows(problem)) => return Err(problem.into()),
        Err(NotStreamed::NotWritten(NotWritten::NotSimulated(problem))) => {
            out::error(&anyhow!("{}: {problem}", args.policy.spec()));
            return Ok(Answer::No);
        }
        Err(NotStreamed::NotWritten(NotWritten::Output(problem))) => return Err(problem.into()),
        Err(why @ NotStreamed::NeedsWhole(_)) => {
            bail!("{name}: {why}; `slackline import` writes it as .toml, which is read as a whole")
        }
    };
    report_diagnostics(&name, &outcome.diagnostics);
    for warning in headline::warnings_of(outcome.streamed.tally.offered(empty.cluster())) {
        out::warn(warning);
    }
    let history = outcome.streamed.simulated.history.take();
    let short = name.rsplit('/').next().unwrap_or(&name);
    let summary = headline::lines_of_stream(short, &outcome.streamed.tally, outcome.cut, &empty)
        + &headline::outcome(
            &outcome.streamed.simulated.schedule,
            outcome.streamed.tally.is_weighted,
            &meta.status,
        );
    let one_draw = if is_random { super::ONE_DRAW } else { "" };
    let hopeless = hopeless(&outcome.streamed.simulated.admissions) + one_draw;
    let written = if args.output.form() == SimulationForm::Of(Form::Table) {
        let live = format!("at most {} at a time", counted(outcome.streamed.live_max as u64, "flow"));
        let figures = Figures::of_simulation(&outcome.streamed.simulated);
        let figures = flows::figures(&figures, &[("live", live)]);
        let summary = fitted(&summary, view.width);
        out::text(args.output.file(), &format!("{summary}{figures}{hopeless}"))
    } else {
        out::talk(summary.trim_end());
        say(&hopeless);
        Ok(())
    };
    // What was learned is worth keeping even if the output fails.
    if let (Some(file), Some(known)) = (&args.simulation.history, history) {
        past.replace(file, &known)?;
    }
    written?;
    match outcome.streamed.failed {
        0 => Ok(Answer::Yes),
        failed => {
            super::warn_of_failed(failed, &outcome.streamed.simulated.unfinished);
            Ok(Answer::No)
        }
    }
}

/// Simulates, and writes rows meanwhile.
fn make(
    args: &Simulate,
    workload: StreamedWorkload,
    policy: &PolicySpec,
    options: &Options,
    progress: &mut dyn FnMut(u64),
    meta: &mut Meta,
) -> anyhow::Result<StreamResult> {
    match args.output.form() {
        SimulationForm::Lines => written(args, |out| {
            let (streamed, cut, diagnostics) =
                stream_lines(out, workload, policy, options, Some(progress), meta)?;
            Ok(Outcome { streamed, cut, diagnostics })
        }),
        SimulationForm::Of(Form::Csv) => written(args, |out| {
            let mut rows = flows::CsvWriter::new(out);
            let made = figures(workload, policy, options, progress, &mut rows)?;
            rows.end().map_err(NotWritten::Output)?;
            Ok(made)
        }),
        SimulationForm::Of(_) => Ok(figures(workload, policy, options, progress, &mut NoWriter)),
    }
}

/// Simulates, with rows to `out`.
fn figures(
    mut workload: StreamedWorkload,
    policy: &PolicySpec,
    options: &Options,
    progress: &mut dyn FnMut(u64),
    out: &mut dyn RowWriter,
) -> StreamResult {
    let empty = workload.empty().clone();
    let streamed = simulate_stream(&empty, workload.by_ref(), policy, options, Some(progress), out)?;
    let cut = workload.n_cut();
    let (_, diagnostics) = workload.finish().map_err(|error| NotStreamed::Flows(error.into()))?;
    Ok(Outcome { streamed, cut, diagnostics })
}

/// Writes to the output, which stays as it was if nothing is made.
fn written(
    args: &Simulate,
    make: impl FnOnce(&mut dyn io::Write) -> StreamResult,
) -> anyhow::Result<StreamResult> {
    let mut made = None;
    let written = out::data(args.output.file(), |out| match make(out) {
        Err(NotStreamed::NotWritten(NotWritten::Output(error))) => Err(error),
        Err(error) => {
            made = Some(Err(error));
            Err(io::Error::other("there is no schedule"))
        }
        done => {
            made = Some(done);
            Ok(())
        }
    });
    match made {
        Some(Err(problem)) => Ok(Err(problem)),
        made => written.and_then(|()| made.context("no schedule was made")),
    }
}

/// The number of flows whose deadline was known to be missed when they arrived.
fn hopeless<I>(admissions: &[(I, Admission)]) -> String {
    match admissions.iter().filter(|(_, admission)| !admission.feasible).count() {
        0 => String::new(),
        n => format!("\n{} with deadlines that could not be met on arrival\n", counted(n as u64, "flow")),
    }
}
