//! `schedule`: the schedules of a service for recurring submissions.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use slackline::report::{Column, Table};
use slackline_serve::api::{Done, Overlap, Recurrence, Recurrences};
use slackline_serve::http::client::part;

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::{OutputArgs, ServerFlags};
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
    /// Submit the flows of a schedule now; its times stay as they are
    #[command(after_help = "\
Times in its parameters, such as %Y-%m-%d, are those of now. A paused schedule can be run too.

Examples:
  slackline schedule run nightly")]
    Run(NamedSchedule),
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

pub(crate) fn run(args: &ScheduleVerb, defaults: &Defaults) -> anyhow::Result<Answer> {
    match &args.command {
        ScheduleCommand::List(args) => list(args, defaults),
        ScheduleCommand::Run(schedule) => schedule.send(defaults, Some("run")),
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
