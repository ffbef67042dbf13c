//! The entry of YARN in the table of engines: its parameters, and the checks and preparations before a run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use slackline_executor::engine::backend::{
    ADDRESS, Backend, EngineDescription, EngineEntry, Open, PreparedRun, Session, SharedEngine,
    SharedEngineConfig,
};
use slackline_executor::engine::external_runs::ExternalRuns;
use slackline_executor::engine::shared::machine_table::known_machines;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::opening;
use slackline_executor::run::opening::{Needs, Opening};
use slackline_executor::spec::fault::Fault;
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::resolve::{InputRules, ResolvedWorkload, resolve};
use slackline_model::draft::{FailurePolicy, MachineDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::profile::HADOOP;
use slackline_model::{Draft, Profile, shell};
use slackline_task::container::job_spec;
use slackline_task::process::worker_command::WorkerCommand;

use crate::cluster::capacity::{AM_SHARE, slots};
use crate::cluster::checks;
use crate::cluster::table_location::{TABLE, table_path};
use crate::flows::applications::earlier_apps;
use crate::flows::cluster_config::{ClusterConfig, RunFiles};
use crate::flows::engine::{FlowEngine, Timeouts};
use crate::flows::hdfs_placeholders::Placeholders;
use crate::flows::program;
use crate::flows::session::{RunContext, YarnSession};
use crate::flows::shared_engine::YarnSharedEngine;
use crate::rest::http;
use crate::rest::http::Address;
use crate::rest::resource_manager::ResourceManager;
use crate::submitter::{Submitter, SubmitterError, SubmitterInfo};

/// The entry in the table of engines.
pub const ENTRY: EngineEntry =
    EngineEntry { name: "yarn", summary: "a Hadoop cluster", params: PARAMS, make };

/// The value of a parameter that is taken from the environment.
const ENVIRONMENT: &str = "environment";

const MEMORY: Param = Param::new("memory", "1GiB", Values::Bytes, "memory of a container: that of a slot");
const PARAMS: &[Param] = &[
    Param::new(ADDRESS, "127.0.0.1:8088", Values::Text("HOST:PORT"), "the ResourceManager's web address"),
    Param::new("queue", "default", Values::Text("QUEUE"), "queue of the jobs"),
    MEMORY,
    AM_SHARE,
    Param::new(
        "decide",
        "policy",
        Values::Choice(&["policy", "cluster"]),
        "scheduler: the policy, or the cluster's own scheduler (for a comparison)",
    ),
    TABLE,
    Param::new(
        "conf",
        ENVIRONMENT,
        Values::Path("DIR"),
        "configuration of Hadoop; environment: HADOOP_CONF_DIR",
    ),
    Param::new(
        "classpath",
        ENVIRONMENT,
        Values::Path("PATH"),
        "jars of Hadoop; environment: HADOOP_CLASSPATH",
    ),
    Param::new(
        "submitter",
        ENVIRONMENT,
        Values::Path("JAR"),
        "slackline-hadoop.jar; environment: SLACKLINE_HADOOP_JAR",
    ),
    Param::new(
        "java",
        ENVIRONMENT,
        Values::Path("PROGRAM"),
        "Java; environment: that of JAVA_HOME, else java",
    ),
    Param::new("split", "64MiB", Values::Bytes, "bytes of input a map reads"),
    Param::new("task-memory", "128MiB", Values::Bytes, "memory for the buffers of each task"),
    Param::new("hash", "off", slackline_executor::engine::backend::SWITCH, "compare inputs by content"),
];

/// A cluster whose machines are known.
struct YarnBackend {
    config: ClusterConfig,
    machines: Vec<MachineDraft>,
    /// The submitter process and its description, started with the first preparation.
    submitter: Mutex<Option<(Arc<Submitter>, SubmitterInfo)>>,
}

fn make(settings: &Settings) -> Result<Box<dyn Backend>, EngineError> {
    let address = Address::parse(settings.text(ADDRESS)).map_err(EngineError::other)?;
    let manager = ResourceManager::new(&address, http::Settings::default());
    checks::check_manager(&address, &manager)?;
    let slot_mb = checks::granted_container_mb(&manager, settings.count(MEMORY.name).div_ceil(1 << 20))?;
    let machines = slots(&address, &manager, slot_mb)?;
    checks::check_run_queue(&manager, settings.text("queue"), settings.choice("decide") == "cluster")?;
    let config = ClusterConfig {
        table: match settings.choice("decide") {
            "cluster" => None,
            _ => table_path(settings.text(TABLE.name), &manager)?,
        },
        address,
        queue: settings.text("queue").to_owned(),
        java: java(settings.text("java")),
        class_path: class_path(settings)?,
        slot_mb,
        am_share: settings.real(AM_SHARE.name),
        by_cluster: settings.choice("decide") == "cluster",
        split_bytes: settings.count("split").max(1 << 10),
        memory_bytes: settings.count("task-memory").max(1 << 20),
        hash: settings.choice("hash") == "on",
        worker: WorkerCommand::this_program().map_err(EngineError::other)?,
        timeouts: Timeouts::default(),
    };
    Ok(Box::new(YarnBackend { config, machines, submitter: Mutex::default() }))
}

fn java(given: &str) -> PathBuf {
    let home = || std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    match given {
        ENVIRONMENT => home().filter(|java| java.exists()).unwrap_or_else(|| "java".into()),
        given => given.into(),
    }
}

/// The class path of the submitter: the configuration, Slackline's jar, Hadoop's jars.
fn class_path(settings: &Settings) -> Result<Vec<PathBuf>, EngineError> {
    let value = |name: &'static str, variable: &str| -> Result<OsString, EngineError> {
        match settings.text(name) {
            ENVIRONMENT => std::env::var_os(variable).filter(|value| !value.is_empty()).ok_or_else(|| {
                EngineError::other(format!(
                    "missing option {name}, or the variable {variable} (docs/hadoop.md)"
                ))
            }),
            given => Ok(given.into()),
        }
    };
    let jars = value("classpath", "HADOOP_CLASSPATH")?;
    let ours = [value("conf", "HADOOP_CONF_DIR")?, value("submitter", "SLACKLINE_HADOOP_JAR")?];
    let paths: Vec<PathBuf> = ours.iter().map(PathBuf::from).chain(std::env::split_paths(&jars)).collect();
    for path in &paths {
        shell::check_path(&path.to_string_lossy()).map_err(|expected| {
            EngineError::other(format!("found {}, expected {expected}", path.display()))
        })?;
    }
    for path in &paths[..ours.len()] {
        if !path.exists() {
            let problem = format!("{}: found no such file or directory", path.display());
            return Err(EngineError::other(problem));
        }
    }
    Ok(paths)
}

impl Backend for YarnBackend {
    fn description(&self) -> EngineDescription {
        let slots: u32 = self.machines.iter().map(|machine| machine.count).sum();
        let options = BTreeMap::from([
            ("engine".to_owned(), format!("yarn://{}", self.config.address)),
            ("queue".to_owned(), self.config.queue.clone()),
            ("split".to_owned(), self.config.split_bytes.to_string()),
            ("slots".to_owned(), format!("Generic({slots})")),
        ]);
        // Where YARN decides by itself, its own settings limit the AMs.
        let share = if self.config.by_cluster { 1.0 } else { self.config.am_share };
        let share = ("am-share", &*share.to_string());
        let profile = Profile::of(HADOOP, [share]).expect("invariant: it is a share of slots");
        EngineDescription { options, machines: self.machines.clone(), profile: Some(profile) }
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory, state: &Path) -> Result<PreparedRun, Vec<Fault>> {
        let directory = std::env::current_dir().unwrap_or_default();
        let rules = InputRules {
            split_bytes: self.config.split_bytes,
            hash: self.config.hash,
            directory: &directory,
            outputs: state,
        };
        let faults = unsupported_jobs(workload);
        if !faults.is_empty() {
            return Err(faults);
        }
        let files = self.run_files(state).map_err(|error| {
            let may_pass = is_unanswered(&error);
            vec![Fault { may_pass, ..Fault::new("flows", error.to_string()) }]
        })?;
        let mut workload = workload.clone();
        files.placeholders.make(&mut workload)?;
        let words =
            |(path, problem): (String, String)| Fault::new(path, files.placeholders.user_text(&problem));
        let mut resolved =
            resolve(&workload, rules, past).map_err(|error| vec![words((error.path, error.problem))])?;
        resolved.set_mirror(files.placeholders.root().to_owned());
        resolved.warnings.iter_mut().for_each(|warning| *warning = files.placeholders.user_text(warning));
        let faults = unsupported_inputs(&resolved, &files.placeholders, self.config.hash);
        if !faults.is_empty() {
            return Err(faults);
        }
        let config = self.config.clone();
        let open: Open = Box::new(|opening, resolved| open(opening, resolved, config, files));
        Ok(PreparedRun { resolved, memory: None, open })
    }

    fn shared_engine(&self, config: SharedEngineConfig<'_>) -> Result<Box<dyn SharedEngine>, EngineError> {
        let SharedEngineConfig { files, started, seen, .. } = config;
        let file = |problem| EngineError::File { path: files.display().to_string(), problem };
        fs::create_dir_all(files).map_err(file)?;
        let machines = known_machines(&files.join("machines"), self.machines.clone())?;
        let own = &self.config;
        let cluster = own.cluster(own.open_table()?, self.submitter()?.0);
        let runs = ExternalRuns::none(started, seen);
        let engine = FlowEngine::new(runs, cluster, machines.clone(), own.rules(), own.timeouts.clone());
        Ok(Box::new(YarnSharedEngine::new(engine, &machines)?))
    }
}

impl YarnBackend {
    /// The submitter process, started once.
    fn submitter(&self) -> Result<(Arc<Submitter>, SubmitterInfo), EngineError> {
        let mut submitter = self.submitter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*submitter {
            return Ok(known.clone());
        }
        let started = Arc::new(self.config.submitter()?);
        let about = started.about().map_err(EngineError::other)?;
        checks::check_framework(&about)?;
        Ok(submitter.insert((started, about)).clone())
    }

    /// The file systems of the cluster, for the run of a state directory.
    fn run_files(&self, state: &Path) -> Result<Arc<RunFiles>, EngineError> {
        let (submitter, about) = self.submitter()?;
        Ok(Arc::new(RunFiles::new(submitter, &about, state)?))
    }
}

/// Whether a retry may succeed.
fn is_unanswered(error: &EngineError) -> bool {
    let EngineError::Other(error) = error else { return matches!(error, EngineError::File { .. }) };
    error.downcast_ref::<SubmitterError>().is_some_and(|error| !error.is_final())
}

/// Properties of jobs that YARN cannot run.
fn unsupported_jobs(workload: &Draft) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (f, flow) in workload.flows.iter().enumerate() {
        for (j, job) in flow.jobs.iter().enumerate() {
            let Some(run) = &job.run else { continue };
            let mut fault = |key: &str, problem: &str| {
                let path = format!("flows[{f}].jobs[{j}].run.{key}");
                faults.push(Fault::new(path, problem));
            };
            if run.shuffle.total_order {
                fault("total_order", job_spec::NO_TOTAL_ORDER);
            }
            if run.limits.failure_policy.is_some_and(|policy| policy != FailurePolicy::Stop) {
                fault(
                    "failure_policy",
                    "found another than stop, expected stop: on Hadoop a failed job ends its flow",
                );
            }
            if run.output.is_none() {
                fault("output", "missing, expected a directory that the cluster can access");
            }
        }
    }
    faults
}

/// Input files that the engine cannot read as required.
fn unsupported_inputs(resolved: &ResolvedWorkload, placeholders: &Placeholders, hash: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (plan, place) in resolved.jobs.iter().zip(&resolved.places) {
        let mut fault = |problem: String| {
            faults.push(Fault::new(format!("{place}.inputs"), problem));
        };
        if plan.work.is_jar() {
            let base = std::env::current_dir().unwrap_or_default();
            for input in program::inputs(plan, &resolved.jobs, |path| base.join(path).display().to_string()) {
                let is_pattern = !Path::new(&input).exists() && input.contains(['*', '?', '[']);
                let problem = program::name_problem(&input, is_pattern);
                problem.map(|problem| placeholders.user_text(&problem)).into_iter().for_each(&mut fault);
            }
        }
        let mut inputs = plan.inputs.maps.iter().flatten().filter_map(|split| placeholders.uri(&split.path));
        let Some(input) = inputs.next() else { continue };
        if plan.prepare {
            fault(format!(
                "found {input} for a job that reads all of its input in advance, expected file:///PATH"
            ));
        }
        if hash {
            fault(format!(
                "found {input} where inputs are compared by content (hash=on), expected file:///PATH"
            ));
        }
    }
    faults
}

/// Opens a run on a cluster. The run has the table unless it is a shared engine's.
fn open(
    opening: Opening<'_>,
    resolved: &ResolvedWorkload,
    config: ClusterConfig,
    files: Arc<RunFiles>,
) -> Result<Box<dyn Session>, EngineError> {
    let state = opening.state.to_owned();
    // The writer of the table holds its lock. A run that cannot get it leaves the state directory as it is.
    let mut table = None;
    let is_alone = !opening.beside_others;
    let mut acquire = |_: Needs<'_>| {
        if is_alone {
            table = config.open_table()?;
        }
        Ok(None)
    };
    let session = opening::open_with(opening, resolved, &mut acquire)?;
    let manager = ResourceManager::new(&config.address, http::Settings::default());
    let earlier = earlier_apps(session.owner(), &manager).map_err(|error| {
        let is_retried = !is_alone && error.may_pass();
        if is_retried { EngineError::Passing(error.to_string()) } else { EngineError::other(error) }
    })?;
    // The submitter and the containers run in other directories.
    let state = fs::canonicalize(&state)
        .map_err(|problem| EngineError::File { path: state.display().to_string(), problem })?;
    let context = RunContext { config, state, files, earlier };
    Ok(Box::new(YarnSession { session, table, context }))
}

#[cfg(test)]
mod tests;
