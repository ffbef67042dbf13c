//! Why a flow waits, and the logs of its attempts, read from the journals of the runs.

use std::collections::BTreeMap;
use std::io;

use slackline::explain::{Explainer, TaskNow, Unfinished};
use slackline::names::unknown;
use slackline::report::explain::{ExplainInput, Open, OpenPhase, json};
use slackline::report::number::duration;
use slackline::report::table::View;
use slackline::run::logs::{Logs, LogsOf, TaskOf};
use slackline::run::{Attempt, RunInspection, SoFar, look, so_far_together};
use slackline_model::{FlowId, Instance, JobId, PhaseKind, WallTime};

use crate::api::{self, Explanation, FlowStatus, State, Submission};
use crate::service::handle::ServiceHandle;
use crate::state::series::RunKey;
use crate::state::{Filter, Refusal, RefusalKind};
use crate::{SECOND, timestamp};

/// A run with the current deadlines in place of those of its journal. No flow is released before it could
/// start.
fn as_now(mut look: RunInspection, shown: &Submission) -> RunInspection {
    let started = WallTime(look.head.started);
    let could_start = could_start(&look, shown).map_or(0, |at| at.since(started));
    for flow in &mut look.head.workload.flows {
        // Until then the flow did not wait for slots.
        flow.release = flow.release.max(could_start as f64 / SECOND as f64);
    }
    for flow in look.head.workload.flows.iter_mut().filter(|flow| flow.repeat.is_none()) {
        if let Some(seen) = shown.flows.iter().find(|seen| seen.flow == flow.id) {
            let seconds = |at| crate::wall_time(at).seconds_since(started);
            flow.deadline = seen.deadline.map(seconds);
        }
    }
    look
}

/// The time from which the flows of a submission could start. `None` if unknown: a submission resumed after a
/// restart may have started tasks earlier.
fn could_start(look: &RunInspection, shown: &Submission) -> Option<WallTime> {
    let began = shown.began.map(crate::wall_time)?;
    let first = look.attempts.iter().map(|attempt| WallTime(look.head.started) + attempt.start).min();
    first.is_none_or(|first| began <= first).then_some(began)
}

/// The most other submissions that an explanation reads, the latest first.
const BESIDE: usize = 200;

/// The width of the text of an explanation, columns.
const WIDTH: usize = 100;

/// A selection of attempt logs.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// The flow. Optional if the submission has only one.
    pub flow: Option<String>,
    pub job: String,
    /// `map-3`, `reduce-0`, `map` or `reduce`. `None`: all.
    pub task: Option<String>,
    /// Only this attempt of each task, from 1.
    pub attempt: Option<u32>,
    /// Only failed attempts.
    pub failed: bool,
}

impl ServiceHandle {
    /// Explains why a flow of a submission, or one of its jobs, waits or waited: which tasks of all
    /// submissions held the slots, and whether its user has reached the limit of slots. Reads journals, which
    /// takes a while.
    ///
    /// # Errors
    /// The submission, flow or job does not exist, or its journal does not exist yet or any more.
    pub fn explain(
        &self,
        number: u64,
        flow: Option<&str>,
        job: Option<&str>,
    ) -> Result<Explanation, Refusal> {
        let shown = self.shown(number)?;
        let flow = only(&shown, flow)?;
        let looks = self.looks(&shown)?;
        let so_far = so_far_together(&looks).map_err(|error| Refusal::invalid(error.to_string()))?;
        let SoFar { instance, mut schedule, .. } = so_far;
        let is_over = shown.state.is_over();
        let name = format!("{number}/{flow}");
        let Some((id, _)) = instance.flows().iter_enumerated().find(|(_, known)| known.id == name) else {
            return Err(Refusal::invalid(format!(
                "{flow} of {number} is not available any more: a later run has replaced its state directory"
            )));
        };
        let seen = shown.flows.iter().find(|one| one.flow == flow);
        // A flow may have ended while others of its submission have not.
        let is_flow_over = is_over || seen.is_some_and(|seen| seen.state.is_over());
        // An unfinished flow may still finish, and a cancelled flow has not failed.
        let has_failed = seen.is_some_and(|seen| seen.state == FlowStatus::Failed);
        schedule.flows.retain(|row| row.completion.is_some() || has_failed && row.flow == id);
        let job = job.map(|job| job_of(&instance, id, job)).transpose()?;
        let (began, now) = (began(&looks), self.now());
        let seconds = |at: WallTime| at.seconds_since(began);
        let (at_work, now) = (now_at_work(&instance, &self.recent.open(), seconds), seconds(now));
        // A held flow does not wait for slots.
        let is_held = seen.is_some_and(|seen| seen.state == FlowStatus::Held);
        let open_flow = |flow| flow == id && !is_flow_over && !is_held;
        let unfinished = Unfinished { at_work: &at_work, now, open: &open_flow };
        let explainer = Explainer::so_far(&instance, &schedule, &unfinished);
        let explanation = explainer.explain(id, job);
        let explanation =
            explanation.ok_or_else(|| Refusal::invalid(format!("found no flow {flow} in {number}")))?;
        let open = (!is_flow_over).then(|| open(&instance, id, &shown, &flow, now));
        let input = ExplainInput {
            instance: &instance,
            policy: &schedule.policy,
            plan: false,
            explanation: &explanation,
            flows: explainer.flow_times(),
            open: open.as_ref(),
            there: None,
        };
        let mut document: serde_json::Value =
            serde_json::from_str(&json(&input)).map_err(|error| Refusal::invalid(error.to_string()))?;
        let mut text = input.text(&View { width: WIDTH, ..View::default() });
        if !is_over {
            text.push_str(&self.at_work()?);
        }
        let could_start = looks.first().and_then(|(_, own)| could_start(own, &shown));
        if let Some(waited) = could_start.and_then(|began| waited(&shown, began)) {
            text.extend(["\n", &waited, "\n"]);
            document["waited"] = waited.into();
        }
        if let Some(why) = seen.and_then(|seen| why(&shown, seen)) {
            text.extend(["why now: ", &why, "\n"]);
            document["why"] = why.into();
        }
        Ok(Explanation { text, document })
    }

    /// Returns the logs of the attempts of a job.
    ///
    /// # Errors
    /// The submission, flow, job or task does not exist.
    pub fn logs(&self, number: u64, query: &LogQuery) -> Result<String, Refusal> {
        let shown = self.shown(number)?;
        let flow = only(&shown, query.flow.as_deref())?;
        let look = self.look(&shown)?;
        let task = query.task.as_deref().map(TaskOf::parse).transpose();
        let task = task.map_err(|expected| {
            Refusal::invalid(format!(
                "task: found {:?}, {expected}",
                query.task.as_deref().unwrap_or_default()
            ))
        })?;
        let of = LogsOf { flow: &flow, job: &query.job, task, attempt: query.attempt, failed: query.failed };
        let not_found = |message| Refusal::new(RefusalKind::NotFound, message);
        let logs = Logs::find(&look, of).map_err(not_found)?;
        let mut out = LogBuffer(Vec::new());
        // The text may have control characters. A client that prints it has to escape them.
        let said = logs.write(&mut out).map_err(|error| Refusal::invalid(error.to_string()))?;
        let mut text = String::from_utf8_lossy(&out.0).into_owned();
        if let Some(said) = said {
            text.push_str(&said);
            text.push('\n');
        }
        Ok(text)
    }

    fn shown(&self, number: u64) -> Result<Submission, Refusal> {
        self.query_and_wait(move |state, now| state.show(now, number))?
    }

    fn list(&self, filter: Filter) -> Result<Vec<Submission>, Refusal> {
        self.query_and_wait(move |state, now| state.list(now, &filter))
    }

    /// The current journal of the run of a submission.
    ///
    /// # Errors
    /// The submission has not started, or a later one of its name has replaced its state directory.
    fn look(&self, shown: &Submission) -> Result<RunInspection, Refusal> {
        let refused = |message| Refusal::new(RefusalKind::Conflict, message);
        let number = shown.number;
        let found = if has_begun(shown) {
            look(&self.paths.run(&RunKey::of_shown(shown)))
                .map_err(|error| Refusal::invalid(error.to_string()))?
        } else {
            None
        };
        let found =
            found.ok_or_else(|| refused(format!("{number} has not started, so it has no attempts")))?;
        let name = Some(shown.name.clone());
        let all = self.list(Filter { name, most: 4 * BESIDE, ..Filter::default() })?;
        match latest(&all).get(&RunKey::of_shown(shown)) {
            Some(&later) if later > number => Err(refused(format!(
                "the attempts of {number} are not available any more: {later}, which has the same name, has started since"
            ))),
            _ => Ok(found),
        }
    }

    /// The runs that existed while a submission did, its own first.
    fn looks(&self, shown: &Submission) -> Result<Vec<(String, RunInspection)>, Refusal> {
        let own = self.look(shown)?;
        let all = self.list(Filter { most: 4 * BESIDE, ..Filter::default() })?;
        let (latest, until) = (latest(&all), shown.ended);
        let was_there = |other: &&Submission| {
            !other.flows.is_empty()
                && other.ended.is_none_or(|ended| ended >= shown.submitted)
                && until.is_none_or(|until| other.submitted <= until)
        };
        let mut looks = vec![(shown.number.to_string(), as_now(own, shown))];
        for other in all.iter().filter(was_there).take(BESIDE) {
            // A state directory belongs to its latest submission.
            if other.number != shown.number
                && latest.get(&RunKey::of_shown(other)) == Some(&other.number)
                && let Ok(Some(look)) = look(&self.paths.run(&RunKey::of_shown(other)))
            {
                looks.extend(distinct(look, other, &all));
            }
        }
        Ok(looks)
    }

    /// The flows with running tasks, as text.
    fn at_work(&self) -> Result<String, Refusal> {
        let filter = Filter { states: vec![State::Running], most: 10_000, ..Filter::default() };
        let live = self.list(filter)?;
        let mut busy: Vec<(u64, String)> = Vec::new();
        for one in &live {
            for flow in one.flows.iter().filter(|flow| flow.running > 0) {
                busy.push((flow.running, format!("{} of {}/{}", flow.running, one.number, flow.flow)));
            }
        }
        busy.sort_by_key(|(tasks, _)| std::cmp::Reverse(*tasks));
        if busy.is_empty() {
            return Ok("\nno task is running now\n".to_owned());
        }
        let more = busy.len().saturating_sub(10);
        let named: Vec<String> = busy.into_iter().take(10).map(|(_, name)| name).collect();
        let rest = if more > 0 { format!(", and {more} more flows") } else { String::new() };
        Ok(format!("\ntasks running now: {}{rest}\n", named.join(", ")))
    }
}

/// Splits the attempts of a state directory by the submissions of its name that ran them. O(attempts ·
/// submissions of the name)
fn distinct(mut look: RunInspection, of: &Submission, all: &[Submission]) -> Vec<(String, RunInspection)> {
    let is_of_name = |one: &&Submission| one.name == of.name && one.number <= of.number && has_begun(one);
    let of_name: BTreeMap<u64, &Submission> =
        all.iter().filter(is_of_name).map(|one| (one.number, one)).collect();
    let mut attempts: BTreeMap<u64, Vec<Attempt>> = [(of.number, Vec::new())].into();
    for attempt in std::mem::take(&mut look.attempts) {
        let start = WallTime(look.head.started) + attempt.start;
        // Only one submission of a name runs at a time.
        let was_over = |one: &Submission| one.ended.is_some_and(|ended| crate::wall_time(ended) <= start);
        let owner = of_name.values().find(|one| !was_over(one)).map_or(of.number, |one| one.number);
        attempts.entry(owner).or_default().push(attempt);
    }
    let with = |(number, attempts): (u64, Vec<Attempt>)| {
        let shown = of_name.get(&number).copied().unwrap_or(of);
        let mut look = look.clone();
        look.attempts = attempts;
        (number.to_string(), as_now(look, shown))
    };
    attempts.into_iter().map(with).collect()
}

/// The start of the first of these runs.
fn began(looks: &[(String, RunInspection)]) -> WallTime {
    WallTime(looks.iter().map(|(_, look)| look.head.started).min().unwrap_or(0))
}

/// The running tasks of these runs. The journals do not have them, because the tasks are processes of the
/// service. O(flows + attempts · (log flows + jobs of the flow)).
fn now_at_work(
    instance: &Instance,
    attempts: &[api::Attempt],
    seconds: impl Fn(WallTime) -> f64,
) -> Vec<TaskNow> {
    let flows: BTreeMap<&str, FlowId> =
        instance.flows().iter_enumerated().map(|(id, flow)| (flow.id.as_str(), id)).collect();
    let task = |attempt: &api::Attempt| {
        let flow = *flows.get(format!("{}/{}", attempt.number, attempt.flow).as_str())?;
        let mut jobs = instance.flow(flow).jobs().map(|job| instance.job(job));
        let job = jobs.find(|job| job.id == attempt.job)?;
        let is_map = attempt.phase == PhaseKind::Map.name();
        let phase = if is_map { job.map } else { job.reduce };
        Some(TaskNow { phase: phase?, since: seconds(crate::wall_time(attempt.start)) })
    };
    attempts.iter().filter_map(task).collect()
}

/// The progress of the phases of an unfinished flow.
fn open(instance: &Instance, id: FlowId, shown: &Submission, flow: &str, now: f64) -> Open {
    let mut open = Open { now, is_at_work: true, ..Open::default() };
    let Some(seen) = shown.flows.iter().find(|seen| seen.flow == flow) else { return open };
    open.why.clone_from(&seen.why);
    for job in instance.flow(id).jobs() {
        let of = instance.job(job);
        let Some(seen) = seen.jobs.iter().find(|seen| seen.job == of.id) else { continue };
        for (phase, counts) in [(of.map, seen.maps), (of.reduce, seen.reduces)] {
            let Some(phase) = phase else { continue };
            let [done, at_work, total] = [counts.done, counts.running, counts.tasks].map(|n| n as usize);
            open.phases.insert(phase, OpenPhase { done, at_work, total, failed: 0 });
        }
    }
    open
}

/// Whether tasks of the submission could run. Its tasks are known only after its inputs are looked up.
fn has_begun(one: &Submission) -> bool {
    one.flows.iter().any(|flow| flow.tasks > 0)
}

/// The latest started submission of each state directory, which owns it.
fn latest(all: &[Submission]) -> BTreeMap<RunKey, u64> {
    let mut latest = BTreeMap::new();
    for one in all.iter().filter(|one| has_begun(one)) {
        let number = latest.entry(RunKey::of_shown(one)).or_insert(one.number);
        *number = one.number.max(*number);
    }
    latest
}

/// The text of logs, bounded by `LOGS_MOST`.
struct LogBuffer(Vec<u8>);

/// The most bytes of [`LogBuffer`].
const LOGS_MOST: usize = 64 << 20;

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LOGS_MOST {
            let most = LOGS_MOST >> 20;
            return Err(io::Error::other(format!(
                "found more than {most} MiB of logs; select one task or one attempt"
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long a submission waited before its flows could start, if that is at least 1 s.
fn waited(shown: &Submission, began: WallTime) -> Option<String> {
    let seconds = began.seconds_since(crate::wall_time(shown.submitted));
    (seconds >= 1.0).then(|| {
        format!(
            "its flows could start at {}, {} after its submission; before that, it was held or waited for files, for a submission of the same name, or in the queue, which does not count as waiting for slots",
            timestamp(began),
            duration(seconds)
        )
    })
}

/// Why no more tasks of a flow start, or why it has ended without finishing.
fn why(of: &Submission, flow: &api::Flow) -> Option<String> {
    match flow.state {
        FlowStatus::Cancelled if of.state == State::Rejected => {
            let why = of.why.as_deref().unwrap_or("it was predicted to miss a deadline");
            Some(format!("it was rejected: {why}"))
        }
        FlowStatus::Cancelled => Some("it was cancelled".to_owned()),
        FlowStatus::Failed => flow.cause.clone(),
        _ => flow.why.clone(),
    }
}

/// The selected flow, or the only flow of the submission.
fn only(shown: &Submission, flow: Option<&str>) -> Result<String, Refusal> {
    let names: Vec<&str> = shown.flows.iter().map(|flow| flow.flow.as_str()).collect();
    match (flow, names.as_slice()) {
        (_, []) => Err(Refusal {
            kind: RefusalKind::Conflict,
            message: match &shown.why {
                Some(why) if shown.state.is_over() => {
                    format!("{} ended before it started: {why}", shown.number)
                }
                Some(why) => format!("{} has not started: {why}", shown.number),
                None if shown.state == State::Opening => {
                    format!("{} has not started: its inputs are being looked up", shown.number)
                }
                None => format!("{} has not started", shown.number),
            },
        }),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(Refusal::invalid(format!("choose one of its flows: {}", names.join(", ")))),
        (Some(flow), _) if names.contains(&flow) => Ok(flow.to_owned()),
        (Some(flow), _) => Err(Refusal::new(RefusalKind::NotFound, unknown("flow", flow, &names))),
    }
}

fn job_of(instance: &Instance, flow: FlowId, name: &str) -> Result<JobId, Refusal> {
    let jobs = || instance.flow(flow).jobs();
    if let Some(job) = jobs().find(|&job| instance.job(job).id == name) {
        return Ok(job);
    }
    let names: Vec<&str> = jobs().map(|job| instance.job(job).id.as_str()).collect();
    Err(Refusal::new(RefusalKind::NotFound, unknown("job", name, &names)))
}
