//! Messages about files that no importer reads, and about invalid documents.

use slackline_model::names::{one_of, unknown};

use super::Importers;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::kind_of;
use crate::reading::place::Place;
use crate::reading::signatures::{BALLISTA, of_text};
use crate::reading::tree::{self, Value};

/// How many fields of an unknown document a message lists.
const FIELDS: usize = 6;

/// Formats that earlier versions read, and the advice instead.
const REMOVED: [(&str, &str); 1] = [("ballista", BALLISTA)];

/// The message for a format that no importer has.
pub fn unknown_format(found: &str, known: &[&str]) -> String {
    match REMOVED.iter().find(|(name, _)| *name == found) {
        Some((_, what)) => format!("found {what}, which Slackline does not read, expected {}", one_of(known)),
        None => unknown("format", found, known),
    }
}

/// The error for a file that no importer reads.
pub(crate) fn unreadable_file(file: &str, text: &str, importers: &Importers) -> TraceError {
    let known: Vec<&str> = importers.names().collect();
    let expected = one_of(&known);
    match of_text(text) {
        Some(name) => {
            let place = Some(Place { line: 1, column: 1 });
            TraceError::input(
                file,
                place,
                format!("found {name}, which Slackline does not read, expected {expected}"),
            )
        }
        None => TraceError::input(
            file,
            None,
            format!("found no known file name and no known content, expected {expected}"),
        ),
    }
}

/// The error for a text that was read as our document and is another file; `None` for a document with a
/// fault.
pub(crate) fn not_a_document(
    file: &str,
    text: &str,
    format: Format,
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
        return Some(unreadable_file(file, text, importers));
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
        "found a document with the fields {}{more}, in no known format, expected a Slackline document with `slackline` and `flows`, or {}",
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
                "the topology of a Rumen trace (--from rumen:topology=FILE beside the trace)",
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
            ("x.txt", "JobID    JobName\n-------- -------\n", "the output of sacct without --parsable2"),
            ("-", "{\"ev\":\"JobStart\",\"version\":1,\"data\":{}}\n", "an event log of Ballista"),
            ("x.txt", "150 526\n1 0 2 3 4 1 7:5.0\n", "a trace of coflows"),
        ] {
            let found = error(name, text.as_bytes());
            assert!(found.starts_with(&format!("{name}:1:1: found ")) && found.contains(expected), "{found}");
            assert!(found.contains("which Slackline does not read, expected one of toml"), "{found}");
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
    fn an_unknown_document_is_recognised_by_its_fields() {
        assert_eq!(
            error("w.json", br#"{"jobs": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}"#)
                .split(", in no known format")
                .next(),
            Some("w.json:1:1: found a document with the fields jobs, b, c, d, e, f, …")
        );
        assert!(error("w.yaml", b"jobs: 1\n").contains("with the fields jobs, in no known format"));
        // A text that may be meant as one of our documents gets the usual errors.
        assert!(error("w.json", br#"{"flows": []}"#).contains("missing field `slackline`"));
        assert!(error("w.json", br#"{"slackline": 1, "flowz": []}"#).contains("unknown field `flowz`"));
        assert!(error("w.json", b"{").contains("EOF"));
    }
}
