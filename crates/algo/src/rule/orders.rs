//! The table of rules: each puts the live flows in an order, by what is left of them.

use slackline_model::{Combine, CostFn, Metric, Objective, Time};
use slackline_policy::View;
use slackline_relax::pb;

use super::residual::{Residual, ResidualWork, due};
use crate::classic::rules::{self, Job, sorted};
use crate::ordering;

/// A flow as the rules see it: times in seconds, instants from now on.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Its number among all of them; that of a live flow is its place in [`Residual::flows`].
    pub number: u32,
    /// What is left of it.
    pub left: ResidualWork,
    /// Its release: after now of one that was announced.
    pub release: f64,
    /// Its due date; infinite without one.
    pub due: f64,
    pub weight: f64,
    /// What a second more costs, if it always costs the same; else its weight.
    pub slope: f64,
    /// What it costs to complete it, by the instant since the start of the workload.
    pub cost: &'a CostFn,
}

/// What a rule sees: the live flows, the oldest first.
#[derive(Clone, Debug)]
pub struct RuleContext<'a> {
    pub flows: Vec<Candidate<'a>>,
    /// The instant: seconds since the start of the workload.
    pub now: f64,
    /// Seconds from now until all work is done that is there.
    pub end: f64,
}

/// The parameters of rules that have some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleParams {
    /// How far ATC looks ahead, in mean areas.
    pub k: f64,
    /// Which level of the largest cost `due` aims at: 0 the least that is possible, 1 the largest that can
    /// come.
    pub x: f64,
    /// Whether `due` counts back from the date what is left of the flow.
    pub tail: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub name: &'static str,
    /// How it orders flows.
    pub how: RuleKind,
}

/// How a rule orders flows; ties go to the flow that was released first.
#[derive(Clone, Copy, Debug)]
pub enum RuleKind {
    /// The smallest key first. Keys of two flows differ by what they do at any other time, as long as neither
    /// changes.
    Key(fn(&Candidate<'_>) -> f64),
    /// The smallest key first. It also changes with the time.
    TimedKey(fn(&Candidate<'_>) -> f64),
    /// As it says.
    Order(fn(&RuleContext<'_>, RuleParams) -> Vec<usize>),
    /// None is before another: the phase with the longest tail is first, of whichever flow.
    Together,
}

pub const RULES: &[Rule] = &[
    Rule { name: "fifo", how: RuleKind::Key(|flow| flow.release) },
    Rule { name: "edf", how: RuleKind::Key(|flow| flow.due) },
    Rule { name: "srpt", how: RuleKind::Key(|flow| flow.left.rem) },
    Rule { name: "wspt", how: RuleKind::Key(|flow| over(flow.left.rem, flow.weight)) },
    Rule { name: "lrpt", how: RuleKind::Key(|flow| -flow.left.rem) },
    Rule { name: "area", how: RuleKind::Key(|flow| over(flow.left.area, flow.weight)) },
    Rule { name: "slope", how: RuleKind::Key(|flow| over(flow.left.area, flow.slope)) },
    Rule { name: "johnson", how: RuleKind::Key(johnson) },
    Rule { name: "lst", how: RuleKind::TimedKey(|flow| flow.due - flow.left.rem) },
    Rule {
        name: "atc",
        how: RuleKind::Order(|scene, knobs| rules::apparent_tardiness_cost(&scene.jobs(), 1.0, knobs.k)),
    },
    Rule {
        name: "moore",
        how: RuleKind::Order(|scene, _| rules::moore(&scene.jobs(), 1.0, |job| job.ratio)),
    },
    Rule { name: "worth", how: RuleKind::Order(|scene, _| rules::worth(&scene.jobs(), 1.0)) },
    Rule { name: "mk-tct-jr", how: RuleKind::Order(two_classes) },
    Rule { name: "woha", how: RuleKind::TimedKey(|flow| -flow.left.lag) },
    Rule { name: "dmrs", how: RuleKind::Order(by_program) },
    Rule { name: "due", how: RuleKind::Order(by_level) },
    Rule { name: "critical-path", how: RuleKind::Together },
];

/// The name of the rule for an objective. It needs to know only roughly how much work a flow has left.
pub fn rule_for(objective: Objective) -> &'static str {
    match (objective.combine, objective.metric) {
        (Combine::Max, _) => "due",
        (Combine::Sum, Metric::Tardy | Metric::Sla) => "moore",
        (Combine::Sum, Metric::Tardiness | Metric::Piecewise) => "atc",
        (Combine::Sum, _) => "slope",
    }
}

/// The names of all rules.
pub const NAMES: &[&str] = &{
    let mut names = [""; RULES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = RULES[at].name;
        at += 1;
    }
    names
};

impl Rule {
    /// The rule of that name.
    pub fn named(name: &str) -> Option<Self> {
        RULES.iter().copied().find(|rule| rule.name == name)
    }

    /// Its name with those parameters that it has, in the words of the policy `rule`, which `rule:order=`
    /// before it makes of it.
    pub fn spelled(self, knobs: RuleParams) -> String {
        let RuleParams { k, x, tail } = knobs;
        match self.name {
            "atc" => format!("atc:k={k}"),
            "due" => format!("due:x={x}:tail={}", if tail { "yes" } else { "no" }),
            name => name.to_owned(),
        }
    }

    /// Whether it looks at how far flows are behind their plans ([`Residual::with_plans`]).
    pub fn needs_plans(self) -> bool {
        self.name == "woha"
    }

    /// The rank of each flow of the scene: the smallest is served first. O(n log n).
    pub fn ranks(self, scene: &RuleContext<'_>, knobs: RuleParams) -> Vec<u32> {
        let order = match self.how {
            RuleKind::Key(key) | RuleKind::TimedKey(key) => {
                sorted(scene.flows.len(), |at| key(&scene.flows[at]))
            }
            RuleKind::Order(order) => order(scene, knobs),
            RuleKind::Together => return vec![0; scene.flows.len()],
        };
        let mut ranks = vec![0; order.len()];
        (0..).zip(order).for_each(|(rank, at)| ranks[at] = rank);
        ranks
    }
}

impl<'a> Candidate<'a> {
    /// A live flow, with instants from `now` on.
    pub(super) fn of(number: u32, left: &ResidualWork, view: &View<'a>, now: Time) -> Self {
        let (flow, now) = (view.instance.flow(left.flow), now.seconds());
        Self {
            number,
            left: *left,
            release: flow.release.seconds() - now,
            due: due(left.flow, view) - now,
            weight: flow.weight,
            slope: flow.cost.as_linear().map_or(flow.weight, |(slope, _)| slope),
            cost: &flow.cost,
        }
    }
}

impl<'a> RuleContext<'a> {
    /// What is to be ordered now: the live flows, and some that are still to come.
    pub fn of(
        residual: &Residual,
        view: &View<'a>,
        announced: impl IntoIterator<Item = Candidate<'a>>,
    ) -> Self {
        let now = view.now.seconds();
        let candidate = |(number, left): (u32, &ResidualWork)| Candidate::of(number, left, view, view.now);
        let mut flows: Vec<Candidate<'a>> = (0..).zip(&residual.flows).map(candidate).collect();
        flows.extend(announced);
        flows.sort_by(|a, b| a.release.total_cmp(&b.release).then(a.number.cmp(&b.number)));
        let stages = flows.iter().fold([0.0, 0.0], |[map, reduce], flow| {
            [map + flow.left.stages[0], reduce + flow.left.stages[1]]
        });
        let work = if view.instance.cluster().is_map_reduce() {
            stages[0].max(stages[1])
        } else {
            stages[0] + stages[1]
        };
        let end = flows.iter().map(|flow| flow.release.max(0.0) + flow.left.rem).fold(work, f64::max);
        Self { flows, now, end }
    }

    /// The flows as jobs on one machine, which all slots together are.
    fn jobs(&self) -> Vec<Job> {
        let job = |flow: &Candidate<'_>| {
            let ResidualWork { area, rem, .. } = flow.left;
            Job { work: area, alone: rem, due: flow.due, ratio: over(area, flow.weight) }
        };
        self.flows.iter().map(job).collect()
    }
}

/// The remaining work over its worth; infinite for a worth of 0.
fn over(left: f64, worth: f64) -> f64 {
    if worth > 0.0 { left / worth } else { f64::INFINITY }
}

/// Johnson's rule for two stages: those with the shorter first stage by it, ascending; then the others by the
/// second, descending. As one key that ascends through both.
fn johnson(flow: &Candidate<'_>) -> f64 {
    let [map, reduce] = flow.left.stages;
    if map <= reduce { -1.0 / map } else { 1.0 / reduce }
}

/// MK_TCT_JR on what is left: flows whose stages together take no longer than the geometric mean first, then
/// the others, each by Johnson's rule.
fn two_classes(scene: &RuleContext<'_>, _: RuleParams) -> Vec<usize> {
    let stages: Vec<[f64; 2]> = scene.flows.iter().map(|flow| flow.left.stages).collect();
    ordering::orders::order_of(ordering::orders::Rule::MkTctJr, &stages, |[map, reduce]| map + reduce)
}

/// By C_j − p_j/(2μ_j) of LP-MapReduce (Algorithm 1, line 2), all slots together being the machines. O(n log
/// n).
fn by_program(scene: &RuleContext<'_>, _: RuleParams) -> Vec<usize> {
    let job = |flow: &Candidate<'_>| {
        let ResidualWork { area, rem, .. } = flow.left;
        pb::Job { work: area, weight: flow.slope, floor: flow.release.max(0.0) + rem, tail: rem / 2.0 }
    };
    let jobs: Vec<pb::Job> = scene.flows.iter().map(job).collect();
    let completion = pb::solve(&jobs, 1.0).completion;
    sorted(jobs.len(), |at| completion[at] - jobs[at].tail)
}

/// By the latest completion at which the cost stays under a level between the least that the largest cost can
/// be, each flow alone, and what it is if each were the last to complete.
fn by_level(scene: &RuleContext<'_>, knobs: RuleParams) -> Vec<usize> {
    let largest = |at: &dyn Fn(&Candidate<'_>) -> f64| {
        scene.flows.iter().map(|flow| flow.cost.eval(scene.now + at(flow))).fold(f64::NEG_INFINITY, f64::max)
    };
    let (low, high) = (largest(&|flow| flow.left.rem), largest(&|_| scene.end));
    let level = low + knobs.x * (high - low);
    sorted(scene.flows.len(), |at| {
        let flow = &scene.flows[at];
        let latest = flow.cost.latest(level).unwrap_or(f64::NEG_INFINITY);
        if knobs.tail { latest - flow.left.rem } else { latest }
    })
}

#[cfg(test)]
mod tests;
