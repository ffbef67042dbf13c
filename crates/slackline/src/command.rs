//! `command:PROGRAM ARGUMENTS`: a policy in any language.
//!
//! The program is started for each run. For every instant with events it reads a line of JSON from its
//! standard input and writes a line with its changes; `docs/policies-in-any-language.md` explains the
//! protocol with examples. Answers are checked against the messages that the program received. If the program
//! ends, is late or sends an invalid answer, the run fails. No default decision replaces the answer.
//!
//! - `wire`: the fields of the messages;
//! - `program_view`: converts events to lines, and tracks the numbers that the program may use;
//! - `answer`: reads and checks answers;
//! - `order`: assigns slots by the last order;
//! - `child`: the process of the program;
//! - `policy`: the policy that calls the program.

mod answer;
mod child;
mod order;
mod policy;
mod program_view;
#[cfg(test)]
mod schema;
mod wire;

use std::time::Duration;

use slackline_algo::registry::{Capabilities, Flows, MapReduceSlots, PolicyEntry, Speeds};
use slackline_model::printable::{cut_line, escaped_line};
use slackline_model::{Cluster, Objective, shell};
use slackline_policy::Policy;

use policy::CommandPolicy;

/// The prefix of the name of such a policy, before a colon.
pub const NAME: &str = "command";

/// The default time limit for an answer.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The entry of the policy in tables. It needs a [`Program`], so it is in no registry.
pub const ENTRY: PolicyEntry = PolicyEntry {
    capabilities: Capabilities {
        flows: Flows::Whole,
        map_reduce_slots: MapReduceSlots::Yes,
        speeds: Speeds::Known,
        minima: false,
    },
    source: "docs/policies-in-any-language.md",
    guarantee: "that of the program",
    ..PolicyEntry::new(
        NAME,
        "your own program in any language: command:PROGRAM ARGUMENTS",
        |cluster, objective, _| {
            let program = Program { words: Vec::new(), timeout: TIMEOUT };
            program.policy(cluster, objective)
        },
    )
};

/// An external program that makes the decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    words: Vec<String>,
    /// The time limit for an answer.
    timeout: Duration,
}

impl Program {
    /// Parses a command line, with words and quotes as in a POSIX shell. The program is started without a
    /// shell, so nothing is expanded.
    ///
    /// # Errors
    /// The error in the command line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(words) = shlex::split(text) else {
            return Err(format!("found {}, in which a quote is not closed", shown(text, 200)));
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(format!("found no program, expected {NAME}:PROGRAM ARGUMENTS"));
        }
        shell::check_path(&words[0])
            .map_err(|expected| format!("found {}, expected {expected}", shown(&words[0], 200)))?;
        Ok(Self { words, timeout: TIMEOUT })
    }

    /// Sets the time limit for each answer.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Starts the program for one run.
    pub fn policy(&self, cluster: &Cluster, objective: &Objective) -> Box<dyn Policy + Send> {
        Box::new(CommandPolicy::start(self.clone(), cluster, *objective))
    }
}

/// A text as one line of at most `most` characters, with the number of omitted characters.
fn shown(text: &str, most: usize) -> String {
    let more = escaped_line(text).chars().count().saturating_sub(most);
    let more = if more > 0 { format!(" ({more} characters more)") } else { String::new() };
    cut_line(text, most) + &more
}
