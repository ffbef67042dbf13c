//! A flow as a tree of chains of tasks.
//!
//! Of the phases that wait for a phase only the one with the longest tail is kept, which makes the flow an in-tree; the
//! others remain as heads. Of a phase, tasks of about one length are a group; a group of n tasks, at most m at a time,
//! is m chains: in order of start, a task begins no earlier than the one m places before it ends. They are ⌈n/m⌉ or one
//! less long, and chains of one length are a bundle.

use slackline_model::instance::Phase;
use slackline_model::{Cluster, FlowId, Instance, JobId, PhaseId, Span};

use crate::paths::Paths;

/// Most groups of a phase.
const GROUPS: usize = 8;

/// Chains of equal length of one phase, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bundle {
    /// Index of the lane.
    pub(super) lane: usize,
    /// How many chains.
    pub(super) chains: u32,
    /// Tasks in each.
    pub(super) waves: u32,
    /// What a task takes at least.
    pub(super) task: f64,
    /// When the first tasks start at the earliest, after the start of the workload.
    pub(super) head: f64,
    /// Longest path after the phase.
    pub(super) tail: f64,
}

/// A phase.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// Its chains. The first bundle is the longest: it waits for the phases before this one.
    pub(super) bundles: Vec<Bundle>,
    /// By how much the phase takes longer at least than the first bundle.
    pub(super) slack: f64,
    /// The node that waits for it; `None` if the flow may be complete with it.
    pub(super) next: Option<usize>,
}

/// The nodes of a flow, each after those that it waits for. `None` if work is not cut into tasks.
pub(super) fn of_flow(instance: &Instance, paths: &Paths, flow: FlowId) -> Option<Vec<Node>> {
    let order: Vec<PhaseId> =
        instance.topological_of(flow).iter().flat_map(|&job| instance.job(job).phases()).collect();
    let first = order.iter().map(|p| p.index()).min().unwrap_or(0);
    let mut place = vec![0; order.len()];
    for (k, phase) in order.iter().enumerate() {
        place[phase.index() - first] = k;
    }
    let groups: Option<Vec<Vec<Group>>> = order.iter().map(|&phase| groups(instance, phase)).collect();
    let groups = groups?;
    let length = |k: usize| {
        let longest = groups[k].iter().map(Group::length).fold(0.0, f64::max);
        longest.max(paths.elapsed[order[k]])
    };
    let lengths: Vec<f64> = (0..order.len()).map(length).collect();
    let after: Vec<Vec<usize>> =
        order.iter().map(|&p| after(instance, p).map(|next| place[next.index() - first]).collect()).collect();
    let mut tails = vec![0.0; order.len()];
    let mut next = vec![None; order.len()];
    for k in (0..order.len()).rev() {
        let from = |n: usize| lengths[n] + tails[n];
        next[k] = after[k].iter().copied().max_by(|&a, &b| from(a).total_cmp(&from(b)).then(b.cmp(&a)));
        tails[k] = next[k].map_or(0.0, from);
    }
    let mut heads = vec![instance.flow(flow).release.seconds(); order.len()];
    for k in 0..order.len() {
        for &n in &after[k] {
            heads[n] = f64::max(heads[n], heads[k] + lengths[k]);
        }
    }
    let node = |(k, groups): (usize, Vec<Group>)| {
        let lane = instance.lane_of(order[k]).index();
        let mut bundles: Vec<Bundle> =
            groups.iter().flat_map(|group| group.bundles(lane, heads[k], tails[k])).collect();
        bundles.sort_by(|a, b| b.length().total_cmp(&a.length()));
        let longest = bundles.first().map_or(0.0, Bundle::length);
        Node { bundles, slack: lengths[k] - longest, next: next[k] }
    };
    Some(groups.into_iter().enumerate().map(node).collect())
}

/// The phases that wait for a phase.
fn after(instance: &Instance, phase: PhaseId) -> impl Iterator<Item = PhaseId> {
    let id: JobId = instance.phase(phase).job;
    let job = instance.job(id);
    let reduce = job.reduce.filter(|_| job.map == Some(phase));
    let later = if reduce.is_some() { &[][..] } else { &job.before[..] };
    reduce.into_iter().chain(later.iter().filter_map(|&b| instance.job(b).phases().next()))
}

impl Bundle {
    /// Seconds from the first start to the last end, at least.
    pub(super) fn length(&self) -> f64 {
        f64::from(self.waves) * self.task
    }
}

/// Tasks of a phase that are taken to be equally long.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Group {
    tasks: u32,
    /// The shortest of them, in seconds.
    seconds: f64,
    /// How many run at a time at most.
    at_once: u32,
}

impl Group {
    fn waves(&self) -> u32 {
        self.tasks.div_ceil(self.at_once)
    }

    fn length(&self) -> f64 {
        f64::from(self.waves()) * self.seconds
    }

    /// As many chains of full length as the last wave has tasks, and the others.
    fn bundles(&self, lane: usize, head: f64, tail: f64) -> impl Iterator<Item = Bundle> {
        let waves = self.waves();
        let long = self.tasks - (waves - 1) * self.at_once;
        let bundle = move |(chains, waves)| Bundle { lane, chains, waves, task: self.seconds, head, tail };
        let both = [(long, waves), (self.at_once - long, waves - 1)];
        both.into_iter().filter(|&(chains, waves)| chains > 0 && waves > 0).map(bundle)
    }
}

/// The groups of a phase, tasks of no length left out; `None` if it has work that is not cut.
fn groups(instance: &Instance, id: PhaseId) -> Option<Vec<Group>> {
    let phase = instance.phase(id);
    if phase.is_without_length() {
        return Some(Vec::new());
    }
    let cluster = instance.cluster();
    let mut lengths: Vec<(f64, u32)> = Vec::new();
    for run in phase.tasks()?.runs() {
        lengths.push((least(cluster, phase, run.span), run.count));
    }
    lengths.retain(|&(seconds, _)| seconds > 0.0);
    lengths.sort_by(|a, b| a.0.total_cmp(&b.0));
    lengths.dedup_by(|next, last| {
        let same = next.0 == last.0;
        last.1 += if same { next.1 } else { 0 };
        same
    });
    let slots = cluster.slots(cluster.lane_of(phase.kind));
    let group = |list: &[(f64, u32)]| {
        let tasks = list.iter().map(|&(_, count)| count).sum();
        Group { tasks, seconds: list[0].0, at_once: phase.cap.min(slots).min(tasks).max(1) }
    };
    Some(parts(&lengths).into_iter().map(group).collect())
}

/// Sorted lengths in at most [`GROUPS`] parts of about the same loss by rounding down: cut where lengths grow most.
fn parts(lengths: &[(f64, u32)]) -> Vec<&[(f64, u32)]> {
    let mut cuts: Vec<usize> = (1..lengths.len()).collect();
    let growth = |k: &usize| lengths[*k].0 / lengths[k - 1].0;
    cuts.sort_by(|a, b| growth(b).total_cmp(&growth(a)).then(a.cmp(b)));
    cuts.truncate(GROUPS - 1);
    cuts.sort_unstable();
    cuts.push(lengths.len());
    let mut from = 0;
    let part = |to| {
        let part = &lengths[from..to];
        from = to;
        part
    };
    cuts.into_iter().map(part).filter(|part| !part.is_empty()).collect()
}

/// The least seconds for which a task holds a slot, as it is or rounded to whole microseconds.
fn least(cluster: &Cluster, phase: &Phase, span: Span) -> f64 {
    let fastest = cluster.fastest(cluster.lane_of(phase.kind), 1);
    span.at_speed_nearest(fastest).seconds().min(span.seconds() / fastest)
}
