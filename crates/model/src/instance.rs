//! Instances: valid by construction.
//!
//! [`Instance::new`] converts a [`Draft`] to tables indexed by id, or reports all its problems. Everything
//! that can be derived once (topological order, work, critical path, time alone, cost functions) is derived
//! here, so that later algorithms are total. An instance may also grow flow by flow, and forget finished
//! flows ([`Instance::admit`], [`Instance::retire`]): ids then follow the order of arrival.

mod build;
mod check;
mod deadlines;
mod derive;
mod grow;
mod intake;
mod order;
#[cfg(test)]
mod tests;

pub use deadlines::DeadlineRule;
pub use grow::Arrival;
pub use intake::{Intake, Refused};

/// A phase has fewer tasks than this.
pub const TASKS_MAX: u64 = 1 << 31;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::calendar::Start;
use crate::cluster::{Cluster, Group, SlotKind};
use crate::cost::{CostFn, Metric, Objective};
use crate::draft::{CostDraft, Draft, Weights};
use crate::error::Invalid;
use crate::id::{FlowId, JobId, PhaseId, PhaseKind, PoolId, TiVec};
use crate::quota::UserQuota;
use crate::table::Table;
use crate::tasks::{Run, Tasks};
use crate::time::{Span, Time, Work};

/// A valid problem: a cluster, flows, an objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    start: Option<Start>,
    cluster: Cluster,
    objective: Objective,
    weights: Weights,
    flows: Table<FlowId, Flow>,
    jobs: Table<JobId, Job>,
    phases: Table<PhaseId, Phase>,
    pools: TiVec<PoolId, Pool>,
    /// The number of tasks that [`Instance::cut`] made of work.
    n_cut: u64,
}

/// A flow: a DAG of jobs, released and (with a deadline) due together.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name.
    pub id: String,
    /// The time at which it arrives.
    pub release: Time,
    /// Its weight, 1 under `--weights ignore`.
    pub weight: f64,
    /// The time by which it should be done.
    pub deadline: Option<Time>,
    /// The cost of completing it at a time.
    pub cost: CostFn,
    /// The pool it belongs to.
    pub pool: Option<PoolId>,
    /// The user who owns it, if known.
    pub user: Option<String>,
    /// Its priority in its log, if known; higher is more urgent.
    pub priority: Option<u32>,
    /// The quota of the user whose tasks its tasks count among.
    pub quota: Option<UserQuota>,
    /// Work of all its phases.
    pub work: Work,
    /// Longest chain of phases in seconds, each at its cap on the fastest slots of its kind.
    pub critical_path: f64,
    /// Seconds that it takes alone on the whole cluster: the larger of its longest chain of phases, each not
    /// less than its longest task, and, for each slot kind, its work there over the capacity of the slot kind.
    /// Plans that divide tasks can be faster.
    pub alone: f64,
    /// Its id in its document. In the instance of the document this is its own id; in a growing instance it
    /// is the id in the instance it came from.
    pub place: FlowId,
    /// When its last job finished according to a log. Only the policy `recorded` uses it.
    pub recorded_end: Option<Time>,
    /// The next release of the flow, if it recurs. This is all that is known of the future in advance.
    pub next_release: Option<Time>,
    jobs: Range<u32>,
    phases: Range<u32>,
    /// Its jobs, each after its predecessors; ties by id.
    topological: Vec<JobId>,
    /// Its index in the document, before recurrences were expanded.
    given_as: usize,
    given_weight: f64,
    given_cost: Option<CostDraft>,
}

impl Flow {
    /// Its jobs, in the order of the document.
    pub fn jobs(&self) -> impl DoubleEndedIterator<Item = JobId> + ExactSizeIterator + Clone + use<> {
        self.jobs.clone().map(JobId)
    }

    /// The phases of its jobs, in the order of the document.
    pub fn phases(&self) -> impl DoubleEndedIterator<Item = PhaseId> + ExactSizeIterator + Clone + use<> {
        self.phases.clone().map(PhaseId)
    }
}

/// A job: a map phase, a reduce phase, or both.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name, unique in its flow.
    pub id: String,
    /// Its flow.
    pub flow: FlowId,
    /// Jobs that must be done before it starts, sorted.
    pub after: Vec<JobId>,
    /// Jobs that wait for it, sorted.
    pub before: Vec<JobId>,
    /// Its map phase.
    pub map: Option<PhaseId>,
    /// Its reduce phase.
    pub reduce: Option<PhaseId>,
}

impl Job {
    /// Its phases in the order in which they run; never empty.
    #[inline]
    pub fn phases(&self) -> impl Iterator<Item = PhaseId> + use<> {
        [self.map, self.reduce].into_iter().flatten()
    }

    /// Its phase of `kind`.
    pub fn phase(&self, kind: PhaseKind) -> Option<PhaseId> {
        match kind {
            PhaseKind::Map => self.map,
            PhaseKind::Reduce => self.reduce,
        }
    }
}

/// A phase: many independent tasks, or work that may be cut at will.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its flow.
    pub flow: FlowId,
    /// Its job.
    pub job: JobId,
    /// Map or reduce.
    pub kind: PhaseKind,
    /// Its tasks or its work.
    pub amount: Amount,
    /// Slots guaranteed while it is ready; 0 for no guarantee.
    pub min_slots: u32,
    /// The limit on slots that it may hold at a time: min(`max_slots`, tasks); `u32::MAX` for work without
    /// either.
    pub cap: u32,
}

impl Phase {
    /// Its tasks, unless it is purely malleable.
    pub fn tasks(&self) -> Option<&Tasks> {
        match &self.amount {
            Amount::Tasks(tasks) => Some(tasks),
            Amount::Malleable(_) => None,
        }
    }

    /// Its work.
    pub fn work(&self) -> Work {
        match &self.amount {
            Amount::Tasks(tasks) => tasks.work(),
            Amount::Malleable(work) => *work,
        }
    }

    /// The number of tasks that [`Instance::cut`] makes of it; 0 if it has tasks.
    pub fn n_to_cut(&self, grain: Span) -> u64 {
        match self.amount {
            Amount::Tasks(_) => 0,
            Amount::Malleable(work) => work.0.div_ceil(grain.0.max(1)).max(1),
        }
    }

    /// Cuts it into equal tasks of at most `grain` if it is malleable. Returns their number.
    fn cut(&mut self, grain: Span) -> u64 {
        let Amount::Malleable(work) = self.amount else { return 0 };
        let count = self.n_to_cut(grain).min(TASKS_MAX - 1) as u32;
        self.amount = Amount::Tasks(Tasks::share(work, count));
        self.cap = self.cap.min(count);
        u64::from(count)
    }

    /// Whether it has no length: then it is done when it becomes ready, and holds no slot.
    pub fn is_without_length(&self) -> bool {
        self.work() == Work::ZERO
    }
}

/// The tasks or the work of a phase.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// These tasks.
    Tasks(Tasks),
    /// This much work, not cut into tasks.
    Malleable(Work),
}

/// A pool: the ready phases of its flows share a guarantee.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Its name.
    pub id: String,
    /// Slots guaranteed to its ready map phases together; 0 for none.
    pub min_map: u32,
    /// Slots guaranteed to its ready reduce phases together; 0 for none.
    pub min_reduce: u32,
}

impl Instance {
    /// Checks a draft.
    ///
    /// # Errors
    /// All its problems, in the order of the document: cycles, unknown names, negative or non-finite numbers,
    /// zero slots or tasks, minima above maxima, phases that no machine can run, duplicate ids, decreasing
    /// costs.
    pub fn new(draft: &Draft) -> Result<Self, Invalid> {
        build::build(draft)
    }

    /// The moment of second 0, if known. It affects only displayed times.
    pub fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// The machines.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The objective to minimise.
    pub fn objective(&self) -> Objective {
        self.objective
    }

    /// Whether weights count.
    pub fn weights(&self) -> Weights {
        self.weights
    }

    /// All flows.
    pub fn flows(&self) -> &Table<FlowId, Flow> {
        &self.flows
    }

    /// All jobs.
    pub fn jobs(&self) -> &Table<JobId, Job> {
        &self.jobs
    }

    /// All phases.
    pub fn phases(&self) -> &Table<PhaseId, Phase> {
        &self.phases
    }

    /// All pools.
    pub fn pools(&self) -> &TiVec<PoolId, Pool> {
        &self.pools
    }

    /// The flow of that id.
    #[inline]
    pub fn flow(&self, id: FlowId) -> &Flow {
        &self.flows[id]
    }

    /// The job of that id.
    #[inline]
    pub fn job(&self, id: JobId) -> &Job {
        &self.jobs[id]
    }

    /// The phase of that id.
    #[inline]
    pub fn phase(&self, id: PhaseId) -> &Phase {
        &self.phases[id]
    }

    /// The flow a phase belongs to.
    #[inline]
    pub fn flow_of(&self, phase: PhaseId) -> FlowId {
        self.phases[phase].flow
    }

    /// The slot kind whose slots serve a phase.
    #[inline]
    pub fn slot_kind_of(&self, phase: PhaseId) -> SlotKind {
        self.cluster.slot_kind_of(self.phases[phase].kind)
    }

    /// All jobs, flow by flow, each after its predecessors; ties by id.
    pub fn topological(&self) -> impl DoubleEndedIterator<Item = JobId> {
        self.flows.iter().flat_map(|flow| flow.topological.iter().copied())
    }

    /// The jobs of `flow`, each after its predecessors; ties by id.
    pub fn topological_of(&self, flow: FlowId) -> &[JobId] {
        &self.flows[flow].topological
    }

    /// `flow/job/map`, for messages.
    pub fn phase_name(&self, phase: PhaseId) -> String {
        let phase = &self.phases[phase];
        let job = &self.jobs[phase.job];
        format!("{}/{}/{}", self.flows[job.flow].id, job.id, phase.kind)
    }

    /// The least seconds that the phase takes: its work on the fastest slots it may hold. The longest task
    /// does not count, so that the number also holds for malleable plans.
    pub fn phase_alone(&self, phase: PhaseId) -> f64 {
        derive::phase_alone(&self.cluster, &self.phases[phase])
    }

    /// Total number of tasks; purely malleable phases count none.
    pub fn n_tasks(&self) -> u64 {
        self.phases.iter().filter_map(Phase::tasks).map(|t| u64::from(t.count())).sum()
    }

    /// The number of tasks that [`Self::cut`] made of work.
    pub fn n_cut(&self) -> u64 {
        self.n_cut
    }

    /// Work that is not cut into tasks.
    pub fn work_uncut(&self) -> Work {
        let uncut = self.phases.iter().filter(|phase| phase.tasks().is_none());
        uncut.map(Phase::work).sum()
    }

    /// Whether it has all the flows it ever had, each in its place, and its cluster can run every phase.
    /// [`Self::new`] makes it so, and a simulator requires it. O(phases).
    pub fn is_whole(&self) -> bool {
        let in_place = |(id, flow): (FlowId, &Flow)| {
            flow.place == id && flow.pool.is_none_or(|pool| pool.index() < self.pools.len())
        };
        let can_run = |id: PhaseId| self.cluster.slots(self.slot_kind_of(id)) > 0;
        self.flows.keys().count() == self.flows.len()
            && self.flows.iter_enumerated().all(in_place)
            && self.phases.keys().all(can_run)
    }

    /// The same instance with every purely malleable phase cut into equal tasks of at most `grain`, or into
    /// the largest number of tasks that a phase may have.
    #[must_use]
    pub fn cut(mut self, grain: Span) -> Self {
        self.cut_work(grain);
        self
    }

    /// Cuts all purely malleable phases. Their flows then have tasks, whose lengths count in times alone.
    fn cut_work(&mut self, grain: Span) {
        let is_uncut = |phase: &&Phase| phase.tasks().is_none();
        let flows: BTreeSet<FlowId> = self.phases.iter().filter(is_uncut).map(|phase| phase.flow).collect();
        self.n_cut += self.phases.iter_mut().map(|phase| phase.cut(grain)).sum::<u64>();
        for &flow in &flows {
            derive::derive(self, flow);
        }
        if !flows.is_empty() && self.objective_depends_on_time_alone() {
            self.resolve_costs_again();
        }
    }

    /// Whether some flow costs its slowdown.
    fn objective_depends_on_time_alone(&self) -> bool {
        let is_slowdown = |metric: &Metric| *metric == Metric::Slowdown;
        is_slowdown(&self.objective.metric)
            || self
                .flows
                .iter()
                .any(|flow| matches!(&flow.given_cost, Some(CostDraft::Metric(m)) if is_slowdown(m)))
    }

    /// The same instance with other durations of the tasks of these phases. Places of input are dropped.
    ///
    /// # Panics
    /// If the numbers of tasks differ.
    #[must_use]
    pub fn with_durations(mut self, durations: impl IntoIterator<Item = (PhaseId, Vec<Span>)>) -> Self {
        for (phase, spans) in durations {
            let tasks = Tasks::from_runs(spans.into_iter().map(|span| Run { count: 1, span }));
            let phase = &mut self.phases[phase];
            assert_eq!(phase.tasks().map(Tasks::count), Some(tasks.count()), "durations of other tasks");
            phase.amount = Amount::Tasks(tasks);
        }
        for flow in self.flows.keys().collect::<Vec<_>>() {
            derive::derive(&mut self, flow);
        }
        self.resolve_costs_again();
        self
    }

    /// Computes the costs again after a change that cannot invalidate the objective.
    fn resolve_costs_again(&mut self) {
        derive::resolve_costs(self).expect("invariant: the objective was valid before");
    }

    /// The same flows with the same costs on machines that all have this `speed`, which must be positive: a
    /// reference for plans on faster machines. Critical paths and times alone are recomputed; deadlines and
    /// costs that were derived from them are not.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        assert!(speed > 0.0 && speed.is_finite(), "a speed of {speed}");
        let groups = self.cluster.groups().iter().map(|group| Group { speed, ..group.clone() });
        self.cluster = Cluster::new(groups.collect());
        for flow in self.flows.keys().collect::<Vec<_>>() {
            derive::derive(&mut self, flow);
        }
        self
    }

    /// The same flows with the same costs, all released at 0: for plans, which know flows before they arrive.
    #[must_use]
    pub fn released_at_once(mut self) -> Self {
        self.flows.iter_mut().for_each(|flow| flow.release = Time::ZERO);
        self
    }

    /// The same instance with another objective.
    ///
    /// # Errors
    /// If the metric needs numbers that a flow does not give (`sla`, `piecewise`).
    pub fn with_objective(mut self, objective: Objective, weights: Weights) -> Result<Self, Invalid> {
        self.objective = Objective::new(objective.metric, objective.combine);
        self.weights = weights;
        derive::resolve_costs(&mut self)?;
        Ok(self)
    }

    /// The same instance, with these costs of its flows, in order, instead of those of the metric.
    #[must_use]
    pub fn with_costs(mut self, costs: impl IntoIterator<Item = CostFn>) -> Self {
        self.flows.iter_mut().zip(costs).for_each(|(flow, cost)| flow.cost = cost);
        self
    }

    /// The value of the objective for the completion times of the flows (seconds, in flow order).
    pub fn cost_of(&self, completions: &[f64]) -> f64 {
        assert_eq!(completions.len(), self.flows.len(), "one completion per flow");
        let costs = self.flows.iter().zip(completions).map(|(flow, &c)| flow.cost.eval(c));
        self.objective.combine.of(costs)
    }
}
