//! Why a submission has not started, and why no more tasks of a flow start.
//!
//! Reasons that depend on other submissions (limits, a drain, quotas, outputs of other flows) are computed on
//! demand and not stored, so they are never outdated.

use slackline_model::WallTime;

use crate::api::{self, FlowStatus};
use crate::state::ServiceState;
use crate::state::progress::{FlowProgress, RunningSubmission};
use crate::state::series::RunKey;
use crate::state::submissions::{Entry, SubmissionState};
use crate::timestamp;

/// The reason during a drain.
const DRAINS: &str =
    "the service drains and starts no new submissions (resume with slackline serve drain --undo)";

/// The most missing outputs that a reason names.
const NAMED: usize = 3;

/// A limit that keeps a ready submission from starting.
enum Blocker<'a> {
    Drain,
    /// The limit of running submissions is reached.
    Running,
    /// The limit of running submissions of this user is reached.
    RunningOf(&'a str),
}

impl ServiceState {
    /// Why a submission has not started. `None` if it has, or is about to.
    pub(super) fn why(&self, entry: &Entry) -> Option<String> {
        if let Some(why) = entry.own_why() {
            return Some(
                self.first_of_name(entry).map_or_else(|| why.clone(), |first| format!("{why}: {first}")),
            );
        }
        Some(match self.behind(entry)? {
            Blocker::Drain => DRAINS.to_owned(),
            Blocker::Running => {
                let live = match self.submissions.queue.begun.total {
                    1 => "1 submission is".to_owned(),
                    live => format!("{live} submissions are"),
                };
                format!("{live} active, the limit of --live")
            }
            Blocker::RunningOf(user) => {
                let live = self.submissions.queue.begun.of(user);
                format!("{user} has {live} active, the limit of --live-by-user")
            }
        })
    }

    /// The reason why the first submission of a name waits, for one behind it.
    fn first_of_name(&self, entry: &Entry) -> Option<String> {
        let number = self.submissions.series.first(&RunKey::of(&entry.wanted))?;
        let first = self.submissions.open.get(&number).filter(|first| !std::ptr::eq(*first, entry))?;
        let why = first.own_why()?;
        Some(format!("{number} {}{why}", if first.held { "is " } else { "" }))
    }

    /// The missing file that keeps a submission from starting.
    pub(super) fn missing<'a>(&self, number: u64, entry: &'a Entry) -> Option<&'a String> {
        let first = self.submissions.series.first(&RunKey::of(&entry.wanted));
        let waits = entry.is_queued() && !entry.held && !entry.files.are_there();
        entry.files.missing().filter(|_| waits && entry.not_before().is_none() && first == Some(number))
    }

    /// The limit that keeps a ready submission from starting.
    fn behind<'a>(&self, entry: &'a Entry) -> Option<Blocker<'a>> {
        let (limits, user) = (&self.facts.limits, entry.wanted.user.as_str());
        if !entry.is_queued() || entry.own_why().is_some() {
            None
        } else if self.submissions.queue.is_draining {
            Some(Blocker::Drain)
        } else if limits.live_by_user < limits.live
            && self.submissions.queue.begun.of(user) >= limits.live_by_user
        {
            // A submission of another user that finishes does not help.
            Some(Blocker::RunningOf(user))
        } else {
            (self.submissions.queue.begun.total >= limits.live).then_some(Blocker::Running)
        }
    }

    /// Why a submission has no prediction: the forecast failed, or the submission has not started. Its number
    /// of tasks is known only after its inputs are looked up, and its start depends on later submissions and
    /// changes.
    pub(super) fn unpredicted(&self, entry: &Entry) -> Option<String> {
        if let SubmissionState::Running(_) = entry.state {
            let waits = entry.prediction.is_none() && entry.cancelled.is_empty();
            let problem = self.forecast_error().filter(|_| waits);
            return problem.map(|problem| format!("the forecast failed: {problem}"));
        }
        let once = "its completion is predicted when it starts";
        let user = match self.behind(entry) {
            Some(Blocker::Running) => None,
            Some(Blocker::RunningOf(user)) => Some(user),
            Some(Blocker::Drain) | None => return Some(once.to_owned()),
        };
        let first = self.first_end(user).map_or_else(String::new, |at| {
            format!("; the first active submission is predicted to finish at {}", timestamp(at))
        });
        Some(format!("{once}{first}"))
    }

    /// The first estimated end of a running submission, of all users or of one. `None` if no estimate is
    /// known.
    fn first_end(&self, user: Option<&str>) -> Option<WallTime> {
        let running = self.submissions.running();
        let of_user = running.filter(|(_, entry, _)| user.is_none_or(|user| entry.wanted.user == user));
        of_user.filter_map(|(_, _, run)| run.expected_end()).min()
    }

    /// Sets the reason why no more tasks of a flow start, unless the flow only waits for slots.
    pub(super) fn tell_waits(&self, number: u64, entry: &Entry, now: WallTime, shown: &mut api::Submission) {
        let Some(live) = entry.running() else { return };
        for (here, flow) in live.flows.iter().zip(&mut shown.flows) {
            flow.why = match here.state {
                FlowStatus::Held if entry.is_held_by_hand(&here.flow) => {
                    Some(format!("it is held (slackline submission resume {number})"))
                }
                FlowStatus::Held => Some("its deadlines are checked first".to_owned()),
                FlowStatus::Waiting | FlowStatus::Running => self.why_flow(number, live, here, now),
                FlowStatus::Finished | FlowStatus::Failed | FlowStatus::Cancelled => None,
            };
        }
    }

    /// Why no more tasks of a flow start that is not held.
    fn why_flow(
        &self,
        number: u64,
        live: &RunningSubmission,
        here: &FlowProgress,
        now: WallTime,
    ) -> Option<String> {
        if here.release > now {
            return Some(format!("it is released at {}", timestamp(here.release)));
        }
        let missing: Vec<&(String, String)> = live.missing_outputs(here).collect();
        if !missing.is_empty() {
            return Some(without(&missing));
        }
        let is_nowhere = !self.machines.all.is_empty() && self.machines.all.iter().all(|machine| !machine.up);
        let why = if is_nowhere {
            Some("no machine is available".to_owned())
        } else {
            self.machines.limits.get(&(number, here.flow.clone())).cloned()
        };
        // This check reads all jobs, so it comes last.
        why.filter(|_| here.has_more_to_start())
    }
}

/// `the output of load/b is not available yet`.
fn without(outputs: &[&(String, String)]) -> String {
    let named: Vec<String> = outputs.iter().take(NAMED).map(|(flow, job)| format!("{flow}/{job}")).collect();
    let more = outputs.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let is = if outputs.len() == 1 { "is" } else { "are" };
    format!("the output of {}{more} {is} not available yet", named.join(", "))
}

impl RunningSubmission {
    /// The estimated end of all unfinished flows. `None` if one has no estimate.
    fn expected_end(&self) -> Option<WallTime> {
        let open = self.flows.iter().filter(|here| !here.state.is_over());
        open.map(|here| here.expected.and_then(|expected| expected.completion))
            .try_fold(WallTime::default(), |last, at: Option<WallTime>| Some(last.max(at?)))
    }

    /// The missing outputs of other flows that a flow reads.
    fn missing_outputs<'a>(&'a self, here: &'a FlowProgress) -> impl Iterator<Item = &'a (String, String)> {
        here.reads.iter().filter(|(flow, job)| {
            let other = self.flows.iter().find(|other| other.flow == *flow);
            let job = other.and_then(|other| other.jobs.iter().find(|one| one.job == *job));
            job.is_some_and(|job| [job.maps, job.reduces].iter().any(|phase| phase.done < phase.tasks))
        })
    }
}

impl FlowProgress {
    /// Whether a task could start on a free slot.
    fn has_more_to_start(&self) -> bool {
        self.jobs.iter().any(|job| self.is_ready(job))
    }

    /// Whether a task of a job waits only for a slot.
    fn is_ready(&self, job: &api::Job) -> bool {
        let is_done = |phase: api::Phase| phase.done >= phase.tasks;
        let has_rest = |phase: api::Phase| phase.done + phase.running < phase.tasks;
        let mut before = self.jobs.iter().filter(|other| job.after.contains(&other.job));
        let has_inputs = before.all(|before| is_done(before.maps) && is_done(before.reduces));
        has_inputs && (has_rest(job.maps) || is_done(job.maps) && has_rest(job.reduces))
    }
}
