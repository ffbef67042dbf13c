//! The remaining work of all flows at a moment, ready to be simulated, and variants of it for "what if"
//! questions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slackline_algo::auto::{Auto, OrderRecorder, OrderReplay, Resolve};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, MachineDraft, TasksDraft};
use slackline_model::schedule::FlowRow;
use slackline_model::{Draft, FlowId, Instance, PhaseId, Time};
use slackline_policy::Policy;

use crate::policy_spec::PolicySpec;
use crate::run::forecaster::running_tasks::{RunningTask, RunningTasks, TasksByFlow};
use crate::run::forecaster::scenario;
use crate::run::policy::{self, Setting};
use crate::run::run_model::{RemainingTasks, Sampler, SimulatedPhases};

/// By name of a flow: its predicted completion time.
pub type Completions = BTreeMap<String, f64>;

/// Adds the phases of a flow of the remaining work to `simulated`; `left` has its remaining tasks, and the phases
/// of the flow count from `first`. Returns the number after its last phase.
pub(in crate::run) fn add_phases(
    flow: &FlowDraft,
    left: Vec<RemainingTasks<'_>>,
    first: u32,
    simulated: &mut SimulatedPhases,
) -> u32 {
    let phases = flow.jobs.iter().flat_map(|job| [&job.map, &job.reduce]).flatten();
    let (mut next, mut left) = (first, left.into_iter());
    for phase in phases {
        if let TasksDraft::Each(_) = phase.tasks
            && let Some(RemainingTasks { phase, tasks, .. }) = left.next()
        {
            simulated.insert(phase, (PhaseId(next), tasks));
        }
        next += 1;
    }
    next
}

/// Keeps only the running tasks of a phase, in the order of [`running_tasks::alone`](super::running_tasks::alone). Returns whether there are any.
pub(super) fn keep_running(phase: &mut RemainingTasks<'_>, running: &[RunningTask]) -> bool {
    let of_phase = running.iter().filter(|task| task.job == phase.job && task.phase == phase.phase.1);
    phase.tasks = of_phase.filter_map(|task| phase.tasks.get(task.task as usize).copied()).collect();
    !phase.tasks.is_empty()
}

/// The remaining work of all flows at a moment, to be simulated.
#[derive(Clone, Debug)]
pub struct ForecastInput {
    /// The flows, with estimated durations.
    pub draft: Draft,
    pub(super) now: Time,
    pub(super) policy: PolicySpec,
    pub(super) setting: Setting,
    pub(super) slots: Arc<SlotUse>,
    pub(super) kept: CachedOrder,
}

/// What limits the slots of flows beside the policy.
#[derive(Debug, Default)]
pub(super) struct SlotUse {
    pub(super) running: TasksByFlow,
    /// The held flows, whose running tasks alone are simulated. They get no prediction.
    pub(super) held: BTreeSet<String>,
}

/// The remaining work of all flows, checked and ready to be simulated.
#[derive(Debug)]
struct Checked {
    /// Without the draft.
    ahead: ForecastInput,
    /// `None` if nothing is left.
    instance: Option<Instance>,
    running: RunningTasks,
}

/// The remaining work of all flows, and samples of it with drawn durations.
pub struct Samples<'a> {
    checked: Checked,
    samplers: Vec<Sampler<'a>>,
}

impl<'a> Samples<'a> {
    /// The samplers draw the durations of the flows of `ahead`.
    ///
    /// # Errors
    /// As [`ForecastInput::completions`].
    pub(in crate::run) fn new(ahead: &ForecastInput, samplers: Vec<Sampler<'a>>) -> Result<Self, String> {
        Ok(Self { checked: ahead.checked()?, samplers })
    }

    /// The completions with estimated durations, and the decision of the policy.
    ///
    /// # Errors
    /// As [`ForecastInput::completions`].
    pub fn expected(&self) -> Result<(Completions, CachedOrder), String> {
        self.checked.resolved(self.checked.instance.as_ref(), &self.checked.ahead.kept)
    }

    /// The completions in sample `k` under a policy that keeps the decision `kept`.
    ///
    /// # Errors
    /// As [`ForecastInput::completions`].
    pub fn completions(&self, k: usize, kept: &CachedOrder) -> Result<Completions, String> {
        let drawn = self.samplers.iter().flat_map(|sampler| sampler.draw(k as u64));
        let instance = self.checked.instance.clone().map(|instance| instance.with_durations(drawn));
        Ok(self.checked.resolved(instance.as_ref(), kept)?.0)
    }
}

impl Checked {
    fn resolved(
        &self,
        instance: Option<&Instance>,
        kept: &CachedOrder,
    ) -> Result<(Completions, CachedOrder), String> {
        let Self { ahead, running, .. } = self;
        let Some(instance) = instance else { return Ok((Completions::new(), kept.clone())) };
        // On a cluster, jobs start ApplicationMasters and containers first. The full simulator models them, and
        // a sample does not.
        if ahead.setting.profile.is_some() {
            let simulated = policy::simulated(&ahead.policy, instance, &ahead.setting);
            let rows = simulated.map_err(|error| error.to_string())?.schedule.flows;
            let end = |row: &FlowRow| Some((row.flow, Time::from_seconds_nearest(row.completion?)));
            return Ok((ahead.named(instance, rows.iter().filter_map(end)), kept.clone()));
        }
        let ends = |policy: &mut dyn Policy| {
            let ends = scenario::ends(instance, policy, ahead.setting.slowstart, running)?;
            let ended = ends.into_iter_enumerated().filter_map(|(flow, end)| Some((flow, end?)));
            Ok::<_, String>(ahead.named(instance, ended))
        };
        if let Some(order) = &kept.0 {
            return Ok((ends(&mut order.policy(instance))?, kept.clone()));
        }
        if ahead.policy.foresees() {
            let mut noting = OrderRecorder::new(Auto::new(instance.objective(), ahead.policy.settings()));
            let completions = ends(&mut noting)?;
            let order = Order::of(noting.resolve(), instance);
            return Ok((completions, CachedOrder(Some(Arc::new(order)))));
        }
        let mut policy = ahead.policy.build(instance.cluster(), &instance.objective());
        Ok((ends(policy.as_mut())?, CachedOrder::default()))
    }
}

/// The decision that a policy made in one simulation, for reuse in variants with the same flows. Empty for
/// policies whose decision cannot be reused.
#[derive(Clone, Debug, Default)]
pub struct CachedOrder(Option<Arc<Order>>);

/// The decision of `auto`.
#[derive(Debug)]
struct Order {
    resolve: Resolve,
    /// By name of a flow: its rank.
    ranks: Option<BTreeMap<String, u32>>,
}

impl Order {
    fn of(resolve: Resolve, instance: &Instance) -> Self {
        let name = |flow: FlowId| instance.flow(flow).id.clone();
        let ranks = resolve.order.as_ref().map(|order| order.iter().copied().map(name).zip(0..).collect());
        Self { resolve, ranks }
    }

    /// The same order for the flows of another instance.
    fn policy(&self, instance: &Instance) -> OrderReplay {
        let order = self.ranks.as_ref().map(|ranks| {
            let rank = |flow: &FlowId| ranks.get(&instance.flow(*flow).id).copied().unwrap_or(u32::MAX);
            let mut flows: Vec<FlowId> = instance.flows().keys().collect();
            flows.sort_by_key(|flow| (rank(flow), *flow));
            flows
        });
        OrderReplay::new(&self.resolve.with_order(order))
    }
}

impl ForecastInput {
    /// The remaining work of one run that has the machines for itself.
    pub(in crate::run) fn of_run(
        draft: Draft,
        now: Time,
        policy: PolicySpec,
        setting: Setting,
        running: TasksByFlow,
    ) -> Self {
        let slots = Arc::new(SlotUse { running, ..SlotUse::default() });
        Self { draft, now, policy, setting, slots, kept: CachedOrder::default() }
    }

    /// The completions of the flows.
    ///
    /// # Errors
    /// The reason why they cannot be simulated: the policy is an external program, or it failed.
    pub fn completions(&self) -> Result<Completions, String> {
        self.resolved().map(|(completions, _)| completions)
    }

    /// The completions, and the decision of the policy.
    ///
    /// # Errors
    /// As [`Self::completions`].
    pub fn resolved(&self) -> Result<(Completions, CachedOrder), String> {
        let checked = self.checked()?;
        checked.resolved(checked.instance.as_ref(), &self.kept)
    }

    fn checked(&self) -> Result<Checked, String> {
        let instance = self.instance()?;
        let running = instance.as_ref().map(|instance| RunningTasks::new(instance, &self.slots.running));
        let Self { draft: _, now, policy, setting, slots, kept } = self;
        let (policy, setting, slots) = (policy.clone(), setting.clone(), Arc::clone(slots));
        let ahead = Self { draft: Draft::default(), now: *now, policy, setting, slots, kept: kept.clone() };
        Ok(Checked { ahead, instance, running: running.unwrap_or_default() })
    }

    /// The instance of the remaining work; `None` if nothing is left.
    fn instance(&self) -> Result<Option<Instance>, String> {
        if self.draft.flows.is_empty() {
            return Ok(None);
        }
        if self.policy.is_program() {
            return Err(format!("{} is a program, which forecasts do not call", self.policy.spec()));
        }
        Instance::new(&self.draft).map(Some).map_err(|invalid| invalid.to_string())
    }

    /// The completions by name, never before now.
    fn named(&self, instance: &Instance, ends: impl Iterator<Item = (FlowId, Time)>) -> Completions {
        let named = ends.map(|(flow, end)| (instance.flow(flow).id.clone(), end.max(self.now).seconds()));
        named.filter(|(name, _)| !self.slots.held.contains(name)).collect()
    }

    /// The same work under a policy that keeps the decision `kept`.
    #[must_use]
    pub fn keeping(mut self, kept: &CachedOrder) -> Self {
        self.kept = kept.clone();
        self
    }

    /// The same work without some flows.
    #[must_use]
    pub fn without(&self, is_one: impl Fn(&str) -> bool) -> Self {
        let mut other = self.clone();
        other.draft.flows.retain(|flow| !is_one(&flow.id));
        other
    }

    /// The same work under another policy.
    #[must_use]
    pub fn under(self, policy: PolicySpec) -> Self {
        Self { policy, kept: CachedOrder::default(), ..self }
    }

    /// The same work with `times` times the slots on each machine, rounded up.
    #[must_use]
    pub fn with_slots(&self, times: f64) -> Self {
        let mut other = self.clone();
        let more = |slots: u32| (f64::from(slots) * times).ceil() as u32;
        for machine in &mut other.draft.machines {
            machine.slots = match machine.slots {
                Slots::Generic(slots) => Slots::Generic(more(slots)),
                Slots::MapReduce { map, reduce } => Slots::MapReduce { map: more(map), reduce: more(reduce) },
            };
        }
        other
    }

    /// The number of slots of all machines.
    pub fn slots(&self) -> u64 {
        let of = |machine: &MachineDraft| u64::from(machine.count) * u64::from(machine.slots.total());
        self.draft.machines.iter().map(of).sum()
    }
}
