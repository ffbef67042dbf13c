//! `hadoop attach`: schedules jobs that others submit to a Hadoop cluster, under any policy.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use slackline::PolicySpec;
use slackline::attach::{
    self, Application, AttachEvent, AttachOptions, AttachSummary, Cluster, Events, Request, Stage, Status,
    Watcher,
};
use slackline::names::listed;
use slackline::report::number::{NOTHING, counted, duration, instants};
use slackline::report::table::wrapped;
use slackline::report::{Column, Table, View};
use slackline::run::RunError;
use slackline_model::cost::is_late;
use slackline_model::{Start, Time};
use slackline_task::base::clock;
use slackline_task::base::system::on_stop_signal;

use crate::args::attach::AttachFlags;
use crate::args::{PolicyTimeout, policy, value};
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub(crate) struct Hadoop {
    #[command(subcommand)]
    command: HadoopCommand,
}

#[derive(Debug, Subcommand)]
enum HadoopCommand {
    /// Schedule the MapReduce jobs that others submit to a queue, under any policy
    Attach(Attach),
}

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline hadoop attach yarn://rm.example:8088 --queue etl --policy edf
  slackline hadoop attach yarn://127.0.0.1:8088 --dry-run --for 60

Jobs need no change. A job may have tags (mapreduce.job.tags): slackline.flow=NAME, \
slackline.deadline=+SECONDS from its submission, slackline.weight=NUMBER. Without a flow, mapreduce.workflow.* \
and the name of the job tell which earlier jobs are similar. Durations of tasks are learned from similar jobs. Slots of other \
applications count as used, and these applications are not changed.

The ResourceManager needs the plug-in (docs/hadoop.md). Slackline schedules until ctrl-C, or for the time of --for. Then \
the table is removed, and the cluster schedules without Slackline. If this program is killed, this happens after 30 seconds.")]
struct Attach {
    /// Cluster, as the web address of its ResourceManager
    #[arg(value_name = "yarn://HOST:PORT")]
    cluster: String,
    /// Queue whose MapReduce jobs are scheduled, by name or full path; may be given several times
    #[arg(long, value_name = "QUEUE", default_value = "default", help_heading = "Cluster")]
    queue: Vec<String>,
    #[command(flatten)]
    flags: AttachFlags,
    /// Policy (see `slackline policies`)
    ///
    /// Parameters follow a colon, as in fair:by=flow.
    #[arg(long, short, value_name = "POLICY", default_value = policy::DEFAULT_POLICY, value_parser = policy::standard(), help_heading = "Policy")]
    policy: PolicySpec,
    #[command(flatten)]
    policy_timeout: PolicyTimeout,
    /// History with the durations of jobs; it also learns from these jobs
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    history: Option<PathBuf>,
    /// Print what would be done, and write nothing to the cluster
    #[arg(long, help_heading = "Output")]
    dry_run: bool,
    /// End after this time [default: never]
    #[arg(long = "for", value_name = "DURATION", value_parser = value::seconds_above_zero, help_heading = "Output")]
    lasts: Option<f64>,
    /// Time between two status tables; a table without changes is not printed
    #[arg(long, value_name = "DURATION", default_value = "10", value_parser = value::seconds_above_zero, help_heading = "Output")]
    every: f64,
    /// Append events to FILE, a line of JSON each
    ///
    /// Their schema is docs/schema/attach-events.schema.json.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    events: Option<PathBuf>,
    /// Also print new jobs, and jobs that may start their ApplicationMaster
    #[arg(long, short, conflicts_with = "quiet", help_heading = "Output")]
    verbose: bool,
    /// Print errors only, and no table
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

pub(crate) fn run(args: &Hadoop) -> anyhow::Result<Answer> {
    let HadoopCommand::Attach(args) = &args.command;
    attach(args)
}

fn attach(args: &Attach) -> anyhow::Result<Answer> {
    let policy = args.policy_timeout.of(args.policy.clone());
    input::report_remarks(std::slice::from_ref(&policy));
    let options = AttachOptions {
        dry_run: args.dry_run,
        every: Duration::from_secs_f64(args.every),
        lasts: args.lasts.map(Duration::from_secs_f64),
        ..AttachOptions::new(args.queue.clone())
    };
    let cluster = Cluster::ask(&args.cluster, &args.flags.settings()?, options)?;
    cluster.remarks().iter().for_each(out::warn);
    let has_table = cluster.table().is_some();
    let events = args.events.as_deref();
    let events = events.map(|path| event_file(path, &cluster, &policy, args)).transpose()?;
    args.announce(&cluster, &policy);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    on_stop_signal(move || flag.store(true, Ordering::SeqCst))?;
    let request = Request { policy: policy.clone(), history: args.history.clone() };
    let mut live = AttachDisplay {
        policy,
        start: clock::local(clock::unix_micros()),
        verbosity: Verbosity { lines: !args.quiet, more: args.verbose, table: !args.quiet },
        shown: String::new(),
        is_explained: false,
        events,
        problem: None,
    };
    let end = attach::drive(cluster, &request, stop.clone(), &mut live);
    live.close(args.events.as_deref());
    let closed = match end {
        Err(error @ RunError::Policy { .. }) => {
            out::error(&error.into());
            return Ok(Answer::No);
        }
        end => end?,
    };
    if let Some(problem) = live.problem {
        return Err(problem);
    }
    if !args.quiet && !args.dry_run {
        out::talk(ended(has_table, &closed));
    }
    Ok(if stop.load(Ordering::SeqCst) { Answer::Stopped } else { Answer::Yes })
}

/// How things are at the end.
fn ended(has_table: bool, closed: &AttachSummary) -> String {
    let table = if has_table { "the table is removed" } else { "no table was written" };
    match closed.raised.len() as u64 {
        0 => format!("ended: {table}, and the cluster schedules without Slackline"),
        raised => format!(
            "ended: {table}; raised priorities remain on {} (see above)",
            counted(raised, "application")
        ),
    }
}

fn event_file(
    path: &Path,
    cluster: &Cluster,
    policy: &PolicySpec,
    args: &Attach,
) -> anyhow::Result<Events<File>> {
    let file = File::options().append(true).create(true).open(path);
    let file = file.with_context(|| format!("--events: {}: cannot be written", path.display()))?;
    Ok(Events::new(file, &args.cluster, cluster.queues(), policy.spec(), args.dry_run))
}

impl Attach {
    /// Prints which queues are driven, and under which policy.
    fn announce(&self, cluster: &Cluster, policy: &PolicySpec) {
        if self.quiet {
            return;
        }
        let slots: u32 = cluster.machines().iter().map(|machine| machine.count).sum();
        let how = match cluster.table() {
            _ if self.dry_run => "dry run: nothing is written".to_owned(),
            Some(table) => format!("through {}", table.display()),
            None => "through priorities only".to_owned(),
        };
        out::talk(format_args!(
            "{} with {} under {}, {how}",
            listed(cluster.queues()),
            counted(slots.into(), "slot"),
            policy.spec()
        ));
        let hint = if self.flags.names("memory") { "" } else { "; --memory sets another size" };
        out::talk(format_args!("a slot has {}{hint}", cluster.slot()));
    }
}

#[derive(Clone, Copy, Debug)]
struct Verbosity {
    lines: bool,
    /// Whether minor events are printed too.
    more: bool,
    table: bool,
}

struct AttachDisplay {
    policy: PolicySpec,
    start: Start,
    verbosity: Verbosity,
    /// The table that was shown last.
    shown: String,
    /// Whether the columns were explained already.
    is_explained: bool,
    events: Option<Events<File>>,
    /// What kept a table from being shown.
    problem: Option<anyhow::Error>,
}

impl AttachDisplay {
    fn close(&self, path: Option<&Path>) {
        if let (Some(problem), Some(path)) = (self.events.as_ref().and_then(Events::problem), path) {
            let path = path.display();
            out::warn(format_args!("--events: {path}: cannot be written, so lines are missing: {problem}"));
        }
    }

    /// The remaining tasks of every application, its allowed containers, and its predicted completion.
    fn table(&self, status: &Status, view: &View) -> String {
        let prospects = attach::prospects(status, &self.policy);
        let (apps, now) = (&status.applications, status.now.seconds());
        let words = |name: &str, cell: &dyn Fn(&Application) -> String| {
            Column::words(name, apps.iter().map(cell).collect::<Vec<_>>())
        };
        let phase = |kind: usize| move |one: &Application| one.phases[kind];
        let progress = |kind: usize| {
            move |one: &Application| {
                phase(kind)(one).map_or(NOTHING.to_owned(), |phase| format!("{}/{}", phase.done, phase.total))
            }
        };
        let running = |kind: usize| {
            move |one: &Application| {
                phase(kind)(one).map_or(NOTHING.to_owned(), |phase| {
                    let cap = phase.cap.map_or("any".to_owned(), |cap| cap.to_string());
                    format!("{} of {cap}", phase.running)
                })
            }
        };
        let times = |name: &str, values: Vec<Option<f64>>| {
            Column::written(name, &values, instants(&values, Some(&self.start)))
        };
        let flow =
            |one: &Application| if one.flow.is_empty() { one.id.to_string() } else { one.flow.clone() };
        let table = Table::of(vec![
            words("flow", &flow),
            words("application", &|one| one.id.to_string()).rank(3),
            words("stage", &|one| one.stage.name().to_owned()),
            words("maps", &progress(0)),
            words("may run", &running(0)).rank(1),
            words("reduces", &progress(1)),
            words("may run (reduces)", &running(1)).heading("may run").rank(1),
            words("priority", &|one| one.priority.to_string()).rank(2),
            times("deadline", apps.iter().map(|one| one.deadline).collect()).rank(1),
            times("expected", apps.iter().map(|one| prospects.get(&one.flow).copied()).collect()),
            words("remarks", &|one| {
                lateness(one.deadline, prospects.get(&one.flow).copied(), now).to_owned()
            })
            .heading(""),
        ]);
        let held = apps.iter().filter(|one| one.stage == Stage::Held).count() as u64;
        format!(
            "{}, {} held; {} of {} used by ApplicationMasters and others\n{}",
            counted(apps.len() as u64, "application"),
            held,
            status.taken,
            counted(status.slots.into(), "slot"),
            if apps.is_empty() { String::new() } else { table.render(view) }
        )
    }
}

impl Watcher for AttachDisplay {
    fn happened(&mut self, now: Time, what: &AttachEvent) {
        if let Some(events) = &mut self.events {
            events.happened(now, what);
        }
        let line = match what {
            AttachEvent::Troubled(Some(reason)) => {
                format!("the cluster does not answer correctly: {reason}")
            }
            AttachEvent::Troubled(None) => "the cluster answers again".to_owned(),
            AttachEvent::Warned(message) => message.clone(),
            AttachEvent::WrongTag(app, problem) => format!("{app}: {problem}"),
            AttachEvent::Arrived { app, flow, tasks: [maps, reduces], .. } => format!(
                "{app} is {flow}, with {} and {}",
                counted((*maps).into(), "map"),
                counted((*reduces).into(), "reduce")
            ),
            AttachEvent::LeftAlone(app, reason) => format!("{app} is not scheduled: {reason}"),
            AttachEvent::Done(app) => format!("{app} finished"),
            AttachEvent::Failed(app, reason) => format!("{app} failed: {reason}"),
            AttachEvent::Seen(app) if self.verbosity.more => format!("{app} was submitted"),
            AttachEvent::Released(app) if self.verbosity.more => {
                format!("{app} may start its ApplicationMaster")
            }
            _ => return,
        };
        if self.verbosity.lines {
            out::talk(format_args!("{:>10}  {line}", duration(now.seconds())));
        }
    }

    fn status(&mut self, status: &Status) {
        if let Some(events) = &mut self.events {
            events.status(status);
        }
        if !self.verbosity.table || self.problem.is_some() {
            return;
        }
        let view = out::view(None);
        let table = self.table(status, &view);
        if table != self.shown {
            let at = duration(status.now.seconds());
            // Once, below the first table that has rows.
            let is_first = !self.is_explained && !status.applications.is_empty();
            let legend = if is_first { wrapped(&LEGEND, view.width) } else { String::new() };
            self.problem = out::text(None, &format!("\nafter {at}: {table}{legend}")).err();
            self.is_explained |= is_first;
            self.shown = table;
        }
    }
}

const LEGEND: [(&str, &str); 5] = [
    (
        "stage",
        "held: waits until it may start its ApplicationMaster; starting: the ApplicationMaster starts; runs: the policy decides",
    ),
    ("maps, reduces", "finished tasks, of all tasks"),
    ("may run", "running containers, of those that may run; any: no limit"),
    ("priority", "the highest priority is served first"),
    ("deadline, expected", "the deadline, and the predicted completion if no more jobs arrive"),
];

/// Whether an application is late, or is going to be.
fn lateness(deadline: Option<f64>, expected: Option<f64>, now: f64) -> &'static str {
    match (deadline, expected) {
        (Some(deadline), _) if is_late(now, deadline) => "late already",
        (Some(deadline), Some(expected)) if is_late(expected, deadline) => "likely late",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_applications_are_marked() {
        assert_eq!(lateness(Some(10.0), Some(20.0), 5.0), "likely late");
        assert_eq!(lateness(Some(10.0), None, 11.0), "late already");
        assert_eq!(lateness(Some(10.0), Some(9.0), 5.0), "");
        assert_eq!(lateness(None, Some(20.0), 30.0), "");
    }

    #[test]
    fn the_last_words_say_what_is_left() {
        let app = "application_1_0001".parse().unwrap();
        let (well, left) = (
            AttachSummary::default(),
            AttachSummary { raised: [(app, 0)].into(), ..AttachSummary::default() },
        );
        assert_eq!(
            ended(true, &well),
            "ended: the table is removed, and the cluster schedules without Slackline"
        );
        assert_eq!(
            ended(false, &well),
            "ended: no table was written, and the cluster schedules without Slackline"
        );
        assert_eq!(
            ended(true, &left),
            "ended: the table is removed; raised priorities remain on 1 application (see above)"
        );
    }
}
