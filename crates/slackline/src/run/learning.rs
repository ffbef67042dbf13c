//! What a policy knows of durations: what this run has seen, then what earlier runs took, then guesses; and what
//! corrects it while tasks end.

use slackline_local::job_cost::GROUP;
use slackline_local::run_schedule::seen;
use slackline_local::{JobHistory, JobName};
use slackline_model::history::{PhaseName, Record};
use slackline_model::{History, Instance};
use slackline_policy::view::mean_of;
use slackline_policy::{Config, Learning};

use super::{Request, Session};

/// How the driver is configured for what is left of a run.
pub(super) fn config<'a>(
    instance: &Instance,
    session: &dyn Session,
    past: &JobHistory,
    request: &Request,
) -> Config<'a> {
    let known = known(session, instance, past);
    Config::plain()
        .with_slowstart(request.slowstart)
        .with_attempts_max(request.attempts_max)
        .with_learning(Some(Learning::new(instance.cluster(), &known).guessing()))
}

/// What finished tasks took: those that this run has seen; of other phases, those of earlier runs, at the sizes that
/// are expected now.
pub(super) fn known(session: &dyn Session, instance: &Instance, past: &JobHistory) -> History {
    let mut known = seen(session.workload(), session.attempts());
    for (id, phase) in instance.phases().iter_enumerated() {
        let name = PhaseName::of(instance, id);
        let cost = past.get(&JobName::new(&name.flow, &name.job));
        let tasks = cost.map_or(0, |cost| cost.record(name.kind).tasks);
        if tasks > 0 {
            let record = Record { tasks, seconds: mean_of(phase).seconds() * tasks as f64 };
            // Where the run has seen the phase, this changes nothing.
            known.insert(name, GROUP.to_owned(), record);
        }
    }
    known
}
