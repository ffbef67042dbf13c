//! The durations that a policy knows: those measured in this run, then those of earlier runs, then guesses.
//! The policy corrects them while tasks finish.

use std::collections::BTreeSet;

use slackline_executor::fleet::speeds::Speeds;
use slackline_executor::spec::job_cost::{JobHistory, JobName};
use slackline_executor::store::run_schedule::{seen, whole};
use slackline_model::history::PhaseName;
use slackline_model::{History, Instance};
use slackline_policy::view::mean_of;

use super::RunRecord;

/// The measured durations of tasks: those of this run, and for other phases those of earlier runs, scaled to
/// the sizes expected now.
pub(super) fn known(record: &RunRecord<'_>, instance: &Instance, past: &JobHistory) -> History {
    let (workload, attempts) = whole(record.workload, record.segments, record.attempts);
    let mut known = seen(&workload, &attempts);
    let groups = instance.cluster().groups().iter().map(|group| (group.name.as_str(), group.speed));
    let here: BTreeSet<PhaseName> = known.records().map(|(name, ..)| name.clone()).collect();
    let speeds = Speeds::learned(past).in_unit_of(groups);
    for (id, phase) in instance.phases().iter_enumerated() {
        let name = PhaseName::of(instance, id);
        let Some(cost) = past.get(&JobName::new(&name.flow, &name.job)) else { continue };
        if here.contains(&name) {
            continue;
        }
        let seconds = mean_of(phase).seconds() * cost.record(name.kind).tasks as f64;
        for (group, record) in speeds.records(cost, name.kind, seconds) {
            known.insert(name.clone(), group, record);
        }
    }
    known
}
