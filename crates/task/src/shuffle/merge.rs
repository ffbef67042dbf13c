//! K-way merge of sorted segments, and groups of equal keys.
//!
//! Equal keys come out in the order of their segments. Above [`FAN_IN`] segments the merge takes several
//! passes over runs of neighbours, which keeps that order; the number is lower if fewer files may be open. A
//! tournament tree (Knuth, The Art of Computer Programming 3, 5.4.1) finds the next pair with log2(k)
//! comparisons.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use crate::base::error::{TaskError, at};
use crate::shuffle::pairs::Cursor;
use crate::shuffle::segment::{RunWriter, Segment, SegmentReader};

/// Segments that are merged at once.
const FAN_IN: usize = 128;
/// Files that a process has open beside them: its own pipes and those of a command, the output, directories.
const OTHER_FILES: u64 = 24;

/// Number of segments that a process with this limit on open files merges at once; `None` for no limit.
fn fan_in(files: Option<u64>) -> usize {
    let left = files.map_or(FAN_IN as u64, |files| files.saturating_sub(OTHER_FILES));
    left.clamp(2, FAN_IN as u64) as usize
}

/// The limit on open files of this process.
fn open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Several segments as one sequence.
pub(crate) struct Merge {
    sources: Vec<SegmentReader>,
    /// The winners: node 1 is the whole tournament's, nodes 2i and 2i + 1 played for node i, the last
    /// half are the sources themselves.
    tree: Vec<u32>,
}

impl Merge {
    /// Merges segments through buffers of `memory_bytes` together. Additional passes write to `scratch`, and
    /// leave only the runs of the last pass there.
    pub(crate) fn open(
        mut segments: Vec<Segment>,
        scratch: &Path,
        memory_bytes: usize,
    ) -> Result<Self, TaskError> {
        segments.retain(|segment| segment.section.records > 0);
        let (mut files, fan_in) = (0, fan_in(open_files()));
        while segments.len() > fan_in {
            let mut excess = segments.len() - fan_in;
            let (mut rest, mut merged) = (segments.as_slice(), Vec::new());
            while !rest.is_empty() {
                // A group of n leaves n - 1 fewer; only as many are merged as make the next pass the last.
                let (group, after) = rest.split_at(rest.len().min(fan_in).min(excess + 1));
                rest = after;
                if let [single] = group {
                    merged.push(single.clone());
                    continue;
                }
                excess -= group.len() - 1;
                let path = scratch.join(format!("merge-{files}"));
                files += 1;
                merged.push(merge_to_file(group, &path, memory_bytes)?);
                for done in group.iter().filter(|done| done.path.starts_with(scratch)) {
                    fs::remove_file(&done.path).map_err(at("cannot remove", &done.path))?;
                }
            }
            segments = merged;
        }
        Self::of(&segments, memory_bytes)
    }

    fn of(segments: &[Segment], memory_bytes: usize) -> Result<Self, TaskError> {
        let buffer = (memory_bytes / segments.len().max(1)).clamp(1 << 12, 1 << 20);
        let sources = segments
            .iter()
            .map(|segment| SegmentReader::open(segment, buffer))
            .collect::<Result<Vec<_>, _>>()?;
        let n = sources.len();
        let mut merge = Merge { sources, tree: vec![0; n] };
        merge.tree.extend(0..n as u32);
        for node in (1..n).rev() {
            merge.play(node);
        }
        Ok(merge)
    }

    /// Reads the remaining bytes, which checks all checksums.
    pub(crate) fn verify(&mut self) -> Result<(), TaskError> {
        self.sources.iter_mut().try_for_each(SegmentReader::verify)
    }

    fn play(&mut self, node: usize) {
        let (a, b) = (self.tree[2 * node], self.tree[2 * node + 1]);
        self.tree[node] = if self.is_before(a, b) { a } else { b };
    }

    /// Whether source `a` gives its pair before source `b`: by key, then by number; ended ones last.
    #[inline]
    fn is_before(&self, a: u32, b: u32) -> bool {
        let (x, y) = (&self.sources[a as usize], &self.sources[b as usize]);
        match (x.current(), y.current()) {
            (Some((left, _)), Some((right, _))) => {
                let order = x.prefix().cmp(&y.prefix()).then_with(|| left.cmp(right));
                order.then(a.cmp(&b)) == Ordering::Less
            }
            (left, right) => left.is_some() || (right.is_none() && a < b),
        }
    }

    #[inline]
    fn winner(&self) -> usize {
        // With one source its leaf is node 1.
        self.tree[1] as usize
    }
}

impl Cursor for Merge {
    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        if self.sources.is_empty() { None } else { self.sources[self.winner()].current() }
    }

    #[inline]
    fn advance(&mut self) -> Result<(), TaskError> {
        if self.sources.is_empty() {
            return Ok(());
        }
        let winner = self.winner();
        self.sources[winner].advance()?;
        let mut node = (winner + self.sources.len()) >> 1;
        while node > 0 {
            self.play(node);
            node /= 2;
        }
        Ok(())
    }
}

fn merge_to_file(group: &[Segment], path: &Path, memory_bytes: usize) -> Result<Segment, TaskError> {
    let mut merge = Merge::of(group, memory_bytes)?;
    let mut out = RunWriter::create(path)?;
    out.begin()?;
    while let Some((key, value)) = merge.current() {
        out.push(key, value)?;
        merge.advance()?;
    }
    Ok(out.finish(false)?.segment(0))
}

/// Takes the values of a combiner.
pub(crate) type Put<'a> = dyn FnMut(&[u8]) -> Result<(), TaskError> + 'a;

/// The values of one key, one after the other.
pub(crate) struct Values<'a> {
    cursor: &'a mut dyn Cursor,
    key: &'a [u8],
    state: State,
}

/// The position of [`Values`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first value, which the cursor has already.
    Fresh,
    /// The cursor is at a value that was returned.
    Given,
    /// The cursor is after the last value.
    Over,
}

impl Values<'_> {
    /// The next value; `None` at the end.
    ///
    /// # Errors
    ///
    /// An error of reading the map outputs.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TaskError> {
        if self.state == State::Given {
            self.cursor.advance()?;
        }
        if self.state != State::Over {
            let same = self.cursor.current().is_some_and(|(key, _)| key == self.key);
            self.state = if same { State::Given } else { State::Over };
        }
        if self.state == State::Over {
            return Ok(None);
        }
        Ok(self.cursor.current().map(|(_, value)| value))
    }
}

/// Calls `visit` for each key of a sorted sequence, in order; skips values that it does not read.
pub(crate) fn groups(
    cursor: &mut dyn Cursor,
    mut visit: impl FnMut(&[u8], &mut Values<'_>) -> Result<(), TaskError>,
) -> Result<(), TaskError> {
    let mut key = Vec::new();
    while let Some((first, _)) = cursor.current() {
        key.clear();
        key.extend_from_slice(first);
        let mut values = Values { cursor, key: &key, state: State::Fresh };
        visit(&key, &mut values)?;
        while values.next()?.is_some() {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    /// Writes each list of pairs, sorted, as a segment, and merges them. Also returns the number of bytes in
    /// additional passes.
    fn merged(lists: &[Pairs]) -> (Pairs, u64) {
        let dir = tempfile::tempdir().unwrap();
        let scratch = dir.path().join("scratch");
        fs::create_dir(&scratch).unwrap();
        let mut segments = Vec::new();
        for (i, list) in lists.iter().enumerate() {
            let mut out = RunWriter::create(&dir.path().join(i.to_string())).unwrap();
            out.begin().unwrap();
            for (key, value) in list {
                out.push(key, value).unwrap();
            }
            segments.push(out.finish(false).unwrap().segment(0));
        }
        let mut merge = Merge::open(segments, &scratch, 1).unwrap();
        let again = fs::read_dir(&scratch).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        let mut found = Vec::new();
        while let Some((key, value)) = merge.current() {
            found.push((key.to_vec(), value.to_vec()));
            merge.advance().unwrap();
        }
        (found, again)
    }

    proptest! {
        #[test]
        fn merge_is_a_stable_sort(
            mut lists in proptest::collection::vec(
                proptest::collection::vec(
                    (proptest::collection::vec(0u8..3, 0..12), proptest::collection::vec(any::<u8>(), 0..5)),
                    0..20,
                ),
                0..9,
            ),
        ) {
            for list in &mut lists {
                list.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let mut expected = lists.concat();
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            prop_assert_eq!(merged(&lists), (expected, 0));
        }
    }

    #[test]
    fn many_segments_and_long_values_take_several_passes() {
        let lists: Vec<_> = (0..300u32)
            .map(|i| {
                (0..3u32)
                    .map(|j| {
                        (format!("{:03}", j * 300 + i % 7).into_bytes(), vec![i as u8; 3000 * j as usize])
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        let mut expected = lists.concat();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert!(merged(&lists).0 == expected);
    }

    #[test]
    fn no_more_is_merged_twice_than_must_be() {
        let again = |segments: u32| {
            let lists: Vec<Pairs> = (0..segments).map(|i| vec![(i.to_be_bytes().to_vec(), vec![])]).collect();
            let (found, bytes) = merged(&lists);
            assert_eq!(found, lists.concat());
            // A pair is two lengths and four bytes.
            bytes / 6
        };
        // 300 become 128 if one group of 128 and one of 46 are merged.
        assert_eq!([128, 129, 255, 300].map(again), [0, 2, 128, 174]);
    }

    #[test]
    fn fewer_are_merged_at_once_where_fewer_files_may_be_open() {
        assert_eq!([None, Some(1024), Some(64), Some(25), Some(0)].map(fan_in), [128, 128, 40, 2, 2]);
    }

    #[test]
    fn groups_pass_over_what_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = RunWriter::create(&dir.path().join("run")).unwrap();
        out.begin().unwrap();
        for (key, value) in [("a", "1"), ("a", "2"), ("b", "3"), ("b", "4"), ("b", "5")] {
            out.push(key.as_bytes(), value.as_bytes()).unwrap();
        }
        let segment = out.finish(false).unwrap().segment(0);
        let mut merge = Merge::open(vec![segment.clone()], dir.path(), 1).unwrap();
        let mut found = Vec::new();
        groups(&mut merge, |key, values| {
            let first = values.next()?.unwrap().to_vec();
            found.push([key, &first].concat());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [b"a1", b"b3"]);

        // A file that lost its end is refused.
        let bytes = fs::read(&segment.path).unwrap();
        fs::write(&segment.path, &bytes[..bytes.len() - 1]).unwrap();
        let Err(error) = Merge::open(vec![segment], dir.path(), 1) else { panic!("read") };
        assert!(error.to_string().ends_with("19 bytes, expected 20"), "{error}");
    }
}
