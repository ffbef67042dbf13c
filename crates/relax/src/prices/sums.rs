//! Sums of step costs are sums of levels: a bound between two of them is raised to the larger.

use slackline_model::id::TiSlice;
use slackline_model::{FlowId, Instance};

use crate::per_flow::FlowBound;

/// Largest sum whose parts are tried.
const MOST: f64 = 65_536.0;

/// The least sum of levels that is at least `bound`; `bound` itself unless all costs are steps of whole
/// numbers.
pub(super) fn raised(instance: &Instance, flows: &TiSlice<FlowId, FlowBound>, bound: f64) -> f64 {
    sums(instance, flows).and_then(|sums| least(&sums, bound)).unwrap_or(bound)
}

/// The whole numbers that the flows can cost together, each at least the cost of its earliest completion.
fn sums(instance: &Instance, flows: &TiSlice<FlowId, FlowBound>) -> Option<Vec<bool>> {
    let mut sums = vec![true];
    for (flow, bound) in instance.flows().iter().zip(flows) {
        let least = flow.cost.eval(bound.earliest);
        let steps = match (flow.cost.as_steps(), flow.cost.as_linear()) {
            (Some(steps), _) => steps,
            (None, Some((0.0, _))) => &[],
            _ => return None,
        };
        let mut levels = vec![least];
        levels.extend(steps.iter().map(|&(_, level)| level).filter(|&level| level > least));
        levels.dedup();
        let most = levels.iter().copied().fold(0.0, f64::max);
        let is_whole = levels.iter().all(|level| level.fract() == 0.0 && *level >= 0.0);
        if !is_whole || most + sums.len() as f64 > MOST {
            return None;
        }
        let mut more = vec![false; sums.len() + most as usize];
        for level in levels {
            for (k, _) in sums.iter().enumerate().filter(|(_, is_sum)| **is_sum) {
                more[k + level as usize] = true;
            }
        }
        sums = more;
    }
    Some(sums)
}

/// The least of some whole numbers that is at least `bound`.
fn least(sums: &[bool], bound: f64) -> Option<f64> {
    let from = bound.max(0.0).ceil() as usize;
    (from..sums.len()).find(|&k| sums[k]).map(|k| k as f64)
}

#[cfg(test)]
mod tests {
    use super::least;

    #[test]
    fn bounds_between_sums_are_raised() {
        let sums = [true, false, false, true, false, true];
        assert_eq!(least(&sums, 0.0), Some(0.0));
        assert_eq!(least(&sums, 1e-9), Some(3.0));
        assert_eq!(least(&sums, 3.0), Some(3.0));
        assert_eq!(least(&sums, 3.1), Some(5.0));
        assert_eq!(least(&sums, 5.1), None, "no schedule costs more");
    }
}
