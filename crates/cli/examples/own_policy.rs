//! The whole program with one more policy, which has a parameter.
//!
//! `cargo run -p slackline-cli --example own_policy -- compare examples/nightly.toml`

use std::process::ExitCode;

use slackline::model::params::{Param, Values};
use slackline::policy::{Action, Ask, Event, Grant, Policy, Style, View};
use slackline::{PolicyEntry, Registry};

/// Serves the phase with the least work left, or the most.
struct ShortestFirst {
    longest: bool,
}

impl Policy for ShortestFirst {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let ready = view.state.ready(ask.slot_kind);
        let can_run = ready.filter(|phase| view.runnable(*phase) > 0 && !ask.skip.contains(phase));
        let key = |phase| if self.longest { -view.work_left(phase) } else { view.work_left(phase) };
        let first = can_run.min_by(|a, b| key(*a).total_cmp(&key(*b)).then(a.cmp(b)));
        first.map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

/// What help, completions and the table of policies say of it.
pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    params: &[Param::new("order", "shortest", Values::Choice(&["shortest", "longest"]), "which comes first")],
    ..PolicyEntry::new("shortest-first", "the phase with the least work left first", |_, _, settings| {
        Box::new(ShortestFirst { longest: settings.choice("order") == "longest" })
    })
};

fn main() -> ExitCode {
    slackline_cli::main_with(Registry::standard().with(ENTRY).expect("no other policy has that name"))
}
