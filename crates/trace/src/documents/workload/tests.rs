//! Documents read, refused and written again.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Value, json};
use slackline_model::draft::{
    AttemptDraft, CostDraft, FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, PoolDraft, Repeat,
    SplitDraft, TasksDraft, Weights,
};
use slackline_model::schedule::Outcome;
use slackline_model::{Combine, Draft, Instance, Metric, Objective, PhaseKind, Start, cluster::Slots};

mod times;

use super::*;
use crate::{ImportOptions, read_workload};

const NATIVE: [Format; 3] = [Format::Toml, Format::Json, Format::Yaml];

const FULL: &str = r#"
slackline = 1
[cluster]
machines = [
  { name = "fast", count = 4, speed = 8, slots = { map = 2, reduce = 1 } },
  { name = "node", slots = { map = 3 }, rack = "r1" },
]
[objective]
metric = "tardiness"
combine = "max"
weights = "ignore"
[[pools]]
id = "adhoc"
min_slots = { map = 2 }
[[flows]]
id = "nightly"
release = 5
deadline = 4800.0
pool = "adhoc"
cost = { kind = "steps", steps = [[3600, 10.0], [7200.0, 50]] }
repeat = { every = 3600.0, times = 24 }
  [[flows.jobs]]
  id = "extract"
  map = { tasks = 40, seconds = 22.0 }
  reduce = { tasks = 10, seconds = 11.0, min_slots = 2 }
  min_slots = 1
  max_slots = { reduce = 30 }
  [[flows.jobs]]
  id = "join"
  after = ["extract"]
  map = { seconds = [20.1, 23, 31.0] }
  [[flows.jobs]]
  id = "index"
  map = { work = 900.0, tasks = 300, max_slots = 12 }
  reduce = { splits = [{ seconds = 3.0, hosts = ["fast-0", "node"] }, { seconds = 1, count = 2 }] }
"#;

fn read(text: &str, format: Format) -> Result<Draft, TraceError> {
    let options = ImportOptions::default();
    read_workload("w", text.as_bytes(), Some(format.name()), &options).map(|imported| imported.draft)
}

/// The message for FULL with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(FULL.contains(from), "{from}");
    let text = FULL.replacen(from, to, 1);
    let options = ImportOptions::default();
    match read_workload("w", text.as_bytes(), Some("toml"), &options) {
        Err(error) => error.to_string(),
        Ok(imported) => {
            let invalid = Instance::new(&imported.draft).unwrap_err();
            TraceError::from_invalid(&invalid, &imported.source).to_string()
        }
    }
}

#[test]
fn everything_in_the_contract_is_read() {
    let draft = read(FULL, Format::Toml).unwrap();
    assert_eq!(draft.machines[1].slots, Slots::MapReduce { map: 3, reduce: 0 });
    assert_eq!((draft.machines[0].speed, draft.weights), (8.0, Weights::Ignore));
    let flow = &draft.flows[0];
    assert_eq!((flow.release, flow.weight, flow.deadline), (5.0, 1.0, Some(4800.0)));
    assert_eq!(flow.cost, Some(CostDraft::Steps(vec![(3600.0, 10.0), (7200.0, 50.0)])));
    assert_eq!(flow.jobs[0].max_slots, PerPhase { map: None, reduce: Some(30) });
    assert_eq!(flow.jobs[1].map.as_ref().unwrap().tasks, TasksDraft::Each(vec![20.1, 23.0, 31.0]));
    let splits = &flow.jobs[2].reduce.as_ref().unwrap().tasks;
    assert!(
        matches!(splits, TasksDraft::Splits(splits) if splits[1].count == 2 && splits[0].hosts.len() == 2)
    );
    Instance::new(&draft).unwrap();
}

#[test]
fn faults_have_their_line_and_say_what_is_valid() {
    let cases = [
        (
            "min_slots = 1",
            "min_slot = 1",
            "w:26:3: flows[0].jobs[0]: unknown field `min_slot`, expected one of `id`",
        ),
        ("min_slots = 1", "min_slot = 1", "did you mean `min_slots`?"),
        (
            "release = 5",
            "release = \"noon\"",
            "w:17:11: flows[0].release: found text \"noon\", expected seconds, a duration such as 2h, a date and time",
        ),
        ("release = 5", "release = nan", "w:17:11: flows[0].release: found NaN"),
        ("slackline = 1", "slackline = 2\nnew = 1", "w:2:13: found slackline = 2, expected version 1"),
        ("slackline = 1", "", "missing field `slackline`"),
        ("speed = 8", "speed = 8, speed = 9", "w:5:42: found `speed` a second time"),
        (
            "slots = { map = 3 }",
            "slots = -3",
            "w:6:28: cluster.machines[1].slots: found -3, expected a number of slots or a table",
        ),
        ("\"tardiness\"", "\"tardines\"", "; did you mean \"tardiness\"?"),
        (
            "release = 5",
            "release = 06:00:00",
            "w:17:11: flows[0].release: found a time of day, 06:00:00, expected seconds or a duration, or a `start` at the top",
        ),
        (
            "release = 5",
            "release = [5]",
            "flows[0].release: found a list, expected seconds, a duration such as 2h",
        ),
        ("release = 5", "release = 1e999", "w:17:11: found 1e999, a number out of range"),
        ("times = 24", "times = -1", "repeat.times: found -1, expected a whole number from 0 to 4294967295"),
        ("[3600, 10.0]", "[3600]", "flows[0].cost.steps[0]: found a list of 1, expected one of 2"),
        ("[\"extract\"]", "\"extract\"", "jobs[1].after: found text \"extract\", expected a list"),
        (
            "23, 31.0]",
            "'x', 31.0]",
            "w:31:28: flows[0].jobs[1].map.seconds[1]: found text \"x\", expected seconds or a duration",
        ),
        ("id = \"join\"", "id = 7", "w:29:8: flows[0].jobs[1].id: found 7, expected text"),
        ("slots = { map = 3 }", "slots = { maps = 3 }", "unknown field `maps`, expected `map` or `reduce`"),
        (
            "\"tardiness\"",
            "\"tardines\"",
            "w:9:10: objective.metric: found \"tardines\", expected one of completion, response,",
        ),
        ("tasks = 40, ", "", "w:24:9: flows[0].jobs[0].map: found seconds, expected one of {"),
        ("tasks = 40", "work = 40", "found seconds with work, expected one of {"),
        (
            "kind = \"steps\"",
            "kind = \"piecewise\"",
            "w:20:8: flows[0].cost: found a piecewise cost with other",
        ),
        (
            "min_slots = 2",
            "min_slots = 31",
            "w:25:54: flows[0].jobs[0].reduce.min_slots: found a minimum of 31",
        ),
        ("[\"extract\"]", "[\"extact\"]", "w:30:12: flows[0].jobs[1].after[0]: found \"extact\""),
        ("31.0]", "31.0", "w:31:37: missing comma"),
        ("tasks = 10,", "tasks = 1e1,", "found 10.0, expected a whole number from 0 to 4294967295"),
    ];
    for (from, to, expected) in cases {
        let found = refused(from, to);
        assert!(found.contains(expected), "{to}:\n{found}\n{expected}");
    }
}

#[test]
fn json_and_yaml_faults_have_lines_too() {
    let json = "{\"slackline\": 1,\n\"flows\": [{\"id\": \"a\",\n\"jobz\": []}]}";
    let error = read(json, Format::Json).unwrap_err().to_string();
    assert!(error.starts_with("w:3:1: flows[0]: unknown field `jobz`"), "{error}");
    assert!(error.ends_with("did you mean `jobs`?"), "{error}");
    let error = read("{\"slackline\": 1,\n\"flows\": [", Format::Json).unwrap_err().to_string();
    assert_eq!(error, "w:2:10: EOF while parsing a list");
    let yaml = "slackline: 1\nflows:\n  - id: a\n    jobz: []\n";
    let error = read(yaml, Format::Yaml).unwrap_err().to_string();
    assert!(error.starts_with("w:4:5: flows[0]: unknown field `jobz`"), "{error}");
    assert!(error.ends_with("did you mean `jobs`?"), "{error}");
    let error = read("slackline: 1\nslackline: 1\n", Format::Yaml).unwrap_err().to_string();
    assert_eq!(error, "w:2:1: found `slackline` a second time");
    let error = read("{\"slackline\": 1,\n\"slackline\": 1}", Format::Json).unwrap_err().to_string();
    assert_eq!(error, "w:2:1: found `slackline` a second time");
    let error = read("slackline: 1\nflows: [{id: a, release: .nan, jobs: []}]\n", Format::Yaml).map(|_| ());
    assert_eq!(error, Ok(()), "numbers are the model's business");
}

/// A value in YAML needs the same type as in the other formats.
#[test]
fn yaml_is_held_to_the_types_of_the_other_forms() {
    let error = |text: &str| read(text, Format::Yaml).unwrap_err().to_string();
    assert_eq!(
        error("slackline: \"1\"\n"),
        "w:1:12: slackline: found text \"1\", expected the version as a number without quotes: 1"
    );
    assert_eq!(
        error("slackline: 1\nflows: [{id: 7, jobs: []}]\n"),
        "w:2:14: flows[0].id: found 7, expected text"
    );
    assert_eq!(
        error("slackline: 1\nflows: [{id: null, jobs: []}]\n"),
        "w:2:14: flows[0].id: found null, expected text"
    );
    assert_eq!(error("slackline: 1\n---\nslackline: 1\n"), "w:2:1: found a second document, expected one");
    assert_eq!(error(""), "w:1:1: found null, expected a table");
    let aliases = "slackline: 1\nflows:\n- id: &id !!str 7\n  release: !!float 3\n  jobs:\n  \
                   - {id: a, map: &m {tasks: 0x10, seconds: 2}}\n  - {id: *id, map: {<<: *m, tasks: 3}}\n";
    let draft = read(aliases, Format::Yaml).unwrap();
    let job = &draft.flows[0].jobs[1];
    assert_eq!((&*draft.flows[0].id, &*job.id), ("7", "7"));
    assert_eq!(job.map, Some(TasksDraft::Uniform { tasks: 3, seconds: 2.0 }.into()));
    let keys = "slackline: 1\nflows: [{id: f, &j jobs: [{id: *j, map: {tasks: 1, seconds: 1}}]}]\n";
    assert_eq!(read(keys, Format::Yaml).unwrap().flows[0].jobs[0].id, "jobs");
    for (value, expected) in [
        ("!!int x", "found text \"x\" with the tag !!int"),
        ("!seconds 3", "found the tag !seconds here, expected none"),
        ("{<<: 3}", "found 3 for `<<`, expected a table"),
        ("{[a]: 3}", "found a list or table before a colon, expected a name"),
        ("*nowhere", "unknown anchor"),
    ] {
        let found = error(&format!("slackline: 1\nflows: {value}\n"));
        assert!(found.starts_with("w:2:") && found.contains(expected), "{value}: {found}");
    }
    let wrong = aliases.replace("tasks: 0x10", "task: 1");
    assert!(error(&wrong).starts_with("w:6:22: flows[0].jobs[0].map: unknown field `task`"));
}

#[test]
fn arguments_say_what_they_may_be() {
    let text = "{\"slackline\": 1, \"flows\": [{\"id\": \"f\", \"jobs\": [{\"id\": \"a\", \"run\":\n\
                {\"output\": \"o\", \"args\": {\"n\": [1]}}}]}]}";
    for format in [Format::Json, Format::Yaml] {
        assert_eq!(
            read(text, format).unwrap_err().to_string(),
            "w:2:31: flows[0].jobs[0].run.args.n: found a list, expected a word, a number, or true or false"
        );
    }
}

#[test]
fn a_list_where_a_table_belongs_is_refused_in_every_form() {
    for (json, toml, expected) in [
        (
            r#"{"slackline": 1, "cluster": [[]]}"#,
            "slackline = 1\ncluster = [[]]",
            "cluster: found a list, expected a table",
        ),
        (
            r#"{"slackline": 1, "objective": ["response", "sum"]}"#,
            "slackline = 1\nobjective = [\"response\", \"sum\"]",
            "objective: found a list, expected a table",
        ),
        (
            r#"{"slackline": 1, "flows": [["f", 0.0, 1.0, null, null, null, null, []]]}"#,
            "slackline = 1\nflows = [[\"f\", 0.0, 1.0, []]]",
            "flows[0]: found a list, expected a table",
        ),
    ] {
        for (text, format) in [(json, Format::Json), (json, Format::Yaml), (toml, Format::Toml)] {
            let error = read(text, format).unwrap_err().to_string();
            assert!(error.contains(expected), "{format}: {error}");
        }
    }
}

#[test]
fn bombs_are_refused() {
    for (open, times) in [("[", 2 << 20), ("- ", 200_000), ("{a: ", 200_000), ("{\"a\":", 200_000)] {
        let deep = open.repeat(times);
        for format in NATIVE {
            read(&deep, format).unwrap_err();
            read(&format!("slackline = {deep}"), format).unwrap_err();
            read(&format!("slackline: {deep}"), format).unwrap_err();
            read(&format!("{{\"slackline\": {deep}"), format).unwrap_err();
        }
    }
    let closed = "[".repeat(100_000) + &"]".repeat(100_000);
    for format in NATIVE {
        read(&closed, format).unwrap_err();
        read(&format!("{{\"flows\": {closed}}}"), format).unwrap_err();
    }
    let garbage = "x".repeat(2 << 20);
    for format in Format::ALL {
        for text in [garbage.clone(), format!("{{\"{garbage}\": 1}}"), format!("{garbage} = 1\n")] {
            let error = read(&text, format).unwrap_err().to_string();
            assert!(error.len() < 2000, "a short message: {} bytes", error.len());
        }
    }
    let many: String = (0..200_000).fold(String::new(), |text, k| text + &format!("a{k}: 1\n"));
    let error = read(&format!("{many}a7: 1\n"), Format::Yaml).unwrap_err().to_string();
    assert_eq!(error, "w:200001:1: found `a7` a second time");
}

#[test]
fn aliases_write_out_so_much_and_no_more() {
    let error = |text: &str| read(text, Format::Yaml).unwrap_err().to_string();
    let line = |k: usize, list: &str| format!("b{k}: &a{k} [{list}]\n");
    let ten = |k: usize| vec![if k == 0 { "x".to_owned() } else { format!("*a{}", k - 1) }; 10].join(", ");
    let laughs: String = (0..30).map(|k| line(k, &ten(k))).collect();
    assert!(error(&laughs).contains("found aliases that expand to too much text"));
    let merges = |k: usize| format!("b{k}: &a{k} {{<<: *a{}, c{k}: *a{}}}\n", k - 1, k - 1);
    let merged: String = "b0: &a0 {x: 1}\n".to_owned() + &(1..60).map(merges).collect::<String>();
    assert!(error(&merged).contains("found aliases that expand to too much text"));
    let chain: String = (1..200_000).map(|k| line(k, &format!("*a{}", k - 1))).collect();
    assert!(error(&format!("{}{chain}", line(0, ""))).contains("nested more than 128 deep"));
    assert!(error("a: &a [*a]\n").contains("an alias within its own value"));
    let often = format!("a: &a x\nb: [{}]\n", "*a, ".repeat(300_000));
    assert!(error(&often).contains("unknown field `a`"), "linear is fine");
}

#[test]
fn long_documents_are_no_bombs() {
    let mut draft = read(FULL, Format::Toml).unwrap();
    let seconds: Vec<f64> = (0..300_000).map(|k| f64::from(k) / 7.0).collect();
    draft.flows[0].jobs[0].map = Some(TasksDraft::Each(seconds).into());
    for format in NATIVE {
        assert!(read(&write_workload(&draft, format), format).as_ref() == Ok(&draft), "{format}");
    }
}

#[test]
fn written_toml_reads_well() {
    let draft = read(FULL, Format::Toml).unwrap();
    let text = write_workload(&draft, Format::Toml);
    for line in [
        "  { name = \"node\", count = 1, speed = 1.0, slots = { map = 3, reduce = 0 }, rack = \"r1\" },",
        "  map = { tasks = 40, seconds = 22.0 }",
        "  min_slots = 1",
        "repeat = { every = 3600.0, times = 24 }",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,4}",
        "[ -~]{1,12}",
        "\\PC{0,8}",
        Just("null".into()),
        Just("1e5".into()),
        Just("~".into())
    ]
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1e6, prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL]
}

fn per_phase() -> impl Strategy<Value = PerPhase> {
    (any::<Option<u32>>(), any::<Option<u32>>()).prop_map(|(map, reduce)| PerPhase { map, reduce })
}

fn phases() -> impl Strategy<Value = PhaseDraft> {
    let split = (any::<u32>(), numbers(), prop::collection::vec(names(), 0..3))
        .prop_map(|(count, seconds, hosts)| SplitDraft { count, seconds, hosts });
    let tasks = prop_oneof![
        (any::<u32>(), numbers()).prop_map(|(tasks, seconds)| TasksDraft::Uniform { tasks, seconds }),
        prop::collection::vec(numbers(), 0..4).prop_map(TasksDraft::Each),
        (numbers(), any::<Option<u32>>()).prop_map(|(work, tasks)| TasksDraft::Work { work, tasks }),
        prop::collection::vec(split, 0..3).prop_map(TasksDraft::Splits),
    ];
    let phase = (tasks, any::<Option<u32>>(), any::<Option<u32>>(), any::<bool>());
    phase.prop_map(|(tasks, min_slots, max_slots, unknown)| PhaseDraft {
        tasks,
        min_slots,
        max_slots,
        unknown,
    })
}

fn costs() -> impl Strategy<Value = CostDraft> {
    let pairs = || prop::collection::vec((numbers(), numbers()), 0..3);
    prop_oneof![
        prop::sample::select(vec![Metric::Tardy, Metric::Slowdown]).prop_map(CostDraft::Metric),
        pairs().prop_map(CostDraft::Steps),
        (pairs(), prop::option::of(numbers()))
            .prop_map(|(points, slope)| CostDraft::Piecewise { points, slope }),
    ]
}

fn attempts() -> impl Strategy<Value = AttemptDraft> {
    let (phase, outcome) = (prop::sample::select(&PhaseKind::ALL), prop::sample::select(&Outcome::ALL));
    (phase, any::<u32>(), prop::option::of(names()), numbers(), numbers(), outcome).prop_map(
        |(phase, task, machine, start, end, outcome)| AttemptDraft {
            phase,
            task,
            machine,
            start,
            end,
            outcome,
        },
    )
}

fn jobs() -> impl Strategy<Value = JobDraft> {
    let some = || prop::option::of(phases());
    let slots = (per_phase(), per_phase());
    let recorded = (prop::collection::vec(attempts(), 0..3), prop::option::of(numbers()));
    (names(), prop::collection::vec(names(), 0..3), some(), some(), slots, recorded).prop_map(
        |(id, after, map, reduce, (min_slots, max_slots), (recorded, recorded_end))| JobDraft {
            run: None,
            id,
            after,
            map,
            reduce,
            min_slots,
            max_slots,
            recorded,
            recorded_end,
        },
    )
}

fn flows() -> impl Strategy<Value = FlowDraft> {
    let every = numbers().prop_filter("a time from one release to the next", |&every| every != 0.0);
    let repeat = (every, any::<u32>()).prop_map(|(every, times)| Repeat { every, times });
    let times = (numbers(), prop_oneof![Just(1.0), numbers()], prop::option::of(numbers()));
    let owners = (prop::option::of(names()), prop::option::of(names()), prop::option::of(any::<u32>()));
    let extras = (prop::option::of(costs()), owners, prop::option::of(repeat));
    (names(), times, extras, prop::collection::vec(jobs(), 0..3)).prop_map(
        |(id, (release, weight, deadline), (cost, (pool, user, priority), repeat), jobs)| FlowDraft {
            id,
            release,
            weight,
            deadline,
            cost,
            pool,
            user,
            priority,
            quota: None,
            repeat,
            jobs,
        },
    )
}

fn drafts() -> impl Strategy<Value = Draft> {
    let slots = prop_oneof![
        any::<u32>().prop_map(Slots::Generic),
        (any::<u32>(), any::<u32>()).prop_map(|(map, reduce)| Slots::MapReduce { map, reduce }),
    ];
    let machine = (names(), any::<u32>(), numbers(), slots, prop::option::of(names()))
        .prop_map(|(name, count, speed, slots, rack)| MachineDraft { name, count, speed, slots, rack });
    let pool = (names(), per_phase()).prop_map(|(id, min_slots)| PoolDraft { id, min_slots });
    let objective = (prop::sample::select(&Metric::ALL), any::<bool>())
        .prop_map(|(metric, sum)| Objective::new(metric, if sum { Combine::Sum } else { Combine::Max }));
    let weights = prop_oneof![Just(Weights::Use), Just(Weights::Ignore)];
    let machines = prop::collection::vec(machine, 0..3);
    let start = prop::sample::select(vec!["2026-03-29T01:30[Europe/Berlin]", "1999-12-31T23:59:59.5-03:30"]);
    let start = prop::option::of(start.prop_map(|text| Start::parse(text).expect("it is one")));
    let pools = prop::collection::vec(pool, 0..2);
    (start, machines, objective, weights, pools, prop::collection::vec(flows(), 0..3)).prop_map(
        |(start, machines, objective, weights, pools, flows)| Draft {
            start,
            machines,
            objective,
            weights,
            pools,
            flows,
        },
    )
}

/// Every value below `value` and itself, in order, by steps.
fn pointers(value: &Value) -> Vec<String> {
    let below = |(step, value): (String, &Value)| {
        let step = step.replace('~', "~0").replace('/', "~1");
        pointers(value).into_iter().map(move |pointer| format!("/{step}{pointer}"))
    };
    let mut all = vec![String::new()];
    match value {
        Value::Array(list) => {
            all.extend(list.iter().enumerate().map(|(k, v)| (k.to_string(), v)).flat_map(below));
        }
        Value::Object(table) => all.extend(table.iter().map(|(k, v)| (k.clone(), v)).flat_map(below)),
        _ => {}
    }
    all
}

/// Spoils one value of a document: another value, a field too many, or one too few.
fn spoil(document: &mut Value, at: prop::sample::Index, by: &Value) {
    let all = pointers(document);
    let value = document.pointer_mut(at.get(&all[..]).as_str()).expect("it is one of them");
    match (&mut *value, by) {
        (Value::Object(table), Value::Bool(true)) if !table.is_empty() => {
            let first = table.keys().next().expect("it has one").clone();
            table.remove(&first);
        }
        _ => *value = by.clone(),
    }
}

/// A document as YAML in blocks.
fn block(value: &Value, indent: usize, out: &mut String) {
    let deeper = |mark: String, value: &Value, out: &mut String| {
        *out += &" ".repeat(indent);
        *out += &mark;
        if matches!(value, Value::Array(list) if !list.is_empty())
            || matches!(value, Value::Object(table) if !table.is_empty())
        {
            *out += "\n";
            block(value, indent + 2, out);
        } else {
            writeln!(out, " {value}").expect("text grows without errors");
        }
    };
    match value {
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                deeper("-".into(), value, out);
            }
        }
        Value::Object(table) if !table.is_empty() => {
            table.iter().for_each(|(key, value)| deeper(format!("{}:", Value::from(&**key)), value, out));
        }
        _ => *out += &value.to_string(),
    }
}

/// The draft, or the path and the words of each fault.
fn read_as(text: &str, format: Format) -> Result<Draft, Vec<(String, String)>> {
    let pair = |fault: &crate::Fault| (fault.path.clone(), fault.what.clone());
    read(text, format).map_err(|error| error.faults().list.iter().map(pair).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn written_values_are_read_back(draft in drafts()) {
        for format in NATIVE {
            let text = write_workload(&draft, format);
            let again = read(&text, format).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(&again, &draft, "{}", text);
        }
    }

    #[test]
    fn the_same_fault_is_reported_in_the_same_words(
        draft in drafts(),
        at in any::<prop::sample::Index>(),
        by in prop::sample::select(vec![
            json!("x"), json!(7), json!(-1), json!(1.5), json!(4_294_967_296_u64), json!(true), json!(false),
            json!([]), json!([1, 2, 3]), json!({}), json!({"colour": 1}),
        ]),
    ) {
        let mut document = serde_json::from_str(&write_workload(&draft, Format::Json)).expect("it is JSON");
        spoil(&mut document, at, &by);
        let json = document.to_string();
        let mut yaml = String::new();
        block(&document, 0, &mut yaml);
        let expected = read_as(&json, Format::Json);
        prop_assert_eq!(read_as(&json, Format::Yaml), expected.clone(), "{}", json);
        prop_assert_eq!(read_as(&yaml, Format::Yaml), expected.clone(), "{}", yaml);
        if document.is_object() {
            let toml = toml::to_string(&document).expect("it has no null");
            prop_assert_eq!(read_as(&toml, Format::Toml), expected, "{}", toml);
        }
    }
}
