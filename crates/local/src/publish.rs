//! The end of a job: its parts go to their places together, and the state directory remembers what was made of what.

use std::io;
use std::path::{Path, PathBuf};

use crate::job_plan::{JobPlan, Source};
use crate::layout::Layout;
use crate::made::{Made, MadeJobs, MadeLog, written};

/// Finishes the jobs of a run.
#[derive(Clone, Copy)]
pub(crate) struct Publisher<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) jobs: &'a [JobPlan],
    /// What was made before the run.
    pub(crate) made: &'a MadeJobs,
    pub(crate) log: &'a MadeLog,
    /// The directory that relative paths start from.
    pub(crate) directory: &'a Path,
}

impl Publisher<'_> {
    /// Finishes a job whose tasks are all done. Can be done again if it was cut short.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub(crate) fn publish(&self, index: u32) -> io::Result<()> {
        let job = &self.jobs[index as usize];
        Layout::publish(job, self.made)?;
        let made = Made {
            flow: job.flow.clone(),
            job: job.job.clone(),
            definition: job.definition.clone(),
            read: self.read(job),
            wrote: written(&job.output, (0..job.parts()).map(|part| job.part(part)))?,
        };
        self.log.add(&made).map_err(io::Error::other)?;
        self.layout.clear_up(job, index)
    }

    /// What a job has read: its own inputs as they were when the run began, the output of other jobs as it is now.
    fn read(&self, job: &JobPlan) -> std::collections::BTreeMap<PathBuf, Source> {
        let sources = &job.inputs.sources;
        let own = sources.iter().map(|(path, state)| (self.directory.join(path), state.clone()));
        let others = job.inputs.maps.iter().flatten().filter(|split| !sources.contains_key(&split.path));
        let others = others
            .filter_map(|split| Some((self.directory.join(&split.path), Source::now(&split.path).ok()?)));
        own.chain(others).collect()
    }
}
