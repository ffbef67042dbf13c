//! `docs/documents`: a page for each kind of document, made from the schemas in `docs/schema`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Map, Value};

/// The directory of the schemas, and the ending of their names.
const SCHEMAS: &str = "docs/schema";
const ENDING: &str = ".schema.json";
/// The directory of the pages.
const PAGES: &str = "docs/documents";

/// The pages by file name.
///
/// # Errors
/// A schema that cannot be read.
pub(crate) fn pages(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let mut index = String::from(
        "# Documents\n\nMade from the schemas in `docs/schema`, which are made from the structs that read the documents, by \
         `cargo xtask bless`; a test fails when a page is stale.\n\n| document | what it is |\n|---|---|\n",
    );
    for entry in fs::read_dir(root.join(SCHEMAS)).with_context(|| SCHEMAS.to_owned())? {
        let path = entry?.path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = file.strip_suffix(ENDING) else { continue };
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let schema: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        pages.insert(format!("{name}.md"), (said(&schema), page(name, &schema)));
    }
    for (file, (about, _)) in &pages {
        let name = file.trim_end_matches(".md");
        let _ = writeln!(index, "| [{name}]({file}) | {} |", cell(about));
    }
    let mut pages: BTreeMap<_, _> = pages.into_iter().map(|(file, (_, page))| (file, page)).collect();
    pages.insert("README.md".to_owned(), index);
    Ok(pages)
}

/// Writes the pages and removes obsolete ones.
///
/// # Errors
/// Files that cannot be read or written.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let folder = root.join(PAGES);
    fs::create_dir_all(&folder)?;
    let pages = pages(root)?;
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(|name| pages.contains_key(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    for (name, page) in pages {
        fs::write(folder.join(name), page)?;
    }
    Ok(())
}

/// A page: the purpose of the document, and each of its objects with its fields.
fn page(name: &str, schema: &Value) -> String {
    let title = text(schema, "title").unwrap_or(name);
    let mut out =
        format!("# {title}\n\n{}\n\nSchema: [{name}{ENDING}](../schema/{name}{ENDING}).\n", said(schema));
    body(&mut out, schema);
    let none = Map::new();
    for (name, part) in sorted(schema["$defs"].as_object().unwrap_or(&none)) {
        let _ = write!(out, "\n## {name}\n\n{}\n", said(part));
        body(&mut out, part);
    }
    out
}

/// The fields of an object, or the variants of a value.
fn body(out: &mut String, schema: &Value) {
    let forms = forms(schema);
    if let Some(forms) = forms {
        out.push_str("\nOne of:\n\n");
        for form in forms {
            let about = text(form, "description").map(|about| format!(": {}", cell(about)));
            let _ = writeln!(out, "- {}{}", value(form), about.unwrap_or_default());
        }
    }
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
        if forms.is_none() {
            let _ = write!(out, "\n{}\n", capital(&value(schema)));
        }
        return;
    };
    out.push_str("\n| field | value | needed | meaning |\n|---|---|---|---|\n");
    let needed = |field: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == field))
    };
    // Required fields first.
    for wanted in [true, false] {
        for (field, is) in sorted(fields).into_iter().filter(|(field, _)| needed(field) == wanted) {
            let yes = if wanted { "yes" } else { "" };
            let about = cell(text(is, "description").unwrap_or_default());
            let _ = writeln!(out, "| `{field}` | {} | {yes} | {about} |", value(is));
        }
    }
    if let Some(more) = schema["additionalProperties"].as_object() {
        let _ = writeln!(out, "\nEvery other field: {}.", value(&Value::Object(more.clone())));
    }
}

/// The possible values, in a few words.
fn value(schema: &Value) -> String {
    let (nothing, mut parts): (Vec<_>, Vec<_>) =
        alternatives(schema).into_iter().partition(|part| part == "null");
    parts.extend(nothing.into_iter().take(1));
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() { last } else { format!("{} or {last}", parts.join(", ")) }
}

/// The alternatives for a value.
fn alternatives(schema: &Value) -> Vec<String> {
    if let Some(name) = text(schema, "$ref").and_then(|path| path.rsplit('/').next()) {
        let link = format!("[{name}](#{})", name.to_lowercase());
        let also = schema["properties"].as_object().map(|fields| format!(" with {}", inline(fields)));
        return vec![link + &also.unwrap_or_default()];
    }
    if let Some(is) = schema.get("const") {
        return vec![format!("`{is}`")];
    }
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| if word.is_null() { "null".to_owned() } else { format!("`{word}`") })
            .collect();
    }
    if let Some(forms) = forms(schema) {
        return forms.iter().flat_map(alternatives).collect();
    }
    match &schema["type"] {
        Value::String(kind) => vec![of_kind(kind, schema)],
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).map(|kind| of_kind(kind, schema)).collect()
        }
        _ => vec!["anything".to_owned()],
    }
}

/// The variants of a value.
fn forms(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array())
}

/// The possible values of a kind.
fn of_kind(kind: &str, schema: &Value) -> String {
    match kind {
        "string" => "text".to_owned(),
        "boolean" => "true or false".to_owned(),
        "integer" | "number" => {
            let kind = if kind == "integer" { "whole number" } else { "number" };
            let limit = |key: &str, word| schema[key].as_f64().map(|least| format!(" {word} {least}"));
            let least = limit("minimum", "from").or(limit("exclusiveMinimum", "above"));
            let most = limit("maximum", "to").or(limit("exclusiveMaximum", "below"));
            format!("{kind}{}{}", least.unwrap_or_default(), most.unwrap_or_default())
        }
        "array" => {
            if let Some(items) = schema["prefixItems"].as_array() {
                return format!("\\[{}\\]", items.iter().map(value).collect::<Vec<_>>().join(", "));
            }
            let items = schema.get("items").map_or_else(|| "anything".to_owned(), value);
            let least = schema["minItems"].as_u64().map(|least| format!(" (at least {least})"));
            let items = if items.contains(" or ") { format!("({items})") } else { items };
            format!("list of {items}{}", least.unwrap_or_default())
        }
        "object" => match (schema["properties"].as_object(), schema["additionalProperties"].as_object()) {
            (Some(fields), _) => inline(fields),
            (None, Some(each)) => format!("names with {}", value(&Value::Object(each.clone()))),
            (None, None) => "object".to_owned(),
        },
        kind => kind.to_owned(),
    }
}

/// The fields of a small object in a line.
fn inline(fields: &Map<String, Value>) -> String {
    let fields = sorted(fields);
    let fields = fields.into_iter().map(|(field, is)| format!("`{field}`: {}", value(is)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// By name: the order of keys in a file depends on features of `serde_json` that other crates enable.
fn sorted(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema[key].as_str()
}

/// The description of a schema, as Markdown.
fn said(schema: &Value) -> String {
    text(schema, "description").unwrap_or_default().replace('\n', " ").replace('<', "\\<")
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|").replace('<', "\\<")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).chain(['.']).collect())
}

#[test]
fn the_pages_of_documents_are_current() {
    let root = Path::new(crate::ROOT);
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        write(root).unwrap();
    }
    let pages = pages(root).unwrap();
    assert!(pages.len() > 10);
    let kept = fs::read_dir(root.join(PAGES)).unwrap().count();
    assert_eq!(kept, pages.len(), "{PAGES}: run `cargo xtask bless`");
    for (name, page) in &pages {
        let kept = fs::read_to_string(root.join(PAGES).join(name)).unwrap_or_default();
        assert!(kept == *page, "{PAGES}/{name} is stale: run `cargo xtask bless` and review the diff");
    }
}
