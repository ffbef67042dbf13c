//! Additional content of some subcommands: sentences, tables, and curves over a varied quantity.

use std::collections::BTreeMap;

use serde::Serialize;
use slackline_model::{FlowId, Instance};

use super::Page;
use super::columns::{NONE, Table};
use crate::capacity::Capacity;
use crate::report::capacity::{SearchQuestion, entry, metrics, outcome, statement, tried_columns};
use crate::report::comparison::{OnSize, Row, shown_names, unit_of};
use crate::report::flow_chances::{self, FlowSeeds};
use crate::report::headline;
use crate::report::names::shown_alone;
use crate::report::number::{Unit, duration, number};
use crate::report::significance::Sampling;
use crate::report::spread::{self, Runs, means};
use crate::report::table::Column;
use crate::report::tuning::{answer, compared_columns, gains, headlines};
use crate::tune::{Choice, Request, Tuned};

#[derive(Debug, Default, Serialize)]
pub(super) struct Extras {
    /// Warnings about the figures.
    warnings: Vec<String>,
    /// Sentences about the result.
    notes: Vec<String>,
    tables: Vec<Titled>,
    curves: Vec<Curves>,
    /// By flow: its predicted completion, seconds; −1 without a prediction.
    predicted: Option<Vec<f64>>,
}

impl Extras {
    pub(super) fn has_prediction(&self) -> bool {
        self.predicted.is_some()
    }
}

#[derive(Debug, Serialize)]
struct Titled {
    title: String,
    table: Table,
}

/// Curves over a varied quantity.
#[derive(Debug, Serialize)]
struct Curves {
    title: String,
    x_title: String,
    unit: &'static str,
    x: Vec<f64>,
    /// The answer.
    marked: Option<f64>,
    /// A value that the answer has to reach.
    limit: Option<f64>,
    lines: Vec<CurveLine>,
}

#[derive(Debug, Serialize)]
struct CurveLine {
    name: String,
    values: Vec<Option<f64>>,
    /// The range around each value, if there is one.
    band: Option<Vec<Option<[f64; 2]>>>,
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "seconds",
        Unit::Percent | Unit::Gap => "percent",
        Unit::Count => "count",
        Unit::Measure => "number",
    }
}

/// The metrics that are drawn in comparisons of several sizes.
const OF_SIZES: [&str; 5] = ["cost", "missed", "mean_response", "p95_response", "utilisation"];

impl Page<'_> {
    /// Adds a sentence about the result.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.extras.notes.push(note.into());
        self
    }

    /// Adds a warning about the figures.
    #[must_use]
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.extras.warnings.push(warning.into());
        self
    }

    fn table(&mut self, title: &str, columns: Vec<Column>) {
        self.extras.tables.push(Titled { title: title.to_owned(), table: Table::of(columns) });
    }

    /// Adds means over several samples. The charts show the first sample, whose name is `first` if it has one.
    #[must_use]
    pub fn with_samples(mut self, all: &[Runs], sampling: Sampling, first: Option<&str>) -> Self {
        let sample = sampling.word;
        let n = all.iter().filter_map(|runs| Some(runs.result.as_ref().ok()?.len())).max().unwrap_or(0);
        self.table(&format!("All {n} {sample}s: {}", spread::legend(n)), means(all).into_columns());
        self.samples = Some((all.to_vec(), sampling));
        let first = first.map_or_else(String::new, |name| format!(", {name}"));
        self.with_note(format!("The charts and the table of flows show the first {sample}{first}."))
    }

    /// Adds the chance of each flow to meet its deadline, and its completion over the seeds.
    #[must_use]
    pub fn with_flow_chances(mut self, flows: &[FlowSeeds]) -> Self {
        let columns = flow_chances::columns(flows, self.instance.start());
        self.table("Flows over all seeds: chance to meet the deadline, completion", columns);
        self
    }

    /// Adds the results of policies on clusters of several sizes. The charts show the first size.
    #[must_use]
    pub fn with_sizes(mut self, sizes: &[OnSize<Row>]) -> Self {
        let policies = sizes.first().map_or(&[][..], |size| size.policies.as_slice());
        let names = shown_names(policies);
        for name in OF_SIZES {
            let value = |row: &Row| row.result.as_ref().ok().and_then(|figures| figures.value(name));
            let line = |(k, name): (usize, &String)| CurveLine {
                name: name.clone(),
                values: sizes.iter().map(|size| size.policies.get(k).and_then(value)).collect(),
                band: None,
            };
            let lines: Vec<CurveLine> = names.iter().enumerate().map(line).collect();
            if lines.iter().all(|line| line.values.iter().flatten().all(|&value| value == 0.0)) {
                continue;
            }
            self.extras.curves.push(Curves {
                title: name.replace('_', " "),
                x_title: "machines".to_owned(),
                unit: unit_name(unit_of(name)),
                x: sizes.iter().map(|size| size.machines.into()).collect(),
                marked: None,
                limit: None,
                lines,
            });
        }
        let first = sizes.first().map_or(0, |size| size.machines);
        self.with_note(format!("The charts over time and the table of flows show {first} machines."))
    }

    /// Adds the compared splits, and the influence of the split.
    #[must_use]
    pub fn with_tuning(mut self, request: &Request, tuned: &Tuned, curve: &[Choice]) -> Self {
        self.table("Compared splits", compared_columns(request, tuned));
        let [makespans, totals]: [Vec<Option<f64>>; 2] = [
            curve.iter().map(|choice| Some(choice.makespan.seconds())).collect(),
            curve.iter().map(|choice| Some(choice.total_completion as f64 / 1e6)).collect(),
        ];
        for (title, values) in [("makespan", makespans), ("total completion", totals)] {
            self.extras.curves.push(Curves {
                title: title.to_owned(),
                x_title: "map slots".to_owned(),
                unit: "seconds",
                x: curve.iter().map(|choice| choice.split.map().into()).collect(),
                marked: Some(tuned.best.split.map().into()),
                limit: None,
                lines: vec![CurveLine { name: request.method.name().to_owned(), values, band: None }],
            });
        }
        self.head =
            Some(answer(request, tuned) + &headlines(&self.about.name, self.instance, request, tuned));
        gains(tuned).lines().fold(self, Page::with_note)
    }

    /// Adds the tried sizes or settings, and the answer. With draws, curves are means with the 80 % range of the
    /// draws, and the first one is the chance with its 95 % interval.
    #[must_use]
    pub fn with_capacity(mut self, found: &Capacity, asked: &SearchQuestion<'_>) -> Self {
        self.table("Tried values", tried_columns(found, &found.tried, asked));
        let mut names: Vec<&str> = metrics(asked.conditions).collect();
        for name in ["cost", "mean_response", "utilisation"] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let over = |title: String, unit, limit, values, band| Curves {
            title,
            x_title: asked.axis.knob.to_string().replace('-', " "),
            unit,
            x: found.tried.iter().map(|tried| tried.value).collect(),
            marked: found.found,
            limit,
            lines: vec![CurveLine { name: shown_alone(asked.policy.spec()), values, band }],
        };
        let rule = asked.rule.filter(|_| asked.has_draws());
        if let Some(rule) = rule.filter(|_| !asked.conditions.is_empty()) {
            let chances = found.tried.iter().map(|tried| Some(tried.chance())).collect();
            let intervals = found.tried.iter().map(|tried| Some(tried.chance_interval())).collect();
            let title = format!("chance that {} (band: 95 % interval)", statement(asked));
            self.extras.curves.push(over(title, "percent", Some(rule.confidence), chances, Some(intervals)));
        }
        for name in names {
            let value = |figures: &crate::capacity::Figures| match name {
                "cost" => figures.cost,
                name => entry(figures, name),
            };
            let band = rule.map(|_| found.tried.iter().map(|tried| tried.range(&value)).collect());
            let title = name.replace('_', " ") + if rule.is_some() { " (band: 80 % range)" } else { "" };
            let (unit, values) =
                (unit_of(name), found.tried.iter().map(|tried| tried.mean(&value)).collect());
            // Means of counts have decimals.
            let unit = if rule.is_some() && unit == Unit::Count { Unit::Measure } else { unit };
            self.extras.curves.push(over(title, unit_name(unit), None, values, band));
        }
        self.head =
            Some(format!("{}\n{}", outcome(found, asked), headline::flows(&self.about.name, self.instance)));
        self
    }

    /// Adds the mean error of the prediction: seconds, and the fraction of the mean response time.
    #[must_use]
    pub fn with_prediction_error(self, seconds: f64, share: f64) -> Self {
        let (seconds, share) = (duration(seconds), number(share, Unit::Percent));
        self.with_note(format!(
            "Completion times differ from the prediction by {seconds} on average ({share} of the mean response)."
        ))
    }

    /// Adds the predicted completions of flows, by name, in seconds.
    #[must_use]
    pub fn with_prediction(mut self, completions: &BTreeMap<&str, f64>) -> Self {
        let of = |flow: &slackline_model::instance::Flow| completions.get(flow.id.as_str()).copied();
        let flows = self.instance.flows().iter();
        self.extras.predicted = Some(flows.map(|flow| of(flow).unwrap_or(NONE as f64)).collect());
        self
    }
}

/// Whether the charts of one workload can be shown beside those of another: their flows, jobs and phases
/// correspond.
pub fn is_alike(one: &Instance, other: &Instance) -> bool {
    let names = |instance: &Instance| -> Vec<String> {
        instance.flows().iter().map(|flow| flow.id.clone()).collect()
    };
    let jobs = |instance: &Instance| -> Vec<(FlowId, String, usize)> {
        let job = |job: &slackline_model::instance::Job| (job.flow, job.id.clone(), job.phases().count());
        instance.jobs().iter().map(job).collect()
    };
    names(one) == names(other)
        && jobs(one) == jobs(other)
        && one.cluster().slot_kinds() == other.cluster().slot_kinds()
}
