//! The table of engines by name.
//!
//! An engine is named `name` or `name:parameter=value`, with further parameters after commas. A remote engine
//! is named `name://address`. The table is a value: the default has the engines of this library, and
//! [`Engines::with`] adds another one.

use slackline_executor::engine::backend::{ADDRESS, Backend, EngineEntry};
use slackline_executor::engine::machines::{slurm, ssh};
use slackline_executor::engine::this_machine;
use slackline_executor::run::error::EngineError;
use slackline_model::params::{self, ParamError, Settings};

use crate::names::unknown;

/// The engines of this library, the default one first.
const TABLE: &[EngineEntry] = &[
    this_machine::ENTRY,
    ssh::ENTRY,
    slurm::ENTRY,
    #[cfg(feature = "yarn")]
    slackline_yarn::flows::ENTRY,
];

/// The engines that can be named. The default is every engine of this library.
#[derive(Clone, Debug)]
pub struct Engines(Vec<EngineEntry>);

/// The reason why a text names no engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineSpecError {
    /// No such engine.
    #[error("{}", unknown("engine", .found, .known))]
    Unknown {
        /// The name that was given.
        found: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// Its parameters are invalid.
    #[error("engine {engine}: {problem}")]
    Parameter {
        /// The engine.
        engine: &'static str,
        /// The error.
        problem: ParamError,
    },
}

/// An engine by name, with the parameters that were given.
#[derive(Clone, Debug)]
pub struct EngineSpec {
    entry: EngineEntry,
    given: Vec<(String, String)>,
}

impl Default for Engines {
    fn default() -> Self {
        Self(TABLE.to_vec())
    }
}

impl Engines {
    /// Adds an engine. It replaces one of the same name.
    #[must_use]
    pub fn with(mut self, entry: EngineEntry) -> Self {
        self.0.retain(|known| known.name != entry.name);
        self.0.push(entry);
        self
    }

    /// All engines, the default one first.
    pub fn all(&self) -> &[EngineEntry] {
        &self.0
    }

    /// The names, the default one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|entry| entry.name)
    }

    /// Reads `name`, `name:parameter=value,…` or `name://address,parameter=value,…`. With
    /// `name+https://address` the engine is given `https://address`.
    ///
    /// # Errors
    /// Unknown names, parameters and values, each with the valid ones.
    pub fn parse(&self, text: &str) -> Result<EngineSpec, EngineSpecError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let secure = name.strip_suffix("+https").filter(|_| rest.starts_with("//"));
        let entry = self.0.iter().find(|entry| entry.name == secure.unwrap_or(name)).ok_or_else(|| {
            EngineSpecError::Unknown { found: name.to_owned(), known: self.names().collect() }
        })?;
        let mut given = Vec::new();
        let pairs = match rest.strip_prefix("//") {
            Some(rest) => {
                let (address, pairs) = rest.split_once(',').unwrap_or((rest, ""));
                let scheme = if secure.is_some() { "https://" } else { "" };
                given.push((ADDRESS.to_owned(), format!("{scheme}{address}")));
                pairs
            }
            None => rest,
        };
        let pairs = params::pairs(entry.params, pairs).into_iter();
        given.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        EngineSpec { entry: *entry, given: Vec::new() }.with(given)
    }
}

impl EngineSpec {
    /// The engine's name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// The parameters that were given.
    pub fn given(&self) -> &[(String, String)] {
        &self.given
    }

    /// The same engine with more parameters.
    ///
    /// # Errors
    /// Unknown names and values, each with the valid ones; a parameter that is given twice.
    pub fn with(mut self, more: impl IntoIterator<Item = (String, String)>) -> Result<Self, EngineSpecError> {
        self.given.extend(more);
        match self.settings() {
            Ok(_) => Ok(self),
            Err(problem) => Err(EngineSpecError::Parameter { engine: self.entry.name, problem }),
        }
    }

    fn settings(&self) -> Result<Settings, ParamError> {
        let given = self.given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Settings::parse(self.entry.params, given)
    }

    /// Creates the engine.
    ///
    /// # Errors
    /// Parameters that contradict each other, or are not possible on this machine.
    pub fn make(&self) -> Result<Box<dyn Backend>, EngineError> {
        (self.entry.make)(&self.settings()?)
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::params::{Param, Values};

    use super::*;

    const FAR: EngineEntry = EngineEntry {
        name: "far",
        summary: "an engine somewhere else",
        params: &[
            Param::new(ADDRESS, "", Values::Text("host:port"), "where it is"),
            Param::new("slots", "1", Values::Count(1, 9), "tasks at a time"),
        ],
        make: |settings| Err(EngineError::other(format!("no service at {}", settings.text(ADDRESS)))),
    };

    /// The engines that every build has.
    fn engines() -> Engines {
        Engines(vec![this_machine::ENTRY])
    }

    fn options(spec: &str) -> Result<String, String> {
        let made = engines().parse(spec).map_err(|e| e.to_string())?.make();
        made.map(|engine| format!("{:?}", engine.description().options)).map_err(|e| e.to_string())
    }

    #[test]
    fn the_local_engine_is_made_from_its_parameters() {
        let four =
            r#"{"engine": "local", "slots": "Generic(4)", "split": "1048576", "task-memory": "134217728"}"#;
        assert_eq!(options("local:slots=4,split=1MiB").unwrap(), four);
        let map_reduce = options("local:map-slots=2,reduce-slots=1").unwrap();
        assert!(
            map_reduce.contains("MapReduce { map: 2, reduce: 1 }") && map_reduce.contains("67108864"),
            "{map_reduce}"
        );
        assert_eq!(options("local"), options("local:slots=processors,timeout=none"));
    }

    #[test]
    fn invalid_engine_options_name_the_valid_ones() {
        let error = |spec: &str| options(spec).unwrap_err();
        assert_eq!(error("lokal"), r#"found engine "lokal", expected local; did you mean "local"?"#);
        assert!(
            error("local:queue=a").starts_with(r#"engine local: found parameter "queue", expected one of"#)
        );
        assert!(error("local://here").contains(r#"found parameter "address""#));
        assert!(error("local:slots=0").contains("expected processors or a whole number from 1 to 4096"));
        assert!(error("local:slots=1,slots=2").contains("slots a second time"));
        assert!(error("local:slots=1,map-slots=1,reduce-slots=1").contains("not both"));
        assert_eq!(error("local:map-slots=2"), "found map-slots=2, expected reduce-slots with it");
        assert!(error("local:split=10").ends_with("expected a size such as 64MiB or 64MB, 1KiB or more"));
    }

    #[test]
    fn one_of_your_own_is_named_like_any_other() {
        let engines = engines().with(FAR);
        assert_eq!(engines.names().collect::<Vec<_>>(), ["local", "far"]);
        let spec = engines.parse("far://host:8088,slots=3").unwrap();
        assert_eq!(spec.make().err().unwrap().to_string(), "no service at host:8088");
        let again = spec.with([("slots".to_owned(), "4".to_owned())]).unwrap_err().to_string();
        assert_eq!(again, "engine far: found parameter slots a second time, expected each at most once");
    }

    #[test]
    fn declarations_are_in_order() {
        for (k, entry) in TABLE.iter().enumerate() {
            assert!(TABLE[..k].iter().all(|other| other.name != entry.name), "{}", entry.name);
            Settings::defaults(entry.params);
            for text in entry.params.iter().map(|param| param.help).chain([entry.summary]) {
                assert!(!text.is_empty() && !text.ends_with('.') && text.len() < 100, "{text}");
            }
        }
    }
}
