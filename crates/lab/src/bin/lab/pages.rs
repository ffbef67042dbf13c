//! Pages of Markdown: where their links go, and whether they arrive.
//!
//! Read line by line, which is enough for the pages of this repository: links are `[text](target)` outside of code, and an
//! anchor is a heading, named as code hosts and mdBook name it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

/// The root of the repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A link of a page.
#[derive(Debug, PartialEq)]
pub(crate) struct Link {
    /// Line, from 1.
    pub(crate) line: usize,
    /// What it names, as it is written.
    pub(crate) target: String,
}

/// A page, as far as links are concerned.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) links: Vec<Link>,
    pub(crate) anchors: BTreeSet<String>,
}

impl Page {
    /// Linear in the text.
    pub(crate) fn of(text: &str) -> Self {
        let mut page = Self::default();
        let mut seen = BTreeMap::<String, usize>::new();
        let mut fence = None;
        for (at, line) in text.lines().enumerate() {
            let start = line.trim_start();
            let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
            if let Some(mark) = mark {
                fence = match fence {
                    None => Some(mark),
                    Some(open) => (open != mark).then_some(open),
                };
                continue;
            }
            if fence.is_some() {
                continue;
            }
            let level = line.chars().take_while(|c| *c == '#').count();
            if (1..=6).contains(&level) && line[level..].starts_with(' ') {
                let name = anchor(line[level..].trim());
                let before = seen.entry(name.clone()).or_default();
                page.anchors.insert(if *before == 0 { name } else { format!("{name}-{before}") });
                *before += 1;
            }
            page.links.extend(links(line).map(|target| Link { line: at + 1, target: target.to_owned() }));
        }
        page
    }
}

/// The targets of the links of a line that is no code.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    let mut rest = line;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(['`', ']'])?;
            let (mark, after) = rest[at..].split_at(1);
            rest = after;
            if mark == "`" {
                code = !code;
            } else if let Some(target) = after.strip_prefix('(').filter(|_| !code) {
                let end = target.find(')')?;
                rest = &target[end..];
                return Some(&target[..end]);
            }
        }
    })
}

/// What a heading is called in a link.
fn anchor(heading: &str) -> String {
    // Of a link in a heading, its text counts.
    let mut text = heading.to_owned();
    while let Some(at) = text.find("](") {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        text.replace_range(at..end, "");
    }
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Whether a link leaves the repository.
pub(crate) fn is_external(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The file, from the root of the repository, and the anchor that a link of a page means.
pub(crate) fn resolved(page: &str, target: &str) -> (String, Option<String>) {
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let anchor = anchor.map(str::to_owned);
    if file.is_empty() {
        return (page.to_owned(), anchor);
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    (parts.join("/"), anchor)
}

/// The chapters of the documentation, in order, by the pages that they are, and everything else that they link to.
#[derive(Debug)]
pub(crate) struct Chapters {
    pub(crate) pages: BTreeMap<String, Page>,
    /// Files that are no pages: pictures, schemas, sources.
    pub(crate) files: BTreeSet<String>,
    pub(crate) external: BTreeSet<String>,
}

/// The list of chapters.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

impl Chapters {
    /// Reads the chapters below the root of the repository, and follows every link of theirs.
    ///
    /// # Errors
    /// All links that do not arrive, each with its page and line: at no file, at no heading, at a page that is no chapter.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let read = |path: &str| {
            fs::read_to_string(root.join(path)).with_context(|| format!("{path}: cannot be read"))
        };
        let summary = Page::of(&read(SUMMARY)?);
        let mut pages = BTreeMap::new();
        for link in &summary.links {
            let (path, _) = resolved(SUMMARY, &link.target);
            let text = read(&path).with_context(|| format!("{SUMMARY}:{}", link.line))?;
            pages.insert(path, Page::of(&text));
        }
        let mut chapters = Self { pages, files: BTreeSet::new(), external: BTreeSet::new() };
        let mut wrong = Vec::new();
        for (path, page) in &chapters.pages {
            for Link { line, target } in &page.links {
                if is_external(target) {
                    chapters.external.insert(target.clone());
                    continue;
                }
                let (file, anchor) = resolved(path, target);
                let fault = if let Some(other) = chapters.pages.get(&file) {
                    let missing = anchor.filter(|anchor| !other.anchors.contains(anchor));
                    missing.map(|anchor| format!("{file} has no heading #{anchor}"))
                } else if !root.join(&file).is_file() {
                    Some(format!("there is no file {file}"))
                } else if has_ending(&file, "md") {
                    Some(format!("{file} is not in {SUMMARY}"))
                } else {
                    chapters.files.insert(file);
                    None
                };
                wrong.extend(
                    fault.map(|fault| format!("{path}:{line}: found a link to {target}, but {fault}")),
                );
            }
        }
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(chapters)
    }
}

/// Whether a file's name ends so, after a dot.
pub(crate) fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_outside_of_code_and_anchors_are_found() {
        let page = Page::of(
            "# A `b` c: [d](e.md)\n\n## A b c d\n`[no](x.md)` [yes](y.md#z), ![p](p.svg)\n\
             ```text\n[no](x.md)\n# no\n```\n[last](#a-b-c-d-1)\n",
        );
        let targets: Vec<_> = page.links.iter().map(|link| (link.line, link.target.as_str())).collect();
        assert_eq!(targets, [(1, "e.md"), (4, "y.md#z"), (4, "p.svg"), (9, "#a-b-c-d-1")]);
        assert_eq!(page.anchors.into_iter().collect::<Vec<_>>(), ["a-b-c-d", "a-b-c-d-1"]);
    }

    #[test]
    fn links_are_relative_to_their_page() {
        let file = |page, target| resolved(page, target).0;
        assert_eq!(file("docs/mathematics/a.md", "../../PAPERS.md"), "PAPERS.md");
        assert_eq!(file("docs/a.md", "./b.md"), "docs/b.md");
        assert_eq!(resolved("docs/a.md", "#x"), ("docs/a.md".to_owned(), Some("x".to_owned())));
        assert_eq!(file("a.md", "../../b.md"), "../../b.md");
    }

    #[test]
    fn links_that_do_not_arrive_are_named_with_their_line() {
        let root = std::env::temp_dir().join(format!("slackline-pages-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join(SUMMARY), "- [A](a.md)\n").unwrap();
        fs::write(root.join("docs/b.md"), "# B\n").unwrap();
        fs::write(root.join("docs/a.md"), "# A\n[x](c.md)\n[x](b.md)\n[x](#b)\n[x](#a)\n").unwrap();
        let said = Chapters::read(&root).unwrap_err().to_string();
        fs::remove_dir_all(&root).unwrap();
        let said: Vec<_> = said.lines().collect();
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("docs/a.md:2: ") && said[0].ends_with("no file docs/c.md"), "{said:?}");
        assert!(
            said[1].starts_with("docs/a.md:3: ") && said[1].ends_with("not in docs/SUMMARY.md"),
            "{said:?}"
        );
        assert!(said[2].starts_with("docs/a.md:4: ") && said[2].ends_with("no heading #b"), "{said:?}");
    }

    #[test]
    fn every_link_of_the_documentation_arrives() {
        let chapters = Chapters::read(Path::new(ROOT)).unwrap_or_else(|error| panic!("{error:#}"));
        assert!(chapters.pages.len() > 40 && chapters.files.len() > 20);
    }

    #[test]
    fn every_page_below_docs_is_a_chapter() {
        let chapters = Chapters::read(Path::new(ROOT)).unwrap_or_else(|error| panic!("{error:#}"));
        let mut folders = vec!["docs".to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(Path::new(ROOT).join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else if has_ending(&path, "md") && path != SUMMARY {
                    assert!(chapters.pages.contains_key(&path), "{path} is not in {SUMMARY}");
                }
            }
        }
    }
}
