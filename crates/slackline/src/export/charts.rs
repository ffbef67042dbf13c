//! Single charts of a schedule as SVG: see [`Chart`].
//!
//! Text is measured with a font that is in the program, so that the same schedule gives the same bytes on
//! every machine; a viewer shows its own sans-serif font.

mod axis;
mod bars;
mod distribution;
mod held;
mod timeline;

use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::prelude::*;
use plotters::style::register_font;

pub use timeline::Timeline;

/// Most tasks that a Gantt chart draws.
const BARS_MAX: usize = 50_000;

/// Most slots of a Gantt chart: each needs a row of pixels that can be seen.
const SLOTS_MAX: u64 = 1_000;

/// Flows that have a colour of their own; the others are grey together.
const SHOWN: usize = 11;

/// Colours that are apart from each other for most eyes, and in grey.
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

/// What plotters calls the font.
pub const FONT: &str = "sans-serif";

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chart {
    /// Slots that each flow holds over time, stacked; the largest flows by name. For any size.
    Flows,
    /// What runs on each slot when, at most 50,000 tasks on 1,000 slots.
    Gantt,
    /// Share of slots that are held, and flows that are released and not over.
    Utilisation,
    /// Distribution of the times from release to completion.
    Response,
    /// Distribution of the times from release to the first start.
    Wait,
    /// Distribution of response over the time that the flow takes alone.
    Slowdown,
}

impl Chart {
    /// All of them, the usual one first.
    pub const ALL: [Self; 6] =
        [Self::Flows, Self::Gantt, Self::Utilisation, Self::Response, Self::Wait, Self::Slowdown];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Gantt => "gantt",
            Self::Utilisation => "utilisation",
            Self::Response => "response",
            Self::Wait => "wait",
            Self::Slowdown => "slowdown",
        }
    }
}

/// Width and height of a picture, pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

impl Size {
    /// The smallest and largest width or height: below nothing can be read, above nothing can be shown.
    pub const LIMITS: (u32, u32) = (200, 10_000);

    /// What shows a chart well: a Gantt chart is as high as its slots ask for.
    pub fn usual(chart: Chart, timeline: &Timeline) -> Self {
        let slots = timeline.slots().clamp(20, SLOTS_MAX) as u32;
        let height = if chart == Chart::Gantt { 120 + slots * (720 / slots).clamp(4, 18) } else { 640 };
        Self { width: 1200, height }
    }
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChartError {
    /// Nothing to show.
    #[error("found no {0}, expected at least one for this chart")]
    Nothing(&'static str),
    /// More than can be seen.
    #[error("found {found} {what}, expected at most {most} for the chart gantt (flows takes any number)")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many.
        found: u64,
        /// How many may be.
        most: u64,
    },
    /// What the drawing library says.
    #[error("cannot be drawn: {0}")]
    Drawing(String),
}

/// A chart as SVG. O(bars · columns) at worst.
///
/// # Errors
/// Nothing to show, or too much of it.
pub fn svg(timeline: &Timeline, chart: Chart, size: Size) -> Result<String, ChartError> {
    check(timeline, chart)?;
    picture(size, |root| match chart {
        Chart::Flows => held::flows(root, timeline),
        Chart::Utilisation => held::utilisation(root, timeline),
        Chart::Gantt => bars::gantt(root, timeline),
        Chart::Response | Chart::Wait | Chart::Slowdown => distribution::ecdf(root, timeline, chart),
    })
}

/// A part of a picture.
pub type Area<D> = DrawingArea<D, Shift>;
/// What a backend says.
pub type Drawn<D> = Result<(), DrawingAreaErrorKind<<D as DrawingBackend>::ErrorType>>;

/// A white picture as SVG, and what `draw` draws on it, with text in [`FONT`]. All pictures of the workspace
/// are made here.
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
                return Err(ChartError::Nothing("flows that are done"));
            }
        }
        Chart::Flows | Chart::Utilisation | Chart::Gantt if timeline.bars.is_empty() => {
            return Err(ChartError::Nothing("tasks that ran"));
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

/// Makes the font of the program known to the drawing library, once.
fn register() -> Result<(), ChartError> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = DONE.get_or_init(|| register_font(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok());
    if *done { Ok(()) } else { Err(ChartError::Drawing("the font in the program is none".to_owned())) }
}
