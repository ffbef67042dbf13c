//! The workload as columns: flows, jobs and phases in the order of their ids.

use serde::Serialize;
use slackline_model::{Instance, PhaseKind};

use super::columns::{NONE, Names, Scale};

/// Flows, jobs and phases.
#[derive(Debug, Serialize)]
pub(super) struct Workload<'a> {
    flows: Flows<'a>,
    jobs: Jobs<'a>,
    phases: Phases,
}

#[derive(Debug, Serialize)]
struct Flows<'a> {
    id: Vec<&'a str>,
    release: Vec<i64>,
    /// −1 for none.
    deadline: Vec<i64>,
    pool: Names<'a>,
    user: Names<'a>,
    /// Slot-seconds, rounded to a thousandth.
    work: Vec<f64>,
    /// The run time on an empty cluster, seconds.
    alone: Vec<f64>,
    jobs: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Jobs<'a> {
    id: Names<'a>,
    /// By job: the number of its phases.
    phases: Vec<usize>,
}

#[derive(Debug, Serialize)]
struct Phases {
    /// 1 for reduces.
    kind: Vec<u8>,
    tasks: Vec<u32>,
}

/// The end of the visible time, microseconds, for schedules that end at `last`. Deadlines long after that are
/// outside, because they would leave no room for the rest.
pub(super) fn horizon(instance: &Instance, last: u64) -> u64 {
    let last = instance.flows().iter().map(|flow| flow.release.0).fold(last, u64::max);
    let deadlines = instance.flows().iter().filter_map(|flow| flow.deadline);
    deadlines.map(|deadline| deadline.0).filter(|&deadline| deadline <= last / 4 * 5).fold(last, u64::max)
}

impl<'a> Workload<'a> {
    pub(super) fn of(instance: &'a Instance, scale: Scale) -> Self {
        let flows = || instance.flows().iter();
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        Self {
            flows: Flows {
                id: flows().map(|flow| flow.id.as_str()).collect(),
                release: flows().map(|flow| scale.ticks(flow.release.0)).collect(),
                deadline: flows()
                    .map(|flow| flow.deadline.map_or(NONE, |deadline| scale.ticks(deadline.0)))
                    .collect(),
                pool: Names::of(flows().map(|flow| flow.pool.map(|pool| instance.pools()[pool].id.as_str()))),
                user: Names::of(flows().map(|flow| flow.user.as_deref())),
                work: flows().map(|flow| rounded(flow.work.slot_seconds())).collect(),
                alone: flows().map(|flow| (flow.alone * 1e6).round() / 1e6).collect(),
                jobs: flows().map(|flow| flow.jobs().len()).collect(),
            },
            jobs: Jobs {
                id: Names::of(instance.jobs().iter().map(|job| Some(job.id.as_str()))),
                phases: instance.jobs().iter().map(|job| job.phases().count()).collect(),
            },
            phases: Phases {
                kind: instance
                    .phases()
                    .iter()
                    .map(|phase| u8::from(phase.kind == PhaseKind::Reduce))
                    .collect(),
                tasks: instance
                    .phases()
                    .iter()
                    .map(|phase| phase.tasks().map_or(0, slackline_model::tasks::Tasks::count))
                    .collect(),
            },
        }
    }
}
