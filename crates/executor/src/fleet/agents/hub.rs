//! The thread that reads from and writes to all agents.

use std::io::{PipeReader, Read};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use slackline_model::MachineId;
use slackline_task::base::clock::Stopwatch;

use super::host::Host;
use super::{Machine, News, Terms};
use crate::fleet::protocol::{ToAgent, line};
use crate::fleet::{Assignment, FleetEvent};

/// The longest sleep: timeouts are checked at this interval, and ends of processes, which send no signal,
/// more often.
const TURN: Duration = Duration::from_millis(500);
const TURN_OF_ENDS: Duration = Duration::from_millis(10);

/// A turn of this length means that this process was stopped meanwhile: then silence is no fault of the
/// agents.
const STOPPED: Duration = Duration::from_secs(2);

/// Messages to the hub.
pub(super) enum Order {
    /// An attempt begins, unless its machine went more often than the engine knows.
    Start {
        attempt: Assignment,
        epoch: u32,
        /// The message to the agent.
        line: Vec<u8>,
    },
    /// An attempt is stopped.
    Stop(u64),
    /// A machine comes, or comes back.
    Add(Machine),
    Retire {
        names: Vec<String>,
        why: String,
    },
    /// Something is to be given.
    Say(String),
    /// All agents end, and so does the hub when they have.
    End,
}

/// Listens to all agents.
pub(super) struct Hub {
    hosts: Vec<Host>,
    terms: Terms,
    orders: Receiver<Order>,
    woken: PipeReader,
    news: Sender<News>,
    clock: Stopwatch,
    /// How long this process was stopped.
    stopped: Duration,
    /// When the clock was checked last.
    looked: Duration,
    is_ending: bool,
}

impl Hub {
    pub(super) fn new(
        machines: Vec<Machine>,
        terms: Terms,
        orders: Receiver<Order>,
        woken: PipeReader,
        news: Sender<News>,
    ) -> Self {
        let hosts = (0..).zip(machines);
        let hosts =
            hosts.map(|(k, machine)| Host::new(MachineId(k), machine, Duration::ZERO, &terms)).collect();
        let (clock, stopped, looked) = (Stopwatch::start(), Duration::ZERO, Duration::ZERO);
        Self { hosts, terms, orders, woken, news, clock, stopped, looked, is_ending: false }
    }

    /// Listens and speaks until all agents have ended.
    pub(super) fn run(mut self) {
        loop {
            let now = self.now();
            let Self { hosts, terms, news, .. } = &mut self;
            let mut tell = |what| {
                // The engine may have no time for it any more.
                let _ = news.send(what);
            };
            for host in hosts.iter_mut() {
                host.look(now, terms, &mut tell);
            }
            if self.is_ending && self.hosts.iter().all(Host::is_gone) {
                return;
            }
            let ready = self.wait();
            self.obey();
            let now = self.now();
            let Self { hosts, news, .. } = &mut self;
            let mut tell = |what| {
                let _ = news.send(what);
            };
            for k in ready {
                hosts[k].hear(now, &mut tell);
            }
        }
    }

    /// How long this process has run, without the time for which it was stopped.
    fn now(&mut self) -> Duration {
        let now = self.clock.elapsed();
        let turn = now.saturating_sub(self.looked);
        if turn > STOPPED {
            self.stopped += turn;
        }
        self.looked = now;
        now.saturating_sub(self.stopped)
    }

    /// Waits until an agent has said something or can be given more, or there is an order. Gives the machines
    /// to attend to.
    fn wait(&mut self) -> Vec<usize> {
        let mut whose = vec![None];
        let mut fds = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for (k, host) in self.hosts.iter().enumerate() {
            let Some(wanted) = host.wanted() else { continue };
            for read in wanted.reads {
                whose.push(Some(k));
                fds.push(PollFd::from_borrowed_fd(read, PollFlags::IN));
            }
            if let Some(write) = wanted.write {
                whose.push(Some(k));
                fds.push(PollFd::from_borrowed_fd(write, PollFlags::OUT));
            }
        }
        let turn = if self.hosts.iter().any(Host::is_ending) { TURN_OF_ENDS } else { TURN };
        let timeout = Timespec { tv_sec: 0, tv_nsec: turn.subsec_nanos().into() };
        if poll(&mut fds, Some(&timeout)).is_err() {
            // A signal: the next turn checks again.
            return Vec::new();
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let mut ready: Vec<usize> =
            whose.into_iter().zip(&fds).filter(|(_, fd)| is_ready(fd)).filter_map(|(k, _)| k).collect();
        ready.dedup();
        ready
    }

    /// A machine comes, or one that is known comes back.
    fn add(&mut self, machine: Machine, now: Duration) {
        if let Some(host) = self.hosts.iter_mut().find(|host| host.is_named(&machine.name)) {
            return host.readmit(machine, now);
        }
        let id = MachineId::from(self.hosts.len());
        self.hosts.push(Host::new(id, machine, now, &self.terms).joining());
    }

    /// Carries out what was ordered.
    fn obey(&mut self) {
        let mut bytes = [0; 256];
        while matches!(self.woken.read(&mut bytes), Ok(read) if read > 0) {}
        let now = self.now();
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Start { attempt, epoch, line } => {
                    self.hosts[attempt.machine.index()].start(attempt, epoch, &line);
                }
                Order::Stop(number) => {
                    if let Some(host) = self.hosts.iter_mut().find(|host| host.has(number)) {
                        host.say(&line(&ToAgent::Stop(number)));
                    }
                }
                Order::Add(machine) if !self.is_ending => self.add(machine, now),
                Order::Add(_) => {}
                Order::Say(what) => drop(self.news.send(News::Event(FleetEvent::Notice(what)))),
                Order::Retire { names, why } => {
                    let Self { hosts, news, .. } = self;
                    let retired =
                        hosts.iter_mut().filter(|host| names.iter().any(|name| host.is_named(name)));
                    retired.for_each(|host| host.dismiss(now, &why, &mut |what| drop(news.send(what))));
                }
                Order::End => {
                    self.is_ending = true;
                    self.hosts.iter_mut().for_each(|host| host.retire(now));
                }
            }
        }
        self.hosts.iter_mut().for_each(Host::tell);
    }
}
