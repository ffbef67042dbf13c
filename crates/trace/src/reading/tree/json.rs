//! Parses JSON into a tree, only to report a fault with its place: valid documents are read without a tree.
//!
//! By hand, because the reader of JSON keeps no positions, and the parser of YAML does not take all of JSON
//! (keys of more than 1024 characters, a key and its colon on two lines).

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::{DEPTH_MAX, Entry, Node, ParseError, Value, scalar, table};

pub(super) fn read(text: &str) -> Result<Node<'_>, ParseError> {
    // The JSON reader gives the best errors for invalid JSON; the walk may then rely on the text.
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| parse_error(text, 0, &error))?;
    Walk { text, at: 0 }.value(0)
}

/// The reader's message without the place that it repeats, of a part that begins at `start`.
fn parse_error(text: &str, start: usize, error: &serde_json::Error) -> ParseError {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let what = message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message);
    let lines = text[start..].split_inclusive('\n');
    let before: usize = lines.take(line.saturating_sub(1)).map(str::len).sum();
    ParseError::new(start + before + column.saturating_sub(1), what)
}

/// Walks a text that is valid JSON.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// The next byte that is no white space, not consumed.
    fn peek(&mut self) -> Result<u8, ParseError> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.text
            .as_bytes()
            .get(self.at)
            .copied()
            .ok_or_else(|| ParseError::new(self.at, "found no more JSON"))
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, ParseError> {
        let first = self.peek()?;
        let offset = self.at;
        if depth > DEPTH_MAX {
            return Err(ParseError::too_deep(offset));
        }
        let value = match first {
            b'{' => self.table(depth)?,
            b'[' => self.list(depth)?,
            b'"' => Value::Text(self.text()?),
            _ => self.word()?,
        };
        Ok(Node::new(offset, value))
    }

    /// A number, true, false or null.
    fn word(&mut self) -> Result<Value<'a>, ParseError> {
        let offset = self.at;
        let rest = &self.text[offset..];
        let end = |c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace();
        let word = &rest[..rest.find(end).unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            "null" => Ok(Value::Null),
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            number => scalar::decimal(number).map_err(|what| ParseError::new(offset, what)),
        }
    }

    fn table(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        let mut entries = Vec::new();
        self.at += 1;
        loop {
            match self.peek()? {
                b'}' => {
                    self.at += 1;
                    return table(entries);
                }
                b',' => self.at += 1,
                _ => {
                    let (key_offset, key) = (self.at, self.text()?);
                    // Its colon.
                    self.peek()?;
                    self.at += 1;
                    entries.push(Entry { key, key_offset, value: self.value(depth + 1)? });
                }
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        let mut list = Vec::new();
        self.at += 1;
        loop {
            match self.peek()? {
                b']' => {
                    self.at += 1;
                    return Ok(Value::List(list));
                }
                b',' => self.at += 1,
                _ => list.push(self.value(depth + 1)?),
            }
        }
    }

    /// A text in quotes; borrowed if it has no escapes.
    fn text(&mut self) -> Result<Cow<'a, str>, ParseError> {
        let (text, start) = (self.text, self.at);
        let inside = &text.as_bytes()[start + 1..];
        let mut end = 0;
        loop {
            match inside.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(ParseError::new(start, "found a text without its end")),
            }
        }
        self.at = start + end + 2;
        let inner = &text[start + 1..=start + end];
        if !inner.contains('\\') {
            return Ok(Cow::Borrowed(inner));
        }
        let quoted = &text[start..self.at];
        serde_json::from_str(quoted).map(Cow::Owned).map_err(|error| parse_error(text, start, &error))
    }
}
