//! Waits for files of other machines that a network file system shows late. NFS caches names as long as the
//! attributes of a directory, and sizes and times as long as those of a file.
//!
//! An attempt that fails because of a missing file checks for it again in a fresh listing of its directory,
//! and starts again when the file is there. If the file does not appear in time, the error of the attempt
//! stands.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::base::clock::{self, Stopwatch};
use crate::base::error::TaskError;
use crate::base::regular_file;
use crate::base::source::WatchedFile;
use crate::process::spec::{Spec, Task};
use crate::shuffle::index;
use crate::shuffle::index::MAP_OUTPUT;

/// The longest delay until a file from another machine is visible: NFS caches attributes of directories for a
/// minute.
pub const VISIBLE_WITHIN: Duration = Duration::from_secs(60);

/// The interval of checks.
const LOOK: Duration = Duration::from_millis(250);

/// Waits for a file that an attempt missed. Returns false if it missed none, or if the file does not appear.
pub(crate) fn becomes_visible(spec: &Spec, error: &TaskError) -> bool {
    becomes_visible_within(VISIBLE_WITHIN, spec, error)
}

fn becomes_visible_within(limit: Duration, spec: &Spec, error: &TaskError) -> bool {
    let (since, missed) = (Stopwatch::start(), missed(error));
    let Some(path) = missed else { return false };
    loop {
        // Its directory is checked again, and so is the parent directory.
        for directory in path.ancestors().skip(1).take(2) {
            let _ = fs::read_dir(directory).map(Iterator::count);
        }
        if is_there(spec, path) {
            return true;
        }
        if since.elapsed() > limit {
            return false;
        }
        clock::pause(LOOK);
    }
}

/// The file that was missing or not as expected: it may only have been read too early.
fn missed(error: &TaskError) -> Option<&Path> {
    match error {
        TaskError::LostMap { directory, .. } => Some(directory),
        TaskError::Changed { path, .. } => Some(path),
        TaskError::File { path, source, .. } => is_unseen(source).then_some(path),
        _ => None,
    }
}

fn is_unseen(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

/// Whether a missed file has the expected content. For map output: whether it exists and is not that of an
/// earlier attempt. The attempt itself checks whether it is complete.
fn is_there(spec: &Spec, path: &Path) -> bool {
    if let Task::Reduce { maps, partition } = &spec.task
        && let Some(number) = maps.iter().position(|map| map == path)
    {
        let file = path.join(MAP_OUTPUT);
        let is_another = |sum| index::is_another(&file, *partition, sum);
        return File::open(&file).is_ok() && !spec.map_sum(number).is_some_and(is_another);
    }
    let Ok(file) = regular_file::open(path) else { return false };
    let splits = match &spec.task {
        Task::Map { splits, .. } => splits.as_slice(),
        Task::Reduce { .. } => &[],
    };
    let sources = splits.iter().filter(|split| split.path == path).filter_map(|split| split.source.as_ref());
    let mut sources = sources.chain(spec.files.get(path));
    sources.all(|source| WatchedFile::begin(source, path, &file).is_ok_and(|watched| watched.is_some()))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::attempt::run;
    use crate::base::source::Source;
    use crate::process::spec::{Args, Job, Split};

    /// Generous: a visible file appears earlier.
    const LIMIT: Duration = Duration::from_secs(60);

    fn spec(task: Task, directory: &Path) -> Spec {
        let job = Job::Program { program: "wordcount".to_owned(), args: Args::new() };
        Spec { patient: true, ..Spec::new(job, task, directory.join("attempt"), 1 << 20) }
    }

    fn split(path: &Path, source: Option<Source>) -> Split {
        Split { path: path.to_owned(), offset: 0, length: None, input: 0, source, copy: None }
    }

    fn map(splits: Vec<Split>, partitions: u32, directory: &Path) -> Spec {
        spec(Task::Map { index: 0, maps: 1, splits, partitions, prepared: None }, directory)
    }

    #[test]
    fn a_reduce_waits_for_map_output_that_comes_later() {
        let dir = tempfile::tempdir().unwrap();
        let (input, committed) = (dir.path().join("in"), dir.path().join("maps/0"));
        fs::write(&input, "one two one\n").unwrap();
        let made = map(vec![split(&input, None)], 1, dir.path());
        run(&made).unwrap();
        let reduce = Task::Reduce { partition: 0, maps: vec![committed.clone()] };
        let reduce = Spec { directory: dir.path().join("reduce"), ..spec(reduce, dir.path()) };
        let later = thread::spawn(move || {
            clock::pause(2 * LOOK);
            fs::create_dir_all(committed.parent().unwrap()).unwrap();
            fs::rename(&made.directory, &committed).unwrap();
        });
        assert_eq!(run(&reduce).unwrap().counts.records_in, 2);
        later.join().unwrap();
        assert_eq!(fs::read_to_string(reduce.directory.join("part-00000")).unwrap(), "one\t2\ntwo\t1\n");
    }

    #[test]
    fn a_map_waits_for_a_part_to_be_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part-00000");
        fs::write(&path, "the new one\n").unwrap();
        let source = Source::of_part(&path).unwrap();
        let new = fs::read(&path).unwrap();
        // The first content is the old one.
        fs::write(&path, "an old one, which is longer\n").unwrap();
        let map = map(vec![split(&path, Some(source.clone()))], 1, dir.path());
        let later = thread::spawn(move || {
            clock::pause(2 * LOOK);
            let beside = path.with_extension("new");
            fs::write(&beside, new).unwrap();
            let modified = std::time::UNIX_EPOCH + Duration::from_micros(source.modified);
            File::options().append(true).open(&beside).unwrap().set_modified(modified).unwrap();
            fs::rename(&beside, &path).unwrap();
        });
        assert_eq!(run(&map).unwrap().counts.records_in, 1);
        later.join().unwrap();
    }

    #[test]
    fn files_that_never_appear_and_files_that_were_there_are_reported_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let map = map(vec![split(&gone, None)], 1, dir.path());
        let impatient = Spec { patient: false, ..map.clone() };
        let error = run(&impatient).unwrap_err();
        assert!(missed(&error).is_some_and(|path| path == gone), "{error}");
        assert!(!becomes_visible_within(LOOK, &map, &error));
        fs::write(&gone, "here\n").unwrap();
        assert!(becomes_visible_within(LIMIT, &map, &error));
        let other = TaskError::Job("found nothing".to_owned());
        assert!(missed(&other).is_none() && !becomes_visible_within(LIMIT, &map, &other));
    }
}
