//! Commands of clients, and their answers.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::printable::is_printable;
use slackline_task::base::clock::ClockReading;

use crate::api::{self, Accepted, Change, Overlap, State};
use crate::state::auth::{Principal, Role};
use crate::state::record::{CancelReason, Changes, FlowChange, Record, SubmissionSpec};
use crate::state::{Entry, ServiceEvent, ServiceState, Transition};
use crate::{Moment, SECOND, timestamp};

#[derive(Clone, Debug)]
pub enum Command {
    Submit(Box<api::Submit>, FlowFileCheck),
    /// The unfinished and the remembered submissions, the latest first.
    List {
        /// Only submissions in one of these states. Empty: all.
        states: Vec<State>,
        name: Option<String>,
        user: Option<String>,
        /// At most this many.
        most: usize,
        /// Only submissions with smaller numbers.
        before: Option<u64>,
    },
    Show(u64),
    /// The specification of a submission that has not started.
    Pending(u64),
    /// Cancel a submission, or one flow of it.
    Cancel {
        number: u64,
        flow: Option<String>,
    },
    /// Hold or resume a submission, or one flow of it.
    Hold {
        number: u64,
        flow: Option<String>,
        held: bool,
    },
    /// Change a deadline, weight or priority.
    Change {
        number: u64,
        /// The change, as the client sent it.
        change: Change,
        /// The parsed deadline of `change`, if it has one.
        deadline: Option<Moment>,
    },
    Recurrences,
    /// Remove a schedule.
    Remove(String),
    /// Pause or resume a schedule.
    Pause {
        name: String,
        paused: bool,
    },
    Service,
    /// The number of running tasks over time, from a moment on. `None`: as far back as known.
    Load(Option<Moment>),
    /// The latest alerts.
    Alerts,
    /// Stop starting new submissions, or resume.
    Drain(bool),
}

/// The facts about a flow file that the state needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFileCheck {
    /// The name, if the request has none.
    pub name: String,
    /// Whether the submission waits for files: patterns or inputs.
    pub waits_for_files: bool,
    /// The first deadline of its flows, if it is submitted now.
    pub due: Option<Moment>,
    /// The error of a deadline in the request that has passed. The submission is refused.
    pub passed: Option<String>,
}

/// A submission that has not started.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingSubmission {
    pub wanted: SubmissionSpec,
    /// Changes since it was submitted.
    pub changes: Changes,
    pub held: bool,
    /// Flows that are held separately. Only a submission that has started before can have them.
    pub held_flows: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Accepted(Box<Accepted>),
    Submissions(Vec<api::Submission>),
    Submission(Box<api::Submission>),
    /// `None`: the submission has started or finished.
    Pending(Option<Box<PendingSubmission>>),
    Recurrences(Vec<api::Recurrence>),
    Service(Box<api::Service>),
    /// The number of running tasks over time.
    Load(api::Load),
    /// The latest alerts, the latest first.
    Alerts(Vec<api::Alert>),
    /// A message of success.
    Done(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The value found, and the value expected.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request is malformed.
    Invalid,
    /// The role of the principal does not permit the command.
    Forbidden,
    NotFound,
    /// The command does not fit the current state.
    Conflict,
    /// A limit is reached; retry after this many seconds.
    TooMany(u64),
    /// The service cannot do it now. For example, its disk is full or it is stopping.
    Unavailable,
}

fn refused<T>(kind: RefusalKind, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { kind, message: message.into() })
}

/// Checks the role of the principal. Each command checks the owner of a submission.
fn allowed(principal: &Principal, command: &Command) -> Result<(), Refusal> {
    let least = match command {
        Command::List { .. }
        | Command::Show(_)
        | Command::Pending(_)
        | Command::Recurrences
        | Command::Service
        | Command::Load(_)
        | Command::Alerts => Role::Look,
        Command::Submit(..)
        | Command::Cancel { .. }
        | Command::Hold { .. }
        | Command::Change { .. }
        | Command::Remove(_)
        | Command::Pause { .. } => Role::Submit,
        Command::Drain(_) => Role::Operate,
    };
    if principal.role >= least {
        return Ok(());
    }
    let (name, has, needs) = (&principal.name, principal.role.name(), least.name());
    refused(RefusalKind::Forbidden, format!("{name} has the role {has}, expected {needs}"))
}

fn named(number: u64, flow: Option<&str>) -> String {
    flow.map_or_else(|| number.to_string(), |flow| format!("{flow} of {number}"))
}

/// The message of a resume. It names the flows that were held separately, or says that nothing was held.
fn resumed(number: u64, flow: Option<&str>, entry: &Entry) -> String {
    let is_held = match flow {
        Some(flow) => entry.held || entry.held_flows.contains(flow),
        None => entry.held,
    };
    let alone: Vec<&String> = entry.held_flows.iter().collect();
    match (flow, alone.as_slice()) {
        _ if is_held => format!("{} is let go", named(number, flow)),
        (None, [_, ..]) => {
            let (flows, are) =
                (slackline_model::names::listed(&alone), if alone.len() > 1 { "are" } else { "is" });
            format!("{flows} of {number} {are} let go; the rest of it was not held")
        }
        (Some(_), _) | (None, []) => format!("{} was not held", named(number, flow)),
    }
}

impl ServiceState {
    /// Executes a command of a client.
    ///
    /// # Errors
    /// The refusal. Then the state is unchanged.
    pub fn execute(
        &mut self,
        now: ClockReading,
        principal: &Principal,
        command: Command,
        out: &mut Transition,
    ) -> Result<Answer, Refusal> {
        let now = self.read_clock(now, out);
        allowed(principal, &command)?;
        let answer = match command {
            Command::Submit(submit, checked) => self.submit(now, principal, *submit, checked, out),
            Command::List { states, name, user, most, before } => Ok(Answer::Submissions(self.list(
                now,
                &states,
                name.as_deref(),
                user.as_deref(),
                most,
                before,
            ))),
            Command::Show(number) => self.show(now, number).map(|one| Answer::Submission(Box::new(one))),
            Command::Pending(number) => Ok(Answer::Pending(self.pending(number).map(Box::new))),
            Command::Cancel { number, flow } => self.cancel(now, principal, number, flow, out),
            Command::Hold { number, flow, held } => self.hold(now, principal, number, flow, held, out),
            Command::Change { number, change, deadline } => {
                self.change(now, principal, number, change, deadline, out)
            }
            Command::Recurrences => Ok(Answer::Recurrences(self.recurrences())),
            Command::Remove(name) => self.remove(principal, &name, out),
            Command::Pause { name, paused } => self.pause(now, principal, &name, paused, out),
            Command::Service => Ok(Answer::Service(Box::new(self.service(now)))),
            Command::Load(since) => Ok(Answer::Load(self.loads(since.unwrap_or(0)))),
            Command::Alerts => Ok(Answer::Alerts(self.alerts.iter().rev().cloned().collect())),
            Command::Drain(draining) => {
                self.is_draining = draining;
                out.records.push(Record::Draining(draining));
                let message = if draining { "nothing new begins" } else { "submissions begin again" };
                self.event(
                    out,
                    now,
                    ServiceEvent { kind: "service", number: None, flow: None, message: message.to_owned() },
                );
                Ok(Answer::Done(message.to_owned()))
            }
        }?;
        self.begin_next(out);
        Ok(answer)
    }

    /// Accepts a submission or a schedule.
    fn submit(
        &mut self,
        now: Moment,
        principal: &Principal,
        submit: api::Submit,
        checked: FlowFileCheck,
        out: &mut Transition,
    ) -> Result<Answer, Refusal> {
        let name = submit.name.clone().unwrap_or(checked.name);
        let is_name = |c: char| c != '/' && is_printable(c);
        if name.is_empty() || name.len() > 200 || !name.chars().all(is_name) || name.starts_with('.') {
            return refused(
                RefusalKind::Invalid,
                format!(
                    "name: found {name:?}, expected at most 200 printable characters without a slash, not beginning with a dot (--name gives one)"
                ),
            );
        }
        if let Some(key) = &submit.key {
            if key.is_empty() || key.len() > 200 {
                let found = key.len();
                return refused(RefusalKind::Invalid, format!("key: found {found} bytes, expected 1 to 200"));
            }
            if let Some(&number) = self.keys.get(&(principal.name.clone(), key.clone())) {
                self.is_same(number, &name, &submit)?;
                let message = format!("{name} was submitted as {number} already");
                let number = Some(number);
                let accepted = Accepted { number, name, message, next: None, prediction: None };
                return Ok(Answer::Accepted(Box::new(accepted)));
            }
        }
        // This check comes after the key: a repeated request may have a deadline that has passed since.
        if let Some(problem) = checked.passed {
            return refused(RefusalKind::Invalid, problem);
        }
        self.may_ask(&principal.name)?;
        if submit.schedule.is_some() {
            return self.recurs(now, principal, submit, name, out);
        }
        self.has_place(&principal.name)?;
        if let Some(first) = self.series.get(&name).and_then(|series| series.front()).copied()
            && let Some(owner) = self.wanted(first).map(|wanted| wanted.user.clone())
            && !principal.may_change(&owner)
        {
            return refused(
                RefusalKind::Forbidden,
                format!("name: found {name}, which is {owner}'s and not over, expected a name of your own"),
            );
        }
        self.count_rate(&principal.name);
        let (user, due) = (principal.name.clone(), checked.due);
        let wanted = SubmissionSpec { submit, name, user, since: now, recurrence: None, due };
        Ok(Answer::Accepted(Box::new(self.accept(now, wanted, checked.waits_for_files, out))))
    }

    /// Refuses a different request under the key of a submission. Of a finished submission only the name is
    /// compared.
    fn is_same(&self, number: u64, name: &str, submit: &api::Submit) -> Result<(), Refusal> {
        let of_before = self.wanted(number);
        let known = of_before.map(|before| &before.name);
        let known = known.or_else(|| self.ended.find(number).map(|ended| &ended.name));
        let is_other = |before: &api::Submit| {
            before.document != submit.document
                || before.parameters != submit.parameters
                || before.deadlines != submit.deadlines
        };
        let found = if let Some(known) = known.filter(|&known| known != name) {
            format!("{name:?} with the key of {number}, which is {known}")
        } else if of_before.is_some_and(|before| is_other(&before.submit)) {
            format!("another document, or other values or deadlines, than those of {number}")
        } else {
            return Ok(());
        };
        let message = format!("key: found {found}, expected the same again, or a key of its own");
        Err(Refusal { kind: RefusalKind::Conflict, message })
    }

    /// Checks the queue limits for one more submission of a user.
    pub(super) fn has_place(&self, user: &str) -> Result<(), Refusal> {
        let limits = &self.facts.limits;
        if self.queue.len() >= limits.queued {
            let found = self.queue.len();
            return refused(
                RefusalKind::TooMany(60),
                format!("found {found} submissions that wait, expected fewer than {}", limits.queued),
            );
        }
        if self.queue.of_user(user) >= limits.queued_by_user {
            let (found, most) = (self.queue.of_user(user), limits.queued_by_user);
            return refused(
                RefusalKind::TooMany(60),
                format!("found {found} submissions of {user} that wait, expected fewer than {most}"),
            );
        }
        Ok(())
    }

    /// Checks the rate limit of a user.
    fn may_ask(&mut self, user: &str) -> Result<(), Refusal> {
        let (limits, now) = (&self.facts.limits, self.clock.elapsed());
        let times = self.rates.entry(user.to_owned()).or_default();
        while times.front().is_some_and(|&at| now.since(at) >= 60 * SECOND) {
            times.pop_front();
        }
        if times.len() >= limits.rate_by_user {
            let wait = times.front().map_or(0, |&at| (at + 60 * SECOND).since(now).div_ceil(SECOND));
            let most = limits.rate_by_user;
            return refused(
                RefusalKind::TooMany(wait),
                format!(
                    "found {most} submissions of {user} within a minute, expected fewer: try again in {wait} s"
                ),
            );
        }
        Ok(())
    }

    /// Counts a submission for the rate limit.
    pub(super) fn count_rate(&mut self, user: &str) {
        self.rates.entry(user.to_owned()).or_default().push_back(self.clock.elapsed());
    }

    /// Enters a submission under the next number. It is skipped if its overlap rule says so.
    pub(super) fn accept(
        &mut self,
        now: Moment,
        wanted: SubmissionSpec,
        waits_for_files: bool,
        out: &mut Transition,
    ) -> Accepted {
        let name = wanted.name.clone();
        let others: Vec<u64> = self.series.get(&name).into_iter().flatten().copied().collect();
        let overlap = wanted.submit.overlap;
        if let (Overlap::Skip, Some(&other)) = (overlap, others.first()) {
            let message = format!("{name} is left out, because {other} has the same name and is not over");
            if let Some(recurrence) = wanted.recurrence.clone() {
                out.records.push(Record::LeftOut { recurrence, until: wanted.since });
            }
            self.event(
                out,
                now,
                ServiceEvent { kind: "skipped", number: Some(other), flow: None, message: message.clone() },
            );
            return Accepted { number: None, name, message, next: None, prediction: None };
        }
        let number = self.next;
        out.records.push(Record::Submitted { number, at: now, wanted: Box::new(wanted.clone()) });
        self.unread.extend(wanted.recurrence.is_some().then_some(number));
        self.enter(number, now, wanted, waits_for_files);
        let message = format!("{name} is submitted");
        self.event(out, now, ServiceEvent { kind: "submitted", number: Some(number), flow: None, message });
        if overlap == Overlap::Replace {
            for other in &others {
                self.cancel_all(now, *other, CancelReason::ReplacedBy(number), out);
            }
        }
        let why = self.entries.get(&number).and_then(|entry| entry.why.clone());
        let message = match why {
            Some(why) => format!("{name} is submitted as {number}: {why}"),
            None => format!("{name} is submitted as {number}"),
        };
        Accepted { number: Some(number), name, message, next: None, prediction: None }
    }

    /// Adds a submission to the state.
    pub(super) fn enter(&mut self, number: u64, at: Moment, wanted: SubmissionSpec, waits_for_files: bool) {
        self.next = self.next.max(number + 1);
        // The service submits the occurrences of a schedule once, so their key is not needed.
        if let (Some(key), None) = (&wanted.submit.key, &wanted.recurrence) {
            self.keys.insert((wanted.user.clone(), key.clone()), number);
        }
        self.series.entry(wanted.name.clone()).or_default().push_back(number);
        let entry = Entry {
            held: wanted.submit.held,
            wanted,
            submitted: at,
            state: State::Queued,
            changes: BTreeMap::new(),
            held_flows: BTreeSet::new(),
            cancelled: BTreeMap::new(),
            is_let_in: false,
            said: BTreeMap::new(),
            alerted: BTreeSet::new(),
            prediction: None,
            why: None,
            tries: 0,
            not_before: None,
            has_files: !waits_for_files,
            missing: None,
            live: None,
        };
        self.entries.insert(number, entry);
        self.enqueue(number);
    }

    /// Removes a submission whose record could not be written.
    pub fn revoke(&mut self, number: u64) {
        self.dequeue(number);
        self.end_begun(number);
        self.leave_series(number);
        if let Some(Entry { wanted: SubmissionSpec { submit, user, .. }, .. }) = self.entries.remove(&number)
            && let Some(key) = submit.key
        {
            self.keys.remove(&(user, key));
        }
    }

    /// The unfinished submission, if the principal may change it.
    fn own(&mut self, principal: &Principal, number: u64) -> Result<&mut Entry, Refusal> {
        if !self.entries.contains_key(&number) {
            let Some(ended) = self.ended.find(number) else {
                return refused(RefusalKind::NotFound, format!("found no submission {number}"));
            };
            let state = ended.state.name();
            return refused(RefusalKind::Conflict, format!("{number} is over: {state}"));
        }
        let entry = self.entries.get_mut(&number).expect("invariant: it is there");
        if principal.may_change(&entry.wanted.user) {
            return Ok(entry);
        }
        let (name, owner) = (&principal.name, &entry.wanted.user);
        refused(
            RefusalKind::Forbidden,
            format!("{number} is {owner}'s, and {name} may change their own only"),
        )
    }

    /// Refuses an unknown or finished flow of a submission.
    fn known(&mut self, number: u64, flow: Option<&str>) -> Result<(), Refusal> {
        let Some(flow) = flow else { return Ok(()) };
        let entry = self.entries.get(&number).expect("invariant: it was found");
        let Some(live) = &entry.live else {
            return refused(
                RefusalKind::Conflict,
                format!(
                    "{number} has not begun, so that its flows are not known yet, expected no flow to be named"
                ),
            );
        };
        let names: Vec<String> = live.flows.iter().map(|here| here.flow.clone()).collect();
        match live.flows.iter().find(|here| here.flow == flow) {
            None => refused(RefusalKind::NotFound, slackline_model::names::unknown("flow", flow, &names)),
            Some(here) if here.state.is_over() => {
                refused(RefusalKind::Conflict, format!("flow {flow} of {number} is over"))
            }
            Some(_) => Ok(()),
        }
    }

    fn cancel(
        &mut self,
        now: Moment,
        principal: &Principal,
        number: u64,
        flow: Option<String>,
        out: &mut Transition,
    ) -> Result<Answer, Refusal> {
        self.own(principal, number)?;
        self.known(number, flow.as_deref())?;
        let (what, reason) = (named(number, flow.as_deref()), CancelReason::User);
        match flow {
            None => self.cancel_all(now, number, reason, out),
            Some(flow) => {
                self.own(principal, number)?.cancelled.insert(Some(flow.clone()), reason.clone());
                out.records.push(Record::Cancelled { number, flow: Some(flow.clone()), reason });
                self.cancel_flow(number, &flow, out);
            }
        }
        let message = format!("{what} is cancelled");
        let event =
            ServiceEvent { kind: "cancelled", number: Some(number), flow: None, message: message.clone() };
        self.event(out, now, event);
        Ok(Answer::Done(message))
    }

    fn hold(
        &mut self,
        now: Moment,
        principal: &Principal,
        number: u64,
        flow: Option<String>,
        held: bool,
        out: &mut Transition,
    ) -> Result<Answer, Refusal> {
        self.own(principal, number)?;
        self.known(number, flow.as_deref())?;
        let message = match self.entries.get(&number) {
            Some(entry) if !held => resumed(number, flow.as_deref(), entry),
            _ => {
                let what = named(number, flow.as_deref());
                format!("{what} is held: what runs of it goes on to its end, and nothing more starts")
            }
        };
        for (flow, held) in self.holds(number, flow, held) {
            out.records.push(Record::Held { number, flow: flow.clone(), held });
            self.set_held(number, flow, held);
        }
        self.sort_in(number);
        if let Some(live) = self.entries.get_mut(&number).and_then(|entry| entry.live.as_mut())
            && !held
        {
            live.end_hold(now);
            // A prediction made during the hold is not valid any more.
            live.flows.iter_mut().for_each(|here| here.expected = None);
            self.next_outlook = self.clock.elapsed();
        }
        self.stand_all(number, out);
        let event =
            ServiceEvent { kind: "changed", number: Some(number), flow: None, message: message.clone() };
        self.event(out, now, event);
        Ok(Answer::Done(message))
    }

    /// The hold and resume steps of a command, in order. To resume one flow of a held submission, the
    /// submission is resumed and each other flow is held. The records name these flows, because a replay does
    /// not know them.
    fn holds(&self, number: u64, flow: Option<String>, held: bool) -> Vec<(Option<String>, bool)> {
        let whole = self.entries.get(&number).filter(|entry| entry.held && !held);
        match (whole.and_then(|entry| entry.live.as_ref()), &flow) {
            (Some(live), Some(flow)) => {
                let others = live.flows.iter().filter(|here| here.flow != *flow && !here.state.is_over());
                let others = others.map(|here| (Some(here.flow.clone()), true));
                std::iter::once((None, false)).chain(others).collect()
            }
            _ => vec![(flow, held)],
        }
    }

    pub(super) fn set_held(&mut self, number: u64, flow: Option<String>, held: bool) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        match (flow, held) {
            (None, true) => entry.held = true,
            (None, false) => {
                entry.held = false;
                entry.held_flows.clear();
            }
            (Some(flow), true) => drop(entry.held_flows.insert(flow)),
            (Some(flow), false) => drop(entry.held_flows.remove(&flow)),
        }
    }

    fn change(
        &mut self,
        now: Moment,
        principal: &Principal,
        number: u64,
        change: Change,
        deadline: Option<Moment>,
        out: &mut Transition,
    ) -> Result<Answer, Refusal> {
        self.own(principal, number)?;
        self.known(number, change.flow.as_deref())?;
        let Change { flow, weight, priority, .. } = change;
        if weight.is_some_and(|weight| !(weight >= 0.0 && weight.is_finite())) {
            let found = weight.unwrap_or_default();
            return refused(RefusalKind::Invalid, format!("weight: found {found}, expected a number from 0"));
        }
        let changed = FlowChange { deadline, weight, priority };
        if changed == FlowChange::default() {
            return refused(
                RefusalKind::Invalid,
                "found nothing to change, expected a deadline, a weight or a priority",
            );
        }
        out.records.push(Record::Changed { number, flow: flow.clone(), changed });
        self.set_changed(number, flow.as_deref(), changed);
        self.stand_all(number, out);
        if self.entries.get(&number).is_some_and(|entry| entry.live.is_some()) {
            self.want_prediction(number, out);
        }
        let what = named(number, flow.as_deref());
        let mut said = Vec::new();
        said.extend(deadline.map(|at| format!("its deadline is {}", timestamp(at))));
        said.extend(weight.map(|weight| format!("its weight is {weight}")));
        said.extend(priority.map(|priority| format!("its priority is {priority}")));
        let message = format!("{what}: {}", said.join(", "));
        let event = ServiceEvent {
            kind: "changed",
            number: Some(number),
            flow: flow.as_deref(),
            message: message.clone(),
        };
        self.event(out, now, event);
        Ok(Answer::Done(message))
    }

    /// Changes a submission, or one flow of it.
    pub(super) fn set_changed(&mut self, number: u64, flow: Option<&str>, changed: FlowChange) {
        let Some(entry) = self.entries.get(&number) else { return };
        // The priority decides the place in the queue.
        let waits = entry.state == State::Queued;
        if waits {
            self.dequeue(number);
        }
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let so_far = entry.changes.entry(flow.map(str::to_owned)).or_default();
        so_far.deadline = changed.deadline.or(so_far.deadline);
        so_far.weight = changed.weight.or(so_far.weight);
        so_far.priority = changed.priority.or(so_far.priority);
        if flow.is_none() {
            // A change of the whole submission replaces earlier changes of single flows.
            for (_, own) in entry.changes.iter_mut().filter(|(of, _)| of.is_some()) {
                own.deadline = if changed.deadline.is_some() { None } else { own.deadline };
                own.weight = if changed.weight.is_some() { None } else { own.weight };
                own.priority = if changed.priority.is_some() { None } else { own.priority };
            }
        }
        if changed.deadline.is_some() {
            // A missed new deadline is a new reason for an alert.
            entry.alerted.retain(|(of, kind)| {
                flow.is_some_and(|flow| of != flow)
                    || !matches!(kind, api::AlertKind::Late | api::AlertKind::LikelyLate)
            });
        }
        if waits {
            self.enqueue(number);
        }
        self.set_deadlines(number);
    }

    /// Applies the latest deadlines and weights to the flows of a running submission.
    fn set_deadlines(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        let Some(mut live) = entry.live.take() else { return };
        for here in live.flows.iter_mut().filter(|here| !here.state.is_over()) {
            let FlowChange { deadline, weight, .. } = entry.changed(&here.flow);
            here.weight = weight.unwrap_or(here.weight);
            if let Some(deadline) = deadline.filter(|&deadline| here.deadline != Some(deadline)) {
                self.deadlines.retain(|(_, of, flow)| (*of, flow) != (number, &here.flow));
                (here.deadline, here.is_likely_late) = (Some(deadline), false);
                // This chance was for the old deadline.
                here.expected.iter_mut().for_each(|expected| expected.chance = None);
                self.deadlines.insert((deadline, number, here.flow.clone()));
            }
        }
        entry.live = Some(live);
    }
}
