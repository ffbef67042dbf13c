//! Collects the events of an application and converts them into a flow.

use std::collections::BTreeMap;

use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};

use super::events::{self, ApplicationStart, Event, JobEnd, JobStart, StageInfo, TaskEnd, TaskInfo};
use super::order::{self, JobSpan};
use crate::importers::dag::Span;
use crate::importers::durations::whole_micros;
use crate::importers::hadoop_log::printable;
use crate::importers::log::slots;
use crate::reading::diagnostic::Diagnostics;

/// The shortest pause between the jobs of a program that is reported, in seconds.
const PAUSE: f64 = 1.0;

#[derive(Default)]
pub(super) struct Reader {
    applications: Vec<Application>,
    /// A line without an event, until it is known whether it is the last.
    bad: Option<u32>,
    last: u32,
}

/// The collected data of an application.
#[derive(Default)]
pub(super) struct Application {
    pub(super) line: u32,
    start: Option<ApplicationStart>,
    queue: Option<String>,
    cores: f64,
    jobs: BTreeMap<i64, Job>,
    stages: BTreeMap<i64, Stage>,
}

#[derive(Default)]
struct Job {
    submitted: Option<i64>,
    completed: Option<i64>,
    failed: bool,
    stages: Vec<i64>,
    line: u32,
}

#[derive(Default)]
struct Stage {
    parents: Vec<i64>,
    data_set: Option<i64>,
    announced: u64,
    /// Seconds of tasks that succeeded, by their part of the data.
    done: BTreeMap<i64, f64>,
    /// Seconds of tasks of later attempts of the stage without the index of their partition.
    repeated: Vec<f64>,
    line: u32,
}

impl Reader {
    pub(super) fn line(&mut self, number: u32, line: &str, diagnostics: &mut Diagnostics) {
        if line.trim().is_empty() {
            return;
        }
        if let Some(bad) = self.bad.take() {
            diagnostics.add(bad, "line that holds no event, left out");
        }
        self.last = number;
        match events::read(line) {
            None => self.bad = Some(number),
            Some(Event::Other) => {}
            Some(event) => self.application(&event, number).take(number, event, diagnostics),
        }
    }

    /// The application that an event is of.
    fn application(&mut self, event: &Event, number: u32) -> &mut Application {
        let is_another = matches!(event, Event::ApplicationStart(_))
            && self.applications.last().is_some_and(|known| known.start.is_some());
        if is_another || self.applications.is_empty() {
            self.applications.push(Application { line: number, cores: 1.0, ..Application::default() });
        }
        let last = self.applications.len() - 1;
        &mut self.applications[last]
    }

    /// The applications that started.
    pub(super) fn end(mut self, diagnostics: &mut Diagnostics) -> Vec<Application> {
        if let Some(bad) = self.bad {
            diagnostics.add(bad, "last line that is cut short, left out");
        }
        self.applications.retain(|found| found.start.is_some() || !found.stages.is_empty());
        for found in self.applications.iter().filter(|found| found.start.is_none()) {
            diagnostics.add(found.line, "log without the start of its application");
        }
        self.applications
    }
}

impl Application {
    /// Its name: that of the cluster, with its attempt if that is not the first.
    pub(super) fn id(&self) -> Option<String> {
        let ApplicationStart { id, attempt, .. } = self.start.as_ref()?;
        let id = id.as_ref()?;
        Some(match attempt.as_deref() {
            None | Some("1") => id.clone(),
            Some(attempt) => format!("{id}_{attempt}"),
        })
    }

    /// When it began, milliseconds after 1970.
    pub(super) fn started(&self) -> Option<i64> {
        let submitted = self.jobs.values().filter_map(|job| job.submitted);
        self.start.as_ref().map(|start| start.millis).or_else(|| submitted.min())
    }

    fn take(&mut self, number: u32, event: Event, diagnostics: &mut Diagnostics) {
        match event {
            Event::ApplicationStart(start) => self.start = Some(start),
            Event::Environment(environment) => {
                self.queue = environment.get("spark.yarn.queue").map(str::to_owned);
                let cores = environment.get("spark.task.cpus").and_then(|cores| cores.parse::<f64>().ok());
                let known = cores.filter(|cores| (1.0..=TASK_CORES_MAX).contains(cores));
                if cores.is_some() && known.is_none() {
                    diagnostics.add(number, "spark.task.cpus that is not 1 to 1024, taken as 1");
                }
                self.cores = known.unwrap_or(1.0);
            }
            Event::JobStart(job) => self.job(number, job),
            Event::JobEnd(JobEnd { id, millis, result }) => {
                let job = self.jobs.entry(id).or_default();
                job.completed = millis;
                job.failed = result.is_some_and(|result| result.result != "JobSucceeded");
                if job.failed {
                    diagnostics.add(number, "job that failed, kept as far as it ran");
                }
            }
            Event::Stage(stage) => self.stage(number, stage),
            Event::TaskEnd(task) => self.task(number, task, diagnostics),
            Event::Other => {}
        }
    }

    fn job(&mut self, number: u32, start: JobStart) {
        let mut stages = start.stage_ids;
        stages.extend(start.stages.iter().map(|stage| stage.id));
        stages.sort_unstable();
        stages.dedup();
        for stage in start.stages {
            self.stage(number, stage);
        }
        let job = self.jobs.entry(start.id).or_default();
        (job.submitted, job.stages, job.line) = (start.millis, stages, number);
    }

    fn stage(&mut self, number: u32, info: StageInfo) {
        let data_set = info.last_data_set();
        let stage = self.stages.entry(info.id).or_insert_with(|| Stage { line: number, ..Stage::default() });
        stage.announced = stage.announced.max(info.tasks);
        stage.data_set = stage.data_set.or(data_set);
        stage.parents.extend(info.parents);
        stage.parents.sort_unstable();
        stage.parents.dedup();
    }

    fn task(&mut self, number: u32, end: TaskEnd, diagnostics: &mut Diagnostics) {
        let succeeded = end.reason.is_none_or(|reason| reason.reason == "Success");
        let is_speculative = end.task.as_ref().is_some_and(|task| task.speculative);
        diagnostics.add_unmodelled("row", u64::from(is_speculative), number, SPECULATIVE);
        let Some(TaskInfo { index, partition, launched, finished, .. }) = end.task.filter(|_| succeeded)
        else {
            let what = "attempt of a task that failed or was killed, left out";
            diagnostics.add_unmodelled("row", 1, number, what);
            return;
        };
        if finished < launched {
            diagnostics.add(number, "task that ends before it starts, left out");
            return;
        }
        let seconds = (finished as f64 - launched as f64) / 1000.0;
        let stage =
            self.stages.entry(end.stage).or_insert_with(|| Stage { line: number, ..Stage::default() });
        if end.attempt > 0 && partition.is_none() {
            stage.repeated.push(seconds);
        } else if let std::collections::btree_map::Entry::Vacant(first) =
            stage.done.entry(partition.unwrap_or(index))
        {
            first.insert(seconds);
        } else {
            diagnostics.add(number, REPEATED);
        }
    }

    /// The flow of all stages that ran; `None` if there are none.
    pub(super) fn flow(
        &mut self,
        id: String,
        slot_cores: u64,
        diagnostics: &mut Diagnostics,
    ) -> Option<FlowDraft> {
        for stage in self.stages.values_mut() {
            stage.complete_tasks(diagnostics);
        }
        let spans = self.spans(diagnostics);
        let stages: Vec<order::Stage<'_>> = self
            .stages
            .iter()
            .map(|(&id, stage)| order::Stage {
                id,
                parents: &stage.parents,
                data_set: stage.data_set,
                ran: !stage.done.is_empty(),
            })
            .collect();
        let wide = slots(self.cores, slot_cores) as usize;
        let several = if wide > 1 { self.stages.len() as u64 } else { 0 };
        diagnostics.add_unmodelled("row", several, self.line, SEVERAL_CORES);
        let name = |id: i64| format!("stage-{id}");
        let jobs = order::order(&stages, &spans).into_iter().map(|(id, after)| {
            let seconds = self.stages[&id].done.values().map(|&seconds| whole_micros(seconds));
            let seconds = seconds.flat_map(|seconds| std::iter::repeat_n(seconds, wide)).collect();
            JobDraft {
                id: name(id),
                after: after.into_iter().map(name).collect(),
                map: Some(TasksDraft::Each(seconds).into()),
                ..JobDraft::default()
            }
        });
        let jobs: Vec<JobDraft> = jobs.collect();
        if jobs.is_empty() {
            diagnostics.add_flow(self.line, "application without a finished task, left out");
            return None;
        }
        let user = self.start.as_ref().and_then(|start| start.user.as_deref()).and_then(printable);
        let pool = self.queue.as_deref().and_then(printable);
        Some(FlowDraft { user, pool, ..FlowDraft::new(id, jobs) })
    }

    /// The jobs in the order of their submission.
    fn spans(&self, diagnostics: &mut Diagnostics) -> Vec<JobSpan> {
        let mut jobs: Vec<&Job> = self.jobs.values().collect();
        jobs.sort_by_key(|job| job.submitted);
        let mut last_end: Option<i64> = None;
        for job in &jobs {
            let (Some(submitted), Some(completed)) = (job.submitted, job.completed) else { continue };
            if last_end.is_some_and(|end| (submitted as f64 - end as f64) / 1000.0 >= PAUSE) {
                diagnostics.add(job.line, "pause of at least 1 s between the jobs of a program, left out");
            }
            last_end = last_end.max(Some(completed));
        }
        let span = |job: &Job| JobSpan {
            span: Span { start: job.submitted, end: job.completed },
            stages: job.stages.clone(),
        };
        jobs.into_iter().map(span).collect()
    }
}

/// Cores that a task may take: no machine has more, and each counts as one task here.
const TASK_CORES_MAX: f64 = 1024.0;

/// The remark on speculative attempts.
const SPECULATIVE: &str = "speculative attempt: simulations start none unless asked";

/// The remark on tasks of several cores.
const SEVERAL_CORES: &str =
    "stage with tasks of several cores: the slots of a task are scheduled independently";

/// The remark on tasks that were executed again.
const REPEATED: &str = "task that had already succeeded, left out";

impl Stage {
    /// Fills gaps with tasks of later attempts of the stage, and reports what is missing.
    fn complete_tasks(&mut self, diagnostics: &mut Diagnostics) {
        let mut next = self.done.keys().next_back().map_or(0, |last| last.saturating_add(1));
        for seconds in std::mem::take(&mut self.repeated) {
            if (self.done.len() as u64) < self.announced && !self.done.contains_key(&next) {
                self.done.insert(next, seconds);
                next = next.saturating_add(1);
            } else {
                diagnostics.add(self.line, REPEATED);
            }
        }
        if !self.done.is_empty() && (self.done.len() as u64) < self.announced {
            diagnostics.add(self.line, "stage with unfinished tasks, kept with its finished tasks");
        }
    }
}
