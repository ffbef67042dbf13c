//! Finds the first instant at which the held slots exceed a limit. The rules on capacity, caps,
//! ApplicationMasters and waiting reduces share this sweep. `slots` checks that no slot runs two attempts at
//! once.

use crate::tolerance;

/// Slots held from `start` to `end` (seconds).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) slots: u32,
    /// Index of the row that holds them.
    pub(crate) row: u32,
}

/// The first time at which the held slots exceed the limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Excess {
    pub(crate) at: f64,
    /// Slots held after all starts of that instant.
    pub(crate) held: u64,
    /// The row whose start exceeded the limit.
    pub(crate) row: u32,
}

/// Sweeps over `holds`. Two of them overlap if they do so for longer than the tolerance of instants.
/// O(n log n).
pub(crate) fn first_excess(mut holds: Vec<Hold>, limit: u64) -> Option<Excess> {
    holds.retain_mut(|hold| {
        hold.end -= tolerance::instant(hold.end);
        hold.end > hold.start
    });
    holds.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.row.cmp(&b.row)));
    let mut ends: Vec<(f64, u32)> = holds.iter().map(|hold| (hold.end, hold.slots)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ends = ends.into_iter().peekable();
    let mut held = 0u64;
    let mut excess: Option<Excess> = None;
    for hold in holds {
        if let Some(excess) = excess
            && hold.start > excess.at
        {
            break;
        }
        while let Some((_, slots)) = ends.next_if(|end| end.0 <= hold.start) {
            held -= u64::from(slots);
        }
        held += u64::from(hold.slots);
        if held > limit {
            let row = excess.map_or(hold.row, |e| e.row);
            excess = Some(Excess { at: hold.start, held, row });
        }
    }
    excess
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(start: f64, end: f64, slots: u32, row: u32) -> Hold {
        Hold { start, end, slots, row }
    }

    #[test]
    fn touching_within_tolerance_is_no_overlap() {
        let holds = vec![hold(0.0, 10.000_001, 2, 0), hold(10.0, 20.0, 2, 1), hold(5.0, 5.0, 9, 2)];
        assert_eq!(first_excess(holds, 2), None);
    }

    #[test]
    fn the_first_excess_counts_all_starts_of_its_instant() {
        let holds =
            vec![hold(0.0, 9.0, 1, 0), hold(8.0, 9.0, 2, 1), hold(8.0, 9.0, 3, 2), hold(8.5, 9.0, 4, 3)];
        assert_eq!(first_excess(holds, 2), Some(Excess { at: 8.0, held: 6, row: 1 }));
    }
}
