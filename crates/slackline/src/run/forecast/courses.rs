//! The spread of what is predicted: the run is simulated in several courses that it may take.

use std::collections::BTreeMap;

use slackline_local::TaskId;
use slackline_model::draft::{PhaseDraft, TasksDraft};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Draft, PhaseKind, Seed, Time};

use super::{Forecast, OVERDUE, completions, count};

/// In how many courses a run is simulated for the spread of what is predicted.
pub(in crate::run) const COURSES: u64 = 20;

/// Most tasks of a run whose courses are simulated.
pub(super) const COURSE_TASKS_MAX: usize = 20_000;

impl Forecast {
    /// The same in other courses that the run may take: between which times eight of ten of them end each flow. What tasks
    /// are going to take is drawn from what those of their phase took, and, where none is done, off what is believed by as
    /// much as a phase was that has finished tasks. Nothing is said where so many tasks are left that it would take long. What is
    /// drawn does not change from look to look.
    pub(in crate::run) fn spread(&self, now: Time) -> BTreeMap<String, [f64; 2]> {
        let mut courses: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let left = self.draft.flows.iter().flat_map(|flow| &flow.jobs);
        let left: usize =
            left.map(|job| [&job.map, &job.reduce].into_iter().flatten().map(count).sum::<usize>()).sum();
        if self.policy.is_program() || left.saturating_sub(self.done.len()) > COURSE_TASKS_MAX {
            return BTreeMap::new();
        }
        for k in 0..COURSES {
            let draft = self.ahead(&self.drawn(now, k), now);
            let Some(ends) = completions(&draft, &self.policy, &self.setting, now) else { break };
            for (flow, at) in ends {
                courses.entry(flow).or_default().push(at);
            }
        }
        let between = |mut ends: Vec<f64>| {
            ends.sort_by(f64::total_cmp);
            let outside = ends.len() / 10;
            [ends[outside], ends[ends.len() - 1 - outside]]
        };
        courses.into_iter().map(|(flow, ends)| (flow, between(ends))).collect()
    }

    /// A course that the run may take: the workload with durations that are drawn.
    pub(in crate::run) fn drawn(&self, now: Time, k: u64) -> Draft {
        let mut draft = self.believed(now);
        let mut rng = random::rng(Seed(0), "courses", k);
        let ratios = self.ratios();
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        for (job, index) in jobs.zip(0..) {
            for (phase, kind) in [&mut job.map, &mut job.reduce].into_iter().zip(PhaseKind::ALL) {
                let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { continue };
                let each = self.each.get(&(index, kind)).map_or(&[][..], Vec::as_slice);
                let off = one_of(&mut rng, &ratios).unwrap_or(1.0);
                for (seconds, task) in seconds.iter_mut().zip(0..) {
                    // What is believed of a task at work is what is left of it.
                    let so_far = self.running.get(&TaskId { job: index, phase: kind, task });
                    let so_far = so_far.map_or(0.0, |running| running.elapsed(now));
                    let whole = one_of(&mut rng, each).unwrap_or((*seconds + so_far) * off);
                    *seconds = (whole - so_far).max(so_far * OVERDUE);
                }
            }
        }
        draft
    }

    /// By how much phases that have finished tasks were off what is believed of phases that have none.
    fn ratios(&self) -> Vec<f64> {
        let units = PhaseKind::ALL.map(|kind| self.unit(kind));
        let jobs = self.draft.flows.iter().flat_map(|flow| &flow.jobs).zip(0..);
        let mut ratios = Vec::new();
        for (job, index) in jobs {
            for ((phase, kind), unit) in [&job.map, &job.reduce].into_iter().zip(PhaseKind::ALL).zip(units) {
                let Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }) = phase else { continue };
                let Some(took) = self.took.get(&(index, kind)) else { continue };
                let believed = each.iter().sum::<f64>() / each.len().max(1) as f64 * unit;
                if believed > 0.0 {
                    ratios.push(took.seconds / took.tasks / believed);
                }
            }
        }
        ratios
    }
}

/// One of several numbers, all as likely.
fn one_of(rng: &mut ChaCha8Rng, numbers: &[f64]) -> Option<f64> {
    let last = numbers.len().checked_sub(1)?;
    Some(numbers[random::integer(rng, 0, last as u64) as usize])
}
