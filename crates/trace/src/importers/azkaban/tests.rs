use std::path::PathBuf;

use slackline_model::draft::FlowDraft;

use crate::importers::import::{ImportedWorkload, read_folder, read_workload};
use crate::importers::options::ImportOptions;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;

const FLOW: &str = "\
config:
  failure.emails: a@example.org
nodes:
  - name: report
    type: noop
    dependsOn: [load, prepare]
  - name: load
    type: command
    condition: one_success
    config:
      command: pwd
    dependsOn:
      - prepare
  - name: prepare
    type: flow
    nodes:
      - name: sort
        type: hadoopJava
        dependsOn:
          - fetch
      - name: fetch
        type: command
      - name: check
        type: command
";

const SIDE: &str =
    "deadline = 900\n[actions.load]\nmaps = 4\nreduces = 2\nseconds = { map = 5, reduce = 7 }\n";

fn read(text: &str, side: &str) -> Result<ImportedWorkload, TraceError> {
    let options = ImportOptions::from_pairs([("actions", side)]).unwrap();
    read_workload("project/nightly.flow", text.as_bytes(), None, &options)
}

fn order(flow: &FlowDraft) -> Vec<(&str, Vec<&str>)> {
    flow.jobs.iter().map(|job| (job.id.as_str(), job.after.iter().map(String::as_str).collect())).collect()
}

fn said(imported: &ImportedWorkload) -> Vec<(&str, u64)> {
    imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect()
}

const CONDITION: &str =
    "condition that is not evaluated: its job runs when all its dependencies have finished";
const ASSUMED: &str = "job without durations in the side file, given one task of 60 s";

#[test]
fn nodes_become_jobs_and_embedded_flows_their_nodes() {
    let imported = read(FLOW, "").unwrap();
    assert_eq!(imported.importer.name, "azkaban");
    let flow = &imported.draft.flows[0];
    assert_eq!(flow.id, "nightly");
    assert_eq!(
        order(flow),
        [
            ("report", vec!["load", "prepare:sort", "prepare:check"]),
            ("load", vec!["prepare:sort", "prepare:check"]),
            ("prepare:sort", vec!["prepare:fetch"]),
            ("prepare:fetch", vec![]),
            ("prepare:check", vec![]),
        ]
    );
    assert_eq!(said(&imported), [(CONDITION, 1), (ASSUMED, 4)]);
    let places = imported.source.places(&["flows[0].jobs[3].map", "flows[0].jobs[0]", "flows[0].id"]);
    assert_eq!(
        places.iter().map(|place| place.map(|p| p.line)).collect::<Vec<_>>(),
        [Some(21), Some(4), None]
    );
}

#[test]
fn durations_come_from_a_side_file() {
    let imported = read(FLOW, SIDE).unwrap();
    let flow = &imported.draft.flows[0];
    let (map, reduce) = (flow.jobs[1].map.as_ref().unwrap(), flow.jobs[1].reduce.as_ref().unwrap());
    assert_eq!(format!("{:?}", map.tasks), "Uniform { tasks: 4, seconds: 5.0 }");
    assert_eq!(format!("{:?}", reduce.tasks), "Uniform { tasks: 2, seconds: 7.0 }");
    assert_eq!((flow.deadline, said(&imported)[1]), (Some(900.0), (ASSUMED, 3)));
    let error = read(FLOW, "[actions.lod]\nseconds = 1\n").unwrap_err().to_string();
    assert!(error.ends_with("did you mean \"load\"?"), "{error}");
}

#[test]
fn cycles_and_unknown_names_are_refused_with_their_place() {
    let error = |from: &str, to: &str| read(&FLOW.replace(from, to), "").unwrap_err().to_string();
    assert_eq!(
        error("      - prepare\n", "      - report\n"),
        "project/nightly.flow:6:16: nodes[0].dependsOn: found jobs that wait for each other: report after load"
    );
    let unknown = error("- fetch\n", "- fetsh\n");
    assert!(
        unknown.starts_with(
            "project/nightly.flow:20:13: nodes[2].nodes[0].dependsOn[0]: found \"fetsh\", expected a node"
        ),
        "{unknown}"
    );
    assert!(
        error("name: check", "name: sort").contains("nodes[2].nodes[2].name: found \"sort\" a second time")
    );
    assert!(read("nodes: []\n", "").unwrap_err().to_string().contains("found no nodes"));
}

fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = std::env::temp_dir().join(format!("slackline-azkaban-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&root);
    std::fs::create_dir_all(&root).unwrap();
    for (name, text) in files {
        std::fs::write(root.join(name), text).unwrap();
    }
    root
}

fn read_of(root: &PathBuf) -> Result<ImportedWorkload, TraceError> {
    let read = read_folder(&Folder::open(root).unwrap(), None, &ImportOptions::default());
    std::fs::remove_dir_all(root).unwrap();
    read
}

#[test]
fn jobs_that_no_other_waits_for_end_flows() {
    let root = folder(
        "jobs",
        &[
            ("a.job", "type=command\ncommand=pwd\n"),
            ("b.job", "type=flow\nflow.name=in-2\ndependencies=a\n"),
            ("c.job", "# the last\ntype=noop\ndependencies=a, b\n"),
            ("in-1.job", "type=command"),
            ("in-2.job", "type=command\ndependencies=\\\n  in-1\n"),
            ("alone.job", "type=command"),
            ("system.properties", "x=y"),
        ],
    );
    let imported = read_of(&root).unwrap();
    let flows = &imported.draft.flows;
    assert_eq!(flows.iter().map(|flow| flow.id.as_str()).collect::<Vec<_>>(), ["alone", "c"]);
    assert_eq!(
        order(&flows[1]),
        [("a", vec![]), ("b:in-1", vec!["a"]), ("b:in-2", vec!["b:in-1"]), ("c", vec!["a", "b:in-2"])]
    );
}

#[test]
fn a_folder_that_is_wrong_says_where() {
    let error = |name: &str, files: &[(&str, &str)]| read_of(&folder(name, files)).unwrap_err().to_string();
    let cycle = error(
        "cycle",
        &[("a.job", "type=command\ndependencies=b"), ("b.job", "type=command\ndependencies=a")],
    );
    assert!(cycle.ends_with("a.job:1:1: found jobs that wait for each other: a after b"), "{cycle}");
    let unknown =
        error("unknown", &[("a.job", "type=command\ndependencies=prepar"), ("prepare.job", "type=command")]);
    assert!(
        unknown.contains(
            "a.job:1:1: found \"prepar\", expected a job of the project; did you mean \"prepare\"?"
        ),
        "{unknown}"
    );
    let deep = error("deep", &[("a.job", "type=flow\nflow.name=b"), ("b.job", "type=flow\nflow.name=a")]);
    assert!(deep.contains("found flows embedded more than 32 deep"), "{deep}");
}

#[test]
fn each_flow_file_of_a_folder_is_a_flow() {
    let root = folder(
        "flows",
        &[("one.flow", FLOW), ("two.flow", FLOW), ("old.job", "type=noop"), ("p.project", "")],
    );
    let imported = read_of(&root).unwrap();
    assert_eq!(imported.draft.flows.iter().map(|flow| flow.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(said(&imported)[0], (".job file beside .flow files, left out", 1));
}

#[test]
fn a_job_alone_is_a_flow_if_it_waits_for_none() {
    let read = |text: &str| read_workload("x/one.job", text.as_bytes(), None, &ImportOptions::default());
    assert_eq!(order(&read("type=command\n").unwrap().draft.flows[0]), [("one", vec![])]);
    let error = read("type=command\ndependencies=two\n").unwrap_err().to_string();
    assert_eq!(error, "x/one.job: found one job of a project, expected the folder of all its files");
}

#[test]
fn real_flows_are_read_or_refused() {
    let Some(root) = crate::real_data::real("azkaban") else { return };
    let read = |name: &str| {
        let text = std::fs::read(root.join(name)).unwrap();
        read_workload(name, &text, None, &ImportOptions::default())
    };
    for (name, jobs, edges) in [
        ("basic.flow", 3, 2),
        ("embedded.flow", 3, 2),
        ("sample_flow.flow", 4, 3),
        ("conditional_flow1.flow", 4, 4),
    ] {
        let flow = &read(name).unwrap().draft.flows[0];
        let found: usize = flow.jobs.iter().map(|job| job.after.len()).sum();
        assert_eq!((flow.jobs.len(), found), (jobs, edges), "{name}");
    }
    let error = read("cycle_found.flow").unwrap_err().to_string();
    assert!(
        error.contains("found jobs that wait for each other: shell_echo after shell_pwd after shell_bash"),
        "{error}"
    );
    let project = Folder::open(&root.join("embedded-v1")).unwrap();
    let imported = read_folder(&project, None, &ImportOptions::default()).unwrap();
    let [flow] = imported.draft.flows.as_slice() else { panic!("one flow") };
    assert_eq!((flow.id.as_str(), flow.jobs.len()), ("jobe", 14));
}
