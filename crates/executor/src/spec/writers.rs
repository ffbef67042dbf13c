//! Finds the jobs whose output other jobs read.

use std::collections::BTreeMap;
use std::path::Path;

use slackline_task::process::spec::Split;

use crate::spec::job_plan::JobPlan;

/// Jobs that write the inputs of others. Outputs do not overlap.
#[derive(Default)]
pub(crate) struct Writers<'a> {
    jobs: Vec<&'a JobPlan>,
    by_name: BTreeMap<(&'a str, &'a str), usize>,
    by_output: BTreeMap<&'a Path, usize>,
}

impl<'a> Writers<'a> {
    pub(crate) fn new(jobs: &'a [JobPlan]) -> Self {
        let mut writers = Self::default();
        for job in jobs {
            writers.add(job);
        }
        writers
    }

    pub(crate) fn add(&mut self, job: &'a JobPlan) {
        let at = self.jobs.len();
        self.jobs.push(job);
        self.by_name.insert((&job.flow, &job.job), at);
        self.by_output.insert(&job.output, at);
    }

    /// The position of the job that writes an input of `reader`, in the order in which jobs were added. O(log
    /// jobs).
    pub(crate) fn of(&self, reader: &JobPlan, split: &Split) -> Option<usize> {
        let writes = |at: &usize| self.jobs[*at].writes(&split.path);
        // Comparing names is much cheaper than comparing paths, part by part.
        let name = reader.upstream_name(split);
        let by_name = name.and_then(|name| self.by_name.get(&name).copied()).filter(writes);
        let by_path = || split.path.ancestors().find_map(|path| self.by_output.get(path).copied());
        by_name.or_else(by_path)
    }
}
