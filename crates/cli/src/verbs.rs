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
use std::fmt::Write;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use slackline_model::params::Param;

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

/// Schedules flows of MapReduce-style jobs with deadlines
#[derive(Debug, Parser)]
#[command(
    name = "slackline",
    version = VERSION,
    long_version = VERSION_LONG,
    max_term_width = 110,
    after_help = "\
Start here:
  slackline compare examples/nightly.toml
  slackline run examples/first-run.toml
  slackline COMMAND --help

Exit codes: 0 success, 1 the answer is no (a check or a flow failed), 2 wrong use or input, \
130 stopped."
)]
struct Program;

/// The program and its verb.
#[derive(Debug)]
pub(crate) struct Cli {
    verb: Verb,
}

/// The table of verbs, by the headings of the help: an enum that reads them, and their commands one by one. All
/// commands with all their flags take more time and memory than most verbs, and one is used.
macro_rules! verbs {
    ($($heading:literal: $($(#[doc = $about:literal])+ $verb:ident $name:literal ($args:ty),)+)+) => {
        #[derive(Debug, Subcommand)]
        enum Verb {
            $($($(#[doc = $about])+ #[command(name = $name)] $verb($args),)+)+
        }

        impl Verb {
            const NAMES: &[&str] = &[$($($name),+),+];

            /// The headings of the help, each with its verbs.
            const HEADINGS: &[(&str, &[&str])] = &[$(($heading, &[$($name),+])),+];

            /// Every command, with flags if `has_flags` says so of its name.
            fn commands(has_flags: impl Fn(&str) -> bool) -> impl Iterator<Item = clap::Command> {
                let command = move |name: &'static str, about: &'static str, add: AddFlags| {
                    let command = clap::Command::new(name);
                    if has_flags(name) { add(command) } else { command }.about(about.trim_start())
                };
                let all: [(_, _, AddFlags); _] =
                    [$($(($name, concat!($($about),+), <$args as clap::Args>::augment_args)),+),+];
                all.into_iter().map(move |(name, about, add)| command(name, about, add))
            }
        }
    };
}

/// Adds the flags of a verb to its command.
type AddFlags = fn(clap::Command) -> clap::Command;

verbs! {
    "Analyse":
    /// Compare policies on a workload
    Compare "compare" (analyse::compare::Compare),
    /// Simulate one policy, and write its schedule
    Simulate "simulate" (analyse::simulate::Simulate),
    /// Find how many machines or slots are needed, or the best setting
    Capacity "capacity" (analyse::capacity::Capacity),
    /// Explain why a flow waits, and what would meet its deadline
    Explain "explain" (analyse::explain::Explain),

    "Run":
    /// Run flows on this machine, over ssh, with Slurm or on Hadoop
    Run "run" (run::run::Run),
    /// Show the progress of a run
    Status "status" (run::status::Status),
    /// Print the logs of a job, and why its attempts failed
    Logs "logs" (run::logs::Logs),
    /// Show how long jobs took in earlier runs
    History "history" (run::history::History),
    /// Remove the files of finished runs, except outputs
    Clean "clean" (run::clean::Clean),

    "Service":
    /// Start a service that runs submitted flows
    Serve "serve" (service::serve::Serve),
    /// Submit a flow file to a service, once or on a schedule
    Submit "submit" (service::submit::Submit),
    /// Show the submissions of a service, and their progress
    Queue "queue" (service::queue::Queue),
    /// Watch a service on the terminal
    Top "top" (service::top::Top),
    /// Cancel, hold, resume or change submissions
    Submission "submission" (service::submission::Submission),
    /// List, run, pause, resume or remove schedules of submissions
    Schedule "schedule" (service::schedules::ScheduleVerb),
    /// Add and remove the tokens of users of a service
    Token "token" (service::token::Token),

    "Data":
    /// Convert a log or trace to a workload document
    Import "import" (data::import::Import),
    /// Convert a workload or schedule to timelines, charts or CSV
    Export "export" (data::export::Export),
    /// Generate a synthetic workload
    Generate "generate" (data::generate::Generate),
    /// Check whether a schedule is feasible and costs what it claims
    Check "check" (data::check::Check),

    "Research":
    /// Plan a workload before it runs: slots, tasks or progress
    Plan "plan" (research::plan::PlanVerb),
    /// Compute lower bounds on the cost of any schedule
    Bound "bound" (research::bound::Bound),
    /// Find the best split of map and reduce slots
    Tune "tune" (research::tune::Tune),
    /// Reproduce the figures of the papers
    Repro "repro" (research::repro::Repro),
    /// List the policies and their parameters
    Policies "policies" (research::policies::Policies),

    "Setup":
    /// Schedule the jobs of others on a Hadoop cluster
    Hadoop "hadoop" (setup::attach::Hadoop),
    /// Show the defaults, and where each comes from
    Config "config" (setup::config::Config),
    /// Print a completion script for a shell
    Completions "completions" (setup::completions::Completions),
    /// Print the manual page of the program or of a command
    Man "man" (setup::man::Man),

    "Internal":
    /// Run tasks for a run on another machine, which starts this
    Agent "agent" (run::agent::Agent),
}

/// The heading of verbs that people do not use.
const INTERNAL: &str = "Internal";

/// The help of the program: its verbs under their headings.
fn program_help(program: &clap::Command) -> String {
    let about = |name: &str| program.find_subcommand(name).and_then(clap::Command::get_about).cloned();
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, verbs) in Verb::HEADINGS.iter().filter(|(heading, _)| *heading != INTERNAL) {
        let _ = write!(text, "\n{heading}:\n");
        for verb in *verbs {
            let _ = writeln!(text, "  {verb:11}  {}", about(verb).unwrap_or_default());
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// The command line with everything that these tables name.
pub(crate) fn command(tables: &Tables) -> clap::Command {
    command_with(tables, |_| true)
}

/// The same, but only verbs with these names have their flags.
fn command_with(tables: &Tables, has_flags: impl Fn(&str) -> bool) -> clap::Command {
    let program = Program::command().subcommand_required(true).arg_required_else_help(true);
    let program = program.subcommands(Verb::commands(has_flags));
    let help = program_help(&program);
    program.help_template(help).mut_subcommands(|verb| {
        let is_internal = Verb::HEADINGS
            .iter()
            .any(|(heading, verbs)| *heading == INTERNAL && verbs.contains(&verb.get_name()));
        let verb = verb.hide(is_internal);
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
/// Arguments that are none; a request for help or the version.
pub(crate) fn parse(
    tables: &Tables,
    defaults: &Defaults,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Parsed, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let mut command = help::shown(defaults.apply(command_of(tables, &arguments)), &arguments, tables);
    let verb = arguments.get(1).and_then(|verb| verb.to_str()).map(str::to_owned);
    let mut matches = command
        .try_get_matches_from_mut(arguments)
        .map_err(|error| with_advice(error, verb.as_deref(), tables))?;
    let remark = defaults.remark(&matches);
    let name = matches.subcommand_name().map(str::to_owned);
    let verb = Verb::from_arg_matches_mut(&mut matches).map_err(|error| {
        let verb = name.as_deref().and_then(|verb| command.find_subcommand(verb).cloned());
        error.format(&mut verb.unwrap_or(command))
    })?;
    Ok(Parsed { cli: Cli { verb }, remark })
}

/// An error with advice: the policies, the other verb, the engine or the format that has an option, or the verb that
/// has a command.
fn with_advice(mut error: clap::Error, verb: Option<&str>, tables: &Tables) -> clap::Error {
    use ContextKind::{InvalidArg, InvalidSubcommand, Suggested, SuggestedArg, SuggestedSubcommand};
    let advice = match (error.kind(), error.get(InvalidArg), error.get(InvalidSubcommand)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(flags)), _) => flags
            .iter()
            .any(|flag| flag.starts_with("--policy "))
            .then(|| format!("the policies are {}", tables.policies.names().collect::<Vec<_>>().join(", "))),
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag)), _) => {
            verb_with_option(verb, flag).or_else(|| owner_of_option(verb, flag, tables))
        }
        (ErrorKind::InvalidSubcommand, _, Some(ContextValue::String(name))) => verb_with_command(name),
        _ => None,
    };
    if let Some(advice) = advice {
        error.remove(SuggestedArg);
        error.remove(SuggestedSubcommand);
        error.insert(Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    }
    error
}

/// Of `tune` and `capacity`, the other one if it has the option.
fn verb_with_option(verb: Option<&str>, flag: &str) -> Option<String> {
    let other = match verb? {
        "tune" => "capacity",
        "capacity" => "tune",
        _ => return None,
    };
    let command = Verb::commands(|name| name == other).find(|command| command.get_name() == other)?;
    let name = flag.trim_start_matches('-');
    let has_option = command.get_arguments().any(|arg| arg.get_long() == Some(name));
    has_option.then(|| format!("`slackline {other}` has {flag}"))
}

/// The engine or the format that has an option of this name.
fn owner_of_option(verb: Option<&str>, flag: &str, tables: &Tables) -> Option<String> {
    let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
    let has_it = |params: &[Param]| params.iter().any(|param| param.name == name);
    let (option, owner) = if matches!(verb?, "run" | "serve") {
        ("--engine", tables.engines.all().iter().find(|engine| has_it(engine.params))?.name)
    } else {
        ("--from", tables.importers.all().iter().find(|format| has_it(format.params))?.name)
    };
    Some(format!("an option of an engine or format follows its name: {option} {owner}:{name}=VALUE"))
}

/// The verb with a command of this name.
fn verb_with_command(name: &str) -> Option<String> {
    let verb = Verb::commands(|_| true).find(|verb| verb.find_subcommand(name).is_some())?;
    Some(format!("use `slackline {} {name}`", verb.get_name()))
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
        Verb::Capacity(verb) => analyse::capacity::run(&verb, tables),
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
        Verb::Submission(verb) => service::submission::run(&verb, defaults),
        Verb::Schedule(verb) => service::schedules::run(&verb, defaults),
        Verb::Token(verb) => service::token::run(&verb, defaults),
        Verb::Hadoop(verb) => setup::attach::run(&verb),
        Verb::Agent(verb) => Ok(run::agent::run(&verb)),
        Verb::Status(verb) => run::status::run(&verb, tables, defaults),
        Verb::Logs(verb) => run::logs::run(&verb, defaults),
        Verb::Clean(verb) => run::clean::run(&verb, defaults),
        Verb::History(verb) => run::history::run(&verb),
        Verb::Repro(verb) => research::repro::run(&verb, tables),
        Verb::Policies(verb) => research::policies::run(&verb, tables),
        Verb::Config(verb) => setup::config::run(&verb, tables, defaults),
        Verb::Completions(verb) => setup::completions::run(&verb, command(tables)),
        Verb::Man(verb) => setup::man::run(&verb, command(tables), tables),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_do_not_contradict_each_other() {
        super::command(&super::Tables::default()).debug_assert();
    }
}
