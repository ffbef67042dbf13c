//! Laws of all generators, and the statistics of each.

use proptest::prelude::*;
use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, FlowDraft, PhaseDraft, TasksDraft};
use slackline_model::params::{ParamError, Settings};
use slackline_model::{Draft, Instance, Metric, Seed, SlotKind};

use super::{GenerateError, generator, generators};

type Pairs = &'static [(&'static str, &'static str)];

/// Settings that are quick, reach every branch, or sit at the ends of ranges.
const CASES: &[(&str, Pairs)] = &[
    ("flex-4.1", &[]),
    ("flex-4.1", &[("cost", "sla"), ("steps", "5"), ("height", "10")]),
    ("flex-4.1", &[("jobs", "1"), ("total-slots", "1"), ("total-work", "0.001")]),
    ("flex-4.1", &[("jobs", "50"), ("total-slots", "3"), ("slack", "0")]),
    ("flex-4.1", &[("jobs", "20"), ("total-slots", "25"), ("slack", "0"), ("small", "0.5")]),
    ("flex-4.1", &[("small", "1"), ("slack", "1"), ("deadline-span", "0")]),
    ("flex-4.1", &[("small", "0"), ("slack", "0"), ("total-work", "20")]),
    ("flex-4.1", &[("task-work", "7.5")]),
    ("flowflex-5.1", &[]),
    ("flowflex-5.1", &[("big", "1"), ("tall", "0"), ("wide", "1")]),
    ("flowflex-5.1", &[("cost", "sla"), ("increments", "0..1")]),
    ("flowflex-5.1", &[("total-slots", "1"), ("jobs", "1"), ("flows", "1"), ("extra", "0")]),
    ("flowflex-5.1", &[("edge", "0"), ("short", "0"), ("weights", "0")]),
    ("flowflex-5.1", &[("edge", "1"), ("flows", "30"), ("big-factor", "0")]),
    ("flowflex-5.2", &[]),
    ("flowflex-5.2", &[("gap", "45"), ("map-only", "0"), ("maps", "1")]),
    ("flowflex-5.2", &[("flows", "3..4"), ("map-only", "1"), ("edge", "1")]),
    ("woha-fig7", &[]),
    ("woha-fig7", &[("share", "0"), ("layers", "1"), ("workflows", "1")]),
    ("woha-fig7", &[("jobs", "1"), ("fan-in", "100"), ("deadline-step", "0")]),
    ("woha-fig7", &[("layers", "33"), ("reduces-max", "0"), ("fan-out", "1")]),
    (
        "woha-fig7",
        &[("maps", "1"), ("reduces", "0.001..2"), ("map-seconds", "5"), ("reduce-seconds", "1..9")],
    ),
    ("woha-yahoo", &[]),
    ("woha-yahoo", &[("single-jobs", "drop"), ("gap", "0"), ("deadlines", "0")]),
    ("woha-yahoo", &[("workflows", "4"), ("jobs", "4"), ("single", "4"), ("largest", "1")]),
    ("woha-yahoo", &[("workflows", "4"), ("jobs", "12"), ("single", "0"), ("largest", "3")]),
    ("purdue", &[("spread", "normal")]),
    ("purdue", &[("spread", "normal"), ("jobs", "10"), ("map-slots", "2"), ("reduce-slots", "2")]),
    ("facebook-table3", &[]),
    ("facebook-table3", &[("jobs", "7"), ("reduces", "0")]),
    ("facebook-table3", &[("jobs", "7"), ("first-bin", "3..9"), ("durations", "each")]),
    ("dmrs", &[]),
    ("dmrs", &[("mix", "b"), ("benchmark", "sort"), ("weights", "integer")]),
    ("dmrs", &[("mix", "c"), ("benchmark", "terasort"), ("groups", "20")]),
    ("dmrs", &[("mix", "elephants"), ("elephants", "18"), ("fast", "0"), ("map-rate", "0")]),
    ("dmrs", &[("mix", "elephants"), ("elephants", "0"), ("slow", "0"), ("speed", "0.5")]),
    ("mixed", &[]),
    ("mixed", &[("arrivals", "bursts"), ("shape", "fork"), ("slots", "map-reduce"), ("speeds", "mixed")]),
    ("mixed", &[("arrivals", "together"), ("shape", "chain"), ("jobs", "8..20"), ("weights", "0.1..10")]),
    ("mixed", &[("elephants", "2"), ("shape", "layers"), ("total-slots", "3"), ("slots", "map-reduce")]),
    ("mixed", &[("flows", "1"), ("shape", "single"), ("total-slots", "1"), ("map-only", "1")]),
    ("facebook-day", &[("jobs", "200"), ("maps", "50000")]),
    ("facebook-day", &[("jobs", "50"), ("maps", "5000"), ("durations", "each"), ("machines", "2")]),
    ("facebook-day", &[("jobs", "1"), ("maps", "1"), ("map-only", "1"), ("gap-cv", "0")]),
    ("facebook-day", &[("jobs", "5"), ("maps", "9"), ("one-map", "1"), ("small", "0"), ("large", "0")]),
    ("facebook-day", &[("jobs", "20"), ("maps", "900"), ("one-map", "0"), ("small", "0"), ("large", "1")]),
];

fn generate(name: &str, settings: &[(&str, &str)], seed: u64) -> Draft {
    generator(name).and_then(|g| g.generate(settings, Seed(seed))).unwrap()
}

fn error(name: &str, settings: &[(&str, &str)]) -> String {
    generator(name).and_then(|g| g.generate(settings, Seed(0))).unwrap_err().to_string()
}

fn instance(draft: &Draft) -> Instance {
    Instance::new(draft).unwrap()
}

/// Tasks and seconds of a phase of equal tasks.
fn uniform(phase: Option<&PhaseDraft>) -> (u32, f64) {
    match phase.map(|p| &p.tasks) {
        Some(TasksDraft::Uniform { tasks, seconds }) => (*tasks, *seconds),
        None => (0, 0.0),
        other => panic!("{other:?}"),
    }
}

fn work_of(flow: &FlowDraft) -> f64 {
    let each = flow.jobs.iter().map(|job| match job.map.as_ref().map(|p| &p.tasks) {
        Some(TasksDraft::Work { work, .. }) => *work,
        other => panic!("{other:?}"),
    });
    each.sum()
}

fn within(value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{value} is not in {low}..={high}");
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), v| (n + 1.0, sum + v));
    sum / n
}

/// Share of the values that are true.
fn share(values: impl Iterator<Item = bool>) -> f64 {
    mean(values.map(|v| f64::from(u8::from(v))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_draft_is_an_instance_and_follows_from_its_seed(case in 0..CASES.len(), seed: u64) {
        let (name, settings) = CASES[case];
        let draft = generate(name, settings, seed);
        let built = Instance::new(&draft);
        prop_assert!(built.is_ok(), "{name} {settings:?}: {}", built.unwrap_err());
        prop_assert_eq!(&draft, &generate(name, settings, seed));
    }

    #[test]
    fn any_settings_are_taken_or_refused(name in 0..generators().len(), param in 0..20usize, text in "[0-9a-z.\\-]{0,6}") {
        let generator = &generators()[name];
        let param = &generator.params[param % generator.params.len()];
        let parsed = Settings::parse(generator.params, [(param.name, text.as_str())]);
        if let Err(error) = parsed {
            prop_assert!(error.to_string().contains(&param.expected()), "{}", error);
        }
    }
}

#[test]
fn another_seed_is_another_draft() {
    for (name, settings) in CASES {
        let fixed = settings.iter().any(|&s| s == ("jobs", "4") || s == ("jobs", "1"));
        let drafts: Vec<Draft> = (0..3).map(|seed| generate(name, settings, seed)).collect();
        assert!(fixed || (drafts[0] != drafts[1] && drafts[1] != drafts[2]), "{name} {settings:?}");
    }
}

#[test]
fn defaults_and_help_are_in_order() {
    for (i, generator) in generators().iter().enumerate() {
        Settings::parse(generator.params, []).unwrap();
        assert!(generators()[..i].iter().all(|g| g.name != generator.name));
        let plain = |text: &str| !text.is_empty() && !text.ends_with('.') && text.len() < 100;
        assert!(plain(generator.summary), "{}", generator.summary);
        assert!(CASES.iter().any(|case| case.0 == generator.name), "{} has no case", generator.name);
        for (k, param) in generator.params.iter().enumerate() {
            let written = Settings::parse(generator.params, [(param.name, param.default)]);
            assert!(written.is_ok(), "{} {}", generator.name, param.name);
            assert!(generator.params[..k].iter().all(|p| p.name != param.name), "{}", param.name);
            assert!(plain(param.help), "{}", param.help);
        }
    }
}

#[test]
fn errors_say_what_is_expected() {
    let cases: &[(&str, Pairs, &str)] = &[
        ("flex", &[], "found generator \"flex\", expected one of flex-4.1, flowflex-5.1, "),
        (
            "purdue",
            &[("job", "3")],
            "purdue: found parameter \"job\", expected one of jobs, spread, machines, ",
        ),
        ("purdue", &[("jobs", "0")], "purdue: found jobs=0, expected a whole number from 1 to 30"),
        ("purdue", &[("jobs", "31")], "expected a whole number from 1 to 30"),
        ("purdue", &[("spread", "wide")], "expected one of mean, normal"),
        ("purdue", &[("jobs", "3"), ("jobs", "3")], "purdue: found parameter jobs a second time"),
        ("flex-4.1", &[("small", "NaN")], "found small=NaN, expected a number from 0 to 1"),
        ("flex-4.1", &[("slack", "-0.1")], "expected a number from 0 to 1"),
        ("flex-4.1", &[("ratio", "inf")], "expected a number from 1 to 1000000"),
        (
            "flowflex-5.1",
            &[("flows", "9..5")],
            "expected a whole number or a range such as 5..20, from 1 to ",
        ),
        (
            "flowflex-5.1",
            &[("short", "1..NaN")],
            "expected seconds, a duration or a range such as 10s..1m, from 0 to ",
        ),
        ("dmrs", &[("benchmark", "grep")], "expected auto or one of wordcount, sort, terasort"),
        ("dmrs", &[("fast", "0"), ("slow", "0")], "dmrs: found fast = 0 and slow = 0, expected at least one"),
        ("woha-fig7", &[("workflows", "9")], "found a relative deadline of 0 s for the last workflow"),
        (
            "woha-yahoo",
            &[("jobs", "90")],
            "found 90 jobs in 61 workflows, 15 of one job and one of 12, expected",
        ),
        ("woha-yahoo", &[("jobs", "568")], "expected counts that fit"),
        ("woha-yahoo", &[("single", "62")], "expected counts that fit"),
        ("facebook-day", &[("maps", "9")], "found 9 maps for 24000 jobs, expected at least one map per job"),
        (
            "facebook-day",
            &[("one-map", "0.9")],
            "found one-map = 0.9, small = 0.13, large = 0.0115, expected",
        ),
    ];
    for (name, settings, expected) in cases {
        let found = error(name, settings);
        assert!(found.contains(expected), "{found}");
    }
    let twice = generator("purdue").unwrap().generate(&[("jobs", "1"), ("jobs", "2")], Seed(0));
    assert!(matches!(
        twice,
        Err(GenerateError::Param { problem: ParamError::Repeated { name: "jobs" }, .. })
    ));
}

#[test]
fn flex_has_its_total_minima_and_costs() {
    let mut minima = Vec::new();
    for seed in 0..60 {
        let draft = generate("flex-4.1", &[], seed);
        let mut works: Vec<f64> = draft.flows.iter().map(work_of).collect();
        within(works.iter().sum(), 999.999, 1000.001);
        works.sort_by(f64::total_cmp);
        // Eight small jobs, each far below the two large ones together.
        assert!(works[7] < works[8] + works[9]);
        within(works[8] + works[9], 400.0, 950.0);
        let slots: Vec<u32> = draft.flows.iter().map(|f| f.jobs[0].min_slots.map.unwrap()).collect();
        assert!(slots.iter().all(|&m| m >= 1) && slots.iter().sum::<u32>() <= 100);
        minima.extend(slots);
        for flow in &draft.flows {
            within(flow.deadline.unwrap(), 0.0, 15.0);
            within(flow.weight, 0.0, 1.0);
        }
        assert_eq!(instance(&draft).cluster().slots(SlotKind::Any), 100);
    }
    within(mean(minima.iter().map(|&m| f64::from(m))), 2.3, 2.8);
    let full = generate("flex-4.1", &[("slack", "0"), ("jobs", "20"), ("total-slots", "20")], 1);
    assert!(full.flows.iter().all(|f| f.jobs[0].min_slots.map == Some(1)));
    let coarse = generate("flex-4.1", &[("task-work", "1000"), ("slack", "1")], 1);
    assert!(coarse.flows.iter().all(|f| f.jobs[0].max_slots.map == Some(1)));
    let sla = generate("flex-4.1", &[("cost", "sla")], 1);
    assert_eq!(sla.objective.metric, Metric::Sla);
    assert!(sla.flows.iter().all(|f| matches!(&f.cost, Some(CostDraft::Steps(s)) if s.len() == 3)));
}

/// The level of every job: the longest chain before it.
fn levels(flow: &FlowDraft) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::new();
    for job in &flow.jobs {
        let at = |name: &String| flow.jobs.iter().position(|j| j.id == *name).unwrap();
        levels.push(job.after.iter().map(|a| levels[at(a)] + 1).max().unwrap_or(0));
    }
    levels
}

#[test]
fn flowflex_has_wide_flows_chains_ties_and_deadlines_that_cannot_all_be_met() {
    let (mut wide, mut chains, mut tied, mut overfull) = (0, 0, 0, 0);
    let mut n_flows = Vec::new();
    for seed in 0..100 {
        let draft = generate("flowflex-5.1", &[], seed);
        n_flows.push(draft.flows.len() as f64);
        for flow in &draft.flows {
            let levels = levels(flow);
            let width = |l: usize| levels.iter().filter(|&&k| k == l).count();
            wide += usize::from((0..levels.len()).any(|l| width(l) >= 4));
            chains += usize::from(levels.len() >= 3 && (0..levels.len()).all(|l| width(l) == 1));
        }
        tied += usize::from((1..draft.flows.len()).any(|i| draft.flows[i].weight == draft.flows[0].weight));
        let instance = instance(&draft);
        let mut due: Vec<(f64, f64)> = Vec::new();
        for flow in instance.flows().iter() {
            assert!(flow.deadline.unwrap().seconds() >= flow.alone - 1e-5);
            due.push((flow.deadline.unwrap().seconds(), flow.work.slot_seconds()));
        }
        due.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut before = 0.0;
        overfull += usize::from(due.iter().any(|&(deadline, work)| {
            before += work;
            before > 25.0 * deadline
        }));
    }
    within(mean(n_flows.into_iter()), 11.0, 14.0);
    assert!(wide > 20, "{wide}");
    assert!(chains > 20, "{chains}");
    assert!(tied > 50, "{tied}");
    assert!((5..100).contains(&overfull), "{overfull}");
}

#[test]
fn flowflex_steps_are_possible_and_rise() {
    let draft = generate("flowflex-5.1", &[("cost", "sla")], 4);
    let instance = instance(&draft);
    let mut counts = std::collections::BTreeSet::new();
    for (flow, built) in draft.flows.iter().zip(instance.flows().iter()) {
        let Some(CostDraft::Steps(steps)) = &flow.cost else { panic!("no steps") };
        counts.insert(steps.len());
        assert!(steps[0].0 >= built.alone - 1e-5);
        assert!(steps.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
    }
    assert!(counts.len() > 1 && counts.iter().all(|n| (1..=5).contains(n)));
}

#[test]
fn gridmix_arrives_at_once_or_at_random() {
    let at_once = generate("flowflex-5.2", &[], 1);
    assert!(at_once.flows.iter().all(|f| f.release == 0.0));
    let spread = generate("flowflex-5.2", &[("gap", "30"), ("flows", "500")], 1);
    within(spread.flows[499].release, 12_000.0, 18_000.0);
    let jobs = spread.flows.iter().flat_map(|f| &f.jobs);
    within(share(jobs.clone().map(|j| j.reduce.is_none())), 0.15, 0.25);
    within(mean(jobs.map(|j| f64::from(uniform(j.map.as_ref()).0))), 50.0, 80.0);
}

#[test]
fn woha_workflows_are_alike_and_take_their_share() {
    let draft = generate("woha-fig7", &[], 5);
    let plain: Vec<_> = draft.flows.iter().map(|f| (f.release, f.deadline)).collect();
    assert_eq!(plain, [(0.0, Some(4800.0)), (300.0, Some(4500.0)), (600.0, Some(4200.0))]);
    assert_eq!(draft.flows[0].jobs.len(), 33);
    assert!(draft.flows.iter().all(|f| f.jobs == draft.flows[0].jobs));
    assert_eq!(levels(&draft.flows[0]).iter().max(), Some(&5));
    let instance = instance(&draft);
    instance.flows().iter().for_each(|f| within(f.alone, 1439.9, 1440.1));
    assert_eq!(
        (instance.cluster().slots(SlotKind::Map), instance.cluster().slots(SlotKind::Reduce)),
        (64, 32)
    );
}

#[test]
fn woha_jobs_have_the_described_statistics() {
    let drafts: Vec<Draft> = (0..20).map(|seed| generate("woha-yahoo", &[], seed)).collect();
    let jobs = drafts.iter().flat_map(|d| &d.flows).flat_map(|f| &f.jobs);
    let maps = || jobs.clone().map(|j| uniform(j.map.as_ref()));
    let reduces = || jobs.clone().map(|j| uniform(j.reduce.as_ref()));
    within(share(maps().map(|(n, _)| n > 100)), 0.27, 0.33);
    within(share(maps().map(|(_, s)| (10.0..=100.0).contains(&s))), 0.87, 0.93);
    within(share(reduces().map(|(n, _)| n < 10)), 0.6, 0.7);
    let long = |limit: f64| share(reduces().filter(|r| r.0 > 0).map(|(_, s)| s > limit));
    within(long(100.0), 0.5, 0.6);
    within(long(999.0), 0.07, 0.13);
}

#[test]
fn woha_yahoo_has_the_counts_of_the_trace() {
    for seed in 0..10 {
        let all = generate("woha-yahoo", &[], seed);
        let sizes: Vec<usize> = all.flows.iter().map(|f| f.jobs.len()).collect();
        assert_eq!((sizes.len(), sizes.iter().sum::<usize>()), (61, 180));
        assert_eq!(sizes.iter().filter(|&&n| n == 1).count(), 15);
        assert_eq!(sizes.iter().max(), Some(&12));
        let kept = generate("woha-yahoo", &[("single-jobs", "drop")], seed);
        let several: Vec<_> = all.flows.iter().filter(|f| f.jobs.len() > 1).collect();
        assert!(kept.flows.iter().eq(several), "dropping single jobs moved the others");
    }
}

#[test]
fn purdue_is_the_papers_tables() {
    let draft = generate("purdue", &[], 0);
    assert_eq!(draft, generate("purdue", &[], 1), "the averages are not random");
    let row = |k: usize| {
        let flow = &draft.flows[k - 1];
        let job = &flow.jobs[0];
        (flow.id.as_str(), job.id.as_str(), uniform(job.map.as_ref()), uniform(job.reduce.as_ref()))
    };
    assert_eq!(row(1), ("J1", "wordcount", (160, 22.0), (100, 11.0)));
    assert_eq!(row(12), ("J12", "inverted-index", (640, 32.0), (100, 23.0)));
    assert_eq!(row(18), ("J18", "grep", (480, 9.0), (120, 11.0)));
    assert_eq!(row(30), ("J30", "sequence-count", (320, 38.0), (150, 21.0)));
    assert_eq!(draft.machines[0].count, 19);
    assert_eq!(draft.machines[0].slots, Slots::MapReduce { map: 3, reduce: 1 });
    let ten = generate("purdue", &[("jobs", "10")], 0);
    assert_eq!(ten.flows, draft.flows[..10]);
    let spread = generate("purdue", &[("spread", "normal")], 0);
    let TasksDraft::Each(maps) = &spread.flows[3].jobs[0].map.as_ref().unwrap().tasks else { panic!() };
    assert_eq!(maps.len(), 640);
    within(mean(maps.iter().copied()), 31.0, 33.0);
    within(mean(maps.iter().map(|s| (s - 32.0) * (s - 32.0))).sqrt(), 2.5, 3.5);
}

#[test]
fn facebook_table3_has_the_papers_bins() {
    let counts = |jobs: &str| {
        let draft = generate("facebook-table3", &[("jobs", jobs)], 2);
        let maps: Vec<u32> = draft.flows.iter().map(|f| uniform(f.jobs[0].map.as_ref()).0).collect();
        let over = |limit: u32| maps.iter().filter(|&&m| m > limit).count();
        let bin = |a, b| over(a) - over(b);
        (maps.len(), bin(50, 100), bin(100, 200), bin(200, 400), bin(400, 800), bin(800, 3200), over(3200))
    };
    assert_eq!(counts("50"), (50, 4, 4, 3, 2, 2, 1));
    assert_eq!(counts("150"), (150, 12, 12, 9, 6, 6, 3));
    let draft = generate("facebook-table3", &[("jobs", "5000")], 2);
    let mut seconds = Vec::new();
    for flow in &draft.flows {
        let (maps, each) = uniform(flow.jobs[0].map.as_ref());
        let (reduces, _) = uniform(flow.jobs[0].reduce.as_ref());
        within(f64::from(reduces), 1.0, (0.25 * f64::from(maps)).round().max(1.0));
        seconds.push(each);
    }
    seconds.sort_by(f64::total_cmp);
    within(seconds[2500], 19.0, 23.0);
}

#[test]
fn facebook_table3_draws_each_task_and_the_first_bin_as_asked() {
    let draft = generate("facebook-table3", &[("durations", "each"), ("first-bin", "7")], 2);
    let tasks = |phase: &Option<PhaseDraft>| match &phase.as_ref().unwrap().tasks {
        TasksDraft::Each(list) => list.clone(),
        other => panic!("{other:?}"),
    };
    let maps: Vec<Vec<f64>> = draft.flows.iter().map(|f| tasks(&f.jobs[0].map)).collect();
    assert_eq!(maps.iter().filter(|list| list.len() == 7).count(), 29);
    assert!(maps.iter().all(|list| list[0] != list[1]));
    assert!(draft.flows.iter().all(|f| !tasks(&f.jobs[0].reduce).is_empty()));
}

#[test]
fn dmrs_has_the_papers_mixes() {
    for (mix, jobs, maps, reduces) in [("a", 20, 320, 20), ("b", 20, 320, 20), ("c", 18, 288, 18)] {
        let draft = generate("dmrs", &[("mix", mix)], 3);
        let count = |phase: fn(&FlowDraft) -> (u32, f64)| draft.flows.iter().map(|f| phase(f).0).sum::<u32>();
        assert_eq!(draft.flows.len(), jobs);
        assert_eq!(count(|f| uniform(f.jobs[0].map.as_ref())), maps);
        assert_eq!(count(|f| uniform(f.jobs[0].reduce.as_ref())), reduces);
        assert_eq!(draft.flows.iter().filter(|f| f.release == 60.0).count(), jobs / 2);
        draft.flows.iter().for_each(|f| within(f.weight, 1.0, 5.0));
    }
    let draft = generate("dmrs", &[("mix", "elephants"), ("elephants", "6")], 3);
    let elephants = draft.flows.iter().filter(|f| uniform(f.jobs[0].map.as_ref()).0 == 32);
    assert_eq!(elephants.count(), 6);
    let (reduces, seconds) = uniform(draft.flows[0].jobs[0].reduce.as_ref());
    assert!(reduces == 4 && (seconds == 192.0 || seconds == 768.0));
    let instance = instance(&draft);
    assert_eq!((instance.cluster().n_machines(), instance.cluster().capacity(SlotKind::Any)), (12, 54.0));
}

#[test]
fn facebook_day_has_the_traces_shape() {
    let draft = generate("facebook-day", &[], 1);
    let maps: Vec<u64> = draft.flows.iter().map(|f| u64::from(uniform(f.jobs[0].map.as_ref()).0)).collect();
    assert_eq!((maps.len(), maps.iter().sum::<u64>()), (24_000, 16_000_000));
    within(share(maps.iter().map(|&m| m == 1)), 0.58, 0.62);
    within(share(maps.iter().map(|&m| m <= 15)), 0.7, 0.75);
    within(*maps.iter().max().unwrap() as f64, 150_000.0, 200_000.0);
    within(maps.iter().filter(|&&m| m >= 14_901).sum::<u64>() as f64, 0.55 * 16e6, 0.67 * 16e6);
    within(share(draft.flows.iter().map(|f| f.jobs[0].reduce.is_none())), 0.33, 0.35);

    let releases: Vec<f64> = draft.flows.iter().map(|f| f.release).collect();
    let gaps: Vec<f64> = releases.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|&g| g >= 0.0) && releases[23_999] < 86_400.0);
    let gap = mean(gaps.iter().copied());
    within(gap, 3.55, 3.65);
    within(mean(gaps.iter().map(|g| (g - gap) * (g - gap))).sqrt() / gap, 1.2, 1.6);

    let instance = instance(&draft);
    assert_eq!(instance.cluster().n_machines(), 3000);
    for (slot_kind, most) in [(SlotKind::Map, 0.801), (SlotKind::Reduce, 0.801)] {
        let work: f64 = instance
            .phases()
            .iter_enumerated()
            .filter(|&(phase, _)| instance.slot_kind_of(phase) == slot_kind)
            .map(|(_, phase)| phase.work().slot_seconds())
            .sum();
        within(work / (f64::from(instance.cluster().slots(slot_kind)) * 86_400.0), 0.5, most);
    }
}

#[test]
fn facebook_day_keeps_the_count_of_maps_at_any_scale() {
    for (jobs, maps) in [("1", "7"), ("3", "3"), ("100", "101"), ("240", "160000"), ("10", "16000000")] {
        let draft = generate("facebook-day", &[("jobs", jobs), ("maps", maps)], 9);
        let sum: u32 = draft.flows.iter().map(|f| uniform(f.jobs[0].map.as_ref()).0).sum();
        assert_eq!((draft.flows.len().to_string(), sum.to_string()), (jobs.to_owned(), maps.to_owned()));
    }
}

#[test]
fn facebook_day_draws_each_task() {
    let draft = generate("facebook-day", &[("jobs", "50"), ("maps", "20000"), ("durations", "each")], 1);
    let mut all: Vec<f64> = Vec::new();
    for flow in &draft.flows {
        let TasksDraft::Each(list) = &flow.jobs[0].map.as_ref().unwrap().tasks else { panic!() };
        all.extend(list);
    }
    assert_eq!(all.len(), 20_000);
    within(mean(all.iter().copied()), 70.0, 100.0);
    all.sort_by(f64::total_cmp);
    assert!(share(all.windows(2).map(|w| w[0] == w[1])) < 0.001);
}

/// The draft that a document of ours gives.
fn read(name: &str, document: &str) -> Draft {
    let options = crate::ImportOptions::default();
    crate::read_workload(name, document.as_bytes(), None, &options).unwrap().draft
}

#[test]
fn purdue_example_is_what_is_generated() {
    let example = include_str!("../../../../examples/purdue-30.toml");
    assert_eq!(read("purdue-30.toml", example), generate("purdue", &[], 0));
}

#[test]
fn generated_documents_are_read_back_the_same() {
    for (name, settings) in CASES {
        let draft = generate(name, settings, 11);
        let document = crate::write_workload(&draft, crate::Format::Toml);
        assert_eq!(read("generated.toml", &document), draft, "{name} {settings:?}");
    }
}

/// Work over the capacity of the slots until the last mean gap has passed, of the busiest kind of slot.
fn offered(draft: &Draft, seconds: f64) -> f64 {
    let instance = instance(draft);
    let cluster = instance.cluster();
    let of = |slot_kind: SlotKind| {
        let its = (0..instance.phases().len()).map(slackline_model::PhaseId::from);
        let its = its.filter(|&phase| instance.slot_kind_of(phase) == slot_kind);
        its.map(|phase| instance.phase(phase).work().slot_seconds()).sum::<f64>()
            / (cluster.capacity(slot_kind) * seconds)
    };
    cluster.slot_kinds().iter().map(|&slot_kind| of(slot_kind)).fold(0.0, f64::max)
}

#[test]
fn mixed_flows_arrive_at_the_offered_load() {
    let base: Pairs = &[("flows", "4000"), ("load", "0.9")];
    let more: [Pairs; 3] =
        [&[], &[("slots", "map-reduce"), ("speeds", "mixed")], &[("arrivals", "bursts"), ("burst", "4")]];
    for settings in more {
        let draft = generate("mixed", &[base, settings].concat(), 3);
        within(offered(&draft, draft.flows.last().unwrap().release), 0.85, 0.96);
        let at_once = draft.flows.windows(2).filter(|pair| pair[0].release == pair[1].release).count();
        let expected = if settings.iter().any(|&(name, _)| name == "burst") { 0.75 } else { 0.0 };
        within(at_once as f64 / 4000.0, expected - 0.03, expected + 0.03);
    }
}

#[test]
fn elephants_have_their_part_of_the_work_and_come_early() {
    let draft = generate("mixed", &[("elephants", "2"), ("elephant-share", "0.4"), ("map-only", "1")], 5);
    let work = |flow: &FlowDraft| -> f64 {
        flow.jobs
            .iter()
            .map(|job| uniform(job.map.as_ref()))
            .map(|(tasks, each)| f64::from(tasks) * each)
            .sum()
    };
    let all: f64 = draft.flows.iter().map(work).sum();
    let elephants: Vec<&FlowDraft> =
        draft.flows.iter().filter(|flow| flow.id.starts_with("elephant")).collect();
    assert_eq!(elephants.len(), 2);
    within(elephants.iter().map(|flow| work(flow)).sum::<f64>() / all, 0.3, 0.5);
    let last = draft.flows.last().unwrap().release;
    assert!(elephants.iter().all(|flow| flow.release <= last / 2.0));
}

#[test]
fn shapes_are_what_they_are_called() {
    let of = |shape: &str| generate("mixed", &[("shape", shape), ("jobs", "5")], 1).flows;
    assert!(of("single").iter().all(|flow| flow.jobs.len() == 1));
    assert!(of("chain").iter().all(|flow| flow.jobs.iter().skip(1).all(|job| job.after.len() == 1)));
    for flow in of("fork") {
        let widths: Vec<usize> = flow.jobs.iter().map(|job| job.after.len()).collect();
        assert_eq!(widths, [0, 1, 1, 1, 3]);
    }
    // A decade of maps is as likely as the next.
    let maps = generate("mixed", &[("maps", "1..99"), ("flows", "2000"), ("shape", "single")], 2);
    let few = share(maps.flows.iter().map(|flow| uniform(flow.jobs[0].map.as_ref()).0 < 10));
    within(few, 0.46, 0.54);
}
