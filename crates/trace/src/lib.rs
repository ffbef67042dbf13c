#![doc = include_str!("../README.md")]
//!
//! Reads and writes Slackline's documents, imports workloads from other formats, and generates the workloads
//! of papers.
//!
//! Never knows: scheduling.
//!
//! Read first: `documents/workload.rs` (the workload document), `importers.rs` (the table of formats), and
//! `importers/import.rs` ([`read_workload`], which reads any format).
//!
//! # Modules
//!
//! - [`reading`]: from bytes to structs: compression, TOML, JSON, YAML, XML and Avro, places in a file,
//!   errors;
//! - [`documents`]: the workload, schedule, comparison and history documents;
//! - [`importers`]: the table of formats, one file for each format, and reading in any format, whole or as a
//!   stream;
//! - [`generate`]: generators of the workloads of papers;
//! - [`atomic_file`]: files that are written as a whole or not at all.
//!
//! **Add a format**: one file in `importers/` that declares an `IMPORTER`, and one line in the table of
//! `importers.rs`. **Add an import option**: one line in the `params` of its importer.

pub mod atomic_file;
pub mod documents;
pub mod generate;
pub mod importers;
pub mod reading;
#[cfg(test)]
#[path = "../../../testdata/real.rs"]
mod real_data;

pub use documents::comparison::{Bounds, Comparison, NamedBound, to_json};
pub use documents::counts::{JobCounts, PhaseCounts};
pub use documents::history::{HistoryJob, HistoryRun, MachineCost, read_history, write_history};
pub use documents::parameters::{ParameterError, Parameters};
pub use documents::schedule::{
    Head, Meta, ScheduleLine, ScheduleLines, read_schedule, read_schedule_head, read_schedule_lines,
    write_schedule,
};
pub use documents::workload::{write_workload, write_workload_lines};
pub use importers::import::{ImportedWorkload, read_folder, read_workload};
pub use importers::importer::{ImportFolder, Importer, Input, Output};
pub use importers::line_import::{FlowAtLine, Line, LineContent, LineImport};
pub use importers::options::{ImportOptions, OptionError};
pub use importers::stream::WorkloadStream;
pub use importers::{Importers, unknown_format};
pub use reading::compression::Compression;
pub use reading::diagnostic::{Diagnostic, Diagnostics, Simplification};
pub use reading::document::Document;
pub use reading::element::{Element, read_element};
pub use reading::error::{Fault, Faults, TraceError};
pub use reading::folder::Folder;
pub use reading::format::Format;
pub use reading::parse::VERSION;
pub use reading::place::Place;
pub use reading::source::SourceMap;
pub use reading::text::{sha256, text as read_text};

use slackline_model::random;
