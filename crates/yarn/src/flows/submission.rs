//! From a job to a request to the submitter, and from the files of its attempts to its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use slackline_executor::engine::external_runs::ExternalRuns;
use slackline_executor::spec::job_plan::JobPlan;
use slackline_task::base::codec::Codec;
use slackline_task::base::regular_file;
use slackline_task::container::pieces;
use slackline_task::process::spec::Job;

use crate::flows::applications::SubmitRequest;
use crate::flows::attempt_reports::Destination;
use crate::flows::cluster_config::{ClusterConfig, RunFiles};
use crate::flows::engine::{JobSubmission, Parts};
use crate::flows::hdfs_placeholders::escaped;
use crate::flows::jobs::{FlowJob, uri};
use crate::flows::program;
use crate::submitter::{Entry, JarRequest, JobRequest};

/// Submits jobs to Hadoop.
pub(super) struct HadoopSubmission {
    pub(super) config: ClusterConfig,
    pub(super) files: Arc<RunFiles>,
    pub(super) state: PathBuf,
    pub(super) slowstart: f64,
    /// The URI of the worker for containers, once uploaded.
    pub(super) worker: OnceLock<String>,
}

impl JobSubmission for HadoopSubmission {
    fn request(&self, runs: &ExternalRuns, job: u32, own: &FlowJob) -> io::Result<SubmitRequest> {
        let plan = runs.plan(job);
        self.files.placeholders.check_inputs(plan)?;
        if let Some(output) = self.files.placeholders.uri(&plan.output) {
            self.files.placeholders.claim(&output, runs.owner(job))?;
        }
        // Attempts do not make it: a late one would make it again inside a complete output.
        if let Destination::Remote { uri, .. } = self.destination(plan, own) {
            self.files.file_system.make_directory(&uri)?;
        }
        if let Job::Jar { jar, main, arguments } = &plan.work {
            return Ok(SubmitRequest::Jar(self.jar(runs, job, own, jar, main, arguments)));
        }
        let directory = self.absolute(&own.directory).join(&own.ticket);
        let (spec, pieces) = (directory.join(SPEC), directory.join(PIECES));
        let described = self.definition(runs, job)?;
        fs::write(&spec, described.0)?;
        fs::write(&pieces, described.1)?;
        Ok(SubmitRequest::Job(JobRequest {
            name: format!("{}/{}", plan.flow, plan.job),
            queue: Some(self.config.queue.clone()),
            priority: None,
            tags: Vec::new(),
            spec: self.stage(runs, job, &spec, &own.ticket)?,
            pieces: self.stage(runs, job, &pieces, &own.ticket)?,
            worker: self.worker(runs.owner(job))?,
            destination: self.directory(plan, own),
            maps: plan.maps(),
            reducers: plan.reducers,
            attempts: u32::from(runs.attempts_of(job)),
            memory_mb: self.config.slot_mb,
            cores: 1,
            files: Vec::new(),
            properties: self.properties(),
        }))
    }

    fn is_as_submitted(&self, runs: &ExternalRuns, job: u32, own: &FlowJob) -> bool {
        // A program ends with the session that started it.
        if runs.plan(job).work.is_jar() {
            return false;
        }
        let directory = own.directory.join(&own.ticket);
        let read = |name| regular_file::read(&directory.join(name), u64::MAX);
        let was = read(SPEC).and_then(|spec| Ok((spec, read(PIECES)?)));
        // A job that cannot be described is submitted, and fails with the error.
        was.and_then(|was| Ok(was == self.definition(runs, job)?)).unwrap_or(false)
    }

    fn destination(&self, plan: &JobPlan, own: &FlowJob) -> Destination {
        let here = own.destination();
        match self.files.placeholders.uri(&plan.output) {
            None => Destination::Local(here),
            Some(output) => Destination::Remote {
                placeholders: self.files.placeholders.clone(),
                uri: format!("{output}/_temporary/slackline-{}", own.ticket),
                here,
            },
        }
    }

    fn publish(
        &self,
        plan: &JobPlan,
        own: &FlowJob,
        publish: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(output) = self.files.placeholders.uri(&plan.output) else { return publish() };
        let Destination::Remote { uri, .. } = self.destination(plan, own) else { return publish() };
        let with_part = own.made.iter().filter(|(_, made)| made.part.is_some());
        let parts =
            with_part.map(|((_, task), made)| (format!("{uri}/{}/part", made.attempt), plan.part(*task)));
        let its = own.program.iter().flat_map(|program| &program.parts);
        let its = (0..).zip(its).map(|(n, name)| (format!("{uri}/{OUTPUT}/{name}"), plan.part(n)));
        let parts: Vec<(String, String)> = parts.chain(its).collect();
        self.files.placeholders.publish(&output, &plan.output, &parts, publish)
    }

    fn written_parts(
        &self,
        runs: &ExternalRuns,
        job: u32,
        own: &FlowJob,
    ) -> io::Result<Result<Parts, String>> {
        let plan = runs.plan(job);
        // Maps of the worker compare their input before and after; those of a program do not.
        self.files.placeholders.check_inputs(plan)?;
        for (path, then) in
            plan.inputs.sources.iter().filter(|(path, _)| self.files.placeholders.uri(path).is_none())
        {
            if !then.is_still(&runs.base(job).join(path))? {
                let problem = "it changed after the run began; pass --again to start over";
                return Ok(Err(format!("input {}: {problem}", path.display())));
            }
        }
        let (expected, reducers) = (plan.parts(), plan.reducers);
        let ending = plan.compress.map(Codec::ending);
        let parts = |names: Vec<String>| program::part_files(names, expected, reducers, ending);
        match self.destination(plan, own) {
            Destination::Local(path) => {
                let output = path.join(OUTPUT);
                let names = match parts(names(&output)?) {
                    Ok(names) => names,
                    wrong => return Ok(wrong.map(|_| Parts::new())),
                };
                let found: Parts = names.into_iter().map(|name| (name.clone(), output.join(name))).collect();
                // The journal will record the part, which has to survive a power cut.
                found.iter().try_for_each(|(_, part)| regular_file::open(part)?.sync_all())?;
                Ok(Ok(found))
            }
            Destination::Remote { placeholders, uri, here } => {
                let entries = placeholders.list(&escaped(&format!("{uri}/{OUTPUT}/")))?;
                let named = |entry: Entry| {
                    let name = entry.path.rsplit('/').next().unwrap_or_default();
                    (with_mark(name, entry.directory), entry)
                };
                let mut entries: BTreeMap<String, Entry> = entries.into_iter().map(named).collect();
                let names = match parts(entries.keys().cloned().collect()) {
                    Ok(names) => names,
                    wrong => return Ok(wrong.map(|_| Parts::new())),
                };
                let mut found = Parts::new();
                for name in names {
                    let part = here.join(&name);
                    if let Some(entry) = entries.remove(&name) {
                        placeholders.make_placeholder(&part, &entry)?;
                    }
                    found.push((name, part));
                }
                Ok(Ok(found))
            }
        }
    }

    fn user_text(&self, text: &str) -> String {
        self.files.placeholders.user_text(text)
    }

    fn close(&self, jobs: &[JobPlan], owner: &str) -> Option<String> {
        let error = self.remove_files(jobs, owner).err()?;
        Some(format!("temporary files of the run stay on the cluster, which is harmless: {error}"))
    }
}

/// The file with the definition of the tasks.
const SPEC: &str = "job.json";

/// The file with the splits of the maps.
const PIECES: &str = "pieces";

/// The directory of a submission for the output of a program.
const OUTPUT: &str = "output";

/// The names in a directory; none if it is missing.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let name = |entry: fs::DirEntry| {
        let name = entry.file_name();
        entry.file_type().map(|kind| with_mark(&name.to_string_lossy(), kind.is_dir()))
    };
    entries.map(|entry| entry.and_then(name)).collect()
}

/// A name, marked if it is that of a directory.
fn with_mark(name: &str, is_directory: bool) -> String {
    format!("{name}{}", if is_directory { "/" } else { "" })
}

impl HadoopSubmission {
    /// The definition of the tasks, and the splits of the maps.
    fn definition(&self, runs: &ExternalRuns, job: u32) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let spec = serde_json::to_vec(&runs.describe(job, self.config.memory_bytes)?)?;
        let (plan, mut pieces) = (self.files.placeholders.with_uris(runs.plan(job)), Vec::new());
        pieces::write(&mut pieces, &plan.inputs.maps, runs.base(job), |_| Vec::new())?;
        Ok((spec, pieces))
    }

    /// The request for the program of a jar.
    fn jar(
        &self,
        runs: &ExternalRuns,
        job: u32,
        own: &FlowJob,
        jar: &str,
        main: &str,
        arguments: &[String],
    ) -> JarRequest {
        let plan = runs.plan(job);
        let inputs = program::inputs(plan, runs.plans_beside(job), |path| {
            self.files.placeholders.uri(path).unwrap_or_else(|| uri(&runs.base(job).join(path)))
        });
        let output = format!("{}/{OUTPUT}", self.directory(plan, own));
        let filled = |argument: &String| program::fill_argument(argument, &inputs.join(","), &output);
        let mb = self.config.slot_mb.to_string();
        // Parts of other jobs are read whole, as planned.
        let is_uncut = plan.named.iter().any(|input| input.starts_with('@'));
        let least = if is_uncut { i64::MAX as u64 } else { self.config.split_bytes };
        let mut properties = self.properties();
        properties.extend(
            [
                ("mapreduce.map.memory.mb", mb.clone()),
                ("mapreduce.reduce.memory.mb", mb),
                ("mapreduce.map.maxattempts", runs.attempts_of(job).to_string()),
                ("mapreduce.reduce.maxattempts", runs.attempts_of(job).to_string()),
                ("mapreduce.map.speculative", "false".to_owned()),
                ("mapreduce.reduce.speculative", "false".to_owned()),
                ("mapreduce.job.ubertask.enable", "false".to_owned()),
                ("mapreduce.job.reduces", plan.reducers.to_string()),
                ("mapreduce.input.fileinputformat.input.dir.recursive", "true".to_owned()),
                ("mapreduce.input.fileinputformat.split.minsize", least.to_string()),
                ("mapreduce.input.fileinputformat.split.maxsize", least.to_string()),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        JarRequest {
            jar: self.absolute(&runs.base(job).join(jar)).display().to_string(),
            main: main.to_owned(),
            arguments: arguments.iter().map(filled).collect(),
            queue: Some(self.config.queue.clone()),
            priority: None,
            tags: Vec::new(),
            properties,
        }
    }

    /// The properties of every job.
    fn properties(&self) -> BTreeMap<String, String> {
        let property = |name: &str, value: String| (name.to_owned(), value);
        BTreeMap::from([
            property("yarn.app.mapreduce.am.resource.mb", self.config.slot_mb.to_string()),
            property("mapreduce.job.reduce.slowstart.completedmaps", self.slowstart.to_string()),
        ])
    }

    /// The directory of a submission, as a URI.
    fn directory(&self, plan: &JobPlan, own: &FlowJob) -> String {
        match self.destination(plan, own) {
            Destination::Local(path) => uri(&self.absolute(&path)),
            Destination::Remote { uri, .. } => uri,
        }
    }

    /// A path of the state directory, for processes with another working directory.
    fn absolute(&self, path: &Path) -> PathBuf {
        if path.is_absolute() {
            path.to_owned()
        } else {
            std::path::absolute(path).unwrap_or(self.state.join(path))
        }
    }

    /// A file of a submission, where containers can read it.
    fn stage(&self, runs: &ExternalRuns, job: u32, file: &Path, ticket: &str) -> io::Result<String> {
        let Some(staging) = self.files.placeholders.staging(runs.owner(job)) else { return Ok(uri(file)) };
        let name = file.file_name().unwrap_or_default().display();
        let there = format!("{staging}/{ticket}/{name}");
        self.files.file_system.upload(&there, file)?;
        Ok(there)
    }

    /// The worker, where containers can read it. Applications of an earlier session may need the same file.
    fn worker(&self, owner: &str) -> io::Result<String> {
        let program = &self.config.worker.program;
        let Some(staging) = self.files.placeholders.staging(owner) else { return Ok(uri(program)) };
        if let Some(there) = self.worker.get() {
            return Ok(there.clone());
        }
        let meta = fs::metadata(program)?;
        let since = meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let there = format!("{staging}/worker-{}-{}", meta.len(), since.as_millis());
        if self.files.file_system.stat(&there)?.is_none() {
            self.files.file_system.upload(&there, program)?;
        }
        Ok(self.worker.get_or_init(|| there).clone())
    }

    /// Removes the files of a run that it no longer needs: locks of outputs whose placeholders are unlocked,
    /// and files for containers.
    fn remove_files(&self, jobs: &[JobPlan], owner: &str) -> io::Result<()> {
        for plan in jobs {
            if let Some(output) = self.files.placeholders.uri(&plan.output)
                && !plan.output.join("_temporary").exists()
            {
                self.files.placeholders.release(&output, owner)?;
            }
        }
        self.files
            .placeholders
            .staging(owner)
            .map_or(Ok(()), |staging| self.files.file_system.delete(&staging))
    }
}
