//! Bracket and bisection for a maximum (section 4.2, Fig. 8).
//!
//! A level is what every flow may cost; it gives each flow a deadline, the latest completion that costs no
//! more. Flows in the order of their deadlines either meet the level or do not, and the bracket is halved.
//! Success is not monotone in the level (docs/math/flowflex.md B3 (iv)), so a probe is judged by what its
//! schedule really costs, and the caller keeps the best of all.

use super::network::Network;
use super::orders::by_key;

/// Halvings of the bracket.
const PROBES_MAX: u32 = 60;
/// Width of the bracket, relative to its ends, at which the bisection stops.
const PRECISION: f64 = 1e-7;

/// Probes orders between the cost of every flow alone and `success`, the cost of some schedule. `evaluate`
/// makes a schedule of an order and returns its cost; `stop` is asked before each. Returns the least level
/// that was met.
pub fn bisect(
    net: &Network,
    mut success: f64,
    mut stop: impl FnMut() -> bool,
    mut evaluate: impl FnMut(Vec<usize>) -> f64,
) -> f64 {
    let alone: Vec<f64> = net.flows.iter().map(|f| f.earliest).collect();
    let mut fail = net.cost(&alone);
    for _ in 0..PROBES_MAX {
        if success - fail <= PRECISION * success.abs().max(fail.abs()) || stop() {
            break;
        }
        let level = fail + (success - fail) / 2.0;
        let due = |j: usize| net.flows[j].cost.latest(level).unwrap_or(0.0);
        let cost = evaluate(by_key(net, due));
        if cost <= level {
            success = cost;
        } else {
            fail = level;
        }
    }
    success
}
