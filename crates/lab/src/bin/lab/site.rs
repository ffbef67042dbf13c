//! The documentation site: chapters laid out as in the repository, a live report, mdBook, and a check of what came out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::eprint;
use crate::pages::{Chapters, SUMMARY, has_ending, is_external, resolved};

/// The page that shows a report, and the report.
const EXAMPLE: &str = "docs/example-report.md";
const REPORT: &str = "docs/example-report/nightly.html";
/// What the report is of.
const WORKLOAD: &str = "examples/nightly.toml";

/// What the command line says.
pub(crate) struct Site {
    /// The program that makes the report.
    program: PathBuf,
    /// Where everything is put.
    output: PathBuf,
}

impl Site {
    /// From the arguments; `None` if they are none.
    pub(crate) fn of(args: &[String]) -> Option<Self> {
        let mut site = Self { program: "target/release/slackline".into(), output: "target/site".into() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--program" => site.program = args.next()?.into(),
                "--output" => site.output = args.next()?.into(),
                _ => return None,
            }
        }
        Some(site)
    }

    /// Makes the site, in the root of the repository.
    ///
    /// # Errors
    /// Links that do not arrive, mdBook missing or failing.
    pub(crate) fn build(&self) -> anyhow::Result<()> {
        let root = Path::new(".");
        let chapters = Chapters::read(root)?;
        // Only what an earlier build has made is removed.
        for made in ["pages", "html"].map(|part| self.output.join(part)) {
            if made.exists() {
                fs::remove_dir_all(&made).with_context(|| made.display().to_string())?;
            }
        }
        let pages = self.output.join("pages");
        for path in chapters.pages.keys() {
            let text = fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
            put(&pages, path, &with_index(&text))?;
        }
        for path in &chapters.files {
            put(&pages, path, &fs::read(root.join(path)).with_context(|| path.clone())?)?;
        }
        let mut summary = moved(&fs::read_to_string(SUMMARY)?);
        if self.report(&pages)? {
            summary =
                summary.replace("\n# Reference\n", &format!("\n- [A report]({EXAMPLE})\n\n# Reference\n"));
            ensure!(
                summary.contains(EXAMPLE),
                "{SUMMARY}: found no part Reference, before which the report comes"
            );
        }
        put(&pages, "SUMMARY.md", &summary)?;
        for part in ["book.toml", "site.css"] {
            fs::copy(root.join("docs").join(part), self.output.join(part))
                .with_context(|| format!("docs/{part}"))?;
        }
        mdbook(&self.output)?;
        let html = self.output.join("html");
        let seen = checked(&html)?;
        eprint(&format!(
            "{} pages in {}, all {} links in them arrive; not looked at, as they lead outside:\n",
            seen.pages,
            html.display(),
            seen.links
        ));
        for link in seen.external {
            eprint(&format!("  {link}\n"));
        }
        Ok(())
    }

    /// Makes the report and its page; whether the program can.
    fn report(&self, pages: &Path) -> anyhow::Result<bool> {
        let name = self.program.display();
        let said = |args: &[OsString]| {
            let output = Command::new(&self.program).args(args).output();
            output.with_context(|| format!("{name}: cannot be started (cargo build --release makes it)"))
        };
        let help = said(&["compare".into(), "--help".into()])?;
        if !String::from_utf8_lossy(&help.stdout).contains("--report") {
            eprint(&format!("SKIPPED, as {name} has no --report: the report as an example\n"));
            return Ok(false);
        }
        let file = pages.join(REPORT);
        fs::create_dir_all(file.parent().unwrap_or(pages))?;
        let made = said(&["compare".into(), WORKLOAD.into(), "--report".into(), file.into()])?;
        ensure!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
        let link = REPORT.trim_start_matches("docs/");
        let page = format!(
            "# A report\n\nMade with this site, by\n\n```console\nslackline compare {WORKLOAD} --report nightly.html\n```\n\n\
             It is one file, which needs no network: [open it by itself]({link}).\n\n\
             <iframe src=\"{link}\" title=\"Report of a night under several policies\" class=\"report\"></iframe>\n"
        );
        put(pages, EXAMPLE, &page)?;
        Ok(true)
    }
}

/// A file in its place among the pages.
fn put(pages: &Path, path: &str, content: &(impl AsRef<[u8]> + ?Sized)) -> anyhow::Result<()> {
    let to = pages.join(path);
    fs::create_dir_all(to.parent().unwrap_or(pages))?;
    fs::write(&to, content).with_context(|| to.display().to_string())
}

/// A page with links to `README.md` as mdBook wants them: it makes `index.html` of these pages, but not of links to them.
fn with_index(text: &str) -> String {
    let mut parts = text.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_at(part.find(')').unwrap_or(0));
        let target =
            if is_external(target) { target.to_owned() } else { target.replace("README.md", "index.md") };
        out = format!("{out}]({target}{rest}");
    }
    out
}

/// The list of chapters with links from the root of the repository, where mdBook wants it.
fn moved(summary: &str) -> String {
    let mut parts = summary.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (target, rest) = part.split_once(')').unwrap_or((part, ""));
        out = format!("{out}]({}){rest}", resolved(SUMMARY, target).0);
    }
    out
}

/// Runs mdBook in a folder that has a `book.toml`.
fn mdbook(folder: &Path) -> anyhow::Result<()> {
    let name = std::env::var_os("MDBOOK").unwrap_or_else(|| "mdbook".into());
    let run = Command::new(&name).arg("build").current_dir(folder).status();
    let status = run
        .with_context(|| format!("{}: cannot be started (cargo install mdbook --locked)", name.display()))?;
    ensure!(status.success(), "{} failed", name.display());
    Ok(())
}

/// What the check of a site has seen.
struct Seen {
    pages: usize,
    links: usize,
    external: BTreeSet<String>,
}

/// Follows every link of every page of a folder of HTML.
///
/// # Errors
/// All links that arrive at no file or no anchor, and everything that a page would fetch from elsewhere.
fn checked(html: &Path) -> anyhow::Result<Seen> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(html.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if has_ending(&path, "html") && path != REPORT {
                let text = fs::read_to_string(entry.path())?;
                pages.insert(path, attributes(&text));
            }
        }
    }
    let mut seen = Seen { pages: pages.len(), links: 0, external: BTreeSet::new() };
    let mut wrong = Vec::new();
    for (path, page) in &pages {
        for (tag, name, target) in page.iter().filter(|(_, name, _)| matches!(name.as_str(), "href" | "src"))
        {
            if is_external(target) {
                seen.external.insert(target.clone());
                if tag != "a" {
                    wrong.push(format!(
                        "{path}: found <{tag} {name}={target}>, expected nothing from elsewhere"
                    ));
                }
                continue;
            }
            seen.links += 1;
            let (file, anchor) = resolved(path, target);
            let is_there = pages.contains_key(&file) || html.join(&file).is_file();
            let arrives = anchor.is_none_or(|anchor| {
                let ids = pages.get(&file).into_iter().flatten().filter(|(_, name, _)| name == "id");
                anchor.is_empty() || ids.into_iter().any(|(_, _, id)| *id == anchor)
            });
            if !is_there || !arrives {
                wrong.push(format!("{path}: found a link to {target}, which is not there"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(seen)
}

/// The attributes of the tags of a page: tag, name, value. Scripts, styles and comments are passed over.
fn attributes(html: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let end = rest.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(rest.len());
        let tag = rest[..end].to_owned();
        rest = &rest[end..];
        while let Some(at) = rest.find(['>', '=']) {
            let name = rest[..at].trim().rsplit(char::is_whitespace).next().unwrap_or_default().to_owned();
            let is_end = rest[at..].starts_with('>');
            rest = rest[at + 1..].trim_start_matches(if is_end { '\0' } else { ' ' });
            if is_end {
                break;
            }
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
            let (value, after) = rest[1..].split_once(quote).unwrap_or((&rest[1..], ""));
            found.push((tag.clone(), name, value.replace("&amp;", "&")));
            rest = after;
        }
        if matches!(tag.as_str(), "script" | "style") {
            rest = rest.split_once(&format!("</{tag}")).map_or("", |(_, after)| after);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_tags_are_found_and_scripts_are_passed_over() {
        let found = attributes(
            "<!-- <a href=\"no\"> --><a class='x' href=\"b.html#c\">&lt;a href=\"no\"</a><script src=\"s.js\">\
             \"<a href='no'>\"</script><h2 id=\"c\">c</h2><br><input disabled>",
        );
        let found: Vec<_> = found.iter().map(|(tag, name, value)| format!("{tag} {name} {value}")).collect();
        assert_eq!(found, ["a class x", "a href b.html#c", "script src s.js", "h2 id c"]);
    }

    #[test]
    fn a_site_with_a_link_that_does_not_arrive_is_refused() {
        let html = std::env::temp_dir().join(format!("slackline-site-{}", std::process::id()));
        fs::create_dir_all(html.join("docs")).unwrap();
        let put = |text: &str| fs::write(html.join("docs/a.html"), text).unwrap();
        fs::write(html.join("index.html"), "<h1 id=\"top\">x</h1>").unwrap();
        put("<a href=\"../index.html#top\">x</a><a href=\"https://example.org/\">x</a>");
        let seen = checked(&html).unwrap();
        assert_eq!((seen.pages, seen.links, seen.external.len()), (2, 1, 1));
        for wrong in [
            "<a href=\"b.html\">",
            "<a href=\"../index.html#end\">",
            "<img src=\"https://example.org/p.png\">",
        ] {
            put(wrong);
            assert!(checked(&html).is_err(), "{wrong}");
        }
        fs::remove_dir_all(&html).unwrap();
    }

    #[test]
    fn links_to_readmes_are_links_to_their_pages() {
        let text = "[a](math/README.md#x) [b](b.md) README.md [c](https://example.org/README.md)";
        assert_eq!(with_index(text), text.replacen("README.md", "index.md", 1));
    }

    #[test]
    fn links_of_the_summary_are_moved_to_the_root() {
        assert_eq!(moved("- [A](a.md)\n  - [P](../PAPERS.md)\n"), "- [A](docs/a.md)\n  - [P](PAPERS.md)\n");
    }
}
