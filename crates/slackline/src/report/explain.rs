//! Explains in text why a flow or a job waits: how late it is and why, the phases on the critical chain, the
//! flows that held the slots, and changes that would meet the deadline.

mod advice;
mod cluster_events;
mod document;
mod open;

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::explain::{Blocked, Blocker, Explanation, FlowTimes, PhaseStory, Verdict};
use slackline_model::id::TiVec;
use slackline_model::{FlowId, Instance, JobId, PhaseId, Time};

use crate::report::number::{Unit, column, counted, duration, instant, instants, number};
use crate::report::table::{Align, Table, View, fitted, wrapped};

pub use cluster_events::ClusterEvents;
pub use document::{csv, json};
pub use open::{Open, OpenPhase};

/// The number of flows that are named as holders of slots.
const BLOCKERS: usize = 5;
/// The number of phases outside the chain that are shown.
const PHASES: usize = 20;
/// The number of failed tasks that are named.
const FAILURES: usize = 5;
/// The fraction of the time below which waits do not count as a reason.
const HARDLY: f64 = 0.1;
/// The fraction of the time of a flow below which a wait is not mentioned as a reason or in advice.
pub(super) const NEGLIGIBLE: f64 = 0.01;
/// The fraction of idle slots from which on a remark is made.
const IDLE: f64 = 0.01;

/// The data that an explanation is written from.
#[derive(Clone, Copy, Debug)]
pub struct ExplainInput<'a> {
    /// The workload.
    pub instance: &'a Instance,
    /// The policy of the schedule.
    pub policy: &'a str,
    /// Whether the schedule is a plan that has not run.
    pub plan: bool,
    /// The explanation.
    pub explanation: &'a Explanation,
    /// By flow: its start and its completion.
    pub flows: &'a TiVec<FlowId, FlowTimes>,
    /// The progress of a run that has not ended.
    pub open: Option<&'a Open>,
    /// The events on the Hadoop cluster, for a run on one.
    pub there: Option<&'a ClusterEvents>,
}

/// `1st`, `2nd`, `11th`.
fn ordinal(n: usize) -> String {
    let ending = match (n % 10, n % 100) {
        (1, r) if r != 11 => "st",
        (2, r) if r != 12 => "nd",
        (3, r) if r != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

impl ExplainInput<'_> {
    /// The words for the past or, in a plan, for the future.
    fn say<'w>(&self, past: &'w str, future: &'w str) -> &'w str {
        if self.plan { future } else { past }
    }

    /// A point in time.
    fn at(&self, seconds: f64) -> String {
        instant(seconds, self.instance.start())
    }

    /// The date of a time in a run that has not ended, if [`Self::at`] omits the date and the date is not
    /// today's.
    fn day(&self, seconds: f64) -> Option<String> {
        let (start, open) = (self.instance.start()?, self.open?);
        let [at, today] = [start.after(seconds)?, start.after(open.now)?];
        let is_first = at.date() == start.moment().date();
        (is_first && at.date() != today.date()).then(|| at.strftime("%-d %b ").to_string())
    }

    fn flow_name(&self, flow: FlowId) -> &str {
        &self.instance.flow(flow).id
    }

    fn job_name(&self, job: JobId) -> &str {
        &self.instance.job(job).id
    }

    /// `job map`, within its flow; the name of a job without reduces, such as a plain command.
    fn phase_name(&self, phase: PhaseId) -> String {
        let of = self.instance.phase(phase);
        match self.instance.job(of.job).reduce {
            None => self.job_name(of.job).to_owned(),
            Some(_) => format!("{} {}", self.job_name(of.job), of.kind),
        }
    }

    /// `task 3 of job map`; the name of the job if it has one task.
    fn task_name(&self, phase: PhaseId, task: u32) -> String {
        let has_one_task = self.instance.phase(phase).tasks().is_some_and(|tasks| tasks.count() == 1);
        let name = self.phase_name(phase);
        if has_one_task { name } else { format!("task {task} of {name}") }
    }

    /// The subject: the flow, or the job and its flow.
    fn subject(&self) -> String {
        let flow = self.flow_name(self.explanation.flow);
        self.explanation
            .job
            .map_or_else(|| flow.to_owned(), |job| format!("{} of {flow}", self.job_name(job)))
    }

    /// The text.
    pub fn text(&self, view: &View) -> String {
        let why = if self.explanation.cause.is_some() { self.cause_text() } else { self.why() };
        let sentences = format!("{}\n{}\n{why}{}", self.verdict(), self.place(), self.failures());
        let mut out = fitted(&sentences, view.width);
        out.push_str(&self.open_text(view));
        out.push_str(&self.waits(view));
        out.push_str(&self.starts_text(view));
        out.push_str(&self.blockers(view));
        let advice = self.advice();
        if !advice.is_empty() {
            out.extend([
                "\n",
                match self.open {
                    Some(_) => "what would meet the deadline\n",
                    None => self.say("what would have met the deadline\n", "what would meet the deadline\n"),
                },
            ]);
            out.push_str(&wrapped(&advice, view.width));
        }
        out.push_str(&self.phases(view));
        out
    }

    /// `billing under fair: late by 412 s (finished at 1,492 s, deadline 1,080 s)`.
    fn verdict(&self) -> String {
        let explanation = self.explanation;
        let flow = self.flow_name(explanation.flow);
        let (head, finished) = (format!("{flow} under {}:", self.policy), self.say("finished", "finishes"));
        let deadline = explanation.deadline.as_ref();
        match (explanation.completed, deadline) {
            (None, deadline) => {
                let what = match self.open {
                    _ if explanation.failed => "failed",
                    Some(open) if deadline.is_some_and(|deadline| open.now > deadline.at) => {
                        "not finished yet, and already late"
                    }
                    Some(_) => "not finished yet",
                    None => "not finished",
                };
                let deadline = deadline.map(|deadline| format!(", deadline {}", self.at(deadline.at)));
                format!("{head} {what}{}", deadline.unwrap_or_default())
            }
            (Some(completed), None) => format!("{head} {finished} at {}, no deadline", self.at(completed)),
            (Some(completed), Some(deadline)) => {
                let by = duration((completed - deadline.at).abs());
                let how = match deadline.verdict {
                    Verdict::Met => format!("on time with {by} to spare"),
                    _ => format!("{} {by}", self.say("late by", "will be late by")),
                };
                let (at, due) = (self.at(completed), self.at(deadline.at));
                format!("{head} {how} ({finished} at {at}, deadline {due})")
            }
        }
    }

    /// Its release, start and completion, and its rank among all flows.
    fn place(&self) -> String {
        let explanation = self.explanation;
        let order = explanation.order;
        let of = |place: Option<usize>, of: &str| {
            place.map_or_else(String::new, |place| format!(" ({} {of})", ordinal(place)))
        };
        let day = self.day(explanation.released).unwrap_or_default();
        let mut line = format!("released at {day}{}", self.at(explanation.released));
        match explanation.started {
            Some(started) => {
                let word = self.say("started", "starts");
                let place = of(order.started, &format!("of {}", counted(order.of as u64, "flow")));
                let _ = write!(line, ", {word} at {}{place}", self.at(started));
            }
            None if self.open.is_some() => line.push_str(", none of its tasks has started yet"),
            None => line.push_str(self.say(", never held a slot", ", never holds a slot")),
        }
        if let Some(completed) = explanation.completed {
            let place = of(order.completed, "to finish");
            let after = duration(completed - explanation.released);
            let word = self.say("finished", "finishes");
            let _ = write!(line, ", {word} {after} after its release{place}");
        }
        line
    }

    /// The main reason for the lateness, or for the time beyond that of the flow alone on the cluster. If the
    /// flow ever wanted more slots than it had, also the main holder of the slots.
    fn why(&self) -> String {
        let explanation = self.explanation;
        let blocked = &explanation.blocked;
        let total = explanation.until - explanation.released;
        let mut out = self.long_chain();
        if blocked.seconds <= 0.0 || total <= 0.0 {
            return out;
        }
        let starts = self.starts();
        // Time with some of the slots counts as waiting only as far as all slots would have shortened it.
        let lost = (explanation.waits.lost - explanation.waits.none).clamp(0.0, starts.below);
        let own = starts.cap + starts.last;
        let waited = starts.none + starts.submission + starts.ams + starts.containers + lost;
        // For a late flow, its own work counts only as far as it exceeds the time that the deadline allows.
        // For other flows it is a reason if there is almost no waiting.
        let excess = match explanation.deadline.as_ref().filter(|of| of.verdict != Verdict::Met) {
            Some(deadline) if explanation.completed.is_some() && explanation.job.is_none() => {
                (own + starts.below - lost) - (deadline.at - explanation.released).max(0.0)
            }
            _ if waited < HARDLY * total => own,
            _ => 0.0,
        };
        // Whether the flow waited for slots then, the time, and what of it counts in the choice of the
        // reason.
        let reasons = [
            ("no slot", true, starts.none, starts.none),
            (
                "its jobs were not submitted (no slot or no ApplicationMaster)",
                true,
                starts.submission,
                starts.submission,
            ),
            ("the start of its ApplicationMasters", false, starts.ams, starts.ams),
            ("the start of its containers", false, starts.containers, starts.containers),
            ("too few slots", true, starts.below, lost),
            ("its own work, with all the slots it could use or its last tasks running", true, own, excess),
        ];
        let (reason, is_for_slots, most, _) =
            reasons.into_iter().fold(reasons[0], |a, b| if b.3 > a.3 { b } else { a });
        let is_own = most == own;
        if most < NEGLIGIBLE * total || is_own && !out.is_empty() {
            return out;
        }
        let word = if out.is_empty() { "why" } else { "also" };
        let _ = writeln!(out, "{word}: {reason} for {} of {}", duration(most), duration(total));
        if !is_for_slots {
            return out;
        }
        let word = self.say("the slots it wanted were", "the slots it wants are");
        match blocked.others.first() {
            Some(first) if first.slot_seconds >= blocked.idle => {
                let flow = self.instance.job(first.job).flow;
                let deadline = self.instance.flow(flow).deadline.map(Time::seconds);
                let slack_note = self.slack_note(flow, deadline, 0.0);
                let slack_note = if slack_note.is_empty() { slack_note } else { format!(" ({slack_note})") };
                let name = format!("{}/{}", self.flow_name(flow), self.job_name(first.job));
                out.extend(["     ", word, " held by ", &name, &slack_note, " more than by any other\n"]);
            }
            _ if blocked.idle > blocked.own => out.extend(["     ", word, " mostly idle\n"]),
            _ => {}
        }
        out
    }

    /// Says that the longest chain of jobs of a late flow takes longer than its deadline allows.
    fn long_chain(&self) -> String {
        let deadline = self.explanation.deadline.as_ref();
        match deadline.filter(|of| of.verdict == Verdict::Impossible && self.explanation.job.is_none()) {
            None => String::new(),
            Some(deadline) => {
                let [least, allowed] =
                    [deadline.least, (deadline.at - self.explanation.released).max(0.0)].map(duration);
                format!(
                    "why: its own chain of jobs takes at least {least}, but its deadline allows {allowed}\n"
                )
            }
        }
    }

    /// The failed job of a failed flow, with its flow, and the jobs of the flow that did not run because of it.
    fn cause(&self) -> Option<([&str; 2], Vec<&str>)> {
        let cause = self.explanation.cause.as_ref()?;
        let flow = self.explanation.flow;
        let jobs = self.instance.flow(flow).jobs();
        let of = |job: JobId| {
            self.explanation.phases.iter().filter(move |story| self.instance.phase(story.phase).job == job)
        };
        let has_not_run = |&job: &JobId| {
            job != cause.job && of(job).next().is_some() && of(job).all(|story| story.mean.is_none())
        };
        let names = [self.flow_name(self.instance.job(cause.job).flow), self.job_name(cause.job)];
        Some((names, jobs.filter(has_not_run).map(|job| self.job_name(job)).collect()))
    }

    /// The cause of a failure in words.
    fn cause_text(&self) -> String {
        let Some(([flow, job], not_run)) = self.cause() else { return String::new() };
        let reason = self.explanation.cause.as_ref().and_then(|cause| cause.reason.as_ref());
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let so = match not_run.len() {
            0 => String::new(),
            _ => format!("; these jobs did not run because of it: {}", not_run.join(", ")),
        };
        format!("cause: job {flow}/{job} failed{reason}{so}\n")
    }

    fn failures(&self) -> String {
        let failures = &self.explanation.failures;
        let mut out = String::new();
        for failure in failures.iter().take(FAILURES) {
            let times = counted(u64::from(failure.attempts), "time");
            let (task, last) = (self.task_name(failure.phase, failure.task), self.at(failure.last));
            let _ = writeln!(out, "failed: {task}, {times}, the last at {last}");
        }
        if failures.len() > FAILURES {
            let _ = writeln!(out, "failed: {} more", counted((failures.len() - FAILURES) as u64, "task"));
        }
        out + &self.losses()
    }

    /// The output that was lost with machines.
    fn losses(&self) -> String {
        let losses = &self.explanation.losses;
        let mut out = String::new();
        for loss in losses.iter().take(FAILURES) {
            let stopped = (loss.stopped > 0).then(|| counted(loss.stopped, "attempt") + " stopped");
            let lost = (loss.lost > 0).then(|| format!("the output of {} lost", counted(loss.lost, "task")));
            let what: Vec<String> = stopped.into_iter().chain(lost).collect();
            let machine = self.instance.cluster().machine_name(loss.machine);
            let _ = writeln!(out, "lost on {machine}: {}", what.join(", "));
        }
        if losses.len() > FAILURES {
            let _ = writeln!(out, "lost on {} more", counted((losses.len() - FAILURES) as u64, "machine"));
        }
        out
    }

    /// A table of how the time is divided.
    fn waits(&self, view: &View) -> String {
        let explanation = self.explanation;
        let total = explanation.until - explanation.released;
        if explanation.chain.is_empty() {
            return String::new();
        }
        let starts = self.starts();
        let mut entries = vec![
            ("waiting: no slot, though it had tasks to start", starts.none),
            ("partial: fewer slots than it could use", starts.below),
            ("full: all the slots it could use", starts.cap),
            ("tail: its last tasks, nothing left to start", starts.last),
        ];
        if self.there.is_some() {
            let there = [
                ("its jobs not submitted yet", starts.submission),
                ("its ApplicationMasters start", starts.ams),
                ("its containers start", starts.containers),
            ];
            entries.splice(0..0, there);
        }
        let values: Vec<Option<f64>> = entries.iter().map(|&(_, value)| Some(value)).collect();
        let end = if self.open.is_some() { "now" } else { "end" };
        let mut table = Table::new(&[
            (&format!("{} from release to {end}", self.subject()), Align::Left),
            ("time", Align::Right),
            ("share", Align::Right),
        ]);
        for (((name, _), cell), share) in
            entries.iter().zip(column(&values, Unit::Seconds)).zip(shares(&values, total))
        {
            table.row([(*name).to_owned(), cell, share]);
        }
        let mut out = format!("\n{}", table.render(view));
        if explanation.job.is_some() {
            let decides = if explanation.decides {
                "This job is on the critical path of its flow."
            } else {
                "This job is not on the critical path of its flow: it could be slower."
            };
            out.extend([decides, "\n"]);
        }
        out
    }

    /// A table of the flows that held the slots.
    fn blockers(&self, view: &View) -> String {
        let blocked = &self.explanation.blocked;
        if blocked.seconds <= 0.0 {
            if self.explanation.chain.is_empty() {
                return String::new();
            }
            let word = self.say("had", "has");
            return format!("\n{} {word} all the slots it could use all the time.\n", self.subject());
        }
        let mut table = Table::new(&[
            (
                self.say("while it wanted more, slots held by", "while it wants more, slots held by"),
                Align::Left,
            ),
            ("slot-seconds", Align::Right),
            ("share", Align::Right),
            ("deadline", Align::Right),
            ("completion", Align::Right),
            ("", Align::Left),
        ]);
        let flow_of = |other: &Blocker| self.instance.job(other.job).flow;
        let deadline_of = |flow: FlowId| self.instance.flow(flow).deadline.map(Time::seconds);
        let at = |of: &dyn Fn(FlowId) -> Option<f64>| {
            let values: Vec<_> =
                blocked.others.iter().take(BLOCKERS).map(|other| of(flow_of(other))).collect();
            instants(&values, self.instance.start())
        };
        let (deadlines, completions) = (at(&deadline_of), at(&|flow| self.flows[flow].completed));
        let rest: f64 = blocked.others.iter().skip(BLOCKERS).map(|other| other.slot_seconds).sum();
        let shown = blocked.others.iter().take(BLOCKERS);
        let values: Vec<Option<f64>> = shown
            .clone()
            .map(|other| other.slot_seconds)
            .chain([rest, blocked.ams, blocked.own, blocked.idle])
            .map(Some)
            .collect();
        let shares = shares(&values, blocked.slot_seconds());
        let mut cells = column(&values, Unit::Measure).into_iter().zip(shares);
        for (k, other) in shown.enumerate() {
            let flow = flow_of(other);
            let place =
                self.flows[flow].place.map_or_else(String::new, |place| format!(" ({})", ordinal(place)));
            let name = format!("{}/{}", self.flow_name(flow), self.job_name(other.job));
            let (held, share) = cells.next().unwrap_or_default();
            table.row([
                name,
                held,
                share,
                deadlines[k].clone(),
                format!("{}{place}", completions[k]),
                self.slack_note(flow, deadline_of(flow), other.waiting / other.slot_seconds),
            ]);
        }
        let others = blocked.others.len().saturating_sub(BLOCKERS);
        let last = [
            (counted(others as u64, "other job"), others > 0),
            ("ApplicationMasters".to_owned(), blocked.ams > 0.0),
            ("itself".to_owned(), blocked.own > 0.0),
            ("no job".to_owned(), blocked.idle > 0.0),
        ];
        for ((name, there), (held, share)) in last.into_iter().zip(cells) {
            if there {
                table.row([name, held, share]);
            }
        }
        format!("\n{}{}", table.render(view), self.idle(blocked, view))
    }

    /// Compares the urgency of a flow that held slots with that of the explained flow.
    fn slack_note(&self, flow: FlowId, deadline: Option<f64>, waiting: f64) -> String {
        let own = self.explanation.deadline.as_ref().map(|deadline| deadline.at);
        let word = match (own, deadline) {
            _ if flow == self.explanation.flow => "same flow",
            (Some(_), None) => "no deadline",
            (Some(own), Some(other)) if other > own => "less urgent",
            (Some(own), Some(other)) if other < own => "more urgent",
            (Some(_), Some(_)) => "as urgent",
            (None, _) => "",
        };
        if waiting < 0.005 {
            return word.to_owned();
        }
        let comma = if word.is_empty() { "" } else { ", " };
        format!("{word}{comma}{} by reduces that wait for maps", number(waiting, Unit::Percent))
    }

    /// A remark on idle slots.
    fn idle(&self, blocked: &Blocked, view: &View) -> String {
        if blocked.idle <= IDLE * blocked.slot_seconds() {
            return String::new();
        }
        if self.there.is_some() {
            let why = "Slots that no job of the run holds belong to ApplicationMasters (one for each job, until 5 s after it) or to \
                       other applications, wait for an ApplicationMaster or a container to start, or are fewer than the policy \
                       grants at once.";
            return fitted(why, view.width);
        }
        let why = "Slots that no job holds while there are tasks to start are kept for minima or for input nearby, \
                   are fewer than the policy grants at once, wait for a heartbeat, or are on machines that are down.";
        let ams = if blocked.ams > 0.0 {
            " Tasks of a job whose ApplicationMaster is not up yet cannot use them."
        } else {
            ""
        };
        fitted(&format!("{why}{ams}"), view.width)
    }

    /// A table of the phases: those on the chain, then the others.
    fn phases(&self, view: &View) -> String {
        let explanation = self.explanation;
        let mut out = String::new();
        let on_chain: BTreeSet<PhaseId> = explanation.chain.iter().copied().collect();
        let chain: Vec<&PhaseStory> = explanation.steps().collect();
        let others = explanation.phases.iter().filter(|story| !on_chain.contains(&story.phase));
        let others: Vec<&PhaseStory> = others.collect();
        if !chain.is_empty() {
            out.extend(["\n", &self.phase_table("critical path", &chain, view)]);
        }
        if !others.is_empty() {
            let shown = &others[..others.len().min(PHASES)];
            out.extend(["\n", &self.phase_table("other phases", shown, view)]);
            if shown.len() < others.len() {
                let _ = writeln!(out, "… {} more (JSON has all)", others.len() - shown.len());
            }
        }
        let early: f64 = explanation.phases.iter().map(|story| story.early).sum();
        if early > 0.0 {
            let held = number(early, Unit::Measure);
            let _ =
                writeln!(out, "Its reduces took slots early and held {held} slot-seconds waiting for maps.");
        }
        if chain.is_empty() && others.is_empty() {
            return String::new();
        }
        out + "\n"
            + &wrapped(
                &[
                    ("ready", "when its input was complete"),
                    ("waiting", "time without a slot"),
                    ("partial, full", "time with fewer slots than it could use, and with all of them"),
                    ("tail", "from the start of its last task to its end"),
                ],
                view.width,
            )
    }

    fn phase_table(&self, title: &str, stories: &[&PhaseStory], view: &View) -> String {
        let values = |get: &dyn Fn(&PhaseStory) -> Option<f64>| {
            stories.iter().map(|story| get(story)).collect::<Vec<_>>()
        };
        let at = |get: &dyn Fn(&PhaseStory) -> Option<f64>| instants(&values(get), self.instance.start());
        let of = |get: &dyn Fn(&PhaseStory) -> Option<f64>| column(&values(get), Unit::Seconds);
        let ran = |story: &PhaseStory, value: f64| story.mean.map(|_| value);
        let columns = [
            at(&|story| story.ready),
            at(&|story| story.ended.filter(|_| story.done || self.open.is_none())),
            of(&|story| ran(story, story.waits.none)),
            of(&|story| ran(story, story.waits.below)),
            of(&|story| ran(story, story.waits.cap)),
            of(&|story| ran(story, story.waits.last)),
        ];
        let mut headings = vec![(title, Align::Left)];
        let numbers = ["ready", "done", "waiting", "partial", "full", "tail"];
        headings.extend(numbers.map(|name| (name, Align::Right)));
        let mut table = Table::new(&headings);
        for (k, story) in stories.iter().enumerate() {
            let done = if story.done { "" } else { " (not finished)" };
            let name = format!("{}{done}", self.phase_name(story.phase));
            table.row(std::iter::once(name).chain(columns.iter().map(|column| column[k].clone())));
        }
        table.render(view)
    }
}

/// Each part as a percentage of `all`.
fn shares(parts: &[Option<f64>], all: f64) -> Vec<String> {
    let share = |part: &Option<f64>| part.filter(|_| all > 0.0).map(|part| part / all);
    column(&parts.iter().map(share).collect::<Vec<_>>(), Unit::Percent)
}

#[cfg(test)]
mod tests {
    use slackline_trace::{ImportOptions, read_workload};

    use super::*;
    use crate::explain::Explainer;
    use crate::{Options, Registry, simulate};

    /// A flow that waits `waits` seconds for another one and then runs `runs` seconds, with this deadline: its
    /// reasons and the titles of its advice.
    fn explained(waits: f64, runs: f64, deadline: &str) -> (String, Vec<&'static str>) {
        let text = format!(
            "slackline = 1\ncluster.machines = [{{ name = \"n\", slots = 2 }}]\n\
             [[flows]]\nid = \"a\"\njobs = [{{ id = \"j\", map = {{ tasks = 2, seconds = {waits:.1} }} }}]\n\
             [[flows]]\nid = \"b\"\n{deadline}\njobs = [{{ id = \"j\", map = {{ tasks = 2, seconds = {runs:.1} }} }}]\n"
        );
        let imported = read_workload("t.toml", text.as_bytes(), None, &ImportOptions::default()).unwrap();
        let instance = Instance::new(&imported.draft).unwrap();
        let fifo = Registry::standard().parse("fifo").unwrap();
        let simulated = simulate(&instance, &fifo, &Options::exact(), None, None).unwrap();
        let explainer = Explainer::new(&instance, &simulated.schedule);
        let explanation = explainer.explain(FlowId(1), None).unwrap();
        let input = ExplainInput {
            instance: &instance,
            policy: "fifo",
            plan: false,
            explanation: &explanation,
            flows: explainer.flow_times(),
            open: None,
            there: None,
        };
        (input.why(), input.advice().iter().map(|(title, _)| *title).collect())
    }

    #[test]
    fn the_headline_names_what_made_a_flow_late() {
        let reason = |deadline: &str| explained(10.0, 15.0, deadline).0;
        let first = |why: &str| why.lines().next().unwrap_or_default().to_owned();
        let waited = "why: no slot for 10.0 s of 25.0 s";
        assert_eq!(first(&reason("deadline = 20.0")), waited, "alone it would have been on time");
        assert_eq!(first(&reason("")), waited, "it took longer than alone");
        let long = "why: its own chain of jobs takes at least 15.0 s, but its deadline allows ";
        let both = reason("deadline = 12.0");
        assert!(both.starts_with(&format!("{long}12.0 s\nalso: no slot for 10.0 s of 25.0 s\n")), "{both}");
        assert_eq!(reason("deadline = 2.0"), format!("{long}2.00 s\n"));
    }

    #[test]
    fn waits_below_a_hundredth_of_the_time_are_no_reason_and_get_no_advice() {
        let (why, advice) = explained(0.5, 100.0, "deadline = 100.2");
        assert_eq!(why, "");
        assert_eq!(advice, ["an earlier start", "slots needed"]);
        let (why, advice) = explained(2.0, 100.0, "deadline = 101.0");
        assert!(why.starts_with("why: no slot for 2.0"), "{why}");
        assert!(advice.starts_with(&["more slots"]) && advice.contains(&"slots sooner"), "{advice:?}");
    }

    #[test]
    fn ordinals_are_english() {
        let found = [1, 2, 3, 4, 11, 12, 13, 21, 102, 113].map(ordinal);
        assert_eq!(found, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "113th"]);
    }
}
