//! Policies that are programs of their own: what they decide is done, and a program that is broken, slow or
//! dead ends the run with an error that says so.
#![cfg(feature = "command")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::Duration;

use slackline::simulate::SimulateError;
use slackline::{Options, PolicySpec, Registry, Simulated, simulate};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PerPhase, TasksDraft};
use slackline_model::{Draft, Instance, Seed, Span};
use slackline_sim::{Crashes, Options as SimOptions};
use slackline_trace::generate::generator;

/// Flows of a job of four maps of ten seconds, released a second after one another, on two machines of two
/// slots.
fn instance(n: usize) -> Instance {
    let map = || Some(TasksDraft::Uniform { tasks: 4, seconds: 10.0 }.into());
    let job = || JobDraft { id: "j".into(), map: map(), ..JobDraft::default() };
    let flow = |k: usize| FlowDraft { release: k as f64, ..FlowDraft::new(format!("f{k}"), vec![job()]) };
    let machine =
        MachineDraft { name: "m".into(), count: 2, speed: 1.0, slots: Slots::Generic(2), rack: None };
    Instance::new(&Draft { machines: vec![machine], flows: (0..n).map(flow).collect(), ..Draft::default() })
        .unwrap()
}

fn named(spec: &str) -> PolicySpec {
    Registry::standard().parse(spec).unwrap()
}

/// A policy that is a script of the shell.
fn script(text: &str) -> PolicySpec {
    assert!(!text.contains('\''), "it is quoted");
    named(&format!("command:sh -c '{text}'"))
}

/// A program that says its style, then answers every line by this command.
fn answering(style: &str, command: &str) -> PolicySpec {
    let hello = format!(r#"read line; echo "{{\"protocol\": 1, \"style\": \"{style}\"}}""#);
    script(&format!("{hello}; while read -r line; do {command}; done"))
}

/// A program that gives this answer to every line.
fn always(style: &str, answer: &str) -> PolicySpec {
    answering(style, &format!(r#"echo "{}""#, answer.replace('"', "\\\"")))
}

fn simulated(policy: &PolicySpec, instance: &Instance) -> Result<Simulated, String> {
    simulate(instance, policy, &Options::exact(), None, None).map_err(|error| match error {
        SimulateError::Policy(failure) => failure,
        other => panic!("{other}"),
    })
}

/// The error of a program that fails.
fn failure(policy: &PolicySpec) -> String {
    simulated(policy, &instance(2)).unwrap_err()
}

/// Completions of the flows of [`instance`].
fn completions(policy: &PolicySpec, n: usize) -> Vec<f64> {
    let done = simulated(policy, &instance(n)).unwrap();
    done.schedule.flows.iter().map(|row| row.completion.unwrap()).collect()
}

#[test]
fn an_order_says_who_comes_first_and_how_many_slots_it_may_hold() {
    // Without an order the phases are served by number.
    assert_eq!(completions(&always("order", "{}"), 3), [10.0, 20.0, 30.0]);
    // Once the third flow has arrived, it comes before the second, which the program no longer names.
    let third = r#"case "$line" in *\"now\":2.0*) echo "{\"order\": [2]}";; *) echo "{}";; esac"#;
    assert_eq!(completions(&answering("order", third), 3), [10.0, 30.0, 20.0]);
    // At most one slot at a time: its four maps run one after the other, the others beside it.
    let narrow = r#"case "$line" in *\"now\":0.0*) echo "{\"order\": [[0, 1]]}";; *) echo "{}";; esac"#;
    assert_eq!(completions(&answering("order", narrow), 1), [40.0]);
    assert_eq!(completions(&answering("order", narrow), 2)[0], 40.0);
}

#[test]
fn targets_divide_the_slots() {
    let both = r#"case "$line" in *\"now\":0.0*) echo "{\"targets\": [[0, 3]]}";; *\"now\":1.0*) echo "{\"targets\": [[1, 1]]}";; *) echo "{}";; esac"#;
    let found = completions(&answering("targets", both), 2);
    assert_eq!(found, [10.0, 20.0], "free slots go to the flow that can use them");
}

#[test]
fn placements_wait_for_their_machine_and_wakes_come() {
    // All on machine 1, two at a time; the second flow is placed when the program is woken.
    let placed = concat!(
        r#"case "$line" in *\"wake\"*) echo "{\"placements\": [[0, 1, 0, 4]]}";; "#,
        r#"*\"now\":0.0*) echo "{\"placements\": [[1, 0, 0, 4]], \"wake\": [7.5]}";; *) echo "{}";; esac"#,
    );
    assert_eq!(completions(&answering("placements", placed), 2), [20.0, 27.5]);
    // What is placed and then cleared is not run by this machine.
    let cleared = concat!(
        r#"case "$line" in *\"now\":1.0*) echo "{\"clear\": true, \"placements\": [[0, 0, 2, 2], [0, 1, 0, 4]]}";; "#,
        r#"*\"now\":0.0*) echo "{\"placements\": [[1, 0, 0, 4]]}";; *) echo "{}";; esac"#,
    );
    assert_eq!(completions(&answering("placements", cleared), 2), [11.0, 31.0]);
}

#[test]
fn a_promise_to_keep_minima_is_in_the_schedule() {
    let hello = r#"read line; echo "{\"protocol\": 1, \"style\": \"targets\", \"minima\": true}""#;
    let keeps = script(&format!(r#"{hello}; while read -r line; do echo "{{}}"; done"#));
    assert!(simulated(&keeps, &instance(1)).unwrap().schedule.minima);
    assert!(!simulated(&always("targets", "{}"), &instance(1)).unwrap().schedule.minima);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let missing = failure(&named("command:no-such-program --x 1"));
    assert!(missing.starts_with(r#"cannot start "no-such-program": No such file"#), "{missing}");
    for (spec, expected) in [
        ("command", "policy command: found no program, expected command:PROGRAM ARGUMENTS"),
        ("command:", "policy command: found no program, expected command:PROGRAM ARGUMENTS"),
        ("command:  ", "policy command: found no program, expected command:PROGRAM ARGUMENTS"),
        ("command:'' x", "policy command: found no program, expected command:PROGRAM ARGUMENTS"),
        ("command:a 'b", "policy command: found a 'b, in which a quote is not closed"),
    ] {
        assert_eq!(Registry::standard().parse(spec).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_program_that_ends_is_named_with_its_last_words() {
    let text = failure(&script("echo first >&2; echo last >&2; exit 3"));
    let expected = "it ended without an answer (exit status: 3)\nthe request was: line 1, hello\n\
                    its standard error ends:\n  first\n  last";
    assert_eq!(text, expected);
    let later = failure(&script(
        r#"read line; echo "{\"protocol\": 1, \"style\": \"order\"}"; read line; kill -9 $$"#,
    ));
    assert!(later.starts_with("it ended without an answer (signal: 9 (SIGKILL))\n"), "{later}");
    assert!(later.ends_with("the request was: line 2, 2 events at 0 s"), "{later}");
}

#[test]
fn a_program_that_closes_its_side_gets_that_error() {
    let hello = r#"read line; echo "{\"protocol\": 1, \"style\": \"order\"}""#;
    for closed in ["exec 0<&-; sleep 100", "exec 1>&-; sleep 100"] {
        let text = failure(&script(&format!("{hello}; {closed}")));
        assert!(text.starts_with("it closed its standard input or output without an answer\n"), "{text}");
    }
}

#[test]
fn the_output_of_a_program_before_its_end_is_in_the_error() {
    // It has ended before it is asked, more often than not.
    for _ in 0..20 {
        let text = failure(&script("echo nonsense"));
        assert!(text.ends_with("\nit answered: nonsense"), "{text}");
    }
}

#[test]
fn a_program_that_is_late_is_an_error_even_if_it_does_not_read() {
    let slow = script("sleep 100").with_timeout(Duration::from_millis(200));
    let text = failure(&slow);
    assert!(text.starts_with("no answer within 0.2 s, expected one line for each that it reads"), "{text}");
    // More than a pipe holds, and no process reads it.
    let hello = r#"read line; echo "{\"protocol\": 1, \"style\": \"order\"}"; sleep 100"#;
    let mut draft = Draft::default();
    draft.machines.push(MachineDraft {
        name: "m".into(),
        count: 1,
        speed: 1.0,
        slots: Slots::Generic(1),
        rack: None,
    });
    let map = || Some(TasksDraft::Uniform { tasks: 1, seconds: 1.0 }.into());
    let flow = |k: usize| {
        let job = JobDraft { id: "j".into(), map: map(), ..JobDraft::default() };
        FlowDraft::new(format!("f{k}"), vec![job])
    };
    draft.flows = (0..2000).map(flow).collect();
    let deaf = script(hello).with_timeout(Duration::from_millis(500));
    let text = simulated(&deaf, &Instance::new(&draft).unwrap()).unwrap_err();
    assert!(text.starts_with("no answer within 0.5 s"), "{text}");
    assert!(text.contains("line 2, 4000 events at 0 s"), "{text}");
}

#[test]
fn an_answer_that_is_none_is_shown_with_what_was_expected() {
    for (style, answer, expected) in [
        ("order", "hello", "found no JSON object, expected one, such as {} for no change"),
        ("order", "[]", "found no JSON object, expected one"),
        ("order", "", "found no JSON object, expected one"),
        ("order", r#"{"order": [0"#, "column 12: "),
        ("order", r#"{"ordre": [0]}"#, "unknown field `ordre`, expected one of `order`, `targets`"),
        (
            "order",
            r#"{"order": [7]}"#,
            "order[0]: found phase 7, expected the number of a phase that has arrived",
        ),
        (
            "order",
            r#"{"order": [0, 0]}"#,
            "order[1]: found phase 0 a second time, expected each at most once",
        ),
        (
            "order",
            r#"{"order": [-1]}"#,
            "order[0]: found -1, expected the number of a phase, or [phase, most",
        ),
        ("order", r#"{"order": [[0]]}"#, "order[0]: found another list, expected the number of a phase, or"),
        (
            "order",
            r#"{"order": [[0, 1, 2]]}"#,
            "order[0]: found another list, expected the number of a phase",
        ),
        ("order", r#"{"targets": [[0, 1]]}"#, "found targets, expected order, the style chosen at hello"),
        ("targets", r#"{"order": []}"#, "found order, expected targets, the style chosen at hello"),
        ("targets", r#"{"targets": [[0, -3]]}"#, "targets[0]: found -3 slots, expected a number from 0"),
        ("targets", r#"{"targets": [[0, 1e999]]}"#, "found 1e999, a number out of range"),
        ("targets", r#"{"targets": [[0, Infinity]]}"#, "column 1"),
        ("targets", r#"{"targets": [[0]]}"#, "targets[0]: found a list of 1, expected one of 2"),
        ("targets", r#"{"targets": [[0, "x"]]}"#, "targets[0][1]: found text"),
        (
            "placements",
            r#"{"placements": [[2, 0, 0, 1]]}"#,
            "placements[0]: found machine 2, expected the number of a machine, from 0 to 1",
        ),
        (
            "placements",
            r#"{"placements": [[0, 0, 3, 2]]}"#,
            "placements[0]: found 2 tasks that start at task 3 of phase 0, expected at least 1 of its 4 tasks, numbered from 0",
        ),
        (
            "placements",
            r#"{"placements": [[0, 0, 4294967295, 2]]}"#,
            "placements[0]: found 2 tasks that start at task 4294967295 of",
        ),
        (
            "placements",
            r#"{"placements": [[0, 0, 0, 0]]}"#,
            "placements[0]: found 0 tasks that start at task 0 of",
        ),
        ("placements", r#"{"targets": [[0, 1]]}"#, "found targets, expected placements"),
        ("order", r#"{"wake": [0]}"#, "wake[0]: found 0 s, expected a time after 0 s"),
        ("order", r#"{"wake": [1e300]}"#, "wake[0]: found 1"),
        ("order", r#"{"wake": [1e-9]}"#, "wake[0]: found 0.000000001 s, expected a time after 0 s"),
    ] {
        let text = failure(&always(style, answer));
        assert!(text.lines().next().unwrap().contains(expected), "{answer}: {text}");
        let context = format!("\nthe request was: line 2, 2 events at 0 s\nit answered: {answer}");
        assert!(text.ends_with(&context), "{text}");
    }
}

#[test]
fn a_hello_of_another_protocol_is_refused() {
    for (answer, expected) in [
        (
            r#"{"protocol": 2, "style": "order", "new": 1}"#,
            "protocol: found 2, expected 1, the version of this slackline",
        ),
        (r#"{"style": "order"}"#, "missing field `protocol`"),
        (r#"{"protocol": 1}"#, "missing field `style`"),
        (
            r#"{"protocol": 1, "style": "ordre"}"#,
            "style: found \"ordre\", expected one of order, targets, placements; did you mean",
        ),
        (r#"{"protocol": 1, "style": "order", "minimum": true}"#, "unknown field `minimum`"),
        ("Python 2.7", "found no JSON object"),
    ] {
        let text = failure(&script(&format!(r#"read line; echo "{}"; cat"#, answer.replace('"', "\\\""))));
        assert!(text.lines().next().unwrap().contains(expected), "{text}");
        assert!(
            text.ends_with(&format!("\nthe request was: line 1, hello\nit answered: {answer}")),
            "{text}"
        );
    }
}

#[test]
fn a_phase_of_a_finished_flow_is_refused() {
    let text = failure(&answering(
        "targets",
        r#"case "$line" in *flow-done*) echo "{\"targets\": [[0, 1]]}";; *) echo "{}";; esac"#,
    ));
    let expected =
        "targets[0]: found phase 0, whose flow has finished or failed, expected a phase of an active flow\n";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn an_unasked_line_is_an_error() {
    let twice = script(
        r#"read line; printf "%s\n%s\n" "{\"protocol\": 1, \"style\": \"order\"}" "{\"order\": []}"; cat"#,
    );
    let text = failure(&twice);
    assert!(
        text.starts_with("it wrote a line before it was asked, expected one for each it reads\n"),
        "{text}"
    );
    assert!(text.contains(r#"it answered: {"order": []}"#), "{text}");
    let endless = failure(&script("yes | tr -d \"\\n\""));
    assert!(endless.starts_with("its answer is too long, expected one line\n"), "{endless}");
}

#[test]
fn long_answers_are_cut_and_bytes_that_are_no_text_are_shown() {
    let long = failure(&always("order", &"x".repeat(1000)));
    assert!(long.contains(&format!("it answered: {}… (700 characters more)", "x".repeat(300))), "{long}");
    let bytes = failure(&answering("order", r#"printf "{\377\033[1m}\n""#));
    assert!(bytes.contains("it answered: {\u{fffd}\\u001b[1m}"), "{bytes}");
}

/// The process that wrote its number into a file, once it is gone.
fn is_gone(file: &Path) -> bool {
    let pid: u32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn the_program_is_ended_and_waited_for_in_every_case() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let note = format!("echo $$ > {}", file.display());
    let hello = r#"read line; echo "{\"protocol\": 1, \"style\": \"order\"}""#;
    let answers = r#"while read -r line; do echo "{}"; done"#;
    // One that ends when its input ends, one that ends only at a signal, one that has to be killed.
    for after in ["", "sleep 100", r#"trap "" TERM; while :; do sleep 1; done"#] {
        let policy = script(&format!("{note}; {hello}; {answers}; {after}"));
        assert_eq!(completions(&policy, 1), [10.0]);
        assert!(is_gone(&file), "{after}");
    }
    // And those that fail.
    for wrong in ["echo nonsense; sleep 100", "sleep 100"] {
        let policy = script(&format!("{note}; {wrong}")).with_timeout(Duration::from_millis(300));
        failure(&policy);
        assert!(is_gone(&file), "{wrong}");
    }
}

#[test]
fn a_list_of_policies_ends_with_the_first_program() {
    let specs = |text: &str| -> Vec<String> {
        let policies = Registry::standard().parse_several(text).unwrap();
        policies.iter().map(|policy| policy.spec().to_owned()).collect()
    };
    assert_eq!(
        specs("fifo,fair:by=flow,command:python3 a.py --x 1,2 --y edf:z"),
        ["fifo", "fair:by=flow", "command:python3 a.py --x 1,2 --y edf:z"]
    );
    assert_eq!(specs("command:a,fifo"), ["command:a,fifo"]);
    assert_eq!(specs("edf,all").len(), specs("all").len() + 1);
    assert!(Registry::standard().parse_several("fifo,,edf").is_err());
    assert!(
        Registry::standard().parse("comand:x").unwrap_err().to_string().contains("did you mean \"command\"")
    );
}

#[test]
fn programs_have_files_of_their_own_names() {
    let name = |spec: &str| named(spec).file_name();
    assert_eq!(name("fair:by=flow"), "fair-by-flow");
    let (one, other) = (name("command:a/b.py x"), name("command:a/b.py-x"));
    assert!(one.starts_with("command-a-b.py-x-") && other.starts_with("command-a-b.py-x-"), "{one} {other}");
    assert_ne!(one, other);
    assert!(name(&format!("command:{}", "x".repeat(1000))).len() < 100);
}

/// Whether there is a Python interpreter.
fn has_python() -> bool {
    std::process::Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The example in Python.
fn example() -> PolicySpec {
    named(concat!("command:python3 '", env!("CARGO_MANIFEST_DIR"), "/../../examples/edf.py'"))
}

#[test]
fn the_python_example_schedules_a_thousand_flows_as_its_twin() {
    if !has_python() {
        eprintln!("SKIPPED: found no python3, expected one to start the example in Python");
        return;
    }
    let settings = [("flows", "1000"), ("jobs", "1..4"), ("maps", "1..12"), ("gap", "17"), ("machines", "4")];
    let mut draft = generator("flowflex-5.2").unwrap().generate(&settings, Seed(7)).unwrap();
    // Some without a deadline, and some that are equal in all but their numbers.
    let mut before = 0.0;
    for (k, flow) in draft.flows.iter_mut().enumerate() {
        match k % 7 {
            0 => before = flow.release,
            1 | 2 => (flow.release, flow.deadline) = (before, Some(before + 100.0)),
            slack => flow.deadline = Some(flow.release + 30.0 * slack as f64),
        }
    }
    let instance = Instance::new(&draft).unwrap();
    assert_eq!(instance.flows().len(), 1000);
    let crashes = Crashes::Rate { between: Span(3_600_000_000), repair: Span(60_000_000) };
    let mut faults = SimOptions::exact();
    faults.crashes = crashes;
    let plain = Options::exact();
    for options in [plain.clone(), Options { sim: faults, slowstart: 0.3, ..plain }] {
        let of = |policy: &PolicySpec| simulate(&instance, policy, &options, None, None).unwrap();
        let (ours, twin) = (of(&example()), of(&named("edf")));
        assert!(ours.schedule.tasks == twin.schedule.tasks, "the schedules differ");
        assert_eq!((ours.schedule.cost, ours.decisions), (twin.schedule.cost, twin.decisions));
    }
}

#[test]
fn minima_that_are_promised_and_not_kept_are_found() {
    let map = Some(TasksDraft::Uniform { tasks: 4, seconds: 10.0 }.into());
    let job = JobDraft {
        id: "j".into(),
        map,
        min_slots: PerPhase { map: Some(2), reduce: None },
        ..JobDraft::default()
    };
    let first = JobDraft { min_slots: PerPhase::default(), ..job.clone() };
    let flows = vec![FlowDraft::new("a", vec![first]), FlowDraft::new("b", vec![job])];
    let machine =
        MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(2), rack: None };
    let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
    let hello = r#"read line; echo "{\"protocol\": 1, \"style\": \"order\", \"minima\": true}""#;
    let policy = script(&format!(r#"{hello}; while read -r line; do echo "{{}}"; done"#));
    let found = simulate(&instance, &policy, &Options::exact(), None, None).unwrap_err();
    assert!(matches!(found, SimulateError::Infeasible(_)), "{found}");
}
