//! The kind `packings`: FIFO, FAIR and FLEX on the jobs of FLEX's section 4.1 against the optimum (Fig. 5).
//!
//! Slots are shared without rounding to tasks, as in the paper: FIFO gives the first job all it can use and
//! ignores minima, FAIR divides by the water-line at every completion, FLEX plans. With `orders = "all"` the
//! optimum is the best of all packing orders, or FLEX's plan where that is better, which happens where no
//! packing order is optimal (docs/math/flex.md C2); maxima are optimal in any case. With `orders = "found"`,
//! for more jobs than can be permuted, it is FLEX's plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use slackline_algo::classic::{Claim, water_line};
use slackline_algo::flex::mps::Packer;
use slackline_algo::flex::{Config, FlexInstance, Job, plan};
use slackline_model::draft::Weights;
use slackline_model::{Combine, Instance, Metric, Objective};

use crate::context::{Artifact, Context};
use crate::error::ReproError;
use crate::rows::{self, Point};
use crate::spec::Figure;
use crate::sweep::Vary;
use crate::values;
use crate::workload::{Cluster, Problem, Shape, Word, Workload};

/// Jobs up to which all orders are tried.
const ALL_ORDERS_JOBS_MAX: usize = 9;

/// The settings of the kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Packings"))]
pub(crate) struct Settings {
    /// Parameters of `flex-4.1`.
    #[serde(default)]
    set: BTreeMap<String, Word>,
    /// What varies from point to point.
    vary: Option<Vary>,
    /// Such as `sum response` and `max weighted tardiness`; without `weighted` all weights are 1.
    #[serde(deserialize_with = "values::some")]
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    objectives: Vec<WeightedAim>,
    /// What costs are compared with.
    orders: Orders,
}

/// What costs are compared with.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
enum Orders {
    /// The best of all orders.
    All,
    /// The best that FLEX finds.
    Found,
}

const POLICIES: [&str; 3] = ["fifo", "fair", "flex"];

pub(crate) fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let settings: Settings = figure.settings()?;
    let wrong = |problem: Problem| figure.problem(problem);
    let base = base(&settings);
    base.workload.check().map_err(|problem| figure.wrong("set", problem))?;
    let shapes = Vary::shapes(settings.vary.as_ref(), &base);
    let shapes = shapes.map_err(|problem| figure.wrong("vary", problem))?;
    let objectives: Vec<(Objective, Weights)> =
        settings.objectives.iter().map(|aim| (aim.objective, aim.weights)).collect();
    let (seeds, lines) = (context.seeds_of(figure) as usize, objectives.len());
    let cells = context
        .cells(shapes.len() * lines * seeds, |k| {
            let (objective, weights) = objectives[k / seeds % lines];
            let mut shape = shapes[k / seeds / lines].1.clone();
            if objective.metric == Metric::Sla {
                shape.workload.set.insert("cost".to_owned(), Word::Text("sla".to_owned()));
            }
            let instance = shape.instance((k % seeds) as u64)?.with_objective(objective, weights)?;
            ratios(&jobs(&instance), settings.orders)
        })
        .map_err(wrong)?;
    let mut points = Vec::new();
    for (k, chunk) in cells.chunks(seeds).enumerate() {
        for (p, policy) in POLICIES.iter().enumerate() {
            points.push(Point {
                x: shapes[k / lines].0.clone(),
                series: settings.objectives[k % lines].text.clone(),
                policy: (*policy).to_owned(),
                measure: "over optimum".to_owned(),
                values: chunk.iter().map(|cell| cell.map(|ratios| ratios[p])).collect(),
            });
        }
    }
    Ok(vec![Artifact { name: format!("{}.csv", figure.id), text: rows::csv(figure, &points) }])
}

/// The shape without what varies.
fn base(settings: &Settings) -> Shape {
    Shape {
        workload: Workload::generated("flex-4.1", settings.set.clone()),
        cluster: Cluster::default(),
        deadlines: None,
        weights: Weights::Use,
        grain: None,
    }
}

/// `sum weighted tardy`: without the word all weights are 1.
#[derive(Clone, Debug)]
struct WeightedAim {
    text: String,
    objective: Objective,
    weights: Weights,
}

impl<'de> Deserialize<'de> for WeightedAim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        values::text(deserializer, |text| {
            let weights = if text.contains(" weighted ") { Weights::Use } else { Weights::Ignore };
            let objective = values::objective(&text.replace(" weighted ", " "))?;
            Ok::<_, Problem>(Self { text: text.to_owned(), objective, weights })
        })
    }
}

fn jobs(instance: &Instance) -> FlexInstance {
    let jobs = instance.flows().iter().zip(instance.phases().iter()).map(|(flow, phase)| {
        Job::new(phase.work().slot_seconds(), phase.min_slots..=phase.cap, flow.cost.clone())
    });
    let slot_kind = instance.cluster().slot_kinds()[0];
    FlexInstance::new(instance.cluster().slots(slot_kind), instance.objective().combine, jobs.collect())
}

/// The cost of each policy over the optimum; `None` if the optimum is not positive, as in the paper.
fn ratios(instance: &FlexInstance, orders: Orders) -> Result<Option<[f64; 3]>, Problem> {
    let n = instance.jobs().len();
    let found = plan(instance, &Config::thorough()).cost;
    let optimum = match orders {
        Orders::All if n > ALL_ORDERS_JOBS_MAX => {
            return Err(
                format!("found {n} jobs, expected at most {ALL_ORDERS_JOBS_MAX} for all orders").into()
            );
        }
        // A maximum is planned optimally.
        Orders::All if instance.combine() == Combine::Sum => found.min(best_order(instance)),
        _ => found,
    };
    let bare = instance.jobs().iter().map(|job| Job { min: 0, ..job.clone() }).collect();
    let bare = FlexInstance::new(instance.slots(), instance.combine(), bare);
    let given: Vec<usize> = (0..n).collect();
    let costs = [Packer::new(&bare).cost(&given), instance.cost(&fair(instance)), found];
    Ok((optimum > 0.0).then(|| costs.map(|cost| cost / optimum)))
}

/// The cheapest packing of all orders (Heap's enumeration).
fn best_order(instance: &FlexInstance) -> f64 {
    let n = instance.jobs().len();
    let mut order: Vec<usize> = (0..n).collect();
    let mut packer = Packer::new(instance);
    let mut best = packer.cost(&order);
    let mut counts = vec![0; n];
    let mut at = 1;
    while at < n {
        if counts[at] < at {
            order.swap(if at.is_multiple_of(2) { 0 } else { counts[at] }, at);
            best = best.min(packer.cost(&order));
            counts[at] += 1;
            at = 1;
        } else {
            counts[at] = 0;
            at += 1;
        }
    }
    best
}

/// The completions of jobs under the water-line, recomputed at every completion.
fn fair(instance: &FlexInstance) -> Vec<f64> {
    let jobs = instance.jobs();
    let mut left: Vec<f64> = jobs.iter().map(|job| job.work).collect();
    let mut ends = vec![0.0; jobs.len()];
    let mut now = 0.0;
    loop {
        let open: Vec<usize> = (0..jobs.len()).filter(|&j| left[j] > 0.0).collect();
        let claim =
            |&j: &usize| Claim { min: f64::from(jobs[j].min), max: f64::from(jobs[j].max), weight: 1.0 };
        let claims: Vec<Claim> = open.iter().map(claim).collect();
        let rates = water_line(&claims, f64::from(instance.slots()));
        let step = open.iter().zip(&rates).map(|(&j, rate)| left[j] / rate).reduce(f64::min);
        let Some(step) = step else { return ends };
        now += step;
        for (&j, rate) in open.iter().zip(&rates) {
            let rest = left[j] - rate * step;
            left[j] = if rest <= 1e-9 * jobs[j].work { 0.0 } else { rest };
            ends[j] = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::CostFn;

    use super::*;

    #[test]
    fn all_orders_are_tried() {
        // On one slot the best order is by work: 1 + 3 + 6 + 10.
        let job = |work| Job::new(work, 0..=1, CostFn::linear(1.0, 0.0));
        let jobs = vec![job(3.0), job(1.0), job(4.0), job(2.0)];
        let instance = FlexInstance::new(1, Combine::Sum, jobs);
        assert_eq!(best_order(&instance), 20.0);
        let ratios = ratios(&instance, Orders::All).unwrap().unwrap();
        // In the order given: 3 + 4 + 8 + 10. Shared: 4, 7, 9 and 10.
        for (ratio, cost) in ratios.into_iter().zip([25.0, 30.0, 20.0]) {
            assert!((ratio - cost / 20.0).abs() < 1e-9, "{ratio}");
        }
    }
}
