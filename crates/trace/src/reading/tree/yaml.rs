//! Parses YAML into a tree: one document, the core schema of YAML 1.2, anchors, aliases and merge keys.
//!
//! Aliases share the value of their anchor, so that the tree is never larger than the text; their expansion
//! still counts, because readers of the tree visit it at each alias.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, Tag};

use super::{DEPTH_MAX, Entry, Node, ParseError, Value, scalar, table};

/// How many nodes and bytes aliases and merge keys may write out: a constant, and a number for each byte of
/// the text.
const WRITTEN_OUT: usize = 1 << 20;
const WRITTEN_OUT_A_BYTE: usize = 4;

pub(super) fn read(text: &str) -> Result<Node<'_>, ParseError> {
    let left = WRITTEN_OUT + WRITTEN_OUT_A_BYTE * text.len();
    let mut reader = Reader { open: Vec::new(), anchors: BTreeMap::new(), left, documents: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            ParseError::new(error.marker().byte_offset().unwrap_or(text.len()), error.info())
        })?;
        reader.event(event, span.start.byte_offset().unwrap_or(text.len()))?;
    }
    Ok(reader.root.unwrap_or(Node::new(0, Value::Null)))
}

struct Reader<'a> {
    /// Lists and tables that are not at their end.
    open: Vec<OpenCollection<'a>>,
    anchors: BTreeMap<usize, ExpandedNode<Rc<Node<'a>>>>,
    /// The remaining limit on expansion.
    left: usize,
    documents: usize,
    root: Option<Node<'a>>,
}

/// A value with its size when all aliases in it are expanded.
#[derive(Clone)]
struct ExpandedNode<T> {
    what: T,
    /// Nodes and bytes of text.
    weight: usize,
    /// Lists and tables within each other.
    height: usize,
}

/// A list or table that is not at its end.
struct OpenCollection<'a> {
    offset: usize,
    anchor: usize,
    weight: usize,
    height: usize,
    inner: Inner<'a>,
}

enum Inner<'a> {
    List(Vec<Node<'a>>),
    Table {
        entries: Vec<Entry<'a>>,
        /// A key that waits for its value.
        key: Option<Key<'a>>,
        /// Values of `<<`.
        merged: Vec<Node<'a>>,
    },
}

struct Key<'a> {
    text: Cow<'a, str>,
    offset: usize,
    /// Whether it is `<<` without quotes.
    merges: bool,
}

impl<'a> Reader<'a> {
    fn event(&mut self, event: Event<'a>, offset: usize) -> Result<(), ParseError> {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(ParseError::new(offset, "found a second document, expected one"));
                }
                Ok(())
            }
            Event::SequenceStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "seq", offset)?;
                self.begin(offset, anchor, Inner::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, tag) => {
                check_tag(tag.as_deref(), "map", offset)?;
                self.begin(
                    offset,
                    anchor,
                    Inner::Table { entries: Vec::new(), key: None, merged: Vec::new() },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Scalar(text, style, anchor, _) if self.wants_key() => {
                if anchor != 0 {
                    let what = Rc::new(Node::new(offset, Value::Text(text.clone())));
                    self.anchors.insert(anchor, ExpandedNode { what, weight: 1 + text.len(), height: 0 });
                }
                let merges = style == ScalarStyle::Plain && text == "<<";
                self.key(Key { text, offset, merges });
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let weight = 1 + text.len();
                let value =
                    scalar(text, style, tag.as_deref()).map_err(|what| ParseError::new(offset, what))?;
                self.put(ExpandedNode { what: Node::new(offset, value), weight, height: 0 }, anchor)
            }
            Event::Alias(id) => self.alias(id, offset),
            _ => Ok(()),
        }
    }

    /// Whether the next node is a key.
    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(OpenCollection { inner: Inner::Table { key: None, .. }, .. }))
    }

    fn key(&mut self, next: Key<'a>) {
        if let Some(OpenCollection { inner: Inner::Table { key, .. }, weight, .. }) = self.open.last_mut() {
            *weight += next.text.len();
            *key = Some(next);
        }
    }

    fn begin(&mut self, offset: usize, anchor: usize, inner: Inner<'a>) -> Result<(), ParseError> {
        if self.wants_key() {
            return Err(ParseError::new(offset, "found a list or table before a colon, expected a name"));
        }
        if self.open.len() == DEPTH_MAX {
            return Err(ParseError::too_deep(offset));
        }
        self.open.push(OpenCollection { offset, anchor, weight: 1, height: 1, inner });
        Ok(())
    }

    fn end(&mut self) -> Result<(), ParseError> {
        let Some(OpenCollection { offset, anchor, weight, height, inner }) = self.open.pop() else {
            return Ok(());
        };
        let value = match inner {
            Inner::List(list) => Value::List(list),
            Inner::Table { entries, merged, .. } if merged.is_empty() => table(entries)?,
            Inner::Table { entries, merged, .. } => merge(table(entries)?, &merged)?,
        };
        self.put(ExpandedNode { what: Node::new(offset, value), weight, height }, anchor)
    }

    fn alias(&mut self, id: usize, offset: usize) -> Result<(), ParseError> {
        let Some(anchored) = self.anchors.get(&id).cloned() else {
            return Err(ParseError::new(offset, "found an alias within its own value"));
        };
        if self.wants_key() {
            let Value::Text(text) = anchored.what.value() else {
                return Err(ParseError::new(offset, "found an alias before a colon, expected a name"));
            };
            let text = text.clone();
            self.count_expansion(anchored.weight, offset)?;
            self.key(Key { text, offset, merges: false });
            return Ok(());
        }
        if self.open.len() + anchored.height > DEPTH_MAX {
            return Err(ParseError::too_deep(offset));
        }
        self.count_expansion(anchored.weight, offset)?;
        let ExpandedNode { what, weight, height } = anchored;
        self.put(ExpandedNode { what: Node::new(offset, Value::Shared(what)), weight, height }, 0)
    }

    fn count_expansion(&mut self, weight: usize, offset: usize) -> Result<(), ParseError> {
        let left = self.left.checked_sub(weight);
        self.left =
            left.ok_or_else(|| ParseError::new(offset, "found aliases that expand to too much text"))?;
        Ok(())
    }

    /// Adds a complete node to its parent.
    fn put(&mut self, node: ExpandedNode<Node<'a>>, anchor: usize) -> Result<(), ParseError> {
        let ExpandedNode { mut what, weight, height } = node;
        if anchor != 0 {
            let offset = what.offset;
            let shared = Rc::new(what);
            self.anchors.insert(anchor, ExpandedNode { what: Rc::clone(&shared), weight, height });
            what = Node::new(offset, Value::Shared(shared));
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(what);
            return Ok(());
        };
        parent.weight += weight;
        parent.height = parent.height.max(height + 1);
        match &mut parent.inner {
            Inner::List(list) => list.push(what),
            Inner::Table { entries, key, merged } => match key.take() {
                Some(Key { merges: true, .. }) => {
                    let offset = what.offset;
                    merged.push(what);
                    self.count_expansion(weight, offset)?;
                }
                Some(Key { text, offset, .. }) => {
                    entries.push(Entry { key: text, key_offset: offset, value: what });
                }
                None => {}
            },
        }
        Ok(())
    }
}

/// A table with the keys of the tables after `<<` that it does not have itself; of several tables the first
/// counts.
fn merge<'a>(own: Value<'a>, merged: &[Node<'a>]) -> Result<Value<'a>, ParseError> {
    let Value::Table(mut entries) = own else { return Ok(own) };
    let mut known: BTreeSet<Cow<'a, str>> = entries.iter().map(|entry| entry.key.clone()).collect();
    for node in merged {
        let several = match node.value() {
            Value::List(list) => list.as_slice(),
            _ => std::slice::from_ref(node),
        };
        for table in several {
            let Value::Table(others) = table.value() else {
                let found = table.value();
                return Err(ParseError::new(
                    table.offset,
                    format!("found {found} for `<<`, expected a table"),
                ));
            };
            entries.extend(others.iter().filter(|other| known.insert(other.key.clone())).cloned());
        }
    }
    Ok(Value::Table(entries))
}

/// Whether a list or table has an explicit tag of its kind.
fn check_tag(tag: Option<&Tag>, core: &str, offset: usize) -> Result<(), ParseError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(core) && !is_plain_mark(tag) => {
            Err(ParseError::new(offset, unknown(tag)))
        }
        _ => Ok(()),
    }
}

/// The value of a scalar: a text if it is quoted, a block or tagged as one, otherwise by its form.
fn scalar<'a>(text: Cow<'a, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value<'a>, String> {
    let Some(tag) = tag else {
        return if style == ScalarStyle::Plain { scalar::plain(text) } else { Ok(Value::Text(text)) };
    };
    if is_plain_mark(tag) {
        return Ok(Value::Text(text));
    }
    let core = match tag.core_suffix() {
        Some("str") => return Ok(Value::Text(text)),
        Some(core @ ("null" | "bool" | "int" | "float")) => core,
        _ => return Err(unknown(tag)),
    };
    match (core, scalar::plain(text)?) {
        ("float", Value::Whole(n)) => Ok(Value::Real(n as f64)),
        ("float", Value::Negative(n)) => Ok(Value::Real(n as f64)),
        ("null", value @ Value::Null)
        | ("bool", value @ Value::Bool(_))
        | ("int", value @ (Value::Whole(_) | Value::Negative(_)))
        | ("float", value @ Value::Real(_)) => Ok(value),
        (_, value) => Err(format!("found {value} with the tag !!{core}")),
    }
}

/// `!` alone, which makes a text of any scalar.
fn is_plain_mark(tag: &Tag) -> bool {
    tag.original() == "!"
}

fn unknown(tag: &Tag) -> String {
    let known = "!!str, !!int, !!float, !!bool, !!null, !!seq, !!map";
    format!("found the tag {} here, expected none, or that of the value among {known}", tag.original())
}
