//! `facebook-day`: one-job flows at the scale of a day of the 2010 Facebook cluster.
//!
//! **Paper**: none; the sizes are those of a day of the SWIM trace FB-2010 (24,442 jobs), the durations
//! those of Tang, Lee, He, section 7.2, as in `facebook-table3`.
//!
//! **Given** by that trace at a split of 64 MiB: 16.2 million maps; 59.7 % of the jobs have one map and
//! 72.7 % at most 15 (1 GB); the largest has 174,613; 1.15 % have 14,901 or more (1 TB), which together
//! hold 61 % of the maps; mean gap 3.54 s with a coefficient of variation of 1.4 where no hour of the
//! sample is empty; 34 % of the jobs are map-only; 3000 machines.
//!
//! **Open**: the sizes between those points. Here: bounded Pareto pieces, whose exponents 0.28 (15 to
//! 14,901 maps) and 1.3 (above) give each piece the trace's mean; the small jobs log-uniform from 2 to
//! 15. Job k of n takes a quantile drawn from the k-th n-th of the distribution, so that every seed has
//! the same tail; sizes beyond one map are then scaled so that the maps add up to `maps` exactly, and
//! put in random order. Gaps are lognormal, scaled so that the arrivals fill the `day`. A job has one
//! reduce for every `maps-per-reduce` maps (16 maps of 64 MiB are 1 GiB). The seconds of a phase are one
//! draw, or with `durations=each` one draw per task.
//!
//! Slots that are `auto` are the fewest a machine with which the offered load (work of that kind over
//! machines times slots times day) is at most `load`; since the work is heavy-tailed this differs from
//! seed to seed. Machines that are `auto` are 3000 for every 16 million maps.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::facebook_table3::{DURATIONS, tasks};
use super::generator::{GenerateError, Generator, Params};
use super::shape::{apportion, nodes, shuffle, whole_micros};
use crate::importers::durations::{LogNormal, MAP_MILLIS, REDUCE_MILLIS};
use crate::random;

pub(super) const GENERATOR: Generator = Generator {
    name: "facebook-day",
    summary: "a day of heavy-tailed one-job flows at the scale of the 2010 Facebook trace",
    params: &[
        Param::new("jobs", "24000", Values::Count(1, 1_000_000), "jobs"),
        Param::new("maps", "16000000", Values::Count(1, 200_000_000), "maps of all jobs, exactly"),
        Param::new("one-map", "0.597", Values::Real(0.0, 1.0), "share of jobs with a single map"),
        Param::new(
            "small",
            "0.13",
            Values::Real(0.0, 1.0),
            "share of jobs with 2 to 15 maps, before scaling",
        ),
        Param::new("large", "0.0115", Values::Real(0.0, 1.0), "share of jobs from 14,901 to 174,613 maps"),
        Param::new("day", "86400", Values::Seconds(1.0, 1e7), "seconds in which the jobs arrive"),
        Param::new("gap-cv", "1.41", Values::Real(0.0, 100.0), "coefficient of variation of the gaps"),
        Param::new("map-only", "0.34", Values::Real(0.0, 1.0), "share of jobs without reduces"),
        Param::new("maps-per-reduce", "16", Values::Real(1.0, 1e9), "maps for each reduce"),
        DURATIONS,
        Param::new(
            "machines",
            "auto",
            Values::Count(1, 1_000_000),
            "machines; auto: 3000 per 16 million maps",
        )
        .or_word("auto"),
        Param::new("map-slots", "auto", Values::Count(1, 1000), "map slots of each machine; auto by load")
            .or_word("auto"),
        Param::new(
            "reduce-slots",
            "auto",
            Values::Count(1, 1000),
            "reduce slots of each machine; auto by load",
        )
        .or_word("auto"),
        Param::new("load", "0.8", Values::Real(1e-3, 100.0), "most offered load that auto slots may see"),
    ],
    make,
};

/// The sizes at which the pieces of the distribution meet.
const SMALL_MAX: f64 = 15.0;
const LARGE_MIN: f64 = 14_901.0;
const LARGE_MAX: f64 = 174_613.0;
/// Pareto exponents of the pieces between them.
const MIDDLE_EXPONENT: f64 = 0.28;
const LARGE_EXPONENT: f64 = 1.3;

fn make(params: &Params, seed: Seed) -> Result<Draft, GenerateError> {
    let maps = sizes(params, seed)?;
    let releases = arrivals(params, seed, maps.len());
    let mut rng = random::rng(seed, "map-only", 0);
    let mut work = [0.0; 2];
    let mut flows = Vec::with_capacity(maps.len());
    for (k, (maps, release)) in maps.into_iter().zip(releases).enumerate() {
        let map_only = random::chance(&mut rng, params.real("map-only"));
        let per_reduce = params.real("maps-per-reduce");
        let reduces = if map_only { 0 } else { (f64::from(maps) / per_reduce).ceil() as u32 };
        let mut tasks = |kind: usize, stream: &str, n: u32, millis: LogNormal| {
            let (tasks, seconds) = tasks(params, &mut random::rng(seed, stream, k as u64), n, millis);
            work[kind] += seconds;
            tasks
        };
        let job = JobDraft {
            id: "job".to_owned(),
            map: tasks(0, "maps", maps, MAP_MILLIS),
            reduce: tasks(1, "reduces", reduces, REDUCE_MILLIS),
            ..JobDraft::default()
        };
        flows.push(FlowDraft { release, ..FlowDraft::new(format!("job{k}"), vec![job]) });
    }
    let machines = params.count_given("machines").unwrap_or_else(|| {
        let scaled = 3000.0 * f64::from(params.count("maps")) / 16e6;
        scaled.round().max(1.0) as u32
    });
    let per_slot = params.real("load") * params.real("day") * f64::from(machines);
    let slots = |name: &str, work: f64| {
        params.count_given(name).unwrap_or_else(|| (work / per_slot).ceil().clamp(1.0, 1e6) as u32)
    };
    let slots = Slots::MapReduce { map: slots("map-slots", work[0]), reduce: slots("reduce-slots", work[1]) };
    Ok(Draft {
        flows,
        machines: nodes(machines, slots),
        objective: Objective::new(Metric::Response, Combine::Sum),
        ..Draft::default()
    })
}

/// Maps of each job, in order of arrival.
fn sizes(params: &Params, seed: Seed) -> Result<Vec<u32>, GenerateError> {
    let (jobs, total) = (params.count("jobs"), params.count("maps"));
    if total < jobs {
        return Err(params.conflict(format!("{total} maps for {jobs} jobs"), "at least one map per job"));
    }
    let shares = ["one-map", "small", "large"].map(|name| params.real(name));
    if shares.iter().sum::<f64>() > 1.0 + 1e-9 {
        let found = format!("one-map = {}, small = {}, large = {}", shares[0], shares[1], shares[2]);
        return Err(params.conflict(found, "shares that add up to at most 1"));
    }
    let mut rng = random::rng(seed, "sizes", 0);
    let quantiles = (0..jobs).map(|k| (f64::from(k) + random::unit(&mut rng)) / f64::from(jobs));
    let mut beyond_one: Vec<u64> = quantiles.map(|p| size(shares, p).round() as u64 - 1).collect();
    let surplus = u64::from(total - jobs);
    if beyond_one.iter().all(|&n| n == 0) {
        // Only jobs of one map were drawn: the surplus is the largest job's.
        beyond_one[jobs as usize - 1] = 1;
    }
    let mut sizes: Vec<u32> = apportion(surplus, &beyond_one).into_iter().map(|n| 1 + n as u32).collect();
    shuffle(&mut rng, &mut sizes);
    Ok(sizes)
}

/// The `p`-quantile of the sizes before scaling; at least 1.
fn size([one, small, large]: [f64; 3], p: f64) -> f64 {
    let from_top = 1.0 - p;
    if from_top < large {
        pareto(LARGE_MIN, LARGE_MAX, LARGE_EXPONENT, 1.0 - from_top / large)
    } else if p < one {
        1.0
    } else if p < one + small {
        2.0 * libm::exp((p - one) / small * libm::log(SMALL_MAX / 2.0))
    } else {
        let middle = 1.0 - one - small - large;
        let p = ((p - one - small) / middle).min(1.0);
        pareto(SMALL_MAX, LARGE_MIN, MIDDLE_EXPONENT, p)
    }
}

/// The `p`-quantile of a Pareto distribution bounded to `low..=high`.
fn pareto(low: f64, high: f64, exponent: f64, p: f64) -> f64 {
    let tail = libm::pow(low / high, exponent);
    low * libm::pow(1.0 - p * (1.0 - tail), -1.0 / exponent)
}

/// Releases of `n` jobs in seconds: lognormal gaps before, between and after them that fill the day.
fn arrivals(params: &Params, seed: Seed, n: usize) -> Vec<f64> {
    let cv = params.real("gap-cv");
    let sigma = libm::sqrt(libm::log1p(cv * cv));
    let mut rng = random::rng(seed, "arrivals", 0);
    let mut now = 0.0;
    let ends = (0..=n).map(|_| {
        now += random::lognormal(&mut rng, 0.0, sigma);
        now
    });
    let mut ends: Vec<f64> = ends.collect();
    let scale = params.real("day") / now;
    ends.pop();
    ends.into_iter().map(|end| whole_micros(end * scale)).collect()
}
