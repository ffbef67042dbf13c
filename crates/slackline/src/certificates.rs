//! Certificates of a simulation: a lower bound for any policy at each decision, and the final cost of each
//! rule alone.

mod remaining_work;

use slackline_algo::rule::orders::RULES;
use slackline_model::{Instance, Schedule};
use slackline_policy::Choice;
use slackline_relax::{Form, best_of, bounds_until};

use crate::certificates::remaining_work::RemainingWork;
use crate::registry::Registry;
use crate::simulate::{GRAIN, Options, SimulateError, Watch, prepare, simulate_figures};

/// The number of steps of the expensive bounds, mostly of `prices`. Steps are counted instead of time, so
/// that certificates are reproducible.
const STEPS: u32 = 60;

/// The certificates of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificates {
    /// By decision: a lower bound on the cost of the flows that had arrived, for any schedule from then on.
    /// Later flows are not included.
    pub left: Vec<f64>,
    /// By rule: its name as a policy, and the cost of the run under this rule alone; `None` if the simulation
    /// is not possible.
    pub rules: Vec<(String, Option<f64>)>,
}

/// Calculates the certificates of a run. `schedule` has all rows of the prepared instance ([`prepare`]), and
/// durations are exact. The effort is one bound per decision and one simulation per rule.
///
/// # Errors
/// An instance that cannot be prepared; an invalid schedule.
pub fn certify(
    instance: &Instance,
    schedule: &Schedule,
    choices: &[Choice],
    options: &Options,
) -> Result<Certificates, SimulateError> {
    let instance = &*prepare(instance, GRAIN)?;
    slackline_judge::check(instance, schedule).map_err(SimulateError::Infeasible)?;
    let looking = RemainingWork::new(instance, schedule);
    let left = choices.iter().map(|choice| looking.at(choice.at).map_or(0.0, |left| bound(&left))).collect();
    let rules = RULES.iter().map(|rule| alone(rule.name, instance, options)).collect();
    Ok(Certificates { left, rules })
}

/// The best bound on task schedules after a limited number of steps.
fn bound(instance: &Instance) -> f64 {
    let steps = std::cell::Cell::new(0);
    let stop = || {
        steps.set(steps.get() + 1);
        steps.get() > STEPS
    };
    best_of(&bounds_until(instance, Form::Tasks, &stop))
}

fn alone(rule: &str, instance: &Instance, options: &Options) -> (String, Option<f64>) {
    let name = format!("rule:order={rule}");
    let policy = Registry::standard().parse(&name).expect("invariant: rules are policies");
    let simulated: Result<_, SimulateError> =
        simulate_figures(instance, &policy, options, None, Watch::default());
    (name, simulated.ok().and_then(|simulated| simulated.schedule.cost))
}

#[cfg(test)]
mod tests;
