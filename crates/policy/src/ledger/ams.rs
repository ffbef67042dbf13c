//! ApplicationMasters: jobs must be submitted, and their tasks run only while their ApplicationMaster does.
//!
//! If a policy gives a slot to a phase whose job has no ApplicationMaster yet, the slot goes to that. The
//! phase is then not ready until its ApplicationMaster is up. When ApplicationMasters hold all the slots that
//! they may, phases of other jobs are not ready either, until one leaves its slot. Then all of them are
//! ready, and the policy names the next job.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::schedule::{AmRow, Outcome};
use slackline_model::{FlowId, JobId, PhaseId, SlotKind, SlotRange, Time};

use super::Ledger;
use crate::engine::{self, AmOrder, Engine};
use crate::event::Event;
use crate::slot_scope::Spot;

/// The ApplicationMasters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Ams {
    rules: engine::Ams,
    /// Jobs that were ordered to be submitted.
    submitting: BTreeSet<JobId>,
    /// ApplicationMasters of unfinished jobs, including those that are starting.
    live: BTreeMap<JobId, Am>,
    /// ApplicationMasters of finished jobs, with the end of the job, until they leave their slots.
    lingering: BTreeMap<JobId, (Option<u32>, Time)>,
    /// The number of slots that they hold together.
    held: u32,
    /// Phases that wait until an ApplicationMaster may have a slot.
    parked: BTreeSet<PhaseId>,
    /// Rows that will not change any more and were not sent to the sink.
    over: Vec<AmRow>,
}

#[derive(Clone, Copy, Debug)]
struct Am {
    slot: Option<u32>,
    start: Time,
    up: Option<Time>,
}

impl Ams {
    pub(super) fn new(rules: engine::Ams) -> Self {
        Self {
            rules,
            submitting: BTreeSet::new(),
            live: BTreeMap::new(),
            lingering: BTreeMap::new(),
            held: 0,
            parked: BTreeSet::new(),
            over: Vec::new(),
        }
    }

    /// Whether each ApplicationMaster needs a slot.
    pub(crate) fn need_slots(&self) -> bool {
        self.rules.most.is_some()
    }

    /// Slots that ApplicationMasters hold.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let live = self.live.values().map(|am| am.slot);
        live.chain(self.lingering.values().map(|&(slot, _)| slot)).flatten()
    }

    /// The number of slots that they hold together.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Whether the ApplicationMaster of an unfinished job holds a slot.
    pub(crate) fn holds_slot(&self, job: JobId) -> bool {
        self.live.get(&job).is_some_and(|am| am.slot.is_some())
    }

    /// Whether a job is about to be submitted.
    pub(crate) fn is_submitting(&self, job: JobId) -> bool {
        self.submitting.contains(&job)
    }

    pub(super) fn take_over(&mut self) -> Vec<AmRow> {
        std::mem::take(&mut self.over)
    }

    /// Stops all ApplicationMasters when a run ends early.
    pub(super) fn abandon(&mut self, now: Time) {
        for (job, am) in std::mem::take(&mut self.live) {
            self.close(job, am, now, Outcome::Killed);
        }
    }

    fn close(&mut self, job: JobId, Am { slot, start, up }: Am, end: Time, outcome: Outcome) {
        self.over.push(AmRow { job, slot, start, up, end, outcome });
    }
}

impl Ledger {
    /// Submits jobs that may start.
    pub(super) fn submit(&mut self, engine: &mut dyn Engine) {
        let Some(ams) = &mut self.ams else { return };
        for job in self.state.take_to_submit() {
            ams.submitting.insert(job);
            engine.am(AmOrder::Submit(job), &self.instance);
        }
    }

    pub(super) fn submitted(&mut self, job: JobId, events: &mut Vec<Event>) {
        if self.ams.as_mut().is_some_and(|ams| ams.submitting.remove(&job)) {
            self.state.submitted(&self.instance, job, self.now, events);
        }
    }

    /// Whether tasks of `phase`, which is ready, may take slots of a spot with at least one free slot. If
    /// not, the phase is not ready any more, and a slot of the spot may have gone to the ApplicationMaster of
    /// its job.
    pub(crate) fn admits(&mut self, phase: PhaseId, spot: Spot, engine: &mut dyn Engine) -> bool {
        let has_room = self.has_room();
        let Some(ams) = &mut self.ams else { return true };
        let job = self.instance.phase(phase).job;
        match ams.live.get(&job) {
            Some(am) if am.up.is_some() => return true,
            Some(_) => {}
            None if has_room => self.start_am(job, spot, engine),
            None => {
                ams.parked.insert(phase);
            }
        }
        self.state.stop(&self.instance, phase);
        false
    }

    /// Whether the ApplicationMaster of a job is up, if jobs need one.
    pub(super) fn has_am(&self, job: JobId) -> bool {
        let is_up = |ams: &Ams| ams.live.get(&job).is_some_and(|am| am.up.is_some());
        self.ams.as_ref().is_none_or(is_up)
    }

    /// Whether one more ApplicationMaster may have a slot: one slot must remain that no waiting reduce holds.
    fn has_room(&self) -> bool {
        let Some(ams) = &self.ams else { return false };
        let (alive, waiting) = (self.state.alive(SlotKind::Any), self.state.waiting(SlotKind::Any));
        ams.rules.most.is_none_or(|most| ams.held < most && waiting + 1 < alive)
    }

    fn start_am(&mut self, job: JobId, spot: Spot, engine: &mut dyn Engine) {
        let needs_slot = self.ams.as_ref().is_some_and(|ams| ams.rules.most.is_some());
        let slot = needs_slot.then(|| {
            let mut places = Vec::new();
            spot.take(self, 1, &mut places);
            self.state.set_alive(spot.slot_kind, self.state.alive(spot.slot_kind) - 1);
            places[0].first
        });
        let since = self.now;
        if let Some(ams) = &mut self.ams {
            ams.held += u32::from(needs_slot);
            ams.live.insert(job, Am { slot, start: since, up: None });
        }
        engine.am(AmOrder::Start { job, slot, since }, &self.instance);
    }

    pub(super) fn am_up(&mut self, job: JobId, events: &mut Vec<Event>) {
        let Some(am) = self.ams.as_mut().and_then(|ams| ams.live.get_mut(&job)) else {
            return;
        };
        am.up = Some(self.now);
        for phase in self.instance.job(job).phases() {
            self.state.resume(&self.instance, phase, self.now, events);
        }
    }

    /// The ApplicationMasters of the jobs that are done by these events start to leave.
    pub(super) fn end_ams(&mut self, events: &[Event], engine: &mut dyn Engine) {
        let Some(ams) = &mut self.ams else { return };
        for event in events {
            let Event::JobDone(job) = *event else { continue };
            let Some(am) = ams.live.remove(&job) else { continue };
            let ends = self.instance.job(job).phases().map(|phase| self.state.phase(phase).last_end());
            let at = ends.fold(am.start, Time::max);
            ams.close(job, am, at + ams.rules.linger, Outcome::Done);
            ams.lingering.insert(job, (am.slot, at));
            engine.am(AmOrder::End { job, slot: am.slot, at }, &self.instance);
        }
    }

    pub(super) fn am_gone(&mut self, job: JobId, events: &mut Vec<Event>) {
        let gone = self.ams.as_mut().and_then(|ams| ams.lingering.remove(&job));
        if let Some((slot, _)) = gone {
            self.leave_slot(slot, events);
        }
    }

    /// An ApplicationMaster left its slot; another one may start.
    fn leave_slot(&mut self, slot: Option<u32>, events: &mut Vec<Event>) {
        let Some(slot) = slot else { return };
        let cluster = self.instance.cluster();
        self.free[SlotKind::Any.index()].insert(SlotRange { first: slot, len: 1 });
        self.state.set_alive(SlotKind::Any, self.state.alive(SlotKind::Any) + 1);
        if let Some(freed) = &mut self.freed {
            freed.push(cluster.machine_of(SlotKind::Any, slot).0);
        }
        if let Some(ams) = &mut self.ams {
            ams.held -= 1;
        }
        self.unpark(events);
    }

    /// There may be room for another ApplicationMaster.
    pub(super) fn unpark(&mut self, events: &mut Vec<Event>) {
        let Some(ams) = &mut self.ams else { return };
        for phase in std::mem::take(&mut ams.parked) {
            self.state.resume(&self.instance, phase, self.now, events);
        }
    }

    /// Stops the ApplicationMasters of a failed flow.
    pub(super) fn kill_ams(&mut self, flow: FlowId, engine: &mut dyn Engine, events: &mut Vec<Event>) {
        for job in self.instance.flow(flow).jobs() {
            let Some(ams) = &mut self.ams else { return };
            ams.submitting.remove(&job);
            if let Some(am) = ams.live.remove(&job) {
                ams.close(job, am, self.now, Outcome::Killed);
                engine.am(AmOrder::Kill(job), &self.instance);
                self.leave_slot(am.slot, events);
            }
        }
    }

    /// Another engine takes over the running ApplicationMasters.
    pub(super) fn hand_over_ams(&self, engine: &mut dyn Engine) {
        let Some(ams) = &self.ams else { return };
        for &job in &ams.submitting {
            engine.am(AmOrder::Submit(job), &self.instance);
        }
        for (&job, &Am { slot, start: since, .. }) in ams.live.iter().filter(|(_, am)| am.up.is_none()) {
            engine.am(AmOrder::Start { job, slot, since }, &self.instance);
        }
        for (&job, &(slot, at)) in &ams.lingering {
            engine.am(AmOrder::End { job, slot, at }, &self.instance);
        }
    }
}
