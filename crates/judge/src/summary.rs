//! Computes from the rows alone when flows started and completed, and how much they used.

use slackline_model::id::TiVec;
use slackline_model::instance::Flow;
use slackline_model::schedule::{Outcome, Schedule};
use slackline_model::{FlowId, Instance, PhaseId};

use crate::ledger::Ledger;
use crate::order::{Progress, computes_from};
use crate::plan::Plan;
use crate::segments::Timeline;

/// The policy of a recorded execution. Its flows finish when the log says so, after their last task.
const RECORDED: &str = "recorded";

/// Whether `allocations` describe the schedule. Task rows take precedence. Without rows of either kind
/// nothing ran, which completes an instance without work, on machines of all speeds.
pub(crate) fn is_by_allocations(schedule: &Schedule) -> bool {
    schedule.tasks.is_empty() && !schedule.allocations.is_empty()
}

/// The facts of one flow from the rows; times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowFacts {
    /// When its first task started; the release of a flow that was done without ever holding a slot.
    pub start: Option<f64>,
    /// When it was complete; `None` for a failed flow (by its row, or because a part of it is missing).
    pub completion: Option<f64>,
    /// When the last of its attempts ended; 0 if there was none.
    pub end: f64,
    /// Slot-seconds that its attempts used; reduces that wait for maps use none.
    pub busy: f64,
    /// Its tasks that are done; 0 for allocations.
    pub tasks: u64,
}

impl FlowFacts {
    /// When it was complete, or the last of its attempts ended if it failed.
    pub(crate) fn last(&self) -> f64 {
        self.completion.unwrap_or(self.end)
    }
}

/// The facts of each flow; times are seconds.
pub(crate) type Facts = TiVec<FlowId, FlowFacts>;

/// The facts of any schedule; invalid rows are left out.
pub(crate) fn of_schedule(instance: &Instance, schedule: &Schedule) -> Facts {
    if is_by_allocations(schedule) {
        return of_plan(&Plan::new(instance, &schedule.allocations));
    }
    let ledger = Ledger::new(instance, &schedule.tasks);
    let progress = Progress::new(&ledger, &Timeline::new(schedule));
    of_tasks(&ledger, &progress, &schedule.policy)
}

/// Facts of task rows. O(rows).
pub(crate) fn of_tasks(ledger: &Ledger<'_>, progress: &Progress, policy: &str) -> Facts {
    let start = |phase| ledger.of(phase).next().map(|row| row.start.seconds());
    let done = |phase: PhaseId| progress.done[phase].map(slackline_model::Time::seconds);
    let mut facts = by_flow(ledger.instance, start, done);
    for &i in ledger.by_start() {
        let row = ledger.row(i);
        let fact = &mut facts[ledger.instance.flow_of(row.phase)];
        fact.end = fact.end.max(row.end.seconds());
        if let Some(from) = computes_from(ledger.instance, progress, row) {
            fact.busy += row.end.since(from).seconds() * f64::from(row.count);
        }
        if row.outcome == Outcome::Done {
            fact.tasks += u64::from(row.count);
        }
    }
    if policy == RECORDED {
        for (flow, fact) in ledger.instance.flows().iter().zip(&mut facts) {
            let end = flow.recorded_end.map_or(0.0, slackline_model::Time::seconds);
            fact.completion = fact.completion.map(|completion| completion.max(end));
        }
    }
    facts
}

pub(crate) fn of_plan(plan: &Plan<'_>) -> Facts {
    let mut facts = by_flow(plan.instance, |phase| plan.starts[phase], |phase| plan.finishes[phase]);
    for (_, row) in &plan.rows {
        let fact = &mut facts[plan.instance.flow_of(row.phase)];
        fact.end = fact.end.max(row.end);
        fact.busy += f64::from(row.slots) * (row.end - row.start);
    }
    facts
}

/// First start and last finish of the phases of each flow. A flow without rows is done at once.
fn by_flow(
    instance: &Instance,
    start: impl Fn(PhaseId) -> Option<f64>,
    finish: impl Fn(PhaseId) -> Option<f64>,
) -> Facts {
    let fact = |info: &Flow| {
        let phases = || info.jobs().flat_map(|job| instance.job(job).phases());
        let completion = phases().try_fold(info.release.seconds(), |last, p| Some(last.max(finish(p)?)));
        let shown = phases().filter_map(&start).reduce(f64::min);
        FlowFacts { start: shown.or(completion), completion, ..FlowFacts::default() }
    };
    instance.flows().iter().map(fact).collect()
}
