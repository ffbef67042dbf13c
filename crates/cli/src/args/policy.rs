//! Policies on the command line: read by a registry, whose names help texts and completions list.

use std::any::TypeId;

use clap::builder::PossibleValue;
use clap::{Arg, Command};
use slackline::registry::ALL;
use slackline::{PolicySpec, Registry};

use super::listed::Listed;

/// Policies under one name: one, or all of a registry.
#[derive(Clone, Debug)]
pub(crate) struct Several(pub(crate) Vec<PolicySpec>);

/// What the definitions of arguments begin with; [`with_policies`] puts the program's registry in its place.
pub(crate) fn standard() -> Listed<PolicySpec> {
    one(Registry::standard())
}

/// The same of an argument that takes several.
pub(crate) fn several_of_standard() -> Listed<Several> {
    several(Registry::standard())
}

fn names(registry: &Registry) -> Vec<PossibleValue> {
    registry.iter().map(|entry| PossibleValue::new(entry.name).help(entry.summary)).collect()
}

fn one(registry: Registry) -> Listed<PolicySpec> {
    Listed::new(names(&registry), move |text| registry.parse(text))
}

fn several(registry: Registry) -> Listed<Several> {
    let all = PossibleValue::new(ALL).help("every policy, each with its defaults");
    let names: Vec<_> = std::iter::once(all).chain(names(&registry)).collect();
    Listed::new(names, move |text| registry.parse_several(text).map(Several))
}

/// A verb with every argument that is a policy read by this registry.
pub(crate) fn with_policies(verb: Command, registry: &Registry) -> Command {
    verb.mut_args(|arg: Arg| {
        let values = arg.get_value_parser().type_id();
        if values == TypeId::of::<PolicySpec>() {
            arg.value_parser(one(registry.clone()))
        } else if values == TypeId::of::<Several>() {
            arg.value_parser(several(registry.clone()))
        } else {
            arg
        }
    })
}
