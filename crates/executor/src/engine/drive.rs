//! Drives an opened run to its end.

use slackline_model::Instance;
use slackline_policy::Config;

use crate::engine::backend::{Drive, RemainingWork};
use crate::engine::event::RunEvent;
use crate::engine::external_runs::{Elsewhere, ExternalEnd};
use crate::engine::{Interrupt, ProcessEngine, Settings, Work};
use crate::fleet::Fleet;
use crate::fleet::processes::Processes;
use crate::run::error::{EngineError, file};
use crate::run::{RunEnd, Session};
use crate::spec::job_plan::JobPlan;
use crate::spec::remaining::Numbers;

impl Session {
    /// Runs what is left. `stop` is given what stops the run from another thread.
    ///
    /// # Errors
    /// The engine could not continue; finished work stays finished.
    pub fn run(
        &mut self,
        drive: Drive<'_>,
        settings: Settings,
        stop: impl FnOnce(Interrupt),
    ) -> Result<RunEnd, EngineError> {
        let groups = self.memory.groups.take();
        let pids = self.layout.pids();
        let fleet = Processes::new(settings.worker.clone(), pids.clone(), groups).map_err(file(&pids))?;
        self.run_on(Box::new(fleet), drive, settings, stop)
    }

    /// The same on the machines of a fleet, which are those of its workload.
    pub(crate) fn run_on(
        &mut self,
        fleet: Box<dyn Fleet>,
        drive: Drive<'_>,
        settings: Settings,
        stop: impl FnOnce(Interrupt),
    ) -> Result<RunEnd, EngineError> {
        let Drive { instance, policy, mut config, observer } = drive;
        let work = self.work(instance, &mut config);
        let mut engine = ProcessEngine::new(work, settings, self.clock(), Box::new(observer), fleet);
        stop(engine.interrupt());
        let run = slackline_policy::run(instance, policy, &mut engine, config);
        engine.never_finish(&run.figures.unfinished);
        engine.close();
        let (interrupted, fatal) = (engine.was_interrupted(), engine.fatal().map(str::to_owned));
        drop(engine);
        if let Some(reason) = fatal {
            self.read_again()?;
            return Err(EngineError::Stopped(reason));
        }
        let all_done = run.completions.iter().all(Option::is_some);
        self.over(ExternalEnd { all_done, interrupted, policy_failed: run.figures.failure })
    }

    /// Runs the rest of the run by an engine that runs whole jobs. `run` gets the remaining work, the policy
    /// and the information for its driver, and returns how it ended. `after` is called with the failed jobs
    /// whose outputs are given up, and the name by which the outputs of the run are known; it returns a
    /// warning.
    ///
    /// # Errors
    /// The engine could not continue; finished jobs stay finished.
    pub fn run_elsewhere(
        &mut self,
        drive: Drive<'_>,
        run: impl FnOnce(Elsewhere<'_>, RemainingWork<'_>) -> Result<ExternalEnd, EngineError>,
        after: impl FnOnce(&[JobPlan], &str) -> Option<String>,
    ) -> Result<RunEnd, EngineError> {
        let Drive { instance, policy, mut config, observer } = drive;
        let work = self.work(instance, &mut config);
        let left = Elsewhere::alone(work, self.clock(), self.head.started, &mut *observer);
        let over = run(left, RemainingWork { instance, policy, config });
        self.read_again()?;
        let end = self.over(over?)?;
        if let Some(warning) = after(&self.jobs, &self.head.owner) {
            observer.happened(self.clock().now(), &RunEvent::Warning(warning));
        }
        Ok(end)
    }

    /// What an engine works on. It knows the limits of jobs, and says which failure is the last.
    pub(crate) fn work<'a>(&'a self, instance: &'a Instance, config: &mut Config<'_>) -> Work<'a> {
        let done = self.done();
        Work {
            instance,
            workload: &self.head.workload,
            layout: &self.layout,
            journal: &self.journal,
            owner: &self.head.owner,
            numbers: Numbers::new(instance, &self.jobs, &done),
            jobs: &self.jobs,
            publisher: self.publisher(),
            waits: self.waits(),
            done,
            attempts: &self.attempts,
            segments: &self.head.segments,
            segment: self.head.segments.len() as u32 - 1,
            kept: &self.head.kept,
            attempts_max: std::mem::replace(&mut config.attempts_max, u16::MAX),
        }
    }

    /// What the end of an engine means for the run.
    pub(crate) fn over(&mut self, over: ExternalEnd) -> Result<RunEnd, EngineError> {
        self.read_again()?;
        if let Some(failure) = over.policy_failed {
            return Err(EngineError::Policy(failure));
        }
        if !over.interrupted {
            self.release();
        }
        Ok(match over.all_done {
            true if self.obstacles.is_empty() => RunEnd::Done,
            false if over.interrupted => RunEnd::Interrupted,
            _ => RunEnd::Failed,
        })
    }
}
