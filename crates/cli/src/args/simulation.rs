//! What the simulated cluster does beyond running every task for exactly its time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use slackline::Chosen;
use slackline::sim::{Crash, Crashes};
use slackline::simulate::{Knowledge, Options};
use slackline::woha::{self, PlanFile};
use slackline_model::{FlowId, History, Instance, Seed, Span, Time};

use super::value::{self, CrashArg};
use crate::input::Source;

/// What a policy may know of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Known {
    /// The mean of each phase, and the machines' speeds
    Mean,
    /// Each task, for policies that look at single tasks (dmrs), and the machines' speeds
    Exact,
    /// Neither durations nor speeds: only tasks that have finished, in this run or in --history
    Learned,
}

impl Known {
    /// The name of the value.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Exact => "exact",
            Self::Learned => "learned",
        }
    }
}

/// Flags of the simulator.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Simulation")]
pub(crate) struct SimulationArgs {
    /// A phase given only as work is cut into equal tasks of at most this many seconds [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = value::seconds_above_zero)]
    pub(crate) grain: Option<f64>,
    /// Machines report, and get work, only this often; 0 for at once
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = value::pause)]
    pub(crate) heartbeat: f64,
    /// Reduces may take slots once this fraction of their job's maps is done, as in Hadoop; 1 for not early
    #[arg(long, value_name = "F", default_value = "1", value_parser = value::fraction)]
    pub(crate) slowstart: f64,
    /// Policies believe durations that are off by random factors: standard deviation of their logarithm
    #[arg(long, value_name = "X", default_value = "0", value_parser = value::deviation)]
    pub(crate) noise: f64,
    /// What policies may know of durations
    #[arg(long, value_enum, default_value = "mean")]
    pub(crate) knowledge: Known,
    /// What finished tasks took in earlier runs, for --knowledge learned; `simulate` adds this run's
    #[arg(long, value_name = "FILE")]
    pub(crate) history: Option<PathBuf>,
    /// Tasks really take longer or shorter by random factors (mean 1): standard deviation of their logarithm
    #[arg(long, value_name = "X", default_value = "0", value_parser = value::deviation)]
    pub(crate) jitter: f64,
    /// MACHINE dies at second T and, with +D, is back empty D seconds later; may be given several times
    #[arg(long, value_name = "MACHINE@T[+D]", value_delimiter = ',', value_parser = value::crash)]
    pub(crate) crash: Vec<CrashArg>,
    /// Every machine dies by itself, on average after this many seconds up
    #[arg(long, value_name = "SECONDS", conflicts_with = "crash", requires = "repair", value_parser = value::seconds_above_zero)]
    pub(crate) crash_rate: Option<f64>,
    /// How long a machine that died by --crash-rate is away
    #[arg(long, value_name = "SECONDS", requires = "crash_rate", value_parser = value::seconds_above_zero)]
    pub(crate) repair: Option<f64>,
    /// A task whose input lies on certain machines waits this long for one of them
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = value::pause)]
    pub(crate) locality_wait: f64,
    /// WOHA: follow the plans of FILE, as slackline plan --output writes them; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) plan_file: Vec<PathBuf>,
    /// Measure how long things really take; the output is then never the same twice
    #[arg(long)]
    pub(crate) timings: bool,
}

impl SimulationArgs {
    /// The options for an instance, and for a history where one is asked for.
    ///
    /// # Errors
    /// A crash of a machine that the cluster does not have; plans that are none or of other flows.
    pub(crate) fn options(
        &self,
        instance: &Instance,
        seed: u64,
        history: &History,
    ) -> anyhow::Result<Options> {
        Ok(Options {
            knowledge: match self.knowledge {
                Known::Mean => Knowledge::Mean,
                Known::Exact => Knowledge::Exact,
                Known::Learned => Knowledge::Learned(history.clone()),
            },
            sim: slackline::sim::Options {
                seed: Seed(seed),
                heartbeat: Span::from_seconds_nearest(self.heartbeat),
                jitter: self.jitter,
                crashes: self.crashes(instance)?,
            },
            slowstart: self.slowstart,
            noise: self.noise,
            locality_wait: Span::from_seconds_nearest(self.locality_wait),
            timings: self.timings,
            plans: self.plans(instance)?,
        })
    }

    /// Whether what policies may know was asked for in a way that makes sense.
    ///
    /// # Errors
    /// Flags that do not go together.
    pub(crate) fn check_knowledge(&self) -> anyhow::Result<()> {
        if self.knowledge == Known::Learned && self.noise > 0.0 {
            bail!(
                "--noise: found {} with --knowledge learned, expected 0: what is learned was measured (see --jitter)",
                self.noise
            );
        }
        if self.knowledge != Known::Learned && self.history.is_some() {
            bail!(
                "--history: found --knowledge {}, expected --knowledge learned with it",
                self.knowledge.name()
            );
        }
        Ok(())
    }

    /// The plans of all plan files.
    fn plans(&self, instance: &Instance) -> anyhow::Result<BTreeMap<FlowId, woha::Plan>> {
        let mut plans = BTreeMap::new();
        for path in &self.plan_file {
            let source = Source::read(path)?;
            PlanFile::decode(&source.bytes)
                .map_err(anyhow::Error::from)
                .and_then(|file| Ok(file.assign(instance, &mut plans)?))
                .with_context(|| source.name.clone())?;
        }
        Ok(plans)
    }

    /// Refuses plan files if none of the policies follows plans.
    ///
    /// # Errors
    /// Then.
    pub(crate) fn check_policies(&self, policies: &[Chosen]) -> anyhow::Result<()> {
        if self.plan_file.is_empty() || policies.iter().any(|policy| woha::generator(policy).is_some()) {
            return Ok(());
        }
        let found: Vec<&str> = policies.iter().map(Chosen::spec).collect();
        bail!("--plan-file: found policy {}, expected woha-hlf, woha-lpf or woha-mpf", found.join(", "))
    }

    fn crashes(&self, instance: &Instance) -> anyhow::Result<Crashes> {
        if let (Some(between), Some(repair)) = (self.crash_rate, self.repair) {
            return Ok(Crashes::Rate {
                between: Span::from_seconds_nearest(between),
                repair: Span::from_seconds_nearest(repair),
            });
        }
        let crash = |arg: &CrashArg| {
            let at = Time::from_seconds_nearest(arg.at);
            let back = arg.away.map(|away| at + Span::from_seconds_nearest(away));
            Ok(Crash { machine: machine(instance, &arg.machine)?, at, back })
        };
        let script = self.crash.iter().map(crash).collect::<anyhow::Result<Vec<_>>>()?;
        Crashes::script(script).map_err(|overlap| {
            let machine = instance.cluster().machine_name(overlap.machine);
            anyhow::anyhow!(
                "--crash: found {machine} dying at {} while it is down since {}, expected it to be back before",
                overlap.at,
                overlap.since
            )
        })
    }

    /// Whether anything is drawn.
    pub(crate) fn draws(&self) -> bool {
        self.noise > 0.0 || self.jitter > 0.0 || self.crash_rate.is_some()
    }
}

fn machine(instance: &Instance, name: &str) -> anyhow::Result<slackline_model::MachineId> {
    let cluster = instance.cluster();
    if let Some(machine) = cluster.machine_named(name) {
        return Ok(machine);
    }
    let groups = cluster.groups().iter().map(|group| match group.count {
        1 => group.name.clone(),
        n => format!("{0}-0 … {0}-{1}", group.name, n - 1),
    });
    let groups: Vec<String> = groups.collect();
    let Some(last) = groups.last() else { bail!("--crash: found no machines") };
    let known = if groups.len() > 5 { format!("{} … {last}", groups[0]) } else { groups.join(", ") };
    None.with_context(|| format!("--crash: found machine {name:?}, expected one of {known}"))
}
