//! `man`: manual pages from the definitions that read the command line.

use anyhow::Context;
use clap::Args;

use super::{Answer, command};
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline man simulate | man -l -
  slackline man > /usr/local/share/man/man1/slackline.1")]
pub(crate) struct Man {
    /// The verb [default: the program as a whole]
    verb: Option<String>,
}

pub(crate) fn run(args: &Man, tables: &Tables) -> anyhow::Result<Answer> {
    let mut command = command(tables);
    command.build();
    let page = match &args.verb {
        None => command,
        Some(verb) => {
            let known = command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>().join(", ");
            let found = command.find_subcommand(verb).cloned();
            let found = found.with_context(|| format!("found verb {verb:?}, expected one of {known}"))?;
            found.display_name(format!("slackline-{verb}"))
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    out::data(None, |out| out.write_all(&text))?;
    Ok(Answer::Yes)
}
