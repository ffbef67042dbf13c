//! Options that shape a workload: import options, another cluster, another objective, deadlines. A schedule
//! records all of them.

use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, Weights};
use slackline_model::load::LoadBy;
use slackline_model::{Combine, Draft, Metric, Objective};
use slackline_trace::{Importers, Parameters};

use super::error::{ImportError, MissingOption};

/// The largest factor for deadlines.
pub(super) const DEADLINES_MAX: f64 = 1e9;

/// Options that shape a workload. Options that are not given are taken from the document.
#[derive(Clone, Debug, Default)]
pub struct WorkloadOptions {
    /// The formats that workloads may have.
    pub importers: Importers,
    /// The format of the workload; by default it is guessed from the name and the content.
    pub from: Option<String>,
    /// Options of importers, by name.
    pub import: Vec<(String, String)>,
    /// Values of the parameters that a Slackline document declares. They do not affect simulations, and no
    /// schedule records them.
    pub parameters: Parameters,
    /// Number of machines.
    pub machines: Option<u32>,
    /// Slots.
    pub slots: Option<SlotOptions>,
    /// Speed of each machine.
    pub speed: Option<f64>,
    /// The cost of a flow.
    pub metric: Option<Metric>,
    /// Whether to minimize the sum or the maximum of the costs.
    pub combine: Option<Combine>,
    /// Whether weights count.
    pub weights: Option<Weights>,
    /// If given, the deadline of every flow is its release plus this factor times its time alone on the
    /// workload's own cluster, or with unlimited slots if the workload has no cluster. The options for the
    /// cluster of a simulation do not change deadlines.
    pub deadlines: Option<f64>,
    /// Another cluster for these times alone.
    pub deadlines_on: Option<DeadlineCluster>,
    /// The load, as a multiple of that of the workload; deadlines by factor stay those of the workload.
    pub load: Option<f64>,
    /// What changes with the load; by default sizes where deadlines are by the clock, arrivals otherwise.
    pub load_by: Option<LoadBy>,
    /// The seed of all random draws.
    pub seed: Option<u64>,
}

/// The slots of a cluster of equal machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOptions {
    /// Slots of each kind on each machine.
    MapReduce {
        /// Map slots.
        map: u32,
        /// Reduce slots.
        reduce: u32,
    },
    /// Slots of each machine, shared by maps and reduces.
    Generic(u32),
    /// Slots in total, for maps and reduces alike. They are spread evenly over the machines, or there is one
    /// machine per slot.
    Total(u32),
}

/// The cluster for the times alone that deadlines are multiples of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineCluster {
    /// Number of machines.
    pub machines: u32,
    /// Slots; by default those of the machines of the workload.
    pub slots: Option<SlotOptions>,
}

impl WorkloadOptions {
    /// The seed; 0 by default.
    pub fn root_seed(&self) -> u64 {
        self.seed.unwrap_or(0)
    }

    /// The objective of a workload whose document has the objective `own`. With `--deadlines` the question is about
    /// deadlines, so tardiness replaces response, which is also the metric of documents that name none.
    pub(super) fn objective(&self, own: Objective) -> Objective {
        let usual = match (self.deadlines, own.metric) {
            (Some(_), Metric::Response) => Metric::Tardiness,
            (_, metric) => metric,
        };
        Objective::new(self.metric.unwrap_or(usual), self.combine.unwrap_or(own.combine))
    }

    /// Takes missing options from `other`, except for the formats.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut import = self.import;
        let more: Vec<_> =
            other.import.into_iter().filter(|(name, _)| import.iter().all(|(own, _)| own != name)).collect();
        import.extend(more);
        Self {
            importers: self.importers,
            from: self.from.or(other.from),
            import,
            parameters: if self.parameters.is_empty() { other.parameters } else { self.parameters },
            machines: self.machines.or(other.machines),
            slots: self.slots.or(other.slots),
            speed: self.speed.or(other.speed),
            metric: self.metric.or(other.metric),
            combine: self.combine.or(other.combine),
            weights: self.weights.or(other.weights),
            deadlines: self.deadlines.or(other.deadlines),
            deadlines_on: self.deadlines_on.or(other.deadlines_on),
            load: self.load.or(other.load),
            load_by: self.load_by.or(other.load_by),
            seed: self.seed.or(other.seed),
        }
    }

    /// Sets the cluster of a draft. Missing options are taken from the draft, if its machines are all equal.
    pub(super) fn apply_cluster(&self, draft: &mut Draft, name: &str) -> Result<(), ImportError> {
        if self.machines.is_none() && self.slots.is_none() && self.speed.is_none() {
            return Ok(());
        }
        if self.machines == Some(0) || self.slots == Some(SlotOptions::Total(0)) {
            let option = if self.machines == Some(0) { "machines" } else { "total-slots" };
            return Err(ImportError::option(option, "found 0, expected at least 1"));
        }
        // Slots and speeds apply to every machine of every group.
        if self.machines.is_none()
            && draft.machines.len() > 1
            && !matches!(self.slots, Some(SlotOptions::Total(_)))
        {
            for machine in &mut draft.machines {
                match self.slots {
                    Some(SlotOptions::MapReduce { map, reduce }) => {
                        machine.slots = Slots::MapReduce { map, reduce }
                    }
                    Some(SlotOptions::Generic(slots)) => machine.slots = Slots::Generic(slots),
                    Some(SlotOptions::Total(_)) | None => {}
                }
                machine.speed = self.speed.unwrap_or(machine.speed);
            }
            return Ok(());
        }
        let before = match draft.machines.as_slice() {
            [only] => Some(only.clone()),
            several => alike(several),
        };
        let found = match draft.machines.as_slice() {
            [] => "a workload without a cluster".to_owned(),
            several => format!(
                "{} machines that differ ({}), so the slots of further machines are unknown",
                several.iter().map(|machine| u64::from(machine.count)).sum::<u64>(),
                differences(several),
            ),
        };
        let missing = |option| ImportError::Missing { name: name.to_owned(), found: found.clone(), option };
        let total = match self.slots {
            Some(SlotOptions::Total(total)) => Some(total),
            _ => None,
        };
        let count = self.machines.or(total).or(before.as_ref().map(|machine| machine.count));
        let count = count.ok_or_else(|| missing(MissingOption::Machines))?;
        let slots = match self.slots {
            Some(SlotOptions::MapReduce { map, reduce }) => Some(Slots::MapReduce { map, reduce }),
            Some(SlotOptions::Generic(slots)) => Some(Slots::Generic(slots)),
            Some(SlotOptions::Total(total)) if total % count != 0 => {
                let problem =
                    format!("found {total} slots for {count} machines, expected a multiple of {count}");
                return Err(ImportError::option("total-slots", problem));
            }
            Some(SlotOptions::Total(total)) => Some(Slots::Generic(total / count)),
            None => before.as_ref().map(|machine| machine.slots),
        };
        let slots = slots.ok_or_else(|| missing(MissingOption::Slots))?;
        let (name, rack, speed) = match before {
            Some(machine) => (machine.name, machine.rack, machine.speed),
            None => ("node".to_owned(), None, 1.0),
        };
        draft.machines = vec![MachineDraft { name, count, speed: self.speed.unwrap_or(speed), slots, rack }];
        Ok(())
    }
}

/// A group with all these machines, if they differ only in names and racks.
fn alike(machines: &[MachineDraft]) -> Option<MachineDraft> {
    let (first, others) = machines.split_first()?;
    let is_like = |other: &MachineDraft| other.slots == first.slots && other.speed == first.speed;
    let count = machines.iter().try_fold(0u32, |sum, machine| sum.checked_add(machine.count))?;
    others.iter().all(is_like).then(|| MachineDraft {
        name: "node".to_owned(),
        count,
        rack: None,
        ..first.clone()
    })
}

/// `2 to 3 slots each`, `speeds 1 to 2`.
fn differences(machines: &[MachineDraft]) -> String {
    let slots = |machine: &MachineDraft| machine.slots.total();
    let least = machines.iter().map(slots).min().unwrap_or(0);
    let most = machines.iter().map(slots).max().unwrap_or(0);
    if least != most {
        return format!("{least} to {most} slots each");
    }
    let speeds = || machines.iter().map(|machine| machine.speed);
    let (slowest, fastest) = (speeds().fold(f64::INFINITY, f64::min), speeds().fold(0.0, f64::max));
    if slowest == fastest {
        return "different map and reduce slots".to_owned();
    }
    format!("speeds {slowest} to {fastest}")
}
