//! The published JSON Schemas of the documents, made from the structs that read them.
//!
//! `docs/schema/*.schema.json` are checked in; a test holds them against these, and rewrites them
//! when `SLACKLINE_BLESS` is set. Nothing else asks for them, so they are compiled for tests alone.

use schemars::{JsonSchema, schema_for};

use crate::documents::{comparison, history, schedule, workload};
use crate::reading::parse::VERSION;

/// The schemas by the names of their documents, as JSON text.
pub(crate) fn schemas() -> [(&'static str, String); 6] {
    [
        of::<workload::wire::Workload>("workload"),
        of::<workload::wire::Line>("workload-line"),
        of::<schedule::wire::FullDocument<'_>>("schedule"),
        of::<schedule::wire::Line<'_>>("schedule-line"),
        of::<comparison::Comparison>("comparison"),
        of::<history::Document>("history"),
    ]
}

/// The schema of a document, named after it and the version of the documents.
/// The schema says nothing of the value that a missing field has.
pub(crate) fn without_default(schema: &mut schemars::Schema) {
    schema.remove("default");
}

fn of<T: JsonSchema>(name: &'static str) -> (&'static str, String) {
    let mut schema = schema_for!(T);
    schema.insert("$id".to_owned(), format!("urn:slackline:{name}:{VERSION}").into());
    let mut text = serde_json::to_string_pretty(&schema).expect("invariant: schemas are JSON");
    text.push('\n');
    (name, text)
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
        let clock_times = std::fs::read_to_string(format!("{ROOT}/examples/morning.toml")).unwrap();
        validator("workload").validate(&toml::from_str(&clock_times).unwrap()).unwrap();
        let mut wrong = workload;
        wrong["flows"][0]["release"] = true.into();
        assert!(validator("workload").validate(&wrong).is_err());
        wrong["flows"][0]["release"] = 0.into();
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

    #[test]
    fn lines_follow_their_schema() {
        for line in example("schedule.jsonl").lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            validator("schedule-line").validate(&line).unwrap();
            let mut wrong = line;
            wrong["new"] = 1.into();
            assert!(validator("schedule-line").validate(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn workloads_in_lines_follow_their_schema() {
        let draft = crate::read_workload(
            "w.toml",
            example("workload.toml").as_bytes(),
            None,
            &crate::ImportOptions::default(),
        );
        let mut lines = Vec::new();
        crate::write_workload_lines(&mut lines, &draft.unwrap().draft).unwrap();
        for line in std::str::from_utf8(&lines).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            validator("workload-line").validate(&line).unwrap();
            let mut wrong = line;
            wrong["new"] = 1.into();
            assert!(validator("workload-line").validate(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_schema_refuses_what_the_program_refuses() {
        let workload: Value = toml::from_str(&example("workload.toml")).unwrap();
        for (pointer, value) in [
            ("/cluster/machines/0/count", 0.into()),
            ("/cluster/machines/0/speed", 0.into()),
            ("/flows/0/release", (-1).into()),
            ("/flows/0/deadline", (-1).into()),
            ("/flows/0/weight", (-1).into()),
            ("/flows/0/repeat", serde_json::json!({ "every": 1, "times": 0 })),
            ("/flows/0/jobs", serde_json::json!([])),
            ("/flows/0/jobs/0/map/tasks", 0.into()),
            ("/flows/0/jobs/0/map", serde_json::json!({ "work": -1 })),
            ("/flows/0/jobs/0/map", serde_json::json!({ "splits": [{ "seconds": 1, "count": 0 }] })),
            ("/flows/0/jobs/0/map", serde_json::json!({ "splits": [{ "seconds": -1 }] })),
        ] {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let mut wrong = workload.clone();
            wrong.pointer_mut(parent).unwrap()[field] = value;
            assert!(validator("workload").validate(&wrong).is_err(), "{pointer}");
            let bytes = serde_json::to_vec(&wrong).unwrap();
            let read = crate::read_workload("w.json", &bytes, None, &crate::ImportOptions::default());
            let made = read.map(|read| slackline_model::Instance::new(&read.draft).is_ok());
            assert!(!matches!(made, Ok(true)), "{pointer}");
        }
    }

    #[test]
    fn documents_may_name_their_schema() {
        let named = |text: &str| text.replacen('{', "{\"$schema\": \"here.schema.json\",", 1);
        let schedule = named(&example("schedule.json"));
        crate::read_schedule_head("s.json", schedule.as_bytes()).unwrap();
        let history = named(&example("history.json"));
        crate::read_history("h.json", history.as_bytes()).unwrap();
        let workload = "{\"$schema\": \"w.schema.json\", \"slackline\": 1, \"flows\": []}";
        crate::read_workload("w.json", workload.as_bytes(), None, &crate::ImportOptions::default()).unwrap();
        for (name, text) in [("schedule", schedule), ("history", history), ("workload", workload.to_owned())]
        {
            validator(name).validate(&serde_json::from_str(&text).unwrap()).unwrap();
        }
        let wrong = workload.replace("\"w.schema.json\"", "3");
        assert!(
            crate::read_workload("w.json", wrong.as_bytes(), None, &crate::ImportOptions::default()).is_err()
        );
    }
}
