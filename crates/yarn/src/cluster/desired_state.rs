//! The desired state of the cluster: rows of the plug-in's table, and the order of applications.
//!
//! An application may have one container of a phase for each task that the driver started: for the running
//! tasks and for those that wait for a container. Without waiting tasks it gets no more, except for what the
//! policy would start next: phases below their targets, and the first phases in the policy's order. Those
//! fill a free slot within milliseconds, before the driver knows of it. The slots of started tasks whose
//! application is missing, or does not request their containers yet, are lent to other phases in the same
//! way.
//!
//! Where other applications hold all slots, the driver can start nothing and would never see a free slot,
//! since another waiting application takes it first. So the first phases may request some containers, under
//! any policy.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{PhaseId, PhaseKind};
use slackline_policy::plans::Plans;
use slackline_policy::policy::Style;

use crate::cluster::container_ledger::ContainerLedger;
use crate::cluster::table::{Hosts, Row, Rows};
use crate::rest::id::AppId;
use crate::rest::resource_manager::Pending;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DesiredState {
    pub(crate) rows: Rows,
    /// In the order in which they should get containers.
    pub(crate) order: Vec<AppId>,
}

/// Containers beyond the started tasks.
fn extra_slots(slots: u32) -> u32 {
    (slots / 4).max(1)
}

impl DesiredState {
    /// Derives the state from the ledger and the plans for unfinished jobs. `apps` has the applications of
    /// those that have one; `pending` gives the requests of an application.
    pub(crate) fn of(
        ledger: &ContainerLedger,
        plans: &Plans,
        apps: &BTreeMap<u32, Option<AppId>>,
        pending: impl Fn(AppId) -> Pending,
    ) -> Self {
        let extra = extra_containers(ledger, plans, apps, &pending);
        let mut desired = Self::default();
        let mut order = BTreeMap::new();
        for (&job, &app) in apps {
            let Some(app) = app else { continue };
            let phase = |kind| ledger.phase_of(job, kind);
            let cap = |kind| phase(kind).map_or(0, |phase| cap(phase, ledger, plans, &extra));
            let hosts = |kind| phase(kind).map_or(Hosts::Any, |phase| hosts(phase, ledger, plans));
            let asked = pending(app);
            // The driver does not know of rerun maps.
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

/// The containers beyond started tasks for each phase, in the policy's order.
fn extra_containers(
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
    // Lent slots have to be used even if the policy has no order, since those that wait may wait for them.
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

/// Requested containers of a phase.
fn requested(pending: Pending, kind: Option<PhaseKind>) -> u64 {
    match kind {
        Some(PhaseKind::Map) => pending.maps + pending.failed_maps,
        Some(PhaseKind::Reduce) => pending.reduces,
        None => 0,
    }
}

/// The most containers of a phase now.
fn cap(phase: PhaseId, ledger: &ContainerLedger, plans: &Plans, extra: &BTreeMap<PhaseId, u32>) -> u32 {
    let (live, unbound) = (ledger.live(phase), ledger.unbound(phase));
    let more = unbound + extra.get(&phase).copied().unwrap_or(0);
    let started = if more > 0 { live + more } else { 0 };
    let target =
        plans.targets.get(&phase).filter(|_| ledger.may_work(phase)).map_or(0, |target| *target as u32);
    started.max(target)
}

/// The hosts for containers of a phase: where the driver started tasks, if there is room, else any host.
fn hosts(phase: PhaseId, ledger: &ContainerLedger, plans: &Plans) -> Hosts {
    let is_placed = plans.style == Some(Style::Placements);
    let wanted = if is_placed { ledger.preferred_hosts(phase) } else { BTreeSet::new() };
    if wanted.is_empty() { Hosts::Any } else { Hosts::Only(wanted) }
}

/// The distance of renumbered priorities.
const GAP: u64 = 1000;

/// The highest priority. Those above `yarn.cluster.max-application-priority`, for which 1,000,000 is
/// recommended, are equal.
const HIGHEST: u64 = 1_000_000;

/// The fewest changes of priorities, at most `most`, that give applications this order, the highest first.
/// The last application is changed last.
pub(crate) fn priority_changes(order: &[(AppId, u64)], most: usize) -> Vec<(AppId, u64)> {
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
    fn where_others_hold_all_slots_any_policy_lets_some_containers_come() {
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
        assert_eq!(priority_changes(&[(app(1), 3000), (app(2), 2000)], 5), []);
        assert_eq!(priority_changes(&[(app(2), 2000), (app(1), 3000)], 5), [(app(2), 4000)]);
        let equal = [(app(1), 10), (app(2), 10), (app(3), 10)];
        assert_eq!(priority_changes(&equal, 5), [(app(1), 2010), (app(2), 1010)]);
        assert_eq!(priority_changes(&equal, 1), [(app(1), 2010)]);
        assert_eq!(priority_changes(&[], 5), []);
        // There is no room above the first: all are renumbered.
        let full = [(app(3), 1000), (app(2), HIGHEST), (app(1), 1000)];
        assert_eq!(priority_changes(&full, 5), [(app(3), 3000), (app(2), 2000)]);
    }
}
