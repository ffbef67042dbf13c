//! A look at all input before the first map: the boundaries of sorted partitions.
//!
//! Keys are sampled from places that are spread evenly over all input bytes, so that sorted or grouped
//! input is seen as a whole; the same input gives the same boundaries.

use std::fs;
use std::path::Path;

use super::emit::{Emit, Sink};
use super::input::{Records, record_limit};
use super::partition::Boundaries;
use super::program::{Room, build_program};
use super::split::compression;
use super::{Job, Split, TaskError};

/// Places that are looked at.
const PLACES: u64 = 100;
/// Records that are taken from each; 100,000 in all, as Hadoop's sampler takes.
const RECORDS: usize = 1000;
/// A sampler's reader may hold a record of this size, bytes.
const MEMORY: u64 = 64 << 20;

/// Makes what the maps of a job need to know of all input, where [`super::describe`] says so, and
/// writes it to `file`, which every map is given as `prepared`.
///
/// # Errors
///
/// Input that cannot be read, a file that cannot be written, a program that needs no preparation.
pub fn prepare(job: &Job, maps: &[Vec<Split>], partitions: u32, file: &Path) -> Result<(), TaskError> {
    let Job::Program { program, args } = job else {
        return Err(TaskError::Job("found commands, expected a program that wants preparation".to_owned()));
    };
    let mut program = build_program(program, args, Room::none())?;
    let splits: Vec<&Split> = maps.iter().flatten().collect();
    let mut emit = Emit::new(Sink::Sample(Vec::new()));
    for place in places(&splits)? {
        let mut records = Records::open(&place, program.format(), record_limit(MEMORY))?;
        program.open(&place, &mut emit)?;
        for _ in 0..RECORDS {
            let Some(record) = records.next()? else { break };
            program.map(record, &mut emit)?;
        }
    }
    let Sink::Sample(keys) = emit.into_sink() else { unreachable!("a sample stays one") };
    Boundaries::of_sample(keys, partitions.max(1)).write(file)
}

/// About [`PLACES`] small splits, evenly spread over the bytes of all splits. Compressed files can be
/// looked at from their beginning alone.
fn places(splits: &[&Split]) -> Result<Vec<Split>, TaskError> {
    let mut sized = Vec::new();
    let mut total = 0;
    for split in splits {
        let bytes = match split.length {
            Some(length) => length,
            None => fs::metadata(&split.path).map_err(super::error::at("cannot read", &split.path))?.len(),
        };
        sized.push((*split, bytes));
        total += bytes;
    }
    let step = total.div_ceil(PLACES).max(1);
    let (mut places, mut before, mut next) = (Vec::new(), 0, 0);
    for (split, bytes) in sized {
        if compression(&split.path).is_some() {
            if next < before + bytes {
                places.push(split.clone());
            }
            next = next.max(before + bytes);
        }
        while next < before + bytes {
            let offset = split.offset + (next - before);
            let length = Some(step.min(split.offset + bytes - offset));
            places.push(Split { offset, length, ..split.clone() });
            next += step;
        }
        before += bytes;
    }
    Ok(places)
}
