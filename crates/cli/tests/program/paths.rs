//! Texts that a shell would read differently are refused: paths with `~` or `$NAME`, and commands whose lines
//! end with carriage returns.

use std::fs;
use std::path::Path;

use crate::processes::write_program;
use crate::runs::{command, parts};
use crate::{Ran, ran, scratch};

/// Part of the message that refuses a path.
const WRITTEN_OUT: &str = "expected the full path: Slackline does not expand";

fn slackline(dir: &Path, args: &[&str]) -> Ran {
    ran(&command(dir, args).output().expect("the program starts"))
}

/// A flow file with one job.
fn flow(run: &str) -> String {
    format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n{{ id = 'a', run = {{ {run} }} }},\n]\n")
}

/// A directory with an input of three lines, one of which has the word DEBUG.
fn with_input(name: &str) -> std::path::PathBuf {
    let dir = scratch(name);
    fs::write(dir.join("in.txt"), "one\ntwo DEBUG\nthree\n").unwrap();
    dir
}

/// The names in a directory, without the files by which runs know each other.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with("slackline-"));
    names.sort();
    names
}

#[test]
fn a_path_of_a_flow_file_that_a_shell_would_expand_is_refused_with_its_line_and_nothing_is_written() {
    let dir = with_input("paths_refused");
    for (run, at) in [
        ("mapper = 'cat', inputs = ['in.txt'], output = '~/results'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = '~root/results'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = '$HOME/results'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = '${HOME}/results'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = 'out/$DATE'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = 'out/run-$DATE'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = 'out/$(date +%F)'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = 'out/`date +%F`'", "output"),
        ("mapper = 'cat', inputs = ['in.txt'], output = '%TEMP%/out'", "output"),
        ("mapper = 'cat', inputs = ['in.txt', '~/in.txt'], output = 'out'", "inputs[1]"),
        ("mapper = 'cat', inputs = ['$PWD/*.txt'], output = 'out'", "inputs[0]"),
        ("program = 'wordcount', inputs = ['~/in.txt'], output = 'out'", "inputs[0]"),
        ("command = 'true', files = ['in.txt', '~/x.sh'], output = 'out'", "files[1]"),
        ("command = 'true', cwd = '~', output = 'out'", "cwd"),
        ("command = 'true', shell = '~/bin/bash -e', output = 'out'", "shell"),
        ("jar = '$LIB/a.jar', main = 'A', inputs = ['in.txt'], output = 'out'", "jar"),
    ] {
        fs::write(dir.join("f.toml"), flow(run)).unwrap();
        for args in [&["run", "f.toml"][..], &["run", "f.toml", "--dry-run"], &["import", "f.toml"]] {
            let ran = slackline(&dir, args);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{run}: {}", ran.err);
            let place = format!(": flows[0].jobs[0].run.{at}: flow f, job a: found ");
            assert!(
                ran.err.starts_with("error: f.toml:5:") && ran.err.contains(&place),
                "{run}: {}",
                ran.err
            );
            assert!(ran.err.contains(WRITTEN_OUT), "{run}: {}", ran.err);
        }
        assert_eq!(names(&dir), ["f.toml", "in.txt"], "{run}");
    }
}

#[test]
fn a_parameter_does_not_bring_such_a_path_in() {
    let dir = with_input("paths_parameter");
    let run = "mapper = 'cat', inputs = ['in.txt'], output = '{to}'";
    let text = flow(run).replace("[[flows]]", "[parameters]\nto = 'out'\n[[flows]]");
    fs::write(dir.join("f.toml"), text).unwrap();
    let ran = slackline(&dir, &["run", "f.toml", "--set", "to=~/out"]);
    assert!(ran.code == Some(2) && ran.err.contains(WRITTEN_OUT), "{}", ran.err);
    let ran = slackline(&dir, &["run", "f.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn a_file_that_is_really_named_so_is_read_and_written() {
    let dir = with_input("paths_literal");
    for directory in ["~", "$d", "a~b"] {
        fs::create_dir(dir.join(directory)).unwrap();
        fs::copy(dir.join("in.txt"), dir.join(directory).join("x.txt")).unwrap();
    }
    fs::write(dir.join("Foo$Bar.class"), "one\ntwo DEBUG\nthree\n").unwrap();
    for (input, output) in [
        ("./~/x.txt", "./~out"),
        ("./~/*.txt", "out/./$x"),
        ("./$d/x.txt", "./$out"),
        ("./$d", "out/1~"),
        ("a~b/x.txt", "out/a~b"),
        ("Foo$Bar.class", "out/Foo$Bar"),
    ] {
        let run = format!("mapper = 'cat', inputs = ['{input}'], output = '{output}'");
        fs::write(dir.join("f.toml"), flow(&run)).unwrap();
        let ran = slackline(&dir, &["run", "f.toml", "--quiet"]);
        assert_eq!(ran.code, Some(0), "{run}: {}", ran.err);
        assert_eq!(parts(&dir.join(output))["part-00000"], b"one\ntwo DEBUG\nthree\n", "{run}");
    }
    fs::write(dir.join("f.toml"), flow("mapper = 'cat', inputs = ['in.txt'], output = 'last'")).unwrap();
    let ran = slackline(&dir, &["run", "f.toml", "--quiet", "--state", "./~state"]);
    assert!(ran.code == Some(0) && dir.join("~state/journal.log").is_file(), "{}", ran.err);
}

#[test]
fn an_option_or_a_variable_that_is_such_a_path_is_refused_before_anything_is_made() {
    let dir = with_input("paths_options");
    fs::write(dir.join("f.toml"), flow("mapper = 'cat', inputs = ['in.txt'], output = 'out'")).unwrap();
    let before = names(&dir);
    for args in [
        &["run", "f.toml", "--state", "~/sl"][..],
        &["run", "f.toml", "--state", "$HOME/sl"],
        &["run", "f.toml", "--history", "~/past.history"],
        &["run", "f.toml", "--events", "~/events.jsonl"],
        &["run", "f.toml", "--output", "~/table.json"],
        &["run", "f.toml", "--report", "~/report.html"],
        &["run", "~/f.toml"],
        &["run", "f.toml", "--engine", "ssh:hosts=~/hosts"],
        &["import", "f.toml", "--from", "oozie:properties=~/job.properties"],
        &["run", "f.toml", "--policy", "yarn-capacity:file=~/capacity-scheduler.xml"],
        &["run", "f.toml", "--policy", "command:~/policy.py"],
        &["serve", "--state", "~/sl"],
        &["serve", "--socket", "$XDG_RUNTIME_DIR/socket"],
        &["serve", "--listen", "127.0.0.1:0", "--tls-certificate", "~/cert.pem", "--tls-key", "key.pem"],
        &["submit", "f.toml", "--when", "~/ready"],
        &["queue", "--server", "~/sl"],
        &["queue", "--trust", "~/ca.pem"],
        &["token", "--state", "~/sl", "--add", "anna"],
        &["status", "~/sl"],
        &["logs", "--state", "~/sl", "f", "a"],
        &["explain", "~/s.json", "f"],
        &["clean", "--state", "~/sl"],
        &["history", "~/past.history"],
        &["compare", "~/f.toml"],
        &["import", "~/f.toml"],
        &["export", "f.toml", "--output", "~/x.json"],
        &["man", "--output", "~/man"],
        &["repro", "--spec", "~/spec.toml"],
    ] {
        let ran = slackline(&dir, args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(WRITTEN_OUT), "{args:?}: {}", ran.err);
        assert_eq!(names(&dir), before, "{args:?}");
    }
    for (variable, value) in [("SLACKLINE_CONFIG", "~/config.toml"), ("SLACKLINE_SERVER", "$HOME/socket")] {
        let ran = ran(&command(&dir, &["queue"]).env(variable, value).output().unwrap());
        assert!(ran.code == Some(2) && ran.err.contains(WRITTEN_OUT), "{variable}: {}", ran.err);
    }
    for defaults in ["state = '$HOME/states'", "history = '~anna/past.history'"] {
        fs::write(dir.join("config.toml"), defaults).unwrap();
        let ran =
            ran(&command(&dir, &["run", "f.toml"]).env("SLACKLINE_CONFIG", "config.toml").output().unwrap());
        assert!(ran.code == Some(2) && ran.err.contains(WRITTEN_OUT), "{defaults}: {}", ran.err);
        assert!(ran.err.contains("config.toml:1"), "{}", ran.err);
    }
}

/// The forms of a document whose command has two lines, with this between them and at the end.
fn forms(job: &str, key: &str, break_: &str) -> Vec<(&'static str, String)> {
    let escaped = break_.replace('\r', "\\r").replace('\n', "\\n");
    let command = format!("grep -v DEBUG{escaped}");
    let other = if key == "reducer" || key == "combiner" { r#""mapper":"cat","# } else { "" };
    let other = if key == "combiner" { format!(r#"{other}"reducer":"cat","#) } else { other.to_owned() };
    let run = format!(r#"{{"inputs":["in.txt"],"output":"out",{other}"{key}":"{command}"}}"#);
    let flow = format!(r#"{{"id":"f","jobs":[{{"id":"{job}","run":{run}}}]}}"#);
    vec![
        ("f.json", format!(r#"{{"slackline":1,"flows":[{flow}]}}"#)),
        ("f.jsonl", format!("{{\"slackline\":1}}\n{flow}\n")),
        ("f.yaml", format!("slackline: 1\nflows:\n  - {flow}\n")),
        ("f.toml", {
            let other = other.replace(':', "=");
            let run = format!(r#"{{ inputs=["in.txt"], output="out", {other} {key}="{command}" }}"#);
            format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [{{ id = '{job}', run = {run} }}]\n")
        }),
    ]
}

#[test]
fn a_command_with_a_carriage_return_at_the_end_of_a_line_is_refused_in_every_form() {
    let dir = with_input("paths_carriage_returns");
    for key in ["mapper", "reducer", "combiner", "command"] {
        for break_ in ["\r\n", "\r", "\r\ncat\n", "\ncat\r\n"] {
            for (name, text) in forms("filter", key, break_) {
                fs::write(dir.join(name), text).unwrap();
                let ran = slackline(&dir, &["run", name]);
                assert_eq!(
                    (ran.code, ran.out.as_str()),
                    (Some(2), ""),
                    "{name} {key} {break_:?}: {}",
                    ran.err
                );
                let place = format!(
                    "jobs[0].run.{key}: flow f, job filter: found a carriage return at the end of line "
                );
                assert!(
                    ran.err.contains(&place) && ran.err.contains("dos2unix"),
                    "{name} {key}: {}",
                    ran.err
                );
            }
        }
    }
    for (name, text) in forms("filter", "shell", "\r\n") {
        let text = text
            .replace("\"shell\"", "\"command\":\"true\",\"shell\"")
            .replace("shell=", "command=\"true\", shell=");
        fs::write(dir.join(name), text).unwrap();
        let ran = slackline(&dir, &["run", name]);
        assert!(
            ran.code == Some(2) && ran.err.contains("run.shell: flow f, job filter: found a carr"),
            "{}",
            ran.err
        );
    }
    assert!(!dir.join("out").exists());
}

#[test]
fn a_file_saved_on_windows_is_refused_or_means_the_same() {
    let dir = with_input("paths_windows");
    let toml = "slackline = 1\n[[flows]]\nid = 'f'\n[[flows.jobs]]\nid = 'a'\n[flows.jobs.run]\ninputs = ['in.txt']\n\
                output = 'out'\nmapper = \"\"\"\ngrep -v DEBUG\n\"\"\"\n";
    fs::write(dir.join("f.toml"), toml.replace('\n', "\r\n")).unwrap();
    let ran = slackline(&dir, &["run", "f.toml"]);
    assert_eq!(ran.code, Some(2), "{}", ran.err);
    assert!(
        ran.err.starts_with("error: f.toml:9:") && ran.err.contains("flow f, job a: found a carriage return"),
        "{}",
        ran.err
    );
    // A literal string of several lines too.
    fs::write(dir.join("f.toml"), toml.replace("\"\"\"", "'''").replace('\n', "\r\n")).unwrap();
    assert_eq!(slackline(&dir, &["run", "f.toml"]).code, Some(2));
    // YAML and XML have the line ends of a text as line feeds, so that the shell gets no carriage return.
    let yaml = "slackline: 1\nflows:\n- id: f\n  jobs:\n  - id: a\n    run:\n      inputs: [in.txt]\n      output: out-yaml\n\
                \x20     mapper: |\n        set -e\n        grep -v DEBUG\n";
    let xml = "<workflow name=\"f\" deadline=\"300\">\n<dataset path=\"in.txt\"/>\n<job name=\"a\">\n<command>set -e\ngrep -v DEBUG\n\
               </command>\n<input>in.txt</input><output>out-xml</output></job>\n</workflow>\n";
    for (name, text, output) in [("f.yaml", yaml, "out-yaml"), ("f.xml", xml, "out-xml")] {
        fs::write(dir.join(name), text.replace('\n', "\r\n")).unwrap();
        let ran = slackline(&dir, &["run", name, "--quiet", "--state", output.trim_start_matches("out-")]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
        assert_eq!(parts(&dir.join(output))["part-00000"], b"one\nthree\n", "{name}");
    }
    // A character reference keeps its meaning.
    fs::write(dir.join("f.xml"), xml.replace("set -e\n", "set -e&#13;\n")).unwrap();
    let ran = slackline(&dir, &["run", "f.xml"]);
    assert!(
        ran.code == Some(2) && ran.err.contains("run.mapper: flow f, job a: found a carriage return"),
        "{}",
        ran.err
    );
    // Documents of one line each are accepted too.
    let plain =
        toml.replace("\"\"\"\ngrep -v DEBUG\n\"\"\"", "'grep -v DEBUG'").replace("'out'", "'out-plain'");
    fs::write(dir.join("plain.toml"), plain.replace('\n', "\r\n")).unwrap();
    let ran = slackline(&dir, &["run", "plain.toml", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(parts(&dir.join("out-plain"))["part-00000"], b"one\nthree\n");
}

#[test]
fn a_carriage_return_inside_a_line_stays() {
    let dir = with_input("paths_inside");
    fs::write(dir.join("f.toml"), flow("mapper = \"sed 's/$/\\r./'\", inputs = ['in.txt'], output = 'out'"))
        .unwrap();
    let ran = slackline(&dir, &["run", "f.toml", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(parts(&dir.join("out"))["part-00000"], b"one\r.\ntwo DEBUG\r.\nthree\r.\n");
}

#[test]
fn a_hook_with_carriage_returns_is_refused() {
    let dir = with_input("paths_hooks");
    fs::write(dir.join("f.toml"), flow("mapper = 'cat', inputs = ['in.txt'], output = 'out'")).unwrap();
    for (verb, option) in
        [("run", "--on-end"), ("run", "--on-failure"), ("run", "--on-late"), ("serve", "--on-alert")]
    {
        let file = if verb == "run" { &["run", "f.toml"][..] } else { &["serve"] };
        for command in ["echo a\r\necho b", "echo a\r"] {
            let ran = slackline(&dir, &[file, &[option, command]].concat());
            assert!(
                ran.code == Some(2) && ran.err.contains("found a carriage return"),
                "{option}: {}",
                ran.err
            );
        }
    }
    assert_eq!(names(&dir), ["f.toml", "in.txt"]);
}

#[test]
fn a_script_whose_first_line_ends_with_a_carriage_return_is_named_where_it_fails() {
    let dir = with_input("paths_script");
    fs::create_dir(dir.join("bin")).unwrap();
    for (script, text) in [
        ("s.sh", "#!/bin/sh\r\ncat\r\n"),
        ("bin/e.sh", "#!/usr/bin/env sh\r\ncat\r\n"),
        ("good.sh", "#!/bin/sh\ncat\n"),
    ] {
        write_program(&dir.join(script), text);
    }
    for (work, script) in [
        ("mapper = './s.sh', files = ['s.sh']", Some("./s.sh")),
        ("mapper = './bin/e.sh'", Some("./bin/e.sh")),
        ("mapper = '\"./s.sh\" | cat', shell = 'bash -o pipefail'", Some("./s.sh")),
        ("command = 'cat in.txt | (./good.sh; ./s.sh)'", Some("./s.sh")),
        ("command = './s.sh', cwd = '.'", Some("./s.sh")),
        ("command = './missing.sh'", None),
    ] {
        fs::write(dir.join("f.toml"), flow(&format!("{work}, inputs = ['in.txt'], output = 'out'"))).unwrap();
        let ran = slackline(&dir, &["run", "f.toml", "--again", "--attempts", "1"]);
        assert_eq!(ran.code, Some(1), "{work}: {}", ran.err);
        let hint = |script| {
            format!("; the first line of {script} ends with a carriage return: save it with LF line ends")
        };
        match script {
            Some(script) => assert!(ran.err.contains(&hint(script)), "{work}: {}", ran.err),
            None => assert!(!ran.err.contains("carriage return"), "{work}: {}", ran.err),
        }
    }
    fs::write(dir.join("f.toml"), flow("mapper = './good.sh', inputs = ['in.txt'], output = 'out'")).unwrap();
    let ran = slackline(&dir, &["run", "f.toml", "--again", "--quiet"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}
