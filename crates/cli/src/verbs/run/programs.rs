//! `run --list-programs`: the built-in programs of jobs.

use slackline::report::table::{fitted, wrapped};
use slackline_task::programs::contract::Info;
use slackline_task::programs::programs;

use crate::args::help::COLUMNS;
use crate::terminal::out;
use crate::verbs::answer::Answer;

/// How jobs use programs and commands.
const USE: &str = "\
A job runs a program with
  run = { program = \"wordcount\", inputs = [\"in/*.txt\"], output = \"out\" }
and arguments in args = { name = value }. Lines end with a newline; a carriage
return before it is part of the line.

Instead of a program a job may have commands, as Hadoop Streaming has:
  run = { mapper = \"cmd\", reducer = \"cmd\", inputs = [\"in\"], output = \"out\" }
Their environment has SLACKLINE_TASK (the number of the map or reduce) and, in
maps, SLACKLINE_INPUT (the number of the input, from 0),
mapreduce_map_input_file, and in bytes mapreduce_map_input_start and
mapreduce_map_input_length. If small files share a map, the mapper runs once
for each.
";

/// Prints the built-in programs.
pub(crate) fn list() -> anyhow::Result<Answer> {
    let texts: Vec<String> = programs().iter().map(describe).collect();
    out::text(None, &format!("{}\n{USE}", texts.join("\n")))?;
    Ok(Answer::Yes)
}

fn describe(info: &Info) -> String {
    let arguments: Vec<(String, String)> =
        info.arguments.iter().map(|argument| (argument.name.to_owned(), argument.about.to_owned())).collect();
    fitted(&format!("{}: {}", info.name, info.about), COLUMNS) + &wrapped(&arguments, COLUMNS)
}
