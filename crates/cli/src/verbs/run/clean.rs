//! `clean`: removes what runs that have ended keep, and what histories know of them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use slackline::report::number::{Unit, column, counted, duration, exact};
use slackline::report::table::Align;
use slackline::report::{Table, View};
use slackline::run::{Stage, StateOfRun, look};
use slackline_executor::run::clean::Clean as What;
use slackline_executor::store::history::{HistoryStore, PrunedRuns};
use slackline_model::bytes;
use slackline_task::base::clock;

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::state::all_states;
use crate::args::{OutputArgs, value};
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline clean --all --older-than 30d --dry-run
  slackline clean --state .slackline/nightly --intermediates
  slackline clean --histories past.history --older-than 90d --dry-run

Outputs are never removed, nor are files of a run that is running, or that was stopped and can be resumed. \
Without its files a run is unknown: the same command would start over, and refuse to replace its outputs.

In a history the earliest runs are removed: those that are older than --older-than, and as few as make it \
smaller than --larger-than. Records of simulations stay.")]
pub(crate) struct Clean {
    /// State directory of the run to clean
    #[arg(long, value_name = "DIR", required_unless_present_any = ["all", "histories"], conflicts_with = "all")]
    state: Option<PathBuf>,
    /// Clean every run in .slackline
    #[arg(long)]
    all: bool,
    /// Histories to clean [default: that of the defaults file]
    #[arg(long, value_name = "FILE", num_args = 0.., conflicts_with = "intermediates")]
    histories: Option<Vec<PathBuf>>,
    /// Only runs that ended at least this long ago, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = value::seconds)]
    older_than: Option<f64>,
    /// Only runs and histories that are larger than this, such as 10GiB
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

/// The decision on a state directory or a history.
struct Row {
    place: String,
    /// Where the run is; of a history that it is one.
    stage: &'static str,
    /// How long ago something was recorded the last time, seconds; of a history since its latest run.
    age: Option<f64>,
    /// Bytes that are removed, or would be.
    bytes: Option<u64>,
    /// Whether it is removed, or would be.
    goes: bool,
    what: String,
}

pub(crate) fn run(args: &Clean, defaults: &Defaults) -> anyhow::Result<Answer> {
    let states = match &args.state {
        Some(state) => {
            // A directory that is named and is none is an error.
            crate::args::state::look_at(state, defaults.state())?;
            vec![state.clone()]
        }
        None if args.all => all_states(defaults.state()),
        None => Vec::new(),
    };
    // Files that are no histories are refused before anything is removed.
    let histories = args.histories(defaults)?;
    let mut rows: Vec<Row> = states.iter().map(|state| args.clean(state)).collect();
    for history in &histories {
        rows.push(args.forget(history)?);
    }
    let text = match args.output.form() {
        Form::Table => args.table(&rows, &out::view(args.output.file())),
        Form::Csv => csv(&rows),
        Form::Json => json(&rows, args.dry_run),
    };
    out::text(args.output.file(), &text)?;
    let refused = rows.iter().any(|row| row.what.starts_with("cannot be removed"));
    Ok(if refused { Answer::No } else { Answer::Yes })
}

/// The text in place of a state directory in the row of a history.
const HISTORY: &str = "history";

impl Clean {
    fn histories(&self, defaults: &Defaults) -> anyhow::Result<Vec<HistoryStore>> {
        let named = match &self.histories {
            None => Vec::new(),
            Some(named) if named.is_empty() => {
                let usual = defaults
                    .history()
                    .context("--histories: name a file, or set history in the defaults file")?;
                vec![usual.to_owned()]
            }
            Some(named) => named.clone(),
        };
        let stores: Vec<HistoryStore> = named.iter().map(|path| HistoryStore::existing(path)).collect();
        stores.iter().try_for_each(|store| store.runs().map(drop))?;
        Ok(stores)
    }

    /// Removes old entries of a history.
    fn forget(&self, store: &HistoryStore) -> anyhow::Result<Row> {
        let now = clock::unix_micros();
        let before = self.older_than.map(|age| now.saturating_sub((age * 1e6) as u64));
        let forgotten = if self.dry_run {
            store.forgettable(before, self.larger_than)?
        } else {
            store.forget(before, self.larger_than)?
        };
        let PrunedRuns { runs, of, bytes, latest, .. } = forgotten;
        let of = counted(of as u64, "run");
        let what = match runs {
            0 => format!("stays: none of {of} qualifies"),
            _ if self.dry_run => format!("{runs} of {of} would be removed"),
            _ => format!("{runs} of {of} removed"),
        };
        let age = latest.map(|at| now.saturating_sub(at) as f64 / 1e6);
        let place = store.path().display().to_string();
        Ok(Row { place, stage: HISTORY, age, bytes: Some(bytes), goes: runs > 0, what })
    }

    /// Removes the files of a run, if it qualifies.
    fn clean(&self, state: &Path) -> Row {
        let (name, now) = (state.display().to_string(), clock::unix_micros());
        let stays = |stage, what: String| Row {
            place: name.clone(),
            stage,
            age: None,
            bytes: None,
            goes: false,
            what: format!("stays: {what}"),
        };
        let look = match look(state) {
            Ok(Some(look)) => look,
            Ok(None) => return stays("", "no run has started there".to_owned()),
            Err(error) => {
                return Row { what: format!("cannot be removed: {error}"), ..stays("", String::new()) };
            }
        };
        let stage = StateOfRun::of(&look, None, now).stage;
        let what = if self.intermediates { What::Intermediates } else { What::State };
        let (age, bytes) = (now.saturating_sub(look.recorded) as f64 / 1e6, look.size(what));
        let kept = match stage {
            Stage::Running => Some("a process uses it"),
            Stage::Stopped => Some("it was stopped, and can be resumed"),
            _ if self.older_than.is_some_and(|least| age < least) => Some("it is not old enough"),
            _ if self.larger_than.is_some_and(|least| bytes <= least) => Some("it is not large enough"),
            _ => None,
        };
        let stage = match stage {
            Stage::Running => "running",
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
            table.row([row.place.clone(), row.stage.to_owned(), age, size, row.what.clone()]);
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
            row.place.clone(),
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
            "state": row.place, "run": row.stage, "age": row.age, "bytes": row.bytes, "removed": row.goes,
            "what": row.what,
        })
    };
    let (histories, states): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.stage == HISTORY);
    let history = |row: &&Row| {
        json!({
            "history": row.place, "age": row.age, "bytes": row.bytes, "removed": row.goes, "what": row.what,
        })
    };
    let states: Vec<_> = states.into_iter().map(row).collect();
    let histories: Vec<_> = histories.iter().map(history).collect();
    let document = json!({ "slackline": 1, "dry_run": is_dry, "states": states, "histories": histories });
    format!("{document:#}\n")
}
