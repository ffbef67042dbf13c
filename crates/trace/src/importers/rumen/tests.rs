//! Traces of our own and real ones.

use slackline_model::cluster::Slots;
use slackline_model::draft::{JobDraft, PhaseDraft};
use slackline_model::{Draft, Instance};

use super::*;
use slackline_model::draft::TasksDraft;

use crate::importers::import::{ImportedWorkload, read_workload};
use crate::importers::options::ImportOptions;

fn read(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
    let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
    read_workload("t.json", text.as_bytes(), None, &options)
}

fn attempt(host: &str, start: i64, finish: i64, result: &str) -> String {
    format!(r#"{{"hostName":"{host}","startTime":{start},"finishTime":{finish},"result":"{result}"}}"#)
}

/// A job with these maps and reduces: the attempts of each.
fn job(id: &str, submit: i64, more: &str, maps: &[&[String]], reduces: &[&[String]]) -> String {
    let tasks = |tasks: &[&[String]]| {
        let task = |attempts: &&[String]| format!("{{\"attempts\":[{}]}}", attempts.join(","));
        tasks.iter().map(task).collect::<Vec<_>>().join(",")
    };
    let (maps, reduces) = (tasks(maps), tasks(reduces));
    format!(
        "{{\"jobID\":\"{id}\",\"submitTime\":{submit}{more},\"mapTasks\":[{maps}],\n\"reduceTasks\":[{reduces}]}}\n"
    )
}

fn said(imported: &ImportedWorkload) -> Vec<String> {
    imported.diagnostics.iter().map(ToString::to_string).collect()
}

fn seconds(phase: Option<&PhaseDraft>) -> Vec<f64> {
    match phase.map(|phase| &phase.tasks) {
        None => Vec::new(),
        Some(TasksDraft::Uniform { tasks, seconds }) => vec![*seconds; *tasks as usize],
        Some(TasksDraft::Each(seconds)) => seconds.clone(),
        Some(other) => panic!("{other:?}"),
    }
}

fn sizes(draft: &Draft) -> (usize, usize, usize) {
    let jobs = || draft.flows.iter().flat_map(|flow| &flow.jobs);
    let tasks = |of: fn(&JobDraft) -> Option<&PhaseDraft>| jobs().map(|job| seconds(of(job)).len()).sum();
    (draft.flows.len(), tasks(|job| job.map.as_ref()), tasks(|job| job.reduce.as_ref()))
}

const HOST: &str = "/r1/n1";

#[test]
fn tasks_take_what_their_successful_attempt_took() {
    let failed = attempt(HOST, 2_000, 90_000, "FAILED");
    let maps: &[&[String]] = &[
        &[failed, attempt("/r1/n2", 91_000, 101_500, "SUCCESS")],
        &[attempt(HOST, 2_000, 5_000, "SUCCESS")],
    ];
    let reduces: &[&[String]] = &[&[attempt(HOST, 100_000, 111_500, "SUCCESS")]];
    let more = r#","jobName":"count words","user":"ann","queue":"day","priority":"HIGH""#;
    let imported = read(&job("job_200904211745_0002", 1_000, more, maps, reduces), &[]).unwrap();
    assert_eq!(imported.importer.name, "rumen");
    let flow = &imported.draft.flows[0];
    assert_eq!(
        (flow.id.as_str(), flow.release, flow.jobs[0].id.as_str()),
        ("job_200904211745_0002", 0.0, "count words")
    );
    assert_eq!(
        (flow.user.as_deref(), flow.pool.as_deref(), flow.priority),
        (Some("ann"), Some("day"), Some(4))
    );
    assert_eq!(imported.draft.pools[0].id, "day");
    assert_eq!(seconds(flow.jobs[0].map.as_ref()), [10.5, 3.0]);
    // It waited for the last map until 101.5 s.
    assert_eq!(seconds(flow.jobs[0].reduce.as_ref()), [10.0]);
    let recorded: Vec<_> = flow.jobs[0]
        .recorded
        .iter()
        .map(|a| (a.task, a.machine.as_deref(), a.start, a.end, a.outcome))
        .collect();
    assert_eq!(
        recorded,
        [
            (0, Some("n1"), 1.0, 89.0, Outcome::Failed),
            (0, Some("n2"), 90.0, 100.5, Outcome::Done),
            (1, Some("n1"), 1.0, 4.0, Outcome::Done),
            (0, Some("n1"), 99.0, 110.5, Outcome::Done),
        ]
    );
    // Two maps at once and a reduce; the id is one of map and reduce slots.
    let machine = &imported.draft.machines[0];
    assert_eq!((machine.name.as_str(), machine.rack.as_deref()), ("n1", Some("r1")));
    assert_eq!(machine.slots, Slots::MapReduce { map: 2, reduce: 1 });
    assert_eq!(imported.draft.start.as_ref().unwrap().to_string(), "1970-01-01T00:00:01+00:00[UTC]");
    assert_eq!(
        said(&imported),
        [
            "1 reduce: started before the last map finished, counted from the end of the map phase (first at line 1)",
            "1 attempt: failed or killed (also preempted and speculative ones), kept in the recorded schedule only (first at line 1)",
            "2 machines: inferred from the log, with the peak of concurrent tasks as slots (options for machines and slots override it)",
        ]
    );
}

#[test]
fn machines_of_yarn_have_slots_for_either_phase() {
    let maps: &[&[String]] = &[&[attempt(HOST, 1_000, 2_000, "SUCCESS")]];
    let reduces: &[&[String]] = &[&[attempt(HOST, 2_000, 3_000, "SUCCESS")]];
    let imported = read(&job("job_1369942127770_1", 1_000, "", maps, reduces), &[]).unwrap();
    assert_eq!(imported.draft.machines[0].slots, Slots::Generic(1));
}

#[test]
fn odd_times_are_repaired_and_counted() {
    let maps: &[&[String]] = &[
        &[attempt(HOST, 4_000, 9_000, "SUCCESS")],
        &[attempt(HOST, 8_000, 7_000, "SUCCESS")],
        &[attempt(HOST, -1, 7_000, "KILLED")],
        &[],
        &[attempt(HOST, 6_000, 8_000, "KILLED"), attempt(HOST, 6_000, 7_000, "FAILED")],
    ];
    let reduces: &[&[String]] = &[&[attempt(HOST, 6_000, 8_000, "SUCCESS")]];
    let more = r#","outcome":"FAILED","totalMaps":7,"totalReduces":1"#;
    let text = job("job_1369942127770_1", 5_000, more, maps, reduces);
    let imported = read(&text, &[]).unwrap();
    let first = &imported.draft.flows[0].jobs[0];
    assert_eq!(seconds(first.map.as_ref()), [5.0, 0.0, 2.0]);
    assert_eq!(seconds(first.reduce.as_ref()), [0.0]);
    assert_eq!((first.recorded[0].start, first.recorded.last().unwrap().end), (0.0, 4.0));
    assert_eq!(
        said(&imported),
        [
            "2 tasks: counted by the job but not listed in the log, left out (first at line 1)",
            "1 job: failed or killed, kept with the time that its tasks took (first at line 1)",
            "1 attempt: ended before its start, counted as 0 s long (first at line 1)",
            "2 tasks: without a known run time, left out (first at line 1)",
            "1 reduce: finished before the last map of its job, counted as 0 s long at the end of that map (first at line 1)",
            "1 attempt: started before the job was submitted, recorded from the submission on (first at line 1)",
            "1 task: without a successful attempt, given the duration of the longest (first at line 1)",
            "2 attempts: failed or killed (also preempted and speculative ones), kept in the recorded schedule only (first at line 1)",
            "1 machine: inferred from the log, with the peak of concurrent tasks as slots (options for machines and slots override it)",
        ]
    );
    let dropped = read(&text, &[("failed-jobs", "drop")]).unwrap();
    assert_eq!((dropped.draft.flows.len(), dropped.draft.machines.len()), (0, 0));
}

#[test]
fn jobs_are_sorted_and_distinguished() {
    let maps: &[&[String]] = &[&[attempt("/r/n", 9_000, 10_000, "SUCCESS")]];
    let one = |submit| job("job_1369942127770_1", submit, "", maps, &[]);
    let imported = read(&(one(5_000) + &one(4_500)), &[]).unwrap();
    let flows: Vec<_> = imported.draft.flows.iter().map(|flow| (flow.id.as_str(), flow.release)).collect();
    assert_eq!(flows, [("job_1369942127770_1 (2)", 0.0), ("job_1369942127770_1", 0.5)]);
    assert!(said(&imported)[0].starts_with("1 job: with the id of an earlier job"));
    assert!(said(&imported)[1].starts_with("1 job: submitted before the job above it"));
    assert_eq!(imported.source.places(&["flows[0].jobs[0].map"])[0].unwrap().line, 3);
}

#[test]
fn workflows_become_flows_of_several_jobs() {
    let maps: &[&[String]] = &[&[attempt("/r/n", 9_000, 10_000, "SUCCESS")]];
    let of = |id: &str, node: &str, submit| {
        let more = format!(
            ",\"user\":\"ann\",\"jobProperties\":{{\"mapreduce.workflow.id\":\"hive_7\",\
             \"mapreduce.workflow.node.name\":\"{node}\",\"mapreduce.workflow.adjacency.Stage-1\":\"Stage-7\",\
             \"mapreduce.workflow.adjacency.Stage-7\":\"Stage-2,Stage-3\"}}"
        );
        job(id, submit, &more, maps, &[])
    };
    let alone = job("job_1369942127770_9", 5_500, "", maps, &[]);
    let text = of("job_1369942127770_1", "Stage-1", 5_000)
        + &alone
        + &of("job_1369942127770_2", "Stage-2", 6_000)
        + &of("job_1369942127770_3", "Stage-3", 7_000);
    let imported = read(&text, &[]).unwrap();
    let [flow, other] = imported.draft.flows.as_slice() else { panic!("two flows") };
    assert_eq!((flow.id.as_str(), flow.release, other.release), ("hive_7", 0.0, 0.5));
    let jobs: Vec<_> = flow.jobs.iter().map(|job| (job.id.as_str(), job.after.clone())).collect();
    // Stage-7 is no job.
    let after = || vec!["Stage-1".to_owned()];
    assert_eq!(jobs, [("Stage-1", vec![]), ("Stage-2", after()), ("Stage-3", after())]);
    assert_eq!(imported.source.places(&["flows[0].jobs[2]"])[0].unwrap().line, 7);
}

#[test]
fn jobs_that_depend_on_another_are_in_its_flow() {
    let maps: &[&[String]] = &[&[attempt("/r/n", 9_000, 10_000, "SUCCESS")]];
    let text = job("job_1_1", 5_000, r#","directDependantJobs":["job_1_2", "job_1_7"]"#, maps, &[])
        + &job("job_1_2", 6_000, r#","directDependantJobs":["job_1_3"]"#, maps, &[])
        + &job("job_1_3", 7_000, "", maps, &[]);
    let imported = read(&text, &[]).unwrap();
    let [flow] = imported.draft.flows.as_slice() else { panic!("one flow") };
    let after: Vec<_> = flow.jobs.iter().map(|job| job.after.join(" ")).collect();
    assert_eq!(
        (flow.id.as_str(), after),
        ("job_1_1", vec![String::new(), "job_1_1".into(), "job_1_2".into()])
    );
}

#[test]
fn a_topology_gives_racks_and_machines_that_were_idle() {
    let maps: &[&[String]] = &[
        &[attempt("n1", 1_000, 2_000, "SUCCESS")],
        &[attempt("n1", 1_000, 2_000, "SUCCESS")],
        &[attempt("/r9/n9", 1_000, 2_000, "SUCCESS")],
    ];
    let topology = r#"{"name":"<root>","children":[{"name":"10\\.1","children":
        [{"name":"n1","children":null},{"name":"n2","children":null}]}]}"#;
    let text = job("job_1369942127770_1", 1_000, "", maps, &[]);
    let imported = read(&text, &[("topology", topology)]).unwrap();
    let machines: Vec<_> =
        imported.draft.machines.iter().map(|m| (m.name.as_str(), m.rack.as_deref(), m.slots)).collect();
    let slots = Slots::Generic;
    assert_eq!(
        machines,
        [("n1", Some("10.1"), slots(2)), ("n2", Some("10.1"), slots(2)), ("n9", Some("r9"), slots(1))]
    );
    let error = read(&text, &[("topology", "{")]).unwrap_err().to_string();
    assert!(error.starts_with("the topology:1:"), "{error}");
}

#[test]
fn invalid_jobs_are_refused_with_their_place() {
    let one = job("job_1_1", 1, "", &[], &[]);
    let error = |text: &str| read(text, &[]).unwrap_err().to_string();
    let text = format!("{one}{}", one.replace("\"submitTime\":1", "\"submitTime\":\"noon\""));
    assert!(
        error(&text).starts_with("t.json:3:33: submitTime: found text \"noon\", expected a whole number")
    );
    assert!(error(&format!("{one}{{\"user\":\"ann\"}}")).starts_with("t.json:3:1: missing field `jobID`"));
    assert!(error(&one[..one.len() - 5]).starts_with("t.json:1:1: found the end of the file within"));
}

/// Tests the sizes of the public traces, and that they become valid workloads.
#[test]
fn the_public_traces_are_read() {
    let expected = [
        ("19-jobs.trace.json.gz", (19, 8_471, 3_203)),
        ("2jobs2min-rumen-jh.json.gz", (2, 192, 0)),
        ("trace_12m.json.gz", (46, 170, 277)),
        ("wordcount2.json", (2, 6, 2)),
        ("zombie-input-trace.json.gz", (3, 154, 30)),
    ];
    for (name, size) in expected {
        let Some(path) = crate::real_data::real(&format!("rumen/{name}")) else { return };
        let bytes = std::fs::read(path).unwrap();
        let imported = read_workload(name, &bytes, None, &ImportOptions::default()).unwrap();
        assert_eq!(
            (imported.importer.name, sizes(&imported.draft)),
            ("rumen", size),
            "{name}: {:#?}",
            said(&imported)
        );
        Instance::new(&imported.draft).unwrap();
    }
}

#[test]
fn the_topology_of_the_public_trace_names_its_machines() {
    let Some(topology) = crate::real_data::real("rumen/19-jobs.topology.json.gz") else { return };
    let Some(trace) = crate::real_data::real("rumen/19-jobs.trace.json.gz") else { return };
    let topology = std::fs::read(topology).unwrap();
    let topology = crate::reading::text::text("topology", &topology).unwrap();
    let options = ImportOptions::from_pairs([("topology", &*topology)]).unwrap();
    let imported = read_workload("t.json", &std::fs::read(trace).unwrap(), None, &options).unwrap();
    let machines = &imported.draft.machines;
    assert!(machines.iter().all(|machine| machine.rack.is_some() && !machine.name.contains('\\')));
    let added =
        imported.diagnostics.iter().filter(|d| d.what.contains("not in the topology")).map(|d| d.count);
    assert_eq!((machines.len(), added.sum::<u64>()), (1_545, 0));
}

/// Flows as they come in a stream.
fn stream(text: &str, pairs: &[(&str, &str)]) -> Result<(Draft, Vec<String>), TraceError> {
    let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
    let source = std::io::Cursor::new(text.as_bytes().to_vec());
    let mut stream = crate::WorkloadStream::open("t.json", source, None, &options)?;
    let mut draft = stream.head().clone();
    while let Some((flow, _)) = stream.next_flow()? {
        draft.flows.push(flow);
    }
    let (_, diagnostics) = stream.finish()?;
    Ok((draft, diagnostics.iter().map(ToString::to_string).collect()))
}

/// The part of a whole trace that a stream has.
fn without_log(draft: Draft) -> Draft {
    let mut draft = Draft { machines: Vec::new(), pools: Vec::new(), ..draft };
    for flow in &mut draft.flows {
        flow.pool = None;
        flow.jobs.iter_mut().for_each(|job| job.recorded.clear());
    }
    draft
}

#[test]
fn a_stream_sorts_jobs_that_are_near_each_other() {
    let one = attempt(HOST, 9_000, 11_000, "SUCCESS");
    let at = |id, submit| job(id, submit, ",\"queue\":\"q\"", &[std::slice::from_ref(&one)], &[]);
    let text = [at("job_1_2", 8_000), at("job_1_1", 7_000), at("job_1_3", 8_500)].concat();
    let whole = without_log(read(&text, &[]).unwrap().draft);
    assert_eq!(whole.flows.iter().map(|flow| flow.release).collect::<Vec<_>>(), [0.0, 1.0, 1.5]);
    for skew in ["1", "2", "200"] {
        let (draft, said) = stream(&text, &[("job-skew", skew)]).unwrap();
        assert_eq!(draft, whole, "{skew}");
        assert_eq!(said, ["3 flows: with a pool, which is ignored in a stream (first at line 3)"]);
    }
    let late = stream(&text, &[("job-skew", "0")]).unwrap_err().to_string();
    assert_eq!(
        late,
        "t.json:3:1: found job \"job_1_1\" submitted 1 s before a job more than 0 jobs above it, expected at most 0 jobs between them (raise job-skew)"
    );
    let missing = stream(" \n", &[]).unwrap_err().to_string();
    assert!(missing.contains("found no workload") || missing.contains("expected"), "{missing}");
}

#[test]
fn a_stream_keeps_only_the_jobs_that_may_be_overtaken() {
    let one = attempt(HOST, 9_000, 11_000, "SUCCESS");
    let settings = Settings::parse(IMPORTER.params, [("job-skew", "5")]).unwrap();
    let mut lines = open(None, &settings);
    let (mut said, mut flows) = (Diagnostics::default(), 0);
    let text: String = (1..=100)
        .map(|k| job(&format!("job_1_{k}"), 1000 * k, "", &[std::slice::from_ref(&one)], &[]))
        .collect();
    for (number, text) in (1..).zip(text.lines()) {
        let line = crate::Line { file: "t", number, text };
        flows += lines.line(&line, &mut said).unwrap().parts(number).1.len();
        // Two lines are a job, and the head reports the first that leaves.
        assert!(flows + 7 >= number as usize / 2, "line {number}: {flows}");
    }
    assert_eq!(flows, 95);
}

#[test]
fn a_stream_is_in_the_order_of_a_real_trace() {
    let Some(path) = crate::real_data::real("rumen/19-jobs.trace.json.gz") else { return };
    let text = crate::read_text("t", &std::fs::read(path).unwrap()).unwrap().into_owned();
    let whole = without_log(read(&text, &[]).unwrap().draft);
    assert_eq!(stream(&text, &[]).unwrap().0, whole);
}
