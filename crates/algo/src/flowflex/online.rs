//! FlowFlex online: a new plan every epoch, whose order is followed until the next.
//!
//! **Paper**: section 5.2. Every epoch (about two seconds there) what is left of the flows that have arrived
//! is planned again, with sizes re-estimated from finished tasks. In the paper the slots that the plan gives
//! at its start are targets until the next ([`FlowFlex::new`]); but a phase that ends in between leaves slots
//! that follow stale numbers, so that by default they go to the first phase in the order of the plan
//! ([`FlowFlex::in_order`], deviation D9). The variant without a minimum-cost flow is used: flows in the
//! cheapest of the orders of [`Rule::ALL`], list scheduled; for a maximum also, by a short bisection, flows
//! by the dates by which they should be done, and nodes by when they must start for that, across all flows.
//! Where all that is ready fits on the slots every order gives the same, and none is looked for: a flow that
//! is one long chain takes O(1) an epoch, not O(phases left). Where the search would take longer than the run
//! it is for, it is made only as often as events pay for it, and in between the order is made by the rule
//! that wins most (deviation D8).
//!
//! Reduces that start early hold their slots without working until the maps of their job are done, and no
//! other phase can take them away. So they get slots only once all those maps have started, and only slots
//! that the plan leaves; those whose maps end soonest first (deviation D7).
//!
//! Map and reduce slots: orders come from the kind of slots that has most to do, or from the sum of all slots
//! (deviation D10); slots are given kind by kind. Machine speeds are averaged: the policy ignores which
//! machine a slot is on. Minima are not kept.

use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{Combine, FlowId, Key, PhaseId, SlotKind, Span};
use slackline_policy::{Action, Ask, Event, Grant, IdTable, Policy, ReadyQueue, Style, View};

use super::list::{self, Lister};
use super::network::{Network, Remaining, Supply};
use super::numbers::Numbers;
use super::orders::{Rule, by_key};
use super::remaining_flows::{Demand, EstimatedWork, RemainingFlows};
use super::search::is_less;
use crate::epochs::{Allowance, Epochs, Favourite, Targets};

/// Halvings of the bracket of a maximum in an epoch.
const PROBES: u32 = 12;
/// Nodes beyond which an epoch tries the closed form only, if the costs are a sum of linear ones, for which
/// it is within a few thousandths of the best rule: a schedule takes a millisecond for some thousand nodes.
const NODES_MANY: usize = 1000;
/// What searches may spend for each event of the run, and at once; an event of a list schedule costs so much.
const ALLOWED: (u32, u32) = (1, 1 << 24);
const PRICE: u64 = 16;

#[derive(Clone, Debug)]
pub struct FlowFlex {
    epochs: Epochs,
    serving: Serving,
    /// Whether orders come from the kind of slots that has most to do.
    binding: bool,
    /// Flows that have arrived and neither completed nor failed, and what is left of them.
    flows: BTreeSet<FlowId>,
    remaining: RemainingFlows,
    stale: bool,
    allowance: Allowance,
    found: LastWinner,
    /// Nodes of all networks that were planned so far: effort that does not depend on the machine.
    pub(super) nodes_planned: u64,
}

impl FlowFlex {
    /// FlowFlex with epochs of this length, to the letter of the paper: targets between plans, orders from
    /// the sum of all slots. An epoch of 0 plans at every event.
    pub fn new(epoch: Span) -> Self {
        Self {
            epochs: Epochs::new(epoch),
            serving: Serving::Targets(Targets::default()),
            binding: false,
            flows: BTreeSet::new(),
            remaining: RemainingFlows::default(),
            stale: false,
            allowance: Allowance::of_epochs(epoch, ALLOWED.0, ALLOWED.1),
            found: LastWinner::default(),
            nodes_planned: 0,
        }
    }

    /// The same, but free slots follow the order of the last plan until the next.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { serving: Serving::Order(Box::default()), ..self }
    }

    /// The same, with orders from the kind of slots that has most to do.
    #[must_use]
    pub fn by_binding_kind(self) -> Self {
        Self { binding: true, ..self }
    }

    fn plan(&mut self, view: &View<'_>, out: &mut Vec<Action>) {
        let mut slots = [0; 2];
        for &slot_kind in view.instance.cluster().slot_kinds() {
            slots[slot_kind.index()] = view.state.alive(slot_kind);
        }
        if self.flows.is_empty() || slots == [0, 0] {
            return;
        }
        if let Serving::Order(places) = &mut self.serving {
            if !places.demand.is_met(slots, view) {
                self.plan_order(slots, view);
            }
            return;
        }
        let given = all_they_can_use(view, slots).unwrap_or_else(|| self.plan_slots(slots, view));
        self.serve(given, slots, view, out);
    }

    /// Pushes the slots of a plan as targets, if it has any.
    fn serve(&mut self, mut given: SlotsByPhase, slots: [u32; 2], view: &View<'_>, out: &mut Vec<Action>) {
        let Serving::Targets(targets) = &mut self.serving else { return };
        let cluster = view.instance.cluster();
        // Early reduces get what is left.
        for &slot_kind in cluster.slot_kinds() {
            let used: f64 = view.state.ready(slot_kind).map(|phase| slots_of(&given, phase)).sum();
            let mut spare = (f64::from(slots[slot_kind.index()]) - used).max(0.0);
            for phase in next_reduces(slot_kind, view) {
                let early = f64::from(EstimatedWork(view).cap(phase)).min(spare);
                given.insert(phase, early);
                spare -= early;
            }
        }
        for &slot_kind in cluster.slot_kinds() {
            for phase in view.state.ready(slot_kind) {
                targets.push(phase, slots_of(&given, phase), out);
            }
        }
    }

    /// What there is to run on.
    fn supply(&self, slots: [u32; 2], view: &View<'_>) -> Supply {
        let cluster = view.instance.cluster();
        let (mut speed, mut all) = (0.0, 0.0);
        for &slot_kind in cluster.slot_kinds() {
            speed += cluster.capacity(slot_kind);
            all += f64::from(cluster.slots(slot_kind));
        }
        Supply { slots, speed: speed / all, binding: self.binding && cluster.is_map_reduce() }
    }

    /// Plans what is left of all flows: the order of phases until the next plan.
    fn plan_order(&mut self, slots: [u32; 2], view: &View<'_>) {
        let (supply, now) = (self.supply(slots, view), view.now.seconds());
        if let Some(Source::Rule(rule)) = self.found.source()
            && !self.allowance.may_search()
        {
            self.remaining.update(&self.flows, supply, view);
            self.nodes_planned += self.remaining.n_nodes() as u64;
            if let Serving::Order(places) = &mut self.serving {
                places.follow_phases(self.remaining.phases(rule, supply, now), view);
            }
            return;
        }
        let (net, order) = self.plan_all(supply, view);
        if let Serving::Order(places) = &mut self.serving {
            places.follow(&net, &list::places(&net, order.rule()), view);
        }
    }

    /// Plans what is left of all flows: the slots of each phase at the start.
    fn plan_slots(&mut self, slots: [u32; 2], view: &View<'_>) -> SlotsByPhase {
        let (net, order) = self.plan_all(self.supply(slots, view), view);
        let of_node = |(node, slots): (usize, u32)| (net.node(node).phase, f64::from(slots));
        Lister::new(&net).first(order.rule(), view.now.seconds()).into_iter().map(of_node).collect()
    }

    /// What is left of all flows, and their order.
    fn plan_all(&mut self, supply: Supply, view: &View<'_>) -> (Network, Order) {
        let (flows, now) = (self.flows.iter().copied(), view.now.seconds());
        let net = Network::of(view.instance, flows, supply, now, &EstimatedWork(view));
        self.nodes_planned += net.nodes().len() as u64;
        let order = match self.found.source() {
            Some(source) if !self.allowance.may_search() => source.order(&net),
            _ => {
                let mut lister = Lister::new(&net);
                let (source, order) = search(&net, &mut lister);
                self.allowance.spend(PRICE * lister.steps());
                self.found.note(source);
                order
            }
        };
        (net, order)
    }

    /// Marks what an event may change.
    fn note(&mut self, event: &Event, view: &View<'_>) {
        match *event {
            Event::Wake => self.epochs.woken(),
            Event::FlowDone(flow) => {
                self.flows.remove(&flow);
            }
            Event::FlowFailed(flow) => {
                self.flows.remove(&flow);
                self.stale = true;
            }
            Event::JobDone(_) => {}
            Event::FlowArrived(flow) => {
                self.flows.insert(flow);
                self.stale = true;
            }
            _ => self.stale = true,
        }
        match &mut self.serving {
            Serving::Targets(targets) => targets.note(event, view.instance),
            Serving::Order(places) => match *event {
                Event::FlowArrived(flow) => self.remaining.change(flow),
                Event::FlowDone(flow) | Event::FlowFailed(flow) => {
                    self.remaining.change(flow);
                    places.demand.forget(view.instance.flow(flow).phases(), view);
                }
                Event::TasksDone { phase, .. }
                | Event::TasksLost { phase, .. }
                | Event::TaskRuns { phase, .. }
                | Event::PhaseDone(phase)
                | Event::PhaseReady(phase) => {
                    let info = view.instance.phase(phase);
                    self.remaining.change(info.flow);
                    view.instance.job(info.job).phases().for_each(|phase| places.demand.change(phase));
                }
                _ => {}
            },
        }
    }
}

/// What free slots go by.
#[derive(Clone, Debug)]
enum Serving {
    /// The slots that the last plan gave at its start.
    Targets(Targets),
    /// The order of the last plan.
    Order(Box<Places>),
}

/// The order of the last plan: what waits for its maps comes behind all others, whose maps end soonest first.
#[derive(Clone, Debug, Default)]
struct Places {
    /// Of phases that were planned.
    of: IdTable<PhaseId, Option<Key>>,
    /// Their places in the last plan that had them, for phases whose lost tasks must run again: `of` compares
    /// only phases of one plan.
    planned: IdTable<PhaseId, Option<Key>>,
    queue: ReadyQueue<(bool, Key)>,
    demand: Demand,
    numbers: Numbers,
    /// Scratch: the phases in the order of a plan.
    order: Vec<PhaseId>,
    /// Whether there were early reduces at the last plan.
    had_early: bool,
}

impl Places {
    /// Takes over the places of a plan's nodes.
    fn follow(&mut self, net: &Network, places: &[Key], view: &View<'_>) {
        for (node, &place) in net.nodes().iter().zip(places) {
            self.of[node.phase] = Some(place);
            self.planned[node.phase] = Some(place);
        }
        self.reorder(view);
    }

    /// Takes over the order of all phases. O(phases), and O(log phases) for each that moves if few do.
    fn follow_phases(&mut self, phases: impl Iterator<Item = PhaseId>, view: &View<'_>) {
        self.order.clear();
        self.order.extend(phases);
        for (at, &phase) in (0u32..).zip(&self.order) {
            self.planned[phase] = Some(Key::new(f64::from(at)));
        }
        // Times at which maps end change with every plan.
        let has_early = view.state.has_early();
        let moves = if std::mem::replace(&mut self.had_early, has_early) || has_early {
            None
        } else {
            self.numbers.moves(self.order.iter().map(|&phase| self.of[phase].map(Key::number)))
        };
        let Some(moves) = moves else {
            for &phase in &self.order {
                self.of[phase] = self.planned[phase];
            }
            self.reorder(view);
            return;
        };
        for (at, number) in moves {
            let (phase, key) = (self.order[at], Key::new(number));
            self.of[phase] = Some(key);
            self.queue.move_to(phase, (false, key), view);
        }
    }

    /// Gives all phases their places in the last plan that had them. O(phases · log phases).
    fn place_as_planned(&mut self, view: &View<'_>) {
        for &phase in self.order.iter().filter(|&&phase| self.of[phase] != self.planned[phase]) {
            if let Some(key) = self.planned[phase]
                && end_of_maps(phase, view).is_none()
            {
                self.queue.move_to(phase, (false, key), view);
            }
        }
        self.of.clone_from(&self.planned);
    }

    fn reorder(&mut self, view: &View<'_>) {
        let Self { of, queue, .. } = self;
        queue.rekey(view, |phase| place(of, phase, view));
    }

    /// Takes in the events of an instant. Reduces are queued once all their maps have started, and again when
    /// these are done.
    fn note(&mut self, events: &[Event], view: &View<'_>) {
        if events.iter().any(|event| matches!(event, Event::TasksLost { .. })) {
            self.place_as_planned(view);
        }
        let mut passed_on: Vec<Event> = Vec::with_capacity(events.len());
        for &event in events {
            match event {
                Event::PhaseReady(phase) if waits_for_starts(phase, view) => {}
                Event::TasksDone { phase, .. } | Event::PhaseDone(phase) => {
                    passed_on.push(event);
                    let reduce = view.instance.job(view.instance.phase(phase).job).reduce;
                    let ready = |&reduce: &PhaseId| reduce != phase && view.phase(reduce).is_ready();
                    let next = reduce.filter(|reduce| ready(reduce) && !waits_for_starts(*reduce, view));
                    passed_on.extend(next.map(Event::PhaseReady));
                }
                _ => passed_on.push(event),
            }
        }
        let Self { of, queue, .. } = self;
        queue.update(&passed_on, view, |phase| place(of, phase, view));
        for flow in events.iter().filter_map(Event::over) {
            self.of.forget(view.instance.flow(flow).phases());
            self.planned.forget(view.instance.flow(flow).phases());
        }
    }
}

/// Where a phase stands; behind all others if no plan has seen it yet.
fn place(of: &IdTable<PhaseId, Option<Key>>, phase: PhaseId, view: &View<'_>) -> (bool, Key) {
    match end_of_maps(phase, view) {
        Some(end) => (true, Key::new(end)),
        None => (false, of[phase].unwrap_or(Key::new(f64::INFINITY))),
    }
}

/// How many seconds the maps that an early reduce waits for still take, if they keep their slots; `None` for
/// other ready phases.
fn end_of_maps(reduce: PhaseId, view: &View<'_>) -> Option<f64> {
    if !view.state.has_early() {
        return None;
    }
    let maps = view.instance.job(view.instance.phase(reduce).job).map?;
    let is_early = view.state.is_early(view.instance, reduce);
    is_early.then(|| view.work_left(maps) / f64::from(view.phase(maps).running().max(1)))
}

/// Whether a ready phase is a reduce that waits for maps of which some have not started.
fn waits_for_starts(reduce: PhaseId, view: &View<'_>) -> bool {
    if !view.state.has_early() {
        return false;
    }
    let maps = view.instance.job(view.instance.phase(reduce).job).map;
    view.state.is_early(view.instance, reduce) && maps.is_some_and(|maps| view.phase(maps).unstarted() > 0)
}

/// Slots by phase, of those that get some.
type SlotsByPhase = BTreeMap<PhaseId, f64>;

fn slots_of(given: &SlotsByPhase, phase: PhaseId) -> f64 {
    given.get(&phase).copied().unwrap_or(0.0)
}

/// All the slots that ready phases can use, if there are that many: then every order of flows gives the same
/// allocation, and later flows need not be read. O(ready phases).
fn all_they_can_use(view: &View<'_>, slots: [u32; 2]) -> Option<SlotsByPhase> {
    let mut given = SlotsByPhase::default();
    for &slot_kind in view.instance.cluster().slot_kinds() {
        let mut free = slots[slot_kind.index()];
        for phase in view.state.ready(slot_kind).filter(|&phase| !view.state.is_early(view.instance, phase)) {
            let cap = EstimatedWork(view).cap(phase).min(slots[slot_kind.index()]);
            free = free.checked_sub(cap)?;
            given.insert(phase, f64::from(cap));
        }
    }
    Some(given)
}

/// Early reduces whose maps have all started, by when these will be done.
fn next_reduces(slot_kind: SlotKind, view: &View<'_>) -> Vec<PhaseId> {
    let ready = view.state.ready(slot_kind).filter(|&reduce| !waits_for_starts(reduce, view));
    let mut reduces: Vec<(f64, PhaseId)> =
        ready.filter_map(|reduce| Some((end_of_maps(reduce, view)?, reduce))).collect();
    reduces.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    reduces.into_iter().map(|(_, reduce)| reduce).collect()
}

/// Slots of the nodes that run at the start of the cheapest quick plan; O(n (slots + log n)) for n nodes
/// and each order tried.
pub fn initial_allocation(net: &Network, now: f64) -> Vec<(usize, u32)> {
    let mut lister = Lister::new(net);
    let (_, order) = search(net, &mut lister);
    lister.first(order.rule(), now)
}

/// Where an order comes from, so that it can be made again for what is left later.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    /// A rule, for flows.
    Rule(Rule),
    /// The dates at which flows come to cost so much, for nodes.
    Due(f64),
    /// The same dates, for flows.
    DueFlows(f64),
}

impl Source {
    fn order(self, net: &Network) -> Order {
        match self {
            Self::Rule(rule) => Order::Flows(rule.order(net)),
            Self::Due(level) => Order::Due(dates(net, level)),
            Self::DueFlows(level) => {
                let due = dates(net, level);
                Order::Flows(by_key(net, |j| due[j]))
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct LastWinner {
    /// The rule that wins most, if the last search was won by a rule.
    rules: Favourite<Rule>,
    /// The dates that won the last search.
    dates: Option<Source>,
}

impl LastWinner {
    fn note(&mut self, source: Source) {
        self.dates = match source {
            Source::Rule(rule) => {
                self.rules.won(rule);
                None
            }
            Source::Due(_) | Source::DueFlows(_) => Some(source),
        };
    }

    /// Where the next order is to come from.
    fn source(&self) -> Option<Source> {
        self.dates.or_else(|| self.rules.get().map(Source::Rule))
    }
}

/// By when each flow has to be done in order to cost no more than this.
fn dates(net: &Network, level: f64) -> Vec<f64> {
    net.flows.iter().map(|flow| flow.cost.latest(level).unwrap_or(0.0)).collect()
}

/// What nodes are served by.
enum Order {
    /// Flows, one before the other.
    Flows(Vec<usize>),
    /// Dates by which flows should be done: the node with the earliest latest start first, of any flow.
    Due(Vec<f64>),
}

impl Order {
    fn rule(&self) -> list::Rule<'_> {
        match self {
            Self::Flows(order) => list::Rule::Flows(order),
            Self::Due(due) => list::Rule::Due(due),
        }
    }
}

/// The cheapest order, and where it comes from.
fn search(net: &Network, lister: &mut Lister<'_>) -> (Source, Order) {
    let closed_form = Source::Rule(Rule::ClosedForm);
    if net.flows.len() < 2 {
        return (closed_form, Order::Flows(vec![0; net.flows.len()]));
    }
    let linear = net.flows.iter().all(|f| f.cost.as_linear().is_some());
    let order = closed_form.order(net);
    if net.nodes().len() > NODES_MANY && net.combine == Combine::Sum && linear {
        return (closed_form, order);
    }
    let mut best = Best { cost: lister.cost(order.rule()), source: closed_form, order };
    for rule in Rule::ALL.into_iter().filter(|&rule| rule != Rule::ClosedForm) {
        best.consider(Source::Rule(rule), Order::Flows(rule.order(net)), lister);
    }
    if net.combine == Combine::Max {
        bisect(net, lister, &mut best);
    }
    (best.source, best.order)
}

/// The cheapest order so far.
struct Best {
    cost: (f64, f64),
    source: Source,
    order: Order,
}

impl Best {
    /// What an order costs; infinite as soon as that is certain to be more than the best.
    fn consider(&mut self, source: Source, order: Order, lister: &mut Lister<'_>) -> f64 {
        let Some(cost) = lister.cost_up_to(order.rule(), self.cost.0) else { return f64::INFINITY };
        if is_less(cost, self.cost) {
            *self = Self { cost, source, order };
        }
        cost.0
    }
}

/// Looks for the least maximum: orders by the dates that each level asks for.
fn bisect(net: &Network, lister: &mut Lister<'_>, best: &mut Best) {
    let alone: Vec<f64> = net.flows.iter().map(|f| f.earliest).collect();
    let (mut fail, mut success) = (net.cost(&alone), best.cost.0);
    let mut last: Option<(Vec<usize>, f64)> = None;
    for _ in 0..PROBES {
        let level = fail + (success - fail) / 2.0;
        let due = dates(net, level);
        let order = by_key(net, |j| due[j]);
        let mut cost = best.consider(Source::Due(level), Order::Due(due), lister);
        if cost > level {
            // Where costs rise alike, all levels give one order of flows.
            let known = last.take().filter(|(known, _)| *known == order);
            let of_flows = known.map_or_else(
                || best.consider(Source::DueFlows(level), Order::Flows(order.clone()), lister),
                |known| known.1,
            );
            cost = cost.min(of_flows);
            last = Some((order, of_flows));
        }
        if cost <= level {
            success = cost;
        } else {
            fail = level;
        }
    }
}

impl Policy for FlowFlex {
    fn name(&self) -> &'static str {
        "flowflex"
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn style(&self) -> Style {
        match self.serving {
            Serving::Targets(_) => Style::Targets,
            Serving::Order(_) => Style::Priorities,
        }
    }

    fn fills_early(&self) -> bool {
        false
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.allowance.earn(events.len());
        for event in events {
            self.note(event, view);
        }
        if let Serving::Order(places) = &mut self.serving {
            places.note(events, view);
        }
        if self.stale && self.epochs.begin(view.now, out) {
            self.stale = false;
            self.plan(view, out);
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        let Serving::Order(places) = &mut self.serving else { return None };
        places.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}
