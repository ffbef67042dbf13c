//! Accounting records of Slurm: `sacct --allocations --parsable2
//! --format=JobID,JobName,User,Partition,State,Submit,Elapsed,AllocCPUS`.
//!
//! The first line names the columns, which may be any and in any order; required are `JobID`, `Submit` and
//! the run time (`ElapsedRaw`, `Elapsed`, or `Start` and `End`). Processors are `AllocCPUS`, `NCPUS`, the
//! value in `AllocTRES`, or `ReqCPUS`. A job becomes a flow of one map phase with a task for each processor,
//! or for each `slot-cores` processors, of its run time: tasks that need not start together. `User` becomes
//! the user, `Partition` the pool, `Priority` the priority.
//!
//! Each element of an array is a job, as in Slurm. Steps (`17.batch`) are ignored, and so are jobs that never
//! ran or have not ended. Clock times are those of `time-zone`; the first submission is second 0.
//! Dependencies (`--dependency`) are not in accounting records: a job that waited for another one is released
//! when it was submitted.

use slackline_model::calendar::Zone;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{Draft, Start};

use crate::importers::durations::whole_micros;
use crate::importers::hadoop_log::printable;
use crate::importers::importer::{Importer, Input, Output, import_lines};
use crate::importers::line_import::{Line, LineContent, LineImport};
use crate::importers::log::{GANG, SLOT_CORES, declare_pools, from_first, quoted, slots, task_count};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

/// The zone of clock times without one.
pub(super) const TIME_ZONE: Param = Param::new(
    "time-zone",
    "UTC",
    Values::Text("the name of a time zone such as Europe/Berlin"),
    "time zone of the clock times in a log without one",
);

pub(super) const IMPORTER: Importer = Importer {
    params: &[SLOT_CORES, TIME_ZONE],
    lines: Some(open),
    ..Importer::new(
        "sacct",
        "accounting records of Slurm, as printed by sacct --parsable2",
        looks_like,
        import,
    )
};

/// Final and current states of jobs, beside `COMPLETED`.
const STATES: [&str; 15] = [
    "BOOT_FAIL",
    "CANCELLED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REQUEUED",
    "REVOKED",
    "TIMEOUT",
    "COMPLETING",
    "PENDING",
    "RESIZING",
    "RUNNING",
    "SUSPENDED",
];

/// How many of them, at the end, are of jobs that are not over.
const OPEN: usize = 5;

/// Whether the first line names columns of accounts.
fn looks_like(text: &str) -> bool {
    let names: Vec<&str> = text.lines().next().unwrap_or_default().split('|').map(str::trim).collect();
    let has = |name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    (has("JobID") || has("JobIDRaw")) && ["Submit", "State", "Start", "Elapsed"].into_iter().any(has)
}

fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    let rows = open(None, settings);
    let mut output = import_lines(input, rows, |lines| SourceMap::rows(input.file, lines))?;
    declare_pools(&mut output.draft);
    from_first(&mut output.draft);
    Ok(output)
}

fn open(_: Option<&Start>, settings: &Settings) -> Box<dyn LineImport> {
    Box::new(Rows {
        slot_cores: settings.count(SLOT_CORES.name),
        zone: Zone::parse(settings.text(TIME_ZONE.name)),
        columns: None,
        last: None,
    })
}

/// Reads accounting records row by row.
struct Rows {
    slot_cores: u64,
    zone: Result<Zone, String>,
    columns: Option<Columns>,
    last: Option<LastJob>,
}

/// The job before, and the first one.
struct LastJob {
    /// When the first one was submitted, milliseconds after 1970.
    first: i64,
    submit: i64,
    id: String,
    /// How many records of it there were.
    times: u32,
}

/// The columns of the used values, from the first line.
struct Columns {
    count: usize,
    id: usize,
    name: Option<usize>,
    submit: usize,
    state: Option<usize>,
    elapsed_time: Option<usize>,
    start_end: Option<(usize, usize)>,
    cores: [Option<usize>; 4],
    user: Option<usize>,
    partition: Option<usize>,
    priority: Option<usize>,
    /// Memory and other resources.
    resources: [Option<usize>; 3],
}

impl Columns {
    fn of(line: &Line<'_>) -> Result<Self, TraceError> {
        let names: Vec<&str> = line.text.split('|').map(str::trim).collect();
        let find = |name: &str| names.iter().position(|known| known.eq_ignore_ascii_case(name));
        let lacks = |what: &str| {
            let advice = "--format=JobID,JobName,User,Partition,State,Submit,Elapsed,AllocCPUS";
            line.error(
                1,
                format!("found no column {what}, expected the output of sacct --parsable2 {advice}"),
            )
        };
        let start_end = find("Start").zip(find("End"));
        let elapsed_time = find("ElapsedRaw").or_else(|| find("Elapsed"));
        if elapsed_time.is_none() && start_end.is_none() {
            return Err(lacks("Elapsed"));
        }
        Ok(Self {
            count: names.len(),
            id: find("JobID").or_else(|| find("JobIDRaw")).ok_or_else(|| lacks("JobID"))?,
            name: find("JobName"),
            submit: find("Submit").ok_or_else(|| lacks("Submit"))?,
            state: find("State"),
            elapsed_time,
            start_end,
            cores: [find("AllocCPUS"), find("NCPUS"), find("AllocTRES"), find("ReqCPUS")],
            user: find("User"),
            partition: find("Partition"),
            priority: find("Priority"),
            resources: [find("ReqMem"), find("AllocTRES"), find("ReqTRES")],
        })
    }
}

struct Row<'a> {
    line: &'a Line<'a>,
    cells: Vec<&'a str>,
    /// The place of a job name with separators in it, and their number.
    split_name: (usize, usize),
}

impl<'a> Row<'a> {
    fn of(line: &'a Line<'a>, columns: &Columns) -> Result<Self, TraceError> {
        let cells: Vec<&str> = line.text.split('|').collect();
        let excess = cells.len().saturating_sub(columns.count);
        if cells.len() < columns.count || (excess > 0 && columns.name.is_none()) {
            let what = format!("found a row of {} columns, expected {}", cells.len(), columns.count);
            return Err(line.error(1, what));
        }
        Ok(Self { line, cells, split_name: (columns.name.unwrap_or(usize::MAX), excess) })
    }

    /// Which cell the column is.
    fn at(&self, column: usize) -> usize {
        let (name, excess) = self.split_name;
        if column > name { column + excess } else { column }
    }

    /// The cell of that column; `None` if it is empty or has a word for unknown.
    fn cell(&self, column: usize) -> Option<&'a str> {
        let cell = self.cells[self.at(column)].trim();
        (!matches!(cell, "" | "Unknown" | "None" | "N/A" | "INVALID")).then_some(cell)
    }

    fn wrong(&self, column: usize, expected: &str) -> TraceError {
        let at = self.at(column);
        let offset = self.cells[..at].iter().map(|cell| cell.len() + 1).sum();
        let place = Place::of_offset(self.line.text.as_bytes(), offset);
        self.line.error(place.column, format!("found {}, expected {expected}", quoted(self.cells[at])))
    }

    /// A date and time, milliseconds after 1970.
    fn time(&self, column: usize, zone: &Zone) -> Result<Option<i64>, TraceError> {
        let Some(cell) = self.cell(column) else { return Ok(None) };
        let moment = match cell.parse::<i64>() {
            Ok(seconds) => seconds.checked_mul(1000),
            Err(_) => zone.unix_millis(cell),
        };
        let expected = "a date and time such as 2026-03-01T06:00:00, or seconds after 1970";
        moment.map(Some).ok_or_else(|| self.wrong(column, expected))
    }
}

impl LineImport for Rows {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if line.text.trim().is_empty() {
            return Ok(LineContent::Nothing);
        }
        let Some(columns) = &self.columns else {
            if let Err(expected) = &self.zone {
                return Err(line.error(1, format!("time-zone: expected {expected}")));
            }
            self.columns = Some(Columns::of(line)?);
            return Ok(LineContent::Nothing);
        };
        let zone = self.zone.clone().unwrap_or_default();
        let row = Row::of(line, columns)?;
        if row.split_name.1 > 0 {
            diagnostics.add(line.number, "job name with | in it");
        }
        let Some((moment, flow)) = flow(&row, columns, &zone, self.slot_cores, diagnostics)? else {
            return Ok(LineContent::Nothing);
        };
        Ok(self.flow_at(moment, flow, &zone, line.number, diagnostics))
    }

    fn end(&mut self, file: &str, _: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if self.columns.is_some() {
            return Ok(LineContent::Nothing);
        }
        Err(TraceError::input(file, None, "found nothing, expected the output of sacct --parsable2"))
    }
}

impl Rows {
    /// The flow with its release; records of one job that follow each other get different names.
    fn flow_at(
        &mut self,
        submit: i64,
        mut flow: FlowDraft,
        zone: &Zone,
        line: u32,
        diagnostics: &mut Diagnostics,
    ) -> LineContent {
        let Some(last) = &mut self.last else {
            self.last = Some(LastJob { first: submit, submit, id: flow.id.clone(), times: 1 });
            let head = Draft { start: zone.start(submit), ..Draft::default() };
            return LineContent::HeadAndFlow(Box::new(head), Box::new(flow));
        };
        if submit < last.submit {
            diagnostics.add(line, "submitted before the row above, kept as it is");
        }
        last.submit = submit;
        if flow.id == last.id {
            last.times += 1;
            diagnostics.add(line, "another record of the job above, which was requeued: a separate flow");
            flow.id = format!("{}~{}", last.id, last.times);
        } else {
            (last.id, last.times) = (flow.id.clone(), 1);
        }
        flow.release = whole_micros((submit as f64 - last.first as f64) / 1000.0);
        LineContent::Flow(Box::new(flow))
    }
}

/// The submission of a job, and its flow; `None` for ignored rows.
fn flow(
    row: &Row<'_>,
    columns: &Columns,
    zone: &Zone,
    slot_cores: u64,
    diagnostics: &mut Diagnostics,
) -> Result<Option<(i64, FlowDraft)>, TraceError> {
    let number = row.line.number;
    let id = row.cell(columns.id).ok_or_else(|| row.wrong(columns.id, "the number of a job"))?;
    if id.contains('.') {
        diagnostics.add(number, "step of a job, left out");
        return Ok(None);
    }
    let elapsed_time = elapsed_time(row, columns, zone)?;
    let word = columns.state.and_then(|column| row.cell(column)?.split_ascii_whitespace().next());
    let state = STATES.into_iter().enumerate().find(|(_, state)| word == Some(state));
    let left_out = match (state, elapsed_time) {
        (Some((k, state)), _) if k >= STATES.len() - OPEN => Some(format!("{state}, left out")),
        (Some((_, state)), None | Some(0.0)) => Some(format!("{state} before it started, left out")),
        (_, None) => Some("no run time, left out".to_owned()),
        _ => None,
    };
    let submit = row.time(columns.submit, zone)?;
    let left_out = left_out.or_else(|| submit.is_none().then(|| "no submit time, left out".to_owned()));
    let (None, Some(submit), Some(seconds)) = (&left_out, submit, elapsed_time) else {
        diagnostics.add(number, &left_out.unwrap_or_default());
        return Ok(None);
    };
    match (state, word) {
        (Some((_, state @ ("PREEMPTED" | "REQUEUED"))), _) => {
            let what = format!("{state}, kept with its run time: tasks are not preempted");
            diagnostics.add_unmodelled("row", 1, number, &what);
        }
        (Some((_, state)), _) => {
            diagnostics.add(number, &format!("{state}, kept with its run time"));
        }
        (None, Some("COMPLETED") | None) => {}
        (None, Some(_)) => diagnostics.add(number, "unknown state, kept with its run time"),
    }
    let cores = columns.cores.iter().flatten().find_map(|&column| cores(row.cell(column)?));
    let cores = cores.unwrap_or_else(|| {
        diagnostics.add(number, "no number of processors, given 1");
        1.0
    });
    let tasks = task_count(slots(cores, slot_cores)).map_err(|what| row.line.error(1, what))?;
    diagnostics.add_unmodelled("job", u64::from(tasks > 1), number, GANG);
    let resources = columns.resources.iter().flatten().filter_map(|&column| row.cell(column));
    let has_more = resources.flat_map(|cell| cell.split(',')).any(is_memory_or_gres);
    diagnostics.add_unmodelled(
        "job",
        u64::from(has_more),
        number,
        "memory or other resources than processors, which limit no task",
    );
    let map = Some(TasksDraft::Uniform { tasks, seconds: whole_micros(seconds) }.into());
    let job = JobDraft { id: id.to_owned(), map, ..JobDraft::default() };
    let text = |column: Option<usize>| column.and_then(|column| row.cell(column)).and_then(printable);
    let (user, pool) = (text(columns.user), text(columns.partition));
    let priority = columns.priority.and_then(|column| Some((column, row.cell(column)?)));
    let priority = priority
        .map(|(column, cell)| cell.parse().map_err(|_| row.wrong(column, "a priority, a whole number")));
    let priority = priority.transpose()?;
    Ok(Some((submit, FlowDraft { user, pool, priority, ..FlowDraft::new(id, vec![job]) })))
}

/// Whether a part of `cpu=128,mem=64G,gres/gpu=2`, or a cell with the memory alone, limits jobs.
fn is_memory_or_gres(part: &str) -> bool {
    match part.split_once('=') {
        Some((name, _)) => !["cpu", "node", "billing", "energy"].contains(&name),
        None => part.starts_with(|first: char| first.is_ascii_digit() && first != '0'),
    }
}

/// How long the job ran, seconds.
fn elapsed_time(row: &Row<'_>, columns: &Columns, zone: &Zone) -> Result<Option<f64>, TraceError> {
    if let Some(column) = columns.elapsed_time {
        let Some(cell) = row.cell(column) else { return Ok(None) };
        let expected = "a time such as 1-02:03:04, or seconds";
        return span(cell).map(Some).ok_or_else(|| row.wrong(column, expected));
    }
    let Some((start, end)) = columns.start_end else { return Ok(None) };
    let (Some(start), Some(end)) = (row.time(start, zone)?, row.time(end, zone)?) else { return Ok(None) };
    Ok(Some((end as f64 - start as f64) / 1000.0).filter(|&seconds| seconds >= 0.0))
}

/// Seconds of `[days-][hours:]minutes:seconds[.fraction]`, or of a number of seconds.
fn span(text: &str) -> Option<f64> {
    let (days, rest) = text
        .split_once('-')
        .map_or((0.0, text), |(days, rest)| (days.parse::<u32>().map_or(f64::NAN, f64::from), rest));
    let parts: Option<Vec<f64>> =
        rest.split(':').map(|part| part.parse().ok().filter(|number: &f64| *number >= 0.0)).collect();
    let seconds = match parts?.as_slice() {
        [hours, minutes, seconds] => hours * 3600.0 + minutes * 60.0 + seconds,
        [minutes, seconds] => minutes * 60.0 + seconds,
        [seconds] => *seconds,
        _ => return None,
    };
    Some(days * 86_400.0 + seconds).filter(|seconds| seconds.is_finite())
}

/// A number of processors, or the one in `cpu=4,mem=8G,node=1`; 0 for jobs without any.
fn cores(cell: &str) -> Option<f64> {
    let number = |text: &str| text.parse::<u64>().ok().filter(|&cores| cores > 0).map(|cores| cores as f64);
    number(cell).or_else(|| cell.split(',').find_map(|part| number(part.strip_prefix("cpu=")?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::import::{ImportedWorkload, read_workload};
    use crate::importers::options::ImportOptions;

    const ACCOUNTS: &str = "\
JobID|JobName|User|Partition|State|Submit|Start|End|Elapsed|AllocCPUS
100|align|ann|long|COMPLETED|2026-03-01T06:00:00|2026-03-01T06:00:05|2026-03-01T08:00:05|02:00:00|8
100.batch|batch|||COMPLETED|2026-03-01T06:00:05|2026-03-01T06:00:05|2026-03-01T08:00:05|02:00:00|8
101_1|a|b|ann|short|TIMEOUT|2026-03-01T06:01:00|2026-03-01T06:01:00|2026-03-02T07:01:01|1-01:00:01|1
101_[2-9%4]|many|ann|short|PENDING|2026-03-01T06:01:00|Unknown|Unknown|00:00:00|0
102|gone|bob|short|CANCELLED by 1000|2026-03-01T06:02:00|None|2026-03-01T06:03:00|00:00:00|0
103|stop|bob|short|CANCELLED by 1000|2026-03-01T06:03:00|2026-03-01T06:03:00|2026-03-01T06:03:30|00:30|0
103|stop|bob|short|COMPLETED|2026-03-01T06:04:00|2026-03-01T06:04:00|2026-03-01T06:03:30|00:40|3
104|on|bob|short|RUNNING|2026-03-01T06:05:00|2026-03-01T06:05:00|Unknown|00:40|3
105|early|cal|long|COMPLETED|1772341190|2026-03-01T06:00:00|2026-03-01T06:00:10|10.5|2
";

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
        let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
        read_workload("week.txt", text.as_bytes(), None, &options)
    }

    fn tasks(flow: &FlowDraft) -> (u32, f64) {
        match flow.jobs[0].map.as_ref().map(|map| &map.tasks) {
            Some(&TasksDraft::Uniform { tasks, seconds }) => (tasks, seconds),
            other => panic!("found {other:?}"),
        }
    }

    #[test]
    fn jobs_become_flows_and_what_is_none_is_counted() {
        let imported = read(ACCOUNTS, &[]).unwrap();
        let draft = &imported.draft;
        let found: Vec<_> = draft.flows.iter().map(|f| (f.id.as_str(), f.release, tasks(f))).collect();
        assert_eq!(
            found,
            [
                ("100", 3610.0, (8, 7200.0)),
                ("101_1", 3670.0, (1, 90_001.0)),
                ("103", 3790.0, (1, 30.0)),
                ("103~2", 3850.0, (3, 40.0)),
                ("105", 0.0, (2, 10.5)),
            ],
            "the earliest submission is second 0"
        );
        assert_eq!(
            (draft.flows[1].user.as_deref(), draft.flows[1].pool.as_deref()),
            (Some("ann"), Some("short"))
        );
        assert_eq!(draft.start.as_ref().map(ToString::to_string).unwrap(), "2026-03-01T04:59:50+00:00[UTC]");
        let said: Vec<_> = imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect();
        assert_eq!(
            said,
            [
                (GANG, 3),
                ("step of a job, left out", 1),
                ("job name with | in it", 1),
                ("TIMEOUT, kept with its run time", 1),
                ("PENDING, left out", 1),
                ("CANCELLED before it started, left out", 1),
                ("CANCELLED, kept with its run time", 1),
                ("no number of processors, given 1", 1),
                ("another record of the job above, which was requeued: a separate flow", 1),
                ("RUNNING, left out", 1),
                ("submitted before the row above, kept as it is", 1),
            ]
        );
    }

    #[test]
    fn clock_times_are_those_of_the_zone() {
        let pairs = [("time-zone", "Europe/Berlin"), ("slot-cores", "4")];
        let draft = read(&ACCOUNTS.replace("1772341190", "1772341200"), &pairs).unwrap().draft;
        assert_eq!(
            draft.start.as_ref().map(ToString::to_string).unwrap(),
            "2026-03-01T06:00:00+01:00[Europe/Berlin]"
        );
        assert_eq!(draft.flows.iter().map(|flow| tasks(flow).0).collect::<Vec<_>>(), [2, 1, 1, 1, 1]);
        let error = read(ACCOUNTS, &[("time-zone", "Mars")]).unwrap_err().to_string();
        assert_eq!(error, "week.txt:1:1: time-zone: expected the name of a time zone such as Europe/Berlin");
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "State|AllocTRES|jobidraw|submit|start|end|\nCOMPLETED|mem=4G,cpu=6|7|10|20|32|\n";
        let flow = &read(text, &[]).unwrap().draft.flows[0];
        assert_eq!((flow.id.as_str(), tasks(flow)), ("7", (6, 12.0)));
    }

    #[test]
    fn priorities_are_those_of_the_accounts() {
        let text = "JobID|Submit|ElapsedRaw|Priority|NCPUS\n7|1|12|4294901759|1\n8|1|12||1\n9|1|12|0|1\n";
        let flows = read(text, &[]).unwrap().draft.flows;
        let found: Vec<_> = flows.iter().map(|flow| flow.priority).collect();
        assert_eq!(found, [Some(4_294_901_759), None, Some(0)]);
        let wrong =
            read("JobID|Submit|ElapsedRaw|Priority|NCPUS\n7|1|12|high|1\n", &[]).unwrap_err().to_string();
        assert_eq!(wrong, "week.txt:2:8: found \"high\", expected a priority, a whole number");
    }

    #[test]
    fn bad_rows_have_a_place() {
        let error = |text: &str| read(text, &[]).unwrap_err().to_string();
        let head = "JobID|Submit|Elapsed\n";
        assert_eq!(error(&format!("{head}1|2\n")), "week.txt:2:1: found a row of 2 columns, expected 3");
        assert!(
            error(&format!("{head}1|soon|1:00\n"))
                .starts_with("week.txt:2:3: found \"soon\", expected a date")
        );
        assert!(
            error(&format!("{head}1|5|1:x\n")).starts_with("week.txt:2:5: found \"1:x\", expected a time")
        );
        assert!(error("JobID|State\n1|COMPLETED\n").starts_with("week.txt:1:1: found no column Elapsed"));
        assert!(
            error("JobID|Elapsed\n1|1:00\n").contains("found no column Submit, expected the output of sacct")
        );
    }

    /// Found by damaged inputs: a partition that no document can name was refused without a place.
    #[test]
    fn users_and_partitions_have_names_that_can_be_printed() {
        let row = "1|COMPLETED|2026-03-01T06:00:00|60|an\u{202e}n|\u{feff}";
        let text = format!("JobID|State|Submit|Elapsed|User|Partition\n{row}\n");
        let imported = read(&text, &[]).unwrap();
        let flow = &imported.draft.flows[0];
        assert_eq!((flow.user.as_deref(), flow.pool.as_deref()), (Some("an n"), None));
    }
}
