//! Reports when the state or the prediction of a flow changes: finished, failed, past its deadline, predicted
//! to miss it. Several sinks share this module.

use std::path::PathBuf;

use slackline_executor::engine::event::RunEvent;
use slackline_model::Time;
use slackline_model::cost::is_late;
use slackline_task::base::task_id::TaskId;

use crate::run::{Forecast, Overview};

/// A change of a flow. Times are in seconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Turn {
    /// All its tasks are finished.
    Done {
        /// The completion time.
        at: f64,
        /// Whether it missed its deadline; `None` without one.
        late: Option<bool>,
    },
    /// One of its tasks failed for good, or it cannot run.
    Failed,
    /// Its deadline has passed, and it is not finished.
    DeadlinePassed,
    /// It is now predicted to miss its deadline.
    LikelyLate {
        /// The predicted completion time.
        at: f64,
    },
    /// It is again predicted to meet its deadline.
    LikelyInTime {
        /// The predicted completion time.
        at: f64,
    },
}

/// The reason why a flow failed: the last failure that a retry could not repair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cause {
    /// The job.
    pub job: String,
    /// The task; `None` if the flow could not start.
    pub task: Option<TaskId>,
    /// The error, in one or several lines.
    pub message: String,
    /// The file with the standard error of the attempt, if it wrote any.
    pub log: Option<PathBuf>,
}

impl Cause {
    /// The place and the error in one line: `job j, map 3: found exit status: 7`.
    pub fn sentence(&self) -> String {
        let task = self.task.map_or_else(String::new, |id| format!(", {} {}", id.phase.name(), id.task));
        format!("job {}{task}: {}", self.job, summary(&self.message))
    }
}

/// An error message in one line: its first line, and the last one, which is from the output of the command.
pub(super) fn summary(message: &str) -> String {
    let mut lines = message.lines();
    let first = lines.next().unwrap_or_default();
    let last = lines.next_back().map_or_else(String::new, |line| format!(" {line}"));
    format!("{first}{last}")
}

/// The state of a watched flow.
#[derive(Clone, Debug)]
pub struct WatchedFlow {
    /// Its name.
    pub id: String,
    /// Its deadline, seconds since the start of the run.
    pub deadline: Option<f64>,
    /// The reason why it failed, if it did and the reason is known.
    pub cause: Option<Cause>,
    left: usize,
    is_over: bool,
    is_past: bool,
    is_likely_late: bool,
}

/// Watches the flows of a run.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    flows: Vec<WatchedFlow>,
    /// By job: its flow and its name.
    jobs: Vec<(usize, String)>,
    /// How many flows had failed at the last event.
    failed: usize,
}

impl Turns {
    /// Watches the flows of a run whose tasks are about to start. Finished flows are not reported again.
    pub fn new(overview: &Overview) -> Self {
        let mut turns = Self::default();
        for (index, flow) in overview.flows.iter().enumerate() {
            let phases = || flow.jobs.iter().flat_map(|job| [job.maps, job.reduces]);
            let left = phases().map(|phase| phase.total - phase.done.min(phase.total)).sum();
            turns.jobs.extend(flow.jobs.iter().map(|job| (index, job.id.clone())));
            turns.flows.push(WatchedFlow {
                id: flow.id.clone(),
                deadline: flow.deadline,
                cause: None,
                left,
                is_over: left == 0,
                is_past: false,
                is_likely_late: false,
            });
        }
        turns
    }

    /// The flows.
    pub fn flows(&self) -> &[WatchedFlow] {
        &self.flows
    }

    /// The flow of a task.
    fn of(&self, id: TaskId) -> Option<usize> {
        self.jobs.get(id.job as usize).map(|(flow, _)| *flow)
    }

    /// Stores the reason why a flow fails.
    fn note_cause(&mut self, event: &RunEvent) {
        match event {
            RunEvent::AttemptFailed { task: id, message, log, is_final: true, .. } => {
                let Some((flow, job)) = self.jobs.get(id.job as usize) else { return };
                let (job, message, log) = (job.clone(), message.clone(), log.clone());
                self.flows[*flow].cause = Some(Cause { job, task: Some(*id), message, log });
            }
            RunEvent::FlowBlocked { flow, missing_job } => {
                let Some((other, job)) = self.jobs.get(*missing_job as usize) else { return };
                let message = format!("flow {flow} needs its output, which will never exist");
                let job = format!("{}/{job}", self.flows[*other].id);
                let cause = Cause { job, task: None, message, log: None };
                if let Some(flow) = self.flows.iter_mut().find(|watched| watched.id == *flow) {
                    flow.cause = Some(cause);
                }
            }
            _ => {}
        }
    }

    /// Processes an event. Returns the changes of flows, each with the index of the flow. O(flows).
    pub fn take(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) -> Vec<(usize, Turn)> {
        self.note_cause(event);
        let mut turns = Vec::new();
        let now = now.seconds();
        if let RunEvent::TaskFinished { task, .. } = event
            && let Some(index) = self.of(*task)
        {
            let flow = &mut self.flows[index];
            flow.left = flow.left.saturating_sub(1);
            if flow.left == 0 && !flow.is_over {
                flow.is_over = true;
                let late = flow.deadline.map(|deadline| is_late(now, deadline));
                turns.push((index, Turn::Done { at: now, late }));
            }
        }
        if let RunEvent::OutputLost { tasks, .. } = event {
            for index in tasks.iter().filter_map(|&id| self.of(id)).collect::<Vec<_>>() {
                self.flows[index].left += 1;
            }
        }
        let failed = forecast.failed();
        let is_failure = std::mem::replace(&mut self.failed, failed) != failed;
        let has_news = |flow: &WatchedFlow| !flow.is_over && (is_failure || flow.deadline.is_some());
        for (index, flow) in self.flows.iter_mut().enumerate().filter(|(_, flow)| has_news(flow)) {
            turns.extend(flow.turn(now, forecast).map(|turn| (index, turn)));
        }
        turns
    }
}

impl WatchedFlow {
    /// The change of an unfinished flow, if there is one.
    fn turn(&mut self, now: f64, forecast: &Forecast) -> Option<Turn> {
        if forecast.has_failed(&self.id) {
            self.is_over = true;
            return Some(Turn::Failed);
        }
        let deadline = self.deadline?;
        if is_late(now, deadline) {
            return (!std::mem::replace(&mut self.is_past, true)).then_some(Turn::DeadlinePassed);
        }
        let at = forecast.of(&self.id)?;
        let late = is_late(at, deadline);
        if late == std::mem::replace(&mut self.is_likely_late, late) {
            return None;
        }
        Some(if late { Turn::LikelyLate { at } } else { Turn::LikelyInTime { at } })
    }
}
