//! Figures over several samples: days of a workload, and files.

use std::fs;

use serde_json::Value;

use crate::reports::data;
use crate::{done, run, scratch, text};

/// A night of a workload: one long flow, then short ones a minute apart.
fn night(day: u32, short: u32) -> String {
    let at = |minute: u32| format!("2026-03-{day:02}T22:{minute:02}");
    let flow = |id: String, at: String, seconds: u32| {
        format!(
            "[[flows]]\nid = \"{id}\"\nrelease = \"{at}\"\n\
             jobs = [{{ id = \"j\", map = {{ tasks = 4, seconds = {seconds} }} }}]\n"
        )
    };
    let long = flow(format!("long-{day}"), at(0), 300);
    (1..=short).map(|k| flow(format!("short-{day}-{k}"), at(k), 10)).fold(long, |all, one| all + &one)
}

fn head(day: u32) -> String {
    format!(
        "slackline = 1\nstart = \"2026-03-{day:02}T22:00[UTC]\"\n\
         cluster.machines = [{{ name = \"node\", count = 2, slots = 1 }}]\n"
    )
}

/// A number of a document with several samples.
fn mean(document: &Value, policy: usize, metric: &str) -> f64 {
    document["policies"][policy]["metrics"][metric]["mean"].as_f64().unwrap()
}

#[test]
fn days_of_a_week_are_averaged_over_and_paired() {
    let dir = scratch("samples_days");
    let days = [(2, 3), (3, 5), (5, 2)];
    let week = dir.join("week.toml");
    let nights: String = days.iter().map(|&(day, short)| night(day, short)).collect();
    fs::write(&week, head(2) + &nights).unwrap();
    let files: Vec<String> = days
        .iter()
        .map(|&(day, short)| {
            let file = dir.join(format!("day-{day}.toml"));
            fs::write(&file, head(day) + &night(day, short)).unwrap();
            text(&file).to_owned()
        })
        .collect();
    let policies = ["-p", "fifo,fair,flex"];
    let table = done(&[&["compare", text(&week), "--each", "day"][..], &policies].concat());
    assert!(
        table.starts_with(
            "week.toml: 13 flows on 2 machines (2 generic slots)\ncost: sum of response times, s; 3 days from"
        ),
        "{table}"
    );
    assert!(
        table.contains("each on an empty cluster") && table.contains("difference to fifo, day by day"),
        "{table}"
    );
    assert!(table.contains("rank"), "{table}");
    let json = ["--format", "json"];
    let document = |args: &[&str]| -> Value { serde_json::from_str(&done(args)).unwrap() };
    let cut = document(&[&["compare", text(&week), "--each", "day"][..], &policies, &json].concat());
    let names: Vec<&str> =
        cut["samples"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, ["2026-03-02", "2026-03-03", "2026-03-05"]);
    assert_eq!(cut["workload"]["options"]["each"], "day");
    // The same days as separate files.
    let names: Vec<&str> = files.iter().map(String::as_str).collect();
    let apart = document(&[&["compare"][..], &names, &policies, &json].concat());
    assert_eq!(cut["policies"], apart["policies"]);
    assert_eq!(apart["samples"][2], "day-5.toml");
    let alone = names.iter().map(|file| document(&[&["compare", file][..], &policies, &json].concat()));
    let alone: Vec<f64> =
        alone.map(|day| day["policies"][2]["metrics"]["mean_response"].as_f64().unwrap()).collect();
    let expected = alone.iter().sum::<f64>() / 3.0;
    assert!((mean(&cut, 2, "mean_response") - expected).abs() < 1e-9);
    let csv = done(&[&["compare"][..], &names, &policies, &["--format", "csv"]].concat());
    assert!(
        csv.starts_with(
            "policy,metric,files,mean,sd,ci95,least,most,difference,difference_ci95,best,refused\n"
        ),
        "{csv}"
    );
    let table = done(&[&["compare"][..], &names, &policies].concat());
    assert!(
        table.starts_with("3 files from day-2.toml to day-5.toml: 13 flows")
            && table.contains("file by file"),
        "{table}"
    );
}

#[test]
fn seeds_and_days_and_sizes_go_together() {
    let dir = scratch("samples_seeds");
    let week = dir.join("week.toml");
    fs::write(&week, head(2) + &night(2, 2) + &night(3, 4)).unwrap();
    let both = ["--each", "1d", "--seeds", "2", "--jitter", "0.2", "-p", "fifo,fair"];
    let table = done(&[&["compare", text(&week)][..], &both].concat());
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("2 pieces from 2026-03-02 22:00:00 to 2026-03-03 22:00:00")
            && words.contains("with the mean of 2 seeds: means and ranges"),
        "{table}"
    );
    assert!(table.contains("piece by piece") && table.contains("week.toml: 8 flows"), "{table}");
    let sizes = ["--each", "day", "--machines", "2,3", "-p", "fifo,fair"];
    let table = done(&[&["compare", text(&week)][..], &sizes].concat());
    assert!(table.contains("on 2 machines") && table.contains("\n3 machines\n"), "{table}");
    let csv = done(&[&["compare", text(&week), "--format", "csv"][..], &sizes].concat());
    assert!(csv.starts_with("machines,policy,metric,days,mean,"), "{csv}");
    let page = dir.join("page.html");
    done(&["compare", text(&week), "--each", "day", "-p", "fifo,fair", "--report", text(&page)]);
    let page = data(&page);
    assert!(page.contains("The charts and the table of flows show the first day, 2026-03-02."));
    assert!(page.contains("All 2 days: means and ranges"));
}

#[test]
fn logs_that_cannot_be_cut_are_refused() {
    let dir = scratch("samples_refused");
    let week = dir.join("week.toml");
    fs::write(&week, head(2) + &night(2, 2)).unwrap();
    let refused = |args: &[&str], expected: &str| {
        let ran = run(&[&["compare", text(&week), "-p", "fifo"][..], args].concat());
        assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{}", ran.err);
    };
    refused(&["--each", "fortnight"], "expected day, week, or a duration");
    refused(&["--each", "day", "--schedules", text(&dir)], "--schedules: found --each with it");
    refused(&[text(&week), "--schedules", text(&dir)], "found several workloads with it");
    fs::write(&week, head(2)).unwrap();
    refused(&["--each", "day"], "found no flows in week.toml");
    fs::write(&week, head(2) + &night(2, 2).replace("tasks = 4", "tasks = 0")).unwrap();
    refused(&["--each", "day"], "week.toml:7:");
}

#[test]
fn queues_are_sized_by_what_they_give() {
    let log = "examples/hadoop-log";
    let queues = "yarn-capacity:file=examples/hadoop-log/capacity-scheduler.xml";
    let tune = ["capacity", log, "-p", queues, "--format", "csv", "--over"];
    let csv = done(&[&tune[..], &["capacity:prod=50..90:20"]].concat());
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert!(csv.starts_with("capacity,meets,found,outcome,cost,"), "{csv}");
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["50", "70", "90"]);
    // The file has the value 70.
    let plain: Value =
        serde_json::from_str(&done(&["compare", log, "-p", queues, "--format", "json"])).unwrap();
    assert_eq!(rows[1][4].parse::<f64>().ok(), plain["policies"][0]["objective"]["cost"].as_f64());
    assert!(rows[0][4] != rows[2][4], "{csv}");
    let table = done(&["capacity", log, "-p", queues, "--over", "capacity:root.prod=50..90:20"]);
    assert!(table.contains("capacity:root.prod ") && table.contains("costs least"), "{table}");
    for (policy, over, expected) in [
        ("edf", "capacity:prod=50..90:20", "found capacity:prod = "),
        (queues, "capacity:prd=50..90:20", "did you mean"),
        (queues, "capacity:root=50..90:20", "found the root queue, which always has the whole cluster"),
        (queues, "capacity:prod=50..190", "expected a percentage from 0 to 100"),
    ] {
        let ran = run(&["capacity", log, "-p", policy, "--over", over]);
        assert_eq!(ran.code, Some(2), "{over}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{over}: {}", ran.err);
    }
}
