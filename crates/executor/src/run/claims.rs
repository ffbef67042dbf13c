//! Outputs that no run of the state directory has made, or that were edited since: the user may adopt them as
//! they are, or let their jobs replace them. Either way they become outputs of the state directory first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use slackline_task::base::digest::Digest;
use slackline_task::base::source::Source;

use super::error::file;
use crate::run::error::EngineError;
use crate::run::reuse::{Choices, ForeignOutput, RequestedJobs, sources};
use crate::spec::fault::{Fault, UnrunnableJob};
use crate::spec::job_plan::JobPlan;
use crate::spec::resolve::ResolvedWorkload;
use crate::store::finished_jobs::{FinishedJob, FinishedJobs, FinishedPart};
use crate::store::output_files::{SUCCESS, TEMPORARY, others};
use crate::store::output_lock::OutputLocks;

/// Adds the outputs that are adopted or overwritten to the finished jobs, and returns them. O(jobs), and the
/// bytes of these outputs, which are read.
///
/// # Errors
/// An output that cannot be adopted, because it is not complete or has other files; a choice that names no
/// job; an error of the file system.
pub(super) fn claim(
    resolved: &ResolvedWorkload,
    choices: &Choices,
    locks: &OutputLocks,
    made: &mut FinishedJobs,
    directory: &Path,
) -> Result<Vec<FinishedJob>, EngineError> {
    if choices.foreign == ForeignOutput::Refuse {
        return Ok(Vec::new());
    }
    let requested = RequestedJobs::new(resolved, choices)?;
    let mut claimed = Vec::new();
    for (job, plan) in resolved.jobs.iter().enumerate().filter(|(job, _)| requested.allows(*job)) {
        let foreign = locks.foreign(plan, made).map_err(file(&plan.output))?;
        if foreign.is_none_or(|name| name == TEMPORARY) {
            continue;
        }
        let names = others(&plan.output).map_err(file(&plan.output))?;
        let obstacle = match choices.foreign {
            _ if resolved.mirror.is_some() => {
                Some("outputs on a cluster can be neither adopted nor overwritten; move it away".to_owned())
            }
            ForeignOutput::Adopt => not_finished(plan, &names),
            _ => None,
        };
        if let Some(obstacle) = obstacle {
            return Err(refused(plan, &resolved.places[job], &obstacle));
        }
        made.insert(present(plan, names, choices.foreign)?);
        claimed.push(job);
    }
    // All outputs are known now, so also those that an adopted output was made from.
    let with_inputs = |&job: &usize| {
        let before =
            resolved.reads[job].iter().filter_map(|&before| made.get(&directory_of(resolved, before)));
        let read = sources(&resolved.jobs[job], before, directory);
        made.get(&directory_of(resolved, job)).map(|it| FinishedJob { read, ..it.clone() })
    };
    let claimed: Vec<FinishedJob> = claimed.iter().filter_map(with_inputs).collect();
    for finished in &claimed {
        made.insert(finished.clone());
    }
    Ok(claimed)
}

fn directory_of(resolved: &ResolvedWorkload, job: usize) -> PathBuf {
    resolved.jobs[job].definition.output()
}

/// The job as if it had just written its output as it is now.
fn present(plan: &JobPlan, names: Vec<String>, foreign: ForeignOutput) -> Result<FinishedJob, EngineError> {
    let part = |name: String| {
        let path = plan.output.join(&name);
        let read =
            || Ok(FinishedPart { digest: Some(Digest::of_file(&path)?), source: Source::of_part(&path)? });
        Ok((name, read().map_err(file(&path))?))
    };
    let parts = names.into_iter().filter(|name| name != SUCCESS).map(part);
    Ok(FinishedJob {
        flow: plan.flow.clone(),
        job: plan.job.clone(),
        definition: plan.definition.clone(),
        read: BTreeMap::new(),
        wrote: parts.collect::<Result<_, EngineError>>()?,
        run: (0, 0),
        again: foreign == ForeignOutput::Overwrite,
    })
}

/// Why an output cannot be that of a finished job.
fn not_finished(plan: &JobPlan, names: &[String]) -> Option<String> {
    let expected: Vec<String> = (0..plan.parts()).map(|part| plan.part(part)).collect();
    let other = names.iter().find(|name| !name.starts_with(['_', '.']) && !expected.contains(name));
    let missing = || {
        expected.iter().map(String::as_str).chain([SUCCESS]).find(|name| !names.iter().any(|it| it == name))
    };
    let problem = match (other, missing()) {
        (Some(name), _) => format!("found {name}, expected only {} and {SUCCESS}", expected.join(", ")),
        (None, Some(name)) => format!("found no {name}, so it is not complete"),
        (None, None) => return None,
    };
    Some(format!("{problem}; use --overwrite to replace it, or move it away"))
}

fn refused(plan: &JobPlan, place: &str, obstacle: &str) -> EngineError {
    let problem = format!("output {} cannot be used: {obstacle}", plan.output.display());
    let fault = Fault::new(format!("{place}.output"), problem);
    EngineError::Unrunnable(vec![UnrunnableJob { flow: plan.flow.clone(), fault }])
}
