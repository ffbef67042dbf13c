//! Options as a schedule records them under `workload.options`: each flag by its name.
//!
//! `simulate`, `compare` and `plan` write them, `check` reads them back, so that no flag need be repeated. They
//! are read by the very definitions that read the command line, so the two cannot disagree.

use std::collections::BTreeMap;

use anyhow::anyhow;
use clap::Parser;
use serde_json::Value;
use slackline_model::draft::Weights;
use slackline_trace::ImportOptions;

use crate::args::import::{importers, is_flag};
use crate::args::{PlanArgs, Shape, SimulationArgs};

/// Options by the names of their flags.
pub(crate) type Options = BTreeMap<String, Value>;

/// All flags that a schedule may record.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Recorded {
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    simulation: SimulationArgs,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Numbers as numbers, all else as text.
fn put(options: &mut Options, name: &str, value: Option<impl ToString>) {
    let Some(text) = value.map(|value| value.to_string()) else { return };
    let number = serde_json::from_str(&text).ok().filter(Value::is_number);
    options.insert(name.to_owned(), number.unwrap_or(Value::String(text)));
}

/// What shaped a workload: what its importer assumed, and the flags that were given.
pub(crate) fn of_shape(shape: &Shape, import: BTreeMap<String, String>) -> Options {
    let mut options = Options::new();
    for (name, value) in import {
        put(&mut options, &name, Some(value));
    }
    put(&mut options, "from", shape.import.from.as_ref());
    put(&mut options, "machines", shape.machines);
    put(&mut options, "map-slots", shape.map_slots);
    put(&mut options, "reduce-slots", shape.reduce_slots);
    put(&mut options, "slots", shape.slots);
    put(&mut options, "total-slots", shape.total_slots);
    put(&mut options, "speed", shape.speed);
    put(&mut options, "metric", shape.metric);
    put(&mut options, "combine", shape.combine.map(slackline_model::Combine::name));
    let weights = |weights| if weights == Weights::Use { "use" } else { "ignore" };
    put(&mut options, "weights", shape.weights.map(weights));
    put(&mut options, "deadlines", shape.deadlines);
    options
}

/// What shaped a run beyond its workload; what is at its default changes nothing and is left out. Of a
/// history it is the hash that counts.
pub(crate) fn add_simulation(options: &mut Options, simulation: &SimulationArgs, history: Option<&str>) {
    let above_zero = |value: f64| Some(value).filter(|value| *value > 0.0);
    put(options, "heartbeat", above_zero(simulation.heartbeat));
    put(options, "slowstart", Some(simulation.slowstart).filter(|f| *f < 1.0));
    put(options, "noise", above_zero(simulation.noise));
    put(options, "knowledge", Some(simulation.knowledge.name()));
    put(options, "history", history);
    put(options, "jitter", above_zero(simulation.jitter));
    let crashes: Vec<String> = simulation.crash.iter().map(ToString::to_string).collect();
    put(options, "crash", Some(crashes.join(",")).filter(|crashes| !crashes.is_empty()));
    put(options, "crash-rate", simulation.crash_rate);
    put(options, "repair", simulation.repair);
    put(options, "locality-wait", above_zero(simulation.locality_wait));
    let plans: Vec<String> = simulation.plan_file.iter().map(|path| path.display().to_string()).collect();
    put(options, "plan-file", Some(plans.join(",")).filter(|plans| !plans.is_empty()));
}

/// What shaped a plan beyond its workload.
pub(crate) fn add_plan(options: &mut Options, plan: &PlanArgs) {
    put(options, "budget", plan.budget);
}

/// The phases given only as work were cut with this grain.
pub(crate) fn add_grain(options: &mut Options, seconds: f64) {
    put(options, "grain", Some(seconds));
}

/// The flags that give these options, and the grain.
///
/// # Errors
/// An option that is no flag, or a value that the flag does not take.
pub(crate) fn read(options: &Options) -> anyhow::Result<(Shape, Option<f64>)> {
    let argument = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("--{name}={text}"),
        other => format!("--{name}={other}"),
    };
    // The settings of importers are recorded as they are; on the command line some of them name files.
    let mut left = options.clone();
    let mut import = ImportOptions::new(importers());
    let mut given = Vec::new();
    for (_, param) in import.importers().clone().params().filter(|(_, param)| is_flag(param)) {
        let Some(value) = left.remove(param.name) else { continue };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        import.set(param.name, &text).map_err(|error| anyhow!("workload.options: {error}"))?;
        given.push((param.name.to_owned(), text));
    }
    let mut read = Recorded::try_parse_from(left.iter().map(argument)).map_err(|error| {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default();
        anyhow!("workload.options: {}", first.strip_prefix("error: ").unwrap_or(first))
    })?;
    read.shape.import.given = given;
    Ok((read.shape, read.simulation.grain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Recorded {
        Recorded::try_parse_from(arguments).unwrap()
    }

    #[test]
    fn what_was_recorded_comes_back() {
        let given = parse(&[
            "--machines=600",
            "--map-slots=2",
            "--reduce-slots=1",
            "--deadlines=3",
            "--speed=0.1",
            "--metric=tardiness",
            "--combine=max",
            "--weights=ignore",
            "--from=swim",
            "--heartbeat=3",
            "--crash=a-1@5+60,b@7",
            "--jitter=0.25",
            "--slowstart=0.05",
            "--grain=7.5",
            "--budget=0.5",
            "--knowledge=learned",
        ]);
        let mut options = of_shape(&given.shape, BTreeMap::new());
        add_simulation(&mut options, &given.simulation, Some("00ff"));
        add_grain(&mut options, 7.5);
        add_plan(&mut options, &given.plan);
        let (shape, grain) = read(&options).unwrap();
        assert_eq!((shape, grain), (given.shape, Some(7.5)));
        assert_eq!(options["machines"], 600);
        assert_eq!((&options["knowledge"], &options["history"]), (&"learned".into(), &"00ff".into()));
        assert_eq!(options["crash"], "a-1@5+60,b@7");
    }

    #[test]
    fn what_the_importer_assumed_comes_back_too() {
        let options = ImportOptions::default();
        let assumed = options.recorded(options.importers().get("swim").unwrap()).unwrap();
        let (shape, grain) = read(&of_shape(&Shape::default(), assumed)).unwrap();
        assert_eq!((shape.seed, grain), (Some(0), None));
        assert_eq!(shape.import.given[0], ("split".to_owned(), "134217728".to_owned()));
    }

    #[test]
    fn texts_of_files_come_back_without_the_files() {
        let texts = [("properties", "maps = 3"), ("actions", "{}"), ("cases", "a=b")];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let (shape, _) = read(&of_shape(&Shape::default(), texts.iter().cloned().collect())).unwrap();
        assert_eq!(shape.import.given, texts);
    }

    #[test]
    fn options_that_are_none_are_refused() {
        let error = |name: &str, value: Value| {
            read(&Options::from([(name.to_owned(), value)])).unwrap_err().to_string()
        };
        assert!(error("colour", "red".into()).contains("--colour"), "{}", error("colour", "red".into()));
        assert!(error("machines", "many".into()).contains("many"));
        assert!(error("deadlines", Value::Null).contains("null"));
    }
}
