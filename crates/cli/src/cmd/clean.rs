//! `clean`: removes what runs that have ended keep.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use slackline::report::number::{Unit, column, duration, exact};
use slackline::report::table::Align;
use slackline::report::{Table, View};
use slackline::run::{Stage, StateOfRun, look};
use slackline_local::clock;
use slackline_local::run::Clean as What;
use slackline_model::bytes;

use super::Answer;
use crate::args::output::Form;
use crate::args::state::all_states;
use crate::args::{OutputArgs, value};
use crate::defaults::Defaults;
use crate::out;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline clean --all --older-than 30d --dry-run
  slackline clean --state .slackline/nightly --intermediates

Outputs are never removed, nor is anything of a run that goes on, or that was stopped and can be resumed. What is \
removed of a state directory is what the run keeps there; without it the run is not known any more, so that the same \
command would begin anew, and refuse to write over its outputs.")]
pub(crate) struct Clean {
    /// State directory of the run to clean
    #[arg(long, value_name = "DIR", required_unless_present = "all", conflicts_with = "all")]
    state: Option<PathBuf>,
    /// Every run that has its state below .slackline
    #[arg(long)]
    all: bool,
    /// Only runs that ended so long ago, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = value::seconds)]
    older_than: Option<f64>,
    /// Only runs that keep more than that, such as 10GiB
    #[arg(long, value_name = "BYTES", value_parser = size)]
    larger_than: Option<u64>,
    /// Remove only map output and attempts; journal, logs and schedule stay
    #[arg(long)]
    intermediates: bool,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: OutputArgs,
}

fn size(text: &str) -> Result<u64, String> {
    bytes::parse(text).ok_or_else(|| "expected a size such as 10GiB".to_owned())
}

/// What becomes of a state directory.
struct Row {
    state: String,
    stage: &'static str,
    /// How long ago something was recorded the last time, seconds.
    age: Option<f64>,
    /// Bytes that are removed, or would be.
    bytes: Option<u64>,
    /// Whether it is removed, or would be.
    goes: bool,
    /// What is said of it.
    what: String,
}

pub(crate) fn run(args: &Clean, defaults: &Defaults) -> anyhow::Result<Answer> {
    let states = match &args.state {
        Some(state) => {
            // Whoever names one wants to know if it is none.
            crate::args::state::look_at(state, defaults.state())?;
            vec![state.clone()]
        }
        None => all_states(defaults.state()),
    };
    let rows: Vec<Row> = states.iter().map(|state| args.clean(state)).collect();
    let text = match args.output.form() {
        Form::Table => args.table(&rows, &out::view(args.output.file())),
        Form::Csv => csv(&rows),
        Form::Json => json(&rows, args.dry_run),
    };
    out::text(args.output.file(), &text)?;
    let refused = rows.iter().any(|row| row.what.starts_with("cannot be removed"));
    Ok(if refused { Answer::No } else { Answer::Yes })
}

impl Clean {
    /// Removes what is to be removed of a run, if it is to be.
    fn clean(&self, state: &Path) -> Row {
        let (name, now) = (state.display().to_string(), clock::unix_micros());
        let stays = |stage, what: String| Row {
            state: name.clone(),
            stage,
            age: None,
            bytes: None,
            goes: false,
            what: format!("stays: {what}"),
        };
        let look = match look(state) {
            Ok(Some(look)) => look,
            Ok(None) => return stays("", "it was not begun".to_owned()),
            Err(error) => return stays("", error.to_string()),
        };
        let stage = StateOfRun::of(&look, None, now).stage;
        let what = if self.intermediates { What::Intermediates } else { What::State };
        let (age, bytes) = (now.saturating_sub(look.recorded) as f64 / 1e6, look.size(what));
        let kept = match stage {
            Stage::AtWork => Some("a process is at work on it"),
            Stage::Stopped => Some("it was stopped, and can be resumed"),
            _ if self.older_than.is_some_and(|least| age < least) => Some("it is not so old"),
            _ if self.larger_than.is_some_and(|least| bytes <= least) => Some("it is not so large"),
            _ => None,
        };
        let stage = match stage {
            Stage::AtWork => "at work",
            other => other.name(),
        };
        let row =
            Row { age: Some(age), bytes: Some(bytes), ..stays(stage, kept.unwrap_or_default().to_owned()) };
        if kept.is_some() {
            return row;
        }
        if self.dry_run {
            return Row { goes: true, what: "would be removed".to_owned(), ..row };
        }
        match look.clean(what) {
            Ok(()) => Row { goes: true, what: "removed".to_owned(), ..row },
            Err(error) => Row { what: format!("cannot be removed: {error}"), ..row },
        }
    }

    fn table(&self, rows: &[Row], view: &View) -> String {
        if rows.is_empty() {
            return "no run yet\n".to_owned();
        }
        let megabytes = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 * 1e-6);
        let sizes: Vec<Option<f64>> = rows.iter().map(|row| megabytes(row.bytes)).collect();
        let mut table = Table::new(&[
            ("state", Align::Left),
            ("run", Align::Left),
            ("age", Align::Right),
            ("MB", Align::Right),
            ("", Align::Left),
        ]);
        for (row, size) in rows.iter().zip(column(&sizes, Unit::Measure)) {
            let age = row.age.map_or_else(String::new, duration);
            table.row([row.state.clone(), row.stage.to_owned(), age, size, row.what.clone()]);
        }
        let sum: u64 = rows.iter().filter(|row| row.goes).filter_map(|row| row.bytes).sum();
        let sum = column(&[megabytes(Some(sum))], Unit::Measure).concat();
        let how = if self.dry_run { "would be removed" } else { "removed" };
        format!("{}{sum} MB {how}\n", table.render(view))
    }
}

fn csv(rows: &[Row]) -> String {
    let row = |row: &Row| {
        let bytes = row.bytes.map_or_else(String::new, |bytes| bytes.to_string());
        vec![
            row.state.clone(),
            row.stage.to_owned(),
            exact(row.age),
            bytes,
            row.goes.to_string(),
            row.what.clone(),
        ]
    };
    slackline::report::csv(&["state", "run", "age", "bytes", "removed", "what"], rows.iter().map(row))
}

fn json(rows: &[Row], is_dry: bool) -> String {
    let row = |row: &Row| {
        json!({
            "state": row.state, "run": row.stage, "age": row.age, "bytes": row.bytes, "removed": row.goes,
            "what": row.what,
        })
    };
    let states: Vec<_> = rows.iter().map(row).collect();
    format!("{:#}\n", json!({ "slackline": 1, "dry_run": is_dry, "states": states }))
}
