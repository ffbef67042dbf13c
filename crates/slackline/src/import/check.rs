//! A schedule document and the workload that it was made for.

use std::ops::ControlFlow;

use slackline_judge::{Report, Stream};
use slackline_model::{Instance, Schedule};
use slackline_trace::documents::schedule::status;
use slackline_trace::{
    Head, Importers, Meta, ScheduleLine, TraceError, read_schedule, read_schedule_head, read_schedule_lines,
    sha256,
};

use super::error::ImportError;
use super::loaded::Loaded;
use super::source::Source;
use super::workload_options::WorkloadOptions;
use crate::simulate::GRAIN;

/// A schedule document with what it records of its workload.
#[derive(Clone, Debug)]
pub struct ScheduleDocument<'a> {
    source: &'a Source,
    is_in_lines: bool,
    /// What it says of itself beside its rows.
    pub meta: Meta,
    /// How its workload was shaped.
    pub options: WorkloadOptions,
    /// The grain of phases given only as work, seconds: the one that is recorded, or the usual one of a
    /// schedule of tasks.
    pub grain: Option<f64>,
}

/// A workload that a schedule was not made for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{schedule}: made for another workload (SHA-256 {made_for}) than {workload} (SHA-256 {found})")]
pub struct WrongWorkload {
    /// The schedule.
    pub schedule: String,
    /// The hash it records.
    pub made_for: String,
    /// The workload.
    pub workload: String,
    /// Its hash.
    pub found: String,
}

/// What was decided of a schedule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Verdict {
    /// It is feasible and costs what it says.
    Feasible {
        /// The schedule as it was read; without its rows if it came in lines and was judged as they came.
        schedule: Box<Schedule>,
        /// What the judge found.
        report: Box<Report>,
    },
    /// It is not.
    Not {
        /// A word for programs.
        kind: &'static str,
        /// A sentence for people.
        why: String,
    },
}

impl<'a> ScheduleDocument<'a> {
    /// Reads what a schedule says of itself; its rows need the workload, which may come in one of these
    /// formats.
    ///
    /// # Errors
    /// A document that is none; options that nothing records.
    pub fn open(source: &'a Source, importers: &Importers) -> Result<Self, ImportError> {
        source.refuse_plans("a schedule")?;
        source.refuse_folder("a schedule")?;
        let Head { meta, has_tasks, is_in_lines } = read_schedule_head(&source.name, &source.bytes)?;
        let recorded = |problem| ImportError::Recorded { file: source.name.clone(), problem };
        let (options, grain) = WorkloadOptions::read(&meta.options, importers).map_err(recorded)?;
        let options = WorkloadOptions { seed: options.seed.or(Some(meta.seed)), ..options };
        // Tasks of a phase that is given only as work are cut with the usual grain where none is recorded.
        let grain = grain.or(has_tasks.then_some(GRAIN.seconds()));
        Ok(Self { source, is_in_lines, meta, options, grain })
    }

    /// Whether it comes in lines.
    #[cfg(feature = "report")]
    pub(crate) fn is_in_lines(&self) -> bool {
        self.is_in_lines
    }

    #[cfg(feature = "report")]
    pub(crate) fn source(&self) -> &Source {
        self.source
    }

    /// Whether it says which workload it was made for.
    pub fn names_workload(&self) -> bool {
        !self.meta.sha256.is_empty()
    }

    /// Compares the workload's hash with the one that is recorded, if one is.
    ///
    /// # Errors
    /// If they differ.
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

    /// The workload, shaped as it was then; what `options` and `grain` give goes before what is recorded.
    ///
    /// # Errors
    /// As [`Source::load`]; but flows that wait for others are legal here, where what happened is known.
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

    /// Whether what it says of its distance to the optimum, if anything, follows from its cost and lower
    /// bound.
    fn status_follows(&self, schedule: &Schedule) -> bool {
        let said = self.meta.status.as_str();
        said.is_empty() || said == status(schedule.cost, schedule.lower_bound)
    }

    /// The schedule, of this instance.
    ///
    /// # Errors
    /// Rows that are none, or of other flows.
    pub fn read(&self, instance: &Instance) -> Result<Schedule, TraceError> {
        Ok(read_schedule(&self.source.name, &self.source.bytes, instance)?.0)
    }

    /// The schedule without its rows and what it amounts to, if it comes in lines and is feasible as far as
    /// that can be told from line to line ([`Stream`]). `None` says nothing: then the whole has to be looked
    /// at.
    fn judge_lines(&self, instance: &Instance) -> Option<(Schedule, Report)> {
        if !self.is_in_lines {
            return None;
        }
        let mut stream: Option<Stream<'_>> = None;
        let take = |line| {
            let goes_on = match (line, &mut stream) {
                (ScheduleLine::First(head), begun) => {
                    *begun = Stream::new(instance, &head);
                    begun.is_some()
                }
                (ScheduleLine::Row(row, places), Some(stream)) => stream.row(row, &places).is_ok(),
                (ScheduleLine::Flow(row), Some(stream)) => stream.flow(&row).is_ok(),
                // Masters of different jobs share slots, which the stream says before it begins.
                (ScheduleLine::Master(_), _) | (_, None) => false,
            };
            if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let read = read_schedule_lines(&self.source.name, &self.source.bytes, instance, take).ok()?;
        let (schedule, _) = read?;
        let report = stream?.finish(&schedule).ok()?;
        Some((schedule, report))
    }
}

/// Decides whether a schedule is feasible for its workload and costs what it says, from the two documents
/// alone. What `options` and `grain` give goes before what the schedule records.
///
/// # Errors
/// Whatever keeps either document from being read; a schedule of another workload.
pub fn check(
    document: &ScheduleDocument<'_>,
    workload: &Source,
    options: WorkloadOptions,
    grain: Option<f64>,
) -> Result<Verdict, ImportError> {
    document.made_for(workload)?;
    let loaded = document.load(workload, options, grain)?;
    if let Some((schedule, report)) = document.judge_lines(&loaded.instance) {
        return Ok(Verdict::Feasible { schedule: Box::new(schedule), report: Box::new(report) });
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
        Ok(report) => Verdict::Feasible { schedule: Box::new(schedule), report: Box::new(report) },
    })
}
