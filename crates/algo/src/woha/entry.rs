//! The three policies of WOHA in the table of policies: one for each order of jobs.

use slackline_model::params::{Param, Settings, Values};

use super::generate::{Cap, Progress};
use super::lag::{Lags, Measure};
use super::online::{Late, Woha};
use super::priorities::JobOrder;
use crate::registry::{Planner, PolicyEntry};

/// `woha-hlf`: highest level first.
pub const HLF: PolicyEntry = entry::<{ JobOrder::HighestLevel as usize }>();
/// `woha-lpf`: longest path first.
pub const LPF: PolicyEntry = entry::<{ JobOrder::LongestPath as usize }>();
/// `woha-mpf`: maximum parallelism first.
pub const MPF: PolicyEntry = entry::<{ JobOrder::MaximumParallelism as usize }>();

const PARAMS: &[Param] = &[
    Param::new(
        "cap",
        "none",
        Values::Choice(&["none", "search", "scan"]),
        "slots a plan counts on: all, or the fewest that meet the deadline, found by binary search as in the \
         paper or exactly",
    ),
    Param::new(
        "pooled",
        "no",
        Values::Choice(&["no", "yes"]),
        "whether plans count map and reduce slots as one kind, as the paper does",
    ),
    Param::new(
        "late",
        "yield",
        Values::Choice(&["yield", "follow"]),
        "whether a flow that will miss its deadline yields to flows that can meet theirs, or follows its plan",
    ),
    Param::new(
        "lag",
        "time",
        Values::Choice(&["time", "tasks"]),
        "how lag behind the plan is measured: by when the next task is due, or in tasks as in the paper",
    ),
];

/// The entry of the policy with the job order at that place of [`JobOrder::ALL`].
const fn entry<const ORDER: usize>() -> PolicyEntry {
    let (name, summary) = match JobOrder::ALL[ORDER] {
        JobOrder::HighestLevel => (
            "woha-hlf",
            "the flow that lags most behind its plan for the deadline first; within it, highest level first",
        ),
        JobOrder::LongestPath => (
            "woha-lpf",
            "the flow that lags most behind its plan for the deadline first; within it, longest path first",
        ),
        JobOrder::MaximumParallelism => (
            "woha-mpf",
            "the flow that lags most behind its plan for the deadline first; within it, most dependents first",
        ),
    };
    PolicyEntry {
        source: "woha, sections IV and V-C",
        guarantee: "none; reports at arrival if the deadline cannot be met",
        params: PARAMS,
        planner: Planner::Progress {
            generator: generator::<ORDER>,
            follow: |_, _, settings, plans| Box::new(policy::<ORDER>(settings).with_plans(plans)),
        },
        ..PolicyEntry::new(name, summary, |_, _, settings| Box::new(policy::<ORDER>(settings)))
    }
}

fn generator<const ORDER: usize>(settings: &Settings) -> Progress {
    let cap = match settings.choice("cap") {
        "scan" => Cap::Scan,
        "search" => Cap::Search,
        _ => Cap::None,
    };
    Progress { order: JobOrder::ALL[ORDER], cap, pooled: settings.choice("pooled") == "yes" }
}

fn policy<const ORDER: usize>(settings: &Settings) -> Woha {
    let measure = if settings.choice("lag") == "tasks" { Measure::Tasks } else { Measure::Time };
    let late = if settings.choice("late") == "follow" { Late::Follow } else { Late::Yield };
    let (generator, lags) = (generator::<ORDER>(settings), Lags::by(measure));
    Woha::new(entry::<ORDER>().name, Box::new(generator), Box::new(lags)).with_late(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_the_order_of_its_name_and_reads_its_parameters() {
        let settings = |pairs: &[(&'static str, &'static str)]| {
            Settings::parse(PARAMS, pairs.iter().copied()).expect("the values are valid")
        };
        let progress = |entry: PolicyEntry, pairs: &[(&'static str, &'static str)]| match entry.planner {
            Planner::Progress { generator, .. } => generator(&settings(pairs)),
            _ => panic!("WOHA plans progress"),
        };
        let plain = |order| Progress { order, cap: Cap::None, pooled: false };
        assert_eq!((HLF.name, progress(HLF, &[])), ("woha-hlf", plain(JobOrder::HighestLevel)));
        assert_eq!((LPF.name, progress(LPF, &[])), ("woha-lpf", plain(JobOrder::LongestPath)));
        assert_eq!((MPF.name, progress(MPF, &[])), ("woha-mpf", plain(JobOrder::MaximumParallelism)));
        let scan = Progress { cap: Cap::Scan, pooled: true, ..plain(JobOrder::LongestPath) };
        assert_eq!(progress(LPF, &[("cap", "scan"), ("pooled", "yes")]), scan);
        let search = Progress { cap: Cap::Search, ..plain(JobOrder::LongestPath) };
        assert_eq!(progress(LPF, &[("cap", "search"), ("lag", "tasks")]), search);
    }
}
