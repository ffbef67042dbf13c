//! Events and status of `attach`, for the live view and the event stream.

use slackline_model::Time;

use crate::rest::id::AppId;

pub trait Watcher {
    /// Called at an event; `now` is since the start.
    fn happened(&mut self, now: Time, what: &AttachEvent);

    /// Called at the status interval.
    fn status(&mut self, status: &Status);
}

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttachEvent {
    /// The ResourceManager does not answer, for this reason; `None`: it answers again.
    Troubled(Option<String>),
    /// A warning for the user.
    Warned(String),
    /// An application appeared.
    Seen(AppId),
    /// An invalid tag.
    WrongTag(AppId, String),
    /// The AM may start.
    Released(AppId),
    /// Its tasks are known; the policy schedules it.
    Arrived {
        app: AppId,
        flow: String,
        job: String,
        /// Remaining maps and reduces.
        tasks: [u32; 2],
    },
    /// The engine ignores it from now on, for this reason.
    LeftAlone(AppId, String),
    /// It succeeded.
    Done(AppId),
    /// It failed or was killed, with its diagnostics.
    Failed(AppId, String),
}

/// The progress of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The engine holds its AM back.
    Held,
    /// Its AM may start, or has started and has not reported its tasks.
    Starting,
    Runs,
}

impl Stage {
    /// Its name in tables and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Starting => "starting",
            Self::Runs => "runs",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    pub now: Time,
    /// Slots of machines that are up.
    pub slots: u32,
    /// Slots held by AMs and by containers that the engine does not drive.
    pub taken: u32,
    /// In the order in which they appeared.
    pub applications: Vec<Application>,
}

/// An active application.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    pub id: AppId,
    /// Empty before its name is known.
    pub flow: String,
    pub job: String,
    pub stage: Stage,
    /// Maps, then reduces, as far as they are known.
    pub phases: [Option<Phase>; 2],
    /// The priority; in a dry run the one it would get.
    pub priority: u64,
    /// Seconds since the start.
    pub deadline: Option<f64>,
    pub weight: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    pub total: u32,
    pub done: u32,
    pub running: u32,
    /// The most that may run; `None`: no limit.
    pub cap: Option<u32>,
    /// Estimated seconds of a task.
    pub seconds: f64,
}
