//! DMRS: the key of the separation oracle.

use crate::counterexamples::CounterexampleEntry;
use crate::counterexamples::drawing::{Bar, bars};

/// Capacity of the machines together.
const CAPACITY: f64 = 10.0;

/// Work, speed of the machines that its tasks fit on, completion.
const JOBS: [(f64, f64, f64); 3] = [(100.0, 10.0, 10.0), (18.0, 1.0, 18.0), (1.0, 10.0, 12.6)];

/// By how much a set of jobs violates Eq. (2).
fn violation(set: &[usize]) -> f64 {
    let work: f64 = set.iter().map(|&j| JOBS[j].0).sum();
    let left: f64 = set.iter().map(|&j| JOBS[j].0 * (JOBS[j].2 - JOBS[j].0 / (2.0 * JOBS[j].1))).sum();
    work * work / (2.0 * CAPACITY) - left
}

/// The most violated of the prefixes of an order by a key.
fn prefix(key: impl Fn(usize) -> f64) -> (Vec<usize>, f64) {
    let mut order: Vec<usize> = (0..JOBS.len()).collect();
    order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    let prefixes = (1..=order.len()).map(|n| (order[..n].to_vec(), violation(&order[..n])));
    prefixes.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_default()
}

/// Lemma 1: prefixes by C_x − p_x/2µ contain the most violated constraint.
pub(super) fn oracle_key() -> Result<CounterexampleEntry, String> {
    let sets = (1..1usize << JOBS.len())
        .map(|bits| (0..JOBS.len()).filter(|j| bits >> j & 1 == 1).collect::<Vec<_>>());
    let worst = sets.map(|set| violation(&set)).fold(f64::NEG_INFINITY, f64::max);
    let as_printed = prefix(|j| JOBS[j].2 - JOBS[j].0 / (2.0 * CAPACITY));
    let as_written = prefix(|j| JOBS[j].2 - JOBS[j].0 / (2.0 * JOBS[j].1));
    let names = |set: &[usize]| set.iter().map(|j| ["z", "x", "y"][*j]).collect::<Vec<_>>().join(", ");
    // Each job as long as its completion, as high as its work, so that the sets are visible.
    let job = |j: usize, low: f64| Bar {
        job: j,
        name: format!("{}: work {}, C = {}", ["z", "x", "y"][j], JOBS[j].0, JOBS[j].2),
        start: 0.0,
        end: JOBS[j].2,
        low,
        high: low + 1.0,
    };
    let shown: Vec<Bar> = (0..3).map(|j| job(j, j as f64)).collect();
    Ok(CounterexampleEntry {
        id: "dmrs-lemma-1",
        paper: "dmrs",
        at: "Lemma 1",
        printed: "The most violated constraint is a prefix of the jobs sorted by C_x − p_x/2µ, where µ is the speed of all machines.",
        example: "Machines of speed 10 together; jobs z, x, y with work 100, 18, 1, on machines of speed 10, 1, 10 at most, completing at 10, 18 and 12.6.",
        found: vec![
            format!("largest violation of all sets: {worst:.1}"),
            format!("of prefixes by the printed key: {:.1} ({})", as_printed.1, names(&as_printed.0)),
            format!("of prefixes by C_x − p_x/2µ_x: {:.1} ({})", as_written.1, names(&as_written.0)),
        ],
        refuted: as_printed.1 < worst - 1e-9 && (as_written.1 - worst).abs() < 1e-9,
        pictures: vec![bars("The three jobs until their completions", &shown, 18.0, &[])?],
        instead: "The key of the paper's text, with µ_x of the job, is right; the program uses it, and solves the whole linear program in closed form.",
    })
}
