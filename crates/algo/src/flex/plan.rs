//! Plans one instance: the candidates, the best of them, and its distance from the optimum.

use slackline_model::{Combine, tolerance};
use slackline_relax::malleable::Job;
use slackline_relax::{deadlines, levels, minimax};

use super::instance::{FlexInstance, Piece, completions};
use super::mps::Packer;
use super::orders::{CostProfile, Rule};
use super::search::insertion;
use super::{bound, moldable, rap, slicing, targets};
use crate::classic::budget::Budget;
use crate::classic::rules::sorted;

/// Whether a job's slots may change while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They may: plans of the packing scheme and of water filling.
    Malleable,
    /// They may not.
    Moldable,
}

/// The effort of the searches.
#[derive(Clone, Copy)]
pub struct Config<'a> {
    pub mode: Mode,
    /// Steps the searches may take; a job placed in a packing or a deadline test is one.
    pub steps: u64,
    /// Whether minima are kept. A plan that does not keep them says what keeping them costs.
    pub minima: bool,
    /// Partial choices of levels the exact search for step costs may look at (0 for no exact search).
    pub nodes: u64,
    /// Called before each evaluation of a search and each costly bound; `true` ends it (`--budget`). The
    /// closed-form candidates are always made, so that there is always a valid plan, and [`Plan::cut`] tells
    /// that it was cut. There is no clock here: the caller has one.
    ///
    /// ```ignore
    /// let over = || started.elapsed() >= budget;
    /// let plan = plan(&instance, &Config { cancel: Some(&over), ..Config::thorough() });
    /// ```
    pub cancel: Option<&'a dyn Fn() -> bool>,
}

impl Config<'_> {
    /// What a plan gets by default: at most about a second of search.
    pub const fn thorough() -> Self {
        Self { mode: Mode::Malleable, minima: true, steps: 20_000_000, nodes: 20_000, cancel: None }
    }

    /// Closed-form orders only.
    pub const fn quick() -> Self {
        Self { mode: Mode::Malleable, minima: true, steps: 0, nodes: 0, cancel: None }
    }
}

/// Operations beyond sorting that a rule may take: within an epoch, and in a plan.
const QUICK: u64 = 50_000;
pub(super) const THOROUGH: u64 = 50_000_000;
/// The rules of an epoch; only the first two if there are many jobs.
const QUICK_RULES: [Rule; 6] =
    [Rule::Smith, Rule::DueDate, Rule::Worth, Rule::Moore, Rule::Atc, Rule::Generic];
const ALL_RULES_JOBS_MAX: usize = 2_000;
/// Relative precision of an epoch's optimal deadlines, of which only the order matters.
const QUICK_PRECISION: f64 = 1e-4;
/// Jobs up to which water filling, whose schedules are of size J², is a candidate.
const FILLING_JOBS_MAX: usize = 600;
/// Jobs up to which levels are searched exactly.
const EXACT_JOBS_MAX: usize = 12;

/// The origin of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Winner {
    /// The packing of this rule's order.
    Order(Rule),
    /// That, improved by insertion.
    Search(Rule),
    /// The packing in the order of the optimal deadlines of a minimax objective, or of the target levels.
    Deadlines,
    /// That, improved by insertion.
    DeadlinesSearch,
    /// EDF water filling to those deadlines, sliced.
    WaterFilling,
    /// The best constant allocation.
    Constant,
    /// Constant allocations in this rule's order, more jobs than slots.
    Turns(Rule),
}

impl Winner {
    /// The name in the plan's answer.
    pub fn name(self) -> String {
        match self {
            Self::Order(rule) => rule.name().to_owned(),
            Self::Search(rule) => format!("{}+insertion", rule.name()),
            Self::Deadlines => "deadline order".to_owned(),
            Self::DeadlinesSearch => "deadline order+insertion".to_owned(),
            Self::WaterFilling => "water filling".to_owned(),
            Self::Constant => "constant allocation".to_owned(),
            Self::Turns(rule) => format!("{} in turn", rule.name()),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The slots of each job over time.
    pub pieces: Vec<Piece>,
    /// When each job is done, in plan time.
    pub completions: Vec<f64>,
    pub cost: f64,
    /// No malleable schedule costs less.
    pub bound: f64,
    /// Whether the cost is the bound, by the documents' tolerance.
    pub optimal: bool,
    pub winner: Winner,
    /// Whether a search ran out of its budget.
    pub cut: bool,
}

/// The best of all candidates for any costs, sum or maximum.
///
/// 1. Pack every rule's order; improve the best by insertion.
/// 2. Maximum: bisect for the optimal deadlines; step costs: search for target levels. Pack in the order
///    of those deadlines, and fill to them.
/// 3. The bound, and if jobs are few and all costs are steps, the exact choice of levels.
///
/// The maximum is optimal up to `FILLING_JOBS_MAX` jobs. Time: see the module's *Complexity*.
pub fn plan(instance: &FlexInstance, config: &Config<'_>) -> Plan {
    let mut budget = Budget::new(config.steps, config.cancel);
    let (best, proven) = match config.mode {
        Mode::Malleable => malleable(instance, config, &mut budget),
        Mode::Moldable => (molded(instance), None),
    };
    let cost = instance.cost(&best.completions);
    let bound = proven.unwrap_or_else(|| bound::of(instance, cost)).min(cost);
    Plan {
        cost,
        bound,
        optimal: is_optimal(cost, bound),
        completions: best.completions,
        pieces: best.pieces,
        winner: best.winner,
        cut: budget.was_cut() && !is_optimal(cost, bound),
    }
}

/// Whether a cost is its bound, by the documents' tolerance.
pub(super) fn is_optimal(cost: f64, bound: f64) -> bool {
    cost - bound <= tolerance::of_amount(bound)
}

/// A schedule that may become the plan.
struct Candidate {
    cost: f64,
    completions: Vec<f64>,
    pieces: Vec<Piece>,
    winner: Winner,
}

impl Candidate {
    fn new(instance: &FlexInstance, pieces: Vec<Piece>, winner: Winner) -> Self {
        let completions = completions(&pieces, instance.jobs().len());
        Self { cost: instance.cost(&completions), completions, pieces, winner }
    }

    /// The other, if it is cheaper.
    fn or(self, other: Self) -> Self {
        if other.cost < self.cost - 1e-12 * self.cost.abs() { other } else { self }
    }
}

/// An order with its cost.
struct Ranked {
    cost: f64,
    order: Vec<usize>,
    winner: Winner,
}

/// The orders of those rules that apply, and what it costs, cheapest first (ties in the order of the rules).
fn ranked(instance: &FlexInstance, packer: &mut Packer<'_>, rules: &[Rule], cells: u64) -> Vec<Ranked> {
    let profile = CostProfile::new(instance);
    let of = |rule: Rule| {
        let order = rule.order(instance, &profile, cells)?;
        Some(Ranked { cost: packer.cost(&order), order, winner: Winner::Order(rule) })
    };
    let mut all: Vec<Ranked> = rules.iter().copied().filter_map(of).collect();
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    all
}

/// The order and allocation that an online policy uses: the cheapest of the closed-form orders (in the
/// deadline order for a maximum).
pub fn quick_order(instance: &FlexInstance) -> Vec<usize> {
    quick(instance).order
}

/// The order of a plan within an epoch.
pub(super) struct Quick {
    pub(super) order: Vec<usize>,
    /// The rule of the order, if it is that of a rule.
    pub(super) rule: Option<Rule>,
    /// Jobs that were packed to find it.
    pub(super) steps: u64,
}

/// [`quick_order`], and how it was found.
pub(super) fn quick(instance: &FlexInstance) -> Quick {
    if instance.combine() == Combine::Max && instance.jobs().len() > 1 {
        let due = minimax::deadlines_near(instance.jobs(), instance.slots(), QUICK_PRECISION);
        return Quick { order: deadline_order(instance, &due), rule: None, steps: 0 };
    }
    let mut packer = Packer::new(instance);
    let rules =
        if instance.jobs().len() <= ALL_RULES_JOBS_MAX { &QUICK_RULES[..] } else { &QUICK_RULES[..2] };
    let mut ranked = ranked(instance, &mut packer, rules, QUICK);
    let steps = (ranked.len() * instance.jobs().len()) as u64;
    let Ranked { order, winner, .. } = ranked.swap_remove(0);
    let rule = if let Winner::Order(rule) = winner { Some(rule) } else { None };
    Quick { order, rule, steps }
}

/// The order of one rule within an epoch, if the rule applies.
pub(super) fn order_of(instance: &FlexInstance, rule: Rule) -> Option<Vec<usize>> {
    rule.order(instance, &CostProfile::new(instance), QUICK)
}

/// Jobs by deadline, then work, then position.
fn deadline_order(instance: &FlexInstance, due: &[f64]) -> Vec<usize> {
    let jobs = instance.jobs();
    let mut order = sorted(jobs.len(), |j| jobs[j].work);
    order.sort_by(|&a, &b| due[a].total_cmp(&due[b]));
    order
}

/// The best malleable schedule found, and the bound if it came with it.
fn malleable(
    instance: &FlexInstance,
    config: &Config<'_>,
    budget: &mut Budget<'_>,
) -> (Candidate, Option<f64>) {
    let mut packer = Packer::new(instance);
    let mut starts = ranked(instance, &mut packer, &Rule::ALL, THOROUGH);
    let (mut dues, mut proven) = (Vec::new(), None);
    if instance.combine() == Combine::Max {
        let optimum = minimax::minimax(instance.jobs(), instance.slots());
        proven = Some(optimum.bound);
        dues.push(optimum.due);
    } else if instance.jobs().iter().any(|job| job.cost.as_steps().is_some()) {
        let mut part = budget.share(2);
        dues.push(targets::search(instance, &mut part));
        budget.refund(&part);
    }
    for due in &dues {
        let order = deadline_order(instance, due);
        starts.push(Ranked { cost: packer.cost(&order), order, winner: Winner::Deadlines });
    }
    starts.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let best = &starts[0];
    let mut found = Candidate::new(instance, packer.pieces(&best.order), best.winner);
    let settled = |found: &Candidate, proven: Option<f64>| proven.is_some_and(|p| is_optimal(found.cost, p));
    for due in &dues {
        if !settled(&found, proven) {
            found = fill(instance, due).into_iter().fold(found, Candidate::or);
        }
    }
    // From the two best starts: the best start does not always lead to the best end.
    for start in starts.iter_mut().take(2) {
        if settled(&found, proven) || config.steps == 0 {
            break;
        }
        let before = start.cost;
        let mut part = budget.share(2);
        let after = insertion(&mut packer, &mut start.order, before, &mut part);
        budget.refund(&part);
        if part.was_cut() {
            budget.note_cut();
        }
        if after < before {
            let winner = match start.winner {
                Winner::Order(rule) => Winner::Search(rule),
                _ => Winner::DeadlinesSearch,
            };
            found = found.or(Candidate::new(instance, packer.pieces(&start.order), winner));
        }
    }
    let few_steps = instance.combine() == Combine::Sum
        && instance.jobs().len() <= EXACT_JOBS_MAX
        && instance.jobs().iter().all(|job| job.cost.as_steps().is_some());
    if few_steps && config.nodes > 0 && !config.cancel.is_some_and(|cancel| cancel()) {
        return exact_levels(instance, config.nodes, found);
    }
    (found, proven)
}

/// The exact choice of levels, and its bound.
fn exact_levels(instance: &FlexInstance, nodes: u64, found: Candidate) -> (Candidate, Option<f64>) {
    let whole: Vec<Job> = instance.jobs().iter().map(|job| Job { firm: job.work, ..job.clone() }).collect();
    let exact = levels::exact(&whole, instance.slots(), found.cost, nodes);
    let filled = fill(instance, &exact.due);
    let found = filled.into_iter().fold(found, Candidate::or);
    let bound = if whole == instance.jobs() {
        exact.bound
    } else {
        levels::exact(instance.jobs(), instance.slots(), found.cost, nodes).bound
    };
    (found, Some(bound))
}

/// The water filling to these deadlines.
fn fill(instance: &FlexInstance, due: &[f64]) -> Option<Candidate> {
    if due.is_empty() || instance.jobs().len() > FILLING_JOBS_MAX {
        return None;
    }
    let filling = deadlines::fill(instance.jobs(), due, instance.slots())?;
    Some(Candidate::new(instance, slicing::slice(&filling), Winner::WaterFilling))
}

fn molded(instance: &FlexInstance) -> Candidate {
    let constant = rap::solve(instance, THOROUGH)
        .map(|slots| Candidate::new(instance, moldable::at_once(instance, &slots), Winner::Constant));
    let profile = CostProfile::new(instance);
    let turns = Rule::ALL.into_iter().filter_map(|rule| {
        let order = rule.order(instance, &profile, THOROUGH)?;
        Some(Candidate::new(instance, moldable::in_turn(instance, &order), Winner::Turns(rule)))
    });
    constant
        .into_iter()
        .chain(turns)
        .reduce(Candidate::or)
        .expect("invariant: the given order always applies")
}
