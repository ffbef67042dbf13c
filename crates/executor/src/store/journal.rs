//! The journal of a run: every finished attempt, so that a run that is killed at any moment can be resumed.
//!
//! The record of a finished attempt is on disk *before* its output is moved to its place. A resumed run first
//! moves output that was recorded but not moved ("roll forward"), so that the record is the moment of
//! commitment: a recorded task never runs again, an unrecorded one has no output. Attempts that end together
//! are recorded with one append.
//!
//! Committed output that is missing or damaged is recorded too, before its task runs again: the attempt that
//! made it is recorded again as [`AttemptOutcome::Lost`]. Of two records with one number the later one
//! counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::{Draft, PhaseKind, Time, WallTime};
use slackline_task::base::clock::TimeBase;
use slackline_task::base::digest::Digest;
use slackline_task::base::task_id::TaskId;
use slackline_task::process::spec::Outcome;
use slackline_trace::{Format, ImportOptions, read_workload, write_workload};

use crate::spec::job_plan::KnownJob;
use crate::store::log::{Kind, Log, LogError};
use crate::store::machine_records;

/// The file. Processes of a run that was just killed may still have it open.
const LOG: Kind =
    Kind { name: "journal", line: "slackline journal 4\n", advice: ADVICE, tries: 20, reserve: 256 << 10 };

/// The way to continue with a damaged journal, and what the user loses.
pub(crate) const ADVICE: &str = "move it away and run again: jobs that are finished in jobs.log beside it \
                                 stay finished, the others start over";

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It succeeded, and its output is committed.
    Done(Outcome),
    Failed(String),
    /// It was stopped, or its engine was.
    Killed,
    /// It succeeded, but its output does not count any more: the output was missing or damaged later, or made
    /// from lost map output. Its checksum stays known, for comparison with the next output.
    Lost(Option<u64>),
}

impl AttemptOutcome {
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost(_))
    }
}

/// An attempt that has ended. Times are microseconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number in the run, from 0; also the name of its directory.
    pub number: u64,
    pub id: TaskId,
    /// The slot, within the slot kind that serves the task, among the slots of its segment.
    pub slot: u32,
    /// The number of the segment of the run that recorded it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub segment: u32,
    /// Start of its time on the slot.
    pub start: u64,
    /// Start of its run: a reduce with an early slot waits for its maps.
    pub began: u64,
    pub end: u64,
    pub ended: AttemptOutcome,
}

impl Attempt {
    /// The digest of its output, if the output counts.
    pub(crate) fn digest(&self) -> Option<&Digest> {
        match &self.ended {
            AttemptOutcome::Done(outcome) => outcome.output.as_ref(),
            _ => None,
        }
    }

    /// The length of its run, microseconds.
    pub fn micros(&self) -> u64 {
        self.end.saturating_sub(self.began)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The tasks that are done: their output is committed and was not lost since.
pub fn done_tasks(attempts: &[Attempt]) -> BTreeSet<TaskId> {
    attempts.iter().filter(|a| matches!(a.ended, AttemptOutcome::Done(_))).map(|attempt| attempt.id).collect()
}

/// The checksums of the outputs that were committed last, by map, including lost ones. Reduces that are done
/// have read these outputs.
pub(crate) fn map_sums(attempts: &[Attempt]) -> BTreeMap<TaskId, u64> {
    let maps = attempts.iter().filter(|attempt| attempt.id.phase == PhaseKind::Map);
    let sum = |attempt: &Attempt| match &attempt.ended {
        AttemptOutcome::Lost(sum) => *sum,
        _ => attempt.digest().map(|digest| digest.sum),
    };
    maps.filter_map(|attempt| Some((attempt.id, sum(attempt)?))).collect()
}

/// For each task with a lost output, the number of losses.
pub(crate) fn losses(attempts: &[Attempt]) -> BTreeMap<TaskId, u16> {
    let mut losses: BTreeMap<TaskId, u16> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.ended.is_lost()) {
        let count = losses.entry(attempt.id).or_default();
        *count = count.saturating_add(1);
    }
    losses
}

/// The options with which a run was last started or resumed: for display, and for relative paths.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Version of the program.
    pub version: String,
    /// SHA-256 of the flow file.
    pub sha256: String,
    /// The directory that relative paths start from.
    pub directory: String,
    /// The policy and other options.
    pub options: BTreeMap<String, String>,
}

/// A part of a run with its settings. They hold from its start to the start of the next segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// When it starts: microseconds since the start of the run.
    pub start: u64,
    /// The policy and other options.
    pub options: BTreeMap<String, String>,
    /// Whether the flow file has another order of jobs than in the segment before, jobs started over, or
    /// output was lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// The jump of the wall clock at its start, microseconds: the time of a run does not jump with it.
    #[serde(default, skip_serializing_if = "has_not_jumped")]
    pub jumped: i64,
    /// Its machines.
    #[serde(with = "machine_records")]
    pub machines: Vec<MachineDraft>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn has_not_jumped(jumped: &i64) -> bool {
    *jumped == 0
}

impl Segment {
    /// The policy, if it is recorded.
    pub fn policy(&self) -> Option<&str> {
        self.options.get("policy").map(String::as_str)
    }

    /// The fraction of a job's maps after which its reduces may take slots.
    pub fn slowstart(&self) -> f64 {
        self.options.get("slowstart").and_then(|text| text.parse().ok()).unwrap_or(1.0)
    }

    /// Number of its slots, of all kinds.
    pub fn slots(&self) -> u32 {
        let slots = self.machines.iter().map(|machine| match machine.slots {
            Slots::Generic(slots) => machine.count * slots,
            Slots::MapReduce { map, reduce } => machine.count * (map + reduce),
        });
        slots.sum()
    }

    /// Whether another segment has the same settings, apart from the speeds of machines.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let slots = |machine: &MachineDraft| (machine.name.clone(), machine.count, machine.slots);
        self.options == other.options && self.machines.iter().map(slots).eq(other.machines.iter().map(slots))
    }
}

/// The head of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The options with which it was last started or resumed.
    pub setup: Setup,
    /// The name that marks outputs as those of this state directory.
    pub owner: String,
    /// The start: microseconds since 1970.
    pub started: u64,
    /// Its workload with all phases, on the machines of its last segment, as parsed document.
    #[serde(serialize_with = "write_document", deserialize_with = "read_document")]
    pub workload: Draft,
    /// The jobs of the workload.
    pub jobs: Vec<KnownJob>,
    /// The jobs of the flow file that earlier runs have done and this run does not rerun; empty in old
    /// journals.
    #[serde(default)]
    pub kept: Vec<KeptJob>,
    /// Its segments, in order; at least one. A journal of an earlier version gets one when it is read.
    #[serde(default)]
    pub segments: Vec<Segment>,
}

impl Head {
    /// The start of its time on the wall clock.
    pub(crate) fn time_base(&self) -> TimeBase {
        TimeBase::recorded(WallTime(self.started), self.segments.iter().map(|segment| segment.jumped).sum())
    }

    /// The settings of its last segment.
    pub fn last_segment(&self) -> &Segment {
        self.segments.last().expect("invariant: a run has a segment")
    }

    pub(crate) fn join(&mut self, machine: MachineDraft, at: u64) {
        let mut next = self.next_segment(at);
        next.machines.push(machine.clone());
        self.segments.push(next);
        self.workload.machines.push(machine);
    }

    /// A segment that starts at `at` with the settings of the last one.
    fn next_segment(&self, at: u64) -> Segment {
        let last = self.last_segment();
        Segment { start: at.max(last.start), edited: false, jumped: 0, ..last.clone() }
    }
}

/// A job that an earlier run of the state directory has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptJob {
    pub flow: String,
    pub job: String,
    /// The start of the run that has done it: microseconds since 1970.
    pub started: u64,
    pub maps: u32,
    pub reduces: u32,
    /// Its attempts in that run, in times since the start of that run; empty if they are no longer known.
    pub attempts: Vec<Attempt>,
}

fn write_document<S: serde::Serializer>(workload: &Draft, to: S) -> Result<S::Ok, S::Error> {
    let text = write_workload(workload, Format::Json);
    let document: serde_json::Value = serde_json::from_str(&text).map_err(serde::ser::Error::custom)?;
    document.serialize(to)
}

fn read_document<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Draft, D::Error> {
    let text = serde_json::Value::deserialize(from)?.to_string();
    let options = ImportOptions::default().trusting_texts();
    let read = read_workload("journal", text.as_bytes(), Some("json"), &options);
    Ok(read.map_err(serde::de::Error::custom)?.draft)
}

/// A machine that joined a run, with the same number of slots for either kind of task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct JoinedMachine {
    pub(crate) name: String,
    /// Its slots, which have the next numbers.
    pub(crate) slots: u32,
    pub(crate) speed: f64,
    /// Whether each of its slots is a machine, which may leave alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) apart: bool,
}

impl JoinedMachine {
    /// The machine of a workload.
    pub(crate) fn of(machine: &MachineDraft) -> Self {
        let slots = match machine.slots {
            Slots::Generic(slots) => slots,
            Slots::MapReduce { map, reduce } => map + reduce,
        };
        let (slots, apart) = (slots * machine.count, machine.count > 1);
        Self { name: machine.name.clone(), slots, speed: machine.speed, apart }
    }

    /// The machine in the form of workloads.
    pub(crate) fn draft(self) -> MachineDraft {
        let Self { name, slots, speed, apart } = self;
        let (count, slots) = if apart { (slots, 1) } else { (1, slots) };
        MachineDraft { name, count, speed, slots: Slots::Generic(slots), rack: None }
    }
}

/// A record of such a machine.
#[derive(Serialize, Deserialize)]
struct JoinRecord {
    joined: JoinedMachine,
    /// The time: microseconds since the start of the run.
    #[serde(default)]
    at: u64,
}

/// A record of a jump of the wall clock.
#[derive(Serialize, Deserialize)]
struct ClockJumpRecord {
    /// The jump, microseconds.
    clock_jumped: i64,
    /// The time: microseconds since the start of the run, which does not jump.
    at: u64,
}

/// The machines and settings of a run from that time on.
#[derive(Deserialize)]
#[serde(untagged)]
enum Change {
    Joined(JoinRecord),
    Jumped(ClockJumpRecord),
}

/// The journal of a run: its head, then attempts as they end, and machines as they join.
pub struct Journal {
    log: Log,
}

/// The content of a journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// The head; `None` if the run was not started. Machines that joined are among its workload's.
    pub head: Option<Head>,
    /// All attempts that ended, by number, in their latest state.
    pub attempts: Vec<Attempt>,
}

impl Journal {
    /// Opens a journal, or creates it. O(bytes).
    ///
    /// # Errors
    /// Another run that has it open, a file that is not a journal, an error of the file system.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        Ok(Self { log: Log::open(LOG, path)? })
    }

    /// Renames a damaged journal, so that a new one can take its place.
    ///
    /// # Errors
    /// Another run that has it open, a file that is not a journal, an error of the file system.
    pub fn set_aside(path: &Path, to: &Path) -> Result<(), LogError> {
        Log::set_aside(LOG, path, to)
    }

    /// Writes a journal beside the one at `path`, and moves it to that place when it is complete: a process
    /// that dies meanwhile leaves either the old or the new one. Both are locked until then.
    ///
    /// # Errors
    /// An error of the file system; then the earlier journal is still there.
    pub fn replace(path: &Path, head: &Head, attempts: &[Attempt]) -> Result<Self, LogError> {
        let beside = path.with_extension("next");
        // A journal that was started and not completed has no content yet.
        let _ = std::fs::remove_file(&beside);
        let mut journal = Self::open(&beside)?;
        journal.begin(head)?;
        if !attempts.is_empty() {
            journal.record(attempts)?;
        }
        journal.log.move_to(&beside, path)?;
        Ok(journal)
    }

    /// Its content. O(bytes).
    ///
    /// # Errors
    /// A file that is damaged or cannot be read.
    pub fn read(&self) -> Result<Content, LogError> {
        let texts = self.log.texts()?;
        let Some((head, records)) = texts.split_first() else { return Ok(Content::default()) };
        let mut head: Head = serde_json::from_slice(head).map_err(|e| self.log.unreadable(&e))?;
        if head.segments.is_empty() {
            let (options, machines) = (head.setup.options.clone(), head.workload.machines.clone());
            head.segments.push(Segment { options, machines, ..Segment::default() });
        }
        let mut attempts: Vec<Attempt> = Vec::new();
        for text in records {
            match serde_json::from_slice(text) {
                Ok(attempt) => attempts.push(attempt),
                Err(error) => match serde_json::from_slice(text).map_err(|_| self.log.unreadable(&error))? {
                    Change::Joined(JoinRecord { joined, at }) => head.join(joined.draft(), at),
                    Change::Jumped(ClockJumpRecord { clock_jumped, at }) => {
                        let next = head.next_segment(at);
                        head.segments.push(Segment { jumped: clock_jumped, ..next });
                    }
                },
            }
        }
        // The sort is stable: of records with one number the latest is the last, and counts.
        attempts.sort_by_key(|attempt| attempt.number);
        attempts.reverse();
        attempts.dedup_by_key(|attempt| attempt.number);
        attempts.reverse();
        Ok(Content { head: Some(head), attempts })
    }

    /// The content of the journal of a run that may be running, up to its last whole record, and whether the
    /// run is running. The file is unchanged, and not locked. O(bytes).
    ///
    /// # Errors
    /// A file that is damaged or cannot be read.
    pub fn glance(path: &Path) -> Result<(Content, bool), LogError> {
        let (log, is_busy) = Log::glance(LOG, path)?;
        Ok((Self { log }.read()?, is_busy))
    }

    /// Writes the head of a run that begins; it is on disk when this returns.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example.
    pub fn begin(&self, head: &Head) -> Result<(), LogError> {
        let text = serde_json::to_vec(head).map_err(|e| self.log.unreadable(&e))?;
        self.log.append([text.as_slice()])
    }

    /// Records attempts that ended; they are on disk when this returns.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example; then no attempt is recorded.
    pub fn record(&self, attempts: &[Attempt]) -> Result<(), LogError> {
        self.append(attempts.iter())
    }

    fn append<'a, R: Serialize + 'a>(&self, records: impl Iterator<Item = &'a R>) -> Result<(), LogError> {
        let text = |record| serde_json::to_vec(record).expect("invariant: a record can be written as JSON");
        let texts: Vec<Vec<u8>> = records.map(text).collect();
        self.log.append(texts.iter().map(Vec::as_slice))
    }

    /// Records that a machine joins at that time of the run, which starts a segment; the record is on disk
    /// when this returns.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example.
    pub(crate) fn joined(&self, machine: &JoinedMachine, at: u64) -> Result<(), LogError> {
        self.append(std::iter::once(&JoinRecord { joined: machine.clone(), at }))
    }

    /// Records a jump of the wall clock, in microseconds, at that time of the run.
    ///
    /// # Errors
    /// An error of the file system, a full disk for example.
    pub(crate) fn jumped(&self, by: i64, at: Time) -> Result<(), LogError> {
        self.append(std::iter::once(&ClockJumpRecord { clock_jumped: by, at: at.0 }))
    }

    /// Records that the output of finished tasks is lost, so that they are no longer finished. Must be called
    /// before the remaining output is removed. Other tasks are unchanged. O(bytes).
    ///
    /// # Errors
    /// A journal that cannot be read; an error of the file system, a full disk for example; then no loss is
    /// recorded.
    pub fn lost(&self, tasks: &BTreeSet<TaskId>) -> Result<(), LogError> {
        self.record_loss(tasks, &[])
    }

    /// Records that the output of `tasks` is lost, and `attempts` that ended, with one append. The losses
    /// come first: a process that dies meanwhile leaves no attempt without them. O(bytes) if there are tasks.
    ///
    /// # Errors
    /// As [`Self::lost`].
    pub(crate) fn record_loss(&self, tasks: &BTreeSet<TaskId>, attempts: &[Attempt]) -> Result<(), LogError> {
        let mut lost = if tasks.is_empty() { Vec::new() } else { self.read()?.attempts };
        lost.retain(|attempt| {
            matches!(attempt.ended, AttemptOutcome::Done(_)) && tasks.contains(&attempt.id)
        });
        for attempt in &mut lost {
            attempt.ended = AttemptOutcome::Lost(attempt.digest().map(|digest| digest.sum));
        }
        if lost.is_empty() && attempts.is_empty() {
            return Ok(());
        }
        self.append(lost.iter().chain(attempts))
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};

    use super::*;
    use crate::spec::definition::Definition;
    use crate::spec::job_plan::Inputs;

    fn attempt(number: u64) -> Attempt {
        let phase = if number.is_multiple_of(2) { PhaseKind::Reduce } else { PhaseKind::Map };
        let id = TaskId { job: 1, phase, task: 3 };
        Attempt {
            number,
            id,
            slot: 0,
            segment: 0,
            start: 5,
            began: 6,
            end: 9,
            ended: AttemptOutcome::Done(Outcome::default()),
        }
    }

    #[test]
    fn records_are_read_back_when_the_journal_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let tasks = Some(TasksDraft::Each(vec![0.1, 1.0 / 3.0]).into());
        let job = JobDraft { id: "j".into(), map: tasks, ..JobDraft::default() };
        let head = Head {
            setup: Setup { version: "1".into(), directory: "/".into(), ..Setup::default() },
            owner: "7-1".into(),
            started: 7,
            workload: Draft { flows: vec![FlowDraft::new("f", vec![job])], ..Draft::default() },
            jobs: vec![KnownJob { inputs: Inputs::default(), definition: Definition::default() }],
            kept: Vec::new(),
            segments: vec![Segment::default()],
        };
        {
            let journal = Journal::open(&path).unwrap();
            assert_eq!(journal.read().unwrap(), Content::default());
            journal.begin(&head).unwrap();
            journal.record(&[attempt(1), attempt(0)]).unwrap();
            assert!(matches!(Journal::open(&path), Err(LogError::Busy { .. })));
        }
        let journal = Journal::open(&path).unwrap();
        let expected = Content { head: Some(head), attempts: vec![attempt(0), attempt(1)] };
        assert_eq!(journal.read().unwrap(), expected);
    }

    #[test]
    fn a_head_of_the_time_before_keeps_no_jobs() {
        let kept = KeptJob {
            flow: "f".into(),
            job: "j".into(),
            started: 3,
            maps: 4,
            reduces: 0,
            attempts: vec![attempt(1)],
        };
        let head = Head {
            setup: Setup::default(),
            owner: String::new(),
            started: 7,
            workload: Draft { flows: vec![FlowDraft::new("f", Vec::new())], ..Draft::default() },
            jobs: Vec::new(),
            kept: vec![kept],
            segments: vec![Segment::default()],
        };
        let mut text = serde_json::to_value(&head).unwrap();
        assert_eq!(serde_json::from_value::<Head>(text.clone()).unwrap(), head);
        text.as_object_mut().unwrap().remove("kept").expect("it is written");
        let before = serde_json::from_value::<Head>(text).unwrap();
        assert_eq!(before, Head { kept: Vec::new(), ..head });
    }

    /// The head of a run of one flow without jobs.
    fn head_at(started: u64) -> Head {
        Head {
            setup: Setup::default(),
            owner: String::new(),
            started,
            workload: Draft { flows: vec![FlowDraft::new("f", Vec::new())], ..Draft::default() },
            jobs: Vec::new(),
            kept: Vec::new(),
            segments: vec![Segment::default()],
        }
    }

    #[test]
    fn a_task_whose_output_is_lost_is_not_done_until_it_was_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        let head = head_at(0);
        journal.begin(&head).unwrap();
        let (reduce, map) = (attempt(0).id, attempt(1).id);
        journal
            .record(&[attempt(0), Attempt { ended: AttemptOutcome::Killed, ..attempt(3) }, attempt(1)])
            .unwrap();
        for round in 1..4 {
            journal.lost(&BTreeSet::from([map])).unwrap();
            // No task is lost twice.
            journal.lost(&BTreeSet::from([map])).unwrap();
            let attempts = journal.read().unwrap().attempts;
            assert_eq!(done_tasks(&attempts), BTreeSet::from([reduce]));
            assert_eq!(losses(&attempts), BTreeMap::from([(map, round)]));
            journal.record(&[attempt(3 + 2 * u64::from(round))]).unwrap();
            assert_eq!(done_tasks(&journal.read().unwrap().attempts), BTreeSet::from([reduce, map]));
        }
        let numbers: Vec<u64> = journal.read().unwrap().attempts.iter().map(|a| a.number).collect();
        assert_eq!(numbers, [0, 1, 3, 5, 7, 9], "an attempt is there once");
    }

    #[test]
    fn a_machine_that_joins_begins_a_segment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        let machine =
            |name: &str, slots| MachineDraft { name: name.into(), count: 1, speed: 1.0, slots, rack: None };
        let first = machine("a", Slots::MapReduce { map: 2, reduce: 1 });
        let options = BTreeMap::from([("policy".to_owned(), "edf".to_owned())]);
        let setup = Setup { options: options.clone(), ..Setup::default() };
        let workload = Draft {
            machines: vec![first.clone()],
            flows: vec![FlowDraft::new("f", Vec::new())],
            ..Draft::default()
        };
        // In the form of an earlier version.
        let head = Head {
            setup,
            owner: String::new(),
            started: 0,
            workload,
            jobs: Vec::new(),
            kept: Vec::new(),
            segments: Vec::new(),
        };
        journal.begin(&head).unwrap();
        journal.joined(&JoinedMachine { name: "b".into(), slots: 3, speed: 2.0, apart: false }, 17).unwrap();
        let head = journal.read().unwrap().head.unwrap();
        let second = MachineDraft { speed: 2.0, ..machine("b", Slots::Generic(3)) };
        assert_eq!(head.workload.machines, [first.clone(), second.clone()]);
        let segment =
            |start, machines| Segment { start, options: options.clone(), machines, ..Segment::default() };
        let expected = [segment(0, vec![first.clone()]), segment(17, vec![first, second])];
        assert_eq!(head.segments, expected);
        assert_eq!(head.segments.iter().map(Segment::slots).collect::<Vec<_>>(), [3, 6]);
        let text = serde_json::to_string(&expected[1]).unwrap();
        assert_eq!(serde_json::from_str::<Segment>(&text).unwrap(), expected[1]);
    }

    #[test]
    fn a_jump_of_the_clock_begins_a_segment_with_the_same_settings() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        let head = head_at(7);
        journal.begin(&head).unwrap();
        journal.jumped(-3, Time(5)).unwrap();
        journal.record(&[attempt(0)]).unwrap();
        let content = journal.read().unwrap();
        let read = content.head.unwrap();
        assert_eq!((content.attempts.len(), read.segments.len()), (1, 2));
        assert_eq!((read.segments[1].start, read.segments[1].jumped), (5, -3));
        assert_eq!(read.time_base(), TimeBase::measured(WallTime(4), Time::ZERO));
    }

    #[test]
    fn a_file_that_is_no_journal_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        std::fs::write(&path, "this is a text of more than a few bytes, and no journal at all").unwrap();
        assert!(matches!(Journal::open(&path), Err(LogError::Foreign { .. })));
    }
}
