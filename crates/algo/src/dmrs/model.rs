//! Converts the model to the terms of DMRS: machines by speed, jobs with sizes, weights.

use slackline_model::instance::{Flow, Phase};
use slackline_model::{Cluster, GroupId, Instance, JobId, PhaseKind, SlotKind};

use super::list::{self, Run, Slot};
use super::lp::{self, Machines, Side, System};

/// The machines by speed; a machine with n slots is n machines. `speed` is the estimate of a group.
pub fn system(cluster: &Cluster, speed: impl Fn(GroupId) -> f64) -> System {
    let machines = |slot_kind: SlotKind| {
        let classes = cluster.groups().iter_enumerated().map(|(id, group)| {
            let each = cluster.machine_slots(slot_kind, group.first).map_or(0, |slots| slots.len);
            (speed(id), each * group.count)
        });
        Machines::new(classes)
    };
    if cluster.is_map_reduce() {
        System::map_reduce(machines(SlotKind::Map), machines(SlotKind::Reduce))
    } else {
        System::shared(machines(SlotKind::Any))
    }
}

/// The slots of the cluster by slot kind, all free at time 0. `speed` is the estimate of a group.
pub fn slots(cluster: &Cluster, speed: impl Fn(GroupId) -> f64) -> [Vec<Slot>; 2] {
    let mut slot_kinds = [Vec::new(), Vec::new()];
    for &slot_kind in cluster.slot_kinds() {
        for (id, group) in cluster.groups().iter_enumerated() {
            let each = cluster.machine_slots(slot_kind, group.first).map_or(0, |slots| slots.len);
            let first = slot_kinds[slot_kind.index()].len() as u32;
            let slot = |k| Slot { number: first + k, speed: speed(id), free: slackline_model::Time::ZERO };
            slot_kinds[slot_kind.index()].extend((0..each * group.count).map(slot));
        }
    }
    slot_kinds
}

/// The cost of a second of a flow: the slope of its cost if that is linear, else its weight.
pub fn weight(flow: &Flow) -> f64 {
    flow.cost.as_linear().map_or(flow.weight, |(slope, _)| slope)
}

/// Whether every flow's cost is linear and they are summed, so that Σ w_j C_j is the objective.
pub fn is_linear(instance: &Instance) -> bool {
    let is_sum = instance.objective().combine == slackline_model::Combine::Sum;
    is_sum && instance.flows().iter().all(|flow| flow.cost.as_linear().is_some())
}

fn side(phase: Option<&Phase>) -> Side {
    let with_length = phase.filter(|phase| !phase.is_without_length());
    let Some((phase, tasks)) = with_length.and_then(|phase| phase.tasks().map(|tasks| (phase, tasks))) else {
        return Side::default();
    };
    Side {
        work: tasks.work().slot_seconds(),
        longest: tasks.longest().seconds(),
        tasks: phase.cap.min(tasks.count()),
    }
}

/// A whole job for the linear program, released with its flow.
pub fn lp_job(instance: &Instance, job: JobId) -> lp::Job {
    let info = instance.job(job);
    let flow = instance.flow(info.flow);
    let of = |kind| side(info.phase(kind).map(|phase| instance.phase(phase)));
    lp::Job {
        weight: weight(flow),
        release: flow.release.seconds(),
        map: of(PhaseKind::Map),
        reduce: of(PhaseKind::Reduce),
    }
}

/// A whole job for the list, released with its flow.
pub fn list_job(instance: &Instance, job: JobId) -> list::Job {
    let info = instance.job(job);
    let phase = |id| {
        let phase = instance.phase(id);
        let mut first = 0;
        let run = |run: &slackline_model::tasks::Run| {
            first += run.count;
            Run { first: first - run.count, count: run.count, span: run.span }
        };
        let runs = phase.tasks().into_iter().flat_map(slackline_model::tasks::Tasks::runs).map(run).collect();
        let slot_kind = instance.slot_kind_of(id).index();
        let mut phase = list::Phase { id, slot_kind, cap: phase.cap, running: Vec::new(), runs };
        phase.sort();
        phase
    };
    // Phases without length take no slot.
    let phases = info.phases().filter(|&id| !instance.phase(id).is_without_length());
    list::Job { ready: instance.flow(info.flow).release, phases: phases.map(phase).collect() }
}
