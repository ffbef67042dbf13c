//! Workload generators: the synthetic workloads of the five papers, and a day of the 2010 Facebook scale.
//!
//! A [`Generator`] is a pure function of named parameters and a seed. Every number that a paper leaves
//! open is a parameter with a default; each file says what its paper gives and what we chose.
//!
//! In reading order:
//! - `params`: parameters, their ranges, and what is said when a value is out of range;
//! - `shape`: what several generators share: clusters, jobs, shares of a whole, truncated normals;
//! - `dag`: random precedence;
//! - one file a generator: `flex`, `flowflex`, `gridmix`, `woha` (what both WOHA generators share),
//!   `woha_fig7`, `woha_yahoo`, `purdue`, `facebook_table3`, `dmrs`, `facebook_day`.

mod dag;
mod dmrs;
mod facebook_day;
mod facebook_table3;
mod flex;
mod flowflex;
mod gridmix;
mod params;
mod purdue;
mod shape;
mod woha;
mod woha_fig7;
mod woha_yahoo;

#[cfg(test)]
mod tests;

use slackline_model::{Draft, Invalid, Seed};

pub use params::{Param, Params, Values};

/// A workload generator.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for people who choose among generators.
    pub summary: &'static str,
    /// What may be set.
    pub params: &'static [Param],
    make: fn(&Params, Seed) -> Result<Draft, GenerateError>,
}

impl Generator {
    /// The workload of these settings (`(name, value)`; the rest have their defaults) and this seed.
    ///
    /// # Errors
    /// An unknown or repeated parameter, a value out of its range, values that contradict each other.
    pub fn generate(&'static self, settings: &[(&str, &str)], seed: Seed) -> Result<Draft, GenerateError> {
        (self.make)(&Params::parse(self, settings)?, seed)
    }
}

/// All generators, in the order in which they are listed.
pub fn generators() -> &'static [Generator] {
    const ALL: &[Generator] = &[
        flex::GENERATOR,
        flowflex::GENERATOR,
        gridmix::GENERATOR,
        woha_fig7::GENERATOR,
        woha_yahoo::GENERATOR,
        purdue::GENERATOR,
        facebook_table3::GENERATOR,
        dmrs::GENERATOR,
        facebook_day::GENERATOR,
    ];
    ALL
}

/// The generator of that name.
///
/// # Errors
/// If there is none; the error lists those there are.
pub fn generator(name: &str) -> Result<&'static Generator, GenerateError> {
    generators().iter().find(|g| g.name == name).ok_or_else(|| GenerateError::UnknownGenerator {
        found: name.to_owned(),
        expected: params::listed(generators().iter().map(|g| g.name)),
    })
}

/// Why there is no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// No generator has that name.
    #[error("found generator {found:?}, expected one of {expected}")]
    UnknownGenerator {
        /// The name given.
        found: String,
        /// The names there are.
        expected: String,
    },
    /// The generator has no parameter of that name.
    #[error("{generator}: found parameter {found:?}, expected one of {expected}")]
    UnknownParam {
        /// The generator.
        generator: &'static str,
        /// The name given.
        found: String,
        /// The names there are.
        expected: String,
    },
    /// A parameter was set twice.
    #[error("{generator}: found parameter {param} a second time, expected each at most once")]
    Repeated {
        /// The generator.
        generator: &'static str,
        /// The parameter.
        param: &'static str,
    },
    /// A value cannot be read or is out of range.
    #[error("{generator}: found {param} = {found:?}, expected {expected}")]
    BadValue {
        /// The generator.
        generator: &'static str,
        /// The parameter.
        param: &'static str,
        /// The value given.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// Two values, each in its range, contradict each other.
    #[error("{generator}: found {found}, expected {expected}")]
    Conflict {
        /// The generator.
        generator: &'static str,
        /// The values.
        found: String,
        /// What would fit.
        expected: &'static str,
    },
    /// The workload that follows from the values is none.
    #[error("these parameters give no valid workload: {0}")]
    Invalid(#[from] Invalid),
}
