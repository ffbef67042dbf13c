//! Shared by both WOHA generators: jobs with the statistics of a Yahoo! cluster.
//!
//! **Paper**: WOHA, section V-A, figures 5 and 6.
//!
//! **Given**: most maps take 10 to 100 s; more than half of the reduces take more than 100 s and about a
//! tenth more than 1000 s; about 30 % of the jobs have more than 100 maps; more than 60 % have fewer than
//! 10 reduces.
//!
//! **Open**: the distributions. Here: lognormals, one draw per job and phase, each given by two of its
//! quantiles. Seconds of a map have 90 % in `map-seconds`; seconds of a reduce have their median and 90 %
//! quantile at the ends of `reduce-seconds`; counts of maps their median and 70 % quantile at those of
//! `maps`; counts of reduces their median and 65 % quantile at those of `reduces`, and those that round to
//! none (a tenth of the jobs) make a job map-only. Counts and seconds of reduces are cut off at
//! parameters, because the figures' tails cannot be read.

use slackline_model::draft::JobDraft;
use slackline_model::params::{Param, Values};

use super::dag;
use super::generator::Params;
use super::shape::{job, job_name, phase};
use crate::importers::durations::LogNormal;
use crate::random::ChaCha8Rng;

/// Quantiles of the standard normal: 65 %, 70 %, 90 % and 95 %.
const Q65: f64 = 0.385_320_466_4;
const Q70: f64 = 0.524_400_512_7;
const Q90: f64 = 1.281_551_565_5;
const Q95: f64 = 1.644_853_627_0;

pub(super) const MAP_SECONDS: Param = Param::new(
    "map-seconds",
    "10..100",
    Values::SecondsRange(1e-3, 1e6),
    "5 % and 95 % quantile of the seconds of a map",
);

pub(super) const REDUCE_SECONDS: Param = Param::new(
    "reduce-seconds",
    "120..1000",
    Values::SecondsRange(1e-3, 1e6),
    "median and 90 % quantile of the seconds of a reduce",
);

pub(super) const MAPS: Param =
    Param::new("maps", "30..100", Values::Reals(1.0, 1e6), "median and 70 % quantile of the maps of a job");

pub(super) const REDUCES: Param = Param::new(
    "reduces",
    "5..10",
    Values::Reals(1e-3, 1e6),
    "median and 65 % quantile of the reduces of a job; a count below a half is none",
);

pub(super) const fn maps_max(default: &'static str) -> Param {
    Param::new("maps-max", default, Values::Count(1, 1_000_000), "most maps of a job")
}

pub(super) const fn reduces_max(default: &'static str) -> Param {
    Param::new("reduces-max", default, Values::Count(0, 1_000_000), "most reduces of a job")
}

pub(super) const fn reduce_seconds_max(default: &'static str) -> Param {
    Param::new("reduce-seconds-max", default, Values::Seconds(1.0, 1e6), "most seconds of a reduce as drawn")
}

/// Jobs with this precedence and those statistics.
pub(super) fn jobs(params: &Params, rng: &mut ChaCha8Rng, after: &[Vec<usize>]) -> Vec<JobDraft> {
    let from_median = |name, quantile| {
        let (median, high) = params.reals(name).into_inner();
        log_normal(Quantile { value: median, normal: 0.0 }, Quantile { value: high, normal: quantile })
    };
    let (low, high) = params.reals("map-seconds").into_inner();
    let map_seconds =
        log_normal(Quantile { value: low, normal: -Q95 }, Quantile { value: high, normal: Q95 });
    let reduce_seconds = from_median("reduce-seconds", Q90);
    let (maps, reduces) = (from_median("maps", Q70), from_median("reduces", Q65));
    let jobs = after.iter().enumerate().map(|(k, after)| {
        let maps = maps.draw(rng).round().clamp(1.0, f64::from(params.count("maps-max")));
        let reduces = reduces.draw(rng).round().min(f64::from(params.count("reduces-max")));
        let map = phase(maps as u32, map_seconds.draw(rng));
        let reduce_seconds = reduce_seconds.draw(rng).min(params.real("reduce-seconds-max"));
        job(job_name(k), dag::names(after), map, phase(reduces as u32, reduce_seconds))
    });
    jobs.collect()
}

/// A quantile of a distribution, and the same quantile of the standard normal.
#[derive(Clone, Copy, Debug)]
struct Quantile {
    value: f64,
    normal: f64,
}

/// The lognormal distribution with two given quantiles.
fn log_normal(low: Quantile, high: Quantile) -> LogNormal {
    let (a, b) = (libm::log(low.value), libm::log(high.value));
    let sigma = (b - a) / (high.normal - low.normal);
    LogNormal { mu: a - sigma * low.normal, sigma }
}
