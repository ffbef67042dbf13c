//! The contract's pair, round trips, refusals.

use proptest::prelude::*;
use serde_json::Value;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::schedule::{
    AmRow, Clock, FlowResult, FlowRow, NewRow, Origin, Outcome, Segment, TaskRows,
};
use slackline_model::{FlowId, Instance, JobId, Objective, PhaseId, Profile, SlotRange, Span, Time};

use super::*;
use crate::{ImportOptions, TraceError, read_workload, sha256};

fn example(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../examples/contract/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn contract() -> (Instance, Schedule, Meta) {
    let bytes = example("workload.toml");
    let imported = read_workload("workload.toml", &bytes, None, &ImportOptions::default()).unwrap();
    let instance = Instance::new(&imported.draft).unwrap();
    let (schedule, meta) = read_schedule("schedule.json", &example("schedule.json"), &instance).unwrap();
    assert_eq!(meta.sha256, imported.sha256);
    (instance, schedule, meta)
}

fn written(instance: &Instance, schedule: &Schedule, meta: &Meta) -> String {
    let mut out = Vec::new();
    write_schedule(&mut out, instance, schedule, meta).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_contracts_pair_is_read_and_written_again() {
    let (instance, schedule, meta) = contract();
    assert_eq!(instance.cost_of(&[17.5, 15.0]), 47.5);
    assert_eq!((schedule.cost, schedule.allocations.len()), (Some(47.5), 4));
    assert_eq!(meta, read_schedule_head("schedule.json", &example("schedule.json")).unwrap().meta);
    assert_eq!(meta.status, status(schedule.cost, schedule.lower_bound));
    let original = String::from_utf8(example("schedule.json")).unwrap();
    assert_eq!(written(&instance, &schedule, &meta), original);
}

#[test]
fn schedules_come_in_yaml_and_toml_too() {
    let (instance, schedule, meta) = contract();
    let json: Value = serde_json::from_slice(&example("schedule.json")).unwrap();
    let toml = toml::to_string(&json).unwrap();
    assert_eq!(
        read_schedule("s.toml", toml.as_bytes(), &instance).unwrap(),
        (schedule.clone(), meta.clone())
    );
    let yaml = example("schedule.json");
    assert_eq!(read_schedule("s.yaml", &yaml, &instance).unwrap(), (schedule, meta));
}

#[test]
fn a_row_that_is_a_list_is_refused_in_every_form() {
    let (instance, ..) = contract();
    let mut json: Value = serde_json::from_slice(&example("schedule.json")).unwrap();
    json["allocations"][1] = serde_json::json!(["a", "a", "map", 0.0, 15.0, 2]);
    let toml = toml::to_string(&json).unwrap();
    let (json, expected) = (json.to_string(), "allocations[1]: found a list, expected a table");
    for (name, text) in [("s.json", &json), ("s.yaml", &json), ("s.toml", &toml)] {
        let error = read_schedule(name, text.as_bytes(), &instance).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn words_for_how_close_it_is() {
    assert_eq!(status(Some(47.5), Some(40.0)), "at most 18.8 % above optimal");
    assert_eq!(status(Some(40.0), Some(40.0)), "optimal");
    assert_eq!(status(Some(44.0), Some(40.0)), "at most 10.0 % above optimal");
    assert_eq!(status(Some(40.01), Some(40.0)), "at most 0.1 % above optimal");
    assert_eq!(gap_text(2.4e-14), "0.0 %");
    assert_eq!(status(Some(1.5), Some(-2.0)), "at most 3.5 above optimal");
    assert_eq!(status(Some(587.536_781_926_407), Some(0.0)), "at most 587.6 above optimal");
    assert_eq!(status(Some(4.635), Some(1.0)), "at most 363.5 % above optimal");
    assert_eq!(gap_text(0.155_01), "15.6 %");
    assert_eq!(status(Some(1.0), None), "no bound");
    assert_eq!(status(None, Some(1.0)), "no cost");
}

/// Two groups with map and reduce slots; a job with 40 maps and 10 reduces in flow `f "1"`.
fn instance() -> Instance {
    let machine =
        |name: &str, count, slots| MachineDraft { name: name.into(), count, speed: 1.0, slots, rack: None };
    let uniform = |tasks| Some(TasksDraft::Uniform { tasks, seconds: 5.0 }.into());
    let job = JobDraft { id: "j/1".into(), map: uniform(40), reduce: uniform(10), ..JobDraft::default() };
    let only = JobDraft { id: "m".into(), map: uniform(40), ..JobDraft::default() };
    Instance::new(&Draft {
        machines: vec![
            machine("node", 4, Slots::MapReduce { map: 3, reduce: 1 }),
            machine("a/b", 1, Slots::MapReduce { map: 2, reduce: 2 }),
        ],
        flows: vec![FlowDraft::new("f \"1\"", vec![job, only])],
        ..Draft::default()
    })
    .unwrap()
}

fn schedule(tasks: TaskRows) -> Schedule {
    Schedule {
        policy: "fifo".into(),
        minima: false,
        clock: Clock::Measured,
        slowstart: 0.05,
        profile: None,
        segments: Vec::new(),
        objective: Objective::default(),
        cost: Some(3.0),
        lower_bound: Some(0.0),
        gap: None,
        metrics: vec![("tasks".into(), 5.0), ("makespan".into(), 0.1)],
        flows: vec![FlowRow {
            flow: FlowId(0),
            release: 0.0,
            start: None,
            completion: None,
            cost: None,
            status: FlowResult::Failed,
        }],
        tasks,
        ams: Vec::new(),
        allocations: Vec::new(),
    }
}

fn row(phase: u32, first: u32, count: u32) -> NewRow {
    let (start, end) = (Time(1), Time(5_000_001));
    let startup = Span::ZERO;
    NewRow { phase: PhaseId(phase), first, count, start, end, startup, attempt: 1, outcome: Outcome::Lost }
}

#[test]
fn rows_name_their_slots_machine_by_machine() {
    let instance = instance();
    let mut tasks = TaskRows::new();
    tasks.push(row(0, 0, 6), &[SlotRange { first: 1, len: 5 }, SlotRange { first: 13, len: 1 }]);
    tasks.push(row(1, 7, 1), &[SlotRange { first: 5, len: 1 }]);
    let schedule = schedule(tasks);
    let meta = Meta { options: [("split".into(), "64MiB".into())].into(), seed: u64::MAX, ..Meta::default() };
    let text = written(&instance, &schedule, &meta);
    let rows: Vec<_> = text.lines().filter(|line| line.contains("\"task\": ")).collect();
    assert_eq!(
        rows,
        [
            "    {\"flow\": \"f \\\"1\\\"\", \"job\": \"j/1\", \"phase\": \"map\", \"task\": 0, \"count\": 6, \
             \"places\": [\"node-0/1-2\", \"node-1/0-2\", \"a/b/1\"], \
             \"start\": 1e-6, \"end\": 5.000001, \"attempt\": 1, \"outcome\": \"lost\"},",
            "    {\"flow\": \"f \\\"1\\\"\", \"job\": \"j/1\", \"phase\": \"reduce\", \"task\": 7, \
             \"machine\": \"a/b\", \"slot\": 3, \
             \"start\": 1e-6, \"end\": 5.000001, \"attempt\": 1, \"outcome\": \"lost\"}",
        ]
    );
    assert!(text.contains("\"gap\": null,\n  \"gap_absolute\": 3.0,"));
    assert_eq!(read_schedule("s.json", text.as_bytes(), &instance).unwrap(), (schedule, meta));
}

/// The schedule under a profile, with an ApplicationMaster on a slot and one that was stopped before it was
/// up.
fn under_profile() -> Schedule {
    let mut tasks = TaskRows::new();
    tasks.push(NewRow { startup: Span(500_000), ..row(0, 0, 1) }, &[SlotRange { first: 1, len: 1 }]);
    let (start, end) = (Time(1), Time(9_000_000));
    let done = AmRow {
        job: JobId(0),
        slot: Some(13),
        start,
        up: Some(Time(2_500_000)),
        end,
        outcome: Outcome::Done,
    };
    let killed = AmRow { slot: None, up: None, outcome: Outcome::Killed, ..done };
    let profile = Profile::parse("hadoop:am-share=0.5:container-start=0.25..1").unwrap();
    Schedule { profile, ams: vec![done, killed], ..schedule(tasks) }
}

#[test]
fn profiles_ams_and_starts_come_back() {
    let (instance, schedule) = (instance(), under_profile());
    let text = written(&instance, &schedule, &Meta::default());
    assert!(text.contains("\"am-linger\":5.2") && text.contains("\"container-start\":\"0.25..1\""), "{text}");
    assert!(text.contains("\"startup\": 0.5, \"attempt\""), "{text}");
    let am = "\"machine\": \"a/b\", \"slot\": 1, \"start\": 1e-6, \"up\": 2.5, \"end\": 9.0}";
    assert!(text.contains(am), "{text}");
    assert_eq!(read_schedule("s.json", text.as_bytes(), &instance).unwrap().0, schedule);
}

/// The choices of a policy, in the current format and an earlier one.
fn chosen() -> Meta {
    let now = Choice {
        at: 1.5,
        rule: "due:x=0.1:tail=no".into(),
        by: Some(ChosenBy::Search),
        cost: None,
        flows: 3,
        bound: Some(2.0),
    };
    let before = Choice { rule: "due".into(), by: None, cost: Some(4.0), bound: None, ..now.clone() };
    Meta { choices: vec![now, before], ..Meta::default() }
}

#[test]
fn choices_of_auto_are_read_back() {
    let (instance, schedule) = (instance(), schedule(TaskRows::new()));
    let meta = Meta { winner: Some("a search".into()), ..chosen() };
    let text = written(&instance, &schedule, &meta);
    assert!(text.contains("\"rule\":\"due:x=0.1:tail=no\",\"by\":\"search\""), "{text}");
    assert!(text.contains("\"winner\": \"a search\""), "{text}");
    assert_eq!(read_schedule("s.json", text.as_bytes(), &instance).unwrap().1, meta);
    let text = in_lines(&instance, &schedule, &chosen());
    assert_eq!(text.lines().filter(|line| line.contains("\"rule\":\"due")).count(), 2, "{text}");
    assert_eq!(read_schedule("s.jsonl", text.as_bytes(), &instance).unwrap().1, chosen());
    let wrong = text.replace("\"by\":\"search\"", "\"by\":\"chance\"");
    let error = read_schedule("s.jsonl", wrong.as_bytes(), &instance).unwrap_err().to_string();
    assert!(error.contains("kept") && error.contains("chance"), "{error}");
}

#[test]
fn a_stream_hands_on_what_was_chosen() {
    let (instance, schedule) = (instance(), schedule(TaskRows::new()));
    let text = in_lines(&instance, &schedule, &chosen());
    let mut stream = ScheduleStream::open("s.jsonl", std::io::Cursor::new(text.into_bytes())).unwrap();
    let head = stream.head(&instance).unwrap();
    let mut choices = Vec::new();
    loop {
        match stream.next_line(&head).unwrap() {
            StreamedLine::Choice(choice) => choices.push(choice),
            StreamedLine::Last(..) => break,
            StreamedLine::Row(_) | StreamedLine::Flow(_) => {}
        }
    }
    assert_eq!(choices, chosen().choices);
}

#[test]
fn a_profile_that_is_none_is_refused_where_it_stands() {
    let (instance, schedule) = (instance(), under_profile());
    let text = written(&instance, &schedule, &Meta::default()).replace("\"am-linger\"", "\"am-lingers\"");
    let error = read_schedule("s.json", text.as_bytes(), &instance).unwrap_err().to_string();
    assert!(error.contains("found parameter \"am-lingers\"") && error.contains("did you mean"), "{error}");
}

#[test]
fn rows_of_another_workload_are_a_mismatch() {
    let instance = instance();
    let mut tasks = TaskRows::new();
    tasks.push(row(0, 0, 2), &[SlotRange { first: 1, len: 2 }]);
    tasks.push(row(1, 7, 1), &[SlotRange { first: 5, len: 1 }]);
    let text = written(&instance, &schedule(tasks), &Meta::default());
    let error = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}\n{text}");
        read_schedule("s.json", text.replacen(from, to, 1).as_bytes(), &instance).unwrap_err()
    };
    let mismatches = [
        (
            "\"flow\": \"f \\\"1\\\"\", \"release\"",
            "\"flow\": \"x\", \"release\"",
            "flows[0].flow: found flow \"x\"",
        ),
        (
            "j/1",
            "j/2",
            "s.json:21:32: tasks[0].job: found job \"j/2\", which flow \"f \\\"1\\\"\" does not have",
        ),
        (
            "\"j/1\", \"phase\": \"reduce\"",
            "\"m\", \"phase\": \"reduce\"",
            "tasks[1].phase: found a reduce phase",
        ),
        ("node-0/1-2", "node-9/1-2", "tasks[0].places[0]: found machine \"node-9\""),
        ("node-0/1-2", "node-0/2-3", "found slot 3 of machine \"node-0\", which is no slot of map tasks"),
        ("\"slot\": 3", "\"slot\": 0", "s.json:22:95: tasks[1].slot: found slot 0 of machine \"a/b\""),
        ("\"gap_absolute\": 3.0", "\"gap_absolute\": 2.0", "s.json:14:19: gap_absolute: found 2, but"),
    ];
    for (from, to, expected) in mismatches {
        match error(from, to) {
            TraceError::Mismatch(faults) => {
                assert!(faults.to_string().contains(expected), "{faults}\n{expected}");
            }
            TraceError::Input(faults) => panic!("{faults}"),
        }
    }
    let inputs = [
        ("node-0/1-2", "node-0/2-1", "expected \"machine/slot\" or \"machine/first-last\""),
        ("node-0/1-2", "node-0/1", "tasks[0].places: found 1 slots, expected as many as tasks: 2"),
        ("\"count\": 2", "\"count\": 0", "tasks[0].count: found 0 tasks"),
        (
            "\"task\": 0",
            "\"task\": 4294967295",
            "tasks[0].count: found 2 tasks that start at task 4294967295, expected at least 1 task, numbered below 4294967295",
        ),
        ("\"slot\": 3", "\"slots\": 3", "s.json:22:87: tasks[1]: unknown field `slots`"),
        ("\"slot\": 3, ", "", "found neither `machine` with `slot`"),
        ("\"start\": 1e-6", "\"start\": -1", "tasks[0].start: found -1, expected seconds from 0"),
        ("\"start\": 1e-6", "\"start\": 1e999", "found 1e999, a number out of range"),
        ("\"attempt\": 1", "\"attempt\": 65536", "expected a whole number from 0 to 65535"),
        ("\"outcome\": \"lost\"", "\"outcome\": \"lots\"", "expected one of done, failed, killed, lost"),
        ("\"slowstart\": 0.05", "\"slowstart\": 5", "slowstart: found 5, expected a fraction"),
        ("\"slackline\": 1", "\"slackline\": 7, \"new\": 1", "found slackline = 7, expected version 1"),
    ];
    for (from, to, expected) in inputs {
        match error(from, to) {
            TraceError::Input(faults) => {
                assert!(faults.to_string().contains(expected), "{faults}\n{expected}");
            }
            TraceError::Mismatch(faults) => panic!("{faults}"),
        }
    }
}

/// The same schedule as lines, each flow after the rows.
fn in_lines(instance: &Instance, schedule: &Schedule, meta: &Meta) -> String {
    let Schedule { minima, clock, slowstart, .. } = *schedule;
    let origin = Origin { policy: schedule.policy.clone(), minima, clock, slowstart, profile: None };
    let mut out = Vec::new();
    let mut lines = ScheduleLines::new(&mut out);
    lines.begin(instance, &origin, meta).unwrap();
    for row in schedule.tasks.rows() {
        lines.row(instance, &row.into(), schedule.tasks.places(row)).unwrap();
    }
    for flow in &schedule.flows {
        lines.flow(instance, flow).unwrap();
    }
    lines.end(schedule, meta).unwrap();
    String::from_utf8(out).unwrap()
}

/// A schedule of two rows in lines, of [`instance`].
fn two_rows_in_lines() -> String {
    let mut tasks = TaskRows::new();
    tasks.push(row(0, 0, 2), &[SlotRange { first: 1, len: 2 }]);
    tasks.push(row(1, 7, 1), &[SlotRange { first: 5, len: 1 }]);
    let meta = Meta {
        version: "0.1.0".into(),
        sha256: "ab12".into(),
        options: [("split".into(), "64MiB".into())].into(),
        seed: 7,
        status: "no cost".into(),
        ..Meta::default()
    };
    in_lines(&instance(), &schedule(tasks), &meta)
}

#[test]
fn lines_have_a_fixed_form() {
    let text = two_rows_in_lines();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "{\"slackline\":1,\"version\":\"0.1.0\",\"options\":{\"split\":\"64MiB\"},\"seed\":7,\
             \"policy\":\"fifo\",\"minima\":false,\"clock\":\"measured\",\"slowstart\":0.05,\
             \"objective\":{\"metric\":\"response\",\"combine\":\"sum\"},\"cluster\":{\"machines\":[\
             {\"name\":\"node\",\"count\":4,\"speed\":1.0,\"slots\":{\"map\":3,\"reduce\":1}},\
             {\"name\":\"a/b\",\"count\":1,\"speed\":1.0,\"slots\":{\"map\":2,\"reduce\":2}}]}}",
            "{\"flow\": \"f \\\"1\\\"\", \"job\": \"j/1\", \"phase\": \"map\", \"task\": 0, \"count\": 2, \
             \"places\": [\"node-0/1-2\"], \
             \"start\": 1e-6, \"end\": 5.000001, \"attempt\": 1, \"outcome\": \"lost\"}",
            "{\"flow\": \"f \\\"1\\\"\", \"job\": \"j/1\", \"phase\": \"reduce\", \"task\": 7, \
             \"machine\": \"a/b\", \"slot\": 3, \
             \"start\": 1e-6, \"end\": 5.000001, \"attempt\": 1, \"outcome\": \"lost\"}",
            "{\"flow\": \"f \\\"1\\\"\", \"release\": 0.0, \"start\": null, \"completion\": null, \"cost\": null, \
             \"status\": \"failed\"}",
            "{\"sha256\":\"ab12\",\"cost\":3.0,\"lower_bound\":0.0,\"gap\":null,\"gap_absolute\":3.0,\
             \"status\":\"no cost\",\"metrics\":{\"tasks\":5.0,\"makespan\":0.1}}",
        ]
    );
    // By its name, or by its first line if the name does not show it.
    for name in ["s.jsonl", "s.jsonl.gz", "stdin"] {
        let (read, meta) = read_schedule(name, text.as_bytes(), &instance()).unwrap();
        assert_eq!((read.flows.len(), read.tasks.len(), meta.seed, meta.sha256.as_str()), (1, 2, 7, "ab12"));
        assert_eq!(in_lines(&instance(), &read, &meta), text);
        assert_eq!(
            read_schedule_head(name, text.as_bytes()).unwrap(),
            Head { meta, has_tasks: true, is_in_lines: true }
        );
    }
    assert!(read_schedule("s.json", text.as_bytes(), &instance()).is_err(), "no document is two documents");
}

#[test]
fn lines_that_end_too_early_are_cut_off_and_too_late_are_refused() {
    let text = two_rows_in_lines();
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    let error = |text: &str| {
        let head = read_schedule_head("s.jsonl", text.as_bytes()).unwrap_err().to_string();
        assert!(read_schedule("s.jsonl", text.as_bytes(), &instance()).is_err());
        head
    };
    for (n, &end) in ends[..ends.len() - 1].iter().enumerate() {
        let expected = format!("s.jsonl:{}:1: found the end of the file after this line", n + 1);
        assert!(error(&text[..end]).starts_with(&expected), "{}", error(&text[..end]));
        let expected = format!("s.jsonl:{}:1: found the end of the file after this line", n + 2);
        assert!(error(&text[..end + 9]).starts_with(&expected), "{}", error(&text[..end + 9]));
    }
    assert_eq!(error(""), "s.jsonl: found nothing, expected a schedule in lines");
    let again = format!("{text}{}", &text[ends[0]..ends[1]]);
    assert!(error(&again).starts_with("s.jsonl:6:1: found the end of the file"));
    let twice = format!("{text}{}", &text[ends[3]..]);
    let error = read_schedule("s.jsonl", twice.as_bytes(), &instance()).unwrap_err().to_string();
    assert_eq!(error, "s.jsonl:6:1: found a line after the line with `sha256`, which ends a schedule");
}

#[test]
fn errors_in_lines_have_the_number_of_the_line() {
    let text = two_rows_in_lines();
    for (from, to, line, expected) in [
        ("\"slackline\":1", "\"slackline\":2", 1, "found slackline = 2, expected version 1"),
        ("\"slowstart\":0.05", "\"slowstart\":5", 1, "slowstart: found 5, expected a fraction"),
        ("\"map\":2", "\"map\":1", 1, "cluster: found other machines than those of the workload"),
        ("\"task\": 7", "\"task\": -7", 3, "task: found -7, expected a whole number"),
        ("\"slot\": 3", "\"slots\": 3", 3, "unknown field `slots`"),
        ("\"slot\": 3", "\"slot\": 4", 3, "slot: found slot 4 of machine \"a/b\""),
        ("\"release\": 0.0", "\"release\": -1", 4, "release: found -1, expected seconds"),
        ("\"release\"", "\"released\"", 4, "unknown field `released`"),
        ("\"gap_absolute\":3.0", "\"gap_absolute\":2", 5, "gap_absolute: found 2, but"),
        ("{\"flow\": \"f \\\"1\\\"\", \"release\"", "{\"release\"", 4, "found a line of an unknown kind"),
        ("{\"flow\": \"f \\\"1\\\"\", \"release\"", "[\"release\"", 4, ""),
    ] {
        assert!(text.contains(from), "{from}\n{text}");
        let wrong = text.replacen(from, to, 1);
        let error = read_schedule("s.jsonl", wrong.as_bytes(), &instance()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("s.jsonl:{line}:")) && error.contains(expected),
            "{error}\n{expected}"
        );
    }
    let mut bytes = text.into_bytes();
    let at = bytes.iter().rposition(|&byte| byte == b'j').unwrap();
    bytes[at] = 0xff;
    let error = read_schedule("s.jsonl", &bytes, &instance()).unwrap_err().to_string();
    assert!(
        error.starts_with("s.jsonl:3:") && error.ends_with("found byte 0xff, expected UTF-8 text"),
        "{error}"
    );
}

#[test]
fn the_hash_is_the_standard_one() {
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn rows_come_back(
        runs in prop::collection::vec((0..14u32, 1..10u32, 0..40u32, 0..1u64 << 50, any::<u16>()), 1..6),
        cost in prop::option::of(-1e9..1e9f64),
    ) {
        let instance = instance();
        let mut tasks = TaskRows::new();
        for (slot, len, first, at, attempt) in runs {
            let count = len.min(14 - slot);
            let (start, end) = (Time(at), Time(at + 7));
            let startup = Span(at % 8);
            let row = NewRow { first, count, start, end, startup, attempt, ..row(0, 0, 1) };
            tasks.push(row, &[SlotRange { first: slot, len: count }]);
        }
        let schedule = Schedule { cost, ..schedule(tasks) };
        let text = written(&instance, &schedule, &Meta::default());
        let (again, _) = read_schedule("s.json", text.as_bytes(), &instance).expect("it was just written");
        prop_assert_eq!(again, schedule);
    }

    #[test]
    fn damaged_schedules_are_survived(
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), prop::sample::select(b"[]{}\":,=.- 019e".to_vec())],
        name in prop::sample::select(vec!["s.json", "s.jsonl", "s.toml", "s.yaml", "-"]),
    ) {
        let (instance, ..) = contract();
        let mut bytes = if name == "s.jsonl" { two_rows_in_lines().into_bytes() } else { example("schedule.json") };
        let survive = |bytes: &[u8]| {
            let _ = read_schedule_head(name, bytes);
            let _ = read_schedule(name, bytes, &instance);
        };
        survive(&bytes[..cut.index(bytes.len())]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        survive(&bytes);
        survive(&bytes[at..]);
    }
}

#[test]
fn segments_are_read_as_they_were_written() {
    let instance = instance();
    let mut with = schedule(TaskRows::new());
    let of = |start, slots| Segment { start: Time(start), policy: "edf".into(), slowstart: 0.5, slots };
    // Map slots come before reduce slots.
    let some = [vec![SlotRange { first: 1, len: 7 }], vec![SlotRange { first: 0, len: 3 }]];
    with.segments =
        vec![of(0, Some(some)), of(12_000_001, None), of(13_000_000, Some([Vec::new(), Vec::new()]))];
    let mut text = Vec::new();
    write_schedule(&mut text, &instance, &with, &Meta::default()).unwrap();
    let (read, _) = read_schedule("s.json", &text, &instance).unwrap();
    assert_eq!(read.segments, with.segments);
    let text = String::from_utf8(text).unwrap();
    for (place, words) in [("a/b/0-9", "has 4 slots"), ("none/0", "none"), ("node-0", "machine/slot")] {
        let wrong = text.replacen("\"node-0/1-2\"", &format!("{place:?}"), 1);
        assert_ne!(wrong, text);
        let error = read_schedule("s.json", wrong.as_bytes(), &instance).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("segments[0].places[0]"), "{error}");
    }
}
