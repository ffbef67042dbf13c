//! The tasks of a phase that still have to start, in pieces of consecutive tasks with the same attempt
//! number.

use std::collections::BTreeMap;

/// Consecutive tasks that are about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskRange {
    /// First task.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// The number of their attempt.
    pub attempt: u16,
}

/// Tasks to start. The lowest task nearly always starts first, so the lowest piece is stored separately and
/// shortened in place: O(1). Other operations are O(log pieces).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pending {
    /// The lowest piece.
    head: Option<TaskRange>,
    /// The other pieces: first task → (count, attempt).
    rest: BTreeMap<u32, (u32, u16)>,
}

impl Pending {
    /// The first attempt of tasks `0..count`.
    pub(crate) fn all(count: u32) -> Self {
        let head = (count > 0).then_some(TaskRange { first: 0, count, attempt: 0 });
        Self { head, rest: BTreeMap::new() }
    }

    /// The lowest piece.
    pub(crate) fn first(&self) -> Option<TaskRange> {
        self.head
    }

    /// The pieces in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskRange> + '_ {
        let rest = self.rest.iter().map(|(&first, &(count, attempt))| TaskRange { first, count, attempt });
        self.head.into_iter().chain(rest)
    }

    /// The last of the pieces that start with `task` or before it.
    fn before(&self, task: u32) -> Option<TaskRange> {
        let head = self.head.filter(|head| head.first <= task)?;
        let rest = self.rest.range(..=task).next_back();
        Some(rest.map_or(head, |(&first, &(count, attempt))| TaskRange { first, count, attempt }))
    }

    /// Up to `most` tasks of a piece, from `task` on; `None` if no piece has `task`.
    pub(crate) fn at(&self, task: u32, most: u32) -> Option<TaskRange> {
        let piece = self.before(task)?;
        let left = (piece.first + piece.count).checked_sub(task).filter(|&left| left > 0)?;
        Some(TaskRange { first: task, count: left.min(most), attempt: piece.attempt })
    }

    /// The first tasks of a piece among the `count` from `first` on.
    pub(crate) fn within(&self, first: u32, count: u32) -> Option<TaskRange> {
        if let Some(here) = self.at(first, count) {
            return Some(here);
        }
        let head = self.head.filter(|head| head.first > first);
        let next = || {
            let (&first, &(count, attempt)) = self.rest.range(first..).next()?;
            Some(TaskRange { first, count, attempt })
        };
        let next = head.or_else(next).filter(|next| next.first < first + count)?;
        Some(TaskRange { count: next.count.min(first + count - next.first), ..next })
    }

    /// Adds tasks that are not in any piece.
    pub(crate) fn insert(&mut self, piece: TaskRange) {
        let mut later = piece;
        match &mut self.head {
            None => {
                self.head = Some(piece);
                return;
            }
            Some(head) if piece.first < head.first => std::mem::swap(head, &mut later),
            Some(_) => {}
        }
        self.rest.insert(later.first, (later.count, later.attempt));
    }

    /// Removes tasks, which must all be in one piece.
    pub(crate) fn take(&mut self, take: TaskRange) {
        if let Some(head) = &mut self.head
            && (head.first, head.attempt) == (take.first, take.attempt)
            && take.count < head.count
        {
            (head.first, head.count) = (head.first + take.count, head.count - take.count);
            return;
        }
        let piece = self.before(take.first).filter(|piece| {
            piece.attempt == take.attempt && take.first + take.count <= piece.first + piece.count
        });
        let piece = piece.expect("invariant: taken tasks are pending");
        let front = TaskRange { count: take.first - piece.first, ..piece };
        let first = take.first + take.count;
        let back = TaskRange { first, count: piece.first + piece.count - first, attempt: piece.attempt };
        if self.head == Some(piece) {
            self.head = (front.count > 0).then_some(front);
            if back.count > 0 && self.head.is_none() {
                self.head = Some(back);
                return;
            }
            if self.head.is_none() {
                let next = self.rest.pop_first();
                self.head = next.map(|(first, (count, attempt))| TaskRange { first, count, attempt });
            }
        } else if front.count > 0 {
            self.rest.insert(front.first, (front.count, front.attempt));
        } else {
            self.rest.remove(&piece.first);
        }
        if back.count > 0 {
            self.rest.insert(back.first, (back.count, back.attempt));
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.head, self.rest) = (None, BTreeMap::new());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tasks(pending: &Pending) -> Vec<(u32, u16)> {
        let each = |piece: TaskRange| {
            (piece.first..piece.first + piece.count).map(move |task| (task, piece.attempt))
        };
        pending.iter().flat_map(each).collect()
    }

    proptest! {
        /// Tasks are taken and put back at random; a list of single tasks is the reference.
        #[test]
        fn agrees_with_a_list_of_tasks(steps in prop::collection::vec((0u32..20, 1u32..6, prop::bool::ANY), 1..60)) {
            let mut pending = Pending::all(20);
            let mut model: BTreeMap<u32, u16> = (0..20).map(|task| (task, 0)).collect();
            for (first, most, is_lost) in steps {
                if is_lost && !model.contains_key(&first) {
                    pending.insert(TaskRange { first, count: 1, attempt: 3 });
                    model.insert(first, 3);
                } else if let Some(taken) = pending.at(first, most) {
                    prop_assert_eq!((taken.first, taken.count <= most), (first, true));
                    pending.take(taken);
                    for task in first..first + taken.count {
                        prop_assert_eq!(model.remove(&task), Some(taken.attempt));
                    }
                } else {
                    prop_assert!(!model.contains_key(&first));
                    let next = model.range(first..first + most).next().map(|(&task, &attempt)| (task, attempt));
                    let within = pending.within(first, most).map(|piece| (piece.first, piece.attempt));
                    prop_assert_eq!(within, next);
                }
                let expected: Vec<(u32, u16)> = model.iter().map(|(&task, &attempt)| (task, attempt)).collect();
                prop_assert_eq!(tasks(&pending), expected);
                prop_assert_eq!(pending.first().map(|piece| piece.first), model.keys().next().copied());
            }
        }
    }
}
