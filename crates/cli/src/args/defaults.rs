//! The user's defaults file: the state directory, history, engine and policy that hold where no flag is
//! given.
//!
//! It is TOML, at the place where the platform keeps such files (`~/.config/slackline/config.toml`, or
//! wherever `XDG_CONFIG_HOME` says; on Windows in the roaming application data), or at that of
//! `SLACKLINE_CONFIG`, which is empty for no file at all. It becomes the defaults of flags, so that help
//! shows what is in force and flags win.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use etcetera::BaseStrategy;
use serde::Deserialize;
use slackline_trace::{Document, Format};

use crate::args::path;
use crate::tables::Tables;

/// The variable of the environment that names another file.
const VARIABLE: &str = "SLACKLINE_CONFIG";

/// Where runs keep their files unless the file says otherwise.
const STATE: &str = ".slackline";

/// The fields of the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultsDocument {
    /// Directory in which each run has its state directory.
    state: Option<String>,
    /// Store of earlier runs, for `run`.
    history: Option<String>,
    /// Engine, for `run`.
    engine: Option<String>,
    /// Policy, for `run` and `simulate`.
    policy: Option<String>,
}

/// What is in force where no flag says otherwise.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    /// The file, whether it is there or not.
    file: Option<PathBuf>,
    /// Why the file is left out, if it is.
    warning: Option<String>,
    fields: DefaultsDocument,
}

/// A default with its source, for `config`.
pub(crate) struct DefaultValue {
    pub(crate) name: &'static str,
    pub(crate) value: Option<String>,
    /// Whether it comes from the file.
    pub(crate) is_from_file: bool,
}

/// The file that the environment and the platform name; none if there is to be none.
pub(crate) fn file() -> Option<PathBuf> {
    match std::env::var_os(VARIABLE) {
        Some(path) => (!path.is_empty()).then(|| PathBuf::from(path)),
        None => {
            Some(etcetera::choose_base_strategy().ok()?.config_dir().join("slackline").join("config.toml"))
        }
    }
}

impl Defaults {
    /// Reads the file. A file that cannot be read is left out with a warning, and a missing one without; both
    /// are errors if the environment names the file.
    ///
    /// # Errors
    /// A named file that cannot be read; unknown names; an engine or a policy that does not exist.
    pub(crate) fn read(file: Option<PathBuf>, tables: &Tables) -> anyhow::Result<Self> {
        let Some(path) = &file else { return Ok(Self::default()) };
        let is_named = std::env::var_os(VARIABLE).is_some();
        if is_named {
            path::text(&path.to_string_lossy())
                .map_err(|expected| anyhow!("{VARIABLE}: found {}, {expected}", path.display()))?;
        }
        let text = match text(path, is_named) {
            Ok(text) => text,
            Err(error) if is_named || error.kind() == ErrorKind::InvalidData => {
                return Err(error)
                    .with_context(|| format!("defaults file {}: cannot be read", path.display()));
            }
            Err(error) => {
                let warning = (error.kind() != ErrorKind::NotFound).then(|| {
                    format!(
                        "defaults file {}: cannot be read: {error}; set {VARIABLE}= (empty) to use none",
                        path.display()
                    )
                });
                return Ok(Self { file, warning, fields: DefaultsDocument::default() });
            }
        };
        let document = Document::new(path.display().to_string(), text, Format::Toml);
        let mut fields: DefaultsDocument = document.read()?;
        if let Some(Err(wrong)) = fields.engine.as_deref().map(|engine| tables.engines.parse(engine)) {
            return Err(document.error("engine", wrong.to_string()).into());
        }
        if let Some(Err(wrong)) = fields.policy.as_deref().map(|policy| tables.policies.parse(policy)) {
            return Err(document.error("policy", wrong.to_string()).into());
        }
        for (key, path) in [("state", &mut fields.state), ("history", &mut fields.history)] {
            let Some(path) = path else { continue };
            *path = at_home(path);
            path::text(path)
                .map_err(|expected| document.error(key, format!("found {path:?}, {expected}")))?;
        }
        Ok(Self { file, warning: None, fields })
    }

    /// The file, whether it is there or not.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Why the file is left out, if it is.
    pub(crate) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The directory in which each run has its state directory.
    pub(crate) fn state(&self) -> &Path {
        Path::new(self.fields.state.as_deref().unwrap_or(STATE))
    }

    /// The store of earlier runs, if the file names one.
    pub(crate) fn history(&self) -> Option<&Path> {
        self.fields.history.as_deref().map(Path::new)
    }

    /// Each that there is, with the value in force.
    pub(crate) fn all(&self, tables: &Tables) -> [DefaultValue; 4] {
        let DefaultsDocument { state, history, engine, policy } = self.fields.clone();
        let of = |name, value: Option<String>, usual: Option<&str>| DefaultValue {
            name,
            is_from_file: value.is_some(),
            value: value.or(usual.map(str::to_owned)),
        };
        let engines = tables.engines.all();
        [
            of("state", state, Some(STATE)),
            of("history", history, None),
            of("engine", engine, engines.first().map(|entry| entry.name)),
            of("policy", policy, Some(crate::args::policy::DEFAULT_POLICY)),
        ]
    }

    /// The flags that have a default here: verb, flag, value.
    fn flags(&self) -> impl Iterator<Item = (&'static str, &'static str, &String)> {
        let DefaultsDocument { history, engine, policy, .. } = &self.fields;
        let flags = [
            ("run", "engine", engine),
            ("run", "history", history),
            ("run", "policy", policy),
            ("simulate", "policy", policy),
        ];
        flags.into_iter().filter_map(|(verb, flag, value)| Some((verb, flag, value.as_ref()?)))
    }

    /// The command line with them as the defaults of its flags.
    pub(crate) fn apply(&self, mut command: Command) -> Command {
        for (verb, flag, value) in self.flags() {
            let value = value.clone();
            command = command.mut_subcommand(verb, |verb| {
                // Only the verb of the command line has its flags.
                let has_flag = verb.get_arguments().any(|arg| arg.get_id() == flag);
                let default = |arg: clap::Arg| arg.required(false).default_value(value);
                if has_flag { verb.mut_arg(flag, default) } else { verb }
            });
        }
        command
    }

    /// What to say of those that shape the result of this command line, if any do.
    pub(crate) fn remark(&self, matches: &ArgMatches) -> Option<String> {
        let (verb, matches) = matches.subcommand()?;
        let taken = self.flags().filter(|&(of, flag, _)| {
            of == verb && matches.value_source(flag) == Some(ValueSource::DefaultValue)
        });
        let taken: Vec<String> = taken.map(|(_, flag, value)| format!("--{flag} {value}")).collect();
        let file = self.file()?.display();
        (!taken.is_empty()).then(|| format!("from {file}: {}", taken.join(" ")))
    }
}

/// Reads a file. A pipe, which could block, is read only if the user has named it.
fn text(path: &Path, is_named: bool) -> std::io::Result<String> {
    if is_named || std::fs::metadata(path)?.is_file() {
        std::fs::read_to_string(path)
    } else {
        Err(std::io::Error::other("it is not a regular file"))
    }
}

/// A path in which `~/` is the user's home, as no shell reads the file.
fn at_home(path: &str) -> String {
    let home = || Some(etcetera::home_dir().ok()?.join(path.strip_prefix("~/")?).display().to_string());
    home().unwrap_or_else(|| path.to_owned())
}
