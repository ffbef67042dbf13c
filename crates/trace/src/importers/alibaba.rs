//! Batch jobs of Alibaba's cluster trace of 2018: `batch_task.csv`, nine columns without a header.
//!
//! `task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem`. The rows of a job become one
//! flow, a task a job with a map phase of as many tasks as it has instances. Names such as `M2_1` or `J5_3_4` say what
//! comes after what: task 5 after 3 and 4; all other names are of tasks that wait for none. An instance takes as long as
//! its task was recorded to take from start to end, which is the time of its longest instances, or of several waves of
//! them. `plan_cpu` is in hundredths of a core; an instance that takes more than `slot-cores` becomes several tasks.
//! `plan_mem` is a share of a machine that the trace does not describe and is not looked at.
//!
//! Tasks that have no end are left out, and what came after them comes after what they came after. A flow is released
//! when its first task started.
//!
//! Read as a stream, a job is complete when it was not heard of for `job-rows` rows; its flow leaves when no job that is
//! not complete may be released earlier. So the rows must be nearly in the order of their starts, as
//! `sort -t, -k6,6n` makes them, and those of a job near each other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use slackline_model::Start;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::{Param, Settings, Values};

use crate::diagnostic::Diagnostics;
use crate::error::TraceError;
use crate::importer::{Importer, Input, Output};
use crate::importers::dag::bridged;
use crate::importers::log::{SLOT_CORES, quoted, slots, task_count};
use crate::line_import::{Line, LineImport, Marked, Said, import_lines};
use crate::place::Place;
use crate::source::SourceMap;

/// How long a job is waited for in a stream.
const JOB_ROWS: Param = Param::new(
    "job-rows",
    "100000",
    Values::Count(1, 1_000_000_000),
    "read as a stream: rows without a word of a job after which it is complete",
);

pub(super) const IMPORTER: Importer = Importer {
    name: "alibaba",
    summary: "batch jobs of Alibaba's cluster trace of 2018: batch_task.csv",
    endings: &[],
    looks_like,
    params: &[SLOT_CORES, JOB_ROWS],
    // How long a job is waited for shapes nothing: a job that comes again is refused.
    shaped: |_, name| name == SLOT_CORES.name,
    import,
    lines: Some(open),
    folder: None,
};

/// States of tasks in the trace.
const STATES: [&str; 7] = ["Terminated", "Failed", "Running", "Waiting", "Ready", "Interrupted", "Cancelled"];

/// What the columns are, for messages.
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

/// Whether the first row is of `batch_task` in either version, or of `batch_instance`, which are refused by their names.
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

/// Reads the trace row by row.
#[derive(Default)]
struct Rows {
    slot_cores: u64,
    /// How many rows without a word of a job it is waited for.
    patience: u64,
    /// How many rows there were.
    n: u64,
    /// Jobs that may still go on, by name.
    open: BTreeMap<String, Job>,
    /// Their releases, with the line of each.
    releases: BTreeSet<(i64, u32)>,
    /// The row and the job, of the rows after which a job may be complete.
    heard: VecDeque<(u64, String)>,
    /// Flows of jobs that are complete, the earliest first.
    complete: BinaryHeap<Reverse<Complete>>,
}

/// A job of which not all rows may be there.
struct Job {
    line: u32,
    /// Its last row.
    heard: u64,
    /// When its first task started; of tasks that ran.
    release: Option<i64>,
    tasks: Vec<Task>,
}

/// A row.
struct Task {
    line: u32,
    name: String,
    /// What its name says: its number, and those that it comes after.
    number: Option<(u32, Vec<u32>)>,
    /// Instances on slots, and seconds; none of tasks that did not run.
    ran: Option<(u32, f64)>,
}

/// A flow that is complete.
struct Complete {
    release: i64,
    line: u32,
    flow: FlowDraft,
}

impl PartialEq for Complete {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Complete {}

impl PartialOrd for Complete {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Complete {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.release, self.line).cmp(&(other.release, other.line))
    }
}

impl LineImport for Rows {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<Said, TraceError> {
        if line.text.trim().is_empty() || (self.n == 0 && is_header(line.text)) {
            return Ok(Said::Nothing);
        }
        let (job, start, task) = self.row(line, diagnostics)?;
        self.n += 1;
        self.add(job, start, task);
        while self.heard.front().is_some_and(|(row, _)| self.n - row > self.patience) {
            let Some((row, name)) = self.heard.pop_front() else { break };
            if self.open.get(&name).is_some_and(|job| job.heard == row)
                && let Some(job) = self.open.remove(&name)
            {
                self.close(name, job, diagnostics);
            }
        }
        let flows = self.due();
        Ok(if flows.is_empty() { Said::Nothing } else { Said::Earlier(flows) })
    }

    fn end(&mut self, file: &str, diagnostics: &mut Diagnostics) -> Result<Vec<Marked>, TraceError> {
        if self.n == 0 {
            let what = "found no rows, expected those of batch_task.csv: task, instances, job, type, status, start, \
                        end, cpu and memory";
            return Err(TraceError::input(file, None, what));
        }
        let mut rest: Vec<_> = std::mem::take(&mut self.open).into_iter().collect();
        rest.sort_by_key(|(_, job)| job.line);
        for (name, job) in rest {
            self.close(name, job, diagnostics);
        }
        Ok(self.due())
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
                    diagnostics.add(line.number, "task that failed, kept with the time that it took");
                }
                let instances = instances.filter(|&n| n >= 1.0).unwrap_or_else(|| {
                    diagnostics.add(line.number, "no number of instances, given 1");
                    1.0
                });
                let wide = slots(cpu.unwrap_or(0.0) / 100.0, self.slot_cores);
                let tasks = task_count((instances as u64).saturating_mul(wide));
                (Some((tasks.map_err(|what| line.error(1, what))?, seconds)), Some(start))
            }
        };
        Ok((job, start, Task { line: line.number, name: name.to_owned(), number: numbers(name), ran }))
    }

    fn add(&mut self, name: &str, start: Option<i64>, task: Task) {
        if self.patience != u64::MAX {
            self.heard.push_back((self.n, name.to_owned()));
        }
        let n = self.n;
        if !self.open.contains_key(name) {
            self.open
                .insert(name.to_owned(), Job { line: task.line, heard: n, release: None, tasks: Vec::new() });
        }
        let Some(job) = self.open.get_mut(name) else { return };
        job.heard = n;
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

    /// Makes a flow of a job that is complete, unless none of its tasks ran.
    fn close(&mut self, name: String, job: Job, diagnostics: &mut Diagnostics) {
        let Some(release) = job.release else {
            diagnostics.add_flow(job.line, "job of which no task ran, left out");
            return;
        };
        self.releases.remove(&(release, job.line));
        let line = job.line;
        let flow = FlowDraft { release: release as f64, ..FlowDraft::new(name, jobs(job, diagnostics)) };
        self.complete.push(Reverse(Complete { release, line, flow }));
    }

    /// The flows before which no other one can come any more.
    fn due(&mut self) -> Vec<Marked> {
        let (mut flows, first) = (Vec::new(), self.releases.first().map(|&(release, _)| release));
        while self
            .complete
            .peek()
            .is_some_and(|Reverse(flow)| first.is_none_or(|first| flow.release <= first))
        {
            let Some(Reverse(complete)) = self.complete.pop() else { break };
            flows.push((complete.flow, complete.line));
        }
        flows
    }
}

/// What a table with another number of columns is.
fn other_table(columns: usize) -> String {
    let expected = "expected the 9 columns of batch_task.csv of Alibaba's cluster trace of 2018";
    match columns {
        8 => format!(
            "found a row of 8 columns, as batch_task.csv of Alibaba's cluster trace of 2017 has, which does not say what \
             comes after what; {expected}"
        ),
        14 => format!("found a row of 14 columns, as batch_instance.csv of Alibaba's trace has, {expected}"),
        n => format!("found a row of {n} columns, {expected}"),
    }
}

/// When a task started, and how long it took; or why it is left out.
fn span(start: Option<f64>, end: Option<f64>, status: &str) -> Result<(i64, f64), &'static str> {
    match (start, end) {
        _ if matches!(status, "Waiting" | "Ready") => Err("task that never started, left out"),
        (Some(start), Some(end)) if start >= 0.0 && start <= end => Ok((start as i64, end - start)),
        (Some(_), Some(0.0) | None) => Err("task without an end, left out"),
        (Some(_), Some(_)) => Err("task that ends before it starts, left out"),
        (None, _) => Err("task without a start, left out"),
    }
}

/// The number in a task's name and those that it comes after: 5, 3 and 4 of `J5_3_4`. Words after them are set aside, as
/// in `M2_1_Stg4`.
fn numbers(name: &str) -> Option<(u32, Vec<u32>)> {
    let mut parts = name.split('_');
    let first = parts.next()?.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if first.len() == name.len() || first.is_empty() {
        return None;
    }
    let number = first.parse().ok()?;
    let mut after = Vec::new();
    for part in parts {
        match part.parse() {
            Ok(before) => after.push(before),
            Err(_) if part.starts_with("Stg") => break,
            Err(_) => return None,
        }
    }
    Some((number, after))
}

/// The jobs of a flow: a task each, those that did not run bridged.
fn jobs(mut job: Job, diagnostics: &mut Diagnostics) -> Vec<JobDraft> {
    let mut names = BTreeSet::new();
    job.tasks.retain(|task| {
        let is_first = names.insert(task.name.clone());
        if !is_first {
            diagnostics.add(task.line, "second task of that name in its job, left out");
        }
        is_first
    });
    let mut by_number = BTreeMap::new();
    for (k, task) in job.tasks.iter().enumerate() {
        if let Some((number, _)) = task.number
            && by_number.insert(number, k).is_some()
        {
            diagnostics
                .add_flow(job.line, "two tasks of one number in a job: what names it comes after the later");
        }
    }
    let after = |(k, task): (usize, &Task)| {
        let mut found = Vec::new();
        for before in task.number.iter().flat_map(|(_, after)| after) {
            match by_number.get(before) {
                Some(&before) if before != k => found.push(before),
                Some(_) => {}
                None => diagnostics
                    .add_flow(job.line, "task that comes after one that is not there, which is left out"),
            }
        }
        found
    };
    let after: Vec<Vec<usize>> = job.tasks.iter().enumerate().map(after).collect();
    let after = bridged(&after, |k| job.tasks[k].ran.is_some());
    let names: Vec<String> = job.tasks.iter().map(|task| task.name.clone()).collect();
    let job_of = |(task, after): (Task, Vec<usize>)| {
        let (tasks, seconds) = task.ran?;
        let map = Some(TasksDraft::Uniform { tasks, seconds }.into());
        let after = after.into_iter().map(|before| names[before].clone()).collect();
        Some(JobDraft { id: task.name, after, map, ..JobDraft::default() })
    };
    job.tasks.into_iter().zip(after).filter_map(job_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Imported, read_workload};
    use crate::importers::mutations;
    use crate::options::ImportOptions;
    use crate::stream::WorkloadStream;

    const ROWS: &str = "\
M1,4,j_1,1,Terminated,100,160,100.0,0.3
task_Nzg=,1,j_2,1,Terminated,110,111,50,0.1
M2_1,2.0,j_1,1,Failed,160,200,,
M3_2,7,j_1,1,Running,161,0,100,0.3
R4_3_9,2,j_1,1,Terminated,205,265,250,0.49
M1,1,j_3,1,Waiting,,,100,0.3
M1,1,j_4,1,Terminated,300,290,100,0.3
M1_Stg2,,j_5,1,Terminated,120,121,100,0.3
J2_1_Stg7,1,j_5,1,Terminated,121,122,100,0.3
M1_Stg2,1,j_5,1,Terminated,120,121,100,0.3
";

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<Imported, TraceError> {
        let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
        read_workload("batch_task.csv", text.as_bytes(), None, &options)
    }

    fn said(imported: &Imported) -> Vec<(&str, u64)> {
        imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect()
    }

    #[test]
    fn rows_of_a_job_become_a_flow() {
        let imported = read(ROWS, &[]).unwrap();
        assert_eq!(imported.importer.name, "alibaba");
        let flows = &imported.draft.flows;
        let found: Vec<_> =
            flows.iter().map(|flow| (flow.id.as_str(), flow.release, flow.jobs.len())).collect();
        assert_eq!(found, [("j_1", 100.0, 3), ("j_2", 110.0, 1), ("j_5", 120.0, 2)]);
        let map = |k: usize| flows[0].jobs[k].map.as_ref().unwrap().tasks.clone();
        assert_eq!(map(0), TasksDraft::Uniform { tasks: 4, seconds: 60.0 });
        assert_eq!(map(2), TasksDraft::Uniform { tasks: 6, seconds: 60.0 }, "2.5 cores are three slots");
        assert_eq!(flows[0].jobs[1].after, ["M1"]);
        assert_eq!(flows[0].jobs[2].after, ["M2_1"], "the task between them did not run");
        assert_eq!(flows[2].jobs[1].after, ["M1_Stg2"]);
        assert_eq!(
            said(&imported),
            [
                ("task that failed, kept with the time that it took", 1),
                ("task without an end, left out", 1),
                ("task that never started, left out", 1),
                ("task that ends before it starts, left out", 1),
                ("no number of instances, given 1", 1),
                ("task that comes after one that is not there, which is left out", 1),
                ("job of which no task ran, left out", 2),
                ("second task of that name in its job, left out", 1),
            ]
        );
        assert_eq!(imported.source.places(&["flows[2].jobs[0]"])[0].unwrap().line, 8);
        let wide = read(ROWS, &[("slot-cores", "3")]).unwrap().draft;
        assert_eq!(wide.flows[0].jobs[2].map, Some(TasksDraft::Uniform { tasks: 2, seconds: 60.0 }.into()));
    }

    #[test]
    fn names_say_what_comes_after_what() {
        for (name, expected) in [
            ("M1", Some((1, vec![]))),
            ("J5_3_4", Some((5, vec![3, 4]))),
            ("R12_7_Stg3", Some((12, vec![7]))),
            ("MergeTask", None),
            ("task_Nzg3", None),
            ("12", None),
            ("M1_x", None),
            ("M99999999999", None),
        ] {
            assert_eq!(numbers(name), expected, "{name}");
        }
    }

    /// Rows of many jobs between each other, in the order of their starts.
    fn long(jobs: u64) -> String {
        use std::fmt::Write;
        let mut rows: Vec<(u64, String)> = Vec::new();
        for job in 0..jobs {
            let start = 10 * job;
            rows.push((start, format!("M1,2,j_{job},1,Terminated,{start},{},100,0.3", start + 25)));
            let next = start + 25;
            rows.push((next, format!("R2_1,1,j_{job},1,Terminated,{next},{},100,0.3", next + 5)));
        }
        rows.sort();
        rows.iter().fold(String::new(), |mut text, (_, row)| {
            writeln!(text, "{row}").unwrap();
            text
        })
    }

    fn stream(text: String, job_rows: &str) -> Result<Vec<(FlowDraft, u32)>, TraceError> {
        let options = ImportOptions::from_pairs([("job-rows", job_rows)]).unwrap();
        let mut stream = WorkloadStream::open("-", std::io::Cursor::new(text.into_bytes()), None, &options)?;
        let mut flows = Vec::new();
        while let Some(flow) = stream.next_flow()? {
            flows.push(flow);
        }
        Ok(flows)
    }

    #[test]
    fn a_stream_keeps_only_jobs_that_may_go_on() {
        let text = long(200);
        let whole = read(&text, &[]).unwrap().draft.flows;
        assert_eq!(whole.len(), 200);
        for job_rows in ["10", "100000"] {
            let flows = stream(text.clone(), job_rows).unwrap();
            assert_eq!(
                flows.iter().map(|(flow, _)| flow).collect::<Vec<_>>(),
                whole.iter().collect::<Vec<_>>()
            );
        }
        let settings = Settings::parse(IMPORTER.params, [("job-rows", "10")]).unwrap();
        let (mut rows, mut diagnostics) = (Rows::of(&settings), Diagnostics::default());
        for (number, text) in (1..).zip(text.lines()) {
            rows.line(&Line { file: "-", number, text }, &mut diagnostics).unwrap();
            assert!(rows.open.len() + rows.complete.len() + rows.heard.len() <= 36, "row {number}");
        }
    }

    #[test]
    fn other_tables_are_called_by_their_names() {
        let error = |text: &str| read(text, &[]).unwrap_err().to_string();
        let first = error("101,200,3,4,5,Terminated,50,0.1\n");
        assert!(first.starts_with("batch_task.csv:1:1: found a row of 8 columns, as batch_task.csv of Alibaba's cluster trace of 2017"), "{first}");
        let instance = error("ins_1,M1,j_1,1,Terminated,1,2,m_1,1,1,1,1,1,1\n");
        assert!(instance.contains("batch_instance.csv"), "{instance}");
    }

    #[test]
    fn bad_rows_have_a_place() {
        let error =
            |row: &str| read(&format!("M1,1,j,1,Terminated,1,2,3,4\n{row}\n"), &[]).unwrap_err().to_string();
        assert_eq!(
            error("M2,1,j,1,Terminated,one,2,3,4"),
            "batch_task.csv:2:21: found \"one\" in column 6, expected a start time in seconds"
        );
        assert!(error(",1,j,1,Terminated,1,2,3,4").contains("expected the name of a task"));
        assert!(error("M2,9e18,j,1,Terminated,1,2,3,4").contains("expected at most"));
        assert!(error("M2,1").contains("found a row of 2 columns, expected the 9 columns"));
    }

    #[test]
    fn rows_of_the_real_shape_are_read() {
        let Some(path) = crate::real_data::real("own/alibaba_batch_task_v2018_shape.csv") else { return };
        let imported = read(&std::fs::read_to_string(path).unwrap(), &[]).unwrap();
        let found: Vec<_> =
            imported.draft.flows.iter().map(|flow| (flow.id.as_str(), flow.jobs.len())).collect();
        assert_eq!(
            (found.as_slice(), imported.importer.name),
            ([("j_1", 5), ("j_2", 1)].as_slice(), "alibaba")
        );
        assert_eq!(imported.draft.flows[0].jobs[4].after, ["M3_1", "R4_2"]);
    }

    #[test]
    fn damaged_rows_are_survived() {
        mutations::survives(
            "alibaba",
            ROWS.as_bytes(),
            &[",", "M1_1", "M4_3_2", "j_1", "1e18", "-5", "0.5", "Waiting"],
        );
    }
}
