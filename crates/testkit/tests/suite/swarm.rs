//! Deterministic simulation: cluster, workload, faults, policy and options drawn from a seed.
//!
//! Safety: the driver's audit after every instant, the judge on the schedule. Liveness: when faults stop,
//! every flow finishes. A failing seed prints itself and its draws; `SLACKLINE_SCALE=0.001 SLACKLINE_FROM=S`
//! tries only seed S and prints its workload.

use std::any::Any;

use crate::arb;
use slackline::{PolicySpec, Registry};
use slackline_model::cluster::{Group, Slots};
use slackline_model::draft::{Draft, FlowDraft, PerPhase, SplitDraft, TasksDraft};
use slackline_model::params::Values;
use slackline_model::profile::{PARAMS, Profile};
use slackline_model::random::test_seeds;
use slackline_model::schedule::{NewRow, TaskRow, TaskRows};
use slackline_model::{Instance, MachineId, Seed, SlotKind, SlotRange, Span, Time, random};
use slackline_policy::{Action, Ask, Event, Grant, Policy, Style, View};
use slackline_sim::{Crash, Crashes, Membership};
use slackline_testkit::harness::{self, Setup};
use slackline_testkit::instances::{self, job, machines};

/// The draws of a seed in addition to the workload.
pub(crate) fn setup_of(seed: Seed, instance: &Instance) -> Setup {
    let rng = &mut random::rng(seed, "setup", 0);
    let mut setup = Setup::plain();
    setup.sim.seed = seed;
    if random::chance(rng, 0.4) {
        setup.slowstart = [0.0, 0.05, 0.3, 0.5, 0.8][random::integer(rng, 0, 4) as usize];
    }
    if random::chance(rng, 0.4) {
        setup.sim.heartbeat = Span(random::integer(rng, 1, 4_000_000));
    }
    if random::chance(rng, 0.2) {
        setup.sim.jitter = random::uniform(rng, 0.05, 0.8);
    }
    if random::chance(rng, 0.3) {
        setup.noise = 0.5;
    }
    if random::chance(rng, 0.4) {
        setup.locality_wait = Span(random::integer(rng, 1, 5_000_000));
    }
    if random::chance(rng, 0.5) {
        setup.sim.crashes = Crashes::Script(script(rng, instance));
    } else if random::chance(rng, 0.3) {
        // Far above the longest task on the slowest machine, so that every task ends eventually.
        let between = Span(random::integer(rng, 60_000_000, 300_000_000));
        setup.sim.crashes = Crashes::Rate { between, repair: Span(random::integer(rng, 0, 20_000_000)) };
    }
    if random::chance(rng, 0.3) {
        setup.sim.membership = membership(rng, instance);
    }
    setup.sim.shared_output = random::chance(rng, 0.2);
    if random::chance(rng, 0.3) {
        setup.refills = random::uniform(rng, 0.05, 0.9);
    }
    setup
}

/// The same under a profile, whose machines never leave; `None` if the cluster cannot have one.
pub(crate) fn under_profile(seed: Seed, instance: &Instance) -> Option<Setup> {
    let rng = &mut random::rng(seed, "profile", 0);
    let cluster = instance.cluster();
    if cluster.is_map_reduce() || cluster.slots(SlotKind::Any) < 2 {
        return None;
    }
    let mut setup = setup_of(seed, instance);
    (setup.sim.crashes, setup.sim.membership) = (Crashes::Never, Vec::new());
    let mut text = "hadoop".to_owned();
    for param in PARAMS {
        let seconds = |rng: &mut random::ChaCha8Rng| random::integer(rng, 0, 4_000_000) as f64 / 1e6;
        let (one, other) = (seconds(rng), seconds(rng));
        let value = match param.values {
            Values::Real(least, most) => {
                let above = (most.min(4.0) - least) * random::unit(rng);
                (least + if random::chance(rng, 0.4) { 0.0 } else { above }).to_string()
            }
            _ if random::chance(rng, 0.4) => "0".to_owned(),
            Values::Count(least, most) => random::integer(rng, least, most.min(4)).to_string(),
            Values::SecondsRange(..) => format!("{}..{}", one.min(other), one.max(other)),
            _ => one.to_string(),
        };
        text.extend([":", param.name, "=", &value]);
    }
    let profile = Profile::parse(&text).expect("drawn values are valid");
    if profile.as_ref().is_some_and(has_delays) {
        // A job that refills its slots ignores other jobs.
        setup.refills = 0.0;
    }
    setup.sim = setup.sim.with_profile(profile);
    Some(setup)
}

fn has_delays(profile: &Profile) -> bool {
    (profile.node_delay(), profile.rack_delay()) != (Span::ZERO, Span::ZERO)
}

/// Whether a policy can be simulated under the profile. A policy that binds tasks to machines leaves no slots
/// to ApplicationMasters, and its tasks cannot wait for another machine.
pub(crate) fn goes_with(policy: &dyn Policy, setup: &Setup) -> bool {
    let moves_tasks = |profile: &Profile| {
        profile.am_share() > 0.0 || profile.speculation().is_some() || has_delays(profile)
    };
    !setup.sim.profile.as_ref().is_some_and(moves_tasks) || policy.style() != Style::Placements
}

/// Machines that join like those of some group, and others of the group that leave after them, so that every
/// task that could run can finish.
fn membership(rng: &mut random::ChaCha8Rng, instance: &Instance) -> Vec<Membership> {
    let groups = instance.cluster().groups();
    let mut changes = Vec::new();
    let mut n_machines = instance.cluster().n_machines();
    let mut at = 0;
    for k in 0..random::integer(rng, 1, 4) {
        let like = &groups.raw[random::integer(rng, 0, groups.len() as u64 - 1) as usize];
        let count = random::integer(rng, 1, 2) as u32;
        let speed = [0.5, 1.0, like.speed][random::integer(rng, 0, 2) as usize];
        let group = Group { name: format!("joined{k}"), count, speed, ..like.clone() };
        at += random::integer(rng, 0, 8) * 1_000_000;
        changes.push(Membership::Join { at: Time(at), group });
        if random::chance(rng, 0.6) {
            // One machine of the group, or one that just joined, as long as another stays.
            let old = like.first.0 + random::integer(rng, 0, u64::from(like.count) - 1) as u32;
            let machine = if count == 2 && random::chance(rng, 0.5) { n_machines } else { old };
            at += random::integer(rng, 0, 8) * 1_000_000;
            changes.push(Membership::Leave { at: Time(at), machine: MachineId(machine) });
        }
        n_machines += count;
    }
    changes
}

/// Failures within the first minute, one after the other on each machine; all machines come back.
fn script(rng: &mut random::ChaCha8Rng, instance: &Instance) -> Vec<Crash> {
    let mut script = Vec::new();
    for machine in 0..instance.cluster().n_machines() {
        let mut at = 0;
        for _ in 0..random::integer(rng, 0, 3) {
            // Whole seconds half of the time, so that machines fail exactly when tasks end.
            let grain = if random::chance(rng, 0.5) { 1_000_000 } else { 1 };
            at += random::integer(rng, 1, 20_000_000 / grain) * grain;
            let back = at + random::integer(rng, 1, 10_000_000 / grain) * grain;
            script.push(Crash { machine: MachineId(machine), at: Time(at), back: Some(Time(back)) });
            at = back;
        }
    }
    script
}

/// Draws everything from `seed`, runs one policy after the other, and returns the errors.
fn check_seed(seed: u64) -> Vec<String> {
    let instance = instance_of(Seed(seed));
    check_setup(seed, &instance, &setup_of(Seed(seed), &instance))
}

/// The same under a profile, if the cluster can have one.
fn check_profile(seed: u64) -> Vec<String> {
    let instance = instance_of(Seed(seed));
    under_profile(Seed(seed), &instance).map_or_else(Vec::new, |setup| check_setup(seed, &instance, &setup))
}

fn instance_of(seed: Seed) -> Instance {
    Instance::new(&arb::draft_of(seed)).expect("drawn drafts are valid").cut(Span(3_000_000))
}

fn check_setup(seed: u64, instance: &Instance, setup: &Setup) -> Vec<String> {
    let attempt = |policy: &PolicySpec| {
        let run = || {
            let mut policy = policy.build(instance.cluster(), &instance.objective());
            goes_with(policy.as_ref(), setup)
                .then(|| harness::judged(instance, policy.as_mut(), setup))
                .transpose()
        };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
            Err(panic) => Err(message_of(panic.as_ref())),
            Ok(Err(message)) => Err(message),
            Ok(Ok(Some((_, report)))) if report.failed > 0 => {
                Err(format!("{} flows were not done although faults stop", report.failed))
            }
            Ok(Ok(_)) => Ok(()),
        }
    };
    let policies = harness::registered(&Registry::standard());
    let failed = policies.iter().filter_map(|policy| Some((policy, attempt(policy).err()?)));
    failed.map(|(policy, what)| format!("seed {seed}, {policy:?}: {what}\n  {setup:?}")).collect()
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

#[test]
fn seeds() {
    try_seeds(84, check_seed);
}

#[test]
fn seeds_under_a_profile() {
    try_seeds(67, check_profile);
}

#[expect(clippy::print_stdout, reason = "who asks for one seed wants to see its workload")]
fn try_seeds(usually: u64, check: impl Fn(u64) -> Vec<String> + Sync) {
    let seeds = test_seeds(usually);
    if seeds.end - seeds.start == 1 {
        println!("{:#?}", arb::draft_of(Seed(seeds.start)));
    }
    let failures = instances::on_each_seed(usually, check);
    assert!(
        failures.is_empty(),
        "{} runs failed; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(25)].join("\n")
    );
}

/// Seeds that failed once, each with the error.
#[test]
fn seeds_that_failed_once() {
    let once = [
        (0, "minima claimed behind heartbeats and locality waits, where no policy can keep them"),
        (14, "early reduces computed from the report of the last map instead of its end"),
        (45, "judge: a reduce that was killed may have waited for lost maps"),
        (141, "judge: tasks of no length leave the order within an instant uncertain"),
        (2488, "a reduce that had ended unheard was held for lost maps"),
        (
            21586,
            "minima: a reduce that waits barred others, and their minima did not fall to the rest at once",
        ),
        (20098, "dmrs: a task that the cluster began elsewhere was taken to hold its slot for ever"),
        (20113, "the same, with a list that is not rebuilt"),
        (
            32767,
            "judge: a reduce that waits again for lost maps was taken to leave a slot free of waiting ones",
        ),
        (34932, "the same, where minima are shared out among fewer phases"),
        (597, "dmrs: a task that had ended was taken to hold its slot for ever"),
        (
            82035,
            "dmrs: maps were queued behind a reduce that the cluster had started before them, and that waits for them",
        ),
        (
            86488,
            "judge: a reduce that begins to wait bars others, whose minima fall to the rest, but not before",
        ),
    ];
    for (seed, what) in once {
        let failures = check_seed(seed);
        assert!(failures.is_empty(), "{what}\n{}", failures.join("\n"));
    }
}

/// The promise that a policy breaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Claims to keep minima and serves the lowest id.
    Minima,
    /// Grants phases that cannot run.
    Phase,
    /// Grants a phase that the driver skips.
    Skip,
}

struct Canary(Lie);

impl Policy for Canary {
    fn name(&self) -> &'static str {
        "canary"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn keeps_minima(&self) -> bool {
        self.0 == Lie::Minima
    }

    fn on_events(&mut self, _events: &[Event], _view: &View<'_>, _out: &mut Vec<Action>) {}

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let mut phases = view.state.ready(ask.slot_kind).filter(|&phase| match self.0 {
            Lie::Minima => view.runnable(phase) > 0 && !ask.skip.contains(&phase),
            Lie::Phase => true,
            Lie::Skip => view.runnable(phase) > 0,
        });
        phases.next().map(|phase| Grant { phase, tasks: 1 })
    }
}

/// Two flows of maps on three slots, the second with a guarantee and its input on one machine.
fn birdcage() -> Instance {
    let hosts = vec!["m-0".to_owned()];
    let near = TasksDraft::Splits(vec![SplitDraft { count: 4, seconds: 2.0, hosts }]);
    let plain = TasksDraft::Uniform { tasks: 6, seconds: 2.0 };
    let mut guaranteed = job("j", &[], Some(near), None);
    guaranteed.min_slots = PerPhase::both(2);
    let flow = |id: &str, job| FlowDraft::new(id, vec![job]);
    let flows = vec![flow("a", job("j", &[], Some(plain), None)), flow("b", guaranteed)];
    let machines = vec![machines("m", 3, 1.0, Slots::Generic(1))];
    Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap()
}

#[test]
fn a_policy_that_ignores_minima_is_detected() {
    let found = harness::judged(&birdcage(), &mut Canary(Lie::Minima), &Setup::plain()).unwrap_err();
    assert!(found.contains("minimum"), "{found}");
}

#[test]
#[should_panic(expected = "granted a phase that cannot run")]
fn a_policy_that_grants_blocked_phases_is_detected() {
    let _ = harness::judged(&birdcage(), &mut Canary(Lie::Phase), &Setup::plain());
}

#[test]
#[should_panic(expected = "granted a phase that it has to skip")]
fn a_policy_that_does_not_skip_is_detected() {
    let setup = Setup { locality_wait: Span(60_000_000), ..Setup::plain() };
    let _ = harness::judged(&birdcage(), &mut Canary(Lie::Skip), &setup);
}

/// Changes a log without the judge's knowledge, and returns the verdict of the judge.
fn tampered(change: impl Fn(usize, &mut NewRow, &mut Vec<SlotRange>)) -> &'static str {
    let instance = birdcage();
    let policy = Registry::standard().parse("fair").unwrap();
    let (mut schedule, _) = harness::judged(
        &instance,
        policy.build(instance.cluster(), &instance.objective()).as_mut(),
        &Setup::plain(),
    )
    .unwrap();
    let mut rows = TaskRows::new();
    for (k, row) in schedule.tasks.rows().iter().enumerate() {
        let TaskRow { phase, first, count, start, end, startup, attempt, outcome, .. } = *row;
        let mut new = NewRow { phase, first, count, start, end, startup, attempt, outcome };
        let mut places = schedule.tasks.places(row).to_vec();
        change(k, &mut new, &mut places);
        rows.push(new, &places);
    }
    schedule.tasks = rows;
    slackline_judge::check(&instance, &schedule).unwrap_err().kind()
}

#[test]
fn an_engine_that_breaks_capacity_is_detected() {
    // All tasks on the first slots; a second earlier; shorter; on a slot that does not exist.
    let all_on_the_first = tampered(|_, row, places| *places = vec![SlotRange { first: 0, len: row.count }]);
    let too_early = tampered(|_, row, _| {
        if row.start > Time::ZERO {
            row.start = Time(row.start.0 - 1_000_000);
        }
    });
    let too_short = tampered(|k, row, _| {
        if k == 0 {
            row.end = Time(row.end.0 - 1_000_000);
        }
    });
    let nowhere = tampered(|_, _, places| places.iter_mut().for_each(|p| p.first += 9));
    assert_eq!(
        [all_on_the_first, too_early, too_short, nowhere],
        ["slot-overlap", "slot-overlap", "duration", "row"]
    );
}
