//! The published JSON Schemas of the documents, made from the structs that read them.
//!
//! `docs/schema/*.schema.json` are checked in; a test holds them against these, and writes them anew
//! when `SLACKLINE_BLESS` is set. Nothing else asks for them, so they are compiled for tests alone.

use schemars::{JsonSchema, schema_for};

use crate::{comparison, history, schedule, tuning, workload};

/// The schemas by the names of their documents, as JSON text.
pub(crate) fn schemas() -> [(&'static str, String); 6] {
    [
        ("workload", text::<workload::wire::Workload>()),
        ("schedule", text::<schedule::wire::Whole<'_>>()),
        ("comparison", text::<comparison::Document>()),
        ("history", text::<history::Document>()),
        ("tuning", text::<tuning::Tuning>()),
        ("capacity", text::<tuning::Capacity>()),
    ]
}

fn text<T: JsonSchema>() -> String {
    let mut text = serde_json::to_string_pretty(&schema_for!(T)).expect("invariant: schemas are JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    fn validator(document: &str) -> jsonschema::Validator {
        let schemas = schemas();
        let (_, schema) = schemas.iter().find(|(name, _)| *name == document).expect("a document of ours");
        jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
    }

    fn example(name: &str) -> String {
        std::fs::read_to_string(format!("{ROOT}/examples/contract/{name}")).unwrap()
    }

    #[test]
    fn published_schemas_are_current() {
        for (name, schema) in schemas() {
            let path = format!("{ROOT}/docs/schema/{name}.schema.json");
            if std::env::var_os("SLACKLINE_BLESS").is_some() {
                std::fs::create_dir_all(format!("{ROOT}/docs/schema")).unwrap();
                std::fs::write(&path, &schema).unwrap();
            }
            let published = std::fs::read_to_string(&path).unwrap_or_default();
            // As values: the order of keys follows features of serde_json that other crates turn on.
            let value = |text: &str| serde_json::from_str::<Value>(text).ok();
            assert!(
                value(&published) == value(&schema),
                "{path} is stale: run this test with SLACKLINE_BLESS=1"
            );
        }
    }

    #[test]
    fn examples_follow_the_schemas() {
        let workload: Value = toml::from_str(&example("workload.toml")).unwrap();
        validator("workload").validate(&workload).unwrap();
        let mut wrong = workload;
        wrong["flows"][0]["jobs"][0]["map"]["second"] = 3.into();
        assert!(validator("workload").validate(&wrong).is_err());
        let schedule: Value = serde_json::from_str(&example("schedule.json")).unwrap();
        validator("schedule").validate(&schedule).unwrap();
        let mut wrong = schedule;
        wrong["flows"][0]["status"] = "lost".into();
        assert!(validator("schedule").validate(&wrong).is_err());
        let history: Value = serde_json::from_str(&example("history.json")).unwrap();
        validator("history").validate(&history).unwrap();
    }
}
