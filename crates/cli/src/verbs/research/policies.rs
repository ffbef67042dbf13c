//! `policies`: lists the policies with their parameters, and tests whether a policy conforms to the rules of
//! all.

use clap::Args;
use slackline::PolicySpec;
use slackline::conformance::{self, Checked};
use slackline::report::number::counted;
use slackline::report::policies;

use crate::args::output::Form;
use crate::args::{OutputArgs, PolicyTimeout, policy};
use crate::tables::Tables;
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline policies
  slackline policies fair
  slackline policies --test 'command:python3 examples/edf.py'

A parameter follows the name: --policy fair:by=flow")]
pub(crate) struct Policies {
    /// Print all details of this policy
    #[arg(value_name = "NAME", value_parser = policy::described_of_standard())]
    name: Option<policy::PolicyName>,
    /// Test whether a policy follows the rules for all policies, a line for each check
    ///
    /// Small workloads are simulated with failures, noise and all other options of the simulator. Every schedule
    /// is checked, and a repeated simulation must give the same schedule.
    #[arg(long, value_name = "POLICY", value_parser = policy::standard(), conflicts_with_all = ["name", "format", "output"], hide_possible_values = true)]
    test: Option<PolicySpec>,
    #[command(flatten)]
    timeout: PolicyTimeout,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &Policies, tables: &Tables) -> anyhow::Result<Answer> {
    if let Some(policy) = &args.test {
        return test(&args.timeout.of(policy.clone()));
    }
    let one = args.name.as_ref().map(|described| described.0);
    let entries: Vec<_> =
        tables.policies.described().filter(|entry| one.is_none_or(|name| name == entry.name)).collect();
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

/// Runs all conformance tests on a policy, and prints each result at once.
fn test(policy: &PolicySpec) -> anyhow::Result<Answer> {
    let mut result = Ok(());
    let mut say = |checked: &Checked| {
        let line = match &checked.wrong {
            None => format!("ok      {}\n", checked.name),
            Some(wrong) => format!("FAILED  {}: {}\n", checked.name, wrong.replace('\n', "\n          ")),
        };
        if result.is_ok() {
            result = out::text(None, &line);
        }
    };
    let checks = conformance::check(policy, &mut say);
    result?;
    let failed = checks.iter().filter(|checked| checked.wrong.is_some()).count();
    let workloads = counted(conformance::workloads().len() as u64, "workload");
    let all = counted(checks.len() as u64, "check");
    out::text(None, &format!("{all} of {} on {workloads}, {failed} failed\n", policy.spec()))?;
    Ok(if failed == 0 { Answer::Yes } else { Answer::No })
}
