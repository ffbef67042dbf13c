//! What is seen while a run goes on: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use slackline_local::{Happening, Observer, Session, TaskId};
use slackline_model::Time;
use slackline_model::cost::is_late;
use slackline_report::number::{Unit, number};

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
    /// One a flow, then one for all that have none.
    flows: Vec<ProgressBar>,
    status: ProgressBar,
}

impl Live {
    pub(super) fn new(session: &Session, forecast: Forecast) -> Self {
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
        Self { jobs, flows, slots, running: 0, forecast, bars }
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

    /// When a flow is expected to be done, against its deadline.
    fn prospect(&self, flow: &Flow) -> String {
        let seconds = |at: f64| format!("{} s", number(at, Unit::Measure));
        let deadline = flow.deadline.map(|at| format!("deadline {}", seconds(at)));
        let expected = match self.forecast.of(&flow.name) {
            _ if flow.done == flow.total => Some("done".to_owned()),
            Prospect::Failed => Some("failed".to_owned()),
            Prospect::Unknown => None,
            Prospect::Done(at) => Some(match flow.deadline {
                Some(deadline) if is_late(at, deadline) => format!("about {}, late", seconds(at)),
                _ => format!("about {}", seconds(at)),
            }),
        };
        expected.into_iter().chain(deadline).collect::<Vec<_>>().join(", ")
    }
}

impl Bars {
    fn new(flows: &[Flow]) -> Self {
        let all = MultiProgress::new();
        let style = ProgressStyle::with_template("{prefix:>20!} {bar:30} {pos:>5}/{len} {msg}")
            .expect("invariant: the template is valid");
        let bar = |flow: &Flow| {
            let bar = all.add(ProgressBar::new(flow.total as u64).with_style(style.clone()));
            bar.set_prefix(flow.name.clone());
            bar
        };
        let bars = flows.iter().take(BARS).map(bar).collect();
        let line = ProgressStyle::with_template("{wide_msg}").expect("invariant: the template is valid");
        let status = all.add(ProgressBar::new_spinner().with_style(line));
        Self { flows: bars, status }
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
            Happening::Failed { id, message, log } => {
                self.ended(id);
                let log = log.map_or_else(String::new, |log| format!(" (log: {})", log.display()));
                self.say(now, &format!("{} failed: {message}{log}", self.name(id)));
            }
            Happening::Killed(id) => self.ended(id),
            Happening::JobDone(index) => {
                let job = &self.jobs[index as usize];
                let prospect = self.prospect(&self.flows[job.flow]);
                let flow = if prospect.is_empty() { prospect } else { format!("; flow {prospect}") };
                self.say(
                    now,
                    &format!(
                        "{} done ({} maps, {} reduces){flow}",
                        job.name, job.maps.total, job.reduces.total
                    ),
                );
            }
            Happening::Tick => {}
        }
        self.draw(now);
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(bars) = &self.bars {
            bars.flows.iter().chain([&bars.status]).for_each(ProgressBar::finish_and_clear);
        }
    }
}
