//! `--raw` and `--raw-flows`: the results of each file, seed and policy, for other programs.

use std::path::Path;

use serde_json::{Map, Value, json};
use slackline::PolicySpec;
use slackline_model::Time;
use slackline_model::cost::is_late;
use slackline_trace::reading::format::ending;

use super::round::Round;
use crate::terminal::out;

/// Rows with the same columns.
struct Rows {
    header: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    fn write(self, file: &Path) -> anyhow::Result<()> {
        let Self { header, rows } = self;
        if ending(&file.to_string_lossy()).as_deref() == Some("csv") {
            let cell = |value: Value| match value {
                Value::Null => String::new(),
                Value::String(text) => text,
                other => other.to_string(),
            };
            let cells = |row: Vec<Value>| row.into_iter().map(cell).collect::<Vec<_>>();
            return out::text(Some(file), &slackline::report::csv(&header, rows.into_iter().map(cells)));
        }
        out::data(Some(file), |out| {
            rows.into_iter().try_for_each(|row| {
                let entries = header.iter().map(|name| (*name).to_owned()).zip(row);
                writeln!(out, "{}", Value::Object(entries.collect::<Map<_, _>>()))
            })
        })
    }
}

/// The columns that say which simulation a row is of.
const OF: [&str; 4] = ["sample", "seed", "machines", "policy"];

fn of(round: &Round, policy: &PolicySpec) -> Vec<Value> {
    let name = round.name.as_ref().map_or(Value::Null, |name| json!(name));
    vec![name, json!(round.seed), json!(round.machines), json!(policy.spec())]
}

/// Writes a row for each file or piece, seed, size and policy.
pub(super) fn write_rounds(file: &Path, sizes: &[Vec<Round>], policies: &[PolicySpec]) -> anyhow::Result<()> {
    let rounds = || sizes.iter().flatten();
    let figures = || rounds().flat_map(|round| &round.rows).filter_map(|row| row.result.as_ref().ok());
    let mut metrics: Vec<&'static str> = vec!["cost", "lower_bound", "gap"];
    for (name, _) in figures().flat_map(|figures| &figures.metrics) {
        if !metrics.contains(name) {
            metrics.push(name);
        }
    }
    metrics.push("failed");
    let row = |round: &Round, k: usize| {
        let result = &round.rows[k].result;
        let number = |name: &&str| json!(result.as_ref().ok().and_then(|figures| figures.value(name)));
        let refused = result.as_ref().err().map_or(Value::Null, |reason| json!(reason));
        of(round, &policies[k]).into_iter().chain(metrics.iter().map(number)).chain([refused]).collect()
    };
    let rows = rounds().flat_map(|round| (0..policies.len()).map(move |k| row(round, k))).collect();
    let header = OF.into_iter().chain(metrics.iter().copied()).chain(["refused"]).collect();
    Rows { header, rows }.write(file)
}

/// Writes a row for each flow of each file or piece, seed, size and policy. Times are in seconds.
pub(super) fn write_flows(file: &Path, sizes: &[Vec<Round>], policies: &[PolicySpec]) -> anyhow::Result<()> {
    let header = ["flow", "release", "start", "completion", "response", "deadline", "late", "cost"];
    let mut rows = Vec::new();
    for round in sizes.iter().flatten() {
        let Some((sample, flows)) = &round.flows_of else { continue };
        let instance = &sample.loaded.instance;
        for (policy, flows) in policies.iter().zip(flows) {
            for row in flows.iter().filter(|row| instance.flows().contains(row.flow)) {
                let flow = instance.flow(row.flow);
                let deadline = flow.deadline.map(Time::seconds);
                let late = row.completion.zip(deadline).map(|(completion, due)| is_late(completion, due));
                let response = row.completion.map(|completion| completion - row.release);
                let cells = [
                    json!(flow.id),
                    json!(row.release),
                    json!(row.start),
                    json!(row.completion),
                    json!(response),
                    json!(deadline),
                    json!(late),
                    json!(row.cost),
                ];
                rows.push(of(round, policy).into_iter().chain(cells).collect());
            }
        }
    }
    Rows { header: OF.into_iter().chain(header).collect(), rows }.write(file)
}
