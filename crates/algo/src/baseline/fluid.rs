//! What FIFO, Fair and EDF would do if work were fluid: plans on whole slots of one speed.
//!
//! **Paper**: FLEX §4 and FlowFlex §5.1 compare their plans with FIFO and Fair made this way.
//!
//! **Problem**: flows of any number of jobs, typed or universal slots, machines of one speed; work may be
//! divided at will, slots are whole. **Idea**
//! 1. At every event (a release, a phase done) the slots of each lane are given out anew.
//! 2. FIFO and EDF give every ready phase all it can hold, in their order.
//! 3. Fair gives every ready phase its share of the water-line. Shares have fractions and slots have
//!    none, so a phase whose fraction was rounded away gets it back later: as long as there are fractions
//!    they are rounded anew at least `TURNS` times in the time that all work takes at least, whoever is
//!    owed most first.
//!
//! **Guarantee**: that of the policies; Fair keeps minima. **Complexity**: O(n log n) an event for n ready
//! phases, two events a phase and `TURNS` a lane; one for each task besides while minima exceed the slots.
//! **Deviations**: none.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::vec::IntoIter;

use slackline_model::id::TiVec;
use slackline_model::schedule::Allocation;
use slackline_model::{FlowId, Instance, JobId, Lane, PhaseId, Time, tolerance};
use slackline_policy::minima;

use super::By;
use super::fair::by_flow;
use crate::classic::{Claim, water_line};
use crate::registry::Refused;

/// Which of the baselines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The oldest job or flow first.
    Fifo(By),
    /// Equal shares for jobs or flows.
    Fair(By),
    /// The earliest deadline first.
    Edf,
}

/// How many times fractions of slots change hands while all work is done on all slots.
const TURNS: f64 = 100.0;

/// Work below this part of a phase's is rounding: the phase is done.
const ROUNDING: f64 = 1e-12;

/// Slots of every phase over time, by phase and start.
///
/// # Errors
/// On machines of different speeds.
pub fn plan(instance: &Instance, rule: Rule) -> Result<Vec<Allocation>, Refused> {
    let policy = match rule {
        Rule::Fifo(_) => "fifo",
        Rule::Fair(_) => "fair",
        Rule::Edf => "edf",
    };
    let speed = instance.cluster().uniform_speed().ok_or(Refused::MixedSpeeds { policy })?;
    let mut run = Run::new(instance, rule, speed);
    run.all();
    run.rows.sort_by(|a, b| a.phase.cmp(&b.phase).then(a.start.total_cmp(&b.start)));
    Ok(run.rows)
}

/// What phases are served in the order of: two dates, flow, when the job became ready, job; then the id.
#[derive(Clone, Copy, Debug)]
struct Key {
    dates: [f64; 2],
    flow: FlowId,
    since: f64,
    job: JobId,
}

impl Key {
    fn new(instance: &Instance, rule: Rule, phase: PhaseId, since: f64) -> Self {
        let (id, job) = (instance.flow_of(phase), instance.phase(phase).job);
        let flow = instance.flow(id);
        let release = flow.release.seconds();
        let dates = match rule {
            Rule::Fifo(By::Job) => [since, release],
            Rule::Fifo(By::Flow) => [release, release],
            Rule::Edf => [flow.deadline.map_or(f64::INFINITY, Time::seconds), release],
            Rule::Fair(_) => [0.0, 0.0],
        };
        Self { dates, flow: id, since, job }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let dates = self.dates[0].total_cmp(&other.dates[0]).then(self.dates[1].total_cmp(&other.dates[1]));
        let job = self.since.total_cmp(&other.since).then(self.job.cmp(&other.job));
        dates.then(self.flow.cmp(&other.flow)).then(job)
    }
}

/// A ready phase.
#[derive(Clone, Copy, Debug)]
struct Ready {
    phase: PhaseId,
    key: Key,
    lane: Lane,
    /// Slot-seconds on the machines there are.
    work: f64,
    left: f64,
    /// The longest task there, unless it is work without tasks.
    longest: Option<f64>,
    cap: u32,
    slots: u32,
    /// Since when it holds them.
    start: f64,
    /// Slot-seconds of its shares that it was not given yet.
    owed: f64,
    /// Its share, fraction included.
    share: f64,
}

impl Ready {
    /// Tasks left, as the judge counts them.
    fn tasks(&self) -> u32 {
        let Some(longest) = self.longest else { return u32::MAX };
        let left = self.left - tolerance::of_amount(self.work);
        if left <= 0.0 || longest <= 0.0 { 0 } else { (left / longest).ceil() as u32 }
    }
}

/// A plan in progress.
struct Run<'a> {
    instance: &'a Instance,
    rule: Rule,
    speed: f64,
    now: f64,
    /// How long fractions stay rounded, seconds.
    turn: f64,
    /// Ready phases, first in the order first.
    ready: Vec<Ready>,
    /// Predecessors of each job that are not done.
    waits: TiVec<JobId, usize>,
    /// When each job became ready.
    since: TiVec<JobId, f64>,
    arrivals: Peekable<IntoIter<FlowId>>,
    /// Whether minima take all slots of a lane, or shares have fractions.
    crowded: [bool; 2],
    fractions: bool,
    rows: Vec<Allocation>,
}

impl<'a> Run<'a> {
    fn new(instance: &'a Instance, rule: Rule, speed: f64) -> Self {
        let mut arrivals: Vec<FlowId> = instance.flows().keys().collect();
        arrivals.sort_by_key(|&flow| (instance.flow(flow).release, flow));
        let work: f64 = instance.flows().iter().map(|flow| flow.work.slot_seconds()).sum();
        let capacity: f64 = instance.cluster().lanes().iter().map(|&l| instance.cluster().capacity(l)).sum();
        Self {
            instance,
            rule,
            speed,
            now: 0.0,
            turn: work / capacity / TURNS,
            ready: Vec::new(),
            waits: instance.jobs().iter().map(|job| job.after.len()).collect(),
            since: vec![0.0; instance.jobs().len()].into(),
            arrivals: arrivals.into_iter().peekable(),
            crowded: [false; 2],
            fractions: false,
            rows: Vec::new(),
        }
    }

    fn all(&mut self) {
        let release = |flow: FlowId| self.instance.flow(flow).release.seconds();
        loop {
            if self.ready.is_empty() {
                let Some(&flow) = self.arrivals.peek() else { return };
                self.now = self.now.max(release(flow));
            }
            while let Some(flow) = self.arrivals.next_if(|&flow| release(flow) <= self.now) {
                for job in self.instance.flow(flow).jobs() {
                    if self.instance.job(job).after.is_empty() {
                        self.begin(job);
                    }
                }
            }
            self.fractions = false;
            for &lane in self.instance.cluster().lanes() {
                self.give(lane);
            }
            let next = self.arrivals.peek().map_or(f64::INFINITY, |&flow| release(flow));
            self.advance(next);
        }
    }

    /// A job is ready.
    fn begin(&mut self, job: JobId) {
        self.since[job] = self.now;
        self.open(job, self.instance.job(job).phases().next());
    }

    /// A phase of a job is ready; without one the job is done. Phases without work are done at once.
    fn open(&mut self, job: JobId, phase: Option<PhaseId>) {
        let mut opening = vec![(job, phase)];
        while let Some((job, phase)) = opening.pop() {
            let Some(id) = phase else {
                for &next in &self.instance.job(job).before {
                    self.waits[next] -= 1;
                    if self.waits[next] == 0 {
                        self.since[next] = self.now;
                        opening.push((next, self.instance.job(next).phases().next()));
                    }
                }
                continue;
            };
            if self.instance.phase(id).work().0 == 0 {
                opening.push((job, self.after(id)));
            } else {
                self.enter(job, id);
            }
        }
    }

    fn enter(&mut self, job: JobId, id: PhaseId) {
        let phase = self.instance.phase(id);
        let work = phase.work().slot_seconds() / self.speed;
        let lane = self.instance.lane_of(id);
        let ready = Ready {
            phase: id,
            key: Key::new(self.instance, self.rule, id, self.since[job]),
            lane,
            work,
            left: work,
            longest: phase.tasks().map(|tasks| tasks.longest().seconds() / self.speed),
            cap: phase.cap.min(self.instance.cluster().slots(lane)),
            slots: 0,
            start: self.now,
            owed: 0.0,
            share: 0.0,
        };
        let before = |other: &Ready| other.key.cmp(&ready.key).then(other.phase.cmp(&id)).is_lt();
        let at = self.ready.partition_point(before);
        self.ready.insert(at, ready);
    }

    /// The phase of the same job that follows.
    fn after(&self, phase: PhaseId) -> Option<PhaseId> {
        self.instance.job(self.instance.phase(phase).job).phases().find(|&other| other > phase)
    }

    /// Gives out the slots of a lane.
    fn give(&mut self, lane: Lane) {
        let slots = match self.rule {
            Rule::Fair(by) => self.shares(lane, by),
            Rule::Fifo(_) | Rule::Edf => {
                let mut free = self.instance.cluster().slots(lane);
                let mine = self.ready.iter().filter(|ready| ready.lane == lane);
                mine.map(|ready| {
                    let slots = ready.cap.min(free);
                    free -= slots;
                    slots
                })
                .collect()
            }
        };
        let now = self.now;
        for (ready, slots) in self.ready.iter_mut().filter(|ready| ready.lane == lane).zip(slots) {
            if ready.slots != slots {
                record(ready, now, &mut self.rows);
                (ready.slots, ready.start) = (slots, now);
            }
        }
    }

    /// Fair's whole slots for the ready phases of a lane: its shares rounded down, and what is left by
    /// what is owed, then in order.
    fn shares(&mut self, lane: Lane, by: By) -> Vec<u32> {
        let instance = self.instance;
        let mut mine: Vec<&mut Ready> = self.ready.iter_mut().filter(|ready| ready.lane == lane).collect();
        let mut tasks: Vec<(PhaseId, u32)> = mine.iter().map(|r| (r.phase, r.tasks())).collect();
        tasks.sort_unstable();
        let minima = minima::among(instance, lane, &tasks);
        let minimum = |phase| minima.binary_search_by_key(&phase, |m| m.0).map_or(0, |at| minima[at].1);
        let claim = |ready: &&mut Ready| {
            let (min, weight) = (minimum(ready.phase), instance.flow(ready.key.flow).weight);
            (ready.phase, Claim { min: f64::from(min), max: f64::from(ready.cap.max(min)), weight })
        };
        let claims: Vec<(PhaseId, Claim)> = mine.iter().map(claim).collect();
        let total = instance.cluster().slots(lane);
        let shares = match by {
            By::Job => {
                let claims: Vec<Claim> = claims.iter().map(|claim| claim.1).collect();
                water_line(&claims, f64::from(total))
            }
            By::Flow => by_flow(&claims, f64::from(total), instance),
        };
        let whole = |share: f64| if share.fract() > 1.0 - 1e-9 { share.ceil() } else { share.floor() };
        let mut slots: Vec<u32> = shares.iter().map(|&share| whole(share) as u32).collect();
        for (ready, &share) in mine.iter_mut().zip(&shares) {
            ready.share = share;
        }
        let fraction = |k: usize| shares[k] - f64::from(slots[k]);
        let mut order: Vec<usize> = (0..mine.len()).collect();
        let owed = |k: usize| mine[k].owed + fraction(k).max(0.0) * self.turn;
        order.sort_by(|&a, &b| owed(b).total_cmp(&owed(a)));
        self.fractions |= (0..mine.len()).any(|k| fraction(k) > 1e-9);
        self.crowded[lane.index()] = minima.iter().map(|m| u64::from(m.1)).sum::<u64>() >= u64::from(total);
        let mut left = total.saturating_sub(slots.iter().sum());
        // One each first; more only where no weight claims what is left.
        for most in [1, u32::MAX] {
            for &k in &order {
                let more = (mine[k].cap.saturating_sub(slots[k])).min(left).min(most);
                slots[k] += more;
                left -= more;
            }
        }
        slots
    }

    /// Goes on to the next phase that is done, to `next`, or to where Fair has to look again.
    fn advance(&mut self, mut next: f64) {
        let mut done = None;
        for ready in self.ready.iter().filter(|ready| ready.slots > 0) {
            let end = self.now + ready.left / f64::from(ready.slots);
            if end < next {
                (next, done) = (end, Some(ready.phase));
            }
        }
        let mut look = if self.fractions { self.now + self.turn } else { f64::INFINITY };
        for ready in self.ready.iter().filter(|r| r.slots > 0 && self.crowded[r.lane.index()]) {
            // Where it has a task less and may be guaranteed less.
            let (Some(longest), tasks) = (ready.longest, ready.tasks()) else { continue };
            if tasks > 1 {
                let at = self.now + (ready.left - f64::from(tasks - 1) * longest) / f64::from(ready.slots);
                look = if at > self.now { look.min(at) } else { look };
            }
        }
        if look > self.now && look < next {
            (next, done) = (look, None);
        }
        for ready in &mut self.ready {
            ready.left -= f64::from(ready.slots) * (next - self.now);
            ready.owed += (ready.share - f64::from(ready.slots)) * (next - self.now);
        }
        self.now = next;
        let is_done = |ready: &Ready| done == Some(ready.phase) || ready.left <= ROUNDING * ready.work;
        let finished: Vec<Ready> = self.ready.extract_if(.., |ready| is_done(ready)).collect();
        for ready in &finished {
            record(ready, next, &mut self.rows);
        }
        for ready in finished {
            self.open(ready.key.job, self.after(ready.phase));
        }
    }
}

/// Writes down what a phase has held until now.
fn record(ready: &Ready, now: f64, rows: &mut Vec<Allocation>) {
    if ready.slots > 0 && now > ready.start {
        rows.push(Allocation { phase: ready.phase, start: ready.start, end: now, slots: ready.slots });
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::Draft;
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;

    /// Flows of a map phase each, by work, weight and deadline, on universal slots.
    fn instance(slots: u32, flows: &[(f64, f64, Option<f64>)]) -> Instance {
        let flow = |(k, &(work, weight, deadline)): (usize, &(f64, f64, Option<f64>))| {
            let map = Some(TasksDraft::Work { work, tasks: None }.into());
            let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
            FlowDraft { weight, deadline, ..FlowDraft::new(k.to_string(), vec![job]) }
        };
        let flows = flows.iter().enumerate().map(flow).collect();
        let slots = Slots::Universal(slots);
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
        assert_eq!(ends(&instance, Rule::Fifo(By::Job)), [10.0, 12.0, 13.0]);
        assert_eq!(ends(&instance, Rule::Edf), [13.0, 3.0, 1.0]);
    }

    #[test]
    fn fair_shares_whole_slots_by_turns() {
        // One slot for two: both are done at 10 if work is fluid, at most a turn of 0.1 s apart in whole slots.
        let equal = instance(1, &[(5.0, 1.0, None), (5.0, 1.0, None)]);
        let found = ends(&equal, Rule::Fair(By::Job));
        assert!(found.iter().all(|end| (9.85..10.01).contains(end)), "{found:?}");
        // Shares 1 and 2 of 3 slots: the second is done at 3, then the first has all.
        let weighted = instance(3, &[(6.0, 1.0, None), (6.0, 2.0, None)]);
        assert_eq!(ends(&weighted, Rule::Fair(By::Flow)), [4.0, 3.0]);
    }

    #[test]
    fn flows_of_no_weight_get_what_is_left() {
        let instance = instance(2, &[(4.0, 0.0, None), (4.0, 1.0, None), (2.0, 0.0, None)]);
        let found = ends(&instance, Rule::Fair(By::Job));
        assert!(found[1] == 2.0 && found.iter().all(|end| *end <= 5.0), "{found:?}");
    }
}
