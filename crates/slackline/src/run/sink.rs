//! The interface through which a run reports its progress.

use std::sync::{Arc, Mutex, PoisonError};

use slackline_executor::engine::event::RunEvent;
use slackline_executor::run::{JobVerdict, LostOutput, Recovery};
use slackline_executor::store::machine_slots::MachineSlots;
use slackline_model::draft::{JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::{PhaseKind, Start, Time, TimeSpec};
use slackline_task::base::task_id::TaskId;
use slackline_trace::Diagnostic;

use super::{Forecast, RunRecord, Stop};

/// Receives the events of a run, for a screen, a log or a test. Each method does nothing by default.
pub trait Sink {
    /// A note about how the run starts.
    fn note(&mut self, note: &Note<'_>) {
        let _ = note;
    }

    /// Tasks are about to start. `stop` stops the run from another thread.
    fn begin(&mut self, overview: &Overview, stop: Stop) {
        let _ = (overview, stop);
    }

    /// An event at time `now` of the run.
    fn happened(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) {
        let _ = (now, event, forecast);
    }

    /// The run has ended or was stopped. The caller of [`Run::go`](super::Run::go) calls this afterwards.
    fn end(&mut self, ending: &Ending) {
        let _ = ending;
    }
}

/// How a run, or a session of it, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// All flows are finished.
    Done,
    /// This number of flows failed; the others are finished.
    Failed(usize),
    /// It was stopped, and can be resumed.
    Stopped,
    /// It could not continue, for this reason. It can be resumed.
    Error(String),
}

impl Ending {
    /// Its name in documents.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed(_) => "failed",
            Self::Stopped => "stopped",
            Self::Error(_) => "error",
        }
    }

    /// The reason why it could not continue, or the number of failed flows.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Done | Self::Stopped => None,
            Self::Failed(1) => Some("1 flow failed".to_owned()),
            Self::Failed(flows) => Some(format!("{flows} flows failed")),
            Self::Error(reason) => Some(reason.clone()),
        }
    }

    /// A sentence for users.
    pub fn sentence(&self) -> String {
        match self {
            Self::Done => "all flows finished".to_owned(),
            Self::Stopped => "the run was stopped; the same command resumes it".to_owned(),
            Self::Failed(_) | Self::Error(_) => self.message().unwrap_or_default(),
        }
    }
}

/// Forwards each call to all of them, in order.
impl Sink for Vec<&mut dyn Sink> {
    fn note(&mut self, note: &Note<'_>) {
        for sink in self {
            sink.note(note);
        }
    }

    fn begin(&mut self, overview: &Overview, stop: Stop) {
        let stop = Arc::new(Mutex::new(stop));
        for sink in self {
            let stop = stop.clone();
            let all = move || stop.lock().unwrap_or_else(PoisonError::into_inner)();
            sink.begin(overview, Box::new(all));
        }
    }

    fn happened(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) {
        for sink in self {
            sink.happened(now, event, forecast);
        }
    }

    fn end(&mut self, ending: &Ending) {
        for sink in self {
            sink.end(ending);
        }
    }
}

/// A sink that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Sink for Silent {}

/// A note about how a run starts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note<'a> {
    /// A diagnostic of the importer of the flow file.
    Diagnostic(&'a Diagnostic),
    /// A warning about the inputs of the flow file, such as a file that a job reads twice.
    Warning(&'a str),
    /// The environment names an unknown time zone. Clock times without a zone are read as UTC.
    UnknownZone(&'a str),
    /// The cluster of the flow file is ignored.
    ClusterLeftOut,
    /// A deadline of the request is before the start of the run. The flow is late already, and runs.
    LateAlready {
        /// The flow.
        flow: &'a str,
        /// Its deadline.
        when: &'a TimeSpec,
    },
    /// All jobs run, including those that earlier runs finished.
    StartsOver,
    /// An earlier run is resumed.
    Resumed(Recovery),
    /// An output of an earlier session is lost or was changed, so its task no longer counts as finished.
    Lost(&'a LostOutput),
    /// The verdict on a job of the flow file.
    Job(&'a JobVerdict),
    /// A flow fails from the start, because one of its jobs cannot run.
    Unrunnable {
        /// The flow.
        flow: &'a str,
        /// The job that cannot be run.
        job: &'a str,
        /// The obstacle.
        problem: &'a str,
    },
    /// The mechanism that enforces the memory limits of commands.
    Memory(&'a str),
    /// The condition that the engine waits for before the first task starts.
    Waiting(&'a str),
    /// Nothing is left to do.
    NothingLeft,
    /// The history could not be written at the end of the run.
    HistoryUnwritten(&'a str),
}

/// A run before its tasks start.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// The date of second 0 of the run.
    pub start: Option<Start>,
    /// Its flows. [`TaskId`] numbers the jobs through all flows in this order.
    pub flows: Vec<FlowOverview>,
    /// The number of slots of all machines.
    pub slots: u32,
    /// Maps slots to machines.
    pub places: MachineSlots,
    /// The number of failures of a task after which its flow fails.
    pub attempts_max: u16,
}

/// A flow before its tasks start.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOverview {
    /// Its name.
    pub id: String,
    /// Its deadline, seconds after the start of the run.
    pub deadline: Option<f64>,
    /// Its jobs.
    pub jobs: Vec<JobOverview>,
}

/// A job before its tasks start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOverview {
    /// Its name.
    pub id: String,
    /// Its maps.
    pub maps: Progress,
    /// Its reduces.
    pub reduces: Progress,
}

/// Tasks of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of tasks.
    pub total: usize,
    /// The number of finished tasks.
    pub done: usize,
}

impl std::iter::Sum for Progress {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self { total: sum.total + one.total, done: sum.done + one.done })
    }
}

impl Overview {
    /// The overview of a session. O(tasks · log tasks).
    pub(super) fn of(record: &RunRecord<'_>, attempts_max: u16) -> Self {
        let (done, mut index) = (record.done(), 0);
        let mut job = |draft: &JobDraft| {
            let progress = |phase: PhaseKind, draft: Option<&PhaseDraft>| {
                let total = draft.map_or(0, count);
                let ids = (0..total as u32).map(|task| TaskId { job: index, phase, task });
                Progress { total, done: ids.filter(|id| done.contains(id)).count() }
            };
            let maps = progress(PhaseKind::Map, draft.map.as_ref());
            let reduces = progress(PhaseKind::Reduce, draft.reduce.as_ref());
            index += 1;
            JobOverview { id: draft.id.clone(), maps, reduces }
        };
        let mut flows = Vec::new();
        for flow in &record.workload.flows {
            let jobs = flow.jobs.iter().map(&mut job).collect();
            flows.push(FlowOverview { id: flow.id.clone(), deadline: flow.deadline, jobs });
        }
        let start = record.workload.start.clone();
        let (slots, places) = (slots(&record.workload.machines), MachineSlots::of(&record.workload.machines));
        Self { start, flows, slots, places, attempts_max }
    }
}

/// The number of slots of machines, of all kinds.
fn slots(machines: &[MachineDraft]) -> u32 {
    machines.iter().map(|machine| machine.count * machine.slots.total()).sum()
}

/// The number of tasks of a phase.
pub(super) fn count(phase: &PhaseDraft) -> usize {
    match &phase.tasks {
        TasksDraft::Each(seconds) => seconds.len(),
        TasksDraft::Uniform { tasks, .. } => *tasks as usize,
        TasksDraft::Splits(splits) => splits.iter().map(|split| split.count as usize).sum(),
        TasksDraft::Work { tasks, .. } => tasks.unwrap_or(0) as usize,
    }
}
