//! Advice on how a flow could meet its deadline, in sentences with the underlying numbers.

use crate::explain::{Deadline, SlotKindNeed, Verdict};

use super::{ExplainInput, NEGLIGIBLE};
use crate::report::number::{Unit, duration, number};

/// The share of slots that less urgent flows must hold for advice about the order.
const WORTH_AN_ORDER: f64 = 0.1;

/// A short title and a sentence.
type Advice = (&'static str, String);

impl ExplainInput<'_> {
    /// The advice, the most effective first; empty without a deadline or if it is met.
    pub(super) fn advice(&self) -> Vec<Advice> {
        let Some(deadline) = &self.explanation.deadline else { return Vec::new() };
        let mut lines = match deadline.verdict {
            Verdict::Met => return Vec::new(),
            Verdict::Failed => return vec![self.repair()],
            Verdict::Impossible => return vec![self.impossible(deadline)],
            Verdict::TooSmall => vec![self.too_small(deadline)],
            Verdict::Slots | Verdict::NotEnough => self.slots(deadline).into_iter().collect(),
        };
        if deadline.verdict != Verdict::TooSmall {
            lines.extend(self.order(deadline));
            lines.extend(self.sooner(deadline));
            lines.extend(self.start(deadline));
        }
        lines.extend(self.mean(deadline));
        lines
    }

    /// The time from the release to the deadline.
    fn allowed(&self, deadline: &Deadline) -> String {
        duration((deadline.at - self.explanation.released).max(0.0))
    }

    fn impossible(&self, deadline: &Deadline) -> Advice {
        let (least, allowed) = (duration(deadline.least), self.allowed(deadline));
        let why = format!(
            "its longest chain of jobs takes at least {least} with any number of slots, but its deadline allows \
             {allowed}: release it earlier, allow more time, or cut it into smaller tasks"
        );
        ("more slots do not help", why)
    }

    fn repair(&self) -> Advice {
        let why = self.cause().map_or_else(
            || "the flow failed; see the tasks that failed and their logs".to_owned(),
            |([flow, job], _)| format!("job {flow}/{job} failed; `slackline logs {flow} {job}` shows why"),
        );
        ("repair the failed job", why)
    }

    /// Whether a wait is too short, compared with the time of the flow, to give advice on it.
    fn is_negligible(&self, wait: f64) -> bool {
        wait < NEGLIGIBLE * (self.explanation.until - self.explanation.released)
    }

    fn too_small(&self, deadline: &Deadline) -> Advice {
        let (alone, allowed) = (duration(deadline.alone), self.allowed(deadline));
        let why = format!(
            "even alone on this cluster it takes at least {alone}, but its deadline allows {allowed}"
        );
        ("a larger cluster", why)
    }

    /// Whether unlimited slots would have been enough. For a job, the waits of its flow are unknown.
    fn slots(&self, deadline: &Deadline) -> Option<Advice> {
        let late = deadline.lateness.filter(|_| self.explanation.job.is_none())?;
        if let Some(why) = self.slow_starts() {
            return Some(("fewer jobs or faster starts", why));
        }
        let lost = self.explanation.waits.lost;
        if self.is_negligible(lost) {
            return None;
        }
        let (lost, late) = (duration(lost), duration(late));
        let gain = format!("with unlimited slots it finishes about {lost} earlier");
        Some(match deadline.verdict {
            Verdict::Slots => ("more slots", format!("{gain} and meets its deadline ({late} late now)")),
            _ => (
                "more slots are not enough",
                format!("{gain}, still {late} late: its own work takes too long"),
            ),
        })
    }

    /// Whether the start of ApplicationMasters took most of the time without a slot. If so, more slots do not
    /// help.
    fn slow_starts(&self) -> Option<String> {
        let starts = self.starts();
        (starts.ams > starts.none && !self.is_negligible(starts.ams)).then(|| {
            let [ams, containers] = [starts.ams, starts.containers].map(duration);
            format!("its ApplicationMasters took {ams} to start, and the first containers of its phases {containers}")
        })
    }

    /// Whether the flows that held the slots were more urgent.
    fn order(&self, deadline: &Deadline) -> Option<Advice> {
        let blocked = &self.explanation.blocked;
        let others: f64 = blocked.others.iter().map(|other| other.slot_seconds).sum();
        if others <= 0.0 || self.explanation.job.is_some() || self.is_negligible(self.explanation.waits.lost)
        {
            return None;
        }
        let share = deadline.less_urgent / others;
        Some(if share >= WORTH_AN_ORDER {
            let share = number(share, Unit::Percent);
            let why = format!(
                "{share} of the slots that others held while it wanted more belonged to flows with later deadlines or \
                 none: serve it before them"
            );
            ("another order", why)
        } else {
            let share = number(1.0 - share, Unit::Percent);
            let why = format!(
                "{share} of the slots that others held while it wanted more belonged to flows whose deadlines are not \
                 later, or by its own jobs"
            );
            ("other orders do not help", why)
        })
    }

    /// Whether its waits without a slot are longer than its lateness.
    fn sooner(&self, deadline: &Deadline) -> Option<Advice> {
        let (none, late) = (self.explanation.waits.none, deadline.lateness?);
        if self.explanation.job.is_some()
            || none < late
            || self.is_negligible(none)
            || self.slow_starts().is_some()
        {
            return None;
        }
        let word = self.say("was", "is");
        let why =
            format!("it {word} without a slot for {}; {} less is enough", duration(none), duration(late));
        Some(("slots sooner", why))
    }

    /// The latest start that meets the deadline with the slots that it got.
    fn start(&self, deadline: &Deadline) -> Option<Advice> {
        let (by, started) = (deadline.start_by?, self.explanation.started?);
        let (took, got) = (duration(self.explanation.completed? - started), self.say("got", "gets"));
        let head = format!("with the slots it {got} it takes {took} from its first task");
        Some(if by < self.explanation.released {
            let allowed = self.allowed(deadline);
            ("not just an earlier start", format!("{head}, but its deadline allows {allowed}"))
        } else {
            let word = self.say("started", "starts");
            let (by, at) = (self.at(by), self.at(started));
            ("an earlier start", format!("{head}, so that it must start by {by}; it {word} at {at}"))
        })
    }

    /// The mean number of slots that it needed.
    fn mean(&self, deadline: &Deadline) -> Option<Advice> {
        let (needed, held) = (self.say("needed", "needs"), self.say("held", "holds"));
        let need = |need: &SlotKindNeed| {
            let [of, had] = [need.needed, need.held].map(|slots| number(slots, Unit::Measure));
            format!("it {needed} {of} of the {} {} slots and {held} {had}", need.slots, need.slot_kind.name())
        };
        let needs: Vec<String> = deadline.needs.iter().map(need).collect();
        let why = format!("on average from release to deadline, {}", needs.join("; "));
        (!needs.is_empty()).then_some(("slots needed", why))
    }
}
