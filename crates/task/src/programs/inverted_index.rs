//! `inverted-index`: the files in which each word occurs.

use std::collections::BTreeSet;

use crate::base::error::TaskError;
use crate::input::fields::words;
use crate::process::spec::Split;
use crate::programs::contract::{Info, Make, Program};
use crate::programs::emit::Emit;
use crate::programs::tally::Tally;
use crate::shuffle::merge::{Put, Values};
use crate::shuffle::part::Part;

pub(crate) const INFO: Info = Info {
    name: "inverted-index",
    about: "lists the files of each word: lines `word TAB file,file,…`, words and files sorted",
    arguments: &[],
    inputs: 1..=usize::MAX,
    make: Make::Program(|_, resources| {
        Ok(Box::new(InvertedIndex { file: Vec::new(), words: Tally::new(resources.memory_bytes) }))
    }),
};

struct InvertedIndex {
    /// The path of the current file, as in the split.
    file: Vec<u8>,
    /// The words seen in it.
    words: Tally,
}

impl Program for InvertedIndex {
    fn combines(&self) -> bool {
        true
    }

    fn open(&mut self, split: &Split, emit: &mut Emit) -> Result<(), TaskError> {
        self.finish(emit)?;
        self.file = split.path.as_os_str().as_encoded_bytes().to_vec();
        Ok(())
    }

    fn map(&mut self, record: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        for word in words(record) {
            self.words.add(word, |word, _| emit.pair(word, &self.file))?;
        }
        Ok(())
    }

    fn map_lines(&mut self, lines: &[u8], emit: &mut Emit) -> Result<(), TaskError> {
        // A newline separates words like any white space.
        self.map(lines, emit)
    }

    fn finish(&mut self, emit: &mut Emit) -> Result<(), TaskError> {
        self.words.drain(|word, _| emit.pair(word, &self.file))
    }

    fn combine(&mut self, values: &mut Values<'_>, put: &mut Put<'_>) -> Result<(), TaskError> {
        files(values)?.iter().try_for_each(|file| put(file))
    }

    fn reduce(&mut self, key: &[u8], values: &mut Values<'_>, part: &mut Part) -> Result<(), TaskError> {
        let files: Vec<_> = files(values)?.into_iter().collect();
        part.pair(key, &files.join(&b','))
    }
}

fn files(values: &mut Values<'_>) -> Result<BTreeSet<Vec<u8>>, TaskError> {
    let mut files = BTreeSet::new();
    while let Some(file) = values.next()? {
        if !files.contains(file) {
            files.insert(file.to_vec());
        }
    }
    Ok(files)
}
