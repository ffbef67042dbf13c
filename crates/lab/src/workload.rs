//! From the words of a specification to an instance.

use std::collections::BTreeMap;
use std::num::NonZero;

use serde::{Deserialize, Deserializer};
use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, Repeat, Weights};
use slackline_model::params::Settings;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Combine, Draft, Instance, Metric, Objective, Seed, Span};
use slackline_trace::generate::generator;

use crate::error::ReproError;
use crate::spec::Figure;
use crate::values;

/// What is wrong with the words.
pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// A workload: a generator with its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workload {
    /// The generator.
    #[serde(deserialize_with = "known_generator")]
    pub(crate) generator: String,
    /// Its settings; the rest have their defaults.
    #[serde(default)]
    pub(crate) set: BTreeMap<String, Word>,
    /// How often its flows recur; without it, as the generator says.
    pub(crate) repeat: Option<Recurrence>,
}

fn known_generator<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    values::text(deserializer, |text| generator(text).map(|known| known.name.to_owned()))
}

impl Workload {
    /// Whether the generator has such settings.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let set: Vec<(&String, String)> =
            self.set.iter().map(|(name, value)| (name, value.to_string())).collect();
        let pairs = set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Settings::parse(generator(&self.generator)?.params, pairs)?;
        Ok(())
    }

    /// The same of a figure's workload.
    pub(crate) fn checked(&self, figure: &Figure) -> Result<(), ReproError> {
        self.check().map_err(|problem| figure.wrong("workload.set", problem))
    }
}

/// Every flow recurs.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recurrence {
    /// Seconds between releases.
    #[serde(deserialize_with = "values::seconds_above_zero")]
    pub(crate) every: f64,
    /// How many times in all.
    pub(crate) times: NonZero<u32>,
}

/// A value as a user would write it: a number or a word.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub(crate) enum Word {
    /// A whole number.
    Count(i64),
    /// A number.
    Real(f64),
    /// A word.
    Text(String),
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(n) => n.fmt(f),
            Self::Real(x) => x.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A cluster of equal machines instead of the workload's own; what is left out is as in the workload.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cluster {
    #[serde(default, deserialize_with = "values::count")]
    pub(crate) machines: Option<u32>,
    #[serde(default, deserialize_with = "values::count")]
    pub(crate) slots: Option<u32>,
    pub(crate) map_slots: Option<u32>,
    pub(crate) reduce_slots: Option<u32>,
}

impl Cluster {
    fn apply(&self, draft: &mut Draft) -> Result<(), Problem> {
        if [self.machines, self.slots, self.map_slots, self.reduce_slots].iter().all(Option::is_none) {
            return Ok(());
        }
        let slots = match (self.slots, self.map_slots, self.reduce_slots) {
            (Some(slots), None, None) => Some(Slots::Universal(slots)),
            (None, Some(map), Some(reduce)) => Some(Slots::Typed { map, reduce }),
            (None, None, None) => None,
            _ => {
                return Err(
                    "cluster: found half of the slots, expected slots, or map_slots and reduce_slots".into(),
                );
            }
        };
        let own = match draft.machines.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        let count = self.machines.or(own.as_ref().map(|m| m.count)).ok_or("cluster: expected machines")?;
        let slots = slots.or(own.as_ref().map(|m| m.slots)).ok_or("cluster: expected slots")?;
        draft.machines = vec![MachineDraft { name: "node".to_owned(), count, speed: 1.0, slots, rack: None }];
        Ok(())
    }
}

/// All that shapes an instance beside its objective.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) workload: Workload,
    pub(crate) cluster: Cluster,
    /// Deadlines: release + this many times the time alone.
    pub(crate) deadlines: Option<f64>,
    pub(crate) weights: Weights,
    /// Phases given only as work are cut into tasks of at most this many seconds.
    pub(crate) grain: Option<f64>,
}

impl Shape {
    /// Sets the parameter that varies: one of the cluster's, `deadlines`, `every` (of a workload that recurs),
    /// or one of the generator's.
    pub(crate) fn set(&mut self, name: &str, value: &Word) -> Result<(), Problem> {
        let number = || match value {
            Word::Count(n) if *n >= 0 => Ok(*n as f64),
            Word::Real(x) if (0.0..=SECONDS_MAX).contains(x) => Ok(*x),
            other => Err(Problem::from(format!("found {name} = {other}, expected a number from 0"))),
        };
        let count = |least: u32| {
            let count = if let Word::Count(n) = value { u32::try_from(*n).ok() } else { None };
            let problem =
                || Problem::from(format!("found {name} = {value}, expected a whole number from {least}"));
            count.filter(|n| *n >= least).map(Some).ok_or_else(problem)
        };
        match name {
            "machines" => self.cluster.machines = count(1)?,
            "slots" => self.cluster.slots = count(1)?,
            "map_slots" => self.cluster.map_slots = count(0)?,
            "reduce_slots" => self.cluster.reduce_slots = count(0)?,
            "deadlines" => self.deadlines = Some(number()?),
            "every" => {
                let repeat = self.workload.repeat.as_mut();
                repeat.ok_or("found every without a repeat of the workload, expected one")?.every = number()?;
            }
            _ => {
                self.workload.set.insert(name.to_owned(), value.clone());
            }
        }
        Ok(())
    }

    /// The draft for a seed.
    pub(crate) fn draft(&self, seed: u64) -> Result<Draft, Problem> {
        let set: Vec<(String, String)> =
            self.workload.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let set: Vec<(&str, &str)> =
            set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut draft = generator(&self.workload.generator)?.generate(&set, Seed(seed))?;
        draft.weights = self.weights;
        if let Some(Recurrence { every, times }) = self.workload.repeat {
            draft.flows.iter_mut().for_each(|flow| flow.repeat = Some(Repeat { every, times: times.get() }));
        }
        self.cluster.apply(&mut draft)?;
        Ok(draft)
    }

    /// The instance for a seed.
    pub(crate) fn instance(&self, seed: u64) -> Result<Instance, Problem> {
        let mut instance = Instance::new(&self.draft(seed)?)?;
        if let Some(factor) = self.deadlines {
            instance = instance.with_deadlines(factor);
        }
        if let Some(grain) = self.grain {
            instance = instance.cut(Span::from_seconds_nearest(grain));
        }
        Ok(instance)
    }
}

/// An objective as specifications write it: `sum response`, `max stretch`.
pub(crate) fn objective(text: &str) -> Result<Objective, Problem> {
    let read = || {
        let (combine, metric) = text.split_once(' ')?;
        Some(Objective::new(Metric::from_name(metric)?, Combine::from_name(combine)?))
    };
    read().ok_or_else(|| {
        let metrics: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        format!("found objective {text:?}, expected sum or max and one of {}", metrics.join(", ")).into()
    })
}
