//! `flowflex-5.1`: flows of malleable jobs with random precedence.
//!
//! **Paper**: FlowFlex, section 5.1.
//!
//! **Given**: 25 slots; U{5..20} flows of U{2..20} jobs; each pair of jobs joined with probability 0.5,
//! every other sink before the last job; flows that are big in volume or not, whose jobs are tall or
//! wide or not; weights U[1, 10]; deadlines that each flow could meet alone, plus uniform extra time; up
//! to 5 SLA steps, deadlines and increments drawn likewise; all released at 0.
//!
//! **Open**, and chosen as in the project's mathematical notes: one coin a flow for each of big, tall and
//! wide (fair unless `big`, `tall`, `wide` say otherwise); most slots of a job U{S/2..S} if tall, else
//! U{1..S/2}; seconds at that many slots from `long` if wide, else from `short`, times `big-factor` if big;
//! whole-numbered weights and increments; extra time U[0, `extra`] times the time in which all slots could do
//! all work, so that the deadlines are about as dense as the work and some must be missed. SLA levels carry
//! the weight themselves, so weight 1 with `cost=sla`.

use slackline_model::cluster::Slots;
use slackline_model::draft::{CostDraft, FlowDraft, JobDraft, PerPhase, TasksDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::dag;
use super::generator::{GenerateError, Generator, Params};
use super::shape::{COST, alone, count_in, job_name, nodes, objective, real_in, steps, whole_micros};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "flowflex-5.1",
    summary: "FlowFlex section 5.1: flows of malleable jobs with random precedence on generic slots",
    params: &[
        Param::new("total-slots", "25", Values::Count(1, 1_000_000), "slots of the cluster"),
        Param::new("flows", "5..20", Values::Counts(1, 100_000), "flows, all released at 0"),
        Param::new("jobs", "2..20", Values::Counts(1, 1000), "jobs of a flow"),
        Param::new("edge", "0.5", Values::Real(0.0, 1.0), "probability that one job comes after another"),
        Param::new("big", "0.5", Values::Real(0.0, 1.0), "probability that a flow is big in volume"),
        Param::new("tall", "0.5", Values::Real(0.0, 1.0), "probability that its jobs take many slots"),
        Param::new("wide", "0.5", Values::Real(0.0, 1.0), "probability that its jobs take long"),
        Param::new("short", "1..5", Values::SecondsRange(0.0, 1e6), "seconds of a job at its most slots"),
        Param::new(
            "long",
            "5..10",
            Values::SecondsRange(0.0, 1e6),
            "seconds of a job at its most slots in wide flows",
        ),
        Param::new("big-factor", "4", Values::Real(0.0, 1e6), "factor on the seconds in big flows"),
        Param::new("weights", "1..10", Values::Counts(0, 1_000_000), "weight of a flow"),
        Param::new(
            "extra",
            "1",
            Values::Real(0.0, 1e6),
            "largest slack of a deadline beyond the flow's time alone, as a multiple of all work / total-slots",
        ),
        COST,
        Param::new("steps", "1..5", Values::Counts(1, 1000), "steps of each flow's SLA"),
        Param::new("increments", "1..10", Values::Counts(0, 1_000_000), "height of each step"),
    ],
    make,
};

fn make(params: &Params, seed: Seed) -> Result<Draft, GenerateError> {
    let slots = params.count("total-slots");
    let n = count_in(&mut random::rng(seed, "flows", 0), &params.counts("flows"));
    let flows = (0..n).map(|k| {
        let mut rng = random::rng(seed, "flow", u64::from(k));
        let weight = f64::from(count_in(&mut rng, &params.counts("weights")));
        FlowDraft { weight, ..FlowDraft::new(format!("f{}", k + 1), jobs(params, &mut rng)) }
    });
    let mut draft = Draft {
        flows: flows.collect(),
        machines: nodes(slots, Slots::Generic(1)),
        objective: Objective::new(Metric::Completion, Combine::Sum),
        ..Draft::default()
    };
    add_costs(params, seed, &mut draft)?;
    // Only now: an SLA objective needs the steps that were just added.
    draft.objective = objective(params, Metric::Completion);
    Ok(draft)
}

fn jobs(params: &Params, rng: &mut ChaCha8Rng) -> Vec<JobDraft> {
    let slots = params.count("total-slots");
    let [big, tall, wide] = ["big", "tall", "wide"].map(|share| random::chance(rng, params.real(share)));
    let half = (slots / 2).max(1);
    let heights = if tall { half..=slots } else { 1..=half };
    let seconds = params.reals(if wide { "long" } else { "short" });
    let factor = if big { params.real("big-factor") } else { 1.0 };
    let n = count_in(rng, &params.counts("jobs")) as usize;
    let after = dag::random_edges(rng, n, params.real("edge"));
    let jobs = after.iter().enumerate().map(|(k, after)| {
        let height = count_in(rng, &heights);
        let work = whole_micros(f64::from(height) * factor * real_in(rng, &seconds));
        JobDraft {
            id: job_name(k),
            after: dag::names(after),
            map: Some(TasksDraft::Work { work, tasks: None }.into()),
            max_slots: PerPhase { map: Some(height), reduce: None },
            ..JobDraft::default()
        }
    });
    jobs.collect()
}

/// Gives every flow its deadline and, with `cost=sla`, its steps.
fn add_costs(params: &Params, seed: Seed, draft: &mut Draft) -> Result<(), GenerateError> {
    let sla = params.choice("cost") == "sla";
    let alone = alone(draft)?;
    let work: f64 = draft.flows.iter().flat_map(|f| &f.jobs).map(work_of).sum();
    let most = params.real("extra") * work / f64::from(params.count("total-slots"));
    for (k, (flow, alone)) in draft.flows.iter_mut().zip(alone).enumerate() {
        let mut rng = random::rng(seed, "costs", k as u64);
        let mut deadline = || whole_micros(alone + random::uniform(&mut rng, 0.0, most));
        flow.deadline = Some(deadline());
        if sla {
            let n = count_in(&mut random::rng(seed, "steps", k as u64), &params.counts("steps"));
            let times = (0..n).map(|_| deadline()).collect();
            flow.cost = Some(with_levels(params, times, &mut rng));
            flow.weight = 1.0;
        }
    }
    Ok(())
}

fn work_of(job: &JobDraft) -> f64 {
    match job.map.as_ref().map(|phase| &phase.tasks) {
        Some(TasksDraft::Work { work, .. }) => *work,
        _ => 0.0,
    }
}

/// Steps at these times whose heights add up.
fn with_levels(params: &Params, times: Vec<f64>, rng: &mut ChaCha8Rng) -> CostDraft {
    let mut level = 0.0;
    let levels = times.iter().map(|_| {
        level += f64::from(count_in(rng, &params.counts("increments")));
        level
    });
    let levels = levels.collect();
    steps(times, levels)
}
