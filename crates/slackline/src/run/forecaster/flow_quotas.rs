//! The quotas of users in a simulation.

use std::collections::BTreeMap;

use slackline_executor::engine::backend::UserQuota;

/// The users of flows and their quotas.
#[derive(Clone, Debug, Default)]
pub(in crate::run) struct FlowQuotas {
    /// By position of a flow in the document: the number of its user.
    pub(super) users: Vec<Option<usize>>,
    /// By user.
    pub(super) slots: Vec<u32>,
}

impl FlowQuotas {
    /// The quotas for flows in document order: each with that of its user, if there is one.
    pub(super) fn new<'a>(flows: impl IntoIterator<Item = Option<&'a UserQuota>>) -> Self {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut users, mut slots) = (Vec::new(), Vec::new());
        for flow in flows {
            users.push(flow.map(|quota| {
                *numbers.entry(&quota.user).or_insert_with(|| {
                    slots.push(quota.slots);
                    slots.len() - 1
                })
            }));
        }
        Self { users, slots }
    }
}
