//! `agent`: runs tasks on a machine for a run that another machine drives.

use clap::Args;

use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
`slackline run --engine ssh` and `--engine slurm` start one on each machine, over ssh or srun; you need not start it by hand. It \
listens to nothing but its standard input, and ends with everything that it has started when that ends, or when nothing was \
heard of the run for 30 seconds. docs/fleet.md describes the protocol on its standard input and output.")]
pub(crate) struct Agent {}

pub(crate) fn run(_: &Agent) -> Answer {
    Answer::Code(slackline::run::agent())
}
