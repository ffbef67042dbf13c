//! `completions`: from the definitions that read the command line.

use clap::Args;
use clap_complete::Shell;

use super::{Answer, command};
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  slackline completions bash > ~/.local/share/bash-completion/completions/slackline")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Completions, tables: &Tables) -> anyhow::Result<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(tables), "slackline", &mut script);
    out::data(None, |out| out.write_all(&script))?;
    Ok(Answer::Yes)
}
