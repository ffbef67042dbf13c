//! Policies on the command line: read by a registry, whose names help texts and completions list.

use std::any::TypeId;

use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Arg, Args, Command};
use slackline::registry::ALL;
use slackline::{PolicySpec, Registry};

use super::listed::NamedValue;
use super::value;

/// The policy of `run`, `hadoop attach` and `simulate` unless another is asked for.
pub(crate) const DEFAULT_POLICY: &str = slackline::algo::auto::ENTRY.name;

/// Policies with commas between them; a name may stand for all of a registry.
#[derive(Clone, Debug)]
pub(crate) struct PolicyList(pub(crate) Vec<PolicySpec>);

/// The name of a policy of which something is to be said, its parameters, if any were given, being right.
#[derive(Clone, Debug)]
pub(crate) struct PolicyName(pub(crate) &'static str);

/// How long policies may take that are programs of their own.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyTimeout {
    /// Time limit for each answer of a command: policy [default: 30s]
    ///
    /// If the program does not answer in time, slackline ends with an error.
    #[arg(long, hide_short_help = true, value_name = "DURATION", value_parser = value::seconds_above_zero, help_heading = "Policy")]
    policy_timeout: Option<f64>,
}

impl PolicyTimeout {
    pub(crate) fn of(&self, policy: PolicySpec) -> PolicySpec {
        match self.policy_timeout {
            Some(seconds) => policy.with_timeout(Duration::from_secs_f64(seconds)),
            None => policy,
        }
    }
}

/// What the definitions of arguments begin with; [`with_policies`] puts the program's registry in its place.
pub(crate) fn standard() -> NamedValue<PolicySpec> {
    one(Registry::standard())
}

/// The same of an argument that takes several.
pub(crate) fn several_of_standard() -> NamedValue<PolicyList> {
    several(Registry::standard())
}

/// The same of an argument that asks what there is to say of one.
pub(crate) fn described_of_standard() -> NamedValue<PolicyName> {
    described(Registry::standard())
}

fn names(registry: &Registry) -> Vec<PossibleValue> {
    registry.described().map(|entry| PossibleValue::new(entry.name).help(entry.summary)).collect()
}

fn one(registry: Registry) -> NamedValue<PolicySpec> {
    NamedValue::new(names(&registry), move |text| registry.parse(text))
}

fn several(registry: Registry) -> NamedValue<PolicyList> {
    let all = PossibleValue::new(ALL).help(
        "the baselines and the policies of the papers, each with its defaults; not rule, auto and Hadoop's schedulers",
    );
    let names: Vec<_> = std::iter::once(all).chain(names(&registry)).collect();
    NamedValue::new(names, move |text| registry.parse_several(text).map(PolicyList))
}

fn described(registry: Registry) -> NamedValue<PolicyName> {
    NamedValue::new(names(&registry), move |text| {
        let named = registry.described().find(|entry| entry.name == text);
        named.map_or_else(
            || registry.parse(text).map(|policy| PolicyName(policy.name())),
            |entry| Ok(PolicyName(entry.name)),
        )
    })
}

/// A verb with every argument that is a policy read by this registry.
pub(crate) fn with_policies(verb: Command, registry: &Registry) -> Command {
    verb.mut_args(|arg: Arg| {
        let values = arg.get_value_parser().type_id();
        if values == TypeId::of::<PolicySpec>() {
            arg.value_parser(one(registry.clone()))
        } else if values == TypeId::of::<PolicyList>() {
            arg.value_parser(several(registry.clone()))
        } else if values == TypeId::of::<PolicyName>() {
            arg.value_parser(described(registry.clone()))
        } else {
            arg
        }
    })
}
