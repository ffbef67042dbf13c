//! Reads XML files that are not workloads, such as the configuration of a scheduler, into a tree of elements
//! with places.

use crate::reading::error::TraceError;
use crate::reading::place::Place;
use crate::reading::text;
use crate::reading::xml::{Xml, elements};

/// Deepest nesting of elements.
const DEPTH_MAX: usize = 100;

/// An element of an XML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Its name, without a prefix.
    pub name: String,
    /// Its attributes, in the order of the file.
    pub attributes: Vec<(String, String)>,
    /// Its own text, without that of its elements and without space around it.
    pub text: String,
    pub elements: Vec<Element>,
    pub place: Place,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The root element of an XML file. Document types are refused, and elements more than 100 deep.
///
/// # Errors
/// A file that is not well-formed; the error has the place.
pub fn read_element(file: &str, bytes: &[u8]) -> Result<Element, TraceError> {
    let text = text::text(file, bytes)?;
    let xml = Xml::new(file, &text);
    let document = xml.parse()?;
    element(&xml, document.root_element(), 0)
}

fn element(xml: &Xml<'_>, node: roxmltree::Node<'_, '_>, depth: usize) -> Result<Element, TraceError> {
    if depth == DEPTH_MAX {
        return Err(xml.error(node, format!("found elements more than {DEPTH_MAX} deep, expected fewer")));
    }
    let texts = node.children().filter(roxmltree::Node::is_text).filter_map(|text| text.text());
    Ok(Element {
        name: node.tag_name().name().to_owned(),
        attributes: node
            .attributes()
            .map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned()))
            .collect(),
        text: texts.collect::<String>().trim().to_owned(),
        elements: elements(node).map(|inner| element(xml, inner, depth + 1)).collect::<Result<_, _>>()?,
        place: xml.place(node.range().start),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_has_its_text_its_elements_and_its_place() {
        let text = "<?xml version=\"1.0\"?>\n<a x='1'>\n  <!-- no -->\n  <b> two <c/> three </b>\n</a>\n";
        let root = read_element("f.xml", text.as_bytes()).unwrap();
        assert_eq!((root.name.as_str(), root.attribute("x"), root.attribute("y")), ("a", Some("1"), None));
        let b = &root.elements[0];
        assert_eq!((b.text.as_str(), b.place), ("two  three", Place { line: 4, column: 3 }));
        assert_eq!(b.elements[0].name, "c");
    }

    #[test]
    fn malformed_or_too_deep_documents_are_refused_with_their_place() {
        let error = |text: &str| read_element("f.xml", text.as_bytes()).unwrap_err().to_string();
        assert!(error("<a>\n<b></a>").starts_with("f.xml:2:"), "{}", error("<a>\n<b></a>"));
        assert!(error("<!DOCTYPE a><a/>").starts_with("f.xml:1:"));
        assert!(error(&"<a>".repeat(200)).starts_with("f.xml:"));
        let deep = "<a>\n".repeat(120) + &"</a>".repeat(120);
        assert_eq!(error(&deep), "f.xml:101:1: found elements more than 100 deep, expected fewer");
    }
}
