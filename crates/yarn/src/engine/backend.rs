//! A YARN cluster by its address: what is asked of it before anything runs, and what a run needs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use slackline_executor::engine::backend::{
    ADDRESS, Backend, EngineEntry, Prepared, SharedEngine, SharedEngineConfig, Stop,
};
use slackline_executor::engine::backend::{Drive, RemainingWork};
use slackline_executor::engine::external_runs::Elsewhere;
use slackline_executor::engine::shared::machine_table::known_machines;
use slackline_executor::run::error::EngineError;
use slackline_executor::run::opening;
use slackline_executor::run::opening::{Needs, Opening};
use slackline_executor::run::reuse::{Reason, Verdict};
use slackline_executor::run::{self, JobVerdict, LostOutput, Recovery, RunEnd};
use slackline_executor::spec::fault::Fault;
use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_executor::spec::preflight::Obstacle;
use slackline_executor::spec::resolve::{InputRules, ResolvedWorkload, resolve};
use slackline_executor::store::journal::{Attempt, Segment};
use slackline_executor::store::layout::Layout;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::params::{Param, ParamError, Settings, Values};
use slackline_model::profile::HADOOP;
use slackline_model::{Draft, Instance, Profile, shell};
use slackline_task::container::job_spec;
use slackline_task::process::worker_command::WorkerCommand;

use super::cluster::{Cluster, Submits};
use super::fit;
use super::guest::{Guest, Pace, Rules, Submit};
use super::mirror::Mirror;
use super::program;
use super::remote::Files;
use super::resident::ResidentThere;
use super::submission::Submission;
use crate::http::{self, Address};
use crate::observe::{Observer, Rhythm};
use crate::rest::{Node, ResourceManager};
use crate::submitter::{About, Launch, Submitter, SubmitterError};
use crate::table::Table;

/// What the table of engines says of it.
pub const ENTRY: EngineEntry =
    EngineEntry { name: "yarn", summary: "a Hadoop cluster", params: PARAMS, make };

/// Where a value is not given: the environment has it.
const ENVIRONMENT: &str = "environment";

const MEMORY: Param = Param::new("memory", "1GiB", Values::Bytes, "memory of a container: that of a slot");
pub(super) const AM_SHARE: Param = Param::new(
    "am-share",
    "0.5",
    Values::Real(0.01, 1.0),
    "part of the slots that ApplicationMasters may hold; each job has one",
);
pub(super) const TABLE: Param = Param::new(
    "table",
    "cluster",
    Values::Path("FILE"),
    "the plug-in's table; cluster: that of its yarn-site.xml, none: by priorities alone",
);

const PARAMS: &[Param] = &[
    Param::new(ADDRESS, "127.0.0.1:8088", Values::Text("HOST:PORT"), "the ResourceManager's web address"),
    Param::new("queue", "default", Values::Text("QUEUE"), "queue of the jobs"),
    MEMORY,
    AM_SHARE,
    Param::new(
        "decide",
        "policy",
        Values::Choice(&["policy", "cluster"]),
        "who decides: the policy, or the cluster as it does without Slackline, to compare",
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

/// How long a table holds whose writer is gone.
pub(super) const VALID: Duration = Duration::from_secs(30);

/// The property of the ResourceManager that names the table.
const TABLE_PROPERTY: &str = "slackline.table";

/// What a run needs of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Site {
    address: Address,
    pub(super) queue: String,
    table: Option<PathBuf>,
    java: PathBuf,
    class_path: Vec<PathBuf>,
    /// Memory of a container as the cluster grants it, MiB.
    pub(super) slot_mb: u64,
    am_share: f64,
    by_cluster: bool,
    pub(super) split_bytes: u64,
    pub(super) memory_bytes: u64,
    hash: bool,
    pub(super) worker: WorkerCommand,
    pace: Pace,
}

/// A cluster that was asked for its machines.
struct Yarn {
    site: Site,
    machines: Vec<MachineDraft>,
    /// The process that submits, and what it says of itself, once something is prepared.
    submitter: Mutex<Option<(Arc<Submitter>, About)>>,
}

/// The file systems of a cluster, as a run sees them.
pub(super) struct Remote {
    submitter: Arc<dyn Submits>,
    pub(super) files: Arc<dyn Files>,
    pub(super) mirror: Arc<Mirror>,
    /// The state directory, absolute.
    state: PathBuf,
}

fn make(settings: &Settings) -> Result<Box<dyn Backend>, EngineError> {
    let address = Address::parse(settings.text(ADDRESS)).map_err(EngineError::other)?;
    let manager = ResourceManager::new(&address, http::Settings::default());
    fit::is_manager(&address, &manager)?;
    let slot_mb = fit::granted_mb(&manager, settings.count(MEMORY.name).div_ceil(1 << 20))?;
    let machines = slots(&address, &manager, slot_mb)?;
    fit::for_run(&manager, settings.text("queue"), settings.choice("decide") == "cluster")?;
    let site = Site {
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
        pace: Pace::default(),
    };
    Ok(Box::new(Yarn { site, machines, submitter: Mutex::default() }))
}

/// The machines of a cluster, whose slots have so much memory, MiB.
pub(super) fn slots(
    address: &Address,
    manager: &ResourceManager,
    slot_mb: u64,
) -> Result<Vec<MachineDraft>, EngineError> {
    let machines = machines(&manager.nodes().map_err(EngineError::other)?, slot_mb);
    let slots: u32 = machines.iter().map(|machine| machine.count).sum();
    if slots < 2 {
        let problem = format!(
            "{address}: found NodeManagers with room for {slots} containers of {slot_mb} MiB, expected two at least: an \
             ApplicationMaster and a task; see --memory"
        );
        return Err(EngineError::other(problem));
    }
    Ok(machines)
}

/// The hosts whose NodeManagers are there, each with the slots that their memory has.
fn machines(nodes: &[Node], slot_mb: u64) -> Vec<MachineDraft> {
    let slots = |node: &Node| u32::try_from((node.used_mb + node.free_mb) / slot_mb).unwrap_or(u32::MAX);
    let machine = |(node, count): (&Node, u32)| MachineDraft {
        name: node.host.clone(),
        count,
        speed: 1.0,
        // A slot is a machine, as each may be taken away by itself.
        slots: Slots::Universal(1),
        rack: None,
    };
    let up = nodes.iter().filter(|node| node.is_up()).map(|node| (node, slots(node)));
    let mut machines: BTreeMap<&str, MachineDraft> = BTreeMap::new();
    for (node, slots) in up.filter(|&(_, slots)| slots > 0) {
        let known = machines.entry(&node.host).or_insert_with(|| machine((node, 0)));
        known.count = known.count.saturating_add(slots);
    }
    machines.into_values().collect()
}

/// The table that the plug-in reads; none if it is to be left alone. Any other than that of the cluster is refused, as nobody
/// would follow it.
pub(super) fn table_path(given: &str, manager: &ResourceManager) -> Result<Option<PathBuf>, EngineError> {
    if given == "none" {
        return Ok(None);
    }
    let Some(read) = manager.property(TABLE_PROPERTY).map_err(EngineError::other)? else {
        return Err(EngineError::other(format!(
            "found no {TABLE_PROPERTY} in the ResourceManager's configuration, expected the plug-in to be set up \
             (docs/hadoop.md); --table none does without it, by priorities alone"
        )));
    };
    if given != "cluster" && real(Path::new(given)) != real(Path::new(&read)) {
        let expected = format!(
            "{read}, which the ResourceManager reads ({TABLE_PROPERTY} in its yarn-site.xml); --table cluster names it"
        );
        return Err(ParamError::Value { name: TABLE.name, found: given.to_owned(), expected }.into());
    }
    Ok(Some(read.into()))
}

/// The path of a file without symbolic links, as far as there is anything; the file itself may be missing.
fn real(path: &Path) -> PathBuf {
    let of_directory = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(of_directory).unwrap_or_else(|| path.to_owned())
}

fn java(given: &str) -> PathBuf {
    let home = || std::env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin/java"));
    match given {
        ENVIRONMENT => home().filter(|java| java.exists()).unwrap_or_else(|| "java".into()),
        given => given.into(),
    }
}

/// The class path of the submitter: the configuration, our jar, Hadoop's.
fn class_path(settings: &Settings) -> Result<Vec<PathBuf>, EngineError> {
    let value = |name: &'static str, variable: &str| -> Result<OsString, EngineError> {
        match settings.text(name) {
            ENVIRONMENT => std::env::var_os(variable).filter(|value| !value.is_empty()).ok_or_else(|| {
                EngineError::other(format!(
                    "found neither --{name} nor the variable {variable}, expected one of them (docs/hadoop.md)"
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

impl Backend for Yarn {
    fn options(&self) -> BTreeMap<String, String> {
        let slots: u32 = self.machines.iter().map(|machine| machine.count).sum();
        BTreeMap::from([
            ("engine".to_owned(), format!("yarn://{}", self.site.address)),
            ("queue".to_owned(), self.site.queue.clone()),
            ("split".to_owned(), self.site.split_bytes.to_string()),
            ("slots".to_owned(), format!("Universal({slots})")),
        ])
    }

    fn machines(&self) -> Vec<MachineDraft> {
        self.machines.clone()
    }

    fn profile(&self) -> Option<Profile> {
        // A cluster that decides by itself has ApplicationMasters on as many slots as its own settings say.
        let share = if self.site.by_cluster { 1.0 } else { self.site.am_share };
        let share = ("am-share", &*share.to_string());
        Some(Profile::of(HADOOP, [share]).expect("invariant: it is a share of slots"))
    }

    fn prepare(
        &self,
        workload: &Draft,
        past: &JobHistory,
        state: &Path,
    ) -> Result<Box<dyn Prepared>, Vec<Fault>> {
        let directory = std::env::current_dir().unwrap_or_default();
        let rules =
            InputRules { split_bytes: self.site.split_bytes, hash: self.site.hash, directory: &directory };
        let faults = unfit(workload);
        if !faults.is_empty() {
            return Err(faults);
        }
        let remote = self.remote(state).map_err(|error| {
            let may_pass = is_unanswered(&error);
            vec![Fault { may_pass, ..Fault::new("flows", error.to_string()) }]
        })?;
        let mut workload = workload.clone();
        remote.mirror.make(&mut workload)?;
        let words = |(path, problem): (String, String)| Fault::new(path, remote.mirror.words(&problem));
        let mut resolved =
            resolve(&workload, rules, past).map_err(|error| vec![words((error.path, error.problem))])?;
        resolved.set_mirror(remote.mirror.root().to_owned());
        resolved.warnings.iter_mut().for_each(|warning| *warning = remote.mirror.words(warning));
        let faults = self.site.unfit_there(&resolved, &remote.mirror);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Box::new(PreparedThere { resolved, site: self.site.clone(), remote }))
    }

    fn shared_engine(&self, residence: SharedEngineConfig<'_>) -> Result<Box<dyn SharedEngine>, EngineError> {
        let SharedEngineConfig { files, started, seen, .. } = residence;
        let file = |problem| EngineError::File { path: files.display().to_string(), problem };
        fs::create_dir_all(files).map_err(file)?;
        let machines = known_machines(&files.join("machines"), self.machines.clone())?;
        let empty = Instance::new(&Draft { machines: machines.clone(), ..Draft::default() })?.without_flows();
        let site = &self.site;
        let cluster = site.cluster(site.open_table()?, self.submitter()?.0);
        let pace = (site.rules(), site.pace.clone());
        let left = Elsewhere::none(started, seen);
        let guest = Guest::new(left, cluster, machines.clone(), pace, Arc::default());
        let settings = http::Settings { retries: 0, ..http::Settings::default() };
        let manager = ResourceManager::new(&site.address, settings);
        Ok(Box::new(ResidentThere::new(guest, manager, (machines, empty))))
    }

    fn unfinished_since(&self, state: &Path) -> Result<Option<u64>, EngineError> {
        opening::unfinished_since(state)
    }
}

impl Yarn {
    /// The process that submits, which is started once.
    fn submitter(&self) -> Result<(Arc<Submitter>, About), EngineError> {
        let mut submitter = self.submitter.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*submitter {
            return Ok(known.clone());
        }
        let started = Arc::new(self.site.submitter()?);
        let about = started.about().map_err(EngineError::other)?;
        fit::submits_to_yarn(&about)?;
        Ok(submitter.insert((started, about)).clone())
    }

    /// The file systems of the cluster, for the run of a state directory.
    fn remote(&self, state: &Path) -> Result<Arc<Remote>, EngineError> {
        let (submitter, about) = self.submitter()?;
        Ok(Arc::new(Remote::new((submitter, &about), state)?))
    }
}

impl Remote {
    fn new((submitter, about): (Arc<Submitter>, &About), state: &Path) -> Result<Self, EngineError> {
        let file = |problem| EngineError::File { path: state.display().to_string(), problem };
        let state = std::path::absolute(state).map_err(file)?;
        let directory = Layout::new(&state).mirror();
        let files: Arc<dyn Files> = submitter.clone();
        let mirror = Arc::new(Mirror::new(directory, files.clone(), (&about.default_fs, &about.user)));
        Ok(Self { submitter, files, mirror, state })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let layout = Layout::new(&self.state);
        if layout.mirror().exists() && !layout.journal().exists() {
            // Nothing was begun. What cannot be removed does no harm.
            let _ = slackline_executor::engine::external_runs::clear(&layout.mirror());
            let _ = fs::remove_dir(&self.state);
        }
    }
}

/// Whether what submits may answer the next time.
fn is_unanswered(error: &EngineError) -> bool {
    let EngineError::Other(error) = error else { return matches!(error, EngineError::File { .. }) };
    error.downcast_ref::<SubmitterError>().is_some_and(|error| !error.is_final())
}

/// What jobs ask for that a cluster does not do.
fn unfit(workload: &Draft) -> Vec<Fault> {
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
        }
    }
    faults
}

/// A workload that is ready to be run there.
struct PreparedThere {
    resolved: ResolvedWorkload,
    site: Site,
    remote: Arc<Remote>,
}

impl Prepared for PreparedThere {
    fn workload(&self) -> &Draft {
        &self.resolved.draft
    }

    fn warnings(&self) -> &[String] {
        &self.resolved.warnings
    }

    fn preview(&self, opening: &Opening<'_>) -> Result<Vec<JobVerdict>, EngineError> {
        let mut verdicts = opening::preview(opening, &self.resolved)?;
        for it in &mut verdicts {
            say_in_words(&mut it.verdict, &self.remote.mirror);
        }
        Ok(verdicts)
    }

    fn open(
        self: Box<Self>,
        opening: Opening<'_>,
    ) -> Result<Box<dyn slackline_executor::engine::backend::Session>, EngineError> {
        let Self { resolved, site, remote } = *self;
        let state = opening.state.to_owned();
        // Whoever writes the table holds it, and a run that cannot have it leaves the earlier one as it is.
        let mut table = None;
        let is_alone = !opening.beside_others;
        let mut acquire = |_: Needs<'_>| {
            if is_alone {
                table = site.open_table()?;
            }
            Ok(None)
        };
        let session = opening::open_with(opening, &resolved, &mut acquire);
        let session = session.map_err(|error| in_words(error, &remote.mirror))?;
        // The submitter and the containers know no directory of ours.
        let state = fs::canonicalize(&state)
            .map_err(|problem| EngineError::File { path: state.display().to_string(), problem })?;
        let words = |it: &Obstacle| Obstacle { job: it.job, problem: remote.mirror.words(&it.problem) };
        let obstacles = session.obstacles().iter().map(words).collect();
        let mut verdicts = session.verdicts().to_vec();
        for it in &mut verdicts {
            say_in_words(&mut it.verdict, &remote.mirror);
        }
        let cover = Cover { site, state, remote, obstacles, verdicts };
        Ok(Box::new(SessionThere { session, table, cover }))
    }
}

/// Has what becomes of a job say the names of files that the reader knows.
fn say_in_words(verdict: &mut Verdict, mirror: &Mirror) {
    match verdict {
        Verdict::Prevented(text) | Verdict::Run(Reason::Output(text, _)) => *text = mirror.words(text),
        Verdict::Run(Reason::Input(path, _)) => *path = mirror.words(&path.display().to_string()).into(),
        _ => {}
    }
}

/// What prevents a run, with the names of files that the reader knows.
fn in_words(error: EngineError, mirror: &Mirror) -> EngineError {
    match error {
        EngineError::Unrunnable(mut jobs) => {
            for job in &mut jobs {
                job.fault.problem = mirror.words(&job.fault.problem);
            }
            EngineError::Unrunnable(jobs)
        }
        EngineError::Claimed { path } => EngineError::Claimed { path: mirror.words(&path) },
        other => other,
    }
}

/// A run on a cluster.
pub(super) struct SessionThere {
    session: run::Session,
    /// The table, until it is driven; none beside others.
    table: Option<Table>,
    cover: Cover,
}

/// What is known of a run on a cluster beside its session.
pub(super) struct Cover {
    pub(super) site: Site,
    pub(super) state: PathBuf,
    pub(super) remote: Arc<Remote>,
    obstacles: Vec<Obstacle>,
    verdicts: Vec<JobVerdict>,
}

impl SessionThere {
    /// A session, which is driven with others or not at all.
    pub(super) fn of(session: run::Session, cover: Cover) -> Self {
        Self { session, table: None, cover }
    }

    /// The session, and the rest.
    pub(super) fn apart(self) -> (run::Session, Cover) {
        (self.session, self.cover)
    }
}

impl slackline_executor::engine::backend::Session for SessionThere {
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }

    fn workload(&self) -> &Draft {
        self.session.draft()
    }

    fn started(&self) -> u64 {
        self.session.started()
    }

    fn attempts(&self) -> &[Attempt] {
        self.session.attempts()
    }

    fn recovered(&self) -> Recovery {
        self.session.recovered()
    }

    fn verdicts(&self) -> &[JobVerdict] {
        &self.cover.verdicts
    }

    fn lost(&self) -> &[LostOutput] {
        self.session.lost()
    }

    fn segments(&self) -> &[Segment] {
        self.session.segments()
    }

    fn obstacles(&self) -> &[Obstacle] {
        &self.cover.obstacles
    }

    fn finished_jobs(&self) -> JobHistory {
        self.session.finished_jobs()
    }

    fn run(&mut self, drive: Drive<'_>, stop: &mut dyn FnMut(Stop)) -> Result<RunEnd, EngineError> {
        let Self { session, table, cover } = self;
        let Cover { site, state, remote, .. } = cover;
        let table = table.take();
        let asked = Arc::new(AtomicBool::new(false));
        let flag = asked.clone();
        stop(Stop::new(move || flag.store(true, Ordering::SeqCst)));
        let (slowstart, worker) = (drive.config.slowstart, OnceLock::new());
        let submit = Rc::new(Submission {
            site: site.clone(),
            remote: remote.clone(),
            state: state.clone(),
            slowstart,
            worker,
        });
        let submits: Rc<dyn Submit> = submit.clone();
        let machines = session.draft().machines.clone();
        let run = |left: Elsewhere<'_>, rest: RemainingWork<'_>| {
            let mut cluster = site.cluster(table, remote.submitter.clone());
            let patient = ResourceManager::new(&site.address, http::Settings::default());
            cluster.expect(left.owner(0), &patient).map_err(EngineError::other)?;
            let mut guest = Guest::new(left, cluster, machines, (site.rules(), site.pace.clone()), asked);
            guest.take(0, submits);
            guest.run(rest)
        };
        let close = |jobs: &[JobPlan], owner: &str| submit.close(jobs, owner);
        session.run_elsewhere(drive, run, close)
    }
}

impl Site {
    /// The cluster, as it is looked at and told.
    fn cluster(&self, table: Option<Table>, submitter: Arc<dyn Submits>) -> Cluster {
        // What fails is looked at again with the next look.
        let settings = http::Settings { retries: 0, ..http::Settings::default() };
        let manager = ResourceManager::new(&self.address, settings);
        let observer = Observer::new(Rhythm { lasts: self.pace.asks, ..Rhythm::default() });
        Cluster::new(manager, observer, table, VALID, submitter)
    }

    fn rules(&self) -> Rules {
        Rules { am_share: self.am_share, slot_mb: self.slot_mb, by_cluster: self.by_cluster }
    }

    /// The table of the plug-in, if the cluster has one and is to follow it.
    fn open_table(&self) -> Result<Option<Table>, EngineError> {
        self.table.as_deref().map(|path| Table::open(path, VALID)).transpose().map_err(EngineError::other)
    }

    /// What jobs ask of their files, here or elsewhere, that cannot be done.
    fn unfit_there(&self, resolved: &ResolvedWorkload, mirror: &Mirror) -> Vec<Fault> {
        let mut faults = Vec::new();
        for (plan, place) in resolved.jobs.iter().zip(&resolved.places) {
            let mut fault = |problem: String| {
                faults.push(Fault::new(format!("{place}.inputs"), problem));
            };
            if plan.work.is_jar() {
                let base = std::env::current_dir().unwrap_or_default();
                for input in
                    program::inputs(plan, &resolved.jobs, |path| base.join(path).display().to_string())
                {
                    let is_pattern = !Path::new(&input).exists() && input.contains(['*', '?', '[']);
                    let problem = program::unnameable(&input, is_pattern);
                    problem.map(|problem| mirror.words(&problem)).into_iter().for_each(&mut fault);
                }
            }
            let mut inputs = plan.inputs.maps.iter().flatten().filter_map(|split| mirror.uri(&split.path));
            let Some(input) = inputs.next() else { continue };
            if plan.prepare {
                fault(format!(
                    "found {input} for a job that looks at all of its input first, expected file:///PATH"
                ));
            }
            if self.hash {
                fault(format!(
                    "found {input} where inputs are compared by content (--hash), expected file:///PATH"
                ));
            }
        }
        faults
    }

    fn submitter(&self) -> Result<Submitter, EngineError> {
        let launch = Launch::java(&self.java, &self.class_path, SUBMITTER_OPTIONS);
        Submitter::start(launch.map_err(EngineError::other)?).map_err(EngineError::other)
    }
}

/// Options of the submitter's virtual machine: it starts soon and stays small.
const SUBMITTER_OPTIONS: &[&str] = &["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

#[cfg(test)]
mod tests;
