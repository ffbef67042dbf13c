//! Sections that are read and written back, and refused ones.

use slackline_model::Instance;
use slackline_model::draft::{FailurePolicy, RunDraft, RunLimits, RunSetting, RunShuffle, RunWork};

use crate::{Format, ImportOptions, read_workload, write_workload};

fn document(run: &str) -> String {
    format!(
        "slackline = 1\n[cluster]\nmachines = [{{ name = 'n', slots = 2 }}]\n[[flows]]\nid = 'f'\njobs = [\n\
         {{ id = 'a', run = {{ program = 'wordcount', inputs = ['in/*.txt'], output = 'out/a', args = {{ n = 3 }} }} }},\n\
         {{ id = 'b', run = {{ {run} }} }},\n]\n"
    )
}

fn error(run: &str) -> String {
    let text = document(run);
    let read = read_workload("flow.toml", text.as_bytes(), None, &ImportOptions::default());
    read.unwrap_err().to_string()
}

#[test]
fn inputs_from_jobs_make_edges_and_sections_survive() {
    let text = document("mapper = 'cat', reducer = 'uniq -c', inputs = ['@a', 'x'], output = 'out/b'");
    let read = |text: &str| {
        read_workload("flow.toml", text.as_bytes(), None, &ImportOptions::default()).unwrap().draft
    };
    let draft = read(&text);
    assert_eq!(draft.flows[0].jobs[1].after, ["a"]);
    assert_eq!(read(&write_workload(&draft, Format::Toml)), draft);
    let invalid = Instance::new(&draft).unwrap_err().to_string();
    assert!(invalid.contains("only `slackline run` derives the phases"), "{invalid}");
}

#[test]
fn contradictions_are_reported() {
    assert!(error("inputs = ['x'], output = 'y'").contains("expected one of program"));
    assert!(error("program = 'sort', mapper = 'cat', output = 'y'").contains("expected one of program"));
    assert!(error("program = 'sort', output = ' '").contains("expected a directory"));
    assert!(error("mapper = 'cat', inputs = [''], output = 'y'").contains("expected a file"));
    assert!(error("mapper = 'cat', combiner = 'cat', output = 'y'").contains("combiner without a reducer"));
    assert!(error("mapper = 'cat', reducers = 2, output = 'y'").contains("without a reducer command"));
    assert!(error("mapper = 'cat', args = { a = 1 }, output = 'y'").contains("in the command itself"));
    assert!(error("programm = 'sort', output = 'y'").contains("expected one of `program`"));
}

/// The section of job `b`, read and read again after it was written in every form.
fn read(run: &str) -> RunDraft {
    let read = |name: &str, text: &str| {
        read_workload(name, text.as_bytes(), None, &ImportOptions::default()).unwrap().draft
    };
    let draft = read("flow.toml", &document(run));
    for format in [Format::Toml, Format::Json, Format::Yaml] {
        let name = format!("flow.{}", format.name());
        assert_eq!(read(&name, &write_workload(&draft, format)), draft, "{name}");
    }
    draft.flows[0].jobs[1].run.clone().unwrap()
}

#[test]
fn a_job_says_its_environment_limits_shuffle_and_compression() {
    let run = read(
        "mapper = 'cat', reducer = 'uniq', inputs = ['x'], output = 'y', reducers = 3, \
         env = { LANG = 'C', N = 3, EMPTY = '' }, cwd = 'work', shell = 'bash -o pipefail', files = ['a.py'], \
         memory = '512MiB', processors = 2, timeout = '10m', attempts = 5, retry_delay = 1.5, retry_backoff = 2, failure_policy = 'finish', no_retry = [2, 255], \
         key_fields = 2, separator = ',', partition_fields = 1, order = ['1', '2nr'], \
         compress_shuffle = 'lz4', compress = 'zstd'",
    );
    let env = [("EMPTY", ""), ("LANG", "C"), ("N", "3")];
    let expected = RunDraft {
        inputs: vec!["x".into()],
        reducers: Some(3),
        setting: RunSetting {
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            cwd: Some("work".into()),
            shell: Some("bash -o pipefail".into()),
            files: vec!["a.py".into()],
        },
        limits: RunLimits {
            memory: Some(512 << 20),
            processors: Some(2),
            timeout: Some(600.0),
            attempts: Some(5),
            retry_delay: Some(1.5),
            retry_backoff: Some(2.0),
            no_retry: vec![2, 255],
            failure_policy: Some(FailurePolicy::Finish),
        },
        shuffle: RunShuffle {
            key_fields: Some(2),
            separator: Some(",".into()),
            partition_fields: Some(1),
            order: vec!["1".into(), "2nr".into()],
            total_order: false,
            compress: Some("lz4".into()),
        },
        compress: Some("zstd".into()),
        ..RunDraft::new(
            RunWork::Commands { mapper: "cat".into(), reducer: Some("uniq".into()), combiner: None },
            "y",
        )
    };
    assert_eq!(run, expected);
    let total = read("mapper = 'cat', reducer = 'cat', inputs = ['x'], output = 'y', total_order = true");
    assert!(total.shuffle.total_order);
    let program = read("program = 'sort', output = 'y', memory = 4096, compress = 'gzip'");
    assert_eq!((program.limits.memory, program.compress.as_deref()), (Some(4096), Some("gzip")));
}

#[test]
fn a_plain_command_is_a_job() {
    let run = read("command = 'make all', inputs = ['@a'], output = 'y', timeout = '1h'");
    assert_eq!(run.work, RunWork::Command { command: "make all".into() });
    assert_eq!(run.limits.timeout, Some(3600.0));
}

#[test]
fn a_jar_is_a_job_of_a_cluster() {
    let run = read(
        "jar = 'lib/etl.jar', main = 'org.example.Etl', arguments = ['{inputs}', '', '-Dx=1'], inputs = ['@a'], \
         output = 'y', reducers = 2, files = ['etl.xml'], attempts = 2, compress = 'gzip'",
    );
    let arguments = ["{inputs}", "", "-Dx=1"].map(str::to_owned).into();
    let work = RunWork::Jar { jar: "lib/etl.jar".into(), main: "org.example.Etl".into(), arguments };
    assert_eq!((run.work, run.reducers, run.limits.attempts), (work, Some(2), Some(2)));
    assert_eq!((run.setting.files, run.compress.as_deref()), (vec!["etl.xml".to_owned()], Some("gzip")));
}

#[test]
fn keys_that_say_nothing_beside_the_others_are_refused() {
    for (run, expected) in [
        ("command = 'a', mapper = 'b'", ".run: found mapper and command, expected one of program"),
        ("program = 'sort', command = 'a'", "found program and command"),
        ("reducer = 'cat'", ".run.reducer: found a reducer without a mapper"),
        ("command = 'a', reducers = 2", "found `reducers` with a plain command"),
        ("command = 'a', args = { n = 1 }", "found arguments with a plain command"),
        ("command = 'a', reducer = 'b'", "found `reducer` with a plain command"),
        ("program = 'sort', reducer = 'b'", "found `reducer` with a program"),
        ("program = 'sort', key_fields = 2", ".run.key_fields: found `key_fields` with a program"),
        ("program = 'sort', env = { A = 1 }", "found `env` with a program"),
        ("program = 'sort', shell = 'bash'", "found `shell` with a program"),
        ("program = 'sort', files = ['a']", "found `files` with a program"),
        ("program = 'sort', no_retry = [1]", "found `no_retry` with a program"),
        ("mapper = 'cat', order = ['1']", "found `order` with a mapper without a reducer command"),
        ("mapper = 'cat', total_order = true", "found `total_order` with a mapper without"),
        ("mapper = 'cat', compress_shuffle = 'gzip'", "found `compress_shuffle` with a mapper without"),
        ("jar = 'a'", "run: found a jar without a main class, expected main"),
        ("jar = 'a', main = 'M', program = 'sort'", "found program and jar"),
        (
            "jar = 'a', main = 'M', args = { n = 1 }",
            "run.args: found arguments with a jar, expected them as a list",
        ),
        ("jar = 'a', main = 'M', env = { A = 1 }", "found `env` with a jar"),
        ("jar = 'a', main = 'M', memory = '1GiB'", "found `memory` with a jar"),
        ("jar = 'a', main = 'M', timeout = '1h'", "found `timeout` with a jar"),
        ("jar = ' ', main = 'M'", "run.jar: found no path, expected the path of a jar"),
        ("jar = 'a', main = ''", "run.main: found no name, expected the name of a class"),
        ("jar = 'a', main = 'M', arguments = ['a', \"\\u0000\"]", "run.arguments[1]: found a NUL"),
        (
            "program = 'sort', main = 'M'",
            "run.main: found `main` with a program, expected it only with a jar",
        ),
        ("mapper = 'cat', arguments = ['a']", "run.arguments: found `arguments` with a mapper"),
        ("command = 'a', separator = ','", "expected it only with a mapper and a reducer"),
    ] {
        let found = error(&format!("{run}, output = 'y'"));
        assert!(found.contains(expected), "{run}: {found}");
    }
}

#[test]
fn values_that_cannot_be_meant_are_refused_where_they_stand() {
    for (run, expected) in [
        (
            "env = { 'A=B' = 1 }",
            "run.env: found the name \"A=B\", expected the name of an environment variable",
        ),
        ("env = { '' = 1 }", "run.env: found the name \"\""),
        (
            "env = { SLACKLINE_TASK = 1 }",
            "run.env.SLACKLINE_TASK: names that begin with SLACKLINE_ are reserved",
        ),
        ("env = { A = \"x\\u0000\" }", "run.env.A: found a NUL"),
        ("env = { A = [1] }", "run.env.A: found a list, expected a word, a number"),
        ("cwd = ''", "run.cwd: found no path"),
        ("shell = ' '", "run.shell: found no program, expected a shell"),
        ("files = ['a', '']", "run.files[1]: found no path"),
        ("memory = 0", "run.memory: found 0, expected a size"),
        ("memory = '5 miles'", "run.memory: found text \"5 miles\", expected a size"),
        ("memory = '9000000TiB'", "expected a size"),
        ("memory = 1.5", "expected a size"),
        ("processors = 0", "run.processors: found 0, expected 1 or more"),
        ("timeout = 0", "run.timeout: found 0, expected a duration above 0"),
        ("timeout = '1w'", "run.timeout: found text \"1w\", expected days or shorter"),
        ("timeout = inf", "run.timeout: found inf"),
        ("retry_delay = -1", "run.retry_delay: found -1, expected a duration"),
        ("attempts = 0", "run.attempts: found 0, expected 1 or more"),
        ("attempts = 70000", "expected a whole number from 0 to 65535"),
        ("no_retry = [1, 256]", "run.no_retry[1]: found 256, expected a whole number from 0 to 255"),
        ("no_retry = [0]", "run.no_retry[0]: found 0, which is success"),
        ("key_fields = 0", "run.key_fields: found 0, expected 1 or more"),
        ("separator = ', '", "run.separator: found \", \", expected one ASCII character"),
        ("separator = 'ä'", "run.separator: found \"ä\""),
        ("separator = ''", "run.separator: found \"\""),
        ("separator = \"\\n\"", "run.separator: found \"\\n\""),
        ("key_fields = 2, partition_fields = 3", "found 3 of a key of 2 fields, expected 1 to 2"),
        ("partition_fields = 2", "run.partition_fields: found 2 of a key of 1 field, expected 1 to 1"),
        ("partition_fields = 1, total_order = true", "found it with `total_order`, expected one of the two"),
        ("order = ['1', 'x']", "run.order[1]: found \"x\", expected the number of a field"),
        ("order = ['01']", "run.order[0]: found \"01\""),
        ("order = ['1nn']", "run.order[0]: found \"1nn\""),
        (
            "order = ['2']",
            "run.order[0]: found field 2 of a key of 1 field, expected 1 to 1: see `key_fields`",
        ),
        (
            "compress = 'gz'",
            "run.compress: found compression \"gz\", expected one of gzip, zstd, lz4; did you mean \"gzip\"?",
        ),
        ("compress_shuffle = 'snappy'", "run.compress_shuffle: found compression \"snappy\", expected lz4"),
    ] {
        let found = error(&format!("mapper = 'cat', reducer = 'cat', output = 'y', {run}"));
        assert!(found.contains(expected), "{run}: {found}");
    }
    assert!(error("command = ' ', output = 'y'").contains("run.command: found no command"));
}
