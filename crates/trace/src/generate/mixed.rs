//! `mixed`: flows of many shapes that share a cluster, for comparing policies where no paper has tuned them.
//!
//! **Paper**: none; the shapes are those on which online policies differ: arrivals by chance or in bursts at
//! any offered load, chains, forks that join, few waves of long reduces, weights over decades, machines of
//! several speeds, and a few elephants among mice.
//!
//! **Chosen**: numbers of tasks and seconds are drawn with logarithms that are uniform, so that each decade
//! is as likely as the next. The mean gap between arrivals follows from the work that was drawn, so that the
//! offered load of the busiest kind of slot is `load` exactly; elephants count, and arrive in the first half.
//! A deadline is a multiple of the flow's time alone.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Instance, Metric, Objective, Seed, SlotKind};

use super::dag::{self, Wiring, layered};
use super::generator::{GenerateError, Generator, Params};
use super::shape::{alone, count_in, job, job_name, nodes, phase, real_in, whole_micros};
use crate::random::{self, ChaCha8Rng};

/// The speeds of machines of several speeds.
const SPEEDS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

pub(super) const GENERATOR: Generator = Generator {
    name: "mixed",
    summary: "flows of many shapes that arrive at an offered load, for comparing policies with each other",
    params: &[
        Param::new("flows", "60", Values::Count(1, 100_000), "flows, elephants not counted"),
        Param::new(
            "arrivals",
            "poisson",
            Values::Choice(&["poisson", "bursts", "together"]),
            "one by one, several at the same time, or all at 0",
        ),
        Param::new("burst", "10", Values::Real(1.0, 1e5), "mean flows of a burst"),
        Param::new("load", "0.8", Values::Real(0.01, 100.0), "offered load of the busiest kind of slot"),
        Param::new(
            "shape",
            "mixed",
            Values::Choice(&["mixed", "single", "chain", "fork", "layers"]),
            "flows of one job, chains, forks that join, jobs in layers, or a random one of these",
        ),
        Param::new("jobs", "2..8", Values::Counts(1, 1000), "jobs of a flow that has several"),
        Param::new("maps", "1..60", Values::Counts(1, 100_000), "maps of a job"),
        Param::new("map-seconds", "5..60", Values::SecondsRange(0.001, 1e6), "seconds of a map"),
        Param::new("map-only", "0.3", Values::Real(0.0, 1.0), "probability that a job has no reduces"),
        Param::new("reduces", "1..8", Values::Counts(1, 100_000), "reduces of a job that has some"),
        Param::new("reduce-seconds", "10..120", Values::SecondsRange(0.001, 1e6), "seconds of a reduce"),
        Param::new("elephants", "0", Values::Count(0, 100), "flows with long tasks"),
        Param::new(
            "elephant-share",
            "0.3",
            Values::Real(0.001, 0.9),
            "share of all work in flows with long tasks",
        ),
        Param::new(
            "elephant-seconds",
            "1h",
            Values::Seconds(0.001, 1e6),
            "seconds of a task in flows with long tasks",
        ),
        Param::new(
            "deadlines",
            "1.5..5",
            Values::Reals(0.0, 1e6),
            "relative deadline divided by the time alone",
        ),
        Param::new("weights", "1", Values::Reals(0.001, 1e6), "weight of a flow"),
        Param::new("total-slots", "40", Values::Count(1, 100_000), "slots of the cluster"),
        Param::new(
            "slots",
            "generic",
            Values::Choice(&["generic", "map-reduce"]),
            "slots for any task, or two of three for maps and the others for reduces",
        ),
        Param::new(
            "speeds",
            "equal",
            Values::Choice(&["equal", "mixed"]),
            "equal: all machines have speed 1; mixed: a quarter each of speeds 1, 2, 4 and 8",
        ),
    ],
    make,
};

fn make(params: &Params, seed: Seed) -> Result<Draft, GenerateError> {
    let mice = (0..u64::from(params.count("flows"))).map(|k| {
        let mut rng = random::rng(seed, "flow", k);
        let jobs = jobs(params, &mut rng);
        let weight = log_uniform(&mut rng, params.reals("weights"));
        FlowDraft { weight, ..FlowDraft::new(format!("f{}", k + 1), jobs) }
    });
    let mut draft = Draft {
        flows: mice.collect(),
        machines: machines(params),
        objective: Objective::new(Metric::Response, Combine::Sum),
        ..Draft::default()
    };
    draft.flows.extend(elephants(params, &draft)?);
    let average_busy_slots = average_busy_slots(&draft)?;
    let alone = alone(&draft)?;
    let gap = average_busy_slots / params.real("load") / draft.flows.len() as f64;
    let releases = releases(params, seed, gap);
    for (k, (flow, alone)) in draft.flows.iter_mut().zip(alone).enumerate() {
        let mut rng = random::rng(seed, "times", k as u64);
        // An elephant arrives while other flows are still to arrive.
        flow.release = match releases.get(k) {
            Some(&release) => release,
            None => {
                whole_micros(random::uniform(&mut rng, 0.0, releases.last().copied().unwrap_or(0.0) / 2.0))
            }
        };
        let factor = real_in(&mut rng, &params.reals("deadlines"));
        flow.deadline = Some(whole_micros(flow.release + factor * alone));
    }
    draft.flows.sort_by(|a, b| a.release.total_cmp(&b.release));
    Ok(draft)
}

/// When each of the mice arrives.
fn releases(params: &Params, seed: Seed, gap: f64) -> Vec<f64> {
    let (mut rng, n) = (random::rng(seed, "arrivals", 0), params.count("flows") as usize);
    let (mut now, mut releases) = (0.0, Vec::with_capacity(n));
    let burst = match params.choice("arrivals") {
        "together" => return vec![0.0; n],
        "bursts" => params.real("burst"),
        _ => 1.0,
    };
    while releases.len() < n {
        releases.push(whole_micros(now));
        // The numbers of flows in bursts are geometric.
        if random::chance(&mut rng, 1.0 / burst) {
            now += random::exponential(&mut rng, gap * burst);
        }
    }
    releases
}

fn jobs(params: &Params, rng: &mut ChaCha8Rng) -> Vec<JobDraft> {
    let shapes = ["single", "chain", "fork", "layers"];
    let shape = match params.choice("shape") {
        "mixed" => shapes[random::integer(rng, 0, 3) as usize],
        shape => shape,
    };
    let n = count_in(rng, &params.counts("jobs")) as usize;
    let after = match shape {
        "single" => vec![Vec::new()],
        "chain" => layered(rng, n, Wiring { layers: n, fan_in: 1, fan_out: 1 }),
        "fork" => fork(n),
        _ => layered(rng, n, Wiring { layers: n.div_ceil(2), fan_in: 2, fan_out: 3 }),
    };
    let jobs = after.iter().enumerate().map(|(k, after)| {
        let map = phase(count_log(rng, params, "maps"), log_uniform(rng, params.reals("map-seconds")));
        let reduce =
            phase(count_log(rng, params, "reduces"), log_uniform(rng, params.reals("reduce-seconds")));
        let has_reduces = !random::chance(rng, params.real("map-only"));
        job(job_name(k), dag::names(after), map, reduce.filter(|_| has_reduces))
    });
    jobs.collect()
}

/// One job, then all others but the last beside each other, then the last.
fn fork(n: usize) -> Vec<Vec<usize>> {
    let after = |k: usize| match k {
        0 => Vec::new(),
        k if k + 1 < n || n < 3 => vec![0],
        k => (1..k).collect(),
    };
    (0..n).map(after).collect()
}

/// A number with a uniform logarithm on the range.
fn log_uniform(rng: &mut ChaCha8Rng, range: std::ops::RangeInclusive<f64>) -> f64 {
    random::uniform(rng, range.start().ln(), range.end().ln()).exp().clamp(*range.start(), *range.end())
}

/// A whole number, as likely in each decade of the range as in the next.
fn count_log(rng: &mut ChaCha8Rng, params: &Params, name: &str) -> u32 {
    let range = params.counts(name);
    let (low, high) = (f64::from(*range.start()), f64::from(*range.end()));
    // Every number has its own share: that between it and the next.
    (log_uniform(rng, low..=high + 1.0) as u32).clamp(*range.start(), *range.end())
}

fn machines(params: &Params) -> Vec<MachineDraft> {
    let total = params.count("total-slots");
    let of_speed = |speed: usize, slots: u32, kind: fn(u32) -> Slots, name: &str| MachineDraft {
        name: format!("{name}{}", SPEEDS[speed]),
        speed: SPEEDS[speed],
        ..nodes(slots, kind(1)).remove(0)
    };
    let (maps, speeds) = (total - total / 3, if params.choice("speeds") == "mixed" { 4 } else { 1 });
    let generic: fn(u32) -> Slots = Slots::Generic;
    let map: fn(u32) -> Slots = |n| Slots::MapReduce { map: n, reduce: 0 };
    let reduce: fn(u32) -> Slots = |n| Slots::MapReduce { map: 0, reduce: n };
    let kinds = match params.choice("slots") {
        "map-reduce" => vec![("map", map, maps), ("reduce", reduce, (total / 3).max(1))],
        _ => vec![("node", generic, total)],
    };
    let mut all = Vec::new();
    for (name, kind, slots) in kinds {
        for speed in 0..speeds {
            // The slow machines get the remainder.
            let share = slots / speeds as u32 + u32::from(speed < slots as usize % speeds);
            all.extend((share > 0).then(|| of_speed(speed, share, kind, name)));
        }
    }
    all
}

/// Flows of one job of equal long maps, which have their part of all work.
fn elephants(params: &Params, mice: &Draft) -> Result<Vec<FlowDraft>, GenerateError> {
    let (n, share) = (params.count("elephants"), params.real("elephant-share"));
    if n == 0 {
        return Ok(Vec::new());
    }
    let seconds = params.real("elephant-seconds");
    let work = work(mice)?.iter().sum::<f64>() * share / (1.0 - share) / f64::from(n);
    let tasks = (work / seconds).round().clamp(1.0, 1e6) as u32;
    let elephant = |k| {
        let jobs = vec![job(job_name(0), Vec::new(), phase(tasks, seconds), None)];
        FlowDraft::new(format!("elephant{}", k + 1), jobs)
    };
    Ok((0..n).map(elephant).collect())
}

/// Work in slot-seconds at speed 1, of each kind of slot.
fn work(draft: &Draft) -> Result<Vec<f64>, GenerateError> {
    let instance = Instance::new(draft)?;
    let of = |slot_kind: SlotKind| {
        let its = (0..instance.phases().len()).map(slackline_model::PhaseId::from);
        let its = its.filter(|&phase| instance.slot_kind_of(phase) == slot_kind);
        its.map(|phase| instance.phase(phase).work().slot_seconds()).sum()
    };
    Ok(instance.cluster().slot_kinds().iter().map(|&slot_kind| of(slot_kind)).collect())
}

/// The time for which the busiest kind of slot is busy, in seconds, if all of its slots are busy all the
/// time.
fn average_busy_slots(draft: &Draft) -> Result<f64, GenerateError> {
    let instance = Instance::new(draft)?;
    let cluster = instance.cluster();
    let capacity = cluster.slot_kinds().iter().map(|&slot_kind| cluster.capacity(slot_kind));
    Ok(work(draft)?.into_iter().zip(capacity).map(|(work, capacity)| work / capacity).fold(0.0, f64::max))
}
