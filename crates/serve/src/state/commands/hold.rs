//! The commands `hold` and `unhold`.

use crate::state::ServiceState;
use crate::state::auth::Principal;
use crate::state::commands::{Refusal, named};
use crate::state::record::Record;
use crate::state::submissions::Entry;

/// The message of a resume. It names the flows that were held separately, or says that nothing was held.
fn resumed(number: u64, flow: Option<&str>, entry: &Entry) -> String {
    let is_held = match flow {
        Some(flow) => entry.held || entry.held_flows.contains(flow),
        None => entry.held,
    };
    let alone: Vec<&String> = entry.held_flows.iter().collect();
    match (flow, alone.as_slice()) {
        _ if is_held => format!("{} is resumed", named(number, flow)),
        (None, [_, ..]) => {
            let (flows, are) =
                (slackline_model::names::listed(&alone), if alone.len() > 1 { "are" } else { "is" });
            format!("{flows} of {number} {are} resumed; its other flows were not held")
        }
        (Some(_), _) | (None, []) => format!("{} was not held", named(number, flow)),
    }
}

impl ServiceState {
    pub(super) fn hold(
        &mut self,
        principal: &Principal,
        number: u64,
        flow: Option<String>,
        held: bool,
    ) -> Result<String, Refusal> {
        let entry = self.own(principal, number, flow.as_deref())?;
        let message = if held {
            let what = named(number, flow.as_deref());
            format!("{what} is held: its running tasks finish, and no new one starts")
        } else {
            resumed(number, flow.as_deref(), entry)
        };
        for (flow, held) in self.holds(number, flow, held) {
            self.out.records.push(Record::Held { number, flow: flow.clone(), held });
            self.set_held(number, flow, held);
        }
        self.sort_in(number);
        let now = self.now();
        if let Some(run) = self.submissions.running_mut(number).filter(|_| !held) {
            run.end_hold(now);
            // A prediction made during the hold is not valid any more.
            run.flows.iter_mut().for_each(|flow| flow.expected = None);
            self.forecasts.next = self.clock.elapsed();
        }
        self.stand_all(number);
        self.event("changed", Some(number), None, message.clone());
        Ok(message)
    }

    /// The hold and resume steps of a command, in order. To resume one flow of a held submission, the
    /// submission is resumed and each other flow is held. The records name these flows, because a replay does
    /// not know them.
    fn holds(&self, number: u64, flow: Option<String>, held: bool) -> Vec<(Option<String>, bool)> {
        let whole = self.submissions.open.get(&number).filter(|entry| entry.held && !held);
        match (whole.and_then(Entry::running), &flow) {
            (Some(run), Some(flow)) => {
                let others = run.flows.iter().filter(|other| other.flow != *flow && !other.state.is_over());
                let others = others.map(|other| (Some(other.flow.clone()), true));
                std::iter::once((None, false)).chain(others).collect()
            }
            _ => vec![(flow, held)],
        }
    }

    pub(in crate::state) fn set_held(&mut self, number: u64, flow: Option<String>, held: bool) {
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        match (flow, held) {
            (None, true) => entry.held = true,
            (None, false) => {
                entry.held = false;
                entry.held_flows.clear();
            }
            (Some(flow), true) => drop(entry.held_flows.insert(flow)),
            (Some(flow), false) => drop(entry.held_flows.remove(&flow)),
        }
    }
}
