//! `facebook-table3`: the job-ordering paper's synthetic Facebook workload.
//!
//! **Paper**: Tang, Lee, He, job ordering and slot configuration, section 7.2, table 3.
//!
//! **Given**: nine bins of jobs by their maps, the sizes used in each and how many jobs of 50 it has;
//! 100 and 150 jobs by doubling and tripling; reduces 5 % and 25 % of the maps; seconds of maps and
//! reduces lognormal, LN(9.9511, 1.6764) and LN(12.375, 1.6262) in milliseconds; 57 map slots and 19
//! reduce slots.
//!
//! **Open**: the sizes within the first bin (here U{1..25}); which jobs have 5 % and which 25 % (here a
//! share uniform between them, one draw a job, at least one reduce); whether seconds are drawn a task or
//! a job (here one draw a job and phase, as the paper estimates "per job"); the order of the jobs (here
//! random). Other counts than multiples of 50 are divided over the bins by largest remainder.

use slackline_model::draft::FlowDraft;
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::shape::{
    apportion, count_in, job, machines_param, map_slots_param, real_in, reduce_slots_param, shuffle,
    typed_nodes,
};
use super::{Generator, Param, Params, Values};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "facebook-table3",
    summary: "the synthetic Facebook workload of the job-ordering paper (table 3), all released at 0",
    params: &[
        Param::new("jobs", "50", Values::Count(1, 1_000_000), "jobs; the paper uses 50, 100 and 150"),
        Param::new("reduces", "0.05..0.25", Values::Reals(0.0, 10.0), "reduces of a job over its maps"),
        machines_param("19"),
        map_slots_param("3"),
        reduce_slots_param("1"),
    ],
    make: |params, seed| Ok(make(params, seed)),
};

/// Mean and deviation of the logarithm of a map's milliseconds.
pub(super) const MAP_MILLIS: (f64, f64) = (9.9511, 1.6764);
/// Mean and deviation of the logarithm of a reduce's milliseconds.
pub(super) const REDUCE_MILLIS: (f64, f64) = (12.375, 1.6262);

/// Jobs of each bin in the workload of 50.
const JOBS: [u64; 9] = [29, 5, 4, 4, 3, 2, 1, 1, 1];
/// Sizes used in each bin but the first, in turn.
const SIZES: [&[u32]; 8] = [
    &[25, 30, 35, 40, 50],
    &[60, 80, 90, 100],
    &[120, 150, 180, 200],
    &[250, 320, 400],
    &[600, 800],
    &[1200],
    &[2400],
    &[4800],
];

fn make(params: &Params, seed: Seed) -> Draft {
    let mut rng = random::rng(seed, "jobs", 0);
    let mut maps = Vec::with_capacity(params.count("jobs") as usize);
    for (bin, n) in apportion(u64::from(params.count("jobs")), &JOBS).into_iter().enumerate() {
        maps.extend((0..n as usize).map(|i| match bin {
            0 => count_in(&mut rng, (1, 25)),
            _ => SIZES[bin - 1][i % SIZES[bin - 1].len()],
        }));
    }
    shuffle(&mut rng, &mut maps);
    let flows = maps.into_iter().enumerate().map(|(k, maps)| {
        let reduces = (real_in(&mut rng, params.reals("reduces")) * f64::from(maps)).round().max(1.0);
        let map_seconds = seconds(&mut rng, MAP_MILLIS);
        let reduces = (reduces as u32, seconds(&mut rng, REDUCE_MILLIS));
        let job = job("job".to_owned(), Vec::new(), (maps, map_seconds), reduces);
        FlowDraft::new(format!("J{}", k + 1), vec![job])
    });
    Draft {
        flows: flows.collect(),
        machines: typed_nodes(params),
        objective: Objective::new(Metric::Makespan, Combine::Max),
        ..Draft::default()
    }
}

/// Seconds drawn from a lognormal of milliseconds.
pub(super) fn seconds(rng: &mut ChaCha8Rng, (mu, sigma): (f64, f64)) -> f64 {
    random::lognormal(rng, mu, sigma) / 1000.0
}
