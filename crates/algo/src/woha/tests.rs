//! Plans against an independent rehearsal, task by task; their binary form; the orders of jobs.

use proptest::prelude::*;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::{Draft, FlowId, Instance, JobId, PhaseId, PhaseKind, Span, Time};
use slackline_policy::Estimates;

use super::generate::{Cap, PlanGenerator, Progress};
use super::plan::{Plan, PlanError, Step};
use super::priorities::JobOrder;
use super::request::Request;

/// A job: its predecessors (the bits below its own), maps, reduces (count, seconds).
type Shape = (u32, (u32, u32), (u32, u32), Option<u32>);

fn phase((tasks, seconds): (u32, u32)) -> Option<PhaseDraft> {
    (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds: f64::from(seconds) }.into())
}

fn instance(jobs: &[Shape], slots: Slots, deadline: Option<f64>) -> Instance {
    let job = |(k, &(bits, map, reduce, most)): (usize, &Shape)| JobDraft {
        id: format!("j{k}"),
        after: (0..k).filter(|i| bits >> i & 1 == 1).map(|i| format!("j{i}")).collect(),
        map: phase(map),
        reduce: phase(reduce),
        max_slots: most.map_or_else(Default::default, slackline_model::draft::PerPhase::both),
        ..JobDraft::default()
    };
    let mut flow = FlowDraft::new("w", jobs.iter().enumerate().map(job).collect());
    flow.deadline = deadline;
    let node = MachineDraft { name: "n".into(), count: 1, speed: 1.0, slots, rack: None };
    Instance::new(&Draft { machines: vec![node], flows: vec![flow], ..Draft::default() }).unwrap()
}

fn request<'a>(instance: &'a Instance, estimates: &'a Estimates) -> Request<'a> {
    Request { instance, flow: FlowId(0), estimates, now: Time::ZERO }
}

fn plan(instance: &Instance, generator: Progress) -> Plan {
    let estimates = Estimates::mean(instance);
    generator.plan(&request(instance, &estimates))
}

const LPF: Progress = Progress { order: JobOrder::LongestPath, cap: Cap::None, pooled: false };

fn workflows() -> impl Strategy<Value = (Vec<Shape>, Slots)> {
    let part = || (0u32..7, 0u32..5);
    let most = prop_oneof![4 => Just(None), 1 => (1u32..4).prop_map(Some)];
    let job = (any::<u32>(), any::<u32>(), part(), part(), most);
    let job = job.prop_map(|(a, b, map, reduce, most)| {
        // A job has a phase.
        (a & b, if map.0 + reduce.0 == 0 { (1, map.1) } else { map }, reduce, most)
    });
    let slots = prop_oneof![
        (1u32..6, 1u32..6).prop_map(|(map, reduce)| Slots::MapReduce { map, reduce }),
        (1u32..8).prop_map(Slots::Generic),
    ];
    (prop::collection::vec(job, 1..9), slots)
}

/// The state of a rehearsal task by task.
struct ByTasks<'a> {
    instance: &'a Instance,
    free: [u32; 2],
    pooled: bool,
    now: u64,
    /// When each started task of each phase ends.
    ends: Vec<Vec<u64>>,
}

impl ByTasks<'_> {
    fn total(&self, p: usize) -> usize {
        self.instance.phases()[PhaseId::from(p)].tasks().unwrap().count() as usize
    }

    /// A phase of no seconds is done when it could start.
    fn is_done(&self, p: usize) -> bool {
        if self.seconds(p) == 0 {
            return self.is_ready(PhaseId::from(p));
        }
        self.ends[p].len() == self.total(p) && self.ends[p].iter().all(|&end| end <= self.now)
    }

    fn seconds(&self, p: usize) -> u64 {
        self.instance.phases()[PhaseId::from(p)].tasks().unwrap().longest().0 / 1_000_000
    }

    fn busy(&self, p: usize) -> usize {
        self.ends[p].iter().filter(|&&end| end > self.now).count()
    }

    fn is_ready(&self, p: PhaseId) -> bool {
        let info = self.instance.phase(p);
        let job = self.instance.job(info.job);
        let before = job.after.iter().flat_map(|&before| self.instance.job(before).phases());
        let maps = job.map.filter(|_| info.kind == PhaseKind::Reduce);
        before.chain(maps).all(|p| self.is_done(p.index()))
    }

    fn may_start(&self, p: PhaseId) -> bool {
        let info = self.instance.phase(p);
        let slot_kind = slot_kind_of(self.instance, p.index(), self.pooled);
        let same = (0..self.ends.len()).filter(|&q| slot_kind_of(self.instance, q, self.pooled) == slot_kind);
        self.is_ready(p)
            && self.seconds(p.index()) > 0
            && self.ends[p.index()].len() < self.total(p.index())
            && same.map(|q| self.busy(q)).sum::<usize>() < self.free[slot_kind] as usize
            && self.busy(p.index()) < info.cap as usize
    }
}

/// List scheduling task by task and second by second: (makespan, start of every task, ascending).
///
/// In every second, each free slot searches the jobs in order for a task that it may run.
fn by_tasks(instance: &Instance, order: &[u32], free: [u32; 2], pooled: bool) -> (u64, Vec<u64>) {
    let n = instance.phases().len();
    let mut all = ByTasks { instance, free, pooled, now: 0, ends: vec![Vec::new(); n] };
    let mut starts = Vec::new();
    loop {
        let phases = || order.iter().flat_map(|&j| instance.job(JobId(j)).phases());
        while let Some(p) = phases().find(|&p| all.may_start(p)) {
            let end = all.now + all.seconds(p.index());
            all.ends[p.index()].push(end);
            starts.push(all.now);
        }
        if (0..n).all(|p| all.is_done(p)) {
            return (all.now, starts);
        }
        all.now += 1;
    }
}

fn slot_kind_of(instance: &Instance, phase: usize, pooled: bool) -> usize {
    let kind = instance.phases()[PhaseId::from(phase)].kind;
    if pooled || !instance.cluster().is_map_reduce() { 0 } else { usize::from(kind == PhaseKind::Reduce) }
}

/// Slots of each kind under a cap.
fn capped(instance: &Instance, cap: u32, pooled: bool) -> [u32; 2] {
    let slot_kinds = instance.cluster().slot_kinds();
    let mut slots = [0; 2];
    for &slot_kind in slot_kinds {
        slots[if pooled { 0 } else { slot_kind.index() }] += instance.cluster().slots(slot_kind);
    }
    slots.map(|n| n.min(cap))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(700))]

    #[test]
    fn plans_are_list_schedules((jobs, slots) in workflows(), cap in 1u32..9, pooled in any::<bool>(), which in 0usize..3) {
        let order = JobOrder::ALL[which];
        let instance = instance(&jobs, slots, None);
        let plan = plan(&instance, Progress { order, cap: Cap::Fixed(cap), pooled });
        let (makespan, starts) = by_tasks(&instance, plan.order(), capped(&instance, plan.cap(), pooled), pooled);
        prop_assert_eq!(plan.tasks(), starts.len() as u64);
        // The requirement at every second is the number of tasks started by then.
        for now in 0..=makespan {
            let expected = starts.iter().filter(|&&at| at <= now).count() as u64;
            let ttd = (makespan - now) * 1_000_000;
            let found = plan.steps().iter().rfind(|step| step.ttd.0 >= ttd).map_or(0, |step| step.req);
            prop_assert_eq!(found, expected, "at {}", now);
        }
        prop_assert_eq!(plan.length().0, makespan * 1_000_000);
        prop_assert!(plan.fits(&instance, FlowId(0)).is_ok());
    }

    #[test]
    fn caps_meet_the_deadline_and_the_scan_is_exact((jobs, slots) in workflows(), deadline in 1u32..60, pooled in any::<bool>()) {
        let instance = instance(&jobs, slots, Some(f64::from(deadline)));
        let budget = Span(u64::from(deadline) * 1_000_000);
        let with = |cap| plan(&instance, Progress { cap, pooled, ..LPF });
        let (full, search, scan) = (with(Cap::None), with(Cap::Search), with(Cap::Scan));
        let feasible = |cap| with(Cap::Fixed(cap)).length() <= budget;
        prop_assert_eq!(full.shortest(), full.length());
        let admission = super::generate::admission(&search, instance.flow(FlowId(0)).deadline, Time::ZERO);
        prop_assert_eq!(admission.feasible, full.length() <= budget);
        if admission.feasible {
            prop_assert!(search.length() <= budget && scan.cap() <= search.cap());
            let first = (1..=full.cap()).find(|&cap| feasible(cap));
            prop_assert_eq!(Some(scan.cap()), first);
        } else {
            prop_assert_eq!((search.cap(), scan.cap()), (full.cap(), full.cap()));
            prop_assert_eq!(search.length(), search.shortest());
        }
    }

    #[test]
    fn plans_come_back_from_their_bytes(
        cap in any::<u32>(), shortest in any::<u64>(), n_jobs in 0usize..40, shuffle in any::<u64>(),
        raw in prop::collection::vec((1u64..1 << 30, 1u64..5000), 0..60), unit in prop_oneof![Just(1), Just(1000), Just(1_000_000u64)],
    ) {
        let mut order: Vec<u32> = (0..n_jobs as u32).collect();
        order.sort_by_key(|&job| (u64::from(job) + 1).wrapping_mul(shuffle | 1));
        let (mut steps, mut ttd, mut req) = (Vec::new(), 60 * unit * (1 << 30), 0);
        for (late, more) in raw {
            ttd -= late * unit;
            req += more;
            steps.push(Step { ttd: Span(ttd), req });
        }
        let plan = Plan::new(cap, Span(shortest), order, steps).unwrap();
        let bytes = plan.encode();
        prop_assert_eq!(Plan::decode(&bytes), Ok(plan));
        for cut in 0..bytes.len() {
            prop_assert!(Plan::decode(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn rubbish_is_no_plan(bytes in prop::collection::vec(any::<u8>(), 0..60), head in any::<bool>()) {
        let bytes = if head { [b"SWP\x01".as_slice(), &bytes].concat() } else { bytes };
        // Bytes that are accepted are a plan: it can be written and read again.
        if let Ok(plan) = Plan::decode(&bytes) {
            prop_assert_eq!(Plan::decode(&plan.encode()), Ok(plan));
        }
    }
}

#[test]
fn damaged_plans_say_what_is_wrong() {
    let plan = plan(&instance(&[(0, (3, 2), (1, 1), None)], Slots::Generic(2), None), LPF);
    let bytes = plan.encode();
    let changed = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        Plan::decode(&bytes).unwrap_err()
    };
    assert_eq!(changed(0, b'X'), PlanError::NoPlan);
    assert_eq!(changed(3, 9).to_string(), "found plan version 9, expected version 1");
    assert_eq!(Plan::decode(&[&bytes[..], &[0]].concat()), Err(PlanError::Trailing(1)));
    assert_eq!(Plan::decode(b"SW"), Err(PlanError::Truncated));
    let twice = Plan::new(1, Span(1), vec![0, 0], Vec::new()).unwrap_err();
    assert_eq!(twice.to_string(), "found a plan whose order is not one of its jobs");
}

#[test]
fn orders_of_jobs() {
    // j0 → j1 → j2; j3 → j4 and j5; j3 is long, j1 and j2 are short.
    let jobs = [
        (0, (1, 1), (0, 0), None),
        (1, (1, 1), (1, 1), None),
        (2, (1, 1), (0, 0), None),
        (0, (1, 9), (1, 9), None),
        (8, (1, 1), (0, 0), None),
        (8, (1, 1), (0, 0), None),
    ];
    let instance = instance(&jobs, Slots::Generic(1), None);
    let estimates = Estimates::mean(&instance);
    let sorted = |order: JobOrder| -> Vec<u32> {
        order.sorted(&request(&instance, &estimates)).into_iter().map(|job| job.0).collect()
    };
    assert_eq!(sorted(JobOrder::HighestLevel), [0, 1, 3, 2, 4, 5]);
    assert_eq!(sorted(JobOrder::LongestPath), [3, 0, 1, 2, 4, 5]);
    assert_eq!(sorted(JobOrder::MaximumParallelism), [3, 0, 1, 2, 4, 5]);
}

/// docs/math/woha.md E5: six maps and a reduce, then a map and two reduces, of one second each.
#[test]
fn woha_sec4a_fig2_plans() {
    let jobs = [(0, (6, 1), (1, 1), None), (1, (1, 1), (2, 1), None)];
    let slots = Slots::MapReduce { map: 3, reduce: 3 };
    let instance = instance(&jobs, slots, Some(9.0));
    let pooled = |cap| plan(&instance, Progress { cap, pooled: true, ..LPF });
    assert_eq!(pooled(Cap::Fixed(6)).length(), Span(4_000_000));
    let two = pooled(Cap::Search);
    assert_eq!((two.cap(), two.length()), (2, Span(6_000_000)));
    assert_eq!(pooled(Cap::Scan), two);
}

/// Section VI-B: a plan for 1,400 tasks stays below 7 KB, even if no two of its times are alike.
#[test]
fn woha_sec6b_plan_sizes() {
    let job = |k: u32| (if k == 0 { 0 } else { 1 << ((k - 1) / 3) }, (30, 11 + k), (12, 97 + 3 * k), None);
    let jobs: Vec<Shape> = (0..33).map(job).collect();
    let instance = instance(&jobs, Slots::MapReduce { map: 64, reduce: 32 }, Some(4800.0));
    let few = plan(&instance, Progress { cap: Cap::Search, ..LPF });
    assert_eq!(few.tasks(), 33 * 42);
    assert!(few.encode().len() < 2000, "{} bytes", few.encode().len());
    let steps = (0..1400u64).map(|k| Step { ttd: Span(4_800_000_000 - k * 3_391_237 - k * k), req: k + 1 });
    let worst = Plan::new(1, Span(0), (0..33).collect(), steps.collect()).unwrap();
    assert!(worst.encode().len() < 7000, "{} bytes", worst.encode().len());
}
