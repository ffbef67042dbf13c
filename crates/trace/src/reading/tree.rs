//! A document in any form as a tree of values with their offsets.
//!
//! One reader for each form builds it; [`crate::reading::de`] converts it to structs. All differences between
//! the forms end here, so that they have the same meaning and the same errors.

mod json;
mod scalar;
mod toml;
mod yaml;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use crate::reading::error::{Fault, Faults, TraceError};
use crate::reading::format::Format;
use crate::reading::place::Place;

/// Deepest nesting of lists and tables, aliases expanded: a limit on the recursion of readers.
const DEPTH_MAX: usize = 128;

/// A value with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    /// The first byte.
    pub(crate) offset: usize,
    value: Value<'a>,
}

/// A value; a whole number that fits neither of the two kinds is a real one.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// Null; TOML has no such value.
    Null,
    Bool(bool),
    /// A whole number from 0.
    Whole(u64),
    /// A whole number below 0.
    Negative(i64),
    Real(f64),
    /// A text; also dates and times, which only TOML tells from texts.
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    /// Values by name, each name once, in the order of the document.
    Table(Vec<Entry<'a>>),
    /// A value with several places in a YAML text; never itself shared.
    Shared(Rc<Node<'a>>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) key: Cow<'a, str>,
    /// The first byte of the name.
    pub(crate) key_offset: usize,
    pub(crate) value: Node<'a>,
}

/// Why a text cannot be parsed: its syntax, or a number or name in it.
#[derive(Debug)]
pub(crate) struct ParseError {
    offset: usize,
    what: String,
}

impl ParseError {
    fn new(offset: usize, what: impl Into<String>) -> Self {
        Self { offset, what: what.into() }
    }

    fn repeated_key(offset: usize, key: &str) -> Self {
        Self::new(offset, format!("found `{key}` a second time"))
    }

    fn too_deep(offset: usize) -> Self {
        Self::new(offset, format!("found lists and tables nested more than {DEPTH_MAX} deep"))
    }

    /// The same of a file with that text.
    pub(crate) fn into_error(self, file: &str, text: &str) -> TraceError {
        fault(file, text, self.offset, String::new(), self.what)
    }
}

pub(crate) fn fault(file: &str, text: &str, offset: usize, path: String, what: String) -> TraceError {
    let place = Some(Place::of_offset(text.as_bytes(), offset));
    TraceError::Input(Faults { file: file.to_owned(), list: vec![Fault { place, path, what }] })
}

/// Reads a text. O(bytes · log names of a table) for any content.
///
/// # Errors
/// Broken syntax, duplicate names, numbers out of range, deep nesting, aliases that expand to too much.
pub(crate) fn read(text: &str, format: Format) -> Result<Node<'_>, ParseError> {
    match format {
        Format::Toml => toml::read(text),
        Format::Json => json::read(text),
        Format::Yaml => yaml::read(text),
    }
}

impl<'a> Node<'a> {
    fn new(offset: usize, value: Value<'a>) -> Self {
        Self { offset, value }
    }

    /// The value, also of an alias.
    pub(crate) fn value(&self) -> &Value<'a> {
        match &self.value {
            Value::Shared(node) => &node.value,
            value => value,
        }
    }

    /// The entry of that name, if this is a table that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Value::Table(table) = self.value() else { return None };
        table.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The item of that number, if this is a list that has it.
    pub(crate) fn item(&self, index: usize) -> Option<&Self> {
        let Value::List(list) = self.value() else { return None };
        list.get(index)
    }
}

/// A table, unless it has a name twice.
fn table(entries: Vec<Entry<'_>>) -> Result<Value<'_>, ParseError> {
    let mut seen = BTreeSet::new();
    match entries.iter().find(|entry| !seen.insert(&*entry.key)) {
        Some(second) => Err(ParseError::repeated_key(second.key_offset, &second.key)),
        None => Ok(Value::Table(entries)),
    }
}

/// The value as messages print it.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(is) => is.fmt(f),
            Self::Whole(n) => n.fmt(f),
            Self::Negative(n) => n.fmt(f),
            // 10.0 keeps its point, which may be all that is wrong with it.
            Self::Real(x) => write!(f, "{x:?}"),
            Self::Text(text) => write!(f, "text {text:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Shared(node) => node.value.fmt(f),
        }
    }
}
