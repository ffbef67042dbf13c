//! LP-MapReduce against a linear program with all 2^N rows, Lemma 2 and Theorem 1 on random instances,
//! and every plan before the judge.

mod simplex;

use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PerPhase, PhaseDraft, TasksDraft};
use slackline_model::schedule::{Clock, FlowResult, FlowRow};
use slackline_model::{Combine, Draft, FlowId, Instance, Metric, Objective, Schedule, Time};

use super::lp::{self, Form, Job, Machines, Side, Solution, System};
use super::order::{self, Key};
use super::plan::{Config, Plan, plan};
use super::variant::Variant;
use crate::registry::Refused;

/// A small generator; the tests need variety, not quality.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }

    fn side(&mut self) -> Side {
        let tasks = self.below(6);
        let sizes: Vec<u32> = (0..tasks).map(|_| self.below(9)).collect();
        Side {
            work: f64::from(sizes.iter().sum::<u32>()),
            longest: f64::from(sizes.iter().copied().max().unwrap_or(0)),
            tasks,
        }
    }

    /// A job; one in three has release 0, one in five weight 0, and ties are frequent.
    fn job(&mut self) -> Job {
        let release = f64::from(self.below(3) * self.below(20));
        let weight = f64::from(self.below(5));
        Job { weight, release, map: self.side(), reduce: self.side() }
    }

    fn machines(&mut self) -> Machines {
        let classes = 1 + self.below(3);
        Machines::new((0..classes).map(|_| ([1.0, 2.0, 8.0, 0.5][self.below(4) as usize], 1 + self.below(3))))
    }

    fn system(&mut self) -> System {
        if self.below(4) == 0 {
            System::map_reduce(self.machines(), self.machines())
        } else {
            System::shared(self.machines())
        }
    }
}

/// Right-hand sides of Eq. (2) or its strong counterpart, and Eq. (7), written down again from the text.
fn rows(jobs: &[Job], system: &System, form: Form) -> (Vec<f64>, Vec<f64>) {
    let (first, second) = (&system.map, &system.reduce);
    let rates = |job: &Job| {
        if form == Form::Paper {
            let both = system.all().rate(job.map.tasks + job.reduce.tasks);
            (both, both)
        } else {
            (first.rate(job.map.tasks), second.rate(job.reduce.tasks))
        }
    };
    let length = |side: &Side, rate: f64, machines: &Machines| {
        if side.work == 0.0 { 0.0 } else { (side.work / rate).max(side.longest / machines.fastest()) }
    };
    let floor = |job: &Job| {
        let (m, r) = rates(job);
        job.release + length(&job.map, m, first) + length(&job.reduce, r, second)
    };
    let constant = |job: &Job| {
        let (m, r) = rates(job);
        let square = |work: f64, rate: f64| if work == 0.0 { 0.0 } else { work * work / (2.0 * rate) };
        match form {
            Form::Paper => square(job.work(), m),
            Form::Strong => {
                let wait = job.map.work * length(&job.reduce, r, second);
                square(job.map.work, m) + wait + square(job.reduce.work, r)
            }
        }
    };
    (jobs.iter().map(floor).collect(), jobs.iter().map(constant).collect())
}

/// The program with a row for every set, by simplex.
fn dense(jobs: &[Job], system: &System, form: Form) -> f64 {
    let (floors, constants) = rows(jobs, system, form);
    let working: Vec<usize> = (0..jobs.len()).filter(|&j| jobs[j].work() > 0.0).collect();
    // z_j = p_j (C_j − l_j) ≥ 0.
    let cost: Vec<f64> = working.iter().map(|&j| jobs[j].weight / jobs[j].work()).collect();
    let needed: Vec<f64> = (1u32..1 << working.len())
        .map(|set| {
            let members = || working.iter().enumerate().filter(|(k, _)| set >> k & 1 == 1).map(|(_, &j)| j);
            let work: f64 = members().map(|j| jobs[j].work()).sum();
            let fixed: f64 = members().map(|j| constants[j] - jobs[j].work() * floors[j]).sum();
            work * work / (2.0 * system.all().capacity()) + fixed
        })
        .collect();
    let floor: f64 = jobs.iter().zip(&floors).map(|(job, floor)| job.weight * floor).sum();
    floor + simplex::cover(&cost, &needed)
}

#[test]
fn lp_value_is_that_of_all_sets() {
    let mut draw = Draw(1);
    let mut largest = 0.0f64;
    for case in 0..500 {
        let system = draw.system();
        let n = 1 + case % 9;
        let jobs: Vec<Job> = (0..n).map(|_| draw.job()).collect();
        for form in [Form::Paper, Form::Strong] {
            let value = lp::solve(&jobs, &system, form).value;
            let expected = dense(&jobs, &system, form);
            let error = (value - expected).abs() / expected.abs().max(1.0);
            largest = largest.max(error);
            assert!(error < 1e-9, "case {case} {form:?}: {value}, simplex {expected}");
        }
        let solution = lp::solve(&jobs, &system, Form::Strong);
        let violated = lp::most_violated(&jobs, &system, Form::Strong, &solution.completion);
        assert!(violated.is_none_or(|(_, by)| by < 1e-9));
    }
    println!("largest relative error {largest:e}");
}

#[test]
fn the_strong_form_is_never_below_the_papers() {
    let mut draw = Draw(2);
    for _ in 0..300 {
        let system = System::shared(draw.machines());
        let jobs: Vec<Job> = (0..6).map(|_| draw.job()).collect();
        let [paper, strong] = [Form::Paper, Form::Strong].map(|form| lp::solve(&jobs, &system, form).value);
        assert!(strong >= paper * (1.0 - 1e-12), "{strong} < {paper}");
    }
}

fn phase(seconds: &[u32]) -> Option<PhaseDraft> {
    let each = || TasksDraft::Each(seconds.iter().map(|&s| f64::from(s) / 7.0).collect());
    (!seconds.is_empty()).then(|| each().into())
}

impl Draw {
    fn sizes(&mut self, least: u32) -> Vec<u32> {
        let n = least + self.below(7);
        let most = 1 + self.below(60);
        (0..n).map(|_| 1 + self.below(most)).collect()
    }

    /// A random instance of one-job flows.
    fn instance(&mut self, slots: &dyn Fn(u32) -> Slots, caps: bool) -> Instance {
        let released = self.below(2) == 0;
        let groups = 1 + self.below(3);
        let machines = (0..groups).map(|k| MachineDraft {
            name: format!("g{k}"),
            count: 1 + self.below(3),
            speed: [1.0, 3.0, 8.0, 0.7][self.below(4) as usize],
            slots: slots(1 + self.below(2)),
            rack: None,
        });
        let machines = machines.collect();
        let flows = (0..=self.below(9)).map(|k| {
            let map = self.sizes(0);
            let reduce = self.sizes(u32::from(map.is_empty()));
            let cap = (caps && self.below(2) == 0).then(|| 1 + self.below(3));
            let max_slots = PerPhase { map: cap, reduce: cap };
            let job = JobDraft {
                id: "job".into(),
                map: phase(&map),
                reduce: phase(&reduce),
                max_slots,
                ..JobDraft::default()
            };
            let release = if released { 0.0 } else { f64::from(self.below(50)) / 3.0 };
            FlowDraft {
                release,
                weight: f64::from(self.below(5)),
                ..FlowDraft::new(format!("f{k}"), vec![job])
            }
        });
        let flows = flows.collect();
        let objective = Objective::new(Metric::Completion, Combine::Sum);
        Instance::new(&Draft { machines, objective, flows, ..Draft::default() }).unwrap()
    }
}

/// The plan as the judge reads it.
fn judged(instance: &Instance, plan: &Plan) {
    let flows = plan.completions.iter_enumerated().map(|(flow, &completion)| {
        let info = instance.flow(flow);
        let of_flow = plan.placed.iter().filter(|task| instance.flow_of(task.phase) == flow);
        FlowRow {
            flow,
            release: info.release.seconds(),
            start: of_flow.map(|task| task.start).min().map(Time::seconds),
            completion: Some(completion.seconds()),
            cost: Some(info.cost.eval(completion.seconds())),
            status: FlowResult::Done,
        }
    });
    let schedule = Schedule {
        policy: "dmrs".into(),
        minima: false,
        clock: Clock::Exact,
        slowstart: 1.0,
        profile: None,
        segments: Vec::new(),
        objective: instance.objective(),
        cost: Some(plan.cost),
        lower_bound: plan.lower_bound,
        gap: plan.lower_bound.filter(|&b| b > 0.0).map(|bound| (plan.cost - bound) / bound),
        metrics: Vec::new(),
        flows: flows.collect(),
        tasks: plan.tasks.clone(),
        ams: Vec::new(),
        allocations: Vec::new(),
    };
    slackline_judge::check(instance, &schedule).unwrap();
}

const KEYS: [Key; 3] = [Key::OwnRate, Key::FullRate, Key::Completion];

#[test]
fn plans_are_feasible_and_keep_lemma_2_and_theorem_1() {
    let mut draw = Draw(3);
    let (mut worst, mut sum, mut n, mut tightest) = (0.0f64, 0.0, 0, 0.0f64);
    for case in 0..300 {
        let instance = draw.instance(&Slots::Generic, false);
        let jobs: Vec<Job> = instance.jobs().keys().map(|job| super::model::lp_job(&instance, job)).collect();
        let cluster = instance.cluster();
        let system = super::model::system(cluster, |group| cluster.groups()[group].speed);
        for form in [Form::Paper, Form::Strong] {
            for key in KEYS {
                let plan = plan(&instance, Config { form, key, ..Config::default() }).unwrap();
                judged(&instance, &plan);
                let value = lp::solve(&jobs, &system, form).value;
                let ratio = order::ratio(&jobs, &system);
                assert_eq!(plan.ratio, Some(ratio));
                assert!(plan.cost <= ratio * value + 1e-4, "case {case}: {} > {ratio} · {value}", plan.cost);
                let order: Vec<usize> = plan.order.iter().map(|flow| flow.index()).collect();
                for (&latest, &flow) in order::latest(&jobs, &system, &order).iter().zip(&plan.order) {
                    let completion = plan.completions[flow].seconds();
                    assert!(completion <= latest + 1e-4, "case {case}: Lemma 2, {completion} > {latest}");
                    tightest = tightest.max(completion / latest);
                }
                let bound = plan.lower_bound.unwrap();
                assert!(bound <= plan.cost + 1e-4);
                if bound > 0.0 && (form, key) == (Form::Strong, Key::OwnRate) {
                    worst = worst.max(plan.cost / bound);
                    sum += plan.cost / bound;
                    n += 1;
                }
            }
        }
    }
    println!(
        "cost / bound: mean {:.3}, max {worst:.3}; Lemma 2 reached to {tightest:.3}",
        sum / f64::from(n)
    );
}

#[test]
fn caps_and_typed_slots_are_kept() {
    let mut draw = Draw(4);
    for case in 0..200 {
        let map_reduce = |n| Slots::MapReduce { map: n, reduce: 1 };
        let generic = Slots::Generic;
        let slots: &dyn Fn(u32) -> Slots = if case % 2 == 0 { &map_reduce } else { &generic };
        let instance = draw.instance(slots, true);
        let plan = plan(&instance, Config::default()).unwrap();
        judged(&instance, &plan);
        assert!(plan.lower_bound.unwrap() <= plan.cost + 1e-4);
    }
}

#[test]
fn plans_of_the_baselines_are_feasible_and_above_the_bound() {
    let mut draw = Draw(5);
    let mut sums = [0.0; 3];
    for case in 0..200 {
        let map_reduce = |n| Slots::MapReduce { map: n, reduce: 1 };
        let generic = Slots::Generic;
        let slots: &dyn Fn(u32) -> Slots = if case % 2 == 0 { &map_reduce } else { &generic };
        let instance = draw.instance(slots, case % 3 == 0);
        for (k, variant) in [Variant::Full, Variant::Identical, Variant::MapOnly].into_iter().enumerate() {
            let plan = plan(&instance, Config { variant, ..Config::default() }).unwrap();
            judged(&instance, &plan);
            assert!(plan.lower_bound.unwrap() <= plan.cost + 1e-4, "case {case} {variant:?}");
            assert!(variant == Variant::Full || plan.ratio.is_none());
            sums[k] += plan.cost;
        }
    }
    println!("cost of identical {:.3}, of map-only {:.3} times dmrs", sums[1] / sums[0], sums[2] / sums[0]);
    assert!(sums[0] < sums[1]);
    assert!(sums[0] < sums[2]);
}

#[test]
fn a_task_goes_where_it_ends_first() {
    // Speeds 8 and 1: four tasks of 8 s; the fast machine does each in 1 s, the slow one in 8 s.
    let machine = |name: &str, speed| MachineDraft {
        name: name.into(),
        count: 1,
        speed,
        slots: Slots::Generic(1),
        rack: None,
    };
    let maps = TasksDraft::Uniform { tasks: 9, seconds: 8.0 };
    let reduces = TasksDraft::Uniform { tasks: 1, seconds: 16.0 };
    let job = JobDraft {
        id: "job".into(),
        map: Some(maps.into()),
        reduce: Some(reduces.into()),
        ..JobDraft::default()
    };
    let draft = Draft {
        machines: vec![machine("slow", 1.0), machine("fast", 8.0)],
        flows: vec![FlowDraft::new("f", vec![job])],
        ..Draft::default()
    };
    let plan = plan(&Instance::new(&draft).unwrap(), Config::default()).unwrap();
    // Seven maps on the fast machine; the eighth would end at 8 on either and leaves it free.
    let on_slow: Vec<u32> = plan.placed.iter().filter(|task| task.slot == 0).map(|task| task.task).collect();
    assert_eq!(on_slow, [7]);
    assert_eq!(plan.completions[FlowId(0)], Time::from_seconds_nearest(10.0));
}

#[test]
fn flows_of_several_jobs_are_refused() {
    let job = |id: &str| JobDraft { id: id.into(), map: phase(&[7]), ..JobDraft::default() };
    let machine =
        MachineDraft { name: "n".into(), count: 1, speed: 1.0, slots: Slots::Generic(1), rack: None };
    let flows = vec![FlowDraft::new("two", vec![job("a"), job("b")])];
    let instance = Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap();
    let refusal = plan(&instance, Config::default()).unwrap_err();
    assert_eq!(refusal, Refused::SeveralJobs { policy: "dmrs", flow: "two".into(), jobs: 2 });
}

#[test]
fn each_key_sorts_by_its_own_formula() {
    let system = System::shared(Machines::new([(1.0, 2)]));
    let job = |work: f64, tasks: u32| {
        let map = Side { work, longest: work / f64::from(tasks), tasks };
        Job { weight: 1.0, release: 0.0, map, reduce: Side::default() }
    };
    // One task runs at rate 1 of 2: own rates give 10 - 8/2, 8 - 4/4, 9 - 0.4/4; the full rate 10 - 8/4.
    let jobs = [job(8.0, 1), job(4.0, 4), job(0.4, 4)];
    let solution = Solution { completion: vec![10.0, 8.0, 9.0], value: 27.0 };
    let sorted = |key| order::order(&jobs, &system, &solution, key);
    assert_eq!(sorted(Key::OwnRate), [0, 1, 2]);
    assert_eq!(sorted(Key::FullRate), [1, 0, 2]);
    assert_eq!(sorted(Key::Completion), [1, 2, 0]);
}
