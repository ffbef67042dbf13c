//! Converts events to lines for the program, and tracks the numbers that the program may use.

use std::collections::BTreeMap;

use slackline_model::cluster::{self, Cluster};
use slackline_model::{FlowId, Instance, JobId, MachineId, Objective, PhaseId, PhaseKind, Span};
use slackline_policy::view::mean_of;
use slackline_policy::{Estimates, Event, View};

use crate::command::wire;
use crate::command::wire::{Call, Greeting, Hello, PROTOCOL, WireEvent};

/// The first line, for a run on this cluster.
pub(super) fn greeting(cluster: &Cluster, objective: Objective) -> Greeting<'_> {
    let objective = wire::Objective { metric: objective.metric.name(), combine: objective.combine.name() };
    let machines = cluster.groups().iter().map(group_of).collect();
    Greeting { hello: Hello { protocol: PROTOCOL, version: env!("CARGO_PKG_VERSION"), objective, machines } }
}

fn group_of(group: &cluster::Group) -> wire::Group<'_> {
    wire::Group {
        name: &group.name,
        first: group.first.0,
        count: group.count,
        slots: match group.slots {
            cluster::Slots::Generic(slots) => wire::Slots::Generic(slots),
            cluster::Slots::MapReduce { map, reduce } => wire::Slots::MapReduce { map, reduce },
        },
        rack: group.rack.as_deref(),
    }
}

/// The active flows and phases that the program knows and may use.
#[derive(Default)]
pub(super) struct ProgramView {
    flows: BTreeMap<FlowId, Vec<PhaseId>>,
    phases: BTreeMap<PhaseId, Live>,
    /// One more than the highest number of a phase that the program knows.
    end: u32,
    speeds: Vec<f64>,
}

/// A phase of an active flow.
pub(super) struct Live {
    pub(super) kind: PhaseKind,
    pub(super) tasks: u32,
    /// The mean duration of its tasks that the program received last.
    seconds: Span,
}

impl ProgramView {
    /// The phase of this number, of an active flow.
    ///
    /// # Errors
    /// The error in the number.
    pub(super) fn phase(&self, number: u32) -> Result<(PhaseId, &Live), String> {
        let phase = PhaseId(number);
        match self.phases.get(&phase) {
            Some(live) => Ok((phase, live)),
            None if number < self.end => Err(format!(
                "found phase {number}, whose flow has finished or failed, expected a phase of an active flow"
            )),
            None => Err(format!("found phase {number}, expected the number of a phase that has arrived")),
        }
    }

    /// The line for the events of an instant.
    pub(super) fn call<'a>(&mut self, events: &[Event], view: &View<'a>) -> Call<'a> {
        let happened = events.iter().map(|event| self.happened(*event, view)).collect();
        let speeds = &view.estimates.speed.raw;
        let speeds = (*speeds != self.speeds).then(|| speeds.clone());
        if let Some(speeds) = &speeds {
            self.speeds.clone_from(speeds);
        }
        let mut estimates = Vec::new();
        for (&phase, live) in &mut self.phases {
            let seconds = view.estimates.task[phase];
            if seconds != live.seconds {
                live.seconds = seconds;
                estimates.push((phase.0, seconds.seconds()));
            }
        }
        Call { now: view.now.seconds(), events: happened, speeds, estimates }
    }

    /// Removes the flows that have ended. Called before the answer is read, which must not use them.
    pub(super) fn forget(&mut self, events: &[Event]) {
        for event in events {
            if let Some(flow) = event.over() {
                for phase in self.flows.remove(&flow).unwrap_or_default() {
                    self.phases.remove(&phase);
                }
            }
        }
    }

    fn happened<'a>(&mut self, event: Event, view: &View<'a>) -> WireEvent<'a> {
        let left = |phase: PhaseId| (view.phase(phase).unstarted(), view.phase(phase).running());
        match event {
            Event::FlowArrived(flow) => WireEvent::FlowArrived(self.arrived(flow, view)),
            Event::PhaseReady(phase) => WireEvent::PhaseReady { phase: phase.0 },
            Event::TasksDone { phase, count, machine, took } => {
                let (unstarted, running) = left(phase);
                let (phase, machine, seconds) = (phase.0, machine.0, took.seconds());
                WireEvent::TasksDone { phase, count, machine, seconds, unstarted, running }
            }
            Event::TaskRuns { phase, task, machine } => {
                let (unstarted, running) = left(phase);
                WireEvent::TaskRuns { phase: phase.0, task, machine: machine.0, unstarted, running }
            }
            Event::TasksLost { phase, count } => {
                let (unstarted, running) = left(phase);
                WireEvent::TasksLost { phase: phase.0, count, unstarted, running }
            }
            Event::PhaseDone(phase) => WireEvent::PhaseDone { phase: phase.0 },
            Event::JobDone(job) => WireEvent::JobDone { job: job.0 },
            Event::FlowDone(flow) => WireEvent::FlowDone { flow: flow.0 },
            Event::FlowFailed(flow) => WireEvent::FlowFailed { flow: flow.0 },
            Event::MachineDown(MachineId(machine)) => WireEvent::MachineDown { machine },
            Event::MachineUp(MachineId(machine)) => WireEvent::MachineUp { machine },
            Event::MachineJoined(machine) => {
                let group = group_of(view.instance.cluster().group_of(machine));
                WireEvent::MachineJoined { machine: machine.0, group }
            }
            Event::MachineLeft(MachineId(machine)) => WireEvent::MachineLeft { machine },
            Event::Wake => WireEvent::Wake,
        }
    }

    fn arrived<'a>(&mut self, id: FlowId, view: &View<'a>) -> wire::Flow<'a> {
        let flow = view.instance.flow(id);
        let jobs: Vec<_> = flow.jobs().map(|job| self.job(job, view)).collect();
        let phases = jobs.iter().flat_map(|job| job.map.iter().chain(&job.reduce));
        self.flows.insert(id, phases.map(|phase| PhaseId(phase.number)).collect());
        let pool = flow.pool.map(|pool| &view.instance.pools()[pool]);
        wire::Flow {
            number: id.0,
            id: &flow.id,
            release: flow.release.seconds(),
            weight: flow.weight,
            deadline: flow.deadline.map(slackline_model::Time::seconds),
            cost: match flow.cost.as_piecewise() {
                Some((points, slope)) => wire::Cost::Piecewise { points, slope },
                None => wire::Cost::Steps { steps: flow.cost.as_steps().unwrap_or_default().to_vec() },
            },
            pool: pool.map(|pool| wire::Pool {
                id: &pool.id,
                min_map: pool.min_map,
                min_reduce: pool.min_reduce,
            }),
            user: flow.user.as_deref(),
            jobs,
        }
    }

    fn job<'a>(&mut self, id: JobId, view: &View<'a>) -> wire::Job<'a> {
        let job = view.instance.job(id);
        wire::Job {
            number: id.0,
            id: &job.id,
            after: job.after.iter().map(|job| job.0).collect(),
            map: job.map.map(|phase| self.of_phase(phase, view)),
            reduce: job.reduce.map(|phase| self.of_phase(phase, view)),
        }
    }

    fn of_phase(&mut self, id: PhaseId, view: &View<'_>) -> wire::Phase {
        let phase = view.instance.phase(id);
        let (tasks, seconds) = (view.phase(id).total(), view.estimates.task[id]);
        self.phases.insert(id, Live { kind: phase.kind, tasks, seconds });
        self.end = self.end.max(id.0 + 1);
        wire::Phase {
            number: id.0,
            tasks,
            seconds: seconds.seconds(),
            min_slots: phase.min_slots,
            max_slots: phase.cap,
            each: each(view.instance, view.estimates, id),
        }
    }
}

/// The estimated duration of each task of a phase, if they are known to differ.
fn each(instance: &Instance, estimates: &Estimates, phase: PhaseId) -> Option<Vec<(u32, f64)>> {
    let runs = instance.phase(phase).tasks()?.runs();
    let (estimated, mean) = (estimates.task[phase], mean_of(instance.phase(phase)));
    if !estimates.each || runs.len() < 2 || mean == Span::ZERO {
        return None;
    }
    // The proportions are known, and the scale is estimated.
    let unit = if estimated == mean { 1.0 } else { estimated.seconds() / mean.seconds() };
    Some(runs.iter().map(|run| (run.count, run.span.seconds() * unit)).collect())
}
