//! Jobs with a jar and a main class, with mock programs.

use crate::flows::backend::tests::player::Plays;
use crate::flows::backend::tests::*;

/// A job by jar: it reads `input` and has one reduce. Its output has its name, and its parts name its input.
fn jar(scene: &Scene, id: &str, input: &str) -> JobDraft {
    let arguments = vec!["{inputs}".to_owned(), "{output}".to_owned()];
    let jar = scene.path("in.txt").display().to_string();
    let work = RunWork::Jar { jar, main: format!("org.example.{id}"), arguments };
    let job = scene.job(id, "cat", input, 1);
    let run = job.run.map(|run| RunDraft { work, ..run });
    JobDraft { run, ..job }
}

fn timed_out() -> SubmitterError {
    SubmitterError::TimedOut { verb: "jar", after: Duration::from_secs(60) }
}

/// A scene in which programs have time to end.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.timeouts.end = Duration::from_secs(5);
    scene
}

/// Runs jobs until this number of applications was active for some polls. None may be active after the run.
fn run_and_stop(scene: &Scene, jobs: Vec<JobDraft>, count: usize) {
    let (mut there, mut polls) = (scene.applications(count), 0);
    let until = move || {
        polls += u32::from(there());
        polls > 10
    };
    let (end, messages) = scene.run(&[flow(jobs)], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Interrupted, "{messages:?}");
    assert_eq!(messages, [""; 0]);
    assert!(scene.states().iter().all(|state| state.is_over()), "{:?}", scene.states());
}

#[test]
fn the_output_of_a_program_is_published_and_read_by_the_next_job() {
    let scene = scene();
    let (end, messages) = scene.run_to_end(vec![jar(&scene, "etl", "in.txt"), jar(&scene, "last", "@etl")]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert!(scene.output("etl").ends_with("/in.txt"), "{}", scene.output("etl"));
    assert!(scene.output("last").ends_with("/etl"), "{}", scene.output("last"));
    assert_eq!(scene.player.exits(), [Some(0), Some(0)]);
}

#[test]
fn a_running_program_ends_with_its_run() {
    let scene = scene();
    scene.player.play(|_, _| Plays::Waits);
    run_and_stop(&scene, vec![jar(&scene, "etl", "in.txt")], 1);
    assert_eq!(scene.player.exits(), [Some(137)]);
}

#[test]
fn jobs_that_a_killed_program_submitted_are_ended_too() {
    let scene = scene();
    scene.player.play(|_, _| Plays::SubmitsMore);
    run_and_stop(&scene, vec![jar(&scene, "etl", "in.txt")], 1);
    assert_eq!(scene.states().len(), 2);
}

#[test]
fn a_program_that_may_have_been_started_is_started_again_and_the_first_has_no_say() {
    let scene = scene();
    scene.player.play(|number, _| if number == 0 { Plays::Lost(timed_out()) } else { Plays::Works });
    let (end, messages) = scene.run_to_end(vec![jar(&scene, "etl", "in.txt")]);
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.player.jars().len(), 2);
    assert!(scene.output("etl").ends_with("/in.txt"), "{}", scene.output("etl"));
    assert_eq!(scene.states(), [AppState::Killed, AppState::Finished]);
}

#[test]
fn a_program_is_not_started_for_ever() {
    let scene = scene();
    scene.player.play(|_, _| Plays::Fails(timed_out()));
    let (end, messages) = scene.run_to_end(vec![jar(&scene, "etl", "in.txt")]);
    assert_eq!(end.unwrap(), RunEnd::Failed);
    assert_eq!(scene.player.jars().len(), 3);
    assert!(messages.iter().any(|messages| messages.contains("it cannot be submitted: ")), "{messages:?}");
}

#[test]
fn a_program_that_fails_fails_its_job_with_its_last_words() {
    let scene = scene();
    scene.player.play(|_, _| Plays::Exits(3));
    let (end, messages) = scene.run_to_end(vec![jar(&scene, "etl", "in.txt")]);
    assert_eq!(end.unwrap(), RunEnd::Failed);
    assert!(messages.iter().any(|messages| messages.contains("its last words")), "{messages:?}");
    assert!(!scene.path("etl").exists());
}

#[test]
fn a_program_that_its_submitter_does_not_know_any_more_is_named_by_its_process() {
    let scene = scene();
    scene.player.play(|_, _| Plays::Waits);
    let (player, mut there) = (scene.player.clone(), scene.applications(1));
    let until = move || {
        if there() {
            player.forget_programs();
        }
        false
    };
    let (end, messages) =
        scene.run(&[flow(vec![jar(&scene, "etl", "in.txt")])], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Failed, "{messages:?}");
    let expected = "failed for good: the state of its program, process 4001, is unknown: no such".to_owned();
    assert!(messages.contains(&expected), "{messages:?}");
}

#[test]
fn the_program_of_a_flow_that_fails_is_killed() {
    let scene = scene();
    let waits = |_: usize, jar: &crate::submitter::JarRequest| {
        if jar.main.ends_with("etl") { Plays::Waits } else { Plays::Exits(1) }
    };
    scene.player.play(waits);
    let (end, messages) = scene.run_to_end(vec![jar(&scene, "etl", "in.txt"), jar(&scene, "bad", "in.txt")]);
    assert_eq!(end.unwrap(), RunEnd::Failed, "{messages:?}");
    assert!(scene.player.exits().iter().all(Option::is_some), "{:?}", scene.player.exits());
    assert!(scene.states().iter().all(|state| state.is_over()), "{:?}", scene.states());
}

#[test]
fn an_application_of_a_program_whose_session_was_killed_is_ended_and_the_program_starts_again() {
    let scene = scene();
    scene.player.play(|number, _| if number == 0 { Plays::Waits } else { Plays::Works });
    let job = || vec![jar(&scene, "etl", "in.txt")];
    scene.run_and_die(job(), scene.applications(1));
    assert_eq!(scene.states(), [AppState::Running]);
    let (end, messages) = scene.run_to_end(job());
    assert_eq!(end.unwrap(), RunEnd::Done, "{messages:?}");
    assert_eq!(scene.states(), [AppState::Killed, AppState::Finished]);
    assert!(scene.output("etl").ends_with("/in.txt"), "{}", scene.output("etl"));
}

#[test]
fn ams_of_programs_for_which_a_look_has_no_time_are_asked_at_the_next() {
    let mut scene = scene();
    scene.timeouts.asks = Duration::ZERO;
    scene.player.play(|_, _| Plays::Waits);
    let mock = scene.mock.clone();
    let until = move || {
        let asked = |number: u32| {
            let part = format!("_{number:04}/ws/v1/mapreduce");
            mock.with(|state| state.requests.iter().any(|request| request.contains(&part)))
        };
        (1..=3).all(asked)
    };
    let jobs = ["a", "b", "c"].map(|id| jar(&scene, id, "in.txt"));
    let (end, messages) = scene.run(&[flow(jobs.into())], Choices::default(), Box::new(until));
    assert_eq!(end.unwrap(), RunEnd::Interrupted, "{messages:?}");
    let requests = scene.mock.with(|state| state.requests.clone());
    let polls = requests.split(|request| request.contains("cluster/apps?"));
    let most = polls
        .map(|poll_cluster| poll_cluster.iter().filter(|request| request.contains("/proxy/")).count())
        .max();
    assert_eq!(most, Some(1));
}
