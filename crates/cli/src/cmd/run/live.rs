//! What is seen while a run goes on: bars on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use slackline::report::number::{Unit, counted, number};
use slackline_local::{Happening, Observer, Session, TaskId};
use slackline_model::Time;
use slackline_model::cost::is_late;

use super::forecast::{Forecast, Prospect};
use crate::out;

/// Flows that get a bar of their own; the rest share one.
const BARS: usize = 12;

/// A job as it is shown.
struct Job {
    name: String,
    flow: usize,
    maps: Count,
    reduces: Count,
}

#[derive(Clone, Copy, Default)]
struct Count {
    total: usize,
    done: usize,
    running: usize,
}

/// Whoever watches the run for the person at the terminal.
pub(super) struct Live {
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    slots: u32,
    running: u32,
    /// How often tasks have failed in this session, of so many times.
    failures: BTreeMap<TaskId, u16>,
    attempts_max: u16,
    forecast: Forecast,
    bars: Option<Bars>,
}

struct Flow {
    name: String,
    deadline: Option<f64>,
    total: usize,
    done: usize,
}

struct Bars {
    /// One for each of the first flows.
    flows: Vec<ProgressBar>,
    /// One for all others together.
    rest: Option<ProgressBar>,
    status: ProgressBar,
}

impl Live {
    pub(super) fn new(session: &Session, forecast: Forecast, attempts_max: u16) -> Self {
        let done = session.done();
        let mut flows: Vec<Flow> = Vec::new();
        let mut jobs = Vec::new();
        for (index, plan) in (0..).zip(session.jobs()) {
            if flows.last().is_none_or(|flow| flow.name != plan.flow) {
                let draft = session.draft().flows.iter().find(|flow| flow.id == plan.flow);
                let deadline = draft.and_then(|flow| flow.deadline);
                flows.push(Flow { name: plan.flow.clone(), deadline, total: 0, done: 0 });
            }
            let count = |reduce: bool, total: usize| {
                let done = done.iter().filter(|id| id.job == index && id.reduce == reduce).count();
                Count { total, done, running: 0 }
            };
            let (maps, reduces) = (count(false, plan.maps.len()), count(true, plan.reducers as usize));
            let flow = flows.len() - 1;
            flows[flow].total += maps.total + reduces.total;
            flows[flow].done += maps.done + reduces.done;
            jobs.push(Job { name: format!("{}/{}", plan.flow, plan.job), flow, maps, reduces });
        }
        let slots = session.draft().machines.iter().map(|machine| match machine.slots {
            slackline_model::cluster::Slots::Universal(n) => n,
            slackline_model::cluster::Slots::Typed { map, reduce } => map + reduce,
        });
        let slots = slots.sum();
        let bars = std::io::stderr().is_terminal().then(|| Bars::new(&flows));
        Self { jobs, flows, slots, running: 0, failures: BTreeMap::new(), attempts_max, forecast, bars }
    }

    fn count(&mut self, id: TaskId) -> &mut Count {
        let job = &mut self.jobs[id.job as usize];
        if id.reduce { &mut job.reduces } else { &mut job.maps }
    }

    /// `nightly/extract map 3`.
    fn name(&self, id: TaskId) -> String {
        let kind = if id.reduce { "reduce" } else { "map" };
        format!("{} {kind} {}", self.jobs[id.job as usize].name, id.task)
    }

    fn ended(&mut self, id: TaskId) {
        let count = self.count(id);
        count.running = count.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
    }

    fn say(&self, now: Time, line: &str) {
        let text = format!("{:>8.1} s  {line}", now.seconds());
        match &self.bars {
            Some(bars) => bars.status.println(text),
            None => out::talk(text),
        }
    }

    fn draw(&self, now: Time) {
        let Some(bars) = &self.bars else { return };
        for (flow, bar) in self.flows.iter().zip(&bars.flows) {
            bar.set_position(flow.done as u64);
            bar.set_message(self.prospect(flow));
        }
        if let Some(bar) = &bars.rest {
            let others = &self.flows[BARS..];
            bar.set_position(others.iter().map(|flow| flow.done as u64).sum());
            let done = others.iter().filter(|flow| flow.done == flow.total).count();
            let late = others.iter().filter(|flow| self.is_late(flow)).count();
            bar.set_message(format!("{done} done, {late} about to be late"));
        }
        let doing: Vec<String> = (self.jobs.iter())
            .flat_map(|job| [(job, "map", job.maps), (job, "reduce", job.reduces)])
            .filter(|(.., count)| count.running > 0)
            .map(|(job, kind, count)| format!("{} {kind} {}/{}", job.name, count.done, count.total))
            .collect();
        bars.status.set_message(format!(
            "{:.1} s, {} of {} slots: {}",
            now.seconds(),
            self.running,
            self.slots,
            doing.join(", ")
        ));
    }

    /// Whether a flow that is not done is expected to miss its deadline.
    fn is_late(&self, flow: &Flow) -> bool {
        match (self.forecast.of(&flow.name), flow.deadline) {
            (Prospect::Done(at), Some(deadline)) => flow.done < flow.total && is_late(at, deadline),
            _ => false,
        }
    }

    /// When a flow is expected to be done, against its deadline.
    fn prospect(&self, flow: &Flow) -> String {
        let seconds = |at: f64| format!("{} s", number(at, Unit::Measure));
        let deadline = flow.deadline.map(|at| format!("deadline {}", seconds(at)));
        let expected = match self.forecast.of(&flow.name) {
            _ if flow.done == flow.total => Some("done".to_owned()),
            Prospect::Failed => Some("failed".to_owned()),
            Prospect::Unknown => None,
            Prospect::Done(at) if self.is_late(flow) => Some(format!("about {}, late", seconds(at))),
            Prospect::Done(at) => Some(format!("about {}", seconds(at))),
        };
        expected.into_iter().chain(deadline).collect::<Vec<_>>().join(", ")
    }
}

impl Bars {
    fn new(flows: &[Flow]) -> Self {
        let all = MultiProgress::new();
        let style = ProgressStyle::with_template("{prefix:>20!} {bar:30} {pos:>5}/{len} {msg}")
            .expect("invariant: the template is valid");
        let bar = |name: String, total: usize| {
            let bar = all.add(ProgressBar::new(total as u64).with_style(style.clone()));
            bar.set_prefix(name);
            bar
        };
        let bars = flows.iter().take(BARS).map(|flow| bar(flow.name.clone(), flow.total)).collect();
        let others = flows.get(BARS..).unwrap_or_default();
        let total = others.iter().map(|flow| flow.total).sum();
        let rest = (!others.is_empty()).then(|| bar(format!("{} other flows", others.len()), total));
        let line = ProgressStyle::with_template("{wide_msg}").expect("invariant: the template is valid");
        let status = all.add(ProgressBar::new_spinner().with_style(line));
        Self { flows: bars, rest, status }
    }
}

impl Observer for Live {
    fn happened(&mut self, now: Time, what: Happening<'_>) {
        self.forecast.note(now, what);
        match what {
            Happening::Started(id) => {
                self.count(id).running += 1;
                self.running += 1;
            }
            Happening::Done(id, _) => {
                self.ended(id);
                self.count(id).done += 1;
                let flow = self.jobs[id.job as usize].flow;
                self.flows[flow].done += 1;
            }
            Happening::Failed { id, message, log, goes_on } => {
                self.ended(id);
                let log = log.map_or_else(String::new, |log| format!(" (log: {})", log.display()));
                let which = if goes_on {
                    "a second attempt beside the first".to_owned()
                } else {
                    let failures = self.failures.entry(id).or_default();
                    *failures += 1;
                    format!("attempt {failures} of {}", self.attempts_max)
                };
                self.say(now, &format!("{} failed, {which}: {message}{log}", self.name(id)));
            }
            Happening::Killed(id) => self.ended(id),
            Happening::JobDone { job, skipped } => {
                let job = &self.jobs[job as usize];
                let prospect = self.prospect(&self.flows[job.flow]);
                let flow = if prospect.is_empty() { prospect } else { format!("; flow {prospect}") };
                let skipped = match skipped {
                    0 => String::new(),
                    n => format!(", {} skipped", counted(n, "record")),
                };
                let tasks = format!("{} maps, {} reduces", job.maps.total, job.reduces.total);
                self.say(now, &format!("{} done ({tasks}{skipped}){flow}", job.name));
            }
            Happening::Tick => {}
        }
        self.draw(now);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.flows.iter().chain(&bars.rest).chain([&bars.status]).for_each(ProgressBar::finish_and_clear);
        }
    }
}
