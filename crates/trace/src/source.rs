//! Where in a file a part of a document stands.
//!
//! Documents are read straight into their structs, which keep no positions. Only when something is
//! wrong is the text parsed a second time, into a tree of positions, and the path of each fault is
//! followed there as far as it goes.

use serde_saphyr::granit_parser::{Event, Parser};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use slackline_model::Invalid;

use crate::error::{Fault, Faults, TraceError};
use crate::format::Format;
use crate::place::Place;

/// Deepest nesting that is followed; the readers refuse deeper documents.
const DEPTH_MAX: usize = 128;

/// How many faults of a document are looked up: each counts lines from the start of the file, and
/// nobody is shown more.
const PLACED_MAX: usize = 100;

/// What is needed to say where a part of a workload stands.
#[derive(Clone, Debug)]
pub struct SourceMap {
    file: String,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    /// A document of ours.
    Document(String, Format),
    /// A table with a row for each flow: their lines.
    Rows(Vec<u32>),
    /// Anything else: the paths of which the place is known, sorted.
    Marks(Vec<(String, Place)>),
}

impl SourceMap {
    pub(crate) fn document(file: &str, text: &str, format: Format) -> Self {
        Self { file: file.to_owned(), origin: Origin::Document(text.to_owned(), format) }
    }

    /// Of a table with a row for each flow: their lines.
    pub fn rows(file: &str, lines: Vec<u32>) -> Self {
        Self { file: file.to_owned(), origin: Origin::Rows(lines) }
    }

    /// Of anything else: the places of paths such as `flows[0].jobs[3]`; what is within them is found there too.
    pub fn marks(file: &str, mut marks: Vec<(String, Place)>) -> Self {
        marks.sort();
        Self { file: file.to_owned(), origin: Origin::Marks(marks) }
    }

    /// The file, as its reader called it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where the value at each path stands, or its nearest ancestor that the file has; `None` for a
    /// path of which the file has nothing, such as a cluster that was given elsewhere.
    pub fn places(&self, paths: &[&str]) -> Vec<Option<Place>> {
        match &self.origin {
            Origin::Document(text, format) => places(text, *format, paths),
            Origin::Rows(lines) => {
                let place = |path: &&str| {
                    let mut steps = steps(path);
                    match (steps.next(), steps.next()) {
                        (Some(Step::Key("flows")), Some(Step::Index(row))) => {
                            lines.get(row).map(|&line| Place { line, column: 1 })
                        }
                        _ => None,
                    }
                };
                paths.iter().map(place).collect()
            }
            Origin::Marks(marks) => paths.iter().map(|path| mark(marks, path)).collect(),
        }
    }

    /// An error of the faults (path, what), the first of them with their places.
    pub fn error(&self, faults: Vec<(String, String)>) -> TraceError {
        let paths: Vec<_> = faults.iter().take(PLACED_MAX).map(|(path, _)| path.as_str()).collect();
        let places = self.places(&paths).into_iter().chain(std::iter::repeat(None));
        let fault = |((path, what), place)| Fault { place, path, what };
        let list = faults.into_iter().zip(places).map(fault).collect();
        TraceError::Input(Faults { file: self.file.clone(), list })
    }
}

impl TraceError {
    /// What is wrong with a draft, at the lines its source has them.
    pub fn from_invalid(invalid: &Invalid, source: &SourceMap) -> Self {
        source.error(invalid.problems.iter().map(|p| (p.path.clone(), p.what.clone())).collect())
    }
}

/// The place of the longest marked path that `path` is or begins with. O(length · log marks).
fn mark(marks: &[(String, Place)], path: &str) -> Option<Place> {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at).filter(|&at| at > 0);
    let mut prefixes: Vec<&str> = ends.map(|at| &path[..at]).collect();
    prefixes.push(path);
    let find = |prefix: &&str| marks.binary_search_by(|(known, _)| known.as_str().cmp(prefix)).ok();
    prefixes.iter().rev().find_map(find).map(|at| marks[at].1)
}

/// Where the value at each path of a document stands; see [`SourceMap::places`].
pub(crate) fn places(text: &str, format: Format, paths: &[&str]) -> Vec<Option<Place>> {
    let root = match format {
        Format::Toml => DeTable::parse(text).ok().map(|root| toml_table(root.get_ref(), root.span().start)),
        Format::Yaml => yaml(text),
        Format::Json => Json { bytes: text.as_bytes(), at: 0 }.value(0),
    };
    let place = |path: &&str| {
        let offset = root.as_ref()?.find(path)?;
        Some(Place::of_offset(text.as_bytes(), offset))
    };
    paths.iter().map(place).collect()
}

/// One step of a path.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
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

/// A value by its position only.
struct Node {
    offset: usize,
    inner: Inner,
}

enum Inner {
    Leaf,
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl Node {
    fn leaf(offset: usize) -> Self {
        Self { offset, inner: Inner::Leaf }
    }

    /// Offset of the value at `path` or its nearest ancestor below the root.
    fn find(&self, path: &str) -> Option<usize> {
        let mut at = self;
        let mut found = None;
        for step in steps(path) {
            let next = match (&at.inner, step) {
                (Inner::List(list), Step::Index(index)) => list.get(index),
                (Inner::Table(table), Step::Key(key)) => {
                    table.iter().find(|(name, _)| name == key).map(|(_, node)| node)
                }
                _ => None,
            };
            let Some(next) = next else { break };
            found = Some(next.offset);
            at = next;
        }
        found
    }
}

fn toml_table(table: &DeTable<'_>, offset: usize) -> Node {
    let entries = table.iter().map(|(key, value)| (key.get_ref().to_string(), toml_value(value)));
    Node { offset, inner: Inner::Table(entries.collect()) }
}

/// Recursion is bounded because the parser refuses deep nesting.
fn toml_value(value: &Spanned<DeValue<'_>>) -> Node {
    let offset = value.span().start;
    match value.get_ref() {
        DeValue::Array(list) => Node { offset, inner: Inner::List(list.iter().map(toml_value).collect()) },
        DeValue::Table(table) => toml_table(table, offset),
        _ => Node::leaf(offset),
    }
}

/// The first document of a YAML text; aliases are leaves.
fn yaml(text: &str) -> Option<Node> {
    let mut open: Vec<(Node, Option<String>)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        let offset = span.start.byte_offset()?;
        let mut key = None;
        let done = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == DEPTH_MAX => return None,
            Event::SequenceStart(..) => {
                open.push((Node { offset, inner: Inner::List(Vec::new()) }, None));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Node { offset, inner: Inner::Table(Vec::new()) }, None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop()?.0,
            Event::Scalar(text, ..) => {
                key = Some(text.into_owned());
                Node::leaf(offset)
            }
            Event::Alias(_) => Node::leaf(offset),
            _ => continue,
        };
        let Some((parent, pending)) = open.last_mut() else { return Some(done) };
        match (&mut parent.inner, pending.take()) {
            (Inner::List(list), _) => list.push(done),
            (Inner::Table(table), Some(key)) => table.push((key, done)),
            // A key that is no scalar names nothing that a path could.
            (Inner::Table(_), None) => *pending = Some(key.unwrap_or_default()),
            (Inner::Leaf, _) => return None,
        }
    }
    None
}

/// Walks a JSON text that is known to be valid; on any other it stops.
///
/// By hand, because the reader of JSON keeps no positions, and the parser of YAML above does not take all of JSON
/// (keys of more than 1024 characters, a key and its colon on two lines, surrogate pairs).
struct Json<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Json<'_> {
    /// The next byte that is no white space, not consumed.
    fn peek(&mut self) -> Option<u8> {
        let white = self.bytes[self.at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += white;
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Option<Node> {
        let first = self.peek()?;
        let offset = self.at;
        match first {
            _ if depth > DEPTH_MAX => None,
            b'{' | b'[' => {
                self.at += 1;
                let inner = if first == b'{' { self.table(depth)? } else { self.list(depth)? };
                Some(Node { offset, inner })
            }
            b'"' => self.string().map(|_| Node::leaf(offset)),
            _ => {
                let end = |b: &u8| matches!(b, b',' | b']' | b'}') || b.is_ascii_whitespace();
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(end).unwrap_or(rest.len());
                (self.at > offset).then(|| Node::leaf(offset))
            }
        }
    }

    fn table(&mut self, depth: usize) -> Option<Inner> {
        let mut table = Vec::new();
        loop {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return Some(Inner::Table(table));
                }
                b',' => self.at += 1,
                _ => {
                    let key = self.string()?;
                    if self.peek()? != b':' {
                        return None;
                    }
                    self.at += 1;
                    table.push((key, self.value(depth + 1)?));
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Option<Inner> {
        let mut list = Vec::new();
        loop {
            match self.peek()? {
                b']' => {
                    self.at += 1;
                    return Some(Inner::List(list));
                }
                b',' => self.at += 1,
                _ => list.push(self.value(depth + 1)?),
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        if self.bytes.get(start) != Some(&b'"') {
            return None;
        }
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_slice(self.bytes.get(start..self.at)?).ok()
    }
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
