//! Deadlines that are a multiple of the time alone: on which cluster the times alone are computed.

use std::fmt;

use slackline_model::draft::MachineDraft;
use slackline_model::instance::DeadlineRule;
use slackline_model::{Cluster, Draft, Instance};
use slackline_trace::Diagnostic;

use super::error::ImportError;
use super::recorded_options::{DEADLINES_ON, RecordedOptions};
use super::workload_options::{DeadlineCluster, WorkloadOptions};
use crate::simulate::GRAIN;

/// The deadlines that options ask for. They depend only on the document and on these options, never on the
/// cluster of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Deadlines {
    pub(super) rule: DeadlineRule,
    cluster_name: &'static str,
}

impl Deadlines {
    /// The deadlines of a workload whose document has these machines; `None` if no option asks for deadlines.
    ///
    /// # Errors
    /// A cluster that does not exist or is not valid.
    pub(super) fn new(
        options: &WorkloadOptions,
        machines: &[MachineDraft],
        name: &str,
    ) -> Result<Option<Self>, ImportError> {
        let Some(factor) = options.deadlines else { return Ok(None) };
        let mut draft = Draft { machines: machines.to_vec(), ..Draft::default() };
        let cluster_name = match options.deadlines_on {
            Some(DeadlineCluster { machines, slots }) => {
                let cluster =
                    WorkloadOptions { machines: Some(machines), slots, ..WorkloadOptions::default() };
                cluster.apply_cluster(&mut draft, name)?;
                "the cluster of --deadlines-on"
            }
            None => "the workload's own cluster",
        };
        let cluster = match draft.machines.as_slice() {
            [] => None,
            _ => Some(cluster_of(&draft)?),
        };
        Ok(Some(Self { rule: DeadlineRule { factor, cluster, grain: Some(GRAIN) }, cluster_name }))
    }

    /// Records the cluster, unless an option names it.
    pub(super) fn record(&self, options: &mut RecordedOptions) {
        options.entry(DEADLINES_ON.to_owned()).or_insert_with(|| self.cluster().into());
    }

    fn cluster(&self) -> String {
        match &self.rule.cluster {
            None => "unlimited slots (the workload has no cluster)".to_owned(),
            Some(cluster) => format!("{} ({})", self.cluster_name, size(cluster)),
        }
    }

    /// The remark about the deadlines of `count` flows.
    pub(super) fn remark(&self, count: u64) -> Diagnostic {
        Diagnostic::new("flow", count, self.to_string())
    }
}

impl fmt::Display for Deadlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "deadlines are {} times the time alone on {}", self.rule.factor, self.cluster())
    }
}

fn cluster_of(draft: &Draft) -> Result<Cluster, ImportError> {
    let instance = Instance::new(draft);
    let instance = instance.map_err(|invalid| ImportError::option("deadlines-on", invalid.to_string()))?;
    Ok(instance.cluster().clone())
}

/// `1 machine, 4 slots`.
fn size(cluster: &Cluster) -> String {
    let slots: u64 = cluster.slot_kinds().iter().map(|&kind| u64::from(cluster.slots(kind))).sum();
    let counted = |count: u64, what| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", counted(u64::from(cluster.n_machines()), "machine"), counted(slots, "slot"))
}

#[cfg(test)]
mod tests {
    use slackline_model::Time;

    use super::*;
    use crate::import::{SlotOptions, Source};

    const FLOWS: &str = "slackline = 1\nflows = [{ id = \"f\", jobs = [{ id = \"j\", map = { seconds = [10.0, 1.0, 1.0] } }] }]\n";

    /// The deadline of the flow, and the cluster that the schedule records.
    fn deadline(cluster: &str, options: WorkloadOptions) -> (f64, String) {
        let source = Source::new("w.toml", FLOWS.replace("flows =", &format!("{cluster}\nflows =")));
        let loaded = source.load(&WorkloadOptions { deadlines: Some(2.0), ..options }).unwrap();
        let deadline = loaded.instance.flows().iter().next().and_then(|flow| flow.deadline);
        let cluster = loaded.options[DEADLINES_ON].to_string();
        assert_eq!(loaded.diagnostics.len(), 1);
        (deadline.map(Time::seconds).unwrap(), cluster)
    }

    fn on(machines: u32, slots: u32, speed: f64) -> WorkloadOptions {
        let slots = Some(SlotOptions::Generic(slots));
        WorkloadOptions { machines: Some(machines), slots, speed: Some(speed), ..WorkloadOptions::default() }
    }

    #[test]
    fn deadlines_do_not_depend_on_the_cluster_of_a_simulation() {
        let own = "cluster.machines = [{ name = \"node\", count = 1, slots = 1, speed = 0.5 }]";
        for options in [WorkloadOptions::default(), on(1, 1, 1.0), on(100, 3, 7.0)] {
            let expected = (48.0, "\"the workload's own cluster (1 machine, 1 slot)\"".to_owned());
            assert_eq!(deadline(own, options), expected);
        }
        for options in [on(1, 1, 1.0), on(100, 3, 7.0)] {
            let unlimited = "\"unlimited slots (the workload has no cluster)\"".to_owned();
            assert_eq!(deadline("", options), (20.0, unlimited));
        }
        let deadlines_on = Some(DeadlineCluster { machines: 1, slots: Some(SlotOptions::Generic(1)) });
        for cluster in ["", own] {
            let seconds = if cluster.is_empty() { 24.0 } else { 48.0 };
            let options = WorkloadOptions { deadlines_on, ..on(100, 3, 7.0) };
            assert_eq!(deadline(cluster, options), (seconds, "1".to_owned()));
        }
    }

    #[test]
    fn the_cluster_for_deadlines_needs_slots() {
        let deadlines_on = Some(DeadlineCluster { machines: 4, slots: None });
        let options = WorkloadOptions { deadlines: Some(2.0), deadlines_on, ..on(2, 2, 1.0) };
        let error = Source::new("w.toml", FLOWS).load(&options).unwrap_err().to_string();
        assert!(error.contains("a workload without a cluster"), "{error}");
    }
}
