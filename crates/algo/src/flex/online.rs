//! FLEX online: recomputes the targets for the ready phases of each slot kind every epoch.
//!
//! **Paper**: §2.2 (epochs, one instance for maps and one for reduces), §1.1 (as an add-on to Fair), §4.2
//! (remaining work from the number of tasks left and their estimated length). Each ready phase is a job with
//! the cost of its flow and its remaining work. The policy packs the cheapest closed-form order, and the
//! first interval of the packing becomes the targets. Between epochs it decides nothing; it sees events at
//! the end of the epoch.
//!
//! Generic slots are one instance over both kinds of phases. Machine speeds are averaged: the policy ignores
//! which machine a slot is on.

use slackline_model::{Instance, PhaseId, SlotKind, Span};
use slackline_policy::{Action, Event, Policy, Style, View, minima};
use slackline_relax::malleable::Job;

use super::instance::FlexInstance;
use super::mps::first_interval;
use super::orders::Rule;
use super::plan::{Quick, order_of, quick};
use super::smith_order::{SmithOrder, mean_speed, work};
use crate::classic::{Claim, water_line};
use crate::epochs::{Allowance, Epochs, Favourite, Targets};

/// How the allocation reaches the assignment layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    /// As targets.
    Targets,
    /// As revised minima for Fair, whose water-line then decides (§1.1).
    Minima,
}

#[derive(Clone, Debug)]
pub struct Flex {
    epochs: Epochs,
    hand: Hand,
    targets: Targets,
    /// Slot kinds with changes since their last plan.
    stale: [bool; 2],
    allowance: Allowance,
    /// The rules that win, by slot kind.
    won: [Favourite<Rule>; 2],
    /// The order while Smith's rule wins, by slot kind.
    kept: [SmithOrder; 2],
}

/// The number of jobs that may be packed in search of the best order, per event of the run and at the start.
const ALLOWED: (u32, u32) = (2, 1 << 20);

impl Flex {
    /// FLEX with epochs of this length; 0 plans at every event.
    pub fn new(epoch: Span, hand: Hand) -> Self {
        Self {
            epochs: Epochs::new(epoch),
            hand,
            targets: Targets::default(),
            stale: [false; 2],
            allowance: Allowance::of_epochs(epoch, ALLOWED.0, ALLOWED.1),
            won: [Favourite::default(), Favourite::default()],
            kept: [SmithOrder::default(), SmithOrder::default()],
        }
    }

    fn note(&mut self, event: &Event, instance: &Instance) {
        match *event {
            Event::TasksDone { phase, .. }
            | Event::TasksLost { phase, .. }
            | Event::PhaseDone(phase)
            | Event::PhaseReady(phase) => {
                self.stale[instance.slot_kind_of(phase).index()] = true;
                let job = instance.job(instance.phase(phase).job);
                job.phases().for_each(|phase| self.change(phase, instance));
            }
            Event::MachineDown(_) | Event::MachineUp(_) | Event::MachineJoined(_) => self.stale = [true; 2],
            Event::FlowFailed(flow) => {
                self.stale = [true; 2];
                instance.flow(flow).phases().for_each(|phase| self.change(phase, instance));
            }
            Event::Wake => self.epochs.woken(),
            Event::JobDone(_)
            | Event::FlowDone(_)
            | Event::FlowArrived(_)
            | Event::MachineLeft(_)
            | Event::TaskRuns { .. } => {}
        }
        self.targets.note(event, instance);
    }

    fn change(&mut self, phase: PhaseId, instance: &Instance) {
        self.kept[instance.slot_kind_of(phase).index()].change(phase);
    }

    fn plan_slot_kind(&mut self, slot_kind: SlotKind, view: &View<'_>, out: &mut Vec<Action>) {
        let slots = view.state.alive(slot_kind);
        if view.state.n_ready(slot_kind) == 0 || slots == 0 {
            return;
        }
        if self.follows_order(slot_kind, view) {
            let kept = &mut self.kept[slot_kind.index()];
            kept.update(slot_kind, view);
            if kept.is_linear() && kept.wanted() > u64::from(slots) {
                for (phase, slots) in kept.first_interval(slots) {
                    self.targets.push(phase, f64::from(slots), out);
                }
                return;
            }
            kept.give_all();
        } else {
            self.kept[slot_kind.index()].drop_all();
        }
        // Without scarcity every order packs alike.
        let phases: Vec<PhaseId> = view.state.ready(slot_kind).collect();
        let most: Vec<u32> = phases.iter().map(|&phase| view.usable(phase).clamp(1, slots)).collect();
        let is_scarce = most.iter().map(|&most| u64::from(most)).sum::<u64>() > u64::from(slots);
        let shares = if is_scarce {
            let instance = instance_of(&phases, slot_kind, slots, view);
            allocate(&instance, &self.order(slot_kind, &instance), self.hand)
        } else {
            most.into_iter().map(f64::from).collect()
        };
        for (&phase, slots) in phases.iter().zip(shares) {
            self.targets.push(phase, slots, out);
        }
    }

    /// Whether [`Flex::order`] is the order of Smith's rule, and no phase has a minimum.
    fn follows_order(&self, slot_kind: SlotKind, view: &View<'_>) -> bool {
        !self.allowance.may_search()
            && self.won[slot_kind.index()].get() == Some(Rule::Smith)
            && self.hand == Hand::Targets
            && view.state.guaranteed(slot_kind).next().is_none()
    }

    /// The cheapest order, or that of the most successful rule if the search is not paid for.
    fn order(&mut self, slot_kind: SlotKind, instance: &FlexInstance) -> Vec<usize> {
        let won = &mut self.won[slot_kind.index()];
        let again =
            won.get().filter(|_| !self.allowance.may_search()).and_then(|rule| order_of(instance, rule));
        again.unwrap_or_else(|| {
            let Quick { order, rule, steps } = quick(instance);
            self.allowance.spend(steps);
            if let Some(rule) = rule {
                won.won(rule);
            }
            order
        })
    }
}

/// The ready phases of a slot kind as an instance that starts now.
fn instance_of(phases: &[PhaseId], slot_kind: SlotKind, slots: u32, view: &View<'_>) -> FlexInstance {
    let instance = view.instance;
    let mut minima = minima::effective(instance, view.state, slot_kind).into_iter().peekable();
    let speed = mean_speed(slot_kind, view);
    let job = |&id: &PhaseId| {
        let work = work(id, speed, view);
        // Both are in the order of ids.
        let min = minima.next_if(|&(of, _)| of == id).map_or(0, |(_, min)| min);
        let max = view.usable(id).max(min);
        let cost = instance.flow(instance.flow_of(id)).cost.clone();
        Job { base: view.now.seconds(), ..Job::new(work, min..=max, cost) }
    };
    FlexInstance::new(slots, instance.objective().combine, phases.iter().map(job).collect())
}

/// The slots of each job until the next epoch if they are packed in this order, as targets or minima.
pub fn allocate(instance: &FlexInstance, order: &[usize], hand: Hand) -> Vec<f64> {
    let slots = first_interval(instance, order);
    match hand {
        Hand::Targets => slots.into_iter().map(f64::from).collect(),
        Hand::Minima => {
            // No slack is left to the water-line, or no job can use it.
            let claim = |(job, slots): (&Job, u32)| Claim {
                min: f64::from(slots),
                max: f64::from(job.max.max(slots)),
                weight: 1.0,
            };
            let claims: Vec<Claim> = instance.jobs().iter().zip(slots).map(claim).collect();
            water_line(&claims, f64::from(instance.slots()))
        }
    }
}

impl Policy for Flex {
    fn name(&self) -> &'static str {
        "flex"
    }

    fn copy(&self) -> Option<Box<dyn Policy>> {
        Some(Box::new(self.clone()))
    }

    fn style(&self) -> Style {
        Style::Targets
    }

    fn keeps_minima(&self) -> bool {
        true
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.allowance.earn(events.len());
        for event in events {
            self.note(event, view.instance);
        }
        if self.stale == [false; 2] || !self.epochs.begin(view.now, out) {
            return;
        }
        for &slot_kind in view.instance.cluster().slot_kinds() {
            if std::mem::take(&mut self.stale[slot_kind.index()]) {
                self.plan_slot_kind(slot_kind, view, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};
    use slackline_model::schedule::TaskRows;
    use slackline_model::{Combine, CostFn};
    use slackline_policy::{Config, run};
    use slackline_sim::{Options, engine::Sim};

    use super::*;

    /// The schedule in the order of Smith's rule.
    fn by_smith(instance: &Instance, hand: Hand) -> TaskRows {
        let mut flex = Flex { allowance: Allowance::new(0, 0), ..Flex::new(Span(500_000), hand) };
        flex.won.iter_mut().for_each(|won| won.won(Rule::Smith));
        run(instance, &mut flex, &mut Sim::new(instance, Options::exact()), Config::plain()).tasks
    }

    proptest! {
        /// Minima are always planned from all ready phases.
        #[test]
        fn the_kept_order_gives_what_a_new_plan_gives(
            list in prop::collection::vec((1u32..9, 0u32..4, 1u32..5, 0u32..9), 1..12),
        ) {
            let tasks = |tasks, seconds| TasksDraft::Uniform { tasks, seconds: f64::from(seconds) }.into();
            let flows = list.into_iter().enumerate().map(|(k, (maps, reduces, seconds, release))| {
                let map = Some(tasks(maps, seconds));
                let reduce = (reduces > 0).then(|| tasks(reduces, seconds));
                let job = JobDraft { id: "j".into(), map, reduce, ..JobDraft::default() };
                FlowDraft { release: f64::from(release), ..FlowDraft::new(format!("f{k}"), vec![job]) }
            });
            let slots = Slots::MapReduce { map: 3, reduce: 2 };
            let machines = vec![MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None }];
            let draft = Draft { machines, flows: flows.collect(), ..Draft::default() };
            let instance = Instance::new(&draft).unwrap();
            prop_assert_eq!(by_smith(&instance, Hand::Targets), by_smith(&instance, Hand::Minima));
        }

        #[test]
        fn fair_with_revised_minima_is_flex(
            list in prop::collection::vec((1u32..40, 0u32..4, 0u32..9, 1u32..5, 1u32..20), 1..10),
            slots in 1u32..30,
            kind in 0u32..3,
        ) {
            let jobs = list.into_iter().map(|(work, min, more, weight, due)| {
                let (w, d) = (f64::from(weight), f64::from(due));
                let cost = match kind {
                    0 => CostFn::linear(w, 0.0),
                    1 => CostFn::tardiness(w, d),
                    _ => CostFn::steps(vec![(d, w)]),
                };
                Job::new(f64::from(work), min..=min + more, cost)
            });
            let jobs: Vec<Job> = jobs.collect();
            for combine in [Combine::Sum, Combine::Max] {
                let instance = FlexInstance::new(slots, combine, jobs.clone());
                let order = quick(&instance).order;
                let alone = allocate(&instance, &order, Hand::Targets);
                prop_assert_eq!(&alone, &allocate(&instance, &order, Hand::Minima));
                let wanted: f64 = instance.jobs().iter().map(|job| f64::from(job.max)).sum();
                let total: f64 = alone.iter().sum();
                prop_assert_eq!(total, wanted.min(f64::from(slots)), "no slack");
            }
        }
    }
}
