//! `compare`: several policies on one workload, or on several files or pieces of one, side by side.

mod flags;
mod page_rows;
mod raw;
mod result_writer;
mod round;
mod samples;
mod sweep;

use std::path::PathBuf;

use anyhow::{Context, bail};
use slackline::import::Loaded;
use slackline::report::{Figures, Row, comparison, flow_chances};
use slackline::{PolicySpec, recorded};

use self::result_writer::ResultWriter;
use self::round::Round;
use self::samples::{Sample, Samples};
use self::sweep::{Results, Sweep};
use crate::args::history::HistoryFile;
use crate::args::output::Form;
use crate::args::seeds::Seeds;
use crate::tables::Tables;
use crate::terminal::{input, out};
use crate::verbs::answer::Answer;

pub(crate) use self::flags::Compare;

pub(crate) fn run(args: &Compare, tables: &Tables) -> anyhow::Result<Answer> {
    // What cannot be shown is better known before the simulations than after them.
    let shapes = args.shape.sizes();
    let is_swept = shapes.len() > 1;
    let mut columns = args.by.map_or_else(comparison::column_names, comparison::column_names_by);
    if is_swept {
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
    refuse_of_several(args)?;
    let past = HistoryFile::read(&args.simulation)?;
    let read = |workload: &PathBuf| input::read(workload, args.output.file());
    let sources = args.workloads.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let shapes =
        shapes.iter().map(|shape| shape.options(&tables.importers)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut chances = args.seeds.clone();
    // The chances of flows need all of them.
    chances.seeds = chances.seeds.or(args.flows.then_some(flow_chances::ENOUGH as u32));
    let seeds = Seeds::new(&chances, args.shape.root_seed(), &view.columns);
    let samples = Samples { sources: &sources, every: args.each };
    let mut of_first = Some(samples.of(&sources[0], &shapes[0], seeds.seed(0))?);
    let is_drawn = |samples: &Vec<Sample>| samples.iter().any(|sample| sample.loaded.depends_on_seed());
    let is_random = args.simulation.options().draws() || of_first.as_ref().is_some_and(is_drawn);
    if args.flows {
        refuse_flows(is_random, of_first.iter().flatten())?;
    }
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
    let sweep =
        Sweep { args, samples: &samples, seeds: &seeds, shapes: &shapes, policies: &policies, past: &past };
    let Results { mut sizes, first_drawn } = sweep.run(of_first.take())?;
    if let Some(by) = args.by {
        refuse_without_groups(by, &sizes[0], &samples.title())?;
    }
    let is_cut = seeds.is_cut();
    let (view, policies, samples) = (&view, policies.as_slice(), &samples);
    let result_writer = ResultWriter { args, view, policies, samples, is_random, is_cut, warning };
    // Raw results are worth keeping even if the table cannot be written.
    result_writer.write_raw(&sizes)?;
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

/// Refuses the chances of flows where each flow has one completion, or each seed other flows.
fn refuse_flows<'a>(is_random: bool, mut samples: impl Iterator<Item = &'a Sample>) -> anyhow::Result<()> {
    if !is_random {
        bail!(
            "--flows: found nothing random, so each flow has one completion, which `slackline simulate` shows"
        );
    }
    if samples.any(|sample| sample.loaded.draws_flows()) {
        bail!(
            "--flows: found --load-by jobs, which draws other flows for each seed, expected arrivals or size"
        );
    }
    Ok(())
}

/// Schedules are for `check`, which reads one workload as it is, and the chances of flows are over seeds of it.
fn refuse_of_several(args: &Compare) -> anyhow::Result<()> {
    let found = match args.each {
        Some(_) => "--each",
        None if args.workloads.len() > 1 => "several workloads",
        None => return Ok(()),
    };
    if args.schedules.is_some() {
        bail!("--schedules: found {found} with it, expected one whole workload, which `check` can read");
    }
    if args.flows {
        bail!(
            "--flows: found {found} with it, expected one whole workload (--raw-flows FILE writes all flows)"
        );
    }
    Ok(())
}

/// What is for one cluster only.
fn refuse_with_sizes(args: &Compare) -> anyhow::Result<()> {
    let flag = [
        ("flows", args.flows),
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
