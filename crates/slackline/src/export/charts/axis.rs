//! Common parts of charts: panels with axes in a suitable unit of time, titles, legends.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::timeline::{Largest, Timeline};
use super::{Area, Drawn, FONT};

/// The height of the title and the width of the legend, pixels.
const TITLE: u32 = 34;
const LEGEND: u32 = 230;

/// The maximum length of a name in the legend, characters.
const LETTERS: usize = 26;

/// A panel with two numeric axes.
pub(super) type Panel<'a, D> = ChartContext<'a, D, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A suitable unit for times up to `last` seconds: its length in seconds, and its name.
pub(super) fn unit(last: f64) -> (f64, &'static str) {
    match last {
        _ if last < 600.0 => (1.0, "s"),
        _ if last < 3.0 * 3600.0 => (60.0, "min"),
        _ if last < 4.0 * 86400.0 => (3600.0, "h"),
        _ => (86400.0, "d"),
    }
}

/// A number without trailing zeros.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Draws the title and returns the rest of the chart.
pub(super) fn titled<D: DrawingBackend>(root: &Area<D>, title: &str) -> Result<Area<D>, DrawError<D>> {
    let (head, body) = root.split_vertically(TITLE);
    text(&head, title, 12, 8, 18, HPos::Left)?;
    Ok(body)
}

/// The error of a backend.
pub(super) type DrawError<D> = plotters::drawing::DrawingAreaErrorKind<<D as DrawingBackend>::ErrorType>;

fn text<D: DrawingBackend>(area: &Area<D>, text: &str, x: i32, y: i32, size: i32, side: HPos) -> Drawn<D> {
    let style = (FONT, size).into_font().color(&BLACK).pos(Pos::new(side, VPos::Top));
    area.draw(&Text::new(text.to_owned(), (x, y), style))
}

/// A panel with its axes: horizontally from 0 to `last` seconds, vertically up to `top` in the unit of
/// `what`.
pub(super) fn panel<'a, D: DrawingBackend>(
    area: &'a Area<D>,
    last: f64,
    top: f64,
    what: &str,
) -> Result<Panel<'a, D>, DrawError<D>> {
    let (seconds, name) = unit(last);
    let mut panel = ChartBuilder::on(area)
        .margin(8)
        .margin_right(18)
        .x_label_area_size(38)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..last / seconds, 0.0..top)?;
    panel
        .configure_mesh()
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(TRANSPARENT)
        .x_desc(format!("time ({name})"))
        .y_desc(what)
        .x_label_formatter(&|x| plain(*x))
        .y_label_formatter(&|y| plain(*y))
        .draw()?;
    Ok(panel)
}

/// Splits off the legend: returns the rest of the chart, and the legend.
pub(super) fn with_legend<D: DrawingBackend>(body: &Area<D>) -> (Area<D>, Area<D>) {
    let (width, _) = body.dim_in_pixel();
    body.split_horizontally(width.saturating_sub(LEGEND.min(width / 3)))
}

/// The legend: the colour and the result of each flow.
pub(super) fn legend<D: DrawingBackend>(area: &Area<D>, timeline: &Timeline, largest: &Largest) -> Drawn<D> {
    let mut y = 12;
    for (place, flow) in largest.flows().iter().enumerate() {
        let flow = &timeline.flows[flow];
        let late = match (flow.completion, flow.deadline) {
            (None, _) => ", failed",
            (Some(at), Some(due)) if slackline_model::cost::is_late(at, due) => ", late",
            _ => "",
        };
        entry(area, y, Largest::colour(place), &format!("{}{late}", shortened(&flow.name)))?;
        y += 22;
    }
    let more = timeline.flows.len() - largest.flows().len();
    if more > 0 {
        entry(area, y, super::OTHERS, &format!("{more} more flows"))?;
    }
    Ok(())
}

fn entry<D: DrawingBackend>(area: &Area<D>, y: i32, colour: RGBColor, words: &str) -> Drawn<D> {
    area.draw(&Rectangle::new([(6, y), (18, y + 12)], colour.filled()))?;
    text(area, words, 24, y, 13, HPos::Left)
}

/// Shortens a long name to its beginning.
fn shortened(name: &str) -> String {
    if name.chars().count() <= LETTERS {
        return name.to_owned();
    }
    let mut short: String = name.chars().take(LETTERS - 1).collect();
    short.push('…');
    short
}

/// Draws a line at the deadline of each coloured flow, if it is on the axis.
pub(super) fn deadlines<D: DrawingBackend>(
    panel: &mut Panel<'_, D>,
    timeline: &Timeline,
    largest: &Largest,
    top: f64,
) -> Drawn<D> {
    let last = timeline.last();
    let (seconds, _) = unit(last);
    for (place, flow) in largest.flows().iter().enumerate() {
        let Some(due) = timeline.flows[flow].deadline.filter(|&due| due <= last) else { continue };
        let line = [(due / seconds, 0.0), (due / seconds, top)];
        panel.draw_series([PathElement::new(line, WHITE.stroke_width(4))])?;
        let colour = Largest::colour(place);
        panel.draw_series(DashedLineSeries::new(line, 6, 3, colour.stroke_width(2)))?;
    }
    Ok(())
}
