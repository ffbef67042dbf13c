//! Bars of flows on a terminal, whatever its width becomes.

use std::cell::Cell;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::Flow;
use crate::out;

/// Flows that get a bar of their own; the rest share one.
pub(super) const BARS: usize = 12;

/// The bars of a run.
pub(super) struct Bars {
    all: MultiProgress,
    /// One for each of the first flows.
    pub(super) flows: Vec<ProgressBar>,
    /// One for all others together.
    pub(super) rest: Option<ProgressBar>,
    pub(super) status: ProgressBar,
    /// Columns of the terminal when they were drawn the last time.
    width: Cell<usize>,
}

/// Columns of the terminal.
fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0).max(1))
}

/// How a flow looks on a terminal of so many columns: its line never goes beyond them.
fn style(width: usize) -> ProgressStyle {
    let template = match width {
        80.. => "{prefix:>20!} {bar:30} {pos:>5}/{len} {wide_msg}",
        50.. => "{prefix:>16!} {bar:10} {pos:>5}/{len} {wide_msg}",
        _ => "{prefix:>8!} {pos}/{len} {wide_msg}",
    };
    ProgressStyle::with_template(template).expect("invariant: the template is valid")
}

/// Columns of a flow's line as it was drawn on a terminal of so many columns.
fn drawn(bar: &ProgressBar, width: usize) -> usize {
    let digits = bar.length().unwrap_or(0).to_string().len();
    let fixed = match width {
        80.. => 20 + 1 + 30 + 1 + 5 + 1,
        50.. => 16 + 1 + 10 + 1 + 5 + 1,
        _ => 8 + 1 + digits + 1,
    };
    fixed + digits + 1 + bar.message().chars().count()
}

impl Bars {
    pub(super) fn new(flows: &[Flow]) -> Self {
        let (all, width) = (MultiProgress::new(), width());
        let bar = |name: String, total: usize| {
            let bar = all.add(ProgressBar::new(total as u64).with_style(style(width)));
            bar.set_prefix(name);
            bar
        };
        let bars = flows.iter().take(BARS).map(|flow| bar(flow.name.clone(), flow.total)).collect();
        let others = flows.get(BARS..).unwrap_or_default();
        let total = others.iter().map(|flow| flow.total).sum();
        let rest = (!others.is_empty()).then(|| bar(format!("{} other flows", others.len()), total));
        let line = ProgressStyle::with_template("{wide_msg}").expect("invariant: the template is valid");
        let status = all.add(ProgressBar::new_spinner().with_style(line));
        Self { all, flows: bars, rest, status, width: Cell::new(width) }
    }

    /// Makes them fit a terminal that is as wide as it is now. One that was made narrower has broken the lines that
    /// were there: what is left of them goes.
    pub(super) fn fit(&self) {
        let (before, now) = (self.width.get(), width());
        if before == now {
            return;
        }
        self.width.set(now);
        let bars = self.flows.iter().chain(&self.rest).map(|bar| drawn(bar, before));
        let lines = bars.chain([self.status.message().chars().count()]);
        let pieces: usize = lines.map(|len| len.min(before).div_ceil(now).saturating_sub(1)).sum();
        self.flows.iter().chain(&self.rest).for_each(|bar| bar.set_style(style(now)));
        if pieces > 0 {
            // Nothing is lost if the terminal refuses: it is drawn again at once.
            let _ = self.all.clear();
            out::erase_above(pieces);
        }
    }
}
