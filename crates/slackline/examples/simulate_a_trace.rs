//! A trace in, a comparison out.
//!
//! `cargo run -p slackline --example simulate_a_trace [TRACE]`
//!
//! Reads any format that can be imported (by default a few rows in the format of the SWIM project),
//! gives it a cluster and deadlines, and prints what three policies make of it.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use std::path::Path;

use slackline::import::{SlotOptions, Source, WorkloadOptions};
use slackline::report::significance::Sampling;
use slackline::report::{Figures, Row, View, comparison, headline};
use slackline::simulate::QuickBound;
use slackline::{Options, Registry, SideBySide, compare};

/// Job, submit time, gap; bytes of map input, shuffle and output.
const ROWS: &str = "\
job0\t0\t0\t1073741824\t0\t1048576
job1\t12\t12\t8589934592\t2147483648\t536870912
job2\t15\t3\t134217728\t0\t0
job3\t40\t25\t4294967296\t1073741824\t1073741824
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = match std::env::args().nth(1) {
        Some(path) => Source::read(Path::new(&path))?,
        None => Source::new("trace.tsv", ROWS),
    };
    let slots = SlotOptions::MapReduce { map: 2, reduce: 1 };
    let (machines, deadlines) = (Some(10), Some(3.0));
    let options = WorkloadOptions { machines, slots: Some(slots), deadlines, ..WorkloadOptions::default() };
    let mut loaded = source.load(&options)?;
    loaded.prepare(None)?;
    let instance = &loaded.instance;

    let names = ["fifo", "fair", "edf"];
    let policies =
        names.iter().map(|name| Registry::standard().parse(name)).collect::<Result<Vec<_>, _>>()?;
    let bound = QuickBound::default();
    let compared = compare(instance, &policies, &Options::exact(), Some(&bound), SideBySide::default());
    let rows = compared.iter().map(|one| Row {
        policy: one.policy.spec().to_owned(),
        result: one.result.as_ref().map(Figures::of_simulation).map_err(ToString::to_string),
    });
    let table = comparison::table(&rows.collect::<Vec<_>>(), Sampling::EXACT, &View::default());
    println!("{}\n{table}", headline::lines(source.short_name(), instance));
    Ok(())
}
