//! The environment of the program at its start: ignored and blocked signals, open descriptors, limits, an
//! unreadable home directory, files that cannot be removed, file systems without locks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use slackline_yarn::mock::Mock;

use crate::processes::{Family, ended, signal, until, write_program};
use crate::real_data::skipped;
use crate::runs::{RUN, command, parts};
use crate::serve::Place;
use crate::{CONTRACT, Ran, program, ran, scratch};

/// Numbers of signals on Linux.
const SIGNALS: [(&str, u32); 8] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("USR1", 10),
    ("TERM", 15),
    ("CHLD", 17),
    ("TSTP", 20),
    ("XFSZ", 25),
];

/// A flow of one plain command over `in.txt`.
fn flow_of(test: &str, plain: &str) -> PathBuf {
    let dir = scratch(test);
    write_flow(&dir, &format!("command = '''{plain}'''"));
    dir
}

/// A flow of one job that has `work`.
fn write_flow(dir: &Path, work: &str) {
    let job = format!("{{ id = \"j\", run = {{ {work}, inputs = [\"in.txt\"], output = \"out\" }} }}");
    fs::write(dir.join("flow.toml"), format!("slackline = 1\n[[flows]]\nid = \"f\"\njobs = [{job}]\n"))
        .unwrap();
    fs::write(dir.join("in.txt"), "one\ntwo\nthree\n").unwrap();
}

/// The command, started by a shell that has done something before.
fn after(set_up: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{set_up}\nexec \"$@\""), "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        shell.current_dir(dir);
    }
    shell
}

fn run_after(set_up: &str, dir: &Path, args: &[&str]) -> Ran {
    ran(&after(set_up, &command(dir, args)).stdin(Stdio::null()).output().unwrap())
}

fn spawned(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The signals of a set in a text like that of `/proc/PID/status`, of every process in the text.
fn signals(status: &str, set: &str) -> Vec<Vec<&'static str>> {
    let sets = status.lines().filter_map(|line| line.split_once(&format!("{set}:")));
    let masks = sets.map(|(_, digits)| u64::from_str_radix(digits.trim(), 16).unwrap());
    let named = |mask: u64| SIGNALS.iter().filter(move |(_, number)| mask >> (number - 1) & 1 == 1);
    masks.map(|mask| named(mask).map(|(name, _)| *name).collect()).collect()
}

/// The blocked signals of the observed process. Its parent blocks all signals for a moment while it starts a
/// process.
fn blocked(seen: &str) -> Vec<&'static str> {
    let own: Vec<&str> = seen.lines().filter(|line| line.contains("self/status:")).collect();
    signals(&own.join("\n"), "SigBlk").concat()
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// Waits until a process handles TERM.
fn handles_term(pid: u32) -> String {
    until("TERM is handled", || signals(&status(pid), "SigCgt").concat().contains(&"TERM"));
    status(pid)
}

/// Prints that a test is skipped unless `is_there`.
fn has(what: &str, is_there: bool) -> bool {
    if !is_there {
        skipped(&format!("{what} is not available"));
    }
    is_there
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

const LOOK: &str = "grep -H '^Sig[IB]' /proc/self/status /proc/$PPID/status";

#[test]
fn ignored_signals_stay_ignored_in_workers_commands_and_hooks_and_others_do_not() {
    for ignored in [&[][..], &["HUP"], &["HUP", "INT", "QUIT", "USR1", "TERM", "TSTP"], &["XFSZ"]] {
        let dir = flow_of("around-ignored", &format!("{LOOK} > seen"));
        let set_up = ignored.iter().fold(String::new(), |set_up, name| set_up + "trap '' " + name + "\n");
        let hook = format!("{LOOK} > hook");
        let args = [&RUN[..], &["--on-end", &hook]].concat();
        let ran = run_after(&set_up, &dir, &args);
        assert_eq!(ran.code, Some(0), "{ignored:?}: {}", ran.err);
        for file in ["seen", "hook"] {
            let seen = fs::read_to_string(dir.join(file)).unwrap();
            for of_process in signals(&seen, "SigIgn") {
                assert_eq!(of_process, ignored, "{file}: {seen}");
            }
            assert_eq!(blocked(&seen), [""; 0], "{file}: {seen}");
        }
    }
}

#[test]
fn blocked_signals_and_an_ignored_chld_do_not_reach_commands() {
    if !has("env --block-signal", succeeds("env", &["--block-signal=TERM", "--ignore-signal=CHLD", "true"])) {
        return;
    }
    let (dir, family) = (flow_of("around-blocked", &format!("{LOOK} > seen")), Family::new("around-blocked"));
    let ran = ran(&after(
        "set -- env --block-signal=HUP,INT,TERM,CHLD,USR1 --ignore-signal=CHLD \"$@\"",
        &family.command(&dir, &RUN),
    )
    .output()
    .unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let seen = fs::read_to_string(dir.join("seen")).unwrap();
    assert!(signals(&seen, "SigIgn").iter().all(Vec::is_empty), "{seen}");
    assert_eq!(blocked(&seen), [""; 0], "{seen}");
}

/// A flow whose command creates the file `begun`, and ends when there is `go`.
fn waiting(test: &str) -> (PathBuf, Family) {
    let plain = "touch begun; until test -e go; do sleep 0.05; done; echo done";
    (flow_of(test, plain), Family::new(test))
}

fn begins(dir: &Path) {
    until("the command has begun", || dir.join("begun").exists());
}

#[test]
fn a_run_survives_a_signal_that_it_ignored_when_it_started() {
    for name in ["HUP", "INT", "QUIT", "TERM"] {
        let (dir, family) = waiting(&format!("around-continues-{name}"));
        let engine = spawned(&mut after(&format!("trap '' {name}"), &family.command(&dir, &RUN)));
        begins(&dir);
        signal(name, engine.id());
        fs::write(dir.join("go"), "").unwrap();
        let ran = ended(engine);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.err);
        assert_eq!(parts(&dir.join("out"))["part-00000"], b"done\n");
    }
}

#[test]
fn a_run_under_nohup_still_ends_by_term() {
    let (dir, family) = waiting("around-nohup");
    let engine = spawned(&mut after("set -- nohup \"$@\"", &family.command(&dir, &RUN)));
    begins(&dir);
    let status = handles_term(engine.id());
    assert_eq!(signals(&status, "SigIgn").concat(), ["HUP"], "{status}");
    assert!(!signals(&status, "SigCgt").concat().contains(&"HUP"), "{status}");
    signal("HUP", engine.id());
    signal("TERM", engine.id());
    assert_eq!(ended(engine).code, Some(130));
}

#[test]
fn a_background_run_of_a_script_survives_ctrl_c() {
    let (dir, family) = waiting("around-background");
    // A shell without job control ignores INT and QUIT for such a command.
    let mut shell = after("\"$@\" &\necho $! > pid\nwait $!\nexit $?", &family.command(&dir, &RUN));
    let shell = spawned(&mut shell);
    begins(&dir);
    let engine: u32 = fs::read_to_string(dir.join("pid")).unwrap().trim().parse().unwrap();
    signal("INT", engine);
    fs::write(dir.join("go"), "").unwrap();
    let ran = ended(shell);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
}

#[test]
fn a_service_and_attach_keep_ignored_signals_ignored() {
    let place = Place::new(scratch("around-serve"), "around-serve");
    let mock = Mock::start().unwrap();
    let cluster = format!("yarn://{}", mock.address());
    let socket = place.socket.display().to_string();
    let verbs = [
        (&["serve", "--allow-root", "--state", "s", "--socket", &socket][..], 0),
        (&["hadoop", "attach", &cluster, "--dry-run", "--for", "300"][..], 130),
    ];
    for (args, code) in verbs {
        let program = spawned(&mut after("trap '' HUP INT", &place.family.command(&place.dir, args)));
        let status = handles_term(program.id());
        assert_eq!(signals(&status, "SigIgn").concat(), ["HUP", "INT"], "{args:?}: {status}");
        let caught = signals(&status, "SigCgt").concat();
        assert!(!caught.contains(&"HUP") && !caught.contains(&"INT"), "{args:?}: {status}");
        signal("HUP", program.id());
        signal("INT", program.id());
        signal("TERM", program.id());
        let ran = ended(program);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.err);
    }
}

/// Opens the file `secret` as descriptors 3 to 9.
const OPEN: &str = "exec 3<>secret 4<secret 5>>secret 6<secret 7<>secret 8<secret 9<>secret";
/// Prints the processes with descriptors of that file.
const FIND: &str = "ls -l /proc/self/fd /proc/$$/fd /proc/$PPID/fd | grep secret";

#[test]
fn descriptors_of_the_caller_do_not_reach_children() {
    let kinds = [
        format!("command = '''{FIND} > seen; echo done'''"),
        format!("mapper = '''cat; {FIND} > seen; true'''"),
        format!("mapper = 'cat', reducer = '''cat; {FIND} > seen; true'''"),
        format!("mapper = 'cat', combiner = '''cat; {FIND} > seen; true''', reducer = 'cat'"),
    ];
    for work in kinds {
        let dir = scratch("around-descriptors");
        write_flow(&dir, &work);
        fs::write(dir.join("secret"), "hunter2\n").unwrap();
        let hook = "ls -l /proc/self/fd /proc/$$/fd | grep secret > hook";
        let args = [&RUN[..], &["--on-end", hook]].concat();
        let ran = run_after(OPEN, &dir, &args);
        assert_eq!(ran.code, Some(0), "{work}: {}", ran.err);
        for file in ["seen", "hook"] {
            assert_eq!(fs::read_to_string(dir.join(file)).unwrap(), "", "{work}: {file}");
        }
    }
}

#[test]
fn descriptors_of_the_caller_do_not_reach_policies() {
    let dir = scratch("around-policy");
    fs::write(dir.join("secret"), "hunter2\n").unwrap();
    let script = "ls -l /proc/self/fd /proc/$$/fd | grep secret > seen\nread -r hello\n\
         echo '{\"protocol\": 1, \"style\": \"order\"}'\nwhile read -r line; do echo '{}'; done\n";
    fs::write(dir.join("policy.sh"), script).unwrap();
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(CONTRACT), dir.join("w.toml")).unwrap();
    let ran = run_after(OPEN, &dir, &["simulate", "w.toml", "--policy", "command:sh policy.sh"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(fs::read_to_string(dir.join("seen")).unwrap(), "");
}

#[test]
fn a_run_with_closed_standard_streams_ends_well() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"] {
        let dir = flow_of("around-closed", "cat; cat \"$SLACKLINE_INPUTS\"; echo said >&2");
        let ran = run_after(&format!("exec {closed}"), &dir, &RUN);
        assert_eq!(ran.code, Some(0), "{closed}: {}", ran.err);
        assert_eq!(parts(&dir.join("out"))["part-00000"], b"one\ntwo\nthree\n", "{closed}");
    }
    if has("/dev/full", Path::new("/dev/full").exists()) {
        let full =
            ran(&after("exec >/dev/full", &command(&scratch("around-full"), &["run", "--list-programs"]))
                .output()
                .unwrap());
        assert_eq!(full.code, Some(2), "{}", full.err);
    }
}

/// The result of a run under a limit: right output, or an error message. Never a panic, a signal, or partial
/// output.
fn is_right_or_refused(ran: &Ran, dir: &Path, expected: &[u8], what: &str) {
    let is_complete = dir.join("out/_SUCCESS").exists();
    match ran.code {
        // Temporary files may stay, with a warning.
        Some(0) => assert_eq!(fs::read(dir.join("out/part-00000")).unwrap(), expected, "{what}"),
        Some(1 | 2) => {
            assert!(!is_complete, "{what}: {}", ran.err);
            assert!(ran.err.contains("error: ") || ran.err.contains(" failed"), "{what}: {}", ran.err);
        }
        _ => panic!("{what}: {:?}: {}", ran.code, ran.err),
    }
    assert!(!ran.err.contains("panicked"), "{what}: {}", ran.err);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let lines: Vec<String> = (0..40_000).map(|line| line.to_string()).collect();
    let text = lines.join("\n") + "\n";
    let mut refused = 0;
    for work in ["mapper = 'cat'", "command = '''cat \"$SLACKLINE_INPUTS\"'''", "program = 'sort'"] {
        for blocks in [0, 1, 2, 3, 5, 8, 40, 100, 4000] {
            let dir = scratch("around-fsize");
            write_flow(&dir, work);
            fs::write(dir.join("in.txt"), &text).unwrap();
            let ran = run_after(&format!("ulimit -f {blocks}"), &dir, &RUN);
            let what = format!("{work}, {blocks} blocks");
            assert!(matches!(ran.code, Some(0..=2)), "{what}: {:?} {}", ran.code, ran.err);
            assert_eq!(ran.code == Some(0), blocks == 4000, "{what}: {}", ran.err);
            assert_eq!(ran.code == Some(0), dir.join("out/_SUCCESS").exists(), "{what}: {}", ran.err);
            refused += u32::from(ran.err.contains("raise it (ulimit -f)"));
        }
    }
    assert!(refused > 20, "{refused} messages name the limit");
}

#[test]
fn a_limit_on_open_files_is_an_error() {
    let mut refused = 0;
    for files in [4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 24, 32] {
        let dir = flow_of("around-nofile", "cat \"$SLACKLINE_INPUTS\"");
        let ran = run_after(&format!("ulimit -n {files}"), &dir, &RUN);
        is_right_or_refused(&ran, &dir, b"one\ntwo\nthree\n", &format!("{files} files"));
        refused += u32::from(ran.err.contains("raise it (ulimit -n)"));
    }
    assert!(refused > 0, "a message names the limit");
}

/// An ordinary user that only this test uses.
const USER: &str = "54377";

/// The program as an ordinary user with a limit on processes; `None` if that is impossible.
fn as_user(dir: &Path, limit: &str, args: &[&str]) -> Option<Command> {
    let program = dir.join("slackline");
    if !program.exists() {
        write_program(&program, fs::read(env!("CARGO_BIN_EXE_slackline")).unwrap());
    }
    let user = ["--reuid", USER, "--regid", USER, "--clear-groups"];
    let reaches = [&user[..], &["test", "-x", crate::text(&program)]].concat();
    if !has("setpriv, as root,", succeeds("setpriv", &reaches)) {
        return None;
    }
    let mut limited = Command::new("setpriv");
    limited.args(user).args(["sh", "-c", &format!("{limit}\nexec \"$@\""), "sh"]).arg(program).args(args);
    limited.current_dir(dir).env("SLACKLINE_CONFIG", "").env("XDG_RUNTIME_DIR", dir).env("HOME", dir);
    Some(limited)
}

/// Not every shell can limit processes.
fn processes_at_most(processes: u32) -> String {
    format!("set -- prlimit --nproc={processes}:{processes} \"$@\"")
}

/// A directory that an ordinary user can write to and reach.
fn of_user(test: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("slackline-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let uid = USER.parse().ok();
    // Only root changes the owner of directories, and only root needs to.
    let _ = std::os::unix::fs::chown(&dir, uid, uid);
    dir
}

#[test]
fn a_limit_on_processes_is_an_error() {
    let (mut refused, mut done) = (0, 0);
    for processes in [1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 400] {
        let dir = of_user("around-nproc");
        write_flow(&dir, "mapper = 'cat', reducer = 'cut -f 1'");
        let Some(mut run) = as_user(&dir, &processes_at_most(processes), &RUN) else { return };
        let ran = ran(&run.stdin(Stdio::null()).output().unwrap());
        is_right_or_refused(&ran, &dir, b"one\nthree\ntwo\n", &format!("{processes} processes"));
        refused += u32::from(ran.err.contains("raise it (ulimit -u)"));
        done += u32::from(ran.code == Some(0));
        fs::remove_dir_all(&dir).unwrap();
    }
    assert!(refused > 0 && done > 0, "{refused} refused, {done} done");
}

#[test]
fn a_limit_on_processes_is_an_error_of_other_verbs_too() {
    let dir = of_user("around-nproc-verbs");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(CONTRACT), dir.join("w.toml")).unwrap();
    let verbs = [
        (&["hadoop", "attach", "yarn://127.0.0.1:1"][..], 2),
        (&["compare", "w.toml", "--policies", "edf,fifo"], 0),
        (&["plan", "w.toml"], 0),
        (&["capacity", "w.toml", "--policy", "edf", "--over", "slowstart=0.1..0.9"], 0),
        (&["simulate", "w.toml", "--policy", "command:cat"], 1),
        (&["serve", "--state", "s", "--socket", "socket"], 2),
    ];
    for processes in [1, 2, 4] {
        for (args, code) in verbs {
            let Some(mut run) = as_user(&dir, &processes_at_most(processes), args) else { return };
            let ran = ran(&run.stdin(Stdio::null()).output().unwrap());
            assert_eq!(ran.code, Some(code), "{processes} processes, {args:?}: {}", ran.err);
        }
    }
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_defaults_file_that_cannot_be_looked_for_is_a_warning() {
    let dir = scratch("around-home");
    fs::write(dir.join("file"), "").unwrap();
    std::os::unix::fs::symlink("loop", dir.join("loop")).unwrap();
    fs::create_dir_all(dir.join("directory/slackline/config.toml")).unwrap();
    fs::create_dir_all(dir.join("pipe/slackline")).unwrap();
    assert!(succeeds("mkfifo", &[crate::text(&dir.join("pipe/slackline/config.toml"))]));
    let place = |name: &str| crate::text(&dir.join(name)).to_owned();
    let odd = [
        ("HOME", "/dev/null".to_owned()),
        ("HOME", place("file")),
        ("HOME", place("loop")),
        ("XDG_CONFIG_HOME", "/dev/null".to_owned()),
        ("XDG_CONFIG_HOME", place("file")),
        ("XDG_CONFIG_HOME", place("loop")),
        ("XDG_CONFIG_HOME", place("directory")),
        ("XDG_CONFIG_HOME", place("pipe")),
        ("XDG_CONFIG_HOME", format!("/{}", "x".repeat(300))),
        ("XDG_CONFIG_HOME", format!("/{}", "x/".repeat(2500))),
    ];
    for (name, value) in odd {
        for args in
            [&["run", "--list-programs"][..], &["simulate", CONTRACT, "--policy", "fifo"], &["config"]]
        {
            let mut command = program();
            command.env_remove("SLACKLINE_CONFIG").env_remove("XDG_CONFIG_HOME").env(name, &value).args(args);
            let result = ran(&command.output().unwrap());
            assert_eq!(result.code, Some(0), "{name}={value}: {}", result.err);
            assert_eq!(
                result.err.matches("warning: defaults file ").count(),
                1,
                "{name}={value}: {}",
                result.err
            );
            assert!(result.err.contains("slackline/config.toml: cannot be read: "), "{}", result.err);
            assert!(result.err.contains("set SLACKLINE_CONFIG= (empty)"), "{}", result.err);
            let help = ran(&command.arg("--help").output().unwrap());
            assert!(help.code == Some(0) && help.err.is_empty(), "{}", help.err);
        }
    }
    // A missing defaults file causes no message, but a named file must exist.
    for value in ["/nonexistent", "", "relative"] {
        let mut command = program();
        command
            .env_remove("SLACKLINE_CONFIG")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", value)
            .args(["run", "--list-programs"]);
        let result = ran(&command.output().unwrap());
        assert_eq!((result.code, result.err.as_str()), (Some(0), ""), "HOME={value}");
    }
    for named in [place("directory/slackline/config.toml"), place("loop"), place("file/below")] {
        let result = ran(&program()
            .env("SLACKLINE_CONFIG", &named)
            .args(["run", "--list-programs"])
            .output()
            .unwrap());
        assert!(result.code == Some(2) && result.err.contains("cannot be read"), "{named}: {}", result.err);
    }
}

#[test]
fn a_home_of_another_user_is_a_warning() {
    let dir = of_user("around-other-home");
    let Some(mut programs) = as_user(&dir, "", &["run", "--list-programs"]) else { return };
    let home = scratch("around-closed-home");
    fs::create_dir(home.join(".config")).unwrap();
    fs::set_permissions(&home, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    programs.env_remove("SLACKLINE_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", &home);
    let result = ran(&programs.output().unwrap());
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert!(
        result.err.starts_with("warning: defaults file ") && result.err.contains("Permission denied"),
        "{}",
        result.err
    );
    fs::remove_dir_all(&dir).unwrap();
}

/// Two jobs: the first leaves a file in the output that cannot be removed, the second reads the first.
fn busy(test: &str, leave: &str) -> PathBuf {
    let dir = scratch(test);
    let flow = format!(
        "slackline = 1\n[[flows]]\nid = \"f\"\njobs = [\n\
         {{ id = \"a\", run = {{ command = '''{leave}; echo ok''', output = \"a\" }} }},\n\
         {{ id = \"b\", run = {{ program = \"wordcount\", inputs = [\"@a\"], output = \"b\" }} }},\n]\n"
    );
    fs::write(dir.join("flow.toml"), flow).unwrap();
    dir
}

/// The run of `busy` succeeds with a warning; so do the same command and one with `--again`.
fn is_done_with_a_warning(dir: &Path, set_up: &str, left: &str) {
    let first = run_after(set_up, dir, &RUN);
    assert_eq!(first.code, Some(0), "{left}: {}", first.err);
    let result: Vec<&str> = first.err.lines().filter(|line| line.contains("cannot be removed")).collect();
    assert_eq!(result.len(), 1, "{left}: {}", first.err);
    assert!(result[0].contains("f/a is finished, but ") && result[0].contains(left), "{left}: {}", result[0]);
    for (output, expected) in [("a", &b"ok\n"[..]), ("b", b"ok\t1\n")] {
        assert_eq!(fs::read(dir.join(output).join("part-00000")).unwrap(), expected, "{left}");
        assert!(dir.join(output).join("_SUCCESS").exists());
    }
    let second = run_after("", dir, &RUN);
    assert_eq!(second.code, Some(0), "{left}: {}", second.err);
    assert!(second.err.contains("nothing is left to do"), "{left}: {}", second.err);
    let again = run_after(set_up, dir, &[&RUN[..], &["--again"]].concat());
    assert_eq!(again.code, Some(0), "{left}: {}", again.err);
    let other = run_after("", dir, &["run", "flow.toml", "--state", "other", "--dry-run"]);
    assert!(!other.err.contains("another run"), "{left}: {}", other.err);
}

#[test]
fn a_busy_file_in_an_output_is_a_warning_once_the_output_is_complete() {
    let mounts = ["-m", "sh", "-c", "mount -t tmpfs tmpfs /mnt"];
    if !has("a namespace for mounts", succeeds("unshare", &mounts)) {
        return;
    }
    // All runs of a case are in one namespace, where the file stays busy.
    let cases = [
        ("touch a/_temporary/.nfs1; mount --bind /dev/null a/_temporary/.nfs1", "a/_temporary/.nfs1"),
        ("mkdir a/_temporary/d; mount -t tmpfs tmpfs a/_temporary/d", "a/_temporary/d"),
        ("mkdir -p a/_temporary/d/e; mount -t tmpfs tmpfs a/_temporary/d/e", "a/_temporary/d/e"),
        ("mkdir a/_temporary.x; mount -t tmpfs tmpfs a/_temporary.x", "a/_temporary.x"),
    ];
    for (nth, (leave, left)) in cases.into_iter().enumerate() {
        let dir = busy("around-busy", &format!("test -e left || {{ {leave}; touch left; }}"));
        let inner = format!("around-busy-inner-{nth}");
        let status = Command::new("unshare")
            .args(["-m", crate::text(&std::env::current_exe().unwrap()), "--exact", "--nocapture"])
            .arg("surroundings::in_a_new_namespace")
            .env(INNER, format!("{}\n{left}", crate::text(&dir)))
            .output()
            .unwrap();
        assert!(status.status.success(), "{inner}: {}", String::from_utf8_lossy(&status.stderr));
    }
}

/// The variable with the case of the test below in a new namespace.
const INNER: &str = "SLACKLINE_TEST_BUSY";

#[test]
fn in_a_new_namespace() {
    if let Ok(case) = std::env::var(INNER) {
        let (dir, left) = case.split_once('\n').unwrap();
        is_done_with_a_warning(Path::new(dir), "", left);
    }
}

#[test]
fn an_immutable_file_in_an_output_or_in_the_state_is_a_warning() {
    let probe = scratch("around-immutable-probe").join("file");
    fs::write(&probe, "").unwrap();
    let probe = crate::text(&probe);
    if !has("chattr +i", succeeds("chattr", &["+i", probe])) {
        return;
    }
    assert!(succeeds("chattr", &["-i", probe]));
    for left in ["a/_temporary/x", "a/_temporary/parts/x", "a/_temporary/owner"] {
        let dir =
            busy("around-immutable", &format!("mkdir -p a/_temporary/parts; touch {left}; chattr +i {left}"));
        is_done_with_a_warning(&dir, "", left);
        assert!(succeeds("chattr", &["-R", "-i", crate::text(&dir)]));
    }
}

#[test]
fn an_output_behind_a_dangling_link_is_named_as_such() {
    for (output, link) in [("out", "out"), ("disk/out", "disk"), ("disk/a/b", "disk")] {
        let dir = scratch("around-dangling");
        let job = format!(
            "{{ id = \"j\", run = {{ mapper = 'cat', inputs = [\"in.txt\"], output = \"{output}\" }} }}"
        );
        fs::write(dir.join("flow.toml"), format!("slackline = 1\n[[flows]]\nid = \"f\"\njobs = [{job}]\n"))
            .unwrap();
        fs::write(dir.join("in.txt"), "one\n").unwrap();
        std::os::unix::fs::symlink("/nonexistent/scratch", dir.join(link)).unwrap();
        let ran = run_after("", &dir, &RUN);
        assert_eq!(ran.code, Some(2), "{output}: {}", ran.err);
        assert!(
            ran.err.contains(&format!("{link} is a link to /nonexistent/scratch, which does not exist")),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains("another run"), "{}", ran.err);
    }
}

/// Replaces `flock`: a file system without locks.
const NO_LOCKS: &str = "#include <errno.h>\nint flock(int fd, int what) { errno = NUMBER; return -1; }\n";

#[test]
fn a_file_system_without_locks_is_named_as_the_cause() {
    for number in ["ENOLCK", "ENOSYS", "EOPNOTSUPP"] {
        let dir = flow_of("around-locks", "true");
        fs::write(dir.join("no.c"), NO_LOCKS.replace("NUMBER", number)).unwrap();
        let (source, library) = (dir.join("no.c"), dir.join("no.so"));
        let built = succeeds("cc", &["-shared", "-fPIC", "-o", crate::text(&library), crate::text(&source)]);
        if !has("a compiler of C", built) {
            return;
        }
        for more in [&[][..], &["--history", "past"]] {
            let mut run = command(&dir, &[&RUN[..], more].concat());
            let ran = ran(&run.env("LD_PRELOAD", &library).output().unwrap());
            assert_eq!(ran.code, Some(2), "{number}: {}", ran.err);
            assert!(ran.err.contains("its file system has no file locks"), "{number}: {}", ran.err);
            assert!(ran.err.contains("on a local disk, with --state"), "{number}: {}", ran.err);
        }
    }
}
