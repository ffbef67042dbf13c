//! A progress bar on a terminal, for whatever takes more than a second, and lines above it.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::out;

/// Nothing is drawn before this: short work needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tasks done by several simulations at a time.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    done: Vec<AtomicU64>,
    /// What is to be said once the work has taken long enough.
    held: Mutex<Vec<String>>,
}

impl Progress {
    /// A bar for `runs` simulations of `tasks` tasks each; none where standard error is no terminal.
    pub(crate) fn new(runs: usize, tasks: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{percent:>3} % {wide_bar} {human_pos} tasks, {eta} left");
            ProgressBar::with_draw_target(Some(tasks * runs as u64), ProgressDrawTarget::hidden())
                .with_style(style.expect("invariant: the template is valid"))
        });
        Self { bar, done: (0..runs).map(|_| AtomicU64::new(0)).collect(), held: Mutex::default() }
    }

    /// Says a line above the bar, which stays; nothing where there is no bar. What is said of short work is never shown.
    pub(crate) fn say(&self, line: impl FnOnce() -> String) {
        let Some(bar) = &self.bar else { return };
        let line = line();
        self.hold(|held| held.push(line));
        if bar.elapsed() >= PATIENCE {
            self.let_out(bar);
        }
    }

    /// Shows what was held, in the order in which it was said.
    fn let_out(&self, bar: &ProgressBar) {
        self.hold(|held| {
            if !held.is_empty() {
                bar.suspend(|| held.drain(..).for_each(out::talk));
            }
        });
    }

    /// The lines are whole whoever else failed while holding them.
    fn hold(&self, with: impl FnOnce(&mut Vec<String>)) {
        with(&mut self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    /// A count of the tasks of one simulation, of which nobody knows how many there will be.
    pub(crate) fn endless() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{human_pos} tasks in {elapsed}, {per_sec}");
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
                .with_style(style.expect("invariant: the template is valid"))
        });
        Self { bar, done: vec![AtomicU64::new(0)], held: Mutex::default() }
    }

    /// Simulation `run` has `done` tasks done.
    pub(crate) fn at(&self, run: usize, done: u64) {
        let Some(bar) = &self.bar else { return };
        if bar.elapsed() < PATIENCE {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            self.let_out(bar);
        }
        self.done[run].store(done, Ordering::Relaxed);
        bar.set_position(self.done.iter().map(|d| d.load(Ordering::Relaxed)).sum());
    }
}

/// Cells of a figure.
pub(crate) struct Cells(Option<ProgressBar>);

impl Cells {
    /// A bar; none where standard error is no terminal.
    pub(crate) fn new() -> Self {
        Self(std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{pos}/{len} {wide_bar} {eta} left");
            ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden())
                .with_style(style.expect("invariant: the template is valid"))
        }))
    }

    /// `done` of so many.
    pub(crate) fn at(&self, done: usize, of: usize) {
        let Some(bar) = &self.0 else { return };
        if bar.elapsed() < PATIENCE {
            return;
        }
        if bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    }
}

impl Drop for Cells {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
