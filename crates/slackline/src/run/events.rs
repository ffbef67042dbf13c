//! Writes every event of a run as one line of JSON: the file of `--events`. Its schema is
//! `docs/schema/events.schema.json`.
//!
//! Each line is written whole and flushed at once, so that a program can follow the file. A write error does
//! not disturb the run; [`Events::problem`] returns it at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use slackline_executor::engine::event::RunEvent;
use slackline_executor::run::reuse::Verdict;
use slackline_executor::run::{JobVerdict, LostOutput};
use slackline_executor::store::journal::{Attempt, AttemptOutcome};
use slackline_executor::store::machine_slots::MachineSlots;
use slackline_model::Time;
use slackline_task::base::task_id::TaskId;

use super::{Ending, Forecast, Note, Overview, Request, Sink, Stop};
use crate::run::flow_events::{Turn, Turns};

/// Version of the line format.
const VERSION: u32 = 1;

/// A sink that writes events.
pub struct Events<W: Write> {
    out: W,
    /// The state directory, for the first line.
    state: PathBuf,
    policy: String,
    workload: String,
    is_resumed: bool,
    /// The verdict on each job.
    verdicts: Vec<JobVerdict>,
    /// The outputs of earlier sessions that are lost.
    lost: Vec<LostOutput>,
    now: f64,
    /// By job: its flow and its name.
    jobs: Vec<(String, String)>,
    /// Maps slots to machines.
    places: MachineSlots,
    turns: Turns,
    /// The number of attempts of a task that this session has started.
    attempts: BTreeMap<TaskId, u32>,
    /// The attempt that the engine recorded last; written with the next end of an attempt.
    recorded: Option<Attempt>,
    problem: Option<io::Error>,
}

impl<W: Write> Events<W> {
    /// Writes the events of `request` to `out`.
    pub fn new(out: W, request: &Request) -> Self {
        Self {
            out,
            state: request.state.clone(),
            policy: request.policy.spec().to_owned(),
            workload: request.name.clone(),
            is_resumed: false,
            verdicts: Vec::new(),
            lost: Vec::new(),
            now: 0.0,
            jobs: Vec::new(),
            places: MachineSlots::default(),
            turns: Turns::default(),
            attempts: BTreeMap::new(),
            recorded: None,
            problem: None,
        }
    }

    /// The first write error, if any. No line is written after it.
    pub fn problem(&self) -> Option<&io::Error> {
        self.problem.as_ref()
    }

    fn say(&mut self, event: &str, more: Value) {
        if self.problem.is_some() {
            return;
        }
        let mut line = Map::new();
        line.insert("event".to_owned(), event.into());
        line.insert("at".to_owned(), self.now.into());
        if let Value::Object(more) = more {
            line.extend(more);
        }
        let mut text = Value::Object(line).to_string();
        text.push('\n');
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.problem = written.err();
    }

    /// The fields that identify a task.
    fn task(&self, id: TaskId) -> Map<String, Value> {
        let (flow, job) = self.jobs.get(id.job as usize).cloned().unwrap_or_default();
        let mut said = Map::new();
        said.insert("flow".to_owned(), flow.into());
        said.insert("job".to_owned(), job.into());
        said.insert("phase".to_owned(), id.phase.name().into());
        said.insert("task".to_owned(), id.task.into());
        said.insert("attempt".to_owned(), self.attempts.get(&id).copied().unwrap_or(1).into());
        said
    }

    /// Writes the end of an attempt, with the engine's record of it.
    fn ended(&mut self, event: &str, id: TaskId, more: Value) {
        let mut said = self.task(id);
        if let Some(attempt) = self.recorded.take().filter(|attempt| attempt.id == id) {
            said.insert("number".to_owned(), attempt.number.into());
            let place = self.places.of_several(id.phase, attempt.slot);
            said.insert("slot".to_owned(), place.as_ref().map_or(attempt.slot, |(_, slot)| *slot).into());
            if let Some((machine, _)) = place {
                said.insert("machine".to_owned(), machine.into());
            }
            said.insert("seconds".to_owned(), (attempt.micros() as f64 / 1e6).into());
            if let AttemptOutcome::Done(mut outcome) = attempt.ended {
                // `output` is for the check of a resumed run, and not a counter.
                outcome.output = None;
                // All counters, under their names in the journal.
                said.insert("counters".to_owned(), serde_json::to_value(outcome).unwrap_or_default());
            }
        }
        if let Value::Object(more) = more {
            said.extend(more);
        }
        self.say(event, Value::Object(said));
    }

    fn turn(&mut self, index: usize, turn: Turn) {
        let (flow, deadline) =
            self.turns.flows().get(index).map(|flow| (flow.id.clone(), flow.deadline)).unzip();
        let deadline = deadline.flatten();
        match turn {
            Turn::Done { late, .. } => {
                self.say("flow_done", json!({ "flow": flow, "deadline": deadline, "late": late }));
            }
            Turn::Failed => {
                let cause = self.turns.flows().get(index).and_then(|flow| flow.cause.clone());
                let log = cause.as_ref().and_then(|cause| cause.log.as_deref().map(shown));
                let (job, message) = cause.map(|cause| (cause.job, cause.message)).unzip();
                let said = json!({ "flow": flow, "job": job, "message": message, "log": log });
                self.say("flow_failed", said);
            }
            Turn::DeadlinePassed => self.say("flow_late", json!({ "flow": flow, "deadline": deadline })),
            Turn::LikelyLate { at } | Turn::LikelyInTime { at } => {
                let late = matches!(turn, Turn::LikelyLate { .. });
                let said = json!({ "flow": flow, "predicted": at, "deadline": deadline, "late": late });
                self.say("flow_prediction", said);
            }
        }
    }
}

impl<W: Write> Events<W> {
    /// Writes the lost outputs of earlier sessions and the verdict on each job. Called after the first line,
    /// which identifies the run.
    fn say_verdicts(&mut self) {
        for LostOutput { flow, job, phase, task, problem, .. } in std::mem::take(&mut self.lost) {
            let phase = phase.name();
            let said = json!({ "flow": flow, "job": job, "phase": phase, "task": task, "attempt": 0, "message": problem });
            self.say("output_lost", said);
        }
        for JobVerdict { flow, job, verdict, .. } in std::mem::take(&mut self.verdicts) {
            match verdict {
                Verdict::Kept => {
                    let reason = "nothing has changed";
                    self.say("job_kept", json!({ "flow": flow, "job": job, "reason": reason }));
                }
                Verdict::Run(reason) => {
                    self.say("job_due", json!({ "flow": flow, "job": job, "reason": reason.to_string() }));
                }
                _ => {}
            }
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl<W: Write> Sink for Events<W> {
    fn note(&mut self, note: &Note<'_>) {
        match note {
            Note::Resumed(_) => self.is_resumed = true,
            Note::Unrunnable { flow, job, problem } => {
                self.say("job_refused", json!({ "flow": flow, "job": job, "message": problem }));
            }
            Note::Lost(lost) => self.lost.push((*lost).clone()),
            Note::Job(job) => self.verdicts.push((*job).clone()),
            Note::NothingLeft => {
                self.say_verdicts();
                self.say("nothing_left", json!({}));
            }
            _ => {}
        }
    }

    fn begin(&mut self, overview: &Overview, _: Stop) {
        let names = |flow: &super::FlowOverview| {
            flow.jobs.iter().map(|job| (flow.id.clone(), job.id.clone())).collect::<Vec<_>>()
        };
        self.jobs = overview.flows.iter().flat_map(names).collect();
        self.places = overview.places.clone();
        self.turns = Turns::new(overview);
        let tasks = |flow: &super::FlowOverview| {
            flow.jobs.iter().map(|job| job.maps.total + job.reduces.total).sum::<usize>()
        };
        let flow = |flow: &super::FlowOverview| json!({ "flow": flow.id, "deadline": flow.deadline, "tasks": tasks(flow) });
        let said = json!({
            "slackline": VERSION,
            "state": shown(&self.state),
            "workload": self.workload,
            "policy": self.policy,
            "start": overview.start.as_ref().map(ToString::to_string),
            "slots": overview.slots,
            "flows": overview.flows.iter().map(flow).collect::<Vec<_>>(),
        });
        self.say(if self.is_resumed { "run_resumed" } else { "run_began" }, said);
        self.say_verdicts();
    }

    fn happened(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) {
        self.now = now.seconds();
        match event {
            RunEvent::AttemptStarted(attempt) => {
                *self.attempts.entry(attempt.id).or_default() += 1;
                let said = Value::Object(self.task(attempt.id));
                self.say("task_started", said);
            }
            RunEvent::AttemptProgress(attempt) => {
                let mut said = self.task(attempt.id);
                said.extend(attempt.progress.fields());
                self.say("task_progress", Value::Object(said));
            }
            RunEvent::AttemptRecorded(attempt) => self.recorded = Some((**attempt).clone()),
            RunEvent::TaskFinished { task, seconds } => {
                self.ended("task_done", *task, json!({ "seconds": seconds }));
            }
            RunEvent::AttemptFailed { task, message, log, other_runs, is_final } => {
                let log = log.as_deref().map(shown);
                let said =
                    json!({ "message": message, "log": log, "other_runs": other_runs, "final": is_final });
                self.ended("task_failed", *task, said);
            }
            RunEvent::OutputLost { tasks, reason } => {
                for &id in tasks {
                    let mut said = self.task(id);
                    said.insert("message".to_owned(), reason.as_str().into());
                    self.say("output_lost", Value::Object(said));
                }
            }
            RunEvent::AttemptStopped { task, .. } => self.ended("task_killed", *task, json!({})),
            RunEvent::FlowBlocked { flow, missing_job } => {
                let (other, job) = self.jobs.get(*missing_job as usize).cloned().unwrap_or_default();
                let reads = format!("{other}/{job}");
                self.say("flow_blocked", json!({ "flow": flow, "reads": reads }));
            }
            RunEvent::MachineDown { machine, reason } => {
                self.say("machine_down", json!({ "machine": machine, "message": reason }));
            }
            RunEvent::MachineUp { machine, new_slots } => {
                if let Some(slots) = new_slots {
                    self.places.add(machine, *slots);
                }
                self.say("machine_up", json!({ "machine": machine }));
            }
            RunEvent::EngineUnreachable(message) => {
                self.say("engine_unreachable", json!({ "message": message }));
            }
            RunEvent::ClockJumped(by) => self.say("clock_jumped", json!({ "seconds": *by as f64 / 1e6 })),
            RunEvent::Warning(message) => self.say("warning", json!({ "message": message })),
            RunEvent::JobFinished { job, skipped_records } => {
                let (flow, job) = self.jobs.get(*job as usize).cloned().unwrap_or_default();
                self.say("job_done", json!({ "flow": flow, "job": job, "skipped": skipped_records }));
            }
            _ => {}
        }
        for (index, turn) in self.turns.take(now, event, forecast) {
            self.turn(index, turn);
        }
    }

    fn end(&mut self, ending: &Ending) {
        self.say("run_ended", json!({ "end": ending.name(), "message": ending.message() }));
    }
}
