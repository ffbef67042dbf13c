//! `man`: prints manual pages, made from the definitions of the command line.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use slackline::names::unknown;

use crate::args::help::with_all_options;
use crate::tables::Tables;
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline man simulate | man -l -
  slackline man --output /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// The command [default: the whole program]
    verb: Option<String>,
    /// Write the pages of the program and of all commands into DIR: slackline.1, slackline-run.1 and so on
    #[arg(long, short, value_name = "DIR", conflicts_with = "verb")]
    output: Option<PathBuf>,
}

/// `program` is the command line that the pages describe.
pub(crate) fn run(args: &Man, mut program: Command, tables: &Tables) -> anyhow::Result<Answer> {
    program.build();
    if let Some(dir) = &args.output {
        write_all(program, tables, dir)?;
    } else {
        let text = page(asked(program, tables, args.verb.as_deref())?)?;
        out::data(None, |out| out.write_all(&text))?;
    }
    Ok(Answer::Yes)
}

/// The program, or one of its verbs.
fn asked(program: Command, tables: &Tables, verb: Option<&str>) -> anyhow::Result<Command> {
    let Some(verb) = verb else { return Ok(program) };
    let found = program.find_subcommand(verb).cloned();
    let found = found.with_context(|| {
        unknown("verb", verb, &program.get_subcommands().map(Command::get_name).collect::<Vec<_>>())
    })?;
    Ok(of_verb(found, tables))
}

fn of_verb(verb: Command, tables: &Tables) -> Command {
    let name = verb.get_name().to_owned();
    // A manual has room for the options of every format and engine.
    with_all_options(verb, tables).display_name(format!("slackline-{name}"))
}

fn write_all(program: Command, tables: &Tables, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be created", dir.display()))?;
    let shown = |verb: &&Command| verb.get_name() != "help" && !verb.is_hide_set();
    let mut verbs: Vec<Command> = Vec::new();
    for verb in program.get_subcommands().filter(shown) {
        let name = verb.get_name();
        let commands = verb.get_subcommands().filter(shown);
        verbs.extend(
            commands.map(|command| {
                command.clone().display_name(format!("slackline-{name}-{}", command.get_name()))
            }),
        );
        verbs.push(of_verb(verb.clone(), tables));
    }
    for one in std::iter::once(program).chain(verbs) {
        let name = one.get_display_name().unwrap_or_else(|| one.get_name()).to_owned();
        let text = page(one)?;
        out::data(Some(&dir.join(format!("{name}.1"))), |out| out.write_all(&text))?;
    }
    Ok(())
}

fn page(of: Command) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(of).render(&mut text)?;
    Ok(text)
}
