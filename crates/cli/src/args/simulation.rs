//! What the simulated cluster does beyond running every task for exactly its time.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use slackline::PolicySpec;
use slackline::import::{CrashAt, CrashRate, KnowledgeOption, SimulationOptions};

use super::value::{self, ProfileArg};

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Simulation")]
pub(crate) struct SimulationArgs {
    /// Longest task of phases that are given as work, in seconds [default: 10]
    ///
    /// A phase for which the workload has an amount of work and no tasks is cut into equal tasks of at most this duration.
    #[arg(long, hide_short_help = true, value_name = "DURATION", value_parser = value::seconds_above_zero)]
    pub(crate) grain: Option<f64>,
    /// Interval at which machines report and get tasks; 0 for at once
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "0", value_parser = value::pause)]
    pub(crate) heartbeat: f64,
    /// Share of maps before reduces start
    ///
    /// Reduces may take slots once this fraction of their job's maps has finished, as in Hadoop. With 1 they wait
    /// for all maps.
    #[arg(long, value_name = "F", default_value = "1", value_parser = value::fraction)]
    pub(crate) slowstart: f64,
    /// Error of the durations that policies know
    ///
    /// Policies see durations that are multiplied by random factors. X is the standard deviation of the logarithm
    /// of these factors.
    #[arg(long, hide_short_help = true, value_name = "X", default_value = "0", value_parser = value::deviation)]
    pub(crate) noise: f64,
    /// What policies know about durations
    #[arg(long, value_name = "KNOWLEDGE", default_value = "mean", value_parser = value::known())]
    pub(crate) knowledge: KnowledgeOption,
    /// History document of earlier simulations, for --knowledge learned
    ///
    /// JSON with the durations of finished tasks; `simulate` adds those of this simulation. A history of
    /// `run --history` is read, and never changed.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    /// Random spread of task durations
    ///
    /// Durations are multiplied by random factors with mean 1. X is the standard deviation of the logarithm of
    /// these factors.
    #[arg(long, hide_short_help = true, value_name = "X", default_value = "0", value_parser = value::deviation)]
    pub(crate) jitter: f64,
    /// MACHINE crashes at T, and is back after D
    ///
    /// Times are in seconds or have units, such as 2h+10m. Without +D the machine stays down. May be given several times.
    #[arg(long, hide_short_help = true, value_name = "MACHINE@T[+D]", value_delimiter = ',', value_parser = value::crash)]
    pub(crate) crash: Vec<CrashAt>,
    /// Crash machines at random: mean time between crashes of one machine
    #[arg(long, hide_short_help = true, value_name = "DURATION", conflicts_with = "crash", requires = "repair", value_parser = value::seconds_above_zero)]
    pub(crate) crash_rate: Option<f64>,
    /// How long a machine is down after a crash of --crash-rate
    #[arg(long, hide_short_help = true, value_name = "DURATION", requires = "crash_rate", value_parser = value::seconds_above_zero)]
    pub(crate) repair: Option<f64>,
    /// How the cluster behaves: plain or hadoop[:PARAMETER=VALUE]...
    #[arg(long, hide_short_help = true, value_name = "PROFILE", default_value = "plain", value_parser = value::profile, long_help = value::profile_help())]
    pub(crate) profile: ProfileArg,
    /// How long a task waits for a slot on a machine that has its input
    #[arg(long, hide_short_help = true, value_name = "DURATION", default_value = "0", value_parser = value::pause)]
    pub(crate) locality_wait: f64,
    /// auto: know all flows in advance, and use the best schedule of all policies, rules and a search
    #[arg(long, hide_short_help = true)]
    pub(crate) known_releases: bool,
    /// woha-…: follow the plans in FILE, which `slackline plan --output` writes; may be given several times
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) plan_file: Vec<PathBuf>,
    /// Measure the computing time of the policy and the simulation; the output then differs between runs
    #[arg(long, hide_short_help = true)]
    pub(crate) timings: bool,
}

impl SimulationArgs {
    /// The options as the library takes them.
    pub(crate) fn options(&self) -> SimulationOptions {
        let rate = self.crash_rate.zip(self.repair);
        let mut options = SimulationOptions::default();
        options.heartbeat = self.heartbeat;
        options.slowstart = self.slowstart;
        options.noise = self.noise;
        options.knowledge = self.knowledge;
        options.jitter = self.jitter;
        options.crashes.clone_from(&self.crash);
        options.crash_rate = rate.map(|(between, repair)| CrashRate { between, repair });
        options.locality_wait = self.locality_wait;
        options.plan_files = self.plan_file.iter().map(|path| path.display().to_string()).collect();
        options.known_releases = self.known_releases;
        options.timings = self.timings;
        options.profile.clone_from(&self.profile.0);
        options
    }

    /// Whether what policies may know was asked for in a way that makes sense.
    ///
    /// # Errors
    /// Flags that do not go together.
    pub(crate) fn check_knowledge(&self) -> anyhow::Result<()> {
        if self.knowledge == KnowledgeOption::Learned && self.noise > 0.0 {
            bail!(
                "--noise: found {} with --knowledge learned, expected 0: learned durations are measured, and --jitter varies them",
                self.noise
            );
        }
        if self.knowledge != KnowledgeOption::Learned && self.history.is_some() {
            bail!(
                "--history: found --knowledge {}, expected --knowledge learned with it",
                self.knowledge.name()
            );
        }
        Ok(())
    }

    /// Refuses plan files that no policy would follow, and knowledge that none would use.
    ///
    /// # Errors
    /// If plan files were given and none of the policies follows plans; the like of known releases.
    pub(crate) fn check_policies(&self, policies: &[PolicySpec]) -> anyhow::Result<()> {
        let found: Vec<&str> = policies.iter().map(PolicySpec::spec).collect();
        if self.known_releases && !policies.iter().any(PolicySpec::foresees) {
            bail!("--known-releases: found policy {}, expected auto", found.join(", "))
        }
        if self.plan_file.is_empty() || policies.iter().any(PolicySpec::follows_plans) {
            return Ok(());
        }
        bail!("--plan-file: found policy {}, expected woha-hlf, woha-lpf or woha-mpf", found.join(", "))
    }
}
