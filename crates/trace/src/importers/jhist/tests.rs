//! Histories of our own in both forms, folders, and real ones.

use std::fs;

use slackline_model::Instance;
use slackline_model::draft::TasksDraft;

use super::*;
use crate::importers::import::{ImportedWorkload, read_folder, read_workload};
use crate::importers::options::ImportOptions;
use crate::reading::avro::tests::binary;
use crate::reading::folder::Folder;

/// A schema like that of Hadoop, with the parts that are needed here.
const SCHEMA: &str = concat!(
    r#"{"type":"record","name":"Event","namespace":"h","fields":[{"name":"type","type":{"type":"enum","name":"EventType","#,
    r#""symbols":["JOB_SUBMITTED","TASK_STARTED","MAP_ATTEMPT_STARTED","MAP_ATTEMPT_FINISHED","MAP_ATTEMPT_FAILED","#,
    r#""REDUCE_ATTEMPT_STARTED","REDUCE_ATTEMPT_FINISHED","JOB_FINISHED","JOB_FAILED"]}},{"name":"event","type":["#,
    r#"{"type":"record","name":"JobSubmitted","fields":[{"name":"jobid","type":"string"},{"name":"jobName","type":"string"},"#,
    r#"{"name":"userName","type":"string"},{"name":"submitTime","type":"long"},"#,
    r#"{"name":"acls","type":{"type":"map","values":"string"}},{"name":"jobQueueName","type":["null","string"]},"#,
    r#"{"name":"workflowId","type":["null","string"]},{"name":"workflowNodeName","type":["null","string"]},"#,
    r#"{"name":"workflowAdjacencies","type":["null","string"]}]},"#,
    r#"{"type":"record","name":"Task","fields":[{"name":"taskid","type":"string"},{"name":"taskType","type":"string"},"#,
    r#"{"name":"splitLocations","type":"string"}]},"#,
    r#"{"type":"record","name":"Started","fields":[{"name":"taskid","type":"string"},{"name":"taskType","type":"string"},"#,
    r#"{"name":"attemptId","type":"string"},{"name":"startTime","type":"long"},{"name":"trackerName","type":"string"}]},"#,
    r#"{"type":"record","name":"Ended","fields":[{"name":"taskid","type":"string"},{"name":"taskType","type":"string"},"#,
    r#"{"name":"attemptId","type":"string"},{"name":"finishTime","type":"long"},{"name":"hostname","type":"string"},"#,
    r#"{"name":"rackname","type":["null","string"]}]},"#,
    r#"{"type":"record","name":"JobEnded","fields":[{"name":"finishTime","type":"long"}]}]}]}"#
);

/// The workflow in the history of a job: id, node and edges.
type Edges<'a> = (&'a str, &'a str, &'a str);

/// The history of a job of two maps, one of them tried twice, and a reduce.
fn history(number: u32, submit: i64, (id, node, edges): Edges<'_>) -> String {
    let job = format!("1416424547277_000{number}");
    let event = |kind: &str, record: &str, fields: String| {
        format!("{{\"type\":\"{kind}\",\"event\":{{\"h.{record}\":{{{fields}}}}}}}\n")
    };
    let task = |task: &str, kind: &str| format!("\"taskid\":\"task_{job}_{task}\",\"taskType\":\"{kind}\"");
    let word = |text: &str| {
        if text.is_empty() { "null".to_owned() } else { serde_json::json!({ "string": text }).to_string() }
    };
    let attempt = |number: &str, kind: &str, attempt: u32, host: &str, times: (i64, i64), outcome: &str| {
        let (of, id) = (task(number, kind), format!("\"attemptId\":\"attempt_{job}_{number}_{attempt}\""));
        let (start, end) = (submit + times.0, submit + times.1);
        let started = format!("{of},{id},\"startTime\":{start},\"trackerName\":\"{host}\"");
        let ended =
            format!("{of},{id},\"finishTime\":{end},\"hostname\":\"{host}\",\"rackname\":{}", word("/r1"));
        event(&format!("{kind}_ATTEMPT_STARTED"), "Started", started)
            + &event(&format!("{kind}_ATTEMPT_{outcome}"), "Ended", ended)
    };
    let started = |number: &str, kind: &str, splits: &str| {
        event("TASK_STARTED", "Task", format!("{},\"splitLocations\":\"{splits}\"", task(number, kind)))
    };
    let submitted = format!(
        "\"jobid\":\"job_{job}\",\"jobName\":\"count words\",\"userName\":\"ann\",\"submitTime\":{submit},\"acls\":{{}},\
         \"jobQueueName\":{},\"workflowId\":{},\"workflowNodeName\":{},\"workflowAdjacencies\":{}",
        word("day"),
        word(id),
        word(node),
        word(edges)
    );
    [
        format!("Avro-Json\n{SCHEMA}\n"),
        event("JOB_SUBMITTED", "JobSubmitted", submitted),
        started("m_000000", "MAP", "n1,n2"),
        started("m_000001", "MAP", ""),
        started("r_000000", "REDUCE", ""),
        attempt("m_000001", "MAP", 0, "n2", (2_000, 4_000), "FINISHED"),
        attempt("m_000000", "MAP", 0, "n1", (2_000, 3_000), "FAILED"),
        attempt("m_000000", "MAP", 1, "n2", (3_500, 9_500), "FINISHED"),
        attempt("r_000000", "REDUCE", 0, "n1", (5_000, 11_000), "FINISHED"),
        event("JOB_FINISHED", "JobEnded", format!("\"finishTime\":{}", submit + 11_500)),
    ]
    .concat()
}

const ALONE: Edges<'static> = ("", "", "");

fn read(bytes: &[u8]) -> Result<ImportedWorkload, TraceError> {
    read_workload("job.jhist", bytes, None, &ImportOptions::default())
}

fn said(imported: &ImportedWorkload) -> Vec<String> {
    imported.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn both_forms_are_the_same_job() {
    let text = history(1, 1_416_424_775_281, ALONE);
    let imported = read(text.as_bytes()).unwrap();
    let flow = &imported.draft.flows[0];
    assert_eq!((flow.id.as_str(), flow.jobs[0].id.as_str()), ("job_1416424547277_0001", "count words"));
    assert_eq!((flow.user.as_deref(), flow.pool.as_deref(), flow.release), (Some("ann"), Some("day"), 0.0));
    assert_eq!(flow.jobs[0].map, Some(TasksDraft::Each(vec![6.0, 2.0]).into()));
    assert_eq!(flow.jobs[0].reduce, Some(TasksDraft::Uniform { tasks: 1, seconds: 1.5 }.into()));
    let recorded: Vec<_> = flow.jobs[0]
        .recorded
        .iter()
        .map(|a| (a.phase.name(), a.task, a.start, a.end, a.outcome.name()))
        .collect();
    let expected = [
        ("map", 0, 2.0, 3.0, "failed"),
        ("map", 0, 3.5, 9.5, "done"),
        ("map", 1, 2.0, 4.0, "done"),
        ("reduce", 0, 5.0, 11.0, "done"),
    ];
    assert_eq!((recorded, flow.jobs[0].recorded_end), (expected.to_vec(), Some(11.5)));
    let machines: Vec<_> =
        imported.draft.machines.iter().map(|m| (m.name.as_str(), m.rack.as_deref())).collect();
    assert_eq!(machines, [("n1", Some("r1")), ("n2", Some("r1"))]);
    assert_eq!(imported.draft.start.as_ref().unwrap().to_string(), "2014-11-19T19:19:35.281+00:00[UTC]");
    assert!(said(&imported)[0].starts_with("1 task: with known input locations"), "{:?}", said(&imported));

    let binary = read(&binary(&text)).unwrap();
    assert_eq!((binary.draft, binary.diagnostics), (imported.draft, imported.diagnostics));
}

#[test]
fn a_history_that_ends_early_counts_as_far_as_it_goes() {
    let text = history(1, 1_416_424_775_281, ALONE);
    let cut = &text[..text.rfind("\"finishTime\"").unwrap()];
    for bytes in [cut.as_bytes().to_vec(), binary(&text)[..binary(&text).len() - 2].to_vec()] {
        let imported = read(&bytes).unwrap();
        let said = said(&imported);
        assert!(said[0].starts_with("1 file: cut off within an event"), "{said:?}");
        assert!(said[1].starts_with("1 job: without an end in the log"), "{said:?}");
        assert_eq!(imported.draft.flows.len(), 1);
    }
}

#[test]
fn histories_of_all_versions_are_read_alike() {
    let text = history(1, 1_416_424_775_281, ALONE);
    let plain = text
        .replace("{\"string\":\"day\"}", "\"day\"")
        .replace("\"rackname\":{\"string\":\"/r1\"}", "\"rackname\":\"/r1\"");
    assert_ne!(text, plain);
    assert_eq!(read(plain.as_bytes()).unwrap().draft, read(text.as_bytes()).unwrap().draft);
    let old = text.replace(",\"jobQueueName\":{\"string\":\"day\"}", "");
    assert_eq!(read(old.as_bytes()).unwrap().draft.flows[0].pool, None);
}

#[test]
fn a_folder_of_histories_is_one_workload() {
    let folder = tempfolder("histories");
    let day = folder.join("2014/11/19/000000");
    fs::create_dir_all(&day).unwrap();
    let edges = "\"a\"=\"b\" ";
    let first = history(1, 1_416_424_775_281, ("flow", "a", edges));
    let second = history(2, 1_416_424_800_281, ("flow", "b", edges));
    fs::write(day.join("job_1416424547277_0002-1-ann.jhist"), binary(&second)).unwrap();
    fs::write(day.join("job_1416424547277_0001-1-ann.jhist"), first).unwrap();
    let third = history(3, 1_416_424_785_281, ALONE).replace("{\"string\":\"day\"}", "null");
    fs::write(folder.join("job_1416424547277_0003-1-ann.jhist"), third).unwrap();
    let conf = "<configuration><property><name>mapreduce.job.priority</name><value>LOW</value><source>a</source>\
                </property><property><name>mapreduce.job.queuename</name><value>night</value></property></configuration>";
    fs::write(folder.join("job_1416424547277_0003_conf.xml"), conf).unwrap();
    fs::write(folder.join("README"), "not ours").unwrap();
    let read = || read_folder(&Folder::open(&folder).unwrap(), None, &ImportOptions::default());
    let imported = read().unwrap();
    let flows: Vec<_> =
        imported.draft.flows.iter().map(|flow| (flow.id.as_str(), flow.release, flow.jobs.len())).collect();
    assert_eq!(flows, [("flow", 0.0, 2), ("job_1416424547277_0003", 10.0, 1)]);
    assert_eq!(imported.draft.flows[0].jobs[1].after, ["a"]);
    assert_eq!(
        (imported.draft.flows[1].pool.as_deref(), imported.draft.flows[1].priority),
        (Some("night"), Some(2))
    );
    let said = said(&imported);
    assert!(
        said[0].ends_with("(first at line 3 of 2014/11/19/000000/job_1416424547277_0001-1-ann.jhist)"),
        "{said:?}"
    );
    assert_eq!(read().unwrap().sha256, imported.sha256);

    // Two files that a server left incomplete are ignored; alone they are errors.
    let cut = folder.join("job_1416424547277_0004.jhist");
    fs::write(&cut, "Avro-Json\n{\"type\":\"rec").unwrap();
    let mut packed = Vec::new();
    let whole = history(5, 1_416_424_775_281, ALONE);
    crate::Compression::Gzip.write(&mut packed, |out| out.write_all(whole.as_bytes())).unwrap();
    fs::write(folder.join("job_1416424547277_0005.jhist.gz"), &packed[..packed.len() / 2]).unwrap();
    let with_broken = read().unwrap();
    assert_eq!(with_broken.draft, imported.draft);
    let left_out = with_broken.diagnostics.iter().find(|said| said.of == "file").unwrap().to_string();
    let expected = "2 files: damaged, or cut off before the submission of its job, left out (first \
                    job_1416424547277_0004.jhist)";
    assert_eq!(left_out, expected);
    let alone = folder.join("alone");
    fs::create_dir_all(&alone).unwrap();
    fs::rename(&cut, alone.join("job_1416424547277_0004.jhist")).unwrap();
    let alone = read_folder(&Folder::open(&alone).unwrap(), None, &ImportOptions::default());
    let error = alone.unwrap_err().to_string();
    assert!(error.contains("0004.jhist:2:1: found the end of the file within the schema"), "{error}");

    // A copy, an empty file and a file of another kind change nothing, and are counted.
    let again = fs::read(folder.join("job_1416424547277_0003-1-ann.jhist")).unwrap();
    fs::write(folder.join("job_1416424547277_0003-2-ann.jhist"), again).unwrap();
    fs::write(folder.join("job_1416424547277_0007.jhist"), "").unwrap();
    fs::write(folder.join("job_1416424547277_0008.jhist"), [0; 64]).unwrap();
    fs::write(folder.join("trace.json"), "{}").unwrap();
    let with_others = read().unwrap();
    assert_eq!(with_others.draft, imported.draft);
    let said: Vec<String> = with_others.diagnostics.iter().map(ToString::to_string).collect();
    for expected in [
        "1 file: of the same job as another file, left out (first job_1416424547277_0003-2-ann.jhist)",
        "4 files: damaged, or cut off before",
        "1 file: file that is no job history, left out (first trace.json)",
        "1 job: submitted before the job above it, moved into order",
    ] {
        assert!(said.iter().any(|said| said.starts_with(expected)), "{expected} in {said:?}");
    }

    // A folder of two formats is not taken for one of them.
    fs::write(folder.join("app"), "{\"Event\":\"SparkListenerLogStart\",\"Spark Version\":\"3.5\"}\n")
        .unwrap();
    let error = read().unwrap_err().to_string();
    assert!(error.contains("found files of the formats ") && error.contains("--from"), "{error}");
    let named = read_folder(&Folder::open(&folder).unwrap(), Some("jhist"), &ImportOptions::default());
    assert_eq!(named.unwrap().draft, imported.draft);
    fs::remove_file(folder.join("app")).unwrap();

    fs::write(folder.join("job_1416424547277_0006.jhist"), "Meta VERSION=\"1\" .\n").unwrap();
    let error = read().unwrap_err().to_string();
    assert!(error.contains("job_1416424547277_0006.jhist:1:1: found a job history of Hadoop 1"), "{error}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_folder_of_other_files_is_refused() {
    let folder = tempfolder("others");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.txt"), "a").unwrap();
    let opened = Folder::open(&folder).unwrap();
    let error = read_folder(&opened, None, &ImportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("found a folder of 1 files in no known format, expected one of "), "{error}");
    fs::remove_dir_all(&folder).unwrap();
    assert!(Folder::open(&folder).is_err());
}

/// A folder that is not there yet.
fn tempfolder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("slackline-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    folder
}

#[test]
fn invalid_histories_are_refused() {
    let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert!(
        error("Meta VERSION=\"1\" .\nJob JOBID=\"job_1\" .\n")
            .starts_with("job.jhist:1:1: found a job history of Hadoop 1")
    );
    assert!(error("Avro-JSON\n").contains("expected a job history: Avro-Json or Avro-Binary"));
    assert!(
        error("Avro-Json\n{}\n{\"type\":\"JOB_FINISHED\",\"event\":{}}\n")
            .contains("3:1: found no event JOB_SUBMITTED")
    );
    let text = history(1, 1_416_424_775_281, ALONE);
    let broken = text.replacen("\"event\":{\"h.Started\"", "\"event\":7,\"x\":{\"h.Started\"", 1);
    assert!(error(&broken).starts_with("job.jhist:7:"), "{}", error(&broken));
}

#[test]
fn the_public_histories_are_read() {
    let expected = [
        (
            "job_1329348432655_0001-1329348443227-user-Sleep+job-1329348468601-10-1-SUCCEEDED-default.jhist",
            Some((10, 2)),
        ),
        (
            "job_1393307629410_0001-1393307687476-user-Sleep+job-1393307723835-0-0-FAILED-default-1393307693920.jhist",
            Some((1, 0)),
        ),
        (
            "job_1416424547277_0002-1416424775281-root-TeraGen-1416424785433-2-0-SUCCEEDED-default-1416424779349.jhist",
            Some((2, 0)),
        ),
        (
            "job_1526555215992_0001-1526555642677-user-QuasiMonteCarlo-1526555658299-1-1-SUCCEEDED-default-1526555648931.jhist",
            Some((1, 1)),
        ),
    ];
    for (name, size) in expected {
        let Some(path) = crate::real_data::real(&format!("jhist/{name}")) else { return };
        let bytes = fs::read(path).unwrap();
        let imported = read(&bytes).unwrap();
        let tasks =
            |phase| imported.draft.flows[0].jobs[0].recorded.iter().filter(|a| a.phase == phase).count();
        let found =
            (!imported.draft.flows.is_empty()).then(|| (tasks(PhaseKind::Map), tasks(PhaseKind::Reduce)));
        assert_eq!(found, size, "{name}: {:#?}", said(&imported));
        if size.is_some() {
            Instance::new(&imported.draft).unwrap();
        }
        // The schema of the file writes it in the binary form too.
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(read(&binary(&text)).unwrap().draft, imported.draft, "{name}");
    }
    let Some(old) = crate::real_data::real("jhist/job_201311192236_3583_1386370578196_user1_Sleep+job")
    else {
        return;
    };
    let error = read(&fs::read(old).unwrap()).unwrap_err().to_string();
    assert!(error.contains("a job history of Hadoop 1"), "{error}");
}

#[test]
fn damaged_binary_histories_are_read_or_refused() {
    let good = binary(&history(1, 1_416_424_775_281, ("flow", "a", "\"a\"=\"b\" ")));
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 0x55;
        for bytes in [flipped.as_slice(), &good[..at]] {
            if let Err(error) = read(bytes) {
                assert!(!error.to_string().is_empty(), "byte {at}");
            }
        }
    }
}
