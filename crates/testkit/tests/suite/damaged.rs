//! Damaged files of every format are read, or refused with a readable message, and nothing panics.
//!
//! `SLACKLINE_SCALE=k` tries k times as many; `fuzz/` searches for inputs by coverage.

use std::fs;
use std::io::{Cursor, Read};
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;
use slackline::import::{ImportError, Shaped, SlotOptions, Source, StreamedWorkload, WorkloadOptions};
use slackline::simulate::SimulateError;
use slackline::{Options, Registry, simulate};
use slackline_model::params::Values;
use slackline_model::random::test_scale;
use slackline_trace::{
    Compression, Format, ImportOptions, Importer, Importers, read_workload, write_workload,
    write_workload_lines,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Files are cut to this size, bytes: longer files would not test more.
const FILE_MAX: usize = 8 << 10;

/// Most tasks and slots of a workload that is simulated.
const SIMULATED_MAX: u64 = 2_000;

/// The limit on flows of a workload that is built: one line can request more than fits in memory.
const FLOWS_MAX: usize = 20_000;

/// Words that cause trouble in some format, separated by spaces.
const WORDS: &str = "0 -1 9 1e18 -0 1e308 NaN 4294967296 18446744073709551616 253402300800000 null \"\" \"\\ud800\" [] {} \
                     <!-- &#0; | , 2026-02-30 24:00 ${a} \u{0} \u{202e} \r\n \n";

/// The starts of files: in any form, and as gzip, Zstandard and LZ4.
const HEADS: [&[u8]; 4] = [b"", b"\x1f\x8b\x08\0", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"];

/// Words of the programming language, which must not occur in messages.
const RUST: [&str; 9] =
    ["f64", "u32", "i64", "u64", "usize", "invalid type", "unwrap", "panicked", "Option<"];

/// Names of files in folders that are imported as one workload.
const NAMES: [&str; 10] = [
    "job_1_0001.jhist",
    "job_1_0001_conf.xml",
    "2026/01/job_1_0002-1-u-n-2-1-1-SUCCEEDED-q-3.jhist",
    "flow20.project",
    "nightly.flow",
    "a.job",
    "sub/b.job",
    "application_1_0001",
    "eventlog_v2_application_1_0003/appstatus_application_1_0003",
    "eventlog_v2_application_1_0003/events_1_application_1_0003",
];

/// A change of a file: where, of how many tokens, and which.
#[derive(Clone, Debug)]
struct Edit(Index, usize, Change);

#[derive(Clone, Debug)]
enum Change {
    Remove,
    Double,
    /// The file ends here.
    End,
    /// A token from elsewhere in the file replaces this one.
    Copy(Index),
    Word(&'static str),
    Byte(u8),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let change = prop_oneof![
        3 => Just(Change::Remove),
        3 => Just(Change::Double),
        1 => Just(Change::End),
        4 => any::<Index>().prop_map(Change::Copy),
        6 => select(WORDS.split(' ').collect::<Vec<_>>()).prop_map(Change::Word),
        2 => any::<u8>().prop_map(Change::Byte),
    ];
    prop::collection::vec(
        (any::<Index>(), 1..12_usize, change).prop_map(|(at, n, change)| Edit(at, n, change)),
        1..5,
    )
}

/// A damaged copy. Tokens are words and single bytes between them.
fn damaged(good: &[u8], edits: &[Edit]) -> Vec<u8> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte);
    let mut tokens: Vec<&[u8]> = good.chunk_by(|a, b| is_word(a) && is_word(b)).collect();
    for Edit(at, n, change) in edits {
        let at = at.index(tokens.len() + 1);
        let end = (at + n).min(tokens.len());
        let next = (at + 1).min(tokens.len());
        match change {
            Change::Remove => drop(tokens.drain(at..end)),
            Change::Double => drop(tokens.splice(at..at, tokens[at..end].to_vec())),
            Change::End => tokens.truncate(at),
            Change::Copy(from) => {
                let other = tokens.get(from.index(tokens.len().max(1))).copied();
                drop(tokens.splice(at..next, other));
            }
            Change::Word(word) => drop(tokens.splice(at..next, [word.as_bytes()])),
            Change::Byte(byte) => drop(tokens.splice(at..next, [std::slice::from_ref(byte)])),
        }
    }
    tokens.concat()
}

/// A format with its files, cut and decompressed.
struct FormatFiles {
    importer: Importer,
    files: Vec<Vec<u8>>,
}

/// Every format with the files that there are of it.
fn formats() -> Vec<FormatFiles> {
    let known = |importer: &Importer| {
        let mut files = contents(&format!("testdata/formats/{}", importer.name));
        if importer.name == "jhist" {
            files.extend(contents("examples/hadoop-log"));
        }
        if importer.is_native() {
            let documents = ["testdata/instances", "testdata/formats/document", "examples"];
            files.extend(
                documents
                    .iter()
                    .flat_map(|folder| contents(folder))
                    .filter_map(|toml| in_form(importer, toml)),
            );
        }
        assert!(!files.is_empty(), "no file of the format {}", importer.name);
        FormatFiles { importer: *importer, files }
    };
    Importers::default().all().iter().map(known).collect()
}

fn contents(folder: &str) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(Path::new(ROOT).join(folder)).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file() && path.extension().is_none_or(|ending| ending != "approved"));
    paths.sort();
    let content = |path| {
        let mut bytes = fs::read(path).unwrap();
        if let Some(compression) = Compression::of_content(&bytes) {
            let mut plain = Vec::new();
            compression.reader(Cursor::new(bytes)).read_to_end(&mut plain).unwrap();
            bytes = plain;
        }
        bytes.truncate(FILE_MAX);
        bytes
    };
    paths.iter().map(content).collect()
}

/// A TOML document in one of our forms; `None` if it is no document.
fn in_form(importer: &Importer, toml: Vec<u8>) -> Option<Vec<u8>> {
    let shaped = Source::new("good.toml", toml.clone()).shape(&WorkloadOptions::default()).ok()?;
    let draft = shaped.into_draft().ok()?.0;
    Some(match Format::from_name(importer.name) {
        Some(Format::Toml) => toml,
        Some(form) => write_workload(&draft, form).into_bytes(),
        None => {
            let mut lines = Vec::new();
            write_workload_lines(&mut lines, &draft).unwrap();
            lines
        }
    })
}

/// The options to read a file in that format, or in a guessed one.
fn options(from: Option<&Importer>) -> WorkloadOptions {
    let from = from.map(|importer| importer.name.to_owned());
    WorkloadOptions { from, ..WorkloadOptions::default() }
}

/// Reads a file or a folder as a whole.
fn read(source: &Source, options: &WorkloadOptions) -> Result<(), TestCaseError> {
    let shaped = match source.shape(options) {
        Ok(shaped) => shaped,
        Err(error) => return refused(&error, &source.name, options),
    };
    let draft = match shaped.clone().into_draft() {
        Ok((draft, _)) => draft,
        Err(error) => return refused(&error, &source.name, options),
    };
    let text = write_workload(&draft, Format::Json);
    let again =
        Source::new("again.json", text).shape(&WorkloadOptions::default()).and_then(Shaped::into_draft);
    prop_assert_eq!(again.map_err(|error| error.to_string()).map(|(draft, _)| draft), Ok(draft));
    simulated(shaped, &source.name, options)
}

/// Builds and simulates a workload if it is small, and replays the execution in its log.
fn simulated(shaped: Shaped, name: &str, options: &WorkloadOptions) -> Result<(), TestCaseError> {
    let mut loaded = match shaped.into_loaded() {
        Ok(loaded) => loaded,
        Err(error) => return refused(&error, name, options),
    };
    if let Err(error) = loaded.prepare(None) {
        return refused(&error, name, options);
    }
    let (instance, cluster) = (&loaded.instance, loaded.instance.cluster());
    let slots: u64 = cluster.slot_kinds().iter().map(|&kind| u64::from(cluster.slots(kind))).sum();
    if instance.n_tasks().max(slots).max(u64::from(cluster.n_machines())) > SIMULATED_MAX {
        return Ok(());
    }
    let edf = Registry::standard().parse("edf").unwrap();
    if let Err(SimulateError::Infeasible(violation)) = simulate(instance, &edf, &Options::exact(), None, None)
    {
        return Err(TestCaseError::fail(format!("edf: {violation}")));
    }
    match loaded.recorded.map(|recorded| recorded.replay(instance)) {
        Some(Err(error)) => for_people(&error.to_string()),
        _ => Ok(()),
    }
}

/// Reads a file flow by flow.
fn streamed(source: &Source, options: &WorkloadOptions) -> Result<(), TestCaseError> {
    let bytes = Cursor::new(source.bytes.clone());
    let mut stream = match StreamedWorkload::open(&source.name, bytes, options, None) {
        Ok(stream) => stream,
        Err(error) => return refused(&error, &source.name, options),
    };
    match stream.by_ref().take(FLOWS_MAX).find_map(Result::err) {
        Some(error) => refused(&error, &source.name, options),
        None => stream.finish().map_or_else(|error| for_people(&error.to_string()), |_| Ok(())),
    }
}

/// A message about a file, or about the text of an option.
fn refused(error: &ImportError, name: &str, options: &WorkloadOptions) -> Result<(), TestCaseError> {
    let message = error.to_string();
    prop_assert!(message.starts_with(name) || !options.import.is_empty(), "{}", message);
    for_people(&message)
}

fn for_people(message: &str) -> Result<(), TestCaseError> {
    let mut words = message.split(|c: char| !c.is_alphanumeric() && !" <".contains(c));
    prop_assert!(!message.trim().is_empty() && !words.any(|word| RUST.contains(&word.trim())), "{}", message);
    Ok(())
}

/// Whether a document of our own form has more than [`FLOWS_MAX`] flows.
fn recurs_often(source: &Source, importer: &Importer) -> bool {
    let read = read_workload("w", &source.bytes, Some(importer.name), &ImportOptions::default());
    let flows = read.map_or(Vec::new(), |read| read.draft.flows);
    let times = flows.iter().map(|flow| flow.repeat.map_or(1, |repeat| repeat.times as usize));
    importer.is_native() && times.sum::<usize>() > FLOWS_MAX
}

/// Tries the configured number of inputs; a failure names the format.
fn try_all<S: Strategy>(
    importer: &Importer,
    cases: f64,
    inputs: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = ProptestConfig { cases: (cases * test_scale()) as u32, ..ProptestConfig::default() };
    let tried = TestRunner::new(config).run(inputs, test);
    tried.unwrap_or_else(|error| panic!("{}: {error}", importer.name));
}

#[test]
fn damaged_files_are_read_or_refused() {
    for FormatFiles { importer, files } in formats() {
        let file = (select(files.clone()), edits()).prop_map(|(file, edits)| damaged(&file, &edits));
        let values = prop::option::weighted(0.4, (select(files), edits(), any::<Index>()));
        try_all(&importer, 400.0, &(file, values, any::<bool>()), |(file, values, has_cluster)| {
            let mut options = options(Some(&importer));
            if has_cluster {
                (options.machines, options.slots) = (Some(3), Some(SlotOptions::Generic(2)));
            }
            let source = Source::new("damaged", file);
            if recurs_often(&source, &importer) {
                return Ok(());
            }
            if importer.lines.is_some() {
                streamed(&source, &options)?;
            }
            for (param, (text, edits, k)) in
                values.iter().flat_map(|values| importer.params.iter().map(move |param| (param, values)))
            {
                let value = match param.values {
                    Values::Choice(words) => words[k.index(words.len())].to_owned(),
                    Values::TextOfFile => String::from_utf8_lossy(&damaged(text, edits)).into_owned(),
                    _ => continue,
                };
                options.import.push((param.name.to_owned(), value));
            }
            read(&source, &options)
        });
    }
}

#[test]
fn damaged_folders_are_read_or_refused() {
    for FormatFiles { importer, files } in
        formats().into_iter().filter(|known| known.importer.folder.is_some())
    {
        let file = (select(&NAMES[..]), select(files), prop_oneof![Just(Vec::new()), edits()]);
        try_all(&importer, 100.0, &prop::collection::vec(file, 1..6), |files| {
            let folder = tempfile::tempdir().unwrap();
            for (name, file, edits) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, damaged(&file, &edits)).unwrap();
            }
            read(&Source::read(folder.path()).unwrap(), &options(Some(&importer)))
        });
    }
}

#[test]
fn arbitrary_bytes_are_read_or_refused() {
    for importer in Importers::default().all() {
        let inputs = (select(&HEADS[..]), prop::collection::vec(any::<u8>(), 0..300));
        try_all(importer, 200.0, &inputs, |(head, bytes)| {
            let source = Source::new("damaged", [head, bytes.as_slice()].concat());
            read(&source, &options(None))?;
            read(&source, &options(Some(importer)))
        });
    }
}

#[test]
fn deep_nests_are_read_or_refused() {
    for importer in Importers::default().all() {
        for open in ["[", "{\"a\":", "<a>", "- ", "(", "[{\"a\":"] {
            read(&Source::new("damaged", open.repeat(20_000)), &options(Some(importer))).unwrap();
        }
    }
}
