//! A job that is ready to run: what its tasks execute, read and write.

pub use slackline_task::base::source::Source;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use slackline_model::draft::{PhaseDraft, RunDraft, RunLimits, RunSetting, RunShuffle, RunWork, TasksDraft};
use slackline_model::{Draft, PhaseKind};
use slackline_task::base::codec::Codec;
use slackline_task::base::error::TaskError;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::limits::Limits;
use slackline_task::process::spec::{Job, Setting, Shuffle, Split};
use slackline_task::shuffle::part;
use slackline_task::{attempt, programs};
use slackline_trace::sha256;

use crate::spec::definition::{Definition, Surroundings};

/// A job that is ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPlan {
    pub flow: String,
    pub job: String,
    /// The work of its tasks.
    pub work: Job,
    /// Its inputs, as named in the workload.
    pub named: Vec<String>,
    /// The inputs of its maps.
    pub inputs: Inputs,
    /// Reduce tasks; 0 for a job of maps only.
    pub reducers: u32,
    pub output: PathBuf,
    /// Whether its program reads all input before the first map.
    pub prepare: bool,
    /// The number of bytes that a generator makes.
    pub makes: Option<u64>,
    /// Its definition: with an equal one the output is up to date.
    pub definition: Definition,
    /// The directory and environment of its commands.
    pub setting: Setting,
    /// The path of pairs from its maps to its reduces.
    pub shuffle: Shuffle,
    /// The compression of its part files.
    pub compress: Option<Codec>,
    /// The limits of its attempts.
    pub limits: Limits,
    /// The files that it declares beside its inputs, with their state when its definition was made; empty for
    /// a job that is read from a journal.
    pub files: BTreeMap<PathBuf, Source>,
}

/// The inputs of a job's maps. They are fixed when the run begins: splits do not change when files do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The splits of each map; parts of earlier jobs are whole files that may not exist yet.
    pub maps: Vec<Vec<Split>>,
    /// The files that the maps read, with their state when the run began, except files that earlier jobs
    /// make.
    pub sources: BTreeMap<PathBuf, Source>,
}

/// The data of a job in a journal beside its `run` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownJob {
    pub inputs: Inputs,
    pub definition: Definition,
}

/// A job by its flow and its own name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobRef<'a> {
    pub(crate) flow: &'a str,
    pub(crate) job: &'a str,
}

impl JobPlan {
    /// The plan of a job that runs `run` with this many reduces.
    ///
    /// # Errors
    /// A program that does not exist, or arguments that it does not accept.
    pub(crate) fn new(
        name: JobRef<'_>,
        run: &RunDraft,
        inputs: Inputs,
        around: Surroundings<'_>,
    ) -> Result<Self, TaskError> {
        let (definition, files) = Definition::of(run, around);
        Ok(Self { files, ..Self::defined(name, run, inputs, around.reducers, definition)? })
    }

    /// The plan of a job whose definition is known.
    fn defined(
        name: JobRef<'_>,
        run: &RunDraft,
        inputs: Inputs,
        reducers: u32,
        definition: Definition,
    ) -> Result<Self, TaskError> {
        let (work, shuffle) = (job_of(&run.work), shuffle_of(run, reducers));
        attempt::check_shuffle(&work, &shuffle)?;
        let shape = programs::describe(&work)?;
        Ok(Self {
            flow: name.flow.to_owned(),
            job: name.job.to_owned(),
            work,
            named: run.inputs.clone(),
            inputs,
            reducers,
            output: PathBuf::from(run.output.as_deref().unwrap_or_default()),
            prepare: shape.needs_preparation && reducers > 1,
            makes: shape.bytes,
            definition,
            setting: setting_of(run),
            shuffle,
            compress: run.compress.as_deref().and_then(Codec::named),
            limits: limits_of(run),
            files: BTreeMap::new(),
        })
    }

    /// The plans of the jobs of a resolved workload, in its order, from the inputs and definition of each.
    ///
    /// # Errors
    /// Jobs that are not those of the workload; jobs that can never run.
    pub(crate) fn all(workload: &Draft, known: Vec<KnownJob>) -> Result<Vec<Self>, String> {
        let count: usize = workload.flows.iter().map(|flow| flow.jobs.len()).sum();
        if count != known.len() {
            return Err(format!("found the details of {} jobs, expected those of {count}", known.len()));
        }
        let (mut plans, mut known) = (Vec::with_capacity(count), known.into_iter());
        for flow in &workload.flows {
            for (job, KnownJob { inputs, definition }) in flow.jobs.iter().zip(known.by_ref()) {
                let name = JobRef { flow: &flow.id, job: &job.id };
                let run = job.run.as_ref().ok_or_else(|| format!("no run section in job {:?}", job.id))?;
                let (maps, reduces) = (count_of(job.map.as_ref()), count_of(job.reduce.as_ref()));
                if maps != inputs.maps.len() {
                    let found = inputs.maps.len();
                    return Err(format!(
                        "found the inputs of {found} maps, expected those of the {maps} maps of job {:?}",
                        job.id
                    ));
                }
                let plan = Self::defined(name, run, inputs, reduces as u32, definition);
                plans.push(plan.map_err(|e| e.to_string())?);
            }
        }
        Ok(plans)
    }

    pub fn maps(&self) -> u32 {
        self.inputs.maps.len() as u32
    }

    pub fn tasks(&self, phase: PhaseKind) -> u32 {
        match phase {
            PhaseKind::Map => self.maps(),
            PhaseKind::Reduce => self.reducers,
        }
    }

    pub fn parts(&self) -> u32 {
        self.tasks(self.last_phase())
    }

    /// The phase that writes its part files.
    fn last_phase(&self) -> PhaseKind {
        if self.reducers == 0 { PhaseKind::Map } else { PhaseKind::Reduce }
    }

    /// The task that writes a part file; `index` is the index of the job in the run.
    pub(crate) fn final_task(&self, index: u32, part: u32) -> TaskId {
        TaskId { job: index, phase: self.last_phase(), task: part }
    }

    /// Whether a task of it writes a part file.
    pub(crate) fn is_final(&self, id: TaskId) -> bool {
        id.phase == self.last_phase()
    }

    /// Whether all tasks that make its output are done; `index` is the index of the job in the run.
    pub(crate) fn is_complete(&self, index: u32, done: &BTreeSet<TaskId>) -> bool {
        (0..self.parts()).all(|task| done.contains(&self.final_task(index, task)))
    }

    /// The input of a map, with the files as they were when the run began; `part` gives the state of files
    /// that other jobs made.
    ///
    /// # Errors
    /// Those of `part`.
    pub(crate) fn splits(
        &self,
        map: u32,
        part: impl Fn(&Path) -> io::Result<Option<Source>>,
    ) -> io::Result<Vec<Split>> {
        let as_it_was = |split: &Split| {
            let own = self.inputs.sources.get(&split.path).cloned();
            let source = own.map_or_else(|| part(&split.path), |own| Ok(Some(own)))?;
            Ok(Split { source, ..split.clone() })
        };
        self.inputs.maps[map as usize].iter().map(as_it_was).collect()
    }

    /// The name of a part file.
    pub fn part(&self, number: u32) -> String {
        part::part_file(number, self.compress)
    }

    /// The same with absolute paths.
    pub(crate) fn based(mut self, directory: &Path) -> Self {
        self.output = directory.join(&self.output);
        for split in self.inputs.maps.iter_mut().flatten() {
            split.path = directory.join(&split.path);
        }
        self.inputs.sources =
            self.inputs.sources.into_iter().map(|(path, state)| (directory.join(path), state)).collect();
        self
    }

    /// The flow and the job that the input of a split names, as `@job` or `@flow/job`.
    pub(crate) fn upstream_name(&self, split: &Split) -> Option<(&str, &str)> {
        self.named.get(split.input as usize).and_then(|input| self.upstream(input))
    }

    /// The flows and jobs that its inputs name.
    pub(crate) fn upstream_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().filter_map(|input| self.upstream(input))
    }

    fn upstream<'a>(&'a self, input: &'a str) -> Option<(&'a str, &'a str)> {
        let name = input.strip_prefix('@')?;
        Some(name.rsplit_once('/').unwrap_or((&self.flow, name)))
    }

    /// Whether this job writes a path.
    pub(crate) fn writes(&self, path: &Path) -> bool {
        path.starts_with(&self.output)
    }
}

/// The directory and environment of a job's commands.
fn setting_of(run: &RunDraft) -> Setting {
    let RunSetting { env, cwd, shell, files: _ } = &run.setting;
    Setting { env: env.clone(), cwd: cwd.as_ref().map(PathBuf::from), shell: shell.clone() }
}

/// The path of pairs from the maps of a job to its reduces.
fn shuffle_of(run: &RunDraft, reducers: u32) -> Shuffle {
    let RunShuffle { key_fields, separator, partition_fields, order, total_order, compress } = &run.shuffle;
    Shuffle {
        key_fields: *key_fields,
        separator: separator.clone(),
        partition_fields: *partition_fields,
        order: order.clone(),
        ranges: if *total_order { reducers } else { 0 },
        compress: compress.as_deref().and_then(Codec::named),
    }
}

/// The limits of a job's attempts.
fn limits_of(run: &RunDraft) -> Limits {
    let RunLimits { memory, processors, timeout, attempts, no_retry, failure_policy, .. } = &run.limits;
    Limits {
        memory: *memory,
        processors: *processors,
        timeout: *timeout,
        attempts: *attempts,
        retry_delay: run.limits.retry_delay,
        retry_backoff: run.limits.retry_backoff,
        no_retry: no_retry.clone(),
        failure_policy: failure_policy.unwrap_or_default(),
    }
}

/// The tasks of a phase of a resolved workload.
fn count_of(phase: Option<&PhaseDraft>) -> usize {
    match phase {
        Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) => seconds.len(),
        _ => 0,
    }
}

/// The work of a job in the types of crate `task`.
pub(crate) fn job_of(work: &RunWork) -> Job {
    match work {
        RunWork::Program { name, args } => Job::Program {
            program: name.clone(),
            args: args.iter().map(|(name, text)| (name.clone(), text.clone().into())).collect(),
        },
        RunWork::Commands { mapper, reducer, combiner } => {
            Job::Commands { mapper: mapper.clone(), combiner: combiner.clone(), reducer: reducer.clone() }
        }
        RunWork::Command { command } => Job::Command { command: command.clone() },
        RunWork::Jar { jar, main, arguments } => {
            Job::Jar { jar: jar.clone(), main: main.clone(), arguments: arguments.clone() }
        }
    }
}

/// The name of a job's files: readable and unique.
pub(crate) fn file_name(flow: &str, job: &str) -> String {
    let name = format!("{flow}/{job}");
    let clean = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let short: String = clean.chars().take(40).collect();
    format!("{short}-{}", &sha256(name.as_bytes())[..8])
}
