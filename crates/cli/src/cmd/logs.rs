//! `logs`: what the attempts of a job said on standard error, and why they failed.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use slackline::names::unknown;
use slackline::report::number::{counted, duration, instant};
use slackline::run::{Attempt, Ended, Look};
use slackline_model::PhaseKind;

use super::Answer;
use crate::args::state::Named;
use crate::args::value;
use crate::defaults::Defaults;
use crate::out;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline logs nightly extract
  slackline logs nightly extract map-3 --failed
  slackline logs nightly extract --workload flows.toml --attempt 2

The run is that of a flow file, of a state directory, or the only one below .slackline; it may go on, or have been \
killed. Above what an attempt said there is a line that names it, and of one that failed the reason. Of a long log the \
beginning and the end are kept.")]
pub(crate) struct Logs {
    /// Flow
    #[arg(value_name = "FLOW")]
    flow: String,
    /// Job of it
    #[arg(value_name = "JOB")]
    job: String,
    /// One of its tasks, such as map-3, or all of a phase: map or reduce
    #[arg(value_name = "TASK", value_parser = task)]
    task: Option<Task>,
    /// Flow file of the run, or its state directory [default: the only run there is]
    #[arg(long, short, value_name = "FILE", conflicts_with = "state")]
    workload: Option<PathBuf>,
    /// State directory of the run
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Only the N-th attempt of each task, from 1
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(1, u32::MAX.into()))]
    attempt: Option<u32>,
    /// Only attempts that failed
    #[arg(long)]
    failed: bool,
}

/// The tasks that are asked for.
#[derive(Clone, Copy, Debug)]
struct Task {
    phase: PhaseKind,
    number: Option<u32>,
}

fn task(text: &str) -> Result<Task, String> {
    let expected = "expected map-N, reduce-N, map or reduce";
    let (phase, number) = text.split_once('-').map_or((text, None), |(phase, number)| (phase, Some(number)));
    let phase = PhaseKind::ALL.into_iter().find(|kind| kind.name() == phase).ok_or(expected)?;
    let number = number.map(|number| number.parse().map_err(|_| expected)).transpose()?;
    Ok(Task { phase, number })
}

pub(crate) fn run(args: &Logs, defaults: &Defaults) -> anyhow::Result<Answer> {
    let named = Named { workload: args.workload.as_deref(), state: args.state.as_deref() };
    let look = named.look(defaults.state())?;
    let job = job_named(&look, &args.flow, &args.job)?;
    let plan = &look.jobs[job as usize];
    if let Some(Task { phase, number: Some(number) }) = args.task
        && number >= plan.tasks(phase)
    {
        let has = counted(plan.tasks(phase).into(), phase.name());
        bail!(
            "found {phase} {number}, expected a task of {}/{}, which has {has} from 0",
            args.flow,
            args.job
        );
    }
    let of_job = look.attempts.iter().filter(|attempt| attempt.id.job == job);
    let wanted: Vec<Told<'_>> = numbered(of_job).filter(|told| args.wants(told)).collect();
    let mut silent = 0;
    out::data(None, |out| {
        for told in &wanted {
            silent += u64::from(!told.write(&look, out)?);
        }
        Ok(())
    })?;
    if wanted.is_empty() {
        out::talk(if args.failed { "no attempt failed" } else { "no attempt has ended yet" });
    } else if silent > 0 {
        out::talk(format_args!("{} said nothing", counted(silent, "attempt")));
    }
    Ok(Answer::Yes)
}

impl Logs {
    fn wants(&self, told: &Told<'_>) -> bool {
        let id = told.attempt.id;
        let is_task =
            self.task.is_none_or(|task| task.phase == id.phase && task.number.is_none_or(|n| n == id.task));
        let is_failed = matches!(told.attempt.ended, Ended::Failed(_));
        is_task && self.attempt.is_none_or(|nth| nth == told.nth) && (is_failed || !self.failed)
    }
}

/// An attempt, and which of its task's it is, from 1.
struct Told<'a> {
    attempt: &'a Attempt,
    nth: u32,
}

/// The attempts by task, each with its place among those of its task.
fn numbered<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> impl Iterator<Item = Told<'a>> {
    let mut attempts: Vec<&Attempt> = attempts.collect();
    attempts.sort_by_key(|attempt| (attempt.id, attempt.number));
    let (mut last, mut nth) = (None, 0);
    attempts.into_iter().map(move |attempt| {
        nth = if last == Some(attempt.id) { nth + 1 } else { 1 };
        last = Some(attempt.id);
        Told { attempt, nth }
    })
}

impl Told<'_> {
    /// Writes what an attempt said, under a line that names it; says whether there was anything.
    fn write(&self, look: &Look, out: &mut dyn Write) -> io::Result<bool> {
        let Attempt { id, number, end, .. } = *self.attempt;
        let plan = &look.jobs[id.job as usize];
        let path = look.layout.log(plan, id, number);
        let said = match std::fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => format!("(its log {} cannot be read: {e})\n", path.display()).into_bytes(),
            Ok(said) => said,
        };
        let (how, message) = match &self.attempt.ended {
            Ended::Done(_) | Ended::Killed if said.is_empty() => return Ok(false),
            Ended::Done(_) => ("done", ""),
            Ended::Lost => ("lost", ""),
            Ended::Killed => ("stopped", ""),
            // With the log the rest of the message, its last lines, is there already.
            Ended::Failed(message) if said.is_empty() => ("failed", message.as_str()),
            Ended::Failed(message) => ("failed", message.lines().next().unwrap_or_default()),
        };
        let start = look.head.workload.start.as_ref();
        writeln!(
            out,
            "── {}/{} {} {}, attempt {}, {how} at {} after {}",
            plan.flow,
            plan.job,
            id.phase.name(),
            id.task,
            self.nth,
            instant(end as f64 / 1e6, start),
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

/// The job of that name, by its place in the run.
fn job_named(look: &Look, flow: &str, job: &str) -> anyhow::Result<u32> {
    let plans = || (0u32..).zip(&look.jobs);
    if let Some((index, _)) = plans().find(|(_, plan)| plan.flow == flow && plan.job == job) {
        return Ok(index);
    }
    let jobs: Vec<&str> =
        plans().filter(|(_, plan)| plan.flow == flow).map(|(_, plan)| plan.job.as_str()).collect();
    if jobs.is_empty() {
        let flows: Vec<&str> = look.head.workload.flows.iter().map(|flow| flow.id.as_str()).collect();
        bail!("{}", unknown("flow", flow, &flows));
    }
    bail!("flow {flow}: {}", unknown("job", job, &jobs));
}
