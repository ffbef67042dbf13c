//! The last order of `auto`, stored for scenarios of the same flows with other task durations.
//!
//! A scheduler does not know the durations of a scenario in advance, and a search in each scenario would take
//! longer than everything else. So one run of [`OrderRecorder`] gives a [`Resolve`], and [`OrderReplay`]
//! serves by it as `auto` does between two decisions.

use slackline_model::{FlowId, Span};
use slackline_policy::{Action, Ask, Choice, Event, Grant, Policy, View};

use crate::auto::dispatch::Serving;
use crate::auto::online::Auto;
use crate::auto::reserved_slots::Headroom;
use crate::rule::online::by_tail;
use crate::rule::residual::Residual;

/// The recorded decisions of `auto` in a run.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// The flows by their positions in the document, in the order in which they are served; `None` if phases
    /// of all flows are served by their tails.
    pub order: Option<Vec<FlowId>>,
    /// The share of each slot kind that is reserved from tasks longer than this.
    headroom: (f64, Span),
    /// A flow goes first when its response time reaches this multiple of its time alone.
    wait: f64,
}

impl Resolve {
    /// The same decisions for the flows of another document, in their order.
    #[must_use]
    pub fn with_order(&self, order: Option<Vec<FlowId>>) -> Self {
        Self { order, ..self.clone() }
    }
}

/// `auto` with a record of its orders.
#[derive(Clone, Debug)]
pub struct OrderRecorder {
    auto: Auto,
    order: Option<Vec<FlowId>>,
    /// The number of decisions, and the largest number of active flows at one of them.
    decided: usize,
    most: u32,
}

impl OrderRecorder {
    /// Records the decisions of `auto` from the start.
    pub fn new(auto: Auto) -> Self {
        Self { auto, order: Some(Vec::new()), decided: 0, most: 0 }
    }

    /// The recorded decisions.
    pub fn resolve(self) -> Resolve {
        Resolve { order: self.order, headroom: self.auto.headroom(), wait: self.auto.wait() }
    }

    /// Records a decision. Flows that finished before it stay in front, in the order in which they were
    /// served last. If `auto` serves by tails at one time and by flows at another, the decision with the most
    /// active flows counts. O(flows).
    fn note(&mut self, view: &View<'_>) {
        let flows = self.auto.choices().last().map_or(0, |choice| choice.flows);
        let has_most = flows >= self.most;
        self.most = self.most.max(flows);
        let Some(now) = self.auto.order() else {
            self.order = self.order.take().filter(|_| !has_most);
            return;
        };
        if self.order.is_none() && !has_most {
            return;
        }
        let now: Vec<FlowId> = now.iter().map(|&flow| view.instance.flow(flow).place).collect();
        let n = now.iter().map(|flow| flow.index() + 1).max().unwrap_or(0);
        let mut is_there = vec![false; n];
        for flow in &now {
            is_there[flow.index()] = true;
        }
        let mut order = self.order.take().unwrap_or_default();
        order.retain(|flow| !is_there.get(flow.index()).copied().unwrap_or(false));
        order.extend(now);
        self.order = Some(order);
    }
}

impl Policy for OrderRecorder {
    fn name(&self) -> &str {
        self.auto.name()
    }

    fn choices(&self) -> &[Choice] {
        self.auto.choices()
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.auto.on_events(events, view, out);
        let decided = self.auto.choices().len();
        if std::mem::replace(&mut self.decided, decided) < decided {
            self.note(view);
        }
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.auto.next(ask, view)
    }
}

/// Serves as `auto` does after a decision, without further decisions.
#[derive(Clone, Debug)]
pub struct OrderReplay {
    /// The rank of each flow of the document; `None` if phases of all flows are served by their tails.
    rank: Option<Vec<u32>>,
    wait: f64,
    residual: Residual,
    headroom: Headroom,
    serving: Serving,
}

impl OrderReplay {
    /// The policy for recorded decisions; flows without a position in the order come last.
    pub fn new(resolve: &Resolve) -> Self {
        let ranks = |order: &Vec<FlowId>| {
            let n = order.iter().map(|flow| flow.index() + 1).max().unwrap_or(0);
            let mut rank = vec![u32::MAX; n];
            (0..).zip(order).for_each(|(at, flow)| rank[flow.index()] = at);
            rank
        };
        let (rho, theta) = resolve.headroom;
        Self {
            rank: resolve.order.as_ref().map(ranks),
            wait: resolve.wait,
            residual: Residual::default(),
            headroom: Headroom::fixed(theta, rho),
            serving: Serving::default(),
        }
    }

    /// Flows have arrived: all active flows get positions. O(phases · log phases).
    fn place(&mut self, events: &[Event], view: &View<'_>) {
        self.residual.measure(view);
        for event in events {
            let Event::FlowArrived(flow) = *event else { continue };
            // A flow without work has finished already.
            if let Ok(at) = self.residual.flows.binary_search_by_key(&flow, |left| left.flow) {
                let wait = self.wait * self.residual.flows[at].rem;
                self.serving.limits.set(flow, view.instance.flow(flow).release, wait);
            }
        }
        let phases = by_tail(&self.residual, view);
        let live: Vec<FlowId> = self.residual.flows.iter().map(|left| left.flow).collect();
        let order = self.rank.as_ref().map(|rank| {
            let mut order = live.clone();
            let rank_of = |flow: FlowId| rank.get(view.instance.flow(flow).place.index()).copied();
            order.sort_by_key(|&flow| (rank_of(flow).unwrap_or(u32::MAX), flow));
            order
        });
        self.serving.headroom.set(&self.headroom, phases.iter().copied(), view);
        self.serving.by(order.as_deref(), &live, &phases, view);
    }
}

impl Policy for OrderReplay {
    fn name(&self) -> &'static str {
        super::ENTRY.name
    }

    fn on_events(&mut self, events: &[Event], view: &View<'_>, out: &mut Vec<Action>) {
        self.residual.note(events, view);
        self.serving.note(events, view);
        let have_come = events.iter().any(|event| matches!(event, Event::FlowArrived(_)));
        if have_come {
            self.place(events, view);
        }
        self.serving.update(events, view);
        if have_come {
            self.serving.sort(view);
        }
        out.extend(self.serving.limits.wake(view.now));
    }

    fn next(&mut self, ask: &Ask<'_>, view: &View<'_>) -> Option<Grant> {
        self.serving.next(ask, view)
    }
}
