//! Finds the place of a part of a document in its file.
//!
//! The structs of documents keep no positions. Only after an error the text is read a second time, into a
//! tree, which follows the path of each fault as far as possible.

use std::borrow::Cow;
use std::collections::BTreeSet;

use slackline_model::Invalid;

use crate::reading::error::{Fault, Faults, TraceError};
use crate::reading::folder::Folder;
use crate::reading::format::Format;
use crate::reading::place::Place;
use crate::reading::tree;
use crate::reading::tree::Node;

/// How many faults of a document are looked up: each counts lines from the start of the file, and
/// a message shows no more.
const PLACED_MAX: usize = 100;

/// The data that locates the parts of a workload.
#[derive(Clone, Debug)]
pub struct SourceMap {
    file: String,
    origin: Origin,
    /// By flow: the flow of the file that it comes from, if they differ.
    flows: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
enum Origin {
    Document(String, Format),
    /// A table with a row for each flow: their lines.
    Rows(Vec<u32>),
    /// A document of another kind, with the path there of each path of the workload that is listed.
    Parts(String, Format, Vec<(String, String)>),
    /// Files of a folder: the file and the line of each flow.
    Files(Vec<(String, u32)>),
    /// A document in lines: its text, and the line of each flow.
    Lines(String, Vec<u32>),
    /// Any other format: the paths with known places, sorted.
    Marks(Vec<(String, Place)>),
}

impl SourceMap {
    fn new(file: &str, origin: Origin) -> Self {
        Self { file: file.to_owned(), origin, flows: None }
    }

    /// The same for a workload in which each flow comes from that flow of this one.
    #[must_use]
    pub fn with_origins(self, flows: Vec<usize>) -> Self {
        let flows = match &self.flows {
            Some(before) => flows.into_iter().map(|flow| before.get(flow).copied().unwrap_or(flow)).collect(),
            None => flows,
        };
        let is_the_same = flows.iter().enumerate().all(|(at, &from)| at == from);
        Self { flows: (!is_the_same).then_some(flows), ..self }
    }

    /// A path of the workload as a path of the file.
    fn in_file<'p>(&self, path: &'p str) -> Cow<'p, str> {
        let within = || {
            let (at, rest) = path.strip_prefix("flows[")?.split_once(']')?;
            let from = self.flows.as_ref()?.get(at.parse::<usize>().ok()?)?;
            Some(format!("flows[{from}]{rest}"))
        };
        within().map_or(Cow::Borrowed(path), Cow::Owned)
    }

    pub(crate) fn document(file: &str, text: &str, format: Format) -> Self {
        Self::new(file, Origin::Document(text.to_owned(), format))
    }

    /// For a document in lines, the first of which has everything but the flows; `flows` are the lines of the
    /// flows.
    pub(crate) fn lines(file: &str, text: &str, flows: Vec<u32>) -> Self {
        Self::new(file, Origin::Lines(text.to_owned(), flows))
    }

    /// Of a table with a row for each flow: their lines.
    pub fn rows(file: &str, lines: Vec<u32>) -> Self {
        Self::new(file, Origin::Rows(lines))
    }

    /// Of a document of another kind: the path there of each flow.
    pub(crate) fn parts(file: &str, text: &str, format: Format, flows: Vec<String>) -> Self {
        let of = |(k, path)| (format!("flows[{k}]"), path);
        let parts = flows.into_iter().enumerate().map(of).collect();
        Self::new(file, Origin::Parts(text.to_owned(), format, parts))
    }

    /// Of a document of another kind that is one flow: the path there of each of its jobs.
    pub(crate) fn of_jobs(file: &str, text: &str, format: Format, jobs: Vec<String>) -> Self {
        let of = |(k, path)| (format!("flows[0].jobs[{k}]"), path);
        let parts = jobs.into_iter().enumerate().map(of).collect();
        Self::new(file, Origin::Parts(text.to_owned(), format, parts))
    }

    /// Of the files of a folder: the name of the file of each flow, and its line there.
    pub fn files(folder: &Folder, flows: Vec<(String, u32)>) -> Self {
        let of = |(file, line): (String, u32)| (folder.name_of(&file), line);
        Self::new(folder.name(), Origin::Files(flows.into_iter().map(of).collect()))
    }

    /// For any other format: the places of paths such as `flows[0].jobs[3]`; parts below them have the same
    /// places.
    pub fn marks(file: &str, mut marks: Vec<(String, Place)>) -> Self {
        marks.sort();
        Self::new(file, Origin::Marks(marks))
    }

    /// The file, as its reader called it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The place of the value at each path, or of its nearest ancestor in the file; `None` for a path without
    /// one, such as a cluster from the command line.
    pub fn places(&self, paths: &[&str]) -> Vec<Option<Place>> {
        let paths: Vec<Cow<'_, str>> = paths.iter().map(|path| self.in_file(path)).collect();
        let paths: Vec<&str> = paths.iter().map(|path| &**path).collect();
        self.places_in_file(&paths)
    }

    fn places_in_file(&self, paths: &[&str]) -> Vec<Option<Place>> {
        match &self.origin {
            Origin::Document(text, format) => places(text, *format, paths),
            Origin::Rows(lines) => in_rows(paths, |flow| lines.get(flow).copied()),
            Origin::Files(files) => in_rows(paths, |flow| Some(files.get(flow)?.1)),
            Origin::Lines(text, flows) => paths.iter().map(|path| in_lines(text, flows, path)).collect(),
            Origin::Parts(text, format, parts) => {
                let within = |part: &str, path: &str| {
                    path.strip_prefix(part)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                };
                let there = |path: &&str| {
                    parts.iter().find(|(part, _)| within(part, path)).map(|(_, at)| at.as_str())
                };
                let found: Vec<Option<&str>> = paths.iter().map(there).collect();
                let mut places =
                    places(text, *format, &found.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
                found.into_iter().map(|path| path.and_then(|_| places.next().flatten())).collect()
            }
            Origin::Marks(marks) => paths.iter().map(|path| mark(marks, path)).collect(),
        }
    }

    /// An error of the faults (path, what), the first of them with their places.
    pub fn error(&self, faults: Vec<(String, String)>) -> TraceError {
        let faults: Vec<(String, String)> =
            faults.into_iter().map(|(path, what)| (self.in_file(&path).into_owned(), what)).collect();
        let faults = if self.flows.is_some() { without_copies(faults) } else { faults };
        let paths: Vec<_> = faults.iter().take(PLACED_MAX).map(|(path, _)| path.as_str()).collect();
        let places = self.places_in_file(&paths).into_iter().chain(std::iter::repeat(None));
        let fault = |((path, what), place)| Fault { place, path, what };
        let mut list: Vec<Fault> = faults.into_iter().zip(places).map(fault).collect();
        let file = self.file_of_first(&mut list).unwrap_or_else(|| self.file.clone());
        TraceError::Input(Faults { file, list })
    }

    /// The file of a folder with the first fault; faults in other files are ignored.
    fn file_of_first(&self, list: &mut Vec<Fault>) -> Option<String> {
        let Origin::Files(files) = &self.origin else { return None };
        let file_of = |fault: &Fault| Some(&files.get(flow_of(&fault.path)?)?.0);
        let first = file_of(list.first()?)?;
        list.retain(|fault| file_of(fault) == Some(first));
        Some(first.clone())
    }
}

/// The places of the flows of some paths, by their lines.
fn in_rows(paths: &[&str], line_of: impl Fn(usize) -> Option<u32>) -> Vec<Option<Place>> {
    paths.iter().map(|path| Some(Place { line: line_of(flow_of(path)?)?, column: 1 })).collect()
}

/// The index of the flow that a path goes into.
fn flow_of(path: &str) -> Option<usize> {
    let mut steps = steps(path);
    match (steps.next(), steps.next()) {
        (Some(Step::Key("flows")), Some(Step::Index(flow))) => Some(flow),
        _ => None,
    }
}

/// Each fault once: a fault in a flow of the file appears in every flow that comes from it.
fn without_copies(faults: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut seen = BTreeSet::new();
    faults.into_iter().filter(|fault| seen.insert(fault.clone())).collect()
}

impl TraceError {
    /// The faults of a draft, at their lines in the source.
    pub fn from_invalid(invalid: &Invalid, source: &SourceMap) -> Self {
        source.error(invalid.problems.iter().map(|p| (p.path.clone(), p.what.clone())).collect())
    }
}

/// The place of a path in a document in lines. O(bytes before it).
fn in_lines(text: &str, flows: &[u32], path: &str) -> Option<Place> {
    let mut lines = (1u32..).zip(text.lines());
    let within = path.strip_prefix("flows[").and_then(|rest| rest.split_once(']'));
    let ((line, text), path) = match within {
        Some((index, rest)) => {
            let number = *flows.get(index.parse::<usize>().ok()?)?;
            (lines.find(|(line, _)| *line == number)?, rest)
        }
        None => (lines.find(|(_, text)| !text.trim().is_empty())?, path),
    };
    let column = places(text, Format::Json, &[path])[0].map(|place| place.column);
    // A flow without that part still has its line.
    let column = column.or_else(|| within.map(|_| 1))?;
    Some(Place { line, column })
}

/// The place of the longest marked path that `path` is or begins with. O(length · log marks).
fn mark(marks: &[(String, Place)], path: &str) -> Option<Place> {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at).filter(|&at| at > 0);
    let mut prefixes: Vec<&str> = ends.map(|at| &path[..at]).collect();
    prefixes.push(path);
    let find = |prefix: &&str| marks.binary_search_by(|(known, _)| known.as_str().cmp(prefix)).ok();
    prefixes.iter().rev().find_map(find).map(|at| marks[at].1)
}

/// The place of the value at each path of a document; see [`SourceMap::places`].
pub(crate) fn places(text: &str, format: Format, paths: &[&str]) -> Vec<Option<Place>> {
    let root = tree::read(text, format).ok();
    let place = |path: &&str| {
        let offset = find(root.as_ref()?, path)?;
        Some(Place::of_offset(text.as_bytes(), offset))
    };
    paths.iter().map(place).collect()
}

/// One step of a path.
#[derive(Clone, Copy)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Node<'a> {
    fn step(&self, step: Step<'_>) -> Option<&Node<'a>> {
        match step {
            Step::Index(index) => self.item(index),
            Step::Key(key) => self.get(key),
        }
    }
}

/// The steps of a path such as `flows[3].jobs[1].min_slots`.
fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    path.split(['.', '[']).filter(|step| !step.is_empty()).map(|step| {
        match step.strip_suffix(']').and_then(|number| number.parse().ok()) {
            Some(index) => Step::Index(index),
            None => Step::Key(step),
        }
    })
}

/// The value at a path, the root's being empty.
pub(crate) fn node<'n, 'a>(root: &'n Node<'a>, path: &str) -> Option<&'n Node<'a>> {
    steps(path).try_fold(root, |at, step| at.step(step))
}

/// Offset of the value at `path` or its nearest ancestor below the root.
fn find(root: &Node<'_>, path: &str) -> Option<usize> {
    let mut at = root;
    let mut found = None;
    for step in steps(path) {
        let Some(next) = at.step(step) else { break };
        found = Some(next.offset);
        at = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, format: Format) -> Vec<Option<u32>> {
        let paths = ["flows[1].jobs[0].min_slots", "flows[1].weight", "flows[7].id", "cluster.machines[0]"];
        places(text, format, &paths).into_iter().map(|place| place.map(|p| p.line)).collect()
    }

    #[test]
    fn the_same_document_has_its_lines_in_each_format() {
        let toml =
            "slackline = 1\n[[flows]]\nid = \"a\"\n[[flows]]\nid = \"b\"\n[[flows.jobs]]\nmin_slots = 3\n";
        assert_eq!(lines(toml, Format::Toml), [Some(7), Some(4), Some(2), None]);
        let json = "{\"slackline\": 1,\n\"fl\\u006fws\": [{\"id\": \"}\\\"\"},\n{\"id\": \"b\",\n\"jobs\": [ {\n\"min_slots\" : 3}]}] }";
        assert_eq!(lines(json, Format::Json), [Some(5), Some(3), Some(2), None]);
        let yaml = "slackline: 1\nflows:\n- id: a\n- id: b\n  jobs:\n    - after: []\n      min_slots: 3\n";
        assert_eq!(lines(yaml, Format::Yaml), [Some(7), Some(4), Some(3), None]);
    }

    #[test]
    fn marks_are_found_by_their_beginning() {
        let at = |line| Place { line, column: 3 };
        let marks = vec![("flows[0]".into(), at(2)), ("flows[0].jobs[1]".into(), at(5))];
        let map = SourceMap::marks("w", marks);
        let found = map.places(&["flows[0].jobs[1].map.seconds", "flows[0].jobs[10]", "flows[1]"]);
        assert_eq!(found, [Some(at(5)), Some(at(2)), None]);
    }

    #[test]
    fn rows_are_flows() {
        let map = SourceMap::rows("t", vec![1, 3]);
        let found = map.places(&["flows[1].id", "flows[2].id", "cluster.machines"]);
        assert_eq!(found, [Some(Place { line: 3, column: 1 }), None, None]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\[\\]{}\":,a\\\\ \n&*-]{0,60}") {
            for format in Format::ALL {
                places(&text, format, &["a[0].a", "[0]"]);
            }
        }
    }
}
