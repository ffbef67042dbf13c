//! Fractional rates become whole slots by time slicing.
//!
//! Within an interval of constant rates a job holds ⌊r⌋ slots throughout and one more for the fraction
//! r − ⌊r⌋ of the time. The extra slots are filled one after the other, wrapping around at the
//! interval's end (McNaughton's rule; a fraction below 1 never overlaps itself), so that never more than
//! the sum of the rates, rounded up, is in use. As m and M are whole, ⌊r⌋ ≥ m and ⌈r⌉ ≤ M.

use std::ops::Range;

use slackline_relax::deadlines::Filling;

use super::instance::Piece;

/// Rates this near to a whole number are that number: rounding of the water filling.
const NEAR: f64 = 1e-9;

/// The pieces of a filling, each at least as long as makes sense in an `f64`, by job and start.
pub fn slice(filling: &Filling) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (k, ends) in filling.cuts.windows(2).enumerate() {
        let rates: Vec<f64> = filling.rates.iter().map(|rates| rates[k]).collect();
        slice_interval(ends[0]..ends[1], &rates, &mut pieces);
    }
    merge(pieces)
}

fn slice_interval(interval: Range<f64>, rates: &[f64], pieces: &mut Vec<Piece>) {
    let (start, end) = (interval.start, interval.end);
    // Where the next fraction begins on the extra slot that is being filled.
    let mut at = start;
    for (job, &rate) in rates.iter().enumerate() {
        let rate = if (rate - rate.round()).abs() <= NEAR { rate.round() } else { rate };
        let slots = rate.floor();
        let mut push = |start: f64, end: f64, slots: f64| {
            if slots > 0.0 && end > start {
                pieces.push(Piece { job, start, end, slots: slots as u32 });
            }
        };
        if rate == slots {
            push(start, end, slots);
            continue;
        }
        let stop = at + (rate - slots) * (end - start);
        if stop < end - NEAR * (end - start) {
            push(start, at, slots);
            push(at, stop, slots + 1.0);
            push(stop, end, slots);
            at = stop;
        } else {
            // The fraction continues at the start of the next extra slot.
            let over = (start + (stop - end)).clamp(start, at);
            let over = if over - start <= NEAR * (end - start) { start } else { over };
            push(start, over, slots + 1.0);
            push(over, at, slots);
            push(at, end, slots + 1.0);
            at = over;
        }
    }
}

/// Joins pieces of a job that follow each other with the same slots.
pub(super) fn merge(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by(|a, b| a.job.cmp(&b.job).then(a.start.total_cmp(&b.start)));
    let mut merged: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match merged.last_mut() {
            Some(last) if last.job == piece.job && last.slots == piece.slots && last.end == piece.start => {
                last.end = piece.end;
            }
            _ => merged.push(piece),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slices_keep_capacity_and_work(rates in prop::collection::vec(0.0f64..4.0, 1..8)) {
            let filling = Filling { cuts: vec![1.0, 3.0], rates: rates.iter().map(|&r| vec![r]).collect() };
            let pieces = slice(&filling);
            let capacity = (rates.iter().sum::<f64>() - 1e-6).ceil();
            for piece in &pieces {
                let load: u32 =
                    pieces.iter().filter(|p| p.start <= piece.start && piece.start < p.end).map(|p| p.slots).sum();
                prop_assert!(f64::from(load) <= capacity, "{load} above {capacity}: {pieces:?}");
                let rate = rates[piece.job];
                prop_assert!(f64::from(piece.slots) >= (rate - 1e-6).floor());
                prop_assert!(f64::from(piece.slots) <= (rate + 1e-6).ceil());
            }
            for (job, rate) in rates.iter().enumerate() {
                let own = pieces.iter().filter(|p| p.job == job);
                let done: f64 = own.map(|p| f64::from(p.slots) * (p.end - p.start)).sum();
                prop_assert!((done - 2.0 * rate).abs() <= 1e-7, "{done} of {}", 2.0 * rate);
            }
        }
    }
}
