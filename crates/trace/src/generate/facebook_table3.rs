//! `facebook-table3`: the job-ordering paper's synthetic Facebook workload.
//!
//! **Paper**: Tang, Lee, He, job ordering and slot configuration, section 7.2, table 3.
//!
//! **Given**: nine bins of jobs by their maps, the sizes used in each and how many jobs of 50 it has;
//! 100 and 150 jobs by doubling and tripling; reduces 5 % and 25 % of the maps; seconds of maps and
//! reduces lognormal, LN(9.9511, 1.6764) and LN(12.375, 1.6262) in milliseconds; 57 map slots and 19
//! reduce slots.
//!
//! **Open**: the sizes within the first bin (here uniform on `first-bin`); which jobs have 5 % and which 25 %
//! (here a share uniform on `reduces`, one draw per job, at least one reduce); whether seconds are drawn a
//! task or a job (here one draw per job and phase, as the paper estimates "per job", or one a task with
//! `durations=each`); the order of the jobs (here random). Other counts than multiples of 50 are divided over
//! the bins by largest remainder.

use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::generator::{Generator, Params};
use super::shape::{
    apportion, count_in, machines_param, map_slots_param, phase, real_in, reduce_slots_param, shuffle,
    typed_nodes, whole_micros,
};
use crate::importers::durations::{LogNormal, MAP_MILLIS, REDUCE_MILLIS};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "facebook-table3",
    summary: "the synthetic Facebook workload of the job-ordering paper (table 3), all released at 0",
    params: &[
        Param::new("jobs", "50", Values::Count(1, 1_000_000), "jobs; the paper uses 50, 100 and 150"),
        Param::new("first-bin", "1..25", Values::Counts(1, 25), "maps of a job of the first bin"),
        Param::new("reduces", "0.05..0.25", Values::Reals(0.0, 10.0), "reduces of a job divided by its maps"),
        DURATIONS,
        machines_param("19"),
        map_slots_param("3"),
        reduce_slots_param("1"),
    ],
    make: |params, seed| Ok(make(params, seed)),
};

pub(super) const DURATIONS: Param = Param::new(
    "durations",
    "phase",
    Values::Choice(&["phase", "each"]),
    "one draw for all tasks of a phase, or one for each task",
);

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
            0 => count_in(&mut rng, &params.counts("first-bin")),
            _ => SIZES[bin - 1][i % SIZES[bin - 1].len()],
        }));
    }
    shuffle(&mut rng, &mut maps);
    let flows = maps.into_iter().enumerate().map(|(k, maps)| {
        let reduces = (real_in(&mut rng, &params.reals("reduces")) * f64::from(maps)).round().max(1.0);
        let (map, _) = tasks(params, &mut rng, maps, MAP_MILLIS);
        let (reduce, _) = tasks(params, &mut rng, reduces as u32, REDUCE_MILLIS);
        let job = JobDraft { id: "job".to_owned(), map, reduce, ..JobDraft::default() };
        FlowDraft::new(format!("J{}", k + 1), vec![job])
    });
    Draft {
        flows: flows.collect(),
        machines: typed_nodes(params),
        objective: Objective::new(Metric::Makespan, Combine::Max),
        ..Draft::default()
    }
}

/// `n` tasks with seconds drawn according to `durations`, and their work in slot-seconds.
pub(super) fn tasks(
    params: &Params,
    rng: &mut ChaCha8Rng,
    n: u32,
    millis: LogNormal,
) -> (Option<PhaseDraft>, f64) {
    if params.choice("durations") == "phase" || n == 0 {
        let each = millis.seconds(rng);
        return (phase(n, each), each * f64::from(n));
    }
    let list: Vec<f64> = (0..n).map(|_| whole_micros(millis.seconds(rng))).collect();
    let work = list.iter().sum();
    (Some(TasksDraft::Each(list).into()), work)
}
