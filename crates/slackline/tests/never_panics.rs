//! No value that the types of the library allow makes it panic: it is refused in words, or there is a result
//! that the judge accepts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use slackline::capacity::{Axis, Knob, Search, Values, search};
use slackline::certificates::certify;
use slackline::explain::{Explainer, flow_times};
use slackline::import::{CrashAt, SimulationOptions, SlotOptions, Source, WorkloadOptions, bounds};
use slackline::model::cluster::{Group, Slots};
use slackline::model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, Repeat, TasksDraft};
use slackline::model::history::{PhaseName, Record};
use slackline::model::{
    FlowId, History, Instance, JobId, MachineId, Metric, Objective, PhaseKind, Profile, Span, Time,
};
use slackline::plan::{Plan, augmented, plan};
use slackline::sim::{Crash, Crashes, Membership};
use slackline::simulate::{GRAIN, Knowledge, prepare};
use slackline::tune::{Method, Mode, Request, Splits, curve, in_order, tune};
use slackline::{Options, PolicySpec, Registry, SideBySide, compare, explain, judge, simulate};

const NUMBERS: [f64; 12] =
    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1e-9, 0.5, 1.0, 3.5, 1e12, f64::MAX];

fn policies() -> Vec<PolicySpec> {
    Registry::standard().policies()
}

fn edf() -> PolicySpec {
    Registry::standard().parse("edf").expect("a policy")
}

fn machines(slots: Slots) -> Vec<MachineDraft> {
    vec![MachineDraft { name: "m".into(), count: 2, speed: 1.0, slots, rack: None }]
}

/// Flows of one job with work that is not cut, maps and reduces.
fn draft(flows: usize) -> Draft {
    let work = TasksDraft::Work { work: 35.0, tasks: None };
    let reduce = TasksDraft::Uniform { tasks: 2, seconds: 3.0 };
    let job = JobDraft {
        id: "j".into(),
        map: Some(work.into()),
        reduce: Some(reduce.into()),
        ..JobDraft::default()
    };
    let flow = |k| FlowDraft { deadline: Some(60.0), ..FlowDraft::new(format!("f{k}"), vec![job.clone()]) };
    Draft { machines: machines(Slots::Generic(2)), flows: (0..flows).map(flow).collect(), ..Draft::default() }
}

fn instance(flows: usize) -> Instance {
    Instance::new(&draft(flows)).expect("a workload")
}

fn simulated_error(options: &Options) -> String {
    simulate(&instance(2), &edf(), options, None, None).expect_err("refused").to_string()
}

#[test]
fn options_outside_their_ranges_are_refused_by_name() {
    let exact = Options::exact;
    for number in NUMBERS.into_iter().filter(|number| !(0.0..=1.0).contains(number)) {
        assert!(
            simulated_error(&Options { slowstart: number, ..exact() }).starts_with("option slowstart: found"),
            "{number}"
        );
    }
    for number in NUMBERS.into_iter().filter(|number| !(0.0..=3.0).contains(number)) {
        assert!(
            simulated_error(&Options { noise: number, ..exact() }).starts_with("option noise: found"),
            "{number}"
        );
        let jitter = slackline::sim::Options { jitter: number, ..slackline::sim::Options::exact() };
        assert!(
            simulated_error(&Options { sim: jitter, ..exact() }).starts_with("option jitter: found"),
            "{number}"
        );
    }
    assert!(
        simulated_error(&Options { locality_wait: Span(u64::MAX), ..exact() })
            .starts_with("option locality-wait: found")
    );
    let sim = slackline::sim::Options::exact;
    let never = Span(u64::MAX);
    let crash = |machine, at, back| Crash { machine: MachineId(machine), at: Time(at), back };
    let join = |slots, count, speed| {
        let group = Group { name: "n".into(), count, speed, slots, rack: None, first: MachineId(0) };
        Membership::Join { at: Time(1), group }
    };
    let hadoop = || Some(Profile::hadoop());
    for (sim, expected) in [
        (slackline_sim::Options { heartbeat: never, ..sim() }, "option heartbeat: found"),
        (
            slackline_sim::Options { crashes: Crashes::Script(vec![crash(2, 5, None)]), ..sim() },
            "option crash: found machine number 2",
        ),
        (
            slackline_sim::Options {
                crashes: Crashes::Script(vec![crash(0, 5, None), crash(0, 6, None)]),
                ..sim()
            },
            "option crash: found m-0 failing",
        ),
        (
            slackline_sim::Options { crashes: Crashes::Script(vec![crash(0, 5, Some(Time(5)))]), ..sim() },
            "option crash: found m-0 failing",
        ),
        (
            slackline_sim::Options { crashes: Crashes::Rate { between: Span(0), repair: Span(0) }, ..sim() },
            "option crash-rate: found 0",
        ),
        (
            slackline_sim::Options { crashes: Crashes::Rate { between: GRAIN, repair: never }, ..sim() },
            "option repair: found",
        ),
        (
            slackline_sim::Options { membership: vec![join(Slots::Generic(1), 1, 1.0)], ..sim() },
            "option membership: found",
        ),
        (
            slackline_sim::Options {
                crashes: Crashes::Script(vec![crash(0, 5, None)]),
                ..sim().with_profile(hadoop())
            },
            "option profile: found machines that fail",
        ),
    ] {
        let error = simulated_error(&Options { sim, ..exact() });
        assert!(error.starts_with(expected), "{error}");
    }
    let mut map_reduce = draft(1);
    map_reduce.machines = machines(Slots::MapReduce { map: 1, reduce: 1 });
    let map_reduce = Instance::new(&map_reduce).unwrap();
    let options = Options { sim: sim().with_profile(hadoop()), ..exact() };
    let error = simulate(&map_reduce, &edf(), &options, None, None).unwrap_err().to_string();
    assert!(error.starts_with("option profile: found map slots"), "{error}");
    let known = Options { known_releases: true, ..exact() };
    assert!(
        simulated_error(&Options { noise: 1.0, ..known.clone() })
            .starts_with("option known-releases: found noise")
    );
    for seconds in [f64::NAN, -1.0, f64::INFINITY] {
        let mut history = History::new();
        let phase = PhaseName { flow: "f0".into(), job: "j".into(), kind: PhaseKind::Map };
        history.insert(phase, "m".into(), Record { tasks: u64::MAX, seconds });
        let options = Options { knowledge: Knowledge::Learned(history), ..exact() };
        assert!(simulated_error(&options).starts_with("option history: found"), "{seconds}");
    }
    let woha = slackline::woha::Plan::new(1, Span(1), vec![0], Vec::new());
    let plans = |flow| BTreeMap::from([(FlowId(flow), woha.clone().unwrap())]);
    for flow in [0, u32::MAX] {
        assert!(
            simulated_error(&Options { plans: plans(flow), ..exact() }).starts_with("option plan-file: "),
            "{flow}"
        );
    }
}

#[test]
fn options_of_documents_are_refused_by_name() {
    let source =
        Source::new("w.toml", slackline::trace::write_workload(&draft(2), slackline::trace::Format::Toml));
    let none = WorkloadOptions::default;
    let deadlines = |number: f64| WorkloadOptions { deadlines: Some(number), ..none() };
    let slots = |slots: SlotOptions| WorkloadOptions { slots: Some(slots), ..none() };
    for (options, expected) in [
        (WorkloadOptions { machines: Some(0), ..none() }, "option machines: found 0"),
        (slots(SlotOptions::Total(0)), "option total-slots: found 0"),
        (WorkloadOptions { machines: Some(0), ..slots(SlotOptions::Total(7)) }, "option machines: found 0"),
        (deadlines(f64::NAN), "option deadlines: found NaN"),
        (deadlines(-1.0), "option deadlines: found -1"),
        (deadlines(f64::INFINITY), "option deadlines: found inf"),
    ] {
        let error = source.load(&options).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    for (machines, each) in [(u32::MAX, u32::MAX), (1, 0), (3, u32::MAX)] {
        let options = WorkloadOptions { machines: Some(machines), ..slots(SlotOptions::Generic(each)) };
        assert!(source.load(&options).is_err(), "{machines} machines of {each}");
    }
    assert!(source.load(&WorkloadOptions { speed: Some(f64::NAN), ..none() }).is_err());
    let mut loaded = source.load(&none()).unwrap();
    for grain in NUMBERS.into_iter().filter(|grain| !(1e-6..=9e10).contains(grain)) {
        assert!(
            loaded.prepare(Some(grain)).unwrap_err().to_string().starts_with("option grain: found"),
            "{grain}"
        );
    }
    loaded.prepare(Some(1e-6)).unwrap();
    let options = |change: &dyn Fn(&mut SimulationOptions)| {
        let mut options = SimulationOptions::default();
        change(&mut options);
        options.resolve(&loaded.instance, u64::MAX, &History::new())
    };
    for number in NUMBERS.into_iter().filter(|number| !(0.0..=1e11).contains(number)) {
        assert!(options(&|o| o.heartbeat = number).is_err(), "{number}");
        assert!(options(&|o| o.locality_wait = number).is_err(), "{number}");
        let crash = |at, away| vec![CrashAt { machine: "m-0".into(), at, away }];
        assert!(options(&|o| o.crashes = crash(number, None)).is_err(), "{number}");
        assert!(options(&|o| o.crashes = crash(1.0, Some(number))).is_err(), "{number}");
    }
}

#[test]
fn instances_that_grew_are_refused_wherever_they_are_scheduled() {
    let whole = instance(2);
    let mut shrunk = whole.clone();
    shrunk.retire(FlowId(0));
    let mut grown = whole.without_flows();
    grown.admit(whole.excerpt(FlowId(1)));
    let mut gone = whole.clone();
    (0..2).for_each(|machine| gone.cluster_mut().leave(MachineId(machine)));
    for odd in [shrunk, grown, gone] {
        assert!(
            simulate(&odd, &edf(), &Options::exact(), None, None)
                .unwrap_err()
                .to_string()
                .contains("Instance::new")
        );
        for policy in policies() {
            assert!(plan(&odd, &policy, slackline::plan::Options::default()).is_err(), "{policy:?}");
        }
        let compared = compare(&odd, &policies(), &Options::exact(), None, SideBySide::default());
        assert!(compared.iter().all(|one| one.result.is_err()));
        assert!(tune(&odd, &Request::new(Splits::of_total(4).unwrap(), Method::MkSfJr)).is_err());
    }
    let fine = prepare(&Instance::new(&wide(9e10)).unwrap(), Span(1)).unwrap_err().to_string();
    assert!(fine.contains("(a longer grain makes fewer)"), "{fine}");
}

/// A flow with much work.
fn wide(work: f64) -> Draft {
    let mut draft = draft(1);
    draft.flows[0].jobs[0].map = Some(TasksDraft::Work { work, tasks: None }.into());
    draft
}

#[test]
fn searches_along_odd_axes_end_with_an_answer_or_a_reason() {
    let (policy, options, conditions) = (edf(), Options::exact(), ["missed:0".parse().unwrap()]);
    let knobs = [Knob::Machines, Knob::Slots, Knob::MapSlots, Knob::Slowstart, Knob::Heartbeat];
    let ranges = [(5, 4), (0, 0), (0, 3), (u32::MAX, u32::MAX)];
    #[expect(clippy::reversed_empty_ranges, reason = "it is one of the odd values")]
    let empty = Values::Range(5..=4);
    let listed = [Vec::new(), vec![f64::NAN], vec![-1.0], vec![f64::MAX], vec![1.0, f64::INFINITY]];
    let values = ranges
        .into_iter()
        .map(|(a, b)| Values::Range(a..=b))
        .chain(listed.map(Values::Listed))
        .chain([empty]);
    for values in values {
        for knob in &knobs {
            let axis = Axis { knob: knob.clone(), values: values.clone() };
            let _ = (axis.to_be_tried(), axis.largest(), axis.smallest(), axis.to_string());
            for conditions in [&conditions[..], &[]] {
                let asked = Search { threads: 0, ..Search::new(&policy, conditions, &axis, &options) };
                if let Err(error) = search(&draft(1), &asked) {
                    assert!(!error.to_string().is_empty(), "{axis:?}");
                }
                assert!(search(&Draft::default(), &asked).is_err());
            }
        }
    }
    let axis = Axis::machines(0..=u32::MAX);
    assert_eq!(axis.to_be_tried(), 36);
    assert!(search(&draft(1), &Search::new(&policy, &[], &axis, &options)).is_err());
}

#[test]
fn ids_and_schedules_of_another_instance_are_no_reason_to_panic() {
    let (small, large) = (instance(1), instance(3));
    let run = simulate(&large, &edf(), &Options::exact(), None, None).unwrap();
    let foreign = &run.schedule;
    assert!(explain(&small, foreign, FlowId(7), None).is_none());
    assert!(explain(&small, foreign, FlowId(0), Some(JobId(1))).is_none());
    assert!(explain(&large, foreign, FlowId(0), Some(JobId(1))).is_none(), "a job of another flow");
    assert!(explain(&small, foreign, FlowId(0), None).is_some());
    assert_eq!(flow_times(&small, foreign).len(), 1);
    let _ = Explainer::of_sums(&small, foreign, Vec::new()).explain(FlowId(0), None);
    assert!(judge::check(&small, foreign).is_err());
    let refused = slackline::export::rows(&small, foreign, &mut slackline::export::Jobs::new(Vec::new()));
    assert!(refused.unwrap_err().to_string().contains("expected the schedule of this workload"));
    assert_eq!(slackline::report::flows::csv(&small, foreign).lines().count(), 2);
    assert!(certify(&small, foreign, &run.choices, &Options::exact()).is_err());
    for base in NUMBERS {
        let flowflex = Registry::standard().parse("flowflex").unwrap();
        let _ = augmented(&small, &flowflex, base);
    }
    let mut map_reduce = draft(3);
    map_reduce.machines = machines(Slots::MapReduce { map: 1, reduce: 1 });
    let map_reduce = prepare(&Instance::new(&map_reduce).unwrap(), GRAIN).unwrap().into_owned();
    for order in [vec![], vec![JobId(0); 3], vec![JobId(7), JobId(1), JobId(2)]] {
        assert!(in_order(&map_reduce, order, Mode::Strict).is_err());
    }
    assert!(curve(&map_reduce, &Request::new(Splits::of_total(4).unwrap(), Method::MkSfJr), 0).is_ok());
}

fn odd_number() -> impl Strategy<Value = f64> {
    prop_oneof![3 => prop::sample::select(&NUMBERS[..]), 6 => (0..9000u32).prop_map(|ms| f64::from(ms) / 100.0)]
}

fn odd_count() -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 1 => Just(1 << 31), 1 => Just(u32::MAX), 20 => 1..6u32]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![1 => odd_number(), 20 => (0..9000u32).prop_map(|ms| f64::from(ms) / 100.0)]
}

fn phase() -> impl Strategy<Value = Option<PhaseDraft>> {
    let tasks = prop_oneof![
        4 => (odd_count(), number()).prop_map(|(tasks, seconds)| TasksDraft::Uniform { tasks, seconds }),
        2 => number().prop_map(|work| TasksDraft::Work { work, tasks: None }),
        1 => prop::collection::vec(number(), 0..4).prop_map(TasksDraft::Each),
    ];
    let limits = (prop::option::of(odd_count()), prop::option::of(odd_count()));
    prop::option::weighted(0.8, (tasks, limits)).prop_map(|phase| {
        let (tasks, (min_slots, max_slots)) = phase?;
        Some(PhaseDraft { tasks, min_slots, max_slots, unknown: false })
    })
}

fn flow() -> impl Strategy<Value = FlowDraft> {
    let names = || prop::sample::select(vec!["a", "b", "c", "d", "e", "", "a b", "\n"]);
    let job = (names(), prop::option::of(names()), phase(), phase()).prop_map(|(id, after, map, reduce)| {
        let after = after.into_iter().map(str::to_owned).collect();
        JobDraft { id: id.to_owned(), after, map, reduce, ..JobDraft::default() }
    });
    let repeat = prop::option::weighted(0.1, (number(), odd_count()));
    let times = (number(), prop::option::of(number()), number(), repeat);
    (names(), prop::collection::vec(job, 1..3), times).prop_map(
        |(id, jobs, (release, deadline, weight, repeat))| {
            let repeat = repeat.map(|(every, times)| Repeat { every, times });
            FlowDraft { release, deadline, weight, repeat, ..FlowDraft::new(id, jobs) }
        },
    )
}

fn any_draft() -> impl Strategy<Value = Draft> {
    let slots = prop_oneof![
        odd_count().prop_map(Slots::Generic),
        (odd_count(), odd_count()).prop_map(|(map, reduce)| Slots::MapReduce { map, reduce })
    ];
    let speed = prop_oneof![1 => odd_number(), 9 => prop::sample::select(vec![0.5, 1.0, 2.0])];
    let machine = (odd_count(), speed, slots).prop_map(|(count, speed, slots)| MachineDraft {
        name: "m".into(),
        count,
        speed,
        slots,
        rack: None,
    });
    let metric = prop::sample::select(&Metric::ALL);
    (machine, metric, prop::collection::vec(flow(), 0..3)).prop_map(|(machine, metric, flows)| {
        let objective = Objective::new(metric, slackline::model::Combine::Sum);
        Draft { machines: vec![machine], objective, flows, ..Draft::default() }
    })
}

fn any_options() -> impl Strategy<Value = Options> {
    let shares =
        (prop::option::of(odd_number()), prop::option::of(odd_number()), prop::option::of(odd_number()));
    let spans = (prop::option::of(any::<u64>()), prop::option::of(0..20_000_000u64));
    (shares, spans, any::<u64>(), any::<bool>()).prop_map(
        |((slowstart, noise, jitter), (wait, heartbeat), seed, known)| {
            let sim = slackline::sim::Options {
                seed: slackline::model::Seed(seed),
                jitter: jitter.unwrap_or(0.0),
                heartbeat: Span(heartbeat.unwrap_or(0)),
                ..slackline::sim::Options::exact()
            };
            let options = Options {
                sim,
                slowstart: slowstart.unwrap_or(1.0),
                noise: noise.unwrap_or(0.0),
                locality_wait: Span(wait.unwrap_or(0)),
                ..Options::exact()
            };
            if known { Options { knowledge: Knowledge::Learned(History::new()), ..options } } else { options }
        },
    )
}

/// What is so large that it takes too long, and is no panic.
fn is_small(instance: &Instance) -> bool {
    let work: f64 = instance.flows().iter().map(|flow| flow.work.slot_seconds()).sum();
    instance.n_tasks() < 200
        && work < 5000.0
        && instance.cluster().n_machines() < 100
        && instance.flows().len() < 20
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn drafts_and_options_of_any_kind_are_refused_or_judged(
        draft in any_draft(),
        options in any_options(),
        k in any::<prop::sample::Index>(),
    ) {
        let policies = policies();
        let policy = &policies[k.index(policies.len())];
        let instance = match Instance::new(&draft) {
            Ok(instance) => instance,
            Err(invalid) => {
                prop_assert!(!invalid.to_string().is_empty());
                return Ok(());
            }
        };
        if !is_small(&instance) {
            let _ = prepare(&instance, GRAIN);
            return Ok(());
        }
        let _ = bounds(&instance);
        let prepared = prepare(&instance, GRAIN).unwrap();
        match plan(&instance, policy, slackline::plan::Options::default()) {
            Ok(Plan::Schedule(planned)) => {
                let of = if planned.schedule.tasks.is_empty() { &instance } else { &*prepared };
                prop_assert!(judge::check(of, &planned.schedule).is_ok());
            }
            Ok(Plan::Progress(_)) => {}
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        let run = match simulate(&instance, policy, &options, None, None) {
            Ok(run) => run,
            Err(error) => {
                let error = error.to_string();
                prop_assert!(!error.is_empty() && !error.starts_with("not feasible"), "{}", error);
                return Ok(());
            }
        };
        prop_assert!(judge::check(&prepared, &run.schedule).is_ok());
        for of in [&instance, &*prepared] {
            let explainer = Explainer::new(of, &run.schedule);
            for (flow, info) in of.flows().iter_enumerated() {
                prop_assert!(explainer.explain(flow, None).is_some());
                prop_assert!(info.jobs().all(|job| explainer.explain(flow, Some(job)).is_some()));
            }
            let mut out = slackline::export::Perfetto::new(Vec::new());
            slackline::export::rows(of, &run.schedule, &mut out).unwrap();
            let mut out = slackline::export::Jobs::new(Vec::new());
            slackline::export::rows(of, &run.schedule, &mut out).unwrap();
        }
    }
}
