//! Files that are written as a whole or not at all.

use std::path::Path;
use std::{fs, io};

use slackline_trace::atomic_file::write;

#[test]
fn a_failure_leaves_what_was_there() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("atomic-file");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join("result.json");
    write(&path, |out| out.write_all(b"first")).unwrap();
    let failed = write(&path, |out| {
        out.write_all(b"second, cut")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left beside it");
}
