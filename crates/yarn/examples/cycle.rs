//! Measures the cost of a control cycle: `cycle [APPLICATIONS] [CYCLES] [POLICY]`, by default 1,000
//! applications, 300 cycles of each kind, EDF.
//!
//! A cycle is all that `slackline hadoop attach` does four times a second: a look at the cluster, the driver and its
//! policy, the table and the priorities, and the account of how things are. The cluster is a mock in its own
//! process, so that processor time and memory are the engine's alone. It has two slots for each application
//! beside that of its ApplicationMaster, and fills them as the table says. Between two cycles no task ends
//! (`quiet`), one in forty does, as tasks of ten seconds would (`usual`), or one in four (`busy`).

#![expect(clippy::print_stdout, reason = "this is a program")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use slackline_algo::policies::POLICIES;
use slackline_model::params::Settings;
use slackline_model::{History, Objective, Time};
use slackline_policy::{Config, Learning};
use slackline_yarn::attach::{AttachEvent, AttachOptions, Cluster, PARAMS, Stage, Status, Watcher};
use slackline_yarn::mock::{Mock, State};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What happens between two cycles: a name, and one of how many running tasks ends.
const KINDS: [(&str, usize); 3] = [("quiet", 0), ("usual", 40), ("busy", 4)];

/// Cycles that are not counted: in the first ones everything is new.
const FIRST: usize = 20;

/// Maps of each application.
const MAPS: u32 = 2000;

/// The processor time that this process has had.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The median, what 95 % are below, and the largest, in milliseconds.
fn spread(times: &mut [Duration]) -> String {
    times.sort();
    let millis =
        |part: usize| times.get((times.len() - 1) * part / 100).map_or(0.0, |time| time.as_secs_f64() * 1e3);
    format!("{:6.1} {:6.1} {:6.1}", millis(50), millis(95), millis(100))
}

/// The memory that this process has, MiB.
fn memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The other process: for each line of standard input that says n, one of n running tasks ends, and what the
/// table allows starts.
fn cluster(apps: usize, table: &Path) -> Outcome<()> {
    let mock = Mock::start()?;
    mock.with(|state| {
        // A host has two slots.
        state.hosts = (0..apps * 3 / 2).map(|n| (format!("host{n}"), true)).collect();
        for (name, value) in [
            ("slackline.table", &*table.display().to_string()),
            ("yarn.cluster.max-application-priority", "1000000"),
            ("yarn.scheduler.minimum-allocation-mb", "512"),
        ] {
            state.properties.insert(name.to_owned(), value.to_owned());
        }
        for n in 0..apps {
            let app = state.submit("root.jobs", MAPS, 10);
            app.tags = format!("slackline.flow=f{n},slackline.deadline=+{}", 3600 + n);
            app.start();
        }
    });
    println!("{}", mock.address());
    for line in std::io::stdin().lines() {
        let one_of: usize = line?.parse()?;
        mock.with(|state| {
            state.requests.clear();
            end_some(state, one_of);
            fill(state, 2 * apps, table);
        });
        println!("moved");
    }
    Ok(())
}

/// How many tasks of each application run.
fn running(state: &State) -> impl Iterator<Item = usize> + '_ {
    state.apps.values().map(|app| app.attempts.iter().filter(|attempt| attempt.state == "RUNNING").count())
}

/// One of `running` tasks ends, and ended applications are forgotten.
fn end_some(state: &mut State, one_of: usize) {
    let counts: Vec<usize> = running(state).collect();
    let mut owed = 0;
    for (app, count) in state.apps.values_mut().zip(counts).filter(|_| one_of > 0) {
        owed += count;
        while owed >= one_of {
            owed -= one_of;
            app.end_one("SUCCEEDED", 2);
        }
    }
}

/// Starts tasks on free slots, by priority, as many as the table allows.
fn fill(state: &mut State, slots: usize, table: &Path) {
    let text = fs::read_to_string(table).unwrap_or_default();
    let row = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.nth(1)?.parse::<i64>().ok()?))
    };
    let caps: BTreeMap<String, i64> = text.lines().filter_map(row).collect();
    let counts: Vec<usize> = running(state).collect();
    let mut free = slots.saturating_sub(counts.iter().sum());
    let mut apps: Vec<_> = state.apps.values_mut().zip(counts).collect();
    apps.sort_by_key(|(app, _)| std::cmp::Reverse(app.priority));
    for (app, count) in apps {
        let cap = caps.get(&app.id.to_string()).map_or(0, |&cap| usize::try_from(cap).unwrap_or(usize::MAX));
        for n in count..cap.min(count + free) {
            let host = format!("host{}", (app.id.number as usize + n) % (slots * 3 / 4));
            free -= usize::from(app.grant(&host, 2));
        }
    }
}

struct Other {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Other {
    fn start(apps: usize, table: &Path) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--cluster", &apps.to_string()])
            .arg(table)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(Self { process, said, address: line.trim().to_owned() })
    }

    fn go_on(&mut self, one_of: usize) -> Outcome<()> {
        writeln!(self.process.stdin.as_mut().ok_or("no standard input")?, "{one_of}")?;
        self.said.read_line(&mut String::new())?;
        Ok(())
    }
}

/// Measures from one account of how things are to the next.
struct Measure {
    other: Other,
    cycles: usize,
    seen: usize,
    since: (Duration, Instant),
    processor_times: Vec<Duration>,
    wall_times: Vec<Duration>,
    first_memory: u64,
    stop: Arc<AtomicBool>,
    problem: Option<Box<dyn Error>>,
}

impl Measure {
    fn count(&mut self, status: &Status) -> Outcome<()> {
        let (kind, cycle) = (self.seen / (FIRST + self.cycles), self.seen % (FIRST + self.cycles));
        if cycle > FIRST || cycle == 0 && self.seen > 0 {
            self.processor_times.push(processor().saturating_sub(self.since.0));
            self.wall_times.push(self.since.1.elapsed());
        }
        if cycle == 0 && kind > 0 {
            self.say(KINDS[kind - 1].0, status);
        }
        let Some((_, one_of)) = KINDS.get(kind) else {
            self.stop.store(true, Ordering::SeqCst);
            return Ok(());
        };
        if cycle == FIRST {
            self.first_memory = memory();
        }
        self.seen += 1;
        self.other.go_on(*one_of)?;
        self.since = (processor(), Instant::now());
        Ok(())
    }

    fn say(&mut self, kind: &str, status: &Status) {
        let (processor, wall) = (spread(&mut self.processor_times), spread(&mut self.wall_times));
        let tasks = status.applications.iter().flat_map(|app| app.phases).flatten();
        let (running, done) =
            tasks.fold((0, 0), |(running, done), of| (running + of.running, done + of.done));
        let driven = status.applications.iter().filter(|app| app.stage == Stage::Runs).count();
        println!(
            "{kind:>7}: processor {processor}, in all {wall}; memory {} to {} MiB; {driven} driven, {running} tasks run, {done} are \
             done",
            self.first_memory,
            memory()
        );
        self.processor_times.clear();
        self.wall_times.clear();
    }
}

impl Watcher for Measure {
    fn happened(&mut self, _: Time, what: &AttachEvent) {
        if let AttachEvent::Troubled(Some(reason)) = what {
            println!("{reason}");
        }
    }

    fn status(&mut self, status: &Status) {
        if let Err(error) = self.count(status) {
            self.problem = Some(error);
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

fn measure(apps: usize, cycles: usize, policy: &str) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let table: PathBuf = directory.path().join("table");
    let other = Other::start(apps, &table)?;
    let settings = Settings::parse(PARAMS, [("memory", "512MiB")])?;
    let wish = AttachOptions {
        cycle: Duration::from_millis(1),
        every: Duration::ZERO,
        ..AttachOptions::new(vec!["jobs".to_owned()])
    };
    let cluster = Cluster::ask(&other.address, &settings, wish)?;
    let entry = POLICIES.iter().find(|entry| entry.name == policy).ok_or("found no such policy")?;
    let machines = cluster.empty().cluster();
    let mut policy = (entry.make)(machines, &Objective::default(), &Settings::defaults(entry.params));
    let learning = Learning::new(machines, &History::new()).guessing();
    let config = Config { attempts_max: u16::MAX, learning: Some(learning), ..Config::plain() };
    let stop = Arc::new(AtomicBool::new(false));
    println!(
        "{apps} applications of {MAPS} maps on {} slots, {}, {cycles} cycles; medians, 95 % and largest in ms:",
        3 * apps,
        entry.name
    );
    let mut measure = Measure {
        other,
        cycles,
        seen: 0,
        since: (processor(), Instant::now()),
        processor_times: Vec::new(),
        wall_times: Vec::new(),
        first_memory: 0,
        stop: stop.clone(),
        problem: None,
    };
    cluster.drive(&mut *policy, config, stop, &mut measure)?;
    drop(measure.other.process.stdin.take());
    measure.other.process.wait()?;
    measure.problem.map_or(Ok(()), Err)
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    if arguments.first().is_some_and(|first| first == "--cluster") {
        return cluster(number(1, 1)?, Path::new(arguments.get(2).ok_or("no table")?));
    }
    measure(number(0, 1000)?, number(1, 300)?.max(1), arguments.get(2).map_or("edf", |name| name))
}
