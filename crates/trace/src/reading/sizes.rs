//! Sizes as documents write them: a number of bytes, or a text such as `512MiB`. What is written back is
//! always a number.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use slackline_model::bytes;

/// A size in bytes: at least one, and few enough for the whole numbers of TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Size(pub(crate) u64);

impl Size {
    fn new(bytes: u64) -> Option<Self> {
        (bytes > 0 && i64::try_from(bytes).is_ok()).then_some(Self(bytes))
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size of at least one byte such as 512MiB or 2GB")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Size, E> {
        Size::new(n).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(n), &self))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Size, E> {
        let size = u64::try_from(n).ok().and_then(Size::new);
        size.ok_or_else(|| E::invalid_value(Unexpected::Signed(n), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Size, E> {
        let size = bytes::parse(text).and_then(Size::new);
        size.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A size: a number of bytes, or a text such as 512MiB, 2GB or 4096.",
            "type": ["integer", "string"],
            "minimum": 1
        })
    }
}
