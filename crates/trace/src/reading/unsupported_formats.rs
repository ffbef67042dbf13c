//! Files that are known and not read, or not where they stand: so that a message can call them by their names.

use slackline_model::names::{one_of, unknown};

use crate::importers::Importers;
use crate::reading::error::TraceError;
use crate::reading::parse::kind_of;
use crate::reading::place::Place;
use crate::reading::tree;
use crate::reading::tree::Value;

/// How much of a text is looked at, characters.
const HEAD: usize = 4096;

/// How many fields of an unknown document a message lists.
const FIELDS: usize = 6;

/// What begins a file that is no text.
const MAGIC: [(&[u8], &str); 14] = [
    (b"PK\x03\x04", "a zip archive, as projects of Azkaban come in"),
    (b"PAR1", "a Parquet file"),
    (b"ORC", "an ORC file"),
    (b"Obj\x01", "an Avro file"),
    (b"SEQ", "a Hadoop SequenceFile"),
    (b"BZh", "a file compressed with bzip2"),
    (b"\xfd7zXZ\x00", "a file compressed with xz"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x82SNAPPY\x00", "a file compressed with Snappy, as Spark can write event logs"),
    (b"\xff\x06\x00\x00sNaPpY", "a file compressed with Snappy"),
    (b"ZV\x00", "a file compressed with LZF, as Spark can write event logs"),
    (b"ZV\x01", "a file compressed with LZF, as Spark can write event logs"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"%PDF", "a PDF file"),
];

/// Where the header of a tar archive has its letters.
const TAR_AT: usize = 257;

/// Words that all stand at the beginning of a text, and what it then is.
const MARKS: [(&[&str], &str); 20] = [
    (&["Job JOBID="], "a job history file of Hadoop 1"),
    (&["yarn.scheduler.capacity."], "the configuration of Hadoop's CapacityScheduler"),
    (&["<allocations>"], "the allocations of Hadoop's FairScheduler"),
    (&["<configuration>", "<property>"], "a configuration file of Hadoop"),
    (&["<coordinator-app"], "a coordinator of Oozie: its workflows are what is read"),
    (&["<bundle-app"], "a bundle of Oozie: its workflows are what is read"),
    (&["<adag"], "an abstract workflow of Pegasus (DAX)"),
    (&["<platform"], "a platform of SimGrid"),
    (&["\"traceEvents\""], "a timeline for Chrome or Perfetto"),
    (&["\"dag\"", "\"_dag_id\""], "a DAG of Airflow"),
    (&["\"dag\"", "\"dag_id\""], "a DAG of Airflow"),
    (&["from airflow"], "a DAG of Airflow in Python"),
    (&["import airflow"], "a DAG of Airflow in Python"),
    (&["\"dbt_schema_version\""], "a document of dbt"),
    (&["#SBATCH"], "a job script of Slurm"),
    (&["JobID", "JobName", "-----"], "what sacct prints without --parsable2"),
    (
        &["JOBID", "PARTITION", "NODELIST"],
        "what squeue prints: sacct --parsable2 tells of jobs that are over",
    ),
    (&["task_id\thash\tnative_id"], "a trace of Nextflow"),
    (&["{\"ev\":\"", "\"version\":", "\"data\":"], BALLISTA),
    (&["\"collection_id\"", "\"instance_index\""], "events of Google's cluster trace"),
];

const BALLISTA: &str =
    "an event log of Ballista (convert its stages to jobs of a workload in lines, docs/formats.md)";

/// Formats that earlier versions read, and what to do instead.
const REMOVED: [(&str, &str); 1] = [("ballista", BALLISTA)];

/// The message for a format that no importer has.
pub fn unknown_format(found: &str, known: &[&str]) -> String {
    match REMOVED.iter().find(|(name, _)| *name == found) {
        Some((_, what)) => format!("found {what}, which is not read here, expected {}", one_of(known)),
        None => unknown("format", found, known),
    }
}

/// What texts are that an importer takes, by its name.
const READ: [(&str, &str); 3] = [
    ("rumen", "a job trace of Rumen (--from rumen)"),
    ("jhist", "a job history of Hadoop (--from jhist)"),
    ("sls", "a trace of Hadoop's Scheduler Load Simulator (--from sls)"),
];

/// Fields that all stand at the beginning of a JSON object, and what it then is.
const OBJECTS: [(&[&str], &str); 4] = [
    (&["name", "children"], "the topology of a Rumen trace (--topology FILE beside the trace)"),
    (
        &["rack", "nodes", "node"],
        "a file of nodes of Hadoop's Scheduler Load Simulator (--nodes FILE beside its trace)",
    ),
    (&["workloads", "job_classes"], SYNTH),
    (&["num_jobs", "workloads"], SYNTH),
];

const SYNTH: &str = "a description of jobs to be drawn by Hadoop's Scheduler Load Simulator (SYNTH), which has no jobs of its \
                     own";

/// What bytes are that are no text.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(TAR_AT..TAR_AT + 5) == Some(b"ustar") {
        return Some("a tar archive");
    }
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, name)| *name)
}

/// What a text is.
pub(crate) fn of_text(text: &str) -> Option<&'static str> {
    let head = head(text);
    let has = |words: &&[&str]| words.iter().all(|word| head.contains(word));
    let found = MARKS.iter().find(|(words, _)| has(words)).map(|(_, name)| *name);
    found
        .or_else(|| of_hadoop(text))
        .or_else(|| of_bytes(text.as_bytes()))
        .or_else(|| is_coflows(head).then_some("a trace of coflows"))
}

/// What a text of Hadoop is, and with which option it is read if it is: words that no document of ours begins with.
pub(crate) fn of_hadoop(text: &str) -> Option<&'static str> {
    let importers = Importers::default();
    let fits = |name| importers.get(name).is_some_and(|importer| (importer.looks_like)(text));
    let head = head(text);
    let has = |fields: &&[&str]| fields.iter().all(|field| head.contains(&format!("\"{field}\"")));
    let is_object = head.trim_start().starts_with('{');
    let object = || OBJECTS.iter().find(|(fields, _)| is_object && has(fields)).map(|(_, name)| *name);
    READ.iter().find(|(name, _)| fits(name)).map(|(_, what)| *what).or_else(object)
}

fn head(text: &str) -> &str {
    text.char_indices().nth(HEAD).map_or(text, |(at, _)| &text[..at])
}

/// Whether the first line has the number of racks and of coflows, and the second is a coflow.
fn is_coflows(head: &str) -> bool {
    let mut lines = head.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return false };
    let are_numbers = |cells: &[&str]| cells.iter().all(|cell| cell.parse::<u64>().is_ok());
    first.len() == 2
        && are_numbers(&first)
        && second.len() > 4
        && second.iter().any(|cell| cell.contains(':'))
}

/// What to say of a file that no importer takes.
pub(crate) fn unread(file: &str, text: &str, importers: &Importers) -> TraceError {
    let known: Vec<&str> = importers.names().collect();
    let expected = one_of(&known);
    match of_text(text) {
        Some(name) => {
            let place = Some(Place { line: 1, column: 1 });
            TraceError::input(
                file,
                place,
                format!("found {name}, which is not read here, expected {expected}"),
            )
        }
        None => TraceError::input(
            file,
            None,
            format!("found neither a known file name nor a known content, expected {expected}"),
        ),
    }
}

/// What to say of a text that was taken for a document of ours and is none at all; `None` if it is one with a fault.
pub(crate) fn no_document(
    file: &str,
    text: &str,
    format: crate::Format,
    importers: &Importers,
) -> Option<TraceError> {
    let tree = tree::read(text, format).ok();
    let ours = ["slackline", "flows", "cluster"];
    if let Some(tree) = &tree
        && (kind_of(tree).is_some() || ours.iter().any(|field| tree.get(field).is_some()))
    {
        return None;
    }
    if of_text(text).is_some() {
        return Some(unread(file, text, importers));
    }
    let tree = tree?;
    let Value::Table(table) = tree.value() else { return None };
    let fields: Vec<String> =
        table.iter().take(FIELDS).map(|entry| entry.key.chars().take(40).collect()).collect();
    if fields.is_empty() {
        return None;
    }
    let more = if table.len() > FIELDS { ", …" } else { "" };
    let known: Vec<&str> = importers.names().collect();
    let what = format!(
        "found a document with the fields {}{more}, of no format that is known here, expected one of ours with \
         `slackline` and `flows`, or {}",
        fields.join(", "),
        one_of(&known)
    );
    Some(TraceError::input(file, Some(Place { line: 1, column: 1 }), what))
}

#[cfg(test)]
mod tests {
    use crate::documents::history::read_history;
    use crate::importers::import::read_workload;
    use crate::importers::options::ImportOptions;

    fn error(name: &str, bytes: &[u8]) -> String {
        read_workload(name, bytes, None, &ImportOptions::default()).unwrap_err().to_string()
    }

    #[test]
    fn known_files_are_called_by_their_names() {
        for (name, text, expected) in [
            (
                "t.json",
                r#"{"name": "<root>", "children": [{"name": "r1", "children": null}]}"#,
                "the topology of a Rumen trace (--topology FILE beside the trace)",
            ),
            ("t.json", r#"{"traceEvents": []}"#, "a timeline for Chrome or Perfetto"),
            (
                "n.json",
                "{\"rack\":\"r\",\"nodes\":[{\"node\":\"n\"}]}\n{}\n",
                "a file of nodes of Hadoop's Scheduler Load Simulator",
            ),
            (
                "c.xml",
                "<configuration><property><name>yarn.scheduler.capacity.root.queues",
                "CapacityScheduler",
            ),
            ("c.xml", "<configuration><property></property>", "a configuration file of Hadoop"),
            ("x.txt", "JobID    JobName\n-------- -------\n", "what sacct prints without --parsable2"),
            ("-", "{\"ev\":\"JobStart\",\"version\":1,\"data\":{}}\n", "an event log of Ballista"),
            ("x.txt", "150 526\n1 0 2 3 4 1 7:5.0\n", "a trace of coflows"),
        ] {
            let found = error(name, text.as_bytes());
            assert!(found.starts_with(&format!("{name}:1:1: found ")) && found.contains(expected), "{found}");
            assert!(found.contains("which is not read here, expected one of toml"), "{found}");
        }
        for (bytes, expected) in [
            (
                &b"PK\x03\x04\xff\xfe"[..],
                "w: found a zip archive, as projects of Azkaban come in, expected text",
            ),
            (b"PAR1\xff", "w: found a Parquet file, expected text"),
            (b"\x82SNAPPY\x00\x00", "w: found a file compressed with Snappy, as Spark"),
        ] {
            assert!(error("w", bytes).starts_with(expected), "{}", error("w", bytes));
        }
    }

    #[test]
    fn another_file_than_a_document_is_called_by_its_name() {
        let error = |text: &str, from| {
            let options = ImportOptions::default();
            read_workload("w.json", text.as_bytes(), from, &options).unwrap_err().to_string()
        };
        let trace = r#"{"jobID":"job_1_2","submitTime":1,"mapTasks":[]}"#;
        let found = error(trace, Some("json"));
        assert_eq!(found, "w.json: found a job trace of Rumen (--from rumen), expected a workload");
        assert!(error(r#"{"num_jobs":1,"workloads":[]}"#, None).contains("(SYNTH)"));
        let history = read_history("h.json", trace.as_bytes()).unwrap_err().to_string();
        assert!(history.contains("found a job trace of Rumen"), "{history}");
        // One of ours with such fields is still one of ours.
        assert!(error(r#"{"slackline": 1, "name": 1}"#, None).contains("unknown field"));
    }

    #[test]
    fn an_unknown_document_is_told_by_its_fields() {
        assert_eq!(
            error("w.json", br#"{"jobs": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}"#)
                .split(", of no format")
                .next(),
            Some("w.json:1:1: found a document with the fields jobs, b, c, d, e, f, …")
        );
        assert!(error("w.yaml", b"jobs: 1\n").contains("with the fields jobs, of no format"));
        // What could be meant as one of ours keeps its own words.
        assert!(error("w.json", br#"{"flows": []}"#).contains("missing field `slackline`"));
        assert!(error("w.json", br#"{"slackline": 1, "flowz": []}"#).contains("unknown field `flowz`"));
        assert!(error("w.json", b"{").contains("EOF"));
    }
}
