//! Draws a figure: means with their intervals, the range over the seeds, and the paper's numbers beside them.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use slackline::export::charts::{self, COLOURS, FONT, Size};

use super::expectation::short;
use super::points::order;
use super::{Claim, Number, Panel, Row};

/// Pixels: width of a picture, height of a panel, of the title, of a line of the legend.
const WIDTH: u32 = 900;
const PANEL: u32 = 300;
const TITLE: u32 = 34;
const LEGEND: u32 = 22;

/// Values whose largest is this many times the least are drawn on a logarithmic axis.
const WIDE: f64 = 30.0;

type Area<'a> = charts::Area<SVGBackend<'a>>;
type Drawn<'a> = charts::Drawn<SVGBackend<'a>>;

/// The content of a panel, in the order of the axes.
struct Plot<'a> {
    panel: &'a Panel,
    /// The text above it: the series.
    head: &'a str,
    /// Names of the places on the axis.
    places: Vec<&'a str>,
    /// Policies in the order of the legend.
    policies: &'a [&'a str],
    /// Rows with their place and policy.
    marks: Vec<(usize, usize, &'a Row)>,
    /// Numbers of the paper, with places and policies.
    paper: Vec<(usize, usize, &'a Number)>,
    /// Whether the places are numbers, so that means are joined.
    joined: bool,
}

/// Draws the panels of a claim as SVG, or one for each measure that all rows have if it names none. `None` if
/// there is nothing to draw. O(rows · panels).
///
/// # Errors
/// The error of the drawing library, as a message.
pub fn picture(title: &str, claim: Option<&Claim>, rows: &[Row]) -> Result<Option<String>, String> {
    let found = panels(claim, rows);
    let kept: Vec<&Row> = rows.iter().filter(|row| found.iter().any(|panel| draws(panel, row))).collect();
    let policies = order(&kept, |row| &row.policy);
    let numbers = claim.map_or(&[][..], |claim| &claim.numbers);
    let plots: Vec<Plot<'_>> =
        found.iter().flat_map(|panel| plots(panel, rows, numbers, &policies)).collect();
    if plots.is_empty() {
        return Ok(None);
    }
    let with_paper = plots.iter().any(|plot| !plot.paper.is_empty());
    let lines = lines(&policies, with_paper);
    let height = TITLE + LEGEND * lines.len() as u32 + PANEL * plots.len() as u32;
    let size = Size { width: WIDTH, height };
    charts::picture(size, |root| draw(root, title, &lines, &plots))
        .map(Some)
        .map_err(|error| error.to_string())
}

/// The panels of the claim. For rows without a claim, one panel per measure, as many as fit a page.
fn panels(claim: Option<&Claim>, rows: &[Row]) -> Vec<Panel> {
    if let Some(claim) = claim.filter(|claim| !claim.panels.is_empty()) {
        return claim.panels.clone();
    }
    let all: Vec<&Row> = rows.iter().collect();
    let measures = order(&all, |row| &row.measure);
    let panel = |measure: &str| Panel {
        measure: measure.to_owned(),
        series: None,
        policies: Vec::new(),
        axis: None,
        by: None,
    };
    measures.into_iter().take(4).map(panel).collect()
}

fn draws(panel: &Panel, row: &Row) -> bool {
    row.measure == panel.measure
        && panel.series.as_ref().is_none_or(|series| *series == row.series)
        && (panel.policies.is_empty() || panel.policies.contains(&row.policy))
}

/// The plots of a panel: if `x` varies, one per series; otherwise one whose places are the series.
fn plots<'a>(
    panel: &'a Panel,
    rows: &'a [Row],
    numbers: &'a [Number],
    policies: &'a [&'a str],
) -> Vec<Plot<'a>> {
    let drawn: Vec<&Row> = rows.iter().filter(|row| draws(panel, row) && row.mean.is_some()).collect();
    if drawn.is_empty() {
        return Vec::new();
    }
    let varies = order(&drawn, |row| &row.x).len() > 1;
    let heads = if varies { order(&drawn, |row| &row.series) } else { vec![""] };
    let of = |head: &'a str| -> Plot<'a> {
        let mine: Vec<&Row> = drawn.iter().filter(|row| !varies || row.series == head).copied().collect();
        let place_of = |row: &'a Row| -> &'a str { if varies { &row.x } else { &row.series } };
        let places =
            order(&mine, if varies { |row: &Row| row.x.as_str() } else { |row: &Row| row.series.as_str() });
        let at = |name: &str| places.iter().position(|place| *place == name);
        let who = |name: &str| policies.iter().position(|policy| *policy == name);
        let marks =
            mine.iter().filter_map(|row| Some((at(place_of(row))?, who(&row.policy)?, *row))).collect();
        let says = |number: &&Number| {
            number.measure == panel.measure
                && (!varies || number.series.as_ref().is_none_or(|series| series == head))
        };
        let spread = |number: &'a Number| {
            let named = if varies { &number.x } else { &number.series };
            let at = at(named.as_deref().unwrap_or_default());
            let all = if named.is_none() { 0..places.len() } else { at.map_or(0..0, |at| at..at + 1) };
            let policy = who(&number.policy);
            all.filter_map(move |place| Some((place, policy?, number)))
        };
        let paper = numbers.iter().filter(says).flat_map(spread).collect();
        let joined = varies && places.iter().all(|place| place.parse::<f64>().is_ok());
        Plot { panel, head, places, policies, marks, paper, joined }
    };
    heads.into_iter().map(of).collect()
}

/// An entry of the legend: the number of its policy, or none for the paper's marks; its text; its position.
type Entry<'a> = (Option<usize>, &'a str, i32);

/// The legend in lines that fit the picture.
fn lines<'a>(policies: &[&'a str], with_paper: bool) -> Vec<Vec<Entry<'a>>> {
    let mut lines: Vec<Vec<Entry<'a>>> = vec![Vec::new()];
    let mut x = 60;
    let paper = with_paper.then_some((None, "the paper's"));
    for (k, words) in policies.iter().enumerate().map(|(k, name)| (Some(k), *name)).chain(paper) {
        let width = 34 + 7 * pixels(words.chars().count());
        if x + width > WIDTH.cast_signed() && x > 60 {
            lines.push(Vec::new());
            x = 60;
        }
        if let Some(line) = lines.last_mut() {
            line.push((k, words, x));
        }
        x += width;
    }
    lines
}

/// A small count as pixels.
fn pixels(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX / 8)
}

fn colour(policy: usize) -> RGBColor {
    COLOURS[policy % COLOURS.len()]
}

fn draw<'a>(root: &Area<'a>, title: &str, lines: &[Vec<Entry<'_>>], plots: &[Plot<'_>]) -> Drawn<'a> {
    root.draw(&Text::new(title.to_owned(), (20, 10), (FONT, 17)))?;
    for (k, line) in lines.iter().enumerate() {
        let y = (TITLE + LEGEND * k as u32).cast_signed() + 10;
        for (policy, words, x) in line {
            match policy {
                Some(policy) => root.draw(&Circle::new((*x, y), 5, colour(*policy).filled()))?,
                None => diamond(root, *x, y, BLACK)?,
            }
            root.draw(&Text::new((*words).to_owned(), (x + 12, y - 7), (FONT, 13)))?;
        }
    }
    let top = TITLE + LEGEND * lines.len() as u32;
    let (_, body) = root.split_vertically(top);
    for (area, plot) in body.split_evenly((plots.len(), 1)).iter().zip(plots) {
        let (low, high) = limits(plot);
        if low > 0.0 && high / low > WIDE {
            let range = (low / 1.15..high * 1.15).log_scale();
            let mut chart = builder(area, plot).build_cartesian_2d(0.0..plot.places.len() as f64, range)?;
            mesh(&mut chart, plot)?;
            marks(area, plot, |x, y| chart.backend_coord(&(x, y)))?;
        } else {
            let floor = if low >= 0.0 && low < 0.5 * high {
                0.0
            } else {
                low - 0.08 * (high - low).max(0.01 * high.abs())
            };
            let top = high + 0.08 * (high - floor).max(1e-9);
            let mut chart =
                builder(area, plot).build_cartesian_2d(0.0..plot.places.len() as f64, floor..top)?;
            mesh(&mut chart, plot)?;
            marks(area, plot, |x, y| chart.backend_coord(&(x, y)))?;
        }
    }
    Ok(())
}

fn builder<'a, 'b>(area: &'b Area<'a>, plot: &Plot<'_>) -> ChartBuilder<'b, 'b, SVGBackend<'a>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin_left(14).margin_right(20).margin_top(6).margin_bottom(4);
    builder.x_label_area_size(44).y_label_area_size(64);
    if !plot.head.is_empty() {
        builder.caption(plot.head, (FONT, 14));
    }
    builder
}

/// Axes: names of places are drawn under their middles, since the library supports only ticks.
fn mesh<'a, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'a>, Cartesian2d<RangedCoordf64, Y>>,
    plot: &Plot<'_>,
) -> Drawn<'a>
where
    Y: plotters::coord::ranged1d::Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    let axis = plot.panel.axis.clone().unwrap_or_else(|| plot.panel.measure.replace('_', " "));
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .x_labels(0)
        .y_labels(6)
        .y_label_formatter(&|y| short(*y))
        .y_desc(axis)
        .x_desc(plot.panel.by.clone().unwrap_or_default())
        .label_style((FONT, 12))
        .axis_desc_style((FONT, 13))
        .draw()
}

/// The least and the largest value in a plot.
fn limits(plot: &Plot<'_>) -> (f64, f64) {
    let ours = plot.marks.iter().flat_map(|(_, _, row)| {
        let (mean, half) = (row.mean, row.ci95.unwrap_or(0.0));
        [row.least, row.most, mean.map(|mean| mean - half), mean.map(|mean| mean + half)]
    });
    let paper = plot.paper.iter().flat_map(|(_, _, number)| [Some(number.least), number.most]);
    let all = || ours.clone().chain(paper.clone()).flatten();
    (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
}

/// Points, intervals, ranges and the paper's numbers; policies are side by side in a place.
fn marks<'a>(area: &Area<'a>, plot: &Plot<'_>, to: impl Fn(f64, f64) -> (i32, i32)) -> Drawn<'a> {
    let (left, top) = area.get_base_pixel();
    let at = |place: usize, policy: usize, y: f64| {
        let share = (policy as f64 + 0.5) / plot.policies.len() as f64;
        let (x, y) = to(place as f64 + 0.12 + 0.76 * share, y);
        (x - left, y - top)
    };
    if plot.joined {
        for policy in 0..plot.policies.len() {
            let mine = plot.marks.iter().filter(|(_, who, _)| *who == policy);
            let line = mine.filter_map(|(place, who, row)| Some(at(*place, *who, row.mean?)));
            area.draw(&PathElement::new(line.collect::<Vec<_>>(), colour(policy).mix(0.45).stroke_width(1)))?;
        }
    }
    for &(place, policy, row) in &plot.marks {
        let Some(mean) = row.mean else { continue };
        let ink = colour(policy);
        if let (Some(least), Some(most)) = (row.least, row.most) {
            let ends = vec![at(place, policy, least), at(place, policy, most)];
            area.draw(&PathElement::new(ends, ink.mix(0.5).stroke_width(1)))?;
        }
        if let Some(half) = row.ci95.filter(|half| *half > 0.0 && mean - half > 0.0) {
            let ends = vec![at(place, policy, mean - half), at(place, policy, mean + half)];
            area.draw(&PathElement::new(ends, ink.stroke_width(4)))?;
        }
        area.draw(&Circle::new(at(place, policy, mean), 4, ink.filled()))?;
    }
    for &(place, policy, number) in &plot.paper {
        let (low, high) = (number.least, number.most.unwrap_or(number.least));
        let (x, y) = at(place, policy, low);
        let end = at(place, policy, high);
        area.draw(&PathElement::new(vec![(x + 7, y), (end.0 + 7, end.1)], BLACK.stroke_width(1)))?;
        diamond(area, x + 7, y, BLACK)?;
        diamond(area, end.0 + 7, end.1, BLACK)?;
    }
    let bottom = area.dim_in_pixel().1.cast_signed();
    let every = plot.places.len().div_ceil(16);
    for (k, place) in plot.places.iter().enumerate().step_by(every) {
        let (x, _) = to(k as f64 + 0.5, limits(plot).1);
        let style = (FONT, 12).into_text_style(area).pos(Pos::new(HPos::Center, VPos::Top));
        let y = bottom - 42 + if plot.places.len() > 8 && k % 2 == 1 && !plot.joined { 13 } else { 0 };
        area.draw(&Text::new((*place).to_owned(), (x - left, y), style))?;
    }
    Ok(())
}

/// A hollow diamond: a number of the paper.
fn diamond<'a>(area: &Area<'a>, x: i32, y: i32, ink: RGBColor) -> Drawn<'a> {
    let corners = vec![(x, y - 5), (x + 5, y), (x, y + 5), (x - 5, y), (x, y - 5)];
    area.draw(&Polygon::new(corners.clone(), WHITE.filled()))?;
    area.draw(&PathElement::new(corners, ink.stroke_width(1)))
}
