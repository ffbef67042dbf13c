//! Instances that grow: flows move from one instance to another, arrive there, and are forgotten.

use super::{Flow, Instance, Job, Phase, Pool};
use crate::cluster::Cluster;
use crate::id::{FlowId, JobId, PhaseId, PoolId};
use crate::table::Table;
use crate::time::{Span, Time};

/// A separate flow that can arrive in a growing instance ([`Instance::admit`]). Its derived values hold on
/// the cluster of the instance it was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Ids in it count from 0.
    flow: Flow,
    jobs: Vec<Job>,
    phases: Vec<Phase>,
    /// The pool of the flow, since the instance in which it arrives may have other pools.
    pool: Option<Pool>,
}

impl Arrival {
    /// A flow with its jobs and phases, whose ids count from 0.
    pub(super) fn new(flow: Flow, jobs: Vec<Job>, phases: Vec<Phase>) -> Self {
        Self { flow, jobs, phases, pool: None }
    }

    /// Announces the next release of the flow.
    pub fn announce(&mut self, next: Option<Time>) {
        self.flow.next_release = next;
    }

    /// Cuts its work like [`Instance::cut`], for an instance like `empty`, which has no flows.
    #[must_use]
    pub fn cut(self, grain: Span, empty: &Instance) -> Self {
        if self.phases.iter().all(|phase| phase.tasks().is_some()) {
            return self;
        }
        let mut only = empty.without_flows();
        let id = only.admit(self);
        only.cut(grain).excerpt(id)
    }

    /// The flow; its ids are meaningless before it is admitted.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The number of its jobs.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// The number of its phases.
    pub fn n_phases(&self) -> usize {
        self.phases.len()
    }
}

/// Moves the ids of a flow that count from `from` so that they count from `to`.
#[derive(Clone, Copy)]
struct Shift<I> {
    from: I,
    to: I,
}

impl Shift<JobId> {
    fn job(self, id: JobId) -> JobId {
        JobId(id.0 - self.from.0 + self.to.0)
    }
}

impl Shift<PhaseId> {
    fn phase(self, id: PhaseId) -> PhaseId {
        PhaseId(id.0 - self.from.0 + self.to.0)
    }
}

fn moved_job(job: &mut Job, flow: FlowId, jobs: Shift<JobId>, phases: Shift<PhaseId>) {
    job.flow = flow;
    job.after.iter_mut().chain(&mut job.before).for_each(|id| *id = jobs.job(*id));
    job.map = job.map.map(|id| phases.phase(id));
    job.reduce = job.reduce.map(|id| phases.phase(id));
}

fn moved_flow(flow: &mut Flow, jobs: Shift<JobId>, phases: Shift<PhaseId>) {
    flow.jobs = jobs.to.0..jobs.to.0 + flow.jobs.len() as u32;
    flow.phases = phases.to.0..phases.to.0 + flow.phases.len() as u32;
    flow.topological.iter_mut().for_each(|id| *id = jobs.job(*id));
}

impl Instance {
    /// The same cluster, pools and objective without any flow: the start of a growing instance.
    #[must_use]
    pub fn without_flows(&self) -> Self {
        Self {
            start: self.start.clone(),
            cluster: self.cluster.clone(),
            objective: self.objective,
            weights: self.weights,
            flows: Table::new(),
            jobs: Table::new(),
            phases: Table::new(),
            pools: self.pools.clone(),
            n_cut: 0,
        }
    }

    /// A copy of a flow, for an instance of the same cluster and pools. O(its jobs and phases).
    pub fn excerpt(&self, id: FlowId) -> Arrival {
        let mut flow = self.flows[id].clone();
        let jobs = Shift { from: JobId(flow.jobs.start), to: JobId(0) };
        let phases = Shift { from: PhaseId(flow.phases.start), to: PhaseId(0) };
        let copy_job = |id| {
            let mut job = self.jobs[id].clone();
            moved_job(&mut job, FlowId(0), jobs, phases);
            job
        };
        let copy_phase = |id| {
            let phase = &self.phases[id];
            Phase { flow: FlowId(0), job: jobs.job(phase.job), ..phase.clone() }
        };
        let copies = (flow.jobs().map(copy_job).collect(), flow.phases().map(copy_phase).collect());
        moved_flow(&mut flow, jobs, phases);
        let pool = flow.pool.map(|pool| self.pools[pool].clone());
        Arrival { pool, ..Arrival::new(flow, copies.0, copies.1) }
    }

    /// Whether a flow can arrive here: its pool exists, and there are slots for all its phases.
    pub fn can_admit(&self, arrival: &Arrival) -> bool {
        let has_slots = |phase: &Phase| self.cluster.slots(self.cluster.slot_kind_of(phase.kind)) > 0;
        arrival.flow.pool.is_none_or(|pool| arrival.pool.is_some() || pool.index() < self.pools.len())
            && arrival.phases.iter().all(has_slots)
    }

    /// Adds a flow: it gets the next id, and so do its jobs and phases. Its pool is the one of that name
    /// here, or a new one. O(its jobs and phases, and the pools if its pool has another index here).
    pub fn admit(&mut self, arrival: Arrival) -> FlowId {
        let Arrival { mut flow, jobs, phases, pool } = arrival;
        if let Some(pool) = pool {
            flow.pool = Some(self.pool_of(flow.pool, pool));
        }
        let id = FlowId::from(self.flows.len());
        let job_shift = Shift { from: JobId(0), to: JobId::from(self.jobs.len()) };
        let phase_shift = Shift { from: PhaseId(0), to: PhaseId::from(self.phases.len()) };
        moved_flow(&mut flow, job_shift, phase_shift);
        for mut job in jobs {
            moved_job(&mut job, id, job_shift, phase_shift);
            self.jobs.push(job);
        }
        for phase in phases {
            self.phases.push(Phase { flow: id, job: job_shift.job(phase.job), ..phase });
        }
        self.flows.push(flow)
    }

    /// The pool here with the name of a flow's pool.
    fn pool_of(&mut self, place: Option<PoolId>, pool: Pool) -> PoolId {
        let is_it = |known: &Pool| known.id == pool.id;
        let same = place.filter(|&place| self.pools.get(place).is_some_and(is_it));
        let found = same.or_else(|| self.pools.position(is_it));
        found.unwrap_or_else(|| self.pools.push_and_get_key(pool))
    }

    /// Forgets a flow with its jobs and phases; their ids are never reused. Does nothing if the flow is
    /// unknown. O(its jobs and phases).
    pub fn retire(&mut self, id: FlowId) {
        let Some(flow) = self.flows.remove(id) else { return };
        for job in flow.jobs() {
            self.jobs.remove(job);
        }
        for phase in flow.phases() {
            self.phases.remove(phase);
        }
    }

    /// The machines, for joining and leaving.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// The phase of `other` from which a phase here was copied ([`Flow::place`]).
    pub fn phase_in(&self, other: &Self, phase: PhaseId) -> PhaseId {
        let flow = &self.flows[self.flow_of(phase)];
        PhaseId(phase.0 - flow.phases.start + other.flows[flow.place].phases.start)
    }

    /// The same for a job.
    pub fn job_in(&self, other: &Self, job: JobId) -> JobId {
        let flow = &self.flows[self.job(job).flow];
        JobId(job.0 - flow.jobs.start + other.flows[flow.place].jobs.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Slots;
    use crate::draft::{Draft, FlowDraft, JobDraft, MachineDraft, PerPhase, PoolDraft, TasksDraft};

    /// Flows of two jobs of two phases each, one after the other.
    fn instance(names: &[&str]) -> Instance {
        let phase = || Some(TasksDraft::Uniform { tasks: 2, seconds: 1.0 }.into());
        let job = |id: &str, after: &[&str]| {
            let after = after.iter().map(|&a| a.to_owned()).collect();
            JobDraft { id: id.into(), after, map: phase(), reduce: phase(), ..JobDraft::default() }
        };
        let flow = |&id: &&str| FlowDraft::new(id, vec![job("b", &["a"]), job("a", &[])]);
        let slots = Slots::Generic(2);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = names.iter().map(flow).collect();
        Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
    }

    #[test]
    fn flows_that_arrive_in_their_order_make_the_same_instance() {
        let whole = instance(&["f", "g"]);
        let mut grown = whole.without_flows();
        for id in whole.flows().keys() {
            assert_eq!(grown.admit(whole.excerpt(id)), id);
        }
        assert_eq!(grown, whole);
    }

    #[test]
    fn ids_follow_arrivals_and_are_never_used_twice() {
        let whole = instance(&["f", "g"]);
        let mut grown = whole.without_flows();
        let g = grown.admit(whole.excerpt(FlowId(1)));
        grown.retire(g);
        let f = grown.admit(whole.excerpt(FlowId(0)));
        assert_eq!((f, grown.flow(f).place, grown.flow(f).id.as_str()), (FlowId(1), FlowId(0), "f"));
        assert_eq!(grown.topological_of(f), [JobId(3), JobId(2)]);
        assert_eq!(grown.job(JobId(2)).after, [JobId(3)]);
        assert_eq!(grown.job(JobId(3)).before, [JobId(2)]);
        assert_eq!(grown.phase_name(PhaseId(7)), "f/a/reduce");
        assert_eq!(grown.phase_in(&whole, PhaseId(7)), PhaseId(3));
        assert_eq!(
            (grown.flows().get(g), grown.jobs().get(JobId(0)), grown.phases().get(PhaseId(3))),
            (None, None, None)
        );
    }

    /// A service has flows of many documents, each with its pools.
    #[test]
    fn a_pool_comes_with_its_flow() {
        let of = |pools: &[&str], pool: &str| {
            let min_slots = PerPhase::default();
            let pools = pools.iter().map(|&id| PoolDraft { id: id.to_owned(), min_slots }).collect();
            let map = Some(TasksDraft::Uniform { tasks: 2, seconds: 1.0 }.into());
            let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
            let flow = FlowDraft { pool: Some(pool.to_owned()), ..FlowDraft::new("f", vec![job]) };
            let slots = Slots::Generic(2);
            let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
            let draft = Draft { machines: vec![machine], pools, flows: vec![flow], ..Draft::default() };
            Instance::new(&draft).unwrap().excerpt(FlowId(0))
        };
        let mut grown = instance(&[]);
        let names = [of(&["a"], "a"), of(&["b", "a"], "a"), of(&["b"], "b")].map(|arrival| {
            assert!(grown.can_admit(&arrival));
            let flow = grown.admit(arrival);
            grown.flow(flow).pool.map(|pool| grown.pools()[pool].id.clone())
        });
        assert_eq!(names.map(Option::unwrap), ["a", "a", "b"]);
        assert_eq!(grown.pools().len(), 2);
    }
}
