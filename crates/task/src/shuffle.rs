//! From map output to reduce input: sorted segments, merge, partitions, part files.

pub mod buffer;
pub mod collect;
pub mod index;
pub mod keys;
pub mod merge;
pub mod pairs;
pub mod part;
pub mod partition;
pub mod ranges;
pub mod segment;
pub mod transfer;
