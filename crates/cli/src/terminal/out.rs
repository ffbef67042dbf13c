//! All output of the program: data to standard output or a file, remarks to standard error.
//!
//! Names, messages and file contents from outside may hold characters that control a terminal. This file is
//! where they are escaped: texts, tables and remarks always, data where it goes to a terminal.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use slackline::atomic_file;
use slackline::report::View;
use slackline::report::table::escaped_but_styles;
use slackline_model::printable::{escaped, escaped_line};
use slackline_task::base::system::with_remedy;
use slackline_trace::Compression;

/// Writes data to a file, compressed if its name says so, or to standard output if none is named. A terminal
/// gets it escaped.
///
/// # Errors
/// Errors of the file system; a closed pipe (see [`is_closed_pipe`]).
pub(crate) fn data(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    if file.is_some() || !io::stdout().is_terminal() {
        return written(file, content);
    }
    written(file, |out| {
        let mut escaping = Escaping { to: out, held: Vec::new() };
        content(&mut escaping)?;
        escaping.end()
    })
}

/// Writes bytes as they are.
fn written(
    file: Option<&Path>,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = file else {
        let mut stdout = CheckedWriter { to: BufWriter::new(io::stdout().lock()), refused: false };
        let written = content(&mut stdout).and_then(|()| stdout.flush());
        return match written {
            // Errors of the content itself, such as reading, have their own messages.
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

/// A writer that escapes control sequences of terminals.
struct Escaping<'a> {
    to: &'a mut dyn Write,
    /// The first bytes of an incomplete character.
    held: Vec<u8>,
}

impl Escaping<'_> {
    fn end(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.held);
        self.to.write_all(escaped(&String::from_utf8_lossy(&rest)).as_bytes())
    }
}

impl Write for Escaping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        let is_begun =
            |at: &usize| std::str::from_utf8(&self.held[*at..]).is_err_and(|e| e.error_len().is_none());
        let last = (1..=3).filter_map(|n| self.held.len().checked_sub(n)).find(is_begun);
        let begun = self.held.split_off(last.unwrap_or(self.held.len()));
        self.end()?;
        self.held = begun;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A writer that remembers whether its output failed.
struct CheckedWriter<W> {
    to: W,
    refused: bool,
}

impl<W: Write> CheckedWriter<W> {
    fn check<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.refused |= result.is_err();
        result
    }
}

impl<W: Write> Write for CheckedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        self.check(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.to.flush();
        self.check(flushed)
    }
}

/// The result of an output whose reader may have closed the pipe. A closed pipe is no error and does not
/// change the exit code.
///
/// # Errors
/// Any other error.
pub(crate) fn unless_closed(written: anyhow::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if is_closed_pipe(&error) => Ok(()),
        other => other,
    }
}

/// Writes text and tables for people, also as CSV or JSON. They are escaped wherever they go: a file is read
/// on a terminal, too.
pub(crate) fn text(file: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let text = escaped_but_styles(text, file.is_none() && has_colours());
    written(file, |out| out.write_all(text.as_bytes()))
}

/// Draws text from the upper left corner of the terminal, and erases everything below it.
pub(crate) fn redraw(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    write!(stdout, "\x1b[H\x1b[2J{}", escaped_but_styles(text, has_colours()))?;
    stdout.flush()
}

/// Whether standard output is a terminal that wants colours.
fn has_colours() -> bool {
    let stdout = io::stdout();
    stdout.is_terminal() && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never
}

/// The layout of tables: as wide as the environment (`COLUMNS`) or the terminal, in colour if standard output
/// is a terminal with colours (`NO_COLOR`). The layout in a file is always the same.
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
    View { width: width.unwrap_or(usual.width), colour: has_colours(), ..usual }
}

/// Lines to print when the terminal is free again; `None` while it is.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Lines of all threads that are held while something else is on the terminal.
fn lines() -> MutexGuard<'static, Option<Vec<String>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds all lines for standard error from now on.
pub(crate) fn hold() {
    lines().get_or_insert_default();
}

pub(crate) fn held_lines() -> Vec<String> {
    lines().clone().unwrap_or_default()
}

/// Prints the held lines, and holds no more.
pub(crate) fn release_held() {
    let held = lines().take();
    held.into_iter().flatten().for_each(talk);
}

/// Prints a line on standard error, or holds it while the live view is shown. A closed stream is ignored.
pub(crate) fn talk(line: impl Display) {
    let line = line.to_string();
    let line = escaped(&line);
    let mut held = lines();
    match held.as_mut() {
        Some(held) => held.extend(line.lines().map(str::to_owned)),
        None => drop(writeln!(io::stderr().lock(), "{line}")),
    }
}

/// Erases the line of the cursor of the terminal.
pub(crate) fn erase_line() {
    let _ = write!(io::stderr().lock(), "\r\x1b[K");
}

/// Writes a short line without an end, for [`erase_line`] to erase.
pub(crate) fn line(text: &str) {
    let _ = write!(io::stderr().lock(), "{}", escaped_line(text));
}

/// Prints a warning.
pub(crate) fn warn(line: impl Display) {
    talk(format_args!("warning: {line}"));
}

/// Prints a warning if there is one.
pub(crate) fn warn_if(line: Option<impl Display>) {
    line.into_iter().for_each(warn);
}

/// Prints an error: each line of the message after the word that editors search for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_in_pieces_come_out_whole_and_what_a_terminal_obeys_escaped() {
        let text = "ab\u{1b}[2J ä漢🦀\u{9b} \u{202e}x\tz\n".as_bytes();
        let bytes = [text, &[0xff, b'y', 0xe6]].concat();
        for size in 1..bytes.len() {
            let mut out = Vec::new();
            let mut escaping = Escaping { to: &mut out, held: Vec::new() };
            bytes.chunks(size).for_each(|piece| escaping.write_all(piece).expect("it is memory"));
            escaping.end().expect("it is memory");
            let shown = String::from_utf8(out).expect("UTF-8");
            assert_eq!(shown, "ab\\u001b[2J ä漢🦀\\u009b \\u202ex\tz\n\u{fffd}y\u{fffd}", "pieces of {size}");
        }
    }
}
