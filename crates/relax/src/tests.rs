//! The bounds on small instances whose optimum is known by hand.

use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft, Weights};
use slackline_model::{Combine, Instance, Metric, Objective};

use super::{Form, best, bounds, bounds_until, task_bounds};

fn one_phase(tasks: u32, seconds: f64) -> JobDraft {
    JobDraft {
        id: "j".into(),
        map: Some(TasksDraft::Uniform { tasks, seconds }.into()),
        ..JobDraft::default()
    }
}

fn flow(id: &str, release: f64, weight: f64, job: JobDraft) -> FlowDraft {
    FlowDraft { release, weight, ..FlowDraft::new(id, vec![job]) }
}

fn instance(slots: Slots, flows: Vec<FlowDraft>, metric: Metric, combine: Combine) -> Instance {
    let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
    let objective = Objective::new(metric, combine);
    Instance::new(&Draft { machines: vec![machine], flows, objective, ..Draft::default() }).unwrap()
}

fn value(instance: &Instance, name: &str) -> f64 {
    bounds(instance).iter().find(|b| b.name == name).unwrap_or_else(|| panic!("no bound {name}")).value
}

#[test]
fn linear_sums_on_one_slot_are_smiths_rule() {
    let flows = vec![flow("a", 0.0, 1.0, one_phase(3, 1.0)), flow("b", 0.0, 1.0, one_phase(1, 1.0))];
    let instance = instance(Slots::Generic(1), flows, Metric::Completion, Combine::Sum);
    // b at 1, a at 4.
    assert!((value(&instance, "pb") - 5.0).abs() < 1e-9);
    assert!((best(&instance) - 5.0).abs() < 1e-9);
}

#[test]
fn releases_make_the_busy_time_bound_the_better_one() {
    let flows = (0..4).map(|k| flow(&format!("f{k}"), 10.0 * f64::from(k), 1.0, one_phase(2, 4.0))).collect();
    let instance = instance(Slots::Generic(1), flows, Metric::Response, Combine::Sum);
    // They never meet: 8 s each.
    assert!((value(&instance, "mean-busy") - 32.0).abs() < 1e-9);
    assert!((best(&instance) - 32.0).abs() < 1e-9);
}

#[test]
fn maxima_are_bounded_by_prefix_areas() {
    let flows = (0..3).map(|k| flow(&format!("f{k}"), 0.0, 1.0, one_phase(2, 5.0))).collect::<Vec<_>>();
    let at = |metric| instance(Slots::Generic(2), flows.clone(), metric, Combine::Max);
    assert!((best(&at(Metric::Makespan)) - 15.0).abs() < 1e-4);
    assert!((value(&at(Metric::Makespan), "alone") - 5.0).abs() < 1e-9);
}

#[test]
fn step_costs_snap_to_a_level() {
    let flows = (0..3)
        .map(|k| FlowDraft { deadline: Some(10.0), ..flow(&format!("f{k}"), 0.0, 7.0, one_phase(2, 5.0)) })
        .collect();
    let instance = instance(Slots::Generic(2), flows, Metric::Tardy, Combine::Max);
    assert!((best(&instance) - 7.0).abs() < 1e-9);
}

#[test]
fn typed_slot_kinds_count_separately_and_together() {
    let job = |maps: u32, reduces: u32| JobDraft {
        reduce: Some(TasksDraft::Uniform { tasks: reduces, seconds: 1.0 }.into()),
        ..one_phase(maps, 1.0)
    };
    let flows = vec![flow("a", 0.0, 1.0, job(4, 1)), flow("b", 0.0, 1.0, job(4, 1))];
    let map_reduce = Slots::MapReduce { map: 1, reduce: 1 };
    let instance = instance(map_reduce, flows, Metric::Completion, Combine::Sum);
    // Maps end at 4 and 8, each reduce a second later.
    assert!((best(&instance) - 14.0).abs() < 1e-9);
}

/// Maps end at 5, 15 and 20, reduces at 10, 25 and 28. Heads and tails alone give 3 + 18 or 18 + 3.
#[test]
fn makespans_on_typed_slots_are_bounded_by_johnsons_rule() {
    let job = |maps: u32, reduces: u32| JobDraft {
        reduce: Some(TasksDraft::Uniform { tasks: reduces, seconds: 1.0 }.into()),
        ..one_phase(maps, 1.0)
    };
    let flows: Vec<FlowDraft> = [(5, 3), (10, 10), (3, 5)]
        .iter()
        .zip(["a", "b", "c"])
        .map(|(j, id)| flow(id, 2.0, 1.0, job(j.0, j.1)))
        .collect();
    let at = |slots| instance(slots, flows.clone(), Metric::Makespan, Combine::Max);
    let map_reduce = at(Slots::MapReduce { map: 1, reduce: 1 });
    assert!((value(&map_reduce, "fluid-johnson") - 28.0).abs() < 1e-9);
    assert!((value(&map_reduce, "tail-hall") - 23.0).abs() < 1e-3);
    assert!(bounds(&at(Slots::Generic(2))).iter().all(|bound| bound.name != "fluid-johnson"));
}

#[test]
fn lateness_may_be_bounded_below_zero() {
    let flows = vec![FlowDraft { deadline: Some(100.0), ..flow("a", 0.0, 1.0, one_phase(1, 1.0)) }];
    for combine in [Combine::Sum, Combine::Max] {
        let instance = instance(Slots::Generic(1), flows.clone(), Metric::Lateness, combine);
        assert!((best(&instance) + 99.0).abs() < 1e-4, "{combine:?}");
    }
}

#[test]
fn weights_count_unless_they_are_ignored() {
    let flows = vec![flow("a", 0.0, 5.0, one_phase(1, 2.0))];
    let weighted = instance(Slots::Generic(1), flows, Metric::Completion, Combine::Sum);
    let ignored = weighted.clone().with_objective(weighted.objective(), Weights::Ignore).unwrap();
    assert!((best(&weighted) - 10.0).abs() < 1e-9);
    assert!((best(&ignored) - 2.0).abs() < 1e-9);
}

#[test]
fn an_instance_without_flows_costs_nothing() {
    for combine in [Combine::Sum, Combine::Max] {
        assert_eq!(best(&instance(Slots::Generic(1), Vec::new(), Metric::Response, combine)), 0.0);
    }
}

/// A flow that costs 0 up to 3 s, so that the makespan of the others is not the objective.
#[test]
fn fluid_johnson_leaves_flows_with_costs_of_their_own_alone() {
    let mut own = flow("a", 0.0, 1.0, one_phase(1, 1.0));
    own.cost = Some(CostDraft::Steps(vec![(3.0, 1.0)]));
    let map_reduce = Slots::MapReduce { map: 1, reduce: 1 };
    let names = |flows| -> Vec<&'static str> {
        bounds(&instance(map_reduce, flows, Metric::Makespan, Combine::Max)).iter().map(|b| b.name).collect()
    };
    assert!(!names(vec![own]).contains(&"fluid-johnson"));
    assert!(names(vec![flow("a", 0.0, 1.0, one_phase(1, 1.0))]).contains(&"fluid-johnson"));
}

/// A fast machine and a slow one; a task of 16 s takes at least 2 s, though both together do its work in
/// less.
#[test]
fn on_mixed_speeds_no_task_is_divided() {
    let machine = |name: &str, speed| MachineDraft {
        name: name.into(),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let at = |slow: f64, metric, combine| {
        let job = |id: &str, after: &[&str]| JobDraft {
            id: id.into(),
            after: after.iter().map(|&a| a.into()).collect(),
            map: Some(TasksDraft::Each(vec![16.0, 1.0]).into()),
            ..JobDraft::default()
        };
        let jobs = vec![job("a", &[]), job("b", &["a"])];
        let draft = Draft {
            machines: vec![machine("fast", 8.0), machine("slow", slow)],
            flows: vec![FlowDraft::new("f", jobs)],
            objective: Objective::new(metric, combine),
            ..Draft::default()
        };
        best(&Instance::new(&draft).unwrap())
    };
    for combine in [Combine::Sum, Combine::Max] {
        assert!((at(1.0, Metric::Completion, combine) - 4.0).abs() < 1e-6, "twice two seconds");
        assert!(at(8.0, Metric::Completion, combine) < 2.2, "work is divided where all machines are alike");
    }
}

/// The long task takes 2 s on the fast slot, and its work is 16 of 17: it is done 1 s before the end on
/// average, the short task's 1/16 s before.
#[test]
fn on_mixed_speeds_tasks_are_done_half_their_length_before_the_end() {
    let machine = |name: &str, speed| MachineDraft {
        name: name.into(),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let early = |slow: f64| {
        let map = Some(TasksDraft::Each(vec![16.0, 1.0]).into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let machines = vec![machine("fast", 8.0), machine("slow", slow)];
        let draft = Draft { machines, flows: vec![FlowDraft::new("f", vec![job])], ..Draft::default() };
        let instance = Instance::new(&draft).unwrap();
        let slices = super::tails::slices(&instance, &super::Paths::of(&instance), 8);
        super::tails::mean_tails(&instance, &slices, instance.cluster().slot_kinds()).raw[0]
    };
    assert!((early(4.0) - (16.0 * 1.0 + 1.0 / 16.0) / 17.0).abs() < 1e-9, "{}", early(4.0));
    assert!((early(8.0) - 17.0 / 16.0 / 2.0).abs() < 1e-9, "work is divided where all machines are alike");
}

/// `n` flows of one task each, due together, on `slots` slots.
fn due_together(n: u32, slots: u32, metric: Metric) -> Instance {
    let flow =
        |k: u32| FlowDraft { deadline: Some(5.0), ..flow(&format!("f{k}"), 0.0, 2.0, one_phase(1, 5.0)) };
    instance(Slots::Generic(slots), (0..n).map(flow).collect(), metric, Combine::Sum)
}

fn prices(instance: &Instance) -> Option<f64> {
    task_bounds(instance).iter().find(|bound| bound.name == "prices").map(|bound| bound.value)
}

#[test]
fn prices_say_how_many_must_be_late() {
    // With whole weights there is no value between sums.
    assert_eq!(prices(&due_together(5, 2, Metric::Tardy)), Some(6.0));
    // Two are 5 s late and one 10 s.
    let tardiness = prices(&due_together(5, 2, Metric::Tardiness)).unwrap();
    assert!((36.0..=40.0).contains(&tardiness), "{tardiness}");
}

#[test]
fn prices_hold_for_tasks_in_one_piece_and_are_left_out_elsewhere() {
    let instance = due_together(5, 2, Metric::Tardiness);
    assert!(bounds(&instance).iter().all(|bound| bound.form == Form::Any && bound.name != "prices"));
    let tasks = |bound: &super::Bound| (bound.name == "prices") == (bound.form == Form::Tasks);
    assert!(task_bounds(&instance).iter().all(tasks));
    assert_eq!(prices(&due_together(2, 2, Metric::Tardiness)), Some(0.0), "all are on time");
    let mut uncut = one_phase(1, 1.0);
    uncut.map = Some(TasksDraft::Work { work: 5.0, tasks: None }.into());
    let late = FlowDraft { deadline: Some(1.0), ..flow("f", 0.0, 1.0, uncut) };
    let flows = vec![late, flow("g", 0.0, 1.0, one_phase(1, 1.0))];
    assert_eq!(prices(&self::instance(Slots::Generic(1), flows, Metric::Response, Combine::Sum)), None);
}

/// Three flows of a map of 1 s and a reduce of 4 s, due at 6 s, on three slots for maps and one for reduces:
/// these are done at 5, 9 and 13 s, so two are late, though all slots together could do all work in 3.75 s.
#[test]
fn flows_are_held_against_the_kind_of_slots_that_has_most_to_do() {
    let job = || JobDraft {
        reduce: Some(TasksDraft::Uniform { tasks: 1, seconds: 4.0 }.into()),
        ..one_phase(1, 1.0)
    };
    let late = |id| FlowDraft { deadline: Some(6.0), ..flow(id, 0.0, 1.0, job()) };
    let map_reduce = Slots::MapReduce { map: 3, reduce: 1 };
    for (metric, optimum) in [(Metric::Tardy, 2.0), (Metric::Tardiness, 3.0 + 7.0)] {
        let instance = instance(map_reduce, ["a", "b", "c"].map(late).into(), metric, Combine::Sum);
        let value = value(&instance, "flow-tails");
        assert!((0.4 * optimum..=optimum).contains(&value), "{metric:?}: {value} of {optimum}");
    }
}

/// A fast slot and one of half its speed, and two tasks of 2 s on the fast one: one after the other there, or
/// one on each, they are done at 2 and 4 s.
#[test]
fn slots_of_each_speed_have_their_own_prices() {
    let machine = |name: &str, speed| MachineDraft {
        name: name.into(),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let draft = Draft {
        machines: vec![machine("slow", 1.0), machine("fast", 2.0)],
        flows: ["a", "b"].map(|id| flow(id, 0.0, 1.0, one_phase(1, 4.0))).into(),
        objective: Objective::new(Metric::Response, Combine::Sum),
        ..Draft::default()
    };
    let bound = prices(&Instance::new(&draft).unwrap()).unwrap();
    // With one price for both it is 4: each on the fast one.
    assert!((4.8..=6.0).contains(&bound), "{bound}");
}

#[test]
fn the_search_for_prices_can_be_stopped() {
    let asked = std::cell::Cell::new(0);
    let instance = due_together(5, 2, Metric::Tardiness);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 20
    };
    let bounds = bounds_until(&instance, Form::Tasks, &stop);
    let found = bounds.iter().find(|bound| bound.name == "prices").unwrap();
    let Some(super::Search::Prices { steps, .. }) = found.search else { panic!("{found:?}") };
    assert!((1..20).contains(&steps) && asked.get() == 21, "{steps} steps, asked {} times", asked.get());
    assert!(bounds_until(&instance, Form::Tasks, &|| true).iter().all(|bound| bound.name != "prices"));
}

/// The short job runs beside the long one from the start. If it had to start at the flow's earliest
/// completion less its own length or later, it would delay the other flow. (A bug of a first prototype.)
#[test]
fn the_first_cell_reaches_down_to_the_head_of_a_short_chain() {
    let short = JobDraft { id: "short".into(), ..one_phase(1, 1.0) };
    let both = FlowDraft {
        deadline: Some(10.0),
        ..FlowDraft::new("f", vec![JobDraft { id: "long".into(), ..one_phase(1, 10.0) }, short])
    };
    let other = FlowDraft { deadline: Some(10.0), ..flow("g", 1.0, 1.0, one_phase(1, 9.0)) };
    for metric in [Metric::Tardy, Metric::Tardiness] {
        let flows = vec![both.clone(), other.clone()];
        let instance = instance(Slots::Generic(2), flows, metric, Combine::Sum);
        assert_eq!(prices(&instance), Some(0.0), "all are on time: {metric:?}");
    }
}
