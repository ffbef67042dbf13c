//! Writes a schedule line by line during its simulation.

use std::io::{self, Write};

use slackline_model::schedule::{AmRow, FlowRow, NewRow, Origin};
use slackline_model::{Instance, SlotRange};
use slackline_trace::documents::schedule::status;
use slackline_trace::{Diagnostic, Meta, ScheduleLines};

use super::{Figures, choices, claim_figures};
use crate::import::{ImportError, StreamedWorkload};
use crate::policy_spec::PolicySpec;
use crate::simulate::{
    NotStreamed, NotWritten, Options, QuickBound, RowWriter, Simulated, Streamed, simulate_stream,
    simulate_to,
};

/// A writer of one schedule in lines.
struct Lines<'a, W> {
    lines: ScheduleLines<W>,
    meta: &'a mut Meta,
}

impl<W: Write> RowWriter for Lines<'_, W> {
    fn begin(&mut self, instance: &Instance, origin: &Origin) -> io::Result<()> {
        self.lines.begin(instance, origin, self.meta)
    }

    fn row(&mut self, live: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        self.lines.row(live, row, places)
    }

    fn am(&mut self, live: &Instance, row: &AmRow) -> io::Result<()> {
        self.lines.am(live, row)
    }

    fn flow(&mut self, live: &Instance, row: &FlowRow) -> io::Result<()> {
        self.lines.flow(live, row)
    }
}

/// Simulates as [`simulate_to`] does, and writes the schedule in lines. Its claims contain the metrics, and
/// the status of `meta` follows from it.
///
/// # Errors
/// As [`simulate_to`]. The output then lacks its last line.
pub fn simulate_lines(
    out: &mut dyn Write,
    instance: &Instance,
    policy: &PolicySpec,
    options: &Options,
    bound: Option<&QuickBound>,
    progress: Option<&mut dyn FnMut(u64)>,
    meta: &mut Meta,
) -> Result<Simulated, NotWritten> {
    let mut lines = Lines { lines: ScheduleLines::new(out), meta };
    let mut simulated = simulate_to(instance, policy, options, bound, progress, &mut lines)?;
    let Lines { lines, meta } = lines;
    let figures = Figures::of_simulation(&simulated);
    claim_figures(&mut simulated.schedule, &figures);
    meta.status = status(simulated.schedule.cost, simulated.schedule.lower_bound);
    meta.choices = choices(&simulated.choices);
    lines.end(&simulated.schedule, meta)?;
    Ok(simulated)
}

/// As [`simulate_lines`], for a workload that is read during the simulation. Its hash is stored in `meta` at
/// the end. Also returns the number of tasks cut from work, and the diagnostics of the importer.
///
/// # Errors
/// As [`simulate_stream`]. The output then lacks its last line.
pub fn stream_lines(
    out: &mut dyn Write,
    mut workload: StreamedWorkload,
    policy: &PolicySpec,
    options: &Options,
    progress: Option<&mut dyn FnMut(u64)>,
    meta: &mut Meta,
) -> Result<(Streamed, u64, Vec<Diagnostic>), NotStreamed<ImportError>> {
    let empty = workload.empty().clone();
    let mut lines = Lines { lines: ScheduleLines::new(out), meta };
    let mut streamed = simulate_stream(&empty, workload.by_ref(), policy, options, progress, &mut lines)?;
    let Lines { lines, meta } = lines;
    let cut = workload.n_cut();
    let (sha256, diagnostics) = workload.finish().map_err(|error| NotStreamed::Flows(error.into()))?;
    let figures = Figures::of_simulation(&streamed.simulated);
    let schedule = &mut streamed.simulated.schedule;
    claim_figures(schedule, &figures);
    meta.sha256 = sha256;
    meta.not_modelled = Diagnostic::simplifications(&diagnostics);
    meta.status = status(schedule.cost, schedule.lower_bound);
    meta.choices = choices(&streamed.simulated.choices);
    lines.end(schedule, meta).map_err(NotWritten::Output)?;
    Ok((streamed, cut, diagnostics))
}
