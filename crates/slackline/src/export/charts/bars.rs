//! The Gantt chart: one row per slot, and one bar per task.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::{deadlines, legend, titled, unit, with_legend};
use super::timeline::{Bar, Largest, Timeline};
use super::{Area, Drawn, FONT};

/// The minimum height of a row that has a gap and a name, pixels.
const NAMED: f64 = 12.0;

/// The row of the first slot of each slot kind.
fn first_row(timeline: &Timeline, bar: &Bar) -> f64 {
    let before = timeline.slot_kinds.iter().take_while(|(slot_kind, _)| *slot_kind != bar.slot_kind);
    before.map(|&(_, slots)| f64::from(slots)).sum::<f64>() + f64::from(bar.slots.first)
}

pub(super) fn gantt<D: DrawingBackend>(root: &Area<D>, timeline: &Timeline) -> Drawn<D> {
    let largest = timeline.largest();
    let body = titled(root, &format!("Flow on each slot: {}", timeline.policy))?;
    let (body, side) = with_legend(&body);
    legend(&side, timeline, &largest)?;
    let (last, rows) = (timeline.last(), timeline.slots() as f64);
    let (seconds, name) = unit(last);
    let height = f64::from(body.dim_in_pixel().1.saturating_sub(54)) / rows;
    // The first slot is at the top.
    let mut panel = ChartBuilder::on(&body)
        .margin(8)
        .margin_right(18)
        .x_label_area_size(38)
        .y_label_area_size(if height >= NAMED { 110 } else { 64 })
        .build_cartesian_2d(0.0..last / seconds, 0.0..rows)?;
    let mut mesh = panel.configure_mesh();
    mesh.disable_y_mesh().light_line_style(TRANSPARENT).label_style((FONT, 13)).axis_desc_style((FONT, 14));
    mesh.x_desc(format!("time ({name})")).x_label_formatter(&|x| super::axis::plain(*x));
    if height >= NAMED {
        mesh.y_labels(0);
    } else {
        mesh.y_desc("one row for each slot, the first slot at the top");
    }
    let from_top = |y: &f64| super::axis::plain(rows - y);
    mesh.y_label_formatter(&from_top);
    mesh.draw()?;
    let bar = |bar: &Bar| {
        let row = rows - first_row(timeline, bar);
        let (x0, x1) = (bar.start.seconds() / seconds, bar.end.seconds() / seconds);
        let gap = if height >= 4.0 { 0.08 } else { 0.0 };
        let colour = Largest::colour(largest.place(bar.flow));
        let colour = if bar.counts { colour.to_rgba() } else { colour.mix(0.35) };
        (0..bar.slots.len).map(move |k| {
            let top = row - f64::from(k);
            Rectangle::new([(x0, top - gap), (x1, top - 1.0 + gap)], colour.filled())
        })
    };
    panel.draw_series(timeline.bars.iter().flat_map(bar))?;
    if height >= 4.0 {
        // White lines at the starts separate consecutive tasks of one flow.
        let begins = timeline.bars.iter().flat_map(|bar| {
            let (row, x) = (rows - first_row(timeline, bar), bar.start.seconds() / seconds);
            (0..bar.slots.len).map(move |k| {
                let top = row - f64::from(k);
                PathElement::new([(x, top), (x, top - 1.0)], WHITE.stroke_width(1))
            })
        });
        panel.draw_series(begins)?;
    }
    if height >= NAMED {
        names(&body, timeline, |row| panel.backend_coord(&(0.0, rows - row - 0.5)))?;
    }
    deadlines(&mut panel, timeline, &largest, rows)
}

/// The name of the machine beside each slot. `place` maps the middle of a row to its pixel position.
fn names<D: DrawingBackend>(
    body: &Area<D>,
    timeline: &Timeline,
    place: impl Fn(f64) -> (i32, i32),
) -> Drawn<D> {
    let style = (FONT, 12).into_font().color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
    let (columns, lines) = body.get_pixel_range();
    let mut row = 0.0;
    for &(slot_kind, slots) in &timeline.slot_kinds {
        for slot in 0..slots {
            if let Some(name) = timeline.names.get(&(slot_kind.index(), slot)) {
                let (x, y) = place(row);
                let at = (x - columns.start - 6, y - lines.start);
                body.draw(&Text::new(name.as_str(), at, style.clone()))?;
            }
            row += 1.0;
        }
    }
    Ok(())
}
