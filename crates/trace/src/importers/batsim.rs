//! Workloads of Batsim: a JSON file of `jobs`, and the `profiles` of their work.
//!
//! A job becomes a flow, released at `subtime`, of one map phase with a task for each of its `res` resources;
//! the tasks need not start together. The importer reads profiles with durations: a delay, and compositions
//! of delays in sequence, also repeated. Jobs of other profiles, which describe computation and
//! communication, are ignored and counted by the type of the profile. A job that takes longer than its
//! `walltime` ends then. The cluster has `nb_res` hosts of one slot.
//!
//! Types have the names of Batsim 5 (`DelayProfile`) or earlier ones (`delay`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use slackline_model::Draft;
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};
use slackline_model::params::Settings;

use crate::importers::durations::whole_micros;
use crate::importers::importer::{Importer, Input, Output};
use crate::importers::log::GANG;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::format::Format;
use crate::reading::parse::parse;
use crate::reading::source::SourceMap;

/// The name of such a document in messages.
const KIND: &str = "a workload of Batsim";

/// How many characters of a file are searched to guess its format.
const HEAD: usize = 4096;

/// How deep compositions may be.
const DEPTH_MAX: usize = 64;

pub(super) const IMPORTER: Importer = Importer {
    endings: &["json"],
    ..Importer::new(
        "batsim",
        "a workload of Batsim, as JSON: jobs whose profiles are delays",
        looks_like,
        import,
    )
};

/// Whether a text could be a workload: JSON with typical keys at its beginning.
fn looks_like(text: &str) -> bool {
    let head = text.char_indices().nth(HEAD).map_or(text, |(at, _)| &text[..at]);
    let has = |name: &str| head.contains(name);
    head.trim_start().starts_with('{')
        && (has("\"nb_res\"") || has("\"subtime\""))
        && (has("\"jobs\"") || has("\"profiles\""))
}

#[derive(Deserialize)]
struct Workload {
    nb_res: Option<u32>,
    jobs: Vec<Job>,
    profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
struct Job {
    /// A text or a number.
    id: Id,
    subtime: f64,
    res: u32,
    profile: String,
    /// Negative without a limit.
    walltime: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

#[derive(Deserialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: String,
    delay: Option<f64>,
    seq: Option<Vec<String>>,
    #[serde(alias = "nb")]
    repeat: Option<Value>,
}

/// Why a profile gives no time.
enum NoTimeReason<'a> {
    /// It is, or is composed of, one of that type.
    Kind(&'a str),
    /// It is wrong: at that profile, that.
    Wrong(&'a str, String),
}

fn import(input: &Input<'_>, _: &Settings) -> Result<Output, TraceError> {
    let Input { file, text, .. } = *input;
    let workload: Workload = parse(file, text, Format::Json, KIND)?;
    let document = || SourceMap::document(file, text, Format::Json);
    let wrong = |path: String, what: String| document().error(vec![(path, what)]);
    let mut times: BTreeMap<&str, Result<f64, NoTimeReason<'_>>> = BTreeMap::new();
    let (mut flows, mut paths) = (Vec::new(), Vec::new());
    let mut diagnostics = Diagnostics::default();
    for (k, job) in workload.jobs.iter().enumerate() {
        let at = |field: &str| format!("jobs[{k}].{field}");
        let time = times.entry(&job.profile).or_insert_with(|| seconds(&job.profile, &workload.profiles, 0));
        let delay = match time {
            Ok(delay) => *delay,
            Err(NoTimeReason::Kind(kind)) => {
                let kind: String = kind.chars().take(60).collect();
                diagnostics.add_flow(
                    1,
                    &format!("job with a profile of type {kind:?}, which has no duration, left out"),
                );
                continue;
            }
            Err(NoTimeReason::Wrong(profile, what)) if *profile == job.profile => {
                return Err(wrong(at("profile"), format!("{profile:?}: {what}")));
            }
            Err(NoTimeReason::Wrong(profile, what)) => {
                return Err(wrong(format!("profiles.{profile}"), what.clone()));
            }
        };
        if !(job.subtime >= 0.0 && job.subtime.is_finite()) {
            return Err(wrong(at("subtime"), format!("found {}, expected seconds from 0", job.subtime)));
        }
        let walltime = job.walltime.filter(|walltime| *walltime >= 0.0 && *walltime < delay);
        if walltime.is_some() {
            diagnostics.add_flow(1, "job that takes longer than its walltime, cut to its walltime");
        }
        if job.res == 0 {
            diagnostics.add_flow(1, "job without resources, given 1");
        }
        diagnostics.add_unmodelled("job", u64::from(job.res > 1), 1, GANG);
        let id = match &job.id {
            Id::Number(id) => id.to_string(),
            Id::Text(id) => id.clone(),
        };
        let tasks =
            TasksDraft::Uniform { tasks: job.res.max(1), seconds: whole_micros(walltime.unwrap_or(delay)) };
        let draft = JobDraft { id: id.clone(), map: Some(tasks.into()), ..JobDraft::default() };
        flows.push(FlowDraft { release: job.subtime, ..FlowDraft::new(id, vec![draft]) });
        paths.push(format!("jobs[{k}]"));
    }
    if flows.is_empty() {
        let left_out = diagnostics.into_vec().into_iter().map(|d| format!("{} {}", d.count, d.what));
        let mut what = "found no job with a duration, expected profiles of type delay".to_owned();
        for more in left_out {
            what += "; ";
            what += &more;
        }
        return Err(input.error(None, what));
    }
    let host = |count| MachineDraft {
        name: "host".to_owned(),
        count,
        speed: 1.0,
        slots: Slots::Generic(1),
        rack: None,
    };
    let machines = workload.nb_res.filter(|count| *count > 0).map(host).into_iter().collect();
    let draft = Draft { machines, flows, ..Draft::default() };
    Ok(Output::new(draft, diagnostics, SourceMap::parts(file, text, Format::Json, paths)))
}

/// How long a profile takes, seconds.
fn seconds<'a>(
    name: &'a str,
    profiles: &'a BTreeMap<String, Profile>,
    depth: usize,
) -> Result<f64, NoTimeReason<'a>> {
    let wrong = |what: String| Err(NoTimeReason::Wrong(name, what));
    let Some(profile) = profiles.get(name) else {
        return wrong("found no profile of that name, expected one in `profiles`".to_owned());
    };
    match profile.kind.as_str() {
        "DelayProfile" | "delay" => match profile.delay {
            Some(delay) if delay >= 0.0 && delay.is_finite() => Ok(delay),
            Some(delay) => wrong(format!("found a delay of {delay}, expected seconds from 0")),
            None => wrong("found no `delay`, expected seconds".to_owned()),
        },
        "SequentialCompositionProfile" | "composed" => {
            let Some(parts) = &profile.seq else {
                return wrong("found no `seq`, expected profiles".to_owned());
            };
            if depth == DEPTH_MAX {
                return wrong(format!("found compositions more than {DEPTH_MAX} deep"));
            }
            let repeat = match &profile.repeat {
                None => 1.0,
                Some(repeat) => match repeat.as_u64() {
                    Some(repeat) => repeat as f64,
                    None => return wrong(format!("found repeat = {repeat}, expected a whole number")),
                },
            };
            let mut sum = 0.0;
            // Equal parts follow each other a million times in some files.
            let mut known: BTreeMap<&str, f64> = BTreeMap::new();
            for part in parts {
                let part_seconds = match known.get(part.as_str()) {
                    Some(&seconds) => seconds,
                    None => seconds(part, profiles, depth + 1)?,
                };
                known.insert(part, part_seconds);
                sum += part_seconds;
            }
            let total = sum * repeat;
            if total.is_finite() {
                Ok(total)
            } else {
                wrong("found a sum of seconds that is not finite".to_owned())
            }
        }
        kind => Err(NoTimeReason::Kind(kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::import::{ImportedWorkload, read_workload};
    use crate::importers::options::ImportOptions;

    const WORKLOAD: &str = r#"{ "nb_res": 4,
  "jobs": [
    {"id": 0, "subtime": 1.5, "walltime": 100, "res": 2, "profile": "nap"},
    {"id": "w!1", "subtime": 0, "res": 1, "profile": "naps"},
    {"id": 2, "subtime": 3, "walltime": 7, "res": 0, "profile": "naps"},
    {"id": 3, "subtime": 4, "res": 3, "profile": "work"},
    {"id": 4, "subtime": 4, "walltime": -1, "res": 3, "profile": "mixed"} ],
  "profiles": {
    "nap": {"type": "DelayProfile", "delay": 2.5},
    "old": {"type": "delay", "delay": 1},
    "naps": {"type": "SequentialCompositionProfile", "seq": ["nap", "old"], "repeat": 3},
    "work": {"type": "ParallelTaskProfile", "cpu": [1e9, 1e9, 1e9], "com": []},
    "mixed": {"type": "composed", "nb": 2, "seq": ["nap", "work"]} } }"#;

    fn read(text: &str) -> Result<ImportedWorkload, TraceError> {
        read_workload("w.json", text.as_bytes(), None, &ImportOptions::default())
    }

    #[test]
    fn jobs_of_delays_become_flows() {
        let imported = read(WORKLOAD).unwrap();
        assert_eq!(imported.importer.name, "batsim");
        let draft = &imported.draft;
        let map = |flow: &FlowDraft| flow.jobs[0].map.as_ref().unwrap().tasks.clone();
        let found: Vec<_> =
            draft.flows.iter().map(|flow| (flow.id.as_str(), flow.release, map(flow))).collect();
        let tasks = |tasks, seconds| TasksDraft::Uniform { tasks, seconds };
        assert_eq!(
            found,
            [("0", 1.5, tasks(2, 2.5)), ("w!1", 0.0, tasks(1, 10.5)), ("2", 3.0, tasks(1, 7.0))]
        );
        assert_eq!((draft.machines[0].count, draft.machines[0].slots), (4, Slots::Generic(1)));
        let said: Vec<_> = imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect();
        assert_eq!(
            said,
            [
                (GANG, 1),
                ("job that takes longer than its walltime, cut to its walltime", 1),
                ("job without resources, given 1", 1),
                ("job with a profile of type \"ParallelTaskProfile\", which has no duration, left out", 2),
            ]
        );
        let left_out = crate::Diagnostic::simplifications(&imported.diagnostics);
        assert_eq!((left_out.len(), left_out[0].count, left_out[0].what.as_str()), (1, 1, GANG));
        assert_eq!(imported.source.places(&["flows[2].jobs[0].map"])[0].unwrap().line, 5);
    }

    #[test]
    fn errors_have_a_place() {
        let error = |from: &str, to: &str| read(&WORKLOAD.replace(from, to)).unwrap_err().to_string();
        assert_eq!(
            error("\"profile\": \"nap\"", "\"profile\": \"nop\""),
            "w.json:3:69: jobs[0].profile: \"nop\": found no profile of that name, expected one in `profiles`"
        );
        assert!(
            error("\"delay\": 1}", "\"delay\": -1}")
                .contains(": found a delay of -1, expected seconds from 0")
        );
        assert!(error("[\"nap\", \"old\"]", "[\"naps\"]").contains("more than 64 deep"));
        assert!(error("\"subtime\": 0,", "\"subtime\": -1,").starts_with("w.json:4:"));
        let none = error("\"profile\": \"nap", "\"profile\": \"work\", \"was\": \"nap");
        assert!(
            none.contains("found no job with a duration") && none.contains("5 job with a profile of type"),
            "{none}"
        );
    }

    #[test]
    fn a_real_workload_is_read() {
        let Some(path) = crate::real_data::real("batsim/test_delays.json") else { return };
        let imported = read(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(
            (imported.importer.name, imported.draft.flows.len(), imported.diagnostics.len()),
            ("batsim", 10, 0)
        );
        assert_eq!(imported.draft.flows[9].release, 27.0);
    }
}
