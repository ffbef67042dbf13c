#![doc = include_str!("../README.md")]
//!
//! The program `slackline`: from command-line arguments to calls of the library, and from results to exit
//! codes.
//!
//! Never knows: how anything is scheduled, simulated or run; that is in `slackline` and `slackline_serve`.
//!
//! Read first: `verbs.rs` (the table of verbs), `verbs/analyse/simulate.rs` (a verb from flags to output),
//! and `args/shape.rs` (flags that several verbs share).
//!
//! # Modules
//!
//! [`main_with`] is the whole program with tables of policies, engines and formats, so that a `main` of your
//! own can add to them.
//!
//! - `args`: groups of flags that mean the same in every verb, what `--help` shows, the user's defaults file;
//! - `verbs`: one file for each verb, in folders by the groups of the help: `analyse`, `run`, `service`,
//!   `data`, `research`, `setup`;
//! - `terminal`: everything that is printed or shown: results, messages, progress, the live view;
//! - [`Tables`]: the policies, engines and formats that the program knows by name.
//!
//! Exit codes: 0 done, 1 the answer is no, 2 wrong use or wrong input, 130 a run was stopped and can be
//! resumed; 3 of `submit`: submitted, and not predicted.
#![deny(clippy::unwrap_used)]

mod args;
mod tables;
mod terminal;
mod verbs;

use std::process::ExitCode;

use crate::args::defaults::{self, Defaults};
use crate::terminal::{input, out};
use crate::verbs::Parsed;
use crate::verbs::answer::Answer;
use slackline_lab::ReproError;
use slackline_model::printable;
pub use tables::Tables;

/// The program, with these policies, engines and formats wherever one is named. A registry of policies goes
/// with everything else of the library.
pub fn main_with(tables: impl Into<Tables>) -> ExitCode {
    // Engines start this program once for every attempt of a task; that is no verb for people.
    if let Some(code) = slackline::run::worker_if_asked() {
        return code;
    }
    let tables = tables.into();
    let (defaults, broken) = match Defaults::read(defaults::file(), &tables) {
        Ok(defaults) => (defaults, None),
        Err(error) => (Defaults::default(), Some(error)),
    };
    let parsed = verbs::parse(&tables, &defaults, std::env::args_os());
    // Help, the version and the path of the file work with a broken defaults file too.
    let works_without = match &parsed {
        Ok(parsed) => parsed.cli.needs_no_defaults(),
        Err(message) => message.exit_code() == 0,
    };
    if let Some(error) = broken.filter(|_| !works_without) {
        out::error(&error);
        return ExitCode::from(2);
    }
    let Parsed { cli, remark } = match parsed {
        Ok(parsed) => parsed,
        Err(message) => {
            let text = message.render().to_string();
            if printable::escaped(&text) == text {
                // If the output is closed, the exit code says it all.
                let _ = message.print();
            } else {
                out::talk(text.trim_end());
            }
            return ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2));
        }
    };
    out::warn_if(defaults.warning());
    if let Some(remark) = remark {
        out::talk(remark);
    }
    match verbs::run(cli, &tables, &defaults) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        // What shells give for a program that ctrl-C has ended.
        Ok(Answer::Stopped) => ExitCode::from(130),
        Ok(Answer::Code(code)) => ExitCode::from(code),
        Err(error) if out::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A policy that failed is no wrong use.
            let is_no = error.downcast_ref().is_some_and(ReproError::is_policy_failure);
            out::error(&input::with_flags(error));
            ExitCode::from(if is_no { 1 } else { 2 })
        }
    }
}
