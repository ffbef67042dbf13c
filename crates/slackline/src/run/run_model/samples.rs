//! Prediction intervals: samples of a run, with drawn durations.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::TasksDraft;
use slackline_model::history::PhaseName;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{PhaseId, PhaseKind, Seed, Span, Time};
use slackline_task::base::task_id::TaskId;

use super::{MeasuredPhase, OVERDUE, Phase, PhaseEntry, RunModel};

/// The number of samples of a prediction interval. A prediction for a hundred flows has no time for more, and
/// each of the five usual ratios occurs twice.
pub(in crate::run) const SAMPLES: u64 = 10;

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
pub(in crate::run) const SAMPLED_TASKS_MAX: usize = 20_000;

/// The phases of a simulated instance, by phase of a run: where the tasks are, and their numbers in the run.
pub(in crate::run) type SimulatedPhases = BTreeMap<Phase, (PhaseId, Vec<u32>)>;

/// Draws the durations of the remaining tasks of a run.
pub(in crate::run) struct Sampler<'a> {
    phases: Vec<SampledPhase<'a>>,
    /// The ratios of measured to estimated duration for phases that are like before, and for guessed ones.
    ratios: [Vec<f64>; 2],
}

/// A phase whose durations are drawn.
struct SampledPhase<'a> {
    key: u64,
    /// The durations of its finished tasks, if they show how much durations differ.
    finished: &'a [f64],
    is_guess: bool,
    /// By task: its estimated duration and its elapsed time, seconds.
    tasks: Vec<(f64, f64)>,
    /// Where its remaining tasks are simulated.
    simulated: Option<(PhaseId, Vec<u32>)>,
}

impl SampledPhase<'_> {
    /// The durations in sample `k`, with the ratios of such phases. Every task is drawn, so that draws do not depend
    /// on which tasks have finished.
    fn draw(&self, k: u64, ratios: &[f64], rng: &mut ChaCha8Rng) -> Option<(PhaseId, Vec<Span>)> {
        let ratio = of_sample(k, self.key, ratios).unwrap_or(1.0);
        let drawn = self.tasks.iter().map(|&(estimate, elapsed)| {
            let whole = one_of(rng, self.finished).unwrap_or(estimate * ratio);
            Span::from_seconds_nearest((whole - elapsed).max(elapsed * OVERDUE))
        });
        let drawn: Vec<Span> = drawn.collect();
        let (phase, tasks) = self.simulated.as_ref()?;
        Some((*phase, tasks.iter().map(|&task| drawn[task as usize]).collect()))
    }
}

impl Sampler<'_> {
    /// Sample `k` of [`SAMPLES`]: the durations of the simulated phases. Durations of tasks are drawn from those of
    /// finished tasks of the phase. A phase without finished tasks is scaled by the ratio of a phase that has some,
    /// or by an assumed ratio. The same `k` at the same moment draws the same durations.
    pub(in crate::run) fn draw(&self, k: u64) -> Vec<(PhaseId, Vec<Span>)> {
        let mut rng = random::rng(Seed(0), "courses", k);
        let drawn =
            |phase: &SampledPhase<'_>| phase.draw(k, &self.ratios[usize::from(phase.is_guess)], &mut rng);
        self.phases.iter().filter_map(drawn).collect()
    }
}

impl RunModel {
    /// Draws the durations of the phases in `simulated`. The assumed ratio of a phase without finished tasks depends on
    /// whether the phase is in `known`.
    pub(in crate::run) fn sampler(
        &self,
        now: Time,
        known: &BTreeSet<PhaseName>,
        mut simulated: SimulatedPhases,
    ) -> Sampler<'_> {
        let measured = sorted(self.ratios());
        // If all ratios are equal, they do not show how phases differ.
        let differ = measured.iter().any(|ratio| (ratio - measured[0]).abs() > SAME * measured[0]);
        let ratios = [AS_BEFORE, AS_GUESSED].map(|usual| match measured.len() {
            RATIOS_MIN.. if differ => measured.clone(),
            _ if differ => sorted([&measured[..], &usual].concat()),
            _ => usual.to_vec(),
        });
        let estimator = self.estimator(now);
        let sampled = |entry: PhaseEntry<'_>| {
            let TasksDraft::Each(each) = &entry.draft.tasks else { return None };
            let (phase @ (job, kind), mut each) = (entry.phase, each.clone());
            estimator.update(phase, &mut each);
            let task = |(left, task): (f64, u32)| {
                // The estimate of a running task is its remaining time.
                let running = self.running.get(&TaskId { job, phase: kind, task });
                let elapsed = running.map_or(0.0, |running| running.elapsed(now));
                (left + elapsed, elapsed)
            };
            let finished = self.each.get(&phase).map_or(&[][..], Vec::as_slice);
            Some(SampledPhase {
                key: key(entry.flow, job, kind),
                // One finished task tells the typical duration of the others, but not their spread.
                finished: if finished.len() == 1 { &[] } else { finished },
                is_guess: finished.len() != 1 && !known.contains(&entry.name()),
                tasks: each.into_iter().zip(0..).map(task).collect(),
                simulated: simulated.remove(&phase),
            })
        };
        Sampler { phases: self.phases().filter_map(sampled).collect(), ratios }
    }

    /// Whether the run has too many unfinished tasks to be sampled.
    pub(in crate::run) fn is_too_large_to_sample(&self) -> bool {
        self.unfinished() > SAMPLED_TASKS_MAX
    }

    /// The ratios of measured to estimated duration of the phases that have finished tasks.
    fn ratios(&self) -> Vec<f64> {
        let units = PhaseKind::ALL.map(|kind| self.unit(kind));
        let ratio = |phase: MeasuredPhase<'_>| {
            let estimated = phase.estimated(1.0) * units[phase.entry.phase.1 as usize];
            (estimated > 0.0).then(|| phase.took.seconds / phase.took.tasks / estimated)
        };
        self.measured().filter_map(ratio).collect()
    }
}

/// The 80 % interval of at least one completion time: the 10th and the 90th percentile, with linear
/// interpolation. Sorts `ends`. O(n log n)
pub(in crate::run) fn interval(ends: &mut [f64]) -> [f64; 2] {
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
fn of_sample(k: u64, phase: u64, numbers: &[f64]) -> Option<f64> {
    let mixed = phase.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let step = STEPS[(mixed % STEPS.len() as u64) as usize];
    let place = (k % SAMPLES * step + mixed / STEPS.len() as u64) % SAMPLES;
    let part = (place as f64 + 0.5) / SAMPLES as f64;
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
