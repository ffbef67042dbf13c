//! Reads a schedule in lines as a stream, for an instance whose flows come and go.

use std::io::Read;

use slackline_model::schedule::{FlowRow, NewRow, Schedule};
use slackline_model::{Instance, SlotRange};

use super::lines::{Kind, Lines, beginning, claim, meta};
use super::names::Names;
use super::wire::{FirstLine, Flow, Task};
use super::{Choice, Meta};
use crate::reading::error::TraceError;
use crate::reading::hashed_lines::HashedLines;

/// Reads a schedule in lines, one at a time.
pub struct ScheduleStream {
    lines: Lines<'static>,
    first: FirstLine,
}

/// A line after the first. Names become ids when the flow is there.
pub enum StreamedLine<'s> {
    Row(RowLine<'s>),
    Flow(FlowLine<'s>),
    /// A choice of a policy that chooses between rules.
    Choice(Choice),
    /// The last line: the schedule with its claims, without rows and flows, and its metadata without the
    /// choices.
    Last(Box<Schedule>, Meta),
}

pub struct RowLine<'s> {
    lines: &'s Lines<'static>,
    task: Task<'s>,
}

pub struct FlowLine<'s> {
    lines: &'s Lines<'static>,
    flow: Flow<'s>,
}

impl ScheduleStream {
    /// Begins to read a schedule, compressed (gzip, zstd) or not; `name` is the file in messages.
    ///
    /// # Errors
    /// A file that cannot be read; another first line than that of a schedule.
    pub fn open(name: &str, source: impl Read + Send + 'static) -> Result<Self, TraceError> {
        let mut lines = Lines::of(HashedLines::open(name, source)?.lines);
        let first = lines.first()?;
        Ok(Self { lines, first })
    }

    /// The origin of the schedule in its first line: all but the hash and the status.
    pub fn meta(&self) -> Meta {
        let FirstLine { ref version, ref options, seed, .. } = self.first;
        Meta { version: version.clone(), options: options.clone(), seed, ..Meta::default() }
    }

    /// How the schedule came about, for a cluster; rows and claims are still missing.
    ///
    /// # Errors
    /// Another cluster or start.
    pub fn head(&self, instance: &Instance) -> Result<Schedule, TraceError> {
        beginning(&self.first, instance).map_err(|wrong| self.lines.wrong(wrong))
    }

    /// The next line; `head` is the schedule from [`Self::head`].
    ///
    /// # Errors
    /// An invalid line; a file that ends before its last line, or continues after it.
    pub fn next_line(&mut self, head: &Schedule) -> Result<StreamedLine<'_>, TraceError> {
        if !self.lines.next()? {
            return Err(self.lines.cut_off());
        }
        // Nearly all lines are rows, which are not to be read twice.
        if self.lines.may_be_last()
            && let Kind::Last(last) = self.lines.kind()?
        {
            let mut schedule = head.clone();
            claim(&mut schedule, &last).map_err(|wrong| self.lines.wrong(wrong))?;
            if self.lines.next()? {
                return Err(self
                    .lines
                    .input("found a line after the line with `sha256`, which ends a schedule"));
            }
            return Ok(StreamedLine::Last(Box::new(schedule), meta(self.first.clone(), last)));
        }
        let lines = &self.lines;
        match lines.kind()? {
            Kind::Task(task) => Ok(StreamedLine::Row(RowLine { lines, task })),
            Kind::Flow(flow) => Ok(StreamedLine::Flow(FlowLine { lines, flow })),
            Kind::Choice(choice) => Ok(StreamedLine::Choice(choice)),
            Kind::Am(_) => Err(lines
                .input("found the AM of a job, which a stream cannot have: read the schedule as a whole")),
            Kind::Last(_) => Err(lines.cut_off()),
        }
    }
}

impl RowLine<'_> {
    pub fn flow(&self) -> &str {
        &self.task.flow.0
    }

    /// When it starts, seconds.
    pub fn start(&self) -> f64 {
        self.task.start
    }

    /// The row and its slots.
    ///
    /// # Errors
    /// Unknown names and slots.
    pub fn read(
        &self,
        names: &mut Names,
        instance: &Instance,
    ) -> Result<(NewRow, Vec<SlotRange>), TraceError> {
        names.task(instance, &self.task).map_err(|wrong| self.lines.wrong(wrong))
    }
}

impl FlowLine<'_> {
    pub fn flow(&self) -> &str {
        &self.flow.flow.0
    }

    /// Its release time according to the schedule, in seconds.
    pub fn release(&self) -> f64 {
        self.flow.release
    }

    /// The row of the flow.
    ///
    /// # Errors
    /// An unknown name; invalid numbers.
    pub fn read(&self, names: &Names) -> Result<FlowRow, TraceError> {
        names.flow_row(&self.flow).map_err(|wrong| self.lines.wrong(wrong))
    }
}
