//! Slot configuration: the best split of map and reduce slots, and the order of the jobs.

use slackline_algo::ordering::exhaustive::ex_mk_sf_jr;
use slackline_algo::ordering::orders::{Goal, TooMany};
use slackline_algo::ordering::split::{
    as_submitted, at_split, best_split, mk_sf_jr, mk_tct_sf_jr_with_progress, proportional,
};
use slackline_algo::ordering::workload::Workload;
use slackline_model::Instance;

use crate::simulate::{GRAIN, prepare};

pub use slackline_algo::ordering;
pub use slackline_algo::ordering::estimator::Mode;
pub use slackline_algo::ordering::orders::{Candidates, Rule, Times};
pub use slackline_algo::ordering::plan::{Plan, in_order};
pub use slackline_algo::ordering::split::{Choice, Config, Front};
pub use slackline_algo::ordering::splits::{NotDivisible, Splits};
pub use slackline_algo::ordering::workload::NotOffline;

slackline_model::named_enum! {
    /// The search method for the best split.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Method {
        /// The minimum makespan with the orders of MK_JR.
        MkSfJr = "mk-sf-jr",
        /// The minimum makespan with the orders of MK_TCT_JR: Algorithm 5 as printed.
        MkTctSfJr = "mk-tct-sf-jr",
        /// The minimum makespan over all orders, for few jobs.
        ExMkSfJr = "ex-mk-sf-jr",
    }
}

impl Method {
    /// The rule whose orders it searches or is compared with.
    pub const fn rule(self) -> Rule {
        match self {
            Self::MkSfJr | Self::ExMkSfJr => Rule::MkJr,
            Self::MkTctSfJr => Rule::MkTctJr,
        }
    }
}

/// The request of a tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The splits to choose from.
    pub splits: Splits,
    /// The search method.
    pub method: Method,
    /// How reduces are issued, and the times that orders may use.
    pub config: Config,
    /// Scales the best of these splits instead of searching all (the proportional rule, MK_SF_JR only).
    pub proportional: Option<Splits>,
    /// Whether to calculate the Pareto front as well, which takes many times longer.
    pub front: bool,
}

impl Request {
    /// A request for the best of these splits by a method, with work-conserving reduces.
    pub fn new(splits: Splits, method: Method) -> Self {
        Self { splits, method, config: Config::standard(), proportional: None, front: false }
    }
}

/// The result of a tuning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// The choice of the method.
    pub best: Choice,
    /// As many map slots as reduce slots, with the jobs in the order of the method's rule.
    pub default: Choice,
    /// The same slots, with the jobs in document order.
    pub submitted: Choice,
    /// The Pareto front of makespan and total completion time, if requested.
    pub front: Option<Front>,
    /// The result of the exact search, if the proportional rule was requested.
    pub exact: Option<Choice>,
    /// The number of splits that were estimated for `best`.
    pub evaluated: u32,
    /// The number of all splits.
    pub candidates: u32,
}

/// The reason why a tuning failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// The workload does not fit the model of the paper.
    #[error(transparent)]
    NotOffline(#[from] NotOffline),
    /// Too many jobs to try all orders.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The instance cannot be prepared.
    #[error("{0}")]
    Unready(String),
}

/// The jobs of an instance, which is prepared as for a simulation.
fn workload(instance: &Instance) -> Result<Workload, TuneError> {
    let prepared = prepare(instance, GRAIN).map_err(|problem| TuneError::Unready(problem.to_string()))?;
    Ok(Workload::from_instance(&prepared)?)
}

/// Finds the best split and order. Work is cut as for a simulation ([`prepare`]).
///
/// # Errors
/// Workloads that are not offline (flows of several jobs, releases after 0) or cannot be prepared; too many
/// jobs for [`Method::ExMkSfJr`].
pub fn tune(instance: &Instance, request: &Request) -> Result<Tuned, TuneError> {
    tune_with_progress(instance, request, &mut |_, _| ())
}

/// As [`tune`]; `progress` receives the finished and the total steps of the search for the front.
///
/// # Errors
/// As [`tune`].
pub fn tune_with_progress(
    instance: &Instance,
    request: &Request,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Tuned, TuneError> {
    let workload = workload(instance)?;
    let Request { splits, method, config, .. } = *request;
    let exact = match method {
        Method::ExMkSfJr => ex_mk_sf_jr(&workload, splits, config.mode)?,
        Method::MkSfJr => mk_sf_jr(&workload, splits, config),
        Method::MkTctSfJr => best_split(&workload, splits, Rule::MkTctJr, Goal::Makespan, config),
    };
    let front = request.front.then(|| mk_tct_sf_jr_with_progress(&workload, splits, config, progress));
    let scaled = request.proportional.map(|small| proportional(&workload, splits, small, config));
    let half = splits.half();
    let (best, exact) = match scaled {
        None => (exact, None),
        Some(scaled) => (scaled, Some(exact.choice)),
    };
    Ok(Tuned {
        default: at_split(&workload, half, method.rule(), config),
        submitted: as_submitted(&workload, half, config.mode),
        best: best.choice,
        front,
        exact,
        evaluated: best.evaluated,
        candidates: splits.count(),
    })
}

/// The results of about `most` evenly spaced splits or fewer, under the order of the method's rule. They show
/// the influence of the split.
///
/// # Errors
/// As [`tune`], except for too many jobs.
pub fn curve(instance: &Instance, request: &Request, most: u32) -> Result<Vec<Choice>, TuneError> {
    let workload = workload(instance)?;
    let every = request.splits.count().div_ceil(most.max(1)).max(1) as usize;
    let splits = request.splits.iter().step_by(every);
    Ok(splits.map(|split| at_split(&workload, split, request.method.rule(), request.config)).collect())
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, MachineDraft};

    use super::*;

    #[test]
    fn without_flows_every_method_finds_an_optimal_split() {
        let slots = Slots::MapReduce { map: 2, reduce: 2 };
        let machine = MachineDraft { name: "m".into(), count: 5, speed: 1.0, slots, rack: None };
        let instance = Instance::new(&Draft { machines: vec![machine], ..Draft::default() }).unwrap();
        for method in Method::ALL {
            for mode in [Mode::WorkConserving, Mode::Strict] {
                let splits = Splits::of_nodes(5, 40).unwrap();
                let proportional = (method == Method::MkSfJr).then(|| Splits::of_total(6).unwrap());
                let config = Config { mode, ..Config::standard() };
                let request = Request { config, proportional, ..Request::new(splits, method) };
                assert_eq!(
                    tune(&instance, &request).unwrap().front,
                    None,
                    "it is not made unless it is asked for"
                );
                let request = Request { front: true, ..request };
                let tuned = tune(&instance, &request).unwrap();
                let front = tuned.front.as_ref().unwrap();
                let all = [&tuned.best, &tuned.default, &tuned.submitted, &front.paper].into_iter();
                for choice in all.chain(&front.choices).chain(&tuned.exact) {
                    assert_eq!((choice.makespan.0, choice.total_completion, choice.order.len()), (0, 0, 0));
                }
                assert_eq!((front.choices.len(), tuned.candidates), (1, 39));
                let plan = in_order(&instance, tuned.best.order, mode).unwrap();
                assert!(plan.tasks.is_empty());
            }
        }
    }
}
