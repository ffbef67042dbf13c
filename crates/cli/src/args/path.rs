//! Paths and commands on the command line: texts that a shell would read differently are refused.
//!
//! [`with_paths`] checks every argument whose value is a `PathBuf`, so that a new option cannot be forgotten.

use std::any::TypeId;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::Command;
use clap::builder::{PathBufValueParser, TypedValueParser};
use slackline_model::shell;
use slackline_trace::reading::format::ending;

/// The name of a file that a verb writes; its directory is there.
#[derive(Clone, Debug)]
pub(crate) struct WrittenFile(PathBuf);

impl WrittenFile {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(self::text(text)?);
        in_a_directory(&path).map(|()| Self(path))
    }
}

impl Deref for WrittenFile {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

/// A path that is taken as a text.
pub(crate) fn text(text: &str) -> Result<String, String> {
    shell::check_path(text).map(|()| text.to_owned()).map_err(|expected| format!("expected {expected}"))
}

/// The same where it may be something else, such as the id of a flow, unless it has a slash.
pub(crate) fn text_or_name(text: &str) -> Result<String, String> {
    if text.contains('/') { self::text(text) } else { Ok(text.to_owned()) }
}

/// A file of rows, whose name says its form.
pub(crate) fn rows_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(self::text(text)?);
    in_a_directory(&path)?;
    match ending(text).as_deref() {
        Some("csv" | "jsonl") => Ok(path),
        _ => Err(format!("found {text}, expected a name that ends in .csv or .jsonl")),
    }
}

/// A command that a shell runs.
pub(crate) fn command(text: &str) -> Result<String, String> {
    shell::check_command(text).map(|()| text.to_owned())
}

/// A verb whose arguments that are paths refuse what a shell would expand.
pub(crate) fn with_paths(verb: Command) -> Command {
    verb.mut_args(|arg| {
        if arg.get_value_parser().type_id() != TypeId::of::<PathBuf>() {
            return arg;
        }
        arg.value_parser(
            PathBufValueParser::new().try_map(|path: PathBuf| text(&path.to_string_lossy()).map(|_| path)),
        )
    })
}

/// Refuses the name of a file in a directory that there is not.
pub(crate) fn in_a_directory(file: &Path) -> Result<(), String> {
    match file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() && !dir.is_dir() => {
            Err(format!("found {}, expected a file in an existing directory", file.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::path::PathBuf;

    use clap::{Arg, Command};

    use crate::tables::Tables;
    use crate::verbs;

    /// The names by which help shows values that are paths.
    const PATHS: [&str; 11] = [
        "DIR",
        "FILE",
        "FILE.html",
        "JAR",
        "PATH",
        "PATTERN",
        "PROGRAM",
        "RUN",
        "SCHEDULE",
        "SERVER",
        "WORKLOAD",
    ];

    /// The message for an argument that is refused.
    fn refusal(arg: &Arg, value: &str) -> Option<String> {
        let arg = Arg::new("value").num_args(1).value_parser(arg.get_value_parser().clone());
        let command = Command::new("try").no_binary_name(true).arg(arg);
        Some(command.try_get_matches_from([value]).err()?.to_string())
    }

    #[test]
    fn every_argument_that_is_a_path_refuses_what_a_shell_would_expand() {
        let mut tried = Vec::new();
        let command = verbs::command(&Tables::default());
        for verb in command.get_subcommands() {
            for arg in verb.get_arguments() {
                let names = arg.get_value_names().unwrap_or_default();
                let is_path = arg.get_action().takes_values()
                    && (arg.get_value_parser().type_id() == TypeId::of::<PathBuf>()
                        || names.iter().any(|name| PATHS.contains(&name.as_str())));
                if !is_path {
                    continue;
                }
                let name = format!("{} {}", verb.get_name(), arg.get_id());
                for value in ["~/x", "~anna/x", "$HOME/x", "${X}/y", "/data/$(date)/x"] {
                    let refused = refusal(arg, value).unwrap_or_else(|| panic!("{name} takes {value}"));
                    let has_hint = refused.contains("expected the full path: Slackline does not expand");
                    assert!(has_hint, "{name}: {refused}");
                }
                tried.push(name);
            }
        }
        for known in ["run state", "serve tls_key", "submit when", "compare report"] {
            assert!(tried.iter().any(|name| name == known), "{known}: {tried:?}");
        }
    }
}
