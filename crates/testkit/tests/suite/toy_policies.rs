//! Toy policies which show that the policy trait suits all five papers: targets re-planned per epoch (FLEX,
//! FlowFlex), priorities that change at every assignment (WOHA), queues on machines of mixed speeds (DMRS), a
//! fixed order (the Johnson orders). Also tests delay scheduling in the assignment layer.

use crate::arb;
use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, PerPhase, SplitDraft, TasksDraft};
use slackline_model::{FlowId, Instance, Key, MachineId, PhaseId, Schedule, Seed, SlotKind, Span, Time};
use slackline_policy::{Action, Ask, Event, Grant, Policy, ReadyQueue, Style, View};
use slackline_sim::{Crash, Crashes};
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances::{generic, job, machines};

/// FLEX, FlowFlex: every epoch, slots in proportion to the work left.
struct Epochs {
    every: Span,
    next: Option<Time>,
}

impl Policy for Epochs {
    fn name(&self) -> &'static str {
        "epochs"
    }

    fn style(&self) -> Style {
        Style::Targets
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        let ready = events.iter().any(|event| matches!(event, Event::PhaseReady(_)));
        if !ready && self.next.is_none_or(|next| view.now < next) {
            return;
        }
        for &slot_kind in view.instance.cluster().slot_kinds() {
            let phases: Vec<PhaseId> = view.state.ready(slot_kind).collect();
            let total: f64 = phases.iter().map(|&phase| view.work_left(phase)).sum();
            let slots = f64::from(view.state.alive(slot_kind));
            for phase in phases {
                let share = if total > 0.0 { view.work_left(phase) / total } else { 1.0 };
                out.push(Action::Target { phase, slots: slots * share });
            }
        }
        let next = view.now + self.every;
        self.next = Some(next);
        out.push(Action::WakeAt(next));
    }
}

/// WOHA: serves the flow furthest behind its own progress, and decides again after every task.
#[derive(Default)]
struct Lag {
    arrived: Vec<(FlowId, Time)>,
}

impl Policy for Lag {
    fn name(&self) -> &'static str {
        "lag"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        for event in events {
            if let Event::FlowArrived(flow) = *event {
                self.arrived.push((flow, view.now));
            }
            self.arrived.retain(|&(flow, _)| event.over() != Some(flow));
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let can = |&p: &PhaseId| view.runnable(p) > 0 && !ask.skip.contains(&p);
        let lag = |&(flow, since): &(FlowId, Time)| {
            let phases = view.instance.flow(flow).jobs().flat_map(|job| view.instance.job(job).phases());
            let begun: u32 = phases.map(|p| view.phase(p).running() + view.phase(p).done()).sum();
            view.now.since(since).seconds() - f64::from(begun)
        };
        let mut flows: Vec<(FlowId, Time)> = self.arrived.clone();
        flows.sort_by(|a, b| lag(b).total_cmp(&lag(a)).then(a.0.cmp(&b.0)));
        let ready: Vec<PhaseId> = view.state.ready(ask.slot_kind).filter(can).collect();
        let of = |flow| ready.iter().copied().find(|&p| view.instance.flow_of(p) == flow);
        let phase = flows.iter().find_map(|&(flow, _)| of(flow))?;
        Some(Grant { phase, tasks: 1 })
    }
}

/// DMRS: every task in the queue of the machine on which it would end first, in topological order.
#[derive(Default)]
struct Lists {
    arrived: Vec<FlowId>,
}

impl Lists {
    fn place_all(&self, view: &View<'_>, out: &mut Vec<Action>) {
        out.push(Action::ClearPlacements);
        let cluster = view.instance.cluster();
        // When each slot will be free, by slot kind and machine.
        let mut free: Vec<(SlotKind, MachineId, f64, f64)> = Vec::new();
        for &slot_kind in cluster.slot_kinds() {
            for slot in 0..cluster.slots(slot_kind) {
                free.push((
                    slot_kind,
                    cluster.machine_of(slot_kind, slot).0,
                    cluster.speed_of(slot_kind, slot).0,
                    0.0,
                ));
            }
        }
        let jobs = view.instance.topological().filter(|&j| self.arrived.contains(&view.instance.job(j).flow));
        for phase in jobs.flat_map(|job| view.instance.job(job).phases()) {
            let slot_kind = view.instance.slot_kind_of(phase);
            for task in (0..view.phase(phase).total()).filter(|&task| view.phase(phase).is_pending(task)) {
                let seconds = view.estimates.task[phase].seconds();
                let ends = |slot: &(SlotKind, MachineId, f64, f64)| slot.3 + seconds / slot.2;
                let here = free.iter_mut().filter(|slot| slot.0 == slot_kind);
                let best = here.min_by(|a, b| ends(a).total_cmp(&ends(b)).then(a.1.cmp(&b.1))).unwrap();
                best.3 = ends(best);
                out.push(Action::Place { machine: best.1, phase, first: task, count: 1 });
            }
        }
    }
}

impl Policy for Lists {
    fn name(&self) -> &'static str {
        "lists"
    }

    fn style(&self) -> Style {
        Style::Placements
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        let before = self.arrived.len();
        self.arrived.extend(events.iter().filter_map(|event| match event {
            Event::FlowArrived(flow) => Some(*flow),
            _ => None,
        }));
        if self.arrived.len() > before || events.iter().any(|e| matches!(e, Event::TasksLost { .. })) {
            self.place_all(view, out);
        }
    }
}

/// Johnson's rule: jobs with less map than reduce time first, by map time; then the others, by reduce
/// time, longest first.
#[derive(Default)]
struct Johnson {
    queue: ReadyQueue<(bool, Key)>,
}

impl Policy for Johnson {
    fn name(&self) -> &'static str {
        "johnson"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _out: &mut Vec<Action>) {
        let time = |phase: Option<PhaseId>| phase.map_or(0.0, |phase| view.instance.phase_alone(phase));
        self.queue.update(events, view, |phase| {
            let job = view.instance.job(view.instance.phase(phase).job);
            let (map, reduce) = (time(job.map), time(job.reduce));
            if map < reduce { (false, Key::new(map)) } else { (true, Key::new(-reduce)) }
        });
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

fn toys() -> Vec<Box<dyn Policy>> {
    vec![
        Box::new(Epochs { every: Span(500_000), next: None }),
        Box::new(Lag::default()),
        Box::new(Lists::default()),
        Box::new(Johnson::default()),
    ]
}

fn maps(tasks: u32, seconds: f64) -> TasksDraft {
    TasksDraft::Uniform { tasks, seconds }
}

fn single(id: &str, job: JobDraft) -> FlowDraft {
    FlowDraft::new(id, vec![job])
}

/// Runs, judges, and expects every flow to be done.
fn run(instance: &Instance, policy: &mut dyn Policy, setup: &Setup) -> Schedule {
    let (schedule, report) =
        harness::judged(instance, policy, setup).unwrap_or_else(|e| panic!("{e}\n{setup:?}"));
    assert_eq!(report.failed, 0, "{}: flows were not done\n{setup:?}", schedule.policy);
    schedule
}

fn completion(schedule: &Schedule, flow: usize) -> f64 {
    schedule.flows[flow].completion.unwrap()
}

#[test]
fn all_styles_finish_random_workloads_under_all_events() {
    for seed in 0..60 {
        let instance = Instance::new(&arb::draft_of(Seed(1000 + seed))).unwrap().cut(Span(4_000_000));
        let last = MachineId(instance.cluster().n_machines() - 1);
        let crash = |at: u64, back: u64| Crash { machine: last, at: Time(at), back: Some(Time(back)) };
        for slowstart in [1.0, 0.4] {
            for crashes in [
                Crashes::Never,
                Crashes::Script(vec![crash(2_000_000, 4_500_000), crash(9_000_000, 9_500_001)]),
            ] {
                for heartbeat in [Span::ZERO, Span(1_700_000)] {
                    let mut setup = Setup { slowstart, ..Setup::plain() };
                    setup.sim.crashes = crashes.clone();
                    setup.sim.heartbeat = heartbeat;
                    for mut policy in toys() {
                        // Machine queues promise an order, and early reduces at their heads would wait
                        // for maps that are queued behind others.
                        if policy.style() == Style::Placements && slowstart < 1.0 {
                            continue;
                        }
                        run(&instance, policy.as_mut(), &setup);
                    }
                }
            }
        }
    }
}

#[test]
fn targets_change_at_epochs() {
    // Two slots. While a has 8 s of work left and b 2 s, a holds more. Only the epoch changes this, no event.
    let draft = Draft {
        machines: generic(4),
        flows: vec![
            single("a", job("j", &[], Some(maps(12, 1.0)), None)),
            single("b", job("j", &[], Some(maps(4, 1.0)), None)),
        ],
        ..Draft::default()
    };
    let instance = Instance::new(&draft).unwrap();
    let schedule = run(&instance, &mut Epochs { every: Span(500_000), next: None }, &Setup::plain());
    // 3 : 1 throughout, so both end together.
    assert_eq!([completion(&schedule, 0), completion(&schedule, 1)], [4.0, 4.0]);
}

#[test]
fn priorities_change_at_every_assignment() {
    let draft = Draft {
        machines: generic(1),
        flows: vec![
            single("a", job("j", &[], Some(maps(3, 1.0)), None)),
            single("b", job("j", &[], Some(maps(3, 1.0)), None)),
        ],
        ..Draft::default()
    };
    let instance = Instance::new(&draft).unwrap();
    let schedule = run(&instance, &mut Lag::default(), &Setup::plain());
    // They take turns: a b a b a b.
    assert_eq!([completion(&schedule, 0), completion(&schedule, 1)], [5.0, 6.0]);
}

#[test]
fn placements_use_fast_machines() {
    let draft = Draft {
        machines: vec![
            machines("fast", 1, 4.0, Slots::Generic(1)),
            machines("slow", 1, 1.0, Slots::Generic(1)),
        ],
        flows: vec![single("f", job("j", &[], Some(maps(5, 4.0)), None))],
        ..Draft::default()
    };
    let instance = Instance::new(&draft).unwrap();
    let schedule = run(&instance, &mut Lists::default(), &Setup::plain());
    // Four tasks of a second each on the fast machine, one of four seconds on the slow one.
    assert_eq!(completion(&schedule, 0), 4.0);
}

#[test]
fn a_machine_whose_next_task_waits_for_a_cap_is_woken() {
    let mut capped = job("j", &[], Some(maps(2, 3.0)), None);
    capped.max_slots = PerPhase::both(1);
    let draft = Draft {
        machines: vec![machines("m", 2, 1.0, Slots::Generic(1))],
        flows: vec![single("f", capped)],
        ..Draft::default()
    };
    let instance = Instance::new(&draft).unwrap();
    assert_eq!(completion(&run(&instance, &mut Lists::default(), &Setup::plain()), 0), 6.0);
}

#[test]
fn a_policy_that_plans_by_epochs_gives_up_on_dead_machines() {
    let flow = single("f", job("j", &[], Some(maps(2, 3.0)), None));
    let draft = Draft { machines: generic(1), flows: vec![flow], ..Draft::default() };
    let instance = Instance::new(&draft).unwrap();
    let mut setup = Setup::plain();
    let dead = Crash { machine: MachineId(0), at: Time(4_000_000), back: None };
    setup.sim.crashes = Crashes::Script(vec![dead]);
    let mut policy = Epochs { every: Span(500_000), next: None };
    let (_, report) = harness::judged(&instance, &mut policy, &setup).unwrap();
    assert_eq!(report.failed, 1);
}

#[test]
fn seven_of_a_hundred_maps_are_seven_hundredths() {
    let slots = Slots::MapReduce { map: 1, reduce: 1 };
    let flow = single("f", job("j", &[], Some(maps(100, 1.0)), Some(maps(1, 1.0))));
    let draft = Draft { machines: vec![machines("m", 1, 1.0, slots)], flows: vec![flow], ..Draft::default() };
    let instance = Instance::new(&draft).unwrap();
    // 0.07 times 100 is a little above 7 in floating point.
    let setup = Setup { slowstart: 0.07, ..Setup::plain() };
    let schedule = run(&instance, &mut Johnson::default(), &setup);
    let reduce = instance.jobs()[slackline_model::JobId(0)].reduce.unwrap();
    let row = schedule.tasks.rows().iter().find(|row| row.phase == reduce).unwrap();
    assert_eq!((row.start, row.end), (Time(7_000_000), Time(101_000_000)));
}

#[test]
fn a_fixed_order_is_johnsons() {
    // Two machines in series: (5, 2), (1, 6), (3, 3) are best as 2, 3, 1 with a makespan of 12.
    let one = |id: &str, map: f64, reduce: f64| {
        single(id, job("j", &[], Some(maps(1, map)), Some(maps(1, reduce))))
    };
    let draft = Draft {
        machines: vec![machines("m", 1, 1.0, Slots::MapReduce { map: 1, reduce: 1 })],
        flows: vec![one("a", 5.0, 2.0), one("b", 1.0, 6.0), one("c", 3.0, 3.0)],
        ..Draft::default()
    };
    let instance = Instance::new(&draft).unwrap();
    let schedule = run(&instance, &mut Johnson::default(), &Setup::plain());
    assert_eq!([0, 1, 2].map(|k| completion(&schedule, k)), [12.0, 7.0, 10.0]);
}

/// A flow of splits with hosts, on two machines of one slot, with something else on the first.
fn local(splits: &[(u32, f64, &str)], besides: Option<f64>) -> Instance {
    let splits = splits.iter().map(|&(count, seconds, host)| SplitDraft {
        count,
        seconds,
        hosts: Some(host.to_owned()).filter(|host| !host.is_empty()).into_iter().collect(),
    });
    let mut flows = vec![single("local", job("j", &[], Some(TasksDraft::Splits(splits.collect())), None))];
    if let Some(seconds) = besides {
        flows.insert(0, single("besides", job("j", &[], Some(maps(1, seconds)), None)));
    }
    let machines = vec![machines("m", 2, 1.0, Slots::Generic(1))];
    Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap()
}

fn fifo(instance: &Instance, wait: u64) -> Schedule {
    let policy = slackline::Registry::standard().parse("fifo:by=flow").unwrap();
    let setup = Setup { locality_wait: Span(wait * 1_000_000), ..Setup::plain() };
    run(instance, policy.build(instance.cluster(), &instance.objective()).as_mut(), &setup)
}

/// (task, machine, start in seconds) of the flow called local.
fn placed(instance: &Instance, schedule: &Schedule) -> Vec<(u32, u32, f64)> {
    let mine = |phase| instance.flow(instance.flow_of(phase)).id == "local";
    let rows = schedule.tasks.rows().iter().filter(|row| mine(row.phase));
    let each = rows.flat_map(|row| {
        let slots = schedule.tasks.places(row).iter().flat_map(|p| p.first..p.end());
        slots.enumerate().map(|(k, slot)| {
            (
                row.first + k as u32,
                instance.cluster().machine_of(SlotKind::Any, slot).0.0,
                row.start.seconds(),
            )
        })
    });
    each.collect()
}

#[test]
fn all_tasks_are_local_when_slots_allow_it() {
    let instance = local(&[(3, 1.0, "m-1"), (4, 1.0, "m-0"), (1, 1.0, "m-1")], None);
    let schedule = fifo(&instance, 2);
    for (task, machine, start) in placed(&instance, &schedule) {
        let host = u32::from(!(3..7).contains(&task));
        assert_eq!(machine, host, "task {task} at {start}");
    }
    assert_eq!(completion(&schedule, 0), 4.0);
}

#[test]
fn a_task_waits_for_its_host_as_long_as_it_may() {
    let instance = local(&[(1, 1.0, "m-0")], Some(10.0));
    let first = |wait| placed(&instance, &fifo(&instance, wait))[0];
    assert_eq!(first(0), (0, 1, 0.0));
    assert_eq!(first(3), (0, 1, 3.0));
    assert_eq!(first(30), (0, 0, 10.0));
}

#[test]
fn a_task_without_a_host_waits_for_none() {
    let instance = local(&[(1, 1.0, "m-0"), (2, 1.0, "")], Some(10.0));
    // The other tasks take m-1 first; task 0, the only one left at 2, waits for m-0 until 5.
    let found = placed(&instance, &fifo(&instance, 3));
    assert_eq!(found, [(1, 1, 0.0), (2, 1, 1.0), (0, 1, 5.0)]);
}
