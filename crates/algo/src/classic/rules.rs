//! Orders of jobs on one machine: the rules of the textbook.
//!
//! Each is exact on one machine for some metric, and a start for a search on others. Ties go to the lower job.

use std::collections::BinaryHeap;

use slackline_model::Key;

/// A job as the rules see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// What it takes of a machine: slot-seconds.
    pub work: f64,
    /// Seconds it takes at least, however fast the machine is.
    pub alone: f64,
    /// By when it should be done, in seconds; infinite for no date.
    pub due: f64,
    /// Smith's ratio: work over weight, infinite without weight.
    pub ratio: f64,
}

/// Positions by ascending key, ties by position.
pub fn sorted(n: usize, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut keyed: Vec<(f64, usize)> = (0..n).map(|j| (key(j), j)).collect();
    keyed.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    keyed.into_iter().map(|(_, j)| j).collect()
}

/// Work over weight (Smith 1956): ΣwC.
pub fn smith(jobs: &[Job]) -> Vec<usize> {
    sorted(jobs.len(), |j| jobs[j].ratio)
}

/// Due time (Jackson 1955): the largest lateness.
pub fn earliest_due(jobs: &[Job]) -> Vec<usize> {
    sorted(jobs.len(), |j| jobs[j].due)
}

/// Those on time by due time, the late ones behind by Smith's rule.
fn late_last(jobs: &[Job], late: &[bool]) -> Vec<usize> {
    let mut order = sorted(jobs.len(), |j| if late[j] { jobs[j].ratio } else { jobs[j].due });
    order.sort_by_key(|&j| late[j]);
    order
}

/// Moore-Hodgson on a machine of some speed, as many jobs as possible on time: by due time, and whenever a job
/// would be late the one with the most work so far is left to be late. O(J log J).
pub fn moore(jobs: &[Job], speed: f64) -> Vec<usize> {
    let mut late: Vec<bool> = jobs.iter().map(|job| job.alone > job.due).collect();
    let mut kept: BinaryHeap<(Key, usize)> = BinaryHeap::new();
    let mut end = 0.0;
    for j in earliest_due(jobs) {
        if late[j] {
            continue;
        }
        kept.push((Key::new(jobs[j].work), j));
        end += jobs[j].work / speed;
        if end > jobs[j].due
            && let Some((_, longest)) = kept.pop()
        {
            late[longest] = true;
            end -= jobs[longest].work / speed;
        }
    }
    late_last(jobs, &late)
}

/// The weighted tardy count, greedily: jobs by what being late costs per work; each that still fits on a
/// machine of some speed beside those kept before is kept, the others are late. O(J log J).
pub fn worth(jobs: &[Job], speed: f64) -> Vec<usize> {
    let by_due = earliest_due(jobs);
    let mut place = vec![0; jobs.len()];
    by_due.iter().enumerate().for_each(|(at, &j)| place[j] = at);
    let mut late = vec![true; jobs.len()];
    let due: Vec<f64> = by_due.iter().map(|&j| jobs[j].due).collect();
    let mut room = Room::new(&due);
    for j in smith(jobs) {
        if jobs[j].alone <= jobs[j].due && room.take(place[j], jobs[j].work / speed) {
            late[j] = false;
        }
    }
    late_last(jobs, &late)
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

/// Apparent tardiness cost (Vepsalainen, Morton 1987), ΣwT: the job with the largest
/// w/V · exp(−slack⁺ / (k·p̄)) next, k = 1/2, time passing by V over the speed. O(J²).
pub fn apparent_tardiness_cost(jobs: &[Job], speed: f64) -> Vec<usize> {
    const LOOK_AHEAD: f64 = 0.5;
    let mean = jobs.iter().map(|job| job.work / speed).sum::<f64>() / jobs.len().max(1) as f64;
    let scale = (LOOK_AHEAD * mean).max(f64::MIN_POSITIVE);
    // The logarithm orders as the index does and needs no exponential.
    let worth: Vec<f64> = jobs.iter().map(|job| -libm::log(job.ratio.max(f64::MIN_POSITIVE))).collect();
    let mut rest: Vec<usize> = (0..jobs.len()).collect();
    let mut order = Vec::with_capacity(jobs.len());
    let mut now = 0.0;
    while !rest.is_empty() {
        let index = |&j: &usize| {
            let slack = (jobs[j].due - jobs[j].alone - now).max(0.0);
            worth[j] - slack / scale
        };
        let best = (0..rest.len())
            .max_by(|&a, &b| index(&rest[a]).total_cmp(&index(&rest[b])).then(rest[b].cmp(&rest[a])))
            .expect("invariant: some job is left");
        let job = rest.remove(best);
        now += jobs[job].work / speed;
        order.push(job);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(work: f64, due: f64) -> Job {
        Job { work, alone: work, due, ratio: work }
    }

    /// Five jobs of the textbook (Pinedo, 1 || ΣU): the second makes the third late, the first the last.
    #[test]
    fn moore_leaves_the_longest_late() {
        let jobs = [job(7.0, 9.0), job(8.0, 17.0), job(4.0, 18.0), job(6.0, 19.0), job(6.0, 21.0)];
        assert_eq!(moore(&jobs, 1.0), [2, 3, 4, 0, 1]);
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
}
