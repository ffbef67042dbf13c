//! Documents in, documents out: workloads, schedules and comparisons, and what else can be imported.
//!
//! In reading order:
//! - [`error`]: what is wrong with a document, and where;
//! - [`format`](mod@format): which format a file is in, and its text;
//! - [`workload`]: the workload document, and [`read_workload`], which takes any format;
//! - [`schedule`]: the schedule document;
//! - [`comparison`]: the comparison document, and that of bounds;
//! - [`history`]: the history document;
//! - [`schema`]: their JSON Schemas;
//! - [`options`]: what importers assume where a trace is silent;
//! - `swim`: traces of the SWIM project;
//! - `woha_xml`, `oozie`: workflow files, and `xml`, what they share;
//! - `wfformat`: workflow instances of WfCommons;
//! - [`generate`]: the synthetic workloads of the papers;
//! - `wire`, `parse`, `source`: shared parts of the documents, text to structs, positions.
//!
//! **Never knows**: scheduling.

pub mod comparison;
pub mod diagnostic;
pub mod error;
pub mod format;
pub mod generate;
pub mod history;
mod oozie;
pub mod options;
mod parse;
#[cfg(test)]
#[path = "../../../testdata/real.rs"]
mod real_data;
pub mod schedule;
pub mod schema;
pub mod source;
mod swim;
pub mod tuning;
mod wfformat;
mod wire;
mod woha_xml;
pub mod workload;
mod xml;

pub use comparison::{
    Bounds, ComparisonEntry, ObjectiveResult, read_comparison, write_bounds, write_comparison,
};
pub use diagnostic::Diagnostic;
pub use error::{Fault, Faults, Place, TraceError};
pub use format::Format;
pub use history::{read_history, write_history};
pub use options::{ImportOptions, OptionError};
pub use schedule::{Meta, read_schedule, read_schedule_meta, write_schedule};
use slackline_random as random;
pub use source::SourceMap;
pub use workload::{Imported, read_workload, sha256, write_workload};
