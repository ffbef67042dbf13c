//! Machines as a journal records them.

use serde::{Deserialize, Serialize};
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;

/// A group of machines of a segment.
#[derive(Serialize, Deserialize)]
struct MachineRecord {
    name: String,
    count: u32,
    speed: f64,
    slots: SlotsRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rack: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SlotsRecord {
    Generic(u32),
    MapReduce { map: u32, reduce: u32 },
}

pub(crate) fn serialize<S: serde::Serializer>(machines: &[MachineDraft], to: S) -> Result<S::Ok, S::Error> {
    let record = |machine: &MachineDraft| {
        let MachineDraft { name, count, speed, slots, rack } = machine.clone();
        let slots = match slots {
            Slots::Generic(slots) => SlotsRecord::Generic(slots),
            Slots::MapReduce { map, reduce } => SlotsRecord::MapReduce { map, reduce },
        };
        MachineRecord { name, count, speed, slots, rack }
    };
    to.collect_seq(machines.iter().map(record))
}

pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<MachineDraft>, D::Error> {
    let machine = |record: MachineRecord| {
        let MachineRecord { name, count, speed, slots, rack } = record;
        let slots = match slots {
            SlotsRecord::Generic(slots) => Slots::Generic(slots),
            SlotsRecord::MapReduce { map, reduce } => Slots::MapReduce { map, reduce },
        };
        MachineDraft { name, count, speed, slots, rack }
    };
    Ok(Vec::<MachineRecord>::deserialize(from)?.into_iter().map(machine).collect())
}
