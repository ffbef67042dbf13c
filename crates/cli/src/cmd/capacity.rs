//! `tune --until`: the smallest cluster that meets a condition under a policy.

use anyhow::{Context, anyhow, bail};
use slackline::PolicySpec;
use slackline::capacity::{CapacityError, Condition, Search, smallest};
use slackline::import::grain_span;
use slackline::report::capacity as report;
use slackline::report::headline;
use slackline::report::number::counted;
use slackline::report::table::fitted;
use slackline_trace::Importers;

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, Shape, SimulationArgs, TableArgs};
use crate::history::Past;
use crate::input::{Source, tell};
use crate::out;
use crate::progress::Cells;

/// What is asked of clusters of several sizes.
pub(super) struct Capacity<'a> {
    pub(super) source: &'a Source,
    pub(super) policy: &'a PolicySpec,
    pub(super) condition: &'a Condition,
    /// The workload, on a range of machines.
    pub(super) shape: &'a Shape,
    pub(super) importers: &'a Importers,
    pub(super) simulation: &'a SimulationArgs,
    pub(super) output: &'a OutputArgs,
    pub(super) table: &'a TableArgs,
    /// Whether to show every size that was tried.
    pub(super) all: bool,
}

pub(super) fn run(asked: &Capacity<'_>) -> anyhow::Result<Answer> {
    let Capacity { source, policy, condition, .. } = *asked;
    let view = asked.table.view(asked.output, &[report::MACHINES, condition.metric()])?;
    let machines = asked.shape.machines.context("--until: found no --machines, expected --machines A..B")?;
    let any = Shape { machines: None, ..asked.shape.clone() }.options(asked.importers)?;
    let sized = |count| any.clone().with_machines(count);
    let (small, large) = (sized(machines.least), sized(machines.most));
    let mut loaded = source.load(&large)?;
    tell(&source.name, &loaded.diagnostics);
    loaded.prepare(asked.simulation.grain)?;
    let flows = loaded.instance.flows();
    let is_idle = condition.is_about_deadlines() && flows.iter().all(|flow| flow.deadline.is_none());
    if is_idle && !flows.is_empty() {
        bail!(
            "--until: found {condition} for a workload without deadlines, which any cluster meets, expected deadlines in \
             {} or --deadlines",
            source.name
        );
    }
    // Crashes are of machines that every size has.
    let past = Past::read(asked.simulation)?;
    let smallest_instance = source.load(&small)?.instance;
    let options =
        asked.simulation.options().resolve(&smallest_instance, asked.shape.root_seed(), &past.history)?;
    let (draft, _) = source.shape(&large)?.into_draft()?;
    let grain = grain_span(asked.simulation.grain);
    let cells = Cells::new();
    let sizes = (machines.most - machines.least + 1) as usize;
    let progress = |count| cells.at((count - machines.least) as usize, sizes);
    let machines_range = machines.least..=machines.most;
    let search = Search::new(policy, condition, machines_range, &options).with_grain(grain);
    let found = match smallest(&draft, &search, &progress) {
        Ok(found) => found,
        Err(CapacityError::Invalid(invalid)) => bail!("{}: {invalid}", source.name),
        Err(error) => {
            out::error(&anyhow!("{}: {error}", policy.spec()));
            return Ok(Answer::No);
        }
    };
    drop(cells);
    let head = format!(
        "{}: {}, {}, {}\n{}: {}\n",
        source.short_name(),
        counted(loaded.instance.flows().len() as u64, "flow"),
        counted(loaded.instance.jobs().len() as u64, "job"),
        headline::tasks(&loaded.instance),
        policy.spec(),
        report::outcome(&found, condition, &machines.to_string())
    );
    let body = match asked.output.form() {
        Form::Table => {
            let table = report::table(&found, condition, asked.all, &view);
            format!("{}\n{table}", fitted(&head, view.width))
        }
        Form::Csv => report::csv(&found, condition),
        Form::Json => report::json(&found, policy, condition),
    };
    if asked.output.form() != Form::Table {
        out::talk(head.trim_end());
    }
    out::text(asked.output.file(), &body)?;
    Ok(if found.found.is_some() { Answer::Yes } else { Answer::No })
}
