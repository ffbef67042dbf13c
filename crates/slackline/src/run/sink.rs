//! Where the progress of a run is reported.

use slackline_executor::engine::Happening;
use slackline_executor::run::{JobVerdict, LostOutput, Recovery};
use slackline_executor::store::machine_slots::MachineSlots;
use slackline_model::cluster::Slots;
use slackline_model::draft::{JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::{PhaseKind, Start, Time, When};
use slackline_task::base::task_id::TaskId;
use slackline_trace::Diagnostic;

use super::{Forecast, Session, Stop, session};

/// Is told what happens in a run: for a screen, a log, a test. What it does not care for it leaves out.
pub trait Sink {
    /// Something that should be known of how the run begins.
    fn note(&mut self, note: &Note<'_>) {
        let _ = note;
    }

    /// Tasks are going to start; `stop` stops the run from another thread.
    fn begin(&mut self, overview: &Overview, stop: Stop) {
        let _ = (overview, stop);
    }

    /// Something happened at that time of the run.
    fn happened(&mut self, now: Time, what: Happening<'_>, forecast: &Forecast) {
        let _ = (now, what, forecast);
    }

    /// The run is over, or was stopped. Whoever drives a run says so after [`Run::go`](super::Run::go).
    fn end(&mut self, ending: &Ending) {
        let _ = ending;
    }
}

/// How a run, or a session of it, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// All flows are done.
    Done,
    /// So many flows have failed, the others are done.
    Failed(usize),
    /// It was stopped, and may be resumed.
    Stopped,
    /// It could not continue, for this reason; it may be resumed.
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

    /// Why it could not continue, or what failed.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Done | Self::Stopped => None,
            Self::Failed(1) => Some("1 flow failed".to_owned()),
            Self::Failed(flows) => Some(format!("{flows} flows failed")),
            Self::Error(reason) => Some(reason.clone()),
        }
    }

    /// A sentence for people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Done => "all flows are done".to_owned(),
            Self::Stopped => "the run was stopped; the same command resumes it".to_owned(),
            Self::Failed(_) | Self::Error(_) => self.message().unwrap_or_default(),
        }
    }
}

impl<S: Sink + ?Sized> Sink for &mut S {
    fn note(&mut self, note: &Note<'_>) {
        (**self).note(note);
    }

    fn begin(&mut self, overview: &Overview, stop: Stop) {
        (**self).begin(overview, stop);
    }

    fn happened(&mut self, now: Time, what: Happening<'_>, forecast: &Forecast) {
        (**self).happened(now, what, forecast);
    }

    fn end(&mut self, ending: &Ending) {
        (**self).end(ending);
    }
}

/// A sink that leaves everything out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Sink for Silent {}

/// What should be known of how a run begins.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Note<'a> {
    /// What the importer of the flow file has to say.
    Diagnostic(&'a Diagnostic),
    /// What the user should know of the flow file's inputs, such as a file that a job reads twice.
    Warning(&'a str),
    /// The environment names a time zone that there is not, so that clock times without a zone are taken for UTC.
    UnknownZone(&'a str),
    /// The flow file has a cluster, which is left out.
    ClusterLeftOut,
    /// A deadline of the request was before the start of the run: its flow is late already, and runs.
    LateAlready {
        /// The flow.
        flow: &'a str,
        /// Its deadline.
        when: &'a When,
    },
    /// Everything is done again that earlier runs had done.
    StartsOver,
    /// An earlier run is resumed.
    Resumed(Recovery),
    /// Output of an earlier session is gone or was changed, so that its task counts as done no more.
    Lost(&'a LostOutput),
    /// What becomes of a job of the flow file.
    Job(&'a JobVerdict),
    /// A flow fails from the start.
    Unrunnable {
        /// The flow.
        flow: &'a str,
        /// The job that cannot be run.
        job: &'a str,
        /// What is in its way.
        problem: &'a str,
    },
    /// What holds the memory of commands that have a limit.
    Memory(&'a str),
    /// What the engine waits for before anything runs.
    Waiting(&'a str),
    /// Nothing is left to do.
    NothingLeft,
    /// The history could not be written at the end of the run.
    HistoryUnwritten(&'a str),
}

/// A run before its tasks start.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// When second 0 of the run is.
    pub start: Option<Start>,
    /// Its flows; the jobs of [`TaskId`] are counted through them.
    pub flows: Vec<FlowOverview>,
    /// Slots of all machines.
    pub slots: u32,
    /// The machines, by their slots.
    pub places: MachineSlots,
    /// How often a task may fail before its flow has failed.
    pub attempts_max: u16,
}

/// A flow before its tasks start.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOverview {
    /// Its name.
    pub id: String,
    /// Seconds after the start of the run.
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
    /// How many there are.
    pub total: usize,
    /// How many are done.
    pub done: usize,
}

impl Overview {
    /// That of a session. O(tasks · log tasks).
    pub(super) fn of(session: &dyn Session, attempts_max: u16) -> Self {
        let (done, mut index) = (session::done(session), 0);
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
        for flow in &session.workload().flows {
            let jobs = flow.jobs.iter().map(&mut job).collect();
            flows.push(FlowOverview { id: flow.id.clone(), deadline: flow.deadline, jobs });
        }
        let start = session.workload().start.clone();
        let (slots, places) =
            (slots(&session.workload().machines), MachineSlots::of(&session.workload().machines));
        Self { start, flows, slots, places, attempts_max }
    }
}

/// The slots of machines, of all kinds.
fn slots(machines: &[MachineDraft]) -> u32 {
    let slots = machines.iter().map(|machine| match machine.slots {
        Slots::Universal(slots) => machine.count * slots,
        Slots::Typed { map, reduce } => machine.count * (map + reduce),
    });
    slots.sum()
}

/// The tasks of a phase that lists them.
pub(super) fn count(phase: &PhaseDraft) -> usize {
    match &phase.tasks {
        TasksDraft::Each(seconds) => seconds.len(),
        TasksDraft::Uniform { tasks, .. } => *tasks as usize,
        TasksDraft::Splits(splits) => splits.iter().map(|split| split.count as usize).sum(),
        TasksDraft::Work { tasks, .. } => tasks.unwrap_or(0) as usize,
    }
}
