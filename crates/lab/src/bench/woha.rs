//! WOHA: AssignTask calls per second by data structure and number of flows (the paper's Fig. 13a), and the
//! cost of plans (Fig. 13b).
//!
//! A call is Algorithm 2: advance to now, take the first flow, count the task. Time passes as on a cluster at
//! the target rate (a million calls a second for 10,000 flows, 300,000 for a million). So requirements fall
//! due between the calls, one every ten seconds per flow, as in Fig. 3. At the start each flow is partly
//! done, as far as its plan requires. A flow whose tasks are all assigned is replaced by a new one. Seconds
//! are processor time.
//!
//! Children: `skip_list` (the paper's double skip list is two of them); `btree` (a simple baseline).

mod btree;
mod skip_list;
#[cfg(test)]
mod tests;

use slackline_algo::woha::lag::{Lags, LagsOn, Measure, Naive, Rank};
use slackline_algo::woha::{
    Cap, Goal, JobOrder, Plan, PlanGenerator, Progress, Request, Step, WorkflowScheduler,
};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::{Draft, FlowId, Instance, SlotKind, Span, Time};
use slackline_policy::Estimates;

use self::btree::BTree;
use self::skip_list::SkipList;
use super::measure::{Draw, busy, median, timed};
use super::size::Size;

#[derive(Clone, Copy)]
struct Case {
    flows: u32,
    /// Calls in a second of the cluster's time.
    rate: u64,
    calls: u64,
    repeats: usize,
}

pub fn run(size: Size) {
    let (repeats, cases): (usize, &[Case]) = match size {
        Size::Small => (1, &[Case { flows: 100, rate: 1_000_000, calls: 2_000, repeats: 1 }]),
        Size::Large => (
            3,
            &[
                Case { flows: 10_000, rate: 1_000_000, calls: 2_000_000, repeats: 3 },
                Case { flows: 1_000_000, rate: 300_000, calls: 1_000_000, repeats: 1 },
            ],
        ),
    };
    println!(
        "{:<6} {:<6} {:>9} {:>10} {:>12} {:>9}  hash",
        "lag", "list", "flows", "calls", "calls/s", "finished"
    );
    for &case in cases {
        for measure in [Measure::Time, Measure::Tasks] {
            // Recomputing a million lags for every call would take days.
            let calls = (2_000_000 / u64::from(case.flows)).max(5).min(case.calls);
            let few = Case { calls, repeats: 1, ..case };
            assign("naive", measure, few, || Naive::by(measure));
            assign("btree", measure, case, || LagsOn::<BTree<Time>, BTree<Rank>>::by(measure));
            assign("skip", measure, case, || LagsOn::<SkipList<Time>, SkipList<Rank>>::by(measure));
            assign("heap", measure, case, || Lags::by(measure));
        }
    }
    plans(repeats);
}

impl Draw {
    /// Submits a plan of a few dozen steps, about ten seconds apart. It started at most `age` of its length
    /// before `now`, with the tasks started that it required so far. Returns the number of remaining tasks.
    fn submit(&mut self, scheduler: &mut dyn WorkflowScheduler, flow: usize, now: u64, age: f64) -> u64 {
        let n = 10 + self.below(30);
        let length = n * STEP;
        let (mut ttd, mut req) = (length, 0);
        let mut steps = Vec::with_capacity(n as usize);
        for _ in 0..n {
            req += 1 + self.below(8);
            steps.push(Step { ttd: Span(ttd), req });
            ttd -= 1 + self.below(STEP);
        }
        let left = (length as f64 * (1.0 - age)) as u64;
        let begun = steps[..steps.len() - 1].iter().rfind(|step| step.ttd.0 >= left);
        let started = begun.map_or(0, |step| step.req);
        let due = Time(now + left + self.below(STEP / 4));
        let plan = Plan::new(1, Span::ZERO, vec![0], steps).expect("times fall and tasks rise");
        let flow = FlowId::from(flow);
        scheduler.submit(flow, plan, Goal::Deadline(due));
        scheduler.enter(flow, SlotKind::Any);
        if started > 0 {
            scheduler.assigned(flow, u32::try_from(started).expect("a few hundred tasks"));
        }
        req - started
    }
}

/// Most microseconds between two requirements.
const STEP: u64 = 20_000_000;

fn assign<S: WorkflowScheduler>(name: &str, measure: Measure, case: Case, make: impl Fn() -> S) {
    let Case { flows, rate, calls, repeats } = case;
    let (mut seconds, mut last) = (Vec::new(), (0, 0));
    for _ in 0..repeats {
        let mut draw = Draw(1);
        let mut scheduler = make();
        let mut left = Vec::with_capacity(flows as usize);
        for flow in 0..flows as usize {
            let age = draw.below(1000) as f64 / 1000.0;
            left.push(draw.submit(&mut scheduler, flow, 0, age));
        }
        scheduler.advance(Time::ZERO);
        let (result, took) = busy(|| {
            let (mut hash, mut replaced) = (0u64, 0);
            for call in 0..calls {
                let now = call * 1_000_000 / rate;
                scheduler.advance(Time(now));
                let turn = scheduler.first(SlotKind::Any, &mut |_| true).expect("no flow leaves");
                scheduler.assigned(turn.flow, 1);
                hash = (hash ^ u64::from(turn.flow.0)).wrapping_mul(0x100_0000_01b3);
                let flow = turn.flow.index();
                left[flow] -= 1;
                if left[flow] == 0 {
                    replaced += 1;
                    scheduler.finish(turn.flow);
                    left[flow] = draw.submit(&mut scheduler, flow, now, 0.0);
                }
            }
            (hash, replaced)
        });
        seconds.push(took);
        last = result;
    }
    let (hash, replaced) = last;
    let lag = format!("{measure:?}").to_lowercase();
    println!(
        "{lag:<6} {name:<6} {flows:>9} {calls:>10} {:>12.0} {replaced:>9}  {hash:016x}",
        calls as f64 / median(seconds)
    );
}

/// Plans of a flow of 1,400 tasks: time and size for each cap rule, durations in whole seconds and in
/// microseconds.
fn plans(repeats: usize) {
    println!(
        "{:<7} {:<8} {:>6} {:>6} {:>5} {:>6} {:>9}",
        "cap", "times", "tasks", "slots", "cap", "bytes", "ms"
    );
    for (times, unit) in [("seconds", 1.0), ("exact", 0.987_653)] {
        for (map, reduce) in [(64, 32), (240, 240)] {
            let instance = flow_of_1400_tasks(unit, map, reduce);
            let estimates = Estimates::mean(&instance);
            let request =
                Request { instance: &instance, flow: FlowId(0), estimates: &estimates, now: Time::ZERO };
            for (name, cap) in [("none", Cap::None), ("search", Cap::Search), ("scan", Cap::Scan)] {
                let generator = Progress { order: JobOrder::LongestPath, cap, pooled: false };
                let mut seconds = Vec::new();
                let mut plan = generator.plan(&request);
                for _ in 0..20 * repeats {
                    let (again, took) = timed(|| generator.plan(&request));
                    plan = again;
                    seconds.push(took);
                }
                println!(
                    "{name:<7} {times:<8} {:>6} {:>6} {:>5} {:>6} {:>9.3}",
                    plan.tasks(),
                    map + reduce,
                    plan.cap(),
                    plan.encode().len(),
                    median(seconds) * 1e3
                );
            }
        }
    }
}

/// 33 jobs, each after one of the three before it or so, maps of tens of seconds and reduces of hundreds.
fn flow_of_1400_tasks(unit: f64, map: u32, reduce: u32) -> Instance {
    let mut draw = Draw(7);
    let mut phase = |tasks: u32, low: u64, high: u64| {
        let seconds = (low + draw.below(high - low)) as f64 * unit;
        Some(TasksDraft::Uniform { tasks, seconds: (seconds * 1e6).round() / 1e6 }.into())
    };
    let job = |k: u32| JobDraft {
        id: format!("j{k}"),
        after: k.checked_sub(1 + k % 3).map(|before| format!("j{before}")).into_iter().collect(),
        map: phase(35, 10, 100),
        reduce: phase(8, 100, 400),
        ..JobDraft::default()
    };
    let mut flow = FlowDraft::new("w", (0..33).map(job).collect());
    flow.deadline = Some(9000.0);
    let slots = Slots::MapReduce { map, reduce };
    let node = MachineDraft { name: "n".into(), count: 1, speed: 1.0, slots, rack: None };
    Instance::new(&Draft { machines: vec![node], flows: vec![flow], ..Draft::default() })
        .expect("the flow is valid")
}
