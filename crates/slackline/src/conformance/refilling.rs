//! A cluster that starts tasks without orders. It refills some slots in the instant in which they become
//! free, as Hadoop refills the slots of a job, and occasionally attempts an invalid start.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::tasks::Tasks;
use slackline_model::{Instance, PhaseId, Seed, Time};
use slackline_policy::Engine;
use slackline_policy::engine::{AmOrder, Capabilities, Order, Report, RowId, Running, Start};
use slackline_sim::Sim;

/// The simulator, with starts that no policy ordered.
pub(super) struct Refilling<'a> {
    sim: Sim<'a>,
    /// The probability that a free slot is refilled.
    chance: f64,
    rng: ChaCha8Rng,
    /// By row: its phase and its first slot.
    rows: BTreeMap<RowId, (PhaseId, u32)>,
    /// By phase: its number of tasks, and the tasks that have ever started.
    phases: BTreeMap<PhaseId, (u32, BTreeSet<u32>)>,
    names: u64,
}

impl<'a> Refilling<'a> {
    /// Refills slots with this probability.
    pub(super) fn new(sim: Sim<'a>, chance: f64, seed: Seed) -> Self {
        let rng = random::rng(seed, "refilling", 0);
        Self { sim, chance, rng, rows: BTreeMap::new(), phases: BTreeMap::new(), names: 0 }
    }

    /// The task that the cluster starts on the slot of a row that ended: usually the last task of its phase
    /// that never ran, and occasionally any task of any phase, whether or not it may run.
    fn refill(&mut self, row: RowId, since: Time) -> Option<Running> {
        let &(mut phase, slot) = self.rows.get(&row)?;
        let mut task = None;
        if random::chance(&mut self.rng, 0.2) {
            let any = random::integer(&mut self.rng, 0, self.phases.len() as u64 - 1) as usize;
            phase = *self.phases.keys().nth(any)?;
            task = Some(random::integer(&mut self.rng, 0, 5) as u32);
        }
        let (total, started) = self.phases.get(&phase)?;
        let task = task.or_else(|| (0..*total).rev().find(|task| !started.contains(task)))?;
        self.names += 1;
        Some(Running { name: self.names, phase, task, slot, since })
    }
}

impl Engine for Refilling<'_> {
    fn capabilities(&self) -> Capabilities {
        self.sim.capabilities()
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let now = self.sim.poll(reports)?;
        let finished =
            |report: &Report| if let Report::Finished { row, .. } = report { Some(*row) } else { None };
        let is_later =
            |report: &Report| matches!(report, Report::Arrived(_) | Report::Offer(_) | Report::Woken);
        let after = reports.iter().position(is_later).unwrap_or(reports.len());
        let ended: Vec<RowId> = reports.iter().filter_map(finished).collect();
        for row in ended {
            if random::chance(&mut self.rng, self.chance)
                && let Some(running) = self.refill(row, now)
            {
                reports.insert(after, Report::Running(running));
            }
        }
        Some(now)
    }

    fn start(&mut self, start: &Start<'_>, live: &Instance) {
        self.rows.insert(start.row, (start.phase, start.places[0].first));
        let total = live.phase(start.phase).tasks().map_or(0, Tasks::count);
        let (_, started) = self.phases.entry(start.phase).or_insert_with(|| (total, BTreeSet::new()));
        started.extend(start.first..start.first + start.count);
        self.sim.start(start, live);
    }

    fn order(&mut self, order: Order) {
        self.sim.order(order);
    }

    fn am(&mut self, order: AmOrder, live: &Instance) {
        self.sim.am(order, live);
    }

    fn wake_at(&mut self, at: Time) {
        self.sim.wake_at(at);
    }

    fn want_offers(&mut self, slot_kinds: [bool; 2]) {
        self.sim.want_offers(slot_kinds);
    }

    fn may_bring_flows(&mut self) -> bool {
        self.sim.may_bring_flows()
    }
}
