//! `--format`, `--output` and the flags of tables: the form of a result, its file, and its columns.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use slackline::names::unknown;
use slackline::report::View;
use slackline::report::table::{Sort, fitted};
use slackline_model::Draft;
use slackline_trace::reading::format::ending;
use slackline_trace::{Format, write_workload, write_workload_lines};

use super::listed::NamedValue;
use super::path::{WrittenFile, in_a_directory};
use crate::terminal::out;

/// The name of a form, and the endings of its files.
pub(crate) type Names = (&'static str, &'static [&'static str]);

pub(crate) const TABLE: Names = ("table", &["txt"]);
pub(crate) const JSON: Names = ("json", &["json"]);
pub(crate) const CSV: Names = ("csv", &["csv"]);
const LINES: Names = ("jsonl", &["jsonl"]);

/// The forms that a verb writes.
pub(crate) trait Forms: Copy + PartialEq + Send + Sync + 'static {
    /// Every one, the usual one first.
    const ALL: &'static [(Self, Names)];

    /// Names of forms that earlier versions wrote, and what each was, with what to do instead.
    const REMOVED: &'static [(&'static str, &'static str)] = &[];

    fn names(self) -> Names {
        let of = Self::ALL.iter().find(|(form, _)| *form == self);
        of.expect("invariant: every form is in the table").1
    }

    fn name(self) -> &'static str {
        self.names().0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Table,
    /// The document, for programs.
    Json,
    /// Rows, for spreadsheets.
    Csv,
}

impl Forms for Form {
    const ALL: &'static [(Self, Names)] = &[(Self::Table, TABLE), (Self::Json, JSON), (Self::Csv, CSV)];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SimulationForm {
    Of(Form),
    /// The schedule line by line, written during the simulation.
    Lines,
}

impl Forms for SimulationForm {
    const ALL: &'static [(Self, Names)] = &[
        (Self::Of(Form::Table), TABLE),
        (Self::Of(Form::Json), JSON),
        (Self::Lines, LINES),
        (Self::Of(Form::Csv), CSV),
    ];
}

/// The form of a workload document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkloadForm {
    Of(Format),
    /// A first line, then a flow a line in the order of their releases.
    Lines,
}

impl Forms for WorkloadForm {
    const ALL: &'static [(Self, Names)] = &[
        (Self::Of(Format::Toml), names_of(Format::Toml)),
        (Self::Of(Format::Json), names_of(Format::Json)),
        (Self::Of(Format::Yaml), names_of(Format::Yaml)),
        (Self::Lines, LINES),
    ];
}

const fn names_of(format: Format) -> Names {
    (format.name(), format.endings())
}

impl WorkloadForm {
    /// Writes a workload, to a file or to standard output.
    ///
    /// # Errors
    /// See [`out::data`].
    pub(crate) fn write(self, file: Option<&Path>, draft: &Draft) -> anyhow::Result<()> {
        match self {
            Self::Of(format) => {
                let text = write_workload(draft, format);
                out::data(file, |out| out.write_all(text.as_bytes()))
            }
            Self::Lines => out::data(file, |out| write_workload_lines(out, draft)),
        }
    }
}

/// The form of a schedule for another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportForm {
    /// A timeline for Perfetto.
    Perfetto,
    /// A row for each job.
    Csv,
    /// A chart.
    Svg,
}

impl Forms for ExportForm {
    const ALL: &'static [(Self, Names)] =
        &[(Self::Perfetto, ("perfetto", &["json"])), (Self::Csv, CSV), (Self::Svg, ("svg", &["svg"]))];

    const REMOVED: &'static [(&'static str, &'static str)] = &[
        ("synth", "a workload for Hadoop's simulator: simulate it with --policy yarn-capacity or yarn-fair"),
        ("paje", "a trace for Pajé: export --format perfetto or csv"),
        ("png", "a bitmap: export --format svg and convert it, for example with rsvg-convert"),
    ];
}

/// `--format` and `--output`.
#[derive(Clone, Debug)]
pub(crate) struct OutputArgs<F = Form> {
    form: F,
    file: Option<PathBuf>,
}

impl<F: Forms> OutputArgs<F> {
    /// The file, if one was named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The form that was asked for, or that the file's name asks for, or the usual one.
    pub(crate) fn form(&self) -> F {
        self.form
    }

    /// Writes a result: a table below its head, another form alone, with the head on standard error.
    ///
    /// # Errors
    /// See [`out::text`].
    pub(crate) fn write(&self, head: &str, body: &str, view: &View) -> anyhow::Result<()> {
        if self.form == F::ALL[0].0 {
            return out::text(self.file(), &format!("{}\n{body}", fitted(head, view.width)));
        }
        out::talk(head.trim_end());
        out::text(self.file(), body)
    }
}

impl<F: Forms> Args for OutputArgs<F> {
    fn augment_args(command: Command) -> Command {
        let listed: Vec<&str> = F::ALL.iter().map(|(_, (name, _))| *name).collect();
        let known = listed.clone();
        let read = move |text: &str| {
            let found = F::ALL.iter().find(|(_, (name, _))| *name == text);
            found
                .map(|(form, _)| *form)
                .ok_or_else(|| removed::<F>(text).unwrap_or_else(|| unknown("format", text, &known)))
        };
        let format = Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .value_parser(NamedValue::new(listed.clone(), read))
            .hide_possible_values(true)
            .help(format!("Output format: {}", listed.join(", ")))
            .long_help(format!(
                "Output format: {} [default: by the ending of FILE, else {}]",
                listed.join(", "),
                listed[0]
            ))
            .help_heading("Output");
        let output = Arg::new("output")
            .short('o')
            .long("output")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Write to FILE instead of standard output")
            .long_help(
                "Write to FILE instead of standard output\n\nThe ending of FILE selects the format, and .gz or .zst after it \
                 compresses. FILE is replaced only when the output is complete.",
            )
            .help_heading("Output");
        command.arg(format).arg(output)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<F: Forms> FromArgMatches for OutputArgs<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let file = matches.get_one::<PathBuf>("output").cloned();
        // What cannot be written is better known before the work than after it.
        let place = file.as_deref().map_or(Ok(()), in_a_directory);
        let place = place.map_err(|wrong| format!("--output: {wrong}"));
        let form = place.and_then(|()| form(matches.get_one::<F>("format").copied(), file.as_deref()));
        let form = form.map_err(|wrong| clap::Error::raw(ErrorKind::ValueValidation, wrong))?;
        Ok(Self { form, file })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The message for a form that is no longer written.
fn removed<F: Forms>(name: &str) -> Option<String> {
    let (_, what) = F::REMOVED.iter().find(|(removed, _)| *removed == name)?;
    Some(format!("found {name}, {what}"))
}

/// The form of a file, so that no file holds something else than its name says.
fn form<F: Forms>(asked: Option<F>, file: Option<&Path>) -> Result<F, String> {
    let Some((file, ending)) = file.and_then(|file| Some((file, ending(&file.to_string_lossy())?))) else {
        return Ok(asked.unwrap_or(F::ALL[0].0));
    };
    let named = F::ALL.iter().find(|(_, (_, endings))| endings.contains(&ending.as_str()));
    let named = named.map(|(form, _)| *form);
    let name = file.display();
    match (asked, named) {
        (Some(asked), Some(named)) if asked != named => Err(format!(
            "--output: found {name} with --format {}, expected a name that ends in .{}",
            asked.name(),
            asked.names().1[0]
        )),
        (None, None) => {
            if let Some(removed) = removed::<F>(&ending) {
                return Err(format!("--output: {removed}"));
            }
            let mut endings: Vec<String> = F::ALL
                .iter()
                .flat_map(|(_, (_, endings))| *endings)
                .map(|ending| format!(".{ending}"))
                .collect();
            endings.dedup();
            Err(format!(
                "--output: found {name}, which ends in .{ending}, expected {} (.gz or .zst may follow), or --format",
                endings.join(", ")
            ))
        }
        // With --format the file may have any name.
        (asked, named) => Ok(asked.or(named).unwrap_or(F::ALL[0].0)),
    }
}

/// Reads the name of a file that a JSON document is written to.
pub(crate) fn json_file(text: &str) -> Result<WrittenFile, String> {
    let file = WrittenFile::parse(text)?;
    match ending(text) {
        Some(ending) if ending != "json" => {
            Err(format!("found the ending .{ending}, expected .json (.gz or .zst may follow)"))
        }
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_asked_for_or_by_the_name() {
        let of = |asked, name: &str| form::<Form>(asked, Some(Path::new(name)));
        for (asked, name, expected) in [
            (None, "a.json", Form::Json),
            (None, "a.CSV", Form::Csv),
            (None, "a.json.gz", Form::Json),
            (None, "a.csv.zst", Form::Csv),
            (None, "a.txt", Form::Table),
            (None, "/dev/null", Form::Table),
            (Some(Form::Json), "somewhere/tmp.Xa81b", Form::Json),
            (Some(Form::Json), "a.json.gz", Form::Json),
        ] {
            assert_eq!(of(asked, name), Ok(expected), "{name}");
        }
        assert_eq!(form(None, None), Ok(Form::Table));
        assert_eq!(form(None, Some(Path::new("a.json.gz"))), Ok(ExportForm::Perfetto));
        assert_eq!(form(None, Some(Path::new("w.yml.zst"))), Ok(WorkloadForm::Of(Format::Yaml)));
    }

    #[test]
    fn a_name_that_says_something_else_is_refused() {
        let of = |asked, name: &str| form::<Form>(asked, Some(Path::new(name))).unwrap_err();
        let expected = ".txt, .json, .csv (.gz or .zst may follow), or --format";
        assert_eq!(
            of(None, "a.html"),
            format!("--output: found a.html, which ends in .html, expected {expected}")
        );
        assert!(of(None, "a.jsonl.gz").contains("ends in .jsonl, expected"));
        let other = of(Some(Form::Json), "a.csv.gz");
        assert_eq!(other, "--output: found a.csv.gz with --format json, expected a name that ends in .json");
        assert!(json_file("a.csv").is_err() && json_file("a.json.zst").is_ok() && json_file("a").is_ok());
    }
}

/// `--columns` and `--sort`, of verbs whose tables have many columns or rows.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct TableArgs {
    /// Show these columns, by their names in JSON and CSV
    ///
    /// In this order. By default as many columns as fit the terminal are shown.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    columns: Vec<String>,
    /// Order rows by this column; -NAME: largest first
    #[arg(long, hide_short_help = true, value_name = "NAME", allow_hyphen_values = true)]
    sort: Option<String>,
}

impl TableArgs {
    /// Whether anything was said of how the table looks.
    pub(crate) fn is_given(&self) -> bool {
        !self.columns.is_empty() || self.sort.is_some()
    }

    /// How the table is shown, if its columns have these names.
    ///
    /// # Errors
    /// Unknown names; another form than a table.
    pub(crate) fn view<F: Forms>(&self, output: &OutputArgs<F>, names: &[&str]) -> anyhow::Result<View> {
        let flags = [("columns", !self.columns.is_empty()), ("sort", self.sort.is_some())];
        let is_table = output.form() == F::ALL[0].0;
        if let Some((flag, _)) = flags.iter().find(|(_, given)| *given && !is_table) {
            let form = output.form().name();
            bail!("--{flag}: found --format {form}, expected a table: {form} is always whole");
        }
        let columns = View { columns: self.columns.clone(), ..out::view(output.file()) };
        columns.check(names).context("--columns")?;
        if let Some(twice) = (1..self.columns.len()).find(|&k| self.columns[..k].contains(&self.columns[k])) {
            bail!("--columns: found {} twice, expected each column once", self.columns[twice]);
        }
        let sort = self.sort.as_deref().map(|text| match text.strip_prefix('-') {
            Some(column) => Sort { column: column.to_owned(), descending: true },
            None => Sort { column: text.to_owned(), descending: false },
        });
        let sorted = View { sort, ..View::default() };
        sorted.check(names).context("--sort")?;
        Ok(View { sort: sorted.sort, ..columns })
    }
}
