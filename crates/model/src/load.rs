//! A workload at another load: the same flows in less time, more flows, or flows of more data.

use std::collections::BTreeSet;

use crate::draft::{Draft, FlowDraft, PhaseDraft, SplitDraft, TasksDraft};
use crate::random;
use crate::seed::Seed;

/// The least and the largest load, as multiples of that of the workload.
pub const LOADS: std::ops::RangeInclusive<f64> = 0.01..=100.0;

/// A copy of a flow is released at most this share of the time between the first and the last release earlier
/// or later than the flow.
const JITTER: f64 = 0.05;

/// What changes with the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBy {
    /// The time between releases, divided by the load.
    Arrivals,
    /// The number of flows: each is copied or left out at random.
    Jobs,
    /// The data of each flow: more map tasks, and longer reduce tasks.
    Size,
}

impl LoadBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Arrivals, Self::Jobs, Self::Size];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrivals => "arrivals",
            Self::Jobs => "jobs",
            Self::Size => "size",
        }
    }

    /// The one of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// How a workload gets another load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRule {
    /// What changes.
    pub by: LoadBy,
    /// Whether deadlines are dates, which stay where they are when releases move. Otherwise they keep their distance
    /// from the release.
    pub keeps_dates: bool,
}

impl LoadRule {
    /// Multiplies the load of a draft by `factor`, from [`LOADS`]. With 1 nothing changes; otherwise the recorded
    /// execution is dropped, which was at another load. O(flows and tasks of the result).
    pub fn apply(self, draft: &mut Draft, factor: f64, seed: Seed) {
        if factor == 1.0 {
            return;
        }
        let jobs = draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs);
        jobs.for_each(|job| (job.recorded, job.recorded_end) = (Vec::new(), None));
        match self.by {
            LoadBy::Arrivals if self.keeps_dates => {
                let each = draft.flows.iter().flat_map(FlowDraft::recurrences);
                draft.flows = each.map(|flow| FlowDraft { release: flow.release / factor, ..flow }).collect();
            }
            LoadBy::Arrivals => draft.flows.iter_mut().for_each(|flow| compress(flow, factor)),
            LoadBy::Jobs => draft.flows = resample(std::mem::take(&mut draft.flows), factor, self, seed),
            LoadBy::Size => {
                for job in draft.flows.iter_mut().flat_map(|flow| &mut flow.jobs) {
                    job.map.iter_mut().for_each(|phase| more_tasks(phase, factor));
                    job.reduce.iter_mut().for_each(|phase| longer_tasks(&mut phase.tasks, factor));
                }
            }
        }
    }
}

/// Divides the release of a flow, and the time between its recurrences.
fn compress(flow: &mut FlowDraft, factor: f64) {
    let shift = flow.release / factor - flow.release;
    *flow = flow.clone().later(shift);
    if let Some(repeat) = &mut flow.repeat {
        repeat.every /= factor;
    }
}

/// As many copies of each flow as `factor` says, on average, the first at the flow's own release. The number for
/// a flow depends on its position only, so a higher load has all flows of a lower one.
fn resample(flows: Vec<FlowDraft>, factor: f64, rule: LoadRule, seed: Seed) -> Vec<FlowDraft> {
    let releases = || flows.iter().map(|flow| flow.release);
    let (first, last) = (releases().fold(f64::INFINITY, f64::min), releases().fold(0.0, f64::max));
    let mut names: BTreeSet<String> = flows.iter().map(|flow| flow.id.clone()).collect();
    let mut all = Vec::new();
    for (flow, index) in flows.into_iter().zip(0..) {
        let mut rng = random::rng(seed, "load", index);
        let copies = (factor + random::unit(&mut rng)).floor() as u32;
        for copy in 1..copies {
            let around = JITTER * (last - first);
            let release = random::uniform(&mut rng, flow.release - around, flow.release + around);
            let release = (release.clamp(first, last) * 1e6).round() / 1e6;
            let mut id = format!("{}+{copy}", flow.id);
            while !names.insert(id.clone()) {
                id.push('+');
            }
            let another = if rule.keeps_dates {
                FlowDraft { release, ..flow.clone() }
            } else {
                flow.clone().later(release - flow.release)
            };
            all.push(FlowDraft { id, ..another });
        }
        if copies > 0 {
            all.push(flow);
        }
    }
    all
}

/// `factor` times the work of a phase, in more tasks of about the same length: each reads a piece of the data of
/// a fixed size.
fn more_tasks(phase: &mut PhaseDraft, factor: f64) {
    let count = |n: f64| if factor > 1.0 { (n * factor).floor() } else { (n * factor).ceil() }.max(1.0);
    let spread = |n: usize| {
        let wanted = count(n as f64) as usize;
        (0..wanted).map(move |k| (k as u128 * n as u128 / wanted as u128) as usize)
    };
    match &mut phase.tasks {
        TasksDraft::Uniform { tasks, seconds } if *tasks > 0 => {
            let wanted = count(f64::from(*tasks));
            *seconds *= f64::from(*tasks) * factor / wanted;
            *tasks = wanted as u32;
        }
        TasksDraft::Each(each) if !each.is_empty() => {
            let more: Vec<f64> = spread(each.len()).map(|k| each[k]).collect();
            let (before, now) = (each.iter().sum::<f64>(), more.iter().sum::<f64>());
            let ratio = if now > 0.0 { before * factor / now } else { 1.0 };
            *each = more.into_iter().map(|seconds| seconds * ratio).collect();
        }
        TasksDraft::Splits(splits) => {
            for SplitDraft { count: tasks, seconds, .. } in splits.iter_mut().filter(|split| split.count > 0)
            {
                let wanted = count(f64::from(*tasks));
                *seconds *= f64::from(*tasks) * factor / wanted;
                *tasks = wanted as u32;
            }
        }
        TasksDraft::Work { work, tasks } => {
            *work *= factor;
            *tasks = tasks.map(|tasks| count(f64::from(tasks)) as u32);
        }
        TasksDraft::Uniform { .. } | TasksDraft::Each(_) => {}
    }
}

/// `factor` times the work in the same number of tasks.
fn longer_tasks(tasks: &mut TasksDraft, factor: f64) {
    match tasks {
        TasksDraft::Uniform { seconds, .. } => *seconds *= factor,
        TasksDraft::Each(each) => each.iter_mut().for_each(|seconds| *seconds *= factor),
        TasksDraft::Splits(splits) => splits.iter_mut().for_each(|split| split.seconds *= factor),
        TasksDraft::Work { work, .. } => *work *= factor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::{JobDraft, Repeat};

    fn flow(id: &str, release: f64, tasks: TasksDraft) -> FlowDraft {
        let reduce = Some(TasksDraft::Uniform { tasks: 2, seconds: 5.0 }.into());
        let job = JobDraft { id: "j".into(), map: Some(tasks.into()), reduce, ..JobDraft::default() };
        FlowDraft { release, deadline: Some(release + 100.0), ..FlowDraft::new(id, vec![job]) }
    }

    fn draft() -> Draft {
        let uniform = |tasks| TasksDraft::Uniform { tasks, seconds: 10.0 };
        let each = TasksDraft::Each(vec![1.0, 2.0, 3.0]);
        let repeat = Some(Repeat { every: 50.0, times: 3 });
        let flows = vec![
            flow("a", 0.0, uniform(1)),
            FlowDraft { repeat, ..flow("b", 10.0, uniform(10)) },
            flow("c", 40.0, each),
        ];
        Draft { flows, ..Draft::default() }
    }

    fn at(by: LoadBy, keeps_dates: bool, factor: f64) -> Vec<FlowDraft> {
        let mut draft = draft();
        LoadRule { by, keeps_dates }.apply(&mut draft, factor, Seed(7));
        draft.flows
    }

    /// Work of all tasks of a flow, once.
    fn work(flow: &FlowDraft) -> f64 {
        let of = |tasks: &TasksDraft| match tasks {
            TasksDraft::Uniform { tasks, seconds } => f64::from(*tasks) * seconds,
            TasksDraft::Each(each) => each.iter().sum(),
            TasksDraft::Splits(splits) => splits.iter().map(|s| f64::from(s.count) * s.seconds).sum(),
            TasksDraft::Work { work, .. } => *work,
        };
        let phases = flow.jobs.iter().flat_map(|job| [&job.map, &job.reduce]);
        phases.flatten().map(|phase| of(&phase.tasks)).sum()
    }

    #[test]
    fn a_load_of_one_changes_nothing() {
        for by in LoadBy::ALL {
            assert_eq!(at(by, false, 1.0), draft().flows);
            assert_eq!(LoadBy::from_name(by.name()), Some(by));
        }
    }

    #[test]
    fn arrivals_are_compressed_and_deadlines_keep_their_distance_or_their_date() {
        let flows = at(LoadBy::Arrivals, false, 2.0);
        let times: Vec<_> = flows.iter().map(|flow| (flow.release, flow.deadline)).collect();
        assert_eq!(times, [(0.0, Some(100.0)), (5.0, Some(105.0)), (20.0, Some(120.0))]);
        assert_eq!(flows[1].repeat, Some(Repeat { every: 25.0, times: 3 }));
        let flows = at(LoadBy::Arrivals, true, 2.0);
        let times: Vec<_> =
            flows.iter().map(|flow| (flow.id.as_str(), flow.release, flow.deadline)).collect();
        let dates = [
            ("a", 0.0, Some(100.0)),
            ("b#0", 5.0, Some(110.0)),
            ("b#1", 30.0, Some(160.0)),
            ("b#2", 55.0, Some(210.0)),
            ("c", 20.0, Some(140.0)),
        ];
        assert_eq!(times, dates);
    }

    #[test]
    fn more_data_is_more_maps_and_longer_reduces_and_the_work_is_exact() {
        for factor in [0.3, 1.3, 2.0, 7.5] {
            for (flow, before) in at(LoadBy::Size, false, factor).iter().zip(draft().flows) {
                assert!((work(flow) - factor * work(&before)).abs() < 1e-9, "{factor} {}", flow.id);
                assert_eq!((flow.release, flow.deadline), (before.release, before.deadline));
            }
        }
        let flows = at(LoadBy::Size, false, 1.3);
        let map = |k: usize| flows[k].jobs[0].map.clone().unwrap().tasks;
        assert_eq!(map(0), TasksDraft::Uniform { tasks: 1, seconds: 13.0 });
        assert_eq!(map(1), TasksDraft::Uniform { tasks: 13, seconds: 10.0 });
    }

    #[test]
    fn resampled_flows_have_names_of_their_own_and_the_load_on_average() {
        let uniform = TasksDraft::Uniform { tasks: 1, seconds: 10.0 };
        let mut flows: Vec<_> =
            (0..1_000).map(|k| flow(&format!("f{k}"), f64::from(k), uniform.clone())).collect();
        // A name that a copy would have.
        flows.push(flow("f0+1", 3.0, uniform));
        let resampled = |factor, seed| {
            let mut draft = Draft { flows: flows.clone(), ..Draft::default() };
            LoadRule { by: LoadBy::Jobs, keeps_dates: false }.apply(&mut draft, factor, Seed(seed));
            draft.flows
        };
        for factor in [0.5, 1.3, 3.0] {
            let drawn = resampled(factor, 7);
            assert!((drawn.len() as f64 / 1_001.0 - factor).abs() < 0.05, "{factor}: {}", drawn.len());
            let names: BTreeSet<&str> = drawn.iter().map(|flow| flow.id.as_str()).collect();
            assert_eq!(names.len(), drawn.len());
            for flow in &drawn {
                assert!((0.0..=999.0).contains(&flow.release));
                assert!((flow.deadline.unwrap() - flow.release - 100.0).abs() < 1e-5);
            }
            assert_eq!(drawn, resampled(factor, 7));
            assert_ne!(drawn, resampled(factor, 8));
        }
        let names = |factor| resampled(factor, 7).into_iter().map(|flow| flow.id).collect::<BTreeSet<_>>();
        assert!(names(1.5).is_superset(&names(1.2)), "a higher load has all flows of a lower one");
    }
}
