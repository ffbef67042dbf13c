//! The verbs, one file each.

mod agent;
mod alter;
mod attach;
mod bound;
mod capacity;
mod check;
mod clean;
mod compare;
mod completions;
pub(crate) mod config;
mod explain;
mod export;
pub(crate) mod generate;
mod history;
mod import;
mod logs;
mod man;
mod plan;
mod policies;
mod programs;
mod queue;
mod recurrences;
mod repro;
mod run;
mod serve;
mod simulate;
mod status;
mod submit;
mod token;
mod top;
mod tune;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::args::{engine, import as import_args, path, policy};
use crate::defaults::Defaults;
use crate::help;
use crate::tables::Tables;

/// What a verb found; not to be confused with an error, which keeps it from finding anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// Not feasible, or flows failed.
    No,
    /// A run was stopped from outside; the same command resumes it.
    Stopped,
    /// Something between: what an agent says to the program that started it, or a verb's help says.
    Code(u8),
}

/// The version, and the commit where there is one.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("SLACKLINE_COMMIT_SHORT"));
/// The same with all that is known of the build.
const VERSION_LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("SLACKLINE_COMMIT"),
    "\nbuilt for: ",
    env!("SLACKLINE_TARGET")
);

/// The policy of `run`, `attach` and `simulate` unless another is asked for.
pub(crate) const DEFAULT_POLICY: &str = slackline::algo::auto::ENTRY.name;

/// Schedules flows of MapReduce-style jobs, and says what each policy would give
#[derive(Debug, Parser)]
#[command(
    name = "slackline",
    version = VERSION,
    long_version = VERSION_LONG,
    max_term_width = 110,
    after_help = "\
Start here:
  slackline compare examples/nightly.toml
  slackline plan examples/purdue-30.toml --slots 4
  slackline compare trace.tsv --machines 600 --slots 3 --deadlines 3

Exit codes: 0 done, 1 the answer is no (check failed, flows failed), 2 wrong use or wrong input, \
130 a run was stopped."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run several policies on one workload, side by side
    Compare(compare::Compare),
    /// Run one policy and write down who ran what, where and when
    Simulate(simulate::Simulate),
    /// Plan a workload before anything runs: slots, tasks or progress
    Plan(plan::PlanVerb),
    /// Decide whether a schedule is feasible and costs what it says
    Check(check::Check),
    /// Say why a flow or a job waits, and what would make its deadline
    Explain(explain::Explain),
    /// Find the best split of slots, or the smallest cluster that does
    Tune(tune::Tune),
    /// Bound from below what any schedule of a workload can cost
    Bound(bound::Bound),
    /// Turn a trace into a workload document
    Import(import::Import),
    /// Write a workload or a schedule for others: timelines, charts, CSV
    Export(export::Export),
    /// Make a synthetic workload
    Generate(generate::Generate),
    /// Really run flows under any policy, on this machine or elsewhere
    Run(run::Run),
    /// Stay, and run the flows that people submit at any time
    Serve(serve::Serve),
    /// Submit a flow file to a service, once or again and again
    Submit(submit::Submit),
    /// Show what is submitted to a service, and how far it is
    Queue(queue::Queue),
    /// Watch a service on the terminal
    Top(top::Top),
    /// Stop a submission, or a flow of it
    Cancel(alter::Cancel),
    /// Start nothing more of a submission, or of a flow of it
    Hold(alter::Hold),
    /// Let a submission go on that is held
    Unhold(alter::Unhold),
    /// Give a submission another deadline, weight or priority
    Change(alter::Change),
    /// Show, pause or remove what a service submits again and again
    Recurrences(recurrences::Recurrences),
    /// Let a service begin nothing new, or begin again
    Drain(alter::Drain),
    /// Say who may ask a service over a network
    Token(token::Token),
    /// Drive the jobs that others submit to a Hadoop cluster
    Attach(attach::Attach),
    /// Run tasks for a run on another machine, which starts it there
    Agent(agent::Agent),
    /// Show how far a run is, while it goes on or after it was stopped
    Status(status::Status),
    /// Print what the attempts of a job said, and why they failed
    Logs(logs::Logs),
    /// Remove what ended runs keep and histories know, but not outputs
    Clean(clean::Clean),
    /// Show what jobs took in earlier runs
    History(history::History),
    /// List the programs that jobs can run without anything installed
    Programs(programs::Programs),
    /// Make the figures of the papers again
    Repro(repro::Repro),
    /// List the policies, what they take and their parameters
    Policies(policies::Policies),
    /// Show the defaults that are in force, and where they come from
    Config(config::Config),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Print the manual page of the program or of a verb
    Man(man::Man),
}

/// The command line with everything that these tables name.
pub(crate) fn command(tables: &Tables) -> clap::Command {
    Cli::command().mut_subcommands(|verb| {
        let verb = policy::with_policies(verb, &tables.policies);
        let verb = engine::with_engines(verb, &tables.engines);
        let verb = import_args::with_importers(verb, &tables.importers);
        let verb = path::with_paths(verb);
        // What is no number is refused with the reason, and is not taken for a flag.
        verb.mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg })
    })
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_long().is_some() && arg.get_action().takes_values()
}

/// A command line that was read.
pub(crate) struct Parsed {
    /// What it asks for.
    pub(crate) cli: Cli,
    /// What is to be said of defaults that are in force.
    pub(crate) remark: Option<String>,
}

impl Cli {
    /// Whether it is done whatever the defaults file says.
    pub(crate) fn needs_no_defaults(&self) -> bool {
        match &self.verb {
            Verb::Config(verb) => config::is_path(verb),
            Verb::Completions(_) | Verb::Man(_) | Verb::Agent(_) => true,
            _ => false,
        }
    }
}

/// Reads arguments, the name of the program first.
///
/// # Errors
/// Arguments that are none; a wish for help or the version.
pub(crate) fn parse(
    tables: &Tables,
    defaults: &Defaults,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Parsed, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = help::shown(defaults.apply(command(tables)), &arguments, &tables.importers);
    let mut matches =
        command.try_get_matches_from_mut(arguments).map_err(|error| naming_policies(error, tables))?;
    let remark = defaults.remark(&matches);
    let verb = matches.subcommand_name().map(str::to_owned);
    let cli = Cli::from_arg_matches_mut(&mut matches).map_err(|error| {
        let verb = verb.as_deref().and_then(|verb| command.find_subcommand(verb).cloned());
        error.format(&mut verb.unwrap_or(command))
    })?;
    Ok(Parsed { cli, remark })
}

/// An error with the policies there are, if it is about one that is missing.
fn naming_policies(mut error: clap::Error, tables: &Tables) -> clap::Error {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(flags)) if error.kind() == ErrorKind::MissingRequiredArgument => flags,
        _ => return error,
    };
    if missing.iter().any(|flag| flag.starts_with("--policy ")) {
        let policies: Vec<&str> = tables.policies.names().collect();
        let tip = format!("the policies are {}", policies.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Does what was asked for.
///
/// # Errors
/// Whatever keeps the verb from an answer: wrong use, wrong input, a file that cannot be written.
pub(crate) fn run(cli: Cli, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    match cli.verb {
        Verb::Compare(verb) => compare::run(&verb, tables),
        Verb::Simulate(verb) => simulate::run(&verb, tables),
        Verb::Plan(verb) => plan::run(&verb, tables),
        Verb::Check(verb) => check::run(&verb, tables),
        Verb::Explain(verb) => explain::run(&verb, tables, defaults),
        Verb::Tune(verb) => tune::run(&verb, tables),
        Verb::Bound(verb) => bound::run(&verb, tables),
        Verb::Import(verb) => import::run(&verb, tables),
        Verb::Export(verb) => export::run(&verb, tables),
        Verb::Generate(verb) => generate::run(&verb),
        Verb::Run(verb) => run::run(&verb, tables, defaults),
        Verb::Serve(verb) => serve::run(&verb, defaults),
        Verb::Submit(verb) => submit::run(&verb, defaults),
        Verb::Queue(verb) => queue::run(&verb, defaults),
        Verb::Top(verb) => top::run(&verb, defaults),
        Verb::Cancel(verb) => alter::cancel(&verb, defaults),
        Verb::Hold(verb) => alter::hold(&verb, defaults),
        Verb::Unhold(verb) => alter::unhold(&verb, defaults),
        Verb::Change(verb) => alter::change(&verb, defaults),
        Verb::Recurrences(verb) => recurrences::run(&verb, defaults),
        Verb::Drain(verb) => alter::drain(&verb, defaults),
        Verb::Token(verb) => token::run(&verb, defaults),
        Verb::Attach(verb) => attach::run(&verb),
        Verb::Agent(verb) => Ok(agent::run(&verb)),
        Verb::Status(verb) => status::run(&verb, tables, defaults),
        Verb::Logs(verb) => logs::run(&verb, defaults),
        Verb::Clean(verb) => clean::run(&verb, defaults),
        Verb::History(verb) => history::run(&verb),
        Verb::Programs(verb) => programs::run(&verb),
        Verb::Repro(verb) => repro::run(&verb, tables),
        Verb::Policies(verb) => policies::run(&verb, tables),
        Verb::Config(verb) => config::run(&verb, tables, defaults),
        Verb::Completions(verb) => completions::run(&verb, tables),
        Verb::Man(verb) => man::run(&verb, tables),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_do_not_contradict_each_other() {
        super::command(&super::Tables::default()).debug_assert();
    }
}
