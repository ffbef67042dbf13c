//! `--report`: every command that has it writes a page, and first reports an error in its file name.

use std::fs;
use std::io::Read;

use base64::Engine as _;

use crate::{NIGHTLY, PURDUE, done, run, scratch, text};

/// Whether a file is a page of that verb.
fn is_page(file: &std::path::Path, verb: &str) -> bool {
    let html = fs::read_to_string(file).unwrap();
    html.starts_with("<!DOCTYPE html>")
        && html.contains(&format!(" · slackline {verb}</title>"))
        && html.ends_with("</html>\n")
}

/// The document in a page.
pub(crate) fn data(page: &std::path::Path) -> String {
    let html = fs::read_to_string(page).unwrap();
    let packed = html.split_once("id=\"data\">").unwrap().1.split_once('<').unwrap().0;
    let packed = base64::engine::general_purpose::STANDARD.decode(packed.trim()).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn every_verb_writes_its_page_beside_its_result() {
    let dir = scratch("reports");
    let page = |name: &str| dir.join(format!("{name}.html"));
    let schedule = dir.join("edf.json");
    let (table, json) = (page("table"), page("json"));
    let plain = done(&["compare", NIGHTLY, "-p", "fair,edf"]);
    let with = done(&["compare", NIGHTLY, "-p", "fair,edf", "--report", text(&table)]);
    assert_eq!(plain, with, "the table is the same");
    assert!(is_page(&table, "compare"));
    done(&["simulate", NIGHTLY, "-p", "edf", "--report", text(&page("simulate"))]);
    done(&["simulate", NIGHTLY, "-p", "edf", "-o", text(&schedule), "--report", text(&json)]);
    assert!(is_page(&page("simulate"), "simulate") && is_page(&json, "simulate"));
    done(&["check", NIGHTLY, text(&schedule), "--report", text(&page("check"))]);
    assert!(is_page(&page("check"), "check"));
    done(&["plan", NIGHTLY, "-p", "fair", "--report", text(&page("plan"))]);
    assert!(is_page(&page("plan"), "plan"));
    done(&["tune", PURDUE, "--total-slots", "80", "--report", text(&page("tune"))]);
    assert!(is_page(&page("tune"), "tune"));
    let until = ["--machines", "1..24", "--until", "missed:0", "-p", "edf"];
    done(&[&["capacity", NIGHTLY][..], &until, &["--report", text(&page("capacity"))]].concat());
    assert!(is_page(&page("capacity"), "capacity"));
    // The page draws the answer: it equals the page of the simulation with that number of machines.
    let answer = "The timeline and the flows show the answer, machines = ";
    let document: serde_json::Value = serde_json::from_str(&data(&page("capacity"))).unwrap();
    let notes = document["extras"]["notes"].as_array().unwrap();
    let machines =
        notes.iter().find_map(|note| note.as_str()?.strip_prefix(answer)).unwrap().trim_end_matches('.');
    done(&["simulate", NIGHTLY, "-p", "edf", "--machines", machines, "--report", text(&page("answer"))]);
    let simulated: serde_json::Value = serde_json::from_str(&data(&page("answer"))).unwrap();
    assert!(
        document["policies"][0].is_object() && document["policies"] == simulated["policies"],
        "{machines}"
    );
    let (state, flows) = (dir.join("state"), dir.join("flows.toml"));
    let example =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first-run.toml")).unwrap();
    fs::write(&flows, example.replace("target/first-run", text(&dir.join("outputs")))).unwrap();
    let first = ["run", text(&flows), "--state", text(&state), "--quiet"];
    done(&[&first[..], &["--report", text(&page("run"))]].concat());
    assert!(is_page(&page("run"), "run"));
}

#[test]
fn rows_that_are_kept_and_rows_that_are_seen_make_the_same_page() {
    let dir = scratch("reports-same");
    let pages = ["json", "csv"].map(|format| {
        let file = dir.join("page.html");
        done(&["simulate", NIGHTLY, "-p", "fair", "--format", format, "--report", text(&file)]);
        let html = fs::read_to_string(&file).unwrap();
        let data = html.split_once("id=\"data\">").unwrap().1.split_once('<').unwrap().0;
        data.len()
    });
    // They differ only in the command that made them.
    assert!(pages[0].abs_diff(pages[1]) < 16, "{pages:?}");
    let again = |name: &str| {
        let file = dir.join("again.html");
        done(&["compare", NIGHTLY, "-p", name, "--threads", "2", "--report", text(&file)]);
        fs::read(&file).unwrap()
    };
    assert!(again("fifo,auto") == again("fifo,auto"), "the same command, the same bytes");
}

#[test]
fn unwritable_outputs_are_reported_before_the_work() {
    let dir = scratch("reports-refused");
    let nowhere = dir.join("nowhere/a.html");
    for (name, expected) in [
        ("a.json", "expected a name that ends in .html"),
        (text(&nowhere), "expected a file in an existing directory"),
    ] {
        // The error comes before the workload is read.
        for args in [&["compare", "no-such-workload"][..], &["run", "no-such-workload"], &["tune", "no"]] {
            let ran = run(&[args, &["--report", name]].concat());
            assert_eq!(ran.code, Some(2), "{}", ran.err);
            assert!(ran.err.contains(expected) && !ran.err.contains("cannot be read"), "{}", ran.err);
        }
    }
    let lines = dir.join("a.jsonl");
    let page = dir.join("a.html");
    let ran = run(&["simulate", NIGHTLY, "-o", text(&lines), "--report", text(&page)]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("--report: found a schedule that is written line by line"), "{}", ran.err);
    let ran = run(&["plan", NIGHTLY, "-p", "woha-lpf", "--report", text(&page)]);
    assert!(ran.err.contains("--report: found policy woha-lpf"), "{}", ran.err);
    assert!(!page.exists() && !lines.exists());
}
