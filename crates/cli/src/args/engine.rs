//! The flags of engines: which one with its options, and the number of slots.

use anyhow::Context;
use clap::builder::PossibleValue;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use slackline::run::{Backend, EngineEntry, EngineSpec, Engines};
use slackline_model::draft::FailurePolicy;

use super::declared::{self, DeclaredParam, Table};
use super::listed::NamedValue;
use super::value;

/// The engine that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct EngineFlags {
    spec: EngineSpec,
    /// The parameters that were given beside it: the slots, and those of further flags for the same engine.
    given: Vec<(String, String)>,
}

impl EngineFlags {
    pub(crate) fn is_local(&self) -> bool {
        self.spec.name() == slackline_executor::engine::this_machine::ENTRY.name
    }

    /// Whether a switch was turned on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.spec.given().iter().chain(&self.given).any(|(given, value)| given == name && value == "on")
    }

    /// The engine with its parameters.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub(crate) fn spec(&self) -> anyhow::Result<EngineSpec> {
        Ok(self.spec.clone().with(self.given.clone())?)
    }

    /// Makes the engine.
    ///
    /// # Errors
    /// A flag of another engine; parameters that do not go together.
    pub(crate) fn make(&self) -> anyhow::Result<Box<dyn Backend>> {
        let spec = self.spec()?;
        spec.make().with_context(|| format!("engine {}", spec.name()))
    }
}

fn parser(engines: Engines) -> NamedValue<EngineSpec> {
    let name = |entry: &EngineEntry| PossibleValue::new(entry.name).help(entry.summary);
    let names: Vec<_> = engines.all().iter().map(name).collect();
    NamedValue::new(names, move |text| engines.parse(text))
}

/// A verb that runs flows, with the engines of this table and the flag of slots.
pub(crate) fn with_engines(verb: Command, engines: &Engines) -> Command {
    if !declared::takes::<EngineSpec>(&verb) {
        return verb;
    }
    let params = engines.all().iter().flat_map(|entry| entry.params.iter().map(move |param| (entry, param)));
    let slots = params.filter(|(_, param)| param.name == "slots").take(1);
    let slots = slots.map(|(entry, param)| DeclaredParam { owner: entry.name, params: entry.params, param });
    let verb = verb.mut_arg("engine", |engine| engine.value_parser(parser(engines.clone())));
    declared::with_flags(verb, Table::Engines, slots)
}

impl Args for EngineFlags {
    /// The flags of engines come from [`with_engines`].
    fn augment_args(command: Command) -> Command {
        let engines = Engines::default();
        let engine = Arg::new("engine")
            .long("engine")
            .value_name("ENGINE")
            .action(ArgAction::Append)
            .default_value(engines.all()[0].name)
            .value_parser(parser(engines))
            .help("Engine that runs the tasks")
            .long_help(
                "Engine that runs the tasks, with options as in local:slots=4,split=32MiB\n\n\
                 --engine NAME --help lists the options of an engine. If --engine is given several times, the options add up.",
            )
            .help_heading(Table::Engines.heading());
        command.arg(engine)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EngineFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut specs = matches.get_many::<EngineSpec>("engine").into_iter().flatten().cloned();
        let spec = specs.next().expect("invariant: it has a default");
        let mut given = declared::given(matches, Table::Engines);
        for other in specs {
            if other.name() != spec.name() {
                let what = format!("found the engines {} and {}, expected one\n", spec.name(), other.name());
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, what));
            }
            given.extend_from_slice(other.given());
        }
        Ok(Self { spec, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Result<String, String> {
        let command = EngineFlags::augment_args(Command::new("slackline").no_binary_name(true));
        let matches = with_engines(command, &Engines::default()).try_get_matches_from(arguments);
        let flags = matches.and_then(|matches| EngineFlags::from_arg_matches(&matches));
        let flags = flags.map_err(|error| error.to_string())?;
        flags.make().map(|engine| format!("{:?}", engine.description().options)).map_err(|e| format!("{e:#}"))
    }

    #[test]
    fn options_of_several_flags_add_up() {
        let one = options(&["--engine=local:map-slots=2,reduce-slots=1,speculate=on,split=1MiB"]);
        let two = ["--engine=local:map-slots=2,reduce-slots=1", "--engine", "local:split=1MiB,speculate=on"];
        assert_eq!(options(&two), one);
        assert!(one.unwrap().contains("MapReduce { map: 2, reduce: 1 }"));
        assert_eq!(options(&["--slots=2"]), options(&["--engine", "local:slots=2"]));
        assert_eq!(options(&[]), options(&["--engine", "local:timeout=none,speculate=off"]));
    }

    #[test]
    fn invalid_engine_flags_are_refused() {
        let error = |arguments: &[&str]| options(arguments).unwrap_err();
        assert!(error(&["--slots", "0"]).contains("expected processors or a whole number from 1 to 4096"));
        assert!(
            error(&["--engine=local:timeout=0"])
                .contains("expected none or seconds or a duration such as 90s, 1.5h or 2d, from 0.000001")
        );
        assert!(error(&["--slots=1", "--engine=local:map-slots=1,reduce-slots=1"]).contains("not both"));
        assert_eq!(
            error(&["--engine=local:map-slots=2"]),
            "engine local: found map-slots=2, expected reduce-slots with it"
        );
        assert!(error(&["--engine=local:slots=1", "--slots=2"]).contains("slots a second time"));
        assert!(
            error(&["--engine=local:hash=on", "--engine=ssh"])
                .contains("engines local and ssh, expected one")
        );
        assert!(error(&["--engine=mesos"]).contains(r#"found engine "mesos", expected "#));
    }
}

/// The rules for the tasks of real runs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Engine")]
pub(crate) struct TaskRules {
    /// Attempts of a task; if the last one fails, its job fails
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 4, value_parser = value::whole::<u16>(1, u16::MAX.into()))]
    pub(crate) attempts: u16,
    /// What happens to the rest of a flow when a job fails [default: continue]
    ///
    /// continue: everything runs that does not depend on the job. finish: running tasks end, and no other starts. stop:
    /// running tasks are killed. `failure_policy` in the `run` section of a job comes first.
    #[arg(long, hide_short_help = true, value_name = "POLICY", value_parser = value::failure_policy())]
    pub(crate) failure_policy: Option<FailurePolicy>,
    /// Fraction of finished maps at which reduces may take slots; 1 for all maps
    #[arg(long, hide_short_help = true, value_name = "F", default_value = "1", value_parser = value::fraction)]
    pub(crate) slowstart: f64,
}
