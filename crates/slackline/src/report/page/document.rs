//! The document with the data of a page. Times are ticks from the start of the workload, −1 for none.

use serde::Serialize;
use slackline_model::cluster::Slots;
use slackline_model::schedule::{AmRow, Outcome, TaskRow, TaskRows};
use slackline_model::{Instance, SlotKind, SlotRange};

use super::PageOrigin;
use super::clock::Clock;
use super::collect::{Drawn, Times};
use super::columns::{NONE, Scale, Table, deltas};
use super::explained::Explained;
use super::extras::Extras;
use super::series::Series;
use super::workload::Workload;
use crate::import::RecordedOptions;
use crate::report::comparison::{Row, unit_of};
use crate::report::number::{NOTHING, number};
use crate::report::page::best_policy::Answer;

#[derive(Serialize)]
pub(super) struct Document<'a> {
    pub(super) version: u32,
    /// The length of a tick, seconds.
    pub(super) tick: f64,
    /// The end of the last visible item.
    pub(super) end: i64,
    pub(super) title: &'a str,
    /// The lines above the tables, as in the command-line output.
    pub(super) head: String,
    pub(super) made: OriginFields<'a>,
    pub(super) objective: String,
    pub(super) answer: Option<Answer>,
    /// Remarks on the accuracy of the figures, one per line.
    pub(super) reliability: Vec<String>,
    pub(super) clock: Option<Clock>,
    pub(super) cluster: Cluster,
    pub(super) workload: Workload<'a>,
    pub(super) table: Table,
    pub(super) groups: Vec<GroupTable>,
    pub(super) extras: &'a Extras,
    /// Whether the document contains rows of schedules.
    pub(super) with_bars: bool,
    pub(super) policies: Vec<Policy<'a>>,
}

/// The origin of the page.
#[derive(Serialize)]
pub(super) struct OriginFields<'a> {
    version: &'static str,
    verb: &'a str,
    command: &'a str,
    /// As text, because seeds have more digits than a JavaScript number.
    seeds: Vec<String>,
    options: &'a RecordedOptions,
    workload_sha256: &'a str,
}

impl<'a> OriginFields<'a> {
    pub(super) fn of(about: &'a PageOrigin) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            verb: &about.verb,
            command: &about.command,
            seeds: about.seeds.iter().map(u64::to_string).collect(),
            options: &about.options,
            workload_sha256: &about.sha256,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Cluster {
    slot_kinds: Vec<SlotKindOf>,
    groups: Vec<Group>,
}

#[derive(Serialize)]
struct SlotKindOf {
    name: &'static str,
    slots: u32,
}

/// Equal machines. The slots of a kind are numbered by group and machine.
#[derive(Serialize)]
struct Group {
    name: String,
    count: u32,
    speed: f64,
    rack: Option<String>,
    /// By slot kind: the slots of each machine.
    slots: Vec<u32>,
}

impl Cluster {
    pub(super) fn of(cluster: &slackline_model::Cluster) -> Self {
        let slot_kinds = cluster.slot_kinds().iter();
        let of_slot_kind = |slots: Slots, slot_kind: SlotKind| match (slots, slot_kind) {
            (Slots::Generic(n), SlotKind::Any) => n,
            (Slots::MapReduce { map, .. }, SlotKind::Map) => map,
            (Slots::MapReduce { reduce, .. }, SlotKind::Reduce) => reduce,
            _ => 0,
        };
        let group = |group: &slackline_model::cluster::Group| Group {
            name: group.name.clone(),
            count: group.count,
            speed: group.speed,
            rack: group.rack.clone(),
            slots: slot_kinds.clone().map(|&slot_kind| of_slot_kind(group.slots, slot_kind)).collect(),
        };
        Self {
            slot_kinds: slot_kinds
                .clone()
                .map(|&slot_kind| SlotKindOf { name: slot_kind.name(), slots: cluster.slots(slot_kind) })
                .collect(),
            groups: cluster.groups().iter().map(group).collect(),
        }
    }
}

/// The results of a group of flows under each policy.
#[derive(Serialize)]
pub(super) struct GroupTable {
    by: &'static str,
    name: String,
    flows: usize,
    /// By policy, then by metric as in [`GROUP_METRICS`]; `None` for a policy that did not run.
    values: Vec<Option<Vec<Cell>>>,
}

/// A number, if there is one, and its text.
type Cell = (Option<f64>, String);

/// The metrics that are shown for groups.
const GROUP_METRICS: [&str; 6] =
    ["missed", "mean_response", "p95_response", "mean_wait", "mean_bounded_slowdown", "utilisation"];

/// The groups of all policies. All policies have the same groups.
pub(super) fn groups(rows: &[Row]) -> Vec<GroupTable> {
    let ran = || rows.iter().filter_map(|row| row.result.as_ref().ok());
    let Some(first) = ran().next() else { return Vec::new() };
    let metrics = |row: &Row, k: usize| {
        let group = row.result.as_ref().ok()?.groups.get(k)?;
        let value =
            |name: &str| group.metrics.iter().find(|(known, _)| *known == name).and_then(|(_, value)| *value);
        let cell = |name| {
            let value = value(name);
            (value, value.map_or_else(|| NOTHING.to_owned(), |value| number(value, unit_of(name))))
        };
        Some(GROUP_METRICS.map(cell).into())
    };
    let table = |(k, group): (usize, &crate::report::comparison::Group)| GroupTable {
        by: group.by,
        name: group.name.clone(),
        flows: group.flows,
        values: rows.iter().map(|row| metrics(row, k)).collect(),
    };
    first.groups.iter().enumerate().map(table).collect()
}

/// The results of a policy.
#[derive(Serialize)]
pub(super) struct Policy<'a> {
    name: String,
    /// The reason why there are no figures.
    refused: Option<&'a str>,
    failed: usize,
    bound: Option<f64>,
    gap: Option<f64>,
    ran: Option<ChartData<'a>>,
}

/// The data for the charts of a policy.
#[derive(Serialize)]
struct ChartData<'a> {
    /// By flow: the time from its release to its first start.
    wait: Vec<i64>,
    /// By flow: the time from its release to its completion.
    took: Vec<i64>,
    /// By flow: its cost, unless that is its response time in seconds.
    cost: Option<Vec<Option<f64>>>,
    /// By phase: the time from the release of its flow to its first held slot.
    start: Vec<i64>,
    /// By phase: the time from then to its last held slot.
    held: Vec<i64>,
    /// By slot kind: the held slots over time.
    slot_kinds: Vec<Curve>,
    /// The flows with a separate curve in `shares`. The last curve is that of all other flows.
    largest: Vec<usize>,
    shares: Vec<Curve>,
    bars: Option<Bars>,
    ams: Vec<Am>,
    choices: Vec<Choice<'a>>,
    explained: &'a [Explained],
    /// The length of the spans, seconds, if flows are explained from sums.
    spans: Option<f64>,
}

/// A curve of means over spans of equal width.
#[derive(Serialize)]
struct Curve {
    width: f64,
    means: Vec<f64>,
}

/// Rows of the schedule as columns, in the order of their starts.
#[derive(Default, Serialize)]
struct Bars {
    phase: Vec<i64>,
    /// The first task; the k-th slot runs task `task + k`.
    task: Vec<u32>,
    slot: Vec<u32>,
    slots: Vec<u32>,
    /// The differences between consecutive starts.
    start: Vec<i64>,
    length: Vec<i64>,
    startup: Vec<i64>,
    attempt: Vec<u16>,
    /// 0 finished, 1 failed, 2 killed, 3 lost.
    outcome: Vec<u8>,
}

/// The ApplicationMaster of a job.
#[derive(Serialize)]
struct Am {
    job: usize,
    slot: Option<u32>,
    start: i64,
    up: Option<i64>,
    end: i64,
}

/// A choice of a policy.
#[derive(Serialize)]
struct Choice<'a> {
    at: i64,
    rule: &'a str,
    by: &'static str,
    cost: Option<f64>,
    flows: u32,
}

impl<'a> Policy<'a> {
    pub(super) fn of(
        instance: &Instance,
        row: &'a Row,
        name: String,
        drawn: Option<&'a Drawn>,
        scale: Scale,
        with_bars: bool,
    ) -> Self {
        let figures = row.result.as_ref().ok();
        Self {
            name,
            refused: row.result.as_ref().err().map(String::as_str),
            failed: figures.map_or(0, |figures| figures.failed),
            bound: figures.and_then(|figures| figures.lower_bound),
            gap: figures.and_then(|figures| figures.gap),
            ran: drawn.map(|drawn| ChartData::of(instance, drawn, scale, with_bars)),
        }
    }
}

impl<'a> ChartData<'a> {
    fn of(instance: &Instance, drawn: &'a Drawn, scale: Scale, with_bars: bool) -> Self {
        let releases = || instance.flows().iter().map(|flow| flow.release.0);
        let since = |time: fn(&Times) -> Option<u64>| {
            let after = |(release, times)| time(times).map_or(NONE, |at: u64| scale.between(release, at));
            releases().zip(&drawn.flows).map(after).collect()
        };
        let extents = || instance.phases().iter().zip(&drawn.extents);
        let start = |(phase, extent): (&slackline_model::instance::Phase, &Option<(u64, u64)>)| {
            extent.map_or(NONE, |(first, _)| scale.between(instance.flow(phase.flow).release.0, first))
        };
        let curve = |series: &Series| Curve {
            width: series.width() as f64 / 1e6 / scale.seconds(),
            means: series.means(),
        };
        let rows = drawn.rows.as_ref().filter(|_| with_bars);
        Self {
            wait: since(|times| times.start),
            took: since(|times| times.completion),
            cost: costs(instance, &drawn.flows),
            start: extents().map(start).collect(),
            held: extents()
                .map(|(_, extent)| extent.map_or(NONE, |(first, last)| scale.between(first, last)))
                .collect(),
            slot_kinds: drawn.held.iter().map(curve).collect(),
            largest: drawn.largest.iter().map(|&flow| usize::from(flow)).collect(),
            shares: drawn.shares.iter().map(curve).collect(),
            bars: rows.map(|rows| bars(rows, scale)),
            ams: drawn.ams.iter().filter(|_| with_bars).map(|row| am(row, scale)).collect(),
            choices: drawn
                .choices
                .iter()
                .map(|choice| Choice {
                    at: scale.ticks(choice.at.0),
                    rule: &choice.rule,
                    by: choice.by.name(),
                    cost: choice.cost.filter(|cost| cost.is_finite()),
                    flows: choice.flows,
                })
                .collect(),
            explained: &drawn.explained,
            spans: drawn.spans,
        }
    }
}

/// The costs of flows, unless they equal the response times.
fn costs(instance: &Instance, flows: &[Times]) -> Option<Vec<Option<f64>>> {
    let response = |(flow, times): (&slackline_model::instance::Flow, &Times)| {
        let took = times.completion.map(|at| (at as f64 - flow.release.0 as f64) / 1e6);
        took.zip(times.cost).is_none_or(|(took, cost)| (took - cost).abs() <= 1e-5)
    };
    let rounded = |times: &Times| times.cost.map(|cost| (cost * 1e3).round() / 1e3);
    let is_response = instance.flows().iter().zip(flows).all(response);
    (!is_response).then(|| flows.iter().map(rounded).collect())
}

fn bars(rows: &TaskRows, scale: Scale) -> Bars {
    let mut order: Vec<&TaskRow> = rows.rows().iter().filter(|row| row.count > 0).collect();
    order.sort_by_key(|row| (row.start, row.phase, row.first, row.attempt));
    let mut bars = Bars::default();
    let mut starts = Vec::new();
    for row in order {
        let mut task = row.first;
        for &SlotRange { first, len } in rows.places(row) {
            bars.phase.push(i64::from(row.phase.0));
            bars.task.push(task);
            bars.slot.push(first);
            bars.slots.push(len);
            starts.push(scale.ticks(row.start.0));
            bars.length.push(scale.between(row.start.0, row.end.0));
            bars.startup.push(scale.between(row.start.0, row.start.0 + row.startup.0));
            bars.attempt.push(row.attempt);
            bars.outcome.push(Outcome::ALL.iter().position(|&known| known == row.outcome).unwrap_or(0) as u8);
            task += len;
        }
    }
    bars.start = deltas(starts);
    bars.phase = deltas(bars.phase);
    bars
}

fn am(row: &AmRow, scale: Scale) -> Am {
    Am {
        job: usize::from(row.job),
        slot: row.slot,
        start: scale.ticks(row.start.0),
        up: row.up.map(|up| scale.ticks(up.0)),
        end: scale.ticks(row.end.0),
    }
}
