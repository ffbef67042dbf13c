//! The jobs that a run executes, selected from a resolved workload.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::Draft;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Capacity;

use crate::run::reuse::{Decision, UnfinishedRun, Verdict};
use crate::spec::job_plan::JobPlan;
use crate::spec::preflight::{Obstacle, preflight};
use crate::spec::resolve::ResolvedWorkload;
use crate::store::journal::Attempt;
use crate::store::output_files::SUCCESS;

/// The jobs of a run: those that are to be done, and those that the unfinished run has done.
pub(super) struct Selection {
    pub(super) draft: Draft,
    pub(super) plans: Vec<JobPlan>,
    /// By job: where the document says what it runs.
    pub(super) places: Vec<String>,
    pub(super) attempts: Vec<Attempt>,
    /// Those of which everything is done.
    pub(super) complete: BTreeSet<usize>,
    /// Those that go on where an earlier session was.
    pub(super) resumed: BTreeSet<u32>,
    /// Those that read what is not there from jobs that are left out.
    pub(super) unmade: Vec<Obstacle>,
    /// What attempts may ask for, if it is known before the machines are.
    pub(super) machine: Option<Capacity>,
}

impl Selection {
    /// What first prevents each job from running, but for what is in its output. O(files).
    pub(super) fn obstacles(&self, done: &BTreeSet<TaskId>) -> Vec<Obstacle> {
        let mut obstacles = preflight(&self.plans, done, self.machine);
        // An input that is not there is the other job's, and of no use to look for.
        obstacles.retain(|obstacle| self.unmade.iter().all(|unmade| unmade.job != obstacle.job));
        obstacles.extend(self.unmade.iter().cloned());
        obstacles
    }

    pub(super) fn of(
        resolved: &ResolvedWorkload,
        decisions: &[Decision],
        kept: Option<&UnfinishedRun>,
    ) -> Self {
        let is_chosen = |index: usize| {
            let Decision { verdict, resumed } = &decisions[index];
            resumed.is_some() || matches!(verdict, Verdict::Run(_) | Verdict::Resumed)
        };
        let (mut flows, mut plans, mut renumbered) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (mut index, mut complete, mut places) = (0, BTreeSet::new(), Vec::new());
        let is_unmade = |read: &&usize| {
            decisions[**read].verdict == Verdict::Left && !resolved.jobs[**read].output.join(SUCCESS).exists()
        };
        let mut unmade = Vec::new();
        let before = kept.iter().flat_map(|kept| &kept.head.workload.flows).flat_map(|flow| &flow.jobs);
        let before: Vec<_> = before.collect();
        for flow in &resolved.draft.flows {
            let mut jobs = Vec::new();
            for job in &flow.jobs {
                let (at, decision) = (index, &decisions[index]);
                index += 1;
                if !is_chosen(at) {
                    continue;
                }
                let (mut job, mut plan) = (job.clone(), resolved.jobs[at].clone());
                if let Some(run) = &mut job.run {
                    let named = run.inputs.iter_mut().filter(|input| input.starts_with('@'));
                    let left = named.zip(&resolved.reads[at]).filter(|(_, read)| !is_chosen(**read));
                    // What is not made in this run is a directory like any other.
                    left.for_each(|(input, &read)| *input = resolved.jobs[read].output.display().to_string());
                }
                if let (Some(found), Some(_)) = (&decision.resumed, kept) {
                    renumbered.insert(found.index, plans.len() as u32);
                    if let Some(before) = before.get(found.index as usize) {
                        // The estimate at its start.
                        (job.map, job.reduce) = (before.map.clone(), before.reduce.clone());
                    }
                    plan.inputs = found.inputs.clone().unwrap_or(plan.inputs);
                }
                if decision.verdict == Verdict::Kept {
                    complete.insert(plans.len());
                }
                if let Some(&read) = resolved.reads[at].iter().find(is_unmade) {
                    let JobPlan { flow, job, .. } = &resolved.jobs[read];
                    let problem =
                        format!("it reads from {flow}/{job}, which is not finished and was not selected");
                    unmade.push(Obstacle::lasting(plans.len(), problem));
                }
                plans.push(plan);
                places.push(resolved.places[at].clone());
                jobs.push(job);
            }
            if jobs.len() < flow.jobs.len() {
                let names: BTreeSet<String> = jobs.iter().map(|job| job.id.clone()).collect();
                for job in &mut jobs {
                    job.after.retain(|name| names.contains(name));
                }
            }
            if !jobs.is_empty() {
                flows.push(flow.with_jobs(jobs));
            }
        }
        let draft = resolved.draft.with_flows(flows);
        let attempts = kept.map_or(&[][..], |kept| &kept.attempts).iter().filter_map(|attempt| {
            let job = *renumbered.get(&attempt.id.job)?;
            let mut attempt = attempt.clone();
            attempt.id.job = job;
            Some(attempt)
        });
        let resumed = renumbered.values().copied().collect();
        let machine = resolved.spread.is_none().then(Capacity::here);
        Self { attempts: attempts.collect(), draft, plans, places, complete, resumed, unmade, machine }
    }
}
