//! The built-in programs, one file each: those of the papers' benchmarks.
//!
//! `contract` defines a program. Each is a line in `PROGRAMS` and an implementation of `Program`, of
//! `counting::Count` if it counts, or of `Generator` if it makes its own input.

pub(crate) mod arguments;
pub(crate) mod columns;
pub mod contract;
pub(crate) mod count;
pub(crate) mod counting;
pub(crate) mod emit;
pub(crate) mod generate_text;
pub(crate) mod generator;
pub(crate) mod grep;
pub(crate) mod histogram;
pub(crate) mod inverted_index;
pub(crate) mod join;
pub(crate) mod line_store;
pub(crate) mod lines;
pub(crate) mod sequence_count;
pub(crate) mod sort;
pub(crate) mod tally;
pub(crate) mod teragen;
pub(crate) mod terasort;
pub(crate) mod wordcount;

pub use crate::programs::arguments::Argument;
pub use crate::programs::contract::Info;
pub(crate) use crate::programs::contract::{Generator, Program, Resources};

use std::ops::RangeInclusive;

use slackline_model::names::unknown;

use crate::base::error::TaskError;
use crate::input::reader::Format;
use crate::process::spec::{Args, Job};
use crate::programs::arguments::Arguments;
use crate::programs::contract::{Make, MakeResult};

pub(crate) enum Built {
    Program(Box<dyn Program>),
    Generator(Box<dyn Generator>),
}

/// The needs of a job's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of inputs.
    pub inputs: RangeInclusive<usize>,
    /// Number of maps of a generator; `None` if maps come from the splits.
    pub maps: Option<u32>,
    /// Number of bytes of a generator's output, all maps together (the last line of a part may exceed its
    /// share); `None` for programs with inputs, whose output is not known in advance.
    pub bytes: Option<u64>,
    /// Whether it never has reduces.
    pub is_map_only: bool,
    /// Whether it is useless without reducers.
    pub needs_reducers: bool,
    /// Whether [`crate::attempt::prepare`] must run before the first map if there is more than one reducer.
    pub needs_preparation: bool,
}

/// All programs, in the order in which help shows them.
static PROGRAMS: [Info; 11] = [
    wordcount::INFO,
    count::INFO,
    sort::INFO,
    terasort::INFO,
    grep::INFO,
    inverted_index::INFO,
    histogram::INFO,
    sequence_count::INFO,
    join::INFO,
    generate_text::INFO,
    teragen::INFO,
];

/// All built-in programs, for help.
pub fn programs() -> &'static [Info] {
    &PROGRAMS
}

/// The needs of a job. Checks its program and arguments.
///
/// # Errors
///
/// An unknown program or argument, with the known ones.
pub fn describe(job: &Job) -> Result<Shape, TaskError> {
    let reads = Shape {
        inputs: 1..=usize::MAX,
        maps: None,
        bytes: None,
        is_map_only: false,
        needs_reducers: false,
        needs_preparation: false,
    };
    let (program, args) = match job {
        Job::Program { program, args } => (program, args),
        Job::Commands { .. } => return Ok(reads),
        Job::Command { .. } => {
            return Ok(Shape { inputs: 0..=usize::MAX, is_map_only: true, ..reads });
        }
        Job::Jar { .. } => return Ok(Shape { inputs: 0..=usize::MAX, ..reads }),
    };
    let inputs = info(program)?.inputs.clone();
    Ok(match build(program, args, Resources::none())? {
        Built::Program(built) => Shape {
            inputs,
            needs_reducers: built.needs_reducers(),
            needs_preparation: built.is_ranged(),
            ..reads
        },
        Built::Generator(built) => {
            Shape { inputs, maps: Some(built.maps()), bytes: Some(built.bytes()), is_map_only: true, ..reads }
        }
    })
}

/// An instance of a program.
pub(crate) fn build(name: &str, args: &Args, resources: Resources<'_>) -> Result<Built, TaskError> {
    let info = info(name)?;
    let arguments = Arguments::new(info.name, info.arguments, args)?;
    match info.make {
        Make::Program(make) => make(&arguments, resources).map(Built::Program),
        Make::Generator(make) => make(&arguments).map(Built::Generator),
    }
}

/// An instance of a program that reads input.
pub(crate) fn build_program(name: &str, args: &Args, resources: Resources<'_>) -> MakeResult<dyn Program> {
    match build(name, args, resources)? {
        Built::Program(built) => Ok(built),
        Built::Generator(_) => {
            Err(TaskError::Job(format!("{name}: found inputs, expected none: it generates its data")))
        }
    }
}

fn info(name: &str) -> Result<&'static Info, TaskError> {
    PROGRAMS.iter().find(|info| info.name == name).ok_or_else(|| {
        let names: Vec<_> = PROGRAMS.iter().map(|info| info.name).collect();
        TaskError::Job(unknown("program", name, &names))
    })
}

/// Checks the number of inputs of a job.
///
/// # Errors
///
/// Too many or too few inputs.
pub fn check_count(shape: &Shape, inputs: usize) -> Result<(), TaskError> {
    if shape.inputs.contains(&inputs) {
        return Ok(());
    }
    let expected = match (*shape.inputs.start(), *shape.inputs.end()) {
        (0, 0) => "none".to_owned(),
        (low, high) if low == high => low.to_string(),
        (low, _) => format!("at least {low}"),
    };
    Err(TaskError::Job(format!("found {inputs} inputs, expected {expected}")))
}

/// The input format of a job; `None` if Slackline does not read its input.
///
/// # Errors
/// A program or an argument that does not exist.
pub fn input_format(job: &Job) -> Result<Option<Format>, TaskError> {
    match job {
        Job::Program { program, args } => {
            build_program(program, args, Resources::none()).map(|program| Some(program.format()))
        }
        Job::Commands { .. } => Ok(Some(Format::Lines)),
        Job::Command { .. } | Job::Jar { .. } => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(program: &str, args: &serde_json::Value) -> String {
        let args = serde_json::from_value(args.clone()).unwrap();
        describe(&Job::Program { program: program.to_owned(), args }).unwrap_err().to_string()
    }

    #[test]
    fn errors_of_programs_and_arguments_name_the_right_ones() {
        assert!(problem("wordcout", &json!({})).starts_with(
            "found program \"wordcout\", expected one of wordcount, count, sort, terasort, grep, "
        ));
        let cases = [
            ("wordcount", json!({"x": 1}), "wordcount: found argument \"x\", expected none"),
            ("grep", json!({}), "grep: missing argument \"pattern\""),
            ("grep", json!({"pattern": [1]}), "grep: pattern: found [1], expected a string"),
            (
                "grep",
                json!({"pattern": "a", "output": "x"}),
                "grep: output: found \"x\", expected one of lines, matches",
            ),
            (
                "join",
                json!({"kind": "outer"}),
                "join: kind: found \"outer\", expected one of inner, left, right, full",
            ),
            ("histogram", json!({"width": 0}), "histogram: width: found 0, expected a number above 0"),
            (
                "histogram",
                json!({"feld": 0}),
                "histogram: found argument \"feld\", expected one of field, width, format, separator, header; did you mean \"field\"?",
            ),
            (
                "generate-text",
                json!({"bytes": "3 apples"}),
                "generate-text: bytes: found \"3 apples\", expected a size such as 64MiB or a whole number",
            ),
            ("teragen", json!({"records": -1}), "teragen: records: found -1, expected a whole number"),
            ("teragen", json!({"records": "-1"}), "teragen: records: found -1, expected a whole number"),
            ("histogram", json!({"width": "0"}), "histogram: width: found 0, expected a number above 0"),
            ("teragen", json!({"records": 1, "maps": 0}), "teragen: maps: found 0, expected 1 to 100000"),
            (
                "generate-text",
                json!({"bytes": 1, "maps": 100_001}),
                "generate-text: maps: found 100001, expected 1 to 100000",
            ),
            ("sort", json!({"numeric": "yes"}), "sort: numeric: found \"yes\", expected true or false"),
        ];
        for (program, args, expected) in cases {
            assert_eq!(problem(program, &args), expected);
        }
        assert!(problem("grep", &json!({"pattern": "("})).starts_with("grep: pattern: "));
    }

    #[test]
    fn arguments_may_all_come_as_texts_and_texts_may_look_like_numbers() {
        let cases = [
            ("grep", json!({"pattern": "404"})),
            ("grep", json!({"pattern": "true"})),
            ("grep", json!({"pattern": 404})),
            ("grep", json!({"pattern": true})),
            ("sort", json!({"field": "2", "numeric": "true", "reverse": false})),
            ("histogram", json!({"width": "0.5"})),
            ("histogram", json!({"width": 2})),
            ("generate-text", json!({"bytes": "2048", "exponent": "1", "words": "10"})),
        ];
        for (program, args) in cases {
            let args = serde_json::from_value(args).unwrap();
            describe(&Job::Program { program: program.to_owned(), args }).unwrap();
        }
    }

    #[test]
    fn shapes_say_what_a_job_needs() {
        let shape = |program: &str, args: serde_json::Value| {
            let args = serde_json::from_value(args).unwrap();
            describe(&Job::Program { program: program.to_owned(), args }).unwrap()
        };
        let teragen = shape("teragen", json!({"records": 10, "maps": 3}));
        assert_eq!((teragen.inputs, teragen.maps, teragen.is_map_only), (0..=0, Some(3), true));
        assert_eq!(shape("teragen", json!({"records": 0})).maps, Some(1));
        assert_eq!(shape("teragen", json!({"records": u64::MAX})).maps, Some(100_000));
        assert!(shape("grep", json!({"pattern": "a", "output": "matches"})).needs_reducers);
        assert!(!shape("grep", json!({"pattern": "a"})).needs_reducers && !teragen.needs_reducers);
        assert_eq!(teragen.bytes, Some(1000));
        assert_eq!(shape("generate-text", json!({"bytes": "2KiB"})).bytes, Some(2048));
        assert_eq!(shape("wordcount", json!({})).bytes, None);
        assert!(shape("terasort", json!({})).needs_preparation);
        assert_eq!(shape("join", json!({})).inputs, 2..=2);
        assert!(!shape("wordcount", json!({})).needs_preparation);
        let plain = describe(&Job::Command { command: "cat".to_owned() }).unwrap();
        assert!(plain.is_map_only && plain.inputs == (0..=usize::MAX));
    }
}
