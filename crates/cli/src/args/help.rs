//! Arranges the help texts: `-h` fits a screen, and options that belong to one format, engine or generator are shown
//! with its name.
//!
//! It depends on the arguments beside `-h` or `--help`, which is looked for before the command line is read.

use std::ffi::OsString;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use slackline::report::table::wrapped;
use slackline_executor::engine::backend::ADDRESS;
use slackline_model::params::Param;
use slackline_trace::generate::{Generator, generators};
use slackline_trace::importers::importer::SEED;

use crate::tables::Tables;

/// Columns that lists are wrapped to.
pub(crate) const COLUMNS: usize = 80;

/// Characters of an option with its values in its name, such as `--combine <sum|max>`: a longer one would
/// take the place of its description.
const NAME_MAX: usize = 24;

/// The command line as help is to show it.
pub(crate) fn shown(command: Command, arguments: &[OsString], tables: &Tables) -> Command {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let command = match words.get(1).copied() {
        Some("import") => command.mut_subcommand("import", |verb| {
            let format = named("--from", &words).and_then(|name| tables.importers.get(name));
            with_options(verb, "--from", format.map(|format| (format.name, format.params)))
        }),
        Some(name @ ("run" | "serve")) => command.mut_subcommand(name, |verb| {
            let engine = named("--engine", &words);
            let engine = tables.engines.all().iter().find(|entry| Some(entry.name) == engine);
            with_options(verb, "--engine", engine.map(|entry| (entry.name, entry.params)))
        }),
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

/// The name at the beginning of the value of an option of the command line.
fn named<'a>(option: &str, words: &[&'a str]) -> Option<&'a str> {
    let apart = words.windows(2).find_map(|pair| (pair[0] == option).then_some(pair[1]));
    let value =
        apart.or_else(|| words.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('=')))?;
    Some(value.split_once(':').map_or(value, |(name, _)| name))
}

/// `import` with the options of every format, `run` and `serve` with those of every engine.
pub(crate) fn with_all_options(verb: Command, tables: &Tables) -> Command {
    match verb.get_name() {
        "import" => {
            let formats = tables.importers.all().iter().map(|format| (format.name, format.params));
            with_options(verb, "--from", formats)
        }
        "run" | "serve" => {
            let engines = tables.engines.all().iter().map(|entry| (entry.name, entry.params));
            with_options(verb, "--engine", engines)
        }
        _ => verb,
    }
}

/// A verb whose description begins with the options of these formats or engines.
fn with_options<'a>(
    verb: Command,
    option: &str,
    named: impl IntoIterator<Item = (&'a str, &'a [Param])>,
) -> Command {
    let of_one = |(name, params): (&str, &[Param])| {
        // The address follows `NAME://`, and the seed is a flag of the whole program.
        let options = params.iter().filter(|param| ![ADDRESS, SEED.name].contains(&param.name));
        let options = options.collect::<Vec<_>>();
        if options.is_empty() {
            return String::new();
        }
        format!("Options of {name} ({option} {name}:NAME=VALUE,...):\n{}\n", parameters(options))
    };
    let options: String = named.into_iter().map(of_one).collect();
    let after = verb.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    if options.is_empty() { verb } else { verb.after_long_help(format!("{options}{after}")) }
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
    parameters(generator.params)
}

/// Parameters, one per line.
fn parameters<'a>(params: impl IntoIterator<Item = &'a Param>) -> String {
    let parameter = |param: &Param| {
        (format!("{}={}", param.name, param.default), format!("{} ({})", param.help, param.expected()))
    };
    wrapped(&params.into_iter().map(parameter).collect::<Vec<_>>(), COLUMNS)
}
