//! The simulator: an engine in virtual time. Batches end, machines fail and return, flows arrive.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use slackline_model::instance::Arrival;
use slackline_model::tasks::Tasks;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{
    Cluster, FlowId, Instance, JobId, MachineId, PhaseId, Profile, SlotKind, Span, Time, random,
};
use slackline_policy::Engine;
use slackline_policy::engine::{
    AmOrder, Ams, Batch, Capabilities, Faults, Lengths, Offers, Order, Report, RowId, SpeculativeAttempt,
    Start,
};

use crate::crashes::{Crashes, Failures};
use crate::heartbeat::Heartbeats;
use crate::in_vain::InVain;
use crate::membership::Membership;
use crate::noise;
use crate::options::Options;
use crate::profile::Starts;
use crate::queue::{Pending, Queue};
use crate::speculation::{Attempt, Seconds, Spot};

/// A batch that is tracked separately, because it waits, or its machine may fail or reports late.
#[derive(Clone, Copy, Debug)]
struct TrackedBatch {
    /// When it took its slots.
    started: Time,
    /// The time from its start to its own work.
    startup: Span,
    duration: Span,
    /// When it ends and when its end is reported; `None` while it waits.
    ends: Option<(Time, Time)>,
    machine: MachineId,
    slots: u32,
    /// Its first task, on its first slot.
    spot: Spot,
}

/// Flows in the order of their releases.
type Arrivals<'a> = Peekable<Box<dyn Iterator<Item = Arrival> + 'a>>;

pub struct Sim<'a> {
    options: Options,
    now: Time,
    queue: Queue,
    /// Flows that have not arrived yet.
    arrivals: Arrivals<'a>,
    tracked: BTreeMap<RowId, TrackedBatch>,
    heartbeats: Option<Heartbeats>,
    /// Scratch: machines whose offers come next in the reports.
    offering: Vec<MachineId>,
    failures: Failures,
    /// Whether machines may fail or leave.
    machines_may_go: bool,
    left: BTreeSet<MachineId>,
    in_vain: InVain,
    /// Tasks of each phase whose ends are progress, kept if machines may leave. A phase has as many as tasks;
    /// later ends replace output that was lost with a machine.
    due: BTreeMap<PhaseId, u32>,
    /// Batches that will end, without those that wait for maps, and answers about ApplicationMasters to come.
    ending: u32,
    /// Recoveries in the queue.
    recoveries: u32,
    /// The startup times of the cluster, and the rules of the driver that follow from them.
    starts: Option<(Starts, Ams)>,
    /// Slots that ApplicationMasters hold, and their machines.
    am_on: BTreeMap<JobId, (u32, MachineId)>,
    /// Speculative attempts, if the profile has any.
    seconds: Option<Seconds>,
}

impl<'a> Sim<'a> {
    /// A simulation of `instance`, which must have been cut into tasks. Flows arrive at their releases; those
    /// of one instant in the order of the document.
    pub fn new(instance: &'a Instance, options: Options) -> Self {
        let mut order: Vec<FlowId> = instance.flows().keys().collect();
        order.sort_by_key(|&flow| (instance.flow(flow).release, flow));
        let arrivals = order.into_iter().map(|flow| instance.excerpt(flow));
        Self::of_stream(instance.cluster(), arrivals, options)
    }

    /// A simulation of flows that come in the order of their releases, each cut into tasks. The simulation
    /// requests a flow only after the previous one has arrived.
    pub fn of_stream(
        cluster: &Cluster,
        arrivals: impl Iterator<Item = Arrival> + 'a,
        options: Options,
    ) -> Self {
        let mut failures = Failures::new(options.crashes.clone(), options.seed, cluster.n_machines());
        let mut queue = Queue::default();
        let mut recoveries = 0;
        for crash in failures.initial() {
            queue.push(crash.at, Pending::Crash(crash.machine));
            if let Some(back) = crash.back {
                recoveries += 1;
                queue.push(back, Pending::Recovery(crash.machine));
            }
        }
        for (k, change) in options.membership.iter().enumerate() {
            queue.push(change.at(), Pending::Member(k as u32));
        }
        let arrivals: Box<dyn Iterator<Item = Arrival> + 'a> = Box::new(arrivals);
        let heartbeats =
            (options.heartbeat > Span::ZERO).then(|| Heartbeats::new(cluster, options.heartbeat));
        let starts = options.profile.clone().map(|profile| {
            let starts = Starts::new(profile, options.seed, cluster);
            let ams = starts.ams(cluster);
            (starts, ams)
        });
        let rules = options.profile.as_ref().and_then(Profile::speculation);
        let seconds = rules.map(|rules| Seconds::new(rules, cluster));
        let leaves = |change: &Membership| matches!(change, Membership::Leave { .. });
        let machines_may_go = options.crashes != Crashes::Never || options.membership.iter().any(leaves);
        let sim = Self {
            starts,
            seconds,
            am_on: BTreeMap::new(),
            machines_may_go,
            options,
            now: Time::ZERO,
            queue,
            arrivals: arrivals.peekable(),
            tracked: BTreeMap::new(),
            heartbeats,
            offering: Vec::new(),
            failures,
            left: BTreeSet::new(),
            in_vain: InVain::new(cluster.n_machines()),
            due: BTreeMap::new(),
            ending: 0,
            recoveries,
        };
        assert!(sim.starts.is_none() || !sim.machines_may_go, "machines of a profile never go");
        sim
    }

    /// The same simulation, at a later time, so that a copy of a run continues in it
    /// ([`slackline_policy::Driver::fork`]).
    #[must_use]
    pub fn at(mut self, now: Time) -> Self {
        self.now = now;
        self
    }

    /// Whether every batch must be tracked.
    fn tracks_all(&self) -> bool {
        self.heartbeats.is_some() || self.starts.is_some() || self.machines_may_go
    }

    fn next_arrival(&mut self) -> Option<Time> {
        self.arrivals.peek().map(|arrival| arrival.flow().release)
    }

    /// Handles all pending events at `self.now`, offers included. Returns `false` if a machine may fail only
    /// after the driver has received the reports.
    fn settle(&mut self, reports: &mut Vec<Report>) -> bool {
        while let Some(pending) = self.queue.pop_at(self.now) {
            match pending {
                Pending::End(row) => self.end(row, reports),
                Pending::Crash(machine) if self.left.contains(&machine) => {}
                Pending::Recovery(machine) if self.left.contains(&machine) => self.recoveries -= 1,
                Pending::Crash(machine) if self.reports_maps_of(machine, reports) => {
                    self.queue.push(self.now, pending);
                    return false;
                }
                Pending::Crash(machine) => self.crash(machine, reports),
                Pending::Member(change) => {
                    if !self.change_members(change as usize, reports) {
                        self.queue.push(self.now, pending);
                        return false;
                    }
                }
                Pending::Recovery(machine) => self.recover(machine, reports),
                Pending::Submitted(job) => {
                    self.ending -= 1;
                    reports.push(Report::Submitted(job));
                }
                Pending::AmUp(job) => {
                    self.ending -= 1;
                    if let Some((starts, _)) = &mut self.starts {
                        starts.note_up(job, self.now);
                    }
                    if let Some(seconds) = &mut self.seconds {
                        seconds.am_up(job, self.now);
                    }
                    reports.push(Report::AmUp(job));
                }
                Pending::AmGone(job) => self.am_gone(job, reports),
                Pending::Wake => {
                    let alone = self.ending == 0 && self.recoveries == 0;
                    let hopeless = alone && self.next_arrival().is_none();
                    self.in_vain.wakes = if hopeless { self.in_vain.wakes + 1 } else { 0 };
                    if reports.last() != Some(&Report::Woken) {
                        reports.push(Report::Woken);
                    }
                }
                Pending::Offer(machine) => {
                    if self.heartbeats.as_mut().is_some_and(|h| h.take_queued(machine)) {
                        self.offering.push(machine);
                    }
                }
                Pending::Look(_)
                    if !reports.is_empty()
                        || self.next_arrival() == Some(self.now)
                        || self.next_offer() == Some(self.now) =>
                {
                    // Slots count as idle when the driver has left them idle.
                    self.queue.push(self.now, pending);
                    return true;
                }
                Pending::Look(job) => self.look(job, reports),
            }
        }
        true
    }

    /// Handles the end of a batch, unless the batch was stopped or postponed in the meantime.
    fn end(&mut self, row: RowId, reports: &mut Vec<Report>) {
        let Some(tracked) = self.tracked.get(&row) else {
            if !self.tracks_all() {
                self.ending -= 1;
                reports.push(Report::Finished { row, at: self.now });
            }
            return;
        };
        if let Some((at, reported)) = tracked.ends
            && reported == self.now
        {
            self.finish(row, at, reports);
        }
    }

    fn finish(&mut self, row: RowId, at: Time, reports: &mut Vec<Report>) {
        let (row, at) = self.settle_twins(row, at, reports);
        let tracked = self.tracked.remove(&row).expect("invariant: a batch that ends is tracked");
        self.leave(&tracked, true);
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.freed(tracked.machine, tracked.spot.slot_kind, tracked.slots);
        }
        if let Some(due) = self.due.get_mut(&tracked.spot.phase)
            && *due > 0
        {
            *due = due.saturating_sub(tracked.slots);
            self.in_vain.failures = 0;
        }
        self.ending -= 1;
        if tracked.startup > Span::ZERO {
            reports.push(Report::Began { row, startup: tracked.startup });
        }
        reports.push(Report::Finished { row, at });
    }

    /// Ends an attempt of a task; of two attempts, the one that ended first. The other attempt will be
    /// stopped; the time that it took to start, if it did, is reported first.
    fn settle_twins(&mut self, row: RowId, at: Time, reports: &mut Vec<Report>) -> (RowId, Time) {
        let spot = self.tracked.get(&row).map(|tracked| tracked.spot);
        let settled =
            spot.zip(self.seconds.as_ref()).and_then(|(spot, seconds)| seconds.settle(spot, self.now));
        let Some((winner, Some(other))) = settled else { return (row, at) };
        let at = winner.ends.unwrap_or(at);
        if let Some(stopped) = self.tracked.get_mut(&other.row) {
            let startup = stopped.startup.min(at.since(stopped.started));
            reports.push(Report::Began { row: other.row, startup });
            self.ending -= u32::from(stopped.ends.take().is_some());
        }
        (winner.row, at)
    }

    /// Frees the slots of a batch; `is_done` if it ended.
    fn leave(&mut self, tracked: &TrackedBatch, is_done: bool) {
        let Some(seconds) = &mut self.seconds else { return };
        let spot = tracked.spot;
        seconds.leave(spot.slot_kind, spot.slot);
        if is_done {
            let next = seconds.finish(spot, Span(tracked.startup.0 + tracked.duration.0), self.now);
            self.look_at(spot.job, next);
        }
    }

    fn look_at(&mut self, job: JobId, next: Option<Time>) {
        if let Some(at) = next {
            self.queue.push(at, Pending::Look(job));
        }
    }

    /// The ApplicationMaster of a job checks for slow attempts, after all other reports of the instant.
    fn look(&mut self, job: JobId, reports: &mut Vec<Report>) {
        let Some(seconds) = &mut self.seconds else { return };
        let (heartbeats, now) = (self.heartbeats.as_ref(), self.now);
        let is_idle = |machine| heartbeats.is_none_or(|heartbeats| heartbeats.is_idle(machine, now));
        let (wanted, again) = seconds.look(job, self.now, is_idle);
        let since = self.now;
        let second =
            |(row, slot): (RowId, u32)| SpeculativeAttempt { row, name: u64::from(row.0), slot, since };
        reports.extend(wanted.into_iter().map(second).map(Report::Speculative));
        self.look_at(job, again);
    }

    /// The ApplicationMaster of a job leaves its slot.
    fn am_gone(&mut self, job: JobId, reports: &mut Vec<Report>) {
        self.ending -= 1;
        if let Some(machine) = self.leave_am(job)
            && let Some(heartbeats) = &mut self.heartbeats
        {
            heartbeats.freed(machine, SlotKind::Any, 1);
        }
        reports.push(Report::AmGone(job));
    }

    /// Frees the slot of the ApplicationMaster, if it holds one. Returns its machine.
    fn leave_am(&mut self, job: JobId) -> Option<MachineId> {
        let (slot, machine) = self.am_on.remove(&job)?;
        if let Some(seconds) = &mut self.seconds {
            seconds.leave(SlotKind::Any, slot);
        }
        Some(machine)
    }

    /// A batch or an ApplicationMaster was stopped: its machine offers the free slots even if nothing else
    /// happens.
    fn killed_on(&mut self, machine: MachineId, slot_kind: SlotKind, slots: u32) {
        if let Some(heartbeats) = &mut self.heartbeats
            && heartbeats.killed(machine, slot_kind, slots)
        {
            let at = heartbeats.next(machine, self.now);
            self.queue.push(at, Pending::Offer(machine));
        }
    }

    /// When the driver receives the report of an event on `machine` at `at`.
    fn reported(&self, machine: MachineId, at: Time) -> Time {
        let at = at.max(self.now);
        self.heartbeats.as_ref().map_or(at, |h| h.next(machine, at))
    }

    /// Reports maps whose end is not reported yet and that reduces on `machine` wait for. Returns whether
    /// there were any. A reduce computes from the end of its last map, whenever that end is reported. If the
    /// reduce ended before its machine failed, its end must be reported.
    fn reports_maps_of(&mut self, machine: MachineId, reports: &mut Vec<Report>) -> bool {
        let waiting = self.tracked.values().filter(|t| t.machine == machine && t.ends.is_none());
        let jobs: BTreeSet<JobId> = waiting.map(|t| t.spot.job).collect();
        if jobs.is_empty() {
            return false;
        }
        let ended = self.ended(|tracked| jobs.contains(&tracked.spot.job));
        let were_any = !ended.is_empty();
        self.report(ended, reports);
        were_any
    }

    fn crash(&mut self, machine: MachineId, reports: &mut Vec<Report>) {
        self.silence(machine, reports);
        self.in_vain.failures += 1;
        reports.push(Report::Down(machine));
    }

    /// Removes a machine. Ends that are not reported yet are reported with its failure.
    fn silence(&mut self, machine: MachineId, reports: &mut Vec<Report>) {
        let ended = self.ended(|tracked| tracked.machine == machine);
        self.report(ended, reports);
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.down(machine);
        }
    }

    /// Machines join, or one leaves. Returns `false` if it may leave only after the driver has received the
    /// reports.
    fn change_members(&mut self, change: usize, reports: &mut Vec<Report>) -> bool {
        match self.options.membership[change].clone() {
            Membership::Join { group, .. } => {
                if let Some(heartbeats) = &mut self.heartbeats {
                    heartbeats.join(&group);
                }
                reports.push(Report::Joined(group));
            }
            Membership::Leave { machine, .. } => {
                if self.reports_maps_of(machine, reports) {
                    return false;
                }
                self.silence(machine, reports);
                self.left.insert(machine);
                reports.push(Report::Left(machine));
            }
        }
        true
    }

    /// Stops the simulation: reports the past ends, and nothing else.
    fn give_up(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let ended = self.ended(|_| true);
        self.report(ended, reports);
        if !reports.is_empty() {
            return Some(self.now);
        }
        let n = self.in_vain.failures;
        if n >= self.in_vain.failures_max {
            let why = format!("machines died too often: {n} times before another task finished");
            reports.push(Report::GaveUp(why));
        }
        None
    }

    /// Batches whose end is not reported yet, with the times of their ends.
    fn ended(&self, of: impl Fn(&TrackedBatch) -> bool) -> Vec<(RowId, Time)> {
        let end = |t: &TrackedBatch| t.ends.map(|(at, _)| at).filter(|&at| at <= self.now);
        let tracked = self.tracked.iter().filter(|(_, t)| of(t));
        tracked.filter_map(|(&row, t)| Some((row, end(t)?))).collect()
    }

    fn report(&mut self, ended: Vec<(RowId, Time)>, reports: &mut Vec<Report>) {
        for (row, at) in ended {
            // When one attempt of a task ends, the other one ends too.
            if self.tracked.contains_key(&row) {
                self.finish(row, at, reports);
            }
        }
    }

    fn recover(&mut self, machine: MachineId, reports: &mut Vec<Report>) {
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.up(machine);
        }
        self.recoveries -= 1;
        if let Some(next) = self.failures.after(machine, self.now) {
            self.queue.push(next.at, Pending::Crash(machine));
            if let Some(back) = next.back {
                self.recoveries += 1;
                self.queue.push(back, Pending::Recovery(machine));
            }
        }
        reports.push(Report::Up(machine));
    }

    fn arrive(&mut self, reports: &mut Vec<Report>) {
        let now = self.now;
        // Not `next_if`, which moves a flow out and back if it arrives later.
        while self.next_arrival().is_some_and(|at| at <= now) {
            reports.extend(self.arrivals.next().map(|arrival| Report::Arrived(Box::new(arrival))));
        }
    }

    /// When the next machine offers free slots.
    fn next_offer(&self) -> Option<Time> {
        self.heartbeats.as_ref()?.next_offer(self.now)
    }

    /// Machines that report now offer free slots. An event that may give work begins a round of offers; until
    /// the driver knows of it, it is unknown which slots are wanted.
    fn offer(&mut self, reports: &mut Vec<Report>) {
        let Some(heartbeats) = &mut self.heartbeats else { return };
        let gives_work = reports.iter().any(gives_work);
        if gives_work {
            heartbeats.begin_round(self.now);
        }
        heartbeats.take_due(self.now, gives_work, &mut self.offering);
        reports.extend(self.offering.drain(..).map(Report::Offer));
    }

    /// The ApplicationMaster of a job holds a slot, if it does not already.
    fn hold_for_am(&mut self, job: JobId, slot: Option<u32>, live: &Instance) {
        let Some(slot) = slot.filter(|_| !self.am_on.contains_key(&job)) else { return };
        let (machine, _) = live.cluster().machine_of(SlotKind::Any, slot);
        self.am_on.insert(job, (slot, machine));
        if let Some(seconds) = &mut self.seconds {
            seconds.take(SlotKind::Any, slot);
        }
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.started(machine, SlotKind::Any, 1);
        }
    }

    /// The time from the start of a batch to its own work.
    fn startup(&self, start: &Start<'_>, live: &Instance) -> Span {
        let Some((starts, _)) = &self.starts else { return Span::ZERO };
        let job = live.phase(start.phase).job;
        starts.container(job, start)
    }

    /// The time that a batch computes.
    fn duration(&self, start: &Start<'_>, live: &Instance) -> Span {
        let tasks = live.phase(start.phase).tasks().expect("invariant: flows are cut before they arrive");
        let (span, _) = tasks.run_at(start.first);
        let (slot_kind, slot) = (live.slot_kind_of(start.phase), start.places[0].first);
        let (speed, _) = live.cluster().speed_of(slot_kind, slot);
        let mut exact = span.at_speed_nearest(speed);
        if let Some((starts, _)) = &self.starts {
            let (machine, _) = live.cluster().machine_of(slot_kind, slot);
            let far = starts.far(live, start.phase, start.first, machine);
            let factor = far * starts.factor(start.phase, start.first, start.attempt);
            exact = Span::from_seconds_nearest((exact.seconds() * factor).min(SECONDS_MAX));
        }
        if self.options.jitter == 0.0 {
            return exact;
        }
        let factor = jitter(&self.options, start.phase, start.first, start.attempt);
        Span::from_seconds_nearest((exact.seconds() * factor).min(SECONDS_MAX))
    }
}

/// Whether a report may give work to machines with free slots.
fn gives_work(report: &Report) -> bool {
    !matches!(report, Report::Offer(_) | Report::Speculative(_))
}

/// The factor of one attempt of one task. Each attempt has a separate random stream.
fn jitter(options: &Options, phase: PhaseId, task: u32, attempt: u16) -> f64 {
    let of_attempt = slackline_model::Seed(options.seed.stream("jitter", u64::from(attempt)));
    let index = u64::from(phase.0) << 32 | u64::from(task);
    noise::factor(&mut random::rng(of_attempt, "task", index), options.jitter)
}

impl Engine for Sim<'_> {
    fn capabilities(&self) -> Capabilities {
        let starts_apart = self.starts.as_ref().is_some_and(|(starts, _)| starts.are_drawn());
        let batch = if self.options.jitter > 0.0 || starts_apart {
            Batch::Task
        } else if self.tracks_all() {
            Batch::Machine
        } else {
            Batch::Speed
        };
        let offers = if self.heartbeats.is_some() { Offers::Heartbeat } else { Offers::Immediate };
        let faults = match (self.machines_may_go, self.options.shared_output) {
            (false, _) => Faults::Never,
            (true, true) => Faults::Tasks,
            (true, false) => Faults::TasksAndOutput,
        };
        let ams = self.starts.as_ref().map(|&(_, ams)| ams);
        Capabilities { batch, faults, offers, lengths: Lengths::Known, ams }
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        while !self.in_vain.is_too_much() {
            let next = [self.queue.next_time(), self.next_arrival(), self.next_offer()];
            let next = next.into_iter().flatten().min()?;
            self.now = next;
            if !self.settle(reports) {
                return Some(self.now);
            }
            self.arrive(reports);
            self.offer(reports);
            if !reports.is_empty() {
                return Some(self.now);
            }
        }
        self.give_up(reports)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        self.ending += u32::from(!start.held);
        let duration = self.duration(start, live);
        let startup = self.startup(start, live);
        let ends = (!start.held).then(|| (start.since + startup + duration).max(self.now));
        let mut report = ends;
        if start.held || self.tracks_all() {
            let (slot_kind, slot) = (live.slot_kind_of(start.phase), start.places[0].first);
            let (machine, _) = live.cluster().machine_of(slot_kind, slot);
            if let Some(heartbeats) = &mut self.heartbeats {
                heartbeats.started(machine, slot_kind, start.count);
            }
            let ends = ends.map(|at| (at, self.reported(machine, at)));
            report = ends.map(|(_, reported)| reported);
            let info = live.phase(start.phase);
            let (slots, started) = (start.count, start.since);
            let spot = Spot { job: info.job, phase: start.phase, task: start.first, slot_kind, slot };
            let tracked = TrackedBatch { started, startup, duration, ends, machine, slots, spot };
            if self.machines_may_go {
                self.due.entry(start.phase).or_insert_with(|| info.tasks().map_or(0, Tasks::count));
            }
            self.tracked.insert(start.row, tracked);
            let attempt =
                Attempt { row: start.row, startup, computes: duration, ends: ends.map(|(at, _)| at) };
            let total = info.tasks().map_or(0, Tasks::count);
            let now = self.now;
            let next = self.seconds.as_mut().and_then(|seconds| seconds.start(spot, attempt, total, now));
            self.look_at(info.job, next);
        }
        if let Some(at) = report {
            self.queue.push(at, Pending::End(start.row));
        }
    }

    fn order(&mut self, order: Order) {
        match order {
            Order::Go { row, since } => {
                let Some(&tracked) = self.tracked.get(&row).filter(|t| t.ends.is_none()) else { return };
                let at = since.max(tracked.started + tracked.startup) + tracked.duration;
                let reported = self.reported(tracked.machine, at);
                self.tracked.insert(row, TrackedBatch { ends: Some((at, reported)), ..tracked });
                let (spot, now) = (tracked.spot, self.now);
                let next = self.seconds.as_mut().and_then(|seconds| seconds.go(spot, at, now));
                self.look_at(spot.job, next);
                self.ending += 1;
                self.queue.push(reported, Pending::End(row));
            }
            // An attempt that the driver did not order starts only when the driver takes it over.
            Order::Refuse(_) => {}
            Order::Hold(row) => {
                let now = self.now;
                if let Some(tracked) = self.tracked.get_mut(&row)
                    && tracked.ends.is_some_and(|(at, _)| at > now)
                {
                    tracked.ends = None;
                    self.ending -= 1;
                }
            }
            Order::Kill(row) => {
                let Some(tracked) = self.tracked.remove(&row) else { return };
                self.ending -= u32::from(tracked.ends.is_some());
                self.leave(&tracked, false);
                self.killed_on(tracked.machine, tracked.spot.slot_kind, tracked.slots);
            }
        }
    }

    fn am(&mut self, order: AmOrder, live: &Instance) {
        let Some((starts, ams)) = &mut self.starts else {
            unreachable!("a simulation without a profile cannot carry out {order:?}");
        };
        match order {
            AmOrder::Submit(job) => {
                self.queue.push(self.now + starts.submission(job), Pending::Submitted(job));
            }
            AmOrder::Start { job, slot, since } => {
                let up = (since + starts.am(job)).max(self.now);
                self.queue.push(up, Pending::AmUp(job));
                self.hold_for_am(job, slot, live);
            }
            AmOrder::End { job, slot, at } => {
                starts.forget(job);
                if let Some(seconds) = &mut self.seconds {
                    seconds.forget(job);
                }
                let mut gone = (at + ams.linger).max(self.now);
                self.hold_for_am(job, slot, live);
                if let Some(&(_, machine)) = self.am_on.get(&job) {
                    gone = self.reported(machine, gone);
                }
                self.queue.push(gone, Pending::AmGone(job));
            }
            AmOrder::Kill(job) => {
                starts.forget(job);
                if let Some(seconds) = &mut self.seconds {
                    seconds.forget(job);
                }
                if let Some(machine) = self.leave_am(job) {
                    self.killed_on(machine, SlotKind::Any, 1);
                }
                return;
            }
        }
        self.ending += 1;
    }

    fn wake_at(&mut self, at: Time) {
        self.queue.push(at.max(self.now), Pending::Wake);
    }

    fn want_offers(&mut self, slot_kinds: [bool; 2]) {
        if let Some(heartbeats) = &mut self.heartbeats {
            heartbeats.want(slot_kinds);
        }
    }

    fn may_bring_flows(&mut self) -> bool {
        self.arrivals.peek().is_some()
    }
}

#[cfg(test)]
mod tests;
