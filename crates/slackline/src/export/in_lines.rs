//! Reads a schedule in lines together with a workload in lines. Memory depends on the active flows.

use slackline_model::{Instance, Schedule};
use slackline_trace::Meta;
use slackline_trace::documents::schedule::{Names, ScheduleStream, StreamedLine};

use super::{ExportError, origin};
use crate::import::{ImportError, Opened, StreamedWorkload, WorkloadOptions, WrongWorkload};
use crate::simulate::RowWriter;

/// Two open documents in lines.
pub struct InLines {
    schedule: ScheduleStream,
    head: Schedule,
    workload: StreamedWorkload,
    /// The name of the schedule in messages.
    name: String,
}

impl InLines {
    /// Opens both documents. `options` override the recorded ones. `None` for schedules that must be read as
    /// a whole: those under a profile.
    ///
    /// # Errors
    /// A document that cannot be read.
    pub fn open(
        schedule: Opened<'_>,
        workload: Opened<'_>,
        options: WorkloadOptions,
    ) -> Result<Option<Self>, ImportError> {
        let name = schedule.name.to_owned();
        let lines = ScheduleStream::open(schedule.name, schedule.source)?;
        let Meta { options: recorded, seed, .. } = lines.meta();
        let (recorded, grain) = WorkloadOptions::read(&recorded, &options.importers)
            .map_err(|problem| ImportError::Recorded { file: name.clone(), problem })?;
        let recorded = WorkloadOptions { seed: recorded.seed.or(Some(seed)), ..recorded };
        let workload = StreamedWorkload::open(workload.name, workload.source, &options.or(recorded), grain)?;
        let head = lines.head(workload.empty())?;
        if head.profile.is_some() {
            return Ok(None);
        }
        Ok(Some(Self { schedule: lines, head, workload, name }))
    }

    /// Passes every row and flow to `out`, in the order of the schedule.
    ///
    /// # Errors
    /// An error in one of the documents; a schedule of another workload; an error of the output.
    pub fn rows(self, out: &mut dyn RowWriter) -> Result<(), ExportError> {
        let Self { mut schedule, head, mut workload, name } = self;
        let mut live = workload.empty().clone();
        let mut names = Names::default();
        out.begin(&live, &origin(&head))?;
        let meta = loop {
            match schedule.next_line(&head).map_err(ImportError::from)? {
                StreamedLine::Row(row) => {
                    arrive(&mut workload, &mut live, &mut names, row.flow())?;
                    let (row, places) = row.read(&mut names, &live).map_err(ImportError::from)?;
                    out.row(&live, &row, &places)?;
                }
                StreamedLine::Flow(line) => {
                    arrive(&mut workload, &mut live, &mut names, line.flow())?;
                    let row = line.read(&names).map_err(ImportError::from)?;
                    names.forget(line.flow());
                    out.flow(&live, &row)?;
                    live.retire(row.flow);
                }
                StreamedLine::Choice(_) => {}
                StreamedLine::Last(_, meta) => break meta,
            }
        };
        // The hash covers the whole workload, so it is read to the end.
        while workload.next().transpose()?.is_some() {}
        let called = workload.name.clone();
        let (found, _) = workload.finish().map_err(ImportError::from)?;
        if meta.sha256.is_empty() || meta.sha256 == found {
            return Ok(());
        }
        let wrong = WrongWorkload { schedule: name, made_for: meta.sha256, workload: called, found };
        Err(ImportError::from(wrong).into())
    }
}

/// Reads the workload up to this flow, if it exists.
fn arrive(
    workload: &mut StreamedWorkload,
    live: &mut Instance,
    names: &mut Names,
    flow: &str,
) -> Result<(), ImportError> {
    while !names.has_flow(flow) {
        let Some(arrival) = workload.next().transpose()? else { break };
        let id = live.admit(arrival);
        names.admit(live, id);
    }
    Ok(())
}
