//! The offline problem as plain data: jobs of a map and a reduce stage, all released at time 0.

use slackline_model::id::TiVec;
use slackline_model::instance::Phase;
use slackline_model::tasks::{Run, Tasks};
use slackline_model::{Instance, JobId, PhaseId, Span, Time};

/// The two stages of a job; a phase that is missing or has no length is a stage without tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub map: Tasks,
    pub reduce: Tasks,
}

impl Job {
    /// A job of equal maps and equal reduces: how many, and how long each takes, in microseconds.
    pub fn uniform(maps: u32, map_micros: u64, reduces: u32, reduce_micros: u64) -> Self {
        let tasks = |count, micros| Tasks::uniform(count, Span(micros));
        Self { map: tasks(maps, map_micros), reduce: tasks(reduces, reduce_micros) }
    }
}

/// Independent jobs, all released at 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    jobs: TiVec<JobId, Job>,
}

/// The reason why an input is not an offline workload of the job-ordering paper.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOffline {
    /// A flow that is not one job.
    #[error("flow {flow:?}: found {jobs} jobs, expected one: job orders need flows of a single job")]
    Jobs {
        flow: String,
        /// How many jobs it has.
        jobs: usize,
    },
    /// A flow that arrives later.
    #[error("flow {flow:?}: found release {release}, expected 0: offline orders need all jobs at time 0")]
    Release { flow: String, release: Time },
    /// A phase that is not cut into tasks.
    #[error("phase {phase}: found work without tasks, expected tasks")]
    Malleable { phase: String },
    /// A phase that may not use all slots.
    #[error(
        "phase {phase}: found max_slots below its number of tasks, expected a phase that may use any slot"
    )]
    Capped { phase: String },
    /// More work than integers of 64 bits hold.
    #[error("found more than 9e18 slot-microseconds of work in all")]
    Work,
    /// Slots serve maps and reduces alike.
    #[error("found generic slots, expected map and reduce slots: job orders need both kinds")]
    Generic,
    /// No slots of one kind.
    #[error(transparent)]
    NoSlots(#[from] NoSlots),
    /// An order that has not every job once.
    #[error("found an order of {found} jobs, expected each of the {jobs} jobs once")]
    Order {
        /// How many jobs are in the order.
        found: usize,
        /// How many there are.
        jobs: usize,
    },
}

impl Workload {
    /// A workload of these jobs, or without jobs; [`JobId`] numbers them from 0.
    ///
    /// # Errors
    /// More work than 64 bits hold.
    pub fn new(jobs: Vec<Job>) -> Result<Self, NotOffline> {
        let work = |tasks: &Tasks| {
            tasks.runs().iter().map(|run| u128::from(run.span.0) * u128::from(run.count)).sum::<u128>()
        };
        if jobs.iter().map(|job| work(&job.map) + work(&job.reduce)).sum::<u128>() > 9_000_000_000_000_000_000
        {
            return Err(NotOffline::Work);
        }
        Ok(Self { jobs: jobs.into() })
    }

    /// The jobs of an instance of one-job flows, with the ids of the instance. Durations are those of the
    /// machines if all have one speed, and of speed 1 otherwise (the paper has no speeds). Minima, weights,
    /// deadlines and the objective are ignored.
    ///
    /// # Errors
    /// Flows of several jobs, releases after 0, phases without tasks (see [`Instance::cut`]) or with
    /// maxima below their number of tasks.
    pub fn from_instance(instance: &Instance) -> Result<Self, NotOffline> {
        Self::at_speed(instance, instance.cluster().uniform_speed().unwrap_or(1.0))
    }

    /// The same with durations at that speed.
    pub(super) fn at_speed(instance: &Instance, speed: f64) -> Result<Self, NotOffline> {
        for flow in instance.flows().iter() {
            let (id, jobs) = (|| flow.id.clone(), flow.jobs().len());
            if jobs != 1 {
                return Err(NotOffline::Jobs { flow: id(), jobs });
            }
            if flow.release > Time::ZERO {
                return Err(NotOffline::Release { flow: id(), release: flow.release });
            }
        }
        let jobs: Result<_, NotOffline> = (instance.jobs().iter())
            .map(|job| {
                Ok(Job {
                    map: tasks_of(instance, job.map, speed)?,
                    reduce: tasks_of(instance, job.reduce, speed)?,
                })
            })
            .collect();
        Self::new(jobs?)
    }

    pub fn jobs(&self) -> &TiVec<JobId, Job> {
        &self.jobs
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn n_tasks(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.map.count()) + u64::from(job.reduce.count())).sum()
    }

    /// The job ids, in order.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = JobId> + use<> {
        (0..self.jobs.len() as u32).map(JobId)
    }
}

fn tasks_of(instance: &Instance, phase: Option<PhaseId>, speed: f64) -> Result<Tasks, NotOffline> {
    let Some(id) = phase else { return Ok(Tasks::from_runs([])) };
    let phase: &Phase = instance.phase(id);
    let name = || instance.phase_name(id);
    let tasks = phase.tasks().ok_or_else(|| NotOffline::Malleable { phase: name() })?;
    if phase.cap < tasks.count() {
        return Err(NotOffline::Capped { phase: name() });
    }
    // It takes no slot, not even for an instant.
    if phase.is_without_length() {
        return Ok(Tasks::from_runs([]));
    }
    let at_speed = |run: &Run| Run { count: run.count, span: run.span.at_speed_nearest(speed) };
    Ok(Tasks::from_runs(tasks.runs().iter().map(at_speed)))
}

/// The map and reduce slots of a cluster; at least one of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Split {
    map: u32,
    reduce: u32,
}

/// The ends of a range of splits of one total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    /// Fewest map, most reduce slots.
    pub(super) low: Split,
    /// Most map, fewest reduce slots.
    pub(super) high: Split,
}

/// A split without slots of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {map} map and {reduce} reduce slots, expected at least one of each")]
pub struct NoSlots {
    pub map: u32,
    pub reduce: u32,
}

impl Split {
    /// That many map and reduce slots.
    ///
    /// # Errors
    /// If either is 0.
    pub fn new(map: u32, reduce: u32) -> Result<Self, NoSlots> {
        if map == 0 || reduce == 0 { Err(NoSlots { map, reduce }) } else { Ok(Self { map, reduce }) }
    }

    /// Map slots, the paper's |S^M|.
    pub fn map(self) -> u32 {
        self.map
    }

    /// Reduce slots, the paper's |S^R|.
    pub fn reduce(self) -> u32 {
        self.reduce
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::Draft;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PerPhase, TasksDraft};

    use super::*;

    fn draft(job: JobDraft) -> Draft {
        let slots = Slots::MapReduce { map: 2, reduce: 1 };
        let machine = MachineDraft { name: "m".into(), count: 2, speed: 2.0, slots, rack: None };
        Draft { machines: vec![machine], flows: vec![FlowDraft::new("f", vec![job])], ..Draft::default() }
    }

    fn job(tasks: TasksDraft) -> JobDraft {
        JobDraft { id: "j".into(), map: Some(tasks.into()), ..JobDraft::default() }
    }

    fn error(draft: &Draft) -> String {
        Workload::from_instance(&Instance::new(draft).unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn an_instance_of_one_job_flows_is_a_workload() {
        let instance = Instance::new(&draft(job(TasksDraft::Each(vec![4.0, 4.0, 2.0])))).unwrap();
        let workload = Workload::from_instance(&instance).unwrap();
        let job = &workload.jobs()[JobId(0)];
        let runs = [Run { count: 2, span: Span(2_000_000) }, Run { count: 1, span: Span(1_000_000) }];
        assert_eq!((job.map.runs(), job.reduce.count()), (&runs[..], 0));
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        let tasks = || TasksDraft::Uniform { tasks: 4, seconds: 1.0 };
        let mut late = draft(job(tasks()));
        late.flows[0].release = 3.0;
        assert!(error(&late).contains(r#"flow "f": found release 3 s, expected 0"#));
        let mut two = draft(job(tasks()));
        two.flows[0].jobs.push(JobDraft { id: "k".into(), ..job(tasks()) });
        assert!(error(&two).contains(r#"flow "f": found 2 jobs, expected one"#));
        let malleable = draft(job(TasksDraft::Work { work: 5.0, tasks: None }));
        assert_eq!(error(&malleable), "phase f/j/map: found work without tasks, expected tasks");
        let capped = JobDraft { max_slots: PerPhase::both(3), ..job(tasks()) };
        assert!(error(&draft(capped)).contains("phase f/j/map: found max_slots below"));
        assert!(Workload::new(Vec::new()).unwrap().is_empty());
        let huge = Job::uniform(1, u64::MAX / 2, 1, 1);
        assert_eq!(Workload::new(vec![huge.clone(), huge]), Err(NotOffline::Work));
        assert!(Split::new(1, 0).is_err());
    }
}
