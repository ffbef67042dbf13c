//! Explains why a flow or a job waits: how its time divides, which flows held the slots that it wanted, and
//! what would let it meet its deadline.
//!
//! The explanation is a pure function of an instance and a schedule of either form. A flow finishes with its
//! last phase. That phase became ready when the last of its predecessors finished, and so back to the
//! release. This *chain* is the realised critical path of the flow, and its steps add up to the response
//! time. Each step is divided by the slots that the phase had: no slot although it had tasks to start; fewer
//! slots than it could use; all slots that it could use; or no more tasks to start, only its last tasks
//! running.
//!
//! - `slot_intervals`: rows of either form as slots that a phase holds for some time, and spans of time;
//! - `phase`: the explanation of one phase, and the holders of the slots that it wanted;
//! - `deadline`: whether the deadline was met, and what would have met it.

mod deadline;
mod phase;
mod slot_intervals;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::id::TiVec;
use slackline_model::schedule::{FlowResult, Outcome, TaskRow};
use slackline_model::tasks::Tasks;
use slackline_model::{FlowId, Instance, JobId, MachineId, PhaseId, Schedule};

pub use deadline::{Deadline, SlotKindNeed, Verdict};
pub use phase::{Blocked, Blocker, PhaseStory, Waits};
use slot_intervals::{Extent, Rows, SlotInterval};

/// The explanation of a flow, or of one of its jobs. Times are in seconds since the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The flow.
    pub flow: FlowId,
    /// The explained job; `None` for the whole flow.
    pub job: Option<JobId>,
    /// The release of the flow.
    pub released: f64,
    /// The first time at which the flow held a slot, if any. The release, for a flow that finished without a
    /// slot.
    pub started: Option<f64>,
    /// The completion of the flow, if it finished.
    pub completed: Option<f64>,
    /// The end of the last attempt of the flow, or of the explained job; the release if no attempt ran. For
    /// an unfinished flow, the current time.
    pub until: f64,
    /// Whether the explained job is on the chain that determined the completion of the flow.
    pub decides: bool,
    /// Whether the flow failed.
    pub failed: bool,
    /// The rank of the flow.
    pub order: Order,
    /// The phases that determined the completion, from the release to the last end: the realised critical
    /// path.
    pub chain: Vec<PhaseId>,
    /// The explanations of the phases of the flow, or of the job, and of those on the chain, in the order of
    /// the flow.
    pub phases: Vec<PhaseStory>,
    /// The waits of the chain. They add up to `until` − `released`.
    pub waits: Waits,
    /// The holders of the slots that the chain wanted, during that time.
    pub blocked: Blocked,
    /// The deadline, if the flow has one.
    pub deadline: Option<Deadline>,
    /// Tasks with failed attempts, in order of phases and tasks.
    pub failures: Vec<Failure>,
    /// For a failed flow: the job whose failure prevented it from finishing, if it is known.
    pub cause: Option<FailureCause>,
    /// The losses on machines, in the order of machines.
    pub losses: Vec<Loss>,
}

/// The rank of a flow among all flows, counted from 1; ties by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// By first start, if it started.
    pub started: Option<usize>,
    /// By completion, if it finished.
    pub completed: Option<usize>,
    /// The number of flows.
    pub of: usize,
}

/// The failed job that prevented a flow from finishing: of the flow, or of a flow whose output it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCause {
    /// The job.
    pub job: JobId,
    /// Why it failed, if that is known.
    pub reason: Option<String>,
}

/// A task with attempts that failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// Its phase.
    pub phase: PhaseId,
    /// The task.
    pub task: u32,
    /// The number of failed attempts.
    pub attempts: u32,
    /// The end of the last one.
    pub last: f64,
}

/// The losses of a flow, or of one of its jobs, on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The machine.
    pub machine: MachineId,
    /// The number of attempts killed there.
    pub stopped: u64,
    /// The number of tasks that had finished there and whose output was lost.
    pub lost: u64,
}

impl Explanation {
    /// The explanation of `phase`, if there is one.
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

/// The first start and the completion of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowTimes {
    /// The first time at which it held a slot, if any. The release, for a flow that finished without a slot.
    pub started: Option<f64>,
    /// Its completion, if it finished.
    pub completed: Option<f64>,
    /// Its rank by completion, from 1.
    pub place: Option<usize>,
}

/// Explains `flow`, or its job `job`. `None` if the instance has no such flow, or the flow has no such job.
/// For a schedule of tasks, the instance is the prepared one ([`crate::simulate::prepare`]). This function
/// does not check whether the schedule is feasible. O(r log r + p·r·log r) for r rows and the p phases of the
/// flow.
pub fn explain(
    instance: &Instance,
    schedule: &Schedule,
    flow: FlowId,
    job: Option<JobId>,
) -> Option<Explanation> {
    Explainer::new(instance, schedule).explain(flow, job)
}

/// The times of each flow of a schedule. O(r + f log f).
pub fn flow_times(instance: &Instance, schedule: &Schedule) -> TiVec<FlowId, FlowTimes> {
    Facts::new(instance, schedule, None).flows
}

/// Explains several flows of one schedule. The common data is calculated once.
pub struct Explainer<'a> {
    schedule: &'a Schedule,
    facts: Facts<'a>,
}

/// A running task, with the time since which it holds a slot, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskNow {
    /// Its phase.
    pub phase: PhaseId,
    /// Since when.
    pub since: f64,
}

/// The running tasks and the active flows of an unfinished schedule.
#[derive(Clone, Copy)]
pub struct Unfinished<'a> {
    /// The running tasks.
    pub at_work: &'a [TaskNow],
    /// The current time, seconds.
    pub now: f64,
    /// Whether a flow is unfinished.
    pub open: &'a dyn Fn(FlowId) -> bool,
}

/// The slots of a phase during a span of time, for a schedule whose rows were summed up. Times are in
/// seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummedRow {
    /// The phase.
    pub phase: PhaseId,
    /// From.
    pub start: f64,
    /// To.
    pub end: f64,
    /// The number of slots.
    pub slots: u32,
    /// The last time at which the phase took slots. From then on it had no tasks to start.
    pub last_start: f64,
}

impl<'a> Explainer<'a> {
    /// As [`Self::new`], for a schedule of which only sums are known. Its flows say which of them finished.
    /// Shares of slots are as exact as the sums, and retries are not reported. O(r log r) for r sums.
    pub fn of_sums(instance: &'a Instance, schedule: &'a Schedule, sums: Vec<SummedRow>) -> Self {
        Self { schedule, facts: Facts::of_sums(instance, schedule, sums) }
    }

    /// Calculates the data of explanations. O(r log r) for r rows.
    pub fn new(instance: &'a Instance, schedule: &'a Schedule) -> Self {
        Self { schedule, facts: Facts::new(instance, schedule, None) }
    }

    /// As [`Self::new`], for an unfinished schedule, which has only the attempts that have ended.
    pub fn so_far(instance: &'a Instance, schedule: &'a Schedule, unfinished: &Unfinished<'_>) -> Self {
        Self { schedule, facts: Facts::new(instance, schedule, Some(unfinished)) }
    }

    /// The workload.
    pub fn instance(&self) -> &'a Instance {
        self.facts.instance
    }

    /// The policy that made the schedule.
    pub fn policy(&self) -> &'a str {
        &self.schedule.policy
    }

    /// The times and the rank of each flow.
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
            failed: schedule.flows.iter().any(|row| row.flow == flow && row.status == FlowResult::Failed),
            order: Order { started, completed: of_flow.place, of: instance.flows().len() },
            chain,
            phases,
            waits: Waits::default(),
            blocked: Blocked::default(),
            deadline: None,
            failures: failures(instance, schedule, flow, job),
            cause: None,
            losses: losses(instance, schedule, flow, job),
        };
        if explanation.failed {
            let failures = failures(instance, schedule, flow, None).into_iter();
            let last = failures
                .filter(|failure| !facts.extents[failure.phase].done)
                .max_by(|a, b| a.last.total_cmp(&b.last));
            let job = last.map(|failure| instance.phase(failure.phase).job);
            explanation.cause = job.map(|job| FailureCause { job, reason: None });
        }
        let steps: Vec<&PhaseStory> = explanation.steps().collect();
        let waits = steps.iter().fold(Waits::default(), |sum, story| sum + story.waits);
        let blocked = Blocked::sum(steps.iter().map(|story| &story.blocked));
        (explanation.waits, explanation.blocked) = (waits, blocked);
        if let Some(job) = job {
            // The deadline is that of the whole flow.
            let whole = self.explain(flow, None)?;
            explanation.decides = whole.chain.iter().any(|&phase| instance.phase(phase).job == job);
            explanation.deadline = whole.deadline;
        } else {
            explanation.deadline = deadline::judge(facts, &explanation);
        }
        Some(explanation)
    }
}

/// The data of a schedule, calculated once.
struct Facts<'a> {
    instance: &'a Instance,
    held: Rows,
    /// The times during which ApplicationMasters held slots.
    ams: Vec<(f64, f64)>,
    /// Whether the rows are allocations, which do not distinguish tasks.
    is_plan: bool,
    extents: TiVec<PhaseId, Extent>,
    flows: TiVec<FlowId, FlowTimes>,
    /// By phase: the last time at which it took slots, if rows do not show it.
    last_starts: BTreeMap<PhaseId, f64>,
}

impl<'a> Facts<'a> {
    fn new(instance: &'a Instance, schedule: &Schedule, unfinished: Option<&Unfinished<'_>>) -> Self {
        let mut held = slot_intervals::of(instance, schedule);
        if let Some(Unfinished { at_work, now, .. }) = unfinished {
            let known = at_work.iter().filter(|task| instance.phases().contains(task.phase));
            held.extend(known.map(|task| slot_intervals::until(task, *now)));
        }
        let mut extents = slot_intervals::extents(instance, &held, &|_| false);
        if let Some(Unfinished { open, now, .. }) = unfinished {
            slot_intervals::count_until(*now, &mut extents, |phase| open(instance.flow_of(phase)));
        }
        Self::of_held(instance, schedule, held, extents)
    }

    fn of_sums(instance: &'a Instance, schedule: &Schedule, sums: Vec<SummedRow>) -> Self {
        let last_starts = sums.iter().map(|row| (row.phase, row.last_start)).collect();
        let held = |row: SummedRow| {
            let SummedRow { phase, start, end, slots, .. } = row;
            SlotInterval { phase, start, end, slots, outcome: None }
        };
        let known = sums.into_iter().filter(|row| instance.phases().contains(row.phase));
        let held: Vec<SlotInterval> = known.map(held).collect();
        let mut is_done: TiVec<FlowId, bool> = vec![false; instance.flows().len()].into();
        for row in schedule.flows.iter().filter(|row| row.status == FlowResult::Done) {
            is_done.get_mut(row.flow).into_iter().for_each(|is_done| *is_done = true);
        }
        let extents = slot_intervals::extents(instance, &held, &|phase| is_done[instance.flow_of(phase)]);
        Self { last_starts, ..Self::of_held(instance, schedule, held, extents) }
    }

    fn of_held(
        instance: &'a Instance,
        schedule: &Schedule,
        held: Vec<SlotInterval>,
        extents: TiVec<PhaseId, Extent>,
    ) -> Self {
        let mut flows: TiVec<FlowId, FlowTimes> = vec![FlowTimes::default(); instance.flows().len()].into();
        instance.flows().keys().for_each(|flow| flows[flow] = times(instance, &extents, flow));
        let is_plan = slot_intervals::is_plan(&held);
        let on_slots = schedule.ams.iter().filter(|row| row.slot.is_some());
        let ams = on_slots.map(|row| (row.start.seconds(), row.end.seconds())).collect();
        let last_starts = BTreeMap::new();
        let mut facts = Self { instance, held: Rows::new(held), ams, is_plan, extents, flows, last_starts };
        for row in schedule.flows.iter().filter(|row| row.status == FlowResult::Failed) {
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

    /// The rank of `flow` by some time, counted from 1.
    fn rank(&self, flow: FlowId, time: impl Fn(&FlowTimes) -> Option<f64>) -> Option<usize> {
        let own = (time(&self.flows[flow])?, flow);
        let before = |(other, times): (FlowId, &FlowTimes)| {
            time(times).is_some_and(|at| at.total_cmp(&own.0).then(other.cmp(&own.1)).is_lt())
        };
        Some(1 + self.flows.iter_enumerated().filter(|&entry| before(entry)).count())
    }

    /// The phase that made a phase ready: the maps of its job, or the last phase of its latest predecessor.
    /// `None` if it has no predecessor or its release was later.
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

    /// The phase that ends last; the later one in order if several end together.
    fn last_of(&self, phases: impl Iterator<Item = PhaseId>) -> Option<PhaseId> {
        phases.max_by(|&a, &b| self.end(a).total_cmp(&self.end(b)))
    }

    fn end(&self, phase: PhaseId) -> f64 {
        self.extents[phase].until.unwrap_or(f64::NEG_INFINITY)
    }

    /// The chain from the last phase of `jobs` back to the release, in the order of time; empty if none of
    /// them ran.
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

/// The first start and, if all phases are finished, the last end.
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

/// The failed attempts, by task.
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

/// The killed attempts and the lost outputs, by machine.
fn losses(instance: &Instance, schedule: &Schedule, flow: FlowId, job: Option<JobId>) -> Vec<Loss> {
    let cluster = instance.cluster();
    let mut machines: BTreeMap<MachineId, Loss> = BTreeMap::new();
    for row in rows_of(instance, schedule, flow, job) {
        if !matches!(row.outcome, Outcome::Killed | Outcome::Lost) {
            continue;
        }
        let slot_kind = instance.slot_kind_of(row.phase);
        // The validator reports slots that are on no machine.
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
