//! Shared by the unit tests: small instances, an engine that plays a script and records its orders, and a
//! policy that answers from a list.

use std::collections::VecDeque;

use slackline_model::cluster::Slots;
use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PhaseDraft, SplitDraft, TasksDraft};
use slackline_model::{FlowId, Instance, MachineId, PhaseId, SlotRange, Time};

use crate::engine::{Batch, Capabilities, Engine, Faults, Lengths, Offers, Order, Report, RowId, Start};
use crate::event::Event;
use crate::ledger::{Ledger, Rules};
use crate::policy::{Action, Ask, Grant, Policy, Style};
use crate::view::View;

/// `count` machines with this number of generic slots each, of speed 1.
pub(crate) fn machines(name: &str, count: u32, slots: u32) -> MachineDraft {
    MachineDraft { name: name.into(), count, speed: 1.0, slots: Slots::Generic(slots), rack: None }
}

/// A machine with map slots and reduce slots.
pub(crate) fn map_reduce(map: u32, reduce: u32) -> MachineDraft {
    MachineDraft { slots: Slots::MapReduce { map, reduce }, ..machines("map-reduce", 1, 0) }
}

#[expect(clippy::unnecessary_wraps, reason = "a job may lack either phase")]
pub(crate) fn uniform(tasks: u32, seconds: f64) -> Option<PhaseDraft> {
    Some(TasksDraft::Uniform { tasks, seconds }.into())
}

/// One split for each list of hosts, with two tasks of a second each.
#[expect(clippy::unnecessary_wraps, reason = "a job may lack either phase")]
pub(crate) fn splits(hosts: &[&[&str]]) -> Option<PhaseDraft> {
    let split = |hosts: &&[&str]| SplitDraft {
        count: 2,
        seconds: 1.0,
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
    };
    Some(TasksDraft::Splits(hosts.iter().map(split).collect()).into())
}

/// A flow of one job.
pub(crate) fn flow(id: &str, map: Option<PhaseDraft>, reduce: Option<PhaseDraft>) -> FlowDraft {
    FlowDraft::new(id, vec![job("j", &[], map, reduce)])
}

pub(crate) fn job(id: &str, after: &[&str], map: Option<PhaseDraft>, reduce: Option<PhaseDraft>) -> JobDraft {
    let after = after.iter().map(|&a| a.to_owned()).collect();
    JobDraft { id: id.into(), after, map, reduce, ..JobDraft::default() }
}

pub(crate) fn instance(machines: Vec<MachineDraft>, flows: Vec<FlowDraft>) -> Instance {
    Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap()
}

pub(crate) fn seconds(seconds: u64) -> Time {
    Time(seconds * 1_000_000)
}

pub(crate) fn range(first: u32, len: u32) -> SlotRange {
    SlotRange { first, len }
}

/// A start that the driver ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) row: u32,
    pub(crate) phase: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) attempt: u16,
    pub(crate) places: Vec<SlotRange>,
    pub(crate) held: bool,
}

/// An engine that follows its script.
pub(crate) struct Scripted {
    pub(crate) capabilities: Capabilities,
    /// Its future reports, in order.
    pub(crate) script: VecDeque<(Time, Vec<Report>)>,
    pub(crate) starts: Vec<Started>,
    pub(crate) orders: Vec<Order>,
    pub(crate) wakes: Vec<Time>,
    /// How often the driver left a slot free because its machine leaves.
    pub(crate) barred: u32,
    /// Whether more flows may arrive although the script has none.
    pub(crate) may_bring_flows: bool,
}

impl Scripted {
    pub(crate) fn new(batch: Batch, faults: bool) -> Self {
        Self {
            capabilities: Capabilities {
                batch,
                faults: if faults { Faults::TasksAndOutput } else { Faults::Never },
                offers: Offers::Immediate,
                lengths: Lengths::Known,
                ams: None,
            },
            may_bring_flows: false,
            script: VecDeque::new(),
            starts: Vec::new(),
            orders: Vec::new(),
            wakes: Vec::new(),
            barred: 0,
        }
    }

    /// An engine that reports the given list, on machines that do not fail.
    pub(crate) fn reporting(script: impl IntoIterator<Item = (Time, Vec<Report>)>) -> Self {
        Self { script: script.into_iter().collect(), ..Self::new(Batch::Speed, false) }
    }

    /// (phase, first task, how many) of the starts since the last call.
    pub(crate) fn begun(&mut self) -> Vec<(u32, u32, u32)> {
        self.starts.drain(..).map(|start| (start.phase, start.first, start.count)).collect()
    }
}

impl Engine for Scripted {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn poll(&mut self, reports: &mut Vec<Report>) -> Option<Time> {
        let (at, list) = self.script.pop_front()?;
        reports.extend(list);
        Some(at)
    }

    fn start(&mut self, start: &Start<'_>, _: &Instance) {
        self.starts.push(Started {
            row: start.row.0,
            phase: start.phase.0,
            first: start.first,
            count: start.count,
            attempt: start.attempt,
            places: start.places.to_vec(),
            held: start.held,
        });
    }

    fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    fn wake_at(&mut self, at: Time) {
        self.wakes.push(at);
    }

    fn blocked_by_deadline(&mut self) {
        self.barred += 1;
    }

    fn may_bring_flows(&mut self) -> bool {
        let arrives = |report: &Report| matches!(report, Report::Arrived(_));
        self.may_bring_flows || self.script.iter().any(|(_, list)| list.iter().any(arrives))
    }
}

pub(crate) fn finished(row: u32, at: Time) -> Report {
    Report::Finished { row: RowId(row), at }
}

pub(crate) fn failed(row: u32, at: Time) -> Report {
    Report::Failed { row: RowId(row), at, is_final: false }
}

/// A flow of an instance arrives.
pub(crate) fn arrived(instance: &Instance, flow: u32) -> Report {
    Report::Arrived(Box::new(instance.excerpt(FlowId(flow))))
}

/// A ledger in which all flows have arrived, in the order of the document.
pub(crate) fn ledger(instance: &Instance, slowstart: f64, engine: &mut Scripted) -> Ledger {
    let rules = Rules { slowstart, attempts_max: 2, audit: true };
    let mut ledger = Ledger::new(instance.without_flows(), rules, engine.capabilities);
    for flow in instance.flows().keys() {
        ledger.absorb(arrived(instance, flow.0), engine, &mut Vec::new());
    }
    ledger
}

/// Sends the ledger one report at its present time. Returns the events that follow.
pub(crate) fn absorb(ledger: &mut Ledger, engine: &mut Scripted, report: Report) -> Vec<Event> {
    let mut events = Vec::new();
    ledger.absorb(report, engine, &mut events);
    crate::audit::audit(ledger);
    events
}

/// Takes the next tasks of a phase and starts them on the lowest free slots.
pub(crate) fn launch(ledger: &mut Ledger, engine: &mut Scripted, phase: u32, most: u32) {
    let phase = PhaseId(phase);
    let taken = ledger.state.take(&ledger.instance, phase, most);
    let mut slots = Vec::new();
    ledger.free[ledger.instance.slot_kind_of(phase).index()].take_lowest(taken.count, &mut slots);
    ledger.launch(engine, phase, taken, &slots);
    ledger.start_opened(engine);
    crate::audit::audit(ledger);
}

/// A policy that grants phases in a fixed order, or pushes a list of actions at its first call, and records
/// its events.
pub(crate) struct Listed {
    pub(crate) style: Style,
    /// Phases to grant, the first that can run first, and the number of tasks at once.
    pub(crate) order: Vec<(u32, u32)>,
    /// The actions of its first call.
    pub(crate) actions: Vec<Action>,
    pub(crate) keeps_minima: bool,
    pub(crate) fills_early: bool,
    /// The events of each call.
    pub(crate) calls: Vec<Vec<Event>>,
    /// Its estimate of the first phase at each call, in seconds.
    pub(crate) estimated: Vec<f64>,
    /// The queries that it received: machine, slots, number of phases to skip.
    pub(crate) asked: Vec<(Option<MachineId>, u32, usize)>,
}

impl Listed {
    pub(crate) fn granting(order: &[(u32, u32)]) -> Self {
        Self {
            style: Style::Priorities,
            order: order.to_vec(),
            actions: Vec::new(),
            keeps_minima: false,
            fills_early: true,
            calls: Vec::new(),
            estimated: Vec::new(),
            asked: Vec::new(),
        }
    }

    pub(crate) fn pushing(style: Style, actions: Vec<Action>) -> Self {
        Self { style, actions, ..Self::granting(&[]) }
    }
}

impl Policy for Listed {
    fn name(&self) -> &'static str {
        "listed"
    }

    fn style(&self) -> Style {
        self.style
    }

    fn keeps_minima(&self) -> bool {
        self.keeps_minima
    }

    fn fills_early(&self) -> bool {
        self.fills_early
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.calls.push(events.to_vec());
        self.estimated.extend(view.estimates.task.get(PhaseId(0)).map(|task| task.seconds()));
        out.append(&mut self.actions);
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.asked.push((ask.machine, ask.slots, ask.skip.len()));
        let grants = self.order.iter().map(|&(phase, tasks)| Grant { phase: PhaseId(phase), tasks });
        let serves = |grant: &Grant| {
            view.state.knows(grant.phase)
                && view.instance.slot_kind_of(grant.phase) == ask.slot_kind
                && view.runnable(grant.phase) > 0
                && !ask.skip.contains(&grant.phase)
        };
        grants.into_iter().find(serves)
    }
}

pub(crate) const FLOW: FlowId = FlowId(0);
