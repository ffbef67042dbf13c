//! σ from one arrival to the next: the linear program over the remaining work of the ready jobs.
//!
//! Of most jobs no task has started. Their numbers and their places in the orders of the program are kept, so
//! that O(jobs) is left to do for them.

use slackline_model::{JobId, PhaseId, PhaseKind, Span, Table};
use slackline_policy::View;
use slackline_relax::pb;

use super::super::bits::Bits;
use super::super::lp::{self, Side, System};
use super::super::queues::{Queues, Speeds};
use super::super::{model, order};
use super::config::Config;
use crate::estimated;

/// No place in an order.
const NONE: u32 = u32::MAX;

/// What the orders depend on.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    relaxed: pb::Job,
    /// By how much its key lies before its completion.
    lag: f64,
}

/// The numbers of a job of which no task has started, and the estimates that they follow from.
#[derive(Clone, Copy, Debug)]
struct JobNumbers {
    estimates: [Option<(PhaseId, Span)>; 2],
    numbers: Numbers,
}

/// The orders of the jobs at the last arrival, and what is known of the jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    system: Option<System>,
    known: Table<JobId, JobNumbers>,
    /// Jobs of which a task has started.
    begun: Bits,
    /// The jobs of the last call; the orders have places in it.
    ids: Vec<JobId>,
    /// Their order by the key of the list.
    order: Vec<u32>,
    solver: pb::Solver,
    numbers: Vec<pb::Job>,
    lags: Vec<f64>,
    /// Completions, then keys.
    keys: Vec<f64>,
    /// The places of jobs whose numbers are new.
    renewed: Vec<u32>,
    is_renewed: Bits,
    /// The places of the jobs of the last call in this one.
    places: Vec<u32>,
}

impl Ranking {
    /// A task of a job starts.
    pub(super) fn begin(&mut self, job: JobId) {
        self.begun.insert(job.0);
    }

    /// A job is done.
    pub(super) fn forget(&mut self, job: JobId) {
        self.known.remove(job);
    }

    /// Writes the jobs in the order of the list (Algorithm 1, lines 1 and 2).
    pub(super) fn sort(
        &mut self,
        jobs: &[JobId],
        config: Config,
        queues: &Queues,
        speeds: &Speeds,
        view: &View<'_>,
        order: &mut Vec<JobId>,
    ) {
        let system = model::system(view.instance.cluster(), |group| speeds.0[group]);
        if self.system.as_ref() != Some(&system) {
            self.known = Table::new();
        }
        self.look_at(jobs, config, &system, queues, speeds, view);
        self.carry_over(jobs);
        let Self { solver, numbers, lags, keys, ids, .. } = self;
        solver.solve(numbers, system.all().capacity(), keys);
        for (key, lag) in keys.iter_mut().zip(lags) {
            *key -= *lag;
        }
        self.order.sort_by(|&a, &b| keys[a as usize].total_cmp(&keys[b as usize]).then(a.cmp(&b)));
        order.clear();
        order.extend(self.order.iter().map(|&at| ids[at as usize]));
        self.system = Some(system);
    }

    /// Finds the numbers of all jobs.
    fn look_at(
        &mut self,
        jobs: &[JobId],
        config: Config,
        system: &System,
        queues: &Queues,
        speeds: &Speeds,
        view: &View<'_>,
    ) {
        self.numbers.clear();
        self.lags.clear();
        self.renewed.clear();
        self.is_renewed.clear();
        let is_same = |&(phase, span): &(PhaseId, Span)| view.estimates.task[phase] == span;
        for (place, &id) in (0..).zip(jobs) {
            let known = self.known.get(id).filter(|known| known.estimates.iter().flatten().all(is_same));
            let numbers = match known {
                Some(known) if !self.begun.contains(id.0) => known.numbers,
                _ => {
                    self.renewed.push(place);
                    self.is_renewed.insert(place);
                    let job = config.variant.considers(remaining(id, queues, speeds, view));
                    let relaxed = lp::relaxed(&job, system, config.form);
                    let numbers = Numbers { relaxed, lag: order::lag(&job, system, config.key) };
                    let info = view.instance.job(id);
                    let estimate = |phase: PhaseId| (phase, view.estimates.task[phase]);
                    let estimates = [info.map.map(estimate), info.reduce.map(estimate)];
                    self.known.insert(id, JobNumbers { estimates, numbers });
                    numbers
                }
            };
            self.numbers.push(numbers.relaxed);
            self.lags.push(numbers.lag);
        }
    }

    /// Carries the orders of the last call over: first the jobs whose numbers are the same, then the others.
    fn carry_over(&mut self, jobs: &[JobId]) {
        let Self { ids, order, solver, renewed, is_renewed, places, .. } = self;
        places.clear();
        let mut now = (0..).zip(jobs).peekable();
        for id in &*ids {
            while now.next_if(|&(_, other)| other < id).is_some() {}
            let same = now.next_if(|&(_, other)| other == id);
            places.push(same.map_or(NONE, |(place, _)| place));
        }
        for list in [order, &mut solver.smith, &mut solver.by_kappa] {
            list.retain_mut(|place| {
                *place = places[*place as usize];
                *place != NONE && !is_renewed.contains(*place)
            });
            list.extend(&*renewed);
        }
        ids.clear();
        ids.extend(jobs);
    }
}

/// The remaining work of a job, released now.
fn remaining(id: JobId, queues: &Queues, speeds: &Speeds, view: &View<'_>) -> lp::Job {
    let info = view.instance.job(id);
    let side = |kind: PhaseKind| {
        let Some(phase) = info.phase(kind).filter(|&phase| !view.is_instant(phase)) else {
            return Side::default();
        };
        let (mut work, mut longest) = estimated::left(view, phase);
        let mut count = view.phase(phase).unstarted();
        for (end, group, running) in queues.ends(phase, speeds, view.now) {
            let rest = end.since(view.now).seconds() * speeds.0[group];
            work += rest * f64::from(running);
            longest = longest.max(rest);
            count = count.saturating_add(running);
        }
        Side { work, longest, tasks: count.min(view.instance.phase(phase).cap) }
    };
    let weight = model::weight(view.instance.flow(info.flow));
    lp::Job { weight, release: 0.0, map: side(PhaseKind::Map), reduce: side(PhaseKind::Reduce) }
}
