//! Batch jobs of Alibaba's cluster trace of 2018: `batch_task.csv`, nine columns without a header.
//!
//! `task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem`. The rows of a
//! job become one flow: each task is a job, with one map per instance. Names such as `M2_1` or `J5_3_4` have
//! the dependencies: task 5 after 3 and 4; tasks with other names wait for none. An instance takes the time
//! from the start to the end of its task, which is the time of its longest instances, or of several waves of
//! them. `plan_cpu` is in hundredths of a core; an instance that takes more than `slot-cores` becomes several
//! tasks. `plan_mem` is a share of a machine that the trace does not describe and is ignored.
//!
//! Tasks without an end are ignored, and their successors follow their predecessors. A flow is released when
//! its first task started.
//!
//! Read as a stream, a job is complete after `job-rows` consecutive rows of other jobs; its flow leaves when
//! no incomplete job may be released earlier. So the rows must be nearly in the order of their starts, as
//! after `sort -t, -k6,6n`, and those of a job near each other.

mod job;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use slackline_model::Start;
use slackline_model::params::{Param, Settings, Values};

use crate::importers::importer::{Importer, Input, Output, import_lines};
use crate::importers::line_import::{FlowAtLine, Line, LineContent, LineImport};
use crate::importers::log::{SLOT_CORES, quoted, slots, task_count};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

use job::{Job, Task};

/// How long a job is waited for in a stream.
const JOB_ROWS: Param = Param::new(
    "job-rows",
    "100000",
    Values::Count(1, 1_000_000_000),
    "in a stream: a job is complete after this number of rows of other jobs",
);

/// The remarks on resources that simulations leave out.
const INSTANCE_OF_SEVERAL_SLOTS: &str =
    "instances that need several slots at the same time: the slots are scheduled independently";
const MEMORY: &str = "planned memory (column 9), which limits no task";

pub(super) const IMPORTER: Importer = Importer {
    params: &[SLOT_CORES, JOB_ROWS],
    // The length of the wait for a job's rows has no effect on the workload: a job that comes again is
    // refused.
    shaped: |_, name| name == SLOT_CORES.name,
    lines: Some(open),
    ..Importer::new(
        "alibaba",
        "batch jobs of Alibaba's cluster trace of 2018: batch_task.csv",
        looks_like,
        import,
    )
};

/// States of tasks in the trace.
const STATES: [&str; 7] = ["Terminated", "Failed", "Running", "Waiting", "Ready", "Interrupted", "Cancelled"];

/// The columns, in messages.
const COLUMNS: [&str; 9] = [
    "the name of a task",
    "a number of instances",
    "the name of a job",
    "a type of task",
    "a status",
    "a start time in seconds",
    "an end time in seconds",
    "hundredths of a core",
    "a share of memory",
];

/// Whether the first row is of `batch_task` in either version, or of `batch_instance`, which are refused by
/// their names.
fn looks_like(text: &str) -> bool {
    let mut rows = text.lines().filter(|row| !row.trim().is_empty() && !is_header(row));
    let Some(row) = rows.next() else { return text.lines().next().is_some_and(is_header) };
    let cells: Vec<&str> = row.split(',').map(str::trim).collect();
    let status = match cells.len() {
        8 => 5,
        9 | 14 => 4,
        _ => return false,
    };
    STATES.contains(&cells[status])
}

/// Whether a row has the names of the columns.
fn is_header(row: &str) -> bool {
    row.starts_with("task_name,") || row.starts_with("instance_name,") || row.starts_with("create_timestamp,")
}

fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let rows = Box::new(Rows { patience: u64::MAX, ..Rows::of(settings) });
    import_lines(input, rows, |lines| SourceMap::rows(input.file, lines))
}

fn open(_: Option<&Start>, settings: &Settings) -> Box<dyn LineImport> {
    Box::new(Rows::of(settings))
}

/// Most flows that leave at once: flows take more memory than their rows, and one long job may hold back
/// many.
const LEAVE: usize = 64;

/// Reads the trace row by row.
#[derive(Default)]
struct Rows {
    slot_cores: u64,
    /// After how many rows without a job that job is complete.
    patience: u64,
    n: u64,
    /// Jobs that may have more rows: their index in `jobs`, by name.
    open: BTreeMap<Box<str>, usize>,
    jobs: Vec<Job>,
    /// Places in `jobs` of jobs that are complete.
    free: Vec<usize>,
    /// Releases of jobs that may have more rows, with the line of each.
    releases: BTreeSet<(i64, u32)>,
    /// For each row after which a job may be complete: the row, and the index of the job.
    complete_after: VecDeque<(u64, usize)>,
    /// Jobs that are complete, the earliest first.
    complete: BinaryHeap<Reverse<CompleteJob>>,
}

/// A job that is complete. Its flow is made when it leaves: it takes several times the memory, and one long
/// job may have tens of thousands wait for it.
struct CompleteJob {
    release: i64,
    job: Job,
}

slackline_model::order_by_key!(CompleteJob, |complete| (complete.release, complete.job.line));

impl LineImport for Rows {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if line.text.trim().is_empty() || (self.n == 0 && is_header(line.text)) {
            return Ok(LineContent::Nothing);
        }
        let (job, start, task) = self.row(line, diagnostics)?;
        self.n += 1;
        self.add(job, start, task);
        while self.complete_after.front().is_some_and(|(row, _)| self.n - row > self.patience) {
            let Some((row, place)) = self.complete_after.pop_front() else { break };
            // Rows are counted, so that another job at this index has another last row.
            if self.jobs[place].last_row == row {
                let job = std::mem::take(&mut self.jobs[place]);
                self.open.remove(&job.name);
                self.free.push(place);
                self.close(job, diagnostics);
            }
        }
        Ok(LineContent::flows(self.due(diagnostics)))
    }

    fn end(&mut self, file: &str, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if self.n == 0 {
            let what = "found no rows, expected those of batch_task.csv: task, instances, job, type, status, start, \
                        end, cpu and memory";
            return Err(TraceError::input(file, None, what));
        }
        self.open.clear();
        let mut rest = std::mem::take(&mut self.jobs);
        rest.retain(|job| !job.tasks.is_empty());
        rest.sort_by_key(|job| job.line);
        for job in rest {
            self.close(job, diagnostics);
        }
        Ok(LineContent::flows(self.due(diagnostics)))
    }
}

impl Rows {
    fn of(settings: &Settings) -> Self {
        Self {
            slot_cores: settings.count(SLOT_CORES.name),
            patience: settings.count(JOB_ROWS.name),
            ..Self::default()
        }
    }

    /// A row: the name of its job, when the task started if it ran, the task.
    fn row<'a>(
        &self,
        line: &Line<'a>,
        diagnostics: &mut Diagnostics,
    ) -> Result<(&'a str, Option<i64>, Task), TraceError> {
        let mut cells = [""; 9];
        let mut n = 0;
        for cell in line.text.split(',') {
            if let Some(place) = cells.get_mut(n) {
                *place = cell.trim();
            }
            n += 1;
        }
        if n != cells.len() {
            return Err(line.error(1, other_table(n)));
        }
        let wrong = |column: usize| {
            let offset = line.text.split(',').take(column).map(|cell| cell.len() + 1).sum();
            let place = Place::of_offset(line.text.as_bytes(), offset);
            let (found, expected) = (quoted(cells[column]), COLUMNS[column]);
            line.error(place.column, format!("found {found} in column {}, expected {expected}", column + 1))
        };
        let number = |column: usize| match cells[column] {
            "" => Ok(None),
            cell => cell.parse().ok().filter(|x: &f64| x.is_finite()).map(Some).ok_or_else(|| wrong(column)),
        };
        let (name, job) = (cells[0], cells[2]);
        if name.is_empty() || job.is_empty() {
            return Err(wrong(if name.is_empty() { 0 } else { 2 }));
        }
        let (instances, cpu) = (number(1)?, number(7)?);
        let ran = span(number(5)?, number(6)?, cells[4]);
        let (ran, start) = match ran {
            Err(what) => {
                diagnostics.add(line.number, what);
                (None, None)
            }
            Ok((start, seconds)) => {
                if cells[4] == "Failed" {
                    diagnostics.add(line.number, "task that failed, kept with its run time");
                }
                let instances = instances.filter(|&n| n >= 1.0).unwrap_or_else(|| {
                    diagnostics.add(line.number, "no number of instances, given 1");
                    1.0
                });
                let wide = slots(cpu.unwrap_or(0.0) / 100.0, self.slot_cores);
                let tasks = task_count((instances as u64).saturating_mul(wide));
                let is_wide = u64::from(wide > 1);
                diagnostics.add_unmodelled("row", is_wide, line.number, INSTANCE_OF_SEVERAL_SLOTS);
                let has_memory = number(8)?.is_some_and(|memory| memory > 0.0);
                diagnostics.add_unmodelled("row", u64::from(has_memory), line.number, MEMORY);
                (Some((tasks.map_err(|what| line.error(1, what))?, seconds)), Some(start))
            }
        };
        Ok((job, start, Task { line: line.number, name: name.into(), ran }))
    }

    fn add(&mut self, name: &str, start: Option<i64>, task: Task) {
        let place = self.open.get(name).copied().unwrap_or_else(|| {
            let job = Job { name: name.into(), line: task.line, ..Job::default() };
            let place = self.free.pop().unwrap_or(self.jobs.len());
            match self.jobs.get_mut(place) {
                Some(free) => *free = job,
                None => self.jobs.push(job),
            }
            self.open.insert(name.into(), place);
            place
        });
        let job = &mut self.jobs[place];
        job.last_row = self.n;
        if self.patience != u64::MAX {
            self.complete_after.push_back((self.n, place));
        }
        if let Some(start) = start
            && job.release.is_none_or(|release| start < release)
        {
            if let Some(release) = job.release.replace(start) {
                self.releases.remove(&(release, job.line));
            }
            self.releases.insert((start, job.line));
        }
        job.tasks.push(task);
    }

    /// Takes a job as complete, unless none of its tasks ran.
    fn close(&mut self, mut job: Job, diagnostics: &mut Diagnostics) {
        let Some(release) = job.release else {
            diagnostics.add_flow(job.line, "job without a task that ran, left out");
            return;
        };
        self.releases.remove(&(release, job.line));
        job.tasks.shrink_to_fit();
        self.complete.push(Reverse(CompleteJob { release, job }));
    }

    /// Flows before which no other one can come any more.
    fn due(&mut self, diagnostics: &mut Diagnostics) -> Vec<FlowAtLine> {
        let (mut flows, first) = (Vec::new(), self.releases.first().map(|&(release, _)| release));
        let is_due = |job: &CompleteJob| first.is_none_or(|first| job.release <= first);
        while flows.len() < LEAVE && self.complete.peek().is_some_and(|Reverse(job)| is_due(job)) {
            let Some(Reverse(CompleteJob { release, job })) = self.complete.pop() else { break };
            let line = job.line;
            flows.push((job.into_flow(release as f64, diagnostics), line));
        }
        flows
    }
}

/// The message for a table with another number of columns.
fn other_table(columns: usize) -> String {
    let expected = "expected the 9 columns of batch_task.csv of Alibaba's cluster trace of 2018";
    match columns {
        8 => format!(
            "found a row of 8 columns, as batch_task.csv of Alibaba's cluster trace of 2017 has, which has no dependencies; {expected}"
        ),
        14 => format!("found a row of 14 columns, as batch_instance.csv of Alibaba's trace has, {expected}"),
        n => format!("found a row of {n} columns, {expected}"),
    }
}

/// The start and the duration of a task; or the reason why it is ignored.
fn span(start: Option<f64>, end: Option<f64>, status: &str) -> Result<(i64, f64), &'static str> {
    match (start, end) {
        _ if matches!(status, "Waiting" | "Ready") => Err("task that never started, left out"),
        (Some(start), Some(end)) if start >= 0.0 && start <= end => Ok((start as i64, end - start)),
        (Some(_), Some(0.0) | None) => Err("task without an end, left out"),
        (Some(_), Some(_)) => Err("task that ends before it starts, left out"),
        (None, _) => Err("task without a start, left out"),
    }
}
