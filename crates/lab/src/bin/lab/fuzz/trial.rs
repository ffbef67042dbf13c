//! What is done with a damaged input, and what must hold of it.
//!
//! It is refused by what is wrong with it, in words for people and with the name of the file, or it is a workload. A workload
//! that was read can be written and read again; a small one can be simulated, and what its log says really happened has a
//! schedule or is refused in words. Where the format is read as a stream too, the same holds of the stream.

use std::collections::BTreeMap;
use std::io::Cursor;

use slackline::import::{ImportError, Loaded, SlotOptions, Source, StreamedWorkload, WorkloadOptions};
use slackline::simulate::SimulateError;
use slackline::{Options, Registry, simulate};
use slackline_trace::{Format, ImportOptions, Importer, read_workload, write_workload};

/// What messages call the file.
const NAME: &str = "damaged";

/// What messages call files beside it.
const BESIDE: [&str; 4] = ["the topology", "the file of nodes", "properties", "actions"];

/// Words of the language the program is written in, which no message may have.
const RUST: [&str; 9] =
    ["f64", "u32", "i64", "u64", "usize", "invalid type", "unwrap", "panicked", "Option<"];

/// Most tasks of a workload that is simulated, and most slots of its cluster.
const TASKS_MAX: u64 = 2000;
const SLOTS_MAX: u64 = 2000;

/// Most flows that are taken from a stream; workloads of ours that recur more often are not built.
const FLOWS_MAX: usize = 20_000;

/// The longest message, bytes: twenty faults that are cut.
const MESSAGE_MAX: usize = 40_000;

/// A damaged file and how it is read.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) file: Vec<u8>,
    /// Options of the importer, texts beside the file included.
    pub(super) beside: BTreeMap<&'static str, String>,
    /// Whether the format is named, and not guessed.
    pub(super) is_named: bool,
    /// Whether options give a cluster.
    pub(super) has_cluster: bool,
    /// Whether it is simulated, if that can be.
    pub(super) is_simulated: bool,
}

/// What became of an input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is a workload.
    Read,
    /// It was refused: why, and whether the message has a place.
    Refused(String, bool),
    /// What may not be.
    Wrong(String),
}

/// How files of a format are read with these options of it.
pub(super) fn options(importer: &Importer, import: Vec<(String, String)>) -> WorkloadOptions {
    let mut options = WorkloadOptions::default();
    options.from = Some(importer.name.to_owned());
    options.import = import;
    options
}

pub(super) fn tried(importer: &Importer, input: &Input) -> Verdict {
    let pairs = input.beside.iter().map(|(name, text)| ((*name).to_owned(), text.clone()));
    let mut options = options(importer, pairs.collect());
    if !input.is_named {
        options.from = None;
        // Options of a format are refused where another one was guessed.
        options.import.clear();
    }
    if input.has_cluster {
        options = options.with_machines(3).with_slots(SlotOptions::Universal(2));
    }
    if importer.is_native() && recurs_often(importer, &input.file) {
        return Verdict::Read;
    }
    let name = importer.endings.first().map_or(NAME.to_owned(), |ending| format!("{NAME}.{ending}"));
    let whole = read(&Source::new(name.clone(), input.file.clone()), &options, input.is_simulated, &name);
    if importer.lines.is_some() && input.is_named && !matches!(whole, Verdict::Wrong(_)) {
        let options = options.with_machines(3).with_slots(SlotOptions::Universal(2));
        if let wrong @ Verdict::Wrong(_) = streamed(&name, &input.file, &options) {
            return wrong;
        }
    }
    whole
}

/// Whether a document of ours stands for so many flows that to build them takes gigabytes, as it may.
fn recurs_often(importer: &Importer, file: &[u8]) -> bool {
    let read = read_workload(NAME, file, Some(importer.name), &ImportOptions::default());
    let flows = read.map_or(Vec::new(), |read| read.draft.flows);
    let times = flows.iter().map(|flow| flow.repeat.map_or(1, |repeat| repeat.times as usize));
    times.sum::<usize>() > FLOWS_MAX
}

/// Reads a file or a folder as a whole; messages must begin with `name`.
pub(super) fn read(source: &Source, options: &WorkloadOptions, is_simulated: bool, name: &str) -> Verdict {
    let shaped = match source.shape(options) {
        Ok(shaped) => shaped,
        Err(error) => return refused(&error, name),
    };
    let draft = match shaped.clone().into_draft() {
        Ok((draft, _)) => draft,
        Err(error) => return refused(&error, name),
    };
    let text = write_workload(&draft, Format::Json);
    let again = Source::new("again.json", text).shape(&WorkloadOptions::default());
    match again.and_then(slackline::import::Shaped::into_draft) {
        Ok((again, _)) if again == draft => {}
        Ok(_) => return Verdict::Wrong("what was written is read as another workload".to_owned()),
        Err(error) => return Verdict::Wrong(format!("what was written cannot be read: {error}")),
    }
    if draft.machines.is_empty() || !is_simulated || shaped.refuse_waiting().is_err() {
        return Verdict::Read;
    }
    match shaped.into_loaded() {
        Ok(loaded) => simulated(loaded, name),
        Err(error) => refused(&error, name),
    }
}

fn simulated(mut loaded: Loaded, name: &str) -> Verdict {
    if let Err(error) = loaded.prepare(None) {
        return refused(&error, name);
    }
    let instance = &loaded.instance;
    let tasks = instance.n_tasks();
    let cluster = instance.cluster();
    let slots: u64 = cluster.slot_kinds().iter().map(|&slot_kind| u64::from(cluster.slots(slot_kind))).sum();
    if tasks > TASKS_MAX || slots.max(u64::from(cluster.n_machines())) > SLOTS_MAX {
        return Verdict::Read;
    }
    let policy = Registry::standard().parse("edf").expect("edf is in the registry");
    match simulate(instance, &policy, &Options::exact(), None, None) {
        Err(SimulateError::Infeasible(violation)) => return Verdict::Wrong(format!("edf: {violation}")),
        Err(error) => return said(&error.to_string(), false),
        Ok(_) => {}
    }
    match loaded.recorded.map(|recorded| recorded.replay(instance)) {
        Some(Err(error)) => said(&error.to_string(), false),
        _ => Verdict::Read,
    }
}

fn streamed(name: &str, file: &[u8], options: &WorkloadOptions) -> Verdict {
    let stream = StreamedWorkload::open(name, Cursor::new(file.to_vec()), options, None);
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return refused(&error, name),
    };
    match stream.by_ref().take(FLOWS_MAX).find_map(Result::err) {
        Some(error) => refused(&error, name),
        None => stream.finish().map_or_else(|error| said(&error.to_string(), false), |_| Verdict::Read),
    }
}

/// The message of an error about the file of that name, or one beside it.
fn refused(error: &ImportError, name: &str) -> Verdict {
    let text = error.to_string();
    let is_placed = match error {
        ImportError::Document(error) => error.faults().list.iter().take(1).all(|fault| fault.place.is_some()),
        _ => false,
    };
    let is_of_file = text.starts_with(name) || BESIDE.iter().any(|name| text.starts_with(name));
    if !is_of_file && !matches!(error, ImportError::Option { .. }) {
        return Verdict::Wrong(format!("a message that does not begin with the file: {text}"));
    }
    said(&text, is_placed)
}

/// A message, unless it is one that people cannot use.
fn said(text: &str, is_placed: bool) -> Verdict {
    // Check sums may have the same letters.
    let is_of_rust = |word: &&&str| {
        let is_whole = |(at, _): (usize, &str)| {
            !text[..at].ends_with(char::is_alphanumeric)
                && !text[at + word.len()..].starts_with(char::is_alphanumeric)
        };
        text.match_indices(**word).any(is_whole)
    };
    if let Some(word) = RUST.iter().find(is_of_rust) {
        return Verdict::Wrong(format!("a message with {word:?}: {text}"));
    }
    if text.trim().is_empty() || text.len() > MESSAGE_MAX {
        return Verdict::Wrong(format!("a message of {} bytes", text.len()));
    }
    Verdict::Refused(text.to_owned(), is_placed)
}

#[cfg(test)]
mod tests {
    use slackline_trace::Importers;

    use super::*;

    fn tried(format: &str, file: &str) -> Verdict {
        let input = Input {
            file: file.into(),
            beside: BTreeMap::new(),
            is_named: true,
            has_cluster: false,
            is_simulated: true,
        };
        super::tried(Importers::default().get(format).unwrap(), &input)
    }

    #[test]
    fn inputs_are_read_or_refused_with_their_place() {
        let good = "slackline = 1\ncluster.machines = [{ name = \"n\", count = 2, slots = 2 }]\n\
                    [[flows]]\nid = \"f\"\njobs = [{ id = \"j\", map = { tasks = 3, seconds = 2.0 } }]\n";
        assert_eq!(tried("toml", good), Verdict::Read);
        let bad = good.replace("count = 2", "count = -2");
        assert!(
            matches!(tried("toml", &bad), Verdict::Refused(text, true) if text.starts_with("damaged.toml:2:"))
        );
        assert!(
            matches!(tried("swf", ""), Verdict::Refused(text, false) if text.starts_with("damaged.swf: "))
        );
    }

    #[test]
    fn messages_must_be_for_people() {
        assert!(matches!(said("damaged: expected u32", true), Verdict::Wrong(_)));
        assert!(matches!(said(" ", true), Verdict::Wrong(_)));
        assert_eq!(
            said("damaged: found a word", true),
            Verdict::Refused("damaged: found a word".into(), true)
        );
        let error = ImportError::TooLarge { name: "another".into(), problem: "large".into() };
        assert!(matches!(refused(&error, NAME), Verdict::Wrong(_)));
    }
}
