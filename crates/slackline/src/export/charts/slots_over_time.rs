//! Slots over time: the number that each flow holds, and the total.
//!
//! Time is divided into equal columns, and a chart shows the mean of each column. There may be thousands of
//! times more changes than visible columns.

use plotters::prelude::*;

use crate::export::charts::axis::{Panel, deadlines, legend, panel, titled, unit, with_legend};
use crate::export::charts::timeline::{COLUMNS, Largest, Timeline};
use crate::export::charts::{Area, Drawn, SHOWN};
use slackline_model::{SlotKind, Time};

/// Adds `times` times the interval from `start` to `end` to the columns that it overlaps, each `width`
/// microseconds wide. Sums are whole numbers, so the order of rows does not affect them.
fn add(columns: &mut [u128], width: u64, [start, end]: [Time; 2], times: u32) {
    let (first, last) = (start.0 / width, end.0 / width);
    let touched =
        columns.iter_mut().zip(0u64..).skip(first as usize).take((last + 1 - first.min(last)) as usize);
    for (sum, k) in touched {
        let (from, to) = (start.0.max(k * width), end.0.min((k + 1) * width));
        *sum += u128::from(to.saturating_sub(from)) * u128::from(times);
    }
}

/// The mean numbers of held slots of a kind over the columns, for each place of [`Largest`] and then for all
/// other flows. O(bars · columns of each).
fn columns(timeline: &Timeline, slot_kind: SlotKind, largest: &Largest) -> Vec<Vec<f64>> {
    let width = timeline.column();
    let mut sums = vec![vec![0; COLUMNS]; SHOWN + 1];
    for bar in timeline.bars.iter().filter(|bar| bar.slot_kind == slot_kind) {
        add(&mut sums[largest.place(bar.flow)], width, [bar.start, bar.end], bar.slots.len);
    }
    let mean = |sum: u128| sum as f64 / width as f64;
    sums.into_iter().map(|of| of.into_iter().map(mean).collect()).collect()
}

/// The outline of columns with these heights. Adjacent columns of equal height are merged.
fn outline(heights: impl Iterator<Item = f64>, width: f64) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    let mut before = 0.0;
    for (k, height) in heights.enumerate() {
        if height != before {
            let x = k as f64 * width;
            points.extend([(x, before), (x, height)]);
            before = height;
        }
    }
    let end = COLUMNS as f64 * width;
    points.extend([(end, before), (end, 0.0)]);
    points
}

/// The slots that each flow holds, stacked, with one panel per slot kind.
pub(super) fn flows<D: DrawingBackend>(root: &Area<D>, timeline: &Timeline) -> Drawn<D> {
    let largest = timeline.largest();
    let body = titled(root, &format!("Slots that flows hold: {}", timeline.policy))?;
    let (body, side) = with_legend(&body);
    legend(&side, timeline, &largest)?;
    let last = timeline.last();
    let width = last / unit(last).0 / COLUMNS as f64;
    let areas = body.split_evenly((timeline.slot_kinds.len(), 1));
    for (&(slot_kind, slots), area) in timeline.slot_kinds.iter().zip(&areas) {
        let top = f64::from(slots).max(1.0);
        let means = columns(timeline, slot_kind, &largest);
        let mut panel = panel(area, last, top, &format!("{} slots", slot_kind.name()))?;
        // Draws the whole stack first, then the stack without its last flow, and so on.
        for place in (0..means.len()).rev().filter(|&place| means[place].iter().any(|&mean| mean > 0.0)) {
            let upto = |k: usize| means[..=place].iter().map(|of| of[k]).sum::<f64>();
            let points = outline((0..COLUMNS).map(upto), width);
            panel.draw_series([Polygon::new(points, Largest::colour(place).filled())])?;
        }
        deadlines(&mut panel, timeline, &largest, top)?;
    }
    Ok(())
}

/// The fraction of held slots by slot kind, and the number of active flows.
pub(super) fn utilisation<D: DrawingBackend>(root: &Area<D>, timeline: &Timeline) -> Drawn<D> {
    let largest = timeline.largest();
    let body = titled(root, &format!("Slots held and flows not finished: {}", timeline.policy))?;
    let last = timeline.last();
    let width = last / unit(last).0 / COLUMNS as f64;
    let areas = body.split_evenly((timeline.slot_kinds.len() + 1, 1));
    for (&(slot_kind, slots), area) in timeline.slot_kinds.iter().zip(&areas) {
        let means = columns(timeline, slot_kind, &largest);
        let share = |k: usize| means.iter().map(|of| of[k]).sum::<f64>() / f64::from(slots.max(1));
        let mut panel = panel(area, last, 1.0, &format!("{} slots held", slot_kind.name()))?;
        stepped(&mut panel, (0..COLUMNS).map(share), width, Largest::colour(0))?;
    }
    let open = open(timeline);
    let top = open.iter().copied().fold(1.0, f64::max);
    let mut panel = panel(&areas[timeline.slot_kinds.len()], last, top * 1.05, "flows")?;
    stepped(&mut panel, open.into_iter(), width, Largest::colour(1))
}

/// Columns as a filled area.
fn stepped<D: DrawingBackend>(
    panel: &mut Panel<'_, D>,
    heights: impl Iterator<Item = f64>,
    width: f64,
    colour: RGBColor,
) -> Drawn<D> {
    panel.draw_series([Polygon::new(outline(heights, width), colour.filled())])?;
    Ok(())
}

/// The mean number of active flows in each column. Failed flows count until the end.
fn open(timeline: &Timeline) -> Vec<f64> {
    let (width, last) = (timeline.column(), timeline.last());
    let mut sums = vec![0; COLUMNS];
    for flow in timeline.flows.values() {
        let times = [flow.release, flow.completion.unwrap_or(last).min(last)].map(Time::from_seconds_nearest);
        add(&mut sums, width, times, 1);
    }
    sums.into_iter().map(|sum| sum as f64 / width as f64).collect()
}
