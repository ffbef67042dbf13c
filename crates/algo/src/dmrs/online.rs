//! DMRS as a policy: job scheduler, task scheduler, machine queues (§V).
//!
//! The jobs are the ready jobs of all flows. When one becomes ready, the linear program is solved for
//! what is left of all of them, the list is rebuilt from what the slots do now, and every slot gets a
//! queue. A task is handed to its machine when its slot is free and its phase can run, so that a machine
//! of n slots is n machines. Before a task starts after something has not gone as planned, the best slot
//! for it is looked for again, and if it is another one, the list is rebuilt.
//!
//! - `state`: what the policy knows, and how events change it;
//! - `listing`: order and list of the remaining work;
//! - `starting`: free slots get tasks.

mod listing;
mod starting;
mod state;

use slackline_policy::{Action, Event, Policy, Style, View};

pub use state::{Config, Dmrs, Reoptimise};

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
        // Not before: what has ended was expected with the speeds estimated until now.
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
