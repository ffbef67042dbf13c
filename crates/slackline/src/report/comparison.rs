//! Compares policies: one row per policy, one column per metric.

mod document;
mod groups;
mod records;
mod remarks;
mod sizes;
mod table;

use slackline_judge::Metrics;
use slackline_model::schedule::FlowResult;
use slackline_model::{Instance, Schedule};
use slackline_policy::unfinished::Unfinished;

use crate::recorded::DISTANCE;
use crate::report::names;
use crate::report::number::{NOTHING, Unit, column, counted, duration, number};
use crate::report::table::{Best, Column, Table, View, heading};
use crate::simulate::{Crowding, Simulated};

pub use document::{ComparisonSubject, json};
pub use groups::{GROUPS, Group, groups};
pub use records::{csv, csv_by};
pub(crate) use remarks::crowding_of;
pub use remarks::{crowding, distances};
pub use sizes::{MACHINES, OnSize, csv_of_sizes, csv_of_spreads, spreads_of_sizes, table_of_sizes};
pub(crate) use table::marked_columns;
pub use table::table;

/// The result of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy with its parameters.
    pub policy: String,
    /// Its figures, or the reason why there are none.
    pub result: Result<Figures, String>,
}

impl Row {
    /// A simulation, with the figures of each group of flows.
    pub fn of_simulation(instance: &Instance, simulated: &Simulated) -> Self {
        let groups = groups(instance, &simulated.flows);
        let figures = Figures { groups, ..Figures::of_simulation(simulated) };
        Self { policy: simulated.schedule.policy.clone(), result: Ok(figures) }
    }
}

/// Metrics by their names in the comparison document, in its order. A metric of finished flows is `None` if
/// no flow finished.
pub type Named = Vec<(&'static str, Option<f64>)>;

/// The figures of a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The objective's value; `None` if a flow failed.
    pub cost: Option<f64>,
    /// A lower bound on it.
    pub lower_bound: Option<f64>,
    /// (cost − bound) / bound.
    pub gap: Option<f64>,
    /// The number of failed flows.
    pub failed: usize,
    /// Metrics.
    pub metrics: Named,
    /// The metrics of groups of flows, if requested ([`groups()`]).
    pub groups: Vec<Group>,
    /// How long ApplicationMasters held most slots, if they hold any.
    pub crowding: Option<Crowding>,
    /// The flows that never finish, by reason.
    pub unfinished: Vec<Unfinished>,
}

impl Figures {
    /// The figures of a simulation, in the order of the comparison document.
    pub fn of_simulation(simulated: &Simulated) -> Self {
        let mut figures = Self::of_schedule(&simulated.schedule, &simulated.metrics);
        figures.crowding = simulated.crowding;
        figures.unfinished.clone_from(&simulated.unfinished);
        figures.metrics.push(("decisions", Some(simulated.decisions as f64)));
        if let Some(timings) = simulated.timings {
            figures.metrics.push(("decision_seconds_p99", Some(timings.decision_seconds_p99)));
            figures.metrics.push(("seconds", Some(timings.seconds)));
        }
        figures
    }

    /// The figures of a schedule. If no flow finished, the metrics of finished flows are `None`.
    pub fn of_schedule(schedule: &Schedule, metrics: &Metrics) -> Self {
        let failed = failed(schedule);
        Self {
            cost: schedule.cost,
            lower_bound: schedule.lower_bound,
            gap: schedule.gap,
            failed,
            metrics: known(metrics, failed > 0 && failed == schedule.flows.len()),
            groups: Vec::new(),
            crowding: None,
            unfinished: Vec::new(),
        }
    }

    /// The means of the figures of several seeds; a number that one of them lacks is missing.
    pub fn mean_of(seeds: &[&Self]) -> Self {
        let Some(first) = seeds.first().filter(|_| seeds.len() > 1) else {
            return seeds.first().map_or_else(Self::default, |only| (*only).clone());
        };
        let mean = |get: &dyn Fn(&Self) -> Option<f64>| {
            let values: Option<Vec<f64>> = seeds.iter().map(|figures| get(figures)).collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        let metric = |name: &'static str| (name, mean(&|figures| figures.metric(name)));
        let of_group = |group: &Group| {
            let same = |figures: &Self| {
                let mut groups = figures.groups.iter();
                groups.find(|other| other.by == group.by && other.name == group.name).cloned()
            };
            let metric = |name: &'static str| (name, mean(&|figures| same(figures)?.metric(name)));
            Group { metrics: group.metrics.iter().map(|(name, _)| metric(name)).collect(), ..group.clone() }
        };
        Self {
            cost: mean(&|figures| figures.cost),
            lower_bound: mean(&|figures| figures.lower_bound),
            gap: mean(&|figures| figures.gap),
            failed: seeds.iter().map(|figures| figures.failed).max().unwrap_or(0),
            metrics: first.metrics.iter().map(|(name, _)| metric(name)).collect(),
            groups: first.groups.iter().map(of_group).collect(),
            ..(*first).clone()
        }
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(known, _)| *known == name)?.1
    }

    /// The number of this name in the documents.
    pub fn value(&self, name: &str) -> Option<f64> {
        match name {
            "cost" => self.cost,
            "lower_bound" => self.lower_bound,
            "gap" => self.gap,
            "gap_absolute" if self.gap.is_none() => Some(self.cost? - self.lower_bound?),
            "failed" => Some(self.failed as f64),
            _ => self.metric(name),
        }
    }
}

/// Metrics by name. If nothing finished, the metrics of finished flows are `None`.
fn known(metrics: &Metrics, nothing_done: bool) -> Named {
    let of_all = |name: &str| matches!(name, "deadlines" | "missed" | "tasks");
    let entry = |(name, value)| (name, Some(value).filter(|_| !nothing_done || of_all(name)));
    metrics.entries().into_iter().map(entry).collect()
}

/// The number of failed flows.
pub fn failed(schedule: &Schedule) -> usize {
    schedule.flows.iter().filter(|row| row.status == FlowResult::Failed).count()
}

/// A column of the table of policies.
pub(crate) struct Spec {
    /// Its name in the documents.
    pub(crate) name: &'static str,
    /// Its number format.
    pub(crate) unit: Unit,
    /// Its priority: columns with the highest rank are left out first. A column of rank 0 is shown only on
    /// request.
    rank: u8,
}

const fn spec(name: &'static str, unit: Unit, rank: u8) -> Spec {
    Spec { name, unit, rank }
}

/// The number that tables show in microseconds.
const MICROSECONDS: &str = "decision_seconds_p99";

/// All numbers of the comparison document, in the order of the table.
const SPECS: [Spec; 32] = [
    spec("cost", Unit::Measure, 1),
    spec("lower_bound", Unit::Measure, 0),
    spec("gap", Unit::Gap, 2),
    spec("rank", Unit::Measure, 3),
    spec("missed", Unit::Count, 3),
    spec("deadlines", Unit::Count, 0),
    spec("total_tardiness", Unit::Seconds, 16),
    spec("max_tardiness", Unit::Seconds, 9),
    spec("mean_response", Unit::Seconds, 6),
    spec("p50_response", Unit::Seconds, 0),
    spec("p95_response", Unit::Seconds, 8),
    spec("p99_response", Unit::Seconds, 14),
    spec("mean_wait", Unit::Seconds, 10),
    spec("p95_wait", Unit::Seconds, 15),
    spec("mean_slowdown", Unit::Measure, 0),
    spec("max_slowdown", Unit::Measure, 0),
    spec("mean_bounded_slowdown", Unit::Measure, 11),
    spec("max_bounded_slowdown", Unit::Measure, 13),
    spec("mean_stretch", Unit::Measure, 0),
    spec("max_stretch", Unit::Measure, 0),
    spec("makespan", Unit::Seconds, 7),
    spec("total_completion", Unit::Seconds, 0),
    spec("weighted_completion", Unit::Measure, 0),
    spec("utilisation", Unit::Percent, 12),
    spec("completion_error_mean", Unit::Percent, 17),
    spec("completion_error_p95", Unit::Percent, 18),
    spec("makespan_error", Unit::Percent, 19),
    spec("tasks", Unit::Count, 0),
    spec("failed", Unit::Count, 0),
    spec("decisions", Unit::Count, 0),
    spec("decision_seconds_p99", Unit::Measure, 5),
    spec("seconds", Unit::Measure, 4),
];

/// The valid names for `--columns`, in the order of the table.
pub fn column_names() -> Vec<&'static str> {
    std::iter::once("policy").chain(SPECS.iter().map(|spec| spec.name)).collect()
}

/// The number format of the column of this name.
pub(crate) fn unit_of(name: &str) -> Unit {
    SPECS.iter().find(|spec| spec.name == name).map_or(Unit::Measure, |spec| spec.unit)
}

impl Spec {
    /// A column of these numbers. If it carries no information about these results, it is shown only on
    /// request.
    pub(crate) fn column(&self, values: &[Option<f64>], texts: Vec<String>, figures: &[&Figures]) -> Column {
        let unit = if self.name == MICROSECONDS { " [µs]" } else { "" };
        let column = Column::written(self.name, values, texts).heading(heading(self.name) + unit);
        let any = |name: &str| figures.iter().any(|f| f.value(name).is_some_and(|value| value > 0.0));
        let says_something = match self.name {
            "missed" | "total_tardiness" | "max_tardiness" => any("deadlines"),
            // Groups have no cost.
            "cost" => figures.iter().any(|f| f.cost.is_some() || f.failed > 0),
            "gap" => figures.iter().any(|f| f.gap.is_some()),
            name if name == "rank" || DISTANCE.contains(&name) => {
                figures.iter().any(|f| f.value(name).is_some())
            }
            "seconds" | "decision_seconds_p99" => any("seconds"),
            _ => self.rank > 0,
        };
        if says_something { column.rank(self.rank) } else { column.if_asked() }
    }

    /// Which value is the best.
    pub(crate) fn best(&self) -> Option<Best> {
        match self.name {
            "utilisation" => Some(Best::Largest),
            "lower_bound" | "deadlines" | "tasks" | "decisions" | "makespan_error" => None,
            _ => Some(Best::Least),
        }
    }

    /// The value of a figure as shown. Decision times are shown in microseconds.
    pub(crate) fn value(&self, figures: &Figures) -> Option<f64> {
        let factor = if self.name == MICROSECONDS { 1e6 } else { 1.0 };
        Some(figures.value(self.name)? * factor)
    }
}

/// The columns of the table of policies.
pub(crate) fn specs() -> &'static [Spec] {
    &SPECS
}

/// A row as one line of progress: the cost, the mean response time, late flows and failed flows; or the first
/// line of the reason why there are no figures.
pub fn line(row: &Row) -> String {
    let figures = match &row.result {
        Ok(figures) => figures,
        Err(reason) => return reason.lines().next().unwrap_or_default().to_owned(),
    };
    let cost = figures.cost.map(|cost| format!("cost {}", number(cost, Unit::Measure)));
    let response = figures.metric("mean_response").map(|mean| format!("mean response {}", duration(mean)));
    let count = |name: &str| figures.metric(name).unwrap_or(0.0);
    let missed = (count("deadlines") > 0.0)
        .then(|| format!("{} of {} deadlines missed", count("missed"), count("deadlines")));
    let failed = (figures.failed > 0).then(|| counted(figures.failed as u64, "flow") + " failed");
    [cost, response, missed, failed].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The table without marks, for rows that are not alternatives.
pub fn table_unmarked(rows: &[Row], view: &View) -> String {
    Table::of(metric_columns(rows, |_| Vec::new())).render(view) + &notes(rows) + &crowding(rows)
}

/// A row for each policy and group. `by` selects the groups: pools, users or size classes.
pub fn table_by(by: &'static str, rows: &[Row], view: &View) -> String {
    let (groups, rows_of_groups) = by_group(by, rows);
    let of = |get: &dyn Fn(&Group) -> String| groups.iter().map(|group| get(group)).collect::<Vec<_>>();
    let flows: Vec<Option<f64>> = groups.iter().map(|group| Some(group.flows as f64)).collect();
    let [name, flows] = [
        Column::words(by, of(&|group| group.name.clone())).key(),
        Column::numbers(FLOWS, &flows, Unit::Count),
    ];
    let mut columns = metric_columns(&rows_of_groups, |_| Vec::new());
    columns.splice(1..1, [name, flows]);
    Table::of(columns).render(view) + &notes(rows) + &crowding(rows)
}

/// The valid names for `--columns` in such a table.
pub fn column_names_by(by: &'static str) -> Vec<&'static str> {
    let mut names = column_names();
    names.splice(1..1, [by, FLOWS]);
    names
}

/// The column with the number of flows of a group.
pub(crate) const FLOWS: &str = "flows";

/// The groups of every policy that ran, with a row for each.
fn by_group<'a>(by: &str, rows: &'a [Row]) -> (Vec<&'a Group>, Vec<Row>) {
    let ran = rows.iter().filter_map(|row| Some((&row.policy, row.result.as_ref().ok()?)));
    let groups = ran.flat_map(|(policy, figures)| figures.groups.iter().map(move |group| (policy, group)));
    let row = |(policy, group): (&String, &'a Group)| {
        let figures = Figures { metrics: group.metrics.clone(), ..Figures::default() };
        (group, Row { policy: policy.clone(), result: Ok(figures) })
    };
    groups.filter(|(_, group)| group.by == by).map(row).unzip()
}

fn metric_columns(rows: &[Row], marks: impl Fn(&Spec) -> Vec<bool>) -> Vec<Column> {
    let figures: Vec<&Figures> = rows.iter().filter_map(|row| row.result.as_ref().ok()).collect();
    let of = |spec: &Spec| {
        let value = |row: &Row| row.result.as_ref().ok().and_then(|figures| spec.value(figures));
        let values: Vec<Option<f64>> = rows.iter().map(value).collect();
        let texts = if spec.name == "missed" { missed(rows) } else { column(&values, spec.unit) };
        spec.column(&values, texts, &figures).marked(marks(spec))
    };
    let names = Column::words("policy", shown_names(rows)).key();
    std::iter::once(names).chain(SPECS.iter().map(of)).collect()
}

/// The names of the policies in tables.
pub(crate) fn shown_names(rows: &[Row]) -> Vec<String> {
    names::shown(rows.iter().map(|row| row.policy.as_str()))
}

/// `3/8`: missed deadlines of all deadlines.
fn missed(rows: &[Row]) -> Vec<String> {
    let cell = |row: &Row| {
        let figures = row.result.as_ref().ok()?;
        Some(format!("{}/{}", figures.metric("missed")?, figures.metric("deadlines")?))
    };
    rows.iter().map(|row| cell(row).unwrap_or_else(|| NOTHING.to_owned())).collect()
}

/// The reasons for empty rows, and the numbers of failed flows.
fn notes(rows: &[Row]) -> String {
    let note = |(row, name): (&Row, String)| match &row.result {
        Err(reason) => Some(format!("{name}: {reason}\n")),
        Ok(f) if f.failed > 0 => {
            let flows = counted(f.failed as u64, "flow");
            let are = if f.failed == 1 { "is" } else { "are" };
            let reasons: Vec<&str> = f.unfinished.iter().map(|one| one.reason.as_str()).collect();
            let reasons =
                if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
            Some(format!("{name}: {flows} failed and {are} left out of the metrics{reasons}\n"))
        }
        Ok(_) => None,
    };
    rows.iter().zip(shown_names(rows)).filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{Condition, is_time};

    #[test]
    fn a_line_says_the_cost_the_mean_response_and_what_went_wrong() {
        let metrics = vec![
            ("mean_response", Some(1234.75)),
            ("deadlines", Some(9.0)),
            ("missed", Some(4.0)),
            ("tasks", Some(3.0)),
        ];
        let figures = Figures { cost: Some(15_198.0), metrics, ..Figures::default() };
        let said = |result| line(&Row { policy: "fair".into(), result });
        let expected = "cost 15,198, mean response 1,235 s, 4 of 9 deadlines missed";
        assert_eq!(said(Ok(figures.clone())), expected);
        let of_one = Figures { cost: None, failed: 1, metrics: Vec::new(), ..figures };
        assert_eq!(said(Ok(of_one)), "1 flow failed");
        assert_eq!(said(Err("found nonsense\nand more".into())), "found nonsense");
    }

    #[test]
    fn counts_of_documents_are_the_counts_of_tables() {
        for metric in Condition::metrics().chain(["decisions"]) {
            let is_count = slackline_trace::documents::schedule::COUNTS.contains(&metric);
            assert_eq!(is_count, unit_of(metric) == Unit::Count, "{metric}");
        }
    }

    #[test]
    fn metrics_that_are_times_are_written_as_times() {
        for metric in Condition::metrics() {
            assert_eq!(is_time(metric), unit_of(metric) == Unit::Seconds, "{metric}");
        }
    }
}
