//! The machines of a run on several machines: finished, failed and running attempts of each.

use slackline_executor::store::journal::{Attempt, AttemptOutcome};
use slackline_executor::store::machine_slots::MachineSlots;
use slackline_executor::store::running_attempt::RunningAttempt;
use slackline_model::draft::MachineDraft;
use slackline_task::base::task_id::TaskId;

/// The state of a machine.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct MachineState {
    /// Its name.
    pub name: String,
    /// The number of its slots, of all kinds.
    pub slots: u32,
    /// Its estimated speed when the run started.
    pub speed: f64,
    /// The number of attempts running on it.
    pub at_work: u64,
    /// The number of tasks that it finished.
    pub done: u64,
    /// The number of attempts that failed on it.
    pub failed: u64,
    /// The number of attempts that were killed on it or lost with it.
    pub stopped: u64,
    /// The sum of the durations of the tasks that it finished, seconds.
    pub seconds: f64,
}

/// Each machine of a workload by name, with the figures of its attempts; empty for a single machine.
/// O(attempts · groups).
pub(super) fn machines(
    drafts: &[MachineDraft],
    attempts: &[Attempt],
    at_work: &[RunningAttempt],
) -> Vec<MachineState> {
    let places = MachineSlots::of(drafts);
    if !places.are_several() {
        return Vec::new();
    }
    let mut all: Vec<MachineState> = drafts.iter().flat_map(each).collect();
    let mut at = |id: TaskId, slot: u32, note: &dyn Fn(&mut MachineState)| {
        let name = places.at(id.phase, slot).map(|place| place.machine());
        all.iter_mut().filter(|machine| Some(&machine.name) == name.as_ref()).for_each(note);
    };
    for attempt in attempts {
        let seconds = attempt.micros() as f64 / 1e6;
        at(attempt.id, attempt.slot, &|machine| match attempt.ended {
            AttemptOutcome::Done(_) => {
                machine.done += 1;
                machine.seconds += seconds;
            }
            AttemptOutcome::Failed(_) => machine.failed += 1,
            AttemptOutcome::Killed | AttemptOutcome::Lost(_) => machine.stopped += 1,
        });
    }
    for one in at_work {
        if let Some(slot) = one.slot() {
            at(one.id, slot, &|machine| machine.at_work += 1);
        }
    }
    all
}

/// The machines of a group.
fn each(draft: &MachineDraft) -> impl Iterator<Item = MachineState> {
    let (name, count, speed, slots) = (draft.name.clone(), draft.count, draft.speed, draft.slots.total());
    (0..count).map(move |nth| {
        let name = if count > 1 { format!("{name}-{nth}") } else { name.clone() };
        MachineState { name, slots, speed, ..MachineState::default() }
    })
}

#[cfg(test)]
mod tests {
    use slackline_model::PhaseKind;
    use slackline_model::cluster::Slots;

    use slackline_task::process::spec::Outcome;

    use super::*;

    fn draft(name: &str, count: u32) -> MachineDraft {
        MachineDraft { name: name.into(), count, speed: 2.0, slots: Slots::Generic(2), rack: None }
    }

    fn attempt(slot: u32, ended: AttemptOutcome) -> Attempt {
        let id = TaskId { job: 0, phase: PhaseKind::Map, task: slot };
        Attempt {
            id,
            number: slot.into(),
            slot,
            segment: 0,
            start: 0,
            began: 1_000_000,
            end: 3_000_000,
            ended,
        }
    }

    #[test]
    fn attempts_are_counted_by_machine_and_outcome() {
        let drafts = [draft("a", 1), draft("b", 2)];
        let attempts = [
            attempt(0, AttemptOutcome::Done(Outcome::default())),
            attempt(3, AttemptOutcome::Failed("it broke".to_owned())),
            attempt(4, AttemptOutcome::Lost(None)),
            attempt(5, AttemptOutcome::Done(Outcome::default())),
        ];
        let states = machines(&drafts, &attempts, &[]);
        let counts = |k: usize| {
            let MachineState { name, done, failed, stopped, .. } = states[k].clone();
            (name, done, failed, stopped)
        };
        assert_eq!(counts(0), ("a".to_owned(), 1, 0, 0));
        assert_eq!(counts(1), ("b-0".to_owned(), 0, 1, 0));
        assert_eq!(counts(2), ("b-1".to_owned(), 1, 0, 1));
        assert_eq!((states[0].slots, states[0].speed), (2, 2.0));
        assert!(states[0].seconds >= 2.0);
        assert_eq!(machines(&[draft("local", 1)], &attempts, &[]), []);
    }
}
