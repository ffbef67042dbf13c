//! The exact search of plans against exhaustive search, on random instances within reach of both.

use slackline_model::draft::Draft;
use slackline_model::random::test_scale;
use slackline_model::{Combine, Instance, Metric};
use slackline_relax::exact::{STATES_MAX, search};
use slackline_testkit::brute::brute;
use slackline_testkit::harness::{at_most, same};

use crate::prices::draft;

/// Instances of each metric and way to combine it.
const EACH: f64 = 20.0;

fn drafts(metric: Metric, combine: Combine) -> impl Iterator<Item = Draft> {
    (0..(EACH * test_scale()).ceil() as u64).map(move |seed| {
        let mut draft = draft(seed, metric);
        draft.objective.combine = combine;
        draft
    })
}

#[test]
fn the_exact_search_finds_the_optimum_and_proves_it() {
    let mut compared = 0;
    for metric in [Metric::Response, Metric::Tardiness, Metric::Tardy, Metric::Makespan] {
        for draft in [Combine::Sum, Combine::Max].into_iter().flat_map(|combine| drafts(metric, combine)) {
            let instance = Instance::new(&draft).unwrap();
            let Some(optimum) = brute(&instance) else { continue };
            let below = |known: f64, states: usize| search(&instance, &|| known, states, &|| false);
            // Mixed speeds are not covered.
            let Some(found) = below(f64::INFINITY, STATES_MAX) else { continue };
            compared += 1;
            assert!(same(found.bound, optimum), "{found:?}, optimum {optimum}\n{draft:#?}");
            assert_eq!(found.starts.unwrap().len() as u64, instance.n_tasks());
            let better = below(optimum, STATES_MAX).unwrap();
            assert!(better.starts.is_none() || same(better.bound, optimum), "{better:?}\n{draft:#?}");
            for states in [1, 5, 50] {
                let cut = below(f64::INFINITY, states).unwrap();
                assert!(at_most(cut.bound, optimum), "{cut:?}, optimum {optimum}\n{draft:#?}");
            }
        }
    }
    assert!(compared > 80, "{compared} instances were compared");
}
