//! The search for a capacity: decides which values to simulate, and evaluates the results.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use slackline_model::{Draft, Instance, Invalid, Seed, Span};

use super::bisection::{Fewest, fewest, roughly};
use super::condition::Condition;
use super::draws::{DRAWS_MIN, DrawRule, Draws, Effort};
use super::search_step::{Draw, Figures, SearchStep};
use crate::capacity::search_dimension::{Axis, Knob, Values};
use crate::parallel;
use crate::policy_spec::PolicySpec;
use crate::simulate::{GRAIN, Options, SimulateError, Watch, prepare, simulate_figures};

/// The search method for the smallest size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Bisection. It assumes that a larger cluster meets the conditions whenever a smaller one does. Sizes
    /// next to the answer and about 5 % from it are tried as well, to check the assumption.
    #[default]
    Bisect,
    /// Every size, the smallest first, until one meets the conditions. More machines may be worse (Graham's
    /// anomalies).
    Every,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// The smallest size that meets the conditions. For settings: the value with the lowest cost among those
    /// that meet them, and the smallest of equal ones. `None` if no tried value meets the conditions.
    pub found: Option<f64>,
    /// Every tried value, in ascending order.
    pub tried: Vec<SearchStep>,
    /// The search method. For a list, every value is tried.
    pub method: Method,
    /// Whether no tried size below the answer meets the conditions, and every tried size above it does.
    /// `None` for settings, and if no larger size was tried.
    pub is_monotone: Option<bool>,
    /// Whether the search was cancelled. If so, a smaller size may meet the conditions.
    pub is_interrupted: bool,
    /// Whether the time limit ended the draws of a value.
    pub is_out_of_time: bool,
    /// For settings with draws: the values whose mean cost is about that of the answer.
    pub tied: Vec<f64>,
}

impl Capacity {
    /// The answer's step.
    pub fn answer(&self) -> Option<&SearchStep> {
        self.tried.iter().find(|tried| Some(tried.value) == self.found)
    }

    /// The largest number of draws of a value.
    pub fn most_draws(&self) -> u32 {
        self.tried.iter().map(SearchStep::drawn).max().unwrap_or(0)
    }
}

/// The reason why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The workload cannot run on a cluster of that size.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The axis does not fit the cluster.
    #[error("{0}")]
    Axis(String),
    /// A simulation failed.
    #[error("{knob} {value}: {problem}")]
    Simulation {
        /// The quantity that was varied.
        knob: String,
        /// The value.
        value: f64,
        /// The violation or the error of the policy.
        problem: Box<SimulateError>,
    },
    /// There is no workload for a seed.
    #[error("seed {seed}: {problem}")]
    Draw {
        /// The seed.
        seed: u64,
        /// The reason.
        problem: String,
    },
}

/// A search for the smallest cluster or the best setting.
pub struct Search<'a> {
    /// The policy that runs the cluster.
    pub policy: &'a PolicySpec,
    /// The conditions, all of which must hold.
    pub conditions: &'a [Condition],
    /// The quantity to vary, and its values.
    pub axis: &'a Axis,
    /// The options of the simulations.
    pub options: &'a Options,
    /// The search method for the smallest size. [`Method::Every`] is used if a larger cluster is not assumed
    /// to be better.
    pub method: Method,
    /// A fast policy. Its answer is the starting point of the search.
    pub scout: Option<&'a PolicySpec>,
    /// The random draws at each value; `None` for one simulation at each value.
    pub draws: Option<Draws<'a>>,
    /// The maximum length of tasks that are cut from phases given as work.
    pub grain: Span,
    /// The number of parallel simulations. It changes neither the answer nor the list of tried values.
    pub threads: usize,
    /// Called before every instant of every simulation; returns whether to cancel the search.
    pub cancel: &'a (dyn Fn() -> bool + Sync),
    /// Called with every value after it was tried.
    pub on_step: &'a (dyn Fn(&SearchStep) + Sync),
}

impl<'a> Search<'a> {
    /// A search along an axis, with one simulation at a time. Phases given as work are cut into tasks of at
    /// most 10 s.
    pub fn new(
        policy: &'a PolicySpec,
        conditions: &'a [Condition],
        axis: &'a Axis,
        options: &'a Options,
    ) -> Self {
        Self {
            policy,
            conditions,
            axis,
            options,
            method: Method::Bisect,
            scout: None,
            draws: None,
            grain: GRAIN,
            threads: 1,
            cancel: &|| false,
            on_step: &|_| (),
        }
    }

    /// The simulation for a value of the axis: the workload, cut by the grain, and the options.
    ///
    /// # Errors
    /// A draft that is invalid for this value or cannot be prepared; machines without the varied quantity.
    pub fn at(&self, draft: &Draft, value: f64) -> Result<(Instance, Options), CapacityError> {
        self.at_seed(draft, value, self.options.sim.seed)
    }

    fn at_seed(&self, draft: &Draft, value: f64, seed: Seed) -> Result<(Instance, Options), CapacityError> {
        let (mut draft, mut options) = (draft.clone(), self.options.clone());
        options.sim.seed = seed;
        self.axis.knob.set(&mut draft, &mut options, value).map_err(CapacityError::Axis)?;
        let instance = Instance::new(&draft)?;
        let prepared = prepare(&instance, self.grain).map_err(|problem| self.simulation(value, problem))?;
        Ok((prepared.into_owned(), options))
    }

    fn simulation(&self, value: f64, problem: SimulateError) -> CapacityError {
        CapacityError::Simulation { knob: self.axis.knob.to_string(), value, problem: Box::new(problem) }
    }

    /// The policy for a value of the axis.
    ///
    /// # Errors
    /// A policy without such a queue or parameter.
    pub fn policy_at(&self, value: f64) -> Result<PolicySpec, CapacityError> {
        self.at_value(self.policy, value)
    }

    fn at_value(&self, policy: &PolicySpec, value: f64) -> Result<PolicySpec, CapacityError> {
        match &self.axis.knob {
            Knob::Capacity(queue) => policy.with_capacity(queue, value).map_err(CapacityError::Axis),
            Knob::Parameter(name) => policy.with_parameter(name, value).map_err(CapacityError::Axis),
            _ => Ok(policy.clone()),
        }
    }
}

/// The draws of each setting, before those about equal to the best get more.
const FIRST_DRAWS: u32 = 20;

/// The reason why the search ends early.
enum Stop {
    Cancelled,
    Failed(Box<CapacityError>),
}

impl From<CapacityError> for Stop {
    fn from(error: CapacityError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Simulates values of the axis until the answer is known.
///
/// Bisection ([`Method::Bisect`]) simulates O(log n) of n sizes, [`Method::Every`] all sizes up to the answer.
/// For settings, and for sizes without a condition, all values are simulated.
///
/// # Errors
/// A draft that is invalid for some value; an axis without values or with too many; an invalid schedule; a
/// policy that could not continue.
pub fn search(draft: &Draft, search: &Search<'_>) -> Result<Capacity, CapacityError> {
    search.axis.check(search.conditions.is_empty()).map_err(CapacityError::Axis)?;
    let mut work = Work { draft, search, tried: BTreeMap::new(), settled: BTreeSet::new() };
    let sought = match &search.axis.values {
        Values::Range(range) if search.conditions.is_empty() => {
            work.all(&range.clone().map(f64::from).collect::<Vec<_>>())
        }
        Values::Range(range) if work.is_bisected() => work.bisect(range.clone()),
        Values::Range(range) => work.every(range.clone()),
        Values::Listed(values) => work.all(values),
    };
    match sought {
        Ok(capacity) => Ok(capacity),
        Err(Stop::Cancelled) => Ok(work.so_far()),
        Err(Stop::Failed(error)) => Err(*error),
    }
}

struct Work<'a> {
    draft: &'a Draft,
    search: &'a Search<'a>,
    /// By size; for a list, by index.
    tried: BTreeMap<u32, SearchStep>,
    /// The sizes that were tested fully, with draws.
    settled: BTreeSet<u32>,
}

impl Work<'_> {
    fn is_bisected(&self) -> bool {
        self.search.method == Method::Bisect && self.search.conditions.iter().all(Condition::favours_size)
    }

    /// Bisection, starting from the answer of the scout if there is one.
    ///
    /// With draws, sizes are tested roughly. Then the answer, its neighbours and the sizes that contradict it are
    /// tested fully, and the search is repeated with these results until it changes nothing.
    fn bisect(&mut self, range: RangeInclusive<u32>) -> Result<Capacity, Stop> {
        let guess = match self.search.scout {
            Some(scout) => self.scouted(scout, range.clone())?,
            None => None,
        };
        let policy = self.search.policy;
        // With draws, the threads share the draws of one size.
        let width = if self.search.draws.is_some() { 1 } else { self.search.threads };
        loop {
            let fewest = fewest(range.clone(), guess, width, &mut |sizes: &[u32]| self.sizes(policy, sizes))?;
            let unsettled = self.unsettled(&fewest, *range.end());
            for &size in &unsettled {
                self.settle(size)?;
            }
            if unsettled.is_empty() {
                // The sizes tried in advance depend on the number of threads.
                if self.search.draws.is_none() {
                    self.tried.retain(|size, _| fewest.tried.contains(size));
                }
                return Ok(self.capacity(fewest.found, Method::Bisect, Some(fewest.is_monotone)));
            }
        }
    }

    /// The sizes whose results need a full test: the answer, its neighbours, and failing sizes above it. Without
    /// an answer, the largest size.
    fn unsettled(&self, fewest: &Fewest, largest: u32) -> Vec<u32> {
        if self.search.draws.is_none() {
            return Vec::new();
        }
        let found = fewest.found.unwrap_or(largest);
        let near = found.saturating_sub(1)..=found.saturating_add(1);
        let matters =
            |&(&size, step): &(&u32, &SearchStep)| near.contains(&size) || size > found && !step.meets;
        let unsettled = self.tried.iter().filter(matters).map(|(&size, _)| size);
        unsettled.filter(|size| !self.settled.contains(size)).collect()
    }

    /// Tests a size fully.
    fn settle(&mut self, size: u32) -> Result<(), Stop> {
        let mut step = self.tried.remove(&size).unwrap_or_else(|| untried(f64::from(size)));
        // A cancelled test keeps the draws that it has.
        let tested = self.test(self.search.policy, &mut step, Effort::Full);
        self.tried.insert(size, step);
        self.settled.insert(size);
        tested
    }

    /// The answer of a policy, or the largest size if it has none; `None` if the policy cannot be simulated.
    fn scouted(&self, scout: &PolicySpec, range: RangeInclusive<u32>) -> Result<Option<u32>, Stop> {
        let most = *range.end();
        let mut ask = |sizes: &[u32]| {
            let tried = self.simulate(scout, sizes)?;
            Ok(tried.iter().map(|tried| tried.meets).collect())
        };
        match roughly(range, self.search.threads, &mut ask) {
            Ok(found) => Ok(Some(found.unwrap_or(most))),
            Err(Stop::Failed(_)) => Ok(None),
            Err(Stop::Cancelled) => Err(Stop::Cancelled),
        }
    }

    /// Tries the smallest size first, until one meets the conditions.
    fn every(&mut self, range: RangeInclusive<u32>) -> Result<Capacity, Stop> {
        let (mut left, mut found) = (range, None);
        let width = if self.search.draws.is_some() { 1 } else { self.search.threads.max(1) };
        loop {
            let sizes: Vec<u32> = left.by_ref().take(width).collect();
            if sizes.is_empty() {
                break;
            }
            let mut does = self.sizes(self.search.policy, &sizes)?;
            if self.search.draws.is_some() {
                self.settle(sizes[0])?;
                does = vec![self.tried[&sizes[0]].meets];
            }
            found = sizes.into_iter().zip(does).find(|&(_, does)| does).map(|(size, _)| size);
            if let Some(found) = found {
                self.tried.retain(|&size, _| size <= found);
                break;
            }
        }
        Ok(self.capacity(found, Method::Every, None))
    }

    /// Simulates all values to the end. Finds the smallest size that meets the conditions, or the setting
    /// with the lowest mean cost that does, or the load up to which all do.
    fn all(&mut self, values: &[f64]) -> Result<Capacity, Stop> {
        let Search { axis, conditions, .. } = *self.search;
        let is_size = axis.knob.is_size() && !conditions.is_empty();
        let is_load = axis.knob.is_load() && !conditions.is_empty();
        let mut tried = self.all_steps(values)?;
        let meeting = tried.iter().filter(|tried| tried.meets).count();
        let found = if is_size {
            tried.iter().position(|tried| tried.meets)
        } else if is_load {
            tried.iter().take_while(|tried| tried.meets).count().checked_sub(1)
        } else {
            self.cheapest(&mut tried)?
        };
        // Those that meet the conditions are the largest sizes, or the smallest loads.
        let expected = |found: usize| if is_size { tried.len() - found } else { found + 1 };
        let is_monotone = (is_size || is_load).then(|| found.map_or(0, expected) == meeting);
        self.tried = (0..).zip(tried).collect();
        let mut capacity = self.capacity(found.map(|found| found as u32), Method::Every, is_monotone);
        if !(is_size || is_load)
            && self.search.draws.is_some()
            && let Some(answer) = capacity.answer()
        {
            let ties = |tried: &&SearchStep| {
                tried.meets && tried.value != answer.value && tried.is_tied_with(answer)
            };
            capacity.tied = capacity.tried.iter().filter(ties).map(|tried| tried.value).collect();
        }
        Ok(capacity)
    }

    /// The first draws of all values. With conditions, as many as a full test needs.
    fn all_steps(&self, values: &[f64]) -> Result<Vec<SearchStep>, Stop> {
        let Search { policy, on_step, conditions, .. } = *self.search;
        if self.search.draws.is_none() {
            return parallel::map(values.len(), self.search.threads, |k| -> Result<SearchStep, Stop> {
                let tried = self.one(policy, values[k])?;
                on_step(&tried);
                Ok(tried)
            });
        }
        let step = |&value: &f64| {
            let mut step = untried(value);
            if conditions.is_empty() {
                self.draw_up_to(policy, &mut step, FIRST_DRAWS)?;
            } else {
                self.test(policy, &mut step, Effort::Full)?;
            }
            on_step(&step);
            Ok(step)
        };
        values.iter().map(step).collect()
    }

    /// The index of the value with the lowest mean cost among those that meet the conditions. With draws, the
    /// values that cost about the same get more draws.
    fn cheapest(&self, tried: &mut [SearchStep]) -> Result<Option<usize>, Stop> {
        let cost = |tried: &SearchStep| tried.mean(&|figures| figures.cost).unwrap_or(f64::INFINITY);
        let best = |tried: &[SearchStep]| {
            let meets = (0..tried.len()).filter(|&k| tried[k].meets);
            meets.min_by(|&a, &b| cost(&tried[a]).total_cmp(&cost(&tried[b])))
        };
        let Some(first) = best(tried).filter(|_| self.search.draws.is_some()) else { return Ok(best(tried)) };
        let leader = tried[first].clone();
        for (k, step) in tried.iter_mut().enumerate() {
            if k == first || step.meets && step.is_tied_with(&leader) {
                self.draw_up_to(self.search.policy, step, DRAWS_MIN)?;
            }
        }
        Ok(best(tried))
    }

    fn capacity(&self, found: Option<u32>, method: Method, is_monotone: Option<bool>) -> Capacity {
        let draws = self.search.draws;
        Capacity {
            found: found.map(|found| self.tried[&found].value),
            tried: self.tried.values().cloned().collect(),
            method,
            is_monotone,
            is_interrupted: false,
            is_out_of_time: draws.is_some_and(|draws| (draws.is_out_of_time)()),
            tied: Vec::new(),
        }
    }

    /// The result when the search is cancelled.
    fn so_far(&self) -> Capacity {
        let found = self.tried.iter().find(|(_, tried)| tried.meets).map(|(&place, _)| place);
        Capacity { is_interrupted: true, ..self.capacity(found, self.search.method, None) }
    }

    /// Tries sizes and stores their results. Returns whether each one meets the conditions.
    fn sizes(&mut self, policy: &PolicySpec, sizes: &[u32]) -> Result<Vec<bool>, Stop> {
        // A repeated bisection asks for the same sizes.
        let new: Vec<u32> = sizes.iter().copied().filter(|size| !self.tried.contains_key(size)).collect();
        let steps = self.simulate(policy, &new)?;
        steps.iter().for_each(self.search.on_step);
        self.tried.extend(new.into_iter().zip(steps));
        Ok(sizes.iter().map(|size| self.tried[size].meets).collect())
    }

    fn simulate(&self, policy: &PolicySpec, sizes: &[u32]) -> Result<Vec<SearchStep>, Stop> {
        if self.search.draws.is_none() {
            return parallel::map(sizes.len(), self.search.threads, |k| {
                self.one(policy, f64::from(sizes[k]))
            });
        }
        let rough = |&size: &u32| {
            let mut step = untried(f64::from(size));
            self.test(policy, &mut step, Effort::Rough)?;
            Ok(step)
        };
        sizes.iter().map(rough).collect()
    }

    /// Simulates one value without draws.
    fn one(&self, policy: &PolicySpec, value: f64) -> Result<SearchStep, Stop> {
        let (instance, options) = self.search.at(self.draft, value)?;
        let draw = self.draw(&self.search.at_value(policy, value)?, value, &instance, &options)?;
        Ok(SearchStep { value, meets: draw.meets, draws: vec![draw] })
    }

    /// Adds draws to a step until its result is sure enough.
    fn test(&self, policy: &PolicySpec, step: &mut SearchStep, effort: Effort) -> Result<(), Stop> {
        self.draw_until(policy, step, &|rule, step| rule.is_decided(step.met(), step.drawn(), effort))
    }

    /// Adds draws to a step until it has that many, or the fixed number.
    fn draw_up_to(&self, policy: &PolicySpec, step: &mut SearchStep, most: u32) -> Result<(), Stop> {
        self.draw_until(policy, step, &|rule, step| step.drawn() >= rule.number.unwrap_or(most))
    }

    /// Adds draws, simulated in parallel, until there are enough or the time is up. Draws beyond the first
    /// ones that are enough are dropped, so that the number of threads changes nothing.
    fn draw_until(
        &self,
        policy: &PolicySpec,
        step: &mut SearchStep,
        is_enough: &dyn Fn(&DrawRule, &SearchStep) -> bool,
    ) -> Result<(), Stop> {
        let Some(draws) = &self.search.draws else { return Ok(()) };
        let value = step.value;
        let (shared, policy) = (self.search.at(self.draft, value)?, self.search.at_value(policy, value)?);
        let is_over = || (draws.is_out_of_time)();
        while !is_enough(&draws.rule, step) && (step.draws.is_empty() || !is_over()) {
            let (first, threads) = (step.draws.len(), self.search.threads.max(1));
            let new = parallel::map(threads, threads, |k| -> Result<Draw, Stop> {
                let seed = draws.seed_of(first + k);
                let own = draws.draft.map(|draft| draft(seed)).transpose();
                let own = own.map_err(|problem| CapacityError::Draw { seed, problem })?;
                let own = own.map(|draft| self.search.at_seed(&draft, value, Seed(seed))).transpose()?;
                let (instance, options) = own.as_ref().unwrap_or(&shared);
                let mut options = options.clone();
                options.sim.seed = Seed(seed);
                self.draw(&policy, value, instance, &options)
            })?;
            for draw in new {
                if !is_enough(&draws.rule, step) {
                    step.draws.push(draw);
                }
            }
        }
        step.meets = draws.rule.accepts(step.met(), step.drawn());
        Ok(())
    }

    /// One simulation.
    fn draw(
        &self,
        policy: &PolicySpec,
        value: f64,
        instance: &Instance,
        options: &Options,
    ) -> Result<Draw, Stop> {
        let Search { conditions, cancel, .. } = *self.search;
        let watch = Watch { cancel: Some(cancel), ..Watch::default() };
        let simulated = match simulate_figures(instance, policy, options, None, watch) {
            Ok(simulated) => simulated,
            Err(SimulateError::Stopped) => return Err(Stop::Cancelled),
            Err(problem) => return Err(self.search.simulation(value, problem).into()),
        };
        let figures = simulated.schedule.cost.map(|cost| {
            let metrics = simulated.metrics;
            let machine_hours = f64::from(instance.cluster().n_machines()) * metrics.makespan / 3600.0;
            Box::new(Figures { metrics, cost, machine_hours })
        });
        let meets = figures.as_ref().is_some_and(|found| conditions.iter().all(|c| c.holds(&found.metrics)));
        Ok(Draw { figures, meets })
    }
}

/// A value without draws.
const fn untried(value: f64) -> SearchStep {
    SearchStep { value, draws: Vec::new(), meets: false }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
    use slackline_model::load::{LoadBy, LoadRule};

    use super::*;
    use crate::Registry;

    /// Ten tasks of 6 s with a deadline, on machines of one slot.
    fn draft(deadline: f64) -> Draft {
        let map = Some(TasksDraft::Uniform { tasks: 10, seconds: 6.0 }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let flow = FlowDraft { deadline: Some(deadline), ..FlowDraft::new("f", vec![job]) };
        let slots = Slots::Generic(1);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        Draft { machines: vec![machine], flows: vec![flow], ..Draft::default() }
    }

    /// The answer, and the tried values with whether they meet the conditions.
    fn found(
        draft: &Draft,
        axis: &str,
        conditions: &[&str],
        method: Method,
    ) -> (Option<f64>, Vec<(f64, bool)>) {
        let policy = Registry::standard().parse("edf").unwrap();
        let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
        let (axis, options) = (axis.parse().unwrap(), Options::exact());
        let one = Search { method, ..Search::new(&policy, &conditions, &axis, &options) };
        let capacity = search(draft, &one).unwrap();
        let many = Search { method, threads: 3, ..Search::new(&policy, &conditions, &axis, &options) };
        assert_eq!(search(draft, &many).unwrap(), capacity, "threads change nothing");
        (capacity.found, capacity.tried.iter().map(|tried| (tried.value, tried.meets)).collect())
    }

    #[test]
    fn the_smallest_cluster_is_found_and_what_was_tried_is_reported() {
        let draft = draft(18.0);
        let every = found(&draft, "machines=2..9", &["missed=0"], Method::Every);
        assert_eq!(every, (Some(4.0), vec![(2.0, false), (3.0, false), (4.0, true)]));
        let (answer, tried) = found(&draft, "machines=2..90", &["missed=0"], Method::Bisect);
        assert_eq!(answer, Some(4.0));
        assert!(tried.contains(&(3.0, false)) && tried.contains(&(5.0, true)), "{tried:?}");
        assert_eq!(found(&draft, "machines=1..2", &["missed=0"], Method::Bisect).0, None);
    }

    #[test]
    fn the_answer_for_loads_is_the_one_up_to_which_conditions_hold() {
        // Work of 60 s on 4 machines: at a load of 2, 20 tasks take 30 s.
        let rule = LoadRule { by: LoadBy::Size, keeps_dates: false };
        let answer = |deadline: f64| {
            let mut draft = draft(deadline);
            draft.machines[0].count = 4;
            let policy = Registry::standard().parse("edf").unwrap();
            let conditions = ["missed=0".parse().unwrap()];
            let values = Values::Listed(vec![0.5, 1.0, 1.5, 2.0, 2.5]);
            let axis = Axis { knob: Knob::Load(rule), values };
            search(&draft, &Search::new(&policy, &conditions, &axis, &Options::exact())).unwrap()
        };
        assert_eq!((answer(30.0).found, answer(30.0).is_monotone), (Some(2.0), Some(true)));
        assert_eq!((answer(1.0).found, answer(1.0).is_monotone), (None, Some(true)));
        assert_eq!(answer(1e3).found, Some(2.5));
    }

    #[test]
    fn all_conditions_must_hold() {
        let draft = draft(18.0);
        let found = |conditions| found(&draft, "machines=1..20", conditions, Method::Bisect).0;
        assert_eq!(found(&["missed:0", "makespan:12"]), Some(5.0));
        assert_eq!(found(&["missed:0", "makespan:6"]), Some(10.0));
        // A larger cluster is not assumed to be better here, so every size is tried.
        assert_eq!(found(&["missed:0", "utilisation:0.7"]), Some(8.0));
    }

    #[test]
    fn slots_are_sizes_and_settings_are_judged_by_cost() {
        assert_eq!(found(&draft(18.0), "slots=1..9", &["missed:0"], Method::Bisect).0, Some(4.0));
        let (answer, tried) = found(&draft(18.0), "heartbeat=0..20:10", &[], Method::Bisect);
        assert_eq!((answer, tried.len()), (Some(0.0), 3));
        assert_eq!(found(&draft(18.0), "slots=2..8:3", &["missed:0"], Method::Bisect).0, Some(5.0));
    }

    #[test]
    fn without_flows_the_smallest_cluster_does() {
        let empty = Draft { flows: Vec::new(), ..draft(1.0) };
        for condition in ["missed=0", "makespan<=0", "utilisation=0"] {
            assert_eq!(
                found(&empty, "machines=3..9", &[condition], Method::Bisect).0,
                Some(3.0),
                "{condition}"
            );
        }
    }

    #[test]
    fn a_scout_changes_what_is_tried_and_not_what_is_found() {
        let (draft, options) = (draft(18.0), Options::exact());
        let (policy, scout) = ["flex", "fifo"].map(|name| Registry::standard().parse(name).unwrap()).into();
        let (conditions, axis) = (["missed:0".parse().unwrap()], Axis::machines(1..=90));
        let plain = Search::new(&policy, &conditions, &axis, &options);
        let scouted = Search { scout: Some(&scout), ..Search::new(&policy, &conditions, &axis, &options) };
        assert_eq!(search(&draft, &plain).unwrap().found, search(&draft, &scouted).unwrap().found);
    }

    #[test]
    fn a_stopped_search_returns_its_results_so_far() {
        let policy = Registry::standard().parse("edf").unwrap();
        let (conditions, axis, options) =
            (["missed:0".parse().unwrap()], Axis::machines(1..=90), Options::exact());
        let tried = AtomicUsize::new(0);
        let on_step = |_: &SearchStep| {
            tried.fetch_add(1, Ordering::Relaxed);
        };
        let cancel = || tried.load(Ordering::Relaxed) >= 3;
        let stopped = Search {
            on_step: &on_step,
            cancel: &cancel,
            ..Search::new(&policy, &conditions, &axis, &options)
        };
        let capacity = search(&draft(18.0), &stopped).unwrap();
        assert!(capacity.is_interrupted);
        assert_eq!(capacity.tried.len(), 3);
        assert!(capacity.found.is_some_and(|found| found > 4.0), "{:?}", capacity.found);
    }

    /// A search whose task times are drawn.
    fn drawn(
        axis: &str,
        conditions: &[&str],
        number: Option<u32>,
        threads: usize,
        is_late: bool,
    ) -> Capacity {
        let policy = Registry::standard().parse("edf").unwrap();
        let conditions: Vec<Condition> = conditions.iter().map(|text| text.parse().unwrap()).collect();
        let axis = axis.parse().unwrap();
        let mut options = Options::exact();
        options.sim.jitter = 0.3;
        let rule = DrawRule { confidence: 0.95, number };
        let draws = Draws { rule, seed: 5, draft: None, is_out_of_time: &|| is_late };
        let asked =
            Search { draws: Some(draws), threads, ..Search::new(&policy, &conditions, &axis, &options) };
        search(&draft(18.0), &asked).unwrap()
    }

    #[test]
    fn the_answer_and_its_neighbours_have_enough_draws() {
        let found = drawn("machines=1..40", &["missed:0"], None, 1, false);
        let at = |size: f64| found.tried.iter().find(|tried| tried.value == size).unwrap();
        let answer = found.found.unwrap();
        assert!(at(answer).meets && at(answer).drawn() >= 60 && at(answer).chance() >= 0.95);
        assert!(!at(answer - 1.0).meets && at(answer - 1.0).drawn() >= 60);
        assert!(at(answer + 1.0).meets && at(answer + 1.0).drawn() >= 60);
        assert!(at(40.0).drawn() < 60, "a clear size needs few draws");
        assert_eq!(drawn("machines=1..40", &["missed:0"], None, 3, false), found, "threads change nothing");
        let none = drawn("machines=1..2", &["missed:0"], None, 2, false);
        assert!(none.found.is_none() && none.tried.last().unwrap().drawn() >= 60);
        // Common random numbers: the first draw of every size has the same seed.
        assert_eq!(drawn("machines=1..40", &["missed:0"], Some(7), 2, false).most_draws(), 7);
    }

    #[test]
    fn a_time_limit_leaves_each_value_with_few_draws() {
        let found = drawn("machines=1..40", &["missed:0"], None, 2, true);
        assert!(found.is_out_of_time && found.found.is_some());
        assert!(found.tried.iter().all(|tried| (1..=2).contains(&tried.drawn())), "{:?}", found.tried);
    }

    #[test]
    fn settings_of_about_the_same_cost_are_named() {
        // The slowstart of jobs without reduces changes nothing.
        let found = drawn("slowstart=0.2..0.8:0.2", &[], None, 2, false);
        assert_eq!((found.found, found.tied), (Some(0.2), vec![0.4, 0.6, 0.8]));
        assert!(found.tried.iter().all(|tried| tried.drawn() == 60));
        let found = drawn("speed=0.5..2:0.5", &[], None, 2, false);
        assert_eq!((found.found, found.tied), (Some(2.0), vec![]));
        let found = drawn("speed=0.5..2:0.5", &["missed:0"], None, 1, false);
        assert!(found.found.is_none() && found.tried.iter().all(|tried| tried.drawn() >= 60));
    }

    #[test]
    fn parameters_of_policies_are_varied() {
        let policy = Registry::standard().parse("rule:order=atc:k=0.5").unwrap();
        let (axis, options) = ("param:k=1..3".parse().unwrap(), Options::exact());
        let found = search(&draft(18.0), &Search::new(&policy, &[], &axis, &options)).unwrap();
        assert_eq!(found.tried.iter().map(|tried| tried.value).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
        assert_eq!(policy.with_parameter("k", 2.0).unwrap().spec(), "rule:order=atc:k=2");
        let problem = policy.with_parameter("kk", 2.0).unwrap_err();
        assert!(problem.contains("found parameter \"kk\""), "{problem}");
        assert!(policy.with_parameter("k", 1e9).unwrap_err().contains("a number from 0.01 to 100"));
    }
}
