//! Runs one task inside a container that another system, Hadoop, has started.
//!
//! The task is the one that this machine would run ([`crate::attempt`]), so that its output is the same to
//! the byte. Its inputs are two files, a [`JobSpec`] for the whole job and a line of [`pieces`] for each map;
//! data go in and out as [`frames`] on standard input and output. The other system carries the map output, a
//! blob for each map and partition, and knows only the length of each.
//!
//! ```text
//! slackline-worker container task map --spec FILE --pieces FILE --task N --attempt A --directory DIR [--copy K=PATH]…
//! slackline-worker container task reduce --spec FILE --task N --attempt A --directory DIR
//! ```
//!
//! A map writes its partitions, ascending, or its part file; a reduce reads a partition of all maps,
//! ascending, and writes its part file. Last comes a report, also for a failed task: then the exit code is
//! still 0. It is 2 if no task could be read (invalid files, arguments or frames), with the reason on
//! standard error. Standard error of commands is forwarded at once, including counters and status by
//! `reporter:`.
//!
//! An attempt that takes longer than its job allows is ended, with a report.
//!
//! A map ends when its standard input closes, a reduce when no process reads its standard output any more, in
//! both cases with all processes that it started.

pub(crate) mod arguments;
pub mod frames;
pub mod job_spec;
pub mod pieces;

pub use crate::container::job_spec::{JobSpec, NO_TOTAL_ORDER};

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use slackline_model::printable::escaped;

use crate::attempt;
use crate::base::error::{TaskError, at};
use crate::container::job_spec::AttemptDirectories;
use crate::process::report::Report;
use crate::process::shutdown;
use crate::process::spec::{Spec, Task};
use crate::shuffle::part::part_file;
use crate::shuffle::transfer::{Arrival, depart};
use arguments::{Arguments, Phase};
use frames::{Frames, PART, REPORT};

/// The first argument of a program that runs one task in a container.
pub const ARGUMENT: &str = "container";

/// Runs a task to its end if this program was started for one.
pub fn main_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    Some(match arguments::parse(arguments).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The reader may be gone.
            let _ = writeln!(io::stderr(), "slackline-worker: {}", escaped(&error.to_string()));
            ExitCode::from(2)
        }
    })
}

fn run(arguments: &Arguments) -> Result<(), TaskError> {
    let job = JobSpec::read(&arguments.spec)?;
    let place = AttemptDirectories::make(&arguments.directory, arguments.attempt)?;
    // Not the standard output of the library, which searches for the ends of lines.
    let mut out = io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(frames::unsent())?;
    let mut beside = out.try_clone().map_err(frames::unsent())?;
    let late = move |report: &Report| {
        // The reader may be gone.
        let _ = send_report(&mut beside, report);
    };
    let (spec, report) = match &arguments.phase {
        Phase::Map { pieces, copies } => {
            shutdown::end_when_closed(io::stdin()).map_err(|error| no_thread(&error))?;
            let task = job.map(arguments.task, pieces::read(pieces, arguments.task)?, copies, &place)?;
            let spec = job.attempt(task, &place);
            place.enter(&job)?;
            let report = shutdown::supervise_within(job.limit(), || Report::of(attempt::run(&spec)), late);
            (spec, report)
        }
        Phase::Reduce => {
            shutdown::end_when_closed(io::stdout()).map_err(|error| no_thread(&error))?;
            let partition = job.check_reduce(arguments.task)?;
            let ReduceInput { maps, stored } =
                receive(&mut io::stdin().lock(), &place.attempt, job.maps, partition)?;
            let spec = job.attempt(Task::Reduce { partition, maps }, &place);
            place.enter(&job)?;
            let report = stored.map_or_else(
                |error| Report::of(Err(error)),
                |()| shutdown::supervise_within(job.limit(), || Report::of(attempt::run(&spec)), late),
            );
            (spec, report)
        }
    };
    if matches!(report, Report::Done(_)) {
        send_output(&mut out, &spec)?;
    }
    send_report(&mut out, &report)
}

fn no_thread(error: &io::Error) -> TaskError {
    TaskError::Job(format!("its process cannot start a thread: {error}"))
}

fn send_report(out: &mut impl Write, report: &Report) -> Result<(), TaskError> {
    let text = serde_json::to_vec(report).expect("invariant: a report can be written as JSON");
    frames::write(out, REPORT, text.as_slice())
}

/// One partition of all maps.
struct ReduceInput {
    /// The directories of the maps, for the reduce.
    maps: Vec<PathBuf>,
    /// The error of storing them, after which the rest was still read: the sender learns of it from the
    /// report.
    stored: Result<(), TaskError>,
}

fn receive(
    input: &mut impl Read,
    directory: &Path,
    count: u32,
    partition: u32,
) -> Result<ReduceInput, TaskError> {
    let (mut frames, mut arrival) = (Frames::new(input), None);
    let mut received = ReduceInput { maps: Vec::new(), stored: Ok(()) };
    let mut keep = |map: &Path, is_new: bool, bytes: &[u8]| {
        if is_new {
            arrival = Some(Arrival::begin(map, partition)?);
        }
        arrival.as_mut().map_or(Ok(()), |arrival| arrival.take(bytes))
    };
    while let Some((map, bytes)) = frames.next()? {
        let known = received.maps.len() as u32;
        let is_new = map == known && map < count;
        if !is_new && map.checked_add(1) != Some(known) {
            return Err(frames::malformed(format!(
                "found tag {map} after {known} maps, expected {count} maps in the order of their numbers"
            )));
        }
        if is_new {
            received.maps.push(directory.join("maps").join(map.to_string()));
        }
        if received.stored.is_ok() {
            received.stored = keep(&received.maps[map as usize], is_new, bytes);
        }
    }
    if received.maps.len() != count as usize {
        let found = received.maps.len();
        return Err(frames::malformed(format!("found the output of {found} maps, expected {count}")));
    }
    Ok(received)
}

/// Sends the output of an attempt.
fn send_output(out: &mut impl Write, attempt: &Spec) -> Result<(), TaskError> {
    let number = match attempt.task {
        Task::Map { partitions, .. } if partitions > 0 => {
            return (0..partitions).try_for_each(|partition| {
                frames::write(out, partition, depart(&attempt.directory, partition)?)
            });
        }
        Task::Map { index, .. } => index,
        Task::Reduce { partition, .. } => partition,
    };
    let path = attempt.directory.join(part_file(number, attempt.compress));
    frames::write(out, PART, File::open(&path).map_err(at("cannot read", &path))?)
}
