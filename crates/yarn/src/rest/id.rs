//! Hadoop's identifiers, as values that can be compared and copied.
//!
//! All of them contain an [`AppId`]: a job, a task and a container carry the numbers of their application.

use std::fmt;
use std::str::FromStr;

use slackline_model::PhaseKind;

/// A text that is not a valid identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not an identifier of {expected}, such as `{example}`")]
pub struct IdError {
    found: String,
    expected: &'static str,
    example: &'static str,
}

/// `application_1700000000000_0001`, also written `job_1700000000000_0001` of its MapReduce job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppId {
    /// The start time of its ResourceManager, in milliseconds since 1970.
    pub cluster: u64,
    /// Its number there, from 1.
    pub number: u32,
}

impl AppId {
    /// The name of the application's MapReduce job.
    pub fn job(self) -> String {
        format!("job_{}_{:04}", self.cluster, self.number)
    }
}

/// `appattempt_1700000000000_0001_000002`: one attempt of an ApplicationMaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AppAttemptId {
    pub app: AppId,
    /// From 1.
    pub number: u32,
}

/// `container_1700000000000_0001_02_000007`, with `e17_` in front of the numbers after restarts of the
/// ResourceManager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerId {
    /// The attempt that asked for it.
    pub attempt: AppAttemptId,
    /// The number of restarts of the ResourceManager before it granted the container.
    pub epoch: u32,
    /// From 1, which is usually the ApplicationMaster.
    pub number: u64,
}

/// `task_1700000000000_0001_m_000003`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId {
    /// The application of the task's job.
    pub app: AppId,
    pub kind: PhaseKind,
    /// From 0, in the order of the splits or partitions.
    pub number: u32,
}

/// `attempt_1700000000000_0001_m_000003_0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskAttemptId {
    pub task: TaskId,
    /// From 0; those of a second ApplicationMaster begin at 1000.
    pub number: u32,
}

/// The parts of an identifier after its first word.
struct Parts<'a> {
    rest: Option<std::str::Split<'a, char>>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str, words: &[&str]) -> Self {
        let mut rest = text.split('_');
        let first = rest.next();
        Self { rest: first.filter(|word| words.contains(word)).map(|_| rest) }
    }

    fn word(&mut self) -> Option<&'a str> {
        self.rest.as_mut()?.next()
    }

    fn number<T: FromStr>(&mut self) -> Option<T> {
        self.word()?.parse().ok()
    }

    fn app(&mut self) -> Option<AppId> {
        Some(AppId { cluster: self.number()?, number: self.number()? })
    }

    fn task(&mut self) -> Option<TaskId> {
        let app = self.app()?;
        let kind = match self.word()? {
            "m" => PhaseKind::Map,
            "r" => PhaseKind::Reduce,
            _ => return None,
        };
        Some(TaskId { app, kind, number: self.number()? })
    }

    /// The value, if nothing follows.
    fn end<T>(&mut self, value: T) -> Option<T> {
        self.word().is_none().then_some(value)
    }
}

fn read_app(text: &str) -> Option<AppId> {
    let mut parts = Parts::of(text, &["application", "job"]);
    let id = parts.app()?;
    parts.end(id)
}

fn read_app_attempt(text: &str) -> Option<AppAttemptId> {
    let mut parts = Parts::of(text, &["appattempt"]);
    let id = AppAttemptId { app: parts.app()?, number: parts.number()? };
    parts.end(id)
}

fn read_container(text: &str) -> Option<ContainerId> {
    let mut parts = Parts::of(text, &["container"]);
    let first = parts.word()?;
    let (epoch, cluster) = match first.strip_prefix('e') {
        Some(epoch) => (epoch.parse().ok()?, parts.number()?),
        None => (0, first.parse().ok()?),
    };
    let attempt = AppAttemptId { app: AppId { cluster, number: parts.number()? }, number: parts.number()? };
    let number = parts.number()?;
    parts.end(ContainerId { attempt, epoch, number })
}

fn read_task(text: &str) -> Option<TaskId> {
    let mut parts = Parts::of(text, &["task"]);
    let id = parts.task()?;
    parts.end(id)
}

fn read_task_attempt(text: &str) -> Option<TaskAttemptId> {
    let mut parts = Parts::of(text, &["attempt"]);
    let id = TaskAttemptId { task: parts.task()?, number: parts.number()? };
    parts.end(id)
}

/// `FromStr` by a function, and reading from JSON strings by `FromStr`.
macro_rules! read_by {
    ($type:ty, $read:ident, $expected:literal, $example:literal) => {
        impl FromStr for $type {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                $read(text).ok_or_else(|| IdError {
                    found: text.chars().take(80).collect(),
                    expected: $expected,
                    example: $example,
                })
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

read_by!(AppId, read_app, "an application", "application_1700000000000_0001");
read_by!(AppAttemptId, read_app_attempt, "an application's attempt", "appattempt_1700000000000_0001_000001");
read_by!(ContainerId, read_container, "a container", "container_1700000000000_0001_01_000001");
read_by!(TaskId, read_task, "a task", "task_1700000000000_0001_m_000000");
read_by!(TaskAttemptId, read_task_attempt, "a task's attempt", "attempt_1700000000000_0001_m_000000_0");

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "application_{}_{:04}", self.cluster, self.number)
    }
}

impl fmt::Display for AppAttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "appattempt_{}_{:04}_{:06}", self.app.cluster, self.app.number, self.number)
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container_")?;
        if self.epoch > 0 {
            write!(f, "e{:02}_", self.epoch)?;
        }
        let AppAttemptId { app, number } = self.attempt;
        write!(f, "{}_{:04}_{number:02}_{:06}", app.cluster, app.number, self.number)
    }
}

/// The letter of a phase in identifiers.
fn letter(kind: PhaseKind) -> char {
    match kind {
        PhaseKind::Map => 'm',
        PhaseKind::Reduce => 'r',
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task_{}_{:04}_{}_{:06}", self.app.cluster, self.app.number, letter(self.kind), self.number)
    }
}

impl fmt::Display for TaskAttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TaskId { app, kind, number } = self.task;
        let kind = letter(kind);
        write!(f, "attempt_{}_{:04}_{kind}_{number:06}_{}", app.cluster, app.number, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back<T: FromStr<Err = IdError> + fmt::Display>(text: &str) -> T {
        let id: T = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        id
    }

    #[test]
    fn identifiers_are_read_and_written_as_hadoop_does() {
        there_and_back::<AppId>("application_1700000000000_0001");
        there_and_back::<AppId>("application_1700000000000_12345");
        there_and_back::<AppAttemptId>("appattempt_1700000000000_0001_000002");
        there_and_back::<ContainerId>("container_1700000000000_0001_02_000007");
        let id: ContainerId = there_and_back("container_e17_1700000000000_0001_02_1000007");
        assert_eq!((id.epoch, id.attempt.number, id.number), (17, 2, 1_000_007));
        there_and_back::<TaskId>("task_1700000000000_0001_r_000003");
        let id: TaskAttemptId = there_and_back("attempt_1700000000000_0001_m_000003_1000");
        assert_eq!((id.task.number, id.number, id.task.kind), (3, 1000, PhaseKind::Map));
        assert_eq!("job_17_0001".parse::<AppId>().unwrap().job(), "job_17_0001");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "application",
            "application_",
            "application_1",
            "application_1_2_3",
            "app_1_2",
            "application_-1_2",
        ] {
            assert!(text.parse::<AppId>().is_err(), "{text}");
        }
        for text in [
            "container_e_1_1_1_1",
            "container_1_1_1",
            "container_1_1_1_1_1",
            "container_e9",
            "container_ünï_1_1_1",
        ] {
            assert!(text.parse::<ContainerId>().is_err(), "{text}");
        }
        assert!("attempt_1_1_x_1_1".parse::<TaskAttemptId>().is_err());
        assert_eq!(
            "job".parse::<TaskId>().unwrap_err().to_string(),
            "`job` is not an identifier of a task, such as `task_1700000000000_0001_m_000000`"
        );
    }
}
