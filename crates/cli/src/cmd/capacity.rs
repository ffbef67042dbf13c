//! `tune --until`: the smallest cluster that meets a condition under a policy.

use anyhow::{Context, bail};
use slackline::PolicySpec;
use slackline::capacity::{CapacityError, Condition, Search, smallest};
use slackline::import::{WorkloadOptions, grain_span};
use slackline::report::capacity as report;
use slackline::report::number::counted;

use super::Answer;
use super::tune::Tune;
use crate::args::Shape;
use crate::args::output::Form;
use crate::history::Past;
use crate::input::{Source, tell};
use crate::out;
use crate::progress::Cells;

pub(super) fn run(
    args: &Tune,
    source: &Source,
    policy: &PolicySpec,
    condition: &Condition,
) -> anyhow::Result<Answer> {
    let machines = args.shape.machines.context("--until: found no --machines, expected --machines A..B")?;
    let any = Shape { machines: None, ..args.shape.clone() }.options()?;
    let sized = |count| WorkloadOptions { machines: Some(count), ..any.clone() };
    let (small, large) = (sized(machines.least), sized(machines.most));
    let mut loaded = source.load(&large)?;
    tell(&source.name, &loaded.diagnostics);
    loaded.prepare(args.simulation.grain)?;
    // Crashes are of machines that every size has.
    let past = Past::read(&args.simulation)?;
    let smallest_instance = source.load(&small)?.instance;
    let options =
        args.simulation.options().resolve(&smallest_instance, args.shape.root_seed(), &past.history)?;
    let (draft, _) = source.shape(&large)?.into_draft()?;
    let grain = grain_span(args.simulation.grain);
    let cells = Cells::new();
    let sizes = (machines.most - machines.least + 1) as usize;
    let progress = |count| cells.at((count - machines.least) as usize, sizes);
    let machines_range = machines.least..=machines.most;
    let search = Search { policy, condition, machines: machines_range, options: &options, grain };
    let found = match smallest(&draft, &search, &progress) {
        Ok(found) => found,
        Err(CapacityError::Invalid(invalid)) => bail!("{}: {invalid}", source.name),
        Err(error) => {
            out::talk(format_args!("error: {}: {error}", policy.spec()));
            return Ok(Answer::No);
        }
    };
    drop(cells);
    let head = format!(
        "{}: {}, {}, {}\n{}: {}\n",
        source.short_name(),
        counted(loaded.instance.flows().len() as u64, "flow"),
        counted(loaded.instance.jobs().len() as u64, "job"),
        counted(loaded.instance.n_tasks(), "task"),
        policy.spec(),
        report::outcome(&found, condition, &machines.to_string())
    );
    let body = match args.output.form() {
        Form::Table => format!("{head}\n{}", report::table(&found, condition, args.all)),
        Form::Csv => report::csv(&found, condition),
        Form::Json => report::json(&found, policy, condition),
    };
    if args.output.form() != Form::Table {
        out::talk(head.trim_end());
    }
    out::text(args.output.file(), &body)?;
    Ok(if found.found.is_some() { Answer::Yes } else { Answer::No })
}
