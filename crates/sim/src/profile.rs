//! Startup times of a simulated Hadoop cluster: jobs are submitted, get ApplicationMasters, and their tasks
//! start some time after they took their slots.

use std::collections::BTreeMap;

use slackline_model::profile::UniformSpan;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::tasks::Tasks;
use slackline_model::{Cluster, Instance, JobId, MachineId, PhaseId, Profile, Seed, SlotKind, Span, Time};
use slackline_policy::engine::Ams;
use slackline_policy::engine::Start;

/// The startup times of one simulation. Each kind has its own random stream, so that none affects another.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    profile: Profile,
    seed: Seed,
    /// When the ApplicationMasters of unfinished jobs came up.
    up: BTreeMap<JobId, Time>,
}

impl Starts {
    /// # Panics
    /// If ApplicationMasters hold slots and the cluster has map slots and reduce slots, or fewer than two
    /// slots.
    pub(crate) fn new(profile: Profile, seed: Seed, cluster: &Cluster) -> Self {
        let starts = Self { profile, seed, up: BTreeMap::new() };
        let is_possible = !cluster.is_map_reduce() && cluster.slots(SlotKind::Any) > 1;
        assert!(starts.profile.am_share() == 0.0 || is_possible, "slots for AMs and tasks");
        starts
    }

    /// The rules about ApplicationMasters for the driver on that cluster. One may always start, and one slot
    /// always remains.
    pub(crate) fn ams(&self, cluster: &Cluster) -> Ams {
        let (share, slots) = (self.profile.am_share(), cluster.slots(SlotKind::Any));
        let most = (share > 0.0).then(|| ((share * f64::from(slots)) as u32).clamp(1, slots - 1));
        Ams { most, linger: self.profile.am_linger() }
    }

    /// Whether tasks that start together may start to compute or end apart, or get separate speculative
    /// attempts.
    pub(crate) fn are_drawn(&self) -> bool {
        let UniformSpan { least, most } = self.profile.container_start();
        let differ = self.profile.straggler_share() > 0.0 || self.factors() != (1.0, 1.0);
        least < most || differ || self.profile.speculation().is_some()
    }

    /// The factors on the duration of a task in a rack of its input, and in another rack.
    fn factors(&self) -> (f64, f64) {
        (self.profile.rack_factor(), self.profile.off_rack_factor())
    }

    /// The factor on the duration of a task on `machine`, compared with a machine that has its input.
    pub(crate) fn far(&self, live: &Instance, phase: PhaseId, task: u32, machine: MachineId) -> f64 {
        let (in_rack, off_rack) = self.factors();
        let splits = live.phase(phase).tasks().map_or(&[][..], Tasks::splits);
        let before = splits.partition_point(|split| split.first <= task).checked_sub(1);
        let hosts = before.map_or(&[][..], |split| &splits[split].hosts);
        if hosts.is_empty() || hosts.contains(&machine) {
            return 1.0;
        }
        let rack = |machine| &live.cluster().group_of(machine).rack;
        if hosts.iter().any(|&host| rack(host) == rack(machine)) { in_rack } else { off_rack }
    }

    /// The factor on the duration of an attempt, wherever it runs.
    pub(crate) fn factor(&self, phase: PhaseId, task: u32, attempt: u16) -> f64 {
        let share = self.profile.straggler_share();
        let is_straggler =
            share > 0.0 && random::chance(&mut self.of_attempt("straggler", phase, task, attempt), share);
        if is_straggler { self.profile.straggler_factor() } else { 1.0 }
    }

    /// The random numbers of an attempt for one purpose.
    fn of_attempt(&self, stream: &str, phase: PhaseId, task: u32, attempt: u16) -> ChaCha8Rng {
        let of_attempt = Seed(self.seed.stream(stream, u64::from(attempt)));
        random::rng(of_attempt, "task", u64::from(phase.0) << 32 | u64::from(task))
    }

    /// The time to submit a job.
    pub(crate) fn submission(&self, job: JobId) -> Span {
        self.draw(self.profile.submit(), "submit", u64::from(job.0))
    }

    /// The time to start the ApplicationMaster of a job.
    pub(crate) fn am(&self, job: JobId) -> Span {
        self.draw(self.profile.am_start(), "am-start", u64::from(job.0))
    }

    /// The ApplicationMaster of a job is up.
    pub(crate) fn note_up(&mut self, job: JobId, now: Time) {
        self.up.insert(job, now);
    }

    /// A job is finished.
    pub(crate) fn forget(&mut self, job: JobId) {
        self.up.remove(&job);
    }

    /// The time from the start of an attempt to its own code: the ApplicationMaster learns of the slot with
    /// its next heartbeat, and then the container starts.
    pub(crate) fn container(&self, job: JobId, start: &Start<'_>) -> Span {
        let beat = self.profile.am_heartbeat().0;
        let since = start.since.since(self.up.get(&job).copied().unwrap_or(Time::ZERO)).0;
        let next_beat = if beat == 0 { 0 } else { since.next_multiple_of(beat) - since };
        let rng = &mut self.of_attempt("container-start", start.phase, start.first, start.attempt);
        Span(next_beat + between(self.profile.container_start(), rng).0)
    }

    fn draw(&self, range: UniformSpan, stream: &str, index: u64) -> Span {
        between(range, &mut random::rng(self.seed, stream, index))
    }
}

fn between(UniformSpan { least, most }: UniformSpan, rng: &mut ChaCha8Rng) -> Span {
    if least == most { least } else { Span(random::integer(rng, least.0, most.0)) }
}
