//! A workload that is read flow by flow, with its options applied to each flow.

use std::io::Read;

use slackline_model::instance::{Arrival, Intake};
use slackline_model::{Instance, Metric};
use slackline_trace::{Diagnostic, Meta, TraceError, WorkloadStream};

use super::deadlines::Deadlines;
use super::error::ImportError;
use super::loaded::{check_grain, grain_span};
use super::recorded_options::{RecordedOptions, add_grain};
use super::source::{import_options, refuse_options};
use super::workload_options::WorkloadOptions;
use crate::simulate::{check_cluster, check_horizon, slowest};

/// A workload that is read while it is used: an iterator over its flows in the order of arrival. It ends
/// after an error.
#[derive(Debug)]
pub struct StreamedWorkload {
    /// The name of its document in messages.
    pub name: String,
    /// The options that a schedule of it records.
    pub options: RecordedOptions,
    empty: Instance,
    stream: WorkloadStream,
    intake: Intake,
    /// Whether all flows were read, and whether an error occurred.
    is_read: bool,
    is_over: bool,
    slowest: f64,
    deadlines: Option<Deadlines>,
    n_arrived: u64,
    /// The metric option, the number of flows with a separate cost that overrides it, and the line of the
    /// first one.
    own_costs: Option<(Metric, u64, u32)>,
    metric: Option<Metric>,
}

impl StreamedWorkload {
    /// Opens a workload. Phases given only as work are cut into tasks of at most `grain` seconds. `name` is
    /// used in messages.
    ///
    /// # Errors
    /// A workload that cannot be read, or not line by line; options that are incompatible with it; no
    /// cluster, or one that is too large.
    pub fn open(
        name: &str,
        source: impl Read + Send + 'static,
        options: &WorkloadOptions,
        grain: Option<f64>,
    ) -> Result<Self, ImportError> {
        check_grain(grain)?;
        let import = import_options(options)?;
        if let Some(load) = options.load.filter(|&load| load != 1.0) {
            let problem = format!("found {load} for a workload that is read line by line, expected 1");
            return Err(ImportError::option("load", problem));
        }
        let stream = WorkloadStream::open(name, source, options.from.as_deref(), &import)?;
        refuse_options(stream.importer(), options)?;
        let mut head = stream.head().clone();
        let deadlines = Deadlines::new(options, &head.machines, name)?;
        options.apply_cluster(&mut head, name)?;
        head.objective = options.objective(head.objective);
        head.weights = options.weights.unwrap_or(head.weights);
        if head.machines.is_empty() {
            return Err(ImportError::NoCluster { name: name.to_owned() });
        }
        let recorded = import.recorded(stream.importer());
        let recorded = recorded.map_err(|problem| ImportError::option("from", problem.to_string()))?;
        let mut recorded = options.record(recorded);
        if grain.is_some() {
            add_grain(&mut recorded, grain_span(grain));
        }
        if let Some(deadlines) = &deadlines {
            deadlines.record(&mut recorded);
        }
        let rule = deadlines.as_ref().map(|deadlines| deadlines.rule.clone());
        let intake = Intake::new(head, rule, Some(grain_span(grain)));
        let intake = intake.map_err(|invalid| stream.error(invalid.to_string()))?;
        let empty = intake.instance().clone();
        let too_large = |problem| ImportError::TooLarge { name: name.to_owned(), problem };
        check_cluster(empty.cluster()).map_err(too_large)?;
        let slowest = slowest(empty.cluster());
        Ok(Self {
            name: name.to_owned(),
            options: recorded,
            empty,
            stream,
            intake,
            is_read: false,
            is_over: false,
            slowest,
            deadlines,
            n_arrived: 0,
            own_costs: None,
            metric: options.metric,
        })
    }

    /// The cluster, the pools and the objective, without flows.
    pub fn empty(&self) -> &Instance {
        &self.empty
    }

    /// The number of tasks cut from work so far.
    pub fn n_cut(&self) -> u64 {
        self.intake.n_cut()
    }

    /// The initial metadata of a schedule of this workload. [`Self::finish`] returns its hash.
    pub fn meta(&self, options: RecordedOptions, seed: u64) -> Meta {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Meta { version, options, seed, ..Meta::default() }
    }

    fn next_arrival(&mut self) -> Result<Option<Arrival>, ImportError> {
        loop {
            let arrival = self.intake.take(self.is_read).map_err(|refused| self.stream.refused(&refused))?;
            self.n_arrived += u64::from(arrival.is_some());
            if arrival.is_some() || self.is_read {
                return Ok(arrival);
            }
            self.read_flow()?;
        }
    }

    fn read_flow(&mut self) -> Result<(), ImportError> {
        let Some((flow, line)) = self.stream.next_flow()? else {
            self.is_read = true;
            return Ok(());
        };
        if let (Some(_), Some(metric)) = (&flow.cost, self.metric) {
            self.own_costs.get_or_insert((metric, 0, line)).1 += 1;
        }
        self.intake.give(flow, line).map_err(|refused| self.stream.refused(&refused))?;
        let horizon = self.intake.latest().seconds() + self.intake.work() / self.slowest;
        let too_large = |problem| ImportError::TooLarge { name: self.name.clone(), problem };
        check_horizon(horizon, &format!(" up to line {line}")).map_err(too_large)
    }

    /// Reads the document to its end. Returns its hash and the diagnostics of the importer.
    ///
    /// # Errors
    /// A document that cannot be read.
    pub fn finish(self) -> Result<(String, Vec<Diagnostic>), TraceError> {
        let (sha256, mut diagnostics) = self.stream.finish()?;
        diagnostics.extend(self.deadlines.map(|deadlines| deadlines.remark(self.n_arrived)));
        diagnostics.extend(self.own_costs.map(|(metric, count, line)| {
            let what = format!("the document sets its cost, which overrides the metric {metric}");
            let first = Some(slackline_trace::Place { line, column: 1 });
            Diagnostic { first, ..Diagnostic::new("flow", count, what) }
        }));
        Ok((sha256, diagnostics))
    }
}

impl Iterator for StreamedWorkload {
    type Item = Result<Arrival, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.next_arrival().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}
