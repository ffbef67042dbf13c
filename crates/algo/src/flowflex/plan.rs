//! Plans one instance: the candidates, the best of them, and its distance from the optimum.

use std::cell::Cell;

use slackline_model::schedule::Allocation;
use slackline_model::{Combine, Instance};
use slackline_relax::flow::Grid;

use super::bisection::bisect;
use super::list::{self, Lister, costs};
use super::network::Network;
use super::orders::{Rule, by_key, relaxed, rounded};
use super::scheme::Scheme;
use super::search::{insertion, is_less};
use crate::baseline::{ShareUnit, dates, fluid};
use crate::classic::budget::Budget;
use crate::phase_graph;
use crate::registry::Refused;

/// How much to search.
#[derive(Clone, Copy)]
pub struct Config<'a> {
    /// Events of list schedules the searches may take.
    pub steps: u64,
    /// How finely the minimum-cost flow cuts time; `None` for the variant without it (section 5.2).
    pub grid: Option<Grid>,
    /// Asked before each candidate, evaluation of a search and costly bound; `true` ends the planning
    /// (`--budget`). What was begun is finished, FIFO's schedule is made in any case, so that there is
    /// always a valid plan, and [`Plan::cut`] says that it was cut. No clock here: the program asks its own.
    ///
    /// ```ignore
    /// let over = || started.elapsed() >= budget;
    /// let plan = plan(&instance, &Config { cancel: Some(&over), ..Config::thorough() })?;
    /// ```
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl Config<'_> {
    /// What a plan gets by default: at most about a second of search.
    pub const fn thorough() -> Self {
        Self { steps: 2_000_000, grid: Some(Grid { ratio: 0.01, slots_max: 2000 }), cancel: None }
    }

    /// Rules only.
    pub const fn quick() -> Self {
        Self { steps: 0, grid: None, cancel: None }
    }
}

/// Shares of the work at which the flow is rounded to deadlines; the paper has one half, and says that
/// several would do better.
pub(super) const ALPHAS: [f64; 5] = [0.25, 0.5, 0.75, 0.9, 1.0];
/// Orders from which the insertion search starts.
const STARTS: usize = 3;
/// The baselines as `plan` makes them, so that no plan loses to them.
const BASELINES: [fluid::Rule; 5] = [
    fluid::Rule::Fifo(ShareUnit::Job),
    fluid::Rule::Fifo(ShareUnit::Flow),
    fluid::Rule::Fair(ShareUnit::Job),
    fluid::Rule::Fair(ShareUnit::Flow),
    fluid::Rule::Edf(dates::Dates::DEADLINES),
];
/// Nodes up to which they are candidates: they look at every ready phase at every event.
const BASELINE_NODES_MAX: usize = 5000;

/// Where an order of flows comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Source {
    Rule(Rule),
    /// The minimum-cost flow, rounded at this share of the work.
    Flow(f64),
    /// The latest completions that cost at most some level.
    Bisection,
    /// The deadlines of a choice of levels of step costs.
    Levels,
    /// Ready nodes first come, first served.
    Fifo,
    /// Ready nodes in equal shares.
    Fair,
    Baseline(fluid::Rule),
}

/// How an order becomes a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Realisation {
    /// List scheduling of the precedence graph.
    List,
    /// The three stages: chains, the greedy scheme, shape shifting.
    Chains,
    /// As the baseline makes it.
    Fluid,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Where the order comes from.
    pub source: Source,
    /// Whether insertion improved it.
    pub improved: bool,
    /// How it became a schedule.
    pub realisation: Realisation,
}

impl Candidate {
    /// The name in the plan's answer.
    pub fn name(&self) -> String {
        let source = match self.source {
            Source::Rule(rule) => rule.name().to_owned(),
            Source::Flow(alpha) => format!("minimum-cost flow at {alpha}"),
            Source::Bisection => "bisection".to_owned(),
            Source::Levels => "levels".to_owned(),
            Source::Fifo => "fifo".to_owned(),
            Source::Fair => "fair".to_owned(),
            Source::Baseline(rule) => match rule {
                fluid::Rule::Fifo(ShareUnit::Job) => "fifo by job",
                fluid::Rule::Fifo(ShareUnit::Flow) => "fifo by flow",
                fluid::Rule::Fair(ShareUnit::Job) => "fair by job",
                fluid::Rule::Fair(ShareUnit::Flow) => "fair by flow",
                fluid::Rule::Edf(_) => "edf",
            }
            .to_owned(),
        };
        let improved = if self.improved { "+insertion" } else { "" };
        let realisation = match self.realisation {
            Realisation::List => "list",
            Realisation::Chains => "chains",
            Realisation::Fluid => "fluid",
        };
        format!("{source}{improved}, {realisation}")
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Who holds how many slots when, by time.
    pub allocations: Vec<Allocation>,
    /// When each flow completes, in seconds of workload time.
    pub completions: Vec<f64>,
    pub cost: f64,
    /// No schedule costs less.
    pub bound: f64,
    pub candidate: Candidate,
    /// Whether a search ran out of its steps, or anything was left out because time was up.
    pub cut: bool,
}

/// The best of all candidates, for any non-decreasing costs, sum or maximum.
///
/// 0. The baselines' plans, for workloads that are not huge.
/// 1. Orders: FIFO, Fair, every [`Rule`]; for sums the minimum-cost flow at every share of `ALPHAS`; for
///    maxima bracket and bisection; for sums of steps the deadlines of a choice of levels. Each is list
///    scheduled and, on generic slots, run through the stages.
/// 2. The best orders are improved by insertion.
///
/// Minima are no part of the paper's model and are not kept.
///
/// # Errors
/// On machines of different speeds.
pub fn plan(instance: &Instance, config: &Config<'_>) -> Result<Plan, Refused> {
    let speed = instance.cluster().uniform_speed().ok_or(Refused::MixedSpeeds { policy: "flowflex" })?;
    let net = Network::whole(instance, speed);
    let mut planner = Planner::new(&net);
    let mut budget = Budget::new(config.steps, config.cancel);
    planner.candidates(config.grid, &mut budget);
    if net.combine == Combine::Sum
        && config.grid.is_some()
        && !budget.is_called_off()
        && let Some(choice) = slackline_relax::level_choice(instance)
    {
        let order = by_key(&net, |j| choice.due[slackline_model::FlowId::from(j)]);
        planner.consider(order, Source::Levels);
    }
    planner.improve(&mut budget);
    planner.baselines(instance, &mut budget);
    let best = planner.best.clone();
    let (allocations, completions) = planner.realise(&best, instance);
    let cut = Cell::new(budget.was_cut());
    let bounds = slackline_relax::bounds_until(instance, slackline_relax::Form::Any, &|| {
        let stop = config.cancel.is_some_and(|stop| stop());
        cut.set(cut.get() || stop);
        stop
    });
    Ok(Plan {
        cost: net.cost(&completions),
        completions,
        allocations,
        bound: slackline_relax::best_of(&bounds),
        candidate: best.candidate,
        cut: cut.get(),
    })
}

/// An order with what it costs; the order of FIFO and Fair is empty.
#[derive(Clone, Debug)]
struct Ranked {
    cost: (f64, f64),
    order: Vec<usize>,
    candidate: Candidate,
}

/// Candidates for one network.
struct Planner<'a> {
    net: &'a Network,
    lister: Lister<'a>,
    /// The paper's scheme, if slots are generic.
    scheme: Option<Scheme<'a>>,
    best: Ranked,
    /// The cheapest list schedules of an order, cheapest first.
    starts: Vec<Ranked>,
}

impl<'a> Planner<'a> {
    /// With FIFO's list schedule as the first candidate.
    fn new(net: &'a Network) -> Self {
        let mut lister = Lister::new(net);
        let candidate = Candidate { source: Source::Fifo, improved: false, realisation: Realisation::List };
        let best = Ranked { cost: lister.cost(list::Rule::Fifo), order: Vec::new(), candidate };
        Self { net, lister, scheme: net.is_generic().then(|| Scheme::new(net)), best, starts: Vec::new() }
    }

    fn candidates(&mut self, grid: Option<Grid>, budget: &mut Budget<'_>) {
        let fair = self.lister.cost(list::Rule::Fair);
        let candidate = Candidate { source: Source::Fair, improved: false, realisation: Realisation::List };
        self.offer(Ranked { cost: fair, order: Vec::new(), candidate });
        for rule in Rule::ALL {
            if budget.is_called_off() {
                return;
            }
            self.consider(rule.order(self.net), Source::Rule(rule));
        }
        match (self.net.combine, grid) {
            (Combine::Sum, Some(grid)) => {
                let relaxed = relaxed(self.net, grid);
                for alpha in ALPHAS {
                    if budget.is_called_off() {
                        return;
                    }
                    self.consider(rounded(self.net, &relaxed, alpha), Source::Flow(alpha));
                }
            }
            (Combine::Sum, None) => {}
            (Combine::Max, _) => {
                let (net, least) = (self.net, self.best.cost.0);
                let evaluate = |order| self.consider(order, Source::Bisection);
                bisect(net, least, || budget.is_called_off(), evaluate);
            }
        }
    }

    /// Both realisations of an order; the cheaper cost of the two.
    fn consider(&mut self, order: Vec<usize>, source: Source) -> f64 {
        let mut least = f64::INFINITY;
        if let Some(scheme) = &self.scheme {
            let candidate = Candidate { source, improved: false, realisation: Realisation::Chains };
            let cost = costs(self.net, &scheme.completions(&order));
            least = cost.0;
            self.offer(Ranked { cost, order: order.clone(), candidate });
        }
        let candidate = Candidate { source, improved: false, realisation: Realisation::List };
        let cost = self.lister.cost(list::Rule::Flows(&order));
        let listed = Ranked { cost, order, candidate };
        self.offer(listed.clone());
        if self.starts.iter().all(|start| start.order != listed.order) {
            let at = self.starts.partition_point(|start| !is_less(listed.cost, start.cost));
            self.starts.insert(at, listed);
            self.starts.truncate(STARTS);
        }
        least.min(cost.0)
    }

    fn offer(&mut self, ranked: Ranked) {
        if is_less(ranked.cost, self.best.cost) {
            self.best = ranked;
        }
    }

    /// Insertion from each of the best starts.
    fn improve(&mut self, budget: &mut Budget<'_>) {
        for mut start in std::mem::take(&mut self.starts) {
            if budget.is_empty() {
                return;
            }
            let before = start.cost;
            start.cost = insertion(&mut self.lister, &mut start.order, before, budget);
            start.candidate.improved = is_less(start.cost, before);
            self.offer(start);
        }
    }

    /// The plans of the baselines.
    fn baselines(&mut self, instance: &Instance, budget: &mut Budget<'_>) {
        if self.net.nodes().len() > BASELINE_NODES_MAX {
            return;
        }
        for rule in BASELINES {
            if budget.is_called_off() {
                return;
            }
            let (_, completions) = baseline(instance, rule);
            let (source, realisation) = (Source::Baseline(rule), Realisation::Fluid);
            let candidate = Candidate { source, improved: false, realisation };
            self.offer(Ranked { cost: costs(self.net, &completions), order: Vec::new(), candidate });
        }
    }

    /// The schedule and completions of a candidate.
    fn realise(&mut self, ranked: &Ranked, instance: &Instance) -> (Vec<Allocation>, Vec<f64>) {
        if let Source::Baseline(rule) = ranked.candidate.source {
            return baseline(instance, rule);
        }
        if let (Realisation::Chains, Some(scheme)) = (ranked.candidate.realisation, &self.scheme) {
            return scheme.schedule(&ranked.order);
        }
        let rule = match ranked.candidate.source {
            Source::Fifo => list::Rule::Fifo,
            Source::Fair => list::Rule::Fair,
            _ => list::Rule::Flows(&ranked.order),
        };
        let rows = self.lister.rows(rule);
        (rows, self.lister.completions(rule).to_vec())
    }
}

/// A baseline's plan and when it completes each flow.
fn baseline(instance: &Instance, rule: fluid::Rule) -> (Vec<Allocation>, Vec<f64>) {
    let rows = fluid::plan(instance, rule).expect("invariant: machines have one speed");
    let completions = phase_graph::completions(instance, &rows);
    (rows, completions)
}
