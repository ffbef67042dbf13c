//! Drives one run on an engine for it alone, by the loop that also drives the runs of a service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use slackline_executor::engine::backend::RunConfig;
use slackline_executor::engine::event::RunEvent;
use slackline_executor::run::RunEnd;
use slackline_executor::run::error::EngineError;
use slackline_executor::spec::remaining::remaining;
use slackline_model::{Instance, Span, Time};

use super::run_model::RunModel;
use super::sink::Sink;
use super::{Forecast, Note, Overview, Run, RunError, learning, recalled};
use crate::resident::{Admission, Drove, Host, Order, Returned, Rules, drive};

impl Run {
    /// Runs the remaining jobs. Returns the run, and how it ended.
    pub(super) fn drive(self, sink: &mut dyn Sink) -> Result<(Self, Result<RunEnd, RunError>), RunError> {
        let unrunnable = self.record().unrunnable();
        let mut left = remaining(self.record().workload.clone(), &self.record().done());
        left.flows.retain(|flow| !unrunnable.contains(&flow.id));
        if left.flows.is_empty() {
            sink.note(&Note::NothingLeft);
            let end = if unrunnable.is_empty() { RunEnd::Done } else { RunEnd::Failed };
            return Ok((self, Ok(end)));
        }
        let past = recalled(&self.request, self.store.as_ref(), self.record().workload)?;
        let known = learning::known(&self.record(), &Instance::new(&left)?, &past);
        let model = RunModel::of_record(self.setting.clone(), &self.record());
        let forecast = Forecast::new(self.request.policy.clone(), model);
        let overview = Overview::of(&self.record(), self.request.attempts_max);
        let rules = Rules {
            policy: self.request.policy.clone(),
            objective: left.objective,
            slowstart: self.request.slowstart,
        };
        let config = RunConfig {
            attempts_max: self.request.attempts_max,
            slowstart: self.request.slowstart,
            overrides: BTreeMap::new(),
            quota: None,
        };
        let (mut session, mut detached) = self.lend();
        let mut engine = session.engine()?;
        let (asked, waker) = (Arc::new(AtomicBool::new(false)), engine.waker());
        let stop = asked.clone();
        sink.begin(
            &overview,
            Box::new(move || {
                stop.store(true, Ordering::SeqCst);
                waker();
            }),
        );
        let (sender, events) = channel();
        let on_event = Box::new(move |now: Time, event: &RunEvent| {
            // A loop that is gone needs nothing.
            let _ = sender.send((now, event.clone()));
        });
        let admission = Admission { number: 0, session, config, known, on_event };
        let watch = Watch { forecast, sink, jumped: 0 };
        let mut host =
            SingleRun { admission: Some(admission), events, watch, asked, now: Time::ZERO, returned: None };
        let Drove { failure, unfinished, gave_up, choices } = drive(engine.as_mut(), &rules, &mut host);
        drop(engine);
        host.take_events();
        detached.choices.extend(choices);
        let lost = || EngineError::Stopped("the files of the run are not accessible".to_owned());
        let Returned { end, session, .. } = host.returned.take().ok_or_else(lost)?;
        let Some(session) = session else { return Err(end.err().unwrap_or_else(lost).into()) };
        let is_failed = matches!(end, Ok(RunEnd::Failed));
        // Flows that can never finish, unless the run has failed flows alone.
        let warnings = gave_up.into_iter().chain(unfinished.into_iter().filter(|_| is_failed));
        warnings.for_each(|warning| host.warn(warning));
        let run = detached.back(session);
        let end = match failure {
            Some(failure) => Err(RunError::Policy { policy: run.request.policy.spec().to_owned(), failure }),
            None => end.map_err(RunError::from),
        };
        Ok((run, end))
    }
}

/// The run, and who watches it.
struct SingleRun<'a> {
    /// The run before it is admitted.
    admission: Option<Admission>,
    events: Receiver<(Time, RunEvent)>,
    watch: Watch<'a>,
    /// Whether the user has asked to stop.
    asked: Arc<AtomicBool>,
    /// The time of the last event.
    now: Time,
    returned: Option<Returned>,
}

impl SingleRun<'_> {
    fn take_events(&mut self) {
        while let Ok((now, event)) = self.events.try_recv() {
            self.now = now;
            self.watch.happened(now, &event);
        }
    }

    fn warn(&mut self, warning: String) {
        self.watch.happened(self.now, &RunEvent::Warning(warning));
    }
}

impl Host for SingleRun<'_> {
    fn orders(&mut self, _: Time) -> Vec<Order> {
        self.take_events();
        self.admission.take().map(|admission| Order::Admit(Box::new(admission))).into_iter().collect()
    }

    fn wakes_at(&self) -> Option<Time> {
        None
    }

    fn returned(&mut self, _: Time, returned: Returned) {
        self.returned = Some(returned);
    }

    fn is_over(&self) -> bool {
        self.returned.is_some() || self.asked.load(Ordering::SeqCst)
    }
}

/// Updates the forecast and forwards events to the sink.
struct Watch<'a> {
    forecast: Forecast,
    sink: &'a mut dyn Sink,
    /// The sum of all jumps of the wall clock, microseconds.
    jumped: i64,
}

impl Watch<'_> {
    fn happened(&mut self, now: Time, event: &RunEvent) {
        // Deadlines are dates: while a run is suspended, they come closer.
        let ahead = |jumped: i64| u64::try_from(jumped).unwrap_or(0);
        if let RunEvent::ClockJumped(by) = event {
            let before = ahead(self.jumped);
            self.jumped += by;
            self.forecast.clock_jumped(ahead(self.jumped).cast_signed() - before.cast_signed());
        }
        let now = now + Span(ahead(self.jumped));
        self.forecast.note(now, event);
        self.sink.happened(now, event, &self.forecast);
    }
}
