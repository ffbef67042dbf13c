//! The verbs of the program: the table of them, and how a command line is read. One file for each verb, in
//! folders by the groups of the help.

mod analyse;
pub(crate) mod answer;
mod data;
#[cfg(test)]
mod reference;
mod research;
mod run;
mod service;
mod setup;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::args::defaults::Defaults;
use crate::args::{engine, help, import as import_args, path, policy};
use crate::tables::Tables;
use crate::verbs::answer::Answer;

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
struct Program;

/// The program and its verb.
#[derive(Debug)]
pub(crate) struct Cli {
    verb: Verb,
}

/// The table of verbs: an enum that reads them, and their commands one by one. Thirty commands with all their
/// flags take more time and memory than most verbs, and one is used.
macro_rules! verbs {
    ($($(#[doc = $about:literal])+ $verb:ident $name:literal ($args:ty),)+) => {
        #[derive(Debug, Subcommand)]
        enum Verb {
            $($(#[doc = $about])+ #[command(name = $name)] $verb($args),)+
        }

        impl Verb {
            const NAMES: &[&str] = &[$($name),+];

            /// Every command, with flags if `has_flags` says so of its name.
            fn commands(has_flags: impl Fn(&str) -> bool) -> impl Iterator<Item = clap::Command> {
                let command = move |name: &'static str, about: &'static str, add: AddFlags| {
                    let command = clap::Command::new(name);
                    if has_flags(name) { add(command) } else { command }.about(about.trim_start())
                };
                let all: [(_, _, AddFlags); _] =
                    [$(($name, concat!($($about),+), <$args as clap::Args>::augment_args)),+];
                all.into_iter().map(move |(name, about, add)| command(name, about, add))
            }
        }
    };
}

/// Adds the flags of a verb to its command.
type AddFlags = fn(clap::Command) -> clap::Command;

verbs! {
    /// Run several policies on one workload, side by side
    Compare "compare" (analyse::compare::Compare),
    /// Run one policy and write down who ran what, where and when
    Simulate "simulate" (analyse::simulate::Simulate),
    /// Plan a workload before anything runs: slots, tasks or progress
    Plan "plan" (research::plan::PlanVerb),
    /// Decide whether a schedule is feasible and costs what it says
    Check "check" (data::check::Check),
    /// Say why a flow or a job waits, and what would make its deadline
    Explain "explain" (analyse::explain::Explain),
    /// Find the best split of slots, or the smallest cluster that does
    Tune "tune" (research::tune::Tune),
    /// Bound from below what any schedule of a workload can cost
    Bound "bound" (research::bound::Bound),
    /// Turn a trace into a workload document
    Import "import" (data::import::Import),
    /// Write a workload or a schedule for others: timelines, charts, CSV
    Export "export" (data::export::Export),
    /// Make a synthetic workload
    Generate "generate" (data::generate::Generate),
    /// Really run flows under any policy, on this machine or elsewhere
    Run "run" (run::run::Run),
    /// Stay, and run the flows that people submit at any time
    Serve "serve" (service::serve::Serve),
    /// Submit a flow file to a service, once or again and again
    Submit "submit" (service::submit::Submit),
    /// Show what is submitted to a service, and how far it is
    Queue "queue" (service::queue::Queue),
    /// Watch a service on the terminal
    Top "top" (service::top::Top),
    /// Stop a submission, or a flow of it
    Cancel "cancel" (service::submission::Cancel),
    /// Start nothing more of a submission, or of a flow of it
    Hold "hold" (service::submission::Hold),
    /// Let a submission go on that is held
    Unhold "unhold" (service::submission::Unhold),
    /// Give a submission another deadline, weight or priority
    Change "change" (service::submission::Change),
    /// Show, pause or remove what a service submits again and again
    Recurrences "recurrences" (service::schedules::Recurrences),
    /// Let a service begin nothing new, or begin again
    Drain "drain" (service::drain::Drain),
    /// Say who may ask a service over a network
    Token "token" (service::token::Token),
    /// Drive the jobs that others submit to a Hadoop cluster
    Attach "attach" (setup::attach::Attach),
    /// Run tasks for a run on another machine, which starts it there
    Agent "agent" (run::agent::Agent),
    /// Show how far a run is, while it goes on or after it was stopped
    Status "status" (run::status::Status),
    /// Print what the attempts of a job said, and why they failed
    Logs "logs" (run::logs::Logs),
    /// Remove what ended runs keep and histories know, but not outputs
    Clean "clean" (run::clean::Clean),
    /// Show what jobs took in earlier runs
    History "history" (run::history::History),
    /// List the programs that jobs can run without anything installed
    Programs "programs" (run::programs::Programs),
    /// Make the figures of the papers again
    Repro "repro" (research::repro::Repro),
    /// List the policies, what they take and their parameters
    Policies "policies" (research::policies::Policies),
    /// Show the defaults that are in force, and where they come from
    Config "config" (setup::config::Config),
    /// Print a completion script for a shell
    Completions "completions" (setup::completions::Completions),
    /// Print the manual page of the program or of a verb
    Man "man" (setup::man::Man),
}

/// The command line with everything that these tables name.
pub(crate) fn command(tables: &Tables) -> clap::Command {
    command_with(tables, |_| true)
}

/// The same, but only verbs with these names have their flags.
fn command_with(tables: &Tables, has_flags: impl Fn(&str) -> bool) -> clap::Command {
    let program = Program::command().subcommand_required(true).arg_required_else_help(true);
    program.subcommands(Verb::commands(has_flags)).mut_subcommands(|verb| {
        let verb = policy::with_policies(verb, &tables.policies);
        let verb = engine::with_engines(verb, &tables.engines);
        let verb = import_args::with_importers(verb, &tables.importers);
        let verb = path::with_paths(verb);
        // What is no number is refused with the reason, and is not taken for a flag.
        verb.mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg })
    })
}

/// The command line for these arguments. The verb that they begin with has its flags; no verb has for the help
/// and the version of the program; else all have, for suggestions.
fn command_of(tables: &Tables, arguments: &[OsString]) -> clap::Command {
    const NONE: [&str; 4] = ["-h", "--help", "-V", "--version"];
    let first = arguments.get(1).and_then(|first| first.to_str()).unwrap_or(NONE[0]);
    let is_enough = Verb::NAMES.contains(&first) || NONE.contains(&first);
    command_with(tables, |name| name == first || !is_enough)
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_long().is_some() && arg.get_action().takes_values()
}

/// A command line that was read.
pub(crate) struct Parsed {
    pub(crate) cli: Cli,
    /// The remark on defaults that are in force.
    pub(crate) remark: Option<String>,
}

impl Cli {
    /// Whether the verb works with a broken defaults file.
    pub(crate) fn needs_no_defaults(&self) -> bool {
        match &self.verb {
            Verb::Config(verb) => setup::config::is_path(verb),
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
    let mut command =
        help::shown(defaults.apply(command_of(tables, &arguments)), &arguments, &tables.importers);
    let mut matches =
        command.try_get_matches_from_mut(arguments).map_err(|error| naming_policies(error, tables))?;
    let remark = defaults.remark(&matches);
    let name = matches.subcommand_name().map(str::to_owned);
    let verb = Verb::from_arg_matches_mut(&mut matches).map_err(|error| {
        let verb = name.as_deref().and_then(|verb| command.find_subcommand(verb).cloned());
        error.format(&mut verb.unwrap_or(command))
    })?;
    Ok(Parsed { cli: Cli { verb }, remark })
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

/// Runs the verb.
///
/// # Errors
/// Wrong use, wrong input, a file that cannot be written.
pub(crate) fn run(cli: Cli, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    match cli.verb {
        Verb::Compare(verb) => analyse::compare::run(&verb, tables),
        Verb::Simulate(verb) => analyse::simulate::run(&verb, tables),
        Verb::Plan(verb) => research::plan::run(&verb, tables),
        Verb::Check(verb) => data::check::run(&verb, tables),
        Verb::Explain(verb) => analyse::explain::run(&verb, tables, defaults),
        Verb::Tune(verb) => research::tune::run(&verb, tables),
        Verb::Bound(verb) => research::bound::run(&verb, tables),
        Verb::Import(verb) => data::import::run(&verb, tables),
        Verb::Export(verb) => data::export::run(&verb, tables),
        Verb::Generate(verb) => data::generate::run(&verb),
        Verb::Run(verb) => run::run::run(&verb, tables, defaults),
        Verb::Serve(verb) => service::serve::run(&verb, defaults),
        Verb::Submit(verb) => service::submit::run(&verb, defaults),
        Verb::Queue(verb) => service::queue::run(&verb, defaults),
        Verb::Top(verb) => service::top::run(&verb, defaults),
        Verb::Cancel(verb) => service::submission::cancel(&verb, defaults),
        Verb::Hold(verb) => service::submission::hold(&verb, defaults),
        Verb::Unhold(verb) => service::submission::unhold(&verb, defaults),
        Verb::Change(verb) => service::submission::change(&verb, defaults),
        Verb::Recurrences(verb) => service::schedules::run(&verb, defaults),
        Verb::Drain(verb) => service::drain::run(&verb, defaults),
        Verb::Token(verb) => service::token::run(&verb, defaults),
        Verb::Attach(verb) => setup::attach::run(&verb),
        Verb::Agent(verb) => Ok(run::agent::run(&verb)),
        Verb::Status(verb) => run::status::run(&verb, tables, defaults),
        Verb::Logs(verb) => run::logs::run(&verb, defaults),
        Verb::Clean(verb) => run::clean::run(&verb, defaults),
        Verb::History(verb) => run::history::run(&verb),
        Verb::Programs(verb) => run::programs::run(&verb),
        Verb::Repro(verb) => research::repro::run(&verb, tables),
        Verb::Policies(verb) => research::policies::run(&verb, tables),
        Verb::Config(verb) => setup::config::run(&verb, tables, defaults),
        Verb::Completions(verb) => setup::completions::run(&verb, command(tables)),
        Verb::Man(verb) => setup::man::run(&verb, command(tables)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_do_not_contradict_each_other() {
        super::command(&super::Tables::default()).debug_assert();
    }
}
