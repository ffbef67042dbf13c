//! The lines above a table: the workload, the cluster and the load.

use slackline_model::schedule::Clock;
use slackline_model::{Combine, FlowId, Instance, Metric, Objective, Schedule, Start};
use slackline_policy::Admission;

use crate::offered_load::{self, Load, Tally};
use crate::report::number::{Unit, comes_twice, counted, instant, number};
use crate::words::grouped;

/// `nightly.toml: 8 flows, 14 jobs, 310 tasks on 8 machines (16 map and 8 reduce slots)`.
pub fn headline(name: &str, instance: &Instance) -> String {
    format!("{} on {}", flows(name, instance), cluster(instance))
}

/// `nightly.toml: 8 flows, 14 jobs, 310 tasks`, for a command that searches for the cluster.
pub fn flows(name: &str, instance: &Instance) -> String {
    format!(
        "{name}: {}, {}, {}",
        counted(instance.flows().len() as u64, "flow"),
        counted(instance.jobs().len() as u64, "job"),
        tasks(instance),
    )
}

/// `2,099 tasks (150 of them cut from work)`. If work is not cut, `1,949 tasks and 1,500 slot-seconds of
/// work`, because the number of tasks depends on the cut.
pub fn tasks(instance: &Instance) -> String {
    tasks_text(instance.n_tasks(), instance.n_cut(), instance.work_uncut().slot_seconds())
}

fn tasks_text(tasks: u64, cut: u64, uncut: f64) -> String {
    let mut text = counted(tasks, "task");
    if cut > 0 {
        text.extend([" (", &number(cut as f64, Unit::Count), " of them cut from work)"]);
    }
    if uncut > 0.0 {
        text.extend([" and ", &number(uncut, Unit::Measure), " slot-seconds of work"]);
    }
    text
}

/// `8 machines (16 map and 8 reduce slots)`, with the speeds if some are not 1.
pub fn cluster(instance: &Instance) -> String {
    let cluster = instance.cluster();
    let slots = |slot_kind| grouped(f64::from(cluster.slots(slot_kind)), 0);
    let slot_kinds =
        cluster.slot_kinds().iter().map(|&slot_kind| format!("{} {}", slots(slot_kind), slot_kind.name()));
    let total: u64 = cluster.slot_kinds().iter().map(|&slot_kind| u64::from(cluster.slots(slot_kind))).sum();
    let slot_kinds = slot_kinds.collect::<Vec<_>>().join(" and ");
    let slots = if total == 1 { "slot" } else { "slots" };
    let used = |group: &&slackline_model::cluster::Group| group.slots.total() > 0;
    let speeds = || cluster.groups().iter().filter(used).map(|group| group.speed);
    let (slowest, fastest) = (speeds().fold(f64::INFINITY, f64::min), speeds().fold(0.0, f64::max));
    let speeds = match (slowest, fastest) {
        (1.0, 1.0) => String::new(),
        (slowest, fastest) if slowest == fastest => format!(", speed {slowest}"),
        (slowest, fastest) => format!(", speeds {slowest} to {fastest}"),
    };
    format!("{} ({slot_kinds} {slots}{speeds})", counted(u64::from(cluster.n_machines()), "machine"))
}

/// `sum of response times, s` or `makespan, s`: the quantity to minimize, with its unit.
pub fn objective(objective: Objective) -> String {
    objective_with(objective, false)
}

/// As [`objective`], with `weighted` if weights of the flows count.
pub fn objective_of(instance: &Instance) -> String {
    objective_with(instance.objective(), is_weighted(instance))
}

/// As [`objective`], with `weighted` if `is_weighted`.
pub fn objective_with(objective: Objective, is_weighted: bool) -> String {
    let (name, unit) = named(objective, is_weighted);
    if unit.is_empty() { name } else { format!("{name},{unit}") }
}

/// Whether flows have different weights than 1.
pub fn is_weighted(instance: &Instance) -> bool {
    instance.flows().iter().any(|flow| flow.weight != 1.0)
}

/// The name of an objective, and the unit of its value.
pub(crate) fn named(objective: Objective, is_weighted: bool) -> (String, &'static str) {
    let (many, one, unit, has_weight) = match objective.metric {
        Metric::Makespan => return (Metric::Makespan.name().to_owned(), " s"),
        Metric::Completion => ("completion times", "completion time", " s", true),
        Metric::Response => ("response times", "response time", " s", true),
        Metric::Stretch => ("stretches", "stretch", "", true),
        Metric::Slowdown => ("slowdowns", "slowdown", "", true),
        Metric::Tardy => ("late flows", "cost of a late flow", "", true),
        Metric::Tardiness => ("tardiness", "tardiness", " s", true),
        Metric::Lateness => ("lateness", "lateness", " s", true),
        Metric::Sla => ("SLA costs", "SLA cost", "", false),
        _ => ("piecewise linear costs", "piecewise linear cost", "", false),
    };
    let weighted = if is_weighted && has_weight { "weighted " } else { "" };
    let name = match objective.combine {
        Combine::Sum => format!("{weighted}sum of {many}"),
        Combine::Max => format!("maximum {weighted}{one}"),
    };
    (name, unit)
}

/// The workload, the cluster, the load and the start if it is known, one line each.
pub fn lines(name: &str, instance: &Instance) -> String {
    let start = instance.start().map_or_else(String::new, start);
    format!("{}\n{}\n{start}", headline(name, instance), load(&offered_load::offered(instance)))
}

/// `start: 28 Mar 2026 22:00 Europe/Berlin`.
fn start(start: &Start) -> String {
    let moment = start.moment();
    let seconds = if moment.second() == 0 { "" } else { ":%S" };
    let offset = if comes_twice(moment) { "%:z" } else { "" };
    format!("start: {}\n", moment.strftime(&format!("%-d %b %Y %H:%M{seconds}{offset} %:Q")))
}

/// `offered load: map 81.0 %, reduce 44.0 %`: arriving work relative to the capacity of the slots. `work`
/// instead if the flows arrive in a burst.
pub fn load(slot_kinds: &[Load]) -> String {
    let known = slot_kinds.iter().all(|load| load.offered.is_some());
    let each = slot_kinds.iter().map(|load| match load.offered {
        Some(offered) if known => format!("{} {}", load.slot_kind.name(), number(offered, Unit::Percent)),
        _ => format!("{} {} slot-seconds", load.slot_kind.name(), number(load.work, Unit::Measure)),
    });
    let each = each.collect::<Vec<_>>().join(", ");
    format!("{}: {each}", if known { "offered load" } else { "work" })
}

/// As [`lines`], for a workload that was read as a stream. `cut` is the number of tasks that were cut from
/// work.
pub fn lines_of_stream(name: &str, tally: &Tally, cut: u64, empty: &Instance) -> String {
    let start = empty.start().map_or_else(String::new, start);
    let headline = format!(
        "{name}: {}, {}, {} on {}",
        counted(tally.flows, "flow"),
        counted(tally.jobs, "job"),
        tasks_text(tally.tasks, cut, 0.0),
        cluster(empty),
    );
    format!("{headline}\n{}\n{start}", load(&tally.offered(empty.cluster())))
}

/// Warnings about the results: an empty workload, and each kind of slots that is overloaded.
pub fn warnings(instance: &Instance) -> Vec<String> {
    if instance.flows().is_empty() {
        return vec!["the workload has no flows, so there is nothing to simulate".to_owned()];
    }
    warnings_of(offered_load::offered(instance))
}

/// The warnings for overloaded kinds of slots.
pub fn warnings_of(slot_kinds: Vec<Load>) -> Vec<String> {
    let warning = |load: Load| {
        let offered = load.offered.filter(|_| load.is_too_much)?;
        Some(format!(
            "the {} slots are overloaded (load {}): response times grow with the length of the trace",
            load.slot_kind.name(),
            number(offered, Unit::Percent),
        ))
    };
    slot_kinds.into_iter().filter_map(warning).collect()
}

/// `lower bound 1,234`, or a note that there is no bound or none above 0.
pub fn bound(bound: Option<f64>) -> String {
    match bound {
        None => "no lower bound".to_owned(),
        Some(0.0) => "no bound above 0 found".to_owned(),
        Some(bound) => format!("lower bound {}", number(bound, Unit::Measure)),
    }
}

/// `edf: sum of response times 1,234 s, lower bound 1,000: at most 23.4 % above optimal`.
/// `is_weighted`: whether flows have other weights than 1.
pub fn outcome(schedule: &Schedule, is_weighted: bool, status: &str) -> String {
    let (objective, unit) = named(schedule.objective, is_weighted);
    let cost =
        schedule.cost.map_or_else(|| "none (flows failed)".to_owned(), |c| number(c, Unit::Measure) + unit);
    let bound = match (schedule.lower_bound, schedule.clock) {
        (None, Clock::Measured) => "no lower bound, because durations differ from the workload".to_owned(),
        (known, _) if schedule.cost == Some(0.0) => {
            known.map_or_else(|| bound(None), |b| format!("lower bound {}", number(b, Unit::Measure)))
        }
        (known, _) => bound(known),
    };
    // A bound of 0 only says that costs are not negative.
    let says_nothing = schedule.lower_bound == Some(0.0) && schedule.cost != Some(0.0);
    let status = match schedule.lower_bound {
        Some(_) if !says_nothing => format!(": {status}"),
        _ => String::new(),
    };
    format!("{}: {objective} {cost}, {bound}{status}\n", schedule.policy)
}

/// The flows whose deadline was reported as infeasible at their arrival, with their earliest completion. One
/// line each, at most ten, after an empty line; empty if there are none.
pub fn admissions(instance: &Instance, admissions: &[(FlowId, Admission)]) -> String {
    const SHOWN: usize = 10;
    let hopeless: Vec<_> = admissions.iter().filter(|(_, admission)| !admission.feasible).collect();
    let mut text = String::new();
    for (flow, admission) in hopeless.iter().take(SHOWN) {
        let flow = instance.flow(*flow);
        let times = [flow.deadline.unwrap_or_default(), admission.earliest_completion];
        let [due, earliest] = times.map(|time| instant(time.seconds(), instance.start()));
        let line = format!(
            "\n{}: deadline {due} cannot be met: alone on the cluster, it finishes at {earliest}",
            flow.id
        );
        text.push_str(&line);
    }
    if hopeless.len() > SHOWN {
        text.extend(["\n… and ", &(hopeless.len() - SHOWN).to_string(), " more flows"]);
    }
    if text.is_empty() { text } else { text + "\n" }
}
