//! Small workloads on which a search found a policy to be worst (`slackline repro --adversary`), with rounded
//! numbers. Tests the cost of the policy, the cost of a policy that does well there, and that a plan of
//! `auto` has the expected cost.
//!
//! Check a cost that changes, for better or worse. The first lines of each document describe it.

use std::path::Path;

use slackline::conformance::simulated;
use slackline::import::{Source, WorkloadOptions};
use slackline::plan::{Options, Plan, plan};
use slackline::registry::Registry;
use slackline_model::Instance;
use slackline_testkit::brute::brute;
use slackline_testkit::harness::{Setup, same};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/adversary");

/// A workload and its known costs.
struct Known {
    file: &'static str,
    /// Policies that do badly on it, with their costs.
    fooled: &'static [(&'static str, f64)],
    /// A policy that does well on it, with its cost; none if every policy without knowledge of the future
    /// does badly.
    wiser: Option<(&'static str, f64)>,
    optimum: f64,
}

/// In the order of their names.
const KNOWN: [Known; 6] = [
    Known {
        file: "between-epochs.toml",
        fooled: &[("flowflex", 4.0), ("fifo", 4.0)],
        wiser: Some(("flowflex:epoch=0", 0.0)),
        optimum: 0.0,
    },
    Known {
        file: "both-reduce-slots.toml",
        fooled: &[("auto", 20.0), ("flex", 20.0), ("flowflex", 20.0), ("edf", 20.0)],
        wiser: Some(("dmrs", 0.0)),
        optimum: 0.0,
    },
    Known {
        file: "date-without-slack.toml",
        fooled: &[("edf", 12.0)],
        wiser: Some(("auto", 0.0)),
        optimum: 0.0,
    },
    Known {
        file: "short-after-long.toml",
        fooled: &[("auto", 50.0), ("flex", 50.0), ("flowflex", 50.0), ("edf", 50.0), ("dmrs", 50.0)],
        wiser: None,
        optimum: 16.0,
    },
    Known {
        file: "slow-machine-idle.toml",
        fooled: &[("flowflex", 8.0), ("flex", 8.0), ("edf", 8.0)],
        wiser: Some(("auto", 4.0)),
        optimum: 4.0,
    },
    Known {
        file: "wide-before-chain.toml",
        fooled: &[("auto", 13.0), ("flex", 13.0)],
        wiser: Some(("flowflex", 12.0)),
        optimum: 12.0,
    },
];

fn read(file: &str) -> Instance {
    let text = std::fs::read_to_string(Path::new(FOLDER).join(file)).unwrap();
    Source::new(file, text).load(&WorkloadOptions::default()).unwrap().instance
}

/// The cost of a policy in the simulator, judged.
fn cost(instance: &Instance, policy: &str) -> f64 {
    let policy = Registry::standard().parse(policy).unwrap();
    let (_, report) = simulated(instance, &policy, &Setup::plain()).unwrap_or_else(|what| panic!("{what}"));
    report.cost
}

/// The cost of a plan of `auto`, judged.
fn planned(instance: &Instance) -> f64 {
    let auto = Registry::standard().parse("auto").unwrap();
    let Ok(Plan::Schedule(planned)) = plan(instance, &auto, Options::default()) else {
        panic!("no plan");
    };
    let judged = slackline_judge::check(instance, &planned.schedule);
    judged.unwrap_or_else(|violation| panic!("{violation}")).cost
}

#[test]
fn every_document_of_the_folder_is_known_and_has_a_description() {
    let entries = std::fs::read_dir(FOLDER).unwrap();
    let mut files: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, KNOWN.map(|known| known.file));
    for file in files {
        let text = std::fs::read_to_string(Path::new(FOLDER).join(&file)).unwrap();
        assert!(text.starts_with("# "), "{file}");
    }
}

#[test]
fn bad_policies_cost_more_than_good_ones() {
    for Known { file, fooled, wiser, optimum } in &KNOWN {
        let instance = read(file);
        for &(policy, known) in fooled.iter().chain(wiser) {
            let found = cost(&instance, policy);
            assert!(same(found, known), "{file}: {policy} costs {found}, it was {known}");
        }
        let least = wiser.map_or(*optimum, |(_, cost)| cost);
        assert!(fooled.iter().all(|&(_, cost)| cost > least), "{file}");
    }
}

#[test]
fn plans_of_auto_have_the_expected_cost() {
    for Known { file, optimum, .. } in &KNOWN {
        let instance = read(file);
        let least = brute(&instance).unwrap_or_else(|| panic!("{file} is out of reach"));
        assert!(same(least, *optimum), "{file}: the optimum is {least}, it was {optimum}");
        let found = planned(&instance);
        assert!(same(found, least), "{file}: a plan costs {found}, the optimum {least}");
    }
}
