//! The engines of several machines (ssh, Slurm). Tasks are processes on all machines; outputs are directories
//! that all machines see.
//!
//! - `hosts`: the file that lists the machines; [`ssh`]: machines that are reached by ssh;
//! - [`slurm`]: nodes of Slurm allocations;
//! - `visibility_check`: whether a machine sees the files of the run.

pub mod slurm;
pub mod ssh;
pub(crate) mod visibility_check;

pub(crate) use crate::engine::machines::visibility_check::VisibilityCheck;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use slackline_model::draft::MachineDraft;
use slackline_model::params::{self, Param, Values};
use slackline_model::{Draft, WallTime};
use slackline_task::base::clock::RunClock;
use slackline_trace::atomic_file;

use crate::engine::Settings;
use crate::engine::backend::{
    Backend, EngineDescription, Open, PreparedRun, Session, SharedEngine, SharedEngineConfig,
};
use crate::engine::process_session::ProcessSession;
use crate::engine::shared::SharedProcessEngine;
use crate::engine::shared::machine_table::MachineTable;
use crate::engine::this_machine::{Rules, jars, recorded_options};
use crate::fleet::Fleet;
use crate::fleet::agents::{Agents, Terms};
use crate::fleet::speeds::Speeds;
use crate::run::error::{EngineError, file};
use crate::run::limits::check_limits;
use crate::run::opening;
use crate::run::opening::{Needs, Opening, StatusCallback, new_owner};
use crate::spec::fault::Fault;
use crate::spec::job_cost::JobHistory;
use crate::spec::resolve::{InputRules, ResolvedWorkload, Spread, resolve};
use crate::store::layout::Layout;
use crate::store::pid_file;

/// The directory that all machines see.
pub(crate) const SHARED: Param = Param::new(
    "shared",
    "state",
    Values::Path("DIR"),
    "shared directory for map output; state: the state directory",
)
.or_word("state");

/// The program on the machines.
pub(crate) const PROGRAM: Param = Param::new(
    "program",
    "same",
    Values::Path("FILE"),
    "path of slackline on the machines; same: its path on this machine",
)
.or_word("same");

/// Where an engine's machines come from.
pub(crate) trait Site: Send + Sync {
    /// Its settings, by name, to be shown with the run.
    fn options(&self) -> BTreeMap<String, String>;

    /// The machines, as far as they are known before anybody is asked for them.
    fn expected(&self) -> Vec<MachineDraft>;

    /// The speeds of machines from the user, by name.
    fn said(&self) -> Vec<(String, f64)> {
        Vec::new()
    }

    /// The same of one of them.
    fn said_of(&self, machine: &str) -> Option<f64> {
        self.said().into_iter().find_map(|(name, speed)| (name == machine).then_some(speed))
    }

    /// Sets the speeds of machines for which the user gave none.
    fn learn(&mut self, speeds: Speeds);

    /// Gets the machines, and starts an agent on each.
    ///
    /// # Errors
    /// They are not to be had; one that cannot be one of the run's; none that answers.
    fn open(&self, terms: Terms, says: StatusCallback<'_>) -> Result<OpenedFleet, EngineError>;
}

pub(crate) struct OpenedFleet {
    pub(crate) fleet: Agents,
    /// One a machine of the fleet, in its order.
    pub(crate) machines: Vec<MachineDraft>,
}

/// The settings of every engine of several machines.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    rules: Rules,
    shared: Option<PathBuf>,
}

impl Common {
    pub(crate) fn of(settings: &params::Settings) -> Result<Self, EngineError> {
        let shared = settings.given(SHARED.name).then(|| PathBuf::from(settings.text(SHARED.name)));
        let mut rules = Rules::of(settings)?;
        rules.settings.spread = true;
        Ok(Self { rules, shared })
    }
}

/// The program that is started on the machines.
pub(crate) fn program(settings: &params::Settings) -> Result<String, EngineError> {
    if settings.given(PROGRAM.name) {
        return Ok(settings.text(PROGRAM.name).to_owned());
    }
    let here = std::env::current_exe().map_err(EngineError::other)?;
    Ok(here.display().to_string())
}

pub(crate) struct MachinesEngine<S> {
    pub(crate) site: S,
    pub(crate) common: Common,
}

impl<S: Site + Clone + 'static> Backend for MachinesEngine<S> {
    fn description(&self) -> EngineDescription {
        let mut options = self.site.options();
        let Rules { split_bytes, hash, settings } = &self.common.rules;
        options.extend(recorded_options(*split_bytes, *hash, settings));
        EngineDescription { options, machines: self.site.expected(), profile: None }
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory, state: &Path) -> Result<PreparedRun, Vec<Fault>> {
        let directory = visibility_check::directory();
        let Rules { split_bytes, hash, .. } = self.common.rules;
        let layout = Layout::new(state);
        let layout = match &self.common.shared {
            Some(shared) => layout.sharing(shared),
            None => layout,
        };
        let rules = InputRules { split_bytes, hash, directory: &directory, outputs: &layout.outputs() };
        let faults = jars(workload);
        if !faults.is_empty() {
            return Err(faults);
        }
        let (mut site, settings) = (self.site.clone(), self.common.rules.settings.clone());
        let speeds = speeds(&site, past);
        let past = past.iter().map(|(name, cost)| (name.clone(), speeds.sized(cost))).collect();
        let mut workload = workload.clone();
        for machine in &mut workload.machines {
            machine.speed = site.said_of(&machine.name).or_else(|| speeds.of(&machine.name)).unwrap_or(1.0);
        }
        site.learn(speeds);
        let mut resolved =
            resolve(&workload, rules, &past).map_err(|error| vec![Fault::new(error.path, error.problem)])?;
        resolved.spread = Some(Spread { shared: self.common.shared.clone() });
        let open: Open = Box::new(move |opening, resolved| open(opening, resolved, &site, settings));
        Ok(PreparedRun { resolved, memory: None, open })
    }

    fn shared_engine(&self, config: SharedEngineConfig<'_>) -> Result<Box<dyn SharedEngine>, EngineError> {
        let SharedEngineConfig { files, started, seen, past, status: says } = config;
        let (pids, owner) = (files.join("pids"), files.join("owner"));
        let data = self.common.shared.as_deref().unwrap_or(files);
        for directory in [files, data] {
            std::fs::create_dir_all(directory).map_err(file(directory))?;
        }
        // Ends the processes through which a killed run reached its machines. The agents end the rest; they
        // know the run by its name.
        pid_file::kill_leftovers(&pids).map_err(file(&pids))?;
        let owner = kept_name(&owner).map_err(file(&owner))?;
        let visibility_check = VisibilityCheck::new(data, &owner, &[], pids)?;
        let mut site = self.site.clone();
        let speeds = speeds(&site, past);
        site.learn(speeds);
        let OpenedFleet { fleet, machines } = site.open(visibility_check.terms(), says)?;
        let table = MachineTable::kept(&files.join("machines"), machines)?;
        let settings = self.common.rules.settings.clone();
        let engine = SharedProcessEngine::new(
            Box::new(fleet),
            table,
            settings,
            RunClock::since(WallTime(started), seen, 0),
        )?;
        Ok(Box::new(engine.seen_by(visibility_check)))
    }
}

/// The known speeds of a site's machines.
fn speeds(site: &impl Site, past: &JobHistory) -> Speeds {
    let said = site.said();
    Speeds::learned(past).in_unit_of(said.iter().map(|(name, speed)| (name.as_str(), *speed)))
}

/// A name that no other has, the same each time.
fn kept_name(path: &Path) -> io::Result<String> {
    match std::fs::read_to_string(path) {
        Ok(name) if !name.is_empty() => return Ok(name),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let name = new_owner();
    atomic_file::replace(path, |file| file.write_all(name.as_bytes()))?;
    Ok(name)
}

/// Opens a run on the machines of a site, which it gets unless they are a shared engine's.
fn open(
    opening: Opening<'_>,
    resolved: &ResolvedWorkload,
    site: &impl Site,
    settings: Settings,
) -> Result<Box<dyn Session>, EngineError> {
    if opening.beside_others {
        // The machines are present and other runs may use them.
        let session = opening::open(opening, resolved)?;
        return Ok(Box::new(ProcessSession::new(session, settings)));
    }
    let (mut acquired, says) = (None, opening.status);
    let mut acquire = |needs: Needs<'_>| {
        let Needs { layout, owner, jobs } = needs;
        let visibility_check = VisibilityCheck::new(layout.data(), owner, jobs, layout.pids())?;
        let OpenedFleet { fleet, machines } = site.open(visibility_check.terms(), says)?;
        check_limits(jobs, &machines, &fleet.machines())?;
        acquired = Some((fleet, visibility_check));
        Ok(Some(machines))
    };
    let session = opening::open_with(opening, resolved, &mut acquire)?;
    Ok(Box::new(ProcessSession { session, settings, acquired }))
}
