//! The search for a capacity: decides which values to simulate, and evaluates the results.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use slackline_judge::Metrics;
use slackline_model::{Draft, Instance, Invalid, Span};

use super::bisection::{Fewest, fewest, roughly};
use super::condition::Condition;
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

/// The figures of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The metrics of its schedule.
    pub metrics: Metrics,
    /// Its cost under the workload's objective.
    pub cost: f64,
    /// The number of machines times the makespan, hours.
    pub machine_hours: f64,
}

/// A value that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchStep {
    /// The value of the axis.
    pub value: f64,
    /// The figures; `None` if flows failed.
    pub figures: Option<Box<Figures>>,
    /// Whether all conditions are met.
    pub meets: bool,
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
        let (mut draft, mut options) = (draft.clone(), self.options.clone());
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
    /// A policy without such a queue.
    pub fn policy_at(&self, value: f64) -> Result<PolicySpec, CapacityError> {
        self.at_value(self.policy, value)
    }

    fn at_value(&self, policy: &PolicySpec, value: f64) -> Result<PolicySpec, CapacityError> {
        match &self.axis.knob {
            Knob::Capacity(queue) => policy.with_capacity(queue, value).map_err(CapacityError::Axis),
            _ => Ok(policy.clone()),
        }
    }
}

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
    let mut work = Work { draft, search, tried: BTreeMap::new() };
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
}

impl Work<'_> {
    fn is_bisected(&self) -> bool {
        self.search.method == Method::Bisect && self.search.conditions.iter().all(Condition::favours_size)
    }

    /// Bisection, starting from the answer of the scout if there is one.
    fn bisect(&mut self, range: RangeInclusive<u32>) -> Result<Capacity, Stop> {
        let threads = self.search.threads;
        let guess = match self.search.scout {
            Some(scout) => self.scouted(scout, range.clone())?,
            None => None,
        };
        let policy = self.search.policy;
        let Fewest { found, is_monotone, tried } =
            fewest(range, guess, threads, &mut |sizes: &[u32]| self.sizes(policy, sizes))?;
        // The sizes tried in advance depend on the number of threads.
        self.tried.retain(|size, _| tried.contains(size));
        Ok(self.capacity(found, Method::Bisect, Some(is_monotone)))
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
        loop {
            let sizes: Vec<u32> = left.by_ref().take(self.search.threads.max(1)).collect();
            if sizes.is_empty() {
                break;
            }
            let does = self.sizes(self.search.policy, &sizes)?;
            found = sizes.into_iter().zip(does).find(|&(_, does)| does).map(|(size, _)| size);
            if let Some(found) = found {
                self.tried.retain(|&size, _| size <= found);
                break;
            }
        }
        Ok(self.capacity(found, Method::Every, None))
    }

    /// Simulates all values to the end. Finds the smallest size that meets the conditions, or the setting
    /// with the lowest cost that does.
    fn all(&mut self, values: &[f64]) -> Result<Capacity, Stop> {
        let places: Vec<u32> = (0..values.len() as u32).collect();
        let tried = parallel::map(values.len(), self.search.threads, |k| -> Result<SearchStep, Stop> {
            let tried = self.one(self.search.policy, values[k])?;
            (self.search.on_step)(&tried);
            Ok(tried)
        })?;
        let is_size = self.search.axis.knob.is_size() && !self.search.conditions.is_empty();
        let cost = |tried: &SearchStep| tried.figures.as_ref().map_or(f64::INFINITY, |figures| figures.cost);
        let meets = || places.iter().zip(&tried).filter(|(_, tried)| tried.meets);
        let found = if is_size {
            meets().next()
        } else {
            meets().min_by(|(_, a), (_, b)| cost(a).total_cmp(&cost(b)))
        };
        let found = found.map(|(&place, _)| place);
        let smallest_on = |place: u32| tried[place as usize..].iter().all(|tried| tried.meets);
        let is_monotone = is_size.then(|| found.is_none_or(smallest_on));
        self.tried = places.into_iter().zip(tried).collect();
        Ok(self.capacity(found, Method::Every, is_monotone))
    }

    fn capacity(&self, found: Option<u32>, method: Method, is_monotone: Option<bool>) -> Capacity {
        Capacity {
            found: found.map(|found| self.tried[&found].value),
            tried: self.tried.values().cloned().collect(),
            method,
            is_monotone,
            is_interrupted: false,
        }
    }

    /// The result when the search is cancelled.
    fn so_far(&self) -> Capacity {
        let found = self.tried.values().find(|tried| tried.meets).map(|tried| tried.value);
        let tried = self.tried.values().cloned().collect();
        Capacity { found, tried, method: self.search.method, is_monotone: None, is_interrupted: true }
    }

    /// Tries sizes and stores their results. Returns whether each one meets the conditions.
    fn sizes(&mut self, policy: &PolicySpec, sizes: &[u32]) -> Result<Vec<bool>, Stop> {
        let new = self.simulate(policy, sizes)?;
        new.iter().for_each(self.search.on_step);
        let does = new.iter().map(|tried| tried.meets).collect();
        self.tried.extend(sizes.iter().copied().zip(new));
        Ok(does)
    }

    fn simulate(&self, policy: &PolicySpec, sizes: &[u32]) -> Result<Vec<SearchStep>, Stop> {
        parallel::map(sizes.len(), self.search.threads, |k| self.one(policy, f64::from(sizes[k])))
    }

    /// Simulates one value.
    fn one(&self, policy: &PolicySpec, value: f64) -> Result<SearchStep, Stop> {
        let Search { conditions, cancel, .. } = *self.search;
        let (instance, options) = self.search.at(self.draft, value)?;
        let policy = self.search.at_value(policy, value)?;
        let watch = Watch { cancel: Some(cancel), ..Watch::default() };
        let simulated = match simulate_figures(&instance, &policy, &options, None, watch) {
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
        Ok(SearchStep { value, figures, meets })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

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
}
