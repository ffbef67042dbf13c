//! Workflow files of WOHA.

use slackline_model::draft::RunWork;

use crate::importers::import::{ImportedWorkload, read_workload};
use crate::importers::options::ImportOptions;
use crate::reading::format::Format;
use crate::{TraceError, write_workload};

const NIGHTLY: &str = r#"<?xml version="1.0"?>
<!-- three jobs -->
<workflow name="nightly" deadline="4800" release="600" weight="3">
  <dataset path="/logs/raw/"/>
  <job name="join">
    <command>join -t ,</command>
    <input>/data/extracted/part-0</input>
    <input>/tmp/users</input>
    <output>/out/joined</output>
    <maps tasks="6" seconds="10" max="4"/>
    <configuration>
      <property><name>mapred.reduce.tasks</name><value>2</value></property>
    </configuration>
    <reduces seconds="5.5"/>
  </job>
  <job name="extract">
    <jar>/lib/etl.jar</jar>
    <main-class>com.example.Extract</main-class>
    <input>/logs/raw</input>
    <output>/data/extracted</output>
    <maps tasks="40" seconds="22"/>
  </job>
  <job name="users">
    <command>sort</command>
    <input>/logs/raw/users</input>
    <output>/tmp/users</output>
    <maps tasks="1" seconds="0"/>
  </job>
</workflow>
"#;

fn read_with(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
    let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
    read_workload("w.xml", text.as_bytes(), None, &options)
}

fn error(from: &str, to: &str) -> String {
    assert!(NIGHTLY.contains(from), "{from}");
    read_with(&NIGHTLY.replacen(from, to, 1), &[]).unwrap_err().to_string()
}

#[test]
fn the_order_of_jobs_follows_from_their_paths() {
    let imported = read_with(NIGHTLY, &[]).unwrap();
    assert_eq!((imported.importer.name, imported.diagnostics.len()), ("woha", 0));
    let flow = &imported.draft.flows[0];
    assert_eq!((flow.id.as_str(), flow.release, flow.weight), ("nightly", 600.0, 3.0));
    assert_eq!(flow.deadline, Some(5400.0));
    let after: Vec<_> = flow.jobs.iter().map(|job| (job.id.as_str(), job.after.join(","))).collect();
    let expected = [("join", "extract,users"), ("extract", ""), ("users", "")];
    assert_eq!(after, expected.map(|(id, after)| (id, after.to_owned())));
    let text = write_workload(&imported.draft, Format::Toml);
    assert!(text.contains("tasks = 2") && text.contains("seconds = 5.5"), "{text}");
    let line = |path: &str| imported.source.places(&[path])[0].map(|place| place.line);
    assert_eq!((line("flows[0].jobs[1].map"), line("flows[0].weight")), (Some(16), Some(3)));
}

#[test]
fn several_workflows_fit_into_one_file() {
    let one = NIGHTLY.split_once("-->").unwrap().1;
    let two = format!("<workflows>{one}{}</workflows>", one.replace("nightly", "hourly"));
    let flows = read_with(&two, &[]).unwrap().draft.flows;
    assert_eq!(flows.iter().map(|flow| flow.id.as_str()).collect::<Vec<_>>(), ["nightly", "hourly"]);
}

#[test]
fn errors_have_a_line() {
    let checks = [
        (" deadline=\"4800\"", "", "w.xml:3:1: found <workflow> without deadline"),
        (
            "deadline=\"4800\"",
            "deadline=\"soon\"",
            "w.xml:3:1: found deadline=\"soon\", expected seconds or a duration such as 90s, 1.5h or 2d, from 0",
        ),
        (
            "weight=\"3\"",
            "wieght=\"3\"",
            "w.xml:3:1: found attribute \"wieght\" of <workflow>, expected one of name, deadline, release, weight; did you mean \"weight\"?",
        ),
        (
            "<dataset path=\"/logs/raw/\"/>",
            "<datasets/>",
            "w.xml:4:3: found element <datasets>, expected one of dataset, job; did you mean \"dataset\"?",
        ),
        (
            "<dataset path=\"/logs/raw/\"/>",
            "",
            "w.xml:19:5: found input \"/logs/raw\" that no job writes, expected <dataset path=\"/logs/raw\"/>",
        ),
        (
            "<output>/tmp/users</output>",
            "<output>/data/extracted/b</output>",
            "w.xml:26:5: found \"/data/extracted/b\" written by job \"users\", expected one writer; job \"extract\" at line 16 writes \"/data/extracted\"",
        ),
        (
            "<input>/logs/raw/users</input>",
            "<input>/out</input>",
            "w.xml:25:5: found a cycle: job \"users\" reads data that is made from its own output",
        ),
        (
            "<command>sort</command>",
            "",
            "w.xml:23:3: found job \"users\" without <jar>, expected <jar> or <command>",
        ),
        ("<command>sort</command>", "<jar>a</jar>", "w.xml:24:5: found <jar> without <main-class>"),
        ("<command>sort</command>", "<jar>a</jar><command>b</command>", "found <command> beside <jar>"),
        ("<maps tasks=\"40\" seconds=\"22\"/>", "", "w.xml:16:3: found job \"extract\" without tasks"),
        ("tasks=\"1\"", "tasks=\"-1\"", "w.xml:27:5: found tasks=\"-1\" of <maps>, expected a whole number"),
        (" tasks=\"1\"", "", "w.xml:27:5: found <maps> without tasks"),
        (
            "name=\"users\"",
            "name=\"join\"",
            "w.xml:23:3: found a second job \"join\", the first is at line 5",
        ),
        ("<input>/tmp/users</input>", "<input> </input>", "w.xml:8:5: found no text in <input>"),
        (
            "<dataset path=\"/logs/raw/\"/>",
            "<dataset path=\"/a\"/><dataset path=\"/a/\"/>",
            "w.xml:4:23: found a second <dataset> \"/a\", the first is at line 4",
        ),
        (
            "/logs/raw/\"/>",
            "/tmp/users\"/><dataset path=\"/logs\"/>",
            "w.xml:26:5: found \"/tmp/users\" written by job \"users\", expected no job to write the <dataset> of line 4",
        ),
        ("</workflow>", "", "w.xml:"),
        ("<?xml version=\"1.0\"?>", "<!DOCTYPE w [<!ENTITY a \"b\">]>", "w.xml:1:"),
    ];
    for (from, to, expected) in checks {
        let found = error(from, to);
        assert!(found.contains(expected), "{from} → {to}\nfound    {found}\nexpected {expected}");
    }
}

#[test]
fn missing_inputs_may_be_allowed_and_are_counted() {
    let text = NIGHTLY.replace("<dataset path=\"/logs/raw/\"/>", "");
    let imported = read_with(&text, &[("missing-inputs", "assume")]).unwrap();
    assert_eq!(imported.diagnostics[0].count, 2);
}

#[test]
fn a_job_with_a_command_can_be_run() {
    let text = NIGHTLY
        .replace("/data/extracted/part-0", "/data/extracted")
        .replace(
            "<command>sort</command>",
            "<command>sort</command><reducer>uniq -c</reducer><combiner>cat</combiner>",
        )
        .replace("<maps tasks=\"1\" seconds=\"0\"/>", "");
    let draft = read_with(&text, &[]).unwrap().draft;
    let runs: Vec<_> = draft.flows[0].jobs.iter().map(|job| job.run.clone()).collect();
    let commands = |mapper: &str, reducer: &str, combiner: Option<&str>| RunWork::Commands {
        mapper: mapper.into(),
        reducer: Some(reducer.into()),
        combiner: combiner.map(Into::into),
    };
    let join = runs[0].clone().unwrap();
    assert_eq!(join.work, commands("join -t ,", "cat", None), "reduces pass on what they get");
    assert_eq!(join.inputs, ["@extract", "@users"]);
    assert_eq!((join.output.as_deref(), join.reducers), (Some("/out/joined"), Some(2)));
    assert_eq!(runs[1], None, "a jar is only planned");
    let users = runs[2].clone().unwrap();
    assert_eq!(users.work, commands("sort", "uniq -c", Some("cat")));
    assert_eq!((users.inputs, users.reducers), (vec!["/logs/raw/users".to_owned()], None));
    assert!(
        error("<main-class>", "<reducer>cat</reducer><main-class>").contains("<reducer> without <command>")
    );
}

/// Found by damaged inputs.
#[test]
fn a_job_that_is_called_like_a_path_is_read_by_its_output() {
    let text = NIGHTLY
        .replace("/data/extracted/part-0", "/data/extracted")
        .replace("name=\"extract\"", "name=\"/data/extract\"")
        .replace("<maps tasks=\"1\" seconds=\"0\"/>", "");
    let draft = read_with(&text, &[]).unwrap().draft;
    let join = &draft.flows[0].jobs[0];
    assert_eq!(join.after, ["/data/extract", "users"]);
    assert_eq!(join.run.as_ref().unwrap().inputs, ["/data/extracted", "@users"]);
    let written = write_workload(&draft, Format::Json);
    read_workload("again", written.as_bytes(), Some("json"), &ImportOptions::default()).unwrap();
}
