//! The flags of importers: the format, and one for each parameter that an importer of the table declares.

use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use slackline_trace::{Importer, Importers, unknown_format};

use super::declared::{self, DeclaredParam, Table};
use super::listed::NamedValue;

/// How a file is to be imported, as far as flags say so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ImportFlags {
    pub(crate) from: Option<String>,
    /// The parameters of importers that were given, by their names.
    pub(crate) given: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
struct FormatName(String);

fn format_of(importers: &Importers) -> NamedValue<FormatName> {
    let name = |importer: &Importer| {
        let name = PossibleValue::new(importer.name).help(importer.summary);
        (name, FormatName(importer.name.to_owned()))
    };
    let table: Vec<(PossibleValue, FormatName)> = importers.all().iter().map(name).collect();
    let names: Vec<PossibleValue> = table.iter().map(|(name, _)| name.clone()).collect();
    NamedValue::new(names, move |text| {
        let found = table.iter().find(|(_, format)| format.0 == text).map(|(_, format)| format.clone());
        found.ok_or_else(|| {
            let known: Vec<&str> = table.iter().map(|(name, _)| name.get_name()).collect();
            unknown_format(text, &known)
        })
    })
}

/// A verb that imports, with the formats of this table and the flags of their importers.
pub(crate) fn with_importers(verb: Command, importers: &Importers) -> Command {
    if !declared::takes::<FormatName>(&verb) {
        return verb;
    }
    let declared = importers.params().map(|(importer, param)| DeclaredParam {
        owner: importer.name,
        params: importer.params,
        param,
    });
    let verb = verb.mut_arg("from", |from| from.value_parser(format_of(importers)));
    declared::with_flags(verb, Table::Importers, declared)
}

impl Args for ImportFlags {
    /// The flags of importers come from [`with_importers`].
    fn augment_args(command: Command) -> Command {
        let from = Arg::new("from")
            .long("from")
            .value_name("FORMAT")
            .value_parser(format_of(&Importers::default()))
            .help("Format of the workload [default: guessed]")
            .long_help(
                "Format of the workload [default: guessed from the name and the content]\n\n\
                 What an importer assumes where a file is silent is set by options of its format, which every verb \
                 takes and `slackline import --from FORMAT --help` lists.",
            )
            .help_heading("Workload");
        command.arg(from)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ImportFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let from = matches.get_one::<FormatName>("from").map(|name| name.0.clone());
        Ok(Self { from, given: declared::given(matches, Table::Importers) })
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
        let seed = Arg::new("seed").long("seed");
        let command = ImportFlags::augment_args(Command::new("slackline").no_binary_name(true)).arg(seed);
        let command = with_importers(command, &Importers::default());
        ImportFlags::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn flags_follow_from_the_table() {
        let flags = parse(&["--durations=rate", "--split", "64MiB", "--from=swim"]).unwrap();
        assert_eq!(flags.from.as_deref(), Some("swim"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(flags.given, [pair("durations", "rate"), pair("split", "64MiB")]);
        let error = |argument: &str| parse(&[argument]).unwrap_err().to_string();
        assert!(error("--split=5 miles").contains("expected a size such as 128MiB"));
        assert!(error("--durations=short").contains("expected one of lognormal, rate"));
        assert!(error("--properties=/nowhere/at.all").contains("cannot be read"));
        // The seed is a flag of the whole program.
        assert!(parse(&["--seed=1"]).unwrap().given.is_empty());
    }
}
