//! File names match contents: endings select the form, `.gz` and `.zst` compress, and no file is written
//! under a name of another form.

use std::fs;

use crate::{CONTRACT, NIGHTLY, TRACE, done, run, run_with, scratch, text};

#[test]
fn an_ending_that_no_format_has_is_refused_before_anything_is_done() {
    let dir = scratch("files_refused");
    let nowhere = "nowhere.toml";
    for (verb, name) in [
        (&["simulate", nowhere, "--policy", "fifo"][..], "s.html"),
        (&["simulate", nowhere, "--policy", "fifo"], "s.ndjson"),
        (&["plan", nowhere], "p.jsonl"),
        (&["compare", nowhere], "c.jsonl.gz"),
        (&["simulate", nowhere, "--policy", "fifo"], "s.toml.gz"),
        (&["compare", nowhere], "c.html"),
        (&["plan", nowhere], "p.yaml"),
        (&["bound", nowhere], "b.xml"),
        (&["check", nowhere, nowhere], "k.html"),
        (&["explain", nowhere, "a"], "e.md"),
        (&["tune", nowhere], "t.html"),
        (&["run", nowhere], "r.html"),
        (&["history", nowhere], "h.html"),
        (&["policies"], "p.md"),
        (&["import", nowhere], "w.csv"),
        (&["generate", "purdue"], "w.tsv"),
    ] {
        let file = dir.join(name);
        let ran = run(&[verb, &["--output", text(&file)]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{verb:?}: {}", ran.err);
        let ending = name.trim_end_matches(".gz").rsplit('.').next().expect("an ending");
        let expected = format!("which ends in .{ending}, expected .");
        assert!(ran.err.starts_with("error: --output: found ") && ran.err.contains(&expected), "{}", ran.err);
    }
    let file = dir.join("best.csv");
    let ran = run(&["tune", nowhere, "--schedule", text(&file)]);
    assert!(ran.code == Some(2) && ran.err.contains("found the ending .csv, expected .json"), "{}", ran.err);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "nothing is written");
}

#[test]
fn a_name_of_another_format_than_the_one_asked_for_is_refused() {
    let dir = scratch("files_contradiction");
    let file = dir.join("s.csv");
    let ran = run(&["simulate", CONTRACT, "--policy", "fifo", "--format", "json", "--output", text(&file)]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(ran.err.contains("with --format json, expected a name that ends in .json"), "{}", ran.err);
    // With an explicit format the file may have any name.
    let file = dir.join("tmp.Xa81b");
    done(&["simulate", CONTRACT, "--policy", "fifo", "--format", "json", "--output", text(&file)]);
    assert!(fs::read_to_string(&file).unwrap().starts_with('{'));
}

#[test]
fn compressed_files_are_written_and_read() {
    let dir = scratch("files_compressed");
    let plain = dir.join("s.json");
    done(&["simulate", NIGHTLY, "--policy", "edf", "--output", text(&plain)]);
    for (ending, magic) in [("gz", &[0x1f, 0x8b][..]), ("zst", &[0x28, 0xb5, 0x2f, 0xfd])] {
        let schedule = dir.join(format!("s.json.{ending}"));
        done(&["simulate", NIGHTLY, "--policy", "edf", "--output", text(&schedule)]);
        let bytes = fs::read(&schedule).unwrap();
        assert!(bytes.starts_with(magic), "{ending}");
        assert!(bytes.len() < fs::read(&plain).unwrap().len() / 2, "{ending}");
        assert!(done(&["check", NIGHTLY, text(&schedule)]).starts_with("feasible"), "{ending}");
        let workload = dir.join(format!("w.toml.{ending}"));
        done(&["generate", "purdue", "--set", "jobs=4", "--output", text(&workload)]);
        let again = dir.join(format!("w.yaml.{ending}"));
        done(&["import", text(&workload), "--output", text(&again)]);
        let bound = |file| done(&["bound", text(file), "--format", "json"]);
        assert_eq!(bound(&workload), bound(&again), "{ending}");
        let history = dir.join(format!("past.json.{ending}"));
        for _ in 0..2 {
            let learn = ["--knowledge", "learned", "--history", text(&history)];
            done(&[&["simulate", CONTRACT, "--policy", "fifo"], &learn[..]].concat());
        }
        assert!(fs::read(&history).unwrap().starts_with(magic), "{ending}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 9, "nothing else is left");
}

#[test]
fn the_plan_of_a_scheduler_has_its_own_form() {
    let dir = scratch("files_plan");
    let file = dir.join("night.plan");
    done(&["plan", NIGHTLY, "--policy", "woha-lpf", "--output", text(&file)]);
    done(&["simulate", NIGHTLY, "--policy", "woha-lpf", "--plan-file", text(&file)]);
    let other = run(&["plan", NIGHTLY, "--policy", "fifo", "--output", text(&dir.join("fifo.plan"))]);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("expected a policy that plans progress"), "{}", other.err);
    assert!(!dir.join("fifo.plan").exists());
}

#[test]
fn import_says_format_like_every_verb() {
    let ran = run_with(&["import", "-", "--format", "yaml"], TRACE.as_bytes());
    assert!(ran.code == Some(0) && ran.out.starts_with("slackline: 1"), "{}{}", ran.out, ran.err);
    let old = run(&["import", NIGHTLY, "--to", "json"]);
    assert_eq!((old.code, old.out.as_str()), (Some(2), ""));
    assert!(old.err.contains("--to") && old.err.contains("'--format'"), "{}", old.err);
}

#[test]
fn a_history_is_one_document_for_all_its_writers() {
    let dir = scratch("files_history");
    let document = dir.join("past.json");
    let learn = ["--knowledge", "learned", "--history", text(&document)];
    done(&[&["simulate", CONTRACT, "--policy", "fifo"], &learn[..]].concat());
    let shown = done(&["history", text(&document)]);
    assert!(shown.contains("node") && shown.contains("40.0"), "{shown}");
    assert_eq!(
        done(&["history", text(&document), "--format", "json"]),
        fs::read_to_string(&document).unwrap()
    );
}
