//! Certificates of a simulation: what no policy could have done better from each decision on, and what each
//! rule alone would have cost in the end.

mod left;

use slackline_algo::rule::orders::RULES;
use slackline_model::{Instance, Schedule};
use slackline_policy::Choice;
use slackline_relax::{Form, best_of, bounds_until};

use self::left::Looking;
use crate::registry::Registry;
use crate::simulate::{GRAIN, Options, SimulateError, Watch, prepare, simulate_figures};

/// How often the dear bounds are asked whether to go on: steps of `prices`, mostly. They are counted and not
/// timed, so that certificates are the same again.
const STEPS: u32 = 60;

/// What is certain about a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Certificates {
    /// By decision: a lower bound on what the flows that were there had to cost by the objective, whatever
    /// was done from then on. Nothing that came later is in it.
    pub left: Vec<f64>,
    /// By rule: its name as a policy, and what the run costs under that rule alone; `None` where it cannot be
    /// simulated so.
    pub rules: Vec<(String, Option<f64>)>,
}

/// Certifies a run: `schedule` has all rows, of the prepared instance ([`prepare`]), and durations are those
/// of the workload. As dear as a bound a decision and a run a rule.
///
/// # Errors
/// An instance that cannot be prepared; a schedule in which the judge finds something wrong.
pub fn certify(
    instance: &Instance,
    schedule: &Schedule,
    choices: &[Choice],
    options: &Options,
) -> Result<Certificates, SimulateError> {
    let instance = &*prepare(instance, GRAIN)?;
    slackline_judge::check(instance, schedule).map_err(SimulateError::Infeasible)?;
    let looking = Looking::new(instance, schedule);
    let left = choices.iter().map(|choice| looking.at(choice.at).map_or(0.0, |left| bound(&left))).collect();
    let rules = RULES.iter().map(|rule| alone(rule.name, instance, options)).collect();
    Ok(Certificates { left, rules })
}

/// The best bound on schedules of tasks that so many steps find.
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
