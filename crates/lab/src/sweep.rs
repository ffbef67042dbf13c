//! The most common kind of figure: a workload against policies, objectives, seeds, and one varied parameter.

use serde::{Deserialize, Deserializer};
use slackline::import::grain_span;
use slackline::{Options, PolicySpec, relax};
use slackline_model::draft::Weights;
use slackline_model::names::unknown;
use slackline_model::{Instance, Objective, Seed, Span};

use crate::context::{Artifact, Context};
use crate::error::{PolicyFailure, ReproError};
use crate::rows::{self, Point};
use crate::spec::Figure;
use crate::values::{self, Aim, Policy};
use crate::workload::{Cluster, Problem, SaidWorkload, Shape, Word};

/// How schedules come about.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
enum RunMode {
    /// The policy drives the simulator.
    Simulate,
    /// The policy plans the whole workload.
    Plan,
}

/// What varies from point to point.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Vary {
    /// `machines`, `slots`, `map_slots`, `reduce_slots`, `deadlines`, `every` (of a workload that repeats),
    /// or a parameter of the generator or option of the import format.
    pub(crate) param: String,
    /// Its values, a point each.
    #[serde(deserialize_with = "values::some")]
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub(crate) values: Vec<Word>,
}

impl Vary {
    /// Each value in words, with the shape that it makes of `base`; `base` alone if nothing varies.
    pub(crate) fn shapes(vary: Option<&Self>, base: &Shape) -> Result<Vec<(String, Shape)>, Problem> {
        let Some(vary) = vary else { return Ok(vec![(String::new(), base.clone())]) };
        let shape = |value: &Word| {
            let mut shape = base.clone();
            shape.set(&vary.param, value)?;
            Ok((value.to_string(), shape))
        };
        vary.values.iter().map(shape).collect()
    }
}

/// Options of the simulator; see the flags of that name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Simulation {
    /// Seconds between heartbeats; 0: a free slot is seen at once.
    #[serde(default, deserialize_with = "values::seconds")]
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    heartbeat: Option<f64>,
    /// Share of a job's maps that are done before its reduces may take slots; 1 without it.
    #[serde(default, deserialize_with = "values::fraction")]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0)))]
    slowstart: Option<f64>,
    /// Standard deviation of the logarithm of the durations that the policy estimates.
    #[serde(default, deserialize_with = "values::deviation")]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 3.0)))]
    noise: Option<f64>,
    /// Standard deviation of the logarithm of the durations themselves.
    #[serde(default, deserialize_with = "values::deviation")]
    #[cfg_attr(test, schemars(range(min = 0.0, max = 3.0)))]
    jitter: Option<f64>,
}

/// The settings of the kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Sweep"))]
pub(crate) struct Settings {
    /// How schedules come about.
    by: RunMode,
    /// What is scheduled.
    workload: SaidWorkload,
    /// Machines instead of the workload's own.
    #[serde(default)]
    cluster: Cluster,
    /// Each flow's deadline is its release + this many times its time alone.
    #[serde(default, deserialize_with = "values::factor")]
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    deadlines: Option<f64>,
    /// Whether weights count: `use` (default) or `ignore`.
    #[serde(default, deserialize_with = "values::weights")]
    #[cfg_attr(test, schemars(with = "values::WeightsWord"))]
    weights: Weights,
    /// Plain work is cut into tasks of at most this many seconds; without it of 10 s in simulations, and not
    /// at all in plans.
    #[serde(default, deserialize_with = "values::grain")]
    #[cfg_attr(test, schemars(range(min = 1e-6)))]
    grain: Option<f64>,
    /// What the simulated cluster does.
    #[serde(default)]
    simulation: Simulation,
    /// What varies from point to point.
    vary: Option<Vary>,
    /// Such as `sum response` and `max stretch`; without any, the workload's own.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    objectives: Vec<Aim>,
    /// Policies as on the command line; the first is what `relative:` measures divide by.
    #[serde(deserialize_with = "values::some")]
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    policies: Vec<Policy>,
    /// Metrics of the comparison document, `cost`, `lower_bound`, `gap`, `ratio` (cost over bound), `ratio1`
    /// (the same with 1 added to both, for costs near 0); `relative:M`: M over that of the first policy on
    /// the same seed.
    #[serde(deserialize_with = "values::some")]
    #[cfg_attr(test, schemars(with = "Vec<String>", length(min = 1)))]
    measures: Vec<Measure>,
}

/// The name of a measure that there is.
#[derive(Clone, Debug)]
struct Measure(String);

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        values::text(deserializer, |text| known_measure(text).map(|()| Self(text.to_owned())))
    }
}

/// The common data of all cells of the sweep.
struct Sweep {
    settings: Settings,
    /// The value of the varied parameter, and its shape.
    shapes: Vec<(String, Shape)>,
    objectives: Vec<Option<Objective>>,
    policies: Vec<PolicySpec>,
}

/// The numbers of one cell: by objective, policy and measure.
type Cell = Vec<Vec<Vec<Option<f64>>>>;

pub(crate) fn make(figure: &Figure, context: &Context<'_>) -> Result<Vec<Artifact>, ReproError> {
    let sweep = Sweep::new(figure, context)?;
    let seeds = context.seeds_of(figure) as usize;
    let cells = context
        .cells(sweep.shapes.len() * seeds, |k| sweep.cell(&sweep.shapes[k / seeds].1, (k % seeds) as u64))
        .map_err(|problem| figure.problem(problem))?;
    let points = sweep.points(&cells, seeds);
    Ok(vec![Artifact { name: format!("{}.csv", figure.id), text: rows::csv(figure, &points) }])
}

impl Sweep {
    fn new(figure: &Figure, context: &Context<'_>) -> Result<Self, ReproError> {
        let settings: Settings = figure.settings()?;
        let base = Shape {
            workload: settings.workload.clone().of(figure, context)?,
            cluster: settings.cluster.clone(),
            deadlines: settings.deadlines,
            weights: settings.weights,
            // In plans, work may stay uncut.
            grain: match settings.by {
                RunMode::Simulate => Some(grain_span(settings.grain).seconds()),
                RunMode::Plan => settings.grain,
            },
        };
        let shapes = Vary::shapes(settings.vary.as_ref(), &base);
        let shapes = shapes.map_err(|problem| figure.wrong("vary", problem))?;
        let mut objectives: Vec<Option<Objective>> =
            settings.objectives.iter().map(|aim| Some(aim.objective)).collect();
        if objectives.is_empty() {
            objectives.push(None);
        }
        let policies = settings.policies.iter().map(|policy| policy.0.clone()).collect();
        Ok(Self { settings, shapes, objectives, policies })
    }

    fn cell(&self, shape: &Shape, seed: u64) -> Result<Cell, Problem> {
        let instance = shape.instance(seed)?;
        let of_objective = |objective: &Option<Objective>| -> Result<_, Problem> {
            let instance = match objective {
                None => instance.clone(),
                Some(objective) => instance.clone().with_objective(*objective, shape.weights)?,
            };
            self.policies_on(&instance, seed)
        };
        self.objectives.iter().map(of_objective).collect()
    }

    /// Numbers of every policy on an instance, by measure. Costs are divided by the best known bound:
    /// planners may know a better one than the relaxations alone.
    fn policies_on(&self, instance: &Instance, seed: u64) -> Result<Vec<Vec<Option<f64>>>, Problem> {
        let bounds = relax::bounds(instance);
        let mut bound = bounds.iter().map(|b| b.value).filter(|v| v.is_finite()).reduce(f64::max);
        let mut runs = Vec::new();
        for policy in &self.policies {
            let run = self.run(instance, policy, seed)?;
            bound = [bound, run.bound].into_iter().flatten().reduce(f64::max);
            runs.push(run);
        }
        // A bound holds for the durations of the workload, not for distorted ones.
        let bound = bound.filter(|_| self.settings.simulation.jitter.unwrap_or(0.0) == 0.0);
        let numbers: Vec<Numbers> = runs.into_iter().map(|run| run.against(bound)).collect();
        let measured =
            |run: &Numbers| self.settings.measures.iter().map(|m| measure(&m.0, run, &numbers[0])).collect();
        Ok(numbers.iter().map(measured).collect())
    }

    /// One policy on an instance.
    fn run(&self, instance: &Instance, policy: &PolicySpec, seed: u64) -> Result<Run, Problem> {
        let (schedule, metrics) = match self.settings.by {
            RunMode::Simulate => {
                let done = slackline::simulate(instance, policy, &self.options(seed), None, None)
                    .map_err(|error| PolicyFailure::of_simulation(policy, error))?;
                (done.schedule, done.metrics)
            }
            RunMode::Plan => match slackline::plan(instance, policy, slackline::plan::Options::default())
                .map_err(|error| PolicyFailure::of_plan(policy, error))?
            {
                slackline::Plan::Schedule(planned) => (planned.schedule, planned.metrics),
                slackline::Plan::Progress(_) => {
                    let found =
                        format!("{} plans progress, expected a policy that plans schedules", policy.spec());
                    return Err(found.into());
                }
            },
        };
        Ok(Run { cost: schedule.cost, bound: schedule.lower_bound, metrics: metrics.entries() })
    }

    fn options(&self, seed: u64) -> Options {
        let said = &self.settings.simulation;
        let mut options = Options::exact();
        options.sim.seed = Seed(seed);
        options.sim.heartbeat = Span::from_seconds_nearest(said.heartbeat.unwrap_or(0.0));
        options.sim.jitter = said.jitter.unwrap_or(0.0);
        options.slowstart = said.slowstart.unwrap_or(1.0);
        options.noise = said.noise.unwrap_or(0.0);
        options
    }

    /// Cells (by shape, then seed) as points.
    fn points(&self, cells: &[Cell], seeds: usize) -> Vec<Point> {
        let mut points = Vec::new();
        for (at, (x, _)) in self.shapes.iter().enumerate() {
            for o in 0..self.objectives.len() {
                for (p, policy) in self.policies.iter().enumerate() {
                    for (m, measure) in self.settings.measures.iter().enumerate() {
                        points.push(Point {
                            x: x.clone(),
                            series: self
                                .settings
                                .objectives
                                .get(o)
                                .map_or_else(String::new, |aim| aim.text.clone()),
                            policy: policy.spec().to_owned(),
                            measure: measure.0.clone(),
                            values: cells[at * seeds..][..seeds].iter().map(|c| c[o][p][m]).collect(),
                        });
                    }
                }
            }
        }
        points
    }
}

/// Named numbers of a run.
type Numbers = Vec<(&'static str, f64)>;

/// The result of one policy.
struct Run {
    cost: Option<f64>,
    /// A lower bound that the policy itself provides.
    bound: Option<f64>,
    metrics: Numbers,
}

impl Run {
    /// All numbers, including the cost against this bound.
    fn against(self, bound: Option<f64>) -> Numbers {
        let mut numbers = self.metrics;
        numbers.extend(self.cost.map(|cost| ("cost", cost)));
        if let (Some(cost), Some(bound)) = (self.cost, bound) {
            numbers.push(("lower_bound", bound));
            if bound > 0.0 {
                numbers.extend([("ratio", cost / bound), ("gap", (cost - bound) / bound)]);
            }
            numbers.push(("ratio1", (cost + 1.0) / (bound + 1.0)));
        }
        numbers
    }
}

/// One measure of a run; `relative:` measures against those of the first policy.
fn measure(name: &str, run: &[(&'static str, f64)], first: &[(&'static str, f64)]) -> Option<f64> {
    let of = |run: &[(&'static str, f64)], name: &str| {
        run.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    };
    match name.strip_prefix("relative:") {
        None => of(run, name),
        Some(name) => {
            let (own, first) = (of(run, name)?, of(first, name)?);
            if own == first { Some(1.0) } else { Some(own / first).filter(|ratio| ratio.is_finite()) }
        }
    }
}

/// A misspelt measure is an error, not an empty column.
fn known_measure(measure: &str) -> Result<(), String> {
    let mut known: Vec<&str> =
        slackline::judge::Metrics::default().entries().iter().map(|(name, _)| *name).collect();
    known.extend(["cost", "lower_bound", "ratio", "gap", "ratio1"]);
    let name = measure.strip_prefix("relative:").unwrap_or(measure);
    if known.contains(&name) { Ok(()) } else { Err(unknown("measure", name, &known)) }
}
