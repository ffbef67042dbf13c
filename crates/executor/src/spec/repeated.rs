//! Files that a job reads more than once, such as `in/a` for the inputs `in/a` and `in/*`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::spec::job_plan::JobPlan;

/// The identity of a file under all of its names: device and inode, or the path if the file does not exist
/// yet.
type Identity = Result<(u64, u64), PathBuf>;

/// A warning for each set of files that a job reads more than once. Jobs with the same files have one
/// warning. O(files).
pub(crate) fn warnings(jobs: &[JobPlan]) -> Vec<String> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for plan in jobs {
        let (Some(repeated), name) = (repeated(plan), format!("{}/{}", plan.flow, plan.job)) else {
            continue;
        };
        match found.iter_mut().find(|(other, _)| *other == repeated) {
            Some((_, names)) => names.push(name),
            None => found.push((repeated, vec![name])),
        }
    }
    let warning = |(repeated, names): (String, Vec<String>)| match names.as_slice() {
        [name] => format!("job {name} reads {repeated}"),
        [first, others @ ..] => format!("job {first} (and {} more) reads {repeated}", others.len()),
        [] => repeated,
    };
    found.into_iter().map(warning).collect()
}

/// The first file that a job reads more than once, the number of times, and the number of other such files.
fn repeated(plan: &JobPlan) -> Option<String> {
    // Different jobs write different files, which need not be compared: with all of an earlier layer, that is
    // most inputs of a large flow.
    let mut distinct = BTreeSet::new();
    let is_read_once = plan.upstream_names().all(|name| distinct.insert(name));
    let mut names: BTreeMap<Identity, Vec<&Path>> = BTreeMap::new();
    // Only one split of a file has offset 0.
    for split in plan.inputs.maps.iter().flatten().filter(|split| split.offset == 0) {
        if !(is_read_once && plan.upstream_name(split).is_some()) {
            names.entry(identity(&split.path)).or_default().push(&split.path);
        }
    }
    let mut repeated: Vec<Vec<&Path>> = names.into_values().filter(|names| names.len() > 1).collect();
    repeated.sort();
    let (first, others) = repeated.split_first()?;
    let other_name = first.iter().find(|name| **name != first[0]);
    let also = other_name.map_or_else(String::new, |name| format!(" (also as {})", name.display()));
    let more = match others.len() {
        0 => String::new(),
        1 => ", and 1 other file more than once".to_owned(),
        count => format!(", and {count} other files more than once"),
    };
    Some(format!("{} {} times{also}{more}", first[0].display(), first.len()))
}

fn identity(path: &Path) -> Identity {
    fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).map_err(|_| path.to_owned())
}
