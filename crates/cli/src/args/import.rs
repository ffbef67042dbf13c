//! The flags of importers: one for each parameter that an importer of the table declares, with the help, default
//! and values of its declaration.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use slackline_model::params::{Param, Values};
use slackline_trace::{ImportOptions, Importer, Importers};

use super::value;

const HEADING: &str = "Import";

/// How a file is to be imported, as far as flags say so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ImportFlags {
    /// The format.
    pub(crate) from: Option<String>,
    /// The parameters of importers that were given, by their names, in the order of the table. Of a file, its
    /// text.
    pub(crate) given: Vec<(String, String)>,
}

/// The formats of this program.
pub(crate) fn importers() -> Importers {
    Importers::default()
}

/// Whether a parameter has a flag of its own: the seed is that of the whole program.
fn is_flag(param: &Param) -> bool {
    param.name != slackline_trace::importer::SEED.name
}

fn flag(importer: &Importer, param: &'static Param) -> Arg {
    let default =
        if param.default.is_empty() { String::new() } else { format!(" [default: {}]", param.default) };
    Arg::new(param.name)
        .long(param.name)
        .value_name(value_name(param))
        .value_parser(parser(param))
        .help(format!("{}: {}{default}", importer.name, param.help))
        .help_heading(HEADING)
}

fn value_name(param: &Param) -> &'static str {
    match param.values {
        Values::Bytes => "BYTES",
        Values::Choice(_) => "WORD",
        Values::Text(_) => "TEXT",
        Values::TextOfFile => "FILE",
        _ => "N",
    }
}

fn parser(param: &'static Param) -> ValueParser {
    let name = param.name;
    match param.values {
        Values::Choice(_) => PossibleValuesParser::new(param.words()).into(),
        Values::TextOfFile => ValueParser::new(value::text_of),
        _ => ValueParser::new(move |text: &str| {
            let mut options = ImportOptions::new(importers());
            options.set(name, text).map(|()| text.to_owned())
        }),
    }
}

impl Args for ImportFlags {
    fn augment_args(command: Command) -> Command {
        let importers = importers();
        let from = Arg::new("from")
            .long("from")
            .value_name("FORMAT")
            .value_parser(PossibleValuesParser::new(importers.names()))
            .help("Format of the workload [default: guessed from the name and the content]")
            .help_heading(HEADING);
        let params = importers.params().filter(|(_, param)| is_flag(param));
        command.arg(from).args(params.map(|(importer, param)| flag(importer, param)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ImportFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let importers = importers();
        let params = importers.params().filter(|(_, param)| is_flag(param));
        let given = params.filter_map(|(_, param)| Some((param.name.to_owned(), text(param.name)?)));
        Ok(Self { from: text("from"), given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<ImportFlags, clap::Error> {
        let command = ImportFlags::augment_args(Command::new("slackline").no_binary_name(true));
        ImportFlags::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn flags_follow_from_the_table() {
        let flags = parse(&["--durations=rate", "--split", "64MiB", "--from=swim"]).unwrap();
        assert_eq!(flags.from.as_deref(), Some("swim"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(flags.given, [pair("split", "64MiB"), pair("durations", "rate")]);
        let error = |argument: &str| parse(&[argument]).unwrap_err().to_string();
        assert!(error("--split=5 miles").contains("expected a size such as 128MiB"));
        assert!(error("--durations=short").contains("[possible values: lognormal, rate]"));
        assert!(error("--properties=/nowhere/at.all").contains("cannot be read"));
        assert!(error("--seed=1").contains("--seed"), "the seed is a flag of the whole program");
    }
}
