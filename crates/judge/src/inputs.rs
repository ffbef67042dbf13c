//! Checks tasks whose input is on certain machines. Under a profile they wait for slots there, and compute
//! for longer elsewhere.

use std::collections::BTreeMap;

use slackline_model::schedule::{AmRow, Schedule};
use slackline_model::{Instance, JobId, MachineId, PhaseId, Profile, Span, Time};

use crate::ledger::Ledger;
use crate::tolerance;
use crate::violation::{Distance, First, Place, Subject, Violation};

/// The distance of a task on a slot from its input; `None` if its input is on no particular machine.
fn distance(instance: &Instance, phase: PhaseId, task: u32, slot: u32) -> Option<Distance> {
    let splits = instance.phase(phase).tasks()?.splits();
    let hosts = &splits[..splits.partition_point(|split| split.first <= task)].last()?.hosts;
    let cluster = instance.cluster();
    let (machine, _) = cluster.machine_of(instance.slot_kind_of(phase), slot);
    let in_rack = |host: &MachineId| cluster.group_of(*host).rack == cluster.group_of(machine).rack;
    match hosts.as_slice() {
        [] => None,
        hosts if hosts.contains(&machine) => Some(Distance::Node),
        hosts if hosts.iter().any(in_rack) => Some(Distance::Rack),
        _ => Some(Distance::OffRack),
    }
}

/// Whether the duration of tasks depends on the place of their input.
pub(crate) fn have_factors(profile: Option<&Profile>) -> bool {
    profile.is_some_and(|profile| profile.rack_factor() > 1.0 || profile.off_rack_factor() > 1.0)
}

/// The factor on the duration of a task on a slot, compared with a slot on the machine of its input.
pub(crate) fn factor(
    profile: Option<&Profile>,
    instance: &Instance,
    phase: PhaseId,
    task: u32,
    slot: u32,
) -> f64 {
    let Some(profile) = profile.filter(|profile| have_factors(Some(profile))) else { return 1.0 };
    match distance(instance, phase, task, slot) {
        None | Some(Distance::Node) => 1.0,
        Some(Distance::Rack) => profile.rack_factor(),
        Some(Distance::OffRack) => profile.off_rack_factor(),
    }
}

/// The start of a first attempt.
struct FirstAttempt {
    at: Time,
    task: u32,
    slot: u32,
    distance: Distance,
}

/// Offers tasks that started away from their input before their phase can have waited for a slot near it. A
/// phase waits from the time at which its ApplicationMaster is up, and again after each task that it started
/// near its input. Speculative attempts do not wait.
pub(crate) fn check_delays(ledger: &Ledger<'_>, schedule: &Schedule, first: &mut First) {
    let Some(profile) = &schedule.profile else { return };
    let (node, rack) = (profile.node_delay(), profile.rack_delay());
    if (node, rack) == (Span::ZERO, Span::ZERO) {
        return;
    }
    let up = |am: &AmRow| Some((am.job, am.up?));
    let up: BTreeMap<JobId, Time> = schedule.ams.iter().filter_map(up).collect();
    for (phase, info) in ledger.instance.phases().iter_enumerated() {
        if info.tasks().is_none_or(|tasks| tasks.splits().is_empty()) {
            continue;
        }
        let begun = begun(ledger, phase);
        let times = |far| begun.iter().filter(move |b| b.distance == far).map(|b| b.at).collect::<Vec<_>>();
        let (on_node, in_rack) = (times(Distance::Node), times(Distance::Rack));
        for FirstAttempt { at, task, slot, distance } in &begun {
            let (wait, again) = match distance {
                Distance::Node => continue,
                Distance::Rack => (node, None),
                Distance::OffRack => {
                    (Span(node.0 + rack.0), last_before(*at, &in_rack).map(|last| last + rack))
                }
            };
            let since = up.get(&info.job).copied().max(last_before(*at, &on_node));
            let earliest = since.map(|since| since + wait).max(again).unwrap_or(Time::ZERO);
            if tolerance::earlier_micros(*at, earliest) {
                first.offer(at.seconds(), phase, || Violation::Delay {
                    at: at.seconds(),
                    task: Subject::task(ledger.instance, phase, *task),
                    place: Place::new(ledger.instance.cluster(), ledger.instance.slot_kind_of(phase), *slot),
                    distance: *distance,
                    earliest: earliest.seconds(),
                });
            }
        }
    }
}

/// The first attempts of tasks that have their input on certain machines, in the order of their starts.
fn begun(ledger: &Ledger<'_>, phase: PhaseId) -> Vec<FirstAttempt> {
    let mut begun = Vec::new();
    for row in ledger.of(phase).filter(|row| row.attempt == 0) {
        let slots = ledger.rows.places(row).iter().flat_map(|place| place.first..place.end());
        for (task, slot) in (row.first..).zip(slots) {
            let distance = distance(ledger.instance, phase, task, slot);
            begun.extend(distance.map(|distance| FirstAttempt { at: row.start, task, slot, distance }));
        }
    }
    begun
}

/// The last of `times`, which are in order, before `at`.
fn last_before(at: Time, times: &[Time]) -> Option<Time> {
    times[..times.partition_point(|&time| tolerance::earlier_micros(time, at))].last().copied()
}
