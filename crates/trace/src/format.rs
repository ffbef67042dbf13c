//! Formats: their names, which one a file is in, and its text out of its bytes.

use std::borrow::Cow;
use std::io::Read;

use crate::error::{Place, TraceError};

/// Most bytes a compressed file may expand to; beyond it is a bomb, not a workload.
const EXPANDED_MAX: u64 = 2 << 30;

/// The form a workload comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Our document as TOML.
    Toml,
    /// Our document as JSON.
    Json,
    /// Our document as YAML.
    Yaml,
    /// A trace of the SWIM project: tab-separated, one job a row.
    Swim,
    /// A workflow file of WOHA, as XML.
    Woha,
    /// A `workflow.xml` of Oozie.
    Oozie,
    /// A workflow instance of WfCommons: WfFormat 1.5, as JSON.
    WfFormat,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 7] =
        [Self::Toml, Self::Json, Self::Yaml, Self::Swim, Self::Woha, Self::Oozie, Self::WfFormat];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Toml => "toml",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Swim => "swim",
            Self::Woha => "woha",
            Self::Oozie => "oozie",
            Self::WfFormat => "wfformat",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Whether it is a form of our own documents, which no import option shapes.
    pub const fn is_native(self) -> bool {
        matches!(self, Self::Toml | Self::Json | Self::Yaml)
    }

    /// The format of a file by its name (`.gz` set aside) and, where that says nothing, its text.
    pub fn guess(name: &str, text: &str) -> Option<Self> {
        let name = name.strip_suffix(".gz").unwrap_or(name);
        match name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
            Some("toml") => Some(Self::Toml),
            Some("json") => Some(Self::guess_json(text)),
            Some("yaml" | "yml") => Some(Self::Yaml),
            Some("tsv") => Some(Self::Swim),
            _ => Self::guess_text(text),
        }
    }

    /// By the first element that is not part of a comment or declaration, or might as well not be.
    fn guess_xml(text: &str) -> Option<Self> {
        let names = text.split('<').map(|tag| tag.split([' ', '\t', '\r', '\n', '>', '/']).next());
        names.flatten().find_map(|name| match name.rsplit_once(':').map_or(name, |(_, local)| local) {
            "workflow-app" => Some(Self::Oozie),
            "workflow" | "workflows" => Some(Self::Woha),
            _ => None,
        })
    }

    fn guess_json(text: &str) -> Self {
        if crate::wfformat::looks_like(text) { Self::WfFormat } else { Self::Json }
    }

    fn guess_text(text: &str) -> Option<Self> {
        if text.trim_start().starts_with('{') {
            return Some(Self::guess_json(text));
        }
        if text.trim_start().starts_with('<') {
            return Self::guess_xml(text);
        }
        let lines = || text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let first = lines().next()?;
        if crate::swim::looks_like_row(first) {
            return Some(Self::Swim);
        }
        let keyed = |line: &str, mark: char| {
            line.strip_prefix("slackline").is_some_and(|rest| rest.trim_start().starts_with(mark))
        };
        if lines().any(|line| keyed(line, '=')) {
            Some(Self::Toml)
        } else if lines().any(|line| keyed(line, ':')) {
            Some(Self::Yaml)
        } else {
            None
        }
    }
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The text of a file: decompressed if it is gzip, checked to be UTF-8, without a byte order mark.
///
/// # Errors
/// Damaged or absurdly large gzip, bytes that are no UTF-8 (with their place).
pub(crate) fn text<'a>(file: &str, bytes: &'a [u8]) -> Result<Cow<'a, str>, TraceError> {
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        Cow::Owned(decompress(file, bytes)?)
    } else {
        Cow::Borrowed(bytes)
    };
    let bad = |bytes: &[u8], error: std::str::Utf8Error| {
        let at = error.valid_up_to();
        let what = format!("found byte {:#04x} at offset {at}, expected UTF-8 text", bytes[at]);
        TraceError::input(file, Some(Place::of_offset(bytes, at)), what)
    };
    let text = match bytes {
        Cow::Borrowed(bytes) => Cow::Borrowed(std::str::from_utf8(bytes).map_err(|e| bad(bytes, e))?),
        Cow::Owned(bytes) => {
            Cow::Owned(String::from_utf8(bytes).map_err(|e| bad(e.as_bytes(), e.utf8_error()))?)
        }
    };
    Ok(match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Cow::Owned(text) if text.starts_with('\u{feff}') => Cow::Owned(text['\u{feff}'.len_utf8()..].into()),
        owned @ Cow::Owned(_) => owned,
    })
}

fn decompress(file: &str, bytes: &[u8]) -> Result<Vec<u8>, TraceError> {
    let mut expanded = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .take(EXPANDED_MAX + 1)
        .read_to_end(&mut expanded)
        .map_err(|error| TraceError::input(file, None, format!("found damaged gzip data: {error}")))?;
    if expanded.len() as u64 > EXPANDED_MAX {
        let what = format!("found gzip data that expands to more than {EXPANDED_MAX} bytes");
        return Err(TraceError::input(file, None, what));
    }
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_guessed_by_name_then_by_content() {
        let cases = [
            ("a.TOML.gz", "", Some(Format::Toml)),
            ("a.yml", "", Some(Format::Yaml)),
            ("FB.tsv", "", Some(Format::Swim)),
            ("-", " \n{", Some(Format::Json)),
            ("-", "# ours\n\nslackline = 1\n", Some(Format::Toml)),
            ("-", "flows: []\nslackline: 1\n", Some(Format::Yaml)),
            ("trace.txt", "\njob0\t49\t49\t740773\t2339561\t627471\n", Some(Format::Swim)),
            ("-", "job0\t49\t49\tx\t2339561\t627471\n", None),
            ("w.xml", "<?xml version='1.0'?>\n<!-- a -->\n<workflow name='w'>", Some(Format::Woha)),
            ("-", " <workflow-app xmlns='uri:oozie:workflow:1.0'>", Some(Format::Oozie)),
            ("w.xml", "<html>", None),
            ("-", "", None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(Format::guess(name, text), expected, "{name:?} {text:?}");
        }
    }

    #[test]
    fn gzip_is_read_as_it_is_and_damage_is_told() {
        use std::io::Write;
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all("\u{feff}slackline = 1".as_bytes()).unwrap();
        let packed = writer.finish().unwrap();
        assert_eq!(text("w", &packed).unwrap(), "slackline = 1");
        let error = text("w", &packed[..packed.len() - 9]).unwrap_err().to_string();
        assert!(error.starts_with("w: found damaged gzip data"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_have_a_place() {
        let error = text("w", b"a = 1\nb = \xff").unwrap_err().to_string();
        assert_eq!(error, "w:2:5: found byte 0xff at offset 10, expected UTF-8 text");
    }
}
