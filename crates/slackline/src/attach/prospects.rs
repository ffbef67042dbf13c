//! Predicts when applications finish: simulates their remaining work from now on under the same policy.

use std::collections::BTreeMap;

use slackline_model::Instance;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_yarn::attach::{Application, Phase, Stage, Status};

use crate::policy_spec::PolicySpec;
use crate::simulate::{Options, simulate};

/// The maximum number of simulated applications. With more, a simulation would take seconds.
const MOST: usize = 200;

/// The predicted completions of the flows of applications, seconds since the start, if no more applications
/// arrive. Tasks take their estimated time, and running tasks half of it. Empty for a policy that is an
/// external program.
pub fn prospects(status: &Status, policy: &PolicySpec) -> BTreeMap<String, f64> {
    let runs: Vec<&Application> = status.applications.iter().filter(|one| one.stage == Stage::Runs).collect();
    if policy.is_program() || runs.is_empty() || runs.len() > MOST {
        return BTreeMap::new();
    }
    let now = status.now.seconds();
    let machine = MachineDraft {
        name: "slots".into(),
        count: status.slots.saturating_sub(status.taken).max(1),
        speed: 1.0,
        slots: Slots::Generic(1),
        rack: None,
    };
    let flows = runs.iter().filter_map(|one| flow(one, now)).collect();
    let draft = Draft { machines: vec![machine], flows, ..Draft::default() };
    let Ok(instance) = Instance::new(&draft) else { return BTreeMap::new() };
    let Ok(simulated) = simulate(&instance, policy, &Options::exact(), None, None) else {
        return BTreeMap::new();
    };
    let done = simulated.schedule.flows.iter();
    done.filter_map(|row| Some((instance.flow(row.flow).id.clone(), now + row.completion?))).collect()
}

/// The remaining work of an application, as a flow that arrives now; `None` if nothing is left.
fn flow(one: &Application, now: f64) -> Option<FlowDraft> {
    let [map, reduce] = one.phases.map(|phase| phase.and_then(left));
    (map.is_some() || reduce.is_some()).then_some(())?;
    let job = JobDraft { id: one.job.clone(), map, reduce, ..JobDraft::default() };
    Some(FlowDraft {
        deadline: one.deadline.map(|deadline| (deadline - now).max(0.0)),
        weight: one.weight,
        ..FlowDraft::new(one.flow.clone(), vec![job])
    })
}

fn left(phase: Phase) -> Option<PhaseDraft> {
    let left = phase.total.saturating_sub(phase.done);
    let running = phase.running.min(left) as usize;
    let mut seconds = vec![phase.seconds; left as usize];
    seconds[..running].iter_mut().for_each(|seconds| *seconds /= 2.0);
    (left > 0).then(|| TasksDraft::Each(seconds).into())
}
