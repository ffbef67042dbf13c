//! From a flow file to tasks: what each job reads, how many maps and reduces that makes, and how long they
//! may take.
//!
//! The number of tasks is known before anything runs: maps of files follow from their splits, and a job that
//! reads another's output has one map for each of its part files. An input that is not there becomes a map that
//! cannot run: [`preflight`](mod@crate::preflight) says so before the run, and it concerns its own flow only.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use slackline_model::Draft;
use slackline_model::draft::{FlowDraft, RunDraft, RunWork};

use crate::estimate;
use crate::job_cost::JobHistory;
use crate::job_plan::{Inputs, JobPlan, JobRef, Source, job_of};
use crate::task::{self, Job, PARTS_MAX, Split, TaskError};

/// The most flows of a workload, and maps of a job: longer lists are surely a mistake.
const MANY: usize = 100_000;

/// A workload whose tasks are known.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The workload with all phases; each phase lists its tasks one by one.
    pub draft: Draft,
    /// Its jobs, in the order of the draft's flows and jobs.
    pub jobs: Vec<JobPlan>,
    /// By job: where the document says what it runs, such as `flows[0].jobs[2].run`.
    pub places: Vec<String>,
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
/// (`out/words-0`, `out/words-1`, …). `split_bytes` is about what each map reads; `past` is what earlier runs of
/// the jobs took.
///
/// # Errors
/// The first job that can never be run: no `run` section, a program that there is not, an output that two jobs
/// write.
pub fn resolve(draft: &Draft, split_bytes: u64, past: &JobHistory) -> Result<Resolved, ResolveError> {
    let (origins, flows): (Vec<usize>, Vec<FlowDraft>) = expanded(&draft.flows)?.into_iter().unzip();
    let mut draft = Draft { flows, ..draft.clone() };
    let (mut jobs, mut places): (Vec<JobPlan>, Vec<String>) = (Vec::new(), Vec::new());
    let mut outputs: BTreeMap<PathBuf, String> = BTreeMap::new();
    let mut reads: Vec<(String, PathBuf)> = Vec::new();
    for (&f, flow) in origins.iter().zip(&mut draft.flows) {
        let mut plans: Vec<JobPlan> = Vec::new();
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
            let name = JobRef { flow: &flow.id, job: &job.id };
            let plan = Earlier { jobs: &plans, split_bytes }.plan(name, &run).map_err(error)?;
            reserve(&mut outputs, &plan).map_err(error)?;
            let files =
                plan.inputs.maps.iter().flatten().filter(|s| !run.inputs[s.input as usize].starts_with('@'));
            let mut files: Vec<PathBuf> = files.map(|split| split.path.clone()).collect();
            files.dedup();
            reads.extend(files.into_iter().map(|file| (format!("{path}.run.inputs"), file)));
            plans.push(plan);
        }
        estimate::fill(flow, &plans, past);
        let index = |job: &JobPlan| flow.jobs.iter().position(|j| j.id == job.job);
        plans.sort_by_key(index);
        places.extend((0..plans.len()).map(|at| format!("flows[{f}].jobs[{at}].run")));
        jobs.append(&mut plans);
    }
    for (path, file) in reads {
        check_input(&file, &outputs).map_err(|problem| ResolveError { path, problem })?;
    }
    Ok(Resolved { draft, jobs, places })
}

/// Refuses an input that some job is going to write: only `@job` says that it is to be waited for.
fn check_input(file: &Path, outputs: &BTreeMap<PathBuf, String>) -> Result<(), String> {
    let path = plain(file);
    let Some((_, by)) = outputs.iter().find(|(output, _)| path.starts_with(output)) else { return Ok(()) };
    Err(format!(
        "found the input {}, which job {by} is going to write; expected \"@\" and the id of an earlier job of the flow, which waits for it",
        file.display()
    ))
}

/// Notes the output of a job, which must not overlap that of another.
fn reserve(outputs: &mut BTreeMap<PathBuf, String>, plan: &JobPlan) -> Result<(), String> {
    let output = plain(&plan.output);
    let clash = outputs.iter().find(|(other, _)| other.starts_with(&output) || output.starts_with(other));
    if let Some((other, by)) = clash {
        return Err(format!(
            "found the output {}, which overlaps {} of job {by}; expected a directory of its own",
            output.display(),
            other.display()
        ));
    }
    outputs.insert(output, format!("{}/{}", plan.flow, plan.job));
    Ok(())
}

/// One name for all names of a file: absolute, without links as far as it exists, and without `..`.
fn plain(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let real = absolute.ancestors().find_map(|there| Some((there, std::fs::canonicalize(there).ok()?)));
    let (mut plain, rest) = match &real {
        Some((there, real)) => (real.clone(), absolute.strip_prefix(there).unwrap_or(&absolute)),
        None => (PathBuf::new(), absolute.as_path()),
    };
    for part in rest.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
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

/// What the plan of a job builds on.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    /// The plans of the jobs of its flow that it may read from.
    jobs: &'a [JobPlan],
    /// About how much of a file each map reads.
    split_bytes: u64,
}

impl Earlier<'_> {
    fn plan(self, name: JobRef<'_>, run: &RunDraft) -> Result<JobPlan, String> {
        let work = job_of(&run.work);
        check_text(run)?;
        let shape = task::describe(&work).map_err(|e| e.to_string())?;
        let maps = self.maps(&work, &run.inputs)?;
        let has_reducer = match &run.work {
            RunWork::Program { .. } => !shape.is_map_only,
            RunWork::Commands { reducer, .. } => reducer.is_some(),
        };
        let reducers = run.reducers.unwrap_or(u32::from(has_reducer));
        if reducers > PARTS_MAX {
            return Err(format!("found {reducers} reducers, expected at most {PARTS_MAX}"));
        }
        if maps.len() > MANY {
            let found = maps.len();
            return Err(format!("found {found} maps, expected at most {MANY}: larger splits make fewer"));
        }
        if reducers > 0 && !has_reducer {
            return Err(format!("found {reducers} reducers for a job of maps only, expected none"));
        }
        if reducers == 0 && shape.needs_reducers {
            return Err(
                "found no reducers, expected 1 or more: the program's output is made by them".to_owned()
            );
        }
        let is_made = |path: &Path| self.jobs.iter().any(|job| job.writes(path));
        let files = maps.iter().flatten().map(|split| &split.path).filter(|path| !is_made(path));
        // One that is not there yet has no entry, and is an obstacle.
        let sources = files.filter_map(|path| Some((path.clone(), Source::now(path).ok()?))).collect();
        JobPlan::new(name, run, Inputs { maps, sources }, reducers).map_err(|e| e.to_string())
    }

    /// What each map reads: splits of files, and parts of earlier jobs, in the order of the inputs.
    fn maps(self, work: &Job, inputs: &[String]) -> Result<Vec<Vec<Split>>, String> {
        let shape = task::describe(work).map_err(|e| e.to_string())?;
        task::check_count(&shape, inputs.len()).map_err(|e| e.to_string())?;
        if let Some(maps) = shape.maps {
            return Ok(vec![Vec::new(); maps as usize]);
        }
        let mut maps = Vec::new();
        for (k, input) in inputs.iter().enumerate() {
            let Some(name) = input.strip_prefix('@') else {
                match task::of_inputs(std::slice::from_ref(input), self.split_bytes) {
                    Ok(found) => maps.extend(found.into_iter().map(|splits| numbered(splits, k as u32))),
                    Err(TaskError::Missing { .. } | TaskError::File { .. }) => {
                        maps.push(vec![whole(PathBuf::from(input), k as u32)]);
                    }
                    Err(other) => return Err(other.to_string()),
                }
                continue;
            };
            let upstream = self.jobs.iter().find(|job| job.job == name).ok_or_else(|| {
                format!("found the input {input:?}, expected @ and the id of an earlier job of the flow")
            })?;
            for part in 0..upstream.parts() {
                let path = upstream.output.join(task::part_name(part));
                maps.push(vec![whole(path, k as u32)]);
            }
        }
        if work.has_one_map() {
            maps = task::whole_files(maps);
        }
        Ok(maps)
    }
}

/// Refuses what no command or file name can be.
fn check_text(run: &RunDraft) -> Result<(), String> {
    let mut texts = vec![("output", run.output.as_str())];
    texts.extend(run.inputs.iter().map(|input| ("inputs", input.as_str())));
    if let RunWork::Commands { mapper, reducer, combiner } = &run.work {
        texts.push(("mapper", mapper));
        texts.extend(reducer.as_deref().map(|text| ("reducer", text)));
        texts.extend(combiner.as_deref().map(|text| ("combiner", text)));
    }
    match texts.into_iter().find(|(_, text)| text.trim().is_empty() || text.contains('\0')) {
        Some((name, text)) => Err(format!("{name}: found {text:?}, expected a text")),
        None => Ok(()),
    }
}

fn whole(path: PathBuf, input: u32) -> Split {
    Split { path, offset: 0, length: None, input, source: None }
}

fn numbered(splits: Vec<Split>, input: u32) -> Vec<Split> {
    splits.into_iter().map(|split| Split { input, ..split }).collect()
}

/// Recurring flows as one flow a copy, each with the index of the flow it comes from.
fn expanded(flows: &[FlowDraft]) -> Result<Vec<(usize, FlowDraft)>, ResolveError> {
    let mut all = Vec::new();
    for (index, flow) in flows.iter().enumerate() {
        let Some(repeat) = flow.repeat else {
            all.push((index, flow.clone()));
            continue;
        };
        if all.len() + repeat.times as usize > MANY {
            return Err(ResolveError {
                path: format!("flows[{index}].repeat.times"),
                problem: format!("found {} more flows, expected at most {MANY} in all", repeat.times),
            });
        }
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
    Ok(all)
}

/// Refuses outputs that are there already: nothing is ever overwritten.
///
/// # Errors
/// The first directory that is there and not empty.
pub fn refuse_existing<'a>(jobs: impl Iterator<Item = &'a JobPlan>) -> Result<(), ResolveError> {
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
