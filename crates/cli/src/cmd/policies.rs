//! `policies`: what there is, from the registry.

use clap::Args;
use slackline::PolicySpec;
use slackline::report::policies;

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, policy};
use crate::out;
use crate::tables::Tables;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline policies
  slackline policies fair

A parameter follows the name: --policy fair:by=flow")]
pub(crate) struct Policies {
    /// Say everything of this policy
    #[arg(value_name = "NAME", value_parser = policy::standard())]
    name: Option<PolicySpec>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Policies, tables: &Tables) -> anyhow::Result<Answer> {
    let one = args.name.as_ref().map(PolicySpec::name);
    let entries: Vec<_> =
        tables.policies.iter().filter(|entry| one.is_none_or(|name| name == entry.name)).collect();
    let view = out::view(args.output.file());
    let text = match (args.output.form(), entries.as_slice()) {
        (Form::Table, [only]) if one.is_some() => policies::details(only, &view),
        (Form::Table, all) => policies::table(all, &view),
        (Form::Csv, all) => policies::csv(all),
        (Form::Json, all) => policies::json(all),
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}
