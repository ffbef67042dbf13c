//! Placeholders of a file system that is a local directory.

use std::sync::atomic::{AtomicUsize, Ordering};

use slackline_executor::spec::job_cost::JobHistory;
use slackline_executor::spec::resolve::{InputRules, ResolvedWorkload, resolve};
use slackline_model::draft::{FlowDraft, JobDraft, RunDraft, RunWork};
use tempfile::TempDir;

use crate::flows::hdfs_placeholders::*;
use crate::flows::remote_files::{Unavailable, may_pass};

pub(in crate::flows) const SYSTEM: &str = "hdfs://name:9000";

/// A directory that is `hdfs://name:9000`.
pub(in crate::flows) struct Disk {
    root: PathBuf,
    /// How often a file was read.
    reads: AtomicUsize,
    lists: Mutex<Vec<String>>,
    /// How often nothing is answered when something is listed, and when something was renamed.
    away: [AtomicUsize; 2],
}

impl Disk {
    pub(in crate::flows) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            reads: AtomicUsize::new(0),
            lists: Mutex::default(),
            away: Default::default(),
        }
    }

    /// What was listed since the last call.
    pub(in crate::flows) fn lists(&self) -> Vec<String> {
        std::mem::take(&mut self.lists.lock().unwrap())
    }

    fn path(&self, uri: &str) -> PathBuf {
        let path = uri.strip_prefix(SYSTEM).unwrap_or_else(|| panic!("{uri} is of no such system"));
        self.root.join(path.trim_start_matches('/'))
    }

    fn answers(&self, what: usize) -> io::Result<()> {
        let left =
            self.away[what].fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_ok() { Err(io::Error::other(Unavailable("away".to_owned()))) } else { Ok(()) }
    }

    fn entry(&self, path: &Path) -> Entry {
        let meta = fs::metadata(path).unwrap();
        let modified = meta.modified().unwrap().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let below = path.strip_prefix(&self.root).unwrap().display();
        Entry {
            path: format!("{SYSTEM}/{below}"),
            length: if meta.is_dir() { 0 } else { meta.len() },
            modified: u64::try_from(modified).unwrap(),
            directory: meta.is_dir(),
        }
    }

    /// As a user of the file system does.
    pub(in crate::flows) fn put(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.root.join(directory))
            .map(|entries| entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect())
            .unwrap_or_default();
        names.sort();
        names
    }
}

impl FileSystem for Disk {
    fn stat(&self, path: &str) -> io::Result<Option<Entry>> {
        let path = self.path(path);
        Ok(path.exists().then(|| self.entry(&path)))
    }

    fn list(&self, pattern: &str) -> io::Result<Vec<Entry>> {
        self.lists.lock().unwrap().push(pattern.to_owned());
        self.answers(0)?;
        let (directory, name) = pattern.rsplit_once('/').unwrap();
        let is_pattern = name.contains('*') || name.contains('[') && !name.contains('\\');
        let directory = self.path(&if is_pattern { directory } else { pattern }.replace('\\', ""));
        let prefix = if is_pattern { name.split(['*', '[']).next().unwrap() } else { "" };
        let mut entries: Vec<Entry> =
            fs::read_dir(directory)?.map(|entry| self.entry(&entry.unwrap().path())).collect();
        entries.retain(|entry| super::name(&entry.path).starts_with(prefix));
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn read(&self, path: &str, length: u64) -> io::Result<Vec<u8>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let mut bytes = fs::read(self.path(path))?;
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    fn make_directory(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(self.path(path))
    }

    fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap())?;
        fs::write(path, bytes)
    }

    fn upload(&self, path: &str, local: &Path) -> io::Result<()> {
        self.write(path, &fs::read(local)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if self.path(to).exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        fs::rename(self.path(from), self.path(to))?;
        self.answers(1)
    }

    fn delete(&self, path: &str) -> io::Result<()> {
        slackline_executor::engine::external_runs::clear(&self.path(path))
    }
}

struct Trial {
    directory: TempDir,
    disk: Arc<Disk>,
}

impl Trial {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk::new(&directory.path().join("disk")));
        Self { directory, disk }
    }

    fn mirror(&self) -> Placeholders {
        let directory = self.directory.path().join("state/remote");
        Placeholders::new(directory, self.disk.clone(), &format!("{SYSTEM}/"), "ann")
    }

    /// A flow of one job, resolved on a mirror that is made of it.
    fn resolved(&self, mirror: &Placeholders, inputs: &[&str]) -> ResolvedWorkload {
        let mut draft = draft(inputs, "out");
        mirror.make(&mut draft).unwrap();
        let rules = InputRules {
            split_bytes: 1 << 20,
            hash: false,
            directory: self.directory.path(),
            outputs: Path::new("state/outputs"),
        };
        resolve(&draft, rules, &JobHistory::default()).unwrap()
    }

    /// The originals that the job reads.
    fn read_there(&self, inputs: &[&str]) -> Vec<String> {
        let mirror = self.mirror();
        let there = mirror.with_uris(&self.resolved(&mirror, inputs).jobs[0]);
        let splits = there.inputs.maps.iter().flatten();
        splits.map(|split| split.path.display().to_string()).collect()
    }
}

fn draft(inputs: &[&str], output: &str) -> Draft {
    let mut run = RunDraft::new(RunWork::Program { name: "wordcount".into(), args: Vec::new() }, output);
    run.inputs = inputs.iter().map(|&input| input.to_owned()).collect();
    let job = JobDraft { id: "job".into(), run: Some(run), ..JobDraft::default() };
    Draft { flows: vec![FlowDraft::new("flow", vec![job])], ..Draft::default() }
}

#[test]
fn names_of_files_are_those_of_the_default_file_system_unless_they_say_otherwise() {
    let trial = Trial::new();
    let mirror = trial.mirror();
    let whole = |name: &str| mirror.full_uri(name).unwrap().unwrap_or_else(|| local(name).into_owned());
    let names = [
        "in",
        "/data/./x/../y",
        "hdfs:///a b",
        "hdfs://other/a",
        "s3a://bucket/a",
        "file:///a",
        "file:/a",
        "a:b",
    ];
    assert_eq!(
        names.map(whole),
        [
            "hdfs://name:9000/user/ann/in",
            "hdfs://name:9000/data/y",
            "hdfs://name:9000/a b",
            "hdfs://other/a",
            "s3a://bucket/a",
            "/a",
            "/a",
            "hdfs://name:9000/user/ann/a:b"
        ]
    );
    let error = |name: &str| mirror.full_uri(name).unwrap_err().to_string();
    assert_eq!(error("s3a:///a"), "found s3a:///a, expected s3a://HOST/PATH");
    assert_eq!(error("hdfs://name"), "found hdfs://name, expected a path");
    let here = Placeholders::new("/state/remote".into(), trial.disk.clone(), "file:///", "ann");
    assert_eq!((here.full_uri("in").unwrap(), here.staging("1")), (None, None));
    assert_eq!(here.full_uri("hdfs://name:9000/in").unwrap().unwrap(), "hdfs://name:9000/in");
}

#[test]
fn placeholders_have_the_length_the_time_and_the_first_bytes_of_files() {
    let trial = Trial::new();
    let text = "line\n".repeat(1000);
    trial.disk.put("user/ann/in/a", &text);
    let resolved = trial.resolved(&trial.mirror(), &["in/a"]);
    let (here, source) = resolved.jobs[0].inputs.sources.first_key_value().unwrap();
    let there = trial.disk.entry(&trial.disk.root.join("user/ann/in/a"));
    assert_eq!((source.bytes, source.modified), (5000, there.modified * 1000));
    assert_eq!(fs::read(here).unwrap()[..512], text.as_bytes()[..512]);
}

#[test]
fn pieces_say_what_their_files_were_when_the_run_found_them() {
    let trial = Trial::new();
    trial.disk.put("in", "text\n");
    let entry = trial.disk.entry(&trial.disk.root.join("in"));
    let mirror = trial.mirror();
    let resolved = trial.resolved(&mirror, &["/in"]);
    trial.disk.put("in", "other text\n");
    let mut pieces = Vec::new();
    let there = mirror.with_uris(&resolved.jobs[0]);
    slackline_task::container::pieces::write(&mut pieces, &there.inputs.maps, Path::new("/"), |_| Vec::new())
        .unwrap();
    let expected = format!(
        "\t[{{\"path\":\"{SYSTEM}/in\",\"offset\":0,\"length\":5,\"input\":0,\"source\":{{\"bytes\":5,\"modified\":{}}}}}]\n",
        entry.modified * 1000
    );
    assert_eq!(String::from_utf8(pieces).unwrap(), expected);
}

#[test]
fn inputs_are_files_directories_and_patterns_as_they_are_there() {
    let trial = Trial::new();
    for path in ["in/a", "in/deep/b", "in/_hidden", "in/.crc", "in/odd[1]", "data/x-1", "data/x-2", "data/y"]
    {
        trial.disk.put(path, "text\n");
    }
    let all = ["hdfs://name:9000/in/a", "hdfs://name:9000/in/deep/b", "hdfs://name:9000/in/odd[1]"];
    assert_eq!(trial.read_there(&["/in"]), all);
    assert_eq!(trial.read_there(&["/data/x-*"]), ["hdfs://name:9000/data/x-1", "hdfs://name:9000/data/x-2"]);
    assert_eq!(trial.read_there(&["/in/odd[1]"]), ["hdfs://name:9000/in/odd[1]"]);
    // What is gone there is gone here, and what was not changed is not read again.
    let reads = trial.disk.reads.load(Ordering::SeqCst);
    assert_eq!(trial.read_there(&["/in/odd[1]"]).len(), 1);
    assert_eq!(trial.disk.reads.load(Ordering::SeqCst), reads);
    fs::remove_file(trial.disk.root.join("data/x-1")).unwrap();
    assert_eq!(trial.read_there(&["/data/x-*"]), ["hdfs://name:9000/data/x-2"]);
    let error = trial.mirror().make(&mut draft(&["/data/**"], "out")).unwrap_err();
    assert_eq!(error[0].path, "flows[0].jobs[0].run.inputs");
    assert!(error[0].problem.contains("expected one without **"), "{}", error[0].problem);
    assert!(!error[0].may_pass);
    // What does not answer now may the next time.
    trial.disk.away[0].store(1, Ordering::SeqCst);
    let error = trial.mirror().make(&mut draft(&["/data/x-*"], "out")).unwrap_err();
    assert!(error.iter().all(|fault| fault.may_pass), "{error:?}");
    trial.mirror().make(&mut draft(&["/data/x-*"], "out")).unwrap();
}

#[test]
fn two_processes_never_use_one_mirror() {
    let trial = Trial::new();
    let (one, other) = (trial.mirror(), trial.mirror());
    one.make(&mut draft(&[], "out")).unwrap();
    one.make(&mut draft(&[], "out")).unwrap();
    let error = other.make(&mut draft(&[], "out")).unwrap_err();
    assert!(error[0].problem.contains("another process uses it"), "{}", error[0].problem);
    // Local files need none.
    other.make(&mut draft(&["file:///in"], "file:///out")).unwrap();
}

#[test]
fn messages_name_the_files_themselves() {
    let trial = Trial::new();
    let mirror = trial.mirror();
    let here = mirror.place("hdfs://name:9000/out/a");
    let text = format!("output {}: found {}, expected none", here.display(), here.display());
    let expected = "output hdfs://name:9000/out/a: found hdfs://name:9000/out/a, expected none";
    assert_eq!(mirror.user_text(&text), expected);
    assert_eq!(mirror.user_text("nothing of ours"), "nothing of ours");
}

#[test]
fn an_output_has_one_owner() {
    let trial = Trial::new();
    let (mirror, output) = (trial.mirror(), format!("{SYSTEM}/out"));
    mirror.claim(&output, "me").unwrap();
    mirror.claim(&output, "me").unwrap();
    let error = mirror.claim(&output, "you").unwrap_err();
    assert!(error.to_string().starts_with("output hdfs://name:9000/out: another run"), "{error}");
    // The lock is mirrored, so a run finds it before anything is submitted.
    let mut draft = draft(&[], "/out");
    mirror.make(&mut draft).unwrap();
    let here = PathBuf::from(draft.flows[0].jobs[0].run.as_ref().unwrap().output.as_ref().unwrap());
    assert_eq!(fs::read_to_string(here.join("_temporary/owner")).unwrap(), "me");
    mirror.release(&output, "you").unwrap();
    assert_eq!(trial.disk.names("out"), ["_temporary"]);
    mirror.release(&output, "me").unwrap();
    assert_eq!(trial.disk.names("out"), [""; 0]);
}

#[test]
fn parts_replace_those_that_the_mirror_has_and_no_others() {
    let trial = Trial::new();
    for path in ["out/part-00000", "out/part-00001", "out/_SUCCESS"] {
        trial.disk.put(path, "old");
    }
    let (mirror, output) = (trial.mirror(), format!("{SYSTEM}/out"));
    mirror.make(&mut draft(&[], "/out")).unwrap();
    mirror.claim(&output, "me").unwrap();
    trial.disk.put("out/_temporary/slackline-1/attempt/part", "newer");
    let parts = [(format!("{output}/_temporary/slackline-1/attempt/part"), "part-00000".to_owned())];
    let here = mirror.place(&output);
    let mut during = Vec::new();
    let publish = &mut || {
        during = trial.disk.names("out");
        Ok(())
    };
    mirror.publish(&output, &here, &parts, publish).unwrap();
    assert_eq!(during, ["_temporary"], "no mark and no parts of two outputs while they are changed");
    assert_eq!(trial.disk.names("out"), ["_SUCCESS", "part-00000"]);
    assert_eq!(fs::read_to_string(trial.disk.root.join("out/part-00000")).unwrap(), "newer");

    let error = mirror.publish(&output, &here, &[], &mut || panic!("it was published")).unwrap_err();
    assert!(error.to_string().starts_with("found part-00000, which no run"), "{error}");
    assert_eq!(trial.disk.names("out"), ["_SUCCESS", "part-00000"]);
}

#[test]
fn a_publication_is_retried_as_a_whole_or_resumed() {
    let trial = Trial::new();
    let (mirror, output) = (trial.mirror(), format!("{SYSTEM}/out"));
    mirror.make(&mut draft(&[], "/out")).unwrap();
    let here = mirror.place(&output);
    trial.disk.away[1].store(1, Ordering::SeqCst);
    mirror.claim(&output, "me").unwrap();
    trial.disk.put("out/_temporary/slackline-1/attempt/part", "text");
    let parts = [(format!("{output}/_temporary/slackline-1/attempt/part"), "part-00000".to_owned())];
    // Before anything was changed it is for who publishes to try again.
    trial.disk.away[0].store(1, Ordering::SeqCst);
    let error = mirror.publish(&output, &here, &parts, &mut || panic!("it was published")).unwrap_err();
    assert!(may_pass(&error));
    trial.disk.away[1].store(1, Ordering::SeqCst);
    mirror.publish(&output, &here, &parts, &mut || Ok(())).unwrap();
    assert_eq!(trial.disk.names("out"), ["_SUCCESS", "part-00000"]);
}

#[test]
fn a_job_is_not_submitted_whose_input_was_changed() {
    let trial = Trial::new();
    trial.disk.put("in", "text\n");
    let mirror = trial.mirror();
    let resolved = trial.resolved(&mirror, &["/in"]);
    mirror.check_inputs(&resolved.jobs[0]).unwrap();
    trial.disk.put("in", "other text\n");
    let error = mirror.check_inputs(&resolved.jobs[0]).unwrap_err().to_string();
    assert_eq!(
        error,
        "input hdfs://name:9000/in: it changed after the run found or made it; pass --again to start over"
    );
}
