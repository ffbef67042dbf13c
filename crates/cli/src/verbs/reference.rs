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
        "# Commands\n\nLook up a command and its options. `slackline COMMAND --help` prints the same; `cargo xtask bless` makes these \
         pages, and a test compares them.\n\n",
    );
    let shown = |verb: &&Command| verb.get_name() != "help" && !verb.is_hide_set();
    // As in the manual, there is room for the options of every format and engine.
    let verbs: Vec<Command> =
        program.get_subcommands().filter(shown).map(|verb| with_all_options(verb.clone(), &tables)).collect();
    let shared = Shared::of(&verbs);
    let mut pages = BTreeMap::new();
    for verb in verbs {
        let (name, about) = (verb.get_name().to_owned(), about(&verb));
        let _ = writeln!(index, "- [`{name}`]({name}.md): {}", escaped(&about));
        pages.insert(format!("{name}.md"), page(verb, &about, &shared));
    }
    let after = program.get_after_help().map(ToString::to_string).unwrap_or_default();
    let _ = write!(index, "\n[Options of several commands](options.md).\n\n```txt\n{}\n```\n", after.trim());
    pages.insert("README.md".to_owned(), index);
    pages.insert("options.md".to_owned(), shared.page());
    pages
}

fn about(verb: &Command) -> String {
    verb.get_about().map(ToString::to_string).unwrap_or_default()
}

/// The text below the help.
fn after(verb: &Command) -> String {
    let after = verb.get_after_long_help().or(verb.get_after_help());
    after.map(ToString::to_string).unwrap_or_default().trim().to_owned()
}

/// The shown options of a command with their headings.
fn options(verb: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    verb.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help").map(|arg| {
        let usual = if arg.is_positional() { "Arguments" } else { "Options" };
        (arg.get_help_heading().unwrap_or(usual), arg)
    })
}

/// An option and what it means.
fn item(arg: &Arg) -> String {
    format!("- {}: {}", name(arg), meaning(arg))
}

/// Whether a paragraph below the help lists parameters.
fn is_parameters(paragraph: &str) -> bool {
    paragraph.starts_with("Options of ")
}

/// A list of parameters as Markdown; the help wraps its lines.
fn parameters(paragraph: &str) -> String {
    let mut items: Vec<String> = Vec::new();
    for line in paragraph.lines().skip(1) {
        let is_first = line.strip_prefix("  ").is_some_and(|rest| !rest.starts_with(' '));
        if let Some(item) = items.last_mut().filter(|_| !is_first) {
            item.extend([" ", line.trim()]);
        } else {
            let (name, about) = line.trim().split_once("  ").unwrap_or((line.trim(), ""));
            items.push(format!("- `{name}`: {}", about.trim()));
        }
    }
    let heading = paragraph.lines().next().unwrap_or_default();
    let text = format!("{heading}\n\n{}", items.join("\n"));
    text.replace(" such as 128MiB, at least 1 byte", "")
        .replace("seconds or a duration such as 90s, 1.5h or 2d", "a duration")
}

/// The options and lists of parameters that several commands have, in their order.
struct Shared {
    items: Vec<(String, String)>,
    parameters: Vec<String>,
}

impl Shared {
    fn of(verbs: &[Command]) -> Self {
        let (mut items, mut parameters) = (Vec::new(), Vec::new());
        let mut waiting: Vec<&Command> = verbs.iter().rev().collect();
        while let Some(verb) = waiting.pop() {
            items.extend(options(verb).map(|(heading, arg)| (heading.to_owned(), item(arg))));
            parameters
                .extend(after(verb).split("\n\n").filter(|part| is_parameters(part)).map(str::to_owned));
            waiting.extend(verb.get_subcommands().filter(|command| command.get_name() != "help"));
        }
        let several =
            |texts: Vec<&String>, text: &String| texts.iter().filter(|other| **other == text).count() > 1;
        let mut shared = Shared { items: Vec::new(), parameters: Vec::new() };
        for (heading, item) in &items {
            let is_new = shared.items.iter().all(|(_, known)| known != item);
            if is_new && several(items.iter().map(|(_, item)| item).collect(), item) {
                shared.items.push((heading.clone(), item.clone()));
            }
        }
        for list in &parameters {
            if !shared.parameters.contains(list) && several(parameters.iter().collect(), list) {
                shared.parameters.push(list.clone());
            }
        }
        shared
    }

    fn has(&self, item: &str) -> bool {
        self.items.iter().any(|(_, known)| known == item)
    }

    fn page(&self) -> String {
        let mut out = String::from(
            "# Options of several commands\n\nThe page of each command lists its own options, and names those of this page.\n",
        );
        let mut headings: Vec<&str> = Vec::new();
        for (heading, _) in &self.items {
            if !headings.contains(&heading.as_str()) {
                headings.push(heading);
            }
        }
        for heading in headings {
            let _ = writeln!(out, "\n## {heading}\n");
            for (_, item) in self.items.iter().filter(|(of, _)| of == heading) {
                let _ = writeln!(out, "{item}");
            }
        }
        out.push_str("\n## Parameters of engines\n");
        for list in &self.parameters {
            let _ = write!(out, "\n{}\n", parameters(list));
        }
        out
    }
}

/// A page: usage, arguments, options by their headings, what stands below the help, and the same of subcommands.
fn page(mut verb: Command, about: &str, shared: &Shared) -> String {
    let usage = verb.render_usage().to_string();
    let title = usage.trim_start_matches("Usage: ").split(['<', '[', '-']).next().unwrap_or_default().trim();
    let mut out = format!("# `{title}`\n\n{}.\n\n```txt\n{usage}\n```\n", escaped(about));
    let mut sections: Vec<(&str, Vec<String>)> = Vec::new();
    let mut elsewhere = Vec::new();
    for (heading, arg) in options(&verb) {
        let item = item(arg);
        if shared.has(&item) {
            elsewhere
                .push(format!("`{}`", arg.get_long().map_or_else(|| name(arg), |long| format!("--{long}"))));
            continue;
        }
        match sections.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, items)) => items.push(item),
            None => sections.push((heading, vec![item])),
        }
    }
    for (heading, items) in sections {
        let _ = write!(out, "\n## {heading}\n\n{}\n", items.join("\n"));
    }
    if !elsewhere.is_empty() {
        let _ = write!(out, "\n[Options of several commands](options.md): {}.\n", elsewhere.join(", "));
    }
    let after = after(&verb);
    let parts = after.split("\n\n").filter(|part| !shared.parameters.iter().any(|known| known == part));
    let (lists, parts): (Vec<&str>, Vec<&str>) = parts.partition(|part| is_parameters(part));
    for list in lists {
        let _ = write!(out, "\n{}\n", parameters(list));
    }
    if !parts.concat().is_empty() {
        let _ = write!(out, "\n## More\n\n```txt\n{}\n```\n", parts.join("\n\n"));
    }
    for command in verb.get_subcommands().filter(|command| command.get_name() != "help") {
        // One level deeper.
        let page = page(command.clone(), &self::about(command), shared).replace("\n## ", "\n### ");
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
        // Help has the names of all policies; here they have a page.
        let all = words.join("`, `");
        let known = if words.contains(&"edf") {
            "the [policies](../algorithms.md)".to_owned()
        } else {
            format!("`{all}`")
        };
        let _ = write!(out, ". One of {known}");
    }
    if arg.get_id() == "profile" {
        out.push_str(": see [profiles](../profiles.md)");
    } else if !table.is_empty() {
        let _ = write!(out, "\n\n  ```txt\n{}\n  ```\n", table.join("\n"));
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
