//! Inputs of maps: patterns, splits, encodings and records.

pub mod encoding;
pub mod fields;
pub mod input_list;
pub mod pattern;
pub mod reader;
pub mod split;
