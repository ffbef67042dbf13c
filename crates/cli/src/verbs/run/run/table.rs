//! The table of a run: the result beside the prediction.

use std::collections::BTreeMap;

use slackline::PolicySpec;
use slackline::report::number::{Unit, counted, duration, instants, number};
use slackline::report::{Column, Figures, Row, Table, View, comparison};
use slackline::run::{Outcome, Prediction};

/// The data of the command that the table needs.
pub(super) struct Columns<'a> {
    pub(super) policy: &'a PolicySpec,
}

impl Columns<'_> {
    /// The flows, how far the prediction was off, and the figures of both.
    pub(super) fn table(
        &self,
        predicted: Option<&Prediction>,
        real: &Outcome,
        figures: Figures,
        view: &View,
    ) -> String {
        let row = |policy: String, figures: Figures| Row { policy, result: Ok(figures) };
        // Figures of all flows are unknown if one of them is.
        let expected = predicted.filter(|predicted| predicted.unknown.is_empty()).map(|predicted| {
            let policy = format!("{} predicted", self.policy.spec());
            row(policy, Figures::of_simulation(&predicted.simulated))
        });
        let ran = row(format!("{} ran", real.schedule.policy), figures);
        let rows: Vec<Row> = expected.into_iter().chain([ran]).collect();
        let compared = comparison::table_unmarked(&rows, view);
        let error =
            predicted.and_then(|predicted| real.error_of(predicted)).map_or_else(String::new, |off| {
                format!(
                    "completion times differ from the prediction by {} on average ({})\n",
                    duration(off.seconds),
                    number(off.share, Unit::Percent),
                )
            });
        let unknown = match predicted.map_or(0, |predicted| predicted.unknown.len()) {
            0 => String::new(),
            flows => {
                format!("no prediction of {}: the history has not all jobs\n", counted(flows as u64, "flow"))
            }
        };
        let predicted = predicted.map(Prediction::completions).unwrap_or_default();
        format!("{}{error}{unknown}\n{compared}", flow_table(&predicted, real, view))
    }
}

/// Flow by flow: predicted and actual completion against the deadline.
fn flow_table(predicted: &BTreeMap<&str, f64>, real: &Outcome, view: &View) -> String {
    let rows = &real.schedule.flows;
    let id = |k: usize| real.instance.flow(rows[k].flow).id.as_str();
    let deadline = |k: usize| real.instance.flow(rows[k].flow).deadline.map(slackline_model::Time::seconds);
    let all = || 0..rows.len();
    let at = |name: &str, values: Vec<Option<f64>>| {
        Column::written(name, &values, instants(&values, real.instance.start()))
    };
    let verdict = |k: usize| match (rows[k].completion, deadline(k)) {
        (None, _) => "failed",
        (Some(c), Some(d)) if slackline_model::cost::is_late(c, d) => "late",
        (Some(_), Some(_)) => "on time",
        (Some(_), None) => "",
    };
    let table = Table::of(vec![
        Column::words("flow", all().map(id)),
        at("release", all().map(|k| Some(rows[k].release)).collect()).rank(3),
        at("deadline", all().map(deadline).collect()).rank(1),
        at("predicted", all().map(|k| predicted.get(id(k)).copied()).collect())
            .heading("predicted\ncompletion")
            .rank(2),
        at("completion", all().map(|k| rows[k].completion).collect()),
        Column::words("status", all().map(verdict)).heading(""),
    ]);
    table.render(view)
}
