//! `cancel`, `hold`, `unhold` and `change`: control submissions, or one flow of each.

use clap::{ArgGroup, Args};
use slackline_serve::api::{Change as ChangeRequest, Done};
use slackline_serve::http::client::{Client, ClientError, query};

use crate::args::defaults::Defaults;
use crate::args::{ServerFlags, value};
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
pub(crate) struct Selector {
    /// Numbers of submissions, as `queue` shows them
    #[arg(value_name = "NUMBER", required = true)]
    numbers: Vec<u64>,
    /// Only this flow of each
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline cancel 17
  slackline cancel 17 --flow billing

What runs of it is stopped. Jobs of it that are done stay done: a file that is submitted again under its name goes on with them.")]
pub(crate) struct Cancel {
    #[command(flatten)]
    selector: Selector,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline hold 17
  slackline hold 17 18 --flow billing

What is at work comes to its end; nothing more of it starts until `slackline unhold`.")]
pub(crate) struct Hold {
    #[command(flatten)]
    selector: Selector,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline unhold 17")]
pub(crate) struct Unhold {
    #[command(flatten)]
    selector: Selector,
}

#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").args(["deadline", "weight", "priority"]).required(true).multiple(true))]
#[command(override_usage = "slackline change [OPTIONS] <NUMBER>...")]
#[command(after_help = "\
Examples:
  slackline change 17 --deadline 06:30
  slackline change 17 --flow billing --weight 5 --priority 10

A deadline is a duration after the release, the first such time of day after it, or a date and time, and has to be still to come. It counts from now on, for what is at work as well.")]
pub(crate) struct Change {
    #[command(flatten)]
    selector: Selector,
    /// Another deadline
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    deadline: Option<String>,
    /// Another weight
    #[arg(long, value_name = "N", value_parser = value::factor)]
    weight: Option<f64>,
    /// Another priority
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()))]
    priority: Option<u32>,
}

/// Whether the service was there and has said no.
fn is_refusal(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Refused { .. }))
}

impl Selector {
    /// Sends a request for each submission, and prints the results. A refused request does not stop the
    /// others.
    ///
    /// # Errors
    /// An unreachable service; the last refusal.
    fn for_each(
        &self,
        defaults: &Defaults,
        mut ask: impl FnMut(&mut Client, &str) -> anyhow::Result<Done>,
    ) -> anyhow::Result<Answer> {
        let mut client = self.server.client(defaults.state())?;
        let mut refused: Option<anyhow::Error> = None;
        for number in &self.numbers {
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

    fn post(&self, defaults: &Defaults, verb: &str) -> anyhow::Result<Answer> {
        let flow = query(&[("flow", self.flow.as_deref())]);
        self.for_each(defaults, |client, of| Ok(client.post(&format!("{of}/{verb}{flow}"), None::<&()>)?))
    }
}

pub(crate) fn cancel(args: &Cancel, defaults: &Defaults) -> anyhow::Result<Answer> {
    args.selector.post(defaults, "cancel")
}

pub(crate) fn hold(args: &Hold, defaults: &Defaults) -> anyhow::Result<Answer> {
    args.selector.post(defaults, "hold")
}

pub(crate) fn unhold(args: &Unhold, defaults: &Defaults) -> anyhow::Result<Answer> {
    args.selector.post(defaults, "unhold")
}

pub(crate) fn change(args: &Change, defaults: &Defaults) -> anyhow::Result<Answer> {
    let change = ChangeRequest {
        flow: args.selector.flow.clone(),
        deadline: args.deadline.clone(),
        weight: args.weight,
        priority: args.priority,
    };
    args.selector.for_each(defaults, |client, of| Ok(client.patch(of, &change)?))
}
