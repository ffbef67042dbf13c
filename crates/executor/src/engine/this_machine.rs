//! The engine of this machine. Tasks are processes, outputs are directories.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, RunWork};
use slackline_model::params::{self, Param, ParamError, Values};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Draft, Span, WallTime};
use slackline_task::base::clock::RunClock;
use slackline_task::process::spec::NEEDS_HADOOP;
use slackline_task::process::worker_command::WorkerCommand;

use crate::engine::Settings;
use crate::engine::backend::{
    Backend, EngineDescription, EngineEntry, Open, PreparedRun, SWITCH, SharedEngine, SharedEngineConfig,
};
use crate::engine::process_session::ProcessSession;
use crate::engine::shared::SharedProcessEngine;
use crate::engine::shared::machine_table::MachineTable;
use crate::fleet::concurrent_runs;
use crate::fleet::processes::Processes;
use crate::run::error::{EngineError, file};
use crate::run::{self, opening};
use crate::spec::fault::Fault;
use crate::spec::job_cost::{GROUP, JobHistory};
use crate::spec::resolve::{InputRules, resolve};
use crate::store::layout::Layout;
use crate::store::pid_file;

/// The entry in the table of engines.
pub const ENTRY: EngineEntry =
    EngineEntry { name: "local", summary: "processes of this machine", params: PARAMS, make };

/// With smaller splits, processes are started for every few lines.
const SPLIT_MIN: u64 = 1 << 10;

/// With less memory, the buffers of a task are written out for every few records.
const MEMORY_MIN: u64 = 1 << 20;

// Parameters of every engine that runs attempts itself.
pub(crate) const SPLIT: Param = Param::new("split", "64MiB", Values::Bytes, "bytes of input a map reads");
pub(crate) const TASK_MEMORY: Param =
    Param::new("task-memory", "128MiB", Values::Bytes, "memory for the buffers of each task");
pub(crate) const TIMEOUT: Param = Param::new(
    "timeout",
    "none",
    Values::Seconds(1e-6, SECONDS_MAX),
    "seconds after which an attempt is killed and counts as failed",
)
.or_word("none");
pub(crate) const SPECULATE: Param = Param::new(
    "speculate",
    "off",
    SWITCH,
    "start speculative attempts of tasks much slower than the rest of their phase, on idle slots",
);
pub(crate) const HASH: Param = Param::new("hash", "off", SWITCH, "compare inputs by content");

const PARAMS: &[Param] = &[
    Param::new("slots", "processors", Values::Count(1, 4096), "tasks at a time; processors: one for each")
        .or_word("processors"),
    Param::new("map-slots", "none", Values::Count(1, 4096), "maps at a time; set reduce-slots too")
        .or_word("none"),
    Param::new("reduce-slots", "none", Values::Count(1, 4096), "reduces at a time; set map-slots too")
        .or_word("none"),
    SPLIT,
    TASK_MEMORY,
    TIMEOUT,
    SPECULATE,
    HASH,
    Param::new("share", "off", SWITCH, "use half the slots while another run is active"),
];

fn make(settings: &params::Settings) -> Result<Box<dyn Backend>, EngineError> {
    let mut slots = slots(settings)?;
    if settings.choice("share") == "on" && !concurrent_runs::others().is_empty() {
        slots = concurrent_runs::half(slots);
    }
    let Rules { split_bytes, hash, settings } = Rules::of(settings)?;
    Ok(Box::new(LocalEngine { slots, split_bytes, hash, settings }))
}

/// How inputs are cut and attempts are run.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) split_bytes: u64,
    pub(crate) hash: bool,
    pub(crate) settings: Settings,
}

impl Rules {
    /// The values of the parameters above.
    pub(crate) fn of(settings: &params::Settings) -> Result<Self, EngineError> {
        let limit = settings.given(TIMEOUT.name).then(|| settings.real(TIMEOUT.name));
        let attempts = Settings {
            memory_bytes: bytes(settings, TASK_MEMORY.name, MEMORY_MIN, "64MiB or 64MB, 1MiB or more")?,
            timeout: limit.map(Span::from_seconds_nearest),
            speculate: settings.choice(SPECULATE.name) == "on",
            ..Settings::new(WorkerCommand::this_program().map_err(EngineError::other)?)
        };
        Ok(Self {
            split_bytes: bytes(settings, SPLIT.name, SPLIT_MIN, "64MiB or 64MB, 1KiB or more")?,
            hash: settings.choice(HASH.name) == "on",
            settings: attempts,
        })
    }
}

/// How inputs are cut and attempts are run, to be recorded with a run.
pub(crate) fn recorded_options(
    split_bytes: u64,
    hash: bool,
    settings: &Settings,
) -> BTreeMap<String, String> {
    let mut options = BTreeMap::from([
        (SPLIT.name, split_bytes.to_string()),
        (TASK_MEMORY.name, settings.memory_bytes.to_string()),
    ]);
    options.extend(settings.timeout.map(|timeout| (TIMEOUT.name, timeout.seconds().to_string())));
    let switches = [(HASH.name, hash), (SPECULATE.name, settings.speculate)];
    options.extend(switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| (name, "on".to_owned())));
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn slots(settings: &params::Settings) -> Result<Slots, ParamError> {
    let count = |name| settings.given(name).then(|| settings.count(name) as u32);
    let wrong = |name: &'static str, found: u32, expected: &str| {
        Err(ParamError::Value { name, found: found.to_string(), expected: expected.to_owned() })
    };
    match (count("slots"), count("map-slots"), count("reduce-slots")) {
        (None, None, None) => {
            let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
            Ok(Slots::Generic(u32::try_from(processors).unwrap_or(1)))
        }
        (Some(slots), None, None) => Ok(Slots::Generic(slots)),
        (None, Some(map), Some(reduce)) => Ok(Slots::MapReduce { map, reduce }),
        (Some(slots), ..) => wrong("slots", slots, "slots, or map-slots and reduce-slots, not both"),
        (None, Some(map), None) => wrong("map-slots", map, "reduce-slots with it"),
        (None, None, Some(reduce)) => wrong("reduce-slots", reduce, "map-slots with it"),
    }
}

/// A size of at least `min` bytes.
fn bytes(
    settings: &params::Settings,
    name: &'static str,
    min: u64,
    such_as: &str,
) -> Result<u64, ParamError> {
    let found = settings.count(name);
    if found >= min {
        return Ok(found);
    }
    Err(ParamError::Value { name, found: found.to_string(), expected: format!("a size such as {such_as}") })
}

#[derive(Clone, Debug)]
pub struct LocalEngine {
    /// Tasks at a time.
    pub slots: Slots,
    /// About how many bytes of a file a map reads.
    pub split_bytes: u64,
    /// Whether inputs are known by their content, and not by size and time alone.
    pub hash: bool,
    /// How attempts are run.
    pub settings: Settings,
}

/// About how many bytes of a file a map reads where nothing else is asked for.
const SPLIT_BYTES: u64 = 64 << 20;

impl LocalEngine {
    /// This machine with this many slots, maps of about 64 MiB, and attempts that are run like this.
    pub fn new(slots: Slots, settings: Settings) -> Self {
        Self { slots, split_bytes: SPLIT_BYTES, hash: false, settings }
    }
}

impl Backend for LocalEngine {
    fn description(&self) -> EngineDescription {
        let mut options = recorded_options(self.split_bytes, self.hash, &self.settings);
        options.insert("engine".to_owned(), ENTRY.name.to_owned());
        options.insert("slots".to_owned(), format!("{:?}", self.slots));
        let group =
            MachineDraft { name: GROUP.to_owned(), count: 1, speed: 1.0, slots: self.slots, rack: None };
        EngineDescription { options, machines: vec![group], profile: None }
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory, state: &Path) -> Result<PreparedRun, Vec<Fault>> {
        let directory = std::env::current_dir().unwrap_or_default();
        let layout = Layout::new(state);
        let Self { split_bytes, hash, .. } = *self;
        let rules = InputRules { split_bytes, hash, directory: &directory, outputs: &layout.outputs() };
        let faults = jars(workload);
        if !faults.is_empty() {
            return Err(faults);
        }
        let resolved =
            resolve(workload, rules, past).map_err(|error| vec![Fault::new(error.path, error.problem)])?;
        let memory = run::would_hold_memory(resolved.jobs.iter());
        let settings = self.settings.clone();
        let open: Open = Box::new(|opening, resolved| {
            let beside_others = opening.beside_others;
            let mut session = opening::open(opening, resolved)?;
            if !beside_others {
                session.hold_memory();
            }
            Ok(Box::new(ProcessSession::new(session, settings)))
        });
        Ok(PreparedRun { resolved, memory, open })
    }

    fn shared_engine(&self, config: SharedEngineConfig<'_>) -> Result<Box<dyn SharedEngine>, EngineError> {
        let SharedEngineConfig { files, started, seen, .. } = config;
        let pids = files.join("pids");
        std::fs::create_dir_all(files).map_err(file(files))?;
        // What a killed one has left of its workers goes.
        pid_file::kill_leftovers(&pids).map_err(file(&pids))?;
        let groups = run::hold_memory_of_all(&files.join("memory"));
        let settings = self.settings.clone();
        let fleet = Processes::new(settings.worker.clone(), pids.clone(), groups).map_err(file(&pids))?;
        let table = MachineTable::fixed(self.description().machines);
        Ok(Box::new(SharedProcessEngine::new(
            Box::new(fleet),
            table,
            settings,
            RunClock::since(WallTime(started), seen, 0),
        )?))
    }
}

/// Jobs that only Hadoop runs.
pub(crate) fn jars(workload: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (f, flow) in workload.flows.iter().enumerate() {
        for (j, job) in flow.jobs.iter().enumerate() {
            if job.run.as_ref().is_some_and(|run| matches!(run.work, RunWork::Jar { .. })) {
                let path = format!("flows[{f}].jobs[{j}].run.jar");
                faults.push(Fault::new(path, NEEDS_HADOOP));
            }
        }
    }
    faults
}
