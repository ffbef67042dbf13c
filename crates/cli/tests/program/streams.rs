//! Workloads in lines are simulated while they are read, and errors have the line.

use std::fs;

use crate::{NIGHTLY, done, run, scratch, text};

#[test]
fn a_chain_of_lines_from_a_generator_to_a_check() {
    let dir = scratch("streams_chain");
    let file = |name: &str| text(&dir.join(name)).to_owned();
    let (day, again, schedule) = (file("day.jsonl.zst"), file("again.jsonl.gz"), file("edf.jsonl.zst"));
    let small = ["--set", "jobs=200", "--set", "maps=5000", "--set", "machines=20"];
    done(&[&["generate", "facebook-day"], &small[..], &["--output", &day]].concat());
    done(&["import", &day, "--output", &again]);
    for workload in [&day, &again] {
        let result = run(&["simulate", workload, "-p", "edf", "--deadlines", "3", "-o", &schedule]);
        assert_eq!(result.code, Some(0), "{}", result.err);
        assert!(result.err.contains("200 flows, 200 jobs"), "{}", result.err);
        assert!(result.err.contains("no lower bound"), "{}", result.err);
        let checked = done(&["check", workload, &schedule]);
        assert!(checked.starts_with("feasible: sum of tardiness under edf, cost "), "{checked}");
    }
    let other = run(&["check", &day, &schedule]);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("made for another workload"), "{}", other.err);
}

#[test]
fn a_stream_gives_the_figures_of_the_whole() {
    let dir = scratch("streams_figures");
    let (trace, lines, rows) = (dir.join("day.tsv"), dir.join("w.jsonl"), dir.join("rows.csv"));
    let row = |k: u64| format!("job{k}\t{}\t3\t{}\t{}\t7\n", 3 * k, k * 90_000_000, k % 3 * 600_000_000);
    fs::write(&trace, (1..40).map(row).collect::<String>()).unwrap();
    let machines = ["--machines", "4", "--slots", "2"];
    done(&[&["import", text(&trace), "-o", text(&lines)], &machines[..]].concat());
    let of_lines = done(&["simulate", text(&lines), "-p", "fair"]);
    let of_trace = done(&[&["simulate", text(&trace), "-p", "fair", "--stream"], &machines[..]].concat());
    // The trace has no task times, so they are drawn; the document has them.
    let label = "one draw, which may be chance (several --seeds give intervals)\n";
    assert!(of_trace.ends_with(label) && !of_lines.contains(label), "{of_trace}");
    let figures = |out: &str| out.replace(label, "").lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(figures(&of_lines), figures(&of_trace));
    let seeds = run(&[&["simulate", text(&trace), "--stream", "--seeds", "5"], &machines[..]].concat());
    assert!(seeds.code == Some(2) && seeds.err.contains("found several --seeds"), "{}", seeds.err);
    assert!(of_lines.contains("response") && of_lines.contains("makespan"), "{of_lines}");
    done(&["simulate", text(&lines), "-p", "fair", "-o", text(&rows)]);
    let table = fs::read_to_string(&rows).unwrap();
    assert!(table.starts_with("flow,release,start,completion"), "{table}");
    // A policy that needs the whole workload reads it as a whole.
    let json = done(&["simulate", text(&lines), "-p", "fair", "--format", "json"]);
    assert!(json.contains("\"lower_bound\""), "{json}");
    done(&["simulate", text(&lines), "-p", "fair", "--slowstart", "0.5"]);
}

#[test]
fn the_objective_of_a_stream_says_that_weights_count() {
    let dir = scratch("streams_weights");
    let (whole, lines, schedule) = (dir.join("w.json"), dir.join("w.jsonl"), dir.join("s.jsonl"));
    for file in [&whole, &lines] {
        done(&["import", NIGHTLY, "-o", text(file)]);
        let result = run(&["simulate", text(file), "-p", "edf", "-o", text(&schedule)]);
        assert!(result.err.contains("edf: weighted sum of response times "), "{}", result.err);
        let checked = done(&["check", text(file), text(&schedule)]);
        assert!(checked.starts_with("feasible: weighted sum of response times under edf"), "{checked}");
    }
}

#[test]
fn bad_streams_end_with_exit_code_2_and_leave_nothing() {
    let dir = scratch("streams_bad");
    let (bad, out) = (dir.join("bad.jsonl"), dir.join("out.jsonl"));
    let head = r#"{"slackline": 1, "cluster": {"machines": [{"name": "m", "slots": 2}]}}"#;
    let flow = |id: &str, release: u32| {
        format!(
            r#"{{"id": "{id}", "release": {release}, "jobs": [{{"id": "j", "map": {{"tasks": 1, "seconds": 1}}}}]}}"#
        )
    };
    let (a, b) = (flow("a", 9), flow("b", 5));
    for (content, expected) in [
        (format!("{head}\n{a}\n{b}\n"), "bad.jsonl:3:24: release: found a release at 5 s after one at 9 s"),
        (format!("{head}\n{a}\n{{\"id\n{a}\n"), "bad.jsonl:3:"),
        (format!("{a}\n"), "bad.jsonl:1:1: found no `slackline` in this line"),
        (head.replace("1,", "2,"), "found slackline = 2, expected version 1"),
        (String::new(), "found nothing, expected a workload in lines"),
    ] {
        fs::write(&bad, content).unwrap();
        let ran = run(&["simulate", text(&bad), "-p", "fifo", "-o", text(&out)]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(expected), "{}\n{expected}", ran.err);
        assert!(!out.exists());
        let whole = run(&["bound", text(&bad)]);
        assert_eq!(whole.code, Some(2), "{}", whole.err);
        assert!(whole.err.contains(expected), "{}\n{expected}", whole.err);
    }
    for (args, expected) in [
        (&["simulate", NIGHTLY, "-p", "fifo", "--stream"][..], "found a workload in the format toml"),
        (&["simulate", NIGHTLY, "-p", "fifo", "--stream", "--format", "json"], "--stream: found JSON"),
        (&["simulate", NIGHTLY, "-p", "fifo", "--stream", "--all"], "--stream: found --all"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains(expected), "{}\n{expected}", ran.err);
    }
}
