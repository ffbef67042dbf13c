//! Tables and sentences for a capacity search: the answer and the tried values.

mod answer;
mod columns;
mod question;

use std::collections::BTreeMap;

use serde::Serialize;
use slackline_trace::Simplification;

pub use self::answer::outcome;
pub(crate) use self::answer::statement;
pub use self::columns::columns;
pub(crate) use self::columns::{entry, metrics, tried_columns};
pub use self::question::SearchQuestion;
use crate::capacity::{Capacity, Condition, Figures, Method, SearchStep};
use crate::report::number::exact;
use crate::report::table::{Table, View};

/// The number of values that the table shows by default: those nearest to the answer.
const SHOWN: usize = 20;

/// The tried values: all of them, or those nearest to the answer.
pub fn table(found: &Capacity, asked: &SearchQuestion<'_>, all: bool, view: &View) -> String {
    let is_whole = all || view.sort.is_some();
    let from = if is_whole { 0 } else { first_shown(found) };
    let shown = &found.tried[from..];
    let most = if all { usize::MAX } else { SHOWN };
    let columns = tried_columns(found, shown, asked);
    let behind = shown.len().saturating_sub(most);
    let hidden = if from + behind == 0 {
        String::new()
    } else {
        format!("({} of {} values; --all shows the others)\n", shown.len() - behind, found.tried.len())
    };
    Table::of(columns).render_first(view, most) + &hidden
}

/// The index of the first value that the table shows. The shown range contains the answer.
fn first_shown(found: &Capacity) -> usize {
    let answer = found.tried.iter().position(|tried| Some(tried.value) == found.found);
    let answer = answer.unwrap_or(found.tried.len());
    (answer + SHOWN / 2).min(found.tried.len()).saturating_sub(SHOWN)
}

/// One row per value, with all metrics and all digits. With draws, metrics are means; the number of draws, the
/// chance with its interval, and the 80 % ranges of the cost and of the metrics of the conditions follow.
pub fn csv(found: &Capacity, asked: &SearchQuestion<'_>) -> String {
    let mut header =
        vec![asked.axis.knob.name(), "meets", "found", "outcome", "cost", "machine_hours", "price"];
    header.extend(Condition::metrics());
    let mut header: Vec<String> = header.into_iter().map(str::to_owned).collect();
    let ranged: Vec<&str> = ["cost"].into_iter().chain(metrics(asked.conditions)).collect();
    if asked.rule.is_some() {
        header.extend(["draws", "chance", "chance_low", "chance_high", "tied"].map(str::to_owned));
        header.extend(ranged.iter().flat_map(|name| [format!("{name}_p10"), format!("{name}_p90")]));
    }
    let row = |tried: &SearchStep| {
        let TriedValue { value, meets, outcome, cost, machine_hours, price, draws, .. } =
            document_of(found, tried, asked);
        let is_found = found.found == Some(value);
        let mut cells = vec![value.to_string(), meets.to_string(), is_found.to_string(), outcome];
        cells.extend([cost, machine_hours, price].map(exact));
        cells.extend(Condition::metrics().map(|metric| exact(tried.mean(&|f| entry(f, metric)))));
        if let Some(draws) = draws {
            let ValueDraws { draws, chance, chance_low, chance_high, tied, p10, p90 } = draws;
            cells.push(draws.to_string());
            cells.extend([chance, chance_low, chance_high].map(|value| value.to_string()));
            cells.push(tied.to_string());
            let ends = ranged.iter().flat_map(|&name| [p10.get(name).copied(), p90.get(name).copied()]);
            cells.extend(ends.map(exact));
        }
        cells
    };
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
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
    /// What was varied: machines, slots, map-slots, reduce-slots, speed, load, slowstart, heartbeat (seconds),
    /// capacity:QUEUE (percent) or param:NAME.
    pub(crate) over: String,
    /// The smallest size that meets all conditions; the largest load up to which all that were tried do; of settings
    /// the one that does at the least cost. Null if
    /// nothing that was tried does.
    pub(crate) found: Option<f64>,
    /// Whether sizes were tried by halves (bisect), or all of them, if need be up to the answer (every).
    pub(crate) search: String,
    /// Whether no size above the answer was tried that fails; null if none above was tried, and of settings.
    pub(crate) monotone: Option<bool>,
    /// Whether the search was stopped before its end: then a smaller size may do.
    pub(crate) interrupted: bool,
    /// How many draws there are at a value; absent if nothing is random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) random: Option<RandomSearch>,
    /// What simulations leave out of the log: `count`, `of` and `what`, as in comparisons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<BTreeMap<String, serde_json::Value>>"))]
    pub(crate) not_modelled: Vec<Simplification>,
    /// Every value that was tried, smallest first.
    pub(crate) tried: Vec<TriedValue>,
}

/// The rule for the number of draws.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct RandomSearch {
    /// The fraction of draws in which all conditions must hold.
    pub(crate) confidence: f64,
    /// The fixed number of draws at each value; null if a sequential test decides.
    pub(crate) seeds: Option<u32>,
    /// Whether the time limit ended the draws.
    pub(crate) out_of_time: bool,
}

/// The draws of a value. Values are compared with the same seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct ValueDraws {
    /// The number of draws.
    pub(crate) draws: u32,
    /// The fraction of draws in which all conditions hold.
    pub(crate) chance: f64,
    /// The low end of the 95 % interval of the chance (Wilson).
    pub(crate) chance_low: f64,
    /// Its high end.
    pub(crate) chance_high: f64,
    /// Whether the mean cost is about that of the answer: the 95 % interval of the paired difference
    /// contains 0. False for sizes.
    pub(crate) tied: bool,
    /// The 10th percentiles of the cost and of the metrics of the conditions; empty if flows always fail.
    pub(crate) p10: BTreeMap<String, f64>,
    /// The 90th percentiles.
    pub(crate) p90: BTreeMap<String, f64>,
}

/// A value of the varied dimension, and its result. With draws, numbers are means over the draws that end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct TriedValue {
    /// The value.
    pub(crate) value: f64,
    /// Whether all conditions hold; with draws, whether they hold often enough.
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
    /// The draws; absent if nothing is random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) draws: Option<ValueDraws>,
}

/// The capacity document of a log of which simulations leave out `not_modelled`.
pub fn json(found: &Capacity, asked: &SearchQuestion<'_>, not_modelled: Vec<Simplification>) -> String {
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
        random: asked.rule.map(|rule| RandomSearch {
            confidence: rule.confidence,
            seeds: rule.number,
            out_of_time: found.is_out_of_time,
        }),
        not_modelled,
        tried: found.tried.iter().map(|tried| document_of(found, tried, asked)).collect(),
    })
}

fn document_of(found: &Capacity, tried: &SearchStep, asked: &SearchQuestion<'_>) -> TriedValue {
    let metric = |name: &'static str| Some((name.to_owned(), tried.mean(&|figures| entry(figures, name))?));
    let metrics: BTreeMap<String, f64> = Condition::metrics().filter_map(metric).collect();
    let machine_hours = tried.mean(&|figures| figures.machine_hours);
    TriedValue {
        value: tried.value,
        meets: tried.meets,
        outcome: if metrics.is_empty() { "failed" } else { "done" }.to_owned(),
        cost: tried.mean(&|figures| figures.cost),
        machine_hours,
        price: asked.price.zip(machine_hours).map(|(price, hours)| price * hours),
        metrics: Some(metrics).filter(|metrics| !metrics.is_empty()),
        draws: asked.rule.map(|_| draws_of(found, tried, asked)),
    }
}

fn draws_of(found: &Capacity, tried: &SearchStep, asked: &SearchQuestion<'_>) -> ValueDraws {
    let [chance_low, chance_high] = tried.chance_interval();
    let names = ["cost"].into_iter().chain(metrics(asked.conditions));
    let of = |name: &'static str| {
        move |figures: &Figures| if name == "cost" { figures.cost } else { entry(figures, name) }
    };
    let ranges: Vec<_> = names.filter_map(|name| Some((name.to_owned(), tried.range(&of(name))?))).collect();
    let end = |end: usize| ranges.iter().map(|(name, range)| (name.clone(), range[end])).collect();
    ValueDraws {
        draws: tried.drawn(),
        chance: tried.chance(),
        chance_low,
        chance_high,
        tied: found.tied.contains(&tried.value),
        p10: end(0),
        p90: end(1),
    }
}

#[cfg(test)]
#[test]
fn the_published_schema_is_current() {
    let id = format!("urn:slackline:capacity:{}", slackline_trace::VERSION);
    crate::published_schema::check("capacity", &crate::published_schema::text::<CapacityDocument>(id));
}
