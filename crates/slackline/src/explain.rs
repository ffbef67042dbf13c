//! Why a flow or a job waits: what a schedule made of its time, who held the slots it wanted, and what
//! would make its deadline.
//!
//! A pure function of an instance and a schedule of either form. A flow is done when its last phase is;
//! that phase became ready when the last of those it comes after was done, and so back to the release:
//! this *chain* is the flow's realised critical path, and its steps add up to the response time. Each step
//! is divided by what the phase had meanwhile: no slot although it had tasks to start; fewer slots than it
//! could use; all it could use; or nothing left to start but its last tasks.
//!
//! - `held`: rows of either form as slots that a phase holds for a while, and spans of time;
//! - `phase`: what became of one phase, and who held the slots it wanted;
//! - `deadline`: whether the deadline was met, and what would have made it.

mod deadline;
mod held;
mod phase;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::id::TiVec;
use slackline_model::schedule::{FlowStatus, Outcome, TaskRow};
use slackline_model::tasks::Tasks;
use slackline_model::{FlowId, Instance, JobId, MachineId, PhaseId, Schedule};

pub use deadline::{Deadline, SlotKindNeed, Verdict};
use held::{Extent, Held, Rows};
pub use phase::{Blocked, Blocker, PhaseStory, Waits};

/// What a schedule made of a flow, or of one of its jobs. Times are seconds since the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The flow.
    pub flow: FlowId,
    /// The job that was asked for; without one it is the whole flow.
    pub job: Option<JobId>,
    /// When the flow was released.
    pub released: f64,
    /// When the flow first held a slot, if it ever did; the release of a flow that was done without one.
    pub started: Option<f64>,
    /// When the flow was done, if it ever was.
    pub completed: Option<f64>,
    /// When the last that ran of the flow, or of the job that was asked for, ended; the release if nothing
    /// ran. Of a flow that is not over, now.
    pub until: f64,
    /// Whether the job that was asked for is one of those that decided when the flow was done.
    pub decides: bool,
    /// Whether the schedule gave the flow up.
    pub failed: bool,
    /// Where the flow stands in the order in which flows are to be served.
    pub order: Order,
    /// The phases that decided when it was done, from the release to the last end: the realised critical
    /// path.
    pub chain: Vec<PhaseId>,
    /// What became of each phase of the flow, or of the job, and of those on the chain, in the order of the
    /// flow.
    pub phases: Vec<PhaseStory>,
    /// The chain's waits; they add up to `until` − `released`.
    pub waits: Waits,
    /// Who held the slots that the chain wanted, while it wanted them.
    pub blocked: Blocked,
    /// The deadline, if the flow has one.
    pub deadline: Option<Deadline>,
    /// Tasks with failed attempts, in order of phases and tasks.
    pub failures: Vec<Failure>,
    /// What was lost with machines, in their order.
    pub losses: Vec<Loss>,
}

/// Where a flow stands among all flows, each counted from 1; ties by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// By first start, if it ever started.
    pub started: Option<usize>,
    /// By completion, if it is done.
    pub completed: Option<usize>,
    /// How many flows there are.
    pub of: usize,
}

/// A task with attempts that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// Its phase.
    pub phase: PhaseId,
    /// The task.
    pub task: u32,
    /// How many of its attempts failed.
    pub attempts: u32,
    /// When the last of them ended.
    pub last: f64,
}

/// What a flow, or a job of it, lost on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The machine.
    pub machine: MachineId,
    /// Attempts that were stopped there.
    pub stopped: u64,
    /// Tasks that had finished there, and of which the output was lost.
    pub lost: u64,
}

impl Explanation {
    /// What became of `phase`, if the explanation speaks of it.
    pub fn phase(&self, phase: PhaseId) -> Option<&PhaseStory> {
        self.phases.iter().find(|story| story.phase == phase)
    }

    /// The phases of the chain in order.
    pub fn steps(&self) -> impl Iterator<Item = &PhaseStory> {
        let stories: BTreeMap<PhaseId, &PhaseStory> =
            self.phases.iter().map(|story| (story.phase, story)).collect();
        self.chain.iter().filter_map(move |phase| stories.get(phase).copied())
    }
}

/// When each flow first held a slot and when it was done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowTimes {
    /// First slot, if it ever held one; the release of a flow that was done without one.
    pub started: Option<f64>,
    /// Completion, if it is done.
    pub completed: Option<f64>,
    /// Place in the order of completions, from 1.
    pub place: Option<usize>,
}

/// Explains `flow`, or its job `job`; `None` if the instance has no such flow, or the flow no such job. The
/// instance is the prepared one ([`crate::simulate::prepare`]) of a schedule of tasks. Whether the schedule
/// is feasible is for the judge. O(r log r + p·r·log r) for r rows and the p phases of the flow.
pub fn explain(
    instance: &Instance,
    schedule: &Schedule,
    flow: FlowId,
    job: Option<JobId>,
) -> Option<Explanation> {
    Explainer::new(instance, schedule).explain(flow, job)
}

/// When each flow of a schedule started and was done, and its place. O(r + f log f).
pub fn flow_times(instance: &Instance, schedule: &Schedule) -> TiVec<FlowId, FlowTimes> {
    Facts::new(instance, schedule, None).flows
}

/// Explains flows of one schedule: what they have in common is looked up once.
pub struct Explainer<'a> {
    schedule: &'a Schedule,
    facts: Facts<'a>,
}

/// A task that is at work: it has held a slot since then, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskNow {
    /// Its phase.
    pub phase: PhaseId,
    /// Since when.
    pub since: f64,
}

/// What goes on besides what a schedule has.
#[derive(Clone, Copy)]
pub struct GoesOn<'a> {
    /// What holds slots now.
    pub at_work: &'a [TaskNow],
    /// Now, seconds.
    pub now: f64,
    /// Whether a flow is not over.
    pub open: &'a dyn Fn(FlowId) -> bool,
}

/// What a phase held of slots in a span of time, of a schedule whose rows were summed up. Times are seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummedRow {
    /// The phase.
    pub phase: PhaseId,
    /// From.
    pub start: f64,
    /// To.
    pub end: f64,
    /// How many slots.
    pub slots: u32,
    /// When the phase took slots for the last time: from then on nothing was left to start.
    pub last_start: f64,
}

impl<'a> Explainer<'a> {
    /// The same of a schedule whose rows are only known as sums; its flows say which of them are done. Shares
    /// of slots are as exact as the sums, and what was tried again is not told. O(r log r) for r sums.
    pub fn of_sums(instance: &'a Instance, schedule: &'a Schedule, sums: Vec<SummedRow>) -> Self {
        Self { schedule, facts: Facts::of_sums(instance, schedule, sums) }
    }

    /// Looks up what explanations are made of. O(r log r) for r rows.
    pub fn new(instance: &'a Instance, schedule: &'a Schedule) -> Self {
        Self { schedule, facts: Facts::new(instance, schedule, None) }
    }

    /// The same of what goes on: the schedule has what has ended.
    pub fn so_far(instance: &'a Instance, schedule: &'a Schedule, goes_on: &GoesOn<'_>) -> Self {
        Self { schedule, facts: Facts::new(instance, schedule, Some(goes_on)) }
    }

    /// The workload.
    pub fn instance(&self) -> &'a Instance {
        self.facts.instance
    }

    /// The policy that made the schedule.
    pub fn policy(&self) -> &'a str {
        &self.schedule.policy
    }

    /// When each flow started and was done, and its place.
    pub fn flow_times(&self) -> &TiVec<FlowId, FlowTimes> {
        &self.facts.flows
    }

    /// As [`explain`]. O(r + p·r·log r) for r rows and the p phases of the flow.
    pub fn explain(&self, flow: FlowId, job: Option<JobId>) -> Option<Explanation> {
        let (instance, schedule, facts) = (self.facts.instance, self.schedule, &self.facts);
        instance.flows().get(flow)?;
        if job.is_some_and(|job| instance.jobs().get(job).is_none_or(|job| job.flow != flow)) {
            return None;
        }
        let jobs: Vec<JobId> = job.map_or_else(|| instance.flow(flow).jobs().collect(), |job| vec![job]);
        let chain = facts.chain(&jobs);
        let on_chain: BTreeSet<PhaseId> = chain.iter().copied().collect();
        let is_of = |phase: PhaseId| job.is_none_or(|job| job == instance.phase(phase).job);
        let wanted = |&phase: &PhaseId| is_of(phase) || on_chain.contains(&phase);
        let all = instance.topological_of(flow).iter().flat_map(|&job| instance.job(job).phases());
        let phases: Vec<PhaseStory> = all.filter(wanted).map(|phase| facts.story(phase)).collect();
        let released = instance.flow(flow).release.seconds();
        let of_flow = facts.flows[flow];
        let started = facts.rank(flow, |times| times.started);
        let mut explanation = Explanation {
            flow,
            job,
            released,
            started: of_flow.started,
            completed: of_flow.completed,
            until: chain.last().map_or(released, |&last| facts.extents[last].until.unwrap_or(released)),
            decides: true,
            failed: schedule.flows.iter().any(|row| row.flow == flow && row.status == FlowStatus::Failed),
            order: Order { started, completed: of_flow.place, of: instance.flows().len() },
            chain,
            phases,
            waits: Waits::default(),
            blocked: Blocked::default(),
            deadline: None,
            failures: failures(instance, schedule, flow, job),
            losses: losses(instance, schedule, flow, job),
        };
        let steps: Vec<&PhaseStory> = explanation.steps().collect();
        let waits = steps.iter().fold(Waits::default(), |sum, story| sum + story.waits);
        let blocked = Blocked::sum(steps.iter().map(|story| &story.blocked));
        (explanation.waits, explanation.blocked) = (waits, blocked);
        if let Some(job) = job {
            // Of a deadline the whole flow decides.
            let whole = self.explain(flow, None)?;
            explanation.decides = whole.chain.iter().any(|&phase| instance.phase(phase).job == job);
            explanation.deadline = whole.deadline;
        } else {
            explanation.deadline = deadline::judge(facts, &explanation);
        }
        Some(explanation)
    }
}

/// What is looked up in a schedule, made once.
struct Facts<'a> {
    instance: &'a Instance,
    held: Rows,
    /// From when to when masters of jobs held slots.
    masters: Vec<(f64, f64)>,
    /// Whether these are allocations, whose tasks are not told apart.
    is_plan: bool,
    extents: TiVec<PhaseId, Extent>,
    flows: TiVec<FlowId, FlowTimes>,
    /// By phase, when it took slots for the last time, if rows do not tell.
    last_starts: BTreeMap<PhaseId, f64>,
}

impl<'a> Facts<'a> {
    fn new(instance: &'a Instance, schedule: &Schedule, goes_on: Option<&GoesOn<'_>>) -> Self {
        let mut held = held::of(instance, schedule);
        if let Some(GoesOn { at_work, now, .. }) = goes_on {
            let known = at_work.iter().filter(|task| instance.phases().contains(task.phase));
            held.extend(known.map(|task| held::until(task, *now)));
        }
        let mut extents = held::extents(instance, &held, &|_| false);
        if let Some(GoesOn { open, now, .. }) = goes_on {
            held::count_until(*now, &mut extents, |phase| open(instance.flow_of(phase)));
        }
        Self::of_held(instance, schedule, held, extents)
    }

    fn of_sums(instance: &'a Instance, schedule: &Schedule, sums: Vec<SummedRow>) -> Self {
        let last_starts = sums.iter().map(|row| (row.phase, row.last_start)).collect();
        let held = |row: SummedRow| {
            let SummedRow { phase, start, end, slots, .. } = row;
            Held { phase, start, end, slots, outcome: None }
        };
        let known = sums.into_iter().filter(|row| instance.phases().contains(row.phase));
        let held: Vec<Held> = known.map(held).collect();
        let mut is_done: TiVec<FlowId, bool> = vec![false; instance.flows().len()].into();
        for row in schedule.flows.iter().filter(|row| row.status == FlowStatus::Done) {
            is_done.get_mut(row.flow).into_iter().for_each(|is_done| *is_done = true);
        }
        let extents = held::extents(instance, &held, &|phase| is_done[instance.flow_of(phase)]);
        Self { last_starts, ..Self::of_held(instance, schedule, held, extents) }
    }

    fn of_held(
        instance: &'a Instance,
        schedule: &Schedule,
        held: Vec<Held>,
        extents: TiVec<PhaseId, Extent>,
    ) -> Self {
        let mut flows: TiVec<FlowId, FlowTimes> = vec![FlowTimes::default(); instance.flows().len()].into();
        instance.flows().keys().for_each(|flow| flows[flow] = times(instance, &extents, flow));
        let is_plan = held::is_plan(&held);
        let on_slots = schedule.masters.iter().filter(|row| row.slot.is_some());
        let masters = on_slots.map(|row| (row.start.seconds(), row.end.seconds())).collect();
        let last_starts = BTreeMap::new();
        let mut facts =
            Self { instance, held: Rows::new(held), masters, is_plan, extents, flows, last_starts };
        for row in schedule.flows.iter().filter(|row| row.status == FlowStatus::Failed) {
            if let Some(times) = facts.flows.get_mut(row.flow) {
                times.completed = None;
            }
        }
        let done = facts.flows.iter_enumerated().filter_map(|(flow, times)| Some((times.completed?, flow)));
        let mut order: Vec<(f64, FlowId)> = done.collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (k, (_, flow)) in order.into_iter().enumerate() {
            facts.flows[flow].place = Some(k + 1);
        }
        facts
    }

    /// The place of `flow` by some time, counted from 1.
    fn rank(&self, flow: FlowId, time: impl Fn(&FlowTimes) -> Option<f64>) -> Option<usize> {
        let own = (time(&self.flows[flow])?, flow);
        let before = |(other, times): (FlowId, &FlowTimes)| {
            time(times).is_some_and(|at| at.total_cmp(&own.0).then(other.cmp(&own.1)).is_lt())
        };
        Some(1 + self.flows.iter_enumerated().filter(|&entry| before(entry)).count())
    }

    /// The phase that a phase waited for last: the maps of its job, or the last phase of the job before it
    /// that was done last. None if nothing comes before it, or if its release came later still.
    fn gate(&self, phase: PhaseId) -> Option<PhaseId> {
        let of = self.instance.phase(phase);
        let job = self.instance.job(of.job);
        if job.reduce == Some(phase)
            && let Some(map) = job.map
        {
            return Some(map);
        }
        let before = job.after.iter().filter_map(|&before| self.last_of(self.instance.job(before).phases()));
        self.last_of(before).filter(|&last| self.end(last) > self.instance.flow(job.flow).release.seconds())
    }

    /// The phase that ends last; of several the one that comes last.
    fn last_of(&self, phases: impl Iterator<Item = PhaseId>) -> Option<PhaseId> {
        phases.max_by(|&a, &b| self.end(a).total_cmp(&self.end(b)))
    }

    fn end(&self, phase: PhaseId) -> f64 {
        self.extents[phase].until.unwrap_or(f64::NEG_INFINITY)
    }

    /// From the phase of `jobs` that ended last back to the release, in the order of time; empty if nothing
    /// of them ran.
    fn chain(&self, jobs: &[JobId]) -> Vec<PhaseId> {
        let phases = jobs.iter().flat_map(|&job| self.instance.job(job).phases());
        let ran = phases.filter(|&phase| self.extents[phase].until.is_some());
        let mut chain = Vec::new();
        let mut next = self.last_of(ran);
        while let Some(phase) = next {
            chain.push(phase);
            next = self.gate(phase);
        }
        chain.reverse();
        chain
    }
}

/// First start and, if all phases are done, last end.
fn times(instance: &Instance, extents: &TiVec<PhaseId, Extent>, flow: FlowId) -> FlowTimes {
    let phases =
        || instance.flow(flow).jobs().flat_map(|job| instance.job(job).phases()).map(|p| &extents[p]);
    let release = instance.flow(flow).release.seconds();
    let completed =
        phases().try_fold(release, |last, extent| Some(last.max(extent.end.filter(|_| extent.done)?)));
    let started = phases().filter_map(|extent| extent.start).reduce(f64::min);
    FlowTimes { started: started.or(completed), completed, place: None }
}

/// The rows of a flow, or of one of its jobs.
fn rows_of<'a>(
    instance: &'a Instance,
    schedule: &'a Schedule,
    flow: FlowId,
    job: Option<JobId>,
) -> impl Iterator<Item = &'a TaskRow> {
    let is_of = move |of: JobId| job.map_or_else(|| instance.job(of).flow == flow, |job| job == of);
    let rows = schedule.tasks.rows().iter();
    rows.filter(move |row| instance.phases().get(row.phase).is_some_and(|phase| is_of(phase.job)))
}

/// Failed attempts task by task.
fn failures(instance: &Instance, schedule: &Schedule, flow: FlowId, job: Option<JobId>) -> Vec<Failure> {
    let mut tasks: BTreeMap<(PhaseId, u32), (u32, f64)> = BTreeMap::new();
    for row in rows_of(instance, schedule, flow, job).filter(|row| row.outcome == Outcome::Failed) {
        let tasks_of = instance.phase(row.phase).tasks().map_or(0, Tasks::count);
        for task in row.first..row.first.saturating_add(row.count).min(tasks_of) {
            let entry = tasks.entry((row.phase, task)).or_insert((0, 0.0));
            *entry = (entry.0 + 1, entry.1.max(row.end.seconds()));
        }
    }
    let failure = |((phase, task), (attempts, last))| Failure { phase, task, attempts, last };
    tasks.into_iter().map(failure).collect()
}

/// Attempts that were stopped and output that was lost, machine by machine.
fn losses(instance: &Instance, schedule: &Schedule, flow: FlowId, job: Option<JobId>) -> Vec<Loss> {
    let cluster = instance.cluster();
    let mut machines: BTreeMap<MachineId, Loss> = BTreeMap::new();
    for row in rows_of(instance, schedule, flow, job) {
        if !matches!(row.outcome, Outcome::Killed | Outcome::Lost) {
            continue;
        }
        let slot_kind = instance.slot_kind_of(row.phase);
        // What cannot be on any machine is the judge's business.
        let all = cluster.slots(slot_kind);
        let slots = schedule.tasks.places(row).iter().flat_map(|range| range.first..range.end().min(all));
        for slot in slots {
            let (machine, _) = cluster.machine_of(slot_kind, slot);
            let loss = machines.entry(machine).or_insert(Loss { machine, stopped: 0, lost: 0 });
            match row.outcome {
                Outcome::Lost => loss.lost += 1,
                _ => loss.stopped += 1,
            }
        }
    }
    machines.into_values().collect()
}
