//! The state of one machine with an agent: away, opening, up, or closing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use slackline_model::MachineId;
use slackline_task::process::limits::Capacity;
use slackline_task::process::report::Report;

use super::{AgentTiming, First, Machine, News, Terms};
use crate::fleet::link::{GRACE, Line, LineInterest, Link, ORDERLY};
use crate::fleet::protocol::{BEAT, FromAgent, Hello, LINE_MAX, Ready, Refused, ToAgent, line, mismatch};
use crate::fleet::{Assignment, FleetEvent, NewMachine};
use crate::store::pid_file::PidFile;

/// The longest that is waited before a machine is retried that did not answer.
const AGAIN_MAX: Duration = Duration::from_secs(60);

/// More than this that is not read by an agent is not added to by beats, bytes.
const UNREAD: usize = 1 << 16;

pub(super) struct Host {
    id: MachineId,
    name: String,
    link: Box<dyn Link>,
    pids: PathBuf,
    pace: AgentTiming,
    state: State,
    /// How often it went.
    epoch: u32,
    /// What runs there, with its slot.
    attempts: BTreeMap<u64, u32>,
    /// The running attempt by slot, for viewers.
    places: BTreeMap<u32, PidFile>,
    /// How often it did not answer, one after the other.
    tries: u32,
    /// The engine's knowledge of the machine.
    known: Admission,
    /// Whether it is to be reached no more.
    is_retired: bool,
    /// How many attempts it takes at a time, and its speed.
    slots: u32,
    speed: f64,
    /// Until when it is present, if known.
    ends: Option<Duration>,
}

/// The engine's knowledge of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    /// It waits for the end of the first try to reach it.
    Awaited,
    /// Nothing: it is to join.
    Nothing,
    /// That it is one of the run's.
    Reported,
}

/// Where a machine is.
enum State {
    /// It is not there, and is retried then.
    Away { again: Duration },
    /// It was given hello.
    Opening(PendingLine),
    /// Its agent takes attempts.
    Up(Conversation),
    /// Its line was closed; then its process is asked to end, and then it is killed.
    Ending(ClosingLine),
}

/// A line that is spoken over.
struct Conversation {
    line: Line,
    /// When something arrived last.
    last_receipt: Duration,
    /// When the last message arrived.
    said: Duration,
}

struct PendingLine {
    spoken: Conversation,
    since: Duration,
    /// The first line that is not of the protocol, such as a greeting of a shell.
    noise: Option<String>,
}

struct ClosingLine {
    line: Line,
    /// When its process is asked to end; none if it was.
    term: Option<Duration>,
    /// When it is killed.
    kill: Duration,
    /// The failure to report when it has ended.
    failure: Option<Failure>,
}

/// Why a machine is not there.
#[derive(Clone, Debug)]
enum Failure {
    /// It cannot be one of this run's.
    Refused(String),
    /// It does not answer.
    Missing(String),
}

/// A line, or the end of the connection.
enum LineEvent {
    Message(Box<FromAgent>),
    /// A line that is not of the protocol.
    Noise(String),
    Over,
}

impl Conversation {
    fn beat(&mut self, now: Duration) {
        if now.saturating_sub(self.said) >= BEAT && self.line.unsaid() < UNREAD {
            self.line.say(&line(&ToAgent::Beat {}));
            self.line.tell();
            self.said = now;
        }
    }

    /// Its lines, one after the other.
    fn hear(&mut self, now: Duration) -> Vec<LineEvent> {
        let (lines, is_over) = self.line.hear();
        if !lines.is_empty() {
            self.last_receipt = now;
        }
        let read = |line: Vec<u8>| match serde_json::from_slice(&line) {
            Ok(message) => LineEvent::Message(Box::new(message)),
            Err(_) => LineEvent::Noise(quoted(&line)),
        };
        let mut events: Vec<LineEvent> = lines.into_iter().map(read).collect();
        if self.line.babbles() {
            events.push(LineEvent::Noise(format!("a line of more than {LINE_MAX} bytes")));
        }
        if is_over {
            self.line.tell();
            events.push(LineEvent::Over);
        }
        events
    }
}

/// The beginning of a line.
fn quoted(line: &[u8]) -> String {
    format!("the line {:?}", String::from_utf8_lossy(line).chars().take(120).collect::<String>())
}

impl Host {
    pub(super) fn new(id: MachineId, machine: Machine, now: Duration, terms: &Terms) -> Self {
        let Machine { name, slots, speed, link, left } = machine;
        Self {
            id,
            name,
            link,
            pids: terms.pids.clone(),
            pace: terms.pace,
            state: State::Away { again: now },
            epoch: 0,
            attempts: BTreeMap::new(),
            places: BTreeMap::new(),
            tries: 0,
            known: Admission::Awaited,
            is_retired: false,
            slots,
            speed,
            ends: left.map(|left| now + left),
        }
    }

    /// The same, for a machine that the engine learns of when it is up.
    pub(super) fn joining(mut self) -> Self {
        self.known = Admission::Nothing;
        self
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// It is to be reached again, by another link perhaps. Its slots are those that it had.
    pub(super) fn readmit(&mut self, machine: Machine, now: Duration) {
        self.link = machine.link;
        self.ends = machine.left.map(|left| now + left);
        (self.is_retired, self.tries) = (false, 0);
        if let State::Away { again } = &mut self.state {
            *again = now;
        }
    }

    /// Dismisses the machine. It is not contacted again until it is added again.
    pub(super) fn dismiss(&mut self, now: Duration, why: &str, tell: &mut dyn FnMut(News)) {
        if matches!(self.state, State::Up(_)) {
            self.lose(now, why.to_owned(), tell);
        }
        self.retire(now);
    }

    /// Whether an attempt runs there.
    pub(super) fn has(&self, number: u64) -> bool {
        self.attempts.contains_key(&number)
    }

    /// Whether its connection is closed, and the end of its process is awaited.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.state, State::Ending(_))
    }

    /// Whether all its processes have ended.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.state, State::Away { .. })
    }

    fn line(&self) -> Option<&Line> {
        match &self.state {
            State::Away { .. } => None,
            State::Opening(opening) => Some(&opening.spoken.line),
            State::Up(spoken) => Some(&spoken.line),
            State::Ending(ending) => Some(&ending.line),
        }
    }

    /// The awaited events; `None` if it is away.
    pub(super) fn wanted(&self) -> Option<LineInterest<'_>> {
        self.line().map(Line::wanted)
    }

    /// Starts an attempt, if the machine is in the epoch that the engine knows.
    pub(super) fn start(&mut self, attempt: Assignment, epoch: u32, event: &[u8]) {
        let State::Up(spoken) = &mut self.state else { return };
        if epoch != self.epoch {
            return;
        }
        spoken.line.say(event);
        self.attempts.insert(attempt.number, attempt.slot);
        let path = self.pids.join(format!("{}.{}", self.name, attempt.slot));
        let place = match self.places.entry(attempt.slot) {
            Entry::Occupied(place) => Some(place.into_mut()),
            // What cannot be written is not shown.
            Entry::Vacant(place) => {
                let file = spoken.line.pid().and_then(|pid| PidFile::create(path, pid).ok());
                file.map(|file| place.insert(file))
            }
        };
        if let Some(place) = place {
            place.note(Some(attempt.attempt));
        }
    }

    /// Has something said to it.
    pub(super) fn say(&mut self, event: &[u8]) {
        if let State::Up(spoken) = &mut self.state {
            spoken.line.say(event);
        }
    }

    /// Sends as much of the pending output as the line takes.
    pub(super) fn tell(&mut self) {
        if let State::Opening(PendingLine { spoken, .. }) | State::Up(spoken) = &mut self.state {
            spoken.line.tell();
        }
    }

    /// Has it end, and not be reached any more.
    pub(super) fn retire(&mut self, now: Duration) {
        self.is_retired = true;
        self.end(now, ORDERLY, None);
    }

    /// Closes its line, if it has one. Its process is asked to end after `patience`.
    fn end(&mut self, now: Duration, patience: Duration, failure: Option<Failure>) {
        let mut line = match std::mem::replace(&mut self.state, State::Away { again: now }) {
            State::Opening(opening) => opening.spoken.line,
            State::Up(spoken) => spoken.line,
            other => return self.state = other,
        };
        line.close();
        let (term, kill) = (Some(now + patience), now + patience + GRACE);
        self.state = State::Ending(ClosingLine { line, term, kill, failure });
        self.attempts.clear();
        self.places.clear();
    }

    /// Its agent is not there any more: nothing more arrives from its attempts.
    fn lose(&mut self, now: Duration, why: String, tell: &mut dyn FnMut(News)) {
        let is_silent = matches!(&self.state, State::Up(spoken) if now.saturating_sub(spoken.last_receipt) > self.pace.silent);
        self.epoch += 1;
        tell(News::Event(FleetEvent::Down { machine: self.id, why }));
        self.end(now, if is_silent { Duration::ZERO } else { ORDERLY }, None);
    }

    /// Handles timeouts.
    pub(super) fn look(&mut self, now: Duration, terms: &Terms, tell: &mut dyn FnMut(News)) {
        match &mut self.state {
            State::Away { again } => {
                if !self.is_retired && now >= *again {
                    self.reach(now, terms, tell);
                }
            }
            State::Opening(opening) => {
                opening.spoken.beat(now);
                if now.saturating_sub(opening.since) > self.pace.opening {
                    let why = format!("no answer within {} s", self.pace.opening.as_secs());
                    self.end(now, Duration::ZERO, Some(Failure::Missing(why)));
                }
            }
            State::Up(spoken) => {
                spoken.beat(now);
                if now.saturating_sub(spoken.last_receipt) > self.pace.silent {
                    self.lose(now, format!("it sent nothing for {} s", self.pace.silent.as_secs()), tell);
                }
            }
            State::Ending(ending) => {
                if ending.line.is_gone() {
                    self.gone(now, tell);
                } else if now >= ending.kill {
                    ending.line.signal(Signal::KILL);
                    ending.kill = now + GRACE;
                } else if ending.term.is_some_and(|at| now >= at) {
                    ending.line.signal(Signal::TERM);
                    ending.term = None;
                }
            }
        }
    }

    /// Starts an agent there.
    fn reach(&mut self, now: Duration, terms: &Terms, tell: &mut dyn FnMut(News)) {
        match self.link.open(self.pids.join(format!("link-{}", self.name))) {
            Err(error) => self.failed(now, Failure::Missing(error.to_string()), tell),
            Ok(mut opened) => {
                let hello = Hello { machine: self.name.clone(), ..terms.hello.clone() };
                opened.say(&line(&ToAgent::Hello(hello)));
                opened.tell();
                let spoken = Conversation { line: opened, last_receipt: now, said: now };
                self.state = State::Opening(PendingLine { spoken, since: now, noise: None });
            }
        }
    }

    /// The process of its line has ended.
    fn gone(&mut self, now: Duration, tell: &mut dyn FnMut(News)) {
        let State::Ending(mut ending) =
            std::mem::replace(&mut self.state, State::Away { again: now + self.pace.again })
        else {
            return;
        };
        if let Some(failure) = ending.failure {
            let words = ending.line.words();
            let with_words = |why: String| match &words {
                Some(words) => format!("{why}: {words}"),
                None => why,
            };
            let failure = match failure {
                Failure::Refused(why) => Failure::Refused(why),
                Failure::Missing(why) => Failure::Missing(with_words(why)),
            };
            self.failed(now, failure, tell);
        }
    }

    /// It could not be reached.
    fn failed(&mut self, now: Duration, failure: Failure, tell: &mut dyn FnMut(News)) {
        let pause = self.pace.again.saturating_mul(1 << self.tries.min(8)).min(AGAIN_MAX);
        self.tries += 1;
        self.state = State::Away { again: now + pause };
        let is_first = self.known == Admission::Awaited;
        if is_first {
            self.known = Admission::Reported;
            // The engine learns that it is down.
            self.epoch += 1;
        }
        match failure {
            Failure::Refused(why) if is_first => tell(News::First(self.id.index(), First::Refused(why))),
            Failure::Missing(why) if is_first => tell(News::First(self.id.index(), First::Missing(why))),
            Failure::Refused(why) => tell(News::Event(FleetEvent::Notice(format!("{}: {why}", self.name)))),
            // It is away, and that was given.
            Failure::Missing(_) => {}
        }
    }

    /// Handles its messages.
    pub(super) fn hear(&mut self, now: Duration, tell: &mut dyn FnMut(News)) {
        let events = match &mut self.state {
            State::Away { .. } => return,
            State::Opening(opening) => opening.spoken.hear(now),
            State::Up(spoken) => spoken.hear(now),
            State::Ending(ending) => {
                // Its messages do not matter any more, but a process with a full pipe does not end.
                ending.line.hear();
                return;
            }
        };
        for one in events {
            match &self.state {
                State::Opening(_) => self.hear_opening(now, one, tell),
                State::Up(_) => self.hear_up(now, one, tell),
                State::Away { .. } | State::Ending(_) => return,
            }
        }
    }

    /// Handles a message before it takes attempts.
    fn hear_opening(&mut self, now: Duration, event: LineEvent, tell: &mut dyn FnMut(News)) {
        let State::Opening(opening) = &mut self.state else { return };
        match event {
            LineEvent::Message(message) => match *message {
                FromAgent::Ready(ready) => self.ready(now, &ready, tell),
                FromAgent::Refused(Refused { why, .. }) => {
                    self.end(now, ORDERLY, Some(Failure::Refused(why)));
                }
                FromAgent::Beat {} | FromAgent::Ended { .. } => {}
            },
            LineEvent::Noise(what) => {
                opening.noise.get_or_insert(what);
                if opening.spoken.line.babbles() {
                    let why = "it printed too much before its agent started".to_owned();
                    self.end(now, Duration::ZERO, Some(Failure::Missing(why)));
                }
            }
            LineEvent::Over => {
                let rest = opening.spoken.line.rest();
                let noise = opening.noise.take().or_else(|| (!rest.is_empty()).then(|| quoted(rest)));
                let why = match noise {
                    None => "its agent ended without an answer".to_owned(),
                    Some(what) => format!("its agent ended after {what}"),
                };
                self.end(now, ORDERLY, Some(Failure::Missing(why)));
            }
        }
    }

    fn ready(&mut self, now: Duration, ready: &Ready, tell: &mut dyn FnMut(News)) {
        if let Some(why) = mismatch(ready.v, &ready.program) {
            return self.end(now, ORDERLY, Some(Failure::Refused(why)));
        }
        let State::Opening(opening) = std::mem::replace(&mut self.state, State::Away { again: now }) else {
            return;
        };
        self.state = State::Up(opening.spoken);
        self.tries = 0;
        let capacity = Capacity { processors: ready.processors, memory: ready.memory };
        tell(match std::mem::replace(&mut self.known, Admission::Reported) {
            Admission::Awaited => News::First(self.id.index(), First::Ready(capacity)),
            Admission::Reported => News::Event(FleetEvent::Up(self.id)),
            Admission::Nothing => {
                let (name, slots, speed) = (self.name.clone(), self.slots, self.speed);
                News::Event(FleetEvent::Joined(NewMachine { number: self.id, name, slots, speed, capacity }))
            }
        });
        if let Some(ends) = self.ends {
            let left = ends.saturating_sub(now);
            tell(News::Event(FleetEvent::Until { machine: self.id, left }));
        }
    }

    /// Handles a message while it takes attempts.
    fn hear_up(&mut self, now: Duration, event: LineEvent, tell: &mut dyn FnMut(News)) {
        match event {
            LineEvent::Message(message) => match *message {
                FromAgent::Ended { n, report, broken } => self.ended(n, report, broken, tell),
                FromAgent::Refused(Refused { why, .. }) => self.lose(now, why, tell),
                FromAgent::Beat {} | FromAgent::Ready(_) => {}
            },
            LineEvent::Noise(what) => {
                self.lose(now, format!("found {what}, expected a message of its agent"), tell);
            }
            LineEvent::Over => {
                let State::Up(spoken) = &mut self.state else { return };
                let words = spoken.line.words().map_or_else(String::new, |words| format!(": {words}"));
                self.lose(now, format!("its agent ended{words}"), tell);
            }
        }
    }

    /// An attempt has ended. A report of one that is not running there is a duplicate, or late.
    fn ended(&mut self, n: u64, report: Option<Report>, broken: Option<String>, tell: &mut dyn FnMut(News)) {
        let Some(slot) = self.attempts.remove(&n) else { return };
        if let Some(place) = self.places.get(&slot) {
            place.note(None);
        }
        let broken = broken.unwrap_or_else(|| "its agent gave no report".to_owned());
        tell(News::Event(FleetEvent::Ended { attempt: n, report: report.ok_or(broken) }));
    }
}
