//! The whole program with one more policy.
//!
//! `cargo run -p slackline-cli --example own_policy -- compare examples/nightly.toml`

use std::process::ExitCode;

use slackline::policy::{Action, Ask, Event, Grant, Policy, Style, View};
use slackline::{PolicyEntry, Registry};

/// Serves the phase with the least work left.
struct ShortestFirst;

impl Policy for ShortestFirst {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let ready = view.state.ready(ask.lane);
        let can_run = ready.filter(|phase| view.runnable(*phase) > 0 && !ask.skip.contains(phase));
        let shortest =
            can_run.min_by(|a, b| view.work_left(*a).total_cmp(&view.work_left(*b)).then(a.cmp(b)));
        shortest.map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

/// What help, completions and the table of policies say of it.
pub(crate) const ENTRY: PolicyEntry =
    PolicyEntry::new("shortest-first", "the phase with the least work left first", |_, _, _| {
        Box::new(ShortestFirst)
    });

fn main() -> ExitCode {
    slackline_cli::main_with(Registry::standard().with(ENTRY).expect("no other policy has that name"))
}
