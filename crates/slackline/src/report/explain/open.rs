//! Explains what an unfinished flow waits for, phase by phase.

use std::collections::BTreeMap;

use slackline_model::PhaseId;

use crate::explain::PhaseStory;
use crate::report::number::{counted, duration};
use crate::report::table::{View, wrapped};
use crate::words::doing;

use super::ExplainInput;

/// The maximum number of phases that are shown.
const PHASES: usize = 20;

/// A run that has not ended: it is running or can be resumed.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// The current time, seconds since its start.
    pub now: f64,
    /// Whether a process drives it.
    pub is_at_work: bool,
    /// The progress of its phases.
    pub phases: BTreeMap<PhaseId, OpenPhase>,
    /// The reason why no more tasks of the flow start, unless it is a lack of slots.
    pub why: Option<String>,
}

/// The progress of a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenPhase {
    /// The number of finished tasks.
    pub done: usize,
    /// The number of running tasks, as far as it is known.
    pub at_work: usize,
    /// The number of all its tasks.
    pub total: usize,
    /// The number of failed attempts.
    pub failed: u64,
}

impl ExplainInput<'_> {
    /// The reason why each unfinished phase is unfinished, in the order of the flow; empty for a run that has
    /// ended.
    pub(super) fn open_phases(&self) -> Vec<(String, String)> {
        let Some(open) = self.open else { return Vec::new() };
        let stories = self.explanation.phases.iter().filter(|story| !story.done);
        stories.map(|story| (self.phase_name(story.phase), self.reason(open, story))).collect()
    }

    /// The reasons as text.
    pub(super) fn open_text(&self, view: &View) -> String {
        let mut reasons = self.open_phases();
        if reasons.is_empty() {
            return String::new();
        }
        let more = reasons.len().saturating_sub(PHASES);
        reasons.truncate(PHASES);
        let more = if more > 0 { format!("… {more} more (JSON has all)\n") } else { String::new() };
        format!("\nnot finished yet\n{}{more}", wrapped(&reasons, view.width))
    }

    fn reason(&self, open: &Open, story: &PhaseStory) -> String {
        let Some(ready) = story.ready else { return self.inputs(open, story.phase) };
        let phase = open.phases.get(&story.phase).copied().unwrap_or_default();
        let since = duration((open.now - ready).max(0.0));
        let failed = match phase.failed {
            0 => String::new(),
            n => format!(", {} failed", counted(n, "attempt")),
        };
        if ready > open.now {
            return format!("waits for the release of its flow at {}", self.at(ready));
        }
        let left = phase.total.saturating_sub(phase.done + phase.at_work);
        let how_far = format!("{} of {} done{failed}", phase.done, counted(phase.total as u64, "task"));
        let waits = counted(left as u64, "task");
        if let (Some(why), true, true) = (&open.why, open.is_at_work, left > 0) {
            return match (phase.at_work, story.started) {
                (0, None) => format!("waits: {why}"),
                (0, Some(_)) => format!("{how_far}; {waits} wait: {why}"),
                (n, _) => format!("{how_far}, {n} running; {waits} wait: {why}"),
            };
        }
        match (phase.at_work, open.is_at_work) {
            (_, false) => format!("{how_far}; the run was stopped (repeat its command to resume it)"),
            (0, true) if self.there.is_some() => format!("{how_far}; {}", self.waits_there(story, &since)),
            (0, true) if story.started.is_none() => format!("waits for slots for {since}{failed}"),
            (0, true) => format!("{how_far}; runs or waits for slots"),
            (n, true) if left == 0 => format!("{how_far}, {n} running"),
            (n, true) => format!("{how_far}, {n} running; {waits} wait for slots"),
        }
    }

    /// The reason why a ready phase on a cluster has no running task.
    fn waits_there(&self, story: &PhaseStory, since: &str) -> String {
        let Some(there) = self.job_there(story) else {
            return format!(
                "waits for {since}: it is submitted when the policy gives it a slot and the limit on ApplicationMasters allows one more"
            );
        };
        format!("{} ({}), ready for {since}", doing(there), there.applications.join(", "))
    }

    /// The unfinished phases that a phase depends on.
    fn inputs(&self, open: &Open, phase: PhaseId) -> String {
        let of = self.instance.phase(phase);
        let job = self.instance.job(of.job);
        let own = job.map.filter(|&map| job.reduce == Some(phase) && map != phase);
        let before = job.after.iter().flat_map(|&before| self.instance.job(before).phases());
        let before: Vec<PhaseId> = own.map_or_else(|| before.collect(), |map| vec![map]);
        let is_done = |phase: &PhaseId| open.phases.get(phase).is_some_and(|phase| phase.done >= phase.total);
        let missing: Vec<String> =
            before.into_iter().filter(|phase| !is_done(phase)).map(|phase| self.phase_name(phase)).collect();
        if missing.is_empty() {
            "waits for its release".to_owned()
        } else {
            format!("waits for its input: {}", missing.join(", "))
        }
    }
}
