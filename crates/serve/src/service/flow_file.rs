//! Submitted flow files: whether they are valid, their default names, their deadlines, and the files that
//! they wait for.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jiff::tz::TimeZone;
use slackline::run::{Deadline, TimeSpec, set_deadlines};
use slackline::trace::{
    ImportOptions, ImportedWorkload, Importers, Parameters, SourceMap, TraceError, read_workload,
};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, RunDraft, TasksDraft};
use slackline_model::printable::is_printable;
use slackline_model::{Draft, Instance, WallTime, shell};
use slackline_task::base::clock;
use slackline_task::input::pattern;

use crate::api::Submit;
use crate::state::record::SubmissionSpec;

/// The file name in messages if the request has none.
const UNNAMED: &str = "flow.toml";

/// The most flows shown of a pending submission. A file may repeat a flow a million times.
const FLOWS: usize = 10_000;

/// The most flows of a parsed file that is kept. Held submissions of larger files would fill the memory.
const KEPT: usize = 1_000;

/// The longest time limit for files, seconds: 30 days.
const WHEN_MOST: f64 = 2_592_000.0;

/// The file name in messages.
pub fn file_of(submit: &Submit) -> &str {
    submit.file.as_deref().unwrap_or(UNNAMED)
}

/// The values of the parameters of a submission.
///
/// # Errors
/// A name is not a valid parameter name.
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

impl SubmissionSpec {
    /// The flow file, with the deadlines of the submission. Its inputs are not read. The file is parsed at
    /// the first call only, unless it has more than `KEPT` flows.
    ///
    /// # Errors
    /// The errors of the file, with their lines.
    pub fn draft(&self) -> Result<Arc<Draft>, String> {
        if let Some(draft) = self.draft.get() {
            return Ok(draft.clone());
        }
        Ok(self.keep(read(&self.submit, self.since)?.0.draft))
    }

    fn keep(&self, mut draft: Draft) -> Arc<Draft> {
        // Vectors that were filled one by one have room for four: three quarters of the memory of a small file.
        for flow in &mut draft.flows {
            flow.jobs.shrink_to_fit();
        }
        draft.flows.shrink_to_fit();
        let draft = Arc::new(draft);
        if draft.flows.len() <= KEPT {
            // Another thread may have parsed the file meanwhile.
            let _ = self.draft.set(draft.clone());
        }
        draft
    }

    /// The first deadline of the flows of the file. `None` if it has no deadline or cannot be read.
    pub fn first_deadline(&self) -> Option<WallTime> {
        self.draft().ok().and_then(|draft| self.first_of(&draft))
    }

    fn first_of(&self, draft: &Draft) -> Option<WallTime> {
        // The first repetition of a flow has its first deadline.
        let deadlines = draft.flows.iter().filter_map(|flow| flow.deadline);
        deadlines.min_by(f64::total_cmp).map(|seconds| self.since.after_seconds(seconds))
    }

    /// The patterns of files that the submission waits for. Each has to match a file.
    ///
    /// # Errors
    /// The flow file cannot be read any more.
    pub fn awaited(&self) -> Result<Vec<String>, String> {
        let directory = self.submit.directory.as_deref().unwrap_or_default();
        let absolute = |pattern: &String| {
            if pattern.starts_with('/') { pattern.clone() } else { format!("{directory}/{pattern}") }
        };
        let mut patterns: Vec<String> = self.submit.when.iter().map(absolute).collect();
        if self.submit.when_inputs {
            let draft = self.draft()?;
            let jobs = draft.flows.iter().flat_map(|flow| &flow.jobs);
            let inputs = jobs.filter_map(|job| job.run.as_ref()).flat_map(|run| &run.inputs);
            patterns.extend(inputs.filter(|input| !input.starts_with('@')).map(absolute));
        }
        Ok(patterns)
    }
}

/// Parses deadlines of a request.
///
/// # Errors
/// A time is invalid.
pub fn deadlines<'a>(said: impl Iterator<Item = (&'a String, &'a String)>) -> Result<Vec<Deadline>, String> {
    said.map(|(flow, when)| {
        let when = TimeSpec::parse_option(when)
            .map_err(|expected| format!("deadlines: {flow}: found {when:?}, expected {expected}"))?;
        if matches!(when, TimeSpec::Seconds(seconds) if seconds < 0.0) {
            return Err(format!("deadlines: {flow}: found {when}, expected a duration that is not negative"));
        }
        Ok(Deadline { flow: flow.clone(), when })
    })
    .collect()
}

/// Parses a flow file whose times count from `since`. Returns also the error of a deadline of the submission
/// that had passed at `since`. Such a deadline is set to `since`.
pub(super) fn read(submit: &Submit, since: WallTime) -> Result<(ImportedWorkload, Option<String>), String> {
    let start = clock::in_zone(since.0, submit.zone.as_deref());
    let options =
        ImportOptions::new(Importers::default()).starting(start.clone()).with_parameters(parameters(submit)?);
    let read = read_workload(file_of(submit), submit.document.as_bytes(), None, &options);
    let mut read = read.map_err(|error| error.to_string())?;
    read.draft.start.get_or_insert(start);
    let deadlines = deadlines(submit.deadlines.iter())?;
    let late = set_deadlines(&deadlines, &mut read.draft).map_err(|error| error.to_string())?;
    let passed = late.first().map(|Deadline { flow, when }| {
        format!("deadlines: {flow}: found {when}, which has passed, expected a time in the future")
    });
    Ok((read, passed))
}

/// The flows of a file, with each repetition of a repeated flow.
pub fn flows(draft: &Draft) -> impl Iterator<Item = FlowDraft> {
    draft.flows.iter().flat_map(FlowDraft::recurrences).take(FLOWS)
}

/// Checks a flow file, and returns its submission, and the error of a deadline that has passed. Its inputs
/// are not read.
///
/// # Errors
/// The errors of the file, with their lines.
pub fn check(
    mut submit: Submit,
    user: &str,
    now: WallTime,
    here: &TimeZone,
) -> Result<(SubmissionSpec, Option<String>), String> {
    submit.zone = zone_of(&submit, here)?;
    // A schedule fills its time conversions only at a submission. Here they stay unchanged.
    let (ImportedWorkload { draft, source, .. }, passed) = read(&submit, now)?;
    check_parts(&submit, &draft, &source)?;
    let name = submit.name.clone().unwrap_or_else(|| usual_name(&submit));
    let mut wanted = SubmissionSpec::new(submit, name, user.to_owned(), now);
    let draft = wanted.keep(draft);
    wanted.due = wanted.first_of(&draft);
    Ok((wanted, passed))
}

/// The one zone of all times of a submission; `None` for that of this machine, if it has no name.
fn zone_of(submit: &Submit, here: &TimeZone) -> Result<Option<String>, String> {
    let of_schedule = submit.schedule.as_ref().and_then(|schedule| schedule.zone.as_ref());
    if let (Some(zone), Some(other)) = (&submit.zone, of_schedule)
        && zone != other
    {
        return Err(format!(
            "zone: found {zone} with the zone {other} of the schedule, expected one of them"
        ));
    }
    let Some(zone) = submit.zone.as_ref().or(of_schedule) else {
        return Ok(here.iana_name().map(str::to_owned));
    };
    TimeZone::get(zone).map_err(|_| format!("zone: found {zone:?}, expected one such as Europe/Berlin"))?;
    Ok(Some(zone.clone()))
}

fn check_parts(submit: &Submit, draft: &Draft, source: &SourceMap) -> Result<(), String> {
    let name = file_of(submit);
    if draft.flows.is_empty() {
        return Err(format!("{name}: found no flows, expected at least one"));
    }
    let jobs = draft.flows.iter().flat_map(|flow| flow.jobs.iter().map(move |job| (flow, job)));
    if let Some((flow, job)) = jobs.clone().find(|(_, job)| job.run.is_none()) {
        return Err(format!(
            "{name}: flow {}, job {}: found no run section, expected one with the command of the job",
            flow.id, job.id
        ));
    }
    unrunnable(draft, source)?;
    if submit.schedule.is_some() {
        recurs_in_time(submit)?;
    }
    if let Some(found) = submit.directory.as_ref().filter(|directory| !Path::new(directory).is_absolute()) {
        return Err(format!("directory: found {found}, expected an absolute path"));
    }
    if let Some(found) =
        submit.commit.as_ref().filter(|commit| commit.len() > 100 || !commit.chars().all(is_printable))
    {
        return Err(format!("commit: found {found:?}, expected at most 100 printable characters"));
    }
    for (name, seconds) in [("when_for", submit.when_for), ("when_still", submit.when_still)] {
        if let Some(found) = seconds.filter(|seconds| !(0.0..=WHEN_MOST).contains(seconds)) {
            return Err(format!("{name}: found {found}, expected seconds from 0 to {WHEN_MOST}"));
        }
    }
    for pattern in &submit.when {
        shell::check_path(pattern)
            .map_err(|expected| format!("when: found {pattern:?}, expected {expected}"))?;
    }
    Ok(())
}

/// Finds errors that no input can repair: jobs that depend on missing jobs, and dependency cycles.
fn unrunnable(draft: &Draft, source: &SourceMap) -> Result<(), String> {
    let mut stands_in = draft.clone();
    // A stand-in cluster with ample slots, and one task for each job. Only the inputs decide the real number
    // of tasks.
    stands_in.machines = vec![MachineDraft {
        name: "any".to_owned(),
        count: 1,
        speed: 1.0,
        slots: Slots::Generic(1 << 20),
        rack: None,
    }];
    let mut problems = Vec::new();
    for (f, flow) in stands_in.flows.iter_mut().enumerate() {
        if let Some(repeat) = &mut flow.repeat {
            repeat.times = repeat.times.min(2);
        }
        let ids: BTreeSet<String> = flow.jobs.iter().map(|job| job.id.clone()).collect();
        for (j, job) in flow.jobs.iter_mut().enumerate() {
            for input in job.run.iter().flat_map(RunDraft::own_inputs).filter(|&input| !ids.contains(input)) {
                let found =
                    format!("found @{input}, expected @JOB of the same flow, or @FLOW/JOB of another");
                problems.push((format!("flows[{f}].jobs[{j}].run.inputs"), found));
            }
            if job.map.is_none() && job.reduce.is_none() {
                job.map = Some(TasksDraft::Uniform { tasks: 1, seconds: 1.0 }.into());
            }
        }
    }
    if problems.is_empty() {
        let Err(invalid) = Instance::new(&stands_in) else { return Ok(()) };
        return Err(TraceError::from_invalid(&invalid, source).to_string());
    }
    Err(source.error(problems).to_string())
}

/// Refuses deadlines with a date for a schedule.
fn recurs_in_time(submit: &Submit) -> Result<(), String> {
    let is_once =
        |when: &str| matches!(TimeSpec::parse_option(when), Ok(TimeSpec::Moment(_) | TimeSpec::Local(_)));
    match submit.deadlines.iter().find(|(_, when)| is_once(when)) {
        None => Ok(()),
        Some((flow, when)) => Err(format!(
            "deadlines: {flow}: found {when} for a recurring submission, expected a duration such as 2h, or a time of day such as 06:00"
        )),
    }
}

/// The default name of a submission: its file name, with the values of its parameters.
fn usual_name(submit: &Submit) -> String {
    let file = Path::new(file_of(submit)).file_stem().map_or("flow".into(), |stem| stem.to_string_lossy());
    if submit.parameters.is_empty() || submit.schedule.is_some() {
        return file.into_owned();
    }
    let values: Vec<&str> = submit.parameters.values().map(String::as_str).collect();
    format!("{file}[{}]", values.join(","))
}

/// A digest of the files that match patterns, which changes when one of them does.
///
/// # Errors
/// The first pattern without a matching file.
pub fn look(patterns: &[String]) -> Result<u64, String> {
    patterns.iter().try_fold(0_u64, |sum, pattern| match pattern::stamp(pattern) {
        Some(stamp) => Ok(sum.wrapping_mul(31).wrapping_add(stamp)),
        None => Err(pattern.clone()),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::OnceLock;

    use super::*;
    use crate::SECOND;
    use crate::api::{CatchUp, Schedule};

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

    fn check(submit: &Submit, now: WallTime) -> Result<(SubmissionSpec, Option<String>), String> {
        super::check(submit.clone(), "anna", now, &TimeZone::UTC)
    }

    #[test]
    fn a_file_is_called_by_its_name_and_the_values_that_are_set() {
        assert_eq!(check(&submit(), WallTime(0)).unwrap().0.name, "night");
        let parameters = BTreeMap::from([("night".to_owned(), "2026-03-01".to_owned())]);
        assert_eq!(
            check(&Submit { parameters, ..submit() }, WallTime(0)).unwrap().0.name,
            "night[2026-03-01]"
        );
    }

    #[test]
    fn errors_name_their_line() {
        let wrong = |submit: Submit| check(&submit, WallTime(0)).unwrap_err();
        let broken =
            Submit { document: FLOW.replace("mapper = \"cat\", inputs = [\"@a\"]", "maper = 1"), ..submit() };
        assert!(wrong(broken.clone()).contains("jobs/night.toml:9"), "{}", wrong(broken));
        let simulated =
            "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{ id = 'j', map = { tasks = 1, seconds = 1.0 } }]\n";
        let wrong_kind = wrong(Submit { document: simulated.into(), ..submit() });
        assert!(wrong_kind.contains("flow f, job j: found no run section"), "{wrong_kind}");
        let deadlines = BTreeMap::from([("g".to_owned(), "1h".to_owned())]);
        assert!(wrong(Submit { deadlines, ..submit() }).contains("found flow \"g\", expected f"));
        let deadlines = BTreeMap::from([("f".to_owned(), "soon".to_owned())]);
        assert!(wrong(Submit { deadlines, ..submit() }).starts_with("deadlines: f: found"));
        let deadlines = BTreeMap::from([("f".to_owned(), "1970-01-01T00:00:00Z".to_owned())]);
        let late = Submit { deadlines, ..submit() };
        assert_eq!(check(&late, WallTime(0)).unwrap().1, None);
        let passed = check(&late, WallTime(SECOND)).unwrap().1.unwrap();
        assert!(passed.starts_with("deadlines: f: found 1970-01-01T00:00:00Z, which has passed"), "{passed}");
        let relative = Submit { directory: Some("x".into()), ..submit() };
        assert!(wrong(relative).contains("expected an absolute path"));
        let expanded = Submit { when: vec!["in/*".into(), "~/ready".into()], ..submit() };
        assert!(wrong(expanded).starts_with("when: found \"~/ready\", expected the full path"));
        let parameters = BTreeMap::from([("nigth".to_owned(), "1".to_owned())]);
        assert!(wrong(Submit { parameters, ..submit() }).contains("nigth"));
    }

    #[test]
    fn the_first_deadline_is_that_of_the_file_unless_the_submission_has_another() {
        let document = FLOW.replace("id = \"f\"", "id = \"f\"\ndeadline = \"2h\"")
            + "[[flows]]\nid = \"g\"\ndeadline = \"90m\"\njobs = [{ id = \"c\", run = { command = \"true\", output = \"c\" } }]\n";
        let dated = Submit { document, ..submit() };
        let minutes = |submit: &Submit| {
            let (wanted, _) = check(submit, WallTime(SECOND)).unwrap();
            assert_eq!(
                wanted.due,
                SubmissionSpec { draft: OnceLock::new(), ..wanted.clone() }.first_deadline()
            );
            wanted.due.map(|at| at.since(WallTime(SECOND)) / SECOND / 60)
        };
        assert_eq!(minutes(&submit()), None);
        assert_eq!(minutes(&dated), Some(90));
        let deadlines = BTreeMap::from([("g".to_owned(), "150m".to_owned())]);
        assert_eq!(minutes(&Submit { deadlines, ..dated }), Some(120));
    }

    #[test]
    fn files_are_waited_for_by_patterns_and_by_inputs() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Some(dir.path().display().to_string());
        let submit = Submit { directory, when: vec!["ready*".into()], when_inputs: true, ..submit() };
        let patterns = check(&submit, WallTime(0)).unwrap().0.awaited().unwrap();
        assert_eq!(patterns.len(), 2);
        assert_eq!(look(&patterns), Err(patterns[0].clone()));
        std::fs::write(dir.path().join("ready.mark"), "").unwrap();
        assert_eq!(look(&patterns), Err(patterns[1].clone()));
        std::fs::create_dir_all(dir.path().join("in/none")).unwrap();
        std::fs::write(dir.path().join("in/none/x.txt"), "x").unwrap();
        assert!(look(&patterns).is_ok() && look(&[]).is_ok());
    }

    #[test]
    fn a_flow_that_no_input_makes_runnable_is_refused_with_its_place() {
        let of = |jobs: &str| {
            let document = format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n{jobs}\n]\n");
            let submit = Submit { document, file: Some("z.toml".into()), ..Submit::default() };
            check(&submit, WallTime(0)).map(drop)
        };
        let job = |id: &str, more: &str, inputs: &str| {
            format!(
                "{{ id = '{id}', {more} run = {{ mapper = 'cat', inputs = ['{inputs}'], output = 'o-{id}' }} }},\n"
            )
        };
        assert_eq!(of(&(job("a", "", "in") + &job("b", "after = ['a'],", "@a"))), Ok(()));
        let wrong = [
            (
                job("a", "after = ['x'],", "in"),
                "z.toml:5:22: flows[0].jobs[0].after[0]: found \"x\", expected the id of a job of the same flow",
            ),
            (job("a", "after = ['a'],", "in"), "found a dependency cycle: a -> a"),
            (
                job("a", "", "@first.w"),
                "found @first.w, expected @JOB of the same flow, or @FLOW/JOB of another",
            ),
        ];
        for (jobs, expected) in wrong {
            let problem = of(&jobs).unwrap_err();
            assert!(problem.starts_with("z.toml:5:") && problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn a_recurring_submission_has_no_deadline_at_one_time() {
        let schedule = Schedule { cron: "0 3 * * *".into(), zone: None, catch_up: CatchUp::Latest };
        let deadline = |when: &str| {
            let deadlines = [("f".to_owned(), when.to_owned())].into();
            let submit = Submit { deadlines, schedule: Some(schedule.clone()), ..submit() };
            check(&submit, WallTime(0)).map(drop)
        };
        for good in ["2h", "06:00", "300"] {
            assert_eq!(deadline(good), Ok(()), "{good}");
        }
        for wrong in ["2026-11-25T19:00", "2026-11-25T19:00Z"] {
            assert!(
                deadline(wrong).unwrap_err().contains("for a recurring submission, expected a duration"),
                "{wrong}"
            );
        }
    }
}
