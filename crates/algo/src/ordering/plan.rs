//! Converts an order to a schedule: the slot, start and end of each task.
//!
//! The estimator says when jobs complete; this runs the same executor on slots with numbers and speeds, so
//! that the schedule can be checked task by task. Slots that are free at the same time stay together in
//! ranges, and so do equal tasks that start together.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::cluster::Cluster;
use slackline_model::id::TiVec;
use slackline_model::schedule::{self, Clock, FlowTimes, NewRow, Origin, Outcome, TaskRows};
use slackline_model::{FlowId, Instance, JobId, PhaseKind, Schedule, SlotKind, SlotRange, Span, Time};

use super::executor::{Executor, First, Mode, Slots};
use super::orders::Rule;
use super::slot_bank::{Batch, Started};
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

/// The tasks of all jobs in the order of `rule` on the instance's map and reduce slots. Orders ignore
/// speeds; durations are those of the machines.
///
/// O(n log n) for the order of n jobs, O(r log r) for the r rows of the schedule, at most the tasks.
///
/// # Errors
/// Generic slots; what [`Workload::from_instance`] refuses.
pub fn plan(instance: &Instance, rule: Rule, config: Config) -> Result<Plan, NotOffline> {
    let workload = Workload::from_instance(instance)?;
    let order = at_split(&workload, split_of(instance.cluster())?, rule, config).order;
    in_order(instance, order, config.mode)
}

/// The tasks of all jobs in an order that was made elsewhere.
///
/// # Errors
/// As [`plan`]; an order that has not every job of the instance once.
pub fn in_order(instance: &Instance, order: Vec<JobId>, mode: Mode) -> Result<Plan, NotOffline> {
    let jobs = Workload::at_speed(instance, 1.0)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(jobs.ids()) {
        return Err(NotOffline::Order { found: order.len(), jobs: jobs.len() });
    }
    split_of(instance.cluster())?;
    let (mut rows, mut executor) = (Rows::default(), Executor::default());
    executor.run_maps(jobs.jobs(), &order, &mut Recorder::new(instance, PhaseKind::Map, &mut rows));
    let mut reduces = Recorder::new(instance, PhaseKind::Reduce, &mut rows);
    executor.run_reduces(jobs.jobs(), &order, mode, &mut reduces);
    Ok(Plan { order, tasks: rows.finish(), completion: executor.estimate.completion })
}

/// The map and reduce slots of a cluster.
fn split_of(cluster: &Cluster) -> Result<Split, NotOffline> {
    if !cluster.is_map_reduce() {
        return Err(NotOffline::Generic);
    }
    Ok(Split::new(cluster.slots(SlotKind::Map), cluster.slots(SlotKind::Reduce))?)
}

impl Plan {
    /// The plan as a document, with completions and costs claimed and no bound yet.
    pub fn schedule(self, instance: &Instance, policy: &str) -> Schedule {
        let mut start: Vec<Option<Time>> = vec![None; instance.flows().len()];
        for row in self.tasks.rows() {
            let first = &mut start[instance.flow_of(row.phase).index()];
            *first = Some(first.map_or(row.start, |first| first.min(row.start)));
        }
        let times = |flow: FlowId| {
            let done = instance.flow(flow).jobs().map(|job| self.completion[job]).max().unwrap_or_default();
            FlowTimes { start: start[flow.index()].map(Time::seconds), completion: Some(done.seconds()) }
        };
        let origin = Origin {
            policy: policy.to_owned(),
            minima: false,
            clock: Clock::Exact,
            slowstart: 1.0,
            profile: None,
        };
        Schedule::from_rows(instance, origin, schedule::Rows::Tasks(self.tasks), times)
    }
}

/// The slots of a kind by when they are free, which write down what they start. Those of a range have one
/// speed.
struct Recorder<'a> {
    instance: &'a Instance,
    kind: PhaseKind,
    slot_kind: SlotKind,
    free: BinaryHeap<Reverse<(Time, SlotRange)>>,
    rows: &'a mut Rows,
}

impl<'a> Recorder<'a> {
    /// The slots that serve phases of a kind.
    fn new(instance: &'a Instance, kind: PhaseKind, rows: &'a mut Rows) -> Self {
        let (cluster, slot_kind) = (instance.cluster(), instance.cluster().slot_kind_of(kind));
        let mut free = BinaryHeap::new();
        let mut first = 0;
        while first < cluster.slots(slot_kind) {
            let (_, next) = cluster.speed_of(slot_kind, first);
            free.push(Reverse((Time::ZERO, SlotRange { first, len: next - first })));
            first = next;
        }
        Self { instance, kind, slot_kind, free, rows }
    }

    /// Slots of one speed that have been free longest, at most that many.
    fn take(&mut self, most: u32) -> SlotRange {
        let Reverse((free, range)) = self.free.pop().expect("invariant: a slot kind has slots");
        let taken = SlotRange { first: range.first, len: range.len.min(most) };
        if taken.len < range.len {
            let rest = SlotRange { first: taken.end(), len: range.len - taken.len };
            self.free.push(Reverse((free, rest)));
        }
        taken
    }
}

impl Slots for Recorder<'_> {
    fn start(&mut self, first: First, batch: Batch) -> Started {
        let phase = self.instance.job(first.job).phase(self.kind);
        let phase = phase.expect("invariant: tasks belong to a phase of their job");
        let mut started = Started { left: batch.tasks, ..Started::default() };
        while started.left > 0 {
            let Reverse((free, _)) = *self.free.peek().expect("invariant: a slot kind has slots");
            let start = free.max(Time(batch.from));
            if start >= Time(batch.until) {
                break;
            }
            let range = self.take(started.left);
            let speed = self.instance.cluster().speed_of(self.slot_kind, range.first).0;
            let end = start + Span(batch.span).at_speed_nearest(speed);
            self.free.push(Reverse((end, range)));
            let first = first.task + batch.tasks - started.left;
            let row = NewRow {
                phase,
                first,
                count: range.len,
                start,
                end,
                startup: Span::ZERO,
                attempt: 0,
                outcome: Outcome::Done,
            };
            self.rows.push(row, range);
            started = Started { left: started.left - range.len, last: start.0, end: end.0.max(started.end) };
        }
        started
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
    use slackline_model::Draft;
    use slackline_model::cluster::Slots as SlotsOf;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

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
            let instance = instance(&jobs, &[(count, SlotsOf::MapReduce { map, reduce }, 2.0)]);
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

        /// On machines of several speeds too, though orders ignore them.
        #[test]
        fn plans_on_mixed_speeds_are_feasible(jobs in prop::collection::vec(job(), 1..7), strict: bool) {
            let slots = SlotsOf::MapReduce { map: 2, reduce: 1 };
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
        let instance = instance(&jobs, &[(100, SlotsOf::MapReduce { map: 4, reduce: 1 }, 1.0)]);
        let plan = plan(&instance, Rule::MkJr, Config::standard()).unwrap();
        let rows: Vec<_> = plan.tasks.rows().iter().map(|row| (row.first, row.count, row.end)).collect();
        let after = |seconds: u64| Time::ZERO + Span(seconds * 1_000_000);
        assert_eq!(
            rows,
            [(0, 400, after(3)), (400, 400, after(6)), (800, 200, after(9)), (0, 10, after(11))]
        );
    }

    #[test]
    fn generic_slots_are_refused() {
        let instance = instance(&[(vec![(1, 1)], vec![])], &[(1, SlotsOf::Generic(2), 1.0)]);
        let refusal = plan(&instance, Rule::MkJr, Config::standard()).unwrap_err();
        assert!(refusal.to_string().starts_with("found generic slots, expected map and reduce slots"));
    }
}
