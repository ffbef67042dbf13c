//! JSON objects one after the other in one text, as Hadoop's tools write them: neither a list nor one a line.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::TraceError;
use crate::format::Format;
use crate::parse::parse;
use crate::place::Place;

/// The values of a text, one after the other; after an error there are no more.
pub(super) struct Objects<'a> {
    file: &'a str,
    text: &'a str,
    /// What is read.
    at: usize,
    /// Where that is.
    place: Place,
    is_over: bool,
}

/// A value and where it stands.
pub(super) struct Object<'a> {
    file: &'a str,
    text: &'a str,
    place: Place,
}

impl<'a> Objects<'a> {
    /// The values of a text that begins on that line of the file.
    pub(super) fn new(file: &'a str, text: &'a str, line: u32) -> Self {
        Self { file, text, at: 0, place: Place { line, column: 1 }, is_over: false }
    }

    fn pass(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        self.place = moved(Place::of_offset(passed.as_bytes(), bytes), self.place);
        self.at += bytes;
    }

    fn read(&mut self) -> Option<Result<Object<'a>, TraceError>> {
        let rest = &self.text[self.at..];
        self.pass(rest.len() - rest.trim_start().len());
        let (rest, place) = (&self.text[self.at..], self.place);
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next()? {
            Ok(_) => {
                let end = values.byte_offset();
                self.pass(end);
                Some(Ok(Object { file: self.file, text: &rest[..end], place }))
            }
            Err(error) => {
                let (line, column) = (error.line() as u32, error.column() as u32);
                let message = error.to_string();
                let what = message.strip_suffix(&format!(" at line {line} column {column}"));
                let what = if error.is_eof() {
                    "found the end of the file within a value that begins here, expected the rest of it"
                } else {
                    what.unwrap_or(&message)
                };
                let found = Place { line: line.max(1), column: column.max(1) };
                let place = if error.is_eof() { place } else { moved(found, place) };
                Some(Err(TraceError::input(self.file, Some(place), what)))
            }
        }
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = Result<Object<'a>, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let read = self.read();
        self.is_over = !matches!(read, Some(Ok(_)));
        read
    }
}

impl<'a> Object<'a> {
    /// The line on which it begins.
    pub(super) fn line(&self) -> u32 {
        self.place.line
    }

    /// The value as a struct; `kind` is what it has to be, for messages.
    pub(super) fn read<T: Deserialize<'a>>(&self, kind: &str) -> Result<T, TraceError> {
        parse(self.file, self.text, Format::Json, kind).map_err(|error| {
            let (TraceError::Input(mut faults) | TraceError::Mismatch(mut faults)) = error;
            for fault in &mut faults.list {
                fault.place = Some(fault.place.map_or(self.place, |place| moved(place, self.place)));
            }
            TraceError::Input(faults)
        })
    }

    /// Something is wrong with it.
    pub(super) fn error(&self, what: impl Into<String>) -> TraceError {
        TraceError::input(self.file, Some(self.place), what)
    }
}

/// A place in a part, as a place in the whole in which the part begins at `start`.
fn moved(place: Place, start: Place) -> Place {
    let column = if place.line == 1 { start.column + place.column - 1 } else { place.column };
    Place { line: start.line + place.line - 1, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct One {
        a: u32,
    }

    fn read(text: &str) -> Result<Vec<(u32, u32)>, TraceError> {
        let one = |object: Result<Object<'_>, TraceError>| {
            let object = object?;
            Ok((object.line(), object.read::<One>("one")?.a))
        };
        Objects::new("f", text, 1).map(one).collect()
    }

    #[test]
    fn values_are_told_apart_whatever_is_between_them() {
        assert_eq!(read("{\"a\":1}{\"a\":2}\n\n {\n\"a\": 3}").unwrap(), [(1, 1), (1, 2), (3, 3)]);
        assert_eq!(read(" \n").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_has_its_place_in_the_whole() {
        let error = |text| read(text).unwrap_err().to_string();
        assert_eq!(
            error("{\"a\":1} {\"a\":-2}"),
            "f:1:14: a: found -2, expected a whole number from 0 to 4294967295"
        );
        assert!(error("{\"a\":1}\n{\"a\":\n\"x\"}").starts_with("f:3:1: a: found text \"x\""));
        assert!(error("{\"a\":1}\n {\"a\":]}").starts_with("f:2:"));
        assert!(error("{\"a\":1}\n  {\"a\":").starts_with("f:2:3: found the end of the file"));
    }
}
