//! The kind of the job-ordering paper's figures: orders and slot configurations, by its estimator.

use serde::Deserialize;
use slackline::tune::Rule;
use slackline::tune::ordering::estimator::{Mode, estimate};
use slackline::tune::ordering::orders::{Goal, Times, next_order, reverse_johnson};
use slackline::tune::ordering::split::{
    Choice, Config, as_submitted, at_split, best_split, mk_sf_jr, mk_tct_sf_jr, proportional,
};
use slackline::tune::ordering::splits::Splits;
use slackline::tune::ordering::workload::{Split, Workload};
use slackline_model::draft::Weights;
use slackline_model::{Instance, JobId, SlotKind};

use crate::context::{Artifact, Context};
use crate::error::ReproError;
use crate::rows::{self, Point};
use crate::spec::Figure;
use crate::sweep::Vary;
use crate::workload::{self, Cluster, Problem, SaidWorkload, Shape};

/// The studied quantity.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
enum Study {
    /// The rules' orders on the cluster as it is, against the reverse of Johnson's.
    Orders,
    /// The methods' splits against half and half, there in the reverse of Johnson's order.
    Splits,
    /// All orders on the cluster as it is, by makespan.
    EveryOrder,
    /// All orders, each on its best split, by makespan.
    EveryOrderBestSplit,
    /// All splits, jobs as submitted.
    EverySplit,
    /// The proportional rule against the exact answer, by the slots of the small cluster.
    Proportional,
}

/// The settings of the kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Ordering"))]
pub(crate) struct Settings {
    /// The studied quantity.
    study: Study,
    /// What is scheduled: jobs of one map and one reduce phase.
    workload: SaidWorkload,
    /// Machines instead of the workload's own.
    #[serde(default)]
    cluster: Cluster,
    /// What varies from line to line.
    vary: Option<Vary>,
    /// Slots that are divided one by one; without, every machine of the cluster is divided the same way.
    total_slots: Option<u32>,
    /// Slots of the small clusters of the proportional rule.
    #[serde(default)]
    small: Vec<u32>,
}

/// A number of one seed, with its setting, policy and measure.
struct Reading {
    x: Option<String>,
    policy: &'static str,
    measure: &'static str,
    value: f64,
}

pub(crate) fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let settings: Settings = figure.settings()?;
    let shapes = shapes(&settings, settings.workload.clone().of(figure, context)?)
        .map_err(|problem| figure.wrong("vary", problem))?;
    let seeds = context.seeds_of(figure) as usize;
    let cells = context.cells(shapes.len() * seeds, |k| {
        let instance = shapes[k / seeds].1.instance((k % seeds) as u64)?;
        study(&settings, &instance)
    });
    let cells = cells.map_err(|problem: Problem| figure.problem(problem))?;
    let mut points = Vec::new();
    for ((x, _), cells) in shapes.iter().zip(cells.chunks(seeds)) {
        for (k, first) in cells[0].iter().enumerate() {
            // What a study goes through itself is x; what varies is then the line.
            let (x, series) = match &first.x {
                Some(own) => (own.clone(), x.clone()),
                None => (x.clone(), String::new()),
            };
            points.push(Point {
                x,
                series,
                policy: first.policy.to_owned(),
                measure: first.measure.to_owned(),
                values: cells.iter().map(|cell| cell.get(k).map(|reading| reading.value)).collect(),
            });
        }
    }
    Ok(vec![Artifact { name: format!("{}.csv", figure.id), text: rows::csv(figure, &points) }])
}

/// The value that varies, and the shape with it.
fn shapes(settings: &Settings, workload: workload::Workload) -> Result<Vec<(String, Shape)>, Problem> {
    let base = Shape {
        workload,
        cluster: settings.cluster.clone(),
        deadlines: None,
        weights: Weights::Use,
        grain: None,
    };
    Vary::shapes(settings.vary.as_ref(), &base)
}

fn study(settings: &Settings, instance: &Instance) -> Result<Vec<Reading>, Problem> {
    let workload = Workload::from_instance(instance)?;
    let cluster = instance.cluster();
    let own = Split::new(cluster.slots(SlotKind::Map), cluster.slots(SlotKind::Reduce))?;
    let splits = match settings.total_slots {
        Some(total) => Splits::of_total(total)?,
        None => Splits::of_nodes(cluster.n_machines(), (own.map() + own.reduce()) / cluster.n_machines())?,
    };
    Ok(match settings.study {
        Study::Orders => orders(&workload, own),
        Study::Splits => by_method(&workload, splits),
        Study::EveryOrder => every_order(&workload, &[own]),
        Study::EveryOrderBestSplit => every_order(&workload, &splits.iter().collect::<Vec<_>>()),
        Study::EverySplit => every_split(&workload, splits),
        Study::Proportional => scaled(&workload, splits, &settings.small)?,
    })
}

fn seconds(choice: &Choice) -> (f64, f64) {
    (choice.makespan.seconds(), choice.total_completion as f64 / 1e6)
}

/// Makespan and total completion time of each choice, and how many times better than the first.
fn compared(choices: &[(&'static str, Choice)]) -> Vec<Reading> {
    let base = seconds(&choices[0].1);
    let each = choices.iter().flat_map(|(policy, choice)| {
        let (makespan, total) = seconds(choice);
        let measures = [
            ("makespan", makespan),
            ("total_completion", total),
            ("makespan_speedup", base.0 / makespan),
            ("total_completion_speedup", base.1 / total),
            ("makespan_gain", 1.0 - makespan / base.0),
            ("map_slots", choice.split.map().into()),
        ];
        measures.map(|(measure, value)| Reading { x: None, policy, measure, value })
    });
    each.collect()
}

/// The paper's unoptimised order: the reverse of Johnson's (its Theorem 2).
fn unoptimised(workload: &Workload, split: Split) -> Choice {
    let order = reverse_johnson(workload, split, Times::Area);
    let estimate = estimate(workload, &order, split, Mode::WorkConserving);
    let (makespan, total_completion) = (estimate.makespan(), estimate.total_completion());
    Choice { split, rule: None, order, makespan, total_completion }
}

fn orders(workload: &Workload, split: Split) -> Vec<Reading> {
    let config = Config::standard();
    compared(&[
        ("reverse-johnson", unoptimised(workload, split)),
        ("submitted", as_submitted(workload, split, config.mode)),
        ("mk-jr", at_split(workload, split, Rule::MkJr, config)),
        ("mk-tct-jr", at_split(workload, split, Rule::MkTctJr, config)),
    ])
}

fn by_method(workload: &Workload, splits: Splits) -> Vec<Reading> {
    let (config, half) = (Config::standard(), splits.half());
    let front = mk_tct_sf_jr(workload, splits, config);
    let last = front.choices.last().expect("invariant: fronts are not empty").clone();
    compared(&[
        ("reverse-johnson-half", unoptimised(workload, half)),
        ("submitted-half", as_submitted(workload, half, config.mode)),
        ("mk-jr-half", at_split(workload, half, Rule::MkJr, config)),
        ("mk-tct-jr-half", at_split(workload, half, Rule::MkTctJr, config)),
        ("mk-sf-jr", mk_sf_jr(workload, splits, config).choice),
        ("mk-tct-sf-jr", front.paper),
        ("least-total", best_split(workload, splits, Rule::MkTctJr, Goal::TotalCompletion, config).choice),
        ("front-end", last),
    ])
}

/// All orders, each on the best of these splits, by makespan.
fn every_order(workload: &Workload, splits: &[Split]) -> Vec<Reading> {
    let mut order: Vec<JobId> = workload.ids().collect();
    let mut found = Vec::new();
    loop {
        let best = splits.iter().map(|&split| {
            let estimate = estimate(workload, &order, split, Mode::WorkConserving);
            (estimate.makespan().seconds(), estimate.total_completion() as f64 / 1e6, split.map())
        });
        found.extend(best.min_by(|a, b| a.0.total_cmp(&b.0)));
        if !next_order(&mut order) {
            break;
        }
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let reading = |(rank, &(makespan, total, map)): (usize, &(f64, f64, u32))| {
        let measures = [("makespan", makespan), ("total_completion", total), ("map_slots", map.into())];
        measures.map(|(measure, value)| Reading {
            x: Some((rank + 1).to_string()),
            policy: "order",
            measure,
            value,
        })
    };
    found.iter().enumerate().flat_map(reading).collect()
}

fn every_split(workload: &Workload, splits: Splits) -> Vec<Reading> {
    let reading = |split: Split| {
        let (makespan, total) = seconds(&as_submitted(workload, split, Mode::WorkConserving));
        [("makespan", makespan), ("total_completion", total)].map(|(measure, value)| Reading {
            x: Some(split.map().to_string()),
            policy: "submitted",
            measure,
            value,
        })
    };
    splits.iter().flat_map(reading).collect()
}

/// What the proportional rule loses, and the share of all splits that it and the exact sweep estimate.
fn scaled(workload: &Workload, splits: Splits, small: &[u32]) -> Result<Vec<Reading>, Problem> {
    let config = Config::standard();
    let exact = mk_sf_jr(workload, splits, config);
    let share = |evaluated: u32| f64::from(evaluated) / f64::from(splits.count());
    let mut readings = Vec::new();
    for &slots in small {
        let scaled = proportional(workload, splits, Splits::of_total(slots)?, config);
        let loss = scaled.choice.makespan.seconds() / exact.choice.makespan.seconds() - 1.0;
        let measures = [
            ("proportional", "loss", loss),
            ("proportional", "evaluated_share", share(scaled.evaluated)),
            ("exact", "evaluated_share", share(exact.evaluated)),
        ];
        let reading =
            |(policy, measure, value)| Reading { x: Some(slots.to_string()), policy, measure, value };
        readings.extend(measures.map(reading));
    }
    Ok(readings)
}
