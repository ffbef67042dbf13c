//! Job ordering: the example of section 5.3, Lemma 2, Theorems 1 and 4.

use slackline_algo::ordering::estimator::{Mode, estimate};
use slackline_algo::ordering::exhaustive::ex_mk_sf_jr;
use slackline_algo::ordering::orders::{Candidates, Goal, Times, all_orders, mk_jr};
use slackline_algo::ordering::plan::in_order;
use slackline_algo::ordering::split::{Config, mk_sf_jr};
use slackline_algo::ordering::splits::Splits;
use slackline_algo::ordering::workload::{Split, Workload};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Draft, Instance, JobId, PhaseKind, SlotKind};

use crate::counterexamples::CounterexampleEntry;
use crate::counterexamples::drawing::{Bar, bars};

/// Tasks and seconds of the maps, then of the reduces.
type Shape = ((u32, u32), (u32, u32));

/// Six map and six reduce slots; five jobs whose long reduces leave the reduce slots staggered.
const STAGGERED: [Shape; 7] = [
    ((6, 100), (1, 600)),
    ((6, 100), (1, 600)),
    ((6, 100), (1, 600)),
    ((6, 100), (1, 600)),
    ((6, 100), (1, 600)),
    ((6, 100), (3600, 1)),
    ((6, 101), (1, 600)),
];

fn instance(shapes: &[Shape], map_slots: u32, reduce_slots: u32) -> Result<Instance, String> {
    let phase = |(tasks, seconds): (u32, u32)| {
        Some(TasksDraft::Uniform { tasks, seconds: f64::from(seconds) }.into())
    };
    let flow = |(k, &(map, reduce)): (usize, &Shape)| {
        let job =
            JobDraft { id: "job".to_owned(), map: phase(map), reduce: phase(reduce), ..JobDraft::default() };
        FlowDraft::new(format!("J{}", k + 1), vec![job])
    };
    let slots = Slots::MapReduce { map: map_slots, reduce: reduce_slots };
    let node = MachineDraft { name: "node".to_owned(), count: 1, speed: 1.0, slots, rack: None };
    let flows = shapes.iter().enumerate().map(flow).collect();
    let draft = Draft { machines: vec![node], flows, ..Draft::default() };
    Instance::new(&draft).map_err(|error| error.to_string())
}

/// The tasks of an order on their slots, reduce slots above the map slots.
fn drawn(
    title: &str,
    instance: &Instance,
    order: &[JobId],
    last: f64,
    marks: &[(f64, &str)],
) -> Result<String, String> {
    let plan = in_order(instance, order.to_vec(), Mode::WorkConserving).map_err(|error| error.to_string())?;
    let maps = f64::from(instance.cluster().slots(SlotKind::Map));
    let mut shown: Vec<Bar> = Vec::new();
    for row in plan.tasks.rows() {
        let job = instance.flow_of(row.phase).index();
        let base = if instance.phase(row.phase).kind == PhaseKind::Map { 0.0 } else { maps };
        for place in plan.tasks.places(row) {
            let (low, high) = (base + f64::from(place.first), base + f64::from(place.first + place.len));
            let (start, end) = (row.start.seconds(), row.end.seconds());
            // Waves of one phase on the same slots are drawn as one.
            let before = shown.iter_mut().rev().find(|bar| bar.low == low && bar.high == high);
            match before {
                Some(bar) if bar.job == job && bar.end == start => bar.end = end,
                _ => shown.push(Bar { job, name: format!("J{}", job + 1), start, end, low, high }),
            }
        }
    }
    bars(title, &shown, last, marks)
}

struct Staggered {
    instance: Instance,
    workload: Workload,
    split: Split,
    /// MK_JR's order and its makespan, seconds.
    found: (Vec<JobId>, f64),
    /// The best of all orders and its makespan, seconds.
    best: (Vec<JobId>, f64),
    /// The printed factor 1 + δ.
    factor: f64,
}

/// F: the least makespan of the jobs as a flow shop of two machines, whose times are works over slots
/// (Johnson's rule).
fn fluid(workload: &Workload, split: Split) -> f64 {
    let (map, reduce) = (f64::from(split.map()), f64::from(split.reduce()));
    let times = |job: &slackline_algo::ordering::workload::Job| {
        (job.map.work().slot_seconds() / map, job.reduce.work().slot_seconds() / reduce)
    };
    let all = workload.jobs().iter().map(times);
    let (mut first, mut second): (Vec<_>, Vec<_>) = all.partition(|(map, reduce)| map <= reduce);
    first.sort_by(|a, b| a.0.total_cmp(&b.0));
    second.sort_by(|a, b| b.1.total_cmp(&a.1));
    let done = first.iter().chain(&second).fold((0.0f64, 0.0f64), |(maps, reduces), (map, reduce)| {
        (maps + map, (maps + map).max(reduces) + reduce)
    });
    done.1
}

fn staggered() -> Result<Staggered, String> {
    let instance = instance(&STAGGERED, 6, 6)?;
    let workload = Workload::from_instance(&instance).map_err(|error| error.to_string())?;
    let split = Split::new(6, 6).map_err(|error| error.to_string())?;
    let order = mk_jr(&workload, split, Times::Area);
    let makespan = estimate(&workload, &order, split, Mode::WorkConserving).makespan().seconds();
    let (best, _) = all_orders(&workload, split, Mode::WorkConserving, Goal::Makespan)
        .map_err(|error| error.to_string())?;
    let least = best.makespan.seconds();
    // δ is the longest map and the longest reduce over the bound F on the makespan.
    let bound = fluid(&workload, split);
    let longest = |of: fn(&slackline_algo::ordering::workload::Job) -> f64| {
        workload.jobs().iter().map(of).fold(0.0, f64::max)
    };
    let delta =
        (longest(|job| job.map.longest().seconds()) + longest(|job| job.reduce.longest().seconds())) / bound;
    Ok(Staggered {
        found: (order, makespan),
        best: (best.order, least),
        factor: 1.0 + delta,
        instance,
        workload,
        split,
    })
}

/// Section 5.3: "the optimal order".
pub(super) fn example() -> Result<CounterexampleEntry, String> {
    let shapes = [((10, 9), (1, 10)), ((8, 11), (1, 15))];
    let instance = instance(&shapes, 10, 10)?;
    let workload = Workload::from_instance(&instance).map_err(|error| error.to_string())?;
    let split = Split::new(10, 10).map_err(|error| error.to_string())?;
    let (one, other) = ([JobId(0), JobId(1)], [JobId(1), JobId(0)]);
    let takes =
        |order: &[JobId]| estimate(&workload, order, split, Mode::WorkConserving).makespan().seconds();
    let (printed, better) = (takes(&one), takes(&other));
    Ok(CounterexampleEntry {
        id: "ordering-example",
        paper: "job-ordering",
        at: "Section 5.3",
        printed: "Of two jobs on 10 map and 10 reduce slots the optimal order is J1, J2, with a makespan of 35.",
        example: "The paper's own: J1 has 10 maps of 9 s and a reduce of 10 s, J2 8 maps of 11 s and a reduce of 15 s.",
        found: vec![format!("J1, J2: {printed} s"), format!("J2, J1: {better} s")],
        refuted: better < printed,
        pictures: vec![
            drawn(&format!("J1, J2: {printed} s"), &instance, &one, printed, &[])?,
            drawn(&format!("J2, J1: {better} s"), &instance, &other, printed, &[])?,
        ],
        instead: "Orders by work over slots, as the algorithm is printed, are optimal here; the example must have been made with stage durations, whose orders are not stable.",
    })
}

/// Lemma 2: an upper bound on the makespan of an order.
pub(super) fn lemma_2() -> Result<CounterexampleEntry, String> {
    let it = staggered()?;
    let (map, reduce) = (f64::from(it.split.map()), f64::from(it.split.reduce()));
    let (mut before, mut longest, mut worst) = (0.0, 0.0f64, 0.0f64);
    let mut rest: f64 = it.workload.jobs().iter().map(|job| job.reduce.work().slot_seconds() / reduce).sum();
    for job in &it.found.0 {
        let job = &it.workload.jobs()[*job];
        before += job.map.work().slot_seconds() / map;
        longest = longest.max(job.map.longest().seconds());
        worst = worst.max(before + longest + rest);
        rest -= job.reduce.work().slot_seconds() / reduce;
    }
    let bound =
        worst + it.workload.jobs().iter().map(|job| job.reduce.longest().seconds()).fold(0.0, f64::max);
    let takes = it.found.1;
    Ok(CounterexampleEntry {
        id: "ordering-lemma-2",
        paper: "job-ordering",
        at: "Lemma 2",
        printed: "Jobs served in an order are done by the printed sum of their maps, the reduces that follow, the longest map and the longest reduce.",
        example: "Six map and six reduce slots; five jobs of 6 maps of 100 s and a reduce of 600 s, one of 6 maps and 3,600 reduces of 1 s, one of 6 maps of 101 s and a reduce of 600 s.",
        found: vec![format!("bound as printed: {bound} s"), format!("makespan of the order: {takes} s")],
        refuted: takes > bound + 1e-9,
        pictures: vec![drawn(
            "In the order of the jobs",
            &it.instance,
            &it.found.0,
            takes,
            &[(bound, "bound as printed")],
        )?],
        instead: "Reduces still running when a job's maps end are forgotten; with twice the longest reduce the bound holds.",
    })
}

/// Theorem 1: MK_JR is within 1 + δ of the best order.
pub(super) fn theorem_1() -> Result<CounterexampleEntry, String> {
    let it = staggered()?;
    let ((order, takes), (best, least)) = (&it.found, &it.best);
    Ok(CounterexampleEntry {
        id: "ordering-theorem-1",
        paper: "job-ordering",
        at: "Theorem 1",
        printed: "The makespan of MK_JR is at most 1 + δ times that of the best order.",
        example: "The seven jobs of Lemma 2.",
        found: vec![
            format!("MK_JR: {takes} s; the best of all 5,040 orders: {least} s; ratio {:.3}", takes / least),
            format!("1 + δ = {:.3}", it.factor),
        ],
        refuted: takes / least > it.factor + 1e-9,
        pictures: vec![
            drawn(&format!("MK_JR: {takes} s"), &it.instance, order, *takes, &[])?,
            drawn(&format!("The best order: {least} s"), &it.instance, best, *takes, &[])?,
        ],
        instead: "The factor 1 + (longest map + twice the longest reduce) / F holds.",
    })
}

/// Theorem 4: the same for MK_SF_JR, which also chooses the split of slots.
pub(super) fn theorem_4() -> Result<CounterexampleEntry, String> {
    let it = staggered()?;
    let splits = Splits::of_nodes(6, 2).map_err(|error| error.to_string())?;
    let mut config = Config::standard();
    config.mk_jr = Candidates::Only(Times::Area);
    let found = mk_sf_jr(&it.workload, splits, config).choice;
    let best = ex_mk_sf_jr(&it.workload, splits, config.mode).map_err(|error| error.to_string())?.choice;
    let (takes, least) = (found.makespan.seconds(), best.makespan.seconds());
    Ok(CounterexampleEntry {
        id: "ordering-theorem-4",
        paper: "job-ordering",
        at: "Theorem 4",
        printed: "The makespan of MK_SF_JR, which chooses the split of slots too, is at most 1 + δ times the least of all orders and splits.",
        example: "The seven jobs of Lemma 2 on six nodes of two slots, which have one split only.",
        found: vec![
            format!(
                "MK_SF_JR: {takes} s; the best of all orders and splits: {least} s; ratio {:.3}",
                takes / least
            ),
            format!("1 + δ = {:.3}", it.factor),
        ],
        refuted: takes / least > it.factor + 1e-9,
        pictures: vec![
            drawn(&format!("MK_SF_JR: {takes} s"), &it.instance, &found.order, takes, &[])?,
            drawn(&format!("The best: {least} s"), &it.instance, &best.order, takes, &[])?,
        ],
        instead: "As for Theorem 1; `tune` says how far each split is from the best.",
    })
}
