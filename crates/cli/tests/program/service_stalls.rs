//! A service answers and other work proceeds while files, locks, pipes, hosts or children hang. TERM ends it
//! within 10 s.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::fake_system::FakeSystem;
use crate::processes::{pause, signal, until};
use crate::scratch;
use crate::serve::{Place, get, make_pipe};

/// A service that can be hung.
struct Stall {
    place: Place,
    system: FakeSystem,
    service: Child,
}

/// A flow of one job of a mapper.
fn flow(id: &str, mapper: &str) -> String {
    let run = format!("mapper = '{mapper}', inputs = ['in-{id}.txt'], output = 'out-{id}'");
    format!("slackline = 1\n[[flows]]\nid = '{id}'\njobs = [{{ id = 'j', run = {{ {run} }} }}]\n")
}

impl Stall {
    /// Starts a service with these options, and two slots unless they name others. `None`, with a message,
    /// without a C compiler.
    fn new(test: &str, more: &[&str]) -> Option<Self> {
        let place = Place::new(scratch(test), test);
        let system = FakeSystem::new(&place.dir)?;
        let service = started(&place, &system, more);
        Some(Self { place, system, service })
    }

    fn dir(&self, path: &str) -> PathBuf {
        self.place.dir.join(path)
    }

    /// Writes the files of a flow, and submits it.
    fn submit(&self, id: &str, command: &str) -> String {
        self.write(id, command);
        self.place.done(&["submit", &format!("{id}.toml"), "--quiet"]).trim().to_owned()
    }

    fn write(&self, id: &str, command: &str) {
        fs::write(self.dir(&format!("in-{id}.txt")), format!("{id}\n")).unwrap();
        fs::write(self.dir(&format!("{id}.toml")), flow(id, command)).unwrap();
    }

    /// Another flow is submitted and finishes.
    fn others_finish(&self, id: &str) {
        let number = self.submit(id, "cat");
        self.place.until_state(&number, "finished");
        assert_eq!(fs::read_to_string(self.dir(&format!("out-{id}/part-00000"))).unwrap(), format!("{id}\n"));
    }

    fn answers(&self, path: &str) -> Option<(u16, String)> {
        get(&self.place.socket, path)
    }

    fn is_ready(&self) -> bool {
        self.answers("/readyz").is_some_and(|(status, _)| status == 200)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir("serve.log")).unwrap()
    }

    fn until_logged(&self, words: &[&str]) {
        until(&words.join(" … "), || {
            let log = self.log();
            log.lines().any(|line| words.iter().all(|word| line.contains(word)))
        });
    }

    /// TERM ends the service within 10 s, with its message, and no process is left.
    fn ends(mut self) -> String {
        signal("TERM", self.service.id());
        let has_ended = (0..100).any(|_| {
            pause(100);
            self.service.try_wait().unwrap().is_some()
        });
        assert!(has_ended, "TERM did not end the service: {}", self.log());
        assert_eq!(self.service.wait().unwrap().code(), Some(0), "{}", self.log());
        self.place.family.is_gone();
        self.log()
    }

    /// The same, and the next service finishes these submissions.
    fn ends_and_resumes(self, numbers: &[&str]) {
        let (dir, socket) = (self.place.dir.clone(), self.place.socket.clone());
        let _ = fs::remove_file(self.dir("fake-system/hang"));
        let Self { place, system, mut service } = self;
        signal("TERM", service.id());
        service.wait().unwrap();
        let service = started(&place, &system, &[]);
        let again = Self { place, system, service };
        for number in numbers {
            again.place.until_state(number, "finished");
        }
        assert_eq!((&again.place.dir, &again.place.socket), (&dir, &socket));
        again.ends();
    }
}

fn started(place: &Place, system: &FakeSystem, more: &[&str]) -> Child {
    let mut command = serve(place, more);
    let log = File::options().create(true).append(true).open(place.dir.join("serve.log")).unwrap();
    system.fake(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let service = command.spawn().unwrap();
    until("the service answers", || get(&place.socket, "/healthz").is_some());
    service
}

fn serve(place: &Place, more: &[&str]) -> Command {
    let socket = place.socket.display().to_string();
    let args = ["serve", "--allow-root", "--state", "s", "--socket", &socket];
    let slots: &[&str] = if more.contains(&"--slots") { &[] } else { &["--slots", "2"] };
    place.family.command(&place.dir, &[&args, slots, more].concat())
}

/// A command that waits for a file of the test, then copies its input.
fn waits_for(stall: &Stall, name: &str) -> String {
    format!("while ! test -e {}; do sleep 0.05; done; cat", stall.dir(name).display())
}

#[test]
fn a_hung_flush_of_the_service_keeps_answers_back_and_nothing_else() {
    let Some(stall) = Stall::new("stall-flush", &[]) else { return };
    let first = stall.submit("a", &waits_for(&stall, "go"));
    until("it runs", || stall.place.shown(&first)["flows"][0]["running"] == 1);
    stall.system.hang(Some("service.log"));
    stall.write("b", "cat");
    let mut submit = stall.place.family.command(&stall.place.dir, &["submit", "b.toml", "--quiet"]);
    submit.env("SLACKLINE_SERVER", &stall.place.socket).stdout(Stdio::piped());
    let mut submit = submit.spawn().unwrap();
    until("readyz fails", || !stall.is_ready());
    stall.until_logged(&["the writer of the service's log is blocked: write to", "service.log"]);
    assert_eq!(stall.answers("/healthz").unwrap().0, 200);
    // Meanwhile a running task finishes.
    fs::write(stall.dir("go"), "").unwrap();
    until("its output is there", || stall.dir("out-a/_SUCCESS").exists());
    let (status, body) = stall.answers("/api/v1/service").unwrap();
    assert_eq!(status, 200);
    let trouble = serde_json::from_str::<Value>(&body).unwrap()["trouble"].clone();
    assert!(trouble.as_str().unwrap().contains("service.log"), "{trouble}");
    assert!(submit.try_wait().unwrap().is_none(), "nothing is accepted before it is on disk");
    stall.system.hang(None);
    let mut number = String::new();
    submit.stdout.take().unwrap().read_to_string(&mut number).unwrap();
    assert!(submit.wait().unwrap().success());
    until("readyz is true again", || stall.is_ready());
    stall.until_logged(&["the writer of the service's log runs again"]);
    for number in [first.as_str(), number.trim()] {
        stall.place.until_state(number, "finished");
    }
    stall.ends();
}

#[test]
fn a_service_whose_flush_hangs_ends_in_time_and_keeps_what_it_accepted() {
    let Some(stall) = Stall::new("stall-flush-end", &[]) else { return };
    let number = stall.submit("a", &waits_for(&stall, "go"));
    stall.system.hang(Some("service.log"));
    stall.write("b", "cat");
    let mut submit = stall.place.family.command(&stall.place.dir, &["submit", "b.toml", "--quiet"]);
    submit.env("SLACKLINE_SERVER", &stall.place.socket).stdout(Stdio::piped()).stderr(Stdio::null());
    let submit = submit.spawn().unwrap();
    until("readyz fails", || !stall.is_ready());
    fs::write(stall.dir("go"), "").unwrap();
    stall.ends_and_resumes(&[&number]);
    assert_ne!(submit.wait_with_output().unwrap().status.code(), None);
}

/// While an operation of a run hangs, other runs finish and the loop turns.
fn one_run_hangs(test: &str, hung: &str, logged: &str) {
    let Some(stall) = Stall::new(test, &[]) else { return };
    let number = stall.submit("a", &waits_for(&stall, "go"));
    until("it runs", || stall.place.shown(&number)["flows"][0]["running"] == 1);
    stall.system.hang(Some(hung));
    fs::write(stall.dir("go"), "").unwrap();
    stall.until_logged(&["flows/a is blocked: ", logged]);
    stall.others_finish("b");
    assert!(stall.is_ready());
    assert_eq!(stall.place.shown(&number)["state"], "running");
    stall.ends_and_resumes(&[&number]);
}

#[test]
fn a_hung_journal_of_a_run_stops_that_run_alone() {
    one_run_hangs("stall-journal", "flows/a/journal", "write to journal");
}

#[test]
fn a_hung_output_directory_stops_that_run_alone() {
    one_run_hangs("stall-output", "out-a/part-00000", "publish ");
}

#[test]
fn a_hung_log_of_finished_jobs_stops_that_run_alone() {
    one_run_hangs("stall-jobs", "flows/a/jobs.log", "jobs.log");
}

#[test]
fn more_hung_runs_than_workers_stop_those_alone() {
    let Some(stall) = Stall::new("stall-many-runs", &["--slots", "8"]) else { return };
    let ids: Vec<String> = (0..6).map(|k| format!("h{k}")).collect();
    let numbers: Vec<String> = ids.iter().map(|id| stall.submit(id, &waits_for(&stall, "go"))).collect();
    for number in &numbers {
        until("it runs", || stall.place.shown(number)["flows"][0]["running"] == 1);
    }
    stall.system.hang(Some("flows/h"));
    fs::write(stall.dir("go"), "").unwrap();
    for id in &ids {
        stall.until_logged(&[&format!("flows/{id} is blocked: "), "write to journal"]);
    }
    stall.others_finish("b");
    assert!(stall.is_ready());
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    stall.ends_and_resumes(&numbers);
}

#[test]
fn hung_inputs_of_many_submissions_stop_those_alone() {
    let Some(stall) = Stall::new("stall-inputs", &[]) else { return };
    stall.system.hang(Some("hung/"));
    let numbers: Vec<String> = (0..6)
        .map(|k| {
            let (id, inputs) = (format!("h{k}"), format!("hung/{k}"));
            fs::create_dir_all(stall.dir(&inputs)).unwrap();
            fs::write(stall.dir(&format!("{inputs}/in.txt")), "x\n").unwrap();
            let text = flow(&id, "cat").replace(&format!("in-{id}.txt"), &inputs);
            fs::write(stall.dir(&format!("{id}.toml")), text).unwrap();
            stall.place.done(&["submit", &format!("{id}.toml"), "--quiet"]).trim().to_owned()
        })
        .collect();
    stall.until_logged(&["opener", "is blocked: list ", "hung/"]);
    stall.others_finish("b");
    assert!(stall.is_ready());
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    stall.ends_and_resumes(&numbers);
}

#[test]
fn locks_that_other_processes_hold_block_neither_runs_nor_tokens() {
    let Some(stall) = Stall::new("stall-locks", &[]) else { return };
    let state = stall.dir("s").display().to_string();
    let token = |args: &[&str]| stall.place.ask(&[&["token", "--state", &state], args].concat());
    assert_eq!(token(&["--add", "anna", "--role", "look"]).code, Some(0));
    let held: Vec<File> = fs::read_dir(stall.dir("s"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "lock"))
        .map(|path| {
            let file = File::open(path).unwrap();
            file.try_lock().unwrap();
            file
        })
        .collect();
    assert!(held.len() >= 2, "{held:?}");
    stall.others_finish("b");
    stall.others_finish("c");
    until("readyz says that the history is not written", || !stall.is_ready());
    let refused = token(&["--add", "bert", "--role", "look"]);
    let holder = format!("tokens.lock: process {} has held its lock", std::process::id());
    assert!(refused.code == Some(2) && refused.err.contains(&holder), "{}", refused.err);
    let removed = token(&["--remove", "anna"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    assert!(!token(&[]).out.contains("anna"));
    drop(held);
    until("readyz is true again", || stall.is_ready());
    stall.ends();
}

#[test]
fn pipes_in_place_of_files_of_a_run_stop_no_other_run() {
    let Some(stall) = Stall::new("stall-pipes", &[]) else { return };
    // A command replaces its own log and that of its flow.
    let logs = "rm -f ../../attempts/*/stderr.log stderr.log; mkfifo stderr.log; cat";
    let of_log = stall.submit("log", logs);
    let state = |name: &str| stall.dir(&format!("s/flows/{name}"));
    // Documents, logs and inputs are replaced while the flow runs or waits.
    let numbers = ["documents", "logs", "input"].map(|id| {
        let number = stall.submit(id, &waits_for(&stall, &format!("go-{id}")));
        (id, number)
    });
    until("two of them run", || {
        let running = |number: &str| stall.place.shown(number)["flows"][0]["running"] == 1;
        numbers.iter().filter(|(_, number)| running(number)).count() == 2
    });
    for name in ["workload.json", "schedule.json"] {
        make_pipe(&state("documents").join(name));
    }
    make_pipe(&stall.dir("in-input.txt"));
    let _ = fs::remove_dir_all(state("logs").join("logs"));
    make_pipe(&state("logs").join("logs"));
    for (id, _) in &numbers {
        fs::write(stall.dir(&format!("go-{id}")), "").unwrap();
    }
    for number in numbers.iter().map(|(_, number)| number).chain([&of_log]) {
        let is_over = || {
            let shown = stall.place.shown(number)["state"].clone();
            shown == "finished" || shown == "failed"
        };
        until("it is over", is_over);
    }
    stall.others_finish("b");
    assert!(stall.is_ready(), "{}", stall.log());
    stall.ends();
}

#[test]
fn children_that_ignore_term_or_are_stopped_end_with_the_service() {
    let Some(stall) = Stall::new("stall-children", &[]) else { return };
    stall.submit("a", "trap : TERM; while :; do sleep 0.1; done");
    stall.submit("b", "sleep 400");
    let sleeper = stall.place.family.awaits("sleep 400");
    let worker = stall.place.family.ancestor(sleeper, "slackline worker").unwrap();
    signal("STOP", worker);
    assert!(stall.is_ready());
    stall.ends();
}

#[test]
fn a_hook_and_a_host_that_hang_stop_nothing() {
    let more = ["--on-alert", "trap : TERM; sleep 400", "--alert-to", "http://hung.invalid/alerts"];
    let Some(stall) = Stall::new("stall-hooks", &more) else { return };
    stall.system.hang(Some("hung.invalid"));
    let number = stall.submit("a", "false");
    stall.place.until_state(&number, "failed");
    stall.place.family.awaits("sleep 400");
    stall.others_finish("b");
    assert!(stall.is_ready());
    stall.ends();
}

#[test]
fn connections_that_stay_open_do_not_keep_the_service() {
    let Some(stall) = Stall::new("stall-connections", &[]) else { return };
    let open = |text: &str| {
        let mut stream = UnixStream::connect(&stall.place.socket).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n";
    let events = "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let body = "POST /api/v1/submissions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n\r\n{";
    let whole = format!("{head}\r\n");
    let _open = ["", head, &whole, events, body].map(open);
    stall.others_finish("b");
    stall.ends();
}

#[test]
fn a_policy_that_does_not_answer_is_named_and_term_ends_the_service() {
    // It ends when its input does.
    let policy = "command:sh -c \"read line; read line\"";
    let Some(stall) = Stall::new("stall-policy", &["--policy", policy, "--predict-with", "fifo"]) else {
        return;
    };
    stall.submit("a", "cat");
    until("readyz fails", || !stall.is_ready());
    stall.until_logged(&["the scheduler is blocked: decide by policy command:sh"]);
    assert_eq!(stall.answers("/healthz").unwrap().0, 200);
    let said = stall.ends();
    assert!(said.contains("stopped before the scheduler"), "{said}");
}

#[test]
fn a_log_without_a_reader_does_not_block_the_service() {
    let place = Place::new(scratch("stall-stderr"), "stall-stderr");
    let (_reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let mut command = serve(&place, &[]);
    let mut service = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    until("the service answers", || get(&place.socket, "/healthz").is_some());
    signal("TERM", service.id());
    let has_ended = (0..100).any(|_| {
        pause(100);
        service.try_wait().unwrap().is_some()
    });
    assert!(has_ended, "TERM did not end the service");
}

#[test]
fn nothing_is_accepted_while_the_disk_is_full() {
    let Some(stall) = Stall::new("stall-full", &[]) else { return };
    stall.system.fill_disk(true);
    stall.write("a", "cat");
    let refused = stall.place.ask(&["submit", "a.toml", "--key", "k", "--quiet"]);
    assert!(refused.code != Some(0) && refused.out.is_empty(), "{}{}", refused.out, refused.err);
    until("readyz fails", || !stall.is_ready());
    stall.system.fill_disk(false);
    until("readyz is true again", || stall.is_ready());
    let number = stall.place.done(&["submit", "a.toml", "--key", "k", "--quiet"]);
    stall.place.until_state(number.trim(), "finished");
    stall.ends();
}

/// The full disk is found by the checks before the run ("_temporary.probe") or when the output is locked.
#[test]
fn a_submission_that_opens_or_resumes_while_the_disk_is_full_waits() {
    for full in ["_temporary", "out-a"] {
        for is_resumed in [false, true] {
            let Some(mut stall) = Stall::new("stall-opening", &[]) else { return };
            let number = if is_resumed {
                let number = stall.submit("a", "sleep 1; cat");
                stall.place.until_state(&number, "running");
                signal("KILL", stall.service.id());
                stall.service.wait().unwrap();
                fs::remove_dir_all(stall.dir("out-a")).unwrap();
                stall.system.fill_disk_at(full);
                stall.service = started(&stall.place, &stall.system, &[]);
                number
            } else {
                stall.system.fill_disk_at(full);
                stall.submit("a", "cat")
            };
            until("the service says what it waits for", || {
                stall.place.shown(&number).to_string().contains("No space left on device")
            });
            stall.system.fill_disk(false);
            stall.place.until_state(&number, "finished");
            assert_eq!(fs::read_to_string(stall.dir("out-a/part-00000")).unwrap(), "a\n");
            stall.ends();
        }
    }
}

#[test]
fn a_run_that_ends_while_the_disk_is_full_waits_for_its_documents() {
    for is_killed in [false, true] {
        let Some(mut stall) = Stall::new("stall-documents", &[]) else { return };
        stall.system.fill_disk_at("schedule.json");
        stall.write("a", "cat");
        let number = stall.place.done(&["submit", "a.toml", "--quiet"]);
        until("the output is there and readyz fails", || {
            stall.dir("out-a/_SUCCESS").exists() && !stall.is_ready()
        });
        assert_eq!(stall.place.shown(number.trim())["state"], "running");
        if is_killed {
            signal("KILL", stall.service.id());
            stall.service.wait().unwrap();
            stall.service = started(&stall.place, &stall.system, &[]);
        }
        stall.system.fill_disk(false);
        stall.place.until_state(number.trim(), "finished");
        stall.place.done(&["check", "s/flows/a/workload.json", "s/flows/a/schedule.json"]);
        stall.ends();
    }
}

/// Descriptor 9 is open when the service starts, without close-on-exec.
#[test]
fn commands_hooks_and_workers_inherit_no_descriptor_of_the_service() {
    let place = Place::new(scratch("stall-descriptors"), "stall-descriptors");
    let open = "ls -l /proc/self/fd | grep -c secret >> counted; true";
    let hook = format!("cd {}; {open}", place.dir.display());
    let service = serve(&place, &["--on-alert", &hook]);
    let script = "exec 9<>secret; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(service.get_program()).args(service.get_args()).current_dir(&place.dir);
    shell.envs(service.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut service = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("the service answers", || get(&place.socket, "/healthz").is_some());
    fs::write(place.dir.join("in-a.txt"), "a\n").unwrap();
    let mapper = format!("cd {}; {open}; false", place.dir.display());
    fs::write(place.dir.join("a.toml"), flow("a", &mapper)).unwrap();
    let number = place.done(&["submit", "a.toml", "--quiet"]);
    place.until_state(number.trim(), "failed");
    let counted = || fs::read_to_string(place.dir.join("counted")).unwrap_or_default();
    until("four attempts and a hook have counted", || counted().lines().count() >= 5);
    assert!(counted().lines().all(|line| line == "0"), "{}", counted());
    let worker = place.family.alive().into_iter().find(|(_, line)| line.contains("slackline worker"));
    let (pid, _) = worker.unwrap();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let secret = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.ends_with("secret"));
    assert!(!descriptors.map(|entry| entry.path()).any(secret));
    signal("TERM", service.id());
    service.wait().unwrap();
    place.family.is_gone();
}
