//! Everything that is printed or written: data to standard output or a file, remarks to standard error.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use slackline::atomic_file;
use slackline::report::View;
use slackline_local::surroundings::with_remedy;
use slackline_trace::Compression;

/// Writes data to a file, compressed if its name says so, or to standard output if none is named.
///
/// # Errors
/// Whatever the file system says; a closed pipe (see [`is_closed_pipe`]).
pub(crate) fn data(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = file else {
        let mut stdout = Named { to: BufWriter::new(io::stdout().lock()), refused: false };
        let written = content(&mut stdout).and_then(|()| stdout.flush());
        return match written {
            // What the content itself could not do, such as reading, says so in its own words.
            Err(error) if !stdout.refused => Err(error.into()),
            other => other.context("cannot write standard output"),
        };
    };
    let written = atomic_file::write(path, |out| match Compression::of_name(path) {
        Some(compression) => compression.write(out, content),
        None => content(out),
    });
    written.with_context(|| format!("{}: cannot be written", path.display()))
}

/// A writer that remembers whether it was what went wrong.
struct Named<W> {
    to: W,
    refused: bool,
}

impl<W: Write> Named<W> {
    fn noted<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.refused |= result.is_err();
        result
    }
}

impl<W: Write> Write for Named<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.noted(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.noted(flushed)
    }
}

/// What became of an output whose reader may have seen enough: that alone is no error, and does not change what the
/// exit code says.
///
/// # Errors
/// Any other.
pub(crate) fn unless_closed(written: anyhow::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        other => other,
    }
}

/// Writes text; see [`data`].
pub(crate) fn text(file: Option<&Path>, text: &str) -> anyhow::Result<()> {
    data(file, |out| out.write_all(text.as_bytes()))
}

/// How tables look there: as wide as the environment (`COLUMNS`) or the terminal says, in colour where standard output
/// is a terminal that wants colours (`NO_COLOR`). A file is always the same.
pub(crate) fn view(file: Option<&Path>) -> View {
    let usual = View::default();
    if file.is_some() {
        return usual;
    }
    let stdout = io::stdout();
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|&width| width > 0);
    let width = given.or_else(|| {
        let (width, _) = stdout.is_terminal().then(|| terminal_size::terminal_size_of(&stdout))??;
        Some(usize::from(width.0)).filter(|&width| width > 0)
    });
    let colour =
        stdout.is_terminal() && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
    View { width: width.unwrap_or(usual.width), colour, ..usual }
}

/// What is to be said when the terminal is free again; `None` while it is.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Lines that are held while something else is on the terminal, whoever says them.
fn lines() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, what is to be said on standard error is held.
pub(crate) fn hold() {
    lines().get_or_insert_default();
}

/// What is held.
pub(crate) fn held() -> Vec<String> {
    lines().clone().unwrap_or_default()
}

/// Says what is held, and from now on all at once.
pub(crate) fn let_out() {
    let held = lines().take();
    held.into_iter().flatten().for_each(talk);
}

/// Says something on standard error, or holds it while something else is there; if nobody listens, so be it.
pub(crate) fn talk(line: impl Display) {
    let mut held = lines();
    match held.as_mut() {
        Some(held) => held.extend(line.to_string().lines().map(str::to_owned)),
        None => drop(writeln!(io::stderr().lock(), "{line}")),
    }
}

/// Erases the line of the cursor of the terminal.
pub(crate) fn erase_line() {
    let _ = write!(io::stderr().lock(), "\r\x1b[K");
}

/// Writes a short line without an end, for [`erase_line`] to erase.
pub(crate) fn line(text: &str) {
    let _ = write!(io::stderr().lock(), "{text}");
}

/// Says what should be looked at before the results are believed.
pub(crate) fn warn(line: impl Display) {
    talk(format_args!("warning: {line}"));
}

/// The same where there is something to be said.
pub(crate) fn warn_if(line: Option<impl Display>) {
    line.into_iter().for_each(warn);
}

/// Says why there is no result: every line of the message after the word that editors look for.
pub(crate) fn error(error: &anyhow::Error) {
    for line in with_remedy(format!("{error:#}")).lines() {
        talk(format_args!("error: {line}"));
    }
}

/// Whether an error is only that the reader of a pipe has seen enough.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(closed))
}
