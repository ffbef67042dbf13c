//! Collects for the page of `--report` the rows of each policy of a comparison, as they leave the simulation.

use std::sync::{Mutex, PoisonError};

use slackline::compare::Compared;
use slackline::report::page::{Collector, Drawn};
use slackline::simulate::FinalRow;
use slackline_model::Instance;

/// The policies of one comparison, by their index in the list.
pub(super) struct PageRows<'a>(Vec<Mutex<State<'a>>>);

enum State<'a> {
    Waiting(&'a Instance),
    Running(Collector<'a>),
    Finished(Option<Drawn>),
}

impl<'a> PageRows<'a> {
    pub(super) fn new(instance: &'a Instance, policies: usize) -> Self {
        Self((0..policies).map(|_| Mutex::new(State::Waiting(instance))).collect())
    }

    /// A row of a policy has left its run.
    pub(super) fn take(&self, policy: usize, row: FinalRow<'_>) {
        let mut state = self.0[policy].lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Waiting(instance) = &*state {
            *state = State::Running(Collector::new(instance));
        }
        if let State::Running(collector) = &mut *state {
            collector.take(row);
        }
    }

    /// A policy has finished: only the data of the page is kept.
    pub(super) fn finish(&self, policy: usize, compared: &Compared) {
        let mut state = self.0[policy].lock().unwrap_or_else(PoisonError::into_inner);
        let collector = match std::mem::replace(&mut *state, State::Finished(None)) {
            State::Waiting(instance) => Collector::new(instance),
            State::Running(collector) => collector,
            State::Finished(_) => return,
        };
        let simulated = compared.result.as_ref().ok();
        *state = State::Finished(simulated.map(|simulated| collector.finish_simulation(simulated)));
    }

    /// The rows to draw of each policy; `None` for those without a schedule.
    pub(super) fn into_drawn(self) -> Vec<Option<Drawn>> {
        let drawn = |state: Mutex<State<'_>>| match state.into_inner().unwrap_or_else(PoisonError::into_inner)
        {
            State::Finished(drawn) => drawn,
            State::Waiting(_) | State::Running(_) => None,
        };
        self.0.into_iter().map(drawn).collect()
    }
}
