//! Every format over small files of our own (`testdata/formats`): what is read of each is approved.
//!
//! An approved file holds the remarks of the importer, each after `# `, and the workload as JSON; or the
//! error. `SLACKLINE_BLESS=1` writes them again.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::fmt::Write;
use std::path::PathBuf;

use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::{Param, Values};
use slackline_trace::{
    Diagnostics, Format, ImportOptions, Importer, Importers, Output, SourceMap, read_workload, write_workload,
};

fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/formats")).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

/// What is read of a file, as an approved file says it.
fn read(name: &str, pairs: &[(&str, &str)]) -> String {
    let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
    let bytes = std::fs::read(path(name)).unwrap();
    match read_workload(name, &bytes, None, &options) {
        Ok(imported) => {
            let mut said = String::new();
            for remark in &imported.diagnostics {
                writeln!(said, "# {remark}").unwrap();
            }
            said + &write_workload(&imported.draft, Format::Json)
        }
        Err(error) => format!("{error}\n"),
    }
}

/// Compares with `FILE.CASE.approved`.
fn approve(name: &str, case: &str, pairs: &[(&str, &str)]) {
    let approved = path(&format!("{name}.{case}.approved"));
    let found = read(name, pairs);
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::write(&approved, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&approved).unwrap_or_default();
    assert!(found == expected, "{}: expected\n{expected}\nfound\n{found}", approved.display());
}

#[test]
fn swim() {
    approve("swim/day.tsv", "lognormal", &[("seed", "3")]);
    let rate = [("durations", "rate"), ("split", "64MiB"), ("reduces-max", "20"), ("task-startup", "0.5")];
    approve("swim/day.tsv", "rate", &rate);
    assert_eq!(read("swim/day.tsv", &rate), read("swim/day.tsv.gz", &rate));
    approve("swim/short-row.tsv", "error", &[]);
    approve("swim/words.tsv", "error", &[]);
}

#[test]
fn woha() {
    approve("woha/shop.xml", "refuse", &[]);
    approve("woha/shop.xml", "assume", &[("missing-inputs", "assume")]);
    approve("woha/cycle.xml", "error", &[]);
}

#[test]
fn oozie() {
    approve("oozie/nightly.xml", "alone", &[]);
    let (properties, actions) = (text("oozie/job.properties"), text("oozie/actions.toml"));
    let beside = [("properties", properties.as_str()), ("actions", actions.as_str())];
    approve("oozie/nightly.xml", "beside", &beside);
    approve("oozie/nightly.xml", "small", &[("cases", "which=small")]);
    approve("oozie/nightly.xml", "nowhere", &[("cases", "which=middling")]);
    for broken in ["nowhere", "cycle", "fork-without-join", "only-a-decision"] {
        approve(&format!("oozie/{broken}.xml"), "error", &[]);
    }
}

#[test]
fn wfformat() {
    approve("wfformat/assembly.json", "whole", &[]);
    approve("wfformat/assembly.json", "scaled", &[("runtime-scale", "0.1")]);
    approve("wfformat/old-version.json", "error", &[]);
    approve("wfformat/no-runtime.json", "error", &[]);
}

#[test]
fn logs() {
    approve("swf/day.swf", "whole", &[]);
    approve("swf/word.swf", "error", &[]);
    approve("sacct/week.txt", "whole", &[("time-zone", "Europe/Berlin"), ("slot-cores", "2")]);
    approve("sacct/no-times.txt", "error", &[]);
    approve("alibaba/batch_task.csv", "whole", &[]);
    approve("alibaba/of-2017.csv", "error", &[]);
    approve("spark/application_7_0001", "whole", &[]);
    approve("batsim/naps.json", "whole", &[]);
}

#[test]
fn azkaban() {
    approve("azkaban/nightly.flow", "alone", &[]);
    let actions = text("azkaban/actions.toml");
    approve("azkaban/nightly.flow", "beside", &[("actions", actions.as_str())]);
    approve("azkaban/cycle.flow", "error", &[]);
}

#[test]
fn rumen() {
    approve("rumen/two-jobs.json", "alone", &[]);
    let topology = text("rumen/topology.json");
    approve("rumen/two-jobs.json", "topology", &[("topology", &topology), ("failed-jobs", "drop")]);
    approve("rumen/cut.json", "error", &[]);
}

#[test]
fn jhist() {
    approve("jhist/sort.jhist", "read", &[]);
    approve("jhist/hadoop-1.jhist", "error", &[]);
}

#[test]
fn sls() {
    approve("sls/jobs.json", "alone", &[]);
    let nodes = text("sls/nodes.json");
    approve("sls/jobs.json", "nodes", &[("nodes", &nodes)]);
    approve("sls/nodes.json", "error", &[]);
}

#[test]
fn documents() {
    approve("document/shop.toml", "read", &[]);
    for other in ["document/shop.json", "document/shop.yaml"] {
        assert_eq!(read(other, &[]), read("document/shop.toml", &[]), "{other}");
    }
    approve("document/unknown-field.toml", "error", &[]);
    approve("document/other-version.yaml", "error", &[]);
}

/// A format of a user: one job per line, its name and its seconds after a comma.
const LINES: Importer = Importer {
    name: "lines",
    summary: "one job per line: name,seconds",
    endings: &["csv"],
    looks_like: |_| false,
    params: &[Param::new("stretch", "1", Values::Real(0.0, 1e3), "factor on all seconds")],
    shaped: Importer::every_setting,
    import: |input, settings| {
        let mut draft = Draft::default();
        let mut lines = Vec::new();
        for (line, row) in (1..).zip(input.text.lines()) {
            let place = slackline_trace::Place { line, column: 1 };
            let wrong = || input.error(Some(place), format!("found {row:?}, expected name,seconds"));
            let (name, seconds) = row.split_once(',').ok_or_else(wrong)?;
            let seconds = seconds.parse::<f64>().map_err(|_| wrong())? * settings.real("stretch");
            let map = Some(TasksDraft::Uniform { tasks: 1, seconds }.into());
            let job = JobDraft { id: name.to_owned(), map, ..JobDraft::default() };
            draft.flows.push(FlowDraft::new(name, vec![job]));
            lines.push(line);
        }
        Ok(Output::new(draft, Diagnostics::default(), SourceMap::rows(input.file, lines)))
    },
    lines: None,
    folder: None,
};

#[test]
fn a_program_can_have_an_importer_of_a_user() {
    let mut options = ImportOptions::new(Importers::default().with(LINES));
    options.set("stretch", "2.5").unwrap();
    let read = |text: &str| read_workload("jobs.csv", text.as_bytes(), None, &options);
    let imported = read("a,4\nb,0.5\n").unwrap();
    assert_eq!(imported.importer.name, "lines");
    let map = imported.draft.flows[1].jobs[0].map.clone();
    assert_eq!(map, Some(TasksDraft::Uniform { tasks: 1, seconds: 1.25 }.into()));
    assert_eq!(options.recorded(&imported.importer).unwrap()["stretch"], "2.5");
    assert_eq!(read("a,4\nb\n").unwrap_err().to_string(), "jobs.csv:2:1: found \"b\", expected name,seconds");
    let unknown = options.set("strech", "2").unwrap_err().to_string();
    assert!(unknown.ends_with(r#"did you mean "stretch"?"#), "{unknown}");
}
