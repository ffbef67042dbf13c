//! WOHA: binary search for the smallest cap.

use slackline_algo::woha::{Cap, JobOrder, Plan, PlanGenerator, Progress, Request};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Draft, FlowId, Instance, Seed, Time, random};
use slackline_policy::Estimates;

use crate::counterexamples::CounterexampleEntry;
use crate::counterexamples::drawing::{Bar, bars};

/// Workflows that are drawn until one is found.
const TRIES: u64 = 20_000;

/// Slots of the cluster.
const SLOTS: u32 = 7;

fn plan(instance: &Instance, cap: Cap) -> Plan {
    let estimates = Estimates::mean(instance);
    let request = Request { instance, flow: FlowId(0), estimates: &estimates, now: Time::ZERO };
    Progress { order: JobOrder::LongestPath, cap, pooled: false }.plan(&request)
}

/// A workflow of eight jobs.
fn workflow(k: u64) -> Result<Instance, String> {
    let rng = &mut random::rng(Seed(0), "smallest cap", k);
    let job = |j: u64| {
        let mut phase = || {
            let tasks = random::integer(rng, 1, 6) as u32;
            Some(TasksDraft::Uniform { tasks, seconds: random::integer(rng, 1, 6) as f64 }.into())
        };
        let (map, reduce) = (phase(), phase());
        JobDraft {
            id: format!("j{j}"),
            after: (0..j).filter(|_| random::chance(rng, 0.25)).map(|before| format!("j{before}")).collect(),
            map,
            reduce,
            ..JobDraft::default()
        }
    };
    let mut flow = FlowDraft::new("workflow", (0..8).map(job).collect());
    flow.deadline = Some(1_000.0);
    let node = MachineDraft {
        name: "node".to_owned(),
        count: 1,
        speed: 1.0,
        slots: Slots::Generic(SLOTS),
        rack: None,
    };
    Instance::new(&Draft { machines: vec![node], flows: vec![flow], ..Draft::default() })
        .map_err(|error| error.to_string())
}

/// The lengths of plans with 1, 2, … slots.
fn lengths(instance: &Instance) -> Vec<f64> {
    (1..=SLOTS).map(|cap| plan(instance, Cap::Fixed(cap)).length().seconds()).collect()
}

/// The cap that halving finds if `fits` says whether a cap keeps the deadline.
fn halving(fits: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (1, SLOTS);
    while low < high {
        let middle = u32::midpoint(low, high);
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// Section IV-A: the smallest cap that keeps the deadline, by binary search.
pub(super) fn smallest_cap() -> Result<CounterexampleEntry, String> {
    for k in 0..TRIES {
        let lengths = lengths(&workflow(k)?);
        for &deadline in &lengths {
            let fits = |cap: u32| lengths[cap as usize - 1] <= deadline;
            let (found, first) = (halving(fits), (1..=SLOTS).find(|&cap| fits(cap)));
            if let Some(first) = first.filter(|&first| fits(SLOTS) && first < found) {
                return shown(&lengths, deadline, found, first);
            }
        }
    }
    Err(format!("no workflow of {TRIES} on which binary search misses the smallest cap"))
}

fn shown(lengths: &[f64], deadline: f64, found: u32, first: u32) -> Result<CounterexampleEntry, String> {
    let bar = |(k, &end): (usize, &f64)| Bar {
        job: k,
        name: format!("{} slots: {end} s", k + 1),
        start: 0.0,
        end,
        low: k as f64,
        high: k as f64 + 0.9,
    };
    let all: Vec<Bar> = lengths.iter().enumerate().map(bar).collect();
    let last = lengths.iter().copied().fold(0.0, f64::max);
    Ok(CounterexampleEntry {
        id: "woha-cap",
        paper: "woha",
        at: "Section IV-A",
        printed: "The smallest number of slots with which a plan keeps its deadline is found by binary search.",
        example: "A workflow of eight jobs on up to seven slots: with more slots its plan may take longer (Graham's anomaly).",
        found: vec![
            format!("lengths with 1 to {SLOTS} slots: {lengths:?} s; deadline {deadline} s"),
            format!("binary search finds {found} slots, the fewest are {first}"),
        ],
        refuted: first < found,
        pictures: vec![bars("Lengths of the plan by its slots", &all, last, &[(deadline, "deadline")])?],
        instead: "`cap=scan` tries upwards from the work over the time left and is exact; by default plans count on the whole cluster.",
    })
}
