//! What a simulated cluster does beyond running every task for exactly its time, machines by name.

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

/// How to simulate, as it is said of any workload. Times are seconds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SimulationOptions {
    /// Machines report, and get work, only this often; 0 for at once.
    pub heartbeat: f64,
    /// The fraction of a job's maps after which its reduces may take slots; 1 for not early.
    pub slowstart: f64,
    /// Standard deviation of the logarithm of the factor by which estimates are off.
    pub noise: f64,
    /// What policies may know of durations.
    pub knowledge: KnowledgeOption,
    /// Standard deviation of the logarithm of the factor by which tasks take longer or shorter.
    pub jitter: f64,
    /// Machines that die.
    pub crashes: Vec<CrashAt>,
    /// Every machine dies by itself, instead of `crashes`.
    pub crash_rate: Option<CrashRate>,
    /// How long a task waits for a machine that has its input.
    pub locality_wait: f64,
    /// Files of plans to follow.
    pub plan_files: Vec<String>,
    /// Whether `auto` is told of all flows before they come.
    pub known_releases: bool,
    /// Whether to time decisions on the wall clock.
    pub timings: bool,
    /// How the cluster behaves, if not plainly. Schedules record it by itself.
    pub profile: Option<Profile>,
}

/// What a policy may know of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KnowledgeOption {
    /// The mean of each phase, and the machines' speeds.
    #[default]
    Mean,
    /// Each task, for policies that look at single tasks, and the machines' speeds.
    Exact,
    /// Neither durations nor speeds: only tasks that have finished, in this run or in earlier ones.
    Learned,
}

/// A machine that dies: `MACHINE@T`, or `MACHINE@T+D` if it comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct CrashAt {
    /// Name of the machine.
    pub machine: String,
    /// When it dies.
    pub at: f64,
    /// How long it is away; forever without it.
    pub away: Option<f64>,
}

/// Random machine failures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrashRate {
    /// Time up on average.
    pub between: f64,
    /// Time away.
    pub repair: f64,
}

impl Default for SimulationOptions {
    /// Exact durations and means, no early reduces, nothing fails.
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

impl KnowledgeOption {
    /// The name of the value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Exact => "exact",
            Self::Learned => "learned",
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
    /// Adds what shaped a run beyond its workload; what is at its default changes nothing and is left out. Of
    /// a history it is the hash that counts.
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

    /// Whether durations are others than the workload's.
    pub fn distorts(&self) -> bool {
        self.jitter > 0.0 || self.profile.as_ref().is_some_and(|profile| profile.spread() > 0.0)
    }

    /// Whether anything is drawn.
    pub fn draws(&self) -> bool {
        let profile = self.profile.as_ref().is_some_and(Profile::draws);
        self.noise > 0.0 || self.jitter > 0.0 || self.crash_rate.is_some() || profile
    }

    /// The options for an instance, prepared if there are plan files; `history` counts with
    /// [`KnowledgeOption::Learned`].
    ///
    /// # Errors
    /// A number outside its range; a crash of a machine that the cluster does not have, or that is down;
    /// plans that cannot be read or are of other flows; what does not go with the profile.
    pub fn resolve(&self, instance: &Instance, seed: u64, history: &History) -> Result<Options, ImportError> {
        self.check_profile()?;
        self.check_seconds()?;
        let mut options = Options {
            knowledge: match self.knowledge {
                KnowledgeOption::Mean => Knowledge::Mean,
                KnowledgeOption::Exact => Knowledge::Exact,
                KnowledgeOption::Learned => Knowledge::Learned(history.clone()),
            },
            sim: slackline_sim::Options::exact()
                .with_seed(Seed(seed))
                .with_heartbeat(Span::from_seconds_nearest(self.heartbeat))
                .with_jitter(self.jitter)
                .with_crashes(self.crashes(instance)?),
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

    /// Whether all seconds are such that they can be counted.
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

    /// Whether the parameters of the profile are given as such.
    fn check_profile(&self) -> Result<(), ImportError> {
        let Some(profile) = &self.profile else { return Ok(()) };
        let own = [
            ("heartbeat", self.heartbeat, "heartbeat"),
            ("jitter", self.jitter, "spread"),
            ("locality-wait", self.locality_wait, "node-delay"),
        ];
        let Some((option, value, param)) = own.into_iter().find(|own| own.1 > 0.0) else { return Ok(()) };
        let found = format!(
            "found {value} with --profile, expected it as a parameter of the profile ({}:{param}={value})",
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
        // What overlaps is refused with all other options.
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
        [] => return Err(ImportError::option("crash", "found no machines")),
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
    fn what_was_recorded_comes_back() {
        let given = WorkloadOptions {
            from: Some("swim".to_owned()),
            machines: Some(600),
            slots: Some(SlotOptions::Typed { map: 2, reduce: 1 }),
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
