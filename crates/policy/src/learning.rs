//! Estimates for policies that know only finished tasks and a history (`--knowledge learned`): the size of
//! the tasks of every phase and the speed of every group of machines.
//!
//! **Paper**: FLEX §2.5 and §4.2: the time of each finished task is logged, and the rest of its phase is
//! extrapolated from the average so far; periodic jobs are seeded from past runs. DMRS §V: the execution
//! database also provides the speeds of the machines.
//!
//! A phase is estimated from its own finished tasks. Before that, the estimate comes from the history and
//! earlier recurrences of its flow. Before that, it is the guess (for example from the size of the input),
//! times the ratio of durations to guesses over the finished tasks of its kind. Before that, it is an average
//! phase of its kind.
//!
//! Times are sizes over speeds, so both are known only up to a common factor. The factor is set such that the
//! mean speed of all slots is the true one. It fixes the unit and gives a policy no information.

use std::collections::{BTreeMap, VecDeque};

use slackline_model::history::{History, PhaseName, Record};
use slackline_model::{Cluster, FlowId, GroupId, Instance, JobId, PhaseId, PhaseKind, Span};

use crate::event::Event;
use crate::id_table::IdTable;
use crate::view::Estimates;

/// The length of a task for which there is no information.
const UNKNOWN: Span = Span(1_000_000);

/// The fraction of new tasks after which speeds are computed again: O(log tasks) times in all.
const FRESH: u64 = 16;

/// The finished tasks of each group: the groups of the cluster, then those that only the history has. The
/// list may be shorter if the rest is empty.
type Records = Vec<Record>;

/// Turns finished tasks into estimates.
#[derive(Clone, Debug, Default)]
pub struct Learning {
    groups: Vec<String>,
    /// The index in `groups` of each group of the cluster. Machines that join may be of a group that the
    /// history has.
    number_of: Vec<usize>,
    /// Phase names of the history and of the flows that arrived, with all finished tasks of that name.
    names: Vec<(PhaseName, Records)>,
    /// The index in `names` of each name.
    at: BTreeMap<PhaseName, usize>,
    /// When names are forgotten.
    memory: Memory,
    name_of: IdTable<PhaseId, usize>,
    /// The finished tasks of each phase itself.
    own: IdTable<PhaseId, Records>,
    kinds: [Records; 2],
    /// Whether phases arrive with guesses, which finished tasks then correct.
    guessing: bool,
    /// Whether the machine speeds of the cluster document count as a first estimate.
    believes: bool,
    /// The guessed size of a task of each phase, seconds.
    guesses: IdTable<PhaseId, Option<f64>>,
    /// By kind: the size of all finished tasks of this run, and the guessed size of the same tasks, seconds.
    against_guess: [(f64, f64); 2],
    /// The estimated speeds before tasks show other speeds.
    prior: Vec<f64>,
    speeds: Vec<f64>,
    tasks: u64,
    /// The number of tasks at the last computation of speeds.
    tasks_then: u64,
}

/// The number of names of finished flows that are remembered, all of them or `most`, so that a run without
/// end uses bounded memory. The flows that finished first are forgotten first.
#[derive(Clone, Debug, Default)]
struct Memory {
    most: Option<usize>,
    /// By name: the number of phases of that name.
    phases: BTreeMap<usize, u32>,
    /// Names without phases, the oldest first; some may have phases again.
    over: VecDeque<usize>,
    /// Free places in the table of names.
    free: Vec<usize>,
}

impl Learning {
    /// Starts from a history, for tasks of that cluster. O(records · log).
    pub fn new(cluster: &Cluster, history: &History) -> Self {
        let groups: Vec<String> = cluster.groups().iter().map(|group| group.name.clone()).collect();
        let mut learning = Self {
            prior: vec![1.0; groups.len()],
            number_of: (0..groups.len()).collect(),
            groups,
            ..Self::default()
        };
        for (name, group, record) in history.records() {
            let number = learning.group(group);
            let k = learning.index(name.clone());
            add(&mut learning.names[k].1, number, record);
            add(&mut learning.kinds[kind_index(name.kind)], number, record);
            learning.tasks += record.tasks;
        }
        learning.tasks_then = learning.tasks;
        learning.speeds = vec![1.0; learning.groups.len()];
        learning
    }

    /// Like `self`, but the estimate of a new phase ([`crate::Config::believe`]) is a guess and counts only
    /// for phases without a better one. The ratios of guesses are kept; their unit is corrected by the tasks
    /// that finish.
    #[must_use]
    pub fn guessing(mut self) -> Self {
        self.guessing = true;
        self
    }

    /// Like `self`, but uses the machine speeds that the cluster states until tasks show other speeds. The
    /// document of a real cluster states what is known of its machines, which may be wrong.
    #[must_use]
    pub fn believing_speeds(mut self, cluster: &Cluster) -> Self {
        self.believes = true;
        for (group, info) in cluster.groups().iter_enumerated() {
            self.prior[self.number_of[group.index()]] = info.speed;
        }
        self
    }

    /// Like `self`, but with at most `most` names of finished flows. A name from before the run is one of
    /// them once its flow has come and finished.
    #[must_use]
    pub fn remembering(mut self, most: usize) -> Self {
        self.memory.most = Some(most);
        self
    }

    /// Adds a history of phases that are about to arrive. The tasks of such phases that finished in this run
    /// are better evidence and stay. O(records · log).
    pub fn know(&mut self, history: &History) {
        for (name, group, record) in history.records() {
            let number = self.group(group);
            let k = self.index(name.clone());
            if self.names[k].1.iter().all(|known| known.tasks == 0) {
                add(&mut self.names[k].1, number, record);
            }
        }
    }

    /// The number of a group.
    fn group(&mut self, name: &str) -> usize {
        self.groups.iter().position(|known| known == name).unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.prior.push(1.0);
            self.groups.len() - 1
        })
    }

    /// The index of a name in `names`.
    fn index(&mut self, name: PhaseName) -> usize {
        let Self { at, names, memory, .. } = self;
        *at.entry(name).or_insert_with_key(|name| {
            let entry = (name.clone(), Records::new());
            if let Some(k) = memory.free.pop() {
                names[k] = entry;
                return k;
            }
            names.push(entry);
            names.len() - 1
        })
    }

    /// Names of phases that ended may be forgotten.
    fn forget_names(&mut self, phases: impl Iterator<Item = PhaseId>) {
        let Self { memory, name_of, names, at, .. } = self;
        let Some(most) = memory.most else { return };
        for k in phases.filter(|&phase| name_of.contains(phase)).map(|phase| name_of[phase]) {
            let left = memory.phases.get_mut(&k).expect("invariant: phases that are there are counted");
            *left -= 1;
            if *left == 0 {
                memory.phases.remove(&k);
                memory.over.push_back(k);
            }
        }
        while memory.over.len() > most {
            let Some(k) = memory.over.pop_front().filter(|k| !memory.phases.contains_key(k)) else {
                continue;
            };
            // A name that was used again and ended again is in the list once more.
            if memory.over.contains(&k) {
                continue;
            }
            at.remove(&names[k].0);
            names[k].1.clear();
            memory.free.push(k);
        }
    }

    /// The estimates before anything has run.
    pub(crate) fn begin(&mut self, instance: &Instance, estimates: &mut Estimates) {
        self.look_again(instance, estimates);
    }

    /// The phases of a finished flow; the records of their names stay.
    pub(crate) fn forget(&mut self, phases: impl Iterator<Item = PhaseId> + Clone) {
        self.forget_names(phases.clone());
        self.name_of.forget(phases.clone());
        self.own.forget(phases.clone());
        self.guesses.forget(phases);
    }

    /// Learns from the events of an instant. O(events · groups), and occasionally O(phases · groups²).
    pub fn learn(&mut self, events: &[Event], instance: &Instance, estimates: &mut Estimates) {
        for event in events {
            match *event {
                // No real task takes no time: this task was done before the run could observe it.
                Event::TasksDone { took: Span::ZERO, .. } if self.guessing => {}
                Event::TasksDone { phase, count, machine, took } => {
                    let group = self.number_of[instance.cluster().group_id_of(machine).index()];
                    let tasks = u64::from(count);
                    let record = Record { tasks, seconds: took.seconds() * f64::from(count) };
                    add(&mut self.own[phase], group, record);
                    add(&mut self.names[self.name_of[phase]].1, group, record);
                    add(&mut self.kinds[kind_index(instance.phase(phase).kind)], group, record);
                    self.tasks += tasks;
                    if let Some(guess) = self.guesses[phase] {
                        let so_far = &mut self.against_guess[kind_index(instance.phase(phase).kind)];
                        so_far.0 += record.seconds * self.speeds[group];
                        so_far.1 += guess * f64::from(count);
                    }
                    self.set(instance, phase, estimates);
                }
                Event::FlowArrived(flow) => self.meet(instance, flow, estimates),
                Event::MachineJoined(_) => {
                    // Several machines may join at an instant: the cluster has all of them.
                    let known = self.number_of.len();
                    for info in instance.cluster().groups().iter().skip(known) {
                        let number = self.group(&info.name);
                        self.number_of.push(number);
                        if self.believes {
                            self.prior[number] = info.speed;
                        }
                    }
                    if self.number_of.len() > known {
                        self.look_again(instance, estimates);
                    }
                }
                Event::PhaseReady(phase) => self.refresh_job(instance, instance.phase(phase).job, estimates),
                _ => {}
            }
        }
        if (self.tasks - self.tasks_then).saturating_mul(FRESH) > self.tasks {
            self.tasks_then = self.tasks;
            self.look_again(instance, estimates);
        }
    }

    /// The history, extended by the tasks of this run.
    pub fn into_history(self) -> History {
        let mut history = History::new();
        for (name, records) in self.names {
            for (group, record) in self.groups.iter().zip(records) {
                if record.tasks > 0 {
                    history.insert(name.clone(), group.clone(), record);
                }
            }
        }
        history
    }

    fn meet(&mut self, instance: &Instance, flow: FlowId, estimates: &mut Estimates) {
        for phase in instance.flow(flow).phases() {
            let name = self.index(PhaseName::of(instance, phase));
            self.name_of[phase] = name;
            if self.memory.most.is_some() {
                *self.memory.phases.entry(name).or_default() += 1;
            }
            if self.guessing {
                self.guesses[phase] = Some(estimates.task[phase].seconds());
            }
            self.set(instance, phase, estimates);
        }
    }

    fn refresh_job(&self, instance: &Instance, job: JobId, estimates: &mut Estimates) {
        for phase in instance.job(job).phases() {
            self.set(instance, phase, estimates);
        }
    }

    fn set(&self, instance: &Instance, phase: PhaseId, estimates: &mut Estimates) {
        let kind = kind_index(instance.phase(phase).kind);
        let known = self.mean(&self.own[phase]).or_else(|| self.mean(&self.names[self.name_of[phase]].1));
        *estimates.unknown.get_or_insert_with(phase, || true) = known.is_none();
        estimates.task[phase] = known
            .or_else(|| self.guess(phase, kind))
            .or_else(|| self.mean(&self.kinds[kind]))
            .unwrap_or(UNKNOWN);
    }

    /// The guess for a phase, in the unit that finished tasks of its kind suggest.
    fn guess(&self, phase: PhaseId, kind: usize) -> Option<Span> {
        let guess = self.guesses[phase]?;
        let unit = match self.against_guess[kind] {
            (took, guessed) if guessed > 0.0 => took / guessed,
            _ => 1.0,
        };
        Some(Span::from_seconds_nearest(guess * unit))
    }

    /// Mean size of a task.
    fn mean(&self, records: &Records) -> Option<Span> {
        let tasks: u64 = records.iter().map(|record| record.tasks).sum();
        let size: f64 = records.iter().zip(&self.speeds).map(|(record, speed)| record.seconds * speed).sum();
        (tasks > 0).then(|| Span::from_seconds_nearest(size / tasks as f64))
    }

    fn look_again(&mut self, instance: &Instance, estimates: &mut Estimates) {
        let cluster = instance.cluster();
        self.speeds = relative_speeds(self.names.iter().map(|(_, records)| records), self.prior.clone());
        let factor = cluster.mean_speed() / mean_of_slots(cluster, &self.number_of, &self.speeds);
        self.speeds.iter_mut().for_each(|speed| *speed *= factor);
        for (group, speed) in estimates.speed.iter_mut_enumerated() {
            *speed = self.speeds[self.number_of[group.index()]];
        }
        estimates.revision += 1;
        for (phase, _) in self.name_of.iter_enumerated() {
            self.set(instance, phase, estimates);
        }
    }
}

fn kind_index(kind: PhaseKind) -> usize {
    match kind {
        PhaseKind::Map => 0,
        PhaseKind::Reduce => 1,
    }
}

fn add(records: &mut Records, group: usize, record: Record) {
    if records.len() <= group {
        records.resize(group + 1, Record::default());
    }
    records[group] = records[group].and(record.tasks, record.seconds);
}

/// The mean of the speeds of the cluster's slots.
fn mean_of_slots(cluster: &Cluster, number_of: &[usize], speeds: &[f64]) -> f64 {
    let (mut sum, mut slots) = (0.0, 0.0);
    for (group, info) in cluster.groups().iter_enumerated() {
        let of_slot_kind =
            |&slot_kind| cluster.machine_slots(slot_kind, info.first).map_or(0, |range| range.len);
        let each: u32 = cluster.slot_kinds().iter().map(of_slot_kind).sum();
        let number = f64::from(each) * f64::from(info.count);
        sum += speeds[number_of[GroupId::index(group)]] * number;
        slots += number;
    }
    sum / slots
}

/// The speeds of groups relative to each other, from the times of the same phases.
pub fn speeds(history: &History) -> BTreeMap<String, f64> {
    let mut groups: Vec<String> = Vec::new();
    let mut phases: BTreeMap<&PhaseName, Records> = BTreeMap::new();
    for (name, group, record) in history.records() {
        let number = groups.iter().position(|known| known == group).unwrap_or_else(|| {
            groups.push(group.to_owned());
            groups.len() - 1
        });
        add(phases.entry(name).or_default(), number, record);
    }
    let speeds = relative_speeds(phases.values(), vec![1.0; groups.len()]);
    groups.into_iter().zip(speeds).collect()
}

/// Speeds of groups relative to each other, from the times of the same phases. The size of a task is the mean
/// of time · speed; a speed is the total size of finished tasks over their total time.
///
/// With T the time and n the tasks of phase p on group g, substitution gives the work `w_g = Σ_p n_pg / n_p ·
/// Σ_h T_ph v_h`: groups that share phases exchange work, and none is lost, so it converges as a Markov chain
/// does. Groups that share nothing with others keep the mean of their previous speeds. O(phases · groups² +
/// rounds · groups²).
fn relative_speeds<'a>(phases: impl Iterator<Item = &'a Records>, before: Vec<f64>) -> Vec<f64> {
    /// The limit on rounds; each at least halves the error unless groups share almost no phases.
    const ROUNDS: usize = 1_000;
    /// A relative change below this counts as none.
    const SETTLED: f64 = 1e-12;
    let n = before.len();
    if n < 2 {
        return before;
    }
    let (mut share, mut time) = (vec![0.0; n * n], vec![0.0; n]);
    for records in phases {
        let tasks: u64 = records.iter().map(|record| record.tasks).sum();
        for (g, to) in records.iter().enumerate().filter(|(_, to)| to.tasks > 0) {
            let part = to.tasks as f64 / tasks as f64;
            time[g] += to.seconds;
            for (h, from) in records.iter().enumerate() {
                share[g * n + h] += part * from.seconds;
            }
        }
    }
    let mut speeds = before;
    for _ in 0..ROUNDS {
        let work = |row: &[f64]| -> f64 { row.iter().zip(&speeds).map(|(time, speed)| time * speed).sum() };
        let next: Vec<f64> = (share.chunks(n).zip(&time).zip(&speeds))
            .map(|((row, &time), &speed)| if time > 0.0 { work(row) / time } else { speed })
            .collect();
        let settled = next.iter().zip(&speeds).all(|(a, b)| (a - b).abs() <= SETTLED * b);
        speeds = next;
        if settled {
            break;
        }
    }
    speeds
}

#[cfg(test)]
mod tests {
    use slackline_model::cluster::Slots;
    use slackline_model::draft::{FlowDraft, JobDraft, MachineDraft, Repeat, TasksDraft};
    use slackline_model::{Draft, MachineId};

    use super::*;

    fn instance(machines: &[(&str, u32, f64)]) -> Instance {
        let phase = |tasks, seconds| Some(TasksDraft::Uniform { tasks, seconds }.into());
        let job =
            JobDraft { id: "sum".into(), map: phase(4, 9.0), reduce: phase(2, 5.0), ..Default::default() };
        let repeat = Some(Repeat { every: 100.0, times: 2 });
        let machine = |&(name, count, speed): &(&str, u32, f64)| MachineDraft {
            name: name.into(),
            count,
            speed,
            slots: Slots::Generic(2),
            rack: None,
        };
        Instance::new(&Draft {
            machines: machines.iter().map(machine).collect(),
            flows: vec![FlowDraft { repeat, ..FlowDraft::new("nightly", vec![job]) }],
            ..Draft::default()
        })
        .unwrap()
    }

    fn done(phase: u32, count: u32, machine: u32, took: f64) -> Event {
        let took = Span::from_seconds_nearest(took);
        Event::TasksDone { phase: PhaseId(phase), count, machine: MachineId(machine), took }
    }

    /// All flows of an instance have arrived, with guesses for the tasks of their phases.
    fn met(instance: &Instance, learning: Learning, guesses: &[f64]) -> (Learning, Estimates) {
        let (mut learning, mut estimates) = (learning, Estimates::new(instance.cluster()));
        learning.begin(instance, &mut estimates);
        let guess = |k| Span::from_seconds_nearest(guesses.get(k).copied().unwrap_or(0.0));
        estimates.task = (0..instance.phases().len()).map(guess).collect();
        let arrived: Vec<Event> = instance.flows().keys().map(Event::FlowArrived).collect();
        learning.learn(&arrived, instance, &mut estimates);
        (learning, estimates)
    }

    fn start(instance: &Instance, history: &History) -> (Learning, Estimates) {
        met(instance, Learning::new(instance.cluster(), history), &[])
    }

    fn seconds(estimates: &Estimates) -> Vec<f64> {
        estimates.task.iter().map(|task| task.seconds()).collect()
    }

    #[test]
    fn finished_tasks_correct_a_history_and_help_the_unknown() {
        let instance = instance(&[("node", 1, 2.0)]);
        let map = PhaseName::of(&instance, PhaseId(2));
        assert_eq!((map.flow.as_str(), map.job.as_str(), map.kind), ("nightly", "sum", PhaseKind::Map));
        let mut history = History::new();
        assert!(history.insert(map.clone(), "node".into(), Record { tasks: 10, seconds: 35.0 }));
        assert!(!history.insert(map, "node".into(), Record::default()));
        let (mut learning, mut estimates) = start(&instance, &history);
        // The machine is twice as fast as the one that sizes are measured on.
        assert_eq!(seconds(&estimates), [7.0, 1.0, 7.0, 1.0]);
        learning.learn(&[done(0, 1, 0, 4.0), done(0, 3, 0, 5.0)], &instance, &mut estimates);
        learning.learn(&[done(1, 2, 0, 3.0)], &instance, &mut estimates);
        // The estimate of the second recurrence comes from the flow itself and the history.
        assert_eq!(seconds(&estimates), [9.5, 6.0, 108.0 / 14.0, 6.0].map(|s: f64| (s * 1e6).round() / 1e6));
        let known: Vec<_> = learning.into_history().records().map(|(_, _, record)| record).collect();
        assert_eq!(known, [Record { tasks: 14, seconds: 54.0 }, Record { tasks: 2, seconds: 6.0 }]);
    }

    #[test]
    fn a_phase_of_which_nothing_is_known_is_an_average_one_of_its_kind() {
        let instance = instance(&[("node", 1, 1.0)]);
        let (mut learning, mut estimates) = start(&instance, &History::new());
        let other = PhaseName { flow: "other".into(), job: "sum".into(), kind: PhaseKind::Reduce };
        learning.learn(&[done(0, 4, 0, 3.0)], &instance, &mut estimates);
        assert_eq!(seconds(&estimates), [3.0, 1.0, 3.0, 1.0]);
        let mut history = History::new();
        history.insert(other, "node".into(), Record { tasks: 2, seconds: 16.0 });
        let (_, estimates) = start(&instance, &history);
        assert_eq!(seconds(&estimates), [1.0, 8.0, 1.0, 8.0]);
    }

    #[test]
    fn guesses_are_taken_in_the_unit_that_finished_tasks_suggest() {
        let draft = |id: &str| {
            let map = Some(TasksDraft::Uniform { tasks: 2, seconds: 1.0 }.into());
            FlowDraft::new(id, vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }])
        };
        let instance = Instance::new(&Draft {
            machines: vec![MachineDraft {
                name: "node".into(),
                count: 1,
                speed: 1.0,
                slots: Slots::Generic(2),
                rack: None,
            }],
            flows: vec![draft("a"), draft("b"), draft("c")],
            ..Draft::default()
        })
        .unwrap();
        let mut history = History::new();
        let known = PhaseName::of(&instance, PhaseId(2));
        history.insert(known, "node".into(), Record { tasks: 5, seconds: 20.0 });
        let (_, estimates) = start(&instance, &history);
        assert_eq!(seconds(&estimates), [4.0, 4.0, 4.0], "without guesses all are average");
        let learning = Learning::new(instance.cluster(), &history).guessing();
        let (mut learning, mut estimates) = met(&instance, learning, &[2.0, 6.0, 9.0]);
        assert_eq!(seconds(&estimates), [2.0, 6.0, 4.0], "a history is better than a guess");
        learning.learn(&[done(0, 2, 0, 0.0)], &instance, &mut estimates);
        assert_eq!(
            seconds(&estimates),
            [2.0, 6.0, 4.0],
            "what was done before the run could see it says nothing"
        );
        let arrived = Event::FlowArrived(FlowId(1));
        learning.learn(&[done(0, 2, 0, 3.0), arrived], &instance, &mut estimates);
        assert_eq!(seconds(&estimates), [3.0, 9.0, 4.0], "half as long again as guessed");
    }

    #[test]
    fn names_of_finished_flows_are_remembered_up_to_the_limit() {
        let flow = |id: &str| {
            let map = Some(TasksDraft::Uniform { tasks: 1, seconds: 1.0 }.into());
            FlowDraft::new(id, vec![JobDraft { id: "j".into(), map, ..JobDraft::default() }])
        };
        let flows: Vec<FlowDraft> = (0..4).map(|k| flow(&format!("f{k}"))).collect();
        let whole = Instance::new(&Draft { flows, ..instance_of_one() }).unwrap();
        let mut live = whole.without_flows();
        let mut learning = Learning::new(whole.cluster(), &History::new()).guessing().remembering(2);
        let mut estimates = Estimates::new(whole.cluster());
        let mut known = History::new();
        known.insert(PhaseName::of(&whole, PhaseId(0)), "node".into(), Record { tasks: 2, seconds: 14.0 });
        learning.know(&known);
        // Each flow arrives, has its task done in as many seconds as its number, and finishes; some come
        // again.
        let mut estimated = Vec::new();
        for (number, took) in [(0, 7.0), (1, 2.0), (0, 7.0), (2, 3.0), (0, 9.0), (3, 4.0), (0, 1.0), (1, 5.0)]
        {
            let id = live.admit(whole.excerpt(FlowId(number)));
            let phase = live.flow(id).phases().next().unwrap();
            estimates.task.insert(phase, Span::from_seconds_nearest(100.0));
            learning.learn(&[Event::FlowArrived(id)], &live, &mut estimates);
            estimated.push(estimates.task[phase].seconds());
            learning.learn(&[done(phase.0, 1, 0, took)], &live, &mut estimates);
            learning.forget([phase].into_iter());
            live.retire(id);
        }
        // f0 is estimated from the start, and then from all its tasks; f1 was forgotten before it came again.
        assert_eq!(estimated[0], 7.0);
        assert_eq!((estimated[2], estimated[4], estimated[6]), (7.0, 7.0, 7.4));
        assert!(estimated[7] > 2.0, "a guess in the unit that others suggest: {estimated:?}");
        assert!(learning.names.len() <= 3, "{:?}", learning.names);
    }

    fn instance_of_one() -> Draft {
        let slots = Slots::Generic(2);
        let machine = MachineDraft { name: "node".into(), count: 1, speed: 1.0, slots, rack: None };
        Draft { machines: vec![machine], ..Draft::default() }
    }

    #[test]
    fn speeds_come_out_of_times_of_the_same_phases() {
        // Speeds 8, 1 and 3, sizes 24 and 12; no phase ran on all groups, and the last group on none.
        let instance = instance(&[("fast", 1, 8.0), ("slow", 2, 1.0), ("odd", 1, 3.0), ("new", 1, 4.0)]);
        let (mut learning, mut estimates) = start(&instance, &History::new());
        assert_eq!(estimates.speed.raw, [3.4; 4]);
        let events = [done(0, 2, 0, 3.0), done(0, 1, 1, 24.0), done(1, 1, 2, 12.0), done(1, 1, 3, 4.0)];
        learning.learn(&events, &instance, &mut estimates);
        let relative = |group: usize| estimates.speed.raw[group] / estimates.speed.raw[1];
        assert!((relative(0) - 8.0).abs() < 1e-9, "{:?}", estimates.speed);
        assert!((relative(2) - 3.0).abs() < 1e-9, "{:?}", estimates.speed);
        assert!(
            (mean_of_slots(instance.cluster(), &learning.number_of, &estimates.speed.raw) - 3.4).abs() < 1e-9
        );
        let unit = estimates.speed.raw[1];
        assert!((seconds(&estimates)[0] - 24.0 * unit).abs() < 1e-5);
        assert!((seconds(&estimates)[1] - 12.0 * unit).abs() < 1e-5);
        // The next run starts there.
        let (_, again) = start(&instance, &learning.into_history());
        assert_eq!(again.speed, estimates.speed);
    }
}
