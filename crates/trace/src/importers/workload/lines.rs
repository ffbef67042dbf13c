//! Reads the workload document as JSON lines: a first line with everything but the flows, then one flow per
//! line, in the order of their releases.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use slackline_model::{Start, Time};

use crate::documents::workload::{convert, wire};
use crate::importers::importer::{Importer, import_lines};
use crate::importers::line_import::{Line, LineContent, LineImport};
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::json;
use crate::reading::parse::{WORKLOAD, check_version, parse};
use crate::reading::place::Place;
use crate::reading::source::{SourceMap, places};

pub(crate) const NAME: &str = "jsonl";

pub(crate) const LINES: Importer = Importer {
    endings: &["jsonl"],
    lines: Some(|now, _| Box::new(Lines::new(now))),
    ..Importer::new(
        NAME,
        "a Slackline document as JSON lines: a first line, then one flow per line",
        is_head,
        |input, _| {
            let lines = Box::new(Lines::new(input.now));
            import_lines(input, lines, |numbers| SourceMap::lines(input.file, input.text, numbers))
        },
    )
};

/// The keys that distinguish a first line from other documents.
#[derive(Deserialize)]
struct Keys {
    slackline: Option<IgnoredAny>,
    flows: Option<IgnoredAny>,
    policy: Option<IgnoredAny>,
}

/// Whether the first line is a whole object with a version and neither flows nor a policy.
fn is_head(text: &str) -> bool {
    let keys = text.lines().next().and_then(|line| json::from_str::<Keys>(line).ok());
    keys.is_some_and(|keys| keys.slackline.is_some() && keys.flows.is_none() && keys.policy.is_none())
}

/// Reads the document line by line.
struct Lines {
    now: Option<Start>,
    start: Option<Start>,
    /// Whether the first line was there.
    has_head: bool,
    latest: f64,
}

impl Lines {
    fn new(now: Option<&Start>) -> Self {
        Self { now: now.cloned(), start: None, has_head: false, latest: 0.0 }
    }

    fn head(&mut self, line: &Line<'_>) -> Result<LineContent, TraceError> {
        let keys = json::from_str::<Keys>(line.text).ok();
        let expected = "expected the first line of a workload in lines, such as {\"slackline\": 1}";
        if keys.as_ref().is_some_and(|keys| keys.slackline.is_some() && keys.policy.is_some()) {
            return Err(line.error(1, format!("found the first line of a schedule, {expected}")));
        }
        if keys.is_some_and(|keys| keys.slackline.is_none()) {
            return Err(line.error(1, format!("found no `slackline` in this line, {expected}")));
        }
        let on_line = |error: TraceError| error.on_line(line.number);
        let head: wire::Head = parse(line.file, line.text, Format::Json, WORKLOAD).map_err(on_line)?;
        check_version(line.file, line.text, Format::Json, head.slackline).map_err(on_line)?;
        let wire::Head { schema, slackline, start, cluster, objective, pools } = head;
        let (parameters, flows) = (BTreeMap::new(), Vec::new());
        let workload =
            wire::Workload { schema, slackline, start, parameters, cluster, objective, pools, flows };
        let draft = convert::to_draft(workload, self.now.as_ref()).map_err(|faults| {
            SourceMap::document(line.file, line.text, Format::Json).error(faults).on_line(line.number)
        })?;
        self.start.clone_from(&draft.start);
        self.has_head = true;
        Ok(LineContent::Head(Box::new(draft)))
    }

    fn flow(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        let flow: wire::Flow = parse(line.file, line.text, Format::Json, "a flow of a workload in lines")
            .map_err(|error| error.on_line(line.number))?;
        let mut faults = Vec::new();
        let flow = convert::to_flow("", flow, self.start.as_ref(), &mut faults);
        let release = Time::from_seconds_nearest(flow.release);
        if faults.is_empty() && release < Time::from_seconds_nearest(self.latest) {
            let what = format!(
                "found a release at {} s after one at {} s, expected flows in the order of their releases",
                flow.release, self.latest
            );
            faults.push((".release".to_owned(), what));
        }
        if let Some((other, job)) = flow.foreign_inputs().next() {
            // Flows are forgotten after they are read, so lookups are impossible.
            let what = format!(
                "found the input \"@{other}/{job}\", which a workload in lines cannot have: use TOML, JSON or YAML"
            );
            faults.push((".jobs".to_owned(), what));
        }
        if !faults.is_empty() {
            for (path, _) in &mut faults {
                *path = path.trim_start_matches('.').to_owned();
            }
            let source = SourceMap::document(line.file, line.text, Format::Json);
            return Err(source.error(faults).on_line(line.number));
        }
        self.latest = flow.release;
        if flow.deadline.is_some_and(|deadline| deadline < flow.release) {
            diagnostics
                .add_flow(line.number, "the deadline is before the release, so that no schedule meets it");
        }
        Ok(LineContent::Flow(Box::new(flow)))
    }
}

impl LineImport for Lines {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if line.text.trim().is_empty() {
            Ok(LineContent::Nothing)
        } else if self.has_head {
            self.flow(line, diagnostics)
        } else {
            self.head(line)
        }
    }

    fn place(&self, line: &Line<'_>, path: &str) -> Place {
        let place = places(line.text, Format::Json, &[path])[0];
        Place { line: line.number, column: place.map_or(1, |place| place.column) }
    }

    fn end(&mut self, file: &str, _: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if self.has_head {
            return Ok(LineContent::Nothing);
        }
        Err(TraceError::input(file, None, "found nothing, expected a workload in lines"))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use slackline_model::Draft;

    use super::*;
    use crate::{ImportOptions, WorkloadStream, read_workload, write_workload_lines};

    const HEAD: &str = r#"{"slackline": 1, "cluster": {"machines": [{"name": "m", "slots": 2}]}}"#;

    fn flow(id: &str, release: f64) -> String {
        format!(
            r#"{{"id": "{id}", "release": {release}, "jobs": [{{"id": "j", "map": {{"tasks": 2, "seconds": 3}}}}]}}"#
        )
    }

    fn document(lines: &[String]) -> String {
        lines.iter().fold(HEAD.to_owned() + "\n", |text, line| text + line + "\n")
    }

    /// The flows of a document that is read as a stream, or its fault.
    fn stream(name: &str, bytes: &[u8]) -> Result<Draft, TraceError> {
        let source = io::Cursor::new(bytes.to_vec());
        let mut stream = WorkloadStream::open(name, source, None, &ImportOptions::default())?;
        let mut draft = stream.head().clone();
        while let Some((flow, _)) = stream.next_flow()? {
            draft.flows.push(flow);
        }
        assert_eq!(stream.finish()?.0, crate::sha256(bytes));
        Ok(draft)
    }

    fn whole(name: &str, text: &str) -> Result<Draft, TraceError> {
        read_workload(name, text.as_bytes(), None, &ImportOptions::default()).map(|read| read.draft)
    }

    #[test]
    fn lines_are_the_same_document_whole_and_as_a_stream() {
        let text = document(&[flow("a", 1.0), String::new(), flow("b", 1.0), flow("c", 2.5)]);
        let draft = whole("w.jsonl", &text).unwrap();
        assert_eq!((draft.flows.len(), draft.machines.len()), (3, 1));
        assert_eq!(stream("w.jsonl", text.as_bytes()).unwrap(), draft);
        assert_eq!(stream("-", text.as_bytes()).unwrap(), draft, "by its content");
        let mut written = Vec::new();
        write_workload_lines(&mut written, &draft).unwrap();
        assert_eq!(stream("w.jsonl", &written).unwrap(), draft);
        for compression in [crate::Compression::Gzip, crate::Compression::Zstd] {
            let mut packed = Vec::new();
            compression.write(&mut packed, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(stream("w.jsonl.gz", &packed).unwrap(), draft);
            let cut = &packed[..packed.len() - 3];
            let error = stream("w.jsonl.gz", cut).unwrap_err().to_string();
            assert!(error.contains("found damaged compressed data"), "{error}");
        }
    }

    #[test]
    fn flows_are_written_in_the_order_of_their_releases() {
        let draft = whole("w.jsonl", &document(&[flow("a", 1.0), flow("b", 2.0)])).unwrap();
        let mut other = draft.clone();
        other.flows.reverse();
        let mut written = Vec::new();
        write_workload_lines(&mut written, &other).unwrap();
        assert_eq!(stream("w.jsonl", &written).unwrap(), draft);
    }

    #[test]
    fn errors_have_a_line_and_the_path_in_it() {
        let ok = || flow("a", 5.0);
        for (text, expected) in [
            (
                document(&[ok(), flow("b", 4.0)]),
                "w.jsonl:3:24: release: found a release at 4 s after one at 5 s, expected flows in the order of their releases",
            ),
            (
                document(&[ok(), flow("b", 6.0).replace("seconds", "secs")]),
                "w.jsonl:3:68: jobs[0].map: unknown field `secs`",
            ),
            (
                document(&[ok(), "{\"id\": ".to_owned(), flow("b", 6.0)]),
                "w.jsonl:3:7: EOF while parsing a value",
            ),
            (
                document(&[flow("b", 6.0).replace("\"tasks\": 2, ", "")]),
                "w.jsonl:2:55: jobs[0].map: found seconds, expected one of",
            ),
            (flow("a", 0.0), "w.jsonl:1:1: found no `slackline` in this line, expected the first line"),
            ("{\"slackline\": 2}\n".to_owned(), "w.jsonl:1:15: found slackline = 2, expected version 1"),
            (String::new(), "w.jsonl: found nothing, expected a workload in lines"),
            (
                "{\"slackline\": 1, \"policy\": \"fair\"}\n".to_owned(),
                "w.jsonl:1:1: found the first line of a schedule, expected the first line of a workload",
            ),
            (document(&[HEAD.to_owned()]), "w.jsonl:2:2: unknown field `slackline`"),
        ] {
            let found = stream("w.jsonl", text.as_bytes()).unwrap_err().to_string();
            assert!(found.starts_with(expected), "{found}\n{expected}");
            let found = whole("w.jsonl", &text).unwrap_err().to_string();
            assert!(found.starts_with(expected), "whole: {found}\n{expected}");
        }
    }

    #[test]
    fn later_errors_have_a_line_too() {
        let text = document(&[flow("a", 5.0), flow("b", 6.0).replace("2,", "0,")]);
        let read = read_workload("w.jsonl", text.as_bytes(), None, &ImportOptions::default()).unwrap();
        let invalid = slackline_model::Instance::new(&read.draft).unwrap_err();
        let error = TraceError::from_invalid(&invalid, &read.source).to_string();
        assert!(error.starts_with("w.jsonl:3:65: flows[1].jobs[0].map.tasks: found no tasks"), "{error}");
    }

    #[test]
    fn formats_that_have_no_lines_are_no_streams() {
        let error = stream("w.toml", b"slackline = 1\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "w.toml: found a workload in the format toml, expected one that is read line by line, as one of jsonl, swim, rumen, sls, swf, sacct, alibaba"
        );
    }
}
