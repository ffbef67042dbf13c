//! `export`: a workload as a file for another program.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use slackline_trace::exporters;

use super::Answer;
use crate::args::output::{ExportForm, OutputArgs};
use crate::args::{ParameterFlags, Shape};
use crate::input;
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  slackline export examples/hadoop-log --format synth --output sls.json
  slackline export day.toml --machines 40 --slots 4 --output sls.json

synth: jobs for Hadoop's Scheduler Load Simulator (SLS), -tracetype SYNTH. SLS draws jobs from kinds by their weights: a kind is \
the jobs of one queue and user with as many tasks of the same lengths. What it cannot say is counted on standard error.")]
pub(crate) struct Export {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    parameters: ParameterFlags,
    #[command(flatten)]
    output: OutputArgs<ExportForm>,
}

pub(crate) fn run(args: &Export, tables: &Tables) -> anyhow::Result<Answer> {
    let options = args.shape.options(&tables.importers)?.with_parameters(args.parameters.parameters()?);
    let (name, draft) = input::draft(&args.workload, args.output.file(), &options)?;
    let exported = match args.output.form() {
        ExportForm::Synth => exporters::synth(&draft),
    };
    let exported = match exported {
        Ok(exported) => exported,
        Err(what) => bail!("{name}: {what}"),
    };
    for remark in &exported.remarks {
        out::talk(format_args!("{name}: {remark}"));
    }
    out::text(args.output.file(), &exported.text)?;
    Ok(Answer::Yes)
}
