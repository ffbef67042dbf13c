//! Single charts of a schedule as SVG: see [`Chart`].
//!
//! Text is measured with a built-in font, so that the same schedule gives the same bytes on every machine. A
//! viewer uses its own sans-serif font.

mod axis;
mod bars;
mod distribution;
mod slots_over_time;
mod timeline;

use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::prelude::*;
use plotters::style::register_font;

pub use timeline::Timeline;

/// The maximum number of tasks in a Gantt chart.
const BARS_MAX: usize = 50_000;

/// The maximum number of slots in a Gantt chart. Each needs a visible row of pixels.
const SLOTS_MAX: u64 = 1_000;

/// The number of flows with a separate colour. All other flows are grey.
const SHOWN: usize = 11;

/// Colours that most eyes can distinguish, also in grey.
pub const COLOURS: [RGBColor; SHOWN] = [
    RGBColor(35, 57, 93),
    RGBColor(200, 85, 61),
    RGBColor(242, 193, 78),
    RGBColor(95, 158, 110),
    RGBColor(141, 106, 159),
    RGBColor(78, 165, 217),
    RGBColor(140, 81, 10),
    RGBColor(227, 119, 194),
    RGBColor(23, 120, 120),
    RGBColor(188, 189, 34),
    RGBColor(120, 40, 40),
];

/// The colour of all other flows.
const OTHERS: RGBColor = RGBColor(170, 176, 184);

/// The name of the font in plotters.
pub const FONT: &str = "sans-serif";

slackline_model::named_enum! {
    /// A kind of chart.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Chart {
        /// The slots held by each flow over time, stacked, with the largest flows by name. For schedules of any
        /// size.
        Flows = "flows",
        /// The tasks on each slot over time. At most 50,000 tasks on 1,000 slots.
        Gantt = "gantt",
        /// The fraction of held slots, and the number of active flows.
        Utilisation = "utilisation",
        /// The distribution of response times (from release to completion).
        Response = "response",
        /// The distribution of waiting times (from release to the first start).
        Wait = "wait",
        /// The distribution of slowdowns (response time divided by the run time on an empty cluster).
        Slowdown = "slowdown",
    }
}

/// The width and height of a chart, pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

impl Size {
    /// The smallest and the largest width or height. Smaller charts are unreadable, and larger ones cannot be
    /// displayed.
    pub const LIMITS: (u32, u32) = (200, 10_000);

    /// The default size of a chart. The height of a Gantt chart depends on its slots.
    pub fn usual(chart: Chart, timeline: &Timeline) -> Self {
        let slots = timeline.slots().clamp(20, SLOTS_MAX) as u32;
        let height = if chart == Chart::Gantt { 120 + slots * (720 / slots).clamp(4, 18) } else { 640 };
        Self { width: 1200, height }
    }
}

/// The reason why a chart failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// Nothing to show.
    #[error("found no {0}, expected at least one for this chart")]
    Nothing(&'static str),
    /// Too many elements.
    #[error("found {found} {what}, expected at most {most} for the chart gantt (chart flows: any number)")]
    TooMany {
        /// The kind of element.
        what: &'static str,
        /// The number that was found.
        found: u64,
        /// The maximum number.
        most: u64,
    },
    /// An error of the drawing library.
    #[error("cannot be drawn: {0}")]
    Drawing(String),
}

/// Draws a chart as SVG. O(bars · columns) in the worst case.
///
/// # Errors
/// Nothing to show, or too many elements.
pub fn svg(timeline: &Timeline, chart: Chart, size: Size) -> Result<String, ChartError> {
    check(timeline, chart)?;
    picture(size, |root| match chart {
        Chart::Flows => slots_over_time::flows(root, timeline),
        Chart::Utilisation => slots_over_time::utilisation(root, timeline),
        Chart::Gantt => bars::gantt(root, timeline),
        Chart::Response | Chart::Wait | Chart::Slowdown => distribution::ecdf(root, timeline, chart),
    })
}

/// A part of a chart.
pub type Area<D> = DrawingArea<D, Shift>;
/// The result of a drawing operation.
pub type Drawn<D> = Result<(), DrawingAreaErrorKind<<D as DrawingBackend>::ErrorType>>;

/// Draws an SVG with a white background by calling `draw`, with text in [`FONT`]. All charts of the workspace
/// use this function.
///
/// # Errors
/// Drawing that fails.
pub fn picture(
    size: Size,
    draw: impl FnOnce(&Area<SVGBackend<'_>>) -> Drawn<SVGBackend<'static>>,
) -> Result<String, ChartError> {
    register()?;
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, (size.width, size.height)).into_drawing_area();
    let drawn = root.fill(&WHITE).and_then(|()| draw(&root)).and_then(|()| root.present());
    drop(root);
    drawn.map(|()| text).map_err(|error| ChartError::Drawing(error.to_string()))
}

fn check(timeline: &Timeline, chart: Chart) -> Result<(), ChartError> {
    match chart {
        Chart::Response | Chart::Wait | Chart::Slowdown => {
            if timeline.values(chart).is_empty() {
                return Err(ChartError::Nothing("finished flows"));
            }
        }
        Chart::Flows | Chart::Utilisation | Chart::Gantt if timeline.bars.is_empty() => {
            return Err(ChartError::Nothing("tasks"));
        }
        Chart::Gantt => {
            let too_many = |what, found, most| Err(ChartError::TooMany { what, found, most });
            if timeline.bars.len() > BARS_MAX {
                return too_many("rows of tasks", timeline.bars.len() as u64, BARS_MAX as u64);
            }
            if timeline.slots() > SLOTS_MAX {
                return too_many("slots", timeline.slots(), SLOTS_MAX);
            }
        }
        Chart::Flows | Chart::Utilisation => {}
    }
    Ok(())
}

/// Registers the built-in font in the drawing library, once.
fn register() -> Result<(), ChartError> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = DONE.get_or_init(|| register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok());
    if *done { Ok(()) } else { Err(ChartError::Drawing("the built-in font cannot be loaded".to_owned())) }
}
