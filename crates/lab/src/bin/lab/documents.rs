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
/// The documents that describe a definition which other documents share.
const FIRST: [&str; 2] = ["workload", "schedule"];

/// The pages by file name.
///
/// # Errors
/// A schema that cannot be read.
pub(crate) fn pages(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut schemas = BTreeMap::new();
    for entry in fs::read_dir(root.join(SCHEMAS)).with_context(|| SCHEMAS.to_owned())? {
        let path = entry?.path();
        let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = file.strip_suffix(ENDING) else { continue };
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let schema: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        schemas.insert(name.to_owned(), schema);
    }
    let homes = homes(&schemas);
    let mut index = String::from(
        "# Documents\n\nLook up the fields of a document that Slackline reads or writes. Bold fields are required. `cargo xtask bless` \
         makes these pages from `docs/schema`, and the schemas from the code; a test compares them.\n\n",
    );
    let mut pages = BTreeMap::new();
    for (name, schema) in &schemas {
        let _ = writeln!(index, "- [{name}]({name}.md): {}", said(schema));
        pages.insert(format!("{name}.md"), Page { name, homes: &homes }.page(schema));
    }
    pages.insert("README.md".to_owned(), index);
    Ok(pages)
}

/// Names and contents of definitions, each with the page that describes it: several documents may share one.
type Homes<'a> = BTreeMap<(&'a str, String), &'a str>;

fn homes(schemas: &BTreeMap<String, Value>) -> Homes<'_> {
    let mut homes = Homes::new();
    let mut pages: Vec<_> = schemas.iter().collect();
    pages.sort_by_key(|(page, _)| FIRST.iter().position(|first| first == page).unwrap_or(FIRST.len()));
    for (page, schema) in pages {
        for (name, part) in schema["$defs"].as_object().into_iter().flatten() {
            homes.entry((name, part.to_string())).or_insert(page);
        }
    }
    homes
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

/// The page of a document.
struct Page<'a> {
    name: &'a str,
    homes: &'a Homes<'a>,
}

impl Page<'_> {
    /// The purpose of the document, and each of its objects with its fields.
    fn page(&self, schema: &Value) -> String {
        let name = self.name;
        let title = text(schema, "title").unwrap_or(name);
        let mut out =
            format!("# {title}\n\n{} Schema: [{name}{ENDING}](../schema/{name}{ENDING}).\n", said(schema));
        let none = Map::new();
        let parts = schema["$defs"].as_object().unwrap_or(&none);
        let repeated = repeated(parts);
        self.body(&mut out, schema, parts, &repeated);
        if !repeated.is_empty() {
            out.push_str("\n## Repeated fields\n\n");
            for (field, is) in &repeated {
                let _ = writeln!(out, "- `{field}`{}", self.field(is, parts));
            }
        }
        for (name, part) in sorted(parts) {
            if self.home(name, part) != self.name {
                continue;
            }
            let _ = write!(out, "\n## {name}\n\n{}\n", said(part));
            self.body(&mut out, part, parts, &repeated);
        }
        out
    }

    /// The page that describes a definition.
    fn home(&self, name: &str, part: &Value) -> &str {
        self.homes.get(&(name, part.to_string())).map_or(self.name, |page| *page)
    }

    /// The fields of an object, or the variants of a value.
    fn body(&self, out: &mut String, schema: &Value, parts: &Map<String, Value>, repeated: &Repeated) {
        let forms = forms(schema);
        if let Some(forms) = forms {
            let about = |form| text(form, "description").map(|about| format!(": {}", escaped(about)));
            if forms.iter().any(|form| about(form).is_some()) {
                out.push_str("\nOne of:\n\n");
                for form in forms {
                    let _ = writeln!(out, "- {}{}", self.value(form, parts), about(form).unwrap_or_default());
                }
            } else if forms.len() > FORMS_MAX {
                out.push_str("\nOne of the objects below.\n");
            } else {
                let forms: Vec<String> = forms.iter().map(|form| self.value(form, parts)).collect();
                let _ = writeln!(out, "\nOne of: {}.", forms.join(", "));
            }
        }
        let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
            if forms.is_none() {
                let _ = write!(out, "\n{}\n", capital(&self.value(schema, parts)));
            }
            return;
        };
        out.push('\n');
        let needed = |field: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == field))
        };
        let mark = |field: &str| if needed(field) { format!("**`{field}`**") } else { format!("`{field}`") };
        let mut others = Vec::new();
        // Required fields first.
        for wanted in [true, false] {
            for (field, is) in sorted(fields).into_iter().filter(|(field, _)| needed(field) == wanted) {
                if repeated.get(field.as_str()) == Some(&is) {
                    others.push(mark(field));
                } else if is.get("const").is_none() || text(is, "description").is_some() {
                    let _ = writeln!(out, "- {}{}", mark(field), self.field(is, parts));
                }
            }
        }
        if !others.is_empty() {
            let _ = writeln!(out, "- [repeated](#repeated-fields): {}", others.join(", "));
        }
        if let Some(more) = schema["additionalProperties"].as_object() {
            let more = self.value(&Value::Object(more.clone()), parts);
            let _ = writeln!(out, "\nEvery other field: {more}.");
        }
    }

    /// The values of a field, and its meaning.
    fn field(&self, schema: &Value, parts: &Map<String, Value>) -> String {
        let about = text(schema, "description").map(|about| format!(": {}", escaped(about)));
        format!(" ({}){}", self.value(schema, parts), about.unwrap_or_default())
    }

    /// The possible values, in a few words.
    fn value(&self, schema: &Value, parts: &Map<String, Value>) -> String {
        let (nothing, mut values): (Vec<_>, Vec<_>) =
            self.alternatives(schema, parts).into_iter().partition(|value| value == "null");
        values.extend(nothing.into_iter().take(1));
        let last = values.pop().unwrap_or_default();
        if values.is_empty() { last } else { format!("{} or {last}", values.join(", ")) }
    }

    /// The alternatives for a value.
    fn alternatives(&self, schema: &Value, parts: &Map<String, Value>) -> Vec<String> {
        if let Some(name) = text(schema, "$ref").and_then(|path| path.rsplit('/').next()) {
            let home = parts.get(name).map_or(self.name, |part| self.home(name, part));
            let page = if home == self.name { String::new() } else { format!("{home}.md") };
            let link = format!("[{name}]({page}#{})", name.to_lowercase());
            let also = schema["properties"].as_object().map(|fields| self.inline(fields, parts));
            return vec![also.map_or_else(|| link.clone(), |also| format!("{link} with {also}"))];
        }
        if let Some(is) = schema.get("const") {
            return vec![format!("`{is}`")];
        }
        if let Some(words) = schema["enum"].as_array() {
            let word = |word: &Value| if word.is_null() { "null".to_owned() } else { format!("`{word}`") };
            return words.iter().map(word).collect();
        }
        if let Some(forms) = forms(schema) {
            return forms.iter().flat_map(|form| self.alternatives(form, parts)).collect();
        }
        match &schema["type"] {
            Value::String(kind) => vec![self.of_kind(kind, schema, parts)],
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                kinds.map(|kind| self.of_kind(kind, schema, parts)).collect()
            }
            _ => vec!["any value".to_owned()],
        }
    }

    /// The possible values of a kind.
    fn of_kind(&self, kind: &str, schema: &Value, parts: &Map<String, Value>) -> String {
        match kind {
            "string" => "text".to_owned(),
            "boolean" => "boolean".to_owned(),
            "integer" | "number" => {
                let kind = if kind == "integer" { "integer" } else { "number" };
                let limit = |key: &str, word| {
                    schema[key].as_f64().filter(|limit| *limit != 0.0).map(|limit| format!(" {word} {limit}"))
                };
                let least = limit("minimum", "from").or(limit("exclusiveMinimum", "above"));
                let most = limit("maximum", "to").or(limit("exclusiveMaximum", "below"));
                format!("{kind}{}{}", least.unwrap_or_default(), most.unwrap_or_default())
            }
            "array" => {
                if let Some(items) = schema["prefixItems"].as_array() {
                    let items: Vec<_> = items.iter().map(|item| self.value(item, parts)).collect();
                    return format!("\\[{}\\]", items.join(", "));
                }
                let any = || "any value".to_owned();
                let items = schema.get("items").map_or_else(any, |items| self.value(items, parts));
                let items = if items.contains(" or ") { format!("({items})") } else { items };
                format!("list of {items}")
            }
            "object" => {
                match (schema["properties"].as_object(), schema["additionalProperties"].as_object()) {
                    (Some(fields), _) => self.inline(fields, parts),
                    (None, Some(each)) => {
                        format!("names with {}", self.value(&Value::Object(each.clone()), parts))
                    }
                    (None, None) => "object".to_owned(),
                }
            }
            kind => kind.to_owned(),
        }
    }

    /// The fields of a small object in a line.
    fn inline(&self, fields: &Map<String, Value>, parts: &Map<String, Value>) -> String {
        let fields = sorted(fields).into_iter();
        let fields = fields.map(|(field, is)| format!("`{field}`: {}", self.value(is, parts)));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
    }
}

/// Forms that fit a line.
const FORMS_MAX: usize = 8;

/// Fields that at least [`OFTEN`] objects of a page have with the same meaning.
type Repeated<'a> = BTreeMap<&'a str, &'a Value>;
const OFTEN: usize = 3;

fn repeated(parts: &Map<String, Value>) -> Repeated<'_> {
    let mut counts: BTreeMap<(&str, String), (usize, &Value)> = BTreeMap::new();
    for (field, is) in parts.values().filter_map(|part| part["properties"].as_object()).flatten() {
        counts.entry((field, is.to_string())).or_insert((0, is)).0 += 1;
    }
    let often = counts.into_iter().filter(|(_, (count, _))| *count >= OFTEN);
    often.map(|((field, _), (_, is))| (field, is)).collect()
}

/// The variants of a value.
fn forms(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].as_array())
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
    escaped(text(schema, "description").unwrap_or_default())
}

/// Text as Markdown, on one line.
fn escaped(text: &str) -> String {
    text.replace('\n', " ").replace('<', "\\<")
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
