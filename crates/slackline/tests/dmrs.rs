//! DMRS through the simulator: what is planned is what runs; mixed speeds, crashes, heartbeats, wrong
//! estimates; speeds learned in one run serve the next; the baselines of the paper.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use slackline::policy::{Action, Ask, Config, Event, Grant, Learning, Policy, Style, View};
use slackline::sim::{Crash, Crashes, Options, Sim, noise};
use slackline_algo::baseline::{Fifo, ShareUnit};
use slackline_algo::dmrs::{self, Dmrs, OnlineConfig, Variant};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, TasksDraft};
use slackline_model::schedule::{Clock, FlowResult, FlowRow, Outcome};
use slackline_model::{
    Combine, Draft, History, Instance, MachineId, Metric, Objective, PhaseId, Schedule, Seed, SlotKind, Span,
    Time,
};
use slackline_trace::generate;

/// The paper's workload, completion times as objective.
fn paper(options: &[(&str, &str)], seed: u64) -> Instance {
    let mut draft = generate::generator("dmrs").unwrap().generate(options, Seed(seed)).unwrap();
    draft.objective = Objective::new(Metric::Completion, Combine::Sum);
    Instance::new(&draft).unwrap().cut(Span(10_000_000))
}

/// What a policy may know.
enum Known<'a> {
    /// The means and speeds, off by this deviation.
    Means(f64),
    Exact,
    /// Each task, but speeds that belong to other machines.
    WrongSpeeds,
    /// Nothing but finished tasks.
    Learned(&'a History),
}

/// A run with the driver's audit on, judged.
fn run(instance: &Instance, policy: &mut dyn Policy, options: &Options, sigma: f64) -> Schedule {
    run_knowing(instance, policy, options, (&Known::Means(sigma), 1.0)).0
}

/// A policy, which may be made to believe the speeds of the groups the wrong way round.
struct Misled<'a> {
    policy: &'a mut dyn Policy,
    backwards: bool,
}

impl Policy for Misled<'_> {
    fn name(&self) -> &str {
        self.policy.name()
    }

    fn style(&self) -> Style {
        self.policy.style()
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        let mut estimates = view.estimates.clone();
        if self.backwards {
            estimates.speed.raw.reverse();
        }
        self.policy.on_events(events, &View { estimates: &estimates, ..*view }, out);
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.policy.next(ask, view)
    }
}

/// The same with what is known at its end.
fn run_knowing(
    instance: &Instance,
    policy: &mut dyn Policy,
    options: &Options,
    (known, slowstart): (&Known<'_>, f64),
) -> (Schedule, Option<History>) {
    let clock = if options.jitter > 0.0 { Clock::Measured } else { Clock::Exact };
    let mut config = Config { slowstart, ..Config::plain().audited() };
    let mut policy = Misled { policy, backwards: matches!(known, Known::WrongSpeeds) };
    match known {
        Known::Means(sigma) => {
            let (sigma, seed) = (*sigma, options.seed);
            config.believe = Box::new(move |live, phase| noise::distorted(live, phase, sigma, seed));
        }
        Known::Exact | Known::WrongSpeeds => config.each = true,
        Known::Learned(history) => config.learning = Some(Learning::new(instance.cluster(), history)),
    }
    let mut engine = Sim::new(instance, options.clone());
    let mut run = slackline::policy::run(instance, &mut policy, &mut engine, config);
    let history = run.figures.history.take();
    let schedule = run.schedule(instance, policy.name(), clock);
    slackline::judge::check(instance, &schedule).unwrap();
    (schedule, history)
}

fn completed(instance: &Instance, variant: Variant, options: &Options, sigma: f64) -> f64 {
    let config = OnlineConfig { variant, ..OnlineConfig::default() };
    let mut policy = Dmrs::new(instance.cluster(), config);
    let schedule = run(instance, &mut policy, options, sigma);
    assert!(
        schedule.flows.iter().all(|flow| flow.status == FlowResult::Done),
        "{variant:?} left work undone"
    );
    schedule.cost.unwrap()
}

const VARIANTS: [Variant; 3] = [Variant::Full, Variant::Identical, Variant::MapOnly];

fn phase(seconds: &[f64]) -> Option<PhaseDraft> {
    (!seconds.is_empty()).then(|| TasksDraft::Each(seconds.to_vec()).into())
}

/// Uneven tasks on machines of several slots and three speeds, with releases, chains and caps.
fn uneven(seed: u64, slots: &dyn Fn(u32) -> Slots, chains: bool) -> Instance {
    Instance::new(&uneven_draft(seed, slots, chains)).unwrap()
}

fn uneven_draft(seed: u64, slots: &dyn Fn(u32) -> Slots, chains: bool) -> Draft {
    let mut x = seed;
    let mut draw = |n: u32| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((x >> 33) % u64::from(n)) as u32
    };
    // In the order of their names, by which the policy numbers slots of mixed speed; plans number them as
    // listed.
    let machines = [("a-slow", 3, 1.0), ("b-fast", 2, 8.0), ("c-odd", 1, 2.7)];
    let machines = machines.into_iter().map(|(name, count, speed)| MachineDraft {
        name: name.into(),
        count,
        speed,
        slots: slots(1 + count % 2),
        rack: None,
    });
    let machines = machines.collect();
    let mut flows = Vec::new();
    for k in 0..6 {
        let n_jobs = if chains { 1 + draw(3) } else { 1 };
        let jobs = (0..n_jobs).map(|j| {
            let mut sizes = |least: u32| -> Vec<f64> {
                (0..least + draw(9)).map(|_| f64::from(1 + draw(50)) / 3.0).collect()
            };
            let (map, reduce) = (phase(&sizes(1)), phase(&sizes(0)));
            let after = if j > 0 { vec![format!("j{}", j - 1)] } else { Vec::new() };
            let mut job = JobDraft { id: format!("j{j}"), after, map, reduce, ..JobDraft::default() };
            job.max_slots.map = (draw(3) == 0).then(|| 1 + draw(4));
            job
        });
        let jobs = jobs.collect();
        let release = f64::from(draw(3)) * 7.3;
        flows.push(FlowDraft {
            release,
            weight: f64::from(1 + draw(5)),
            ..FlowDraft::new(format!("f{k}"), jobs)
        });
    }
    let objective = Objective::new(Metric::Completion, Combine::Sum);
    Draft { machines, objective, flows, ..Draft::default() }
}

fn map_reduce(n: u32) -> Slots {
    Slots::MapReduce { map: n, reduce: 1 }
}

/// The place and time of every task, independent of rows.
fn tasks(rows: &slackline_model::schedule::TaskRows) -> BTreeMap<(PhaseId, u32), (Time, Time)> {
    let of = |row: &slackline_model::schedule::TaskRow| {
        let key = (row.phase, (row.start, row.end));
        (row.first..row.first + row.count).map(move |task| ((key.0, task), key.1))
    };
    rows.rows().iter().flat_map(of).collect()
}

/// The plan and the policy are two programs: list and replay, driver and simulator. Machines have one slot,
/// because `dmrs-identical`, wrong about how long tasks take, cannot tell which slot of a machine came free.
#[test]
fn the_plan_is_the_run_if_all_jobs_are_released_at_the_start() {
    let (generic, map_reduce) = (|_| Slots::Generic(1), |_| map_reduce(1));
    for seed in 0..30 {
        let slots: &dyn Fn(u32) -> Slots = if seed % 2 == 0 { &generic } else { &map_reduce };
        let instance = Instance::new(&at_the_start(uneven_draft(seed, slots, false))).unwrap();
        for variant in VARIANTS {
            let plan = dmrs::plan(&instance, dmrs::Config { variant, ..dmrs::Config::default() }).unwrap();
            let config = OnlineConfig { variant, ..OnlineConfig::default() };
            let mut policy = Dmrs::new(instance.cluster(), config);
            let (schedule, _) = run_knowing(&instance, &mut policy, &Options::exact(), (&Known::Exact, 1.0));
            assert_eq!(schedule.cost, Some(plan.cost), "seed {seed} {variant:?}");
            assert_eq!(tasks(&schedule.tasks), tasks(&plan.tasks), "seed {seed} {variant:?}");
        }
    }
}

/// All flows released at 0, no maxima.
fn at_the_start(mut draft: Draft) -> Draft {
    for flow in &mut draft.flows {
        flow.release = 0.0;
        for job in &mut flow.jobs {
            job.max_slots = PerPhase::default();
        }
    }
    draft
}

#[test]
fn online_without_arrivals_is_the_plan() {
    for seed in 0..5 {
        let instance = paper(&[("mix", "b"), ("benchmark", "sort"), ("interval", "0")], seed);
        let plan = dmrs::plan(&instance, dmrs::Config::default()).unwrap();
        let mut policy = Dmrs::new(instance.cluster(), OnlineConfig::default());
        let (schedule, _) = run_knowing(&instance, &mut policy, &Options::exact(), (&Known::Exact, 1.0));
        assert_eq!(schedule.cost, Some(plan.cost), "seed {seed}");
        assert_eq!(tasks(&schedule.tasks), tasks(&plan.tasks), "seed {seed}");
        let gap = plan.cost / plan.lower_bound.unwrap() - 1.0;
        println!("seed {seed}: gap to the bound {:.1} %", 100.0 * gap);
        assert!((0.0..1.0).contains(&gap));
    }
}

#[test]
fn every_variant_finishes_under_all_events() {
    let crash = |machine, at: f64, back: Option<f64>| Crash {
        machine: MachineId(machine),
        at: Time::from_seconds_nearest(at),
        back: back.map(Time::from_seconds_nearest),
    };
    // A fast machine is lost for good, another comes back, the slow ones are out for a while together.
    let script = vec![
        crash(3, 4.0, None),
        crash(4, 3.0, Some(9.0)),
        crash(0, 5.0, Some(6.0)),
        crash(1, 5.0, Some(6.5)),
        crash(2, 5.5, Some(40.0)),
        crash(5, 20.0, Some(21.0)),
    ];
    let exact = Options::exact();
    let worlds = [
        Options { crashes: Crashes::Script(script), ..exact.clone() },
        Options { heartbeat: Span(700_000), ..exact.clone() },
        Options { jitter: 0.5, ..exact.clone() },
        Options {
            crashes: Crashes::Rate { between: Span(30_000_000), repair: Span(5_000_000) },
            heartbeat: Span(300_000),
            jitter: 0.3,
            ..exact
        },
    ];
    let generic = Slots::Generic;
    for (world, options) in worlds.iter().enumerate() {
        for seed in 0..6 {
            let slots: &dyn Fn(u32) -> Slots = if seed % 2 == 0 { &generic } else { &map_reduce };
            let instance = uneven(seed, slots, true);
            let options = Options { seed: Seed(seed), ..options.clone() };
            for variant in VARIANTS {
                for known in [Known::Means(0.5), Known::Exact, Known::Learned(&History::new())] {
                    let config = OnlineConfig { variant, ..OnlineConfig::default() };
                    let mut policy = Dmrs::new(instance.cluster(), config);
                    let slowstart = if seed < 3 { 1.0 } else { 0.3 };
                    let (schedule, _) = run_knowing(&instance, &mut policy, &options, (&known, slowstart));
                    let done = schedule.flows.iter().all(|flow| flow.status == FlowResult::Done);
                    assert!(done, "world {world} seed {seed} {variant:?}");
                }
            }
        }
    }
}

/// Tasks of a phase with the machine each ran on, or was meant to.
fn machines(
    instance: &Instance,
    rows: &slackline_model::schedule::TaskRows,
    ends: impl Fn(&slackline_model::schedule::TaskRow) -> bool,
) -> Vec<((PhaseId, u32), MachineId)> {
    let mut found = Vec::new();
    for row in rows.rows().iter().filter(|row| ends(row)) {
        let slot_kind: SlotKind = instance.slot_kind_of(row.phase);
        let slots = rows.places(row).iter().flat_map(|range| range.first..range.first + range.len);
        let on = slots.map(|slot| instance.cluster().machine_of(slot_kind, slot).0);
        found.extend((row.first..).map(|task| (row.phase, task)).zip(on));
    }
    found.sort_unstable();
    found
}

#[test]
fn the_queue_of_a_disconnected_machine_moves_and_nothing_is_done_twice() {
    let machine = |name: &str, speed| MachineDraft {
        name: name.into(),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let (map, reduce) = (phase(&[4.0; 12]), phase(&[3.0; 2]));
    let job = JobDraft { id: "j".into(), map, reduce, ..JobDraft::default() };
    let machines_of = vec![machine("gone", 2.0), machine("there", 1.0)];
    let objective = Objective::new(Metric::Completion, Combine::Sum);
    let flows = vec![FlowDraft::new("f", vec![job])];
    let draft = Draft { machines: machines_of, objective, flows, ..Draft::default() };
    let instance = Instance::new(&draft).unwrap();
    let gone = instance.cluster().machine_named("gone").unwrap();
    let (down, back) = (Time::from_seconds_nearest(5.0), Time::from_seconds_nearest(13.0));
    let script = vec![Crash { machine: gone, at: down, back: Some(back) }];
    let options = Options { crashes: Crashes::Script(script), ..Options::exact() };
    for variant in VARIANTS {
        let plan = dmrs::plan(&instance, dmrs::Config { variant, ..dmrs::Config::default() }).unwrap();
        let planned = machines(&instance, &plan.tasks, |_| true);
        let config = OnlineConfig { variant, ..OnlineConfig::default() };
        let mut policy = Dmrs::new(instance.cluster(), config);
        let (schedule, _) = run_knowing(&instance, &mut policy, &options, (&Known::Exact, 1.0));
        assert_eq!(schedule.flows[0].status, FlowResult::Done, "{variant:?}");
        let ended = |outcome| machines(&instance, &schedule.tasks, |row| row.outcome == outcome);
        // Two maps of two seconds were finished there, and are made again; the third was running.
        assert_eq!([ended(Outcome::Lost).len(), ended(Outcome::Killed).len()], [2, 1], "{variant:?}");
        let done = ended(Outcome::Done);
        let tasks: Vec<(PhaseId, u32)> = done.iter().map(|(task, _)| *task).collect();
        let all: Vec<(PhaseId, u32)> = planned.iter().map(|(task, _)| *task).collect();
        assert_eq!(tasks, all, "{variant:?}: every task is done exactly once");
        let moved = planned.iter().zip(&done).filter(|(plan, run)| plan.1 == gone && run.1 != gone);
        assert!(moved.count() > 0, "{variant:?}: nothing was moved");
        // It gets nothing while it is away, and work again when it is back; the other one never waits.
        let on_it = |from, to| {
            machines(&instance, &schedule.tasks, |row| row.start >= from && row.start < to)
                .iter()
                .any(|run| run.1 == gone)
        };
        assert!(!on_it(down, back) && on_it(back, Time(u64::MAX)), "{variant:?}");
        let meanwhile = |row: &slackline_model::schedule::TaskRow| row.start < back && row.end > down;
        let busy = machines(&instance, &schedule.tasks, meanwhile).iter().filter(|run| run.1 != gone).count();
        assert_eq!(busy, 3, "{variant:?}: maps that touch the eight seconds, of four each");
    }
}

#[test]
fn wrong_speeds_are_survived_and_cost_less_if_the_list_is_rebuilt() {
    let (mut with, mut without, mut right) = (0.0, 0.0, 0.0);
    for seed in 0..10 {
        let instance = uneven(seed, &Slots::Generic, false);
        for (reoptimise, known, sum) in [
            (dmrs::Reoptimise::OnDeparture, Known::WrongSpeeds, &mut with),
            (dmrs::Reoptimise::Never, Known::WrongSpeeds, &mut without),
            (dmrs::Reoptimise::OnDeparture, Known::Exact, &mut right),
        ] {
            let config = OnlineConfig { reoptimise, ..OnlineConfig::default() };
            let mut policy = Dmrs::new(instance.cluster(), config);
            let (schedule, _) = run_knowing(&instance, &mut policy, &Options::exact(), (&known, 1.0));
            assert!(schedule.flows.iter().all(|flow| flow.status == FlowResult::Done), "seed {seed}");
            *sum += schedule.cost.unwrap();
        }
    }
    println!("cost with speeds known {right:.0}, wrong {with:.0}, wrong and never rebuilt {without:.0}");
    assert!(right < with && with < without, "{right}, {with}, {without}");
}

#[test]
fn rebuilding_the_list_helps_against_wrong_estimates() {
    let (mut with, mut without) = (0.0, 0.0);
    for seed in 0..10 {
        let instance = paper(&[("mix", "b"), ("benchmark", "sort")], seed);
        let options = Options { seed: Seed(seed), jitter: 0.5, ..Options::exact() };
        for (reoptimise, sum) in
            [(dmrs::Reoptimise::OnDeparture, &mut with), (dmrs::Reoptimise::Never, &mut without)]
        {
            let config = OnlineConfig { reoptimise, ..OnlineConfig::default() };
            let mut policy = Dmrs::new(instance.cluster(), config);
            *sum += run(&instance, &mut policy, &options, 0.5).cost.unwrap();
        }
    }
    println!(
        "cost with re-optimisation {with:.0}, without {without:.0}: {:.1} % less",
        100.0 * (1.0 - with / without)
    );
    assert!(with < without, "{with} against {without}");
}

/// How far completions are from those of a plan that knows everything, seconds in all.
fn distance(plan: &dmrs::Plan, schedule: &Schedule) -> f64 {
    let off = |row: &FlowRow| (row.completion.unwrap() - plan.completions[row.flow].seconds()).abs();
    schedule.flows.iter().map(off).sum()
}

#[test]
fn learned_speeds_bring_a_second_run_nearer_to_the_plan() {
    for seed in 0..5 {
        // Groups of jobs that are the same in both runs; nothing is known of the machines.
        let instance = paper(&[("mix", "a"), ("benchmark", "terasort"), ("interval", "0")], seed);
        let plan = dmrs::plan(&instance, dmrs::Config::default()).unwrap();
        let mut history = History::new();
        let mut distances = Vec::new();
        let mut costs = Vec::new();
        for _ in 0..2 {
            let mut policy = Dmrs::new(instance.cluster(), OnlineConfig::default());
            let (schedule, known) =
                run_knowing(&instance, &mut policy, &Options::exact(), (&Known::Learned(&history), 1.0));
            distances.push(distance(&plan, &schedule));
            costs.push(schedule.cost.unwrap());
            history = known.unwrap();
        }
        println!("seed {seed}: off the plan by {distances:.1?} s, cost {costs:.0?}");
        assert!(distances[1] < 0.01 * distances[0], "{distances:?}");
        assert!(costs[1] <= costs[0] * 1.001, "{costs:?}");
    }
}

#[test]
fn dmrs_costs_less_than_the_papers_baselines_on_average() {
    let mut worst = BTreeMap::new();
    for (mix, benchmark) in
        [("a", "wordcount"), ("a", "sort"), ("a", "terasort"), ("b", "sort"), ("elephants", "terasort")]
    {
        let mut costs = [0.0; 4];
        for seed in 0..5 {
            let instance = paper(&[("mix", mix), ("benchmark", benchmark)], seed);
            for (k, variant) in VARIANTS.into_iter().enumerate() {
                costs[k] += completed(&instance, variant, &Options::exact(), 0.0);
            }
            let mut fifo = Fifo::new(ShareUnit::Job);
            costs[3] += run_knowing(&instance, &mut fifo, &Options::exact(), (&Known::Means(0.0), 0.05))
                .0
                .cost
                .unwrap();
        }
        let less = |k: usize| 100.0 * (1.0 - costs[0] / costs[k]);
        println!(
            "{mix} {benchmark}: {:.0} % below identical, {:.0} % below map-only, {:.0} % below fifo",
            less(1),
            less(2),
            less(3)
        );
        for (k, name) in [(1, "identical"), (2, "map-only"), (3, "fifo")] {
            let gain: &mut f64 = worst.entry(name).or_insert(f64::INFINITY);
            *gain = gain.min(less(k));
        }
    }
    assert!(worst.values().all(|&gain| gain > 0.0), "{worst:?}");
}
