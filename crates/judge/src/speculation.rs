//! Checks speculative attempts under a profile. Only slow tasks get one, when an ApplicationMaster checks for
//! slow tasks, and only up to a limit at a time; one of the two is stopped when the other ends. Nothing fails
//! under a profile, so there are no other further attempts.

use std::collections::BTreeMap;

use slackline_model::profile::{Profile, Speculation};
use slackline_model::schedule::{Clock, Outcome, Schedule, TaskRow};
use slackline_model::{JobId, PhaseId, Time};

use crate::ledger::Ledger;
use crate::order::{Progress, computes_from};
use crate::violation::{First, SpeculationProblem, Subject, Violation};
use crate::{inputs, tolerance};

/// A task with two attempts.
struct Pair<'a> {
    task: u32,
    first: &'a TaskRow,
    second: &'a TaskRow,
}

/// Offers invalid speculative attempts.
pub(crate) fn check(ledger: &Ledger<'_>, progress: &Progress, schedule: &Schedule, first: &mut First) {
    let Some(profile) = &schedule.profile else { return };
    let mut looks: BTreeMap<JobId, Vec<(Time, PhaseId, u32)>> = BTreeMap::new();
    for phase in ledger.instance.phases().keys().filter(|&phase| ledger.has_retries(phase)) {
        let pairs = pairs(ledger, phase, first);
        let Some(rules) = profile.speculation() else {
            for pair in &pairs {
                offer(ledger, first, pair.second, pair.task, SpeculationProblem::Unexpected);
            }
            continue;
        };
        let times = Times::new(ledger, progress, phase, &pairs);
        for pair in &pairs {
            check_end(ledger, pair, first);
            check_slow(ledger, progress, profile, schedule.clock, &times, pair, first);
            check_number(ledger, rules, &times, pair, first);
            let job = ledger.instance.phase(phase).job;
            looks.entry(job).or_default().push((pair.second.start, phase, pair.task));
        }
    }
    let Some(rules) = profile.speculation() else { return };
    for am in &schedule.ams {
        let Some((up, of)) = am.up.zip(looks.get_mut(&am.job)) else { continue };
        of.sort_unstable();
        check_looks(ledger, rules, up, of, first);
    }
}

fn offer(ledger: &Ledger<'_>, first: &mut First, row: &TaskRow, task: u32, problem: SpeculationProblem) {
    let (at, phase) = (row.start.seconds(), row.phase);
    let task = Subject::task(ledger.instance, phase, task);
    first.offer(at, phase, || Violation::Speculative { at, task, problem });
}

/// The tasks of a phase with two attempts. Offers those with more attempts, and those without separate rows.
fn pairs<'a>(ledger: &Ledger<'a>, phase: PhaseId, first: &mut First) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for attempts in ledger.pieces(phase).chunk_by(|a, b| a.first == b.first) {
        let rows: Vec<&TaskRow> = attempts.iter().map(|piece| ledger.row(piece.row)).collect();
        match rows[..] {
            [_] => {}
            [first, second] if first.count == 1 && second.count == 1 => {
                pairs.push(Pair { task: attempts[0].first, first, second });
            }
            [_, second] => offer(ledger, first, second, attempts[0].first, SpeculationProblem::Several),
            [_, _, third, ..] => offer(ledger, first, third, attempts[0].first, SpeculationProblem::Third),
            [] => unreachable!("no chunk is empty"),
        }
    }
    pairs
}

/// When one attempt is done, the other is stopped. In a failed flow, neither need be done.
fn check_end(ledger: &Ledger<'_>, pair: &Pair<'_>, first: &mut First) {
    let both = [(pair.first, pair.second), (pair.second, pair.first)];
    let Some((done, other)) = both.into_iter().find(|(row, _)| row.outcome == Outcome::Done) else { return };
    let is_stopped =
        other.outcome == Outcome::Killed && tolerance::same_instant(other.end.seconds(), done.end.seconds());
    if !is_stopped {
        let (outcome, found) = (other.outcome.name(), other.end.seconds());
        let problem = SpeculationProblem::Other { outcome, found, expected: done.end.seconds() };
        offer(ledger, first, pair.second, pair.task, problem);
    }
}

/// The first attempt is computing, and ends later than a new one would.
fn check_slow(
    ledger: &Ledger<'_>,
    progress: &Progress,
    profile: &Profile,
    clock: Clock,
    times: &Times,
    pair: &Pair<'_>,
    first: &mut First,
) {
    let at = pair.second.start;
    let from = computes_from(ledger.instance, progress, pair.first);
    let is_at_work = from.is_some_and(|from| !tolerance::earlier_micros(at, from)) && at < pair.first.end;
    if !is_at_work {
        offer(ledger, first, pair.second, pair.task, SpeculationProblem::Beside);
        return;
    }
    let new_ends = times.mean(at).map(|mean| at.seconds() + mean);
    let Some(ends) = latest_end(ledger, from, profile, clock, pair) else { return };
    let is_slow = new_ends.is_some_and(|new_ends| !tolerance::earlier(ends, new_ends));
    if !is_slow {
        offer(ledger, first, pair.second, pair.task, SpeculationProblem::Quick { ends, new_ends });
    }
}

/// The latest possible end of the first attempt; `None` if that is unknown.
fn latest_end(
    ledger: &Ledger<'_>,
    from: Option<Time>,
    profile: &Profile,
    clock: Clock,
    pair: &Pair<'_>,
) -> Option<f64> {
    if pair.first.outcome == Outcome::Done {
        return Some(pair.first.end.seconds());
    }
    if clock == Clock::Measured {
        return None;
    }
    let (span, _) = ledger.instance.phase(pair.first.phase).tasks()?.run_at(pair.task);
    let place = ledger.rows.places(pair.first).first()?;
    let slot_kind = ledger.instance.slot_kind_of(pair.first.phase);
    let (speed, _) = ledger.instance.cluster().speed_of(slot_kind, place.first);
    let straggler = if profile.straggler_share() > 0.0 { profile.straggler_factor() } else { 1.0 };
    let far = inputs::factor(Some(profile), ledger.instance, pair.first.phase, pair.task, place.first);
    Some(from?.seconds() + straggler * far * span.seconds() / speed)
}

/// Offers the instant at which more tasks of a phase have two attempts than allowed.
fn check_number(ledger: &Ledger<'_>, rules: Speculation, times: &Times, pair: &Pair<'_>, first: &mut First) {
    let at = pair.second.start;
    let found = times.pairs.at(at);
    let share = |of: f64, tasks: u64| (of * tasks as f64) as u64;
    let most = u64::from(rules.least)
        .max(share(rules.of_total, times.total))
        .max(share(rules.of_running, times.tasks.at(at)));
    if found > most {
        offer(ledger, first, pair.second, pair.task, SpeculationProblem::TooMany { found, most });
    }
}

/// An ApplicationMaster checks once an interval after its start, and after a pause when it has started a
/// speculative attempt. Each check starts at most one in each phase.
fn check_looks(
    ledger: &Ledger<'_>,
    rules: Speculation,
    up: Time,
    looks: &[(Time, PhaseId, u32)],
    first: &mut First,
) {
    let mut since = up;
    let mut last: Option<(Time, PhaseId)> = None;
    for &(at, phase, task) in looks {
        let same_look = last.is_some_and(|(before, other)| before == at && other != phase);
        let after = at.0.saturating_sub(since.0) % rules.every.0;
        let slack = at.0 - tolerance::shrunk(at).0;
        let on_time = at >= since && (after <= slack || rules.every.0 - after <= slack);
        if !same_look && !on_time {
            let (since, every) = (since.seconds(), rules.every.seconds());
            let (at, task) = (at.seconds(), Subject::task(ledger.instance, phase, task));
            let problem = SpeculationProblem::Look { since, every };
            first.offer(at, phase, || Violation::Speculative { at, task, problem });
        }
        since = at + rules.pause;
        last = Some((at, phase));
    }
}

/// A count over time.
struct Number {
    starts: Sums,
    ends: Sums,
}

/// Times in order, each with the cumulative sum up to it.
type Sums = Vec<(Time, f64)>;

fn sums(mut of: Vec<(Time, f64)>) -> Sums {
    of.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut sum = 0.0;
    for (_, each) in &mut of {
        sum += *each;
        *each = sum;
    }
    of
}

fn upto(sums: &Sums, at: Time) -> f64 {
    let n = sums.partition_point(|&(time, _)| time <= at);
    n.checked_sub(1).map_or(0.0, |last| sums[last].1)
}

impl Number {
    fn of(starts: Vec<(Time, f64)>, ends: Vec<(Time, f64)>) -> Self {
        Self { starts: sums(starts), ends: sums(ends) }
    }

    fn at(&self, at: Time) -> u64 {
        (upto(&self.starts, at) - upto(&self.ends, at)) as u64
    }
}

/// The events of a phase by time.
struct Times {
    total: u64,
    /// Running tasks, and those with two attempts.
    tasks: Number,
    pairs: Number,
    /// Seconds that ended tasks took.
    took: Sums,
}

impl Times {
    fn new(ledger: &Ledger<'_>, progress: &Progress, phase: PhaseId, pairs: &[Pair<'_>]) -> Self {
        let (mut starts, mut ends, mut took) = (Vec::new(), Vec::new(), Vec::new());
        for row in ledger.of(phase) {
            let count = f64::from(row.count);
            if row.attempt == 0 {
                starts.push((row.start, count));
            }
            if row.outcome == Outcome::Done {
                ends.push((row.end, count));
                let from = computes_from(ledger.instance, progress, row).unwrap_or(row.end);
                took.push((row.end, count * (row.startup.seconds() + row.end.since(from).seconds())));
            }
        }
        let total = ledger.instance.phase(phase).tasks().map_or(0, slackline_model::tasks::Tasks::count);
        let of_pairs = pairs.iter().map(|pair| (pair.second.start, 1.0)).collect();
        let end = |pair: &Pair<'_>| (pair.first.end.min(pair.second.end), 1.0);
        Self {
            total: u64::from(total),
            tasks: Number::of(starts, ends),
            pairs: Number::of(of_pairs, pairs.iter().map(end).collect()),
            took: sums(took),
        }
    }

    /// The mean duration of the tasks that ended by `at`, in seconds.
    fn mean(&self, at: Time) -> Option<f64> {
        let n = upto(&self.tasks.ends, at);
        (n > 0.0).then(|| upto(&self.took, at) / n)
    }
}
