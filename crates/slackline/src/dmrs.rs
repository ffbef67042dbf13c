//! DMRS from its parameters.

use slackline_algo::dmrs::lp::Form;
use slackline_algo::dmrs::order::Key;
use slackline_algo::dmrs::{Dmrs, OnlineConfig, Reoptimise, Variant};
use slackline_model::Instance;

use crate::registry::{Capabilities, Param};

pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    flows: "online: every ready job, with its flow's weight; plan: one-job flows",
    typed: "yes",
    speeds: "yes",
    plan: "tasks",
    online: "yes",
    minima: false,
};

const LP: Param = Param {
    name: "lp",
    values: &["strong", "paper"],
    range: None,
    help: "floors and tails of the linear program: those of each phase, or the paper's",
};

const KEY: Param = Param {
    name: "key",
    values: &["own-rate", "full-rate", "completion"],
    range: None,
    help: "what of the linear program jobs are sorted by: C - p/(2 mu_j), C - p/(2 mu), or C",
};

const REOPTIMISE: Param = Param {
    name: "reoptimise",
    values: &["yes", "no"],
    range: None,
    help: "whether the list is made anew when another machine has become best for the next task",
};

/// Parameters of `dmrs`; the other two take those of them that come first.
pub(crate) const PARAMS: &[Param] = &[REOPTIMISE, LP, KEY];

/// Parameters of `dmrs-map-only`.
pub(crate) const MAP_ONLY_PARAMS: &[Param] = &[REOPTIMISE];

/// Parameters of `dmrs-identical`, which keeps to its list.
pub(crate) const IDENTICAL_PARAMS: &[Param] = &[];

/// How a variant plans: the parameters that a plan depends on.
pub(crate) fn plan_config(variant: Variant, choices: &[usize]) -> slackline_algo::dmrs::Config {
    let config = online_config(variant, choices);
    slackline_algo::dmrs::Config { variant, form: config.form, key: config.key }
}

/// The policy of a variant; parameters it does not have are at their defaults.
pub(crate) fn build(variant: Variant, instance: &Instance, choices: &[usize]) -> Dmrs {
    Dmrs::new(instance.cluster(), online_config(variant, choices))
}

fn online_config(variant: Variant, choices: &[usize]) -> OnlineConfig {
    let choice = |at: usize| choices.get(at).copied().unwrap_or(0);
    OnlineConfig {
        variant,
        reoptimise: [Reoptimise::OnDeparture, Reoptimise::Never][choice(0)],
        form: [Form::Strong, Form::Paper][choice(1)],
        key: [Key::OwnRate, Key::FullRate, Key::Completion][choice(2)],
    }
}
