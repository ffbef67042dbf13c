//! Generates the table of policies, `docs/algorithms.md`, from the registry. Compiled only for tests.

use std::fmt::Write;

use slackline_model::params::Param;

use crate::capabilities::{sentences, values};
use crate::registry::Registry;

/// The whole document.
fn markdown(registry: &Registry) -> String {
    let mut out = String::from(
        "# Policies\n\nMade from the registry by `cargo xtask bless`; a test fails when it is stale.\n\n\
         | policy | what it does | source | guarantee | flows of several jobs | map and reduce slots | mixed speeds | `plan` | minima |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for entry in registry.described() {
        let can = sentences(entry);
        let row = [
            &format!("`{}`", entry.name),
            entry.summary,
            entry.source,
            entry.guarantee,
            can.flows,
            can.map_reduce_slots,
            can.speeds,
            can.plan,
            can.minima,
        ];
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out.push_str(
        "\n## Parameters\n\nA parameter follows the name: `fifo:by=flow`, more after another `:`.\n\n",
    );
    for entry in registry.described() {
        for param in entry.params {
            let _ = writeln!(out, "- `{}:{}", entry.name, describe(param));
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
