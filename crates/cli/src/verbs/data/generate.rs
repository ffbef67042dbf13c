//! `generate`: a synthetic workload.

use clap::Args;
use slackline::report::table::wrapped;
use slackline_model::Seed;
use slackline_trace::generate::{Generator, generator, generators};

use crate::args::help::{COLUMNS, generator_parameters};
use crate::args::listed::NamedValue;
use crate::args::output::WorkloadForm;
use crate::args::{OutputArgs, value};
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline generate
  slackline generate facebook-day --help
  slackline generate facebook-day --set jobs=1000 --seed 7 --output day.toml
  slackline generate purdue | slackline compare -

The same name, settings and seed give the same workload. With a name, --help lists the parameters of that generator.")]
pub(crate) struct Generate {
    /// Generator; without it, all generators are listed
    #[arg(value_name = "NAME", value_parser = name(), hide_possible_values = true)]
    name: Option<&'static Generator>,
    /// Set a parameter; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting(), hide_possible_values = true, requires = "name")]
    set: Vec<(String, String)>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::whole::<u64>(0, u64::MAX), requires = "name")]
    seed: u64,
    /// List the generators, or the one named, with parameters and defaults
    #[arg(long, conflicts_with_all = ["set", "format", "output"])]
    list: bool,
    #[command(flatten)]
    output: OutputArgs<WorkloadForm>,
}

fn name() -> NamedValue<&'static Generator> {
    let name = |generator: &'static Generator| {
        clap::builder::PossibleValue::new(generator.name).help(generator.summary)
    };
    NamedValue::new(generators().iter().map(name), generator)
}

fn setting() -> NamedValue<(String, String)> {
    let mut names: Vec<String> =
        generators().iter().flat_map(|one| one.params).map(|param| format!("{}=", param.name)).collect();
    names.sort();
    names.dedup();
    NamedValue::new(names, |text| {
        let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
        Ok::<_, &str>((key.trim().to_owned(), value.trim().to_owned()))
    })
}

pub(crate) fn run(args: &Generate) -> anyhow::Result<Answer> {
    let file = args.output.file();
    let text = match args.name {
        Some(one) if args.list => describe(one),
        Some(one) => {
            let settings: Vec<(&str, &str)> =
                args.set.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let draft = one.generate(&settings, Seed(args.seed))?;
            args.output.form().write(file, &draft)?;
            return Ok(Answer::Yes);
        }
        None if args.list => generators().iter().map(describe).collect::<Vec<_>>().join("\n"),
        None => {
            if file.is_some() {
                anyhow::bail!("--output: missing argument NAME; `slackline generate` lists the generators");
            }
            let names = generators().iter().map(|one| (one.name.to_owned(), one.summary.to_owned()));
            wrapped(&names.collect::<Vec<_>>(), COLUMNS)
        }
    };
    out::text(file, &text)?;
    Ok(Answer::Yes)
}

/// A generator with its parameters, their defaults and their allowed values.
fn describe(generator: &Generator) -> String {
    format!("{}: {}\n{}", generator.name, generator.summary, generator_parameters(generator))
}
