//! From a workload argument to an instance: read the bytes, import, give it the cluster, objective and
//! deadlines of the flags, check it, cut it into tasks.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, bail};
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::instance::Amount;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Draft, Instance, Objective, Seed, Span};
use slackline_trace::{Diagnostic, ImportOptions, Imported, TraceError, read_workload};

use crate::args::Shape;
use crate::args::import::importers;
use crate::out;
use crate::recorded::{self, Options};

/// Grain of phases that are given only as work, unless `--grain` says otherwise.
const GRAIN: f64 = 10.0;

/// The longest simulation, seconds: far enough below 2^64 microseconds for whatever distorts it.
const HORIZON_MAX: f64 = 1e12;

/// The largest cluster that is simulated: every machine and slot takes memory.
const SLOTS_MAX: u64 = 20_000_000;

/// A file in memory, so that it can be read more than once even if it came through a pipe.
pub(crate) struct Source {
    /// What messages call it.
    pub(crate) name: String,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
}

/// A workload as it was read and shaped, not checked yet.
pub(crate) struct Shaped {
    imported: Imported,
    /// What the schedule records.
    pub(crate) options: Options,
    deadlines: Option<f64>,
}

/// A workload that is ready to be scheduled.
pub(crate) struct Loaded {
    /// The instance.
    pub(crate) instance: Instance,
    /// Hash of the workload's bytes.
    pub(crate) sha256: String,
    /// What the schedule records of it.
    pub(crate) options: Options,
    /// What the importer has to say.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Source {
    /// Reads a file; `-` is standard input.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(crate) fn read(path: &PathBuf) -> anyhow::Result<Self> {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).context("standard input: cannot be read")?;
            return Ok(Self { name: "stdin".to_owned(), bytes });
        }
        let name = path.display().to_string();
        let bytes = std::fs::read(path).with_context(|| format!("{name}: cannot be read"))?;
        Ok(Self { name, bytes })
    }

    /// The last part of the name, for headlines.
    pub(crate) fn short_name(&self) -> &str {
        self.name.rsplit('/').next().unwrap_or(&self.name)
    }

    /// Imports it and applies the flags.
    ///
    /// # Errors
    /// A document that is none; flags that do not go with it.
    pub(crate) fn shape(&self, shape: &Shape) -> anyhow::Result<Shaped> {
        let mut options = ImportOptions::new(importers());
        for (name, value) in &shape.import.given {
            options.set(name, value)?;
        }
        options.set_seed(Seed(shape.root_seed()));
        let mut imported = read_workload(&self.name, &self.bytes, shape.import.from.as_deref(), &options)?;
        if imported.importer.is_native()
            && let Some((flag, _)) = shape.import.given.first()
        {
            bail!(
                "--{flag}: found a {} document of our own, expected a trace; import options leave our own documents alone",
                imported.importer.name
            );
        }
        set_cluster(&mut imported.draft, shape).with_context(|| self.name.clone())?;
        let objective = &mut imported.draft.objective;
        let (metric, combine) =
            (shape.metric.unwrap_or(objective.metric), shape.combine.unwrap_or(objective.combine));
        *objective = Objective::new(metric, combine);
        if let Some(weights) = shape.weights {
            imported.draft.weights = weights;
        }
        let options = recorded::of_shape(shape, options.recorded(&imported.importer)?);
        Ok(Shaped { imported, options, deadlines: shape.deadlines })
    }

    /// The instance as it stands in the document, phases given as work uncut.
    ///
    /// # Errors
    /// Everything that is wrong with the document, with lines.
    pub(crate) fn load(&self, shape: &Shape) -> anyhow::Result<Loaded> {
        let shaped = self.shape(shape)?;
        let instance = shaped.check(&self.name)?;
        let Shaped { imported, options, .. } = shaped;
        Ok(Loaded { instance, sha256: imported.sha256, options, diagnostics: imported.diagnostics })
    }
}

impl Shaped {
    /// The instance of the draft.
    fn check(&self, name: &str) -> anyhow::Result<Instance> {
        let Imported { draft, source, .. } = &self.imported;
        if draft.machines.is_empty() {
            bail!(
                "{name}: found no cluster, expected flags for one: --machines N with --slots S, or with \
                 --map-slots A --reduce-slots B"
            );
        }
        let instance = Instance::new(draft).map_err(|invalid| TraceError::from_invalid(&invalid, source))?;
        let Some(factor) = self.deadlines else { return Ok(instance) };
        for flow in instance.flows() {
            let deadline = flow.release.seconds() + factor * flow.alone;
            if deadline > SECONDS_MAX {
                bail!(
                    "--deadlines: found a deadline of {deadline} s for flow {}, expected at most {SECONDS_MAX} s",
                    flow.id
                );
            }
        }
        Ok(instance.with_deadlines(factor))
    }

    /// The document itself, with deadlines written into it; a trace without a cluster stays without one.
    ///
    /// # Errors
    /// Everything that is wrong with it; deadlines without a cluster to be alone on.
    pub(crate) fn into_draft(mut self, name: &str) -> anyhow::Result<(Draft, Vec<Diagnostic>)> {
        if !self.imported.draft.machines.is_empty() || self.deadlines.is_some() {
            let instance = self.check(name)?;
            if self.deadlines.is_some() {
                write_deadlines(&mut self.imported.draft, &instance);
            }
        }
        Ok((self.imported.draft, self.imported.diagnostics))
    }
}

/// Writes the deadlines of an instance into its draft.
fn write_deadlines(draft: &mut Draft, instance: &Instance) {
    let flows = instance.flows().iter().map(|flow| (flow.id.as_str(), flow.deadline));
    let deadlines: BTreeMap<&str, _> = flows.collect();
    for flow in &mut draft.flows {
        let first = if flow.repeat.is_some() { format!("{}#0", flow.id) } else { flow.id.clone() };
        let deadline = deadlines.get(first.as_str()).copied().flatten();
        flow.deadline = deadline.map(slackline_model::Time::seconds);
    }
}

/// The grain that was asked for, or the usual one.
pub(crate) fn grain_span(seconds: Option<f64>) -> Span {
    Span::from_seconds_nearest(seconds.unwrap_or(GRAIN))
}

impl Loaded {
    /// Makes it ready for a simulation: see [`Self::cut`].
    ///
    /// # Errors
    /// More work than there is time for: simulated time is counted in 64 bits.
    pub(crate) fn prepare(&mut self, name: &str, grain: Option<f64>) -> anyhow::Result<()> {
        let releases = self.instance.flows().iter().map(|flow| flow.release.seconds());
        let work: f64 = self.instance.flows().iter().map(|flow| flow.work.slot_seconds()).sum();
        let slowest =
            self.instance.cluster().groups().iter().map(|group| group.speed).fold(f64::INFINITY, f64::min);
        let horizon = releases.fold(0.0, f64::max) + work / slowest;
        if horizon > HORIZON_MAX {
            bail!(
                "{name}: found work that may take {horizon:e} s, expected at most {HORIZON_MAX:e} s in a simulation"
            );
        }
        let cluster = self.instance.cluster();
        let slots: u64 = cluster.lanes().iter().map(|&lane| u64::from(cluster.slots(lane))).sum();
        if slots.max(u64::from(cluster.n_machines())) > SLOTS_MAX {
            bail!(
                "{name}: found {} machines with {slots} slots, expected at most {SLOTS_MAX} of either in a simulation",
                cluster.n_machines()
            );
        }
        self.cut(grain);
        Ok(())
    }

    /// Cuts phases that are given only as work into tasks, and remembers the grain where there are any.
    pub(crate) fn cut(&mut self, grain: Option<f64>) {
        let malleable =
            |phase: &slackline_model::instance::Phase| matches!(phase.amount, Amount::Malleable(_));
        if self.instance.phases().iter().any(malleable) {
            recorded::add_grain(&mut self.options, grain.unwrap_or(GRAIN));
            self.instance = self.instance.clone().cut(grain_span(grain));
        }
    }

    /// Says on standard error what the importer has to say.
    pub(crate) fn tell(&self, name: &str) {
        tell(name, &self.diagnostics);
    }
}

/// Says on standard error what an importer has to say.
pub(crate) fn tell(name: &str, diagnostics: &[Diagnostic]) {
    for diagnostic in diagnostics {
        out::talk(format_args!("{name}: {diagnostic}"));
    }
}

/// Puts the cluster of the flags into a draft. What no flag says is taken from the draft, if all its machines
/// are equal.
fn set_cluster(draft: &mut Draft, shape: &Shape) -> anyhow::Result<()> {
    let machines = shape.machines.map(|range| {
        range.only().with_context(|| {
            format!("--machines: found {range}, expected one number: a range is for tune with --until")
        })
    });
    let machines = machines.transpose()?;
    let given = [machines, shape.map_slots, shape.slots, shape.total_slots].iter().any(Option::is_some)
        || shape.speed.is_some();
    if !given {
        return Ok(());
    }
    let before = match draft.machines.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    let n_groups = draft.machines.len();
    let missing = |flags: &str| {
        let found = match n_groups {
            0 => "a workload without a cluster".to_owned(),
            n => format!("a cluster of {n} groups of machines"),
        };
        format!("found {found}, expected {flags} as well")
    };
    let total = shape.total_slots.filter(|_| machines.is_none());
    let count = machines.or(total).or(before.as_ref().map(|m| m.count));
    let count = count.with_context(|| missing("--machines N"))?;
    let slots = match (shape.map_slots.zip(shape.reduce_slots), shape.slots, shape.total_slots) {
        (Some((map, reduce)), ..) => Some(Slots::Typed { map, reduce }),
        (_, Some(slots), _) => Some(Slots::Universal(slots)),
        (_, _, Some(total)) if total % count != 0 => {
            bail!("--total-slots: found {total} slots for {count} machines, expected a multiple of {count}")
        }
        (_, _, Some(total)) => Some(Slots::Universal(total / count)),
        _ => before.as_ref().map(|m| m.slots),
    };
    let slots = slots.with_context(|| missing("--slots S, or --map-slots A --reduce-slots B,"))?;
    let (name, rack, speed) = match before {
        Some(machine) => (machine.name, machine.rack, machine.speed),
        None => ("node".to_owned(), None, 1.0),
    };
    draft.machines = vec![MachineDraft { name, count, speed: shape.speed.unwrap_or(speed), slots, rack }];
    Ok(())
}
