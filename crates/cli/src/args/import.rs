//! The flag of importers: the format with its options.

use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use slackline_model::params::{Settings, Values, pairs};
use slackline_trace::importers::importer::SEED;
use slackline_trace::{Importer, Importers, unknown_format};

use super::listed::NamedValue;
use super::{declared, value};

/// How a file is to be imported, as far as flags say so.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ImportFlags {
    pub(crate) from: Option<String>,
    /// The parameters of importers that were given, by their names.
    pub(crate) given: Vec<(String, String)>,
}

/// A format with its options, as in `swf:slot-cores=4`.
fn format_of(importers: Importers) -> NamedValue<ImportFlags> {
    let name = |importer: &Importer| PossibleValue::new(importer.name).help(importer.summary);
    let names: Vec<PossibleValue> = importers.all().iter().map(name).collect();
    NamedValue::new(names, move |text| {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let Some(importer) = importers.get(name) else {
            return Err(unknown_format(name, &importers.names().collect::<Vec<_>>()));
        };
        let given = options_of(importer, options).map_err(|problem| format!("format {name}: {problem}"))?;
        Ok(ImportFlags { from: Some(name.to_owned()), given })
    })
}

/// The options of an importer. Of a file, its text.
fn options_of(importer: &Importer, text: &str) -> Result<Vec<(String, String)>, String> {
    let params = importer.params;
    let read = |(name, value): (&str, &str)| {
        if name == SEED.name {
            return Err(format!("found parameter {name:?}, expected the option --seed"));
        }
        let is_file = params.iter().any(|param| param.name == name && param.values == Values::TextOfFile);
        let value = if is_file { value::text_of(value)? } else { value.to_owned() };
        Ok((name.to_owned(), value))
    };
    let given = pairs(params, text).into_iter().map(read).collect::<Result<Vec<_>, String>>()?;
    let set = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    Settings::parse(params, set).map_err(|problem| problem.to_string())?;
    Ok(given)
}

/// A verb that imports, with the formats of this table.
pub(crate) fn with_importers(verb: Command, importers: &Importers) -> Command {
    if !declared::takes::<ImportFlags>(&verb) {
        return verb;
    }
    verb.mut_arg("from", |from| from.value_parser(format_of(importers.clone())))
}

impl Args for ImportFlags {
    fn augment_args(command: Command) -> Command {
        let from = Arg::new("from")
            .long("from")
            .value_name("FORMAT")
            .value_parser(format_of(Importers::default()))
            .help("Format of the workload [default: guessed]")
            .long_help(
                "Format of the workload, with options as in swf:slot-cores=4 [default: guessed from the name and the \
                 content]\n\n`slackline import --from FORMAT --help` lists the options of a format, for values that \
                 its files do not have.",
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
        Ok(matches.get_one::<Self>("from").cloned().unwrap_or_default())
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
        let command = with_importers(command, &Importers::default());
        ImportFlags::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn options_follow_the_format() {
        let flags = parse(&["--from=swim:durations=rate,split=64MiB"]).unwrap();
        assert_eq!(flags.from.as_deref(), Some("swim"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(flags.given, [pair("durations", "rate"), pair("split", "64MiB")]);
        let cases = parse(&["--from=oozie:cases=first=a,second=b"]).unwrap().given;
        assert_eq!(cases, [pair("cases", "first=a,second=b")]);
        let error = |argument: &str| parse(&[argument]).unwrap_err().to_string();
        assert!(error("--from=swim:split=5 miles").contains("expected a size such as 128MiB"));
        assert!(error("--from=swim:durations=short").contains("expected one of lognormal, rate"));
        assert!(error("--from=swim:slot-cores=2").contains("found parameter \"slot-cores\""));
        assert!(error("--from=oozie:properties=/nowhere/at.all").contains("cannot be read"));
        // The seed is a flag of the whole program.
        assert!(error("--from=swim:seed=1").contains("found parameter \"seed\""));
    }
}
