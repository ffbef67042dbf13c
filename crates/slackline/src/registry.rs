//! Policies by name.
//!
//! A policy is named `name` or `name:parameter=value`, with further parameters after further `:`. Unknown
//! names, parameters and values are errors that list the valid ones. A registry is a value: the standard one
//! has the policies of this library, and [`Registry::with`] adds another one. Every registry also knows
//! `recorded` (the execution in a log) and `command:PROGRAM ARGUMENTS` (an external program, feature
//! `command`).

use std::path::Path;

use slackline_algo::registry::PolicyEntry;
use slackline_model::params::{ParamError, Settings};

use crate::names::unknown;
use crate::policy_spec::PolicySpec;

/// The name that stands for all policies of a registry that belong to comparisons
/// ([`PolicyEntry::among_all`]): in this library the baselines and those of the papers.
pub const ALL: &str = "all";

/// The policies that are compared by default, in order, as far as a registry has them.
const USUAL: [&str; 4] = ["fifo", "fair", "edf", "auto"];

/// The names of the queue files of Hadoop's schedulers, with the policies that read them.
const QUEUE_FILES: [(&str, &str); 2] =
    [("capacity-scheduler.xml", "yarn-capacity"), ("fair-scheduler.xml", "yarn-fair")];

/// The policies that can be named.
#[derive(Clone)]
pub struct Registry {
    entries: Vec<PolicyEntry>,
}

/// The reason why a registry refuses an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is already used.
    #[error("found a second policy {0}, expected each name once")]
    Duplicate(&'static str),
    /// The name has characters that are not allowed in policy names.
    #[error("found policy name {0:?}, expected letters, digits, - and _")]
    Name(&'static str),
}

/// The reason why a text names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// An unknown policy.
    #[error("{}", unknown("policy", .found, .known))]
    Unknown {
        /// The name that was given.
        found: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// Its parameters are invalid.
    #[error("policy {policy}: {problem}")]
    Parameter {
        /// The policy.
        policy: &'static str,
        /// The error.
        problem: ParamError,
    },
    /// Its file is invalid.
    #[error("policy {policy}: {problem}")]
    File {
        /// The policy.
        policy: &'static str,
        /// The error, with the file and the line.
        problem: String,
    },
    /// The command line of an external program is invalid.
    #[error("policy command: {0}")]
    Program(String),
}

impl Registry {
    /// The policies of this library.
    pub fn standard() -> Self {
        Self { entries: slackline_algo::policies::POLICIES.to_vec() }
    }

    /// No policies.
    pub fn empty() -> Self {
        Self { entries: Vec::new() }
    }

    /// Adds an entry at the end.
    ///
    /// # Errors
    /// A name that is already used, or that has characters other than letters, digits, `-` and `_`.
    pub fn with(mut self, entry: PolicyEntry) -> Result<Self, RegisterError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if entry.name.is_empty() || !entry.name.chars().all(is_plain) {
            return Err(RegisterError::Name(entry.name));
        }
        if self.described().any(|known| known.name == entry.name) {
            return Err(RegisterError::Duplicate(entry.name));
        }
        self.entries.push(entry);
        Ok(self)
    }

    /// The entries of all policies that can be named, in order: those of the registry, then `recorded`, then
    /// external programs.
    pub fn described(&self) -> impl Iterator<Item = &PolicyEntry> + Clone {
        #[cfg(feature = "command")]
        let programs = Some(&crate::command::ENTRY);
        #[cfg(not(feature = "command"))]
        let programs: Option<&PolicyEntry> = None;
        self.entries.iter().chain([&crate::recorded::ENTRY]).chain(programs)
    }

    /// The entries of the registry, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PolicyEntry> + Clone {
        self.entries.iter()
    }

    /// The names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'static str> + Clone + '_ {
        self.iter().map(|entry| entry.name)
    }

    /// The policies that are compared by default: some of this library, each of which supports every workload
    /// online, and all added ones. `edf` is one of them if flows have deadlines. If the folder of the log has
    /// a queue file of Hadoop, the scheduler of that cluster replaces `fifo`.
    ///
    /// # Errors
    /// An invalid queue file.
    pub fn usual(&self, log: &Path, has_deadlines: bool) -> Result<Vec<PolicySpec>, PolicyError> {
        let of_this_library =
            |name: &str| slackline_algo::policies::POLICIES.iter().any(|entry| entry.name == name);
        let own = QUEUE_FILES.iter().find_map(|(file, policy)| {
            let file = log.join(file);
            (self.get(policy).is_some() && file.is_file())
                .then(|| format!("{policy}:file={}", file.display()))
        });
        let few =
            USUAL.into_iter().filter(|&name| self.get(name).is_some() && (has_deadlines || name != "edf"));
        let added = self.names().filter(|name| !USUAL.contains(name) && !of_this_library(name));
        few.chain(added)
            .map(|name| self.parse(own.as_deref().filter(|_| name == "fifo").unwrap_or(name)))
            .collect()
    }

    /// The entry of this name.
    pub fn get(&self, name: &str) -> Option<&PolicyEntry> {
        self.iter().find(|entry| entry.name == name)
    }

    /// Reads `name`, `name:parameter=value:…` or `command:PROGRAM ARGUMENTS`.
    ///
    /// # Errors
    /// Unknown names, parameters and values, each with the valid ones; an invalid queue file.
    pub fn parse(&self, spec: &str) -> Result<PolicySpec, PolicyError> {
        #[cfg(feature = "command")]
        if let Some(line) = command_line(spec) {
            let program = crate::command::Program::parse(line).map_err(PolicyError::Program)?;
            return Ok(PolicySpec::of_program(program, spec));
        }
        if spec == crate::recorded::NAME {
            return Ok(PolicySpec::default_of(&crate::recorded::ENTRY));
        }
        let mut parts = spec.split(':');
        let name = parts.next().unwrap_or_default();
        let entry = self.get(name).ok_or_else(|| PolicyError::Unknown {
            found: name.to_owned(),
            known: self.described().map(|entry| entry.name).collect(),
        })?;
        let settings =
            Settings::parse(entry.params, parts.map(|part| part.split_once('=').unwrap_or((part, ""))))
                .map_err(|problem| PolicyError::Parameter { policy: entry.name, problem })?;
        let policy = PolicySpec::of_entry(entry, settings, spec);
        #[cfg(feature = "import")]
        if let Some(queues) = crate::queue_files::read(entry, policy.settings())
            .map_err(|problem| PolicyError::File { policy: entry.name, problem })?
        {
            return Ok(policy.with_queues(queues));
        }
        Ok(policy)
    }

    /// Reads comma-separated policies, each as [`Self::parse`] does, or [`ALL`]. The rest after `command:`
    /// belongs to the program and its arguments, including commas.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_several(&self, specs: &str) -> Result<Vec<PolicySpec>, PolicyError> {
        let mut policies = Vec::new();
        let mut rest = Some(specs);
        while let Some(specs) = rest {
            let spec;
            (spec, rest) = match specs.split_once(',') {
                Some((first, others)) if command_line(specs).is_none() => (first, Some(others)),
                _ => (specs, None),
            };
            if spec == ALL && self.get(ALL).is_none() {
                policies.extend(self.iter().filter(|entry| entry.among_all).map(PolicySpec::default_of));
            } else {
                policies.push(self.parse(spec)?);
            }
        }
        Ok(policies)
    }

    /// Every policy of the registry, with default parameters.
    pub fn policies(&self) -> Vec<PolicySpec> {
        self.iter().map(PolicySpec::default_of).collect()
    }
}

/// The command line of an external program; empty if it is missing.
fn command_line(spec: &str) -> Option<&str> {
    let line = spec.strip_prefix("command")?;
    if line.is_empty() { Some(line) } else { line.strip_prefix(':') }
}

impl Default for Registry {
    fn default() -> Self {
        Self::standard()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        Registry::standard().parse(spec).unwrap_err().to_string()
    }

    #[test]
    fn names_and_parameters_are_checked() {
        let registry = Registry::standard();
        let by = |spec: &str| registry.parse(spec).unwrap().settings().choice("by");
        assert_eq!((by("fifo:by=flow"), by("fair")), ("flow", "job"));
        let unknown = error("fiffo");
        assert!(unknown.starts_with(r#"found policy "fiffo", expected one of fifo, fair, edf"#), "{unknown}");
        assert!(unknown.ends_with(r#"; did you mean "fifo"?"#), "{unknown}");
        assert_eq!(
            error("fifo:bye=flow"),
            r#"policy fifo: found parameter "bye", expected by; did you mean "by"?"#
        );
        assert_eq!(
            error("dmrs-identical:by=flow"),
            r#"policy dmrs-identical: found parameter "by", expected no parameter"#
        );
        let flex = registry.parse("flex:hand=minima:epoch=12.5").unwrap();
        assert_eq!((flex.settings().choice("hand"), flex.settings().real("epoch")), ("minima", 12.5));
        assert_eq!(registry.parse("flex").unwrap().settings().real("epoch"), 0.5);
        for epoch in ["-1", "1e9", "NaN", "soon", ""] {
            let expected = format!(
                "policy flex: found epoch={epoch}, expected seconds or a duration such as 90s, 1.5h or 2d, from 0 to 86400 s"
            );
            assert_eq!(error(&format!("flex:epoch={epoch}")), expected);
        }
        assert_eq!(error("fifo:by=user"), "policy fifo: found by=user, expected one of job, flow");
    }

    #[test]
    fn all_is_the_baselines_the_policies_of_the_papers_and_what_was_added() {
        let fifo = *Registry::standard().get("fifo").unwrap();
        let registry = Registry::standard().with(PolicyEntry { name: "mine", ..fifo }).unwrap();
        let specs = |text: &str| -> Vec<String> {
            registry.parse_several(text).unwrap().iter().map(|policy| policy.spec().to_owned()).collect()
        };
        let others = ["rule", "auto", "yarn-capacity", "yarn-fair"];
        assert_eq!(specs("all"), registry.names().filter(|name| !others.contains(name)).collect::<Vec<_>>());
        assert_eq!(specs("fifo:by=flow"), ["fifo:by=flow"]);
        assert!(registry.parse("all").is_err(), "it is no policy");
        assert!(error("FIFO").ends_with(r#"; did you mean "fifo"?"#));
    }

    #[test]
    fn the_default_comparison_has_a_few_policies_and_all_added_ones() {
        let of = |registry: &Registry, log: &str, has_deadlines| -> Vec<&str> {
            let policies = registry.usual(Path::new(log), has_deadlines).unwrap();
            policies.iter().map(PolicySpec::name).collect()
        };
        let usual = |registry: &Registry| of(registry, "night.toml", true);
        let standard = Registry::standard();
        assert_eq!(usual(&standard), ["fifo", "fair", "edf", "auto"]);
        assert_eq!(of(&standard, "night.toml", false), ["fifo", "fair", "auto"]);
        let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hadoop-log");
        assert_eq!(of(&standard, log, false), ["yarn-capacity", "fair", "auto"]);
        let fifo = *standard.get("fifo").unwrap();
        let mine = PolicyEntry { name: "mine", ..fifo };
        assert_eq!(usual(&standard.with(mine).unwrap()).last(), Some(&"mine"));
        assert_eq!(usual(&Registry::empty().with(mine).unwrap()), ["mine"]);
    }

    #[test]
    fn a_name_stands_for_one_policy() {
        let fifo = *Registry::standard().get("fifo").unwrap();
        let taken = Registry::standard().with(fifo).unwrap_err();
        assert_eq!(taken.to_string(), "found a second policy fifo, expected each name once");
        let odd = Registry::empty().with(PolicyEntry { name: "a:b", ..fifo }).unwrap_err();
        assert_eq!(odd, RegisterError::Name("a:b"));
        let own = Registry::standard().with(PolicyEntry { name: "mine", ..fifo }).unwrap();
        assert_eq!(own.names().last(), Some("mine"));
        assert_eq!(own.parse("mine:by=flow").unwrap().name(), "mine");
    }
}
