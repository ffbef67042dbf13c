//! What somebody is told who watches.

use slackline_model::Time;

use crate::rest::id::AppId;

pub trait Watcher {
    /// Something happened at a time since the start.
    fn happened(&mut self, now: Time, what: &AttachEvent);

    /// How things are; told again and again.
    fn status(&mut self, status: &Status);
}

#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AttachEvent {
    /// The ResourceManager does not answer, for this reason; or all is well again.
    Troubled(Option<String>),
    /// Something that does no harm to what runs, and that somebody should know.
    Warned(String),
    /// An application was seen for the first time.
    Seen(AppId),
    /// One of its tags is wrong.
    WrongTag(AppId, String),
    /// It may have its ApplicationMaster.
    Released(AppId),
    /// Its tasks are known, and it is scheduled from now on.
    Arrived {
        app: AppId,
        flow: String,
        job: String,
        /// Maps and reduces that are left.
        tasks: [u32; 2],
    },
    /// It is left alone from now on, for this reason.
    LeftAlone(AppId, String),
    /// It has ended well.
    Done(AppId),
    /// It failed or was killed, and said this of it.
    Failed(AppId, String),
}

/// Where an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It may not have its ApplicationMaster yet.
    Held,
    /// It waits for its ApplicationMaster, or that does not say yet what it has to do.
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
    /// Time since the start.
    pub now: Time,
    /// Slots on machines that are there.
    pub slots: u32,
    /// Slots that are held by what is not scheduled here, and by ApplicationMasters.
    pub taken: u32,
    /// The applications, in the order in which they were seen.
    pub applications: Vec<Application>,
}

/// An application that is not over.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    pub id: AppId,
    /// Its flow; empty before its name is known.
    pub flow: String,
    pub job: String,
    pub stage: Stage,
    /// Its maps, then its reduces, as far as they are known.
    pub phases: [Option<Phase>; 2],
    /// The priority it has, or would have.
    pub priority: u64,
    /// When it should be done, seconds since the start.
    pub deadline: Option<f64>,
    /// How much it counts.
    pub weight: f64,
}

/// A phase of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phase {
    /// Tasks.
    pub total: u32,
    /// Tasks that are done.
    pub done: u32,
    pub running: u32,
    /// How many may run; `None` is no limit.
    pub cap: Option<u32>,
    /// What a task is believed to take, seconds.
    pub seconds: f64,
}
