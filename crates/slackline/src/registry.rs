//! The policies there are: one slice, with parameters and capabilities.
//!
//! A policy is named on the command line as `name` or `name:parameter=value`, more parameters each
//! after another `:`. Unknown names and parameters are errors that list the valid ones.

use std::fmt;

use slackline_algo::baseline::{By, Edf, Fair, Fifo};
use slackline_algo::dmrs::Variant;
use slackline_algo::flex::online::{Flex, Hand};
use slackline_algo::flowflex::FlowFlex;
use slackline_algo::ordering::online::Ordering;
use slackline_algo::ordering::orders::{Candidates, Rule, Times};
use slackline_algo::woha::JobOrder;
use slackline_model::params::Settings;
use slackline_model::{Instance, Span};
use slackline_policy::Policy;

use crate::plan::{self, Form, Planner};
use crate::{dmrs, woha};

/// A policy as the registry knows it.
pub struct Entry {
    /// Its one name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it comes from (a key of PAPERS.md and sections).
    pub source: &'static str,
    /// What it promises on cost.
    pub guarantee: &'static str,
    /// What it can take.
    pub capabilities: Capabilities,
    /// Its parameters.
    pub params: &'static [Param],
    planner: Planner,
    build: fn(&Instance, &Choices) -> Box<dyn Policy + Send>,
}

/// What a policy can take, in words for the table of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Flows of several jobs.
    pub flows: &'static str,
    /// Typed slots.
    pub typed: &'static str,
    /// Machines of mixed speed.
    pub speeds: &'static str,
    /// What `plan` gives.
    pub plan: &'static str,
    /// Use in the simulator and on engines.
    pub online: &'static str,
    /// Whether minima are kept.
    pub minima: bool,
}

/// A parameter: one of a few values, or a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// The valid values, or those of a number that are worth a try; the first is the default.
    pub values: &'static [&'static str],
    /// For a number: the least and the most it may be.
    pub range: Option<(f64, f64)>,
    /// What it does.
    pub help: &'static str,
}

impl Param {
    /// `name=value|value`, the default, and what it does.
    pub fn describe(&self) -> String {
        format!("{}={}` (default {}): {}", self.name, self.expected(), self.values[0], self.help)
    }

    /// What it may be, in a few signs: `job|flow`, `0..3600`.
    pub fn expected(&self) -> String {
        match self.range {
            Some((least, most)) => format!("{least}..{most}"),
            None => self.values.join("|"),
        }
    }

    fn read(&self, text: &str) -> Option<Choice> {
        let at = self.values.iter().position(|v| *v == text);
        let number =
            text.parse().ok().filter(|x| self.range.is_some_and(|(least, most)| (least..=most).contains(x)));
        match self.range {
            Some(_) => number.map(|number| Choice { at: at.unwrap_or(0), number }),
            None => at.map(|at| Choice { at, number: 0.0 }),
        }
    }
}

/// A value for a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Choice {
    /// Index among the parameter's values.
    at: usize,
    /// The number, of a parameter that is one.
    number: f64,
}

/// The chosen value of each parameter of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    at: Vec<usize>,
    numbers: Vec<f64>,
}

impl Choices {
    /// The defaults.
    fn of(params: &[Param]) -> Self {
        let defaults: Vec<Choice> = params
            .iter()
            .map(|param| param.read(param.values[0]).expect("invariant: defaults are valid"))
            .collect();
        Self {
            at: defaults.iter().map(|choice| choice.at).collect(),
            numbers: defaults.iter().map(|choice| choice.number).collect(),
        }
    }

    /// The value of a parameter that is a number.
    fn number(&self, param: usize) -> f64 {
        self.numbers[param]
    }
}

/// Index of the chosen value of each parameter, in the order of the parameters.
impl std::ops::Deref for Choices {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.at
    }
}

const BY: Param = Param {
    name: "by",
    values: &["job", "flow"],
    range: None,
    help: "who queues or shares: every job by itself, or flows as a whole",
};

const BLIND: Capabilities = Capabilities {
    flows: "yes",
    typed: "yes",
    speeds: "yes, blind",
    plan: "allocations on one speed",
    online: "yes",
    minima: false,
};

const WOHA: Capabilities =
    Capabilities { typed: "yes, pooled plans as an option", plan: "progress requirements", ..BLIND };

/// Plans of work that flows freely between slots; `make` is the policy's own.
const FLUID: Planner = Planner { form: Form::Allocations, one_job: false, universal: false, make: None };

const REQUIREMENTS: Planner = Planner { form: Form::Progress, ..FLUID };

const TASKS: Planner = Planner { form: Form::Tasks, one_job: true, ..FLUID };

const EPOCH: Param = Param {
    name: "epoch",
    values: &["0.5"],
    range: Some((0.0, 86_400.0)),
    help: "seconds between allocations; 0 for a new one at every event",
};

const FLOW_EPOCH: Param =
    Param { values: &["2"], help: "seconds between plans; 0 for a new one at every event", ..EPOCH };

const HAND: Param = Param {
    name: "hand",
    values: &["targets", "minima"],
    range: None,
    help: "whether slots are allocated outright, or handed to Fair as revised minima (the same slots)",
};

const JOBS: Param = Param {
    name: "jobs",
    values: &["malleable", "moldable"],
    range: None,
    help: "plan: whether the slots of a phase may change while it runs (online they may: every epoch \
           allocates anew)",
};

const ORDERING: Capabilities = Capabilities {
    flows: "online: every ready job is one of its jobs; plan, tune: one-job flows",
    typed: "yes, this is its point",
    plan: "tasks",
    online: "yes, re-ordered at arrivals",
    ..BLIND
};

/// `times` of `mk-jr` and `mk-tct-jr`, each with its own default first.
const fn times(values: &'static [&'static str]) -> Param {
    Param {
        name: "times",
        values,
        range: None,
        help: "how long stages are taken to last: work over slots, whole waves of tasks, or whichever \
               of the two gives the better order",
    }
}

/// Parameters of `mk-jr`.
const MK_JR: &[Param] = &[times(&["best", "area", "stage"])];

/// Parameters of `mk-tct-jr`.
const MK_TCT_JR: &[Param] = &[times(&["area", "stage", "best"])];

/// The candidates that a value of `times` stands for.
fn candidates(value: &str) -> Candidates {
    match value {
        "area" => Candidates::Only(Times::Area),
        "stage" => Candidates::Only(Times::Stage),
        _ => Candidates::Best,
    }
}

fn by(choice: usize) -> By {
    if choice == 0 { By::Job } else { By::Flow }
}

/// All policies.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn policies() -> &'static [Entry] {
    const ENTRIES: &[Entry] = &[
        Entry {
            name: "fifo",
            summary: "the oldest job first; keeps maxima, ignores minima",
            source: "flex, section 4; woha, section V-B",
            guarantee: "none",
            capabilities: BLIND,
            params: &[BY],
            planner: Planner { make: Some(plan::fifo), ..FLUID },
            build: |_, choices| Box::new(Fifo::new(by(choices[0]))),
        },
        Entry {
            name: "fair",
            summary: "equal shares by the water-line of Hadoop's Fair Scheduler; keeps minima and maxima",
            source: "flex, section 1; woha, section V-B",
            guarantee: "none on cost; minima",
            capabilities: Capabilities { minima: true, ..BLIND },
            params: &[BY],
            planner: Planner { make: Some(plan::fair), ..FLUID },
            build: |_, choices| Box::new(Fair::new(by(choices[0]))),
        },
        Entry {
            name: "edf",
            summary: "the flow with the earliest deadline first; flows without one come last",
            source: "woha, section V-B",
            guarantee: "none",
            capabilities: BLIND,
            params: &[],
            planner: Planner { make: Some(plan::edf), ..FLUID },
            build: |_, _| Box::new(Edf::new()),
        },
        Entry {
            name: "flex",
            summary: "slots by the malleable packing of the best order for the objective; keeps minima and maxima",
            source: "flex, sections 2 and 3",
            guarantee: "plan: optimal maxima, a bound for sums; online: none",
            capabilities: Capabilities {
                flows: "online: every ready job is one of its jobs; plan: one-job flows",
                typed: "one instance per kind",
                speeds: "online only, blind",
                minima: true,
                ..BLIND
            },
            params: &[EPOCH, HAND, JOBS],
            planner: Planner { one_job: true, make: Some(plan::flex), ..FLUID },
            build: |_, choices| {
                let hand = if choices[1] == 0 { Hand::Targets } else { Hand::Minima };
                Box::new(Flex::new(Span::from_seconds_nearest(choices.number(0)), hand))
            },
        },
        Entry {
            name: "flowflex",
            summary: "flows in the cheapest order for the objective, planned anew each epoch; keeps maxima, ignores minima",
            source: "flowflex, sections 4 and 5.2",
            guarantee: "plan: theorems of the paper, a bound; online: none",
            capabilities: Capabilities {
                typed: "online: orders from the sum, slots per kind, no guarantee",
                speeds: "online only, blind",
                ..BLIND
            },
            params: &[FLOW_EPOCH],
            planner: Planner { universal: true, make: Some(plan::flowflex), ..FLUID },
            build: |_, choices| Box::new(FlowFlex::new(Span::from_seconds_nearest(choices.number(0)))),
        },
        Entry {
            name: "woha-hlf",
            summary: "the flow that lags most behind its plan for the deadline first; within it, highest level first",
            source: "woha, sections IV and V-C",
            guarantee: "none; says at arrival if the deadline cannot be met",
            capabilities: WOHA,
            params: woha::PARAMS,
            planner: REQUIREMENTS,
            build: |_, choices| Box::new(woha::build("woha-hlf", JobOrder::HighestLevel, choices)),
        },
        Entry {
            name: "woha-lpf",
            summary: "the flow that lags most behind its plan for the deadline first; within it, longest path first",
            source: "woha, sections IV and V-C",
            guarantee: "none; says at arrival if the deadline cannot be met",
            capabilities: WOHA,
            params: woha::PARAMS,
            planner: REQUIREMENTS,
            build: |_, choices| Box::new(woha::build("woha-lpf", JobOrder::LongestPath, choices)),
        },
        Entry {
            name: "woha-mpf",
            summary: "the flow that lags most behind its plan for the deadline first; within it, most dependents first",
            source: "woha, sections IV and V-C",
            guarantee: "none; says at arrival if the deadline cannot be met",
            capabilities: WOHA,
            params: woha::PARAMS,
            planner: REQUIREMENTS,
            build: |_, choices| Box::new(woha::build("woha-mpf", JobOrder::MaximumParallelism, choices)),
        },
        Entry {
            name: "dmrs",
            summary: "weighted completion on machines of different speed: list scheduling in the order of a linear program",
            source: "dmrs, sections III to V",
            guarantee: "in plans: Theorem 1 of the paper; online: none",
            capabilities: dmrs::CAPABILITIES,
            params: dmrs::PARAMS,
            planner: Planner {
                make: Some(|instance, policy, _| plan::dmrs(Variant::Full, instance, policy)),
                ..TASKS
            },
            build: |instance, choices| Box::new(dmrs::build(Variant::Full, instance, choices)),
        },
        Entry {
            name: "dmrs-identical",
            summary: "dmrs as if all machines had the mean speed",
            source: "dmrs, section VI",
            guarantee: "none",
            capabilities: Capabilities { speeds: "yes, blind", ..dmrs::CAPABILITIES },
            params: dmrs::IDENTICAL_PARAMS,
            planner: Planner {
                make: Some(|instance, policy, _| plan::dmrs(Variant::Identical, instance, policy)),
                ..TASKS
            },
            build: |instance, choices| Box::new(dmrs::build(Variant::Identical, instance, choices)),
        },
        Entry {
            name: "dmrs-map-only",
            summary: "dmrs for maps alone; reduces go to the first free slot",
            source: "dmrs, section VI",
            guarantee: "none",
            capabilities: dmrs::CAPABILITIES,
            params: dmrs::MAP_ONLY_PARAMS,
            planner: Planner {
                make: Some(|instance, policy, _| plan::dmrs(Variant::MapOnly, instance, policy)),
                ..TASKS
            },
            build: |instance, choices| Box::new(dmrs::build(Variant::MapOnly, instance, choices)),
        },
        Entry {
            name: "mk-jr",
            summary: "jobs by Johnson's rule, for the makespan on typed slots; keeps maxima, ignores minima",
            source: "ordering, section 5.1, Algorithm 1",
            guarantee: "all released at 0, times=area: makespan within 1 + (longest map + 2 longest reduces) / bound",
            capabilities: ORDERING,
            params: MK_JR,
            planner: Planner {
                make: Some(|instance, policy, _| {
                    let candidates = candidates(MK_JR[0].values[policy.choices()[0]]);
                    plan::ordering((Rule::MkJr, candidates), instance, policy)
                }),
                ..TASKS
            },
            build: |_, choices| {
                let candidates = candidates(MK_JR[0].values[choices[0]]);
                Box::new(Ordering::new(Rule::MkJr, candidates))
            },
        },
        Entry {
            name: "mk-tct-jr",
            summary: "small jobs before large ones, each by Johnson's rule; keeps maxima, ignores minima",
            source: "ordering, section 5.2, Algorithm 2",
            guarantee: "none",
            capabilities: ORDERING,
            params: MK_TCT_JR,
            planner: Planner {
                make: Some(|instance, policy, _| {
                    let candidates = candidates(MK_TCT_JR[0].values[policy.choices()[0]]);
                    plan::ordering((Rule::MkTctJr, candidates), instance, policy)
                }),
                ..TASKS
            },
            build: |_, choices| {
                let candidates = candidates(MK_TCT_JR[0].values[choices[0]]);
                Box::new(Ordering::new(Rule::MkTctJr, candidates))
            },
        },
    ];
    ENTRIES
}

/// A policy with its parameters, as chosen by name.
#[derive(Clone)]
pub struct Chosen {
    entry: &'static Entry,
    choices: Choices,
    spec: String,
}

/// Why a policy cannot be chosen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// No such policy.
    #[error("found policy {found:?}, expected one of {}", .known.join(", "))]
    Unknown {
        /// What was asked for.
        found: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A parameter the policy does not have.
    #[error("policy {policy}: found parameter {found:?}, expected {}", list(.known, "no parameter"))]
    Parameter {
        /// The policy.
        policy: &'static str,
        /// What was found.
        found: String,
        /// The parameters there are.
        known: Vec<&'static str>,
    },
    /// A value the parameter cannot have.
    #[error("policy {policy}: found {name}={found}, expected {name}={known}")]
    Value {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was found.
        found: String,
        /// The valid values.
        known: String,
    },
}

fn list(names: &[&str], none: &str) -> String {
    if names.is_empty() { none.to_owned() } else { format!("one of {}", names.join(", ")) }
}

impl Chosen {
    /// Reads `name` or `name:parameter=value:…`.
    ///
    /// # Errors
    /// Unknown names, parameters and values, each with the valid ones.
    pub fn parse(spec: &str) -> Result<Self, ChooseError> {
        let mut parts = spec.split(':');
        let name = parts.next().unwrap_or_default();
        let entry = policies().iter().find(|e| e.name == name).ok_or_else(|| ChooseError::Unknown {
            found: name.to_owned(),
            known: policies().iter().map(|e| e.name).collect(),
        })?;
        let mut choices = Choices::of(entry.params);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let at =
                entry.params.iter().position(|p| p.name == name).ok_or_else(|| ChooseError::Parameter {
                    policy: entry.name,
                    found: name.to_owned(),
                    known: entry.params.iter().map(|p| p.name).collect(),
                })?;
            let param = &entry.params[at];
            let choice = param.read(value).ok_or_else(|| ChooseError::Value {
                policy: entry.name,
                name: param.name,
                found: value.to_owned(),
                known: param.expected(),
            })?;
            (choices.at[at], choices.numbers[at]) = (choice.at, choice.number);
        }
        Ok(Self { entry, choices, spec: spec.to_owned() })
    }

    /// The registry's entry.
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// What was asked for, parameters included.
    pub fn spec(&self) -> &str {
        &self.spec
    }

    /// Index of the chosen value of each parameter.
    pub(crate) fn choices(&self) -> &[usize] {
        &self.choices
    }

    /// The parameters as settings of its entry in the table of `algo`, whose parameters are the same.
    pub(crate) fn settings(&self, entry: &slackline_algo::registry::PolicyEntry) -> Settings {
        let pairs = self.spec.split(':').skip(1).map(|part| part.split_once('=').unwrap_or((part, "")));
        Settings::parse(entry.params, pairs).expect("invariant: settings were checked")
    }

    /// How it plans.
    pub(crate) fn planner(&self) -> Planner {
        self.entry.planner
    }

    /// What `plan` gives.
    pub fn plan_form(&self) -> Form {
        self.planner().form
    }

    /// A fresh policy for one run.
    pub fn build(&self, instance: &Instance) -> Box<dyn Policy + Send> {
        (self.entry.build)(instance, &self.choices)
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chosen({})", self.spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        Chosen::parse(spec).unwrap_err().to_string()
    }

    #[test]
    fn names_and_parameters_are_checked() {
        assert_eq!(Chosen::parse("fifo:by=flow").unwrap().choices(), [1]);
        assert_eq!(Chosen::parse("fair").unwrap().choices(), [0]);
        assert!(error("fiffo").starts_with(r#"found policy "fiffo", expected one of fifo, fair, edf"#));
        assert_eq!(error("fifo:bye=flow"), r#"policy fifo: found parameter "bye", expected one of by"#);
        assert_eq!(error("edf:by=flow"), r#"policy edf: found parameter "by", expected no parameter"#);
        let flex = Chosen::parse("flex:hand=minima:epoch=12.5").unwrap();
        assert_eq!((flex.choices(), flex.choices.number(0)), ([0, 1, 0].as_slice(), 12.5));
        assert_eq!(Chosen::parse("flex").unwrap().choices.number(0), 0.5);
        for epoch in ["-1", "1e9", "NaN", "soon", ""] {
            let expected = format!("policy flex: found epoch={epoch}, expected epoch=0..86400");
            assert_eq!(error(&format!("flex:epoch={epoch}")), expected);
        }
        assert_eq!(error("fifo:by=user"), "policy fifo: found by=user, expected by=job|flow");
    }
}
