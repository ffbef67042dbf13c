//! `recurrences`: the schedules of a service for recurring submissions.

use clap::Args;
use jiff::Timestamp;
use slackline::report::{Column, Table};
use slackline_serve::api::{Done, Overlap, Recurrence, Recurrences as Answered};
use slackline_serve::http::client::part;

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::{OutputArgs, ServerFlags};
use crate::terminal::{out, service};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline recurrences
  slackline recurrences --pause nightly
  slackline recurrences --remove nightly

`slackline submit --schedule` adds one, or replaces the one of its name. What was submitted of it goes on when it is paused or removed.")]
pub(crate) struct Recurrences {
    /// Submit it no more until it goes on
    #[arg(long, value_name = "NAME", group = "deed")]
    pause: Option<String>,
    /// Let it go on with its next time
    #[arg(long, value_name = "NAME", group = "deed")]
    unpause: Option<String>,
    /// Submit it no more
    #[arg(long, value_name = "NAME", group = "deed")]
    remove: Option<String>,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Recurrences, defaults: &Defaults) -> anyhow::Result<Answer> {
    let mut client = args.server.client(defaults.state())?;
    let of = |name: &str| format!("/api/v1/recurrences/{}", part(name));
    let done: Option<Done> = match (&args.pause, &args.unpause, &args.remove) {
        (Some(name), _, _) => Some(client.post(&format!("{}/pause", of(name)), None::<&()>)?),
        (_, Some(name), _) => Some(client.post(&format!("{}/unpause", of(name)), None::<&()>)?),
        (_, _, Some(name)) => Some(client.delete(&of(name))?),
        _ => None,
    };
    if let Some(done) = done {
        out::talk(done.message);
        return Ok(Answer::Yes);
    }
    let answered: Answered = client.get("/api/v1/recurrences")?;
    let text = match args.output.form() {
        Form::Json => format!("{:#}\n", serde_json::to_value(&answered)?),
        Form::Csv => csv(&answered.recurrences),
        Form::Table if answered.recurrences.is_empty() => "nothing recurs\n".to_owned(),
        Form::Table => table(&answered.recurrences).render(&out::view(args.output.file())),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

fn overlap(overlap: Overlap) -> &'static str {
    match overlap {
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
