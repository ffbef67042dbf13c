//! Times as documents write them: a number of seconds, or a text such as `1h30m`, `06:00` or
//! `2026-03-01T06:00[Europe/Berlin]`. What is written back is always a number.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use slackline_model::{Start, TimeSpec, calendar, duration};

/// A duration in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Duration(pub(crate) f64);

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Moment(pub(crate) TimeSpec);

impl Moment {
    /// That many seconds after the start of the workload.
    pub(crate) const fn after_start(seconds: f64) -> Self {
        Self(TimeSpec::Seconds(seconds))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            TimeSpec::Seconds(seconds) => serializer.serialize_f64(*seconds),
            clock => serializer.collect_str(clock),
        }
    }
}

/// When second 0 of a workload is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beginning(pub(crate) Start);

impl Serialize for Beginning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Reads a number of seconds as it is, and a text with a function that says what it expected instead.
struct TimeVisitor<T> {
    expected: &'static str,
    number: fn(f64) -> T,
    text: fn(&str) -> Result<T, String>,
}

impl<T> Visitor<'_> for TimeVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<T, E> {
        Ok((self.number)(n as f64))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<T, E> {
        Ok((self.number)(n as f64))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<T, E> {
        Ok((self.number)(seconds))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.text)(text).map_err(|expected| E::invalid_value(Unexpected::Str(text), &expected.as_str()))
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = |text: &str| duration::parse(text).map(Self);
        deserializer.deserialize_any(TimeVisitor { expected: duration::EXPECTED, number: Self, text })
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = |text: &str| TimeSpec::parse(text).map(Self);
        deserializer.deserialize_any(TimeVisitor {
            expected: calendar::EXPECTED,
            number: Self::after_start,
            text,
        })
    }
}

struct BeginningVisitor;

impl Visitor<'_> for BeginningVisitor {
    type Value = Beginning;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(calendar::EXPECTED_START)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Beginning, E> {
        let start = Start::parse(text).map(Beginning);
        start.map_err(|expected| E::invalid_value(Unexpected::Str(text), &expected.as_str()))
    }
}

impl<'de> Deserialize<'de> for Beginning {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BeginningVisitor)
    }
}

#[cfg(test)]
mod schema {
    //! What the published schemas say of times: JSON Schema cannot tell one text from another here.

    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    macro_rules! schema {
        ($($name:ident: $schema:expr;)*) => {$(
            impl JsonSchema for super::$name {
                fn schema_name() -> Cow<'static, str> {
                    stringify!($name).into()
                }

                fn json_schema(_: &mut SchemaGenerator) -> Schema {
                    $schema
                }
            }
        )*};
    }

    schema! {
        Duration: json_schema!({
            "description": "A duration: a number of seconds, or a text such as 90s, 1.5h or 2d; a day is 24 hours.",
            "type": ["number", "string"],
            "minimum": 0
        });
        Moment: json_schema!({
            "description": "A point in time: seconds after the start of the workload, a duration after it, or, where \
                            the start is known, a date and time such as 2026-03-01T06:00[Europe/Berlin] or a time of day such as 06:00.",
            "type": ["number", "string"],
            "minimum": 0
        });
        Beginning: json_schema!({
            "description": "A date and time with a time zone or an offset such as 2026-03-01T00:00[Europe/Berlin].",
            "type": "string"
        });
    }
}
