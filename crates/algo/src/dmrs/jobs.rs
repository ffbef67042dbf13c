//! A set of jobs that is read in order at each arrival.

use slackline_model::JobId;

use super::bits::Bits;

/// Jobs in the order of their ids, which is mostly the order in which they come.
#[derive(Clone, Debug, Default)]
pub(super) struct JobSet {
    ids: Vec<JobId>,
    members: Bits,
}

impl JobSet {
    /// Adds a job. Returns whether it is new.
    pub(super) fn insert(&mut self, id: JobId) -> bool {
        let place = self.ids.binary_search(&id);
        if let Err(place) = place {
            self.ids.insert(place, id);
            self.members.insert(id.0);
        }
        place.is_err()
    }

    pub(super) fn remove(&mut self, id: JobId) {
        if let Ok(place) = self.ids.binary_search(&id) {
            self.ids.remove(place);
            self.members.remove(id.0);
        }
    }

    pub(super) fn contains(&self, id: JobId) -> bool {
        self.members.contains(id.0)
    }

    /// The jobs in order.
    pub(super) fn ids(&self) -> &[JobId] {
        &self.ids
    }

    pub(super) fn members(&self) -> &Bits {
        &self.members
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(JobId) -> bool) {
        let Self { ids, members } = self;
        ids.retain(|&id| {
            if !is_kept(id) {
                members.remove(id.0);
            }
            members.contains(id.0)
        });
    }
}
