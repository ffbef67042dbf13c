//! The end of a job: its parts go to their places together, and the state directory remembers what was made of what.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::Remover;
use crate::job_plan::{JobPlan, Source};
use crate::layout::Layout;
use crate::made::{Made, MadeJobs, MadeLog, written};

/// The output of more maps than these is removed while the run goes on.
const AT_ONCE: u32 = 64;

/// Finishes the jobs of a run.
pub(crate) struct Publisher<'a> {
    layout: &'a Layout,
    jobs: &'a [JobPlan],
    /// What was made before.
    made: &'a MadeJobs,
    log: &'a MadeLog,
    /// The directory that relative paths start from.
    directory: &'a Path,
    /// When the run started.
    started: u64,
    /// The parts that were put in their places since, by absolute path.
    parts: RefCell<BTreeMap<PathBuf, Source>>,
    /// Removes the output of very many maps.
    remover: RefCell<Remover>,
}

/// What jobs are finished in.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The files of the run.
    pub(crate) layout: &'a Layout,
    /// Its jobs.
    pub(crate) jobs: &'a [JobPlan],
    /// The directory that relative paths start from.
    pub(crate) directory: &'a Path,
    /// When the run started.
    pub(crate) started: u64,
}

impl<'a> Publisher<'a> {
    pub(crate) fn new(place: Place<'a>, made: &'a MadeJobs, log: &'a MadeLog) -> Self {
        let Place { layout, jobs, directory, started } = place;
        Self {
            layout,
            jobs,
            made,
            log,
            directory,
            started,
            parts: RefCell::default(),
            remover: RefCell::default(),
        }
    }

    /// The directory that relative paths start from.
    pub(crate) fn directory(&self) -> &'a Path {
        self.directory
    }

    /// Leaves map output of finished jobs that is not removed yet where it is, for the next session.
    pub(crate) fn leave(&self) {
        self.remover.borrow().leave();
    }

    /// Finishes a job whose tasks are all done; attempts from `next` on come after it. Can be done again if it was cut
    /// short. Gives the finished job, and a warning if a temporary file cannot be removed.
    ///
    /// # Errors
    /// Whatever the file system says; something in the output that no run of the state directory has made.
    pub(crate) fn publish(&self, index: u32, next: u64) -> io::Result<(Made, Option<String>)> {
        let job = &self.jobs[index as usize];
        Layout::publish(job, self.made)?;
        let made = Made {
            flow: job.flow.clone(),
            job: job.job.clone(),
            definition: job.definition.clone(),
            read: self.read(job),
            wrote: written(&job.output, (0..job.parts()).map(|part| job.part(part)))?,
            run: (self.started, next),
            again: false,
        };
        self.log.add(&made).map_err(io::Error::other)?;
        let directory = made.directory();
        let parts = made.wrote.iter().map(|(name, state)| (directory.join(name), state.clone()));
        self.parts.borrow_mut().extend(parts);
        if job.reducers > 0
            && job.maps() > AT_ONCE
            && let Some(aside) = self.layout.set_aside(index)
        {
            self.remover.borrow_mut().take(aside);
        }
        Ok((made, self.layout.clear_up(job, index)))
    }

    /// A part of another job as it was when it was put in its place; none if no run of the state directory made it.
    pub(crate) fn part(&self, path: &Path) -> Option<Source> {
        let path = self.directory.join(path);
        let earlier = || self.made.get(path.parent()?)?.wrote.get(path.file_name()?.to_str()?).cloned();
        self.parts.borrow().get(&path).cloned().or_else(earlier)
    }

    /// What a job has read: its own inputs as they were when the run began, parts of other jobs as they were made.
    fn read(&self, job: &JobPlan) -> BTreeMap<PathBuf, Source> {
        let sources = &job.inputs.sources;
        let own = sources.iter().map(|(path, state)| (self.directory.join(path), state.clone()));
        let others = job.inputs.maps.iter().flatten().filter(|split| !sources.contains_key(&split.path));
        let others = others.filter_map(|split| {
            let state =
                self.part(&split.path).or_else(|| Source::now(&self.directory.join(&split.path)).ok())?;
            Some((self.directory.join(&split.path), state))
        });
        own.chain(others).collect()
    }
}
