//! `docs/verbs`: a page for each verb, made from the definitions that read the command line.
//!
//! Nothing of the program asks for them: they are compiled for tests alone, of which one holds the pages
//! against these and rewrites them when `SLACKLINE_BLESS` is set.

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::builder::PossibleValue;
use clap::{Arg, Command};

use crate::args::help::with_all_options;
use crate::tables::Tables;
use crate::verbs::command;

/// The pages by the names of their files.
fn pages() -> BTreeMap<String, String> {
    let tables = Tables::default();
    let mut program = command(&tables);
    program.build();
    let mut index = String::from(
        "# Verbs\n\nMade from the program by `cargo xtask bless`; a test fails when a page is stale. \
         `slackline VERB --help` says the same.\n\n| verb | what it does |\n|---|---|\n",
    );
    let mut pages = BTreeMap::new();
    for verb in program.get_subcommands().filter(|verb| verb.get_name() != "help" && !verb.is_hide_set()) {
        let (name, about) = (verb.get_name(), verb.get_about().map(ToString::to_string).unwrap_or_default());
        let _ = writeln!(index, "| [`{name}`]({name}.md) | {} |", escaped(&about).replace('|', "\\|"));
        // As in the manual, there is room for the options of every format and engine.
        pages.insert(format!("{name}.md"), page(with_all_options(verb.clone(), &tables), &about));
    }
    let after = program.get_after_help().map(ToString::to_string).unwrap_or_default();
    let _ = write!(index, "\n```text\n{}\n```\n", after.trim());
    pages.insert("README.md".to_owned(), index);
    pages
}

/// A page: usage, arguments, options by their headings, what stands below the help, and the same of subcommands.
fn page(mut verb: Command, about: &str) -> String {
    let usage = verb.render_usage().to_string();
    let name = usage.trim_start_matches("Usage: ").split(['<', '[', '-']).next().unwrap_or_default().trim();
    let mut out = format!("# `{name}`\n\n{}.\n\n```text\n{usage}\n```\n", escaped(about));
    let mut sections: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for arg in verb.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help") {
        let usual = if arg.is_positional() { "Arguments" } else { "Options" };
        let heading = arg.get_help_heading().unwrap_or(usual);
        match sections.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, args)) => args.push(arg),
            None => sections.push((heading, vec![arg])),
        }
    }
    for (heading, args) in sections {
        let _ = writeln!(out, "\n## {heading}\n");
        for arg in args {
            let _ = writeln!(out, "- {}: {}", self::name(arg), meaning(arg));
        }
    }
    let after = verb.get_after_long_help().or(verb.get_after_help()).map(ToString::to_string);
    if let Some(after) = after {
        let _ = write!(out, "\n## More\n\n```text\n{}\n```\n", after.trim());
    }
    for command in verb.get_subcommands().filter(|command| command.get_name() != "help") {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        // One level deeper.
        let page = page(command.clone(), &about).replace("\n## ", "\n### ");
        let _ = write!(out, "\n#{page}");
    }
    out
}

/// `-o`, `--output <FILE>`, or the name of an argument.
fn name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default().iter();
    let values = names.filter(|_| arg.get_action().takes_values()).fold(String::new(), |mut out, name| {
        let _ = write!(out, " <{name}>");
        out
    });
    if arg.is_positional() {
        return format!("**`{}`**", values.trim_start());
    }
    let short = arg.get_short().map(|short| format!("**`-{short}`**, "));
    let long = arg.get_long().unwrap_or_default();
    format!("{}**`--{long}{values}`**", short.unwrap_or_default())
}

/// Its description, its default and its values; aligned lines stay aligned, below.
fn meaning(arg: &Arg) -> String {
    let description = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let (table, prose): (Vec<&str>, Vec<&str>) = description.lines().partition(|line| line.starts_with(' '));
    let prose = prose.join("\n").trim_end_matches('.').replace("\n\n", ". ").replace('\n', " ");
    let mut out = escaped(&prose);
    let default: Vec<_> = arg.get_default_values().iter().filter_map(|value| value.to_str()).collect();
    if !default.is_empty() && !arg.is_hide_default_value_set() && arg.get_action().takes_values() {
        let _ = write!(out, " \\[default: {}\\]", default.join(","));
    }
    let words = arg.get_possible_values();
    let words: Vec<_> =
        words.iter().filter(|word| !word.is_hide_set()).map(PossibleValue::get_name).collect();
    if !words.is_empty() && !arg.is_hide_possible_values_set() && arg.get_action().takes_values() {
        let _ = write!(out, ". One of `{}`", words.join("`, `"));
    }
    if !table.is_empty() {
        let _ = write!(out, "\n\n  ```text\n{}\n  ```\n", table.join("\n"));
    }
    out
}

/// Plain text as Markdown: what stands between backquotes is code already.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| {
        if at % 2 == 1 {
            return format!("`{part}`");
        }
        part.chars().fold(String::new(), |mut out, c| {
            if "<*_[]\\".contains(c) {
                out.push('\\');
            }
            out.push(c);
            out
        })
    });
    parts.collect()
}

#[test]
fn the_pages_of_verbs_are_current() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verbs"));
    let pages = pages();
    let kept = |folder: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        for gone in kept(folder).iter().filter(|name| !pages.contains_key(*name)) {
            std::fs::remove_file(folder.join(gone)).unwrap();
        }
        for (name, page) in &pages {
            std::fs::write(folder.join(name), page).unwrap();
        }
    }
    assert_eq!(kept(folder), pages.keys().cloned().collect::<Vec<_>>(), "run `cargo xtask bless`");
    for (name, page) in &pages {
        let kept = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(kept == *page, "docs/verbs/{name} is stale: run `cargo xtask bless` and review the diff");
    }
}
