//! `schedule`: the schedules of a service for recurring submissions.

use std::collections::VecDeque;

use anyhow::Context;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use slackline::report::number::duration;
use slackline::report::{Column, Table};
use slackline_serve::api::{
    Accepted, Done, Overlap, Recurrence, Recurrences, ScheduleTimes, State, Submission,
};
use slackline_serve::http::client::{Client, part, query};

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::{OutputArgs, ServerFlags, value};
use crate::terminal::{out, service};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
`slackline submit --schedule` adds a schedule, or replaces the one with the same name. Its earlier submissions continue when it \
is paused or removed.")]
pub(crate) struct ScheduleVerb {
    #[command(subcommand)]
    command: ScheduleCommand,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    /// List the schedules of a service
    List(ScheduleList),
    /// Submit the flows of a schedule now, or for its past times; its other times stay as they are
    #[command(after_help = "\
Without dates, times in its parameters, such as %Y-%m-%d, are those of now. A paused schedule can be run too.

With --from the past times of the schedule run in order (a backfill), and each has a line when it has ended. They do not wait for the \
files of --when: a time without its files fails.

Examples:
  slackline schedule run nightly
  slackline schedule run nightly --from 2026-03-01 --to 2026-03-07 --parallel 2

Exit codes: 0 submitted (with --from: all finished), 1 one has failed, 2 wrong use.")]
    Run(RunSchedule),
    /// Submit nothing more of a schedule until it is resumed
    #[command(after_help = "\
Examples:
  slackline schedule pause nightly")]
    Pause(NamedSchedule),
    /// Continue a paused schedule with its next time
    #[command(after_help = "\
Examples:
  slackline schedule resume nightly")]
    Resume(NamedSchedule),
    /// Remove a schedule
    #[command(after_help = "\
Examples:
  slackline schedule remove nightly")]
    Remove(NamedSchedule),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline schedule list
  slackline schedule list --format json")]
struct ScheduleList {
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args, Debug)]
struct RunSchedule {
    #[command(flatten)]
    schedule: NamedSchedule,
    /// First date of a backfill, in the zone of the schedule
    #[arg(long, value_name = "DATE")]
    from: Option<String>,
    /// Last date [default: now]
    #[arg(long, value_name = "DATE", requires = "from")]
    to: Option<String>,
    /// How many times of the schedule run at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "from", value_parser = value::whole::<usize>(1, 1_000))]
    parallel: usize,
}

#[derive(Args, Debug)]
struct NamedSchedule {
    /// Name of the recurring schedule, as `slackline schedule list` shows it
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    server: ServerFlags,
}

impl NamedSchedule {
    /// Posts a request for the schedule; without a verb it is removed.
    fn send(&self, defaults: &Defaults, verb: Option<&str>) -> anyhow::Result<Answer> {
        let mut client = self.server.client(defaults.state())?;
        let of = format!("/api/v1/recurrences/{}", part(&self.name));
        let done: Done = match verb {
            Some(verb) => client.post(&format!("{of}/{verb}"), None::<&()>)?,
            None => client.delete(&of)?,
        };
        out::talk(done.message);
        Ok(Answer::Yes)
    }
}

impl RunSchedule {
    fn run(&self, defaults: &Defaults) -> anyhow::Result<Answer> {
        let mut client = self.schedule.server.client(defaults.state())?;
        let of = format!("/api/v1/recurrences/{}", part(&self.schedule.name));
        let Some(from) = &self.from else {
            let accepted: Accepted = client.post(&format!("{of}/run"), None::<&()>)?;
            out::talk(accepted.message);
            return Ok(Answer::Yes);
        };
        let now = Timestamp::now().to_string();
        let to = self.to.as_ref().unwrap_or(&now);
        let range = query(&[("from", Some(from)), ("to", Some(to))]);
        let ScheduleTimes { times } = client.get(&format!("{of}/times{range}"))?;
        if times.is_empty() {
            anyhow::bail!("--from: found no past time of {} from {from} to {to}", self.schedule.name);
        }
        let (mut left, mut unfinished, mut all_finished) = (times.into_iter(), VecDeque::new(), true);
        loop {
            for at in left.by_ref().take(self.parallel - unfinished.len()) {
                let path = format!("{of}/run{}", query(&[("at", Some(&at.to_string()))]));
                let accepted: Accepted = client.post(&path, None::<&()>)?;
                unfinished.push_back((at, accepted.number.context("the submission has no number")?));
            }
            let Some((at, number)) = unfinished.pop_front() else { break };
            let ended = ended(&mut client, number)?;
            all_finished &= ended.state == State::Finished;
            out::text(None, &summary(at, &ended))?;
        }
        Ok(if all_finished { Answer::Yes } else { Answer::No })
    }
}

/// Waits until a submission has ended.
fn ended(client: &mut Client, number: u64) -> anyhow::Result<Submission> {
    loop {
        let shown: Submission = client.get(&format!("/api/v1/submissions/{number}?wait=300"))?;
        if shown.state.is_over() {
            return Ok(shown);
        }
    }
}

/// `2026-03-01 02:00 CET: finished in 41 s (submission 17)`.
fn summary(at: Timestamp, ended: &Submission) -> String {
    let zone =
        ended.zone.as_deref().and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(TimeZone::system);
    let at = at.to_zoned(zone).strftime("%Y-%m-%d %H:%M %Z").to_string();
    let took = ended.began.zip(ended.ended).map(|(began, ended)| ended.duration_since(began).as_secs_f64());
    let took = took.map_or_else(String::new, |took| format!(" in {}", duration(took)));
    let why = ended.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    format!("{at}: {}{took} (submission {}){why}\n", ended.state.name(), ended.number)
}

pub(crate) fn run(args: &ScheduleVerb, defaults: &Defaults) -> anyhow::Result<Answer> {
    match &args.command {
        ScheduleCommand::List(args) => list(args, defaults),
        ScheduleCommand::Run(args) => args.run(defaults),
        ScheduleCommand::Pause(schedule) => schedule.send(defaults, Some("pause")),
        ScheduleCommand::Resume(schedule) => schedule.send(defaults, Some("unpause")),
        ScheduleCommand::Remove(schedule) => schedule.send(defaults, None),
    }
}

fn list(args: &ScheduleList, defaults: &Defaults) -> anyhow::Result<Answer> {
    let answered: Recurrences = args.server.client(defaults.state())?.get("/api/v1/recurrences")?;
    let text = match args.output.form() {
        Form::Json => format!("{:#}\n", serde_json::to_value(&answered)?),
        Form::Csv => csv(&answered.recurrences),
        Form::Table if answered.recurrences.is_empty() => "no schedules\n".to_owned(),
        Form::Table => table(&answered.recurrences).render(&out::view(args.output.file())),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Apart => "apart",
        Overlap::Wait => "wait",
        Overlap::Skip => "skip",
        Overlap::Replace => "replace",
    }
}

fn table(all: &[Recurrence]) -> Table {
    let now = Timestamp::now();
    let words = |name: &str, cell: &dyn Fn(&Recurrence) -> String| {
        Column::words(name, all.iter().map(cell).collect::<Vec<_>>())
    };
    Table::of(vec![
        words("name", &|one| one.name.clone()),
        words("schedule", &|one| one.schedule.cron.clone()),
        words("zone", &|one| one.schedule.zone.clone().unwrap_or_default()).rank(2),
        words("next", &|one| match one.next.filter(|_| !one.paused) {
            Some(next) => service::clock_and_zone(next, now),
            None if one.paused => "paused".to_owned(),
            None => String::new(),
        }),
        words("last", &|one| one.last.map_or_else(String::new, |last| service::clock_and_zone(last, now)))
            .rank(1),
        words("overlap", &|one| overlap(one.overlap).to_owned()).rank(3),
        words("user", &|one| one.user.clone()).rank(4),
    ])
}

fn csv(all: &[Recurrence]) -> String {
    let header = ["name", "user", "schedule", "zone", "overlap", "paused", "last", "next"];
    let at = |at: Option<Timestamp>| at.map_or_else(String::new, |at| at.to_string());
    let row = |one: &Recurrence| {
        vec![
            one.name.clone(),
            one.user.clone(),
            one.schedule.cron.clone(),
            one.schedule.zone.clone().unwrap_or_default(),
            overlap(one.overlap).to_owned(),
            one.paused.to_string(),
            at(one.last),
            at(one.next),
        ]
    };
    slackline::report::csv(&header, all.iter().map(row))
}
