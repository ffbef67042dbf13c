//! Documents read, refused and written again.

use proptest::prelude::*;
use slackline_model::draft::{
    CostDraft, FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, PoolDraft, Repeat, SplitDraft,
    TasksDraft, Weights,
};
use slackline_model::{Combine, Draft, Instance, Metric, Objective, cluster::Slots};

use super::*;
use crate::{ImportOptions, Importers, read_workload};

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
    assert_eq!(draft.machines[1].slots, Slots::Typed { map: 3, reduce: 0 });
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
        ("min_slots = 1", "min_slot = 1", "w:26:3: unknown field `min_slot`, expected one of `id`"),
        ("min_slots = 1", "min_slot = 1", "did you mean `min_slots`?"),
        ("release = 5", "release = \"noon\"", "w:17:11: invalid type: string \"noon\", expected f64"),
        ("release = 5", "release = nan", "w:17:11: flows[0].release: found NaN"),
        ("slackline = 1", "slackline = 2\nnew = 1", "w:2:13: found slackline = 2, expected version 1"),
        ("slackline = 1", "", "missing field `slackline`"),
        ("speed = 8", "speed = 8, speed = 9", "w:5:42: duplicate key"),
        ("slots = { map = 3 }", "slots = -3", "w:6:28: invalid value: integer `-3`"),
        ("slots = { map = 3 }", "slots = { maps = 3 }", "unknown field `maps`, expected `map` or `reduce`"),
        ("\"tardiness\"", "\"tardines\"", "did you mean `tardiness`?"),
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
        ("tasks = 10,", "tasks = 1e1,", "invalid type: floating point `10.0`, expected u32"),
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
    assert!(error.starts_with("w:3:6: unknown field `jobz`"), "{error}");
    assert!(error.ends_with("did you mean `jobs`?"), "{error}");
    let error = read("{\"slackline\": 1,\n\"flows\": [", Format::Json).unwrap_err().to_string();
    assert_eq!(error, "w:2:10: EOF while parsing a list");
    let yaml = "slackline: 1\nflows:\n  - id: a\n    jobz: []\n";
    let error = read(yaml, Format::Yaml).unwrap_err().to_string();
    assert!(error.starts_with("w:4:5: unknown field `jobz`"), "{error}");
    assert!(error.ends_with("did you mean `jobs`?"), "{error}");
    let error = read("slackline: 1\nslackline: 1\n", Format::Yaml).unwrap_err().to_string();
    assert!(error.starts_with("w:2:1: ") && error.contains("duplicate"), "{error}");
    let error = read("slackline: 1\nflows: [{id: a, release: .nan, jobs: []}]\n", Format::Yaml).map(|_| ());
    assert_eq!(error, Ok(()), "numbers are the model's business");
}

#[test]
fn bombs_are_refused() {
    let deep = "[".repeat(200_000);
    for format in NATIVE {
        read(&deep, format).unwrap_err();
        read(&format!("slackline = {deep}"), format).unwrap_err();
        read(&format!("slackline: {deep}"), format).unwrap_err();
        read(&format!("{{\"slackline\": {deep}"), format).unwrap_err();
        read(&format!("{{\"flows\": {deep}"), format).unwrap_err();
    }
    let laughs: Vec<String> = (0..30)
        .map(|k| {
            let list = vec![if k == 0 { "x".to_owned() } else { format!("*a{}", k - 1) }; 10].join(", ");
            format!("b{k}: &a{k} [{list}]\n")
        })
        .collect();
    let laughs = laughs.concat();
    read(&laughs, Format::Yaml).unwrap_err();
    read(&format!("{laughs}flows: *a29\nslackline: 1\n"), Format::Yaml).unwrap_err();
    let garbage = "x".repeat(10 << 20);
    for format in Format::ALL {
        for text in [garbage.clone(), format!("{{\"{garbage}\": 1}}"), format!("{garbage} = 1\n")] {
            let error = read(&text, format).unwrap_err().to_string();
            assert!(error.len() < 2000, "a short message: {} bytes", error.len());
        }
    }
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
    (tasks, any::<Option<u32>>(), any::<Option<u32>>()).prop_map(|(tasks, min_slots, max_slots)| PhaseDraft {
        tasks,
        min_slots,
        max_slots,
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

fn jobs() -> impl Strategy<Value = JobDraft> {
    let some = || prop::option::of(phases());
    (names(), prop::collection::vec(names(), 0..3), some(), some(), per_phase(), per_phase()).prop_map(
        |(id, after, map, reduce, min_slots, max_slots)| JobDraft {
            run: None,
            id,
            after,
            map,
            reduce,
            min_slots,
            max_slots,
        },
    )
}

fn flows() -> impl Strategy<Value = FlowDraft> {
    let repeat = (numbers(), any::<u32>()).prop_map(|(every, times)| Repeat { every, times });
    let times = (numbers(), prop_oneof![Just(1.0), numbers()], prop::option::of(numbers()));
    let extras = (prop::option::of(costs()), prop::option::of(names()), prop::option::of(repeat));
    (names(), times, extras, prop::collection::vec(jobs(), 0..3)).prop_map(
        |(id, (release, weight, deadline), (cost, pool, repeat), jobs)| FlowDraft {
            id,
            release,
            weight,
            deadline,
            cost,
            pool,
            repeat,
            jobs,
        },
    )
}

fn drafts() -> impl Strategy<Value = Draft> {
    let slots = prop_oneof![
        any::<u32>().prop_map(Slots::Universal),
        (any::<u32>(), any::<u32>()).prop_map(|(map, reduce)| Slots::Typed { map, reduce }),
    ];
    let machine = (names(), any::<u32>(), numbers(), slots, prop::option::of(names()))
        .prop_map(|(name, count, speed, slots, rack)| MachineDraft { name, count, speed, slots, rack });
    let pool = (names(), per_phase()).prop_map(|(id, min_slots)| PoolDraft { id, min_slots });
    let objective = (prop::sample::select(Metric::ALL), any::<bool>())
        .prop_map(|(metric, sum)| Objective::new(metric, if sum { Combine::Sum } else { Combine::Max }));
    let weights = prop_oneof![Just(Weights::Use), Just(Weights::Ignore)];
    let machines = prop::collection::vec(machine, 0..3);
    (machines, objective, weights, prop::collection::vec(pool, 0..2), prop::collection::vec(flows(), 0..3))
        .prop_map(|(machines, objective, weights, pools, flows)| Draft {
            machines,
            objective,
            weights,
            pools,
            flows,
        })
}

/// Reads, and where the draft is refused finds the places: nothing may panic.
fn survive(bytes: &[u8], format: Option<&str>) {
    let options = ImportOptions::default();
    if let Ok(imported) = read_workload("w", bytes, format, &options)
        && let Err(invalid) = Instance::new(&imported.draft)
    {
        let _ = TraceError::from_invalid(&invalid, &imported.source).to_string();
    }
}

fn formats() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(prop::sample::select(Importers::default().names().collect::<Vec<_>>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_is_written_is_read_back(draft in drafts()) {
        for format in NATIVE {
            let text = write_workload(&draft, format);
            let again = read(&text, format).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(&again, &draft, "{}", text);
        }
    }

    #[test]
    fn random_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), format in formats()) {
        survive(&bytes, format);
        survive(&[&[0x1f, 0x8b, 8, 0], bytes.as_slice()].concat(), format);
    }

    #[test]
    fn damaged_documents_are_survived(
        from in 0..4usize,
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in prop_oneof![any::<u8>(), prop::sample::select(b"[]{}\":,=.-#&*\n\t 019eN".to_vec())],
        delete in any::<bool>(),
    ) {
        let row = "job0\t49\t49\t740773\t2339561\t627471\n".repeat(3);
        let draft = read(FULL, Format::Toml).expect("valid");
        let text = NATIVE.get(from).map_or(row, |&format| write_workload(&draft, format));
        let format = Importers::default().all()[from].name;
        survive(&text.as_bytes()[..cut.index(text.len())], Some(format));
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        if delete { bytes.remove(at); } else { bytes[at] = byte; }
        survive(&bytes, Some(format));
        survive(&bytes, None);
    }
}
