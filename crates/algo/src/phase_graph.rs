//! The phases of an instance as work for [`crate::classic::fluid`]: node k is phase k.

use slackline_model::instance::Phase;
use slackline_model::schedule::Allocation;
use slackline_model::{Instance, JobId, PhaseId};

use crate::classic::fluid::{Graph, Node, Row};

/// All phases on machines of one `speed`: reduces after the maps of their job, jobs after those they wait
/// for, nothing before the release of its flow. O(phases log phases + precedences).
pub(crate) fn of(instance: &Instance, speed: f64) -> Graph {
    let cluster = instance.cluster();
    let node = |(id, phase): (PhaseId, &Phase)| {
        let slot_kind = instance.slot_kind_of(id);
        Node {
            work: phase.work().slot_seconds() / speed,
            cap: phase.cap.min(cluster.slots(slot_kind)),
            slot_kind: slot_kind.index(),
            longest: phase.tasks().map(|tasks| tasks.longest().seconds() / speed),
        }
    };
    let mut arcs = Vec::new();
    for job in instance.jobs().iter() {
        let phases: Vec<u32> = job.phases().map(|phase| phase.0).collect();
        arcs.extend(phases.windows(2).map(|pair| (pair[0], pair[1])));
        let last = |&before: &JobId| instance.job(before).phases().last().map(|phase| phase.0);
        let before = job.after.iter().filter_map(last);
        arcs.extend(before.filter_map(|before| phases.first().map(|&first| (before, first))));
    }
    let mut slots = [0; 2];
    for &slot_kind in cluster.slot_kinds() {
        slots[slot_kind.index()] = cluster.slots(slot_kind);
    }
    let release = |node| instance.flow(instance.flow_of(PhaseId::from(node))).release.seconds();
    Graph::new(slots, instance.phases().iter_enumerated().map(node).collect(), arcs, release)
}

/// Rows of an execution as allocations.
pub(crate) fn allocations(rows: Vec<Row>) -> Vec<Allocation> {
    let allocation = |row: Row| Allocation {
        phase: PhaseId::from(row.node),
        start: row.start,
        end: row.end,
        slots: row.slots,
    };
    rows.into_iter().map(allocation).collect()
}

/// When each flow is done: the end of its last row, but not before its release.
pub(crate) fn completions(instance: &Instance, rows: &[Allocation]) -> Vec<f64> {
    let mut completions: Vec<f64> = instance.flows().iter().map(|flow| flow.release.seconds()).collect();
    for row in rows {
        let end = &mut completions[instance.flow_of(row.phase).index()];
        *end = end.max(row.end);
    }
    completions
}
