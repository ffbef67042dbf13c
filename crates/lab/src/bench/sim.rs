//! The simulator on generated Facebook days of growing size, under FIFO (and Fair for comparison): tasks and
//! events a second of processor time, rows of the schedule, memory; uniform phases and single durations.

use slackline_algo::baseline::{Fair, Fifo, ShareUnit};
use slackline_model::{Instance, Seed};
use slackline_policy::{Config, Policy};
use slackline_sim::{Options, Sim};
use slackline_trace::generate;

use super::measure::{busy, hash, median, peak_mib};
use super::size::Size;

/// One day to simulate.
struct Day {
    maps: u32,
    jobs: u32,
    durations: &'static str,
    policy: &'static str,
    repeats: usize,
}

/// Prints a row for each day.
pub fn run(size: Size) {
    let day = |maps: u32, durations, policy, repeats| {
        let jobs = (maps / 667).max(10);
        Day { maps, jobs, durations, policy, repeats }
    };
    let days = match size {
        Size::Small => vec![day(20_000, "phase", "fifo", 1), day(5_000, "each", "fair", 1)],
        Size::Large => vec![
            day(100_000, "phase", "fifo", 5),
            day(1_000_000, "phase", "fifo", 5),
            day(16_000_000, "phase", "fifo", 3),
            day(100_000, "each", "fifo", 5),
            day(1_000_000, "each", "fifo", 3),
            day(10_000_000, "each", "fifo", 1),
            day(100_000, "phase", "fair", 3),
            day(1_000_000, "phase", "fair", 3),
            day(16_000_000, "phase", "fair", 1),
        ],
    };
    println!(
        "{:<6} {:<6} {:>11} {:>9} {:>8} {:>12} {:>12} {:>10} {:>9}  hash",
        "policy", "tasks", "tasks", "rows", "seconds", "tasks/s", "events/s", "decisions", "peak MiB"
    );
    for day in &days {
        simulate(day);
    }
}

fn simulate(day: &Day) {
    let settings =
        [("maps", day.maps.to_string()), ("jobs", day.jobs.to_string()), ("durations", day.durations.into())];
    let settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
    let generator = generate::generator("facebook-day").expect("the generator is registered");
    let draft = generator.generate(&settings, Seed(1)).expect("the parameters are valid");
    let instance = Instance::new(&draft).expect("generated workloads are valid");
    drop(draft);
    let mut seconds = Vec::new();
    let mut last = None;
    for _ in 0..day.repeats {
        drop(last.take());
        let mut policy: Box<dyn Policy> = match day.policy {
            "fair" => Box::new(Fair::new(ShareUnit::Job)),
            _ => Box::new(Fifo::new(ShareUnit::Job)),
        };
        let mut engine = Sim::new(&instance, Options::exact());
        let config = Config::plain();
        let (run, took) = busy(|| slackline_policy::run(&instance, policy.as_mut(), &mut engine, config));
        seconds.push(took);
        last = Some(run);
    }
    let run = last.expect("at least one repeat");
    let (tasks, took) = (instance.n_tasks(), median(seconds));
    println!(
        "{:<6} {:<6} {tasks:>11} {:>9} {took:>8.3} {:>12.0} {:>12.0} {:>10} {:>9}  {:016x}",
        day.policy,
        day.durations,
        run.tasks.len(),
        tasks as f64 / took,
        run.figures.reports as f64 / took,
        run.figures.decisions,
        peak_mib().map_or_else(|| "?".to_owned(), |mib| mib.to_string()),
        hash(&run.tasks),
    );
}
