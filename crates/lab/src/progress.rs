//! The kind of WOHA's Figs. 3 and 13 (b): how far apart the requirements of progress plans are, and how many
//! bytes the plans have.

use serde::Deserialize;
use slackline::plan::Options;
use slackline::{Plan, PolicySpec};
use slackline_algo::woha::Plan as Progress;
use slackline_model::draft::Weights;

use crate::context::{Artifact, Context};
use crate::error::{PolicyFailure, ReproError};
use crate::rows::{self, Point};
use crate::spec::Figure;
use crate::values::{self, Policy};
use crate::workload::{Cluster, Problem, SaidWorkload, Shape};

/// What is shown of the plans.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
enum Show {
    /// At each point, in seconds: the share of the intervals between requirements that are longer.
    Intervals,
    /// At each point, in tasks: plans of at most that size, but larger than the point before; all at the end.
    Sizes,
}

/// The settings of the kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Progress"))]
pub(crate) struct Settings {
    /// What is shown of the plans.
    show: Show,
    /// What is planned.
    workload: SaidWorkload,
    /// Machines instead of the workload's own.
    #[serde(default)]
    cluster: Cluster,
    /// Policies of WOHA.
    #[serde(deserialize_with = "values::some")]
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    policies: Vec<Policy>,
    /// The points, rising.
    at: Vec<f64>,
}

pub(crate) fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let Settings { show, workload, cluster, policies, at } = figure.settings()?;
    let workload = workload.of(figure, context)?;
    let shape = Shape { workload, cluster, deadlines: None, weights: Weights::Use, grain: None };
    let policies: Vec<PolicySpec> = policies.into_iter().map(|policy| policy.0).collect();
    let seeds = context.seeds_of(figure) as usize;
    let cell = |k: usize| -> Result<Vec<Progress>, Problem> {
        plans(&shape, &policies[k / seeds], (k % seeds) as u64)
    };
    let cells = context.cells(policies.len() * seeds, cell);
    let cells = cells.map_err(|problem| figure.problem(problem))?;
    let points: Vec<Point> = policies
        .iter()
        .zip(cells.chunks(seeds.max(1)))
        .flat_map(|(policy, plans)| match show {
            Show::Intervals => intervals(policy.spec(), plans, &at),
            Show::Sizes => sizes(policy.spec(), plans, &at),
        })
        .collect();
    Ok(vec![Artifact { name: format!("{}.csv", figure.id), text: rows::csv(figure, &points) }])
}

/// The plans of all flows of a workload.
fn plans(shape: &Shape, policy: &PolicySpec, seed: u64) -> Result<Vec<Progress>, Problem> {
    let planned = slackline::plan(&shape.instance(seed)?, policy, Options::default());
    match planned.map_err(|error| PolicyFailure::of_plan(policy, error))? {
        Plan::Progress(flows) => Ok(flows.into_iter().map(|flow| flow.plan).collect()),
        Plan::Schedule(_) => {
            let found = format!("{} plans schedules, expected a policy that plans progress", policy.spec());
            Err(found.into())
        }
    }
}

/// A point: a measure of each seed's plans.
fn point(policy: &str, x: String, measure: &str, values: Vec<Option<f64>>) -> Point {
    Point { x, series: String::new(), policy: policy.to_owned(), measure: measure.to_owned(), values }
}

/// Shares of the intervals that are longer than each limit, by seed.
fn intervals(policy: &str, seeds: &[Vec<Progress>], limits: &[f64]) -> Vec<Point> {
    let of_plan = |plan: &Progress| -> Vec<f64> {
        plan.steps().windows(2).map(|pair| pair[0].ttd.seconds() - pair[1].ttd.seconds()).collect()
    };
    let all: Vec<Vec<f64>> = seeds.iter().map(|plans| plans.iter().flat_map(of_plan).collect()).collect();
    let number = all.iter().map(|seconds| Some(seconds.len() as f64)).collect();
    let mut points = vec![point(policy, String::new(), "intervals", number)];
    for &limit in limits {
        let share = |seconds: &Vec<f64>| {
            let longer = seconds.iter().filter(|&&interval| interval > limit).count();
            (!seconds.is_empty()).then(|| longer as f64 / seconds.len() as f64)
        };
        points.push(point(policy, limit.to_string(), "share_longer", all.iter().map(share).collect()));
    }
    points
}

/// Bytes of the plans by class of tasks, and of all, by seed.
fn sizes(policy: &str, seeds: &[Vec<Progress>], limits: &[f64]) -> Vec<Point> {
    let all: Vec<Vec<(f64, f64)>> = seeds
        .iter()
        .map(|plans| plans.iter().map(|p| (p.tasks() as f64, p.encode().len() as f64)).collect())
        .collect();
    let mut points = Vec::new();
    let from = std::iter::once(0.0).chain(limits.iter().copied());
    let classes = from.zip(limits.iter().copied()).map(|(from, to)| (format!("{to}"), from, to));
    for (x, from, to) in classes.chain([("all".to_owned(), -1.0, f64::INFINITY)]) {
        let class: Vec<Vec<f64>> = all
            .iter()
            .map(|plans| {
                plans.iter().filter(|(n, _)| *n > from && *n <= to).map(|&(_, bytes)| bytes).collect()
            })
            .collect();
        let measure = |name: &str, of: fn(&[f64]) -> Option<f64>| {
            point(policy, x.clone(), name, class.iter().map(|bytes| of(bytes)).collect())
        };
        points.extend([
            measure("plans", |bytes| Some(bytes.len() as f64)),
            measure("mean_bytes", |bytes| {
                (!bytes.is_empty()).then(|| bytes.iter().sum::<f64>() / bytes.len() as f64)
            }),
            measure("most_bytes", |bytes| bytes.iter().copied().reduce(f64::max)),
        ]);
    }
    points
}

#[cfg(test)]
mod tests {
    use slackline_algo::woha::Step;
    use slackline_model::Span;

    use super::*;

    /// Requirements 20 s and 5 s apart; five tasks.
    fn plan() -> Progress {
        let step = |seconds: f64, req| Step { ttd: Span::from_seconds_nearest(seconds), req };
        Progress::new(1, Span::ZERO, vec![0], vec![step(30.0, 1), step(10.0, 2), step(5.0, 5)]).unwrap()
    }

    #[test]
    fn intervals_are_between_requirements_and_those_at_the_limit_are_not_longer() {
        let points = intervals("p", &[vec![plan()], vec![]], &[4.0, 5.0, 20.0]);
        let values: Vec<_> = points.iter().map(|point| point.values.clone()).collect();
        assert_eq!(values[0], [Some(2.0), Some(0.0)]);
        assert_eq!(values[1..], [[Some(1.0), None], [Some(0.5), None], [Some(0.0), None]]);
    }

    #[test]
    fn plans_are_in_the_class_of_their_tasks_and_in_all() {
        let points = sizes("p", &[vec![plan(), plan()]], &[4.0, 5.0]);
        let of = |x: &str, measure: &str| {
            points.iter().find(|p| p.x == x && p.measure == measure).unwrap().values[0]
        };
        assert_eq!(
            [of("4", "plans"), of("5", "plans"), of("all", "plans")],
            [Some(0.0), Some(2.0), Some(2.0)]
        );
        assert_eq!(of("4", "most_bytes"), None);
        assert_eq!(of("5", "mean_bytes"), Some(plan().encode().len() as f64));
    }
}
