//! What the cluster is told: rows of the plug-in's table, and the order of applications.
//!
//! An application may have as many containers for a phase as the driver has started tasks of it: those that run, and those
//! that wait for a container. Where nothing waits, no more may come, but for what the policy would start next anyhow:
//! phases below their targets, and the first phases in the policy's order. Those fill a slot that becomes free within
//! milliseconds, before the driver has heard of it. Slots of tasks that have no application yet, or one that does not ask for
//! their containers yet, are lent to the others in the same way.
//!
//! Where others hold all slots the driver can start nothing, and would never see a slot that becomes free: somebody who waits
//! has it by then. So the first phases may ask for some containers, whatever the policy.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{PhaseId, PhaseKind};
use slackline_policy::plans::Plans;
use slackline_policy::policy::Style;

use crate::cluster::container_ledger::ContainerLedger;
use crate::cluster::table::{Hosts, Row, Rows};
use crate::rest::id::AppId;
use crate::rest::resource_manager::Pending;

/// What the cluster is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DesiredState {
    pub(crate) rows: Rows,
    /// Applications in the order in which they should get containers.
    pub(crate) order: Vec<AppId>,
}

/// How many more containers than tasks were started may come.
fn extra_slots(slots: u32) -> u32 {
    (slots / 4).max(1)
}

impl DesiredState {
    /// What follows from the books and the plans for jobs that are not done. `apps` has the applications of those that have
    /// one, and `pending` is what these ask for.
    pub(crate) fn of(
        ledger: &ContainerLedger,
        plans: &Plans,
        apps: &BTreeMap<u32, Option<AppId>>,
        pending: impl Fn(AppId) -> Pending,
    ) -> Self {
        let extra = extra(ledger, plans, apps, &pending);
        let mut desired = Self::default();
        let mut order = BTreeMap::new();
        for (&job, &app) in apps {
            let Some(app) = app else { continue };
            let phase = |kind| ledger.phase_of(job, kind);
            let cap = |kind| phase(kind).map_or(0, |phase| cap(phase, ledger, plans, &extra));
            let hosts = |kind| phase(kind).map_or(Hosts::Any, |phase| hosts(phase, ledger, plans));
            let asked = pending(app);
            // Maps that are made again are no business of the driver's.
            let again = |kind, asked: u64| phase(kind).is_none_or(|phase| ledger.is_done(phase)) && asked > 0;
            let (maps, reduces) = (PhaseKind::Map, PhaseKind::Reduce);
            let row = Row {
                hold: false,
                maps: Some(cap(maps)).filter(|_| !again(maps, asked.maps + asked.failed_maps)),
                reduces: Some(cap(reduces)).filter(|_| !again(reduces, asked.reduces)),
                map_hosts: hosts(maps),
                reduce_hosts: hosts(reduces),
            };
            desired.rows.insert(Some(app), row);
            let phases = [maps, reduces].map(phase);
            let first = phases.iter().flatten().filter_map(|&phase| ledger.first_unbound(phase)).min();
            let rank = plans.ranking.iter().position(|ranked| phases.contains(&Some(*ranked)));
            match (first, rank) {
                (Some(row), _) => drop(order.insert((0, u64::from(row.0)), app)),
                (None, Some(rank)) => drop(order.insert((1, rank as u64), app)),
                (None, None) => {}
            }
        }
        desired.order = order.into_values().collect();
        desired
    }
}

/// How many containers beyond what was started each phase may have, by the policy's order.
fn extra(
    ledger: &ContainerLedger,
    plans: &Plans,
    apps: &BTreeMap<u32, Option<AppId>>,
    pending: impl Fn(AppId) -> Pending,
) -> BTreeMap<PhaseId, u32> {
    let mut extra = BTreeMap::new();
    let has_app = |job: u32| apps.get(&job).is_some_and(Option::is_some);
    let lent = |phase: PhaseId| {
        let app = ledger.job_of(phase).and_then(|job| apps.get(&job));
        let asked = |app: &Option<AppId>| app.map_or(0, |app| requested(pending(app), ledger.kind_of(phase)));
        app.map_or(0, |app| u64::from(ledger.unbound(phase)).saturating_sub(asked(app)) as u32)
    };
    let lent: u32 = ledger.phases().map(lent).sum();
    let is_full = ledger.is_full_of_others();
    let is_ranked = plans.style == Some(Style::Priorities) || is_full;
    let ranked = if is_ranked { extra_slots(ledger.slots()) } else { 0 };
    let mut left = ranked + lent;
    // What is lent has to be used even if the policy has no order: those that wait may wait for its end.
    let others = if lent > 0 || is_full { ledger.phases().collect() } else { Vec::new() };
    for phase in plans.ranking.iter().chain(plans.targets.keys()).copied().chain(others) {
        if left == 0 {
            break;
        }
        let may_use = ledger.job_of(phase).is_some_and(has_app) && ledger.may_work(phase);
        if may_use && !extra.contains_key(&phase) {
            let more = ledger.pending(phase).min(left);
            left -= more;
            extra.insert(phase, more);
        }
    }
    extra
}

/// How many containers for tasks of a phase are asked for.
fn requested(pending: Pending, kind: Option<PhaseKind>) -> u64 {
    match kind {
        Some(PhaseKind::Map) => pending.maps + pending.failed_maps,
        Some(PhaseKind::Reduce) => pending.reduces,
        None => 0,
    }
}

/// The most containers that a phase may have now.
fn cap(phase: PhaseId, ledger: &ContainerLedger, plans: &Plans, extra: &BTreeMap<PhaseId, u32>) -> u32 {
    let (live, unbound) = (ledger.live(phase), ledger.unbound(phase));
    let more = unbound + extra.get(&phase).copied().unwrap_or(0);
    let started = if more > 0 { live + more } else { 0 };
    let target =
        plans.targets.get(&phase).filter(|_| ledger.may_work(phase)).map_or(0, |target| *target as u32);
    started.max(target)
}

/// Where containers of a phase may be: where the driver started tasks, if there is room, else anywhere.
fn hosts(phase: PhaseId, ledger: &ContainerLedger, plans: &Plans) -> Hosts {
    let is_placed = plans.style == Some(Style::Placements);
    let wanted = if is_placed { ledger.preferred_hosts(phase) } else { BTreeSet::new() };
    if wanted.is_empty() { Hosts::Any } else { Hosts::Only(wanted) }
}

/// The distance of priorities that are given anew.
const GAP: u64 = 1000;

/// The highest priority: beyond `yarn.cluster.max-application-priority`, for which 1,000,000 is recommended, all are equal.
const HIGHEST: u64 = 1_000_000;

/// The priorities that have to be changed so that applications stand in this order, the first one highest: at most `most`, and
/// as few as there are. The last ones are changed last.
pub(crate) fn priorities(order: &[(AppId, u64)], most: usize) -> Vec<(AppId, u64)> {
    let mut changes = Vec::new();
    let mut below: Option<u64> = None;
    for &(app, now) in order.iter().rev() {
        let is_above = below.is_none_or(|below| now > below);
        let wanted = if is_above { now } else { below.unwrap_or(0) + GAP };
        if wanted != now {
            changes.push((app, wanted));
        }
        below = Some(wanted);
    }
    if below.is_some_and(|highest| highest > HIGHEST) {
        let renumbered = (1..).map(|rank| rank * GAP).zip(order.iter().rev());
        changes = renumbered
            .filter(|(wanted, (_, now))| wanted != now)
            .map(|(wanted, (app, _))| (*app, wanted))
            .collect();
    }
    changes.reverse();
    changes.truncate(most);
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(number: u32) -> AppId {
        AppId { cluster: 1, number }
    }

    #[test]
    fn where_others_hold_all_slots_containers_may_come_whatever_the_policy() {
        let style = |style| Plans { style: Some(style), ..Plans::default() };
        for plans in [Style::Priorities, Style::Targets, Style::Placements].map(style) {
            let mut ledger = ContainerLedger::new([("a".to_owned(), 8)]);
            ledger.add_phase(PhaseId(0), 0, PhaseKind::Map, 9);
            let apps = BTreeMap::from([(0, Some(app(1)))]);
            let mut maps = |others| {
                ledger.set_others(others);
                let desired = DesiredState::of(&ledger, &plans, &apps, |_| Pending::default());
                desired.rows.get(&Some(app(1))).and_then(|row| row.maps)
            };
            assert_eq!([7, 8, 7].map(&mut maps), [Some(0), Some(2), Some(0)], "{plans:?}");
        }
    }

    #[test]
    fn as_few_priorities_are_changed_as_there_are() {
        assert_eq!(priorities(&[(app(1), 3000), (app(2), 2000)], 5), []);
        assert_eq!(priorities(&[(app(2), 2000), (app(1), 3000)], 5), [(app(2), 4000)]);
        let equal = [(app(1), 10), (app(2), 10), (app(3), 10)];
        assert_eq!(priorities(&equal, 5), [(app(1), 2010), (app(2), 1010)]);
        assert_eq!(priorities(&equal, 1), [(app(1), 2010)]);
        assert_eq!(priorities(&[], 5), []);
        // There is no room above the first: all are numbered anew.
        let full = [(app(3), 1000), (app(2), HIGHEST), (app(1), 1000)];
        assert_eq!(priorities(&full, 5), [(app(3), 3000), (app(2), 2000)]);
    }
}
