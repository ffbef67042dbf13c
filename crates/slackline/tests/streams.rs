//! Simulations of streams: the same bytes as of the whole, memory for what is live, and what is wrong in the
//! middle.
#![cfg(feature = "report")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::io::Cursor;

use slackline::PolicySpec;
use slackline::import::{ImportError, SimulationOptions, Source, StreamedWorkload, WorkloadOptions};
use slackline::report::{simulate_lines, stream_lines};
use slackline::simulate::{NoWriter, NotStreamed, Options, Streamed, simulate_stream};
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PoolDraft, Repeat, TasksDraft};
use slackline_model::{Draft, History, Seed, cluster::Slots};
use slackline_trace::{generate, write_workload_lines};

fn lines(draft: &Draft) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_workload_lines(&mut bytes, draft).unwrap();
    bytes
}

fn generated(name: &str, settings: &[(&str, &str)], seed: u64) -> Draft {
    generate::generator(name).unwrap().generate(settings, Seed(seed)).unwrap()
}

fn policy(spec: &str) -> PolicySpec {
    slackline::Registry::standard().parse(spec).unwrap()
}

/// The schedule of a workload that is read as a whole.
fn whole(name: &str, bytes: &[u8], spec: &str, shape: &WorkloadOptions, how: &SimulationOptions) -> Vec<u8> {
    let mut loaded = Source::new(name, bytes).load(shape).unwrap();
    loaded.prepare(None).unwrap();
    let mut recorded = loaded.options.clone();
    recorded.remove("grain");
    let options = how.resolve(&loaded.instance, shape.root_seed(), &History::default()).unwrap();
    let mut meta = loaded.meta_before(recorded, shape.root_seed());
    let mut out = Vec::new();
    simulate_lines(&mut out, &loaded.instance, &policy(spec), &options, None, None, &mut meta).unwrap();
    out
}

/// The same of one that is read meanwhile.
fn streamed(
    name: &str,
    bytes: &[u8],
    spec: &str,
    shape: &WorkloadOptions,
    how: &SimulationOptions,
) -> Result<(Vec<u8>, Streamed), NotStreamed<ImportError>> {
    let workload = StreamedWorkload::open(name, Cursor::new(bytes.to_vec()), shape, None);
    let workload = workload.map_err(NotStreamed::Flows)?;
    let seed = shape.root_seed();
    let options = how.resolve(workload.empty(), seed, &History::default()).unwrap();
    let mut meta = workload.meta(workload.options.clone(), seed);
    let mut out = Vec::new();
    let (streamed, ..) = stream_lines(&mut out, workload, &policy(spec), &options, None, &mut meta)?;
    Ok((out, streamed))
}

#[track_caller]
fn assert_same(name: &str, bytes: &[u8], spec: &str, shape: &WorkloadOptions, how: &SimulationOptions) {
    let (found, _) = streamed(name, bytes, spec, shape, how).unwrap();
    let expected = whole(name, bytes, spec, shape, how);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (found, expected) = (text(found), text(expected));
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "{name} under {spec}");
    }
    assert_eq!(found.len(), expected.len(), "{name} under {spec}");
}

#[test]
fn a_stream_has_the_bytes_of_the_whole() {
    let plain = (WorkloadOptions::default(), SimulationOptions::default());
    for seed in 0..3 {
        let day = [("jobs", "80"), ("maps", "6000"), ("day", "4000"), ("machines", "12")];
        let workloads = [
            generated("facebook-day", &day, seed),
            generated("facebook-day", &[&day[..], &[("durations", "each")]].concat(), seed),
            generated("woha-yahoo", &[], seed),
        ];
        for (k, draft) in workloads.iter().enumerate() {
            let bytes = lines(draft);
            for spec in ["fifo", "fair", "edf", "flex", "woha-lpf"] {
                assert_same(&format!("w{k}-{seed}.jsonl"), &bytes, spec, &plain.0, &plain.1);
            }
        }
    }
}

#[test]
fn options_are_applied_to_each_flow_as_to_all() {
    let metric = Some(slackline_model::Metric::Tardiness);
    let shape = WorkloadOptions { deadlines: Some(3.0), seed: Some(7), metric, ..WorkloadOptions::default() };
    let mut how = SimulationOptions::default();
    how.noise = 0.5;
    let bytes = lines(&generated("facebook-day", &[("jobs", "60"), ("maps", "3000")], 5));
    for spec in ["edf", "flex", "fair"] {
        assert_same("w.jsonl", &bytes, spec, &shape, &how);
    }
    how.jitter = 0.3;
    how.heartbeat = 3.0;
    how.slowstart = 0.5;
    assert_same("w.jsonl", &bytes, "fair", &shape, &how);
}

#[test]
fn a_swim_trace_is_a_stream() {
    let mut rows = String::new();
    for k in 0..200_u64 {
        let (shuffle, output) = (k % 3 * 900_000_000, k % 7 * 100_000_000);
        let gap = if k == 0 { 0 } else { 5 };
        let bytes = k * 77_000_000;
        writeln!(rows, "job{k}\t{}\t{gap}\t{bytes}\t{shuffle}\t{output}", 5 * k).unwrap();
    }
    let slots = slackline::import::SlotOptions::MapReduce { map: 2, reduce: 1 };
    let (machines, seed) = (Some(10), Some(3));
    let shape = WorkloadOptions { machines, slots: Some(slots), seed, ..WorkloadOptions::default() };
    for spec in ["fifo", "fair"] {
        assert_same("day.tsv", rows.as_bytes(), spec, &shape, &SimulationOptions::default());
    }
}

fn flow(id: &str, release: f64, tasks: u32) -> FlowDraft {
    let phase = Some(TasksDraft::Uniform { tasks, seconds: 2.0 }.into());
    let job = JobDraft { id: "j".into(), map: phase, ..JobDraft::default() };
    FlowDraft { release, ..FlowDraft::new(id, vec![job]) }
}

fn on_two_slots(flows: Vec<FlowDraft>) -> Draft {
    let slots = Slots::Generic(2);
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
    Draft { machines: vec![machine], flows, ..Draft::default() }
}

#[test]
fn flows_that_recur_come_when_they_do() {
    let mut flows: Vec<FlowDraft> = (0..20).map(|k| flow(&format!("f{k}"), 7.0 * f64::from(k), 3)).collect();
    flows[0].repeat = Some(Repeat { every: 10.0, times: 12 });
    let bytes = lines(&on_two_slots(flows));
    let plain = (WorkloadOptions::default(), SimulationOptions::default());
    let (found, of_stream) = streamed("w.jsonl", &bytes, "fair", &plain.0, &plain.1).unwrap();
    let expected = whole("w.jsonl", &bytes, "fair", &plain.0, &plain.1);
    let rows = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // Sums are taken in the order of arrival, which is another than that of the document.
        lines.pop();
        lines
    };
    assert_eq!(rows(&found), rows(&expected));
    assert_eq!(of_stream.tally.flows, 31);
}

#[test]
fn memory_follows_what_is_live() {
    for (n, every) in [(300, 20.0), (3000, 20.0)] {
        let flows = (0..n).map(|k| flow(&format!("f{k}"), every * f64::from(k), 8)).collect();
        let bytes = lines(&on_two_slots(flows));
        let plain = WorkloadOptions::default();
        let mut workload = StreamedWorkload::open("w.jsonl", Cursor::new(bytes), &plain, None).unwrap();
        let empty = workload.empty().clone();
        let options = Options::exact();
        let arrivals = workload.by_ref();
        let streamed =
            simulate_stream(&empty, arrivals, &policy("fair"), &options, None, &mut NoWriter).unwrap();
        assert_eq!(streamed.tally.flows, n as u64);
        // Rows of flows that are over are judged some thousands at a time, however many flows there are.
        assert!(streamed.live_max <= 1100, "{n} flows: {}", streamed.live_max);
        assert_eq!((streamed.failed, streamed.simulated.metrics.tasks), (0, 8.0 * f64::from(n)));
    }
}

#[test]
fn errors_in_the_middle_end_the_stream_with_their_line() {
    let plain = (WorkloadOptions::default(), SimulationOptions::default());
    let error = |flows: Vec<FlowDraft>, change: fn(String) -> String| {
        let text = change(String::from_utf8(lines(&on_two_slots(flows))).unwrap());
        streamed("w.jsonl", text.as_bytes(), "fifo", &plain.0, &plain.1).unwrap_err().to_string()
    };
    let three = || vec![flow("a", 0.0, 1), flow("b", 50.0, 1), flow("c", 90.0, 1)];
    let found = error(three(), |text| text.replace("90", "40"));
    assert!(
        found.starts_with("w.jsonl:4:") && found.contains("found a release at 40 s after one at 50 s"),
        "{found}"
    );
    let found = error(three(), |text| text.replace("\"b\"", "\"a\""));
    assert!(found.starts_with("w.jsonl:3:7: id: found flow \"a\" a second time"), "{found}");
    let found = error(three(), |text| text.replace("50", "fifty"));
    assert!(found.starts_with("w.jsonl:3:"), "{found}");
    let found = error(vec![flow("a", 0.0, 1), flow("b", 1.0, 0)], |text| text);
    assert!(
        found.starts_with("w.jsonl:3:") && found.contains("jobs[0].map.tasks: found no tasks"),
        "{found}"
    );
    let found = error(three(), |text| text.split_once('\n').unwrap().1.to_owned());
    assert!(found.starts_with("w.jsonl:1:1: found no `slackline`"), "{found}");
}

#[test]
fn options_that_need_the_whole_workload_are_refused() {
    let plain = WorkloadOptions::default();
    let mut how = SimulationOptions::default();
    how.slowstart = 0.5;
    let bytes = lines(&on_two_slots(vec![flow("a", 0.0, 1)]));
    let error = streamed("w.jsonl", &bytes, "fifo", &plain, &how).unwrap_err().to_string();
    assert!(error.contains("generic slots early"), "{error}");
    how.slowstart = 1.0;
    how.crash_rate = Some(slackline::import::CrashRate { between: 100.0, repair: 5.0 });
    let error = streamed("w.jsonl", &bytes, "fifo", &plain, &how).unwrap_err().to_string();
    assert!(error.contains("crashes"), "{error}");
    let mut pooled =
        on_two_slots(vec![flow("a", 0.0, 1), FlowDraft { pool: Some("p".into()), ..flow("b", 1.0, 1) }]);
    let min_slots = slackline_model::draft::PerPhase { map: Some(1), reduce: None };
    pooled.pools = vec![PoolDraft { id: "p".into(), min_slots }];
    let plain_how = SimulationOptions::default();
    let error = streamed("w.jsonl", &lines(&pooled), "fair", &plain, &plain_how).unwrap_err().to_string();
    assert!(error.starts_with("flow b has guaranteed slots"), "{error}");
    // A policy that promises nothing may ignore them.
    streamed("w.jsonl", &lines(&pooled), "fifo", &plain, &plain_how).unwrap();
}
