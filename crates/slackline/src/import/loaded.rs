//! A workload with its options applied: as a draft, and as an instance.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, TasksDraft};
use slackline_model::instance::{Amount, Phase};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Cluster, Draft, Instance, Schedule, Span, Time};
use slackline_trace::{Diagnostic, Imported, Meta, TraceError};

use super::error::ImportError;
use super::recorded_options::{RecordedOptions, add_grain};
use crate::recorded::Recorded;

/// Grain of phases that are given only as work, unless another is asked for, seconds.
pub(super) const GRAIN: f64 = 10.0;

/// The longest simulation, seconds: far enough below 2^64 microseconds for whatever distorts it.
pub(super) const HORIZON_MAX: f64 = 1e12;

/// The largest cluster that is simulated: every machine and slot takes memory.
const SLOTS_MAX: u64 = 20_000_000;

/// A workload as it was read and shaped, not checked yet.
#[derive(Clone, Debug)]
pub struct Shaped {
    pub(super) name: String,
    pub(super) imported: Imported,
    pub(super) recorded: RecordedOptions,
    pub(super) deadlines: Option<f64>,
    /// The machines that the document itself has.
    pub(super) machines: Vec<MachineDraft>,
}

/// A workload that is ready to be scheduled.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What messages call its document.
    pub name: String,
    /// The instance.
    pub instance: Instance,
    /// Hash of the document's bytes.
    pub sha256: String,
    /// What a schedule records of how it was shaped.
    pub options: RecordedOptions,
    /// What the importer has to say.
    pub diagnostics: Vec<Diagnostic>,
    /// What really happened, if the document says so.
    pub recorded: Option<Recorded>,
}

/// The grain that was asked for in seconds, or the usual one.
pub fn grain_span(seconds: Option<f64>) -> Span {
    Span::from_seconds_nearest(seconds.unwrap_or(GRAIN))
}

/// Refuses clusters that are too large for a simulation.
pub(super) fn check_cluster(name: &str, cluster: &Cluster) -> Result<(), ImportError> {
    let slots: u64 = cluster.slot_kinds().iter().map(|&slot_kind| u64::from(cluster.slots(slot_kind))).sum();
    if slots.max(u64::from(cluster.n_machines())) <= SLOTS_MAX {
        return Ok(());
    }
    let problem = format!(
        "found {} machines with {slots} slots, expected at most {SLOTS_MAX} of either in a simulation",
        cluster.n_machines()
    );
    Err(ImportError::TooLarge { name: name.to_owned(), problem })
}

impl Shaped {
    /// Refuses flows that wait for others: in the model flows are independent, so that a schedule made from it would
    /// start them too early.
    ///
    /// # Errors
    /// The first input that is from another flow, with its line.
    pub fn refuse_waiting(&self) -> Result<(), ImportError> {
        let Imported { draft, source, .. } = &self.imported;
        let waiting =
            draft.flows.iter().enumerate().find_map(|(k, flow)| Some((k, flow.foreign_inputs().next()?)));
        let Some((k, (flow, job))) = waiting else { return Ok(()) };
        let what = format!(
            "found the input \"@{flow}/{job}\", expected none from another flow: only `run` knows when it is there"
        );
        Err(source.error(vec![(format!("flows[{k}]"), what)]).into())
    }

    /// The instance of the draft.
    ///
    /// # Errors
    /// Everything that is wrong with the document, with lines; no cluster; deadlines beyond what can be.
    pub fn into_loaded(self) -> Result<Loaded, ImportError> {
        let instance = self.check()?;
        let Self { name, imported, recorded, deadlines, machines } = self;
        let Imported { mut draft, sha256, diagnostics, .. } = imported;
        if deadlines.is_some() {
            write_deadlines(&mut draft, &instance);
        }
        let happened = Recorded::of(draft, machines);
        Ok(Loaded { name, instance, sha256, options: recorded, diagnostics, recorded: happened })
    }

    pub(super) fn check(&self) -> Result<Instance, ImportError> {
        let Imported { draft, source, .. } = &self.imported;
        if draft.machines.is_empty() {
            return Err(ImportError::NoCluster { name: self.name.clone() });
        }
        let instance = Instance::new(draft).map_err(|invalid| TraceError::from_invalid(&invalid, source))?;
        let Some(factor) = self.deadlines else { return Ok(instance) };
        for flow in instance.flows().iter() {
            let deadline = flow.release.seconds() + factor * flow.alone;
            if deadline > SECONDS_MAX {
                let problem = format!(
                    "found a deadline of {deadline} s for flow {}, expected at most {SECONDS_MAX} s",
                    flow.id
                );
                return Err(ImportError::option("deadlines", problem));
            }
        }
        Ok(instance.with_deadlines(factor))
    }

    /// The document itself, with deadlines written into it, and what its importer has to say; a trace without
    /// a cluster stays without one.
    ///
    /// # Errors
    /// Everything that is wrong with it; deadlines without a cluster to be alone on.
    pub fn into_draft(mut self) -> Result<(Draft, Vec<Diagnostic>), ImportError> {
        if !self.imported.draft.machines.is_empty() || self.deadlines.is_some() {
            let instance = self.check()?;
            if self.deadlines.is_some() {
                write_deadlines(&mut self.imported.draft, &instance);
            }
        } else {
            // What is wrong with a flow is found where it was read, not when the document is used.
            let anywhere = for_any_cluster(&self.imported.draft);
            Instance::new(&anywhere)
                .map_err(|invalid| TraceError::from_invalid(&invalid, &self.imported.source))?;
        }
        Ok((self.imported.draft, self.imported.diagnostics))
    }
}

/// The draft on machines that take whatever its flows may ask of a cluster: a slot for either phase, every host that
/// is named, and phases for jobs that are only to be run.
fn for_any_cluster(draft: &Draft) -> Draft {
    let mut draft = draft.clone();
    let mut hosts = BTreeSet::from(["any".to_owned()]);
    for job in draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs) {
        for phase in [&job.map, &job.reduce].into_iter().flatten() {
            if let TasksDraft::Splits(splits) = &phase.tasks {
                hosts.extend(splits.iter().flat_map(|split| split.hosts.iter().cloned()));
            }
        }
        if job.run.is_some() && job.map.is_none() && job.reduce.is_none() {
            job.map = Some(TasksDraft::Uniform { tasks: 1, seconds: 0.0 }.into());
        }
    }
    let machine = |name| MachineDraft { name, count: 1, speed: 1.0, slots: Slots::Universal(1), rack: None };
    draft.machines = hosts.into_iter().map(machine).collect();
    draft
}

/// Writes the deadlines of an instance into its draft.
fn write_deadlines(draft: &mut Draft, instance: &Instance) {
    let flows = instance.flows().iter().map(|flow| (flow.id.as_str(), flow.deadline));
    let deadlines: BTreeMap<&str, _> = flows.collect();
    for flow in &mut draft.flows {
        let first = if flow.repeat.is_some() { format!("{}#0", flow.id) } else { flow.id.clone() };
        let deadline = deadlines.get(first.as_str()).copied().flatten();
        flow.deadline = deadline.map(Time::seconds);
    }
}

impl Loaded {
    /// Makes it ready for a simulation: see [`Self::cut`].
    ///
    /// # Errors
    /// More work than there is time for (simulated time is counted in 64 bits), or a cluster that is too
    /// large.
    pub fn prepare(&mut self, grain: Option<f64>) -> Result<(), ImportError> {
        let releases = self.instance.flows().iter().map(|flow| flow.release.seconds());
        let work: f64 = self.instance.flows().iter().map(|flow| flow.work.slot_seconds()).sum();
        let cluster = self.instance.cluster();
        let slowest = cluster.groups().iter().map(|group| group.speed).fold(f64::INFINITY, f64::min);
        let horizon = releases.fold(0.0, f64::max) + work / slowest;
        let too_large = |problem| ImportError::TooLarge { name: self.name.clone(), problem };
        if horizon > HORIZON_MAX {
            return Err(too_large(format!(
                "found work that may take {horizon:e} s, expected at most {HORIZON_MAX:e} s in a simulation"
            )));
        }
        check_cluster(&self.name, cluster)?;
        self.cut(grain);
        Ok(())
    }

    /// Cuts phases that are given only as work into tasks of at most `grain` seconds, and remembers the grain
    /// where there are any.
    pub fn cut(&mut self, grain: Option<f64>) {
        let malleable = |phase: &Phase| matches!(phase.amount, Amount::Malleable(_));
        if self.instance.phases().iter().any(malleable) {
            add_grain(&mut self.options, grain.unwrap_or(GRAIN));
            self.instance = self.instance.clone().cut(grain_span(grain));
        }
    }

    /// What a schedule of this workload says of itself beside its rows.
    pub fn meta(&self, options: RecordedOptions, seed: u64, schedule: &Schedule) -> Meta {
        let status = slackline_trace::schedule::status(schedule.cost, schedule.lower_bound);
        Meta { status, ..self.meta_before(options, seed) }
    }

    /// The same of a schedule that is still to come, without its status.
    pub fn meta_before(&self, options: RecordedOptions, seed: u64) -> Meta {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Meta { version, sha256: self.sha256.clone(), options, seed, ..Meta::default() }
    }
}
