//! `made.toml` beside the files of figures: the version and commit of the program that made each of them.
//!
//! Rows carry the hash of their specification, which does not change when an algorithm does. This file names
//! the program that made them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Name of the file.
pub const FILE: &str = "made.toml";

/// The content of the file for a directory of figures.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The program that made each file, by the name of the file.
    #[serde(default)]
    pub files: BTreeMap<String, Maker>,
}

/// The program that made a file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Maker {
    pub version: String,
    /// Its commit; none if the user did not name it, since the program may be built from other sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The figure that the file is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
}

impl Maker {
    /// This program, built from `commit`.
    pub fn this(commit: Option<String>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), commit, figure: None }
    }

    /// The same, for a figure.
    #[must_use]
    pub fn of(mut self, figure: &str) -> Self {
        self.figure = Some(figure.to_owned());
        self
    }

    /// Whether `now` need not make the file again: the same version, and the same commit if `now` has one.
    pub fn is_current(&self, now: &Self) -> bool {
        self.version == now.version && (now.commit.is_none() || self.commit == now.commit)
    }
}

impl Provenance {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Text that is not TOML, or not of this structure, with the line.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The files of a figure, by name.
    pub fn of_figure(&self, id: &str) -> impl Iterator<Item = (&String, &Maker)> {
        self.files.iter().filter(move |(_, maker)| maker.figure.as_deref() == Some(id))
    }
}

/// The text of the file: one table per file of a figure, in the order of their names.
impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&toml::to_string(self).expect("invariant: strings in tables are TOML"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let mut made = Provenance::default();
        made.files.insert("fig1.csv".to_owned(), Maker::this(Some("abc1234".to_owned())));
        made.files.insert("fig2.svg".to_owned(), Maker::this(None).of("fig2"));
        assert_eq!(Provenance::parse(&made.to_string()).unwrap(), made);
        assert_eq!(made.of_figure("fig2").map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["fig2.svg"]);
        assert_eq!(Provenance::parse("").unwrap(), Provenance::default());
        assert!(Provenance::parse("[files]\n'a.csv' = { version = '1', comit = 'x' }").is_err());
    }
}
