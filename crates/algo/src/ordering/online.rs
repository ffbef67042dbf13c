//! MK_JR and MK_TCT_JR as policies: jobs arrive over time and are re-ordered at each arrival.

use std::collections::BTreeSet;

use slackline_model::tasks::{Run, Tasks};
use slackline_model::{JobId, PhaseId, PhaseKind};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, ReadyQueue, View};
use slackline_relax::johnson::Stages;

use super::estimator::{Estimator, Mode};
use super::johnson_order::{JohnsonKey, JohnsonOrders};
use super::orders::{Candidates, Rule, Times, order_of};
use super::workload::{Job, Split, Workload};
use crate::epochs::{Allowance, Favourite};

/// The policies `mk-jr` and `mk-tct-jr`.
///
/// Every job that is ready, of any flow, is one of the rule's jobs. When a job becomes ready, and at nothing
/// else, the ready jobs that are not done are put in order by the work they have left, as estimates have it,
/// over the slots that are up. Of several candidate orders, the one is kept that would be better if all slots
/// were free and no other job arrived; where many jobs wait, candidates are compared only as often as events
/// pay for it, and in between the one that wins most is kept. On generic slots both stages are taken to
/// have all slots; phases then share them in the order of their jobs, maps first. Blind to speeds, minima,
/// weights and deadlines.
///
/// MK_JR: O(changed jobs · log n) an arrival, n the jobs that are ready and not done, and two estimates if
/// there are two candidates. MK_TCT_JR: O(n log n) an arrival. O(log n) a decision.
#[derive(Clone, Debug)]
pub struct Ordering {
    rule: Rule,
    candidates: Candidates,
    estimator: Estimator,
    /// Jobs that became ready and are not done.
    active: BTreeSet<JobId>,
    /// Active jobs that became ready or changed since the last arrival; once each.
    changed: BTreeSet<JobId>,
    order: Order,
    queue: ReadyQueue<Place>,
    allowance: Allowance,
    /// Which candidate wins.
    won: Favourite<usize>,
}

/// The place of a job: its key, or its rank if all jobs are put in order at once; ties by id.
type Place = (JohnsonKey, u32, JobId);

/// The order of the last arrival.
#[derive(Clone, Debug, Default)]
struct Order {
    johnson: JohnsonOrders,
    /// The candidate whose order is in force.
    candidate: usize,
    /// The ranks of jobs under MK_TCT_JR.
    rank: IdTable<JobId, u32>,
    /// The slots and the estimates from which the stages of all jobs were computed.
    basis: ([u32; 2], u64),
}

impl Order {
    /// The place of a phase's job.
    fn place(&self, phase: PhaseId, view: &View<'_>) -> Place {
        let job = view.instance.phase(phase).job;
        let key = self.johnson.keys(job).map_or(JohnsonKey::default(), |keys| keys[self.candidate]);
        (key, self.rank[job], job)
    }
}

/// Jobs that estimates may look at for each event of the run, and at once.
const ALLOWED: (u32, u32) = (1, 1 << 18);

impl Ordering {
    /// The policy that orders by `rule`.
    pub fn new(rule: Rule, candidates: Candidates) -> Self {
        Self {
            rule,
            candidates,
            estimator: Estimator::default(),
            active: BTreeSet::new(),
            changed: BTreeSet::new(),
            order: Order::default(),
            queue: ReadyQueue::new(),
            allowance: Allowance::new(ALLOWED.0, ALLOWED.1),
            won: Favourite::default(),
        }
    }

    /// Takes in jobs that became ready; whether there were any.
    fn admit(&mut self, events: &[Event], view: &View<'_>) -> bool {
        let mut arrived = false;
        for event in events {
            let (Event::PhaseReady(phase) | Event::TasksDone { phase, .. } | Event::TasksLost { phase, .. }) =
                *event
            else {
                continue;
            };
            let job = view.instance.phase(phase).job;
            if matches!(event, Event::PhaseReady(_)) {
                arrived |= self.active.insert(job);
            }
            if self.active.contains(&job) {
                self.changed.insert(job);
            }
        }
        let over = events.iter().filter_map(Event::over).flat_map(|flow| view.instance.flow(flow).jobs());
        let done =
            events.iter().filter_map(|event| if let Event::JobDone(job) = *event { Some(job) } else { None });
        for job in done.chain(over) {
            self.active.remove(&job);
            self.changed.remove(&job);
            self.order.johnson.remove(job);
            self.order.rank.forget([job]);
        }
        arrived
    }

    fn reorder(&mut self, view: &View<'_>) {
        let slots = PhaseKind::ALL.map(|kind| view.state.alive(view.instance.cluster().slot_kind_of(kind)));
        let basis = (slots, view.estimates.revision);
        if std::mem::replace(&mut self.order.basis, basis) != basis {
            self.changed.clone_from(&self.active);
        }
        match self.rule {
            Rule::MkJr => self.reorder_changed(view),
            Rule::MkTctJr => self.reorder_all(view),
        }
        self.changed.clear();
    }

    /// Johnson's rule: only jobs that changed have other places, unless another candidate is better now.
    fn reorder_changed(&mut self, view: &View<'_>) {
        for &job in &self.changed {
            let times = self.candidates.times();
            let key = |times| JohnsonKey::of(stages(times, job, view));
            self.order.johnson.insert(job, [key(times[0]), key(times[times.len() - 1])]);
        }
        let johnson = &self.order.johnson;
        let candidate = if !self.allowance.may_search() {
            self.won.get().unwrap_or(0)
        } else if johnson.order(0).eq(johnson.order(1)) {
            0
        } else {
            let orders = [0, 1].map(|times| johnson.order(times).collect::<Vec<_>>());
            self.better(&orders, view)
        };
        let Self { changed, order, queue, .. } = self;
        if std::mem::replace(&mut order.candidate, candidate) != candidate {
            queue.rekey(view, |phase| order.place(phase, view));
            return;
        }
        for &job in &*changed {
            for phase in view.instance.job(job).phases().filter(|&phase| view.phase(phase).is_ready()) {
                queue.move_to(phase, order.place(phase, view), view);
            }
        }
    }

    /// MK_TCT_JR: which jobs are large depends on all jobs.
    fn reorder_all(&mut self, view: &View<'_>) {
        let times = self.candidates.times();
        let candidate = if self.allowance.may_search() {
            let mut orders: Vec<Vec<JobId>> = times.iter().map(|&times| self.sorted(times, view)).collect();
            orders.dedup();
            let best = if orders.len() > 1 { self.better(&orders, view) } else { 0 };
            orders.swap_remove(best)
        } else {
            self.sorted(times[self.won.get().unwrap_or(0)], view)
        };
        let Self { order, queue, .. } = self;
        for (rank, job) in (0..).zip(candidate) {
            order.rank[job] = rank;
        }
        queue.rekey(view, |phase| order.place(phase, view));
    }

    /// The active jobs in the order of the rule by these times.
    fn sorted(&self, times: Times, view: &View<'_>) -> Vec<JobId> {
        let jobs: Vec<JobId> = self.active.iter().copied().collect();
        let stages: Vec<Stages<f64>> = jobs.iter().map(|&job| stages(times, job, view)).collect();
        let order: Vec<usize> = order_of(self.rule, &stages, |[map, reduce]| map + reduce);
        order.into_iter().map(|at| jobs[at]).collect()
    }

    /// Which of some orders of the active jobs is best by the rule's goal: the first if they are equally good
    /// or are beyond what can be estimated.
    fn better(&mut self, orders: &[Vec<JobId>], view: &View<'_>) -> usize {
        let active: Vec<JobId> = self.active.iter().copied().collect();
        let jobs = active.iter().map(|&job| left_of(job, view)).collect();
        let slots = |kind| view.state.alive(view.instance.cluster().slot_kind_of(kind)).max(1);
        let split = Split::new(slots(PhaseKind::Map), slots(PhaseKind::Reduce));
        let (Ok(workload), Ok(split)) = (Workload::new(jobs), split) else { return 0 };
        self.allowance.spend((orders.len() * active.len()) as u64);
        let (goal, estimator) = (self.rule.goal(), &mut self.estimator);
        let number = |job: &JobId| JobId::from(active.partition_point(|other| other < job));
        let mut value = |order: &Vec<JobId>| {
            let order: Vec<JobId> = order.iter().map(number).collect();
            let estimate = estimator.run(&workload, &order, split, Mode::WorkConserving);
            goal.key(estimate.makespan(), estimate.total_completion())
        };
        let best = orders.iter().map(&mut value).enumerate().min_by_key(|&(at, key)| (key, at));
        let best = best.map_or(0, |(at, _)| at);
        self.won.won(best);
        best
    }
}

/// How long the stages of a job are still taken to last, in seconds.
fn stages(times: Times, job: JobId, view: &View<'_>) -> Stages<f64> {
    PhaseKind::ALL.map(|kind| {
        let Some(phase) = view.instance.job(job).phase(kind) else { return 0.0 };
        let slots = f64::from(view.state.alive(view.instance.slot_kind_of(phase)).max(1));
        match times {
            Times::Area => view.work_left(phase) / slots,
            Times::Stage => {
                (f64::from(tasks_left(phase, view)) / slots).ceil() * view.estimates.task[phase].seconds()
            }
        }
    })
}

fn tasks_left(phase: PhaseId, view: &View<'_>) -> u32 {
    if view.is_instant(phase) {
        return 0;
    }
    let state = view.phase(phase);
    state.unstarted() + state.running()
}

/// What is left of a job, as equal tasks.
fn left_of(job: JobId, view: &View<'_>) -> Job {
    let [map, reduce] = PhaseKind::ALL.map(|kind| {
        let left = view
            .instance
            .job(job)
            .phase(kind)
            .map(|phase| Run { count: tasks_left(phase, view), span: view.estimates.task[phase] });
        Tasks::from_runs(left)
    });
    Job { map, reduce }
}

impl Policy for Ordering {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.allowance.earn(events.len());
        if self.admit(events, view) {
            self.reorder(view);
        }
        let Self { order, queue, .. } = self;
        queue.update(events, view, |phase| order.place(phase, view));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
    use slackline_model::{Draft, Instance, Time};
    use slackline_sim::{Options, Sim};

    use super::*;
    use crate::ordering::estimator::estimate;
    use crate::ordering::split::{Config, at_split};

    fn flow(id: usize, map: (u32, u32), reduce: (u32, u32)) -> FlowDraft {
        let phase = |(tasks, seconds): (u32, u32)| {
            (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds: f64::from(seconds) }.into())
        };
        let job = JobDraft { id: "j".into(), map: phase(map), reduce: phase(reduce), ..JobDraft::default() };
        FlowDraft::new(format!("f{id}"), vec![job])
    }

    fn instance(flows: Vec<FlowDraft>, slots: Slots) -> Instance {
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
    }

    fn completions(instance: &Instance, rule: Rule, candidates: Candidates) -> Vec<Time> {
        let mut policy = Ordering::new(rule, candidates);
        let mut engine = Sim::new(instance, Options::exact());
        let config = slackline_policy::Config::plain().audited();
        let run = slackline_policy::run(instance, &mut policy, &mut engine, config);
        let clock = slackline_model::schedule::Clock::Exact;
        let flows = run.schedule(instance, policy.name(), clock).flows;
        flows.iter().map(|flow| Time::from_seconds_nearest(flow.completion.unwrap())).collect()
    }

    fn job() -> impl Strategy<Value = ((u32, u32), (u32, u32))> {
        ((1u32..9, 0u32..7), (0u32..9, 0u32..7))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// All there at once: the policy in the simulator is the order in the estimator. Slots are
        /// powers of two, so that times in seconds compare as exactly as works do.
        #[test]
        fn simulated_is_estimated_when_all_jobs_are_there(
            jobs in prop::collection::vec(job(), 1..8), a in 0u32..4, b in 0u32..4, tct: bool, times in 0usize..3,
        ) {
            let rule = if tct { Rule::MkTctJr } else { Rule::MkJr };
            let times = [Candidates::Best, Candidates::Only(Times::Area), Candidates::Only(Times::Stage)][times];
            let flows = jobs.iter().enumerate().map(|(i, &(map, reduce))| flow(i, map, reduce)).collect();
            let instance = instance(flows, Slots::MapReduce { map: 1 << a, reduce: 1 << b });
            let workload = Workload::from_instance(&instance).unwrap();
            let split = Split::new(1 << a, 1 << b).unwrap();
            let config = Config { mk_jr: times, mk_tct_jr: times, ..Config::standard() };
            let order = at_split(&workload, split, rule, config).order;
            let expected = estimate(&workload, &order, split, Mode::WorkConserving).completion;
            prop_assert_eq!(completions(&instance, rule, times), expected.raw);
        }
    }

    #[test]
    fn arrivals_reorder_by_the_work_left() {
        // On one slot of each kind. At 0: stages (8, 9) before (9, 2). At 1 arrives (1, 5), which goes
        // before both; map tasks of one second let it in at once.
        let mut late = flow(2, (1, 1), (5, 1));
        late.release = 1.0;
        let flows = vec![flow(0, (9, 1), (2, 1)), flow(1, (8, 1), (9, 1)), late];
        let instance = instance(flows, Slots::MapReduce { map: 1, reduce: 1 });
        let done: Vec<f64> =
            completions(&instance, Rule::MkJr, Candidates::Best).iter().map(|t| t.seconds()).collect();
        assert_eq!(done, [20.0, 18.0, 7.0]);
    }

    #[test]
    fn generic_slots_are_shared_in_order() {
        let flows = vec![flow(0, (4, 3), (2, 1)), flow(1, (2, 1), (4, 3))];
        let done = completions(&instance(flows, Slots::Generic(2)), Rule::MkJr, Candidates::Best);
        // f1: maps 0-1, reduces 1-7; f0: maps 7-13, reduces 13-14.
        assert_eq!(done.iter().map(|t| t.seconds()).collect::<Vec<_>>(), [14.0, 7.0]);
    }
}
