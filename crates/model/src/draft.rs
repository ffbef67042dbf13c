//! An instance as a document states it: plain data, not checked yet.
//!
//! Importers and generators fill a [`Draft`]; [`crate::Instance::new`] checks it. Times are seconds.

use std::collections::{BTreeMap, BTreeSet};

use crate::calendar::Start;
use crate::cluster::Slots;
use crate::cost::{Metric, Objective};
use crate::id::PhaseKind;
use crate::quota::UserQuota;
use crate::schedule::Outcome;
use crate::shell;

/// A workload document before it is checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draft {
    /// The moment of second 0, if it is known.
    pub start: Option<Start>,
    /// The machines.
    pub machines: Vec<MachineDraft>,
    /// The objective to minimise.
    pub objective: Objective,
    /// Whether weights count (`--weights use|ignore`).
    pub weights: Weights,
    /// Pools with shared minima.
    pub pools: Vec<PoolDraft>,
    /// The flows.
    pub flows: Vec<FlowDraft>,
}

/// Whether weights count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// Every metric is multiplied by the flow's weight.
    #[default]
    Use,
    /// All weights are 1.
    Ignore,
}

/// A group of equal machines.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineDraft {
    /// Group name.
    pub name: String,
    /// The number of machines.
    pub count: u32,
    /// Speed relative to the machine on which `seconds` were measured.
    pub speed: f64,
    /// Slots of each machine.
    pub slots: Slots,
    /// Rack.
    pub rack: Option<String>,
}

impl Draft {
    /// The same with other flows; the own flows are not copied.
    #[must_use]
    pub fn with_flows(&self, flows: Vec<FlowDraft>) -> Self {
        let Self { start, machines, objective, weights, pools, flows: _ } = self;
        let (start, machines, pools) = (start.clone(), machines.clone(), pools.clone());
        Self { start, machines, objective: *objective, weights: *weights, pools, flows }
    }

    /// Flows with an unknown duration (a phase for which `is_unknown`, by the index of its job in the draft), and those that
    /// read their output, directly or not. O(phases + flows² · inputs).
    pub fn unknown_flows(&self, is_unknown: impl Fn(u32, PhaseKind, &PhaseDraft) -> bool) -> BTreeSet<&str> {
        let mut unknown = BTreeSet::new();
        let mut index = 0;
        for flow in &self.flows {
            for job in &flow.jobs {
                let phases = [&job.map, &job.reduce].into_iter().zip(PhaseKind::ALL);
                let mut phases = phases.filter_map(|(phase, kind)| Some((phase.as_ref()?, kind)));
                if phases.any(|(phase, kind)| is_unknown(index, kind, phase)) {
                    unknown.insert(flow.id.as_str());
                }
                index += 1;
            }
        }
        loop {
            let reads = |flow: &&FlowDraft| flow.foreign_inputs().any(|(other, _)| unknown.contains(other));
            let readers: Vec<&str> = (self.flows.iter())
                .filter(|flow| !unknown.contains(flow.id.as_str()))
                .filter(reads)
                .map(|flow| flow.id.as_str())
                .collect();
            if readers.is_empty() {
                return unknown;
            }
            unknown.extend(readers);
        }
    }

    /// Adds the pools whose names are new.
    pub fn add_pools(&mut self, pools: &[PoolDraft]) {
        for pool in pools {
            if self.pools.iter().all(|known| known.id != pool.id) {
                self.pools.push(pool.clone());
            }
        }
    }
}

/// A pool: jobs of its flows share a guarantee, as in Hadoop's Fair Scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolDraft {
    /// Pool name.
    pub id: String,
    /// Slots guaranteed to the pool's ready phases together, by kind.
    pub min_slots: PerPhase,
}

/// A number for the map phase and one for the reduce phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerPhase {
    /// For the map phase.
    pub map: Option<u32>,
    /// For the reduce phase.
    pub reduce: Option<u32>,
}

impl PerPhase {
    /// The same number for both.
    pub fn both(n: u32) -> Self {
        Self { map: Some(n), reduce: Some(n) }
    }
}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowDraft {
    /// Flow name.
    pub id: String,
    /// The time at which it arrives.
    pub release: f64,
    /// Weight.
    pub weight: f64,
    /// The time by which it should be done, counted from the start of the workload.
    pub deadline: Option<f64>,
    /// A cost that replaces the objective's metric.
    pub cost: Option<CostDraft>,
    /// The pool it belongs to.
    pub pool: Option<String>,
    /// The user who owns it; results are also reported by user.
    pub user: Option<String>,
    /// Its priority in its log; higher is more urgent.
    pub priority: Option<u32>,
    /// The quota of the user whose tasks its tasks count among; in no document.
    pub quota: Option<UserQuota>,
    /// Recurrence.
    pub repeat: Option<Repeat>,
    /// Its jobs.
    pub jobs: Vec<JobDraft>,
}

impl FlowDraft {
    /// A flow released at 0 with weight 1 and no deadline.
    pub fn new(id: impl Into<String>, jobs: Vec<JobDraft>) -> Self {
        Self {
            id: id.into(),
            release: 0.0,
            weight: 1.0,
            deadline: None,
            cost: None,
            pool: None,
            user: None,
            priority: None,
            quota: None,
            repeat: None,
            jobs,
        }
    }

    /// The same with other jobs; the own jobs are not copied.
    #[must_use]
    pub fn with_jobs(&self, jobs: Vec<JobDraft>) -> Self {
        Self {
            id: self.id.clone(),
            release: self.release,
            weight: self.weight,
            deadline: self.deadline,
            cost: self.cost.clone(),
            pool: self.pool.clone(),
            user: self.user.clone(),
            priority: self.priority,
            quota: self.quota.clone(),
            repeat: self.repeat,
            jobs,
        }
    }

    /// The name of its recurrence of that number, and its offset from the first in seconds, if it exists.
    pub(crate) fn recurrence(&self, k: u32) -> Option<(String, f64)> {
        match self.repeat {
            None => (k == 0).then(|| (self.id.clone(), 0.0)),
            Some(repeat) => {
                (k < repeat.times).then(|| (format!("{}#{k}", self.id), repeat.every * f64::from(k)))
            }
        }
    }

    /// Each of its recurrences as a separate flow; the flow itself if it does not recur.
    pub fn recurrences(&self) -> impl Iterator<Item = Self> {
        (0..)
            .map_while(|k| self.recurrence(k))
            .map(|(id, shift)| Self { id, repeat: None, ..self.clone() }.later(shift))
    }

    /// The same flow, this number of seconds later: its release, its deadline, its cost and its recorded
    /// execution. Times are rounded to microseconds.
    #[must_use]
    pub fn later(mut self, seconds: f64) -> Self {
        let later = |at: f64| ((at + seconds) * 1e6).round() / 1e6;
        if seconds == 0.0 {
            return self;
        }
        self.release = later(self.release);
        self.deadline = self.deadline.map(later);
        self.cost = self.cost.map(|cost| cost.later(seconds));
        for attempt in self.jobs.iter_mut().flat_map(|job| &mut job.recorded) {
            (attempt.start, attempt.end) = (later(attempt.start), later(attempt.end));
        }
        for end in self.jobs.iter_mut().filter_map(|job| job.recorded_end.as_mut()) {
            *end = later(*end);
        }
        self
    }

    /// Jobs of other flows whose output its jobs read: it waits for them. The name of the flow comes first.
    /// They are in the order of the inputs, each as often as it is read.
    pub fn foreign_inputs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.jobs.iter().filter_map(|job| job.run.as_ref()).flat_map(RunDraft::foreign_inputs)
    }
}

/// A flow that recurs: `times` copies `#0`, `#1`, …, release and deadline shifted by `every` each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeat {
    /// Seconds between releases.
    pub every: f64,
    /// How many copies in all.
    pub times: u32,
}

/// The cost function of a single flow.
#[derive(Clone, Debug, PartialEq)]
pub enum CostDraft {
    /// Another metric of the table (not `sla` or `piecewise`, which need numbers).
    Metric(Metric),
    /// `(time, level)` steps.
    Steps(Vec<(f64, f64)>),
    /// `(time, cost)` points, and the slope after the last (default: that of the last segment).
    Piecewise {
        /// The points.
        points: Vec<(f64, f64)>,
        /// Slope after the last point.
        slope: Option<f64>,
    },
}

impl CostDraft {
    /// The same cost, this number of seconds later.
    #[must_use]
    pub fn later(mut self, seconds: f64) -> Self {
        if let Self::Steps(points) | Self::Piecewise { points, .. } = &mut self {
            for (at, _) in points {
                *at += seconds;
            }
        }
        self
    }
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobDraft {
    /// Job name, unique in its flow.
    pub id: String,
    /// Names of its predecessors.
    pub after: Vec<String>,
    /// Map phase.
    pub map: Option<PhaseDraft>,
    /// Reduce phase.
    pub reduce: Option<PhaseDraft>,
    /// Guaranteed slots while ready.
    pub min_slots: PerPhase,
    /// Most slots at a time.
    pub max_slots: PerPhase,
    /// The real work of its tasks. Phases that are left out beside it follow from its inputs when it is run;
    /// an instance needs them.
    pub run: Option<RunDraft>,
    /// The recorded execution in a log, in any order.
    pub recorded: Vec<AttemptDraft>,
    /// When the job finished according to the log, in seconds after the start of the workload. That is later than
    /// the end of its last task, because the ApplicationMaster commits the output.
    pub recorded_end: Option<f64>,
}

/// A recorded attempt of a task in a log. Times are seconds after the start of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptDraft {
    /// The phase of the task.
    pub phase: PhaseKind,
    /// The task's number in its phase, from 0.
    pub task: u32,
    /// The machine, if the log names one.
    pub machine: Option<String>,
    /// The time at which it took its slot.
    pub start: f64,
    /// The time at which it left its slot.
    pub end: f64,
    /// How it ended.
    pub outcome: Outcome,
}

/// The real work of the tasks of a job: programs over files. Schedulers ignore it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunDraft {
    /// The computation.
    pub work: RunWork,
    /// Files, globs, directories, `@job` for the output of an earlier job of the flow, or `@flow/job` for
    /// that of a job of another flow.
    pub inputs: Vec<String>,
    /// The directory of its output. Only a plain command may have none: its output is then among the files of
    /// the run.
    pub output: Option<String>,
    /// How many reduce tasks; 0 for a job of maps only.
    pub reducers: Option<u32>,
    /// The environment of its commands.
    pub setting: RunSetting,
    /// The limits on its tasks, and their retries.
    pub limits: RunLimits,
    /// How map output is transferred to the reduces of commands.
    pub shuffle: RunShuffle,
    /// The compression of its part files: `gzip`, `zstd` or `lz4`.
    pub compress: Option<String>,
}

impl RunDraft {
    /// A job without inputs, with all other settings at their defaults.
    pub fn new(work: RunWork, output: impl Into<String>) -> Self {
        Self {
            work,
            inputs: Vec::new(),
            output: Some(output.into()),
            reducers: None,
            setting: RunSetting::default(),
            limits: RunLimits::default(),
            shuffle: RunShuffle::default(),
            compress: None,
        }
    }

    /// Jobs of the same flow whose output it reads, in the order of the inputs.
    pub fn own_inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().filter_map(|input| input.strip_prefix('@')).filter(|job| !job.contains('/'))
    }

    /// Jobs of other flows whose output it reads, with the flow's name first, in the order of the inputs.
    /// What is after the last slash names the job.
    pub fn foreign_inputs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inputs.iter().filter_map(|input| input.strip_prefix('@')?.rsplit_once('/'))
    }

    /// Refuses a path that a shell would expand, and a command whose lines end with carriage returns.
    ///
    /// # Errors
    /// The key of the first such text, and the problem.
    pub fn check_texts(&self) -> Result<(), (String, String)> {
        for (key, path) in self.paths().filter(|(_, path)| !path.starts_with('@')) {
            shell::check_path(path).map_err(|expected| {
                let parameter = "; for a part that changes use a parameter, as in out/{night}";
                let parameter = if expected.contains('$') { parameter } else { "" };
                (key, format!("found {path:?}, expected {expected}{parameter}"))
            })?;
        }
        for (key, command) in self.commands() {
            shell::check_command(command).map_err(|problem| (key.to_owned(), problem))?;
        }
        Ok(())
    }

    /// The paths it names, each with its key; an input such as `@job` is one of them.
    fn paths(&self) -> impl Iterator<Item = (String, &str)> {
        fn items<'a>(key: &'a str, list: &'a [String]) -> impl Iterator<Item = (String, &'a str)> {
            list.iter().enumerate().map(move |(k, path)| (format!("{key}[{k}]"), path.as_str()))
        }
        let jar = if let RunWork::Jar { jar, .. } = &self.work { Some(jar.as_str()) } else { None };
        let RunSetting { cwd, shell, files, .. } = &self.setting;
        let program = shell.as_deref().and_then(|shell| shell.split_whitespace().next());
        let single =
            [("output", self.output.as_deref()), ("cwd", cwd.as_deref()), ("jar", jar), ("shell", program)];
        let single = single.into_iter().filter_map(|(key, path)| Some((key.to_owned(), path?)));
        items("inputs", &self.inputs).chain(items("files", files)).chain(single)
    }

    /// The commands that a shell reads, each with its key.
    fn commands(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let work = match &self.work {
            RunWork::Commands { mapper, reducer, combiner } => {
                [("mapper", Some(mapper)), ("reducer", reducer.as_ref()), ("combiner", combiner.as_ref())]
            }
            RunWork::Command { command } => [("command", Some(command)), ("", None), ("", None)],
            RunWork::Program { .. } | RunWork::Jar { .. } => [("", None); 3],
        };
        let all = work.into_iter().chain([("shell", self.setting.shell.as_ref())]);
        all.filter_map(|(key, text)| Some((key, text?.as_str())))
    }
}

/// The computation of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum RunWork {
    /// A built-in program.
    Program {
        /// Its name.
        name: String,
        /// Its arguments, by name.
        args: Vec<(String, String)>,
    },
    /// Commands by the contract of Hadoop Streaming.
    Commands {
        /// Lines in, `key TAB value` lines out.
        mapper: String,
        /// Lines sorted by key in, lines out.
        reducer: Option<String>,
        /// Makes map output smaller before it is moved.
        combiner: Option<String>,
    },
    /// One plain command without map and reduce: it reads the files itself, and its standard output is the
    /// only part file.
    Command {
        /// The command.
        command: String,
    },
    /// A program for Hadoop that submits its MapReduce jobs itself: only a cluster runs it.
    Jar {
        /// The jar, a file of this machine.
        jar: String,
        /// The class whose `main` is called.
        main: String,
        /// Its arguments, in which `{inputs}` and `{output}` stand for the inputs and the output of the job.
        arguments: Vec<String>,
    },
}

/// The environment of the commands of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSetting {
    /// Environment variables beside those of the run, by name.
    pub env: BTreeMap<String, String>,
    /// The directory they run in; by default that of the run.
    pub cwd: Option<String>,
    /// The shell with its options, to which `-c COMMAND` is added; by default `sh`.
    pub shell: Option<String>,
    /// Files in addition to the inputs that the job depends on, such as scripts and tables. A change of one
    /// changes the job.
    pub files: Vec<String>,
}

/// The limits on the tasks of a job, and their retries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunLimits {
    /// Memory of one task, bytes.
    pub memory: Option<u64>,
    /// Processors that one task keeps busy: it starts when this number of slots is free. By default 1.
    pub processors: Option<u32>,
    /// The longest duration of one attempt, seconds.
    pub timeout: Option<f64>,
    /// How many attempts a task has, the first one included.
    pub attempts: Option<u16>,
    /// The delay of the next attempt after a failed one, seconds.
    pub retry_delay: Option<f64>,
    /// The factor on this delay after each further failure; by default 1.
    pub retry_backoff: Option<f64>,
    /// Exit codes of commands after which there is no other attempt.
    pub no_retry: Vec<u8>,
    /// What happens to the rest of its flow if it fails.
    pub failure_policy: Option<FailurePolicy>,
}

/// What happens to the rest of a flow when a job has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Running tasks end, and everything runs that does not depend on the job.
    #[default]
    Continue,
    /// Running tasks end, and no other starts.
    Finish,
    /// Running tasks are killed.
    Stop,
}

impl FailurePolicy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Continue, Self::Finish, Self::Stop];

    /// Its name in documents and options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Finish => "finish",
            Self::Stop => "stop",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }
}

/// How map output is transferred to the reduces of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunShuffle {
    /// The number of fields at the start of a line that are its key; by default 1.
    pub key_fields: Option<u32>,
    /// The ASCII character between fields; by default a tab.
    pub separator: Option<String>,
    /// The number of key fields that decide which reduce gets a line; by default all.
    pub partition_fields: Option<u32>,
    /// Fields of the key to sort by, as in `sort -k`: a number, then `n` for numbers and `r` for reverse. By
    /// default the bytes of the whole key.
    pub order: Vec<String>,
    /// Whether all keys of a part file come before those of the next, in the order of the lines. Documents
    /// guarantee it only with a single reduce.
    pub total_order: bool,
    /// The compression of map output in transfer: `lz4`.
    pub compress: Option<String>,
}

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseDraft {
    /// Its tasks.
    pub tasks: TasksDraft,
    /// Guaranteed slots, instead of the job's.
    pub min_slots: Option<u32>,
    /// Most slots at a time, instead of the job's.
    pub max_slots: Option<u32>,
    /// Whether the durations are placeholders: the job never ran, and its document has none.
    pub unknown: bool,
}

impl From<TasksDraft> for PhaseDraft {
    fn from(tasks: TasksDraft) -> Self {
        Self { tasks, min_slots: None, max_slots: None, unknown: false }
    }
}

/// The tasks of a phase.
#[derive(Clone, Debug, PartialEq)]
pub enum TasksDraft {
    /// `tasks` tasks of `seconds` each.
    Uniform {
        /// How many.
        tasks: u32,
        /// How long each takes at speed 1.
        seconds: f64,
    },
    /// One number a task.
    Each(Vec<f64>),
    /// Tasks with places for their input.
    Splits(Vec<SplitDraft>),
    /// Slot-seconds of work, cut into `tasks` equal tasks or not at all.
    Work {
        /// Slot-seconds.
        work: f64,
        /// How many equal tasks.
        tasks: Option<u32>,
    },
}

/// Equal tasks whose input lies on the same machines.
#[derive(Clone, Debug, PartialEq)]
pub struct SplitDraft {
    /// How many tasks.
    pub count: u32,
    /// How long each takes at speed 1.
    pub seconds: f64,
    /// Names of the machines that hold the input.
    pub hosts: Vec<String>,
}
