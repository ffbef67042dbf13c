//! Distributions over flows: for each value, the fraction of flows with at most this value.

use plotters::prelude::*;

use super::axis::{plain, titled, unit};
use super::timeline::{Largest, Timeline};
use super::{Area, Chart, Drawn, FONT};

/// The ratio of the largest to the smallest value from which on the axis is logarithmic.
const WIDE: f64 = 100.0;

pub(super) fn ecdf<D: DrawingBackend>(root: &Area<D>, timeline: &Timeline, chart: Chart) -> Drawn<D> {
    let values = timeline.values(chart);
    let (least, most) = (values[0], values[values.len() - 1]);
    let (per, name) = match chart {
        Chart::Slowdown => (1.0, "times the time alone on the cluster"),
        _ => unit(most),
    };
    let is_wide = least > 0.0 && most / least >= WIDE;
    let place = |value: f64| if is_wide { (value / per).log10() } else { value / per };
    let (from, to) = if is_wide { (place(least), place(most)) } else { (0.0, (most / per).max(1e-9)) };
    let what = match chart {
        Chart::Wait => "Waiting time from release to first start",
        Chart::Slowdown => "Slowdown",
        _ => "Response time from release to completion",
    };
    let missing = timeline.flows.len() - values.len();
    let without = if missing > 0 { format!(", {missing} more without a value") } else { String::new() };
    let body = titled(root, &format!("{what}: {}, {} flows{without}", timeline.policy, values.len()))?;
    let mut panel = ChartBuilder::on(&body)
        .margin(8)
        .margin_right(30)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(from..to.max(from + 1e-9), 0.0..1.0)?;
    let label = |x: &f64| plain(if is_wide { 10f64.powf(*x) } else { *x });
    panel
        .configure_mesh()
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .light_line_style(TRANSPARENT)
        .x_desc(format!("{} ({name})", chart.name()))
        .y_desc("share of flows")
        .x_label_formatter(&label)
        .y_label_formatter(&|y| plain(*y))
        .draw()?;
    let share = |k: usize| k as f64 / values.len() as f64;
    let mut points = vec![(from, 0.0)];
    for (k, &value) in values.iter().enumerate() {
        let x = place(value);
        points.push((x, share(k)));
        points.push((x, share(k + 1)));
    }
    points.push((to.max(from + 1e-9), 1.0));
    panel.draw_series([PathElement::new(points, Largest::colour(0).stroke_width(2))])?;
    Ok(())
}
