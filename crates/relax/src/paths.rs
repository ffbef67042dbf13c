//! Effective work of phases, their shortest durations, and the longest paths before and after them.
//!
//! A *head* is the least time from a flow's release to the start of work of a phase, a *tail* the least time
//! from the end of that work to the flow's completion. Both are longest paths over the phases of the flow,
//! each as short as its cap on the fastest slots of its kind allows (docs/math/flowflex.md B7), and on
//! machines of mixed speed at least as long as its longest task on the fastest slot.

use slackline_model::id::TiVec;
use slackline_model::instance::{Amount, Phase};
use slackline_model::tasks::Tasks;
use slackline_model::{Cluster, Instance, JobId, PhaseId, SlotKind, Span};

/// Work, shortest durations, head and tail of every phase, in (slot-)seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Paths {
    /// Effective work in slot-seconds, see [`effective_work`].
    pub work: TiVec<PhaseId, f64>,
    /// Effective work over the speed of the fastest slots that the phase may hold at a time: no part of the
    /// work is done at a higher rate than all of it in this time.
    pub duration: TiVec<PhaseId, f64>,
    /// Least time from the first start to the last end of its tasks: the duration or, on machines of mixed
    /// speed, the longest task if that is more. Near its end the phase may work slowly, so it implies no
    /// rate.
    pub elapsed: TiVec<PhaseId, f64>,
    /// Longest path before the phase, from the release of its flow.
    pub head: TiVec<PhaseId, f64>,
    /// Longest path after the phase, to the completion of its flow.
    pub tail: TiVec<PhaseId, f64>,
}

impl Paths {
    /// Longest paths of all flows. O(phases · machine groups + tasks runs + edges).
    pub fn of(instance: &Instance) -> Self {
        let cluster = instance.cluster();
        let speeds = [SlotKind::Map, SlotKind::Reduce].map(|slot_kind| speeds(cluster, slot_kind));
        let work: TiVec<PhaseId, f64> = instance
            .phases()
            .iter()
            .map(|phase| effective_work(phase, &speeds[cluster.slot_kind_of(phase.kind).index()]))
            .collect();
        let duration = instance.phases().iter_enumerated().map(|(id, phase)| {
            let slot_kind = cluster.slot_kind_of(phase.kind);
            work[id] / cluster.fastest(slot_kind, phase.cap)
        });
        let duration: TiVec<PhaseId, f64> = duration.collect();
        // On machines of one speed there are also plans, which divide work arbitrarily.
        let mixed = cluster.uniform_speed().is_none();
        let longest = |phase: &Phase| if mixed { longest_task(cluster, phase) } else { 0.0 };
        let phases = instance.phases().iter().zip(&duration);
        let elapsed = phases.map(|(phase, duration)| duration.max(longest(phase))).collect();
        let (head, tail) = (heads(instance, &elapsed), tails(instance, &elapsed));
        Self { work, duration, elapsed, head, tail }
    }
}

/// Longest path before each phase, in seconds.
fn heads(instance: &Instance, elapsed: &TiVec<PhaseId, f64>) -> TiVec<PhaseId, f64> {
    let mut head: TiVec<PhaseId, f64> = vec![0.0; elapsed.len()].into();
    let mut end: TiVec<JobId, f64> = vec![0.0; instance.jobs().len()].into();
    for id in instance.topological() {
        let job = instance.job(id);
        let mut at = job.after.iter().map(|&a| end[a]).fold(0.0, f64::max);
        for phase in job.phases() {
            head[phase] = at;
            at += elapsed[phase];
        }
        end[id] = at;
    }
    head
}

/// Longest path after each phase, in seconds.
fn tails(instance: &Instance, elapsed: &TiVec<PhaseId, f64>) -> TiVec<PhaseId, f64> {
    let mut tail: TiVec<PhaseId, f64> = vec![0.0; elapsed.len()].into();
    let mut from: TiVec<JobId, f64> = vec![0.0; instance.jobs().len()].into();
    for id in instance.topological().rev() {
        let job = instance.job(id);
        let mut left = job.before.iter().map(|&b| from[b]).fold(0.0, f64::max);
        for phase in [job.reduce, job.map].into_iter().flatten() {
            tail[phase] = left;
            left += elapsed[phase];
        }
        from[id] = left;
    }
    tail
}

/// Seconds of the longest task of a phase on the fastest slot, exact or rounded to whole microseconds,
/// whichever is less; 0 for work that is not divided into tasks.
fn longest_task(cluster: &Cluster, phase: &Phase) -> f64 {
    let fastest = cluster.fastest(cluster.slot_kind_of(phase.kind), 1);
    let seconds =
        |longest: Span| longest.at_speed_nearest(fastest).seconds().min(longest.seconds() / fastest);
    phase.tasks().map_or(0.0, |tasks| seconds(tasks.longest()))
}

/// Seconds of a task of a phase on the fastest slot, as the mean over its work, so that long tasks count for
/// more; 0 for work that is not divided into tasks. The mean time from the work of a task to its end is half
/// of it.
pub(crate) fn mean_task(cluster: &Cluster, phase: &Phase) -> f64 {
    let Some(tasks) = phase.tasks() else { return 0.0 };
    let (slot_kind, mut work, mut weighted) = (cluster.slot_kind_of(phase.kind), 0.0, 0.0);
    let (fastest, speeds) = (cluster.fastest(slot_kind, 1), speeds(cluster, slot_kind));
    for run in tasks.runs() {
        let of_run = least_work(run.span, &speeds) * f64::from(run.count);
        let least = run.span.at_speed_nearest(fastest).seconds().min(run.span.seconds() / fastest);
        (work, weighted) = (work + of_run, weighted + of_run * least);
    }
    if work > 0.0 { weighted / work } else { 0.0 }
}

/// The distinct speeds of the slots of a kind, ascending. (`SlotKind::Map` also stands for generic slots:
/// they share an index.)
fn speeds(cluster: &Cluster, slot_kind: SlotKind) -> Vec<f64> {
    let mut list = Vec::new();
    let mut slot = 0;
    while slot < cluster.slots(slot_kind) {
        let (speed, next) = cluster.speed_of(slot_kind, slot);
        list.push(speed);
        slot = next;
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    list
}

/// The least slot-seconds that slots of these `speeds` can have spent on the phase.
///
/// A simulated task of span s holds a slot of speed v for `round(s / v)` whole microseconds, in which the
/// slot could do `v · round(s / v)` of work, perhaps less than s. So a task counts min(s, min_v v · round(s /
/// v)). With that work spread evenly over the time in which the task holds its slot, no slot works faster
/// than its speed, and every relaxation by rates and areas holds for the rounded durations. It also holds for
/// malleable plans, which do the whole s.
pub fn effective_work(phase: &Phase, speeds: &[f64]) -> f64 {
    match &phase.amount {
        Amount::Tasks(tasks) if speeds.iter().any(|&v| v != 1.0) => rounded_work(tasks, speeds),
        Amount::Tasks(_) | Amount::Malleable(_) => phase.work().slot_seconds(),
    }
}

fn rounded_work(tasks: &Tasks, speeds: &[f64]) -> f64 {
    let work = tasks.runs().iter().map(|run| least_work(run.span, speeds) * f64::from(run.count));
    work.sum::<f64>() / slackline_model::time::MICROS as f64
}

/// The work that a task counts for, in microseconds of slots of speed 1.
fn least_work(span: Span, speeds: &[f64]) -> f64 {
    let rounded = speeds.iter().map(|&v| v * span.at_speed_nearest(v).0 as f64);
    rounded.fold(span.0 as f64, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_model::id::{FlowId, PhaseKind};

    fn phase(count: u32, micros: u64) -> Phase {
        Phase {
            flow: FlowId(0),
            job: JobId(0),
            kind: PhaseKind::Map,
            amount: Amount::Tasks(Tasks::uniform(count, Span(micros))),
            min_slots: 0,
            cap: count,
        }
    }

    #[test]
    fn work_counts_the_least_that_rounding_leaves() {
        // 10 µs at speed 3 is 3.33 µs, simulated as 3: nine microseconds of work at speed 1.
        assert_eq!(effective_work(&phase(4, 10), &[1.0, 3.0]), 36e-6);
        // 10 µs at speed 4 is 2.5, simulated as 3: rounding up does not reduce the work.
        assert_eq!(effective_work(&phase(4, 10), &[4.0]), 40e-6);
        // 1 µs at speed 3 takes 0 µs.
        assert_eq!(effective_work(&phase(4, 1), &[3.0]), 0.0);
        assert_eq!(effective_work(&phase(4, 10), &[1.0]), 40e-6);
    }
}
