//! The command that starts a worker process.

use std::io;
use std::path::PathBuf;

/// The only argument of a program that is started as a worker of itself.
pub const ARGUMENT: &str = "worker";

/// The command that starts a worker: a program that calls [`crate::worker::main`] with these arguments.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    pub program: PathBuf,
    pub args: Vec<String>,
}

impl WorkerCommand {
    /// This same program, started with [`ARGUMENT`]: its `main` must begin with
    /// [`crate::worker::main_if_asked`].
    ///
    /// # Errors
    /// The path of the program is unknown.
    pub fn this_program() -> io::Result<Self> {
        let program = std::env::current_exe().map_err(|error| {
            io::Error::new(error.kind(), format!("this program cannot find itself to start workers: {error}"))
        })?;
        Ok(Self { program, args: vec![ARGUMENT.to_owned()] })
    }
}
