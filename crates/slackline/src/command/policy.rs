//! The policy whose decisions are the answers of a program.

use std::time::Duration;

use slackline_model::{Cluster, Objective};
use slackline_policy::{Action, Ask, Event, Grant, Policy, Style, View};

use super::answer::{self, RequestedChanges};
use super::child::{Child, GRACE, Silence};
use super::order::Order;
use super::{NAME, Program, shown};
use crate::command::program_view;
use crate::command::program_view::ProgramView;

/// A program as a policy, until it fails.
pub(super) struct CommandPolicy {
    program: Program,
    /// `None` if it could not be started.
    child: Option<Child>,
    style: Style,
    keeps_minima: bool,
    program_view: ProgramView,
    order: Order,
    /// The next line to send, and the number of lines sent.
    line: Vec<u8>,
    asked: u64,
    failure: Option<String>,
}

impl CommandPolicy {
    /// Starts the program and reads how it decides. An error is stored as the failure of the policy.
    pub(super) fn start(program: Program, cluster: &Cluster, objective: Objective) -> Self {
        let mut policy = Self {
            program,
            child: None,
            style: Style::Priorities,
            keeps_minima: false,
            program_view: ProgramView::default(),
            order: Order::default(),
            line: Vec::new(),
            asked: 0,
            failure: None,
        };
        match Child::start(&policy.program.words) {
            Ok(child) => policy.child = Some(child),
            Err(error) => {
                let program = policy.program.words.first().map_or_else(String::new, |word| shown(word, 200));
                policy.failure = Some(format!("cannot start {program:?}: {error}"));
                return policy;
            }
        }
        let line = serde_json::to_vec(&program_view::greeting(cluster, objective));
        policy.line = line.expect("invariant: a call can be written as JSON");
        let Some(answer) = policy.ask("hello") else { return policy };
        match answer::welcome(&answer) {
            Ok(welcome) => (policy.style, policy.keeps_minima) = (welcome.style, welcome.minima),
            Err(what) => policy.fail(Some(&what), "hello", Some(&answer)),
        }
        policy
    }

    /// Sends the line and returns the answer. Without an answer the policy has failed.
    fn ask(&mut self, about: &str) -> Option<Vec<u8>> {
        self.line.push(b'\n');
        self.asked += 1;
        let timeout = self.program.timeout;
        let silence = match self.child.as_mut()?.ask(&self.line, timeout) {
            Ok(answer) => return Some(answer),
            Err(silence) => silence,
        };
        match silence {
            Silence::Late => {
                let what = format!(
                    "no answer within {} s, expected one line for each that it reads (does it flush its standard \
                     output after each?)",
                    timeout.as_secs_f64()
                );
                self.fail(Some(&what), about, None);
            }
            Silence::Closed => self.fail(None, about, None),
            Silence::TooLong => {
                self.fail(Some("its answer is too long, expected one line"), about, None);
            }
            Silence::Unasked(words) => {
                let what = "it wrote a line before it was asked, expected one for each it reads";
                self.fail(Some(what), about, Some(&words));
            }
            Silence::System(error) => self.fail(Some(&format!("cannot read or write: {error}")), about, None),
        }
        None
    }

    /// Ends the program and stores the failure: the error (`None` if the program closed its side), the
    /// subject of the line, and the answer.
    fn fail(&mut self, what: Option<&str>, about: &str, answer: Option<&[u8]>) {
        let Some(child) = &mut self.child else { return };
        // A program that closed its side is about to end. Its exit status tells the reason.
        let ended = child.end(if what.is_none() { GRACE } else { Duration::ZERO });
        let what = match (what, ended) {
            (Some(what), _) => what.to_owned(),
            (None, Some(status)) => format!("it ended without an answer ({status})"),
            (None, None) => "it closed its standard input or output without an answer".to_owned(),
        };
        let mut text = format!("{what}\nthe request was: line {}, {about}", self.asked);
        if let Some(answer) = answer {
            text += "\nit answered: ";
            text += &shown(&String::from_utf8_lossy(answer), 300);
        }
        let words = child.last_words();
        if !words.is_empty() {
            text += "\nits standard error ends:";
            for line in &words {
                text.extend(["\n  ", line]);
            }
        }
        self.failure = Some(text);
    }
}

impl Policy for CommandPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn style(&self) -> Style {
        self.style
    }

    fn keeps_minima(&self) -> bool {
        self.keeps_minima
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        if self.failure.is_some() {
            return;
        }
        self.line.clear();
        let call = self.program_view.call(events, view);
        serde_json::to_writer(&mut self.line, &call).expect("invariant: a call can be written as JSON");
        self.program_view.forget(events);
        let n = events.len();
        let about = format!("{n} event{} at {} s", if n == 1 { "" } else { "s" }, view.now.seconds());
        let Some(answer) = self.ask(&about) else { return };
        match answer::wanted(&answer, self.style, &self.program_view, view) {
            Ok(RequestedChanges { mut actions, order }) => {
                out.append(&mut actions);
                if self.style == Style::Priorities {
                    self.order.update(events, view, order);
                }
            }
            Err(what) => self.fail(Some(&what), &about, Some(&answer)),
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.order.next(ask, view)
    }
}
