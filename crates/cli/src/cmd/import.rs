//! `import`: a trace as a workload document.

use std::path::{Path, PathBuf};

use clap::Args;
use slackline::report::number::counted;
use slackline_trace::{Format, write_workload};

use super::Answer;
use crate::args::{Shape, value};
use crate::input::{self, Source};
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  slackline import trace.tsv --machines 600 --map-slots 2 --reduce-slots 1 --output day.toml

What was repaired or left out is counted on standard error. Without flags for a cluster the
document has none, and flags must give one whenever it is used.")]
pub(crate) struct Import {
    /// Trace, or a document to be rewritten; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    #[command(flatten)]
    shape: Shape,
    /// Format of the document [default: by the name of the output file, else toml]
    #[arg(long, value_name = "FORMAT", value_parser = value::native(), help_heading = "Output")]
    to: Option<Format>,
    /// Write the document to FILE, as a whole or not at all, instead of standard output
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Import, tables: &Tables) -> anyhow::Result<Answer> {
    let source = Source::read(&args.workload)?;
    let (draft, diagnostics) = source.shape(&args.shape.options(&tables.importers)?)?.into_draft()?;
    input::tell(&source.name, &diagnostics);
    let flows = counted(draft.flows.len() as u64, "flow");
    let cluster = if draft.machines.is_empty() { ", no cluster" } else { "" };
    out::talk(format_args!("{}: {flows}{cluster}", source.name));
    let file = args.output.as_deref();
    out::text(file, &write_workload(&draft, format_of(args.to, file)))?;
    Ok(Answer::Yes)
}

/// The format that was asked for, or that the file's name asks for, or TOML.
pub(super) fn format_of(asked: Option<Format>, file: Option<&Path>) -> Format {
    let named = || {
        let extension = file?.extension()?.to_str()?;
        let name = if extension == "yml" { "yaml" } else { extension };
        Format::from_name(name)
    };
    asked.or_else(named).unwrap_or(Format::Toml)
}
