//! Converts the settings of a specification into an instance.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use slackline::import::{ImportError, Source, WorkloadOptions};
use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, Repeat, Weights};
use slackline_model::params::Settings;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Draft, Instance, Seed, Span};
use slackline_trace::generate::generator;

use crate::context::Context;
use crate::error::ReproError;
use crate::spec::Figure;
use crate::values;

/// What is wrong with the words.
pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// A workload as a specification says it: a generator or a file, and its settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Workload"))]
#[cfg_attr(test, schemars(extend(
    "not" = { "required": ["generator", "file"] },
    "dependentRequired" = { "from": ["file"] },
    "if" = { "not": { "required": ["file"] } },
    "then" = { "required": ["generator"] }
)))]
pub(crate) struct SaidWorkload {
    /// One of `slackline generate`; this or `file`.
    #[serde(default, deserialize_with = "known_generator")]
    generator: Option<String>,
    /// A document of ours, a trace, or a folder of one; its path from where the specification is.
    file: Option<String>,
    /// Format of the file; guessed from its name and content without it.
    from: Option<String>,
    /// Parameters of the generator, or options of the file's import format; the others have their defaults.
    #[serde(default)]
    set: BTreeMap<String, Word>,
    /// How often the flows recur; without it, as the generator or the file says.
    repeat: Option<Recurrence>,
}

fn known_generator<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    values::text(deserializer, |text| generator(text).map(|known| Some(known.name.to_owned())))
}

impl SaidWorkload {
    /// The workload, with its file read and its settings checked; `context` receives messages on the file.
    pub(crate) fn of(self, figure: &Figure, context: &Context<'_>) -> Result<Workload, ReproError> {
        let Self { generator, file, from, set, repeat } = self;
        let origin = match (generator, file) {
            (Some(generator), None) if from.is_none() => Origin::Generator(generator),
            (None, Some(file)) => {
                let source =
                    figure.beside(&file).map_err(|problem| figure.wrong("workload.file", problem))?;
                Origin::File { source: Arc::new(source), from }
            }
            (generator, file) => {
                let found = match (generator, file) {
                    (Some(_), Some(_)) => "generator and file",
                    (Some(_), None) => "generator and from",
                    _ => "neither generator nor file",
                };
                let expected = "generator, or file with or without from";
                return Err(figure.wrong("workload", format!("found {found}, expected {expected}")));
            }
        };
        let workload = Workload { origin, set, repeat };
        let remarks = workload.check().map_err(|problem| {
            let at_file = matches!(workload.origin, Origin::File { .. });
            let of_set = !at_file || matches!(problem.downcast_ref(), Some(ImportError::Option { .. }));
            figure.wrong(if of_set { "workload.set" } else { "workload.file" }, problem)
        })?;
        for remark in remarks {
            (context.tell)(remark);
        }
        Ok(workload)
    }
}

/// A workload: its origin, with settings.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) origin: Origin,
    /// Settings of the origin; the others have their defaults.
    pub(crate) set: BTreeMap<String, Word>,
    /// How often its flows recur; `None` for the recurrence of the origin.
    pub(crate) repeat: Option<Recurrence>,
}

/// The origin of a workload.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The generator of that name.
    Generator(String),
    /// A file or folder, and its format if the specification names it.
    File { source: Arc<Source>, from: Option<String> },
}

impl Workload {
    pub(crate) fn generated(name: &str, set: BTreeMap<String, Word>) -> Self {
        Self { origin: Origin::Generator(name.to_owned()), set, repeat: None }
    }

    /// Checks that the origin has such settings, and that a file is a workload. Returns the messages on it.
    pub(crate) fn check(&self) -> Result<Vec<String>, Problem> {
        let set = self.settings();
        match &self.origin {
            Origin::Generator(name) => {
                let pairs = set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                Settings::parse(generator(name)?.params, pairs)?;
                Ok(Vec::new())
            }
            Origin::File { source, from } => {
                let (_, remarks) = source.shape(&import_options(from.as_ref(), set))?.into_draft()?;
                Ok(remarks.iter().map(|remark| format!("{}: {remark}", source.name)).collect())
            }
        }
    }

    /// The draft of the origin for a seed.
    fn draft(&self, seed: u64) -> Result<Draft, Problem> {
        let set = self.settings();
        let mut draft = match &self.origin {
            Origin::Generator(name) => {
                let set: Vec<(&str, &str)> =
                    set.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                generator(name)?.generate(&set, Seed(seed))?
            }
            Origin::File { source, from } => {
                let options = WorkloadOptions { seed: Some(seed), ..import_options(from.as_ref(), set) };
                let shaped = source.shape(&options)?;
                shaped.refuse_waiting()?;
                shaped.into_draft()?.0
            }
        };
        if let Some(Recurrence { every, times }) = self.repeat {
            draft.flows.iter_mut().for_each(|flow| flow.repeat = Some(Repeat { every, times: times.get() }));
        }
        Ok(draft)
    }

    fn settings(&self) -> Vec<(String, String)> {
        self.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
    }
}

fn import_options(from: Option<&String>, set: Vec<(String, String)>) -> WorkloadOptions {
    WorkloadOptions { from: from.cloned(), import: set, ..WorkloadOptions::default() }
}

/// Every flow recurs.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Recurrence {
    /// Seconds between releases.
    #[serde(deserialize_with = "values::seconds_above_zero")]
    #[cfg_attr(test, schemars(range(min = 1e-6)))]
    pub(crate) every: f64,
    /// How many times in all.
    pub(crate) times: NonZero<u32>,
}

/// A value as a user would write it: a number or a word.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Cluster {
    /// Number of machines.
    #[serde(default, deserialize_with = "values::count")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) machines: Option<u32>,
    /// Slots of each for maps and reduces alike.
    #[serde(default, deserialize_with = "values::count")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(crate) slots: Option<u32>,
    /// Slots of each for maps; with `reduce_slots`.
    pub(crate) map_slots: Option<u32>,
    /// Slots of each for reduces; with `map_slots`.
    pub(crate) reduce_slots: Option<u32>,
}

impl Cluster {
    fn apply(&self, draft: &mut Draft) -> Result<(), Problem> {
        if [self.machines, self.slots, self.map_slots, self.reduce_slots].iter().all(Option::is_none) {
            let expected = "machines and slots in the figure's cluster, because the workload has none";
            let none = draft.machines.is_empty();
            return if none { Err(format!("found no cluster, expected {expected}").into()) } else { Ok(()) };
        }
        let slots = match (self.slots, self.map_slots, self.reduce_slots) {
            (Some(slots), None, None) => Some(Slots::Generic(slots)),
            (None, Some(map), Some(reduce)) => Some(Slots::MapReduce { map, reduce }),
            (None, None, None) => None,
            _ => {
                return Err(
                    "cluster: found only one of map_slots and reduce_slots, expected both, or slots".into()
                );
            }
        };
        let own = match draft.machines.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        };
        let missing = |other, missing| format!("cluster: found {other} alone, expected {missing} as well");
        let count = self.machines.or(own.as_ref().map(|m| m.count));
        let count = count.ok_or_else(|| missing("slots", "machines"))?;
        let slots = slots.or(own.as_ref().map(|m| m.slots)).ok_or_else(|| missing("machines", "slots"))?;
        let (name, speed, rack) = match own {
            Some(own) => (own.name, own.speed, own.rack),
            None => ("node".to_owned(), 1.0, None),
        };
        draft.machines = vec![MachineDraft { name, count, speed, slots, rack }];
        Ok(())
    }
}

/// Everything that affects an instance except its objective.
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
    /// Sets the varied parameter: a parameter of the cluster, `deadlines`, `every` (of a recurring workload),
    /// or a parameter of the generator or the import format.
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
                repeat.ok_or("found every for a workload without repeat, expected both")?.every = number()?;
            }
            _ => {
                self.workload.set.insert(name.to_owned(), value.clone());
                self.workload.check()?;
            }
        }
        Ok(())
    }

    /// The draft for a seed.
    fn draft(&self, seed: u64) -> Result<Draft, Problem> {
        let mut draft = self.workload.draft(seed)?;
        draft.weights = self.weights;
        self.cluster.apply(&mut draft)?;
        Ok(draft)
    }

    /// The instance for a seed.
    pub(crate) fn instance(&self, seed: u64) -> Result<Instance, Problem> {
        let mut instance = Instance::new(&self.draft(seed)?)?;
        if let Some(factor) = self.deadlines {
            let grain = self.grain.map(Span::from_seconds_nearest);
            let rule = instance.deadline_rule(factor, grain);
            instance = instance.with_deadlines(&rule).map_err(|(flow, deadline)| {
                format!("found a deadline of {deadline} s for flow {flow}, expected at most {SECONDS_MAX} s")
            })?;
        }
        if let Some(grain) = self.grain {
            instance = instance.cut(Span::from_seconds_nearest(grain));
        }
        Ok(instance)
    }
}
