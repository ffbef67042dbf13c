//! `serve drain`: stops a service from starting new work, or resumes it.

use clap::Args;
use slackline_serve::api::Done;

use crate::args::ServerFlags;
use crate::args::defaults::Defaults;
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline serve drain
  slackline serve drain --undo

Running tasks end, and submissions wait, even if the service restarts.")]
pub(crate) struct Drain {
    /// End the drain: start queued submissions again
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    server: ServerFlags,
}

pub(crate) fn run(args: &Drain, defaults: &Defaults) -> anyhow::Result<Answer> {
    let verb = if args.undo { "undrain" } else { "drain" };
    let done: Done = args.server.client(defaults.state())?.post(&format!("/api/v1/{verb}"), None::<&()>)?;
    out::talk(done.message);
    Ok(Answer::Yes)
}
