//! Simulates and validates rows when they are final, and writes or drops them. Memory depends on the active
//! flows, with a few numbers per flow. If the caller wants all rows, they are kept and validated as a whole.

use std::cell::OnceCell;
use std::io;

use slackline_judge::{Report, Stream, Violation};
use slackline_model::id::TiVec;
use slackline_model::schedule::{
    AmRow, Clock, FlowResult, FlowRow, FlowTimes, NewRow, Origin, Rows, TaskRows,
};
use slackline_model::{FlowId, Instance, Schedule, SlotRange, Span, Time};
use slackline_policy::driver::Figures;
use slackline_policy::engine::{Faults, RowId};
use slackline_policy::unfinished::Unfinished;
use slackline_policy::{Driver, Engine, FlowEnd, Policy, Sink};
use slackline_sim::Sim;

use super::{Crowding, FinalRow, GRAIN, Options, QuickBound, SimulateError, Simulated, Watch, prepare};
use crate::plan;
use crate::policy_spec::PolicySpec;
use crate::stopwatch::Stopwatch;

/// Writes a schedule row by row. Each method writes nothing by default.
pub trait RowWriter {
    /// Writes the origin of the schedule. `instance` has the cluster and the objective.
    ///
    /// # Errors
    /// A write error, as for the other methods. It stops the simulation.
    fn begin(&mut self, instance: &Instance, origin: &Origin) -> io::Result<()> {
        let _ = (instance, origin);
        Ok(())
    }

    /// Writes a row that is final. `live` contains its flow.
    ///
    /// # Errors
    /// See [`Self::begin`].
    fn row(&mut self, live: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        let _ = (live, row, places);
        Ok(())
    }

    /// Writes the ApplicationMaster of a job that has ended. `live` contains its flow. Called only under a
    /// profile with ApplicationMasters.
    ///
    /// # Errors
    /// See [`Self::begin`].
    fn am(&mut self, live: &Instance, row: &AmRow) -> io::Result<()> {
        let _ = (live, row);
        Ok(())
    }

    /// Writes a flow whose rows have all been written. `live` contains it.
    ///
    /// # Errors
    /// See [`Self::begin`].
    fn flow(&mut self, live: &Instance, row: &FlowRow) -> io::Result<()> {
        let _ = (live, row);
        Ok(())
    }
}

/// The reason why a schedule is missing or incomplete.
#[derive(Debug, thiserror::Error)]
pub enum NotWritten {
    /// The simulation failed.
    #[error(transparent)]
    NotSimulated(#[from] SimulateError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

impl NotWritten {
    /// The simulation error, for a simulation without output.
    pub(crate) fn simulation(self) -> SimulateError {
        match self {
            Self::NotSimulated(problem) => problem,
            Self::Output(_) => unreachable!("invariant: what is not written cannot fail to be"),
        }
    }
}

/// What happens to the rows of a run.
pub(crate) enum Leave<'o> {
    /// The schedule keeps them, in the order of their starts.
    Kept,
    /// They are dropped; the schedule has none.
    Dropped,
    /// They are written when they are final; the schedule has none.
    To(&'o mut dyn RowWriter),
}

/// As [`super::simulate`], but rows and flows are written to `out` when they are final, and the returned
/// schedule has no rows.
///
/// Rows are written in the order of their ends. If machines may lose finished output, the rows of a flow are
/// written when the flow has ended. Data that only the validation of the whole schedule needs is kept until
/// the end (see [`Stream::new`]).
///
/// # Errors
/// An invalid schedule; an error of `out`. The output so far must then be discarded.
pub fn simulate_to(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<&QuickBound>,
    progress: Option<&mut dyn FnMut(u64)>,
    out: &mut dyn RowWriter,
) -> Result<Simulated, NotWritten> {
    let watch = Watch { progress, ..Watch::default() };
    simulate_watched(instance, policy, options, bound, watch, Leave::To(out))
}

/// Simulates, validates, and keeps, drops or writes the rows.
///
/// # Errors
/// An invalid schedule; a policy that could not continue; a run that was stopped; an error of the output.
pub(crate) fn simulate_watched(
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<&QuickBound>,
    watch: Watch<'_>,
    mut leave: Leave<'_>,
) -> Result<Simulated, NotWritten> {
    let instance = &*prepare(instance, GRAIN)?;
    options.check(instance).map_err(SimulateError::from)?;
    let stopwatch = Stopwatch::start();
    let nanos = || stopwatch.nanos();
    // The cast shortens the lifetime of the captured borrows, which `Option` alone does not.
    let progress = watch.progress.map(|p| p as &mut dyn FnMut(u64));
    let config = options.config(instance.cluster(), &nanos, progress);
    let mut built = match plan::foreseeing(instance, policy, options, watch.cancel)? {
        Some(built) => built,
        None => policy.build_following(instance.cluster(), &instance.objective(), options.plans.clone()),
    };
    if let Some(why) = options.refuses(built.as_ref()) {
        return Err(SimulateError::Refused(why).into());
    }
    let mut engine = Sim::new(instance, options.sim.clone());
    let capabilities = engine.capabilities();
    // The same rule as in the driver.
    let is_prompt = capabilities.is_prompt() && options.locality_wait == Span::ZERO;
    let origin = Origin {
        policy: policy.spec().to_owned(),
        minima: built.keeps_minima() && is_prompt,
        clock: options.clock(),
        slowstart: options.slowstart,
        profile: options.sim.profile.clone(),
    };
    if let Leave::To(out) = &mut leave {
        out.begin(instance, &origin)?;
    }
    let minima = origin.minima;
    let nothing = Rows::Tasks(TaskRows::new());
    let mut schedule = Schedule::from_rows(instance, origin, nothing, |_| FlowTimes::default());
    let judged = Judged::new(instance, &schedule, &leave, capabilities.faults);
    let failed = OnceCell::new();
    let times = vec![None; instance.flows().len()].into();
    let left = watch.left.map(|left| left as &mut dyn FnMut(FinalRow<'_>));
    let mut leaving = Leaving { instance, leave, judged, ams: Vec::new(), times, left, failed: &failed };
    let empty = instance.without_flows();
    let mut driver = Driver::new(empty, built.as_mut(), &mut engine, &mut leaving, config);
    while failed.get().is_none() {
        if watch.cancel.is_some_and(|cancel| cancel()) {
            let _ = failed.set(SimulateError::Stopped.into());
        } else if !driver.step() {
            break;
        }
    }
    let mut figures = driver.close();
    if let Some(failure) = figures.failure.take() {
        return Err(SimulateError::Policy(failure).into());
    }
    let timings = options.timed_by(&stopwatch, &mut figures);
    leaving.flows_that_never_came();
    let Leaving { leave, judged, ams, times, .. } = leaving;
    schedule.ams = ams;
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    assert_eq!(figures.minima, minima, "the first line says what the driver promised");
    schedule.claim_times(instance, |flow| times[flow].unwrap_or_default());
    let bound = bound.filter(|_| options.clock() == Clock::Exact);
    schedule.claim_bound(bound.and_then(|bound| bound.get(instance)));
    let judged = judged.finish(instance, &mut schedule).map_err(SimulateError::Infeasible)?;
    let crowding = Crowding::of(instance, &schedule);
    if !matches!(leave, Leave::Kept) {
        schedule.tasks = TaskRows::new();
        schedule.ams = Vec::new();
    }
    let failed = schedule.flows.iter().filter(|row| row.status == FlowResult::Failed).count();
    Ok(Simulated { crowding, timings, ..simulated(schedule, judged, figures, built.as_ref(), failed) })
}

/// What the judge, the driver and the policy say at the end of a simulation in which this many flows failed.
pub(super) fn simulated(
    schedule: Schedule,
    judged: Report,
    figures: Figures,
    policy: &dyn Policy,
    failed: usize,
) -> Simulated {
    let mut unfinished = figures.unfinished;
    let known: u64 = unfinished.iter().map(|unfinished| unfinished.flows).sum();
    let flows = (failed as u64).saturating_sub(known);
    if flows > 0 {
        let reason = "the simulation ended before their release".to_owned();
        unfinished.push(Unfinished { reason, flows, first: None });
    }
    Simulated {
        schedule,
        metrics: judged.metrics,
        flows: judged.flows,
        decisions: figures.decisions,
        reports: figures.reports,
        history: figures.history,
        admissions: policy.admissions().to_vec(),
        choices: policy.choices().to_vec(),
        crowding: None,
        timings: None,
        unfinished,
    }
}

/// How the rows are validated.
enum Judged<'a> {
    AsTheyCome(Box<Stream<'a>>),
    AtTheEnd(TaskRows),
}

impl<'a> Judged<'a> {
    /// Validates rows as they arrive if that is possible and the caller does not want all rows.
    fn new(instance: &'a Instance, head: &Schedule, leave: &Leave<'_>, faults: Faults) -> Self {
        let is_whole = matches!(leave, Leave::Kept) || faults == Faults::TasksAndOutput;
        let stream = if is_whole { None } else { Stream::new(instance, head) };
        stream.map_or_else(|| Self::AtTheEnd(TaskRows::new()), |stream| Self::AsTheyCome(Box::new(stream)))
    }

    /// Validates the schedule. Rows that were kept are moved into it.
    fn finish(self, instance: &Instance, schedule: &mut Schedule) -> Result<Report, Violation> {
        match self {
            Self::AsTheyCome(stream) => stream.finish(schedule),
            Self::AtTheEnd(rows) => {
                schedule.tasks = rows;
                slackline_judge::check(instance, schedule)
            }
        }
    }
}

/// Passes final rows and flows on, until the first error.
struct Leaving<'a, 'o, 'f> {
    /// The whole workload. The validator uses its ids of flows and phases.
    instance: &'a Instance,
    leave: Leave<'o>,
    judged: Judged<'a>,
    /// The ApplicationMasters so far. They are validated at the end.
    ams: Vec<AmRow>,
    /// By flow that has ended: its times.
    times: TiVec<FlowId, Option<FlowTimes>>,
    /// Receives each row.
    left: Option<&'f mut dyn FnMut(FinalRow<'_>)>,
    failed: &'f OnceCell<NotWritten>,
}

impl Leaving<'_, '_, '_> {
    /// Stores the first error.
    fn note(&self, result: Result<(), NotWritten>) {
        if let Err(error) = result {
            // A later error is a consequence of the first one.
            let _ = self.failed.set(error);
        }
    }

    fn take_row(
        &mut self,
        id: RowId,
        row: &NewRow,
        places: &[SlotRange],
        live: &Instance,
    ) -> Result<(), NotWritten> {
        let known = NewRow { phase: live.phase_in(self.instance, row.phase), ..*row };
        if let Some(left) = &mut self.left {
            left(FinalRow::Row(&known, places));
        }
        match &mut self.judged {
            Judged::AsTheyCome(stream) => stream.row(known, places).map_err(SimulateError::Infeasible)?,
            Judged::AtTheEnd(rows) => rows.set(id.into(), known, places),
        }
        match &mut self.leave {
            Leave::To(out) => Ok(out.row(live, row, places)?),
            Leave::Kept | Leave::Dropped => Ok(()),
        }
    }

    fn take_am(&mut self, row: &AmRow, live: &Instance) -> Result<(), NotWritten> {
        let known = AmRow { job: live.job_in(self.instance, row.job), ..*row };
        if let Some(left) = &mut self.left {
            left(FinalRow::Am(&known));
        }
        self.ams.push(known);
        match &mut self.leave {
            Leave::To(out) => Ok(out.am(live, row)?),
            Leave::Kept | Leave::Dropped => Ok(()),
        }
    }

    fn take_flow(&mut self, id: FlowId, times: FlowTimes, live: &Instance) -> Result<(), NotWritten> {
        let row = FlowRow::new(live, id, times);
        let place = live.flow(id).place;
        self.times[place] = Some(times);
        if let Judged::AsTheyCome(stream) = &mut self.judged {
            stream.flow(&FlowRow { flow: place, ..row }).map_err(SimulateError::Infeasible)?;
        }
        match &mut self.leave {
            Leave::To(out) => Ok(out.flow(live, &row)?),
            Leave::Kept | Leave::Dropped => Ok(()),
        }
    }

    /// Marks the flows as failed that had not arrived when the simulation ended.
    fn flows_that_never_came(&mut self) {
        let instance = self.instance;
        for flow in instance.flows().keys() {
            if self.times[flow].is_none() && self.failed.get().is_none() {
                let taken = self.take_flow(flow, FlowTimes::default(), instance);
                self.note(taken);
            }
        }
    }
}

impl Sink for Leaving<'_, '_, '_> {
    fn row(&mut self, id: RowId, row: &NewRow, places: &[SlotRange], live: &Instance) {
        if self.failed.get().is_none() {
            let taken = self.take_row(id, row, places, live);
            self.note(taken);
        }
    }

    fn am(&mut self, row: &AmRow, live: &Instance) {
        if self.failed.get().is_none() {
            let taken = self.take_am(row, live);
            self.note(taken);
        }
    }

    fn flow(&mut self, end: &FlowEnd, live: &Instance) {
        if self.failed.get().is_none() {
            let [start, completion] = [end.started, end.completion].map(|time| time.map(Time::seconds));
            let taken = self.take_flow(end.flow, FlowTimes { start, completion }, live);
            self.note(taken);
        }
    }
}
