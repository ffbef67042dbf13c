//! Prediction intervals: simulates several samples of a run.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, recurring};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Draft, PhaseKind, Seed, Time};
use slackline_task::base::task_id::TaskId;

use crate::run::forecast::{Forecast, OVERDUE, completions, count};

/// The number of samples of a prediction interval. A prediction for a hundred flows has no time for more, and
/// each of the five usual ratios occurs twice.
pub(in crate::run) const SCENARIOS: u64 = 10;

/// Steps that are coprime to the number of samples.
const STEPS: [u64; 4] = [1, 3, 7, 9];

/// The assumed ratios of measured to estimated duration of a phase: the first for phases whose job ran before
/// or that have a finished task, the second for all others. The assumption holds until a run has shown how
/// much its phases differ. It puts 80 % of phases within a quarter, or within a factor of two, of the
/// estimate.
const AS_BEFORE: [f64; 5] = [0.8, 0.9, 1.0, 1.1, 1.25];
const AS_GUESSED: [f64; 5] = [0.5, 0.75, 1.0, 1.5, 2.0];

/// From this number of phases on, only the measured ratios count. With fewer phases, the assumed ratios count
/// too.
const RATIOS_MIN: usize = 5;

/// Relative difference below which two ratios are equal up to rounding.
const SAME: f64 = 1e-9;

/// The largest number of unfinished tasks of a run that is sampled.
pub(super) const SCENARIO_TASKS_MAX: usize = 20_000;

impl Forecast {
    /// By flow: the 80 % prediction interval of its completion time. Durations of tasks are drawn from those
    /// of finished tasks of the phase. A phase without finished tasks is scaled by the ratio of a phase that
    /// has some, or by an assumed ratio. The result is empty if more than [`SCENARIO_TASKS_MAX`] tasks are
    /// unfinished. The draws are the same in every prediction.
    pub(in crate::run) fn spread(&self, now: Time) -> BTreeMap<String, [f64; 2]> {
        let mut scenarios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let left = self.draft.flows.iter().flat_map(|flow| &flow.jobs);
        let left: usize =
            left.map(|job| [&job.map, &job.reduce].into_iter().flatten().map(count).sum::<usize>()).sum();
        if self.policy.is_program() || left.saturating_sub(self.done.len()) > SCENARIO_TASKS_MAX {
            return BTreeMap::new();
        }
        let running = self.running();
        for k in 0..SCENARIOS {
            let draft = self.ahead(&self.drawn_off(now, k, &|_| &AS_GUESSED), now);
            let Some(ends) = completions(&draft, &running, &self.policy, &self.setting, now) else { break };
            for (flow, at) in ends {
                scenarios.entry(flow).or_default().push(at);
            }
        }
        scenarios.into_iter().map(|(flow, mut ends)| (flow, likely(&mut ends))).collect()
    }

    /// Sample `k` of the run: the workload with drawn durations. If the run does not show the ratios of its
    /// phases, the ratios of a phase depend on whether it is in `known`.
    pub(in crate::run) fn drawn_among_others(&self, now: Time, k: u64, known: &BTreeSet<PhaseName>) -> Draft {
        self.drawn_off(now, k, &|name| if known.contains(name) { &AS_BEFORE } else { &AS_GUESSED })
    }

    fn drawn_off(&self, now: Time, k: u64, usual: &dyn Fn(&PhaseName) -> &'static [f64]) -> Draft {
        let mut draft = self.estimated(now);
        let mut rng = random::rng(Seed(0), "courses", k);
        let ratios = sorted(self.ratios());
        // If all ratios are equal, they do not show how phases differ.
        let differ = ratios.iter().any(|ratio| (ratio - ratios[0]).abs() > SAME * ratios[0]);
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        for (job, index) in jobs.zip(0..) {
            for (phase, kind) in [&mut job.map, &mut job.reduce].into_iter().zip(PhaseKind::ALL) {
                let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { continue };
                let flow = recurring(&self.flows[index as usize]).to_owned();
                let usual = usual(&PhaseName { flow, job: job.id.clone(), kind });
                let seen = self.each.get(&(index, kind)).map_or(&[][..], Vec::as_slice);
                // One finished task tells the typical duration of the others, but not their spread.
                let (each, usual) = if seen.len() == 1 { (&[][..], &AS_BEFORE[..]) } else { (seen, usual) };
                let with_usual;
                let off = match ratios.len() {
                    RATIOS_MIN.. if differ => &ratios[..],
                    _ if differ => {
                        with_usual = sorted([&ratios, usual].concat());
                        &with_usual
                    }
                    _ => usual,
                };
                let off = of_scenario(k, key(&self.flows[index as usize], index, kind), off).unwrap_or(1.0);
                for (seconds, task) in seconds.iter_mut().zip(0..) {
                    // The estimate of a running task is its remaining time.
                    let so_far = self.running.get(&TaskId { job: index, phase: kind, task });
                    let so_far = so_far.map_or(0.0, |running| running.elapsed(now));
                    let whole = one_of(&mut rng, each).unwrap_or((*seconds + so_far) * off);
                    *seconds = (whole - so_far).max(so_far * OVERDUE);
                }
            }
        }
        draft
    }

    /// The ratios of measured to estimated duration of the phases that have finished tasks.
    fn ratios(&self) -> Vec<f64> {
        let units = PhaseKind::ALL.map(|kind| self.unit(kind));
        let jobs = self.draft.flows.iter().flat_map(|flow| &flow.jobs).zip(0..);
        let mut ratios = Vec::new();
        for (job, index) in jobs {
            for ((phase, kind), unit) in [&job.map, &job.reduce].into_iter().zip(PhaseKind::ALL).zip(units) {
                let Some(PhaseDraft { tasks: TasksDraft::Each(each), .. }) = phase else { continue };
                let Some(took) = self.took.get(&(index, kind)) else { continue };
                let estimated = each.iter().sum::<f64>() / each.len().max(1) as f64 * unit;
                if estimated > 0.0 {
                    ratios.push(took.seconds / took.tasks / estimated);
                }
            }
        }
        ratios
    }
}

/// The 80 % interval of at least one completion time: the 10th and the 90th percentile, with linear
/// interpolation. Sorts `ends`. O(n log n)
pub(in crate::run) fn likely(ends: &mut [f64]) -> [f64; 2] {
    ends.sort_by(f64::total_cmp);
    let last = ends.len() - 1;
    [0.1, 0.9].map(|part| {
        let place = part * last as f64;
        let (below, above) = (ends[place as usize], ends[(place as usize + 1).min(last)]);
        below + (above - below) * place.fract()
    })
}

/// One of several sorted numbers, for sample `k`. The samples cover the numbers evenly, in a different order
/// for each phase, because ten independent draws may miss a likely value. The order has a start and a step
/// that is coprime to the number of samples.
fn of_scenario(k: u64, phase: u64, numbers: &[f64]) -> Option<f64> {
    let mixed = phase.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let step = STEPS[(mixed % STEPS.len() as u64) as usize];
    let place = (k % SCENARIOS * step + mixed / STEPS.len() as u64) % SCENARIOS;
    let part = (place as f64 + 0.5) / SCENARIOS as f64;
    numbers.get((part * numbers.len() as f64) as usize).copied()
}

/// A hash of a phase, from the name of its flow (FNV-1a). It is usually unique.
fn key(flow: &str, job: u32, kind: PhaseKind) -> u64 {
    let mix = |sum: u64, byte: u64| (sum ^ byte).wrapping_mul(0x0100_0000_01b3);
    let name = flow.bytes().map(u64::from).fold(0xcbf2_9ce4_8422_2325, mix);
    mix(name, 2 * u64::from(job) + kind as u64)
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// One of several numbers, drawn uniformly.
fn one_of(rng: &mut ChaCha8Rng, numbers: &[f64]) -> Option<f64> {
    let last = numbers.len().checked_sub(1)?;
    Some(numbers[random::integer(rng, 0, last as u64) as usize])
}
