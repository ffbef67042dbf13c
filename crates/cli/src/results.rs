//! From what the library found to what is printed of it.

use std::io::{self, Write};

use slackline::judge::Metrics;
use slackline::load;
use slackline::policy::Admission;
use slackline::report::number::{Unit, number};
use slackline::report::{Figures, headline};
use slackline::simulate::Simulated;
use slackline_model::schedule::FlowStatus;
use slackline_model::{FlowId, Instance, Schedule, Time};
use slackline_trace::Meta;

use crate::input::Loaded;
use crate::out;
use crate::recorded::Options;

/// The figures of a simulation, in the order of the comparison document.
pub(crate) fn figures(simulated: &Simulated) -> Figures {
    let mut figures = figures_of(&simulated.schedule, &simulated.metrics);
    figures.metrics.push(("decisions", Some(simulated.decisions as f64)));
    if let Some(timings) = simulated.timings {
        figures.metrics.push(("decision_seconds_p99", Some(timings.decision_seconds_p99)));
        figures.metrics.push(("seconds", Some(timings.seconds)));
    }
    figures
}

/// The figures of a schedule. Those of flows that are done are none if none is.
pub(crate) fn figures_of(schedule: &Schedule, metrics: &Metrics) -> Figures {
    let failed = failed(schedule);
    let nothing = failed > 0 && failed == schedule.flows.len();
    let of_all = |name: &str| matches!(name, "deadlines" | "missed" | "tasks");
    let known =
        |&(name, value): &(&'static str, f64)| (name, Some(value).filter(|_| !nothing || of_all(name)));
    Figures {
        cost: schedule.cost,
        lower_bound: schedule.lower_bound,
        gap: schedule.gap,
        failed,
        metrics: metrics.entries().iter().map(known).collect(),
    }
}

/// How many flows failed.
pub(crate) fn failed(schedule: &Schedule) -> usize {
    schedule.flows.iter().filter(|row| row.status == FlowStatus::Failed).count()
}

/// What a result is about: workload, cluster and load.
pub(crate) fn headlines(name: &str, instance: &Instance) -> String {
    let load = load::offered(instance);
    let lanes: Vec<_> = load.iter().map(|l| (l.lane.name(), l.offered, l.work)).collect();
    format!("{}\n{}\n", headline::headline(name, instance), headline::load(&lanes))
}

/// Says what should be known before results are believed: more load than the cluster can bear.
pub(crate) fn warn_of_load(instance: &Instance) {
    for load in load::offered(instance) {
        if let Some(offered) = load.offered.filter(|offered| *offered > 1.0) {
            out::warn(format_args!(
                "offered load of the {} slots is {}: flows arrive faster than they can be served, so how \
                 long they take depends on how long the workload goes on",
                load.lane.name(),
                number(offered, Unit::Percent),
            ));
        }
    }
}

/// What a schedule says of itself beside what happened.
pub(crate) fn meta(loaded: &Loaded, options: Options, seed: u64, schedule: &Schedule) -> Meta {
    Meta {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        sha256: loaded.sha256.clone(),
        options,
        seed,
        status: slackline_trace::schedule::status(schedule.cost, schedule.lower_bound),
    }
}

/// Writes the schedule document of a simulation, its metrics among its claims.
pub(crate) fn write_schedule(
    out: &mut dyn Write,
    instance: &Instance,
    schedule: &mut Schedule,
    (figures, meta): (&Figures, &Meta),
) -> io::Result<()> {
    let known = figures.metrics.iter().filter_map(|&(name, value)| Some((name.to_owned(), value?)));
    schedule.metrics = known.collect();
    slackline_trace::write_schedule(out, instance, schedule, meta)
}

/// `edf: sum of response 1,234, lower bound 1,000: within 23.4 % of optimal`.
pub(crate) fn outcome(schedule: &Schedule, status: &str) -> String {
    let cost = schedule.cost.map_or_else(|| "none, flows failed".to_owned(), |c| number(c, Unit::Measure));
    let bound = headline::bound(schedule.lower_bound);
    let status = if schedule.lower_bound.is_some() { format!(": {status}") } else { String::new() };
    let objective = headline::objective(schedule.objective);
    format!("{}: {objective} {cost}, {bound}{status}\n", schedule.policy)
}

/// Which flows were told at their arrival that their deadline cannot be met, and when they can be done at
/// the earliest: a line each, at most ten of them, after an empty one; nothing if there are none.
pub(crate) fn admissions(instance: &Instance, admissions: &[(FlowId, Admission)]) -> String {
    const SHOWN: usize = 10;
    let hopeless: Vec<_> = admissions.iter().filter(|(_, admission)| !admission.feasible).collect();
    let mut text = String::new();
    for (flow, admission) in hopeless.iter().take(SHOWN) {
        let flow = instance.flow(*flow);
        let due = flow.deadline.map_or(0.0, Time::seconds);
        let (due, earliest) =
            (number(due, Unit::Measure), number(admission.earliest_completion.seconds(), Unit::Measure));
        let line = format!(
            "\n{}: deadline {due} cannot be met, {earliest} at the earliest with the whole cluster",
            flow.id
        );
        text.push_str(&line);
    }
    if hopeless.len() > SHOWN {
        text.extend(["\n… and ", &(hopeless.len() - SHOWN).to_string(), " more flows"]);
    }
    if text.is_empty() { text } else { text + "\n" }
}
