//! A workload with its options applied: as a draft, and as an instance.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use slackline_model::cluster::Slots;
use slackline_model::draft::{MachineDraft, TasksDraft};
use slackline_model::load::{LoadBy, LoadRule};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Draft, Instance, Schedule, Seed, Span, Time};
use slackline_trace::importers::importer::SEED;
use slackline_trace::{Diagnostic, ImportedWorkload, Meta, Simplification, TraceError};

use super::deadlines::Deadlines;
use super::error::ImportError;
use super::recorded_options::{RecordedOptions, add_grain, put};
use super::workload_options::WorkloadOptions;
use crate::recorded::Recorded;
use crate::simulate::{self, GRAIN, WrongOption, check_number};

/// A workload with its options applied, not validated yet.
#[derive(Clone, Debug)]
pub struct Shaped {
    pub(super) name: String,
    pub(super) imported: ImportedWorkload,
    pub(super) recorded: RecordedOptions,
    /// The options for deadlines.
    pub(super) options: WorkloadOptions,
    /// The machines of the document.
    pub(super) machines: Vec<MachineDraft>,
}

/// A workload that is ready to be scheduled.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The name of its document in messages.
    pub name: String,
    /// The instance.
    pub instance: Instance,
    /// Hash of the document's bytes.
    pub sha256: String,
    /// The options that a schedule of it records.
    pub options: RecordedOptions,
    /// The diagnostics of the importer.
    pub diagnostics: Vec<Diagnostic>,
    /// The recorded execution, if the document contains one.
    pub recorded: Option<Recorded>,
}

/// The grain for a given number of seconds, or the default.
pub fn grain_span(seconds: Option<f64>) -> Span {
    seconds.map_or(GRAIN, Span::from_seconds_nearest)
}

/// Refuses an invalid grain.
pub(super) fn check_grain(seconds: Option<f64>) -> Result<(), WrongOption> {
    seconds.map_or(Ok(()), |seconds| check_number("grain", seconds, 1e-6, SECONDS_MAX))
}

impl Shaped {
    /// Refuses flows that depend on other flows. Flows are independent in the model, so a schedule would
    /// start them too early.
    ///
    /// # Errors
    /// The first input from another flow, with its line.
    pub fn refuse_waiting(&self) -> Result<(), ImportError> {
        let ImportedWorkload { draft, source, .. } = &self.imported;
        let waiting =
            draft.flows.iter().enumerate().find_map(|(k, flow)| Some((k, flow.foreign_inputs().next()?)));
        let Some((k, (flow, job))) = waiting else { return Ok(()) };
        let what = format!(
            "found the input \"@{flow}/{job}\", expected none from another flow: only `run` can wait for it"
        );
        Err(source.error(vec![(format!("flows[{k}]"), what)]).into())
    }

    /// Validates the draft and converts it to an instance.
    ///
    /// # Errors
    /// All errors in the document, with lines; no cluster; deadlines out of range.
    pub fn into_loaded(mut self) -> Result<Loaded, ImportError> {
        let (mut instance, deadlines) = self.check()?;
        if self.apply(&instance, deadlines) {
            let loaded = Instance::new(&self.imported.draft);
            instance = loaded.map_err(|invalid| ImportError::option("load", invalid.to_string()))?;
        }
        let Self { name, imported, recorded, machines, .. } = self;
        let ImportedWorkload { draft, sha256, diagnostics, .. } = imported;
        let happened = Recorded::of(draft, machines);
        Ok(Loaded { name, instance, sha256, options: recorded, diagnostics, recorded: happened })
    }

    /// Writes these deadlines to the draft, and then changes its load, so that deadlines are those of the workload
    /// at its own load. Returns whether the load changed.
    fn apply(&mut self, instance: &Instance, deadlines: Option<Deadlines>) -> bool {
        let rule = self.load_rule();
        let Self { imported: ImportedWorkload { draft, diagnostics, .. }, options, recorded, .. } = self;
        if let Some(deadlines) = deadlines {
            write_deadlines(draft, instance);
            diagnostics.push(deadlines.remark(instance.flows().len() as u64));
            deadlines.record(recorded);
        }
        let Some(load) = options.load.filter(|&load| load != 1.0) else { return false };
        rule.apply(draft, load, Seed(options.root_seed()));
        let by = rule.by.name();
        put(recorded, "load-by", Some(by));
        if rule.by == LoadBy::Jobs {
            put(recorded, SEED.name, Some(options.root_seed()));
        }
        let what = format!("{load} times the load of the workload, by {by}");
        diagnostics.push(Diagnostic::new("flow", draft.flows.len() as u64, what));
        true
    }

    /// How `--load` changes the load: by sizes where flows have times by the clock.
    pub fn load_rule(&self) -> LoadRule {
        let keeps_dates = self.imported.importer.is_native() && self.imported.draft.start.is_some();
        let usual = if keeps_dates { LoadBy::Size } else { LoadBy::Arrivals };
        LoadRule { by: self.options.load_by.unwrap_or(usual), keeps_dates }
    }

    /// The instance with its deadlines, and the deadlines that options ask for.
    pub(super) fn check(&self) -> Result<(Instance, Option<Deadlines>), ImportError> {
        if self.imported.draft.machines.is_empty() {
            return Err(ImportError::NoCluster { name: self.name.clone() });
        }
        self.check_on(&self.imported.draft)
    }

    /// The same for this workload on the machines of `draft`.
    fn check_on(&self, draft: &Draft) -> Result<(Instance, Option<Deadlines>), ImportError> {
        let source = &self.imported.source;
        let instance = Instance::new(draft).map_err(|invalid| TraceError::from_invalid(&invalid, source))?;
        let Some(deadlines) = Deadlines::new(&self.options, &self.machines, &self.name)? else {
            return Ok((instance, None));
        };
        let out_of_range = |(flow, deadline)| {
            let problem =
                format!("found a deadline of {deadline} s for flow {flow}, expected at most {SECONDS_MAX} s");
            ImportError::option("deadlines", problem)
        };
        Ok((instance.with_deadlines(&deadlines.rule).map_err(out_of_range)?, Some(deadlines)))
    }

    /// The draft with its deadlines, and the diagnostics of the importer. A trace without a cluster stays
    /// without one.
    ///
    /// # Errors
    /// All errors in the document; deadlines out of range.
    pub fn into_draft(mut self) -> Result<(Draft, Vec<Diagnostic>), ImportError> {
        let (instance, deadlines) = if self.imported.draft.machines.is_empty() {
            // Errors in a flow are reported when it is read, and not when the document is used.
            self.check_on(&for_any_cluster(&self.imported.draft))?
        } else {
            self.check()?
        };
        self.apply(&instance, deadlines);
        Ok((self.imported.draft, self.imported.diagnostics))
    }
}

/// The draft with machines that satisfy all its flows: slots for both phases, and all named hosts. Jobs
/// without phases, which can only be run, get some.
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
    let machine = |name| MachineDraft { name, count: 1, speed: 1.0, slots: Slots::Generic(1), rack: None };
    draft.machines = hosts.into_iter().map(machine).collect();
    draft
}

/// Copies the deadlines of an instance to its draft.
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
    /// Whether the importer draws something, so that the same file gives another workload with another seed.
    pub fn depends_on_seed(&self) -> bool {
        self.options.contains_key(SEED.name)
    }

    /// Whether each seed has other flows, so that single flows cannot be followed over seeds.
    pub fn draws_flows(&self) -> bool {
        self.options.get("load-by").and_then(|by| by.as_str()) == Some(LoadBy::Jobs.name())
    }

    /// Prepares the instance for a simulation ([`simulate::prepare`]). Records the grain if work was cut.
    ///
    /// # Errors
    /// An invalid grain; more work than simulated time can hold (64 bits); a cluster that is too large.
    pub fn prepare(&mut self, grain: Option<f64>) -> Result<(), ImportError> {
        check_grain(grain)?;
        match simulate::prepare(&self.instance, grain_span(grain)) {
            Ok(Cow::Borrowed(_)) => {}
            Ok(Cow::Owned(cut)) => {
                add_grain(&mut self.options, grain_span(grain));
                self.instance = cut;
            }
            Err(problem) => {
                return Err(ImportError::TooLarge { name: self.name.clone(), problem: problem.to_string() });
            }
        }
        Ok(())
    }

    /// Cuts work as [`Self::prepare`] does, without its limits, so that existing schedules can always be
    /// read.
    pub(super) fn cut(&mut self, grain: f64) -> Result<(), ImportError> {
        check_grain(Some(grain))?;
        if self.instance.phases().iter().any(|phase| phase.tasks().is_none()) {
            add_grain(&mut self.options, grain_span(Some(grain)));
            self.instance = self.instance.clone().cut(grain_span(Some(grain)));
        }
        Ok(())
    }

    /// The metadata of a schedule of this workload.
    pub fn meta(&self, options: RecordedOptions, seed: u64, schedule: &Schedule) -> Meta {
        let status = slackline_trace::documents::schedule::status(schedule.cost, schedule.lower_bound);
        Meta { status, ..self.meta_before(options, seed) }
    }

    /// The metadata of a schedule that does not exist yet, without its status.
    pub fn meta_before(&self, options: RecordedOptions, seed: u64) -> Meta {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let not_modelled = self.not_modelled();
        Meta { version, sha256: self.sha256.clone(), options, seed, not_modelled, ..Meta::default() }
    }

    /// What simulations leave out of the log.
    pub fn not_modelled(&self) -> Vec<Simplification> {
        Diagnostic::simplifications(&self.diagnostics)
    }
}
