//! Tests of predictions for several runs: they agree with the validated simulator, and they respect the slot
//! limits of users.

use std::collections::BTreeMap;

use slackline_executor::store::running_attempt::RunningAttempt;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::quota::Quota;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Combine, Instance, Metric, PhaseKind, Seed};
use slackline_task::base::task_id::TaskId;

use crate::run::forecaster::*;
use crate::{Options, Registry, simulate};

fn machines(slots: u32) -> Vec<MachineDraft> {
    let slots = Slots::Generic(slots);
    vec![MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None }]
}

/// A workload of one flow: a chain of jobs, each with maps and reduces of the given durations in seconds.
fn workload(name: &str, jobs: &[(&[f64], &[f64])]) -> Draft {
    let phase = |seconds: &[f64]| (!seconds.is_empty()).then(|| TasksDraft::Each(seconds.to_vec()).into());
    let job = |(k, (maps, reduces)): (usize, &(&[f64], &[f64]))| JobDraft {
        id: format!("j{k}"),
        after: (k > 0).then(|| format!("j{}", k - 1)).into_iter().collect(),
        map: phase(maps),
        reduce: phase(reduces),
        ..JobDraft::default()
    };
    let flow = FlowDraft::new(name, jobs.iter().enumerate().map(job).collect());
    Draft { flows: vec![flow], ..Draft::default() }
}

fn drawn(rng: &mut ChaCha8Rng) -> Draft {
    let each = |rng: &mut ChaCha8Rng| {
        let n = random::integer(rng, 1, 9);
        (0..n).map(|_| random::integer(rng, 1, 30) as f64).collect::<Vec<f64>>()
    };
    let [a, b, c, d] = [(); 4].map(|()| each(rng));
    workload("f", &[(&a, &b), (&c, &d)])
}

/// Runs that start `apart` seconds after each other, each with its quota.
fn forecast_of(
    policy: &str,
    slots: u32,
    apart: f64,
    runs: Vec<(Draft, Option<(String, u32)>)>,
) -> Forecaster {
    let policy = Registry::standard().parse(policy).unwrap();
    let objective = Objective::new(Metric::Response, Combine::Sum);
    let mut forecast = Forecaster::new(policy.clone(), machines(slots), objective, 1.0);
    for (number, (workload, quota)) in (1..).zip(runs) {
        let followed = NewRun::of(&workload)
            .with_quota(quota.map(|(user, slots)| UserQuota { user, quota: Quota { slots } }));
        forecast.track(number, followed, apart * (number - 1) as f64, BTreeMap::new());
    }
    forecast
}

#[test]
fn completions_are_those_of_the_simulation_that_is_judged() {
    let mut rng = random::rng(Seed(3), "forecast", 0);
    for policy in ["fifo", "edf", "fair", "auto:effort=0.1", "auto:ends=no", "dmrs"] {
        let runs = (0..14).map(|_| (drawn(&mut rng), None)).collect();
        let ahead = forecast_of(policy, 6, 5.0, runs).ahead(Time::ZERO, None);
        let instance = Instance::new(&ahead.draft).unwrap();
        let spec = Registry::standard().parse(policy).unwrap();
        let judged = simulate(&instance, &spec, &Options::exact(), None, None).unwrap().schedule;
        let ends =
            judged.flows.iter().map(|row| (instance.flow(row.flow).id.clone(), row.completion.unwrap()));
        assert_eq!(ahead.completions().unwrap(), ends.collect::<Completions>(), "{policy}");
    }
}

/// Regression: the prediction gave the slots of running tasks to a flow that the policy serves first,
/// although nothing stops these tasks.
#[test]
fn running_tasks_keep_their_slots_under_every_policy() {
    let at = Time::from_seconds_nearest;
    for policy in ["fifo", "edf", "fair", "flex", "auto:ends=no", "auto", "rule:order=area"] {
        let long = workload("long", &[(&[9.0, 12.0, 12.0, 12.0, 12.0], &[])]);
        let mut quick = workload("quick", &[(&[2.0], &[])]);
        quick.flows[0].deadline = Some(20.0);
        quick.flows[0].weight = 9.0;
        let mut forecast = forecast_of(policy, 4, 3.0, vec![(long, None), (quick, None)]);
        for task in 1..5 {
            let id = TaskId { job: 0, phase: PhaseKind::Map, task };
            forecast.note(1, Time::ZERO, &RunEvent::AttemptStarted(RunningAttempt::unnumbered(id, 0)));
        }
        let ahead = forecast.ahead(at(3.0), None);
        let (expected, kept) = ahead.resolved().unwrap();
        assert_eq!(ahead.keeping(&kept).completions().unwrap(), expected, "{policy}");
        let ends = ["1/long", "2/quick"].map(|name| expected[name]);
        assert_eq!(ends, [21.0, 14.0], "{policy}");
    }
}

/// A held flow starts no more tasks, and its running ones continue. Regression: they were left out, so their
/// slots were promised to other flows.
#[test]
fn running_tasks_of_a_held_flow_keep_their_slots() {
    let at = Time::from_seconds_nearest;
    for policy in ["fifo", "edf", "fair", "auto:ends=no", "auto"] {
        let held = workload("held", &[(&[9.0, 30.0, 12.0], &[5.0]), (&[7.0], &[])]);
        let quick = workload("quick", &[(&[2.0, 3.0, 2.0], &[])]);
        let mut forecast = forecast_of(policy, 2, 3.0, vec![(held, None), (quick, None)]);
        for task in [0, 2] {
            forecast.note(
                1,
                Time::ZERO,
                &RunEvent::AttemptStarted(RunningAttempt::unnumbered(
                    TaskId { job: 0, phase: PhaseKind::Map, task },
                    0,
                )),
            );
        }
        forecast.stand(1, "held", FlowOverrides { held: true, ..FlowOverrides::default() });
        let ahead = forecast.ahead(at(3.0), None);
        let ends = ahead.completions().unwrap();
        assert_eq!(ends, Completions::from([("2/quick".to_owned(), 14.0)]), "{policy}");
        let freed = forecast.ahead(at(3.0), Some(1)).completions().unwrap();
        assert_eq!(freed.len(), 2, "{policy}: {freed:?}");
    }
}

#[test]
fn forecasts_with_a_kept_order_repeat_the_decisions() {
    let mut rng = random::rng(Seed(4), "forecast", 0);
    for _ in 0..10 {
        let runs = (0..14).map(|_| (drawn(&mut rng), None)).collect();
        let ahead = forecast_of("auto:ends=no", 5, 0.0, runs).ahead(Time::ZERO, None);
        let (expected, kept) = ahead.resolved().unwrap();
        assert_eq!(ahead.clone().keeping(&kept).completions().unwrap(), expected);
        let last = expected.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(name, _)| name.clone()).unwrap();
        let without = ahead.keeping(&kept).without(|name| name == last).completions().unwrap();
        assert_eq!(without.len(), expected.len() - 1);
    }
}

#[test]
fn a_user_with_a_quota_of_one_slot_runs_one_task_at_a_time() {
    let anna = || Some(("anna".to_owned(), 1));
    let four = |name| workload(name, &[(&[10.0; 4], &[])]);
    for policy in ["fifo", "edf", "auto:ends=no", "auto"] {
        let ends = |quota: Option<(String, u32)>| {
            let runs = vec![(four("a"), quota.clone()), (four("b"), quota), (four("c"), None)];
            let ahead = forecast_of(policy, 3, 5.0, runs).ahead(Time::ZERO, None);
            let (ends, kept) = ahead.resolved().unwrap();
            assert_eq!(ahead.keeping(&kept).completions().unwrap(), ends, "{policy}");
            ends
        };
        let (with, free) = (ends(anna()), ends(None));
        // Eight tasks of 10 s, one after the other. The other user runs two at a time from 10 s on.
        assert_eq!(with["1/a"].max(with["2/b"]), 80.0, "{policy}: {with:?}");
        assert_eq!(with["3/c"], 30.0, "{policy}: {with:?}");
        assert!(with["3/c"] < free["3/c"], "{policy}: {with:?} and {free:?}");
    }
}

/// Marks the durations of phases as placeholders.
fn never_ran(job: &mut JobDraft, phases: &[PhaseKind]) {
    for (phase, kind) in [&mut job.map, &mut job.reduce].into_iter().zip(PhaseKind::ALL) {
        if let Some(phase) = phase {
            phase.unknown |= phases.contains(&kind);
        }
    }
}

/// The completion times of the flow of the first run in all samples.
fn completions(forecast: &Forecaster, now: Time) -> Vec<f64> {
    let (_, samples) = forecast.samples(now, None, forecast.policy.clone()).unwrap();
    let kept = CachedOrder::default();
    (0..Forecaster::SAMPLES).map(|k| samples.completions(k, &kept).unwrap()["1/f"]).collect()
}

#[test]
fn a_flow_is_unknown_until_every_job_that_is_left_has_a_finished_task() {
    let mut flow = workload("f", &[(&[10.0; 2], &[4.0]), (&[6.0], &[2.0])]);
    flow.flows[0].jobs.iter_mut().for_each(|job| never_ran(job, &PhaseKind::ALL));
    let mut forecast = forecast_of("fifo", 2, 0.0, vec![(flow, None)]);
    let at = Time::from_seconds_nearest;
    let id = |job, phase, task| TaskId { job, phase, task };
    let unknown = BTreeSet::from(["1/f".to_owned()]);
    let ended = [
        (10.0, id(0, PhaseKind::Map, 0), 10.0),
        (10.0, id(0, PhaseKind::Map, 1), 10.0),
        (14.0, id(0, PhaseKind::Reduce, 0), 4.0),
    ];
    for (now, id, took) in ended {
        assert_eq!(forecast.unknown_flows(), unknown);
        forecast.note(1, at(now), &RunEvent::TaskFinished { task: id, seconds: took });
    }
    forecast.note(
        1,
        at(14.0),
        &RunEvent::AttemptStarted(RunningAttempt::unnumbered(id(1, PhaseKind::Map, 0), 0)),
    );
    assert_eq!(forecast.unknown_flows(), unknown, "of its second job nothing has ended");
    forecast.note(1, at(20.0), &RunEvent::TaskFinished { task: id(1, PhaseKind::Map, 0), seconds: 6.0 });
    assert_eq!(forecast.unknown_flows(), BTreeSet::new());
    // One reduce is left. The only known durations are those of the maps of its job, so its samples differ by
    // a factor of two.
    let ends = completions(&forecast, at(20.0));
    assert!(ends.contains(&21.0) && ends.contains(&24.0), "{ends:?}");
    assert!(ends.iter().all(|end| (21.0..=24.0).contains(end)), "{ends:?}");
}

/// Regression: a third of a millisecond times 0.8 is no whole number of microseconds. It was refused, because
/// rounding changes it by more than a thousandth.
#[test]
fn tasks_of_less_than_a_millisecond_are_looked_ahead_at() {
    let flow = workload("f", &[(&[0.000_383; 3], &[0.000_477])]);
    let known = PhaseKind::ALL.map(|kind| PhaseName { flow: "f".into(), job: "j0".into(), kind });
    let mut forecast = forecast_of("fifo", 4, 0.0, Vec::new());
    let followed = NewRun { known: known.into(), ..NewRun::of(&flow) };
    forecast.track(1, followed, 0.0, BTreeMap::new());
    let ends = completions(&forecast, Time::ZERO);
    assert!(ends.iter().all(|end| (0.000_6..=0.001_1).contains(end)), "{ends:?}");
}

#[test]
fn a_flow_whose_jobs_ran_before_is_known_and_its_times_differ() {
    let flow = workload("f", &[(&[10.0], &[10.0])]);
    let name = |kind| PhaseName { flow: "f".into(), job: "j0".into(), kind };
    let known: BTreeSet<PhaseName> = PhaseKind::ALL.map(name).into();
    let mut forecast = forecast_of("fifo", 2, 0.0, Vec::new());
    for (number, known) in [(1, known.clone()), (2, [name(PhaseKind::Map)].into())] {
        let mut flow = flow.clone();
        if !known.contains(&name(PhaseKind::Reduce)) {
            never_ran(&mut flow.flows[0].jobs[0], &[PhaseKind::Reduce]);
        }
        let followed = NewRun { known, ..NewRun::of(&flow) };
        forecast.track(number, followed, 0.0, BTreeMap::new());
    }
    assert_eq!(
        forecast.unknown_flows(),
        BTreeSet::from(["2/f".to_owned()]),
        "of that it is not known what reduces take"
    );
    let ends = completions(&forecast, Time::ZERO);
    assert!(ends.iter().all(|end| (16.0..=25.0).contains(end)), "{ends:?}");
    assert!(ends.iter().any(|end| *end < 20.0) && ends.iter().any(|end| *end > 20.0), "{ends:?}");
}
