//! The command `cancel`.

use crate::state::ServiceState;
use crate::state::auth::Principal;
use crate::state::commands::{Refusal, named};
use crate::state::record::{CancelReason, Record};

impl ServiceState {
    pub(super) fn cancel(
        &mut self,
        principal: &Principal,
        number: u64,
        flow: Option<String>,
    ) -> Result<String, Refusal> {
        let entry = self.own(principal, number, flow.as_deref())?;
        let message = format!("{} is cancelled", named(number, flow.as_deref()));
        let reason = CancelReason::User;
        match flow {
            None => self.cancel_all(number, reason),
            Some(flow) => {
                entry.cancelled.insert(Some(flow.clone()), reason.clone());
                self.out.records.push(Record::Cancelled { number, flow: Some(flow.clone()), reason });
                self.cancel_flow(number, &flow);
            }
        }
        self.event("cancelled", Some(number), None, message.clone());
        Ok(message)
    }
}
