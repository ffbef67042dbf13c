//! Tables and documents of the policies of a registry.

use serde_json::{Value, json};
use slackline_algo::registry::PolicyEntry;

use crate::capabilities::{Feature, planned, sentences, values};
use crate::policy_spec::PlanForm;
use crate::report::table::{Align, Table, View, wrapped};

/// The name and the value of every property of a policy.
fn cells(entry: &PolicyEntry) -> [(&'static str, &'static str); 9] {
    let can = sentences(entry);
    [
        ("policy", entry.name),
        ("flows of jobs", can.flows),
        ("map and reduce slots", can.map_reduce_slots),
        ("mixed speeds", can.speeds),
        ("plan gives", can.plan),
        ("minima", can.minima),
        ("guarantee", entry.guarantee),
        ("source", entry.source),
        ("summary", entry.summary),
    ]
}

/// The first words of a text, up to the details.
fn short(text: &str) -> &str {
    text.split([',', ';', ':']).next().unwrap_or(text)
}

/// One row per policy, with a line about each below.
pub fn table(entries: &[&PolicyEntry], view: &View) -> String {
    // Sentences are shown below the table, and the rest in the details.
    const SHOWN: [&str; 6] =
        ["policy", "flows of jobs", "map and reduce slots", "mixed speeds", "plan gives", "minima"];
    let mut table = Table::new(&SHOWN.map(|name| (name, Align::Left)));
    for entry in entries {
        let shown = cells(entry).into_iter().filter(|(name, _)| SHOWN.contains(name));
        let cell = |(name, value)| if name == "mixed speeds" { value } else { short(value) };
        table.row(shown.map(cell));
    }
    let summaries: Vec<_> = entries.iter().map(|entry| (entry.name, entry.summary)).collect();
    let more = "\n`slackline policies NAME` has details and parameters.\n";
    table.render(view) + "\n" + &wrapped(&summaries, view.width) + more
}

/// All properties of one policy.
pub fn details(entry: &PolicyEntry, view: &View) -> String {
    let mut lines: Vec<(&str, &str)> = cells(entry).into_iter().skip(1).collect();
    lines.rotate_right(1);
    let mut text = format!("{}\n{}", entry.name, wrapped(&lines, view.width));
    for param in entry.params {
        let what = format!("{} [default: {}]", param.help, param.default);
        text.extend(["\n", entry.name, ":", param.name, "=", &values(param), "\n"]);
        text += &wrapped(&[("", what)], view.width);
    }
    for paragraph in entry.page {
        text += "\n";
        text += &wrapped(&[("", *paragraph)], view.width);
    }
    text
}

/// One row per policy.
pub fn csv(entries: &[&PolicyEntry]) -> String {
    let header: Vec<&str> = entries
        .first()
        .into_iter()
        .flat_map(|first| cells(first))
        .map(|(name, _)| name)
        .chain(["parameters"])
        .collect();
    let row = |entry: &&PolicyEntry| {
        let parameters = entry.params.iter().map(|param| format!("{}={}", param.name, values(param)));
        let parameters = parameters.collect::<Vec<_>>().join(" ");
        cells(entry).into_iter().map(|(_, value)| value.to_owned()).chain([parameters]).collect::<Vec<_>>()
    };
    crate::report::csv(&header, entries.iter().map(row))
}

/// The policies as JSON.
pub fn json(entries: &[&PolicyEntry]) -> String {
    slackline_trace::to_json(&Value::Array(entries.iter().map(|entry| document(entry)).collect()))
}

fn document(entry: &PolicyEntry) -> Value {
    let can = entry.capabilities;
    let planned: Vec<_> = planned(can, &entry.planner).into_iter().map(Feature::name).collect();
    let params = entry.params.iter().map(|param| {
        json!({
            "name": param.name, "default": param.default, "values": param.words(),
            "expected": param.expected(), "help": param.help,
        })
    });
    json!({
        "name": entry.name, "summary": entry.summary, "source": entry.source, "guarantee": entry.guarantee,
        "capabilities": {
            "flows": can.flows.name(), "map_reduce_slots": can.map_reduce_slots.name(), "speeds": can.speeds.name(),
            "plan": PlanForm::of(&entry.planner).name(), "planned": planned, "minima": can.minima,
        },
        "parameters": params.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_follows_the_parameters_within_the_width() {
        let said = details(&slackline_algo::auto::ENTRY, &View::default());
        let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text} in\n{said}"));
        assert!(
            at("auto:effort=") < at("When a flow arrives,")
                && at("When a flow arrives,") < at("headroom=yes:")
        );
        assert!(said.lines().all(|line| line.chars().count() <= View::default().width), "{said}");
    }
}
