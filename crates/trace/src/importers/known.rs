//! Files that are known and cannot be read where they stand: called by their names in messages.

use super::{jhist, rumen, sls};

/// How much of a file is looked at.
const HEAD: usize = 4096;

/// What a text is, and with which option it is read, if it is a file of some known kind.
pub(crate) fn known_as(text: &str) -> Option<&'static str> {
    let head = text.char_indices().nth(HEAD).map_or(text, |(at, _)| &text[..at]);
    let is_object = head.trim_start().starts_with('{');
    let has =
        |fields: &[&str]| is_object && fields.iter().all(|field| head.contains(&format!("\"{field}\"")));
    if rumen::looks_like(text) {
        Some("a job trace of Rumen (--from rumen)")
    } else if jhist::looks_like(text) {
        Some("a job history of Hadoop (--from jhist)")
    } else if sls::looks_like(text) {
        Some("a trace of Hadoop's Scheduler Load Simulator (--from sls)")
    } else if has(&["name", "children"]) {
        Some("the topology of a Rumen trace (--topology FILE beside the trace)")
    } else if has(&["rack", "nodes", "node"]) {
        Some("a file of nodes of Hadoop's Scheduler Load Simulator (--nodes FILE beside its trace)")
    } else if has(&["workloads", "job_classes"]) || has(&["num_jobs", "workloads"]) {
        Some(
            "a description of jobs to be drawn by Hadoop's Scheduler Load Simulator (SYNTH), which has no jobs of its own",
        )
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::{ImportOptions, Importers, read_history, read_workload};

    #[test]
    fn known_files_are_called_by_their_names() {
        let error = |name: &str, from, text: &str| {
            read_workload(name, text.as_bytes(), from, &ImportOptions::new(Importers::default()))
                .unwrap_err()
                .to_string()
        };
        let trace = r#"{"jobID":"job_1_2","submitTime":1,"mapTasks":[]}"#;
        let found = error("w.json", Some("json"), trace);
        assert_eq!(found, "w.json: found a job trace of Rumen (--from rumen), expected a workload");
        let topology = r#"{"name":"<root>","children":[]}"#;
        assert!(
            error("w.json", None, topology).contains("found the topology of a Rumen trace (--topology FILE")
        );
        let nodes = r#"{"rack":"r","nodes":[{"node":"a"}]}"#;
        assert!(error("w.json", None, nodes).contains("found a file of nodes"));
        assert!(error("w.json", None, r#"{"num_jobs":1,"workloads":[]}"#).contains("(SYNTH)"));
        let history = read_history("h.json", trace.as_bytes()).unwrap_err().to_string();
        assert!(history.contains("found a job trace of Rumen"), "{history}");
        // One of ours with such fields is still one of ours.
        assert!(error("w.json", None, r#"{"slackline": 1, "name": 1}"#).contains("unknown field"));
    }
}
