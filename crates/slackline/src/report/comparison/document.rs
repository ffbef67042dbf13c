//! The comparison document: the numbers of one seed, or means and spreads over several.

use std::collections::BTreeMap;

use slackline_model::Objective;
use slackline_trace::Simplification;
use slackline_trace::documents::comparison::{
    Comparison, Difference, Figure, GroupResult, NamedValues, ObjectiveResult, PolicyResult, Workload,
};

use super::{Figures, unit_of};
use crate::report::number::Unit;
use crate::report::spread::{Runs, Spread};

/// The subject of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonSubject {
    /// Hash of the workload.
    pub sha256: String,
    /// Every option that shaped the workload or the simulations, by name.
    pub options: BTreeMap<String, serde_json::Value>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The names of the compared files or pieces of a workload, if there are several; empty otherwise.
    pub samples: Vec<String>,
    /// For each sample, a lower bound on the cost of any schedule.
    pub lower_bounds: Vec<Option<f64>>,
    /// The objective.
    pub objective: Objective,
    /// Whether flows have weights other than 1.
    pub is_weighted: bool,
    /// What the simulations left out of the log.
    pub not_modelled: Vec<Simplification>,
}

/// The comparison document. Each policy has one set of figures per sample, and there is one lower bound per
/// sample.
pub fn json(about: &ComparisonSubject, all: &[Runs]) -> String {
    let base = all.iter().find_map(|runs| runs.result.as_deref().ok()).unwrap_or_default();
    let entry = |runs: &Runs| {
        let policy = runs.policy.clone();
        match &runs.result {
            Err(reason) => PolicyResult { policy, refused: Some(reason.clone()), ..PolicyResult::default() },
            Ok(figures) => {
                let of = PolicyFigures { figures, base, several: about.lower_bounds.len() > 1 };
                PolicyResult {
                    policy,
                    refused: None,
                    objective: Some(of.objective()),
                    metrics: Some(of.metrics()),
                    groups: of.groups(),
                }
            }
        }
    };
    let lower_bound = match about.lower_bounds.as_slice() {
        [only] => only.map_or(Figure::Nothing, Figure::Number),
        several => {
            let spread = Spread::of(&several.iter().flatten().copied().collect::<Vec<_>>());
            spread.map_or(Figure::Nothing, |own| figure(own, None))
        }
    };
    slackline_trace::to_json(&Comparison {
        slackline: slackline_trace::VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload: Workload { sha256: about.sha256.clone(), options: about.options.clone() },
        seeds: about.seeds.clone(),
        samples: about.samples.clone(),
        not_modelled: about.not_modelled.clone(),
        objective: about.objective,
        weighted: about.is_weighted,
        lower_bound,
        policies: all.iter().map(entry).collect(),
    })
}

fn figure(own: Spread, difference: Option<Spread>) -> Figure {
    let Spread { mean, sd, ci95 } = own;
    let difference = difference.map(|Spread { mean, sd, ci95 }| Difference { mean, sd, ci95 });
    Figure::Spread(slackline_trace::documents::comparison::Spread { mean, sd, ci95, difference })
}

/// The figures of one policy for each sample, and those of the first policy.
struct PolicyFigures<'a> {
    figures: &'a [Figures],
    base: &'a [Figures],
    several: bool,
}

impl PolicyFigures<'_> {
    fn figure(&self, name: &str, get: &dyn Fn(&Figures) -> Option<f64>) -> Figure {
        if self.several {
            let own = Spread::over(self.figures, get);
            return own.map_or(Figure::Nothing, |own| {
                figure(own, Spread::of_differences(self.figures, self.base, get))
            });
        }
        match self.figures.first().and_then(get) {
            None => Figure::Nothing,
            Some(value) if unit_of(name) == Unit::Count => Figure::Count(value as u64),
            Some(value) => Figure::Number(value),
        }
    }

    fn objective(&self) -> ObjectiveResult {
        let of = |name: &'static str| self.figure(name, &|figures| figures.value(name));
        ObjectiveResult {
            cost: of("cost"),
            lower_bound: of("lower_bound"),
            gap: of("gap"),
            gap_absolute: of("gap_absolute"),
        }
    }

    fn metrics(&self) -> NamedValues<Figure> {
        let names = self.figures.first().into_iter().flat_map(|figures| &figures.metrics);
        let names = names.map(|(name, _)| *name).chain(["failed"]);
        let figure = |name: &str| self.figure(name, &|figures| figures.value(name));
        NamedValues(names.map(|name| (name.to_owned(), figure(name))).collect())
    }

    /// The groups of the first sample. If other samples differ in their groups, the spread is over the
    /// samples that have the group.
    fn groups(&self) -> Vec<GroupResult> {
        let groups = self.figures.first().into_iter().flat_map(|figures| &figures.groups);
        let result = |group: &super::Group| {
            let metric = |&(name, _): &(&'static str, Option<f64>)| {
                let get = |figures: &Figures| {
                    let same = |other: &&super::Group| other.by == group.by && other.name == group.name;
                    let found = figures.groups.iter().find(same)?;
                    found.metrics.iter().find(|(known, _)| *known == name)?.1
                };
                (name.to_owned(), self.figure(name, &get))
            };
            GroupResult {
                by: group.by.to_owned(),
                name: group.name.clone(),
                flows: group.flows as u64,
                metrics: NamedValues(group.metrics.iter().map(metric).collect()),
            }
        };
        groups.map(result).collect()
    }
}
