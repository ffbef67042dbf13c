//! `command:PROGRAM ARGUMENTS`: a policy in any language.
//!
//! The program is started for each run. It reads a line of JSON from its standard input for every instant at
//! which something happened, and writes a line with what it wants changed; `docs/policies-in-any-language.md`
//! has the protocol by example. What it says is checked against what it was told. A program that ends, is
//! late or says something wrong fails, with the run: nothing is decided in its place.
//!
//! - `wire`: the messages, field by field;
//! - `told`: lines from events, and the numbers that the program may answer with;
//! - `answer`: what it answers, read and checked;
//! - `order`: slots by its last order;
//! - `child`: its process;
//! - `policy`: the policy that asks it.

mod answer;
mod child;
mod order;
mod policy;
#[cfg(test)]
mod schema;
mod told;
mod wire;

use std::time::Duration;

use slackline_algo::registry::{Capabilities, Flows, PolicyEntry, Speeds, Typed};
use slackline_model::printable::{cut_line, escaped_line};
use slackline_model::{Cluster, Objective, shell};
use slackline_policy::Policy;

use policy::CommandPolicy;

/// What the name of such a policy begins with, before a colon.
pub const NAME: &str = "command";

/// How long a program may take for an answer, unless something else is said.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// What tables of policies say of it. It is made from a [`Program`] alone, so that it is in no registry.
pub const ENTRY: PolicyEntry = PolicyEntry {
    capabilities: Capabilities {
        flows: Flows::Whole,
        typed: Typed::Yes,
        speeds: Speeds::Known,
        minima: false,
    },
    source: "docs/policies-in-any-language.md",
    guarantee: "that of the program",
    ..PolicyEntry::new(
        NAME,
        "a program of your own in any language: command:PROGRAM ARGUMENTS",
        |cluster, objective, _| {
            let program = Program { words: Vec::new(), timeout: TIMEOUT };
            program.policy(cluster, objective)
        },
    )
};

/// A program that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments.
    words: Vec<String>,
    /// How long it may take for an answer.
    timeout: Duration,
}

impl Program {
    /// The program of a command line, whose words are divided and quoted as in a POSIX shell. It is started
    /// without one: nothing is expanded.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some(words) = shlex::split(text) else {
            return Err(format!("found {}, expected every quote to be closed", shown(text, 200)));
        };
        if words.first().is_none_or(String::is_empty) {
            return Err(format!("found no program, expected {NAME}:PROGRAM ARGUMENTS"));
        }
        shell::check_path(&words[0])
            .map_err(|expected| format!("found {}, expected {expected}", shown(&words[0], 200)))?;
        Ok(Self { words, timeout: TIMEOUT })
    }

    /// With so much time for each answer.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Starts the program for one run.
    pub fn policy(&self, cluster: &Cluster, objective: &Objective) -> Box<dyn Policy + Send> {
        Box::new(CommandPolicy::start(self.clone(), cluster, *objective))
    }
}

/// A text as one line of at most so many characters, and of what is left out the number.
fn shown(text: &str, most: usize) -> String {
    let more = escaped_line(text).chars().count().saturating_sub(most);
    let more = if more > 0 { format!(" ({more} characters more)") } else { String::new() };
    cut_line(text, most) + &more
}
