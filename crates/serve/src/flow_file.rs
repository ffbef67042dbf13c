//! Flow files as they are submitted: whether they can be read, what they are called, and which files they wait for.

use std::path::Path;

use slackline::trace::{ImportOptions, Importers, Parameters, read_workload};
use slackline_local::clock;

use crate::api::Submit;
use crate::desk::Checked;

/// What messages call a file of which nothing else is known.
const UNNAMED: &str = "flow.toml";

/// What messages call the file of a submission.
pub fn file_of(submit: &Submit) -> &str {
    submit.file.as_deref().unwrap_or(UNNAMED)
}

/// Values of the parameters of a submission.
///
/// # Errors
/// A name that is none.
pub fn parameters(submit: &Submit) -> Result<Parameters, String> {
    let mut parameters = Parameters::default();
    for (name, value) in &submit.parameters {
        parameters.set(name, value).map_err(|problem| format!("parameters: {problem}"))?;
    }
    if let Some(each) = &submit.for_each {
        let set = parameters.for_each(&each.parameter, &each.values);
        set.map_err(|problem| format!("for_each: {problem}"))?;
    }
    Ok(parameters)
}

/// Looks whether a flow file can be read, and what it says of itself. Its inputs are not looked at.
///
/// # Errors
/// What is wrong with it, with its lines.
pub fn check(submit: &Submit, now: u64) -> Result<Checked, String> {
    let name = file_of(submit);
    // Conversions of times are filled when it is submitted again; here they stand for themselves.
    let options = ImportOptions::new(Importers::default())
        .starting(clock::local(now))
        .with_parameters(parameters(submit)?);
    let read = read_workload(name, submit.document.as_bytes(), None, &options).map_err(|e| e.to_string())?;
    if read.draft.flows.is_empty() {
        return Err(format!("{name}: found no flows, expected at least one"));
    }
    let jobs = read.draft.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
    if let Some((flow, job)) = jobs.clone().find(|(_, job)| job.run.is_none()) {
        return Err(format!(
            "{name}: flow {}, job {}: found no run section, expected one that says what it does",
            flow.id, job.id
        ));
    }
    for flow in submit.deadlines.keys() {
        let names: Vec<&str> = read.draft.flows.iter().map(|flow| flow.id.as_str()).collect();
        if !names.contains(&flow.as_str()) {
            return Err(format!("deadlines: {}", slackline::names::unknown("flow", flow, &names)));
        }
    }
    if submit.directory.as_deref().is_some_and(|directory| !Path::new(directory).is_absolute()) {
        let found = submit.directory.as_deref().unwrap_or_default();
        return Err(format!("directory: found {found}, expected an absolute path"));
    }
    Ok(Checked { name: usual_name(submit), waits_for_files: submit.when_inputs || !submit.when.is_empty() })
}

/// What a submission is called where nothing is said: as its file, with the values of parameters that are set.
fn usual_name(submit: &Submit) -> String {
    let file = Path::new(file_of(submit)).file_stem().map_or("flow".into(), |stem| stem.to_string_lossy());
    if submit.parameters.is_empty() || submit.schedule.is_some() {
        return file.into_owned();
    }
    let values: Vec<&str> = submit.parameters.values().map(String::as_str).collect();
    format!("{file}[{}]", values.join(","))
}

/// The patterns of files that a submission waits for, each of which has to match a file.
///
/// # Errors
/// A file that cannot be read any more.
pub fn awaited(submit: &Submit, now: u64) -> Result<Vec<String>, String> {
    let directory = submit.directory.clone().unwrap_or_default();
    let absolute = |pattern: &str| {
        if pattern.starts_with('/') { pattern.to_owned() } else { format!("{directory}/{pattern}") }
    };
    let mut patterns: Vec<String> = submit.when.iter().map(|pattern| absolute(pattern)).collect();
    if submit.when_inputs {
        let options = ImportOptions::new(Importers::default())
            .starting(clock::local(now))
            .with_parameters(parameters(submit)?);
        let read = read_workload(file_of(submit), submit.document.as_bytes(), None, &options);
        let draft = read.map_err(|e| e.to_string())?.draft;
        let runs = draft.flows.iter().flat_map(|flow| &flow.jobs).filter_map(|job| job.run.as_ref());
        let inputs = runs.flat_map(|run| &run.inputs).filter(|input| !input.starts_with('@'));
        patterns.extend(inputs.map(|input| absolute(input)));
    }
    Ok(patterns)
}

/// Whether every pattern matches something.
pub fn are_there(patterns: &[String]) -> bool {
    let matches = |pattern: &String| {
        Path::new(pattern).exists()
            || glob::glob(pattern).is_ok_and(|mut found| found.any(|entry| entry.is_ok()))
    };
    patterns.iter().all(matches)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const FLOW: &str = r#"
slackline = 1
[parameters]
night = "none"
[[flows]]
id = "f"
jobs = [
  { id = "a", run = { mapper = "cat", inputs = ["in/{night}/*.txt"], output = "out/a" } },
  { id = "b", run = { mapper = "cat", inputs = ["@a"], output = "out/b" } },
]
"#;

    fn submit() -> Submit {
        Submit { document: FLOW.into(), file: Some("jobs/night.toml".into()), ..Submit::default() }
    }

    #[test]
    fn a_file_is_called_by_its_name_and_the_values_that_are_set() {
        assert_eq!(check(&submit(), 0).unwrap().name, "night");
        let parameters = BTreeMap::from([("night".to_owned(), "2026-03-01".to_owned())]);
        assert_eq!(check(&Submit { parameters, ..submit() }, 0).unwrap().name, "night[2026-03-01]");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |submit: Submit| check(&submit, 0).unwrap_err();
        let broken =
            Submit { document: FLOW.replace("mapper = \"cat\", inputs = [\"@a\"]", "maper = 1"), ..submit() };
        assert!(wrong(broken.clone()).contains("jobs/night.toml:9"), "{}", wrong(broken));
        let simulated =
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', map = { tasks = 1, seconds = 1.0 } }]\n";
        let wrong_kind = wrong(Submit { document: simulated.into(), ..submit() });
        assert!(wrong_kind.contains("flow f, job j: found no run section"), "{wrong_kind}");
        let deadlines = BTreeMap::from([("g".to_owned(), "1h".to_owned())]);
        assert!(wrong(Submit { deadlines, ..submit() }).starts_with("deadlines: "));
        let relative = Submit { directory: Some("x".into()), ..submit() };
        assert!(wrong(relative).contains("expected an absolute path"));
        let parameters = BTreeMap::from([("nigth".to_owned(), "1".to_owned())]);
        assert!(wrong(Submit { parameters, ..submit() }).contains("nigth"));
    }

    #[test]
    fn files_are_waited_for_by_patterns_and_by_inputs() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Some(dir.path().display().to_string());
        let submit = Submit { directory, when: vec!["ready*".into()], when_inputs: true, ..submit() };
        let patterns = awaited(&submit, 0).unwrap();
        assert_eq!(patterns.len(), 2);
        assert!(!are_there(&patterns));
        std::fs::write(dir.path().join("ready.mark"), "").unwrap();
        assert!(!are_there(&patterns));
        std::fs::create_dir_all(dir.path().join("in/none")).unwrap();
        std::fs::write(dir.path().join("in/none/x.txt"), "x").unwrap();
        assert!(are_there(&patterns) && are_there(&[]));
    }
}
