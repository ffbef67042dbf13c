//! Exports of schedules as timelines, tables and charts.

use std::fs;
use std::path::{Path, PathBuf};

use slackline_model::random::test_scale;

use super::chrome_trace::validate;
use super::{NIGHTLY, done, run, scratch, text};

/// Simulates, and returns the file of the schedule.
fn simulated(dir: &Path, name: &str, workload: &str, flags: &[&str]) -> PathBuf {
    let file = dir.join(name);
    done(&[&["simulate", workload, "--output", text(&file)], flags].concat());
    file
}

fn exported(workload: &str, schedule: &Path, flags: &[&str]) -> String {
    done(&[&["export", workload, text(schedule)], flags].concat())
}

/// A workload whose names have all characters that formats may misread.
const NAMES: &str = r#"
slackline = 1
[cluster]
machines = [{ name = "Maschine \"ü\" \\ 流", count = 2, slots = 2 }]
[[flows]]
id = "a \"quoted\" \\ flow, <b> & 流れ 'x'"
deadline = 30.0
[[flows.jobs]]
id = "one;\"two\""
map = { tasks = 5, seconds = 3.5 }
reduce = { tasks = 2, seconds = 4 }
"#;

#[test]
fn a_trace_for_perfetto_is_one_by_its_own_judge() {
    let dir = scratch("export-perfetto");
    let names = dir.join("names.toml");
    fs::write(&names, NAMES).unwrap();
    // Plain, with machines that leave with their tasks, with ApplicationMasters and start-ups, with difficult
    // names.
    let cases: [(&str, &[&str]); 4] = [
        (NIGHTLY, &["--policy", "edf"]),
        (NIGHTLY, &["--policy", "fair", "--crash", "node-2@600", "--crash", "node-5@1500"]),
        (NIGHTLY, &["--machines", "8", "--slots", "3", "--profile", "hadoop"]),
        (text(&names), &[]),
    ];
    for (workload, flags) in cases {
        let schedule = simulated(&dir, "schedule.json", workload, flags);
        let out = exported(workload, &schedule, &["--format", "perfetto"]);
        let seen = validate(&out).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&fs::read(&schedule).unwrap()).unwrap();
        let rows = document["tasks"].as_array().unwrap();
        let count = |row: &serde_json::Value| row["count"].as_u64().unwrap_or(1) as usize;
        let of = |phase: &str| rows.iter().filter(|row| row["phase"] == phase).map(count).sum::<usize>();
        for phase in ["map", "reduce"] {
            assert_eq!(seen.complete.get(phase).copied().unwrap_or(0), of(phase), "{workload} {flags:?}");
        }
        let ams = document["ams"].as_array().map_or(0, Vec::len);
        assert_eq!(seen.complete.get("am").copied().unwrap_or(0), ams);
        assert_eq!(seen.complete.contains_key("startup"), flags.contains(&"hadoop"));
        assert_eq!(seen.spans, document["flows"].as_array().unwrap().len());
        let crashed = flags.contains(&"--crash");
        assert_eq!(out.contains(r#""cat":"map,killed""#), crashed, "{workload} {flags:?}");
        // A second export gives the same bytes.
        assert!(out == exported(workload, &schedule, &["--format", "perfetto"]), "{workload}");
    }
    let schedule = simulated(&dir, "names.json", text(&names), &[]);
    let seen = validate(&exported(text(&names), &schedule, &["--format", "perfetto"])).unwrap();
    assert!(seen.processes.values().any(|name| name.starts_with("Maschine \"ü\" \\ 流")), "{seen:?}");
}

/// `SLACKLINE_SCALE=k` has k times as many tasks; 100 is 400,000.
#[test]
fn a_large_trace_is_one_too() {
    let scale = test_scale().ceil() as u64;
    let dir = scratch("export-large");
    let workload = dir.join("day.jsonl");
    let maps = format!("maps={}", 3_800 * scale);
    let jobs = format!("jobs={}", 240 * scale);
    done(&["generate", "facebook-day", "--set", &maps, "--set", &jobs, "--output", text(&workload)]);
    let schedule = simulated(&dir, "fifo.jsonl", text(&workload), &["--policy", "fifo", "--jitter", "0.2"]);
    let seen = validate(&exported(text(&workload), &schedule, &["--format", "perfetto"])).unwrap();
    // With a jitter each task is a separate slice.
    let slices = ["map", "reduce"].iter().filter_map(|phase| seen.complete.get(*phase)).sum::<usize>();
    assert!(slices as u64 >= 3_800 * scale, "{slices}");
    assert_eq!(seen.spans as u64, 240 * scale);
}

/// A line without its separator from the next one, and without the number of a flow: that of a recurring flow
/// differs if flows are read one by one.
fn without_id(line: &str) -> String {
    let line = line.trim_end_matches(',');
    let Some((before, after)) = line.split_once("\"id\":\"") else { return line.to_owned() };
    format!("{before}{}", after.split_once('"').map_or("", |(_, rest)| rest))
}

#[test]
fn two_files_in_lines_give_what_documents_give() {
    let dir = scratch("export-lines");
    let lines = dir.join("night.jsonl.zst");
    done(&["import", NIGHTLY, "--output", text(&lines)]);
    let by_line = simulated(&dir, "edf.jsonl", text(&lines), &["--policy", "edf"]);
    let whole = simulated(&dir, "edf.json", text(&lines), &["--policy", "edf"]);
    let sorted = |schedule: &Path, format: &str| {
        let out = exported(text(&lines), schedule, &["--format", format]);
        let mut lines: Vec<String> = out.lines().map(without_id).collect();
        lines.sort_unstable();
        lines
    };
    for format in ["perfetto", "csv"] {
        let (streamed, of_whole) = (sorted(&by_line, format), sorted(&whole, format));
        let differs = streamed.iter().zip(&of_whole).find(|(one, other)| one != other);
        assert!(differs.is_none() && streamed.len() == of_whole.len(), "{format}: {differs:?}");
    }
    // The stacked chart does not depend on the order of rows.
    let chart = |schedule: &Path| exported(text(&lines), schedule, &["--format", "svg"]);
    assert!(chart(&by_line) == chart(&whole), "the same schedule has the same chart");
    // Another workload of the same names is refused, and the existing file stays.
    let other = dir.join("other.jsonl");
    fs::write(&other, done(&["import", NIGHTLY, "--format", "jsonl"]) + "\n").unwrap();
    let file = dir.join("kept.json");
    fs::write(&file, "before").unwrap();
    let args = ["export", text(&other), text(&by_line), "--format", "perfetto", "--output", text(&file)];
    let ran = run(&args);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("made for another workload"), "{}", ran.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
    assert_eq!(
        fs::read_dir(&dir).unwrap().filter(|f| text(&f.as_ref().unwrap().path()).contains(".part")).count(),
        0
    );
}

#[test]
fn rows_of_jobs_say_what_the_schedule_says() {
    let dir = scratch("export-csv");
    let schedule = simulated(&dir, "edf.json", NIGHTLY, &["--policy", "edf"]);
    let out = exported(NIGHTLY, &schedule, &["--format", "csv"]);
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    // The columns of evalys, in its order.
    let shared = "job_id workload_name submission_time requested_number_of_resources requested_time success starting_time \
                  execution_time finish_time waiting_time turnaround_time stretch allocated_resources";
    assert_eq!(names[..13].join(" "), shared);
    let document: serde_json::Value = serde_json::from_slice(&fs::read(&schedule).unwrap()).unwrap();
    let rows = document["tasks"].as_array().unwrap();
    let mut jobs = 0;
    for record in reader.records() {
        let record = record.unwrap();
        let field = |name: &str| record[names.iter().position(|it| it == name).unwrap()].to_owned();
        let number = |name: &str| field(name).parse::<f64>().unwrap();
        let own: Vec<&serde_json::Value> = rows
            .iter()
            .filter(|row| row["flow"] == *field("workload_name") && row["job"] == *field("job_id"))
            .collect();
        let least = own.iter().map(|row| row["start"].as_f64().unwrap()).fold(f64::INFINITY, f64::min);
        let most = own.iter().map(|row| row["end"].as_f64().unwrap()).fold(0.0, f64::max);
        assert_eq!((number("starting_time"), number("finish_time")), (least, most));
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b} {record:?}");
        near(number("execution_time"), most - least);
        near(number("waiting_time"), least - number("submission_time"));
        near(number("turnaround_time"), most - number("submission_time"));
        near(number("stretch"), number("turnaround_time") / number("execution_time"));
        assert_eq!(field("success"), "1");
        assert!(number("submission_time") >= number("flow_release"));
        let tasks: u64 = own.iter().map(|row| row["count"].as_u64().unwrap_or(1)).sum();
        assert_eq!(field("tasks"), tasks.to_string());
        jobs += 1;
    }
    assert!(jobs > 3);
}

#[test]
fn every_chart_is_drawn_and_names_are_escaped() {
    let dir = scratch("export-charts");
    let names = dir.join("names.toml");
    fs::write(&names, NAMES).unwrap();
    let schedule = simulated(&dir, "names.json", text(&names), &[]);
    for chart in ["flows", "gantt", "utilisation", "response", "wait", "slowdown"] {
        let svg =
            exported(text(&names), &schedule, &["--format", "svg", "--chart", chart, "--size", "800x500"]);
        assert!(svg.starts_with("<svg width=\"800\" height=\"500\""), "{}", &svg[..200]);
        let opened = svg.matches("<text").count();
        assert!(opened > 3 && opened == svg.matches("</text>").count(), "{chart}");
        assert!(!svg.contains("<b>"), "{chart}");
        if ["flows", "gantt"].contains(&chart) {
            assert!(svg.contains("&lt;b&gt; &amp;"), "{chart}");
        }
    }
}

#[test]
fn unsupported_exports_are_refused() {
    let dir = scratch("export-refused");
    let schedule = simulated(&dir, "edf.json", NIGHTLY, &["--policy", "edf"]);
    let plan = dir.join("plan.json");
    done(&[
        "plan",
        "examples/purdue-30.toml",
        "--slots",
        "4",
        "--policy",
        "flowflex",
        "--output",
        text(&plan),
    ]);
    let (schedule, plan, missing) = (text(&schedule), text(&plan), text(&dir).to_owned() + "/none.json");
    let file = dir.join("out.svg");
    for (args, expected) in [
        (&[NIGHTLY, "--format", "perfetto"][..], "SCHEDULE"),
        (&[NIGHTLY, schedule, "--format", "synth"], "simulate it with --policy yarn-capacity"),
        (&[NIGHTLY, schedule, "--format", "paje"], "export --format perfetto or csv"),
        (&[NIGHTLY, schedule, "--output", "x.png"], "export --format svg and convert it"),
        (&[NIGHTLY, schedule, "--format", "csv", "--chart", "gantt"], "--chart: found --format csv"),
        (&[NIGHTLY, schedule, "--format", "svg", "--chart", "pie"], "pie"),
        (&[NIGHTLY, schedule, "--format", "svg", "--size", "1x1"], "expected WIDTHxHEIGHT"),
        (&[NIGHTLY, schedule, "--output", "x.html"], "ends in .html, expected"),
        (&[NIGHTLY, &missing, "--format", "csv"], "cannot be read"),
        (&["-", "-", "--format", "csv"], "found - twice"),
        (&["examples/morning.toml", schedule, "--format", "csv"], "made for another workload"),
        (&["examples/purdue-30.toml", plan, "--format", "csv"], "found a plan of slots"),
    ] {
        let ran = run(&[&["export"], args, &[]].concat());
        assert!(ran.code == Some(2) && ran.err.contains(expected), "{args:?}: {:?} {}", ran.code, ran.err);
        assert!(ran.out.is_empty(), "{args:?}");
    }
    assert!(!file.exists());
}
