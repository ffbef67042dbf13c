//! `logs`: standard error of the attempts of a job, and why they failed.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use slackline::run::logs::{Logs as Found, LogsOf, TaskOf};
use slackline_serve::http::client::query;

use crate::args::defaults::Defaults;
use crate::args::server::submission;
use crate::args::state::RunSelector;
use crate::args::{ServerFlags, value};
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline logs nightly extract
  slackline logs nightly extract map-3 --failed
  slackline logs nightly extract --state flows.toml --attempt 2
  slackline logs nightly extract --state 17

The run is that of --state, or the only one in .slackline, as for `status` and `explain`. It may be running or \
stopped. A line above the log of each attempt names it and, if it failed, the reason. Of a long log the \
beginning and the end are kept. A number for --state is a submission of a service, as `queue` shows it.")]
pub(crate) struct Logs {
    /// Flow
    #[arg(value_name = "FLOW")]
    flow: String,
    /// Job of the flow
    #[arg(value_name = "JOB")]
    job: String,
    /// Task, such as map-3, or all tasks of a phase: map or reduce [default: all tasks]
    #[arg(value_name = "TASK", value_parser = TaskOf::parse)]
    task: Option<TaskOf>,
    /// The run, as for --state
    #[arg(long, short, value_name = "RUN", conflicts_with = "state")]
    workload: Option<PathBuf>,
    /// The run: its state directory, its flow file or its schedule [default: the only run]
    #[arg(long, value_name = "RUN")]
    state: Option<PathBuf>,
    /// Only the N-th attempt of each task, from 1
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(1, u32::MAX.into()))]
    attempt: Option<u32>,
    /// Only attempts that failed
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    server: ServerFlags,
}

impl Logs {
    /// Those of a submission of a service.
    fn of_service(&self, number: u64, defaults: &Defaults) -> anyhow::Result<Answer> {
        let mut client = self.server.client(defaults.state())?;
        let task = self.task.map(|task| task.to_string());
        let attempt = self.attempt.map(|attempt| attempt.to_string());
        let asked = query(&[
            ("flow", Some(&self.flow)),
            ("job", Some(&self.job)),
            ("task", task.as_deref()),
            ("attempt", attempt.as_deref()),
            ("failed", self.failed.then_some("true")),
        ]);
        let text = client.text(&format!("/api/v1/submissions/{number}/logs{asked}"))?;
        out::data(None, |out| out.write_all(text.as_bytes()))?;
        Ok(Answer::Yes)
    }
}

pub(crate) fn run(args: &Logs, defaults: &Defaults) -> anyhow::Result<Answer> {
    if let Some(number) = submission(args.state.as_deref().or(args.workload.as_deref())) {
        return args.of_service(number, defaults);
    }
    let named = RunSelector { workload: args.workload.as_deref(), state: args.state.as_deref() };
    let look = named.look(defaults.state())?;
    let of = LogsOf {
        flow: &args.flow,
        job: &args.job,
        task: args.task,
        attempt: args.attempt,
        failed: args.failed,
    };
    let found = Found::find(&look, of).map_err(|problem| anyhow!("{problem}"))?;
    let mut remark = None;
    out::data(None, |out| {
        remark = found.write(out)?;
        Ok(())
    })?;
    if let Some(remark) = remark {
        out::talk(remark);
    }
    Ok(Answer::Yes)
}
