//! Simulates a stream of flows that are read during the simulation. Memory depends on the active flows, with
//! a few numbers per flow.
//!
//! No part of the program holds the whole workload. The engine requests a flow when the previous one has
//! arrived. The driver and the validator drop flows that have ended, and rows are written out. The validator
//! keeps 40 bytes per flow for exact metrics. There is no lower bound.

use std::cell::RefCell;

use slackline_judge::{NotByStream, OpenStream};
use slackline_model::instance::Arrival;
use slackline_model::schedule::{FlowRow, FlowTimes, NewRow, Origin, Rows, TaskRows};
use slackline_model::{Combine, FlowId, Instance, ReorderBuffer, Schedule, SlotRange, Span, Time};
use slackline_policy::engine::{Faults, RowId};
use slackline_policy::{Driver, Engine, FlowEnd, Sink};
use slackline_sim::Sim;

use super::writing::simulated;
use super::{GRAIN, NotWritten, Options, RowWriter, SimulateError, Simulated, check_instance};
use crate::offered_load::Tally;
use crate::policy_spec::PolicySpec;
use crate::stopwatch::Stopwatch;

/// The number of ended flows that may wait for an earlier one, so that costs are added in the order of
/// arrival.
const OVERTAKING_MAX: usize = 1 << 16;

/// A validated simulation of a stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Streamed {
    /// The result. Its schedule has neither rows nor flows, and there are no facts about single flows.
    pub simulated: Simulated,
    /// The number of flows, jobs and tasks, and the load.
    pub tally: Tally,
    /// The maximum number of flows that the validator held at a time.
    pub live_max: usize,
    /// The number of failed flows.
    pub failed: usize,
}

/// The reason why the simulation of a stream failed.
#[derive(Debug, thiserror::Error)]
pub enum NotStreamed<E> {
    /// The simulation failed, or the output cannot be written.
    #[error(transparent)]
    NotWritten(#[from] NotWritten),
    /// The next flow could not be read.
    #[error("{0}")]
    Flows(E),
    /// The simulation can only be validated as a whole.
    #[error("{0}, not a stream")]
    NeedsWhole(String),
}

/// The reason why a simulation can only be validated as a whole, as far as the options tell; `None` if it can
/// be streamed. `empty` has the cluster.
pub fn needs_whole(empty: &Instance, options: &Options) -> Option<String> {
    let none = std::iter::empty();
    let faults = Sim::of_stream(empty.cluster(), none, options.sim.clone()).capabilities().faults;
    if options.slowstart < 1.0 && !empty.cluster().is_map_reduce() {
        Some("reduces that take generic slots early (--slowstart) need the whole workload".to_owned())
    } else if faults == Faults::TasksAndOutput {
        Some("crashes, in which finished output is lost, need the whole workload".to_owned())
    } else if options.sim.profile.is_some() {
        Some("ApplicationMasters, which hold slots (--profile), need the whole workload".to_owned())
    } else if !options.plans.is_empty() {
        Some("plans from a file (--plan-file) need the whole workload".to_owned())
    } else {
        None
    }
}

/// Simulates `policy` on flows that arrive in the order of their releases, and validates rows when they are
/// final. Work is cut with [`GRAIN`]. Rows and flows are written to `out`. `empty` has the cluster, the pools
/// and the objective.
///
/// The rows are those of [`super::simulate_to`] for the same flows. `progress` receives the number of
/// finished tasks.
///
/// # Errors
/// The first flow that could not be read, is out of order or belongs to another cluster; an invalid schedule;
/// an error of `out`; a simulation that cannot be streamed ([`needs_whole`], and flows with minima that the
/// policy guarantees). The output so far must then be discarded.
pub fn simulate_stream<E>(
    empty: &Instance,
    arrivals: impl Iterator<Item = Result<Arrival, E>>,
    policy: &PolicySpec,
    options: &Options,
    progress: Option<&mut dyn FnMut(u64)>,
    out: &mut dyn RowWriter,
) -> Result<Streamed, NotStreamed<E>> {
    let refused = |problem| NotStreamed::NotWritten(NotWritten::NotSimulated(problem));
    check_instance(empty).map_err(refused)?;
    options.check(empty).map_err(|wrong| refused(wrong.into()))?;
    if let Some(why) = needs_whole(empty, options) {
        return Err(NotStreamed::NeedsWhole(why));
    }
    let stopwatch = Stopwatch::start();
    let nanos = || stopwatch.nanos();
    // The cast shortens the lifetime of the captured borrows, which `Option` alone does not.
    let progress = progress.map(|p| p as &mut dyn FnMut(u64));
    let config = options.config(empty.cluster(), &nanos, progress);
    let mut built = policy.build_following(empty.cluster(), &empty.objective(), options.plans.clone());
    let origin = Origin {
        policy: policy.spec().to_owned(),
        minima: built.keeps_minima() && is_prompt(empty, options),
        clock: options.clock(),
        slowstart: options.slowstart,
        profile: None,
    };
    out.begin(empty, &origin).map_err(NotWritten::Output)?;
    let minima = origin.minima;
    let nothing = Rows::Tasks(TaskRows::new());
    let mut schedule = Schedule::from_rows(empty, origin, nothing, |_| FlowTimes::default());
    let Some(judge) = OpenStream::new(empty, &schedule) else {
        let what = "a schedule on millions of slots needs the whole workload";
        return Err(NotStreamed::NeedsWhole(what.to_owned()));
    };
    let shared = RefCell::new(Shared::new(empty, arrivals, judge, out));
    let mut leaving = Leaving(&shared);
    let coming = std::iter::from_fn(|| shared.borrow_mut().next());
    let mut engine = Sim::of_stream(empty.cluster(), coming, options.sim.clone());
    let mut driver = Driver::new(empty.without_flows(), built.as_mut(), &mut engine, &mut leaving, config);
    while shared.borrow().failed.is_none() && driver.step() {}
    let mut figures = driver.close();
    drop(engine);
    let mut shared = shared.into_inner();
    if shared.failed.is_none()
        && let Some(failure) = figures.failure.take()
    {
        return Err(NotWritten::from(SimulateError::Policy(failure)).into());
    }
    shared.flows_that_never_came();
    let Shared { judge, failed, costs, tally, .. } = shared;
    if let Some(error) = failed {
        return Err(error);
    }
    assert_eq!(figures.minima, minima, "the first line says what the driver promised");
    schedule.cost = costs.total();
    let live_max = judge.live_max();
    let judged = judge.finish(&schedule).map_err(SimulateError::Infeasible).map_err(NotWritten::from)?;
    let (timings, failed) = (options.timed_by(&stopwatch, &mut figures), judged.failed);
    // A stream has no profile, and so no ApplicationMasters.
    let simulated = Simulated { timings, ..simulated(schedule, judged, figures, built.as_ref(), failed) };
    Ok(Streamed { simulated, tally, live_max, failed })
}

/// Whether free slots are offered at once, by the rule of the driver. Minima can be guaranteed only then.
fn is_prompt(empty: &Instance, options: &Options) -> bool {
    let engine = Sim::of_stream(empty.cluster(), std::iter::empty(), options.sim.clone());
    engine.capabilities().is_prompt() && options.locality_wait == Span::ZERO
}

/// The combined cost of flows that end in any order.
struct Costs {
    combine: Combine,
    waiting: ReorderBuffer<Option<f64>>,
    total: Option<f64>,
    failed: bool,
}

impl Costs {
    fn put(&mut self, flow: FlowId, cost: Option<f64>) {
        let Self { combine, waiting, total, failed } = self;
        waiting.put(flow.index(), cost, |cost| match cost {
            Some(cost) => *total = combine.and(*total, cost),
            None => *failed = true,
        });
    }

    /// The total cost; `None` if a flow failed.
    fn total(mut self) -> Option<f64> {
        let Self { combine, waiting, total, failed } = &mut self;
        waiting.flush(|cost| match cost {
            Some(cost) => *total = combine.and(*total, cost),
            None => *failed = true,
        });
        (!self.failed).then(|| self.total.unwrap_or(0.0))
    }
}

/// The state that the engine (which requests flows) and the driver (which emits rows) share.
struct Shared<'o, I, E> {
    arrivals: I,
    judge: OpenStream,
    out: &'o mut dyn RowWriter,
    costs: Costs,
    tally: Tally,
    /// The release of the flow that arrived last.
    latest: Time,
    /// The first error.
    failed: Option<NotStreamed<E>>,
}

impl<'o, I: Iterator<Item = Result<Arrival, E>>, E> Shared<'o, I, E> {
    fn new(empty: &Instance, arrivals: I, judge: OpenStream, out: &'o mut dyn RowWriter) -> Self {
        let combine = empty.objective().combine;
        let costs =
            Costs { combine, waiting: ReorderBuffer::new(OVERTAKING_MAX), total: None, failed: false };
        Self { arrivals, judge, out, costs, tally: Tally::default(), latest: Time::ZERO, failed: None }
    }

    /// The next flow, which is also passed to the validator.
    fn next(&mut self) -> Option<Arrival> {
        if self.failed.is_some() {
            return None;
        }
        let next = self.arrivals.next()?.map_err(NotStreamed::Flows);
        match next.and_then(|arrival| self.arrive(arrival)) {
            Ok(arrival) => Some(arrival),
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }

    fn arrive(&mut self, arrival: Arrival) -> Result<Arrival, NotStreamed<E>> {
        let flow = arrival.flow();
        if flow.release < self.latest || !self.judge.instance().can_admit(&arrival) {
            let problem = format!(
                "found flow {:?} released at {} after one at {}, expected flows of this cluster in the order of their \
                 releases",
                flow.id, flow.release, self.latest
            );
            return Err(NotWritten::from(SimulateError::Refused(problem)).into());
        }
        self.latest = flow.release;
        let arrival = arrival.cut(GRAIN, self.judge.instance());
        match self.judge.arrive(arrival.clone()) {
            Ok(id) => {
                self.tally.add(self.judge.instance(), id);
                Ok(arrival)
            }
            Err(NotByStream::Minima { flow }) => Err(NotStreamed::NeedsWhole(format!(
                "flow {flow} has guaranteed slots, whose validation needs the whole workload"
            ))),
            Err(error) => Err(NotStreamed::NeedsWhole(error.to_string())),
        }
    }

    /// Stores the first error.
    fn note(&mut self, result: Result<(), NotWritten>) {
        if let Err(error) = result
            && self.failed.is_none()
        {
            self.failed = Some(error.into());
        }
    }

    fn take_row(&mut self, row: &NewRow, places: &[SlotRange], live: &Instance) -> Result<(), NotWritten> {
        // The driver and the validator number flows in the same order of arrival.
        self.judge.row(*row, places).map_err(SimulateError::Infeasible)?;
        Ok(self.out.row(live, row, places)?)
    }

    fn take_flow(&mut self, id: FlowId, times: FlowTimes, live: &Instance) -> Result<(), NotWritten> {
        let row = FlowRow::new(live, id, times);
        self.costs.put(id, row.cost);
        self.judge.flow(&row).map_err(SimulateError::Infeasible)?;
        Ok(self.out.flow(live, &row)?)
    }

    /// Marks the flows as failed that had not arrived when the simulation ended.
    fn flows_that_never_came(&mut self) {
        while self.failed.is_none() {
            for id in self.judge.unfinished() {
                let taken = self.fail(id);
                self.note(taken);
            }
            if self.next().is_none() {
                return;
            }
        }
    }

    fn fail(&mut self, id: FlowId) -> Result<(), NotWritten> {
        let row = FlowRow::new(self.judge.instance(), id, FlowTimes::default());
        self.costs.put(id, row.cost);
        self.out.flow(self.judge.instance(), &row)?;
        Ok(self.judge.flow(&row).map_err(SimulateError::Infeasible)?)
    }
}

/// Passes final rows and flows on, until the first error.
struct Leaving<'s, 'o, I, E>(&'s RefCell<Shared<'o, I, E>>);

impl<I: Iterator<Item = Result<Arrival, E>>, E> Sink for Leaving<'_, '_, I, E> {
    fn row(&mut self, _: RowId, row: &NewRow, places: &[SlotRange], live: &Instance) {
        let mut shared = self.0.borrow_mut();
        if shared.failed.is_none() {
            let taken = shared.take_row(row, places, live);
            shared.note(taken);
        }
    }

    fn flow(&mut self, end: &FlowEnd, live: &Instance) {
        let mut shared = self.0.borrow_mut();
        if shared.failed.is_none() {
            let [start, completion] = [end.started, end.completion].map(|time| time.map(Time::seconds));
            let taken = shared.take_flow(end.flow, FlowTimes { start, completion }, live);
            shared.note(taken);
        }
    }
}

/// A writer that discards everything, for callers that need only the figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWriter;

impl RowWriter for NoWriter {}
