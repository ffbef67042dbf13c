//! The control of one cluster: polls, the plug-in's table, priorities, and the slots of other applications.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use slackline_model::Time;

use crate::clock::Stopwatch;
use crate::cluster::container_ledger::ContainerLedger;
use crate::cluster::desired_state::priority_changes;
use crate::cluster::observer::{Change, Observer, Snapshot};
use crate::cluster::table::{Rows, Table};
use crate::rest::http::HttpError;
use crate::rest::id::AppId;
use crate::rest::resource_manager::{App, AppState, Node, ResourceManager};

/// Time between two polls.
pub(crate) const CYCLE: Duration = Duration::from_millis(250);

/// The shortest time between two polls.
const SHORTEST: Duration = Duration::from_millis(200);

/// The most priorities to change after a poll: each is written to the ResourceManager's state store.
const CHANGES_MAX: usize = 5;

/// Polls between two requests for the NodeManagers.
const NODES_EVERY: u32 = 8;

/// Polls until an application that refused its priority is tried again: 30 s.
const AGAIN: u32 = 120;

/// The property of the ResourceManager with the highest priority.
pub(crate) const HIGHEST_PROPERTY: &str = "yarn.cluster.max-application-priority";

pub(crate) struct Control {
    pub(crate) manager: ResourceManager,
    pub(crate) observer: Observer,
    table: Option<Table>,
    written: Option<(Rows, Duration)>,
    /// The lifetime of a table.
    valid: Duration,
    began: Stopwatch,
    polls: u32,
    /// Hosts with a running NodeManager.
    up: BTreeSet<String>,
    warned_of_table: bool,
    /// Whether priorities are no longer set, since the cluster has too few.
    priorities_disabled: bool,
    /// The highest priority of the cluster, once read.
    highest: Option<u64>,
    /// Applications that refused their priority, and the poll until which they are left alone.
    refused_priorities: BTreeMap<AppId, u32>,
    warned_of_refusal: bool,
}

impl Control {
    pub(crate) fn new(
        manager: ResourceManager,
        observer: Observer,
        table: Option<Table>,
        valid: Duration,
    ) -> Self {
        Self {
            manager,
            observer,
            table,
            written: None,
            valid,
            began: Stopwatch::start(),
            polls: 0,
            up: BTreeSet::new(),
            warned_of_table: false,
            priorities_disabled: false,
            highest: None,
            refused_priorities: BTreeMap::new(),
            warned_of_refusal: false,
        }
    }

    /// Polls the cluster, and gives the changes.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) fn poll_cluster(
        &mut self,
        of_interest: impl FnMut(&App) -> bool,
    ) -> Result<Vec<Change>, HttpError> {
        if self.polls.is_multiple_of(NODES_EVERY) {
            // A host appears a second time if its NodeManager came back with another port.
            let nodes = self.manager.nodes()?;
            self.up = nodes.into_iter().filter(Node::is_up).map(|node| node.host).collect();
        }
        self.polls += 1;
        self.observer.cycle(&self.manager, self.began.elapsed(), of_interest)
    }

    /// The cluster at the last poll.
    pub(crate) fn snapshot(&self) -> &Snapshot {
        self.observer.snapshot()
    }

    /// Counts the slots of `slot_mb` MiB that other applications hold, and `more` slots; and marks hosts that
    /// are down. O(slots log hosts).
    pub(crate) fn count_others(&self, ledger: &mut ContainerLedger, slot_mb: u64, more: u32) {
        let slots = self.snapshot().others.memory_mb.div_ceil(slot_mb.max(1));
        let slots = u32::try_from(slots).unwrap_or(u32::MAX).saturating_add(more);
        ledger.set_others(slots.min(ledger.slots()));
        ledger.set_hosts(|host| self.up.contains(host));
    }

    /// Writes the table if its rows changed or it would expire. A failed write is retried at the next call.
    /// The first failure gives a warning; until the write succeeds, only time is lost.
    pub(crate) fn publish(&mut self, rows: &Rows) -> Option<String> {
        let now = self.began.elapsed();
        let is_fresh = |(before, at): &(Rows, Duration)| before == rows && now < *at + self.valid / 3;
        if self.written.as_ref().is_some_and(is_fresh) {
            return None;
        }
        if let Some(Err(error)) = self.table.as_mut().map(|table| table.write(rows)) {
            let has_warned = std::mem::replace(&mut self.warned_of_table, true);
            return (!has_warned).then(|| {
                format!("{error}; Slackline retries, and until then the cluster follows its own scheduler")
            });
        }
        self.warned_of_table = false;
        self.written = Some((rows.clone(), now));
        None
    }

    /// Removes the table: from then on YARN decides by itself.
    pub(crate) fn remove_table(&mut self) {
        self.table = None;
    }

    /// Sets priorities so that applications have this order, the highest first; each comes with its current
    /// priority. Only a few change at a time. Gives the changed priorities, and a warning.
    pub(crate) fn set_order(&mut self, order: &[(AppId, u64)]) -> (Vec<(AppId, u64)>, Option<String>) {
        let (mut changed, mut warning) = (Vec::new(), None);
        if self.priorities_disabled {
            return (changed, None);
        }
        let polls = self.polls;
        self.refused_priorities.retain(|_, until| *until > polls);
        let order: Vec<_> = order.iter().copied().filter(|(app, _)| self.takes_priorities(*app)).collect();
        for (app, wished) in priority_changes(&order, CHANGES_MAX) {
            match self.set_priority(app, wished) {
                Ok(given) => {
                    changed.push((app, given));
                    if given >= wished {
                        continue;
                    }
                    if let Ok(highest) = self.highest()
                        && highest < wished
                    {
                        self.priorities_disabled = true;
                        let warning = format!(
                            "found no priority above {highest} ({HIGHEST_PROPERTY}), expected {wished}: priorities have no effect (docs/hadoop.md)"
                        );
                        return (changed, Some(warning));
                    }
                    // It has just ended, and the answer has its old priority.
                    self.refused_priorities.insert(app, polls + AGAIN);
                }
                Err(error) if error.may_pass() => break,
                Err(error) => {
                    self.refused_priorities.insert(app, polls + AGAIN);
                    if !std::mem::replace(&mut self.warned_of_refusal, true) {
                        warning =
                            Some(format!("{app} keeps its priority; the cluster refused a change: {error}"));
                    }
                }
            }
        }
        (changed, warning)
    }

    /// Whether YARN accepts a priority for an application now: it refuses or ignores one for an application
    /// that is not accepted yet, or has ended.
    fn takes_priorities(&self, app: AppId) -> bool {
        let state = self.snapshot().app(app).map(|app| app.state);
        matches!(state, Some(AppState::Accepted | AppState::Running))
            && !self.refused_priorities.contains_key(&app)
    }

    /// The highest priority of the cluster; 0 where it is not configured.
    fn highest(&mut self) -> Result<u64, HttpError> {
        if let Some(highest) = self.highest {
            return Ok(highest);
        }
        let value = self.manager.property(HIGHEST_PROPERTY)?;
        let highest = value.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        self.highest = Some(highest);
        Ok(highest)
    }

    /// Sets the priority of an application, and gives the one that it got: YARN cuts it to its highest.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses.
    pub(crate) fn set_priority(&self, app: AppId, priority: u64) -> Result<u64, HttpError> {
        self.manager.set_priority(app, priority)
    }
}

/// The time until the next poll. A policy that wakes often does not make it shorter than `SHORTEST`.
pub(crate) fn poll_delay(now: Time, due: Option<Time>, cycle: Duration) -> Duration {
    let until = due.map_or(cycle, |at| Duration::from_micros(at.since(now.min(at)).0));
    until.clamp(SHORTEST.min(cycle), cycle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn immediate_polls_keep_the_least_interval() {
        let until = |now, due: Option<u64>| poll_delay(Time(now), due.map(Time), CYCLE).as_millis();
        assert_eq!(until(1_000_000, None), 250);
        assert_eq!(until(1_000_000, Some(9_000_000)), 250);
        assert_eq!(until(1_000_000, Some(1_220_000)), 220);
        assert_eq!(until(1_000_000, Some(1_000_001)), 200);
        assert_eq!(until(1_000_000, Some(0)), 200);
        // Who asks for more looks gets them.
        let quick = Duration::from_millis(5);
        assert_eq!(poll_delay(Time::ZERO, Some(Time(1)), quick), quick);
    }
}
