//! `flowflex-5.2`: flows of jobs with map and reduce phases, all at once or arriving at random.
//!
//! **Paper**: FlowFlex, section 5.2.
//!
//! **Given**: 10 flows of 2 to 10 jobs of the Hadoop Gridmix2 benchmark, of random sizes, wired as in
//! section 5.1; all at once, or at random intervals from an exponential distribution.
//!
//! **Open**: everything about the jobs and the cluster. Here: maps log-uniform over `maps`, since
//! Gridmix mixes small, medium and large jobs; one reduce for every `maps-per-reduce` maps, at least one,
//! except for a share of map-only jobs; seconds of a task uniform, one draw a job and phase; `gap` = 0
//! is all at once.

use std::ops::RangeInclusive;

use slackline_model::draft::{FlowDraft, JobDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::dag;
use super::generator::{Generator, Params};
use super::shape::{
    count_in, job, job_name, machines_param, map_slots_param, phase, real_in, reduce_slots_param,
    typed_nodes, whole_micros,
};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "flowflex-5.2",
    summary: "FlowFlex section 5.2: flows of Gridmix-like map and reduce jobs on map and reduce slots",
    params: &[
        Param::new("flows", "10", Values::Counts(1, 100_000), "flows"),
        Param::new("jobs", "2..10", Values::Counts(1, 1000), "jobs of a flow"),
        Param::new("edge", "0.5", Values::Real(0.0, 1.0), "probability that one job comes after another"),
        Param::new("gap", "0", Values::Seconds(0.0, 1e6), "mean seconds between arrivals; 0 for all at once"),
        Param::new("maps", "3..300", Values::Counts(1, 1_000_000), "maps of a job, log-uniform"),
        Param::new("map-only", "0.2", Values::Real(0.0, 1.0), "share of jobs without reduces"),
        Param::new("maps-per-reduce", "5", Values::Real(1.0, 1e6), "maps for each reduce"),
        Param::new("map-seconds", "10..30", Values::SecondsRange(0.0, 1e6), "seconds of a map"),
        Param::new("reduce-seconds", "20..60", Values::SecondsRange(0.0, 1e6), "seconds of a reduce"),
        machines_param("16"),
        map_slots_param("4"),
        reduce_slots_param("2"),
    ],
    make: |params, seed| Ok(make(params, seed)),
};

fn make(params: &Params, seed: Seed) -> Draft {
    let n = count_in(&mut random::rng(seed, "flows", 0), &params.counts("flows"));
    let mut arrivals = random::rng(seed, "arrivals", 0);
    let mut now = 0.0;
    let mut flows = Vec::with_capacity(n as usize);
    for k in 0..n {
        let jobs = jobs(params, &mut random::rng(seed, "flow", u64::from(k)));
        flows.push(FlowDraft { release: whole_micros(now), ..FlowDraft::new(format!("f{}", k + 1), jobs) });
        now += random::exponential(&mut arrivals, params.real("gap"));
    }
    Draft {
        flows,
        machines: typed_nodes(params),
        objective: Objective::new(Metric::Response, Combine::Sum),
        ..Draft::default()
    }
}

fn jobs(params: &Params, rng: &mut ChaCha8Rng) -> Vec<JobDraft> {
    let n = count_in(rng, &params.counts("jobs")) as usize;
    let after = dag::random_edges(rng, n, params.real("edge"));
    let jobs = after.iter().enumerate().map(|(k, after)| {
        let maps = log_uniform(rng, &params.counts("maps"));
        let map_only = random::chance(rng, params.real("map-only"));
        let reduces = if map_only { 0.0 } else { (maps / params.real("maps-per-reduce")).ceil() };
        let map_seconds = real_in(rng, &params.reals("map-seconds"));
        let reduce_seconds = real_in(rng, &params.reals("reduce-seconds"));
        job(
            job_name(k),
            dag::names(after),
            phase(maps as u32, map_seconds),
            phase(reduces as u32, reduce_seconds),
        )
    });
    jobs.collect()
}

/// A whole number on the closed range whose logarithm is about uniform.
fn log_uniform(rng: &mut ChaCha8Rng, range: &RangeInclusive<u32>) -> f64 {
    let (low, high) = (f64::from(*range.start()), f64::from(*range.end()));
    let draw = libm::exp(real_in(rng, &(libm::log(low)..=libm::log(high))));
    draw.round().clamp(low, high)
}
