//! A command of a hook: `sh -c` in a separate process group, for `run` and for the service.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// The longest text that an environment variable of a command holds, bytes. Linux starts no command with a
/// variable above 128 KiB.
const VARIABLE_MAX: usize = 64 << 10;

/// Converts a text to the value of an environment variable: replaces NUL bytes, which would end it, and cuts
/// it if it is too long.
pub fn variable(text: &str) -> String {
    let most = VARIABLE_MAX.min(text.len());
    let end = (0..=most).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let cut = if end < text.len() { "…" } else { "" };
    format!("{}{cut}", text[..end].replace('\0', " "))
}

/// A running command.
#[derive(Debug)]
pub struct HookProcess(Child);

impl HookProcess {
    /// Starts a command line with these variables in its environment. `input` is its standard input, and
    /// `output` receives its standard output. Its standard error is that of this process if `shows_errors`.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn start<const N: usize>(
        line: &str,
        variables: [(&str, OsString); N],
        input: &str,
        output: Stdio,
        shows_errors: bool,
    ) -> io::Result<Self> {
        let mut child = Command::new("sh")
            .args(["-c", line])
            .envs(variables)
            .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
            .stdout(output)
            .stderr(if shows_errors { Stdio::inherit() } else { Stdio::null() })
            // Ctrl-C is for this process alone, and all processes of the command can be killed.
            .process_group(0)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A command may ignore its input.
            let _ = stdin.write_all(input.as_bytes());
        }
        Ok(Self(child))
    }

    /// How the command ended, if it has.
    ///
    /// # Errors
    /// An error of the operating system.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// Kills the command and all its processes. It may have ended already.
    pub fn kill(mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_never_too_long_for_the_system() {
        assert_eq!(variable("a\0b"), "a b");
        let long = variable(&"é".repeat(VARIABLE_MAX));
        assert_eq!(long.len(), VARIABLE_MAX + "…".len());
        assert!(long.ends_with("é…"));
    }
}
