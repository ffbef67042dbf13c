//! `agent`: runs tasks on a machine for a run that another machine drives.

use clap::Args;

use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
`slackline run --engine ssh` and `--engine slurm` start one on each machine, over ssh or srun; you need not start it by hand. It \
reads only its standard input. When that ends, or when the run has sent nothing for 30 seconds, the agent ends with everything that \
it has started. docs/fleet.md describes the protocol on its standard input and output.")]
pub(crate) struct Agent {}

pub(crate) fn run(_: &Agent) -> Answer {
    Answer::Code(slackline::run::agent())
}
