//! Priority orders: the metric-specific schemes that the paper leaves out.
//!
//! Each is a rule of the textbook that is exact on one fast machine (all M ≥ S, no minima) for some
//! metric, applied to what a job's cost function says of itself: a *slope* (cost a second once it
//! begins to rise) and a *due* time (the latest that costs no more than completing at once). For linear
//! costs the slope is w, or w over the work for stretch, so that Smith's rule serves response, weighted
//! response and stretch alike (docs/math.md C6).

use slackline_model::Key;
use slackline_relax::malleable::{Job, horizon};

use super::instance::FlexInstance;
use super::rap;

/// Where an order comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// V over slope (Smith 1956): ΣwC.
    Smith,
    /// Due time (Jackson 1955): the largest lateness.
    DueDate,
    /// Moore-Hodgson: as many jobs as possible on time, the late ones behind.
    Moore,
    /// Most cost per work first as long as it can be on time, the rest behind: the weighted tardy count.
    Worth,
    /// Apparent tardiness cost, k = 1/2 (Vepsalainen, Morton 1987): ΣwT.
    Atc,
    /// V over maximum: what is short alone.
    Shortest,
    /// Completion order of the best constant allocation: the paper's generic order.
    Generic,
    /// As given.
    Given,
}

impl Rule {
    /// All rules, in the order in which ties between their results are settled.
    pub const ALL: [Self; 8] = [
        Self::Smith,
        Self::DueDate,
        Self::Moore,
        Self::Worth,
        Self::Atc,
        Self::Shortest,
        Self::Generic,
        Self::Given,
    ];

    /// The name in the plan's answer.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smith => "smith",
            Self::DueDate => "edd",
            Self::Moore => "moore",
            Self::Worth => "worth",
            Self::Atc => "atc",
            Self::Shortest => "shortest",
            Self::Generic => "rap",
            Self::Given => "given",
        }
    }

    /// The order of this rule, or `None` if it has nothing to say about the instance or would take more
    /// than `cells` operations beyond sorting.
    pub fn order(self, instance: &FlexInstance, nature: &Nature, cells: u64) -> Option<Vec<usize>> {
        let jobs = instance.jobs();
        let n = jobs.len();
        match self {
            Self::Smith => Some(sorted(n, |j| nature.ratio(jobs, j))),
            Self::DueDate => nature.dated.then(|| sorted(n, |j| nature.due[j])),
            Self::Moore => nature.dated.then(|| moore(instance, nature)),
            Self::Worth => nature.dated.then(|| worth(instance, nature)),
            Self::Atc => (nature.dated && (n as u64).pow(2) <= cells).then(|| atc(instance, nature)),
            Self::Shortest => Some(sorted(n, |j| jobs[j].alone())),
            Self::Generic => rap::solve(instance, cells).map(|slots| rap::order(instance, &slots)),
            Self::Given => Some((0..n).collect()),
        }
    }
}

/// What the cost functions of an instance's jobs say of themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Nature {
    /// Cost a second once it rises.
    pub slope: Vec<f64>,
    /// Latest plan time that costs no more than completing at time 0; infinite for no cost at all.
    pub due: Vec<f64>,
    /// Whether some job can be on time.
    pub dated: bool,
}

impl Nature {
    /// Reads the cost functions. O(J + breakpoints).
    pub fn new(instance: &FlexInstance) -> Self {
        let jobs = instance.jobs();
        let last = horizon(jobs, instance.slots());
        let linear = |job: &Job| job.cost.as_linear().is_some_and(|(slope, _)| slope > 0.0);
        let due: Vec<f64> = jobs
            .iter()
            .map(|job| if linear(job) { 0.0 } else { job.latest(job.cost_at(0.0)).unwrap_or(0.0) })
            .collect();
        let slope = jobs.iter().zip(&due).map(|(job, &due)| slope(job, due, last)).collect();
        let dated = due.iter().any(|&t| t > 0.0 && t.is_finite());
        Self { slope, due, dated }
    }

    /// Smith's ratio V/w; jobs that cost nothing come last.
    fn ratio(&self, jobs: &[Job], j: usize) -> f64 {
        if self.slope[j] > 0.0 { jobs[j].work / self.slope[j] } else { f64::INFINITY }
    }
}

fn slope(job: &Job, due: f64, last: f64) -> f64 {
    if let Some((slope, _)) = job.cost.as_linear() {
        return slope;
    }
    if let Some(steps) = job.cost.as_steps() {
        return steps.last().map_or(0.0, |&(_, level)| level) / last.max(f64::MIN_POSITIVE);
    }
    if due.is_infinite() {
        return 0.0;
    }
    let far = 2.0 * (due + last) + 1.0;
    (job.cost_at(far) - job.cost_at(due)) / (far - due)
}

/// Positions by ascending key, ties by position.
pub(super) fn sorted(n: usize, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut keyed: Vec<(f64, usize)> = (0..n).map(|j| (key(j), j)).collect();
    keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    keyed.into_iter().map(|(_, j)| j).collect()
}

/// Those on time by due time, the late ones behind by Smith's rule.
fn late_last(instance: &FlexInstance, nature: &Nature, late: &[bool]) -> Vec<usize> {
    let jobs = instance.jobs();
    let mut order = sorted(jobs.len(), |j| if late[j] { nature.ratio(jobs, j) } else { nature.due[j] });
    order.sort_by_key(|&j| late[j]);
    order
}

/// Moore-Hodgson on one machine of speed S: by due time, and whenever a job would be late the one with
/// the most work so far is left to be late. O(J log J).
fn moore(instance: &FlexInstance, nature: &Nature) -> Vec<usize> {
    let jobs = instance.jobs();
    let mut late: Vec<bool> = jobs.iter().zip(&nature.due).map(|(job, &due)| job.alone() > due).collect();
    let mut kept: std::collections::BinaryHeap<(Key, usize)> = std::collections::BinaryHeap::new();
    let mut end = 0.0;
    for j in sorted(jobs.len(), |j| nature.due[j]) {
        if late[j] {
            continue;
        }
        kept.push((Key(jobs[j].work), j));
        end += jobs[j].work / f64::from(instance.slots());
        if end > nature.due[j]
            && let Some((_, longest)) = kept.pop()
        {
            late[longest] = true;
            end -= jobs[longest].work / f64::from(instance.slots());
        }
    }
    late_last(instance, nature, &late)
}

/// Jobs by what being late costs per work; each that still fits on one machine of speed S beside those
/// kept before is kept. A job that fits pushes back all that are due later: O(J²) at worst, with a scan
/// that stops at the first that becomes late.
fn worth(instance: &FlexInstance, nature: &Nature) -> Vec<usize> {
    let jobs = instance.jobs();
    let by_due = sorted(jobs.len(), |j| nature.due[j]);
    let mut place = vec![0; jobs.len()];
    by_due.iter().enumerate().for_each(|(at, &j)| place[j] = at);
    let mut late = vec![true; jobs.len()];
    // room[at]: by how much the kept jobs up to there could be later.
    let due: Vec<f64> = by_due.iter().map(|&j| nature.due[j]).collect();
    let mut room = Room::new(&due);
    for j in sorted(jobs.len(), |j| nature.ratio(jobs, j)) {
        let time = jobs[j].work / f64::from(instance.slots());
        if jobs[j].alone() <= nature.due[j] && room.take(place[j], time) {
            late[j] = false;
        }
    }
    late_last(instance, nature, &late)
}

/// Prefix loads against due times, with "add to all from here on" and "the least room from here on",
/// as a segment tree: O(log J) each.
struct Room {
    size: usize,
    least: Vec<f64>,
    added: Vec<f64>,
}

impl Room {
    fn new(due: &[f64]) -> Self {
        let size = due.len().next_power_of_two();
        let mut least = vec![f64::INFINITY; 2 * size];
        least[size..size + due.len()].copy_from_slice(due);
        for at in (1..size).rev() {
            least[at] = least[2 * at].min(least[2 * at + 1]);
        }
        Self { size, least, added: vec![0.0; 2 * size] }
    }

    /// Adds `time` to everything from `from` on if nothing there becomes late by it.
    fn take(&mut self, from: usize, time: f64) -> bool {
        let fits = self.least_from(from) >= time;
        if fits {
            self.add_from(from, time);
        }
        fits
    }

    /// Going up from a leaf, the right siblings of left children are what lies behind it.
    fn least_from(&self, from: usize) -> f64 {
        let mut node = self.size + from;
        let mut least = self.least[node];
        while node > 1 {
            if node.is_multiple_of(2) {
                least = least.min(self.least[node + 1]);
            }
            node /= 2;
            least -= self.added[node];
        }
        least
    }

    fn add_from(&mut self, from: usize, time: f64) {
        let mut node = self.size + from;
        self.least[node] -= time;
        while node > 1 {
            if node.is_multiple_of(2) {
                self.least[node + 1] -= time;
                self.added[node + 1] += time;
            }
            node /= 2;
            self.least[node] = self.least[2 * node].min(self.least[2 * node + 1]) - self.added[node];
        }
    }
}

/// The job with the largest w/V · exp(−slack⁺ / (k·p̄)) next, time passing by V/S. O(J²).
fn atc(instance: &FlexInstance, nature: &Nature) -> Vec<usize> {
    const LOOK_AHEAD: f64 = 0.5;
    let jobs = instance.jobs();
    let slots = f64::from(instance.slots());
    let mean = jobs.iter().map(|job| job.work / slots).sum::<f64>() / jobs.len().max(1) as f64;
    let scale = (LOOK_AHEAD * mean).max(f64::MIN_POSITIVE);
    // The logarithm orders as the index does and needs no exponential.
    let worth: Vec<f64> =
        (0..jobs.len()).map(|j| -libm::log(nature.ratio(jobs, j).max(f64::MIN_POSITIVE))).collect();
    let mut rest: Vec<usize> = (0..jobs.len()).collect();
    let mut order = Vec::with_capacity(jobs.len());
    let mut now = 0.0;
    while !rest.is_empty() {
        let index = |&j: &usize| {
            let slack = (nature.due[j] - jobs[j].alone() - now).max(0.0);
            worth[j] - slack / scale
        };
        let best = (0..rest.len())
            .max_by(|&a, &b| index(&rest[a]).total_cmp(&index(&rest[b])).then(rest[b].cmp(&rest[a])))
            .expect("invariant: some job is left");
        let job = rest.remove(best);
        now += jobs[job].work / slots;
        order.push(job);
    }
    order
}

#[cfg(test)]
mod tests {
    use slackline_model::{Combine, CostFn};

    use super::*;

    fn order(rule: Rule, jobs: Vec<Job>) -> Vec<usize> {
        let instance = FlexInstance::new(2, Combine::Sum, jobs);
        rule.order(&instance, &Nature::new(&instance), 1000).unwrap()
    }

    fn linear(work: f64, weight: f64) -> Job {
        Job::new(work, (0, 2), CostFn::linear(weight, 0.0))
    }

    fn tardy(work: f64, weight: f64, due: f64) -> Job {
        Job::new(work, (0, 2), CostFn::steps(vec![(due, weight)]))
    }

    #[test]
    fn smith_is_work_over_weight_and_weightless_jobs_come_last() {
        assert_eq!(order(Rule::Smith, vec![linear(4.0, 1.0), linear(1.0, 0.0), linear(6.0, 2.0)]), [2, 0, 1]);
    }

    #[test]
    fn moore_gives_the_longest_up() {
        // On one machine of speed 2: 1 + 3 + 1 seconds, due 2, 4, 4.5; the second is given up.
        let jobs = vec![tardy(2.0, 1.0, 2.0), tardy(6.0, 1.0, 4.0), tardy(2.0, 1.0, 4.5)];
        assert_eq!(order(Rule::Moore, jobs.clone()), [0, 2, 1]);
        // Unless it is worth more than the others.
        let mut heavy = jobs;
        heavy[1].cost = CostFn::steps(vec![(4.0, 9.0)]);
        assert_eq!(order(Rule::Worth, heavy), [0, 1, 2]);
    }

    #[test]
    fn room_is_that_of_prefix_sums() {
        let due = [3.0, 4.0, 4.5, 9.0, 9.5];
        let mut room = Room::new(&due);
        let mut load = [0.0; 5];
        for (from, time) in [(2, 2.0), (0, 2.0), (1, 1.0), (4, 3.5), (3, 4.5), (3, 4.0), (4, 0.5), (4, 0.25)]
        {
            let mut after = load;
            after[from..].iter_mut().for_each(|l| *l += time);
            let fits = after.iter().zip(&due).skip(from).all(|(l, d)| l <= d);
            assert_eq!(room.take(from, time), fits, "{time} from {from}");
            load = if fits { after } else { load };
        }
        assert_eq!(load, [2.0, 2.0, 4.0, 4.0, 8.25]);
    }

    #[test]
    fn rules_for_due_times_say_nothing_without_any() {
        let instance = FlexInstance::new(2, Combine::Sum, vec![linear(1.0, 1.0)]);
        let nature = Nature::new(&instance);
        let given = Rule::ALL.map(|rule| rule.order(&instance, &nature, 1000).is_some());
        assert_eq!(given, [true, false, false, false, false, true, true, true]);
    }

    #[test]
    fn atc_is_smith_when_everything_is_late_and_urgent_first_before() {
        let late = |work, w| Job::new(work, (0, 2), CostFn::tardiness(w, 0.25));
        assert_eq!(order(Rule::Atc, vec![late(8.0, 1.0), late(2.0, 1.0)]), [1, 0]);
        let due = |work, due| Job::new(work, (0, 2), CostFn::tardiness(1.0, due));
        assert_eq!(order(Rule::Atc, vec![due(2.0, 90.0), due(8.0, 4.0)]), [1, 0]);
    }
}
