//! Forecasts of running submissions: when one is made, what is reported of it, and which submissions it
//! rejects.

use std::collections::{BTreeMap, VecDeque};

use slackline::report::number::duration;
use slackline_model::WallTime;
use slackline_task::base::clock::Elapsed;

use crate::api::{self, AlertKind, FlowStatus, Prediction};
use crate::state::progress::{FlowEstimate, FlowProgress};
use crate::state::record::{CancelReason, Record, Scores};
use crate::state::submissions::Entry;
use crate::state::{Effect, ServiceState};
use crate::{SECOND, timestamp};

/// The least time between two periodic forecasts.
const OUTLOOK_EVERY: u64 = 10 * SECOND;

/// The longest wait for submissions that are being opened, before the first of them is predicted.
const OPENING_MOST: u64 = SECOND / 4;

/// The longest wait for them between two forecasts while more than `ONE_BY_ONE` submissions wait, as a multiple of
/// the time that a forecast takes. More forecasts would take the processors from the openings.
const OPENING_SHARE: u64 = 4;

/// The most submissions that are predicted one by one. If more wait, one forecast predicts all of them,
/// without their impact on others.
const ONE_BY_ONE: usize = 20;

/// The least time between two periodic forecasts, as a multiple of the time that a forecast takes.
const SHARE: u64 = 20;

/// The forecast of all running flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastResult {
    /// The time that the forecast took, microseconds.
    pub took: u64,
    /// The flows, by submission and name.
    pub flows: BTreeMap<(u64, String), FlowEstimate>,
    /// The impact of one submission on the others, if requested.
    pub of: Option<Impact>,
    /// The reason why a part of the forecast is missing.
    pub problem: Option<String>,
}

/// When forecasts are made, and how good they were.
#[derive(Debug)]
pub(super) struct Forecasts {
    pub(super) scores: Scores,
    /// The error of the last forecast.
    error: Option<ForecastError>,
    /// Whether a forecast is being made.
    is_running: bool,
    /// Submissions that wait for a forecast of their own.
    pub(super) waiting: VecDeque<u64>,
    /// Until this time, new submissions are not predicted while others are being opened.
    opening_until: Option<Elapsed>,
    /// The time of the next periodic forecast.
    pub(super) next: Elapsed,
}

impl Forecasts {
    pub(super) fn new(now: Elapsed) -> Self {
        Self {
            scores: Scores::default(),
            error: None,
            is_running: false,
            waiting: VecDeque::new(),
            opening_until: None,
            next: now,
        }
    }

    /// A submission is being opened.
    pub(super) fn wait_for_opening(&mut self, now: Elapsed) {
        self.opening_until.get_or_insert(now + OPENING_MOST);
    }
}

/// A forecast that failed: completely, or only its intervals, impact or chances.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ForecastError {
    problem: String,
    is_all: bool,
}

/// The effect of a submission on the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Impact {
    pub number: u64,
    /// Flows that are late because of it.
    pub makes_late: Vec<api::DelayedFlow>,
    /// Changes with which its deadlines can be met.
    pub remedies: Vec<api::Remedy>,
}

impl Impact {
    /// Whether the submission makes this flow late.
    fn is_why_late(&self, number: u64, flow: &str) -> bool {
        has(&self.makes_late, number, flow)
    }

    /// Moves proposed deadlines to the end of the 80 % interval and rounds them up to whole seconds. The
    /// estimated completion itself is missed about half of the time.
    pub(crate) fn with_room(mut self, flows: &BTreeMap<(u64, String), FlowEstimate>) -> Self {
        for remedy in &mut self.remedies {
            if let api::Remedy::Deadline { flow, deadline } = remedy {
                let between = flows.get(&(self.number, flow.clone())).and_then(|expected| expected.between);
                let at =
                    crate::wall_time(*deadline).max(between.map_or_else(WallTime::default, |[_, most]| most));
                *deadline = timestamp(WallTime(at.0.div_ceil(SECOND) * SECOND));
            }
        }
        self
    }
}

fn has(late: &[api::DelayedFlow], number: u64, flow: &str) -> bool {
    late.iter().any(|late| late.number == number && late.flow == flow)
}

impl ServiceState {
    /// The time of the next periodic forecast. Forecasts wait for submissions that are being opened.
    pub(super) fn next_forecast(&self) -> Option<Elapsed> {
        let Forecasts { is_running, opening_until, next, .. } = self.forecasts;
        (!is_running && self.submissions.queue.begun.total > 0).then(|| opening_until.unwrap_or(next))
    }

    /// Whether forecasts wait for submissions that are being opened.
    fn waits_for_opening(&self) -> bool {
        let now = self.clock.elapsed();
        let is_opening = !self.submissions.queue.opening.is_empty();
        is_opening && self.forecasts.opening_until.is_some_and(|until| now < until)
    }

    pub(super) fn predict(&mut self, number: Option<u64>) {
        self.forecasts.is_running = true;
        self.out.effects.push(Effect::Predict { number });
    }

    /// Requests a prediction of a submission.
    pub(super) fn want_prediction(&mut self, number: u64) {
        if self.forecasts.is_running {
            self.forecasts.waiting.push_back(number);
        } else {
            self.predict(Some(number));
        }
    }

    pub(super) fn predicted(&mut self, forecast: ForecastResult) {
        let ForecastResult { took, flows, of, problem } = forecast;
        let error = problem.map(|problem| ForecastError { problem, is_all: flows.is_empty() });
        self.report_forecast_errors(error);
        self.forecasts.is_running = false;
        if self.forecasts.waiting.len() > ONE_BY_ONE {
            let most = took.saturating_mul(OPENING_SHARE).clamp(OPENING_MOST, OUTLOOK_EVERY);
            self.forecasts.opening_until = Some(self.clock.elapsed() + most);
        }
        self.forecasts.next = self.clock.elapsed() + OUTLOOK_EVERY.max(took.saturating_mul(SHARE));
        let about = of.as_ref().map(|of| of.number);
        let on_trial =
            about.filter(|number| self.submissions.open.get(number).is_some_and(Entry::is_on_trial));
        if on_trial.is_some() {
            // The decision comes now. Only then is the impact on the others certain.
            self.forecasts.next = self.clock.elapsed() + SECOND;
        }
        let is_meant = |number: u64| on_trial.is_none_or(|on_trial| on_trial == number);
        for ((number, flow), expected) in flows {
            if is_meant(number) {
                let cause = of.as_ref().filter(|of| of.is_why_late(number, &flow)).map(|of| of.number);
                self.expect(number, &flow, expected, cause);
            }
        }
        let live: Vec<u64> = self.live_numbers().filter(|&number| is_meant(number)).collect();
        if let Some(problem) = self.forecast_error() {
            let why = format!("the forecast failed, so its deadlines cannot be checked: {problem}");
            for number in live {
                self.decide_unforeseen(number, &why);
            }
            return;
        }
        for number in live {
            let impact = of.clone().filter(|of| of.number == number);
            let Some(entry) = self.submissions.open.get(&number) else { continue };
            // A submission that waits for its own forecast is reported with its impact on the others. It may
            // have started during the forecast.
            let is_foreseen = entry.flows().iter().any(|flow| flow.expected.is_some());
            let is_new = entry.prediction.is_none() && !self.forecasts.waiting.contains(&number);
            if about == Some(number) || is_new && is_foreseen {
                self.say(number, impact);
            } else {
                self.say_again(number);
            }
        }
    }

    /// The latest accepted submission that makes a flow late according to its last prediction.
    fn blamed(&self, number: u64, flow: &str) -> Option<u64> {
        // A rejected submission stays running until the engine has stopped it.
        let blames = |entry: &Entry| {
            let prediction = entry.prediction.as_ref().filter(|_| !entry.is_on_trial());
            prediction.is_some_and(|prediction| has(&prediction.makes_late, number, flow))
        };
        self.submissions.running().rev().find(|(_, entry, _)| blames(entry)).map(|(number, ..)| number)
    }

    /// Reports the error of the last forecast, once.
    fn report_forecast_errors(&mut self, error: Option<ForecastError>) {
        let is_news = self.forecasts.error != error;
        if let Some(ForecastError { problem, .. }) = error.as_ref().filter(|_| is_news) {
            let message = format!("the forecast failed: {problem}");
            self.event("unpredicted", None, None, message);
        }
        self.forecasts.error = error;
    }

    /// The error of the last forecast, if the whole forecast failed.
    pub(super) fn forecast_error(&self) -> Option<&str> {
        self.forecasts.error.as_ref().filter(|it| it.is_all).map(|it| it.problem.as_str())
    }

    pub(super) fn live_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.submissions.running().map(|(number, ..)| number)
    }

    /// Starts the next requested forecast when no submission is being opened, or after `OPENING_MOST`.
    /// Otherwise the first of several submissions that start together would be promised the slots of the
    /// others.
    pub(super) fn next_prediction(&mut self) {
        if self.forecasts.is_running || self.waits_for_opening() {
            return;
        }
        self.forecasts.opening_until = None;
        let (waiting, open) = (&mut self.forecasts.waiting, &self.submissions.open);
        waiting.retain(|number| open.get(number).is_some_and(|entry| entry.running().is_some()));
        if waiting.len() > ONE_BY_ONE {
            waiting.clear();
            return self.predict(None);
        }
        if let Some(number) = waiting.pop_front() {
            self.predict(Some(number));
        }
    }

    /// Stores the estimate of a flow, and sends an alert if the flow is likely late. `cause` is the
    /// submission that makes it late.
    fn expect(&mut self, number: u64, flow: &str, expected: FlowEstimate, cause: Option<u64>) {
        let now = self.now();
        // A submission that would be late is rejected, which is reported separately.
        let is_on_trial = self.submissions.open.get(&number).is_some_and(Entry::is_on_trial);
        let Some(progress) = self.flow(number, flow).filter(|progress| !progress.state.is_over()) else {
            return;
        };
        progress.expected = Some(expected);
        let Some(deadline) = progress.deadline.filter(|&deadline| now <= deadline) else { return };
        let Some(completion) = expected.completion else { return };
        let is_late = completion > deadline && !is_on_trial;
        let was_late = std::mem::replace(&mut progress.is_likely_late, is_late);
        if is_late && !was_late {
            let by = duration(completion.seconds_since(deadline));
            let mut message =
                format!("{flow} is predicted to miss its deadline {} by {by}", timestamp(deadline));
            let cause = cause.or_else(|| self.blamed(number, flow));
            if let Some((cause, wanted)) = cause.and_then(|cause| Some((cause, self.wanted(cause)?))) {
                message.extend(["; without ", &cause.to_string(), " ", &wanted.name, " it would meet it"]);
            }
            self.alert(number, flow, AlertKind::LikelyLate, message);
        } else if was_late && !is_late {
            let message = format!("{flow} is predicted to meet its deadline again");
            self.event("likely_in_time", Some(number), Some(flow), message);
        }
    }

    /// Reports the first prediction of a submission, or its prediction with its impact on the others.
    fn say(&mut self, number: u64, impact: Option<Impact>) {
        let made = self.now();
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        let Some(mut prediction) = entry.running().map(|run| run.prediction(made)) else { return };
        if let Some(Impact { makes_late, remedies, .. }) = impact {
            (prediction.makes_late, prediction.remedies) = (makes_late, remedies);
        }
        for flow in &prediction.flows {
            if !entry.first.contains_key(&flow.flow) {
                entry.first.insert(flow.flow.clone(), (made, flow.clone()));
                self.out.records.push(Record::Predicted { number, made, first: flow.clone() });
            }
        }
        let (is_late, message) = (prediction.is_late(), words(&prediction));
        entry.prediction = Some(prediction);
        self.event("predicted", Some(number), None, message);
        self.decide(number, is_late.then(|| "it is predicted to miss a deadline".to_owned()));
    }

    /// Updates the prediction of a submission. The impact on the others stays as it was reported.
    fn say_again(&mut self, number: u64) {
        let now = self.now();
        let Some(entry) = self.submissions.open.get_mut(&number) else { return };
        let Some(mut prediction) = entry.running().map(|run| run.prediction(now)) else { return };
        // Forecasts do not include held flows.
        let is_idle = |flow: &FlowProgress| flow.state.is_over() || flow.state == FlowStatus::Held;
        if !entry.flows().iter().all(is_idle)
            && let Some(before) = entry.prediction.take()
        {
            (prediction.makes_late, prediction.remedies) = (before.makes_late, before.remedies);
            entry.prediction = Some(prediction);
        }
    }

    /// Decides a submission with `IfLate::Reject` when the forecast failed. Without deadlines it is accepted.
    fn decide_unforeseen(&mut self, number: u64, why: &str) {
        let flows = self.submissions.open.get(&number).map_or(&[][..], Entry::flows);
        let has_deadlines = flows.iter().any(|flow| flow.deadline.is_some());
        self.decide(number, has_deadlines.then(|| why.to_owned()));
    }

    /// Accepts a submission with `IfLate::Reject`, or rejects it for the reason `why`.
    fn decide(&mut self, number: u64, why: Option<String>) {
        let now = self.now();
        let entry = self.submissions.open.get_mut(&number).filter(|entry| entry.is_on_trial());
        let Some(entry) = entry else { return };
        if let Some(why) = why {
            return self.cancel_all(number, CancelReason::WouldBeLate(why));
        }
        entry.is_let_in = true;
        entry.running_mut().into_iter().for_each(|run| run.end_hold(now));
        self.out.records.push(Record::LetIn(number));
        self.stand_all(number);
    }
}

/// The text of a prediction.
fn words(prediction: &Prediction) -> String {
    let flow = |flow: &api::FlowPrediction| {
        let holds = match flow.holds {
            Some(true) => ", before its deadline",
            Some(false) => ", after its deadline",
            None => "",
        };
        match flow.completion {
            Some(completion) => format!("{} is predicted to finish at {completion}{holds}", flow.flow),
            None => format!("it is unknown when {} finishes, because a job never ran", flow.flow),
        }
    };
    let mut words: Vec<String> = prediction.flows.iter().map(flow).collect();
    words.extend(prediction.makes_late.iter().map(|late| {
        format!("{} of {} then misses its deadline by {:.0} s", late.flow, late.number, late.late_by)
    }));
    if words.is_empty() { "its completion cannot be predicted".to_owned() } else { words.join("; ") }
}
