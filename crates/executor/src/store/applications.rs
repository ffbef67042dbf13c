//! The state of a run's jobs on a cluster (`applications.json`). The driving process writes it about once a
//! second for viewers. No decision depends on it: the journal says which jobs are finished.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use slackline_task::base::regular_file;
use slackline_task::base::task_id::TaskId;
use slackline_trace::atomic_file;

use crate::store::journal::Attempt;

/// A job on a cluster. Times are microseconds since the start of its run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExternalJob {
    pub flow: String,
    pub job: String,
    /// The start of that run: microseconds since 1970.
    pub run: u64,
    /// Its application ids on the cluster, the newest last.
    pub applications: Vec<String>,
    /// The time of its submission.
    pub submitted: Option<u64>,
    /// Since when its ApplicationMaster has a container, and since when it requests other containers.
    pub am: [Option<u64>; 2],
    /// Whether it has finally failed.
    pub failed: bool,
    /// Number of its containers for tasks.
    pub containers: u32,
    /// Its running tasks, with their starts.
    pub at_work: Vec<(TaskId, u64)>,
    /// Successful attempts that are not in the journal yet.
    pub made: Vec<Attempt>,
}

impl ExternalJob {
    /// Whether it is that job of the run that started at `run`.
    pub fn is(&self, run: u64, flow: &str, job: &str) -> bool {
        self.run == run && self.flow == flow && self.job == job
    }
}

/// The latest written state; empty if there is none or it cannot be read.
pub(crate) fn read(path: &Path) -> Vec<ExternalJob> {
    let text = regular_file::read(path, regular_file::LARGEST).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

pub(crate) fn write(path: &Path, jobs: &[ExternalJob]) -> io::Result<()> {
    let text = serde_json::to_vec(jobs)?;
    atomic_file::write(path, |out| out.write_all(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_back_and_a_damaged_file_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("applications.json");
        assert!(read(&path).is_empty());
        let job = ExternalJob {
            flow: "f".to_owned(),
            job: "j".to_owned(),
            run: 7,
            applications: vec!["application_1_0001".to_owned()],
            submitted: Some(1),
            am: [Some(2), None],
            at_work: vec![(TaskId::map(0, 3), 5)],
            ..ExternalJob::default()
        };
        write(&path, std::slice::from_ref(&job)).unwrap();
        assert_eq!(read(&path), [job]);
        std::fs::write(&path, "[{").unwrap();
        assert!(read(&path).is_empty());
    }
}
