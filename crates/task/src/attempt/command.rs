//! Commands of the shell, by the contract of Hadoop Streaming: they read standard input, write `key TAB
//! value` lines to standard output, and succeed or fail by their exit status.
//!
//! One thread writes the input, one keeps standard error, and the caller's thread reads the output, so no
//! command blocks on a full pipe. A command may stop reading early without an error. It leads its own process
//! group. Its end is the end of its task. Background processes that it leaves are not awaited (see
//! `crate::attempt::pipe`); the worker kills them at the end of the attempt.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread;

use crate::attempt::log::{self, Log};
use crate::attempt::pipe::{CommandInput, CommandOutput, Running};
use crate::base::error::{CANNOT_ENTER, CANNOT_START, TaskError, at};
use crate::input::reader::Blocks;
use crate::process::cgroups::PROCESSES;
use crate::process::shutdown;
use crate::process::spec::{Setting, Spec};
use crate::shuffle::collect::{CombinerCommand, OpenPartition};
use crate::shuffle::keys::{Keys, Line, Scratch};
use crate::shuffle::pairs::Cursor;

/// What shells add to a signal that ended a program, for the exit code.
const OF_SIGNAL: i32 = 128;

/// The shell of commands whose job names none.
const SHELL_NAME: &str = "sh";

/// How much of a script is read to find the end of its first line, bytes.
const FIRST_LINE_MOST: u64 = 1024;

/// A command and its environment.
#[derive(Clone, Debug)]
pub(crate) struct Streaming {
    pub(crate) role: &'static str,
    pub(crate) command: String,
    pub(crate) directory: PathBuf,
    /// Receives its standard error.
    pub(crate) log: Log,
    /// Variables in its environment.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Its directory, environment and shell.
    pub(crate) setting: Setting,
    /// The limit on its memory.
    pub(crate) memory: MemoryLimit,
    /// The rule that cuts its lines into keys and values.
    pub(crate) keys: Keys,
    /// The longest line of its output, bytes.
    pub(crate) record_limit: usize,
}

/// The enforcement of a command's memory limit.
#[derive(Clone, Debug)]
pub(crate) enum MemoryLimit {
    Free,
    /// The largest address space of each of its processes, bytes.
    Limited(u64),
    /// All its processes are in this control group.
    Grouped(PathBuf),
}

impl MemoryLimit {
    pub(crate) fn of(spec: &Spec) -> Self {
        match (&spec.memory_group, spec.memory_limit) {
            (Some(group), _) => Self::Grouped(group.clone()),
            (None, Some(bytes)) => Self::Limited(bytes),
            (None, None) => Self::Free,
        }
    }

    /// A command that begins with this program: a shell that sets its own limit and then executes the
    /// program.
    fn command(&self, program: &str) -> Command {
        let (script, value) = match self {
            Self::Free => return Command::new(program),
            // A lower existing limit stays.
            Self::Limited(bytes) => ("ulimit -v \"$1\" 2>/dev/null", (bytes >> 10).max(1).to_string().into()),
            // Process 0 is the writer itself.
            Self::Grouped(group) => ("echo 0 > \"$1\" || exit 125", group.join(PROCESSES).into_os_string()),
        };
        let mut limited = Command::new(default_shell());
        limited.args(["-c", &format!("{script}; shift; exec \"$@\""), "sh"]).arg(value).arg(program);
        limited
    }
}

/// The shell of this machine, looked for along `PATH` once: the system would do so for each command.
fn default_shell() -> &'static Path {
    static SHELL: OnceLock<PathBuf> = OnceLock::new();
    SHELL.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|directory| directory.join(SHELL_NAME));
        let is_program = |path: &PathBuf| {
            fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        places.find(is_program).unwrap_or_else(|| SHELL_NAME.into())
    })
}

/// The words of a command that is the path of a program and its arguments: a shell would only start it.
/// `None` if it may be anything else.
fn program_words(command: &str) -> Option<Vec<&str>> {
    let is_literal = |c: char| c.is_ascii_alphanumeric() || " /._-+:,@=".contains(c);
    let words: Vec<&str> = command.split(' ').filter(|word| !word.is_empty()).collect();
    let is_path = words.first()?.contains('/') && !words[0].contains('=');
    (is_path && command.chars().all(is_literal)).then_some(words)
}

/// Gives a command its standard input.
pub(crate) type Feeder<'a> = Box<dyn FnOnce(&mut Feed<'_>) -> Result<(), TaskError> + Send + 'a>;

/// The standard input of a command.
pub(crate) struct Feed<'a> {
    out: BufWriter<CommandInput<'a>>,
}

impl Feed<'_> {
    /// Writes pieces of a line; returns false if the command has stopped reading.
    pub(crate) fn write(&mut self, pieces: &[&[u8]]) -> Result<bool, io::Error> {
        for piece in pieces {
            match self.out.write_all(piece) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
                other => other?,
            }
        }
        Ok(true)
    }

    fn close(mut self) -> Result<(), io::Error> {
        match self.out.flush() {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
        // The buffer holds bytes that could not be written; they must not be written again.
        drop(self.out.into_parts());
        Ok(())
    }
}

impl Streaming {
    /// Runs the command: `feed` gives it input, if it has any, and `consume` takes its output.
    pub(crate) fn run<T>(
        &self,
        feed: Option<Feeder<'_>>,
        consume: impl FnOnce(CommandOutput<'_, ChildStdout>) -> Result<T, TaskError>,
    ) -> Result<T, TaskError> {
        let mut child = self.spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).expect("invariant: both are piped");
        let stderr = child.stderr.take().expect("invariant: it is piped");
        let command = Running::new(child);
        let unfed = || at("cannot feed a command of", &self.directory);
        let no_thread = |error| {
            command.kill();
            at("cannot start a thread for a command of", &self.directory)(error)
        };
        let consumed = thread::scope(|scope| {
            let logger = thread::Builder::new();
            logger
                .spawn_scoped(scope, || self.log.keep(CommandOutput::new(stderr, &command)))
                .map_err(no_thread)?;
            let command = &command;
            let write = |feed: Feeder<'_>| {
                let input = CommandInput::new(stdin, command).map_err(unfed())?;
                let mut input = Feed { out: BufWriter::with_capacity(1 << 16, input) };
                feed(&mut input)?;
                input.close().map_err(unfed())
            };
            // Without one the pipe is closed at once.
            let feeder = feed.map(|feed| thread::Builder::new().spawn_scoped(scope, || write(feed)));
            let feeder = feeder.transpose().map_err(no_thread)?;
            let consumed = consume(CommandOutput::new(stdout, command));
            if consumed.is_err() {
                // Its output is already lost.
                command.kill();
            }
            let fed = feeder.map_or(Ok(()), |it| it.join().expect("invariant: feeding does not panic"));
            if fed.is_err() {
                command.kill();
            }
            fed.and(consumed)
        });
        let status = command.wait().map_err(at("cannot wait for a command of", &self.directory))?;
        let consumed = consumed?;
        if status.success() { Ok(consumed) } else { Err(self.failed(status)) }
    }

    /// Feeds lines of key, separator, value, and counts them; returns false if the command has stopped
    /// reading.
    pub(crate) fn feed_pairs(
        &self,
        feed: &mut Feed<'_>,
        cursor: &mut (impl Cursor + ?Sized),
        count: &mut u64,
    ) -> Result<bool, TaskError> {
        let separator = [self.keys.separator()];
        while let Some((key, value)) = cursor.current() {
            let (key, value) = self.keys.pair(key, value);
            let written = feed.write(&[key, &separator, value, b"\n"]);
            if !written.map_err(at("cannot feed a command of", &self.directory))? {
                return Ok(false);
            }
            *count += 1;
            cursor.advance()?;
        }
        Ok(true)
    }

    /// Calls `take` with each line of the output, cut after the fields of its key.
    pub(crate) fn each_pair(
        &self,
        stdout: impl Read,
        mut take: impl FnMut(Line<'_>) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let (mut blocks, mut scratch) = (Blocks::new(stdout, self.record_limit), Scratch::default());
        loop {
            let line = blocks.line().map_err(|e| self.unreadable(e))?;
            let Some(line) = line else { return Ok(()) };
            self.keys.line(line, &mut scratch, &mut take)?;
        }
    }

    fn spawn(&self) -> Result<Child, TaskError> {
        if let Some(words) = self.program()
            && let Ok(child) = self.start(Command::new(words[0]).args(&words[1..]))
        {
            return Ok(child);
        }
        // The shell says why a program cannot be started, and runs a script without an interpreter.
        let words = self.shell()?;
        let mut command = self.memory.command(&words[0]);
        command.args(&words[1..]).arg("-c").arg(&self.command);
        if let Some(cwd) = &self.setting.cwd {
            // The system reports a missing directory like a missing program.
            let is_there = fs::metadata(cwd).and_then(|meta| {
                if meta.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
            });
            is_there.map_err(at(CANNOT_ENTER, cwd))?;
            command.current_dir(cwd);
        }
        self.start(&mut command).map_err(at(CANNOT_START, Path::new(&words[0])))
    }

    /// The words of the command if it can start without a shell. One in another directory cannot: a shell
    /// sets PWD there.
    fn program(&self) -> Option<Vec<&str>> {
        let is_bare = self.setting.shell.is_none() && self.setting.cwd.is_none();
        let is_free = matches!(self.memory, MemoryLimit::Free);
        program_words(&self.command).filter(|_| is_bare && is_free)
    }

    /// Starts a process with the environment and the pipes of the command.
    fn start(&self, command: &mut Command) -> io::Result<Child> {
        let _alone = shutdown::starting();
        command
            // Signals to its own group do not reach the worker.
            .process_group(0)
            .envs(&self.setting.env)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// The program that reads the command, and its options: at least one word.
    fn shell(&self) -> Result<Vec<String>, TaskError> {
        let Some(shell) = &self.setting.shell else {
            // Another PATH may have another shell.
            let is_here = !self.setting.env.contains_key("PATH");
            let shell = if is_here { default_shell().display().to_string() } else { SHELL_NAME.to_owned() };
            return Ok(vec![shell]);
        };
        shlex::split(shell).filter(|words| !words.is_empty()).ok_or_else(|| {
            TaskError::Job(format!(
                "shell: found {shell:?}, expected a program and its options, such as \"bash -o pipefail\""
            ))
        })
    }

    fn failed(&self, status: ExitStatus) -> TaskError {
        // A shell in between would have reported a signal as this exit code.
        let of_signal = || status.signal().filter(|_| self.program().is_some()).map(|it| OF_SIGNAL + it);
        let exit = status.code().or_else(of_signal);
        let exit = exit.and_then(|code| u8::try_from(code).ok());
        let hint = self.script_of_windows(exit).map_or_else(String::new, |script| {
            format!("; the first line of {script} ends with a carriage return: save it with LF line ends")
        });
        TaskError::Command {
            role: self.role,
            command: self.command.clone(),
            status: format!("{status}{hint}"),
            stderr: log::last_lines(&self.directory),
            exit,
            limit: if let MemoryLimit::Limited(bytes) = self.memory { Some(bytes) } else { None },
        }
    }

    /// A script of the command whose interpreter the shell did not find, because a carriage return follows
    /// its name.
    fn script_of_windows(&self, exit: Option<u8>) -> Option<&str> {
        // 126: bash finds no such interpreter; 127: other shells do not.
        exit.filter(|exit| matches!(exit, 126 | 127))?;
        let directory = self.setting.cwd.as_deref().unwrap_or(Path::new("."));
        let mut words = self.command.split(|c: char| c.is_whitespace() || "|;&()<>\"'`".contains(c));
        words.find(|word| first_line_ends_with_carriage_return(&directory.join(word)).unwrap_or(false))
    }

    fn unreadable(&self, source: io::Error) -> TaskError {
        TaskError::Said { role: self.role, command: self.command.clone(), source }
    }
}

impl CombinerCommand for Streaming {
    fn combine(
        &self,
        partitions: usize,
        open: &OpenPartition<'_>,
        take: &mut dyn FnMut(Line<'_>) -> Result<(), TaskError>,
    ) -> Result<u64, TaskError> {
        let mut fed = 0;
        let feed = |feed: &mut Feed<'_>| {
            for partition in 0..partitions {
                if !self.feed_pairs(feed, &mut *open(partition)?, &mut fed)? {
                    break;
                }
            }
            Ok(())
        };
        self.run(Some(Box::new(feed)), |stdout| self.each_pair(stdout, take))?;
        Ok(fed)
    }
}

/// The longest argument or variable that Linux passes to a program, bytes, with the zero that ends it.
const STRING_MAX: usize = 128 << 10;
/// Linux passes arguments and variables of at least and at most these numbers of bytes in all; in between, a
/// quarter of the stack.
const ALL: (u64, u64) = (128 << 10, 6 << 20);

/// Refuses commands, each with its variables, that the system would not start. `list` is the length of the
/// list of inputs.
///
/// # Errors
/// The text that is too long, or the total length of all texts.
pub fn check_size(commands: &[&str], env: &BTreeMap<String, String>, list: usize) -> Result<(), TaskError> {
    let too_long = |what: String| Err(TaskError::Job(format!("{what}; put it into a file instead")));
    if let Some(command) = commands.iter().find(|command| command.len() >= STRING_MAX) {
        let found = command.len();
        return too_long(format!(
            "found a command of {found} bytes, but the system allows fewer than {STRING_MAX}"
        ));
    }
    let length = |(name, value): (&String, &String)| name.len() + "=".len() + value.len();
    if let Some(variable) = env.iter().find(|variable| length(*variable) >= STRING_MAX) {
        let (name, found) = (variable.0, length(variable));
        return too_long(format!(
            "env: found {found} bytes in {name}, but the system allows fewer than {STRING_MAX}"
        ));
    }
    let own =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_none_or(|name| !env.contains_key(name)));
    let own: usize = own
        .map(|(name, value)| name.len() + "=".len() + value.len())
        .chain(env.iter().map(length))
        .map(cost)
        .sum();
    let longest = commands.iter().map(|command| cost(command.len())).max().unwrap_or_default();
    let (all, most) = ((own + longest + cost(list)) as u64, argument_space());
    if all > most {
        return too_long(format!(
            "found a command and an environment of {all} bytes, but the system allows at most {most} (a quarter of ulimit -s)"
        ));
    }
    Ok(())
}

/// The space that an argument or variable of `bytes` bytes takes: its zero and a pointer to it.
fn cost(bytes: usize) -> usize {
    bytes + 1 + size_of::<usize>()
}

/// Bytes of arguments and variables that the system passes to a program.
fn argument_space() -> u64 {
    let stack = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    stack.map_or(ALL.1, |stack| (stack / 4).clamp(ALL.0, ALL.1))
}

/// Whether the first line of a script names an interpreter and ends with a carriage return.
fn first_line_ends_with_carriage_return(script: &Path) -> io::Result<bool> {
    if !fs::metadata(script)?.is_file() {
        return Ok(false);
    }
    let mut head = Vec::new();
    File::open(script)?.take(FIRST_LINE_MOST).read_to_end(&mut head)?;
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(line.starts_with(b"#!") && line.ends_with(b"\r"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_a_program_with_literal_arguments_needs_no_shell() {
        assert_eq!(
            program_words("/bin/sort  -k 2,2 --key=1"),
            Some(vec!["/bin/sort", "-k", "2,2", "--key=1"])
        );
        assert_eq!(program_words("./a.sh"), Some(vec!["./a.sh"]));
        let shells =
            ["", " ", "true", "A=/x /bin/env", "/bin/a | /bin/b", "/bin/a $X", "/bin/a *", "/bin/a '1'"];
        for command in
            shells.into_iter().chain(["/bin/a ~", "/bin/a\n/bin/b", "/bin/a\tb", "/bin/{a,b}", "! /bin/a"])
        {
            assert_eq!(program_words(command), None, "{command}");
        }
        assert!(default_shell().is_absolute());
    }

    #[test]
    fn a_command_is_in_its_control_group_before_it_begins_or_does_not_begin() {
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryLimit::Grouped(dir.path().to_owned());
        let said = memory.command("cat").arg(dir.path().join(PROCESSES)).output().unwrap();
        assert_eq!(said.stdout, b"0\n");
        let gone = MemoryLimit::Grouped(dir.path().join("gone"));
        let refused = gone.command("echo").arg("begun").output().unwrap();
        assert_eq!((refused.status.code(), refused.stdout), (Some(125), Vec::new()));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("gone/cgroup.procs"));
    }
}
