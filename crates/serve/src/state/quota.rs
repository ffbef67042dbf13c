//! The limit of slots that the tasks of one user may hold.

use crate::state::ServiceState;

impl ServiceState {
    /// Changes the number of slots that a user's tasks hold. Counted only if there is a quota.
    pub(super) fn hold_slots(&mut self, number: u64, by: i64) {
        if by == 0 || self.facts.limits.slots_by_user.is_none() {
            return;
        }
        let Some(user) = self.entries.get(&number).map(|entry| &entry.wanted.user) else { return };
        if let Some(held) = self.held.get_mut(user) {
            *held = held.saturating_add_signed(by);
            if *held == 0 {
                self.held.remove(&user.clone());
            }
        } else if let Ok(held) = u64::try_from(by) {
            self.held.insert(user.clone(), held);
        }
    }

    /// The reason to wait if the tasks of a user hold as many slots as the limit allows.
    pub(super) fn why_quota(&self, user: &str) -> Option<String> {
        let most = self.facts.limits.slots_by_user?;
        let held = self.held.get(user).copied().unwrap_or(0);
        let slots = if held == 1 { "1 slot".to_owned() } else { format!("{held} slots") };
        (held >= most.into())
            .then(|| format!("{user}'s tasks hold {slots}, as many as one user may (--slots-by-user)"))
    }
}
