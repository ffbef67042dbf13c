//! Quotas: what the running tasks of one user may hold together, and what they hold.
//!
//! This file alone says what a quota limits, how it is written, and when it keeps a task from starting.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::{Instance, PhaseId};

/// What the running tasks of a user may hold at a time. Written as `slots=8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The most slots.
    pub slots: u32,
}

impl FromStr for Quota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let slots = text.strip_prefix("slots=").and_then(|slots| slots.parse().ok());
        let slots = slots.filter(|&slots| slots > 0);
        slots.map(|slots| Self { slots }).ok_or_else(|| "expected slots=N, such as slots=8".to_owned())
    }
}

impl Display for Quota {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "slots={}", self.slots)
    }
}

/// A user with a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserQuota {
    /// The name of the user.
    pub user: String,
    /// What the tasks of the user may hold.
    pub quota: Quota,
}

/// What the running tasks of users with a quota hold.
#[derive(Clone, Debug, Default)]
pub struct QuotaUse {
    /// By user: slots.
    slots: BTreeMap<String, u32>,
}

impl QuotaUse {
    /// Tasks of a phase start.
    pub fn start(&mut self, instance: &Instance, phase: PhaseId, tasks: u32) {
        if let Some(UserQuota { user, .. }) = quota_of(instance, phase) {
            *self.slots.entry(user.clone()).or_default() += tasks;
        }
    }

    /// Tasks of a phase end.
    pub fn end(&mut self, instance: &Instance, phase: PhaseId, tasks: u32) {
        if let Some(UserQuota { user, .. }) = quota_of(instance, phase)
            && let Some(slots) = self.slots.get_mut(user)
        {
            *slots = slots.saturating_sub(tasks);
        }
    }

    /// How many more tasks of a phase may start. O(1) without a quota.
    pub fn room(&self, instance: &Instance, phase: PhaseId) -> u32 {
        let Some(UserQuota { user, quota }) = quota_of(instance, phase) else { return u32::MAX };
        quota.slots.saturating_sub(self.slots.get(user).copied().unwrap_or(0))
    }

    /// Why no task of a phase may start; `None` if one may.
    pub fn limit(&self, instance: &Instance, phase: PhaseId) -> Option<String> {
        let UserQuota { user, quota } = quota_of(instance, phase)?;
        let slots = if quota.slots == 1 { "1 slot".to_owned() } else { format!("{} slots", quota.slots) };
        (self.room(instance, phase) == 0)
            .then(|| format!("{user}'s tasks hold {slots}, the limit of one user (--quota {quota})"))
    }
}

/// The quota for a phase.
fn quota_of(instance: &Instance, phase: PhaseId) -> Option<&UserQuota> {
    instance.flow(instance.flow_of(phase)).quota.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;
    use crate::cluster::Slots;
    use crate::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

    #[test]
    fn quotas_are_written_as_they_are_read() {
        assert_eq!("slots=8".parse::<Quota>().map(|quota| quota.to_string()), Ok("slots=8".to_owned()));
        for wrong in ["", "8", "slots=", "slots=0", "slots=x", "slots=4294967296", "jobs=1"] {
            assert!(wrong.parse::<Quota>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_user_has_room_for_what_the_quota_leaves_over_all_flows() {
        let quota = |user: &str| UserQuota { user: user.to_owned(), quota: Quota { slots: 3 } };
        let flow = |id: &str, quota| {
            let map = Some(TasksDraft::Uniform { tasks: 4, seconds: 1.0 }.into());
            let jobs = vec![JobDraft { id: "j".to_owned(), map, ..JobDraft::default() }];
            FlowDraft { quota, ..FlowDraft::new(id, jobs) }
        };
        let flows = [("a", Some("ann")), ("b", Some("ann")), ("c", Some("bob")), ("d", None)];
        let machine =
            MachineDraft { name: "m".to_owned(), count: 1, speed: 1.0, slots: Slots::Generic(8), rack: None };
        let flows = flows.into_iter().map(|(id, user)| flow(id, user.map(quota))).collect();
        let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
        let mut used = QuotaUse::default();
        let room = |used: &QuotaUse| [0, 1, 2, 3].map(|phase| used.room(&instance, PhaseId(phase)));
        assert_eq!(room(&used), [3, 3, 3, u32::MAX]);
        used.start(&instance, PhaseId(0), 2);
        used.start(&instance, PhaseId(1), 1);
        used.start(&instance, PhaseId(3), 4);
        assert_eq!(room(&used), [0, 0, 3, u32::MAX]);
        let why = "ann's tasks hold 3 slots, the limit of one user (--quota slots=3)";
        assert_eq!(used.limit(&instance, PhaseId(1)).as_deref(), Some(why));
        assert_eq!(used.limit(&instance, PhaseId(2)), None);
        used.end(&instance, PhaseId(0), 2);
        assert_eq!(room(&used), [2, 2, 3, u32::MAX]);
    }
}
