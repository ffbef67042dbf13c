//! The end of a run: how many flows finished, failed or were late, why, and where the outputs are.

use std::path::Path;

use slackline::report::View;
use slackline::report::number::{counted, duration, instant};
use slackline::report::table::fitted;
use slackline::run::{FailedJob, JobFigures, Outcome, RunRecord};
use slackline_model::cost::is_late;

use crate::args::report::quoted;

/// The number of outputs that are named.
const OUTPUTS: usize = 8;

/// The summary of a run that has ended.
pub(super) fn summary(record: &RunRecord<'_>, outcome: &Outcome, state: &Path, view: &View) -> String {
    let instance = &outcome.instance;
    let (mut finished, mut failed, mut late) = (0, Vec::new(), Vec::new());
    for row in &outcome.schedule.flows {
        let flow = instance.flow(row.flow);
        let Some(completion) = row.completion else {
            failed.push(failure(record, &flow.id, state, view));
            continue;
        };
        finished += 1;
        let deadline = flow.deadline.map(slackline_model::Time::seconds);
        if let Some(deadline) = deadline.filter(|&deadline| is_late(completion, deadline)) {
            let [at, due] = [completion, deadline].map(|at| instant(at, instance.start()));
            let by = duration(completion - deadline);
            let line = format!("late: {}: finished at {at}, {by} after its deadline {due}", flow.id);
            late.push(with_command(&line, &["explain", &flow.id], state, view));
        }
    }
    let counts = [(failed.len(), "failed"), (late.len(), "late")];
    let counts = counts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!(", {n} {word}"));
    let head = format!("{} finished{}\n", counted(finished, "flow"), counts.collect::<String>());
    head + &failed.concat() + &late.concat() + &fitted(&outputs(record), view.width)
}

/// A sentence, and below it a command on the run, which is never broken.
fn with_command(line: &str, words: &[&str], state: &Path, view: &View) -> String {
    let state = state.display().to_string();
    let words: Vec<String> = [words, &["--state", &state]].concat().into_iter().map(quoted).collect();
    format!("{}  slackline {}\n", fitted(line, view.width), words.join(" "))
}

/// A failed flow, with the reason and the command that shows the log.
fn failure(record: &RunRecord<'_>, flow: &str, state: &Path, view: &View) -> String {
    let Some(FailedJob { flow: of, job, reason, .. }) = FailedJob::of_record(record, flow) else {
        return with_command(&format!("failed: {flow}"), &["explain", flow], state, view);
    };
    let named =
        if of == flow { format!("job {job}") } else { format!("it reads from {of}/{job}, which failed") };
    let line = format!("failed: {flow}: {named}: {reason}");
    with_command(&line, &["logs", &of, &job], state, view)
        + &fitted(&unfinished(record, flow, &job), view.width)
}

/// The other jobs of a failed flow that have not finished.
fn unfinished(record: &RunRecord<'_>, flow: &str, failed: &str) -> String {
    let jobs = record.workload.flows.iter().flat_map(|of| of.jobs.iter().map(move |job| (&of.id, &job.id)));
    let figures = JobFigures::all(record.workload, record.attempts);
    let is_open = |((of, job), figures): ((&String, &String), &JobFigures)| {
        (of == flow && job != failed && !figures.is_done()).then(|| job.clone())
    };
    let open: Vec<String> = jobs.zip(&figures).filter_map(is_open).collect();
    let more = open.len().saturating_sub(OUTPUTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = &open[..open.len().min(OUTPUTS)];
    if shown.is_empty() { String::new() } else { format!("  not finished: {}{more}\n", shown.join(", ")) }
}

/// The outputs of finished jobs.
fn outputs(record: &RunRecord<'_>) -> String {
    let jobs = record.workload.flows.iter().flat_map(|flow| &flow.jobs);
    let figures = JobFigures::all(record.workload, record.attempts);
    let done = jobs.zip(&figures).filter(|(_, figures)| figures.is_done());
    let outputs: Vec<&str> = done.filter_map(|(job, _)| job.run.as_ref()?.output.as_deref()).collect();
    let more = outputs.len().saturating_sub(OUTPUTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = &outputs[..outputs.len().min(OUTPUTS)];
    if shown.is_empty() { String::new() } else { format!("outputs: {}{more}\n", shown.join(", ")) }
}
