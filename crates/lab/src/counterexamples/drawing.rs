//! Draws a counterexample as boxes over time.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use slackline::export::charts::{Area, COLOURS, Drawn, FONT, Size, picture};

/// Pixels of a picture.
const SIZE: Size = Size { width: 900, height: 220 };

/// A box that holds the slots `low..high` from `start` to `end`.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// Which colour.
    pub(super) job: usize,
    /// The text in it, if there is room.
    pub(super) name: String,
    /// Seconds.
    pub(super) start: f64,
    /// Seconds.
    pub(super) end: f64,
    /// The first slot.
    pub(super) low: f64,
    /// The end of the slots.
    pub(super) high: f64,
}

/// A picture of bars until `last`, with lines at `marks` (seconds and words).
pub(super) fn bars(title: &str, bars: &[Bar], last: f64, marks: &[(f64, &str)]) -> Result<String, String> {
    picture(SIZE, |root| draw(root, title, bars, last, marks)).map_err(|error| error.to_string())
}

fn draw<'a>(
    root: &Area<SVGBackend<'a>>,
    title: &str,
    bars: &[Bar],
    last: f64,
    marks: &[(f64, &str)],
) -> Drawn<SVGBackend<'a>> {
    let top = bars.iter().map(|bar| bar.high).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(root)
        .caption(title, (FONT, 15))
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(48)
        .build_cartesian_2d(0.0..last * 1.02, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(8)
        .y_labels(4)
        .x_desc("seconds")
        .y_desc("slots")
        .label_style((FONT, 12))
        .draw()?;
    let centre = (FONT, 12).into_text_style(root).pos(Pos::new(HPos::Center, VPos::Center));
    for bar in bars {
        let corners = [(bar.start, bar.low), (bar.end, bar.high)];
        chart
            .plotting_area()
            .draw(&Rectangle::new(corners, COLOURS[bar.job % COLOURS.len()].mix(0.5).filled()))?;
        chart.plotting_area().draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
        // Seven pixels a letter. A name that does not fit is left out; the colour identifies the job.
        let wide = (bar.end - bar.start) / last * 820.0;
        if wide > 8.0 + 7.0 * bar.name.chars().count() as f64 {
            let middle = (f64::midpoint(bar.start, bar.end), f64::midpoint(bar.low, bar.high));
            chart.plotting_area().draw(&Text::new(bar.name.clone(), middle, centre.clone()))?;
        }
    }
    let beside = (FONT, 12).into_text_style(root).pos(Pos::new(HPos::Right, VPos::Top));
    for &(at, words) in marks {
        let line = PathElement::new([(at, 0.0), (at, top)], RGBColor(160, 0, 0).stroke_width(2));
        chart.plotting_area().draw(&line)?;
        chart.plotting_area().draw(&Text::new(format!("{words} "), (at, top), beside.clone()))?;
    }
    Ok(())
}
