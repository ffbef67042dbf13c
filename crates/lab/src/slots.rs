//! The kind of WOHA's Figs. 14-19: how many slots each flow holds over time, one picture per policy.
//!
//! Flows are stacked in the order of the document, the first at the bottom; one panel per kind of slot. Time is
//! cut into equal columns, and picture and CSV have the mean of each: the changes themselves are a hundred
//! times as many as a picture can show.

use std::fmt::Write as _;

use serde::Deserialize;
use slackline::PolicySpec;
use slackline::import::grain_span;
use slackline::simulate::Options;
use slackline_model::{Instance, Schedule, SlotKind, Time};

use crate::context::{Artifact, Context};
use crate::error::{PolicyFailure, ReproError};
use crate::spec::Figure;
use crate::values::{self, Policy};
use crate::workload::{Cluster, SaidWorkload, Shape};

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Pixels of a picture: width of a panel, its height, margin, gap between panels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 180.0;
const MARGIN: f64 = 60.0;
const GAP: f64 = 50.0;

/// Columns that the time is cut into.
const COLUMNS: usize = 240;

/// One for each flow, and then again from the first: apart from each other in grey, too.
const COLOURS: [&str; 6] = ["#23395d", "#c8553d", "#f2c14e", "#5f9e6e", "#8d6a9f", "#9aa5b1"];

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

/// A slot kind, and how many of its slots each flow holds on average, column by column.
type Panel = (SlotKind, Vec<Vec<f64>>);

/// From `at` on, the flows hold so many slots of a kind.
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
                    name(*slot_kind).to_owned(),
                    at,
                    held,
                    hash.clone(),
                ]);
            }
        }
        let file = format!("{}-{}.svg", figure.id, policy.file_name());
        let text = picture(&instance, schedule, policy.spec(), &panels, width);
        artifacts.push(Artifact { name: file, text });
    }
    let text = slackline::report::csv(&["policy", "slots", "seconds", "held_by_flow", "spec"], rows);
    artifacts.insert(0, Artifact { name: format!("{}.csv", figure.id), text });
    Ok(artifacts)
}

fn name(slot_kind: SlotKind) -> &'static str {
    match slot_kind {
        SlotKind::Map => "map",
        SlotKind::Reduce => "reduce",
        SlotKind::Any => "universal",
    }
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

/// Means of what each flow holds over columns of that many seconds.
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

/// The panels, one below the other, with a legend above.
fn picture(instance: &Instance, schedule: &Schedule, title: &str, panels: &[Panel], width: f64) -> String {
    let last = width * COLUMNS as f64;
    let height = panels.len() as f64 * (HEIGHT + GAP) + GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-size=\"16\">{title}</text>\n",
        WIDTH + 2.0 * MARGIN
    );
    legend(&mut svg, instance, schedule);
    for (k, (slot_kind, columns)) in panels.iter().enumerate() {
        let slots = f64::from(instance.cluster().slots(*slot_kind)).max(1.0);
        let bottom = GAP + k as f64 * (HEIGHT + GAP) + HEIGHT;
        // The whole stack first, then the flows below its last one, each over the one before.
        for flow in (0..instance.flows().len()).rev() {
            let upto = |held: &Vec<f64>| held[..=flow].iter().sum::<f64>() / slots * HEIGHT;
            let path = outline(columns.iter().map(upto), bottom);
            let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{}\"/>", colour(flow));
        }
        let _ = writeln!(
            svg,
            "<rect x=\"{MARGIN}\" y=\"{}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"black\"/>\n\
             <text x=\"{MARGIN}\" y=\"{}\">{} slots held</text>",
            bottom - HEIGHT,
            bottom - HEIGHT - 6.0,
            name(*slot_kind)
        );
        for half in 0..=2 {
            let (held, y) = (slots * f64::from(half) / 2.0, bottom - HEIGHT * f64::from(half) / 2.0 + 4.0);
            let x = MARGIN - 6.0;
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{held}</text>");
        }
        deadlines(&mut svg, instance, bottom, last);
        for tick in 0..=5 {
            let share = f64::from(tick) / 5.0;
            let (x, y, seconds) = (MARGIN + share * WIDTH, bottom + 17.0, last * share);
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{seconds:.0} s</text>");
        }
    }
    svg + "</svg>\n"
}

fn colour(flow: usize) -> &'static str {
    COLOURS[flow % COLOURS.len()]
}

/// The area below a row of columns of these heights; columns of one height are drawn as one.
fn outline(heights: impl Iterator<Item = f64>, bottom: f64) -> String {
    let step = WIDTH / COLUMNS as f64;
    let mut path = format!("M{MARGIN},{bottom}");
    let mut before = String::new();
    for (k, height) in heights.enumerate() {
        let y = format!("{:.1}", bottom - height);
        if y != before {
            let _ = write!(path, "H{:.1}V{y}", MARGIN + k as f64 * step);
            before = y;
        }
    }
    let _ = write!(path, "H{}V{bottom}Z", MARGIN + WIDTH);
    path
}

/// Which colour is which flow, when it was done, and when it was to be.
fn legend(svg: &mut String, instance: &Instance, schedule: &Schedule) {
    let n = instance.flows().len().min(COLOURS.len());
    let mut done = vec![Time::ZERO; instance.flows().len()];
    for row in schedule.tasks.rows() {
        let flow = instance.flow_of(row.phase).index();
        done[flow] = done[flow].max(row.end);
    }
    for (k, flow) in instance.flows().iter().enumerate().take(n) {
        let x = MARGIN + WIDTH - 235.0 * (n - k) as f64;
        let due = flow.deadline.map_or(String::new(), |due| {
            let late = if done[k] > due { ", late" } else { "" };
            format!(" (due {:.0} s{late})", due.seconds())
        });
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"11\" width=\"12\" height=\"12\" fill=\"{}\"/>\n\
             <text x=\"{}\" y=\"22\" font-size=\"12\">{}: done {:.0} s{due}</text>",
            colour(k),
            x + 17.0,
            flow.id.replace('&', "&amp;").replace('<', "&lt;"),
            done[k].seconds()
        );
    }
}

/// A dashed line in each flow's colour where it is due.
fn deadlines(svg: &mut String, instance: &Instance, bottom: f64, last: f64) {
    for (k, flow) in instance.flows().iter().enumerate() {
        let Some(due) = flow.deadline.map(Time::seconds).filter(|&due| due <= last) else { continue };
        let (x, top) = (MARGIN + due / last * WIDTH, bottom - HEIGHT - 10.0);
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1},{top}V{bottom}\" stroke=\"white\" stroke-width=\"4\"/>\n\
             <path d=\"M{x:.1},{top}V{bottom}\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"6 3\"/>",
            colour(k)
        );
    }
}
