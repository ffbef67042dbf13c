//! What every engine on a cluster does with it: looking at it, the table, priorities, and the slots of others.

use std::collections::BTreeMap;
use std::time::Duration;

use super::books::Books;
use crate::clock::Stopwatch;
use crate::http::HttpError;
use crate::id::AppId;
use crate::observe::{Change, Observer, Snapshot};
use crate::rest::{App, Node, ResourceManager};
use crate::table::{Rows, Table, TableError};

/// How often NodeManagers are looked at, in looks.
const NODES_EVERY: u32 = 8;

/// A cluster that is looked at and told.
pub(super) struct Control {
    pub(super) manager: ResourceManager,
    pub(super) observer: Observer,
    table: Option<Table>,
    written: Option<(Rows, Duration)>,
    /// How long a table holds.
    valid: Duration,
    began: Stopwatch,
    looks: u32,
    nodes: BTreeMap<String, Node>,
}

impl Control {
    pub(super) fn new(
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
            looks: 0,
            nodes: BTreeMap::new(),
        }
    }

    /// Looks at the cluster, and gives what changed.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) fn look(&mut self, of_interest: impl FnMut(&App) -> bool) -> Result<Vec<Change>, HttpError> {
        if self.looks.is_multiple_of(NODES_EVERY) {
            let nodes = self.manager.nodes()?;
            self.nodes = nodes.into_iter().map(|node| (node.host.clone(), node)).collect();
        }
        self.looks += 1;
        self.observer.cycle(&self.manager, self.began.elapsed(), of_interest)
    }

    /// The cluster as the last look saw it.
    pub(super) fn snapshot(&self) -> &Snapshot {
        self.observer.snapshot()
    }

    /// Whether a host takes containers.
    pub(super) fn is_up(&self, host: &str) -> bool {
        self.nodes.get(host).is_some_and(Node::is_up)
    }

    /// Counts the slots of `slot_mb` MiB that applications hold which are not of interest, and `more`; and hosts that are
    /// away.
    pub(super) fn count_others(&self, books: &mut Books, slot_mb: u64, more: u32) {
        let slots = self.snapshot().others.memory_mb.div_ceil(slot_mb.max(1));
        let slots = u32::try_from(slots).unwrap_or(u32::MAX).saturating_add(more);
        books.set_others(slots.min(books.slots()));
        let hosts: Vec<String> = books.hosts().map(|(name, _)| name.to_owned()).collect();
        for host in hosts {
            books.set_host(&host, self.is_up(&host));
        }
    }

    /// Writes the table if its rows are others than before, or it would expire.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn publish(&mut self, rows: &Rows) -> Result<(), TableError> {
        let now = self.began.elapsed();
        let is_fresh = |(before, at): &(Rows, Duration)| before == rows && now < *at + self.valid / 3;
        if self.written.as_ref().is_some_and(is_fresh) {
            return Ok(());
        }
        if let Some(table) = &mut self.table {
            table.write(rows)?;
        }
        self.written = Some((rows.clone(), now));
        Ok(())
    }

    /// Gives an application a priority.
    ///
    /// # Errors
    /// The cluster does not answer, or does not want to.
    pub(super) fn set_priority(&self, app: AppId, priority: u64) -> Result<(), HttpError> {
        self.manager.set_priority(app, priority).map(drop)
    }
}
