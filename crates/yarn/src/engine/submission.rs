//! How a job becomes a request to the submitter, and how what its attempts wrote becomes its output.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use slackline_local::elsewhere::Elsewhere;
use slackline_local::{JobPlan, guest};

use super::backend::{Remote, Site};
use super::guest::Submit;
use super::jobs::{OwnJob, uri};
use super::reports::Destination;
use crate::submitter::JobRequest;

/// How jobs are submitted.
pub(super) struct Submission<'a> {
    pub(super) site: &'a Site,
    pub(super) remote: &'a Remote,
    pub(super) state: &'a Path,
    pub(super) slowstart: f64,
    /// The worker where containers find it, once it is there.
    pub(super) worker: OnceLock<String>,
}

impl Submit for Submission<'_> {
    fn request(&self, left: &Elsewhere<'_>, job: u32, own: &OwnJob) -> io::Result<JobRequest> {
        let plan = &left.jobs()[job as usize];
        self.remote.mirror.check_inputs(plan)?;
        let directory = self.absolute(&own.directory).join(&own.ticket);
        let (spec, pieces) = (directory.join(SPEC), directory.join(PIECES));
        let described = self.described(left, job)?;
        fs::write(&spec, described.0)?;
        fs::write(&pieces, described.1)?;
        if let Some(output) = self.remote.mirror.uri(&plan.output) {
            self.remote.mirror.claim(&output, left.owner())?;
        }
        let destination = match self.destination(plan, own) {
            Destination::Here(path) => uri(&self.absolute(&path)),
            Destination::There { uri, .. } => uri,
        };
        let mb = self.site.slot_mb.to_string();
        let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let properties = BTreeMap::from([
            property("yarn.app.mapreduce.am.resource.mb", &mb),
            property("mapreduce.job.reduce.slowstart.completedmaps", &self.slowstart.to_string()),
        ]);
        Ok(JobRequest {
            name: format!("{}/{}", plan.flow, plan.job),
            queue: Some(self.site.queue.clone()),
            priority: None,
            tags: Vec::new(),
            spec: self.staged(left, &spec, &own.ticket)?,
            pieces: self.staged(left, &pieces, &own.ticket)?,
            worker: self.worker(left)?,
            destination,
            maps: plan.maps(),
            reducers: plan.reducers,
            attempts: u32::from(left.attempts_of(job)),
            memory_mb: self.site.slot_mb,
            cores: 1,
            files: Vec::new(),
            properties,
        })
    }

    fn is_as_submitted(&self, left: &Elsewhere<'_>, job: u32, own: &OwnJob) -> bool {
        let directory = own.directory.join(&own.ticket);
        let was = fs::read(directory.join(SPEC));
        let was = was.and_then(|spec| Ok((spec, fs::read(directory.join(PIECES))?)));
        // What cannot be described is submitted, and fails with what is wrong.
        was.and_then(|was| Ok(was == self.described(left, job)?)).unwrap_or(false)
    }

    fn destination(&self, plan: &JobPlan, own: &OwnJob) -> Destination {
        let here = own.destination();
        match self.remote.mirror.uri(&plan.output) {
            None => Destination::Here(here),
            Some(output) => Destination::There {
                mirror: self.remote.mirror.clone(),
                uri: format!("{output}/_temporary/slackline-{}", own.ticket),
                here,
            },
        }
    }

    fn publish(
        &self,
        (plan, own): (&JobPlan, &OwnJob),
        publish: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(output) = self.remote.mirror.uri(&plan.output) else { return publish() };
        let Destination::There { uri, .. } = self.destination(plan, own) else { return publish() };
        let with_part = own.made.iter().filter(|(_, made)| made.part.is_some());
        let parts: Vec<(String, String)> = with_part
            .map(|((_, task), made)| (format!("{uri}/{}/part", made.attempt), plan.part(*task)))
            .collect();
        self.remote.mirror.publish((&output, &plan.output), &parts, publish)
    }

    fn words(&self, text: &str) -> String {
        self.remote.mirror.words(text)
    }
}

/// What the tasks of a job are told.
const SPEC: &str = "job.json";

/// What its maps read.
const PIECES: &str = "pieces";

impl Submission<'_> {
    /// What is written of a job: what its tasks are told, and what its maps read.
    fn described(&self, left: &Elsewhere<'_>, job: u32) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let spec = serde_json::to_vec(&left.describe(job, self.site.memory_bytes)?)?;
        let (plan, mut pieces) = (self.remote.mirror.there(&left.jobs()[job as usize]), Vec::new());
        guest::pieces::write(&mut pieces, &plan, left.base(), |_| Vec::new())?;
        Ok((spec, pieces))
    }

    /// A path of the state directory, for processes that work elsewhere.
    fn absolute(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            path.to_owned()
        } else {
            std::path::absolute(path).unwrap_or(self.state.join(path))
        }
    }

    /// A file of a submission where containers find it.
    fn staged(&self, left: &Elsewhere<'_>, file: &Path, ticket: &str) -> io::Result<String> {
        let Some(staging) = self.remote.mirror.staging(left.owner()) else { return Ok(uri(file)) };
        let name = file.file_name().unwrap_or_default().display();
        let there = format!("{staging}/{ticket}/{name}");
        self.remote.files.upload(&there, file)?;
        Ok(there)
    }

    /// The worker where containers find it. Applications of an earlier session may need the same.
    fn worker(&self, left: &Elsewhere<'_>) -> io::Result<String> {
        let program = &self.site.worker.program;
        let Some(staging) = self.remote.mirror.staging(left.owner()) else { return Ok(uri(program)) };
        if let Some(there) = self.worker.get() {
            return Ok(there.clone());
        }
        let meta = fs::metadata(program)?;
        let since = meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let there = format!("{staging}/worker-{}-{}", meta.len(), since.as_millis());
        if self.remote.files.stat(&there)?.is_none() {
            self.remote.files.upload(&there, program)?;
        }
        Ok(self.worker.get_or_init(|| there).clone())
    }

    /// Gives up what is there of a run that does not need it any more: outputs whose placeholders it has given up, and what
    /// was made for its containers.
    pub(super) fn close(&self, jobs: &[JobPlan], owner: &str) -> io::Result<()> {
        for plan in jobs {
            if let Some(output) = self.remote.mirror.uri(&plan.output)
                && !plan.output.join("_temporary").exists()
            {
                self.remote.mirror.release(&output, owner)?;
            }
        }
        self.remote.mirror.staging(owner).map_or(Ok(()), |staging| self.remote.files.delete(&staging))
    }
}
