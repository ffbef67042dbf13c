//! A document with the structure of another crate. Its text is kept, so that faults found later have a place.

use serde::de::DeserializeOwned;

use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::source::{node, places};
use crate::reading::tree;

/// A document in one of our forms.
#[derive(Clone, Debug)]
pub struct Document {
    name: String,
    text: String,
    format: Format,
}

impl Document {
    /// A text; `name` is the file in messages.
    pub fn new(name: impl Into<String>, text: impl Into<String>, format: Format) -> Self {
        Self { name: name.into(), text: text.into(), format }
    }

    /// Reads all of it.
    ///
    /// # Errors
    /// Broken syntax, wrong types, unknown or missing fields, each with line and path.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TraceError> {
        self.read_part("")
    }

    /// Reads the part at a path such as `figures[2].settings`.
    ///
    /// # Errors
    /// As [`Self::read`]; no value at that path.
    pub fn read_part<T: DeserializeOwned>(&self, path: &str) -> Result<T, TraceError> {
        let root = tree::read(&self.text, self.format).map_err(|e| e.into_error(&self.name, &self.text))?;
        let Some(part) = node(&root, path) else {
            return Err(self.error(path, "found nothing, expected a value"));
        };
        T::deserialize(part).map_err(|error| error.into_error(&self.name, &self.text).within(path))
    }

    /// An error about the value at a path.
    pub fn error(&self, path: &str, what: impl Into<String>) -> TraceError {
        let place = places(&self.text, self.format, &[path])[0];
        TraceError::input(&self.name, place, what).within(path)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part {
        size: u32,
    }

    #[test]
    fn parts_are_read_and_what_is_wrong_has_its_place() {
        let text = "a = 1\n[[parts]]\nsize = 3\n[[parts]]\nsize = 'x'\n[other]\nsice = 2\n";
        let document = Document::new("d.toml", text, Format::Toml);
        assert_eq!(document.read_part::<Part>("parts[0]").unwrap().size, 3);
        let error = |path: &str| document.read_part::<Part>(path).unwrap_err().to_string();
        assert!(error("parts[1]").starts_with("d.toml:5:8: parts[1].size: found text \"x\", expected"));
        assert_eq!(
            error("other"),
            "d.toml:7:1: other: unknown field `sice`, expected `size`; did you mean `size`?"
        );
        assert!(error("nowhere").contains("nowhere: found nothing"));
        assert!(error("").contains("unknown field `a`"));
        assert_eq!(document.error("a", "found 1").to_string(), "d.toml:1:5: a: found 1");
    }
}
