//! Small instances and hand-made schedules.

use slackline_judge::{check, completions};
use slackline_model::cluster::Slots;
use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, PhaseDraft, TasksDraft};
use slackline_model::schedule::{
    Allocation, Clock, FlowResult, FlowRow, NewRow, Outcome, Schedule, TaskRows,
};
use slackline_model::{Draft, FlowId, Instance, PhaseId, SlotRange, Span, Time};

pub(crate) fn machines(name: &str, count: u32, slots: Slots) -> MachineDraft {
    MachineDraft { name: name.into(), count, speed: 1.0, slots, rack: None }
}

/// Two machines of two generic slots.
pub(crate) fn two_by_two() -> Vec<MachineDraft> {
    vec![machines("node", 2, Slots::Generic(2))]
}

pub(crate) fn map_reduce(map: u32, reduce: u32) -> Vec<MachineDraft> {
    vec![machines("node", 1, Slots::MapReduce { map, reduce })]
}

#[expect(clippy::unnecessary_wraps, reason = "a job takes its phases as options")]
pub(crate) fn uniform(tasks: u32, seconds: f64) -> Option<PhaseDraft> {
    Some(TasksDraft::Uniform { tasks, seconds }.into())
}

/// A job of that name after those jobs.
pub(crate) fn job(id: &str, after: &[&str], map: Option<PhaseDraft>, reduce: Option<PhaseDraft>) -> JobDraft {
    let after = after.iter().map(|&a| a.to_owned()).collect();
    JobDraft { id: id.into(), after, map, reduce, ..JobDraft::default() }
}

/// A flow of one job of the same name.
pub(crate) fn flow(id: &str, map: Option<PhaseDraft>, reduce: Option<PhaseDraft>) -> FlowDraft {
    FlowDraft::new(id, vec![job(id, &[], map, reduce)])
}

pub(crate) fn instance(machines: Vec<MachineDraft>, flows: Vec<FlowDraft>) -> Instance {
    Instance::new(&Draft { machines, flows, ..Draft::default() }).unwrap()
}

/// The contract's example: flow a of 4 maps of 10 s, flow b of 2 maps of 10 s and 2 reduces of 5 s
/// with weight 2.
pub(crate) fn pair() -> Instance {
    let b = FlowDraft { weight: 2.0, ..flow("b", uniform(2, 10.0), uniform(2, 5.0)) };
    instance(two_by_two(), vec![flow("a", uniform(4, 10.0), None), b])
}

/// `flow/job/map` to its id.
pub(crate) fn phase(instance: &Instance, name: &str) -> PhaseId {
    instance.phases().keys().find(|&id| instance.phase_name(id) == name).unwrap()
}

/// A task row to be.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) phase: &'static str,
    pub(crate) first: u32,
    /// `(first, len)` of ranges of slots of their kind.
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) attempt: u16,
    pub(crate) outcome: Outcome,
}

/// Tasks from `first` on, one on each of `slots` consecutive slots, all done.
pub(crate) fn run(phase: &'static str, first: u32, place: (u32, u32), times: (f64, f64)) -> Run {
    Run {
        phase,
        first,
        places: vec![place],
        start: times.0,
        end: times.1,
        attempt: 0,
        outcome: Outcome::Done,
    }
}

impl Run {
    pub(crate) fn attempt(self, attempt: u16, outcome: Outcome) -> Self {
        Self { attempt, outcome, ..self }
    }
}

pub(crate) fn rows(instance: &Instance, runs: &[Run]) -> TaskRows {
    let mut rows = TaskRows::new();
    for r in runs {
        let places: Vec<SlotRange> = r.places.iter().map(|&(first, len)| SlotRange { first, len }).collect();
        let row = NewRow {
            phase: phase(instance, r.phase),
            first: r.first,
            count: places.iter().map(|p| p.len).sum(),
            start: Time::from_seconds_nearest(r.start),
            end: Time::from_seconds_nearest(r.end),
            startup: Span::ZERO,
            attempt: r.attempt,
            outcome: r.outcome,
        };
        rows.push(row, &places);
    }
    rows
}

/// Claims that follow from the rows, however wrong those are; flows in `failed` have failed.
pub(crate) fn claim(instance: &Instance, mut schedule: Schedule, failed: &[u32]) -> Schedule {
    let done = completions(instance, &schedule);
    for (id, flow) in instance.flows().iter_enumerated() {
        let of = |phase: PhaseId| instance.flow_of(phase) == id;
        let tasks = schedule.tasks.rows().iter().filter(|r| of(r.phase)).map(|r| r.start.seconds());
        let plan = schedule.allocations.iter().filter(|a| of(a.phase)).map(|a| a.start);
        let status = if failed.contains(&id.0) { FlowResult::Failed } else { FlowResult::Done };
        let completion = done[id.index()];
        schedule.flows.push(FlowRow {
            flow: id,
            release: flow.release.seconds(),
            start: if schedule.tasks.is_empty() { plan.reduce(f64::min) } else { tasks.reduce(f64::min) },
            completion,
            cost: completion.filter(|_| status == FlowResult::Done).map(|c| flow.cost.eval(c)),
            status,
        });
    }
    let costs = schedule.flows.iter().filter_map(|row| row.cost);
    schedule.cost = Some(instance.objective().combine.of(costs));
    schedule
}

pub(crate) fn empty(instance: &Instance) -> Schedule {
    Schedule {
        policy: "by-hand".into(),
        minima: false,
        clock: Clock::Exact,
        slowstart: 1.0,
        profile: None,
        segments: Vec::new(),
        objective: instance.objective(),
        cost: None,
        lower_bound: None,
        gap: None,
        metrics: Vec::new(),
        flows: Vec::new(),
        tasks: TaskRows::new(),
        ams: Vec::new(),
        allocations: Vec::new(),
    }
}

/// A schedule of task rows with slow-start fraction `slowstart`.
pub(crate) fn early(instance: &Instance, slowstart: f64, runs: &[Run]) -> Schedule {
    let schedule = Schedule { slowstart, tasks: rows(instance, runs), ..empty(instance) };
    claim(instance, schedule, &[])
}

/// A schedule of task rows.
pub(crate) fn tasks(instance: &Instance, runs: &[Run]) -> Schedule {
    early(instance, 1.0, runs)
}

/// A schedule of task rows in which the flows numbered so failed.
pub(crate) fn failing(instance: &Instance, failed: &[u32], runs: &[Run]) -> Schedule {
    claim(instance, Schedule { tasks: rows(instance, runs), ..empty(instance) }, failed)
}

/// A schedule of allocations `(phase, start, end, slots)`.
pub(crate) fn plan(instance: &Instance, rows: &[(&str, f64, f64, u32)]) -> Schedule {
    let allocations = rows
        .iter()
        .map(|&(name, start, end, slots)| Allocation { phase: phase(instance, name), start, end, slots })
        .collect();
    claim(instance, Schedule { allocations, ..empty(instance) }, &[])
}

#[track_caller]
pub(crate) fn accepts(instance: &Instance, schedule: &Schedule) {
    if let Err(violation) = check(instance, schedule) {
        panic!("refused with {}: {violation}", violation.kind());
    }
}

/// That the schedule is refused for that kind of violation; its message.
#[track_caller]
pub(crate) fn refuses(instance: &Instance, schedule: &Schedule, kind: &str) -> String {
    match check(instance, schedule) {
        Ok(_) => panic!("accepted, expected {kind}"),
        Err(violation) => {
            assert_eq!(violation.kind(), kind, "{violation}");
            violation.to_string()
        }
    }
}

pub(crate) fn flow_row(schedule: &mut Schedule, flow: u32) -> &mut FlowRow {
    schedule.flows.iter_mut().find(|row| row.flow == FlowId(flow)).unwrap()
}
