//! `compare`: several policies on one workload, or on several files or pieces of one, side by side.

mod flags;
mod page_rows;
mod result_writer;
mod round;
mod samples;
mod sweep;

use std::path::PathBuf;

use anyhow::{Context, bail};
use slackline::import::Loaded;
use slackline::report::{Figures, Row, comparison};
use slackline::{PolicySpec, recorded};

use self::result_writer::ResultWriter;
use self::round::Round;
use self::samples::Samples;
use self::sweep::{Results, Sweep};
use crate::args::history::HistoryFile;
use crate::args::output::Form;
use crate::tables::Tables;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

pub(crate) use self::flags::Compare;

pub(crate) fn run(args: &Compare, tables: &Tables) -> anyhow::Result<Answer> {
    // What cannot be shown is better known before the simulations than after them.
    let shapes = args.shape.sizes();
    let is_swept = shapes.len() > 1;
    let mut columns = args.by.map_or_else(comparison::column_names, comparison::column_names_by);
    let is_averaged = args.seeds > 1 || args.workloads.len() > 1 || args.each.is_some();
    if is_swept && !is_averaged {
        columns.insert(0, comparison::MACHINES);
    }
    let view = args.table.view(&args.output, &columns)?;
    if let Some(by) = args.by
        && args.output.form() == Form::Json
    {
        bail!(
            "--by: found {by} with --format json, expected a table or CSV: JSON has every group without it"
        );
    }
    if is_swept {
        refuse_with_sizes(args)?;
    }
    refuse_schedules_of_several(args)?;
    let past = HistoryFile::read(&args.simulation)?;
    let read = |workload: &PathBuf| input::read(workload, args.output.file());
    let sources = args.workloads.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let shapes =
        shapes.iter().map(|shape| shape.options(&tables.importers)).collect::<anyhow::Result<Vec<_>>>()?;
    let first = args.shape.root_seed();
    let seeds: Vec<u64> = (0..u64::from(args.seeds)).map(|k| first.wrapping_add(k)).collect();
    let samples = Samples { sources: &sources, every: args.each, seeds: &seeds };
    let mut of_first = Some(samples.of(&sources[0], &shapes[0], first)?);
    let loaded = of_first.as_ref().and_then(|samples| Some(&samples.first()?.loaded));
    let policies = policies(args, tables, loaded, is_swept)?;
    args.simulation.check_policies(&policies)?;
    input::report_remarks(&policies);
    // Tables of groups and of several sizes do not show how far the rows are from what happened.
    let beside = Some(policies.as_slice()).filter(|_| !is_swept && args.by.is_none());
    let has_profile = args.simulation.profile.0.is_some();
    let warning = loaded.and_then(|loaded| input::warn_of_recorded(loaded, beside, has_profile));
    if let Some(dir) = &args.schedules {
        std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot be created", dir.display()))?;
    }
    let sweep = Sweep {
        args,
        samples: &samples,
        shapes: &shapes,
        policies: &policies,
        past: &past,
        is_shown: !is_averaged && !is_swept,
    };
    let Results { mut sizes, first_drawn } = sweep.run(of_first.take())?;
    if let Some(by) = args.by {
        refuse_without_groups(by, &sizes[0], &samples.title())?;
    }
    let result_writer = ResultWriter { args, view: &view, policies: &policies, samples: &samples, warning };
    match sizes.as_slice() {
        [only] => result_writer.write(only)?,
        several => result_writer.write_sizes(several)?,
    }
    if let Some(sample) = &first_drawn {
        result_writer.write_page(&sample.loaded, &mut sizes)?;
    }
    let failed = |row: &Row| row.result.as_ref().is_ok_and(|figures| figures.failed > 0);
    let infeasible = |row: &Row| row.result.is_err();
    let no = sizes.iter().flatten().flat_map(|round| &round.rows).any(|row| failed(row) || infeasible(row));
    Ok(if no { Answer::No } else { Answer::Yes })
}

/// The policies that are named; by default the usual ones, after the recorded execution if the log has one,
/// which is for one cluster.
fn policies(
    args: &Compare,
    tables: &Tables,
    loaded: Option<&Loaded>,
    is_swept: bool,
) -> anyhow::Result<Vec<PolicySpec>> {
    if !args.policies.is_empty() {
        let named = once(args.policies.iter().flat_map(|several| several.0.clone()));
        return Ok(named.into_iter().map(|policy| args.answers.of(policy)).collect());
    }
    let has_deadlines =
        loaded.is_some_and(|loaded| loaded.instance.flows().iter().any(|flow| flow.deadline.is_some()));
    let usual = tables.policies.usual(&args.workloads[0], has_deadlines)?;
    let has_recorded = !is_swept && loaded.is_some_and(|loaded| loaded.recorded.is_some());
    let recorded = has_recorded.then(|| tables.policies.parse(recorded::NAME)).transpose()?;
    Ok(recorded.into_iter().chain(usual).collect())
}

/// A table of groups has nothing to show where no flows are in any.
fn refuse_without_groups(by: &str, rounds: &[Round], workload: &str) -> anyhow::Result<()> {
    let ran = || rounds.iter().flat_map(|round| &round.rows).filter_map(|row| row.result.as_ref().ok());
    let has_groups = |figures: &Figures| figures.groups.iter().any(|group| group.by == by);
    if ran().next().is_some() && !ran().any(has_groups) {
        bail!("--by: found {by}, which no flow of {workload} has");
    }
    Ok(())
}

/// Schedules are for `check`, which reads one workload as it is.
fn refuse_schedules_of_several(args: &Compare) -> anyhow::Result<()> {
    let found = match args.each {
        Some(_) => "--each",
        None if args.workloads.len() > 1 => "several workloads",
        None => return Ok(()),
    };
    if args.schedules.is_some() {
        bail!("--schedules: found {found} with it, expected one whole workload, which `check` can read");
    }
    Ok(())
}

/// What is for one cluster only.
fn refuse_with_sizes(args: &Compare) -> anyhow::Result<()> {
    let flag = [
        ("by", args.by.is_some()),
        ("schedules", args.schedules.is_some()),
        ("format json", args.output.form() == Form::Json),
    ];
    if let Some((flag, _)) = flag.iter().find(|(_, given)| *given) {
        bail!(
            "--{flag}: found several numbers of machines with it, expected one (--machines N), or a table or CSV of all"
        );
    }
    Ok(())
}

/// Each policy once, in order; reports repeated ones.
fn once(named: impl Iterator<Item = PolicySpec>) -> Vec<PolicySpec> {
    let mut policies: Vec<PolicySpec> = Vec::new();
    for policy in named {
        if policies.iter().any(|known| known.spec() == policy.spec()) {
            out::warn(format_args!("--policies: found {} twice; it is compared once", policy.spec()));
        } else {
            policies.push(policy);
        }
    }
    policies
}
