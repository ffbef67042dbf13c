//! The engine of `attach`: the applications of the chosen queues, each a flow of one job.
//!
//! The engine holds an application until its AM may start. The application arrives at the policy when the AM
//! reports the number of its tasks. From then on the engine drives it like a job of `flows`: by caps in the
//! table and by priorities. The outcome of its tasks is inferred from the counts of the AM, and known for all
//! of them when the application ends.

mod observe;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slackline_executor::spec::job_cost::JobHistory;
use slackline_model::draft::MachineDraft;
use slackline_model::{FlowId, Instance, PhaseId, PhaseKind, Span, Time};
use slackline_policy::engine::{Capabilities, Order, Report, Start, Wakes};
use slackline_policy::plans::Plans;
use slackline_policy::{Driver, Engine};

use crate::attach::application::{Applications, DrivenApp, flow_name};
use crate::attach::watcher::{Application, AttachEvent, Phase, Stage, Status, Watcher};
use crate::clock::{Stopwatch, pause, unix_millis};
use crate::cluster::capacity::{Rules, am_limit};
use crate::cluster::container_ledger::ContainerLedger;
use crate::cluster::control::{Control, poll_delay};
use crate::cluster::desired_state::{DesiredState, priority_changes};
use crate::cluster::fair_polling::RoundRobin;
use crate::cluster::table::{Row, Rows};
use crate::rest::http::HttpError;
use crate::rest::id::AppId;
use crate::rest::resource_manager::Container;

/// Time limit for restoring priorities at the end; each takes about 40 ms.
const CLOSING: Duration = Duration::from_secs(30);

/// The longest age of an application at the start, seconds: ten years.
const OFFSET_MAX: f64 = 3.2e8;

/// The result of `attach`.
#[derive(Clone, Debug, Default)]
pub struct AttachSummary {
    /// Durations of the jobs that succeeded.
    pub learned: JobHistory,
    /// Applications whose priority could not be restored, with the priority they had. A warning gave the
    /// reason.
    pub raised: BTreeMap<AppId, u64>,
}

/// The configuration of the engine.
#[derive(Clone, Debug)]
pub(super) struct AttachConfig {
    /// By full path.
    pub(super) queues: Vec<String>,
    pub(super) rules: Rules,
    pub(super) machines: Vec<MachineDraft>,
    /// Never write to the cluster.
    pub(super) dry_run: bool,
    /// Time between two polls.
    pub(super) cycle: Duration,
    /// Time between two status reports.
    pub(super) every: Duration,
    /// Time after which to end; `None`: run until stopped.
    pub(super) lasts: Option<Duration>,
}

/// The driver's time, which begins at the earliest submission, so that deadlines in the past keep their order.
struct AttachClock {
    began: Stopwatch,
    began_ms: u64,
    /// The time between the earliest submission and the start of the engine.
    offset: Span,
    now: Time,
}

impl AttachClock {
    fn start() -> Self {
        Self { began: Stopwatch::start(), began_ms: unix_millis(), offset: Span(0), now: Time::ZERO }
    }

    /// Sets the zero of the driver's time, in milliseconds since 1970.
    fn set_offset(&mut self, zero: u64) {
        let seconds = (self.began_ms.saturating_sub(zero) as f64 / 1e3).min(OFFSET_MAX);
        self.offset = Span::from_seconds_nearest(seconds);
        self.now += self.offset;
    }

    fn advance(&mut self) {
        let elapsed = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.now = Time(elapsed.saturating_add(self.offset.0));
    }

    /// Converts milliseconds since 1970 to seconds of the driver.
    fn since_start(&self, millis: u64) -> f64 {
        (millis as f64 - self.began_ms as f64) / 1e3 + self.offset.seconds()
    }

    fn container_start(&self, container: &Container) -> Time {
        let since = container.started_ms.map(|ms| Time::from_seconds_nearest(self.since_start(ms).max(0.0)));
        since.unwrap_or(self.now).min(self.now)
    }

    /// The time since the start of the engine, for the watcher.
    fn elapsed(&self) -> Time {
        Time(self.now.0.saturating_sub(self.offset.0))
    }
}

pub(super) struct AttachEngine<'w> {
    control: Control,
    config: AttachConfig,
    ledger: ContainerLedger,
    apps: Applications,
    by_app: BTreeMap<AppId, u32>,
    /// Applications of these queues that the engine ignores.
    alone: BTreeSet<AppId>,
    /// The number of the next application, and the ids that the driver assigns next.
    next: (u32, FlowId, PhaseId),
    by_flow: BTreeMap<FlowId, u32>,
    rows: Rows,
    wakes: Wakes,
    /// The AM to poll first.
    turn: RoundRobin<u32>,
    clock: AttachClock,
    is_first: bool,
    trouble: Option<String>,
    status_at: Time,
    asked_to_stop: Arc<AtomicBool>,
    learned: JobHistory,
    watcher: &'w mut dyn Watcher,
}

impl<'w> AttachEngine<'w> {
    pub(super) fn new(
        control: Control,
        config: AttachConfig,
        asked_to_stop: Arc<AtomicBool>,
        watcher: &'w mut dyn Watcher,
    ) -> Self {
        let ledger =
            ContainerLedger::new(config.machines.iter().map(|machine| (machine.name.clone(), machine.count)));
        Self {
            control,
            config,
            ledger,
            apps: Applications::new(),
            by_app: BTreeMap::new(),
            alone: BTreeSet::new(),
            next: (0, FlowId(0), PhaseId(0)),
            by_flow: BTreeMap::new(),
            rows: Rows::new(),
            wakes: Wakes::default(),
            turn: RoundRobin::default(),
            clock: AttachClock::start(),
            is_first: true,
            trouble: None,
            status_at: Time::ZERO,
            asked_to_stop,
            learned: JobHistory::new(),
            watcher,
        }
    }

    fn notify(&mut self, what: &AttachEvent) {
        let now = self.clock.elapsed();
        self.watcher.happened(now, what);
    }

    /// After the first poll: makes the earliest submission the zero of the driver's time.
    fn set_offset(&mut self) {
        let watched = self.control.snapshot().watched.values();
        let Some(earliest) = watched.filter_map(|watched| watched.app.started_ms).min() else { return };
        self.clock.set_offset(earliest);
        self.ledger.advance(self.clock.now);
    }

    fn trouble(&mut self, message: Option<String>) {
        if self.trouble.is_some() != message.is_some() {
            self.notify(&AttachEvent::Troubled(message.clone()));
        }
        self.trouble = message;
    }

    /// Writes the driver's decisions to the cluster: rows of the table, and priorities.
    pub(super) fn apply_plans(&mut self, plans: &Plans) {
        self.start_ams();
        let snapshot = self.control.snapshot();
        let open = self.apps.iter().filter(|(_, known)| known.ended.is_none());
        let arrived = open.clone().filter(|(_, known)| known.has_arrived());
        let arrived = arrived.map(|(&number, known)| (number, Some(known.app))).collect();
        let DesiredState { mut rows, order } =
            DesiredState::of(&self.ledger, plans, &arrived, |app| snapshot.pending(app));
        for known in open.map(|(_, known)| known).filter(|known| !known.has_arrived()) {
            let hold = known.stage == Stage::Held;
            let row = Row { hold, maps: Some(0), reduces: Some(0), ..Row::default() };
            rows.insert(Some(known.app), row);
        }
        if !self.config.dry_run
            && let Some(warning) = self.control.publish(&rows)
        {
            self.notify(&AttachEvent::Warned(warning));
        }
        self.rows = rows;
        self.set_order(order);
    }

    /// Sets priorities in this order, below applications that wait for their AMs.
    fn set_order(&mut self, order: Vec<AppId>) {
        let mut first: Vec<&DrivenApp> =
            self.apps.values().filter(|known| self.waits_for_am(known)).collect();
        first.sort_by_key(|known| known.urgency());
        let all = first.iter().map(|known| known.app).chain(order);
        let now = |app: AppId| Some((app, self.apps.get(self.by_app.get(&app)?)?.priority));
        let order: Vec<(AppId, u64)> = all.filter_map(now).collect();
        let (changed, warning) = if self.config.dry_run {
            (priority_changes(&order, usize::MAX), None)
        } else {
            self.control.set_order(&order)
        };
        for (app, priority) in changed {
            if let Some(known) = self.app_mut(app) {
                known.priority = priority;
            }
        }
        if let Some(warning) = warning {
            self.notify(&AttachEvent::Warned(warning));
        }
    }

    /// Whether the AM of an application may start and has not.
    fn waits_for_am(&self, known: &DrivenApp) -> bool {
        let has_am = || {
            let watched = self.control.snapshot().watched.get(&known.app);
            watched.is_some_and(|watched| watched.app.am_container.is_some())
        };
        known.ended.is_none() && known.stage == Stage::Starting && !has_am()
    }

    /// Lets the AMs of the most urgent applications start, up to the AM limit.
    fn start_ams(&mut self) {
        let most = am_limit(self.ledger.slots(), self.config.rules.am_share);
        let open = || self.apps.iter().filter(|(_, known)| known.ended.is_none());
        let ams = open().filter(|(_, known)| known.stage != Stage::Held).count();
        let mut held: Vec<(u32, &DrivenApp)> = open()
            .filter(|(_, known)| known.stage == Stage::Held)
            .map(|(&number, known)| (number, known))
            .collect();
        held.sort_by_key(|(_, known)| known.urgency());
        let released = held.into_iter().take(most.saturating_sub(ams)).map(|(number, _)| number);
        for number in released.collect::<Vec<_>>() {
            let Some(known) = self.apps.get_mut(&number) else { continue };
            known.stage = Stage::Starting;
            let app = known.app;
            self.notify(&AttachEvent::Released(app));
        }
    }

    pub(super) fn is_status_due(&self) -> bool {
        self.clock.now >= self.status_at
    }

    /// The phases of applications that have arrived.
    pub(super) fn phases(&self) -> Vec<PhaseId> {
        let of = |&number: &u32| {
            PhaseKind::ALL.into_iter().filter_map(move |kind| self.ledger.phase_of(number, kind))
        };
        self.apps.keys().flat_map(of).collect()
    }

    /// Reports the status, with the estimated seconds of a task of each phase.
    pub(super) fn report_status(&mut self, lengths: &BTreeMap<PhaseId, f64>) {
        self.status_at = self.clock.now + Span::from_seconds_nearest(self.config.every.as_secs_f64());
        let status = Status {
            now: self.clock.elapsed(),
            slots: self.ledger.slots(),
            taken: self.ledger.taken(),
            applications: self
                .apps
                .iter()
                .filter(|(_, known)| known.ended.is_none())
                .map(|(&number, known)| self.application(number, known, lengths))
                .collect(),
        };
        self.watcher.status(&status);
    }

    fn application(&self, number: u32, known: &DrivenApp, lengths: &BTreeMap<PhaseId, f64>) -> Application {
        let row = self.rows.get(&Some(known.app));
        let phase = |kind: PhaseKind| {
            let (own, cap) = match kind {
                PhaseKind::Map => (&known.maps, row.map(|row| row.maps)),
                PhaseKind::Reduce => (&known.reduces, row.map(|row| row.reduces)),
            };
            let id = self.ledger.phase_of(number, kind);
            (own.total > 0).then(|| Phase {
                total: own.total,
                done: own.done,
                running: id.map_or(0, |id| self.ledger.live(id)),
                cap: cap.flatten(),
                seconds: id.and_then(|id| lengths.get(&id)).copied().unwrap_or(0.0),
            })
        };
        let (flow, job) = known
            .name
            .as_ref()
            .map_or_else(Default::default, |name| (flow_name(name, known.app), name.job.clone()));
        Application {
            id: known.app,
            flow,
            job,
            stage: known.stage,
            phases: PhaseKind::ALL.map(phase),
            priority: known.priority,
            deadline: known.deadline.map(|deadline| deadline - self.clock.offset.seconds()),
            weight: known.tags.weight,
        }
    }

    /// Removes the table and restores priorities. A warning names those it could not restore.
    pub(super) fn close(mut self) -> AttachSummary {
        self.control.remove_table();
        let apps: Vec<DrivenApp> = std::mem::take(&mut self.apps).into_values().collect();
        apps.iter().filter(|known| !known.is_gone).for_each(|known| self.learn(known));
        let is_raised = |known: &&DrivenApp| known.ended.is_none() && known.priority != known.first_priority;
        let has_changed_priorities = |_: &&DrivenApp| !self.config.dry_run;
        let raised: BTreeMap<AppId, u64> = apps
            .iter()
            .filter(has_changed_priorities)
            .filter(is_raised)
            .map(|known| (known.app, known.first_priority))
            .collect();
        let (raised, why) = self.restore_priorities(raised);
        if !raised.is_empty() {
            let apps: Vec<String> =
                raised.iter().map(|(app, first)| format!("{app} (it had {first})")).collect();
            self.notify(&AttachEvent::Warned(format!(
                "{why}; these applications keep a changed priority: {}; to restore one: yarn application -appId APPLICATION -updatePriority PRIORITY",
                apps.join(", ")
            )));
        }
        AttachSummary { learned: self.learned, raised }
    }

    /// Restores these priorities within the time limit. Gives those that it could not restore, and a reason.
    fn restore_priorities(&self, mut raised: BTreeMap<AppId, u64>) -> (BTreeMap<AppId, u64>, String) {
        let (mut turn, mut why) = (RoundRobin::default(), "stopping took too long".to_owned());
        let mut round = turn.round(raised.keys().copied().collect::<Vec<_>>(), CLOSING);
        while let Some(app) = round.next(&mut turn) {
            let given = raised.get(&app).map(|&first| self.control.set_priority(app, first));
            match given {
                Some(Err(error)) if !error.is_missing() => {
                    why = error.to_string();
                    // A cluster that does not answer is not asked for each application.
                    if matches!(error, HttpError::Unreachable { .. }) {
                        break;
                    }
                }
                _ => drop(raised.remove(&app)),
            }
        }
        (raised, why)
    }

    fn time_to_next_poll(&self) -> Duration {
        poll_delay(self.clock.now, self.wakes.first(), self.config.cycle)
    }

    fn is_stopped(&self) -> bool {
        let lasts = self.config.lasts.is_some_and(|lasts| self.clock.began.elapsed() >= lasts);
        lasts || self.asked_to_stop.load(Ordering::SeqCst)
    }
}

/// Estimated seconds of a task of each phase.
pub(super) fn task_seconds(
    driver: &Driver<'_, '_, AttachEngine<'_>>,
    phases: &[PhaseId],
) -> BTreeMap<PhaseId, f64> {
    let view = driver.view();
    let is_live = |phase: &&PhaseId| view.instance.phases().get(**phase).is_some();
    let known = phases.iter().filter(is_live);
    known.map(|&phase| (phase, view.estimates.task[phase].seconds())).collect()
}

impl Engine for AttachEngine<'_> {
    fn capabilities(&self) -> Capabilities {
        ContainerLedger::CAPABILITIES
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        if self.clock.now > Time::ZERO {
            pause(self.time_to_next_poll());
        }
        if self.is_stopped() {
            return None;
        }
        self.clock.advance();
        self.poll_cluster(reports);
        self.wakes.report(self.clock.now, reports);
        Some(self.clock.now)
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        self.ledger.start(start);
    }

    fn order(&mut self, order: Order) {
        self.ledger.order(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.add(at, self.clock.now);
    }

    fn may_bring_flows(&mut self) -> bool {
        !self.is_stopped()
    }
}
