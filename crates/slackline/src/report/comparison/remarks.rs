//! Remarks below a comparison: the differences between simulations and the recording, and crowding by
//! ApplicationMasters.

use super::{Figures, Row, shown_names};
use crate::recorded::DISTANCE;
use crate::report::names;
use crate::report::number::{Unit, duration, number, signed_percent};
use crate::report::spread::{Interval, Runs, Spread};
use crate::simulate::Crowding;

/// The fraction of the makespan from which on crowding is reported.
const CROWDED: f64 = 0.1;

/// The error of the simulation: the differences between the cluster's own scheduler and the recorded run, with their
/// intervals; empty without both.
pub fn distances(all: &[Runs]) -> String {
    let names = names::shown(all.iter().map(|runs| runs.policy.as_str()));
    let line = |(runs, name): (&Runs, String)| {
        let spread = |metric: &'static str| {
            Spread::over(runs.result.as_deref().unwrap_or_default(), &|figures| figures.metric(metric))
        };
        let [mean, p95, makespan] = DISTANCE.map(spread);
        let percent = |share: f64| number(share, Unit::Percent);
        let [mean, p95] = [mean?, p95?].map(|spread| percent(spread.mean) + &band(&spread, percent));
        let makespan = makespan?;
        let makespan = signed_percent(makespan.mean) + &band(&makespan, signed_percent);
        Some(format!("  {name}: {mean}, 95th percentile {p95}; makespan {makespan}\n"))
    };
    let lines: String = all.iter().zip(names).filter_map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!(
        "simulation error: mean difference to the recorded completion, relative to the response time\n{lines}"
    )
}

/// ` (11.0 to 14.8 %)`: the 95 % interval of a mean, or the range of few values.
fn band(spread: &Spread, text: fn(f64) -> String) -> String {
    let (from, to) = match spread.interval() {
        Interval::None => return String::new(),
        Interval::Half(half) => (spread.mean - half, spread.mean + half),
        Interval::Range(least, most) => (least, most),
    };
    format!(" ({} to {})", text(from).trim_end_matches(" %"), text(to))
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
