//! `woha-fig7`: copies of one workflow, the later ones with the earlier deadlines.
//!
//! **Paper**: WOHA, section V-A and figure 7; section VI-A, figures 11 and 12.
//!
//! **Given**: three workflows of the same topology of 33 jobs, submitted at 0, 5 and 10 minutes with
//! relative deadlines of 80, 70 and 60 minutes, on 32 slaves of two map slots and one reduce slot.
//!
//! **Open**: the topology (a picture) and the jobs' sizes. Here: a random DAG in `layers`, and jobs as in
//! figures 5 and 6 (see `woha.rs`), cut off at counts that suit 32 slaves; then all seconds are scaled by
//! one factor so that one workflow alone takes the `share` of the tightest relative deadline. At the
//! default the busier kind of slots is needed by the three together for half to nine tenths of the 80
//! minutes: tight, but not beyond a good order.

use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::dag::{Wiring, layered};
use super::generator::{GenerateError, Generator, Params};
use super::shape;
use super::shape::{alone, typed_nodes, whole_micros};
use super::woha::{self, jobs, maps_max, reduce_seconds_max, reduces_max};
use crate::random;

pub(super) const GENERATOR: Generator = Generator {
    name: "woha-fig7",
    summary: "WOHA figure 7: three like workflows of 33 jobs, the later ones more urgent, on 32 slaves",
    params: &[
        Param::new("workflows", "3", Values::Count(1, 10_000), "copies of the workflow"),
        Param::new("jobs", "33", Values::Count(1, 10_000), "jobs of the workflow"),
        Param::new("layers", "6", Values::Count(1, 10_000), "levels of the workflow"),
        Param::new("fan-in", "3", Values::Count(1, 10_000), "most predecessors of a job"),
        Param::new("fan-out", "4", Values::Count(1, 10_000), "most successors of a job, where possible"),
        Param::new("interval", "300", Values::Seconds(0.0, 1e6), "seconds between submissions"),
        Param::new(
            "deadline",
            "4800",
            Values::Seconds(0.0, 1e8),
            "relative deadline of the first, in seconds",
        ),
        Param::new(
            "deadline-step",
            "600",
            Values::Seconds(0.0, 1e8),
            "how much earlier each later one is due",
        ),
        Param::new(
            "share",
            "0.4",
            Values::Real(0.0, 1e3),
            "time alone divided by the tightest relative deadline; 0 leaves the seconds as drawn",
        ),
        woha::MAPS,
        woha::REDUCES,
        woha::MAP_SECONDS,
        woha::REDUCE_SECONDS,
        maps_max("300"),
        reduces_max("30"),
        reduce_seconds_max("1000"),
        shape::machines_param("32"),
        shape::map_slots_param("2"),
        shape::reduce_slots_param("1"),
    ],
    make,
};

fn make(params: &Params, seed: Seed) -> Result<Draft, GenerateError> {
    let n = params.count("workflows");
    let relative = |k: u32| params.real("deadline") - params.real("deadline-step") * f64::from(k);
    let tightest = relative(n - 1);
    if tightest <= 0.0 {
        return Err(params.conflict(
            format!("a relative deadline of {tightest} s for the last workflow"),
            "a positive one: deadline above deadline-step times the workflows after the first",
        ));
    }
    let mut draft = Draft {
        machines: typed_nodes(params),
        objective: Objective::new(Metric::Tardiness, Combine::Sum),
        ..Draft::default()
    };
    let shape = Wiring {
        layers: params.count("layers") as usize,
        fan_in: params.count("fan-in") as usize,
        fan_out: params.count("fan-out") as usize,
    };
    let after = layered(&mut random::rng(seed, "topology", 0), params.count("jobs") as usize, shape);
    let jobs = jobs(params, &mut random::rng(seed, "jobs", 0), &after);
    draft.flows = vec![FlowDraft::new("w1", jobs)];
    let share = params.real("share");
    if share > 0.0 {
        let factor = share * tightest / alone(&draft)?[0];
        draft.flows[0].jobs.iter_mut().for_each(|job| scale(job, factor));
    }
    let jobs = draft.flows.remove(0).jobs;
    for k in 0..n {
        let release = params.real("interval") * f64::from(k);
        draft.flows.push(FlowDraft {
            release,
            deadline: Some(release + relative(k)),
            ..FlowDraft::new(format!("w{}", k + 1), jobs.clone())
        });
    }
    Ok(draft)
}

/// Makes every task of a job `factor` times as long.
fn scale(job: &mut JobDraft, factor: f64) {
    for phase in [&mut job.map, &mut job.reduce].into_iter().flatten() {
        if let TasksDraft::Uniform { seconds, .. } = &mut phase.tasks {
            *seconds = whole_micros(*seconds * factor);
        }
    }
}
