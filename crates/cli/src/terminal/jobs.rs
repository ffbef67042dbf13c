//! The jobs of a run with their counters, as a table and as JSON.

use serde_json::{Value, json};
use slackline::report::number::Unit;
use slackline::report::{Column, Table, View};
use slackline::run::{JobFigures, PhaseFigures};

use crate::terminal::numbers::{Number, megabytes, number};

fn sum(job: &JobFigures, of: fn(&PhaseFigures) -> u64) -> f64 {
    job.phases().map(of).iter().sum::<u64>() as f64
}

/// All counters of a job. A number of rank 0 is shown if any job has it. The input of a job is that of its
/// maps, the output that of its last phase.
const NUMBERS: [Number<JobFigures>; 13] = [
    number("failed", "failed\nattempts", Unit::Count, 1, |job| Some(job.failed() as f64)),
    number("map_seconds", "seconds of\nall maps", Unit::Measure, 2, |job| Some(job.maps.seconds)),
    number("reduce_seconds", "seconds of\nall reduces", Unit::Measure, 2, |job| Some(job.reduces.seconds)),
    number("lost_seconds", "seconds\nlost", Unit::Measure, 0, |job| {
        Some(job.maps.lost_seconds + job.reduces.lost_seconds)
    }),
    number("records_in", "records\nin", Unit::Count, 3, |job| Some(job.maps.counts.records_in as f64)),
    number("records_out", "records\nout", Unit::Count, 3, |job| Some(job.last().counts.records_out as f64)),
    megabytes("bytes_in", "MB\nin", 4, |job| Some(job.maps.counts.bytes_in as f64)),
    megabytes("bytes_out", "MB\nout", 4, |job| Some(job.last().counts.bytes_out as f64)),
    number("spills", "spills", Unit::Count, 0, |job| Some(sum(job, |phase| phase.counts.spills))),
    number("spilled", "records\nspilled", Unit::Count, 0, |job| Some(sum(job, |phase| phase.counts.spilled))),
    number("combine_in", "records\ncombined", Unit::Count, 0, |job| {
        Some(sum(job, |phase| phase.counts.combine_in))
    }),
    number("combine_out", "to\nrecords", Unit::Count, 0, |job| {
        Some(sum(job, |phase| phase.counts.combine_out))
    }),
    number("skipped", "records\nskipped", Unit::Count, 0, |job| Some(job.skipped() as f64)),
];

/// `3 of 4`, or how many there are if all are done; nothing of a phase that there is not.
fn progress(phase: &PhaseFigures) -> String {
    let tasks = phase.tasks;
    match tasks.total {
        0 => String::new(),
        total if tasks.done >= total => total.to_string(),
        total => format!("{} of {total}", tasks.done),
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
    let mut columns = vec![
        words("job", |job| format!("{}/{}", job.flow, job.job)),
        words("maps", |job| progress(&job.maps)).rank(1),
        words("reduces", |job| progress(&job.reduces)).rank(1),
    ];
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
        counted.chain(status_lines.map(|status| format!("{name} says: {status}\n"))).collect::<String>()
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
