//! The comparison document: the numbers of one seed, or means and spreads over several.

use std::collections::BTreeMap;

use slackline_model::Objective;
use slackline_trace::Simplification;
use slackline_trace::documents::comparison::{
    Comparison, Difference, Figure, FlowChance, GroupResult, NamedValues, ObjectiveResult, PolicyResult,
    Workload,
};

use super::{Figures, specs, unit_of};
use crate::report::flow_chances::FlowSeeds;
use crate::report::number::Unit;
use crate::report::significance::{self, Sampling, Verdict};
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
    /// How values were sampled.
    pub sampling: Sampling,
    /// Whether flows have weights other than 1.
    pub is_weighted: bool,
    /// What the simulations left out of the log.
    pub not_modelled: Vec<Simplification>,
}

/// The comparison document. Each policy has one set of figures per sample, and there is one lower bound per
/// sample. `flows` are the flows of the policies, if they are asked for.
pub fn json(about: &ComparisonSubject, all: &[Runs], flows: &[FlowSeeds]) -> String {
    let base = all.iter().find_map(|runs| runs.result.as_deref().ok()).unwrap_or_default();
    let every: Vec<&Runs> = all.iter().collect();
    let verdict = Verdict::of(all, about.sampling);
    let entry = |(place, runs): (usize, &Runs)| {
        let policy = runs.policy.clone();
        match &runs.result {
            Err(reason) => PolicyResult { policy, refused: Some(reason.clone()), ..PolicyResult::default() },
            Ok(figures) => {
                let of = PolicyFigures {
                    figures,
                    base,
                    several: about.lower_bounds.len() > 1,
                    all: &every,
                    place,
                };
                PolicyResult {
                    policy,
                    refused: None,
                    best: verdict.as_ref().map(|verdict| verdict.is_best[place]),
                    objective: Some(of.objective()),
                    metrics: Some(of.metrics()),
                    groups: of.groups(),
                    flows: flows.iter().filter(|flow| flow.policy == runs.policy).map(flow_chance).collect(),
                }
            }
        }
    };
    let lower_bound = match about.lower_bounds.as_slice() {
        [only] => only.map_or(Figure::Nothing, Figure::Number),
        several => {
            let spread = Spread::of(&several.iter().flatten().copied().collect::<Vec<_>>());
            spread.map_or(Figure::Nothing, |own| figure(own, None, None))
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
        verdict: verdict.as_ref().map(Verdict::sentence),
        policies: all.iter().enumerate().map(entry).collect(),
    })
}

fn figure(own: Spread, difference: Option<Spread>, best: Option<bool>) -> Figure {
    let ci95 = own.shown_half();
    let Spread { mean, sd, least, most, .. } = own;
    let difference = difference.map(|to| {
        let ci95 = to.shown_half();
        let Spread { mean, sd, least, most, .. } = to;
        Difference { mean, sd, ci95, least, most }
    });
    Figure::Spread(slackline_trace::documents::comparison::Spread {
        mean,
        sd,
        ci95,
        least,
        most,
        difference,
        best,
    })
}

fn flow_chance(flow: &FlowSeeds) -> FlowChance {
    let finite = |share: f64| Some(flow.quantile(share)).filter(|value| value.is_finite());
    let interval = flow.chance_interval();
    FlowChance {
        flow: flow.flow.clone(),
        seeds: flow.completions.len() as u64,
        deadline: flow.deadline,
        chance: flow.chance(),
        chance_low: interval.map(|interval| interval[0]),
        chance_high: interval.map(|interval| interval[1]),
        p10: finite(0.1),
        p50: finite(0.5),
        p90: finite(0.9),
    }
}

/// The figures of one policy for each sample, and those of the first policy.
struct PolicyFigures<'a> {
    figures: &'a [Figures],
    base: &'a [Figures],
    several: bool,
    /// All policies, and which of them this one is.
    all: &'a [&'a Runs],
    place: usize,
}

impl PolicyFigures<'_> {
    /// Whether the policy cannot be distinguished from the best one; `None` for metrics without a direction.
    fn is_best(&self, name: &str, get: &dyn Fn(&Figures) -> Option<f64>) -> Option<bool> {
        let direction = specs().iter().find(|spec| spec.name == name)?.best()?;
        significance::best(self.all, get, Some(direction)).get(self.place).copied()
    }

    fn figure(&self, name: &str, get: &dyn Fn(&Figures) -> Option<f64>) -> Figure {
        if self.several {
            let own = Spread::over(self.figures, get);
            return own.map_or(Figure::Nothing, |own| {
                figure(own, Spread::of_differences(self.figures, self.base, get), self.is_best(name, get))
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
                    figures.groups.iter().find(same)?.metric(name)
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
