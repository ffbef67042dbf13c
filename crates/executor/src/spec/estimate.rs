//! Estimates the durations of tasks before any task has run.
//!
//! A job that ran before is estimated to take the same time per byte, and to write the same number of bytes
//! per byte that it reads. So a night with twice the logs is estimated to take twice as long, and so are the
//! jobs that read its output. Otherwise the durations in the document count, or else bytes over a rate.

use std::collections::BTreeMap;

use slackline_model::PhaseKind;
use slackline_model::draft::{FlowDraft, PhaseDraft, TasksDraft};
use slackline_model::history::Record;
use slackline_task::process::spec::{Job, Split};

use crate::spec::job_cost::{JobCost, JobHistory, JobName};
use crate::spec::job_plan::JobPlan;
use crate::spec::writers::Writers;

/// Estimated bytes per second of a task of a built-in program before any has ended: the rate of word count
/// and sorting on one core in 2026.
const PROGRAM_RATE: f64 = 80e6;

/// The same of a task that runs commands: the rate of a small script.
const COMMAND_RATE: f64 = 20e6;

/// Estimated seconds before a task processes data.
const STARTUP: f64 = 0.02;

/// Gives every job of a flow its phases, task by task. `plans` are its jobs, each after the jobs that it
/// reads from.
pub(crate) fn fill(flow: &mut FlowDraft, plans: &[JobPlan], past: &JobHistory) {
    let (mut writers, mut part_bytes) = (Writers::default(), Vec::with_capacity(plans.len()));
    let ids = flow.jobs.iter().enumerate().rev().map(|(at, job)| (job.id.as_str(), at));
    let positions: BTreeMap<&str, usize> = ids.collect();
    let positions: Vec<Option<usize>> =
        plans.iter().map(|plan| positions.get(plan.job.as_str()).copied()).collect();
    for (plan, position) in plans.iter().zip(positions) {
        let bytes: Vec<Option<f64>> =
            plan.inputs.maps.iter().map(|splits| plan.expected(splits, &writers, &part_bytes)).collect();
        let total: Option<f64> = bytes.iter().copied().sum();
        let took = past.get(&JobName::of(plan));
        writers.add(plan);
        part_bytes.push(plan.writes_about(total, took).map(|bytes| bytes / f64::from(plan.parts())));
        let Some(job) = position.map(|at| &mut flow.jobs[at]) else { continue };
        let rate = match plan.work {
            Job::Program { .. } => PROGRAM_RATE,
            Job::Commands { .. } | Job::Command { .. } | Job::Jar { .. } => COMMAND_RATE,
        };
        let pace = |phase: Option<&PhaseDraft>, kind| {
            let record =
                took.map(|took| (took.record(kind), took.bytes_in)).filter(|(record, _)| record.tasks > 0);
            match (record, phase.and_then(mean)) {
                (Some((record, bytes)), _) => TaskRate::of(record, bytes),
                (None, Some(seconds)) => {
                    TaskRate { fixed: seconds, a_byte: 0.0, mean: seconds, unknown: false }
                }
                (None, None) => TaskRate { fixed: STARTUP, a_byte: 1.0 / rate, mean: STARTUP, unknown: true },
            }
        };
        let map = pace(job.map.as_ref(), PhaseKind::Map);
        let reduce = pace(job.reduce.as_ref(), PhaseKind::Reduce);
        let maps = bytes.iter().map(|&b| map.seconds(b)).collect();
        let unknown = map.unknown;
        job.map = Some(PhaseDraft { tasks: TasksDraft::Each(maps), unknown, ..limits(job.map.as_ref()) });
        job.reduce = (plan.reducers > 0).then(|| {
            let each = reduce.seconds(total.map(|total| total / f64::from(plan.reducers)));
            let tasks = TasksDraft::Each(vec![each; plan.reducers as usize]);
            PhaseDraft { tasks, unknown: reduce.unknown, ..limits(job.reduce.as_ref()) }
        });
    }
}

/// The duration of a task: a constant, and a part for each byte of its share of the job's input. Seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TaskRate {
    fixed: f64,
    a_byte: f64,
    /// The duration if the number of bytes is unknown.
    mean: f64,
    /// Whether neither earlier runs nor the document tell it.
    unknown: bool,
}

impl TaskRate {
    /// The rate of tasks that shared this many bytes; without bytes all take the same time.
    fn of(record: Record, bytes: u64) -> Self {
        let mean = record.seconds / record.tasks as f64;
        if bytes == 0 {
            return Self { fixed: mean, a_byte: 0.0, mean, unknown: false };
        }
        let fixed = mean.min(STARTUP);
        let a_byte = (mean - fixed) * record.tasks as f64 / bytes as f64;
        Self { fixed, a_byte, mean, unknown: false }
    }

    /// Seconds, in whole microseconds like simulated time.
    fn seconds(self, bytes: Option<f64>) -> f64 {
        let seconds = bytes.map_or(self.mean, |bytes| self.fixed + self.a_byte * bytes);
        (seconds * 1e6).round().max(1.0) / 1e6
    }
}

impl JobPlan {
    /// Bytes that its maps read, as they are on disk now; for a generator, the bytes it makes.
    pub(crate) fn bytes_in(&self) -> u64 {
        let read = || self.inputs.maps.iter().flatten().map(on_disk).sum();
        self.makes.unwrap_or_else(read)
    }

    /// Estimated bytes that a map reads, if known; `earlier` jobs of the flow have not yet written their
    /// output; `part_bytes` are the estimated bytes of each of their parts.
    fn expected(&self, splits: &[Split], earlier: &Writers<'_>, part_bytes: &[Option<f64>]) -> Option<f64> {
        if let Some(bytes) = self.makes {
            return Some(bytes as f64 / self.inputs.maps.len().max(1) as f64);
        }
        let bytes = |split: &Split| match earlier.of(self, split) {
            Some(job) => part_bytes[job],
            None => Some(on_disk(split) as f64),
        };
        splits.iter().map(bytes).sum()
    }

    /// Estimated bytes that the job writes when it reads `total`: in proportion to earlier runs. A job
    /// without input writes as many bytes as in earlier runs; without earlier runs the number is unknown.
    fn writes_about(&self, total: Option<f64>, took: Option<&JobCost>) -> Option<f64> {
        let reads =
            total.filter(|&total| total > 0.0 || self.inputs.maps.iter().any(|splits| !splits.is_empty()));
        match took {
            Some(took) if took.bytes_in > 0 => {
                reads.map(|total| total * took.bytes_out as f64 / took.bytes_in as f64)
            }
            Some(took) if took.maps > 0 => {
                let runs = took.maps as f64 / f64::from(self.maps().max(1));
                Some(took.bytes_out as f64 / runs)
            }
            _ => reads,
        }
    }
}

fn on_disk(split: &Split) -> u64 {
    split.length.unwrap_or_else(|| std::fs::metadata(&split.path).map_or(0, |meta| meta.len()))
}

/// The minimum and maximum of a phase, for new tasks.
fn limits(phase: Option<&PhaseDraft>) -> PhaseDraft {
    PhaseDraft {
        tasks: TasksDraft::Each(Vec::new()),
        min_slots: phase.and_then(|p| p.min_slots),
        max_slots: phase.and_then(|p| p.max_slots),
        unknown: false,
    }
}

/// The mean task of a phase in the document, seconds.
fn mean(phase: &PhaseDraft) -> Option<f64> {
    match &phase.tasks {
        TasksDraft::Uniform { seconds, .. } => Some(*seconds),
        TasksDraft::Each(list) => {
            Some(list.iter().sum::<f64>() / list.len() as f64).filter(|m| m.is_finite())
        }
        TasksDraft::Work { work, tasks: Some(tasks) } if *tasks > 0 => Some(work / f64::from(*tasks)),
        TasksDraft::Work { .. } => None,
        TasksDraft::Splits(splits) => {
            let count: u32 = splits.iter().map(|s| s.count).sum();
            let work: f64 = splits.iter().map(|s| s.seconds * f64::from(s.count)).sum();
            (count > 0).then(|| work / f64::from(count))
        }
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::JobDraft;

    use super::*;
    use crate::spec::job_plan::Inputs;

    fn plan(job: &str, reads: &[(&str, Option<u64>)], reducers: u32) -> JobPlan {
        let split = |&(path, length): &(&str, Option<u64>)| {
            vec![Split { path: path.into(), offset: 0, length, input: 0, source: None, copy: None }]
        };
        JobPlan {
            flow: "nightly#4".into(),
            job: job.into(),
            work: Job::Commands { mapper: "cat".into(), combiner: None, reducer: None },
            named: Vec::new(),
            inputs: Inputs { maps: reads.iter().map(split).collect(), ..Inputs::default() },
            reducers,
            output: format!("out/{job}").into(),
            prepare: false,
            makes: None,
            definition: crate::spec::definition::Definition::default(),
            setting: slackline_task::process::spec::Setting::default(),
            shuffle: slackline_task::process::spec::Shuffle::default(),
            compress: None,
            limits: slackline_task::process::limits::Limits::default(),
            files: BTreeMap::new(),
        }
    }

    fn tasks(phase: Option<&PhaseDraft>) -> Vec<f64> {
        match &phase.unwrap().tasks {
            TasksDraft::Each(seconds) => seconds.iter().map(|s| (s * 1e6).round() / 1e6).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn twice_the_input_takes_twice_as_long_here_and_further_down() {
        let draft = |id: &str| JobDraft { id: id.into(), ..JobDraft::default() };
        let mut flow = FlowDraft::new("nightly#4", vec![draft("words"), draft("top"), draft("new")]);
        let plans = [
            plan("words", &[("a", Some(1000)), ("b", Some(3000))], 2),
            plan("top", &[("out/words/part-00000", None), ("out/words/part-00001", None)], 1),
            plan("new", &[("out/top/part-00000", None)], 0),
        ];
        let name = |job: &str| JobName { flow: "nightly".into(), job: job.into() };
        // Two runs of one map each, which read 1,000 bytes and wrote 500.
        let words = JobCost {
            maps: 2,
            map_micros: 2_040_000,
            reduces: 4,
            reduce_micros: 4_080_000,
            bytes_in: 2000,
            bytes_out: 1000,
            ..JobCost::default()
        };
        let top = JobCost {
            maps: 2,
            map_micros: 2_000_000,
            reduces: 1,
            reduce_micros: 520_000,
            bytes_in: 1000,
            ..JobCost::default()
        };
        let past = JobHistory::from([(name("words"), words), (name("top"), top)]);
        fill(&mut flow, &plans, &past);
        assert_eq!(tasks(flow.jobs[0].map.as_ref()), [1.02, 3.02], "a second for 1,000 bytes");
        assert_eq!(tasks(flow.jobs[0].reduce.as_ref()), [4.02, 4.02], "two seconds for 1,000 bytes of input");
        // 4,000 bytes become 2,000 in two parts; before, two maps read 1,000.
        assert_eq!(tasks(flow.jobs[1].map.as_ref()), [1.98, 1.98]);
        assert_eq!(tasks(flow.jobs[1].reduce.as_ref()), [1.02]);
        assert_eq!(tasks(flow.jobs[2].map.as_ref()), [STARTUP], "nothing is written, so nothing is read");
    }

    /// A job without input, and two that read its output.
    fn from_nothing() -> (FlowDraft, [JobPlan; 3]) {
        let draft = |id: &str| JobDraft { id: id.into(), ..JobDraft::default() };
        let flow = FlowDraft::new("f", vec![draft("get"), draft("work"), draft("report")]);
        let mut get = plan("get", &[], 0);
        get.inputs.maps = vec![Vec::new()];
        let work = plan("work", &[("out/get/part-00000", None)], 0);
        (flow, [get, work, plan("report", &[("out/work/part-00000", None)], 1)])
    }

    #[test]
    fn readers_of_a_job_without_input_take_as_long_as_before() {
        let (mut flow, plans) = from_nothing();
        let name = |job: &str| JobName { flow: "nightly".into(), job: job.into() };
        let cost = |maps, seconds: u64, bytes_in, bytes_out| JobCost {
            maps,
            map_micros: seconds * 1_000_000,
            bytes_in,
            bytes_out,
            ..JobCost::default()
        };
        // Two runs, which wrote 21 bytes each.
        let mut past =
            JobHistory::from([(name("get"), cost(2, 4, 0, 42)), (name("work"), cost(2, 12, 42, 4))]);
        fill(&mut flow, &plans, &past);
        let maps =
            |flow: &FlowDraft| flow.jobs.iter().flat_map(|job| tasks(job.map.as_ref())).collect::<Vec<_>>();
        assert_eq!(maps(&flow), [2.0, 6.0, 0.02]);
        // If the output of the first job is unknown, the second takes the same time as in earlier runs.
        past.remove(&name("get"));
        let (mut flow, plans) = from_nothing();
        fill(&mut flow, &plans, &past);
        assert_eq!(maps(&flow), [0.02, 6.0, 0.02]);
        let (mut flow, plans) = from_nothing();
        let reduce = JobCost { reduces: 1, reduce_micros: 3_000_000, ..cost(1, 5, 2, 1) };
        fill(&mut flow, &plans, &JobHistory::from([(name("report"), reduce)]));
        assert_eq!((maps(&flow), tasks(flow.jobs[2].reduce.as_ref())), (vec![0.02, 0.02, 5.0], vec![3.0]));
    }

    #[test]
    fn the_document_is_the_estimate_if_nothing_ran() {
        let said = Some(TasksDraft::Uniform { tasks: 1, seconds: 7.0 }.into());
        let job = JobDraft { id: "j".into(), map: said, ..JobDraft::default() };
        let mut flow = FlowDraft::new("f", vec![job]);
        fill(&mut flow, &[plan("j", &[("a", Some(1)), ("b", Some(40_000_000))], 1)], &JobHistory::new());
        assert_eq!(tasks(flow.jobs[0].map.as_ref()), [7.0, 7.0]);
        assert_eq!(tasks(flow.jobs[0].reduce.as_ref()), [2.02], "40 MB at 20 MB/s");
    }
}
