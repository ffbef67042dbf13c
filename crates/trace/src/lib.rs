#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! In reading order:
//! - [`place`], [`error`]: what is wrong with a document, and where;
//! - [`compression`], [`format`](mod@format), `text`: compressed files, the forms of our documents, and the text of a file;
//! - [`workload`]: the workload document;
//! - [`importer`], [`importers`]: what an importer is, and the table of them: `swim` (traces of the SWIM project),
//!   `woha_xml`, `oozie` and `azkaban` (workflow files), `wfformat` (workflow instances of WfCommons), `swf`, `sacct`,
//!   `alibaba`, `spark` and `batsim` (logs and workloads of clusters), `rumen`, `jhist` and `sls` (logs of Hadoop);
//! - `avro`: binary job histories as those in JSON;
//! - [`options`]: what importers are told where a file is silent;
//! - [`folder`]: folders whose files are one workload;
//! - [`import`]: [`read_workload`], which takes any format, and [`read_folder`]; [`line_import`], [`stream`]: workloads that are read flow by
//!   flow;
//! - [`schedule`]: the schedule document;
//! - [`comparison`], [`tuning`], [`history`]: the other documents;
//! - [`document`]: documents of other crates, in our forms and with our errors;
//! - [`element`]: XML files that are not workloads, such as the configuration of a scheduler;
//! - `schema`: their JSON Schemas, which a test holds against the published ones;
//! - [`generate`]: the synthetic workloads of the papers;
//! - [`atomic_file`]: files that are written as a whole or not at all;
//! - `wire`, `times`, `parse`, `json`, `line_reader`, `tree`, `de`, `source`: shared parts of the documents; text to structs in any form,
//!   JSON straight, the others by way of a tree of values with their places; places of what is found wrong later;
//! - `known`: files that are known by name and not read;
//! - `diagnostic`, `durations`: remarks of importers, durations that are drawn.
//!
//! **Add a format**: one file in `importers/` that declares an `IMPORTER`, and one line in the table of
//! `importers.rs`. **Add an import option**: one line in the `params` of its importer.

pub mod atomic_file;
mod avro;
pub mod comparison;
pub mod compression;
mod counts;
mod de;
pub mod diagnostic;
pub mod document;
mod durations;
pub mod element;
pub mod error;
pub mod folder;
pub mod format;
pub mod generate;
pub mod history;
pub mod import;
pub mod importer;
pub mod importers;
mod json;
mod known;
pub mod line_import;
mod line_reader;
pub mod options;
pub mod parameters;
mod parse;
pub mod place;
#[cfg(test)]
#[path = "../../../testdata/real.rs"]
mod real_data;
pub mod schedule;
#[cfg(test)]
mod schema;
mod sizes;
pub mod source;
pub mod stream;
mod text;
mod times;
mod tree;
pub mod tuning;
mod wire;
pub mod workload;

pub use comparison::{Bounds, Comparison, NamedBound, read_comparison, write_bounds, write_comparison};
pub use compression::Compression;
pub use counts::{JobCounts, PhaseCounts};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use document::Document;
pub use element::{Element, read_element};
pub use error::{Fault, Faults, TraceError};
pub use folder::Folder;
pub use format::Format;
pub use history::{
    HistoryJob, HistoryMachine, HistoryRun, read_history, read_history_and_runs, write_history,
    write_history_and_runs,
};
pub use import::{Imported, read_folder, read_workload};
pub use importer::{ImportFolder, Importer, Input, Output};
pub use importers::Importers;
pub use known::unknown_format;
pub use line_import::{Line, LineImport, Marked, Said};
pub use options::{ImportOptions, OptionError};
pub use parameters::{ParameterError, Parameters};
pub use place::Place;
pub use schedule::{
    Head, Meta, ScheduleLine, ScheduleLines, read_schedule, read_schedule_head, read_schedule_lines,
    write_schedule,
};
pub use source::SourceMap;
pub use stream::WorkloadStream;
pub use text::{sha256, text as read_text};
pub use workload::{write_workload, write_workload_lines};

use slackline_model::random;
