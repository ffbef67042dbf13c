//! Cuts the inputs of a job into maps.

use crate::base::error::TaskError;
use crate::input::split::{of_inputs, whole_files};
use crate::process::spec::{Job, Split};
use crate::programs::{check_count, describe};

/// The input of each map of a job: [`of_inputs`], or an empty list for each map of a generator.
///
/// # Errors
///
/// An unknown program or argument, or a missing input; see [`of_inputs`].
pub fn plan(job: &Job, inputs: &[String], split_bytes: u64) -> Result<Vec<Vec<Split>>, TaskError> {
    let shape = describe(job)?;
    check_count(&shape, inputs.len())?;
    match shape.maps {
        Some(maps) => Ok(vec![Vec::new(); maps as usize]),
        None if job.has_one_map() => of_inputs(inputs, u64::MAX).map(whole_files),
        None => of_inputs(inputs, split_bytes),
    }
}
