//! The policy: free slots are dealt one by one, as Hadoop gives containers, and granted phase by phase.

use std::collections::VecDeque;

use slackline_model::{JobId, MachineId, PhaseId, SlotKind};
use slackline_policy::unfinished::{ams, holders, listed, slots};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, View};

use super::Container;
use super::book::{AppsLimit, Book, Counts, QueueAt};

/// Whose turn it is: what differs between the schedulers.
pub(super) trait Rules {
    /// The name of the policy.
    const NAME: &'static str;

    /// The leaf of a flow's applications, or why there is none.
    fn leaf(&mut self, book: &mut Book, applicant: Applicant<'_>) -> Result<QueueAt, String>;

    /// The priority of an application of a leaf whose flow has that one, or none.
    fn priority(&self, _leaf: QueueAt, _of_flow: Option<u32>) -> u32 {
        0
    }

    /// The cluster has `slots` slots from now on.
    fn resize(&mut self, book: &Book, slots: u32);

    /// Sets the limits on running applications in the book that result from the slots of ApplicationMasters.
    fn limit_ams(&self, _book: &mut Book) {}

    /// The path of a queue.
    fn path(&self, at: QueueAt) -> &str;

    /// Slots that a queue may hold.
    fn most(&self, book: &Book, at: QueueAt) -> u32;

    /// The application that gets the next slot, among those that are accepted.
    fn next(&self, book: &Book, slot_kind: SlotKind, accept: &mut dyn FnMut(JobId) -> bool) -> Option<JobId>;

    /// How many of the next slots certainly go to the application that gets the first of them, one after the
    /// other, if it is accepted for `most`: from 1 to `most`.
    fn in_a_row(&self, book: &Book, slot_kind: SlotKind, job: JobId, most: u32) -> u32;
}

/// What a flow says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applicant<'a> {
    pub(super) flow: &'a str,
    pub(super) pool: Option<&'a str>,
    pub(super) user: Option<&'a str>,
}

/// The user of flows that have none.
const NO_USER: &str = "";

/// A scheduler of Hadoop's as a policy.
#[derive(Clone, Debug)]
pub(super) struct Scheduler<R> {
    rules: R,
    book: Book,
    slots: Option<u32>,
    deal: Deal,
    /// Applications that could take no slot when it was their turn, until something happens.
    asleep: Vec<JobId>,
    /// Those among them that were found so at the last slot; empty between slots.
    tired: Vec<JobId>,
    failure: Option<String>,
}

/// Slots that were dealt and not granted yet.
#[derive(Clone, Debug, Default)]
struct Deal {
    /// The slots: their slot kind, and their machine if it is one.
    of: Option<(SlotKind, Option<MachineId>)>,
    /// How many of each phase; the order in which they are granted is that of their first.
    phases: VecDeque<(PhaseId, u32)>,
    /// The place of a phase in `phases`; it may be out of date.
    place: IdTable<PhaseId, usize>,
    /// The phase that was granted last, with the tasks that run if all that were granted have started.
    granted: Option<(PhaseId, u32)>,
}

impl<R: Rules> Scheduler<R> {
    pub(super) fn of(rules: R, book: Book) -> Self {
        Self {
            rules,
            book,
            slots: None,
            deal: Deal::default(),
            asleep: Vec::new(),
            tired: Vec::new(),
            failure: None,
        }
    }

    /// A phase is ready: its job is an application, if it was none yet.
    fn submit(&mut self, phase: PhaseId, view: &View<'_>) {
        let job = view.instance.phase(phase).job;
        if self.book.knows(job) || self.failure.is_some() {
            return;
        }
        let flow = view.instance.flow(view.instance.job(job).flow);
        let pool = flow.pool.map(|pool| view.instance.pools()[pool].id.as_str());
        let user = flow.user.as_deref();
        match self.rules.leaf(&mut self.book, Applicant { flow: &flow.id, pool, user }) {
            Ok(leaf) => {
                let priority = self.rules.priority(leaf, flow.priority);
                let user = user.unwrap_or(NO_USER);
                self.limit_ams(view);
                self.book.submit(job, leaf, user, priority, view.now, flow.release);
            }
            Err(why) => self.failure = Some(why),
        }
    }

    /// What a job uses and wants by the view, and nothing that was dealt to it.
    fn look(&mut self, job: JobId, view: &View<'_>) {
        if !self.book.knows(job) {
            return;
        }
        let mut counts = Counts { used: view.held.am_of(job), ..Counts::default() };
        for phase in view.instance.job(job).phases() {
            let state = view.phase(phase);
            counts.used += state.running();
            if state.is_ready() && state.unstarted() > 0 {
                counts.wants += state.unstarted();
                let has_room = state.running() < view.instance.phase(phase).cap;
                counts.open[view.instance.slot_kind_of(phase).index()] |= has_room;
            }
        }
        self.book.set(job, counts);
    }

    /// Why a queue gives a job no more slots, if it is full: how many it may hold, and who holds them.
    fn full_queue(&self, leaf: QueueAt, view: &View<'_>) -> Option<String> {
        let Self { rules, book, .. } = self;
        let at = book.up(leaf).find(|&at| book.queues[at].used >= rules.most(book, at))?;
        let (most, path) = (rules.most(book, at), rules.path(at));
        if most == 0 {
            let Container { memory, vcores } = book.container;
            let cores = if vcores == 1 { "1 virtual core" } else { &format!("{vcores} virtual cores") };
            return Some(format!(
                "queue {path} may have no slot: its maximum is less than a container of {memory} MiB and {cores}"
            ));
        }
        let is_in = |job| book.place(job).is_some_and(|(leaf, _)| book.up(leaf).any(|above| above == at));
        let may = slots(most);
        let of_ams = holders(view, is_in);
        let holds = |job| is_in(job) && book.counts(job).used > view.held.am_of(job);
        let flows = view.instance.flows().iter().filter(|flow| flow.jobs().any(holds));
        let of_tasks: Vec<&str> = flows.map(|flow| flow.id.as_str()).collect();
        let who = match (of_ams.len(), of_tasks.is_empty()) {
            (_, false) => format!("tasks of {} hold", listed(&of_tasks)),
            (1, true) => format!("{} holds", ams(&of_ams)),
            (_, true) => format!("{} hold", ams(&of_ams)),
        };
        Some(format!("queue {path} may have {may}, which {who}"))
    }

    fn leave(&mut self, job: JobId, view: &View<'_>) {
        self.limit_ams(view);
        for started in self.book.leave(job) {
            self.look(started, view);
        }
    }

    /// Limits the AMs of applications where they hold slots: Hadoop does when one comes or goes, or
    /// machines do.
    fn limit_ams(&mut self, view: &View<'_>) {
        if view.held.has_ams() {
            self.rules.limit_ams(&mut self.book);
        }
    }

    /// Whether all that was granted has started; what it has is in the book then.
    fn has_started(&mut self, view: &View<'_>) -> bool {
        let Some((phase, running)) = self.deal.granted.take() else { return true };
        let as_dealt = view.phase(phase).running() == running;
        if !as_dealt {
            self.look(view.instance.phase(phase).job, view);
        }
        as_dealt
    }

    /// Gives up what was dealt and not granted.
    fn undo(&mut self, view: &View<'_>) {
        self.has_started(view);
        while let Some((phase, _)) = self.deal.phases.pop_front() {
            self.look(view.instance.phase(phase).job, view);
        }
        self.deal.of = None;
    }

    /// Deals all slots that ask.
    fn deal(&mut self, ask: &Ask<'_>, view: &View<'_>) {
        self.deal.of = Some((ask.slot_kind, ask.machine));
        let mut left = ask.slots;
        while left > 0 {
            let Self { rules, book, deal, tired, .. } = self;
            let mut found = None;
            let job = rules.next(book, ask.slot_kind, &mut |job| {
                found = deal.open_phase(job, ask, view);
                if found.is_none() && !is_skipped(job, ask, view) {
                    tired.push(job);
                }
                found.is_some()
            });
            while let Some(job) = self.tired.pop() {
                let mut counts = self.book.counts(job);
                counts.open[ask.slot_kind.index()] = false;
                self.book.set(job, counts);
                self.asleep.push(job);
            }
            let (Some(job), Some((phase, most))) = (job, found) else { break };
            let n = self.rules.in_a_row(&self.book, ask.slot_kind, job, most.min(left));
            left -= n;
            self.deal.add(phase, n);
            let mut counts = self.book.counts(job);
            counts.used += n;
            counts.wants = counts.wants.saturating_sub(n);
            if n == most && self.deal.open_phase(job, ask, view).is_none() && !is_skipped(job, ask, view) {
                counts.open[ask.slot_kind.index()] = false;
                if self.deal.is_barred(job, ask, view) {
                    self.asleep.push(job);
                }
            }
            self.book.set(job, counts);
        }
    }
}

impl Deal {
    /// The phase of a job whose task would take the next slot, and how many of its tasks could: the first of
    /// those that have one, maps before reduces.
    fn open_phase(&self, job: JobId, ask: &Ask<'_>, view: &View<'_>) -> Option<(PhaseId, u32)> {
        view.instance.job(job).phases().find_map(|phase| {
            let is_asked = view.instance.slot_kind_of(phase) == ask.slot_kind && !ask.skip.contains(&phase);
            let dealt = self.at(phase).map_or(0, |at| self.phases[at].1);
            (is_asked && view.runnable(phase) > dealt).then(|| (phase, view.runnable(phase) - dealt))
        })
    }

    /// Whether a job has tasks that may not take slots, although their phase is ready and below its cap.
    fn is_barred(&self, job: JobId, ask: &Ask<'_>, view: &View<'_>) -> bool {
        view.instance.job(job).phases().any(|phase| {
            let state = view.phase(phase);
            let dealt = self.at(phase).map_or(0, |at| self.phases[at].1);
            view.instance.slot_kind_of(phase) == ask.slot_kind
                && state.is_ready()
                && state.unstarted() > dealt
                && state.running() + dealt < view.instance.phase(phase).cap
        })
    }

    /// The place of a phase.
    fn at(&self, phase: PhaseId) -> Option<usize> {
        Some(self.place[phase]).filter(|&at| self.phases.get(at).is_some_and(|&(of, _)| of == phase))
    }

    /// Tasks of a phase are dealt.
    fn add(&mut self, phase: PhaseId, n: u32) {
        if let Some(at) = self.at(phase) {
            self.phases[at].1 += n;
        } else {
            self.place[phase] = self.phases.len();
            self.phases.push_back((phase, n));
        }
    }
}

/// Whether a phase of a job waits for slots near its input.
fn is_skipped(job: JobId, ask: &Ask<'_>, view: &View<'_>) -> bool {
    !ask.skip.is_empty() && view.instance.job(job).phases().any(|phase| ask.skip.contains(&phase))
}

impl<R: Rules + Clone + 'static> Policy for Scheduler<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn limit(&self, job: JobId, view: &View<'_>) -> Option<String> {
        let path = |at| self.rules.path(at);
        let applications = |n| if n == 1 { "1 application".to_owned() } else { format!("{n} applications") };
        let (leaf, _) = self.book.place(job)?;
        // Of two reasons the one that ends last is reported: a full queue keeps its waiting applications from
        // running.
        self.full_queue(leaf, view).or_else(|| {
            Some(match self.book.apps_limit(job)? {
                AppsLimit::Queue(at, n) => {
                    format!("queue {} runs {}, its limit", path(at), applications(n))
                }
                AppsLimit::User(name, n) => {
                    format!("user {name:?} runs {}, the limit of a user", applications(n))
                }
                AppsLimit::Ams(at, n) => {
                    let n = applications(n);
                    format!("queue {} runs {n}, the limit of its slots for ApplicationMasters", path(at))
                }
            })
        })
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.undo(view);
        while let Some(job) = self.asleep.pop() {
            self.look(job, view);
        }
        for event in events {
            match *event {
                Event::PhaseReady(phase) => {
                    self.submit(phase, view);
                    self.look(view.instance.phase(phase).job, view);
                }
                Event::TasksDone { phase, .. }
                | Event::TasksLost { phase, .. }
                | Event::TaskRuns { phase, .. }
                | Event::PhaseDone(phase) => self.look(view.instance.phase(phase).job, view),
                Event::JobDone(job) => self.leave(job, view),
                Event::FlowFailed(flow) | Event::FlowDone(flow) => {
                    for job in view.instance.flow(flow).jobs() {
                        self.leave(job, view);
                        self.deal.place.forget(view.instance.job(job).phases());
                    }
                }
                Event::FlowArrived(_)
                | Event::MachineDown(_)
                | Event::MachineUp(_)
                | Event::MachineJoined(_)
                | Event::MachineLeft(_)
                | Event::Wake => {}
            }
        }
        let slot_kinds = view.instance.cluster().slot_kinds();
        let slots =
            slot_kinds.iter().map(|&slot_kind| view.state.alive(slot_kind)).sum::<u32>() + view.held.ams();
        if self.slots.replace(slots) != Some(slots) {
            self.rules.resize(&self.book, slots);
            self.limit_ams(view);
            for started in self.book.start_waiting() {
                self.look(started, view);
            }
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let is_same_deal = self.has_started(view)
            && self.deal.of == Some((ask.slot_kind, ask.machine))
            && self
                .deal
                .phases
                .front()
                .is_some_and(|&(phase, _)| view.runnable(phase) > 0 && !ask.skip.contains(&phase));
        if !is_same_deal {
            self.undo(view);
            self.deal(ask, view);
        }
        let (phase, tasks) = self.deal.phases.pop_front()?;
        // Fewer may start: than were dealt, if reduces that wait for maps have taken what they may.
        self.deal.granted = Some((phase, view.phase(phase).running() + tasks));
        Some(Grant { phase, tasks })
    }
}
