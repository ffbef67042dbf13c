//! Stage 3: shape shifting (section 4.3, Fig. 9): the histograms of pseudo-jobs become schedules of nodes.
//!
//! A stretch of σ slots for |J| seconds does the work of |J|·σ/r seconds of the pseudo-job of cap r. Node i
//! of cap δ has δ·|J|·σ/r of it. Laid into σ rows of length |J| one after the other, wrapping around
//! (McNaughton's rule), it covers δσ/r ≤ δ rows, so it never holds more than δ slots. Positions are
//! multiples of 1/r, so that the number of slots at an instant is exact integer arithmetic.
//!
//! **Complexity**: at most three rows per node and stretch; linear in the output.

use slackline_model::schedule::Allocation;

use super::chain::PseudoJob;
use super::deadlines::{Histograms, Stretch};
use super::network::Network;

/// The schedule of one flow's nodes.
pub fn shift(net: &Network, chain: &[PseudoJob], histograms: &Histograms, rows: &mut Vec<Allocation>) {
    for (job, histogram) in chain.iter().zip(histograms) {
        for stretch in histogram {
            wrap(net, job, *stretch, rows);
        }
    }
}

/// McNaughton's rule within a stretch.
fn wrap(net: &Network, job: &PseudoJob, stretch: Stretch, rows: &mut Vec<Allocation>) {
    let (sigma, r) = (u64::from(stretch.slots), u64::from(job.cap));
    let length = stretch.end - stretch.start;
    let instant =
        |part: u64| if part == r { stretch.end } else { stretch.start + length * (part as f64 / r as f64) };
    // Where the node begins, in units of 1/r of a row.
    let mut begin = 0;
    for &node in &job.nodes {
        let end = begin + u64::from(net.node(node as usize).cap) * sigma;
        let mut cuts = [0, begin % r, end % r, r];
        cuts.sort_unstable();
        for ends in cuts.windows(2) {
            // Rows n with begin ≤ n·r + t < end, for t at the start of the part.
            let rows_before = |x: u64| (x + r - 1 - ends[0]) / r;
            let slots = rows_before(end) - rows_before(begin);
            if slots > 0 && ends[0] < ends[1] && instant(ends[1]) > instant(ends[0]) {
                rows.push(Allocation {
                    phase: net.node(node as usize).phase,
                    start: instant(ends[0]),
                    end: instant(ends[1]),
                    slots: slots as u32,
                });
            }
        }
        begin = end;
    }
}

/// Joins rows of a phase that follow each other with the same slots.
pub fn merge(rows: &mut Vec<Allocation>) {
    rows.sort_by(|a, b| a.phase.cmp(&b.phase).then(a.start.total_cmp(&b.start)));
    rows.dedup_by(|next, last| {
        let joins = last.phase == next.phase && last.slots == next.slots && last.end == next.start;
        if joins {
            last.end = next.end;
        }
        joins
    });
}
