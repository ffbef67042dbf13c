use super::*;

/// The least gain of `auto`.
const GAIN: f64 = 0.005;

fn estimated(cost: f64, completions: f64) -> EstimatedCost {
    EstimatedCost { cost, expected: cost, later: 0.0, completions }
}

#[test]
fn a_better_cost_is_lower_by_more_than_the_share_or_has_earlier_completions() {
    let old = estimated(100.0, 50.0);
    assert!(estimated(99.0, 90.0).beats(old, GAIN));
    assert!(!estimated(99.8, 49.9).beats(old, GAIN) && estimated(99.8, 49.9).beats(old, 0.0));
    assert!(estimated(100.0, 40.0).beats(old, GAIN), "as cheap, and earlier");
    assert!(!estimated(100.1, 1.0).beats(old, 0.0));
    assert!(estimated(-102.0, 50.0).beats(estimated(-100.0, 50.0), GAIN), "costs may be negative");
    let slack = EstimatedCost { later: 7.0, ..estimated(100.0, 90.0) };
    assert!(slack.beats(EstimatedCost { later: 8.0, ..old }, GAIN), "as cheap, and would be so later");
    assert!(!old.beats(EstimatedCost { later: -1.0, ..estimated(100.0, 90.0) }, 0.0));
    let never = estimated(f64::INFINITY, f64::INFINITY);
    assert!(!never.beats(never, GAIN) && !never.beats(never, 0.0));
}

#[test]
fn moves_go_both_ways() {
    let mut order = [0, 1, 2, 3, 4];
    shift(&mut order, 1, 3);
    assert_eq!(order, [0, 2, 3, 1, 4]);
    shift(&mut order, 3, 1);
    assert_eq!(order, [0, 1, 2, 3, 4]);
}
