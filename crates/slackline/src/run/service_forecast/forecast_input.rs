//! The remaining work of all flows at a moment, ready to be simulated, and variants of it for "what if"
//! questions.

use std::collections::BTreeMap;
use std::sync::Arc;

use slackline_algo::auto::{Auto, OrderRecorder, OrderReplay, Resolve};
use slackline_executor::engine::backend::UserQuota;
use slackline_model::cluster::Slots;
use slackline_model::draft::MachineDraft;
use slackline_model::{Draft, FlowId, Instance, Time};
use slackline_policy::Policy;

use crate::policy_spec::PolicySpec;
use crate::run::service_forecast::flow_quotas::FlowQuotas;
use crate::run::service_forecast::running_tasks::{RunningTasks, TasksByFlow};
use crate::run::service_forecast::{HELD, scenario};

/// By name of a flow: its predicted completion time.
pub type Completions = BTreeMap<String, f64>;

/// By flow: its owner, and the number of slots that all flows of the owner may hold together. Flows without
/// such a limit are absent.
pub(super) type Quotas = BTreeMap<String, UserQuota>;

/// The remaining work of all flows at a moment, to be simulated.
#[derive(Clone, Debug)]
pub struct ForecastInput {
    /// The flows, with estimated durations.
    pub draft: Draft,
    pub(super) now: Time,
    pub(super) policy: PolicySpec,
    pub(super) slowstart: f64,
    pub(super) quotas: Arc<Quotas>,
    pub(super) at_work: Arc<TasksByFlow>,
    pub(super) kept: CachedOrder,
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
        Ok(Checked { instance: self.instance()?, ahead: self })
    }

    /// The instance of the remaining work; `None` if nothing is left.
    fn instance(&self) -> Result<Option<Instance>, String> {
        if self.draft.flows.is_empty() {
            return Ok(None);
        }
        if self.policy.is_program() {
            return Err(format!("{} is a program, which is not asked of what may come", self.policy.spec()));
        }
        Instance::new(&self.draft).map(Some).map_err(|invalid| invalid.to_string())
    }

    fn resolved_on(
        &self,
        instance: &Instance,
        kept: &CachedOrder,
    ) -> Result<(Completions, CachedOrder), String> {
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
        let quotas = FlowQuotas::new(instance.flows().iter().map(|flow| self.quotas.get(&flow.id)));
        let running = RunningTasks::new(instance, &self.at_work);
        let ends = scenario::ends(instance, policy, self.slowstart, &quotas, &running)?;
        let named = |(flow, end): (FlowId, Option<Time>)| {
            Some((instance.flow(flow).id.clone(), end?.max(self.now).seconds()))
        };
        let named = |end| named(end).filter(|(name, _)| !name.starts_with(HELD));
        Ok(ends.into_iter_enumerated().filter_map(named).collect())
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
        let flows = self.draft.flows.iter().filter(|flow| !is_one(&flow.id)).cloned().collect();
        let Draft { start, machines, pools, objective, weights, .. } = &self.draft;
        let draft = Draft {
            start: start.clone(),
            machines: machines.clone(),
            pools: pools.clone(),
            objective: *objective,
            weights: *weights,
            flows,
        };
        Self {
            draft,
            policy: self.policy.clone(),
            quotas: self.quotas.clone(),
            at_work: self.at_work.clone(),
            kept: self.kept.clone(),
            ..*self
        }
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
                Slots::Universal(slots) => Slots::Universal(more(slots)),
                Slots::Typed { map, reduce } => Slots::Typed { map: more(map), reduce: more(reduce) },
            };
        }
        other
    }

    /// The number of slots of all machines.
    pub fn slots(&self) -> u64 {
        let of = |machine: &MachineDraft| {
            let each = match machine.slots {
                Slots::Universal(slots) => slots,
                Slots::Typed { map, reduce } => map + reduce,
            };
            u64::from(machine.count) * u64::from(each)
        };
        self.draft.machines.iter().map(of).sum()
    }
}
