//! From a flow file to tasks: what each job reads, how many maps and reduces that makes, and how long they
//! may take.
//!
//! The number of tasks is known before anything runs: maps of files follow from their splits, and a job that
//! reads another's output has one map for each of its part files. Durations are estimates until tasks have
//! ended: those of the document where it gives any, else bytes over a rate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, RunDraft, RunWork, TasksDraft};

use crate::task::{self, Job, Split, TaskError};

/// What a split reads unless something else is asked for, bytes.
pub const SPLIT_BYTES: u64 = 64 << 20;

/// What a task is believed to read a second before any has ended, bytes: the order of magnitude of word
/// counting on one core.
const RATE: f64 = 40e6;

/// What a task is believed to take before it does anything, seconds.
const STARTUP: f64 = 0.02;

/// A job that is ready to be run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The flow's name.
    pub flow: String,
    /// The job's name.
    pub job: String,
    /// What its tasks do.
    pub work: Job,
    /// What each map reads; parts of earlier jobs are whole files that are not there yet.
    pub maps: Vec<Vec<Split>>,
    /// Reduce tasks; 0 for a job of maps only.
    pub reducers: u32,
    /// The directory of its output.
    pub output: PathBuf,
    /// Whether its program wants a look at all input before the first map.
    pub prepare: bool,
}

/// A workload whose tasks are known.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The workload with all phases; each phase lists its tasks one by one.
    pub draft: Draft,
    /// Its jobs, in the order of the draft's flows and jobs.
    pub jobs: Vec<JobPlan>,
}

/// Why a flow file cannot be run.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ResolveError {
    /// Where in the document, such as `flows[0].jobs[2]`.
    pub path: String,
    /// What was found there and what was expected.
    pub problem: String,
}

/// Finds the tasks of every job. Recurring flows become one flow a copy, each with outputs of its own
/// (`out/words-0`, `out/words-1`, …). `split_bytes` is about what each map reads.
///
/// # Errors
/// The first job that cannot be run: no `run` section, a program or input that is not there, an output that
/// two jobs write.
pub fn resolve(draft: &Draft, split_bytes: u64) -> Result<Resolved, ResolveError> {
    let (origins, flows): (Vec<usize>, Vec<FlowDraft>) = expanded(&draft.flows).into_iter().unzip();
    let mut draft = Draft { flows, ..draft.clone() };
    let mut jobs: Vec<JobPlan> = Vec::new();
    let mut outputs: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (&f, flow) in origins.iter().zip(&mut draft.flows) {
        let first = jobs.len();
        for at in order(flow) {
            let path = format!("flows[{f}].jobs[{at}]");
            let job = &mut flow.jobs[at];
            let error = |problem: String| ResolveError { path: format!("{path}.run"), problem };
            let Some(run) = job.run.clone() else {
                return Err(error(format!(
                    "found no run section in job {:?}, expected run = {{ program = \"…\" }} or run = {{ mapper = \"…\" }}",
                    job.id
                )));
            };
            let plan = plan_of(&flow.id, &job.id, &run, (&jobs[first..], split_bytes)).map_err(error)?;
            let output = std::path::absolute(&plan.output).unwrap_or_else(|_| plan.output.clone());
            let name = format!("{}/{}", flow.id, job.id);
            let clash =
                outputs.iter().find(|(other, _)| other.starts_with(&output) || output.starts_with(other));
            if let Some((other, by)) = clash {
                return Err(error(format!(
                    "found the output {}, which overlaps {} of job {by}; expected a directory of its own",
                    output.display(),
                    other.display()
                )));
            }
            outputs.insert(output, name);
            fill(job, &plan, &jobs[first..]);
            jobs.push(plan);
        }
        let index = |job: &JobPlan| flow.jobs.iter().position(|j| j.id == job.job);
        jobs[first..].sort_by_key(index);
    }
    Ok(Resolved { draft, jobs })
}

/// Jobs of a flow, every one after those whose output it reads; names that make no order come last, and the
/// instance says what is wrong with them.
fn order(flow: &FlowDraft) -> Vec<usize> {
    let mut left: Vec<usize> = (0..flow.jobs.len()).collect();
    let mut done: Vec<usize> = Vec::new();
    while !left.is_empty() {
        let known = |name: &String| done.iter().any(|&d| flow.jobs[d].id == *name);
        let ready = left.iter().position(|&at| flow.jobs[at].after.iter().all(known)).unwrap_or(0);
        done.push(left.remove(ready));
    }
    done
}

fn plan_of(
    flow: &str,
    id: &str,
    run: &RunDraft,
    (earlier, split_bytes): (&[JobPlan], u64),
) -> Result<JobPlan, String> {
    let work = job_of(&run.work);
    let shape = task::describe(&work).map_err(|e| e.to_string())?;
    let maps = maps_of(&work, &run.inputs, (earlier, split_bytes))?;
    let has_reducer = match &run.work {
        RunWork::Program { .. } => !shape.is_map_only,
        RunWork::Commands { reducer, .. } => reducer.is_some(),
    };
    let reducers = run.reducers.unwrap_or(u32::from(has_reducer));
    if reducers > 0 && !has_reducer {
        return Err(format!("found {reducers} reducers for a job of maps only, expected none"));
    }
    Ok(JobPlan {
        flow: flow.to_owned(),
        job: id.to_owned(),
        work,
        maps,
        reducers,
        output: PathBuf::from(&run.output),
        prepare: shape.needs_preparation && reducers > 1,
    })
}

/// The task's own words for what a job does. Arguments that read as numbers or booleans become such.
fn job_of(work: &RunWork) -> Job {
    match work {
        RunWork::Program { name, args } => {
            let value = |text: &String| {
                serde_json::from_str::<serde_json::Value>(text)
                    .ok()
                    .filter(|value| value.is_number() || value.is_boolean())
                    .unwrap_or_else(|| serde_json::Value::String(text.clone()))
            };
            Job::Program {
                program: name.clone(),
                args: args.iter().map(|(name, text)| (name.clone(), value(text))).collect(),
            }
        }
        RunWork::Commands { mapper, reducer, combiner } => {
            Job::Commands { mapper: mapper.clone(), combiner: combiner.clone(), reducer: reducer.clone() }
        }
    }
}

/// What each map reads: splits of files, and parts of earlier jobs, in the order of the inputs.
fn maps_of(
    work: &Job,
    inputs: &[String],
    (earlier, split_bytes): (&[JobPlan], u64),
) -> Result<Vec<Vec<Split>>, String> {
    if !inputs.iter().any(|input| input.starts_with('@')) {
        return task::plan(work, inputs, split_bytes).map_err(|e: TaskError| e.to_string());
    }
    let wanted = task::describe(work).map_err(|e| e.to_string())?.inputs;
    if !wanted.contains(&inputs.len()) {
        return Err(format!(
            "found {} inputs, expected {} to {}",
            inputs.len(),
            wanted.start(),
            wanted.end()
        ));
    }
    let mut maps = Vec::new();
    for (k, input) in inputs.iter().enumerate() {
        let Some(name) = input.strip_prefix('@') else {
            let found =
                task::of_inputs(std::slice::from_ref(input), split_bytes).map_err(|e| e.to_string())?;
            maps.extend(found.into_iter().map(|splits| numbered(splits, k as u32)));
            continue;
        };
        let upstream = earlier.iter().find(|job| job.job == name).ok_or_else(|| {
            format!("found the input {input:?}, expected @ and the id of an earlier job of the flow")
        })?;
        for part in 0..upstream.parts() {
            let path = upstream.output.join(task::part_name(part));
            maps.push(vec![Split { path, offset: 0, length: None, input: k as u32 }]);
        }
    }
    Ok(maps)
}

fn numbered(splits: Vec<Split>, input: u32) -> Vec<Split> {
    splits.into_iter().map(|split| Split { input, ..split }).collect()
}

impl JobPlan {
    /// Part files of its output.
    pub fn parts(&self) -> u32 {
        if self.reducers == 0 { self.maps.len() as u32 } else { self.reducers }
    }

    /// Bytes a map reads, where they are known: files of earlier jobs are not there yet.
    fn bytes_of(splits: &[Split]) -> Option<f64> {
        let bytes = |split: &Split| {
            split.length.or_else(|| std::fs::metadata(&split.path).ok().map(|meta| meta.len()))
        };
        splits.iter().map(|split| bytes(split).map(|b| b as f64)).sum()
    }

    /// Bytes that all maps read, where they are known.
    fn bytes(&self) -> Option<f64> {
        self.maps.iter().map(|splits| Self::bytes_of(splits)).sum()
    }
}

/// Gives a job the phases that follow from its plan. What the document says of durations is believed.
fn fill(job: &mut JobDraft, plan: &JobPlan, earlier: &[JobPlan]) {
    // What comes from earlier jobs is taken to be as large as what they read.
    let unknown =
        earlier.iter().filter_map(JobPlan::bytes).sum::<f64>().max(1e6) / plan.maps.len().max(1) as f64;
    let bytes: Vec<f64> =
        plan.maps.iter().map(|splits| JobPlan::bytes_of(splits).unwrap_or(unknown)).collect();
    let seconds = |bytes: f64| STARTUP + bytes / RATE;
    let said = job.map.as_ref().and_then(mean);
    let map = bytes.iter().map(|&b| said.unwrap_or_else(|| seconds(b))).collect();
    job.map = Some(PhaseDraft { tasks: TasksDraft::Each(map), ..limits(job.map.as_ref()) });
    job.reduce = (plan.reducers > 0).then(|| {
        let each = bytes.iter().sum::<f64>() / f64::from(plan.reducers);
        let seconds = job.reduce.as_ref().and_then(mean).unwrap_or_else(|| seconds(each));
        let tasks = TasksDraft::Each(vec![seconds; plan.reducers as usize]);
        PhaseDraft { tasks, ..limits(job.reduce.as_ref()) }
    });
}

/// The minimum and maximum of a phase; its tasks are replaced.
fn limits(phase: Option<&PhaseDraft>) -> PhaseDraft {
    PhaseDraft {
        tasks: TasksDraft::Each(Vec::new()),
        min_slots: phase.and_then(|p| p.min_slots),
        max_slots: phase.and_then(|p| p.max_slots),
    }
}

/// The mean task of a phase as the document gives it.
fn mean(phase: &PhaseDraft) -> Option<f64> {
    match &phase.tasks {
        TasksDraft::Uniform { seconds, .. } => Some(*seconds),
        TasksDraft::Each(list) => {
            Some(list.iter().sum::<f64>() / list.len() as f64).filter(|m| m.is_finite())
        }
        TasksDraft::Work { work, tasks: Some(tasks) } if *tasks > 0 => Some(work / f64::from(*tasks)),
        TasksDraft::Work { .. } => None,
        TasksDraft::Splits(splits) => {
            let count: u32 = splits.iter().map(|s| s.count).sum();
            let work: f64 = splits.iter().map(|s| s.seconds * f64::from(s.count)).sum();
            (count > 0).then(|| work / f64::from(count))
        }
    }
}

/// Recurring flows as one flow a copy, each with the index of the flow it comes from.
fn expanded(flows: &[FlowDraft]) -> Vec<(usize, FlowDraft)> {
    let mut all = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let Some(repeat) = flow.repeat else {
            all.push((index, flow.clone()));
            continue;
        };
        for k in 0..repeat.times {
            let shift = f64::from(k) * repeat.every;
            let mut copy = FlowDraft {
                id: format!("{}#{k}", flow.id),
                release: flow.release + shift,
                deadline: flow.deadline.map(|d| d + shift),
                repeat: None,
                ..flow.clone()
            };
            for run in copy.jobs.iter_mut().filter_map(|job| job.run.as_mut()) {
                run.output = format!("{}-{k}", run.output.trim_end_matches('/'));
            }
            all.push((index, copy));
        }
    }
    all
}

/// Refuses outputs that are there already: nothing is ever overwritten.
///
/// # Errors
/// The first directory that is there and not empty.
pub fn refuse_existing(jobs: &[JobPlan]) -> Result<(), ResolveError> {
    for job in jobs {
        let holds = |path: &Path| match std::fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_some(),
            Err(_) => path.exists(),
        };
        if holds(&job.output) {
            return Err(ResolveError {
                path: format!("{}/{}", job.flow, job.job),
                problem: format!(
                    "found output directory {}, expected none yet: remove it, or name another",
                    job.output.display()
                ),
            });
        }
    }
    Ok(())
}
