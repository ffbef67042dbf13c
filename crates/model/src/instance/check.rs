//! Finds all problems of a draft, each with its path. A draft without problems can be built.

mod flows;

use std::collections::BTreeSet;

use crate::cluster::{Cluster, Group, SLOTS_MAX, SPEEDS, Slots};
use crate::draft::{Draft, MachineDraft};
use crate::error::{Invalid, Problem};
use crate::id::MachineId;
use crate::printable::is_printable;
use crate::time::SECONDS_MAX;

pub(super) use flows::{check_one, limits, recurrences};

/// The largest weight, cost and slope: a cost is at most the product of two of them and of a time, and flows
/// are fewer than 2^32.
const AMOUNT_MAX: f64 = 1e100;

/// Collects problems with their paths.
#[derive(Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    pub(super) fn add(&mut self, path: impl Into<String>, what: impl Into<String>) {
        self.list.push(Problem { path: path.into(), what: what.into() });
    }

    /// Returns all problems as an error, if there are any.
    pub(super) fn none(self) -> Result<(), Invalid> {
        if self.list.is_empty() { Ok(()) } else { Err(Invalid { problems: self.list }) }
    }

    /// A time or amount in seconds: finite, not negative, not absurd.
    fn seconds(&mut self, path: impl FnOnce() -> String, value: f64) -> bool {
        let what = if !value.is_finite() {
            format!("found {value}, expected a finite number of seconds")
        } else if value < 0.0 {
            format!("found {value}, expected no negative number of seconds")
        } else if value > SECONDS_MAX {
            format!("found {value}, expected at most {SECONDS_MAX:e} seconds")
        } else {
            return true;
        };
        self.add(path(), what);
        false
    }

    /// A weight, a cost or a slope: not negative, and so small that sums of products are finite.
    fn amount(&mut self, path: impl FnOnce() -> String, kind: &str, value: f64) {
        if !(0.0..=AMOUNT_MAX).contains(&value) {
            self.add(path(), format!("found {kind}{value}, expected a number from 0 to {AMOUNT_MAX:e}"));
        }
    }

    /// A name: non-empty, printable, no space around it.
    fn name(&mut self, path: impl FnOnce() -> String, name: &str) {
        if name.is_empty() {
            self.add(path(), "found an empty name, expected a printable one");
        } else if name.trim() != name || !name.chars().all(is_printable) {
            self.add(path(), format!("found {name:?}, expected printable text without space around it"));
        }
    }
}

/// The cluster of a draft, if the draft has no problem.
pub(super) fn cluster_of(draft: &Draft) -> Result<Cluster, Invalid> {
    let mut problems = Problems::default();
    let cluster = cluster(draft, &mut problems);
    pools(draft, &mut problems);
    let Some(cluster) = cluster else { return Err(Invalid { problems: problems.list }) };
    flows::check(draft, &cluster, &mut problems);
    problems.none()?;
    Ok(cluster)
}

fn cluster(draft: &Draft, problems: &mut Problems) -> Option<Cluster> {
    let before = problems.list.len();
    if draft.machines.is_empty() {
        problems.add("cluster.machines", "found no machines, expected at least one");
        return None;
    }
    let map_reduce = matches!(draft.machines[0].slots, Slots::MapReduce { .. });
    let mut totals = [0u64; 3];
    for (i, machine) in draft.machines.iter().enumerate() {
        let path = |field: &str| format!("cluster.machines[{i}].{field}");
        check_machine(machine, map_reduce, &path, problems);
        let count = u64::from(machine.count);
        totals[2] = totals[2].saturating_add(count);
        match machine.slots {
            Slots::Generic(n) => totals[0] = totals[0].saturating_add(count * u64::from(n)),
            Slots::MapReduce { map, reduce } => {
                totals[0] = totals[0].saturating_add(count * u64::from(map));
                totals[1] = totals[1].saturating_add(count * u64::from(reduce));
            }
        }
    }
    if totals.into_iter().any(|t| t >= SLOTS_MAX) {
        problems
            .add("cluster.machines", format!("found more than {SLOTS_MAX} machines or slots of one kind"));
    }
    if problems.list.len() > before {
        return None;
    }
    let groups = draft.machines.iter().map(|m| Group {
        name: m.name.clone(),
        count: m.count,
        speed: m.speed,
        slots: m.slots,
        rack: m.rack.clone(),
        first: MachineId(0),
    });
    let cluster = Cluster::new(groups.collect());
    duplicate_machines(&cluster, problems);
    (problems.list.len() == before).then_some(cluster)
}

fn check_machine(
    machine: &MachineDraft,
    map_reduce: bool,
    path: &impl Fn(&str) -> String,
    problems: &mut Problems,
) {
    problems.name(|| path("name"), &machine.name);
    if machine.count == 0 {
        problems.add(path("count"), "found 0, expected at least 1 machine");
    }
    if !SPEEDS.contains(&machine.speed) {
        problems.add(path("speed"), format!("found {}, expected a number from 1e-6 to 1e6", machine.speed));
    }
    match machine.slots {
        Slots::Generic(0) => problems.add(path("slots"), "found 0 slots, expected at least 1"),
        Slots::MapReduce { map: 0, reduce: 0 } => {
            problems.add(path("slots"), "found neither map nor reduce slots, expected at least 1 slot");
        }
        Slots::Generic(_) if map_reduce => {
            problems.add(path("slots"), "found generic slots where other machines have { map, reduce }; a cluster is all generic slots or all map and reduce slots");
        }
        Slots::MapReduce { .. } if !map_reduce => {
            problems.add(path("slots"), "found { map, reduce } where other machines have generic slots; a cluster is all generic slots or all map and reduce slots");
        }
        _ => {}
    }
}

/// Two groups may collide by their names, or a single machine of one with a numbered machine of another.
fn duplicate_machines(cluster: &Cluster, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (i, group) in cluster.groups().raw.iter().enumerate() {
        let clash = !seen.insert((group.name.as_str(), group.count == 1))
            || (group.count == 1 && cluster.machine_named(&group.name) != Some(group.first))
            || (group.count == 1
                && cluster.groups().raw.iter().any(|other| other.count > 1 && numbered(group, other)));
        if clash {
            problems.add(
                format!("cluster.machines[{i}].name"),
                format!("found {:?}, which names a machine twice", group.name),
            );
        }
    }
}

/// Whether `single`'s name is that of a machine of `other`.
fn numbered(single: &Group, other: &Group) -> bool {
    single
        .name
        .strip_prefix(other.name.as_str())
        .and_then(|rest| rest.strip_prefix('-'))
        .and_then(|digits| digits.parse::<u32>().ok().filter(|n| n.to_string() == digits))
        .is_some_and(|n| n < other.count)
}

fn pools(draft: &Draft, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (i, pool) in draft.pools.iter().enumerate() {
        problems.name(|| format!("pools[{i}].id"), &pool.id);
        if !seen.insert(pool.id.as_str()) {
            problems.add(format!("pools[{i}].id"), format!("found {:?} a second time", pool.id));
        }
    }
}
