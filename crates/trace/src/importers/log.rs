//! Shared by the importers of logs: cores become slots, names of queues become pools, the first submission is
//! second 0.

use std::collections::BTreeSet;

use slackline_model::draft::{PerPhase, PoolDraft};
use slackline_model::params::{Param, Values};
use slackline_model::{Draft, Start};

use crate::importers::durations::whole_micros;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::folder::Folder;

/// Number of cores of a slot.
pub(super) const SLOT_CORES: Param = Param::new(
    "slot-cores",
    "1",
    Values::Count(1, 1_000_000),
    "cores of a slot: a task of a log that takes more of them becomes several tasks",
);

/// The remark on a job that needs its processors at the same time.
pub(super) const GANG: &str =
    "gang of several processors, whose tasks are scheduled independently, so waiting times are too short";

/// The slots that a number of cores covers, at least one.
pub(super) fn slots(cores: f64, slot_cores: u64) -> u64 {
    (cores / slot_cores as f64).ceil().max(1.0) as u64
}

/// The number of tasks, or an error if it is above the limit of a phase.
pub(super) fn task_count(tasks: u64) -> Result<u32, String> {
    u32::try_from(tasks).map_err(|_| format!("found {tasks} tasks, expected at most {}", u32::MAX))
}

/// Declares the pools that flows name.
pub(super) fn declare_pools(draft: &mut Draft) {
    let mut known: BTreeSet<String> = draft.pools.iter().map(|pool| pool.id.clone()).collect();
    for pool in draft.flows.iter().filter_map(|flow| flow.pool.as_ref()) {
        if known.insert(pool.clone()) {
            draft.pools.push(PoolDraft { id: pool.clone(), min_slots: PerPhase::default() });
        }
    }
}

/// Makes the first release second 0 if others come before it: the first row of a log need not be its
/// earliest.
pub(super) fn from_first(draft: &mut Draft) {
    let first = draft.flows.iter().map(|flow| flow.release).fold(0.0, f64::min);
    if first == 0.0 {
        return;
    }
    for flow in &mut draft.flows {
        flow.release = whole_micros(flow.release - first);
    }
    draft.start = draft.start.take().and_then(|start| start.after(first)).map(Start::from);
}

/// Reads the lines of a file of a folder. A file that ends abruptly, because its writer is running or was
/// killed, is read as far as possible.
pub(super) fn each_line(
    folder: &Folder,
    file: &str,
    diagnostics: &mut Diagnostics,
    mut take: impl FnMut(u32, &str, &mut Diagnostics) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut lines = folder.lines(file)?;
    diagnostics.enter_file(file);
    loop {
        match lines.next() {
            Ok(true) => take(lines.number, &lines.text, diagnostics)?,
            Ok(false) => return Ok(()),
            Err(_) if lines.number > 1 => {
                diagnostics.add(lines.number, "file with a damaged end, read up to the damage");
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

/// The cells of a line between white space, each with its column, counted in characters from 1.
pub(super) fn cells(line: &str) -> impl Iterator<Item = (u32, &str)> {
    let mut cells = Vec::new();
    let (mut start, mut column) = (None, 0);
    for (at, c) in line.char_indices() {
        column += 1;
        match (c.is_ascii_whitespace(), start) {
            (false, None) => start = Some((at, column)),
            (true, Some((from, first))) => {
                cells.push((first, &line[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    cells.extend(start.map(|(from, first)| (first, &line[from..])));
    cells.into_iter()
}

/// A cell for a message: a garbage one may be megabytes long.
pub(super) fn quoted(cell: &str) -> String {
    format!("{:?}", cell.chars().take(40).collect::<String>())
}
