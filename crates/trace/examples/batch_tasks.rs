//! A trace of the shape of Alibaba's, of any size, and what it takes to read it as a stream.
//!
//! ```console
//! $ cargo run --release -p slackline-trace --example batch_tasks -- write 10GB | cargo run --release -p slackline-trace --example batch_tasks -- read
//! ```
//!
//! `write SIZE` writes rows of `batch_task.csv` in the order of their starts, to standard output: jobs of one
//! to some thirty tasks that come after each other. `read` reads such rows from standard input and says, each
//! hundred million bytes or so, how many flows there were and how much memory it holds.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufWriter, Read, Write};

use slackline_model::{Seed, bytes, random};
use slackline_trace::{ImportOptions, WorkloadStream};

/// How often `read` says how far it is, flows.
const EVERY: u64 = 500_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", size] => write(bytes::parse(size).ok_or("expected a size such as 10GB")?),
        ["read"] => read(),
        _ => Err("expected write SIZE, or read".into()),
    }
}

/// Writes jobs that begin some tenths of a second after each other. A row is written when no earlier one can
/// come any more: jobs begin in order, and the tasks of a job after it.
fn write(size: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
    let mut waiting: BTreeSet<(u64, u64, u32, String)> = BTreeSet::new();
    let (mut written, mut now) = (0, 0.0);
    for job in 0u64.. {
        let mut rng = random::rng(Seed(1), "batch tasks", job);
        let mut draw = |high: u64| random::integer(&mut rng, 0, high - 1);
        now += draw(400) as f64 / 1000.0;
        let mut start = now as u64;
        let (tasks, mut number) = (1 + draw(6) * draw(6), 0u32);
        while u64::from(number) < tasks {
            // One to three tasks at a time, which come after the one before them.
            let (before, end) = (number, start + 1 + draw(40) * draw(40));
            for _ in 0..(1 + draw(3)).min(tasks - u64::from(before)) {
                number += 1;
                let after = if before == 0 { String::new() } else { format!("_{before}") };
                let (instances, cpu) = (1 + draw(20) * draw(20), 50 * (1 + draw(4)));
                let row =
                    format!("M{number}{after},{instances},j_{job},1,Terminated,{start},{end},{cpu},0.3\n");
                waiting.insert((start, job, number, row));
            }
            start = end;
        }
        while waiting.first().is_some_and(|(start, ..)| (*start as f64) < now.floor()) {
            let Some((.., row)) = waiting.pop_first() else { break };
            out.write_all(row.as_bytes())?;
            written += row.len() as u64;
        }
        if written >= size {
            break;
        }
    }
    for (.., row) in waiting {
        out.write_all(row.as_bytes())?;
    }
    Ok(out.flush()?)
}

fn read() -> Result<(), Box<dyn Error>> {
    let options = ImportOptions::default();
    let mut stream = WorkloadStream::open("rows", std::io::stdin(), Some("alibaba"), &options)?;
    let (mut flows, mut jobs) = (0u64, 0u64);
    while let Some((flow, line)) = stream.next_flow()? {
        flows += 1;
        jobs += flow.jobs.len() as u64;
        if flows.is_multiple_of(EVERY) {
            println!("row {line}: {flows} flows, {jobs} jobs, {} KiB", resident()?);
        }
    }
    println!("end: {flows} flows, {jobs} jobs, {} KiB", resident()?);
    for remark in stream.finish()?.1 {
        println!("{remark}");
    }
    Ok(())
}

/// Memory that this process holds, KiB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let mut status = String::new();
    std::fs::File::open("/proc/self/status")?.read_to_string(&mut status)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}
