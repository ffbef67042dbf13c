//! The kind of WOHA's Figs. 14-19: how many slots each flow holds over time, one picture per policy.
//!
//! Time is cut into equal columns, and the CSV has the mean of each, with the flows in the order of the
//! document: the changes themselves are a hundred times as many.

use serde::Deserialize;
use slackline::PolicySpec;
use slackline::export::charts::{self, Chart, Size, Timeline};
use slackline::import::grain_span;
use slackline::simulate::Options;
use slackline_model::{Instance, Schedule, SlotKind, Time};

use crate::context::{Artifact, Context};
use crate::error::{PolicyFailure, ReproError};
use crate::spec::Figure;
use crate::values::{self, Policy};
use crate::workload::{Cluster, Problem, SaidWorkload, Shape};

/// Pixels of a picture.
const SIZE: Size = Size { width: 1020, height: 510 };

/// Columns that the time is cut into.
const COLUMNS: usize = 240;

/// The settings of the kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Slots"))]
pub(crate) struct Settings {
    /// What is scheduled.
    workload: SaidWorkload,
    /// Machines instead of the workload's own.
    #[serde(default)]
    cluster: Cluster,
    /// Seed of the workload.
    seed: u64,
    /// Policies as on the command line, a picture each.
    #[serde(deserialize_with = "values::some")]
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    policies: Vec<Policy>,
}

/// A slot kind, and the mean number of its slots that each flow holds, column by column.
type Panel = (SlotKind, Vec<Vec<f64>>);

/// From `at` on, the flows hold this number of slots of a kind.
struct Change {
    at: Time,
    held: Vec<i64>,
}

pub(crate) fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let settings: Settings = figure.settings()?;
    let shape = Shape {
        workload: settings.workload.of(figure, context)?,
        cluster: settings.cluster,
        deadlines: None,
        weights: slackline_model::draft::Weights::Use,
        grain: Some(grain_span(None).seconds()),
    };
    let problem = |problem| figure.problem(problem);
    let instance = shape.instance(settings.seed).map_err(problem)?;
    let policies: Vec<PolicySpec> = settings.policies.into_iter().map(|policy| policy.0).collect();
    let run = |k: usize| -> Result<Schedule, Problem> {
        let done = slackline::simulate(&instance, &policies[k], &Options::exact(), None, None);
        Ok(done.map_err(|error| PolicyFailure::of_simulation(&policies[k], error))?.schedule)
    };
    let schedules = context.cells(policies.len(), run).map_err(problem)?;
    let last = schedules.iter().flat_map(|s| s.tasks.rows()).map(|row| row.end).max().unwrap_or_default();
    let hash = figure.hash();
    let width = last.seconds().max(1.0) / COLUMNS as f64;
    let (mut rows, mut artifacts) = (Vec::new(), Vec::new());
    for (policy, schedule) in policies.iter().zip(&schedules) {
        let columns = |&slot_kind: &SlotKind| {
            (slot_kind, columns(&instance, &changes(&instance, schedule, slot_kind), width))
        };
        let panels: Vec<Panel> = instance.cluster().slot_kinds().iter().map(columns).collect();
        for (slot_kind, columns) in &panels {
            for (k, held) in columns.iter().enumerate() {
                let at = format!("{:.0}", k as f64 * width);
                let held = held.iter().map(|held| format!("{held:.1}")).collect::<Vec<_>>().join(" ");
                rows.push(vec![
                    policy.spec().to_owned(),
                    slot_kind.name().to_owned(),
                    at,
                    held,
                    hash.clone(),
                ]);
            }
        }
        let file = format!("{}-{}.svg", figure.id, policy.file_name());
        let mut timeline = Timeline::until(last);
        slackline::export::rows(&instance, schedule, &mut timeline).map_err(|error| problem(error.into()))?;
        let text = charts::svg(&timeline, Chart::Flows, SIZE).map_err(|error| problem(error.into()))?;
        artifacts.push(Artifact { name: file, text });
    }
    let text = slackline::report::csv(&["policy", "slots", "seconds", "held_by_flow", "spec"], rows);
    artifacts.insert(0, Artifact { name: format!("{}.csv", figure.id), text });
    Ok(artifacts)
}

/// How many slots of a kind each flow holds, whenever that changes.
fn changes(instance: &Instance, schedule: &Schedule, slot_kind: SlotKind) -> Vec<Change> {
    let rows = schedule.tasks.rows().iter().filter(|row| instance.slot_kind_of(row.phase) == slot_kind);
    let mut events: Vec<(Time, usize, i64)> = rows
        .flat_map(|row| {
            let (flow, count) = (instance.flow_of(row.phase).index(), i64::from(row.count));
            [(row.start, flow, count), (row.end, flow, -count)]
        })
        .collect();
    events.sort_unstable();
    let mut changes: Vec<Change> = Vec::new();
    let mut held = vec![0; instance.flows().len()];
    for (at, flow, count) in events {
        held[flow] += count;
        match changes.last_mut() {
            Some(change) if change.at == at => change.held.clone_from(&held),
            _ => changes.push(Change { at, held: held.clone() }),
        }
    }
    changes
}

/// Means of the slots that each flow holds, over columns of `width` seconds.
fn columns(instance: &Instance, changes: &[Change], width: f64) -> Vec<Vec<f64>> {
    let mut columns = vec![vec![0.0; instance.flows().len()]; COLUMNS];
    for pair in changes.windows(2) {
        let (start, end) = (pair[0].at.seconds(), pair[1].at.seconds());
        let first = (start / width) as usize;
        for (k, column) in columns.iter_mut().enumerate().skip(first) {
            let (from, to) = (start.max(k as f64 * width), end.min((k + 1) as f64 * width));
            if from >= end {
                break;
            }
            let share = (to - from).max(0.0) / width;
            column.iter_mut().zip(&pair[0].held).for_each(|(mean, &held)| *mean += held as f64 * share);
        }
    }
    columns
}
