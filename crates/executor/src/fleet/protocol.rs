//! The protocol between a run and its agents: lines of JSON over the standard input and output of the agent.
//! `docs/fleet.md` describes it for other implementations.
//!
//! The run starts with [`ToAgent::Hello`], which has the version first, and the agent answers
//! [`FromAgent::Ready`] or [`FromAgent::Refused`]. Both sides send something at least every [`BEAT`]. If a
//! run receives nothing from an agent for [`SILENT`], it gives its work to others. An agent that was silent
//! for that time itself, or receives nothing for [`LEASE`], ends with everything that it has started.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use slackline_task::process::report::Report;
use slackline_task::process::spec::Spec;

/// The version of all this.
pub(crate) const VERSION: u32 = 1;

/// The program, for the form of attempts and reports: both sides have to be the same.
pub(crate) const PROGRAM: &str = env!("CARGO_PKG_VERSION");

/// How often something is sent at least.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// An agent from which nothing arrives for this time is dropped.
pub(crate) const SILENT: Duration = Duration::from_secs(10);
/// An agent that receives nothing for this time ends.
pub(crate) const LEASE: Duration = Duration::from_secs(30);
/// A line of an agent is shorter: a report with the last words of a command is far shorter.
pub(crate) const LINE_MAX: usize = 1 << 20;

/// Messages to an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToAgent {
    /// The greeting: the run and its expectations. Always the first line, and only that.
    Hello(Hello),
    Start {
        n: u64,
        spec: Box<Spec>,
    },
    /// Stops an attempt, with everything that it started. Its end is still reported.
    Stop(u64),
    /// The run is alive.
    Beat {},
}

/// The run that speaks to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The version of the protocol.
    pub(crate) v: u32,
    /// The version of the program.
    pub(crate) program: String,
    /// The name by which the outputs of the run are known.
    pub(crate) owner: String,
    /// The run's name of the machine. An agent ends the processes of earlier agents of this owner and
    /// machine.
    pub(crate) machine: String,
    /// The directory that relative paths start from.
    pub(crate) directory: PathBuf,
    /// Files that show whether the machine sees the files of the run.
    pub(crate) proofs: Vec<Proof>,
    /// Variables that the environment of attempts has as the run's has.
    pub(crate) env: Vec<(String, String)>,
}

/// A file that a machine has to see.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Proof {
    /// One that the run has written.
    Holds {
        path: PathBuf,
        /// All that is in it.
        holds: String,
    },
    Bytes {
        path: PathBuf,
        bytes: u64,
    },
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromAgent {
    /// It sees the files, earlier agents have ended, and it takes attempts.
    Ready(Ready),
    Refused(Refused),
    /// An attempt has ended, and nothing that it started is left.
    Ended {
        n: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Report>,
        /// Why it reported nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken: Option<String>,
    },
    Beat {},
}

/// The resources of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// The version of the protocol.
    pub(crate) v: u32,
    /// The version of the program.
    pub(crate) program: String,
    pub(crate) processors: u32,
    /// Memory, bytes; `None` if unknown.
    pub(crate) memory: Option<u64>,
}

/// Why an agent takes no attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    /// The version of its protocol.
    pub(crate) v: u32,
    /// Found and expected.
    pub(crate) why: String,
}

pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("invariant: a message can be written as JSON");
    line.push(b'\n');
    line
}

/// Why an agent of these versions is not understood, if so.
pub(crate) fn mismatch(v: u32, program: &str) -> Option<String> {
    if v != VERSION {
        return Some(format!("found version {v} of the protocol, expected {VERSION}"));
    }
    (program != PROGRAM).then(|| {
        format!("found slackline {program}, expected {PROGRAM}: install the same version on all machines")
    })
}

/// The version in a first line, of any version; `None` if it is no hello.
pub(crate) fn version_of(line: &[u8]) -> Option<(u32, Option<String>)> {
    let value: serde_json::Value = serde_json::from_slice(line).ok()?;
    let hello = value.get("hello")?;
    let v = hello.get("v")?.as_u64()?;
    let program = hello.get("program").and_then(|program| program.as_str()).map(str::to_owned);
    Some((u32::try_from(v).unwrap_or(u32::MAX), program))
}

#[cfg(test)]
mod tests {
    use super::*;
    use slackline_task::process::spec::{Args, Job, Task};

    fn text(message: &impl Serialize) -> String {
        String::from_utf8(line(message)).unwrap()
    }

    #[test]
    fn messages_are_the_lines_that_the_documentation_shows() {
        let job = Job::Program { program: "wordcount".to_owned(), args: Args::new() };
        let task = Task::Reduce { partition: 2, maps: vec!["/w/maps/0".into()] };
        let spec = Box::new(Spec::new(job, task, "/w/attempts/17".into(), 1 << 20));
        let start = ToAgent::Start { n: 17, spec };
        assert!(text(&start).starts_with(r#"{"start":{"n":17,"spec":{"job":{"program":"wordcount"},"#));
        assert_eq!(serde_json::from_str::<ToAgent>(&text(&start)).unwrap(), start);
        assert_eq!(text(&ToAgent::Stop(17)), "{\"stop\":17}\n");
        assert_eq!(text(&ToAgent::Beat {}), "{\"beat\":{}}\n");
        assert_eq!(text(&FromAgent::Beat {}), "{\"beat\":{}}\n");
        let report = Some(Report::failed("no".to_owned()));
        let ended = FromAgent::Ended { n: 17, report, broken: None };
        assert_eq!(text(&ended), "{\"ended\":{\"n\":17,\"report\":{\"failed\":{\"message\":\"no\"}}}}\n");
        assert_eq!(serde_json::from_str::<FromAgent>(&text(&ended)).unwrap(), ended);
        let refused = FromAgent::Refused(Refused { v: 2, why: "no".to_owned() });
        assert_eq!(text(&refused), "{\"refused\":{\"v\":2,\"why\":\"no\"}}\n");
    }

    #[test]
    fn a_hello_of_any_version_says_which_it_is() {
        let later = br#"{"hello":{"v":9,"program":"7.1","what":["else"]},"more":1}"#;
        assert_eq!(version_of(later), Some((9, Some("7.1".to_owned()))));
        assert_eq!(version_of(br#"{"hello":{"v":9}}"#), Some((9, None)));
        assert_eq!(version_of(b"{\"stop\":1}"), None);
        assert_eq!(version_of(b"Welcome to n1"), None);
        assert_eq!(mismatch(VERSION, PROGRAM), None);
        assert_eq!(mismatch(9, PROGRAM).unwrap(), "found version 9 of the protocol, expected 1");
        let other = mismatch(VERSION, "7.1").unwrap();
        assert!(other.starts_with("found slackline 7.1, expected "), "{other}");
    }
}
