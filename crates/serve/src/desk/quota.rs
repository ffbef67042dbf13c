//! Whether nothing more of a flow starts because its user's tasks hold as many slots as one user may.

use super::live::Here;
use super::{Desk, Entry};
use crate::Moment;
use crate::api::{self, FlowState};

impl Desk {
    /// Tasks of a submission hold so many slots more, or less. That is counted where there is a quota.
    pub(super) fn hold_slots(&mut self, number: u64, by: i64) {
        if by == 0 || self.facts.limits.slots_by_user.is_none() {
            return;
        }
        let Some(user) = self.entries.get(&number).map(|entry| &entry.wanted.user) else { return };
        if let Some(held) = self.held.get_mut(user) {
            *held = held.saturating_add_signed(by);
            if *held == 0 {
                self.held.remove(&user.clone());
            }
        } else if let Ok(held) = u64::try_from(by) {
            self.held.insert(user.clone(), held);
        }
    }

    /// Says of the flows of a submission that its user's quota is why nothing more of them starts, where that is so.
    pub(super) fn tell_quota(&self, entry: &Entry, now: Moment, shown: &mut api::Submission) {
        let (Some(most), Some(live)) = (self.facts.limits.slots_by_user, &entry.live) else { return };
        let user = &entry.wanted.user;
        let held = self.held.get(user).copied().unwrap_or(0);
        if held < most.into() {
            return;
        }
        for (here, flow) in live.flows.iter().zip(&mut shown.flows) {
            if here.has_more_to_start(now) {
                flow.why = Some(words(user, held));
            }
        }
    }
}

fn words(user: &str, held: u64) -> String {
    let slots = if held == 1 { "1 slot".to_owned() } else { format!("{held} slots") };
    format!("{user}'s tasks hold {slots}, as many as one user may")
}

impl Here {
    /// Whether a task of it could start if there were a slot for it: nothing holds it, and one is ready.
    fn has_more_to_start(&self, now: Moment) -> bool {
        let is_open = matches!(self.state, FlowState::Waiting | FlowState::Running) && self.release <= now;
        is_open && self.jobs.iter().any(|job| self.is_ready(job))
    }

    /// Whether a task of a job waits for nothing but a slot.
    fn is_ready(&self, job: &api::Job) -> bool {
        let is_done = |phase: api::Phase| phase.done >= phase.tasks;
        let has_rest = |phase: api::Phase| phase.done + phase.running < phase.tasks;
        let mut before = self.jobs.iter().filter(|other| job.after.contains(&other.job));
        let has_inputs = before.all(|before| is_done(before.maps) && is_done(before.reduces));
        has_inputs && (has_rest(job.maps) || is_done(job.maps) && has_rest(job.reduces))
    }
}
