//! The explanation as a JSON document, and as CSV with one row per phase.

use std::collections::BTreeSet;

use crate::explain::{Blocked, Deadline, Loss, PhaseStory, Waits};
use serde_json::{Value, json};
use slackline_model::PhaseId;

use super::ExplainInput;
use crate::report::number::exact;

/// The document: all findings, with times in seconds.
pub fn json(input: &ExplainInput<'_>) -> String {
    let explanation = input.explanation;
    let phase = |&phase: &PhaseId| json!(phase_of(input, phase));
    let failure = |failure: &crate::explain::Failure| {
        json!({
            "phase": phase_of(input, failure.phase), "task": failure.task,
            "attempts": failure.attempts, "last": failure.last,
        })
    };
    let loss = |loss: &Loss| {
        json!({
            "machine": input.instance.cluster().machine_name(loss.machine),
            "stopped": loss.stopped, "lost": loss.lost,
        })
    };
    let document = json!({
        "flow": input.flow_name(explanation.flow),
        "job": explanation.job.map(|job| input.job_name(job)),
        "policy": input.policy,
        "plan": input.plan,
        "released": explanation.released,
        "started": explanation.started,
        "completed": explanation.completed,
        "until": explanation.until,
        "failed": explanation.failed,
        "open": input.open.map(|open| {
            let reasons = input.open_phases();
            let reasons: Vec<Value> =
                reasons.iter().map(|(phase, why)| json!({ "phase": phase, "why": why })).collect();
            json!({ "now": open.now, "at_work": open.is_at_work, "waits": reasons })
        }),
        "decides": explanation.decides,
        "order": {
            "started": explanation.order.started,
            "completed": explanation.order.completed,
            "flows": explanation.order.of,
        },
        "chain": explanation.chain.iter().map(phase).collect::<Vec<_>>(),
        "waits": waits(explanation.waits),
        "cluster": input.there.map(|_| {
            let starts = input.starts();
            json!({
                "not_submitted": starts.submission, "ams": starts.ams, "containers": starts.containers,
            })
        }),
        "blocked": blocked(input, &explanation.blocked),
        "deadline": explanation.deadline.as_ref().map(deadline),
        "advice": input.advice().iter().map(|(what, why)| json!({ "what": what, "why": why })).collect::<Vec<_>>(),
        "phases": explanation.phases.iter().map(|story| of_phase(input, story)).collect::<Vec<_>>(),
        "cause": input.cause().map(|([flow, job], not_run)| {
            let reason = explanation.cause.as_ref().and_then(|cause| cause.reason.as_deref());
            json!({ "flow": flow, "job": job, "reason": reason, "not_run": not_run })
        }),
        "failures": explanation.failures.iter().map(failure).collect::<Vec<_>>(),
        "losses": explanation.losses.iter().map(loss).collect::<Vec<_>>(),
    });
    slackline_trace::to_json(&document)
}

fn phase_of(input: &ExplainInput<'_>, phase: PhaseId) -> Value {
    let of = input.instance.phase(phase);
    json!({ "job": input.job_name(of.job), "phase": of.kind.name() })
}

fn waits(waits: Waits) -> Value {
    json!({
        "no_slot": waits.none, "too_few": waits.below, "all": waits.cap, "last": waits.last, "lost": waits.lost,
    })
}

fn blocked(input: &ExplainInput<'_>, blocked: &Blocked) -> Value {
    let other = |other: &crate::explain::Blocker| {
        let flow = input.instance.job(other.job).flow;
        json!({
            "flow": input.flow_name(flow),
            "job": input.job_name(other.job),
            "slot_seconds": other.slot_seconds,
            "waiting_for_maps": other.waiting,
            "deadline": input.instance.flow(flow).deadline.map(slackline_model::Time::seconds),
            "completed": input.flows[flow].completed,
            "place": input.flows[flow].place,
        })
    };
    let mut document = json!({
        "seconds": blocked.seconds,
        "idle": blocked.idle,
        "own": blocked.own,
        "others": blocked.others.iter().map(other).collect::<Vec<_>>(),
    });
    if blocked.ams > 0.0 {
        document["ams"] = blocked.ams.into();
    }
    document
}

fn deadline(deadline: &Deadline) -> Value {
    let need = |need: &crate::explain::SlotKindNeed| json!({ "slot_kind": need.slot_kind.name(), "needed": need.needed, "held": need.held, "slots": need.slots });
    json!({
        "at": deadline.at,
        "verdict": deadline.verdict.name(),
        "lateness": deadline.lateness,
        "least": deadline.least,
        "alone": deadline.alone,
        "start_by": deadline.start_by,
        "needs": deadline.needs.iter().map(need).collect::<Vec<_>>(),
        "less_urgent": deadline.less_urgent,
    })
}

fn of_phase(input: &ExplainInput<'_>, story: &PhaseStory) -> Value {
    let of = input.instance.phase(story.phase);
    json!({
        "job": input.job_name(of.job),
        "phase": of.kind.name(),
        "ready": story.ready,
        "after": story.gate.map(|gate| phase_of(input, gate)),
        "started": story.started,
        "ended": story.ended,
        "done": story.done,
        "waits": waits(story.waits),
        "mean_slots": story.mean,
        "most_slots": story.most,
        "may_hold": story.cap,
        "early_slot_seconds": story.early,
        "blocked": blocked(input, &story.blocked),
    })
}

/// One row per phase, with all digits.
pub fn csv(input: &ExplainInput<'_>) -> String {
    let header = [
        "job",
        "phase",
        "chain",
        "ready",
        "started",
        "ended",
        "done",
        "no_slot",
        "too_few",
        "all",
        "last",
        "mean_slots",
        "most_slots",
        "may_hold",
        "idle",
    ];
    let on_chain: BTreeSet<PhaseId> = input.explanation.chain.iter().copied().collect();
    let row = |story: &PhaseStory| {
        let of = input.instance.phase(story.phase);
        let names = [input.job_name(of.job).to_owned(), of.kind.name().to_owned()];
        let chain = on_chain.contains(&story.phase).to_string();
        let times = [story.ready, story.started, story.ended].map(exact);
        let waits = story.waits;
        let waits = [waits.none, waits.below, waits.cap, waits.last].map(|value| exact(Some(value)));
        let slots = [exact(story.mean), story.most.to_string(), story.cap.to_string()];
        let idle = exact(Some(story.blocked.idle));
        let cells = names.into_iter().chain([chain]).chain(times).chain([story.done.to_string()]);
        cells.chain(waits).chain(slots).chain([idle]).collect::<Vec<_>>()
    };
    crate::report::csv(&header, input.explanation.phases.iter().map(row))
}
