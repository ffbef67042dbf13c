//! What several suites read: the documents of `testdata/instances`.

use slackline_model::Instance;
use slackline_trace::options::ImportOptions;

/// Every document by its name.
pub(crate) fn instances() -> Vec<(String, Instance)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/instances");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).unwrap();
        let options = ImportOptions::default();
        let imported = slackline_trace::read_workload(&name, &bytes, None, &options);
        let draft = imported.unwrap_or_else(|e| panic!("{e}")).draft;
        let instance = Instance::new(&draft).unwrap_or_else(|e| panic!("{name}: {e}"));
        (name, instance)
    };
    files.iter().map(read).collect()
}
