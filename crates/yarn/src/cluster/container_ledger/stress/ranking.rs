//! The ranking of a policy in the middle of a stress test: the driver gives slots away in this order.

use std::collections::BTreeSet;

use slackline_algo::policies::POLICIES;
use slackline_model::cluster::{Group, Slots};
use slackline_model::random::test_seeds;
use slackline_model::{Instance, MachineId, PhaseId, SlotKind, Time};
use slackline_policy::driver::Heir;
use slackline_policy::engine::{Capabilities, Order, Report, Start};
use slackline_policy::policy::Style;
use slackline_policy::{Driver, Engine};

use crate::cluster::container_ledger::ContainerLedger;
use crate::cluster::container_ledger::stress::cluster::Weather;
use crate::cluster::container_ledger::stress::model_engine::{Left, ModelEngine};
use crate::cluster::container_ledger::stress::{Case, POLLS_MAX, STORM, cluster, session, watched};

/// An engine on which nothing happens but that one slot joins.
#[derive(Default)]
struct Joining {
    has_joined: bool,
    now: Time,
    started: Vec<PhaseId>,
}

impl Engine for Joining {
    fn capabilities(&self) -> Capabilities {
        ContainerLedger::CAPABILITIES
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        self.has_joined = true;
        let slots = Slots::Generic(1);
        let (name, first) = ("more".to_owned(), MachineId(0));
        reports.push(Report::Joined(Group { name, count: 1, speed: 1.0, slots, rack: None, first }));
        Some(self.now)
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        if self.has_joined {
            self.started.push(start.phase);
        }
    }

    fn order(&mut self, _: Order) {}

    fn wake_at(&mut self, _: Time) {}

    fn may_bring_flows(&mut self) -> bool {
        false
    }
}

/// The phase that gets a slot that joins now.
fn next_one(driver: &Driver<'_, '_, ModelEngine<'_>>) -> Option<PhaseId> {
    let mut policy = driver.policy().copy()?;
    let (mut engine, mut sink) = (Joining { now: driver.view().now, ..Joining::default() }, Left::default());
    driver.fork(Heir::Copy(&mut *policy), &mut engine, &mut sink).step();
    engine.started.first().copied()
}

#[test]
fn the_first_of_the_order_gets_the_next_slot() {
    let mut asked = BTreeSet::new();
    // FlowFlex plans again when a machine joins.
    let policies = POLICIES.iter().filter(|entry| entry.name != "flowflex");
    for (entry, seed) in policies.flat_map(|entry| test_seeds(4).map(move |seed| (entry, seed))) {
        // A slot more may also let reduces begin early.
        let case = Case { slowstart: 1.0, ..Case::draw(seed) };
        let mut cluster = cluster(seed, &case, STORM);
        watched((&case, entry), &mut cluster, (&mut BTreeSet::new(), POLLS_MAX), |driver| {
            let ranking = driver.ranking(SlotKind::Any, 16);
            let distinct: BTreeSet<PhaseId> = ranking.iter().copied().collect();
            assert_eq!(distinct.len(), ranking.len(), "{}, seed {seed}", entry.name);
            assert!(ranking.iter().all(|&phase| driver.view().runnable(phase) > 0), "{}", entry.name);
            if let Some(&first) = ranking.first() {
                asked.insert(entry.name);
                assert_eq!(next_one(driver), Some(first), "{}, seed {seed}", entry.name);
            }
            assert_eq!(driver.ranking(SlotKind::Any, 1).first(), ranking.first(), "{}", entry.name);
            assert!(ranking.is_empty() || driver.policy().style() == Style::Priorities, "{}", entry.name);
        });
    }
    assert!(
        ["fifo", "edf", "woha-lpf", "mk-jr", "mk-tct-jr"].iter().all(|name| asked.contains(name)),
        "{asked:?}"
    );
}

#[test]
fn to_ask_for_the_order_changes_nothing() {
    for (entry, seed) in POLICIES.iter().flat_map(|entry| test_seeds(2).map(move |seed| (entry, seed))) {
        let case = Case::draw(seed);
        let run = |asks: usize| {
            let mut cluster = cluster(seed, &case, Weather::default());
            let mut progress = Vec::new();
            let left = watched((&case, entry), &mut cluster, (&mut BTreeSet::new(), POLLS_MAX), |driver| {
                (0..asks).for_each(|_| drop(driver.ranking(SlotKind::Any, 16)));
                progress.push(format!("{:?}", driver.view().state.tasks_done()));
            });
            (left, progress, format!("{:?}", cluster.task_ends))
        };
        assert_eq!(run(0), run(3), "{}, seed {seed}", entry.name);
        let mut cluster = cluster(seed, &case, Weather::default());
        let left = session((&case, entry), &mut cluster, &mut BTreeSet::new(), POLLS_MAX);
        assert_eq!(left, run(0).0, "{}, seed {seed}", entry.name);
    }
}
