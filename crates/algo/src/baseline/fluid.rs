//! FIFO, Fair and EDF as plans for divisible work, on whole slots of one speed.
//!
//! **Paper**: FLEX §4 and FlowFlex §5.1 compare their plans with FIFO and Fair made this way.
//!
//! **Problem**: flows of any number of jobs, map and reduce slots or generic slots, machines of one speed;
//! work can be divided at will, slots are whole.
//! **Idea** 1. At every event (a release, a phase done) the slots of each slot kind are divided again. 2.
//! FIFO and EDF give every ready phase all it can hold, in their order. 3. Fair gives every ready phase its
//! share of the water-line. Shares have fractions and slots have none, so a phase whose fraction was rounded
//! down gets it back later. While there are fractions, they are rounded again at least `TURNS` times in the
//! least time that all work takes, and the phase that is owed most comes first.
//!
//! **Guarantee**: that of the policies; Fair keeps minima. **Complexity**: O(n log n) an event for n ready
//! phases, two events per phase and `TURNS` per slot kind; also one for each task while minima exceed the
//! slots. **Deviations**: none.

use slackline_model::id::TiVec;
use slackline_model::schedule::Allocation;
use slackline_model::{Instance, JobId, Key, PhaseId};
use slackline_policy::minima;

use super::shares::by_flow;
use super::{ShareUnit, dates};
use crate::classic::fluid::{self, Graph, Node, Progress, Rounding, by_slot_kind, execute, in_order};
use crate::classic::{Claim, water_line};
use crate::phase_graph;
use crate::registry::Refused;

/// Which of the baselines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The oldest job or flow first.
    Fifo(ShareUnit),
    /// Equal shares for jobs or flows.
    Fair(ShareUnit),
    /// The earliest date first.
    Edf(dates::Dates),
}

/// The number of times that fractions of slots change hands during all work on all slots.
const TURNS: f64 = 100.0;

/// Slots of every phase over time, by phase and start.
///
/// # Errors
/// On machines of different speeds.
pub fn plan(instance: &Instance, rule: Rule) -> Result<Vec<Allocation>, Refused> {
    let policy = match rule {
        Rule::Fifo(_) => "fifo",
        Rule::Fair(_) => "fair",
        Rule::Edf(_) => "edf",
    };
    let speed = instance.cluster().uniform_speed().ok_or(Refused::MixedSpeeds { policy })?;
    let graph = phase_graph::of(instance, speed);
    let paths = match rule {
        Rule::Edf(dates) if dates.slack => paths(instance, &graph),
        _ => vec![0.0; instance.phases().len()].into(),
    };
    let dates = Dates { instance, rule, since: vec![None; instance.jobs().len()].into(), paths };
    let executed = match rule {
        Rule::Fifo(_) | Rule::Edf(_) => execute(&graph, &mut Greedy { graph: &graph, dates }),
        Rule::Fair(by) => execute(&graph, &mut Shares::new(&graph, dates, by)),
    };
    Ok(phase_graph::allocations(executed.rows))
}

/// The order in which phases are served: two dates, the number of the flow, when the job became ready, the
/// number of the job; then the number of the phase.
type Order = ([Key; 2], u32, Key, u32);

/// When jobs became ready, and the resulting order of their phases.
struct Dates<'a> {
    instance: &'a Instance,
    rule: Rule,
    since: TiVec<JobId, Option<f64>>,
    /// Seconds from the start of each phase to the end of its flow, if dates need them.
    paths: TiVec<PhaseId, f64>,
}

/// The paths from all phases, at their caps.
fn paths(instance: &Instance, graph: &Graph) -> TiVec<PhaseId, f64> {
    let mut paths: TiVec<PhaseId, f64> = vec![0.0; instance.phases().len()].into();
    for flow in instance.flows().keys() {
        let seconds = |phase: PhaseId| {
            let node = graph.node(phase.index());
            let fluid = node.work / f64::from(node.cap.max(1));
            node.longest.map_or(fluid, |longest| fluid.max(longest))
        };
        for (phase, path) in dates::paths(instance, flow, seconds) {
            paths[phase] = path;
        }
    }
    paths
}

impl Dates<'_> {
    fn order(&mut self, phase: PhaseId, now: f64) -> Order {
        let (id, job) = (self.instance.flow_of(phase), self.instance.phase(phase).job);
        let flow = self.instance.flow(id);
        let (since, release) = (*self.since[job].get_or_insert(now), flow.release.seconds());
        let dates = match self.rule {
            Rule::Fifo(ShareUnit::Job) => [since, release],
            Rule::Fifo(ShareUnit::Flow) => [release, release],
            Rule::Edf(dates) => [dates.of(flow, self.paths[phase]), release],
            Rule::Fair(_) => [0.0, 0.0],
        };
        (dates.map(Key::new), id.0, Key::new(since), job.0)
    }
}

/// FIFO and EDF: each phase gets all it can hold, in order.
struct Greedy<'a> {
    graph: &'a Graph,
    dates: Dates<'a>,
}

impl fluid::Rule for Greedy<'_> {
    type Node = Node;
    type Key = Order;
    const ROUNDING: Rounding = Rounding::Instants;

    fn key(&mut self, node: usize, now: f64) -> Order {
        self.dates.order(PhaseId::from(node), now)
    }

    fn grant(&mut self, ready: &[u32], _: &Progress<'_>, given: &mut Vec<u32>) {
        in_order(self.graph, ready, given);
    }
}

/// Fair: whole slots in the proportion of fractional shares.
struct Shares<'a> {
    graph: &'a Graph,
    dates: Dates<'a>,
    by: ShareUnit,
    /// How long fractions stay rounded, seconds.
    turn: f64,
    /// The share of each phase, fraction included.
    share: Vec<f64>,
    /// Slot-seconds of the shares of each phase that it has not received yet.
    owed: Vec<f64>,
    /// Slot kinds whose minima take all slots.
    crowded: [bool; 2],
    /// Slot kinds whose shares have fractions.
    fractions: [bool; 2],
}

impl<'a> Shares<'a> {
    fn new(graph: &'a Graph, dates: Dates<'a>, by: ShareUnit) -> Self {
        let (instance, cluster) = (dates.instance, dates.instance.cluster());
        let work: f64 = instance.flows().iter().map(|flow| flow.work.slot_seconds()).sum();
        let capacity: f64 = cluster.slot_kinds().iter().map(|&slot_kind| cluster.capacity(slot_kind)).sum();
        let n = graph.nodes().len();
        Self {
            graph,
            dates,
            by,
            turn: work / capacity / TURNS,
            share: vec![0.0; n],
            owed: vec![0.0; n],
            crowded: [false; 2],
            fractions: [false; 2],
        }
    }

    /// The claims of the ready phases of a slot kind.
    fn claims(&mut self, slot_kind: usize, ready: &[u32], progress: &Progress<'_>) -> Vec<(PhaseId, Claim)> {
        let instance = self.dates.instance;
        let mut tasks: Vec<(PhaseId, u32)> =
            ready.iter().map(|&node| (PhaseId(node), progress.tasks(node as usize))).collect();
        tasks.sort_unstable();
        let minima = minima::among(instance, instance.cluster().slot_kinds()[slot_kind], &tasks);
        let held: u64 = minima.iter().map(|m| u64::from(m.1)).sum();
        self.crowded[slot_kind] = held >= u64::from(self.graph.slots()[slot_kind]);
        let claim = |&node: &u32| {
            let phase = PhaseId(node);
            let min = minima.binary_search_by_key(&phase, |m| m.0).map_or(0, |at| minima[at].1);
            let weight = instance.flow(instance.flow_of(phase)).weight;
            let max = self.graph.node(node as usize).cap.max(min);
            (phase, Claim { min: f64::from(min), max: f64::from(max), weight })
        };
        ready.iter().map(claim).collect()
    }

    /// Shares rounded down; the remaining slots go by the owed amounts, then in order.
    fn whole(&mut self, slot_kind: usize, ready: &[u32], progress: &Progress<'_>) -> Vec<u32> {
        let claims = self.claims(slot_kind, ready, progress);
        let total = self.graph.slots()[slot_kind];
        let shares = match self.by {
            ShareUnit::Job => {
                let claims: Vec<Claim> = claims.iter().map(|claim| claim.1).collect();
                water_line(&claims, f64::from(total))
            }
            ShareUnit::Flow => by_flow(&claims, f64::from(total), self.dates.instance),
        };
        let whole = |share: f64| if share.fract() > 1.0 - 1e-9 { share.ceil() } else { share.floor() };
        let mut slots: Vec<u32> = shares.iter().map(|&share| whole(share) as u32).collect();
        for (&node, &share) in ready.iter().zip(&shares) {
            self.share[node as usize] = share;
        }
        let fraction: Vec<f64> = shares.iter().zip(&slots).map(|(s, &whole)| s - f64::from(whole)).collect();
        self.fractions[slot_kind] = fraction.iter().any(|&fraction| fraction > 1e-9);
        let owed = |k: usize| self.owed[ready[k] as usize] + fraction[k].max(0.0) * self.turn;
        let mut order: Vec<usize> = (0..ready.len()).collect();
        order.sort_by(|&a, &b| owed(b).total_cmp(&owed(a)));
        let mut left = total.saturating_sub(slots.iter().sum());
        // One each first; more only if no weight claims the remaining slots.
        for most in [1, u32::MAX] {
            for &k in &order {
                let cap = self.graph.node(ready[k] as usize).cap;
                let more = cap.saturating_sub(slots[k]).min(left).min(most);
                slots[k] += more;
                left -= more;
            }
        }
        slots
    }
}

impl fluid::Rule for Shares<'_> {
    type Node = Node;
    type Key = Order;
    const ROUNDING: Rounding = Rounding::Instants;

    fn key(&mut self, node: usize, now: f64) -> Order {
        self.dates.order(PhaseId::from(node), now)
    }

    fn grant(&mut self, ready: &[u32], progress: &Progress<'_>, given: &mut Vec<u32>) {
        by_slot_kind(self.graph, ready, given, |slot_kind, ready| self.whole(slot_kind, ready, progress));
    }

    /// The next time at which fractions change hands, or at which a phase of a crowded slot kind has one task
    /// less and may have a lower guarantee.
    fn look(&self, ready: &[u32], given: &[u32], progress: &Progress<'_>) -> f64 {
        let turn = if self.fractions.contains(&true) { progress.now() + self.turn } else { f64::INFINITY };
        let nodes = ready.iter().map(|&node| node as usize).zip(given);
        let crowded = nodes.filter(|&(node, _)| self.crowded[self.graph.node(node).slot_kind]);
        crowded.filter_map(|(node, &slots)| progress.task_less(node, slots)).fold(turn, f64::min)
    }

    fn pass(&mut self, node: usize, slots: u32, seconds: f64) {
        self.owed[node] += (self.share[node] - f64::from(slots)) * seconds;
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::Draft;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    /// Flows of a map phase each, by work, weight and deadline, on generic slots.
    fn instance(slots: u32, flows: &[(f64, f64, Option<f64>)]) -> Instance {
        let flow = |(k, &(work, weight, deadline)): (usize, &(f64, f64, Option<f64>))| {
            let map = Some(TasksDraft::Work { work, tasks: None }.into());
            let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
            FlowDraft { weight, deadline, ..FlowDraft::new(k.to_string(), vec![job]) }
        };
        let flows = flows.iter().enumerate().map(flow).collect();
        let slots = Slots::Generic(slots);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
    }

    fn ends(instance: &Instance, rule: Rule) -> Vec<f64> {
        let mut ends = vec![0.0f64; instance.flows().len()];
        for row in plan(instance, rule).unwrap() {
            let end = &mut ends[instance.flow_of(row.phase).index()];
            *end = end.max(row.end);
        }
        ends
    }

    #[test]
    fn orders_serve_one_after_the_other() {
        let instance = instance(3, &[(30.0, 1.0, None), (6.0, 1.0, Some(9.0)), (3.0, 1.0, Some(1.0))]);
        assert_eq!(ends(&instance, Rule::Fifo(ShareUnit::Job)), [10.0, 12.0, 13.0]);
        assert_eq!(ends(&instance, Rule::Edf(dates::Dates::DEADLINES)), [13.0, 3.0, 1.0]);
    }

    #[test]
    fn edf_counts_slack_and_weights_if_the_parameters_say_so() {
        // On one slot, 8 s due at 11 and 1 s due at 10: the long one must start at 3, the short one at 9.
        let instance = instance(1, &[(8.0, 1.0, Some(11.0)), (1.0, 2.0, Some(10.0))]);
        assert_eq!(ends(&instance, Rule::Edf(dates::Dates::DEADLINES)), [9.0, 1.0]);
        let slack = dates::Dates { slack: true, weights: false };
        assert_eq!(ends(&instance, Rule::Edf(slack)), [8.0, 9.0]);
        // Divided by its weight the short one's time is 5 s, of which it needs 1.
        let both = dates::Dates { slack: true, weights: true };
        assert_eq!(ends(&instance, Rule::Edf(both)), [8.0, 9.0], "3 is before 4");
        let weights = dates::Dates { slack: false, weights: true };
        assert_eq!(ends(&instance, Rule::Edf(weights)), [9.0, 1.0]);
    }

    #[test]
    fn fair_shares_whole_slots_by_turns() {
        // One slot for two: both are done at 10 if work is divisible, at most a turn of 0.1 s apart in whole
        // slots.
        let equal = instance(1, &[(5.0, 1.0, None), (5.0, 1.0, None)]);
        let found = ends(&equal, Rule::Fair(ShareUnit::Job));
        assert!(found.iter().all(|end| (9.85..10.01).contains(end)), "{found:?}");
        // Shares 1 and 2 of 3 slots: the second is done at 3, then the first has all.
        let weighted = instance(3, &[(6.0, 1.0, None), (6.0, 2.0, None)]);
        assert_eq!(ends(&weighted, Rule::Fair(ShareUnit::Flow)), [4.0, 3.0]);
    }

    #[test]
    fn flows_of_no_weight_get_what_is_left() {
        let instance = instance(2, &[(4.0, 0.0, None), (4.0, 1.0, None), (2.0, 0.0, None)]);
        let found = ends(&instance, Rule::Fair(ShareUnit::Job));
        assert!(found[1] == 2.0 && found.iter().all(|end| *end <= 5.0), "{found:?}");
    }
}
