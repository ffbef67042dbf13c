//! The input and the output of making a figure.

use std::sync::atomic::{AtomicUsize, Ordering};

use slackline::parallel;

use crate::spec::Figure;

/// A file of a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its name, such as `fig2a.csv`.
    pub name: String,
    pub text: String,
}

/// The settings for making figures.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Seeds instead of the figure's own number of them.
    pub seeds: Option<u32>,
    /// Threads that work on a figure.
    pub threads: usize,
    /// Receives the number of finished cells of the figure, and the total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Receives messages on a figure's files, a line each.
    pub tell: &'a (dyn Fn(String) + Sync),
}

impl Context<'_> {
    /// Computes `work(0)`, …, `work(n - 1)` on the context's threads. The results are in this order. After a
    /// failure no further cell is started.
    ///
    /// # Errors
    /// The first failure in this order among the cells that were started.
    pub(crate) fn cells<T: Send, E: Send>(
        &self,
        n: usize,
        work: impl Fn(usize) -> Result<T, E> + Sync,
    ) -> Result<Vec<T>, E> {
        let done = AtomicUsize::new(0);
        parallel::map(n, self.threads, |k| {
            let result = work(k);
            (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, n);
            result
        })
    }

    /// The seeds that a figure is averaged over.
    pub fn seeds_of(&self, figure: &Figure) -> u32 {
        self.seeds.unwrap_or(figure.seeds)
    }
}
