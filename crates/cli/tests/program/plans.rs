//! Plans: every one passes `check`, refusals have reasons, budgets and speeds are reported.

use std::fs;
use std::path::Path;

use serde_json::Value;
use slackline_model::random::test_step;

use crate::{CONTRACT, NIGHTLY, done, run, run_with, scratch, text};

const PURDUE: &str = "examples/purdue-30.toml";

fn policies() -> Vec<String> {
    let document: Value = serde_json::from_str(&done(&["policies", "--format", "json"])).unwrap();
    let names = document.as_array().expect("a list").iter();
    names.map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
}

/// Plans to a file and checks it with the program; returns false if the policy refuses.
fn passes(workload: &str, file: &str, flags: &[&str]) -> bool {
    let args = [&["plan", workload, "--format", "json", "--output", file], flags].concat();
    let ran = run(&args);
    if ran.code == Some(2) && ran.err.contains("plans ") {
        return false;
    }
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    let checked = run(&["check", workload, file]);
    assert_eq!(checked.code, Some(0), "{args:?}: {}{}", checked.out, checked.err);
    true
}

#[test]
fn plans_of_every_policy_pass_check() {
    let dir = scratch("plans");
    let file = dir.join("plan.json");
    let mut documents = documents("testdata/instances");
    documents.extend([NIGHTLY, PURDUE].map(str::to_owned));
    // The policy `command` needs a program, `recorded` is not a policy; plans of the papers' policies are of
    // another kind.
    let policies = policies();
    let planners = policies
        .iter()
        .filter(|policy| !policy.starts_with("woha") && !["command", "recorded"].contains(&policy.as_str()));
    // A quarter of the documents for each policy, another quarter for the next; all if `SLACKLINE_SCALE` is
    // 4.
    let step = test_step(4.0);
    for (k, policy) in planners.enumerate() {
        let flags = ["--policy", policy.as_str()];
        let tried = documents.iter().skip(k % step).step_by(step);
        let planned = tried.filter(|document| passes(document, text(&file), &flags)).count();
        assert!(planned * step > 5, "{policy} planned {planned} documents");
    }
}

#[test]
fn a_plan_of_several_candidates_says_which_it_is() {
    let document = |policy: &str| -> Value {
        serde_json::from_str(&done(&["plan", CONTRACT, "-p", policy, "--format", "json"])).unwrap()
    };
    let table = done(&["plan", CONTRACT]);
    let winner = table.lines().find_map(|line| line.trim().strip_prefix("winner")).expect("auto has some");
    assert_eq!(document("auto")["winner"], winner.trim());
    assert!(document("fifo").get("winner").is_none(), "fifo has one plan");
}

#[test]
fn plans_for_every_objective_pass_check() {
    let dir = scratch("objectives");
    let file = dir.join("plan.json");
    let metrics =
        ["completion", "response", "makespan", "stretch", "slowdown", "tardy", "tardiness", "lateness"];
    for metric in metrics {
        for combine in ["sum", "max"] {
            for policy in ["flex", "flex:jobs=moldable", "flowflex", "dmrs"] {
                let flags =
                    ["--policy", policy, "--metric", metric, "--combine", combine, "--deadlines", "1.2"];
                assert!(passes(CONTRACT, text(&file), &flags), "{flags:?}");
            }
        }
    }
    for combine in ["sum", "max"] {
        let flags = ["--policy", "flex", "--combine", combine];
        assert!(passes("testdata/instances/service-levels.toml", text(&file), &flags));
    }
}

#[test]
fn unsupported_plans_are_refused_with_the_reason() {
    for (workload, policy, reason) in [
        (NIGHTLY, "flex", "flex plans only flows of one job, found 4 jobs in flow"),
        (NIGHTLY, "dmrs", "dmrs plans only flows of one job, found 4 jobs in flow"),
        (NIGHTLY, "flowflex", "flowflex plans only generic slots, found map and reduce slots"),
        ("testdata/instances/mixed-speeds.toml", "fair", "fair plans only machines of one"),
    ] {
        let ran = run(&["plan", workload, "--policy", policy]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
        assert!(ran.err.contains(reason), "{}", ran.err);
    }
}

/// The documents in a folder of the repository.
pub(crate) fn documents(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let names = entries.map(|entry| format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy()));
    let mut names: Vec<String> =
        names.filter(|name| Path::new(name).extension().is_some_and(|e| e == "toml")).collect();
    names.sort();
    names
}

#[test]
fn every_workload_of_the_repository_has_a_plan_without_a_policy() {
    let all =
        [documents("examples"), documents("examples/contract"), documents("testdata/instances")].concat();
    let (mut planned, mut to_be_run) = (0, 0);
    for workload in &all {
        let ran = run(&["plan", workload]);
        // Phases of flows with `run` sections follow from their inputs, which do not exist.
        if fs::read_to_string(format!("{}/../../{workload}", env!("CARGO_MANIFEST_DIR")))
            .unwrap()
            .contains("run = {")
        {
            assert_eq!(ran.code, Some(2), "{workload}: {}", ran.err);
            to_be_run += 1;
        } else {
            assert_eq!(ran.code, Some(0), "{workload}: {}", ran.err);
            planned += 1;
        }
    }
    assert!(planned > 15 && to_be_run == 3, "{planned} and {to_be_run} of {all:?}");
}

#[test]
fn a_plan_without_a_policy_is_the_best_of_all() {
    let others =
        [PURDUE, "testdata/instances/no-length.toml", NIGHTLY, "testdata/instances/mixed-speeds.toml"];
    for workload in others {
        let table = done(&["plan", workload]);
        assert!(table.lines().any(|line| line.starts_with("auto: ")), "{table}");
    }
}

#[test]
fn the_table_says_how_good_the_plan_is_and_what_won() {
    let table = done(&["plan", CONTRACT]);
    for word in
        ["auto: weighted sum of response times 50.0 s, lower bound ", "% above optimal", "winner ", "\na "]
    {
        assert!(table.contains(word), "{word:?} in\n{table}");
    }
    assert!(done(&["plan", CONTRACT, "-p", "flex", "--metric", "makespan"]).contains(": optimal"));
    assert_eq!(done(&["plan", CONTRACT, "--format", "csv"]).lines().count(), 3);
}

#[test]
fn a_budget_ends_the_search_with_a_valid_plan() {
    let dir = scratch("budget");
    let file = dir.join("plan.json");
    let flags = ["--slots", "4", "--metric", "completion", "--budget", "0"];
    for policy in ["flex", "flowflex"] {
        assert!(passes(PURDUE, text(&file), &[&flags[..], &["--policy", policy]].concat()));
        let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let status = document["status"].as_str().expect("text");
        assert!(
            status == "optimal" || status.ends_with(", search ended by the budget"),
            "{policy}: {status}"
        );
        assert_eq!(document["workload"]["options"]["budget"], 0);
    }
}

/// Flows of two chained jobs with tasks of unlike length on three slots.
fn chains(flows: u32) -> String {
    let flow = |k: u32| {
        format!(
            "[[flows]]\nid = \"f{k}\"\nrelease = {k}.0\nweight = {}.0\njobs = [\n\
             {{ id = \"a\", map = {{ tasks = {}, seconds = {}.0 }}, reduce = {{ tasks = 2, seconds = {}.0 }} }},\n\
             {{ id = \"b\", after = [\"a\"], map = {{ tasks = 3, seconds = {}.0 }} }} ]\n",
            1 + k % 3,
            2 + k % 5,
            3 + k * 5 % 11,
            2 + k * 3 % 7,
            4 + k * 7 % 13
        )
    };
    let head = "slackline = 1\n[cluster]\nmachines = [{ name = \"m\", slots = 3 }]\n[objective]\nmetric = \"response\"\n";
    head.to_owned() + &(0..flows).map(flow).collect::<String>()
}

/// Cost, bound and status of a plan.
fn planned(workload: &str, flags: &[&str]) -> (f64, f64, String) {
    let ran = run_with(&[&["plan", "-", "--format", "json"], flags].concat(), workload.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let number = |name: &str| document[name].as_f64().expect("a number");
    let status = document["status"].as_str().expect("text").to_owned();
    (number("cost"), number("lower_bound"), status)
}

#[test]
fn a_small_plan_with_a_budget_is_proven_optimal_before_the_budget_is_over() {
    let workload = chains(3);
    let (plain, low, _) = planned(&workload, &[]);
    let (cost, bound, status) = planned(&workload, &["--budget", "300s"]);
    assert!(cost <= plain && low < bound, "{cost} {plain} {low} {bound}");
    assert!((cost - bound).abs() <= 1e-6 * cost && status == "optimal", "{cost} {bound} {status}");
}

#[test]
fn a_larger_plan_uses_its_budget_and_costs_no_more() {
    let workload = chains(14);
    let (plain, low, _) = planned(&workload, &[]);
    let (cost, bound, status) = planned(&workload, &["--budget", "4s"]);
    assert!(cost <= plain && low <= bound && bound < cost, "{cost} {plain} {low} {bound}");
    assert!(status.ends_with(", search ended by the budget"), "{status}");
}

#[test]
fn faster_machines_are_held_against_those_of_the_workload() {
    let speed = |flags: &[&str]| done(&[&["plan", CONTRACT, "--policy", "flowflex"], flags].concat());
    let twice = speed(&["--speed", "2", "--combine", "max"]);
    assert!(twice.contains("2 times the workload's: cost ") && twice.contains("(Theorem 4)"), "{twice}");
    assert!(speed(&["--speed", "3"]).contains("at most 2 times the optimum (Theorem 3)"));
    assert!(!speed(&[]).contains("the workload's"));
}

/// Two jobs one after the other, with a deadline.
fn chain(deadline: u32) -> String {
    format!(
        "slackline = 1\n[cluster]\nmachines = [{{ name = \"m\", slots = {{ map = 2, reduce = 1 }} }}]\n\
         [[flows]]\nid = \"f\"\ndeadline = {deadline}.0\njobs = [\n\
         {{ id = \"a\", map = {{ tasks = 4, seconds = 2.0 }} }},\n\
         {{ id = \"b\", after = [\"a\"], reduce = {{ tasks = 1, seconds = 3.0 }} }} ]\n"
    )
}

#[test]
fn progress_requirements_come_as_table_documents_and_bytes() {
    let dir = scratch("progress");
    let plan = |flags: &[&str]| {
        run_with(&[&["plan", "-", "--policy", "woha-lpf"], flags].concat(), chain(20).as_bytes())
    };
    let table = plan(&[]);
    assert_eq!(table.code, Some(0), "{}", table.err);
    for word in ["can be met", "jobs in the order a, b", "tasks\n"] {
        assert!(table.out.contains(word), "{word:?} in\n{}", table.out);
    }
    let document: Value = serde_json::from_str(&plan(&["--format", "json"]).out).unwrap();
    let flow = &document["plans"][0];
    assert_eq!((&flow["earliest_completion"], &flow["feasible"]), (&Value::from(7.0), &Value::from(true)));
    let bytes = flow["bytes"].as_u64().expect("a number");
    assert!(plan(&["--format", "csv"]).out.starts_with("flow,time_to_deadline,tasks\nf,"));
    let file = dir.join("f.plan");
    assert_eq!(plan(&["--output", text(&file)]).code, Some(0));
    // Magic, version, policy, flow, lengths and checksum around the plan itself.
    assert_eq!(fs::metadata(&file).unwrap().len(), bytes + 8 + 9 + 1 + 2 + 1 + 4);
}

#[test]
fn a_plan_made_elsewhere_is_followed_and_checked() {
    let dir = scratch("plan-file");
    let (document, file) = (dir.join("f.toml"), dir.join("f.plan"));
    fs::write(&document, chain(20)).unwrap();
    done(&["plan", text(&document), "--policy", "woha-lpf", "--output", text(&file)]);
    let run = |file: &Path, policy: &str| {
        run(&[
            "simulate",
            text(&document),
            "--policy",
            policy,
            "--plan-file",
            text(file),
            "--output",
            text(&dir.join("s.json")),
        ])
    };
    let followed = run(&file, "woha-hlf");
    assert_eq!(followed.code, Some(0), "{}", followed.err);
    done(&["check", text(&document), text(&dir.join("s.json"))]);
    let refused = |file: &Path, policy: &str, expected: &str| {
        let ran = run(file, policy);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(expected), "{expected:?} in {}", ran.err);
    };
    refused(&file, "edf", "--plan-file: found policy edf, expected woha-hlf, woha-lpf or woha-mpf");
    refused(&document, "woha-lpf", "f.toml: found a file that does not begin with SLKPLAN");
    refused(&dir.join("none"), "woha-lpf", "none: cannot be read");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    refused(&file, "woha-lpf", "f.plan: found plans whose check sum is");
    fs::write(&file, &bytes).unwrap();
    fs::write(&document, chain(20).replace("tasks = 4", "tasks = 5")).unwrap();
    refused(&file, "woha-lpf", "flow \"f\": found a plan of 2 jobs and 5 tasks, expected 2 jobs and 6 tasks");
    fs::write(&document, chain(20).replace("id = \"f\"", "id = \"g\"")).unwrap();
    refused(&file, "woha-lpf", "found a plan of another workload: found flow \"f\", expected g");
}

#[test]
fn simulate_says_which_deadline_cannot_be_met() {
    let ran = run_with(&["simulate", "-", "--policy", "woha-hlf"], chain(6).as_bytes());
    assert!(ran.out.contains("cannot be met: alone on the cluster, it finishes at 7.00 s"), "{}", ran.out);
}

#[test]
fn a_deadline_that_cannot_be_met_is_a_no() {
    let ran = run_with(&["plan", "-", "--policy", "woha-hlf"], chain(6).as_bytes());
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.out.contains("1 of 1 deadline cannot be met"), "{}", ran.out);
}
