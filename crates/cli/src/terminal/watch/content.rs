//! The content of the live view: the state of a run as texts.

use slackline::report::number::{counted, duration, instants};
use slackline::run::{FlowState, FlowStatus, JobFigures, JobState, NamedAttempt, Stage, StateOfRun};
use slackline_model::cost::is_late;

/// The completion of a flow with a job of unknown duration, and the reason: of a service, which keeps a history, and of a run.
pub(crate) const UNKNOWN: &str = "unknown";
pub(crate) const NEVER_RAN: &str = "never ran";
pub(crate) const NO_HISTORY: &str = "no history";

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ViewContent {
    /// The run: its state directory, its running time, its policy.
    pub(crate) headline: String,
    pub(crate) done: usize,
    pub(crate) total: usize,
    /// Slots, and how many are held.
    pub(crate) slots: u32,
    pub(crate) held: usize,
    pub(crate) failed: u64,
    pub(crate) flows: Vec<Flow>,
    pub(crate) at_work: Vec<Task>,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flow {
    pub(crate) name: String,
    /// For a service: the name of the submission and its user.
    pub(crate) of: String,
    pub(crate) user: String,
    pub(crate) done: usize,
    pub(crate) total: usize,
    pub(crate) at_work: usize,
    pub(crate) failed: u64,
    pub(crate) deadline: String,
    /// When it was done or is going to be.
    pub(crate) completion: String,
    /// The prediction interval.
    pub(crate) between: String,
    pub(crate) verdict: &'static str,
    pub(crate) mood: Mood,
    pub(crate) jobs: Vec<Job>,
}

/// How a flow fares, for its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Nothing to be said.
    #[default]
    Plain,
    /// It is done as it should be.
    Good,
    /// It is likely to be late.
    Warning,
    /// It is late or has failed.
    Bad,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) after: String,
    /// Done and all, of maps and of reduces.
    pub(crate) phases: [(usize, usize); 2],
    pub(crate) at_work: usize,
    pub(crate) failed: u64,
    /// The mean duration of tasks.
    pub(crate) took: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Task {
    pub(crate) flow: String,
    pub(crate) text: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Event {
    /// The flow, if it is of one.
    pub(crate) flow: Option<String>,
    pub(crate) text: String,
}

/// The verdict on a flow in a word or two.
pub(crate) fn verdict(flow: &FlowState, now: f64) -> &'static str {
    match (flow.status, flow.is_late(now)) {
        (FlowStatus::Failed, _) => "failed",
        (FlowStatus::Finished, Some(true)) => "late",
        (FlowStatus::Finished, Some(false)) => "on time",
        (FlowStatus::Finished, None) => "done",
        (_, Some(true)) if flow.deadline.is_some_and(|deadline| now > deadline) => "late already",
        (_, Some(true)) => "likely late",
        (FlowStatus::Waiting, _) if flow.release > now => "not released",
        (FlowStatus::Waiting, _) => "waits",
        _ => "running",
    }
}

fn mood(flow: &FlowState, now: f64) -> Mood {
    match (flow.status, flow.is_late(now)) {
        (FlowStatus::Failed, _) | (FlowStatus::Finished, Some(true)) => Mood::Bad,
        (FlowStatus::Finished, _) => Mood::Good,
        (_, Some(true)) if flow.deadline.is_some_and(|deadline| now > deadline) => Mood::Bad,
        (_, Some(true)) => Mood::Warning,
        _ => Mood::Plain,
    }
}

/// Some moment of a flow.
type Moment<'a> = &'a dyn Fn(&FlowState) -> Option<f64>;

/// The deadline, the predicted and the actual completion of a flow as texts: clock times if the start
/// is known.
pub(crate) fn times<const N: usize>(state: &StateOfRun, columns: [Moment<'_>; N]) -> [Vec<String>; N] {
    columns.map(|of| instants(&state.flows.iter().map(of).collect::<Vec<_>>(), state.start.as_ref()))
}

impl From<&StateOfRun> for ViewContent {
    fn from(state: &StateOfRun) -> Self {
        let tasks = state.tasks();
        let stage = match state.stage {
            Stage::Running => format!("running for {}", duration(state.now)),
            Stage::Stopped => "stopped".to_owned(),
            Stage::Finished => format!("finished, took {}", duration(state.recorded)),
            _ => format!("ended with failures, took {}", duration(state.recorded)),
        };
        let policy = state.policy.as_deref().map_or_else(String::new, |policy| format!(", under {policy}"));
        Self {
            headline: format!("{}: {stage}{policy}", state.state.display()),
            done: tasks.done,
            total: tasks.total,
            slots: state.slots,
            held: state.at_work.len(),
            failed: state.flows.iter().map(FlowState::failed).sum(),
            flows: flows(state),
            at_work: state
                .at_work
                .iter()
                .map(|one| Task { flow: one.flow.clone(), text: running_task(state, one) })
                .collect(),
            events: events(state),
        }
    }
}

fn flows(state: &StateOfRun) -> Vec<Flow> {
    let [deadlines, completions, least, most] = times(
        state,
        [
            &|flow| flow.deadline,
            &|flow| flow.completion.or(flow.predicted),
            &|flow| flow.predicted_between.map(|[least, _]| least),
            &|flow| flow.predicted_between.map(|[_, most]| most),
        ],
    );
    let flow = |(k, flow): (usize, &FlowState)| {
        let tasks = flow.tasks();
        let between = || format!("{} to {}", least[k], most[k]);
        Flow {
            name: flow.id.clone(),
            done: tasks.done,
            total: tasks.total,
            at_work: flow.jobs.iter().map(|job| job.at_work).sum(),
            failed: flow.failed(),
            deadline: deadlines[k].clone(),
            completion: if flow.unknown { UNKNOWN.to_owned() } else { completions[k].clone() },
            between: match flow.predicted_between {
                _ if flow.unknown => NO_HISTORY.to_owned(),
                Some(_) => between(),
                None => String::new(),
            },
            verdict: verdict(flow, state.now),
            mood: mood(flow, state.now),
            jobs: flow.jobs.iter().map(job).collect(),
            ..Flow::default()
        }
    };
    state.flows.iter().enumerate().map(flow).collect()
}

fn job(job: &JobState) -> Job {
    let phases = job.figures.phases();
    let (seconds, done) =
        phases.iter().fold((0.0, 0), |(sum, n), phase| (sum + phase.seconds, n + phase.tasks.done));
    Job {
        name: job.figures.job.clone(),
        after: job.after.join(", "),
        phases: phases.map(|phase| (phase.tasks.done, phase.tasks.total)),
        at_work: job.at_work,
        failed: job.figures.failed(),
        took: if done > 0 { duration(seconds / done as f64) } else { String::new() },
    }
}

/// A running task in words.
pub(crate) fn running_task(state: &StateOfRun, one: &NamedAttempt) -> String {
    let NamedAttempt { flow, job, machine, attempt, .. } = one;
    let of = machine.as_ref().map_or_else(String::new, |machine| format!(" of {machine}"));
    let slot = attempt.slot().map_or_else(String::new, |slot| format!(", slot {slot}{of}"));
    let since = duration((state.now - one.since()).max(0.0));
    let is_its = |figures: &JobFigures| figures.flow == *flow && figures.job == *job;
    let mut figures = state.flows.iter().flat_map(|flow| &flow.jobs).map(|job| &job.figures);
    let has_one_task = figures.any(|figures| is_its(figures) && figures.tasks().total == 1);
    let id = attempt.id;
    let task = if has_one_task { String::new() } else { format!(" {} {}", id.phase.name(), id.task) };
    let progress = attempt.progress.words();
    let progress = if progress.is_empty() { progress } else { format!(", {progress}") };
    format!("{flow}/{job}{task}{slot}, for {since}{progress}")
}

/// The recorded ends of jobs and flows, and passed deadlines, the earliest first.
fn events(state: &StateOfRun) -> Vec<Event> {
    let mut events: Vec<(f64, Option<String>, String)> = Vec::new();
    for flow in &state.flows {
        let mut say = |at: f64, what: String| events.push((at, Some(flow.id.clone()), what));
        for job in &flow.jobs {
            let figures = &job.figures;
            let ended = figures.phases().iter().filter_map(|phase| phase.ended).reduce(f64::max);
            if let Some(at) = ended.filter(|_| figures.is_done()) {
                let tasks = counted(figures.tasks().total as u64, "task");
                say(at, format!("{}/{} done ({tasks})", flow.id, figures.job));
            }
            if figures.failed() > 0 {
                let failed = counted(figures.failed(), "attempt");
                say(ended.unwrap_or(state.now), format!("{}/{}: {failed} failed", flow.id, figures.job));
            }
        }
        if let Some(at) = flow.completion {
            let late = match flow.deadline {
                Some(deadline) if is_late(at, deadline) => ", late",
                Some(_) => ", on time",
                None => "",
            };
            say(at, format!("flow {} done{late}", flow.id));
        }
        let passed = flow.deadline.filter(|&deadline| state.now > deadline);
        if let Some(at) = passed.filter(|&at| flow.completion.is_none_or(|done| is_late(done, at))) {
            say(at, format!("the deadline of flow {} has passed", flow.id));
        }
    }
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    let event = |(at, flow, what)| Event { flow, text: format!("{:>10}  {what}", duration(at)) };
    events.into_iter().map(event).collect()
}
