//! FLEX plans for instances of the model: flows of one job each, map and reduce slots or generic slots.
//!
//! If every flow is a single phase released at 0, each slot kind is a separate FLEX instance and everything
//! in [`super::plan()`] applies. Otherwise (reduces after maps, releases, pools, minima that exceed the
//! slots) an order of the flows is packed phase by phase ([`super::phases`]); the orders come from the same
//! rules, applied to each flow's share of the cluster, and from the deadlines of that simplified instance,
//! and are improved by the same insertion.

use slackline_model::id::TiVec;
use slackline_model::instance::Amount;
use slackline_model::schedule::Allocation;
use slackline_model::{Combine, FlowId, Instance, PhaseId, PhaseKind, SlotKind};
use slackline_relax::malleable::Job;
use slackline_relax::minimax;

use super::instance::FlexInstance;
use super::orders::{CostProfile, Rule};
use super::phases::{Packed, Phases};
use super::plan::{Config, Mode, THOROUGH, is_optimal, plan};
use super::search::insert;
use super::{bound, targets};
use crate::classic::budget::Budget;
use crate::classic::rules::sorted;
use crate::registry::Refused;

/// A plan for a model instance.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPlan {
    /// The slots of each phase over time, in workload time.
    pub allocations: Vec<Allocation>,
    /// When each flow is done.
    pub completions: TiVec<FlowId, f64>,
    pub cost: f64,
    /// No schedule costs less.
    pub bound: f64,
    /// Whether the cost is the bound, by the documents' tolerance.
    pub optimal: bool,
    /// Which candidate won; with map and reduce slots one for each kind.
    pub winner: String,
    /// Whether a search ran out of its budget.
    pub cut: bool,
}

/// Plans an instance whose flows have one job each, on machines of one speed.
///
/// # Errors
/// If the instance is of another kind.
pub fn plan_instance(instance: &Instance, config: &Config<'_>) -> Result<ModelPlan, Refused> {
    let policy = "flex";
    if let Some(flow) = instance.flows().iter().find(|flow| flow.jobs().len() != 1) {
        return Err(Refused::SeveralJobs { policy, flow: flow.id.clone(), jobs: flow.jobs().len() });
    }
    let speed = instance.cluster().uniform_speed().ok_or(Refused::MixedSpeeds { policy })?;
    if config.minima && !keeps_minima(instance, config.mode) {
        return Err(Refused::Minima { policy });
    }
    let mut plan = if is_plain(instance, config.minima) {
        by_slot_kind(instance, speed, config)
    } else {
        by_phase(instance, speed, config)
    };
    // The bounds for the whole instance apply too.
    let bounds = slackline_relax::bounds_until(instance, slackline_relax::Form::Any, &|| {
        config.cancel.is_some_and(|stop| stop())
    });
    plan.bound = plan.bound.max(slackline_relax::best_of(&bounds)).min(plan.cost);
    plan.optimal = is_optimal(plan.cost, plan.bound);
    plan.cut &= !plan.optimal;
    Ok(plan)
}

/// The cost of a plan that need not keep minima; `None` if there are none or the search was stopped.
pub fn cost_without_minima(instance: &Instance, config: &Config<'_>) -> Option<f64> {
    let phases = instance.phases().iter().any(|phase| phase.min_slots > 0);
    let pools = instance.pools().iter().any(|pool| pool.min_map > 0 || pool.min_reduce > 0);
    let is_over = || config.cancel.is_some_and(|stop| stop());
    if !(phases || pools) || is_over() {
        return None;
    }
    let plan = plan_instance(instance, &Config { minima: false, ..*config }).ok()?;
    (!is_over()).then_some(plan.cost)
}

/// Whether every flow is a single phase released at 0 whose minimum never moves, if minima are kept.
fn is_plain(instance: &Instance, minima: bool) -> bool {
    let fits = |&slot_kind: &SlotKind| {
        let minima = (instance.phases().iter_enumerated())
            .filter(|&(id, _)| instance.slot_kind_of(id) == slot_kind)
            .map(|(_, phase)| u64::from(phase.min_slots));
        minima.sum::<u64>() <= u64::from(instance.cluster().slots(slot_kind))
    };
    instance.flows().iter().all(|flow| flow.release.0 == 0)
        && instance.jobs().iter().all(|job| job.phases().count() == 1)
        && (!minima
            || instance.pools().iter().all(|pool| pool.min_map == 0 && pool.min_reduce == 0)
                && instance.cluster().slot_kinds().iter().all(fits))
}

/// Whether plans of this mode keep the minima of an instance. Moldable phases keep their slots, so that a
/// minimum of a phase that becomes ready later may find none free.
pub fn keeps_minima(instance: &Instance, mode: Mode) -> bool {
    mode == Mode::Malleable
        || is_plain(instance, true)
        || (instance.phases().iter().all(|phase| phase.min_slots == 0)
            && instance.pools().iter().all(|pool| pool.min_map == 0 && pool.min_reduce == 0))
}

/// The phase as a job of FLEX.
fn job_of(instance: &Instance, id: PhaseId, speed: f64, minima: bool) -> Job {
    let phase = instance.phase(id);
    let min_slots = if minima { phase.min_slots } else { 0 };
    let work = phase.work().slot_seconds() / speed;
    // While at least `min` tasks are left the minimum is guaranteed in full, and they are while more
    // work is left than min − 1 of the longest hold.
    let firm = match &phase.amount {
        Amount::Malleable(_) => work,
        Amount::Tasks(tasks) => {
            work - f64::from(min_slots.saturating_sub(1)) * tasks.longest().seconds() / speed
        }
    };
    let cost = instance.flow(instance.flow_of(id)).cost.clone();
    Job { firm, ..Job::new(work, min_slots..=phase.cap, cost) }
}

/// A FLEX instance for each slot kind.
fn by_slot_kind(instance: &Instance, speed: f64, config: &Config<'_>) -> ModelPlan {
    let combine = instance.objective().combine;
    let mut all = ModelPlan {
        allocations: Vec::new(),
        completions: vec![0.0; instance.flows().len()].into(),
        cost: 0.0,
        bound: 0.0,
        optimal: false,
        winner: String::new(),
        cut: false,
    };
    let (mut bounds, mut winners) = (Vec::new(), Vec::new());
    for &slot_kind in instance.cluster().slot_kinds() {
        let ids: Vec<PhaseId> =
            instance.phases().keys().filter(|&p| instance.slot_kind_of(p) == slot_kind).collect();
        if ids.is_empty() {
            continue;
        }
        let jobs = ids.iter().map(|&id| job_of(instance, id, speed, config.minima)).collect();
        let part = plan(&FlexInstance::new(instance.cluster().slots(slot_kind), combine, jobs), config);
        all.allocations.extend(part.pieces.iter().map(|piece| Allocation {
            phase: ids[piece.job],
            start: piece.start,
            end: piece.end,
            slots: piece.slots,
        }));
        for (&id, &end) in ids.iter().zip(&part.completions) {
            all.completions[instance.flow_of(id)] = end;
        }
        bounds.push(part.bound);
        winners.push(part.winner.name());
        all.cut |= part.cut;
    }
    all.allocations.sort_by(|a, b| a.phase.cmp(&b.phase).then(a.start.total_cmp(&b.start)));
    all.cost = instance.cost_of(&all.completions.raw);
    all.bound = combine.of(bounds);
    all.winner = winners.join(", ");
    all
}

/// Flows as jobs of a single cluster, for their order only: each has its share of every slot kind as work and
/// takes as long alone as the flow does.
fn simplified(instance: &Instance, speed: f64) -> FlexInstance {
    let cluster = instance.cluster();
    let slots = cluster.slots(cluster.slot_kinds()[0]).max(1);
    let jobs = instance.flows().iter().map(|flow| {
        let phases = flow.jobs().flat_map(|job| instance.job(job).phases());
        let (mut share, mut alone) = ([0.0f64; 2], 0.0);
        for id in phases {
            let (slot_kind, phase) = (instance.slot_kind_of(id), instance.phase(id));
            let work = phase.work().slot_seconds() / speed;
            share[slot_kind.index()] += work / f64::from(cluster.slots(slot_kind));
            alone += work / f64::from(phase.cap.min(cluster.slots(slot_kind)));
        }
        let work = share[0].max(share[1]) * f64::from(slots);
        let max = if alone > 0.0 { (work / alone).round().max(1.0) as u32 } else { 1 };
        Job::new(work, 0..=max, flow.cost.clone())
    });
    FlexInstance::new(slots, instance.objective().combine, jobs.collect())
}

/// An order of flows with its packing's cost.
struct Ranked {
    cost: f64,
    order: Vec<usize>,
    name: String,
}

fn by_phase(instance: &Instance, speed: f64, config: &Config<'_>) -> ModelPlan {
    let phases = Phases::new(instance, speed, config.mode, config.minima);
    let pack = |order: &[usize]| {
        let flows: Vec<FlowId> = order.iter().map(|&f| FlowId::from(f)).collect();
        phases.pack(&flows)
    };
    let cost_of = |packed: &Packed| instance.cost_of(&packed.completions.raw);
    let mut budget = Budget::new(config.steps, config.cancel);
    let mut starts: Vec<Ranked> = orders(instance, speed, &mut budget)
        .into_iter()
        .map(|(name, order)| Ranked { cost: cost_of(&pack(&order)), order, name })
        .collect();
    starts.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let mut best = starts.swap_remove(0);
    // An event looks at every ready phase: a packing costs about n² of the budget's steps, not n.
    let n = best.order.len().max(1) as u64;
    let mut part = Budget::new(config.steps / n, config.cancel);
    let cost = insert(&mut best.order, best.cost, &mut part, |order| cost_of(&pack(order)));
    if cost < best.cost {
        best.name.push_str("+insertion");
    }
    let packed = pack(&best.order);
    let cost = cost_of(&packed);
    ModelPlan {
        allocations: packed.allocations,
        completions: packed.completions,
        cost,
        bound: relaxed(instance, speed, cost),
        optimal: false,
        winner: best.name,
        cut: part.was_cut(),
    }
}

/// Candidate orders of the flows.
fn orders(instance: &Instance, speed: f64, budget: &mut Budget<'_>) -> Vec<(String, Vec<usize>)> {
    let simple = simplified(instance, speed);
    let profile = CostProfile::new(&simple);
    let mut orders: Vec<(String, Vec<usize>)> = (Rule::ALL.into_iter())
        .filter_map(|rule| Some((rule.name().to_owned(), rule.order(&simple, &profile, THOROUGH)?)))
        .collect();
    let flows = instance.flows();
    orders.push(("release".to_owned(), sorted(flows.len(), |f| flows[FlowId::from(f)].release.seconds())));
    let due = match simple.combine() {
        Combine::Max => minimax::minimax(simple.jobs(), simple.slots()).due,
        Combine::Sum if simple.jobs().iter().any(|job| job.cost.as_steps().is_some()) => {
            let mut part = budget.share(2);
            let due = targets::search(&simple, &mut part);
            budget.refund(&part);
            due
        }
        Combine::Sum => return orders,
    };
    orders.push(("deadline order".to_owned(), sorted(due.len(), |f| due[f])));
    orders
}

/// The best lower bound by slot kind: all flows released at 0, each slot kind separately, no minima, what
/// follows in other slot kinds at full speed.
fn relaxed(instance: &Instance, speed: f64, upper: f64) -> f64 {
    let cluster = instance.cluster();
    let combine = instance.objective().combine;
    let mut best = f64::NEG_INFINITY;
    for &slot_kind in cluster.slot_kinds() {
        let slots = cluster.slots(slot_kind);
        let jobs = instance.flows().iter().map(|flow| {
            let phases: Vec<PhaseId> = flow.jobs().flat_map(|job| instance.job(job).phases()).collect();
            let (mut work, mut cap, mut after) = (0.0, 1, 0.0);
            for &id in &phases {
                let phase = instance.phase(id);
                let own = phase.work().slot_seconds() / speed;
                if instance.slot_kind_of(id) == slot_kind {
                    work += own;
                    cap = cap.max(phase.cap);
                } else if phase.kind == PhaseKind::Reduce {
                    after += own / f64::from(phase.cap.min(cluster.slots(instance.slot_kind_of(id))));
                }
            }
            Job { base: after, ..Job::new(work, 0..=cap, flow.cost.clone()) }
        });
        let slot_kind = FlexInstance::new(slots, combine, jobs.collect());
        best = best.max(bound::of(&slot_kind, upper));
    }
    best
}
