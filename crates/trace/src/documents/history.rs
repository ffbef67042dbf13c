//! The history document: durations of finished tasks, kept from run to run (`--history FILE`).
//!
//! It has one line for each phase and group of machines. For each real run it also has a line with the
//! durations and bytes of its jobs, from which the other lines were computed.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use slackline_model::history::{PhaseName as ModelName, Record};
use slackline_model::{History, PhaseKind};

use crate::documents::counts::PhaseCounts;
use crate::reading::error::{Fault, Faults, TraceError};
use crate::reading::format::Format;
use crate::reading::parse::{HISTORY, VERSION, check_version, parse};
use crate::reading::source::places;
use crate::reading::text::text;
use crate::reading::wire::{PhaseName, SchemaName};

/// Durations of finished tasks.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(title = "Slackline history"))]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Address of the schema, for editors.
    #[serde(rename = "$schema", default)]
    #[expect(dead_code, reason = "it is for editors alone")]
    schema: SchemaName,
    /// Version of the format: 1.
    slackline: u32,
    /// A row for each phase and group.
    history: Vec<Row>,
    /// Real runs, the earliest first; the rows of their machines are made from the latest ten of each job.
    #[serde(default)]
    runs: Vec<HistoryRun>,
}

/// A real run, with what its finished jobs took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistoryRun {
    /// When it started, microseconds since 1970.
    pub started: u64,
    /// The flow file.
    pub workload: String,
    /// The policy.
    pub policy: String,
    /// Its finished jobs.
    pub jobs: Vec<HistoryJob>,
}

/// What a job took and moved in a real run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistoryJob {
    /// The flow; recurrences go by the name of the flow that recurs.
    pub flow: String,
    /// The job.
    pub job: String,
    /// Map tasks.
    pub maps: u64,
    /// How long they took together, microseconds.
    pub map_micros: u64,
    /// Reduce tasks.
    pub reduces: u64,
    /// How long they took together, microseconds.
    pub reduce_micros: u64,
    /// Bytes that the maps read, as they are on disk; of a generator, bytes it made.
    pub bytes_in: u64,
    /// Bytes of its part files.
    pub bytes_out: u64,
    /// What its maps counted; nothing in histories of the time before.
    #[serde(default, skip_serializing_if = "PhaseCounts::is_nothing")]
    pub map_counts: PhaseCounts,
    /// What its reduces counted; nothing in histories of the time before.
    #[serde(default, skip_serializing_if = "PhaseCounts::is_nothing")]
    pub reduce_counts: PhaseCounts,
    /// What of this was on which of several machines, by their names; nothing of runs on one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub machines: BTreeMap<String, MachineCost>,
}

/// What tasks of a job took on one of several machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MachineCost {
    /// Map tasks.
    pub maps: u64,
    /// How long they took together, microseconds.
    pub map_micros: u64,
    /// Reduce tasks.
    pub reduces: u64,
    /// How long they took together, microseconds.
    pub reduce_micros: u64,
}

impl MachineCost {
    /// That of a task.
    pub fn of(kind: PhaseKind, micros: u64) -> Self {
        match kind {
            PhaseKind::Map => Self { maps: 1, map_micros: micros, ..Self::default() },
            PhaseKind::Reduce => Self { reduces: 1, reduce_micros: micros, ..Self::default() },
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            maps: self.maps.saturating_add(other.maps),
            map_micros: self.map_micros.saturating_add(other.map_micros),
            reduces: self.reduces.saturating_add(other.reduces),
            reduce_micros: self.reduce_micros.saturating_add(other.reduce_micros),
        }
    }

    /// The record of a phase.
    pub fn record(&self, kind: PhaseKind) -> Record {
        let (tasks, micros) = match kind {
            PhaseKind::Map => (self.maps, self.map_micros),
            PhaseKind::Reduce => (self.reduces, self.reduce_micros),
        };
        Record { tasks, seconds: micros as f64 / 1e6 }
    }
}

/// What a group of machines has finished of a phase.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Row {
    /// The flow; recurrences go by the name of the flow that recurs.
    flow: String,
    /// The job.
    job: String,
    /// The phase.
    #[serde(with = "PhaseName")]
    phase: PhaseKind,
    /// The group of machines.
    group: String,
    /// How many tasks; at least 1.
    #[cfg_attr(test, schemars(range(min = 1)))]
    tasks: u64,
    /// How long they took together, seconds.
    #[cfg_attr(test, schemars(range(min = 0.0)))]
    seconds: f64,
}

/// Reads a history, and the real runs in it.
///
/// # Errors
/// A document that is no history, with the line of the first difference; a phase and group given twice.
pub fn read_history(name: &str, bytes: &[u8]) -> Result<(History, Vec<HistoryRun>), TraceError> {
    let text = text(name, bytes)?;
    let format = Format::guess(name, &text).unwrap_or(Format::Json);
    let document: Document = parse(name, &text, format, HISTORY)?;
    check_version(name, &text, format, document.slackline)?;
    let mut history = History::new();
    for (k, row) in document.history.into_iter().enumerate() {
        add(&mut history, row).map_err(|(field, what)| {
            let path = format!("history[{k}].{field}");
            let place = places(&text, format, &[&path])[0];
            TraceError::Input(Faults { file: name.to_owned(), list: vec![Fault { place, path, what }] })
        })?;
    }
    Ok((history, document.runs))
}

fn add(history: &mut History, row: Row) -> Result<(), (&'static str, String)> {
    /// Few enough that no sum of them overflows.
    const TASKS_MAX: u64 = 1 << 53;
    if !(1..=TASKS_MAX).contains(&row.tasks) {
        return Err(("tasks", format!("found {}, expected 1 to {TASKS_MAX}", row.tasks)));
    }
    if !(0.0..=1e18).contains(&row.seconds) {
        return Err(("seconds", format!("found {}, expected seconds from 0 to 1e18", row.seconds)));
    }
    let what = format!(
        "found the {} phase of job {:?} of flow {:?} on group {:?} a second time, expected one row for each",
        row.phase, row.job, row.flow, row.group
    );
    let name = ModelName { flow: row.flow, job: row.job, kind: row.phase };
    let record = Record { tasks: row.tasks, seconds: row.seconds };
    if history.insert(name, row.group, record) { Ok(()) } else { Err(("flow", what)) }
}

/// Writes a history with real runs as JSON.
///
/// # Errors
/// Errors of the writer.
pub fn write_history(out: &mut dyn Write, history: &History, runs: &[HistoryRun]) -> io::Result<()> {
    writeln!(out, "{{ \"slackline\": {VERSION}, \"history\": [")?;
    let mut before = "";
    for (phase, group, record) in history.records() {
        let row = Row {
            flow: phase.flow.clone(),
            job: phase.job.clone(),
            phase: phase.kind,
            group: group.to_owned(),
            tasks: record.tasks,
            seconds: record.seconds,
        };
        write!(out, "{before}  {}", serde_json::to_string(&row)?)?;
        before = ",\n";
    }
    if !before.is_empty() {
        writeln!(out)?;
    }
    if runs.is_empty() {
        return writeln!(out, "] }}");
    }
    writeln!(out, "], \"runs\": [")?;
    for (k, run) in runs.iter().enumerate() {
        let comma = if k + 1 < runs.len() { "," } else { "" };
        writeln!(out, "  {}{comma}", serde_json::to_string(run)?)?;
    }
    writeln!(out, "] }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::new();
        for (job, kind, group, tasks, seconds) in [
            ("extract", PhaseKind::Map, "fast", 12, 96.25),
            ("extract", PhaseKind::Map, "slow", 2, 128.0),
            ("a \"b\"", PhaseKind::Reduce, "slow", 1, 0.0),
        ] {
            let name = ModelName { flow: "nightly".into(), job: job.into(), kind };
            assert!(history.insert(name, group.into(), Record { tasks, seconds }));
        }
        history
    }

    #[test]
    fn a_history_comes_back() {
        for history in [history(), History::new()] {
            let mut bytes = Vec::new();
            write_history(&mut bytes, &history, &[]).unwrap();
            assert_eq!(read_history("h.json", &bytes).unwrap().0, history);
            let lines = std::str::from_utf8(&bytes).unwrap().lines().count();
            assert_eq!(lines, 2 + history.records().count());
        }
    }

    #[test]
    fn runs_come_back_beside_the_rows() {
        let job = HistoryJob {
            flow: "nightly".into(),
            job: "extract".into(),
            maps: 3,
            map_micros: 7,
            reduces: 0,
            reduce_micros: 0,
            bytes_in: 9,
            bytes_out: 4,
            ..HistoryJob::default()
        };
        let run =
            |started, jobs| HistoryRun { started, workload: "w.toml".into(), policy: "edf".into(), jobs };
        let map_counts = PhaseCounts {
            records_in: 5,
            counters: [("errors,parse".to_owned(), -2)].into(),
            says: Some("half".into()),
            ..PhaseCounts::default()
        };
        // The first as it was written before anything was counted.
        let runs = [run(1, vec![job.clone()]), run(2, vec![HistoryJob { map_counts, ..job }])];
        let mut bytes = Vec::new();
        write_history(&mut bytes, &history(), &runs).unwrap();
        assert_eq!(read_history("past", &bytes).unwrap(), (history(), runs.to_vec()));
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.matches("counts").count(), 1, "{text}");
        let text = text.replace("map_micros", "map_millis");
        let error = read_history("past", text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("past:6:") && error.contains("map_micros"), "{error}");
    }

    #[test]
    fn errors_have_a_line() {
        let row = r#"{"flow":"f","job":"j","phase":"map","group":"g","tasks":2,"seconds":3.0}"#;
        let error = |rows: &str| {
            let text = format!("{{\"slackline\": 1, \"history\": [\n{rows}\n]}}");
            read_history("h.json", text.as_bytes()).unwrap_err().to_string()
        };
        let twice = error(&format!("{row},\n{row}"));
        assert!(twice.starts_with("h.json:3:") && twice.contains("a second time"), "{twice}");
        let unknown = error(&row.replace("tasks", "task"));
        assert!(unknown.starts_with("h.json:2:") && unknown.contains("did you mean `tasks`"), "{unknown}");
        let none = error(&row.replace(":2,", ":0,"));
        assert!(none.contains("history[0].tasks: found 0, expected 1 to"), "{none}");
        let negative = error(&row.replace("3.0", "-3.0"));
        assert!(negative.starts_with("h.json:2:") && negative.contains("found -3"), "{negative}");
        let other = read_history("h.json", br#"{"slackline": 2, "past": []}"#).unwrap_err().to_string();
        assert!(other.contains("found slackline = 2, expected version 1"), "{other}");
    }
}
