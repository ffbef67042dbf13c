//! `cargo xtask counters`: counts size, shape and ruled-out words of the workspace, with limits in
//! `record/limits.toml`.
//!
//! - `source`: one file of Rust without its tests;
//! - `imports`: import cycles, and imports of a higher layer;
//! - `words`: splits a text into words.

mod imports;
mod source;
mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::ROOT;
use source::{Function, Kind, Source, Type};

const LIMITS: &str = "record/limits.toml";
/// Files that list the ruled-out words.
const RULES: [&str; 2] = [LIMITS, "docs/words.md"];
/// Files in which words count.
const ENDINGS: [&str; 7] = ["html", "java", "md", "py", "rs", "toml", "ts"];
/// Lines of a function that fits a screen.
const SCREEN: usize = 75;

#[derive(Deserialize)]
struct Limits {
    shape: BTreeMap<String, usize>,
    size: BTreeMap<String, usize>,
    words: BTreeMap<String, usize>,
    names: Names,
    /// For a crate its modules in layers, the lowest first.
    layers: BTreeMap<String, Vec<Vec<String>>>,
}

/// Names that counters look for. A type or trait is named with its crate: `policy::Engine`.
#[derive(Deserialize)]
struct Names {
    forbidden_types: Vec<String>,
    event_types: Vec<String>,
    engine_traits: Vec<String>,
    /// Uses of ruled-out words that are right, and are not counted.
    right_phrases: Vec<String>,
}

struct Counter {
    name: String,
    value: usize,
    /// The amount in each place, the largest first.
    places: Vec<(usize, String)>,
}

impl Counter {
    /// A counter that adds up its places.
    fn sum(name: &str, places: impl IntoIterator<Item = (usize, String)>) -> Self {
        let mut places: Vec<_> = places.into_iter().filter(|(amount, _)| *amount > 0).collect();
        places.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        Self { name: name.to_owned(), value: places.iter().map(|(amount, _)| amount).sum(), places }
    }

    /// A counter of its largest place.
    fn largest(name: &str, places: impl IntoIterator<Item = (usize, String)>) -> Self {
        let all = Self::sum(name, places);
        Self { value: all.places.first().map_or(0, |(amount, _)| *amount), ..all }
    }

    /// A line of a table of `record/limits.toml`.
    fn line(&self, limit: usize) -> String {
        let largest = self.places.first().map(|(amount, at)| format!("; {at}: {amount}"));
        let key = if self.name.contains(' ') { format!("{:?}", self.name) } else { self.name.clone() };
        format!("{key} = {} # limit {limit}{}\n", self.value, largest.unwrap_or_default())
    }

    /// The error if the counter is above its limit.
    fn excess(&self, limit: usize) -> Option<String> {
        let name = &self.name;
        let largest = self.places.first().map_or("", |(_, at)| at.as_str());
        (self.value > limit).then(|| {
            format!(
                "{name} is {}, above its limit of {limit} in {LIMITS}; the largest: {largest}; \
                 `cargo xtask counters {name:?}` lists all",
                self.value
            )
        })
    }
}

/// Prints all counters, or the places of one.
///
/// # Errors
/// A counter above its limit or without a limit, an unknown name, files that cannot be read.
pub(crate) fn run(name: Option<&str>) -> anyhow::Result<()> {
    let root = Path::new(ROOT);
    let limits: Limits = toml::from_str(&read(root, LIMITS)?).context(LIMITS)?;
    let mut files = Vec::new();
    find(root, "", &mut files)?;
    let sources = sources(root, &files)?;
    let tables = [
        ("shape", shape(&sources, &limits), &limits.shape),
        ("size", size(root, &files, &sources)?, &limits.size),
        ("words", ruled_out(root, &files, &limits)?, &limits.words),
    ];
    if let Some(name) = name {
        let mut counters = tables.iter().flat_map(|(_, counters, _)| counters);
        let counter = counters.find(|counter| counter.name == name);
        let places = &counter.with_context(|| format!("there is no counter {name}"))?.places;
        let lines: Vec<_> = places.iter().map(|(amount, at)| format!("{at}: {amount}\n")).collect();
        return print(&lines.concat());
    }
    let (mut out, mut excess) = (String::new(), Vec::new());
    for (table, counters, limits) in &tables {
        let _ = writeln!(out, "[{table}]");
        for counter in counters {
            let limit = limits.get(&counter.name).copied();
            let limit = limit.with_context(|| format!("{LIMITS}: [{table}] lacks {}", counter.name))?;
            out += &counter.line(limit);
            excess.extend(counter.excess(limit));
        }
    }
    print(&out)?;
    ensure!(excess.is_empty(), "{}", excess.join("\n"));
    Ok(())
}

/// Texts of the program's code by file, in the order of files and lines.
///
/// # Errors
/// Files that cannot be read.
pub(crate) fn texts(root: &Path) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let mut files = Vec::new();
    find(root, "crates", &mut files)?;
    Ok(sources(root, &files)?.into_iter().map(|source| (source.path, source.texts)).collect())
}

/// The counters of shape, for production code.
fn shape(sources: &[Source], limits: &Limits) -> Vec<Counter> {
    let names = &limits.names;
    let edges = imports::edges(sources);
    let path = |index: usize| sources[index].path.as_str();
    let cycles = imports::cycles(&edges).into_iter();
    let cycles = cycles.map(|files| (1, files.into_iter().map(path).collect::<Vec<_>>().join(", ")));
    let upwards = imports::upwards(sources, &edges, &limits.layers).into_iter();
    let upwards = upwards.map(|(from, to)| (1, format!("{} imports {}", path(from), path(to))));
    let functions = |amount: fn(&Function) -> usize| {
        let of = |source: &Source| -> Vec<_> {
            let place = |function: &Function| (amount(function), source.at(function.line, &function.name));
            source.functions.iter().map(place).collect()
        };
        sources.iter().flat_map(of).collect::<Vec<_>>()
    };
    let types = |amount: &dyn Fn(&str, &Type) -> usize| {
        let of = |source: &Source| -> Vec<_> {
            let place = |a_type: &Type| {
                let name = format!("{}::{}", source.crate_name(), a_type.name);
                (amount(&name, a_type), source.at(a_type.line, &a_type.name))
            };
            source.types.iter().map(place).collect()
        };
        sources.iter().flat_map(of).collect::<Vec<_>>()
    };
    let has = |list: &[String], name: &str| list.iter().any(|listed| listed == name);
    let size = |kind, a_type: &Type| if a_type.kind == kind { a_type.size } else { 0 };
    vec![
        Counter::sum("import_cycles", cycles),
        Counter::sum("upward_imports", upwards),
        Counter::sum("tuple_parameters", functions(|function| function.tuples)),
        Counter::sum("types_named_job", types(&|_, a_type| usize::from(a_type.name == "Job"))),
        Counter::sum(
            "forbidden_type_names",
            types(&|_, a_type| usize::from(has(&names.forbidden_types, &a_type.name))),
        ),
        Counter::sum("event_types", types(&|name, _| usize::from(has(&names.event_types, name)))),
        Counter::sum(
            "engine_methods",
            types(&|name, a_type| {
                if has(&names.engine_traits, name) { size(Kind::Trait, a_type) } else { 0 }
            }),
        ),
        Counter::largest("largest_file", sources.iter().map(|source| (source.lines, source.path.clone()))),
        Counter::largest("largest_struct", types(&|_, a_type| size(Kind::Struct, a_type))),
        Counter::largest("largest_function", functions(|function| function.lines)),
        Counter::sum("long_functions", functions(|function| usize::from(function.lines > SCREEN))),
    ]
}

/// The counters of size, of code, dependencies and documents.
fn size(root: &Path, files: &[String], sources: &[Source]) -> anyhow::Result<Vec<Counter>> {
    let manifest: toml::Table = toml::from_str(&read(root, "Cargo.toml")?).context("Cargo.toml")?;
    let dependencies =
        manifest["workspace"]["dependencies"].as_table().context("Cargo.toml: no dependencies")?;
    let third_party = dependencies.iter().filter(|(_, wanted)| wanted.get("path").is_none());
    let lock: toml::Table = toml::from_str(&read(root, "Cargo.lock")?).context("Cargo.lock")?;
    let packages = lock["package"].as_array().context("Cargo.lock: no packages")?;
    let packages =
        packages.iter().map(|package| (1, package["name"].as_str().unwrap_or_default().to_owned()));
    let mut words = Vec::new();
    for path in files.iter().filter(|path| ending(path) == "md") {
        words.push((read(root, path)?.split_whitespace().count(), path.clone()));
    }
    let records = words.iter().filter(|(_, path)| path == "CHANGELOG.md" || path.starts_with("record/"));
    let of_files = |name, amount: fn(&Source) -> usize| {
        Counter::sum(name, sources.iter().map(|source| (amount(source), source.path.clone())))
    };
    Ok(vec![
        of_files("rust_lines", |source| source.all_lines),
        of_files("production_lines", |source| source.code),
        of_files("structs_and_enums", |source| {
            source.types.iter().filter(|a_type| matches!(a_type.kind, Kind::Struct | Kind::Enum)).count()
        }),
        Counter::sum("dependencies", third_party.map(|(name, _)| (1, name.clone()))),
        Counter::sum("packages", packages),
        Counter::sum("changelog_and_record_words", records.cloned()),
        Counter::sum("markdown_words", words),
    ])
}

/// A counter for each ruled-out word or phrase.
fn ruled_out(root: &Path, files: &[String], limits: &Limits) -> anyhow::Result<Vec<Counter>> {
    let is_read = |path: &&String| ENDINGS.contains(&ending(path)) && !RULES.contains(&path.as_str());
    let mut texts = Vec::new();
    for path in files.iter().filter(is_read) {
        let mut text = words::split(&read(root, path)?);
        for right in &limits.names.right_phrases {
            text = text.replace(&words::phrase(right), "|");
        }
        texts.push((path, text));
    }
    let counter = |word: &String| {
        let phrase = words::phrase(word);
        let count = |(path, text): &(&String, String)| (text.matches(&phrase).count(), (*path).clone());
        Counter::sum(word, texts.iter().map(count))
    };
    Ok(limits.words.keys().map(counter).collect())
}

/// All Rust files in `crates`; test modules are empty.
fn sources(root: &Path, files: &[String]) -> anyhow::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in files.iter().filter(|path| path.starts_with("crates/") && ending(path) == "rs") {
        sources.push(Source::of(path, &read(root, path)?)?);
    }
    let tests: Vec<String> = sources.iter().flat_map(Source::test_modules).collect();
    for source in &mut sources {
        let is_test = |module: &String| {
            source.path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        if tests.iter().any(is_test) {
            source.clear();
        }
    }
    Ok(sources)
}

/// The files below a folder, sorted by name, without hidden files, links and build results.
fn find(root: &Path, folder: &str, files: &mut Vec<String>) -> anyhow::Result<()> {
    let mut entries = fs::read_dir(root.join(folder))?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let name = name.to_string_lossy();
        let path = if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") };
        if kind.is_file() {
            files.push(path);
        } else if kind.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
            find(root, &path, files)?;
        }
    }
    Ok(())
}

fn ending(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, ending)| ending)
}

fn read(root: &Path, path: &str) -> anyhow::Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| path.to_owned())
}

fn print(text: &str) -> anyhow::Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

#[cfg(test)]
mod tests;
