//! What `explain` says of the flows that cost most.

use serde::Serialize;
use slackline_model::schedule::FlowRow;
use slackline_model::{FlowId, Instance, Schedule};

use crate::explain::Explainer;
use crate::report::View;
use crate::report::explain::Told;

/// So many flows are explained.
const FLOWS: usize = 200;

/// What is said of a flow.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Explained {
    pub(super) flow: usize,
    pub(super) text: String,
}

/// What is said of the flows that cost most, failed ones first; ties by id. O(rows log rows) and what the flows take.
pub(super) fn costliest(instance: &Instance, schedule: &Schedule, is_plan: bool) -> Vec<Explained> {
    let explainer = Explainer::new(instance, schedule);
    let view = View::default();
    let explain = |flow: FlowId| {
        let explanation = explainer.explain(flow, None);
        let told = Told {
            instance,
            policy: &schedule.policy,
            plan: is_plan,
            explanation: &explanation,
            flows: explainer.flow_times(),
            open: None,
            there: None,
        };
        Explained { flow: usize::from(flow), text: told.text(&view) }
    };
    most_costly(schedule).into_iter().map(explain).collect()
}

/// The flows that cost most, by what they cost, then by how long they took.
fn most_costly(schedule: &Schedule) -> Vec<FlowId> {
    let mut rows: Vec<&FlowRow> = schedule.flows.iter().collect();
    let cost = |row: &FlowRow| row.cost.unwrap_or(f64::INFINITY);
    let response = |row: &FlowRow| row.completion.map_or(f64::INFINITY, |done| done - row.release);
    rows.sort_by(|a, b| {
        cost(b).total_cmp(&cost(a)).then(response(b).total_cmp(&response(a))).then(a.flow.cmp(&b.flow))
    });
    rows.truncate(FLOWS);
    rows.into_iter().map(|row| row.flow).collect()
}
