//! The positions of the jobs of a flow by id.

use std::collections::BTreeMap;

use crate::draft::JobDraft;

/// Finds jobs by id. Jobs mostly name other jobs in the order of the list, so a search first compares one job:
/// the one after the last result.
#[derive(Clone, Debug)]
pub struct JobPositions<'a> {
    jobs: &'a [JobDraft],
    by_id: BTreeMap<&'a str, usize>,
    next: usize,
}

impl<'a> JobPositions<'a> {
    /// O(jobs · log jobs).
    pub fn new(jobs: &'a [JobDraft]) -> Self {
        let by_id: BTreeMap<&str, usize> =
            jobs.iter().enumerate().rev().map(|(at, job)| (job.id.as_str(), at)).collect();
        Self { jobs, by_id, next: 0 }
    }

    /// Whether all ids differ.
    pub fn are_unique(&self) -> bool {
        self.by_id.len() == self.jobs.len()
    }

    /// The position of the first job with this id. O(log jobs).
    pub fn find(&mut self, id: &str) -> Option<usize> {
        let is_next = self.are_unique() && self.jobs.get(self.next).is_some_and(|job| job.id == id);
        let at = if is_next { self.next } else { *self.by_id.get(id)? };
        self.next = at + 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_found_in_any_order() {
        let named = |id: &str| JobDraft { id: id.to_owned(), ..JobDraft::default() };
        let jobs = ["c", "a", "b", "a"].map(named);
        let mut unique = JobPositions::new(&jobs[..3]);
        assert_eq!(
            ["c", "a", "b", "b", "c", "d", "a"].map(|id| unique.find(id)),
            [0, 1, 2, 2, 0, 9, 1].map(|at| (at < 9).then_some(at))
        );
        let mut twice = JobPositions::new(&jobs);
        assert_eq!(
            ["b", "a", "a"].map(|id| twice.find(id)),
            [Some(2), Some(1), Some(1)],
            "the first of equal ids"
        );
    }
}
