//! The entries of DMRS and its two baselines in the table of policies.

use slackline_model::params::{Param, Settings, Values};
use slackline_model::schedule::Rows;
use slackline_model::{Instance, Metric};

use super::lp::Form;
use super::online::{self, Dmrs, Reoptimise};
use super::order::Key;
use super::plan::{Config, plan};
use super::variant::Variant;
use crate::registry::{Capabilities, Flows, Planner, PolicyEntry, Proposal, Refused};

pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "dmrs, sections III to V",
    guarantee: "in plans: Theorem 1 of the paper; online: none",
    capabilities: Capabilities { flows: Flows::ReadyJobs, ..Capabilities::WITH_SPEEDS },
    params: &[REOPTIMISE, LP, KEY],
    ..entry::<{ Variant::Full as usize }>(
        "weighted completion on machines of different speed: list scheduling in the order of a linear program",
    )
};

pub const IDENTICAL: PolicyEntry = PolicyEntry {
    capabilities: Capabilities { flows: Flows::ReadyJobs, ..Capabilities::PLAIN },
    ..entry::<{ Variant::Identical as usize }>("dmrs as if all machines had the mean speed")
};

pub const MAP_ONLY: PolicyEntry = PolicyEntry {
    params: &[REOPTIMISE],
    capabilities: ENTRY.capabilities,
    ..entry::<{ Variant::MapOnly as usize }>("dmrs for maps alone; reduces go to the first free slot")
};

/// The entry of the variant with that number.
const fn entry<const VARIANT: usize>(summary: &'static str) -> PolicyEntry {
    PolicyEntry {
        source: "dmrs, section VI",
        planner: Planner::Tasks(|instance, settings, stop| {
            propose(instance, stop, config(Variant::ALL[VARIANT], settings))
        }),
        ..PolicyEntry::new(Variant::ALL[VARIANT].name(), summary, |cluster, _, settings| {
            Box::new(Dmrs::new(cluster, config(Variant::ALL[VARIANT], settings)))
        })
    }
}

const REOPTIMISE: Param = Param::new(
    "reoptimise",
    "yes",
    Values::Choice(&["yes", "no"]),
    "whether to rebuild the list when a different machine becomes best for the next task",
);

const LP: Param = Param::new(
    "lp",
    "strong",
    Values::Choice(&["strong", "paper"]),
    "lower limits of completion times in the linear program: those of each phase, or the paper's",
);

const KEY: Param = Param::new(
    "key",
    "own-rate",
    Values::Choice(&["own-rate", "full-rate", "completion"]),
    "sort key of the jobs, from the linear program: C - p/(2 mu_j), C - p/(2 mu), or C",
);

/// The configuration of a variant; parameters it does not have are at their defaults.
fn config(variant: Variant, settings: &Settings) -> online::Config {
    let mut config = online::Config { variant, ..online::Config::default() };
    if variant != Variant::Identical && settings.choice("reoptimise") == "no" {
        config.reoptimise = Reoptimise::Never;
    }
    if variant == Variant::Full {
        config.form = if settings.choice("lp") == "paper" { Form::Paper } else { Form::Strong };
        config.key = match settings.choice("key") {
            "completion" => Key::Completion,
            "full-rate" => Key::FullRate,
            _ => Key::OwnRate,
        };
    }
    config
}

fn propose(
    instance: &Instance,
    stop: &dyn Fn() -> bool,
    config: online::Config,
) -> Result<Proposal, Refused> {
    let online::Config { variant, form, key, .. } = config;
    let plan = plan(instance, Config { variant, form, key })?;
    let of = match instance.objective().metric {
        Metric::Completion => "",
        _ => " of weighted completion",
    };
    let guarantee = |ratio: f64| {
        let times = (ratio * 1000.0).ceil() / 1000.0;
        format!("at most {times} times the optimum{of} (Theorem 1)")
    };
    let form = slackline_relax::Form::Tasks;
    let known = || slackline_relax::best_of(&slackline_relax::bounds_until(instance, form, stop));
    Ok(Proposal {
        // Rounding to whole microseconds may leave the program's value a little above the cost.
        bound: plan.lower_bound.map(|own| own.min(plan.cost).max(known())),
        guarantee: plan.ratio.map(guarantee),
        rows: Some(Rows::Tasks(plan.tasks)),
        ..Proposal::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_by_name_and_others_are_at_their_defaults() {
        let all = [("reoptimise", "no"), ("lp", "paper"), ("key", "full-rate")];
        let settings = Settings::parse(ENTRY.params, all).expect("the values are valid");
        let (form, key) = (Form::Paper, Key::FullRate);
        let expected = online::Config { variant: Variant::Full, reoptimise: Reoptimise::Never, form, key };
        assert_eq!(config(Variant::Full, &settings), expected);
        let settings = Settings::parse(MAP_ONLY.params, [all[0]]).expect("the values are valid");
        let expected = online::Config {
            variant: Variant::MapOnly,
            reoptimise: Reoptimise::Never,
            ..online::Config::default()
        };
        assert_eq!(config(Variant::MapOnly, &settings), expected);
        let settings = Settings::defaults(IDENTICAL.params);
        let expected = online::Config { variant: Variant::Identical, ..online::Config::default() };
        assert_eq!(config(Variant::Identical, &settings), expected);
    }
}
