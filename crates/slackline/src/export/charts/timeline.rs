//! The data of charts: the slots that each flow held over time, and the results of flows.

use std::collections::BTreeMap;
use std::io;

use slackline_model::schedule::{AmRow, FlowRow, NewRow, Origin, Outcome};
use slackline_model::{FlowId, Instance, SlotKind, SlotRange, Time};

use super::{COLOURS, Chart, OTHERS, SHOWN};
use crate::simulate::RowWriter;
use plotters::style::RGBColor;

/// The number of columns into which time is divided.
pub(super) const COLUMNS: usize = 480;

/// Collects rows for charts: about 40 bytes per range of slots, and a name per flow.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub(super) policy: String,
    /// The slot kinds, each with its number of slots.
    pub(super) slot_kinds: Vec<(SlotKind, u32)>,
    pub(super) bars: Vec<Bar>,
    pub(super) flows: BTreeMap<FlowId, Flow>,
    /// By slot kind and slot: the name of the machine of each slot that was held.
    pub(super) names: BTreeMap<(usize, u32), String>,
    /// The minimum end of the time axis.
    least_end: Time,
}

/// Equal tasks on consecutive slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar {
    pub(super) flow: FlowId,
    pub(super) slot_kind: SlotKind,
    pub(super) slots: SlotRange,
    pub(super) start: Time,
    pub(super) end: Time,
    /// Whether the attempts count.
    pub(super) counts: bool,
}

/// The result of a flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) name: String,
    pub(super) release: f64,
    pub(super) start: Option<f64>,
    pub(super) completion: Option<f64>,
    pub(super) deadline: Option<f64>,
    alone: f64,
}

/// The flows that are shown by name. The position of a flow determines its colour.
pub(super) struct Largest(Vec<FlowId>);

impl Largest {
    /// The place of a flow; [`SHOWN`] for all others.
    pub(super) fn place(&self, flow: FlowId) -> usize {
        self.0.iter().position(|&it| it == flow).unwrap_or(SHOWN)
    }

    /// Their ids, in the order of their places.
    pub(super) fn flows(&self) -> &[FlowId] {
        &self.0
    }

    /// The colour of a place.
    pub(super) fn colour(place: usize) -> RGBColor {
        COLOURS.get(place).copied().unwrap_or(OTHERS)
    }
}

impl Timeline {
    /// An empty timeline.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty timeline whose time axis ends at `least_end` or later, so that several charts can share an
    /// axis.
    pub fn until(least_end: Time) -> Self {
        Self { least_end, ..Self::default() }
    }

    /// The number of slots of all kinds.
    pub fn slots(&self) -> u64 {
        self.slot_kinds.iter().map(|&(_, slots)| u64::from(slots)).sum()
    }

    /// The width of a column, microseconds. The last column ends with the last attempt, or shortly after it.
    pub(super) fn column(&self) -> u64 {
        let last = self.bars.iter().map(|bar| bar.end).fold(self.least_end, Time::max);
        last.0.div_ceil(COLUMNS as u64).max(1)
    }

    /// The end of the last column, seconds.
    pub(super) fn last(&self) -> f64 {
        Time(self.column() * COLUMNS as u64).seconds()
    }

    /// The flows that held the most slot-seconds (ties by id), in the order of their first starts.
    pub(super) fn largest(&self) -> Largest {
        let mut held: BTreeMap<FlowId, (u128, Time)> = BTreeMap::new();
        for bar in &self.bars {
            let entry = held.entry(bar.flow).or_insert((0, bar.start));
            entry.0 += u128::from(bar.end.since(bar.start).0) * u128::from(bar.slots.len);
            entry.1 = entry.1.min(bar.start);
        }
        let mut flows: Vec<(u128, Time, FlowId)> =
            held.into_iter().map(|(flow, (held, start))| (held, start, flow)).collect();
        flows.sort_by_key(|&(held, _, flow)| (std::cmp::Reverse(held), flow));
        flows.truncate(SHOWN);
        flows.sort_by_key(|&(_, start, flow)| (start, flow));
        Largest(flows.into_iter().map(|(.., flow)| flow).collect())
    }

    /// The values of a distribution over finished flows, sorted.
    pub(super) fn values(&self, chart: Chart) -> Vec<f64> {
        let value = |flow: &Flow| {
            let completion = flow.completion?;
            match chart {
                Chart::Wait => flow.start.map(|start| start - flow.release),
                Chart::Slowdown => {
                    Some((completion - flow.release) / flow.alone).filter(|_| flow.alone > 0.0)
                }
                _ => Some(completion - flow.release),
            }
        };
        let mut values: Vec<f64> = self.flows.values().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn bar(&mut self, live: &Instance, bar: Bar) {
        if self.slots() <= super::SLOTS_MAX {
            for slot in bar.slots.first..bar.slots.end() {
                let (machine, _) = live.cluster().machine_of(bar.slot_kind, slot);
                let name = || live.cluster().machine_name(machine);
                self.names.entry((bar.slot_kind.index(), slot)).or_insert_with(name);
            }
        }
        self.bars.push(bar);
    }

    fn know(&mut self, live: &Instance, id: FlowId) {
        self.flows.entry(id).or_insert_with(|| {
            let flow = live.flow(id);
            Flow {
                name: flow.id.clone(),
                release: flow.release.seconds(),
                start: None,
                completion: None,
                deadline: flow.deadline.map(Time::seconds),
                alone: flow.alone,
            }
        });
    }
}

impl RowWriter for Timeline {
    fn begin(&mut self, instance: &Instance, origin: &Origin) -> io::Result<()> {
        self.policy.clone_from(&origin.policy);
        let cluster = instance.cluster();
        self.slot_kinds = cluster
            .slot_kinds()
            .iter()
            .map(|&slot_kind| (slot_kind, cluster.slot_numbers(slot_kind)))
            .collect();
        Ok(())
    }

    fn row(&mut self, live: &Instance, row: &NewRow, places: &[SlotRange]) -> io::Result<()> {
        let (flow, slot_kind) = (live.flow_of(row.phase), live.slot_kind_of(row.phase));
        self.know(live, flow);
        let counts = row.outcome == Outcome::Done;
        for &slots in places {
            self.bar(live, Bar { flow, slot_kind, slots, start: row.start, end: row.end, counts });
        }
        Ok(())
    }

    fn am(&mut self, live: &Instance, row: &AmRow) -> io::Result<()> {
        let flow = live.job(row.job).flow;
        self.know(live, flow);
        if let Some(first) = row.slot {
            let slots = SlotRange { first, len: 1 };
            let counts = row.outcome == Outcome::Done;
            self.bar(
                live,
                Bar { flow, slot_kind: SlotKind::Any, slots, start: row.start, end: row.end, counts },
            );
        }
        Ok(())
    }

    fn flow(&mut self, live: &Instance, row: &FlowRow) -> io::Result<()> {
        self.know(live, row.flow);
        if let Some(flow) = self.flows.get_mut(&row.flow) {
            (flow.release, flow.start, flow.completion) = (row.release, row.start, row.completion);
        }
        Ok(())
    }
}
