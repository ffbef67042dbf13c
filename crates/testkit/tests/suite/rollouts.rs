//! The evaluator of `auto` equals the simulator on what it covers: where nothing arrives any more, every flow completes in
//! the very microsecond in which it was believed to at the last arrival.
//!
//! `SLACKLINE_ROLLOUTS=N` tries N workloads (default 150), from seed `SLACKLINE_ROLLOUTS_FROM` on (default 0).

use slackline::algo::auto::{Auto, ENTRY};
use slackline::algo::rule::orders::{Knobs, RULES, Rule};
use slackline_model::draft::{Draft, TasksDraft};
use slackline_model::params::Settings;
use slackline_model::random;
use slackline_model::{Instance, Objective, Seed, Span};
use slackline_policy::Config;
use slackline_sim::{Options, Sim};

use crate::arb;

const KNOBS: Knobs = Knobs { k: 0.5, x: 0.3, tail: true };

/// With a limit on waiting that some flows reach, and slots kept from tasks of more than two seconds.
fn auto(objective: Objective, rollouts: u64, wait: f64) -> Auto {
    let mut settings = vec![("seed", "1".to_owned())];
    settings.push(("rollouts", rollouts.to_string()));
    settings.push(("wait", wait.to_string()));
    // What is compared is what was believed at the last arrival.
    settings.push(("ends", "no".to_owned()));
    let pairs = settings.iter().map(|(name, value)| (*name, value.as_str()));
    let auto = Auto::new(objective, &Settings::parse(ENTRY.params, pairs).unwrap());
    auto.with_headroom(Span(2_000_000), 0.2)
}

/// A workload of several arrivals without hosts, which delay scheduling alone looks at, and the fraction of maps after
/// which reduces take slots.
pub(crate) fn workload(seed: Seed) -> (Instance, f64) {
    let rng = &mut random::rng(seed, "rollouts", 0);
    let mut draft: Draft = arb::draft_of(seed);
    if random::chance(rng, 0.3) {
        draft
            .machines
            .iter_mut()
            .for_each(|m| m.speed = [0.5, 1.0, 3.0][random::integer(rng, 0, 2) as usize]);
    }
    // More of it, so that slots are contended for.
    let more = arb::draft_of(Seed(seed.stream("more", 0))).flows;
    let cost = draft.flows[0].cost.clone();
    for (k, mut flow) in more.into_iter().enumerate() {
        (flow.id, flow.pool, flow.cost) = (format!("more{k}"), None, cost.clone());
        draft.flows.push(flow);
    }
    for flow in &mut draft.flows {
        flow.release = random::integer(rng, 0, 9) as f64;
        flow.repeat = None;
        for phase in flow.jobs.iter_mut().flat_map(|job| [&mut job.map, &mut job.reduce]).flatten() {
            if let TasksDraft::Splits(splits) = &mut phase.tasks {
                for split in splits {
                    split.hosts.clear();
                }
            }
        }
    }
    let slowstart = [1.0, 1.0, 0.5, 0.05, 0.0][random::integer(rng, 0, 4) as usize];
    (Instance::new(&draft).expect("drawn drafts are valid").cut(Span(3_000_000)), slowstart)
}

/// Flows that do not complete when they were believed to, and how many were compared.
fn off(instance: &Instance, mut auto: Auto, slowstart: f64) -> (Vec<String>, usize) {
    let mut engine = Sim::new(instance, Options::exact());
    let config = Config::plain().audited().with_slowstart(slowstart).with_each(true);
    let run = slackline_policy::run(instance, &mut auto, &mut engine, config);
    // Ids of the run are in the order of releases, those of the instance as written.
    let mut order: Vec<_> = instance.flows().keys().collect();
    order.sort_by_key(|&flow| (instance.flow(flow).release, flow));
    let decided = auto.decided().expect("flows arrived");
    let wrong = decided.completions.iter().filter_map(|&(flow, believed)| {
        let flow = order[flow.index()];
        let found = run.completions[flow];
        (found != Some(believed))
            .then(|| format!("{}: believed {believed}, found {found:?}", instance.flow(flow).id))
    });
    (wrong.collect(), decided.completions.len())
}

pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// `auto` and each of its rules alone on the workload of a seed; how many completions were compared.
fn check(seed: u64) -> usize {
    let (instance, slowstart) = workload(Seed(seed));
    let wait = [1.5, 3.0, 100.0][seed as usize % 3];
    // Those that follow a plan of a paper are not rolled out.
    let is_rolled = |rule: &&Rule| !["woha", "dmrs"].contains(&rule.name);
    let alone = RULES
        .iter()
        .filter(is_rolled)
        .map(|&rule| (auto(instance.objective(), 1, wait).with_rules(vec![(rule, KNOBS)]), rule.name));
    let all = std::iter::once((auto(instance.objective(), 20, wait), "auto"));
    let compared = all.chain(alone).map(|(policy, name)| {
        let (wrong, of) = off(&instance, policy, slowstart);
        assert!(wrong.is_empty(), "seed {seed}, {name}, slow-start {slowstart}: {}", wrong.join("; "));
        of
    });
    compared.sum()
}

#[test]
fn flows_complete_when_they_are_believed_to() {
    let from = number("SLACKLINE_ROLLOUTS_FROM", 0);
    let compared: usize = (from..from + number("SLACKLINE_ROLLOUTS", 150)).map(check).sum();
    assert!(compared > 5_000, "{compared} completions were compared");
}

/// Tasks of no length that had just begun were taken to be late.
#[test]
fn what_has_just_begun_and_takes_no_time_ends_at_once() {
    for seed in [38, 600, 802, 823, 1265, 2121, 2379] {
        assert!(check(seed) > 0);
    }
}
