//! Finds the run that the command line selects: by state directory, flow file or schedule, or the only run
//! there is.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use slackline::names::listed;
use slackline::run::{RunInspection, look};

/// How the command line selects a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunSelector<'a> {
    /// The flow file, which need not exist, or anything that `state` may be.
    pub(crate) workload: Option<&'a Path>,
    /// The state directory, the flow file, or the schedule that the run has written.
    pub(crate) state: Option<&'a Path>,
}

/// The name of a run's state directory.
pub(crate) fn state_name(workload: &Path) -> String {
    let stem = workload.file_stem().map_or("run".into(), |stem| stem.to_string_lossy().into_owned());
    if stem == "-" { "run".to_owned() } else { stem }
}

/// Whether a run keeps its files there.
pub(crate) fn is_state(directory: &Path) -> bool {
    directory.join("journal.log").is_file()
}

/// The state directory of the run that a path names which is there: that directory, the flow file, or what
/// the run has written into the directory, such as its schedule.
fn state_of(named: &Path, states: &Path) -> Option<PathBuf> {
    if is_state(named) {
        return Some(named.to_owned());
    }
    let around = named.parent().filter(|_| named.is_file()).map(Path::to_owned);
    let of_flow_file = flow_file_state(named, states);
    around.filter(|directory| is_state(directory)).or(of_flow_file)
}

/// The state directory of the run of a flow file, if both are there.
pub(crate) fn flow_file_state(file: &Path, states: &Path) -> Option<PathBuf> {
    let state = states.join(state_name(file));
    (file.is_file() && is_state(&state)).then_some(state)
}

/// The state directories below `states`, in the order of their names.
pub(crate) fn all_states(states: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(states).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_state(path)).collect();
    found.sort();
    found
}

impl RunSelector<'_> {
    /// The state directory that is meant; `states` is where runs have theirs.
    ///
    /// # Errors
    /// None is named, and there is none or more than one.
    pub(crate) fn directory(self, states: &Path) -> anyhow::Result<PathBuf> {
        match (self.state, self.workload) {
            (Some(named), _) => Ok(state_of(named, states).unwrap_or_else(|| named.to_owned())),
            (None, Some(named)) => {
                Ok(state_of(named, states).unwrap_or_else(|| states.join(state_name(named))))
            }
            (None, None) => match all_states(states).as_slice() {
                [only] => Ok(only.clone()),
                [] => bail!("{}: found no run; name its state directory with --state DIR", states.display()),
                many => {
                    let names: Vec<String> = many.iter().map(|path| path.display().to_string()).collect();
                    bail!("{} runs found; choose one with --state: {}", many.len(), listed(&names))
                }
            },
        }
    }

    /// The run that is meant.
    ///
    /// # Errors
    /// There is none, or its journal cannot be read.
    pub(crate) fn look(self, states: &Path) -> anyhow::Result<RunInspection> {
        look_at(&self.directory(states)?, states)
    }
}

/// The run of a state directory.
///
/// # Errors
/// There is none, or its journal cannot be read.
pub(crate) fn look_at(state: &Path, states: &Path) -> anyhow::Result<RunInspection> {
    look(state)?.ok_or_else(|| {
        if is_state(state) {
            return anyhow!(
                "{}: the journal is empty: no run has started there, or its records are lost; `slackline run` keeps the jobs that \
                 jobs.log records as finished",
                state.display()
            );
        }
        let there = all_states(states);
        let names: Vec<String> = there.iter().map(|path| path.display().to_string()).collect();
        let known = if names.is_empty() { String::new() } else { format!("; known runs: {}", listed(&names)) };
        anyhow!(
            "{}: found no run, expected its state directory or its flow file{known}",
            state.display()
        )
    })
}
