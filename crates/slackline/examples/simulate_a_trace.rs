//! A trace in, a comparison out.
//!
//! `cargo run -p slackline --example simulate_a_trace [TRACE]`
//!
//! Reads any format that can be imported (by default a few rows in the format of the SWIM project),
//! gives it a cluster, and simulates it under three policies.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use slackline::model::cluster::Slots;
use slackline::model::draft::MachineDraft;
use slackline::model::{Instance, Span};
use slackline::trace::{ImportOptions, read_workload};
use slackline::{Chosen, Options};

/// Job, submit time, gap; bytes of map input, shuffle and output.
const ROWS: &str = "\
job0\t0\t0\t1073741824\t0\t1048576
job1\t12\t12\t8589934592\t2147483648\t536870912
job2\t15\t3\t134217728\t0\t0
job3\t40\t25\t4294967296\t1073741824\t1073741824
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (name, bytes) = match std::env::args().nth(1) {
        Some(path) => (path.clone(), std::fs::read(path)?),
        None => ("trace.tsv".to_owned(), ROWS.as_bytes().to_vec()),
    };
    let imported = read_workload(&name, &bytes, None, &ImportOptions::default())?;
    let mut draft = imported.draft;
    if draft.machines.is_empty() {
        let slots = Slots::Typed { map: 2, reduce: 1 };
        let machine = MachineDraft { name: "node".to_owned(), count: 10, speed: 1.0, slots, rack: None };
        draft.machines = vec![machine];
    }
    let instance = Instance::new(&draft)?.cut(Span(10_000_000)).with_deadlines(3.0);
    let bound = slackline::relax::best(&instance);
    println!("{} flows, {} tasks, bound {bound:.1}", instance.flows().len(), instance.n_tasks());
    for spec in ["fifo", "fair", "edf"] {
        let policy = Chosen::parse(spec)?;
        let result = slackline::simulate(&instance, &policy, &Options::exact(), Some(bound), None)?;
        let (cost, metrics) = (result.schedule.cost.unwrap_or_default(), result.metrics);
        println!(
            "{spec}: cost {cost:.1}, makespan {:.1} s, mean response {:.1} s, {} of {} deadlines missed",
            metrics.makespan, metrics.mean_response, metrics.missed, metrics.deadlines
        );
    }
    Ok(())
}
