//! Boxes over time: what a counterexample looks like.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels of a picture.
const SIZE: (u32, u32) = (900, 220);

/// Colours that are apart for most eyes (after Okabe and Ito), one a job.
const COLOURS: [RGBColor; 8] = [
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(240, 228, 66),
    RGBColor(213, 94, 0),
    RGBColor(150, 190, 220),
    RGBColor(190, 190, 190),
];

/// Something that holds the slots `low..high` from `start` to `end`.
#[derive(Clone, Debug)]
pub(super) struct Bar {
    /// Which colour.
    pub(super) job: usize,
    /// What stands in it, where it fits.
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
    slackline::export::charts::register().map_err(|error| error.to_string())?;
    let mut svg = String::new();
    draw(&mut svg, title, bars, last, marks).map_err(|error| error.to_string())?;
    Ok(svg)
}

fn draw(
    svg: &mut String,
    title: &str,
    bars: &[Bar],
    last: f64,
    marks: &[(f64, &str)],
) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let top = bars.iter().map(|bar| bar.high).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 15))
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
        .label_style(("sans-serif", 12))
        .draw()?;
    let centre = ("sans-serif", 12).into_text_style(&root).pos(Pos::new(HPos::Center, VPos::Center));
    for bar in bars {
        let corners = [(bar.start, bar.low), (bar.end, bar.high)];
        chart.plotting_area().draw(&Rectangle::new(corners, COLOURS[bar.job % COLOURS.len()].filled()))?;
        chart.plotting_area().draw(&Rectangle::new(corners, BLACK.stroke_width(1)))?;
        // Seven pixels a letter; a name that does not fit is left out, the colour says it.
        let wide = (bar.end - bar.start) / last * 820.0;
        if wide > 8.0 + 7.0 * bar.name.chars().count() as f64 {
            let middle = (f64::midpoint(bar.start, bar.end), f64::midpoint(bar.low, bar.high));
            chart.plotting_area().draw(&Text::new(bar.name.clone(), middle, centre.clone()))?;
        }
    }
    let beside = ("sans-serif", 12).into_text_style(&root).pos(Pos::new(HPos::Right, VPos::Top));
    for &(at, words) in marks {
        let line = PathElement::new([(at, 0.0), (at, top)], RGBColor(160, 0, 0).stroke_width(2));
        chart.plotting_area().draw(&line)?;
        chart.plotting_area().draw(&Text::new(format!("{words} "), (at, top), beside.clone()))?;
    }
    root.present()?;
    drop(chart);
    drop(root);
    Ok(())
}
