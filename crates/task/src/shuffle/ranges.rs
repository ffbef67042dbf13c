//! Total order of the output of reduces, for commands whose keys are unknown before their maps have run.
//!
//! Each map sorts all its pairs as one, cuts them into pieces between different keys, and writes the first
//! key of each piece beside its output. Every reduce reads these keys of all maps, computes the same
//! boundaries, and reads the pieces that overlap its range. So the boundaries follow from the output of the
//! maps alone, and not from the memory; combiners, which depend on memory, do not run.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::base::error::{TaskError, at};
use crate::shuffle::index;
use crate::shuffle::index::{MAP_OUTPUT, Section};
use crate::shuffle::merge::Merge;
use crate::shuffle::pairs::{Cursor, put_varint, take_varint};
use crate::shuffle::partition::Boundaries;
use crate::shuffle::segment::{Run, RunWriter, Segment};

/// The first keys of a map's pieces, in its directory.
const KEYS: &str = "map.keys";
/// The most pieces of a map's output.
pub(crate) const PIECES: usize = 256;
/// A piece has at least this many bytes of keys and values.
const PIECE_MIN: u64 = 1 << 12;
/// Bytes of a key in a sample: any bytes make a boundary that keeps order, and equal keys together.
const SAMPLED: usize = 256;
/// About the number of keys behind the boundaries, beside one for each sample.
const SAMPLES: u64 = 10_000;

/// The keys beside a map's output.
#[derive(Default)]
pub(crate) struct SampledKeys {
    /// The checksum of that output.
    output: u64,
    /// The first key of each piece.
    firsts: Vec<Vec<u8>>,
    /// Keys, about one per piece, each with the bytes that it represents.
    samples: Vec<(Vec<u8>, u64)>,
}

/// Writes sorted pairs, `bytes` of keys and values in all, as pieces.
pub(crate) fn write(
    mut cursor: impl Cursor,
    bytes: u64,
    out: &mut RunWriter,
) -> Result<SampledKeys, TaskError> {
    let target = (bytes / (PIECES as u64 - 1)).max(PIECE_MIN);
    let (mut keys, mut last) = (SampledKeys::default(), Vec::new());
    // Bytes since the start of the piece, and since the last sample.
    let (mut held, mut passed) = (0, 0);
    while let Some((key, value)) = cursor.current() {
        let is_new = key != last.as_slice();
        if keys.firsts.is_empty() || (is_new && held >= target && keys.firsts.len() < PIECES) {
            out.begin()?;
            keys.firsts.push(key.to_vec());
            held = 0;
        }
        if is_new {
            last.clear();
            last.extend_from_slice(key);
        }
        out.push(key, value)?;
        held += (key.len() + value.len()) as u64;
        passed += (key.len() + value.len()) as u64;
        if passed >= target {
            keys.sample(key, std::mem::take(&mut passed));
        }
        cursor.advance()?;
    }
    if passed > 0 {
        keys.sample(&last, passed);
    }
    Ok(keys)
}

/// Waits until the keys of a map are on the disk.
pub(crate) fn sync(directory: &Path) -> Result<(), TaskError> {
    for path in [MAP_OUTPUT, KEYS].map(|name| directory.join(name)) {
        File::open(&path).and_then(|file| file.sync_all()).map_err(at("cannot write", &path))?;
    }
    Ok(())
}

impl SampledKeys {
    fn sample(&mut self, key: &[u8], bytes: u64) {
        self.samples.push((key[..key.len().min(SAMPLED)].to_vec(), bytes));
    }

    /// Writes the keys beside their run.
    pub(crate) fn leave(&self, directory: &Path, run: &Run) -> Result<(), TaskError> {
        let output = run.digest.as_ref().map_or(0, |digest| digest.sum);
        let mut text = output.to_le_bytes().to_vec();
        let put = |text: &mut Vec<u8>, key: &[u8]| {
            put_varint(text, key.len() as u64);
            text.extend_from_slice(key);
        };
        put_varint(&mut text, self.firsts.len() as u64);
        self.firsts.iter().for_each(|key| put(&mut text, key));
        for (key, bytes) in &self.samples {
            put_varint(&mut text, *bytes);
            put(&mut text, key);
        }
        let sum = crc32fast::hash(&text);
        text.extend_from_slice(&sum.to_le_bytes());
        let path = directory.join(KEYS);
        fs::write(&path, text).map_err(at("cannot write", &path))
    }

    fn read(directory: &Path) -> Result<Self, TaskError> {
        let path = directory.join(KEYS);
        let text = fs::read(&path).map_err(at("cannot read", &path))?;
        let whole =
            text.split_last_chunk().filter(|(rest, sum)| crc32fast::hash(rest) == u32::from_le_bytes(**sum));
        whole.and_then(|(rest, _)| Self::parse(rest)).ok_or_else(|| {
            let problem = "found no keys of pieces, expected them with their check sum".to_owned();
            TaskError::Damaged { path, problem }
        })
    }

    fn parse(mut rest: &[u8]) -> Option<Self> {
        let take = |rest: &mut &[u8]| {
            let length = take_varint(rest)?;
            rest.split_off(..length as usize).map(<[u8]>::to_vec)
        };
        let (output, after) = rest.split_first_chunk()?;
        rest = after;
        let mut keys = SampledKeys { output: u64::from_le_bytes(*output), ..SampledKeys::default() };
        for _ in 0..take_varint(&mut rest)? {
            keys.firsts.push(take(&mut rest)?);
        }
        while !rest.is_empty() {
            let bytes = take_varint(&mut rest)?;
            keys.samples.push((take(&mut rest)?, bytes));
        }
        Some(keys)
    }
}

/// The input of one reduce of `ranges`: the pieces of each map that overlap its range, and the range.
/// `output` is the checksum of the output of a map, if known.
pub(crate) fn of(
    maps: &[PathBuf],
    output: impl Fn(usize) -> Option<u64>,
    partition: u32,
    ranges: u32,
) -> Result<(Vec<Segment>, Range), TaskError> {
    let all = maps.iter().map(|map| SampledKeys::read(map)).collect::<Result<Vec<_>, _>>()?;
    let samples = || all.iter().flat_map(|keys| &keys.samples);
    let unit = samples().map(|sample| sample.1).sum::<u64>() / SAMPLES + 1;
    let repeated = |(key, bytes): &(Vec<u8>, u64)| vec![key.clone(); (bytes / unit).max(1) as usize];
    let boundaries = Boundaries::of_sample(samples().flat_map(repeated).collect(), ranges);
    let range = Range::of(&boundaries, partition);
    let mut segments = Vec::new();
    for (number, (map, keys)) in maps.iter().zip(&all).enumerate() {
        let (path, output) = (map.join(MAP_OUTPUT), output(number));
        if output.is_some_and(|output| keys.output != output) {
            return Err(index::another(&map.join(KEYS)));
        }
        let mut parts: Vec<Section> = Vec::new();
        for (nth, first) in keys.firsts.iter().enumerate() {
            let next = keys.firsts.get(nth + 1).map(Vec::as_slice);
            if range.reaches(first, next) {
                parts.push(index::read(&path, nth as u32, output)?);
            }
        }
        segments.extend(Segment::joined(path, parts)?);
    }
    Ok((segments, range))
}

/// Keys from a boundary to the next one, if they exist.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

impl Range {
    fn of(boundaries: &Boundaries, partition: u32) -> Self {
        let at = |nth: Option<usize>| nth.and_then(|nth| boundaries.keys().get(nth)).cloned();
        Range { low: at((partition as usize).checked_sub(1)), high: at(Some(partition as usize)) }
    }

    /// Whether keys from `first` to before `next` may be in the range.
    fn reaches(&self, first: &[u8], next: Option<&[u8]>) -> bool {
        self.place(first) != Ordering::Greater
            && next.is_none_or(|next| self.low.as_ref().is_none_or(|low| next > low.as_slice()))
    }

    /// Whether a key is before, in or after the range.
    #[inline]
    fn place(&self, key: &[u8]) -> Ordering {
        if self.high.as_ref().is_some_and(|high| key >= high.as_slice()) {
            return Ordering::Greater;
        }
        if self.low.as_ref().is_some_and(|low| key < low.as_slice()) {
            Ordering::Less
        } else {
            Ordering::Equal
        }
    }
}

/// The pairs of a merge in a range, counted as they pass.
pub(crate) struct RangeCursor<'a> {
    merge: &'a mut Merge,
    range: Range,
    is_over: bool,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl<'a> RangeCursor<'a> {
    /// Goes to the first pair in the range.
    pub(crate) fn begin(merge: &'a mut Merge, range: Range) -> Result<Self, TaskError> {
        while merge.current().is_some_and(|(key, _)| range.place(key) == Ordering::Less) {
            merge.advance()?;
        }
        let mut within = RangeCursor { merge, range, is_over: false, records: 0, bytes: 0 };
        within.look();
        Ok(within)
    }

    /// Counts the current pair, if there is one.
    fn look(&mut self) {
        match self.merge.current() {
            Some((key, value)) if self.range.place(key) == Ordering::Equal => {
                self.records += 1;
                self.bytes += (key.len() + value.len()) as u64;
            }
            _ => self.is_over = true,
        }
    }
}

impl Cursor for RangeCursor<'_> {
    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        if self.is_over { None } else { self.merge.current() }
    }

    #[inline]
    fn advance(&mut self) -> Result<(), TaskError> {
        if !self.is_over {
            self.merge.advance()?;
            self.look();
        }
        Ok(())
    }
}
