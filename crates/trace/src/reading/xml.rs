//! Reads XML with positions, for the importers of workflow files.

use roxmltree::{Document, Node, ParsingOptions};
use slackline_model::names::{did_you_mean, one_of};

use crate::reading::error::TraceError;
use crate::reading::place::Place;

/// An XML text and the starts of its lines.
pub(crate) struct Xml<'a> {
    /// The file in messages.
    file: &'a str,
    text: &'a str,
    /// Offset of the first byte of each line.
    lines: Vec<usize>,
}

impl<'a> Xml<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self { file, text, lines: std::iter::once(0).chain(breaks).collect() }
    }

    /// Parses the text. Document types are refused, and with them every entity that could expand.
    ///
    /// # Errors
    /// A text that is not well-formed; the error has the place.
    pub(crate) fn parse(&self) -> Result<Document<'a>, TraceError> {
        let options = ParsingOptions { allow_dtd: false, ..ParsingOptions::default() };
        Document::parse_with_options(self.text, options).map_err(|error| {
            let at = error.pos();
            let message = error.to_string();
            let what = message.strip_suffix(&format!(" at {}:{}", at.row, at.col)).unwrap_or(&message);
            TraceError::input(self.file, Some(Place { line: at.row, column: at.col }), what)
        })
    }

    /// The place of a byte. O(log lines + columns).
    pub(crate) fn place(&self, offset: usize) -> Place {
        let line = self.lines.partition_point(|&start| start <= offset);
        let before = &self.text.as_bytes()[self.lines[line - 1]..offset.min(self.text.len())];
        // Continuation bytes of UTF-8 are not characters.
        let column = before.iter().filter(|&&byte| byte & 0xc0 != 0x80).count() as u32 + 1;
        Place { line: line as u32, column }
    }

    /// An error about an element.
    pub(crate) fn error(&self, node: Node<'_, '_>, what: impl Into<String>) -> TraceError {
        TraceError::input(self.file, Some(self.place(node.range().start)), what)
    }

    /// The attributes of an element by the given names.
    ///
    /// # Errors
    /// Attributes of other names.
    pub(crate) fn attributes<const N: usize>(
        &self,
        node: Node<'_, '_>,
        names: [&str; N],
    ) -> Result<[Option<String>; N], TraceError> {
        let mut values = [const { None }; N];
        for attribute in node.attributes() {
            let Some(at) = names.iter().position(|&name| name == attribute.name()) else {
                let what = format!("found attribute {:?} of <{}>", attribute.name(), node.tag_name().name());
                return Err(self.error(node, what + &expected(attribute.name(), &names)));
            };
            values[at] = Some(attribute.value().trim().to_owned());
        }
        Ok(values)
    }

    /// An element in a wrong place.
    pub(crate) fn unknown(&self, node: Node<'_, '_>, names: &[&str]) -> TraceError {
        let name = node.tag_name().name();
        self.error(node, format!("found element <{name}>") + &expected(name, names))
    }

    /// The text of an element that has no elements.
    ///
    /// # Errors
    /// Elements within, or no text.
    pub(crate) fn text(&self, node: Node<'_, '_>) -> Result<String, TraceError> {
        let name = node.tag_name().name();
        if let Some(inner) = elements(node).next() {
            let what = format!("found <{}> in <{name}>, expected text only", inner.tag_name().name());
            return Err(self.error(inner, what));
        }
        let text: String =
            node.children().filter_map(|child| child.text().filter(|_| child.is_text())).collect();
        let text = text.trim();
        if text.is_empty() {
            return Err(self.error(node, format!("found no text in <{name}>, expected some")));
        }
        Ok(text.to_owned())
    }

    /// The `<property>` elements of a `<configuration>`: name and value.
    ///
    /// # Errors
    /// Any other element in it, a property without a name.
    pub(crate) fn properties(
        &self,
        configuration: Node<'_, '_>,
    ) -> Result<Vec<(String, String)>, TraceError> {
        let mut properties = Vec::new();
        for property in elements(configuration) {
            if property.tag_name().name() != "property" {
                return Err(self.unknown(property, &["property"]));
            }
            let (mut name, mut value) = (None, String::new());
            for part in elements(property) {
                match part.tag_name().name() {
                    "name" => name = Some(self.text(part)?),
                    "value" => part.text().unwrap_or_default().trim().clone_into(&mut value),
                    "description" | "final" => {}
                    _ => return Err(self.unknown(part, &["name", "value", "description", "final"])),
                }
            }
            let name = name.ok_or_else(|| self.error(property, "found a <property> without <name>"))?;
            properties.push((name, value));
        }
        Ok(properties)
    }
}

/// The name of the root element without its prefix, found without parsing.
pub(crate) fn root(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        let tag = rest.strip_prefix('<')?;
        let end = match tag {
            _ if tag.starts_with("!--") => "-->",
            _ if tag.starts_with(['!', '?']) => ">",
            _ => {
                let name = tag.split([' ', '\t', '\r', '\n', '>', '/']).next()?;
                return Some(name.rsplit_once(':').map_or(name, |(_, local)| local));
            }
        };
        let after = &tag[tag.find(end)?..];
        rest = &after[after.find('<')?..];
    }
}

/// The elements within an element, without text and comments.
pub(crate) fn elements<'a, 'd>(node: Node<'a, 'd>) -> impl Iterator<Item = Node<'a, 'd>> {
    node.children().filter(Node::is_element)
}

fn expected(found: &str, names: &[&str]) -> String {
    format!(", expected {}{}", one_of(names), did_you_mean(found, names.iter().copied()))
}
