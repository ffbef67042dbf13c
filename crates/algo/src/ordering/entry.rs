//! The entries of the two job orders in the table of policies.

use slackline_model::Instance;
use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Rows;

use super::online::Ordering;
use super::orders::{Candidates, Rule, Times};
use super::plan::plan;
use super::split::Config;
use super::workload::NotOffline;
use crate::registry::{Capabilities, Flows, Planner, PolicyEntry, Proposal, Refused};

pub const MK_JR: PolicyEntry = PolicyEntry {
    source: "ordering, section 5.1, Algorithm 1",
    guarantee: "all released at 0, times=area: makespan within 1 + (longest map + 2 longest reduces) / bound",
    capabilities: CAPABILITIES,
    params: &[times("best")],
    planner: Planner::Tasks(|instance, settings, _| propose(Rule::MkJr, instance, settings)),
    ..PolicyEntry::new(
        Rule::MkJr.name(),
        "jobs by Johnson's rule, for the makespan on map and reduce slots; keeps maxima, ignores minima",
        |_, _, settings| Box::new(Ordering::new(Rule::MkJr, candidates(settings))),
    )
};

pub const MK_TCT_JR: PolicyEntry = PolicyEntry {
    source: "ordering, section 5.2, Algorithm 2",
    capabilities: CAPABILITIES,
    params: &[times("area")],
    planner: Planner::Tasks(|instance, settings, _| propose(Rule::MkTctJr, instance, settings)),
    ..PolicyEntry::new(
        Rule::MkTctJr.name(),
        "small jobs before large ones, each by Johnson's rule; keeps maxima, ignores minima",
        |_, _, settings| Box::new(Ordering::new(Rule::MkTctJr, candidates(settings))),
    )
};

const CAPABILITIES: Capabilities = Capabilities { flows: Flows::ReadyJobs, ..Capabilities::PLAIN };

const fn times(default: &'static str) -> Param {
    Param::new(
        "times",
        default,
        Values::Choice(&["area", "stage", "best"]),
        "how long a stage is assumed to last: work over slots, whole waves of tasks, or the one with the better order",
    )
}

fn candidates(settings: &Settings) -> Candidates {
    match settings.choice("times") {
        "area" => Candidates::Only(Times::Area),
        "stage" => Candidates::Only(Times::Stage),
        _ => Candidates::Best,
    }
}

/// The offline order where the paper has one: jobs that are there from the start, map and reduce slots, no maxima.
/// Elsewhere the plan is what the policy does if everything goes as it is known.
fn propose(rule: Rule, instance: &Instance, settings: &Settings) -> Result<Proposal, Refused> {
    let candidates = candidates(settings);
    let config = Config { mk_jr: candidates, mk_tct_jr: candidates, ..Config::standard() };
    let rows = match plan(instance, rule, config) {
        Ok(plan) => Some(Rows::Tasks(plan.tasks)),
        Err(NotOffline::Jobs { flow, jobs }) => {
            return Err(Refused::SeveralJobs { policy: rule.name(), flow, jobs });
        }
        Err(NotOffline::Malleable { phase }) => return Err(Refused::NotCut { policy: rule.name(), phase }),
        Err(_) => None,
    };
    Ok(Proposal { rows, ..Proposal::default() })
}
