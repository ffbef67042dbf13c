//! DMRS as a policy: job scheduler, task scheduler, machine queues (§V).
//!
//! The jobs are the ready jobs of all flows. When a job becomes ready, the policy solves the linear program
//! for the remaining work of all ready jobs, rebuilds the list from the present state of the slots, and gives
//! every slot a queue. A task goes to its machine when its slot is free and its phase can run, so a machine
//! of n slots counts as n machines. After a deviation from the plan, the policy checks the best slot of a
//! task again before its start. If it is another slot, the list is rebuilt.
//!
//! - `state`: the state of the policy, and how events change it;
//! - `ranking`: the order of the remaining work;
//! - `listing`: its list;
//! - `starting`: assigns tasks to free slots.

mod config;
mod listing;
mod ranking;
mod starting;
mod state;

use slackline_policy::{Action, Event, Policy, Style, View};

pub use config::{Config, Reoptimise};
pub use state::Dmrs;

impl Policy for Dmrs {
    fn name(&self) -> &'static str {
        self.config.variant.name()
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn style(&self) -> Style {
        Style::Placements
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        for event in events {
            self.note(event, view);
        }
        self.note_begun(view);
        // Not earlier: the ends so far were estimated with the previous speeds.
        self.speeds.update(view.estimates);
        if std::mem::take(&mut self.due.order) {
            self.sort(view);
            self.due.list |= !self.continue_list(view);
        }
        if self.due.list {
            self.replan(view, out);
        } else {
            self.extend(view);
        }
        self.start(view, out);
    }
}
