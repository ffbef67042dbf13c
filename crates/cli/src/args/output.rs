//! In which form results come, where to, and how tables of them look.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use slackline::report::View;
use slackline::report::table::Sort;

use crate::out;

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

/// `--columns` and `--sort`, of verbs whose tables have many columns or rows.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct TableArgs {
    /// Show these columns of the table, named as in JSON and CSV, instead of as many as fit
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// Order the rows by this column, the least first; -NAME for the largest first
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    sort: Option<String>,
}

impl TableArgs {
    /// How the table is shown, if its columns have these names.
    ///
    /// # Errors
    /// Unknown names; another form than a table.
    pub(crate) fn view(&self, output: &OutputArgs, names: &[&str]) -> anyhow::Result<View> {
        let flags = [("columns", !self.columns.is_empty()), ("sort", self.sort.is_some())];
        if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && output.form() != Form::Table) {
            let form = if output.form() == Form::Json { "JSON" } else { "CSV" };
            bail!(
                "--{flag}: found {form} as the form of the result, expected a table: {form} has everything"
            );
        }
        let columns = View { columns: self.columns.clone(), ..out::view(output.file()) };
        columns.check(names).context("--columns")?;
        let sort = self.sort.as_deref().map(|text| match text.strip_prefix('-') {
            Some(column) => Sort { column: column.to_owned(), descending: true },
            None => Sort { column: text.to_owned(), descending: false },
        });
        let sorted = View { sort, ..View::default() };
        sorted.check(names).context("--sort")?;
        Ok(View { sort: sorted.sort, hint: "--columns chooses", ..columns })
    }
}
