//! What every policy of a registry is held to, one of your own included: on every instance of
//! `testdata/instances`, under everything that the simulator can do, its schedules are audited and judged, its
//! flows are done as soon as machines stay up, and its metrics are those of the oracle; its plans are feasible,
//! or refused.

use std::path::{Path, PathBuf};

use slackline::import::{Source, WorkloadOptions};
use slackline::plan::{Options, Plan, PlanError};
use slackline::{PolicySpec, Registry, plan};
use slackline_model::{Instance, MachineId, Seed, Span, Time};
use slackline_sim::{Crash, Crashes};

use crate::harness::{self, Setup, same};
use crate::oracle;

/// Holds every policy of the registry, with every word of each of its parameters and both ends of each of its
/// numbers, to all of it.
///
/// # Errors
/// What the first policy does wrong, on which instance and how.
///
/// # Panics
/// If an audit finds the driver's state wrong.
pub fn check(registry: &Registry) -> Result<(), String> {
    for (name, instance) in documents() {
        let instance = instance.cut(Span(10_000_000));
        for policy in harness::registered(registry) {
            let at = |what: String| format!("{name}, {policy:?}, {what}");
            for (how, setup) in setups(&instance) {
                simulated(&instance, &policy, &setup).map_err(|what| at(format!("{how}: {what}")))?;
            }
            planned(&instance, &policy).map_err(|what| at(format!("plan: {what}")))?;
        }
    }
    Ok(())
}

/// Every document of `testdata/instances`, which the package has as `instances`, by its name.
///
/// # Panics
/// If one cannot be read.
pub fn documents() -> Vec<(String, Instance)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/instances");
    let entries = std::fs::read_dir(folder).expect("the folder is part of the project");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    let read = |path: &PathBuf| {
        let loaded = Source::read(path).and_then(|source| source.load(&WorkloadOptions::default()));
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        let name = Path::new(&loaded.name).file_name().map(|name| name.to_string_lossy().into_owned());
        (name.unwrap_or_default(), loaded.instance)
    };
    files.iter().map(read).collect()
}

/// Simulates one policy on one instance, which must have been cut: audited, judged, all flows done, metrics those of
/// the oracle.
///
/// # Errors
/// What is wrong.
///
/// # Panics
/// If the audit finds the driver's state wrong.
pub fn simulated(instance: &Instance, policy: &PolicySpec, setup: &Setup) -> Result<(), String> {
    let mut built = policy.build(instance.cluster(), &instance.objective());
    let (schedule, report) = harness::judged(instance, built.as_mut(), setup)?;
    if report.failed > 0 {
        return Err(format!("{} flows were not done", report.failed));
    }
    for (metric, value) in oracle::metrics(instance, &schedule) {
        let judged = report.metrics.entries().into_iter().find(|(name, _)| *name == metric).map(|(_, v)| v);
        if !judged.is_some_and(|judged| same(value, judged)) {
            return Err(format!("{metric} is {judged:?} to the judge, {value} to the oracle"));
        }
    }
    Ok(())
}

/// Plans one instance with one policy: judged and above the bounds, or refused.
///
/// # Errors
/// What is wrong.
pub fn planned(instance: &Instance, policy: &PolicySpec) -> Result<(), String> {
    match plan(instance, policy, Options::default()) {
        Ok(Plan::Schedule(planned)) => {
            let judged = slackline_judge::check(instance, &planned.schedule);
            let report = judged.map_err(|violation| violation.to_string())?;
            harness::broken_bound(instance, report.cost).map_or(Ok(()), Err)
        }
        Ok(Plan::Progress(_)) | Err(PlanError::Refused(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The ways to simulate, by name.
pub fn setups(instance: &Instance) -> Vec<(&'static str, Setup)> {
    let with = |change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup::plain();
        change(&mut setup);
        setup
    };
    let n = instance.cluster().n_machines();
    let crash = |machine: u32, at: u64, back: u64| Crash {
        machine: MachineId(machine % n),
        at: Time(at * 1_000_000),
        back: Some(Time(back * 1_000_000)),
    };
    // The first dies for good half a minute in unless it is the only one; the last comes and goes.
    let mut script = vec![crash(n - 1, 3, 9), crash(n - 1, 11, 14), crash(n / 2, 16, 17)];
    if n > 1 {
        script.push(Crash { back: None, ..crash(0, 30, 0) });
    }
    let second = Span(1_000_000);
    let rate = Crashes::Rate { between: Span(120_000_000), repair: Span(8_000_000) };
    vec![
        ("plain", Setup::plain()),
        ("slow-start 0.05", with(&|s| s.slowstart = 0.05)),
        ("slow-start 0.5", with(&|s| s.slowstart = 0.5)),
        ("heartbeat 3 s", with(&|s| s.sim.heartbeat = Span(3_000_000))),
        ("crash script", with(&|s| s.sim.crashes = Crashes::Script(script.clone()))),
        ("crash rate", with(&|s| s.sim.crashes = rate.clone())),
        ("jitter", with(&|s| s.sim.jitter = 0.5)),
        ("noise", with(&|s| s.noise = 1.0)),
        ("locality", with(&|s| s.locality_wait = Span(3 * second.0))),
        (
            "everything",
            with(&|s| {
                s.slowstart = 0.3;
                s.noise = 0.5;
                s.locality_wait = second;
                s.sim.heartbeat = second;
                s.sim.jitter = 0.3;
                s.sim.seed = Seed(3);
                s.sim.crashes = Crashes::Script(script.clone());
            }),
        ),
    ]
}
