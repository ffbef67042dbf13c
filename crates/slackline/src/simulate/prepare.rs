//! Prepares instances for simulation and checks the ranges of options. Every simulation calls this module
//! first, so later code gets only valid values.

use std::borrow::Cow;

use slackline_model::instance::{Phase, TASKS_MAX};
use slackline_model::time::SECONDS_MAX;
use slackline_model::{Cluster, Instance, MachineId, PhaseId, Profile, SlotKind, Span};
use slackline_sim::{Crashes, Membership};

use super::{Knowledge, Options, SimulateError};

/// The longest task that work is cut into, by default.
pub const GRAIN: Span = Span(10_000_000);

/// The longest simulation, seconds. It leaves enough room below 2^64 microseconds for distorted durations.
const HORIZON_MAX: f64 = 1e12;

/// The largest cluster that is simulated. Every machine and every slot takes memory.
const SLOTS_MAX: u64 = 20_000_000;

/// The longest heartbeat and the longest wait for local slots: 30 days.
const PAUSE_MAX: Span = Span(2_592_000_000_000);

/// The largest standard deviation of a logarithm. A value of 3 already means factors of hundreds.
const DEVIATION_MAX: f64 = 3.0;

/// An invalid option of a simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {option}: {problem}")]
pub(crate) struct WrongOption {
    pub(crate) option: &'static str,
    /// The value that was found, and the expected one.
    pub(crate) problem: String,
}

impl From<WrongOption> for SimulateError {
    fn from(wrong: WrongOption) -> Self {
        Self::Refused(wrong.to_string())
    }
}

/// Prepares an instance for simulation: cuts phases that are given only as work into tasks of at most
/// `grain`.
///
/// [`simulate`](crate::simulate()) and all other simulations prepare instances with [`GRAIN`]. The rows of a
/// schedule belong to the prepared instance, and the validator takes that instance.
///
/// # Errors
/// [`SimulateError::Refused`]: work that takes too long, too many machines, slots or tasks, and an instance
/// that has grown or shrunk since [`Instance::new`] made it.
pub fn prepare(instance: &Instance, grain: Span) -> Result<Cow<'_, Instance>, SimulateError> {
    check_instance(instance)?;
    check_grain(instance, grain).map_err(SimulateError::Refused)?;
    let is_cut = instance.phases().iter().all(|phase| phase.tasks().is_some());
    Ok(if is_cut { Cow::Borrowed(instance) } else { Cow::Owned(instance.clone().cut(grain)) })
}

/// Refuses instances that cannot be scheduled for any grain.
pub(crate) fn check_instance(instance: &Instance) -> Result<(), SimulateError> {
    if !instance.is_whole() {
        let what = "found an instance to which flows or machines were added, or from which some were removed, expected one \
                    as Instance::new makes it";
        return Err(SimulateError::Refused(what.to_owned()));
    }
    let releases = instance.flows().iter().map(|flow| flow.release.seconds());
    let work: f64 = instance.flows().iter().map(|flow| flow.work.slot_seconds()).sum();
    check_horizon(releases.fold(0.0, f64::max) + work / slowest(instance.cluster()), "")
        .and_then(|()| check_cluster(instance.cluster()))
        .map_err(SimulateError::Refused)
}

/// Refuses work that would be cut into too many tasks.
fn check_grain(instance: &Instance, grain: Span) -> Result<(), String> {
    let is_too_fine = |(_, phase): &(PhaseId, &Phase)| phase.n_to_cut(grain) >= TASKS_MAX;
    let Some((id, phase)) = instance.phases().iter_enumerated().find(is_too_fine) else { return Ok(()) };
    Err(format!(
        "found {} slot-seconds of work in phase {}, which are {} tasks of at most {grain}, expected fewer than {TASKS_MAX} \
         (a longer grain makes fewer)",
        phase.work().slot_seconds(),
        instance.phase_name(id),
        phase.n_to_cut(grain)
    ))
}

/// The speed of the slowest machines.
pub(crate) fn slowest(cluster: &Cluster) -> f64 {
    cluster.groups().iter().map(|group| group.speed).fold(f64::INFINITY, f64::min)
}

/// Refuses work that may exceed the longest simulation. `up_to` names the position up to which the workload
/// was read.
pub(crate) fn check_horizon(seconds: f64, up_to: &str) -> Result<(), String> {
    if seconds <= HORIZON_MAX {
        return Ok(());
    }
    Err(format!(
        "found work that may take {seconds:e} s{up_to}, expected at most {HORIZON_MAX:e} s in a simulation"
    ))
}

/// Refuses clusters that are too large for a simulation.
pub(crate) fn check_cluster(cluster: &Cluster) -> Result<(), String> {
    let slots: u64 = cluster.slot_kinds().iter().map(|&slot_kind| u64::from(cluster.slots(slot_kind))).sum();
    if slots.max(u64::from(cluster.n_machines())) <= SLOTS_MAX {
        return Ok(());
    }
    Err(format!(
        "found {} machines with {slots} slots, expected at most {SLOTS_MAX} of either in a simulation",
        cluster.n_machines()
    ))
}

/// Refuses a number outside the range of its option. NaN is outside every range.
pub(crate) fn check_number(
    option: &'static str,
    found: f64,
    least: f64,
    most: f64,
) -> Result<(), WrongOption> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    wrong(option, format!("found {found}, expected a number from {least} to {most}"))
}

fn wrong(option: &'static str, problem: impl Into<String>) -> Result<(), WrongOption> {
    Err(WrongOption { option, problem: problem.into() })
}

impl Options {
    /// Refuses options that a validated simulation of this prepared instance cannot have.
    pub(crate) fn check(&self, instance: &Instance) -> Result<(), WrongOption> {
        if !self.sim.membership.is_empty() {
            let problem = "found machines that join or leave, expected none: the judge only knows the machines of the workload";
            return wrong("membership", problem);
        }
        self.check_engine(instance)
    }

    /// As [`Self::check`], but machines may join and leave.
    pub(crate) fn check_engine(&self, instance: &Instance) -> Result<(), WrongOption> {
        let cluster = instance.cluster();
        check_number("slowstart", self.slowstart, 0.0, 1.0)?;
        check_number("noise", self.noise, 0.0, DEVIATION_MAX)?;
        check_number("jitter", self.sim.jitter, 0.0, DEVIATION_MAX)?;
        for (option, pause) in [("heartbeat", self.sim.heartbeat), ("locality-wait", self.locality_wait)] {
            check_number(option, pause.seconds(), 0.0, PAUSE_MAX.seconds())?;
        }
        check_crashes(&self.sim.crashes, cluster)?;
        check_membership(&self.sim.membership, cluster)?;
        if let Some(profile) = &self.sim.profile {
            check_profile(profile, &self.sim, cluster)?;
        }
        self.check_history()?;
        self.check_known()?;
        self.plans.iter().try_for_each(|(&flow, plan)| match instance.flows().get(flow) {
            None => wrong("plan-file", format!("found a plan of an unknown flow, number {}", flow.0)),
            Some(of) => plan
                .fits(instance, flow)
                .or_else(|mismatch| wrong("plan-file", format!("flow {:?}: {mismatch}", of.id))),
        })
    }

    /// Checks that the recorded durations are possible.
    fn check_history(&self) -> Result<(), WrongOption> {
        let Knowledge::Learned(history) = &self.knowledge else { return Ok(()) };
        for (name, group, record) in history.records() {
            let most = SECONDS_MAX * record.tasks as f64;
            if !(0.0..=most).contains(&record.seconds) {
                let problem = format!(
                    "found {} tasks of {}/{}/{} on {group} that took {} s, expected from 0 to {most} s",
                    record.tasks, name.flow, name.job, name.kind, record.seconds
                );
                return wrong("history", problem);
            }
        }
        Ok(())
    }

    /// Checks that the policy knows everything for certain if [`Options::known_releases`] is set.
    fn check_known(&self) -> Result<(), WrongOption> {
        // A profile has its own jitter.
        let uncertain = [
            ("noise", self.noise > 0.0),
            ("a profile", self.sim.profile.is_some()),
            ("jitter", self.sim.jitter > 0.0),
            ("crashes", self.sim.crashes != Crashes::Never || !self.sim.membership.is_empty()),
            ("knowledge learned", matches!(self.knowledge, Knowledge::Learned(_))),
        ];
        match uncertain.into_iter().find(|&(_, is_given)| is_given && self.known_releases) {
            None => Ok(()),
            Some((what, _)) => wrong(
                "known-releases",
                format!("found {what} too, expected none, because it makes the future uncertain"),
            ),
        }
    }
}

fn check_crashes(crashes: &Crashes, cluster: &Cluster) -> Result<(), WrongOption> {
    match crashes {
        Crashes::Never => Ok(()),
        Crashes::Script(script) => {
            if let Some(crash) = script.iter().find(|crash| crash.machine.0 >= cluster.n_machines()) {
                return wrong("crash", no_machine(crash.machine, cluster.n_machines()));
            }
            Crashes::script(script.clone()).map(drop).or_else(|overlap| {
                let machine = cluster.machine_name(overlap.machine);
                let problem = format!(
                    "found {machine} failing at {}, but it has been down since {}, expected it to be back before",
                    overlap.at, overlap.since
                );
                wrong("crash", problem)
            })
        }
        Crashes::Rate { between, repair } => {
            check_number("crash-rate", between.seconds(), 1e-6, SECONDS_MAX)?;
            check_number("repair", repair.seconds(), 0.0, SECONDS_MAX)
        }
        _ => wrong("crash", "found an unknown kind of machine failures"),
    }
}

fn no_machine(machine: MachineId, machines: u32) -> String {
    format!("found machine number {}, expected one below {machines}", machine.0)
}

/// Checks that machines that join are valid, and that machines that leave exist.
fn check_membership(membership: &[Membership], cluster: &Cluster) -> Result<(), WrongOption> {
    let mut whole = cluster.clone();
    let mut changes: Vec<&Membership> = membership.iter().collect();
    changes.sort_by_key(|change| change.at());
    for change in changes {
        match change {
            Membership::Join { group, .. } if whole.can_join(group) => {
                whole.join(group.clone());
                check_cluster(&whole).or_else(|problem| wrong("membership", problem))?;
            }
            Membership::Join { group, .. } => {
                let problem = format!(
                    "found {} machines {:?} of speed {} that join, expected machines like those of a workload document, \
                     with slots of the same kind",
                    group.count, group.name, group.speed
                );
                return wrong("membership", problem);
            }
            Membership::Leave { machine, .. } if machine.0 >= whole.n_machines() => {
                return wrong("membership", no_machine(*machine, whole.n_machines()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that the profile is compatible with the machines and with their failures.
fn check_profile(
    profile: &Profile,
    sim: &slackline_sim::Options,
    cluster: &Cluster,
) -> Result<(), WrongOption> {
    let leaves = |change: &Membership| matches!(change, Membership::Leave { .. });
    if sim.crashes != Crashes::Never || sim.membership.iter().any(leaves) {
        let found =
            "found machines that fail, expected none: the loss of an ApplicationMaster is not simulated";
        return wrong("profile", found);
    }
    if profile.am_share() > 0.0 && cluster.is_map_reduce() {
        let found = "found map slots and reduce slots, expected generic ones, which ApplicationMasters can hold too \
                     (or am-share=0)";
        return wrong("profile", found);
    }
    if profile.am_share() > 0.0 && cluster.slots(SlotKind::Any) < 2 {
        let found = "found 1 slot, expected at least 2: one is the ApplicationMaster's (or am-share=0)";
        return wrong("profile", found);
    }
    Ok(())
}
