//! What a control cycle costs: `cycle [APPLICATIONS] [CYCLES] [WIDTH]`, by default 1,000 applications of interest, 50 cycles,
//! 2 tasks of each at once.
//!
//! The cluster is a mock in a process of its own, so that processor time and memory are the observer's alone. Between
//! two cycles every application ends a task and starts another (`moving`), every tenth one does (`usual`), or none (`quiet`).

#![expect(clippy::print_stdout, reason = "this is a program")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use slackline_yarn::mock::Mock;
use slackline_yarn::observe::Rhythm;
use slackline_yarn::{Address, Observer, ResourceManager, Row, Settings, Table};

/// The processor time that this process has had.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The median and the largest, in milliseconds.
fn spread(times: &mut [Duration]) -> String {
    times.sort();
    let millis = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    format!("{:6.1} ({:6.1})", millis(times.get(times.len() / 2)), millis(times.last()))
}

/// The most memory that this process ever had, as the system says it.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .map_or("unknown".to_owned(), |kb| kb.trim().to_owned())
}

/// The other process: a mock cluster that moves every nth application on for each line of standard input that says n.
fn cluster(apps: usize, width: usize) -> Result<(), Box<dyn Error>> {
    let mock = Mock::start()?;
    mock.with(|state| {
        for _ in 0..apps {
            let app = state.submit("root.jobs", 1_000_000, 10);
            app.start();
            for n in 0..width {
                app.grant(if n % 2 == 0 { "127.0.0.2" } else { "127.0.0.3" }, 1);
            }
        }
    });
    println!("{}", mock.address());
    for line in std::io::stdin().lines() {
        let every: usize = line?.parse()?;
        mock.with(|state| {
            state.requests.clear();
            for app in state.apps.values_mut().step_by(every.max(1)).filter(|_| every > 0) {
                app.end_one("SUCCEEDED", 2);
                app.grant("127.0.0.4", 2);
            }
        });
        println!("moved");
    }
    Ok(())
}

struct Cluster {
    process: Child,
    said: BufReader<std::process::ChildStdout>,
    address: Address,
}

impl Cluster {
    fn start(apps: usize, width: usize) -> Result<Self, Box<dyn Error>> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--cluster", &apps.to_string(), &width.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(process.stdout.take().ok_or("no standard output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        Ok(Self { process, said, address: Address::parse(line.trim())? })
    }

    fn move_every(&mut self, every: usize) -> Result<(), Box<dyn Error>> {
        writeln!(self.process.stdin.as_mut().ok_or("no standard input")?, "{every}")?;
        self.said.read_line(&mut String::new())?;
        Ok(())
    }
}

fn measure(apps: usize, cycles: usize, width: usize) -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::start(apps, width)?;
    let manager = ResourceManager::new(&cluster.address, Settings::default());
    let directory = tempfile::tempdir()?;
    let mut table = Table::open(&directory.path().join("table"), Duration::from_secs(10))?;
    let mut observer = Observer::new(Rhythm::default());
    println!(
        "{apps} applications of interest, {width} tasks of each at once, {cycles} cycles, medians (and largest) in ms:"
    );
    for (name, every) in [("quiet", 0), ("usual", 10), ("moving", 1)] {
        let (mut processor_times, mut wall_times, mut changes) = (Vec::new(), Vec::new(), 0);
        for n in 0..=cycles {
            cluster.move_every(every)?;
            let (began, had) = (Instant::now(), processor());
            let seen = observer.cycle(&manager, Duration::from_secs(n as u64), |_| true)?;
            let rows = observer
                .snapshot()
                .watched
                .keys()
                .map(|app| (Some(*app), Row { maps: Some(2), ..Row::default() }));
            table.write(&rows.collect())?;
            // The first one of all sees everything anew.
            if n > 0 {
                processor_times.push(processor().saturating_sub(had));
                wall_times.push(began.elapsed());
                changes += seen.len();
            }
        }
        println!(
            "{name:>7}: {} of processor time, {} in all, {} changes a cycle",
            spread(&mut processor_times),
            spread(&mut wall_times),
            changes / cycles
        );
    }
    println!("peak memory {}", peak());
    drop(cluster.process.stdin.take());
    cluster.process.wait()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    if arguments.first().is_some_and(|first| first == "--cluster") {
        return cluster(number(1, 1)?, number(2, 1)?);
    }
    measure(number(0, 1000)?, number(1, 50)?.max(1), number(2, 2)?)
}
