//! Tests the bounds against schedules of both forms, an independent linear program, and their laws.
#![expect(clippy::unwrap_used, reason = "drafts are drawn valid; a test may fail here")]

use proptest::prelude::*;
use slackline_model::cluster::Slots;
use slackline_model::draft::{
    Draft, FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, TasksDraft, Weights,
};
use slackline_model::{Combine, FlowId, Instance, JobId, Metric, Objective, PhaseId, Span};
use slackline_relax::{best, bounds, pb, task_bounds};

const METRICS: [Metric; 8] = [
    Metric::Completion,
    Metric::Response,
    Metric::Makespan,
    Metric::Stretch,
    Metric::Slowdown,
    Metric::Tardy,
    Metric::Tardiness,
    Metric::Lateness,
];

fn objectives() -> impl Iterator<Item = Objective> {
    METRICS.into_iter().flat_map(|m| [Combine::Sum, Combine::Max].map(|c| Objective::new(m, c)))
}

fn phase() -> impl Strategy<Value = PhaseDraft> {
    let each = prop::collection::vec(0u32..3_000_000, 1..4)
        .prop_map(|list| TasksDraft::Each(list.into_iter().map(|micros| f64::from(micros) / 1e6).collect()));
    let uniform =
        (1u32..6, 0u32..4).prop_map(|(tasks, s)| TasksDraft::Uniform { tasks, seconds: f64::from(s) });
    // A few microseconds: rounding to whole ones matters most there.
    let tiny = (1u32..6, 0u32..4)
        .prop_map(|(tasks, us)| TasksDraft::Uniform { tasks, seconds: f64::from(us) * 1e-6 });
    (prop_oneof![each, uniform, tiny], prop::option::of(1u32..4))
        .prop_map(|(tasks, max_slots)| PhaseDraft { max_slots, ..tasks.into() })
}

fn job() -> impl Strategy<Value = (JobDraft, u8)> {
    let phases = prop_oneof![
        3 => (phase(), phase()).prop_map(|(m, r)| (Some(m), Some(r))),
        1 => phase().prop_map(|m| (Some(m), None)),
        1 => phase().prop_map(|r| (None, Some(r))),
    ];
    (phases, any::<u8>())
        .prop_map(|((map, reduce), after)| (JobDraft { map, reduce, ..JobDraft::default() }, after))
}

fn flow() -> impl Strategy<Value = FlowDraft> {
    let jobs = prop::collection::vec(job(), 1..4).prop_map(|list| {
        let name = |k: usize| format!("j{k}");
        let named = list.into_iter().enumerate().map(|(k, (job, mask))| JobDraft {
            id: name(k),
            after: (0..k).filter(|&a| mask >> a & 1 == 1).map(name).collect(),
            ..job
        });
        named.collect::<Vec<_>>()
    });
    (jobs, 0u32..8, 0u32..5, prop::option::of(0u32..20)).prop_map(|(jobs, release, weight, deadline)| {
        FlowDraft {
            release: f64::from(release) / 2.0,
            weight: f64::from(weight),
            deadline: deadline.map(f64::from),
            ..FlowDraft::new("f", jobs)
        }
    })
}

fn flows() -> impl Strategy<Value = Vec<FlowDraft>> {
    prop::collection::vec(flow(), 1..5).prop_map(|mut list| {
        for (k, flow) in list.iter_mut().enumerate() {
            flow.id = format!("f{k}");
        }
        list
    })
}

fn machines(speeds: &'static [f64]) -> impl Strategy<Value = Vec<MachineDraft>> {
    let one = (1u32..3, 1u32..3, 1u32..3, prop::sample::select(speeds));
    (prop::collection::vec(one, 1..3), any::<bool>()).prop_map(|(list, map_reduce)| {
        let group = |(k, (count, a, b, speed)): (usize, (u32, u32, u32, f64))| MachineDraft {
            name: format!("m{k}"),
            count,
            speed,
            slots: if map_reduce { Slots::MapReduce { map: a, reduce: b } } else { Slots::Generic(a) },
            rack: None,
        };
        list.into_iter().enumerate().map(group).collect()
    })
}

fn build(machines: &[MachineDraft], flows: &[FlowDraft]) -> Instance {
    Instance::new(&Draft { machines: machines.to_vec(), flows: flows.to_vec(), ..Draft::default() }).unwrap()
}

fn under(instance: &Instance, objective: Objective) -> Instance {
    instance.clone().with_objective(objective, Weights::Use).unwrap()
}

/// Every bound of every metric is at most the cost of these completions, without tolerance.
fn bounded(instance: &Instance, completions: &[f64]) -> Result<(), TestCaseError> {
    for objective in objectives() {
        let instance = under(instance, objective);
        let cost = instance.cost_of(completions);
        for bound in bounds(&instance) {
            prop_assert!(
                bound.value <= cost,
                "{objective:?}: {bound:?} above the cost {cost} of {completions:?}"
            );
        }
    }
    Ok(())
}

/// Whether a phase may run after the phases that are done.
fn ready(instance: &Instance, phase: PhaseId, done: &[bool]) -> bool {
    let job = instance.job(instance.phase(phase).job);
    let finished = |j: JobId| instance.job(j).phases().all(|p| done[p.index()]);
    job.after.iter().all(|&a| finished(a))
        && (job.map == Some(phase) || job.map.is_none_or(|m| done[m.index()]))
}

/// Completions of a list schedule: tasks in whole microseconds, never preempted, phases by `order`.
fn list_schedule(instance: &Instance, order: &[usize]) -> Vec<f64> {
    let cluster = instance.cluster();
    let n = instance.phases().len();
    let mut busy: Vec<Vec<bool>> =
        cluster.slot_kinds().iter().map(|&l| vec![false; cluster.slots(l) as usize]).collect();
    let (mut next, mut running, mut finished) = (vec![0u32; n], vec![0u32; n], vec![0u32; n]);
    let mut done = vec![false; n];
    let mut ends: Vec<(u64, usize, usize, usize)> = Vec::new();
    let mut completion = vec![0u64; instance.flows().len()];
    let mut now = 0;
    while done.contains(&false) {
        for &k in order {
            let id = PhaseId::from(k);
            let phase = instance.phase(id);
            let tasks = phase.tasks().unwrap();
            let slot_kind = instance.slot_kind_of(id);
            if instance.flow(instance.flow_of(id)).release.0 > now || done[k] || !ready(instance, id, &done) {
                continue;
            }
            while next[k] < tasks.count() && running[k] < phase.cap {
                // The fastest free slot of the kind.
                let free = busy[slot_kind.index()].iter().enumerate().filter(|(_, b)| !**b).map(|(s, _)| s);
                let speed = |s: &usize| cluster.speed_of(slot_kind, *s as u32).0;
                let Some(slot) = free.max_by(|a, b| speed(a).total_cmp(&speed(b))) else {
                    break;
                };
                busy[slot_kind.index()][slot] = true;
                let span = tasks.run_at(next[k]).0.at_speed_nearest(speed(&slot));
                ends.push((now + span.0, k, slot_kind.index(), slot));
                next[k] += 1;
                running[k] += 1;
            }
        }
        let releases = instance.flows().iter().map(|f| f.release.0).filter(|&r| r > now);
        now = ends.iter().map(|e| e.0).chain(releases).min().expect("something happens");
        ends.retain(|&(end, k, slot_kind, slot)| {
            if end == now {
                busy[slot_kind][slot] = false;
                running[k] -= 1;
                finished[k] += 1;
                if finished[k] == instance.phase(PhaseId::from(k)).tasks().unwrap().count() {
                    done[k] = true;
                    let flow = instance.flow_of(PhaseId::from(k));
                    completion[flow.index()] = completion[flow.index()].max(now);
                }
            }
            end > now
        });
    }
    completion.into_iter().map(|us| Span(us).seconds()).collect()
}

/// Completions of a malleable schedule on machines of one speed: slots to phases by `order`, changed
/// whenever a phase ends or a flow arrives.
fn malleable_schedule(instance: &Instance, order: &[usize]) -> Vec<f64> {
    let cluster = instance.cluster();
    let speed = cluster.uniform_speed().unwrap();
    let mut left: Vec<f64> = instance.phases().iter().map(|p| p.work().slot_seconds()).collect();
    let mut done = vec![false; left.len()];
    let mut completion: Vec<f64> = instance.flows().iter().map(|f| f.release.seconds()).collect();
    let mut now = 0.0;
    while done.contains(&false) {
        let mut free = [0u32; 2];
        for &slot_kind in cluster.slot_kinds() {
            free[slot_kind.index()] = cluster.slots(slot_kind);
        }
        let mut held = vec![0u32; left.len()];
        let mut step = f64::INFINITY;
        for &k in order {
            let id = PhaseId::from(k);
            let released = instance.flow(instance.flow_of(id)).release.seconds() <= now;
            if released && !done[k] && ready(instance, id, &done) {
                let free = &mut free[instance.slot_kind_of(id).index()];
                held[k] = instance.phase(id).cap.min(*free);
                *free -= held[k];
                if held[k] > 0 {
                    step = step.min(left[k] / (f64::from(held[k]) * speed));
                }
            }
        }
        let releases = instance.flows().iter().map(|f| f.release.seconds()).filter(|&r| r > now);
        let arrival = releases.fold(f64::INFINITY, f64::min);
        let end = (now + step).min(arrival);
        for k in 0..left.len() {
            if held[k] > 0 {
                let needs = left[k] / (f64::from(held[k]) * speed);
                left[k] -= (end - now) * f64::from(held[k]) * speed;
                if needs <= step && now + step <= arrival {
                    done[k] = true;
                    let flow: FlowId = instance.flow_of(PhaseId::from(k));
                    completion[flow.index()] = completion[flow.index()].max(end);
                }
            }
        }
        now = end;
    }
    completion
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Without tolerance, as above.
    #[test]
    fn no_task_schedule_beats_prices(
        machines in machines(&[1.0, 2.0, 3.0, 0.7, 7.0]), flows in flows(), seed in any::<u64>(),
    ) {
        let instance = build(&machines, &flows);
        let completions = list_schedule(&instance, &shuffled(instance.phases().len(), seed));
        for metric in [Metric::Response, Metric::Slowdown, Metric::Tardy, Metric::Tardiness] {
            let instance = under(&instance, Objective::new(metric, Combine::Sum));
            let cost = instance.cost_of(&completions);
            for bound in task_bounds(&instance).iter().filter(|bound| bound.name == "prices") {
                prop_assert!(bound.value <= cost, "{metric:?}: {bound:?} above {cost} of {completions:?}");
            }
        }
    }
}

/// A permutation of 0..n from a seed.
fn shuffled(n: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&k| (k as u64 + 1).wrapping_mul(seed | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20);
    order
}

/// Bounds on grids of time and from searches that are cut short: valid, but monotone only up to the grid.
fn is_approximate(name: &str) -> bool {
    ["flow-tails", "levels", "mean-busy", "pb-convex"].contains(&name)
}

fn best_exact(instance: &Instance) -> f64 {
    let exact = bounds(instance).into_iter().filter(|bound| !is_approximate(bound.name));
    exact.map(|bound| bound.value).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_task_schedule_beats_a_bound(
        machines in machines(&[1.0, 2.0, 3.0, 0.7, 7.0]), flows in flows(), seed in any::<u64>(),
    ) {
        let instance = build(&machines, &flows);
        let order = shuffled(instance.phases().len(), seed);
        bounded(&instance, &list_schedule(&instance, &order))?;
    }

    #[test]
    fn no_malleable_schedule_beats_a_bound(
        machines in machines(&[1.0]), speed in prop::sample::select(&[1.0, 3.0, 0.7][..]),
        flows in flows(), seed in any::<u64>(),
    ) {
        let mut machines = machines;
        for machine in &mut machines {
            machine.speed = speed;
        }
        let instance = build(&machines, &flows);
        let order = shuffled(instance.phases().len(), seed);
        bounded(&instance, &malleable_schedule(&instance, &order))?;
    }

    #[test]
    fn bounds_never_fall_when_a_flow_is_added(machines in machines(&[1.0, 2.0]), flows in flows()) {
        for objective in objectives().filter(|o| o.metric != Metric::Lateness) {
            let all = best_exact(&under(&build(&machines, &flows), objective));
            let fewer = best_exact(&under(&build(&machines, &flows[1..]), objective));
            prop_assert!(all >= fewer - 1e-8 * (1.0 + fewer.abs()), "{objective:?}: {fewer} fell to {all}");
        }
    }

    #[test]
    fn more_slots_never_raise_a_bound(machines in machines(&[1.0, 2.0]), flows in flows()) {
        let mut more = machines.clone();
        more[0].count += 1;
        // Slowdown divides by the time alone on the cluster, which more slots shorten.
        for objective in objectives().filter(|o| o.metric != Metric::Slowdown) {
            let few = bounds(&under(&build(&machines, &flows), objective));
            let many = bounds(&under(&build(&more, &flows), objective));
            for (a, b) in few.iter().zip(&many).filter(|(a, _)| !is_approximate(a.name)) {
                prop_assert!(b.value <= a.value + 1e-8 * (1.0 + a.value.abs()), "{objective:?}: {a:?} rose to {b:?}");
            }
        }
    }

    #[test]
    fn times_scale(machines in machines(&[1.0]), flows in flows(), factor in 2u32..5) {
        let k = f64::from(factor);
        let scaled: Vec<FlowDraft> = flows.iter().map(|flow| {
            let mut flow = flow.clone();
            flow.release *= k;
            for job in &mut flow.jobs {
                for phase in [&mut job.map, &mut job.reduce].into_iter().flatten() {
                    match &mut phase.tasks {
                        TasksDraft::Uniform { seconds, .. } => *seconds *= k,
                        TasksDraft::Each(list) => list.iter_mut().for_each(|s| *s *= k),
                        _ => unreachable!("not drawn"),
                    }
                }
            }
            flow
        }).collect();
        for combine in [Combine::Sum, Combine::Max] {
            let objective = Objective::new(Metric::Completion, combine);
            let once = bounds(&under(&build(&machines, &flows), objective));
            let times = bounds(&under(&build(&machines, &scaled), objective));
            for (a, b) in once.iter().zip(&times).filter(|(a, _)| !is_approximate(a.name)) {
                prop_assert!((a.value * k - b.value).abs() <= 1e-7 * (1.0 + b.value), "{a:?} times {k} is {b:?}");
            }
        }
    }

    #[test]
    fn the_closed_form_is_the_linear_program(
        list in prop::collection::vec((0u32..6, 0u32..4, 0u32..20, 0u32..14), 1..7), capacity in 1u32..4,
    ) {
        let jobs: Vec<pb::Job> = list.iter().map(|&(work, weight, floor, tail)| pb::Job {
            work: f64::from(work), weight: f64::from(weight),
            floor: f64::from(floor) / 2.0, tail: f64::from(tail.min(floor)) / 2.0,
        }).collect();
        let capacity = f64::from(capacity);
        let solution = pb::solve(&jobs, capacity);
        let exact = linear_program(&jobs, capacity);
        prop_assert!((solution.value - exact).abs() <= 1e-8 * (1.0 + exact), "{} is not {exact}", solution.value);
        let by_parts: f64 = jobs.iter().zip(&solution.completion).map(|(j, c)| j.weight * c).sum();
        prop_assert!((by_parts - exact).abs() <= 1e-8 * (1.0 + exact));
    }
}

/// The optimum with all 2^N rows, from the dual by the simplex method: with x = C − l ≥ 0 it is
/// max Σ y_S b_S with Σ_{S∋j} V_j y_S ≤ w_j, which starts feasible at y = 0.
fn linear_program(jobs: &[pb::Job], capacity: f64) -> f64 {
    let sets = 1usize..1 << jobs.len();
    let n = jobs.len();
    let member = |set: usize, j: usize| if set >> j & 1 == 1 { jobs[j].work } else { 0.0 };
    let gain = |set: usize| {
        let work: f64 = (0..n).map(|j| member(set, j)).sum();
        work * work / (2.0 * capacity)
            - (0..n).map(|j| member(set, j) * (jobs[j].floor - jobs[j].tail)).sum::<f64>()
    };
    // Columns: sets, slacks, right-hand side. The last row is the objective.
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|j| {
            let slack = (0..n).map(|i| f64::from(u8::from(i == j)));
            sets.clone().map(|s| member(s, j)).chain(slack).chain([jobs[j].weight]).collect()
        })
        .collect();
    rows.push(sets.clone().map(|s| -gain(s)).chain(vec![0.0; n + 1]).collect());
    let columns = rows[0].len() - 1;
    // Bland's rule: the first column that gains, the first basic variable that blocks.
    let mut basis: Vec<usize> = (columns - n..columns).collect();
    while let Some(enter) = (0..columns).find(|&c| rows[n][c] < -1e-9) {
        let ratio = |r: usize| rows[r][columns] / rows[r][enter];
        let candidates = (0..n).filter(|&r| rows[r][enter] > 1e-9);
        let leave = candidates.min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)).then(basis[a].cmp(&basis[b])));
        let leave = leave.expect("bounded: the primal is feasible");
        basis[leave] = enter;
        let pivot = rows[leave][enter];
        for x in &mut rows[leave] {
            *x /= pivot;
        }
        let pivot_row = rows[leave].clone();
        for (r, row) in rows.iter_mut().enumerate() {
            let factor = row[enter];
            if r != leave && factor != 0.0 {
                row.iter_mut().zip(&pivot_row).for_each(|(x, p)| *x -= factor * p);
            }
        }
    }
    rows[n][columns] + jobs.iter().map(|j| j.weight * j.floor).sum::<f64>()
}

#[test]
fn minima_are_ignored() {
    let job = |min| JobDraft {
        id: "j".into(),
        map: Some(TasksDraft::Uniform { tasks: 4, seconds: 3.0 }.into()),
        min_slots: PerPhase::both(min),
        ..JobDraft::default()
    };
    let at = |min| best(&build(&[slots(2)], &[FlowDraft::new("f", vec![job(min)])]));
    assert_eq!(at(0), at(2));
}

#[test]
fn a_completion_within_tolerance_of_its_deadline_is_not_late() {
    // Two flows of 5 s on one slot end at 10 s, a microsecond after the deadline: by the documents on time.
    let flows: Vec<FlowDraft> =
        ["a", "b"].map(|id| FlowDraft { deadline: Some(9.999_999), ..one(id) }).into();
    let instance = build(&[slots(1)], &flows);
    for combine in [Combine::Sum, Combine::Max] {
        let instance = under(&instance, Objective::new(Metric::Tardy, combine));
        assert_eq!(instance.cost_of(&[5.0, 10.0]), 0.0);
        assert_eq!(best(&instance), 0.0, "{combine:?}");
    }
    // A millisecond is late, whichever flow goes first.
    let flows: Vec<FlowDraft> = ["a", "b"].map(|id| FlowDraft { deadline: Some(9.999), ..one(id) }).into();
    let late = under(&build(&[slots(1)], &flows), Objective::new(Metric::Tardy, Combine::Max));
    assert_eq!(best(&late), 1.0);
}

fn slots(n: u32) -> MachineDraft {
    MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(n), rack: None }
}

/// A flow of one map task of 5 s.
fn one(id: &str) -> FlowDraft {
    let map = Some(TasksDraft::Uniform { tasks: 1, seconds: 5.0 }.into());
    FlowDraft::new(id, vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }])
}
