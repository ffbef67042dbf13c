//! What charts show of a schedule: which flow held which slots when, and how flows fared.

use std::collections::BTreeMap;
use std::io;

use slackline_model::schedule::{FlowRow, MasterRow, NewRow, Origin, Outcome};
use slackline_model::{FlowId, Instance, SlotKind, SlotRange, Time};

use super::{COLOURS, Chart, OTHERS, SHOWN};
use crate::simulate::RowWriter;
use plotters::style::RGBColor;

/// Columns that the time is cut into.
pub(super) const COLUMNS: usize = 480;

/// Collects rows for charts: some 40 bytes for each range of slots, and a name for each flow.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub(super) policy: String,
    /// Kinds of slots, how many there are, and the number of their first.
    pub(super) slot_kinds: Vec<(SlotKind, u32)>,
    pub(super) bars: Vec<Bar>,
    pub(super) flows: BTreeMap<FlowId, Flow>,
    /// Names of machines of slots that were held, by slot kind and slot.
    pub(super) names: BTreeMap<(usize, u32), String>,
    /// Charts end at this time or later.
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

/// How a flow fared.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) name: String,
    pub(super) release: f64,
    pub(super) start: Option<f64>,
    pub(super) completion: Option<f64>,
    pub(super) deadline: Option<f64>,
    alone: f64,
}

/// Which flows are shown by name, the largest first: their places in it are their colours.
pub(super) struct Largest(Vec<FlowId>);

impl Largest {
    /// The place of a flow, [`SHOWN`] for all others.
    pub(super) fn place(&self, flow: FlowId) -> usize {
        self.0.iter().position(|&it| it == flow).unwrap_or(SHOWN)
    }

    /// Their ids, the largest first.
    pub(super) fn flows(&self) -> &[FlowId] {
        &self.0
    }

    /// The colour of a place.
    pub(super) fn colour(place: usize) -> RGBColor {
        COLOURS.get(place).copied().unwrap_or(OTHERS)
    }
}

impl Timeline {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing yet; charts end at this time or later, so that those of several schedules have one axis.
    pub fn until(least_end: Time) -> Self {
        Self { least_end, ..Self::default() }
    }

    /// Slots of all kinds.
    pub fn slots(&self) -> u64 {
        self.slot_kinds.iter().map(|&(_, slots)| u64::from(slots)).sum()
    }

    /// Microseconds of a column: they end when the last attempt has, or just after.
    pub(super) fn column(&self) -> u64 {
        let last = self.bars.iter().map(|bar| bar.end).fold(self.least_end, Time::max);
        last.0.div_ceil(COLUMNS as u64).max(1)
    }

    /// When the last column ends, seconds.
    pub(super) fn last(&self) -> f64 {
        Time(self.column() * COLUMNS as u64).seconds()
    }

    /// The flows that held most slot-seconds, ties by id, in the order of their first starts.
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

    /// The values of a distribution of flows that are done, sorted.
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

    fn master(&mut self, live: &Instance, row: &MasterRow) -> io::Result<()> {
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
