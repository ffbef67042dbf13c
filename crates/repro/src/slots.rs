//! The kind of WOHA's Figs. 14-19: who holds how many slots over time, a picture a policy.
//!
//! Flows are stacked in the order of the document, the earlier the darker, as in the paper; one panel a kind
//! of slot. The CSV has a row for every change.

use std::fmt::Write as _;

use serde::Deserialize;
use slackline::Chosen;
use slackline::simulate::Options;
use slackline_model::{Instance, Lane, Schedule, Time};

use crate::kinds::{Artifact, Context};
use crate::spec::Figure;
use crate::workload::{Cluster, Shape, Workload};
use crate::{ReproError, parallel};

type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Pixels of a picture: width of a panel, its height, margin, gap between panels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 180.0;
const MARGIN: f64 = 60.0;
const GAP: f64 = 50.0;

/// The settings of the kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    workload: Workload,
    #[serde(default)]
    cluster: Cluster,
    /// Seed of the workload.
    seed: u64,
    policies: Vec<String>,
}

/// From `at` on, the flows hold so many slots of a lane.
struct Change {
    at: Time,
    held: Vec<i64>,
}

pub(crate) fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let settings: Settings = figure.settings()?;
    let shape = Shape {
        workload: settings.workload,
        cluster: settings.cluster,
        deadlines: None,
        weights: slackline_model::draft::Weights::Use,
        grain: None,
    };
    let problem = |problem| figure.problem(problem);
    let instance = shape.instance(settings.seed).map_err(problem)?;
    let policies = settings.policies.iter().map(|spec| Chosen::parse(spec)).collect::<Result<Vec<_>, _>>();
    let policies = policies.map_err(|unknown| figure.problem(unknown))?;
    let run = |k: usize| -> Result<Schedule, Problem> {
        Ok(slackline::simulate(&instance, &policies[k], &Options::exact(), None, None)?.schedule)
    };
    let schedules = parallel::cells(policies.len(), context, run).map_err(problem)?;
    let last = schedules.iter().flat_map(|s| s.tasks.rows()).map(|row| row.end).max().unwrap_or_default();
    let hash = figure.hash();
    let (mut rows, mut artifacts) = (Vec::new(), Vec::new());
    for (policy, schedule) in policies.iter().zip(&schedules) {
        let panels: Vec<(Lane, Vec<Change>)> = instance
            .cluster()
            .lanes()
            .iter()
            .map(|&lane| (lane, changes(&instance, schedule, lane)))
            .collect();
        for (lane, changes) in &panels {
            let row = |change: &Change| {
                let head =
                    [policy.spec().to_owned(), name(*lane).to_owned(), change.at.seconds().to_string()];
                let held = change.held.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
                head.into_iter().chain([held, hash.clone()]).collect::<Vec<_>>()
            };
            rows.extend(changes.iter().map(row));
        }
        let file = format!("{}-{}.svg", figure.id, policy.spec().replace([':', '='], "-"));
        artifacts.push(Artifact { name: file, text: picture(&instance, policy.spec(), &panels, last) });
    }
    let text = slackline_report::csv(&["policy", "slots", "seconds", "held_by_flow", "spec"], rows);
    artifacts.insert(0, Artifact { name: format!("{}.csv", figure.id), text });
    Ok(artifacts)
}

fn name(lane: Lane) -> &'static str {
    match lane {
        Lane::Map => "map",
        Lane::Reduce => "reduce",
        Lane::Any => "universal",
    }
}

/// How many slots of a lane each flow holds, whenever that changes.
fn changes(instance: &Instance, schedule: &Schedule, lane: Lane) -> Vec<Change> {
    let rows = schedule.tasks.rows().iter().filter(|row| instance.lane_of(row.phase) == lane);
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

/// The panels, one below the other, to the time `last`.
fn picture(instance: &Instance, title: &str, panels: &[(Lane, Vec<Change>)], last: Time) -> String {
    let n_flows = instance.flows().len();
    let scale = WIDTH / last.seconds().max(1.0);
    let height = panels.len() as f64 * (HEIGHT + GAP) + GAP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-size=\"16\">{title}</text>\n",
        WIDTH + 2.0 * MARGIN
    );
    for (k, (lane, changes)) in panels.iter().enumerate() {
        let slots = f64::from(instance.cluster().slots(*lane)).max(1.0);
        let bottom = GAP + k as f64 * (HEIGHT + GAP) + HEIGHT;
        let y = |held: i64| bottom - held as f64 / slots * HEIGHT;
        for flow in 0..n_flows {
            let upto = |change: &Change, n: usize| change.held[..n].iter().sum::<i64>();
            let mut top = String::new();
            let mut back = String::new();
            for (j, change) in changes.iter().enumerate() {
                let from = MARGIN + change.at.seconds() * scale;
                let to = changes.get(j + 1).map_or(from, |next| MARGIN + next.at.seconds() * scale);
                let (above, below) = (y(upto(change, flow + 1)), y(upto(change, flow)));
                let _ = write!(top, "{from:.1},{above:.1} {to:.1},{above:.1} ");
                back.insert_str(0, &format!("{to:.1},{below:.1} {from:.1},{below:.1} "));
            }
            let grey = 60 + 150 * flow / n_flows.max(1);
            let _ = writeln!(
                svg,
                "<polygon points=\"{}{}\" fill=\"rgb({grey},{grey},{})\"/>",
                top,
                back.trim_end(),
                (grey + 40).min(255)
            );
        }
        let _ = writeln!(
            svg,
            "<rect x=\"{MARGIN}\" y=\"{}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"black\"/>\n\
             <text x=\"{MARGIN}\" y=\"{}\">{} slots: {slots}</text>",
            bottom - HEIGHT,
            bottom - HEIGHT - 5.0,
            name(*lane)
        );
        for tick in 0..=5 {
            let seconds = last.seconds() * f64::from(tick) / 5.0;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{seconds:.0} s</text>",
                MARGIN + seconds * scale,
                bottom + 16.0
            );
        }
    }
    svg + "</svg>\n"
}
