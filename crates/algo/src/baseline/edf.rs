//! EDF: the flow with the earliest deadline first.
//!
//! **Paper**: WOHA §V-B ports it to workflows: all jobs of a workflow have its deadline.
//! **Problem**: flows with deadlines; those without come last. **Idea**: phases wait in the order of
//! their flows' deadlines (ties: release, then id); within a flow, the job that became ready first is
//! served first. **Guarantee**: none with several slots. **Complexity**: O(log phases) a decision; with slack
//! O(phases of the flow) when it arrives.
//! **Deviations**: none by default. D1. With `slack`, a phase is due when it has to start: its flow's
//! deadline less the longest path from the start of the phase, at estimated lengths and with all the slots it
//! can use. D2. With `weights`, the time from its release to its deadline counts divided by the weight of the
//! flow: of two that have the same time, the heavier one is due first.

use slackline_model::params::{Param, Values};
use slackline_model::{FlowId, JobId, Key, PhaseId, Time};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, ReadyQueue, View};

use super::dates::{Dates, paths};
use super::{JobReady, fluid, propose};
use crate::registry::{Planner, PolicyEntry};

/// EDF in tables of policies.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "woha, section V-B",
    params: &[
        Param::new(
            "due",
            "deadline",
            Values::Choice(&["deadline", "slack"]),
            "what phases are ordered by: the deadlines of their flows, or the latest starts that meet these",
        ),
        Param::new(
            "weights",
            "ignored",
            Values::Choice(&["ignored", "counted"]),
            "whether to divide the time to the deadline by the flow's weight",
        ),
    ],
    planner: Planner::Allocations(|instance, settings, _| {
        propose(instance, fluid::Rule::Edf(Dates::chosen(settings)))
    }),
    ..PolicyEntry::new(
        "edf",
        "the flow with the earliest deadline first; flows without one come last",
        |_, _, settings| Box::new(Edf::new(Dates::chosen(settings))),
    )
};

#[derive(Clone, Debug, Default)]
pub struct Edf {
    dates: Dates,
    ready: JobReady,
    /// Seconds from the start of phases to the end of their flows, if dates need them.
    paths: IdTable<PhaseId, f64>,
    queue: ReadyQueue<(Key, Time, FlowId, Time, JobId)>,
}

impl Edf {
    pub fn new(dates: Dates) -> Self {
        Self { dates, ..Self::default() }
    }

    /// Measures flows that have arrived and forgets finished ones.
    fn note(&mut self, events: &[Event], view: &View<'_>) {
        for event in events {
            if let Event::FlowArrived(flow) = *event {
                for (phase, path) in paths(view.instance, flow, |phase| shortest(phase, view)) {
                    self.paths[phase] = path;
                }
            } else if let Some(flow) = event.over() {
                self.paths.forget(view.instance.flow(flow).phases());
            }
        }
    }
}

/// The estimated duration of a phase with all the slots it can use, on machines of speed 1.
fn shortest(phase: PhaseId, view: &View<'_>) -> f64 {
    let slots = view.instance.cluster().slots(view.instance.slot_kind_of(phase));
    let at_once = view.usable(phase).min(slots).max(1);
    let task = if view.is_instant(phase) { 0.0 } else { view.estimates.task[phase].seconds() };
    (view.work_left(phase) / f64::from(at_once)).max(task)
}

impl Policy for Edf {
    fn name(&self) -> &'static str {
        "edf"
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        if self.dates.slack {
            self.note(events, view);
        }
        let Self { dates, ready, paths, queue } = self;
        queue.update(events, view, |phase| {
            let id = view.instance.flow_of(phase);
            let flow = view.instance.flow(id);
            let due = Key::new(dates.of(flow, paths[phase]));
            (due, flow.release, id, ready.of(phase, view), view.instance.phase(phase).job)
        });
        ready.note(events, view);
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::Instance;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
    use slackline_model::schedule::Clock;
    use slackline_policy::Config;
    use slackline_sim::{Options, Sim};

    use super::*;

    /// On one slot: a chain of 1 s and 8 s due at 11, and 1 s of weight 4 due at 10.
    fn completions(dates: Dates) -> Vec<f64> {
        let job = |id: &str, after: &[&str], seconds| JobDraft {
            id: id.into(),
            after: after.iter().map(|&before| before.into()).collect(),
            map: Some(TasksDraft::Uniform { tasks: 1, seconds }.into()),
            ..JobDraft::default()
        };
        let flow =
            |id, weight, due, jobs| FlowDraft { weight, deadline: Some(due), ..FlowDraft::new(id, jobs) };
        let flows = vec![
            flow("chain", 1.0, 11.0, vec![job("a", &[], 1.0), job("b", &["a"], 8.0)]),
            flow("short", 4.0, 10.0, vec![job("c", &[], 1.0)]),
        ];
        let machine =
            MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(1), rack: None };
        let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
        let mut engine = Sim::new(&instance, Options::exact());
        let run = slackline_policy::run(&instance, &mut Edf::new(dates), &mut engine, Config::plain());
        let schedule = run.schedule(&instance, "edf", Clock::Exact);
        schedule.flows.iter().map(|flow| flow.completion.unwrap()).collect()
    }

    #[test]
    fn slack_and_weights_count_if_the_parameters_say_so() {
        assert_eq!(completions(Dates::DEADLINES), [10.0, 1.0]);
        // The chain must start at 2 s, the short one at 9.
        assert_eq!(completions(Dates { slack: true, weights: false }), [9.0, 10.0]);
        // A quarter of 10 s, less 1 s: before the chain's second job, behind its first.
        assert_eq!(completions(Dates { slack: true, weights: true }), [10.0, 1.0]);
    }
}
