//! Reads JSON objects that follow each other in one text, as Hadoop's tools write them: neither a list nor
//! one per line. [`Objects`] reads a whole text, [`Pieces`] lines as they come.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::importers::line_import::Line;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::parse;
use crate::reading::place::Place;

/// The values of a text, one after the other; after an error there are no more.
pub(super) struct Objects<'a> {
    file: &'a str,
    text: &'a str,
    at: usize,
    place: Place,
    is_over: bool,
}

/// A value with its place.
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

    fn advance(&mut self, bytes: usize) {
        let passed = &self.text[self.at..self.at + bytes];
        self.place = offset_place(Place::of_offset(passed.as_bytes(), bytes), self.place);
        self.at += bytes;
    }

    fn read(&mut self) -> Option<Result<Object<'a>, TraceError>> {
        let rest = &self.text[self.at..];
        self.advance(rest.len() - rest.trim_start().len());
        let (rest, place) = (&self.text[self.at..], self.place);
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match values.next()? {
            Ok(_) => {
                let end = values.byte_offset();
                self.advance(end);
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
                let place = if error.is_eof() { place } else { offset_place(found, place) };
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

    /// The value as a struct; `kind` is the expected kind, for messages.
    pub(super) fn read<T: Deserialize<'a>>(&self, kind: &str) -> Result<T, TraceError> {
        parse(self.file, self.text, Format::Json, kind).map_err(|error| {
            let (TraceError::Input(mut faults) | TraceError::Mismatch(mut faults)) = error;
            for fault in &mut faults.list {
                fault.place = Some(fault.place.map_or(self.place, |place| offset_place(place, self.place)));
            }
            TraceError::Input(faults)
        })
    }

    pub(super) fn error(&self, what: impl Into<String>) -> TraceError {
        TraceError::input(self.file, Some(self.place), what)
    }
}

/// The most bytes of a value that is put together of lines.
const VALUE_MAX: usize = 1 << 30;

/// Values that come line by line: a line may end none or several.
#[derive(Default)]
pub(super) struct Pieces {
    /// The beginning of a value that is not complete.
    text: String,
    start: Option<Place>,
    /// How many brackets are open.
    depth: u32,
    is_in_text: bool,
    is_escaped: bool,
}

impl Pieces {
    /// Takes a line, and passes on each value that ends on it.
    ///
    /// # Errors
    /// A value that is not an object or list; one that does not end; the errors of `take`.
    pub(super) fn line(
        &mut self,
        line: &Line<'_>,
        take: &mut dyn FnMut(&Object<'_>) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let mut from = 0;
        for (at, byte) in line.text.bytes().enumerate() {
            if self.is_in_text {
                let ends = byte == b'"' && !self.is_escaped;
                self.is_escaped = byte == b'\\' && !self.is_escaped;
                self.is_in_text = !ends;
                continue;
            }
            match byte {
                b'{' | b'[' => {
                    if self.depth == 0 {
                        from = at;
                        let place = Place::of_offset(line.text.as_bytes(), at);
                        self.start = Some(Place { line: line.number, ..place });
                    }
                    self.depth += 1;
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if let Some(place) = self.start.filter(|_| self.depth == 0) {
                        self.text.push_str(&line.text[from..=at]);
                        take(&Object { file: line.file, text: &self.text, place })?;
                        self.text.clear();
                    }
                }
                b'"' if self.depth > 0 => self.is_in_text = true,
                _ if self.depth > 0 || byte.is_ascii_whitespace() => {}
                _ => {
                    let column = Place::of_offset(line.text.as_bytes(), at).column;
                    let found: String = line.text[at..].chars().take(1).collect();
                    return Err(line.error(column, format!("found {found:?}, expected an object in braces")));
                }
            }
        }
        if self.depth > 0 {
            self.text.push_str(&line.text[from..]);
            self.text.push('\n');
        }
        if self.text.len() > VALUE_MAX {
            return Err(self.error_at_end(line.file, &format!("a value has more than {VALUE_MAX} bytes")));
        }
        Ok(())
    }

    /// Ends the input.
    ///
    /// # Errors
    /// An incomplete value.
    pub(super) fn end(&self, file: &str) -> Result<(), TraceError> {
        if self.depth == 0 {
            Ok(())
        } else {
            Err(self.error_at_end(file, "the end of the file within a value"))
        }
    }

    fn error_at_end(&self, file: &str, what: &str) -> TraceError {
        let what = format!("found {what} that begins here, expected the rest of it");
        TraceError::input(file, self.start, what)
    }
}

/// A place in a part, as a place in the whole in which the part begins at `start`.
fn offset_place(place: Place, start: Place) -> Place {
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
    fn values_are_distinguished_with_any_text_between() {
        assert_eq!(read("{\"a\":1}{\"a\":2}\n\n {\n\"a\": 3}").unwrap(), [(1, 1), (1, 2), (3, 3)]);
        assert_eq!(read(" \n").unwrap(), []);
    }

    fn in_pieces(text: &str) -> Result<Vec<(u32, u32)>, TraceError> {
        let (mut pieces, mut found) = (Pieces::default(), Vec::new());
        for (number, text) in (1..).zip(text.lines()) {
            pieces.line(&Line { file: "f", number, text }, &mut |object| {
                found.push((object.line(), object.read::<One>("one")?.a));
                Ok(())
            })?;
        }
        pieces.end("f").map(|()| found)
    }

    #[test]
    fn values_that_come_in_lines_are_the_same() {
        for text in [
            "{\"a\":1}{\"a\":2}\n\n {\n\"a\": 3}",
            " \n",
            "{\"b\": \"}\\\"{\\\\\", \"a\":\n 4\n} {\"a\"\n:5, \"c\": [[{}], \"]\"]}",
            "{\"é\": \"é}\", \"a\": 1}",
        ] {
            assert_eq!(in_pieces(text), read(text), "{text}");
        }
        let wrong = ["{\"a\":1} {\"a\":-2}", "{\"a\":1}\n{\"a\":\n\"x\"}", "{\"a\":1}\n  {\"a\":"];
        for text in wrong {
            assert_eq!(in_pieces(text), read(text), "{text}");
        }
        let error = |text| in_pieces(text).unwrap_err().to_string();
        assert_eq!(error("{\"a\":1}, {\"a\":2}"), "f:1:8: found \",\", expected an object in braces");
        assert!(error("{\"a\":]}\n").starts_with("f:1:6: "), "{}", error("{\"a\":]}\n"));
    }

    #[test]
    fn errors_have_their_place_in_the_whole_text() {
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
