//! A flow as a tree of chains of tasks.
//!
//! Among the successors of a phase only the one with the longest tail remains, which makes the flow an
//! in-tree; the others remain as heads. Tasks of a phase of about one length are a group. A group of n tasks,
//! at most m at a time, is m chains: in order of start, a task begins at the end of the task m places before
//! it or later. Chains have ⌈n/m⌉ tasks or one less; chains of one length are a bundle. On machines of mixed
//! speed, lengths are those on the fastest slots.

use slackline_model::{Cluster, FlowId, Instance, JobId, PhaseId, SlotKind, Span};

use crate::paths::Paths;

/// Most groups of a phase.
const GROUPS: usize = 8;
/// Most speeds of a slot kind with separate prices.
const SPEEDS: usize = 4;

/// Slots of one slot kind and about one speed, with one price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    serving: SlotKind,
    /// The highest speed among them.
    pub(super) speed: f64,
    pub(super) slots: f64,
}

impl Kind {
    /// The slot kind that it belongs to.
    pub(super) fn serving(&self) -> SlotKind {
        self.serving
    }

    /// Whether slots of both serve the same phases.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.serving == other.serving
    }
}

/// The kinds of slots by slot kind, the fastest first.
pub(super) fn kinds(cluster: &Cluster) -> Vec<Kind> {
    let mut all = Vec::new();
    for &slot_kind in cluster.slot_kinds() {
        let (mut speeds, mut slot): (Vec<(f64, u32)>, u32) = (Vec::new(), 0);
        while slot < cluster.slots(slot_kind) {
            let (speed, next) = cluster.speed_of(slot_kind, slot);
            speeds.push((speed, next - slot));
            slot = next;
        }
        speeds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let kind = |list: &[(f64, u32)]| Kind {
            serving: slot_kind,
            speed: list[list.len() - 1].0,
            slots: list.iter().map(|&(_, slots)| f64::from(slots)).sum(),
        };
        all.extend(parts(&speeds, SPEEDS, |speed| speed.0).into_iter().rev().map(kind));
    }
    all
}

/// Each slot kind with its fastest slots only, in the number that does the same work: a start for prices, but
/// no bound.
pub(super) fn lumped(kinds: &[Kind]) -> Vec<Kind> {
    let lump = |alike: &[Kind]| {
        let work: f64 = alike.iter().map(|kind| kind.slots * kind.speed).sum();
        Kind { slots: work / alike[0].speed, ..alike[0] }
    };
    kinds.chunk_by(Kind::is_beside).map(lump).collect()
}

/// A kind of slots and the least seconds for which a task holds one of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hold {
    /// Index of the kind.
    pub(super) kind: usize,
    pub(super) seconds: f64,
}

/// Chains of equal length of one phase, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bundle {
    pub(super) chains: u32,
    /// Tasks in each chain.
    pub(super) waves: u32,
    /// The kinds of slots for its tasks, the fastest first.
    pub(super) holds: Vec<Hold>,
    /// The earliest start of the first tasks, after the start of the workload.
    pub(super) head: f64,
    /// Longest path after the phase.
    pub(super) tail: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// The first bundle is the longest: it waits for the phases before this one.
    pub(super) bundles: Vec<Bundle>,
    /// Least time from the end of the first bundle to the end of the phase.
    pub(super) slack: f64,
    /// The node that waits for it; `None` if the flow may complete with it.
    pub(super) next: Option<usize>,
}

/// The nodes of a flow, each after its predecessors. `None` if work is not divided into tasks.
pub(super) fn of_flow(instance: &Instance, kinds: &[Kind], paths: &Paths, flow: FlowId) -> Option<Vec<Node>> {
    let order: Vec<PhaseId> =
        instance.topological_of(flow).iter().flat_map(|&job| instance.job(job).phases()).collect();
    let first = order.iter().map(|p| p.index()).min().unwrap_or(0);
    let mut place = vec![0; order.len()];
    for (k, phase) in order.iter().enumerate() {
        place[phase.index() - first] = k;
    }
    let groups: Option<Vec<Vec<Group>>> = order.iter().map(|&phase| groups(instance, kinds, phase)).collect();
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
        let mut bundles: Vec<Bundle> =
            groups.iter().flat_map(|group| group.bundles(heads[k], tails[k])).collect();
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
    /// Least seconds of a task.
    pub(super) fn task(&self) -> f64 {
        self.holds[0].seconds
    }

    /// Seconds from the first start to the last end, at least.
    pub(super) fn length(&self) -> f64 {
        f64::from(self.waves) * self.task()
    }
}

/// Tasks of a phase that count as equally long.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    tasks: u32,
    /// Times of the shortest of them on each kind of slots.
    holds: Vec<Hold>,
    /// Most tasks that run at a time.
    at_once: u32,
}

impl Group {
    fn waves(&self) -> u32 {
        self.tasks.div_ceil(self.at_once)
    }

    fn length(&self) -> f64 {
        f64::from(self.waves()) * self.holds[0].seconds
    }

    /// As many chains of full length as the last wave has tasks, and shorter chains.
    fn bundles(&self, head: f64, tail: f64) -> impl Iterator<Item = Bundle> {
        let waves = self.waves();
        let long = self.tasks - (waves - 1) * self.at_once;
        let bundle = move |(chains, waves)| Bundle { chains, waves, holds: self.holds.clone(), head, tail };
        let both = [(long, waves), (self.at_once - long, waves - 1)];
        both.into_iter().filter(|&(chains, waves)| chains > 0 && waves > 0).map(bundle)
    }
}

/// The groups of a phase, without tasks of length 0; `None` if it has work that is not divided.
fn groups(instance: &Instance, kinds: &[Kind], id: PhaseId) -> Option<Vec<Group>> {
    let phase = instance.phase(id);
    if phase.is_without_length() {
        return Some(Vec::new());
    }
    let (cluster, slot_kind) = (instance.cluster(), instance.slot_kind_of(id));
    let own: Vec<(usize, &Kind)> =
        kinds.iter().enumerate().filter(|(_, kind)| kind.serving == slot_kind).collect();
    let fastest = own.first()?.1.speed;
    let mut spans: Vec<(Span, u32)> = phase.tasks()?.runs().iter().map(|run| (run.span, run.count)).collect();
    spans.retain(|&(span, _)| least(fastest, span) > 0.0);
    spans.sort();
    spans.dedup_by(|next, last| {
        let same = next.0 == last.0;
        last.1 += if same { next.1 } else { 0 };
        same
    });
    let slots = cluster.slots(slot_kind);
    let group = |list: &[(Span, u32)]| {
        let tasks = list.iter().map(|&(_, count)| count).sum();
        let hold = |&(kind, of): &(usize, &Kind)| Hold { kind, seconds: least(of.speed, list[0].0) };
        let at_once = phase.cap.min(slots).min(tasks).max(1);
        Group { tasks, holds: own.iter().map(hold).collect(), at_once }
    };
    Some(parts(&spans, GROUPS, |span| span.0.0 as f64).into_iter().map(group).collect())
}

/// Divides a sorted list into at most `most` parts, cut at its largest steps.
fn parts<T>(list: &[T], most: usize, size: impl Fn(&T) -> f64) -> Vec<&[T]> {
    let mut cuts: Vec<usize> = (1..list.len()).collect();
    let growth = |k: &usize| size(&list[*k]) / size(&list[k - 1]);
    cuts.sort_by(|a, b| growth(b).total_cmp(&growth(a)).then(a.cmp(b)));
    cuts.truncate(most - 1);
    cuts.sort_unstable();
    cuts.push(list.len());
    let mut from = 0;
    let part = |to| {
        let part = &list[from..to];
        from = to;
        part
    };
    cuts.into_iter().map(part).filter(|part| !part.is_empty()).collect()
}

/// The least seconds for which a task holds a slot of this speed, as it is or rounded to whole microseconds.
fn least(speed: f64, span: Span) -> f64 {
    span.at_speed_nearest(speed).seconds().min(span.seconds() / speed)
}
