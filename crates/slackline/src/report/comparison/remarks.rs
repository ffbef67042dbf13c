//! Remarks below a comparison: the differences between simulations and the recording, and crowding by
//! ApplicationMasters.

use super::{Figures, Row, shown_names};
use crate::recorded::DISTANCE;
use crate::report::number::{Unit, duration, number, signed_percent};
use crate::simulate::Crowding;

/// The fraction of the makespan from which on crowding is reported.
const CROWDED: f64 = 0.1;

/// The difference between each simulation and the recording, one line each; empty without a recording.
pub fn distances(rows: &[Row]) -> String {
    let line = |(row, name): (&Row, String)| {
        let [mean, p95, makespan] = DISTANCE.map(|name| row.result.as_ref().ok()?.metric(name));
        let [mean, p95] = [mean?, p95?].map(|share| number(share, Unit::Percent));
        Some(format!("  {name}: {mean} (95th percentile {p95}), makespan {}\n", signed_percent(makespan?)))
    };
    let lines: String = rows.iter().zip(shown_names(rows)).filter_map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "simulation error: mean difference to the recorded completion, relative to the response time\n{lines}"
    )
}

/// The policies under which ApplicationMasters held most slots for at least a tenth of the makespan, one line
/// each, with the options that prevent this; empty if there are none.
pub fn crowding(rows: &[Row]) -> String {
    let figures = |row: &Row| row.result.as_ref().ok().map(std::slice::from_ref).map(<[Figures]>::to_vec);
    crowding_of(rows.iter().zip(shown_names(rows)).filter_map(|(row, name)| Some((name, figures(row)?))))
}

/// As [`crowding`], for policies with the figures of several runs, whose means count.
pub(crate) fn crowding_of(policies: impl IntoIterator<Item = (String, Vec<Figures>)>) -> String {
    let line = |(name, runs): (String, Vec<Figures>)| {
        let mean = |get: &dyn Fn(&Figures) -> Option<f64>| {
            runs.iter().filter_map(get).sum::<f64>() / runs.len() as f64
        };
        let of = |get: fn(&Crowding) -> f64| mean(&|figures| figures.crowding.as_ref().map(get));
        let (most, all) = (of(|crowding| crowding.most), of(|crowding| crowding.all));
        let makespan = mean(&|figures| figures.metric("makespan"));
        let all = if all > 0.0 { format!(", all but one slot for {}", duration(all)) } else { String::new() };
        (most > CROWDED * makespan)
            .then(|| format!("  {name}: for {} of {}{all}\n", duration(most), duration(makespan)))
    };
    let lines: String = policies.into_iter().filter_map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "ApplicationMasters held two thirds of the slots or more, so that jobs waited for slots for their tasks:\n{lines}  \
         am-share=0.3 in the profile (--profile hadoop-log:am-share=0.3) limits them, as maximum-am-resource-percent and maxAMShare do on a cluster \
         (docs/hadoop-logs.md)\n"
    )
}
