//! What makes a workload what it is, beyond its file: import options, another cluster, another
//! objective, deadlines. A schedule records all of it.

use anyhow::{Context, bail};
use clap::Args;
use slackline::import::{DeadlineCluster, SlotOptions, WorkloadOptions};
use slackline_model::draft::Weights;
use slackline_model::load::LoadBy;
use slackline_model::{Combine, Metric};
use slackline_trace::Importers;

use super::import::ImportFlags;
use super::value;

/// Flags that shape a workload. Nothing is filled in here, so that given values can be distinguished from
/// what was not; the library knows the defaults.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    /// Number of machines, instead of the workload's
    ///
    /// For `compare` and `capacity` several, such as 20,30,40; for `capacity` a range, such as 10..200.
    #[arg(long, value_name = "N", value_parser = value::machines, help_heading = "Workload")]
    pub(crate) machines: Option<value::Machines>,
    /// Map slots of each machine; with --reduce-slots
    ///
    /// Hadoop 1 has separate slots for maps and reduces.
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()), requires = "reduce_slots", help_heading = "Workload")]
    pub(crate) map_slots: Option<u32>,
    /// Reduce slots of each machine; with --map-slots
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>(0, u32::MAX.into()), requires = "map_slots", help_heading = "Workload")]
    pub(crate) reduce_slots: Option<u32>,
    /// Slots of each machine, shared by maps and reduces
    #[arg(long, value_name = "N", conflicts_with_all = ["map_slots", "total_slots"], value_parser = value::whole::<u32>(1, u32::MAX.into()), help_heading = "Workload")]
    pub(crate) slots: Option<u32>,
    /// Slots of the whole cluster, shared by maps and reduces
    ///
    /// They are divided evenly over --machines. Without --machines each machine has one slot.
    #[arg(long, hide_short_help = true, value_name = "N", conflicts_with = "map_slots", value_parser = value::whole::<u32>(1, u32::MAX.into()), help_heading = "Workload")]
    pub(crate) total_slots: Option<u32>,
    /// Speed of each machine: a task of s seconds takes s / V [default: 1]
    #[arg(long, hide_short_help = true, value_name = "V", value_parser = value::speed, help_heading = "Workload")]
    pub(crate) speed: Option<f64>,

    /// Cost of a flow in the objective [default: the workload's]
    ///
    /// With --deadlines, tardiness replaces response.
    #[arg(long, value_name = "METRIC", value_parser = value::metric(), help_heading = "Objective")]
    pub(crate) metric: Option<Metric>,
    /// Objective: sum or maximum of the costs
    #[arg(long, hide_short_help = true, value_name = "HOW", value_parser = value::combine(), help_heading = "Objective")]
    pub(crate) combine: Option<Combine>,
    /// Use or ignore the weights of flows
    #[arg(long, hide_short_help = true, value_name = "WHETHER", value_parser = value::weights(), help_heading = "Objective")]
    pub(crate) weights: Option<Weights>,
    /// Give every flow a deadline: F times its time alone
    ///
    /// The time alone is that on the workload's own cluster, before --machines, --slots and --speed. Without a
    /// cluster it is the critical path with unlimited slots. So deadlines are the same for every size and setting.
    #[arg(long, value_name = "F", value_parser = value::factor, help_heading = "Objective")]
    pub(crate) deadlines: Option<f64>,
    /// Number of machines for the times alone of --deadlines
    ///
    /// The machines have the slots of --slots, --map-slots or --total-slots, or else those of the workload.
    #[arg(long, hide_short_help = true, value_name = "MACHINES", requires = "deadlines", value_parser = value::whole::<u32>(1, u32::MAX.into()), help_heading = "Objective")]
    pub(crate) deadlines_on: Option<u32>,

    /// Multiply the load of the workload by F, as in 1.3
    ///
    /// Deadlines stay as they are at a load of 1. What a log recorded was at that load and is left out.
    #[arg(long, hide_short_help = true, value_name = "F", value_parser = value::load, help_heading = "Workload")]
    pub(crate) load: Option<f64>,
    /// What changes with --load [default: arrivals; size if times are by the clock]
    ///
    /// arrivals: flows come in less time, and deadlines keep their distance from the release. jobs: flows are copied or
    /// left out at random, and copies are released up to 5 % of the whole time earlier or later. size: more map tasks
    /// and longer reduce tasks. Dates stay.
    #[arg(long, hide_short_help = true, value_name = "WHAT", value_parser = value::load_by(), help_heading = "Workload")]
    pub(crate) load_by: Option<LoadBy>,

    #[command(flatten)]
    pub(crate) import: ImportFlags,

    /// Seed of all random numbers [default: 0]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = value::whole::<u64>(0, u64::MAX), help_heading = "Workload")]
    pub(crate) seed: Option<u64>,
}

impl Shape {
    /// The same with each of several numbers of machines, in rising order; itself where there is at most one.
    pub(crate) fn sizes(&self) -> Vec<Self> {
        match &self.machines {
            Some(value::Machines::List(sizes)) => {
                let of = |&n: &u32| Self { machines: Some(value::Machines::Range(n, n)), ..self.clone() };
                sizes.iter().map(of).collect()
            }
            _ => vec![self.clone()],
        }
    }

    /// The seed, 0 if none was given.
    pub(crate) fn root_seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The options, of one number of machines, where workloads may come in these formats.
    ///
    /// # Errors
    /// Several numbers of machines, or a range of them.
    pub(crate) fn options(&self, importers: &Importers) -> anyhow::Result<WorkloadOptions> {
        let machines = self.machines.as_ref().map(|machines| {
            machines.only().with_context(|| {
                format!(
                    "--machines: found {machines}, expected one number: `compare` and `capacity` take several, \
                     `capacity` takes a range"
                )
            })
        });
        let map_reduce = self.map_slots.zip(self.reduce_slots);
        if map_reduce == Some((0, 0)) {
            bail!("--map-slots: found 0 with --reduce-slots 0, expected at least one slot of either kind");
        }
        let map_reduce = map_reduce.map(|(map, reduce)| SlotOptions::MapReduce { map, reduce });
        let generic = self.slots.map(SlotOptions::Generic);
        let slots = map_reduce.or(generic).or(self.total_slots.map(SlotOptions::Total));
        Ok(WorkloadOptions {
            importers: importers.clone(),
            from: self.import.from.clone(),
            import: self.import.given.clone(),
            machines: machines.transpose()?,
            slots,
            speed: self.speed,
            metric: self.metric,
            combine: self.combine,
            weights: self.weights,
            deadlines: self.deadlines,
            deadlines_on: self.deadlines_on.map(|machines| DeadlineCluster { machines, slots }),
            load: self.load,
            load_by: self.load_by,
            seed: self.seed,
            ..WorkloadOptions::default()
        })
    }
}
