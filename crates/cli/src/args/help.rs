//! Arranges the help texts: `-h` fits a screen, and options that belong to one format or generator are shown
//! with its name.
//!
//! It depends on the arguments beside `-h` or `--help`, which is looked for before the command line is read.

use std::ffi::OsString;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use slackline::report::table::wrapped;
use slackline_trace::Importers;
use slackline_trace::generate::{Generator, generators};

use crate::args::declared::Table;

/// Columns that lists are wrapped to.
pub(crate) const COLUMNS: usize = 80;

/// Characters of an option with its values in its name, such as `--combine <sum|max>`: a longer one would
/// take the place of its description.
const NAME_MAX: usize = 24;

/// The command line as help is to show it.
pub(crate) fn shown(command: Command, arguments: &[OsString], importers: &Importers) -> Command {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let command = match words.get(1).copied() {
        Some("import") => command.mut_subcommand("import", |verb| with_format(verb, &words, importers)),
        Some("generate") => command.mut_subcommand("generate", |verb| with_generator(verb, &words)),
        _ => command,
    };
    if words.contains(&"-h") {
        command.mut_subcommands(summary)
    } else if words.contains(&"--help") {
        whole(command)
    } else {
        command
    }
}

/// A verb without lists of values, and without options of a mode that is not the usual one.
fn summary(verb: Command) -> Command {
    let is_capacity = verb.get_name() == "capacity";
    verb.mut_subcommands(summary).mut_args(|arg: Arg| {
        if !arg.get_action().takes_values() {
            return arg;
        }
        let is_of_simulation =
            is_capacity && matches!(arg.get_help_heading(), Some("Simulation" | "Objective"));
        let hides = arg.is_hide_short_help_set() || is_of_simulation;
        let values = arg.get_possible_values();
        let values = values.iter().map(PossibleValue::get_name).collect::<Vec<_>>().join("|");
        let flag = arg.get_long().filter(|_| !values.is_empty() && !arg.is_hide_possible_values_set());
        let names_them = flag.is_some_and(|flag| "-- <>".len() + flag.len() + values.len() <= NAME_MAX);
        let arg = arg.hide_possible_values(true).hide_short_help(hides);
        if names_them { arg.value_name(values) } else { arg }
    })
}

/// A command with every option and its whole description, side by side as in the summary: clap's own long
/// help takes three lines for each option.
fn whole(command: Command) -> Command {
    let after = command.get_after_long_help().or(command.get_after_help()).cloned().unwrap_or_default();
    let command = command.mut_subcommands(whole).mut_args(|arg: Arg| {
        let description = arg
            .get_long_help()
            .map(|description| description.to_string().trim_end_matches('.').replace("\n\n", ". "));
        let arg = arg.hide_short_help(false);
        if let Some(description) = description { arg.help(description) } else { arg }
    });
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let help = help.help("Print help; -h is a summary").help_heading(None::<&str>);
    command.disable_help_flag(true).arg(help).after_help(after)
}

/// `import` with the options of the format that is named, if one is.
fn with_format(verb: Command, words: &[&str], importers: &Importers) -> Command {
    let named = words.windows(2).find_map(|pair| (pair[0] == "--from").then_some(pair[1]));
    let named = named.or_else(|| words.iter().find_map(|word| word.strip_prefix("--from=")));
    let Some(importer) = named.and_then(|name| importers.get(name)) else { return verb };
    with_options(verb, |name| importer.params.iter().any(|param| param.name == name))
}

/// `import` with the options of every format.
pub(crate) fn with_all_formats(verb: Command) -> Command {
    with_options(verb, |_| true)
}

/// A verb that shows these options of formats.
fn with_options(verb: Command, shows: impl Fn(&str) -> bool) -> Command {
    verb.mut_args(|arg: Arg| {
        let is_option = arg.get_help_heading() == Some(Table::Importers.heading());
        if is_option && arg.get_long().is_some_and(&shows) { arg.hide(false) } else { arg }
    })
}

/// `generate` with the parameters of the generator that is named, if one is.
fn with_generator(verb: Command, words: &[&str]) -> Command {
    let named = |one: &&Generator| words.contains(&one.name);
    match generators().iter().find(named) {
        Some(one) => verb
            .about(format!("Generate a synthetic workload with {}: {}", one.name, one.summary))
            .after_help(format!("Parameters of {} (--set):\n{}", one.name, generator_parameters(one))),
        None => verb,
    }
}

/// The parameters of a generator, one per line.
pub(crate) fn generator_parameters(generator: &Generator) -> String {
    let parameter = |param: &slackline_model::params::Param| {
        (format!("{}={}", param.name, param.default), format!("{} ({})", param.help, param.expected()))
    };
    wrapped(&generator.params.iter().map(parameter).collect::<Vec<_>>(), COLUMNS)
}
