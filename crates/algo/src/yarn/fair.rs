//! The FairScheduler: the queue furthest below its minimum is first, then the one with the least use over
//! weight.

use std::collections::BTreeMap;

use slackline_model::params::{Param, Values};
use slackline_model::{Cluster, JobId, Key, SlotKind};
use slackline_policy::Policy;

use super::book::{Book, Queue as Line, QueueAt};
use super::online::{Applicant, Rules, Scheduler};
use super::{Container, FILE, MEMORY, Turns, UserApps, VCORES};
use crate::registry::PolicyEntry;

/// `yarn-fair` in tables of policies: without a file, a queue for each pool or user.
pub const ENTRY: PolicyEntry = PolicyEntry {
    among_all: false,
    source: "Hadoop 3.4.2, org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair",
    params: &[
        Param::new(
            FILE,
            "none",
            Values::Path("a file"),
            "fair-scheduler.xml; without it, a queue for each pool or user",
        )
        .or_word("none"),
        MEMORY,
        VCORES,
    ],
    page: &[
        "Reads the allocation file as Hadoop 3 does: nested queues, minResources, maxResources, maxChildResources, weight, \
         maxRunningApps, schedulingPolicy (fifo, fair, drf), defaults for all queues, maxRunningApps of users, and \
         queuePlacementPolicy (specified, user, nestedUserQueue, default, reject).",
        "A job is an application, and a slot is one container of slot-memory and slot-vcores. The queue is the flow's pool; \
         without a placement policy a pool that the file does not have gets its own queue, and a flow without a pool is \
         in its user's queue, or in default. Minima count by memory, as Hadoop compares them when containers are all alike, \
         which makes drf the same as fair; maxima are the whole containers that fit in both memory and cores.",
        "A free slot goes down the tree to the child furthest below its minimum, then to the least use over weight, among \
         those that may have one more, then to the first application in the leaf's order. Nothing is taken back.",
        "Not modelled: preemption, maxAMShare, reservations, locality delays, groups, yarn.scheduler.fair.* of yarn-site.xml. \
         The import names each such property of a file.",
    ],
    ..PolicyEntry::new(
        "yarn-fair",
        "Hadoop's FairScheduler with the queues of your fair-scheduler.xml",
        |cluster, _, settings| policy(cluster, Allocations::default(), Container::chosen(settings)),
    )
};

#[derive(Clone, Debug, PartialEq)]
pub struct Allocations {
    /// The queues, parents before their children; the first is the root.
    pub queues: Vec<Queue>,
    /// The properties of queues that are created because a flow names them.
    pub default: Queue,
    /// How many applications of a user may run.
    pub user_apps: UserApps,
    /// Where applications go, in the order in which rules are tried.
    pub placement: Vec<Placement>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its path, such as `root.a.b`.
    pub path: String,
    /// Its parent's place among the queues.
    pub parent: Option<usize>,
    /// Whether it is a parent although it has no queues yet.
    pub is_parent: bool,
    /// MiB that it is to have before others have more.
    pub min_memory: u64,
    /// Virtual cores that its maximum is at least.
    pub min_vcores: u64,
    /// The most it may have.
    pub max: Resources,
    /// The same for each child queue that is created because a flow names it.
    pub max_child: Option<Resources>,
    pub weight: f64,
    /// How many of its applications may run at a time.
    pub apps: u32,
    /// How its applications take turns, of a leaf.
    pub turns: Turns,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resources {
    /// Memory, in MiB where it is absolute.
    pub memory: Amount,
    pub vcores: Amount,
}

/// An amount of one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Absolute(u64),
    /// A fraction of the cluster's.
    Part(f64),
}

/// A rule that places applications: the first that gives a queue is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The pool that the flow names.
    Specified {
        /// Whether the queue is made if it is not there.
        create: bool,
    },
    /// The queue of the user's name, within a queue: the root, or the one that the inner rule gives.
    User {
        /// Whether the queue is made if it is not there.
        create: bool,
        /// What gives the queue around it; the root without.
        within: Option<Box<Placement>>,
    },
    Default {
        /// Its path.
        queue: String,
        /// Whether the queue is made if it is not there.
        create: bool,
    },
    /// None: the application is refused.
    Reject,
}

impl Resources {
    pub const UNBOUNDED: Self =
        Self { memory: Amount::Absolute(u64::MAX), vcores: Amount::Absolute(u64::MAX) };

    /// How many containers fit into these resources, at least `least`, on a cluster of `slots` containers.
    fn containers(self, least: Container, container: Container, slots: u32) -> u32 {
        let fit = |amount: Amount, least: u64, one: u64| {
            let all = match amount {
                Amount::Absolute(all) => all,
                Amount::Part(part) => ((u64::from(slots) * one) as f64 * part) as u64,
            };
            all.max(least) / one
        };
        let memory = fit(self.memory, least.memory, container.memory);
        let fit = memory.min(fit(self.vcores, least.vcores, container.vcores));
        u32::try_from(fit).unwrap_or(u32::MAX)
    }
}

impl Queue {
    /// A queue with Hadoop's defaults.
    pub fn new(path: &str, parent: Option<usize>) -> Self {
        Self {
            path: path.to_owned(),
            parent,
            is_parent: false,
            min_memory: 0,
            min_vcores: 0,
            max: Resources::UNBOUNDED,
            max_child: None,
            weight: 1.0,
            apps: u32::MAX,
            turns: Turns::Fair,
        }
    }
}

impl Allocations {
    /// These queues, placed as Hadoop does without a placement policy: the pool that is named, else the
    /// user's queue.
    pub fn of(queues: Vec<Queue>) -> Self {
        let default = Placement::Default { queue: "root.default".to_owned(), create: true };
        let user = Placement::User { create: true, within: None };
        Self {
            queues,
            default: Queue::new("", None),
            user_apps: UserApps::default(),
            placement: vec![Placement::Specified { create: true }, user, default],
        }
    }
}

impl Default for Allocations {
    /// No queues of one's own.
    fn default() -> Self {
        Self::of(vec![Queue { is_parent: true, ..Queue::new("root", None) }])
    }
}

/// The FairScheduler with these queues.
pub fn policy(cluster: &Cluster, allocations: Allocations, container: Container) -> Box<dyn Policy + Send> {
    let slots = cluster.slot_kinds().iter().map(|&slot_kind| cluster.slots(slot_kind)).sum();
    let (rules, book) = parts(slots, allocations, container);
    Box::new(Scheduler::of(rules, book))
}

/// Its rules and its empty book, on a cluster of `slots` slots.
pub(super) fn parts(slots: u32, allocations: Allocations, container: Container) -> (ByShare, Book) {
    let lines = allocations.queues.iter().map(|queue| Line::new(queue.parent, queue.turns, queue.apps));
    let book = Book::new(lines.collect(), container, allocations.user_apps.clone());
    let named = allocations.queues.iter().enumerate().map(|(at, queue)| (queue.path.clone(), at)).collect();
    let mut rules = ByShare { allocations, most: Vec::new(), slots: 0, named };
    rules.resize(&book, slots);
    (rules, book)
}

/// Whose turn it is by minima and weights.
#[derive(Clone, Debug)]
pub(super) struct ByShare {
    /// Its queues are those of the book, the ones that were made included.
    allocations: Allocations,
    /// Slots that each may hold.
    most: Vec<u32>,
    slots: u32,
    named: BTreeMap<String, QueueAt>,
}

impl ByShare {
    fn most_of(&self, queue: &Queue, container: Container) -> u32 {
        // The larger of maximum and minimum counts, for memory and cores each (`FSQueue.getMaxShare`).
        let least = Container { memory: queue.min_memory, vcores: queue.min_vcores };
        queue.max.containers(least, container, self.slots)
    }

    /// A free slot in a queue.
    fn turn(
        &self,
        at: QueueAt,
        book: &Book,
        slot_kind: SlotKind,
        accept: &mut dyn FnMut(JobId) -> bool,
    ) -> Option<JobId> {
        let queue = &book.queues[at];
        if !queue.is_open(slot_kind) || queue.used >= self.most[at] {
            return None;
        }
        if queue.children.is_empty() {
            return queue.first(slot_kind, |_| true, accept);
        }
        // Most of the time the first has it: cheaper than to sort them all.
        let mut passed = None;
        loop {
            let open = queue.children.iter().filter(|&&child| book.queues[child].is_open(slot_kind));
            let keys = open.map(|&child| (self.key(child, book), child));
            let next = keys.filter(|(key, _)| passed.as_ref().is_none_or(|passed| key > passed)).min()?;
            if let Some(job) = self.turn(next.1, book, slot_kind, accept) {
                return Some(job);
            }
            passed = Some(next.0);
        }
    }

    /// The order of queues with the same parent (`FairSharePolicy`): those below their minimum by the part of
    /// it that they have, the others by use over weight, those without weight last; ties by name.
    fn key<'a>(&'a self, at: QueueAt, book: &Book) -> impl Ord + use<'a> {
        let queue = &self.allocations.queues[at];
        let used = u64::from(book.queues[at].used) * book.container.memory;
        let is_needy = used < queue.min_memory;
        let part = if is_needy { used as f64 / queue.min_memory.max(1) as f64 } else { 0.0 };
        let is_weightless = queue.weight <= 0.0;
        let share = if is_weightless { used as f64 } else { used as f64 / queue.weight };
        (!is_needy, Key::new(part), is_weightless, Key::new(share), queue.path.as_str())
    }

    /// The leaf that a rule gives; `Ok(None)` if the next one is to be tried.
    fn placed(&mut self, rule: &Placement, applicant: Applicant<'_>) -> Result<Option<String>, ()> {
        let (path, create) = match rule {
            Placement::Specified { create } => match applicant.pool {
                None | Some("default") => return Ok(None),
                Some(pool) => (rooted(pool), *create),
            },
            Placement::User { create, within } => {
                let Some(user) = applicant.user else { return Ok(None) };
                let around = match within {
                    None => "root".to_owned(),
                    Some(rule) => match self.placed(rule, applicant)? {
                        Some(path) => path,
                        None => return Ok(None),
                    },
                };
                (format!("{around}.{}", user.trim().replace('.', "_dot_")), *create)
            }
            Placement::Default { queue, create } => (rooted(queue), *create),
            Placement::Reject => return Err(()),
        };
        Ok((create || self.named.contains_key(&path)).then_some(path))
    }

    /// The leaf of that path, made if it is not there; `None` if a queue on the way is a leaf, or this one is
    /// a parent.
    fn made(&mut self, path: &str, book: &mut Book) -> Option<QueueAt> {
        if let Some(&at) = self.named.get(path) {
            let is_leaf = book.queues[at].children.is_empty() && !self.allocations.queues[at].is_parent;
            return is_leaf.then_some(at);
        }
        let (above, name) = path.rsplit_once('.')?;
        if name.trim().is_empty() {
            return None;
        }
        let parent = self.parent(above, book)?;
        Some(self.make(path, parent, book))
    }

    /// The parent queue of that path, made if it is not there.
    fn parent(&mut self, path: &str, book: &mut Book) -> Option<QueueAt> {
        let at = if let Some(&at) = self.named.get(path) {
            at
        } else {
            let above = path.rsplit_once('.')?.0;
            let parent = self.parent(above, book)?;
            let at = self.make(path, parent, book);
            self.allocations.queues[at].is_parent = true;
            at
        };
        let is_parent = !book.queues[at].children.is_empty() || self.allocations.queues[at].is_parent;
        is_parent.then_some(at)
    }

    fn make(&mut self, path: &str, parent: QueueAt, book: &mut Book) -> QueueAt {
        let default = self.allocations.default.clone();
        let max = self.allocations.queues[parent].max_child.unwrap_or(default.max);
        let queue = Queue { path: path.to_owned(), parent: Some(parent), max, ..default };
        self.most.push(self.most_of(&queue, book.container));
        let at = book.add(Line::new(Some(parent), queue.turns, queue.apps));
        self.allocations.queues.push(queue);
        self.named.insert(path.to_owned(), at);
        at
    }
}

/// The path of a queue, which may be given without the root.
fn rooted(name: &str) -> String {
    if name == "root" || name.starts_with("root.") { name.to_owned() } else { format!("root.{name}") }
}

impl Rules for ByShare {
    const NAME: &'static str = ENTRY.name;

    fn leaf(&mut self, book: &mut Book, applicant: Applicant<'_>) -> Result<QueueAt, String> {
        let Applicant { flow, pool, .. } = applicant;
        let whose = || pool.map_or_else(|| "no pool".to_owned(), |pool| format!("the pool {pool:?}"));
        for rule in self.allocations.placement.clone() {
            match self.placed(&rule, applicant) {
                Ok(None) => {}
                Ok(Some(path)) => {
                    return self.made(&path, book).ok_or_else(|| {
                        format!(
                            "flow {flow:?} has {}, which is the queue {path:?}, expected a queue without queues in it \
                             (Hadoop refuses such an application)",
                            whose()
                        )
                    });
                }
                Err(()) => break,
            }
        }
        Err(format!(
            "flow {flow:?} has {}, and the placement policy of the file gives it no queue (Hadoop refuses such an \
             application)",
            whose()
        ))
    }

    fn resize(&mut self, book: &Book, slots: u32) {
        self.slots = slots;
        self.most = self.allocations.queues.iter().map(|queue| self.most_of(queue, book.container)).collect();
    }

    fn path(&self, at: QueueAt) -> &str {
        &self.allocations.queues[at].path
    }

    fn most(&self, _book: &Book, at: QueueAt) -> u32 {
        self.most[at]
    }

    fn next(&self, book: &Book, slot_kind: SlotKind, accept: &mut dyn FnMut(JobId) -> bool) -> Option<JobId> {
        self.turn(0, book, slot_kind, accept)
    }

    fn in_a_row(&self, book: &Book, slot_kind: SlotKind, job: JobId, most: u32) -> u32 {
        let Some(leaf) = book.only_open_leaf(job, slot_kind).filter(|_| most > 1) else { return 1 };
        let room = book.up(leaf).map(|at| self.most[at].saturating_sub(book.queues[at].used));
        let most = room.fold(most, u32::min).max(1);
        book.queues[leaf].stays_first(slot_kind, job, most)
    }
}
