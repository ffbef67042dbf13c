//! What each user uses: slots, and requests within a minute; and the load of all users together.

use std::collections::{BTreeMap, VecDeque};

use slackline_model::WallTime;
use slackline_task::base::clock::Elapsed;

use crate::api::{Load, LoadPoint};
use crate::state::commands::{Refusal, RefusalKind};
use crate::state::progress::RunningSubmission;
use crate::state::{Limits, ServiceState};
use crate::{SECOND, timestamp};

/// The interval between two load points, and the number of load points kept (one day).
const LOAD_EVERY: u64 = 10 * SECOND;
const LOAD_POINTS: usize = 8_640;

/// The time in which the submissions of a user are counted.
const MINUTE: u64 = 60 * SECOND;

#[derive(Debug)]
pub(super) struct Usage {
    /// The times at which each user submitted within the last minute.
    rates: BTreeMap<String, VecDeque<Elapsed>>,
    pub(super) load: LoadSoFar,
}

/// The number of running tasks over time.
#[derive(Debug, Default)]
pub(super) struct LoadSoFar {
    points: VecDeque<LoadPoint>,
    /// The integral of running tasks over the time since the last point, task-microseconds.
    work: f64,
    pub(super) running: u64,
    since: Elapsed,
    /// The time of the last point.
    noted: Elapsed,
    next: Elapsed,
}

impl Usage {
    pub(super) fn new(now: Elapsed) -> Self {
        let load = LoadSoFar { since: now, noted: now, ..LoadSoFar::default() };
        Self { rates: BTreeMap::new(), load }
    }

    /// The time of the next load point, while there is work.
    pub(super) fn next_load(&self, has_submissions: bool) -> Option<Elapsed> {
        (self.load.running > 0 || has_submissions).then_some(self.load.next)
    }

    /// Forgets submissions of more than a minute ago.
    pub(super) fn forget(&mut self, now: Elapsed) {
        self.rates.retain(|_, times| {
            times.retain(|&at| now.since(at) < MINUTE);
            !times.is_empty()
        });
    }

    /// Checks the rate limit of a user.
    pub(super) fn check_rate(&mut self, user: &str, limits: &Limits, now: Elapsed) -> Result<(), Refusal> {
        let most = limits.rate_by_user;
        let times = self.rates.entry(user.to_owned()).or_default();
        while times.front().is_some_and(|&at| now.since(at) >= MINUTE) {
            times.pop_front();
        }
        if times.len() < most {
            return Ok(());
        }
        let wait = times.front().map_or(0, |&at| (at + MINUTE).since(now).div_ceil(SECOND));
        Err(Refusal::new(
            RefusalKind::TooMany(wait),
            format!(
                "{user} has submitted {most} times within a minute, the limit of a user; retry in {wait} s"
            ),
        ))
    }

    /// Counts a submission for the rate limit.
    pub(super) fn count_rate(&mut self, user: &str, now: Elapsed) {
        self.rates.entry(user.to_owned()).or_default().push_back(now);
    }
}

impl ServiceState {
    /// Changes the number of running tasks.
    pub(super) fn work(&mut self, by: i64) {
        let (load, now) = (&mut self.usage.load, self.clock.elapsed());
        load.work += load.running as f64 * now.since(load.since) as f64;
        load.since = now;
        load.running = load.running.saturating_add_signed(by);
    }

    /// The number of waiting tasks of all running submissions.
    pub(super) fn waiting(&self) -> u64 {
        self.submissions.running().map(|(_, _, running)| RunningSubmission::waiting(running)).sum()
    }

    pub(super) fn note_load(&mut self) {
        let elapsed = self.clock.elapsed();
        if elapsed < self.usage.load.next {
            return;
        }
        let (at, waiting) = (timestamp(self.now()), self.waiting());
        let queued = self.submissions.queue.waiting.total as u64;
        let load = &mut self.usage.load;
        load.work += load.running as f64 * elapsed.since(load.since) as f64;
        load.since = elapsed;
        let took = elapsed.since(load.noted).max(1) as f64;
        let running = if load.points.is_empty() { load.running as f64 } else { load.work / took };
        load.points.push_back(LoadPoint { at, running, waiting, queued });
        if load.points.len() > LOAD_POINTS {
            load.points.pop_front();
        }
        (load.work, load.noted, load.next) = (0.0, elapsed, elapsed + LOAD_EVERY);
    }

    /// The load points from a moment on.
    pub fn loads(&self, since: WallTime) -> Load {
        let (since, points) = (timestamp(since), &self.usage.load.points);
        let first = points.partition_point(|point| point.at < since);
        Load { points: points.range(first..).copied().collect() }
    }
}
