//! Shared by policies that push targets: when they plan, and which of their targets have changed.

use slackline_model::{Instance, PhaseId, Span, Time};
use slackline_policy::{Action, Event, IdTable};

/// At most one plan per epoch: the first at once, the next after a change and the end of the epoch.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    length: Span,
    /// When the next plan may be made.
    next: Time,
    /// Whether a wake-up at that time was requested.
    waking: bool,
}

impl Epochs {
    /// Epochs of this length; 0 for a plan whenever something changes.
    pub(crate) fn new(length: Span) -> Self {
        Self { length, next: Time::ZERO, waking: false }
    }

    /// Handles a wake-up.
    pub(crate) fn woken(&mut self) {
        self.waking = false;
    }

    /// Records a change. Returns whether to plan now. If not, the policy is woken at the end of the epoch.
    pub(crate) fn begin(&mut self, now: Time, out: &mut Vec<Action>) -> bool {
        if now < self.next {
            if !std::mem::replace(&mut self.waking, true) {
                out.push(Action::WakeAt(self.next));
            }
            return false;
        }
        self.next = now + self.length;
        true
    }
}

/// The budget of a policy for searching the best of several orders: a number of steps for each event, saved
/// up to a limit.
///
/// A search for the best order takes many times as long as following one, and with much work little changes
/// from one plan to the next. So later events must pay for a search before the next one. Until then, the
/// policy computes only the order that won last, for the remaining work. Small workloads never reach the
/// limit.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    left: i64,
    each: i64,
    most: i64,
}

impl Allowance {
    /// `each` steps for each event, and at most `most` saved steps, which are there from the start.
    pub(crate) fn new(each: u32, most: u32) -> Self {
        Self { left: most.into(), each: each.into(), most: most.into() }
    }

    /// A budget for plans in epochs of this length; unlimited for plans at every event, which may be slow.
    pub(crate) fn of_epochs(length: Span, each: u32, most: u32) -> Self {
        if length > Span::ZERO {
            return Self::new(each, most);
        }
        Self { left: i64::MAX, each: 0, most: i64::MAX }
    }

    /// Adds the steps of `events` events.
    pub(crate) fn earn(&mut self, events: usize) {
        let earned = self.each.saturating_mul(i64::try_from(events).unwrap_or(i64::MAX));
        self.left = self.left.saturating_add(earned).min(self.most);
    }

    /// Whether the past searches are paid for.
    pub(crate) fn may_search(&self) -> bool {
        self.left > 0
    }

    /// Spends the steps of a search.
    pub(crate) fn spend(&mut self, steps: u64) {
        if self.most < i64::MAX {
            self.left = self.left.saturating_sub(i64::try_from(steps).unwrap_or(i64::MAX));
        }
    }
}

/// The candidate that wins most searches; later searches count more.
#[derive(Clone, Debug)]
pub(crate) struct Favourite<T> {
    wins: Vec<(T, f64)>,
}

/// The factor on the value of a win for each later search.
const FADING: f64 = 0.9;

impl<T> Default for Favourite<T> {
    fn default() -> Self {
        Self { wins: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Favourite<T> {
    /// Records a win of a candidate.
    pub(crate) fn won(&mut self, candidate: T) {
        self.wins.iter_mut().for_each(|(_, wins)| *wins *= FADING);
        match self.wins.iter_mut().find(|(known, _)| *known == candidate) {
            Some((_, wins)) => *wins += 1.0,
            None => self.wins.push((candidate, 1.0)),
        }
    }

    /// The candidate with the highest value; among equals, the one that won first.
    pub(crate) fn get(&self) -> Option<T> {
        let first_best = |best: (T, f64), next: &(T, f64)| if next.1 > best.1 { *next } else { best };
        let (&first, rest) = self.wins.split_first()?;
        Some(rest.iter().fold(first, first_best).0)
    }
}

/// The targets pushed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets(IdTable<PhaseId, Target>);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Target {
    Slots(f64),
    /// The level of its slot kind.
    Level,
}

impl Default for Target {
    fn default() -> Self {
        Self::Slots(0.0)
    }
}

impl Targets {
    /// The last target of a phase; `None` if that is the level of its slot kind.
    pub(crate) fn of(&self, phase: PhaseId) -> Option<f64> {
        match self.0[phase] {
            Target::Slots(slots) => Some(slots),
            Target::Level => None,
        }
    }

    /// The phases of a finished flow have no target any more.
    pub(crate) fn note(&mut self, event: &Event, instance: &Instance) {
        if let Some(flow) = event.over() {
            self.0.forget(instance.flow(flow).phases());
        }
    }

    /// Sets the target of a phase, and pushes it if it has changed.
    pub(crate) fn push(&mut self, phase: PhaseId, slots: f64, out: &mut Vec<Action>) {
        if self.0[phase] != Target::Slots(slots) {
            self.0[phase] = Target::Slots(slots);
            out.push(Action::Target { phase, slots });
        }
    }

    /// The target of a phase is the level of its slot kind; pushes that if it has changed.
    pub(crate) fn share(&mut self, phase: PhaseId, out: &mut Vec<Action>) {
        if self.0[phase] != Target::Level {
            self.0[phase] = Target::Level;
            out.push(Action::Share(phase));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plan_an_epoch_and_one_wake_up() {
        let mut epochs = Epochs::new(Span(10));
        let mut out = Vec::new();
        assert!(epochs.begin(Time(3), &mut out));
        assert!(!epochs.begin(Time(4), &mut out) && !epochs.begin(Time(12), &mut out));
        assert_eq!(out, [Action::WakeAt(Time(13))]);
        epochs.woken();
        assert!(epochs.begin(Time(13), &mut out));
        assert!(!epochs.begin(Time(22), &mut out));
        assert_eq!(out.len(), 2);
    }

    #[test]
    fn a_search_is_paid_for_before_the_next() {
        let mut allowance = Allowance::new(2, 10);
        assert!(allowance.may_search());
        allowance.spend(15);
        assert!(!allowance.may_search(), "5 are owed");
        allowance.earn(2);
        assert!(!allowance.may_search());
        allowance.earn(1);
        assert!(allowance.may_search());
        allowance.earn(1_000);
        allowance.spend(9);
        assert!(allowance.may_search());
        allowance.spend(1);
        assert!(!allowance.may_search(), "no more than 10 were saved");
        let mut endless = Allowance::of_epochs(Span::ZERO, 1, 1);
        endless.spend(u64::MAX);
        assert!(endless.may_search() && Allowance::of_epochs(Span(1), 1, 1).may_search());
    }

    #[test]
    fn the_favourite_wins_most_and_not_last() {
        let mut favourite = Favourite::default();
        assert_eq!(favourite.get(), None);
        for (winner, best) in [('a', 'a'), ('a', 'a'), ('b', 'a'), ('b', 'b'), ('b', 'b'), ('a', 'b')] {
            favourite.won(winner);
            assert_eq!(favourite.get(), Some(best));
        }
    }

    #[test]
    fn targets_are_pushed_when_they_change() {
        let (mut targets, mut out) = (Targets::default(), Vec::new());
        targets.push(PhaseId(2), 0.0, &mut out);
        targets.push(PhaseId(2), 1.5, &mut out);
        targets.push(PhaseId(2), 1.5, &mut out);
        assert_eq!(out, [Action::Target { phase: PhaseId(2), slots: 1.5 }]);
        assert_eq!(targets.of(PhaseId(2)), Some(1.5));
        out.clear();
        targets.share(PhaseId(2), &mut out);
        targets.share(PhaseId(2), &mut out);
        assert_eq!((out, targets.of(PhaseId(2))), (vec![Action::Share(PhaseId(2))], None));
    }
}
