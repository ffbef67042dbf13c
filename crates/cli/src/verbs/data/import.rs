//! `import`: a trace as a workload document.

use std::path::PathBuf;

use clap::Args;
use clap::builder::UnknownArgumentValueParser;
use slackline::import::WorkloadOptions;
use slackline::report::number::counted;

use crate::args::output::WorkloadForm;
use crate::args::{OutputArgs, ParameterFlags, Shape};
use crate::tables::Tables;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  slackline import trace.tsv --machines 600 --slots 3 --output day.toml
  slackline import trace.tsv --machines 600 --slots 3 --output day.jsonl.zst

Repaired and ignored records are counted on standard error. Without options for a cluster the \
document has no cluster, and every command that reads it needs these options.")]
pub(crate) struct Import {
    /// Trace, or a document to convert; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    output: OutputArgs<WorkloadForm>,
    /// What `--format` was called in the first edition.
    #[arg(long, hide = true, value_parser = UnknownArgumentValueParser::suggest_arg("--format"))]
    to: Option<String>,
}

pub(crate) fn run(args: &Import, tables: &Tables) -> anyhow::Result<Answer> {
    let parameters = args.parameters.parameters()?;
    let options = WorkloadOptions { parameters, ..args.shape.options(&tables.importers)? };
    let (name, draft) = input::draft(&args.workload, args.output.file(), &options)?;
    let flows = counted(draft.flows.len() as u64, "flow");
    let cluster = if draft.machines.is_empty() { ", no cluster" } else { "" };
    out::talk(format_args!("{name}: {flows}{cluster}"));
    args.output.form().write(args.output.file(), &draft)?;
    Ok(Answer::Yes)
}
