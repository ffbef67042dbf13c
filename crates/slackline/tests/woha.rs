//! WOHA through the simulator: the example of the paper's Fig. 2, plans made elsewhere, lost tasks,
//! hopeless deadlines, and the lists against recomputation.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use slackline::Registry;
use slackline::policy::{Config, Estimates, Policy};
use slackline::sim::{Crashes, Options, Sim};
use slackline_algo::woha::lag::{Lags, Naive};
use slackline_algo::woha::{Cap, JobOrder, Plan, PlanGenerator, Progress, Request, Woha};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::schedule::Clock;
use slackline_model::{Draft, FlowId, Instance, Schedule, Span, Time};

fn phase(tasks: u32, seconds: f64) -> Option<PhaseDraft> {
    (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds }.into())
}

fn job(id: &str, after: &[&str], maps: u32, reduces: u32) -> JobDraft {
    let after = after.iter().map(|&id| id.to_owned()).collect();
    JobDraft {
        id: id.into(),
        after,
        map: phase(maps, 1.0),
        reduce: phase(reduces, 1.0),
        ..JobDraft::default()
    }
}

fn instance(slots: Slots, count: u32, flows: Vec<(&str, f64, Option<f64>, Vec<JobDraft>)>) -> Instance {
    let flow = |(id, release, deadline, jobs)| FlowDraft { release, deadline, ..FlowDraft::new(id, jobs) };
    let node = MachineDraft { name: "n".into(), count, speed: 1.0, slots, rack: None };
    let flows = flows.into_iter().map(flow).collect();
    Instance::new(&Draft { machines: vec![node], flows, ..Draft::default() }).unwrap()
}

fn run_with(instance: &Instance, policy: &mut dyn Policy, options: Options) -> Schedule {
    let mut engine = Sim::new(instance, options);
    let config = Config::plain().audited();
    let run = slackline::policy::run(instance, policy, &mut engine, config);
    let schedule = run.schedule(instance, "woha", Clock::Exact);
    slackline::judge::check(instance, &schedule).unwrap();
    schedule
}

fn completions(schedule: &Schedule) -> Vec<f64> {
    schedule.flows.iter().map(|flow| flow.completion.unwrap()).collect()
}

fn simulate(instance: &Instance, spec: &str) -> Vec<f64> {
    let mut policy =
        Registry::standard().parse(spec).unwrap().build(instance.cluster(), &instance.objective());
    completions(&run_with(instance, policy.as_mut(), Options::exact()))
}

/// docs/math/woha.md E5: three flows of six maps and a reduce, then a map and two reduces.
fn fig2() -> Instance {
    let jobs = || vec![job("J1", &[], 6, 1), job("J2", &["J1"], 1, 2)];
    let flow = |id, deadline| (id, 0.0, Some(deadline), jobs());
    let slots = Slots::MapReduce { map: 3, reduce: 3 };
    instance(slots, 1, vec![flow("W1", 9.0), flow("W2", 9.0), flow("W3", 50.0)])
}

#[test]
fn woha_sec4a_fig2_a_cap_of_six_misses_a_deadline_and_a_cap_of_two_does_not() {
    let instance = fig2();
    for order in [JobOrder::HighestLevel, JobOrder::LongestPath, JobOrder::MaximumParallelism] {
        let with = |cap| {
            let generator = Progress { order, cap: Cap::Fixed(cap), pooled: true };
            let list = Box::new(Lags::default());
            let mut policy = Woha::new("woha", Box::new(generator), list);
            completions(&run_with(&instance, &mut policy, Options::exact()))
        };
        assert_eq!(with(6), [9.0, 10.0, 10.0]);
        assert_eq!(with(2), [8.0, 9.0, 9.0]);
    }
    // By search W3, which has time, counts on one slot only.
    let found = simulate(&instance, "woha-lpf:pooled=yes:cap=search:lag=tasks");
    assert!(found[0] <= 9.0 && found[1] <= 9.0 && found[2] <= 50.0, "{found:?}");
}

#[test]
fn plans_made_elsewhere_are_followed_and_others_are_refused() {
    let instance = fig2();
    let policy = Registry::standard().parse("woha-hlf:pooled=yes:cap=none:lag=tasks").unwrap();
    let estimates = Estimates::mean(&instance);
    let generator = Progress { order: JobOrder::HighestLevel, cap: Cap::Fixed(2), pooled: true };
    let plan = |flow: u32| {
        let request =
            Request { instance: &instance, flow: FlowId(flow), estimates: &estimates, now: Time::ZERO };
        // Over the wire and back.
        Plan::decode(&generator.plan(&request).encode()).unwrap()
    };
    let plans: BTreeMap<_, _> = (0..3).map(|flow| (FlowId(flow), plan(flow))).collect();
    let mut following = policy.build_following(instance.cluster(), &instance.objective(), plans);
    let schedule = run_with(&instance, following.as_mut(), Options::exact());
    assert_eq!(completions(&schedule), [8.0, 9.0, 9.0]);

    let other = Plan::new(1, Span::ZERO, vec![0], Vec::new()).unwrap();
    let mismatch = other.fits(&instance, FlowId(1)).unwrap_err();
    assert_eq!(mismatch.to_string(), "found a plan of 1 jobs and 0 tasks, expected 2 jobs and 10 tasks");
    assert!(!Registry::standard().parse("edf").unwrap().follows_plans());
}

#[test]
fn hopeless_flows_are_reported_and_do_not_push_others_past_their_deadlines() {
    // Two slots. "late" needs 50 s of both and has 5; "small" needs 10 s and has 40.
    let late = ("late", 0.0, Some(5.0), vec![job("j", &[], 100, 0)]);
    let small = ("small", 0.0, Some(40.0), vec![job("j", &[], 20, 0)]);
    let instance = instance(Slots::Generic(2), 1, vec![late, small]);
    let generator = Progress { order: JobOrder::LongestPath, cap: Cap::Search, pooled: false };
    let mut policy = Woha::new("woha", Box::new(generator), Box::new(Lags::default()));
    let schedule = run_with(&instance, &mut policy, Options::exact());
    let done = completions(&schedule);
    assert!(done[1] <= 40.0, "{done:?}");
    let followed = simulate(&instance, "woha-lpf:late=follow");
    assert!(followed[1] > 40.0, "followed to the letter, it does: {followed:?}");
    let answers: Vec<_> =
        policy.admissions().iter().map(|(_, a)| (a.feasible, a.earliest_completion)).collect();
    let at = |seconds| Time::from_seconds_nearest(seconds);
    assert_eq!(answers, [(false, at(50.0)), (true, at(10.0))]);
}

#[test]
fn the_last_tasks_of_a_small_flow_do_not_wait_for_a_large_one_that_lags() {
    // Both are late by load: lag in tasks lets the large one catch up first, lag in time does not.
    let large = ("large", 0.0, Some(110.0), vec![job("j", &[], 400, 0)]);
    let small = ("small", 10.0, Some(26.0), vec![job("j", &[], 40, 0), job("k", &["j"], 10, 0)]);
    let instance = instance(Slots::Generic(4), 1, vec![large, small]);
    let tasks = simulate(&instance, "woha-lpf:cap=search:lag=tasks:late=follow");
    let time = simulate(&instance, "woha-lpf");
    assert!(tasks[1] > 26.0, "{tasks:?}");
    assert!(time[1] <= 26.0, "{time:?}");
}

#[test]
fn a_flow_that_falls_behind_gives_way_to_one_that_can_be_in_time() {
    // Each could meet its deadline alone; both cannot. The one that is overdue first gives way.
    let one = |id, deadline| (id, 0.0, Some(deadline), vec![job("j", &[], 40, 0)]);
    let instance = instance(Slots::Generic(4), 1, vec![one("a", 12.0), one("b", 12.0), one("c", 30.0)]);
    let done = simulate(&instance, "woha-mpf");
    assert_eq!(done.iter().zip([12.0, 12.0, 30.0]).filter(|(done, due)| *done > due).count(), 1, "{done:?}");
}

#[test]
fn flows_without_deadline_take_what_is_left_and_share_it() {
    let free = |id| (id, 0.0, None, vec![job("j", &[], 20, 0)]);
    let due = ("due", 0.0, Some(20.0), vec![job("j", &[], 20, 0)]);
    let instance = instance(Slots::Generic(2), 1, vec![free("a"), free("b"), due]);
    // The one with a deadline is served first even where its plan would let it wait.
    assert_eq!(simulate(&instance, "woha-hlf"), [30.0, 30.0, 10.0]);
}

/// Random flows on a cluster with crashes: the lists and the naive scheduler agree.
#[test]
fn lists_decide_as_recomputation_does_even_when_tasks_are_lost() {
    let mut flows = Vec::new();
    let names: Vec<String> = (0..12).map(|k| format!("w{k}")).collect();
    for (k, name) in (0..).zip(&names) {
        let jobs = vec![
            job("a", &[], 3 + k * 7 % 11, k % 3),
            job("b", &["a"], 1 + k % 4, 2),
            job("c", &["a"], 5, 0),
            job("d", &["b", "c"], 2, 1 + k % 2),
        ];
        let deadline = (k % 4 != 3).then(|| f64::from(k) * 1.5 + 12.0);
        flows.push((name.as_str(), f64::from(k / 2), deadline, jobs));
    }
    for slots in [Slots::MapReduce { map: 2, reduce: 1 }, Slots::Generic(3)] {
        let instance = instance(slots, 4, flows.clone());
        for slowstart in [1.0, 0.3] {
            let crashes = Crashes::Rate { between: Span(15_000_000), repair: Span(3_000_000) };
            let run = |policy: &mut dyn Policy| {
                let mut engine =
                    Sim::new(&instance, Options { crashes: crashes.clone(), ..Options::exact() });
                let config = Config { slowstart, ..Config::plain().audited() };
                let run = slackline::policy::run(&instance, policy, &mut engine, config);
                let schedule = run.schedule(&instance, "woha", Clock::Exact);
                slackline::judge::check(&instance, &schedule).unwrap();
                completions(&schedule)
            };
            let generator = Progress { order: JobOrder::HighestLevel, cap: Cap::Search, pooled: false };
            let mut naive = Woha::new("woha", Box::new(generator), Box::<Naive>::default());
            let expected = run(&mut naive);
            let mut policy = Registry::standard()
                .parse("woha-hlf:cap=search:lag=tasks")
                .unwrap()
                .build(instance.cluster(), &instance.objective());
            assert_eq!(run(policy.as_mut()), expected, "{slots:?}, {slowstart}");
        }
    }
}
