//! `submission`: controls submissions, or one flow of each.

use clap::{ArgGroup, Args, Subcommand};
use slackline_serve::api::{Accepted, Change, Done};
use slackline_serve::http::client::{Client, ClientError, query};

use crate::args::defaults::Defaults;
use crate::args::{ServerFlags, value};
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct Submission {
    #[command(subcommand)]
    command: SubmissionCommand,
}

#[derive(Debug, Subcommand)]
enum SubmissionCommand {
    /// Cancel submissions, or one flow of each
    #[command(after_help = "\
Examples:
  slackline submission cancel 17
  slackline submission cancel 17 --flow billing

Running tasks are killed. Finished jobs stay finished: a file that is submitted again under the same name continues with the rest.")]
    Cancel(Selector),
    /// Start no more tasks of submissions, or of one flow of each
    #[command(after_help = "\
Examples:
  slackline submission hold 17
  slackline submission hold 17 18 --flow billing

Running tasks end. No other starts until `slackline submission resume`.")]
    Hold(Selector),
    /// Continue submissions that are held
    #[command(after_help = "\
Examples:
  slackline submission resume 17")]
    Resume(Selector),
    /// Set the deadline, the weight or the priority of submissions
    Set(Set),
    /// Run submissions that have ended again, each under a new number
    #[command(after_help = "\
Examples:
  slackline submission rerun 17
  slackline submission rerun 17 --failed
  slackline submission rerun 17 --from-job clean

The flow file, its parameters and its scheduled time are those of the first submission. The service keeps the latest files, of \
32 MiB together.")]
    Rerun(Rerun),
}

#[derive(Args, Debug)]
struct Selector {
    /// Numbers of submissions, as `slackline queue` shows them
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,
    /// Only this flow of each
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Args, Debug)]
struct Rerun {
    /// Numbers of submissions that have ended
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,
    /// Only this job and those that depend on it: JOB or FLOW/JOB
    #[arg(long, value_name = "JOB", conflicts_with = "failed")]
    from_job: Option<String>,
    /// Only jobs that have failed or have not run
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").args(["deadline", "weight", "priority"]).required(true).multiple(true))]
#[command(override_usage = "slackline submission set [OPTIONS] <NUMBER>...")]
#[command(after_help = "\
Examples:
  slackline submission set 17 --deadline 06:30
  slackline submission set 17 --flow billing --weight 5 --priority 10

A deadline is a duration after the release, a time of day (the first one after the release), or a date and time. It must be \
in the future.")]
struct Set {
    #[command(flatten)]
    selector: Selector,
    /// New deadline, such as 2h after the release, 06:30, or a date and time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    deadline: Option<String>,
    /// New weight
    #[arg(long, value_name = "N", value_parser = value::factor)]
    weight: Option<f64>,
    /// New priority; higher ones start first
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()))]
    priority: Option<u32>,
}

/// Whether the service was there and has said no.
fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Refused { .. }))
}

/// Sends a request for each submission, and prints the results. A refused request does not stop the others.
///
/// # Errors
/// An unreachable service; the last refusal.
fn for_each(
    numbers: &[u64],
    server: &ServerFlags,
    defaults: &Defaults,
    mut ask: impl FnMut(&mut Client, &str) -> anyhow::Result<Done>,
) -> anyhow::Result<Answer> {
    let mut client = server.client(defaults.state())?;
    let mut refused: Option<anyhow::Error> = None;
    for number in numbers {
        match ask(&mut client, &format!("/api/v1/submissions/{number}")) {
            Ok(done) => out::talk(done.message),
            Err(error) if error.is::<ClientError>() && !is_refusal(&error) => return Err(error),
            Err(error) => {
                if let Some(before) = refused.replace(error) {
                    out::warn(format_args!("{before:#}"));
                }
            }
        }
    }
    refused.map_or(Ok(Answer::Yes), Err)
}

impl Selector {
    fn for_each(
        &self,
        defaults: &Defaults,
        ask: impl FnMut(&mut Client, &str) -> anyhow::Result<Done>,
    ) -> anyhow::Result<Answer> {
        for_each(&self.numbers, &self.server, defaults, ask)
    }

    fn post(&self, defaults: &Defaults, verb: &str) -> anyhow::Result<Answer> {
        let flow = query(&[("flow", self.flow.as_deref())]);
        self.for_each(defaults, |client, of| Ok(client.post(&format!("{of}/{verb}{flow}"), None::<&()>)?))
    }
}

pub(crate) fn run(args: &Submission, defaults: &Defaults) -> anyhow::Result<Answer> {
    match &args.command {
        SubmissionCommand::Cancel(selector) => selector.post(defaults, "cancel"),
        SubmissionCommand::Hold(selector) => selector.post(defaults, "hold"),
        SubmissionCommand::Resume(selector) => selector.post(defaults, "unhold"),
        SubmissionCommand::Set(args) => set(args, defaults),
        SubmissionCommand::Rerun(args) => rerun(args, defaults),
    }
}

fn rerun(args: &Rerun, defaults: &Defaults) -> anyhow::Result<Answer> {
    let failed = args.failed.then_some("true");
    let choice = query(&[("from_job", args.from_job.as_deref()), ("failed", failed)]);
    for_each(&args.numbers, &args.server, defaults, |client, of| {
        let accepted: Accepted = client.post(&format!("{of}/rerun{choice}"), None::<&()>)?;
        Ok(Done { message: accepted.message })
    })
}

fn set(args: &Set, defaults: &Defaults) -> anyhow::Result<Answer> {
    let change = Change {
        flow: args.selector.flow.clone(),
        deadline: args.deadline.clone(),
        weight: args.weight,
        priority: args.priority,
    };
    args.selector.for_each(defaults, |client, of| Ok(client.patch(of, &change)?))
}
