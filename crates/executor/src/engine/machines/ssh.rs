//! Machines that are reached by ssh.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use slackline_model::draft::MachineDraft;
use slackline_model::params::{self, Param, ParamError, Values};
use slackline_model::shell;

use crate::engine::backend::{Backend, EngineEntry};
use crate::engine::machines::{Common, MachinesEngine, OpenedFleet, PROGRAM, SHARED, Site, program};
use crate::engine::this_machine::{HASH, SPECULATE, SPLIT, TASK_MEMORY, TIMEOUT};
use crate::fleet::agent;
use crate::fleet::agents::{Agents, Machine, Terms};
use crate::fleet::hosts::{self, Host};
use crate::fleet::link::LinkCommand;
use crate::fleet::speeds::Speeds;
use crate::run::error::EngineError;
use crate::run::opening::StatusCallback;

/// The entry in the table of engines.
pub const ENTRY: EngineEntry =
    EngineEntry { name: "ssh", summary: "machines reached by ssh", params: PARAMS, make };

/// Where a value has to be given.
const NONE: &str = "none";

const HOSTS: Param = Param::new(
    "hosts",
    NONE,
    Values::Path("FILE"),
    "file with a line for each machine, such as node-a slots=4",
)
.or_word(NONE);

const SSH: Param = Param::new("ssh", "ssh", Values::Text("COMMAND"), "the ssh command and its options");

const PARAMS: &[Param] = &[HOSTS, SSH, PROGRAM, SHARED, SPLIT, TASK_MEMORY, TIMEOUT, SPECULATE, HASH];

/// Options of ssh: no questions, and a connection timeout of less than minutes.
const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"];

fn make(settings: &params::Settings) -> Result<Box<dyn Backend>, EngineError> {
    if !settings.given(HOSTS.name) {
        let expected = "a file with a line for each machine, such as node-a slots=4 (docs/fleet.md)";
        let (found, expected) = (NONE.to_owned(), expected.to_owned());
        return Err(ParamError::Value { name: HOSTS.name, found, expected }.into());
    }
    let file = settings.text(HOSTS.name);
    let text =
        fs::read_to_string(file).map_err(|problem| EngineError::File { path: file.to_owned(), problem })?;
    let hosts = hosts::parse(file, &text).map_err(EngineError::other)?;
    let site = Ssh { file: file.to_owned(), hosts, call: words(settings)?, program: program(settings)? };
    Ok(Box::new(MachinesEngine { site, common: Common::of(settings)? }))
}

/// The words by which ssh is called.
fn words(settings: &params::Settings) -> Result<Vec<String>, ParamError> {
    let given = settings.text(SSH.name);
    let words = shlex::split(given).filter(|words| !words.is_empty());
    let mut words = words.ok_or_else(|| ParamError::Value {
        name: SSH.name,
        found: given.to_owned(),
        expected: "a command as a shell reads it, such as ssh -p 2222".to_owned(),
    })?;
    shell::check_path(&words[0]).map_err(|expected| ParamError::Value {
        name: SSH.name,
        found: given.to_owned(),
        expected,
    })?;
    // A command with another name gets no options: they may be invalid for it.
    if Path::new(&words[0]).file_name().is_some_and(|name| name == "ssh") {
        words.extend(OPTIONS.map(str::to_owned));
    }
    Ok(words)
}

/// Machines of a file.
#[derive(Clone, Debug)]
struct Ssh {
    file: String,
    hosts: Vec<Host>,
    /// How ssh is called.
    call: Vec<String>,
    program: String,
}

impl Ssh {
    /// The command that starts an agent on a machine: there, a shell reads it.
    fn link(&self, host: &Host) -> Result<LinkCommand, EngineError> {
        let program = shlex::try_quote(&self.program).map_err(EngineError::other)?;
        let there = format!("exec {program} {}", agent::ARGUMENT);
        let (ssh, options) = self.call.split_first().expect("invariant: a command has a word at least");
        let args = options.iter().cloned().chain([host.address.clone(), there]).collect();
        Ok(LinkCommand { program: PathBuf::from(ssh), args, unset: &[] })
    }
}

impl Site for Ssh {
    fn options(&self) -> BTreeMap<String, String> {
        let slots: u32 = self.hosts.iter().map(|host| host.slots).sum();
        BTreeMap::from([
            ("engine".to_owned(), "ssh".to_owned()),
            ("hosts".to_owned(), self.file.clone()),
            ("slots".to_owned(), format!("Generic({slots})")),
        ])
    }

    fn expected(&self) -> Vec<MachineDraft> {
        self.hosts.iter().map(Host::draft).collect()
    }

    fn said(&self) -> Vec<(String, f64)> {
        self.hosts.iter().filter_map(|host| Some((host.name.clone(), host.speed?))).collect()
    }

    fn learn(&mut self, speeds: Speeds) {
        for host in &mut self.hosts {
            host.speed = host.speed.or_else(|| speeds.of(&host.name));
        }
    }

    fn open(&self, terms: Terms, _: StatusCallback<'_>) -> Result<OpenedFleet, EngineError> {
        let machine = |host: &Host| {
            let Host { name, slots, speed, .. } = host.clone();
            let link = Box::new(self.link(host)?);
            Ok(Machine { name, slots, speed: speed.unwrap_or(1.0), link, left: None })
        };
        let machines = self.hosts.iter().map(machine).collect::<Result<Vec<_>, EngineError>>()?;
        let fleet = Agents::open(machines, terms, None).map_err(EngineError::other)?;
        Ok(OpenedFleet { fleet, machines: self.expected() })
    }
}
