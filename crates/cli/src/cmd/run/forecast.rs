//! When the flows of a run are going to be done: what is left, simulated from now on under the same policy, with
//! durations as finished tasks suggest them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use slackline::Chosen;
use slackline::simulate::{Options, simulate};
use slackline_local::{Happening, Session, TaskId, rest};
use slackline_model::draft::{PhaseDraft, TasksDraft};
use slackline_model::{Draft, Instance, Span, Time};

use super::Run;

/// At least this long between two simulations, and this many times as long as one takes, so that watching
/// takes next to nothing from the tasks.
const PAUSE: Span = Span(250_000);
const SHARE: u64 = 20;

/// A task that takes longer than expected is believed to have this fraction of what it took so far before it.
const OVERDUE: f64 = 0.1;

/// What becomes of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Prospect {
    /// Done, after so many seconds since the start of the run.
    Done(f64),
    /// Given up.
    Failed,
    /// Nothing is known.
    Unknown,
}

/// Looks ahead.
pub(super) struct Forecast {
    policy: Chosen,
    slowstart: f64,
    attempts_max: u16,
    /// The workload with the durations that were believed before the run.
    draft: Draft,
    /// By job: its flow.
    flows: Vec<String>,
    done: BTreeSet<TaskId>,
    /// Tasks at work: since when, and in how many attempts.
    running: BTreeMap<TaskId, (Time, u32)>,
    /// How often tasks have failed in this session.
    failures: BTreeMap<TaskId, u16>,
    failed: BTreeSet<String>,
    /// By job and phase: how many tasks are done, and the seconds they took together.
    took: BTreeMap<(u32, bool), (f64, f64)>,
    expected: BTreeMap<String, f64>,
    /// What is being simulated: since when, and where the answer comes.
    thinking: Option<(Time, Receiver<BTreeMap<String, f64>>)>,
    /// When to look again.
    next: Time,
}

impl Forecast {
    pub(super) fn new(args: &Run, session: &Session) -> Self {
        Self {
            policy: args.policy.clone(),
            slowstart: args.slowstart,
            attempts_max: args.attempts,
            draft: session.draft().clone(),
            flows: session.jobs().iter().map(|plan| plan.flow.clone()).collect(),
            done: session.done(),
            running: BTreeMap::new(),
            failures: BTreeMap::new(),
            failed: session.hindered().into_iter().map(str::to_owned).collect(),
            took: BTreeMap::new(),
            expected: BTreeMap::new(),
            thinking: None,
            next: Time::ZERO,
        }
    }

    /// What is expected of a flow.
    pub(super) fn of(&self, flow: &str) -> Prospect {
        if self.failed.contains(flow) {
            return Prospect::Failed;
        }
        self.expected.get(flow).map_or(Prospect::Unknown, |&at| Prospect::Done(at))
    }

    /// Takes in what happened, and looks ahead if it is time to.
    pub(super) fn note(&mut self, now: Time, what: Happening<'_>) {
        match what {
            Happening::Started(id) => {
                self.running.entry(id).or_insert((now, 0)).1 += 1;
            }
            Happening::Done(id, seconds) => {
                self.running.remove(&id);
                self.done.insert(id);
                let took = self.took.entry((id.job, id.reduce)).or_default();
                *took = (took.0 + 1.0, took.1 + seconds);
            }
            Happening::Failed { id, goes_on: false, .. } => {
                self.running.remove(&id);
                let failures = self.failures.entry(id).or_default();
                *failures += 1;
                if *failures >= self.attempts_max {
                    self.failed.insert(self.flows[id.job as usize].clone());
                }
            }
            Happening::Killed(id) | Happening::Failed { id, .. } => self.stop(id),
            Happening::JobDone { .. } | Happening::Tick => {}
        }
        self.take_in(now);
        if now >= self.next && self.thinking.is_none() {
            self.look_ahead(now);
        }
    }

    /// An attempt has ended, and another of the task may go on.
    fn stop(&mut self, id: TaskId) {
        if let Some((_, attempts)) = self.running.get_mut(&id) {
            *attempts -= 1;
            if *attempts == 0 {
                self.running.remove(&id);
            }
        }
    }

    /// What was being simulated, if that is done by now.
    fn take_in(&mut self, now: Time) {
        let Some((since, answer)) = &self.thinking else { return };
        match answer.try_recv() {
            Err(TryRecvError::Empty) => return,
            // A policy that cannot be simulated: the last forecast stands.
            Err(TryRecvError::Disconnected) => {}
            Ok(expected) => self.expected.extend(expected),
        }
        let pause = now.since(*since).0.saturating_mul(SHARE).max(PAUSE.0);
        self.next = Time(now.0.saturating_add(pause));
        self.thinking = None;
    }

    /// Simulates what is left on a thread of its own: a large workload must not keep the engine from its tasks.
    fn look_ahead(&mut self, now: Time) {
        let mut draft = rest(&self.believed(now), &self.done);
        draft.flows.retain(|flow| !self.failed.contains(&flow.id));
        for flow in &mut draft.flows {
            flow.release = flow.release.max(now.seconds());
        }
        let (policy, slowstart) = (self.policy.clone(), self.slowstart);
        let (sender, answer) = channel();
        std::thread::spawn(move || {
            // Nobody listens any more if the run has ended.
            let _ = completions(&draft, &policy, slowstart).map(|expected| sender.send(expected));
        });
        self.thinking = Some((now, answer));
    }

    /// The workload with the durations that are believed now: of a phase that has finished tasks, their mean;
    /// of others, what was believed before, in the unit that finished tasks of their kind suggest, and no less
    /// than what running tasks have taken already.
    fn believed(&self, now: Time) -> Draft {
        let mut draft = self.draft.clone();
        let units = [false, true].map(|reduce| self.unit(reduce));
        let mut longest: BTreeMap<(u32, bool), f64> = BTreeMap::new();
        for (id, &(start, _)) in &self.running {
            let so_far = longest.entry((id.job, id.reduce)).or_default();
            *so_far = so_far.max(elapsed(start, now));
        }
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        for (job, index) in jobs.zip(0..) {
            for (phase, reduce) in [(&mut job.map, false), (&mut job.reduce, true)] {
                let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { continue };
                let mean = self.took.get(&(index, reduce)).map(|(tasks, seconds)| seconds / tasks);
                let least = longest.get(&(index, reduce)).copied().unwrap_or(0.0);
                for (seconds, task) in seconds.iter_mut().zip(0..) {
                    *seconds = mean.unwrap_or((*seconds * units[usize::from(reduce)]).max(least));
                    if let Some(&(start, _)) = self.running.get(&TaskId { job: index, reduce, task }) {
                        let so_far = elapsed(start, now);
                        *seconds = (*seconds - so_far).max(so_far * OVERDUE);
                    }
                }
            }
        }
        draft
    }

    /// What finished tasks of a kind took over what was believed of them.
    fn unit(&self, reduce: bool) -> f64 {
        let believed = self.draft.flows.iter().flat_map(|flow| &flow.jobs).zip(0..);
        let (mut took, mut expected) = (0.0, 0.0);
        for (job, index) in believed {
            let phase = if reduce { &job.reduce } else { &job.map };
            let (Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }), Some(&(tasks, seconds))) =
                (phase, self.took.get(&(index, reduce)))
            else {
                continue;
            };
            took += seconds;
            expected += tasks * each.iter().sum::<f64>() / each.len().max(1) as f64;
        }
        if expected > 0.0 { took / expected } else { 1.0 }
    }
}

/// When each flow is done under a policy; `None` if it cannot be simulated.
fn completions(draft: &Draft, policy: &Chosen, slowstart: f64) -> Option<BTreeMap<String, f64>> {
    let instance = Instance::new(draft).ok()?;
    let options = Options { slowstart, ..Options::exact() };
    let schedule = simulate(&instance, policy, &options, None, None).ok()?.schedule;
    let done = schedule.flows.iter();
    Some(done.filter_map(|row| Some((instance.flow(row.flow).id.clone(), row.completion?))).collect())
}

fn elapsed(start: Time, now: Time) -> f64 {
    now.since(start.min(now)).seconds()
}
