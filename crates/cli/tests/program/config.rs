//! The user's defaults file.

use std::fs;
use std::path::Path;

use crate::{CONTRACT, Ran, program, ran, scratch, text};

/// Runs the program with this defaults file.
fn with(file: &Path, args: &[&str]) -> Ran {
    ran(&program().env("SLACKLINE_CONFIG", file).args(args).output().expect("the program starts"))
}

/// The place of a defaults file of a test, and the directory it is in.
fn written(test: &str, content: &str) -> (std::path::PathBuf, std::path::PathBuf) {
    let dir = scratch(test);
    let file = dir.join("config.toml");
    fs::write(&file, content).unwrap();
    (file, dir)
}

#[test]
fn effective_settings_are_shown_with_their_source() {
    let (file, _) = written("config_shown", "policy = 'edf'\nengine = 'local:slots=3'\n");
    let shown = with(&file, &["config"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for line in [
        format!("defaults file: {}", text(&file)),
        format!("  policy   edf ({})", text(&file)),
        format!("  engine   local:slots=3 ({})", text(&file)),
        "  state    .slackline (built in)".to_owned(),
        "  history  none (built in)".to_owned(),
    ] {
        assert!(shown.out.lines().any(|shown| shown == line), "{line:?} in\n{}", shown.out);
    }
    assert_eq!(with(&file, &["config", "--path"]).out, format!("{}\n", text(&file)));
    let json: serde_json::Value =
        serde_json::from_str(&with(&file, &["config", "--format", "json"]).out).unwrap();
    assert_eq!(json["defaults"]["policy"]["value"], "edf");
    let none = crate::done(&["config"]);
    assert!(none.starts_with("defaults file: none\n") && none.contains("auto (built in)"), "{none}");
}

#[test]
fn a_default_policy_is_taken_said_and_overruled() {
    let (file, _) = written("config_policy", "policy = 'edf'\n");
    let simulate = ["simulate", CONTRACT, "--format", "json"];
    let taken = with(&file, &simulate);
    assert_eq!(taken.code, Some(0), "{}", taken.err);
    assert!(
        taken.out.contains("\"policy\": \"edf\"") || taken.out.contains("\"policy\":\"edf\""),
        "{}",
        taken.out
    );
    assert!(taken.err.contains(&format!("from {}: --policy edf", text(&file))), "{}", taken.err);
    assert!(with(&file, &["simulate", "-h"]).out.contains("[default: edf]"));
    let overruled = with(&file, &[&simulate[..], &["--policy", "fifo"]].concat());
    assert!(overruled.out.contains("fifo") && !overruled.err.contains("--policy"), "{}", overruled.err);
    let bare = crate::run(&simulate);
    assert!(bare.code == Some(0) && bare.out.contains("auto"), "without a file: {}{}", bare.out, bare.err);
}

#[test]
fn runs_take_state_history_and_engine() {
    let (file, dir) =
        written("config_run", "state = 'states'\nhistory = 'past.history'\nengine = 'local:slots=1'\n");
    let flow = "slackline = 1\n[[flows]]\nid = 'a'\njobs = [{ id = 'j', run = { mapper = 'cat', inputs = ['in.txt'], output = 'out' } }]\n";
    fs::write(dir.join("night.toml"), flow).unwrap();
    fs::write(dir.join("in.txt"), "one\n").unwrap();
    let mut command = program();
    let command =
        command.current_dir(&dir).env("SLACKLINE_CONFIG", &file).args(["run", "night.toml", "--stats"]);
    let ran = ran(&command.output().expect("the program starts"));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(dir.join("states/night/schedule.json").is_file() && dir.join("past.history").is_file());
    assert!(ran.out.contains("1 machine (1 generic slot)"), "{}", ran.out);
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_place() {
    for (name, content, expected) in [
        ("unknown", "polcy = 'edf'\n", "config.toml:1:1: unknown field `polcy`"),
        ("unknown", "polcy = 'edf'\n", "did you mean `policy`?"),
        ("policy", "\npolicy = 'EDF'\n", "config.toml:2:10: policy: found policy \"EDF\""),
        ("engine", "engine = 'mesos'\n", "config.toml:1:10: engine: found engine \"mesos\""),
        ("type", "state = 3\n", "config.toml:1:9: state: found 3, expected text"),
        ("syntax", "state = \n", "config.toml:1:"),
    ] {
        let (file, _) = written(&format!("config_wrong_{name}"), content);
        for args in [vec!["simulate", CONTRACT, "--policy", "fifo"], vec!["bound", CONTRACT], vec!["config"]]
        {
            let ran = with(&file, &args);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
            assert!(ran.err.contains(expected), "{expected:?} in {}", ran.err);
        }
        // It can still be found, and help read.
        for args in [&["config", "--path"][..], &["--help"], &["--version"], &["completions", "bash"]] {
            assert_eq!(with(&file, args).code, Some(0), "{args:?}");
        }
    }
    let missing = with(Path::new("/nowhere/config.toml"), &["config"]);
    assert!(missing.code == Some(2) && missing.err.contains("cannot be read"), "{}", missing.err);
}
