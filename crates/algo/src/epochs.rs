//! What policies that push targets share: when they plan, and which of their targets are news.

use slackline_model::{Instance, PhaseId, Span, Time};
use slackline_policy::{Action, Event, Grown};

/// At most one plan an epoch: the first at once, the next when something has changed and the epoch is over.
#[derive(Clone, Debug)]
pub(crate) struct Epochs {
    length: Span,
    /// When the next plan may be made.
    next: Time,
    /// Whether a wake-up at that time was asked for.
    waking: bool,
}

impl Epochs {
    /// Epochs of this length; 0 for a plan whenever something changes.
    pub(crate) fn new(length: Span) -> Self {
        Self { length, next: Time::ZERO, waking: false }
    }

    /// A wake-up has come.
    pub(crate) fn woken(&mut self) {
        self.waking = false;
    }

    /// Something has changed: whether to plan now. If not, the policy is woken when the epoch is over.
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

/// The targets pushed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets(Grown<PhaseId, f64>);

impl Targets {
    /// How many slots a phase was to hold.
    pub(crate) fn of(&self, phase: PhaseId) -> f64 {
        self.0[phase]
    }

    /// A phase of a flow that is over wants nothing any more.
    pub(crate) fn note(&mut self, event: &Event, instance: &Instance) {
        if let Some(flow) = event.over() {
            self.0.forget(instance.flow(flow).phases());
        }
    }

    /// How many slots a phase should hold; pushed if that has changed.
    pub(crate) fn push(&mut self, phase: PhaseId, slots: f64, out: &mut Vec<Action>) {
        if self.0[phase] != slots {
            self.0[phase] = slots;
            out.push(Action::Target { phase, slots });
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
    fn targets_are_pushed_when_they_change() {
        let (mut targets, mut out) = (Targets::default(), Vec::new());
        targets.push(PhaseId(2), 0.0, &mut out);
        targets.push(PhaseId(2), 1.5, &mut out);
        targets.push(PhaseId(2), 1.5, &mut out);
        assert_eq!(out, [Action::Target { phase: PhaseId(2), slots: 1.5 }]);
        assert_eq!(targets.of(PhaseId(2)), 1.5);
    }
}
