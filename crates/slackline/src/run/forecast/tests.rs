//! Estimated durations and predicted completions, against numbers calculated by hand.

use slackline_executor::store::running_attempt::RunningAttempt;
use slackline_model::draft::{JobDraft, PhaseDraft, TasksDraft};
use slackline_model::{Draft, PhaseKind, Profile};
use slackline_task::base::task_id::TaskId;

use super::*;
use crate::run::run_model::SAMPLED_TASKS_MAX;
use crate::run::tests::{fake::Fake, request};
use crate::run::{Run, Silent};

/// A forecast of two jobs in a chain, before anything runs: maps of 1 s and 10 s, reduces of 2 s and 3 s.
fn forecast() -> Forecast {
    let mut fake = Fake::new();
    fake.phases = vec![[vec![1.0; 4], vec![2.0]], [vec![10.0; 2], vec![3.0]], [vec![1.0], vec![]]];
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path());
    let run = Run::open(&fake, request.clone(), &mut Silent).unwrap();
    let model = RunModel::of_record(run.setting.clone(), &run.record());
    let mut forecast = Forecast::new(request.policy, model);
    forecast.model.draft.flows.truncate(1);
    forecast
}

fn id(job: u32, phase: PhaseKind, task: u32) -> TaskId {
    TaskId { job, phase, task }
}

fn seconds(draft: &Draft, job: usize) -> [Vec<f64>; 2] {
    let job = &draft.flows[0].jobs[job];
    [&job.map, &job.reduce].map(|phase| match &phase.as_ref().unwrap().tasks {
        TasksDraft::Each(seconds) => seconds.clone(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn estimates_of_durations_follow_finished_and_running_tasks() {
    use PhaseKind::{Map, Reduce};
    let mut forecast = forecast();
    let at = Time::from_seconds_nearest;
    for task in 0..2 {
        forecast
            .model
            .record(Time::ZERO, &RunEvent::AttemptStarted(RunningAttempt::unnumbered(id(0, Map, task), 0)));
    }
    forecast.model.record(at(4.0), &RunEvent::TaskFinished { task: id(0, Map, 0), seconds: 4.0 });
    let now = forecast.model.estimated(at(5.0));
    // The finished map took four times its estimate, so all maps are scaled by four. The overdue map gets a
    // tenth of its elapsed 5 s.
    assert_eq!(seconds(&now, 0), [vec![4.0, 0.5, 4.0, 4.0], vec![2.0]]);
    assert_eq!(seconds(&now, 1), [vec![40.0, 40.0], vec![3.0]]);
    // A task halfway through has half its duration left. Reduces are scaled separately.
    assert_eq!(seconds(&forecast.model.estimated(at(3.0)), 0)[0][1], 1.0);
    forecast.model.record(at(6.0), &RunEvent::TaskFinished { task: id(0, Reduce, 0), seconds: 1.0 });
    assert_eq!(seconds(&forecast.model.estimated(at(6.0)), 1), [vec![40.0, 40.0], vec![1.5]]);
    // The estimate of a task is at least the elapsed time of any running task of its phase.
    forecast.model.record(at(10.0), &RunEvent::AttemptStarted(RunningAttempt::unnumbered(id(1, Map, 0), 0)));
    assert_eq!(seconds(&forecast.model.estimated(at(60.0)), 1)[0], [5.0, 50.0]);
}

#[test]
fn a_flow_is_expected_when_the_simulator_has_what_is_left_of_it_done() {
    let mut forecast = forecast();
    let at = Time::from_seconds_nearest;
    let map = |task| id(0, PhaseKind::Map, task);
    assert_eq!(forecast.of("f"), None);
    for task in 0..2 {
        forecast
            .model
            .record(Time::ZERO, &RunEvent::AttemptStarted(RunningAttempt::unnumbered(map(task), 0)));
    }
    forecast.model.record(at(4.0), &RunEvent::TaskFinished { task: map(0), seconds: 4.0 });
    // Left of a: 0.5 s and 4 s, then 4 s from 5.5 on, reduce from 9.5. Left of b: 40 s from 11.5 on, then the
    // reduce.
    forecast.look_ahead(at(5.0));
    let expected = forecast.thinking.take().unwrap().answer.into_inner().unwrap().recv().unwrap();
    forecast.expected = expected;
    assert_eq!(forecast.of("f"), Some(54.5));
    let failed = |is_final| {
        let (message, log, other_runs) = ("no".to_owned(), None, false);
        RunEvent::AttemptFailed { task: map(1), message, log, other_runs, is_final }
    };
    for _ in 0..9 {
        forecast.model.record(at(6.0), &failed(false));
        assert_eq!(forecast.of("f"), Some(54.5));
    }
    forecast.model.record(at(6.0), &failed(true));
    assert!(forecast.has_failed("f") && forecast.of("f").is_none());
}

/// A profile without random delays: 0.5 s to submit, 6 s for an ApplicationMaster, 3 s for a container.
fn profile() -> Option<Profile> {
    Profile::parse("hadoop:submit=0.5:am-start=6:am-linger=5:container-start=3:heartbeat=0:am-heartbeat=0")
        .unwrap()
}

#[test]
fn on_a_cluster_the_starts_of_application_masters_and_containers_are_expected() {
    let at = Time::from_seconds_nearest;
    let mut forecast = forecast();
    let expected = |forecast: &Forecast, now| forecast.simulated(at(now)).unwrap()["f"];
    // On two slots: two pairs of 1 s maps, then the reduce of 2 s; both 10 s maps at once, then the reduce of
    // 3 s.
    assert_eq!(expected(&forecast, 0.0), 2.0 + 2.0 + 10.0 + 3.0);
    forecast.model.setting.profile = profile();
    // The ApplicationMaster takes one slot and leaves one for tasks. The second ApplicationMaster starts when
    // the first has left.
    let first = 0.5 + 6.0 + 4.0 * (3.0 + 1.0) + 3.0 + 2.0;
    let second = 5.0 + 6.0 + 2.0 * (3.0 + 10.0) + 3.0 + 3.0;
    assert_eq!(expected(&forecast, 0.0), first + second);
    // The first ApplicationMaster is up, and one map is nearly finished. Neither start-up is predicted again.
    forecast
        .model
        .record(at(9.5), &RunEvent::AttemptStarted(RunningAttempt::unnumbered(id(0, PhaseKind::Map, 0), 0)));
    assert_eq!(expected(&forecast, 10.0), 10.0 + 0.5 + 3.0 * (3.0 + 1.0) + 3.0 + 2.0 + second);
}

#[test]
fn an_estimate_is_never_before_now() {
    let at = Time::from_seconds_nearest;
    let mut forecast = forecast();
    forecast.expected.insert("f".to_owned(), 54.5);
    forecast.next = Time(u64::MAX);
    forecast.note(at(50.0), &RunEvent::Tick);
    assert_eq!(forecast.of("f"), Some(54.5));
    forecast.note(at(60.0), &RunEvent::Tick);
    assert_eq!(forecast.of("f"), Some(60.0));
}

#[test]
fn the_spread_is_that_of_durations_of_tasks_of_the_phase() {
    let at = Time::from_seconds_nearest;
    let map = |task| id(0, PhaseKind::Map, task);
    let mut forecast = forecast();
    for (task, took) in [(0, 1.0), (1, 3.0)] {
        forecast
            .model
            .record(Time::ZERO, &RunEvent::AttemptStarted(RunningAttempt::unnumbered(map(task), 0)));
        forecast.model.record(at(took), &RunEvent::TaskFinished { task: map(task), seconds: took });
    }
    forecast.model.each.insert((0, PhaseKind::Map), vec![1.0, 3.0]);
    // The reduces and the second job are unknown, so their ratios go up to a factor of two.
    let [least, most] = forecast.spread(at(3.0))["f"];
    let expected = forecast.simulated(at(3.0)).unwrap()["f"];
    assert!(least < 0.8 * expected && most > 1.3 * expected, "{least} to {most}, expected {expected}");
    // Two maps are left, of 1 s or 3 s, one on each slot.
    let jobs = std::mem::take(&mut forecast.model.draft.flows[0].jobs);
    forecast.model.draft.flows[0].jobs = vec![JobDraft { reduce: None, ..jobs[0].clone() }];
    let spread = forecast.spread(at(3.0));
    assert_eq!(spread["f"], [3.0 + 1.0, 3.0 + 3.0]);
    assert_eq!(spread, forecast.spread(at(3.0)));
    // Equal durations have no spread. A single finished task does not show that.
    forecast.model.each.insert((0, PhaseKind::Map), vec![2.0; 2]);
    assert_eq!(forecast.spread(at(3.0))["f"], [5.0; 2]);
    forecast.model.each.insert((0, PhaseKind::Map), vec![2.0]);
    let [least, most] = forecast.spread(at(3.0))["f"];
    assert!(least < 5.0 && most > 5.0, "{least} to {most}");
    forecast.model.draft.flows[0].jobs = jobs;
    // Too many tasks: sampling would take long.
    let many = PhaseDraft::from(TasksDraft::Each(vec![1.0; SAMPLED_TASKS_MAX + 5]));
    forecast.model.draft.flows[0].jobs[1].map = Some(many);
    assert!(forecast.spread(at(3.0)).is_empty());
}

#[test]
fn eight_of_ten_ends_lie_between_those_that_are_said() {
    assert_eq!(interval(&mut [7.0]), [7.0, 7.0]);
    assert_eq!(interval(&mut [2.0, 0.0, 1.0]), [0.2, 1.8]);
    let mut ends: Vec<f64> = (0..11).rev().map(f64::from).collect();
    assert_eq!(interval(&mut ends), [1.0, 9.0]);
}
