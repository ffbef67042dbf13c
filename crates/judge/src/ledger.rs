//! The valid task rows of a schedule, in order of start and phase by phase.
//!
//! Rows stay runs of tasks. Nothing here is stored per task, except where attempts of one task overlap the
//! runs of others ([`Ledger::pieces`]).

use slackline_model::schedule::{Outcome, TaskRow, TaskRows};
use slackline_model::{Instance, PhaseId, SlotRange, Work};

use crate::violation::RowProblem;

/// Task rows by start and by phase. Memory: two numbers per row.
pub(crate) struct Ledger<'a> {
    pub(crate) instance: &'a Instance,
    pub(crate) rows: &'a TaskRows,
    by_start: Vec<u32>,
    by_phase: Vec<u32>,
    /// Where the rows of each phase start in `by_phase`; one more entry than phases.
    offsets: Vec<u32>,
}

/// Consecutive tasks of a row that share all their attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) row: u32,
}

impl<'a> Ledger<'a> {
    /// Sorts the rows and leaves out invalid ones. O(n log n); O(n) if rows are in order of start.
    pub(crate) fn new(instance: &'a Instance, rows: &'a TaskRows) -> Self {
        let sound = |&(_, row): &(usize, &TaskRow)| fault(instance, row, rows.places(row)).is_none();
        let sound = rows.rows().iter().enumerate().filter(sound).map(|(i, _)| i as u32);
        Self::of_rows(instance, rows, sound.collect())
    }

    /// The same for rows that are known to be valid.
    pub(crate) fn of_sound(instance: &'a Instance, rows: &'a TaskRows) -> Self {
        Self::of_rows(instance, rows, (0..rows.len() as u32).collect())
    }

    /// Sorts the rows of these indices, which are valid.
    fn of_rows(instance: &'a Instance, rows: &'a TaskRows, mut by_start: Vec<u32>) -> Self {
        by_start.sort_by_key(|&i| rows.row(i as usize).start);
        let mut offsets = vec![0u32; instance.phases().len() + 1];
        for &i in &by_start {
            offsets[rows.row(i as usize).phase.index() + 1] += 1;
        }
        for phase in 1..offsets.len() {
            offsets[phase] += offsets[phase - 1];
        }
        let mut next = offsets.clone();
        let mut by_phase = vec![0u32; by_start.len()];
        for &i in &by_start {
            let at = &mut next[rows.row(i as usize).phase.index()];
            by_phase[*at as usize] = i;
            *at += 1;
        }
        Self { instance, rows, by_start, by_phase, offsets }
    }

    /// The row of that index.
    pub(crate) fn row(&self, index: u32) -> &'a TaskRow {
        self.rows.row(index as usize)
    }

    /// All rows in order of start.
    pub(crate) fn by_start(&self) -> &[u32] {
        &self.by_start
    }

    /// The rows of `phase` in order of start.
    pub(crate) fn of(&self, phase: PhaseId) -> impl DoubleEndedIterator<Item = &'a TaskRow> + '_ {
        self.indices(phase).iter().map(|&i| self.row(i))
    }

    /// The rows of `phase` in order of start, as indices.
    pub(crate) fn indices(&self, phase: PhaseId) -> &[u32] {
        let (from, to) = (self.offsets[phase.index()], self.offsets[phase.index() + 1]);
        &self.by_phase[from as usize..to as usize]
    }

    /// Whether `phase` has no length and no row: then it is done when it becomes ready. If it has rows, as in
    /// older documents, they are checked like those of any other phase.
    pub(crate) fn is_unseen(&self, phase: PhaseId) -> bool {
        self.instance.phase(phase).work() == Work::ZERO && self.indices(phase).is_empty()
    }

    /// Whether some task of `phase` has several attempts.
    pub(crate) fn has_retries(&self, phase: PhaseId) -> bool {
        self.of(phase).any(|row| row.attempt > 0)
    }

    /// Whether finished work of `phase` was lost.
    pub(crate) fn has_losses(&self, phase: PhaseId) -> bool {
        self.of(phase).any(|row| row.outcome == Outcome::Lost)
    }

    /// The rows of `phase`, cut so that two pieces hold the same tasks or have none in common, in order of
    /// tasks, then attempts. There are at most as many pieces as attempts.
    pub(crate) fn pieces(&self, phase: PhaseId) -> Vec<Piece> {
        let whole = |&i: &u32| Piece { first: self.row(i).first, count: self.row(i).count, row: i };
        let mut pieces: Vec<Piece> = self.indices(phase).iter().map(whole).collect();
        let key = |p: &Piece| (p.first, self.row(p.row).attempt, self.row(p.row).start, p.row);
        pieces.sort_by_key(key);
        if pieces.windows(2).all(|w| w[0].first + w[0].count <= w[1].first) {
            return pieces;
        }
        let mut cuts: Vec<u32> = pieces.iter().flat_map(|p| [p.first, p.first + p.count]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut cut = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let from = cuts.partition_point(|&c| c < piece.first);
            for pair in cuts[from..].windows(2).take_while(|w| w[0] < piece.first + piece.count) {
                cut.push(Piece { first: pair[0], count: pair[1] - pair[0], row: piece.row });
            }
        }
        cut.sort_by_key(key);
        cut
    }
}

/// Why a row is invalid, if it is.
pub(crate) fn fault(instance: &Instance, row: &TaskRow, places: &[SlotRange]) -> Option<RowProblem> {
    let Some(phase) = instance.phases().get(row.phase) else {
        return Some(RowProblem::UnknownPhase(row.phase.0));
    };
    let Some(tasks) = phase.tasks() else {
        return Some(RowProblem::NoTasks);
    };
    let past = u64::from(row.first) + u64::from(row.count);
    if row.count == 0 {
        return Some(RowProblem::Empty);
    }
    if past > u64::from(tasks.count()) {
        return Some(RowProblem::TaskNumber { first: row.first, last: past - 1, tasks: tasks.count() });
    }
    let slots = instance.cluster().slots(instance.slot_kind_of(row.phase));
    let mut found = 0;
    for place in places {
        found += u64::from(place.len);
        if place.len == 0 || u64::from(place.first) + u64::from(place.len) > u64::from(slots) {
            return Some(RowProblem::SlotNumber { first: place.first, len: place.len, slots });
        }
    }
    if found != u64::from(row.count) {
        return Some(RowProblem::SlotCount { found, expected: row.count });
    }
    if row.end < row.start {
        return Some(RowProblem::Backwards { start: row.start.seconds(), end: row.end.seconds() });
    }
    let length = row.end.since(row.start);
    if row.startup > length {
        let [startup, length] = [row.startup, length].map(slackline_model::Span::seconds);
        return Some(RowProblem::Startup { startup, length });
    }
    // Half of the range is 290,000 years, and no later addition overflows.
    (row.end.0 > u64::MAX / 2).then_some(RowProblem::NotFinite(row.end.seconds()))
}
