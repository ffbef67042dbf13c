//! WOHA as a policy: plans in at submission, the most lagging flow out at every free slot.
//!
//! The policy only follows: what to follow comes from a [`PlanGenerator`] or was handed in, and who is
//! next is chosen by a [`WorkflowScheduler`]. How many tasks were started it reads from the view, before
//! every decision, because an engine may start fewer than were granted.

use std::collections::BTreeMap;

use slackline_model::{FlowId, PhaseId};
use slackline_policy::{Action, Admission, Ask, Event, Grant, IdTable, Policy, View};

use super::active::Active;
use super::generate::{PlanGenerator, admission};
use super::plan::Plan;
use super::request::Request;
use super::scheduler::{Goal, WorkflowScheduler};

/// How to treat a flow that cannot meet its deadline even with the whole cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Late {
    /// It gives way to flows that lag (deviation D11).
    #[default]
    Yield,
    /// It follows its plan, a part of which is overdue.
    Follow,
}

pub struct Woha {
    name: String,
    generator: Box<dyn PlanGenerator + Send>,
    scheduler: Box<dyn WorkflowScheduler + Send>,
    late: Late,
    /// Plans from the caller that are not used yet, by the position of their flow in its document.
    plans: BTreeMap<FlowId, Plan>,
    active: Active,
    /// Tasks of each phase to be started when they were last counted.
    unstarted: IdTable<PhaseId, u32>,
    /// The phase that was granted last.
    granted: Option<PhaseId>,
    admissions: Vec<(FlowId, Admission)>,
}

impl Woha {
    /// A policy for one run: the generator of plans, and the scheduler that selects flows.
    pub fn new(
        name: impl Into<String>,
        generator: Box<dyn PlanGenerator + Send>,
        scheduler: Box<dyn WorkflowScheduler + Send>,
    ) -> Self {
        Self {
            name: name.into(),
            generator,
            scheduler,
            late: Late::default(),
            plans: BTreeMap::new(),
            active: Active::default(),
            unstarted: IdTable::default(),
            granted: None,
            admissions: Vec::new(),
        }
    }

    /// The same policy with another treatment of flows that cannot meet their deadlines.
    pub fn with_late(mut self, late: Late) -> Self {
        self.late = late;
        self
    }

    /// The same policy with plans made elsewhere, each of which fits its flow ([`Plan::fits`]), by the flow's
    /// place in its document; flows without one get theirs from the generator.
    pub fn with_plans(mut self, plans: BTreeMap<FlowId, Plan>) -> Self {
        self.plans = plans;
        self
    }

    fn submit(&mut self, flow: FlowId, view: &View<'_>) {
        for phase in view.instance.flow(flow).jobs().flat_map(|job| view.instance.job(job).phases()) {
            self.unstarted[phase] = view.phase(phase).total();
        }
        let request = Request { instance: view.instance, flow, estimates: view.estimates, now: view.now };
        let plan = self
            .plans
            .remove(&view.instance.flow(flow).place)
            .unwrap_or_else(|| self.generator.plan(&request));
        let goal = view.instance.flow(flow).deadline.map_or(Goal::Whenever, |deadline| {
            let admission = admission(&plan, Some(deadline), view.now);
            self.admissions.push((view.instance.flow(flow).place, admission));
            match self.late {
                Late::Follow => Goal::Follow(deadline),
                Late::Yield if admission.feasible => Goal::Deadline(deadline),
                Late::Yield => Goal::Hopeless(admission.earliest_completion),
            }
        });
        self.active.set_order(flow, plan.order(), view.instance);
        self.scheduler.submit(flow, plan, goal);
    }

    /// Counts the tasks of a phase that were started or lost since the last count.
    fn count(&mut self, phase: PhaseId, view: &View<'_>) {
        let now = view.phase(phase).unstarted();
        let before = std::mem::replace(&mut self.unstarted[phase], now);
        let flow = view.instance.flow_of(phase);
        if now < before {
            self.scheduler.assigned(flow, before - now);
        } else if now > before {
            self.scheduler.lost(flow, now - before);
        }
    }

    fn settle(&mut self, view: &View<'_>) {
        if let Some(phase) = self.granted.take() {
            self.count(phase, view);
        }
    }

    fn revive(&mut self, phase: PhaseId, view: &View<'_>) {
        if self.active.insert(phase, view) {
            self.scheduler.enter(view.instance.flow_of(phase), view.instance.slot_kind_of(phase));
        }
    }
}

impl Policy for Woha {
    fn name(&self) -> &str {
        &self.name
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(Self {
            name: self.name.clone(),
            generator: self.generator.copy()?,
            scheduler: self.scheduler.copy()?,
            late: self.late,
            plans: self.plans.clone(),
            active: self.active.clone(),
            unstarted: self.unstarted.clone(),
            granted: self.granted,
            admissions: self.admissions.clone(),
        }))
    }

    fn admissions(&self) -> &[(FlowId, Admission)] {
        &self.admissions
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        self.settle(view);
        for event in events {
            match *event {
                Event::FlowArrived(flow) => self.submit(flow, view),
                Event::PhaseReady(phase) | Event::TasksDone { phase, .. } => self.revive(phase, view),
                Event::TaskRuns { phase, .. } => self.count(phase, view),
                Event::TasksLost { phase, .. } => {
                    self.count(phase, view);
                    self.revive(phase, view);
                }
                // Waiting reduces became computing ones, or slots came back: the bar may have moved.
                Event::PhaseDone(_) | Event::MachineUp(_) => {
                    for phase in self.active.take_barred() {
                        self.revive(phase, view);
                    }
                }
                Event::FlowDone(flow) | Event::FlowFailed(flow) => {
                    self.scheduler.finish(flow);
                    self.active.forget(flow, view.instance);
                    self.unstarted.forget(view.instance.flow(flow).phases());
                }
                Event::JobDone(_)
                | Event::MachineDown(_)
                | Event::MachineJoined(_)
                | Event::MachineLeft(_)
                | Event::Wake => {}
            }
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.settle(view);
        self.scheduler.advance(view.now);
        let Self { active, scheduler, .. } = self;
        let mut idle = Vec::new();
        let turn = scheduler.first(ask.slot_kind, &mut |flow| {
            let accepted = active.first(flow, ask, view).is_some();
            if !accepted && active.is_empty(flow, ask) {
                idle.push(flow);
            }
            accepted
        });
        for flow in idle {
            scheduler.leave(flow, ask.slot_kind);
        }
        let turn = turn?;
        let phase =
            active.first(turn.flow, ask, view).expect("invariant: the flow was accepted for this phase");
        self.granted = Some(phase);
        Some(Grant { phase, tasks: turn.tasks })
    }
}
