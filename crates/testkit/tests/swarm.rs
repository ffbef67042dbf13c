//! Deterministic simulation: cluster, workload, faults, policy and options drawn from a seed.
//!
//! Safety: the driver's audit after every instant, the judge on the schedule. Liveness: when faults
//! stop, every flow is done. `SLACKLINE_SWARM=N` tries N seeds, `SLACKLINE_SWARM_SEED=S` only one. A
//! failing seed prints itself and what it drew.

use std::any::Any;

use slackline::registry::Chosen;
use slackline_model::{Instance, MachineId, Seed, Span, Time};
use slackline_random as random;
use slackline_sim::{Crash, Crashes};
use slackline_testkit::arb;
use slackline_testkit::harness::{self, Setup};

/// What a seed draws beside the workload.
fn setup_of(seed: Seed, instance: &Instance) -> Setup {
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
        // Well above the longest task on the slowest machine, so that everything ends some day.
        let between = Span(random::integer(rng, 60_000_000, 300_000_000));
        setup.sim.crashes = Crashes::Rate { between, repair: Span(random::integer(rng, 0, 20_000_000)) };
    }
    setup
}

/// Failures within the first minute, one after the other on each machine; all machines come back.
fn script(rng: &mut random::ChaCha8Rng, instance: &Instance) -> Vec<Crash> {
    let mut script = Vec::new();
    for machine in 0..instance.cluster().n_machines() {
        let mut at = 0;
        for _ in 0..random::integer(rng, 0, 3) {
            // Whole seconds half of the time, so that machines die just when tasks end.
            let grain = if random::chance(rng, 0.5) { 1_000_000 } else { 1 };
            at += random::integer(rng, 1, 20_000_000 / grain) * grain;
            let back = at + random::integer(rng, 1, 10_000_000 / grain) * grain;
            script.push(Crash { machine: MachineId(machine), at: Time(at), back: Some(Time(back)) });
            at = back;
        }
    }
    script
}

/// Draws everything from `seed`, runs one policy after the other, and says what went wrong.
fn check_seed(seed: u64) -> Vec<String> {
    let seed = Seed(seed);
    let instance = Instance::new(&arb::draft_of(seed)).expect("drawn drafts are valid").cut(Span(3_000_000));
    let setup = setup_of(seed, &instance);
    let attempt = |policy: &Chosen| {
        let run = || harness::judged(&instance, policy.build(&instance).as_mut(), &setup);
        match std::panic::catch_unwind(run) {
            Err(panic) => Err(message_of(panic.as_ref())),
            Ok(Err(message)) => Err(message),
            Ok(Ok((_, report))) if report.failed > 0 => {
                Err(format!("{} flows were not done although faults stop", report.failed))
            }
            Ok(Ok(_)) => Ok(()),
        }
    };
    let policies = harness::registered();
    let failed = policies.iter().filter_map(|policy| Some((policy, attempt(policy).err()?)));
    failed.map(|(policy, what)| format!("seed {}, {policy:?}: {what}\n  {setup:?}", seed.0)).collect()
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

#[test]
fn seeds() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = match number("SLACKLINE_SWARM_SEED") {
        Some(seed) => {
            println!("{:#?}", arb::draft_of(Seed(seed)));
            seed..seed + 1
        }
        None => 0..number("SLACKLINE_SWARM").unwrap_or(150),
    };
    let failures: Vec<String> = seeds.flat_map(check_seed).collect();
    assert!(
        failures.is_empty(),
        "{} runs failed; the first:\n{}",
        failures.len(),
        failures[..failures.len().min(25)].join("\n")
    );
}
