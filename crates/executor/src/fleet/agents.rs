//! A fleet of machines, each with an agent that runs attempts.
//!
//! One thread ([`hub`]) exchanges messages with all agents, even while the engine is busy: so both sides
//! notice in time when the other is silent. It passes its events to the engine, one after the other.

pub(crate) mod host;
pub(crate) mod hub;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, PipeWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use slackline_model::MachineId;
use slackline_task::attempt::nfs_cache::VISIBLE_WITHIN;
use slackline_task::base::clock::Stopwatch;
use slackline_task::process::spec::Spec;

use self::hub::{Hub, Order};
use super::link::Link;
use super::protocol::{Hello, SILENT, ToAgent, line};
use super::{Assignment, Availability, Capacity, Fleet, FleetEvent, NewMachine, Waker};

/// How long there may be no machine at all before a run stops for now.
const FORSAKEN: Duration = Duration::from_secs(600);

/// A machine, and the way to it.
pub(crate) struct Machine {
    /// Its name, which no other has.
    pub(crate) name: String,
    /// How many attempts it takes at a time.
    pub(crate) slots: u32,
    /// Its speed, as far as it is known.
    pub(crate) speed: f64,
    /// How it is reached.
    pub(crate) link: Box<dyn Link>,
    /// How long the machine stays, if known.
    pub(crate) left: Option<Duration>,
}

/// Gets machines when the present ones do not suffice.
pub(crate) trait Supply: Send {
    /// Nothing runs although something is left to do. What comes is ordered from the fleet.
    fn more(&mut self, asked: SupplyRequest, orders: &Orders) -> Availability;
}

/// The state of the fleet when machines are requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SupplyRequest {
    /// The number of present machines.
    pub(crate) up: usize,
    /// Whether none has been there for long.
    pub(crate) is_forsaken: bool,
    /// Whether something does not start because they go too soon.
    pub(crate) is_barred: bool,
    /// How many attempts ended, well or not, since the last machines came.
    pub(crate) ended: u64,
}

/// Sends orders to the hub of agents, from any thread.
#[derive(Clone)]
pub(crate) struct Orders {
    orders: Sender<Order>,
    wake: Arc<PipeWriter>,
}

impl Orders {
    /// A machine comes, or comes back. It is reached and then there.
    pub(crate) fn add(&self, machine: Machine) {
        self.send(Order::Add(machine));
    }

    /// Machines go, and are not reached any more until they are added again.
    pub(crate) fn retire(&self, names: Vec<String>, why: String) {
        self.send(Order::Retire { names, why });
    }

    /// The user should know this.
    pub(crate) fn say(&self, what: String) {
        self.send(Order::Say(what));
    }

    fn send(&self, order: Order) {
        // Without a hub the order has no effect, and nothing is reported.
        if self.orders.send(order).is_ok() {
            // A pipe that is full has woken it already.
            let _ = (&*self.wake).write(&[1]);
        }
    }
}

/// What agents are given of the run, and where its files are.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The first message to each, with its own name.
    pub(crate) hello: Hello,
    /// The directory of the pid files.
    pub(crate) pids: PathBuf,
    /// The timeouts of agents.
    pub(crate) pace: AgentTiming,
}

/// The timeouts of agents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentTiming {
    /// An agent from which nothing arrives for this time is dropped.
    pub(crate) silent: Duration,
    /// The limit on the time to reach a machine and get its answer.
    pub(crate) opening: Duration,
    /// A machine that did not answer is retried after this time, then after twice that, and so on.
    pub(crate) again: Duration,
}

impl Default for AgentTiming {
    fn default() -> Self {
        // A machine checks for the files that it must see for as long as [`SEEN`].
        let opening = VISIBLE_WITHIN + Duration::from_secs(30);
        Self { silent: SILENT, opening, again: Duration::from_secs(2) }
    }
}

/// What became of the first try to reach a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
enum First {
    Ready(Capacity),
    /// It reports that it cannot serve this run.
    Refused(String),
    /// It is not there, or does not answer.
    Missing(String),
}

/// A message of the hub.
enum News {
    Event(FleetEvent),
    First(usize, First),
    Woken,
}

pub(crate) struct Agents {
    orders: Orders,
    news: Receiver<News>,
    waker: Waker,
    supply: Option<Box<dyn Supply>>,
    /// How many attempts ended since the last machines came.
    ended: u64,
    event: VecDeque<FleetEvent>,
    /// The capacity by machine, once known.
    capacities: Vec<Capacity>,
    /// How often machines went that ever did, as far as the engine knows.
    epochs: BTreeMap<MachineId, u32>,
    /// The present machines, as far as the engine knows.
    up: BTreeSet<MachineId>,
    clock: Stopwatch,
    /// Since when no machine is present.
    forsaken: Option<Duration>,
    thread: Option<JoinHandle<()>>,
}

impl Agents {
    /// Starts an agent on each machine, and waits until all have answered. For machines that do not answer,
    /// the first event is [`FleetEvent::Down`]; they may join later.
    ///
    /// # Errors
    /// A machine that reports that it cannot serve this run; no machine that answers.
    pub(crate) fn open(
        machines: Vec<Machine>,
        terms: Terms,
        supply: Option<Box<dyn Supply>>,
    ) -> io::Result<Self> {
        std::fs::create_dir_all(&terms.pids).map_err(|e| {
            io::Error::new(e.kind(), format!("{}: cannot be made: {e}", terms.pids.display()))
        })?;
        let (woken, wake) = io::pipe()?;
        rustix::io::ioctl_fionbio(&woken, true)?;
        rustix::io::ioctl_fionbio(&wake, true)?;
        let (orders, ordered) = channel();
        let (says, news) = channel();
        let (waker_says, names) = (says.clone(), machines.iter().map(|m| m.name.clone()).collect::<Vec<_>>());
        let hub = Hub::new(machines, terms, ordered, woken, says);
        let thread = thread::Builder::new().name("agents".to_owned()).spawn(move || hub.run())?;
        let waker: Waker = Arc::new(move || {
            // The receiver may have ended.
            let _ = waker_says.send(News::Woken);
        });
        let none = Capacity { processors: 0, memory: None };
        let mut agents = Self {
            orders: Orders { orders, wake: Arc::new(wake) },
            news,
            waker,
            supply,
            ended: 0,
            event: VecDeque::new(),
            capacities: vec![none; names.len()],
            epochs: BTreeMap::new(),
            up: BTreeSet::new(),
            clock: Stopwatch::start(),
            forsaken: None,
            thread: Some(thread),
        };
        agents.meet(&names)?;
        Ok(agents)
    }

    /// Waits until every machine has answered, or is known not to.
    fn meet(&mut self, names: &[String]) -> io::Result<()> {
        let mut missing = Vec::new();
        let mut open = names.len();
        while open > 0 {
            let first = match self.news.recv() {
                Ok(News::First(k, first)) => (k, first),
                Ok(News::Event(event)) => {
                    self.event.push_back(event);
                    continue;
                }
                Ok(News::Woken) => continue,
                Err(_) => return Err(io::Error::other("the thread that reads from the agents has ended")),
            };
            open -= 1;
            match first {
                (k, First::Ready(capacity)) => {
                    self.capacities[k] = capacity;
                    self.up.insert(MachineId::from(k));
                }
                (k, First::Refused(why)) => return Err(io::Error::other(format!("{}: {why}", names[k]))),
                (k, First::Missing(why)) => missing.push((k, why)),
            }
        }
        if missing.len() == names.len() {
            let all: Vec<String> = missing.iter().map(|(k, why)| format!("{}: {why}", names[*k])).collect();
            return Err(io::Error::other(format!("no machine responds: {}", all.join("; "))));
        }
        for (k, why) in missing.into_iter().rev() {
            self.event.push_front(FleetEvent::Down { machine: MachineId(k as u32), why });
        }
        Ok(())
    }

    /// Notes the state of a machine from an event for the engine.
    fn note(&mut self, event: &FleetEvent) {
        match event {
            FleetEvent::Down { machine, .. } => {
                *self.epochs.entry(*machine).or_default() += 1;
                self.up.remove(machine);
            }
            FleetEvent::Up(machine) | FleetEvent::Joined(NewMachine { number: machine, .. }) => {
                if self.up.is_empty() {
                    self.ended = 0;
                }
                self.up.insert(*machine);
            }
            FleetEvent::Ended { .. } => self.ended += 1,
            FleetEvent::Until { .. } | FleetEvent::Notice(_) => {}
        }
        let is_forsaken = self.up.is_empty();
        let since = self.forsaken.unwrap_or_else(|| self.clock.elapsed());
        self.forsaken = is_forsaken.then_some(since);
    }
}

impl Fleet for Agents {
    fn machines(&self) -> Vec<Capacity> {
        self.capacities.clone()
    }

    fn changes(&self) -> bool {
        true
    }

    fn start(&mut self, attempt: Assignment, spec: &Spec) -> io::Result<()> {
        let epoch = self.epochs.get(&attempt.machine).copied().unwrap_or(0);
        let line = line(&ToAgent::Start { n: attempt.number, spec: Box::new(spec.clone()) });
        self.orders.send(Order::Start { attempt, epoch, line });
        Ok(())
    }

    fn stop(&mut self, attempt: u64) {
        self.orders.send(Order::Stop(attempt));
    }

    fn next(&mut self, patience: Duration) -> Option<FleetEvent> {
        let until = self.clock.elapsed() + patience;
        let event = loop {
            if let Some(event) = self.event.pop_front() {
                break event;
            }
            match self.news.recv_timeout(until.saturating_sub(self.clock.elapsed())) {
                Ok(News::Event(event)) => break event,
                Ok(News::Woken) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return None;
                }
                Ok(News::First(..)) => {}
            }
        };
        self.note(&event);
        Some(event)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn availability(&mut self, is_barred: bool) -> Availability {
        let alone = self.forsaken.map(|since| self.clock.elapsed().saturating_sub(since));
        let is_forsaken = alone.is_some_and(|alone| alone > FORSAKEN);
        if let Some(supply) = &mut self.supply {
            let (up, ended) = (self.up.len(), self.ended);
            return supply.more(SupplyRequest { up, is_forsaken, is_barred, ended }, &self.orders);
        }
        match alone {
            None => Availability::Same,
            Some(_) if is_forsaken => Availability::Over(format!(
                "no machine has responded for {} minutes",
                FORSAKEN.as_secs() / 60
            )),
            Some(_) => Availability::Coming,
        }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.orders.send(Order::End);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
