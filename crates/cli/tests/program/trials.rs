//! Problems that trial users of the program found.

use std::fs;

use crate::{CONTRACT, MORNING, NIGHTLY, done, program, ran, run, run_with, scratch, text};

/// A schedule of the contract's workload, with some text in it replaced, and the verdict on it.
fn checked(test: &str, from: &str, to: &str) -> crate::Ran {
    let file = scratch(test).join("s.json");
    let written = done(&["simulate", CONTRACT, "--policy", "fifo", "--format", "json"]);
    assert!(written.contains(from), "{written}");
    fs::write(&file, written.replacen(from, to, 1)).unwrap();
    run(&["check", CONTRACT, text(&file)])
}

#[test]
fn a_status_that_does_not_follow_from_cost_and_bound_is_found() {
    let ran = checked("trials_status", "\"status\": \"at most ", "\"status\": \"optimal, at most ");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("not feasible: found status \"optimal, at most "), "{}", ran.out);
    assert!(ran.out.contains("but cost and lower bound say \"at most "), "{}", ran.out);
}

#[test]
fn an_unknown_policy_is_remarked_on_and_a_bound_is_only_claimed() {
    let ran = checked("trials_policy", "\"policy\": \"fifo\"", "\"policy\": \"mine\"");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("policy \"mine\" is unknown to this program"), "{}", ran.err);
    assert!(ran.out.contains(", lower bound 44.7 as it claims, "), "{}", ran.out);
    let known = checked("trials_known", "\"policy\": \"fifo\"", "\"policy\": \"fifo\"");
    assert_eq!((known.code, known.err.as_str()), (Some(0), ""));
}

#[test]
fn a_file_of_another_kind_is_called_by_its_kind() {
    let dir = scratch("trials_kinds");
    let at = |name: &str| dir.join(name).display().to_string();
    done(&["compare", CONTRACT, "-p", "fifo", "-o", &at("comparison.json")]);
    done(&["compare", CONTRACT, "-p", "fifo", "-o", &at("rows.csv")]);
    done(&["simulate", CONTRACT, "-p", "fifo", "-o", &at("schedule.json")]);
    done(&["plan", NIGHTLY, "-p", "woha-lpf", "-o", &at("nightly.plan")]);
    let refused = |args: &[&str], expected: &str| {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{args:?}: expected {expected:?} in {}", ran.err);
    };
    let schedule = at("schedule.json");
    refused(&["check", &schedule, CONTRACT], "found a workload, expected a schedule");
    refused(&["check", CONTRACT, &at("comparison.json")], "found a comparison, expected a schedule");
    refused(&["check", CONTRACT, &at("rows.csv")], "found rows of a table (CSV), expected a schedule");
    refused(
        &["check", NIGHTLY, &at("nightly.plan")],
        "found a plan file (for --plan-file), expected a schedule",
    );
    refused(&["bound", &schedule], "found a schedule, expected a workload");
    refused(&["bound", &at("comparison.json")], "found a comparison, expected a workload");
    refused(&["bound", &at("nightly.plan")], "found a plan file (for --plan-file), expected a workload");
    let learn = ["simulate", CONTRACT, "-p", "fifo", "--knowledge", "learned", "--history", &schedule];
    refused(&learn, "found a schedule, expected a history");
}

#[test]
fn machines_that_never_let_a_task_end_end_the_simulation() {
    // Maps end, and their output is lost before the reduces do.
    let args = ["simulate", NIGHTLY, "--policy", "fifo", "--crash-rate", "1m", "--repair", "1s"];
    let ran = run(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("flows failed: ") && ran.err.contains("machines died too often"), "{}", ran.err);
}

#[test]
fn flows_with_costs_of_their_own_are_named_where_a_metric_is_asked_for() {
    let workload = "slackline = 1\ncluster.machines = [{ name = 'n', slots = 1 }]\n[[flows]]\nid = 'own'\n\
                    cost = { kind = 'makespan' }\njobs = [{ id = 'a', map = { tasks = 1, seconds = 1.0 } }]\n";
    let said =
        |more: &[&str]| run_with(&[&["simulate", "-", "-p", "fifo"], more].concat(), workload.as_bytes()).err;
    let expected = "1 flow: the document sets its cost (the first is \"own\"), which overrides the metric stretch \
                    (first at line 5)";
    assert!(said(&["--metric", "stretch"]).contains(expected), "{}", said(&["--metric", "stretch"]));
    assert!(!said(&[]).contains("overrides"), "{}", said(&[]));
}

#[test]
fn an_explanation_names_the_machine_that_died() {
    let dir = scratch("trials_dead");
    let file = dir.join("s.json");
    let crash = ["--crash", "node-0@12+100"];
    done(&[&["simulate", CONTRACT, "-p", "fifo", "-o", text(&file)], &crash[..]].concat());
    let printed = |flow: &str| done(&["explain", text(&file), flow, "--workload", CONTRACT]);
    let both = printed("a") + &printed("b");
    assert!(both.contains("\nlost on node-0: "), "{both}");
    assert!(!both.contains("lost on node-1"), "{both}");
}

#[test]
fn groups_are_tables_and_csv() {
    let table = done(&["compare", NIGHTLY, "-p", "fifo,edf", "--by", "size"]);
    let head = table.lines().find(|line| line.starts_with("policy")).expect("a header");
    assert!(head.starts_with("policy  size") && head.contains("flows"), "{table}");
    assert!(table.lines().filter(|line| line.starts_with("edf ")).count() > 1, "{table}");
    let csv = done(&["compare", NIGHTLY, "-p", "fifo", "--by", "size", "--format", "csv"]);
    assert!(csv.starts_with("policy,size,flows,makespan,"), "{csv}");
    let none = run(&["compare", NIGHTLY, "-p", "fifo", "--by", "user"]);
    assert!(none.code == Some(2) && none.err.contains("--by: found user, which no flow of"), "{}", none.err);
    assert_eq!(run(&["compare", NIGHTLY, "--by", "size", "--format", "json"]).code, Some(2));
}

#[test]
fn counts_of_a_schedule_are_whole_numbers() {
    let written = done(&["simulate", NIGHTLY, "-p", "fifo", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&written).unwrap();
    for count in ["deadlines", "missed", "tasks", "decisions"] {
        assert!(document["metrics"][count].is_u64(), "{count}: {}", document["metrics"][count]);
    }
    let file = scratch("trials_counts").join("s.json");
    let tasks = format!("\"tasks\":{}", document["metrics"]["tasks"]);
    assert!(written.contains(&tasks), "{written:.2000}");
    fs::write(&file, written.replacen(&tasks, &format!("{tasks}.0"), 1)).unwrap();
    done(&["check", NIGHTLY, text(&file)]);
}

#[test]
fn duplicate_options_are_refused_or_reported() {
    let ran = run(&["compare", CONTRACT, "-p", "fifo,edf,fifo", "--format", "csv"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 3), "{}", ran.out);
    assert!(ran.err.contains("--policies: found fifo twice; it is compared once"), "{}", ran.err);
    let ran = run(&["compare", CONTRACT, "--columns", "cost,gap,cost"]);
    assert!(ran.code == Some(2) && ran.err.contains("--columns: found cost twice"), "{}", ran.err);
    let workload = "slackline = 1\n[[flows]]\nid = 'f'\nrepeat = { every = '0s', times = 3 }\n\
                    jobs = [{ id = 'a', map = { tasks = 1, seconds = 1.0 } }]\n";
    let ran = run_with(&["bound", "-", "--machines", "1", "--slots", "1"], workload.as_bytes());
    assert!(ran.code == Some(2) && ran.err.contains(":4:20: flows[0].repeat.every: found 0"), "{}", ran.err);
}

#[test]
fn the_message_for_a_version_that_is_a_text_asks_for_a_number() {
    let ran = run_with(&["bound", "-", "--from", "toml"], b"slackline = \"1\"\nflows = []\n");
    let expected = ":1:13: slackline: found text \"1\", expected the version as a number without quotes: 1";
    assert!(ran.code == Some(2) && ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn listings_fit_eighty_columns_and_help_has_the_generator_in_its_title() {
    for args in [&["repro"][..], &["run", "--list-programs"], &["generate"]] {
        let list = done(args);
        let widest = list.lines().max_by_key(|line| line.chars().count()).expect("lines");
        assert!(widest.chars().count() <= 80, "{args:?}: {widest}");
    }
    let help = done(&["generate", "purdue", "--help"]);
    assert!(help.starts_with("Generate a synthetic workload with purdue: "), "{help}");
}

#[test]
fn no_gap_with_jitter_has_its_reason() {
    let because = "because --jitter changes the durations of the workload";
    for seeds in ["1", "2"] {
        let table = done(&["compare", CONTRACT, "-p", "fifo", "--jitter", "0.3", "--seeds", seeds]);
        let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(because), "{table}");
    }
    let table = done(&["simulate", CONTRACT, "-p", "fifo", "--jitter", "0.3"]);
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no lower bound, because durations differ from the workload"), "{table}");
}

#[test]
fn bash_offers_the_names_of_columns() {
    let bash = done(&["completions", "bash"]);
    let compare = bash.split("slackline__subcmd__compare)").nth(1).expect("a case of compare");
    let columns =
        compare.split("--columns)").nth(1).and_then(|rest| rest.lines().nth(1)).expect("its values");
    assert!(columns.contains("compgen -W \"policy cost lower_bound gap "), "{columns}");
}

#[test]
fn an_unknown_time_zone_of_the_environment_is_named() {
    let dir = scratch("trials_zone");
    fs::write(dir.join("in.txt"), "a b\n").unwrap();
    let flow = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'w', run = { program = \"wordcount\", inputs = [\"in.txt\"], output = \"out\" } }]\n";
    fs::write(dir.join("flow.toml"), flow).unwrap();
    let args = ["run", "flow.toml"];
    let output = program().current_dir(&dir).env("TZ", "Europe/Berln").args(args).output().unwrap();
    let ran = ran(&output);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        ran.err.contains("warning: TZ: found \"Europe/Berln\", expected the name of a time zone"),
        "{}",
        ran.err
    );
}

#[test]
fn errors_of_experiment_settings_have_a_line() {
    let file = scratch("trials_spec").join("mine.toml");
    let spec = "slackline = 1\ntitle = 't'\npaper = 'p'\n[[figures]]\nid = 'f'\ntitle = 't'\nkind = 'sweep'\nseeds = 1\n\
                [figures.settings]\nby = 'simulate'\nworkload = { generator = 'purdue' }\npolicies = ['fifo']\n\
                measures = ['cost']\n";
    for (from, to, expected) in [
        ("'purdue'", "'purdu'", ":11:26: figures[0].settings.workload.generator: found generator \"purdu\""),
        ("'purdue'", "'purdue', set = { job = 3 }", ":11:42: figures[0].settings.workload.set: "),
        ("['fifo']", "['fifo', 'fofi']", ":12:21: figures[0].settings.policies[1]: found policy \"fofi\""),
        ("['fifo']", "[]", ":12:12: figures[0].settings.policies: found an empty list"),
        ("['cost']", "['costs']", ":13:13: figures[0].settings.measures[0]: found measure \"costs\""),
        (
            "['cost']",
            "['cost']\nobjectives = ['sum respons']",
            ":14:15: figures[0].settings.objectives[0]: found objective \"sum respons\"",
        ),
        (
            "['cost']",
            "['cost']\nsimulation = { jitter = -1 }",
            ":14:25: figures[0].settings.simulation.jitter: found ",
        ),
        (
            "['cost']",
            "['cost']\ngrain = 0.0",
            ":14:9: figures[0].settings.grain: found 0.0, expected seconds above 0",
        ),
        (
            "['cost']",
            "['cost']\ncluster = { machines = 0, slots = 2 }",
            ":14:24: figures[0].settings.cluster.machines: ",
        ),
        (
            "['cost']",
            "['cost']\nvary = { param = 'machines', values = [-1] }",
            ":14:8: figures[0].settings.vary: found machines = -1, expected a whole number from 1",
        ),
    ] {
        fs::write(&file, spec.replace(from, to)).unwrap();
        let ran = run(&["repro", "--spec", text(&file)]);
        assert_eq!(ran.code, Some(2), "{to}: {}", ran.out);
        assert!(ran.err.contains(expected), "{to}: expected {expected:?} in {}", ran.err);
    }
}

#[test]
fn columns_of_the_history_are_those_of_its_csv() {
    let dir = scratch("trials_history");
    fs::write(dir.join("in.txt"), "a b\n").unwrap();
    let flow = "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'w', run = { program = \"wordcount\", inputs = [\"in.txt\"], output = \"out\" } }]\n";
    fs::write(dir.join("flow.toml"), flow).unwrap();
    let at = |args: &[&str]| ran(&program().current_dir(&dir).args(args).output().unwrap());
    let made = at(&["run", "flow.toml", "--history", "past.history"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let csv = at(&["history", "past.history", "--format", "csv"]).out;
    let columns = csv.lines().next().unwrap();
    let table = at(&["history", "past.history", "--columns", columns]);
    assert_eq!(table.code, Some(0), "{}", table.err);
    assert!(columns.contains("bytes_in") && columns.contains("seconds_per_map"), "{columns}");
}

#[test]
fn a_time_that_comes_twice_is_shown_with_its_offset() {
    let workload =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../").to_owned() + MORNING).unwrap();
    let autumn = workload.replace("2026-03-28", "2026-10-24").replace("2026-03-29", "2026-10-25");
    let shown = run_with(&["simulate", "-", "-p", "edf", "--all"], autumn.as_bytes());
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("25 Oct 02:") && shown.out.contains("+02:00"), "{}", shown.out);
}
