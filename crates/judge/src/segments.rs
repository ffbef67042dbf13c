//! The segments of a run: parts of its time, each with its settings.
//!
//! The rules about the start of an attempt use the settings of the segment in which it started: how many maps
//! had to be done before a reduce could take a slot, and which slots were available.

use slackline_model::schedule::{Schedule, Segment, TaskRow};
use slackline_model::{Cluster, Instance, SlotKind, SlotRange, Time};

use crate::ledger::Ledger;
use crate::violation::{First, Place, SegmentProblem, Subject, Violation};

/// The settings of a schedule over time.
pub(crate) struct Timeline<'a> {
    /// Empty if one group of settings holds for the whole schedule.
    segments: &'a [Segment],
    slowstart: f64,
}

impl<'a> Timeline<'a> {
    pub(crate) fn new(schedule: &'a Schedule) -> Self {
        Self { segments: &schedule.segments, slowstart: schedule.slowstart }
    }

    /// The slow-start fraction of each segment; one value for a schedule without segments.
    pub(crate) fn slowstarts(&self) -> Vec<f64> {
        match self.segments {
            [] => vec![self.slowstart],
            segments => segments.iter().map(|segment| segment.slowstart).collect(),
        }
    }

    /// The number of the segment in force at `t`; 0 for a schedule without segments.
    pub(crate) fn at(&self, t: Time) -> usize {
        self.segments.partition_point(|segment| segment.start <= t).saturating_sub(1)
    }

    /// The number of available slots of a kind in a segment.
    pub(crate) fn slots(&self, cluster: &Cluster, segment: usize, slot_kind: SlotKind) -> u32 {
        let there = self.segments.get(segment).and_then(|segment| segment.slots.as_ref());
        there.map_or_else(|| cluster.slots(slot_kind), |slots| count(&slots[slot_kind.index()]))
    }
}

fn count(ranges: &[SlotRange]) -> u32 {
    ranges.iter().map(|range| range.len).sum()
}

/// The first invalid segment.
pub(crate) fn check_rows(instance: &Instance, schedule: &Schedule) -> Result<(), Violation> {
    let mut before: Option<Time> = None;
    for (segment, row) in schedule.segments.iter().enumerate() {
        let is_in_order = before.map_or(row.start == Time::ZERO, |before| before < row.start);
        if !is_in_order {
            let problem =
                SegmentProblem::Start { found: row.start.seconds(), before: before.map(Time::seconds) };
            return Err(Violation::Segment { segment, problem });
        }
        before = Some(row.start);
        if !(0.0..=1.0).contains(&row.slowstart) {
            return Err(Violation::Segment { segment, problem: SegmentProblem::Slowstart(row.slowstart) });
        }
        check_slots(instance.cluster(), row).map_err(|problem| Violation::Segment { segment, problem })?;
    }
    Ok(())
}

/// Whether the slots of a segment are slots of the cluster, each named once.
fn check_slots(cluster: &Cluster, segment: &Segment) -> Result<(), SegmentProblem> {
    let Some(slots) = &segment.slots else { return Ok(()) };
    for &slot_kind in cluster.slot_kinds() {
        let mut ranges = slots[slot_kind.index()].clone();
        ranges.sort_unstable();
        let mut free = 0;
        for SlotRange { first, len } in ranges {
            let end = u64::from(first) + u64::from(len);
            if first < free || len == 0 || end > u64::from(cluster.slots(slot_kind)) {
                return Err(SegmentProblem::Slots { first, len, slots: cluster.slots(slot_kind) });
            }
            free = first + len;
        }
    }
    Ok(())
}

/// Offers the first attempt that starts on a slot that is not available. O(attempts · ranges of slots).
pub(crate) fn check_presence(ledger: &Ledger<'_>, timeline: &Timeline<'_>, first: &mut First) {
    if timeline.segments.is_empty() {
        return;
    }
    for &index in ledger.by_start() {
        let row = ledger.row(index);
        let segment = timeline.at(row.start);
        let Some(there) = &timeline.segments[segment].slots else { continue };
        let slot_kind = ledger.instance.slot_kind_of(row.phase);
        let absent = absent(ledger.rows.places(row), &there[slot_kind.index()]);
        if let Some((nth, slot)) = absent {
            return first
                .offer(row.start.seconds(), row.phase, || absence(ledger.instance, row, nth, slot, segment));
        }
    }
}

/// The first slot of `places` outside `available`, and the number of its task in the row.
fn absent(places: &[SlotRange], available: &[SlotRange]) -> Option<(u32, u32)> {
    let slots = places.iter().flat_map(|place| place.first..place.end());
    let is_available = |slot: u32| available.iter().any(|range| (range.first..range.end()).contains(&slot));
    (0..).zip(slots).find(|&(_, slot)| !is_available(slot))
}

fn absence(instance: &Instance, row: &TaskRow, nth: u32, slot: u32, segment: usize) -> Violation {
    Violation::SlotAbsent {
        at: row.start.seconds(),
        task: Subject::task(instance, row.phase, row.first + nth),
        place: Place::new(instance.cluster(), instance.slot_kind_of(row.phase), slot),
        segment,
    }
}

/// Slot-seconds that are available from 0 to `last`, in seconds.
pub(crate) fn slot_seconds(schedule: &Schedule, cluster: &Cluster, last: f64) -> f64 {
    let timeline = Timeline::new(schedule);
    let all = |segment| {
        cluster
            .slot_kinds()
            .iter()
            .map(|&kind| f64::from(timeline.slots(cluster, segment, kind)))
            .sum::<f64>()
    };
    let starts = schedule.segments.iter().map(|segment| segment.start.seconds().min(last));
    let ends = starts.clone().skip(1).chain([last]);
    starts.zip(ends).enumerate().map(|(segment, (from, to))| all(segment) * (to - from)).sum()
}
