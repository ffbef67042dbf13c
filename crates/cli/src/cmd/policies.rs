//! `policies`: what there is, from the registry.

use clap::Args;
use serde_json::{Value, json};
use slackline::registry::{Entry, policies};
use slackline_report::table::list;
use slackline_report::{Align, Table};

use super::Answer;
use crate::args::OutputArgs;
use crate::args::output::Form;
use crate::out;

#[derive(Args, Debug)]
#[command(after_help = "\
A parameter follows the name: --policy fair:by=flow")]
pub(crate) struct Policies {
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Policies) -> anyhow::Result<Answer> {
    let text = match args.output.form() {
        Form::Table => table(),
        Form::Csv => csv(),
        Form::Json => format!("{:#}\n", Value::Array(policies().iter().map(document).collect())),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}

/// Name and value of everything that fits a cell.
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

fn table() -> String {
    // The last two are sentences and go below.
    const SHOWN: usize = 8;
    let headings: Vec<_> = policies()
        .first()
        .into_iter()
        .flat_map(cells)
        .take(SHOWN)
        .map(|(name, _)| (name, Align::Left))
        .collect();
    let mut table = Table::new(&headings);
    let mut text = String::new();
    for entry in policies() {
        table.row(cells(entry).into_iter().take(SHOWN).map(|(_, value)| value));
        let mut lines = vec![("what it does".to_owned(), entry.summary.to_owned())];
        lines.push(("source".to_owned(), entry.source.to_owned()));
        for param in entry.params {
            let values = param.expected();
            lines.push((
                format!("{}={values}", param.name),
                format!("{} [default: {}]", param.help, param.values[0]),
            ));
        }
        text.extend(["\n", entry.name, "\n", &list(&lines)]);
    }
    table.render() + &text
}

fn csv() -> String {
    let header: Vec<&str> =
        policies().first().into_iter().flat_map(cells).map(|(name, _)| name).chain(["parameters"]).collect();
    let row = |entry: &Entry| {
        let parameters = entry.params.iter().map(|p| format!("{}={}", p.name, p.expected()));
        let parameters = parameters.collect::<Vec<_>>().join(" ");
        cells(entry).into_iter().map(|(_, value)| value.to_owned()).chain([parameters]).collect::<Vec<_>>()
    };
    slackline_report::csv(&header, policies().iter().map(row))
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
