//! Which jobs of a flow file are run: the flags, and the table of a dry run.

use clap::Args;
use slackline::report::number::{Unit, counted, instants};
use slackline::report::table::fitted;
use slackline::report::{Align, Column, Table, View};
use slackline::run::{Choices, ForeignOutput, JobVerdict, Preview, Verdict};
use slackline_model::cost::is_late;
use slackline_model::instance::Flow;
use slackline_model::{Start, Time};

use crate::terminal::watch::content::{NO_HISTORY, UNKNOWN};

#[derive(Args, Debug)]
pub(super) struct JobChoice {
    /// Run this job again, and those that read its output
    ///
    /// FLOW/JOB, or JOB of every flow that has one. May be given several times.
    #[arg(long, value_name = "JOB", help_heading = "Jobs")]
    force: Vec<String>,
    /// Run this job and the jobs after it again, and no other
    ///
    /// Earlier jobs stay as they are, even if they changed.
    #[arg(long, hide_short_help = true, value_name = "JOB", help_heading = "Jobs")]
    from_job: Vec<String>,
    /// Run only this job
    #[arg(long, value_name = "JOB", help_heading = "Jobs")]
    only: Vec<String>,
    /// Run all jobs again
    ///
    /// Each output is replaced when the new one is complete.
    #[arg(long, conflicts_with_all = ["force", "from_job", "only"], help_heading = "Jobs")]
    again: bool,
    /// Show which jobs would run, and why; change nothing
    #[arg(long, help_heading = "Jobs")]
    pub(super) dry_run: bool,
    #[command(flatten)]
    outputs: OutputChoice,
}

/// What happens to outputs that are not those of an earlier run.
#[derive(Args, Debug)]
struct OutputChoice {
    /// Keep outputs that were edited or that another state directory made: their jobs count as finished
    ///
    /// An output has to be complete: its part files and _SUCCESS, and nothing else. Jobs that read from it run again if
    /// it changed.
    #[arg(long, hide_short_help = true, conflicts_with_all = ["again", "force", "from_job", "only"], help_heading = "Jobs")]
    adopt: bool,
    /// Run the jobs of outputs that --adopt would keep, and replace the outputs when the new ones are complete
    #[arg(long, hide_short_help = true, conflicts_with = "adopt", help_heading = "Jobs")]
    overwrite: bool,
}

impl JobChoice {
    pub(super) fn choices(&self) -> Choices {
        let mut choices = if self.again { Choices::again() } else { Choices::default() };
        choices.force.clone_from(&self.force);
        choices.from.clone_from(&self.from_job);
        choices.only.clone_from(&self.only);
        choices.foreign = match (self.outputs.adopt, self.outputs.overwrite) {
            (true, _) => ForeignOutput::Adopt,
            (_, true) => ForeignOutput::Overwrite,
            _ => ForeignOutput::Refuse,
        };
        choices
    }
}

/// What would be done, and when the flows would be.
pub(super) fn table(preview: &Preview, view: &View) -> String {
    let words = |name: &str, cell: &dyn Fn(&JobVerdict) -> String| {
        Column::words(name, preview.jobs.iter().map(cell).collect::<Vec<_>>())
    };
    let tasks: Vec<Option<f64>> =
        preview.jobs.iter().map(|job| Some(f64::from(job.maps) + f64::from(job.reduces))).collect();
    let table = Table::of(vec![
        words("flow", &|job| job.flow.clone()),
        words("job", &|job| job.job.clone()),
        Column::numbers("tasks", &tasks, Unit::Count).rank(2),
        words("what", &|job| describe(job).0.to_owned()),
        words("why", &|job| describe(job).1).rank(1),
    ]);
    let work = preview.jobs.iter().filter(|job| matches!(job.verdict, Verdict::Run(_) | Verdict::Resumed));
    let summary = format!("{} to run, of {}", counted(work.count() as u64, "job"), preview.jobs.len());
    format!("{}{}\n{summary}\n{}", table.render(view), prevented(preview, view), flows(preview, view))
}

/// Why jobs cannot be run, each on as many lines as it takes: nothing else is as important.
fn prevented(preview: &Preview, view: &View) -> String {
    let problem = |job: &JobVerdict| match &job.verdict {
        Verdict::Prevented(problem) => {
            Some(fitted(&format!("{}/{} cannot be run: {problem}", job.flow, job.job), view.width))
        }
        _ => None,
    };
    let problems: String = preview.jobs.iter().filter_map(problem).collect();
    if problems.is_empty() { problems } else { format!("\n{problems}") }
}

fn describe(job: &JobVerdict) -> (&'static str, String) {
    match &job.verdict {
        Verdict::Kept => ("done", "nothing has changed".to_owned()),
        Verdict::Left => ("left", "it was not chosen".to_owned()),
        Verdict::Resumed => ("resume", "it was interrupted".to_owned()),
        Verdict::Run(reason) => ("run", reason.to_string()),
        Verdict::Prevented(_) => ("cannot", "see below".to_owned()),
        _ => ("", String::new()),
    }
}

/// When flows would be done, against their deadlines.
fn flows(preview: &Preview, view: &View) -> String {
    let Some(predicted) = &preview.prediction else { return String::new() };
    let (instance, completions) = (&predicted.instance, predicted.completions());
    let start: Option<&Start> = instance.start();
    let mut table = Table::new(&[
        ("flow", Align::Left),
        ("deadline", Align::Right),
        ("predicted\ncompletion", Align::Right),
        ("", Align::Left),
    ]);
    let at = |of: &dyn Fn(&Flow) -> Option<f64>| {
        instants(&instance.flows().iter().map(of).collect::<Vec<_>>(), start)
    };
    let deadlines = at(&|flow| flow.deadline.map(Time::seconds));
    let done_at = at(&|flow| completions.get(flow.id.as_str()).copied());
    for (k, flow) in instance.flows().iter().enumerate() {
        let (deadline, done) = (flow.deadline.map(Time::seconds), completions.get(flow.id.as_str()).copied());
        let verdict = match (deadline, done) {
            (Some(deadline), Some(done)) if is_late(done, deadline) => "late",
            (Some(_), Some(_)) => "on time",
            _ => "",
        };
        let done = if predicted.unknown.contains(&flow.id) {
            format!("{UNKNOWN} ({NO_HISTORY})")
        } else {
            done_at[k].clone()
        };
        table.row([flow.id.clone(), deadlines[k].clone(), done, verdict.to_owned()]);
    }
    for flow in preview.prevented_flows() {
        table.row([flow, "", "", "cannot be run"]);
    }
    format!("\n{}", table.render(view))
}
