//! Tables and documents of the best split of map and reduce slots.

use serde::Serialize;
use slackline_model::Instance;
use slackline_trace::Simplification;

use crate::report::headline;
use crate::report::number::{Unit, counted, duration, exact, number};
use crate::report::table::{Best, Column, Table, View, fitted, heading};
use crate::tune::{Choice, Front, Method, Mode, Request, Rule, Times, Tuned};

/// The valid names for `--columns`.
pub const COLUMNS: [&str; 5] = ["map_slots", "reduce_slots", "makespan", "total_completion", "order"];

/// The number of flows of the order that the table shows by default.
const SHOWN: usize = 40;

/// The flows of a choice in its order.
fn flows(instance: &Instance, choice: &Choice) -> Vec<String> {
    choice.order.iter().map(|&job| instance.flow(instance.job(job).flow).id.clone()).collect()
}

/// The subject and the method of the tuning, in two lines.
pub fn headlines(name: &str, instance: &Instance, request: &Request, tuned: &Tuned) -> String {
    let mode = if request.config.mode == Mode::Strict { ", reduces strictly in order" } else { "" };
    let half = tuned.default.split;
    format!(
        "{name}: {}, {} on {}\n{}{mode}: {}, {} of them estimated, the others ruled out by bounds\n",
        counted(instance.flows().len() as u64, "flow"),
        headline::tasks(instance),
        counted(u64::from(half.map()) + u64::from(half.reduce()), "slot"),
        request.method.name(),
        counted(u64::from(tuned.candidates), "split"),
        number(f64::from(tuned.evaluated), Unit::Count),
    )
}

/// `mk-sf-jr: 59 map and 21 reduce slots: makespan 3,232 s, total completion 14h 41m`: the answer, as a line.
pub(crate) fn answer(request: &Request, tuned: &Tuned) -> String {
    let (split, (makespan, total)) = (tuned.best.split, seconds(&tuned.best));
    format!(
        "{}: {} map and {} reduce slots are the best split: makespan {}, total completion {}\n",
        request.method.name(),
        split.map(),
        split.reduce(),
        duration(makespan),
        duration(total),
    )
}

fn seconds(choice: &Choice) -> (f64, f64) {
    (choice.makespan.seconds(), choice.total_completion as f64 / 1e6)
}

/// `mk-jr, area`: the rule that produced an order.
fn order_name(choice: &Choice) -> &'static str {
    match choice.rule {
        None => "",
        Some((Rule::MkJr, Times::Area)) => "mk-jr, area",
        Some((Rule::MkJr, Times::Stage)) => "mk-jr, stage",
        Some((Rule::MkTctJr, Times::Area)) => "mk-tct-jr, area",
        Some((Rule::MkTctJr, Times::Stage)) => "mk-tct-jr, stage",
    }
}

/// Rows of a name, a choice, and the rule that produced its order.
type Rows<'a> = Vec<(&'static str, &'a Choice, &'static str)>;

fn compared<'a>(request: &Request, tuned: &'a Tuned) -> Rows<'a> {
    let best = match request.method {
        Method::ExMkSfJr => "the best of all orders",
        _ => order_name(&tuned.best),
    };
    let mut rows = Vec::new();
    if let Some(exact) = &tuned.exact {
        rows.push(("proportional", &tuned.best, best));
        rows.push(("exact", exact, order_name(exact)));
    } else {
        rows.push(("best", &tuned.best, best));
    }
    rows.push(("half and half", &tuned.default, order_name(&tuned.default)));
    rows.push(("half and half", &tuned.submitted, "as submitted"));
    rows
}

/// The compared splits, the gain of the best one, its order (all of it, or its first flows) and the Pareto
/// front.
pub fn table(instance: &Instance, request: &Request, tuned: &Tuned, all: bool, view: &View) -> String {
    let order = flows(instance, &tuned.best);
    let shown = if all { order.len() } else { order.len().min(SHOWN) };
    let more = match order.len() - shown {
        0 if order.is_empty() => "no flows".to_owned(),
        0 => String::new(),
        more => format!(", … ({more} more; --all shows them)"),
    };
    [
        choices(&compared(request, tuned), view),
        gains(tuned),
        fitted(&format!("order: {}{more}", order[..shown].join(", ")), view.width),
    ]
    .join("\n")
        + &tuned.front.as_ref().map_or_else(String::new, |found| format!("\n{}", front(found, view)))
}

/// The gain of the best split over the default one, and the loss of the proportional rule.
pub(crate) fn gains(tuned: &Tuned) -> String {
    let percent =
        |of: f64, than: f64| number(if than > 0.0 { (than - of) / than } else { 0.0 }, Unit::Percent);
    let (makespan, total) = seconds(&tuned.best);
    let gain = |name: &str, than: &Choice| {
        let (slower, longer) = seconds(than);
        let (makespan, total) = (percent(makespan, slower), percent(total, longer));
        format!("gain over half and half{name}: makespan {makespan}, total completion {total}\n")
    };
    let loss = tuned.exact.as_ref().map_or_else(String::new, |exact| {
        let (least, _) = seconds(exact);
        let loss = if least > 0.0 { makespan / least - 1.0 } else { 0.0 };
        format!("the scaled split is worse than the best split: makespan +{}\n", number(loss, Unit::Percent))
    });
    gain("", &tuned.default) + &gain(" as submitted", &tuned.submitted) + &loss
}

/// The Pareto front, with the choice of the paper's algorithm marked.
fn front(found: &Front, view: &View) -> String {
    let value = |choice: &Choice| (choice.makespan, choice.total_completion);
    let is_paper = |choice: &Choice| value(choice) == value(&found.paper);
    let mark = |choice: &Choice| if is_paper(choice) { "Algorithm 5" } else { "" };
    let mut rows: Rows<'_> =
        found.choices.iter().map(|choice| (mark(choice), choice, order_name(choice))).collect();
    let mut note = "";
    if !found.choices.iter().any(is_paper) {
        rows.push(("Algorithm 5", &found.paper, order_name(&found.paper)));
        note = "Algorithm 5, the paper's choice, is not on the front: another split is better in both\n";
    }
    format!(
        "Pareto front of makespan and total completion time ({} splits estimated):\n{}{note}",
        number(f64::from(found.evaluated), Unit::Count),
        choices(&rows, view)
    )
}

fn choices(rows: &Rows<'_>, view: &View) -> String {
    choice_table(rows).render(view)
}

/// The compared splits, and the Pareto front if there is one.
pub(crate) fn compared_columns(request: &Request, tuned: &Tuned) -> Vec<Column> {
    let mut rows = compared(request, tuned);
    if let Some(front) = &tuned.front {
        rows.extend(front.choices.iter().map(|choice| ("on the Pareto front", choice, order_name(choice))));
    }
    choice_table(&rows).into_columns()
}

fn choice_table(rows: &Rows<'_>) -> Table {
    let numbers = |name: &str, unit, value: &dyn Fn(&Choice) -> f64| {
        let values: Vec<Option<f64>> = rows.iter().map(|(_, choice, _)| Some(value(choice))).collect();
        Column::numbers(name, &values, unit).heading(heading(name))
    };
    Table::of(vec![
        Column::words("", rows.iter().map(|&(name, ..)| name)),
        numbers("map_slots", Unit::Count, &|choice| choice.split.map().into()).rank(1),
        numbers("reduce_slots", Unit::Count, &|choice| choice.split.reduce().into()).rank(1),
        numbers("makespan", Unit::Seconds, &|choice| seconds(choice).0).rank(1).best(Some(Best::Least)),
        numbers("total_completion", Unit::Seconds, &|choice| seconds(choice).1)
            .rank(1)
            .best(Some(Best::Least)),
        Column::words("order", rows.iter().map(|&(.., order)| order)).rank(2),
    ])
}

/// One row per split, with all digits.
pub fn csv(instance: &Instance, tuned: &Tuned) -> String {
    let row = |(name, choice): (&str, &Choice)| {
        let (makespan, total) = seconds(choice);
        [
            name.to_owned(),
            choice.split.map().to_string(),
            choice.split.reduce().to_string(),
            exact(Some(makespan)),
            exact(Some(total)),
            flows(instance, choice).join(" "),
        ]
    };
    let mut rows = vec![("best", &tuned.best)];
    rows.extend(tuned.exact.iter().map(|choice| ("exact", choice)));
    rows.extend([("default", &tuned.default), ("submitted", &tuned.submitted)]);
    if let Some(Front { choices, paper, .. }) = &tuned.front {
        rows.push(("paper", paper));
        rows.extend(choices.iter().map(|choice| ("pareto", choice)));
    }
    let header = ["what", "map_slots", "reduce_slots", "makespan", "total_completion", "order"];
    crate::report::csv(&header, rows.into_iter().map(row))
}

/// A split of the slots, an order on it, and what they give.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct TunedSplit {
    /// Map slots of the cluster.
    pub(crate) map_slots: u32,
    /// Reduce slots of the cluster.
    pub(crate) reduce_slots: u32,
    /// The flows, first to last.
    pub(crate) order: Vec<String>,
    /// Makespan, seconds.
    pub(crate) makespan: f64,
    /// Sum of the completions, seconds.
    pub(crate) total_completion: f64,
}

/// The best split of slots, and others.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields, title = "Slackline tuning"))]
pub(crate) struct Tuning {
    /// The chosen split.
    pub(crate) best: TunedSplit,
    /// The Pareto front of makespan and total completion time, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pareto: Option<Vec<TunedSplit>>,
    /// As many map as reduce slots, in the order of the method's rule.
    pub(crate) default: TunedSplit,
    /// Splits that were estimated; bounds ruled out the others.
    pub(crate) evaluated: u32,
    /// Number of splits.
    pub(crate) candidates: u32,
    /// What estimates leave out of the log: `count`, `of` and `what`, as in comparisons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>"))]
    pub(crate) not_modelled: Vec<Simplification>,
}

/// The tuning document.
pub fn json(instance: &Instance, tuned: &Tuned, not_modelled: Vec<Simplification>) -> String {
    let split = |choice: &Choice| {
        let (makespan, total_completion) = seconds(choice);
        TunedSplit {
            map_slots: choice.split.map(),
            reduce_slots: choice.split.reduce(),
            order: flows(instance, choice),
            makespan,
            total_completion,
        }
    };
    slackline_trace::to_json(&Tuning {
        best: split(&tuned.best),
        pareto: tuned.front.as_ref().map(|front| front.choices.iter().map(split).collect()),
        default: split(&tuned.default),
        evaluated: tuned.evaluated,
        candidates: tuned.candidates,
        not_modelled,
    })
}

#[cfg(test)]
#[test]
fn the_published_schema_is_current() {
    let id = format!("urn:slackline:tuning:{}", slackline_trace::VERSION);
    crate::published_schema::check("tuning", &crate::published_schema::text::<Tuning>(id));
}
