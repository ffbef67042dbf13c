//! `policies`: what there is, from the registry.

use clap::Args;
use serde_json::{Value, json};
use slackline::Chosen;
use slackline::registry::{Entry, policies};
use slackline::report::table::wrapped;
use slackline::report::{Align, Table};

use super::Answer;
use crate::args::OutputArgs;
use crate::args::output::Form;
use crate::out;

/// Columns that a terminal has.
const WIDTH: usize = 110;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline policies
  slackline policies fair

A parameter follows the name: --policy fair:by=flow")]
pub(crate) struct Policies {
    /// Say everything of this policy
    #[arg(value_name = "NAME", value_parser = Chosen::parse)]
    name: Option<Chosen>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Policies) -> anyhow::Result<Answer> {
    let one = args.name.as_ref().map(Chosen::entry);
    let entries = one.map_or(policies(), std::slice::from_ref);
    let text = match args.output.form() {
        Form::Table => one.map_or_else(table, details),
        Form::Csv => csv(entries),
        Form::Json => format!("{:#}\n", Value::Array(entries.iter().map(document).collect())),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

/// Name and value of everything that is said of a policy.
fn cells(entry: &Entry) -> [(&'static str, &'static str); 10] {
    let can = entry.capabilities;
    [
        ("policy", entry.name),
        ("flows of jobs", can.flows),
        ("typed slots", can.typed),
        ("mixed speeds", can.speeds),
        ("plan gives", can.plan),
        ("online", can.online),
        ("minima", if can.minima { "kept" } else { "ignored" }),
        ("guarantee", entry.guarantee),
        ("source", entry.source),
        ("summary", entry.summary),
    ]
}

/// The first words, up to where they go into detail.
fn short(text: &str) -> &str {
    text.split([',', ';', ':']).next().unwrap_or(text)
}

fn table() -> String {
    // Sentences go below, and the rest into the details.
    const SHOWN: [&str; 6] =
        ["policy", "flows of jobs", "typed slots", "mixed speeds", "plan gives", "minima"];
    let mut table = Table::new(&SHOWN.map(|name| (name, Align::Left)));
    for entry in policies() {
        let shown = cells(entry).into_iter().filter(|(name, _)| SHOWN.contains(name));
        let cell = |(name, value)| if name == "mixed speeds" { value } else { short(value) };
        table.row(shown.map(cell));
    }
    let summaries: Vec<_> = policies().iter().map(|entry| (entry.name, entry.summary)).collect();
    let more = "\n`slackline policies NAME` says more, and lists the parameters.\n";
    table.render() + "\n" + &wrapped(&summaries, WIDTH) + more
}

fn details(entry: &Entry) -> String {
    let mut lines: Vec<(String, String)> =
        cells(entry).into_iter().skip(1).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    lines.rotate_right(1);
    let mut text = format!("{}\n{}", entry.name, wrapped(&lines, WIDTH));
    for param in entry.params {
        let what = format!("{} [default: {}]", param.help, param.values[0]);
        text.extend(["\n", entry.name, ":", param.name, "=", &param.expected(), "\n"]);
        text += &wrapped(&[("", what)], WIDTH);
    }
    text
}

fn csv(entries: &[Entry]) -> String {
    let header: Vec<&str> =
        policies().first().into_iter().flat_map(cells).map(|(name, _)| name).chain(["parameters"]).collect();
    let row = |entry: &Entry| {
        let parameters = entry.params.iter().map(|p| format!("{}={}", p.name, p.expected()));
        let parameters = parameters.collect::<Vec<_>>().join(" ");
        cells(entry).into_iter().map(|(_, value)| value.to_owned()).chain([parameters]).collect::<Vec<_>>()
    };
    slackline::report::csv(&header, entries.iter().map(row))
}

fn document(entry: &Entry) -> Value {
    let can = entry.capabilities;
    let params = entry.params.iter().map(|param| {
        let mut row =
            json!({"name": param.name, "values": param.values, "default": param.values[0], "help": param.help});
        if let Some((least, most)) = param.range {
            row["range"] = json!([least, most]);
        }
        row
    });
    json!({
        "name": entry.name, "summary": entry.summary, "source": entry.source, "guarantee": entry.guarantee,
        "capabilities": {
            "flows": can.flows, "typed_slots": can.typed, "mixed_speeds": can.speeds, "plan": can.plan,
            "online": can.online, "minima": can.minima,
        },
        "parameters": params.collect::<Vec<_>>(),
    })
}
