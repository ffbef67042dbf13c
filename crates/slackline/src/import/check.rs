//! A schedule document and its workload.

use std::ops::ControlFlow;

use slackline_judge::{Report, Stream};
use slackline_model::{Instance, Schedule};
use slackline_trace::documents::schedule::status;
use slackline_trace::{
    Head, Importers, Meta, ScheduleLine, TraceError, read_schedule, read_schedule_head, read_schedule_lines,
    sha256,
};

use super::error::{ImportError, WrongWorkload};
use super::loaded::Loaded;
use super::source::Source;
use super::workload_options::WorkloadOptions;
use crate::report::headline;
use crate::simulate::GRAIN;

/// A schedule document with the recorded options of its workload.
#[derive(Clone, Debug)]
pub struct ScheduleDocument<'a> {
    source: &'a Source,
    is_in_lines: bool,
    /// Its metadata.
    pub meta: Meta,
    /// The options that shaped its workload.
    pub options: WorkloadOptions,
    /// The grain of phases given only as work, seconds: the recorded one, or for a schedule of tasks the
    /// default.
    pub grain: Option<f64>,
}

/// The verdict on a schedule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// It is feasible, and its cost is correct.
    Feasible {
        /// The schedule. It has no rows if the document has lines and was validated line by line.
        schedule: Box<Schedule>,
        /// The report of the validator.
        report: Box<Report>,
        /// Whether flows have other weights than 1.
        is_weighted: bool,
    },
    /// It is infeasible, or its cost is wrong.
    Not {
        /// A keyword for programs.
        kind: &'static str,
        /// A sentence for users.
        why: String,
    },
}

impl<'a> ScheduleDocument<'a> {
    /// Reads the head of a schedule. Its rows need the workload, which may have one of these formats.
    ///
    /// # Errors
    /// An invalid document; unknown recorded options.
    pub fn open(source: &'a Source, importers: &Importers) -> Result<Self, ImportError> {
        source.refuse_plans("a schedule")?;
        source.refuse_folder("a schedule")?;
        let Head { meta, has_tasks, is_in_lines } = read_schedule_head(&source.name, &source.bytes)?;
        let recorded = |problem| ImportError::Recorded { file: source.name.clone(), problem };
        let (options, grain) = WorkloadOptions::read(&meta.options, importers).map_err(recorded)?;
        let options = WorkloadOptions { seed: options.seed.or(Some(meta.seed)), ..options };
        // If no grain is recorded, tasks of phases given only as work were cut with the default grain.
        let grain = grain.or(has_tasks.then_some(GRAIN.seconds()));
        Ok(Self { source, is_in_lines, meta, options, grain })
    }

    /// Whether the document has one row per line.
    #[cfg(feature = "report")]
    pub(crate) fn is_in_lines(&self) -> bool {
        self.is_in_lines
    }

    #[cfg(feature = "report")]
    pub(crate) fn source(&self) -> &Source {
        self.source
    }

    /// Whether it records the hash of its workload.
    pub fn names_workload(&self) -> bool {
        !self.meta.sha256.is_empty()
    }

    /// Compares the workload's hash with the recorded one, if there is one.
    ///
    /// # Errors
    /// The hashes differ.
    pub fn made_for(&self, workload: &Source) -> Result<(), WrongWorkload> {
        let found = sha256(&workload.bytes);
        if !self.names_workload() || self.meta.sha256 == found {
            return Ok(());
        }
        Err(WrongWorkload {
            schedule: self.source.name.clone(),
            made_for: self.meta.sha256.clone(),
            workload: workload.name.clone(),
            found,
        })
    }

    /// Loads the workload with the recorded options. `options` and `grain` override them.
    ///
    /// # Errors
    /// As [`Source::load`], except that flows may depend on other flows, because the schedule already ran.
    pub fn load(
        &self,
        workload: &Source,
        options: WorkloadOptions,
        grain: Option<f64>,
    ) -> Result<Loaded, ImportError> {
        let mut loaded = workload.shape(&options.or(self.options.clone()))?.into_loaded()?;
        if let Some(grain) = grain.or(self.grain) {
            loaded.cut(grain)?;
        }
        Ok(loaded)
    }

    /// Whether the recorded status, if any, follows from the cost and the lower bound.
    fn status_follows(&self, schedule: &Schedule) -> bool {
        let said = self.meta.status.as_str();
        said.is_empty() || said == status(schedule.cost, schedule.lower_bound)
    }

    /// Reads the schedule for this instance.
    ///
    /// # Errors
    /// Invalid rows, or rows of other flows.
    pub fn read(&self, instance: &Instance) -> Result<Schedule, TraceError> {
        Ok(read_schedule(&self.source.name, &self.source.bytes, instance)?.0)
    }

    /// Validates a schedule line by line ([`Stream`]), if the document has lines. Returns the schedule
    /// without its rows, and the report. `None` means that the whole schedule must be validated.
    fn judge_lines(&self, instance: &Instance) -> Option<(Schedule, Report)> {
        if !self.is_in_lines {
            return None;
        }
        let mut stream: Option<Stream<'_>> = None;
        let take = |line| {
            let continues = match (line, &mut stream) {
                (ScheduleLine::First(head), begun) => {
                    *begun = Stream::new(instance, &head);
                    begun.is_some()
                }
                (ScheduleLine::Row(row, places), Some(stream)) => stream.row(row, &places).is_ok(),
                (ScheduleLine::Flow(row), Some(stream)) => stream.flow(&row).is_ok(),
                // Jobs with ApplicationMasters share slots; the stream reports this before it starts.
                (ScheduleLine::Am(_), _) | (_, None) => false,
            };
            if continues { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let read = read_schedule_lines(&self.source.name, &self.source.bytes, instance, take).ok()?;
        let (schedule, _) = read?;
        let report = stream?.finish(&schedule).ok()?;
        Some((schedule, report))
    }
}

/// Validates a schedule against its workload, from the two documents alone. `options` and `grain` override
/// the recorded ones.
///
/// # Errors
/// A document that cannot be read; a schedule of another workload.
pub fn check(
    document: &ScheduleDocument<'_>,
    workload: &Source,
    options: WorkloadOptions,
    grain: Option<f64>,
) -> Result<Verdict, ImportError> {
    document.made_for(workload)?;
    let loaded = document.load(workload, options, grain)?;
    let is_weighted = headline::is_weighted(&loaded.instance);
    let feasible = |schedule, report| Verdict::Feasible {
        schedule: Box::new(schedule),
        report: Box::new(report),
        is_weighted,
    };
    if let Some((schedule, report)) = document.judge_lines(&loaded.instance) {
        return Ok(feasible(schedule, report));
    }
    let schedule = match document.read(&loaded.instance) {
        Ok(schedule) => schedule,
        Err(error @ TraceError::Mismatch(_)) => {
            return Ok(Verdict::Not { kind: "mismatch", why: error.to_string() });
        }
        Err(error) => return Err(error.into()),
    };
    Ok(match slackline_judge::check(&loaded.instance, &schedule) {
        Err(violation) => Verdict::Not { kind: violation.kind(), why: violation.to_string() },
        Ok(_) if !document.status_follows(&schedule) => Verdict::Not {
            kind: "status",
            why: format!(
                "found status {:?}, but cost and lower bound say {:?}",
                document.meta.status,
                status(schedule.cost, schedule.lower_bound)
            ),
        },
        Ok(report) => feasible(schedule, report),
    })
}
