//! The standard error of the attempts of a job, and the reasons why they failed.

use std::collections::BTreeSet;
use std::io::{self, Write};

use slackline_executor::store::layout::Layout;
use slackline_executor::store::machine_slots::MachineSlots;
use slackline_model::{PhaseKind, Start};
use slackline_task::base::{clock, regular_file};

use super::{Attempt, AttemptOutcome, RunInspection};
use crate::names::unknown;
use crate::report::number::{counted, duration, instant};

/// The number of bytes that are shown of a log that another program wrote. It is larger than any log that an
/// attempt keeps.
const LONGEST: u64 = 1 << 20;

/// A selection of tasks: all tasks of a phase, or one.
#[derive(Clone, Copy, Debug)]
pub struct TaskOf {
    /// The phase.
    pub phase: PhaseKind,
    /// The task; `None` for all tasks.
    pub number: Option<u32>,
}

impl TaskOf {
    /// Reads `map-3`, `reduce-0`, `map` or `reduce`.
    ///
    /// # Errors
    /// The syntax that was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected map-N, reduce-N, map or reduce";
        let (phase, number) =
            text.split_once('-').map_or((text, None), |(phase, number)| (phase, Some(number)));
        let phase = PhaseKind::ALL.into_iter().find(|kind| kind.name() == phase).ok_or(expected)?;
        let number = number.map(|number| number.parse().map_err(|_| expected)).transpose()?;
        Ok(Self { phase, number })
    }
}

impl std::fmt::Display for TaskOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let phase = self.phase.name();
        match self.number {
            None => f.write_str(phase),
            Some(number) => write!(f, "{phase}-{number}"),
        }
    }
}

/// A selection of logs.
#[derive(Clone, Copy, Debug)]
pub struct LogsOf<'a> {
    /// The flow.
    pub flow: &'a str,
    /// The job.
    pub job: &'a str,
    /// Its tasks; `None` for all.
    pub task: Option<TaskOf>,
    /// Only this attempt of each task, counted from 1.
    pub attempt: Option<u32>,
    /// Only attempts that failed.
    pub failed: bool,
}

/// The selected logs, ready to be written.
pub struct Logs<'a> {
    look: &'a RunInspection,
    asked: JobAttempts<'a>,
    wanted: Vec<NumberedAttempt<'a>>,
    failed: bool,
}

impl<'a> Logs<'a> {
    /// Finds the selected attempts.
    ///
    /// # Errors
    /// An unknown flow, job or task, with the known ones.
    pub fn find(look: &'a RunInspection, of: LogsOf<'_>) -> Result<Self, String> {
        let asked = JobAttempts::named(look, of.flow, of.job)?;
        if let Some(TaskOf { phase, number: Some(number) }) = of.task
            && number >= asked.tasks(phase)
        {
            let has = counted(asked.tasks(phase).into(), phase.name());
            return Err(format!(
                "found {phase} {number}, but {}/{} has {has} (numbered from 0)",
                of.flow, of.job
            ));
        }
        let wanted = numbered(&asked.attempts).filter(|attempt| attempt.is_wanted(of)).collect();
        Ok(Self { look, asked, wanted, failed: of.failed })
    }

    /// Writes the log of each attempt under a heading. Returns a message about attempts without output, if
    /// there are any.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<Option<String>> {
        let mut silent = 0;
        for attempt in &self.wanted {
            silent += u64::from(!attempt.write(&self.look.layout, &self.asked, out)?);
        }
        if self.wanted.is_empty() {
            return Ok(Some(self.asked.nothing(self.failed).to_owned()));
        }
        Ok((silent > 0).then(|| format!("{} wrote no output", counted(silent, "attempt"))))
    }
}

/// The selected job, with its attempts in the run that executes it or has executed it.
struct JobAttempts<'a> {
    flow: &'a str,
    job: &'a str,
    maps: u32,
    reduces: u32,
    attempts: Vec<&'a Attempt>,
    /// Maps slots to machines, for the run that executes it.
    places: MachineSlots,
    /// The date of second 0 of its attempts.
    start: Option<Start>,
    /// Whether an earlier run finished it.
    is_kept: bool,
}

impl<'a> JobAttempts<'a> {
    fn named(look: &'a RunInspection, flow: &str, job: &str) -> Result<Self, String> {
        let own = (0u32..).zip(&look.jobs).find(|(_, plan)| plan.flow == flow && plan.job == job);
        if let Some((index, plan)) = own {
            return Ok(Self {
                flow: &plan.flow,
                job: &plan.job,
                maps: plan.maps(),
                reduces: plan.reducers,
                attempts: look.attempts.iter().filter(|attempt| attempt.id.job == index).collect(),
                places: MachineSlots::of(&look.head.workload.machines),
                start: look.head.workload.start.clone(),
                is_kept: false,
            });
        }
        let kept = look.head.kept.iter().find(|kept| kept.flow == flow && kept.job == job);
        let kept = kept.ok_or_else(|| not_there(look, flow, job))?;
        Ok(Self {
            flow: &kept.flow,
            job: &kept.job,
            maps: kept.maps,
            reduces: kept.reduces,
            attempts: kept.attempts.iter().collect(),
            places: MachineSlots::default(),
            start: Some(clock::local(kept.started)),
            is_kept: true,
        })
    }

    fn tasks(&self, phase: PhaseKind) -> u32 {
        match phase {
            PhaseKind::Map => self.maps,
            PhaseKind::Reduce => self.reduces,
        }
    }

    /// The message if no attempt is selected.
    fn nothing(&self, failed: bool) -> &'static str {
        match (self.is_kept, failed) {
            (true, _) if self.attempts.is_empty() => {
                "the job finished in an earlier run, whose attempts are no longer known"
            }
            (_, true) => "no attempt failed",
            _ => "no attempt has ended yet",
        }
    }
}

/// The message for an unknown job.
fn not_there(look: &RunInspection, flow: &str, job: &str) -> String {
    let own = look.jobs.iter().map(|plan| (plan.flow.as_str(), plan.job.as_str()));
    let all = own.chain(look.head.kept.iter().map(|kept| (kept.flow.as_str(), kept.job.as_str())));
    let jobs: Vec<&str> = all.clone().filter(|(of, _)| *of == flow).map(|(_, job)| job).collect();
    if jobs.is_empty() {
        let flows: BTreeSet<&str> = all.map(|(flow, _)| flow).collect();
        return unknown("flow", flow, &flows.into_iter().collect::<Vec<_>>());
    }
    format!("flow {flow}: {}", unknown("job", job, &jobs))
}

/// An attempt, and its number among the attempts of its task, from 1.
struct NumberedAttempt<'a> {
    attempt: &'a Attempt,
    nth: u32,
}

/// The attempts by task, each with its number among those of its task.
fn numbered<'a>(attempts: &[&'a Attempt]) -> impl Iterator<Item = NumberedAttempt<'a>> {
    let mut attempts = attempts.to_vec();
    attempts.sort_by_key(|attempt| (attempt.id, attempt.number));
    let (mut last, mut nth) = (None, 0);
    attempts.into_iter().map(move |attempt| {
        nth = if last == Some(attempt.id) { nth + 1 } else { 1 };
        last = Some(attempt.id);
        NumberedAttempt { attempt, nth }
    })
}

impl NumberedAttempt<'_> {
    fn is_wanted(&self, of: LogsOf<'_>) -> bool {
        let id = self.attempt.id;
        let is_task =
            of.task.is_none_or(|task| task.phase == id.phase && task.number.is_none_or(|n| n == id.task));
        let is_failed = matches!(self.attempt.ended, AttemptOutcome::Failed(_));
        is_task && of.attempt.is_none_or(|nth| nth == self.nth) && (is_failed || !of.failed)
    }

    /// Writes the log of an attempt under a heading. Returns whether there was any output.
    fn write(&self, layout: &Layout, asked: &JobAttempts<'_>, out: &mut dyn Write) -> io::Result<bool> {
        let Attempt { id, number, end, .. } = *self.attempt;
        let JobAttempts { flow, job, start, .. } = asked;
        let path = layout.log(flow, job, id, number);
        let said = match regular_file::read_end(&path, LONGEST) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => format!("(its log {} cannot be read: {e})\n", path.display()).into_bytes(),
            Ok(said) => said,
        };
        let (how, message) = match &self.attempt.ended {
            AttemptOutcome::Done(_) | AttemptOutcome::Killed if said.is_empty() => return Ok(false),
            AttemptOutcome::Done(_) => ("done", ""),
            AttemptOutcome::Lost(_) => ("lost", ""),
            AttemptOutcome::Killed => ("stopped", ""),
            // The rest of the message consists of the last lines of the log, which is printed below.
            AttemptOutcome::Failed(message) if said.is_empty() => ("failed", message.as_str()),
            AttemptOutcome::Failed(message) => ("failed", message.lines().next().unwrap_or_default()),
        };
        let has_one_task = asked.maps + asked.reduces == 1;
        let task = if has_one_task { String::new() } else { format!(" {} {}", id.phase.name(), id.task) };
        let place = asked.places.of_several(id.phase, self.attempt.slot);
        let place = place.map_or_else(String::new, |(machine, _)| format!(" on {machine}"));
        writeln!(
            out,
            "── {flow}/{job}{task}, attempt {}, {how}{place} at {} after {}",
            self.nth,
            instant(end as f64 / 1e6, start.as_ref()),
            duration(self.attempt.micros() as f64 / 1e6)
        )?;
        for line in message.lines() {
            writeln!(out, "   {line}")?;
        }
        out.write_all(&said)?;
        if !said.is_empty() && said.last() != Some(&b'\n') {
            writeln!(out)?;
        }
        Ok(true)
    }
}
