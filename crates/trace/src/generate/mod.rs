//! Workload generators: the synthetic workloads of the five papers, a day of the 2010 Facebook scale, and
//! flows of many shapes for comparisons.
//!
//! A [`Generator`] is a pure function of named parameters and a seed. Every number that a paper leaves
//! open is a parameter with a default; each file says what its paper gives and what we chose.
//!
//! In reading order:
//! - `generator`: what a generator is, its errors and its parameters' values;
//! - `shape`: what several generators share: clusters, jobs, shares of a whole, truncated normals;
//! - `dag`: random precedence;
//! - one file a generator: `flex`, `flowflex`, `gridmix`, `woha` (what both WOHA generators share),
//!   `woha_fig7`, `woha_yahoo`, `purdue`, `facebook_table3`, `dmrs`, `facebook_day`; `mixed`, which is of no
//!   paper.
//!
//! A generator is one file that declares a `GENERATOR`, and one line in [`generators`].

mod dag;
mod dmrs;
mod facebook_day;
mod facebook_table3;
mod flex;
mod flowflex;
mod generator;
mod gridmix;
mod mixed;
mod purdue;
mod shape;
mod woha;
mod woha_fig7;
mod woha_yahoo;

#[cfg(test)]
mod tests;

pub use generator::{GenerateError, Generator};

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
        mixed::GENERATOR,
    ];
    ALL
}

/// The generator of that name.
///
/// # Errors
/// An unknown name; the error lists the known ones.
pub fn generator(name: &str) -> Result<&'static Generator, GenerateError> {
    generators().iter().find(|g| g.name == name).ok_or_else(|| GenerateError::UnknownGenerator {
        found: name.to_owned(),
        known: generators().iter().map(|generator| generator.name).collect(),
    })
}
