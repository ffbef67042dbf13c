//! Cuts the inputs of a job into maps.

use crate::base::error::TaskError;
use crate::input::split::{of_inputs, whole_files};
use crate::process::spec::{Job, Split};
use crate::programs::{check_count, describe};

/// What each map of a job reads: [`of_inputs`], or as many empty lists as a generator has maps.
///
/// # Errors
///
/// A program or argument that there is not, or an input that is missing; see [`of_inputs`].
pub fn plan(job: &Job, inputs: &[String], split_bytes: u64) -> Result<Vec<Vec<Split>>, TaskError> {
    let shape = describe(job)?;
    check_count(&shape, inputs.len())?;
    match shape.maps {
        Some(maps) => Ok(vec![Vec::new(); maps as usize]),
        None if job.has_one_map() => of_inputs(inputs, u64::MAX).map(whole_files),
        None => of_inputs(inputs, split_bytes),
    }
}
