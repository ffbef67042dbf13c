//! CSV with one row per job. The first columns are those of Batsim's `jobs.csv`, which evalys and other
//! programs read.
//!
//! The workload of a job is its flow, because names of jobs are unique only within their flow. Its submission
//! is the time at which it may start: its flow is released and its predecessors are finished. Its resources
//! are all slots that its tasks ever held, numbered from 0 through all slot kinds. It rarely holds all of
//! them at once. Rows are ordered by flow, in the order of the schedule. Memory: the slots of the jobs of
//! active flows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use slackline_model::schedule::{FlowRow, NewRow, Origin, Outcome};
use slackline_model::{FlowId, Instance, JobId, SlotRange, Time};

use super::SlotNumbers;
use crate::simulate::RowWriter;

/// The columns of Batsim, and further ones about flows.
const HEADER: [&str; 17] = [
    "job_id",
    "workload_name",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "tasks",
    "attempts",
    "flow_release",
    "flow_deadline",
];

/// The data of a job from its rows.
#[derive(Clone, Debug, Default)]
struct JobRows {
    start: Option<Time>,
    /// The end of its last attempt that counts.
    done: Option<Time>,
    /// The end of its last attempt.
    end: Option<Time>,
    tasks_done: u64,
    attempts: u64,
    /// Its slots as disjoint, sorted ranges of numbers: the first, and one past the last.
    slots: Vec<(u64, u64)>,
}

impl JobRows {
    /// Adds a range of slots and merges it with adjacent ranges.
    fn add(&mut self, mut first: u64, mut end: u64) {
        let from = self.slots.partition_point(|&(_, before)| before < first);
        let to = self.slots.partition_point(|&(after, _)| after <= end);
        if let Some(touched) = self.slots.get(from..to).filter(|touched| !touched.is_empty()) {
            first = first.min(touched[0].0);
            end = end.max(touched[touched.len() - 1].1);
        }
        self.slots.splice(from..to, [(first, end)]);
    }

    /// Its slots in the interval notation of evalys and Batsim: `0-3 7`.
    fn resources(&self) -> String {
        let range = |&(first, end): &(u64, u64)| match end - first {
            1 => first.to_string(),
            _ => format!("{first}-{}", end - 1),
        };
        self.slots.iter().map(range).collect::<Vec<_>>().join(" ")
    }
}

/// Writes the rows of a flow when it has ended.
pub struct Jobs<W: Write> {
    out: csv::Writer<W>,
    numbers: SlotNumbers,
    seen: BTreeMap<FlowId, BTreeMap<JobId, JobRows>>,
}

impl<W: Write> Jobs<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: csv::Writer::from_writer(out), numbers: SlotNumbers::default(), seen: BTreeMap::new() }
    }

    /// Finishes the table.
    ///
    /// # Errors
    /// An error of the output.
    pub fn end(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn job(&mut self, live: &Instance, id: JobId, of: &Fate) -> io::Result<()> {
        let (job, flow) = (live.job(id), live.flow(live.job(id).flow));
        let Fate { submitted, start, end, is_done, total, widest, .. } = *of;
        let between = |from: Option<Time>, to: Option<Time>| Some(to?.since(from?).seconds());
        let (execution, turnaround) = (between(start, end), between(submitted, end));
        let stretch = turnaround.zip(execution).filter(|&(_, e)| e > 0.0).map(|(t, e)| t / e);
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let time = |at: Option<Time>| number(at.map(Time::seconds));
        let written = self.out.write_record([
            job.id.as_str(),
            flow.id.as_str(),
            &time(submitted),
            &widest.to_string(),
            "",
            if is_done { "1" } else { "0" },
            &time(start),
            &number(execution),
            &time(end),
            &number(between(submitted, start)),
            &number(turnaround),
            &number(stretch),
            &of.resources,
            &total.to_string(),
            &of.attempts.to_string(),
            &time(Some(flow.release)),
            &time(flow.deadline),
        ]);
        written.map_err(Into::into)
    }
}

/// The times and sizes of a job.
struct Fate {
    /// The time at which it could start, if ever.
    submitted: Option<Time>,
    start: Option<Time>,
    /// Its completion, or the end of its last attempt if it never completed.
    end: Option<Time>,
    is_done: bool,
    /// The number of its tasks, and of those of its largest phase.
    total: u64,
    widest: u64,
    attempts: u64,
    resources: String,
}

impl Fate {
    /// The times of a job whose predecessors are known. A job without length finishes as soon as it can
    /// start.
    fn new(live: &Instance, id: JobId, seen: &JobRows, fates: &BTreeMap<JobId, Self>) -> Self {
        let job = live.job(id);
        let tasks = |phase| {
            let phase = live.phase(phase);
            let is_work = !phase.is_without_length();
            phase.tasks().filter(|_| is_work).map_or(0, |tasks| u64::from(tasks.count()))
        };
        let (total, widest) =
            job.phases().map(tasks).fold((0, 0), |(sum, most), n| (sum + n, u64::max(most, n)));
        let done = |before: &JobId| fates.get(before).filter(|fate| fate.is_done).and_then(|fate| fate.end);
        let before: Option<Vec<Time>> = job.after.iter().map(done).collect();
        let release = live.flow(job.flow).release;
        let submitted = before.map(|before| before.into_iter().fold(release, Time::max));
        let is_done = seen.tasks_done >= total && submitted.is_some();
        let (start, end) = match (seen.attempts, is_done) {
            (0, true) => (submitted, submitted),
            (_, true) => (seen.start, seen.done.or(seen.end)),
            (_, false) => (seen.start, seen.end),
        };
        let (attempts, resources) = (seen.attempts, seen.resources());
        Self { submitted, start, end, is_done, total, widest, attempts, resources }
    }
}

impl<W: Write> RowWriter for Jobs<W> {
    fn begin(&mut self, instance: &Instance, _: &Origin) -> io::Result<()> {
        self.numbers = SlotNumbers::new(instance, 0);
        self.out.write_record(HEADER).map_err(Into::into)
    }

    fn row(&mut self, live: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        let (phase, slot_kind) = (live.phase(row.phase), live.slot_kind_of(row.phase));
        let seen = self.seen.entry(phase.flow).or_default().entry(phase.job).or_default();
        seen.start = Some(seen.start.map_or(row.start, |at| at.min(row.start)));
        seen.end = seen.end.max(Some(row.end));
        seen.attempts += u64::from(row.count);
        if row.outcome == Outcome::Done {
            seen.done = seen.done.max(Some(row.end));
            seen.tasks_done += u64::from(row.count);
        }
        for range in places {
            let first = self.numbers.of(slot_kind, range.first);
            seen.add(first, first + u64::from(range.len));
        }
        Ok(())
    }

    fn flow(&mut self, live: &Instance, row: &FlowRow) -> io::Result<()> {
        let seen = self.seen.remove(&row.flow).unwrap_or_default();
        let nothing = JobRows::default();
        let mut fates = BTreeMap::new();
        for &job in live.topological_of(row.flow) {
            let fate = Fate::new(live, job, seen.get(&job).unwrap_or(&nothing), &fates);
            fates.insert(job, fate);
        }
        live.flow(row.flow).jobs().try_for_each(|job| self.job(live, job, &fates[&job]))
    }
}

#[cfg(test)]
mod tests {
    use super::JobRows;

    #[test]
    fn slots_are_joined_with_what_they_touch() {
        let of = |added: &[(u64, u64)]| {
            let mut seen = JobRows::default();
            for &(first, end) in added {
                seen.add(first, end);
            }
            seen.resources()
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[(4, 5)]), "4");
        assert_eq!(of(&[(4, 6), (0, 2), (9, 10)]), "0-1 4-5 9");
        assert_eq!(of(&[(4, 6), (0, 2), (2, 4)]), "0-5");
        assert_eq!(of(&[(0, 10), (3, 5), (8, 12)]), "0-11");
        assert_eq!(of(&[(3, 5), (8, 12), (0, 20)]), "0-19");
        assert_eq!(of(&[(5, 6), (5, 6), (6, 7)]), "5-6");
    }
}
