//! Help fits the terminal, and completion scripts of shells have all names.

use crate::{done, program, ran};

/// Every verb, and none for the program itself.
fn verbs() -> Vec<Vec<String>> {
    let help = done(&["--help"]);
    let (listed, _) = help.split_once("\nOptions:\n").expect("verbs are listed");
    let names = listed.lines().filter(|line| line.starts_with("  "));
    // The help of a verb may continue on the next line.
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let verbs: Vec<Vec<String>> = names.map(|name| vec![name.to_owned()]).collect();
    assert!(verbs.len() > 16, "{verbs:?}");
    verbs.into_iter().chain([Vec::new()]).collect()
}

/// The output on a terminal of that many columns.
fn wide(columns: usize, args: &[String]) -> String {
    let output =
        program().args(args).env("COLUMNS", columns.to_string()).output().expect("the program starts");
    let ran = ran(&output);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
    ran.out
}

#[test]
fn help_fits_the_terminal() {
    for verb in verbs() {
        for columns in [80, 100, 200] {
            for flag in ["-h", "--help"] {
                let args = [verb.clone(), vec![flag.to_owned()]].concat();
                let help = wide(columns, &args);
                for line in help.lines() {
                    assert!(line.chars().count() <= columns, "{args:?} at {columns}: {line}");
                }
            }
        }
    }
}

#[test]
fn short_help_fits_a_screen() {
    for verb in verbs() {
        let help = wide(80, &[verb.clone(), vec!["-h".to_owned()]].concat());
        // The program itself has a line for each verb and heading.
        let most = if verb.is_empty() { 58 } else { 40 };
        assert!(help.lines().count() <= most, "{verb:?}: {} lines\n{help}", help.lines().count());
    }
}

/// A paragraph is wrapped once: no line but its last is much shorter than the terminal.
#[test]
fn paragraphs_are_wrapped_once() {
    for verb in ["compare", "tune", "plan", "explain", "run", "history", "repro", "check"] {
        let help = wide(80, &[verb.to_owned(), "--help".to_owned()]);
        let (_, after) = help.split_once("Example").expect("there are examples");
        for paragraph in after.split("\n\n").filter(|text| !text.contains("\n  ")) {
            let lines: Vec<&str> = paragraph.trim_end().lines().collect();
            for pair in lines.windows(2) {
                let next = pair[1].split(' ').next().unwrap_or_default();
                let fits = pair[0].chars().count() + 1 + next.chars().count() <= 80;
                assert!(!fits, "{verb}: {next:?} would fit after {:?}", pair[0]);
            }
        }
    }
}

#[test]
fn options_of_a_format_are_shown_with_its_name() {
    let swim = done(&["import", "--from", "swim", "--help"]);
    assert!(swim.contains("durations=lognormal") && swim.contains("split=128MiB"), "{swim}");
    assert!(
        !swim.contains("seed=") && !swim.contains("properties=") && !swim.contains("runtime-scale="),
        "{swim}"
    );
    assert!(done(&["import", "--from=oozie", "--help"]).contains("properties="));
    for verb in ["import", "compare", "simulate", "tune"] {
        let help = done(&[verb, "--help"]).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            !help.contains("durations=") && help.contains("slackline import --from FORMAT --help"),
            "{help}"
        );
    }
    let args = [
        "compare",
        "-",
        "--machines",
        "2",
        "--slots",
        "2",
        "--from=swim:durations=rate",
        "--policies",
        "fifo",
    ];
    assert_eq!(crate::run_with(&args, crate::TRACE.as_bytes()).code, Some(0));
}

#[test]
fn options_of_an_engine_are_shown_with_its_name() {
    for verb in ["run", "serve"] {
        let help = done(&[verb, "--help"]);
        assert!(help.contains("--slots") && !help.contains("hosts=") && !help.contains("queue="), "{help}");
        let yarn = done(&[verb, "--engine", "yarn:queue=a", "--help"]);
        assert!(yarn.contains("queue=default") && !yarn.contains("hosts="), "{yarn}");
        assert!(done(&[verb, "--engine=ssh", "--help"]).contains("hosts=none"));
    }
}

#[test]
fn an_option_of_an_engine_or_format_is_no_flag() {
    for (args, advice) in [
        (["run", "flow.toml", "--queue", "etl"], "--engine yarn:queue=VALUE"),
        (["compare", "day.tsv", "--durations", "rate"], "--from swim:durations=VALUE"),
    ] {
        let refused = crate::run(&args);
        assert!(refused.code == Some(2) && refused.err.contains(advice), "{}", refused.err);
    }
}

#[test]
fn parameters_of_a_generator_are_shown_with_its_name() {
    let help = done(&["generate", "purdue", "--help"]);
    assert!(help.contains("Parameters of purdue (--set):") && help.contains("\n  jobs="), "{help}");
    assert!(!done(&["generate", "--help"]).contains("Parameters of"));
}

/// Completion scripts of shells have these names.
#[test]
fn scripts_for_shells_know_the_names() {
    for shell in ["bash", "zsh"] {
        let script = done(&["completions", shell]);
        for name in [
            "woha-lpf",      // a policy
            "facebook-day",  // a generator
            "reduce-rate=",  // a parameter of a generator
            "mean_response", // a metric
            "wfformat",      // a format of workloads
            "job-ordering",  // an experiment
            "fig8-total",    // a figure
        ] {
            assert!(script.contains(name), "{name} for {shell}");
        }
    }
    let bash = done(&["completions", "bash"]);
    let simulate = bash.split("slackline__subcmd__simulate)").nth(1).expect("a case of simulate");
    let policy = simulate.split("--policy)").nth(1).and_then(|rest| rest.lines().nth(1)).expect("its values");
    assert!(policy.contains("compgen -W \"fifo fair edf flex "), "{policy}");
}

#[test]
fn the_version_names_the_commit_in_a_checkout() {
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git").args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8(output.stdout).expect("names are text"))
    };
    let version = env!("CARGO_PKG_VERSION");
    let (short, long) = (done(&["-V"]), done(&["--version"]));
    assert!(short.starts_with(&format!("slackline {version}")), "{short}");
    assert!(long.contains("\ncommit: ") && long.contains("\nbuilt for: "), "{long}");
    match git(&["rev-parse", "HEAD"]) {
        Some(_) => {
            let commit = short.trim_end().strip_prefix(&format!("slackline {version} (")).expect("a commit");
            let commit = commit.strip_suffix(')').expect("a closing bracket");
            assert!(git(&["cat-file", "-e", commit]).is_some(), "{commit} is no commit");
            assert!(long.contains(&format!("\ncommit: {commit}")), "{long}");
        }
        None => assert_eq!(short, format!("slackline {version}\n")),
    }
}
