//! Tables fit the width they are shown at and show the requested columns; numbers have one format everywhere;
//! the comparison document follows its schema.

use std::fs;
use std::path::Path;

use serde_json::Value;
use slackline_model::random::test_step;

use crate::reports::data;
use crate::{CONTRACT, NIGHTLY, PURDUE, Ran, done, program, ran, run, scratch, text};

/// Runs the program as on a terminal of that width.
fn at(width: &str, args: &[&str]) -> Ran {
    ran(&program().args(args).env("COLUMNS", width).output().expect("the program starts"))
}

/// The width of the widest line.
fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The lines from the first table of a text on.
fn from_the_table(text: &str) -> &str {
    text.split_once("\n\n").map_or(text, |(_, table)| table)
}

#[test]
fn tables_of_every_verb_fit_the_terminal() {
    let dir = scratch("tables_fit");
    let schedule = dir.join("s.json");
    done(&["simulate", NIGHTLY, "--policy", "fair", "--output", text(&schedule)]);
    // Half of the widths for each command, the other half for the next one; all if `SLACKLINE_SCALE` is 2.
    let step = test_step(2.0);
    let commands = [
        &["compare", NIGHTLY][..],
        &["compare", NIGHTLY, "--timings"],
        &["compare", NIGHTLY, "--jitter", "0.3", "--seeds", "3"],
        &["simulate", NIGHTLY, "--policy", "edf"],
        &["plan", PURDUE, "--slots", "4"],
        &["plan", NIGHTLY, "--policy", "woha-lpf"],
        &["tune", PURDUE, "--total-slots", "20"],
        &["capacity", NIGHTLY, "--policy", "edf", "--until", "missed=0", "--machines", "7..50"],
        &["bound", NIGHTLY],
        &["policies"],
        &["explain", text(&schedule), "billing", "--workload", NIGHTLY],
        &["repro", "job-ordering", "fig5"],
    ];
    for (k, args) in commands.into_iter().enumerate() {
        for width in [70, 80, 100, 200].into_iter().skip(k % step).step_by(step) {
            let found = at(&width.to_string(), args);
            assert_eq!(found.code, Some(0), "{args:?}: {}", found.err);
            // No row is wider than the rule above it.
            let rules: Vec<&str> = found.out.lines().filter(|line| line.starts_with('─')).collect();
            assert!(!rules.is_empty(), "{args:?}: no table in\n{}", found.out);
            assert!(widest(&rules.join("\n")) <= width, "{args:?} at {width}:\n{}", found.out);
        }
    }
}

#[test]
fn without_a_terminal_a_table_is_a_hundred_columns_wide() {
    let plain = || program().args(["compare", NIGHTLY]).env_remove("COLUMNS").output().expect("it starts");
    let piped = ran(&plain()).out;
    assert!(widest(from_the_table(&piped)) <= 100, "{piped}");
    let file = scratch("tables_file").join("t.txt");
    let written = at("60", &["compare", NIGHTLY, "--output", text(&file)]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), piped, "a file is always the same");
    assert!(!piped.contains('\u{1b}'), "no colours without a terminal");
}

#[test]
fn hidden_columns_can_be_requested() {
    let narrow = at("50", &["compare", NIGHTLY, "--policies", "all"]).out;
    assert!(!narrow.lines().any(|line| line.ends_with("makespan")), "{narrow}");
    // A wide terminal shows no more than seven.
    let wide = at("300", &["compare", NIGHTLY, "--policies", "fifo,edf"]).out;
    let columns = |line: &str| line.split_whitespace().count();
    assert_eq!(
        wide.lines().find(|line| line.starts_with("edf")).map(columns),
        Some(8),
        "a gap is two words: {wide}"
    );
    let asked =
        at("20", &["compare", NIGHTLY, "--columns", "makespan,lower_bound", "--policies", "fifo,edf"]).out;
    let table = from_the_table(&asked);
    assert!(table.contains("policy  makespan") && table.contains("lower"), "{asked}");
    assert!(!table.contains("cost") && !table.contains("narrow"), "{asked}");
}

#[test]
fn the_best_of_each_column_is_marked() {
    let table = done(&["compare", NIGHTLY, "--policies", "fifo,edf", "--columns", "cost,missed,tasks"]);
    let line = |policy: &str| table.lines().find(|line| line.starts_with(policy)).expect("a row").to_owned();
    assert_eq!(line("edf").matches('*').count(), 2, "cost and missed deadlines:\n{table}");
    assert_eq!(line("fifo").matches('*').count(), 0, "{table}");
}

#[test]
fn rows_come_in_the_order_that_is_asked_for() {
    let names = |sort: &str| -> Vec<String> {
        let table = done(&["compare", NIGHTLY, "--policies", "edf,fifo,fair", "--sort", sort]);
        let rows = from_the_table(&table).lines().skip_while(|line| !line.starts_with('─')).skip(1);
        rows.take(3).map(|row| row.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(names("missed"), ["edf", "fair", "fifo"]);
    assert_eq!(names("-missed"), ["fifo", "fair", "edf"]);
    assert_eq!(names("policy"), ["edf", "fair", "fifo"]);
    let flows =
        done(&["simulate", NIGHTLY, "--policy", "edf", "--sort", "-response", "--columns", "response"]);
    let rows = flows.lines().skip_while(|line| !line.starts_with('─')).skip(1);
    let responses: Vec<f64> =
        rows.filter_map(|row| row.split_whitespace().nth(1)?.replace(',', "").parse().ok()).collect();
    assert!(responses.len() == 10 && responses.is_sorted_by(|a, b| a >= b), "{flows}");
    let sizes = done(&[
        "capacity",
        NIGHTLY,
        "--policy",
        "edf",
        "--until",
        "missed=0",
        "--machines",
        "7..50",
        "--sort",
        "missed",
    ]);
    let first = sizes.lines().skip_while(|line| !line.starts_with('─')).nth(1).expect("a row");
    let cells: Vec<&str> = first.split_whitespace().take(3).collect();
    assert_eq!(cells, ["9", "yes", "0"], "counts have no fractions:\n{sizes}");
}

#[test]
fn columns_that_there_are_not_are_refused_before_anything_runs() {
    for (args, expected) in [
        (
            &["compare", "none.toml", "--columns", "mised"][..],
            "--columns: found column \"mised\", expected one of policy, cost, ",
        ),
        (&["compare", "none.toml", "--sort=-mised"], "; did you mean \"missed\"?"),
        (&["simulate", "none.toml", "--policy", "edf", "--sort", "relase"], "did you mean \"release\"?"),
        (
            &["compare", "none.toml", "--columns", "cost", "--format", "json"],
            "--columns: found --format json",
        ),
        (
            &["tune", PURDUE, "--total-slots", "8", "--sort", "missed"],
            "--sort: found column \"missed\", expected one of map_slots",
        ),
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{expected:?} in {}", ran.err);
    }
}

#[test]
fn comparisons_follow_their_schema_for_any_number_of_seeds() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/comparison.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let crash = ["--crash", "node-0@5", "--crash", "node-1@5"];
    for args in [
        &["compare", NIGHTLY, "--timings"][..],
        &["compare", NIGHTLY, "--policies", "fifo,edf", "--jitter", "0.3", "--seeds", "3"],
        &["compare", NIGHTLY, "--metric", "lateness"],
        &["compare", "examples/purdue-30.toml", "--slots", "4", "--metric", "tardiness", "--seeds", "2"],
        &[&["compare", CONTRACT][..], &crash[..]].concat(),
        &[&["compare", CONTRACT, "--seeds", "2"][..], &crash[..]].concat(),
    ] {
        let found = run(&[args, &["--format", "json"]].concat());
        let mut document: Value = serde_json::from_str(&found.out).expect("JSON");
        validator.validate(&document).unwrap_or_else(|error| panic!("{args:?}: {error}"));
        document["policies"][0]["colour"] = "red".into();
        assert!(!validator.is_valid(&document), "unknown fields are refused");
    }
}

/// Groups are shown for flows with a pool or a user, and by size.
#[test]
fn comparisons_tell_the_groups_of_a_workload() {
    let file = scratch("groups").join("w.toml");
    let job = |tasks: u32| format!("jobs = [{{ id = \"j\", map = {{ tasks = {tasks}, seconds = 5.0 }} }}]");
    let workload = format!(
        "slackline = 1\n[cluster]\nmachines = [{{ name = \"m\", slots = 1 }}]\n[[pools]]\nid = \"night\"\n\
         [[flows]]\nid = \"a\"\npool = \"night\"\nuser = \"eve\"\n{}\n[[flows]]\nid = \"b\"\n{}\n",
        job(1),
        job(4)
    );
    fs::write(&file, workload).unwrap();
    for seeds in ["1", "2"] {
        let args = ["compare", text(&file), "--policies", "fifo", "--seeds", seeds, "--format", "json"];
        let document: Value = serde_json::from_str(&done(&args)).unwrap();
        let groups = document["policies"][0]["groups"].as_array().expect("groups");
        let printed: Vec<String> =
            groups.iter().map(|g| format!("{} {} {}", g["by"], g["name"], g["flows"])).collect();
        assert_eq!(
            printed,
            [r#""pool" "night" 1"#, r#""user" "eve" 1"#, r#""size" "1..10" 1"#, r#""size" "10..100" 1"#]
        );
        let wait = &groups[3]["metrics"]["mean_wait"];
        assert_eq!(wait, 5.0, "nothing is random, so one seed is simulated");
    }
}

#[test]
fn a_gap_is_the_same_number_everywhere() {
    let table = done(&["compare", NIGHTLY, "--policies", "edf", "--columns", "gap"]);
    let gap = table.lines().last().and_then(|row| row.strip_prefix("edf")).expect("a row").trim().to_owned();
    let simulated = done(&["simulate", NIGHTLY, "--policy", "edf"]);
    assert!(simulated.contains(&format!("at most {gap} above optimal")), "{gap} in\n{simulated}");
    let plan = done(&["plan", NIGHTLY, "--policy", "fair", "--metric", "response", "--combine", "max"]);
    let (_, words) = plan.split_once("at most ").expect("a gap");
    let number = words.split(' ').next().expect("a number");
    assert!(number.split_once('.').is_some_and(|(_, digits)| digits.len() == 1), "{plan}");
}

/// `plan` does not divide work, a simulation does: the numbers of tasks differ and the output has the reason.
#[test]
fn work_that_is_cut_explains_the_number_of_tasks() {
    let head = |args: &[&str]| done(args).lines().next().expect("a line").to_owned();
    let simulated = head(&["simulate", NIGHTLY, "--policy", "edf"]);
    let planned = head(&["plan", NIGHTLY, "--policy", "fair"]);
    assert!(simulated.contains("2,099 tasks (150 of them cut from work)"), "{simulated}");
    assert!(planned.contains("1,949 tasks and 1,500 slot-seconds of work"), "{planned}");
}

#[test]
fn the_best_policies_are_the_same_in_every_form() {
    let args = ["compare", NIGHTLY, "-p", "fifo,edf,auto"];
    let document = json(&[&args[..], &["--format", "json"]].concat());
    let policies = document["policies"].as_array().unwrap();
    let in_json: Vec<bool> = policies.iter().map(|policy| policy["best"].as_bool().unwrap()).collect();
    assert!(in_json.contains(&true) && in_json.contains(&false), "{document}");
    let csv = done(&[&args[..], &["--format", "csv"]].concat());
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let place = rows.next().unwrap().iter().position(|name| *name == "best").unwrap();
    assert_eq!(rows.map(|row| row[place] == "true").collect::<Vec<_>>(), in_json, "{csv}");
    let one = done(&[&args[..], &["--jitter", "0.3", "--seeds", "1", "--format", "csv"]].concat());
    let row: Vec<&str> = one.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(row[place], "", "one draw is no verdict: {one}");
}

/// The metric that policies minimize.
fn metric(file: &Path, more: &[&str]) -> String {
    let args = [&["compare", text(file), "-p", "fifo", "--format", "json"], more].concat();
    json(&args)["objective"]["metric"].as_str().unwrap().to_owned()
}

#[test]
fn who_asks_about_deadlines_gets_tardiness() {
    let dir = scratch("tables_tardiness");
    let file = |name: &str, text: String| {
        let file = dir.join(name);
        fs::write(&file, text).unwrap();
        file
    };
    let head = "slackline = 1\ncluster.machines = [{ name = \"node\", count = 2, slots = 1 }]\n";
    let flow = |id: &str, more: &str| {
        format!(
            "[[flows]]\nid = \"{id}\"\n{more}\njobs = [{{ id = \"j\", map = {{ tasks = 2, seconds = 9 }} }}]\n"
        )
    };
    let none = file("none.toml", format!("{head}{}", flow("a", "")));
    assert_eq!(metric(&none, &[]), "response");
    assert_eq!(metric(&none, &["--deadlines", "2"]), "tardiness");
    assert_eq!(metric(&none, &["--deadlines", "2", "--metric", "response"]), "response");
    assert_eq!(metric(&none, &["--deadlines", "2", "--combine", "max"]), "tardiness");
    let due = "deadline = 30";
    let all = file("all.toml", format!("{head}{}{}", flow("a", due), flow("b", due)));
    assert_eq!(metric(&all, &[]), "tardiness");
    let some = file("some.toml", format!("{head}{}{}", flow("a", due), flow("b", "")));
    assert_eq!(metric(&some, &[]), "response");
    let stated = format!("{}objective.metric = \"makespan\"\n{}", head, flow("a", due));
    let stated = file("stated.toml", stated);
    for more in [&[][..], &["--deadlines", "2"]] {
        assert_eq!(metric(&stated, more), "makespan");
    }
    let lines = done(&["import", text(&all), "--format", "jsonl"]);
    let lines = file("all.jsonl", lines);
    assert_eq!(metric(&lines, &[]), "tardiness", "a converted workload keeps its objective");
}

#[test]
fn what_is_not_modelled_is_in_every_document_and_page() {
    let dir = scratch("tables_not_modelled");
    let (log, page) = (dir.join("gang.swf"), dir.join("page.html"));
    fs::write(&log, "1 0 2 10 4 -1 -1 4 15 -1 1 1 1 1 1 1 -1 -1\n").unwrap();
    let cluster = ["--machines", "4", "--slots", "2"];
    let sizes = ["--machines", "1..8", "--slots", "1", "--until", "makespan:1h", "-p", "fifo"];
    for (verb, more) in [("compare", &cluster[..]), ("capacity", &sizes), ("tune", &cluster)] {
        let args = [&[verb, text(&log)], more].concat();
        let document = json(&[&args[..], &["--format", "json"]].concat());
        let gangs = &document["not_modelled"][0];
        assert!(gangs["count"] == 1 && gangs["of"] == "job", "{verb}: {document}");
        done(&[&args[..], &["--report", text(&page)]].concat());
        let remarks = data(&page);
        assert!(remarks.contains("Not modelled: 1 job: gang of several processors"), "{verb}: {remarks}");
    }
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&done(args)).unwrap()
}
