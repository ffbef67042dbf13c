//! `flex-4.1`: independent malleable jobs with minima and maxima.
//!
//! **Paper**: FLEX, section 4.1.
//!
//! **Given**: 10 jobs on 100 slots; work from two left-truncated normals, the second mean 10 times the
//! first, standard deviations a third of the means, a parameter for the share of small jobs (base case
//! 80 %), normalised to a fixed total; the maximum is the slot demand, at most all slots; minima from a
//! truncated normal whose mean follows from the slack (base case 75 %), not zero, drawn again above the
//! maximum, normalised where they exceed the slots; weights U[0, 1]; deadlines, pseudo-deadlines and
//! step heights uniform, the latter two put in order.
//!
//! **Open**: the total (`total-work`) and the work of a task (`task-work`, at most: a job of V slot-seconds
//! is ⌈V / task-work⌉ tasks, and as many slots are its demand); the mean of the minima, here (1 − slack) ·
//! slots / jobs; the range of deadlines, here up to `deadline-span` · total / slots; the SLA's `steps` and
//! `height`. The order of small and large jobs, which is what FIFO sees, is random. SLA costs are unweighted
//! in the paper, so the weight is 1 with `cost=sla`.

use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, FlowDraft, JobDraft, PerPhase, TasksDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Draft, Metric, Seed};

use super::generator::{Generator, Params};
use super::shape::{
    COST, apportion, job_name, nodes, objective, shuffle, steps, truncated_normal_third, whole_micros,
};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "flex-4.1",
    summary: "FLEX section 4.1: small and large independent jobs with slot minima on generic slots",
    params: &[
        Param::new("jobs", "10", Values::Count(1, 100_000), "jobs, all released at 0"),
        Param::new("total-slots", "100", Values::Count(1, 1_000_000), "slots of the cluster"),
        Param::new("small", "0.8", Values::Real(0.0, 1.0), "share of small jobs"),
        Param::new(
            "ratio",
            "10",
            Values::Real(1.0, 1e6),
            "mean work of a large job over that of a small one",
        ),
        Param::new("slack", "0.75", Values::Real(0.0, 1.0), "share of the slots that no minimum claims"),
        Param::new("total-work", "1000", Values::Real(1e-3, 1e9), "work of all jobs in slot-seconds"),
        Param::new("task-work", "1", Values::Real(0.25, 1e6), "most work of a task in slot-seconds"),
        Param::new(
            "deadline-span",
            "1.5",
            Values::Real(0.0, 1e6),
            "latest deadline, as a multiple of total-work / total-slots",
        ),
        COST,
        Param::new("steps", "3", Values::Count(1, 1000), "steps of each job's SLA"),
        Param::new("height", "1", Values::Real(0.0, 1e9), "highest level of an SLA"),
    ],
    make: |params, seed| Ok(make(params, seed)),
};

/// Draws of a minimum before the maximum is taken instead; only reached by maxima far below the mean.
const ATTEMPTS: u32 = 1000;

fn make(params: &Params, seed: Seed) -> Draft {
    let slots = params.count("total-slots");
    let (works, each) = (works(params, seed), params.real("task-work"));
    let tasks: Vec<u32> = works.iter().map(|work| ((work / each).ceil() as u32).max(1)).collect();
    let minima = minima(params, &tasks, seed);
    let horizon = params.real("deadline-span") * params.real("total-work") / f64::from(slots);
    let mut rng = random::rng(seed, "costs", 0);
    let flows = works.iter().zip(&tasks).zip(&minima).enumerate().map(|(k, ((&work, &tasks), &min))| {
        let job = JobDraft {
            id: "job".to_owned(),
            map: Some(TasksDraft::Work { work, tasks: Some(tasks) }.into()),
            min_slots: PerPhase { map: Some(min), reduce: None },
            max_slots: PerPhase { map: Some(tasks.min(slots)), reduce: None },
            ..JobDraft::default()
        };
        let deadline = Some(whole_micros(random::uniform(&mut rng, 0.0, horizon)));
        let weight = random::unit(&mut rng);
        let cost = sla(params, horizon, &mut rng);
        let weight = if cost.is_some() { 1.0 } else { weight };
        FlowDraft { deadline, weight, cost, ..FlowDraft::new(job_name(k), vec![job]) }
    });
    Draft {
        flows: flows.collect(),
        machines: nodes(slots, Slots::Generic(1)),
        objective: objective(params, Metric::Response),
        ..Draft::default()
    }
}

/// Work of each job in slot-seconds, in random order of small and large.
fn works(params: &Params, seed: Seed) -> Vec<f64> {
    let n = params.count("jobs") as usize;
    let n_small = (params.real("small") * n as f64).round() as usize;
    let mut means = vec![1.0; n_small];
    means.resize(n, params.real("ratio"));
    let mut rng = random::rng(seed, "works", 0);
    shuffle(&mut rng, &mut means);
    let raw: Vec<f64> = means.into_iter().map(|mean| truncated_normal_third(&mut rng, mean)).collect();
    let scale = params.real("total-work") / raw.iter().sum::<f64>();
    raw.into_iter().map(|work| whole_micros(work * scale)).collect()
}

/// Minimum of each job: at least 1 (if there are as many slots as jobs), at most its tasks, together
/// at most the slots.
fn minima(params: &Params, tasks: &[u32], seed: Seed) -> Vec<u32> {
    let slots = params.count("total-slots");
    let mean = (1.0 - params.real("slack")) * f64::from(slots) / tasks.len() as f64;
    let mut rng = random::rng(seed, "minima", 0);
    let drawn: Vec<u32> = tasks.iter().map(|&n| minimum(&mut rng, mean, n.min(slots))).collect();
    if drawn.iter().map(|&m| u64::from(m)).sum::<u64>() <= u64::from(slots) {
        return drawn;
    }
    let base = u32::from(tasks.len() <= slots as usize);
    let above: Vec<u64> = drawn.iter().map(|&m| u64::from(m - base)).collect();
    let spare = u64::from(slots) - u64::from(base) * tasks.len() as u64;
    apportion(spare, &above).into_iter().map(|share| base + share as u32).collect()
}

fn minimum(rng: &mut ChaCha8Rng, mean: f64, max: u32) -> u32 {
    for _ in 0..ATTEMPTS {
        let draw = truncated_normal_third(rng, mean).round().max(1.0);
        if draw <= f64::from(max) {
            return draw as u32;
        }
    }
    max
}

fn sla(params: &Params, horizon: f64, rng: &mut ChaCha8Rng) -> Option<CostDraft> {
    if params.choice("cost") != "sla" {
        return None;
    }
    let (n, height) = (params.count("steps"), params.real("height"));
    let times = (0..n).map(|_| whole_micros(random::uniform(rng, 0.0, horizon))).collect();
    let levels = (0..n).map(|_| random::uniform(rng, 0.0, height)).collect();
    Some(steps(times, levels))
}
