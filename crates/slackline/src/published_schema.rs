//! The published JSON Schemas of the documents of this crate, generated from their structs. For tests.

use schemars::{JsonSchema, schema_for};
use serde_json::Value;

/// The schema of a document, as JSON text with an id.
pub(crate) fn text<T: JsonSchema>(id: String) -> String {
    let mut schema = schema_for!(T);
    schema.insert("$id".to_owned(), id.into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap();
    text.push('\n');
    text
}

/// Compares a schema with the one in `docs/schema`, which it replaces if `SLACKLINE_BLESS` is set.
pub(crate) fn check(name: &str, schema: &str) {
    let path = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::write(&path, schema).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    // As values: the order of keys follows features of serde_json that other crates turn on.
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    assert!(value(&published) == value(schema), "{path} is stale: run `cargo xtask bless`");
}
