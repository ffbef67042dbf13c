//! From the bytes of a file to structs: decompression, TOML, JSON, YAML, XML and Avro, places in a file, and
//! errors.

pub(crate) mod avro;
pub mod compression;
pub(crate) mod de;
pub mod diagnostic;
pub mod document;
pub mod element;
pub mod error;
pub mod folder;
pub mod format;
pub(crate) mod hashed_lines;
pub(crate) mod json;
pub(crate) mod line_reader;
pub(crate) mod parse;
pub mod place;
pub(crate) mod signatures;
pub(crate) mod sizes;
pub mod source;
pub(crate) mod text;
pub(crate) mod times;
pub(crate) mod tree;
pub(crate) mod wire;
pub(crate) mod xml;
