//! Inputs of a run are read correctly or refused: irregular files, truncated, twice compressed or binary
//! files, and files that changed without a change of size and time.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use crate::runs::{command, parts};
use crate::{Ran, ran, scratch};

/// Runs a flow of one job in a directory.
fn run(dir: &Path, job: &str, more: &[&str]) -> Ran {
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = \"f\"\njobs = [ {{ id = \"j\", run = {{ {job}, output = \"out\" }} }} ]\n"
    );
    fs::write(dir.join("flow.toml"), flow).expect("a flow file");
    let args = [&["run", "flow.toml", "--slots", "2", "--state", "state"], more].concat();
    ran(&command(dir, &args).output().expect("the program starts"))
}

fn done(dir: &Path, job: &str, more: &[&str]) -> String {
    let ran = run(dir, job, more);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    ran.err
}

/// The run is refused with this message, and leaves no output.
fn refused(dir: &Path, job: &str, words: &str) {
    let ran = run(dir, job, &[]);
    assert!(matches!(ran.code, Some(1 | 2)), "{job}: {:?} {}{}", ran.code, ran.out, ran.err);
    assert!(ran.err.contains(words), "{job}: found no {words:?} in {}", ran.err);
    assert!(!dir.join("out/_SUCCESS").exists(), "{job}");
    // A failed run leaves `_temporary` in its output, which belongs to its state directory.
    for left in ["state", "out"] {
        let _ = fs::remove_dir_all(dir.join(left));
    }
}

fn output(dir: &Path) -> String {
    parts(&dir.join("out")).into_values().map(|part| String::from_utf8(part).expect("text")).collect()
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo starts").success());
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn set_modified(path: &Path, nanoseconds_before_1970: u64) {
    let time = UNIX_EPOCH - Duration::from_nanos(nanoseconds_before_1970);
    File::options().append(true).open(path).expect("a file").set_modified(time).expect("a time");
}

const CAT: &str = "mapper = \"cat\", inputs = [\"in\"]";
const COUNT: &str = "program = \"wordcount\", inputs = [\"in\"]";

#[test]
fn pipes_devices_and_sockets_are_refused_before_the_run_starts() {
    let dir = scratch("inputs-pipes");
    make_pipe(&dir.join("pipe"));
    fs::create_dir(dir.join("in")).expect("a directory");
    fs::write(dir.join("in/a"), "one\n").expect("an input");
    make_pipe(&dir.join("in/b"));
    let _listener = std::os::unix::net::UnixListener::bind(dir.join("socket")).expect("a socket");
    symlink("/dev/null", dir.join("link")).expect("a link");
    for (input, found) in [
        ("pipe", "a named pipe"),
        ("pip*", "a named pipe"),
        ("in", "in/b: found a named pipe"),
        ("/dev/zero", "a device"),
        ("link", "a device"),
        ("socket", "a socket"),
    ] {
        for work in ["program = \"wordcount\"", "mapper = \"cat\"", "command = \"cat $SLACKLINE_INPUTS\""] {
            let ran = run(&dir, &format!("{work}, inputs = [\"{input}\"]"), &[]);
            assert_eq!(ran.code, Some(2), "{input}: {}{}", ran.out, ran.err);
            assert!(
                ran.err.contains(found) && ran.err.contains("write its content to a file first"),
                "{}",
                ran.err
            );
        }
    }
    // A device among `files` is refused, too, and is not read without end.
    refused(&dir, "mapper = \"cat\", inputs = [\"in/a\"], files = [\"/dev/zero\"]", "/dev/zero");
}

/// The first job replaces the input of the second one, which was listed before.
#[test]
fn an_input_that_becomes_a_pipe_or_a_link_or_another_file_is_refused_when_it_is_read() {
    for (nth, (replace, found)) in [
        ("rm in; mkfifo in", "found a named pipe, expected a regular file"),
        ("rm in; ln -s /dev/zero in", "found a link, expected a regular file"),
        ("mv in other; ln -s other in", "found a link, expected a regular file"),
        ("cp -p in other; mv other in", "changed since the run began"),
        ("cp -p in old; echo two > in; touch -r old in", "changed since the run began"),
    ]
    .into_iter()
    .enumerate()
    {
        for work in [
            "program = \"wordcount\"",
            "mapper = \"cat\"",
            "command = \"cat $SLACKLINE_INPUTS\"",
            "program = \"sort\", reducers = 2",
        ] {
            let dir = scratch(&format!("inputs-replaced-{nth}"));
            fs::write(dir.join("in"), "one\n").expect("an input");
            fs::write(dir.join("first"), "x\n").expect("an input");
            let flow = format!(
                "slackline = 1\n[[flows]]\nid = \"f\"\njobs = [\n{{ id = \"a\", run = {{ mapper = \"cat; {replace}\", inputs = [\"first\"], output = \"a\" }} }},\n\
                 {{ id = \"j\", after = [\"a\"], run = {{ {work}, inputs = [\"in\"], output = \"out\" }} }} ]\n"
            );
            fs::write(dir.join("flow.toml"), flow).expect("a flow file");
            let args = ["run", "flow.toml", "--slots", "1", "--state", "state"];
            let ran = ran(&command(&dir, &args).output().expect("the program starts"));
            assert_eq!(ran.code, Some(1), "{replace}, {work}: {}{}", ran.out, ran.err);
            assert!(ran.err.contains(found), "{replace}, {work}: {}", ran.err);
            assert!(!dir.join("out/_SUCCESS").exists(), "{replace}, {work}");
        }
    }
}

/// A command replaces the log of its attempt, and succeeds or fails.
#[test]
fn a_log_that_a_command_replaces_neither_blocks_nor_fills_memory() {
    for replace in ["mkfifo", "ln -s /dev/zero"] {
        for exit in [0, 1] {
            let dir = scratch("inputs-logs");
            fs::write(dir.join("in"), "one\n").expect("an input");
            let script = format!(
                "#!/bin/sh\ncat\necho words >&2\nfor log in $(find \"$PWD/state\" -name stderr.log); do rm $log; {replace} $log; done\nexit {exit}\n"
            );
            fs::write(dir.join("replace.sh"), script).expect("a script");
            let ran = run(&dir, "mapper = \"sh replace.sh\", inputs = [\"in\"]", &["--attempts", "1"]);
            assert_eq!(ran.code, Some(exit), "{replace}: {}{}", ran.out, ran.err);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn files_whose_size_is_zero_or_wrong_are_read_to_their_end() {
    let dir = scratch("inputs-sizes");
    for input in [
        "/proc/cpuinfo",
        "/proc/filesystems",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/proc/filesyst*",
    ] {
        let path = Path::new(input.trim_end_matches('*'));
        if !input.ends_with('*') && !path.exists() {
            eprintln!("SKIPPED: no {input}");
            continue;
        }
        let source = if input.ends_with('*') { PathBuf::from("/proc/filesystems") } else { path.to_owned() };
        let expected = fs::read_to_string(source).expect("text").lines().count();
        done(&dir, &format!("mapper = \"cat\", inputs = [\"{input}\"]"), &["--again"]);
        assert_eq!(output(&dir).lines().count(), expected, "{input}");
        done(&dir, &format!("program = \"sort\", reducers = 2, inputs = [\"{input}\"]"), &["--again"]);
        assert_eq!(output(&dir).lines().count(), expected, "{input}");
    }
}

#[test]
fn truncated_twice_compressed_and_binary_inputs_are_refused_by_name() {
    let dir = scratch("inputs-formats");
    let cases: [(&str, Vec<u8>, &str); 12] = [
        ("a.bz2", b"BZh9".to_vec(), "the first bytes of bzip2 data, which was cut short"),
        ("a.xz", b"\xfd7z".to_vec(), "the first bytes of xz data, which was cut short"),
        ("a.zst", b"(".to_vec(), "the first bytes of zstd data, which was cut short"),
        ("a.lz4", b"\x04\x22".to_vec(), "the first bytes of lz4 data, which was cut short"),
        ("a.gz", gzip(b"some text\n")[..1].to_vec(), "the first bytes of gzip data, which was cut short"),
        ("b.gz", Vec::new(), "an empty file whose name says that it is compressed"),
        (
            "twice.gz",
            gzip(&gzip(b"some text\n")),
            "found gzip in it, expected plain text: it is compressed twice",
        ),
        ("cut.gz", gzip(&gzip(b"some text\n")[..1]), "it is compressed twice"),
        ("utf16", "one\ntwo\n".encode_utf16().flat_map(u16::to_le_bytes).collect(), "text in UTF-16"),
        ("pdf.gz", gzip(b"%PDF-1.7\n"), "a PDF file"),
        ("archive", b"!<arch>\ndebian-binary".to_vec(), "an ar archive"),
        ("database", b"SQLite format 3\0".to_vec(), "an SQLite database"),
    ];
    for (name, bytes, found) in cases {
        fs::write(dir.join(name), bytes).expect("an input");
        for work in ["program = \"wordcount\"", "mapper = \"cat\""] {
            let job = format!("{work}, inputs = [\"{name}\"]");
            refused(&dir, &job, name);
            refused(&dir, &job, found);
        }
    }
    // A hole in a file is not text.
    File::create(dir.join("hole")).expect("a file").set_len(1 << 20).expect("a size");
    refused(&dir, "mapper = \"cat\", inputs = [\"hole\"]", "binary data");
    // Bytes are valid input of a mapper, but not of a program.
    fs::write(dir.join("in"), b"key\0value\n\xff\n").expect("an input");
    refused(&dir, COUNT, "found binary data");
    done(&dir, CAT, &[]);
    assert_eq!(parts(&dir.join("out"))["part-00000"], b"key\0value\n\xff\n");
    // A word at the start of a file that begins like a compressed file is read as a word.
    for word in ["B\n", "BZh", "("] {
        fs::write(dir.join("in"), word).expect("an input");
        done(&dir, CAT, &[]);
        assert_eq!(output(&dir).trim_end(), word.trim_end());
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    let dir = scratch("inputs-mark");
    for bytes in [b"\xef\xbb\xbfx\nx \xef\xbb\xbfy\n".to_vec(), gzip(b"\xef\xbb\xbfx\nx \xef\xbb\xbfy\n")] {
        fs::write(dir.join("in"), bytes).expect("an input");
        for split in ["1KiB", "64MiB"] {
            done(&dir, COUNT, &["--engine", &format!("local:split={split}"), "--again"]);
            assert_eq!(output(&dir), "x\t2\n\u{feff}y\t1\n");
            done(&dir, CAT, &["--engine", &format!("local:split={split}"), "--again"]);
            assert_eq!(output(&dir), "x\nx \u{feff}y\n");
        }
    }
}

#[test]
fn an_input_that_size_and_time_do_not_tell_apart_runs_again_with_the_reason() {
    let dir = scratch("inputs-identity");
    let input = dir.join("in");
    let write = |path: &Path, text: &str, time: u64| {
        fs::write(path, text).expect("an input");
        set_modified(path, time);
    };
    write(&input, "one\n", 1_000_000_000);
    done(&dir, CAT, &[]);
    assert!(done(&dir, CAT, &[]).contains("nothing is left to do"));
    let changes: [(&str, &str, &dyn Fn()); 4] = [
        ("two", "change time", &|| write(&input, "two\n", 1_000_000_000)),
        ("six", "modification time", &|| write(&input, "six\n", 1_000_000_800)),
        ("ten", "inode", &|| {
            write(&dir.join("other"), "ten\n", 1_000_000_800);
            fs::rename(dir.join("other"), &input).expect("a rename");
        }),
        ("ten", "change time", &|| fs::hard_link(&input, dir.join("link")).expect("a link")),
    ];
    for (text, what, change) in changes {
        change();
        let said = done(&dir, CAT, &[]);
        assert!(said.contains("input in changed (") && said.contains(what), "{what}: {said}");
        assert_eq!(output(&dir), format!("{text}\n"));
    }
    // With content, only content counts.
    done(&dir, CAT, &["--engine=local:hash=on"]);
    fs::remove_file(dir.join("link")).expect("a link");
    assert!(done(&dir, CAT, &["--engine=local:hash=on"]).contains("nothing is left to do"));
}

#[test]
fn a_directory_link_that_leads_elsewhere_is_a_change() {
    let dir = scratch("inputs-swapped");
    for name in ["a", "b"] {
        fs::create_dir(dir.join(name)).expect("a directory");
        fs::write(dir.join(name).join("x"), format!("{name}\n")).expect("an input");
        set_modified(&dir.join(name).join("x"), 5);
    }
    symlink("a", dir.join("in")).expect("a link");
    done(&dir, CAT, &[]);
    fs::remove_file(dir.join("in")).expect("a link");
    symlink("b", dir.join("in")).expect("a link");
    assert!(done(&dir, CAT, &[]).contains("input in/x changed (inode"));
    assert_eq!(output(&dir), "b\n");
}
