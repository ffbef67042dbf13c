//! The map side of the shuffle: pairs go into a buffer; full buffers are sorted, combined and spilled; and at
//! the end all spills are merged into one run with a section for each partition.

use std::fs;
use std::path::{Path, PathBuf};

use crate::base::error::{TaskError, at};
use crate::shuffle::buffer::Buffer;
use crate::shuffle::keys::Line;
use crate::shuffle::merge::{Merge, Put, Values, groups};
use crate::shuffle::pairs::Cursor;
use crate::shuffle::partition::Partitioner;
use crate::shuffle::ranges;
use crate::shuffle::segment::{Run, RunWriter};

/// Merges pairs with the same key.
pub(crate) enum Combiner {
    None,
    /// A function of all values of a key, such as
    /// [`Program::combine`](crate::programs::contract::Program::combine).
    Function(Box<Combine>),
    Command(Box<dyn CombinerCommand>),
}

/// A command that combines sorted partitions.
pub(crate) trait CombinerCommand: Send {
    /// Feeds the command with the partitions that `open` returns, and passes its lines to `take`. Returns the
    /// number of pairs that the command got.
    fn combine(
        &self,
        partitions: usize,
        open: &OpenPartition<'_>,
        take: &mut dyn FnMut(Line<'_>) -> Result<(), TaskError>,
    ) -> Result<u64, TaskError>;
}

/// Opens a sorted partition by its number.
pub(crate) type OpenPartition<'a> = dyn Fn(usize) -> Result<Box<dyn Cursor + 'a>, TaskError> + Sync + 'a;

/// Emits values that represent all values of a key.
pub(crate) type Combine = dyn FnMut(&mut Values<'_>, &mut Put<'_>) -> Result<(), TaskError> + Send;

/// Collects the pairs of one map.
pub(crate) struct Collector {
    directory: PathBuf,
    memory_bytes: usize,
    partitioner: Partitioner,
    buffer: Buffer,
    combiner: Combiner,
    spills: Vec<Run>,
    counted: Counted,
    /// Bytes of all keys and values that it got.
    pushed: u64,
}

/// The counts of a collector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Records written out before the end.
    pub(crate) spilled: u64,
    /// Records that the combiner got.
    pub(crate) combine_in: u64,
    /// Records that it emitted.
    pub(crate) combine_out: u64,
}

/// The purpose of a run.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// To be merged with others.
    Spill,
    /// For reduces to fetch.
    Output {
        /// Whether it is forced to disk.
        is_durable: bool,
        is_packed: bool,
    },
    /// The same, with one partition in pieces, for reduces that search for their ranges.
    Pieces { is_packed: bool },
}

impl Collector {
    /// Scratch files go to `directory`. A command's output is sorted again while its input is still here, so
    /// each gets half of the memory.
    pub(crate) fn new(
        directory: &Path,
        memory_bytes: usize,
        partitioner: Partitioner,
        combiner: Combiner,
    ) -> Self {
        let memory_bytes =
            if matches!(combiner, Combiner::Command(_)) { memory_bytes / 2 } else { memory_bytes };
        let buffer = Buffer::new(partitioner.partitions(), memory_bytes);
        let directory = directory.to_owned();
        let (spills, counted) = (Vec::new(), Counted::default());
        Collector { directory, memory_bytes, partitioner, buffer, combiner, spills, counted, pushed: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), TaskError> {
        if self.buffer.is_full_for(key.len() + value.len()) {
            self.spill()?;
        }
        self.buffer.push(self.partitioner.of(key), key, value);
        Ok(())
    }

    /// As [`Self::push`], for a pair whose partition comes from another key.
    #[inline]
    pub(crate) fn push_line(&mut self, line: &Line<'_>) -> Result<(), TaskError> {
        if self.buffer.is_full_for(line.key.len() + line.value.len()) {
            self.spill()?;
        }
        self.pushed += (line.key.len() + line.value.len()) as u64;
        self.buffer.push(self.partitioner.of(line.part), line.key, line.value);
        Ok(())
    }

    /// The counts so far.
    pub(crate) fn counted(&self) -> Counted {
        self.counted
    }

    /// Number of spills so far.
    pub(crate) fn spills(&self) -> u64 {
        self.spills.len() as u64
    }

    fn spill(&mut self) -> Result<(), TaskError> {
        let path = self.directory.join(format!("spill-{}", self.spills.len()));
        let run = self.write_buffer(&path, Target::Spill)?;
        self.counted.spilled += run.sections.iter().map(|section| section.records).sum::<u64>();
        self.spills.push(run);
        Ok(())
    }

    /// Writes everything, merged, as one run at `path`, and removes the spills.
    pub(crate) fn finish(&mut self, path: &Path, target: Target) -> Result<Run, TaskError> {
        if self.spills.is_empty() {
            return self.write_buffer(path, target);
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        // The merge uses the arena's memory from here on.
        self.buffer = Buffer::new(0, 0);
        let spills = std::mem::take(&mut self.spills);
        let partitions = self.partitioner.partitions() as usize;
        let (directory, memory_bytes) = (self.directory.clone(), self.memory_bytes);
        let scratch = directory.join("merge");
        let open = |partition: usize| {
            let segments = spills.iter().map(|run| run.segment(partition)).collect();
            Merge::open(segments, &scratch, memory_bytes)
        };
        fs::create_dir_all(&scratch).map_err(at("cannot make directory", &scratch))?;
        let run = self.write(path, target, partitions, open)?;
        fs::remove_dir_all(&scratch).map_err(at("cannot remove", &scratch))?;
        for spill in &spills {
            fs::remove_file(&spill.path).map_err(at("cannot remove", &spill.path))?;
        }
        self.spills = spills;
        Ok(run)
    }

    fn write_buffer(&mut self, path: &Path, target: Target) -> Result<Run, TaskError> {
        let mut buffer = std::mem::replace(&mut self.buffer, Buffer::new(0, 0));
        buffer.sort();
        let partitions = self.partitioner.partitions() as usize;
        let run = self.write(path, target, partitions, |partition| Ok(buffer.cursor(partition)))?;
        buffer.clear();
        self.buffer = buffer;
        Ok(run)
    }

    /// Writes sorted partitions, combined, as a run.
    fn write<C: Cursor + Send>(
        &mut self,
        path: &Path,
        target: Target,
        partitions: usize,
        open: impl Fn(usize) -> Result<C, TaskError> + Send + Sync,
    ) -> Result<Run, TaskError> {
        if let Combiner::Command(command) = &self.combiner {
            // A command's output need not be in order, so it is sorted again.
            let directory = self.directory.join("combined");
            fs::create_dir_all(&directory).map_err(at("cannot make directory", &directory))?;
            let mut inner =
                Collector::new(&directory, self.memory_bytes, self.partitioner.clone(), Combiner::None);
            let mut given = 0;
            let open = |partition| Ok(Box::new(open(partition)?) as Box<dyn Cursor + '_>);
            let got = command.combine(partitions, &open, &mut |line: Line<'_>| {
                given += 1;
                inner.push_line(&line)
            })?;
            let run = inner.finish(path, target)?;
            fs::remove_dir_all(&directory).map_err(at("cannot remove", &directory))?;
            self.counted.combine_in += got;
            self.counted.combine_out += given;
            self.counted.spilled += inner.counted.spilled;
            return Ok(run);
        }
        let mut out = match target {
            Target::Spill => RunWriter::create(path)?,
            Target::Output { is_packed, .. } => RunWriter::create_output(path, partitions, is_packed)?,
            Target::Pieces { is_packed } => {
                let mut out = RunWriter::create_output(path, ranges::PIECES, is_packed)?;
                let keys = ranges::write(open(0)?, self.pushed, &mut out)?;
                let run = out.finish(false)?;
                keys.leave(&self.directory, &run)?;
                return Ok(run);
            }
        };
        for partition in 0..partitions {
            out.begin()?;
            let cursor = open(partition)?;
            match &mut self.combiner {
                Combiner::Function(combine) => {
                    let mut cursor = CountingCursor { cursor, count: 0 };
                    let given = &mut self.counted.combine_out;
                    groups(&mut cursor, |key, values| {
                        combine(values, &mut |value| {
                            *given += 1;
                            out.push(key, value)
                        })
                    })?;
                    self.counted.combine_in += cursor.count;
                }
                _ => copy(cursor, &mut out)?,
            }
        }
        out.finish(matches!(target, Target::Output { is_durable: true, .. }))
    }
}

fn copy(mut cursor: impl Cursor, out: &mut RunWriter) -> Result<(), TaskError> {
    while let Some((key, value)) = cursor.current() {
        out.push(key, value)?;
        cursor.advance()?;
    }
    Ok(())
}

/// A sequence whose pairs are counted as they pass.
struct CountingCursor<C> {
    cursor: C,
    count: u64,
}

impl<C: Cursor> Cursor for CountingCursor<C> {
    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.current()
    }

    #[inline]
    fn advance(&mut self) -> Result<(), TaskError> {
        self.count += 1;
        self.cursor.advance()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shuffle::segment::SegmentReader;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    /// The output of a collector for these pairs, by partition.
    fn collected(pairs: &Pairs, partitions: u32, memory_bytes: usize) -> (Vec<Pairs>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let mut collector =
            Collector::new(dir.path(), memory_bytes, Partitioner::Hash(partitions), Combiner::None);
        for (key, value) in pairs {
            collector.push(key, value).unwrap();
        }
        let run = collector.finish(&dir.path().join("run"), Target::Spill).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "scratch files are left");
        let read = |partition| {
            let mut reader = SegmentReader::open(&run.segment(partition), 16).unwrap();
            let mut found = Vec::new();
            while let Some((key, value)) = reader.current() {
                found.push((key.to_vec(), value.to_vec()));
                reader.advance().unwrap();
            }
            found
        };
        ((0..partitions as usize).map(read).collect(), collector.spills())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn spilling_is_a_stable_sort_by_partition(
            pairs in proptest::collection::vec(
                (proptest::collection::vec(0u8..4, 0..11), proptest::collection::vec(any::<u8>(), 0..9)),
                0..60,
            ),
            partitions in 1u32..4, memory in 1usize..1500,
        ) {
            let partitioner = Partitioner::Hash(partitions);
            let mut expected = vec![Vec::new(); partitions as usize];
            for pair in &pairs {
                expected[partitioner.of(&pair.0) as usize].push(pair.clone());
            }
            for partition in &mut expected {
                partition.sort_by(|a, b| a.0.cmp(&b.0));
            }
            prop_assert_eq!(collected(&pairs, partitions, memory).0, expected);
        }
    }

    #[test]
    fn a_small_limit_spills() {
        let pairs: Pairs = (0..500u32).map(|i| (i.to_string().into_bytes(), vec![b'v'; 10])).collect();
        let (few, many) = (collected(&pairs, 3, 1 << 20), collected(&pairs, 3, 100));
        assert_eq!(few.0, many.0);
        assert!(few.1 == 0 && many.1 > 128, "{} and {} spills", few.1, many.1);
    }
}
