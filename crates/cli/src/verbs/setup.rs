//! Verbs for the environment of the program: Hadoop (`hadoop attach`), defaults, completions, manual pages.

pub(crate) mod attach;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod man;
