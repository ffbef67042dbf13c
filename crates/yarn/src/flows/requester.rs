//! Requests to YARN, on a thread of their own: the scheduler's thread waits neither for a socket nor for the
//! table of the plug-in.
//!
//! The thread takes one batch of requests after the other and answers each with one batch of answers.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use std::{io, thread};

use slackline_task::base::activity::{self, Duty};

use crate::cluster::control::Control;
use crate::cluster::fair_polling::RoundRobin;
use crate::cluster::observer::{Change, Snapshot};
use crate::cluster::table::Rows;
use crate::rest::http::HttpError;
use crate::rest::id::AppId;
use crate::rest::mapreduce::MapReduceJob;
use crate::rest::resource_manager::{App, Purpose};

/// The tag with the run of an application.
pub(super) const RUN_TAG: &str = "slackline.run";

/// Requests, in the order in which they are made.
#[derive(Default)]
pub(super) struct Requests {
    /// Applications to kill.
    pub(super) kills: BTreeSet<AppId>,
    pub(super) decisions: Option<Decisions>,
    pub(super) poll: Option<PollRequest>,
}

/// The driver's decisions.
pub(super) struct Decisions {
    /// Rows of the table.
    pub(super) rows: Rows,
    /// Applications with their priorities, the most urgent first.
    pub(super) order: Vec<(AppId, u64)>,
}

/// A poll of the cluster.
pub(super) struct PollRequest {
    /// The owners of the runs whose applications are of interest.
    pub(super) owners: BTreeSet<String>,
    /// Applications of interest that no list has shown yet.
    pub(super) expected: Vec<AppId>,
    /// Jobs of programs, and their applications whose AMs to poll.
    pub(super) programs: Vec<(u32, AppId)>,
}

/// The answers to a batch of requests.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) warnings: Vec<String>,
    /// Changed priorities.
    pub(super) priorities: Vec<(AppId, u64)>,
    /// The answer to the poll, if there was one.
    pub(super) poll: Option<Result<PollAnswer, HttpError>>,
}

pub(super) struct PollAnswer {
    pub(super) changes: Vec<Change>,
    /// The cluster after these changes.
    pub(super) snapshot: Snapshot,
    pub(super) programs: Vec<ProgramReport>,
}

/// A report of the AM of a program's application.
pub(super) struct ProgramReport {
    pub(super) job: u32,
    pub(super) app: AppId,
    /// `None` if the AM did not answer.
    pub(super) report: Option<MapReduceJob>,
    /// Live containers of maps and of reduces at that time.
    pub(super) live: [u32; 2],
}

/// The state of the thread.
struct Requester {
    control: Control,
    /// Time limit for requests of one kind; the next batch continues with the rest.
    lasts: Duration,
    programs: RoundRobin<(u32, AppId)>,
    kills: RoundRobin<AppId>,
    warned_of_refusal: bool,
}

/// Starts the thread. It ends, and removes the table, when the sender is dropped; then the receiver is
/// disconnected.
///
/// # Errors
/// The system has no more threads.
pub(super) fn start(control: Control, lasts: Duration) -> io::Result<(Sender<Requests>, Receiver<Answers>)> {
    let (to_ask, asked) = channel::<Requests>();
    let (answers, answered) = channel();
    let mut requester = Requester {
        control,
        lasts,
        programs: RoundRobin::default(),
        kills: RoundRobin::default(),
        warned_of_refusal: false,
    };
    thread::Builder::new().name("yarn".to_owned()).spawn(move || {
        activity::announce("the requests to YARN", Duty::Sole);
        for requests in asked {
            // The engine may have gone meanwhile.
            let _ = answers.send(requester.answer(requests));
        }
        drop(requester);
        drop(answers);
    })?;
    Ok((to_ask, answered))
}

impl Requester {
    fn answer(&mut self, requests: Requests) -> Answers {
        let Requests { kills, decisions, poll } = requests;
        let mut answers = Answers::default();
        if !kills.is_empty() {
            answers.warnings = activity::during("kill", "applications", || self.kill(kills));
        }
        if let Some(Decisions { rows, order }) = decisions {
            let warning = activity::during("write", "the table", || self.control.publish(&rows));
            answers.warnings.extend(warning);
            let (changed, warning) =
                activity::during("set", "priorities of applications", || self.control.set_order(&order));
            answers.priorities = changed;
            answers.warnings.extend(warning);
        }
        answers.poll = poll.map(|poll| activity::during("poll", "YARN", || self.poll(poll)));
        answers
    }

    /// Kills applications within the time limit. The first refusal gives a warning.
    fn kill(&mut self, apps: BTreeSet<AppId>) -> Vec<String> {
        let is_refusal = |error: &HttpError| !error.may_pass() && !error.is_missing();
        let mut warnings = Vec::new();
        let mut round = self.kills.round(apps, self.lasts);
        while let Some(app) = round.next(&mut self.kills) {
            let Some(error) = self.control.manager.kill(app).err().filter(is_refusal) else { continue };
            if !std::mem::replace(&mut self.warned_of_refusal, true) {
                warnings.push(format!(
                    "{app} is to end, and cannot be killed: {error}; this does it: yarn application -kill {app}"
                ));
            }
        }
        warnings
    }

    fn poll(&mut self, request: PollRequest) -> Result<PollAnswer, HttpError> {
        let PollRequest { owners, expected, programs } = request;
        for app in expected {
            self.control.observer.expect(app);
        }
        let is_of_interest = |app: &App| app.tag(RUN_TAG).is_some_and(|owner| owners.contains(owner));
        let changes = self.control.poll_cluster(is_of_interest)?;
        let programs = self.poll_programs(programs);
        Ok(PollAnswer { changes, snapshot: self.control.snapshot().clone(), programs })
    }

    /// Polls AMs of programs within the time limit.
    fn poll_programs(&mut self, programs: Vec<(u32, AppId)>) -> Vec<ProgramReport> {
        let mut reports = Vec::new();
        let mut round = self.programs.round(programs, self.lasts);
        while let Some((job, app)) = round.next(&mut self.programs) {
            let Some(watched) = self.control.snapshot().watched.get(&app) else { continue };
            let live = |purpose| watched.live(purpose) as u32;
            let live = [live(Purpose::Map) + live(Purpose::FailedMap), live(Purpose::Reduce)];
            let report = self.control.manager.application_master(app).job(app).ok().flatten();
            reports.push(ProgramReport { job, app, report, live });
        }
        reports
    }
}
