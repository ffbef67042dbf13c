//! Tests flows that arrive later: the replay of a run with a fixed order of flows ends as the run did.

use std::cell::RefCell;
use std::rc::Rc;

use slackline_model::cluster::Slots;
use slackline_model::{Combine, Key, Metric};
use slackline_policy::{Action, Ask, Config, Event, Grant, IdTable, Policy, ReadyQueue, Style};
use slackline_sim::{Options, Sim};

use super::*;
use crate::auto::recurring::RecurringFlow;
use crate::rule::online::by_tail;
use crate::rule::residual::Residual;
use crate::rule::tests::{Shape, UNIVERSAL, workload};

/// Serves flows in an order fixed at their arrival, and replays the run when the last flow is done.
#[derive(Default)]
struct Fixed {
    residual: Residual,
    evaluator: Evaluator,
    came: Vec<(FlowId, RecurringFlow)>,
    done: Vec<(FlowId, Time)>,
    place: IdTable<PhaseId, (Key, u32, u32)>,
    queue: ReadyQueue<(Key, u32, u32)>,
    /// The completions of flows in the run, and in the replay.
    found: Rc<RefCell<Vec<(Time, Time)>>>,
}

impl Fixed {
    fn note(&mut self, flow: FlowId, view: &View<'_>) {
        self.residual.measure(view);
        let phases = by_tail(&self.residual, view);
        self.evaluator.look(view, phases.iter().copied());
        let number = self.evaluator.flows().binary_search(&flow).unwrap();
        let known = RecurringFlow::of(self.residual.flows[number], &self.residual, view);
        let of_flow = |phase: &&PhaseId| view.instance.flow_of(**phase) == flow;
        for (at, &phase) in (0..).zip(phases.iter().filter(of_flow)) {
            self.place[phase] = (Key::new(known.ratio()), flow.0, at);
        }
        self.came.push((flow, known));
    }

    fn look_back(&mut self, view: &View<'_>) {
        let mut order: Vec<u32> = (0..self.came.len() as u32).collect();
        order.sort_by_key(|&at| (Key::new(self.came[at as usize].1.ratio()), at));
        self.evaluator.look_back(view, self.came.iter().map(|(_, known)| (&known.template, known.at)));
        let (_, completions) = self.evaluator.roll(Sequence::Flows(&order)).unwrap();
        for ((flow, _), &at) in self.came.iter().zip(completions) {
            let done = self.done.iter().find(|(other, _)| other == flow).unwrap().1;
            self.found.borrow_mut().push((done, at));
        }
    }
}

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, _: &mut Vec<Action>) {
        self.residual.note(events, view);
        for event in events {
            match *event {
                Event::FlowArrived(flow) => self.note(flow, view),
                Event::FlowDone(flow) => self.done.push((flow, view.now)),
                _ => {}
            }
        }
        let place = &self.place;
        self.queue.update(events, view, |phase| place[phase]);
        if self.done.len() == 60 {
            self.look_back(view);
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.queue.first(ask, view).map(|phase| Grant { phase, tasks: u32::MAX })
    }
}

#[test]
fn a_look_back_ends_as_the_run_did() {
    for (slots, seed) in [(Slots::Generic(20), 1), (Slots::MapReduce { map: 12, reduce: 6 }, 2)] {
        for slowstart in [1.0, 0.3] {
            let instance = workload(seed, Shape { slots, ..UNIVERSAL }, Metric::Response, Combine::Sum);
            let mut fixed = Fixed::default();
            let found = Rc::clone(&fixed.found);
            let mut engine = Sim::new(&instance, Options::exact());
            let config = Config { slowstart, ..Config::plain() };
            slackline_policy::run(&instance, &mut fixed, &mut engine, config);
            let found = found.borrow();
            assert_eq!(found.len(), 60);
            assert!(found.iter().all(|(done, back)| done == back), "slow-start {slowstart}: {found:?}");
        }
    }
}
