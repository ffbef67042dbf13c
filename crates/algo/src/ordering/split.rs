//! The best split of a cluster's slots: exact sweeps over all splits, by bounds over ranges.
//!
//! The paper's Algorithms 4 and 5 estimate every split. The makespan of a split is not unimodal in its map
//! slots (docs/math/ordering.md D6), so every split must be considered; but bounds over ranges of splits
//! leave only few to estimate, see `bounds.rs` and `split_search.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use slackline_model::{JobId, Span};

use super::bounds::Bounds;
use super::changes::Changes;
use super::estimator::{Estimator, Mode};
use super::orders::{Candidates, Goal, Rule, Times};
use super::ranges::{GoalBounds, RangeBounds};
use super::split_search::{self, Search};
use super::splits::Splits;
use super::workload::{Ends, Split, Workload};

/// How splits are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How reduces are issued.
    pub mode: Mode,
    /// The times that may make the orders of MK_JR.
    pub mk_jr: Candidates,
    /// The times that may make the orders of MK_TCT_JR.
    pub mk_tct_jr: Candidates,
}

impl Config {
    /// Work-conserving FIFO; MK_JR by the better of both times, MK_TCT_JR as the paper has it.
    pub fn standard() -> Self {
        let mk_tct_jr = Candidates::Only(Times::Area);
        Self { mode: Mode::WorkConserving, mk_jr: Candidates::Best, mk_tct_jr }
    }

    fn times(self, rule: Rule) -> &'static [Times] {
        match rule {
            Rule::MkJr => self.mk_jr.times(),
            Rule::MkTctJr => self.mk_tct_jr.times(),
        }
    }
}

/// A split, an order on it, and its estimated results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub split: Split,
    /// The rule of the order, and its times; `None` if all orders were tried.
    pub rule: Option<(Rule, Times)>,
    /// The jobs, first to last.
    pub order: Vec<JobId>,
    /// When the last job is done.
    pub makespan: Span,
    /// Sum of the completions, in microseconds.
    pub total_completion: u128,
}

impl Choice {
    /// Estimates an order of no rule.
    fn of(
        estimator: &mut Estimator,
        workload: &Workload,
        split: Split,
        order: Vec<JobId>,
        mode: Mode,
    ) -> Self {
        let estimate = estimator.run(workload, &order, split, mode);
        let (makespan, total_completion) = (estimate.makespan(), estimate.total_completion());
        Self { split, rule: None, order, makespan, total_completion }
    }
}

/// The best split, and the effort of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// The split with its order.
    pub choice: Choice,
    /// Number of estimated splits; bounds ruled the others out.
    pub evaluated: u32,
    /// Splits there are.
    pub candidates: u32,
}

/// MK_SF_JR (Algorithm 4): the split of least makespan, jobs in the order of MK_JR. Exact over all splits;
/// among equally good splits, one of least total completion time among the estimated ones.
pub fn mk_sf_jr(workload: &Workload, splits: Splits, config: Config) -> Best {
    best_split(workload, splits, Rule::MkJr, Goal::Makespan, config)
}

/// The best split for `goal`, jobs in the order of `rule`. With MK_TCT_JR and the makespan this is Algorithm
/// 5 as printed; with the total completion time it is the algorithm of its text.
pub fn best_split(workload: &Workload, splits: Splits, rule: Rule, goal: Goal, config: Config) -> Best {
    Probe::with_helper(workload, splits, config, None, |probe| {
        let choice = probe.best(rule, goal, config);
        Best { choice, evaluated: probe.evaluated(), candidates: splits.count() }
    })
}

/// The splits and orders that are not worse in both makespan and total completion time than another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// By makespan, least first; no two are equal in both. If several splits or orders are equal, the first
    /// one found.
    pub choices: Vec<Choice>,
    /// The result of Algorithm 5: the least makespan with the orders of MK_TCT_JR. Often on the front, but an
    /// order of MK_JR may be better in both.
    pub paper: Choice,
    /// Number of estimated splits; bounds ruled the others out.
    pub evaluated: u32,
    /// Splits there are.
    pub candidates: u32,
}

/// MK_TCT_SF_JR (Algorithm 5) with all choices: the Pareto front over all splits and the orders of both
/// rules. Exact.
pub fn mk_tct_sf_jr(workload: &Workload, splits: Splits, config: Config) -> Front {
    mk_tct_sf_jr_with_progress(workload, splits, config, &mut |_, _| ())
}

/// As [`mk_tct_sf_jr`]; `progress` receives the number of settled splits, and the total of all searches.
pub fn mk_tct_sf_jr_with_progress(
    workload: &Workload,
    splits: Splits,
    config: Config,
    progress: &mut dyn FnMut(u64, u64),
) -> Front {
    let searches = 3 * config.mk_tct_jr.times().len() + 2 * config.mk_jr.times().len();
    let of = searches as u64 * u64::from(splits.count());
    let progress = Progress { report: progress, settled: 0, of };
    Probe::with_helper(workload, splits, config, Some(progress), |probe| front(probe, splits, config))
}

/// The front, by the searches of a probe.
fn front(probe: &mut Probe<'_>, splits: Splits, config: Config) -> Front {
    let paper = probe.best(Rule::MkTctJr, Goal::Makespan, config);
    let fastest = probe.best(Rule::MkJr, Goal::Makespan, config);
    let shortest = probe.best(Rule::MkTctJr, Goal::TotalCompletion, config);
    let floors = [
        (Rule::MkTctJr, (paper.makespan.0.into(), shortest.total_completion)),
        (Rule::MkJr, (fastest.makespan.0.into(), 0)),
    ];
    let mut front = Vec::new();
    for end in [paper.clone(), fastest, shortest] {
        keep(&mut front, end);
    }
    for (rule, floor) in floors {
        for &times in config.times(rule) {
            let mut search = ForBoth { probe: &mut *probe, rule, times, floor, front };
            split_search::best_first(splits.points(), &mut search);
            front = search.front;
        }
    }
    front.sort_by_key(|choice| choice.makespan);
    Front { choices: front, paper, evaluated: probe.evaluated(), candidates: splits.count() }
}

/// The paper's proportional rule: the best of the splits of `small`, scaled to `splits`. Exact in the
/// fluid model only (docs/math/ordering.md D6: 2.5 % worse than the best on average, up to 18 %).
pub fn proportional(workload: &Workload, splits: Splits, small: Splits, config: Config) -> Best {
    let best = mk_sf_jr(workload, small, config);
    let choice = at_split(workload, splits.proportional(best.choice.split), Rule::MkJr, config);
    Best { choice, evaluated: best.evaluated + 1, candidates: splits.count() }
}

/// The order of a rule on one split: of its candidates, the one of least makespan for
/// [`Rule::MkJr`] and of least total completion time for [`Rule::MkTctJr`].
pub fn at_split(workload: &Workload, split: Split, rule: Rule, config: Config) -> Choice {
    let (goal, mut estimator) = (rule.goal(), Estimator::default());
    (config.times(rule).iter())
        .map(|&times| {
            let order = rule.order(workload, split, times);
            Choice {
                rule: Some((rule, times)),
                ..Choice::of(&mut estimator, workload, split, order, config.mode)
            }
        })
        .min_by_key(|choice| goal.key(choice.makespan, choice.total_completion))
        .expect("invariant: there is a candidate")
}

/// The jobs in the order of their ids on one split: the result without any ordering.
pub fn as_submitted(workload: &Workload, split: Split, mode: Mode) -> Choice {
    Choice::of(&mut Estimator::default(), workload, split, workload.ids().collect(), mode)
}

/// How far several searches over all splits are.
struct Progress<'a> {
    report: &'a mut dyn FnMut(u64, u64),
    settled: u64,
    of: u64,
}

/// An order on a split: its rule, the times it goes by, and the map slots of a node.
type SplitOrder = (Rule, Times, u32);

/// A range of splits with the orders of a rule: the order at its first point, and its last point.
type OrderRange = (SplitOrder, u32);

/// Estimates and bounds splits, each once for all searches.
struct Probe<'a> {
    splits: Splits,
    bounds: Bounds,
    worker: Worker<'a>,
    /// Works ahead of the searches, on another processor.
    helper: Option<Helper>,
    changes: Changes,
    /// Makespan and total completion time of the estimated splits.
    estimated: BTreeMap<SplitOrder, (Span, u128)>,
    /// Bounds by ranges, for any schedule of the reduces and for the reduces in order.
    bounded: BTreeMap<OrderRange, Bounded>,
    /// The splits that the searches visited.
    visited: Vec<u32>,
    progress: Option<Progress<'a>>,
}

#[derive(Clone, Copy)]
struct Bounded {
    any: GoalBounds,
    /// The better of that bound and the one with the reduces in order, if requested.
    in_order: Option<GoalBounds>,
}

/// Computes estimates and bounds; they depend on nothing else.
struct Worker<'a> {
    workload: &'a Workload,
    splits: Splits,
    mode: Mode,
    range_bounds: RangeBounds<'a>,
    estimator: Estimator,
    /// The order that was made last of each kind: that of another split is nearly the same.
    orders: BTreeMap<(Rule, Times), Vec<JobId>>,
}

impl<'a> Worker<'a> {
    fn new(workload: &'a Workload, splits: Splits, mode: Mode) -> Self {
        let (range_bounds, estimator) = (RangeBounds::new(workload), Estimator::default());
        Self { workload, splits, mode, range_bounds, estimator, orders: BTreeMap::new() }
    }

    fn estimate(&mut self, (rule, times, point): SplitOrder) -> Choice {
        let split = self.splits.at(point);
        let order = self.orders.entry((rule, times)).or_insert_with(|| self.workload.ids().collect());
        rule.reorder(self.workload, split, times, order);
        let choice = Choice::of(&mut self.estimator, self.workload, split, order.clone(), self.mode);
        Choice { rule: Some((rule, times)), ..choice }
    }

    /// The bound of a range, for any schedule of the reduces; a better one unless `is_enough`.
    fn bound(
        &mut self,
        ((rule, times, from), to): OrderRange,
        is_enough: impl Fn(GoalBounds) -> bool,
    ) -> Bounded {
        let ends = self.splits.ends(&(from..=to));
        let any = self.range_bounds.bound(rule, times, ends);
        let in_order =
            (!is_enough(any)).then(|| self.range_bounds.bound_in_order(self.mode, ends).unwrap_or(any));
        Bounded { any, in_order }
    }
}

/// A result that a search is likely to need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    Estimate(SplitOrder),
    Bounds(OrderRange),
}

enum Finding {
    Estimated(SplitOrder, (Span, u128)),
    Bounded(OrderRange, Bounded),
}

/// The most requests that wait for the helper: it has the next one when a search is slow to ask.
const PENDING_MAX: usize = 3;

/// A thread that computes one result after another.
struct Helper {
    requests: Sender<Request>,
    findings: Receiver<Finding>,
    /// The requests that are not answered yet.
    pending: VecDeque<Request>,
}

impl<'a> Probe<'a> {
    /// Calls `search` with a probe. On several processors, a helper computes what the search needs next. Results do
    /// not depend on it.
    fn with_helper<T>(
        workload: &'a Workload,
        splits: Splits,
        config: Config,
        progress: Option<Progress<'a>>,
        search: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut probe = Self {
            splits,
            bounds: Bounds::new(workload),
            worker: Worker::new(workload, splits, config.mode),
            helper: None,
            changes: Changes::new(workload, splits),
            estimated: BTreeMap::new(),
            bounded: BTreeMap::new(),
            visited: Vec::new(),
            progress,
        };
        let has_processors = std::thread::available_parallelism().is_ok_and(|number| number.get() > 1);
        std::thread::scope(|scope| {
            let ((requests, tasks), (answers, findings)) = (channel(), channel());
            let help = move || {
                let mut worker = Worker::new(workload, splits, config.mode);
                for request in tasks {
                    let finding = match request {
                        Request::Estimate(at) => {
                            let choice = worker.estimate(at);
                            Finding::Estimated(at, (choice.makespan, choice.total_completion))
                        }
                        Request::Bounds(range) => Finding::Bounded(range, worker.bound(range, |_| false)),
                    };
                    if answers.send(finding).is_err() {
                        return;
                    }
                }
            };
            if has_processors && Builder::new().spawn_scoped(scope, help).is_ok() {
                probe.helper = Some(Helper { requests, findings, pending: VecDeque::new() });
            }
            let found = search(&mut probe);
            // Without requests the helper ends.
            probe.helper = None;
            found
        })
    }

    /// Takes in what the helper has found, and waits for `needed` if it was requested.
    fn receive(&mut self, needed: Option<Request>) {
        let Some(helper) = &mut self.helper else { return };
        while !helper.pending.is_empty() {
            let is_needed = needed.is_some_and(|needed| helper.pending.contains(&needed));
            let finding =
                if is_needed { helper.findings.recv().ok() } else { helper.findings.try_recv().ok() };
            match finding {
                Some(Finding::Estimated(at, result)) => drop(self.estimated.insert(at, result)),
                Some(Finding::Bounded(range, bounded)) => drop(self.bounded.insert(range, bounded)),
                None => return,
            }
            // Findings come in the order of the requests.
            helper.pending.pop_front();
        }
    }

    /// Gives the helper a request unless it has enough. Returns whether it has enough now.
    fn request(&mut self, request: Request) -> bool {
        self.receive(None);
        let is_known = match request {
            Request::Estimate(at) => self.estimated.contains_key(&at),
            Request::Bounds(range) => self.bounded.contains_key(&range),
        };
        let Some(helper) = &mut self.helper else { return true };
        let is_new = !is_known && !helper.pending.contains(&request);
        if is_new && helper.pending.len() < PENDING_MAX && helper.requests.send(request).is_ok() {
            helper.pending.push_back(request);
        }
        helper.pending.len() >= PENDING_MAX
    }

    /// Requests what a search computes when it comes to a range. Returns whether the helper has enough now.
    fn look_ahead(&mut self, rule: Rule, times: Times, low: u32, high: u32) -> bool {
        if low == high {
            return self.request(Request::Estimate((rule, times, low)));
        }
        let middle = self.changes.middle(times, low, high);
        [(low, middle), (middle + 1, high)].into_iter().any(|(low, high)| {
            !is_narrow(&(low..=high), Some(&())) && self.request(Request::Bounds(((rule, times, low), high)))
        })
    }

    /// The number of splits at which an order was estimated.
    fn evaluated(&mut self) -> u32 {
        self.visited.sort_unstable();
        self.visited.dedup();
        self.visited.len() as u32
    }

    fn settled(&mut self, points: u32) {
        if let Some(Progress { report, settled, of }) = &mut self.progress {
            *settled += u64::from(points);
            report(*settled, *of);
        }
    }

    /// The bound of a range, for any schedule of the reduces; a better one unless `is_enough`.
    fn range_bound(
        &mut self,
        rule: Rule,
        times: Times,
        range: &RangeInclusive<u32>,
        is_enough: impl Fn(GoalBounds) -> bool,
    ) -> GoalBounds {
        let key = ((rule, times, *range.start()), *range.end());
        self.receive(Some(Request::Bounds(key)));
        let known = self.bounded.get(&key).copied();
        let bounded = match known.filter(|known| known.in_order.is_some() || is_enough(known.any)) {
            Some(known) => known,
            None => self.worker.bound(key, &is_enough),
        };
        self.bounded.insert(key, bounded);
        if is_enough(bounded.any) { bounded.any } else { bounded.in_order.unwrap_or(bounded.any) }
    }

    /// A quick bound, for all orders.
    fn bound(&mut self, goal: Goal, range: &RangeInclusive<u32>) -> u128 {
        let Ends { low, high } = self.splits.ends(range);
        match goal {
            Goal::Makespan => self.bounds.makespan(high.map(), low.reduce()).into(),
            Goal::TotalCompletion => self.bounds.total_completion(high.map(), low.reduce()),
        }
    }

    /// Makespan and total completion time of a split that a search visits, if they are known already.
    fn visit(&mut self, point: u32, rule: Rule, times: Times) -> Option<(Span, u128)> {
        self.visited.push(point);
        self.receive(Some(Request::Estimate((rule, times, point))));
        self.estimated.get(&(rule, times, point)).copied()
    }

    fn estimate(&mut self, point: u32, rule: Rule, times: Times) -> Choice {
        let choice = self.worker.estimate((rule, times, point));
        self.estimated.insert((rule, times, point), (choice.makespan, choice.total_completion));
        choice
    }

    /// The best split and times for the orders of a rule.
    fn best(&mut self, rule: Rule, goal: Goal, config: Config) -> Choice {
        let mut best = None;
        for &times in config.times(rule) {
            let points = self.splits.points();
            let mut search = ForGoal { probe: self, rule, times, goal, best };
            split_search::best_first(points, &mut search);
            best = search.best;
        }
        best.expect("invariant: without a best no split is ruled out")
    }
}

/// Splits so close to each other that the bound of their range is nearly exact: estimates cost less than
/// single bounds. Measured for 3, 8 and 20 on 1,000 jobs and 200,000 slots: 8 takes least.
const NARROW: u32 = 8;

fn is_narrow<T>(range: &RangeInclusive<u32>, whole: Option<&T>) -> bool {
    whole.is_some() && range.end() - range.start() < NARROW
}

/// The least value of one goal with the orders of one rule.
struct ForGoal<'p, 'a> {
    probe: &'p mut Probe<'a>,
    rule: Rule,
    times: Times,
    goal: Goal,
    best: Option<Choice>,
}

impl ForGoal<'_, '_> {
    fn key(&self, choice: &Choice) -> (u128, u128) {
        self.goal.key(choice.makespan, choice.total_completion)
    }
}

impl Search for ForGoal<'_, '_> {
    type Bound = u128;

    fn bound(&mut self, range: RangeInclusive<u32>, whole: Option<u128>) -> u128 {
        let quick = self.probe.bound(self.goal, &range).max(whole.unwrap_or(0));
        if is_narrow(&range, whole.as_ref()) || self.is_hopeless(quick) {
            return quick;
        }
        let of = |both: GoalBounds| match self.goal {
            Goal::Makespan => quick.max(both.makespan.into()),
            Goal::TotalCompletion => quick.max(both.total_completion),
        };
        let (best, goal) = (self.best.as_ref().map(|best| self.key(best).0), self.goal);
        // The makespan hardly depends on the order of the reduces.
        let is_enough = |both| goal == Goal::Makespan || best.is_some_and(|best| best <= of(both));
        of(self.probe.range_bound(self.rule, self.times, &range, is_enough))
    }

    fn is_hopeless(&self, bound: u128) -> bool {
        self.best.as_ref().is_some_and(|best| self.key(best).0 <= bound)
    }

    fn middle(&self, low: u32, high: u32) -> u32 {
        self.probe.changes.middle(self.times, low, high)
    }

    fn look_ahead(&mut self, low: u32, high: u32) -> bool {
        self.probe.look_ahead(self.rule, self.times, low, high)
    }

    fn settled(&mut self, points: u32) {
        self.probe.settled(points);
    }

    fn visit(&mut self, point: u32) {
        let known = self.probe.visit(point, self.rule, self.times);
        if let (Some((makespan, total)), Some(best)) = (known, &self.best)
            && self.goal.key(makespan, total) >= self.key(best)
        {
            return;
        }
        let choice = self.probe.estimate(point, self.rule, self.times);
        if self.best.as_ref().is_none_or(|best| self.key(&choice) < self.key(best)) {
            self.best = Some(choice);
        }
    }
}

/// The Pareto front in both goals, with the orders of one more rule.
struct ForBoth<'p, 'a> {
    probe: &'p mut Probe<'a>,
    rule: Rule,
    times: Times,
    /// Lower bounds on makespan and total completion time over all splits with these orders. A split beyond
    /// an end of the front is ruled out by one goal, even with a weak bound for the other.
    floor: (u128, u128),
    front: Vec<Choice>,
}

/// Whether one of a front is as good as a bound in both goals.
fn is_dominated(front: &[Choice], makespan: u128, total: u128) -> bool {
    front.iter().any(|c| u128::from(c.makespan.0) <= makespan && c.total_completion <= total)
}

/// Adds a choice to a front unless one of it is as good in both goals.
fn keep(front: &mut Vec<Choice>, choice: Choice) {
    let (makespan, total) = (choice.makespan, choice.total_completion);
    if !front.iter().any(|c| c.makespan <= makespan && c.total_completion <= total) {
        front.retain(|c| c.makespan < makespan || c.total_completion < total);
        front.push(choice);
    }
}

impl Search for ForBoth<'_, '_> {
    /// A number to search by, and the bounds for both goals.
    type Bound = (u128, u128, u128);

    fn bound(&mut self, range: RangeInclusive<u32>, whole: Option<Self::Bound>) -> Self::Bound {
        let (_, makespan, total) = whole.unwrap_or_default();
        let makespan = self.probe.bound(Goal::Makespan, &range).max(makespan).max(self.floor.0);
        let total = self.probe.bound(Goal::TotalCompletion, &range).max(total).max(self.floor.1);
        let quick = (makespan.saturating_mul(total), makespan, total);
        if is_narrow(&range, whole.as_ref()) || self.is_hopeless(quick) {
            return quick;
        }
        let of = |both: GoalBounds| {
            let (makespan, total) = (makespan.max(both.makespan.into()), total.max(both.total_completion));
            (makespan.saturating_mul(total), makespan, total)
        };
        let front = &self.front;
        let is_enough = |both| {
            let (_, makespan, total) = of(both);
            is_dominated(front, makespan, total)
        };
        of(self.probe.range_bound(self.rule, self.times, &range, is_enough))
    }

    fn is_hopeless(&self, (_, makespan, total): Self::Bound) -> bool {
        is_dominated(&self.front, makespan, total)
    }

    fn middle(&self, low: u32, high: u32) -> u32 {
        self.probe.changes.middle(self.times, low, high)
    }

    fn look_ahead(&mut self, low: u32, high: u32) -> bool {
        self.probe.look_ahead(self.rule, self.times, low, high)
    }

    fn settled(&mut self, points: u32) {
        self.probe.settled(points);
    }

    fn visit(&mut self, point: u32) {
        if let Some((makespan, total)) = self.probe.visit(point, self.rule, self.times)
            && is_dominated(&self.front, makespan.0.into(), total)
        {
            return;
        }
        let choice = self.probe.estimate(point, self.rule, self.times);
        keep(&mut self.front, choice);
    }
}
