//! Detects early that a running simulation cannot meet its conditions any more, so that it can be stopped.
//!
//! A flow counts as soon as it must violate its limit, often long before it ends: a flow that is active at an
//! instant completes after that instant. This matters for policies that delay late flows.
//!
//! Overloaded sizes take the longest to simulate. On a `facebook-day` of 3,000 jobs under `edf` with
//! `--over map-slots=1..16 --until p95_response:3h` the search takes 2.8 s, and 16.3 s without this module.
//! Searches of the examples take less than 0.1 s either way.

use std::cell::{Cell, RefCell};

use slackline_model::schedule::FlowTimes;
use slackline_model::{FlowId, Instance, Span, Time, tolerance};

use crate::capacity::condition::Condition;

/// The state of the flows of a simulation so far, for conditions that are upper limits.
pub(super) struct EarlyStop<'a> {
    instance: &'a Instance,
    /// The longest time until the end of a flow is known, seconds.
    delay: f64,
    state: RefCell<State>,
    is_certain: Cell<bool>,
}

struct State {
    /// The last completion, seconds.
    now: f64,
    /// By flow: whether it has ended.
    ended: Vec<bool>,
    tallies: Vec<Tally>,
}

/// How a flow that exceeds its mark counts. The mark is a time that is specific to the flow.
#[derive(Clone, Copy, PartialEq)]
enum ExcessCount {
    /// As 1.
    One,
    /// As the number of seconds by which it exceeds the mark.
    Seconds,
}

/// The time of a flow that is compared with its mark.
#[derive(Clone, Copy, PartialEq)]
enum Instant {
    Completion,
    /// Unknown while the flow is active.
    Start,
}

/// A sum over flows that never decreases.
struct Tally {
    beyond: ExcessCount,
    instant: Instant,
    /// By flow: its mark; infinite for flows that do not count.
    marks: Vec<f64>,
    /// The condition fails above this value.
    limit: f64,
    /// The sum over flows that have ended.
    of_ended: f64,
    /// The flows, sorted by their marks. The marks of the first `passed` flows are in the past.
    by_mark: Vec<u32>,
    passed: usize,
    /// The number of active flows whose marks have passed, and the sum of these marks.
    open: (usize, f64),
}

/// Whether a value is above a limit for certain. Sums are rounded, and the validator adds in another order.
fn is_above(value: f64, limit: f64) -> bool {
    value > limit + margin(limit)
}

fn margin(limit: f64) -> f64 {
    1e-9 * limit.abs().max(1.0)
}

impl<'a> EarlyStop<'a> {
    /// The state before any flow has ended. `delay` is the longest time until the end of a task is known. O(n
    /// log n) for n flows.
    pub(super) fn new(instance: &'a Instance, conditions: &[Condition], delay: Span) -> Self {
        let tallies = conditions.iter().filter_map(|condition| Tally::of(condition, instance)).collect();
        let state = State { now: 0.0, ended: vec![false; instance.flows().len()], tallies };
        let delay = if delay > Span::ZERO { delay.seconds() + tolerance::ABSOLUTE } else { 0.0 };
        Self { instance, delay, state: RefCell::new(state), is_certain: Cell::new(false) }
    }

    /// Whether a condition cannot be met any more.
    pub(super) fn is_certain(&self) -> bool {
        self.is_certain.get()
    }

    /// Records that a flow completed or failed. A failed flow violates all conditions. O(1) amortized over
    /// all flows.
    pub(super) fn ended(&self, flow: FlowId, times: FlowTimes) {
        let Some(completion) = times.completion else {
            self.is_certain.set(true);
            return;
        };
        let State { now, ended, tallies } = &mut *self.state.borrow_mut();
        *now = now.max(completion);
        ended[flow.index()] = true;
        // A flow that has not ended by this time is active.
        let open_at = *now - self.delay;
        for tally in tallies {
            let at = match tally.instant {
                Instant::Completion => completion,
                Instant::Start => times.start.unwrap_or_else(|| self.instance.flow(flow).release.seconds()),
            };
            tally.end(flow.index(), at);
            tally.pass(open_at, ended);
            if tally.is_too_much(open_at) {
                self.is_certain.set(true);
            }
        }
    }
}

impl Tally {
    /// The tally of a condition; `None` if its metric is known only at the end.
    fn of(condition: &Condition, instance: &Instance) -> Option<Self> {
        let flows = instance.flows();
        let n = flows.len();
        let due = flows.iter().filter(|flow| flow.deadline.is_some()).count();
        let most = condition.most(due as f64)?;
        let releases = || flows.iter().map(|flow| flow.release.seconds());
        let deadlines = || flows.iter().map(|flow| flow.deadline.map_or(f64::INFINITY, Time::seconds));
        let above = |mark: f64| mark + most + margin(most) + margin(mark);
        // If more flows than this are above the limit, the nearest-rank percentile is above it.
        let too_many = |percent: usize| (n - (n * percent).div_ceil(100)) as f64 + 0.5;
        let total_release: f64 = releases().sum();
        let (beyond, instant, marks, limit): (_, _, Vec<f64>, _) = match condition.metric() {
            "missed" => {
                (ExcessCount::One, Instant::Completion, deadlines().map(tolerance::latest).collect(), most)
            }
            "max_tardiness" => (ExcessCount::One, Instant::Completion, deadlines().map(above).collect(), 0.5),
            "makespan" => (ExcessCount::One, Instant::Completion, vec![above(0.0); n], 0.5),
            "total_tardiness" => (ExcessCount::Seconds, Instant::Completion, deadlines().collect(), most),
            "total_completion" => (
                ExcessCount::Seconds,
                Instant::Completion,
                releases().collect(),
                most + margin(most) - total_release,
            ),
            "mean_response" => {
                (ExcessCount::Seconds, Instant::Completion, releases().collect(), most * n as f64)
            }
            "mean_wait" => (ExcessCount::Seconds, Instant::Start, releases().collect(), most * n as f64),
            "p50_response" => {
                (ExcessCount::One, Instant::Completion, releases().map(above).collect(), too_many(50))
            }
            "p95_response" => {
                (ExcessCount::One, Instant::Completion, releases().map(above).collect(), too_many(95))
            }
            "p99_response" => {
                (ExcessCount::One, Instant::Completion, releases().map(above).collect(), too_many(99))
            }
            "p95_wait" => (ExcessCount::One, Instant::Start, releases().map(above).collect(), too_many(95)),
            _ => return None,
        };
        let mut by_mark: Vec<u32> = match instant {
            Instant::Completion => (0..n as u32).filter(|&k| marks[k as usize].is_finite()).collect(),
            Instant::Start => Vec::new(),
        };
        by_mark.sort_by(|&a, &b| marks[a as usize].total_cmp(&marks[b as usize]));
        Some(Self { beyond, instant, marks, limit, of_ended: 0.0, by_mark, passed: 0, open: (0, 0.0) })
    }

    /// Records the end of a flow.
    fn end(&mut self, flow: usize, at: f64) {
        let mark = self.marks[flow];
        if at > mark {
            self.of_ended += if self.beyond == ExcessCount::One { 1.0 } else { at - mark };
        }
        // If the flow was counted as active, removes it. Flows with the same mark pass together.
        let next = self.by_mark.get(self.passed);
        if mark.is_finite()
            && self.instant == Instant::Completion
            && next.is_none_or(|&next| mark < self.marks[next as usize])
        {
            self.open.0 -= 1;
            self.open.1 -= mark;
        }
    }

    /// Counts all flows that have not ended and whose marks have passed.
    fn pass(&mut self, now: f64, ended: &[bool]) {
        while let Some(&flow) = self.by_mark.get(self.passed)
            && self.marks[flow as usize] < now
        {
            self.passed += 1;
            // A flow that has ended was counted in [`Self::end`].
            if !ended[flow as usize] {
                self.open.0 += 1;
                self.open.1 += self.marks[flow as usize];
            }
        }
    }

    /// Whether the sum exceeds the limit, whatever happens later.
    fn is_too_much(&self, now: f64) -> bool {
        let (open, marks) = (self.open.0 as f64, self.open.1);
        let of_open = match self.beyond {
            ExcessCount::One => open,
            // The factor allows for rounding.
            ExcessCount::Seconds => (open * now * (1.0 - 1e-12) - marks).max(0.0),
        };
        is_above(self.of_ended + of_open, self.limit)
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    /// A hundred flows, released every `every` seconds, with a deadline 10 s after their release.
    fn instance(every: f64) -> Instance {
        let flow = |k: usize| {
            let map = Some(TasksDraft::Uniform { tasks: 1, seconds: 6.0 }.into());
            let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
            let release = k as f64 * every;
            FlowDraft {
                release,
                deadline: Some(release + 10.0),
                ..FlowDraft::new(format!("f{k}"), vec![job])
            }
        };
        let slots = Slots::Universal(1);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        Instance::new(&Draft {
            machines: vec![machine],
            flows: (0..100).map(flow).collect(),
            ..Draft::default()
        })
        .unwrap()
    }

    /// The number of flows after which a condition fails, if each flow starts 14 s and completes 20 s after
    /// its release, in sequence.
    fn gone_after(condition: &str) -> Option<usize> {
        let instance = instance(100.0);
        let early_stop = EarlyStop::new(&instance, &[condition.parse().unwrap()], Span::ZERO);
        let at = instance.flows().iter_enumerated().position(|(id, flow)| {
            let release = flow.release.seconds();
            early_stop.ended(id, FlowTimes { start: Some(release + 14.0), completion: Some(release + 20.0) });
            early_stop.is_certain()
        });
        at.map(|at| at + 1)
    }

    #[test]
    fn hope_goes_with_the_first_flow_that_is_too_much() {
        for (condition, flows) in [
            ("missed:0", 1),
            ("missed:1%", 2),
            ("missed=0", 1),
            ("total_tardiness:50", 6),
            ("max_tardiness:9", 1),
            ("total_completion:495050", 3),
            ("mean_response:5", 26),
            ("mean_wait:7", 51),
            ("p95_response:19", 6),
            ("p99_response:19", 2),
            ("p50_response:19", 51),
            ("p95_wait:13", 6),
            ("makespan:19", 1),
        ] {
            assert_eq!(gone_after(condition), Some(flows), "{condition}");
        }
    }

    #[test]
    fn what_may_yet_be_met_is_not_given_up() {
        for condition in [
            "missed:100%",
            "mean_response:20",
            "p95_response:20",
            "total_completion:497000",
            "total_tardiness:1000",
            "max_tardiness:10",
            "makespan:9920",
            "makespan>30",
            "mean_slowdown:0",
        ] {
            assert_eq!(gone_after(condition), None, "{condition}");
        }
    }

    /// A hundred flows released together: one ends in time, another one at `completion`. Returns whether the
    /// condition has failed if ends are known `delay` seconds late.
    fn is_certain(condition: &str, completion: f64, delay: u64) -> bool {
        let instance = instance(0.0);
        let early_stop = EarlyStop::new(&instance, &[condition.parse().unwrap()], Span(delay * 1_000_000));
        for (k, completion) in [9.0, completion].into_iter().enumerate() {
            assert!(!early_stop.is_certain(), "one that is in time takes no hope");
            early_stop.ended(FlowId::from(k), FlowTimes { start: Some(1.0), completion: Some(completion) });
        }
        early_stop.is_certain()
    }

    #[test]
    fn flows_that_are_put_off_count_while_they_are_open() {
        // 99 flows complete at 20 s or later.
        for (condition, gone) in [
            ("missed:98", true),
            ("missed:99", false),
            ("p50_response:19", true),
            ("p50_response:20", false),
            ("max_tardiness:9", true),
            ("total_tardiness:989", true),
            ("total_tardiness:990", false),
            ("total_completion:1988", true),
            ("total_completion:1989", false),
            ("mean_response:19.88", true),
            ("mean_response:19.89", false),
            ("mean_wait:1", false),
            ("makespan:19", true),
            ("makespan:20", false),
        ] {
            assert_eq!(is_certain(condition, 20.0, 0), gone, "{condition}");
        }
        // Other flows may have ended in time without being reported yet.
        assert!(!is_certain("missed:98", 20.0, 10) && is_certain("missed:98", 20.1, 10));
    }

    #[test]
    fn a_flow_that_fails_ends_all_hope() {
        let instance = instance(1.0);
        let early_stop = EarlyStop::new(&instance, &["makespan:100".parse().unwrap()], Span::ZERO);
        early_stop.ended(FlowId::from(0usize), FlowTimes::default());
        assert!(early_stop.is_certain());
    }
}
