//! Requests to many targets, one after the other, within the time limit of a poll. The next poll continues
//! with the rest.

use std::time::Duration;

use crate::clock::Stopwatch;

/// Time limit of a poll for requests of one kind: for applications, ApplicationMasters, reports. A request
/// that has begun may take five seconds longer. The table is written after each poll, so a poll has to end
/// before the table expires.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(1);

/// The key at which the next round starts: the first one without time in the last round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundRobin<K>(Option<K>);

/// The keys of one round, within the time limit. The first always has time.
#[derive(Debug)]
pub(crate) struct PollRound<K> {
    keys: std::vec::IntoIter<K>,
    since: Stopwatch,
    lasts: Duration,
    is_first: bool,
}

impl<K> Default for RoundRobin<K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K: Copy + Ord> RoundRobin<K> {
    /// Starts a round of these sorted keys: no key waits for more rounds than there are other keys.
    pub(crate) fn round(&mut self, all: impl IntoIterator<Item = K>, lasts: Duration) -> PollRound<K> {
        let first = self.0.take();
        let (mut keys, before): (Vec<K>, Vec<K>) =
            all.into_iter().partition(|key| first.is_none_or(|first| *key >= first));
        keys.extend(before);
        PollRound { keys: keys.into_iter(), since: Stopwatch::start(), lasts, is_first: true }
    }
}

impl<K> RoundRobin<K> {
    /// Whether all keys had time in the last round.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.is_none()
    }
}

impl<K: Copy> PollRound<K> {
    /// The next key, if one is left and the time limit is not reached.
    pub(crate) fn next(&mut self, turn: &mut RoundRobin<K>) -> Option<K> {
        let key = self.keys.next()?;
        if std::mem::take(&mut self.is_first) || self.since.elapsed() < self.lasts {
            return Some(key);
        }
        turn.0 = Some(key);
        None
    }

    /// Ends the round; the next one starts with the remaining keys.
    pub(crate) fn stop(&mut self, turn: &mut RoundRobin<K>) {
        turn.0 = self.keys.next();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that have time in a round.
    fn round(turn: &mut RoundRobin<u32>, keys: &[u32], lasts: Duration) -> Vec<u32> {
        let mut round = turn.round(keys.iter().copied(), lasts);
        std::iter::from_fn(|| round.next(turn)).collect()
    }

    #[test]
    fn targets_without_a_request_are_first_in_the_next_round() {
        let (mut turn, none) = (RoundRobin::default(), Duration::ZERO);
        let mut rounds: Vec<Vec<u32>> = (0..4).map(|_| round(&mut turn, &[1, 2, 3], none)).collect();
        assert_eq!(rounds, [[1], [2], [3], [1]]);
        // The one whose turn it is has gone, and others have come.
        rounds = (0..3).map(|_| round(&mut turn, &[1, 3, 7], none)).collect();
        assert_eq!(rounds, [[3], [7], [1]]);
        assert_eq!(round(&mut turn, &[1, 3, 7], Duration::MAX), [3, 7, 1]);
        assert_eq!(round(&mut turn, &[1, 3, 7], Duration::MAX), [1, 3, 7]);
        assert!(round(&mut turn, &[], none).is_empty() && turn.is_complete());
        let mut stopped = turn.round([1, 3, 7], Duration::MAX);
        assert_eq!(stopped.next(&mut turn), Some(1));
        stopped.stop(&mut turn);
        assert_eq!(round(&mut turn, &[1, 3, 7], none), [3]);
    }
}
