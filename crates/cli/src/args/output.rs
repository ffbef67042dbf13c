//! In which form results come, and where to.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    // Not doc comments: they would make every help text twice as long.
    // For people.
    Table,
    // The document, for programs.
    Json,
    // Rows, for spreadsheets.
    Csv,
}

/// `--format` and `--output`.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Form of the result [default: by the name of the output file, else table]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Form>,
    /// Write the result to FILE, as a whole or not at all, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl OutputArgs {
    /// The file, if one was named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// The form that was asked for, or that the file's name asks for.
    pub(crate) fn form(&self) -> Form {
        self.format.unwrap_or_else(|| {
            match self.file().and_then(Path::extension).and_then(|extension| extension.to_str()) {
                Some("json") => Form::Json,
                Some("csv") => Form::Csv,
                _ => Form::Table,
            }
        })
    }
}
