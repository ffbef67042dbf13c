//! Converts results to tables, JSON, CSV and HTML pages.
//!
//! In reading order:
//! - [`number`]: number formats: digits, units, and the sign for a missing value;
//! - [`names`]: short names of policies;
//! - [`table`]: aligned columns that fit the width of the terminal;
//! - [`headline`](mod@headline): the lines above a table: the workload, the cluster, the load;
//! - [`comparison`]: a table of policies and metrics;
//! - [`spread`]: the same over several seeds: means, intervals, paired differences;
//! - [`flows`]: the results of each flow of a schedule;
//! - [`plan_remarks`], [`requirements`]: plans;
//! - [`explain`]: why a flow or a job waits, and what would let it meet its deadline;
//! - [`verdict`]: whether a schedule is feasible;
//! - [`certificates`](mod@certificates): the bounds at each decision of a run;
//! - [`bounds`], [`tuning`], [`capacity`]: lower bounds, splits of slots, sizes of clusters;
//! - [`policies`]: the descriptions of policies;
//! - [`page`]: all of these and charts, as one HTML page.
//!
//! Every function here is pure and converts results to text. **Never knows**: scheduling.

pub mod bounds;
pub mod capacity;
pub mod certificates;
pub mod comparison;
#[cfg(test)]
mod coverage;
pub mod explain;
pub mod flow_chances;
pub mod flows;
pub mod headline;
mod lines;
pub mod names;
pub mod number;
pub mod page;
pub mod plan_remarks;
pub mod policies;
pub mod requirements;
mod rules_chosen;
mod samples;
pub mod significance;
pub mod spread;
pub mod table;
pub mod tuning;
pub mod verdict;

use std::io;

use slackline_model::{Instance, Schedule};
use slackline_trace::Meta;

pub use crate::chosen::choices;
pub use comparison::{Figures, Row};
pub use lines::{simulate_lines, stream_lines};
pub use rules_chosen::rules_chosen;
pub use table::{Align, Column, Table, View};

/// Rows of text cells as CSV, the header first.
pub fn csv<R, C>(header: &[&str], rows: R) -> String
where
    R: IntoIterator<Item = C>,
    C: IntoIterator<Item = String>,
{
    const TEXT: &str = "invariant: records of text are written to memory without errors";
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    writer.write_record(header).expect(TEXT);
    for row in rows {
        writer.write_record(row).expect(TEXT);
    }
    String::from_utf8(writer.into_inner().expect(TEXT)).expect(TEXT)
}

/// Writes the schedule document of a simulation or a plan. Its claims contain the metrics.
///
/// # Errors
/// An error of `out`.
pub fn write_schedule(
    out: &mut dyn io::Write,
    instance: &Instance,
    schedule: &mut Schedule,
    figures: &Figures,
    meta: &Meta,
) -> io::Result<()> {
    claim_figures(schedule, figures);
    slackline_trace::write_schedule(out, instance, schedule, meta)
}

/// Adds the known metrics to the claims.
fn claim_figures(schedule: &mut Schedule, figures: &Figures) {
    let known = figures.metrics.iter().filter_map(|&(name, value)| Some((name.to_owned(), value?)));
    schedule.metrics = known.collect();
}
