//! Sets of rows and of machines that the ledger keeps.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{FlowId, MachineId, PhaseId, Time};

use crate::engine::RowId;
use crate::id_table::IdTable;

/// Sets of rows that have something in common.
#[derive(Clone, Debug)]
pub(crate) struct RowSets {
    /// Running rows of each reduce phase, kept only where reduces may have to wait.
    pub(crate) reduces: Option<IdTable<PhaseId, Vec<RowId>>>,
    /// When held rows last began to compute; only for rows that were held.
    pub(crate) went: BTreeMap<RowId, Time>,
    /// For each of two running attempts of a task, the other one.
    pub(crate) twins: BTreeMap<RowId, RowId>,
    /// Rows of each flow that stay until it is finished; empty if rows leave when they end.
    pub(crate) of_flow: IdTable<FlowId, Vec<RowId>>,
    /// Rows that ended at this instant and leave at its end.
    pub(crate) leaving: Vec<RowId>,
    /// Rows that are open and not yet sent to the engine, so that they may still grow.
    pub(crate) opened: Vec<RowId>,
    /// The last row of each phase, where rows may grow.
    pub(crate) last_row: IdTable<PhaseId, Option<RowId>>,
}

/// Machines that went and came back.
#[derive(Clone, Debug)]
pub(crate) struct MachineChanges {
    /// Rows on each machine, kept only if machines may fail; some rows may have left the log.
    pub(crate) on_machine: Vec<Vec<RowId>>,
    /// Machines that are away, for now or for good, and since when.
    pub(crate) down: BTreeMap<MachineId, Time>,
    /// Machines that left for good.
    pub(crate) left: BTreeSet<MachineId>,
    /// When each machine leaves, for machines with a known time.
    pub(crate) horizons: BTreeMap<MachineId, Time>,
}

impl RowSets {
    /// Empty sets; `may_wait` says whether reduces may have to wait.
    pub(super) fn new(may_wait: bool) -> Self {
        Self {
            reduces: may_wait.then(IdTable::default),
            went: BTreeMap::new(),
            twins: BTreeMap::new(),
            of_flow: IdTable::default(),
            leaving: Vec::new(),
            opened: Vec::new(),
            last_row: IdTable::default(),
        }
    }
}

impl MachineChanges {
    /// Of this number of machines that may fail.
    pub(super) fn new(machines: u32) -> Self {
        Self {
            on_machine: vec![Vec::new(); machines as usize],
            down: BTreeMap::new(),
            left: BTreeSet::new(),
            horizons: BTreeMap::new(),
        }
    }
}
