//! Small cases with what Hadoop's rules make of them, worked out by hand. Ten slots are 10,240 MiB.

use slackline_model::{JobId, SlotKind, Time};

use super::book::{Book, Counts, QueueAt};
use super::capacity::{self, Capacity, Hierarchy, Mapping};
use super::fair::{self, Allocations, Amount, Placement, Resources};
use super::online::{Applicant, Rules};
use super::{Container, Turns, UserApps};

const CONTAINER: Container = Container { memory: 1024, vcores: 1 };

/// A scheduler with applications that each want a lot, and no cluster.
struct Bench<R> {
    rules: R,
    book: Book,
    jobs: u32,
    has_ams: bool,
}

impl<R: Rules> Bench<R> {
    fn new((rules, book): (R, Book)) -> Self {
        Self { rules, book, jobs: 0, has_ams: false }
    }

    fn with_ams(self) -> Self {
        Self { has_ams: true, ..self }
    }

    fn limit_ams(&mut self) {
        if self.has_ams {
            self.rules.limit_ams(&mut self.book);
        }
    }

    /// An application is over; others may run because of it, which want a lot.
    fn leave(&mut self, job: JobId) {
        self.limit_ams();
        for job in self.book.leave(job) {
            self.want(job, 100);
        }
    }

    /// Which applications may run: those want something.
    fn runs(&self, jobs: &[JobId]) -> Vec<bool> {
        jobs.iter().map(|&job| self.book.counts(job).wants > 0).collect()
    }

    /// Another application of a user in a queue.
    fn submit(&mut self, leaf: QueueAt, user: &str) -> JobId {
        self.submit_urgent(leaf, user, None)
    }

    /// The same of a flow with a priority.
    fn submit_urgent(&mut self, leaf: QueueAt, user: &str, priority: Option<u32>) -> JobId {
        let job = JobId(self.jobs);
        self.jobs += 1;
        let priority = self.rules.priority(leaf, priority);
        self.limit_ams();
        self.book.submit(job, leaf, user, priority, Time(u64::from(self.jobs)), Time::ZERO);
        self.want(job, 100);
        job
    }

    fn want(&mut self, job: JobId, wants: u32) {
        let used = self.book.counts(job).used;
        self.book.set(job, Counts { used, wants, open: [wants > 0, false] });
    }

    /// The jobs that get the next `slots` slots, in order.
    fn deal(&mut self, slots: u32) -> Vec<u32> {
        let mut dealt = Vec::new();
        let mut announced = Vec::new();
        for _ in 0..slots {
            let Some(job) = self.rules.next(&self.book, SlotKind::Any, &mut |_| true) else { break };
            assert!(announced.pop().is_none_or(|next| next == job));
            let Counts { used, wants, .. } = self.book.counts(job);
            let in_a_row = self.rules.in_a_row(&self.book, SlotKind::Any, job, wants.min(slots));
            if in_a_row as usize > announced.len() {
                announced = vec![job; in_a_row as usize - 1];
            }
            self.book.set(job, Counts { used: used + 1, wants: wants - 1, open: [wants > 1, false] });
            dealt.push(job.0);
        }
        dealt
    }

    fn used(&self, jobs: &[JobId]) -> Vec<u32> {
        jobs.iter().map(|&job| self.book.counts(job).used).collect()
    }

    fn leaf(&mut self, pool: Option<&str>, user: Option<&str>) -> Result<QueueAt, String> {
        self.rules.leaf(&mut self.book, Applicant { flow: "f", pool, user })
    }
}

/// Queues of the root, each with a percentage.
fn queues(percents: &[(&str, f32)]) -> Hierarchy {
    let mut all = vec![capacity::Queue::new("root", None, Capacity::Part(1.0))];
    for (name, percent) in percents {
        let part = Capacity::Part(percent / 100.0);
        all.push(capacity::Queue::new(&format!("root.{name}"), Some(0), part));
    }
    Hierarchy::of(all)
}

fn by_capacity(slots: u32, hierarchy: Hierarchy) -> Bench<capacity::ByCapacity> {
    Bench::new(capacity::parts(slots, hierarchy, CONTAINER))
}

#[test]
fn the_queue_that_uses_least_of_its_capacity_is_first() {
    // a has 7,167 MiB and b 3,072. At a tie the larger capacity is first; then use over capacity is a 0.14 b
    // 0, a 0.14 b 0.33, a 0.29 b 0.33, a 0.43 b 0.33, a 0.43 b 0.67, a 0.57 b 0.67, a 0.71 b 0.67, a 0.71 b
    // 1, a 0.86 b 1.
    let mut bench = by_capacity(10, queues(&[("a", 70.0), ("b", 30.0)]));
    let (a, b) = (bench.submit(1, "u"), bench.submit(2, "v"));
    assert_eq!(bench.deal(20), [0, 1, 0, 0, 1, 0, 0, 1, 0, 0]);
    assert_eq!(bench.used(&[a, b]), [7, 3]);
}

#[test]
fn a_queue_grows_to_its_maximum_and_a_user_one_container_over_the_limit() {
    let alone = |change: &dyn Fn(&mut capacity::Queue)| {
        let mut hierarchy = queues(&[("a", 40.0), ("b", 60.0)]);
        change(&mut hierarchy.queues[1]);
        let mut bench = by_capacity(10, hierarchy);
        bench.submit(1, "u");
        bench.deal(20).len()
    };
    // The limit is the queue's capacity, 4 slots, and is asked before a container, not after it.
    assert_eq!(alone(&|_| {}), 5);
    assert_eq!(alone(&|queue| queue.user_limit_factor = 2.0), 9);
    assert_eq!(alone(&|queue| queue.user_limit_factor = -1.0), 10);
    assert_eq!(alone(&|queue| (queue.user_limit_factor, queue.maximum) = (-1.0, Capacity::Part(0.5))), 5);
    // 7 containers would be 7,168 MiB, and 70 % in Hadoop's `float` are 7,167.
    assert_eq!(alone(&|queue| (queue.user_limit_factor, queue.maximum) = (-1.0, Capacity::Part(0.7))), 6);
    assert_eq!(alone(&|queue| (queue.user_limit_factor, queue.maximum) = (-1.0, Capacity::Memory(7_500))), 7);
}

#[test]
fn users_of_a_queue_share_it_by_their_limits() {
    // 12 slots, at least a quarter for every user. The limit is the larger of 3 slots and half of the slots
    // that both use and one more, up to whole containers: the first user gets 4 (the last above the limit), the second
    // 2; then the limit is ceil(7 / 2) = 4, so that the first gets another, and so on in turns.
    let mut hierarchy = queues(&[("a", 100.0)]);
    hierarchy.queues[1].user_limit = 25.0;
    let mut bench = by_capacity(12, hierarchy);
    let (u, v) = (bench.submit(1, "u"), bench.submit(1, "v"));
    assert_eq!(bench.deal(20), [0, 0, 0, 0, 1, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(bench.used(&[u, v]), [7, 5]);
}

#[test]
fn applications_of_higher_priority_are_first_where_the_order_is_fifo_and_the_cluster_lets_them() {
    let dealt = |priority_max: u32, turns: Turns| {
        let mut hierarchy = queues(&[("a", 100.0)]);
        hierarchy.priority_max = priority_max;
        (hierarchy.queues[1].turns, hierarchy.queues[1].app_priority) = (turns, 3);
        let mut bench = by_capacity(6, hierarchy);
        for priority in [Some(1), None, Some(9), Some(4)] {
            let job = bench.submit_urgent(1, "u", priority);
            bench.want(job, 2);
        }
        bench.deal(6)
    };
    assert_eq!(dealt(0, Turns::Fifo), [0, 0, 1, 1, 2, 2], "as Hadoop comes");
    assert_eq!(dealt(10, Turns::Fifo), [2, 2, 3, 3, 1, 1], "the one without has the queue's");
    assert_eq!(dealt(4, Turns::Fifo), [2, 2, 3, 3, 1, 1], "9 is 4 then, and came first");
    assert_eq!(dealt(3, Turns::Fifo), [1, 1, 2, 2, 3, 3]);
    assert_eq!(dealt(10, Turns::Fair), [0, 1, 2, 3, 0, 1], "fair looks at use alone");
}

#[test]
fn users_share_nothing_by_hundred_percent() {
    let mut bench = by_capacity(4, queues(&[("a", 100.0)]));
    bench.submit(1, "u");
    bench.submit(1, "v");
    assert_eq!(bench.deal(4), [0; 4], "the first in, first out");
}

#[test]
fn applications_of_a_leaf_take_turns_by_use_where_it_says_so() {
    let order = |turns: Turns| {
        let mut hierarchy = queues(&[("a", 100.0)]);
        hierarchy.queues[1].turns = turns;
        let mut bench = by_capacity(8, hierarchy);
        bench.submit(1, "u");
        let small = bench.submit(1, "u");
        bench.want(small, 4);
        bench.deal(8)
    };
    assert_eq!(order(Turns::Fifo), [0; 8]);
    assert_eq!(order(Turns::Fair), [0, 1, 0, 1, 0, 1, 0, 1]);
    // By log2(1 + MiB) of 100 and of 4 containers, 16.64 and 12: in the end 4 against 3 are 0.240 against
    // 0.250.
    assert_eq!(order(Turns::FairBySize), [0, 1, 0, 1, 0, 1, 0, 0]);
}

#[test]
fn queues_in_queues_share_what_their_parent_has() {
    let mut hierarchy = queues(&[("a", 60.0), ("b", 40.0)]);
    for name in ["root.a.x", "root.a.y"] {
        let mut queue = capacity::Queue::new(name, Some(1), Capacity::Part(0.5));
        queue.user_limit_factor = -1.0;
        hierarchy.queues.push(queue);
    }
    let mut bench = by_capacity(10, hierarchy);
    let (x, b) = (bench.submit(3, "u"), bench.submit(2, "v"));
    bench.deal(10);
    assert_eq!(bench.used(&[x, b]), [6, 4], "x has what y does not use");
    let y = bench.submit(4, "w");
    // As containers end, y is first: it uses nothing.
    bench.book.set(x, Counts { used: 4, wants: 100, open: [true, false] });
    assert_eq!(bench.deal(10), [y.0, y.0]);
}

#[test]
fn priorities_of_queues_count_within_their_guarantees() {
    let mut hierarchy = queues(&[("a", 50.0), ("b", 50.0)]);
    hierarchy.queues[0].by_priority = true;
    hierarchy.queues[2].priority = 5;
    for queue in &mut hierarchy.queues {
        queue.user_limit_factor = -1.0;
    }
    let mut bench = by_capacity(4, hierarchy);
    bench.submit(1, "u");
    bench.submit(2, "v");
    // b until it has its 2, then a, which is below its guarantee.
    assert_eq!(bench.deal(4), [1, 1, 0, 0]);
}

#[test]
fn memory_too_small_for_a_container_is_withheld_from_siblings() {
    // a may have 2,560 MiB, of which 512 are left: too little, and as many less for b, which then lacks a
    // whole slot.
    let mut hierarchy = queues(&[("a", 50.0), ("b", 50.0)]);
    hierarchy.queues[1].maximum = Capacity::Memory(2_560);
    for queue in &mut hierarchy.queues {
        queue.user_limit_factor = -1.0;
    }
    let mut bench = by_capacity(6, hierarchy);
    let (a, b) = (bench.submit(1, "u"), bench.submit(2, "v"));
    bench.deal(10);
    assert_eq!(bench.used(&[a, b]), [2, 3], "a slot stays free although b could use it");
    bench.want(a, 0);
    assert_eq!(bench.deal(10), [b.0]);
}

#[test]
fn absolute_capacities_shrink_together_on_a_small_cluster() {
    let mut hierarchy = queues(&[("a", 0.0), ("b", 0.0)]);
    hierarchy.queues[1].capacity = Capacity::Memory(12_288);
    hierarchy.queues[2].capacity = Capacity::Memory(4_096);
    for queue in &mut hierarchy.queues {
        queue.user_limit_factor = -1.0;
    }
    let mut bench = by_capacity(8, hierarchy);
    let (a, b) = (bench.submit(1, "u"), bench.submit(2, "v"));
    bench.deal(8);
    assert_eq!(bench.used(&[a, b]), [6, 2]);
}

#[test]
fn the_queue_is_the_pool_or_what_a_mapping_says() {
    let mut hierarchy = queues(&[("default", 50.0), ("users", 50.0)]);
    hierarchy.queues.push(capacity::Queue::new("root.users.ann", Some(2), Capacity::Part(1.0)));
    let mapping =
        |user: Option<&str>, queue: &str| Mapping { user: user.map(Into::into), queue: queue.into() };
    hierarchy.mappings = vec![mapping(Some("bob"), "default"), mapping(None, "root.users.%user")];
    let mut bench = by_capacity(4, hierarchy.clone());
    assert_eq!(bench.leaf(None, None), Ok(1));
    assert_eq!(bench.leaf(None, Some("ann")), Ok(3));
    assert_eq!(bench.leaf(None, Some("eve")), Ok(1), "she has no queue");
    assert_eq!(bench.leaf(Some("ann"), None), Ok(3), "by its short name");
    assert_eq!(bench.leaf(Some("root.users.ann"), Some("bob")), Ok(3));
    let refused = bench.leaf(Some("users"), None).unwrap_err();
    assert!(
        refused.starts_with(
            "flow \"f\" has the pool \"users\", expected one of the leaf queues root.default, root.users.ann"
        ),
        "{refused}"
    );
    hierarchy.mappings_first = true;
    hierarchy.otherwise = Some(1);
    let mut bench = by_capacity(4, hierarchy);
    assert_eq!(bench.leaf(Some("root.users.ann"), Some("bob")), Ok(1));
    assert_eq!(bench.leaf(Some("nowhere"), None), Ok(1));
}

/// A name, and what is changed of its queue.
type Changed<'a> = (&'a str, &'a dyn Fn(&mut fair::Queue));

/// Queues of the root, changed each.
fn pools(changes: &[Changed<'_>]) -> Allocations {
    let mut allocations = Allocations::default();
    for (name, change) in changes {
        let mut queue = fair::Queue::new(&format!("root.{name}"), Some(0));
        change(&mut queue);
        allocations.queues.push(queue);
    }
    allocations
}

fn by_share(slots: u32, allocations: Allocations) -> Bench<fair::ByShare> {
    Bench::new(fair::parts(slots, allocations, CONTAINER))
}

#[test]
fn pools_share_by_weight() {
    let mut bench = by_share(9, pools(&[("a", &|queue| queue.weight = 2.0), ("b", &|_| {})]));
    let (a, b) = (bench.submit(1, "u"), bench.submit(2, "u"));
    // Use over weight: a 0 b 0 (by name), a 0.5 b 0, a 0.5 b 1, a 1 b 1, a 1.5 b 1, and so on.
    assert_eq!(bench.deal(6), [0, 1, 0, 0, 1, 0]);
    bench.deal(3);
    assert_eq!(bench.used(&[a, b]), [6, 3]);
}

#[test]
fn a_minimum_comes_before_weights_and_a_maximum_before_both() {
    let mut bench =
        by_share(8, pools(&[("a", &|queue| queue.min_memory = 3_500), ("b", &|queue| queue.weight = 3.0)]));
    let (a, b) = (bench.submit(1, "u"), bench.submit(2, "u"));
    // 3,500 MiB are reached by the fourth container.
    assert_eq!(bench.deal(8), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(bench.used(&[a, b]), [4, 4]);
    let two = Resources { memory: Amount::Part(0.5), vcores: Amount::Absolute(2) };
    let mut bench = by_share(8, pools(&[("a", &|queue| queue.max = two), ("b", &|_| {})]));
    let (a, b) = (bench.submit(1, "u"), bench.submit(2, "u"));
    bench.deal(8);
    assert_eq!(bench.used(&[a, b]), [2, 6], "half of the memory, but two cores");
}

#[test]
fn both_below_their_minima_the_one_with_the_smaller_part_of_it_is_first() {
    let mut bench = by_share(
        6,
        pools(&[("a", &|queue| queue.min_memory = 2_048), ("b", &|queue| queue.min_memory = 4_096)]),
    );
    bench.submit(1, "u");
    bench.submit(2, "u");
    assert_eq!(bench.deal(6), [0, 1, 1, 0, 1, 1], "0 0, 1/2 0, 1/2 1/4, 1/2 1/2, 1 1/2, 1 3/4");
}

#[test]
fn no_more_applications_run_than_may() {
    let mut allocations = pools(&[("a", &|queue| queue.apps = 2), ("b", &|_| {})]);
    allocations.user_apps = UserApps { others: 2, ..UserApps::default() };
    let mut bench = by_share(12, allocations);
    let first = bench.submit(1, "u");
    let second = bench.submit(1, "v");
    let third = bench.submit(1, "w");
    let fourth = bench.submit(2, "v");
    let fifth = bench.submit(2, "v");
    bench.deal(6);
    assert_eq!(bench.used(&[first, second, third, fourth, fifth]), [2, 1, 0, 3, 0]);
    // The third has waited for its queue, the fifth for its user, and the user has one more that runs.
    assert_eq!(bench.book.leave(first), [third]);
    assert_eq!(bench.book.leave(fourth), [fifth]);
    bench.want(third, 1);
    bench.want(fifth, 1);
    assert_eq!(bench.deal(2), [fifth.0, third.0]);
}

#[test]
fn a_pool_without_a_queue_gets_one() {
    let mut allocations = pools(&[("a", &|queue| queue.is_parent = true)]);
    allocations.default.weight = 4.0;
    let mut bench = by_share(4, allocations);
    assert_eq!(bench.leaf(Some("b"), None), Ok(2));
    assert_eq!(bench.leaf(Some("root.b"), None), Ok(2));
    assert_eq!(bench.leaf(Some("a.c"), None), Ok(3), "in the queue a");
    assert_eq!(bench.leaf(None, Some("j.doe")), Ok(4));
    assert_eq!(bench.leaf(Some("j_dot_doe"), None), Ok(4));
    assert_eq!(bench.leaf(None, None), Ok(5));
    assert_eq!(bench.leaf(Some("default"), None), Ok(5));
    assert_eq!(bench.leaf(Some("x.y.z"), None), Ok(8), "with two above it");
    for pool in ["a", "b.c", "b.", "root"] {
        let refused = bench.leaf(Some(pool), None).unwrap_err();
        assert!(refused.contains("expected a queue without queues in it"), "{pool}: {refused}");
    }
}

#[test]
fn rules_place_applications_in_their_order() {
    let mut allocations = pools(&[("a", &|_| {}), ("users", &|queue| queue.is_parent = true)]);
    let users = Placement::Default { queue: "users".into(), create: false };
    allocations.placement = vec![
        Placement::Specified { create: false },
        Placement::User { create: true, within: Some(Box::new(users)) },
        Placement::Reject,
    ];
    let mut bench = by_share(4, allocations);
    assert_eq!(bench.leaf(Some("a"), Some("u")), Ok(1));
    assert_eq!(bench.leaf(Some("b"), Some("u")), Ok(3), "root.users.u");
    let refused = bench.leaf(Some("b"), None).unwrap_err();
    assert!(refused.contains("the placement policy of the file gives it no queue"), "{refused}");
}

#[test]
fn ams_hold_a_part_of_the_limits_of_a_queue_and_of_a_user() {
    // 20 slots, half of them guaranteed: ApplicationMasters of all users hold a fifth of the current limit of
    // the queue, which is all, and those of one user a fifth of the guarantee of the queue.
    let mut hierarchy = queues(&[("a", 50.0), ("b", 50.0)]);
    hierarchy.queues[1].ams = 0.2;
    let mut bench = by_capacity(20, hierarchy).with_ams();
    let ann: Vec<JobId> = (0..4).map(|_| bench.submit(1, "ann")).collect();
    let bob: Vec<JobId> = (0..4).map(|_| bench.submit(1, "bob")).collect();
    assert_eq!(bench.runs(&ann), [true, true, false, false]);
    assert_eq!(bench.runs(&bob), [true, true, false, false], "four of them hold the fifth of all");
    bench.leave(bob[0]);
    assert_eq!(bench.runs(&[ann[2], bob[2]]), [false, true], "ann has what one may");
    bench.leave(ann[0]);
    assert_eq!(bench.runs(&ann[1..]), [true, true, false]);
}

#[test]
fn one_am_is_always_there_and_the_most_urgent_next() {
    let mut hierarchy = queues(&[("a", 100.0)]);
    (hierarchy.queues[1].ams, hierarchy.priority_max) = (0.001, 9);
    let mut bench = by_capacity(10, hierarchy.clone()).with_ams();
    let jobs: Vec<JobId> = [None, Some(1), Some(5)]
        .into_iter()
        .map(|priority| bench.submit_urgent(1, "ann", priority))
        .collect();
    assert_eq!(bench.runs(&jobs), [true, false, false]);
    bench.leave(jobs[0]);
    assert_eq!(bench.runs(&jobs[1..]), [false, true]);
    // Where AMs hold no slots there is nothing to limit.
    let mut bench = by_capacity(10, hierarchy);
    let jobs: Vec<JobId> = (0..3).map(|_| bench.submit(1, "ann")).collect();
    assert_eq!(bench.runs(&jobs), [true; 3]);
}

#[test]
fn another_capacity_leaves_the_rest_to_the_others() {
    let mut hierarchy = queues(&[("a", 50.0), ("b", 30.0), ("c", 20.0)]);
    hierarchy.queues[2].maximum = Capacity::Part(0.5);
    let parts = |name: &str, part| {
        let changed = hierarchy.clone().with_capacity(name, part).unwrap();
        let percent = |of: Capacity| match of {
            Capacity::Part(part) => (part * 100.0).round(),
            Capacity::Memory(_) => f32::NAN,
        };
        changed.queues[1..]
            .iter()
            .map(|queue| (percent(queue.capacity), percent(queue.maximum)))
            .collect::<Vec<_>>()
    };
    assert_eq!(parts("root.a", 0.75), [(75.0, 100.0), (15.0, 50.0), (10.0, 100.0)]);
    assert_eq!(parts("a", 0.0), [(0.0, 100.0), (60.0, 60.0), (40.0, 100.0)]);
    let nothing = queues(&[("a", 100.0), ("b", 0.0), ("c", 0.0)]).with_capacity("a", 0.5).unwrap();
    assert_eq!(nothing.queues[2].capacity, Capacity::Part(0.25));
    let error = |name| hierarchy.clone().with_capacity(name, 0.5).unwrap_err();
    assert!(error("d").contains("one of a, ") && error("root.d").contains("one of root.a, "));
    assert!(error("root").contains("has the whole cluster"));
    let alone = queues(&[("a", 100.0)]).with_capacity("a", 0.5).unwrap_err();
    assert!(alone.contains("expected a queue with siblings"), "{alone}");
}
