//! The behaviour of a simulated cluster beyond exact durations, with machines by name.

use std::collections::BTreeMap;
use std::fmt;

use slackline_model::time::SECONDS_MAX;
use slackline_model::{FlowId, History, Instance, MachineId, Profile, Seed, Span, Time};
use slackline_sim::{Crash, Crashes};

use super::error::ImportError;
use super::recorded_options::{RecordedOptions, put};
use super::source::Source;
use crate::simulate::{Knowledge, Options, WrongOption, check_number};
use crate::woha::{Plan, PlanFile};

/// Simulation options that apply to any workload. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SimulationOptions {
    /// The interval at which machines report and get work; 0 for immediately.
    pub heartbeat: f64,
    /// The fraction of a job's maps that must be finished before its reduces may take slots; 1 for all maps.
    pub slowstart: f64,
    /// The standard deviation of the logarithm of the error factor of estimates.
    pub noise: f64,
    /// The knowledge of policies about durations.
    pub knowledge: KnowledgeOption,
    /// The standard deviation of the logarithm of the factor that distorts task durations.
    pub jitter: f64,
    /// The machine failures.
    pub crashes: Vec<CrashAt>,
    /// Random failures of every machine, instead of `crashes`.
    pub crash_rate: Option<CrashRate>,
    /// The time that a task waits for a machine that has its input.
    pub locality_wait: f64,
    /// The plan files to follow.
    pub plan_files: Vec<String>,
    /// Whether `auto` knows all flows in advance.
    pub known_releases: bool,
    /// Whether to time decisions on the wall clock.
    pub timings: bool,
    /// The behaviour of the cluster, if not the plain one. Schedules record it separately.
    pub profile: Option<Profile>,
}

slackline_model::named_enum! {
    /// The knowledge of a policy about durations.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum KnowledgeOption {
        /// The mean of each phase, and the speeds of machines.
        #[default]
        Mean = "mean",
        /// The duration of each task, for policies that use it, and the speeds of machines.
        Exact = "exact",
        /// No durations and no speeds: only finished tasks, of this run or of earlier ones.
        Learned = "learned",
    }
}

/// A machine failure: `MACHINE@T`, or `MACHINE@T+D` if the machine returns.
#[derive(Clone, Debug, PartialEq)]
pub struct CrashAt {
    /// The name of the machine.
    pub machine: String,
    /// The time of the failure.
    pub at: f64,
    /// The time until it returns; `None` if it never does.
    pub away: Option<f64>,
}

/// Random machine failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrashRate {
    /// The mean time between failures.
    pub between: f64,
    /// The time until the machine returns.
    pub repair: f64,
}

impl Default for SimulationOptions {
    /// Exact durations and means, slowstart 1, and no failures.
    fn default() -> Self {
        Self {
            heartbeat: 0.0,
            slowstart: 1.0,
            noise: 0.0,
            knowledge: KnowledgeOption::Mean,
            jitter: 0.0,
            crashes: Vec::new(),
            crash_rate: None,
            locality_wait: 0.0,
            plan_files: Vec::new(),
            known_releases: false,
            timings: false,
            profile: None,
        }
    }
}

impl fmt::Display for CrashAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.machine, self.at)?;
        self.away.map_or(Ok(()), |away| write!(f, "+{away}"))
    }
}

impl SimulationOptions {
    /// Records the options that differ from their defaults. A history is recorded by its hash.
    pub fn record(&self, options: &mut RecordedOptions, history_sha256: Option<&str>) {
        let above_zero = |value: f64| Some(value).filter(|value| *value > 0.0);
        put(options, "heartbeat", above_zero(self.heartbeat));
        put(options, "slowstart", Some(self.slowstart).filter(|f| *f < 1.0));
        put(options, "noise", above_zero(self.noise));
        put(options, "knowledge", Some(self.knowledge.name()));
        put(options, "history", history_sha256);
        put(options, "jitter", above_zero(self.jitter));
        let crashes: Vec<String> = self.crashes.iter().map(ToString::to_string).collect();
        put(options, "crash", Some(crashes.join(",")).filter(|crashes| !crashes.is_empty()));
        put(options, "crash-rate", self.crash_rate.map(|rate| rate.between));
        put(options, "repair", self.crash_rate.map(|rate| rate.repair));
        put(options, "locality-wait", above_zero(self.locality_wait));
        put(options, "profile", self.profile.as_ref());
        put(options, "known-releases", Some("yes").filter(|_| self.known_releases));
        put(options, "plan-file", Some(self.plan_files.join(",")).filter(|plans| !plans.is_empty()));
    }

    /// Whether durations differ from those of the workload.
    pub fn distorts(&self) -> bool {
        self.jitter > 0.0 || self.profile.as_ref().is_some_and(|profile| profile.spread() > 0.0)
    }

    /// Whether anything is random.
    pub fn draws(&self) -> bool {
        let profile = self.profile.as_ref().is_some_and(Profile::draws);
        self.noise > 0.0 || self.jitter > 0.0 || self.crash_rate.is_some() || profile
    }

    /// Resolves the options for an instance, which must be prepared if there are plan files. `history` is
    /// used with [`KnowledgeOption::Learned`].
    ///
    /// # Errors
    /// A number out of range; a failure of a machine that does not exist or is down; plans that cannot be
    /// read or belong to other flows; options that are incompatible with the profile.
    pub fn resolve(&self, instance: &Instance, seed: u64, history: &History) -> Result<Options, ImportError> {
        self.check_profile()?;
        self.check_seconds()?;
        let mut options = Options {
            knowledge: match self.knowledge {
                KnowledgeOption::Mean => Knowledge::Mean,
                KnowledgeOption::Exact => Knowledge::Exact,
                KnowledgeOption::Learned => Knowledge::Learned(history.clone()),
            },
            sim: slackline_sim::Options {
                seed: Seed(seed),
                heartbeat: Span::from_seconds_nearest(self.heartbeat),
                jitter: self.jitter,
                crashes: self.crashes(instance)?,
                ..slackline_sim::Options::exact()
            },
            slowstart: self.slowstart,
            noise: self.noise,
            locality_wait: Span::from_seconds_nearest(self.locality_wait),
            known_releases: self.known_releases,
            timings: self.timings,
            plans: self.plans(instance)?,
        };
        if self.profile.is_some() {
            options.sim = options.sim.with_profile(self.profile.clone());
        }
        options.check(instance)?;
        Ok(options)
    }

    /// Checks that all times are in range.
    fn check_seconds(&self) -> Result<(), WrongOption> {
        let pauses = [("heartbeat", self.heartbeat), ("locality-wait", self.locality_wait)];
        let crashes = self.crashes.iter().map(|crash| ("crash", crash.at));
        for (option, seconds) in pauses.into_iter().chain(crashes) {
            check_number(option, seconds, 0.0, SECONDS_MAX)?;
        }
        let away = self.crashes.iter().filter_map(|crash| Some(("crash", crash.away?)));
        let rate = self.crash_rate.map(|rate| [("crash-rate", rate.between), ("repair", rate.repair)]);
        for (option, seconds) in away.chain(rate.into_iter().flatten()) {
            check_number(option, seconds, 1e-6, SECONDS_MAX)?;
        }
        Ok(())
    }

    /// Refuses options that are parameters of the profile.
    fn check_profile(&self) -> Result<(), ImportError> {
        let Some(profile) = &self.profile else { return Ok(()) };
        let own = [
            ("heartbeat", self.heartbeat, "heartbeat"),
            ("jitter", self.jitter, "spread"),
            ("locality-wait", self.locality_wait, "node-delay"),
        ];
        let Some((option, value, param)) = own.into_iter().find(|own| own.1 > 0.0) else { return Ok(()) };
        let found = format!(
            "found {value} with --profile, expected a parameter of the profile instead ({}:{param}={value})",
            profile.name()
        );
        Err(ImportError::option(option, found))
    }

    /// The plans of all plan files.
    fn plans(&self, instance: &Instance) -> Result<BTreeMap<FlowId, Plan>, ImportError> {
        let mut plans = BTreeMap::new();
        for path in &self.plan_files {
            let Source { name, bytes, .. } = Source::read(path.as_ref())?;
            match PlanFile::decode(&bytes).map(|file| file.assign(instance, &mut plans)) {
                Ok(Ok(())) => {}
                Ok(Err(problem)) => return Err(ImportError::PlanMismatch { name, problem }),
                Err(problem) => return Err(ImportError::PlanFile { name, problem }),
            }
        }
        Ok(plans)
    }

    fn crashes(&self, instance: &Instance) -> Result<Crashes, ImportError> {
        if let Some(rate) = self.crash_rate {
            return Ok(Crashes::Rate {
                between: Span::from_seconds_nearest(rate.between),
                repair: Span::from_seconds_nearest(rate.repair),
            });
        }
        let crash = |crash: &CrashAt| {
            let at = Time::from_seconds_nearest(crash.at);
            let back = crash.away.map(|away| at + Span::from_seconds_nearest(away));
            Ok(Crash { machine: machine(instance, &crash.machine)?, at, back })
        };
        let script = self.crashes.iter().map(crash).collect::<Result<Vec<_>, ImportError>>()?;
        // An overlap is refused later, together with all other invalid options.
        Ok(Crashes::script(script.clone()).unwrap_or(Crashes::Script(script)))
    }
}

fn machine(instance: &Instance, name: &str) -> Result<MachineId, ImportError> {
    let cluster = instance.cluster();
    if let Some(machine) = cluster.machine_named(name) {
        return Ok(machine);
    }
    let groups = cluster.groups().iter().map(|group| match group.count {
        1 => group.name.clone(),
        n => format!("{0}-0 … {0}-{1}", group.name, n - 1),
    });
    let groups: Vec<String> = groups.collect();
    let known = match groups.as_slice() {
        [] => return Err(ImportError::option("crash", "the cluster has no machines")),
        [first, .., last] if groups.len() > 5 => format!("{first} … {last}"),
        all => all.join(", "),
    };
    Err(ImportError::option("crash", format!("found machine {name:?}, expected one of {known}")))
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::Weights;
    use slackline_model::{Combine, Metric};
    use slackline_trace::Importers;

    use super::*;
    use crate::import::recorded_options::{add_budget, add_grain};
    use crate::import::{SlotOptions, WorkloadOptions};

    #[test]
    fn recorded_options_are_read_back() {
        let given = WorkloadOptions {
            from: Some("swim".to_owned()),
            machines: Some(600),
            slots: Some(SlotOptions::MapReduce { map: 2, reduce: 1 }),
            speed: Some(0.1),
            metric: Some(Metric::Tardiness),
            combine: Some(Combine::Max),
            weights: Some(Weights::Ignore),
            deadlines: Some(3.0),
            ..WorkloadOptions::default()
        };
        let simulation = SimulationOptions {
            heartbeat: 3.0,
            slowstart: 0.05,
            knowledge: KnowledgeOption::Learned,
            jitter: 0.25,
            crashes: vec![
                CrashAt { machine: "a-1".to_owned(), at: 5.0, away: Some(60.0) },
                CrashAt { machine: "b".to_owned(), at: 7.0, away: None },
            ],
            crash_rate: Some(CrashRate { between: 100.0, repair: 5.5 }),
            ..SimulationOptions::default()
        };
        let mut options = given.record(BTreeMap::new());
        simulation.record(&mut options, Some("00ff"));
        add_grain(&mut options, Span(7_500_000));
        add_budget(&mut options, Some(0.5));
        let (read, grain) = WorkloadOptions::read(&options, &Importers::default()).unwrap();
        assert_eq!(read.slots, given.slots);
        assert_eq!((read.record(BTreeMap::new()), grain), (given.record(BTreeMap::new()), Some(7.5)));
        assert_eq!(options["machines"], 600);
        assert_eq!((&options["knowledge"], &options["history"]), (&"learned".into(), &"00ff".into()));
        assert_eq!(options["crash"], "a-1@5+60,b@7");
        assert_eq!((&options["crash-rate"], &options["repair"]), (&100.into(), &5.5.into()));
    }
}
