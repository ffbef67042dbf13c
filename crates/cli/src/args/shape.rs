//! What makes a workload what it is, beyond its file: import options, another cluster, another
//! objective, deadlines. A schedule records all of it.

use clap::Args;
use slackline_model::draft::Weights;
use slackline_model::{Combine, Metric};
use slackline_trace::Format;

use super::value;

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

    /// Format of the workload [default: guessed from the name and the content]
    #[arg(long, value_name = "FORMAT", value_parser = value::format(), help_heading = "Import")]
    pub(crate) from: Option<Format>,
    /// Trace: bytes of input a map reads [default: 128MiB]
    #[arg(long, value_name = "BYTES", value_parser = value::import("split"), help_heading = "Import")]
    pub(crate) split: Option<String>,
    /// Trace: bytes of shuffle and output a reduce handles [default: 1GiB]
    #[arg(long, value_name = "BYTES", value_parser = value::import("reduce-bytes"), help_heading = "Import")]
    pub(crate) reduce_bytes: Option<String>,
    /// Trace: most reduces of a job, or none [default: 1000]
    #[arg(long, value_name = "N", value_parser = value::import("reduces-max"), help_heading = "Import")]
    pub(crate) reduces_max: Option<String>,
    /// Trace: where durations come from: lognormal (a draw a job and phase) or rate (bytes over rates)
    /// [default: lognormal]
    #[arg(long, value_name = "MODEL", value_parser = value::import("durations"), help_heading = "Import")]
    pub(crate) durations: Option<String>,
    /// Durations by rate: seconds before a task does anything [default: 2]
    #[arg(long, value_name = "SECONDS", value_parser = value::import("task-startup"), help_heading = "Import")]
    pub(crate) task_startup: Option<String>,
    /// Durations by rate: bytes a map reads a second [default: 32MiB]
    #[arg(long, value_name = "BYTES", value_parser = value::import("map-rate"), help_heading = "Import")]
    pub(crate) map_rate: Option<String>,
    /// Durations by rate: bytes a reduce fetches a second [default: 16MiB]
    #[arg(long, value_name = "BYTES", value_parser = value::import("shuffle-rate"), help_heading = "Import")]
    pub(crate) shuffle_rate: Option<String>,
    /// Durations by rate: bytes a task writes a second [default: 24MiB]
    #[arg(long, value_name = "BYTES", value_parser = value::import("output-rate"), help_heading = "Import")]
    pub(crate) output_rate: Option<String>,
    /// WOHA workflows: inputs that no job writes and no dataset declares: refuse or assume [default: refuse]
    #[arg(long, value_name = "WHAT", value_parser = value::import("missing-inputs"), help_heading = "Import")]
    pub(crate) missing_inputs: Option<String>,
    /// Oozie: job.properties of the workflow
    #[arg(long, value_name = "FILE", value_parser = value::text_of, help_heading = "Import")]
    pub(crate) properties: Option<String>,
    /// Oozie: TOML or JSON with the task counts and seconds of actions, which a workflow does not say
    #[arg(long, value_name = "FILE", value_parser = value::text_of, help_heading = "Import")]
    pub(crate) actions: Option<String>,
    /// Oozie: which way to go at decisions [default: the default of each]
    #[arg(long, value_name = "DECISION=TARGET,…", value_parser = value::import("cases"), help_heading = "Import")]
    pub(crate) cases: Option<String>,
    /// WfFormat: factor on all runtimes [default: 1]
    #[arg(long, value_name = "F", value_parser = value::import("runtime-scale"), help_heading = "Import")]
    pub(crate) runtime_scale: Option<String>,

    /// Seed of everything that is drawn [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

impl Shape {
    /// The seed, 0 if none was given.
    pub(crate) fn root_seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// Import options that were given, by their names.
    pub(crate) fn import(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("split", &self.split),
            ("reduce-bytes", &self.reduce_bytes),
            ("reduces-max", &self.reduces_max),
            ("durations", &self.durations),
            ("task-startup", &self.task_startup),
            ("map-rate", &self.map_rate),
            ("shuffle-rate", &self.shuffle_rate),
            ("output-rate", &self.output_rate),
            ("missing-inputs", &self.missing_inputs),
            ("properties", &self.properties),
            ("actions", &self.actions),
            ("cases", &self.cases),
            ("runtime-scale", &self.runtime_scale),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))).collect()
    }

    /// The flags that name files, whose texts a schedule records, so that the files are not needed again.
    pub(crate) fn texts(&mut self) -> [(&'static str, &mut Option<String>); 2] {
        [("properties", &mut self.properties), ("actions", &mut self.actions)]
    }

    /// Everything given here, the rest from `other`. Slots count as one flag: a kind of slots given here
    /// leaves none of the other kind.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        let slots =
            [self.map_slots, self.reduce_slots, self.slots, self.total_slots].iter().any(Option::is_some);
        let slot = |own: Option<u32>, other: Option<u32>| if slots { own } else { other };
        Self {
            from: self.from.or(other.from),
            split: self.split.or(other.split),
            reduce_bytes: self.reduce_bytes.or(other.reduce_bytes),
            reduces_max: self.reduces_max.or(other.reduces_max),
            durations: self.durations.or(other.durations),
            task_startup: self.task_startup.or(other.task_startup),
            map_rate: self.map_rate.or(other.map_rate),
            shuffle_rate: self.shuffle_rate.or(other.shuffle_rate),
            output_rate: self.output_rate.or(other.output_rate),
            missing_inputs: self.missing_inputs.or(other.missing_inputs),
            properties: self.properties.or(other.properties),
            actions: self.actions.or(other.actions),
            cases: self.cases.or(other.cases),
            runtime_scale: self.runtime_scale.or(other.runtime_scale),
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
