//! Flags of parameters that a table declares: one for each, with the help, default and values of its
//! declaration.

use std::any::TypeId;

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Command};
use slackline::run::SWITCH;
use slackline_model::params::{Param, Settings, Values};

use super::listed::NamedValue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Engines,
    /// A cluster whose jobs others submit.
    Attach,
}

impl Table {
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Engines => "Engine",
            Self::Attach => "Cluster",
        }
    }
}

/// A declaration: who declares the parameter, with which others.
#[derive(Clone, Copy)]
pub(crate) struct DeclaredParam {
    pub(crate) owner: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) param: &'static Param,
}

/// The value of a parameter that was given as a flag.
#[derive(Clone, Debug, PartialEq)]
struct GivenValue {
    table: Table,
    name: &'static str,
    text: String,
}

/// The parameters of a table that were given, by their names.
pub(crate) fn given(matches: &ArgMatches, table: Table) -> Vec<(String, String)> {
    let values = matches.ids().filter_map(|id| matches.try_get_one::<GivenValue>(id.as_str()).ok().flatten());
    let own = values.filter(|given| given.table == table);
    own.map(|given| (given.name.to_owned(), given.text.clone())).collect()
}

/// Whether a verb has an argument whose values are of this type.
pub(crate) fn takes<T: 'static>(verb: &Command) -> bool {
    verb.get_arguments().any(|arg| arg.get_value_parser().type_id() == TypeId::of::<T>())
}

/// The verb with a flag for each parameter. A name that is a flag of the verb already stays that flag.
pub(crate) fn with_flags(
    mut verb: Command,
    table: Table,
    declared: impl IntoIterator<Item = DeclaredParam>,
) -> Command {
    for declared in declared {
        let is_free = verb.get_arguments().all(|arg| arg.get_long() != Some(declared.param.name));
        if is_free {
            verb = verb.arg(flag(table, declared));
        }
    }
    verb
}

fn flag(table: Table, declared: DeclaredParam) -> Arg {
    let DeclaredParam { owner, param, .. } = declared;
    let form = match param.values {
        Values::Text(form) => format!(" ({form})"),
        _ => String::new(),
    };
    let is_listed = |word: &str| matches!(param.values, Values::Choice(_)) || param.help.contains(word);
    let word = param.word.filter(|word| !is_listed(word));
    let word = word.map_or_else(String::new, |word| format!(", or {word}"));
    let default = Some(param.default).filter(|default| !default.is_empty());
    let default = default.map_or_else(String::new, |default| format!(" [default: {default}]"));
    let arg = Arg::new(param.name)
        .long(param.name)
        .value_name(value_name(param))
        .value_parser(parser(table, declared))
        .help(format!("{owner}: {}{form}{word}{default}", param.help))
        .help_heading(table.heading())
        // Options that are off by default.
        .hide_short_help(param.values == SWITCH || param.word == Some("none"));
    if param.values == SWITCH {
        arg.num_args(0..=1).require_equals(true).default_missing_value("on")
    } else {
        arg
    }
}

fn value_name(param: &Param) -> &'static str {
    match param.values {
        Values::Bytes => "BYTES",
        Values::Seconds(..) | Values::SecondsRange(..) => "DURATION",
        Values::Choice(_) => "WORD",
        Values::Text(_) => "TEXT",
        Values::Path(form) => form,
        _ => "N",
    }
}

fn parser(table: Table, declared: DeclaredParam) -> ValueParser {
    let DeclaredParam { params, param, .. } = declared;
    let given = move |text: String| GivenValue { table, name: param.name, text };
    let read =
        move |text: &str| Settings::parse(params, [(param.name, text)]).map(|_| given(text.to_owned()));
    match param.values {
        Values::Choice(_) => NamedValue::new(param.words(), read).into(),
        _ => ValueParser::new(read),
    }
}
