//! What goes wrong in a task, and what it says.

use std::fs;
use std::time::Duration;

use serde_json::json;
use slackline_task::attempt;
use slackline_task::attempt::{log, plan};
use slackline_task::base::source;
use slackline_task::process::spec;
use slackline_task::process::spec::Task;
use slackline_task::shuffle::{index, part};

use crate::job::{Trial, text};

/// Whether the only map has left what a reduce takes.
fn is_complete(trial: &Trial) -> bool {
    let reduce = Task::Reduce { partition: 0, maps: vec![trial.path("map-0")] };
    attempt::run(&trial.spec(reduce, &trial.path("reduce-x"))).is_ok()
}

fn failure(trial: &Trial, input: &str) -> String {
    let file = trial.write("in", input);
    let error = trial.run(&[file]).unwrap_err().to_string();
    error.replace(trial.dir.path().to_str().unwrap(), "")
}

#[test]
fn a_command_that_fails_is_quoted() {
    let trial = Trial::of(json!({ "mapper": "cat; echo what happened >&2; echo and why >&2; exit 1" }));
    assert_eq!(
        failure(&trial, "a\n"),
        "mapper \"cat; echo what happened >&2; echo and why >&2; exit 1\": exit status: 1; \
         its standard error ends:\nwhat happened\nand why"
    );
    assert_eq!(log::read(&trial.path("map-0")).unwrap(), b"what happened\nand why\n");

    let trial = Trial::of(json!({ "mapper": "cat", "reducer": "no-such-program" }));
    let message = failure(&trial, "a\n");
    assert!(message.starts_with("reducer \"no-such-program\": exit status: 127;"), "{message}");
    assert!(message.contains("not found"), "{message}");

    let trial = Trial::of(json!({ "mapper": "cat", "combiner": "cat; kill -9 $$" }));
    assert_eq!(failure(&trial, "a\n"), "combiner \"cat; kill -9 $$\": signal: 9 (SIGKILL)");
    assert!(!is_complete(&trial));
}

#[test]
fn a_flood_on_standard_error_neither_blocks_nor_fills() {
    let trial = Trial::of(json!({
        "mapper": "cat; awk 'BEGIN { for (i = 0; i < 1000000; i++) print \"noise\", i }' >&2"
    }));
    let file = trial.write("in", "a\tb\n");
    assert_eq!(trial.run(&[file]).unwrap().text(), "a\tb\n");
    let log = String::from_utf8(log::read(&trial.path("map-0")).unwrap()).unwrap();
    assert!(log.starts_with("noise 0\n") && log.ends_with("noise 999999\n") && log.len() < 500_000);
}

#[test]
fn input_that_is_missing_is_named() {
    let trial = Trial::program("wordcount", json!({}));
    let missing = trial.path("none").to_str().unwrap().to_owned();
    let error = trial.run(&[missing]).unwrap_err();
    assert!(error.to_string().ends_with("/none\": no such file or directory"), "{error}");

    // It may also vanish between plan and attempt.
    let error = attempt::run(&trial.map_of("/nowhere/x")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /nowhere/x: No such file or directory (os error 2)");
    let task = Task::Reduce { partition: 0, maps: vec!["/nowhere".into()] };
    let error = attempt::run(&trial.spec(task, &trial.path("reduce-0"))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/nowhere: the output of a map is lost: cannot read /nowhere/map.out: No such file or directory (os error 2)"
    );
    assert_eq!(error.lost_map(), Some("/nowhere".into()));
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let trial = Trial::program("wordcount", json!({}));
    let file = trial.write("in", "a\n");
    let mut spec = trial.map_of(&file);
    // A file stands where the directory should be; permissions would not stop an administrator.
    spec.directory = file.clone().into();
    let error = attempt::run(&spec).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot make directory {file}: ")), "{error}");
    fs::create_dir_all(trial.path("map-0/map.out")).unwrap();
    let error = attempt::run(&trial.map_of(&file)).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("map-0/map.out: "), "{error}");
}

/// A disk that is full wherever something is written.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_the_attempt() {
    let input = text(9, 3000);
    let cases = [
        (Trial::program("sort", json!({})).with(1, 1 << 30, 1 << 30), "map.out"),
        (Trial::program("sort", json!({})).with(1, 1 << 30, 30_000), "spill-1"),
        (Trial::program("grep", json!({ "pattern": "a" })).with(0, 1 << 30, 1 << 20), "part-00000"),
        (Trial::of(json!({ "mapper": "cat" })).with(0, 1 << 30, 1 << 20), "part-00000"),
        // The command is killed, and would go on for ever.
        (Trial::of(json!({ "mapper": "yes" })).with(0, 1 << 30, 1 << 20), "part-00000"),
        (Trial::of(json!({ "mapper": "yes" })).with(1, 1 << 30, 30_000), "spill-2"),
    ];
    for (trial, full) in cases {
        let file = trial.write("in", &input);
        fs::create_dir(trial.path("map-0")).unwrap();
        std::os::unix::fs::symlink("/dev/full", trial.path("map-0").join(full)).unwrap();
        let found = attempt::run(&trial.map_of(&file)).unwrap_err().to_string();
        assert!(found.starts_with("cannot write ") && found.contains(full), "{found}");
        assert!(found.ends_with("No space left on device (os error 28)"), "{found}");
        assert!(!is_complete(&trial));
    }
}

#[test]
fn input_that_is_too_long_or_damaged_is_refused_with_its_place() {
    let trial = Trial::program("wordcount", json!({})).with(1, 1 << 30, 1000);
    let message = failure(&trial, &format!("short\n{}", "x".repeat(3 << 20)));
    assert_eq!(message, "/in, at byte 6: a record is longer than the limit of 1048576 bytes");

    let trial = Trial::of(json!({ "mapper": "head -c 3000000 /dev/zero" })).with(1, 1 << 30, 1000);
    let message = failure(&trial, "a\n");
    assert!(
        message.contains("its output cannot be used: a record is longer than the limit of 1048576 bytes"),
        "{message}"
    );
}

#[test]
fn wrong_reducers_are_refused() {
    let trial = Trial::program("sort", json!({})).with(2, 1 << 20, 1 << 20);
    let file = trial.write("in", "a\n");
    let message = attempt::run(&trial.map_of(&file)).unwrap_err().to_string();
    assert_eq!(message, "sort: found no sampled boundaries, expected them for more than one reducer");
    let trial = Trial::program("teragen", json!({ "records": 5 }));
    let message = attempt::run(&trial.map_of(&file)).unwrap_err().to_string();
    assert_eq!(message, "teragen: found 2 reducers, expected none");
    // What these maps emit is for reduces alone.
    for name in ["wordcount", "sort", "terasort", "inverted-index", "histogram", "sequence-count", "join"] {
        let trial = Trial::program(name, json!({})).with(0, 1 << 20, 1 << 20);
        let message = attempt::run(&trial.map_of(&file)).unwrap_err().to_string();
        assert_eq!(message, format!("{name}: needs at least one reducer: reducers write its output"));
    }
}

#[test]
fn more_parts_than_names_can_sort_are_refused() {
    let trial = Trial::program("wordcount", json!({})).with(100_001, 1 << 20, 1 << 20);
    let file = trial.write("in", "a\n");
    let message = attempt::run(&trial.map_of(&file)).unwrap_err().to_string();
    assert_eq!(message, "found 100001 reducers, expected at most 100000");
    let task = Task::Reduce { partition: 100_000, maps: vec![] };
    let message = attempt::run(&trial.spec(task, &trial.path("reduce-0"))).unwrap_err().to_string();
    assert_eq!(message, "found 100001 reducers, expected at most 100000");
    let task = Task::Map { index: 0, maps: 100_001, splits: vec![], partitions: 0, prepared: None };
    let message = attempt::run(&trial.spec(task, &trial.path("map-0"))).unwrap_err().to_string();
    assert_eq!(message, "found 100001 maps without reducers, expected at most 100000");
    assert!(part::part_file(part::PARTS_MAX - 1, None) > part::part_file(9, None));
}

/// A letter of a word that is changed makes another word, and no pair that is cut short.
#[test]
fn a_reduce_that_finds_map_output_damaged_or_gone_names_the_map_and_leaves_no_result() {
    let trial = Trial::of(json!({ "mapper": "cat", "reducer": "head -n 1" })).with(1, 1 << 30, 1 << 20);
    let file = trial.write("in", text(4, 3000));
    attempt::run(&trial.map_of(&file)).unwrap();
    let output = trial.path("map-0").join(index::MAP_OUTPUT);
    let bytes = fs::read(&output).unwrap();
    let reduce = Task::Reduce { partition: 0, maps: vec![trial.path("map-0")] };
    let spec = trial.spec(reduce, &trial.path("reduce-0"));
    attempt::run(&spec).unwrap();
    let letter = |at: usize| {
        let mut bytes = bytes.clone();
        let at = at + bytes[at..].iter().position(|byte| *byte == b'b').unwrap();
        bytes[at] = b'c';
        bytes
    };
    let cases = [
        ("a letter in the middle", Some(letter(bytes.len() / 2)), "a check sum of "),
        ("a letter at the end", Some(letter(bytes.len() - 200)), "a check sum of "),
        ("its end lost", Some(bytes[..bytes.len() - 1].to_vec()), " bytes, expected "),
        ("its index lost", Some(bytes[..5].to_vec()), "found no entry of partition 0"),
        ("emptied", Some(Vec::new()), "found no entry of partition 0"),
        ("zeros", Some(vec![0; bytes.len()]), "found no entry of partition 0"),
        ("gone", None, "No such file or directory"),
    ];
    for (what, damaged, expected) in cases {
        match damaged {
            Some(bytes) => fs::write(&output, bytes).unwrap(),
            None => fs::remove_file(&output).unwrap(),
        }
        let error = attempt::run(&spec).unwrap_err();
        assert!(error.to_string().contains(expected), "{what}: {error}");
        assert_eq!(error.lost_map(), Some(trial.path("map-0")), "{what}: {error}");
        assert!(!error.is_final(), "{what}");
    }
    fs::write(&output, &bytes).unwrap();
    attempt::run(&spec).unwrap();
    fs::remove_dir_all(trial.path("map-0")).unwrap();
    assert_eq!(attempt::run(&spec).unwrap_err().lost_map(), Some(trial.path("map-0")));
}

#[test]
fn an_error_that_no_retry_can_fix_is_final() {
    let trial = Trial::program("wordcount", json!({})).with(1, 1 << 30, 1000);
    let of = |name: &str, content: &[u8]| {
        let file = trial.write(name, content);
        attempt::run(&trial.map_of(&file)).unwrap_err()
    };
    assert!(attempt::run(&trial.map_of("/nowhere/x")).unwrap_err().is_final(), "missing");
    assert!(of("long", &vec![b'x'; 3 << 20]).is_final(), "a record that is too long");
    assert!(of("cut", &[0x1f, 0x8b, 8, 0, 0]).is_final(), "damaged gzip");
    assert!(of("zip", b"PK\x03\x04....").is_final(), "a format that cannot be read");
    let command = |mapper: &str| {
        let trial = Trial::of(json!({ "mapper": mapper })).with(1, 1 << 30, 1000);
        let file = trial.write("in", "a\n");
        attempt::run(&trial.map_of(&file)).unwrap_err()
    };
    let missing = command("no-such-program");
    assert!(missing.is_final() && missing.exit() == Some(127), "{missing}");
    let failed = command("exit 3");
    assert!(!failed.is_final() && failed.exit() == Some(3), "{failed}");
    let killed = command("kill -9 $$");
    assert!(!killed.is_final() && killed.exit().is_none(), "{killed}");
    assert!(command("head -c 3000000 /dev/zero").is_final(), "a line that is too long");
}

#[test]
fn an_input_that_changed_since_the_run_began_stops_the_map_for_good() {
    for (job, partitions) in [
        (json!({ "program": "wordcount" }), 2),
        (json!({ "mapper": "cat" }), 2),
        (json!({ "command": "cat $SLACKLINE_INPUTS" }), 0),
    ] {
        let trial = Trial::of(job).with(partitions, 1 << 20, 1 << 20);
        let file = trial.write("in", "one\ntwo\n");
        let plan = plan::plan(&trial.job, std::slice::from_ref(&file), 1 << 20).unwrap();
        let spec = |maps: &[Vec<spec::Split>]| {
            let splits = maps[0].clone();
            let task = Task::Map { index: 0, maps: 1, splits, partitions, prepared: None };
            trial.spec(task, &trial.path("map-0"))
        };
        attempt::run(&spec(&plan)).unwrap();
        // Renamed over it, with as many lines of as many bytes.
        trial.write("new", "ONE\nTWO\n");
        fs::File::options()
            .append(true)
            .open(trial.path("new"))
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
        fs::rename(trial.path("new"), &file).unwrap();
        let error = attempt::run(&spec(&plan)).unwrap_err();
        assert_eq!(error.to_string(), format!("{file}: changed since the run began"));
        assert!(error.is_final());
        // Written again with the same time: only the content differs.
        let mut hashed = plan::plan(&trial.job, std::slice::from_ref(&file), 1 << 20).unwrap();
        hashed[0][0].source = Some(source::Source::hashed(file.as_ref()).unwrap());
        attempt::run(&spec(&hashed)).unwrap();
        fs::write(&file, "ONE\nTwo\n").unwrap();
        fs::File::options().append(true).open(&file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let error = attempt::run(&spec(&hashed)).unwrap_err();
        assert!(error.to_string().ends_with("changed since the run began"), "{error}");
    }
}

/// The command changes the input that it is still being fed.
#[test]
fn an_input_that_changes_while_a_map_reads_it_stops_the_map() {
    let trial = Trial::of(json!({ "mapper": "" })).with(1, 1 << 30, 1 << 24);
    // More than the pipe and all buffers hold, so that the map is still reading.
    let file = trial.write("in", "a line of some length\n".repeat(200_000));
    let plan = plan::plan(&trial.job, std::slice::from_ref(&file), 1 << 30).unwrap();
    let task = Task::Map { index: 0, maps: 1, splits: plan[0].clone(), partitions: 1, prepared: None };
    let mut spec = trial.spec(task, &trial.path("map-0"));
    spec.job = serde_json::from_value(json!({ "mapper": format!("printf more >> {file}; cat") })).unwrap();
    let error = attempt::run(&spec).unwrap_err();
    assert!(error.to_string().ends_with("changed since the run began"), "{error}");
    assert!(!is_complete(&trial));
}

/// How long something may take that takes milliseconds, on a machine that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
