//! Schedules as JSON lines, for schedules that are larger than memory.
//!
//! The first line has policy, options and cluster. Then comes a line for every row of tasks, every
//! ApplicationMaster and every flow as they end, and for every rule that a policy chose. The last line has
//! cost, bound and metrics.
//!
//! The kind of a line follows from keys that only that kind has: `slackline`, `job`, `am`, `flow` without
//! `job`, `rule`, `sha256`.

use std::io::{self, BufRead, Read, Write};
use std::ops::ControlFlow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use slackline_model::schedule::{AmRow, FlowRow, NewRow, Origin, Schedule, TaskRows};
use slackline_model::{Instance, SlotRange};

use super::names::{Names, ScheduleFault, check_finite, check_gap_absolute, check_start, fraction, profile};
use super::wire::{Am, AmLine, FirstLine, Flow, LastLine, Task};
use super::{Choice, Head, Meta, gap_absolute, write};
use crate::documents::workload::convert::from_cluster;
use crate::reading::error::TraceError;
use crate::reading::format::{Format, ending};
use crate::reading::json;
use crate::reading::line_reader::LineReader;
use crate::reading::parse::{VERSION, check_version, parse};
use crate::reading::text::content;
use crate::reading::times::Beginning;
use crate::reading::wire::NamedValues;

/// The ending of files of lines.
const ENDING: &str = "jsonl";

/// Bytes of a file without a known ending that are searched for its first line.
const FIRST_LINE_MAX: u64 = 1 << 24;

/// Writes a schedule line by line, without keeping it.
#[derive(Debug)]
pub struct ScheduleLines<W> {
    out: W,
}

impl<W: Write> ScheduleLines<W> {
    /// Writes to `out`, which is best buffered.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Begins a schedule with its first line; `instance` need not have its flows yet. Writes the parts of
    /// `meta` that are known in advance: version, options, seed.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn begin(&mut self, instance: &Instance, origin: &Origin, meta: &Meta) -> io::Result<()> {
        let first = FirstLine {
            slackline: VERSION,
            version: meta.version.clone(),
            options: meta.options.clone(),
            start: instance.start().cloned().map(Beginning),
            seed: meta.seed,
            policy: origin.policy.clone(),
            minima: origin.minima,
            clock: origin.clock,
            slowstart: origin.slowstart,
            profile: origin.profile.as_ref().map(write::values),
            objective: instance.objective().into(),
            cluster: from_cluster(instance.cluster()),
        };
        serde_json::to_writer(&mut self.out, &first)?;
        self.out.write_all(b"\n")
    }

    /// A row of tasks of a flow that has no line yet; `instance` has that flow.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn row(&mut self, instance: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        self.line(&write::task(instance, row, places))
    }

    /// The ApplicationMaster of a job of a flow that has no line yet; `instance` has that flow.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn am(&mut self, instance: &Instance, row: &AmRow) -> io::Result<()> {
        self.line(&AmLine { am: write::am(instance, row) })
    }

    /// A flow all of whose rows were written; `instance` has it.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn flow(&mut self, instance: &Instance, row: &FlowRow) -> io::Result<()> {
        self.line(&write::flow(instance, row))
    }

    fn line(&mut self, row: &impl Serialize) -> io::Result<()> {
        write::row(&mut self.out, row)?;
        self.out.write_all(b"\n")
    }

    /// Ends a schedule with the choices of the policy and its last line: the claims of `schedule`, whose rows
    /// are ignored.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn end(mut self, schedule: &Schedule, meta: &Meta) -> io::Result<()> {
        for choice in &meta.choices {
            serde_json::to_writer(&mut self.out, choice)?;
            self.out.write_all(b"\n")?;
        }
        let last = LastLine {
            sha256: meta.sha256.clone(),
            cost: schedule.cost,
            lower_bound: schedule.lower_bound,
            gap: schedule.gap,
            gap_absolute: gap_absolute(schedule),
            status: meta.status.clone(),
            metrics: NamedValues(schedule.metrics.clone()),
            not_modelled: meta.not_modelled.clone(),
        };
        serde_json::to_writer(&mut self.out, &last)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

/// The content of a line between the first and the last one, for an instance.
#[derive(Clone, Debug)]
pub enum ScheduleLine {
    /// The first line: how the schedule came about. Rows and claims are still missing.
    First(Box<Schedule>),
    /// A row of tasks and the slots they are on.
    Row(NewRow, Vec<SlotRange>),
    Am(AmRow),
    Flow(FlowRow),
}

/// The keys that distinguish lines from each other and from other documents.
#[derive(Deserialize)]
struct Keys {
    slackline: Option<IgnoredAny>,
    flows: Option<IgnoredAny>,
    job: Option<IgnoredAny>,
    flow: Option<IgnoredAny>,
    am: Option<IgnoredAny>,
    rule: Option<IgnoredAny>,
    sha256: Option<IgnoredAny>,
}

/// Whether a schedule is one in lines: by its name, else by its first line.
pub(super) fn are_lines(name: &str, bytes: &[u8]) -> bool {
    let is_of = |ending: &str, format: &Format| format.endings().contains(&ending);
    match ending(name).as_deref() {
        Some(ENDING) => true,
        Some(ending) if Format::ALL.iter().any(|format| is_of(ending, format)) => false,
        _ => {
            let mut first = Vec::new();
            let read = content(bytes).take(FIRST_LINE_MAX).read_until(b'\n', &mut first);
            let keys = std::str::from_utf8(&first).ok().and_then(|text| json::from_str::<Keys>(text).ok());
            read.is_ok() && keys.is_some_and(|keys| keys.slackline.is_some() && keys.flows.is_none())
        }
    }
}

/// The content of the first and the last line. The lines between are not read.
pub(super) fn read_ends(name: &str, bytes: &[u8]) -> Result<Head, TraceError> {
    let mut lines = Lines::new(name, bytes);
    let first = lines.first()?;
    let mut last = String::new();
    while lines.next()? {
        std::mem::swap(&mut last, &mut lines.reader.text);
    }
    lines.reader.text = last;
    let meta = meta(first, lines.last()?);
    Ok(Head { meta, has_tasks: true, is_in_lines: true })
}

/// The whole schedule, with all its rows.
pub(super) fn read_all(
    name: &str,
    bytes: &[u8],
    instance: &Instance,
) -> Result<(Schedule, Meta), TraceError> {
    let (mut tasks, mut ams) = (TaskRows::new(), Vec::new());
    let read = read_schedule_lines(name, bytes, instance, |line| {
        match line {
            ScheduleLine::Row(row, places) => {
                tasks.push(row, &places);
            }
            ScheduleLine::Am(row) => ams.push(row),
            ScheduleLine::First(_) | ScheduleLine::Flow(_) => {}
        }
        ControlFlow::Continue(())
    })?;
    let (schedule, meta) = read.expect("invariant: it was read to its end");
    Ok((Schedule { tasks, ams, ..schedule }, meta))
}

/// Reads a schedule in lines for an instance, and passes on each line but the last; returns the schedule
/// without its rows, its flows by id; `None` if `take` stops early. Memory: one line, a row per flow, and the
/// choices.
///
/// # Errors
/// As [`super::read_schedule`]; a file that ends before its last line.
pub fn read_schedule_lines(
    name: &str,
    bytes: &[u8],
    instance: &Instance,
    mut take: impl FnMut(ScheduleLine) -> ControlFlow<()>,
) -> Result<Option<(Schedule, Meta)>, TraceError> {
    let mut lines = Lines::new(name, bytes);
    let first = lines.first()?;
    let mut schedule = beginning(&first, instance).map_err(|wrong| lines.wrong(wrong))?;
    let (mut names, mut choices) = (Names::new(instance), Vec::new());
    let mut seen = take(ScheduleLine::First(Box::new(schedule.clone())));
    while seen.is_continue() && lines.next()? {
        let read = match lines.kind()? {
            Kind::Task(task) => {
                names.task(instance, &task).map(|(row, places)| ScheduleLine::Row(row, places))
            }
            Kind::Am(row) => names.am(instance, &row).map(ScheduleLine::Am),
            Kind::Flow(flow) => names.flow_row(&flow).map(ScheduleLine::Flow),
            Kind::Choice(choice) => {
                choices.push(choice);
                continue;
            }
            Kind::Last(last) => {
                claim(&mut schedule, &last).map_err(|wrong| lines.wrong(wrong))?;
                if lines.next()? {
                    return Err(
                        lines.input("found a line after the line with `sha256`, which ends a schedule")
                    );
                }
                schedule.flows.sort_by_key(|row| row.flow);
                return Ok(Some((schedule, Meta { choices, ..meta(first, last) })));
            }
        };
        let line = read.map_err(|wrong| lines.wrong(wrong))?;
        if let ScheduleLine::Flow(row) = line {
            schedule.flows.push(row);
        }
        seen = take(line);
    }
    if seen.is_break() { Ok(None) } else { Err(lines.cut_off()) }
}

/// The schedule of the first line, without rows and claims.
pub(super) fn beginning(first: &FirstLine, instance: &Instance) -> Result<Schedule, ScheduleFault> {
    check_start(first.start.as_ref(), instance)?;
    let text = |cluster| serde_json::to_string(cluster).ok();
    if text(&first.cluster) != text(&from_cluster(instance.cluster())) {
        return Err(ScheduleFault::mismatch("cluster", "found other machines than those of the workload"));
    }
    let origin = Origin {
        policy: first.policy.clone(),
        minima: first.minima,
        clock: first.clock,
        slowstart: fraction("slowstart", first.slowstart)?,
        profile: profile(first.profile.as_ref())?,
    };
    Ok(Schedule::without_rows(origin, first.objective.into()))
}

/// Takes in the claims of the last line.
pub(super) fn claim(schedule: &mut Schedule, last: &LastLine) -> Result<(), ScheduleFault> {
    let LastLine { cost, lower_bound, gap, gap_absolute, .. } = *last;
    check_finite(&[
        ("cost", cost),
        ("lower_bound", lower_bound),
        ("gap", gap),
        ("gap_absolute", gap_absolute),
    ])?;
    (schedule.cost, schedule.lower_bound, schedule.gap) = (cost, lower_bound, gap);
    schedule.metrics.clone_from(&last.metrics.0);
    check_gap_absolute(schedule, gap_absolute)
}

pub(super) fn meta(first: FirstLine, last: LastLine) -> Meta {
    let FirstLine { version, options, seed, .. } = first;
    let LastLine { sha256, status, not_modelled, .. } = last;
    Meta { version, sha256, options, seed, status, not_modelled, ..Meta::default() }
}

pub(super) enum Kind<'a> {
    Task(Task<'a>),
    Am(Am<'a>),
    Flow(Flow<'a>),
    Choice(Choice),
    Last(LastLine),
}

/// The lines of a schedule, one at a time.
pub(super) struct Lines<'a> {
    reader: LineReader<'a>,
}

impl<'a> Lines<'a> {
    fn new(file: &str, bytes: &'a [u8]) -> Self {
        Self { reader: LineReader::new(file, content(bytes)) }
    }

    pub(super) fn of(reader: LineReader<'a>) -> Self {
        Self { reader }
    }

    /// Goes to the next line; false at the end of the file.
    pub(super) fn next(&mut self) -> Result<bool, TraceError> {
        self.reader.next()
    }

    pub(super) fn first(&mut self) -> Result<FirstLine, TraceError> {
        if !self.next()? {
            return Err(TraceError::input(
                &self.reader.file,
                None,
                "found nothing, expected a schedule in lines",
            ));
        }
        let first: FirstLine = self.parse()?;
        check_version(&self.reader.file, &self.reader.text, Format::Json, first.slackline)
            .map_err(|error| error.on_line(self.reader.number))?;
        Ok(first)
    }

    /// The line at the end of the file as the last one of a schedule.
    fn last(&self) -> Result<LastLine, TraceError> {
        match json::from_str::<Keys>(&self.reader.text) {
            Ok(keys) if keys.sha256.is_some() => self.parse(),
            _ => Err(self.cut_off()),
        }
    }

    /// Whether the line has a key of the last line; a name may have it too.
    pub(super) fn may_be_last(&self) -> bool {
        self.reader.text.contains("\"sha256\"")
    }

    /// A line after the first one.
    pub(super) fn kind(&self) -> Result<Kind<'_>, TraceError> {
        // Nearly all lines are rows.
        if let Ok(task) = json::from_str(&self.reader.text) {
            return Ok(Kind::Task(task));
        }
        let keys: Keys = self.parse()?;
        if keys.job.is_some() {
            self.parse().map(Kind::Task)
        } else if keys.am.is_some() {
            self.parse().map(|AmLine { am }| Kind::Am(am))
        } else if keys.flow.is_some() {
            self.parse().map(Kind::Flow)
        } else if keys.rule.is_some() {
            self.parse().map(Kind::Choice)
        } else if keys.sha256.is_some() {
            self.parse().map(Kind::Last)
        } else {
            Err(self.input(
                "found a line of an unknown kind, expected one of the keys `job`, `am`, `flow`, `rule`, `sha256`",
            ))
        }
    }

    fn parse<'t, T: Deserialize<'t>>(&'t self) -> Result<T, TraceError> {
        parse(&self.reader.file, &self.reader.text, Format::Json, "a line of a schedule")
            .map_err(|error| error.on_line(self.reader.number))
    }

    /// An error about a part of this line.
    pub(super) fn wrong(&self, wrong: ScheduleFault) -> TraceError {
        wrong.into_error(&self.reader.file, &self.reader.text, Format::Json).on_line(self.reader.number)
    }

    /// An error about this line.
    pub(super) fn input(&self, what: impl Into<String>) -> TraceError {
        self.reader.input(what)
    }

    /// This is the line at the end of the file, and not the last one of a schedule.
    pub(super) fn cut_off(&self) -> TraceError {
        self.input(
            "found the end of the file after this line, expected a last line with `sha256`: the file is cut off",
        )
    }
}
