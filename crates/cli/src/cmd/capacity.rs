//! `tune --until`: the smallest cluster that meets a condition under a policy.

use anyhow::{Context, bail};
use slackline::Chosen;
use slackline::capacity::{Capacity, CapacityError, Condition, smallest};
use slackline::report::number::{Unit, column, counted, exact};
use slackline::report::{Align, Table};
use slackline_trace::tuning::{Capacity as Document, TriedSize, write_capacity};

use super::Answer;
use super::tune::Tune;
use crate::args::Shape;
use crate::args::output::Form;
use crate::args::value::Machines;
use crate::history::Past;
use crate::input::{Source, grain_span};
use crate::out;
use crate::progress::Cells;

/// Sizes that the table shows unless all are asked for: the last ones.
const SHOWN: usize = 20;

pub(super) fn run(
    args: &Tune,
    source: &Source,
    policy: &Chosen,
    condition: &Condition,
) -> anyhow::Result<Answer> {
    let machines = args.shape.machines.context("--until: found no --machines, expected --machines A..B")?;
    let sized = |count| Shape { machines: Some(Machines::one(count)), ..args.shape.clone() };
    let (small, large) = (sized(machines.least), sized(machines.most));
    let mut loaded = source.load(&large)?;
    loaded.tell(&source.name);
    loaded.prepare(&source.name, args.simulation.grain)?;
    // Crashes are of machines that every size has.
    let past = Past::read(&args.simulation)?;
    let smallest_instance = source.load(&small)?.instance;
    let options = args.simulation.options(&smallest_instance, args.shape.root_seed(), &past.history)?;
    let (draft, _) = source.shape(&large)?.into_draft(&source.name)?;
    let grain = grain_span(args.simulation.grain);
    let cells = Cells::new();
    let sizes = (machines.most - machines.least + 1) as usize;
    let progress = |count| cells.at((count - machines.least) as usize, sizes);
    let range = machines.least..=machines.most;
    let found = match smallest(&draft, (policy, condition), range, (&options, grain), &progress) {
        Ok(found) => found,
        Err(CapacityError::Invalid(invalid)) => bail!("{}: {invalid}", source.name),
        Err(error @ CapacityError::Violation { .. }) => {
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
        outcome(&found, condition, machines)
    );
    let body = match args.output.form() {
        Form::Table => format!("{head}\n{}", table(&found, condition, args.all)),
        Form::Csv => csv(&found, condition),
        Form::Json => json(&found, policy, condition),
    };
    if args.output.form() != Form::Table {
        out::talk(head.trim_end());
    }
    out::text(args.output.file(), &body)?;
    Ok(if found.found.is_some() { Answer::Yes } else { Answer::No })
}

fn outcome(found: &Capacity, condition: &Condition, machines: Machines) -> String {
    match found.found {
        Some(count) => format!(
            "{} {} the fewest in {machines} with {condition}",
            counted(count.into(), "machine"),
            if count == 1 { "is" } else { "are" },
        ),
        None => format!("no number of machines in {machines} gives {condition}"),
    }
}

fn table(found: &Capacity, condition: &Condition, all: bool) -> String {
    let values: Vec<Option<f64>> = found.tried.iter().map(|&(_, value)| value).collect();
    let cells = column(&values, Unit::Measure);
    let from = if all { 0 } else { cells.len().saturating_sub(SHOWN) };
    let mut table = Table::new(&[("machines", Align::Right), (condition.metric(), Align::Right)]);
    for (&(count, _), cell) in found.tried.iter().zip(&cells).skip(from) {
        table.row([count.to_string(), cell.clone()]);
    }
    let hidden =
        if from > 0 { format!("({from} smaller sizes failed; --all shows them)\n") } else { String::new() };
    table.render() + &hidden
}

fn csv(found: &Capacity, condition: &Condition) -> String {
    let row = |&(count, value): &(u32, Option<f64>)| {
        let meets = found.found == Some(count);
        [count.to_string(), exact(value), meets.to_string()]
    };
    slackline::report::csv(&["machines", condition.metric(), "found"], found.tried.iter().map(row))
}

fn json(found: &Capacity, policy: &Chosen, condition: &Condition) -> String {
    let tried = found.tried.iter().map(|&(machines, value)| TriedSize { machines, value });
    write_capacity(&Document {
        until: condition.to_string(),
        policy: policy.spec().to_owned(),
        machines: found.found,
        tried: tried.collect(),
    })
}
