//! The files, sections of the mathematical notes, tests and terms that the documents cite exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every file below `folder` with this ending, as a path from the root.
fn files(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text between single backticks.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("    ")).flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (names, after) = rest.split_once('}').unwrap_or_else(|| panic!("{path}: a brace is open"));
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

/// Whether a text in backticks is meant as a file or folder of the repository.
fn is_path(text: &str) -> bool {
    let endings = [".rs", ".md", ".toml", ".csv", ".py", ".sh"];
    text.contains('/')
        && !text.contains([' ', ':', '<', '*', '@', '|', '='])
        && (endings.iter().any(|ending| text.ends_with(ending))
            || ["crates/", "docs/", "record/", "experiments/", "testdata/", "examples/"]
                .iter()
                .any(|folder| text.starts_with(folder)))
}

/// Placeholders such as `crates/algo/src/PAPER/mod.rs` stand for any name.
fn is_placeholder(text: &str) -> bool {
    text.split('/').any(|part| part.len() > 1 && part.chars().all(|c| c.is_ascii_uppercase()))
}

#[test]
fn paths_in_the_documents_open_from_the_root() {
    let mut documents: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "PAPERS.md", "CONTRIBUTING.md"].map(str::to_owned).into();
    for folder in ["docs", "record", "experiments"] {
        documents.extend(files(folder, "md"));
    }
    let mut seen = 0;
    for document in documents {
        let text = read(&document);
        for path in code(&text).filter(|text| is_path(text) && !is_placeholder(text)) {
            for path in alternatives(path) {
                assert!(
                    root().join(&path).exists(),
                    "{document}: found `{path}`, which is no path from the root"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 250, "only {seen} paths were found: the search is broken");
}

/// `A6` of `## A6. Which keys may order the list`.
fn sections(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter_map(|heading| heading.split_once(". ")).map(|(section, _)| section.to_owned()).collect()
}

/// The sections after the name of a page: `A6`, or `B2, B4`, or `A1–A4`.
fn cited(after: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = after.trim_start();
    loop {
        let section: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        if !section.ends_with(|c: char| c.is_ascii_digit()) {
            return found;
        }
        rest = &rest[section.len()..];
        found.push(section);
        let Some(next) = ["–", ", ", " to ", " and "].iter().find_map(|between| rest.strip_prefix(between))
        else {
            return found;
        };
        rest = next;
    }
}

#[test]
fn cited_sections_of_the_mathematical_notes_exist() {
    const FOLDER: &str = "docs/math/";
    let mut citing = files("crates", "rs");
    citing.extend(["PAPERS.md", "ARCHITECTURE.md", "README.md"].map(str::to_owned));
    let mut seen = 0;
    for file in citing.iter().filter(|file| !file.ends_with("suite/documents.rs")) {
        let text = read(file);
        for (at, _) in text.match_indices(FOLDER) {
            let rest = &text[at..];
            let end =
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/-._".contains(c))).unwrap_or(rest.len());
            let page = rest[..end].trim_end_matches(['.', '/']);
            if page.strip_suffix(".md").is_none() {
                assert!(root().join(page).exists(), "{file}: found {page}, which does not exist");
                continue;
            }
            let known = sections(&read(page));
            for section in cited(&rest[page.len()..]) {
                assert!(
                    known.contains(&section),
                    "{file}: found {page} {section}, expected one of {known:?}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "only {seen} citations were found: the search is broken");
}

#[test]
fn every_mathematical_statement_has_a_status_and_tests_that_exist() {
    let tests = all_tests();
    for path in files("docs/math", "md").iter().filter(|path| !path.ends_with("README.md")) {
        let page = read(path);
        for section in page.split("\n## ").skip(1) {
            let heading = section.lines().next().unwrap_or_default();
            for part in ["**Status:**", "**Statement.**", "**Code:**", "**Test:**"] {
                assert!(section.contains(part), "{path}: found no {part} in {heading:?}");
            }
            let held = section.split_once("**Test:**").map_or("", |(_, held)| held);
            let mut file = String::new();
            for text in code(held) {
                if is_path(text) {
                    text.clone_into(&mut file);
                } else {
                    assert!(
                        tests.contains(&(file.clone(), text.to_owned())),
                        "{path}, {heading:?}: found test {text} of {file}, which does not exist"
                    );
                }
            }
        }
    }
}

/// Every test of the repository, as file and name. Tests inside `proptest!` count too.
fn all_tests() -> BTreeSet<(String, String)> {
    let mut tests = BTreeSet::new();
    for file in files("crates", "rs") {
        let text = read(&file);
        let mut marked = false;
        for line in text.lines().map(str::trim) {
            if line == "#[test]" {
                marked = true;
            } else if let Some(rest) = line.strip_prefix("fn ").filter(|_| marked) {
                let name = rest.split('(').next().unwrap_or_default();
                tests.insert((file.clone(), name.to_owned()));
                marked = false;
            }
        }
    }
    tests
}

#[test]
fn tests_that_papers_md_names_exist() {
    let names: BTreeSet<String> = all_tests().into_iter().map(|(_, name)| name).collect();
    let papers = read("PAPERS.md");
    let mut seen = 0;
    for text in code(&papers).filter(|text| text.contains('_') && !text.contains(['/', '.', ':', '='])) {
        let is_test = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_test && text.matches('_').count() >= 2 && !["most_violated"].contains(&text) {
            assert!(names.contains(text), "PAPERS.md: found test `{text}`, which does not exist");
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} names of tests were found: the search is broken");
}

#[test]
fn every_record_names_commit_command_and_machine() {
    for path in files("record", "md").iter().filter(|path| !path.ends_with("README.md")) {
        let text = read(path);
        let is_commit = |word: &str| {
            let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            word.len() == 7
                && word.chars().all(|c| c.is_ascii_hexdigit())
                && word.contains(|c: char| c.is_ascii_digit())
        };
        assert!(text.split_whitespace().any(is_commit), "{path}: found no commit");
        assert!(
            ["`cargo ", "`record/run.sh"].iter().any(|command| text.contains(command)),
            "{path}: found no command"
        );
        assert!(text.contains("Linux") && text.contains("Rust 1."), "{path}: found no machine");
    }
}

#[test]
fn every_crate_has_what_a_registry_asks_for() {
    let mut crates = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let manifest = read(&format!("crates/{name}/Cargo.toml"));
        for field in
            ["description = ", "keywords.workspace = true", "categories = [", "readme = \"README.md\""]
        {
            assert!(manifest.contains(field), "crates/{name}/Cargo.toml: found no {field:?}");
        }
        let readme = read(&format!("crates/{name}/README.md"));
        assert!(
            readme.contains("never knows") || name == "cli",
            "crates/{name}/README.md: found no \"never knows\""
        );
        assert!(readme.contains("```rust"), "crates/{name}/README.md: found no example");
        let library = read(&format!("crates/{name}/src/lib.rs"));
        assert!(
            library.starts_with("#![doc = include_str!(\"../README.md\")]"),
            "crates/{name}/src/lib.rs: the example of its README is not compiled"
        );
        crates += 1;
    }
    assert_eq!(
        crates,
        read("Cargo.toml").matches("path = \"crates/").count() + 1,
        "every library has a version"
    );
    let internal = read("Cargo.toml");
    for line in internal.lines().filter(|line| line.contains("path = \"crates/")) {
        assert!(line.contains("version = "), "Cargo.toml: found {line}, expected a version beside the path");
    }
}

#[test]
fn every_page_below_docs_is_a_chapter() {
    let summary = read("docs/SUMMARY.md");
    for page in files("docs", "md").iter().filter(|page| *page != "docs/SUMMARY.md") {
        let link = format!("]({})", page.trim_start_matches("docs/"));
        assert!(summary.contains(&link), "{page} is not in docs/SUMMARY.md");
    }
}
