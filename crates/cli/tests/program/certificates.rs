//! Certificates in tables and documents: a lower bound for each decision.

use std::fs;

use serde_json::Value;

use crate::{NIGHTLY, done, run, scratch, text};

#[test]
fn a_table_says_what_was_left_at_each_decision_and_what_each_rule_costs() {
    let table = done(&["simulate", NIGHTLY, "--certificates"]);
    for word in ["decided at", "believed", "at least", "each rule alone", "rule:order=area"] {
        assert!(table.contains(word), "{word:?} in\n{table}");
    }
    let edf = done(&["simulate", NIGHTLY, "--policy", "edf", "--certificates"]);
    assert!(!edf.contains("decided at") && edf.contains("rule:order=area"), "edf does not choose:\n{edf}");
}

#[test]
fn a_document_has_them_and_passes() {
    let file = scratch("certificates").join("auto.json");
    done(&["simulate", NIGHTLY, "--certificates", "--output", text(&file)]);
    assert!(done(&["check", NIGHTLY, text(&file)]).starts_with("feasible"));
    let document: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let choices = document["choices"].as_array().expect("what auto chose");
    for choice in choices {
        let (bound, cost) = (choice["bound"].as_f64().unwrap(), choice["cost"].as_f64().unwrap());
        assert!(bound > 0.0 && bound <= cost, "{choice}");
        let (rule, by) = (choice["rule"].as_str().unwrap(), choice["by"].as_str().unwrap());
        assert!(["kept", "rule", "search"].contains(&by), "{choice}");
        // The policy `rule` accepts the order in a certificate.
        done(&["simulate", NIGHTLY, "--policy", &format!("rule:order={rule}")]);
    }
    let area = document["rules"].as_array().unwrap().iter().find(|rule| rule["policy"] == "rule:order=area");
    let alone = done(&["simulate", NIGHTLY, "--policy", "rule:order=area", "--format", "json"]);
    let alone: Value = serde_json::from_str(&alone).unwrap();
    assert_eq!(area.unwrap()["cost"], alone["cost"]);
}

#[test]
fn workloads_that_cannot_be_certified_are_refused() {
    let lines = scratch("certificates-lines").join("auto.jsonl");
    for args in [&["--jitter", "0.2"][..], &["--profile", "hadoop"], &["--output", text(&lines)]] {
        let ran = run(&[&["simulate", NIGHTLY, "--certificates"], args].concat());
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(ran.err.starts_with("error: --certificates: found "), "{}", ran.err);
    }
    assert!(!lines.exists());
}
