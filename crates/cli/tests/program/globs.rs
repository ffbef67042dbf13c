//! Matches of patterns, inputs that are given twice, lines at the end of files, CSV over several lines, long
//! lists.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::runs::command;
use crate::{Ran, ran, scratch};

/// A directory with files, each with its own name as its only line.
fn tree(test: &str, files: &[&str]) -> PathBuf {
    let dir = scratch(test);
    for name in files {
        write(&dir.join(name), &format!("{name}\n"));
    }
    dir
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Runs one job, whose section has these keys beside the output, in a fresh state directory.
fn job(dir: &Path, keys: &str, options: &[&str]) -> Ran {
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = 'f'\njobs = [{{ id = 'j', run = {{ {keys}, output = 'out' }} }}]\n"
    );
    write(&dir.join("flow.toml"), &flow);
    for old in ["state", "out"] {
        let _ = fs::remove_dir_all(dir.join(old));
    }
    let arguments =
        [&["run", "flow.toml", "--state", "state", "--slots", "1", "--attempts", "3"], options].concat();
    ran(&command(dir, &arguments).output().expect("the program starts"))
}

/// The parts of the output, one after the other.
fn output(dir: &Path) -> String {
    let mut parts: Vec<PathBuf> = fs::read_dir(dir.join("out")).unwrap().map(|e| e.unwrap().path()).collect();
    parts.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with("part-"));
    parts.sort();
    parts.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// The lines that a job reads from inputs, in its order; the message if it is refused in advance.
fn lines(dir: &Path, inputs: &str) -> Result<Vec<String>, String> {
    let ran = job(dir, &format!("mapper = 'cat', inputs = [{inputs}]"), &[]);
    match ran.code {
        Some(0) => Ok(output(dir).lines().map(str::to_owned).collect()),
        Some(2) => {
            assert!(!dir.join("out").exists(), "nothing has started");
            Err(ran.err)
        }
        code => panic!("{inputs}: {code:?}: {}", ran.err),
    }
}

#[track_caller]
fn reads(dir: &Path, inputs: &str, expected: &[&str]) {
    assert_eq!(lines(dir, inputs), Ok(expected.iter().map(|&name| name.to_owned()).collect()), "{inputs}");
}

#[track_caller]
fn refused(dir: &Path, inputs: &str, words: &[&str]) {
    let error = lines(dir, inputs).expect_err("it is refused");
    for word in words {
        assert!(error.contains(word), "{inputs}: {word:?} in {error}");
    }
}

#[test]
fn hidden_names_are_matched_by_their_own_first_character_alone() {
    let hidden =
        ["in/.git/b", "in/_temporary/0/part-0", "in/_temporary/b", "in/_x", "in/.x", "in/a/.b", "in/a/_c/b"];
    let dir =
        tree("globs-hidden", &[&hidden[..], &["in/a/b", "in/d/e/b", "in/d/part-1", "in/x", "up"]].concat());
    for (pattern, expected) in [
        ("in/*/b", &["in/a/b"][..]),
        ("in/**/part-*", &["in/d/part-1"]),
        ("in/**/b", &["in/a/b", "in/d/e/b"]),
        ("**/b", &["in/a/b", "in/d/e/b"]),
        ("in/?*/b", &["in/a/b"]),
        ("in/[!x]*/b", &["in/a/b"]),
        ("in/**", &["in/a/b", "in/d/e/b", "in/d/part-1", "in/x"]),
        ("in/**/*", &["in/a/b", "in/d/e/b", "in/d/part-1", "in/x"]),
        ("in/*", &["in/a/b", "in/d/e/b", "in/d/part-1", "in/x"]),
        ("in/*/", &["in/a/b", "in/d/e/b", "in/d/part-1"]),
        ("in/.*", &["in/.git/b", "in/.x"]),
        ("in/_*", &["in/_temporary/0/part-0", "in/_temporary/b", "in/_x"]),
        ("in/_temporary/*", &["in/_temporary/0/part-0", "in/_temporary/b"]),
        ("in/.git/*", &["in/.git/b"]),
        ("in/_t*/**/part-*", &["in/_temporary/0/part-0"]),
        ("in/a/_[a-c]/*", &["in/a/_c/b"]),
        ("./in/../in//a/?", &["in/a/b"]),
        ("in/d/../../u[p]", &["up"]),
    ] {
        reads(&dir, &format!("'{pattern}'"), expected);
    }
    for pattern in ["in/[._]x", "in/?x", "in/[!a]x", "in/*/[_]c/*", "**/_temporary/0/b", "in/..?"] {
        refused(&dir, &format!("'{pattern}'"), &["no file matches"]);
    }
    refused(&dir, "'in/[a'", &["not a pattern"]);
    refused(&dir, "'in/a**'", &["not a pattern"]);
}

#[test]
fn a_directory_with_the_parent_hidden_below_it_is_not_left_by_a_pattern() {
    let dir = tree("globs-parent", &["in/.keep", "secret", "other/x"]);
    reads(&dir, "'in/.*'", &["in/.keep"]);
    reads(&dir, "'in/../oth*/x'", &["other/x"]);
    symlink("..", dir.join("in/up")).unwrap();
    refused(&dir, "'in/*'", &["in/up links back to a directory that contains it"]);
    refused(&dir, "'in/**/x'", &["in/up links back to a directory that contains it"]);
    fs::remove_file(dir.join("in/up")).unwrap();
    // Two directories with links to each other.
    for (from, to) in [("one", "two"), ("two", "one")] {
        write(&dir.join("ring").join(from).join("x"), "x\n");
        symlink(format!("../{to}"), dir.join("ring").join(from).join("next")).unwrap();
    }
    refused(&dir, "'ring'", &["links back to a directory that contains it"]);
    refused(&dir, "'ring/**/x'", &["links back to a directory that contains it"]);
    reads(&dir, "'ring/*/x'", &["x", "x"]);
}

#[test]
fn a_link_to_nothing_is_refused_also_in_the_middle_of_a_pattern() {
    let dir = tree("globs-dangling", &["in/a/x"]);
    symlink("nowhere", dir.join("in/b")).unwrap();
    for pattern in ["in/*/x", "in/**/x", "in/*", "in/b", "in"] {
        let ran = job(&dir, &format!("mapper = 'cat', inputs = ['{pattern}']"), &[]);
        assert_eq!(ran.code, Some(2), "{pattern}: {}", ran.err);
    }
    symlink("a", dir.join("in/c")).unwrap();
    fs::remove_file(dir.join("in/b")).unwrap();
    reads(&dir, "'in/*/x'", &["in/a/x", "in/a/x"]);
}

#[test]
fn a_directory_that_cannot_be_read_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tree("globs-unreadable", &["in/a/x", "in/b/x"]);
    let set = |mode| fs::set_permissions(dir.join("in/b"), fs::Permissions::from_mode(mode)).unwrap();
    set(0o000);
    if fs::read_dir(dir.join("in/b")).is_ok() {
        eprintln!("skipped: this user reads every directory");
    } else {
        for pattern in ["in/*/?", "in/**/x", "in/*", "in"] {
            refused(&dir, &format!("'{pattern}'"), &["in/b", "ermission denied"]);
        }
    }
    set(0o700);
}

#[test]
fn a_name_that_is_the_pattern_itself_must_be_the_only_match() {
    let dir = tree(
        "globs-exact",
        &[
            "l/*.log",
            "l/a.log",
            "q/?",
            "q/b",
            "r/data[1].csv",
            "r/data1.csv",
            "d/part[0]/x",
            "d/part0/x",
            "e/*/x",
            "e/a/x",
        ],
    );
    for (pattern, quoted) in [
        ("l/*.log", "l/[*].log"),
        ("q/?", "q/[?]"),
        ("r/data[1].csv", "r/data[[]1[]].csv"),
        ("d/part[0]/x", "d/part[[]0[]]/x"),
        ("e/*/x", "e/[*]/x"),
        ("*/?", "*/[?]"),
    ] {
        if pattern == "*/?" {
            fs::remove_file(dir.join("q/b")).unwrap();
        }
        refused(
            &dir,
            &format!("'{pattern}'"),
            &["whose name is the pattern itself", &format!("write \"{quoted}\"")],
        );
        let ran = job(&dir, &format!("mapper = 'cat', inputs = ['{pattern}']"), &["--dry-run"]);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        if pattern != "*/?" {
            let file = pattern.to_owned();
            reads(&dir, &format!("'{quoted}'"), &[&file]);
        }
    }
    // Alone, it is read.
    let dir =
        tree("globs-exact-alone", &["l/*.log", "q/?", "r/data[1].csv", "d/part[0]/x", "p/[a", "s/[a].log"]);
    for name in ["l/*.log", "q/?", "r/data[1].csv", "d/part[0]/x", "p/[a", "s/[a].log"] {
        reads(&dir, &format!("'{name}'"), &[name]);
    }
    // It matches other files, and not itself.
    write(&dir.join("s/a.log"), "other\n");
    refused(&dir, "'s/[a].log'", &["s/a.log, which the pattern matches", "\"s/[[]a[]].log\""]);
    // A pattern that matches itself through other characters matches other files too.
    let dir = tree("globs-exact-other", &["*.log", "a.log"]);
    reads(&dir, "'*[.]log'", &["*.log", "a.log"]);
}

#[test]
fn a_pattern_reads_names_that_are_no_text_or_says_so() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tree("globs-bytes", &["in/a"]);
    fs::write(dir.join("in").join(std::ffi::OsStr::from_bytes(b"b\xff")), "x\n").unwrap();
    refused(&dir, "'in/*'", &["expected one in UTF-8"]);
    reads(&dir, "'in/a*'", &["in/a"]);
}

#[test]
fn an_input_that_is_given_twice_is_reported_once() {
    let dir = tree("globs-twice", &["in/a", "in/b", "c"]);
    symlink("in/a", dir.join("link")).unwrap();
    fs::hard_link(dir.join("in/a"), dir.join("hard")).unwrap();
    symlink("in", dir.join("way")).unwrap();
    for (inputs, expected) in [
        ("'in/a', 'in/a', 'in/a'", "job f/j reads in/a 3 times\n"),
        ("'in/a', './in/a'", "job f/j reads in/a 2 times (also as ./in/a)\n"),
        ("'link', 'in/a'", "job f/j reads link 2 times (also as in/a)\n"),
        ("'hard', 'in/a'", "job f/j reads hard 2 times (also as in/a)\n"),
        ("'in', 'in/*'", "job f/j reads in/a 2 times, and 1 other file more than once\n"),
        ("'*/a'", "job f/j reads in/a 2 times (also as way/a)\n"),
        ("'way', 'in/b'", "job f/j reads way/b 2 times (also as in/b)\n"),
    ] {
        for option in [&[][..], &["--dry-run"]] {
            let ran = job(&dir, &format!("mapper = 'cat', inputs = [{inputs}]"), option);
            assert_eq!(ran.code, Some(0), "{}", ran.err);
            let warnings: Vec<&str> = ran.err.lines().filter(|line| line.contains(" reads ")).collect();
            assert_eq!(warnings, [format!("warning: {}", expected.trim_end())], "{inputs} {option:?}");
        }
    }
    for inputs in ["'in', 'c'", "'in/**/*'", "'**/[ab]'"] {
        let ran = job(&dir, &format!("mapper = 'cat', inputs = [{inputs}]"), &[]);
        let is_twice = inputs == "'**/[ab]'";
        assert_eq!(ran.err.contains(" reads "), is_twice, "{inputs}: {}", ran.err);
    }
    // The output of another job, and flows that recur.
    let flow = "slackline = 1\n[[flows]]\nid = 'g'\nrepeat = { every = 1.0, times = 3 }\njobs = [\
        { id = 'a', run = { mapper = 'cat', inputs = ['c'], output = 'ga' } }, \
        { id = 'b', run = { command = 'cat $SLACKLINE_INPUTS', inputs = ['@a', '@a', 'c', 'c'], output = 'gb' } }]\n";
    write(&dir.join("twice.toml"), flow);
    let ran = ran(&command(&dir, &["run", "twice.toml", "--state", "twice", "--dry-run"]).output().unwrap());
    let warnings: Vec<&str> = ran.err.lines().filter(|line| line.contains(" reads ")).collect();
    let expected = "warning: job g#0/b (and 2 more) reads c 2 times, and 1 other file more than once";
    assert_eq!(warnings, [expected]);
}

#[test]
fn files_that_share_a_task_are_not_glued_at_their_ends() {
    let dir = tree("globs-ends", &[]);
    for (name, text) in [("a", "a\nb\n"), ("b", "c"), ("c", ""), ("d", "d\r\ne"), ("e", "\n"), ("f", "f")] {
        write(&dir.join("in").join(name), text);
    }
    reads(&dir, "'in'", &["a", "b", "c", "d", "e", "", "f"]);
    let ran = |keys: &str| {
        let ran = job(&dir, &format!("inputs = ['in'], {keys}"), &[]);
        assert_eq!(ran.code, Some(0), "{keys}: {}", ran.err);
        output(&dir)
    };
    assert_eq!(ran("mapper = \"tr -d '\\\\n'\""), "ab\nc\nd\re\nf\n");
    assert_eq!(
        ran("mapper = \"tr -d '\\\\n'\", reducer = \"tr -d '\\\\n'\", reducers = 1"),
        "ab\tc\td\re\tf\t\n"
    );
    assert_eq!(
        ran("mapper = 'cat', reducer = 'cut -f 1', combiner = 'printf \"%s\" \"$(cat)\"'"),
        "\na\nb\nc\nd\r\ne\nf\n"
    );
    assert_eq!(ran("program = 'sort'"), "\na\nb\nc\nd\r\ne\nf\n");
    assert_eq!(ran("program = 'grep', args = { pattern = '.' }, reducers = 0"), "a\nb\nc\nd\r\ne\nf\n");
    assert_eq!(ran("program = 'wordcount'"), "a\t1\nb\t1\nc\t1\nd\t1\ne\t1\nf\t1\n");
    // The output of a plain command is unchanged.
    assert_eq!(ran("command = 'printf x'"), "x");
}

#[test]
fn compressed_output_of_mappers_is_unchanged() {
    let dir = tree("globs-compressed", &["in/a", "in/b", "in/c"]);
    let ran = job(&dir, "mapper = 'gzip -nc', inputs = ['in']", &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let gzip = fs::read(dir.join("out/part-00000")).unwrap();
    fs::write(dir.join("parts.gz"), gzip).unwrap();
    reads(&dir, "'parts.gz'", &["in/a", "in/b", "in/c"]);
}

#[test]
fn csv_with_line_breaks_within_quotes_is_refused_with_its_line() {
    let dir = tree("globs-csv", &[]);
    let text = "id,text,n\r\n1,\"a, b\",5\r\n2,\"say \"\"x\"\"\",5\"\r\n3,\"c\nd\",4\n";
    write(&dir.join("x.csv"), text);
    write(&dir.join("good.csv"), text.split_once("\n3,").unwrap().0);
    write(&dir.join("key.csv"), "1,k\n2,k\n");
    let csv = "format = 'csv'";
    for keys in [
        format!("program = 'count', args = {{ {csv} }}"),
        format!("program = 'count', args = {{ {csv}, field = 3 }}"),
        format!("program = 'count', args = {{ {csv}, field = 'id', header = true }}"),
        format!("program = 'sort', args = {{ {csv}, field = 1, numeric = true }}"),
        format!("program = 'sort', args = {{ {csv} }}, reducers = 2"),
        format!("program = 'histogram', args = {{ {csv}, field = 1 }}"),
        "program = 'count', args = { format = 'csv', separator = ';' }".to_owned(),
    ] {
        // A separator that does not occur leaves the line as one field, which no quote begins.
        let is_read = keys.contains("';'");
        let ran = job(&dir, &format!("{keys}, inputs = ['x.csv']"), &[]);
        assert_eq!(ran.code, Some(i32::from(!is_read)), "{keys}: {}", ran.err);
        let message =
            "x.csv, line 4: found a quoted field that is not closed, expected each record on one line";
        assert!(is_read || ran.err.contains(message), "{keys}: {}", ran.err);
        assert!(is_read || !dir.join("out/_SUCCESS").exists(), "{keys}");
        assert!(!ran.err.contains("attempt 2"), "{keys}: {}", ran.err);
        let ran = job(&dir, &format!("{keys}, inputs = ['good.csv']"), &[]);
        assert_eq!(ran.code, Some(0), "{keys}: {}", ran.err);
    }
    for inputs in ["'x.csv', 'key.csv'", "'key.csv', 'x.csv'"] {
        let keys = format!("program = 'join', args = {{ {csv} }}, inputs = [{inputs}]");
        let ran = job(&dir, &keys, &[]);
        assert!(ran.code == Some(1) && ran.err.contains("x.csv, line 4"), "{}", ran.err);
    }
    write(&dir.join("head.csv"), "id,\"a\nb\"\n1,2\n");
    let ran =
        job(&dir, "program = 'count', args = { format = 'csv', header = true }, inputs = ['head.csv']", &[]);
    assert!(ran.code == Some(1) && ran.err.contains("head.csv, line 1: found a quoted field"), "{}", ran.err);
    // The error has the line of the file, even if a map begins in the middle of the file.
    let rows: Vec<String> = (0..2000).map(|row| format!("{row},x\n")).collect();
    write(&dir.join("long.csv"), &format!("{}2000,\"a\nb\"\n", rows.concat()));
    let keys = "program = 'count', args = { format = 'csv' }, inputs = ['long.csv']";
    let ran = job(&dir, keys, &["--engine", "local:split=1KiB"]);
    assert!(ran.code == Some(1) && ran.err.contains("long.csv, line 2001: "), "{}", ran.err);
    // A JSON object over several lines.
    write(&dir.join("x.json"), "{\n  \"a\": 1\n}\n");
    let ran =
        job(&dir, "program = 'count', args = { format = 'json', field = 'a' }, inputs = ['x.json']", &[]);
    assert!(ran.code == Some(1) && ran.err.contains("x.json, line 1: found a JSON document"), "{}", ran.err);
}

#[test]
fn a_long_list_of_inputs_is_in_a_file() {
    let dir = tree("globs-list", &[]);
    for k in 0..1200 {
        write(&dir.join("in").join(format!("{k:0100}")), &format!("{k}\n"));
    }
    let sum = "xargs cat | awk '{ s += $1 } END { print s, NR }'";
    let read = |list: &str| format!("command = \"\"\"{list} | {sum}\"\"\", inputs = ['in']");
    for option in [&[][..], &["--dry-run"]] {
        let ran = job(&dir, &read("echo \\\"$SLACKLINE_INPUTS\\\""), option);
        assert_eq!(ran.code, Some(2), "{}", ran.err);
        assert!(ran.err.contains("found 1200 inputs, whose list of 1"), "{}", ran.err);
        assert!(ran.err.contains("from the file \"$SLACKLINE_INPUTS_FILE\""), "{}", ran.err);
        assert!(!dir.join("out").exists());
    }
    let ran = job(&dir, &read("cat $SLACKLINE_INPUTS_FILE"), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(output(&dir), "719400 1200\n");
    // A command that reads the variable fails.
    let ran = job(&dir, "command = ': SLACKLINE_INPUTS_FILE; cat $SLACKLINE_INPUTS', inputs = ['in']", &[]);
    assert!(ran.code == Some(1) && ran.err.contains("read-SLACKLINE_INPUTS_FILE"), "{}", ran.err);
    // A short list is in both, and the file is found from everywhere.
    let both = "command = 'test \"$(cat $SLACKLINE_INPUTS_FILE)\" = \"$SLACKLINE_INPUTS\" && cat $SLACKLINE_INPUTS', inputs = ['in/*1199']";
    for more in ["", ", cwd = 'in'"] {
        let ran = job(&dir, &format!("{both}{more}"), &[]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(output(&dir), "1199\n");
    }
    write(&dir.join("odd/a\nb"), "x\n");
    let ran = job(&dir, "command = 'cat $SLACKLINE_INPUTS', inputs = ['odd']", &[]);
    assert!(ran.code == Some(2) && ran.err.contains("expected a name without newlines"), "{}", ran.err);
}

#[test]
fn commands_that_the_system_would_not_start_are_refused_in_advance() {
    let dir = tree("globs-size", &["a"]);
    let long = "x".repeat(128 << 10);
    let many: Vec<String> = (0..60).map(|k| format!("V{k} = '{}'", "x".repeat(120 << 10))).collect();
    for (keys, expected) in [
        (format!("mapper = 'cat # {long}'"), "found a command of 131078 bytes"),
        (format!("mapper = 'cat', reducer = 'cat # {long}'"), "found a command of 131078 bytes"),
        (format!("command = 'cat # {long}'"), "found a command of 131078 bytes"),
        (format!("mapper = 'cat', env = {{ LONG = '{long}' }}"), "env: found 131077 bytes in LONG"),
        (
            format!("mapper = 'cat', env = {{ {} }}", many.join(", ")),
            "found a command and an environment of 7",
        ),
    ] {
        for option in [&[][..], &["--dry-run"]] {
            let ran = job(&dir, &format!("{keys}, inputs = ['a']"), option);
            assert_eq!(ran.code, Some(2), "{expected}: {}", ran.err);
            assert!(ran.err.contains(expected), "{expected} in {}", ran.err);
        }
    }
    let ran =
        job(&dir, &format!("mapper = 'cat', env = {{ FITS = '{}' }}, inputs = ['a']", &long[20..]), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}
