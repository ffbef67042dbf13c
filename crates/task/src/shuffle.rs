//! From map output to reduce input: sorted segments, merge, partitions, part files.

pub(crate) mod buffer;
pub(crate) mod collect;
pub mod index;
pub(crate) mod keys;
pub(crate) mod merge;
pub(crate) mod pairs;
pub mod part;
pub(crate) mod partition;
pub(crate) mod ranges;
pub(crate) mod segment;
pub(crate) mod transfer;
