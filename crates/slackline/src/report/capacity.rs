//! Tables and sentences for a capacity search: the answer and the tried values.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::capacity::{Axis, Capacity, Condition, Figures, Knob, Method, SearchStep};
use crate::policy_spec::PolicySpec;
use crate::report::comparison;
use crate::report::names::shown_alone;
use crate::report::number::{Unit, counted, exact, number};
use crate::report::table::{Column, Table, View, heading};

/// The question of a search, without the workload.
#[derive(Clone, Copy, Debug)]
pub struct SearchQuestion<'a> {
    /// The policy that runs the cluster.
    pub policy: &'a PolicySpec,
    /// The conditions to meet.
    pub conditions: &'a [Condition],
    /// The quantity that was varied.
    pub axis: &'a Axis,
    /// The price of a machine per hour, in any currency.
    pub price: Option<f64>,
}

/// The number of values that the table shows by default: those nearest to the answer.
const SHOWN: usize = 20;

/// The policy and the answer, in one or two sentences.
pub fn outcome(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    format!("{}: {}", shown_alone(asked.policy.spec()), sentence(found, asked))
}

/// The answer.
fn sentence(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    let SearchQuestion { conditions, axis, .. } = *asked;
    let wanted = conditions.iter().map(Condition::words).collect::<Vec<_>>().join(" and ");
    let knob = &axis.knob;
    if found.is_interrupted {
        return format!("stopped before the end: {}", so_far(found, knob, &wanted));
    }
    let Some(value) = found.found else {
        return format!("no {} in {axis} gives {wanted}", what(knob)) + unproven(found);
    };
    let hours =
        found.tried.iter().find(|tried| tried.value == value).and_then(|tried| tried.figures.as_ref());
    let price = asked.price.zip(hours).map_or_else(String::new, |(price, figures)| {
        format!(
            "; {} machine-hours cost {}",
            short(figures.machine_hours),
            short(price * figures.machine_hours)
        )
    });
    let answer = if knob.is_size() && !conditions.is_empty() {
        let verb = if value == 1.0 { "is" } else { "are" };
        format!("{} {verb} the fewest in {axis} with {wanted}", size(knob, value))
    } else {
        let with = if conditions.is_empty() { String::new() } else { format!(" of those with {wanted}") };
        format!("{knob} {} of {axis} costs least{with}", short(value))
    };
    answer + &proof(found, knob, value) + &price
}

/// The result of a cancelled search, in words.
fn so_far(found: &Capacity, knob: &Knob, wanted: &str) -> String {
    let fails = found.tried.iter().filter(|tried| !tried.meets).map(|tried| tried.value);
    match found.found {
        Some(value) => {
            let below = fails.filter(|&fails| fails < value).fold(None, |_, fails| Some(fails));
            let below = below.map_or_else(String::new, |below| format!(", {} not", does(knob, below)));
            let verb = if value == 1.0 || !knob.is_size() { "meets" } else { "meet" };
            format!("{} {verb} {wanted}{below}; values in between were not tried", size(knob, value))
        }
        None => format!("no value that was tried gives {wanted}"),
    }
}

/// The evidence for the answer.
fn proof(found: &Capacity, knob: &Knob, value: f64) -> String {
    let failed_above = found.tried.iter().find(|tried| tried.value > value && !tried.meets);
    match (found.is_monotone, failed_above) {
        (Some(false), Some(above)) => format!(
            "; but {} not, so more is not always better here: --search every checks each size",
            does(knob, above.value)
        ),
        (Some(true), _) if found.method == Method::Bisect => {
            let below = found.tried.iter().rev().find(|tried| tried.value < value);
            below.map_or_else(
                || " (the smallest size of the range)".to_owned(),
                |below| format!(" ({} not{})", does(knob, below.value), larger(found, value)),
            )
        }
        _ => String::new(),
    }
}

/// The larger sizes that were tried and meet the conditions.
fn larger(found: &Capacity, value: f64) -> String {
    let larger: Vec<f64> = found.tried.iter().map(|tried| tried.value).filter(|&size| size > value).collect();
    match (larger.len(), larger.last()) {
        (1, Some(only)) => format!(", and {} do", short(*only)),
        (n, Some(last)) => format!(", and the {n} larger sizes that were tried, up to {}, do", short(*last)),
        (_, None) => String::new(),
    }
}

/// The assumption of a bisection that found no answer.
fn unproven(found: &Capacity) -> &'static str {
    match found.method {
        Method::Bisect => "; assumed that larger sizes are never worse: --search every checks each size",
        Method::Every => "",
    }
}

/// `12 machines do`, `1 machine does`.
fn does(knob: &Knob, value: f64) -> String {
    format!("{} {}", size(knob, value), if value == 1.0 { "does" } else { "do" })
}

/// `12 machines`, `3 map slots a machine`.
fn size(knob: &Knob, value: f64) -> String {
    match knob {
        Knob::Machines => counted(value as u64, "machine"),
        Knob::Slots => format!("{} a machine", counted(value as u64, "slot")),
        Knob::MapSlots => format!("{} a machine", counted(value as u64, "map slot")),
        Knob::ReduceSlots => format!("{} a machine", counted(value as u64, "reduce slot")),
        _ => format!("{knob} {}", short(value)),
    }
}

/// `number of machines`.
fn what(knob: &Knob) -> String {
    match knob {
        Knob::Machines => "number of machines".to_owned(),
        Knob::Slots | Knob::MapSlots | Knob::ReduceSlots => {
            format!("number of {}", knob.name().replace('-', " "))
        }
        _ => knob.to_string(),
    }
}

fn short(value: f64) -> String {
    number(value, if value.fract() == 0.0 { Unit::Count } else { Unit::Measure })
}

/// The metrics of the conditions, each once.
pub(crate) fn metrics(conditions: &[Condition]) -> impl Iterator<Item = &'static str> + '_ {
    let all = move || conditions.iter().map(Condition::metric);
    all()
        .enumerate()
        .filter(move |&(k, metric)| all().take(k).all(|other| other != metric))
        .map(|(_, metric)| metric)
}

/// The valid names for `--columns`.
pub fn columns(asked: &SearchQuestion<'_>) -> Vec<&'static str> {
    let head = [asked.axis.knob.name(), "meets"].into_iter();
    head.chain(Condition::metrics())
        .chain(["cost", "machine_hours"])
        .chain(asked.price.map(|_| "price"))
        .collect()
}

/// The tried values: all of them, or those nearest to the answer.
pub fn table(found: &Capacity, asked: &SearchQuestion<'_>, all: bool, view: &View) -> String {
    let is_whole = all || view.sort.is_some();
    let from = if is_whole { 0 } else { first_shown(found) };
    let shown = &found.tried[from..];
    let most = if all { usize::MAX } else { SHOWN };
    let columns = tried_columns(shown, asked);
    let behind = shown.len().saturating_sub(most);
    let hidden = if from + behind == 0 {
        String::new()
    } else {
        format!("({} of {} values; --all shows the others)\n", shown.len() - behind, found.tried.len())
    };
    Table::of(columns).render_first(view, most) + &hidden
}

/// The columns of the tried values.
pub(crate) fn tried_columns(shown: &[SearchStep], asked: &SearchQuestion<'_>) -> Vec<Column> {
    let mut columns =
        vec![axis_column(&asked.axis.knob, shown), Column::words("meets", shown.iter().map(verdict)).rank(1)];
    let figure = |of: &dyn Fn(&Figures) -> f64| -> Vec<Option<f64>> {
        shown.iter().map(|tried| tried.figures.as_deref().map(of)).collect()
    };
    let asked_for: Vec<&str> = metrics(asked.conditions).collect();
    for metric in Condition::metrics() {
        let values = figure(&|figures| entry(figures, metric));
        let column = Column::numbers(metric, &values, comparison::unit_of(metric));
        columns.push(if asked_for.contains(&metric) { column } else { column.if_asked() });
    }
    columns.push(Column::numbers("cost", &figure(&|figures| figures.cost), Unit::Measure).rank(3));
    let hours = figure(&|figures| figures.machine_hours);
    columns.push(
        Column::numbers("machine_hours", &hours, Unit::Measure).heading(heading("machine_hours")).rank(4),
    );
    if let Some(price) = asked.price {
        let prices = figure(&|figures| price * figures.machine_hours);
        columns.push(Column::numbers("price", &prices, Unit::Measure).rank(2));
    }
    columns
}

fn axis_column(knob: &Knob, tried: &[SearchStep]) -> Column {
    let values: Vec<Option<f64>> = tried.iter().map(|tried| Some(tried.value)).collect();
    let unit = if knob.is_size() { Unit::Count } else { Unit::Measure };
    Column::numbers(knob.name(), &values, unit)
}

pub(crate) fn entry(figures: &Figures, metric: &str) -> f64 {
    let entry = figures.metrics.entries().into_iter().find(|(name, _)| *name == metric);
    entry.expect("invariant: metrics are those there are").1
}

/// The index of the first value that the table shows. The shown range contains the answer.
fn first_shown(found: &Capacity) -> usize {
    let answer = found.tried.iter().position(|tried| Some(tried.value) == found.found);
    let answer = answer.unwrap_or(found.tried.len());
    (answer + SHOWN / 2).min(found.tried.len()).saturating_sub(SHOWN)
}

fn verdict(tried: &SearchStep) -> &'static str {
    match tried.figures {
        _ if tried.meets => "yes",
        Some(_) => "no",
        None => "no, flows fail",
    }
}

/// One row per value, with all metrics and all digits.
pub fn csv(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    let mut header =
        vec![asked.axis.knob.name(), "meets", "found", "outcome", "cost", "machine_hours", "price"];
    header.extend(Condition::metrics());
    let row = |tried: &SearchStep| {
        let TriedValue { value, meets, outcome, cost, machine_hours, price, .. } = document_of(tried, asked);
        let is_found = found.found == Some(value);
        let mut cells = vec![value.to_string(), meets.to_string(), is_found.to_string(), outcome];
        cells.extend([cost, machine_hours, price].map(exact));
        cells.extend(
            Condition::metrics().map(|metric| exact(tried.figures.as_ref().map(|f| entry(f, metric)))),
        );
        cells
    };
    crate::report::csv(&header, found.tried.iter().map(row))
}

/// The smallest cluster, or the best setting, that meets conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(deny_unknown_fields, rename = "Capacity", title = "Slackline capacity")
)]
pub(crate) struct CapacityDocument {
    /// The conditions, all of which must hold.
    pub(crate) until: Vec<String>,
    /// The policy with its parameters.
    pub(crate) policy: String,
    /// What was varied: machines, slots, map-slots, reduce-slots, slowstart or heartbeat (seconds).
    pub(crate) over: String,
    /// The smallest size that meets all conditions; of settings the one that does at the least cost. Null if
    /// nothing that was tried does.
    pub(crate) found: Option<f64>,
    /// Whether sizes were tried by halves (bisect), or all of them, if need be up to the answer (every).
    pub(crate) search: String,
    /// Whether no size above the answer was tried that fails; null if none above was tried, and of settings.
    pub(crate) monotone: Option<bool>,
    /// Whether the search was stopped before its end: then a smaller size may do.
    pub(crate) interrupted: bool,
    /// Every value that was tried, smallest first.
    pub(crate) tried: Vec<TriedValue>,
}

/// A value of the varied dimension, and its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct TriedValue {
    /// The value.
    pub(crate) value: f64,
    /// Whether all conditions hold.
    pub(crate) meets: bool,
    /// Simulated to its end (done), or flows failed (failed).
    pub(crate) outcome: String,
    /// The cost of the schedule by the objective of the workload; null unless done.
    pub(crate) cost: Option<f64>,
    /// All machines for as long as the workload took, hours; null unless done.
    pub(crate) machine_hours: Option<f64>,
    /// What these hours cost at the price that was given; null without one.
    pub(crate) price: Option<f64>,
    /// The metrics of the comparison document; null unless done.
    pub(crate) metrics: Option<BTreeMap<String, f64>>,
}

/// The capacity document.
pub fn json(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    slackline_trace::to_json(&CapacityDocument {
        until: asked.conditions.iter().map(Condition::to_string).collect(),
        policy: asked.policy.spec().to_owned(),
        over: asked.axis.knob.to_string(),
        found: found.found,
        search: match found.method {
            Method::Bisect => "bisect".to_owned(),
            Method::Every => "every".to_owned(),
        },
        monotone: found.is_monotone,
        interrupted: found.is_interrupted,
        tried: found.tried.iter().map(|tried| document_of(tried, asked)).collect(),
    })
}

fn document_of(tried: &SearchStep, asked: &SearchQuestion<'_>) -> TriedValue {
    let figures = tried.figures.as_deref();
    let named = |figures: &Figures| {
        figures.metrics.entries().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    TriedValue {
        value: tried.value,
        meets: tried.meets,
        outcome: if figures.is_some() { "done" } else { "failed" }.to_owned(),
        cost: figures.map(|figures| figures.cost),
        machine_hours: figures.map(|figures| figures.machine_hours),
        price: asked.price.zip(figures).map(|(price, figures)| price * figures.machine_hours),
        metrics: figures.map(named),
    }
}

#[cfg(test)]
#[test]
fn the_published_schema_is_current() {
    let id = format!("urn:slackline:capacity:{}", slackline_trace::VERSION);
    crate::published_schema::check("capacity", &crate::published_schema::text::<CapacityDocument>(id));
}
