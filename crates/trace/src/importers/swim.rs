//! Traces of the SWIM project: the Facebook workloads of 2009 and 2010 as one tab-separated row a job.
//!
//! Columns: id, submit time (s), gap to the job before (s), bytes of map input, of shuffle, of output; paths
//! may follow and are ignored. The traces hold no task counts and no durations, so both are assumed:
//!
//! - maps: `max(1, ⌈input / split⌉)`;
//! - reduces: none without shuffle, else `max(1, round((shuffle + output) / reduce-bytes))`, as in
//!   SWIM's own replay, up to `reduces-max`;
//! - durations: one lognormal draw per job and phase with the parameters of the job-ordering paper,
//!   section 7.2 (fitted there to the Facebook distributions published with Delay Scheduling), or
//!   bytes over rates.
//!
//! Each job becomes a flow of one job. Draws of a row depend on the seed and the row's number alone.

use slackline_model::draft::{FlowDraft, JobDraft, PhaseDraft, TasksDraft};
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{Seed, Start};

use crate::importers::durations::{MAP_MILLIS, REDUCE_MILLIS, whole_micros};
use crate::importers::importer::{Importer, Input, Output, SEED, import_lines};
use crate::importers::line_import::{Line, LineContent, LineImport};
use crate::importers::log::quoted;
use crate::random;
use crate::reading::diagnostic::Diagnostics;
use crate::reading::error::TraceError;
use crate::reading::place::Place;
use crate::reading::source::SourceMap;

pub(super) const IMPORTER: Importer = Importer {
    endings: &["tsv"],
    params: &[
        Param::new("split", "128MiB", Values::Bytes, "bytes of input a map reads"),
        Param::new("reduce-bytes", "1GiB", Values::Bytes, "bytes of shuffle and output a reduce handles"),
        // The default does not depend on the cluster and touches only jobs that shuffle and write more than
        // a terabyte, for which one reduce a gigabyte would be absurd.
        Param::new("reduces-max", "1000", Values::Count(1, u32::MAX as u64), "most reduces of a job")
            .or_word("none"),
        Param::new(
            "durations",
            "lognormal",
            Values::Choice(&["lognormal", "rate"]),
            "where durations come from: a lognormal draw per job and phase, or bytes over rates",
        ),
        SEED,
        // Ours, for the commodity nodes of 2009: a disk that several tasks share, a reduce's share of a
        // gigabit link, output written with its replicas.
        Param::new(
            "task-startup",
            "2",
            Values::Seconds(0.0, 1e6),
            "durations by rate: seconds before a task does anything",
        ),
        Param::new(
            "map-rate",
            "32MiB",
            Values::Bytes,
            "durations by rate: bytes that a map reads per second",
        ),
        Param::new(
            "shuffle-rate",
            "16MiB",
            Values::Bytes,
            "durations by rate: bytes that a reduce fetches per second",
        ),
        Param::new(
            "output-rate",
            "24MiB",
            Values::Bytes,
            "durations by rate: bytes that a task writes per second",
        ),
    ],
    shaped: |settings, name| match name {
        "seed" => settings.choice("durations") == "lognormal",
        "task-startup" | "map-rate" | "shuffle-rate" | "output-rate" => {
            settings.choice("durations") == "rate"
        }
        _ => true,
    },
    lines: Some(open),
    ..Importer::new("swim", "a trace of the SWIM project: tab-separated, one job per row", looks_like, import)
};

/// The assumptions, from the settings.
struct Assumptions {
    split: u64,
    reduce_bytes: u64,
    reduces_max: u32,
    durations: Durations,
}

enum Durations {
    Lognormal(Seed),
    Rate(Rates),
}

/// Seconds and bytes per second.
struct Rates {
    startup: f64,
    map: f64,
    shuffle: f64,
    output: f64,
}

impl Assumptions {
    fn of(settings: &Settings) -> Self {
        let rate = |name| settings.count(name) as f64;
        let by_rate = || Rates {
            startup: settings.real("task-startup"),
            map: rate("map-rate"),
            shuffle: rate("shuffle-rate"),
            output: rate("output-rate"),
        };
        Self {
            split: settings.count("split"),
            reduce_bytes: settings.count("reduce-bytes"),
            reduces_max: if settings.given("reduces-max") {
                settings.count("reduces-max") as u32
            } else {
                u32::MAX
            },
            durations: match settings.choice("durations") {
                "rate" => Durations::Rate(by_rate()),
                _ => Durations::Lognormal(Seed(settings.count("seed"))),
            },
        }
    }
}

/// The columns, in messages.
const COLUMNS: [&str; 6] = [
    "a job id",
    "a submit time in seconds",
    "a gap in seconds",
    "bytes of map input",
    "bytes of shuffle",
    "bytes of output",
];

/// Whether the first line that is neither empty nor a comment could be a row: six columns or more, numbers
/// from the second to the sixth.
fn looks_like(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let mut cells = first.unwrap_or_default().split('\t').skip(1);
    (0..5).all(|_| cells.next().is_some_and(|cell| cell.trim().parse::<f64>().is_ok()))
}

struct Row<'a> {
    id: &'a str,
    submit: f64,
    gap: Option<f64>,
    input: u64,
    shuffle: u64,
    output: u64,
}

/// Reads a trace into a draft without machines.
///
/// # Errors
/// The first invalid row, with its line and column.
fn import(input: &Input<'_>, settings: &Settings) -> Result<Output, TraceError> {
    import_lines(input, open(None, settings), |lines| SourceMap::rows(input.file, lines))
}

/// Reads a trace row by row.
struct Rows {
    assumed: Assumptions,
    count: u64,
    /// When the job of the last one was submitted.
    before: Option<f64>,
}

fn open(_: Option<&Start>, settings: &Settings) -> Box<dyn LineImport> {
    Box::new(Rows { assumed: Assumptions::of(settings), count: 0, before: None })
}

impl LineImport for Rows {
    fn line(&mut self, line: &Line<'_>, diagnostics: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if line.text.trim().is_empty() {
            return Ok(LineContent::Nothing);
        }
        let (row, number) = (parse_row(line, diagnostics)?, line.number);
        if let Some(before) = self.before {
            if row.submit < before {
                diagnostics.add(number, "submitted before the row above, kept as it is");
            } else if row.gap.is_none_or(|gap| (row.submit - before - gap).abs() > 1e-6) {
                diagnostics
                    .add(number, "gap is not the difference of the submit times, the submit times are kept");
            }
        }
        self.before = Some(row.submit);
        let job = job(&row, number, self.count, &self.assumed, diagnostics);
        let job = job.map_err(|what| line.error(1, what))?;
        self.count += 1;
        let flow = FlowDraft { release: row.submit, ..FlowDraft::new(row.id, vec![job]) };
        Ok(LineContent::Flow(Box::new(flow)))
    }

    fn end(&mut self, file: &str, _: &mut Diagnostics) -> Result<LineContent, TraceError> {
        if self.count > 0 {
            return Ok(LineContent::Nothing);
        }
        let what =
            "found no rows, expected one job per line: id, submit time, gap, input, shuffle and output bytes";
        Err(TraceError::input(file, None, what))
    }
}

fn parse_row<'a>(line: &Line<'a>, diagnostics: &mut Diagnostics) -> Result<Row<'a>, TraceError> {
    let content = line.text;
    let mut cells = [""; 6];
    let mut columns = [0; 6];
    let (mut n, mut start) = (0, 0);
    for cell in content.split('\t').take(6) {
        (cells[n], columns[n]) = (cell.trim(), start);
        start += cell.len() + 1;
        n += 1;
    }
    let bad = |column: usize, what: String| {
        line.error(Place::of_offset(content.as_bytes(), columns[column]).column, what)
    };
    if n < 6 {
        let what = format!("found a row of {n} tab-separated columns, expected at least 6");
        return Err(bad(0, what));
    }
    let wrong = |column: usize| {
        let cell = quoted(cells[column]);
        bad(column, format!("found {cell} in column {}, expected {}", column + 1, COLUMNS[column]))
    };
    if cells[0].is_empty() {
        return Err(wrong(0));
    }
    let submit =
        cells[1].parse().ok().filter(|s: &f64| s.is_finite() && *s >= 0.0).ok_or_else(|| wrong(1))?;
    let mut bytes = |column: usize| match cells[column].parse::<i64>() {
        Ok(bytes) if bytes < 0 => {
            diagnostics.add(line.number, "negative bytes, taken as 0");
            Ok(0)
        }
        Ok(bytes) => Ok(bytes.unsigned_abs()),
        Err(_) => Err(wrong(column)),
    };
    let (read, shuffle, output) = (bytes(3)?, bytes(4)?, bytes(5)?);
    Ok(Row { id: cells[0], submit, gap: cells[2].parse().ok(), input: read, shuffle, output })
}

/// The job of the `index`-th row.
fn job(
    row: &Row<'_>,
    line: u32,
    index: u64,
    assumed: &Assumptions,
    diagnostics: &mut Diagnostics,
) -> Result<JobDraft, String> {
    let maps = row.input.div_ceil(assumed.split).max(1);
    let maps = u32::try_from(maps)
        .map_err(|_| format!("found input for {maps} map tasks, expected at most {}", u32::MAX))?;
    let reduces = if row.shuffle == 0 { 0 } else { reduces(row, line, assumed, diagnostics) };
    if row.input == 0 && row.shuffle == 0 && row.output == 0 {
        diagnostics.add(line, "no bytes at all, given one map task");
    }
    let (map, reduce) = match &assumed.durations {
        Durations::Lognormal(seed) => lognormal(*seed, index),
        Durations::Rate(rates) => by_rate(row, maps, reduces, rates),
    };
    let phase = |tasks: u32, seconds: f64| {
        (tasks > 0).then(|| PhaseDraft::from(TasksDraft::Uniform { tasks, seconds: whole_micros(seconds) }))
    };
    let id = row.id.to_owned();
    Ok(JobDraft { id, map: phase(maps, map), reduce: phase(reduces, reduce), ..JobDraft::default() })
}

/// At least one, at most the limit of the options.
fn reduces(row: &Row<'_>, line: u32, assumed: &Assumptions, diagnostics: &mut Diagnostics) -> u32 {
    let bytes = u128::from(row.shuffle) + u128::from(row.output);
    let each = u128::from(assumed.reduce_bytes);
    let wanted = ((bytes + each / 2) / each).max(1);
    let most = assumed.reduces_max;
    if wanted > u128::from(most) {
        diagnostics.add(line, &format!("more than {most} reduces by size, given {most} (reduces-max)"));
        return most;
    }
    wanted as u32
}

/// Seconds of a map and of a reduce. Both are drawn, whether or not the job has reduces.
fn lognormal(seed: Seed, index: u64) -> (f64, f64) {
    let mut rng = random::rng(seed, "swim durations", index);
    (MAP_MILLIS.seconds(&mut rng), REDUCE_MILLIS.seconds(&mut rng))
}

/// Start-up plus bytes over rates; maps of a job without reduces write its output.
fn by_rate(row: &Row<'_>, maps: u32, reduces: u32, rates: &Rates) -> (f64, f64) {
    let share = |bytes: u64, tasks: u32, rate: f64| bytes as f64 / f64::from(tasks.max(1)) / rate;
    let written_by_maps = if reduces == 0 { row.output } else { 0 };
    let map = rates.startup + share(row.input, maps, rates.map) + share(written_by_maps, maps, rates.output);
    let reduce =
        rates.startup + share(row.shuffle, reduces, rates.shuffle) + share(row.output, reduces, rates.output);
    (map, reduce)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::importers::import::{ImportedWorkload, read_workload};
    use crate::importers::options::ImportOptions;

    const ROWS: &str = "job0\t49\t49\t740773\t2339561\t627471\n\njob1\t50\t1\t268435457\t0\t9838062\tp\t\t\n";

    fn tasks(phase: Option<&PhaseDraft>) -> Option<(u32, f64)> {
        match phase?.tasks {
            TasksDraft::Uniform { tasks, seconds } => Some((tasks, seconds)),
            _ => None,
        }
    }

    fn read(text: &str, pairs: &[(&str, &str)]) -> Result<ImportedWorkload, TraceError> {
        let options = ImportOptions::from_pairs(pairs.iter().copied()).unwrap();
        read_workload("t.tsv", text.as_bytes(), Some("swim"), &options)
    }

    #[test]
    fn rows_become_flows_of_one_job() {
        let imported =
            read(ROWS, &[("durations", "rate"), ("task-startup", "1"), ("map-rate", "1MB")]).unwrap();
        assert_eq!(imported.diagnostics, []);
        let [a, b] = imported.draft.flows.as_slice() else { panic!("two flows") };
        assert_eq!((a.id.as_str(), a.release, a.jobs[0].id.as_str()), ("job0", 49.0, "job0"));
        assert_eq!(tasks(a.jobs[0].map.as_ref()), Some((1, 1.740_773)));
        let reduce = 1.0 + 2_339_561.0 / (16.0 * 1_048_576.0) + 627_471.0 / (24.0 * 1_048_576.0);
        assert_eq!(tasks(a.jobs[0].reduce.as_ref()), Some((1, whole_micros(reduce))));
        // One byte more than two splits; map-only, so the maps write the output.
        let (maps, seconds) = tasks(b.jobs[0].map.as_ref()).unwrap();
        let map = 1.0 + 268_435_457.0 / 3e6 + 9_838_062.0 / 3.0 / (24.0 * 1_048_576.0);
        assert_eq!((maps, seconds), (3, whole_micros(map)));
        assert_eq!(b.jobs[0].reduce, None);
        assert_eq!(imported.source.places(&["flows[1].jobs[0].map"])[0].unwrap().line, 3);
    }

    #[test]
    fn draws_of_a_row_depend_on_its_number_and_the_seed() {
        let both = read(ROWS, &[]).unwrap().draft;
        let first = read(ROWS.lines().next().unwrap(), &[]).unwrap().draft;
        assert_eq!(both.flows[0], first.flows[0]);
        assert_ne!(both, read(ROWS, &[("seed", "1")]).unwrap().draft);
    }

    #[test]
    fn odd_rows_are_counted() {
        let text = "a\t9\t9\t0\t0\t0\nb\t5\t1\t-7\t1\t0\nc\t6\t?\t1\t9000000000000\t0\n";
        let imported = read(text, &[]).unwrap();
        let shown: Vec<_> = imported.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "1 row: no bytes at all, given one map task (first at line 1)",
                "1 row: negative bytes, taken as 0 (first at line 2)",
                "1 row: submitted before the row above, kept as it is (first at line 2)",
                "1 row: gap is not the difference of the submit times, the submit times are kept (first at line 3)",
                "1 row: more than 1000 reduces by size, given 1000 (reduces-max) (first at line 3)",
            ]
        );
        assert_eq!(tasks(imported.draft.flows[2].jobs[0].reduce.as_ref()).unwrap().0, 1000);
    }

    #[test]
    fn bad_rows_are_named() {
        let error = |text: &str| read(text, &[]).unwrap_err().to_string();
        assert!(error("a\t1\t1\t1\t1\n").starts_with("t.tsv:1:1: found a row of 5 tab-separated columns"));
        assert_eq!(
            error("\na\t1\t1\tx\t1\t1\n"),
            "t.tsv:2:7: found \"x\" in column 4, expected bytes of map input"
        );
        assert!(error("a\tNaN\t1\t1\t1\t1\n").contains("expected a submit time"));
        assert!(error(" \n").contains("found no rows"));
        assert!(error(&format!("a\t0\t0\t{}\t1\t1", i64::MAX)).contains("map tasks"));
    }

    /// The published numbers of the trace (rows, maps and reduces at the default sizes, map-only share).
    #[test]
    fn the_2009_trace_has_its_known_size() {
        let Some(path) = crate::real_data::real("swim/FB-2009_samples_24_times_1hr_0.tsv") else { return };
        let bytes = std::fs::read(path).unwrap();
        let options = ImportOptions::from_pairs([("reduces-max", "none")]).unwrap();
        let imported = read_workload("day.tsv", &bytes, None, &options).unwrap();
        let flows = &imported.draft.flows;
        let count = |phase: fn(&JobDraft) -> Option<&PhaseDraft>| -> u64 {
            flows.iter().filter_map(|f| tasks(phase(&f.jobs[0]))).map(|(n, _)| u64::from(n)).sum()
        };
        assert_eq!((flows.len(), imported.importer.name), (5894, "swim"));
        assert_eq!((count(|j| j.map.as_ref()), count(|j| j.reduce.as_ref())), (205_713, 22_819));
        let map_only = flows.iter().filter(|f| f.jobs[0].reduce.is_none()).count();
        assert_eq!((map_only as f64 / flows.len() as f64 * 1000.0).round(), 755.0);
        let odd: Vec<_> = imported.diagnostics.iter().map(|d| (d.what.as_str(), d.count)).collect();
        assert_eq!(odd, [("no bytes at all, given one map task", 33)]);
    }
}
