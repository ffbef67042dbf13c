//! Stress tests of the ledger, between a driver with real policies and a cluster in memory on which
//! everything fails.
//!
//! In all cases: the driver's slots and the ledger agree after every instant, no phase has more containers
//! than its cap when one is granted, and as soon as nothing goes wrong any more all flows end, every task
//! finished once.

mod cluster;
mod model_engine;
mod ranking;

use std::collections::BTreeSet;

use slackline_algo::policies::POLICIES;
use slackline_algo::registry::PolicyEntry;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::params::Settings;
use slackline_model::random::{ChaCha8Rng, chance, integer, rng, test_seeds};
use slackline_model::{Instance, Seed};
use slackline_policy::{Config, Driver};

use crate::cluster::container_ledger::stress::cluster::{Cluster, Host, SECOND, Weather};
use crate::cluster::container_ledger::stress::model_engine::{Left, ModelEngine, agree};
use slackline_policy::plans::Plans;

/// Everything goes wrong now and then.
const STORM: Weather =
    Weather { host_goes: 0.02, am_dies: 0.01, foreign: 0.05, task_fails: 0.1, silent: 0.1 };

/// Looks after which nothing goes wrong any more.
const CALM_AFTER: u32 = 150;

/// Looks within which flows of a few tasks are done on a cluster on which nothing goes wrong.
const POLLS_MAX: u32 = 4000;

/// A cluster, flows, and how they are driven.
#[derive(Clone)]
struct Case {
    instance: Instance,
    hosts: Vec<Host>,
    am_share: f64,
    slowstart: f64,
}

impl Case {
    /// One to four flows on 2 to 12 slots.
    fn draw(seed: u64) -> Self {
        let mut rng = rng(Seed(seed), "case", 0);
        let mut hosts: Vec<Host> = (0..integer(&mut rng, 1, 4))
            .map(|n| {
                let slots = integer(&mut rng, 1, 3) as u32;
                // Some take more containers than anybody has counted.
                let room = slots + u32::from(chance(&mut rng, 0.2));
                Host { name: format!("host{n}"), slots, room, is_up: true }
            })
            .collect();
        if hosts.iter().map(|host| host.slots).sum::<u32>() < 2 {
            (hosts[0].slots, hosts[0].room) = (2, 2);
        }
        let flows = (0..integer(&mut rng, 1, 4)).map(|n| flow(n, &mut rng)).collect();
        let machine = |host: &Host| MachineDraft {
            name: host.name.clone(),
            count: host.slots,
            speed: 1.0,
            slots: Slots::Generic(1),
            rack: None,
        };
        let machines = hosts.iter().map(machine).collect();
        let instance = Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap();
        let am_share = [0.01, 0.3, 0.5, 1.0][integer(&mut rng, 0, 3) as usize];
        let slowstart = [1.0, 1.0, 0.5, 0.05][integer(&mut rng, 0, 3) as usize];
        Self { instance, hosts, am_share, slowstart }
    }
}

fn flow(n: u64, rng: &mut ChaCha8Rng) -> FlowDraft {
    let tasks = |rng: &mut ChaCha8Rng, low, high| -> Option<PhaseDraft> {
        let tasks = integer(rng, low, high) as u32;
        let seconds = integer(rng, 1, 6) as f64;
        (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds }.into())
    };
    let jobs = (0..integer(rng, 1, 3)).map(|job| JobDraft {
        id: format!("j{job}"),
        after: (0..job).filter(|_| chance(rng, 0.5)).map(|before| format!("j{before}")).collect(),
        map: tasks(rng, 1, 6),
        reduce: tasks(rng, 0, 3),
        ..JobDraft::default()
    });
    let jobs = jobs.collect();
    let release = integer(rng, 0, 20) as f64;
    let deadline = chance(rng, 0.5).then(|| release + integer(rng, 10, 100) as f64);
    FlowDraft {
        release,
        deadline,
        weight: integer(rng, 1, 3) as f64,
        ..FlowDraft::new(format!("f{n}"), jobs)
    }
}

/// Drives the rest until everything has finished, up to this number of polls. Gives the result.
fn session(
    (case, entry): (&Case, &PolicyEntry),
    cluster: &mut Cluster,
    published: &mut BTreeSet<u32>,
    polls: u32,
) -> Left {
    watched((case, entry), cluster, (published, polls), |_| {})
}

/// The same, with a function that sees the driver after every poll.
fn watched(
    (case, entry): (&Case, &PolicyEntry),
    cluster: &mut Cluster,
    (published, polls): (&mut BTreeSet<u32>, u32),
    mut watch: impl FnMut(&Driver<'_, '_, ModelEngine<'_>>),
) -> Left {
    let instance = &case.instance;
    let settings = Settings::defaults(entry.params);
    let mut policy = (entry.make)(instance.cluster(), &instance.objective(), &settings);
    let mut left = Left::default();
    let mut engine = ModelEngine::new((cluster, instance), published, case.am_share, polls);
    let config = Config { slowstart: case.slowstart, attempts_max: u16::MAX, ..Config::plain() }.audited();
    let mut driver = Driver::new(instance.without_flows(), &mut *policy, &mut engine, &mut left, config);
    let mut step = 0;
    while driver.step() {
        agree(&mut driver);
        watch(&driver);
        let plans = Plans::of(&driver);
        driver.engine().apply_plans(&plans);
        step += 1;
        if step == CALM_AFTER {
            driver.engine().cluster.weather = Weather::default();
        }
    }
    if polls == POLLS_MAX && driver.engine().is_tired() {
        let plans = Plans::of(&driver);
        eprintln!("{plans:?}\n{}", driver.engine().describe());
    }
    driver.close();
    left
}

fn cluster(seed: u64, case: &Case, weather: Weather) -> Cluster {
    Cluster::new(seed, case.hosts.clone(), case.slowstart, weather)
}

/// All flows are done, every task once.
fn check_done(left: &Left, instance: &Instance, what: &str) {
    assert_eq!(left.flows_done.len(), instance.flows().len(), "{what}: flows that are done");
    let tasks: u32 = instance.phases().iter().filter_map(|phase| Some(phase.tasks()?.count())).sum();
    assert!(left.done.values().all(|&times| times == 1), "{what}: {:?}", left.done);
    assert_eq!(left.done.len() as u32, tasks, "{what}: tasks that are done");
}

fn check(usually: u64, weather: Weather, sessions: &[u32]) {
    for entry in POLICIES {
        for seed in test_seeds(usually) {
            let case = Case::draw(seed);
            let mut cluster = cluster(seed, &case, weather);
            let mut published = BTreeSet::new();
            for &polls in sessions {
                session((&case, entry), &mut cluster, &mut published, polls);
            }
            let left = session((&case, entry), &mut cluster, &mut published, POLLS_MAX);
            check_done(&left, &case.instance, &format!("{}, seed {seed}", entry.name));
        }
    }
}

#[test]
fn flows_end_where_nothing_goes_wrong() {
    check(14, Weather::default(), &[]);
}

#[test]
fn flows_end_when_nothing_goes_wrong_any_more() {
    check(20, STORM, &[]);
}

#[test]
fn a_driver_takes_over_what_runs_already() {
    check(10, Weather::default(), &[20, 30]);
    check(10, STORM, &[40, 40]);
}

/// Of the flow of the first job nothing is done any more; all the others end, every task finished once.
fn check_all_but_the_first(left: &Left, instance: &Instance, what: &str) {
    let failed = instance.jobs().iter().next().unwrap().flow;
    let others = instance.flows().iter_enumerated().filter(|(id, _)| *id != failed);
    assert_eq!(left.flows_done, others.map(|(_, flow)| flow.id.clone()).collect(), "{what}");
    assert!(left.done.values().all(|&times| times == 1), "{what}: {:?}", left.done);
}

#[test]
fn a_job_that_fails_for_good_fails_its_flow_and_no_other() {
    for (entry, seed) in POLICIES.iter().flat_map(|entry| test_seeds(5).map(move |seed| (entry, seed))) {
        let case = Case::draw(seed);
        let mut cluster = cluster(seed, &case, Weather::default());
        cluster.cursed = Some(0);
        let left = session((&case, entry), &mut cluster, &mut BTreeSet::new(), POLLS_MAX);
        check_all_but_the_first(&left, &case.instance, &format!("{}, seed {seed}", entry.name));
    }
}

#[test]
fn a_job_that_fails_without_an_engine_fails_its_flow_and_no_other() {
    for (entry, seed) in POLICIES.iter().flat_map(|entry| test_seeds(5).map(move |seed| (entry, seed))) {
        let case = Case::draw(seed);
        for polls in [10, 30] {
            let mut cluster = cluster(seed, &case, Weather::default());
            cluster.cursed = Some(0);
            let mut published = BTreeSet::new();
            session((&case, entry), &mut cluster, &mut published, polls);
            // The last table has expired, and the job has failed before there is a driver again.
            cluster.table.clear();
            let until = cluster.now + u64::from(polls) * 4 * SECOND;
            cluster.advance(until);
            let left = session((&case, entry), &mut cluster, &mut published, POLLS_MAX);
            let what = format!("{}, seed {seed}, {polls} looks before", entry.name);
            check_all_but_the_first(&left, &case.instance, &what);
        }
    }
}
