//! A job of the trace: its rows, reduced to what its flow needs, and the conversion into that flow.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};

use crate::importers::dag::bridge;
use crate::reading::diagnostic::Diagnostics;

#[derive(Default)]
pub(super) struct Job {
    pub(super) name: Box<str>,
    /// The line of its first row.
    pub(super) line: u32,
    pub(super) last_row: u64,
    /// When its first task started; of tasks that ran.
    pub(super) release: Option<i64>,
    pub(super) tasks: Vec<Task>,
}

pub(super) struct Task {
    pub(super) line: u32,
    /// Its name has its predecessors, see [`numbers`].
    pub(super) name: Box<str>,
    /// Instances on slots, and seconds; `None` for tasks that did not run.
    pub(super) ran: Option<(u32, f64)>,
}

impl Job {
    pub(super) fn into_flow(self, release: f64, diagnostics: &mut Diagnostics) -> FlowDraft {
        let name = String::from(self.name.clone());
        FlowDraft { release, ..FlowDraft::new(name, self.into_jobs(diagnostics)) }
    }

    /// The jobs of its flow: one per task; tasks that did not run are bridged.
    fn into_jobs(mut self, diagnostics: &mut Diagnostics) -> Vec<JobDraft> {
        let mut names = BTreeSet::new();
        let is_first: Vec<bool> = self.tasks.iter().map(|task| names.insert(&*task.name)).collect();
        let mut is_first = is_first.into_iter();
        self.tasks.retain(|task| {
            let is_first = is_first.next().unwrap_or(true);
            if !is_first {
                diagnostics.add(task.line, "second task of the same name in its job, left out");
            }
            is_first
        });
        let after = self.after(diagnostics);
        let after = bridge(&after, |k| self.tasks[k].ran.is_some());
        let job_of = |(task, after): (&Task, Vec<usize>)| {
            let (tasks, seconds) = task.ran?;
            let map = Some(TasksDraft::Uniform { tasks, seconds }.into());
            let after = after.into_iter().map(|before| String::from(&*self.tasks[before].name)).collect();
            Some(JobDraft { id: String::from(&*task.name), after, map, ..JobDraft::default() })
        };
        self.tasks.iter().zip(after).filter_map(job_of).collect()
    }

    /// The predecessors of each task.
    fn after(&self, diagnostics: &mut Diagnostics) -> Vec<Vec<usize>> {
        let numbers: Vec<_> = self.tasks.iter().map(|task| numbers(&task.name)).collect();
        let mut by_number = BTreeMap::new();
        for (k, (number, _)) in numbers.iter().enumerate().filter_map(|(k, found)| Some((k, found.as_ref()?)))
        {
            if by_number.insert(number, k).is_some() {
                let what = "two tasks of a job with the same number: dependencies on it mean the later task";
                diagnostics.add_flow(self.line, what);
            }
        }
        let after = |(k, found): (usize, &Option<(u32, Vec<u32>)>)| {
            let mut after = Vec::new();
            for before in found.iter().flat_map(|(_, after)| after) {
                match by_number.get(before) {
                    Some(&before) if before != k => after.push(before),
                    Some(_) => {}
                    None => diagnostics
                        .add_flow(self.line, "task that depends on a missing task, dependency left out"),
                }
            }
            after
        };
        numbers.iter().enumerate().map(after).collect()
    }
}

/// The number in a task's name and those of its predecessors: 5, 3 and 4 of `J5_3_4`. Words after them are
/// ignored, as in `M2_1_Stg4`.
pub(super) fn numbers(name: &str) -> Option<(u32, Vec<u32>)> {
    let mut parts = name.split('_');
    let first = parts.next()?.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if first.len() == name.len() || first.is_empty() {
        return None;
    }
    let number = first.parse().ok()?;
    let mut after = Vec::new();
    for part in parts {
        match part.parse() {
            Ok(before) => after.push(before),
            Err(_) if part.starts_with("Stg") => break,
            Err(_) => return None,
        }
    }
    Some((number, after))
}
