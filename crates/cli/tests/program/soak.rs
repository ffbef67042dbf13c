//! A service under faults: one fault each second, for `SLACKLINE_SOAK` seconds. No submission is lost, none
//! runs twice, and `readyz` is true exactly when work proceeds.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fake_system::FakeSystem;
use crate::processes::{pause, signal};
use crate::runs::parts;
use crate::scratch;
use crate::serve::{Place, get, make_pipe};

/// A ready service with work finishes a submission within this time.
const GRACE: Duration = Duration::from_secs(30);

const TEXT: &str = "one two\nthree two\n";

/// The output of `wordcount` for [`TEXT`].
const COUNTED: &str = "one\t1\nthree\t1\ntwo\t2\n";

const NIGHT: i64 = 8 * 3600;

const YEAR: i64 = 365 * 24 * 3600;

/// A flow of two jobs: a program counts the words of `in-KEY.txt`, and a command copies its output.
fn flow(key: usize) -> String {
    let count = format!("program = 'wordcount', inputs = ['in-{key}.txt'], output = 'count-{key}'");
    let copy =
        format!("command = 'sleep 0.3; cat $SLACKLINE_INPUTS', inputs = ['@count'], output = 'copy-{key}'");
    let jobs = [("count", count), ("copy", copy)]
        .map(|(id, run)| format!("{{ id = '{id}', run = {{ {run} }} }},\n"));
    format!("slackline = 1\n[[flows]]\nid = 'f'\njobs = [\n{}]\n", jobs.concat())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Ready,
    Troubled,
    Silent,
}

/// A sample of the state of the service.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Instant,
    health: Health,
    /// Numbers of finished submissions, and of others.
    finished: u64,
    active: u64,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    KillService,
    StopService,
    FreezeService,
    KillWorkers,
    FreezeWorkers,
    ClockNightForward,
    ClockNightBack,
    ClockYearForwardAndBack,
    DiskFull,
    PipeForInput,
    LinkForInput,
    PipeForLog,
    PipeForOutput,
    LocksHeld,
}

const FAULTS: [Fault; 14] = [
    Fault::KillService,
    Fault::ClockNightForward,
    Fault::PipeForInput,
    Fault::DiskFull,
    Fault::KillWorkers,
    Fault::LocksHeld,
    Fault::ClockYearForwardAndBack,
    Fault::StopService,
    Fault::LinkForInput,
    Fault::FreezeWorkers,
    Fault::PipeForLog,
    Fault::ClockNightBack,
    Fault::FreezeService,
    Fault::PipeForOutput,
];

/// The submissions, by key.
#[derive(Default)]
struct Submitted {
    /// The number that the service has given to each key. A key without an answer yet is submitted again.
    numbers: Vec<Option<u64>>,
    /// The keys whose files a fault has replaced: their submissions may fail.
    touched: BTreeSet<usize>,
}

/// The surroundings of the service, shared by the threads of the test.
struct Soak {
    place: Place,
    system: FakeSystem,
    submitted: Mutex<Submitted>,
    is_over: AtomicBool,
}

#[test]
fn a_service_under_faults_loses_nothing_and_runs_nothing_twice() {
    let seconds = std::env::var("SLACKLINE_SOAK").map_or(28, |text| text.parse().expect("seconds"));
    let place = Place::new(scratch("soak"), "soak");
    let Some(system) = FakeSystem::new(&place.dir) else { return };
    let soak = Soak { place, system, submitted: Mutex::default(), is_over: AtomicBool::new(false) };
    let mut service = soak.serve();
    let samples = thread::scope(|scope| {
        let _ends = EndsAll(&soak.is_over);
        let watcher = scope.spawn(|| soak.watch());
        let submitter = scope.spawn(|| soak.submit_each_second(seconds));
        for second in 0..seconds {
            let start = now();
            soak.cause(FAULTS[(second + second / FAULTS.len()) % FAULTS.len()], &mut service);
            if service.try_wait().unwrap().is_some() {
                service = soak.serve();
            }
            pause(1000_u64.saturating_sub(u64::try_from(start.elapsed().as_millis()).unwrap()));
        }
        soak.system.shift(0);
        submitter.join().unwrap();
        soak.wait_for_all(&mut service);
        soak.is_over.store(true, Ordering::SeqCst);
        watcher.join().unwrap()
    });
    soak.check_submissions();
    check_health(&samples);
    signal("TERM", service.id());
    assert!(ends(&mut service, 10), "TERM ends the service within 10 s");
}

/// Ends the threads of the test, also after a failure.
struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[expect(clippy::disallowed_methods, reason = "the test measures the service in real time")]
fn now() -> Instant {
    Instant::now()
}

/// Whether a process ends within that number of seconds.
fn ends(process: &mut Child, seconds: u64) -> bool {
    (0..100 * seconds).any(|_| {
        pause(10);
        process.try_wait().unwrap().is_some()
    })
}

impl Soak {
    /// Starts the service with its messages in a file.
    fn serve(&self) -> Child {
        let socket = self.place.socket.display().to_string();
        let args = [
            "serve",
            "--allow-root",
            "--state",
            "s",
            "--slots",
            "4",
            "--socket",
            &socket,
            "--keep",
            "100000",
        ];
        let mut command = self.place.family.command(&self.place.dir, &args);
        let log = File::options().create(true).append(true).open(self.dir("serve.log")).unwrap();
        self.system.fake(&mut command).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().unwrap()
    }

    fn dir(&self, path: &str) -> PathBuf {
        self.place.dir.join(path)
    }

    fn submit_each_second(&self, seconds: usize) {
        for key in 0..seconds {
            let start = now();
            fs::write(self.dir(&format!("in-{key}.txt")), TEXT).unwrap();
            fs::write(self.dir(&format!("f{key}.toml")), flow(key)).unwrap();
            self.submitted.lock().unwrap().numbers.push(None);
            self.submit_unanswered();
            pause(1000_u64.saturating_sub(u64::try_from(start.elapsed().as_millis()).unwrap()));
        }
    }

    /// Submits each key without an answer, and the first key again.
    fn submit_unanswered(&self) {
        let numbers = self.submitted.lock().unwrap().numbers.clone();
        let unanswered = (0..numbers.len()).filter(|&key| key == 0 || numbers[key].is_none());
        for key in unanswered.take(10) {
            let (file, word) = (format!("f{key}.toml"), format!("k{key}"));
            let ran = self.place.ask(&["submit", &file, "--key", &word, "--quiet"]);
            if ran.code == Some(0) {
                let number = ran.out.trim().parse().unwrap();
                let known = self.submitted.lock().unwrap().numbers[key].replace(number);
                assert!(known.is_none_or(|known| known == number), "{word} is {known:?} and {number}");
            }
        }
    }

    /// Samples the service four times a second.
    fn watch(&self) -> Vec<Sample> {
        let (mut samples, mut finished, mut active) = (Vec::new(), 0, 0);
        loop {
            // The last sample comes after all submissions have finished.
            let is_last = self.is_over.load(Ordering::SeqCst);
            let health = match get(&self.place.socket, "/readyz") {
                Some((200, _)) => Health::Ready,
                Some(_) => Health::Troubled,
                None => Health::Silent,
            };
            if let Some((200, body)) = get(&self.place.socket, "/api/v1/service") {
                let document: Value = serde_json::from_str(&body).unwrap();
                let counts = document["submissions"].as_object().unwrap();
                let all: u64 = counts.values().filter_map(Value::as_u64).sum();
                let count = |state: &&str| counts.get(*state).and_then(Value::as_u64);
                active = ["queued", "opening", "running"].iter().filter_map(count).sum();
                finished = all - active;
            }
            samples.push(Sample { at: now(), health, finished, active });
            if is_last {
                return samples;
            }
            pause(250);
        }
    }

    /// Causes a fault, and heals it if it does not heal alone.
    fn cause(&self, fault: Fault, service: &mut Child) {
        match fault {
            Fault::KillService => service.kill().unwrap(),
            Fault::StopService => {
                signal("TERM", service.id());
                assert!(ends(service, 10), "TERM ends the service within 10 s");
            }
            Fault::FreezeService => freeze(&[service.id()]),
            Fault::KillWorkers => {
                for pid in self.workers(service.id()) {
                    signal("KILL", pid);
                }
            }
            Fault::FreezeWorkers => freeze(&self.workers(service.id())),
            Fault::ClockNightForward => self.system.shift(NIGHT),
            Fault::ClockNightBack => self.system.shift(-NIGHT),
            Fault::ClockYearForwardAndBack => {
                self.system.shift(YEAR);
                pause(700);
                self.system.shift(0);
            }
            Fault::DiskFull => {
                self.system.fill_disk(true);
                pause(900);
                self.system.fill_disk(false);
            }
            Fault::PipeForInput => self.replace("in-KEY.txt", make_pipe),
            Fault::LinkForInput => self.replace("in-KEY.txt", |path| symlink("nowhere", path).unwrap()),
            Fault::PipeForLog => self.replace("s/flows/fKEY/logs/f.count.map-0.0.log", make_pipe),
            Fault::PipeForOutput => self.replace("count-KEY", make_pipe),
            Fault::LocksHeld => {
                let locks = ["s/tokens.lock", "s/past.history.lock"].map(|name| File::open(self.dir(name)));
                let locks = locks.into_iter().flatten().filter(|lock| lock.try_lock().is_ok());
                let locks: Vec<File> = locks.collect();
                pause(900);
                drop(locks);
            }
        }
    }

    /// The processes that the service has started.
    fn workers(&self, service: u32) -> Vec<u32> {
        let is_client = |line: &str| line.contains(" submit ");
        let alive = self.place.family.alive().into_iter();
        alive.filter(|(pid, line)| *pid != service && !is_client(line)).map(|(pid, _)| pid).collect()
    }

    /// Replaces a file of the last submission for half a second.
    fn replace(&self, path: &str, by: impl Fn(&Path)) {
        let mut submitted = self.submitted.lock().unwrap();
        let Some(key) = submitted.numbers.len().checked_sub(1) else { return };
        submitted.touched.insert(key);
        drop(submitted);
        let path = self.dir(&path.replace("KEY", &key.to_string()));
        let aside = self.dir("aside");
        let _ = fs::remove_dir_all(&aside);
        let was = fs::rename(&path, &aside).is_ok();
        if !path.parent().unwrap().exists() || path.exists() {
            return;
        }
        by(&path);
        pause(500);
        // The service may have put another file there.
        let is_pipe_or_link = path.symlink_metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
        if is_pipe_or_link {
            fs::remove_file(&path).unwrap();
            if was {
                fs::rename(&aside, &path).unwrap();
            }
        }
    }

    /// Waits until each submission has an answer and has finished.
    fn wait_for_all(&self, service: &mut Child) {
        for _ in 0..300 {
            self.submit_unanswered();
            if service.try_wait().unwrap().is_some() {
                *service = self.serve();
            }
            let is_answered = self.submitted.lock().unwrap().numbers.iter().all(Option::is_some);
            if is_answered && get(&self.place.socket, "/readyz").is_some_and(|(status, _)| status == 200) {
                let queue = self.place.done(&["queue", "--format", "json"]);
                let queue: Value = serde_json::from_str(&queue).unwrap();
                if queue["submissions"].as_array().unwrap().is_empty() {
                    return;
                }
            }
            pause(1000);
        }
        panic!("submissions have not finished: {}", self.place.done(&["queue"]));
    }

    /// Each key has one number. Its submission has finished with the right output; where a fault has replaced
    /// its files, it may have failed.
    fn check_submissions(&self) {
        let submitted = self.submitted.lock().unwrap();
        let numbers: BTreeSet<u64> = submitted.numbers.iter().flatten().copied().collect();
        assert_eq!(numbers.len(), submitted.numbers.len(), "each key has its own number");
        for (key, number) in submitted.numbers.iter().enumerate() {
            let shown = self.place.shown(&number.unwrap().to_string());
            if shown["state"] == "finished" {
                for output in ["count", "copy"] {
                    let output = parts(&self.dir(&format!("{output}-{key}")));
                    assert!(output.values().eq([COUNTED.as_bytes()]), "{key}: {output:?}");
                }
                self.check_schedule(key);
            } else {
                assert!(submitted.touched.contains(&key) && shown["state"] == "failed", "{key}: {shown:#}");
            }
        }
    }

    /// The schedule of a finished run is valid: each task has succeeded once.
    fn check_schedule(&self, key: usize) {
        let [workload, schedule] = ["workload", "schedule"].map(|name| format!("s/flows/f{key}/{name}.json"));
        let checked = self.place.ask(&["check", &workload, &schedule]);
        assert_eq!(checked.code, Some(0), "{key}: {}{}", checked.out, checked.err);
    }
}

/// Stops processes for two seconds.
fn freeze(pids: &[u32]) {
    for &pid in pids {
        signal("STOP", pid);
    }
    pause(2000);
    for &pid in pids {
        signal("CONT", pid);
    }
}

/// While there is work, a ready service makes progress, and a service that makes progress is ready.
#[expect(clippy::print_stdout, reason = "the measures of the long check")]
fn check_health(samples: &[Sample]) {
    let (mut seconds, mut stalled, mut longest) = ([0.0; 4], samples[0].at, Duration::ZERO);
    for pair in samples.windows(2) {
        let [before, now] = pair else { unreachable!() };
        let has_progress = now.finished != before.finished || now.active == 0;
        if has_progress || now.health != Health::Ready {
            stalled = now.at;
        }
        longest = longest.max(now.at - stalled);
        seconds[now.health as usize] += (now.at - before.at).as_secs_f64();
        if now.health == Health::Troubled && now.finished != before.finished {
            seconds[3] += (now.at - before.at).as_secs_f64();
        }
    }
    let [ready, troubled, silent, busy] = seconds;
    println!(
        "{ready:.0} s ready, {troubled:.0} s troubled ({busy:.0} s of them with progress), {silent:.0} s without an answer; \
         ready without progress for at most {:.1} s",
        longest.as_secs_f64()
    );
    assert!(longest < GRACE, "ready without progress for {longest:?}");
    assert_eq!(samples.last().map(|last| last.health), Some(Health::Ready));
}
