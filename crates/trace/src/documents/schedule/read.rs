//! Reads schedule documents into schedules of an instance.

use serde::de::IgnoredAny;
use slackline_model::Instance;
use slackline_model::schedule::{Origin, Schedule};

use super::names::{Names, ScheduleFault, check_finite, check_gap_absolute, check_start, fraction, profile};
use super::{Head, Meta, lines, wire};
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::{SCHEDULE, check_version, parse};
use crate::reading::text::text;

/// Reads the workload and the options of a schedule, before there is an instance.
///
/// # Errors
/// A document that is not a schedule; its long lists are not read.
pub fn read_schedule_head(name: &str, bytes: &[u8]) -> Result<Head, TraceError> {
    if lines::are_lines(name, bytes) {
        return lines::read_ends(name, bytes);
    }
    let text = text(name, bytes)?;
    let format = native(name, &text);
    let head: wire::Document<IgnoredAny, IgnoredAny, IgnoredAny, IgnoredAny> =
        parse(name, &text, format, SCHEDULE)?;
    check_version(name, &text, format, head.slackline)?;
    Ok(Head { meta: meta(&head), has_tasks: head.tasks.is_some(), is_in_lines: false })
}

/// Reads a schedule for an instance. O(bytes · log names).
///
/// # Errors
/// [`TraceError::Input`] for a document that is no schedule; [`TraceError::Mismatch`] for one that
/// speaks of flows, jobs, phases, machines or slots that the instance does not have.
pub fn read_schedule(name: &str, bytes: &[u8], instance: &Instance) -> Result<(Schedule, Meta), TraceError> {
    if lines::are_lines(name, bytes) {
        return lines::read_all(name, bytes, instance);
    }
    let text = text(name, bytes)?;
    let format = native(name, &text);
    let document: wire::FullDocument<'_> = parse(name, &text, format, SCHEDULE)?;
    check_version(name, &text, format, document.slackline)?;
    let meta = meta(&document);
    match convert(document, instance) {
        Ok(schedule) => Ok((schedule, meta)),
        Err(wrong) => Err(wrong.into_error(name, &text, format)),
    }
}

/// The format of a schedule: JSON unless its name or content shows another of ours.
fn native(name: &str, text: &str) -> Format {
    Format::guess(name, text).unwrap_or(Format::Json)
}

fn meta<F, A, T, M>(document: &wire::Document<F, A, T, M>) -> Meta {
    Meta {
        version: document.version.clone(),
        sha256: document.workload.sha256.clone(),
        options: document.workload.options.clone(),
        seed: document.seed,
        status: document.status.clone(),
        jobs: document.jobs.clone(),
        choices: document.choices.clone(),
        rules: document.rules.clone(),
        winner: document.winner.clone(),
        not_modelled: document.not_modelled.clone(),
    }
}

fn convert(document: wire::FullDocument<'_>, instance: &Instance) -> Result<Schedule, ScheduleFault> {
    let mut names = Names::new(instance);
    check_finite(&[
        ("cost", document.cost),
        ("lower_bound", document.lower_bound),
        ("gap", document.gap),
        ("gap_absolute", document.gap_absolute),
    ])?;
    check_start(document.start.as_ref(), instance)?;
    let origin = Origin {
        policy: document.policy,
        minima: document.minima,
        clock: document.clock,
        slowstart: fraction("slowstart", document.slowstart)?,
        profile: profile(document.profile.as_ref())?,
    };
    let mut schedule = Schedule {
        cost: document.cost,
        lower_bound: document.lower_bound,
        gap: document.gap,
        metrics: document.metrics.0,
        ..Schedule::without_rows(origin, document.objective.into())
    };
    check_gap_absolute(&schedule, document.gap_absolute)?;
    for (i, row) in document.segments.iter().enumerate() {
        let row = names
            .segment(instance.cluster(), row)
            .map_err(|wrong| wrong.within(&format!("segments[{i}]")))?;
        schedule.segments.push(row);
    }
    for (i, row) in document.flows.iter().enumerate() {
        let row = names.flow_row(row).map_err(|wrong| wrong.within(&format!("flows[{i}]")))?;
        schedule.flows.push(row);
    }
    for (i, row) in document.allocations.unwrap_or_default().iter().enumerate() {
        let row =
            names.allocation(instance, row).map_err(|wrong| wrong.within(&format!("allocations[{i}]")))?;
        schedule.allocations.push(row);
    }
    for (i, row) in document.tasks.unwrap_or_default().iter().enumerate() {
        let row = names.task(instance, row).map_err(|wrong| wrong.within(&format!("tasks[{i}]")))?;
        schedule.tasks.push(row.0, &row.1);
    }
    for (i, row) in document.ams.unwrap_or_default().iter().enumerate() {
        let row = names.am(instance, row).map_err(|wrong| wrong.within(&format!("ams[{i}]")))?;
        schedule.ams.push(row);
    }
    Ok(schedule)
}
