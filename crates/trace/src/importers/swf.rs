//! Workloads in the Standard Workload Format (SWF 2.2) of the Parallel Workloads Archive.
//!
//! A line is a job: 18 numbers between white space, -1 for unknown, in the order of submission; comments
//! after `;` may have the date of second 0 and the size of the machine. A job is rigid in the format. Here it
//! becomes a flow of one map phase with a task for each processor, or for each `slot-cores` processors, of
//! the job's run time: tasks that need not start together.
//!
//! Used are the job's number (1), submit time (2), run time (4), processors (5, else 8), status (11), user
//! (12) and queue (15), which becomes the pool. Jobs that never ran are ignored; failed and cancelled jobs
//! have their logged run time. Preceding jobs (17) are ignored: submit times are those of the log.

use slackline_model::calendar::Zone;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::params::Settings;
use slackline_model::{Draft, Start};

use crate::importers::durations::whole_micros;
use crate::importers::importer::{Importer, Input, Output, import_lines};
use crate::importers::line_import::{Line, LineContent, LineImport};
use crate::importers::log::{GANG, SLOT_CORES, cells, declare_pools, quoted, slots, task_count};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::source::SourceMap;

pub(super) const IMPORTER: Importer = Importer {
    endings: &["swf"],
    params: &[SLOT_CORES],
    lines: Some(open),
    ..Importer::new(
        "swf",
        "jobs of a parallel machine in the Standard Workload Format (SWF)",
        looks_like,
        import,
    )
};

/// How many columns the format has.
const COLUMNS: usize = 18;

/// The largest machine that a header may speak of, processors.
const PROCESSORS_MAX: u64 = 100_000_000;

/// Header fields that files of the archive begin with.
const HEADER: [&str; 6] = ["Version", "Computer", "Installation", "MaxJobs", "MaxProcs", "UnixStartTime"];

/// Whether the first line with content is a row of numbers, or, if there are only comments, one of them is a
/// field of the header.
fn looks_like(text: &str) -> bool {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines().find(|line| !line.starts_with(';')) {
        Some(row) => {
            let numbers = row.split_ascii_whitespace().map(|cell| cell.parse::<f64>().is_ok());
            row.split_ascii_whitespace().count() == COLUMNS && numbers.take(COLUMNS).all(|is| is)
        }
        None => lines().filter_map(field).any(|(name, _)| HEADER.contains(&name)),
    }
}

/// A field of the header: `; Name: value`.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim_start().strip_prefix(';')?.split_once(':')?;
    Some((name.trim(), value.trim()))
}

fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let rows = open(None, settings);
    let mut output = import_lines(input, rows, |lines| SourceMap::rows(input.file, lines))?;
    declare_pools(&mut output.draft);
    Ok(output)
}

fn open(_: Option<&Start>, settings: &Settings) -> Box<dyn LineImport> {
    Box::new(Rows { slot_cores: settings.count(SLOT_CORES.name), ..Rows::default() })
}

/// Reads a workload row by row.
#[derive(Default)]
struct Rows {
    slot_cores: u64,
    header: Header,
    /// When the job of the last row was submitted.
    before: f64,
    /// Whether there was a row.
    any: bool,
}

#[derive(Default)]
struct Header {
    unix_start: Option<i64>,
    zone: Option<Zone>,
    nodes: Option<u64>,
    processors: Option<u64>,
}

/// The columns of the used values.
#[derive(Clone, Copy)]
enum Column {
    Job = 1,
    Submit = 2,
    Run = 4,
    Allocated = 5,
    Requested = 8,
    Memory = 10,
    Status = 11,
    User = 12,
    Queue = 15,
    Preceding = 17,
}

struct Row<'a> {
    line: &'a Line<'a>,
    cells: Vec<(u32, &'a str)>,
}

impl Row<'_> {
    fn text(&self, column: Column) -> &str {
        self.cells[column as usize - 1].1
    }

    /// The number in that column; `None` if it is negative, which means unknown.
    fn number(&self, column: Column) -> Result<Option<f64>, TraceError> {
        let (place, cell) = self.cells[column as usize - 1];
        let number = cell.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| {
            let (cell, column) = (quoted(cell), column as u8);
            let what =
                format!("found {cell} in column {column}, expected a number, or -1 where it is not known");
            self.line.error(place, what)
        })?;
        Ok((number >= 0.0).then_some(number))
    }
}

impl LineImport for Rows {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        let text = line.text.trim();
        if text.is_empty() {
            return Ok(LineContent::Nothing);
        }
        if text.starts_with(';') {
            return Ok(match field(text) {
                Some((name, value)) if !self.any && self.header.take(name, value) => {
                    LineContent::Head(Box::new(self.header.draft(self.slot_cores)))
                }
                _ => LineContent::Nothing,
            });
        }
        self.any = true;
        let row = Row { line, cells: cells(line.text).collect() };
        if row.cells.len() < COLUMNS {
            let what = format!("found a row of {} columns, expected {COLUMNS}", row.cells.len());
            return Err(line.error(1, what));
        }
        let flow = self.flow(&row, diagnostics)?;
        Ok(flow.map_or(LineContent::Nothing, |flow| LineContent::Flow(Box::new(flow))))
    }

    fn end(&mut self, file: &str, _: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if self.any {
            return Ok(LineContent::Nothing);
        }
        let what = format!("found no rows, expected one job per line: {COLUMNS} numbers");
        Err(TraceError::input(file, None, what))
    }
}

impl Rows {
    /// The flow of a row, unless the job never ran.
    fn flow(
        &mut self,
        row: &Row<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<FlowDraft>, TraceError> {
        let number = row.line.number;
        let status = row.number(Column::Status)?.map(|status| status as i64);
        let (submit, run) = (row.number(Column::Submit)?, row.number(Column::Run)?);
        let left_out = match (status, submit, run) {
            (Some(2..=4), ..) => Some("part of a job that has its own line (status 2 to 4), left out"),
            (_, None, _) => Some("no submit time, left out"),
            (Some(5), _, None | Some(0.0)) => Some("cancelled before it started, left out"),
            (_, _, None) => Some("no run time, left out"),
            _ => None,
        };
        let (None, Some(submit), Some(run)) = (left_out, submit, run) else {
            diagnostics.add(number, left_out.unwrap_or_default());
            return Ok(None);
        };
        match status {
            Some(0) => diagnostics.add(number, "failed, kept with its run time"),
            Some(5) => diagnostics.add(number, "cancelled while it ran, kept with its run time"),
            _ => {}
        }
        if row.number(Column::Preceding)?.is_some_and(|job| job > 0.0) {
            diagnostics.add(number, "comes after another job (column 17), released when it was submitted");
        }
        if submit < self.before {
            diagnostics.add(number, "submitted before the row above, kept as it is");
        }
        self.before = submit;
        let some = |cores: &f64| *cores > 0.0;
        let processors = match row.number(Column::Allocated)?.filter(some) {
            Some(processors) => processors,
            None => row.number(Column::Requested)?.filter(some).unwrap_or_else(|| {
                diagnostics.add(number, "no number of processors, given 1");
                1.0
            }),
        };
        let tasks = task_count(slots(processors, self.slot_cores));
        let tasks = tasks.map_err(|what| row.line.error(row.cells[4].0, what))?;
        diagnostics.add_unmodelled("job", u64::from(tasks > 1), number, GANG);
        let has_memory = row.number(Column::Memory)?.is_some_and(|memory| memory > 0.0);
        diagnostics.add_unmodelled(
            "job",
            u64::from(has_memory),
            number,
            "requested memory (column 10), which limits no task",
        );
        let id = row.text(Column::Job).to_owned();
        let map = Some(TasksDraft::Uniform { tasks, seconds: whole_micros(run) }.into());
        let job = JobDraft { id: id.clone(), map, ..JobDraft::default() };
        let name = |column| Ok::<_, TraceError>(row.number(column)?.map(|_| row.text(column).to_owned()));
        Ok(Some(FlowDraft {
            release: submit,
            user: name(Column::User)?,
            pool: name(Column::Queue)?,
            ..FlowDraft::new(id, vec![job])
        }))
    }
}

impl Header {
    /// Reads a field of the header; returns false if it is not used.
    fn take(&mut self, name: &str, value: &str) -> bool {
        let first = value.split_ascii_whitespace().next().unwrap_or_default();
        let count = || first.parse().ok().filter(|count| (1..=PROCESSORS_MAX).contains(count));
        match name {
            "UnixStartTime" => self.unix_start = first.parse().ok().filter(|&seconds: &i64| seconds > 0),
            "TimeZoneString" => self.zone = Zone::parse(first).ok(),
            "MaxNodes" => self.nodes = count(),
            "MaxProcs" => self.processors = count(),
            _ => return false,
        }
        true
    }

    fn draft(&self, slot_cores: u64) -> Draft {
        let start = self
            .unix_start
            .and_then(|seconds| self.zone.clone().unwrap_or_default().start(seconds.checked_mul(1000)?));
        Draft { start, machines: self.machine(slot_cores).into_iter().collect(), ..Draft::default() }
    }

    /// The machine, if its processors are known: its nodes if they are equal, else nodes of one slot.
    fn machine(&self, slot_cores: u64) -> Option<MachineDraft> {
        let processors = self.processors?;
        let nodes = self.nodes.filter(|nodes| processors.is_multiple_of(*nodes));
        let (nodes, slots) = match nodes {
            Some(nodes) => (nodes, (processors / nodes / slot_cores).max(1)),
            None => ((processors / slot_cores).max(1), 1),
        };
        Some(MachineDraft {
            name: "node".to_owned(),
            count: u32::try_from(nodes).ok()?,
            speed: 1.0,
            slots: Slots::Generic(u32::try_from(slots).ok()?),
            rack: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::import::{ImportedWorkload, read_workload};
    use crate::importers::options::ImportOptions;
    use crate::importers::stream::WorkloadStream;

    const LOG: &str = "\
; Version: 2.2
;   MaxNodes: 4
; MaxProcs: 16
; UnixStartTime: 1772319600
; TimeZoneString: Europe/Berlin

  1 0 5 100.5 4 90 -1 4 600 -1 1 3 1 1 2 1 -1 -1
  2 7 0 50 -1 -1 -1 3 60 -1 0 4 1 1 1 1 -1 -1
  3 8 -1 -1 -1 -1 -1 8 60 -1 5 4 1 1 1 1 -1 -1
  4 9 0 0 8 -1 -1 8 60 -1 1 -1 1 1 -1 1 1 60
  5 6 0 10 -1 -1 -1 -1 60 -1 5 4 1 1 1 1 -1 -1
  6 9 0 10 2 -1 -1 2 60 -1 3 4 1 1 1 1 -1 -1
  7 9 0 -1 2 -1 -1 2 60 -1 1 4 1 1 1 1 -1 -1
";

    fn read(text: &str, cores: &str) -> Result<ImportedWorkload, TraceError> {
        let options = ImportOptions::from_pairs([("slot-cores", cores)]).unwrap();
        read_workload("day.swf", text.as_bytes(), None, &options)
    }

    fn tasks(flow: &FlowDraft) -> (u32, f64) {
        let Some(TasksDraft::Uniform { tasks, seconds }) = flow.jobs[0].map.as_ref().map(|m| m.tasks.clone())
        else {
            panic!("equal tasks")
        };
        (tasks, seconds)
    }

    #[test]
    fn jobs_become_flows_of_as_many_tasks_as_processors() {
        let imported = read(LOG, "1").unwrap();
        let draft = &imported.draft;
        let found: Vec<_> = draft.flows.iter().map(|f| (f.id.as_str(), f.release, tasks(f))).collect();
        assert_eq!(
            found,
            [("1", 0.0, (4, 100.5)), ("2", 7.0, (3, 50.0)), ("4", 9.0, (8, 0.0)), ("5", 6.0, (1, 10.0))]
        );
        assert_eq!((draft.flows[0].user.as_deref(), draft.flows[0].pool.as_deref()), (Some("3"), Some("2")));
        assert_eq!((draft.flows[2].user.as_deref(), draft.flows[2].pool.as_deref()), (None, None));
        assert_eq!(draft.pools.iter().map(|pool| pool.id.as_str()).collect::<Vec<_>>(), ["2", "1"]);
        assert_eq!(
            draft.start.as_ref().map(ToString::to_string).unwrap(),
            "2026-03-01T00:00:00+01:00[Europe/Berlin]"
        );
        assert_eq!((draft.machines[0].count, draft.machines[0].slots), (4, Slots::Generic(4)));
        let said: Vec<_> =
            imported.diagnostics.iter().map(|d| (d.what.as_str(), d.first.unwrap().line)).collect();
        assert_eq!(
            said,
            [
                (GANG, 7),
                ("failed, kept with its run time", 8),
                ("cancelled before it started, left out", 9),
                ("comes after another job (column 17), released when it was submitted", 10),
                ("cancelled while it ran, kept with its run time", 11),
                ("submitted before the row above, kept as it is", 11),
                ("no number of processors, given 1", 11),
                ("part of a job that has its own line (status 2 to 4), left out", 12),
                ("no run time, left out", 13),
            ]
        );
    }

    #[test]
    fn several_cores_may_be_one_slot() {
        let draft = read(LOG, "3").unwrap().draft;
        assert_eq!(draft.flows.iter().map(|flow| tasks(flow).0).collect::<Vec<_>>(), [2, 1, 3, 1]);
        assert_eq!((draft.machines[0].count, draft.machines[0].slots), (4, Slots::Generic(1)));
    }

    #[test]
    fn a_stream_has_the_same_flows_without_pools() {
        let sorted: String = LOG
            .lines()
            .filter(|line| !line.starts_with("  5"))
            .fold(String::new(), |text, line| text + line + "\n");
        let whole = read(&sorted, "1").unwrap().draft;
        let options = ImportOptions::default();
        let mut stream =
            WorkloadStream::open("-", std::io::Cursor::new(sorted.into_bytes()), None, &options).unwrap();
        assert_eq!(stream.head().machines, whole.machines);
        assert_eq!(stream.head().start, whole.start);
        let mut flows = Vec::new();
        while let Some((flow, _)) = stream.next_flow().unwrap() {
            flows.push(flow);
        }
        let without = whole.flows.into_iter().map(|flow| FlowDraft { pool: None, ..flow });
        assert_eq!(flows, without.collect::<Vec<_>>());
    }

    #[test]
    fn bad_rows_have_a_place() {
        let error = |text: &str| read(text, "1").unwrap_err().to_string();
        assert_eq!(error("; Version: 2.2\n1 0 5\n"), "day.swf:2:1: found a row of 3 columns, expected 18");
        let row = "1 0 5 ten 4 90 -1 4 600 -1 1 3 1 1 2 1 -1 -1\n";
        assert_eq!(
            error(row),
            "day.swf:1:7: found \"ten\" in column 4, expected a number, or -1 where it is not known"
        );
        let many = row.replace("ten 4", "10 9e99");
        assert!(error(&many).starts_with("day.swf:1:10: found 18446744073709551615 tasks, expected at most"));
        assert!(error("; Version: 2.2\n").contains("found no rows"));
    }

    #[test]
    fn a_real_file_is_read() {
        let Some(path) = crate::real_data::real("own/minimal.swf") else { return };
        let imported = read(&std::fs::read_to_string(path).unwrap(), "1").unwrap();
        assert_eq!((imported.importer.name, imported.draft.flows.len()), ("swf", 2));
        assert_eq!(imported.draft.flows.iter().map(tasks).collect::<Vec<_>>(), [(2, 10.0), (4, 20.0)]);
        assert_eq!(imported.draft.machines[0].count, 4);
    }
}
