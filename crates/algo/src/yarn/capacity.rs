//! The CapacityScheduler: the queue that uses the smallest part of its guarantee is first.
//!
//! Sizes are computed in MiB and with the rounding of Hadoop 3.4.2 (`float` fractions, whole MiB, whole
//! containers), so that a maximum of 70 % of ten containers is seven of them only if Hadoop says so.

use std::cmp::Reverse;

use slackline_model::names::unknown;
use slackline_model::params::{Param, Settings, Values};
use slackline_model::{Cluster, JobId, Key, SlotKind};
use slackline_policy::Policy;

use super::book::{Active, AmsMax, Book, LeafUser, Queue as Line, QueueAt};
use super::online::{Applicant, Rules, Scheduler};
use super::{Container, ELSE, FILE, MEMORY, Turns, UserApps, VCORES};
use crate::registry::PolicyEntry;

/// The highest priority of an application.
const PRIORITY_MAX: Param = Param::new(
    "max-priority",
    "0",
    Values::Count(0, u32::MAX as u64),
    "the highest priority of an application, yarn.cluster.max-application-priority of yarn-site.xml: higher ones count as this; 0 (Hadoop's default): priorities of flows have no effect",
);

/// `yarn-capacity` in tables of policies: without a file, one queue that takes everything.
pub const ENTRY: PolicyEntry = PolicyEntry {
    among_all: false,
    source: "Hadoop 3.4.2, org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity",
    params: &[
        Param::new(
            FILE,
            "none",
            Values::Path("a file"),
            "capacity-scheduler.xml; without it, one queue takes everything",
        )
        .or_word("none"),
        Param::new(
            ELSE,
            "none",
            Values::Text("a queue"),
            "the queue of flows whose pool is not a leaf queue; without it, such a flow is an error",
        )
        .or_word("none"),
        PRIORITY_MAX,
        MEMORY,
        VCORES,
    ],
    page: &[
        "Reads the file as Hadoop 3 does: queues, capacity (percent, weights such as 2w, resources such as \
         [memory=10240,vcores=10]), maximum-capacity, minimum-user-limit-percent, user-limit-factor, ordering-policy of leaves \
         (fifo, fair, with fair.enable-size-based-weight) and of parents (utilization, priority-utilization with priority), \
         max-parallel-apps, maximum-am-resource-percent, default-application-priority, queue-mappings by user.",
        "A job is an application, and a slot is one container of slot-memory and slot-vcores. The queue is the flow's pool, \
         by its short name or its path; a flow without a pool is in the queue default.",
        "A free slot goes down the tree to the child that uses least of its guaranteed capacity and may have one more, then \
         to the first application in the leaf's order whose user is not above the limit: with fifo the highest priority (the \
         flow's, up to max-priority), then the first submitted. As in Hadoop a user may be one container above the limit, and \
         nothing is taken back.",
        "Where ApplicationMasters hold slots (--profile hadoop), those of a leaf hold at most maximum-am-resource-percent of it, \
         and those of a user their part of that; 0.1 by default, as in Hadoop. Applications beyond that wait, the \
         highest priority first. One always runs.",
        "Not modelled: preemption, node labels, reservations, locality delays, \
         queues that are made automatically, weights of users, groups. The import names each such property of a file.",
    ],
    ..PolicyEntry::new(
        "yarn-capacity",
        "Hadoop's CapacityScheduler with the queues of your capacity-scheduler.xml",
        |cluster, _, settings| {
            policy(cluster, Hierarchy::one_queue().chosen(settings), Container::chosen(settings))
        },
    )
};

/// The queues of a site, as a file says them.
#[derive(Clone, Debug, PartialEq)]
pub struct Hierarchy {
    /// The queues, parents before their children; the first is the root.
    pub queues: Vec<Queue>,
    /// Where applications go by their user, in the order in which rules are tried.
    pub mappings: Vec<Mapping>,
    /// Whether these rules come before the pool that a flow names.
    pub mappings_first: bool,
    /// The queue of applications that are placed nowhere; `None` if they are errors.
    pub otherwise: Option<usize>,
    /// How many applications of a user may run.
    pub user_apps: UserApps,
    /// The highest priority of an application.
    pub priority_max: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its path, such as `root.a.b`.
    pub path: String,
    /// Its parent's place among the queues.
    pub parent: Option<usize>,
    /// What it is guaranteed.
    pub capacity: Capacity,
    /// The most it may have.
    pub maximum: Capacity,
    /// Percent of the queue that each of its users may have at any use by the others.
    pub user_limit: f32,
    /// How much of the queue's capacity one user may have; -1 for no limit.
    pub user_limit_factor: f32,
    /// How its applications take turns, of a leaf.
    pub turns: Turns,
    /// Whether priorities come before use among its children.
    pub by_priority: bool,
    pub priority: i32,
    /// The priority of its applications that have none, of a leaf.
    pub app_priority: u32,
    /// How many of its applications may run at a time.
    pub apps: u32,
    /// What part of a leaf the AMs of its applications may hold (`maximum-am-resource-percent`), where
    /// they hold slots.
    pub ams: f32,
}

/// What part of a leaf AMs may hold unless the file says so.
pub const MASTERS: f32 = 0.1;

/// MiB of which limits of AMs are multiples (`yarn.scheduler.minimum-allocation-mb`).
const MASTER_STEP: i64 = 1024;

/// A size of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// A fraction of its parent's.
    Part(f32),
    /// MiB.
    Memory(u64),
}

/// A rule that places applications by their user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The user; `None` for everybody.
    pub user: Option<String>,
    /// The queue, by its short name or path; `%user` in it stands for the user.
    pub queue: String,
}

impl Queue {
    /// A queue with Hadoop's defaults.
    pub fn new(path: &str, parent: Option<usize>, capacity: Capacity) -> Self {
        Self {
            path: path.to_owned(),
            parent,
            capacity,
            maximum: Capacity::Part(1.0),
            user_limit: 100.0,
            user_limit_factor: 1.0,
            turns: Turns::Fifo,
            by_priority: false,
            priority: 0,
            app_priority: 0,
            apps: u32::MAX,
            ams: MASTERS,
        }
    }
}

impl Hierarchy {
    /// The queue `default` alone, which takes everything: what Hadoop comes with.
    pub fn one_queue() -> Self {
        let root = Queue::new("root", None, Capacity::Part(1.0));
        let default = Queue::new("root.default", Some(0), Capacity::Part(1.0));
        Self { otherwise: Some(1), ..Self::of(vec![root, default]) }
    }

    pub fn of(queues: Vec<Queue>) -> Self {
        Self {
            queues,
            mappings: Vec::new(),
            mappings_first: false,
            otherwise: None,
            user_apps: UserApps::default(),
            priority_max: 0,
        }
    }

    /// With what the parameters say of it.
    #[must_use]
    pub fn chosen(self, settings: &Settings) -> Self {
        let priority_max = u32::try_from(settings.count(PRIORITY_MAX.name)).unwrap_or(u32::MAX);
        Self { priority_max, ..self }
    }

    /// With another part of its parent for the queue of that path or short name. The other queues of the
    /// parent share the rest as they do now, evenly if they have nothing, and a maximum below the capacity is
    /// raised to it.
    ///
    /// # Errors
    /// No such queue, or several; the root, or a queue without others beside it; capacities that are given as
    /// memory.
    pub fn with_capacity(mut self, name: &str, part: f32) -> Result<Self, String> {
        let at = self.queue(name)?;
        let Some(parent) = self.queues[at].parent else {
            return Err(
                "found the root queue, which always has the whole cluster, expected a queue below it"
                    .to_owned(),
            );
        };
        let others: Vec<usize> =
            (0..self.queues.len()).filter(|&k| k != at && self.queues[k].parent == Some(parent)).collect();
        if others.is_empty() {
            let path = &self.queues[at].path;
            return Err(format!(
                "found {path}, which is the only queue of its parent, expected a queue with siblings"
            ));
        }
        let part_of = |k: usize| match self.queues[k].capacity {
            Capacity::Part(part) => Ok(part),
            Capacity::Memory(_) => Err(format!(
                "found resources as the capacity of {}, expected a part of its parent",
                self.queues[k].path
            )),
        };
        part_of(at)?;
        let parts = others.iter().map(|&k| part_of(k)).collect::<Result<Vec<f32>, String>>()?;
        let sum: f32 = parts.iter().sum();
        let share = |of: f32| if sum > 0.0 { of / sum } else { 1.0 / parts.len() as f32 };
        let shares: Vec<(usize, f32)> =
            others.iter().zip(&parts).map(|(&k, &of)| (k, share(of) * (1.0 - part))).collect();
        for (k, part) in shares.into_iter().chain([(at, part)]) {
            let queue = &mut self.queues[k];
            queue.capacity = Capacity::Part(part);
            if let Capacity::Part(most) = queue.maximum {
                queue.maximum = Capacity::Part(most.max(part));
            }
        }
        Ok(self)
    }

    /// The queue of that path or short name, a leaf or not.
    fn queue(&self, name: &str) -> Result<usize, String> {
        let is_short = |queue: &Queue| queue.path.rsplit_once('.').is_some_and(|(_, short)| short == name);
        let exact = self.queues.iter().position(|queue| queue.path == name);
        let mut short = (0..self.queues.len()).filter(|&at| is_short(&self.queues[at]));
        match (exact, short.next(), short.next()) {
            (Some(at), ..) | (None, Some(at), None) => Ok(at),
            (None, Some(_), Some(_)) => {
                Err(format!("found several queues {name:?}, expected the path of one"))
            }
            (None, None, _) => {
                // They are listed as this one is written.
                let is_path = name.contains('.');
                let as_written =
                    |path: &String| path.rsplit('.').next().filter(|_| !is_path).unwrap_or(path).to_owned();
                let names: Vec<String> =
                    self.queues.iter().skip(1).map(|queue| as_written(&queue.path)).collect();
                Err(unknown("queue", name, &names))
            }
        }
    }

    /// The leaf of that path or short name; `None` if there is none, or several of that name.
    pub fn leaf(&self, name: &str) -> Option<usize> {
        let is_leaf = |at: usize| !self.queues.iter().any(|queue| queue.parent == Some(at));
        let named = |queue: &Queue| {
            queue.path == name || queue.path.rsplit_once('.').is_some_and(|(_, short)| short == name)
        };
        let mut leaves = (0..self.queues.len()).filter(|&at| named(&self.queues[at]) && is_leaf(at));
        let first = leaves.next()?;
        let exact = |at: &usize| self.queues[*at].path == name;
        match leaves.next() {
            None => Some(first),
            Some(second) => [first, second].into_iter().chain(leaves).find(exact),
        }
    }

    /// Paths of its leaves.
    pub fn leaves(&self) -> impl Iterator<Item = &str> {
        let is_leaf = |at: usize| !self.queues.iter().any(|queue| queue.parent == Some(at));
        self.queues
            .iter()
            .enumerate()
            .filter(move |&(at, _)| is_leaf(at))
            .map(|(_, queue)| queue.path.as_str())
    }
}

/// The CapacityScheduler with these queues.
pub fn policy(cluster: &Cluster, hierarchy: Hierarchy, container: Container) -> Box<dyn Policy + Send> {
    let slots = cluster.slot_kinds().iter().map(|&slot_kind| cluster.slots(slot_kind)).sum();
    let (rules, book) = parts(slots, hierarchy, container);
    Box::new(Scheduler::of(rules, book))
}

/// Its rules and its empty book, on a cluster of `slots` slots.
pub(super) fn parts(slots: u32, hierarchy: Hierarchy, container: Container) -> (ByCapacity, Book) {
    let lines = hierarchy.queues.iter().map(|queue| Line::new(queue.parent, queue.turns, queue.apps));
    let book = Book::new(lines.collect(), container, hierarchy.user_apps.clone());
    let mut rules = ByCapacity { sizes: Vec::new(), cluster: 0, hierarchy };
    rules.resize(&book, slots);
    (rules, book)
}

/// Whose turn it is by use of guaranteed capacity.
#[derive(Clone, Debug)]
pub(super) struct ByCapacity {
    hierarchy: Hierarchy,
    /// MiB of the cluster, and of each queue.
    cluster: i64,
    sizes: Vec<Size>,
}

/// What a queue may use, in MiB.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    guaranteed: i64,
    maximum: i64,
    /// The same as fractions of the cluster, with Hadoop's precision; 0 of queues whose sizes are absolute.
    part: f32,
    maximum_part: f32,
}

/// The user of a free slot in a queue.
enum Turn {
    /// The application has it.
    Of(JobId),
    /// No application there wants it, or may have it.
    Unwanted,
    /// It is below its limit by this memory, too little for a container, which no sibling may have then, MiB.
    Blocked(i64),
}

impl ByCapacity {
    /// Sizes from the root down. O(queues²), when machines come or go.
    fn measure(&mut self) {
        let queues = &self.hierarchy.queues;
        self.sizes.clear();
        for queue in queues {
            let Some(parent) = queue.parent else {
                let (guaranteed, maximum) = (self.cluster, self.cluster);
                self.sizes.push(Size { guaranteed, maximum, part: 1.0, maximum_part: 1.0 });
                continue;
            };
            let (above, mut size) = (self.sizes[parent], Size::default());
            let share = |part: f32| (self.cluster as f64 * f64::from(part)) as i64;
            match queue.capacity {
                Capacity::Part(part) => {
                    size.part = part * above.part;
                    size.guaranteed = share(size.part);
                }
                Capacity::Memory(memory) => {
                    let asked: u64 =
                        queues.iter().filter(|other| other.parent == queue.parent).map(memory_of).sum();
                    let ratio = (above.guaranteed as f32 / asked.max(1) as f32).min(1.0);
                    size.guaranteed = (memory as f32 * ratio) as i64;
                    size.part = size.guaranteed as f32 / self.cluster.max(1) as f32;
                }
            }
            match queue.maximum {
                Capacity::Part(part) if above.maximum_part > 0.0 => {
                    size.maximum_part = part * above.maximum_part;
                    size.maximum = share(size.maximum_part);
                }
                Capacity::Part(part) => size.maximum = (above.maximum as f64 * f64::from(part)) as i64,
                Capacity::Memory(memory) => {
                    size.maximum = i64::try_from(memory).unwrap_or(i64::MAX).min(above.maximum);
                }
            }
            self.sizes.push(size);
        }
    }

    /// The user of a free slot among the children of a queue with this limit, MiB.
    fn turn(
        &self,
        at: QueueAt,
        limit: i64,
        book: &Book,
        slot_kind: SlotKind,
        accept: &mut dyn FnMut(JobId) -> bool,
    ) -> Turn {
        let queue = &book.queues[at];
        let one = book.container.memory.cast_signed();
        let used = i64::from(queue.used) * one;
        let limit = limit.min(self.sizes[at].maximum);
        if !queue.is_open(slot_kind) || used >= limit {
            return Turn::Unwanted;
        }
        if queue.children.is_empty() {
            let Some(job) = self.application(at, used, book, slot_kind, accept) else {
                return Turn::Unwanted;
            };
            return if limit - used < one { Turn::Blocked(limit - used) } else { Turn::Of(job) };
        }
        let (mut blocked, mut passed) = (None, None);
        // Most of the time the first has it: cheaper than to sort them all.
        loop {
            let open = queue.children.iter().filter(|&&child| book.queues[child].is_open(slot_kind));
            let keys = open.map(|&child| (self.key(child, book, one), child));
            let next = keys.filter(|(key, _)| passed.as_ref().is_none_or(|passed| key > passed)).min();
            let Some((key, child)) = next else { break };
            passed = Some(key);
            let left = limit - blocked.unwrap_or(0) - used + i64::from(book.queues[child].used) * one;
            match self.turn(child, left.div_euclid(one) * one, book, slot_kind, accept) {
                Turn::Of(job) => return Turn::Of(job),
                Turn::Unwanted => {}
                Turn::Blocked(memory) => blocked = Some(blocked.unwrap_or(0) + memory.max(0)),
            }
        }
        blocked.map_or(Turn::Unwanted, Turn::Blocked)
    }

    /// MiB that a queue may have if its siblings and those of the queues above it want nothing.
    fn limit_alone(&self, at: QueueAt, book: &Book) -> i64 {
        let one = book.container.memory.cast_signed();
        let used = |at: QueueAt| i64::from(book.queues[at].used) * one;
        let left = book.queues[at].parent.map_or(self.cluster, |parent| {
            (self.limit_alone(parent, book) - used(parent) + used(at)).div_euclid(one) * one
        });
        left.min(self.sizes[at].maximum)
    }

    /// The order of queues with the same parent (`PriorityUtilizationQueueOrderingPolicy`): those that are
    /// guaranteed something, those below their guarantee, the highest priority where that counts, the least
    /// use of the guarantee, the largest guarantee, then the order of the file.
    fn key(&self, at: QueueAt, book: &Book, one: i64) -> impl Ord + use<> {
        let (queue, size) = (&self.hierarchy.queues[at], self.sizes[at]);
        let used = (i64::from(book.queues[at].used) * one) as f32;
        let is_guaranteed = size.part > 0.0;
        let of = if is_guaranteed { size.guaranteed.max(one) } else { self.cluster.max(1) };
        let use_of = used / of as f32;
        let by_priority = queue.parent.is_some_and(|parent| self.hierarchy.queues[parent].by_priority);
        let priority = if by_priority { Reverse(queue.priority) } else { Reverse(0) };
        let absolute = Reverse(memory_of(queue));
        let (use_of, part) = (Key::new(f64::from(use_of)), Reverse(Key::new(f64::from(size.part))));
        (!is_guaranteed, use_of >= Key::new(1.0), priority, use_of, absolute, part, at)
    }

    /// The first application of a leaf whose user is not above the limit.
    fn application(
        &self,
        at: QueueAt,
        used: i64,
        book: &Book,
        slot_kind: SlotKind,
        accept: &mut dyn FnMut(JobId) -> bool,
    ) -> Option<JobId> {
        let queue = &book.queues[at];
        let one = book.container.memory.cast_signed();
        let limit = self.user_limit(at, used, queue.active(), one);
        queue.first(slot_kind, |user: &LeafUser| i64::from(user.used) * one <= limit, accept)
    }

    /// MiB above which a user of a leaf gets nothing more (`UsersManager.computeUserLimit`).
    fn user_limit(&self, at: QueueAt, used: i64, active: Active, one: i64) -> i64 {
        let (queue, size) = (&self.hierarchy.queues[at], self.sizes[at]);
        let capacity = size.guaranteed.max(one);
        let current = if used < capacity { capacity } else { used + one };
        let of_users = i64::from(active.used) * one + one;
        let share = ceil_div(of_users, i64::from(active.users.max(1)));
        let percent = ceil_div((current as f64 * f64::from(queue.user_limit)) as i64, 100);
        let most = if queue.user_limit_factor < 0.0 || size.guaranteed == 0 {
            size.maximum.div_euclid(one) * one
        } else {
            (capacity as f64 * f64::from(queue.user_limit_factor)) as i64
        };
        ceil_div(share.max(percent).min(most), one) * one
    }

    /// MiB that each queue may have now, with what its siblings use left out
    /// (`ParentQueue.getResourceLimitsOfChild`). O(queues).
    fn current_limits(&self, book: &Book) -> Vec<i64> {
        let one = book.container.memory.cast_signed();
        let used = |at: QueueAt| i64::from(book.queues[at].used) * one;
        let mut limits: Vec<i64> = Vec::with_capacity(self.sizes.len());
        for (at, queue) in self.hierarchy.queues.iter().enumerate() {
            let left = queue.parent.map_or(self.cluster, |parent| limits[parent] - used(parent) + used(at));
            limits.push(left.min(self.sizes[at].maximum));
        }
        limits
    }

    /// The limit on ApplicationMasters in a leaf whose memory is now limited to `limit` MiB
    /// (`LeafQueue.calculateAndGetAMResourceLimit` and `getUserAMResourceLimit`).
    fn ams_max(&self, at: QueueAt, limit: i64, users: u32, one: i64) -> AmsMax {
        let (queue, size) = (&self.hierarchy.queues[at], self.sizes[at]);
        let ams = |memory: i64, part: f32| {
            let memory = (memory as f64 * f64::from(part) + 0.5) as i64;
            let limit = ceil_div(memory, MASTER_STEP).saturating_mul(MASTER_STEP);
            u32::try_from(limit.div_euclid(one)).unwrap_or(u32::MAX)
        };
        let of_all = ams(size.guaranteed.max(limit), queue.ams);
        let of_user = (queue.user_limit / 100.0).max(1.0 / users.max(1) as f32).min(1.0);
        let factor = if queue.user_limit_factor < 0.0 { 1.0 } else { of_user * queue.user_limit_factor };
        AmsMax { of_all, of_each: ams(size.guaranteed, queue.ams * factor).min(of_all) }
    }

    /// The queue that a name stands for.
    fn named(&self, name: &str, book: &Book) -> Option<QueueAt> {
        self.hierarchy.leaf(name).filter(|&at| book.queues[at].children.is_empty())
    }

    /// The queue of the first rule that a user falls under, if it is one.
    fn mapped(&self, user: Option<&str>, book: &Book) -> Option<QueueAt> {
        let user = user?;
        let falls_under = |mapping: &&Mapping| mapping.user.as_deref().is_none_or(|of| of == user);
        let mapping = self.hierarchy.mappings.iter().find(falls_under)?;
        self.named(&mapping.queue.replace("%user", user), book)
    }
}

/// MiB that a queue is guaranteed in absolute terms.
fn memory_of(queue: &Queue) -> u64 {
    if let Capacity::Memory(memory) = queue.capacity { memory } else { 0 }
}

/// Division by a positive number, up.
fn ceil_div(number: i64, by: i64) -> i64 {
    -(-number).div_euclid(by)
}

impl Rules for ByCapacity {
    const NAME: &'static str = ENTRY.name;

    fn leaf(&mut self, book: &mut Book, applicant: Applicant<'_>) -> Result<QueueAt, String> {
        let Applicant { flow, pool, user } = applicant;
        let asked = pool.unwrap_or("default");
        let mapped =
            (self.hierarchy.mappings_first || asked == "default").then(|| self.mapped(user, book)).flatten();
        if let Some(at) = mapped.or_else(|| self.named(asked, book)).or(self.hierarchy.otherwise) {
            return Ok(at);
        }
        let leaves: Vec<&str> = self.hierarchy.leaves().collect();
        let whose = pool.map_or_else(
            || "no pool, which is the queue \"default\"".to_owned(),
            |pool| format!("the pool {pool:?}"),
        );
        Err(format!(
            "flow {flow:?} has {whose}, expected one of the leaf queues {} (Hadoop refuses such an application; set else=QUEUE)",
            leaves.join(", ")
        ))
    }

    fn priority(&self, leaf: QueueAt, of_flow: Option<u32>) -> u32 {
        of_flow.unwrap_or(self.hierarchy.queues[leaf].app_priority).min(self.hierarchy.priority_max)
    }

    fn resize(&mut self, book: &Book, slots: u32) {
        self.cluster = i64::from(slots) * book.container.memory.cast_signed();
        self.measure();
    }

    fn limit_ams(&self, book: &mut Book) {
        let one = book.container.memory.cast_signed();
        for (at, limit) in self.current_limits(book).into_iter().enumerate() {
            if book.queues[at].children.is_empty() {
                let users = book.queues[at].asking();
                book.queues[at].ams = Some(self.ams_max(at, limit, users, one));
            }
        }
    }

    fn path(&self, at: QueueAt) -> &str {
        &self.hierarchy.queues[at].path
    }

    fn most(&self, book: &Book, at: QueueAt) -> u32 {
        u32::try_from(self.sizes[at].maximum.div_euclid(book.container.memory.cast_signed()))
            .unwrap_or(u32::MAX)
    }

    fn next(&self, book: &Book, slot_kind: SlotKind, accept: &mut dyn FnMut(JobId) -> bool) -> Option<JobId> {
        match self.turn(0, self.cluster, book, slot_kind, accept) {
            Turn::Of(job) => Some(job),
            Turn::Unwanted | Turn::Blocked(_) => None,
        }
    }

    fn in_a_row(&self, book: &Book, slot_kind: SlotKind, job: JobId, most: u32) -> u32 {
        let leaf = book.only_open_leaf(job, slot_kind).filter(|_| most > 1);
        let Some((at, user)) = leaf.zip(book.user(job)) else { return 1 };
        let (queue, one) = (&book.queues[at], book.container.memory.cast_signed());
        let used = i64::from(queue.used) * one;
        let room = (self.limit_alone(at, book) - used).div_euclid(one);
        // Up to there the user's use grows at least as fast as the user's limit.
        let guaranteed = self.sizes[at].guaranteed.max(one);
        let room = if used < guaranteed { room.min(ceil_div(guaranteed - used, one)) } else { room };
        if self.hierarchy.queues[at].user_limit != 100.0 || room < 1 {
            return 1;
        }
        let most = most.min(u32::try_from(room).unwrap_or(u32::MAX));
        let mut n = queue.stays_first(slot_kind, job, most);
        let active = queue.active();
        let may_have_one_after = |n: u32| {
            let active = Active { used: active.used + n, ..active };
            i64::from(user.used + n) * one <= self.user_limit(at, used + i64::from(n) * one, active, one)
        };
        while n > 1 && !may_have_one_after(n - 1) {
            n /= 2;
        }
        n
    }
}
