//! Reads queue files of Hadoop's schedulers, for the policies `yarn-capacity` and `yarn-fair`.
//!
//! The policies take a plain tree. This module builds it from the XML file. Every message has its position in
//! the file, and ignored settings are reported by name.

mod capacity;
mod fair;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use slackline_algo::registry::PolicyEntry;
use slackline_algo::yarn::capacity::Hierarchy;
use slackline_algo::yarn::{self, Container, ELSE, FILE};
use slackline_model::params::Settings;
use slackline_model::{Cluster, Objective};
use slackline_trace::{Element, Place, TraceError, read_element};

use crate::import::{ImportError, Source};
use crate::policy_spec::Make;

/// A policy with the queues of a file.
pub(crate) struct WithQueues {
    pub(crate) make: Arc<Make>,
    /// The settings of the file that the policy ignores.
    pub(crate) remarks: Vec<String>,
    /// The queues, for the CapacityScheduler.
    pub(crate) tree: Option<Tree>,
}

/// The queues of the CapacityScheduler, and the size of a container.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    hierarchy: Hierarchy,
    container: Container,
}

impl Tree {
    /// The same tree with another capacity of a queue, in percent; see [`Hierarchy::with_capacity`].
    pub(crate) fn with_capacity(&self, queue: &str, percent: f64) -> Result<Self, String> {
        let hierarchy = self.hierarchy.clone().with_capacity(queue, (percent / 100.0) as f32)?;
        Ok(Self { hierarchy, container: self.container })
    }

    /// The constructor of a policy with these queues.
    pub(crate) fn make(self) -> Arc<Make> {
        Arc::new(move |cluster: &Cluster, _: &Objective| {
            yarn::capacity::policy(cluster, self.hierarchy.clone(), self.container)
        })
    }
}

/// The policy of an entry with the file in its settings, if there is one.
///
/// # Errors
/// A file that cannot be read or is invalid.
pub(crate) fn read(entry: &PolicyEntry, settings: &Settings) -> Result<Option<WithQueues>, String> {
    let takes_file = entry.name == yarn::capacity::ENTRY.name || entry.name == yarn::fair::ENTRY.name;
    if !takes_file || !settings.given(FILE) {
        return Ok(None);
    }
    let source = Source::read(Path::new(settings.text(FILE))).map_err(|error| match error {
        ImportError::Read { name, source } => format!("{name}: cannot be read: {source}"),
        other => other.to_string(),
    })?;
    let expected =
        if entry.name == yarn::fair::ENTRY.name { "fair-scheduler.xml" } else { "capacity-scheduler.xml" };
    let root = read_element(&source.name, &source.bytes)
        .map_err(|error| error.read_as(&format!("a queue file ({expected}, XML)")).to_string())?;
    let container = Container::chosen(settings);
    let mut file = File { name: source.name, unknown: BTreeMap::new() };
    if entry.name == yarn::fair::ENTRY.name {
        let allocations = fair::allocations(&mut file, &root).map_err(|error| error.to_string())?;
        let make = Arc::new(move |cluster: &Cluster, _: &Objective| {
            yarn::fair::policy(cluster, allocations.clone(), container)
        });
        return Ok(Some(WithQueues { make, remarks: file.remarks(), tree: None }));
    }
    let hierarchy = capacity::hierarchy(&mut file, &root).map_err(|error| error.to_string())?;
    let mut hierarchy = hierarchy.chosen(settings);
    if settings.given(ELSE) {
        let name = settings.text(ELSE);
        hierarchy.otherwise = Some(hierarchy.leaf(name).ok_or_else(|| {
            let leaves = hierarchy.leaves().collect::<Vec<_>>().join(", ");
            format!("found else={name}, expected one of the leaf queues {leaves}")
        })?);
    }
    let tree = Tree { hierarchy, container };
    Ok(Some(WithQueues { make: tree.clone().make(), remarks: file.remarks(), tree: Some(tree) }))
}

/// The file being read.
struct File {
    name: String,
    /// By ignored setting: the number of its occurrences, and the line of the first one.
    unknown: BTreeMap<String, (u32, u32)>,
}

impl File {
    /// An error at a position.
    fn error(&self, place: Place, what: impl Into<String>) -> TraceError {
        TraceError::input(&self.name, Some(place), what)
    }

    /// Records a setting that the policy ignores.
    fn ignore(&mut self, what: impl Into<String>, place: Place) {
        self.unknown.entry(what.into()).or_insert((0, place.line)).0 += 1;
    }

    fn remarks(&self) -> Vec<String> {
        let said = |(what, (count, line)): (&String, &(u32, u32))| match count {
            1 => format!("{what} (line {line})"),
            _ => format!("{what} ({count} times, first on line {line})"),
        };
        let said: Vec<String> = self.unknown.iter().map(said).collect();
        let remark = || format!("{}: not modelled: {}", self.name, said.join(", "));
        if said.is_empty() { Vec::new() } else { vec![remark()] }
    }

    /// The number in an element or property.
    fn number<T: std::str::FromStr>(
        &self,
        name: &str,
        text: &str,
        place: Place,
        expected: &str,
    ) -> Result<T, TraceError> {
        let wrong = || self.error(place, format!("found {name} {text:?}, expected {expected}"));
        text.trim().parse().map_err(|_| wrong())
    }

    /// A finite, non-negative number.
    fn amount(&self, name: &str, text: &str, place: Place) -> Result<f64, TraceError> {
        const EXPECTED: &str = "a number of at least 0";
        let number: f64 = self.number(name, text, place, EXPECTED)?;
        if number.is_finite() && number >= 0.0 {
            return Ok(number);
        }
        Err(self.error(place, format!("found {name} {text:?}, expected {EXPECTED}")))
    }

    /// Refuses a root element of another name, which belongs to another file.
    fn expect_root(&self, root: &Element, name: &str, whose: &str) -> Result<(), TraceError> {
        if root.name == name {
            return Ok(());
        }
        let what = match root.name.as_str() {
            "allocations" => "found <allocations>, which is a file of the FairScheduler (policy yarn-fair)",
            "configuration" => "found <configuration>, which is a file of properties (policy yarn-capacity)",
            _ => &format!("found <{}>", root.name),
        };
        Err(self.error(root.place, format!("{what}, expected <{name}> of {whose}")))
    }
}

#[cfg(test)]
mod tests;
