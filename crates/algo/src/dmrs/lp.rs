//! LP-MapReduce: completion times that no schedule can beat together, and the order that follows from them.
//!
//! The paper's program (§III.A) minimises Σ w_j C_j under Eq. (2) and the floors of Eq. (7). With the work
//! p_j, the floor l_j and the tail h_j of each job it is the program of [`slackline_relax::pb`], which solves
//! it exactly in O(N log N) where the paper calls the ellipsoid method (docs/math/dmrs.md A1–A4).
//!
//! | | floor l_j | tail h_j |
//! |---|---|---|
//! | [`Form::Paper`] | r_j + L^M + L^R, both phases at the rate μ_j of Eq. (7) | p_j/(2μ_j) of Eq. (2) |
//! | [`Form::Strong`] | the same, each phase at its own rate μ_j^M, μ_j^R | ((p^R)²/(2μ^R) + p^M L^R + (p^M)²/(2μ^M))/p_j |
//!
//! The strong form (A7 a) is valid because a phase of n tasks never holds more than n machines, and it
//! is at least as high as the paper's, term by term. [`release_bound`] (A7 b) is a second bound that
//! knows release times; neither contains the other.

use slackline_relax::pb;
use slackline_relax::preemptive::{FastMachine, Item};

/// The properties of a phase that the program uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// p^M or p^R: total size, seconds at speed 1.
    pub work: f64,
    /// p_{j,1}: the largest task.
    pub longest: f64,
    /// |T|: the number of tasks that run at the same time at most.
    pub tasks: u32,
}

/// A job of LP-MapReduce.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// w_j ≥ 0.
    pub weight: f64,
    /// r_j, seconds.
    pub release: f64,
    pub map: Side,
    pub reduce: Side,
}

impl Job {
    /// p_j.
    pub fn work(&self) -> f64 {
        self.map.work + self.reduce.work
    }
}

/// Machines that run one task each, counted by speed, the fastest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machines {
    classes: Vec<(f64, u32)>,
}

impl Machines {
    /// Machines from (speed, count) in any order.
    pub fn new(classes: impl IntoIterator<Item = (f64, u32)>) -> Self {
        let mut list: Vec<(f64, u32)> = classes.into_iter().filter(|&(_, count)| count > 0).collect();
        list.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut classes: Vec<(f64, u32)> = Vec::with_capacity(list.len());
        for (speed, count) in list {
            match classes.last_mut() {
                Some(last) if last.0 == speed => last.1 += count,
                _ => classes.push((speed, count)),
            }
        }
        Self { classes }
    }

    /// (speed, count) of each class, the fastest first.
    pub fn classes(&self) -> &[(f64, u32)] {
        &self.classes
    }

    /// m.
    pub fn count(&self) -> u32 {
        self.classes.iter().map(|&(_, count)| count).sum()
    }

    /// v_1; 0 without machines.
    pub fn fastest(&self) -> f64 {
        self.classes.first().map_or(0.0, |&(speed, _)| speed)
    }

    /// μ: the sum of all speeds.
    pub fn capacity(&self) -> f64 {
        self.rate(u32::MAX)
    }

    /// The sum of the speeds of the fastest `n` machines. O(classes).
    pub fn rate(&self, n: u32) -> f64 {
        let (mut left, mut sum) = (n, 0.0);
        for &(speed, count) in &self.classes {
            let take = count.min(left);
            sum += speed * f64::from(take);
            left -= take;
        }
        sum
    }
}

/// The machines that serve each phase: the same ones, or map slots and reduce slots.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    pub(super) map: Machines,
    pub(super) reduce: Machines,
    all: Machines,
}

impl System {
    /// Machines that run either kind of task.
    pub fn shared(machines: Machines) -> Self {
        Self { map: machines.clone(), reduce: machines.clone(), all: machines }
    }

    /// Machines for maps and machines for reduces.
    pub fn map_reduce(map: Machines, reduce: Machines) -> Self {
        let all = Machines::new(map.classes.iter().chain(&reduce.classes).copied());
        Self { map, reduce, all }
    }

    pub fn all(&self) -> &Machines {
        &self.all
    }

    /// μ_j: the sum of the speeds of the fastest min(|T^M| + |T^R|, m) machines.
    pub fn rate_of(&self, job: &Job) -> f64 {
        self.all.rate(job.map.tasks.saturating_add(job.reduce.tasks))
    }
}

/// The floors and tails of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Those of each phase (docs/math/dmrs.md A7 a).
    #[default]
    Strong,
    /// Those of Eq. (2) and (7).
    Paper,
}

/// An optimal solution of LP-MapReduce.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// C_j, in the order given.
    pub completion: Vec<f64>,
    /// Σ w_j C_j.
    pub value: f64,
}

/// Solves LP-MapReduce exactly. O(N (log N + speed classes)).
pub fn solve(jobs: &[Job], system: &System, form: Form) -> Solution {
    let jobs: Vec<pb::Job> = jobs.iter().map(|job| relaxed(job, system, form)).collect();
    let pb::Solution { completion, value } = pb::solve(&jobs, system.all.capacity());
    Solution { completion, value }
}

/// The set whose Eq. (2) the completion times violate most (or its counterpart in the strong form), and
/// by how much; `None` if they satisfy all. Oracle-LP of §III.B, with the key of its text. O(N log N).
pub fn most_violated(
    jobs: &[Job],
    system: &System,
    form: Form,
    completion: &[f64],
) -> Option<(Vec<usize>, f64)> {
    let jobs: Vec<pb::Job> = jobs.iter().map(|job| relaxed(job, system, form)).collect();
    pb::most_violated(&jobs, system.all.capacity(), completion)
}

/// A lower bound on Σ w_j C_j that knows release times: Σ w_j (M_j + h_j), M_j the mean busy times of
/// preemptive WSPT on one machine of speed μ (docs/math/dmrs.md A7 b). O(N log N).
pub fn release_bound(jobs: &[Job], system: &System, form: Form) -> f64 {
    let capacity = system.all.capacity();
    let (mut items, mut ratios, mut value) = (Vec::new(), Vec::new(), 0.0);
    for job in jobs {
        let relaxed = relaxed(job, system, form);
        if relaxed.work > 0.0 && job.weight > 0.0 {
            value += job.weight * relaxed.tail;
            items.push(Item { release: job.release, length: relaxed.work / capacity });
            ratios.push(job.weight / relaxed.work);
        } else {
            value += job.weight * relaxed.floor;
        }
    }
    FastMachine::new(items).run(
        |i| -ratios[i],
        |piece| value += ratios[piece.item] * capacity * piece.length * (piece.start + piece.length / 2.0),
    );
    value
}

/// The job in the form of the relaxation.
pub(super) fn relaxed(job: &Job, system: &System, form: Form) -> pb::Job {
    let (work, shared) = (job.work(), system.rate_of(job));
    let (map_rate, reduce_rate) = match form {
        Form::Paper => (shared, shared),
        Form::Strong => (system.map.rate(job.map.tasks), system.reduce.rate(job.reduce.tasks)),
    };
    // L^M and L^R of Eq. (7).
    let map = alone(&job.map, map_rate, system.map.fastest());
    let reduce = alone(&job.reduce, reduce_rate, system.reduce.fastest());
    let tail = match form {
        _ if work <= 0.0 => 0.0,
        Form::Paper => work / (2.0 * shared),
        Form::Strong => {
            // Maps end L^R before the job, reduces with it; the mean of a phase lies half its length back.
            let of_map = job.map.work * (reduce + half(job.map.work, map_rate));
            let of_reduce = job.reduce.work * half(job.reduce.work, reduce_rate);
            (of_map + of_reduce) / work
        }
    };
    pb::Job { work, weight: job.weight, floor: job.release + map + reduce, tail }
}

/// The least time a phase takes.
fn alone(side: &Side, rate: f64, fastest: f64) -> f64 {
    if side.work > 0.0 { (side.work / rate).max(side.longest / fastest) } else { 0.0 }
}

fn half(work: f64, rate: f64) -> f64 {
    if work > 0.0 { work / (2.0 * rate) } else { 0.0 }
}
