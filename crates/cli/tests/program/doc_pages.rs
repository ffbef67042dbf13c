//! Tests the commands of README and the pages: they run in the order of the page and print the output on the page.
//!
//! One shell runs the `console` blocks of a page, in a directory that contains `examples` and the blocks with a file
//! name, such as `toml night.toml`. The `text` block after a `console` block is its expected output. Rows are compared
//! word by word, since widths depend on the terminal. A row that begins with `…` is left out, and another `…` stands for
//! one word. Commands that need more are in `sh` blocks with one of the words of [`NOT_RUN`]: their options are checked.
//! Output that changes is in `txt` blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{program, ran, scratch};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The pages with commands that run.
const PAGES: [&str; 15] = [
    "README.md",
    "docs/capacity.md",
    "docs/concepts.md",
    "docs/experiments.md",
    "docs/exports.md",
    "docs/i-have-a-cluster.md",
    "docs/i-have-a-log.md",
    "docs/i-have-a-policy.md",
    "docs/i-have-nightly-flows.md",
    "docs/lines.md",
    "docs/policies-in-any-language.md",
    "docs/profiles.md",
    "docs/reports.md",
    "docs/run.md",
    "docs/watching-runs.md",
];
/// The page that needs a service.
const SERVICE: &str = "docs/serve.md";

/// What the other commands need, and which test runs them.
const NOT_RUN: [(&str, &str); 8] = [
    ("install", "a build: .ci/long"),
    ("cluster", "a Hadoop cluster: hadoop/acceptance, hadoop/faults and hadoop/service"),
    ("machines", "ssh or Slurm: record/fleet.sh"),
    ("root", "root, systemd or podman: packaging/try"),
    ("service", "an address: the tests `serve`"),
    ("script", "a directory of systemd: the tests `serve_users`"),
    ("long", "minutes: the tests of `lab` and `command`"),
    ("own", "files or programs of the reader: none"),
];

/// A block of a page: its kind, the word after it, and its content.
type Block = [String; 3];

fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        let Some(fence) = line.trim_start().strip_prefix("```") else {
            if let Some(block) = &mut open {
                block[2].push_str(line);
                block[2].push('\n');
            }
            continue;
        };
        if let Some(block) = open.take() {
            found.push(block);
        } else {
            let (kind, word) = fence.split_once(' ').unwrap_or((fence, ""));
            open = Some([kind.to_owned(), word.to_owned(), String::new()]);
        }
    }
    found
}

fn read(page: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(page)).unwrap()
}

/// The text that parts the outputs of two blocks.
const MARK: &str = "=== next block";

fn check(page: &str) {
    let dir = scratch(&page.replace('/', "-"));
    copy(&Path::new(ROOT).join("examples"), &dir.join("examples"));
    let mut script = String::new();
    let mut expected: Vec<String> = Vec::new();
    for [kind, word, content] in blocks(&read(page)) {
        match (kind.as_str(), word.as_str()) {
            ("console", _) => {
                script.push_str(&content);
                if content.trim_end().ends_with('&') {
                    script.push_str("until [ -S .slackline/serve/socket ]; do sleep 0.1; done\n");
                }
                let _ = writeln!(script, "printf '\\n{MARK}\\n'");
                expected.push(String::new());
            }
            ("text", _) => {
                let last =
                    expected.last_mut().unwrap_or_else(|| panic!("{page}: an output without a command"));
                assert!(last.is_empty(), "{page}: two outputs of one command");
                last.push_str(&content);
            }
            ("sh" | "txt", _) | (_, "") => {}
            (_, file) => fs::write(dir.join(file), content).unwrap(),
        }
    }
    assert!(!expected.is_empty(), "{page}: found no command");
    let out = run(&dir, &script);
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (printed, expected) in out.split(MARK).zip(expected) {
        let words_printed = words(printed);
        let is_there = |row: &[String]| {
            let equal =
                |part: &[String]| part.iter().zip(row).all(|(word, wanted)| wanted == "…" || word == wanted);
            words_printed.windows(row.len()).any(equal)
        };
        let rows = expected.lines().filter(|row| !row.starts_with(['─', '…'])).map(words);
        for row in rows.filter(|row| !row.is_empty()) {
            assert!(is_there(&row), "{page}: {row:?} is not in\n{printed}");
        }
    }
}

/// The output of a script that ends with exit code 0; its background processes are ended.
fn run(dir: &Path, script: &str) -> String {
    let bin = dir.join("bin");
    fs::create_dir(&bin).unwrap();
    // A service of root needs an option that the pages do not show.
    let slackline = format!(
        "#!/bin/sh\nif [ \"$1 $2\" != 'serve drain' ] && [ \"$1\" = serve ] && [ \"$(id -u)\" = 0 ]; then\n    set -- \"$@\" --allow-root\nfi\nexec '{}' \"$@\"\n",
        env!("CARGO_BIN_EXE_slackline")
    );
    fs::write(bin.join("slackline"), slackline).unwrap();
    fs::set_permissions(bin.join("slackline"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = OsString::from(&bin);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let log = dir.join("printed");
    let out = fs::File::create(&log).unwrap();
    let err = out.try_clone().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", script]).current_dir(dir).stdout(out).stderr(err).process_group(0);
    shell
        .env("PATH", path)
        .env("SLACKLINE_CONFIG", "")
        .env_remove("SLACKLINE_SERVER")
        .env_remove("SLACKLINE_TOKEN");
    let mut shell = shell.spawn().expect("a shell");
    let status = shell.wait().expect("its end");
    let group = format!("-{}", shell.id());
    Command::new("kill").args(["-TERM", "--", &group]).output().expect("kill");
    let printed = fs::read_to_string(log).unwrap();
    assert!(status.success(), "{status} of\n{script}\n{printed}");
    assert!(!printed.contains("panicked"), "{printed}");
    printed
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Half of the pages: two tests share the processors.
#[expect(clippy::print_stderr, reason = "a skipped page is reported")]
fn check_pages(remainder: usize) {
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    for page in PAGES.iter().skip(remainder).step_by(2) {
        if read(page).contains("python3") && !has_python {
            eprintln!("SKIPPED: found no python3, expected one for the policy of {page}");
        } else {
            check(page);
        }
    }
}

#[test]
fn commands_of_the_first_half_of_the_pages_print_their_output() {
    check_pages(0);
}

#[test]
fn commands_of_the_second_half_of_the_pages_print_their_output() {
    check_pages(1);
}

#[test]
fn commands_of_the_page_on_the_service_print_their_output() {
    check(SERVICE);
}

/// README and all pages in `docs`, and whether they are generated.
fn all_pages() -> Vec<(String, bool)> {
    let mut found = vec![("README.md".to_owned(), false)];
    for (folder, is_generated) in [("docs", false), ("docs/verbs", true)] {
        let files = fs::read_dir(Path::new(ROOT).join(folder)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        found.extend(
            names
                .filter(|name| Path::new(name).extension().is_some_and(|end| end == "md"))
                .map(|name| (format!("{folder}/{name}"), is_generated)),
        );
    }
    found
}

#[test]
fn every_command_runs_or_has_the_reason_why_not() {
    for (page, _) in all_pages().into_iter().filter(|(_, is_generated)| !is_generated) {
        let blocks = blocks(&read(&page));
        let runs = PAGES.contains(&page.as_str()) || page == SERVICE;
        assert_eq!(blocks.iter().any(|[kind, ..]| kind == "console"), runs, "{page}");
        for [_, word, content] in blocks.iter().filter(|[kind, ..]| kind == "sh") {
            let is_known = NOT_RUN.iter().any(|(known, _)| known == word);
            assert!(is_known, "{page}: found {word:?} at\n{content}");
        }
        // `slackline = 1` begins a document.
        let is_command = |line: &&str| {
            line.strip_prefix("slackline ")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
                || line.starts_with("$ ")
        };
        for [kind, _, content] in
            blocks.iter().filter(|[kind, ..]| !matches!(kind.as_str(), "console" | "sh"))
        {
            let command = content.lines().find(is_command);
            assert_eq!(command, None, "{page}: a command in a block of kind {kind:?}");
        }
    }
}

#[test]
fn every_option_of_a_command_exists() {
    let mut helps: BTreeMap<Vec<String>, BTreeSet<String>> = BTreeMap::new();
    let mut seen = 0;
    for (page, _) in all_pages() {
        for [_, _, content] in blocks(&read(&page)).iter().filter(|[kind, ..]| kind != "text") {
            let text = content.replace("\\\n", " ");
            for command in text.lines().filter_map(|line| line.trim_start().strip_prefix("slackline ")) {
                let words = words(command);
                let is_verb = |word: &&String| word.starts_with(|c: char| c.is_ascii_lowercase());
                let Some(first) = words.first().filter(is_verb) else { continue };
                let second = words.get(1).map(String::as_str);
                let is_group = matches!(first.as_str(), "submission" | "schedule" | "hadoop")
                    && second.is_some()
                    || first == "serve" && second == Some("drain");
                let verb: Vec<String> = words[..if is_group { 2 } else { 1 }].to_vec();
                let help = helps.entry(verb.clone()).or_insert_with(|| {
                    let help = ran(&program().args(&verb).arg("--help").output().unwrap());
                    help.out
                        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
                        .map(str::to_owned)
                        .collect()
                });
                for word in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
                    let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
                    assert!(help.contains(option), "{page}: found {option}, which {verb:?} does not have");
                    seen += 1;
                }
            }
        }
    }
    assert!(seen > 150, "only {seen} options were found: the search is broken");
}

/// The words of a command before a pipe, a comment or `&`.
fn words(command: &str) -> Vec<String> {
    let (mut found, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if matches!(c, '|' | '#' | '&' | ';') => break,
            None if c.is_whitespace() => {
                if !word.is_empty() {
                    found.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(c),
        }
    }
    found
}
