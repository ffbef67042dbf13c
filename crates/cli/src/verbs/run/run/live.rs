//! The display of a run: a view on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use slackline::PolicySpec;
use slackline::report::number::{counted, duration, instant, tasks_of_job};
use slackline::run::{
    Forecast, JobOverview, JobVerdict, LostOutput, Note, Overview, Progress, Reason, Request, RunEvent, Sink,
    StateOfRun, Stop, TaskId, Verdict, look,
};
use slackline_model::cost::is_late;
use slackline_model::{Span, Start, Time};
use slackline_task::base::system::on_stop_signal;

use crate::terminal::out;
use crate::terminal::watch::{Observation, Stream, ViewEnd, Viewer, Watch};

/// A pause between two sessions of a run that is at least this long is reported.
const LONG_PAUSE: Span = Span(600_000_000);

/// Which events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Errors alone.
    Quiet,
    /// Lines for important events.
    Usual,
    /// A line a task as well.
    Verbose,
}

/// A job as it is shown.
struct Job {
    name: String,
    flow: usize,
    maps: usize,
    reduces: usize,
}

/// Shows the run on the terminal.
pub(super) struct RunDisplay {
    /// The flow file, as messages call it.
    name: String,
    state: PathBuf,
    verbosity: Verbosity,
    /// When second 0 of the run is.
    start: Option<Start>,
    /// Jobs that are done and stay as they are.
    kept: u64,
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    /// How often tasks have failed in this session.
    failures: BTreeMap<TaskId, u16>,
    /// The policy of the view, if a view may be opened.
    viewed: Option<PolicySpec>,
    watch: Option<Watch>,
}

struct Flow {
    name: String,
    deadline: Option<f64>,
    total: usize,
    done: usize,
}

impl RunDisplay {
    pub(super) fn new(request: &Request, verbosity: Verbosity) -> Self {
        Self {
            name: request.name.clone(),
            state: request.state.clone(),
            verbosity,
            start: None,
            kept: 0,
            jobs: Vec::new(),
            flows: Vec::new(),
            failures: BTreeMap::new(),
            viewed: None,
            watch: None,
        }
    }

    /// With a view in which flows can be looked into, where standard error is a terminal.
    pub(super) fn with_view(mut self, request: &Request) -> Self {
        let is_usual = self.verbosity == Verbosity::Usual;
        self.viewed = (is_usual && Stream::Err.is_interactive()).then(|| request.policy.clone());
        self
    }

    /// Opens the view, which reads the run as `status` does.
    ///
    /// # Errors
    /// The system has no more threads.
    fn open_view(&mut self, policy: PolicySpec, stop: &Arc<Mutex<Stop>>) -> io::Result<()> {
        let (state, stop) = (self.state.clone(), Arc::clone(stop));
        let look = move || match look(&state) {
            Ok(Some(look)) => Observation::State(Box::new(StateOfRun::of(
                &look,
                Some(&policy),
                slackline_task::base::clock::unix_micros(),
            ))),
            _ => Observation::Nothing,
        };
        self.watch =
            Some(Watch::open(Stream::Err, Viewer::Owner, Box::new(look), move || request_stop(&stop))?);
        Ok(())
    }

    /// If the view was left there are lines again.
    fn leave_view(&mut self) {
        if self.watch.as_ref().is_some_and(|watch| watch.left() != ViewEnd::Open) {
            self.watch = None;
        }
    }

    /// Prints the decision on a job if it was finished and runs again.
    fn verdict(&mut self, job: &JobVerdict) {
        match &job.verdict {
            Verdict::Kept => self.kept += 1,
            Verdict::Run(reason) if !matches!(reason, Reason::New | Reason::Asked) => {
                out::talk(format_args!("{}/{} runs again: {reason}", job.flow, job.job));
            }
            _ => {}
        }
    }

    /// `nightly/extract map 3`; of a job with one task the name of the job.
    fn name(&self, id: TaskId) -> String {
        let job = &self.jobs[id.job as usize];
        if job.maps + job.reduces == 1 {
            return job.name.clone();
        }
        format!("{} {} {}", job.name, id.phase.name(), id.task)
    }

    /// Reports the end of a task, if the verbosity includes it.
    fn say_task(&self, now: Time, id: TaskId, what: &str) {
        if self.verbosity == Verbosity::Verbose {
            say(now, &format!("{} {what}", self.name(id)));
        }
    }

    /// When a flow is expected to be done, against its deadline.
    fn prospect(&self, flow: &Flow, forecast: &Forecast) -> String {
        let clock = |at: f64| instant(at, self.start.as_ref());
        let deadline = flow.deadline.map(|at| format!("deadline {}", clock(at)));
        let expected = match forecast.of(&flow.name) {
            _ if flow.done == flow.total => Some("done".to_owned()),
            _ if forecast.has_failed(&flow.name) => Some("failed".to_owned()),
            Some(at) if is_expected_late(flow, forecast) => Some(format!("about {}, late", clock(at))),
            Some(at) => Some(format!("about {}", clock(at))),
            None => None,
        };
        expected.into_iter().chain(deadline).collect::<Vec<_>>().join(", ")
    }
}

fn say(now: Time, line: &str) {
    out::talk(format_args!("{:>10}  {line}", duration(now.seconds())));
}

/// Whether a flow that is not done is expected to miss its deadline.
fn is_expected_late(flow: &Flow, forecast: &Forecast) -> bool {
    match (forecast.of(&flow.name), flow.deadline) {
        (Some(at), Some(deadline)) => flow.done < flow.total && is_late(at, deadline),
        _ => false,
    }
}

impl Sink for RunDisplay {
    fn note(&mut self, note: &Note<'_>) {
        if self.verbosity == Verbosity::Quiet && !matches!(note, Note::Unrunnable { .. }) {
            return;
        }
        match note {
            Note::Diagnostic(diagnostic) => out::talk(format_args!("{}: {diagnostic}", self.name)),
            Note::Warning(what) => out::warn(what),
            Note::UnknownZone(zone) => out::warn(format_args!(
                "TZ: found {zone:?}, expected the name of a time zone such as Europe/Berlin; clock times without a zone \
                 are read as UTC"
            )),
            Note::ClusterLeftOut => {
                out::talk(format_args!("{}: its cluster is ignored: the engine has its own", self.name));
            }
            Note::LateAlready { flow, when } => out::warn(format_args!(
                "flow {flow} is already late: its deadline, {when}, was before the start of the run; it runs anyway"
            )),
            Note::StartsOver => out::talk(format_args!(
                "{}: the earlier run is discarded, and all jobs run again",
                self.state.display()
            )),
            Note::Lost(LostOutput { flow, job, phase, task, problem, .. }) => {
                let phase = phase.name();
                out::warn(format_args!("{flow}/{job} {phase} {task} is no longer finished: {problem}"));
            }
            Note::Job(job) => self.verdict(job),
            Note::Resumed(recovered) => {
                out::talk(format_args!(
                    "resuming the run: {} finished, {} interrupted",
                    counted(recovered.done as u64, "task"),
                    counted(recovered.cut_short as u64, "attempt"),
                ));
                if recovered.paused >= LONG_PAUSE {
                    let pause = duration(recovered.paused.seconds());
                    out::talk(format_args!("no process ran it for {pause}; deadlines include this time"));
                }
            }
            Note::Unrunnable { flow, job, problem } => {
                out::warn(format_args!("flow {flow} fails: job {job}: {problem}"));
            }
            Note::Memory(by) if self.verbosity == Verbosity::Verbose => {
                out::talk(format_args!("the memory of commands is limited by {by}"));
            }
            Note::Waiting(what) => out::talk(what),
            Note::HistoryUnwritten(error) => {
                out::warn(format_args!(
                    "{error}; this run is missing from the history, but its outputs are complete"
                ));
            }
            Note::NothingLeft => out::talk("nothing is left to do; --again starts over"),
            _ => {}
        }
    }

    fn begin(&mut self, overview: &Overview, stop: Stop) {
        if self.kept > 0 {
            let (jobs, are) = (counted(self.kept, "job"), if self.kept == 1 { "is" } else { "are" });
            out::talk(format_args!("{jobs} {are} done already, and unchanged"));
        }
        for (index, flow) in overview.flows.iter().enumerate() {
            let job = |job: &JobOverview| Job {
                name: format!("{}/{}", flow.id, job.id),
                flow: index,
                maps: job.maps.total,
                reduces: job.reduces.total,
            };
            self.jobs.extend(flow.jobs.iter().map(job));
            let sum = |of: fn(&Progress) -> usize| -> usize {
                flow.jobs.iter().map(|job| of(&job.maps) + of(&job.reduces)).sum()
            };
            let (total, done) = (sum(|progress| progress.total), sum(|progress| progress.done));
            self.flows.push(Flow { name: flow.id.clone(), deadline: flow.deadline, total, done });
        }
        self.start.clone_from(&overview.start);
        let stop = Arc::new(Mutex::new(stop));
        if let Some(policy) = self.viewed.take() {
            out::warn_if(self.open_view(policy, &stop).err());
        }
        // A signal without a handler ends the program, and the next run clears up.
        out::warn_if(on_stop_signal(move || request_stop(&stop)).err());
    }

    fn happened(&mut self, now: Time, event: &RunEvent, forecast: &Forecast) {
        self.leave_view();
        match event {
            RunEvent::AttemptStarted(attempt) => self.say_task(now, attempt.id, "started"),
            RunEvent::AttemptProgress(attempt) => {
                let progress = attempt.progress.words();
                if !progress.is_empty() {
                    self.say_task(now, attempt.id, &progress);
                }
            }
            RunEvent::TaskFinished { task, seconds } => {
                self.say_task(now, *task, &format!("finished after {}", duration(*seconds)));
                let flow = self.jobs[task.job as usize].flow;
                self.flows[flow].done += 1;
            }
            RunEvent::AttemptFailed { task, message, log, other_runs, is_final } => {
                let log = log.as_ref().map_or_else(String::new, |log| format!(" (log: {})", log.display()));
                let which = if *other_runs {
                    "a speculative attempt; the first one continues".to_owned()
                } else {
                    let failures = self.failures.entry(*task).or_default();
                    *failures += 1;
                    format!("attempt {failures}{}", if *is_final { ", the last" } else { "" })
                };
                say(now, &format!("{} failed, {which}: {message}{log}", self.name(*task)));
            }
            RunEvent::AttemptStopped { task, .. } => self.say_task(now, *task, "stopped"),
            RunEvent::OutputLost { tasks, reason } => {
                for id in tasks {
                    let flow = self.jobs[id.job as usize].flow;
                    self.flows[flow].done -= 1;
                }
                let Some(id) = tasks.first() else { return };
                let count = counted(tasks.len() as u64, id.phase.name());
                let name = &self.jobs[id.job as usize].name;
                say(now, &format!("{name}: {count} rerun: {reason}"));
            }
            RunEvent::FlowBlocked { flow, missing_job } => {
                let from = &self.jobs[*missing_job as usize].name;
                say(now, &format!("{flow} failed: it reads from {from}, which failed"));
            }
            RunEvent::MachineDown { machine, reason } => {
                say(now, &format!("machine {machine} is down: {reason}; its tasks run elsewhere"));
            }
            RunEvent::MachineUp { machine, .. } => say(now, &format!("machine {machine} is up")),
            RunEvent::EngineUnreachable(Some(message)) => {
                say(now, &format!("the engine does not answer: {message}; retrying"));
            }
            RunEvent::EngineUnreachable(None) => say(now, "the engine answers again"),
            RunEvent::Warning(message) => say(now, message),
            RunEvent::ClockJumped(by) => {
                let by = *by as f64 / 1e6;
                let direction = if by < 0.0 { "back" } else { "forward" };
                say(
                    now,
                    &format!(
                        "the clock jumped {direction} by {}; deadlines keep their dates",
                        duration(by.abs())
                    ),
                );
            }
            RunEvent::JobFinished { .. } if self.verbosity == Verbosity::Quiet => {}
            RunEvent::JobFinished { job, skipped_records } => {
                let job = &self.jobs[*job as usize];
                let prospect = self.prospect(&self.flows[job.flow], forecast);
                let flow = if prospect.is_empty() { prospect } else { format!("; flow {prospect}") };
                let skipped = match *skipped_records {
                    0 => String::new(),
                    n => format!(", {} skipped", counted(n, "record")),
                };
                let tasks = tasks_of_job(job.maps as u64, job.reduces as u64);
                say(now, &format!("{} done ({tasks}{skipped}){flow}", job.name));
            }
            // Time passes, or something that needs no line.
            _ => {}
        }
    }
}

fn request_stop(stop: &Mutex<Stop>) {
    stop.lock().unwrap_or_else(PoisonError::into_inner)();
}

impl Drop for RunDisplay {
    fn drop(&mut self) {
        // Restores the terminal, and prints the held lines.
        self.watch = None;
    }
}
