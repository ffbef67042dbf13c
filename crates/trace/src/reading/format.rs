//! The forms of our documents: TOML, JSON and YAML.

use std::path::Path;

use crate::reading::compression::uncompressed;

slackline_model::named_enum! {
    /// The form of a document of ours; [`crate::Importers`] has every format that a workload may come in.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Format {
        Toml = "toml",
        Json = "json",
        Yaml = "yaml",
    }
}

impl Format {
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// The endings of file names in this form.
    pub const fn endings(self) -> &'static [&'static str] {
        match self {
            Self::Toml => &["toml"],
            Self::Json => &["json"],
            Self::Yaml => &["yaml", "yml"],
        }
    }

    /// The form of a file by its name (without the ending of a compression) or, if the name does not show it,
    /// its text.
    pub(crate) fn guess(name: &str, text: &str) -> Option<Self> {
        let ending = ending(name);
        let named = |format: &Self| ending.as_deref().is_some_and(|e| format.endings().contains(&e));
        let all = || Self::ALL.into_iter();
        all().find(named).or_else(|| all().find(|format| format.looks_like(text)))
    }

    /// Whether a text could be a document in this form.
    pub(crate) fn looks_like(self, text: &str) -> bool {
        let braces = text.trim_start().starts_with('{');
        match self {
            Self::Json => braces,
            Self::Toml => !braces && version_mark(text) == Some('='),
            Self::Yaml => !braces && version_mark(text) == Some(':'),
        }
    }
}

/// The last ending of a file name, in lower case, without that of a compression.
pub fn ending(name: &str) -> Option<String> {
    let ending = uncompressed(Path::new(name)).extension()?.to_str()?;
    Some(ending.to_ascii_lowercase())
}

/// The mark between the key `slackline` and its value, on the first line that begins with it.
fn version_mark(text: &str) -> Option<char> {
    let mark = |line: &str| line.strip_prefix("slackline")?.trim_start().chars().next();
    text.lines().find_map(|line| mark(line).filter(|mark| matches!(mark, '=' | ':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_guessed_by_name_then_by_content() {
        let cases = [
            ("a.TOML.gz", "", Some(Format::Toml)),
            ("a.json.zst", "", Some(Format::Json)),
            ("a.yml", "", Some(Format::Yaml)),
            ("-", " \n{", Some(Format::Json)),
            ("-", "# ours\n\nslackline = 1\n", Some(Format::Toml)),
            ("-", "flows: []\nslackline: 1\n", Some(Format::Yaml)),
            ("-", "", None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(Format::guess(name, text), expected, "{name:?} {text:?}");
        }
    }
}
