//! `programs`: lists the built-in programs of jobs.

use clap::Args;
use clap::builder::PossibleValue;
use slackline::report::table::{fitted, wrapped};
use slackline_task::programs::contract::Info;
use slackline_task::programs::programs;

use crate::args::help::COLUMNS;
use crate::args::listed::NamedValue;
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline programs
  slackline programs terasort

A job runs one with
  run = { program = \"wordcount\", inputs = [\"in/*.txt\"], output = \"out\", reducers = 4 }
and arguments in args = { name = value }. Lines end with a newline; a carriage return before it is \
part of the line.

Commands do without a program, by the contract of Hadoop Streaming:
  run = { mapper = \"cmd\", combiner = \"cmd\", reducer = \"cmd\", inputs = [\"in\"], output = \"out\" }
They find in their environment SLACKLINE_TASK (the number of the map or reduce) and, in maps, \
SLACKLINE_INPUT (which of the inputs, from 0), mapreduce_map_input_file and, in bytes, \
mapreduce_map_input_start and mapreduce_map_input_length. Where small files share a map the mapper runs \
once for each.")]
pub(crate) struct Programs {
    /// Only this program
    #[arg(value_name = "NAME", value_parser = name())]
    name: Option<&'static Info>,
}

fn name() -> NamedValue<&'static Info> {
    let name = |info: &'static Info| (PossibleValue::new(info.name).help(info.about), info);
    NamedValue::of("program", programs().iter().map(name))
}

pub(crate) fn run(args: &Programs) -> anyhow::Result<Answer> {
    let chosen: Vec<&Info> = args.name.map_or_else(|| programs().iter().collect(), |info| vec![info]);
    let texts: Vec<String> = chosen.into_iter().map(describe).collect();
    out::text(None, &texts.join("\n"))?;
    Ok(Answer::Yes)
}

fn describe(info: &Info) -> String {
    let arguments: Vec<(String, String)> =
        info.arguments.iter().map(|argument| (argument.name.to_owned(), argument.about.to_owned())).collect();
    fitted(&format!("{}: {}", info.name, info.about), COLUMNS) + &wrapped(&arguments, COLUMNS)
}
