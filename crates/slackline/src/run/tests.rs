//! Starts, resumes and refuses runs on an engine that uses the simulator and keeps its state in memory.

pub(super) mod fake;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fake::Fake;
use slackline_executor::engine::backend::Open;
use slackline_executor::store::{journal::Journal, layout::Layout};
use slackline_model::{PhaseKind, cluster::Slots};

use super::*;
use crate::Registry;

const FLOWS: &str = r#"
slackline = 1
[[flows]]
id = "f"
deadline = 20.0
jobs = [
  { id = "a", run = { mapper = "cat", reducer = "cat", inputs = ["in"], output = "a" } },
  { id = "b", run = { mapper = "cat", inputs = ["@a"], output = "b" }, after = ["a"] },
]
[[flows]]
id = "g"
jobs = [ { id = "a", run = { mapper = "cat", inputs = ["in"], output = "c" } } ]
"#;

/// Records the notes as text.
#[derive(Default)]
struct Recorded {
    notes: Vec<String>,
    overview: Option<Overview>,
    done: Vec<TaskId>,
    /// After how many finished tasks it stops the run.
    stop_after: Option<usize>,
    stop: Option<Stop>,
}

impl Sink for Recorded {
    fn note(&mut self, note: &Note<'_>) {
        self.notes.push(format!("{note:?}"));
    }

    fn begin(&mut self, overview: &Overview, stop: Stop) {
        (self.overview, self.stop) = (Some(overview.clone()), Some(stop));
    }

    fn happened(&mut self, _: Time, event: &RunEvent, _: &Forecast) {
        if let RunEvent::TaskFinished { task: id, .. } = event {
            self.done.push(*id);
            self.stop.iter().filter(|_| self.stop_after == Some(self.done.len())).for_each(|stop| stop());
        }
    }
}

pub(super) fn request(state: &Path) -> Request {
    let policy = Registry::standard().parse("fifo").unwrap();
    Request::new("flows.toml", FLOWS.as_bytes().to_vec(), policy, state)
}

/// Opens a run and drives it.
fn gone(fake: &Fake, request: Request) -> (Run, RunEnd, Recorded) {
    stopped(fake, request, None)
}

/// Opens a run, and stops it after that number of tasks.
fn stopped(fake: &Fake, request: Request, stop_after: Option<usize>) -> (Run, RunEnd, Recorded) {
    let mut recorded = Recorded { stop_after, ..Recorded::default() };
    let run = Run::open(fake, request, &mut recorded).unwrap();
    let (run, end) = run.go(&mut recorded).unwrap();
    (run, end, recorded)
}

#[test]
fn a_run_gives_its_schedule_its_documents_and_how_far_the_prediction_was_off() {
    let dir = tempfile::tempdir().unwrap();
    let (run, end, recorded) = gone(&Fake::new(), request(dir.path()));
    assert_eq!((end, recorded.notes.len(), recorded.done.len()), (RunEnd::Done, 0, 7));
    let overview = recorded.overview.unwrap();
    assert_eq!((overview.slots, overview.flows[0].deadline), (2, Some(20.0)));
    assert_eq!(overview.flows[0].jobs[0].maps, Progress { total: 2, done: 0 });
    let outcome = run.outcome().unwrap();
    // Two maps of 1 s, a reduce of 2 s, two more maps. The two maps of g use the slot that is idle in the
    // meantime.
    let completions: Vec<_> = outcome.schedule.flows.iter().map(|row| row.completion.unwrap()).collect();
    assert_eq!((completions, outcome.failed()), (vec![4.0, 3.0], 0));
    assert!(outcome.schedule.metrics.iter().any(|(name, value)| name == "makespan" && *value == 4.0));
    let schedule = fs::read_to_string(&outcome.schedule_file).unwrap();
    assert!(schedule.contains("fifo") && fs::read_to_string(&outcome.workload_file).is_ok());
    let prediction = run.prediction().unwrap().unwrap();
    assert_eq!(prediction.completions()["f"], 4.0);
    let off = PredictionError { seconds: 0.0, share: 0.0 };
    assert_eq!(outcome.error_of(&prediction), Some(off));
}

#[test]
fn a_run_says_the_choices_of_its_policy_since_its_last_start() {
    let dir = tempfile::tempdir().unwrap();
    let auto = || Request { policy: Registry::standard().parse("auto").unwrap(), ..request(dir.path()) };
    let fake = Fake::new();
    let (first, ..) = stopped(&fake, auto(), Some(3));
    let before = first.outcome().unwrap().meta.choices;
    assert_eq!(before.first().map(|choice| choice.flows), Some(2), "both flows are there at once");
    assert!(before.iter().all(|choice| choice.by.is_some()), "{before:?}");
    let (run, ..) = gone(&fake, auto());
    let outcome = run.outcome().unwrap();
    assert!(outcome.meta.choices.is_empty(), "the rest needs no order, and earlier choices are not repeated");
    let written = fs::read(&outcome.schedule_file).unwrap();
    let (_, read) = slackline_trace::read_schedule("s.json", &written, &outcome.instance).unwrap();
    assert_eq!(read.choices, outcome.meta.choices);
}

#[test]
fn a_stopped_run_resumes_and_reruns_no_finished_task() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new();
    let (_, end, first) = stopped(&fake, request(dir.path()), Some(3));
    assert_eq!((end, first.done.len()), (RunEnd::Interrupted, 3));
    let (run, end, rest) = gone(&fake, request(dir.path()));
    assert_eq!((end, rest.done.len()), (RunEnd::Done, 4));
    assert!(rest.notes[0].starts_with("Resumed(Recovery { done: 3, cut_short: 0, "), "{:?}", rest.notes);
    assert_eq!(rest.overview.unwrap().flows[0].jobs[0].maps, Progress { total: 2, done: 2 });
    assert!(first.done.iter().all(|id| !rest.done.contains(id)));
    assert_eq!(run.outcome().unwrap().failed(), 0);
    // Now nothing is left to do.
    let (_, end, nothing) = gone(&fake, request(dir.path()));
    assert_eq!((end, nothing.done.len()), (RunEnd::Done, 0));
    assert!(nothing.notes.contains(&"NothingLeft".to_owned()), "{:?}", nothing.notes);
}

#[test]
fn a_run_may_resume_under_another_policy_and_keeps_its_start() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new();
    let (first, ..) = stopped(&fake, request(dir.path()), Some(3));
    let mut other = request(dir.path());
    other.policy = Registry::standard().parse("fair").unwrap();
    let (run, end, rest) = gone(&fake, other);
    assert_eq!((end, rest.done.len()), (RunEnd::Done, 4));
    assert_eq!(run.record().started, first.record().started);
}

#[test]
fn everything_is_done_again_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new();
    gone(&fake, request(dir.path()));
    let again = Request { choices: Choices::again(), ..request(dir.path()) };
    let (_, _, recorded) = gone(&fake, again.clone());
    assert_eq!((recorded.notes, recorded.done.len()), (vec!["StartsOver".to_owned()], 7));
    // Nothing is removed for a request that cannot be run.
    let wrong = Request { bytes: b"slackline = 1\nflows = []\n".to_vec(), ..again };
    assert!(Run::open(&fake, wrong, &mut Silent).is_err());
    let (_, _, recorded) = gone(&fake, request(dir.path()));
    assert!(recorded.done.is_empty(), "the run is still there");
}

#[test]
fn deadlines_are_set_and_wrong_ones_refused() {
    let dir = tempfile::tempdir().unwrap();
    let with = |deadlines: &[(&str, TimeSpec)]| {
        let deadline = |(flow, when): &(&str, TimeSpec)| Deadline { flow: (*flow).into(), when: *when };
        Request { deadlines: deadlines.iter().map(deadline).collect(), ..request(dir.path()) }
    };
    let refused = |request| Run::open(&Fake::new(), request, &mut Silent).err().unwrap().to_string();
    assert_eq!(
        refused(with(&[("h", TimeSpec::Seconds(1.0))])),
        "deadline: found flow \"h\", expected one of f, g"
    );
    assert!(refused(with(&[("f", TimeSpec::Seconds(1.0)), ("f", TimeSpec::Seconds(2.0))])).contains("twice"));
    let (run, _, _) = gone(&Fake::new(), with(&[("g", TimeSpec::Seconds(2.5))]));
    assert_eq!(run.record().workload.flows[1].deadline, Some(2.5));
}

#[test]
fn a_deadline_before_the_start_is_late_already_and_its_flow_runs() {
    let dir = tempfile::tempdir().unwrap();
    let when = TimeSpec::parse("2001-01-01T00:00Z").unwrap();
    let late = Request { deadlines: vec![Deadline { flow: "f".into(), when }], ..request(dir.path()) };
    let (run, end, recorded) = gone(&Fake::new(), late);
    assert_eq!((end, recorded.done.len()), (RunEnd::Done, 7));
    assert!(recorded.notes.iter().any(|note| note.starts_with("LateAlready")), "{:?}", recorded.notes);
    assert_eq!(run.record().workload.flows[0].deadline, Some(0.0));
    let row = &run.outcome().unwrap().schedule.flows[0];
    assert!(slackline_model::cost::is_late(row.completion.unwrap(), 0.0));
}

#[test]
fn a_run_begins_at_second_0_and_a_time_of_day_is_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let deadline = |when: &str| Deadline { flow: "g".into(), when: TimeSpec::parse_option(when).unwrap() };
    let text = FLOWS.replace("slackline = 1", "slackline = 1\nstart = \"2020-01-01T00:00[Asia/Kathmandu]\"");
    let text = text.replace("deadline = 20.0", "deadline = \"06:00\"");
    let request =
        Request { bytes: text.into_bytes(), deadlines: vec![deadline("06:00")], ..request(dir.path()) };
    let (run, _, _) = gone(&Fake::new(), request);
    let workload = run.record().workload;
    let start = workload.start.as_ref().unwrap();
    assert_eq!(start.moment().time_zone().iana_name(), Some("Asia/Kathmandu"), "the zone is the document's");
    assert!(start.moment().year() > 2020, "the moment is not");
    for flow in &workload.flows {
        let seconds = flow.deadline.unwrap();
        let clock = start.after(seconds).unwrap();
        assert_eq!((clock.hour(), clock.minute(), clock.second()), (6, 0, 0), "{clock}");
        assert!(seconds > 0.0 && seconds <= 86_400.0, "{seconds}");
    }
}

#[test]
fn durations_of_a_run_enter_the_history_and_are_estimates_of_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let fake = Fake::new();
    let first = Request { history: Some(history.clone()), ..request(dir.path()) };
    gone(&fake, first.clone());
    let known = HistoryStore::existing(&history).latest().unwrap();
    assert_eq!(known[&JobName::new("f", "a")].maps, 2);
    // The fake engine stores the history that it receives.
    Run::open(&fake, Request { choices: Choices::again(), ..first }, &mut Silent).unwrap();
    assert_eq!(*fake.past.lock().unwrap(), known);
}

#[test]
fn estimates_ignore_runs_of_other_owners_with_the_same_names() {
    let dir = tempfile::tempdir().unwrap();
    let history = dir.path().join("history");
    let fake = Fake::new();
    let of = |owner: Option<&str>| Request {
        history: Some(history.clone()),
        owner: owner.map(str::to_owned),
        choices: Choices::again(),
        ..request(dir.path())
    };
    let past = |owner| {
        gone(&fake, of(owner));
        fake.past.lock().unwrap().clone()
    };
    assert!(past(Some("anna")).is_empty());
    assert!(past(Some("bob")).is_empty(), "anna's says nothing of it");
    assert!(past(None).is_empty(), "nor of a run without an owner");
    let anna = past(Some("anna"));
    assert_eq!(anna[&JobName::new("f", "a")].maps, 2);
    let known = HistoryStore::existing(&history).latest().unwrap();
    let name = JobName::new("f", "a");
    assert_eq!(known[&name.of_owner("anna")].maps, 2 * 2);
    // A record without an owner applies to every owner.
    assert_eq!(past(Some("carl"))[&name], known[&name]);
}

/// This machine, with a lock as that of the placeholders of HDFS files: nothing is prepared twice at a time.
struct OneAtATime(LocalEngine, Arc<()>);

impl Backend for OneAtATime {
    fn description(&self) -> EngineDescription {
        self.0.description()
    }

    fn prepare(&self, workload: &Draft, past: &JobHistory, state: &Path) -> Result<PreparedRun, Vec<Fault>> {
        let lock = self.1.clone();
        assert_eq!(Arc::strong_count(&lock), 2, "what was prepared before is still there");
        let PreparedRun { resolved, memory, open } = self.0.prepare(workload, past, state)?;
        let open: Open = Box::new(move |opening, resolved| {
            drop(lock);
            open(opening, resolved)
        });
        Ok(PreparedRun { resolved, memory, open })
    }
}

#[test]
fn a_run_that_resumes_is_prepared_once_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("in"), "line").unwrap();
    let settings = Settings::new(WorkerCommand::this_program().unwrap());
    let engine = OneAtATime(LocalEngine::new(Slots::Generic(1), settings), Arc::default());
    let directory = Some(dir.path().to_owned());
    let request = || Request { directory: directory.clone(), ..request(&dir.path().join("state")) };
    let started = Run::open(&engine, request(), &mut Silent).unwrap().record().started;
    let id = TaskId { job: 0, phase: PhaseKind::Map, task: 0 };
    let ended = AttemptOutcome::Done(slackline_task::process::spec::Outcome::default());
    let attempt = Attempt { number: 0, id, slot: 0, segment: 0, start: 0, began: 0, end: 1, ended };
    let journal = Journal::open(&Layout::new(&dir.path().join("state")).journal()).unwrap();
    journal.record(&[attempt]).unwrap();
    drop(journal);
    assert_eq!(Run::open(&engine, request(), &mut Silent).unwrap().record().started, started, "it resumes");
}
