//! Texts for submissions of a service, for tables and for the live view.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use slackline_serve::api::{Flow, FlowStatus, Job, Service, State, Submission};

use crate::terminal::watch::content;
use crate::terminal::watch::content::{Mood, NEVER_RAN, UNKNOWN, ViewContent};
use slackline::report::number::{counted, duration};

/// A moment by the clock of this machine: the time alone if it is of today.
pub(crate) fn clock(at: Timestamp, now: Timestamp) -> String {
    let [at, now] = [at, now].map(|at| at.to_zoned(TimeZone::system()));
    let form = if at.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    at.strftime(form).to_string()
}

/// The same with the zone of the clock, where it is read beside times of others.
pub(crate) fn clock_and_zone(at: Timestamp, now: Timestamp) -> String {
    format!("{} {}", clock(at, now), at.to_zoned(TimeZone::system()).strftime("%Z"))
}

/// The same of a moment that may not be known.
pub(crate) fn clock_if(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(String::new, |at| clock(at, now))
}

/// Whether the predicted completion of an unfinished flow has passed: the next poll knows more.
fn has_passed(flow: &Flow, now: Timestamp) -> bool {
    flow.completion.is_none() && !flow.state.is_over() && flow.predicted.is_some_and(|at| at < now)
}

/// When a flow is predicted to be done, with a word where the time has passed.
pub(crate) fn predicted(flow: &Flow, now: Timestamp) -> String {
    if flow.unknown {
        return UNKNOWN.to_owned();
    }
    let passed = if has_passed(flow, now) { " (passed)" } else { "" };
    flow.predicted.map_or_else(String::new, |at| format!("{}{passed}", clock(at, now)))
}

/// The state of a flow in a word or two.
pub(crate) fn verdict(flow: &Flow, now: Timestamp) -> &'static str {
    let has_passed = flow.deadline.is_some_and(|deadline| now > deadline);
    match (flow.state, flow.late) {
        (FlowStatus::Failed, _) => "failed",
        (FlowStatus::Cancelled, _) => "cancelled",
        (FlowStatus::Finished, Some(true)) => "late",
        (FlowStatus::Finished, Some(false)) => "on time",
        (FlowStatus::Finished, None) => "done",
        (_, Some(true)) if has_passed => "late already",
        (FlowStatus::Held, _) => "held",
        (_, Some(true)) => "likely late",
        (FlowStatus::Waiting, _) => "waits",
        (FlowStatus::Running, _) => "running",
    }
}

fn mood(flow: &Flow, now: Timestamp) -> Mood {
    match verdict(flow, now) {
        "failed" | "late" | "late already" => Mood::Bad,
        "likely late" => Mood::Warning,
        "on time" | "done" => Mood::Good,
        _ => Mood::Plain,
    }
}

/// The state of a submission in a few words.
pub(crate) fn status(one: &Submission, now: Timestamp) -> String {
    match &one.why {
        Some(why) => format!("{}: {}", one.state.name(), localised(why, now)),
        None if one.held && !one.state.is_over() => "held".to_owned(),
        None => one.state.name().to_owned(),
    }
}

/// `4 slots, 3 running under auto; 2 active, 5 queued`.
pub(crate) fn headline(service: &Service) -> String {
    let Service {
        engine, policy, objective, slots, running, waiting, submissions, draining, trouble, ..
    } = service;
    let of = |state: State| submissions.get(state.name()).copied().unwrap_or(0);
    let (live, queued) = (of(State::Running), of(State::Queued) + of(State::Opening));
    let slots = counted(*slots, "slot");
    let mut out = format!(
        "{engine}, {policy} ({objective}): {slots}, {running} running, {waiting} waiting; {live} active, {queued} queued"
    );
    if *draining {
        out.push_str("\ndraining: no new submission starts (slackline serve drain --undo)");
    }
    if let Some(trouble) = trouble {
        out.extend(["\nwarning: ", trouble]);
    }
    out
}

/// The live view of a service.
pub(crate) fn view_content(
    service: &Service,
    live: &[Submission],
    queued: &[Submission],
    events: &[content::Event],
) -> ViewContent {
    let now = service.now;
    let flows: Vec<content::Flow> =
        live.iter().flat_map(|one| one.flows.iter().map(move |flow| view_flow(one, flow, now))).collect();
    let waiting = queued.iter().map(|one| content::Flow {
        // Its flows are not known here.
        name: one.number.to_string(),
        of: dated_name(one),
        user: one.user.clone(),
        deadline: clock_if(one.deadline, now),
        verdict: if one.held { "held" } else { "queued" },
        ..content::Flow::default()
    });
    let at_work = live.iter().flat_map(|one| {
        one.flows.iter().filter(|flow| flow.running > 0).map(move |flow| {
            let name = name(one, flow);
            content::Task { text: format!("{name}: {}", counted(flow.running, "task")), flow: name }
        })
    });
    let all = live.iter().flat_map(|one| &one.flows);
    ViewContent {
        headline: headline(service),
        done: all.clone().map(|flow| flow.done as usize).sum(),
        total: all.clone().map(|flow| flow.tasks as usize).sum(),
        slots: u32::try_from(service.slots).unwrap_or(u32::MAX),
        held: service.running as usize,
        failed: all.map(|flow| flow.failed_attempts).sum(),
        at_work: at_work.collect(),
        flows: flows.into_iter().chain(waiting).collect(),
        events: events.to_vec(),
    }
}

/// The name of a submission, with its time if it is one of a schedule, in the zone of the submission.
pub(crate) fn dated_name(one: &Submission) -> String {
    let Some(occurrence) = &one.occurrence else { return one.name.clone() };
    let zone = one.zone.as_deref().and_then(|zone| TimeZone::get(zone).ok()).unwrap_or_else(TimeZone::system);
    format!("{} {}", one.name, occurrence.at.to_zoned(zone).strftime("%Y-%m-%d %H:%M"))
}

/// How a flow is called among those of all submissions.
pub(crate) fn name(one: &Submission, flow: &Flow) -> String {
    format!("{}/{}", one.number, flow.flow)
}

fn view_flow(one: &Submission, flow: &Flow, now: Timestamp) -> content::Flow {
    let between = match flow.predicted_between {
        _ if has_passed(flow, now) => "has passed, not finished".to_owned(),
        Some([least, most]) => format!("{} to {}", clock(least, now), clock(most, now)),
        None if flow.unknown => NEVER_RAN.to_owned(),
        None => String::new(),
    };
    content::Flow {
        name: name(one, flow),
        of: dated_name(one),
        user: one.user.clone(),
        done: flow.done as usize,
        total: flow.tasks as usize,
        at_work: flow.running as usize,
        failed: flow.failed_attempts,
        deadline: clock_if(flow.deadline, now),
        completion: if flow.unknown {
            UNKNOWN.to_owned()
        } else {
            clock_if(flow.completion.or(flow.predicted), now)
        },
        between,
        verdict: verdict(flow, now),
        mood: mood(flow, now),
        jobs: flow.jobs.iter().map(view_job).collect(),
    }
}

fn view_job(job: &Job) -> content::Job {
    content::Job {
        name: job.job.clone(),
        after: job.after.join(", "),
        phases: [job.maps, job.reduces].map(|phase| (phase.done as usize, phase.tasks as usize)),
        at_work: (job.maps.running + job.reduces.running) as usize,
        failed: job.failed_attempts,
        took: String::new(),
    }
}

/// A message of the service with its instants, which are in UTC, by the clock of the reader.
pub(crate) fn localised(message: &str, now: Timestamp) -> String {
    let is_of_instant = |c: char| c.is_ascii_digit() || "-:.TZ".contains(c);
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(is_of_instant) {
        let (before, from) = rest.split_at(start);
        let (found, after) = from.split_at(from.find(|c| !is_of_instant(c)).unwrap_or(from.len()));
        // A full stop after it is the end of a sentence.
        let whole = found.trim_end_matches(['.', ':']);
        // In names and paths it stays as it is.
        let is_alone = (out.is_empty() && before.is_empty() || before.ends_with([' ', '\n']))
            && !after.starts_with(|c: char| c.is_alphanumeric() || "/_[]".contains(c));
        let instant = Some(whole).filter(|text| is_alone && text.ends_with('Z'));
        let instant = instant.and_then(|text| text.parse().ok());
        out.push_str(before);
        match instant {
            Some(at) => out.extend([&clock(at, now), &found[whole.len()..]]),
            None => out.push_str(found),
        }
        rest = after;
    }
    out + rest
}

/// How long it is until a moment, or since it, in words.
pub(crate) fn from_now(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.duration_since(now).as_secs_f64();
    if seconds >= 0.0 { format!("in {}", duration(seconds)) } else { format!("{} ago", duration(-seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_view_name_flow_submission_and_user() {
        let one: Submission = serde_json::from_value(serde_json::json!({
            "number": 7, "name": "night", "user": "anna", "submitted": "2026-03-01T10:00:00Z", "state": "running",
            "held": false, "priority": 0, "flows": [],
        }))
        .expect("a submission");
        let flow = Flow { flow: "load".to_owned(), ..Flow::default() };
        let row = view_flow(&one, &flow, one.submitted);
        assert_eq!([row.name, row.of, row.user], ["7/load", "night", "anna"]);
    }

    #[test]
    fn instants_in_messages_are_reported_by_the_clock_of_the_reader() {
        let at: Timestamp = "2026-03-01T10:00:00.25Z".parse().expect("a time");
        let text =
            localised("load/b-2: its deadline 2026-03-01T10:00:00.25Z. It TZ-3: 2.5 s, 2026-03-01", at);
        assert_eq!(text, format!("load/b-2: its deadline {}. It TZ-3: 2.5 s, 2026-03-01", clock(at, at)));
        for name in ["waits for /in/2026-03-01T10:00:00Z/_DONE", "night[2026-03-01T10:00:00Z] waits"] {
            assert_eq!(localised(name, at), name);
        }
        let two = localised("from 2026-03-01T10:00:00.25Z, to 2026-03-01T10:00:00.25Z", at);
        assert_eq!(two, format!("from {0}, to {0}", clock(at, at)));
    }

    #[test]
    fn a_clock_beside_times_of_others_has_its_zone() {
        let at: Timestamp = "2026-03-01T10:00:00Z".parse().expect("a time");
        let zone = at.to_zoned(TimeZone::system()).strftime("%Z").to_string();
        assert_eq!(clock_and_zone(at, at), format!("{} {zone}", clock(at, at)));
        assert!(!zone.is_empty());
    }
}
