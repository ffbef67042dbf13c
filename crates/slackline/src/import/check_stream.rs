//! Validates a schedule in lines against a workload in lines, both read as streams. Memory depends on the
//! active flows.

use std::io::Read;

use slackline_judge::OpenStream;
use slackline_trace::documents::schedule::{Names, ScheduleStream, StreamedLine, status};
use slackline_trace::{Importers, Meta};

use super::check::Verdict;
use super::error::ImportError;
use super::streaming::StreamedWorkload;
use super::workload_options::WorkloadOptions;

/// A file that is read once, and its name in messages.
pub struct Opened<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its bytes.
    pub source: Box<dyn Read + Send>,
}

/// Validates as [`super::check`] does, if that is possible line by line. This requires that the flows of both
/// documents are in the order of their releases, and rows in the order of their ends, as `simulate` writes
/// them. `None` means that the whole schedule must be validated.
///
/// # Errors
/// A document that cannot be read.
pub fn check_streams(
    schedule: Opened<'_>,
    workload: Opened<'_>,
    options: WorkloadOptions,
    grain: Option<f64>,
) -> Result<Option<Verdict>, ImportError> {
    let importers: Importers = options.importers.clone();
    let mut lines = ScheduleStream::open(schedule.name, schedule.source)?;
    let Meta { options: recorded, seed, .. } = lines.meta();
    let (recorded, cut) = WorkloadOptions::read(&recorded, &importers)
        .map_err(|problem| ImportError::Recorded { file: schedule.name.to_owned(), problem })?;
    let recorded = WorkloadOptions { seed: recorded.seed.or(Some(seed)), ..recorded };
    let options = options.or(recorded);
    let mut workload = StreamedWorkload::open(workload.name, workload.source, &options, grain.or(cut))?;
    let head = lines.head(workload.empty())?;
    let Some(judge) = OpenStream::new(workload.empty(), &head) else { return Ok(None) };
    let mut both =
        StreamCheck { workload: &mut workload, judge, names: Names::default(), is_weighted: false };
    let (schedule, meta) = loop {
        match lines.next_line(&head)? {
            StreamedLine::Row(row) => {
                if !both.arrives(row.flow(), row.start())? {
                    return Ok(None);
                }
                let (row, places) = row.read(&mut both.names, both.judge.instance())?;
                if both.judge.row(row, &places).is_err() {
                    return Ok(None);
                }
            }
            StreamedLine::Flow(line) => {
                if !both.arrives(line.flow(), line.release())? {
                    return Ok(None);
                }
                let row = line.read(&both.names)?;
                both.names.forget(line.flow());
                if both.judge.flow(&row).is_err() {
                    return Ok(None);
                }
            }
            StreamedLine::Choice(_) => {}
            StreamedLine::Last(schedule, meta) => break (schedule, meta),
        }
    };
    let (judge, is_weighted) = (both.judge, both.is_weighted);
    if workload.next().transpose()?.is_some() {
        return Ok(None);
    }
    let (sha256, _) = workload.finish()?;
    let is_its_own = meta.sha256.is_empty() || meta.sha256 == sha256;
    let follows = meta.status.is_empty() || meta.status == status(schedule.cost, schedule.lower_bound);
    match judge.finish(&schedule) {
        Ok(report) if is_its_own && follows => {
            Ok(Some(Verdict::Feasible { schedule, report: Box::new(report), is_weighted }))
        }
        _ => Ok(None),
    }
}

/// The workload as far as it was read, and the validator.
struct StreamCheck<'w> {
    workload: &'w mut StreamedWorkload,
    judge: OpenStream,
    names: Names,
    is_weighted: bool,
}

impl StreamCheck<'_> {
    /// Reads the workload up to this flow. Returns whether the flow exists and is released at `by` or
    /// earlier.
    fn arrives(&mut self, flow: &str, by: f64) -> Result<bool, ImportError> {
        while !self.names.has_flow(flow) {
            let Some(arrival) = self.workload.next().transpose()? else { return Ok(false) };
            let is_later = arrival.flow().release.seconds() > by;
            self.is_weighted |= arrival.flow().weight != 1.0;
            let Ok(id) = self.judge.arrive(arrival) else { return Ok(false) };
            self.names.admit(self.judge.instance(), id);
            if is_later {
                return Ok(self.names.has_flow(flow));
            }
        }
        Ok(true)
    }
}
