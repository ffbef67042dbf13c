//! Fields of records: of lines, of CSV and of JSON lines; the arguments `format`, `separator` and `header`.
//!
//! A record is one line in each format. A quoted field of CSV that continues on the next line is refused, and
//! so is JSON over several lines: each line would be read as a record.

use slackline_model::names::unknown;

use crate::base::error::TaskError;
use crate::input::fields::{is_space, words};
use crate::input::reader::{Format, Records, needs_all};
use crate::process::spec::Split;
use crate::programs::arguments::{Argument, Arguments};

/// The argument `format` of programs that read fields.
pub(crate) const FORMAT: Argument = Argument {
    name: "format",
    about: "`lines`, `csv` (quoted as in RFC 4180, one record per line) or `json` (one object per line) (lines)",
};
pub(crate) const SEPARATOR: Argument = Argument {
    name: "separator",
    about: "field separator of lines and CSV: one character, `tab`, or for lines `spaces` (any white space) (tab; for CSV a comma)",
};
pub(crate) const HEADER: Argument = Argument {
    name: "header",
    about: "whether the first line of each file names the fields; it is skipped, and arguments may name fields (false; true if an argument names a field)",
};

/// The longest first line that is searched, bytes.
const HEADER_MAX: usize = 1 << 20;

/// Finds one field of records.
pub(crate) struct Column {
    program: &'static str,
    /// The argument that selects the field.
    argument: &'static str,
    layout: Layout,
    wanted: ColumnKey,
    has_header: bool,
    /// Whether the next record is a header.
    at_header: bool,
    /// The split and the number of its records so far.
    place: Option<(Split, u64)>,
    /// The number of the field, from 1; 0 is the record. The number of a name is known after the header.
    number: usize,
    /// Buffer for a field that must be unescaped.
    scratch: Vec<u8>,
}

/// The format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Separated(u8),
    Spaces,
    Csv(u8),
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ColumnKey {
    Number,
    Name(String),
}

impl Column {
    /// The field that the argument `argument` of a program selects, by default `otherwise`.
    pub(crate) fn new(
        arguments: &Arguments<'_>,
        argument: &'static str,
        otherwise: usize,
    ) -> Result<Self, TaskError> {
        let layout = layout(arguments)?;
        let (mut wanted, mut number) = (ColumnKey::Number, otherwise);
        if let Some(text) = arguments.text(argument)? {
            match text.parse() {
                Ok(found) if layout != Layout::Json || found == 0 => number = found,
                _ if layout == Layout::Json || !text.starts_with(['-', '+']) && !text.is_empty() => {
                    wanted = ColumnKey::Name(text.into_owned());
                }
                _ => {
                    let problem = format!("found {text:?}, expected a whole number or the name of a field");
                    return Err(arguments.problem(argument, &problem));
                }
            }
        } else if layout == Layout::Json && otherwise > 0 {
            return Err(arguments.problem(argument, "found none, expected the name of a field"));
        }
        let is_named = wanted != ColumnKey::Number && layout != Layout::Json;
        let has_header = arguments.flag("header")? || is_named;
        if has_header && layout == Layout::Json {
            return Err(arguments
                .problem("header", "found one for JSON, expected none: its objects name their fields"));
        }
        Ok(Column {
            program: arguments.program(),
            argument,
            layout,
            wanted,
            has_header,
            at_header: false,
            place: None,
            number,
            scratch: Vec::new(),
        })
    }

    /// Whether the field is the whole record, without a header.
    pub(crate) fn is_record(&self) -> bool {
        self.wanted == ColumnKey::Number && self.number == 0
    }

    /// Must be called before the records of a split. If the split does not begin its file, the start of the
    /// file is searched for the names.
    pub(crate) fn open(&mut self, split: &Split) -> Result<(), TaskError> {
        self.at_header = self.has_header && split.offset == 0;
        self.place = Some((split.clone(), 0));
        if split.offset == 0 || matches!(self.wanted, ColumnKey::Number) || self.layout == Layout::Json {
            return Ok(());
        }
        if split.is_excerpt() {
            return Err(needs_all(&split.path, "field names, which are in its first line"));
        }
        let whole = Split { offset: 0, length: None, ..split.clone() };
        let mut records = Records::sample(&whole, Format::Text, HEADER_MAX)?;
        let header = records.next()?.unwrap_or_default().to_vec();
        self.look_up(&header)
    }

    /// Must be called with each record before its fields are read. Returns whether it is a header, whose
    /// names are then known.
    ///
    /// # Errors
    /// A record that continues on the next line; a header without the field.
    #[inline]
    pub(crate) fn is_header(&mut self, record: &[u8]) -> Result<bool, TaskError> {
        if let Some((_, records)) = &mut self.place {
            *records += 1;
        }
        if let Some(found) = self.layout.unfinished(record) {
            return Err(self.unfinished(found));
        }
        if !self.at_header {
            return Ok(false);
        }
        self.at_header = false;
        self.look_up(record)?;
        Ok(true)
    }

    /// The field of a record; `None` if it is missing.
    #[inline]
    pub(crate) fn of<'a>(&'a mut self, record: &'a [u8]) -> Option<&'a [u8]> {
        if let Layout::Separated(separator) = self.layout {
            return separated(record, separator, self.number);
        }
        self.other(record)
    }

    /// Appends the other fields of a record, in their order, without changes; for JSON the whole record.
    pub(crate) fn put_others(&self, record: &[u8], out: &mut Vec<u8>) {
        let number = self.number;
        let mut join = |separator: u8, fields: &mut dyn Iterator<Item = &[u8]>| {
            for (nth, field) in
                fields.zip(1..).filter(|(_, i)| *i != number).map(|(field, _)| field).enumerate()
            {
                if nth > 0 {
                    out.push(separator);
                }
                out.extend_from_slice(field);
            }
        };
        match self.layout {
            Layout::Separated(byte) => join(byte, &mut record.split(|b| *b == byte)),
            Layout::Spaces => join(b' ', &mut words(record)),
            Layout::Csv(byte) => join(byte, &mut Csv { rest: Some(without_return(record)), separator: byte }),
            Layout::Json => out.extend_from_slice(record),
        }
    }

    fn other<'a>(&'a mut self, record: &'a [u8]) -> Option<&'a [u8]> {
        match (self.layout, &self.wanted) {
            (Layout::Json, ColumnKey::Name(name)) => text_of(json(record, name)?, &mut self.scratch),
            (_, _) if self.number == 0 => Some(record),
            (Layout::Separated(separator), _) => separated(record, separator, self.number),
            (Layout::Spaces, _) => words(record).nth(self.number - 1),
            (Layout::Csv(separator), _) => {
                let mut fields = Csv { rest: Some(without_return(record)), separator };
                unquoted(fields.nth(self.number - 1)?, &mut self.scratch)
            }
            (Layout::Json, ColumnKey::Number) => None,
        }
    }

    /// Refuses the last record that was read.
    #[cold]
    fn unfinished(&self, found: &str) -> TaskError {
        let line = self.place.as_ref().map(|(split, records)| {
            let path = split.path.display();
            match lines_before(split) {
                Ok(before) => format!("{path}, line {}: ", before + records),
                Err(_) => format!("{path}, line {records} behind byte {}: ", split.offset),
            }
        });
        let place = line.unwrap_or_default();
        TaskError::Job(format!("{place}found {found}, expected each record on one line"))
    }

    /// Finds the number of the selected field in a header.
    fn look_up(&mut self, header: &[u8]) -> Result<(), TaskError> {
        let ColumnKey::Name(wanted) = &self.wanted else { return Ok(()) };
        let header = without_return(header);
        let mut scratch = Vec::new();
        let names: Vec<String> = match self.layout {
            Layout::Separated(byte) => header.split(|b| *b == byte).map(lossy).collect(),
            Layout::Spaces => words(header).map(lossy).collect(),
            Layout::Csv(separator) => Csv { rest: Some(header), separator }
                .map(|field| unquoted(field, &mut scratch).map_or_else(|| lossy(field), lossy))
                .collect(),
            Layout::Json => return Ok(()),
        };
        let Some(at) = names.iter().position(|name| name == wanted) else {
            let known: Vec<&str> = names.iter().map(String::as_str).collect();
            let problem = unknown("field", wanted, &known);
            return Err(TaskError::Job(format!("{}: {}: {problem}", self.program, self.argument)));
        };
        self.number = at + 1;
        Ok(())
    }
}

impl Layout {
    /// The reason why a record continues on the next line, if it does.
    #[inline]
    fn unfinished(self, record: &[u8]) -> Option<&'static str> {
        match self {
            Self::Separated(_) | Self::Spaces => None,
            Self::Csv(separator) => {
                let is_open = memchr::memchr(b'"', record).is_some() && is_open(record, separator);
                is_open.then_some("a quoted field that is not closed")
            }
            Self::Json => {
                let record = record.trim_ascii();
                let is_open = matches!(record, b"{" | b"[") || record.starts_with(b"[{");
                is_open.then_some("a JSON document that is not one object")
            }
        }
    }
}

/// Number of lines of a file that begin before the split.
fn lines_before(split: &Split) -> Result<u64, TaskError> {
    if split.offset == 0 {
        return Ok(0);
    }
    if split.is_excerpt() {
        return Err(needs_all(&split.path, "the number of a line"));
    }
    let before = Split { offset: 0, length: Some(split.offset), source: None, ..split.clone() };
    let mut records = Records::open(&before, Format::Lines, HEADER_MAX)?;
    let mut lines = 0;
    while let Some(block) = records.lines()? {
        lines += memchr::memchr_iter(b'\n', block).count() as u64;
    }
    Ok(lines)
}

fn layout(arguments: &Arguments<'_>) -> Result<Layout, TaskError> {
    let format = arguments.choice("format", &["lines", "csv", "json"])?;
    let separator = arguments.text("separator")?;
    let byte = match separator.as_deref().map(str::as_bytes) {
        None => None,
        Some(b"tab" | b"\\t") => Some(b'\t'),
        Some(b"spaces") if format == "lines" => return Ok(Layout::Spaces),
        Some([byte]) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'"') => Some(*byte),
        Some(_) => {
            let found = separator.unwrap_or_default();
            let problem =
                format!("found {found:?}, expected one character of ASCII, tab, or spaces (of lines)");
            return Err(arguments.problem("separator", &problem));
        }
    };
    match format {
        "json" if byte.is_some() => Err(arguments.problem("separator", "found one for JSON, expected none")),
        "json" => Ok(Layout::Json),
        "csv" => Ok(Layout::Csv(byte.unwrap_or(b','))),
        _ => Ok(Layout::Separated(byte.unwrap_or(b'\t'))),
    }
}

#[inline]
fn separated(record: &[u8], separator: u8, number: usize) -> Option<&[u8]> {
    let mut rest = record;
    let Some(before) = number.checked_sub(1) else { return Some(record) };
    for _ in 0..before {
        rest = &rest[memchr::memchr(separator, rest)? + 1..];
    }
    Some(memchr::memchr(separator, rest).map_or(rest, |end| &rest[..end]))
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A line of CSV without the carriage return that may end it.
fn without_return(record: &[u8]) -> &[u8] {
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// The fields of a line of CSV, quoted ones with their quotes. Ends at a quoted field that is not closed, or
/// that continues after its quotes.
struct Csv<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for Csv<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.take()?;
        let end = if rest.first() == Some(&b'"') {
            let end = closing(rest)?;
            if rest.get(end).is_some_and(|byte| *byte != self.separator) {
                return None;
            }
            end
        } else {
            memchr::memchr(self.separator, rest).unwrap_or(rest.len())
        };
        self.rest = rest.get(end + 1..);
        Some(&rest[..end])
    }
}

/// Whether a line of CSV ends within a quoted field.
fn is_open(record: &[u8], separator: u8) -> bool {
    let mut rest = record;
    loop {
        let end = if rest.first() == Some(&b'"') {
            let Some(end) = closing(rest) else { return true };
            end
        } else {
            0
        };
        // Text after the quotes belongs to the field, with its quotes.
        let Some(next) = memchr::memchr(separator, &rest[end..]) else { return false };
        rest = &rest[end + next + 1..];
    }
}

/// The end of a quoted field, after its closing quote.
fn closing(field: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr(b'"', field.get(at..)?)? + 1;
        if field.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

/// The value of a CSV field.
fn unquoted<'a>(field: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let Some(quoted) = field.strip_prefix(b"\"") else { return Some(field) };
    let quoted = quoted.strip_suffix(b"\"")?;
    if memchr::memchr(b'"', quoted).is_none() {
        return Some(quoted);
    }
    scratch.clear();
    let mut rest = quoted;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        scratch.extend_from_slice(&rest[..=quote]);
        rest = rest.get(quote + 2..).unwrap_or_default();
    }
    scratch.extend_from_slice(rest);
    Some(scratch)
}

/// The value of a key of a JSON object; `a.b` is the key `a.b`, or else `b` of the object `a`.
fn json<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    member(object, name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        json(member(object, first)?, rest)
    })
}

/// The value of a key of an object.
fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = object.trim_ascii().strip_prefix(b"{")?.strip_suffix(b"}")?.trim_ascii_start();
    let mut scratch = Vec::new();
    while !rest.is_empty() {
        let key = string_end(rest)?;
        let is_it = text_of(&rest[..key], &mut scratch)? == name.as_bytes();
        rest = rest[key..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let end = value_end(rest)?;
        if is_it {
            return Some(&rest[..end]);
        }
        rest = rest[end..].trim_ascii_start();
        rest = match rest.strip_prefix(b",") {
            Some(more) => more.trim_ascii_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    None
}

/// The end of a JSON string, after its closing quote.
fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    if text.first() != Some(&b'"') {
        return None;
    }
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The end of a JSON value.
fn value_end(text: &[u8]) -> Option<usize> {
    match text.first()? {
        b'"' => string_end(text),
        b'{' | b'[' => {
            let (mut depth, mut at) = (0usize, 0);
            loop {
                match text.get(at)? {
                    b'"' => at += string_end(&text[at..])? - 1,
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || is_space(*byte);
            Some(text.iter().position(is_end).unwrap_or(text.len())).filter(|end| *end > 0)
        }
    }
}

/// The text of a JSON value: the characters of a string, the source of any other value; `None` for null.
fn text_of<'a>(value: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let Some(string) = value.strip_prefix(b"\"") else { return (value != b"null").then_some(value) };
    if memchr::memchr(b'\\', string).is_none() {
        return string.strip_suffix(b"\"");
    }
    *scratch = serde_json::from_slice::<String>(value).ok()?.into_bytes();
    Some(scratch)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::process::spec::Args;

    fn column(args: serde_json::Value) -> Result<Column, String> {
        let args: Args = serde_json::from_value(args).unwrap();
        let known = &[Argument { name: "field", about: "" }, FORMAT, SEPARATOR, HEADER];
        let arguments = Arguments::new("any", known, &args).map_err(|e| e.to_string())?;
        Column::new(&arguments, "field", 1).map_err(|e| e.to_string())
    }

    fn get(args: serde_json::Value, record: &str) -> Option<String> {
        column(args).unwrap().of(record.as_bytes()).map(lossy)
    }

    #[test]
    fn fields_of_lines_are_separated_as_asked() {
        assert_eq!(get(json!({ "field": 2 }), "a\tb c\td").as_deref(), Some("b c"));
        assert_eq!(get(json!({ "field": 2, "separator": ";" }), "a;;c").as_deref(), Some(""));
        assert_eq!(get(json!({ "field": 3, "separator": "spaces" }), "  a \t b\x0bc ").as_deref(), Some("c"));
        assert_eq!(get(json!({ "field": 4 }), "a\tb\tc"), None);
        assert_eq!(get(json!({ "field": 0 }), "a\tb").as_deref(), Some("a\tb"));
    }

    #[test]
    fn fields_of_csv_may_be_quoted() {
        let csv = |field: usize, record: &str| get(json!({ "format": "csv", "field": field }), record);
        let record = "a,\"b, \"\"c\"\"\",,\"\",e\r";
        let fields: Vec<Option<String>> = (1..=6).map(|field| csv(field, record)).collect();
        let expected = [Some("a"), Some("b, \"c\""), Some(""), Some(""), Some("e"), None];
        assert_eq!(fields, expected.map(|field| field.map(str::to_owned)));
        // Text after the quotes.
        assert_eq!(csv(2, "\"a\"x,b"), None);
        assert_eq!(csv(1, "").as_deref(), Some(""));
        let mut out = Vec::new();
        column(json!({ "format": "csv", "field": 2 }))
            .unwrap()
            .put_others(b"a,\"b,c\",\"d,e\",f\r", &mut out);
        assert_eq!(out, b"a,\"d,e\",f");
    }

    #[test]
    fn a_record_that_continues_on_the_next_line_is_refused_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        std::fs::write(&path, "id,text\n1,a\n2,b\n3,\"c\nd\",4\n").unwrap();
        let refused = |args: serde_json::Value, offset, copy: Option<PathBuf>, records: &[&str]| {
            let mut column = column(args).unwrap();
            let length = copy.is_some().then_some(10);
            column.open(&Split { path: path.clone(), offset, length, input: 0, source: None, copy }).unwrap();
            let all = records.iter().try_for_each(|record| column.is_header(record.as_bytes()).map(|_| ()));
            all.err().map(|error| (error.is_final(), error.to_string().replace(path.to_str().unwrap(), "x")))
        };
        let csv = |offset, copy, records: &[&str]| refused(json!({ "format": "csv" }), offset, copy, records);
        let found = "found a quoted field that is not closed, expected each record on one line";
        let expected = |place: &str| Some((true, format!("{place}: {found}")));
        assert_eq!(csv(0, None, &["id,text", "1,a", "2,b", "3,\"c"]), expected("x, line 4"));
        // The line that begins at byte 8 belongs to the split before.
        assert_eq!(csv(8, None, &["2,b", "3,\"c"]), expected("x, line 4"));
        assert_eq!(csv(8, Some("copy".into()), &["2,b", "3,\"c"]), expected("x, line 2 behind byte 8"));
        for open in ["\"", "\"a", "a,\"b\r", "\"a\"\"", "\"a,b", ",\"x\",\"", "\"a\"x,\"b"] {
            assert!(csv(0, None, &[open]).is_some(), "{open}");
        }
        for closed in
            ["", "\"\"", "a\"b", "5\",6", "\"a\"\"\"", "\"a,b\",c\r", "\"a\"x\"y,b", "a \"b", "\"a\" \"b"]
        {
            assert_eq!(csv(0, None, &[closed]), None, "{closed}");
        }
        let json = |records: &[&str]| refused(json!({ "format": "json", "field": "a" }), 0, None, records);
        for open in ["{", " [ ", "[{\"a\": 1},"] {
            assert!(json(&[r#"{"a": 1}"#, open]).unwrap().1.starts_with("x, line 2: found a JSON"), "{open}");
        }
        assert_eq!(json(&["", "no JSON", "[1]", "[12:00] started", "{\"a\": \"cut", "{}"]), None);
        assert_eq!(refused(json!({ "separator": "," }), 0, None, &["3,\"c", "{"]), None);
    }

    #[test]
    fn fields_of_json_are_found_by_name_and_path() {
        let json = |field: &str, record: &str| get(json!({ "format": "json", "field": field }), record);
        let record = r#" { "x": {"y": [1, "}"], "name": "in"}, "name" : "a\"\u00e9", "n": -1.50, "no": null, "a.b": true }"#;
        assert_eq!(json("name", record).as_deref(), Some("a\"é"));
        assert_eq!(json("n", record).as_deref(), Some("-1.50"));
        assert_eq!(json("x.name", record).as_deref(), Some("in"));
        assert_eq!(json("x.y", record).as_deref(), Some("[1, \"}\"]"));
        assert_eq!(json("a.b", record).as_deref(), Some("true"));
        for (field, record) in [
            ("no", record),
            ("none", record),
            ("a", "{"),
            ("a", "{\"a\""),
            ("a", ""),
            ("a", "[1]"),
            ("a", "{\"a\":}"),
            ("a", "{\"a\":\"\\"),
        ] {
            assert_eq!(json(field, record), None, "{field} of {record}");
        }
    }

    #[test]
    fn names_are_looked_up_in_headers_wherever_a_split_begins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        std::fs::write(&path, "\u{feff}id,\"the name\"\r\n1,one\r\n2,two\r\n").unwrap();
        let split =
            |offset| Split { path: path.clone(), offset, length: None, input: 0, source: None, copy: None };
        let mut column = column(json!({ "format": "csv", "field": "the name" })).unwrap();
        column.open(&split(0)).unwrap();
        assert!(column.is_header(b"id,\"the name\"\r").unwrap());
        assert!(!column.is_header(b"1,one\r").unwrap());
        assert_eq!(column.of(b"1,one\r"), Some(&b"one"[..]));
        let mut later = self::column(json!({ "format": "csv", "field": "the name" })).unwrap();
        later.open(&split(20)).unwrap();
        assert!(!later.is_header(b"2,two\r").unwrap());
        assert_eq!(later.of(b"2,two\r"), Some(&b"two"[..]));
        let mut wrong = self::column(json!({ "format": "csv", "field": "nam" })).unwrap();
        let error = wrong.open(&split(20)).unwrap_err().to_string();
        assert!(
            error.starts_with("any: field: found field \"nam\", expected one of id, the name"),
            "{error}"
        );
    }

    #[test]
    fn errors_of_arguments_name_the_right_ones() {
        for (args, problem) in [
            (json!({ "separator": "::" }), "any: separator: found \"::\", expected one character"),
            (json!({ "separator": "spaces", "format": "csv" }), "any: separator: found \"spaces\""),
            (json!({ "format": "json" }), "any: field: found none, expected the name of a field"),
            (
                json!({ "format": "json", "field": "a", "separator": "," }),
                "any: separator: found one for JSON",
            ),
            (json!({ "format": "json", "field": "a", "header": true }), "any: header: found one for JSON"),
            (json!({ "field": -1 }), "any: field: found \"-1\", expected a whole number"),
        ] {
            let found = column(args).map(|_| ()).unwrap_err();
            assert!(found.starts_with(problem), "{found}");
        }
    }
}
