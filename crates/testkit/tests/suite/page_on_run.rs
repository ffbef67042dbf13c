//! The examples of the page on `run` can be read, and the page has every key of a `run` section.

use std::collections::BTreeSet;

use slackline_model::Start;
use slackline_model::draft::Draft;
use slackline_trace::{ImportOptions, Parameters, read_workload};

const PAGE: &str = include_str!("../../../../docs/run.md");
const SCHEMA: &str = include_str!("../../../../docs/schema/workload.schema.json");

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    let blocks = PAGE.split(fence.as_str()).skip(1);
    blocks.map(|rest| rest.split("```").next().unwrap_or(rest)).collect()
}

fn read(name: &str, text: &str, parameters: Parameters) -> Draft {
    let start = Start::parse("2026-03-01T22:00Z").unwrap();
    let options = ImportOptions::default().starting(start).with_parameters(parameters);
    let read = read_workload(name, text.as_bytes(), None, &options);
    read.unwrap_or_else(|error| panic!("{error} in\n{text}")).draft
}

#[test]
fn the_workloads_of_the_page_are_workloads() {
    let toml = blocks("toml");
    assert!(toml.len() >= 3, "the search is broken");
    for block in toml {
        let is_whole = block.starts_with("slackline = 1");
        let text = if is_whole {
            block.to_owned()
        } else {
            format!("slackline = 1\n[[flows]]\nid = \"f\"\n{block}")
        };
        let draft = read("page.toml", &text, Parameters::default());
        assert!(draft.flows.iter().flat_map(|flow| &flow.jobs).all(|job| job.run.is_some()));
    }
    let [workflow] = blocks("xml")[..] else { panic!("one workflow of WOHA") };
    let draft = read("page.xml", workflow, Parameters::default());
    assert_eq!(draft.flows[0].jobs.iter().filter(|job| job.run.is_some()).count(), 2);
}

#[test]
fn the_backfill_of_the_page_is_as_it_says() {
    let [document] =
        blocks("toml").into_iter().filter(|block| block.contains("keep = 20")).collect::<Vec<_>>()[..]
    else {
        panic!("one example of parameters")
    };
    let mut parameters = Parameters::default();
    parameters.for_each("night", "2026-03-01..2026-03-07").unwrap();
    let draft = read("page.toml", document, parameters);
    let ids: Vec<&str> = draft.flows.iter().map(|flow| flow.id.as_str()).collect();
    assert_eq!((ids.len(), ids[0], ids[6], ids[7]), (8, "nightly#2026-03-01", "nightly#2026-03-07", "week"));
    assert_eq!(draft.flows[7].jobs[0].run.as_ref().unwrap().inputs.len(), 7);
}

#[test]
fn the_page_has_every_key_of_a_run_section() {
    let table = PAGE.split("### Keys of a `run` section").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = table.unwrap().lines().filter_map(|line| line.strip_prefix("- `"));
    let documented: BTreeSet<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let run = SCHEMA.split("\n    \"Run\": {").nth(1).unwrap().split("\n    }").next().unwrap();
    let keys = run.lines().filter_map(|line| line.strip_prefix("        \"")?.strip_suffix("\": {"));
    let keys: BTreeSet<&str> = keys.collect();
    assert!(keys.len() > 20, "the search is broken: {keys:?}");
    assert_eq!(documented, keys);
}
