//! Flows that are read one at a time: each is checked and prepared to arrive in a growing instance. Of each
//! flow, only a number for its name is kept, except for recurring flows.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::rc::Rc;

use super::build::{arrival, build};
use super::check::check_one;
use super::derive::{derive, resolve_costs};
use super::{Arrival, DeadlineRule, Instance};
use crate::draft::{Draft, FlowDraft};
use crate::error::{Invalid, Problem};
use crate::time::{SECONDS_MAX, Span, Time};

/// Takes flows as they are read, in the order of their releases, and returns them in the order of arrival,
/// with the recurrences of recurring flows in between.
#[derive(Debug)]
pub struct Intake {
    /// Everything except the flows; temporarily also the flow that is being prepared.
    instance: Instance,
    head: Draft,
    deadlines: Option<DeadlineRule>,
    grain: Option<Span>,
    /// Hashes of the names so far.
    names: BTreeSet<u128>,
    /// Work of all flows so far, in slot-seconds.
    work: f64,
    read: usize,
    /// The release of the last flow that was read.
    latest: Time,
    coming: BinaryHeap<Reverse<Coming>>,
}

/// A flow that is not valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The mark that the caller gave it, such as its line.
    pub mark: u32,
    /// The problems, with paths within the flow.
    pub invalid: Invalid,
}

/// A flow that will arrive, possibly with recurrences.
#[derive(Debug)]
struct Coming {
    release: Time,
    /// The index of the flow in reading order, and of its recurrence.
    rank: (usize, u32),
    mark: u32,
    draft: Rc<FlowDraft>,
}

crate::order_by_key!(Coming, |flow| (flow.release, flow.rank));

impl Coming {
    /// The recurrence of that number, if it exists.
    fn of(draft: Rc<FlowDraft>, index: usize, k: u32, mark: u32) -> Option<Self> {
        let (_, shift) = draft.recurrence(k)?;
        let release = Time::from_seconds_nearest(draft.release + shift);
        Some(Self { release, rank: (index, k), mark, draft })
    }
}

impl Intake {
    /// Creates an intake for the cluster, pools and objective of `head`, whose flows are ignored. If
    /// `deadlines` is given, every flow gets a deadline by this rule. If `grain` is given, uncut work is cut with
    /// it.
    ///
    /// # Errors
    /// Errors of the head.
    pub fn new(head: Draft, deadlines: Option<DeadlineRule>, grain: Option<Span>) -> Result<Self, Invalid> {
        let head = Draft { flows: Vec::new(), ..head };
        Ok(Self {
            instance: build(&head)?,
            head,
            deadlines,
            grain,
            names: BTreeSet::new(),
            work: 0.0,
            read: 0,
            latest: Time::ZERO,
            coming: BinaryHeap::new(),
        })
    }

    /// The cluster, the pools and the objective, without flows. A growing instance starts as a copy of it.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Work of all flows that were read, in slot-seconds.
    pub fn work(&self) -> f64 {
        self.work
    }

    /// The release of the last flow that was read.
    pub fn latest(&self) -> Time {
        self.latest
    }

    /// Adds a flow; `mark` is returned with its errors. O(its size).
    ///
    /// # Errors
    /// Errors of the flow; a release before that of the previous flow.
    pub fn give(&mut self, flow: FlowDraft, mark: u32) -> Result<(), Refused> {
        let refused = |invalid| Refused { mark, invalid };
        check_one(&self.head, self.instance.cluster(), &flow, &mut self.work).map_err(refused)?;
        let release = Time::from_seconds_nearest(flow.release);
        if release < self.latest {
            let (found, latest) = (release.seconds(), self.latest.seconds());
            let what = format!(
                "found a release at {found} s after one at {latest} s, expected flows in the order of their releases"
            );
            return Err(refused(problem("release", what)));
        }
        self.latest = release;
        self.coming.extend(Coming::of(Rc::new(flow), self.read, 0, mark).map(Reverse));
        self.read += 1;
        Ok(())
    }

    /// The next flow that arrives, if it is known: its release is not after that of the last flow that was
    /// read, or `no_more` is true. O(its size · log flows).
    ///
    /// # Errors
    /// A name of an earlier flow; no cost although the metric needs one; a deadline beyond the limit.
    pub fn take(&mut self, no_more: bool) -> Result<Option<Arrival>, Refused> {
        if !self.coming.peek().is_some_and(|Reverse(first)| no_more || first.release <= self.latest) {
            return Ok(None);
        }
        let Some(Reverse(Coming { rank, mark, draft, .. })) = self.coming.pop() else { return Ok(None) };
        let next = Coming::of(Rc::clone(&draft), rank.0, rank.1 + 1, mark);
        let arrival = self.arrival(&draft, rank.0, rank.1, next.as_ref().map(|next| next.release));
        self.coming.extend(next.map(Reverse));
        arrival.map(Some).map_err(|invalid| Refused { mark, invalid })
    }

    fn arrival(
        &mut self,
        draft: &FlowDraft,
        index: usize,
        k: u32,
        next: Option<Time>,
    ) -> Result<Arrival, Invalid> {
        let (name, shift) = draft.recurrence(k).expect("invariant: only recurrences that there are come");
        if !self.names.insert(hash(&name)) {
            return Err(problem("id", format!("found flow {name:?} a second time")));
        }
        let ids = self.instance.phases().len() + 2 * draft.jobs.len();
        if u32::try_from(ids).is_err() {
            return Err(problem("", format!("found {ids} phases up to here, expected fewer than 2^32")));
        }
        let mut arrival = arrival(&self.instance, index, draft, shift, name);
        arrival.announce(next);
        let instance = &mut self.instance;
        let id = instance.admit(arrival);
        derive(instance, id);
        if let Some(rule) = &self.deadlines {
            let deadline = rule.deadline(instance, id).map_err(|deadline| {
                let what = format!("found a deadline of {deadline} s, expected at most {SECONDS_MAX} s");
                problem("deadline", what)
            })?;
            instance.flows[id].deadline = Some(deadline);
        }
        resolve_costs(instance).map_err(|invalid| within_flow(&invalid))?;
        if let Some(grain) = self.grain {
            instance.cut_work(grain);
        }
        let arrival = instance.excerpt(id);
        instance.retire(id);
        Ok(arrival)
    }

    /// The number of tasks that were made of work.
    pub fn n_cut(&self) -> u64 {
        self.instance.n_cut()
    }
}

fn problem(path: &str, what: String) -> Invalid {
    Invalid { problems: vec![Problem { path: path.to_owned(), what }] }
}

/// The same problems, with paths within the only flow.
fn within_flow(invalid: &Invalid) -> Invalid {
    let within = |path: &str| path.split_once("].").map_or(path, |(_, rest)| rest).to_owned();
    let problem = |p: &Problem| Problem { path: within(&p.path), what: p.what.clone() };
    Invalid { problems: invalid.problems.iter().map(problem).collect() }
}

/// FNV-1a with 128 bits: two names of 10^7 share a hash with a probability of 10^-25.
fn hash(name: &str) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    name.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Slots;
    use crate::draft::{JobDraft, MachineDraft, Repeat, TasksDraft};
    use crate::id::FlowId;

    fn flow(id: &str, release: f64, repeat: Option<Repeat>) -> FlowDraft {
        let map = Some(TasksDraft::Work { work: 25.0, tasks: None }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        FlowDraft { release, repeat, ..FlowDraft::new(id, vec![job]) }
    }

    fn draft(flows: Vec<FlowDraft>) -> Draft {
        let slots = Slots::Generic(2);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        Draft { machines: vec![machine], flows, ..Draft::default() }
    }

    fn intake() -> Intake {
        let grain = Span::from_seconds_nearest(10.0);
        let rule = Instance::new(&draft(Vec::new())).unwrap().deadline_rule(2.0, Some(grain));
        Intake::new(draft(Vec::new()), Some(rule), Some(grain)).unwrap()
    }

    /// All arrivals until another flow is needed.
    fn drain(intake: &mut Intake, no_more: bool) -> Vec<Arrival> {
        std::iter::from_fn(|| intake.take(no_more).unwrap()).collect()
    }

    #[test]
    fn flows_one_by_one_are_those_of_the_whole() {
        let flows = vec![flow("a", 0.0, None), flow("b", 3.0, None), flow("c", 3.0, None)];
        let whole = Instance::new(&draft(flows.clone())).unwrap();
        let grain = Span::from_seconds_nearest(10.0);
        let rule = whole.deadline_rule(2.0, Some(grain));
        let whole = whole.with_deadlines(&rule).unwrap().cut(grain);
        let mut intake = intake();
        let mut grown = intake.instance().clone();
        for (k, flow) in flows.into_iter().enumerate() {
            intake.give(flow, k as u32).unwrap();
            for arrival in drain(&mut intake, false) {
                grown.admit(arrival);
            }
        }
        assert_eq!(drain(&mut intake, true), []);
        assert_eq!((grown.n_tasks(), intake.n_cut()), (9, 9));
        for id in whole.flows().keys() {
            assert_eq!(grown.excerpt(id), whole.excerpt(id));
        }
    }

    #[test]
    fn recurring_flows_arrive_between_the_others() {
        let mut intake = intake();
        intake.give(flow("r", 0.0, Some(Repeat { every: 4.0, times: 3 })), 1).unwrap();
        let mut seen = drain(&mut intake, false);
        assert_eq!(seen[0].flow().next_release, Some(Time::from_seconds_nearest(4.0)));
        intake.give(flow("x", 4.0, None), 2).unwrap();
        seen.extend(drain(&mut intake, false));
        seen.extend(drain(&mut intake, true));
        let names: Vec<&str> = seen.iter().map(|arrival| &*arrival.flow().id).collect();
        assert_eq!(names, ["r#0", "r#1", "x", "r#2"]);
        assert_eq!(seen[3].flow().place, FlowId(3));
    }

    #[test]
    fn errors_have_their_mark() {
        let problem = |refused: Refused| (refused.mark, refused.invalid.problems[0].clone());
        let mut intake = intake();
        intake.give(flow("a", 5.0, None), 7).unwrap();
        let (mark, early) = problem(intake.give(flow("b", 4.0, None), 8).unwrap_err());
        assert_eq!((mark, &*early.path), (8, "release"));
        assert!(early.what.contains("found a release at 4 s after one at 5 s"), "{}", early.what);
        let (_, none) = problem(intake.give(FlowDraft::new("c", Vec::new()), 9).unwrap_err());
        assert_eq!((&*none.path, &*none.what), ("jobs", "found no jobs, expected at least one"));
        intake.give(flow("a", 6.0, None), 10).unwrap();
        drain_one(&mut intake);
        let (mark, twice) = problem(intake.take(false).unwrap_err());
        assert_eq!((mark, &*twice.what), (10, "found flow \"a\" a second time"));
    }

    fn drain_one(intake: &mut Intake) {
        assert!(intake.take(false).unwrap().is_some());
    }

    #[test]
    fn nothing_is_kept_of_flows_that_were_handed_on() {
        let mut intake = intake();
        for k in 0..1000 {
            intake.give(flow(&format!("f{k}"), f64::from(k), None), k).unwrap();
            drain_one(&mut intake);
            assert_eq!((intake.instance().flows().keys().count(), intake.coming.len()), (0, 0));
        }
    }
}
