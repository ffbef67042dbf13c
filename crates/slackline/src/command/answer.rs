//! Reads the answers of the program and refuses invalid ones, with the position of the error.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use slackline_model::time::SECONDS_MAX;
use slackline_model::{MachineId, PhaseId, Time};
use slackline_policy::{Action, Style, View};
use slackline_trace::{Document, Format, TraceError};

use super::wire::{Answer, PROTOCOL, Ranked, Version, Welcome};
use crate::command::program_view::ProgramView;

/// The changes that the program requests.
pub(super) struct RequestedChanges {
    /// Targets, placements, wakes.
    pub(super) actions: Vec<Action>,
    /// A new order: each phase at most once, with the maximum number of slots that it may hold.
    pub(super) order: Option<Vec<(PhaseId, u32)>>,
}

/// Reads the answer to the first line.
///
/// # Errors
/// The error, in words.
pub(super) fn welcome(line: &[u8]) -> Result<Welcome, String> {
    let Version { protocol } = object(line)?;
    if protocol != PROTOCOL {
        return Err(format!(
            "protocol: found {protocol}, expected {PROTOCOL}, the version of this slackline"
        ));
    }
    object(line)
}

/// Reads the answer to any other line. The answer may use only flows and phases that the program knows.
///
/// # Errors
/// The error, in words.
pub(super) fn wanted(
    line: &[u8],
    style: Style,
    program: &ProgramView,
    view: &View<'_>,
) -> Result<RequestedChanges, String> {
    let answer: Answer = object(line)?;
    let given = [
        ("order", Style::Priorities, answer.order.is_some()),
        ("targets", Style::Targets, !answer.targets.is_empty()),
        ("clear", Style::Placements, answer.clear),
        ("placements", Style::Placements, !answer.placements.is_empty()),
    ];
    if let Some((field, ..)) = given.iter().find(|(_, of, is_given)| *is_given && *of != style) {
        let chosen = given.iter().rfind(|(_, of, _)| *of == style).map_or("", |(field, ..)| field);
        return Err(format!("found {field}, expected {chosen}, the style chosen at hello"));
    }
    let mut actions = Vec::new();
    for (k, &(phase, slots)) in answer.targets.iter().enumerate() {
        let (phase, _) = program.phase(phase).map_err(at("targets", k))?;
        if !(slots.is_finite() && slots >= 0.0) {
            return Err(at("targets", k)(format!("found {slots} slots, expected a number from 0")));
        }
        actions.push(Action::Target { phase, slots });
    }
    actions.extend(answer.clear.then_some(Action::ClearPlacements));
    for (k, &(machine, phase, first, count)) in answer.placements.iter().enumerate() {
        let placement = place(machine, phase, first, count, program, view);
        actions.push(placement.map_err(at("placements", k))?);
    }
    for (k, &seconds) in answer.wake.iter().enumerate() {
        actions.push(wake(seconds, view.now).map_err(at("wake", k))?);
    }
    let order = answer.order.map(|order| ranked(&order, program)).transpose()?;
    Ok(RequestedChanges { actions, order })
}

/// Prefixes an error with the position of the element.
fn at(list: &str, k: usize) -> impl FnOnce(String) -> String {
    move |what| format!("{list}[{k}]: {what}")
}

fn ranked(order: &[Ranked], program: &ProgramView) -> Result<Vec<(PhaseId, u32)>, String> {
    let mut seen = BTreeSet::new();
    let one = |(k, ranked): (usize, &Ranked)| {
        let (number, most) = match *ranked {
            Ranked::All(phase) => (phase, u32::MAX),
            Ranked::Most(phase, most) => (phase, most),
        };
        let (phase, _) = program.phase(number).map_err(at("order", k))?;
        if !seen.insert(phase) {
            return Err(at("order", k)(format!(
                "found phase {number} a second time, expected each at most once"
            )));
        }
        Ok((phase, most))
    };
    order.iter().enumerate().map(one).collect()
}

fn place(
    machine: u32,
    phase: u32,
    first: u32,
    count: u32,
    program: &ProgramView,
    view: &View<'_>,
) -> Result<Action, String> {
    let (phase, live) = program.phase(phase)?;
    let cluster = view.instance.cluster();
    if machine >= cluster.n_machines() {
        let last = cluster.n_machines() - 1;
        return Err(format!("found machine {machine}, expected the number of a machine, from 0 to {last}"));
    }
    let (machine, tasks) = (MachineId(machine), live.tasks);
    if cluster.machine_slots(cluster.slot_kind_of(live.kind), machine).is_none() {
        let (name, kind) = (cluster.machine_name(machine), live.kind);
        return Err(format!(
            "found machine {} ({name}), expected one with slots for {kind} tasks",
            machine.0
        ));
    }
    if count == 0 || first.checked_add(count).is_none_or(|end| end > tasks) {
        return Err(format!(
            "found {count} tasks that start at task {first} of phase {}, expected at least 1 of its {tasks} tasks, numbered from 0",
            phase.0
        ));
    }
    Ok(Action::Place { machine, phase, first, count })
}

fn wake(seconds: f64, now: Time) -> Result<Action, String> {
    let at = Time::from_seconds_nearest(seconds);
    // A repeated wake-up at the same instant would never end.
    if !(seconds <= SECONDS_MAX && at > now) {
        return Err(format!("found {seconds} s, expected a time after {} s", now.seconds()));
    }
    Ok(Action::WakeAt(at))
}

/// Reads a line as an object.
fn object<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    // The derived reader of an object would also accept a list.
    if !line.trim_ascii_start().starts_with(b"{") {
        let hint = "{} for no change; print other text to standard error";
        return Err(format!("found no JSON object, expected one, such as {hint}"));
    }
    serde_json::from_slice(line).map_err(|error| in_words::<T>(line).unwrap_or_else(|| error.to_string()))
}

/// The error in a line, in the style of document errors.
fn in_words<T: DeserializeOwned>(line: &[u8]) -> Option<String> {
    let document = Document::new("answer", std::str::from_utf8(line).ok()?, Format::Json);
    let TraceError::Input(faults) = document.read::<T>().err()? else { return None };
    let fault = faults.list.into_iter().next()?;
    let column = fault.place.map(|place| format!("column {}: ", place.column)).unwrap_or_default();
    Some(if fault.path.is_empty() { column + &fault.what } else { format!("{}: {}", fault.path, fault.what) })
}
