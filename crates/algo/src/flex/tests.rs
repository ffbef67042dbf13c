//! Tests FLEX as a whole: the paper's statements, optima by oracles, and plans before the judge.

mod simplex;

use proptest::prelude::*;
use slackline_model::cluster::Slots;
use slackline_model::draft::{
    CostDraft, FlowDraft, JobDraft, MachineDraft, PerPhase, PoolDraft, TasksDraft, Weights,
};
use slackline_model::schedule::{Clock, FlowTimes, Origin, Rows};
use slackline_model::{Combine, CostFn, Draft, Instance, Metric, Objective, Schedule, Seed};
use slackline_trace::generate;

use super::mps::Packer;
use super::plan_instance::{ModelPlan, cost_without_minima, plan_instance};
use super::*;
use simplex::{Is, minimise};

/// The plan as a schedule document's content, with its claims.
fn schedule(instance: &Instance, plan: &ModelPlan) -> Schedule {
    let origin = Origin {
        policy: "flex".to_owned(),
        minima: true,
        clock: Clock::Exact,
        slowstart: 1.0,
        profile: None,
    };
    let rows = Rows::Allocations(plan.allocations.clone());
    let mut schedule = Schedule::from_rows(instance, origin, rows, |flow| {
        let own = plan.allocations.iter().filter(|row| instance.flow_of(row.phase) == flow);
        let start = own.map(|row| row.start).reduce(f64::min);
        FlowTimes { start, completion: Some(plan.completions[flow]) }
    });
    assert!((schedule.cost.unwrap() - plan.cost).abs() <= 1e-9 * plan.cost.abs());
    schedule.claim_bound(Some(plan.bound));
    schedule
}

/// A workload of section 4.1.
fn base_case(jobs: u32, cost: &str, metric: Metric, combine: Combine, seed: u64) -> Instance {
    let generator = generate::generator("flex-4.1").unwrap();
    let jobs = jobs.to_string();
    let draft = generator.generate(&[("jobs", &jobs), ("cost", cost)], Seed(seed)).unwrap();
    let weights = if cost == "sla" { Weights::Ignore } else { Weights::Use };
    Instance::new(&draft).unwrap().with_objective(Objective::new(metric, combine), weights).unwrap()
}

/// The jobs of such a workload.
fn jobs_of(instance: &Instance) -> FlexInstance {
    let jobs = instance.flows().iter().zip(instance.phases().iter()).map(|(flow, phase)| {
        Job::new(phase.work().slot_seconds(), phase.min_slots..=phase.cap, flow.cost.clone())
    });
    FlexInstance::new(100, instance.objective().combine, jobs.collect())
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for job in 0..n {
        all = (all.into_iter())
            .flat_map(|order: Vec<usize>| {
                (0..=order.len()).map(move |at| {
                    let mut longer = order.clone();
                    longer.insert(at, job);
                    longer
                })
            })
            .collect();
    }
    all
}

fn best_packing(instance: &FlexInstance) -> f64 {
    let mut packer = Packer::new(instance);
    let costs = permutations(instance.jobs().len()).into_iter().map(|order| packer.cost(&order));
    costs.fold(f64::INFINITY, f64::min)
}

#[test]
fn lemma_1_is_false() {
    let job = Job::new(2.0, 0..=2, CostFn::linear(1.0, 0.0));
    let instance = FlexInstance::new(3, Combine::Max, vec![job; 3]);
    let mut packer = Packer::new(&instance);
    for order in permutations(3) {
        assert!((packer.cost(&order) - 2.25).abs() < 1e-12);
    }
    let plan = plan(&instance, &Config::thorough());
    assert!((plan.cost - 2.0).abs() < 1e-9, "{plan:?}");
    assert!(plan.optimal);
    assert_eq!(plan.winner, Winner::WaterFilling);
    // With minima, and for the tardy count.
    let job = Job::new(20.0, 1..=20, CostFn::linear(1.0, 0.0));
    let with_minima = FlexInstance::new(30, Combine::Max, vec![job; 3]);
    assert!((super::plan(&with_minima, &Config::thorough()).cost - 2.0).abs() < 1e-9);
    assert!((best_packing(&with_minima) - 2.225).abs() < 1e-9);
    let job = Job::new(2.0, 0..=2, CostFn::steps(vec![(2.0, 1.0)]));
    let tardy = FlexInstance::new(3, Combine::Sum, vec![job; 3]);
    assert_eq!(super::plan(&tardy, &Config::thorough()).cost, 0.0);
    assert!(best_packing(&tardy) >= 1.0);
}

/// The least maximum of slope·C + intercept by a linear program for each order of completions.
fn minimax_by_programs(jobs: &[(f64, u32, u32, f64, f64)], slots: u32) -> f64 {
    let n = jobs.len();
    // Lengths of the intervals, work of each job in each interval, level up, level down.
    let (work_at, level) = (|j: usize, k: usize| n + j * n + k, n + n * n);
    let width = level + 2;
    let mut best = f64::INFINITY;
    for order in permutations(n) {
        let mut rows = Vec::new();
        for (place, &j) in order.iter().enumerate() {
            let (work, min, max, slope, intercept) = jobs[j];
            let mut total = vec![0.0; width];
            let mut cost = vec![0.0; width];
            for k in 0..=place {
                total[work_at(j, k)] = 1.0;
                cost[k] = slope;
                for (sign, rate) in [(1.0, -f64::from(max)), (-1.0, f64::from(min))] {
                    let mut row = vec![0.0; width];
                    row[work_at(j, k)] = sign;
                    row[k] = rate;
                    rows.push((row, Is::AtMost, 0.0));
                }
            }
            (cost[level], cost[level + 1]) = (-1.0, 1.0);
            rows.push((total, Is::Equal, work));
            rows.push((cost, Is::AtMost, -intercept));
        }
        for k in 0..n {
            let mut row = vec![0.0; width];
            row[k] = -f64::from(slots);
            order[k..].iter().for_each(|&j| row[work_at(j, k)] = 1.0);
            rows.push((row, Is::AtMost, 0.0));
        }
        let mut objective = vec![0.0; width];
        (objective[level], objective[level + 1]) = (1.0, -1.0);
        best = best.min(minimise(&objective, &rows).unwrap_or(f64::INFINITY));
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn maxima_are_optimal(
        list in prop::collection::vec((1u32..30, 0u32..3, 1u32..6, 1u32..6, 0u32..12), 1..4),
        spare in 1u32..6,
        metric in 0u32..4,
    ) {
        let slots = list.iter().map(|l| l.1).sum::<u32>() + spare;
        let rows: Vec<(f64, u32, u32, f64, f64)> = list
            .iter()
            .map(|&(work, min, more, weight, due)| {
                let (v, w, d) = (f64::from(work) / 2.0, f64::from(weight), f64::from(due) / 2.0);
                let (slope, intercept) = match metric {
                    0 => (1.0, 0.0),       // makespan
                    1 => (w, 0.0),         // weighted response
                    2 => (1.0 / v, 0.0),   // stretch
                    _ => (w, -w * d),      // weighted lateness
                };
                (v, min, (min + more).min(slots), slope, intercept)
            })
            .collect();
        let jobs = rows.iter().map(|&(work, min, max, slope, intercept)| {
            Job::new(work, min..=max, CostFn::linear(slope, -intercept / slope))
        });
        let instance = FlexInstance::new(slots, Combine::Max, jobs.collect());
        let optimum = minimax_by_programs(&rows, slots);
        let plan = plan(&instance, &Config::thorough());
        let tolerance = 1e-6 * optimum.abs().max(1.0);
        prop_assert!((plan.cost - optimum).abs() <= tolerance, "{} for {optimum}", plan.cost);
        prop_assert!(plan.optimal && plan.bound <= optimum + tolerance);
        check_pieces(&instance, &plan);
    }

    #[test]
    fn one_fast_machine_is_solved(
        list in prop::collection::vec((1u32..30, 1u32..6, 1u32..20), 1..7),
        metric in 0u32..2,
    ) {
        let jobs = list.iter().map(|&(work, weight, due)| {
            let cost = match metric {
                0 => CostFn::linear(f64::from(weight), 0.0),
                _ => CostFn::steps(vec![(f64::from(due), 1.0)]),
            };
            Job::new(f64::from(work), 0..=4, cost)
        });
        let instance = FlexInstance::new(4, Combine::Sum, jobs.collect());
        let plan = plan(&instance, &Config { nodes: 0, ..Config::thorough() });
        prop_assert!(plan.cost <= best_packing(&instance) * (1.0 + 1e-9) + 1e-9);
        if metric == 0 {
            prop_assert!(plan.optimal, "Smith's rule is optimal and the bound knows it: {plan:?}");
        }
        check_pieces(&instance, &plan);
    }

    #[test]
    fn moldable_plans_are_valid_and_no_better_than_the_bound(
        list in prop::collection::vec((1u32..30, 0u32..2, 1u32..6, 1u32..6), 1..9),
        spare in 1u32..9,
    ) {
        let slots = list.iter().map(|l| l.1).sum::<u32>() + spare;
        let jobs = list.iter().map(|&(work, min, more, weight)| {
            Job::new(f64::from(work), min..=min + more, CostFn::linear(f64::from(weight), 0.0))
        });
        let instance = FlexInstance::new(slots, Combine::Sum, jobs.collect());
        let plan = plan(&instance, &Config { mode: Mode::Moldable, ..Config::thorough() });
        prop_assert_eq!(plan.pieces.len(), instance.jobs().len());
        check_pieces(&instance, &plan);
    }
}

/// Capacity, minima, maxima, work, and bound ≤ cost.
fn check_pieces(instance: &FlexInstance, plan: &Plan) {
    assert!(plan.bound <= plan.cost + 1e-9 * plan.cost.abs());
    assert!((instance.cost(&plan.completions) - plan.cost).abs() <= 1e-9 * plan.cost.abs());
    let mut done = vec![0.0; instance.jobs().len()];
    for piece in &plan.pieces {
        let job = &instance.jobs()[piece.job];
        assert!(job.min <= piece.slots && piece.slots <= job.max, "{piece:?} of {job:?}");
        done[piece.job] += f64::from(piece.slots) * (piece.end - piece.start);
        let middle = f64::midpoint(piece.start, piece.end);
        let load: u32 =
            plan.pieces.iter().filter(|p| p.start <= middle && middle < p.end).map(|p| p.slots).sum();
        assert!(load <= instance.slots(), "{load} of {} slots", instance.slots());
    }
    for (job, done) in instance.jobs().iter().zip(done) {
        assert!((job.work - done).abs() <= 1e-6 * job.work, "{done} of {}", job.work);
    }
}

/// Costs of FIFO, FAIR and FLEX: FIFO is the packing in the order given without minima, FAIR the
/// water-line at every completion.
fn base_case_costs(instance: &FlexInstance) -> [f64; 3] {
    let given: Vec<usize> = (0..instance.jobs().len()).collect();
    let bare = instance.jobs().iter().map(|job| Job { min: 0, ..job.clone() }).collect();
    let fifo = Packer::new(&FlexInstance::new(100, Combine::Sum, bare)).cost(&given);
    [fifo, instance.cost(&fair_completions(instance)), plan(instance, &Config::thorough()).cost]
}

#[test]
fn base_case_of_section_4_1() {
    for seed in 0..20 {
        let model = base_case(7, "metric", Metric::Response, Combine::Sum, seed);
        let instance = jobs_of(&model.with_objective(Objective::default(), Weights::Ignore).unwrap());
        let (best, [_, _, flex]) = (best_packing(&instance), base_case_costs(&instance));
        assert!(flex <= best * (1.0 + 1e-9), "seed {seed}: {flex} for {best}");
    }
    // The paper, over 100 seeds of an unpublished generator: FIFO 2.07 (at most 3.24), FAIR 1.54 (1.61).
    let (mut sum, mut most) = ([0.0; 2], [0.0f64; 2]);
    for seed in 0..100 {
        let model = base_case(10, "metric", Metric::Response, Combine::Sum, seed);
        let instance = jobs_of(&model.with_objective(Objective::default(), Weights::Ignore).unwrap());
        let [fifo, fair, flex] = base_case_costs(&instance);
        for (k, ratio) in [fifo / flex, fair / flex].into_iter().enumerate() {
            sum[k] += ratio / 100.0;
            most[k] = most[k].max(ratio);
        }
    }
    println!("4.1: FIFO {:.3} ({:.3}), FAIR {:.3} ({:.3})", sum[0], most[0], sum[1], most[1]);
    assert!((1.6..2.3).contains(&sum[0]) && (1.3..1.65).contains(&sum[1]));
}

/// The water-line at every completion.
fn fair_completions(instance: &FlexInstance) -> Vec<f64> {
    let jobs = instance.jobs();
    let mut left: Vec<f64> = jobs.iter().map(|job| job.work).collect();
    let mut ends = vec![0.0; jobs.len()];
    let mut now = 0.0;
    loop {
        let open: Vec<usize> = (0..jobs.len()).filter(|&j| left[j] > 0.0).collect();
        if open.is_empty() {
            return ends;
        }
        let claims: Vec<crate::classic::Claim> = open
            .iter()
            .map(|&j| crate::classic::Claim {
                min: f64::from(jobs[j].min),
                max: f64::from(jobs[j].max),
                weight: 1.0,
            })
            .collect();
        let rates = crate::classic::water_line(&claims, f64::from(instance.slots()));
        let step = open.iter().zip(&rates).map(|(&j, r)| left[j] / r).fold(f64::INFINITY, f64::min);
        now += step;
        for (&j, rate) in open.iter().zip(&rates) {
            let rest = left[j] - rate * step;
            left[j] = if rest <= 1e-9 * jobs[j].work { 0.0 } else { rest };
            ends[j] = now;
        }
    }
}

#[test]
fn step_costs_are_within_a_percent_of_the_optimum() {
    for (name, cost, metric, weights) in [
        ("tardy", "metric", Metric::Tardy, Weights::Ignore),
        ("weighted tardy", "metric", Metric::Tardy, Weights::Use),
        ("sla", "sla", Metric::Sla, Weights::Ignore),
    ] {
        let (mut ratio, mut searched, mut hits, n) = (0.0, 0.0, 0, 200);
        for seed in 0..n {
            let model = base_case(7, cost, metric, Combine::Sum, seed);
            let model = model.with_objective(Objective::new(metric, Combine::Sum), weights).unwrap();
            let instance = jobs_of(&model);
            let exact = slackline_relax::levels::exact(instance.jobs(), 100, f64::INFINITY, 1_000_000);
            assert!(exact.complete);
            let optimum = exact.cost.unwrap();
            let full = plan(&instance, &Config::thorough());
            let heuristic = plan(&instance, &Config { nodes: 0, ..Config::thorough() });
            assert!(heuristic.bound <= optimum + 1e-9 && full.bound <= optimum + 1e-9);
            // An optimum of 0 has no ratio: it has to be met.
            let over = |cost: f64| if optimum > 0.0 { cost / optimum } else { 1.0 + cost };
            ratio += over(full.cost);
            searched += over(heuristic.cost);
            hits += u32::from(over(heuristic.cost) < 1.0 + 1e-9);
        }
        let mean = |sum: f64| sum / n as f64;
        println!(
            "{name}: {:.4} of the optimum, without the exact search {:.4} ({hits} of {n})",
            mean(ratio),
            mean(searched)
        );
        assert!(mean(ratio) <= 1.01 && mean(searched) <= 1.05, "{name}: {} {}", mean(ratio), mean(searched));
    }
}

#[test]
fn other_sums_find_the_best_order_nearly_always() {
    for (metric, cost) in
        [(Metric::Response, "metric"), (Metric::Stretch, "metric"), (Metric::Tardiness, "metric")]
    {
        let (mut hits, mut gap, n) = (0, 0.0, 20);
        for seed in 0..n {
            let instance = jobs_of(&base_case(6, cost, metric, Combine::Sum, seed));
            let plan = plan(&instance, &Config::thorough());
            hits += u32::from(plan.cost <= best_packing(&instance) * (1.0 + 1e-9));
            gap += if plan.bound > 0.0 { plan.cost / plan.bound } else { 1.0 };
        }
        println!("{metric}: {hits} of {n} best orders, cost over bound {:.3}", gap / f64::from(n as u32));
        assert!(hits >= 19, "{metric}: {hits}");
    }
}

#[test]
fn plans_of_section_4_1_pass_the_judge_for_every_metric() {
    for metric in &Metric::ALL {
        for combine in [Combine::Sum, Combine::Max] {
            let cost = if *metric == Metric::Sla { "sla" } else { "metric" };
            if *metric == Metric::Piecewise {
                continue;
            }
            let model = base_case(10, cost, *metric, combine, 3);
            for mode in [Mode::Malleable, Mode::Moldable] {
                let plan = plan_instance(&model, &Config { mode, ..Config::thorough() }).unwrap();
                let report = slackline_judge::check(&model, &schedule(&model, &plan));
                assert!(report.is_ok(), "{metric} {combine:?} {mode:?}: {}", report.unwrap_err());
            }
        }
    }
}

fn workloads() -> impl Strategy<Value = Draft> {
    let phase = (1u32..8, 0u32..12, 0u32..4, 0u32..6, any::<bool>());
    let flow = (
        phase.clone(),
        prop::option::of(phase),
        (0u32..8, 1u32..5, 1u32..30),
        prop::bool::weighted(0.3),
        0u32..4,
    );
    let cluster = (1u32..4, 1u32..4, 1u32..3, any::<bool>(), prop::sample::select(vec![1.0, 2.0]));
    (
        prop::collection::vec(flow, 1..6),
        cluster,
        0u32..4,
        prop::sample::select(Metric::ALL.to_vec()),
        any::<bool>(),
    )
        .prop_map(|(flows, (machines, map, reduce, map_reduce, speed), pool, metric, sum)| {
            let slots =
                if map_reduce { Slots::MapReduce { map, reduce } } else { Slots::Generic(map + reduce) };
            let draw = |(tasks, seconds, min, more, whole): (u32, u32, u32, u32, bool)| {
                let work = if whole {
                    TasksDraft::Uniform { tasks, seconds: f64::from(seconds) / 2.0 }
                } else {
                    TasksDraft::Work { work: f64::from(seconds * tasks) / 3.0, tasks: None }
                };
                let min = if whole { min.min(tasks) } else { min };
                (work, min, (min + more).max(1))
            };
            let flows = flows.into_iter().enumerate().map(
                |(k, (map, reduce, (release, weight, due), pooled, own))| {
                    let mut job = JobDraft { id: "job".into(), ..JobDraft::default() };
                    let (work, min, max) = draw(map);
                    job.map = Some(work.into());
                    (job.min_slots.map, job.max_slots.map) = (Some(min), Some(max));
                    if let Some(reduce) = reduce {
                        let (work, min, max) = draw(reduce);
                        job.reduce = Some(work.into());
                        (job.min_slots.reduce, job.max_slots.reduce) = (Some(min), Some(max));
                    }
                    let due = f64::from(due) / 2.0;
                    let steps = CostDraft::Steps(vec![(due, 1.0), (2.0 * due, 3.0)]);
                    let points =
                        CostDraft::Piecewise { points: vec![(due, 0.0), (2.0 * due, 4.0)], slope: Some(1.0) };
                    let cost = match (metric, own) {
                        (Metric::Sla, _) | (_, 1) => Some(steps),
                        (Metric::Piecewise, _) | (_, 2) => Some(points),
                        _ => None,
                    };
                    FlowDraft {
                        release: f64::from(release) / 2.0,
                        weight: f64::from(weight),
                        deadline: Some(due),
                        cost,
                        pool: pooled.then(|| "pool".to_owned()),
                        ..FlowDraft::new(format!("flow-{k}"), vec![job])
                    }
                },
            );
            Draft {
                flows: flows.collect(),
                machines: vec![MachineDraft {
                    name: "node".into(),
                    count: machines,
                    speed,
                    slots,
                    rack: None,
                }],
                pools: vec![PoolDraft { id: "pool".into(), min_slots: PerPhase::both(pool) }],
                objective: Objective::new(metric, if sum { Combine::Sum } else { Combine::Max }),
                ..Draft::default()
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_plan_passes_the_judge(draft in workloads()) {
        let Ok(instance) = Instance::new(&draft) else { return Ok(()) };
        let config = Config { steps: 20_000, nodes: 2_000, ..Config::thorough() };
        let plan = plan_instance(&instance, &config).unwrap();
        let checked = slackline_judge::check(&instance, &schedule(&instance, &plan));
        prop_assert!(checked.is_ok(), "{}: {:?}", checked.unwrap_err(), plan);
        prop_assert_eq!(plan_instance(&instance, &config).unwrap(), plan, "the same twice");
    }
}

#[test]
fn flows_of_several_jobs_and_mixed_speeds_are_refused() {
    let work = |id: &str| JobDraft {
        id: id.into(),
        map: Some(TasksDraft::Uniform { tasks: 1, seconds: 1.0 }.into()),
        ..JobDraft::default()
    };
    let machine = |name: &str, speed| MachineDraft {
        name: name.into(),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let mut draft = Draft {
        machines: vec![machine("a", 1.0), machine("b", 2.0)],
        flows: vec![FlowDraft::new("f", vec![work("x")])],
        ..Draft::default()
    };
    let refusal = |draft: &Draft| {
        let instance = Instance::new(draft).unwrap();
        plan_instance(&instance, &Config::quick()).unwrap_err().to_string()
    };
    assert!(refusal(&draft).starts_with("flex plans only machines of one speed, found several speeds"));
    draft.flows[0].jobs.push(work("y"));
    assert!(refusal(&draft).starts_with("flex plans only flows of one job, found 2 jobs in flow \"f\""));
}

/// What a simulation of the policy gives, judged, with mean response.
fn simulated(instance: &Instance, policy: &mut dyn slackline_policy::Policy, learned: bool) -> f64 {
    use slackline_model::History;
    use slackline_policy::{Config, Learning, run};
    use slackline_sim::{Options, Sim};

    let mut config = Config::plain().audited();
    if learned {
        config.learning = Some(Learning::new(instance.cluster(), &History::new()));
    }
    let mut engine = Sim::new(instance, Options::exact());
    let schedule = run(instance, policy, &mut engine, config).schedule(instance, "flex", Clock::Exact);
    slackline_judge::check(instance, &schedule).unwrap().cost
}

#[test]
fn online_runs_beat_fair_and_both_ways_of_handing_over_are_the_same() {
    use crate::baseline::{Fair, ShareUnit};
    use slackline_model::Span;

    let (mut gain, mut blind, n) = (0.0, 0.0, 10);
    for seed in 0..n {
        let model = base_case(10, "metric", Metric::Response, Combine::Sum, seed);
        let model = model.with_objective(Objective::default(), Weights::Ignore).unwrap();
        let epoch = Span::from_seconds_nearest(0.5);
        let flex = |hand| online::Flex::new(epoch, hand);
        let fair = simulated(&model, &mut Fair::new(ShareUnit::Job), false);
        let cost = simulated(&model, &mut flex(online::Hand::Targets), false);
        assert_eq!(cost, simulated(&model, &mut flex(online::Hand::Minima), false));
        gain += fair / cost / f64::from(n as u32);
        blind += fair / simulated(&model, &mut flex(online::Hand::Targets), true) / f64::from(n as u32);
    }
    println!("online: FAIR costs {gain:.3} of FLEX, {blind:.3} of FLEX that has to learn");
    assert!(gain > 1.2 && blind > 1.1);
}

/// Two flows of two tasks of 10 s on two slots. If each keeps one slot, both are done at 20 s; without minima
/// the heavy one has both slots and is done at 10 s.
#[test]
fn the_cost_of_keeping_minima_is_known() {
    let flow = |id: &str, weight, min| {
        let map = Some(TasksDraft::Uniform { tasks: 2, seconds: 10.0 }.into());
        let job = JobDraft { id: "j".into(), map, min_slots: PerPhase::both(min), ..JobDraft::default() };
        FlowDraft { weight, ..FlowDraft::new(id, vec![job]) }
    };
    let costs = |min, released| {
        let light = FlowDraft { release: released, ..flow("light", 1.0, min) };
        let machine =
            MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(2), rack: None };
        let draft = Draft {
            machines: vec![machine],
            flows: vec![flow("heavy", 9.0, min), light],
            objective: Objective::new(Metric::Completion, Combine::Sum),
            ..Draft::default()
        };
        let instance = Instance::new(&draft).unwrap();
        let config = Config::thorough();
        (plan_instance(&instance, &config).unwrap().cost, cost_without_minima(&instance, &config))
    };
    assert_eq!(costs(0, 0.0), (9.0 * 10.0 + 20.0, None), "there are none to keep");
    // By slot kinds, and phase by phase: then the light flow comes after 2 s.
    let (kept, without) = costs(1, 0.0);
    assert!(
        (kept - 10.0 * 20.0).abs() < 1e-6 && (without.unwrap() - 110.0).abs() < 1e-6,
        "{kept} {without:?}"
    );
    let (kept, without) = costs(1, 2.0);
    assert!(kept > 120.0 && (without.unwrap() - 110.0).abs() < 1e-6, "{kept} {without:?}");
}
