//! Generates the table of policies, `docs/algorithms.md`, from the registry. Compiled only for tests.

use std::fmt::Write;

use slackline_model::params::Param;

use crate::capabilities::{sentences, values};
use crate::registry::Registry;

/// The whole document.
fn markdown(registry: &Registry) -> String {
    let mut out = String::from(
        "# Policies\n\n*Look up a policy with its guarantee and parameters.* A parameter follows the name: `fifo:by=flow`, more after another \
         `:`. Unless its entry differs, a policy schedules flows of several jobs on any slots and speeds, plans tasks, and ignores minima. `cargo xtask \
         bless` makes this page from the registry.\n",
    );
    // Lists of parameters, with the policy that has each first.
    let mut lists: Vec<(Vec<String>, &str)> = Vec::new();
    for entry in registry.described() {
        let can = sentences(entry);
        let _ = write!(out, "\n## `{}`\n\n{}. Source: {}.", entry.name, entry.summary, entry.source);
        for (name, usual, is) in [
            ("Guarantee", "none", entry.guarantee),
            ("Flows of several jobs", "yes", can.flows),
            ("Map and reduce slots", "yes", can.map_reduce_slots),
            ("Mixed speeds", "yes", can.speeds),
            ("`plan`", "tasks", can.plan),
            ("Minima", "ignored", can.minima),
        ] {
            if is != usual {
                let _ = write!(out, " {name}: {is}.");
            }
        }
        out.push('\n');
        let list: Vec<String> =
            entry.params.iter().map(|param| format!("- `{}\n", describe(param))).collect();
        if list.is_empty() {
            continue;
        }
        if let Some((_, first)) = lists.iter().find(|(known, _)| *known == list) {
            let _ = writeln!(out, "\nParameters: those of `{first}`.");
        } else {
            let _ = write!(out, "\n{}", list.concat());
            lists.push((list, entry.name));
        }
    }
    out
}

/// `name=value|value`, the default, and the description.
fn describe(param: &Param) -> String {
    format!("{}={}` (default {}): {}", param.name, values(param), param.default, param.help)
}

#[test]
fn the_table_of_policies_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/algorithms.md");
    let fresh = markdown(&Registry::standard());
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::write(path, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == fresh, "docs/algorithms.md is stale: run `cargo xtask bless` and review the diff");
}
