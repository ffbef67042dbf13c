//! The basic function of every command.

use std::fs;

use serde_json::Value;

use crate::{CONTRACT, NIGHTLY, PURDUE, TRACE, done, run, run_with, scratch, text};

fn json(document: &str) -> Value {
    serde_json::from_str(document).expect("the document is JSON")
}

#[test]
fn compare_shows_every_policy_against_metrics() {
    let table = done(&["compare", NIGHTLY]);
    assert!(table.starts_with("nightly.toml: 10 flows, 23 jobs, "), "{table}");
    for word in ["offered load: map ", "sum of response", "missed", "\nfifo ", "\nfair ", "\nedf "] {
        assert!(table.contains(word), "{word:?} in\n{table}");
    }
}

#[test]
fn the_policies_differ_visibly_on_the_example() {
    let document = json(&done(&["compare", NIGHTLY, "--policies", "fifo,fair,edf", "--format", "json"]));
    let figure = |k: usize, name: &str| document["policies"][k]["metrics"][name].as_f64().expect("a number");
    let missed: Vec<f64> = (0..3).map(|k| figure(k, "missed")).collect();
    assert!(missed[0] > missed[1] && missed[1] > missed[2], "fifo, fair, edf: {missed:?}");
    assert!(figure(0, "mean_response") > 1.5 * figure(1, "mean_response"));
}

#[test]
fn compare_gives_the_comparison_document() {
    let document = json(&done(&["compare", CONTRACT, "--policies", "fifo,fair:by=flow", "--format", "json"]));
    assert_eq!((&document["slackline"], &document["seeds"]), (&1.into(), &serde_json::json!([0])));
    assert_eq!(document["objective"], serde_json::json!({"metric": "response", "combine": "sum"}));
    assert_eq!(document["workload"]["sha256"].as_str().map(str::len), Some(64));
    let entries = document["policies"].as_array().expect("a list");
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[1]["policy"], &entries[1]["refused"]), (&"fair:by=flow".into(), &Value::Null));
    for name in ["cost", "lower_bound", "gap"] {
        assert!(entries[0]["objective"].get(name).is_some(), "{name}");
    }
    assert_eq!(entries[0]["metrics"]["tasks"].as_u64(), Some(8), "counts are whole numbers");
    assert!(entries[0]["metrics"].get("seconds").is_none(), "no wall clock without --timings");
    let timed = json(&done(&["compare", CONTRACT, "--timings", "--format", "json"]));
    assert!(timed["policies"][0]["metrics"]["seconds"].is_number());
}

#[test]
fn compare_takes_a_few_policies_unless_others_are_asked_for() {
    let names = |args: &[&str]| -> Vec<String> {
        let csv = done(&[&["compare", CONTRACT, "--format", "csv"], args].concat());
        csv.lines().skip(1).map(|row| row.split(',').next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["fifo", "fair", "auto"], "no flow has a deadline");
    assert_eq!(names(&["--deadlines", "2"]), ["fifo", "fair", "edf", "auto"]);
    let listed = done(&["policies", "--format", "csv"]);
    let every = listed.lines().skip(1).map(|row| row.split(',').next().unwrap());
    // All are the baselines and those of the papers.
    let all: Vec<&str> = every
        .filter(|name| !["rule", "auto", "yarn-capacity", "yarn-fair", "recorded", "command"].contains(name))
        .collect();
    assert_eq!(names(&["-p", "all"]), all);
}

#[test]
fn a_policy_that_takes_too_long_has_a_row_that_says_so() {
    let args = ["compare", NIGHTLY, "-p", "fifo,edf", "--timeout"];
    let document = done(&[&args[..], &["1h", "--format", "json"]].concat());
    let without = done(&["compare", NIGHTLY, "-p", "fifo,edf", "--format", "json"]);
    assert_eq!(document, without, "who ends in time does as without");
    // No task is done within a microsecond.
    let late = |form: &str| run(&[&args[..], &["1us", "--format", form]].concat());
    let table = late("table");
    assert_eq!((table.code, table.err.as_str()), (Some(1), ""));
    assert!(table.out.ends_with("\nfifo: not finished in 0.000001 s\nedf: not finished in 0.000001 s\n"));
    let document = json(&late("json").out);
    assert_eq!(document["policies"][1]["refused"], "not finished in 0.000001 s");
    assert_eq!(document["policies"][1]["metrics"], Value::Null);
    let csv = late("csv").out;
    assert!(csv.lines().nth(1).is_some_and(|row| row.ends_with(",not finished in 0.000001 s")), "{csv}");
    let seeds = ["--jitter", "0.2", "--seeds", "2"];
    assert!(run(&[&args[..], &["1us"], &seeds[..]].concat()).out.contains("\nedf: not finished in "));
    assert_eq!(run(&[&args[..], &["0"]].concat()).code, Some(2));
}

#[test]
fn compare_gives_csv_with_a_row_a_policy() {
    let csv = done(&["compare", CONTRACT, "--policies", "fifo,fair,edf", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("policy,cost,lower_bound,gap,makespan,"), "{csv}");
    assert_eq!(lines.len(), 4);
}

#[test]
fn compare_over_seeds_gives_intervals_and_differences() {
    let args = ["compare", NIGHTLY, "--jitter", "0.3", "--seeds", "3", "--policies", "fifo,edf"];
    let table = done(&args);
    assert!(table.contains(" to ") && table.contains("difference to fifo"), "{table}");
    assert!(table.contains("\nedf has the fewest missed deadlines; fifo is worse by "), "{table}");
    let five = done(&["compare", NIGHTLY, "--jitter", "0.3", "--seeds", "5", "--policies", "fifo,edf"]);
    assert!(five.contains('±') && five.contains("5 seeds from 0"), "{five}");
    let one = done(&["compare", NIGHTLY, "--jitter", "0.3", "--seeds", "1", "--policies", "fifo,edf"]);
    assert!(one.contains("one draw") && !one.contains('*'), "{one}");
    let document = json(&done(&[&args[..], &["--format", "json"]].concat()));
    assert_eq!(document["seeds"], serde_json::json!([0, 1, 2]));
    let cost = &document["policies"][1]["objective"]["cost"];
    assert!(cost["sd"].as_f64().expect("a number") > 0.0);
    assert!(cost["difference"]["mean"].as_f64().expect("a number") < 0.0, "edf is better than fifo here");
}

#[test]
fn simulate_shows_flows_and_writes_the_schedule() {
    let table = done(&["simulate", NIGHTLY, "--policy", "edf"]);
    assert!(table.contains("clicks#3") && table.contains("on time"), "{table}");
    let document = json(&done(&["simulate", CONTRACT, "--policy", "fair", "--format", "json"]));
    assert_eq!(document["slackline"], 1);
    assert_eq!(document["flows"].as_array().map(Vec::len), Some(2));
    assert!(document["tasks"].is_array());
    let csv = done(&["simulate", CONTRACT, "--policy", "fifo", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn simulate_shows_a_few_flows_unless_all_are_asked_for() {
    let day = done(&["generate", "facebook-day", "--set", "jobs=50"]);
    let args = ["simulate", "-", "--policy", "fifo"];
    let few = run_with(&args, day.as_bytes());
    assert!(few.out.contains("… 30 more"), "{}{}", few.out, few.err);
    let all = run_with(&[&args[..], &["--all"]].concat(), day.as_bytes());
    assert!(!all.out.contains("more") && all.out.lines().count() > 50, "{}", all.out);
}

#[test]
fn an_output_file_is_whole_and_alone() {
    let dir = scratch("output_file");
    let file = dir.join("s.json");
    fs::write(&file, "something older").unwrap();
    let ran = run(&["simulate", NIGHTLY, "--policy", "fifo", "--output", text(&file)]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
    assert_eq!(json(&fs::read_to_string(&file).unwrap())["policy"], "fifo");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_trace_needs_a_cluster_and_says_what_it_repaired() {
    let bare = run_with(&["compare", "-"], TRACE.as_bytes());
    assert_eq!(bare.code, Some(2));
    assert!(bare.err.contains("--machines N") && bare.err.contains("--map-slots"), "{}", bare.err);
    let half = run_with(&["compare", "-", "--machines", "3"], TRACE.as_bytes());
    assert_eq!(half.code, Some(2));
    assert!(half.err.contains("--slots S"), "{}", half.err);
    let cluster = ["compare", "-", "--machines", "3", "--map-slots", "2", "--reduce-slots", "1"];
    let ran = run_with(&cluster, TRACE.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("stdin: 4 flows, 4 jobs, "), "{}", ran.out);
    assert!(ran.err.contains("1 row"), "{}", ran.err);
}

#[test]
fn clusters_of_flags_replace_that_of_the_document() {
    let head = |flags: &[&str]| {
        let table = done(&[&["bound", CONTRACT], flags].concat());
        table.lines().next().expect("a line").rsplit_once(" on ").expect("a cluster").1.to_owned()
    };
    assert_eq!(head(&[]), "2 machines (4 generic slots)");
    assert_eq!(head(&["--machines", "5"]), "5 machines (10 generic slots)");
    assert_eq!(head(&["--map-slots", "2", "--reduce-slots", "1"]), "2 machines (4 map and 2 reduce slots)");
    assert_eq!(head(&["--total-slots", "6"]), "6 machines (6 generic slots)");
    assert_eq!(head(&["--total-slots", "6", "--machines", "3"]), "3 machines (6 generic slots)");
    assert_eq!(head(&["--speed", "2.5"]), "2 machines (4 generic slots, speed 2.5)");
    assert_eq!(run(&["bound", CONTRACT, "--total-slots", "7", "--machines", "3"]).code, Some(2));
}

#[test]
fn import_writes_a_document_that_gives_the_same() {
    let dir = scratch("import");
    let cluster = ["--machines", "3", "--map-slots", "2", "--reduce-slots", "1", "--deadlines", "2"];
    let direct = run_with(
        &[&["compare", "-", "--format", "csv", "--seeds", "1"], &cluster[..]].concat(),
        TRACE.as_bytes(),
    );
    // The trace is one draw, so no policy is marked; the document is exact.
    let figures = |csv: &str| -> Vec<String> {
        csv.lines().filter_map(|row| Some(row.rsplitn(3, ',').last()?.to_owned())).collect()
    };
    for format in ["toml", "json", "yaml"] {
        let file = dir.join(format!("day.{format}"));
        let args = [&["import", "-", "--output", text(&file)], &cluster[..]].concat();
        let ran = run_with(&args, TRACE.as_bytes());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let imported = done(&["compare", text(&file), "--format", "csv"]);
        assert_eq!(figures(&imported), figures(&direct.out), "{format}");
    }
}

#[test]
fn import_without_a_cluster_leaves_it_to_later() {
    let ran = run_with(&["import", "-", "--format", "json"], TRACE.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.err.contains("no cluster"), "{}", ran.err);
    let args = ["bound", "-", "--machines", "3", "--slots", "2"];
    assert_eq!(run_with(&args, ran.out.as_bytes()).code, Some(0));
}

#[test]
fn import_finds_what_is_wrong_without_a_cluster_too() {
    let broken = "slackline = 1\n[[flows]]\nid = \"a\"\n[[flows.jobs]]\nid = \"b\"\nafter = [\"cleen\"]\nmap = { tasks = 1, seconds = 1.0 }\n";
    let ran = run_with(&["import", "-", "--from", "toml"], broken.as_bytes());
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
    assert!(ran.err.contains(":6:") && ran.err.contains("found \"cleen\""), "{}", ran.err);
    let hosts = "slackline = 1\n[[flows]]\nid = \"a\"\n[[flows.jobs]]\nid = \"b\"\nmap = { splits = [{ hosts = [\"far-1\"], seconds = 1.0 }] }\n";
    let ran = run_with(&["import", "-", "--from", "toml"], hosts.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn generators_are_listed_and_all_can_be_compared() {
    let list = done(&["generate", "--list"]);
    let names: Vec<&str> = list
        .lines()
        .filter(|l| !l.starts_with(' '))
        .filter_map(|l| l.split_once(": "))
        .map(|l| l.0)
        .collect();
    assert!(names.contains(&"purdue") && names.contains(&"facebook-day"), "{list}");
    for name in names {
        let document = done(&["generate", name, "--format", "json"]);
        let ran = run_with(&["bound", "-"], document.as_bytes());
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
    }
}

#[test]
fn bounds_have_a_table_and_a_document() {
    let document = json(&done(&["bound", NIGHTLY, "--format", "json"]));
    assert_eq!(document["objective"]["metric"], "response");
    assert!(document["bounds"].is_array() && document.get("best").is_some());
    assert!(done(&["bound", NIGHTLY, "--metric", "makespan"]).contains("makespan"));
    assert!(done(&["bound", NIGHTLY]).contains("given as work"));
    assert!(!done(&["bound", CONTRACT]).contains("given as work"));
}

#[test]
fn policies_come_from_the_registry() {
    let table = done(&["policies"]);
    for word in ["fifo", "fair", "edf", "allocations", "tasks", "progress requirements"] {
        assert!(table.contains(word), "{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 110), "{table}");
    assert!(done(&["policies", "fair"]).contains("fair:by=job|flow"));
    assert!(run(&["policies", "fare"]).err.contains("expected one of fifo"));
    let document = json(&done(&["policies", "--format", "json"]));
    assert_eq!(document[0]["name"], "fifo");
    assert_eq!(document[0]["parameters"][0]["default"], "job");
    assert!(done(&["policies", "--format", "csv"]).starts_with("policy,"));
}

#[test]
fn completions_and_pages_name_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(done(&["completions", shell]).contains("simulate"), "{shell}");
    }
    assert!(done(&["man"]).starts_with(".ie"));
    assert!(done(&["man", "compare"]).contains("seeds"));
    assert_eq!(run(&["man", "nonsense"]).code, Some(2));
    assert!(done(&["compare", "--help"]).contains("Examples:"));
}

#[test]
fn the_pages_of_all_verbs_are_written_into_a_directory() {
    let dir = scratch("man").join("man1");
    done(&["man", "--output", dir.to_str().unwrap()]);
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verbs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let verb = name.trim_end_matches(".md");
        let is_general = ["README", "options"].contains(&verb);
        assert!(is_general || dir.join(format!("slackline-{verb}.1")).exists(), "{verb}");
    }
    let page = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(page("slackline-serve.1"), done(&["man", "serve"]));
    assert!(page("slackline.1").contains("slackline\\-serve(1)"));
    assert!(page("slackline-submission-set.1").contains("slackline submission set 17"));
    assert_eq!(run(&["man", "serve", "--output", "here"]).code, Some(2));
}

#[test]
fn flows_that_cannot_finish_are_a_no() {
    let crash = ["simulate", CONTRACT, "--policy", "fifo", "--crash", "node-0@5,node-1@5"];
    let ran = run(&crash);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("2 flows failed"), "{}", ran.err);
    let args = ["compare", CONTRACT, "--crash", "node-0@5", "--crash", "node-1@5"];
    assert_eq!(run(&args).code, Some(1));
    let document = json(&run(&[&args[..], &["--format", "json"]].concat()).out);
    let metrics = &document["policies"][0]["metrics"];
    assert_eq!((&metrics["failed"], &metrics["mean_response"]), (&2.into(), &Value::Null));
    let csv = run(&[&args[..], &["--format", "csv"]].concat()).out;
    assert!(csv.lines().next().is_some_and(|line| line.ends_with(",failed,best,refused")), "{csv}");
    let back = ["simulate", CONTRACT, "--policy", "fifo", "--crash", "node-0@5+1,node-1@5+1"];
    assert_eq!(run(&back).code, Some(0));
}

/// The best split of eighty slots, next to half and half and to the order of the document.
#[test]
fn tune_finds_the_best_split_and_order() {
    let alone = ["tune", PURDUE, "--total-slots", "80"];
    let best = json(&done(&[&alone[..], &["--format", "json"]].concat()));
    assert!(best.get("pareto").is_none() && !done(&alone).contains("Algorithm 5"), "the front is on request");
    let args = ["tune", PURDUE, "--total-slots", "80", "--front"];
    let table = done(&args);
    for words in
        ["79 splits", "half and half", "gain over half and half as submitted: makespan ", "Algorithm 5"]
    {
        assert!(table.contains(words), "{words:?} in\n{table}");
    }
    assert!(table.contains("order: J5, J6, "), "{table}");
    let document = json(&done(&[&args[..], &["--format", "json"]].concat()));
    let (best, default) = (&document["best"], &document["default"]);
    assert_eq!((&best["map_slots"], &best["reduce_slots"]), (&59.into(), &21.into()));
    assert_eq!((&default["map_slots"], &default["reduce_slots"]), (&40.into(), &40.into()));
    assert_eq!(best["order"].as_array().map(Vec::len), Some(30));
    let makespan = |choice: &Value| choice["makespan"].as_f64().expect("a number");
    assert!(makespan(best) < 0.75 * makespan(default));
    let front = document["pareto"].as_array().expect("a list");
    let total = |choice: &Value| choice["total_completion"].as_f64().expect("a number");
    assert_eq!(makespan(&front[0]), makespan(best));
    assert!(front.windows(2).all(|w| makespan(&w[0]) < makespan(&w[1]) && total(&w[0]) > total(&w[1])));
    assert_eq!(document["candidates"], 79);
    let csv = done(&[&args[..], &["--format", "csv"]].concat());
    assert_eq!(csv.lines().count(), 1 + 4 + front.len());
}

#[test]
fn tune_compares_the_proportional_rule_with_the_exact_answer() {
    let table = done(&["tune", PURDUE, "--machines", "20", "--slots", "4", "--proportional", "8"]);
    assert!(table.contains("the scaled split is worse than the best split: makespan +"), "{table}");
    assert!(table.contains("3 splits"), "{table}");
}

#[test]
fn tuned_schedules_pass_the_judge() {
    let file = scratch("tuned").join("best.json");
    for (mode, nodes) in
        [("wc", &["--total-slots", "80"][..]), ("strict", &["--machines", "20", "--slots", "4"])]
    {
        let args = ["tune", PURDUE, "--mode", mode, "--schedule", text(&file), "--format", "json"];
        let document = json(&done(&[&args[..], nodes].concat()));
        assert!(done(&["check", PURDUE, text(&file)]).starts_with("feasible"));
        let schedule = json(&fs::read_to_string(&file).unwrap());
        let makespan =
            schedule["flows"].as_array().unwrap().iter().map(|flow| flow["completion"].as_f64().unwrap());
        assert_eq!(document["best"]["makespan"].as_f64(), makespan.reduce(f64::max));
    }
}

#[test]
fn tune_finds_the_smallest_cluster_that_does() {
    let args = ["capacity", NIGHTLY, "--policy", "edf", "--until", "missed=0", "--machines"];
    let table = done(&[&args[..], &["1..50"]].concat());
    assert!(table.contains("9 machines are the fewest in 1..50 with missed equal to 0"), "{table}");
    assert!(table.contains("(8 machines do not, and "), "{table}");
    let listed = done(&[&args[..], &["10,6,9"]].concat());
    assert!(
        listed.contains("9 machines are the fewest in 3 values of 6..10 with missed equal to 0"),
        "{listed}"
    );
    let found = json(&done(&[&args[..], &["1..50", "--format", "json"]].concat()));
    assert_eq!((&found["found"], &found["monotone"]), (&json("9.0"), &json("true")));
    let meets = |machines: f64| {
        let tried = found["tried"].as_array().unwrap().iter();
        tried.filter(|tried| tried["value"] == machines).map(|tried| tried["meets"].as_bool().unwrap()).next()
    };
    assert_eq!([8.0, 9.0, 10.0].map(meets), [Some(false), Some(true), Some(true)]);
    let every = json(&done(&[&args[..], &["7..50", "--search", "every", "--format", "json"]].concat()));
    assert_eq!(every["tried"].as_array().map(Vec::len), Some(3));
    let one = done(&[&args[..], &["1..50", "--threads", "1", "--format", "json"]].concat());
    assert_eq!(json(&one), found, "threads change nothing");
    let none = run(&[&args[..], &["1..3"]].concat());
    assert_eq!(none.code, Some(1));
    assert!(
        none.out.contains("no number of machines in 1..3 gives missed equal to 0; assumed that larger"),
        "{}",
        none.out
    );
}

#[test]
fn several_conditions_percentages_and_prices() {
    let args = ["capacity", NIGHTLY, "--policy", "edf", "--machines", "1..50", "--until", "missed:50%"];
    let few = json(&done(&[&args[..], &["--format", "json"]].concat()))["found"].as_f64().unwrap();
    assert!(few < 9.0, "{few}");
    let both = ["--until", "max_tardiness:0", "--machine-hour", "0.5", "--format", "json"];
    let both = json(&done(&[&args[..], &both].concat()));
    assert!(both["found"].as_f64().unwrap() > few, "{both}");
    let dear =
        both["tried"].as_array().unwrap().iter().find(|tried| tried["value"] == both["found"]).unwrap();
    let (price, hours) = (dear["price"].as_f64().unwrap(), dear["machine_hours"].as_f64().unwrap());
    assert_eq!(price, 0.5 * hours);
    assert_eq!(dear["metrics"]["max_tardiness"], 0.0);
}

#[test]
fn settings_are_varied_and_make_a_curve() {
    let args = ["capacity", NIGHTLY, "--policy", "fair", "--over"];
    let csv = done(&[&args[..], &["slowstart=0.2..1:0.2", "--format", "csv"]].concat());
    let values: Vec<&str> = csv.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(values, ["slowstart", "0.2", "0.4", "0.6", "0.8", "1"]);
    assert_eq!(csv.lines().filter(|line| line.split(',').nth(2) == Some("true")).count(), 1, "one is best");
    let table = done(&[&args[..], &["heartbeat=0..30:15"]].concat());
    assert!(table.contains("of 3 values of 0..30 costs least"), "{table}");
    let ran = run(&[&args[..], &["map-slots=1..9", "--until", "missed:0", "--slots", "3"]].concat());
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains("--over: the machines have generic slots, so map-slots cannot be varied"),
        "{}",
        ran.err
    );
    let ran = run(&[&args[..], &["machines=1..9", "--machines", "3"]].concat());
    assert!(ran.code == Some(2) && ran.err.contains("expected one of them"), "{}", ran.err);
}

#[test]
fn figures_are_written_with_what_made_them() {
    let dir = scratch("figures");
    let dir = text(&dir);
    done(&["repro", "job-ordering", "fig5", "--output", dir, "--commit", "abc1234"]);
    done(&["repro", "job-ordering", "fig6", "--output", dir]);
    let made = fs::read_to_string(format!("{dir}/made.toml")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let of = |figure: &str, commit: &str| {
        let entry = |ending| {
            format!("[files.\"{figure}.{ending}\"]\nversion = \"{version}\"\n{commit}figure = \"{figure}\"\n")
        };
        format!("{}\n{}", entry("csv"), entry("svg"))
    };
    assert_eq!(made, format!("{}\n{}", of("fig5", "commit = \"abc1234\"\n"), of("fig6", "")));

    fs::write(format!("{dir}/made.toml"), "files = 3\n").unwrap();
    let ran = run(&["repro", "job-ordering", "fig5", "--output", dir]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("made.toml"), "{}", ran.err);
    let ran = run(&["repro", "job-ordering", "fig5", "--commit", "abc1234"]);
    assert_eq!(ran.code, Some(2), "a commit without files to note it for: {}", ran.out);
}

#[test]
fn workloads_on_which_a_policy_is_worst_are_written_down() {
    let dir = scratch("adversary");
    let dir = text(&dir);
    let args = ["repro", "--adversary", "fifo", "response", "--output", dir, "--seed", "3", "--budget", "80"];
    let printed = done(&args);
    assert!(printed.contains("worst-1.toml"), "{printed}");
    let summary = fs::read_to_string(format!("{dir}/summary.csv")).unwrap();
    let mut rows = csv::Reader::from_reader(summary.as_bytes());
    let first = rows.records().next().unwrap().unwrap();
    let number = |k: usize| first[k].parse::<f64>().unwrap();
    assert!(number(4) > number(5) && number(6) == number(4) / number(5), "{summary}");
    let simulated =
        done(&["simulate", &format!("{dir}/worst-1.toml"), "--policy", "fifo", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&simulated).unwrap();
    assert_eq!(document["cost"].as_f64(), Some(number(4)), "{simulated}");
    assert!(fs::read_to_string(format!("{dir}/made.toml")).unwrap().contains("worst-1.toml"));
    done(&args);
    assert_eq!(fs::read_to_string(format!("{dir}/summary.csv")).unwrap(), summary);

    let none = scratch("adversary-none");
    let none = text(&none);
    let printed =
        done(&["repro", "--adversary", "edf", "sla", "--against", "edf", "--output", none, "--budget", "8"]);
    assert_eq!(printed, "no workload found on which edf costs more than edf in 8 tries (sum sla)\n");
    assert!(!fs::exists(format!("{none}/worst-1.toml")).unwrap());
    assert_eq!(fs::read_to_string(format!("{none}/summary.csv")).unwrap().lines().count(), 1);

    let wrong: [(&[&str], &str); 4] = [
        (&["--adversary", "fifo", "lateness", "--output", dir], "has no ratios"),
        (&["--adversary", "fofi", "response", "--output", dir], "fofi"),
        (&["--adversary", "fifo", "response"], "--output"),
        (&["--against", "fair"], "--adversary"),
    ];
    for (args, said) in wrong {
        let ran = run(&[&["repro"], args].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

/// Rows of sizes are those of comparisons on each size. Deadlines are the same for all.
#[test]
fn compare_has_a_row_for_each_size_and_policy() {
    let csv = |more: &[&str]| {
        done(&[&["compare", NIGHTLY, "--policies", "fifo,edf", "--format", "csv"], more].concat())
    };
    let of = |machines: &str, csv: &str| -> Vec<String> {
        csv.lines().skip(1).map(|line| format!("{machines},{line}")).collect()
    };
    let swept = csv(&["--machines", "8,6"]);
    let rows: Vec<String> = swept.lines().skip(1).map(str::to_owned).collect();
    let [small, large] = ["6", "8"].map(|machines| of(machines, &csv(&["--machines", machines])));
    assert!(swept.starts_with("machines,policy,cost"), "{swept}");
    assert_eq!(rows, [small, large].concat());
    let due = ["--deadlines", "2", "--machines"];
    let swept = csv(&[&due[..], &["6,8"]].concat());
    let both = ["6", "8"].map(|machines| of(machines, &csv(&[&due[..], &[machines]].concat())));
    let rows: Vec<String> = swept.lines().skip(1).map(str::to_owned).collect();
    assert_eq!(rows, both.concat());
    let on_another = csv(&[&due[..], &["6,8", "--deadlines-on", "20"]].concat());
    assert_ne!(on_another, swept, "--deadlines-on changes the deadlines");
    let args = ["compare", NIGHTLY, "--policies", "fifo,edf", "--machines", "6,8"];
    let table = done(&args);
    assert!(
        table.contains("6 machines (") && table.contains("8 machines (") && !table.contains("lower bound"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    for refused in [&["--format", "json"][..], &["--by", "pool"], &["--schedules", "never"]] {
        let ran = run(&[&args[..], refused].concat());
        assert_eq!(ran.code, Some(2), "{refused:?}: {}", ran.err);
        assert!(ran.err.contains("found several numbers of machines with it, expected one"), "{}", ran.err);
    }
}

/// The end of the range of a search and the speed of the machines leave deadlines as they are.
#[test]
fn deadlines_do_not_move() {
    let dir = scratch("deadlines");
    let file = dir.join("day.swim");
    std::fs::write(&file, TRACE).unwrap();
    let smallest = |range: &str, more: &[&str]| {
        let asked = ["capacity", text(&file), "--from", "swim", "--slots", "2", "--deadlines", "3"];
        let condition = ["--until", "missed:0", "-p", "edf", "--machines", range];
        let out = done(&[&asked[..], &condition, more].concat());
        let (_, answer) = out.split_once("edf: ").expect("an answer");
        answer.split_once(" machine").expect("a size").0.to_owned()
    };
    assert_eq!(smallest("1..60", &[]), smallest("1..600", &[]));
    let on_few = ["--deadlines-on", "2"];
    assert_eq!(smallest("1..60", &on_few), smallest("1..600", &on_few));

    let columns = ["--columns", "missed,mean_response,makespan,mean_slowdown"];
    let recorded = |more: &[&str]| {
        let log = ["compare", "examples/hadoop-log", "-p", "recorded,fifo", "--deadlines", "3"];
        let out = done(&[&log[..], &columns, more].concat()).replace('*', " ");
        let row = out.lines().find(|line| line.starts_with("recorded ")).expect("a row");
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let own = recorded(&[]);
    assert_eq!(own, recorded(&["--speed", "0.77"]));
    assert_eq!(own, recorded(&["--machines", "9", "--slots", "2"]));
}

/// Each policy's place by cost, seed by seed.
#[test]
fn compare_ranks_policies_over_seeds() {
    let args = ["compare", NIGHTLY, "--policies", "fifo,edf,fair", "--jitter", "0.5", "--seeds", "3"];
    let csv = done(&[&args[..], &["--format", "csv"]].concat());
    let ranks: Vec<f64> = csv
        .lines()
        .filter_map(|line| line.split_once(",rank,3,")?.1.split(',').next()?.parse().ok())
        .collect();
    assert_eq!((ranks.len(), ranks.iter().sum::<f64>().round()), (3, 6.0), "{csv}");
    let table = done(&args);
    assert!(table.contains("rank") && table.contains("difference to fifo, seed by seed"), "{table}");
    let sizes = done(&[&args[..], &["--machines", "6,8"]].concat());
    assert_eq!(sizes.matches("difference to fifo, seed by seed").count(), 2, "{sizes}");
    assert!(sizes.contains("\n6 machines\n") && sizes.contains("\n8 machines\n"), "{sizes}");
}

#[test]
fn the_page_of_the_papers_keeps_what_is_there() {
    let dir = scratch("papers");
    let page = dir.join("index.html");
    let ran = run(&["repro", "job-ordering/fig5", "--report", text(&dir), "--quick"]);
    assert!(ran.err.contains("1 of 1: job-ordering/fig5"), "{}", ran.err);
    let first = fs::read_to_string(&page).unwrap();
    assert!(first.contains("<svg") && first.contains("better"), "{first}");
    let verdicts = fs::read_to_string(dir.join("verdicts.csv")).unwrap();
    assert_eq!(verdicts.lines().nth(1), Some("job-ordering,fig5,Fig. 5,1,better,2,2"));

    let ran = run(&["repro", "job-ordering/fig5", "--report", text(&dir), "--quick"]);
    assert!(ran.err.contains("1 of 1 figures exist and are kept"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&page).unwrap(), first);
    // An incomplete figure is made again.
    fs::write(dir.join("job-ordering/fig5.csv"), "x\n").unwrap();
    done(&["repro", "job-ordering", "fig5", "--report", text(&dir), "--quick"]);
    assert_eq!(fs::read_to_string(&page).unwrap(), first);

    for (args, expected) in [
        (&["repro", "job-ordering/fig99", "--report", "x"][..], "found figure \"fig99\""),
        (&["repro", "flexx/fig5a", "--report", "x"], "did you mean \"flex\""),
        (&["repro", "flex", "--quick"], "--report"),
    ] {
        let ran = run(args);
        assert!(ran.code == Some(2) && ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
}
