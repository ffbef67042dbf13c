//! `woha-yahoo`: many small workflows with deadlines, at the size of the paper's Yahoo! trace.
//!
//! **Paper**: WOHA, section VI-A, figures 8 to 10.
//!
//! **Given**: 61 workflows of 180 jobs in all, of which 15 have a single job and the largest 12; the
//! single ones are left out of the evaluation (46 workflows, 165 jobs); clusters from 200m-200r
//! (200 map slots, 200 reduce slots) to 280m-280r; jobs as in figures 5 and 6 (see `woha.rs`).
//!
//! **Open**: how many jobs the others have (here: one of the largest size, then each next job goes to a
//! workflow drawn in proportion to its size, so that sizes are skewed), the topologies (layers), the
//! arrivals (here exponential gaps) and the deadlines (here `deadlines` times the time alone).

use slackline_model::draft::FlowDraft;
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::dag::{Wiring, layered};
use super::generator::{GenerateError, Generator, Params};
use super::shape;
use super::shape::{alone, shuffle, typed_nodes, whole_micros};
use super::woha::{self, jobs, maps_max, reduce_seconds_max, reduces_max};
use crate::random::{self, ChaCha8Rng};

pub(super) const GENERATOR: Generator = Generator {
    name: "woha-yahoo",
    summary: "WOHA section VI-A: 61 small workflows of 180 jobs with deadlines, as in a Yahoo! trace",
    params: &[
        Param::new("workflows", "61", Values::Count(1, 100_000), "workflows, single jobs included"),
        Param::new("jobs", "180", Values::Count(1, 1_000_000), "jobs of all of them"),
        Param::new("single", "15", Values::Count(0, 100_000), "workflows of a single job"),
        Param::new("largest", "12", Values::Count(1, 10_000), "jobs of the largest workflow"),
        Param::new(
            "single-jobs",
            "keep",
            Values::Choice(&["keep", "drop"]),
            "whether single jobs are part of the workload; the paper drops them",
        ),
        Param::new("layers", "2..5", Values::Counts(1, 1000), "levels of a workflow, at most one a job"),
        Param::new("fan-in", "3", Values::Count(1, 10_000), "most predecessors of a job"),
        Param::new("fan-out", "4", Values::Count(1, 10_000), "most successors of a job, where possible"),
        Param::new("gap", "240", Values::Seconds(0.0, 1e6), "mean seconds between submissions"),
        Param::new("deadlines", "3", Values::Real(0.0, 1e6), "relative deadline divided by the time alone"),
        woha::MAPS,
        woha::REDUCES,
        woha::MAP_SECONDS,
        woha::REDUCE_SECONDS,
        maps_max("3000"),
        reduces_max("300"),
        reduce_seconds_max("3000"),
        shape::machines_param("240"),
        shape::map_slots_param("1"),
        shape::reduce_slots_param("1"),
    ],
    make,
};

fn make(params: &Params, seed: Seed) -> Result<Draft, GenerateError> {
    let sizes = sizes(params, seed)?;
    let mut arrivals = random::rng(seed, "arrivals", 0);
    let mut now = 0.0;
    let mut flows = Vec::with_capacity(sizes.len());
    for (k, size) in sizes.into_iter().enumerate() {
        let release = whole_micros(now);
        now += random::exponential(&mut arrivals, params.real("gap"));
        if size == 1 && params.choice("single-jobs") == "drop" {
            continue;
        }
        let mut rng = random::rng(seed, "workflow", k as u64);
        let after = topology(params, &mut rng, size);
        let jobs = jobs(params, &mut rng, &after);
        flows.push(FlowDraft { release, ..FlowDraft::new(format!("w{}", k + 1), jobs) });
    }
    let mut draft = Draft {
        flows,
        machines: typed_nodes(params),
        objective: Objective::new(Metric::Tardiness, Combine::Sum),
        ..Draft::default()
    };
    let alone = alone(&draft)?;
    for (flow, alone) in draft.flows.iter_mut().zip(alone) {
        flow.deadline = Some(whole_micros(flow.release + params.real("deadlines") * alone));
    }
    Ok(draft)
}

fn topology(params: &Params, rng: &mut ChaCha8Rng, size: usize) -> Vec<Vec<usize>> {
    let layers = shape::count_in(rng, &params.counts("layers")) as usize;
    let fan_in = params.count("fan-in") as usize;
    layered(rng, size, Wiring { layers, fan_in, fan_out: params.count("fan-out") as usize })
}

/// Jobs of each workflow, in order of arrival: `single` of one job, one of `largest`, the others of two
/// or more, `jobs` in all.
fn sizes(params: &Params, seed: Seed) -> Result<Vec<usize>, GenerateError> {
    let n = params.count("workflows") as usize;
    let (single, jobs) = (params.count("single") as usize, params.count("jobs") as usize);
    let largest = params.count("largest") as usize;
    let others = n.checked_sub(single).unwrap_or(usize::MAX);
    let fits = if others == 0 {
        jobs == single
    } else {
        let least =
            single.saturating_add(largest).saturating_add(2usize.saturating_mul(others.saturating_sub(1)));
        largest >= 2 && least <= jobs && jobs <= single.saturating_add(largest.saturating_mul(others))
    };
    if !fits {
        return Err(params.conflict(
            format!("{jobs} jobs in {n} workflows, {single} of one job and one of {largest}"),
            "counts that fit: every other workflow has from 2 to `largest` jobs",
        ));
    }
    let mut sizes = vec![1; single];
    let mut rng = random::rng(seed, "sizes", 0);
    if others > 0 {
        sizes.push(largest);
        sizes.extend(grow_to_total(&mut rng, others - 1, largest, jobs - single - largest));
    }
    shuffle(&mut rng, &mut sizes);
    Ok(sizes)
}

/// `n` sizes from 2 to `largest` that add up to `total`; each job beyond the second joins the workflow of
/// a job drawn at random. O(total) draws unless nearly all are full.
fn grow_to_total(rng: &mut ChaCha8Rng, n: usize, largest: usize, total: usize) -> Vec<usize> {
    let mut sizes = vec![2; n];
    // The workflow of every job so far that has room.
    let mut owners: Vec<usize> = (0..n).filter(|_| largest > 2).flat_map(|k| [k, k]).collect();
    for _ in 2 * n..total {
        let owner = owners[random::integer(rng, 0, owners.len() as u64 - 1) as usize];
        sizes[owner] += 1;
        if sizes[owner] == largest {
            owners.retain(|&k| k != owner);
        } else {
            owners.push(owner);
        }
    }
    sizes
}
