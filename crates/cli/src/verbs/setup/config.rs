//! `config`: prints the defaults that are in force, and their source.

use anyhow::Context;
use clap::Args;
use slackline::report::table::list;

use crate::args::defaults::Defaults;
use crate::args::output::Form;
use crate::args::{OutputArgs, defaults};
use crate::tables::Tables;
use crate::terminal::out;
use crate::verbs::answer::Answer;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  slackline config
  $EDITOR \"$(slackline config --path)\"

The defaults file is TOML and may set any of these:
  state = \"/var/lib/slackline\"   # each run has a directory below it
  history = \"~/past.history\"     # run --history
  engine = \"local:slots=4\"       # run --engine
  policy = \"edf\"                 # run --policy, simulate --policy

Options override it. SLACKLINE_CONFIG names another file, or none if it is empty. Relative paths start from the current directory.")]
pub(crate) struct Config {
    /// Print only where the file is, or would be
    #[arg(long, conflicts_with_all = ["format", "output"])]
    path: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// Whether the answer is only the place of the file, which a broken one has too.
pub(crate) fn is_path(args: &Config) -> bool {
    args.path
}

pub(crate) fn run(args: &Config, tables: &Tables, defaults: &Defaults) -> anyhow::Result<Answer> {
    if args.path {
        let file = defaults::file()
            .context("no directory for a defaults file; name the file with SLACKLINE_CONFIG=FILE")?;
        out::text(None, &format!("{}\n", file.display()))?;
        return Ok(Answer::Yes);
    }
    let file = defaults.file().map(|file| file.display().to_string());
    let rows = defaults.all(tables).map(|one| {
        let from = if one.is_from_file { file.clone().unwrap_or_default() } else { "built in".to_owned() };
        (one.name, one.value, from)
    });
    let cells = |(name, value, from): &(&str, Option<String>, String)| {
        [(*name).to_owned(), value.clone().unwrap_or_default(), from.clone()]
    };
    let text = match args.output.form() {
        Form::Table => {
            let lines = rows.iter().map(|(name, value, from)| {
                ((*name).to_owned(), format!("{} ({from})", value.as_deref().unwrap_or("none")))
            });
            let source = match defaults.file() {
                Some(file) if file.exists() => format!("defaults file: {}\n\n", file.display()),
                Some(file) => format!("defaults file: {} (does not exist)\n\n", file.display()),
                None => "defaults file: none\n\n".to_owned(),
            };
            source + &list(&lines.collect::<Vec<_>>())
        }
        Form::Csv => slackline::report::csv(&["default", "value", "from"], rows.iter().map(cells)),
        Form::Json => {
            let rows = rows.iter().map(|(name, value, from)| {
                ((*name).to_owned(), serde_json::json!({ "value": value, "from": from }))
            });
            let document =
                serde_json::json!({ "file": file, "defaults": rows.collect::<serde_json::Map<_, _>>() });
            format!("{document:#}\n")
        }
    };
    out::text(args.output.file(), &text)?;
    Ok(Answer::Yes)
}
