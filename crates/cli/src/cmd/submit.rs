//! `submit`: a flow file for a service, to be run now, when something is there, or again and again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use slackline::report::number::{counted, duration};
use slackline_serve::api::{
    Accepted, CatchUp, ForEach, IfLate, Overlap, Prediction, Remedy, Schedule, State, Submission,
    Submit as Sent,
};
use slackline_serve::client::{Client, ClientError, query};

use super::Answer;
use crate::args::listed::Listed;
use crate::args::output::Form;
use crate::args::{OutputArgs, ServerFlags, value};
use crate::defaults::Defaults;
use crate::{out, service};

/// The longest that one request waits for something, seconds.
const WAIT: &str = "300";

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline submit nightly.toml --deadline nightly=06:00
  slackline submit nightly.toml --schedule '0 2 * * *' --zone Europe/Berlin --set day=%Y-%m-%d
  slackline submit report.toml --when '/data/in/report-*.csv' --if-late reject
  slackline submit urgent.toml --priority 10 --wait

The document is sent as it is, with the directory that relative paths start from, which has to be there where the service \
is. What is answered is on disk there. With --schedule it recurs: its five fields are minute, hour, day of month, month \
and day of week; a time that clocks leave out when they are put forward comes as much later, and one that \
there is twice counts once.

Exit codes: 0 submitted (with --wait: done), 1 rejected or left out (with --wait: failed or cancelled), 2 refused.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Submit {
    /// Flow file, whose jobs say what they run; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Name of its outputs [default: as the file, with values of --set]
    ///
    /// Outputs are remembered by it. Of submissions of one name one runs at a time.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Value of a parameter; may be given several times
    ///
    /// With --schedule it may have the conversions of strftime, such as %Y-%m-%d, of the time of the recurrence.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, help_heading = "Parameters")]
    set: Vec<(String, String)>,
    /// Values of a parameter: a flow a value
    #[arg(long = "for", hide_short_help = true, value_name = "NAME=VALUES", value_parser = pair, help_heading = "Parameters")]
    each: Option<(String, String)>,
    /// A deadline; may be given several times
    ///
    /// WHEN is a duration after its release, a time of day, or a date and time.
    #[arg(long, value_name = "FLOW=WHEN", value_parser = pair, help_heading = "Policy")]
    deadline: Vec<(String, String)>,
    /// The higher, the sooner it is taken from the queue
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::whole::<u32>(0, u32::MAX.into()), help_heading = "Policy")]
    priority: u32,
    /// What is done if a deadline is not expected to hold
    #[arg(long, value_name = "WHAT", default_value = "accept", value_parser = Listed::of("answer", [("accept", IfLate::Accept), ("reject", IfLate::Reject)]), help_heading = "Policy")]
    if_late: IfLate,
    /// Hold it until it is let go by `unhold`
    #[arg(long, help_heading = "When")]
    hold: bool,
    /// Begin when a file matches; may be given several times
    ///
    /// Then each of them has to match a file.
    #[arg(long, value_name = "PATTERN", help_heading = "When")]
    when: Vec<String>,
    /// Begin when all of its inputs are there
    #[arg(long, help_heading = "When")]
    when_inputs: bool,
    /// Submit it again and again: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "CRON", help_heading = "When")]
    schedule: Option<String>,
    /// Time zone of --schedule [default: that of the service]
    #[arg(long, hide_short_help = true, value_name = "ZONE", requires = "schedule", help_heading = "When")]
    zone: Option<String>,
    /// What is done about times at which the service was not there
    #[arg(long, hide_short_help = true, value_name = "WHICH", default_value = "last", requires = "schedule", value_parser = Listed::of("times", [("none", CatchUp::None), ("last", CatchUp::Last), ("all", CatchUp::All)]), help_heading = "When")]
    catch_up: CatchUp,
    /// What is done when one of its name is not over
    #[arg(long, hide_short_help = true, value_name = "WHAT", default_value = "wait", value_parser = Listed::of("answer", [("wait", Overlap::Wait), ("skip", Overlap::Skip), ("replace", Overlap::Replace)]), help_heading = "When")]
    overlap: Overlap,
    /// A word of your own: what is sent again with the same one is not submitted again
    #[arg(long, hide_short_help = true, value_name = "WORD", help_heading = "When")]
    key: Option<String>,
    /// Wait until it is over
    #[arg(long, help_heading = "Output")]
    wait: bool,
    /// Wait until it is said when it is going to be done, and what it means for others
    #[arg(long, help_heading = "Output")]
    wait_for_prediction: bool,
    /// Print the number of the submission alone
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name, = and a value".to_owned()),
    }
}

pub(crate) fn run(args: &Submit, defaults: &Defaults) -> anyhow::Result<Answer> {
    if args.output.form() == Form::Csv {
        bail!("--format: found csv, expected a table or json: what is answered is no list");
    }
    let sent = args.sent()?;
    let mut client = args.server.client(defaults.state())?;
    let wait = (args.wait_for_prediction || args.if_late == IfLate::Reject).then_some(WAIT);
    let path = format!("/api/v1/submissions{}", query(&[("wait", wait)]));
    let accepted: Accepted = client.post(&path, Some(&sent))?;
    let is_left_out = accepted.number.is_none() && accepted.next.is_none();
    let is_rejected =
        args.if_late == IfLate::Reject && accepted.prediction.as_ref().is_some_and(Prediction::is_late);
    let over = match accepted.number.filter(|_| args.wait || is_rejected) {
        Some(number) => Some(until_over(&mut client, number)?),
        // It may have failed before anything could be predicted of it.
        None => match accepted.number.filter(|_| wait.is_some() && accepted.prediction.is_none()) {
            Some(number) => Some(client.get::<Submission>(&format!("/api/v1/submissions/{number}"))?),
            None => None,
        },
    };
    args.tell(&accepted, over.as_ref())?;
    let is_bad =
        over.is_some_and(|one| matches!(one.state, State::Failed | State::Cancelled | State::Rejected));
    Ok(if is_left_out || is_bad { Answer::No } else { Answer::Yes })
}

/// Waits until a submission is over, however long that takes, and through restarts of the service.
fn until_over(client: &mut Client, number: u64) -> anyhow::Result<Submission> {
    loop {
        let path = format!("/api/v1/submissions/{number}{}", query(&[("wait", Some(WAIT))]));
        match client.get::<Submission>(&path) {
            Ok(shown) if shown.state.is_over() => return Ok(shown),
            Ok(_) => {}
            Err(ClientError::Unreachable(..) | ClientError::Broken(..)) => {
                slackline_local::clock::pause(std::time::Duration::from_secs(1));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Submit {
    fn sent(&self) -> anyhow::Result<Sent> {
        let (document, file) = if self.workload == Path::new("-") {
            (std::io::read_to_string(std::io::stdin()).context("standard input: cannot be read")?, None)
        } else {
            let read = std::fs::read_to_string(&self.workload);
            let text = read.with_context(|| format!("{}: cannot be read", self.workload.display()))?;
            (text, Some(self.workload.display().to_string()))
        };
        let directory = std::env::current_dir().context("the current directory")?;
        let named = |pairs: &[(String, String)], flag: &str| -> anyhow::Result<BTreeMap<String, String>> {
            let mut named = BTreeMap::new();
            for (name, value) in pairs {
                if named.insert(name.clone(), value.clone()).is_some() {
                    bail!("--{flag}: found {name} twice, expected it once");
                }
            }
            Ok(named)
        };
        let schedule = self.schedule.clone().map(|cron| Schedule {
            cron,
            zone: self.zone.clone(),
            catch_up: self.catch_up,
        });
        Ok(Sent {
            document,
            file,
            name: self.name.clone(),
            directory: Some(directory.display().to_string()),
            parameters: named(&self.set, "set")?,
            for_each: self.each.clone().map(|(parameter, values)| ForEach { parameter, values }),
            deadlines: named(&self.deadline, "deadline")?,
            priority: self.priority,
            held: self.hold,
            if_late: self.if_late,
            overlap: self.overlap,
            when: self.when.clone(),
            when_inputs: self.when_inputs,
            schedule,
            key: self.key.clone(),
        })
    }

    fn tell(&self, accepted: &Accepted, over: Option<&Submission>) -> anyhow::Result<()> {
        if self.output.form() == Form::Json {
            let said = match over {
                Some(over) => json!({ "accepted": accepted, "submission": over }),
                None => json!({ "accepted": accepted }),
            };
            return out::text(self.output.file(), &format!("{said:#}\n"));
        }
        if self.quiet {
            let number = accepted.number.map_or_else(String::new, |number| format!("{number}\n"));
            return out::text(self.output.file(), &number);
        }
        let now = Timestamp::now();
        let mut text = format!("{}\n", accepted.message);
        if let Some(next) = accepted.next {
            let _ =
                writeln!(text, "next at {} ({})", service::clock(next, now), service::from_now(next, now));
        }
        match (over, &accepted.prediction) {
            (Some(over), prediction) if over.state.is_over() => {
                if let Some(prediction) = prediction.as_ref().filter(|_| over.state == State::Rejected) {
                    text.push_str(&predicted(prediction, now));
                }
                text.push_str(&ended(over, now));
            }
            (_, Some(prediction)) => text.push_str(&predicted(prediction, now)),
            (_, None) if self.wait_for_prediction && accepted.number.is_some() => {
                text.push_str("nothing is predicted before it begins\n");
            }
            _ => {}
        }
        out::text(self.output.file(), &text)
    }
}

/// How a submission ended: a line a flow.
fn ended(over: &Submission, now: Timestamp) -> String {
    // Where a flow says why, it is not said twice.
    let is_told = over.flows.iter().any(|flow| flow.cause.is_some());
    let status = if is_told { over.state.name().to_owned() } else { service::status(over) };
    let mut text = format!("{} is over: {status}\n", over.number);
    for flow in &over.flows {
        let at = flow.completion.map_or_else(String::new, |at| format!(" at {}", service::clock(at, now)));
        let cause = flow.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
        let _ = writeln!(text, "  {}: {}{at}{cause}", flow.flow, service::verdict(flow, now));
    }
    text
}

/// What is expected, and what would help.
pub(super) fn predicted(prediction: &Prediction, now: Timestamp) -> String {
    let clock = |at: Timestamp| service::clock(at, now);
    let mut text = String::new();
    for flow in &prediction.flows {
        let guess = || " (a guess: how long its tasks take is not known yet)".to_owned();
        let between = flow.between.map_or_else(guess, |[least, most]| {
            format!(" (eight times in ten between {} and {})", clock(least), clock(most))
        });
        let holds = match (flow.deadline, flow.holds) {
            (Some(deadline), Some(true)) => format!("; the deadline {} holds", clock(deadline)),
            (Some(deadline), Some(false)) => format!("; the deadline {} does not hold", clock(deadline)),
            _ => String::new(),
        };
        let chance =
            flow.chance.map_or_else(String::new, |chance| format!(", with a chance of {chance:.0} %"));
        let _ = writeln!(text, "{}: done at {}{between}{holds}{chance}", flow.flow, clock(flow.completion));
    }
    for late in &prediction.makes_late {
        let _ = writeln!(
            text,
            "makes {}/{} ({}) late by {}: done at {} instead of {}",
            late.number,
            late.flow,
            late.name,
            duration(late.late_by),
            clock(late.with),
            clock(late.without)
        );
    }
    for remedy in &prediction.remedies {
        text.extend([match remedy {
            Remedy::Deadline { flow, deadline } => {
                format!("{flow}: a deadline that holds is {}\n", clock(*deadline))
            }
            Remedy::Slots { flow, slots } => format!("{flow}: with {} it holds\n", counted(*slots, "slot")),
            Remedy::Hold { flow, numbers } => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                format!("{flow}: it holds if these are held: slackline hold {}\n", numbers.join(" "))
            }
            Remedy::Nothing { flow, alone } => {
                format!("{flow}: nothing here makes it hold: alone it is done at {}\n", clock(*alone))
            }
        }]);
    }
    text
}
