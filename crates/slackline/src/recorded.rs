//! The recorded execution of an imported log, as a schedule: the policy `recorded`.
//!
//! It makes no decisions. The attempts of the log, with their machines and times, form a schedule that the
//! validator checks like any other, except for durations, which were measured. A comparison shows it beside
//! simulated policies. The distance of a simulation from it shows how accurate simulations are
//! ([`Distance`]); the policy that the cluster used is compared first.
//!
//! - The machines are those of the document, if every attempt fits on them. Otherwise they are the machines
//!   named by the attempts, with as many slots as were busy simultaneously. An option for another cluster
//!   changes the other rows, and not this one.
//! - If a task has several attempts, the last successful one counts, or else the longest one, as in
//!   importers.
//! - A job finishes when the log says so, which is after its last task.
//! - Reduces may take slots at any time, as they did in the log.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use slackline_algo::registry::{Capabilities, PolicyEntry};
use slackline_judge::FlowFacts;
use slackline_model::cluster::Slots;
use slackline_model::draft::{AttemptDraft, MachineDraft};
use slackline_model::id::TiVec;
use slackline_model::instance::Phase;
use slackline_model::schedule::{Clock, FlowTimes, NewRow, Origin, Outcome, Rows, TaskRows};
use slackline_model::tasks::Tasks;
use slackline_model::{
    Cluster, Draft, FlowId, Instance, JobId, MachineId, PhaseId, Schedule, SlotKind, SlotRange, Span, Time,
};
use slackline_policy::{Action, Event, Policy, Style, View};

use crate::policy_spec::PolicySpec;
use crate::simulate::{SimulateError, Simulated};

/// The name of this policy.
pub const NAME: &str = "recorded";

/// The reason why it cannot be simulated.
const NO_POLICY: &str = "found recorded, which is the run recorded in a log, expected a policy (`slackline compare` shows recorded beside policies)";

/// The entry of the policy in tables. It needs a log, so it is in no registry.
pub const ENTRY: PolicyEntry = PolicyEntry {
    source: "the log",
    capabilities: Capabilities::WITH_SPEEDS,
    ..PolicyEntry::new(
        NAME,
        "the run recorded in an imported log; compare shows it beside policies",
        |_, _, _| Box::new(IdlePolicy),
    )
};

struct IdlePolicy;

impl Policy for IdlePolicy {
    fn name(&self) -> &str {
        NAME
    }

    fn style(&self) -> Style {
        Style::Priorities
    }

    fn failure(&self) -> Option<&str> {
        Some(NO_POLICY)
    }

    fn on_events(&mut self, _: &[Event], _: &View<'_>, _: &mut Vec<Action>) {}
}

/// The recorded execution of a workload.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The workload on the machines of the document.
    draft: Draft,
}

impl Recorded {
    /// The recorded execution in a document on its own machines; `None` if nothing is recorded.
    pub fn of(draft: Draft, machines: Vec<MachineDraft>) -> Option<Self> {
        let mut jobs = draft.flows.iter().flat_map(|flow| &flow.jobs);
        jobs.any(|job| !job.recorded.is_empty()).then(|| Self { draft: Draft { machines, ..draft } })
    }

    /// The validated schedule of the recorded execution. Costs are those of `instance`, which comes from the
    /// same document, possibly with another cluster.
    ///
    /// # Errors
    /// A task without an attempt, an attempt without a machine, or a violation.
    pub fn replay(&self, instance: &Instance) -> Result<Simulated, SimulateError> {
        let attempts = self.attempts(instance)?;
        let own = Instance::new(&self.draft).ok().filter(|own| is_alike(own, instance));
        let own = own.and_then(|own| placed(own, instance, &attempts));
        let (own, rows) = if let Some(found) = own {
            found
        } else {
            let machines = machines(&attempts);
            let derived = Instance::new(&Draft { machines, ..self.draft.clone() });
            let derived = derived.map_err(|invalid| refused(&invalid.to_string()))?;
            if !is_alike(&derived, instance) {
                return Err(refused(
                    "found other jobs or tasks than in the workload, expected the same document",
                ));
            }
            placed(derived, instance, &attempts).ok_or_else(|| refused("found no slot for an attempt"))?
        };
        let times = times(&own, &attempts);
        let origin = Origin {
            policy: NAME.to_owned(),
            minima: false,
            clock: Clock::Measured,
            slowstart: 0.0,
            profile: None,
        };
        let schedule = Schedule::from_rows(&own, origin, Rows::Tasks(rows), |flow| times[flow]);
        let report = slackline_judge::check(&own, &schedule).map_err(SimulateError::Infeasible)?;
        Ok(Simulated {
            schedule,
            metrics: report.metrics,
            flows: report.flows,
            decisions: 0,
            reports: 0,
            history: None,
            admissions: Vec::new(),
            choices: Vec::new(),
            crowding: None,
            timings: None,
            unfinished: Vec::new(),
        })
    }

    /// Every attempt, in the order of starts, with how it counts.
    fn attempts(&self, instance: &Instance) -> Result<Vec<Attempt<'_>>, SimulateError> {
        let mut attempts = Vec::new();
        for (flow, id) in self.draft.flows.iter().zip(instance.flows().keys()) {
            let known = instance.flow(id);
            if flow.id != known.id || flow.repeat.is_some() {
                return Err(refused("found recurring flows, expected flows of a log, which ran once"));
            }
            for (job, id) in flow.jobs.iter().zip(known.jobs()) {
                of_job(&job.recorded, instance, id, &mut attempts)?;
            }
        }
        attempts.sort_by_key(|attempt| (attempt.start, attempt.end, attempt.phase, attempt.task));
        let mut numbers = BTreeMap::new();
        for attempt in &mut attempts {
            let next: &mut u16 = numbers.entry((attempt.phase, attempt.task)).or_default();
            attempt.number = *next;
            *next = next.saturating_add(1);
        }
        Ok(attempts)
    }
}

/// Whether two instances have the same jobs, phases and numbers of tasks, under the same ids.
fn is_alike(one: &Instance, other: &Instance) -> bool {
    let shape = |phase: &Phase| (phase.job, phase.kind, phase.tasks().map(Tasks::count));
    one.is_whole()
        && other.is_whole()
        && one.flows().len() == other.flows().len()
        && one.jobs().iter().map(|job| job.flow).eq(other.jobs().iter().map(|job| job.flow))
        && one.phases().iter().map(shape).eq(other.phases().iter().map(shape))
}

/// Whether a policy is the scheduler of the cluster with its own settings, of which a simulation is to be like the
/// recorded run.
pub fn is_own_scheduler(policy: &PolicySpec) -> bool {
    policy.name().starts_with("yarn-") && policy.settings().given("file")
}

/// A warning about the accuracy of simulations of a log, and the options that improve it. Without the
/// profile, the overhead of Hadoop looks like a gain. Without a simulation of the cluster's own scheduler,
/// the size of this error is unknown. `beside` are the policies of a comparison, and `is_map_reduce` says whether
/// slots are map slots and reduce slots. Only Hadoop logs contain an execution.
pub fn yardstick(beside: Option<&[PolicySpec]>, has_profile: bool, is_map_reduce: bool) -> Option<String> {
    let lacks = |is: fn(&PolicySpec) -> bool| beside.is_some_and(|policies| !policies.iter().any(is));
    // ApplicationMasters hold no slots if slots are typed, as in Hadoop 1.
    let profile = if is_map_reduce {
        "--profile hadoop-log:am-share=0 (the delays of Hadoop)"
    } else {
        "--profile hadoop-log (the delays of Hadoop)"
    };
    let lacking = [
        (!has_profile).then_some(profile),
        lacks(|policy| policy.name() == NAME).then_some("-p recorded (the recorded run)"),
        // Hadoop 1 has no YARN.
        (!is_map_reduce && lacks(is_own_scheduler)).then_some(
            "the cluster's own scheduler (-p yarn-capacity:file=capacity-scheduler.xml or yarn-fair:file=…)",
        ),
    ];
    let lacking: Vec<&str> = lacking.into_iter().flatten().collect();
    let so = if has_profile {
        "otherwise the simulation error is unknown"
    } else {
        "otherwise gains may look several times too large"
    };
    (!lacking.is_empty()).then(|| {
        format!(
            "the simulation is not calibrated: add {}; {so} (docs/hadoop-logs.md has the whole command)",
            lacking.join(", ")
        )
    })
}

/// The error that the log has no execution.
pub(crate) fn nothing() -> SimulateError {
    SimulateError::Refused(
        "the workload has no recorded run, expected one imported from a log with times and machines"
            .to_owned(),
    )
}

fn refused(what: &str) -> SimulateError {
    SimulateError::Refused(format!("the run in the log is not a valid schedule: {what}"))
}

/// An attempt of the log in the format of the schedule.
struct Attempt<'a> {
    phase: PhaseId,
    task: u32,
    machine: &'a str,
    start: Time,
    end: Time,
    outcome: Outcome,
    /// The number of the attempt within its task.
    number: u16,
}

/// The attempts of a job.
fn of_job<'a>(
    recorded: &'a [AttemptDraft],
    instance: &Instance,
    job: JobId,
    attempts: &mut Vec<Attempt<'a>>,
) -> Result<(), SimulateError> {
    let mut by_task = BTreeMap::<(PhaseId, u32), Vec<&AttemptDraft>>::new();
    for attempt in recorded {
        let phase = instance.job(job).phase(attempt.phase);
        let tasks = phase.and_then(|phase| instance.phase(phase).tasks());
        let known = phase.filter(|_| tasks.is_some_and(|tasks| attempt.task < tasks.count()));
        let is_time = |seconds: f64| (0.0..=slackline_model::time::SECONDS_MAX).contains(&seconds);
        let (Some(phase), true) = (known, is_time(attempt.start) && is_time(attempt.end)) else {
            let AttemptDraft { phase, task, start, end, .. } = attempt;
            return Err(refused(&format!(
                "found an attempt of {phase} task {task} of job {:?} from {start} to {end} s, which is impossible",
                instance.job(job).id
            )));
        };
        by_task.entry((phase, attempt.task)).or_default().push(attempt);
    }
    for ((phase, task), of) in by_task {
        let counts = counted(&of);
        for (k, attempt) in of.into_iter().enumerate() {
            let Some(machine) = attempt.machine.as_deref() else {
                if k == counts {
                    let name = instance.phase_name(phase);
                    return Err(refused(&format!("found task {task} of {name} without a machine")));
                }
                continue;
            };
            let (start, end) =
                (Time::from_seconds_nearest(attempt.start), Time::from_seconds_nearest(attempt.end));
            let outcome = match attempt.outcome {
                _ if k == counts => Outcome::Done,
                Outcome::Done => Outcome::Killed,
                outcome => outcome,
            };
            attempts.push(Attempt { phase, task, machine, start, end: end.max(start), outcome, number: 0 });
        }
    }
    Ok(())
}

/// The index of the attempt that counts: the last successful one, or else the longest.
fn counted(attempts: &[&AttemptDraft]) -> usize {
    let all = || attempts.iter().enumerate().rev();
    let done = all().find(|(_, attempt)| attempt.outcome == Outcome::Done);
    let length = |attempt: &AttemptDraft| attempt.end - attempt.start;
    let longest = || all().max_by(|(_, a), (_, b)| length(a).total_cmp(&length(b)));
    done.or_else(longest).map_or(0, |(k, _)| k)
}

/// Slots by the time at which they become free, the earliest first.
#[derive(Default)]
struct Free(BinaryHeap<Reverse<(Time, u32)>>);

impl Free {
    /// Takes the slot that has been free for the longest time at `start`, until `end`; `None` if no slot is
    /// free.
    fn take(&mut self, start: Time, end: Time) -> Option<u32> {
        let Reverse((free, slot)) = *self.0.peek()?;
        (free <= start).then(|| {
            self.0.pop();
            self.0.push(Reverse((end, slot)));
            slot
        })
    }
}

/// The machines with as many generic slots as attempts ran on them simultaneously.
fn machines(attempts: &[Attempt<'_>]) -> Vec<MachineDraft> {
    let mut busy = BTreeMap::<&str, Free>::new();
    for attempt in attempts {
        let free = busy.entry(attempt.machine).or_default();
        if free.take(attempt.start, attempt.end).is_none() {
            let slots = free.0.len() as u32;
            free.0.push(Reverse((attempt.end, slots)));
        }
    }
    let machine = |(name, free): (&str, Free)| MachineDraft {
        name: name.to_owned(),
        count: 1,
        speed: 1.0,
        slots: Slots::Generic(free.0.len() as u32),
        rack: None,
    };
    busy.into_iter().map(machine).collect()
}

/// Places each attempt on a slot of its machine, with the costs of `priced`; `None` if a machine does not
/// exist or has no free slot.
fn placed(own: Instance, priced: &Instance, attempts: &[Attempt<'_>]) -> Option<(Instance, TaskRows)> {
    let mut free = BTreeMap::<(MachineId, SlotKind), Free>::new();
    let mut rows = TaskRows::new();
    let cluster: &Cluster = own.cluster();
    let mut machines = BTreeMap::<&str, MachineId>::new();
    for attempt in attempts {
        let machine = if let Some(machine) = machines.get(attempt.machine) {
            *machine
        } else {
            let machine = cluster.machine_named(attempt.machine)?;
            machines.insert(attempt.machine, machine);
            machine
        };
        let slot_kind = own.slot_kind_of(attempt.phase);
        let all = || {
            let slots = cluster.machine_slots(slot_kind, machine).map(|slots| slots.first..slots.end());
            Free(slots.into_iter().flatten().map(|slot| Reverse((Time::ZERO, slot))).collect())
        };
        let slot = free.entry((machine, slot_kind)).or_insert_with(all).take(attempt.start, attempt.end)?;
        let Attempt { phase, task: first, start, end, outcome, number: attempt, .. } = *attempt;
        let row = NewRow { phase, first, count: 1, start, end, startup: Span::ZERO, attempt, outcome };
        rows.push(row, &[SlotRange { first: slot, len: 1 }]);
    }
    let costs = priced.flows().iter().map(|flow| flow.cost.clone()).collect::<Vec<_>>();
    Some((own.with_costs(costs), rows))
}

/// The start and the completion of each flow.
fn times(instance: &Instance, attempts: &[Attempt<'_>]) -> TiVec<FlowId, FlowTimes> {
    let mut times: TiVec<FlowId, FlowTimes> = instance.flows().iter().map(|_| FlowTimes::default()).collect();
    for attempt in attempts {
        let of = &mut times[instance.flow_of(attempt.phase)];
        let (start, end) = (attempt.start.seconds(), attempt.end.seconds());
        of.start = Some(of.start.map_or(start, |first| first.min(start)));
        if attempt.outcome == Outcome::Done {
            of.completion = Some(of.completion.map_or(end, |last| last.max(end)));
        }
    }
    for (flow, of) in instance.flows().iter().zip(&mut times) {
        let end = flow.recorded_end.map_or(0.0, Time::seconds);
        of.completion = of.completion.map(|completion| completion.max(end));
    }
    times
}

/// The distance of a simulation from the recorded execution, as fractions of the recorded values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// The mean over flows of the absolute error of the completion, divided by the flow's recorded response
    /// time.
    pub mean: f64,
    /// The 95th percentile of this error (nearest rank).
    pub p95: f64,
    /// The relative difference of the makespan; negative if the simulated one is shorter.
    pub makespan: f64,
}

/// The names of the distances among the metrics of a policy.
pub const DISTANCE: [&str; 3] = ["completion_error_mean", "completion_error_p95", "makespan_error"];

impl Distance {
    /// The distance over flows that finished in both; `None` if there are none.
    pub fn between(
        instance: &Instance,
        recorded: &TiVec<FlowId, FlowFacts>,
        simulated: &TiVec<FlowId, FlowFacts>,
    ) -> Option<Self> {
        let both = instance.flows().iter().zip(recorded.iter().zip(simulated));
        let mut errors: Vec<f64> = both
            .filter_map(|(flow, (recorded, simulated))| {
                let (was, is) = (recorded.completion?, simulated.completion?);
                let response = was - flow.release.seconds();
                (response > 0.0).then(|| (is - was).abs() / response)
            })
            .collect();
        let last = |facts: &TiVec<FlowId, FlowFacts>| {
            facts.iter().filter_map(|flow| flow.completion).fold(0.0, f64::max)
        };
        let was = last(recorded);
        if errors.is_empty() || was <= 0.0 {
            return None;
        }
        errors.sort_by(f64::total_cmp);
        let rank = (errors.len() * 95).div_ceil(100);
        Some(Self {
            mean: errors.iter().sum::<f64>() / errors.len() as f64,
            p95: errors[rank - 1],
            makespan: last(simulated) / was - 1.0,
        })
    }

    /// Its numbers, by their names among the metrics.
    pub fn entries(self) -> [(&'static str, Option<f64>); 3] {
        let [mean, p95, makespan] = DISTANCE;
        [(mean, Some(self.mean)), (p95, Some(self.p95)), (makespan, Some(self.makespan))]
    }
}

#[cfg(test)]
mod tests {
    use slackline_model::PhaseKind;
    use slackline_model::draft::{FlowDraft, JobDraft, TasksDraft};

    use super::*;

    fn attempt(
        phase: PhaseKind,
        task: u32,
        machine: &str,
        times: (f64, f64),
        outcome: Outcome,
    ) -> AttemptDraft {
        AttemptDraft { phase, task, machine: Some(machine.to_owned()), start: times.0, end: times.1, outcome }
    }

    /// Two maps, one of them with two attempts, and a reduce that started early; on two machines.
    fn draft() -> Draft {
        use Outcome::{Done, Failed};
        use PhaseKind::{Map, Reduce};
        let recorded = vec![
            attempt(Map, 0, "a", (1.0, 3.0), Failed),
            attempt(Map, 1, "a", (1.0, 5.0), Done),
            attempt(Map, 0, "b", (3.5, 9.5), Done),
            attempt(Reduce, 0, "a", (5.0, 12.0), Done),
        ];
        let job = JobDraft {
            id: "j".into(),
            map: Some(TasksDraft::Each(vec![6.0, 4.0]).into()),
            reduce: Some(TasksDraft::Uniform { tasks: 1, seconds: 2.5 }.into()),
            recorded,
            ..JobDraft::default()
        };
        let machine = |name: &str, n| MachineDraft {
            name: name.into(),
            count: 1,
            speed: 1.0,
            slots: Slots::Generic(n),
            rack: None,
        };
        let machines = vec![machine("a", 2), machine("b", 1)];
        Draft { machines, flows: vec![FlowDraft::new("f", vec![job])], ..Draft::default() }
    }

    fn replay(draft: &Draft) -> Result<Simulated, SimulateError> {
        let recorded = Recorded::of(draft.clone(), draft.machines.clone()).expect("something is recorded");
        recorded.replay(&Instance::new(draft).unwrap())
    }

    #[test]
    fn the_recorded_execution_is_a_judged_schedule() {
        let simulated = replay(&draft()).unwrap();
        assert_eq!((simulated.schedule.policy.as_str(), simulated.schedule.cost), (NAME, Some(12.0)));
        assert_eq!((simulated.schedule.tasks.len(), simulated.metrics.makespan), (4, 12.0));
    }

    #[test]
    fn a_job_finishes_when_the_log_says_so() {
        let mut draft = draft();
        draft.flows[0].jobs[0].recorded_end = Some(13.5);
        let simulated = replay(&draft).unwrap();
        assert_eq!((simulated.schedule.cost, simulated.metrics.makespan), (Some(13.5), 13.5));
        draft.flows[0].jobs[0].recorded_end = Some(11.0);
        assert_eq!(replay(&draft).unwrap().metrics.makespan, 12.0, "no job finishes before its tasks");
    }

    #[test]
    fn another_cluster_leaves_what_happened_alone() {
        let draft = draft();
        let recorded = Recorded::of(draft.clone(), draft.machines.clone()).unwrap();
        let mut other = draft.clone();
        other.machines = vec![MachineDraft { name: "node".into(), count: 9, ..draft.machines[0].clone() }];
        let replayed = recorded.replay(&Instance::new(&other).unwrap()).unwrap();
        assert_eq!(replayed.metrics.makespan, 12.0);
        // If the attempts do not fit on the document's machines, machines are derived from the attempts.
        let mut narrow = draft.clone();
        narrow.machines[0].slots = Slots::Generic(1);
        assert_eq!(replay(&narrow).unwrap().metrics.makespan, 12.0);
    }

    #[test]
    fn a_task_that_never_succeeded_counts_with_its_longest_attempt() {
        let mut draft = draft();
        draft.flows[0].jobs[0].recorded[2].outcome = Outcome::Killed;
        assert_eq!(replay(&draft).unwrap().schedule.cost, Some(12.0));
    }

    #[test]
    fn impossible_recordings_are_refused() {
        let error = |change: &dyn Fn(&mut Vec<AttemptDraft>)| {
            let mut draft = draft();
            change(&mut draft.flows[0].jobs[0].recorded);
            replay(&draft).unwrap_err().to_string()
        };
        assert!(error(&|all| all[1].machine = None).contains("without a machine"));
        assert!(error(&|all| all[1].task = 7).contains("found an attempt of map task 7 of job \"j\""));
        assert!(error(&|all| all[3].end = f64::NAN).contains("to NaN s, which is impossible"));
        assert!(
            error(&|all| all[3].end = 6.0).starts_with("not feasible"),
            "{}",
            error(&|all| all[3].end = 6.0)
        );
        assert!(error(&|all| drop(all.remove(1))).starts_with("not feasible"));
        assert!(Recorded::of(Draft::default(), Vec::new()).is_none());
    }

    #[test]
    fn distances_are_parts_of_the_recorded_values() {
        let draft = draft();
        let instance = Instance::new(&draft).unwrap();
        let recorded = replay(&draft).unwrap().flows;
        let mut simulated = recorded.clone();
        simulated[FlowId(0)].completion = Some(9.0);
        let distance = Distance::between(&instance, &recorded, &simulated).unwrap();
        assert_eq!((distance.mean, distance.p95, distance.makespan), (0.25, 0.25, -0.25));
        simulated[FlowId(0)].completion = None;
        assert_eq!(Distance::between(&instance, &recorded, &simulated), None);
    }
}
