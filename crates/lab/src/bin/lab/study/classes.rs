//! The classes of workloads of the study: shapes of work that occur on clusters, and shapes on which some
//! policy is known to be bad. A few dozen flows on a few dozen slots each, so that thousands of simulations
//! take minutes.

use anyhow::Result;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::instance::Flow;
use slackline_model::random::{self, ChaCha8Rng};
use slackline_model::{Combine, Draft, FlowId, Instance, Metric, Objective, Seed, Work};

/// Workloads that differ by their seed only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub(super) name: &'static str,
    /// Groups of machines: slots for any task, or for maps and for reduces; speed.
    machines: &'static [(Slots, f64)],
    flows: [u32; 2],
    arrivals: Arrivals,
    /// Work divided by what the busiest kind of slot can do while flows arrive.
    load: f64,
    shape: Shape,
    jobs: [u32; 2],
    maps: [u32; 2],
    /// Seconds of a task, each decade as likely as the next.
    map_seconds: [f64; 2],
    /// 0 for jobs without reduces.
    reduces: [u32; 2],
    reduce_seconds: [f64; 2],
    /// Whether all tasks of a flow have the shortest or all have the longest of these times.
    is_short_or_long: bool,
    /// Standard deviation of the logarithm of the times of tasks of a phase.
    unlike: f64,
    /// Seconds from release to deadline, divided by the time of the flow alone.
    deadlines: [f64; 2],
    weights: Weights,
    /// Probability that a flow is one phase of three tasks of ten minutes for each slot.
    whales: f64,
}

#[derive(Clone, Copy, Debug)]
enum Arrivals {
    /// One by one, at random.
    Poisson,
    /// At random, with a rate that rises and falls twice.
    Waves,
    /// Nine of ten in a tenth of the time.
    Rush,
    /// This number at a time, at random.
    Bursts(usize),
    /// This number at a time, at equal distances.
    Hourly(usize),
    /// All at 0.
    Together,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Chains, forks and layers.
    Mixed,
    Chain,
    /// One job, then all but the last, then the last.
    Fork,
    /// Two or three jobs before each.
    InTree,
    /// Independent jobs.
    Parallel,
    /// Chains whose last job is one task of a hundred times the length.
    LongEnd,
}

#[derive(Clone, Copy, Debug)]
enum Weights {
    One,
    /// From 0.1 to 10, each decade as likely as the next.
    Decades,
    /// In proportion to the work.
    Work,
}

const GENERIC: &[(Slots, f64)] = &[(Slots::Generic(24), 1.0)];
const TYPED: &[(Slots, f64)] = &[(Slots::MapReduce { map: 16, reduce: 8 }, 1.0)];

const BASE: Class = Class {
    name: "poisson",
    machines: GENERIC,
    flows: [40, 60],
    arrivals: Arrivals::Poisson,
    load: 0.8,
    shape: Shape::Mixed,
    jobs: [1, 5],
    maps: [1, 40],
    map_seconds: [4.0, 60.0],
    reduces: [0, 8],
    reduce_seconds: [8.0, 120.0],
    is_short_or_long: false,
    unlike: 0.0,
    deadlines: [1.5, 5.0],
    weights: Weights::One,
    whales: 0.0,
};

/// All classes.
pub(super) const CLASSES: &[Class] = &[
    BASE,
    Class { name: "light", load: 0.4, deadlines: [1.1, 2.5], ..BASE },
    Class { name: "busy", load: 0.95, ..BASE },
    Class { name: "overload", load: 1.5, deadlines: [1.2, 2.5], ..BASE },
    Class { name: "waves", arrivals: Arrivals::Waves, load: 0.85, ..BASE },
    Class { name: "rush", arrivals: Arrivals::Rush, load: 0.6, deadlines: [2.0, 8.0], ..BASE },
    Class { name: "hourly", arrivals: Arrivals::Hourly(8), shape: Shape::Chain, jobs: [2, 5], ..BASE },
    Class { name: "bursts", arrivals: Arrivals::Bursts(6), shape: Shape::Fork, jobs: [3, 8], ..BASE },
    Class { name: "batch", arrivals: Arrivals::Together, deadlines: [2.0, 60.0], ..BASE },
    Class {
        name: "batch-weights",
        arrivals: Arrivals::Together,
        deadlines: [2.0, 60.0],
        weights: Weights::Decades,
        machines: TYPED,
        ..BASE
    },
    Class { name: "chains", shape: Shape::Chain, jobs: [8, 16], maps: [1, 20], load: 0.9, ..BASE },
    Class { name: "in-trees", shape: Shape::InTree, jobs: [4, 12], maps: [1, 16], load: 0.9, ..BASE },
    Class { name: "forks", shape: Shape::Fork, jobs: [4, 12], load: 0.9, ..BASE },
    Class { name: "tiny", machines: &[(Slots::Generic(5), 1.0)], maps: [1, 12], jobs: [1, 3], ..BASE },
    Class {
        name: "one-wave",
        shape: Shape::Parallel,
        jobs: [1, 1],
        maps: [4, 12],
        map_seconds: [60.0, 240.0],
        load: 0.9,
        ..BASE
    },
    Class {
        name: "two-lengths",
        is_short_or_long: true,
        map_seconds: [8.0, 70.0],
        reduce_seconds: [8.0, 70.0],
        ..BASE
    },
    Class { name: "typed", machines: TYPED, load: 0.9, ..BASE },
    Class {
        name: "typed-reduces-bind",
        machines: TYPED,
        maps: [1, 12],
        reduces: [2, 10],
        reduce_seconds: [60.0, 240.0],
        shape: Shape::Parallel,
        jobs: [1, 1],
        ..BASE
    },
    Class {
        name: "typed-maps-bind",
        machines: TYPED,
        maps: [10, 60],
        map_seconds: [20.0, 90.0],
        reduces: [1, 4],
        ..BASE
    },
    Class {
        name: "one-flow-typed",
        machines: TYPED,
        flows: [1, 1],
        shape: Shape::Parallel,
        jobs: [4, 20],
        reduces: [1, 8],
        deadlines: [1.05, 1.5],
        ..BASE
    },
    Class {
        name: "one-flow",
        flows: [1, 1],
        shape: Shape::Parallel,
        jobs: [4, 20],
        deadlines: [1.05, 1.5],
        ..BASE
    },
    Class {
        name: "parallel-typed",
        machines: TYPED,
        flows: [16, 24],
        shape: Shape::Parallel,
        jobs: [2, 8],
        reduces: [1, 8],
        ..BASE
    },
    Class { name: "parallel", flows: [16, 24], shape: Shape::Parallel, jobs: [2, 8], ..BASE },
    Class { name: "weights", weights: Weights::Decades, load: 0.95, ..BASE },
    Class { name: "weights-by-work", weights: Weights::Work, load: 0.95, ..BASE },
    Class { name: "unlike-tasks", unlike: 1.0, load: 0.9, ..BASE },
    Class {
        name: "whales",
        whales: 0.05,
        load: 0.7,
        map_seconds: [4.0, 20.0],
        reduce_seconds: [4.0, 20.0],
        ..BASE
    },
    Class { name: "two-speeds", machines: &[(Slots::Generic(12), 1.0), (Slots::Generic(12), 3.0)], ..BASE },
    Class {
        name: "four-speeds",
        machines: &[
            (Slots::Generic(6), 1.0),
            (Slots::Generic(6), 2.0),
            (Slots::Generic(6), 4.0),
            (Slots::Generic(6), 8.0),
        ],
        load: 0.9,
        ..BASE
    },
    Class { name: "long-end", shape: Shape::LongEnd, jobs: [2, 5], map_seconds: [2.0, 10.0], ..BASE },
];

impl Class {
    /// The workload of a seed.
    pub(super) fn workload(&self, seed: Seed) -> Result<Draft> {
        let mut rng = random::rng(seed, self.name, 0);
        let n = count(&mut rng, self.flows);
        let flows = (0..n).map(|k| self.flow(k, &mut rng)).collect();
        let machine = |(k, &(slots, speed)): (usize, &(Slots, f64))| MachineDraft {
            name: format!("machines{k}"),
            count: 1,
            speed,
            slots,
            rack: None,
        };
        let mut draft = Draft {
            flows,
            machines: self.machines.iter().enumerate().map(machine).collect(),
            objective: Objective::new(Metric::Response, Combine::Sum),
            ..Draft::default()
        };
        self.time(&mut draft, &mut rng)?;
        Ok(draft)
    }

    fn flow(&self, number: u32, rng: &mut ChaCha8Rng) -> FlowDraft {
        let id = format!("f{number}");
        if random::chance(rng, self.whales) {
            let slots = self.machines.iter().map(|(slots, _)| match *slots {
                Slots::Generic(n) | Slots::MapReduce { map: n, .. } => n,
            });
            let map = uniform(slots.sum::<u32>() * 3, 600.0);
            return FlowDraft::new(id, vec![JobDraft { id: "j0".to_owned(), map, ..JobDraft::default() }]);
        }
        let n = count(rng, self.jobs) as usize;
        let is_long = self.is_short_or_long.then(|| random::chance(rng, 0.5));
        let after = self.after(n, rng);
        let job = |(k, after): (usize, Vec<usize>)| {
            let is_end = matches!(self.shape, Shape::LongEnd) && k + 1 == n;
            let map = if is_end {
                uniform(1, self.map_seconds[1] * 100.0)
            } else {
                self.phase(self.maps, self.map_seconds, is_long, rng)
            };
            let reduce =
                if is_end { None } else { self.phase(self.reduces, self.reduce_seconds, is_long, rng) };
            let after = after.iter().map(|before| format!("j{before}")).collect();
            JobDraft { id: format!("j{k}"), after, map, reduce, ..JobDraft::default() }
        };
        FlowDraft::new(id, after.into_iter().enumerate().map(job).collect())
    }

    /// The predecessors of each of `n` jobs.
    fn after(&self, n: usize, rng: &mut ChaCha8Rng) -> Vec<Vec<usize>> {
        let shape = match self.shape {
            Shape::Mixed => [Shape::Chain, Shape::Fork, Shape::InTree][random::integer(rng, 0, 2) as usize],
            shape => shape,
        };
        let after = |k: usize| match shape {
            Shape::Parallel => Vec::new(),
            Shape::Fork if k > 0 && k + 1 < n => vec![0],
            Shape::Fork => (usize::from(n > 2)..k).collect(),
            // The sources come first, and each job after them joins the next two that nothing follows.
            Shape::InTree if k < n.div_ceil(2) => Vec::new(),
            Shape::InTree => {
                let first = 2 * (k - n.div_ceil(2));
                let last = if k + 1 == n { k } else { (first + 2).min(k) };
                (first..last).collect()
            }
            _ => k.checked_sub(1).into_iter().collect(),
        };
        (0..n).map(after).collect()
    }

    fn phase(
        &self,
        tasks: [u32; 2],
        seconds: [f64; 2],
        is_long: Option<bool>,
        rng: &mut ChaCha8Rng,
    ) -> Option<PhaseDraft> {
        let tasks = count(rng, tasks);
        let drawn = decades(rng, seconds);
        let seconds = is_long.map_or(drawn, |is_long| seconds[usize::from(is_long)]);
        if tasks == 0 || self.unlike == 0.0 {
            return uniform(tasks, seconds);
        }
        let each = |_| micros(seconds * random::lognormal(rng, 0.0, self.unlike));
        Some(TasksDraft::Each((0..tasks).map(each).collect()).into())
    }

    /// Draws releases, deadlines and weights.
    fn time(&self, draft: &mut Draft, rng: &mut ChaCha8Rng) -> Result<()> {
        let instance = Instance::new(draft)?;
        let cluster = instance.cluster();
        let areas = |flow: &Flow| {
            let of_kind = |slot_kind| {
                let phases = flow.phases().filter(|&phase| instance.slot_kind_of(phase) == slot_kind);
                let work: Work = phases.map(|phase| instance.phase(phase).work()).sum();
                work.slot_seconds() / cluster.capacity(slot_kind)
            };
            cluster.slot_kinds().iter().map(|&slot_kind| of_kind(slot_kind)).collect::<Vec<f64>>()
        };
        let areas: Vec<Vec<f64>> = instance.flows().iter().map(areas).collect();
        let busiest = |kind: usize| areas.iter().map(|flow| flow[kind]).sum::<f64>();
        let horizon = (0..cluster.slot_kinds().len()).map(busiest).fold(0.0, f64::max) / self.load;
        let bursts: Vec<f64> = draft.flows.iter().map(|_| random::unit(rng)).collect();
        let mut releases: Vec<f64> =
            (0..bursts.len()).map(|k| self.release(k, &bursts, rng) * horizon).collect();
        releases.sort_by(f64::total_cmp);
        for (k, flow) in draft.flows.iter_mut().enumerate() {
            let area = areas[k].iter().copied().fold(0.0, f64::max);
            let alone = instance.flows()[FlowId::from(k)].critical_path.max(area);
            flow.release = micros(releases[k]);
            let factor = random::uniform(rng, self.deadlines[0], self.deadlines[1]);
            flow.deadline = Some(micros(flow.release + factor * alone));
            flow.weight = match self.weights {
                Weights::One => 1.0,
                Weights::Decades => decades(rng, [0.1, 10.0]),
                Weights::Work => areas[k].iter().sum::<f64>().max(0.01),
            };
        }
        Ok(())
    }

    /// A release as a share of the time in which flows arrive. `bursts` has an instant for each flow.
    fn release(&self, number: usize, bursts: &[f64], rng: &mut ChaCha8Rng) -> f64 {
        match self.arrivals {
            // Two waves of a rate from 0 to twice the mean, by rejection.
            Arrivals::Waves => loop {
                let at = random::unit(rng);
                if random::chance(rng, f64::midpoint(1.0, -libm::cos(at * 4.0 * std::f64::consts::PI))) {
                    break at;
                }
            },
            Arrivals::Rush if random::chance(rng, 0.9) => random::uniform(rng, 0.3, 0.4),
            Arrivals::Poisson | Arrivals::Rush => random::unit(rng),
            Arrivals::Bursts(size) => bursts[number / size],
            Arrivals::Hourly(size) => (number / size) as f64 / bursts.len().div_ceil(size) as f64,
            Arrivals::Together => 0.0,
        }
    }
}

fn uniform(tasks: u32, seconds: f64) -> Option<PhaseDraft> {
    (tasks > 0).then(|| TasksDraft::Uniform { tasks, seconds: micros(seconds) }.into())
}

/// Whole microseconds, which documents have.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e6).round().max(1.0) / 1e6
}

fn count(rng: &mut ChaCha8Rng, [low, high]: [u32; 2]) -> u32 {
    random::integer(rng, u64::from(low), u64::from(high)) as u32
}

fn decades(rng: &mut ChaCha8Rng, [low, high]: [f64; 2]) -> f64 {
    libm::exp(random::uniform(rng, libm::log(low), libm::log(high)))
}
