//! `dmrs`: weighted jobs on fast and slow machines.
//!
//! **Paper**: DMRS, section VI, figures 2 and 3.
//!
//! **Given**: 12 machines that each run one task at a time, of two kinds whose speeds differ by a factor
//! of 8; mix a of 20 jobs of 1 GB; mix b of 12 of 1 GB, 4 of 0.5 GB and 4 of 2 GB; mix c of 6 of each;
//! task sizes 64, 32 and 128 MB for them; elephants of 2 GB among mice of 0.5 GB, 18 TeraSort jobs in
//! all, 64 MB tasks; one reduce task for WordCount, four for Sort and TeraSort; weights uniform between
//! 1 and 5; two release groups of the same size 60 s apart. WordCount is CPU-bound with light reduces,
//! Sort I/O-bound with reduces comparable to the maps, TeraSort has heavy reduces.
//!
//! **Open**: how many machines are fast (here half); seconds a MB on a slow machine, here by that
//! character: WordCount 1.25 for maps and 0.1 for reduces, Sort 0.5 and 0.5, TeraSort 0.75 and 1.5, all
//! divided by the speed on a fast machine; whether weights are whole (here not by default); who is in
//! which group (here random).

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Combine, Draft, Metric, Objective, Seed};

use super::generator::{GenerateError, Generator, Params};
use super::shape::{job, phase, shuffle};
use crate::random;

const RATE: Values = Values::Real(0.0, 1e6);

pub(super) const GENERATOR: Generator = Generator {
    name: "dmrs",
    summary: "DMRS section VI: weighted jobs in two release groups on fast and slow machines",
    params: &[
        Param::new(
            "mix",
            "a",
            Values::Choice(&["a", "b", "c", "elephants"]),
            "sizes of the jobs: figure 2 (a), (b), (c), or figure 3",
        ),
        Param::new("elephants", "6", Values::Count(0, 18), "large jobs among the 18 of mix=elephants"),
        Param::new(
            "benchmark",
            "auto",
            Values::Choice(&["wordcount", "sort", "terasort"]),
            "what the jobs do; auto is terasort for elephants, else wordcount",
        )
        .or_word("auto"),
        Param::new("map-rate", "auto", RATE, "seconds of map work per MB of input at speed 1")
            .or_word("auto"),
        Param::new("reduce-rate", "auto", RATE, "seconds of reduce work per MB of input at speed 1")
            .or_word("auto"),
        Param::new(
            "weights",
            "real",
            Values::Choice(&["real", "integer"]),
            "weights uniform on [1, 5] or on 1, 2, 3, 4, 5",
        ),
        Param::new(
            "groups",
            "2",
            Values::Count(1, 20),
            "number of release times, each for about the same number of jobs",
        ),
        Param::new("interval", "60", Values::Seconds(0.0, 1e6), "seconds between the groups"),
        Param::new("fast", "6", Values::Count(0, 100_000), "fast machines"),
        Param::new("slow", "6", Values::Count(0, 100_000), "slow machines, of speed 1"),
        Param::new("speed", "8", Values::Real(1e-3, 1e6), "speed of a fast machine"),
    ],
    make,
};

/// Jobs of a size: how many, MB of input, MB a map task.
type Class = (u32, u32, u32);

fn make(params: &Params, seed: Seed) -> Result<Draft, GenerateError> {
    let machines = machines(params);
    if machines.is_empty() {
        return Err(params.conflict("fast = 0 and slow = 0".to_owned(), "at least one machine"));
    }
    let (reduces, map_rate, reduce_rate) = benchmark(params);
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for (n, input, split) in classes(params) {
        sizes.extend((0..n).map(|_| (input, split)));
    }
    shuffle(&mut random::rng(seed, "order", 0), &mut sizes);
    let n = sizes.len() as u32;
    let mut rng = random::rng(seed, "weights", 0);
    let flows = sizes.into_iter().zip(0u32..).map(|((input, split), k)| {
        let map_seconds = map_rate * f64::from(split);
        let reduce_seconds = reduce_rate * f64::from(input) / f64::from(reduces);
        let job = job(
            "job".to_owned(),
            Vec::new(),
            phase(input / split, map_seconds),
            phase(reduces, reduce_seconds),
        );
        let weight = match params.choice("weights") {
            "integer" => random::integer(&mut rng, 1, 5) as f64,
            _ => random::uniform(&mut rng, 1.0, 5.0),
        };
        let group = k * params.count("groups") / n;
        let release = params.real("interval") * f64::from(group);
        FlowDraft { release, weight, ..FlowDraft::new(format!("J{}", k + 1), vec![job]) }
    });
    Ok(Draft {
        flows: flows.collect(),
        machines,
        objective: Objective::new(Metric::Completion, Combine::Sum),
        ..Draft::default()
    })
}

fn classes(params: &Params) -> Vec<Class> {
    match params.choice("mix") {
        "a" => vec![(20, 1024, 64)],
        "b" => vec![(12, 1024, 64), (4, 512, 32), (4, 2048, 128)],
        "c" => vec![(6, 1024, 64), (6, 512, 32), (6, 2048, 128)],
        _ => vec![(params.count("elephants"), 2048, 64), (18 - params.count("elephants"), 512, 64)],
    }
}

/// Reduces of a job, seconds of map work and of reduce work a MB.
fn benchmark(params: &Params) -> (u32, f64, f64) {
    let default = if params.choice("mix") == "elephants" { "terasort" } else { "wordcount" };
    let (reduces, map, reduce) = match params.choice_given("benchmark").unwrap_or(default) {
        "wordcount" => (1, 1.25, 0.1),
        "sort" => (4, 0.5, 0.5),
        _ => (4, 0.75, 1.5),
    };
    let map = params.real_given("map-rate").unwrap_or(map);
    (reduces, map, params.real_given("reduce-rate").unwrap_or(reduce))
}

fn machines(params: &Params) -> Vec<MachineDraft> {
    let kinds = [("fast", params.real("speed")), ("slow", 1.0)];
    let groups = kinds.into_iter().filter(|(name, _)| params.count(name) > 0);
    let groups = groups.map(|(name, speed)| MachineDraft {
        name: name.to_owned(),
        count: params.count(name),
        speed,
        slots: Slots::Generic(1),
        rack: None,
    });
    groups.collect()
}
