//! Simulations under a profile: small cases by hand, and laws on random workloads. The swarm draws further
//! cases.

use crate::arb::arb_draft;
use proptest::prelude::*;
use slackline::simulate::{Options, simulate};
use slackline::{PolicySpec, Registry};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, SplitDraft, TasksDraft};
use slackline_model::schedule::{AmRow, Outcome, TaskRow};
use slackline_model::{Draft, Instance, JobId, Profile, Schedule, Seed, Span};
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances::{job, machines};

fn policy(spec: &str) -> PolicySpec {
    Registry::standard().parse(spec).unwrap()
}

/// A judged simulation, audited.
fn run(instance: &Instance, spec: &str, profile: &str, seed: u64) -> Schedule {
    let mut setup = Setup::plain();
    setup.sim.seed = Seed(seed);
    setup.sim = setup.sim.with_profile(Profile::parse(profile).unwrap());
    let mut policy = policy(spec).build(instance.cluster(), &instance.objective());
    harness::judged(instance, policy.as_mut(), &setup).unwrap_or_else(|wrong| panic!("{wrong}\n{profile}")).0
}

/// A profile without random draws: 1 s to submit, 5 s for an ApplicationMaster, 2 s for a container, and
/// `more`.
fn fixed(more: &str) -> String {
    format!(
        "hadoop:submit=1:am-start=5:container-start=2{}{}{}{more}",
        if more.contains(":am-linger") { "" } else { ":am-linger=4" },
        if more.contains(":heartbeat") { "" } else { ":heartbeat=0" },
        if more.contains(":am-heartbeat") { "" } else { ":am-heartbeat=0" },
    )
}

#[expect(clippy::unnecessary_wraps, reason = "a job takes its phases as options")]
fn uniform(tasks: u32, seconds: f64) -> Option<TasksDraft> {
    Some(TasksDraft::Uniform { tasks, seconds })
}

/// A flow of two maps of 10 s and a reduce of 5 s, and one of a map of a second, on one machine of two slots.
fn two(n: usize) -> Instance {
    let long = FlowDraft::new("f", vec![job("j", &[], uniform(2, 10.0), uniform(1, 5.0))]);
    let short = FlowDraft::new("g", vec![job("j", &[], uniform(1, 1.0), None)]);
    let flows = vec![long, short][..n].to_vec();
    Instance::new(&Draft {
        machines: vec![machines("m", 1, 1.0, Slots::Generic(2))],
        flows,
        ..Draft::default()
    })
    .unwrap()
}

/// (slot, start, own code, end) of the rows, in the order of their starts.
fn rows(schedule: &Schedule) -> Vec<(u32, f64, f64, f64)> {
    let tasks = &schedule.tasks;
    let row = |row: &TaskRow| {
        let begun = row.start + row.startup;
        (tasks.places(row)[0].first, row.start.seconds(), begun.seconds(), row.end.seconds())
    };
    let mut rows: Vec<_> = tasks.rows().iter().map(row).collect();
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    rows
}

/// (job, slot, start, up, end) of the ApplicationMasters.
fn ams(schedule: &Schedule) -> Vec<(JobId, Option<u32>, f64, f64, f64)> {
    let of = |row: &AmRow| {
        assert_eq!(row.outcome, Outcome::Done);
        (row.job, row.slot, row.start.seconds(), row.up.unwrap().seconds(), row.end.seconds())
    };
    schedule.ams.iter().map(of).collect()
}

#[test]
fn a_job_is_submitted_and_its_am_started_before_its_tasks() {
    let schedule = run(&two(1), "fifo", &fixed(""), 0);
    // The ApplicationMaster keeps one of the two slots, so that maps and reduce follow each other.
    assert_eq!(rows(&schedule), [(1, 6.0, 8.0, 18.0), (1, 18.0, 20.0, 30.0), (1, 30.0, 32.0, 37.0)]);
    assert_eq!(ams(&schedule), [(JobId(0), Some(0), 1.0, 6.0, 41.0)]);
    assert_eq!((schedule.flows[0].start, schedule.flows[0].completion), (Some(6.0), Some(37.0)));
}

/// The largest number of ApplicationMasters at a time.
fn most_ams(schedule: &Schedule) -> usize {
    let ams = ams(schedule);
    let at = |now: f64| ams.iter().filter(|&&(_, _, start, _, end)| start <= now && now < end).count();
    ams.iter().map(|&(_, _, start, ..)| at(start)).max().unwrap_or(0)
}

#[test]
fn queues_limit_ams_as_hadoop_does() {
    let flow = |k: u32| FlowDraft::new(format!("f{k}"), vec![job("j", &[], uniform(3, 20.0), None)]);
    let machines = vec![machines("m", 1, 1.0, Slots::Generic(20))];
    let instance = Instance::new(&Draft { machines, flows: (0..5).map(flow).collect(), ..Draft::default() });
    let instance = instance.unwrap();
    assert_eq!(most_ams(&run(&instance, "fifo", &fixed(":am-linger=0"), 0)), 5);
    // A tenth of 20 slots, which is the default.
    assert_eq!(most_ams(&run(&instance, "yarn-capacity", &fixed(":am-linger=0"), 0)), 2);
    let none = run(&instance, "yarn-capacity", &fixed(":am-share=0"), 0);
    assert_eq!(most_ams(&none), 5, "they hold no slots");
}

#[test]
fn a_am_waits_until_another_has_gone() {
    let schedule = run(&two(2), "fifo", &fixed(""), 0);
    assert_eq!(ams(&schedule)[1], (JobId(1), Some(0), 41.0, 46.0, 53.0));
    assert_eq!(rows(&schedule)[3], (1, 46.0, 48.0, 49.0));
}

#[test]
fn ams_that_hold_no_slot_take_time_all_the_same() {
    let schedule = run(&two(2), "fifo", &fixed(":am-share=0"), 0);
    // Both maps start at once, in one row.
    assert_eq!(rows(&schedule)[..2], [(0, 6.0, 8.0, 18.0), (0, 18.0, 20.0, 25.0)]);
    assert_eq!(ams(&schedule)[1], (JobId(0), None, 1.0, 6.0, 29.0));
}

#[test]
fn a_am_hears_of_slots_by_its_heartbeats() {
    let schedule = run(&two(1), "fifo", &fixed(":am-heartbeat=5"), 0);
    // The ApplicationMaster is up at 6 and learns of slots at 6, 11, 16, 21, …; a container then starts in 2
    // s.
    assert_eq!(rows(&schedule), [(1, 6.0, 8.0, 18.0), (1, 18.0, 23.0, 33.0), (1, 33.0, 38.0, 43.0)]);
}

#[test]
fn machines_give_slots_by_their_heartbeats() {
    let schedule = run(&two(1), "fifo", &fixed(":heartbeat=4"), 0);
    assert_eq!(ams(&schedule), [(JobId(0), Some(0), 4.0, 9.0, 47.0)]);
    assert_eq!(rows(&schedule), [(1, 12.0, 14.0, 24.0), (1, 24.0, 26.0, 36.0), (1, 36.0, 38.0, 43.0)]);
}

#[test]
fn stragglers_take_a_multiple_of_the_time() {
    let schedule = run(&two(1), "fifo", &fixed(":straggler-share=1:straggler-factor=3"), 0);
    assert_eq!(rows(&schedule)[0], (1, 6.0, 8.0, 38.0));
    let some = run(&two(1), "fifo", &fixed(":straggler-share=0.5:straggler-factor=3"), 1);
    let computed: Vec<f64> = rows(&some).iter().map(|row| row.3 - row.2).collect();
    assert!(computed.iter().all(|took| [10.0, 30.0, 5.0, 15.0].contains(took)), "{computed:?}");
}

/// A flow of four maps, three of 10 s and one of 60 s, and a reduce of 5 s, on as many slots.
fn uneven(slots: u32) -> Instance {
    let maps = TasksDraft::Splits(vec![split(3, 10.0), split(1, 60.0)]);
    let flow = FlowDraft::new("f", vec![job("j", &[], Some(maps), uniform(1, 5.0))]);
    one_flow(flow, slots)
}

/// One flow on machines of one slot each.
fn one_flow(flow: FlowDraft, slots: u32) -> Instance {
    let machines = vec![machines("m", slots, 1.0, Slots::Generic(1))];
    Instance::new(&Draft { machines, flows: vec![flow], ..Draft::default() }).unwrap()
}

fn split(count: u32, seconds: f64) -> SplitDraft {
    SplitDraft { count, seconds, hosts: Vec::new() }
}

/// (task, attempt, start, end, outcome) of the speculative attempts and their first attempts.
fn twins(schedule: &Schedule) -> Vec<(u32, u16, f64, f64, Outcome)> {
    let rows = schedule.tasks.rows();
    let has_two =
        |row: &&TaskRow| rows.iter().any(|o| (o.phase, o.first) == (row.phase, row.first) && o.attempt == 1);
    let of = |row: &TaskRow| (row.first, row.attempt, row.start.seconds(), row.end.seconds(), row.outcome);
    rows.iter().filter(has_two).map(of).collect()
}

#[test]
fn a_slow_task_is_tried_again_on_an_idle_slot_when_its_am_looks() {
    // The ApplicationMaster is up at 6 s and checks each 4 s. The others are done at 18 s, the last map would
    // be at 68 s.
    let schedule = run(&uneven(5), "fifo", &fixed(":speculate=4"), 0);
    assert_eq!(twins(&schedule), [(3, 0, 6.0, 68.0, Outcome::Done), (3, 1, 18.0, 68.0, Outcome::Killed)]);
    assert_eq!(schedule.flows[0].completion, Some(75.0));
    // There is no speculative attempt without an idle slot, or with `speculate=0`.
    for (slots, speculate) in [(2, 4), (5, 0)] {
        let schedule = run(&uneven(slots), "fifo", &fixed(&format!(":speculate={speculate}")), 0);
        assert_eq!(twins(&schedule), []);
    }
}

#[test]
fn a_slot_is_idle_when_its_machine_has_offered_it_in_vain() {
    // Machines report each 4 s, each 0.8 s after the previous machine. The first map is done on the last
    // machine at 19.2 s, which then offers its slot. The last machine but one is idle too, but offers its
    // slot again only at 22.4 s.
    let schedule = run(&uneven(5), "fifo", &fixed(":am-share=0:heartbeat=4:speculate=1"), 0);
    let of = |row: &TaskRow| (row.start.seconds(), schedule.tasks.places(row)[0].first);
    let second = schedule.tasks.rows().iter().find(|row| row.attempt == 1).map(of);
    assert_eq!(second, Some((19.6, 4)));
}

#[test]
fn the_number_of_speculative_attempts_at_a_time_is_limited() {
    // Ten long maps and ten short ones, on slots for all and as many more.
    let maps = TasksDraft::Splits(vec![split(10, 10.0), split(10, 100.0)]);
    let instance = one_flow(FlowDraft::new("f", vec![job("j", &[], Some(maps), None)]), 41);
    for (rules, most) in [("", 10), (":speculate-least=3", 3), (":speculate-least=1:speculate-total=0.1", 2)]
    {
        let profile = fixed(&format!(":speculate=1:speculate-pause=1{rules}"));
        let schedule = run(&instance, "fifo", &profile, 0);
        assert_eq!(twins(&schedule).len(), 2 * most, "{rules}");
    }
}

#[test]
fn the_attempt_that_ends_first_counts() {
    // Of eight equal maps the third is a straggler. The speculative attempt that its ApplicationMaster
    // requests at 18 s is none.
    let instance = one_flow(FlowDraft::new("f", vec![job("j", &[], uniform(8, 10.0), None)]), 12);
    let profile = |speculate: u32| {
        fixed(&format!(":straggler-share=0.2:straggler-factor=10:speculate={speculate}:speculate-pause=3"))
    };
    let [without, with] = [0, 1].map(|speculate| run(&instance, "fifo", &profile(speculate), 3));
    assert_eq!(without.flows[0].completion, Some(108.0));
    assert_eq!(twins(&with), [(2, 0, 6.0, 30.0, Outcome::Killed), (2, 1, 18.0, 30.0, Outcome::Done)]);
    assert_eq!(with.flows[0].completion, Some(30.0));
}

/// Four maps of 10 s with their input on the first of two machines in a rack, and a machine in another one.
fn racks() -> Instance {
    let machine = |name, count, rack: &str| MachineDraft {
        rack: Some(rack.to_owned()),
        ..machines(name, count, 1.0, Slots::Generic(1))
    };
    let maps = TasksDraft::Splits(vec![SplitDraft { hosts: vec!["m-0".to_owned()], ..split(4, 10.0) }]);
    let flows = vec![FlowDraft::new("f", vec![job("j", &[], Some(maps), None)])];
    let machines = vec![machine("m", 2, "a"), machine("n", 1, "b")];
    Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap()
}

#[test]
fn tasks_wait_for_slots_where_their_input_is_and_then_in_its_rack() {
    let delays = |more: &str| fixed(&format!(":am-share=0:node-delay=3:rack-delay=2{more}"));
    let schedule = run(&racks(), "fifo", &delays(""), 0);
    let begun = [(0, 6.0, 8.0, 18.0), (1, 9.0, 11.0, 21.0), (2, 11.0, 13.0, 23.0), (0, 18.0, 20.0, 30.0)];
    assert_eq!(rows(&schedule), begun);
    // With heartbeats of 4 s, which start at 0, 4/3 and 8/3 s.
    let schedule = run(&racks(), "fifo", &delays(":heartbeat=4"), 0);
    let begun: Vec<(u32, f64)> = rows(&schedule).iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(begun[..3], [(0, 8.0), (1, 13.333_333), (2, 18.666_666)]);
}

#[test]
fn tasks_away_from_their_input_take_longer() {
    let factors = ":am-share=0:rack-factor=2:off-rack-factor=3";
    let computed = |more: &str| {
        let schedule = run(&racks(), "fifo", &fixed(&format!("{factors}{more}")), 0);
        let mut computed: Vec<_> = rows(&schedule).iter().map(|row| (row.0, row.3 - row.2)).collect();
        computed.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        computed
    };
    assert_eq!(computed(""), [(0, 10.0), (0, 10.0), (1, 20.0), (2, 30.0)]);
    assert_eq!(computed(":node-delay=60"), [(0, 10.0); 4]);
    assert_eq!(computed(":straggler-share=1"), [(0, 30.0), (0, 30.0), (1, 60.0), (2, 90.0)]);
}

#[test]
fn a_reduce_that_took_its_slot_early_starts_its_container_meanwhile() {
    let flow = FlowDraft::new("f", vec![job("j", &[], uniform(2, 10.0), uniform(1, 5.0))]);
    let machines = vec![machines("m", 1, 1.0, Slots::Generic(4))];
    let instance = Instance::new(&Draft { machines, flows: vec![flow], ..Draft::default() }).unwrap();
    let mut setup = Setup::plain();
    setup.slowstart = 0.0;
    setup.sim = setup.sim.with_profile(Profile::parse(&fixed("")).unwrap());
    let mut policy = policy("fifo").build(instance.cluster(), &instance.objective());
    let schedule = harness::judged(&instance, policy.as_mut(), &setup).unwrap().0;
    assert_eq!(rows(&schedule), [(1, 6.0, 8.0, 18.0), (3, 6.0, 8.0, 23.0)]);
}

#[test]
fn a_policy_that_binds_tasks_to_machines_is_refused_where_others_take_slots() {
    let refused = |profile: &str| {
        let mut options = Options::exact();
        options.sim = options.sim.with_profile(Profile::parse(profile).unwrap());
        simulate(&two(1), &policy("dmrs"), &options, None, None).map(drop)
    };
    let said = refused("hadoop").unwrap_err().to_string();
    assert!(said.contains("leaves no slots to ApplicationMasters"), "{said}");
    refused("hadoop:am-share=0").unwrap();
    let said = refused("hadoop:am-share=0:speculate=1").unwrap_err().to_string();
    assert!(said.contains("allows no speculative attempts"), "{said}");
    for delay in ["node-delay", "rack-delay"] {
        let said = refused(&format!("hadoop:am-share=0:{delay}=1")).unwrap_err().to_string();
        assert!(said.contains("tasks cannot wait for slots near their input"), "{said}");
    }
}

/// This number of flows, one after the other, on a cluster that is always busy but never far behind.
fn day(flows: u32) -> Instance {
    let flow = |k: u32| FlowDraft {
        release: f64::from(k) * 30.0,
        ..FlowDraft::new(format!("f{k}"), vec![job("j", &[], uniform(8, 10.0), uniform(2, 5.0))])
    };
    let machines = vec![machines("m", 4, 1.0, Slots::Generic(2))];
    Instance::new(&Draft { machines, flows: (0..flows).map(flow).collect(), ..Draft::default() }).unwrap()
}

#[test]
fn the_work_of_the_simulator_grows_with_the_flows() {
    let done = |flows: u32| {
        let mut options = Options::exact();
        options.sim = options.sim.with_profile(Some(Profile::hadoop()));
        let simulated = simulate(&day(flows), &policy("fifo"), &options, None, None).unwrap();
        simulated.decisions + simulated.reports
    };
    let (few, many) = (done(100), done(400));
    assert!(many < 4 * few + few / 4, "{few} of 100 flows, {many} of 400");
}

#[test]
fn a_profile_of_nothing_changes_nothing() {
    let nothing =
        "hadoop:submit=0:am-start=0:am-linger=0:am-share=0:heartbeat=0:am-heartbeat=0:container-start=0";
    for instance in [two(1), two(2), day(9)] {
        let [with, without] = [nothing, "plain"].map(|profile| run(&instance, "fifo", profile, 0));
        assert_eq!(with.flows, without.flows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The same seed gives the same schedule; every flow is done.
    #[test]
    fn the_same_seed_gives_the_same_schedule(draft in arb_draft(), seed in 0..100u64) {
        let instance = Instance::new(&draft).unwrap().cut(Span(5_000_000));
        let profile = "hadoop:am-share=0:straggler-share=0.1:spread=0.2:speculate=1:speculate-pause=2:node-delay=2:\
                       rack-delay=1:rack-factor=1.5:off-rack-factor=2";
        let once = run(&instance, "fair", profile, seed);
        prop_assert!(once.flows.iter().all(|row| row.completion.is_some()));
        prop_assert_eq!(once, run(&instance, "fair", profile, seed));
    }
}
