//! Simulates several policies on one instance in parallel.

use std::convert::Infallible;

use slackline_model::Instance;
use slackline_model::schedule::{Clock, TaskRows};

use crate::parallel;
use crate::policy_spec::PolicySpec;
use crate::recorded::{self, Recorded};
use crate::simulate::{
    FinalRow, GRAIN, Leave, NotWritten, Options, QuickBound, SimulateError, Simulated, Watch, prepare,
    simulate_watched,
};

/// Schedules with at most this number of tasks are validated as a whole and then dropped if the caller does
/// not want them. This needs little memory, and gives bit-identical sums with and without schedules.
const FEW_TASKS: u64 = 1 << 16;

/// The policies that take longest, the longest first, as measured on a day of 24,000 jobs. The others take
/// about as long as FIFO.
const SLOW: [&str; 12] = [
    "auto",
    "dmrs-map-only",
    "dmrs",
    "dmrs-identical",
    "fair",
    "flex",
    "yarn-fair",
    "rule",
    "flowflex",
    "yarn-capacity",
    "mk-jr",
    "mk-tct-jr",
];

/// The result of one policy.
#[derive(Debug)]
pub struct Compared {
    /// The policy.
    pub policy: PolicySpec,
    /// Its validated simulation, or the reason why there is none.
    pub result: Result<Simulated, SimulateError>,
}

/// Receives a row of the policy with this index.
pub type HearLeft<'a> = &'a (dyn Fn(usize, FinalRow<'_>) + Sync);

/// The options of parallel simulations. Policies are identified by their index in the list.
#[derive(Clone, Copy)]
pub struct SideBySide<'a> {
    /// The maximum number of threads.
    pub threads: usize,
    /// Whether schedules keep their rows. Otherwise memory depends on the active flows, except for small
    /// workloads.
    pub schedules: bool,
    /// Receives the index of a policy and its number of finished tasks.
    pub progress: &'a (dyn Fn(usize, u64) + Sync),
    /// Called before every instant of a policy, and once before its first; returns whether to stop it.
    pub cancel: &'a (dyn Fn(usize) -> bool + Sync),
    /// Receives the result of a policy as soon as it is known, and may take the rows of its schedule.
    pub ended: &'a (dyn Fn(usize, &mut Compared) + Sync),
    /// The recorded execution of a log: the policy `recorded`.
    pub recorded: Option<&'a Recorded>,
    /// Receives every final row of a policy, whether or not schedules keep their rows.
    pub left: Option<HearLeft<'a>>,
}

impl Default for SideBySide<'_> {
    /// One thread per processor, no rows, and no callbacks.
    fn default() -> Self {
        Self {
            threads: parallel::processors(),
            schedules: false,
            progress: &|_, _| {},
            cancel: &|_| false,
            ended: &|_, _| {},
            recorded: None,
            left: None,
        }
    }
}

/// Simulates every policy on the same instance with the same options. Returns the results in the order of
/// `policies`. The instance is prepared, and `bound` is used, as in [`simulate`](crate::simulate()).
///
/// Policies that take long start first, so that no thread is idle for long at the end; the bound is computed
/// beside them.
pub fn compare(
    instance: &Instance,
    policies: &[PolicySpec],
    options: &Options,
    bound: Option<&QuickBound>,
    how: SideBySide<'_>,
) -> Vec<Compared> {
    let prepared = prepare(instance, GRAIN);
    let order = longest_first(policies);
    let one = |k: usize| {
        let mut note = |done| (how.progress)(k, done);
        let cancel = || (how.cancel)(k);
        let mut pass = |row: FinalRow<'_>| how.left.into_iter().for_each(|left| left(k, row));
        let left = how.left.is_some().then_some(&mut pass as &mut dyn FnMut(FinalRow<'_>));
        let watch = Watch { progress: Some(&mut note), cancel: Some(&cancel), left };
        let policy = policies[k].clone();
        let run = |instance: &Instance| -> Result<Simulated, NotWritten> {
            if policy.name() == recorded::NAME {
                let happened = how.recorded.ok_or_else(recorded::nothing)?.replay(instance)?;
                how.left
                    .iter()
                    .for_each(|left| FinalRow::of_schedule(&happened.schedule, &mut |row| left(k, row)));
                return Ok(happened);
            }
            let is_whole = how.schedules || instance.n_tasks() <= FEW_TASKS;
            let leave = if is_whole { Leave::Kept } else { Leave::Dropped };
            simulate_watched(instance, &policy, options, bound, watch, leave)
        };
        let mut result = prepared.as_deref().map_err(|problem| problem.clone().into()).and_then(run);
        if let (Ok(simulated), false) = (&mut result, how.schedules) {
            simulated.schedule.tasks = TaskRows::new();
        }
        let mut compared = Compared { policy, result: result.map_err(NotWritten::simulation) };
        (how.ended)(k, &mut compared);
        compared
    };
    // Without a bound to show, the first piece has nothing to do.
    let bound = bound.filter(|_| options.clock() == Clock::Exact);
    let piece = |i: usize| -> Result<_, Infallible> {
        let Some(&k) = i.checked_sub(1).map(|i| &order[i]) else {
            if let (Some(bound), Ok(instance)) = (bound, &prepared) {
                bound.get(instance);
            }
            return Ok(None);
        };
        Ok(Some((k, one(k))))
    };
    let Ok(pieces) = parallel::map(1 + policies.len(), how.threads, piece);
    let mut all: Vec<_> = pieces.into_iter().flatten().collect();
    all.sort_by_key(|&(k, _)| k);
    all.into_iter().map(|(_, compared)| compared).collect()
}

/// The indices of policies, those that take longest first.
fn longest_first(policies: &[PolicySpec]) -> Vec<usize> {
    let place = |k: usize| SLOW.iter().position(|&slow| slow == policies[k].name()).unwrap_or(SLOW.len());
    let mut order: Vec<usize> = (0..policies.len()).collect();
    order.sort_by_key(|&k| place(k));
    order
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use slackline_model::cluster::Slots;
    use slackline_model::draft::{Draft, FlowDraft, JobDraft, MachineDraft, TasksDraft};

    use super::*;
    use crate::Registry;

    /// Flows of five tasks of 1 s on one slot.
    fn instance(flows: usize) -> Instance {
        let map = Some(TasksDraft::Uniform { tasks: 5, seconds: 1.0 }.into());
        let job = JobDraft { id: "j".into(), map, ..JobDraft::default() };
        let flow = |k| FlowDraft::new(format!("f{k}"), vec![job.clone()]);
        let slots = Slots::Generic(1);
        let machine = MachineDraft { name: "m".into(), count: 1, speed: 1.0, slots, rack: None };
        let flows = (0..flows).map(flow).collect();
        Instance::new(&Draft { machines: vec![machine], flows, ..Draft::default() }).unwrap()
    }

    fn policies() -> Vec<PolicySpec> {
        Registry::standard().parse_several("fifo,fair,edf").unwrap()
    }

    #[test]
    fn a_policy_that_is_stopped_leaves_the_others_alone() {
        let asked = Mutex::new([0; 3]);
        let cancel = |k: usize| {
            let mut asked = asked.lock().unwrap();
            asked[k] += 1;
            k == 1 && asked[k] > 3
        };
        let how = SideBySide { cancel: &cancel, ..SideBySide::default() };
        let options = Options::exact();
        let compared = compare(&instance(4), &policies(), &options, None, how);
        let stopped: Vec<bool> = compared.iter().map(|one| one.result.is_err()).collect();
        assert_eq!(stopped, [false, true, false]);
        assert_eq!(compared[1].result.as_ref().unwrap_err(), &SimulateError::Stopped);
        assert_eq!(asked.lock().unwrap()[1], 4, "nothing is asked again once it is stopped");
    }

    #[test]
    fn rows_are_there_where_they_are_asked_for_and_may_be_taken_away_as_policies_end() {
        let (instance, options) = (instance(4), Options::exact());
        let rows = |how: SideBySide<'_>| {
            let compared = compare(&instance, &policies(), &options, None, how);
            compared.into_iter().map(|one| one.result.unwrap().schedule.tasks.len()).collect::<Vec<_>>()
        };
        assert_eq!(rows(SideBySide::default()), [0, 0, 0]);
        assert!(rows(SideBySide { schedules: true, ..SideBySide::default() }).iter().all(|&rows| rows >= 20));
        let pairs = Mutex::new(Vec::new());
        let ended = |k: usize, compared: &mut Compared| {
            let schedule = &mut compared.result.as_mut().unwrap().schedule;
            pairs.lock().unwrap().push((k, schedule.tasks.len()));
            schedule.tasks = TaskRows::new();
        };
        let how = SideBySide { threads: 1, schedules: true, ended: &ended, ..SideBySide::default() };
        assert_eq!(rows(how), [0, 0, 0]);
        let mut pairs = pairs.into_inner().unwrap();
        assert_eq!(pairs[0].0, 1, "fair takes longest");
        pairs.sort_unstable();
        assert!(pairs.iter().enumerate().all(|(k, &(policy, rows))| policy == k && rows >= 20), "{pairs:?}");
    }
}
