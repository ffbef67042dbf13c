//! What both WOHA generators share: jobs with the statistics of a Yahoo! cluster.
//!
//! **Paper**: WOHA, section V-A, figures 5 and 6.
//!
//! **Given**: most maps take 10 to 100 s; more than half of the reduces take more than 100 s and about a
//! tenth more than 1000 s; about 30 % of the jobs have more than 100 maps; more than 60 % have fewer than
//! 10 reduces.
//!
//! **Open**: the distributions. Here: lognormals, one draw a job and phase. Seconds of a map have 90 %
//! between 10 and 100; seconds of a reduce have median 120 and 10 % above 1000; counts of maps have
//! median 30 and 30 % above 100; counts of reduces have median 5 and 65 % below 10, and those that round
//! to none (a tenth of the jobs) make a job map-only. Counts and seconds of reduces are cut off at
//! parameters, because the figures' tails cannot be read.

use slackline_model::draft::JobDraft;

use super::shape::{job, job_name};
use super::{Param, Params, Values, dag};
use crate::random::{self, ChaCha8Rng};

/// Mean and standard deviation of the logarithm.
type LogNormal = (f64, f64);

/// ln √(10 · 100), and ln √10 over the 95 % quantile of the standard normal.
const MAP_SECONDS: LogNormal = (3.4539, 0.6999);
/// ln 120, and (ln 1000 − ln 120) over the 90 % quantile.
const REDUCE_SECONDS: LogNormal = (4.7875, 1.6545);
/// ln 30, and (ln 100 − ln 30) over the 70 % quantile.
const MAPS: LogNormal = (3.4012, 2.2959);
/// ln 5, and (ln 10 − ln 5) over the 65 % quantile.
const REDUCES: LogNormal = (1.6094, 1.7989);

/// The parameter `maps-max` of [`jobs`].
pub(super) const fn maps_max(default: &'static str) -> Param {
    Param::new("maps-max", default, Values::Count(1, 1_000_000), "most maps of a job")
}

/// The parameter `reduces-max` of [`jobs`].
pub(super) const fn reduces_max(default: &'static str) -> Param {
    Param::new("reduces-max", default, Values::Count(0, 1_000_000), "most reduces of a job")
}

/// The parameter `reduce-seconds-max` of [`jobs`].
pub(super) const fn reduce_seconds_max(default: &'static str) -> Param {
    Param::new("reduce-seconds-max", default, Values::Real(1.0, 1e6), "most seconds of a reduce as drawn")
}

/// Jobs with this precedence and those statistics.
pub(super) fn jobs(params: &Params, rng: &mut ChaCha8Rng, after: &[Vec<usize>]) -> Vec<JobDraft> {
    let jobs = after.iter().enumerate().map(|(k, after)| {
        let maps = draw(rng, MAPS).round().clamp(1.0, f64::from(params.count("maps-max")));
        let reduces = draw(rng, REDUCES).round().min(f64::from(params.count("reduces-max")));
        let map_seconds = draw(rng, MAP_SECONDS);
        let reduce_seconds = draw(rng, REDUCE_SECONDS).min(params.real("reduce-seconds-max"));
        job(job_name(k), dag::names(after), (maps as u32, map_seconds), (reduces as u32, reduce_seconds))
    });
    jobs.collect()
}

fn draw(rng: &mut ChaCha8Rng, (mu, sigma): LogNormal) -> f64 {
    random::lognormal(rng, mu, sigma)
}
