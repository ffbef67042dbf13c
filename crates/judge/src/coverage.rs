//! Checks the structure of the task rows: each row is valid, each task has exactly one attempt that is done,
//! and attempts are numbered in the order of their starts.
//!
//! A failed flow may leave tasks out; the rows that it has obey the same rules. A phase without length needs
//! no rows.

use slackline_model::schedule::{Outcome, TaskRows};
use slackline_model::{FlowId, Instance, PhaseId};

use crate::ledger::{Ledger, Piece, fault};
use crate::tolerance;
use crate::violation::{Subject, Table, Violation};

/// The first invalid row.
pub(crate) fn check_rows(instance: &Instance, rows: &TaskRows) -> Result<(), Violation> {
    let found = rows
        .rows()
        .iter()
        .enumerate()
        .find_map(|(i, row)| Some((i, fault(instance, row, rows.places(row))?)));
    found.map_or(Ok(()), |(row, problem)| Err(Violation::Row { table: Table::Tasks, row, problem }))
}

/// The first task, by phase and number, with too many or too few attempts.
pub(crate) fn check_tasks(ledger: &Ledger<'_>, failed: impl Fn(FlowId) -> bool) -> Result<(), Violation> {
    for (phase, of) in ledger.instance.phases().iter_enumerated() {
        let failed = failed(ledger.instance.flow_of(phase));
        if ledger.is_unseen(phase) {
            continue;
        }
        let Some(tasks) = of.tasks() else {
            let (phase, expected) = (Subject::phase(ledger.instance, phase), of.work().slot_seconds());
            if failed {
                continue;
            }
            return Err(Violation::Work { phase, found: 0.0, expected });
        };
        let missing = |task| Violation::TaskMissing { task: Subject::task(ledger.instance, phase, task) };
        let mut next = 0;
        for attempts in ledger.pieces(phase).chunk_by(|a, b| a.first == b.first) {
            let first = attempts[0].first;
            if first > next && !failed {
                return Err(missing(next));
            }
            if !check_attempts(ledger, phase, attempts)? && !failed {
                return Err(missing(first));
            }
            next = first + attempts[0].count;
        }
        if next < tasks.count() && !failed {
            return Err(missing(next));
        }
    }
    Ok(())
}

/// Checks all attempts of the same tasks. Returns whether one of them is done.
fn check_attempts(ledger: &Ledger<'_>, phase: PhaseId, attempts: &[Piece]) -> Result<bool, Violation> {
    let who = || Subject::task(ledger.instance, phase, attempts[0].first);
    let done = attempts.iter().filter(|p| ledger.row(p.row).outcome == Outcome::Done).count();
    if done > 1 {
        return Err(Violation::TaskTwice { task: who(), found: done as u32 });
    }
    let mut last = None;
    for (expected, piece) in attempts.iter().enumerate() {
        let row = ledger.row(piece.row);
        let late = last.is_some_and(|last| tolerance::earlier_micros(row.start, last));
        if usize::from(row.attempt) != expected || late {
            return Err(Violation::Attempt {
                task: who(),
                found: row.attempt,
                // An attempt that starts before the attempt with the next lower number should have that
                // number.
                expected: if late { expected as u32 - 1 } else { expected as u32 },
                start: row.start.seconds(),
            });
        }
        last = Some(row.start);
    }
    Ok(done == 1)
}
