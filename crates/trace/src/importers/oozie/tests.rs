//! Workflows of Oozie, its own examples and tests among them.

use proptest::prelude::*;
use slackline_model::draft::TasksDraft;

use crate::TraceError;
use crate::importers::import::{ImportedWorkload, read_workload};
use crate::importers::options::ImportOptions;
use crate::reading::format::Format;

fn data(name: &str) -> Option<String> {
    let path = crate::real_data::real(&format!("oozie/{name}"))?;
    Some(std::fs::read_to_string(path).unwrap())
}

fn read(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
    let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
    read_workload("workflow.xml", text.as_bytes(), None, &options)
}

/// `job<before,before` for each job.
fn shape(imported: &ImportedWorkload) -> Vec<String> {
    imported.draft.flows[0].jobs.iter().map(|job| format!("{}<{}", job.id, job.after.join(","))).collect()
}

const SMALL: &str = r#"<workflow-app name="${kind}-small" xmlns="uri:oozie:workflow:0.5">
  <parameters><property><name>kind</name><value>very</value></property></parameters>
  <start to="first"/>
  <action name="first"><map-reduce><configuration>
    <property><name>mapreduce.job.maps</name><value>${maps}</value></property>
  </configuration></map-reduce><ok to="split"/><error to="dead"/></action>
  <fork name="split"><path start="left"/><path start="choose"/></fork>
  <action name="left"><fs/><ok to="meet"/><error to="dead"/></action>
  <decision name="choose"><switch>
    <case to="right">${a eq b}</case><case to="wrong">${c}</case><default to="dead"/>
  </switch></decision>
  <action name="right"><pig/><ok to="meet"/><error to="dead"/></action>
  <action name="wrong"><spark xmlns="uri:oozie:spark-action:0.1"/><ok to="meet"/><error to="dead"/></action>
  <join name="meet" to="last"/>
  <action name="last"><java/><ok to="done"/><error to="dead"/></action>
  <kill name="dead"><message>no</message></kill>
  <end name="done"/>
</workflow-app>"#;

#[test]
fn actions_become_jobs_and_forks_vanish() {
    let actions = "deadline = 900\n[actions.first]\nreduces = 3\nseconds = { map = 20.5, reduce = 7 }\n[actions.last]\nseconds = 4\n";
    let options = [("properties", "# sizes\nn = 1\nmaps: ${n}2\nkind=rather"), ("actions", actions)];
    let imported = read(SMALL, &options).unwrap();
    assert_eq!(imported.importer.name, "oozie");
    assert_eq!(shape(&imported), ["first<", "left<first", "right<first", "last<left,right"]);
    let flow = &imported.draft.flows[0];
    assert_eq!((flow.id.as_str(), flow.deadline), ("rather-small", Some(900.0)));
    let text = crate::write_workload(&imported.draft, Format::Json);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let first = &document["flows"][0]["jobs"][0];
    assert_eq!((&first["map"]["tasks"], &first["map"]["seconds"]), (&12.into(), &20.5.into()));
    assert_eq!((&first["reduce"]["tasks"], &first["reduce"]["seconds"]), (&3.into(), &7.0.into()));
    let shown: Vec<_> = imported.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "1 row: action that is not on the chosen path, left out (first at line 13)",
            "1 row: action without durations in the side file, given 60 s per task (first at line 12)",
        ]
    );
    let other = read(SMALL, &[("cases", "choose=wrong")]).unwrap();
    assert_eq!(shape(&other), ["first<", "left<first", "wrong<first", "last<left,wrong"]);
    assert_eq!(other.draft.flows[0].id, "very-small");
    let line = imported.source.places(&["flows[0].jobs[3].map"])[0].map(|place| place.line);
    assert_eq!(line, Some(15));
}

/// A former bug: they got the reduces of the global configuration.
#[test]
fn actions_within_oozie_are_one_task_under_any_global_configuration() {
    let global = "<global><configuration><property><name>mapred.reduce.tasks</name><value>5</value></property>\
                  </configuration></global>\n  <start to=\"first\"/>";
    let imported = read(&SMALL.replace("<start to=\"first\"/>", global), &[]).unwrap();
    let jobs = &imported.draft.flows[0].jobs;
    let reduces = |k: usize| jobs[k].reduce.as_ref().map(|phase| phase.tasks.clone());
    assert_eq!((jobs[1].id.as_str(), reduces(1)), ("left", None));
    assert_eq!(reduces(0), Some(TasksDraft::Uniform { tasks: 5, seconds: 60.0 }));
}

#[test]
fn errors_have_a_line() {
    let checks = [
        (
            "<ok to=\"split\"/>",
            "<ok to=\"spilt\"/>",
            "workflow.xml:6:32: found a transition from \"first\" to \"spilt\", expected the name of a node; did you mean \"split\"?",
        ),
        (
            "<start to=\"first\"/>",
            "<start to=\"x\"/>",
            "workflow.xml:3:3: found a transition from start to \"x\"",
        ),
        ("<ok to=\"done\"/>", "<ok to=\"first\"/>", ": found a cycle: "),
        (
            "to=\"meet\"/><error to=\"dead\"/></action>\n  <decision",
            "to=\"last\"/><error to=\"dead\"/></action>\n  <decision",
            "workflow.xml:7:",
        ),
        (
            "<join name=\"meet\" to=\"last\"/>",
            "<join name=\"meet\" to=\"last\"/><join name=\"m2\" to=\"last\"/>",
            "",
        ),
        ("<path start=\"choose\"/>", "", "workflow.xml:7:3: found a <fork> of 1 paths, expected at least 2"),
        (
            "<ok to=\"split\"/>",
            "<ok to=\"left\"/>",
            "workflow.xml:14:3: found join \"meet\" on the path from start, expected a fork before it",
        ),
        (
            "<end name=\"done\"/>",
            "<end name=\"done\"/><end name=\"dead\"/>",
            ": found a second node \"dead\", the first is at line 16",
        ),
        ("<end name=\"done\"/>", "<end name=\"done\"/><stop/>", ": found element <stop>"),
        ("<default to=\"dead\"/>", "", ": found a <switch> without <default>"),
        (
            "<error to=\"dead\"/></action>\n  <fork",
            "</action>\n  <fork",
            "workflow.xml:4:3: found <action> without <error>",
        ),
        ("<start to=\"first\"/>", "", "workflow.xml:1:1: found no <start>"),
        ("<start to=\"first\"/>", "<start to=\"done\"/>", "workflow.xml:1:1: found no action on the path"),
    ];
    for (from, to, expected) in checks {
        assert!(SMALL.contains(from), "{from}");
        match read(&SMALL.replacen(from, to, 1), &[]) {
            Err(error) => assert!(error.to_string().contains(expected), "{to}: {error}"),
            Ok(_) => assert!(expected.is_empty(), "{to} was accepted"),
        }
    }
    let error = |name, value| read(SMALL, &[(name, value)]).unwrap_err().to_string();
    assert!(
        error("cases", "choose=left")
            .contains("workflow.xml:9:3: found cases = choose=left, expected one of right, wrong, dead")
    );
    assert!(
        error("cases", "chose=right")
            .contains("expected the name of a decision before =; did you mean \"choose\"?")
    );
    assert_eq!(error("cases", "x"), "cases: found \"x\", expected decision=target after commas");
    assert_eq!(
        error("actions", "[actions.frist]\n"),
        "actions:1:1: actions.frist: found action \"frist\", expected one of the workflow; did you mean \"first\"?"
    );
    assert!(
        error("actions", "[actions.first]\nmap = 3\n")
            .starts_with("actions:2:1: actions.first: unknown field `map`, expected one of `maps`")
    );
    assert_eq!(error("actions", "{\"actions\": 3}"), "actions:1:13: actions: found 3, expected a table");
    assert_eq!(
        error("actions", "[actions.first]\nseconds = \"ten\""),
        "actions:2:11: actions.first.seconds: found text \"ten\", \
         expected seconds or a duration such as 90s, 1.5h or 2d"
    );
    assert!(error("actions", "deadline = -1").starts_with("actions:1:12: deadline: found -1 seconds"));
}

#[test]
fn the_examples_of_oozie_are_read() {
    let cases = [
        (
            "demo.workflow.xml",
            vec![
                "cleanup-node<",
                "pig-node<cleanup-node",
                "streaming-node<cleanup-node",
                "mr-node<pig-node,streaming-node",
            ],
        ),
        ("map-reduce.workflow.xml", vec!["mr-node<"]),
        ("streaming.workflow.xml", vec!["streaming-node<"]),
        ("subwf.workflow.xml", vec!["subworkflow-node<"]),
        ("hadoop-el.workflow.xml", vec!["mr-node<"]),
        ("wf-fork.xml", vec!["action1<", "action2<"]),
        ("wf-schema-valid.xml", vec!["d<", "e<", "g<d,e"]),
    ];
    for (name, expected) in cases {
        let Some(text) = data(name) else { return };
        let imported = read(&text, &[]).unwrap();
        assert_eq!(shape(&imported), expected, "{name}");
    }
    let Some(text) = data("wf-actions-20.xml") else { return };
    let jobs = &read(&text, &[]).unwrap().draft.flows[0].jobs;
    assert_eq!((jobs.len(), jobs[19].after.as_slice()), (20, ["a19".to_owned()].as_slice()));
    let Some(text) = data("graph-workflow-decision-fork-join.xml") else { return };
    assert!(read(&text, &[]).unwrap_err().to_string().contains("found no action on the path"));
    let forked = read(&text, &[("cases", "decision=fork")]).unwrap();
    assert_eq!(shape(&forked), ["pig-1<", "pig-2<"]);
}

#[test]
fn the_broken_examples_of_oozie_are_refused() {
    let Some(text) = data("wf-invalid-fork.xml") else { return };
    let error = read(&text, &[]).unwrap_err().to_string();
    assert!(
        error.contains("found \"c\" on two paths of a fork") || error.contains("ends without a join"),
        "{error}"
    );
    let Some(text) = data("wf-loop1-invalid.xml") else { return };
    let error = read(&text, &[]).unwrap_err().to_string();
    assert!(error.contains("found a transition from \"a\" to \"d\""), "{error}");
    let error =
        read(&text.replace("<default to=\"d\"/>", "<default to=\"z\"/>"), &[]).unwrap_err().to_string();
    assert!(error.contains("found a cycle"), "{error}");
    let Some(text) = data("no-op.workflow.xml") else { return };
    assert!(read(&text, &[]).unwrap_err().to_string().contains("found no action"));
}

#[test]
fn deep_forks_are_refused_before_they_hurt() {
    use std::fmt::Write;
    let (n, mut text) = (5000, String::from("<workflow-app name='w'><start to='f0'/>"));
    for k in 0..n {
        let _ = write!(text, "<fork name='f{k}'><path start='f{}'/><path start='a{k}'/></fork>", k + 1);
        let _ = write!(text, "<action name='a{k}'><fs/><ok to='j{k}'/><error to='e'/></action>");
        let _ = write!(
            text,
            "<join name='j{k}' to='{}'/>",
            if k == 0 { "e".to_owned() } else { format!("j{}", k - 1) }
        );
    }
    let _ = write!(
        text,
        "<action name='f{n}'><fs/><ok to='j{}'/><error to='e'/></action><end name='e'/></workflow-app>",
        n - 1
    );
    assert!(read(&text, &[]).unwrap_err().to_string().contains("nested deeper than 100"));
    let deep = format!("<workflow-app>{}", "<a>".repeat(100_000));
    assert!(read(&deep, &[]).is_err());
}

#[test]
fn properties_that_blow_up_stay_as_they_are() {
    let bomb: Vec<String> = (1..60).map(|k| format!("a{k}=${{a{0}}}${{a{0}}}", k - 1)).collect();
    let properties = format!("a0=aaaa\n{}\nkind=${{a59}}", bomb.join("\n"));
    let options = ImportOptions::from_pairs([("properties", properties.as_str())]).unwrap();
    let flow = read_workload("w.xml", SMALL.as_bytes(), None, &options).unwrap().draft.flows.remove(0);
    assert!(flow.id.len() < 1 << 18, "{} bytes", flow.id.len());
}

proptest! {
    #[test]
    fn damaged_workflows_are_survived(
        cuts in prop::collection::vec((0..SMALL.len(), 0..30usize, "[<>/\"a =&;$}]{0,4}"), 0..3),
        swaps in prop::collection::vec((0..9usize, 0..9usize), 0..3),
        side in "[\\[\\]{}a.=\"\n1]{0,20}",
    ) {
        let names = ["first", "split", "left", "choose", "right", "wrong", "meet", "last", "dead"];
        let mut text = SMALL.to_owned();
        for (a, b) in swaps {
            text = text.replacen(&format!("to=\"{}\"", names[a]), &format!("to=\"{}\"", names[b]), 1);
        }
        let mut bytes = text.into_bytes();
        for (at, gone, new) in cuts {
            let at = at.min(bytes.len());
            let end = (at + gone).min(bytes.len());
            bytes.splice(at..end, new.into_bytes());
        }
        for actions in [String::new(), side] {
            let pairs = [("properties", actions.as_str()), ("actions", actions.as_str())];
            let options = ImportOptions::from_pairs(pairs).unwrap();
            if let Ok(imported) = read_workload("w", &bytes, Some("oozie"), &options) {
                // The result has no cycles and no unknown names.
                let before = |after: &[String], jobs: &[slackline_model::draft::JobDraft]| {
                    after.iter().all(|id| jobs.iter().any(|job| job.id == *id))
                };
                let jobs = &imported.draft.flows[0].jobs;
                prop_assert!(jobs.iter().enumerate().all(|(k, job)| before(&job.after, &jobs[..k])));
            }
        }
    }
}
