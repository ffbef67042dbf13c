//! Textbook orders of jobs on one machine.
//!
//! Each is exact on one machine for some metric, and a start for a search on others. Ties go to the lower
//! job.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slackline_model::Key;

/// The properties of a job that the rules use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Its work: slot-seconds.
    pub work: f64,
    /// The least seconds that it takes, however fast the machine is.
    pub alone: f64,
    /// Its due time, in seconds; infinite without one.
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

/// Jobs on time by due time, then the late ones by Smith's rule.
fn late_last(jobs: &[Job], late: &[bool]) -> Vec<usize> {
    let mut order = sorted(jobs.len(), |j| if late[j] { jobs[j].ratio } else { jobs[j].due });
    order.sort_by_key(|&j| late[j]);
    order
}

/// Moore-Hodgson on a machine of some speed, with as many jobs as possible on time. Jobs are added by due
/// time. Whenever a job would be late, the jobs with the largest `burden` so far become late. With the work
/// as burden, the number on time is maximal (the theorem); Smith's ratio gives a rule for weights. O(J log
/// J).
pub fn moore(jobs: &[Job], speed: f64, burden: impl Fn(&Job) -> f64) -> Vec<usize> {
    let mut late: Vec<bool> = jobs.iter().map(|job| job.alone > job.due).collect();
    let mut kept: BinaryHeap<(Key, usize)> = BinaryHeap::new();
    let mut end = 0.0;
    for j in earliest_due(jobs) {
        if late[j] {
            continue;
        }
        kept.push((Key::new(burden(&jobs[j])), j));
        end += jobs[j].work / speed;
        while end > jobs[j].due
            && let Some((_, worst)) = kept.pop()
        {
            late[worst] = true;
            end -= jobs[worst].work / speed;
        }
    }
    late_last(jobs, &late)
}

/// The weighted tardy count, greedily: jobs by the cost of lateness per work. A job that still fits beside
/// the earlier ones on a machine of some speed is kept, the others are late. O(J log J).
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

/// Apparent tardiness cost (Vepsalainen, Morton 1987), ΣwT: the job with the largest w/V · exp(−slack⁺ /
/// (k·p̄)) next, k the look-ahead; time advances by V over the speed. O(J log J).
///
/// While a job has slack, its index grows with time like that of every other such job; from then on it is
/// constant. So two heaps hold the jobs, and a job moves from one to the other once.
pub fn apparent_tardiness_cost(jobs: &[Job], speed: f64, look_ahead: f64) -> Vec<usize> {
    let mean = jobs.iter().map(|job| job.work / speed).sum::<f64>() / jobs.len().max(1) as f64;
    let scale = (look_ahead * mean).max(f64::MIN_POSITIVE);
    let slack = |j: usize| jobs[j].due - jobs[j].alone;
    // The logarithm gives the same order and needs no exponential.
    let worth = |j: usize| -libm::log(jobs[j].ratio.max(f64::MIN_POSITIVE));
    let heap = |j: usize| (Key::new(worth(j) - slack(j) / scale), Reverse(j));
    let mut slacks = sorted(jobs.len(), slack).into_iter().peekable();
    let mut relaxed: BinaryHeap<(Key, Reverse<usize>)> = (0..jobs.len()).map(heap).collect();
    let mut urgent: BinaryHeap<(Key, Reverse<usize>)> = BinaryHeap::new();
    let mut is_relaxed = vec![true; jobs.len()];
    let mut order = Vec::with_capacity(jobs.len());
    let mut now = 0.0;
    while order.len() < jobs.len() {
        while let Some(j) = slacks.next_if(|&j| slack(j) <= now) {
            if std::mem::replace(&mut is_relaxed[j], false) {
                urgent.push((Key::new(worth(j)), Reverse(j)));
            }
        }
        while relaxed.peek().is_some_and(|&(_, Reverse(j))| !is_relaxed[j]) {
            relaxed.pop();
        }
        let later = relaxed.peek().map(|&(key, j)| (Key::new(key.number() + now / scale), j));
        let next = if urgent.peek() >= later.as_ref() { urgent.pop() } else { relaxed.pop() };
        let Some((_, Reverse(j))) = next else { break };
        is_relaxed[j] = false;
        now += jobs[j].work / speed;
        order.push(j);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(work: f64, due: f64) -> Job {
        Job { work, alone: work, due, ratio: work }
    }

    /// Five textbook jobs (Pinedo, 1 || ΣU): the second makes the third late, the first the last.
    #[test]
    fn moore_leaves_the_longest_late() {
        let jobs = [job(7.0, 9.0), job(8.0, 17.0), job(4.0, 18.0), job(6.0, 19.0), job(6.0, 21.0)];
        assert_eq!(moore(&jobs, 1.0, |job| job.work), [2, 3, 4, 0, 1]);
    }

    /// The definition, job by job.
    fn atc_slowly(jobs: &[Job], look_ahead: f64) -> Vec<usize> {
        let mean = jobs.iter().map(|job| job.work).sum::<f64>() / jobs.len() as f64;
        let (mut rest, mut order, mut now): (Vec<usize>, _, _) = ((0..jobs.len()).collect(), Vec::new(), 0.0);
        while !rest.is_empty() {
            let index = |j: usize| {
                let slack = (jobs[j].due - jobs[j].alone - now).max(0.0);
                -libm::log(jobs[j].ratio) - slack / (look_ahead * mean)
            };
            let order_of = |&a: &usize, &b: &usize| {
                index(rest[a]).total_cmp(&index(rest[b])).then(rest[b].cmp(&rest[a]))
            };
            let best = (0..rest.len()).max_by(order_of).unwrap();
            now += jobs[rest[best]].work;
            order.push(rest.remove(best));
        }
        order
    }

    #[test]
    fn heaps_find_what_the_definition_of_atc_says() {
        let job = |k: u32| {
            let draw =
                |of: u32, by: u32| f64::from(k.wrapping_mul(2_654_435_761).rotate_left(of) % by) + 0.37;
            Job { work: draw(3, 19), alone: draw(7, 11), due: draw(11, 150), ratio: draw(17, 23) }
        };
        for n in 1..40 {
            let jobs: Vec<Job> = (n..2 * n).map(job).collect();
            for look_ahead in [0.5, 2.0] {
                let expected = atc_slowly(&jobs, look_ahead);
                assert_eq!(apparent_tardiness_cost(&jobs, 1.0, look_ahead), expected, "{n} jobs");
            }
        }
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
