//! What makes a workload what it is, beyond its file: import options, another cluster, another
//! objective, deadlines. A schedule records all of it.

use super::{ImportFlags, value};
use clap::Args;
use slackline_model::draft::Weights;
use slackline_model::{Combine, Metric};

/// Flags that shape a workload. Nothing is filled in here, so that what was said can be told from what was
/// not; [`crate::input`] knows the defaults.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// Number of machines, instead of the workload's
    #[arg(long, value_name = "N", value_parser = value::machines, help_heading = "Cluster")]
    pub(crate) machines: Option<value::Machines>,
    /// Map slots of each machine (Hadoop 1); goes with --reduce-slots
    #[arg(long, value_name = "N", requires = "reduce_slots", help_heading = "Cluster")]
    pub(crate) map_slots: Option<u32>,
    /// Reduce slots of each machine; goes with --map-slots
    #[arg(long, value_name = "N", requires = "map_slots", help_heading = "Cluster")]
    pub(crate) reduce_slots: Option<u32>,
    /// Universal slots of each machine, for maps and reduces alike
    #[arg(long, value_name = "N", conflicts_with_all = ["map_slots", "total_slots"], help_heading = "Cluster")]
    pub(crate) slots: Option<u32>,
    /// Universal slots of the whole cluster, spread evenly over --machines or else one a machine
    #[arg(long, value_name = "N", conflicts_with = "map_slots", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Cluster")]
    pub(crate) total_slots: Option<u32>,
    /// Speed of each machine: a task of s seconds takes s / V [default: 1]
    #[arg(long, value_name = "V", value_parser = value::speed, help_heading = "Cluster")]
    pub(crate) speed: Option<f64>,

    /// What a flow costs, instead of the workload's metric
    #[arg(long, value_name = "METRIC", value_parser = value::metric(), help_heading = "Objective")]
    pub(crate) metric: Option<Metric>,
    /// Whether the sum or the maximum of the costs is to be small
    #[arg(long, value_name = "HOW", value_parser = value::combine(), help_heading = "Objective")]
    pub(crate) combine: Option<Combine>,
    /// Whether weights count
    #[arg(long, value_name = "WHETHER", value_parser = value::weights(), help_heading = "Objective")]
    pub(crate) weights: Option<Weights>,
    /// Give every flow a deadline: its release + F times its time alone on the cluster
    #[arg(long, value_name = "F", value_parser = value::factor, help_heading = "Objective")]
    pub(crate) deadlines: Option<f64>,

    #[command(flatten)]
    pub(crate) import: ImportFlags,

    /// Seed of everything that is drawn [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

impl Shape {
    /// The seed, 0 if none was given.
    pub(crate) fn root_seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Everything given here, the rest from `other`. Slots count as one flag: a kind of slots given here
    /// leaves none of the other kind.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let slots =
            [self.map_slots, self.reduce_slots, self.slots, self.total_slots].iter().any(Option::is_some);
        let slot = |own: Option<u32>, other: Option<u32>| if slots { own } else { other };
        Self {
            import: self.import.or(other.import),
            machines: self.machines.or(other.machines),
            map_slots: slot(self.map_slots, other.map_slots),
            reduce_slots: slot(self.reduce_slots, other.reduce_slots),
            slots: slot(self.slots, other.slots),
            total_slots: slot(self.total_slots, other.total_slots),
            speed: self.speed.or(other.speed),
            metric: self.metric.or(other.metric),
            combine: self.combine.or(other.combine),
            weights: self.weights.or(other.weights),
            deadlines: self.deadlines.or(other.deadlines),
            seed: self.seed.or(other.seed),
        }
    }
}
