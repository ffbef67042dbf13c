//! Inputs of maps: patterns, splits, encodings and records.

pub(crate) mod decoders;
pub(crate) mod encoding;
pub(crate) mod fields;
pub mod input_list;
pub mod pattern;
pub mod reader;
pub(crate) mod refused_formats;
pub mod split;
