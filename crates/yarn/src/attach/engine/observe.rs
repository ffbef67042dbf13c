//! Observations: polls the cluster and the ApplicationMasters, and tells the driver of changes.

use slackline_executor::spec::job_cost::JobName;
use slackline_model::tasks::Tasks;
use slackline_model::{FlowId, PhaseId, PhaseKind};
use slackline_policy::engine::Report;

use crate::attach::application::{AppOutcome, DrivenApp, DriverState, SILENT, flow_name};
use crate::attach::engine::AttachEngine;
use crate::attach::job_name::{WORKFLOW, job_name};
use crate::attach::watcher::{AttachEvent, Stage};
use crate::cluster::container_ledger::ContainerOutcome;
use crate::cluster::fair_polling::TIME_LIMIT;
use crate::cluster::observer::{Change, phase_of};
use crate::cluster::task_inference::{EndedContainer, Inference, KnownCounts};
use crate::rest::id::AppId;
use crate::rest::mapreduce::MapReduceJob;
use crate::rest::resource_manager::{App, AppState, Container, FinalStatus};

impl AttachEngine<'_> {
    /// Polls the cluster, applies the changes, and gives reports for the driver.
    pub(super) fn poll_cluster(&mut self, reports: &mut Vec<Report>) {
        self.ledger.advance(self.clock.now);
        let Self { control, config, alone, .. } = self;
        let of_interest = |app: &App| {
            let is_its = config.queues.iter().any(|queue| app.is_in(queue));
            app.kind == "MAPREDUCE" && is_its && !alone.contains(&app.id)
        };
        match control.poll_cluster(of_interest) {
            Ok(changes) => {
                self.trouble(None);
                if std::mem::take(&mut self.is_first) {
                    self.set_offset();
                }
                for change in changes {
                    self.apply_change(change);
                }
                self.poll_ams();
                let starting = self.apps.values().filter(|known| self.waits_for_am(known)).count();
                let Self { control, ledger, config, .. } = self;
                control.count_others(ledger, config.rules.slot_mb, starting as u32);
            }
            Err(error) => self.trouble(Some(error.to_string())),
        }
        self.fail_ended_flows();
        self.ledger.report(reports);
        self.arrive(reports);
    }

    fn apply_change(&mut self, change: Change) {
        match change {
            Change::Appeared(app) => self.app_appeared(app),
            Change::State { app, .. } | Change::Attempt(crate::rest::id::AppAttemptId { app, .. }) => {
                if let Some(known) = self.app_mut(app) {
                    known.asking.changed = true;
                }
            }
            Change::Started(container) => self.container_started(&container),
            Change::Ended(container) => self.container_ended(&container),
            Change::AppEnded { app, state, status, .. } => self.app_ended(app, state, status),
            Change::Released(app) => self.app_gone(app),
            Change::Gone(app) => {
                self.app_ended(app, AppState::Killed, FinalStatus::Undefined);
                self.app_gone(app);
            }
            Change::Restarted => {}
        }
    }

    pub(super) fn app_mut(&mut self, app: AppId) -> Option<&mut DrivenApp> {
        self.apps.get_mut(self.by_app.get(&app)?)
    }

    fn app_appeared(&mut self, app: AppId) {
        let Some(watched) = self.control.snapshot().watched.get(&app) else { return };
        if watched.app.state.is_over() {
            return;
        }
        let known = DrivenApp::of(&watched.app, self.clock.now, |millis| self.clock.since_start(millis));
        let number = self.next.0;
        self.next.0 += 1;
        self.by_app.insert(app, number);
        self.notify(&AttachEvent::Seen(app));
        for problem in &known.tags.problems {
            self.watcher.happened(self.clock.elapsed(), &AttachEvent::WrongTag(app, problem.clone()));
        }
        self.apps.insert(number, known);
    }

    fn container_started(&mut self, container: &Container) {
        let since = self.clock.container_start(container);
        let number = self.by_app.get(&container.id.attempt.app).copied();
        if let Some(known) = number.and_then(|number| self.apps.get_mut(&number)) {
            known.asking.changed = true;
        }
        let work = number.map(|number| (number, phase_of(container.purpose)));
        self.ledger.add_container(container.id, &container.host, since, work);
    }

    fn container_ended(&mut self, container: &Container) {
        let ended = EndedContainer {
            id: container.id,
            since: self.clock.container_start(container),
            at: self.clock.now,
        };
        let kind = phase_of(container.purpose);
        if let Some(known) = self.app_mut(container.id.attempt.app)
            && let Some(kind) = kind.filter(|_| known.has_arrived())
        {
            match known.ended {
                None => return known.container_ended(kind, ended),
                // The last container of an application is reported together with its end.
                Some(AppOutcome::Succeeded) => known.add_duration(kind, ended),
                Some(AppOutcome::Failed) => {}
            }
        }
        self.ledger.remove_container(container.id, ContainerOutcome::Failed);
    }

    fn app_ended(&mut self, app: AppId, state: AppState, status: FinalStatus) {
        // An ended application leaves the snapshot.
        let diagnostics = self.control.snapshot().app(app).map(|app| app.diagnostics.trim().to_owned());
        let Some(&number) = self.by_app.get(&app) else { return };
        let Some(known) = self.apps.get_mut(&number).filter(|known| known.ended.is_none()) else { return };
        let well = state == AppState::Finished && status == FinalStatus::Succeeded;
        known.ended = Some(if well { AppOutcome::Succeeded } else { AppOutcome::Failed });
        for (kind, container) in known.close() {
            if well {
                known.add_duration(kind, container);
            }
            self.ledger.remove_container(
                container.id,
                if well { ContainerOutcome::Finished } else { ContainerOutcome::Failed },
            );
        }
        if !well {
            let message = diagnostics.filter(|text| !text.is_empty()).unwrap_or_else(|| match state {
                AppState::Killed => "killed".to_owned(),
                _ => "failed".to_owned(),
            });
            return self.notify(&AttachEvent::Failed(app, message));
        }
        self.ledger.finish_job(number);
        self.notify(&AttachEvent::Done(app));
    }

    /// The application holds no container any more.
    fn app_gone(&mut self, app: AppId) {
        self.alone.remove(&app);
        let Some(known) = self.app_mut(app) else { return };
        known.is_gone = true;
        let known = known.clone();
        self.learn(&known);
        self.forget();
    }

    /// Adds the durations of an application that succeeded to the history.
    pub(super) fn learn(&mut self, known: &DrivenApp) {
        let has_ended =
            known.ended == Some(AppOutcome::Succeeded) && known.durations.maps + known.durations.reduces > 0;
        if let Some(name) = known.name.clone().filter(|_| has_ended) {
            let so_far = self.learned.entry(name).or_default();
            *so_far = std::mem::take(so_far).and(&known.durations);
        }
    }

    /// Forgets applications that have left both the cluster and the driver.
    pub(super) fn forget(&mut self) {
        let Self { apps, by_app, .. } = self;
        apps.retain(|_, known| {
            let stays = !known.is_gone || known.in_driver == DriverState::Active;
            if !stays {
                by_app.remove(&known.app);
            }
            stays
        });
    }

    /// Flows have ended in the driver.
    pub(in crate::attach) fn flows_ended(&mut self, flows: impl IntoIterator<Item = FlowId>) {
        for flow in flows {
            let Some(number) = self.by_flow.remove(&flow) else { continue };
            self.ledger.forget_job(number);
            if let Some(known) = self.apps.get_mut(&number) {
                known.in_driver = DriverState::Finished;
            }
        }
        self.forget();
    }

    /// Fails the flows of failed applications until the driver has ended them.
    fn fail_ended_flows(&mut self) {
        let failed = |(_, known): &(&u32, &DrivenApp)| {
            known.ended == Some(AppOutcome::Failed) && known.in_driver == DriverState::Active
        };
        let failed: Vec<u32> = self.apps.iter().filter(failed).map(|(&number, _)| number).collect();
        for number in failed {
            self.ledger.fail_flow(&[number]);
        }
    }

    /// Polls the AMs that may have news, within the time limit. The next poll continues with the others.
    fn poll_ams(&mut self) {
        let due = self.due_ams();
        let mut round = self.turn.round(due, TIME_LIMIT);
        while let Some(number) = round.next(&mut self.turn) {
            let Some(known) = self.apps.get_mut(&number) else { continue };
            let job = self.control.manager.application_master(known.app).job(known.app).ok().flatten();
            known.asking.record_answer(job.is_some());
            if let Some(job) = job {
                self.handle_am_report(number, &job);
            }
            self.ignore_if_silent(number);
        }
    }

    /// The applications whose AMs to poll now.
    fn due_ams(&mut self) -> Vec<u32> {
        let (mut due, mut silent) = (Vec::new(), Vec::new());
        for (&number, known) in self.apps.iter_mut().filter(|(_, known)| known.ended.is_none()) {
            let Some(watched) = self.control.snapshot().watched.get(&known.app) else { continue };
            if watched.app.am_container.is_some() && known.stage == Stage::Held {
                known.stage = Stage::Starting;
            }
            match watched.app.state {
                AppState::Running if known.is_due() => due.push(number),
                AppState::Running => silent.push(number),
                _ => {}
            }
        }
        for number in silent {
            self.ignore_if_silent(number);
        }
        due
    }

    fn handle_am_report(&mut self, number: u32, job: &MapReduceJob) {
        let Some(known) = self.apps.get_mut(&number) else { return };
        let known_counts = PhaseKind::ALL.map(|kind| {
            let phase = self.ledger.phase_of(number, kind);
            let of = |phase| KnownCounts { done: self.ledger.done(phase), live: self.ledger.live(phase) };
            // The driver has ended this phase, so no report may follow.
            phase.map_or(KnownCounts { done: u32::MAX, live: 0 }, of)
        });
        let inferred = known.update(job, known_counts);
        for (kind, Inference { done, failed, unseen }) in PhaseKind::ALL.into_iter().zip(inferred) {
            for container in done {
                known.add_duration(kind, container);
                self.ledger.remove_container(container.id, ContainerOutcome::Finished);
            }
            for container in failed {
                self.ledger.remove_container(container.id, ContainerOutcome::Failed);
            }
            if unseen > 0
                && let Some(phase) = self.ledger.phase_of(number, kind)
            {
                self.ledger.add_finished(phase, unseen);
            }
        }
        if known.name.is_none() && known.has_tasks() {
            let named = self.name_of(number);
            if let Some(known) = self.apps.get_mut(&number) {
                known.name = named;
            }
        }
    }

    /// The name of an application in the history. The properties of its job are read if its tags name no
    /// flow.
    fn name_of(&self, number: u32) -> Option<JobName> {
        let known = self.apps.get(&number)?;
        let watched = self.control.snapshot().watched.get(&known.app)?;
        let flow = known.tags.flow.as_deref();
        let read = || self.control.manager.application_master(known.app).properties(known.app, WORKFLOW).ok();
        let workflow = if flow.is_none() { read() } else { None };
        Some(job_name(&watched.app.name, flow, &workflow.unwrap_or_default()))
    }

    fn ignore_if_silent(&mut self, number: u32) {
        let Some(known) = self.apps.get_mut(&number).filter(|known| known.name.is_none()) else { return };
        known.silent += 1;
        if known.silent >= SILENT {
            self.ignore_app(number, "its ApplicationMaster has not reported its tasks for 30 s; its containers count as occupied slots");
        }
    }

    fn ignore_app(&mut self, number: u32, why: &str) {
        let Some(known) = self.apps.remove(&number) else { return };
        self.by_app.remove(&known.app);
        self.alone.insert(known.app);
        self.notify(&AttachEvent::LeftAlone(known.app, why.to_owned()));
    }

    /// Reports applications whose tasks are known as arrived.
    fn arrive(&mut self, reports: &mut Vec<Report>) {
        let is_new = |known: &DrivenApp| !known.has_arrived() && known.ended.is_none() && !known.is_gone;
        let new = self.apps.iter().filter(|(_, known)| is_new(known) && known.name.is_some());
        let new: Vec<u32> = new.map(|(&number, _)| number).collect();
        for number in new {
            let Some(known) = self.apps.get_mut(&number) else { continue };
            let Some(name) = known.name.clone() else { continue };
            match known.arrival(&name, &self.config.machines) {
                Err(invalid) => self.ignore_app(number, &invalid.to_string()),
                Ok((instance, arrival)) => {
                    let (_, flow, _) = self.next;
                    self.next.1 = FlowId(flow.0 + 1);
                    (known.in_driver, known.stage) = (DriverState::Active, Stage::Runs);
                    self.by_flow.insert(flow, number);
                    let tasks = [known.maps.scheduled(), known.reduces.scheduled()];
                    let (app, flow) = (known.app, flow_name(&name, known.app));
                    reports.push(Report::Arrived(Box::new(arrival)));
                    for phase in instance.flow(FlowId(0)).phases() {
                        let info = instance.phase(phase);
                        let count = info.tasks().map_or(0, Tasks::count);
                        let id = self.next.2;
                        self.next.2 = PhaseId(id.0 + 1);
                        self.ledger.add_phase(id, number, info.kind, count);
                    }
                    self.notify(&AttachEvent::Arrived { app, flow, job: name.job, tasks });
                }
            }
        }
    }
}
