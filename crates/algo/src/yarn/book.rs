//! Applications, users and queues, with what each uses and wants.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use slackline_model::{JobId, Key, SlotKind, Time};
use slackline_policy::{IdHeap, IdTable};

use super::{Container, Turns, UserApps};

/// A queue, by its place in [`Book::queues`]; the first is the root.
pub(super) type QueueAt = usize;

/// A user, by the order in which they came.
pub(super) type UserAt = usize;

/// The order of applications that are equal otherwise: by submission, then by the release of the flow.
type Rank = (Time, Time, JobId);

/// The order of waiting applications: by priority if they wait for ApplicationMasters, then by submission.
type Turn = (Reverse<u32>, Rank);

/// The order in a leaf: by priority or by use, as the leaf is configured, then by submission; ties by job.
type Place = (Key, Time, Time);

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    pub(super) parent: Option<QueueAt>,
    pub(super) children: Vec<QueueAt>,
    /// Slots that its applications hold, their AMs' included.
    pub(super) used: u32,
    /// How many of its applications could take a slot of each slot kind.
    open: [u32; 2],
    /// Its applications that run, and how many may.
    apps: u32,
    apps_max: u32,
    turns: Turns,
    /// The limit on running applications of a leaf that results from the slots of their ApplicationMasters,
    /// if there is one.
    pub(super) ams: Option<AmsMax>,
    /// Users of a leaf that have applications which run.
    users: BTreeMap<UserAt, LeafUser>,
    /// Applications that wait because too many run.
    waiting: BTreeMap<Turn, UserAt>,
}

/// How many AMs there may be in a leaf, and of each user. One may always be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AmsMax {
    pub(super) of_all: u32,
    pub(super) of_each: u32,
}

/// A user in a leaf.
#[derive(Clone, Debug, Default)]
pub(super) struct LeafUser {
    pub(super) used: u32,
    /// Applications that run, and those of them that want something.
    apps: u32,
    wanting: u32,
    /// Those that could take a slot, by slot kind.
    open: [IdHeap<JobId, Place>; 2],
}

/// A limit on applications that run at a time, with how many do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AppsLimit {
    Queue(QueueAt, u32),
    User(String, u32),
    /// What the AMs of a leaf may hold.
    Ams(QueueAt, u32),
}

/// An application: a job.
#[derive(Clone, Debug)]
struct App {
    leaf: QueueAt,
    user: UserAt,
    rank: Rank,
    priority: u32,
    runs: bool,
    now: Counts,
}

/// What an application uses and wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Slots.
    pub(super) used: u32,
    /// Tasks that were asked for and have not started.
    pub(super) wants: u32,
    /// Whether it could take a slot of each slot kind.
    pub(super) open: [bool; 2],
}

/// Users that take part in a leaf: what its user limits follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Active {
    /// Users that want something.
    pub(super) users: u32,
    /// Slots that they use.
    pub(super) used: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) queues: Vec<Queue>,
    pub(super) container: Container,
    users: BTreeMap<String, UserAt>,
    /// Applications of each user that run, and how many may.
    running: Vec<(u32, u32)>,
    user_apps: UserApps,
    apps: IdTable<JobId, Option<App>>,
    /// How many applications wait.
    n_waiting: u32,
}

impl Queue {
    /// An empty one.
    pub(super) fn new(parent: Option<QueueAt>, turns: Turns, apps_max: u32) -> Self {
        Self { parent, apps_max, turns, ..Self::default() }
    }

    /// Whether an application of it could take a slot.
    pub(super) fn is_open(&self, slot_kind: SlotKind) -> bool {
        self.open[slot_kind.index()] > 0
    }

    /// Its users that want something.
    pub(super) fn active(&self) -> Active {
        let wanting = self.users.values().filter(|user| user.wanting > 0);
        wanting
            .fold(Active::default(), |sum, user| Active { users: sum.users + 1, used: sum.used + user.used })
    }

    /// The first application that could take a slot and that is accepted, of users that may have one more.
    pub(super) fn first(
        &self,
        slot_kind: SlotKind,
        may: impl Fn(&LeafUser) -> bool,
        accept: &mut dyn FnMut(JobId) -> bool,
    ) -> Option<JobId> {
        let allowed = self.users.values().filter(|user| may(user)).map(|user| &user.open[slot_kind.index()]);
        let (_, first) = allowed.clone().filter_map(IdHeap::first).min()?;
        if accept(first) {
            return Some(first);
        }
        let mut users: Vec<_> = allowed.map(|open| open.in_order().peekable()).collect();
        loop {
            let next = users.iter_mut().filter_map(|places| places.peek().copied().map(|at| (at, places)));
            let ((_, job), places) = next.min_by_key(|(place, _)| *place)?;
            if job != first && accept(job) {
                return Some(job);
            }
            places.next();
        }
    }

    /// How many slots in a row an application gets, at most `most`, as far as the order of the leaf counts. 1
    /// if it is not the first of all.
    pub(super) fn stays_first(&self, slot_kind: SlotKind, job: JobId, most: u32) -> u32 {
        let entries =
            self.users.values().flat_map(|user| user.open[slot_kind.index()].first_two(&[])).flatten();
        let Some(first @ ((used, ..), _)) = entries.clone().min().filter(|&(_, first)| first == job) else {
            return 1;
        };
        match self.turns {
            Turns::Fifo => most,
            Turns::FairBySize => 1,
            Turns::Fair => entries.filter(|&(_, other)| other != job).min().map_or(most, |next| {
                let ((of_next, at, release), other) = next;
                let ((_, submitted, released), _) = first;
                let wins_tie = (submitted, released, job) < (at, release, other);
                most.min((of_next.number() - used.number()) as u32 + u32::from(wins_tie))
            }),
        }
    }

    fn is_full(&self) -> bool {
        self.apps >= self.apps_max
    }

    /// Whether the AM of one more application of that user may be there.
    fn has_room_for_am(&self, user: UserAt) -> bool {
        let Some(AmsMax { of_all, of_each }) = self.ams else { return true };
        let of_user = self.users.get(&user).map_or(0, |here| here.apps);
        self.apps == 0 || (self.apps < of_all && of_user < of_each)
    }

    /// How many users want something or have applications that wait to run.
    pub(super) fn asking(&self) -> u32 {
        let wanting = self.users.iter().filter(|(_, user)| user.wanting > 0).map(|(at, _)| at);
        wanting.chain(self.waiting.values()).collect::<BTreeSet<_>>().len() as u32
    }

    fn turn(&self, app: &App) -> Turn {
        (Reverse(if self.ams.is_some() { app.priority } else { 0 }), app.rank)
    }
}

impl Book {
    pub(super) fn new(queues: Vec<Queue>, container: Container, user_apps: UserApps) -> Self {
        let mut book = Self {
            queues: Vec::new(),
            container,
            users: BTreeMap::new(),
            running: Vec::new(),
            user_apps,
            apps: IdTable::default(),
            n_waiting: 0,
        };
        for queue in queues {
            book.add(queue);
        }
        book
    }

    /// One more queue, whose parent is there.
    pub(super) fn add(&mut self, queue: Queue) -> QueueAt {
        let at = self.queues.len();
        if let Some(parent) = queue.parent {
            self.queues[parent].children.push(at);
        }
        self.queues.push(queue);
        at
    }

    /// A queue, its parent and so on up to the root.
    pub(super) fn up(&self, from: QueueAt) -> impl Iterator<Item = QueueAt> + '_ {
        std::iter::successors(Some(from), |&at| self.queues[at].parent)
    }

    /// The leaf of an application, and whether it runs.
    pub(super) fn place(&self, job: JobId) -> Option<(QueueAt, bool)> {
        self.apps[job].as_ref().map(|app| (app.leaf, app.runs))
    }

    /// The leaf of an application, if it and the queues above it are the only ones of their parents of which
    /// an application could take a slot.
    pub(super) fn only_open_leaf(&self, job: JobId, slot_kind: SlotKind) -> Option<QueueAt> {
        let (leaf, _) = self.place(job)?;
        let is_open = |at: &&QueueAt| self.queues[**at].is_open(slot_kind);
        let is_only = |at: QueueAt| {
            self.queues[at]
                .parent
                .is_none_or(|above| self.queues[above].children.iter().filter(is_open).count() == 1)
        };
        self.up(leaf).all(is_only).then_some(leaf)
    }

    /// The user of an application in its leaf.
    pub(super) fn user(&self, job: JobId) -> Option<&LeafUser> {
        let app = self.apps[job].as_ref()?;
        self.queues[app.leaf].users.get(&app.user)
    }

    /// What keeps an application that waits from running, of the queues above it and its user.
    pub(super) fn apps_limit(&self, job: JobId) -> Option<AppsLimit> {
        let app = self.apps[job].as_ref().filter(|app| !app.runs)?;
        if let Some(at) = self.up(app.leaf).find(|&at| self.queues[at].is_full()) {
            return Some(AppsLimit::Queue(at, self.queues[at].apps));
        }
        let (runs, most) = self.running[app.user];
        if runs >= most {
            let name = self.users.iter().find(|&(_, &at)| at == app.user).map_or("", |(name, _)| name);
            return Some(AppsLimit::User(name.to_owned(), most));
        }
        Some(AppsLimit::Ams(app.leaf, self.queues[app.leaf].apps))
    }

    pub(super) fn knows(&self, job: JobId) -> bool {
        self.apps[job].is_some()
    }

    /// A job is submitted to a leaf with a priority, at a time, of a flow that was released at another.
    pub(super) fn submit(
        &mut self,
        job: JobId,
        leaf: QueueAt,
        user: &str,
        priority: u32,
        at: Time,
        release: Time,
    ) {
        let next = self.users.len();
        let user = *self.users.entry(user.to_owned()).or_insert_with_key(|name| {
            self.running.push((0, self.user_apps.of.get(name).copied().unwrap_or(self.user_apps.others)));
            next
        });
        let rank = (at, release, job);
        self.apps[job] = Some(App { leaf, user, rank, priority, runs: false, now: Counts::default() });
        if self.has_room(leaf, user) {
            self.start(job);
        } else if let Some(app) = &self.apps[job] {
            let turn = self.queues[leaf].turn(app);
            self.queues[leaf].waiting.insert(turn, user);
            self.n_waiting += 1;
        }
    }

    /// A job is finished or abandoned. Returns the applications that run now because of it, whose counts have
    /// to be updated.
    pub(super) fn leave(&mut self, job: JobId) -> Vec<JobId> {
        self.set(job, Counts::default());
        let Some(app) = self.apps[job].clone() else { return Vec::new() };
        self.apps.forget([job]);
        if !app.runs {
            let queue = &mut self.queues[app.leaf];
            queue.waiting.remove(&queue.turn(&app));
            self.n_waiting -= 1;
            return Vec::new();
        }
        for at in self.up(app.leaf).collect::<Vec<_>>() {
            self.queues[at].apps -= 1;
        }
        self.running[app.user].0 -= 1;
        let users = &mut self.queues[app.leaf].users;
        if let Some(here) = users.get_mut(&app.user) {
            here.apps -= 1;
            here.open.iter_mut().for_each(|open| open.forget([job]));
            if here.apps == 0 {
                users.remove(&app.user);
            }
        }
        self.start_waiting()
    }

    fn has_room(&self, leaf: QueueAt, user: UserAt) -> bool {
        let (runs, most) = self.running[user];
        let queue = &self.queues[leaf];
        runs < most && queue.has_room_for_am(user) && self.up(leaf).all(|at| !self.queues[at].is_full())
    }

    fn start(&mut self, job: JobId) {
        let Some(app) = &mut self.apps[job] else { return };
        app.runs = true;
        let (leaf, user) = (app.leaf, app.user);
        for at in self.up(leaf).collect::<Vec<_>>() {
            self.queues[at].apps += 1;
        }
        self.running[user].0 += 1;
        self.queues[leaf].users.entry(user).or_default().apps += 1;
    }

    /// Starts waiting applications as far as there is room, in the order of submission. Returns those whose
    /// counts have to be updated.
    pub(super) fn start_waiting(&mut self) -> Vec<JobId> {
        let mut started = Vec::new();
        while self.n_waiting > 0 {
            let first = |(leaf, queue): (QueueAt, &Queue)| {
                let mut waiting = queue.waiting.iter();
                waiting.find(|&(_, &user)| self.has_room(leaf, user)).map(|(&turn, _)| (turn, leaf))
            };
            let has_room =
                |&(leaf, _): &(QueueAt, &Queue)| self.up(leaf).all(|at| !self.queues[at].is_full());
            let Some((turn, leaf)) = self.queues.iter().enumerate().filter(has_room).filter_map(first).min()
            else {
                break;
            };
            self.queues[leaf].waiting.remove(&turn);
            self.n_waiting -= 1;
            let (_, (_, _, job)) = turn;
            self.start(job);
            started.push(job);
        }
        started
    }

    /// What an application uses and wants, as the book has it.
    pub(super) fn counts(&self, job: JobId) -> Counts {
        self.apps[job].as_ref().map_or_else(Counts::default, |app| app.now)
    }

    /// What an application uses and wants from now on; one that waits wants nothing yet, unless it turns out
    /// to run. O(queues above it + log applications).
    pub(super) fn set(&mut self, job: JobId, mut now: Counts) {
        let Some(app) = &self.apps[job] else { return };
        if !app.runs && now.used > 0 {
            // The cluster began it by itself.
            let (leaf, turn) = (app.leaf, self.queues[app.leaf].turn(app));
            self.queues[leaf].waiting.remove(&turn);
            self.n_waiting -= 1;
            self.start(job);
        } else if !app.runs {
            now = Counts::default();
        }
        let Some(app) = &self.apps[job] else { return };
        let (leaf, user, (at, release, _), before) = (app.leaf, app.user, app.rank, app.now);
        if before == now {
            return;
        }
        let key = self.key(self.queues[leaf].turns, app.priority, now);
        let mut chain = Some(leaf);
        while let Some(at) = chain {
            let queue = &mut self.queues[at];
            chain = queue.parent;
            queue.used = queue.used + now.used - before.used;
            for (open, (now, before)) in queue.open.iter_mut().zip(now.open.into_iter().zip(before.open)) {
                *open = *open + u32::from(now) - u32::from(before);
            }
        }
        if let Some(here) = self.queues[leaf].users.get_mut(&user) {
            here.used = here.used + now.used - before.used;
            here.wanting = here.wanting + u32::from(now.wants > 0) - u32::from(before.wants > 0);
            for slot_kind in 0..2 {
                if before.open[slot_kind] || now.open[slot_kind] {
                    here.open[slot_kind].set(job, now.open[slot_kind].then_some((key, at, release)));
                }
            }
        }
        if let Some(app) = &mut self.apps[job] {
            app.now = now;
        }
    }

    /// The order of applications of a leaf before the order of submission counts.
    fn key(&self, turns: Turns, priority: u32, now: Counts) -> Key {
        let used = f64::from(now.used);
        Key::new(match turns {
            Turns::Fifo => -f64::from(priority),
            Turns::Fair => used,
            Turns::FairBySize => {
                let demand = (f64::from(now.used) + f64::from(now.wants)) * self.container.memory as f64;
                if demand > 0.0 { used / (demand.ln_1p() / std::f64::consts::LN_2) } else { used }
            }
        })
    }
}
