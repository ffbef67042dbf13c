//! Tests when slots are reserved from long tasks, and when none are.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::params::Settings;
use slackline_model::{Combine, Draft, Instance, Metric, Seed, random};
use slackline_policy::Config;
use slackline_sim::{Options, Sim};

use crate::auto::online::{Auto, ENTRY};
use crate::auto::reserved_slots::*;

/// A flow of one map phase.
fn flow(id: String, release: f64, (tasks, seconds): (u32, f64)) -> FlowDraft {
    let map = Some(TasksDraft::Uniform { tasks, seconds }.into());
    FlowDraft { release, ..FlowDraft::new(id, vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }]) }
}

fn instance(metric: Metric, flows: Vec<FlowDraft>) -> Instance {
    let slots = Slots::Generic(20);
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
    let objective = Objective::new(metric, Combine::Sum);
    Instance::new(&Draft { machines: vec![machine], flows, objective, ..Draft::default() }).unwrap()
}

/// The cost of the workload with and without reserved slots, and the reserved share at the end.
fn costs(instance: &Instance) -> (f64, f64, f64) {
    let run = |headroom: &str| {
        let settings = [("headroom", headroom)];
        let mut auto = Auto::new(instance.objective(), &Settings::parse(ENTRY.params, settings).unwrap());
        let mut engine = Sim::new(instance, Options::exact());
        let run = slackline_policy::run(instance, &mut auto, &mut engine, Config::plain().audited());
        let completions: Vec<f64> = run.completions.iter().map(|at| at.unwrap().seconds()).collect();
        (instance.cost_of(&completions), auto.headroom().0)
    };
    let ((with, share), (without, _)) = (run("yes"), run("no"));
    (with, without, share)
}

#[test]
fn mice_do_not_wait_for_the_tasks_of_an_elephant() {
    for seed in 0..4 {
        let rng = &mut random::rng(Seed(seed), "mice", 0);
        let mut at = 0.0;
        let mut flows: Vec<FlowDraft> = (0..80)
            .map(|k| {
                at += random::exponential(rng, 20.0).round();
                let tasks = random::integer(rng, 1, 4) as u32;
                flow(format!("mouse{k}"), at, (tasks, random::integer(rng, 3, 9) as f64))
            })
            .collect();
        flows.push(flow("elephant".into(), 250.0, (80, 300.0)));
        let (with, without, share) = costs(&instance(Metric::Slowdown, flows));
        println!("seed {seed}: {with:.0} with, {without:.0} without, {share} kept");
        assert!(with <= without / 2.0, "seed {seed}: slowdowns {with} with headroom, {without} without");
    }
}

#[test]
fn more_is_kept_as_soon_as_an_elephant_comes_and_no_more_when_it_is_long_gone() {
    // The elephant arrives when earlier flows have shown what to expect. It could take all slots for as long
    // as forty of them arrive.
    let mouse = |k: u32| flow(format!("mouse{k}"), f64::from(5 * k), (4 + k % 9, 6.0));
    let mice = |n: u32| (0..n).map(mouse).collect::<Vec<_>>();
    let elephant = flow("elephant".into(), 101.0, (60, 200.0));
    let instance_of = |n: u32| instance(Metric::Slowdown, [mice(n), vec![elephant.clone()]].concat());
    let (with, without, share) = costs(&instance_of(80));
    assert!(share > USUAL, "{share} is kept");
    assert!(with <= without / 2.0, "slowdowns {with} with headroom, {without} without");
    let (_, _, share) = costs(&instance_of(150));
    assert!(share <= USUAL, "{share} is kept where none of the last {MANY} flows is huge");
}

#[test]
fn nothing_is_kept_where_nearly_all_flows_are_long() {
    for seed in 0..4 {
        let rng = &mut random::rng(Seed(seed), "long", 0);
        let mut at = 0.0;
        let flows = (0..80).map(|k| {
            // A tenth of the flows is short; the median flow takes 100 s alone, and half of the tasks take
            // longer.
            let (tasks, seconds) =
                if k % 10 == 0 { (4, 60.0) } else { (20, 100.0 + 20.0 * f64::from(k % 4)) };
            at += random::exponential(rng, f64::from(tasks) * seconds / 20.0 / 0.9).round();
            flow(format!("f{k}"), at, (tasks, seconds))
        });
        let (with, without, share) = costs(&instance(Metric::Response, flows.collect()));
        println!("seed {seed}: {with:.0} with, {without:.0} without, {share} kept");
        assert!(share == 0.0, "seed {seed}: {share} is kept");
        assert!(with <= 1.1 * without, "seed {seed}: {with} with headroom, {without} without");
    }
}

#[test]
fn small_slot_kinds_keep_nothing() {
    assert_eq!(
        [(19, 0.05), (20, 0.05), (100, 0.1), (7, 0.2), (1, 0.2)].map(|(n, rho)| long_max(n, rho)),
        [19, 19, 90, 6, 1]
    );
}
