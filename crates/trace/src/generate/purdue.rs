//! `purdue`: the testbed jobs of the job-ordering paper.
//!
//! **Paper**: Tang, Lee, He, job ordering and slot configuration, section 7.1, tables 1 and 2.
//!
//! **Given**: nine benchmarks with counts of tasks and mean and standard deviation of their seconds;
//! which benchmark each of 30 jobs is; workloads of the first 10, 20 and 30; 19 slaves of three map
//! slots and one reduce slot. The paper's algorithms use the averages.
//!
//! **Open**: the shape of the spread. `spread=mean` gives every task the average; `spread=normal` draws
//! each task from a normal distribution, again while it is not above 0.

use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::generator::{Generator, Params};
use super::shape::{machines_param, map_slots_param, reduce_slots_param, typed_nodes, whole_micros};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "purdue",
    summary: "the 30 Purdue benchmark jobs measured for the job-ordering paper (tables 1 and 2)",
    params: &[
        Param::new("jobs", "30", Values::Count(1, 30), "the number of jobs; the paper uses 10, 20 and 30"),
        Param::new(
            "spread",
            "mean",
            Values::Choice(&["mean", "normal"]),
            "every task at the average, or each drawn from a normal distribution",
        ),
        machines_param("19"),
        map_slots_param("3"),
        reduce_slots_param("1"),
    ],
    make: |params, seed| Ok(make(params, seed)),
};

/// A phase of a benchmark: its tasks, and mean and standard deviation of their seconds.
#[derive(Clone, Copy)]
struct Phase {
    tasks: u32,
    mean: f64,
    deviation: f64,
}

const fn phase(tasks: u32, mean: f64, deviation: f64) -> Phase {
    Phase { tasks, mean, deviation }
}

/// Table 1: name, maps, reduces.
const BENCHMARKS: [(&str, Phase, Phase); 9] = [
    ("wordcount", phase(160, 22.0, 2.09), phase(100, 11.0, 0.67)),
    ("sort", phase(320, 9.0, 3.07), phase(200, 24.0, 2.63)),
    ("grep", phase(480, 9.0, 0.8), phase(120, 11.0, 0.47)),
    ("inverted-index", phase(640, 32.0, 3.0), phase(100, 23.0, 2.6)),
    ("classification", phase(160, 6.0, 0.55), phase(120, 13.0, 1.03)),
    ("histogram-movies", phase(160, 6.0, 0.54), phase(150, 13.0, 1.3)),
    ("histogram-ratings", phase(160, 18.0, 1.18), phase(100, 15.0, 1.76)),
    ("sequence-count", phase(320, 38.0, 4.5), phase(150, 21.0, 2.4)),
    ("tera-sort", phase(160, 10.0, 2.7), phase(100, 26.0, 3.8)),
];

/// Table 2: which benchmark (counted from 0) each job is.
const JOBS: [usize; 30] =
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 4, 0, 3, 7, 8, 5, 1, 6, 2, 3, 6, 4, 8, 2, 3, 7, 1, 0, 6, 4, 7];

fn make(params: &Params, seed: Seed) -> Draft {
    let normal = params.choice("spread") == "normal";
    let flows = JOBS.iter().take(params.count("jobs") as usize).enumerate().map(|(k, &benchmark)| {
        let (name, map, reduce) = BENCHMARKS[benchmark];
        let phase = |stream: &str, phase: Phase| {
            if normal {
                draw_phase(&mut random::rng(seed, stream, k as u64), phase)
            } else {
                TasksDraft::Uniform { tasks: phase.tasks, seconds: phase.mean }.into()
            }
        };
        let job = JobDraft {
            id: name.to_owned(),
            map: Some(phase("maps", map)),
            reduce: Some(phase("reduces", reduce)),
            ..JobDraft::default()
        };
        FlowDraft::new(format!("J{}", k + 1), vec![job])
    });
    Draft {
        flows: flows.collect(),
        machines: typed_nodes(params),
        objective: Objective::new(Metric::Makespan, Combine::Max),
        ..Draft::default()
    }
}

/// Every task drawn separately. The deviations are below 40 % of the means: redrawing is rare.
fn draw_phase(rng: &mut ChaCha8Rng, phase: Phase) -> PhaseDraft {
    let mut positive = || loop {
        let draw = whole_micros(random::normal(rng, phase.mean, phase.deviation));
        if draw > 0.0 {
            return draw;
        }
    };
    TasksDraft::Each((0..phase.tasks).map(|_| positive()).collect()).into()
}
