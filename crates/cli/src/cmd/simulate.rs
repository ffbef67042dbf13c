//! `simulate`: one policy on one workload.

use std::path::PathBuf;

use clap::Args;
use slackline::Chosen;
use slackline::report::flows;
use slackline::report::number::counted;
use slackline::simulate::{Simulated, simulate};

use super::Answer;
use crate::args::output::Form;
use crate::args::{OutputArgs, Shape, SimulationArgs};
use crate::history::Past;
use crate::input::{Loaded, Source};
use crate::progress::Progress;
use crate::{lower, out, recorded, results};

/// Flows that the table shows unless all are asked for.
const SHOWN: usize = 20;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline simulate examples/nightly.toml --policy edf
  slackline simulate examples/nightly.toml --policy fair:by=flow --output fair.json
  slackline check examples/nightly.toml fair.json
  slackline simulate examples/nightly.toml --policy flex --knowledge learned --history past.json
  slackline simulate examples/nightly.toml --policy woha-lpf --plan-file nightly.plan

JSON is the schedule document; CSV has a row a flow. `slackline policies` lists the policies.")]
pub(crate) struct Simulate {
    /// Workload document or trace; - for standard input
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,
    /// Policy, with parameters as in fair:by=flow
    #[arg(long, short, value_name = "POLICY", value_parser = Chosen::parse, help_heading = "Policy")]
    policy: Chosen,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    simulation: SimulationArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Show every flow in the table, not only the first 20
    #[arg(long, help_heading = "Output")]
    all: bool,
}

pub(crate) fn run(args: &Simulate) -> anyhow::Result<Answer> {
    let past = Past::read(&args.simulation)?;
    args.simulation.check_policies(std::slice::from_ref(&args.policy))?;
    let source = Source::read(&args.workload)?;
    let mut loaded = source.load(&args.shape)?;
    loaded.tell(&source.name);
    loaded.prepare(&source.name, args.simulation.grain)?;
    let (instance, seed) = (&loaded.instance, args.shape.root_seed());
    let options = args.simulation.options(instance, seed, &past.history)?;
    results::warn_of_load(instance);
    let bound = lower::bounds(instance).best;
    let progress = Progress::new(1, instance.n_tasks());
    let mut told = |done| progress.at(0, done);
    let result = simulate(instance, &args.policy, &options, bound, Some(&mut told));
    drop(progress);
    let mut simulated = match result {
        Ok(simulated) => simulated,
        Err(violation) => {
            out::talk(format_args!("error: {}: not feasible: {violation}", args.policy.spec()));
            return Ok(Answer::No);
        }
    };
    let failed = results::failed(&simulated.schedule);
    let known = simulated.history.take();
    // What was learned is worth keeping even if nobody reads the result.
    let written = write(args, source.short_name(), (&loaded, &past), simulated);
    if let (Some(file), Some(known)) = (&args.simulation.history, known) {
        past.replace(file, &known)?;
    }
    written?;
    if failed == 0 {
        return Ok(Answer::Yes);
    }
    out::warn(format_args!(
        "{} failed: no machine was left to finish them, or machines died too often for any task to end",
        counted(failed as u64, "flow")
    ));
    Ok(Answer::No)
}

/// Says something, if there is anything to say.
fn say(text: &str) {
    if !text.is_empty() {
        out::talk(text.trim());
    }
}

fn write(
    args: &Simulate,
    name: &str,
    (loaded, past): (&Loaded, &Past),
    mut simulated: Simulated,
) -> anyhow::Result<()> {
    let (instance, file) = (&loaded.instance, args.output.file());
    let figures = results::figures(&simulated);
    let warnings = results::admissions(instance, &simulated.admissions);
    let schedule = &mut simulated.schedule;
    let mut options = loaded.options.clone();
    recorded::add_simulation(&mut options, &args.simulation, past.sha256.as_deref());
    let meta = results::meta(loaded, options, args.shape.root_seed(), schedule);
    let summary = results::headlines(name, instance) + &results::outcome(schedule, &meta.status);
    match args.output.form() {
        Form::Table => {
            let most = if args.all { usize::MAX } else { SHOWN };
            let flows = flows::table(instance, schedule, most);
            out::text(file, &format!("{summary}{}\n{flows}{warnings}", flows::figures(&figures, &[])))
        }
        Form::Csv => {
            out::talk(summary.trim_end());
            say(&warnings);
            out::text(file, &flows::csv(instance, schedule))
        }
        Form::Json => {
            out::talk(summary.trim_end());
            say(&warnings);
            out::data(file, |out| results::write_schedule(out, instance, schedule, (&figures, &meta)))
        }
    }
}
