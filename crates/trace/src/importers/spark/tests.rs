use std::path::PathBuf;

use slackline_model::draft::{JobDraft, TasksDraft};

use crate::importers::import::{ImportedWorkload, read_folder, read_workload};
use crate::importers::options::ImportOptions;
use crate::reading::compression::Compression;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;

/// An event of a task that ran from one millisecond to another.
fn task(stage: i64, attempt: i64, index: i64, reason: &str, [from, to]: [i64; 2]) -> String {
    format!(
        r#"{{"Event":"SparkListenerTaskEnd","Stage ID":{stage},"Stage Attempt ID":{attempt},"Task Type":"ResultTask","Task End Reason":{{"Reason":"{reason}"}},"Task Info":{{"Task ID":7,"Index":{index},"Attempt":0,"Launch Time":{from},"Executor ID":"1","Host":"h","Finish Time":{to}}}}}"#
    )
}

fn stage(id: i64, tasks: u64, parents: &str, data_set: i64) -> String {
    format!(
        r#"{{"Stage ID":{id},"Stage Attempt ID":0,"Number of Tasks":{tasks},"RDD Info":[{{"RDD ID":{data_set}}},{{"RDD ID":0}}],"Parent IDs":[{parents}]}}"#
    )
}

fn job(id: i64, millis: i64, stages: &[String]) -> String {
    let infos = stages.join(",");
    format!(
        r#"{{"Event":"SparkListenerJobStart","Job ID":{id},"Submission Time":{millis},"Stage Infos":[{infos}],"Stage IDs":[]}}"#
    )
}

fn over(id: i64, millis: i64, result: &str) -> String {
    format!(
        r#"{{"Event":"SparkListenerJobEnd","Job ID":{id},"Completion Time":{millis},"Job Result":{{"Result":"{result}"}}}}"#
    )
}

fn start(id: &str, attempt: &str, millis: i64) -> String {
    format!(
        r#"{{"Event":"SparkListenerApplicationStart","App Name":"n","App ID":"{id}","App Attempt ID":"{attempt}","Timestamp":{millis},"User":"ann"}}"#
    )
}

const VERSION: &str = r#"{"Event":"SparkListenerLogStart","Spark Version":"3.5.0"}"#;
const ENVIRONMENT: &str = r#"{"Event":"SparkListenerEnvironmentUpdate","Spark Properties":{"spark.yarn.queue":"night","spark.task.cpus":"2"}}"#;

/// A second after 1 March 2026 began, in milliseconds.
const T: i64 = 1_772_323_201_000;

/// An application of two jobs; the second reads the shuffle output of the first.
fn log() -> Vec<String> {
    vec![
        VERSION.to_owned(),
        ENVIRONMENT.to_owned(),
        start("app-1", "1", T),
        job(0, T + 10, &[stage(0, 2, "", 4), stage(1, 1, "0", 9)]),
        task(0, 0, 0, "Success", [T + 20, T + 1020]),
        task(0, 0, 1, "ExceptionFailure", [T + 20, T + 520]),
        task(0, 0, 1, "Success", [T + 600, T + 2600]),
        task(0, 0, 1, "Success", [T + 601, T + 2700]),
        task(1, 0, 0, "Success", [T + 2700, T + 3200]),
        r#"{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd","executionId":0}"#
            .to_owned(),
        over(0, T + 3300, "JobSucceeded"),
        job(1, T + 5000, &[stage(2, 2, "", 4), stage(3, 3, "2", 12)]),
        task(3, 0, 0, "Success", [T + 5100, T + 5200]),
        task(3, 1, 0, "Success", [T + 5300, T + 5600]),
        over(1, T + 6000, "JobFailed"),
    ]
}

fn text(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

fn read(text: &str) -> Result<ImportedWorkload, TraceError> {
    read_workload("logs/application_1", text.as_bytes(), None, &ImportOptions::default())
}

fn said(imported: &ImportedWorkload) -> Vec<(&str, u64)> {
    imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect()
}

fn seconds(job: &JobDraft) -> Vec<f64> {
    match job.map.as_ref().map(|map| &map.tasks) {
        Some(TasksDraft::Each(seconds)) => seconds.clone(),
        other => panic!("found {other:?}"),
    }
}

#[test]
fn stages_become_jobs_of_a_flow() {
    let imported = read(&text(&log())).unwrap();
    assert_eq!(imported.importer.name, "spark");
    let [flow] = imported.draft.flows.as_slice() else { panic!("one flow") };
    assert_eq!((flow.id.as_str(), flow.release), ("app-1", 0.0));
    assert_eq!((flow.user.as_deref(), flow.pool.as_deref()), (Some("ann"), Some("night")));
    assert_eq!(imported.draft.start.as_ref().unwrap().to_string(), "2026-03-01T00:00:01+00:00[UTC]");
    let jobs: Vec<_> = flow.jobs.iter().map(|job| (job.id.as_str(), job.after.clone())).collect();
    let after = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        jobs,
        [
            ("stage-0", after(&[])),
            ("stage-1", after(&["stage-0"])),
            ("stage-3", after(&["stage-0", "stage-1"])),
        ]
    );
    assert_eq!(seconds(&flow.jobs[0]), [1.0, 1.0, 2.0, 2.0], "two cores a task");
    assert_eq!(seconds(&flow.jobs[2]), [0.1, 0.1, 0.3, 0.3]);
    assert_eq!(
        said(&imported),
        [
            ("attempt of a task that failed or was killed, left out", 1),
            ("task that had already succeeded, left out", 1),
            ("job that failed, kept as far as it ran", 1),
            ("stage with unfinished tasks, kept with its finished tasks", 1),
            ("pause of at least 1 s between the jobs of a program, left out", 1),
            ("stage with tasks of several cores: the slots of a task are scheduled independently", 4),
        ]
    );
}

#[test]
fn a_stage_that_is_tried_again_has_each_part_of_the_data_once() {
    let part =
        |line: String, part: i64| line.replace("\"Index\"", &format!("\"Partition ID\":{part},\"Index\""));
    let mut lines = log();
    lines.truncate(4);
    lines.extend([
        part(task(0, 0, 0, "Success", [T, T + 1000]), 0),
        part(task(0, 0, 1, "Success", [T, T + 2000]), 1),
        part(task(0, 1, 0, "Success", [T, T + 3000]), 1),
    ]);
    let imported = read(&text(&lines)).unwrap();
    assert_eq!(seconds(&imported.draft.flows[0].jobs[0]), [1.0, 1.0, 2.0, 2.0]);
    let several = ("stage with tasks of several cores: the slots of a task are scheduled independently", 2);
    assert_eq!(said(&imported), [("task that had already succeeded, left out", 1), several]);
}

#[test]
fn lines_that_hold_no_event_are_counted() {
    let mut lines = log();
    lines.insert(4, "{\"Event\":\"SparkListenerTaskEnd\"}".to_owned());
    let mut cut = text(&lines);
    cut.truncate(cut.len() - 30);
    let imported = read(&cut).unwrap();
    let (bad, last) =
        (&imported.diagnostics[0], imported.diagnostics.iter().find(|d| d.what.starts_with("last line")));
    assert_eq!((bad.what.as_str(), bad.first.unwrap().line), ("line that holds no event, left out", 5));
    assert_eq!(last.unwrap().first.unwrap().line, 16);
    let error = read(&text(&[VERSION.to_owned()])).unwrap_err().to_string();
    assert_eq!(error, "logs/application_1: found no event of an application, expected an event log of Spark");
}

/// A separate folder below the target directory.
fn folder(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("slackline-spark-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    root
}

#[test]
fn a_folder_holds_applications_rolled_and_packed() {
    let root = folder("logs");
    let lines = log();
    let rolled = root.join("eventlog_v2_app-1");
    std::fs::create_dir(&rolled).unwrap();
    std::fs::write(rolled.join("appstatus_app-1"), "").unwrap();
    for (name, part) in [("events_2_app-1", &lines[7..11]), ("events_10_app-1", &lines[11..])] {
        std::fs::write(rolled.join(name), text(part)).unwrap();
    }
    let mut packed = Vec::new();
    Compression::Zstd.write(&mut packed, |out| out.write_all(text(&lines[..7]).as_bytes())).unwrap();
    std::fs::write(rolled.join("events_1_app-1.zstd"), packed).unwrap();
    let other =
        text(&lines).replace("app-1", "app-2").replace(&T.to_string()[..8], &(T + 100_000).to_string()[..8]);
    std::fs::write(root.join("app-2.inprogress"), &other[..other.len() - 40]).unwrap();
    std::fs::write(
        root.join("second-try"),
        text(&[start("app-1", "2", T + 3000), lines[3].clone(), lines[4].clone()]),
    )
    .unwrap();
    std::fs::write(root.join("README"), "no log\n").unwrap();
    let imported = read_folder(&Folder::open(&root).unwrap(), None, &ImportOptions::default()).unwrap();
    let mut flows: Vec<_> =
        imported.draft.flows.iter().map(|flow| (flow.id.as_str(), flow.release, flow.jobs.len())).collect();
    flows.sort_by(|a, b| a.0.cmp(b.0));
    assert_eq!(flows, [("app-1", 0.0, 3), ("app-1_2", 3.0, 1), ("app-2", 100.0, 3)]);
    let remarks: Vec<String> = imported.diagnostics.iter().map(ToString::to_string).collect();
    assert!(
        remarks.contains(&"1 file: file that is no event log, left out (first README)".to_owned()),
        "{remarks:?}"
    );
    assert!(
        remarks.contains(
            &"1 row: last line that is cut short, left out (first at line 15 of app-2.inprogress)".to_owned()
        ),
        "{remarks:?}"
    );
    let pauses = "1 row: pause of at least 1 s between the jobs of a program, left out (first at line 1 of eventlog_v2_app-1)";
    assert!(remarks.contains(&pauses.to_owned()), "{remarks:?}");
    let at = imported.draft.flows.iter().position(|flow| flow.id == "app-2").unwrap();
    let error = imported.source.error(vec![(format!("flows[{at}].id"), "found it".into())]).to_string();
    assert!(error.ends_with(&format!("app-2.inprogress:2:1: flows[{at}].id: found it")), "{error}");
    // The folder of one application is one too.
    let alone = read_folder(&Folder::open(&rolled).unwrap(), None, &ImportOptions::default()).unwrap();
    assert_eq!(alone.draft.flows[0].jobs.len(), 3);
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_compacted_file_stands_for_those_before_it() {
    let root = folder("compact");
    let lines = log();
    for (name, part) in [
        ("events_1_a", &lines[..5]),
        ("events_2_a", &lines[5..9]),
        ("events_2_a.compact", &lines[..9]),
        ("events_3_a", &lines[9..]),
    ] {
        std::fs::write(root.join(name), text(part)).unwrap();
    }
    let imported = read_folder(&Folder::open(&root).unwrap(), None, &ImportOptions::default()).unwrap();
    assert_eq!(imported.draft, read(&text(&lines)).unwrap().draft);
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let root = folder("else");
    std::fs::write(root.join("a.txt"), "words\n").unwrap();
    let folder = Folder::open(&root).unwrap();
    let error = |from| read_folder(&folder, from, &ImportOptions::default()).unwrap_err().to_string();
    assert!(
        error(None).contains("found a folder of 1 files in no known format, expected"),
        "{}",
        error(None)
    );
    assert!(error(Some("swim")).contains("found a folder, expected a file for the format swim"));
    assert!(error(Some("spark")).contains("found no event of an application"));
    std::fs::remove_dir_all(&root).unwrap();
}

/// Jobs, tasks and edges of the public logs.
#[test]
fn real_logs_are_read() {
    let Some(root) = crate::real_data::real("spark") else { return };
    let imported = read_folder(&Folder::open(&root).unwrap(), None, &ImportOptions::default()).unwrap();
    let mut found: Vec<_> = imported
        .draft
        .flows
        .iter()
        .map(|flow| {
            let tasks: usize = flow.jobs.iter().map(|job| seconds(job).len()).sum();
            let edges: usize = flow.jobs.iter().map(|job| job.after.len()).sum();
            (flow.id.as_str(), flow.jobs.len(), tasks, edges)
        })
        .collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("application_1457600942802_0093", 1, 10, 0),
            ("application_1603128018386_7759", 5, 217, 5),
            ("application_1724877841851_0016", 5, 107, 5),
            ("local-1622561780883", 4, 213, 3),
            ("local-1634253215009", 6, 6, 5),
            ("local-1651595332844", 2, 7, 1),
            ("local-1651694304852", 4, 26, 3),
        ]
    );
}

/// Found by fuzzing: more tasks than any memory holds, from the number of requested cores.
#[test]
fn a_task_of_more_cores_than_any_machine_has_takes_one() {
    let expected =
        read(&text(&log()).replace(r#""spark.task.cpus":"2""#, r#""spark.task.cpus":"1""#)).unwrap();
    for cores in ["2e17", "1025", "0", "-3", "NaN", "inf"] {
        let text =
            text(&log()).replace(r#""spark.task.cpus":"2""#, &format!(r#""spark.task.cpus":"{cores}""#));
        let imported = read(&text).unwrap();
        assert_eq!(imported.draft.flows, expected.draft.flows, "{cores}");
        assert!(
            said(&imported).contains(&("spark.task.cpus that is not 1 to 1024, taken as 1", 1)),
            "{cores}"
        );
    }
}
