//! Minima in task rows: no slot goes to a phase at or above its minimum while another is below.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, PerPhase, PoolDraft};
use slackline_model::schedule::Outcome;
use slackline_model::{Draft, Instance, Schedule};

use crate::build::*;

/// Flows of that many maps of 10 s, release and map minimum on `slots` generic slots.
fn guaranteed(slots: u32, flows: &[(u32, f64, u32)]) -> Instance {
    pooled(slots, &flows.iter().map(|&(n, r, m)| (n, r, m, false)).collect::<Vec<_>>(), 0)
}

/// The same, some in a pool that has a map minimum.
fn pooled(slots: u32, flows: &[(u32, f64, u32, bool)], pool: u32) -> Instance {
    let flows = flows.iter().enumerate().map(|(i, &(n, release, min, in_pool))| {
        let mut f = FlowDraft { release, ..flow(["a", "b", "c", "d"][i], uniform(n, 10.0), None) };
        f.jobs[0].min_slots.map = Some(min);
        f.pool = in_pool.then(|| "p".to_owned());
        f
    });
    let draft = Draft {
        machines: vec![machines("m", 1, Slots::Generic(slots))],
        flows: flows.collect(),
        pools: vec![PoolDraft { id: "p".into(), min_slots: PerPhase { map: Some(pool), reduce: None } }],
        ..Draft::default()
    };
    Instance::new(&draft).unwrap()
}

fn promised(instance: &Instance, runs: &[Run]) -> Schedule {
    Schedule { minima: true, ..tasks(instance, runs) }
}

#[test]
fn a_slot_goes_to_the_phase_below_its_minimum() {
    let instance = guaranteed(2, &[(4, 0.0, 0), (2, 1.0, 1)]);
    // a holds both slots when b arrives; the first to become free is b's.
    let honest = [
        run("a/a/map", 0, (0, 2), (0.0, 10.0)),
        run("b/b/map", 0, (0, 1), (10.0, 20.0)),
        run("a/a/map", 2, (1, 1), (10.0, 20.0)),
        run("b/b/map", 1, (0, 1), (20.0, 30.0)),
        run("a/a/map", 3, (1, 1), (20.0, 30.0)),
    ];
    accepts(&instance, &promised(&instance, &honest));
    let greedy = [
        run("a/a/map", 0, (0, 2), (0.0, 10.0)),
        run("a/a/map", 2, (0, 2), (10.0, 20.0)),
        run("b/b/map", 0, (0, 2), (20.0, 30.0)),
    ];
    accepts(&instance, &tasks(&instance, &greedy));
    let message = refuses(&instance, &promised(&instance, &greedy), "minimum");
    assert_eq!(
        message,
        "at 10 s: flow b, job b, map phase holds 0 slots, expected its minimum of 1, while flow a, job a, map phase takes a slot above its own minimum"
    );
}

#[test]
fn a_release_at_the_very_instant_counts() {
    let instance = guaranteed(2, &[(2, 0.0, 0), (1, 0.0, 1)]);
    let runs = [run("a/a/map", 0, (0, 2), (0.0, 10.0)), run("b/b/map", 0, (0, 1), (10.0, 20.0))];
    refuses(&instance, &promised(&instance, &runs), "minimum");
}

#[test]
fn a_phase_up_to_its_own_minimum_may_take_a_slot() {
    // Both below: whichever takes the only free slot stays within its minimum.
    let instance = guaranteed(2, &[(2, 0.0, 1), (2, 0.0, 2)]);
    let runs = [
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("b/b/map", 0, (1, 1), (0.0, 10.0)),
        run("b/b/map", 1, (1, 1), (10.0, 20.0)),
        run("a/a/map", 1, (0, 1), (10.0, 20.0)),
    ];
    accepts(&instance, &promised(&instance, &runs));
}

#[test]
fn minima_beyond_the_slot_kind_shrink() {
    // 4 + 2 on three slots: 2 and 1.
    let instance = guaranteed(3, &[(4, 0.0, 4), (2, 0.0, 2)]);
    let two_one = [
        run("a/a/map", 0, (0, 2), (0.0, 10.0)),
        run("b/b/map", 0, (2, 1), (0.0, 10.0)),
        run("a/a/map", 2, (0, 2), (10.0, 20.0)),
        run("b/b/map", 1, (2, 1), (10.0, 20.0)),
    ];
    accepts(&instance, &promised(&instance, &two_one));
    let one_two = [
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("b/b/map", 0, (1, 2), (0.0, 10.0)),
        run("a/a/map", 1, (0, 3), (10.0, 20.0)),
    ];
    let message = refuses(&instance, &promised(&instance, &one_two), "minimum");
    assert!(
        message.contains("flow a, job a, map phase holds 1 slots, expected its minimum of 2"),
        "{message}"
    );
}

#[test]
fn a_pool_shares_its_minimum_among_its_ready_phases() {
    let instance = pooled(3, &[(3, 0.0, 0, false), (2, 0.0, 0, true), (2, 0.0, 0, true)], 2);
    let honest = [
        run("b/b/map", 0, (0, 1), (0.0, 10.0)),
        run("c/c/map", 0, (1, 1), (0.0, 10.0)),
        run("a/a/map", 0, (2, 1), (0.0, 10.0)),
        run("b/b/map", 1, (0, 1), (10.0, 20.0)),
        run("c/c/map", 1, (1, 1), (10.0, 20.0)),
        run("a/a/map", 1, (2, 1), (10.0, 20.0)),
        run("a/a/map", 2, (2, 1), (20.0, 30.0)),
    ];
    accepts(&instance, &promised(&instance, &honest));
    let mut unfair = honest.clone();
    // Both slots of the pool to b, none to c.
    unfair[1] = run("b/b/map", 1, (1, 1), (0.0, 10.0));
    unfair[3] = run("c/c/map", 0, (0, 1), (10.0, 20.0));
    let message = refuses(&instance, &promised(&instance, &unfair), "minimum");
    assert!(
        message.contains("flow c, job c, map phase holds 0 slots, expected its minimum of 1"),
        "{message}"
    );
}

#[test]
fn reduces_are_guaranteed_slots_once_their_maps_are_done() {
    let mut a = flow("a", uniform(1, 10.0), uniform(1, 5.0));
    a.jobs[0].min_slots.reduce = Some(1);
    let instance =
        instance(vec![machines("m", 1, Slots::Generic(2))], vec![a, flow("b", uniform(4, 10.0), None)]);
    let runs = |reduce: f64, b: [(f64, u32); 2]| {
        vec![
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("b/b/map", 0, (1, 1), (0.0, 10.0)),
            run("a/a/reduce", 0, (0, 1), (reduce, reduce + 5.0)),
            run("b/b/map", 1, (1, 1), (10.0, 20.0)),
            run("b/b/map", 2, (b[0].1, 1), (b[0].0, b[0].0 + 10.0)),
            run("b/b/map", 3, (b[1].1, 1), (b[1].0, b[1].0 + 10.0)),
        ]
    };
    accepts(&instance, &promised(&instance, &runs(10.0, [(15.0, 0), (20.0, 1)])));
    let message = refuses(&instance, &promised(&instance, &runs(20.0, [(10.0, 0), (20.0, 1)])), "minimum");
    assert!(message.starts_with("at 10 s: flow a, job a, reduce phase"), "{message}");
}

#[test]
fn a_reduce_barred_from_slots_is_guaranteed_none() {
    // With one generic slot no reduce may be early, so maps may go first at any minimum.
    let mut a = flow("a", uniform(2, 10.0), uniform(1, 5.0));
    a.jobs[0].min_slots.reduce = Some(1);
    let instance = instance(vec![machines("m", 1, Slots::Generic(1))], vec![a]);
    let runs = [
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("a/a/map", 1, (0, 1), (10.0, 20.0)),
        run("a/a/reduce", 0, (0, 1), (20.0, 25.0)),
    ];
    accepts(&instance, &Schedule { minima: true, ..early(&instance, 0.5, &runs) });
}

#[test]
fn an_early_reduce_that_may_take_a_slot_is_guaranteed_it() {
    let mut a = flow("a", uniform(2, 10.0), uniform(1, 5.0));
    a.jobs[0].min_slots.reduce = Some(1);
    let instance =
        instance(vec![machines("m", 1, Slots::Generic(3))], vec![a, flow("b", uniform(3, 10.0), None)]);
    let mut runs = vec![
        run("a/a/map", 0, (0, 1), (0.0, 10.0)),
        run("b/b/map", 0, (1, 2), (0.0, 10.0)),
        run("a/a/map", 1, (0, 1), (10.0, 20.0)),
        run("a/a/reduce", 0, (1, 1), (10.0, 25.0)),
        run("b/b/map", 2, (2, 1), (10.0, 20.0)),
    ];
    let schedule = |runs: &[Run]| Schedule { minima: true, ..early(&instance, 0.5, runs) };
    accepts(&instance, &schedule(&runs));
    (runs[3].start, runs[3].end) = (20.0, 25.0);
    refuses(&instance, &schedule(&runs), "minimum");
}

#[test]
fn a_loss_leaves_minima_uncertain() {
    let mut a = flow("a", uniform(1, 10.0), uniform(1, 5.0));
    a.jobs[0].min_slots.reduce = Some(1);
    let instance =
        instance(vec![machines("m", 1, Slots::Generic(2))], vec![a, flow("b", uniform(3, 10.0), None)]);
    let schedule = |outcome| {
        let mut runs = vec![
            run("a/a/map", 0, (0, 1), (0.0, 10.0)).attempt(0, outcome),
            run("b/b/map", 0, (1, 1), (0.0, 10.0)),
            run("b/b/map", 1, (0, 2), (10.0, 20.0)),
        ];
        if outcome == Outcome::Lost {
            runs.push(run("a/a/map", 0, (0, 1), (20.0, 30.0)).attempt(1, Outcome::Done));
        }
        runs.push(run("a/a/reduce", 0, (0, 1), (30.0, 35.0)));
        promised(&instance, &runs)
    };
    accepts(&instance, &schedule(Outcome::Lost));
    refuses(&instance, &schedule(Outcome::Done), "minimum");
}

#[test]
fn minima_are_those_of_the_instant_itself() {
    // b's only slot comes a microsecond after the one a is given: still the same instant.
    let instance = guaranteed(2, &[(4, 0.0, 0), (1, 1.0, 1)]);
    let schedule = |b: f64| {
        let runs = [
            run("a/a/map", 0, (0, 1), (0.0, 10.0)),
            run("a/a/map", 1, (1, 1), (0.0, 10.0)),
            run("a/a/map", 2, (0, 1), (10.0, 20.0)),
            run("b/b/map", 0, (1, 1), (b, b + 10.0)),
            run("a/a/map", 3, (0, 1), (20.0, 30.0)),
        ];
        promised(&instance, &runs)
    };
    accepts(&instance, &schedule(10.000_001));
    refuses(&instance, &schedule(10.000_1), "minimum");
}

#[test]
fn a_phase_without_length_is_guaranteed_nothing() {
    // a and b share the two slots of their pool: were a counted, b would be promised one of them only.
    let in_pool = |id: &str, seconds: f64| FlowDraft {
        pool: Some("p".to_owned()),
        ..flow(id, uniform(4, seconds), None)
    };
    let instance = Instance::new(&Draft {
        machines: vec![machines("m", 1, Slots::Generic(2))],
        flows: vec![in_pool("a", 0.0), in_pool("b", 10.0), flow("c", uniform(1, 10.0), None)],
        pools: vec![PoolDraft { id: "p".into(), min_slots: PerPhase { map: Some(2), reduce: None } }],
        ..Draft::default()
    })
    .unwrap();
    let honest = [
        run("b/b/map", 0, (0, 2), (0.0, 10.0)),
        run("b/b/map", 2, (0, 2), (10.0, 20.0)),
        run("c/c/map", 0, (0, 1), (20.0, 30.0)),
    ];
    accepts(&instance, &promised(&instance, &honest));
    let unfair = [
        run("b/b/map", 0, (0, 1), (0.0, 10.0)),
        run("c/c/map", 0, (1, 1), (0.0, 10.0)),
        run("b/b/map", 1, (0, 2), (10.0, 20.0)),
        run("b/b/map", 3, (0, 1), (20.0, 30.0)),
    ];
    let message = refuses(&instance, &promised(&instance, &unfair), "minimum");
    assert!(message.contains("holds 1 slots, expected its minimum of 2"), "{message}");
}

#[test]
fn ties_of_scaled_minima_end_in_the_release_before_the_place() {
    // From 10 on both are promised 3 of 3 slots, 1.5 each: the slot left over is b's, which was there first.
    let instance = guaranteed(3, &[(3, 10.0, 3), (6, 0.0, 3)]);
    let run_of = |a: u32, b: u32| {
        vec![
            run("b/b/map", 0, (0, 3), (0.0, 10.0)),
            run("b/b/map", 3, (0, b), (10.0, 20.0)),
            run("a/a/map", 0, (b, a), (10.0, 20.0)),
            run("b/b/map", 3 + b, (0, 3 - b), (20.0, 30.0)),
            run("a/a/map", a, (3 - b, 3 - a), (20.0, 30.0)),
        ]
    };
    accepts(&instance, &promised(&instance, &run_of(1, 2)));
    let message = refuses(&instance, &promised(&instance, &run_of(2, 1)), "minimum");
    assert!(
        message.contains("flow b, job b, map phase holds 1 slots, expected its minimum of 2"),
        "{message}"
    );
}
