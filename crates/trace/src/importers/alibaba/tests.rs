use std::fmt::Write;

use slackline_model::draft::{FlowDraft, TasksDraft};

use super::job::numbers;
use super::*;
use crate::importers::import::{ImportedWorkload, read_workload};
use crate::importers::options::ImportOptions;
use crate::importers::stream::WorkloadStream;

const ROWS: &str = "\
M1,4,j_1,1,Terminated,100,160,100.0,0.3
task_Nzg=,1,j_2,1,Terminated,110,111,50,0.1
M2_1,2.0,j_1,1,Failed,160,200,,
M3_2,7,j_1,1,Running,161,0,100,0.3
R4_3_9,2,j_1,1,Terminated,205,265,250,0.49
M1,1,j_3,1,Waiting,,,100,0.3
M1,1,j_4,1,Terminated,300,290,100,0.3
M1_Stg2,,j_5,1,Terminated,120,121,100,0.3
J2_1_Stg7,1,j_5,1,Terminated,121,122,100,0.3
M1_Stg2,1,j_5,1,Terminated,120,121,100,0.3
";

fn read(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
    let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
    read_workload("batch_task.csv", text.as_bytes(), None, &options)
}

fn said(imported: &ImportedWorkload) -> Vec<(&str, u64)> {
    imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect()
}

#[test]
fn rows_of_a_job_become_a_flow() {
    let imported = read(ROWS, &[]).unwrap();
    assert_eq!(imported.importer.name, "alibaba");
    let flows = &imported.draft.flows;
    let found: Vec<_> = flows.iter().map(|flow| (flow.id.as_str(), flow.release, flow.jobs.len())).collect();
    assert_eq!(found, [("j_1", 100.0, 3), ("j_2", 110.0, 1), ("j_5", 120.0, 2)]);
    let map = |k: usize| flows[0].jobs[k].map.as_ref().unwrap().tasks.clone();
    assert_eq!(map(0), TasksDraft::Uniform { tasks: 4, seconds: 60.0 });
    assert_eq!(map(2), TasksDraft::Uniform { tasks: 6, seconds: 60.0 }, "2.5 cores are three slots");
    assert_eq!(flows[0].jobs[1].after, ["M1"]);
    assert_eq!(flows[0].jobs[2].after, ["M2_1"], "the task between them did not run");
    assert_eq!(flows[2].jobs[1].after, ["M1_Stg2"]);
    assert_eq!(
        said(&imported),
        [
            ("planned memory (column 9), which limits no task", 6),
            ("task that failed, kept with its run time", 1),
            ("task without an end, left out", 1),
            ("instances that need several slots at the same time: the slots are scheduled independently", 1),
            ("task that never started, left out", 1),
            ("task that ends before it starts, left out", 1),
            ("no number of instances, given 1", 1),
            ("job without a task that ran, left out", 2),
            ("task that depends on a missing task, dependency left out", 1),
            ("second task of the same name in its job, left out", 1),
        ]
    );
    assert_eq!(imported.source.places(&["flows[2].jobs[0]"])[0].unwrap().line, 8);
    let wide = read(ROWS, &[("slot-cores", "3")]).unwrap().draft;
    assert_eq!(wide.flows[0].jobs[2].map, Some(TasksDraft::Uniform { tasks: 2, seconds: 60.0 }.into()));
}

#[test]
fn names_say_what_comes_after_what() {
    for (name, expected) in [
        ("M1", Some((1, vec![]))),
        ("J5_3_4", Some((5, vec![3, 4]))),
        ("R12_7_Stg3", Some((12, vec![7]))),
        ("MergeTask", None),
        ("task_Nzg3", None),
        ("12", None),
        ("M1_x", None),
        ("M99999999999", None),
    ] {
        assert_eq!(numbers(name), expected, "{name}");
    }
}

/// Rows of many jobs between each other, in the order of their starts.
fn long(jobs: u64) -> String {
    let mut rows: Vec<(u64, String)> = Vec::new();
    for job in 0..jobs {
        let start = 10 * job;
        rows.push((start, format!("M1,2,j_{job},1,Terminated,{start},{},100,0.3", start + 25)));
        let next = start + 25;
        rows.push((next, format!("R2_1,1,j_{job},1,Terminated,{next},{},100,0.3", next + 5)));
    }
    rows.sort();
    rows.iter().fold(String::new(), |mut text, (_, row)| {
        writeln!(text, "{row}").unwrap();
        text
    })
}

fn stream(text: String, job_rows: &str) -> Result<Vec<(FlowDraft, u32)>, TraceError> {
    let options = ImportOptions::from_pairs([("job-rows", job_rows)]).unwrap();
    let mut stream = WorkloadStream::open("-", std::io::Cursor::new(text.into_bytes()), None, &options)?;
    let mut flows = Vec::new();
    while let Some(flow) = stream.next_flow()? {
        flows.push(flow);
    }
    Ok(flows)
}

#[test]
fn a_stream_keeps_only_jobs_that_may_continue() {
    let text = long(200);
    let whole = read(&text, &[]).unwrap().draft.flows;
    assert_eq!(whole.len(), 200);
    for job_rows in ["10", "100000"] {
        let flows = stream(text.clone(), job_rows).unwrap();
        assert_eq!(flows.iter().map(|(flow, _)| flow).collect::<Vec<_>>(), whole.iter().collect::<Vec<_>>());
    }
    let settings = Settings::parse(IMPORTER.params, [("job-rows", "10")]).unwrap();
    let (mut rows, mut diagnostics) = (Rows::of(&settings), Diagnostics::default());
    for (number, text) in (1..).zip(text.lines()) {
        rows.line(&Line { file: "-", number, text }, &mut diagnostics).unwrap();
        assert!(rows.jobs.len() + rows.complete.len() + rows.complete_after.len() <= 36, "row {number}");
    }
}

#[test]
fn flows_that_wait_for_a_long_job_leave_by_and_by() {
    // The first job lasts until the end; all others wait for it, and a few leave with each row.
    let mut text = String::from("M1,1,long,1,Terminated,0,5,100,0.3\n");
    for row in 1..1000 {
        let job = if row % 5 == 0 { "long" } else { "short" };
        writeln!(text, "M{row},1,{job}_{row},1,Terminated,{row},{},100,0.3", row + 5).unwrap();
        if row < 500 && row % 5 == 0 {
            writeln!(text, "R{row},1,long,1,Terminated,{row},{},100,0.3", row + 5).unwrap();
        }
    }
    let settings = Settings::parse(IMPORTER.params, [("job-rows", "10")]).unwrap();
    let (mut rows, mut diagnostics) = (Rows::of(&settings), Diagnostics::default());
    let (mut ids, mut largest, mut waited) = (Vec::new(), 0, 0);
    let mut take = |flows: Vec<FlowAtLine>| {
        largest = largest.max(flows.len());
        ids.extend(flows.into_iter().map(|(flow, _)| flow.id));
    };
    for (number, text) in (1..).zip(text.lines()) {
        if let LineContent::Flows(flows) =
            rows.line(&Line { file: "-", number, text }, &mut diagnostics).unwrap()
        {
            take(flows);
        }
        waited = waited.max(rows.complete.len());
    }
    loop {
        let LineContent::Flows(rest) = rows.end("-", &mut diagnostics).unwrap() else { break };
        take(rest);
    }
    assert!(waited > 400 && largest == LEAVE, "{waited} waited, {largest} left at once");
    let whole = read(&text, &[]).unwrap().draft.flows;
    assert_eq!(ids, whole.into_iter().map(|flow| flow.id).collect::<Vec<_>>());
}

#[test]
fn other_tables_are_called_by_their_names() {
    let error = |text: &str| read(text, &[]).unwrap_err().to_string();
    let first = error("101,200,3,4,5,Terminated,50,0.1\n");
    assert!(first.starts_with("batch_task.csv:1:1: found a row of 8 columns, as batch_task.csv of Alibaba's cluster trace of 2017"), "{first}");
    let instance = error("ins_1,M1,j_1,1,Terminated,1,2,m_1,1,1,1,1,1,1\n");
    assert!(instance.contains("batch_instance.csv"), "{instance}");
}

#[test]
fn bad_rows_have_a_place() {
    let error =
        |row: &str| read(&format!("M1,1,j,1,Terminated,1,2,3,4\n{row}\n"), &[]).unwrap_err().to_string();
    assert_eq!(
        error("M2,1,j,1,Terminated,one,2,3,4"),
        "batch_task.csv:2:21: found \"one\" in column 6, expected a start time in seconds"
    );
    assert!(error(",1,j,1,Terminated,1,2,3,4").contains("expected the name of a task"));
    assert!(error("M2,9e18,j,1,Terminated,1,2,3,4").contains("expected at most"));
    assert!(error("M2,1").contains("found a row of 2 columns, expected the 9 columns"));
}

#[test]
fn rows_of_the_real_shape_are_read() {
    let Some(path) = crate::real_data::real("own/alibaba_batch_task_v2018_shape.csv") else { return };
    let imported = read(&std::fs::read_to_string(path).unwrap(), &[]).unwrap();
    let found: Vec<_> = imported.draft.flows.iter().map(|flow| (flow.id.as_str(), flow.jobs.len())).collect();
    assert_eq!((found.as_slice(), imported.importer.name), ([("j_1", 5), ("j_2", 1)].as_slice(), "alibaba"));
    assert_eq!(imported.draft.flows[0].jobs[4].after, ["M3_1", "R4_2"]);
}
