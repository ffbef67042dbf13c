//! `submit`: submits a flow file to a service, to be run now, when a file exists, or on a schedule.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use serde_json::json;
use slackline::report::number::{counted, duration};
use slackline_serve::api::{
    Accepted, CatchUp, ForEach, IfLate, Overlap, Prediction, Remedy, Schedule, Service, State, Submission,
    Submit as SubmitRequest,
};
use slackline_serve::http::client::{Client, ClientError, query};
use slackline_task::base::clock;

use crate::args::defaults::Defaults;
use crate::args::listed::NamedValue;
use crate::args::output::Form;
use crate::args::{OutputArgs, ServerFlags, path, value};
use crate::terminal::clock::Stopwatches;
use crate::terminal::{out, service};
use crate::verbs::answer::Answer;

/// The longest that one request waits, and that a prediction is waited for, seconds.
const WAIT: f64 = 300.0;
/// The interval of polls of a submission that has not started or has no prediction, in seconds; it grows.
const STEP_LEAST: f64 = 0.05;
const STEP_MOST: f64 = 2.0;
/// The same where only its end is waited for, of which the service tells.
const STEP_LONG: f64 = 60.0;
/// A wait of fewer seconds is not reported.
const SOON: f64 = 1.0;
/// The service has looked twice for files by then, seconds.
const FILES: f64 = 5.0;

/// The exit code of a submission without a prediction.
const UNDECIDED: u8 = 3;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline submit nightly.toml --deadline nightly=06:00
  slackline submit nightly.toml --schedule '0 2 * * *' --zone Europe/Berlin --set day=%Y-%m-%d
  slackline submit report.toml --when '/data/in/report-*.csv' --if-late reject
  slackline submit urgent.toml --priority 10 --wait

The flow file is sent unchanged. Relative paths in it start from the current directory, which must exist on the machine of \
the service. Once the command prints the number, the submission is on disk there.

The five fields of --schedule are minute, hour, day of month, month and day of week. A time that does not exist when clocks go \
forward is shifted by the same amount; a time that occurs twice counts once.

With --wait-for-prediction and --if-late reject the command waits for the prediction, for at most five minutes, also through restarts \
of the service. It does not wait if no prediction can come: the submission is held, the service drains, or files are missing. It then names the reason.

Exit codes: 0 submitted (with --wait: finished), 1 rejected or skipped (with --wait: failed or cancelled), 2 refused, \
3 submitted without a prediction: it stays in the queue, or starts.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Submit {
    /// Flow file, whose jobs have run sections; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Name of the submission [default: from the file name and --set]
    ///
    /// Submissions with the same name share finished jobs and outputs, and run one at a time.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Value of a parameter; may be given several times
    ///
    /// With --schedule it may have conversions of strftime, such as %Y-%m-%d, which stand for the scheduled time.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, help_heading = "Parameters")]
    set: Vec<(String, String)>,
    /// Values of a parameter: one flow for each
    #[arg(long = "for", hide_short_help = true, value_name = "NAME=VALUES", value_parser = pair, help_heading = "Parameters")]
    each: Option<(String, String)>,
    /// A deadline; may be given several times
    ///
    /// WHEN is a duration after the release of the flow, a time of day, or a date and time in the future.
    #[arg(long, value_name = "FLOW=WHEN", value_parser = pair, help_heading = "Policy")]
    deadline: Vec<(String, String)>,
    /// Priority in the queue; higher ones start first
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::whole::<u32>(0, u32::MAX.into()), help_heading = "Policy")]
    priority: u32,
    /// What to do if it is likely to miss a deadline
    #[arg(long, value_name = "WHAT", default_value = "accept", value_parser = NamedValue::of("answer", [("accept", IfLate::Accept), ("reject", IfLate::Reject)]), help_heading = "Policy")]
    if_late: IfLate,
    /// Hold it until `slackline submission resume`
    #[arg(long, help_heading = "When")]
    hold: bool,
    /// Start when a file matches; may be given several times
    ///
    /// Every pattern has to match a file. With --schedule it may have conversions, as in --set; %% is a percent sign.
    #[arg(long, value_name = "PATTERN", value_parser = path::text, help_heading = "When")]
    when: Vec<String>,
    /// Start when all inputs of its jobs exist
    #[arg(long, help_heading = "When")]
    when_inputs: bool,
    /// How long to wait for files; then it fails [default: 1d]
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = value::pause, help_heading = "When")]
    when_for: Option<f64>,
    /// How long files must not have changed before it starts [default: 2s]
    ///
    /// A program that pauses longer while it writes should write a file of another name when it is done: wait for that one.
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = value::pause, help_heading = "When")]
    when_still: Option<f64>,
    #[command(flatten)]
    recurrence: ScheduleFlags,
    /// What to do while an earlier submission of this name is unfinished
    ///
    /// With `apart` the times of a schedule run beside one another if all their outputs have a date in their path, by --set, and
    /// none may read the output of another; all others wait.
    #[arg(long, hide_short_help = true, value_name = "WHAT", default_value = "apart", value_parser = NamedValue::of("answer", [("apart", Overlap::Apart), ("wait", Overlap::Wait), ("skip", Overlap::Skip), ("replace", Overlap::Replace)]), help_heading = "When")]
    overlap: Overlap,
    /// Idempotency key: a submission with a known key is not submitted again
    #[arg(long, hide_short_help = true, value_name = "WORD", help_heading = "When")]
    key: Option<String>,
    /// Wait until the submission ends
    #[arg(long, conflicts_with = "schedule", help_heading = "Output")]
    wait: bool,
    /// Wait for the prediction of its completion, and of its effect on other flows
    #[arg(long, conflicts_with = "schedule", help_heading = "Output")]
    wait_for_prediction: bool,
    /// Print only the number of the submission
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

/// When it is submitted again.
#[derive(Args, Debug)]
#[command(next_help_heading = "When")]
struct ScheduleFlags {
    /// Submit it at these times: minute, hour, day of month, month, day of week
    #[arg(long, value_name = "CRON")]
    schedule: Option<String>,
    /// Time zone of --schedule, --deadline and --set [default: that of the service]
    #[arg(long, hide_short_help = true, value_name = "ZONE")]
    zone: Option<String>,
    /// Which times to submit that the service missed while it was down
    ///
    /// With `all` they are submitted together, the earliest first; with --overlap skip only the earliest runs.
    #[arg(long, hide_short_help = true, value_name = "WHICH", default_value = "latest", requires = "schedule", value_parser = NamedValue::of("times", [("none", CatchUp::None), ("latest", CatchUp::Latest), ("all", CatchUp::All)]))]
    catch_up: CatchUp,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(crate) fn run(args: &Submit, defaults: &Defaults) -> anyhow::Result<Answer> {
    if args.output.form() == Form::Csv {
        bail!("--format: found csv, expected table or json");
    }
    let sent = args.sent()?;
    let mut client = args.server.client(defaults.state())?;
    let mut accepted: Accepted = client.post("/api/v1/submissions", Some(&sent))?;
    let mut output = SubmitOutput { args, text: String::new() };
    output.accepted(&accepted)?;
    let wait_result = match accepted.number.filter(|_| args.wait || args.waits_for_prediction()) {
        Some(number) => args.wait_result(&mut client, number, &mut output)?,
        None => WaitResult::default(),
    };
    accepted.prediction.clone_from(&wait_result.prediction);
    output.end(&accepted, &wait_result)?;
    let over = wait_result.shown.as_ref().map(|shown| shown.state).filter(|state| state.is_over());
    Ok(match over {
        Some(State::Finished) => Answer::Yes,
        Some(_) => Answer::No,
        None if wait_result.prediction.as_ref().is_some_and(|prediction| args.rejects(prediction)) => {
            Answer::No
        }
        None if wait_result.waits.is_some() => Answer::Code(UNDECIDED),
        None if accepted.number.is_none() && accepted.next.is_none() => Answer::No,
        None => Answer::Yes,
    })
}

/// What became of a submission while it was waited for.
#[derive(Default)]
struct WaitResult {
    shown: Option<Submission>,
    prediction: Option<Prediction>,
    /// Why nothing was predicted, if that was waited for in vain.
    waits: Option<String>,
}

/// Why a submission has not started.
struct Reason {
    words: String,
    /// Whether the reason remains until a user acts.
    stays: bool,
}

impl Submit {
    /// Whether it is waited for the prediction.
    fn waits_for_prediction(&self) -> bool {
        self.wait_for_prediction || self.if_late == IfLate::Reject
    }

    /// Whether a submission with this prediction is rejected.
    fn rejects(&self, prediction: &Prediction) -> bool {
        self.if_late == IfLate::Reject && prediction.is_late()
    }

    /// Waits until a submission has finished, also over restarts of the service, or until it has a prediction
    /// or cannot get one. Prints what the submission waits for.
    fn wait_result(
        &self,
        client: &mut Client,
        number: u64,
        output: &mut SubmitOutput<'_>,
    ) -> anyhow::Result<WaitResult> {
        let watches = Stopwatches::new(1);
        let (mut wait_result, mut reported, mut step) = (WaitResult::default(), String::new(), 0.0);
        loop {
            let is_late = watches.seconds(0) > WAIT;
            let path =
                format!("/api/v1/submissions/{number}{}", query(&[("wait", Some(&format!("{step}")))]));
            let reason = match client.get::<Submission>(&path) {
                Ok(shown) => {
                    let is_over = shown.state.is_over();
                    if self.is_news(wait_result.prediction.as_ref(), &shown) {
                        wait_result.prediction.clone_from(&shown.prediction);
                        output.predicted(wait_result.prediction.as_ref())?;
                    }
                    let reason = if is_over { None } else { reason(client, &shown, watches.seconds(0))? };
                    wait_result.shown = Some(shown);
                    if is_over {
                        return Ok(wait_result);
                    }
                    reason
                }
                // It may be about to be started again.
                Err(error) if is_unreachable(&error) => {
                    clock::pause(Duration::from_secs(1));
                    Some(Reason { words: error.to_string(), stays: false })
                }
                Err(error) => return Err(error.into()),
            };
            // A late submission is about to be rejected.
            let is_rejected =
                wait_result.prediction.as_ref().is_some_and(|prediction| self.rejects(prediction));
            let is_predicted = wait_result.prediction.is_some();
            if !self.wait && is_predicted && !is_rejected {
                return Ok(wait_result);
            }
            if !self.wait && is_late && is_rejected {
                let time = duration(WAIT);
                out::talk(format_args!(
                    "{number}: a deadline will be missed, but the service has not rejected it within {time}"
                ));
                return Ok(wait_result);
            }
            if let Some(Reason { words, stays }) = reason {
                if !self.wait && !is_predicted && (stays || is_late) {
                    return Ok(WaitResult { waits: Some(words), ..wait_result });
                }
                if words != reported && (stays || watches.seconds(0) > SOON) {
                    out::talk(format_args!("{number}: {words}"));
                    reported = words;
                }
            }
            if !self.wait && is_late {
                let words = format!("the prediction takes longer than {}", duration(WAIT));
                return Ok(WaitResult { waits: Some(words), ..wait_result });
            }
            let has_begun = wait_result.shown.as_ref().is_some_and(|shown| shown.state == State::Running);
            let is_reported = !self.waits_for_prediction() || wait_result.prediction.is_some();
            // Each poll of a submission that has not started reads its file.
            let most = if is_reported || is_late { STEP_LONG } else { STEP_MOST };
            step = if has_begun && is_reported && !is_rejected {
                WAIT
            } else {
                (step * 1.5).clamp(STEP_LEAST, most)
            };
        }
    }

    /// Whether the prediction is to be printed: it is the first, or the submission is not rejected after all.
    fn is_news(&self, before: Option<&Prediction>, shown: &Submission) -> bool {
        let is_let_in = |now: &Prediction| !shown.state.is_over() && !self.rejects(now);
        match (before, &shown.prediction) {
            (None, Some(_)) => self.waits_for_prediction(),
            (Some(before), Some(now)) => self.rejects(before) && is_let_in(now),
            (_, None) => false,
        }
    }

    /// Warns if all runs of a schedule have the same parameters.
    fn remark_on_times(&self) {
        let differs = |(_, value): &(String, String)| value.replace("%%", "").contains('%');
        if self.recurrence.schedule.is_some() && !self.quiet && !self.set.iter().any(differs) {
            out::warn(
                "all runs of the schedule have the same parameters, so each reads and writes the same paths; if the file has a \
                 parameter for the date, pass --set NAME=%Y-%m-%d",
            );
        }
    }
}

/// Why a submission waits, `seconds` after it was submitted.
fn reason(client: &mut Client, shown: &Submission, seconds: f64) -> anyhow::Result<Option<Reason>> {
    let stays = |words: String| Ok(Some(Reason { words, stays: true }));
    if shown.held {
        return stays(format!("it is held (slackline submission resume {})", shown.number));
    }
    if shown.state == State::Running
        && let Some(words) = &shown.unpredicted
    {
        return stays(words.clone());
    }
    if shown.state != State::Queued {
        return Ok(None);
    }
    let service: Service = match client.get("/api/v1/service") {
        // The next poll detects that the service is unreachable.
        Err(error) if is_unreachable(&error) => return Ok(None),
        service => service?,
    };
    if service.draining {
        return stays(
            "the service drains: no new submission starts (slackline serve drain --undo)".to_owned(),
        );
    }
    let words =
        shown.why.clone().unwrap_or_else(|| "other submissions are before it in the queue".to_owned());
    // It is unknown when files arrive, but files that exist are found within some seconds.
    let stays = shown.missing.is_some() && seconds > FILES;
    Ok(Some(Reason { words, stays }))
}

/// Whether the service did not answer, or is about to end: its successor continues with all acknowledged
/// submissions.
fn is_unreachable(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Unreachable(..) | ClientError::Broken(..) | ClientError::Refused { status: 503, .. }
    )
}

/// The output of the command: piece by piece as it becomes known, or whole at the end if it is one document
/// or goes to a file.
struct SubmitOutput<'a> {
    args: &'a Submit,
    text: String,
}

impl SubmitOutput<'_> {
    fn is_document(&self) -> bool {
        self.args.output.form() == Form::Json
    }

    fn add(&mut self, text: &str) -> anyhow::Result<()> {
        if self.args.output.file().is_some() {
            self.text.push_str(text);
            return Ok(());
        }
        // The reader may have closed the pipe; the wait continues.
        out::unless_closed(out::text(None, text))
    }

    /// The submission was accepted: its number is printed before any wait.
    fn accepted(&mut self, accepted: &Accepted) -> anyhow::Result<()> {
        let waits = accepted.number.is_some() && (self.args.wait || self.args.waits_for_prediction());
        if waits && !self.args.quiet && (self.is_document() || self.args.output.file().is_some()) {
            out::talk(&accepted.message);
        }
        self.args.remark_on_times();
        if self.is_document() {
            return Ok(());
        }
        if self.args.quiet {
            let number = accepted.number.map_or_else(String::new, |number| format!("{number}\n"));
            return self.add(&number);
        }
        let mut text = format!("{}\n", accepted.message);
        if let Some(next) = accepted.next {
            let now = Timestamp::now();
            let (at, in_so_long) = (service::clock_and_zone(next, now), service::from_now(next, now));
            let _ = writeln!(text, "next at {at} ({in_so_long})");
        }
        self.add(&text)
    }

    fn predicted(&mut self, prediction: Option<&Prediction>) -> anyhow::Result<()> {
        match prediction.filter(|_| !self.is_document() && !self.args.quiet) {
            Some(prediction) => self.add(&predicted(prediction, Timestamp::now())),
            None => Ok(()),
        }
    }

    fn end(mut self, accepted: &Accepted, wait_result: &WaitResult) -> anyhow::Result<()> {
        let WaitResult { shown, waits, .. } = wait_result;
        let over = shown.as_ref().filter(|shown| shown.state.is_over());
        if self.is_document() {
            let mut document = json!({ "accepted": accepted });
            if let Some(shown) = over.or(shown.as_ref().filter(|_| waits.is_some())) {
                document["submission"] = json!(shown);
            }
            if let Some(waits) = waits {
                document["waits"] = json!(waits);
            }
            return out::text(self.args.output.file(), &format!("{document:#}\n"));
        }
        let text = match (over, waits) {
            (Some(over), _) => outcome_text(over, Timestamp::now()),
            (None, Some(waits)) => format!("no prediction: {waits}\n"),
            (None, None) => String::new(),
        };
        match (self.args.quiet, waits) {
            (false, _) => self.add(&text)?,
            // Its exit code alone would leave people wondering.
            (true, Some(_)) => out::talk(text.trim_end()),
            (true, None) => {}
        }
        match self.args.output.file() {
            Some(file) => out::text(Some(file), &self.text),
            None => Ok(()),
        }
    }
}

impl Submit {
    fn sent(&self) -> anyhow::Result<SubmitRequest> {
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
        let schedule = self.recurrence.schedule.clone().map(|cron| Schedule {
            cron,
            zone: self.recurrence.zone.clone(),
            catch_up: self.recurrence.catch_up,
        });
        Ok(SubmitRequest {
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
            when_for: self.when_for,
            when_still: self.when_still,
            zone: self.recurrence.zone.clone(),
            schedule,
            commit: file_commit(&self.workload),
            key: self.key.clone(),
        })
    }
}

/// The git commit of a file, with `+` if the file has changed since. `None` if git does not know the file.
fn file_commit(file: &Path) -> Option<String> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = Path::new(file.file_name()?);
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(directory).args(arguments).arg("--").arg(name);
        git.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()
    };
    let log = git(&["log", "-1", "--format=%h"]).filter(|log| log.status.success())?;
    let commit = String::from_utf8(log.stdout).ok()?.trim().to_owned();
    let is_changed = !git(&["diff", "--quiet", "HEAD"])?.status.success();
    (!commit.is_empty()).then(|| commit + if is_changed { "+" } else { "" })
}

/// How a submission ended: a line a flow.
fn outcome_text(over: &Submission, now: Timestamp) -> String {
    // If a flow reports its cause, it is not repeated.
    let is_reported = over.flows.iter().any(|flow| flow.cause.is_some());
    let status =
        if is_reported { over.state.name().to_owned() } else { service::status(over, Timestamp::now()) };
    let mut text = format!("{} ended: {status}\n", over.number);
    // A rejected submission has not started: its flows have no results.
    for flow in over.flows.iter().filter(|_| over.state != State::Rejected) {
        let at = flow.completion.map_or_else(String::new, |at| format!(" at {}", service::clock(at, now)));
        let cause = flow.cause.as_ref().map_or_else(String::new, |cause| format!(": {cause}"));
        let _ = writeln!(text, "  {}: {}{at}{cause}", flow.flow, service::verdict(flow, now));
    }
    text
}

/// The prediction, and the changes that would help.
pub(super) fn predicted(prediction: &Prediction, now: Timestamp) -> String {
    let clock = |at: Timestamp| service::clock(at, now);
    let mut text = String::new();
    for flow in &prediction.flows {
        let Some(completion) = flow.completion else {
            let deadline = flow.deadline.map_or_else(String::new, |at| {
                format!("; whether it will meet its deadline {} is unknown too", clock(at))
            });
            let _ = writeln!(text, "{}: completion unknown (a job never ran){deadline}", flow.flow);
            continue;
        };
        let between = match flow.between {
            Some([least, most]) => {
                format!(" (80 % interval {} to {})", clock(least), clock(most))
            }
            None => String::new(),
        };
        let holds = match (flow.deadline, flow.holds) {
            (Some(deadline), Some(true)) => format!("; will meet its deadline {}", clock(deadline)),
            (Some(deadline), Some(false)) => format!("; will miss its deadline {}", clock(deadline)),
            _ => String::new(),
        };
        let chance =
            flow.chance.map_or_else(String::new, |chance| format!(", chance of meeting it: {chance:.0} %"));
        let _ = writeln!(text, "{}: finishes at {}{between}{holds}{chance}", flow.flow, clock(completion));
    }
    for late in &prediction.makes_late {
        let _ = writeln!(
            text,
            "makes {}/{} ({}) late by {}: it finishes at {} instead of {}",
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
                format!("{flow}: would meet a deadline of {}\n", clock(*deadline))
            }
            Remedy::Slots { flow, slots } => {
                format!("{flow}: would meet its deadline with {}\n", counted(*slots, "slot"))
            }
            Remedy::Hold { flow, numbers } => {
                let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
                format!(
                    "{flow}: would meet its deadline if others are held: slackline submission hold {}\n",
                    numbers.join(" ")
                )
            }
            Remedy::Nothing { flow, alone } => {
                format!(
                    "{flow}: cannot meet its deadline: alone on the cluster it finishes at {}\n",
                    clock(*alone)
                )
            }
        }]);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    use clap::Parser;
    use serde_json::Value;
    use slackline_serve::http::client::Server;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        submit: Submit,
    }

    /// A submission in the format of the service, whose flow is predicted to meet its deadline or not.
    fn shown(state: &str, holds: Option<bool>) -> Value {
        let at = "2026-03-01T06:00:00Z";
        let mut shown = json!({
            "number": 1, "name": "f", "user": "anna", "submitted": at, "state": state, "held": false, "priority": 0, "flows": [],
        });
        if let Some(holds) = holds {
            let flow = json!({ "flow": "f", "completion": at, "deadline": at, "holds": holds });
            shown["prediction"] = json!({ "made": at, "flows": [flow], "makes_late": [], "remedies": [] });
        }
        shown
    }

    /// The result of waiting for a service with these answers, one per connection; the connection breaks if
    /// there is none.
    fn wait_result(test: &str, flags: &[&str], answers: Vec<Option<Value>>) -> WaitResult {
        // Paths of sockets are short.
        let socket = std::env::temp_dir().join(format!("{test}-{}.socket", std::process::id()));
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).unwrap();
        let service = std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let asked = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
                assert!(asked > 0, "a request");
                let Some(answer) = answer else { continue };
                let (head, text) = ("HTTP/1.1 200 OK\r\nconnection: close\r\n", answer.to_string());
                write!(stream, "{head}content-length: {}\r\n\r\n{text}", text.len()).unwrap();
            }
        });
        let line = ["submit", "flow.toml", "--quiet"].iter().chain(flags);
        let args = Line::try_parse_from(line).ok().unwrap().submit;
        let mut client = Client::new(Server::parse(&socket.display().to_string()).unwrap()).unwrap();
        let mut output = SubmitOutput { args: &args, text: String::new() };
        let wait_result = args.wait_result(&mut client, 1, &mut output).unwrap();
        service.join().unwrap();
        std::fs::remove_file(&socket).unwrap();
        wait_result
    }

    #[test]
    fn it_is_waited_for_a_prediction_through_a_restart_of_the_service() {
        let seen = wait_result(
            "submit-restart",
            &["--wait-for-prediction"],
            vec![None, Some(shown("queued", None)), None, Some(shown("running", Some(true)))],
        );
        assert!(seen.waits.is_none() && seen.prediction.is_some());
    }

    #[test]
    fn late_submissions_are_rejected_across_a_restart_of_the_service() {
        let late = || Some(shown("running", Some(false)));
        let wait_result =
            |end| wait_result("submit-late", &["--if-late", "reject"], vec![late(), None, Some(end)]);
        let seen = wait_result(shown("rejected", Some(false)));
        assert!(seen.waits.is_none() && seen.shown.unwrap().state == State::Rejected);
        // The next service may expect something else.
        let seen = wait_result(shown("running", Some(true)));
        assert!(seen.waits.is_none() && !seen.prediction.unwrap().is_late());
    }
}
