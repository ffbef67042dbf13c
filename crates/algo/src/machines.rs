//! Which machine, by earliest completion: a slow slot is left free while faster ones, busy as they are, would
//! have done all the rest of the phase before the slow one had done one task.
//!
//! The first flow in the order of a policy gets the slots that become free. The rest of a phase is rated as
//! if it had the faster slots after the rest of all phases before it that wait for them too. Tasks of a phase
//! count as equally long.

use slackline_model::{PhaseId, Span, Time};
use slackline_policy::{Ask, Grant, SpeedClass, View};

use crate::estimated;

/// Slots that are faster than the one that is free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faster {
    pub(crate) slots: u32,
    /// Until they are free.
    pub(crate) busy: Span,
    /// What a task of the phase takes there.
    pub(crate) task: Span,
}

impl Faster {
    /// How many tasks they complete before one that starts now on a slot where it takes `slow`.
    pub(crate) fn sooner(self, slow: Span) -> u64 {
        // In microseconds, so that the result does not depend on the order of slots.
        let left = slow.0.saturating_sub(self.busy.0).saturating_sub(1);
        u64::from(self.slots) * left.checked_div(self.task.0).unwrap_or(0)
    }
}

/// For how long `capacity` slots of speed 1 are busy with tasks that would take one of them `work`
/// microseconds.
pub(crate) fn ahead(work: u128, capacity: f64) -> Span {
    Span((work as f64 / capacity) as u64)
}

/// What the rest of a phase, `tasks` of this size, adds to the work that is [`ahead`] of others.
pub(crate) fn claim(tasks: u32, size: Span) -> u128 {
    u128::from(tasks) * u128::from(size.0)
}

/// How many of `room` tasks may start on `free` slots, if faster ones take `sooner` before: as many as leave
/// no more than that.
pub(crate) fn willing(room: u32, free: u32, sooner: u64) -> u32 {
    u64::from(room).saturating_sub(sooner).min(u64::from(free)) as u32
}

/// For how much longer a task that began at `since` holds its slot: as estimated or, if it should have ended
/// before, for a tenth more of its time. What has just begun and takes no time ends now.
pub(crate) fn busy(since: Time, estimated: Span, now: Time) -> Span {
    let ends = since + estimated;
    if ends > now || since >= now { ends.since(now) } else { Span((now.since(since).0 / 10).max(1)) }
}

/// What was declined at this instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machines {
    declined: Vec<PhaseId>,
    /// What is left of those phases, by slot kind: they wait for faster slots.
    claims: [u128; 2],
}

impl Machines {
    /// Something happened: what was declined may be wanted now.
    pub(crate) fn look_again(&mut self) {
        self.declined.clear();
        self.claims = [0; 2];
    }

    /// The first phase that wants one of the slots that ask, and for how many tasks. `first` says which phase
    /// is first of those that may run, without those to be skipped. O(log) where all slots are of one speed;
    /// else O(batches that run) for each phase that declines, once an instant.
    pub(crate) fn grant(
        &mut self,
        ask: &Ask<'_>,
        view: &View<'_>,
        mut first: impl FnMut(&Ask<'_>) -> Option<PhaseId>,
    ) -> Option<Grant> {
        let classes = view.held.classes(ask.slot_kind);
        if classes.len() < 2 {
            return first(ask).map(|phase| Grant { phase, tasks: u32::MAX });
        }
        let (at, free) = offered(ask, view, classes)?;
        // What is declined on one machine may be wanted on another.
        if ask.machine.is_some() {
            self.look_again();
        }
        let mut skip = [ask.skip, self.declined.as_slice()].concat();
        loop {
            let phase = first(&Ask { skip: &skip, ..*ask })?;
            let claims = &mut self.claims[ask.slot_kind.index()];
            let tasks = wanted(phase, ask, view, &Offer { classes, at, free, claims: *claims });
            if tasks > 0 {
                return Some(Grant { phase, tasks });
            }
            *claims += claim(view.phase(phase).unstarted(), view.estimates.task[phase]);
            self.declined.push(phase);
            skip.push(phase);
        }
    }
}

/// The fastest class of which slots ask, and how many do.
fn offered(ask: &Ask<'_>, view: &View<'_>, classes: &[SpeedClass]) -> Option<(usize, u32)> {
    if let Some(machine) = ask.machine {
        let first = view.instance.cluster().machine_slots(ask.slot_kind, machine)?.first;
        let has = |class: &SpeedClass| class.slots.iter().any(|r| (r.first..r.end()).contains(&first));
        return Some((classes.iter().position(has)?, ask.slots));
    }
    let free = |(at, class): (usize, &SpeedClass)| Some((at, view.held.free_of(ask.slot_kind, class)));
    classes.iter().enumerate().filter_map(free).find(|&(_, free)| free > 0)
}

/// Slots of class `at`, of which that many are free while others wait for faster ones with that much work.
struct Offer<'a> {
    classes: &'a [SpeedClass],
    at: usize,
    free: u32,
    claims: u128,
}

/// How many tasks of a phase want the slots of an offer.
fn wanted(phase: PhaseId, ask: &Ask<'_>, view: &View<'_>, offer: &Offer<'_>) -> u32 {
    let &Offer { classes, at, free, claims } = offer;
    let rest = view.phase(phase).unstarted();
    if at == 0 || view.state.is_early(view.instance, phase) {
        return rest.min(free);
    }
    let size = view.estimates.task[phase];
    let on = |class: &SpeedClass| size.at_speed_nearest(class.speed);
    let slow = on(&classes[at]);
    let capacity = classes[..at].iter().map(|class| f64::from(class.len()) * class.speed).sum::<f64>();
    let ahead = ahead(claims, capacity);
    let idle = |class: &SpeedClass| Faster { slots: class.len(), busy: ahead, task: on(class) };
    let most: u64 = classes[..at].iter().map(|class| idle(class).sooner(slow)).sum();
    if willing(rest, free, most) == free {
        return free;
    }
    let mut sooner = 0;
    if ask.machine.is_some() {
        for class in &classes[..at] {
            let slots = view.held.free_of(ask.slot_kind, class);
            sooner += Faster { slots, ..idle(class) }.sooner(slow);
        }
    }
    for holding in view.held.running() {
        let place = holding.places[0].first;
        let is_in = |class: &&SpeedClass| class.slots.iter().any(|r| (r.first..r.end()).contains(&place));
        let of_slot_kind = view.instance.slot_kind_of(holding.phase) == ask.slot_kind;
        let (Some(since), Some(class)) =
            (holding.since, classes[..at].iter().find(is_in).filter(|_| of_slot_kind))
        else {
            continue;
        };
        let estimated = estimated::size(view, holding.phase, holding.first).at_speed_nearest(class.speed);
        let busy = Span(busy(since, estimated, view.now).0.saturating_add(ahead.0));
        sooner += Faster { slots: holding.count, busy, ..idle(class) }.sooner(slow);
    }
    willing(rest, free, sooner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(s: u64) -> Span {
        Span(s * 1_000_000)
    }

    #[test]
    fn a_slow_slot_is_for_what_faster_ones_would_not_have_done_before() {
        // A task takes 12 s on the slow slot and 3 s on two faster ones, which are free after 2 s: each is
        // done with three before, at 5, 8 and 11.
        let fast = Faster { slots: 2, busy: seconds(2), task: seconds(3) };
        assert_eq!(fast.sooner(seconds(12)), 6);
        // As late is not sooner.
        assert_eq!([fast.sooner(seconds(11)), fast.sooner(seconds(5)), fast.sooner(seconds(1))], [4, 0, 0]);
        assert_eq!([willing(6, 4, 6), willing(7, 4, 6), willing(20, 4, 6)], [0, 1, 4]);
        // A task with an estimate of zero runs on any slot.
        assert_eq!(Faster { task: Span::ZERO, ..fast }.sooner(seconds(12)), 0);
    }

    #[test]
    fn an_overdue_task_takes_a_tenth_more() {
        let now = Time(60_000_000);
        let after = |elapsed: Span, estimated: Span| busy(Time(now.0 - elapsed.0), estimated, now);
        assert_eq!([after(seconds(50), seconds(50)), after(Span(3), Span(2))], [seconds(5), Span(1)]);
        assert_eq!([after(seconds(50), seconds(52)), after(Span(0), Span(0))], [seconds(2), Span(0)]);
    }
}
