//! The published JSON Schema of the protocol, generated from its structs. Compiled only for tests.

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::published_schema;

use super::wire::{Answer, Call, Greeting, PROTOCOL, Welcome};

/// A line of either side, in the order in which they come.
#[derive(JsonSchema)]
#[schemars(untagged, title = "Slackline policy protocol")]
#[expect(dead_code, reason = "only its schema is of use")]
enum Message<'a> {
    /// To the program, first.
    Hello(Greeting<'a>),
    /// From the program, first.
    Welcome(Welcome),
    /// To the program, whenever something happened.
    Call(Call<'a>),
    /// From the program, every time.
    Answer(Answer),
}

fn schema() -> String {
    published_schema::text::<Message<'_>>(format!("urn:slackline:policy:{PROTOCOL}"))
}

/// A validator for one of the messages.
fn validator(message: &str) -> jsonschema::Validator {
    let mut schema: Value = serde_json::from_str(&schema()).unwrap();
    let all = schema.as_object_mut().unwrap();
    all.remove("anyOf");
    all.insert("$ref".to_owned(), format!("#/$defs/{message}").into());
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_published_schema_is_current() {
    published_schema::check("policy", &schema());
}

#[test]
fn the_examples_of_the_page_follow_the_schema() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies-in-any-language.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut seen = [0; 4];
    for line in page.lines() {
        let (message, at, text) = match line.split_once(' ') {
            Some(("→", text)) if text.contains("\"hello\"") => ("Greeting", 0, text),
            Some(("←", text)) if text.contains("\"protocol\"") => ("Welcome", 1, text),
            Some(("→", text)) => ("Call", 2, text),
            Some(("←", text)) => ("Answer", 3, text),
            _ => continue,
        };
        let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        if let Err(error) = validator(message).validate(&value) {
            panic!("{text}: {error}");
        }
        seen[at] += 1;
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn the_schema_refuses_what_the_program_refuses() {
    for (message, wrong) in [
        ("Welcome", json!({ "protocol": 2, "style": "order" })),
        ("Welcome", json!({ "protocol": 1, "style": "first" })),
        ("Welcome", json!({ "protocol": 1, "style": "order", "more": 1 })),
        ("Answer", json!({ "order": [[0]] })),
        ("Answer", json!({ "order": [-1] })),
        ("Answer", json!({ "targets": [[0]] })),
        ("Answer", json!({ "placements": [[0, 0, 0]] })),
        ("Answer", json!({ "wakes": [1] })),
        ("Answer", json!([])),
    ] {
        assert!(validator(message).validate(&wrong).is_err(), "{message} {wrong}");
    }
}
