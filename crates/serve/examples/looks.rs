//! How long forecasts take, by the number of running flows.
//!
//! ```console
//! cargo run --release --package slackline-serve --example looks -- auto:ends=no 32 20 10 100 300 1000
//! cargo run --release --package slackline-serve --example looks -- auto:ends=no auto 32 20 10 100
//! ```
//!
//! With two policies it says how far apart their completions are. The arguments are the policy that is looked
//! ahead with, slots, how many looks are made, and numbers of live flows. A flow has two to four jobs and 20
//! to 200 tasks; a third of all flows have begun. Looks are those that follow a submission, half of which ask
//! for a deadline that cannot hold, so that it is also looked for what would make it hold.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "it is a measurement on a terminal")]
#![expect(clippy::disallowed_methods, reason = "it measures by the wall clock")]

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use slackline::run::{self, NewRun, RunEvent, RunningAttempt, TaskId};
use slackline::{PolicySpec, Registry};
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Combine, Metric, Objective, PhaseKind, Seed, Time, WallTime};
use slackline_serve::SECOND;
use slackline_serve::service::durations::SharedHistogram;
use slackline_serve::service::forecaster::{ForecastRequest, Forecaster};
use slackline_serve::state::{ForecastResult, StateEvent};
use slackline_task::base::clock;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A run: its only flow, when that should be done, and how many maps of its first job are done and running.
struct Run {
    workload: Draft,
    deadline: Option<f64>,
    done: u32,
    running: u32,
}

fn job(id: String, after: Option<String>, tasks: (u32, u32), rng: &mut ChaCha8Rng) -> JobDraft {
    let mut phase = |tasks: u32, most: u64| {
        let seconds = random::integer(rng, 5, most) as f64;
        (tasks > 0).then(|| TasksDraft::Each(vec![seconds; tasks as usize]).into())
    };
    let (map, reduce) = (phase(tasks.0, 60), phase(tasks.1, 90));
    JobDraft { id, after: after.into_iter().collect(), map, reduce, ..JobDraft::default() }
}

impl Run {
    fn drawn(rng: &mut ChaCha8Rng, flows: u64) -> Self {
        let jobs = random::integer(rng, 2, 4);
        let tasks = random::integer(rng, 20, 200) as u32;
        let each = tasks / jobs as u32;
        let made = |k: u64, rng: &mut ChaCha8Rng| {
            let reduces = each / 5;
            job(format!("j{k}"), (k > 0).then(|| format!("j{}", k - 1)), (each - reduces, reduces), rng)
        };
        let jobs = (0..jobs).map(|k| made(k, rng)).collect();
        let mut flow = FlowDraft::new("f", jobs);
        // A flow takes the slots for about two minutes; the later half of all is late for some.
        let deadline = random::chance(rng, 0.5).then(|| random::integer(rng, 60, 120 * flows + 60) as f64);
        flow.deadline = deadline;
        let maps = each - each / 5;
        let has_begun = random::chance(rng, 1.0 / 3.0);
        let done = if has_begun { maps / 3 } else { 0 };
        let workload = Draft { flows: vec![flow], ..Draft::default() };
        Self { workload, deadline, done, running: u32::from(has_begun) }
    }

    fn with_deadline(mut self, deadline: f64) -> Self {
        self.deadline = Some(deadline);
        self.workload.flows[0].deadline = self.deadline;
        self
    }

    fn happened(&self, rng: &mut ChaCha8Rng) -> Vec<RunEvent> {
        let map = |task| TaskId { job: 0, phase: PhaseKind::Map, task };
        let done = (0..self.done).map(|task| RunEvent::TaskFinished {
            task: map(task),
            seconds: random::integer(rng, 5, 60) as f64,
        });
        let running = (self.done..self.done + self.running)
            .map(|task| RunEvent::AttemptStarted(RunningAttempt::unnumbered(map(task), 0)));
        done.chain(running).collect()
    }
}

fn machines(slots: u32) -> Vec<MachineDraft> {
    let slots = Slots::Generic(slots);
    vec![MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None }]
}

/// A predictor running, and when its service began.
struct Asked {
    looks: Sender<ForecastRequest>,
    results: Receiver<ForecastResult>,
    began: WallTime,
}

impl Asked {
    fn new(policy: &PolicySpec, slots: u32) -> Self {
        let (looks, to_look) = channel();
        let (tell, results) = channel();
        let began = WallTime(clock::unix_micros());
        let outlook = run::Forecaster::new(policy.clone(), machines(slots), objective(), 1.0);
        let forecaster = Forecaster::new(outlook, policy.clone(), began, SharedHistogram::default());
        let tell = move |event| {
            if let StateEvent::Predicted(outlooked) = event {
                tell.send(outlooked).unwrap();
            }
        };
        std::thread::spawn(move || forecaster.work(&to_look, &tell));
        Self { looks, results, began }
    }

    fn track(&self, number: u64, run: &Run, rng: &mut ChaCha8Rng) {
        let deadlines = run.deadline.map(|at| ("f".to_owned(), self.began.after_seconds(at)));
        self.looks
            .send(ForecastRequest::Track {
                number,
                name: format!("{number}"),
                started: self.began,
                followed: Box::new(NewRun::of(&run.workload)),
                standings: BTreeMap::new(),
                deadlines: deadlines.into_iter().collect(),
            })
            .unwrap();
        for what in run.happened(rng) {
            self.looks.send(ForecastRequest::RunEvent(number, Time::ZERO, what)).unwrap();
        }
    }

    fn look(&self, number: u64) -> f64 {
        self.looks.send(ForecastRequest::Predict(Some(number))).unwrap();
        self.results.recv().unwrap().took as f64 / SECOND as f64
    }
}

fn objective() -> Objective {
    Objective::new(Metric::Response, Combine::Sum)
}

fn tell(what: &str, mut took: Vec<f64>) {
    took.sort_by(f64::total_cmp);
    let at = |part: f64| 1e3 * took[((took.len() as f64 * part) as usize).min(took.len() - 1)];
    println!("  {what}: p50 {:.1} ms, p99 {:.1} ms", at(0.5), at(0.99));
}

fn timed<T>(what: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let made = what();
    (made, began.elapsed().as_secs_f64())
}

/// How long the parts of a look take by themselves.
fn parts(policy: &PolicySpec, slots: u32, runs: &[Run], looks: u64, rng: &mut ChaCha8Rng) {
    let mut outlook = run::Forecaster::new(policy.clone(), machines(slots), objective(), 1.0);
    for (number, run) in (1..).zip(runs) {
        outlook.track(number, NewRun::of(&run.workload), 0.0, BTreeMap::new());
        for what in run.happened(rng) {
            outlook.note(number, Time::ZERO, &what);
        }
    }
    let mut took: [Vec<f64>; 5] = Default::default();
    for k in 0..looks {
        let now = Time(k * SECOND);
        let (ahead, copied) = timed(|| outlook.ahead(now, None));
        let ((_, kept), expected) = timed(|| ahead.resolved().unwrap());
        let ((_, samples), drawn) = timed(|| outlook.samples(now, None, policy.clone()).unwrap());
        let all = 0..run::Forecaster::SAMPLES;
        let ((), simulated) = timed(|| all.for_each(|k| assert!(samples.completions(k, &kept).is_ok())));
        let ahead = ahead.keeping(&kept);
        let (_, without) = timed(|| ahead.without(|name| name.starts_with("1/")).completions().unwrap());
        [copied, expected, drawn, simulated, without].into_iter().zip(&mut took).for_each(|(s, t)| t.push(s));
    }
    let names =
        ["what is left", "what is expected", "samplers", "samples, drawn and simulated", "without one"];
    names.into_iter().zip(took).for_each(|(name, took)| tell(name, took));
}

/// How far completions under two policies are apart, over as many times as looks.
fn apart(policies: &[PolicySpec; 2], slots: u32, (flows, looks): (u64, u64)) {
    let (mut off, mut sums, mut deadlines) = (Vec::new(), [0.0; 2], [0; 2]);
    for k in 0..looks {
        let mut rng = random::rng(Seed(2 + k), "looks", flows);
        let runs: Vec<Run> = (0..flows).map(|_| Run::drawn(&mut rng, flows)).collect();
        let mut outlook = run::Forecaster::new(policies[0].clone(), machines(slots), objective(), 1.0);
        for (number, run) in (1..).zip(&runs) {
            outlook.track(number, NewRun::of(&run.workload), 0.0, BTreeMap::new());
            for what in run.happened(&mut rng) {
                outlook.note(number, Time::ZERO, &what);
            }
        }
        let [a, b] = policies
            .each_ref()
            .map(|policy| outlook.ahead(Time::ZERO, None).under(policy.clone()).completions().unwrap());
        for (number, run) in (1..).zip(&runs) {
            let (a, b) = (a[&format!("{number}/f")], b[&format!("{number}/f")]);
            off.push((a - b).abs() / b);
            sums = [sums[0] + a, sums[1] + b];
            let Some(deadline) = run.deadline else { continue };
            deadlines[usize::from((a <= deadline) == (b <= deadline))] += 1;
        }
    }
    off.sort_by(f64::total_cmp);
    let at = |part: f64| 100.0 * off[((off.len() as f64 * part) as usize).min(off.len() - 1)];
    let [other, same] = deadlines;
    println!("{flows} live flows on {slots} slots, {} and {}", policies[0].spec(), policies[1].spec());
    println!(
        "  completions are apart by {:.1} % of the time until then (median), {:.1} % (nine in ten)",
        at(0.5),
        at(0.9)
    );
    println!(
        "  {:.1} % later in sum; {same} of {} deadlines are said to hold or not by both",
        100.0 * (sums[0] / sums[1] - 1.0),
        same + other
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let policies = args.iter().take_while(|text| text.parse::<u64>().is_err());
    let policies: Vec<PolicySpec> = policies.map(|text| Registry::standard().parse(text).unwrap()).collect();
    let numbers: Vec<u64> = args[policies.len()..].iter().map(|text| text.parse().unwrap()).collect();
    let [slots, looks, ref sizes @ ..] = numbers[..] else { panic!("expected slots, looks and sizes") };
    for &flows in sizes {
        let policy = match policies.as_slice() {
            [policy] => policy.clone(),
            [a, b] => {
                apart(&[a.clone(), b.clone()], slots as u32, (flows, looks));
                continue;
            }
            _ => panic!("expected one policy or two"),
        };
        let mut rng = random::rng(Seed(1), "looks", flows);
        let runs: Vec<Run> = (0..flows).map(|_| Run::drawn(&mut rng, flows)).collect();
        println!("{flows} live flows on {slots} slots, {}", policy.spec());
        parts(&policy, slots as u32, &runs, looks, &mut rng);
        let asked = Asked::new(&policy, slots as u32);
        for (number, run) in (1..).zip(&runs[1..]) {
            asked.track(number, run, &mut rng);
        }
        let mut took: [Vec<f64>; 2] = Default::default();
        for k in 0..looks {
            let number = flows + k;
            let is_late = k % 2 == 1;
            let run = Run::drawn(&mut rng, flows).with_deadline(if is_late { 10.0 } else { 1e7 });
            asked.track(number, &run, &mut rng);
            took[usize::from(is_late)].push(asked.look(number));
            asked.looks.send(ForecastRequest::Forget(number)).unwrap();
        }
        let [holds, late] = took;
        tell("a look, the deadline holds", holds);
        tell("a look, the deadline does not hold", late);
    }
}
