//! A file in memory, and the workload in it.

use std::io::Read;
use std::path::Path;

use slackline_model::load::LOADS;
use slackline_model::{Metric, Seed};
use slackline_trace::{
    Diagnostic, Folder, ImportOptions, ImportedWorkload, Importer, Place, TraceError, read_folder,
    read_workload,
};

use super::error::ImportError;
use super::loaded::{Loaded, Shaped};
use super::workload_options::{DEADLINES_MAX, WorkloadOptions};
use crate::simulate::check_number;
use crate::woha::PlanFile;

/// A file in memory, which can be read several times even if it came through a pipe; or a folder.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in messages.
    pub name: String,
    /// Its content; for a folder, the names and hashes of its files.
    pub bytes: Vec<u8>,
    /// The folder, if it is one.
    pub folder: Option<Folder>,
}

impl Source {
    /// Bytes with a name. The name helps to guess their format.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into(), folder: None }
    }

    /// Reads a file, or lists the files of a folder; `-` is standard input.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn read(path: &Path) -> Result<Self, ImportError> {
        if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|source| ImportError::Read { name: "standard input".to_owned(), source })?;
            return Ok(Self::new("stdin", bytes));
        }
        let name = path.display().to_string();
        if path.is_dir() {
            return match Folder::open(path) {
                Ok(folder) => Ok(Self { name, bytes: folder.manifest()?, folder: Some(folder) }),
                Err(source) => Err(ImportError::Read { name, source }),
            };
        }
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::new(name, bytes)),
            Err(source) => Err(ImportError::Read { name, source }),
        }
    }

    /// Refuses a folder if a document is needed; `expected` names the document.
    pub(super) fn refuse_folder(&self, expected: &str) -> Result<(), ImportError> {
        if self.folder.is_none() {
            return Ok(());
        }
        Err(TraceError::input(&self.name, None, format!("found a folder, expected {expected}")).into())
    }

    /// Refuses a WOHA plan file, which is binary; `expected` names the expected document.
    pub(super) fn refuse_plans(&self, expected: &str) -> Result<(), ImportError> {
        if !PlanFile::is_one(&self.bytes) {
            return Ok(());
        }
        Err(TraceError::input(
            &self.name,
            None,
            format!("found a plan file (for --plan-file), expected {expected}"),
        )
        .into())
    }

    /// The last component of the name, for headlines.
    pub fn short_name(&self) -> &str {
        self.name.trim_end_matches('/').rsplit('/').next().unwrap_or(&self.name)
    }

    /// Imports the workload and applies the options, without validation.
    ///
    /// # Errors
    /// An invalid document; options that are incompatible with it.
    pub fn shape(&self, options: &WorkloadOptions) -> Result<Shaped, ImportError> {
        self.refuse_plans("a workload")?;
        let import = import_options(options)?;
        let from = options.from.as_deref();
        let mut imported = match &self.folder {
            Some(folder) => read_folder(folder, from, &import)?,
            None => read_workload(&self.name, &self.bytes, from, &import)?,
        };
        let machines = imported.draft.machines.clone();
        refuse_options(&imported.importer, options)?;
        options.apply_cluster(&mut imported.draft, &self.name)?;
        imported.draft.objective = options.objective(imported.draft.objective);
        imported.diagnostics.extend(options.metric.and_then(|metric| own_costs(&imported, metric)));
        if let Some(weights) = options.weights {
            imported.draft.weights = weights;
        }
        let settings = import.recorded(&imported.importer);
        let settings = settings.map_err(|problem| ImportError::option("from", problem.to_string()))?;
        let recorded = options.record(settings);
        Ok(Shaped { name: self.name.clone(), imported, recorded, options: options.clone(), machines })
    }

    /// Loads the workload as an instance. Phases given only as work stay uncut.
    ///
    /// # Errors
    /// All errors in the document, with lines; options that are incompatible with it; flows that depend on
    /// other flows, which only a run supports.
    pub fn load(&self, options: &WorkloadOptions) -> Result<Loaded, ImportError> {
        let shaped = self.shape(options)?;
        shaped.refuse_waiting()?;
        shaped.into_loaded()
    }
}

/// The remark that the metric option does not apply to flows with a separate cost.
fn own_costs(imported: &ImportedWorkload, metric: Metric) -> Option<Diagnostic> {
    let mut own = imported.draft.flows.iter().enumerate().filter(|(_, flow)| flow.cost.is_some());
    let (k, flow) = own.next()?;
    let place = imported.source.places(&[&format!("flows[{k}].cost")])[0];
    let what = format!(
        "the document sets its cost (the first is {:?}), which overrides the metric {metric}",
        flow.id
    );
    let first = place.or(Some(Place { line: 1, column: 1 }));
    Some(Diagnostic { first, ..Diagnostic::new("flow", 1 + own.count() as u64, what) })
}

/// Refuses importer options for Slackline documents, which need none.
pub(super) fn refuse_options(importer: &Importer, options: &WorkloadOptions) -> Result<(), ImportError> {
    match options.import.first() {
        Some((name, _)) if importer.is_native() => {
            let problem = format!(
                "found a {} document, which is Slackline's own, expected a trace: import options apply only to traces",
                importer.name
            );
            Err(ImportError::option(name, problem))
        }
        _ => Ok(()),
    }
}

/// The options of importers, after those that apply to every format.
pub(super) fn import_options(options: &WorkloadOptions) -> Result<ImportOptions, ImportError> {
    if let Some(factor) = options.deadlines {
        check_number("deadlines", factor, 0.0, DEADLINES_MAX)?;
    }
    if let Some(factor) = options.load {
        check_number("load", factor, *LOADS.start(), *LOADS.end())?;
    }
    let mut import =
        ImportOptions::new(options.importers.clone()).with_parameters(options.parameters.clone());
    for (name, value) in &options.import {
        import.set(name, value).map_err(|problem| ImportError::option(name, problem.to_string()))?;
    }
    import.set_seed(Seed(options.root_seed()));
    Ok(import)
}
