//! What a table is about: the workload, the cluster, the load, in a few lines above it.

use slackline_model::cluster::Slots;
use slackline_model::{Combine, Instance, Metric, Objective};

use crate::report::number::{Unit, counted, number};

/// `nightly.toml: 8 flows, 14 jobs, 310 tasks on 8 machines (16 map and 8 reduce slots)`.
pub fn headline(name: &str, instance: &Instance) -> String {
    format!(
        "{name}: {}, {}, {} on {}",
        counted(instance.flows().len() as u64, "flow"),
        counted(instance.jobs().len() as u64, "job"),
        counted(instance.n_tasks(), "task"),
        cluster(instance),
    )
}

/// `8 machines (16 map and 8 reduce slots)`, with the speeds where they are not all 1.
pub fn cluster(instance: &Instance) -> String {
    let cluster = instance.cluster();
    let lanes = cluster.lanes().iter().map(|&lane| format!("{} {}", cluster.slots(lane), lane.name()));
    let total: u64 = cluster.lanes().iter().map(|&lane| u64::from(cluster.slots(lane))).sum();
    let lanes = lanes.collect::<Vec<_>>().join(" and ");
    let slots = if total == 1 { "slot" } else { "slots" };
    let used = |group: &&slackline_model::cluster::Group| match group.slots {
        Slots::Universal(n) => n > 0,
        Slots::Typed { map, reduce } => map + reduce > 0,
    };
    let speeds = || cluster.groups().iter().filter(used).map(|group| group.speed);
    let (slowest, fastest) = (speeds().fold(f64::INFINITY, f64::min), speeds().fold(0.0, f64::max));
    let speeds = match (slowest, fastest) {
        (1.0, 1.0) => String::new(),
        (slowest, fastest) if slowest == fastest => format!(", speed {slowest}"),
        (slowest, fastest) => format!(", speeds {slowest} to {fastest}"),
    };
    format!("{} ({lanes} {slots}{speeds})", counted(u64::from(cluster.n_machines()), "machine"))
}

/// `sum of response` or `makespan`: what is to be small.
pub fn objective(objective: Objective) -> String {
    match (objective.metric, objective.combine) {
        (Metric::Makespan, _) => Metric::Makespan.name().to_owned(),
        (metric, Combine::Sum) => format!("sum of {metric}"),
        (metric, Combine::Max) => format!("largest {metric}"),
    }
}

/// `offered load: map 81.0 %, reduce 44.0 %`: work that arrives over what the slots can do meanwhile;
/// `work` instead where all flows arrive at once. Lanes are `(name, offered, slot-seconds of work)`.
pub fn load(lanes: &[(&str, Option<f64>, f64)]) -> String {
    let known = lanes.iter().all(|(_, offered, _)| offered.is_some());
    let each = lanes.iter().map(|&(lane, offered, work)| match offered {
        Some(offered) if known => format!("{lane} {}", number(offered, Unit::Percent)),
        _ => format!("{lane} {} slot-seconds", number(work, Unit::Measure)),
    });
    let each = each.collect::<Vec<_>>().join(", ");
    format!("{}: {each}", if known { "offered load" } else { "work" })
}

/// `lower bound 1,234`, or that there is none.
pub fn bound(bound: Option<f64>) -> String {
    bound.map_or_else(|| "no lower bound".to_owned(), |b| format!("lower bound {}", number(b, Unit::Measure)))
}
