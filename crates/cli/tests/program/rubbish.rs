//! Wrong use and wrong input: exit code 2 and a message that names the place, never a panic.

use std::fs;

use crate::{CONTRACT, NIGHTLY, PURDUE, run, run_with, scratch, text};

/// Runs every verb that reads a workload on a file that is not one.
fn refused(name: &str, content: &[u8], expected: &str) {
    let dir = scratch(&format!("rubbish_{}", name.replace('.', "_")));
    let file = dir.join(name);
    fs::write(&file, content).unwrap();
    let cluster = ["--machines", "2", "--slots", "2"];
    for verb in [&["simulate", "--policy", "fifo"][..], &["compare"], &["bound"], &["import"]] {
        let ran = run(&[verb, &[text(&file)], &cluster[..]].concat());
        assert_eq!(ran.code, Some(2), "{verb:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        let place = format!("{name}{expected}");
        assert!(ran.err.contains(&place), "{verb:?}: expected {place:?} in {:.500}", ran.err);
        assert!(ran.err.len() < 4000, "{} bytes of message", ran.err.len());
        assert_eq!(ran.out, "");
    }
}

#[test]
fn documents_that_are_none_name_the_line() {
    refused("truncated.json", b"{\"slackline\": 1,\n \"flows\": [{\"id\": \"a\"", ":2:");
    refused("unknown.toml", b"slackline = 1\n\n[[flows]]\nid = \"a\"\ncolour = 3\njobs = []\n", ":5:");
    refused("version.yaml", b"slackline: 2\nflows: []\n", ":1:");
    refused("empty.toml", b"", ":1:1: missing field `slackline`");
    refused("binary.toml", &[0xff, 0xfe, 0x00, 0x01], ":1:1");
}

#[test]
fn everything_that_is_wrong_with_a_model_has_its_line() {
    let cycle = "slackline = 1\n[[flows]]\nid = \"a\"\n[[flows.jobs]]\nid = \"x\"\nafter = [\"y\"]\nmap = { tasks = 1, seconds = 1.0 }\n\
                 [[flows.jobs]]\nid = \"y\"\nafter = [\"x\"]\nmap = { tasks = 1, seconds = 1.0 }\n";
    refused("cycle.toml", cycle.as_bytes(), ":6:9: flows[0].jobs[0].after: found a dependency cycle");
    let two = "slackline = 1\n[[flows]]\nid = \"a\"\nweight = -1.0\njobs = [{ id = \"x\", map = { tasks = 0, seconds = 1.0 } }]\n";
    refused("two.toml", two.as_bytes(), ":4:");
    refused("two.toml", two.as_bytes(), ":5:");
}

#[test]
fn traces_that_are_none_name_the_row() {
    refused("short.tsv", b"job0\t1\t1\t5\t5\t5\njob1\t2\n", ":2:");
    let noise: Vec<u8> = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    refused("noise.tsv", &noise, ":1:2: found byte 0x9e");
    refused("words.tsv", b"job0\tone\t1\t5\t5\t5\n", ":1:");
}

#[test]
fn ten_megabytes_of_one_line_are_refused_in_few_words() {
    let line = vec![b'x'; 10 << 20];
    for (name, expected) in [
        ("line.tsv", ":1:1: found a row of 1 tab-separated columns"),
        ("line.toml", ":1:10485761: key with no value"),
        ("line.json", ":1:1: expected value"),
        ("line.txt", ": found no known file name and no known content"),
    ] {
        refused(name, &line, expected);
    }
}

#[test]
fn files_that_cannot_be_read_or_written() {
    let dir = scratch("rubbish_files");
    let missing = run(&["compare", "nowhere.toml"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.starts_with("error: nowhere.toml: cannot be read"), "{}", missing.err);
    assert_eq!(run(&["compare", text(&dir)]).code, Some(2));
    let ran = run(&["simulate", CONTRACT, "--policy", "fifo", "--output", text(&dir)]);
    assert!(ran.code == Some(2) && ran.err.contains("cannot be written"), "{}", ran.err);
    let nowhere = dir.join("no/such/file.json");
    for verb in [
        &["simulate", "nowhere.toml", "--policy", "fifo", "--output"][..],
        &["compare", "nowhere.toml", "-o"],
        &["plan", "nowhere.toml", "-o"],
        &["bound", "nowhere.toml", "-o"],
        &["import", "nowhere.toml", "-o"],
        &["run", "nowhere.toml", "-o"],
        &["generate", "purdue", "-o"],
        &["tune", "nowhere.toml", "--schedule"],
    ] {
        let ran = run(&[verb, &[text(&nowhere)]].concat());
        assert_eq!(ran.code, Some(2), "{verb:?}: {}", ran.err);
        let expected = "no/such/file.json, expected a file in an existing directory";
        assert!(ran.err.contains(expected), "before anything is read: {verb:?}: {}", ran.err);
    }
    fs::write(dir.join("file"), "").unwrap();
    let ran = run(&["compare", CONTRACT, "--schedules", text(&dir.join("file"))]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert_eq!(run_with(&["bound", "-"], b"").code, Some(2));
}

#[test]
fn misspelt_words_are_answered_with_the_valid_ones() {
    for (args, expected) in [
        (vec!["simulat"], "simulate"),
        (vec!["simulate", NIGHTLY, "--policy", "fiffo"], "one of fifo, fair, edf"),
        (vec!["simulate", NIGHTLY, "--policy", "fifo:bye=flow"], "did you mean \"by\"?"),
        (vec!["simulate", NIGHTLY, "--policy", "fifo:by=user"], "expected one of job, flow"),
        (vec!["compare", NIGHTLY, "--policies", "fifo,edff"], "one of fifo, fair, edf"),
        (vec!["compare", NIGHTLY, "--format", "tabel"], "table"),
        (vec!["compare", NIGHTLY, "--metric", "responce"], "response"),
        (vec!["compare", NIGHTLY, "--knowledge", "exactly"], "mean, exact, learned"),
        (vec!["compare", NIGHTLY, "--history", "h.json"], "expected --knowledge learned"),
        (vec!["compare", NIGHTLY, "--knowledge", "learned", "--noise", "0.5"], "expected 0"),
        (vec!["compare", NIGHTLY, "--slowstart", "2"], "a number from 0 to 1"),
        (vec!["compare", NIGHTLY, "--crash", "node-0"], "MACHINE@T"),
        (vec!["compare", NIGHTLY, "--crash", "knot-0@5"], "node-0 … node-7"),
        (vec!["compare", NIGHTLY, "--crash-rate", "50"], "--repair"),
        (vec!["compare", NIGHTLY, "--from", "swim:split=5 miles"], "a size such as"),
        (vec!["compare", NIGHTLY, "--map-slots", "2"], "--reduce-slots"),
        (vec!["compare", NIGHTLY, "--deadlines", "NaN"], "a number from 0"),
        (vec!["compare", NIGHTLY, "--deadlines", "1e9", "--speed", "1e-6"], "found a deadline of"),
        (vec!["compare", NIGHTLY, "--heartbeat", "1e9"], "30 days"),
        (vec!["compare", NIGHTLY, "--metric", "sla"], "steps"),
        (vec!["compare", NIGHTLY, "--slots", "0"], "expected a whole number from 1"),
        (
            vec!["compare", NIGHTLY, "--machines", "4000000000", "--slots", "4000000000"],
            "cluster.machines: found more than",
        ),
        (vec!["compare", NIGHTLY, "--machines", "10..200"], "found 10..200, expected one number"),
        (vec!["tune", NIGHTLY, "--machines", "5..2"], "a range from small to large"),
        (vec!["tune", NIGHTLY, "--machines", "2..5"], "found 2..5, expected one number"),
        (vec!["tune", NIGHTLY], "found 4 jobs, expected one"),
        (vec!["tune", CONTRACT, "--total-slots", "1"], "two slots each"),
        (vec!["tune", CONTRACT, "--total-slots", "4000000000"], "cluster.machines: found more than"),
        (vec!["tune", CONTRACT, "--heartbeat", "3"], "`slackline capacity` has --heartbeat"),
        (vec!["tune", CONTRACT, "--until", "missed:0"], "`slackline capacity` has --until"),
        (vec!["capacity", CONTRACT, "--front"], "`slackline tune` has --front"),
        (vec!["cancel", "3"], "use `slackline submission cancel`"),
        (vec!["tune", CONTRACT, "--deadlines", "2"], "--deadlines has no effect on splits"),
        (vec!["tune", CONTRACT, "--weights", "ignore"], "--weights has no effect on splits"),
        (vec!["tune", CONTRACT, "--proportional", "1"], "two slots each"),
        (vec!["capacity", CONTRACT, "--until", "missed=0"], "--policy"),
        (vec!["capacity", CONTRACT, "--until", "mised=0", "--policy", "edf"], "one of makespan, "),
        (vec!["capacity", CONTRACT, "--until", "missed=0", "--policy", "edf"], "--machines A..B"),
        (vec!["tune", PURDUE, "--method", "ex-mk-sf-jr"], "found 30 jobs, expected at most 9"),
        (vec!["generate", "facebook"], "facebook-day"),
        (vec!["generate", "purdue", "--set", "job=3"], "jobs"),
        (vec!["generate", "purdue", "--set", "jobs"], "KEY=VALUE"),
    ] {
        let ran = run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(expected), "{args:?}: expected {expected:?} in {}", ran.err);
    }
}

#[test]
fn work_for_longer_than_time_is_refused() {
    let age = "slackline = 1\n[cluster]\nmachines = [{ name = \"n\", slots = 1, speed = 0.000001 }]\n[[flows]]\nid = \"a\"\n\
               jobs = [{ id = \"x\", map = { tasks = 3, seconds = 90000000000.0 } }]\n";
    for verb in [&["simulate", "-", "--policy", "fifo"][..], &["compare", "-"]] {
        let ran = run_with(verb, age.as_bytes());
        assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
        assert!(ran.err.contains("in a simulation"), "{}", ran.err);
    }
}

/// Invalid workflow files of WOHA and Oozie: exit code 2, and the line.
#[test]
fn bad_workflow_files_name_the_line() {
    let job = |name: &str, input: &str, output: &str| {
        format!(
            "<job name=\"{name}\">\n<command>x</command>\n<input>{input}</input>\n<output>{output}</output>\n\
             <maps tasks=\"1\" seconds=\"1\"/>\n</job>\n"
        )
    };
    let woha = |head: &str, jobs: &str| format!("<workflow {head}>\n{jobs}</workflow>\n");
    let good =
        woha("name=\"w\" deadline=\"9\"", &("<dataset path=\"/in\"/>\n".to_owned() + &job("a", "/in", "/a")));
    assert_eq!(run_with(&["import", "-", "--from", "woha"], good.as_bytes()).code, Some(0));
    let cycle = woha("name=\"w\" deadline=\"9\"", &(job("a", "/b", "/a") + &job("b", "/a", "/b")));
    let oozie = |nodes: &str| {
        format!(
            "<workflow-app name=\"w\" xmlns=\"uri:oozie:workflow:0.5\">\n<start to=\"a\"/>\n{nodes}\n<end name=\"end\"/>\n</workflow-app>\n"
        )
    };
    let action = |name: &str, ok: &str| {
        format!("<action name=\"{name}\"><pig/>\n<ok to=\"{ok}\"/><error to=\"end\"/></action>\n")
    };
    let dangling = oozie(&action("a", "nowhere"));
    let unpaired = oozie(
        &("<fork name=\"a\">\n<path start=\"b\"/><path start=\"c\"/></fork>\n".to_owned()
            + &action("b", "end")
            + &action("c", "end")),
    );
    for (format, text, expected) in [
        ("woha", good.replace("<maps", "<mapz"), "stdin:7:1: found element <mapz>"),
        ("woha", good.replace(" deadline=\"9\"", ""), "stdin:1:1: found <workflow> without deadline"),
        (
            "woha",
            good.replace("<dataset path=\"/in\"/>", ""),
            "stdin:5:1: found input \"/in\" that no job writes",
        ),
        ("woha", cycle, "found a cycle: job"),
        ("oozie", dangling, "stdin:4:1: found a transition from \"a\" to \"nowhere\""),
        ("oozie", unpaired, "stdin:4:1: found a path of fork \"a\" that ends without a join"),
    ] {
        let ran = run_with(&["import", "-", "--from", format], text.as_bytes());
        assert_eq!(ran.code, Some(2), "{text}\n{}", ran.err);
        assert!(ran.err.contains(expected), "{expected:?} in {}", ran.err);
        assert!(ran.err.contains("stdin:"), "{}", ran.err);
    }
}
