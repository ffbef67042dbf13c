//! Checks the limits of jobs against the machines of a run.

use slackline_model::draft::MachineDraft;
use slackline_task::process::limits::Capacity;

use crate::run::error::EngineError;
use crate::spec::job_plan::JobPlan;

/// Refuses jobs whose attempts need more than a machine has: any machine may get them.
pub(crate) fn check_limits(
    jobs: &[JobPlan],
    machines: &[MachineDraft],
    has: &[Capacity],
) -> Result<(), EngineError> {
    for job in jobs {
        // Of one that is not there it is not known.
        let known = machines.iter().zip(has).filter(|(_, has)| has.processors > 0);
        for (machine, &has) in known {
            if let Some(problem) = job.limits.too_large(has) {
                let (flow, job) = (&job.flow, &job.job);
                return Err(EngineError::other(format!("{flow}/{job} on {}: {problem}", machine.name)));
            }
        }
    }
    Ok(())
}
