//! An order as a schedule: which task runs on which slot, and when.
//!
//! The estimator says when jobs complete; this says the same with places, task by task, so that anybody
//! can check it. Slots that are free at the same time stay together in ranges, and so do equal tasks
//! that start together.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use slackline_model::cluster::Cluster;
use slackline_model::id::TiVec;
use slackline_model::schedule::{Clock, FlowRow, FlowStatus, NewRow, Outcome, TaskRows};
use slackline_model::tasks::Tasks;
use slackline_model::{Instance, JobId, Lane, PhaseId, PhaseKind, Schedule, SlotRange, Time};

use super::estimator::Mode;
use super::orders::Rule;
use super::split::{Config, at_split};
use super::workload::{NotOffline, Split, Workload};

/// A schedule of tasks and the order it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The jobs, first to last.
    pub order: Vec<JobId>,
    /// Who runs where and when.
    pub tasks: TaskRows,
    /// When each job is done.
    pub completion: TiVec<JobId, Time>,
}

/// The tasks of all jobs in the order of `rule` on the instance's typed slots. Orders are blind to
/// speeds; durations are those of the machines.
///
/// O(n log n) for the order of n jobs, O(r log r) for the r rows of the schedule, at most the tasks.
///
/// # Errors
/// Universal slots; what [`Workload::from_instance`] refuses.
pub fn plan(instance: &Instance, rule: Rule, config: Config) -> Result<Plan, NotOffline> {
    let workload = Workload::from_instance(instance)?;
    let order = at_split(&workload, split_of(instance.cluster())?, rule, config).order;
    in_order(instance, order, config.mode)
}

/// The tasks of all jobs in an order that was made elsewhere.
///
/// # Errors
/// As [`plan`].
///
/// # Panics
/// If `order` is not an order of the jobs of the instance.
pub fn in_order(instance: &Instance, order: Vec<JobId>, mode: Mode) -> Result<Plan, NotOffline> {
    Workload::from_instance(instance)?;
    split_of(instance.cluster())?;
    assert_eq!(order.len(), instance.jobs().len(), "an order has every job once");
    let mut builder = Builder {
        instance,
        rows: Rows::default(),
        completion: vec![Time::ZERO; instance.jobs().len()].into(),
    };
    let ready = builder.run_maps(&order);
    match mode {
        Mode::WorkConserving => builder.run_work_conserving(&order, &ready),
        Mode::Strict => builder.run_strictly(&order, &ready),
    }
    let Builder { rows, completion, .. } = builder;
    Ok(Plan { order, tasks: rows.finish(), completion })
}

/// The map and reduce slots of a cluster.
fn split_of(cluster: &Cluster) -> Result<Split, NotOffline> {
    if !cluster.is_typed() {
        return Err(NotOffline::Universal);
    }
    Ok(Split::new(cluster.slots(Lane::Map), cluster.slots(Lane::Reduce))?)
}

impl Plan {
    /// The plan as a document, with completions and costs claimed and no bound yet.
    pub fn schedule(self, instance: &Instance, policy: &str) -> Schedule {
        let mut start: Vec<Option<Time>> = vec![None; instance.flows().len()];
        for row in self.tasks.rows() {
            let first = &mut start[instance.flow_of(row.phase).index()];
            *first = Some(first.map_or(row.start, |first| first.min(row.start)));
        }
        let row = |(id, flow): (slackline_model::FlowId, &slackline_model::instance::Flow)| {
            let done = flow.jobs().map(|job| self.completion[job]).max().unwrap_or_default().seconds();
            FlowRow {
                flow: id,
                release: flow.release.seconds(),
                start: start[id.index()].map(Time::seconds),
                completion: Some(done),
                cost: Some(flow.cost.eval(done)),
                status: FlowStatus::Done,
            }
        };
        let flows: Vec<FlowRow> = instance.flows().iter_enumerated().map(row).collect();
        Schedule {
            policy: policy.to_owned(),
            minima: false,
            clock: Clock::Exact,
            slowstart: 1.0,
            objective: instance.objective(),
            cost: Some(instance.objective().combine.of(flows.iter().filter_map(|flow| flow.cost))),
            lower_bound: None,
            gap: None,
            metrics: Vec::new(),
            flows,
            tasks: self.tasks,
            allocations: Vec::new(),
        }
    }
}

struct Builder<'a> {
    instance: &'a Instance,
    rows: Rows,
    completion: TiVec<JobId, Time>,
}

/// A phase that is being served.
struct Serving<'a> {
    job: JobId,
    phase: PhaseId,
    tasks: &'a Tasks,
    /// The next task to start.
    next: u32,
}

impl<'a> Builder<'a> {
    /// The phase of a job, from its first task on.
    fn phase(&self, job: JobId, kind: PhaseKind) -> Option<Serving<'a>> {
        let phase = self.instance.job(job).phase(kind)?;
        let tasks = self.instance.phase(phase).tasks().expect("invariant: offline phases have tasks");
        Some(Serving { job, phase, tasks, next: 0 })
    }

    /// Runs all maps; when each job's are done.
    fn run_maps(&mut self, order: &[JobId]) -> TiVec<JobId, Time> {
        let mut slots = Slots::new(self.instance.cluster(), Lane::Map);
        for &job in order {
            if let Some(mut map) = self.phase(job, PhaseKind::Map) {
                self.serve(&mut slots, &mut map, (Time::ZERO, Time(u64::MAX)));
            }
        }
        self.completion.clone()
    }

    fn run_strictly(&mut self, order: &[JobId], ready: &TiVec<JobId, Time>) {
        let mut slots = Slots::new(self.instance.cluster(), Lane::Reduce);
        for &job in order {
            if let Some(mut reduce) = self.phase(job, PhaseKind::Reduce) {
                self.serve(&mut slots, &mut reduce, (ready[job], Time(u64::MAX)));
            }
        }
    }

    /// Between the times at which jobs become ready, the first ready job in order is served until it
    /// has no reduces left, then the next.
    fn run_work_conserving(&mut self, order: &[JobId], ready: &TiVec<JobId, Time>) {
        let mut slots = Slots::new(self.instance.cluster(), Lane::Reduce);
        let mut reduces: Vec<_> = order.iter().map(|&job| self.phase(job, PhaseKind::Reduce)).collect();
        let mut arrivals: Vec<(Time, usize)> = (0..order.len()).map(|at| (ready[order[at]], at)).collect();
        arrivals.retain(|&(_, at)| reduces[at].is_some());
        arrivals.sort_unstable();
        let mut waiting = BTreeSet::new();
        for (k, &(now, at)) in arrivals.iter().enumerate() {
            waiting.insert(at);
            let until = arrivals.get(k + 1).map_or(Time(u64::MAX), |next| next.0);
            while let Some(&at) = waiting.first()
                && let Some(reduce) = &mut reduces[at]
            {
                self.serve(&mut slots, reduce, (now, until));
                if reduce.next < reduce.tasks.count() {
                    break;
                }
                waiting.pop_first();
            }
        }
    }

    /// Starts tasks that are left, each on the slot that is free first, at `from` at the earliest and
    /// before `until`.
    fn serve(&mut self, slots: &mut Slots<'_>, serving: &mut Serving<'_>, (from, until): (Time, Time)) {
        while serving.next < serving.tasks.count() {
            let start = slots.first().max(from);
            if start >= until {
                return;
            }
            let (span, alike) = serving.tasks.run_at(serving.next);
            let (range, speed) = slots.take(alike);
            let end = start + span.at_speed_nearest(speed);
            slots.give(end, range);
            let row = NewRow {
                phase: serving.phase,
                first: serving.next,
                count: range.len,
                start,
                end,
                attempt: 0,
                outcome: Outcome::Done,
            };
            self.rows.push(row, range);
            serving.next += range.len;
            let completion = &mut self.completion[serving.job];
            *completion = end.max(*completion);
        }
    }
}

/// The slots of a lane by when they are free; the slots of a range have one speed.
struct Slots<'a> {
    cluster: &'a Cluster,
    lane: Lane,
    free: BinaryHeap<Reverse<(Time, SlotRange)>>,
}

impl<'a> Slots<'a> {
    fn new(cluster: &'a Cluster, lane: Lane) -> Self {
        let mut slots = Self { cluster, lane, free: BinaryHeap::new() };
        let mut first = 0;
        while first < cluster.slots(lane) {
            let (_, next) = cluster.speed_of(lane, first);
            slots.give(Time::ZERO, SlotRange { first, len: next - first });
            first = next;
        }
        slots
    }

    /// When the first slot is free.
    fn first(&self) -> Time {
        self.free.peek().expect("invariant: a lane has slots").0.0
    }

    /// Slots of one speed that have been free longest, at most that many.
    fn take(&mut self, most: u32) -> (SlotRange, f64) {
        let Reverse((free, range)) = self.free.pop().expect("invariant: a lane has slots");
        let taken = SlotRange { first: range.first, len: range.len.min(most) };
        if taken.len < range.len {
            self.give(free, SlotRange { first: taken.end(), len: range.len - taken.len });
        }
        (taken, self.cluster.speed_of(self.lane, taken.first).0)
    }

    fn give(&mut self, free: Time, range: SlotRange) {
        self.free.push(Reverse((free, range)));
    }
}

/// Rows in the making: what starts and ends together is one.
#[derive(Default)]
struct Rows {
    done: TaskRows,
    last: Option<NewRow>,
    places: Vec<SlotRange>,
}

impl Rows {
    fn push(&mut self, row: NewRow, range: SlotRange) {
        let together = |last: &NewRow| {
            (last.phase, last.start, last.end, last.first + last.count)
                == (row.phase, row.start, row.end, row.first)
        };
        match &mut self.last {
            // Tasks that take no time may find the same slots again, in a row of their own.
            Some(last) if together(last) && row.start < row.end => last.count += row.count,
            _ => {
                self.flush();
                self.last = Some(row);
            }
        }
        self.places.push(range);
    }

    fn flush(&mut self) {
        if let Some(row) = self.last.take() {
            self.done.push(row, &self.places);
            self.places.clear();
        }
    }

    fn finish(mut self) -> TaskRows {
        self.flush();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::cluster::Slots as SlotsOf;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
    use slackline_model::{Draft, Span};

    use super::*;
    use crate::ordering::estimator::estimate;

    type Runs = Vec<(u32, u32)>;

    fn instance(jobs: &[(Runs, Runs)], machines: &[(u32, SlotsOf, f64)]) -> Instance {
        let phase = |runs: &Runs| {
            let each: Vec<f64> =
                runs.iter().flat_map(|&(n, s)| std::iter::repeat_n(f64::from(s), n as usize)).collect();
            (!each.is_empty()).then(|| TasksDraft::Each(each).into())
        };
        let flow = |(i, (map, reduce)): (usize, &(Runs, Runs))| {
            let job =
                JobDraft { id: "j".into(), map: phase(map), reduce: phase(reduce), ..JobDraft::default() };
            FlowDraft::new(format!("f{i}"), vec![job])
        };
        let machine = |(i, &(count, slots, speed)): (usize, &(u32, SlotsOf, f64))| MachineDraft {
            name: format!("m{i}"),
            count,
            speed,
            slots,
            rack: None,
        };
        let machines = machines.iter().enumerate().map(machine).collect();
        let flows = jobs.iter().enumerate().map(flow).collect();
        Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap()
    }

    fn job() -> impl Strategy<Value = (Runs, Runs)> {
        let runs = |least: usize| prop::collection::vec((1u32..9, 0u32..7), least..3);
        (runs(1), runs(0))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Feasible to the judge, and done when the estimator says.
        #[test]
        fn plans_are_feasible_and_as_estimated(
            jobs in prop::collection::vec(job(), 1..7),
            (map, reduce) in (1u32..4, 1u32..4), count in 1u32..4, tct: bool, strict: bool,
        ) {
            let instance = instance(&jobs, &[(count, SlotsOf::Typed { map, reduce }, 2.0)]);
            let mode = if strict { Mode::Strict } else { Mode::WorkConserving };
            let config = Config { mode, ..Config::standard() };
            let rule = if tct { Rule::MkTctJr } else { Rule::MkJr };
            let plan = plan(&instance, rule, config).unwrap();
            let workload = Workload::from_instance(&instance).unwrap();
            let split = Split::new(count * map, count * reduce).unwrap();
            let expected = estimate(&workload, &plan.order, split, mode);
            prop_assert_eq!(&plan.completion, &expected.completion);
            let schedule = plan.schedule(&instance, "mk-jr");
            let report = slackline_judge::check(&instance, &schedule);
            prop_assert!(report.is_ok(), "{:?}", report.err());
        }

        /// On machines of several speeds too, though orders are blind to them.
        #[test]
        fn plans_on_mixed_speeds_are_feasible(jobs in prop::collection::vec(job(), 1..7), strict: bool) {
            let slots = SlotsOf::Typed { map: 2, reduce: 1 };
            let instance = instance(&jobs, &[(2, slots, 1.0), (1, slots, 3.5)]);
            let mode = if strict { Mode::Strict } else { Mode::WorkConserving };
            let plan = plan(&instance, Rule::MkJr, Config { mode, ..Config::standard() }).unwrap();
            let report = slackline_judge::check(&instance, &plan.schedule(&instance, "mk-jr"));
            prop_assert!(report.is_ok(), "{:?}", report.err());
        }
    }

    #[test]
    fn equal_tasks_that_start_together_are_one_row() {
        let jobs = [(vec![(1000, 3)], vec![(10, 2)])];
        let instance = instance(&jobs, &[(100, SlotsOf::Typed { map: 4, reduce: 1 }, 1.0)]);
        let plan = plan(&instance, Rule::MkJr, Config::standard()).unwrap();
        let rows: Vec<_> = plan.tasks.rows().iter().map(|row| (row.first, row.count, row.end)).collect();
        let after = |seconds: u64| Time::ZERO + Span(seconds * 1_000_000);
        assert_eq!(
            rows,
            [(0, 400, after(3)), (400, 400, after(6)), (800, 200, after(9)), (0, 10, after(11))]
        );
    }

    #[test]
    fn universal_slots_are_refused() {
        let instance = instance(&[(vec![(1, 1)], vec![])], &[(1, SlotsOf::Universal(2), 1.0)]);
        let refusal = plan(&instance, Rule::MkJr, Config::standard()).unwrap_err();
        assert!(refusal.to_string().starts_with("found universal slots, expected typed ones"));
    }
}
