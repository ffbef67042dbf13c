//! DMRS: the linear program by number of jobs, the list by number of tasks.
//!
//! Targets: 100,000 jobs in 0.15 s and 1,000,000 in 2 s on one core; 1,000,000 tasks on 1,000 machines
//! of 10 speeds in 2 s. `crates/lab/reference/highs_lp.py` solves the same programs (form `paper`) by HiGHS.

use slackline_algo::dmrs::list::{self, List, Run, Slot};
use slackline_algo::dmrs::lp::{self, Form, Job, Machines, Side, System};
use slackline_algo::dmrs::order::{self, Key};
use slackline_model::{PhaseId, Span, Time};

use super::measure::{Draw, median, timed};
use super::size::Size;

pub fn run(size: Size) {
    let (repeats, jobs, tasks): (usize, &[usize], &[u32]) = match size {
        Size::Small => (1, &[1_000], &[10_000]),
        Size::Large => (5, &[200, 500, 1_000, 10_000, 100_000, 1_000_000], &[10_000, 100_000, 1_000_000]),
    };
    println!("{:<7} {:>9} {:>24} {:>9} {:>9}  hash", "form", "jobs", "value", "lp s", "order s");
    for &n in jobs {
        for (name, form) in [("paper", Form::Paper), ("strong", Form::Strong)] {
            program(name, form, n, repeats);
        }
    }
    println!("{:<7} {:>9} {:>9} {:>9}  hash", "runs", "tasks", "seconds", "tasks/s");
    for &n in tasks {
        for (name, equal) in [("50", 50), ("1", 1)] {
            placing(name, equal, n, repeats);
        }
    }
}

fn side(draw: &mut Draw) -> Side {
    let tasks = 1 + draw.below(60) as u32;
    let longest = 1.0 + draw.below(1_000_000) as f64 / 1e4;
    Side { work: longest * f64::from(tasks) * 0.8, longest, tasks }
}

/// 1,000 machines of 10 speeds.
fn speeds() -> impl Iterator<Item = (f64, u32)> {
    (1..=10).map(|speed| (f64::from(speed), 100))
}

fn program(name: &str, form: Form, n: usize, repeats: usize) {
    let mut draw = Draw(1);
    // Released over the time the cluster needs for all of it, so that floors matter.
    let span = n as u64 * 400_000;
    let job = |_| Job {
        weight: 1.0 + draw.below(400) as f64 / 100.0,
        release: draw.below(span) as f64 / 1e6,
        map: side(&mut draw),
        reduce: side(&mut draw),
    };
    let jobs: Vec<Job> = (0..n).map(job).collect();
    let system = System::shared(Machines::new(speeds()));
    let (mut solving, mut sorting, mut value, mut hash) = (Vec::new(), Vec::new(), 0.0, 0);
    for _ in 0..repeats {
        let (solution, took) = timed(|| lp::solve(&jobs, &system, form));
        solving.push(took);
        value = solution.value;
        let (order, took) = timed(|| order::order(&jobs, &system, &solution, Key::OwnRate));
        sorting.push(took);
        hash = order.iter().fold(0, |hash: u64, &j| (hash ^ j as u64).wrapping_mul(0x100_0000_01b3));
    }
    let (lp, order) = (median(solving), median(sorting));
    println!("{name:<7} {n:>9} {value:>24.6} {lp:>9.6} {order:>9.6}  {hash:016x}");
}

/// Lists `n` tasks, `equal` neighbours of the same size, in jobs of 100 maps and 50 reduces or so.
fn placing(name: &str, equal: u32, n: u32, repeats: usize) {
    let mut draw = Draw(2);
    let mut jobs = Vec::new();
    let mut left = n;
    while left > 0 {
        let mut phase = |id: u32, most: u32| {
            let count = (most / 2 + draw.below(u64::from(most)) as u32).min(left);
            left -= count;
            let run = |first: u32| Run {
                first,
                count: equal.min(count - first),
                span: Span(1_000_000 + draw.below(100_000_000)),
            };
            let runs = (0..count).step_by(equal as usize).map(run).collect();
            let mut phase =
                list::Phase { id: PhaseId(id), slot_kind: 0, cap: u32::MAX, running: Vec::new(), runs };
            phase.sort();
            phase
        };
        let id = 2 * jobs.len() as u32;
        let phases = vec![phase(id, 100), phase(id + 1, 50)];
        jobs.push(list::Job { ready: Time::ZERO, phases });
    }
    let slots = || {
        let slot = |(speed, first): (f64, u32)| {
            (first..first + 100).map(move |number| Slot { number, speed, free: Time::ZERO })
        };
        speeds().enumerate().map(|(k, (speed, _))| (speed, 100 * k as u32)).flat_map(slot).collect()
    };
    let (mut seconds, mut hash) = (Vec::new(), 0);
    for _ in 0..repeats {
        let (again, took) = timed(|| {
            let mut list = List::new([slots(), Vec::new()]);
            let mut hash = 0u64;
            for job in &jobs {
                list.place(job, &mut |task| {
                    hash = (hash ^ task.end.0 ^ u64::from(task.slot)).wrapping_mul(0x100_0000_01b3);
                });
            }
            hash
        });
        seconds.push(took);
        hash = again;
    }
    let median = median(seconds);
    println!("{name:<7} {n:>9} {median:>9.4} {:>9.0}  {hash:016x}", f64::from(n) / median);
}
