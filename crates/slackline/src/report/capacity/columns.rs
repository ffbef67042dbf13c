//! The columns of the tried values of a capacity search.

use super::question::SearchQuestion;
use crate::capacity::{Capacity, Condition, Figures, Knob, SearchStep};
use crate::report::comparison;
use crate::report::number::{self, NOTHING, Unit};
use crate::report::table::{Column, heading};

/// The metrics of the conditions, each once.
pub(crate) fn metrics(conditions: &[Condition]) -> impl Iterator<Item = &'static str> + '_ {
    let all = move || conditions.iter().map(Condition::metric);
    all()
        .enumerate()
        .filter(move |&(k, metric)| all().take(k).all(|other| other != metric))
        .map(|(_, metric)| metric)
}

/// The valid names for `--columns`.
pub fn columns(asked: &SearchQuestion<'_>) -> Vec<String> {
    let head = [asked.axis.knob.name(), "meets"].into_iter();
    let plain = head
        .chain(Condition::metrics())
        .chain(["cost", "machine_hours"])
        .chain(asked.price.map(|_| "price"))
        .map(str::to_owned);
    let ranges = metrics(asked.conditions).chain(["cost"]).map(range_name);
    let drawn = ["chance", "draws", "difference"].map(str::to_owned).into_iter().chain(ranges);
    plain.chain(drawn.filter(|_| asked.has_draws())).collect()
}

fn range_name(metric: &str) -> String {
    format!("{metric}_range")
}

/// The columns of the tried values. With draws: means with the 80 % range of the draws, and the chance.
pub(crate) fn tried_columns(
    found: &Capacity,
    shown: &[SearchStep],
    asked: &SearchQuestion<'_>,
) -> Vec<Column> {
    let mut columns =
        vec![axis_column(&asked.axis.knob, shown), Column::words("meets", shown.iter().map(verdict)).rank(1)];
    let has_draws = asked.has_draws();
    if has_draws {
        columns.extend(chance_columns(shown, asked));
    }
    let figure = |of: &dyn Fn(&Figures) -> f64| -> Vec<Option<f64>> {
        shown.iter().map(|tried| tried.mean(of)).collect()
    };
    let asked_for: Vec<&str> = metrics(asked.conditions).collect();
    for metric in Condition::metrics() {
        let of = |figures: &Figures| entry(figures, metric);
        let unit = unit_of(metric, has_draws);
        let column = Column::numbers(metric, &figure(&of), unit);
        let is_asked = asked_for.contains(&metric);
        columns.push(if is_asked { column } else { column.if_asked() });
        if has_draws && is_asked {
            columns.push(range_column(metric, shown, &of).rank(2));
        }
    }
    let cost = |figures: &Figures| figures.cost;
    let is_by_cost = asked.conditions.is_empty() || !(asked.axis.knob.is_size() || asked.axis.knob.is_load());
    let rank = if has_draws && is_by_cost { 1 } else { 3 };
    columns.push(Column::numbers("cost", &figure(&cost), Unit::Measure).rank(rank));
    if has_draws {
        let range = range_column("cost", shown, &cost);
        columns.push(if is_by_cost { range.rank(2) } else { range.if_asked() });
        if is_by_cost {
            columns.push(difference_column(found, shown).rank(1));
        }
    }
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

/// Means of counts have decimals.
fn unit_of(metric: &str, is_mean: bool) -> Unit {
    match comparison::unit_of(metric) {
        Unit::Count if is_mean => Unit::Measure,
        unit => unit,
    }
}

/// The chance with its 95 % interval, and the number of draws. Without conditions there is no chance to show.
fn chance_columns(shown: &[SearchStep], asked: &SearchQuestion<'_>) -> Vec<Column> {
    let draws: Vec<Option<f64>> = shown.iter().map(|tried| Some(f64::from(tried.drawn()))).collect();
    let draws = Column::numbers("draws", &draws, Unit::Count).rank(3);
    let chances: Vec<Option<f64>> = shown.iter().map(|tried| Some(tried.chance())).collect();
    let text = |tried: &SearchStep| {
        let [low, high] = tried.chance_interval();
        format!("{:.0} % ({:.0} to {:.0})", tried.chance() * 100.0, low * 100.0, high * 100.0)
    };
    let chance = Column::written("chance", &chances, shown.iter().map(text).collect())
        .heading("chance\n(95 % interval)");
    if asked.conditions.is_empty() { vec![draws] } else { vec![chance, draws] }
}

/// The 10th to the 90th percentile of a figure, with the same digits in all rows.
fn range_column(metric: &str, shown: &[SearchStep], of: &dyn Fn(&Figures) -> f64) -> Column {
    let ranges: Vec<Option<[f64; 2]>> = shown.iter().map(|tried| tried.range(of)).collect();
    let texts = between(&ranges, comparison::unit_of(metric));
    let lows: Vec<Option<f64>> = ranges.iter().map(|range| range.map(|[low, _]| low)).collect();
    let heading = format!("{}\n80 % range", metric.replace('_', " "));
    Column::written(range_name(metric), &lows, texts).heading(heading)
}

/// The 95 % interval of the difference of the mean cost to that of the answer.
fn difference_column(found: &Capacity, shown: &[SearchStep]) -> Column {
    let to_answer = |tried: &SearchStep| {
        let answer = found.answer().filter(|answer| answer.value != tried.value)?;
        tried.cost_difference(answer)
    };
    let ranges: Vec<Option<[f64; 2]>> = shown.iter().map(to_answer).collect();
    let middles: Vec<Option<f64>> = ranges.iter().map(|range| range.map(|[a, b]| a.midpoint(b))).collect();
    Column::written("difference", &middles, between(&ranges, Unit::Measure))
        .heading("cost - answer\n(95 % interval)")
}

/// `3 to 12`, with the same number of decimals in all rows.
fn between(ranges: &[Option<[f64; 2]>], unit: Unit) -> Vec<String> {
    let ends: Vec<Option<f64>> =
        [0, 1].iter().flat_map(|&end| ranges.iter().map(move |range| Some((*range)?[end]))).collect();
    let texts = number::column(&ends, unit);
    let (lows, highs) = texts.split_at(ranges.len());
    let text = |((range, low), high): ((&Option<[f64; 2]>, &String), &String)| match range {
        Some(_) => format!("{} to {high}", low.strip_suffix(" %").unwrap_or(low)),
        None => NOTHING.to_owned(),
    };
    ranges.iter().zip(lows).zip(highs).map(text).collect()
}

fn axis_column(knob: &Knob, tried: &[SearchStep]) -> Column {
    let values: Vec<Option<f64>> = tried.iter().map(|tried| Some(tried.value)).collect();
    let unit = if knob.is_whole() { Unit::Count } else { Unit::Measure };
    Column::numbers(knob.name(), &values, unit)
}

pub(crate) fn entry(figures: &Figures, metric: &str) -> f64 {
    let entry = figures.metrics.entries().into_iter().find(|(name, _)| *name == metric);
    entry.expect("invariant: metrics are those there are").1
}

fn verdict(tried: &SearchStep) -> &'static str {
    match tried.draws.iter().any(|draw| draw.figures.is_some()) {
        _ if tried.meets => "yes",
        true => "no",
        false => "no, flows fail",
    }
}
