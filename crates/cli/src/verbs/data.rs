//! Verbs that convert and check files: `import`, `export`, `generate`, `check`.

pub(crate) mod check;
pub(crate) mod export;
pub(crate) mod generate;
pub(crate) mod import;
