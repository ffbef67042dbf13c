//! How often the answers of a search with draws are right, on generated workloads and fresh draws.
//!
//! `SLACKLINE_SCALE=17` runs 204 workloads.

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Draft, Seed};

use super::draws::DrawRule;
use super::{Axis, Condition, Draws, Search, search};
use crate::simulate::{Options, Watch, simulate_figures};
use crate::{Registry, parallel};

/// The seed of the first fresh draw, far from those of the search.
const FRESH: u64 = 1_000_000;
/// Fresh draws at each size.
const FRESH_DRAWS: u64 = 400;

/// A workload for about `size` machines, its condition, and the options of its simulations.
struct Case {
    draft: Draft,
    size: u32,
    condition: Condition,
    policy: &'static str,
    options: Options,
}

fn flow(rng: &mut ChaCha8Rng, k: u64) -> FlowDraft {
    let tasks = |rng: &mut ChaCha8Rng, most| {
        let (tasks, seconds) = (random::integer(rng, 1, most), random::uniform(rng, 5.0, 40.0));
        Some(TasksDraft::Uniform { tasks: tasks as u32, seconds }.into())
    };
    let (map, reduce) = (tasks(rng, 20), tasks(rng, 5));
    let job = JobDraft { id: format!("j{k}"), map, reduce, ..JobDraft::default() };
    let release = random::uniform(rng, 0.0, 60.0);
    // Before 10 s of work on a task of each phase no cluster can be done.
    let deadline = Some(release + random::uniform(rng, 130.0, 240.0));
    FlowDraft { release, deadline, ..FlowDraft::new(format!("f{k}"), vec![job]) }
}

fn case(number: u64) -> Case {
    let rng = &mut random::rng(Seed(7), "coverage", number);
    let flows = random::integer(rng, 3, 30);
    let machine =
        MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots: Slots::Generic(1), rack: None };
    let flows: Vec<FlowDraft> = (0..flows).map(|k| flow(rng, k)).collect();
    let mut options = Options::exact();
    options.sim.jitter = random::uniform(rng, 0.1, 0.5);
    options.noise = random::uniform(rng, 0.0, 0.4);
    let conditions = ["missed=0", "missed:10%", "max_tardiness:30", "p95_response:150"];
    let condition = conditions[random::integer(rng, 0, 3) as usize].parse().unwrap();
    let policy = ["edf", "fifo", "fair"][random::integer(rng, 0, 2) as usize];
    Case {
        size: 4 * flows.len() as u32 + 20,
        draft: Draft { machines: vec![machine], flows, ..Draft::default() },
        condition,
        policy,
        options,
    }
}

/// The answer, and the fractions of fresh draws that meet the condition with it and with one machine less.
fn coverage(case: &Case) -> Option<(u32, f64, f64)> {
    let policy = Registry::standard().parse(case.policy).unwrap();
    let (conditions, axis) = ([case.condition.clone()], Axis::machines(1..=case.size));
    let draws = Draws {
        rule: DrawRule { confidence: 0.95, number: None },
        seed: 0,
        draft: None,
        is_out_of_time: &|| false,
    };
    let asked = Search {
        draws: Some(draws),
        threads: parallel::processors(),
        ..Search::new(&policy, &conditions, &axis, &case.options)
    };
    let found = search(&case.draft, &asked).unwrap();
    let answer = found.answer()?;
    assert!(answer.drawn() >= 60, "{} draws", answer.drawn());
    let chance = |machines: u32| {
        if machines == 0 {
            return 0.0;
        }
        let (instance, options) = asked.at(&case.draft, f64::from(machines)).unwrap();
        let meets = |k: usize| {
            let mut options = options.clone();
            options.sim.seed = Seed(FRESH + k as u64);
            let simulated = simulate_figures(&instance, &policy, &options, None, Watch::default()).unwrap();
            Ok::<_, ()>(case.condition.holds(&simulated.metrics))
        };
        let met = parallel::map(FRESH_DRAWS as usize, parallel::processors(), meets).unwrap();
        met.into_iter().filter(|&met| met).count() as f64 / FRESH_DRAWS as f64
    };
    let machines = answer.value as u32;
    Some((machines, chance(machines), chance(machines - 1)))
}

#[test]
fn answers_have_the_chance_that_they_state() {
    let n = (12.0 * random::test_scale()) as u64;
    let cases: Vec<Case> = (0..n).map(case).collect();
    let found: Vec<(u32, f64, f64)> = cases.iter().filter_map(coverage).collect();
    let answers = found.len() as f64;
    let enough = found.iter().filter(|(_, chance, _)| *chance >= 0.93).count() as f64;
    let tight = found.iter().filter(|(_, _, below)| *below < 0.97).count() as f64;
    println!("{answers} answers, {enough} with at least 93 %, {tight} with less than 97 % below");
    println!("{found:?}");
    assert!(answers >= 0.8 * n as f64, "{answers} of {n} have an answer");
    assert!(enough >= 0.95 * answers, "{enough} of {answers}: {found:?}");
    assert!(tight >= 0.9 * answers, "{tight} of {answers}: {found:?}");
}
