//! Samples all input before the first map, for the boundaries of sorted partitions.
//!
//! Samples come from places that are spread evenly over all input bytes, so that they represent sorted or
//! grouped input too; the same input gives the same boundaries. The engine waits for this, so the work is
//! bounded: 100 places, a limited number of records and bytes for each, and the beginning of each key.

use std::path::Path;
use std::{fs, io};

use crate::base::error::{TaskError, at};
use crate::input::reader::{Records, can_be_cut, record_limit};
use crate::process::spec::{Job, Split};
use crate::programs::build_program;
use crate::programs::contract::{Program, Resources};
use crate::programs::emit::{Emit, Sink};
use crate::shuffle::partition::Boundaries;

/// Number of places.
const PLACES: u64 = 100;
/// Records from each place; 100,000 in all, like Hadoop's sampler.
const RECORDS: u64 = 1000;
/// Most bytes that are read at a place, of the (decompressed) text.
const BYTES: u64 = 1 << 20;
/// Places with a longer record, bytes, are skipped: this step does not know the limits of the maps.
const RECORD_MAX: u64 = 4 << 20;

/// A place for samples: the beginning of a split.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    split: Split,
    /// The number of the [`PLACES`] that it represents.
    weight: u64,
}

/// Prepares data from all input for the maps of a job, if [`crate::programs::describe`] requires it, and
/// writes it to `file`, which every map receives as `prepared`.
///
/// # Errors
///
/// Input that cannot be read, a file that cannot be written, a program that needs no preparation.
pub fn prepare(job: &Job, maps: &[Vec<Split>], partitions: u32, file: &Path) -> Result<(), TaskError> {
    let Job::Program { program, args } = job else {
        return Err(TaskError::Job("found commands, expected a program that needs preparation".to_owned()));
    };
    let mut program = build_program(program, args, Resources::none())?;
    let splits: Vec<&Split> = maps.iter().flatten().collect();
    let mut emit = Emit::new(Sink::Sample(Vec::new()));
    for place in places(&splits)? {
        match sample(&place, program.as_mut(), &mut emit) {
            Err(TaskError::Input { source, .. }) if source.kind() == io::ErrorKind::FileTooLarge => {}
            other => other?,
        }
    }
    let Sink::Sample(keys) = emit.into_sink() else { unreachable!("a sample stays one") };
    Boundaries::of_sample(keys, partitions.max(1)).write(file)
}

/// Samples the records of one place.
fn sample(place: &Place, program: &mut dyn Program, emit: &mut Emit) -> Result<(), TaskError> {
    let mut bytes = place.weight * BYTES;
    let mut records = Records::sample(&place.split, program.format(), record_limit(RECORD_MAX))?;
    program.open(&place.split, emit)?;
    for _ in 0..place.weight * RECORDS {
        let Some(record) = records.next()? else { break };
        program.map(record, emit)?;
        bytes = bytes.saturating_sub(record.len() as u64);
        if bytes == 0 {
            break;
        }
    }
    Ok(())
}

/// At most [`PLACES`] places, evenly spread over the bytes of all splits. A compressed file can be read only
/// from its beginning, so more records are taken there.
fn places(splits: &[&Split]) -> Result<Vec<Place>, TaskError> {
    let mut sized = Vec::new();
    let mut total = 0;
    for split in splits {
        let bytes = match split.length {
            Some(length) => length,
            None => fs::metadata(&split.path).map_err(at("cannot read", &split.path))?.len(),
        };
        // A file with a reported size of zero may still have content.
        let bytes = bytes.max(1);
        sized.push((*split, bytes));
        total += bytes;
    }
    let step = total.div_ceil(PLACES).max(1);
    let (mut places, mut before, mut next) = (Vec::new(), 0, 0);
    for (split, bytes) in sized {
        let end = before + bytes;
        // A split with a length comes from a plain file.
        if next < end && split.length.is_none() && !can_be_cut(&split.path)? {
            let weight = (end - next).div_ceil(step);
            places.push(Place { split: split.clone(), weight });
            next += weight * step;
        }
        while next < end {
            let offset = split.offset + (next - before);
            let length = Some(step.min(end - next));
            places.push(Place { split: Split { offset, length, ..split.clone() }, weight: 1 });
            next += step;
        }
        before = end;
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::process::spec::Args;

    fn whole(path: impl Into<PathBuf>) -> Split {
        Split { path: path.into(), offset: 0, length: None, input: 0, source: None, copy: None }
    }

    #[test]
    fn no_more_than_a_hundred_files_of_any_kind_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["gz", "zst", "txt"] {
            let splits: Vec<Split> = (0..350)
                .map(|i| {
                    let path = dir.path().join(format!("{i:03}.{name}"));
                    fs::write(&path, "ten bytes\n").unwrap();
                    whole(path)
                })
                .collect();
            let places = places(&splits.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(places.len(), 100, "{name}");
            for (i, place) in places.iter().enumerate() {
                assert_eq!(place.split.path, splits[i * 7 / 2].path, "{name}: not evenly spread");
                assert_eq!(place.weight, 1);
            }
        }
    }

    #[test]
    fn a_compressed_file_weighs_as_much_as_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let [large, small] = ["a.gz", "b"].map(|name| dir.path().join(name));
        fs::write(&large, [&[0x1f, 0x8b][..], &[b'x'; 748]].concat()).unwrap();
        fs::write(&small, [b'x'; 250]).unwrap();
        let places = places(&[&whole(large), &whole(small)]).unwrap();
        assert_eq!((places.len(), places[0].weight), (26, 75));
        assert_eq!((places[25].split.offset, places[25].split.length), (240, Some(10)));
    }

    #[test]
    fn a_place_is_left_after_enough_bytes_and_keys_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in");
        let lines: Vec<String> = (0..50).map(|i| format!("{i:050000}\n")).collect();
        fs::write(&path, lines.concat()).unwrap();
        let mut program = build_program("sort", &Args::new(), Resources::none()).unwrap();
        let mut emit = Emit::new(Sink::Sample(Vec::new()));
        sample(&Place { split: whole(path), weight: 1 }, program.as_mut(), &mut emit).unwrap();
        let Sink::Sample(keys) = emit.into_sink() else { panic!("no sample") };
        assert_eq!(keys.len(), 21, "of 50,000 bytes each");
        assert!(keys.iter().all(|key| key.len() == 256));
    }

    #[test]
    fn a_record_that_is_too_long_to_be_sampled_is_left_to_the_maps() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in");
        fs::write(&path, vec![b'x'; 9 << 20]).unwrap();
        let job = Job::Program { program: "sort".to_owned(), args: Args::new() };
        prepare(&job, &[vec![whole(path)]], 3, &dir.path().join("boundaries")).unwrap();
        assert_eq!(fs::read(dir.path().join("boundaries")).unwrap(), [0, 0]);
    }
}
