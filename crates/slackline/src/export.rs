//! Exports schedules for other programs: timelines, tables and charts.
//!
//! An export receives rows through a [`RowWriter`], from two files in lines ([`InLines`]) or from a schedule
//! and its workload in memory ([`rows`], [`document`](fn@document)):
//! - [`Perfetto`]: Chrome's trace event format, which Perfetto reads; written row by row;
//! - [`Jobs`]: CSV with one row per job and the column names of Batsim and evalys;
//! - [`charts`]: single charts as SVG (feature `charts`).
//!
//! Exports do not validate the schedule: [`crate::import::check`] does that.

#[cfg(feature = "charts")]
pub mod charts;
mod in_lines;
mod jobs;
mod perfetto;

use std::io;
use std::ops::ControlFlow;

use slackline_model::schedule::{NewRow, Origin};
use slackline_model::{Instance, Schedule, SlotKind};
use slackline_trace::{ScheduleLine, read_schedule_lines};

use crate::import::{ImportError, ScheduleDocument};
use crate::simulate::RowWriter;

pub use in_lines::InLines;
pub use jobs::Jobs;
pub use perfetto::Perfetto;

/// The reason why an export failed. The output so far must then be discarded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// An error in the schedule or its workload.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Passes every row, ApplicationMaster and flow of a schedule to `out`, in this sequence, each in the order
/// of the schedule.
///
/// # Errors
/// A row that does not fit the instance or its cluster; an error of the output.
pub fn rows(instance: &Instance, schedule: &Schedule, out: &mut dyn RowWriter) -> io::Result<()> {
    let known = |is_known: bool, what: &str| {
        let problem = || format!("found {what}, expected the schedule of this workload");
        if is_known { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidData, problem())) }
    };
    let has_slots = |slot_kind, last: u32| last <= instance.cluster().slot_numbers(slot_kind);
    out.begin(instance, &origin(schedule))?;
    for row in schedule.tasks.rows() {
        known(instance.phases().contains(row.phase), "a task of an unknown phase")?;
        let (slot_kind, places) = (instance.slot_kind_of(row.phase), schedule.tasks.places(row));
        let fits = places.iter().all(|place| has_slots(slot_kind, place.end()));
        known(fits && row.first.checked_add(row.count).is_some(), "a task on an unknown slot")?;
        out.row(instance, &row.into(), places)?;
    }
    for row in &schedule.ams {
        known(instance.jobs().contains(row.job), "the ApplicationMaster of an unknown job")?;
        let fits = row.slot.is_none_or(|slot| {
            !instance.cluster().is_map_reduce() && has_slots(SlotKind::Any, slot.saturating_add(1))
        });
        known(fits, "an ApplicationMaster on an unknown slot")?;
        out.am(instance, row)?;
    }
    schedule.flows.iter().try_for_each(|row| {
        known(instance.flows().contains(row.flow), "an unknown flow")?;
        out.flow(instance, row)
    })
}

/// As [`rows`], for a document. A document in lines is read row by row. Returns whether there are tasks: a
/// plan may contain only the number of slots of each phase, and then no row is passed on.
///
/// # Errors
/// A document that is no schedule of this instance; an error of the output.
pub fn document(
    schedule: &ScheduleDocument<'_>,
    instance: &Instance,
    out: &mut dyn RowWriter,
) -> Result<bool, ExportError> {
    if !schedule.is_in_lines() {
        let schedule = schedule.read(instance).map_err(ImportError::from)?;
        let has_tasks = schedule.allocations.is_empty() || !schedule.tasks.is_empty();
        if has_tasks {
            rows(instance, &schedule, out)?;
        }
        return Ok(has_tasks);
    }
    let source = schedule.source();
    let mut written = Ok(());
    let read = read_schedule_lines(&source.name, &source.bytes, instance, |line| {
        written = match line {
            ScheduleLine::First(head) => out.begin(instance, &origin(&head)),
            ScheduleLine::Row(row, places) => out.row(instance, &row, &places),
            ScheduleLine::Am(row) => out.am(instance, &row),
            ScheduleLine::Flow(row) => out.flow(instance, &row),
        };
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written?;
    read.map_err(ImportError::from)?;
    Ok(true)
}

/// The origin of a schedule.
fn origin(schedule: &Schedule) -> Origin {
    Origin {
        policy: schedule.policy.clone(),
        minima: schedule.minima,
        clock: schedule.clock,
        slowstart: schedule.slowstart,
        profile: schedule.profile.clone(),
    }
}

/// Numbers for all slots of a cluster, one slot kind after the other.
#[derive(Clone, Debug, Default)]
struct SlotNumbers {
    slot_kinds: Vec<(SlotKind, u64)>,
}

impl SlotNumbers {
    /// Numbers slots from `first` on.
    fn new(instance: &Instance, first: u64) -> Self {
        let mut next = first;
        let mut slot_kinds = Vec::new();
        for &slot_kind in instance.cluster().slot_kinds() {
            slot_kinds.push((slot_kind, next));
            next += u64::from(instance.cluster().slot_numbers(slot_kind));
        }
        Self { slot_kinds }
    }

    /// The number of a slot of a kind.
    fn of(&self, slot_kind: SlotKind, slot: u32) -> u64 {
        let (_, first) = self
            .slot_kinds
            .iter()
            .find(|(of, _)| *of == slot_kind)
            .expect("invariant: rows are on slot kinds of the cluster");
        first + u64::from(slot)
    }
}

/// The label of a task, without its number.
fn phase_words(live: &Instance, row: &NewRow) -> String {
    let phase = live.phase(row.phase);
    format!("{}/{} {}", live.flow(phase.flow).id, live.job(phase.job).id, phase.kind)
}
