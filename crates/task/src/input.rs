//! TODO: one sentence.

pub mod encoding;
pub mod fields;
pub mod input_list;
pub mod pattern;
pub mod reader;
pub mod split;
