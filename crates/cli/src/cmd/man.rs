//! `man`: manual pages from the definitions that read the command line.

use anyhow::Context;
use clap::Args;
use slackline::names::unknown;

use super::{Answer, command};
use crate::help::with_all_formats;
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
            let found = command.find_subcommand(verb).cloned();
            let found = found.with_context(|| {
                unknown(
                    "verb",
                    verb,
                    &command.get_subcommands().map(clap::Command::get_name).collect::<Vec<_>>(),
                )
            })?;
            // A manual has room for the options of every format.
            let found = if verb == "import" { with_all_formats(found) } else { found };
            found.display_name(format!("slackline-{verb}"))
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    out::data(None, |out| out.write_all(&text))?;
    Ok(Answer::Yes)
}
