//! FlowFlex: the condition under which the network of Fig. 6 is a bound.

use crate::counterexamples::CounterexampleEntry;
use crate::counterexamples::drawing::{Bar, bars};

/// Fig. 6 without the arcs that let work use earlier capacity.
pub(super) fn earlier_capacity() -> Result<CounterexampleEntry, String> {
    // One slot, one flow: 5 units of work, critical path 5, cost t; unit k of its work in the interval that
    // ends at `t` costs t/5.
    let (work, path) = (5, 5);
    let each = |t: i32| f64::from(t) / f64::from(work);
    let without: f64 = (path..path + work).map(each).sum();
    let optimum = f64::from(path);
    let unit = |k: i32, shift: i32| Bar {
        job: k as usize,
        name: format!("unit {}", k + 1),
        start: f64::from(k + shift),
        end: f64::from(k + shift + 1),
        low: 0.0,
        high: 1.0,
    };
    let last = f64::from(path + work - 1);
    let late: Vec<Bar> = (0..work).map(|k| unit(k, path - 1)).collect();
    let real: Vec<Bar> = (0..work).map(|k| unit(k, 0)).collect();
    Ok(CounterexampleEntry {
        id: "flowflex-network",
        paper: "flowflex",
        at: "Fig. 6",
        printed: "The minimum-cost flow is a lower bound; arcs lead from a flow to times from its critical path on, and from a time to the machine.",
        example: "One slot, one flow of 5 s in a row, whose cost is its completion time.",
        found: vec![
            format!("network without arcs to earlier capacity: {without} s"),
            format!("the only schedule: {optimum} s"),
        ],
        refuted: without > optimum + 1e-9,
        pictures: vec![
            bars("The network without the arcs", &late, last, &[(5.0, "critical path")])?,
            bars("The schedule", &real, last, &[(5.0, "done")])?,
        ],
        instead: "With the arcs E4 work that is nominally done at t uses any capacity before t, and the network is a bound; the program solves it as a transportation problem.",
    })
}
