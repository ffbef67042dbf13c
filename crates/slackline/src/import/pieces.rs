//! Cuts a workload into pieces by release time: for example, the log of a week into days.
//!
//! Each piece is a separate workload. Its second 0 is the release of its first flow, and it starts with an
//! empty cluster, without the unfinished work of the previous piece. Recurring flows are cut too.

use std::collections::BTreeMap;
use std::str::FromStr;

use slackline_model::draft::FlowDraft;
use slackline_model::{Draft, Start, duration};
use slackline_trace::ImportedWorkload;

use super::error::ImportError;
use super::loaded::Shaped;

/// The length of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PieceSpan {
    /// A day: from midnight to midnight if the date of second 0 is known, otherwise 24 hours from second 0.
    Day,
    /// A week: from Monday if the date of second 0 is known, otherwise seven days from second 0.
    Week,
    /// This number of seconds, from second 0.
    Seconds(f64),
}

const DAY: f64 = 86_400.0;

/// The key of a piece: its number, or its calendar name if it has one.
type Key = (i64, Option<String>);

/// The flows of a piece, each with the index of its original flow.
type Flows = Vec<(usize, FlowDraft)>;

impl PieceSpan {
    /// The word for a piece.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Seconds(_) => "piece",
        }
    }

    /// The key of the piece of a flow that is released `seconds` after the start.
    fn piece(self, seconds: f64, start: Option<&Start>) -> Key {
        let named = match self {
            Self::Day => start.and_then(|start| start.day_at(seconds)),
            Self::Week => start.and_then(|start| start.week_at(seconds)),
            Self::Seconds(_) => None,
        };
        // Calendar names sort chronologically.
        if named.is_some() {
            return (0, named);
        }
        let length = match self {
            Self::Day => DAY,
            Self::Week => 7.0 * DAY,
            Self::Seconds(seconds) => seconds,
        };
        ((seconds / length).floor() as i64, None)
    }

    /// The name of a piece without a calendar name.
    fn name(self, number: i64, start: Option<&Start>) -> String {
        let Self::Seconds(length) = self else { return format!("{} {}", self.word(), number + 1) };
        let from = number as f64 * length;
        let clock = start.and_then(|start| start.after(from));
        clock
            .map_or_else(|| format!("from {from} s"), |clock| clock.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }
}

impl FromStr for PieceSpan {
    type Err = String;

    /// Reads `day`, `week`, or a duration such as `6h`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "day" => return Ok(Self::Day),
            "week" => return Ok(Self::Week),
            _ => {}
        }
        let seconds = duration::parse_option(text).ok().filter(|seconds| *seconds >= 1.0);
        seconds.map(Self::Seconds).ok_or_else(|| {
            format!("found {text:?}, expected day, week, or a duration of at least a second such as 6h")
        })
    }
}

impl std::fmt::Display for PieceSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{seconds} s"),
            named => f.write_str(named.word()),
        }
    }
}

impl Shaped {
    /// The pieces that have flows, in order, each with its name.
    ///
    /// # Errors
    /// All errors in the workload, as in [`Self::into_loaded`].
    pub fn pieces(&self, every: PieceSpan) -> Result<Vec<(String, Self)>, ImportError> {
        self.check()?;
        let draft = &self.imported.draft;
        let start = draft.start.as_ref();
        let mut pieces: BTreeMap<Key, Flows> = BTreeMap::new();
        for (k, flow) in draft.flows.iter().enumerate() {
            for flow in flow.recurrences() {
                pieces.entry(every.piece(flow.release, start)).or_default().push((k, flow));
            }
        }
        let mut head = draft.clone();
        head.flows.clear();
        let piece = |((number, name), flows): (Key, Flows)| {
            let first = flows.iter().map(|(_, flow)| flow.release).fold(f64::INFINITY, f64::min);
            let (origins, flows) = flows.into_iter().map(|(k, flow)| (k, flow.later(-first))).unzip();
            let moved = start.and_then(|start| start.after(first)).map(Start::from);
            let imported = ImportedWorkload {
                draft: Draft { flows, start: moved, ..head.clone() },
                diagnostics: self.imported.diagnostics.clone(),
                sha256: self.imported.sha256.clone(),
                source: self.imported.source.clone().with_origins(origins),
                importer: self.imported.importer,
            };
            let shaped = Self {
                name: self.name.clone(),
                imported,
                recorded: self.recorded.clone(),
                options: self.options.clone(),
                machines: self.machines.clone(),
            };
            (name.unwrap_or_else(|| every.name(number, start)), shaped)
        };
        Ok(pieces.into_iter().map(piece).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::{Source, WorkloadOptions};

    const WEEK: &str = r#"
slackline = 1
start = "2026-03-28T18:00[Europe/Berlin]"
cluster.machines = [{ name = "node", count = 2, slots = 2 }]
flows = [
  { id = "a", release = 0.0, deadline = "1h", jobs = [{ id = "j", map = { tasks = 3, seconds = 10.0 } }] },
  { id = "b", release = "2026-03-28T23:30", jobs = [{ id = "j", map = { tasks = 3, seconds = 10.0 } }] },
  { id = "c", release = "2026-03-30T02:00", repeat = { every = "12h", times = 3 }, deadline = "2026-03-30T03:00", jobs = [{ id = "j", map = { tasks = 3, seconds = 10.0 } }] },
]
"#;

    fn shaped(text: &str) -> Shaped {
        Source::new("week.toml", text).shape(&WorkloadOptions::default()).unwrap()
    }

    /// A flow, its release and its deadline.
    type Found = (String, f64, Option<f64>);

    /// The names of the pieces, each with its flows.
    fn cut(text: &str, every: &str) -> Vec<(String, Vec<Found>)> {
        let of = |piece: Shaped| {
            let (draft, _) = piece.into_draft().unwrap();
            draft.flows.into_iter().map(|flow| (flow.id, flow.release, flow.deadline)).collect()
        };
        let pieces = shaped(text).pieces(every.parse().unwrap()).unwrap();
        pieces.into_iter().map(|(name, piece)| (name, of(piece))).collect()
    }

    #[test]
    fn days_are_those_of_the_calendar_where_there_is_one() {
        let flow = |id: &str, release, deadline| (id.to_owned(), release, deadline);
        let found = cut(WEEK, "day");
        let expected = [
            ("2026-03-28", vec![flow("a", 0.0, Some(3600.0)), flow("b", 19_800.0, None)]),
            ("2026-03-30", vec![flow("c#0", 0.0, Some(3600.0)), flow("c#1", 43_200.0, Some(46_800.0))]),
            ("2026-03-31", vec![flow("c#2", 0.0, Some(3600.0))]),
        ];
        assert_eq!(found, expected.map(|(name, flows)| (name.to_owned(), flows)));
        let weeks: Vec<String> = cut(WEEK, "week").into_iter().map(|(name, _)| name).collect();
        assert_eq!(weeks, ["2026-W13", "2026-W14"]);
    }

    #[test]
    fn without_a_calendar_days_are_counted_from_second_0() {
        let text = WEEK.replace("start = \"2026-03-28T18:00[Europe/Berlin]\"\n", "");
        let text =
            text.replace("\"2026-03-28T23:30\"", "90000.0").replace("\"2026-03-30T02:00\"", "172800.0");
        let text = text.replace("\"2026-03-30T03:00\"", "172900.0");
        let names: Vec<String> = cut(&text, "day").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["day 1", "day 2", "day 3", "day 4"]);
        let names: Vec<String> = cut(&text, "30h").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["from 0 s", "from 108000 s", "from 216000 s"]);
        let names: Vec<String> = cut(WEEK, "30h").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["2026-03-28 18:00:00", "2026-03-30 01:00:00"]);
    }

    #[test]
    fn errors_are_reported_before_the_log_is_cut() {
        let error = shaped(&WEEK.replace("tasks = 3", "tasks = 0"))
            .pieces(PieceSpan::Day)
            .map(drop)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("week.toml:6:"), "{error}");
        assert!(
            "1 fortnight".parse::<PieceSpan>().unwrap_err().contains("expected day, week, or a duration")
        );
        assert!("0".parse::<PieceSpan>().is_err());
    }
}
