//! The bounds of a run: a lower bound at each decision, and the cost of each rule.

use slackline_policy::Choice;
use slackline_trace::Meta;
use slackline_trace::documents::schedule::RuleCost;

use crate::certificates::Certificates;
use crate::report::number::Unit;
use crate::report::table::{Column, Table, View};

/// The number of decisions that the table shows by default: the first ones.
const SHOWN: usize = 20;

/// Copies certificates into the metadata of the schedule document.
pub fn note(certificates: &Certificates, meta: &mut Meta) {
    for (choice, &bound) in meta.choices.iter_mut().zip(&certificates.left) {
        choice.bound = Some(bound);
    }
    let rule = |(policy, cost): &(String, Option<f64>)| RuleCost { policy: policy.clone(), cost: *cost };
    meta.rules = certificates.rules.iter().map(rule).collect();
}

/// Two tables. The first has a row for each decision that the policy reports: the estimated cost of the flows
/// that had arrived, and a lower bound on the cost of any schedule from then on. The second has the cost of
/// each rule alone, relative to `cost`.
pub fn tables(
    certificates: &Certificates,
    choices: &[Choice],
    cost: Option<f64>,
    all: bool,
    view: &View,
) -> String {
    let over = |cost: f64, least: f64| (least > 0.0).then(|| cost / least - 1.0);
    let gaps: Vec<Option<f64>> = choices
        .iter()
        .zip(&certificates.left)
        .map(|(choice, &bound)| over(choice.cost?, bound).filter(|gap| gap.is_finite()))
        .collect();
    let column = |name, values: &mut dyn Iterator<Item = f64>, unit| {
        Column::numbers(name, &values.map(Some).collect::<Vec<_>>(), unit)
    };
    let decisions = Table::of(vec![
        column("decided at", &mut choices.iter().map(|choice| choice.at.seconds()), Unit::Seconds),
        Column::words("rule", choices.iter().map(|choice| &*choice.rule)),
        Column::words("by", choices.iter().map(|choice| choice.by.name())),
        column("flows", &mut choices.iter().map(|choice| f64::from(choice.flows)), Unit::Count),
        Column::numbers(
            "believed",
            &choices.iter().map(|choice| choice.cost).collect::<Vec<_>>(),
            Unit::Measure,
        ),
        column("at least", &mut certificates.left.iter().copied(), Unit::Measure),
        Column::numbers("gap", &gaps, Unit::Gap),
    ]);
    let rules: Vec<&str> = certificates.rules.iter().map(|(rule, _)| rule.as_str()).collect();
    let costs: Vec<Option<f64>> = certificates.rules.iter().map(|&(_, cost)| cost).collect();
    let more: Vec<Option<f64>> = costs.iter().map(|&rule| over(rule?, cost?)).collect();
    let rules = Table::of(vec![
        Column::words("each rule alone", rules),
        Column::numbers("cost", &costs, Unit::Measure),
        Column::numbers("more", &more, Unit::Percent),
    ]);
    let most = if all { usize::MAX } else { SHOWN };
    let hidden = choices.len().saturating_sub(most);
    let hidden =
        if hidden > 0 { format!("… {hidden} more decisions (--all shows them)\n") } else { String::new() };
    let plain = View { sort: None, columns: Vec::new(), ..view.clone() };
    let decisions = match choices {
        [] => String::new(),
        _ => decisions.render_first(&plain, most) + &hidden + "\n",
    };
    decisions + &rules.render_first(&plain, usize::MAX)
}
