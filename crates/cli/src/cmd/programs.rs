//! `programs`: what jobs can run without anything installed.

use clap::Args;
use slackline_local::task::{Info, programs};
use slackline_report::table::list;

use super::Answer;
use crate::out;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline programs
  slackline programs terasort

A job runs one with run = { program = \"wordcount\", inputs = [\"in/*.txt\"], output = \"out\", reducers = 4 };
arguments go into args = { name = value }.")]
pub(crate) struct Programs {
    /// Only this program
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub(crate) fn run(args: &Programs) -> anyhow::Result<Answer> {
    let known = || programs().iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&Info> = match &args.name {
        None => programs().iter().collect(),
        Some(name) => match programs().iter().find(|info| info.name == name) {
            Some(info) => vec![info],
            None => anyhow::bail!("found program {name:?}, expected one of {}", known()),
        },
    };
    let texts: Vec<String> = chosen.into_iter().map(describe).collect();
    out::text(None, &texts.join("\n"))?;
    Ok(Answer::Yes)
}

/// A program with its arguments.
fn describe(info: &Info) -> String {
    let arguments: Vec<(String, String)> =
        info.arguments.iter().map(|argument| (argument.name.to_owned(), argument.about.to_owned())).collect();
    format!("{}: {}\n{}", info.name, info.about, list(&arguments))
}
