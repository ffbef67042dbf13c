//! Reads and writes the file that `--history` names. Simulations and real runs keep it. Simulations read it
//! at the start and write it at the end; where there are real runs in it they leave it as it is, so that what
//! was simulated never gets among what really ran.

use std::path::Path;

use anyhow::Context;
use slackline::report::number::counted;
use slackline_model::History;

use crate::args::SimulationArgs;
use crate::terminal::out;

/// A history as it was read.
#[derive(Debug, Default)]
pub(crate) struct HistoryFile {
    pub(crate) history: History,
    /// Hash of the document, or of the one that the store stands for; `None` if there was none.
    pub(crate) sha256: Option<String>,
    /// Whether it is the store of real runs.
    is_store: bool,
}

impl HistoryFile {
    /// Reads the file, if one was named; one that does not exist is a history in which nothing happened.
    ///
    /// # Errors
    /// A file that cannot be read or is no history; flags that do not go with one.
    pub(crate) fn read(simulation: &SimulationArgs) -> anyhow::Result<Self> {
        simulation.check_knowledge()?;
        let Some(path) = &simulation.history else { return Ok(Self::default()) };
        let name = path.display().to_string();
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                out::talk(format_args!("{name}: does not exist; the simulation starts without a history"));
                return Ok(Self::default());
            }
            Err(error) => return Err(error).with_context(|| format!("{name}: cannot be read")),
        };
        let (history, runs) = slackline_trace::read_history(&name, &bytes)?;
        Ok(Self { history, sha256: Some(slackline_trace::sha256(&bytes)), is_store: !runs.is_empty() })
    }

    /// Writes what is known after a simulation, unless the file is of real runs.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn replace(&self, path: &Path, history: &History) -> anyhow::Result<()> {
        if self.is_store {
            out::talk(format_args!("{}: has real runs, so this simulation is not added", path.display()));
            return Ok(());
        }
        write(path, history)
    }
}

fn write(path: &Path, history: &History) -> anyhow::Result<()> {
    out::data(Some(path), |out| slackline_trace::write_history(out, history, &[]))?;
    let rows = counted(history.records().count() as u64, "record");
    out::talk(format_args!("{}: {rows} of finished tasks", path.display()));
    Ok(())
}
