//! The messages, field by field. `docs/policies-in-any-language.md` explains them, and
//! `docs/schema/policy.schema.json` is generated from them.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use slackline_policy::Style;

/// The version of the protocol. New fields that programs may ignore do not change it.
pub(super) const PROTOCOL: u32 = 1;

/// The first line: what there is to run on, and what is to be small.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Greeting<'a> {
    /// What there is to run on, and what is to be small.
    pub(super) hello: Hello<'a>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Hello<'a> {
    /// Version of the protocol: 1.
    pub(super) protocol: u32,
    /// Version of slackline.
    pub(super) version: &'a str,
    /// The objective.
    pub(super) objective: Objective,
    /// The machines, group by group.
    pub(super) machines: Vec<Group<'a>>,
}

/// The objective.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Objective {
    /// The metric of flows that do not bring a cost of their own, as in workload documents.
    pub(super) metric: &'static str,
    /// `sum` or `max`.
    pub(super) combine: &'static str,
}

/// Equal machines.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Group<'a> {
    /// Its name; machines are `name-0`, `name-1`, … or, for a single one, `name`.
    pub(super) name: &'a str,
    /// The number of its first machine; the others follow.
    pub(super) first: u32,
    /// Number of machines.
    pub(super) count: u32,
    /// Slots of each machine.
    pub(super) slots: Slots,
    /// The rack, where one was named.
    pub(super) rack: Option<&'a str>,
}

/// Slots of a machine.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(untagged)]
pub(super) enum Slots {
    /// For tasks of either kind.
    Generic(u32),
    /// For each kind.
    MapReduce {
        /// For map tasks.
        map: u32,
        /// For reduce tasks.
        reduce: u32,
    },
}

/// Every other line: what happened at an instant.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Call<'a> {
    /// The instant, seconds after the start of the workload.
    pub(super) now: f64,
    /// The speed of each group of machines; in the first call, and when it is believed to be another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) speeds: Option<Vec<f64>>,
    /// Phases whose estimated duration of tasks has changed: number and mean seconds at speed 1.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, schemars(default))]
    pub(super) estimates: Vec<(u32, f64)>,
    /// What happened, in the order of cause and effect.
    pub(super) events: Vec<WireEvent<'a>>,
}

/// One thing that happened. Numbers of tasks are those at the instant, when all of its events have happened.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum WireEvent<'a> {
    /// A flow arrived.
    FlowArrived(Flow<'a>),
    /// Tasks of a phase may start. Comes again if the phase had to stop for lost map output.
    PhaseReady {
        /// The phase.
        phase: u32,
    },
    /// Tasks finished.
    TasksDone {
        /// Their phase.
        phase: u32,
        /// How many.
        count: u32,
        /// The machine of the first of them; the others ran at the same speed.
        machine: u32,
        /// How long each computed.
        seconds: f64,
        /// Tasks of the phase that have not started, or must run again.
        unstarted: u32,
        /// Tasks of the phase that hold a slot.
        running: u32,
    },
    /// Tasks must run again: they failed, or their machine died with them or with their output.
    TasksLost {
        /// Their phase.
        phase: u32,
        /// How many.
        count: u32,
        /// Tasks of the phase that have not started, or must run again.
        unstarted: u32,
        /// Tasks of the phase that hold a slot.
        running: u32,
    },
    /// A task runs that the policy did not start: the cluster started it.
    TaskRuns {
        /// Its phase.
        phase: u32,
        /// Which task.
        task: u32,
        /// The machine it is on.
        machine: u32,
        /// Tasks of the phase that have not started, or must run again.
        unstarted: u32,
        /// Tasks of the phase that hold a slot.
        running: u32,
    },
    /// All tasks of a phase are done.
    PhaseDone {
        /// The phase.
        phase: u32,
    },
    /// All phases of a job are done.
    JobDone {
        /// The job.
        job: u32,
    },
    /// All jobs of a flow are done. No later event has its numbers, and no answer may use them.
    FlowDone {
        /// The flow.
        flow: u32,
    },
    /// A flow was abandoned. No later event has its numbers, and no answer may use them.
    FlowFailed {
        /// The flow.
        flow: u32,
    },
    /// A machine died.
    MachineDown {
        /// The machine.
        machine: u32,
    },
    /// A machine came back.
    MachineUp {
        /// The machine.
        machine: u32,
    },
    /// A machine is there that was not known before.
    MachineJoined {
        /// The machine.
        machine: u32,
        /// The group it is of, which has the next number if it was not known before.
        group: Group<'a>,
    },
    /// A machine is gone for good. Its number must not be used again.
    MachineLeft {
        /// The machine.
        machine: u32,
    },
    /// A time that was asked for has come, or slots are given out again.
    Wake,
}

/// A flow. Times are seconds after the start of the workload.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Flow<'a> {
    /// Its number.
    #[serde(rename = "flow")]
    pub(super) number: u32,
    /// Its name.
    pub(super) id: &'a str,
    /// When it was released.
    pub(super) release: f64,
    /// Its weight.
    pub(super) weight: f64,
    /// When it should be done.
    pub(super) deadline: Option<f64>,
    /// What completing it costs.
    pub(super) cost: Cost,
    /// Its pool.
    pub(super) pool: Option<Pool<'a>>,
    /// Whose it is.
    pub(super) user: Option<&'a str>,
    /// Its jobs.
    pub(super) jobs: Vec<Job<'a>>,
}

/// What completing a flow costs, weights included, as in workload documents.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Cost {
    /// Levels: [time, cost]; the cost counts from just after the time, and is 0 up to the first.
    Steps {
        /// The levels.
        steps: Vec<(f64, f64)>,
    },
    /// Linear between points, constant before the first.
    Piecewise {
        /// The points: [time, cost].
        points: Vec<(f64, f64)>,
        /// Cost a second after the last.
        slope: f64,
    },
}

/// A pool: the ready phases of its flows share a guarantee.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Pool<'a> {
    /// Its name.
    pub(super) id: &'a str,
    /// Slots guaranteed to its ready map phases together.
    pub(super) min_map: u32,
    /// Slots guaranteed to its ready reduce phases together.
    pub(super) min_reduce: u32,
}

/// A job.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Job<'a> {
    /// Its number.
    #[serde(rename = "job")]
    pub(super) number: u32,
    /// Its name, unique in its flow.
    pub(super) id: &'a str,
    /// Numbers of the jobs that must be done before it starts.
    pub(super) after: Vec<u32>,
    /// Its map phase.
    pub(super) map: Option<Phase>,
    /// Its reduce phase.
    pub(super) reduce: Option<Phase>,
}

/// A phase.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Phase {
    /// Its number.
    #[serde(rename = "phase")]
    pub(super) number: u32,
    /// How many tasks; they are numbered from 0.
    pub(super) tasks: u32,
    /// How long a task is believed to take at speed 1, on average.
    pub(super) seconds: f64,
    /// Slots guaranteed while it is ready; 0 for no guarantee.
    pub(super) min_slots: u32,
    /// Most slots it may hold at a time.
    pub(super) max_slots: u32,
    /// Where single tasks are known (`--knowledge exact`) and differ: [how many, seconds] in the order of the
    /// tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) each: Option<Vec<(u32, f64)>>,
}

/// The version in the answer to the first line. It is checked before the rest of the answer is read.
#[derive(Deserialize)]
pub(super) struct Version {
    pub(super) protocol: u32,
}

/// The answer to the first line.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Welcome {
    /// Version of the protocol: 1.
    #[serde(rename = "protocol")]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    _protocol: u32,
    /// How the program decides.
    #[serde(with = "StyleName")]
    pub(super) style: Style,
    /// Whether it promises to keep the minima of phases and pools; the judge then holds it to them.
    #[serde(default)]
    pub(super) minima: bool,
}

/// How a program decides.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(remote = "Style", rename_all = "kebab-case")]
enum StyleName {
    /// In which order phases get slots.
    #[serde(rename = "order")]
    Priorities,
    /// How many slots each phase should hold.
    Targets,
    /// Which machine runs which tasks.
    Placements,
}

/// The answer to every other line: the changes. A field that is left out changes nothing.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(super) struct Answer {
    /// Style `order`: phases, the most urgent first, instead of the last order. Phases that are not named
    /// come after them, by number.
    pub(super) order: Option<Vec<Ranked>>,
    /// Style `targets`: [phase, slots it should hold]; fractions count when phases are compared.
    pub(super) targets: Vec<(u32, f64)>,
    /// Style `placements`: whether the queues of all machines are emptied first; running tasks continue.
    pub(super) clear: bool,
    /// Style `placements`: [machine, phase, first task, how many tasks], at the end of the machine's queue.
    pub(super) placements: Vec<(u32, u32, u32, u32)>,
    /// Times at which to be called, also without an event.
    pub(super) wake: Vec<f64>,
}

/// A phase in an order: its number, or `[phase, most]` if it gets slots only while it holds fewer than that.
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged, inline))]
pub(super) enum Ranked {
    /// As many slots as it can use.
    All(u32),
    /// At most this number at a time.
    Most(u32, u32),
}

/// The description of a valid element of an order.
const RANKED: &str = "the number of a phase, or [phase, most slots]";

impl<'de> Deserialize<'de> for Ranked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RankedVisitor)
    }
}

struct RankedVisitor;

impl<'de> Visitor<'de> for RankedVisitor {
    type Value = Ranked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(RANKED)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Ranked, E> {
        let phase = u32::try_from(number);
        phase.map(Ranked::All).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(number), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Ranked, A::Error> {
        match (list.next_element()?, list.next_element()?, list.next_element::<de::IgnoredAny>()?) {
            (Some(phase), Some(most), None) => Ok(Ranked::Most(phase, most)),
            _ => Err(de::Error::custom(format_args!("found another list, expected {RANKED}"))),
        }
    }
}
