//! Policies on the command line: read by a registry, whose names help texts and completions list.

use std::any::TypeId;
use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use slackline::{PolicySpec, Registry};

/// Reads a [`PolicySpec`].
#[derive(Clone)]
pub(crate) struct PolicyParser(Registry);

impl TypedValueParser for PolicyParser {
    type Value = PolicySpec;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<PolicySpec, clap::Error> {
        let registry = self.0.clone();
        TypedValueParser::parse_ref(&move |text: &str| registry.parse(text), command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.names().map(PossibleValue::new)))
    }
}

/// What the definitions of arguments begin with; [`with_policies`] puts the program's registry in its place.
pub(crate) fn standard() -> PolicyParser {
    PolicyParser(Registry::standard())
}

/// A verb with every argument that is a policy read by this registry.
pub(crate) fn with_policies(verb: Command, registry: &Registry) -> Command {
    let parser = PolicyParser(registry.clone());
    let argument = move |arg: Arg| {
        if arg.get_value_parser().type_id() == TypeId::of::<PolicySpec>() {
            arg.value_parser(parser.clone())
        } else {
            arg
        }
    };
    verb.mut_args(argument)
}
