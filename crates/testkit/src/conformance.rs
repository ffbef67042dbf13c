//! The conformance tests for every policy of a registry, including your own: all of
//! [`slackline::conformance`], with every value of its parameters. The metrics of its schedules must equal
//! those of the oracle.

use slackline::conformance::{planned, setups, simulated, workloads};
use slackline::{PolicySpec, Registry};
use slackline_model::{Instance, Span};

use crate::harness::{self, Setup, same};
use crate::oracle;

/// Tests every policy of the registry, with every choice of each of its parameters and both ends of each of
/// its numbers.
///
/// # Errors
/// The first failure: the policy, the instance and the reason.
///
/// # Panics
/// If an audit finds the state of the driver wrong.
pub fn check(registry: &Registry) -> Result<(), String> {
    for (name, instance) in workloads() {
        let instance = instance.cut(Span(10_000_000));
        for policy in harness::registered(registry) {
            let at = |what: String| format!("{name}, {policy:?}, {what}");
            for (how, setup) in setups(&instance) {
                measured(&instance, &policy, &setup).map_err(|what| at(format!("{how}: {what}")))?;
            }
            planned(&instance, &policy).map_err(|what| at(format!("plan: {what}")))?;
        }
    }
    Ok(())
}

/// Simulates, and compares the judge's metrics with the oracle's.
///
/// # Errors
/// The difference, as a message.
pub fn measured(instance: &Instance, policy: &PolicySpec, setup: &Setup) -> Result<(), String> {
    let (schedule, report) = simulated(instance, policy, setup)?;
    for (metric, value) in oracle::metrics(instance, &schedule) {
        let judged = report.metrics.entries().into_iter().find(|(name, _)| *name == metric).map(|(_, v)| v);
        if !judged.is_some_and(|judged| same(value, judged)) {
            return Err(format!("{metric} is {judged:?} to the judge, {value} to the oracle"));
        }
    }
    Ok(())
}
