//! Submissions: which jobs to submit, and the answers.

use std::collections::BTreeSet;
use std::fs;

use slackline_executor::engine::external_runs;
use slackline_policy::plans::Plans;

use crate::cluster::capacity::am_limit;
use crate::flows::applications::{SubmitterEvent, Ticket};
use crate::flows::engine::{FlowEngine, PRIORITY, SUBMISSIONS_MAX};
use crate::flows::jobs::{FlowJob, JobStage};
use crate::submitter::SubmitterError;

impl FlowEngine {
    /// Finds submissions of earlier sessions, whose applications may continue if a new submission would be
    /// equal.
    pub(super) fn find_submissions(&mut self, run: u32) {
        let submit = self.submissions[&run].clone();
        for (job, own) in self.jobs.iter_mut().filter(|(job, _)| *job >= run) {
            if self.runs.is_done(job) {
                own.stage = JobStage::Finished;
                continue;
            }
            let names = fs::read_dir(&own.directory).into_iter().flatten().flatten();
            let last = names.filter_map(|entry| entry.file_name().into_string().ok()).max();
            let Some(name) = last else { continue };
            own.ticket = name;
            if submit.is_as_submitted(&self.runs, job, own) {
                self.apps.by_ticket.insert(own.ticket.clone(), job);
            } else {
                own.ticket.clear();
            }
        }
    }

    /// Submits jobs that the driver has started, up to the AM limit. YARN starts the AM of a new application
    /// before any table could hold it, and AMs on all slots would wait for each other forever.
    pub(super) fn submit_started(&mut self, plans: &Plans) {
        // Earlier submissions are visible when the cluster answers.
        if self.trouble.is_silent {
            return;
        }
        let most = am_limit(self.ledger.slots(), self.rules.am_share);
        let has_am = |own: &&FlowJob| own.stage == JobStage::Submitted || own.app().is_some();
        let mut ams = self.jobs.values().filter(has_am).count();
        for job in self.ledger.waiting_jobs() {
            if ams >= most {
                return;
            }
            if self.may_submit(job) {
                if !self.submit(job) {
                    return;
                }
                ams += 1;
            }
        }
        if ams == 0 && self.ledger.is_full_of_others() {
            self.submit_unstarted(plans);
        }
    }

    /// Submits the job that the policy would start first: the driver cannot start any, and YARN gives nothing
    /// to a queue without requests. Only one, since the AMs of several could take all slots that YARN gives,
    /// and wait for each other.
    fn submit_unstarted(&mut self, plans: &Plans) {
        let mut jobs = plans.in_order().filter_map(|phase| self.ledger.job_of(phase));
        let Some(job) = jobs.find(|&job| self.may_submit(job)) else { return };
        if !std::mem::replace(&mut self.trouble.is_full_reported, true) {
            let plan = self.runs.plan(job);
            let warning = format!(
                "other applications hold all slots: {}/{} is submitted anyway, and runs when its queue gets slots",
                plan.flow, plan.job
            );
            self.warn(&warning);
        }
        self.submit(job);
    }

    /// Submits all jobs whose input is complete.
    pub(super) fn submit_ready(&mut self, plans: &Plans) {
        let jobs: BTreeSet<u32> = plans.ready.iter().filter_map(|&phase| self.ledger.job_of(phase)).collect();
        for job in jobs {
            if self.may_submit(job) && !self.trouble.is_silent && !self.submit(job) {
                return;
            }
        }
    }

    fn may_submit(&self, job: u32) -> bool {
        let own = &self.jobs[job];
        own.stage == JobStage::Waiting && !own.waits_to_retry(self.now)
    }

    /// Submits a job; false if a file system does not answer, since other jobs may need the same one.
    fn submit(&mut self, job: u32) -> bool {
        let own = &mut self.jobs[job];
        self.apps.by_ticket.remove(&own.ticket);
        let before = own.directory.clone();
        // Reports of an earlier submission do not count.
        *own = FlowJob {
            ticket: format!("{:013x}-{job}", crate::clock::unix_millis()),
            submissions: own.submissions + 1,
            started: std::mem::take(&mut own.started),
            retry: own.retry.take(),
            program: self.runs.plan(job).work.is_jar().then(Default::default),
            ..FlowJob::new(before.clone())
        };
        let (submit, own) = (self.submission_of(job), &self.jobs[job]);
        let request = external_runs::clear(&before)
            .and_then(|()| fs::create_dir_all(own.destination()))
            .and_then(|()| submit.request(&self.runs, job, own));
        match request {
            Ok(request) => {
                let ticket = Ticket { job, name: own.ticket.clone() };
                self.apps.by_ticket.insert(ticket.name.clone(), job);
                let own = &mut self.jobs[job];
                (own.stage, own.priority, own.retry) = (JobStage::Submitted, PRIORITY, None);
                own.app_times.submitted = Some(self.now);
                self.apps.unanswered.insert(ticket.clone());
                self.cluster.submit(self.runs.owner(job), ticket, request, PRIORITY as u32);
            }
            Err(error) if self.schedule_retry(job, &error) => {
                self.jobs[job].submissions -= 1;
                return false;
            }
            Err(error) => self.fail(job, &format!("it cannot be submitted: {error}")),
        }
        true
    }

    /// An answer to a submission: its application, unless a poll has shown it before.
    pub(super) fn handle_answer(&mut self, ticket: &Ticket, answer: Result<SubmitterEvent, SubmitterError>) {
        self.apps.unanswered.remove(ticket);
        if self.belongs_to_no_run(ticket, &answer) {
            return;
        }
        let own = &mut self.jobs[ticket.job];
        let is_last = own.ticket == ticket.name;
        let waits = is_last && own.stage == JobStage::Submitted;
        match answer {
            Ok(SubmitterEvent::Began(process)) => self.program_started(ticket, process),
            Ok(SubmitterEvent::Ended(state)) => self.program_exited(ticket, state),
            Ok(SubmitterEvent::Submitted(app)) if waits => {
                own.stage = JobStage::Running(app);
                self.apps.by_app.insert(app, ticket.job);
                self.apps.active.insert(app);
            }
            Ok(SubmitterEvent::Submitted(app)) if self.apps.by_app.contains_key(&app) => {}
            // Another application has finished its job, or the job has failed.
            Ok(SubmitterEvent::Submitted(app)) => {
                self.apps.active.insert(app);
                self.kill(app);
            }
            Err(error) if waits && error.is_final() => {
                self.fail(ticket.job, &format!("it cannot be submitted: {error}"));
            }
            Err(error) if is_last && own.program.is_some() => self.program_lost(ticket.job, &error),
            Err(error) if is_last && own.app().is_none() => {
                own.unconfirmed = Some((self.now, error.to_string()));
            }
            Err(_) => {}
        }
    }

    /// Whether a submission belongs to a run that has left. If so, its application or program is ended.
    pub(super) fn belongs_to_no_run(
        &mut self,
        ticket: &Ticket,
        answer: &Result<SubmitterEvent, SubmitterError>,
    ) -> bool {
        if self.jobs.get_mut(ticket.job).is_some() {
            return false;
        }
        match answer {
            Ok(SubmitterEvent::Submitted(app)) => {
                self.apps.active.insert(*app);
                self.kill(*app);
            }
            Ok(SubmitterEvent::Began(process)) => self.cluster.stop(process.process),
            Ok(SubmitterEvent::Ended(_)) | Err(_) => {}
        }
        true
    }

    /// Resubmits jobs with unconfirmed submissions that no poll has shown for some time.
    pub(super) fn retry_unconfirmed(&mut self) {
        for job in self.jobs.numbers() {
            let own = &mut self.jobs[job];
            let Some((since, message)) = &mut own.unconfirmed else { continue };
            if self.trouble.is_silent {
                *since = self.now;
            } else if self.now.since(*since).0 >= self.timeouts.unseen.as_micros() as u64 {
                let message = format!("it cannot be submitted: {message}");
                own.unconfirmed = None;
                if own.stage == JobStage::Submitted {
                    self.resubmit(job, &message);
                }
            }
        }
    }

    /// Resubmits a job, up to the most submissions.
    pub(super) fn resubmit(&mut self, job: u32, problem: &str) {
        let own = &mut self.jobs[job];
        if own.submissions >= SUBMISSIONS_MAX {
            return self.fail(job, problem);
        }
        own.stage = JobStage::Waiting;
        own.late = None;
    }
}
