//! Lower bounds over whole ranges of slot splits, which shorten exact sweeps.
//!
//! All functions here depend on map slots `a` and reduce slots `b`, and never grow with either. All splits of
//! a total S into `lo..=hi` map slots therefore have at least the bound of `hi` map and S − `lo` reduce
//! slots, although no single split has both. Integers throughout; whole microseconds are rounded up, which is
//! valid because completions are whole.

use slackline_model::tasks::Tasks;

use super::workload::Workload;

/// A stage of a job, for bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    tasks: u64,
    shortest: u64,
    longest: u64,
    work: u64,
}

impl Stage {
    pub(super) fn new(tasks: &Tasks) -> Self {
        Self {
            tasks: tasks.count().into(),
            shortest: tasks.runs().iter().map(|run| run.span.0).min().unwrap_or(0),
            longest: tasks.longest().0,
            work: tasks.work().0,
        }
    }

    /// No schedule is done with it sooner: some slot has its share of the tasks and of the work.
    pub(super) fn least(&self, slots: u64) -> u64 {
        if self.tasks <= slots {
            return self.longest;
        }
        (self.tasks.div_ceil(slots) * self.shortest).max(self.work.div_ceil(slots)).max(self.longest)
    }

    pub(super) fn work(&self) -> u64 {
        self.work
    }

    /// Whether [`Stage::least`] of this is never less than that of `other`.
    fn covers(&self, other: &Self) -> bool {
        self.tasks >= other.tasks
            && self.shortest >= other.shortest
            && self.longest >= other.longest
            && self.work >= other.work
    }
}

/// The data of a workload for the bounds.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Works of map and reduce stage, by map work ascending.
    by_map: Vec<[u64; 2]>,
    /// The same by reduce work descending.
    by_reduce: Vec<[u64; 2]>,
    /// The stages of each job.
    stages: Vec<[Stage; 2]>,
    /// Only the jobs whose stages no other job's stages cover.
    longest: Vec<[Stage; 2]>,
    /// Sums of the k least works, for each k, by stage.
    least_work: [Vec<u64>; 2],
    /// Scratch.
    floors: Vec<u64>,
}

impl Bounds {
    /// O(n log n), and O(n·m) for the m jobs whose stages no other job's cover.
    pub(super) fn new(workload: &Workload) -> Self {
        let mut works: Vec<[u64; 2]> =
            workload.jobs().iter().map(|job| [job.map.work().0, job.reduce.work().0]).collect();
        works.sort_unstable();
        let mut by_reduce = works.clone();
        by_reduce.sort_by_key(|work| std::cmp::Reverse(work[1]));
        let least_work = [0, 1].map(|stage: usize| {
            let mut works: Vec<u64> = works.iter().map(|work| work[stage]).collect();
            works.sort_unstable();
            works
                .iter()
                .scan(0, |sum, work| {
                    *sum += work;
                    Some(*sum)
                })
                .collect()
        });
        let stages: Vec<[Stage; 2]> =
            workload.jobs().iter().map(|job| [Stage::new(&job.map), Stage::new(&job.reduce)]).collect();
        let mut longest: Vec<[Stage; 2]> = Vec::new();
        for &job in &stages {
            let covers =
                |one: &[Stage; 2], other: &[Stage; 2]| one[0].covers(&other[0]) && one[1].covers(&other[1]);
            if !longest.iter().any(|other| covers(other, &job)) {
                longest.retain(|other| !covers(&job, other));
                longest.push(job);
            }
        }
        Self { by_map: works, by_reduce, stages, longest, least_work, floors: Vec::new() }
    }

    /// No schedule on `a` map and `b` reduce slots has a lower makespan: the fluid makespan of
    /// Johnson's order, and the job that takes longest alone (docs/math/ordering.md D6). O(n).
    pub(super) fn makespan(&self, a: u32, b: u32) -> u64 {
        self.fluid(a, b).max(self.alone(a, b))
    }

    fn alone(&self, a: u32, b: u32) -> u64 {
        let least = |[map, reduce]: &[Stage; 2]| map.least(a.into()) + reduce.least(b.into());
        self.longest.iter().map(least).max().unwrap_or(0)
    }

    /// With works times the other's slots, stage times are exact integers. Both parts of Johnson's order are
    /// sorted by works, for any number of slots: the slots decide only which jobs are in which part.
    fn fluid(&self, a: u32, b: u32) -> u64 {
        let (a, b) = (u128::from(a), u128::from(b));
        let scaled = |work: &[u64; 2]| [u128::from(work[0]) * b, u128::from(work[1]) * a];
        let map_shorter = |times: &[u128; 2]| times[0] <= times[1];
        let early = self.by_map.iter().map(scaled).filter(map_shorter);
        let late = self.by_reduce.iter().map(scaled).filter(|times| !map_shorter(times));
        let (mut map_end, mut end) = (0, 0u128);
        for [map, reduce] in early.chain(late) {
            map_end += map;
            end = end.max(map_end) + reduce;
        }
        end.div_ceil(a * b) as u64
    }

    /// No schedule on `a` map and `b` reduce slots has a lower total completion time. O(n log n).
    ///
    /// The first k jobs to complete have together done at least the k least map works on all map slots, and
    /// then some reduce stage; or after some map stage the k least reduce works on all reduce slots; and the
    /// k-th completion is at least the k-th least time of a job alone. Or, job by job: the k-th to end its
    /// maps has done the k least map works, and each still has its own reduce stage.
    pub(super) fn total_completion(&mut self, a: u32, b: u32) -> u128 {
        let (a, b) = (u64::from(a), u64::from(b));
        let (mut head, mut tail, mut tails) = (u64::MAX, u64::MAX, 0u128);
        self.floors.clear();
        for [map, reduce] in &self.stages {
            let (map, reduce) = (map.least(a), reduce.least(b));
            (head, tail) = (head.min(map), tail.min(reduce));
            tails += u128::from(reduce);
            self.floors.push(map + reduce);
        }
        self.floors.sort_unstable();
        let (mut by_rank, mut by_job) = (0u128, tails);
        for (k, &floor) in self.floors.iter().enumerate() {
            let maps = self.least_work[0][k].div_ceil(a);
            let reduces = self.least_work[1][k].div_ceil(b);
            by_rank += u128::from(floor.max(maps + tail).max(head + reduces));
            by_job += u128::from(maps);
        }
        by_rank.max(by_job)
    }
}
