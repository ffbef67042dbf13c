//! The files beside a workflow: `job.properties`, and the durations of actions, which Oozie does not know.
//!
//! The side file is TOML or JSON:
//!
//! ```toml
//! deadline = 4800.0                                # seconds after submission, or "80m"; may be left out
//! [actions.mr-node]
//! maps = 40
//! reduces = 10
//! seconds = 22.0                                   # a task of either phase, or
//! # seconds = { map = 22.0, reduce = 11.0 }
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use slackline_model::duration;
use slackline_model::names::did_you_mean;

use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::parse;
use crate::reading::source::SourceMap;
use crate::reading::times::Duration;

/// The names of the texts in messages; they come from options and have no file here.
const ACTIONS: &str = "actions";
const CASES: &str = "cases";

/// Longest text after the replacement of `${…}` in a value.
const EXPANDED_MAX: usize = 1 << 16;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::importers) struct Side {
    deadline: Option<Duration>,
    #[serde(default)]
    actions: BTreeMap<String, Action>,
    /// Its source, for the places of faults.
    #[serde(skip)]
    text: String,
}

/// The known data of an action.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::importers) struct Action {
    maps: Option<u32>,
    reduces: Option<u32>,
    seconds: Option<Seconds>,
}

/// Distinguished by hand, so that a message has the value found and its place.
#[derive(Debug)]
enum Seconds {
    Both(Duration),
    Each(PerPhase),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PerPhase {
    map: Option<Duration>,
    reduce: Option<Duration>,
}

struct SecondsVisitor;

impl<'de> Visitor<'de> for SecondsVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a table {{ map = s, reduce = s }}", duration::EXPECTED)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Seconds, E> {
        Ok(Seconds::Both(Duration(n as f64)))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Seconds, E> {
        Ok(Seconds::Both(Duration(n as f64)))
    }

    fn visit_f64<E: Error>(self, seconds: f64) -> Result<Seconds, E> {
        Ok(Seconds::Both(Duration(seconds)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Seconds, E> {
        Duration::deserialize(text.into_deserializer()).map(Seconds::Both)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Seconds, A::Error> {
        PerPhase::deserialize(MapAccessDeserializer::new(map)).map(Seconds::Each)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecondsVisitor)
    }
}

impl Action {
    /// Tasks of a phase, 0 for map and 1 for reduce.
    pub(in crate::importers) fn tasks(&self, phase: usize) -> Option<u32> {
        if phase == 0 { self.maps } else { self.reduces }
    }

    /// Seconds of a task of a phase.
    pub(in crate::importers) fn seconds(&self, phase: usize) -> Option<f64> {
        let Duration(seconds) = match self.seconds.as_ref()? {
            Seconds::Both(both) => *both,
            Seconds::Each(each) if phase == 0 => each.map?,
            Seconds::Each(each) => each.reduce?,
        };
        Some(seconds)
    }
}

impl Side {
    /// Reads the side file; an empty text is an empty file.
    ///
    /// # Errors
    /// Broken syntax, unknown fields, numbers that are no times.
    pub(in crate::importers) fn read(text: &str) -> Result<Self, TraceError> {
        let side: Self = parse(ACTIONS, text, format_of(text), "a table of actions")?;
        let side = Self { text: text.to_owned(), ..side };
        let of_actions = side.actions.iter().flat_map(|(name, action)| {
            let path = format!("actions.{name}.seconds");
            [0, 1].map(|phase| Some((path.clone(), action.seconds(phase)?)))
        });
        let times = of_actions.chain([side.deadline().map(|seconds| ("deadline".to_owned(), seconds))]);
        let is_time = |seconds: f64| (0.0..=slackline_model::time::SECONDS_MAX).contains(&seconds);
        if let Some((path, bad)) = times.flatten().find(|(_, seconds)| !is_time(*seconds)) {
            return Err(side.wrong(path, format!("found {bad} seconds, expected a number from 0")));
        }
        Ok(side)
    }

    fn wrong(&self, path: String, what: String) -> TraceError {
        SourceMap::document(ACTIONS, &self.text, format_of(&self.text)).error(vec![(path, what)])
    }

    pub(in crate::importers) fn deadline(&self) -> Option<f64> {
        self.deadline.map(|Duration(seconds)| seconds)
    }

    pub(in crate::importers) fn action(&self, name: &str) -> Option<&Action> {
        self.actions.get(name)
    }

    /// Refuses actions that the workflow does not have.
    pub(in crate::importers) fn refuse_unknown<'n, I: Iterator<Item = &'n str>>(
        &self,
        names: impl Fn() -> I,
    ) -> Result<(), TraceError> {
        let unknown = self.actions.keys().find(|name| !names().any(|known| known == name.as_str()));
        let Some(name) = unknown else { return Ok(()) };
        let what =
            format!("found action {name:?}, expected one of the workflow{}", did_you_mean(name, names()));
        Err(self.wrong(format!("actions.{name}"), what))
    }
}

fn format_of(text: &str) -> Format {
    if text.trim_start().starts_with('{') { Format::Json } else { Format::Toml }
}

/// `decision=target` after commas.
///
/// # Errors
/// Parts of another form.
pub(in crate::importers) fn cases(text: &str) -> Result<BTreeMap<String, String>, TraceError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (decision, target) = part.split_once('=').ok_or_else(|| {
            TraceError::input(CASES, None, format!("found {part:?}, expected decision=target after commas"))
        })?;
        Ok((decision.trim().to_owned(), target.trim().to_owned()))
    };
    parts.map(pair).collect()
}

/// Reads `job.properties`: `name=value` or `name: value`, comments after `#` or `!`, lines that go on
/// after a backslash. Values may speak of properties before them.
pub(in crate::importers) fn properties(text: &str) -> BTreeMap<String, String> {
    let mut properties = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start().to_owned();
        if line.starts_with(['#', '!']) {
            continue;
        }
        while line.ends_with('\\') {
            line.pop();
            let Some(more) = lines.next() else { break };
            line += more.trim_start();
        }
        let Some(at) = line.find(['=', ':']) else { continue };
        let value = expand(line[at + 1..].trim(), &properties);
        properties.insert(line[..at].trim().to_owned(), value);
    }
    properties
}

/// Replaces every known `${name}`; other names and expressions stay.
pub(in crate::importers) fn expand(text: &str, properties: &BTreeMap<String, String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out += before;
        let value = from.find('}').and_then(|end| Some((end, properties.get(from[2..end].trim())?)));
        let Some((end, value)) = value else {
            out += "${";
            rest = &from[2..];
            continue;
        };
        out += value;
        rest = &from[end + 1..];
        if out.len() > EXPANDED_MAX {
            return text.to_owned();
        }
    }
    out + rest
}
