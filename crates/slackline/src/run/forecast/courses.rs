//! The spread of what is predicted: the run is simulated in several courses that it may take.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{PhaseDraft, TasksDraft};
use slackline_model::history::{PhaseName, recurring};
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Draft, PhaseKind, Seed, Time};
use slackline_task::base::task_id::TaskId;

use super::{Forecast, OVERDUE, completions, count};

/// In how many courses a run is simulated for the spread of what is predicted: a look ahead at a hundred flows has time for no more, and
/// each of the usual errors comes twice.
pub(in crate::run) const COURSES: u64 = 10;

/// Steps that have no divisor with that number.
const STEPS: [u64; 4] = [1, 3, 7, 9];

/// By how much a phase is off what is believed of it whose job ran before or has a finished task, and one of which neither is so. That is
/// an assumption, for as long as a run has not shown how much its phases differ: eight in ten are believed to be off by less than a
/// quarter, and by less than a factor of two.
const AS_BEFORE: [f64; 5] = [0.8, 0.9, 1.0, 1.1, 1.25];
const AS_GUESSED: [f64; 5] = [0.5, 0.75, 1.0, 1.5, 2.0];

/// As many phases say by how much others are off; the assumption counts beside fewer.
const RATIOS_MIN: usize = 5;

/// Phases are off by as much if they differ by less than this part: what is left of rounding.
const SAME: f64 = 1e-9;

/// Most tasks of a run whose courses are simulated.
pub(super) const COURSE_TASKS_MAX: usize = 20_000;

impl Forecast {
    /// The same in other courses that the run may take: between which times eight of ten of them end each flow. What tasks
    /// are going to take is drawn from what those of their phase took, and, where none is done, off what is believed by as
    /// much as a phase was that has finished tasks, or as phases are of which nothing is known. Nothing is said where so many tasks are left that it would take long. What is
    /// drawn does not change from look to look.
    pub(in crate::run) fn spread(&self, now: Time) -> BTreeMap<String, [f64; 2]> {
        let mut courses: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let left = self.draft.flows.iter().flat_map(|flow| &flow.jobs);
        let left: usize =
            left.map(|job| [&job.map, &job.reduce].into_iter().flatten().map(count).sum::<usize>()).sum();
        if self.policy.is_program() || left.saturating_sub(self.done.len()) > COURSE_TASKS_MAX {
            return BTreeMap::new();
        }
        let seats = self.seats();
        for k in 0..COURSES {
            let draft = self.ahead(&self.drawn_off(now, k, &|_| &AS_GUESSED), now);
            let Some(ends) = completions(&draft, &seats, &self.policy, &self.setting, now) else { break };
            for (flow, at) in ends {
                courses.entry(flow).or_default().push(at);
            }
        }
        courses.into_iter().map(|(flow, mut ends)| (flow, likely(&mut ends))).collect()
    }

    /// A course that the run may take: the workload with durations that are drawn. What is believed of a phase is off by as much as
    /// it usually is, where the run itself does not show by how much.
    pub(in crate::run) fn drawn_among_others(&self, now: Time, k: u64, known: &BTreeSet<PhaseName>) -> Draft {
        self.drawn_off(now, k, &|name| if known.contains(name) { &AS_BEFORE } else { &AS_GUESSED })
    }

    fn drawn_off(&self, now: Time, k: u64, usual: &dyn Fn(&PhaseName) -> &'static [f64]) -> Draft {
        let mut draft = self.believed(now);
        let mut rng = random::rng(Seed(0), "courses", k);
        let ratios = sorted(self.ratios());
        // Where all phases were off by as much, nothing is known of how they differ.
        let differ = ratios.iter().any(|ratio| (ratio - ratios[0]).abs() > SAME * ratios[0]);
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        for (job, index) in jobs.zip(0..) {
            for (phase, kind) in [&mut job.map, &mut job.reduce].into_iter().zip(PhaseKind::ALL) {
                let Some(PhaseDraft { tasks: TasksDraft::Each(seconds), .. }) = phase else { continue };
                let flow = recurring(&self.flows[index as usize]).to_owned();
                let usual = usual(&PhaseName { flow, job: job.id.clone(), kind });
                let seen = self.each.get(&(index, kind)).map_or(&[][..], Vec::as_slice);
                // One task that is done says how long the others take, and not by how much they differ.
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
                let off = of_course(k, key(&self.flows[index as usize], index, kind), off).unwrap_or(1.0);
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

/// Between which of several ends, at least one, eight of ten lie: their tenth and ninetieth percentiles, linear between two of them. They
/// are sorted. O(n log n)
pub(in crate::run) fn likely(ends: &mut [f64]) -> [f64; 2] {
    ends.sort_by(f64::total_cmp);
    let last = ends.len() - 1;
    [0.1, 0.9].map(|part| {
        let place = part * last as f64;
        let (below, above) = (ends[place as usize], ends[(place as usize + 1).min(last)]);
        below + (above - below) * place.fract()
    })
}

/// One of several numbers, which are sorted, for a course: over all courses they come as evenly as can be, for each phase in an order of its
/// own. So few courses that draw by themselves may miss what is likely. The order is a step with which all places are come by, from one
/// of them on.
fn of_course(k: u64, phase: u64, numbers: &[f64]) -> Option<f64> {
    let mixed = phase.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let step = STEPS[(mixed % STEPS.len() as u64) as usize];
    let place = (k % COURSES * step + mixed / STEPS.len() as u64) % COURSES;
    let part = (place as f64 + 0.5) / COURSES as f64;
    numbers.get((part * numbers.len() as f64) as usize).copied()
}

/// A number of a phase, by the name of its flow (FNV-1a), that of no other as a rule.
fn key(flow: &str, job: u32, kind: PhaseKind) -> u64 {
    let mix = |sum: u64, byte: u64| (sum ^ byte).wrapping_mul(0x0100_0000_01b3);
    let name = flow.bytes().map(u64::from).fold(0xcbf2_9ce4_8422_2325, mix);
    mix(name, 2 * u64::from(job) + kind as u64)
}

fn sorted(mut numbers: Vec<f64>) -> Vec<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// One of several numbers, all as likely.
fn one_of(rng: &mut ChaCha8Rng, numbers: &[f64]) -> Option<f64> {
    let last = numbers.len().checked_sub(1)?;
    Some(numbers[random::integer(rng, 0, last as u64) as usize])
}
