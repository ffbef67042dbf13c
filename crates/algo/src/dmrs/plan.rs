//! Plans a whole instance at once: the linear program, the order, the list.

use slackline_model::id::TiVec;
use slackline_model::instance::{Flow, Phase};
use slackline_model::schedule::{NewRow, Outcome, TaskRows};
use slackline_model::{FlowId, GroupId, Instance, JobId, SlotRange, Span, Time};

use super::list::{List, Placed};
use super::lp::{self, Form};
use super::model;
use super::order::{self, Key};
use super::replay::replay;
use super::variant::Variant;
use crate::registry::Refused;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    pub variant: Variant,
    /// Which linear program gives the order.
    pub form: Form,
    /// The sort key of the list.
    pub key: Key,
}

/// A schedule of tasks with its known quality.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where and when each task runs.
    pub tasks: TaskRows,
    /// Every task in the order of the list; for the baselines, of the starts.
    pub placed: Vec<Placed>,
    /// The order of the list.
    pub order: Vec<FlowId>,
    /// When each flow completes.
    pub completions: TiVec<FlowId, Time>,
    pub cost: f64,
    /// The larger of the linear program's value and the release-date bound, if the objective is a sum of
    /// linear costs. Up to the rounding of tasks to whole microseconds.
    pub lower_bound: Option<f64>,
    /// The factor of Theorem 1 on Σ w_j C_j, for DMRS itself if the objective is a sum of linear costs,
    /// slots are generic and no cap binds.
    pub ratio: Option<f64>,
}

/// Plans all flows with their release times (Algorithm 1). The baselines of the paper list the tasks with
/// their own knowledge, and are then executed on the real machines.
///
/// O(N log N + tasks · (log slots + speed classes)).
///
/// # Errors
/// If a flow has several jobs or a phase that was not cut into tasks.
pub fn plan(instance: &Instance, config: Config) -> Result<Plan, Refused> {
    let jobs = one_job_flows(instance, config.variant.name())?;
    let lp_jobs: Vec<lp::Job> = jobs.iter().map(|&job| model::lp_job(instance, job)).collect();
    let (order, mut placed) = list(instance, &jobs, &lp_jobs, config);
    if config.variant != Variant::Full {
        placed = replay(instance, &placed);
    }
    let mut completions: TiVec<FlowId, Time> = instance.flows().iter().map(|flow| flow.release).collect();
    for task in &placed {
        let completion = &mut completions[instance.flow_of(task.phase)];
        *completion = task.end.max(*completion);
    }
    let seconds: Vec<f64> = completions.iter().map(|time| time.seconds()).collect();
    let system = model::system(instance.cluster(), |group| instance.cluster().groups()[group].speed);
    let bound = || {
        let intercepts = instance.flows().iter().filter_map(|flow| flow.cost.as_linear()).map(|c| c.1);
        let value = lp::solve(&lp_jobs, &system, config.form).value;
        value.max(lp::release_bound(&lp_jobs, &system, config.form)) + intercepts.sum::<f64>()
    };
    let linear = model::is_linear(instance);
    let plain = !instance.cluster().is_map_reduce() && instance.phases().iter().all(is_uncapped);
    let theorem_1 = linear && plain && config.variant == Variant::Full;
    Ok(Plan {
        tasks: rows(&placed),
        order,
        cost: instance.cost_of(&seconds),
        lower_bound: linear.then(bound),
        ratio: theorem_1.then(|| order::ratio(&lp_jobs, &system)),
        completions,
        placed,
    })
}

/// The order of the flows and the tasks in the order of the list, as estimated by the scheduler.
fn list(
    instance: &Instance,
    jobs: &[JobId],
    lp_jobs: &[lp::Job],
    config: Config,
) -> (Vec<FlowId>, Vec<Placed>) {
    let cluster = instance.cluster();
    let speed = |group: GroupId| match config.variant {
        Variant::Full | Variant::MapOnly => cluster.groups()[group].speed,
        Variant::Identical => cluster.mean_speed(),
    };
    // Step 1.
    let considered: Vec<lp::Job> = lp_jobs.iter().map(|&job| config.variant.considers(job)).collect();
    let system = model::system(cluster, speed);
    let solution = lp::solve(&considered, &system, config.form);
    // Step 2.
    let order = order::order(&considered, &system, &solution, config.key);
    // Steps 3 to 17.
    let mut list = List::new(model::slots(cluster, speed));
    let mut placed = Vec::with_capacity(usize::try_from(instance.n_tasks()).unwrap_or(0));
    for &at in &order {
        let mut job = model::list_job(instance, jobs[at]);
        job.phases.retain(|phase| config.variant.places(instance.phase(phase.id).kind));
        list.place(&job, &mut |task| placed.push(task));
    }
    (order.into_iter().map(FlowId::from).collect(), placed)
}

fn is_uncapped(phase: &Phase) -> bool {
    phase.tasks().is_none_or(|tasks| phase.cap >= tasks.count())
}

/// The job of every flow.
fn one_job_flows(instance: &Instance, policy: &'static str) -> Result<Vec<JobId>, Refused> {
    let job = |flow: &Flow| {
        let mut jobs = flow.jobs();
        let (Some(job), None) = (jobs.next(), jobs.next()) else {
            let jobs = flow.jobs().len();
            return Err(Refused::SeveralJobs { policy, flow: flow.id.clone(), jobs });
        };
        match instance.job(job).phases().find(|&phase| instance.phase(phase).tasks().is_none()) {
            Some(phase) => Err(Refused::NotCut { policy, phase: instance.phase_name(phase) }),
            None => Ok(job),
        }
    };
    instance.flows().iter().map(job).collect()
}

/// Rows of equal neighbouring tasks that start and end together.
pub(crate) fn rows(placed: &[Placed]) -> TaskRows {
    let mut sorted: Vec<&Placed> = placed.iter().collect();
    sorted.sort_by_key(|task| (task.phase, task.task));
    let mut rows = TaskRows::new();
    let key = |task: &Placed| (task.phase, task.span, task.start, task.end);
    for together in sorted.chunk_by(|a, b| key(a) == key(b)) {
        let mut slots: Vec<u32> = together.iter().map(|task| task.slot).collect();
        slots.sort_unstable();
        let ranges = slots.chunk_by(|a, b| a + 1 == *b);
        let places: Vec<SlotRange> =
            ranges.map(|range| SlotRange { first: range[0], len: range.len() as u32 }).collect();
        let task = together[0];
        let row = NewRow {
            phase: task.phase,
            first: task.task,
            count: together.len() as u32,
            start: task.start,
            end: task.end,
            startup: Span::ZERO,
            attempt: 0,
            outcome: Outcome::Done,
        };
        rows.push(row, &places);
    }
    rows
}
