//! Forecasts of running submissions: when one is made, what is reported of it, and which submissions it
//! rejects.

use std::collections::{BTreeMap, VecDeque};

use slackline::report::number::duration;

use crate::api::{self, AlertKind, FlowStatus, Prediction};
use crate::state::record::{CancelReason, Record, StoredPrediction};
use crate::state::{Entry, OUTLOOK_EVERY, ServiceEvent, ServiceState, Transition};
use crate::{Moment, SECOND, timestamp};

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

/// A forecast that failed: completely, or only its intervals, impact or chances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForecastError {
    problem: String,
    is_all: bool,
}

/// The estimate of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowEstimate {
    /// The estimated completion.
    pub completion: Moment,
    /// The 80 % prediction interval of the completion. `None` for a guess.
    pub between: Option<[Moment; 2]>,
    /// Whether the estimate is a guess, because the durations of its tasks are unknown.
    pub is_guess: bool,
    /// The chance of meeting the deadline, percent. `None` without a deadline, or for a guess.
    pub chance: Option<f64>,
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
                let at = crate::moment(*deadline).max(between.map_or(0, |[_, most]| most));
                *deadline = timestamp(at.div_ceil(SECOND) * SECOND);
            }
        }
        self
    }
}

fn has(late: &[api::DelayedFlow], number: u64, flow: &str) -> bool {
    late.iter().any(|late| late.number == number && late.flow == flow)
}

impl ServiceState {
    /// Requests a prediction of a submission.
    pub(super) fn want_prediction(&mut self, number: u64, out: &mut Transition) {
        if self.is_predicting {
            self.wanting.push_back(number);
        } else {
            self.predict(Some(number), out);
        }
    }

    pub(super) fn predicted(&mut self, now: Moment, outlook: ForecastResult, out: &mut Transition) {
        let ForecastResult { took, flows, of, problem } = outlook;
        let forecast_error = problem.map(|problem| ForecastError { problem, is_all: flows.is_empty() });
        self.report_forecast_errors(now, forecast_error, out);
        self.is_predicting = false;
        self.next_outlook = self.clock.elapsed() + OUTLOOK_EVERY.max(took.saturating_mul(SHARE));
        let about = of.as_ref().map(|of| of.number);
        let on_trial = about.filter(|number| self.entries.get(number).is_some_and(Entry::is_on_trial));
        if on_trial.is_some() {
            // The decision comes now. Only then is the impact on the others certain.
            self.next_outlook = self.clock.elapsed() + SECOND;
        }
        let is_meant = |number: u64| on_trial.is_none_or(|on_trial| on_trial == number);
        for ((number, flow), expected) in flows {
            if is_meant(number) {
                let cause = of.as_ref().filter(|of| of.is_why_late(number, &flow)).map(|of| of.number);
                self.expect(now, number, &flow, expected, cause, out);
            }
        }
        let live: Vec<u64> = self.live_numbers().filter(|&number| is_meant(number)).collect();
        if let Some(problem) = self.forecast_error() {
            let why = format!("whether its deadlines hold cannot be simulated: {problem}");
            for number in live {
                self.decide_unforeseen(now, number, &why, out);
            }
            return;
        }
        for number in live {
            let meaning = of.clone().filter(|of| of.number == number);
            // A submission that waits for its own forecast is reported with its impact on the others.
            let is_new = self.entries[&number].prediction.is_none() && !self.wanting.contains(&number);
            if about == Some(number) || is_new && self.is_foreseen(number) {
                self.say(now, number, meaning, out);
            } else {
                self.say_again(now, number);
            }
        }
    }

    /// The latest accepted submission that makes a flow late according to its last prediction.
    pub(super) fn blamed(&self, number: u64, flow: &str) -> Option<u64> {
        let blames = |of: &u64| {
            let entry = &self.entries[of];
            // A rejected submission stays running until the engine has stopped it.
            let said = entry.prediction.as_ref().filter(|_| !entry.is_on_trial());
            said.is_some_and(|said| has(&said.makes_late, number, flow))
        };
        self.live_numbers().filter(blames).last()
    }

    /// Whether the last forecast included a submission. It may have started during the forecast.
    fn is_foreseen(&self, number: u64) -> bool {
        let live = self.entries.get(&number).and_then(|entry| entry.live.as_ref());
        live.is_some_and(|live| live.flows.iter().any(|here| here.expected.is_some()))
    }

    /// Reports the error of the last forecast, once.
    fn report_forecast_errors(
        &mut self,
        now: Moment,
        forecast_error: Option<ForecastError>,
        out: &mut Transition,
    ) {
        if let Some(ForecastError { problem, .. }) =
            forecast_error.as_ref().filter(|it| self.forecast_error.as_ref() != Some(it))
        {
            let message = format!("what is to come cannot be simulated: {problem}");
            self.tell(now, "unpredicted", message, out);
        }
        self.forecast_error = forecast_error;
    }

    /// The error of the last forecast, if the whole forecast failed.
    pub(super) fn forecast_error(&self) -> Option<&str> {
        self.forecast_error.as_ref().filter(|it| it.is_all).map(|it| it.problem.as_str())
    }

    pub(super) fn live_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.entries.iter().filter(|(_, entry)| entry.live.is_some()).map(|(&number, _)| number)
    }

    /// Starts the next requested forecast when no submission is being opened, or after `OPENING_MOST`.
    /// Otherwise the first of several submissions that start together would be promised the slots of the
    /// others.
    pub(super) fn next_prediction(&mut self, out: &mut Transition) {
        if self.is_predicting || self.waits_for_opening() {
            return;
        }
        self.opening_until = None;
        let Self { wanting, entries, .. } = self;
        wanting.retain(|number| entries.get(number).is_some_and(|entry| entry.live.is_some()));
        if wanting.len() > ONE_BY_ONE {
            wanting.clear();
            return self.predict(None, out);
        }
        if let Some(number) = wanting.pop_front() {
            self.predict(Some(number), out);
        }
    }

    /// Stores the estimate of a flow, and sends an alert if the flow is likely late. `cause` is the
    /// submission that makes it late.
    fn expect(
        &mut self,
        now: Moment,
        number: u64,
        flow: &str,
        expected: FlowEstimate,
        cause: Option<u64>,
        out: &mut Transition,
    ) {
        // A submission that would be late is rejected, which is reported separately.
        let is_on_trial = self.entries.get(&number).is_some_and(Entry::is_on_trial);
        let Some(here) = self.here(number, flow).filter(|here| !here.state.is_over()) else { return };
        here.expected = Some(expected);
        let Some(deadline) = here.deadline.filter(|&deadline| now <= deadline) else { return };
        let is_late = expected.completion > deadline && !is_on_trial;
        let was_late = std::mem::replace(&mut here.is_likely_late, is_late);
        if is_late && !was_late {
            let by = duration((expected.completion - deadline) as f64 / 1e6);
            let mut message = format!(
                "{flow} is not expected to be done by its deadline {}, but {by} later",
                timestamp(deadline)
            );
            let cause = cause.or_else(|| self.blamed(number, flow));
            if let Some((cause, wanted)) = cause.and_then(|cause| Some((cause, self.wanted(cause)?))) {
                message.extend(["; without ", &cause.to_string(), " ", &wanted.name, " it would be"]);
            }
            self.alert(out, now, number, flow, AlertKind::LikelyLate, message);
        } else if was_late && !is_late {
            let message = format!("{flow} is expected to be done by its deadline again");
            self.event(
                out,
                now,
                ServiceEvent { kind: "likely_in_time", number: Some(number), flow: Some(flow), message },
            );
        }
    }

    /// Reports the first prediction of a submission, or its prediction with its impact on the others.
    pub(super) fn say(&mut self, now: Moment, number: u64, meaning: Option<Impact>, out: &mut Transition) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Some(mut prediction) = entry.live.as_ref().map(|live| live.prediction(now)) else { return };
        if let Some(Impact { makes_late, remedies, .. }) = meaning {
            (prediction.makes_late, prediction.remedies) = (makes_late, remedies);
        }
        for flow in &prediction.flows {
            let said = StoredPrediction {
                completion: crate::moment(flow.completion),
                between: flow.between.map(|between| between.map(crate::moment)),
                guess: Some(flow.guess),
                made: Some(now),
                deadline: flow.deadline.map(crate::moment),
                chance: flow.chance,
            };
            if !entry.said.contains_key(&flow.flow) {
                entry.said.insert(flow.flow.clone(), said);
                out.records.push(Record::Predicted { number, flow: flow.flow.clone(), said });
            }
        }
        let (is_late, message) = (prediction.is_late(), words(&prediction));
        entry.prediction = Some(prediction);
        self.event(out, now, ServiceEvent { kind: "predicted", number: Some(number), flow: None, message });
        self.decide(now, number, is_late.then(|| "a deadline is not expected to hold".to_owned()), out);
    }

    /// Updates the prediction of a submission. The impact on the others stays as it was reported.
    fn say_again(&mut self, now: Moment, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Some(mut prediction) = entry.live.as_ref().map(|live| live.prediction(now)) else { return };
        // Forecasts do not include held flows.
        let live = entry.live.iter().flat_map(|live| &live.flows);
        if !live.clone().all(|here| here.state.is_over() || here.state == FlowStatus::Held)
            && let Some(before) = entry.prediction.take()
        {
            (prediction.makes_late, prediction.remedies) = (before.makes_late, before.remedies);
            entry.prediction = Some(prediction);
        }
    }

    /// Decides a submission with `IfLate::Reject` when the forecast failed. Without deadlines it is accepted.
    fn decide_unforeseen(&mut self, now: Moment, number: u64, why: &str, out: &mut Transition) {
        let flows = self.entries.get(&number).and_then(|entry| entry.live.as_ref()).map(|live| &live.flows);
        let has_deadlines = flows.into_iter().flatten().any(|here| here.deadline.is_some());
        self.decide(now, number, has_deadlines.then(|| why.to_owned()), out);
    }

    /// Accepts a submission with `IfLate::Reject`, or rejects it for the reason `why`.
    pub(super) fn decide(&mut self, now: Moment, number: u64, why: Option<String>, out: &mut Transition) {
        let Some(entry) = self.entries.get_mut(&number).filter(|entry| entry.is_on_trial()) else { return };
        if let Some(why) = why {
            return self.cancel_all(now, number, CancelReason::WouldBeLate(why), out);
        }
        entry.is_let_in = true;
        entry.live.iter_mut().for_each(|live| live.end_hold(now));
        out.records.push(Record::LetIn(number));
        self.stand_all(number, out);
    }
}

pub(super) type UnpredictedQueue = VecDeque<u64>;

/// The text of a prediction.
fn words(prediction: &Prediction) -> String {
    let flow = |flow: &api::FlowPrediction| {
        let holds = match flow.holds {
            Some(true) => ", by its deadline",
            Some(false) => ", after its deadline",
            None => "",
        };
        format!("{} is expected to be done at {}{holds}", flow.flow, flow.completion)
    };
    let mut words: Vec<String> = prediction.flows.iter().map(flow).collect();
    words.extend(
        prediction
            .makes_late
            .iter()
            .map(|late| format!("{} of {} becomes late by {:.0} s", late.flow, late.number, late.late_by)),
    );
    if words.is_empty() { "nothing is known of when it is done".to_owned() } else { words.join("; ") }
}
