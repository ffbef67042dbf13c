//! Imports the logs that consist of JSON objects (Rumen, SLS), as a whole or as a stream. `jhist.rs` reads
//! job histories.
//!
//! A stream releases a job when it has read `job-skew` further jobs, the earliest submission first. Such logs
//! list jobs in the order in which they ended, or in which their histories were found. So a few jobs follow
//! jobs that were submitted later. A stream lacks the results of the whole log: machines, workflows and the
//! recorded execution.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::Draft;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{Param, Settings, Values};

use super::workflow::Jobs;
use super::{ImportedJob, Log, Millis, Topology, flow, start};
use crate::importers::importer::{Input, Output};
use crate::importers::line_import::{FlowAtLine, Line, LineContent, LineImport};
use crate::importers::objects::{Object, Objects, Pieces};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;

/// Limit on the number of jobs that may precede a job with an earlier submission.
pub(in crate::importers) const JOB_SKEW: Param = Param::new(
    "job-skew",
    "200",
    Values::Count(0, 1_000_000),
    "in a stream: the number of jobs that may come before one that was submitted earlier",
);

/// Most flows that leave at once at the end of the log.
const LEAVE: usize = 64;

/// The meaning of the objects in a log of one format.
pub(in crate::importers) trait LoggedObjects {
    /// The error of a log without jobs.
    const NOTHING: &'static str;

    /// Takes an object. Returns whether it is a job.
    fn take(&mut self, object: &Object<'_>, log: &mut Log) -> Result<bool, TraceError>;

    /// The machines that are known before the jobs.
    fn machines(&mut self, diagnostics: &mut Diagnostics) -> Result<Vec<MachineDraft>, TraceError>;

    /// The log that its jobs go into.
    fn log(settings: &Settings) -> Log {
        Log::new(settings)
    }
}

/// Reads a whole log.
///
/// # Errors
/// The first object that is not of the format, with its line; a log without jobs.
pub(in crate::importers) fn import_objects<O: LoggedObjects>(
    input: &Input<'_>,
    settings: &Settings,
    mut objects: O,
    topology: Option<&Topology>,
) -> Result<Output, TraceError> {
    let mut log = O::log(settings);
    let mut is_empty = true;
    for object in Objects::new(input.file, input.text, 1) {
        is_empty &= !objects.take(&object?, &mut log)?;
    }
    if is_empty {
        return Err(input.error(None, O::NOTHING));
    }
    Ok(log.finish(input.file, topology))
}

/// A log that is read as a stream.
pub(in crate::importers) struct LoggedLines<O> {
    objects: Result<O, TraceError>,
    log: Log,
    pieces: Pieces,
    skew: usize,
    is_begun: bool,
    taken: u64,
    /// Jobs that have not left the buffer, the earliest submission first.
    waiting: BinaryHeap<Reverse<BufferedJob>>,
    /// The submission of the first job that left the buffer: second 0 of the workload.
    zero: Option<Millis>,
    /// The submission of the job that left the buffer last.
    latest: Millis,
}

/// A job in the buffer.
struct BufferedJob {
    /// The submission, and the number of the job in the log.
    rank: (Millis, u64),
    job: ImportedJob,
}

slackline_model::order_by_key!(BufferedJob, |job| job.rank);

impl<O: LoggedObjects> LoggedLines<O> {
    /// A log of these objects; an error in a file beside it is reported with its first line.
    pub(in crate::importers) fn new(settings: &Settings, objects: Result<O, TraceError>) -> Self {
        Self {
            objects,
            log: O::log(settings),
            pieces: Pieces::default(),
            skew: usize::try_from(settings.count(JOB_SKEW.name)).unwrap_or(usize::MAX),
            is_begun: false,
            taken: 0,
            waiting: BinaryHeap::new(),
            zero: None,
            latest: Millis::MIN,
        }
    }

    /// Takes the jobs that a line ends.
    fn read(&mut self, line: &Line<'_>) -> Result<(), TraceError> {
        let Self { objects, log, pieces, is_begun, taken, waiting, latest, skew, .. } = self;
        let objects = objects.as_mut().map_err(|error| error.clone())?;
        pieces.line(line, &mut |object| {
            *is_begun |= objects.take(object, log)?;
            for mut job in log.jobs.drain(..) {
                if job.submitted < *latest {
                    let late = super::seconds(job.submitted, *latest);
                    let what = format!(
                        "found job {:?} submitted {late} s before a job more than {skew} jobs above it, expected at most {skew} jobs between them (raise job-skew)",
                        job.id
                    );
                    return Err(object.error(what));
                }
                job.attempts.clear();
                *taken += 1;
                waiting.push(Reverse(BufferedJob { rank: (job.submitted, *taken), job }));
            }
            Ok(())
        })
    }

    /// Everything but the flows, when the first of them is about to leave.
    fn head(&mut self) -> Result<LineContent, TraceError> {
        let first = self.waiting.peek().map_or(0, |Reverse(first)| first.rank.0);
        let zero = if self.log.is_relative { 0 } else { first };
        self.zero = Some(zero);
        let objects = self.objects.as_mut().map_err(|error| error.clone())?;
        let machines = objects.machines(&mut self.log.diagnostics)?;
        Ok(LineContent::Head(Box::new(Draft { start: start(zero), machines, ..Draft::default() })))
    }

    /// Takes the earliest jobs out of the buffer until `left` are left, at most `LEAVE` at once.
    fn release_jobs(&mut self, left: usize) -> Vec<FlowAtLine> {
        let mut flows = Vec::new();
        while self.waiting.len() > left && flows.len() < LEAVE {
            let Some(Reverse(BufferedJob { rank, mut job })) = self.waiting.pop() else { break };
            self.latest = rank.0;
            let workflow = std::mem::take(&mut job.workflow);
            if workflow.is_known() {
                let what = "part of a workflow, but a separate flow in a stream, without its dependencies";
                self.log.diagnostics.add_of("job", 1, job.line, what);
            }
            let line = job.line;
            flows.push((flow(Jobs { id: job.id.clone(), of: vec![job] }, self.zero.unwrap_or(0)), line));
        }
        flows
    }

    fn step(&mut self, left: usize) -> Result<LineContent, TraceError> {
        if self.waiting.len() <= left {
            return Ok(LineContent::Nothing);
        }
        if self.zero.is_none() {
            return self.head();
        }
        Ok(LineContent::flows(self.release_jobs(left)))
    }
}

impl<O: LoggedObjects> LineImport for LoggedLines<O> {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        std::mem::swap(&mut self.log.diagnostics, diagnostics);
        let content = self.read(line).and_then(|()| self.step(self.skew));
        std::mem::swap(&mut self.log.diagnostics, diagnostics);
        content
    }

    fn end(&mut self, file: &str, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        self.pieces.end(file)?;
        if !self.is_begun {
            return Err(TraceError::input(file, None, O::NOTHING));
        }
        std::mem::swap(&mut self.log.diagnostics, diagnostics);
        let content = self.step(0);
        std::mem::swap(&mut self.log.diagnostics, diagnostics);
        content
    }
}
