//! Tests which free slot gets which task: by priority, by target, by placement, and near its input.

use super::*;
use crate::engine::{Batch, Report};
use crate::testing::{
    Listed, Scripted, absorb, failed, finished, flow, instance, ledger, machines, map_reduce, range, seconds,
    splits, uniform,
};
use proptest::prelude::*;
use slackline_model::draft::{MachineDraft, PerPhase};
use slackline_model::{Instance, MachineId, SlotKind, Span, Time};

/// The assignment layer of a run, with its policy, ledger and engine.
struct Layer {
    ledger: Ledger,
    engine: Scripted,
    assigner: Assigner,
    policy: Listed,
    estimates: Estimates,
    /// The events since the last assignment.
    events: Vec<Event>,
}

impl Layer {
    fn new(instance: &Instance, policy: Listed) -> Self {
        Self::waiting(instance, policy, Span::ZERO)
    }

    /// A layer whose tasks wait this long for a slot near their input.
    fn waiting(instance: &Instance, policy: Listed, node: Span) -> Self {
        Self::with_waits(instance, policy, Waits { node, rack: Span::ZERO })
    }

    fn with_waits(instance: &Instance, policy: Listed, waits: Waits) -> Self {
        Self::on(Scripted::new(Batch::Machine, true), instance, policy, waits)
    }

    fn on(mut engine: Scripted, instance: &Instance, policy: Listed, waits: Waits) -> Self {
        let mut ledger = ledger(instance, 0.0, &mut engine);
        if policy.style == Style::Placements {
            ledger.freed = Some(Vec::new());
        }
        let mut assigner = Assigner::new(&policy, waits);
        assigner.absorb(&policy.actions, &mut ledger, &mut engine);
        let estimates = Estimates::mean(instance);
        Self { ledger, engine, assigner, policy, estimates, events: Vec::new() }
    }

    /// Ends all running tasks of a phase.
    fn end_all(&mut self, phase: PhaseId) {
        let runs = |row: &&crate::log::Row| row.is_running() && row.task.phase == phase;
        let rows = self.ledger.log.iter_enumerated().filter(|(_, row)| runs(row));
        for row in rows.map(|(id, _)| id.0).collect::<Vec<_>>() {
            self.absorb(finished(row, seconds(1)));
        }
    }

    fn absorb(&mut self, report: Report) {
        self.events.extend(absorb(&mut self.ledger, &mut self.engine, report));
    }

    fn want(&mut self, action: Action) {
        self.assigner.absorb(&[action], &mut self.ledger, &mut self.engine);
    }

    fn assign_in(&mut self, scope: Scope<'_>) -> Vec<(u32, u32, u32)> {
        let mut deciding = Deciding { policy: &mut self.policy, estimates: &self.estimates };
        self.assigner.assign(&mut self.ledger, &mut self.engine, &mut deciding, &self.events, scope);
        self.events.clear();
        crate::audit::audit(&self.ledger);
        self.engine.begun()
    }

    /// Fills all free slots; returns (phase, first task, number of tasks) of each batch.
    fn assign(&mut self) -> Vec<(u32, u32, u32)> {
        self.assign_in(Scope::All)
    }

    /// The number of tasks of each of the first phases that start on all free slots.
    fn shares<const N: usize>(&mut self) -> [u32; N] {
        let mut shares = [0; N];
        self.assign().into_iter().for_each(|(phase, _, count)| shares[phase as usize] += count);
        shares
    }
}

/// Flows with these numbers of maps of one second each, on one machine.
fn maps(slots: u32, counts: &[u32]) -> Instance {
    let flows = counts.iter().enumerate().map(|(k, &n)| flow(&format!("f{k}"), uniform(n, 1.0), None));
    instance(vec![machines("m", 1, slots)], flows.collect())
}

fn target(phase: u32, slots: f64) -> Action {
    Action::Target { phase: PhaseId(phase), slots }
}

fn targets(list: &[f64]) -> Listed {
    let list = list.iter().enumerate().map(|(phase, &slots)| target(phase as u32, slots));
    Listed::pushing(Style::Targets, list.collect())
}

fn place(machine: u32, phase: u32, first: u32, count: u32) -> Action {
    Action::Place { machine: MachineId(machine), phase: PhaseId(phase), first, count }
}

fn queues(list: &[Action]) -> Listed {
    Listed::pushing(Style::Placements, list.to_vec())
}

#[test]
fn a_grant_is_cut_to_what_fits_and_the_rest_of_the_slots_is_asked_for_again() {
    let instance = maps(5, &[3, 9]);
    let mut layer = Layer::new(&instance, Listed::granting(&[(0, 99), (1, 99)]));
    assert_eq!(layer.assign(), [(0, 0, 3), (1, 0, 2)]);
    assert_eq!(layer.policy.asked, [(None, 5, 0), (None, 2, 0)]);
    assert_eq!(layer.assigner.decisions, 2);
    assert_eq!(layer.assign(), [], "no slot is free");
    assert_eq!(layer.policy.asked.len(), 2, "so nothing was asked");
}

#[test]
fn a_grant_of_nothing_is_one_task() {
    let instance = maps(2, &[3]);
    let mut layer = Layer::new(&instance, Listed::granting(&[(0, 0)]));
    assert_eq!(layer.assign(), [(0, 0, 1), (0, 1, 1)]);
}

#[test]
fn a_grant_of_few_tasks_is_kept() {
    let instance = maps(5, &[3, 9]);
    let mut layer = Layer::new(&instance, Listed::granting(&[(1, 2)]));
    assert_eq!(layer.assign(), [(1, 0, 2), (1, 2, 2), (1, 4, 1)]);
}

#[test]
fn only_machines_that_offer_get_work() {
    let instance = instance(vec![machines("m", 3, 2)], vec![flow("f", uniform(9, 1.0), None)]);
    let mut layer = Layer::new(&instance, Listed::granting(&[(0, 99)]));
    layer.absorb(Report::Down(MachineId(2)));
    layer.assign_in(Scope::Machines(&[MachineId(1), MachineId(2)]));
    let places: Vec<_> = layer.ledger.log.iter().flat_map(crate::log::Row::places).collect();
    assert_eq!(places, [&range(2, 2)]);
    assert_eq!(layer.policy.asked, [(Some(MachineId(1)), 2, 0)]);
}

#[test]
fn each_kind_of_slot_is_asked_for() {
    let jobs = vec![flow("f", uniform(3, 1.0), None), flow("g", None, uniform(3, 1.0))];
    let instance = instance(vec![map_reduce(2, 1)], jobs);
    let mut layer = Layer::new(&instance, Listed::granting(&[(1, 9), (0, 9)]));
    assert_eq!(layer.assign(), [(0, 0, 2), (1, 0, 1)]);
}

#[test]
fn a_wake_in_the_past_is_a_wake_now() {
    let instance = maps(1, &[1]);
    let mut layer = Layer::new(&instance, Listed::granting(&[]));
    layer.ledger.now = seconds(5);
    layer.want(Action::WakeAt(seconds(3)));
    layer.want(Action::WakeAt(seconds(7)));
    assert_eq!(layer.engine.wakes, [seconds(5), seconds(7)]);
}

#[test]
fn slots_are_shared_by_targets() {
    let instance = maps(6, &[10, 10]);
    let mut layer = Layer::new(&instance, targets(&[4.0, 2.0]));
    // By running / target: 0, 0 | 1/4, 0 | 1/4, 1/2 (up to one more than 1/2 · 4) | 3/4, 1/2 | 3/4, 1.
    assert_eq!(layer.assign(), [(0, 0, 1), (1, 0, 1), (0, 1, 2), (1, 1, 1), (0, 3, 1)]);
    assert_eq!(layer.assigner.decisions, 5);
}

#[test]
fn ties_below_targets_go_to_the_phase_served_longest_ago() {
    let instance = maps(4, &[10, 10]);
    let mut layer = Layer::new(&instance, targets(&[4.0, 0.0]));
    assert_eq!(layer.shares(), [4, 0]);
    layer.want(target(1, 2.0));
    layer.absorb(finished(0, seconds(1)));
    // The first phase has 0 of 2, then 0 of 4, until they are level: 1/2 of 4, and one more.
    assert_eq!(layer.assign(), [(1, 0, 1), (0, 4, 3)]);
}

#[test]
fn a_new_target_counts_at_once() {
    let instance = maps(4, &[10, 10]);
    let mut layer = Layer::new(&instance, targets(&[4.0, 0.0]));
    layer.want(target(0, 1.0));
    layer.want(target(1, 3.0));
    assert_eq!(layer.shares(), [1, 3]);
}

#[test]
fn slots_beyond_all_targets_are_used_too() {
    let instance = maps(4, &[10, 10]);
    let mut layer = Layer::new(&instance, targets(&[1.0, 0.0]));
    // The second has 0 by its target. Then (running + 1) / max(target, 1/2) is 2 and 2, and the other was
    // served longer ago; then 2 and 4; then 3 and 4.
    assert_eq!(layer.assign(), [(0, 0, 1), (1, 0, 1), (0, 1, 1), (0, 2, 1)]);
}

#[test]
fn phases_below_a_slot_each_take_turns() {
    let instance = maps(1, &[3, 3]);
    let mut layer = Layer::new(&instance, targets(&[0.5, 0.5]));
    let mut order = Vec::new();
    for row in 0..4 {
        order.extend(layer.assign().iter().map(|start| start.0));
        layer.absorb(finished(row, seconds(u64::from(row))));
    }
    assert_eq!(order, [0, 1, 0, 1]);
}

#[test]
fn minima_come_before_targets_if_the_policy_keeps_them() {
    let mut guaranteed = flow("g", uniform(10, 1.0), None);
    guaranteed.jobs[0].min_slots = PerPhase::both(2);
    let flows = vec![flow("f", uniform(10, 1.0), None), guaranteed];
    let instance = instance(vec![machines("m", 1, 3)], flows);
    let with = |keeps_minima| Listed { keeps_minima, ..targets(&[3.0, 0.0]) };
    assert_eq!(Layer::new(&instance, with(true)).assign(), [(1, 0, 2), (0, 0, 1)]);
    assert_eq!(Layer::new(&instance, with(false)).shares(), [3, 0]);
}

#[test]
fn early_reduces_fill_up_only_if_the_policy_says_so() {
    let instance = instance(vec![machines("m", 1, 4)], vec![flow("f", uniform(2, 1.0), uniform(3, 1.0))]);
    let with = |fills_early, reduce| Listed { fills_early, ..targets(&[2.0, reduce]) };
    assert_eq!(Layer::new(&instance, with(true, 0.0)).shares(), [2, 2]);
    assert_eq!(Layer::new(&instance, with(false, 0.0)).shares(), [2, 0]);
    assert_eq!(Layer::new(&instance, with(false, 1.0)).shares(), [2, 1], "a target is a claim");
}

#[test]
fn each_machine_serves_its_own_queue_from_the_head() {
    let flows = vec![flow("f", uniform(4, 1.0), None), flow("g", uniform(4, 1.0), None)];
    let instance = instance(vec![machines("m", 2, 2)], flows);
    let list = [place(0, 1, 2, 1), place(0, 0, 0, 3), place(1, 1, 0, 2)];
    let mut layer = Layer::new(&instance, queues(&list));
    assert_eq!(layer.assign(), [(1, 2, 1), (0, 0, 1), (1, 0, 2)]);
    let places: Vec<_> = layer.ledger.log.iter().map(|row| row.places()[0]).collect();
    assert_eq!(places, [range(0, 1), range(1, 1), range(2, 2)]);
    assert_eq!(layer.assigner.decisions, 3);
    layer.absorb(finished(0, seconds(1)));
    assert_eq!(layer.assign(), [(0, 1, 1)]);
    layer.absorb(finished(2, seconds(1)));
    assert_eq!(layer.assign(), [], "the queue of that machine is empty");
}

#[test]
fn a_head_that_cannot_start_yet_keeps_its_machine_waiting() {
    let flows = vec![flow("f", uniform(1, 1.0), uniform(1, 1.0)), flow("g", uniform(4, 1.0), None)];
    let instance = instance(vec![machines("m", 2, 1)], flows);
    // The reduce could take its slot early by slow-start. In a queue it waits for the map.
    let list = [place(0, 1, 0, 1), place(0, 2, 0, 1), place(1, 0, 0, 1), place(1, 2, 1, 1)];
    let mut layer = Layer::new(&instance, queues(&list));
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    layer.absorb(finished(0, seconds(1)));
    assert_eq!(layer.assign(), [(1, 0, 1), (2, 1, 1)]);
}

#[test]
fn a_head_at_its_cap_starts_again_when_a_task_of_it_ends_anywhere() {
    let mut capped = flow("f", uniform(3, 1.0), None);
    capped.jobs[0].max_slots = PerPhase::both(1);
    let instance = instance(vec![machines("m", 2, 2)], vec![capped]);
    let mut layer = Layer::new(&instance, queues(&[place(0, 0, 0, 1), place(1, 0, 1, 2)]));
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    layer.absorb(finished(0, seconds(1)));
    assert_eq!(layer.assign(), [(0, 1, 1)]);
}

#[test]
fn queues_can_be_emptied() {
    let instance = instance(vec![machines("m", 2, 1)], vec![flow("f", uniform(4, 1.0), None)]);
    let mut layer = Layer::new(&instance, queues(&[place(0, 0, 0, 2), place(1, 0, 2, 2)]));
    layer.want(Action::ClearPlacements);
    layer.want(place(1, 0, 3, 1));
    assert_eq!(layer.assign(), [(0, 3, 1)]);
}

#[test]
fn tasks_that_started_elsewhere_are_passed_over() {
    let instance = instance(vec![machines("m", 2, 2)], vec![flow("f", uniform(4, 1.0), None)]);
    let mut layer = Layer::new(&instance, queues(&[place(0, 0, 0, 2), place(1, 0, 1, 2)]));
    assert_eq!(layer.assign(), [(0, 0, 2), (0, 2, 1)]);
}

#[test]
fn tasks_of_a_failed_flow_do_not_block_a_queue() {
    let flows = vec![flow("f", uniform(2, 1.0), None), flow("g", uniform(1, 1.0), None)];
    let instance = instance(vec![machines("m", 1, 1)], flows);
    let mut layer = Layer::new(&instance, queues(&[place(0, 0, 0, 2), place(0, 1, 0, 1)]));
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    layer.absorb(failed(0, seconds(1)));
    layer.want(Action::ClearPlacements);
    layer.want(place(0, 0, 0, 2));
    layer.want(place(0, 1, 0, 1));
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    layer.absorb(failed(1, seconds(2)));
    assert_eq!(layer.assign(), [(1, 0, 1)], "it failed twice");
}

#[test]
fn a_phase_without_length_at_the_head_of_a_queue_delays_no_other_phase() {
    // The phase is done with the maps of its job, which run on the other machine.
    let flows = vec![flow("f", uniform(1, 9.0), uniform(2, 0.0)), flow("g", uniform(1, 1.0), None)];
    let instance = instance(vec![machines("m", 2, 1)], flows);
    let heads = [place(0, 0, 0, 1), place(1, 1, 0, 2), place(1, 2, 0, 1)];
    let mut layer = Layer::new(&instance, queues(&heads));
    assert_eq!(layer.assign(), [(0, 0, 1), (2, 0, 1)]);
}

#[test]
fn a_machine_that_is_down_serves_its_queue_when_it_is_back() {
    let instance = instance(vec![machines("m", 2, 1)], vec![flow("f", uniform(4, 1.0), None)]);
    let mut layer = Layer::new(&instance, queues(&[place(0, 0, 0, 1), place(1, 0, 1, 1)]));
    layer.absorb(Report::Down(MachineId(0)));
    assert_eq!(layer.assign(), [(0, 1, 1)]);
    layer.absorb(Report::Up(MachineId(0)));
    assert_eq!(layer.assign(), [(0, 0, 1)]);
}

#[test]
fn behind_heartbeats_the_queue_of_a_machine_waits_for_its_offer() {
    let instance = instance(vec![machines("m", 2, 1)], vec![flow("f", uniform(4, 1.0), None)]);
    let mut layer = Layer::new(&instance, queues(&[place(0, 0, 0, 1), place(1, 0, 1, 1)]));
    assert_eq!(layer.assign_in(Scope::Machines(&[])), []);
    assert_eq!(layer.assign_in(Scope::Machines(&[MachineId(1)])), [(0, 1, 1)]);
    assert_eq!(layer.assign_in(Scope::Machines(&[MachineId(0)])), [(0, 0, 1)]);
}

/// Two machines with this number of slots, a phase with a split of two tasks for each list of hosts, and a
/// phase without hosts.
fn with_splits(slots: u32, hosts: &[&[&str]]) -> Instance {
    let flows = vec![flow("near", splits(hosts), None), flow("any", uniform(9, 1.0), None)];
    instance(vec![machines("m", 2, slots)], flows)
}

/// Where the rows so far run: (phase, first task, first slot).
fn where_to(layer: &Layer) -> Vec<(u32, u32, u32)> {
    layer.ledger.log.iter().map(|row| (row.task.phase.0, row.task.first, row.places()[0].first)).collect()
}

const WAIT: Span = Span(3_000_000);

#[test]
fn tasks_run_where_their_input_is() {
    let instance = with_splits(2, &[&["m-1"], &["m-0"]]);
    let mut layer = Layer::new(&instance, Listed::granting(&[(0, 9)]));
    assert_eq!(layer.assign(), [(0, 2, 2), (0, 0, 2)]);
    assert_eq!(where_to(&layer), [(0, 2, 0), (0, 0, 2)]);
}

#[test]
fn tasks_whose_input_is_busy_let_others_go_first_and_wait() {
    let instance = with_splits(1, &[&["m-0"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9), (1, 1)]), WAIT);
    layer.ledger.now = seconds(1);
    assert_eq!(layer.assign(), [(0, 0, 1), (1, 0, 1)]);
    assert_eq!(layer.policy.asked, [(None, 2, 0), (None, 1, 1)]);
    assert_eq!(layer.engine.wakes, [seconds(4)]);
    // The other machine asks: still too early.
    layer.ledger.now = seconds(2);
    layer.absorb(finished(1, seconds(2)));
    assert_eq!(layer.assign(), [(1, 1, 1)]);
    assert_eq!(layer.engine.wakes, [seconds(4)], "a wake is on its way");
}

#[test]
fn tasks_that_have_waited_long_enough_run_anywhere() {
    let instance = with_splits(1, &[&["m-0"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9)]), WAIT);
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    layer.ledger.now = Time(2_999_999);
    assert_eq!(layer.assign(), []);
    layer.ledger.now = seconds(3);
    assert_eq!(layer.assign(), [(0, 1, 1)]);
    assert_eq!(where_to(&layer), [(0, 0, 0), (0, 1, 1)]);
}

#[test]
fn a_task_near_its_input_begins_the_waiting_again() {
    let instance = with_splits(1, &[&["m-0"], &["m-0"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9)]), WAIT);
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    layer.ledger.now = seconds(2);
    layer.absorb(finished(0, seconds(2)));
    assert_eq!(layer.assign(), [(0, 1, 1)], "near again");
    layer.ledger.now = seconds(4);
    assert_eq!(layer.assign(), []);
    layer.ledger.now = seconds(5);
    assert_eq!(layer.assign(), [(0, 2, 1)]);
    assert_eq!(layer.engine.wakes, [seconds(3), seconds(5)]);
}

/// Two machines in one rack and one in another, with one slot each; two splits of two tasks on the first
/// machine.
fn racks() -> Instance {
    let machine =
        |name, count, rack: &str| MachineDraft { rack: Some(rack.into()), ..machines(name, count, 1) };
    let flows = vec![flow("near", splits(&[&["m-0"], &["m-0"]]), None)];
    instance(vec![machine("m", 2, "a"), machine("n", 1, "b")], flows)
}

/// Indices of the times at which a task starts, if tasks wait `node` and `rack` seconds for a nearer slot.
fn starts_at(instance: &Instance, (node, rack): (u64, u64), times: &[u64]) -> Vec<usize> {
    let waits = Waits { node: Span(node * 1_000_000), rack: Span(rack * 1_000_000) };
    let mut layer = Layer::with_waits(instance, Listed::granting(&[(0, 9)]), waits);
    let mut at = |&now: &u64| {
        layer.ledger.now = Time(now * 1000);
        layer.assign().len()
    };
    times.iter().map(&mut at).collect()
}

#[test]
fn tasks_wait_for_their_host_and_then_for_a_rack_of_it() {
    let times = [0, 2_999, 3_000, 4_999, 5_000];
    assert_eq!(starts_at(&racks(), (3, 2), &times), [1, 0, 1, 0, 1]);
    assert_eq!(starts_at(&racks(), (0, 5), &times), [2, 0, 0, 0, 1]);
    assert_eq!(starts_at(&racks(), (3, 0), &times), [1, 0, 2, 0, 0]);
    // Machines without a rack share one rack.
    assert_eq!(starts_at(&with_splits(1, &[&["m-0"]]), (0, 5), &times), [2, 0, 0, 0, 0]);
}

#[test]
fn a_task_in_a_rack_of_its_input_begins_the_waiting_for_other_racks_again() {
    assert_eq!(starts_at(&racks(), (3, 2), &[0, 4_000, 5_999, 6_000]), [1, 1, 0, 1]);
    let waits = Waits { node: Span(3_000_000), rack: Span(2_000_000) };
    let mut layer = Layer::with_waits(&racks(), Listed::granting(&[(0, 9)]), waits);
    for now in [0, 4, 6] {
        layer.ledger.now = seconds(now);
        layer.assign();
    }
    assert_eq!(where_to(&layer), [(0, 0, 0), (0, 1, 1), (0, 2, 2)]);
    assert_eq!(layer.engine.wakes, [seconds(3), seconds(5), seconds(6)]);
}

#[test]
fn a_machine_that_asks_gets_tasks_of_its_rack_when_they_may() {
    let waits = Waits { node: Span::ZERO, rack: WAIT };
    let mut layer = Layer::with_waits(&racks(), Listed::granting(&[(0, 9)]), waits);
    assert_eq!(layer.assign_in(Scope::Machines(&[MachineId(2)])), []);
    assert_eq!(layer.assign_in(Scope::Machines(&[MachineId(1)])), [(0, 0, 1)]);
    assert_eq!(where_to(&layer), [(0, 0, 1)]);
}

#[test]
fn without_waiting_tasks_run_anywhere_at_once() {
    let instance = with_splits(1, &[&["m-0"]]);
    let mut layer = Layer::new(&instance, Listed::granting(&[(0, 9)]));
    assert_eq!(layer.assign(), [(0, 0, 1), (0, 1, 1)]);
    assert_eq!(layer.engine.wakes, []);
}

#[test]
fn tasks_whose_input_is_nowhere_need_not_wait() {
    let instance = with_splits(1, &[&["m-0"], &[]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9)]), WAIT);
    assert_eq!(layer.assign(), [(0, 0, 1), (0, 2, 1)]);
}

#[test]
fn a_machine_that_asks_gets_tasks_with_input_on_it_only() {
    let instance = with_splits(2, &[&["m-0"], &["m-1"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9)]), WAIT);
    assert_eq!(layer.assign_in(Scope::Machines(&[MachineId(1)])), [(0, 2, 2)]);
    assert_eq!(where_to(&layer), [(0, 2, 2)]);
}

#[test]
fn input_on_a_dead_machine_is_no_reason_to_go_there() {
    let instance = with_splits(1, &[&["m-0", "m-1"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9)]), WAIT);
    layer.absorb(Report::Down(MachineId(0)));
    assert_eq!(layer.assign(), [(0, 0, 1)]);
    assert_eq!(where_to(&layer), [(0, 0, 1)]);
}

#[test]
fn tasks_that_must_run_again_look_for_their_input_again() {
    let instance = with_splits(3, &[&["m-0"], &["m-1"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 9)]), WAIT);
    assert_eq!(layer.assign(), [(0, 0, 2), (0, 2, 2)]);
    layer.absorb(failed(0, seconds(1)));
    assert_eq!(layer.assign(), [(0, 0, 2)]);
    assert_eq!(where_to(&layer), [(0, 0, 0), (0, 2, 3), (0, 0, 0)]);
    assert_eq!(layer.ledger.log[crate::engine::RowId(2)].task.attempt, 1);
}

#[test]
fn no_more_tasks_run_near_their_input_than_were_granted() {
    let instance = with_splits(2, &[&["m-0"]]);
    let mut layer = Layer::waiting(&instance, Listed::granting(&[(0, 1)]), WAIT);
    assert_eq!(layer.assign(), [(0, 0, 1), (0, 1, 1)]);
}

/// Machine `old`, which leaves at second 5, and machine `new`, with one slot each; flows with a task of 8
/// seconds and a task of 2.
fn ending(policy: Listed) -> Layer {
    let flows = vec![flow("long", uniform(2, 8.0), None), flow("short", uniform(2, 2.0), None)];
    let machines = vec![machines("old", 1, 1), machines("new", 1, 1)];
    let mut layer = Layer::new(&instance(machines, flows), policy);
    layer.absorb(Report::Ends { machine: MachineId(0), at: seconds(5) });
    layer
}

/// (phase, first slot) of each running batch.
fn at_work(layer: &Layer) -> Vec<(u32, u32)> {
    let rows = layer.ledger.log.iter().filter(|row| row.is_running());
    rows.map(|row| (row.task.phase.0, row.places()[0].first)).collect()
}

#[test]
fn tasks_that_would_outlast_their_machine_do_not_start_there() {
    for policy in [Listed::granting(&[(0, 9), (1, 9)]), targets(&[9.0, 0.0])] {
        let mut layer = ending(policy);
        layer.assign();
        assert_eq!(at_work(&layer), [(0, 1), (1, 0)]);
        let before = layer.engine.barred;
        // Two seconds later the short task is too long as well.
        layer.ledger.advance(seconds(4));
        layer.absorb(finished(1, seconds(4)));
        assert_eq!(layer.assign(), []);
        assert_eq!(layer.ledger.free[0].len(), 1, "the slot stays free");
        assert!(layer.engine.barred > before, "and the engine knows why");
        // The machine stays longer than announced, or comes back for longer.
        layer.absorb(Report::Ends { machine: MachineId(0), at: seconds(6) });
        assert_eq!(layer.assign(), [(1, 1, 1)]);
        layer.absorb(Report::Down(MachineId(0)));
        layer.absorb(Report::Up(MachineId(0)));
        assert_eq!(layer.assign(), [(0, 1, 1)], "nothing is known of its end any more");
    }
}

#[test]
fn a_queue_skips_tasks_that_would_outlast_their_machine() {
    let mut layer = ending(queues(&[place(0, 0, 0, 1), place(0, 1, 0, 2), place(1, 0, 1, 1)]));
    layer.assign();
    assert_eq!(at_work(&layer), [(1, 0), (0, 1)]);
    layer.ledger.advance(seconds(2));
    layer.absorb(finished(0, seconds(2)));
    assert_eq!(layer.assign(), [(1, 1, 1)]);
}

proptest! {
    #[test]
    fn slots_that_are_alike_are_shared_out_as_in_turns(
        counts in prop::collection::vec(1u32..40, 1..8),
        slots in 1u32..40,
        rounds in prop::collection::vec((0u32..8, prop::collection::vec(0u32..40, 8), 0u32..40), 1..6),
    ) {
        // The same targets, of their own and as a level that phases share.
        let instance = maps(slots, &counts);
        let policy = || Listed::pushing(Style::Targets, Vec::new());
        let kinds = [(Batch::Speed, false), (Batch::Machine, true), (Batch::Speed, false), (Batch::Machine, true)];
        let mut layers = kinds.map(|(batch, faults)| {
            Layer::on(Scripted::new(batch, faults), &instance, policy(), Waits::NONE)
        });
        prop_assert!(layers[0].ledger.are_alike(SlotKind::Any) && !layers[1].ledger.are_alike(SlotKind::Any));
        for (ends, quarters, level) in rounds {
            let mut number = 0;
            let shares = layers.each_mut().map(|layer| {
                let level = f64::from(level) / 4.0;
                let has_level = number >= 2;
                number += 1;
                for (phase, &quarters) in (0..counts.len() as u32).zip(&quarters) {
                    layer.want(match (quarters % 3 == 0, has_level) {
                        (true, true) => Action::Share(PhaseId(phase)),
                        (true, false) => target(phase, level),
                        (false, _) => target(phase, f64::from(quarters) / 4.0),
                    });
                }
                layer.want(Action::Level { slot_kind: SlotKind::Any, slots: level });
                let shares = layer.shares::<8>();
                if ends < counts.len() as u32 {
                    layer.end_all(PhaseId(ends));
                }
                (shares, layer.assigner.decisions)
            });
            prop_assert!(shares.iter().all(|other| *other == shares[0]), "{shares:?}");
        }
    }
}

#[test]
fn slots_of_a_phase_at_one_instant_are_one_batch() {
    let instance = maps(6, &[9, 2]);
    let layer = |policy| Layer::on(Scripted::new(Batch::Speed, false), &instance, policy, Waits::NONE);
    assert_eq!(layer(targets(&[4.0, 2.0])).assign(), [(0, 0, 4), (1, 0, 2)]);
    assert_eq!(layer(Listed::granting(&[(0, 1), (1, 2)])).assign(), [(0, 0, 6)]);
    let engine = Scripted::new(Batch::Speed, true);
    let mut may_die = Layer::on(engine, &instance, Listed::granting(&[(0, 4), (1, 2)]), Waits::NONE);
    assert_eq!(
        may_die.assign(),
        [(0, 0, 4), (0, 4, 2)],
        "where machines die, rows stay as they were ordered"
    );
}
