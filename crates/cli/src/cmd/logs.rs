//! `logs`: what the attempts of a job said on standard error, and why they failed.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use slackline::names::unknown;
use slackline::report::number::{counted, duration, instant};
use slackline::run::{Attempt, Ended, Look};
use slackline_local::clock;
use slackline_local::layout::Layout;
use slackline_local::task::log::printable;
use slackline_model::{PhaseKind, Start};

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
  slackline logs nightly extract --state flows.toml --attempt 2

The run is that of --state, or the only one below .slackline, as for `status` and `explain`; it may go on, or have been \
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
    /// The run, as by --state
    #[arg(long, short, value_name = "RUN", conflicts_with = "state")]
    workload: Option<PathBuf>,
    /// The run: its state directory, its flow file or its schedule [default: the only run there is]
    #[arg(long, value_name = "RUN")]
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
    let job = Asked::named(&look, &args.flow, &args.job)?;
    if let Some(Task { phase, number: Some(number) }) = args.task
        && number >= job.tasks(phase)
    {
        let has = counted(job.tasks(phase).into(), phase.name());
        bail!(
            "found {phase} {number}, expected a task of {}/{}, which has {has} from 0",
            args.flow,
            args.job
        );
    }
    let wanted: Vec<Told<'_>> = numbered(&job.attempts).filter(|told| args.wants(told)).collect();
    let mut silent = 0;
    out::data(None, |out| {
        for told in &wanted {
            silent += u64::from(!told.write(&look.layout, &job, out)?);
        }
        Ok(())
    })?;
    if wanted.is_empty() {
        out::talk(job.nothing(args.failed));
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

/// The job that is asked for, with its attempts in the run that does it or has done it.
struct Asked<'a> {
    flow: &'a str,
    job: &'a str,
    maps: u32,
    reduces: u32,
    attempts: Vec<&'a Attempt>,
    /// When second 0 of its attempts is.
    start: Option<Start>,
    /// Whether an earlier run has done it.
    is_kept: bool,
}

impl<'a> Asked<'a> {
    fn named(look: &'a Look, flow: &str, job: &str) -> anyhow::Result<Self> {
        let own = (0u32..).zip(&look.jobs).find(|(_, plan)| plan.flow == flow && plan.job == job);
        if let Some((index, plan)) = own {
            return Ok(Self {
                flow: &plan.flow,
                job: &plan.job,
                maps: plan.maps(),
                reduces: plan.reducers,
                attempts: look.attempts.iter().filter(|attempt| attempt.id.job == index).collect(),
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

    /// What to say if no attempt of it is wanted.
    fn nothing(&self, failed: bool) -> &'static str {
        match (self.is_kept, failed) {
            (true, _) if self.attempts.is_empty() => {
                "an earlier run has done it, and nothing is known of its attempts any more"
            }
            (_, true) => "no attempt failed",
            _ => "no attempt has ended yet",
        }
    }
}

/// What to say of a job that there is not.
fn not_there(look: &Look, flow: &str, job: &str) -> anyhow::Error {
    let own = look.jobs.iter().map(|plan| (plan.flow.as_str(), plan.job.as_str()));
    let all = own.chain(look.head.kept.iter().map(|kept| (kept.flow.as_str(), kept.job.as_str())));
    let jobs: Vec<&str> = all.clone().filter(|(of, _)| *of == flow).map(|(_, job)| job).collect();
    if jobs.is_empty() {
        let flows: BTreeSet<&str> = all.map(|(flow, _)| flow).collect();
        return anyhow!("{}", unknown("flow", flow, &flows.into_iter().collect::<Vec<_>>()));
    }
    anyhow!("flow {flow}: {}", unknown("job", job, &jobs))
}

/// An attempt, and which of its task's it is, from 1.
struct Told<'a> {
    attempt: &'a Attempt,
    nth: u32,
}

/// The attempts by task, each with its place among those of its task.
fn numbered<'a>(attempts: &[&'a Attempt]) -> impl Iterator<Item = Told<'a>> {
    let mut attempts = attempts.to_vec();
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
    fn write(&self, layout: &Layout, asked: &Asked<'_>, out: &mut dyn Write) -> io::Result<bool> {
        let Attempt { id, number, end, .. } = *self.attempt;
        let Asked { flow, job, start, .. } = asked;
        let path = layout.log(flow, job, id, number);
        let said = match std::fs::read(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(e) => format!("(its log {} cannot be read: {e})\n", path.display()).into_bytes(),
            Ok(said) if io::stdout().is_terminal() => printable(&said).into_bytes(),
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
        writeln!(
            out,
            "── {flow}/{job} {} {}, attempt {}, {how} at {} after {}",
            id.phase.name(),
            id.task,
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
