//! The flags of `compare`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValue;
use slackline::import::PieceSpan;
use slackline::report::comparison;

use crate::args::listed::NamedValue;
use crate::args::seeds::SeedArgs;
use crate::args::{
    OutputArgs, PolicyTimeout, ReportArgs, Shape, SimulationArgs, TableArgs, path, policy, value,
};

#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  slackline compare examples/nightly.toml
  slackline compare examples/nightly.toml -p fifo,fair:by=flow,edf
  slackline compare examples/nightly.toml --jitter 0.3
  slackline compare examples/nightly.toml --jitter 0.3 --seeds 20 --flows
  slackline compare examples/nightly.toml -p all --timeout 5m
  slackline compare examples/nightly.toml -p fair,edf --machines 6,8,10
  slackline compare trace.tsv --by size --machines 600 --slots 3 --deadlines 3
  slackline compare week.jsonl --each day -p fifo,edf,auto
  slackline compare monday.swf tuesday.swf wednesday.swf -p fifo,fair

The gap is the difference between the cost and a lower bound on the cost of any schedule: no policy can be \
better by more. On a terminal each policy is shown as soon as it ends. Where anything is drawn (task times, a profile, \
--noise, --jitter, --crash-rate), 10 to 20 seeds are simulated, until the 95 % interval of each difference is at most 2 % of \
the value wide. Every policy gets the same draws, so differences to the first policy are paired by seed. Rows \
that cannot be distinguished from the best one share its mark. Of several workloads, and of the days of --each, each is one \
sample, with the mean of its seeds. Rank: fewer missed deadlines, then less tardiness in total; without deadlines, less \
cost. With several --machines there is a \
row for each size and policy (with --seeds a table for each size). The deadlines of --deadlines F are the same \
for all sizes. A --history is only read, so every simulation starts with the same one.")]
pub(crate) struct Compare {
    /// Workload document or trace; - for standard input
    ///
    /// With several, figures are means over all of them.
    #[arg(value_name = "WORKLOAD", required = true)]
    pub(super) workloads: Vec<PathBuf>,
    /// Policies, or all [default: fifo,fair,edf,auto]
    ///
    /// As in fifo,fair:by=flow. The default has edf only if flows have deadlines. If the folder of a Hadoop
    /// log has capacity-scheduler.xml or fair-scheduler.xml, that scheduler replaces fifo. If the log has
    /// recorded times, recorded comes first. all means the baselines and the policies of the papers; name rule,
    /// auto and Hadoop's schedulers in addition, as in all,auto. Everything after command: is one program with its
    /// arguments, also commas.
    #[arg(long, short, value_name = "P,Q", value_parser = policy::several_of_standard(), help_heading = "Policy")]
    pub(super) policies: Vec<policy::PolicyList>,
    /// Time limit for the simulation of each policy
    ///
    /// A simulation that takes longer is stopped, and its row says so (exit code 1). The others continue.
    #[arg(long, hide_short_help = true, value_name = "DURATION", value_parser = value::seconds_above_zero, help_heading = "Policy")]
    pub(super) timeout: Option<f64>,
    #[command(flatten)]
    pub(super) answers: PolicyTimeout,
    #[command(flatten)]
    pub(super) shape: Shape,
    #[command(flatten)]
    pub(super) simulation: SimulationArgs,
    #[command(flatten)]
    pub(super) seeds: SeedArgs,
    /// Cut the workload into days, weeks or other pieces, and average over them
    ///
    /// day, week, or a duration such as 6h. A piece has the flows that are released in it. Days are from midnight
    /// to midnight if the workload has a start date. Each piece starts on an empty cluster, so unfinished work of
    /// the day before is not counted.
    #[arg(long, hide_short_help = true, value_name = "day|DURATION", value_parser = str::parse::<PieceSpan>, help_heading = "Simulation")]
    pub(super) each: Option<PieceSpan>,
    /// Policies that are simulated at a time [default: one per processor]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u16>(1, u16::MAX.into()), help_heading = "Simulation")]
    pub(super) threads: Option<u16>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// A row for each policy and pool, user or size class
    ///
    /// Queues and partitions of logs are pools; `queue` is another name for `pool`. Size classes are powers of ten
    /// of slot-seconds. JSON always has all groups.
    #[arg(long, value_name = "WHAT", value_parser = group(), help_heading = "Output")]
    pub(super) by: Option<&'static str>,
    #[command(flatten)]
    pub(super) table: TableArgs,
    /// Show each flow: its chance to meet its deadline, and its completion
    ///
    /// The chance, the median and the 80 % interval of the completion are over the seeds, from 20 on (--seeds 20).
    #[arg(long, conflicts_with = "by", help_heading = "Output")]
    pub(super) flows: bool,
    /// Write a row for each file, seed and policy to FILE (.csv or .jsonl)
    #[arg(long, hide_short_help = true, value_name = "FILE", value_parser = path::rows_file, help_heading = "Output")]
    pub(super) raw: Option<PathBuf>,
    /// Write a row for each flow of each file, seed and policy to FILE (.csv or .jsonl)
    #[arg(long, hide_short_help = true, value_name = "FILE", value_parser = path::rows_file, help_heading = "Output")]
    pub(super) raw_flows: Option<PathBuf>,
    /// Write every schedule as DIR/POLICY.json
    ///
    /// Each file is written when its policy ends. Of several seeds it has the first one; with --seeds N all are written,
    /// as DIR/POLICY-seedK.json. Without this option no schedule is kept, which takes less memory.
    #[arg(long, hide_short_help = true, value_name = "DIR", help_heading = "Output")]
    pub(super) schedules: Option<PathBuf>,
    #[command(flatten)]
    pub(super) report: ReportArgs,
}

fn group() -> NamedValue<&'static str> {
    // Hadoop's word for a pool.
    let name = |by: &'static str| match by {
        "pool" => PossibleValue::new(by).alias("queue"),
        _ => PossibleValue::new(by),
    };
    NamedValue::of("group", comparison::GROUPS.map(|by| (name(by), by)))
}

impl Compare {
    /// Whether results of single flows are asked for.
    pub(super) fn needs_flows(&self) -> bool {
        self.flows || self.raw_flows.is_some()
    }
}
