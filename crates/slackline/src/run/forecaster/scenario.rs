//! Simulates one sample: flows under a policy, to find only their completion times.
//!
//! No rows are recorded and the schedule is not validated. The result equals that of [`crate::simulate`] with
//! exact durations, which tests check.

use slackline_model::id::TiVec;
use slackline_model::{FlowId, Instance, Time};
use slackline_policy::{Config, Driver, FlowEnd, Policy, Sink};

use crate::run::forecaster::forecast_engine::ForecastEngine;
use crate::run::forecaster::running_tasks::RunningTasks;

/// By flow of an instance: its completion time; `None` if it never completes. O(log) per instant, batch and
/// decision.
///
/// # Errors
/// The reason why the policy cannot continue.
pub(in crate::run) fn ends(
    instance: &Instance,
    policy: &mut dyn Policy,
    slowstart: f64,
    running: &RunningTasks,
) -> Result<TiVec<FlowId, Option<Time>>, String> {
    let mut engine = ForecastEngine::new(instance, running);
    let mut ends = Ends(vec![None; instance.flows().len()].into());
    let config = Config { slowstart, ..Config::plain() };
    let mut driver = Driver::new(instance.without_flows(), policy, &mut engine, &mut ends, config);
    while driver.step() {}
    let failure = driver.close().failure;
    failure.map_or(Ok(ends.0), Err)
}

/// The completion times of flows, by their positions in the document.
struct Ends(TiVec<FlowId, Option<Time>>);

impl Sink for Ends {
    fn flow(&mut self, flow: &FlowEnd, live: &Instance) {
        self.0[live.flow(flow.flow).place] = flow.completion;
    }
}
