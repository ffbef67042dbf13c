//! One line on a terminal that shows how far work is that takes more than a second, and messages above it.
//! Elsewhere nothing.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::terminal::clock::Stopwatches;
use crate::terminal::out;

/// Work that takes less shows no line, seconds.
const LEAST: f64 = 1.0;

const REDRAW: f64 = 0.2;

struct Line {
    watch: Stopwatches,
    drawn: Mutex<ProgressState>,
}

#[derive(Default)]
struct ProgressState {
    /// When the line was drawn last, seconds.
    last: Option<f64>,
    /// Messages that wait for the first drawing: short work shows none.
    held: Vec<String>,
}

impl Line {
    /// None where standard error is no terminal.
    fn new() -> Option<Self> {
        let is_terminal = std::io::stderr().is_terminal();
        let line = is_terminal.then(|| Self { watch: Stopwatches::new(1), drawn: Mutex::default() })?;
        line.watch.seconds(0);
        Some(line)
    }

    fn drawn(&self) -> MutexGuard<'_, ProgressState> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a message above the line.
    fn message(&self, message: String) {
        let mut drawn = self.drawn();
        drawn.held.push(message);
        if drawn.last.is_some() {
            out::erase_line();
            drawn.held.drain(..).for_each(out::talk);
        }
    }

    /// Draws the line if it is time to.
    fn draw(&self, text: impl FnOnce(f64) -> String) {
        let now = self.watch.seconds(0);
        let mut drawn = self.drawn();
        let is_due = drawn.last.is_none_or(|last| now - last >= REDRAW);
        if now >= LEAST && is_due {
            out::erase_line();
            drawn.held.drain(..).for_each(out::talk);
            out::line(&text(now));
            drawn.last = Some(now);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn().last.is_some() {
            out::erase_line();
        }
    }
}

/// Finished tasks of several simulations at a time.
pub(crate) struct Progress {
    line: Option<Line>,
    /// Tasks of all simulations, where their number is known.
    total: Option<u64>,
    done: Vec<AtomicU64>,
}

impl Progress {
    /// A line for `runs` simulations of `tasks` tasks each.
    pub(crate) fn new(runs: usize, tasks: u64) -> Self {
        let done = (0..runs).map(|_| AtomicU64::new(0)).collect();
        Self { line: Line::new(), total: Some(tasks.saturating_mul(runs as u64).max(1)), done }
    }

    /// A line for one simulation with an unknown number of tasks.
    pub(crate) fn endless() -> Self {
        Self { line: Line::new(), total: None, done: vec![AtomicU64::new(0)] }
    }

    /// Shows a message above the line; no message where there is no terminal.
    pub(crate) fn say(&self, message: impl FnOnce() -> String) {
        if let Some(line) = &self.line {
            line.message(message());
        }
    }

    /// Simulation `run` has finished `done` tasks.
    pub(crate) fn at(&self, run: usize, done: u64) {
        let Some(line) = &self.line else { return };
        self.done[run].store(done, Ordering::Relaxed);
        line.draw(|seconds| {
            let done: u64 = self.done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
            match self.total {
                Some(total) => format!("{:>3} % of {total} tasks, {seconds} s", done * 100 / total),
                None => format!("{done} tasks in {seconds:.0} s"),
            }
        });
    }
}

/// Finished cells of a figure.
pub(crate) struct Cells(Option<Line>);

impl Cells {
    pub(crate) fn new() -> Self {
        Self(Line::new())
    }

    /// `done` of `total` cells are finished.
    pub(crate) fn at(&self, done: usize, total: usize) {
        if let Some(line) = &self.0 {
            line.draw(|seconds| format!("{done} of {total}, {seconds:.0} s"));
        }
    }
}
