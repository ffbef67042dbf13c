//! The remaining work of all flows at a moment, ready to be simulated, and variants of it for "what if"
//! questions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use slackline_algo::auto::{Auto, OrderRecorder, OrderReplay, Resolve};
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::schedule::FlowRow;
use slackline_model::{Draft, FlowId, Instance, Time};
use slackline_policy::Policy;

use crate::policy_spec::PolicySpec;
use crate::run::forecaster::running_tasks::{RunningTasks, TasksByFlow};
use crate::run::forecaster::scenario;
use crate::run::policy::{self, Setting};

/// By name of a flow: its predicted completion time.
pub type Completions = BTreeMap<String, f64>;

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
pub struct Checked {
    ahead: ForecastInput,
    instance: Option<Instance>,
}

impl Checked {
    /// The completions of the flows under a policy that keeps the decision `kept`.
    ///
    /// # Errors
    /// As [`ForecastInput::completions`].
    pub fn completions(&self, kept: &CachedOrder) -> Result<Completions, String> {
        let Some(instance) = &self.instance else { return Ok(Completions::new()) };
        self.ahead.resolved_on(instance, kept).map(|(completions, _)| completions)
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
        match self.instance()? {
            Some(instance) => self.resolved_on(&instance, &self.kept),
            None => Ok((Completions::new(), self.kept.clone())),
        }
    }

    /// Checks the remaining work. This part of a prediction does not depend on the decision of another one.
    ///
    /// # Errors
    /// As [`Self::completions`].
    pub fn checked(self) -> Result<Checked, String> {
        let instance = self.instance()?;
        // The instance has everything that a simulation needs.
        Ok(Checked { instance, ahead: Self { draft: Draft::default(), ..self } })
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

    fn resolved_on(
        &self,
        instance: &Instance,
        kept: &CachedOrder,
    ) -> Result<(Completions, CachedOrder), String> {
        // On a cluster, jobs start ApplicationMasters and containers first. The full simulator models them, and
        // a sample does not.
        if self.setting.profile.is_some() {
            let simulated = policy::simulated(&self.policy, instance, &self.setting);
            let rows = simulated.map_err(|error| error.to_string())?.schedule.flows;
            let end = |row: &FlowRow| Some((row.flow, Time::from_seconds_nearest(row.completion?)));
            return Ok((self.named(instance, rows.iter().filter_map(end)), kept.clone()));
        }
        if let Some(order) = &kept.0 {
            let completions = self.ends(instance, &mut order.policy(instance))?;
            return Ok((completions, kept.clone()));
        }
        if self.policy.foresees() {
            let mut noting = OrderRecorder::new(Auto::new(instance.objective(), self.policy.settings()));
            let completions = self.ends(instance, &mut noting)?;
            let order = Order::of(noting.resolve(), instance);
            return Ok((completions, CachedOrder(Some(Arc::new(order)))));
        }
        let mut policy = self.policy.build(instance.cluster(), &instance.objective());
        Ok((self.ends(instance, policy.as_mut())?, CachedOrder::default()))
    }

    fn ends(&self, instance: &Instance, policy: &mut dyn Policy) -> Result<Completions, String> {
        let running = RunningTasks::new(instance, &self.slots.running);
        let ends = scenario::ends(instance, policy, self.setting.slowstart, &running)?;
        Ok(self.named(instance, ends.into_iter_enumerated().filter_map(|(flow, end)| Some((flow, end?)))))
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
