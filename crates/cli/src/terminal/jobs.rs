//! The jobs of a run with their counters, as a table and as JSON.

use serde_json::{Value, json};
use slackline::report::number::{Unit, counted};
use slackline::report::{Column, Table, View};
use slackline::run::{JobFigures, PhaseFigures, Progress};

use crate::terminal::numbers::{Number, megabytes, number};

fn sum(job: &JobFigures, of: fn(&PhaseFigures) -> u64) -> f64 {
    job.phases().map(of).iter().sum::<u64>() as f64
}

/// All counters of a job. A number of rank 0 is shown if any job has it. The input of a job is that of its
/// maps, the output that of its last phase.
const NUMBERS: [Number<JobFigures>; 13] = [
    number("failed", Unit::Count, 1, |job| Some(job.failed() as f64)),
    number("map_seconds", Unit::Measure, 4, |job| Some(job.maps.seconds)),
    number("reduce_seconds", Unit::Measure, 4, |job| Some(job.reduces.seconds)),
    number("lost_seconds", Unit::Measure, 0, |job| Some(job.maps.lost_seconds + job.reduces.lost_seconds)),
    number("records_in", Unit::Count, 2, |job| Some(job.maps.counts.records_in as f64)),
    number("records_out", Unit::Count, 2, |job| Some(job.last().counts.records_out as f64)),
    megabytes("bytes_in", 3, |job| Some(job.maps.counts.bytes_in as f64)),
    megabytes("bytes_out", 3, |job| Some(job.last().counts.bytes_out as f64)),
    number("spills", Unit::Count, 0, |job| Some(sum(job, |phase| phase.counts.spills))),
    number("spilled", Unit::Count, 0, |job| Some(sum(job, |phase| phase.counts.spilled))),
    number("combine_in", Unit::Count, 0, |job| Some(sum(job, |phase| phase.counts.combine_in))),
    number("combine_out", Unit::Count, 0, |job| Some(sum(job, |phase| phase.counts.combine_out))),
    number("skipped", Unit::Count, 0, |job| Some(job.skipped() as f64)),
];

/// `3 of 4 maps, 2 reduces`; `1 task` of a job without reduces, such as a plain command.
fn progress(job: &JobFigures) -> String {
    let of = |phase: &PhaseFigures, noun: &str| {
        let Progress { total, done } = phase.tasks;
        let all = counted(total as u64, noun);
        if done >= total { all } else { format!("{done} of {all}") }
    };
    match job.reduces.tasks.total {
        0 => of(&job.maps, "task"),
        _ => format!("{}, {}", of(&job.maps, "map"), of(&job.reduces, "reduce")),
    }
}

/// A line a job.
pub(crate) fn table(jobs: &[JobFigures], view: &View) -> String {
    let words = |name: &str, of: fn(&JobFigures) -> String| Column::words(name, jobs.iter().map(of));
    let column = |number: &Number<JobFigures>| {
        let values = number.values(jobs.iter());
        let column = number.column(&values);
        match number.rank {
            // Rare numbers are shown only if present.
            0 if values.iter().flatten().all(|value| *value == 0.0) => column.if_asked(),
            0 => column.rank(2),
            rank => column.rank(rank),
        }
    };
    let mut columns =
        vec![words("job", |job| format!("{}/{}", job.flow, job.job)), words("tasks", progress).rank(1)];
    columns.extend(NUMBERS.iter().map(column));
    format!("{}{}", Table::of(columns).render(view), status_lines(jobs))
}

/// What commands counted and said, a line each: `f/j: errors,parse 3`.
fn status_lines(jobs: &[JobFigures]) -> String {
    let of = |job: &JobFigures| {
        let name = format!("{}/{}", job.flow, job.job);
        let counted =
            job.counters().into_iter().map(|(counter, count)| format!("{name}: {counter} {count}\n"));
        let status_lines = job.phases().into_iter().filter_map(|phase| phase.counts.says.as_deref());
        counted.chain(status_lines.map(|status| format!("{name} status: {status}\n"))).collect::<String>()
    };
    jobs.iter().map(of).collect()
}

/// A job as JSON: all of both phases.
pub(crate) fn json(job: &JobFigures) -> Value {
    json!({ "flow": job.flow, "job": job.job, "maps": phase(&job.maps), "reduces": phase(&job.reduces) })
}

fn phase(phase: &PhaseFigures) -> Value {
    json!({
        "tasks": phase.tasks.total,
        "done": phase.tasks.done,
        "failed_attempts": phase.failed,
        "stopped_attempts": phase.stopped,
        "seconds": phase.seconds,
        "lost_seconds": phase.lost_seconds,
        "began": phase.began,
        "ended": phase.ended,
        "records_in": phase.counts.records_in,
        "bytes_in": phase.counts.bytes_in,
        "records_out": phase.counts.records_out,
        "bytes_out": phase.counts.bytes_out,
        "skipped": phase.counts.skipped,
        "spills": phase.counts.spills,
        "spilled": phase.counts.spilled,
        "combine_in": phase.counts.combine_in,
        "combine_out": phase.counts.combine_out,
        "counters": phase.counts.counters,
        "says": phase.counts.says,
    })
}
