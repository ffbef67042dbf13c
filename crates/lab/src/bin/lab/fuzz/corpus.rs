//! Good inputs of each format: small files of our own, documents of ours in every form, and real files where there are some.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use slackline::import::{Source, WorkloadOptions};
use slackline_model::params::Values;
use slackline_trace::workload::write_workload_lines;
use slackline_trace::{Compression, Format, Importer, write_workload};

use super::trial;
use crate::pages::ROOT;

/// Larger files are left out, or cut off at the end of a line: they are slow to read and say no more. Bytes.
const LARGE: usize = 8 << 10;

/// Folders of the real files, by format, where they are not called as it is.
const REAL: [(&str, &str); 4] =
    [("wfformat", "wfcommons"), ("alibaba", "own"), ("swf", "own"), ("sacct", "own")];

/// What is damaged: files of a format, and texts that go beside them, by the option that takes each.
pub(super) struct Corpus {
    pub(super) good: Vec<Vec<u8>>,
    /// Texts beside them.
    pub(super) beside: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

impl Corpus {
    /// Looks for what there is of a format.
    ///
    /// # Errors
    /// Nothing at all.
    pub(super) fn of(importer: &Importer) -> anyhow::Result<Self> {
        let files: Vec<Vec<u8>> = folders(importer).iter().flat_map(|folder| contents(folder)).collect();
        let mut good: Vec<Vec<u8>> =
            files.iter().filter(|file| is_good(importer, file, &[])).cloned().collect();
        if importer.is_native() {
            good.extend(documents(importer)?);
        }
        good.sort();
        good.dedup();
        ensure!(!good.is_empty(), "no good file of the format {}", importer.name);
        let takes_text = importer.params.iter().filter(|param| param.values == Values::TextOfFile);
        let mut beside = BTreeMap::new();
        for param in takes_text {
            let goes_with = |text: &str| {
                let pair = [(param.name.to_owned(), text.to_owned())];
                good.iter().any(|file| is_good(importer, file, &pair))
            };
            let texts = files.iter().filter(|file| std::str::from_utf8(file).is_ok_and(goes_with));
            let texts: Vec<_> = texts.cloned().collect();
            beside.insert(param.name, texts);
        }
        Ok(Self { good, beside })
    }
}

/// Whether it is read with these texts beside it, and for each choice that the importer has with one of its words.
fn is_good(importer: &Importer, file: &[u8], beside: &[(String, String)]) -> bool {
    let mut choices = vec![Vec::new()];
    for param in importer.params {
        if let Values::Choice(words) = param.values {
            choices.extend(words.iter().map(|word| vec![(param.name.to_owned(), (*word).to_owned())]));
        }
    }
    choices.into_iter().any(|choice| {
        let options = trial::options(importer, [choice, beside.to_vec()].concat());
        Source::new("good", file).shape(&options).is_ok()
    })
}

/// Where files of a format are.
fn folders(importer: &Importer) -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut folders = vec![root.join("testdata/formats").join(importer.name)];
    if importer.name == "jhist" {
        folders.push(root.join("examples/hadoop-log"));
    }
    let real =
        REAL.iter().find(|(format, _)| *format == importer.name).map_or(importer.name, |(_, folder)| folder);
    folders.extend(std::env::var_os("SLACKLINE_DATA").map(|data| Path::new(&data).join(real)));
    folders
}

/// The files of a folder, decompressed, and large ones cut off; in the order of their names.
fn contents(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_file() && path.extension().is_none_or(|ending| ending != "approved"));
    paths.sort();
    paths.iter().filter_map(|path| content(path).ok()).collect()
}

fn content(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = fs::read(path)?;
    if let Some(compression) = Compression::of_content(&bytes) {
        let mut plain = Vec::new();
        compression.reader(std::io::Cursor::new(bytes)).read_to_end(&mut plain)?;
        bytes = plain;
    }
    if bytes.len() > LARGE {
        let end = bytes[..LARGE].iter().rposition(|byte| *byte == b'\n').map_or(LARGE, |at| at + 1);
        bytes.truncate(end);
    }
    Ok(bytes)
}

/// Documents of ours in the form of the importer.
fn documents(importer: &Importer) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut documents = Vec::new();
    for folder in ["testdata/instances", "testdata/formats/document", "examples"] {
        for text in contents(&Path::new(ROOT).join(folder)) {
            let Ok(shaped) = Source::new("good.toml", text.clone()).shape(&WorkloadOptions::default()) else {
                continue;
            };
            let Ok((draft, _)) = shaped.into_draft() else { continue };
            documents.push(match Format::from_name(importer.name) {
                Some(Format::Toml) => text,
                Some(form) => write_workload(&draft, form).into_bytes(),
                None => {
                    let mut lines = Vec::new();
                    write_workload_lines(&mut lines, &draft).context("lines of a workload")?;
                    lines
                }
            });
        }
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use slackline_trace::Importers;

    use super::*;

    #[test]
    fn there_is_something_of_every_format() {
        for importer in Importers::default().all() {
            let corpus = Corpus::of(importer).unwrap();
            assert!(corpus.beside.values().all(|texts| !texts.is_empty()), "{}", importer.name);
        }
    }
}
