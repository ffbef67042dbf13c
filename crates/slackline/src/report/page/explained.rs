//! The explanations of the flows with the highest costs and of the latest ones, and the flows that held the
//! slots that they wanted.

use std::collections::BTreeMap;

use serde::Serialize;
use slackline_model::cost::is_late;
use slackline_model::schedule::FlowRow;
use slackline_model::{FlowId, Instance, Schedule};

use crate::explain::{Blocked, Explainer};
use crate::report::View;
use crate::report::explain::ExplainInput;

/// The number of explained flows with the highest costs, and of the latest ones.
const FLOWS: usize = 200;
const LATEST: usize = 20;

/// The number of slot holders that are named.
const HOLDERS: usize = 5;

/// The width of the text, columns.
pub(super) const WIDTH: usize = 112;

/// The explanation of a flow.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Explained {
    flow: usize,
    text: String,
    /// The seconds during which it wanted more slots than it had.
    wanted: f64,
    /// The flows that held slots during that time (possibly the flow itself), and their share of the
    /// slot-seconds.
    holders: Vec<(usize, f64)>,
    /// The share of idle slots.
    idle: f64,
}

/// The explanations of the flows with the highest costs, failed ones first, and then of the latest other
/// flows; ties by id.
pub(super) fn explained(explainer: &Explainer<'_>, schedule: &Schedule, is_plan: bool) -> Vec<Explained> {
    let instance = explainer.instance();
    // Whole tables: the page scrolls tables that are too wide.
    let view = View { width: WIDTH, ..View::default() };
    let explain = |flow: FlowId| {
        let explanation = explainer.explain(flow, None)?;
        let input = ExplainInput {
            instance,
            policy: &schedule.policy,
            plan: is_plan,
            explanation: &explanation,
            flows: explainer.flow_times(),
            open: None,
            there: None,
        };
        let (holders, idle) = shares(instance, flow, &explanation.blocked);
        let text = input.text(&view);
        Some(Explained { flow: usize::from(flow), text, wanted: explanation.blocked.seconds, holders, idle })
    };
    let mut flows = most_costly(schedule);
    let more: Vec<FlowId> =
        latest(instance, schedule).into_iter().filter(|flow| !flows.contains(flow)).collect();
    flows.extend(more);
    flows.into_iter().filter_map(explain).collect()
}

/// The flows that held slots while a flow wanted more, with their shares in descending order, and the share
/// of idle slots.
fn shares(instance: &Instance, flow: FlowId, blocked: &Blocked) -> (Vec<(usize, f64)>, f64) {
    let all = blocked.slot_seconds();
    if all <= 0.0 {
        return (Vec::new(), 0.0);
    }
    let mut flows: BTreeMap<FlowId, f64> = BTreeMap::new();
    if blocked.own > 0.0 {
        flows.insert(flow, blocked.own);
    }
    for other in &blocked.others {
        *flows.entry(instance.job(other.job).flow).or_default() += other.slot_seconds;
    }
    let mut flows: Vec<(FlowId, f64)> = flows.into_iter().collect();
    flows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    flows.truncate(HOLDERS);
    let rounded = |slot_seconds: f64| (slot_seconds / all * 1e4).round() / 1e4;
    let shares = flows.into_iter().map(|(flow, held)| (usize::from(flow), rounded(held))).collect();
    (shares, rounded(blocked.idle))
}

/// The flows by descending cost, then by descending response time.
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

/// The late flows, by descending lateness.
fn latest(instance: &Instance, schedule: &Schedule) -> Vec<FlowId> {
    let late = |row: &FlowRow| {
        let deadline = instance.flow(row.flow).deadline?.seconds();
        row.completion.filter(|&done| is_late(done, deadline)).map(|done| (done - deadline, row.flow))
    };
    let mut late: Vec<(f64, FlowId)> = schedule.flows.iter().filter_map(late).collect();
    late.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    late.truncate(LATEST);
    late.into_iter().map(|(_, flow)| flow).collect()
}
