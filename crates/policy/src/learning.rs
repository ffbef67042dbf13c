//! What a policy may believe if it knows nothing but finished tasks and a history (`--knowledge
//! learned`).
//!
//! **Paper**: FLEX §2.5 and §4.2: the time of each finished task is logged and the rest of its phase
//! extrapolated from the average seen so far; periodic jobs are seeded from past runs. A phase of which
//! neither says anything is taken for an average phase of its kind.

use std::collections::BTreeMap;

use slackline_model::id::TiVec;
use slackline_model::{Instance, PhaseId, PhaseKind, Span};

use crate::policy::Event;
use crate::view::Estimates;

/// Mean seconds of a task at speed 1 by phase, from earlier runs. A value, handed in at the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    seconds: BTreeMap<String, f64>,
}

impl History {
    /// Nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the mean task of the phase of that [`key`]; the last note counts.
    pub fn insert(&mut self, key: String, seconds: f64) {
        self.seconds.insert(key, seconds);
    }

    /// Mean seconds of a task of `phase`, if known.
    pub fn seconds(&self, instance: &Instance, phase: PhaseId) -> Option<f64> {
        self.seconds.get(&key(instance, phase)).copied()
    }
}

/// How a phase is found again in another run: `flow/job/map`, where every recurrence of a flow
/// (`nightly#3`) goes by the flow's name.
pub fn key(instance: &Instance, phase: PhaseId) -> String {
    let info = instance.phase(phase);
    let job = instance.job(info.job);
    let flow = &instance.flow(job.flow).id;
    let flow = match flow.rsplit_once('#') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => flow,
    };
    format!("{flow}/{}/{}", job.id, info.kind)
}

/// Length of a task of which nothing at all is known.
const UNKNOWN: Span = Span(1_000_000);

/// Tasks seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    count: u64,
    seconds: f64,
}

impl Seen {
    fn add(&mut self, count: u32, each: f64) {
        self.count += u64::from(count);
        self.seconds += each * f64::from(count);
    }

    fn mean(self) -> Option<Span> {
        (self.count > 0).then(|| Span::from_seconds_nearest(self.seconds / self.count as f64))
    }
}

/// Turns finished tasks into estimates.
#[derive(Clone, Debug)]
pub struct Learning {
    phases: TiVec<PhaseId, Seen>,
    /// Phases the history knew.
    known: TiVec<PhaseId, bool>,
    kinds: [Seen; 2],
}

impl Learning {
    /// What is believed before anything has run, and what will correct it.
    pub fn start(instance: &Instance, history: &History) -> (Self, Estimates) {
        let n = instance.phases().len();
        let mut learning = Self {
            phases: vec![Seen::default(); n].into(),
            known: vec![false; n].into(),
            kinds: [Seen::default(); 2],
        };
        let mut task: TiVec<PhaseId, Span> = vec![UNKNOWN; n].into();
        for phase in instance.phases().keys() {
            if let Some(seconds) = history.seconds(instance, phase) {
                task[phase] = Span::from_seconds_nearest(seconds);
                learning.known[phase] = true;
            }
        }
        (learning, Estimates { task })
    }

    /// Takes in the events of an instant. O(events).
    pub fn learn(&mut self, events: &[Event], instance: &Instance, estimates: &mut Estimates) {
        for event in events {
            match *event {
                Event::TasksDone { phase, count, machine, took } => {
                    let each = took.seconds() * instance.cluster().group_of(machine).speed;
                    self.phases[phase].add(count, each);
                    self.kinds[index(instance.phase(phase).kind)].add(count, each);
                    if let Some(mean) = self.phases[phase].mean() {
                        estimates.task[phase] = mean;
                    }
                }
                Event::PhaseReady(phase) if self.phases[phase].count == 0 && !self.known[phase] => {
                    let kind = self.kinds[index(instance.phase(phase).kind)];
                    estimates.task[phase] = kind.mean().unwrap_or(UNKNOWN);
                }
                _ => {}
            }
        }
    }
}

fn index(kind: PhaseKind) -> usize {
    match kind {
        PhaseKind::Map => 0,
        PhaseKind::Reduce => 1,
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, Repeat, TasksDraft};
    use slackline_model::{Draft, MachineId};

    use super::*;

    fn instance() -> Instance {
        let phase = |tasks, seconds| Some(TasksDraft::Uniform { tasks, seconds }.into());
        let job =
            JobDraft { id: "sum".into(), map: phase(4, 9.0), reduce: phase(2, 5.0), ..Default::default() };
        let repeat = Some(Repeat { every: 100.0, times: 2 });
        Instance::new(&Draft {
            machines: vec![MachineDraft {
                name: "node".into(),
                count: 1,
                speed: 2.0,
                slots: Slots::Universal(2),
                rack: None,
            }],
            flows: vec![FlowDraft { repeat, ..FlowDraft::new("nightly", vec![job]) }],
            ..Draft::default()
        })
        .unwrap()
    }

    #[test]
    fn finished_tasks_correct_a_history_and_help_the_unknown() {
        let instance = instance();
        let mut history = History::new();
        assert_eq!(key(&instance, PhaseId(2)), "nightly/sum/map");
        history.insert("nightly/sum/map".into(), 7.0);
        let (mut learning, mut estimates) = Learning::start(&instance, &history);
        let seconds =
            |estimates: &Estimates| estimates.task.iter().map(|task| task.seconds()).collect::<Vec<_>>();
        assert_eq!(seconds(&estimates), [7.0, 1.0, 7.0, 1.0]);
        let done = |phase, count, took| Event::TasksDone {
            phase: PhaseId(phase),
            count,
            machine: MachineId(0),
            took: Span::from_seconds_nearest(took),
        };
        // The machine is twice as fast as the one seconds are measured on.
        learning.learn(&[done(0, 1, 4.0), done(0, 3, 5.0)], &instance, &mut estimates);
        learning.learn(&[done(1, 2, 3.0)], &instance, &mut estimates);
        let ready = [Event::PhaseReady(PhaseId(2)), Event::PhaseReady(PhaseId(3))];
        learning.learn(&ready, &instance, &mut estimates);
        assert_eq!(seconds(&estimates), [9.5, 6.0, 7.0, 6.0]);
    }
}
