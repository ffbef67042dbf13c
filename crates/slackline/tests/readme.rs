//! The snippet of README, line by line, on every workload of this repository.

use std::fs;
use std::path::{Path, PathBuf};

use slackline::import::{ImportError, Loaded, SlotOptions, Source, WorkloadOptions};
use slackline::simulate::{SimulateError, Simulated};
use slackline::{Options, PolicySpec, Registry, simulate};

/// The lines of the snippet that [`of_readme`] has too; the first is without the source.
const LINES: [&str; 3] = [
    ".load(&WorkloadOptions::default())?;",
    "let policy = Registry::standard().parse(\"edf\")?;",
    "let run = simulate(&loaded.instance, &policy, &Options::exact(), None, None)?;",
];

fn of_readme(source: &Source) -> Result<Simulated, Box<dyn std::error::Error>> {
    let loaded = source.load(&WorkloadOptions::default())?;
    let policy = Registry::standard().parse("edf")?;
    let run = simulate(&loaded.instance, &policy, &Options::exact(), None, None)?;
    Ok(run)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below these folders, and each folder that is itself a workload.
fn workloads() -> Vec<PathBuf> {
    let mut waiting: Vec<PathBuf> = ["examples", "testdata"].map(|folder| root().join(folder)).into();
    let mut found = vec![root().join("examples/hadoop-log")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { waiting.push(path) } else { found.push(path) }
        }
    }
    found.retain(|path| path.extension().is_none_or(|ending| ending != "approved"));
    found.sort();
    found
}

#[test]
fn the_snippet_is_the_one_of_the_readme() {
    let here = include_str!("readme.rs");
    let readme = include_str!("../README.md");
    for line in LINES {
        assert!(readme.contains(line) && here.contains(line), "{line}");
    }
}

/// Simulates a loaded workload as it is, and as the program prepares it.
fn simulate_both(loaded: &mut Loaded, policy: &PolicySpec) -> [Result<Simulated, SimulateError>; 2] {
    let as_it_is = simulate(&loaded.instance, policy, &Options::exact(), None, None);
    loaded.prepare(None).expect("a workload");
    [as_it_is, simulate(&loaded.instance, policy, &Options::exact(), None, None)]
}

#[test]
fn the_snippet_simulates_every_workload_as_the_program_does_or_says_what_is_wrong() {
    let policy = Registry::standard().parse("edf").unwrap();
    let (mut simulated, mut lacking, mut refused) = (0, 0, 0);
    for path in workloads() {
        let source = Source::read(&path).unwrap();
        if let Err(error) = of_readme(&source) {
            assert!(!error.to_string().is_empty(), "{}", path.display());
        }
        // A trace says nothing of machines.
        let (machines, slots) = (Some(4), Some(SlotOptions::Generic(2)));
        let options = WorkloadOptions::default();
        let loaded = source.load(&options).or_else(|error| match error {
            ImportError::NoCluster { .. } => {
                lacking += 1;
                source.load(&WorkloadOptions { machines, slots, ..options })
            }
            other => Err(other),
        });
        let Ok(mut loaded) = loaded else {
            refused += 1;
            continue;
        };
        let [as_it_is, prepared] = simulate_both(&mut loaded, &policy).map(Result::unwrap);
        assert_eq!(as_it_is.schedule, prepared.schedule, "{}", path.display());
        let judged = slackline::judge::check(&loaded.instance, &as_it_is.schedule);
        assert_eq!(judged.map(|report| report.metrics), Ok(as_it_is.metrics), "{}", path.display());
        simulated += 1;
    }
    // A few of the files are wrong on purpose, or are no workloads.
    assert!(simulated > 40 && lacking > 8 && refused > 10, "{simulated}, {lacking}, {refused}");
}

#[test]
fn nightly_which_is_given_as_work_costs_what_the_program_says() {
    let run = of_readme(&Source::read(&root().join("examples/nightly.toml")).unwrap()).unwrap();
    assert!(run.schedule.tasks.len() > 1 && run.schedule.cost.is_some());
}
